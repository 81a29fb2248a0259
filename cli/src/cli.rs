//! The verbs, as `hookbus --help` lists them, and their exit codes. The options of a verb are in its own file; the
//! groups of the list are in `help.rs`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::output::{self, StdoutClosed};
use crate::settings::{Format, Settings};
use crate::{
    anchor, backup, boot, compact, completions, connect, dead, demo, export, help, hold, hook,
    hooks, import, init, log, man, observe, overview, prune, query, replay, scan, serve, sessions,
    show, stats, status, stop, top, verify, why,
};

/// An event-sourced hook bus for AI agents
///
/// hookbus records every event of your AI agents in one log on this machine and runs your hooks on
/// it. A hook can block a tool call, ask the user, add context or rewrite the input. Run `hookbus
/// demo` to see it work. Without a command it says what is going on, and what to type next.
#[derive(Debug, Parser)]
#[command(
    name = "hookbus",
    version,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = help::MORE,
    after_long_help = help::ENVIRONMENT
)]
struct Cli {
    /// Print the result as JSON
    #[arg(long, global = true, display_order = 900)]
    json: bool,

    /// Home of hookbus.yaml and log.db [default: `HOOKBUS_HOME`, else ~/.hookbus]
    ///
    /// An absolute path. With it, no environment variable that begins with `HOOKBUS_` counts; every
    /// setting comes from the home's hookbus.yaml.
    #[arg(long, global = true, value_name = "DIR", value_parser = absolute_home, display_order = 901)]
    home: Option<PathBuf>,

    /// None: what is going on, and what to type next.
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Try hookbus in a scratch home with two sample sessions
    ///
    /// Starts a daemon in a scratch home with a sample policy, sends it the events of a short Hermes
    /// session and a short Gemini CLI session, prints the answers and both timelines, and stops the
    /// daemon. Your own home is not touched.
    Demo,
    /// Write a first policy, and connect your agents
    ///
    /// Writes hookbus.yaml with comments into the home of hookbus, if there is none: it uses the packs of
    /// rules that ship with hookbus, which keep agents away from hookbus itself, and block or ask about
    /// commands that cannot be undone. At a terminal it asks whether the rules count at once, and offers to
    /// connect the agents that are installed.
    Init(init::Arguments),
    /// Wire an agent to hookbus
    ///
    /// Shows the changes to the agent's files and asks before it writes them. Run it again to change
    /// an option or to refresh the installed files; `hookbus disconnect` undoes it.
    #[command(after_help = help::CONNECT)]
    Connect(connect::Connect),
    /// Undo `hookbus connect`
    ///
    /// Shows the changes and asks before it writes them. Restores the agent's files as they were, and
    /// keeps what you changed in them since.
    Disconnect(connect::Disconnect),
    /// List, test, approve and check your hooks
    ///
    /// Hooks are configured in hookbus.yaml in the home of hookbus, and in .hookbus/hookbus.yaml of a
    /// project, which counts when you run these commands inside the project.
    #[command(subcommand, after_help = help::HOOKS)]
    Hooks(hooks::Verb),
    /// Print recorded events and decisions, oldest first
    ///
    /// At a terminal it prints the last screenful; with `--all` everything, in a pager (`PAGER`). In a pipe
    /// it prints the whole log unless you filter it. Decisions are rows too; each names the event that it
    /// is about.
    Log(log::Arguments),
    /// List recorded sessions, latest first
    ///
    /// For each session: its first prompt, its short id, agent, project, start, length, and how much was
    /// recorded, blocked and failed. At a terminal one screenful. Of a very long session only the latest rows
    /// are counted; it then says `more than` or `at least`.
    Sessions(sessions::Arguments),
    /// Show one session as a timeline
    ///
    /// Shows the turns of a session: the prompt, the tool calls with how they ended and one line of what they
    /// printed, questions to the user, sub-agents, the decisions with their reasons, and the answer. A call
    /// that was blocked and ran all the same stands out.
    Show(show::Arguments),
    /// Watch what happens: sessions, rates, blocks, hooks
    ///
    /// One screen with the sessions of your agents, events per second, what was blocked or asked about, how
    /// often hooks were asked and how long they took, and what waits for the relay and the observers. Enter
    /// opens a session event by event. Reads only what is new, and never writes to the log. Without a
    /// terminal it prints the figures once.
    Top(top::Arguments),
    /// Explain a decision: each hook, what it saw, what came of it
    ///
    /// Shows what each hook that was in force made of an event, each condition of a rule with the value
    /// that it saw, what the agent was answered, and what it did next: a call that was blocked and ran all
    /// the same is told in red.
    Why(why::Arguments),
    /// Count: sessions, tool calls, failures, blocks, tokens, latencies
    ///
    /// Reads the analytics database, which is built from the log if there is none and brought up to date
    /// otherwise. An observer (`analytics: true`) keeps it up to date all the time.
    #[command(after_help = help::STATS)]
    Stats(stats::Arguments),
    /// Ask in SQL
    ///
    /// Read-only SQL over documented views: events with their payloads, decisions, verdicts, sessions,
    /// turns, tool calls, hooks, usage, files and hosts. `--views` lists them with their columns.
    #[command(after_help = help::QUERY)]
    Query(query::Arguments),
    /// Check that the log is whole and unchanged
    ///
    /// Recomputes the hash of every row and the columns that follow from it, and checks the pages and
    /// indexes of the file. Says what happened to which row: altered, missing, inserted or reordered.
    /// The file alone does not show rows that were cut off its end, or another log in its place; a
    /// comparison with `--against` does. In an archive it checks each bus. Exits with 0 if the log is
    /// sound, else with 1.
    #[command(after_help = help::VERIFY)]
    Verify(verify::Arguments),
    /// Copy the log to a file while agents go on
    ///
    /// The copy is consistent, and holds everything that was recorded before it began. Copy hookbus.yaml
    /// and consent.json as well to have your policy and approvals.
    Backup(backup::BackupArguments),
    /// Put a copy of the log back in its place
    ///
    /// Verifies the copy first. The log that is there now is kept under another name.
    Restore(backup::RestoreArguments),
    /// Look for secrets that the log still holds
    ///
    /// Events are recorded without secrets, except those that an earlier hookbus recorded, or that were
    /// recorded with `redact: false`. Names the kinds and the rows, never the secrets. Exits with 1 if it
    /// finds any.
    ///
    /// With `--redact` it replaces them by marks. The log stays verifiable: a row of kind `log.redacted` tells which
    /// rows were changed, and binds what they hold since. The file is written anew, so that nothing of the secrets
    /// stays in it. Sessions on hold stay as they are. Agents go on meanwhile; you can interrupt it and run it again.
    Scan(scan::Arguments),
    /// Make a log smaller that an earlier hookbus wrote
    ///
    /// Stores what payloads have in common once, and gives the space back to the disk. New events are
    /// stored that way anyway. Agents go on meanwhile; you can interrupt it and run it again. It needs
    /// free space for the new log beside the old one.
    Compact,
    /// Remove payloads or rows by age, size, session, agent or kind
    ///
    /// The log stays verifiable: the hashes of what was removed stay, and a row in the log tells what was
    /// removed, when and by whom. Decisions go with their event. Never removed are the rows of the bus
    /// itself (hooks, approvals, settings), sessions on hold, and the session that was active last, unless
    /// you name it. Agents go on meanwhile; you can interrupt it and run it again. It needs free space for
    /// the new log beside the old one.
    ///
    /// Without conditions it runs the rules under `retain:` in hookbus.yaml, as the daemon does once an hour.
    #[command(after_help = help::PRUNE)]
    Prune(prune::Arguments),
    /// Keep a session from being pruned
    ///
    /// A held session stays whatever `hookbus prune` is told, until it is released. Both are recorded in
    /// the log.
    #[command(after_help = help::HOLD)]
    Hold(hold::Arguments),
    /// Sign the last row of the log, and keep that elsewhere
    ///
    /// Verifies what is new since the last time, signs the hash of the last row with the key of this home
    /// (signing.key, made with the first checkpoint), records that in the log, and writes it to each
    /// place. `hookbus verify --against` later shows rows that were cut off and a log that was rewritten.
    /// Copy the file, push the ref, or use a stream on another machine: what this user can write, a program
    /// that runs as this user can write too.
    #[command(after_help = help::ANCHOR)]
    Anchor(anchor::Arguments),
    /// Run recorded events through hooks and compare the decisions
    ///
    /// Select the events (sessions, filters or --all) and the hooks: the current ones, those that were
    /// in force (--as-recorded) or those of a file (--hooks). Command hooks run for real, in a scratch
    /// directory, after they were listed and you confirmed. Nothing is written to the log.
    #[command(after_help = help::REPLAY)]
    Replay(Box<replay::Arguments>),
    /// Write recorded events as JSON lines, or a view as Parquet or CSV
    ///
    /// Writes one CloudEvents object per row, oldest first, with the row's hash, for another machine,
    /// a bug report or a test. `hookbus import` and `hookbus replay --log` read the result. The hooks
    /// that were in force are always included. A damaged row is reported and left out; the exit code
    /// is then 1.
    #[command(after_help = help::EXPORT)]
    Export(export::Arguments),
    /// Import exported events into an archive
    ///
    /// An archive holds the logs of many buses in one directory. Name it with `--home` to
    /// query, verify and replay it. Rows that the archive already holds are skipped. A row whose hash
    /// does not follow from the row before it is reported and left out.
    #[command(after_help = help::IMPORT)]
    Import(import::Arguments),
    /// Run the daemon in the foreground
    ///
    /// `hookbus hook` starts a daemon in the background when none is running, so you need this command
    /// only to run one as a service. The daemon answers hooks faster, keeps plugins loaded, relays the
    /// log to NATS and runs the observers.
    Serve(serve::Arguments),
    /// Say whether all is well: daemon, log, relay, observers, hooks
    ///
    /// Says first whether all is well, then what is not, then the details. Exits with 0 if a daemon answers, and
    /// with 1 if not; `--check` exits with 0 if nothing is broken.
    Status(status::Arguments),
    /// Stop the daemon
    ///
    /// Waits up to 70 seconds until the daemon has finished the calls in flight and exited. A daemon
    /// that still holds its home after 10 seconds is killed. Hooks keep working: without a daemon,
    /// each `hookbus hook` handles its event in its own process.
    Stop,
    /// Run one observer in the foreground
    ///
    /// The daemon runs all observers (hooks with `mode: observe`) by itself. Use this command to run
    /// one by hand, on this machine or on any machine that reaches the NATS server.
    #[command(after_help = help::OBSERVE)]
    Observe(observe::Arguments),
    /// List, show, retry and drop dead letters
    ///
    /// An event becomes a dead letter when an observer has failed on it at its last attempt. The
    /// observer goes on with the next event.
    #[command(subcommand, after_help = help::DEAD)]
    Dead(dead::Verb),
    /// Handle one agent event: stdin to stdout (called by agents)
    ///
    /// Reads an event from stdin, records it, runs your hooks on it and prints the answer in the
    /// agent's own format, or nothing. Uses the daemon if one is running and starts one if not. Exits
    /// with 0 whatever happens; 1 means wrong usage.
    Hook(hook::Arguments),
    /// Run an agent on the start-up checklist in BOOT.md
    ///
    /// Made for an observer of `gateway:startup`: starts an agent in the background with the checklist
    /// as its prompt, once per start, and writes its report to boot.log. An answer with `[SILENT]` in it
    /// means that there is nothing to report.
    Boot(boot::Arguments),
    /// Print a completion script for your shell
    Completions(completions::Arguments),
    /// Print a manual page, or write all of them into a directory
    Man(man::Arguments),
}

fn absolute_home(text: &str) -> Result<PathBuf, String> {
    let home = PathBuf::from(text);
    if home.is_absolute() {
        return Ok(home);
    }
    Err("agents call hookbus from any directory, so a home is an absolute path; begin it with `/`"
        .to_owned())
}

/// The definition of the whole command line.
pub(crate) fn command() -> clap::Command {
    help::with_groups(Cli::command())
}

/// The exit code of a verb that ran to its end; errors exit with 1 too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: done, or the answer is yes.
    Success,
    /// 1: the answer is no, or something was found to be wrong.
    Failure,
}

/// Parses the arguments and runs the verb. Wrong usage exits with 1, never with more: an agent may
/// take a higher code for a block.
pub(crate) fn run() -> ExitCode {
    let parsed = command().try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let is_wrong_usage = error.use_stderr();
            if error.print().is_err() {
                tracing::debug!("cannot print the usage: the stream is closed");
            }
            return if is_wrong_usage { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let settings = Settings::load(cli.home);
    let format = if cli.json { Format::Json } else { Format::Text };
    output::fit_to(settings.window, format);
    let Some(verb) = cli.verb else { return exit_code(overview::run(format, &settings)) };
    let ended = match verb {
        Verb::Demo => demo::run(format, &settings),
        Verb::Init(arguments) => init::run(&arguments, format, &settings),
        Verb::Connect(arguments) => connect::connect(arguments, format, &settings),
        Verb::Disconnect(arguments) => connect::disconnect(&arguments, format, &settings),
        Verb::Hooks(verb) => hooks::run(&verb, format, &settings),
        Verb::Log(arguments) => log::run(&arguments, format, &settings),
        Verb::Sessions(arguments) => sessions::run(&arguments, format, &settings),
        Verb::Show(arguments) => show::run(&arguments, format, &settings),
        Verb::Top(arguments) => top::run(&arguments, format, &settings),
        Verb::Why(arguments) => why::run(&arguments, format, &settings),
        Verb::Stats(arguments) => stats::run(&arguments, format, &settings),
        Verb::Query(arguments) => query::run(&arguments, format, &settings),
        Verb::Verify(arguments) => verify::run(&arguments, format, &settings),
        Verb::Backup(arguments) => backup::run_backup(&arguments, format, &settings),
        Verb::Restore(arguments) => backup::run_restore(&arguments, format, &settings),
        Verb::Scan(arguments) => scan::run(&arguments, format, &settings),
        Verb::Compact => compact::run(format, &settings),
        Verb::Prune(arguments) => prune::run(&arguments, format, &settings),
        Verb::Hold(arguments) => hold::run(&arguments, format, &settings),
        Verb::Anchor(arguments) => anchor::run(&arguments, format, &settings),
        Verb::Replay(arguments) => replay::run(&arguments, format, &settings),
        Verb::Export(arguments) => export::run(&arguments, format, &settings),
        Verb::Import(arguments) => import::run(&arguments, format, &settings),
        Verb::Serve(arguments) => serve::run(&arguments, &settings),
        Verb::Status(arguments) => status::run(&arguments, format, &settings),
        Verb::Stop => stop::run(format, &settings),
        Verb::Observe(arguments) => observe::run(&arguments, format, &settings),
        Verb::Dead(verb) => dead::run(&verb, format, &settings),
        Verb::Hook(arguments) => return hook::run(&arguments, &settings),
        Verb::Boot(arguments) => boot::run(&arguments, format, &settings),
        Verb::Completions(arguments) => completions::run(&arguments),
        Verb::Man(arguments) => man::run(&arguments, format),
    };
    exit_code(ended)
}

fn exit_code(ended: anyhow::Result<Exit>) -> ExitCode {
    match ended {
        Ok(Exit::Success) => ExitCode::SUCCESS,
        Ok(Exit::Failure) => ExitCode::FAILURE,
        Err(error) if error.is::<StdoutClosed>() => ExitCode::SUCCESS,
        Err(error) => {
            output::to_stderr(output::sanitize_lines(&format!("hookbus: {error:#}")));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_page_lists_every_verb_once_and_fits_80_columns() {
        let mut command = command().term_width(80);
        command.build();
        let page = command.render_help().to_string();
        for verb in command.get_subcommands() {
            let name = verb.get_name();
            let lines = page.lines().filter(|line| line.split_whitespace().next() == Some(name));
            assert_eq!(lines.count(), 1, "{name} in\n{page}");
        }
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    }

    #[test]
    fn examples_fit_80_columns() {
        fn check(command: &clap::Command) {
            let texts = [command.get_after_help(), command.get_after_long_help()];
            for text in texts.into_iter().flatten().map(ToString::to_string) {
                let is_long = |line: &&str| line.chars().count() > 80;
                assert_eq!(text.lines().find(is_long), None, "{}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&command());
    }
}
