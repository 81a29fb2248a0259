//! The `hookbus` command: picks a verb and turns its result into an exit code.

mod analytics;
mod anchor;
mod args;
mod backup;
mod boot;
mod bus_names;
mod bus_rows;
mod checkpoints;
mod cli;
mod compact;
mod completions;
mod confirm;
mod connect;
mod dead;
mod demo;
mod diff;
mod export;
mod files;
mod help;
mod hold;
mod home_lock;
mod hook;
mod hooks;
mod import;
mod init;
mod log;
mod man;
mod observe;
mod output;
mod overview;
mod prompt;
mod prune;
mod query;
mod reference;
mod replay;
mod report;
mod rule_report;
mod scan;
mod screen;
mod serve;
mod sessions;
mod settings;
mod shapes;
mod show;
mod stats;
mod status;
mod step;
mod stop;
mod tables;
mod top;
mod unusable_home;
mod verify;
mod why;
mod worktree;
mod yaml;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Agents call `hookbus hook` many times per turn, so it skips the argument parser.
    if let Some((arguments, home)) = hook::parse_fast(std::env::args_os().skip(1)) {
        return hook::run(&arguments, &settings::Settings::load(home));
    }
    cli::run()
}
