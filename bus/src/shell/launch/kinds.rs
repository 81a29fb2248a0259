//! Which programs start others, and how: one table.

use super::wrappers::{self, Wrapper};

/// What a program does besides its own work.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// It starts nothing that is known here.
    Plain,
    /// It may change the state of the shell.
    Builtin,
    /// `sh`, `bash`, …: runs a script.
    Shell,
    Eval,
    Source,
    Trap,
    /// `python`, `perl`, …: runs a script in another language.
    Interpreter,
    /// It starts the program in its arguments, behind its options.
    Wrapper(&'static Wrapper),
    Command,
    Env,
    Sudo,
    Su,
    Xargs,
    Parallel,
    Find,
    Fd,
    /// `watch`, `flock`, `script`, `nix-shell`: an option may hold a shell line.
    LineOption,
    Ssh,
    Container,
    Kubectl,
    Runner,
    Tmux,
    Screen,
    /// `at`, `batch`, `crontab`: what they read runs later.
    Scheduler,
    /// `capsh`, `setarch`, `sg`: the program stands in a place of its own.
    Odd,
    /// `git-push`: a subcommand of git under a name of its own.
    GitSubcommand,
}

/// The kind of the program with this name (without its directory).
pub(super) fn kind(name: &str) -> Kind {
    match name {
        "cd" | "chdir" | "pushd" | "popd" | "export" | "declare" | "typeset" | "local"
        | "readonly" | "unset" | "read" | "mapfile" | "readarray" | "getopts" | "let" | "alias"
        | "unalias" | "set" | "shift" | "printf" | "test" | "[" | "compgen" | "wait" => {
            Kind::Builtin
        }
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "mksh" | "ksh93" | "ash" | "rbash" | "fish"
        | "csh" | "tcsh" => Kind::Shell,
        "eval" => Kind::Eval,
        "source" | "." => Kind::Source,
        "trap" => Kind::Trap,
        "command" | "builtin" => Kind::Command,
        "env" => Kind::Env,
        "sudo" | "doas" | "pkexec" | "run0" => Kind::Sudo,
        "su" | "runuser" => Kind::Su,
        "xargs" | "gxargs" => Kind::Xargs,
        "parallel" | "sem" => Kind::Parallel,
        "find" | "gfind" => Kind::Find,
        "fd" | "fdfind" => Kind::Fd,
        "watch" | "flock" | "script" | "nix-shell" | "entr" => Kind::LineOption,
        "tmux" => Kind::Tmux,
        "screen" => Kind::Screen,
        "at" | "batch" | "crontab" => Kind::Scheduler,
        "capsh" | "setarch" | "faketime" | "sg" | "newgrp" | "hyperfine" | "pueue" | "zellij"
        | "rr" => Kind::Odd,
        "ssh" | "mosh" | "autossh" => Kind::Ssh,
        "docker" | "podman" | "nerdctl" | "docker-compose" => Kind::Container,
        "kubectl" | "oc" => Kind::Kubectl,
        _ if name.strip_prefix("git-").is_some_and(|sub| !sub.is_empty()) => Kind::GitSubcommand,
        _ if super::runners::is_runner(name) => Kind::Runner,
        _ if super::super::code::language(name).is_some() => Kind::Interpreter,
        _ => wrappers::find(name).map_or(Kind::Plain, Kind::Wrapper),
    }
}
