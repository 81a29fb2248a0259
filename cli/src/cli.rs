//! The verbs and their options, as `--help` tells them.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::output::{self, StdoutClosed};
use crate::settings::{Format, Settings};
use crate::{
    boot, completions, connect, dead, demo, export, hook, hooks, import, log, man, observe, replay,
    serve, sessions, show, status, stop, verify,
};

/// An event-sourced hook bus for AI agents: every lifecycle event and every decision in one log.
///
/// Everything lives in `HOOKBUS_HOME` (default ~/.hookbus): hookbus.yaml with your hooks, log.db with
/// what happened. `hookbus demo` shows it at work in a scratch home.
#[derive(Debug, Parser)]
#[command(name = "hookbus", version, disable_help_subcommand = true)]
struct Cli {
    /// Print the result as JSON, for programs.
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// The front door: an agent's event on stdin, its answer on stdout. Agents call this.
    Hook(hook::Arguments),
    /// Run the daemon in the foreground. Hooks start one by themselves; it only saves them time.
    Serve(serve::Arguments),
    /// Is a daemon up, and what is it doing? Exits 0 only when one answers.
    Status(status::Arguments),
    /// End the daemon, also one that does not answer any more. Hooks go on without it.
    Stop,
    /// Wire an agent to the bus: shows the change and asks first.
    Connect(connect::Connect),
    /// Take back what `connect` did; what you changed since stays.
    Disconnect(connect::Disconnect),
    /// Have an agent work through BOOT.md, in the background. A ready hook for `gateway:startup`.
    Boot(boot::Arguments),
    /// The hooks in hookbus.yaml.
    #[command(subcommand)]
    Hooks(hooks::Verb),
    /// Run one observer by hand, here or on any machine that reaches the NATS server.
    Observe(observe::Arguments),
    /// Events that an observer failed on to its last try: look at them, retry them, drop them.
    #[command(subcommand)]
    Dead(dead::Verb),
    /// What happened: the whole log, oldest first, unless filtered.
    Log(log::Arguments),
    /// The log, or a part of it, as JSON lines: for another machine, a bug report, a test.
    Export(export::Arguments),
    /// Exported rows into an archive, which can be asked, verified and replayed like a log.
    Import(import::Arguments),
    /// The recorded sessions, the latest last.
    Sessions(sessions::Arguments),
    /// One session as a timeline: turns, tool calls with their results, decisions with reasons.
    Show(show::Arguments),
    /// Re-drive what was recorded through hooks, and see what would be decided differently.
    Replay(Box<replay::Arguments>),
    /// Walk the hash chain: is the log what was written? Exits 0 if it is sound, 1 if not.
    Verify,
    /// The first five minutes: two short sessions through a sample policy, in a scratch home.
    Demo(demo::Arguments),
    /// Print a completion script for your shell.
    Completions(completions::Arguments),
    /// Print a manual page, or write all of them into a directory.
    Man(man::Arguments),
}

/// The definition of the whole command line, for completions, manual pages and the reference.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// How a verb ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it is for, and the answer is yes.
    Yes,
    /// It did what it is for, and the answer is no.
    No,
}

/// Parses the arguments and runs the verb. Wrong usage is 1 and never more: an agent may take
/// higher codes for a refusal.
pub(crate) fn run(settings: Settings) -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let wrong = error.use_stderr();
            if error.print().is_err() {
                tracing::debug!("nobody reads the usage");
            }
            return if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let format = if cli.json { Format::Json } else { Format::Text };
    let ended = match cli.verb {
        Verb::Hook(arguments) => return hook::run(&arguments, &settings),
        Verb::Serve(arguments) => serve::run(&arguments, &settings),
        Verb::Status(arguments) => status::run(&arguments, format, &settings),
        Verb::Stop => stop::run(format, &settings),
        Verb::Connect(arguments) => connect::connect(arguments, format, &settings),
        Verb::Disconnect(arguments) => connect::disconnect(&arguments, format, &settings),
        Verb::Boot(arguments) => boot::run(&arguments, format, &settings),
        Verb::Hooks(verb) => hooks::run(&verb, format, &settings),
        Verb::Observe(arguments) => observe::run(&arguments, format, &settings),
        Verb::Dead(verb) => dead::run(&verb, format, &settings),
        Verb::Log(arguments) => log::run(&arguments, format, &settings),
        Verb::Export(arguments) => export::run(&arguments, format, &settings),
        Verb::Import(arguments) => import::run(&arguments, format, &settings),
        Verb::Sessions(arguments) => sessions::run(&arguments, format, &settings),
        Verb::Show(arguments) => show::run(&arguments, format, &settings),
        Verb::Replay(arguments) => replay::run(&arguments, format, &settings),
        Verb::Verify => verify::run(format, &settings),
        Verb::Demo(arguments) => demo::run(&arguments, format, settings),
        Verb::Completions(arguments) => completions::run(&arguments),
        Verb::Man(arguments) => man::run(&arguments, format),
    };
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
