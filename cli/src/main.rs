//! The `hookbus` command: picks a verb and turns its result into an exit code.

mod args;
mod boot;
mod cli;
mod completions;
mod connect;
mod dead;
mod demo;
mod export;
mod files;
mod help;
mod home_lock;
mod hook;
mod hooks;
mod import;
mod log;
mod man;
mod observe;
mod output;
mod prompt;
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
    // Agents call `hookbus hook` many times per turn, so it skips the argument parser.
    if let Some(arguments) = hook::parse_fast(std::env::args_os().skip(1)) {
        return hook::run(&arguments, &settings);
    }
    cli::run(settings)
}
