//! `hookbus hooks …`: listing, testing, approving and checking hooks. In a project its hooks are included.

mod check;
mod consent;
mod doctor;
mod effective;
mod hooks_test;
mod list;
mod promote;
mod sample_events;
mod shadow;
mod test_call;
mod test_report;

use anyhow::Result;
use clap::Subcommand;

pub(crate) use self::effective::current_caller;

use self::effective::EffectiveHooks;
use crate::cli::Exit;
use crate::settings::{Format, Settings};

const REVOKE_EXAMPLES: &str = "\
Examples:
  hookbus hooks revoke team-policy        Revoke by name
  hookbus hooks revoke ./hooks/policy.py  Revoke by command";

/// The arguments of `hookbus hooks`.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List the hooks in force and the problems of their file
    ///
    /// Lists the hooks in the order in which they run. Exits with 1 if the file or an entry is broken.
    List,
    /// Run your hooks on a call or a sample event, without recording it
    ///
    /// Prints the verdict of each hook, failures, and the answer that the agent would get. For a call
    /// (--command, --path or --url) also what each condition of a rule saw, and why the other hooks do not
    /// match. Commands and plugins run for real.
    Test(hooks_test::Arguments),
    /// Run the examples of your rules
    ///
    /// Checks a file as it is written: every example under a rule, also those of the packs that the file
    /// uses, and every mistake. A missed example is shown with the condition that failed and the value
    /// that it saw. Exits with 1 if an example is missed or the file has a mistake.
    Check(check::Arguments),
    /// Approve what hooks run, after showing it
    ///
    /// Shows each entry that is new or has changed, with the files that it runs, and asks. Hooks that
    /// need approval do not run before. Exits with 0 if nothing is left to approve.
    Approve(consent::Approve),
    /// Revoke the approval of a hook
    ///
    /// Applies to your own hookbus.yaml and to the project in the current directory.
    #[command(after_help = REVOKE_EXAMPLES)]
    Revoke {
        /// Command as written in hookbus.yaml, or name of the hook
        #[arg(value_name = "HOOK")]
        command: String,
    },
    /// Report what hooks in shadow mode would have done
    ///
    /// Reads the log and tells for each hook in shadow mode how many calls it would have blocked, asked
    /// about, rewritten and so on, and which. Nothing runs again.
    Shadow(shadow::Arguments),
    /// Turn hooks in shadow mode on
    ///
    /// Edits your own hookbus.yaml after showing the change: removes `mode: shadow` from the entries, or
    /// writes `mode: decide` if the whole file is in shadow mode. Commands and plugins have to be approved
    /// again then.
    Promote(promote::Arguments),
    /// Check that hooks run, agents are wired and events arrive
    ///
    /// Runs each approved command on a sample event, and each plugin on one event of every kind that
    /// it can answer. Each finding says how to fix it. Exits with 1 if anything is wrong.
    Doctor,
}

pub(crate) fn run(verb: &Verb, format: Format, settings: &Settings) -> Result<Exit> {
    match verb {
        Verb::List => list::run(format, settings),
        Verb::Test(arguments) => hooks_test::run(arguments, format, settings),
        Verb::Check(arguments) => check::run(arguments, format, settings),
        Verb::Approve(arguments) => consent::approve(arguments, format, settings),
        Verb::Revoke { command } => consent::revoke(command, format, settings),
        Verb::Shadow(arguments) => shadow::run(arguments, format, settings),
        Verb::Promote(arguments) => promote::run(arguments, format, settings),
        Verb::Doctor => doctor::run(format, settings),
    }
}
