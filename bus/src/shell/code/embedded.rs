//! Shell lines that have a syntax of their own in another language: backquotes, `!line` in vim, `.shell` in `SQLite`.

use super::super::follow::Origin;
use super::super::view::Access;
use super::calls::{EFFECTS, Effect, add_file};
use super::context::Context;
use super::literals::{Argument, Literals};

/// `` `line` ``, `qx(line)`, `%x(line)`.
pub(super) fn backquotes(code: &str, effects: &mut Vec<Effect>) {
    let pieces: Vec<&str> = code.split('`').take(EFFECTS).collect();
    for line in pieces.chunks(2).take(pieces.len() / 2).filter_map(|pair| pair.get(1)) {
        effects.push(Effect::Line((*line).to_owned()));
    }
    for (open, close) in [
        ("qx(", ')'),
        ("qx{", '}'),
        ("qx/", '/'),
        ("%x(", ')'),
        ("%x{", '}'),
        ("%x[", ']'),
        ("qx[", ']'),
    ] {
        for (at, _) in code.match_indices(open).take(8) {
            let inside = code.get(at + open.len()..).unwrap_or_default();
            if let Some((line, _)) = inside.split_once(close) {
                effects.push(Effect::Line(line.to_owned()));
            }
        }
    }
}

/// `"line" | getline` and `print | "line"`.
pub(super) fn awk_pipes(code: &str, effects: &mut Vec<Effect>) {
    for (at, _) in code.match_indices('|').take(16) {
        let (before, behind) = (
            code.get(..at).unwrap_or_default().trim_end(),
            code.get(at + 1..).unwrap_or_default().trim_start(),
        );
        if behind.starts_with("getline") {
            let quoted = before.strip_suffix('"').and_then(|text| text.rsplit_once('"'));
            effects.extend(quoted.map(|(_, line)| Effect::Line(line.to_owned())));
            // What was read may be run: `"curl …" | getline c; system(c)`.
            if behind.contains("system(") && !behind.contains("system(\"") {
                effects.push(Effect::Code(Origin::Output));
            }
        } else if let Some((line, _)) =
            behind.strip_prefix('"').and_then(|text| text.split_once('"'))
        {
            // `print "line" | "sh"`: the shell reads what is printed.
            let name = line.trim().rsplit('/').next().unwrap_or_default();
            let printed = before.strip_suffix('"').and_then(|text| text.rsplit_once('"'));
            match printed {
                Some((_, text)) if matches!(name, "sh" | "bash" | "zsh" | "dash" | "sh -s") => {
                    effects.push(Effect::Line(text.to_owned()));
                }
                Some(_) | None => effects.push(Effect::Line(line.to_owned())),
            }
        }
    }
}

/// `print > "file"`, `print >> "file"`, `getline < "file"`.
pub(super) fn awk_files(code: &str, effects: &mut Vec<Effect>) {
    for (at, sign) in code.match_indices(['<', '>']).take(EFFECTS) {
        let behind = code.get(at + 1..).unwrap_or_default().trim_start_matches('>').trim_start();
        let Some((path, _)) = behind.strip_prefix('"').and_then(|text| text.split_once('"')) else {
            continue;
        };
        // Only behind `print` and `getline`; elsewhere the sign compares.
        let before = code.get(..at).unwrap_or_default();
        let statement = before.rsplit(['{', '}', ';', '\n']).next().unwrap_or_default();
        if sign == ">" && statement.contains("print") {
            add_file(path, Access::Write, false, effects);
        } else if sign == "<" && statement.contains("getline") {
            add_file(path, Access::Read, false, effects);
        }
    }
}

/// Perl's `open handle, mode, path`, `open handle, "<path"`, `open handle, "line |"`.
pub(super) fn perl_open(arguments: &[Argument], effects: &mut Vec<Effect>) {
    let Some(Argument::Text(first)) = arguments.get(1) else { return };
    let (mode, target) = match arguments.get(2) {
        Some(Argument::Text(target)) => (first.as_str(), target.as_str()),
        Some(Argument::List(_) | Argument::Other(_)) => return,
        None => {
            let text = first.trim();
            match text.strip_suffix('|') {
                Some(line) => ("-|", line),
                None => {
                    text.split_at(text.len() - text.trim_start_matches(['<', '>', '+', '|']).len())
                }
            }
        }
    };
    if mode.contains('|') {
        effects.push(Effect::Line(target.trim().to_owned()));
        return;
    }
    let access = if mode.contains(['>', '+']) { Access::Write } else { Access::Read };
    add_file(target.trim(), access, false, effects);
}

/// `do shell script "line"`.
pub(super) fn applescript(code: &str, effects: &mut Vec<Effect>) {
    for (at, found) in code.match_indices("do shell script").take(8) {
        let inside = code.get(at + found.len()..).unwrap_or_default();
        if let Some(Argument::Text(line)) =
            Literals::new(inside, &Context::new("", None, None)).arguments().into_iter().next()
        {
            effects.push(Effect::Line(line));
        }
    }
}

/// `!line`, also behind `:`, `|`, `r` or `w`; `w file`, `saveas file`, `r file`, `call delete('file')`.
pub(super) fn vim(code: &str, effects: &mut Vec<Effect>) {
    for command in code.split('|').take(16) {
        let command = command.trim_start_matches([':', ' ', '%', '$', ',', '.']);
        let command = command.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',');
        let Some((name, path)) = command.split_once(char::is_whitespace) else { continue };
        let path = path.trim().trim_start_matches('>').trim_start();
        match name.trim_end_matches('!') {
            "w" | "write" | "wq" | "x" | "sav" | "saveas" if !path.starts_with('!') => {
                add_file(path, Access::Write, false, effects);
            }
            "r" | "read" | "e" | "edit" | "so" | "source" if !path.starts_with('!') => {
                add_file(path, Access::Read, false, effects);
            }
            _ => {}
        }
    }
    if let Some((before, line)) = code.split_once('!')
        && before
            .trim_start_matches(':')
            .chars()
            .all(|c| c.is_ascii_alphabetic() || matches!(c, ' ' | '%' | '.'))
        && before.len() < 12
        && !matches!(
            before.trim_start_matches(':'),
            "q" | "wq" | "x" | "qa" | "wqa" | "e" | "w" | "bd"
        )
    {
        effects.push(Effect::Line(line.to_owned()));
    }
    if let Some((_, inside)) = code.split_once("system(")
        && let Some(Argument::Text(line)) =
            Literals::new(inside, &Context::new("", None, None)).arguments().into_iter().next()
    {
        effects.push(Effect::Line(line));
    }
}

/// `(delete-file "path")`, `(shell-command "line")`.
pub(super) fn lisp(code: &str, effects: &mut Vec<Effect>) {
    for form in code.split('(').skip(1).take(EFFECTS) {
        let Some((name, rest)) = form.split_once(char::is_whitespace) else { continue };
        let Some((text, _)) =
            rest.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'))
        else {
            continue;
        };
        match name {
            "delete-file" => add_file(text, Access::Delete, false, effects),
            "delete-directory" => add_file(text, Access::Delete, true, effects),
            "shell-command" | "shell-command-to-string" | "async-shell-command" => {
                effects.push(Effect::Line(text.to_owned()));
            }
            "insert-file-contents" | "find-file" | "load-file" | "load" => {
                add_file(text, Access::Read, false, effects);
            }
            "write-file" | "append-to-file" => add_file(text, Access::Write, false, effects),
            "rename-file" => add_file(text, Access::Delete, true, effects),
            "call-process" | "start-process" => {
                let words = rest.split('"').skip(1).step_by(2).take(16).map(str::to_owned);
                effects.push(Effect::Program(words.collect()));
            }
            _ => {}
        }
    }
}

/// Calls that list files, and calls that delete the file which a variable names.
const LISTINGS: [&str; 6] = ["glob(", "Dir.glob", "Dir[", "listdir(", "readdirSync(", "iglob("];
const DELETIONS: [&str; 8] = [
    "unlink glob",
    "File.delete(",
    "File.unlink(",
    "os.remove(",
    "os.unlink(",
    "unlinkSync(",
    "\"unlink\"",
    "'unlink'",
];

/// `Dir.glob("/x/*").each { |f| File.delete(f) }`: what is listed is deleted.
pub(super) fn listed_files(code: &str, effects: &mut Vec<Effect>) {
    if !DELETIONS.iter().any(|name| code.contains(name)) {
        return;
    }
    for listing in LISTINGS {
        for (at, _) in code.match_indices(listing).take(8) {
            let behind = code.get(at + listing.len()..).unwrap_or_default();
            let quoted = behind.trim_start_matches(['(', ' ']);
            let path = ['"', '\''].into_iter().find_map(|quote| {
                quoted.strip_prefix(quote).and_then(|rest| rest.split_once(quote))
            });
            if let Some((path, _)) = path {
                add_file(path, Access::Delete, true, effects);
            }
        }
    }
}

/// `.shell line` and `.system line`.
pub(super) fn sqlite(code: &str, effects: &mut Vec<Effect>) {
    for line in code.lines().take(64) {
        let line = line.trim_start();
        let command = line.strip_prefix(".shell ").or_else(|| line.strip_prefix(".system "));
        effects.extend(command.map(|command| Effect::Line(command.to_owned())));
    }
}
