//! The `hookbus` command: picks a verb and turns its result into an exit code.

mod prompt;
mod boot;
mod cli;
mod completions;
mod connect;
mod dead;
mod demo;
mod export;
mod files;
mod home_lock;
mod hook;
mod hooks;
mod import;
mod log;
mod man;
mod observe;
mod output;
mod args;
mod reference;
mod replay;
mod serve;
mod sessions;
mod settings;
mod show;
mod status;
mod stop;
mod timeline;
mod verify;

use std::process::ExitCode;

fn main() -> ExitCode {
    let settings = settings::Settings::from_env();
    // The front door is called many times a turn: it does not wait for the argument parser.
    if let Some(wanted) = hook::quickly_read(std::env::args_os().skip(1)) {
        return hook::run(&wanted, &settings);
    }
    cli::run(settings)
}
