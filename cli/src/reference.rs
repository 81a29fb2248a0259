//! The reference of all commands as Markdown (`cli/docs/commands.md`), made from the same command line definition that
//! `--help` is made from. A test compares the file with this text.

use clap::{Arg, Command};

const HEAD: &str = "# Commands

<!-- Generated from the command line definition. To update: UPDATE_DOCS=1 tests/run -E 'binary(docs)' -->

Every command has `--help`. Every command takes `--json` and then prints its result as JSON, for programs
([what is in it](output.md)). Exit codes are [0 and 1](output.md#exit-codes). Every command takes `--home DIR`, an absolute path: the
[home](home.md) to use, and then [no variable counts](home.md#--home-pins-a-call) that begins with `HOOKBUS_`.

Session and event ids may be shortened, as long as only one fits; `last` is the latest session. `--since` and `--until` take `90s`, `30m`,
`2h`, `7d`, `today`, `yesterday`, `2026-11-16`, `2026-11-16 14:05` (local time) or RFC 3339. `--kind` and `--name` take a
family: `tool.*`, `command:*`.

| command | what it does |
|---|---|
";

/// The whole page; `root` is built, so that each subcommand knows its full name.
pub(crate) fn markdown(root: &Command) -> String {
    let mut commands = Vec::new();
    collect(root, &mut commands);
    let contents = commands.iter().map(|command| {
        let name = full_name(command);
        let link = name.replace(' ', "-");
        format!("| [`{name}`](#{link}) | {} |\n", cell(&summary(command)))
    });
    let contents: String = contents.collect();
    let sections: String = commands.iter().copied().map(section).collect();
    format!("{HEAD}{contents}{sections}")
}

/// The commands that do something; `hookbus hooks` alone does not.
fn collect<'a>(command: &'a Command, found: &mut Vec<&'a Command>) {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        if !below.has_subcommands() {
            found.push(below);
        }
        collect(below, found);
    }
}

fn section(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim().trim_start_matches("Usage:").trim();
    let (name, about) = (full_name(command), about(command));
    let rows: String = command.get_arguments().filter(|it| is_its_own(it)).map(row).collect();
    let table = if rows.is_empty() {
        String::new()
    } else {
        format!("\n| argument or option | meaning | default |\n|---|---|---|\n{rows}")
    };
    let more = command.get_after_long_help().or(command.get_after_help());
    let more = more.map(|more| format!("\n```text\n{}\n```\n", more.to_string().trim()));
    let more = more.unwrap_or_default();
    format!("\n## {name}\n\n{about}\n\n```text\n{usage}\n```\n{table}{more}")
}

fn full_name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

/// One sentence.
fn summary(command: &Command) -> String {
    command.get_about().map(|about| sentences(&about.to_string())).unwrap_or_default()
}

/// All that `--help` says before the usage.
fn about(command: &Command) -> String {
    let about = command.get_long_about().map(|about| sentences(&about.to_string()));
    about.unwrap_or_else(|| summary(command))
}

/// Whether it belongs to this command; `--json` and `--help` belong to all.
fn is_its_own(arg: &Arg) -> bool {
    !arg.is_hide_set() && !arg.is_global_set() && arg.get_id() != "help"
}

fn row(arg: &Arg) -> String {
    let short = arg.get_short().filter(|_| arg.get_long().is_some());
    let short = short.map(|short| format!("-{short}, ")).unwrap_or_default();
    let takes_value = arg.is_positional() || arg.get_action().takes_values();
    let defaults = arg.get_default_values().iter().filter(|_| takes_value);
    let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
    let default = match defaults.as_slice() {
        [] => String::new(),
        values => format!("`{}`", values.join(" ")),
    };
    format!("| `{short}{arg}` | {} | {} |\n", cell(&meaning(arg, takes_value)), cell(&default))
}

fn meaning(arg: &Arg, takes_value: bool) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let text = help.map(|help| sentences(&help.to_string())).unwrap_or_default();
    let values = if takes_value { arg.get_possible_values() } else { Vec::new() };
    let values: Vec<String> = values
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}`: {help}", value.get_name()),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if values.is_empty() { text } else { format!("{text} One of: {}.", values.join("; ")) }
}

/// The first paragraph of a help text has no full stop at its end; in a document each one has.
fn sentences(text: &str) -> String {
    let full_stop = |paragraph: &str| match paragraph.trim_end() {
        "" => String::new(),
        text if text.ends_with(['.', '?', '!', ':', '|']) => text.to_owned(),
        text => format!("{text}."),
    };
    let paragraphs: Vec<_> = text.trim().split("\n\n").map(full_stop).collect();
    paragraphs.join("\n\n")
}

/// Text for one cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
