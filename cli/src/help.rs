//! What `--help` shows beyond the options: the verbs in groups (clap has one heading for all of them), the environment
//! variables, examples, and styled headings for these.

use clap::Command;
use clap::builder::{Resettable, StyledStr};

/// The verbs of the front page, by group. Verbs that are in none of these groups are listed last.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Getting started", &["demo", "init", "connect", "disconnect"]),
    ("Policy", &["hooks"]),
    ("Look at the log", &["log", "sessions", "show", "top", "why", "stats", "query", "verify"]),
    ("Keep the log", &["backup", "restore", "scan", "compact", "prune", "hold", "anchor"]),
    ("Replay", &["replay", "export", "import"]),
    ("Daemon and observers", &["serve", "status", "stop", "observe", "dead"]),
];

/// The last line of `hookbus -h`.
pub(crate) const MORE: &str = "Run `hookbus <COMMAND> --help` for the options of a command.";

/// The end of `hookbus --help`.
pub(crate) const ENVIRONMENT: &str = "\
Environment, unless --home names the home:
  HOOKBUS_HOME      Home of hookbus.yaml and log.db [default: ~/.hookbus]
  HOOKBUS_DAEMON    Whether `hook` uses a daemon: auto (starts one), running
                    (only if there is one) or off [default: auto]
  HOOKBUS_IDLE      Seconds without calls until `serve --background` exits
                    [default: 900]
  HOOKBUS_NATS_URL  NATS servers, in place of those in hookbus.yaml
  HOOKBUS_LOG       Log level of daemon and observers [default: info]
  NO_COLOR          Any value switches colours off

A daemon that `hook` starts takes its settings from hookbus.yaml alone.

Run `hookbus <COMMAND> --help` for the options of a command.";

pub(crate) const CONNECT: &str = "\
Examples:
  hookbus connect hermes               Show the changes, ask, and make them
  hookbus connect hermes --hooks move  Also move your Hermes hooks to hookbus
  hookbus connect gemini --project     Connect Gemini in this directory only";

pub(crate) const HOOKS: &str = "\
Examples:
  hookbus hooks list                Show what is in force
  hookbus hooks approve             Review and approve what hooks run
  hookbus hooks test pre_tool_call  Try the hooks on a sample event";

pub(crate) const STATS: &str = "\
Examples:
  hookbus stats                       Everything at a glance
  hookbus stats --since 7d --by tool  The tools of the last week
  hookbus stats --by hook             What hooks did, and how long they took
  hookbus stats --by day --csv        A line per day, for a spreadsheet";

pub(crate) const QUERY: &str = "\
Examples:
  hookbus query --views                What there is to ask about
  hookbus query \"SELECT tool, count(*) FROM tool_calls WHERE status = 'failed'
                 GROUP BY tool\"        Which tools fail
  hookbus query \"SELECT time, payload ->> '$.prompt' FROM events
                 WHERE kind = 'turn.start'\" --json
                                       What users asked for";

pub(crate) const VERIFY: &str = "\
Examples:
  hookbus verify                          Check the log
  hookbus verify --save-head head.json    Keep its head, on another machine
  hookbus verify --against head.json      Is all still there that was then?
  hookbus verify --against nats           Compare with the stream
  hookbus verify --against ~/archive      Compare with an archive
  hookbus verify --against proof.jsonl    Compare with signed checkpoints
  hookbus verify --from last              Only what is new since the last one
  hookbus verify --repair                 Mend indexes and derived columns";

pub(crate) const PRUNE: &str = "\
Examples:
  hookbus prune --older-than 90d --dry-run  What would go?
  hookbus prune --older-than 90d            Payloads older than 90 days
  hookbus prune --max-size 2GB              The oldest payloads, until it fits
  hookbus prune --session 7f6c --rows       A session, with its rows
  hookbus prune --dry-run                   What would `retain:` remove?";

pub(crate) const ANCHOR: &str = "\
Examples:
  hookbus anchor --to /mnt/usb/proof.jsonl  Add a line to a file
  hookbus anchor --to git:~/proof           A commit in refs/hookbus/BUS
  hookbus anchor --to nats                  Wait until the stream holds it
  hookbus verify --against git:~/proof      Is all still there that was then?";

pub(crate) const HOLD: &str = "\
Examples:
  hookbus hold 7f6c --note \"case 12\"  Keep a session
  hookbus hold --list                 Which sessions are held?
  hookbus hold --release 7f6c         Allow it to be pruned again";

pub(crate) const REPLAY: &str = "\
Examples:
  hookbus replay last                      Replay the latest session
  hookbus replay --step last               Walk through it, event by event
  hookbus replay --since 7d --list         Replay a week, show each difference
  hookbus replay --all --hooks draft.yaml  Try a changed policy on the whole log";

pub(crate) const EXPORT: &str = "\
Examples:
  hookbus export last -o session.jsonl    Export the latest session
  hookbus export --since 7d > week.jsonl  Export a week
  hookbus export --format parquet --view tool_calls -o calls.parquet
                                          A view, for DuckDB and friends";

pub(crate) const IMPORT: &str = "\
Examples:
  hookbus import week.jsonl --into ~/archive  Add the rows to an archive
  hookbus --home ~/archive sessions           Query the archive";

pub(crate) const OBSERVE: &str = "\
Examples:
  hookbus observe audit          Run the observer `audit` until Ctrl-C
  hookbus observe audit --drain  Handle what is there, and exit";

pub(crate) const DEAD: &str = "\
Examples:
  hookbus dead list               List all dead letters
  hookbus dead show audit 42      Show event 42, and why `audit` failed on it
  hookbus dead retry audit --all  Retry all of one observer";

/// The command with its front page in groups and with styled headings on all pages.
pub(crate) fn with_groups(command: Command) -> Command {
    let template = front_page(&command);
    style_headings(command).help_template(template)
}

fn front_page(command: &Command) -> String {
    let header = command.get_styles().get_header();
    let verbs = || command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let width = verbs().map(|verb| verb.get_name().len()).max().unwrap_or(0);
    let describe = |verb: &Command| {
        let literal = verb.get_styles().get_literal();
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        format!("  {literal}{:<width$}{literal:#}  {about}\n", verb.get_name())
    };
    let group = |heading: &str, lines: String| format!("{header}{heading}:{header:#}\n{lines}\n");
    let groups: String = GROUPS
        .iter()
        .map(|(heading, names)| {
            let find = |name: &&str| verbs().find(|verb| verb.get_name() == *name);
            group(heading, names.iter().filter_map(find).map(describe).collect())
        })
        .collect();
    let is_grouped =
        |verb: &&Command| GROUPS.iter().any(|(_, names)| names.contains(&verb.get_name()));
    let more = group("More", verbs().filter(|verb| !is_grouped(verb)).map(describe).collect());
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{more}\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    )
}

/// Clap prints the text after the options as it is: `Examples:` gets the style of clap's own headings.
fn style_headings(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let style = |text: &StyledStr| -> StyledStr {
        let mut styled = String::new();
        for line in text.to_string().lines() {
            let is_heading = line.ends_with(':') && !line.starts_with(' ');
            let line =
                if is_heading { format!("{header}{line}{header:#}") } else { line.to_owned() };
            styled += &(line + "\n");
        }
        styled.into()
    };
    let short = command.get_after_help().map(style);
    let long = command.get_after_long_help().map(style);
    command
        .after_help(Resettable::from(short))
        .after_long_help(Resettable::from(long))
        .mut_subcommands(style_headings)
}
