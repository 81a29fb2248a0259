//! Goes through the programs of a line and adds what they use.

use super::mounts::on_this_machine;
use super::rules::{UNKNOWN_PROGRAM, rule};
use super::uses::Uses;
use super::{
    archives, clouds, containers, copies, databases, editing, find, git, keys, network, packages,
    patches, remote_copies, search, transfers,
};
use crate::shell::programs::{Certainty, Operand, ParsedInvocation, Reading, Text};
use crate::shell::view::{Invocation, ShellView};
use crate::shell::word::UNKNOWN;

/// Adds the files and hosts that each program of the view uses. What the shell itself does (redirections) is not
/// added.
pub(crate) fn add_effects(view: &mut ShellView) {
    for (index, invocation) in view.programs.iter().enumerate() {
        let mut uses = Uses::new(index, invocation.cwd.clone());
        add(invocation, &mut uses);
        if let Some(container) = &invocation.container {
            let inside = std::mem::take(&mut uses.files).into_iter();
            uses.files.extend(inside.filter_map(|file| on_this_machine(file, container)));
        }
        view.files.append(&mut uses.files);
        view.hosts.append(&mut uses.hosts);
    }
}

fn add(invocation: &Invocation, uses: &mut Uses) {
    let mut parsed = ParsedInvocation::new(invocation);
    // `python -m pip`, `busybox rm`: the program inside says what happens.
    let Some(mut reading) = parsed.readings.pop() else { return };
    if invocation.more_args {
        add_unknown_operand(&mut reading);
    }
    by_program(invocation, &reading, uses);
}

const ANY_FILE: &str = "\u{FFFC}";

/// `xargs rm`: the operands that are not known are one unknown operand.
fn add_unknown_operand(reading: &mut Reading<'_>) {
    let rest = reading.arguments.rest();
    if rest.iter().all(|operand| !operand.word.text.starts_with(UNKNOWN)) {
        reading.arguments.operands.push(Operand {
            word: Text::literal(ANY_FILE),
            certainty: Certainty::Anything,
            behind_dashes: false,
        });
    }
}

fn by_program(invocation: &Invocation, reading: &Reading<'_>, uses: &mut Uses) {
    match reading.name {
        "mv" | "cp" | "ln" | "install" => copies::copies(reading, uses),
        "shred" => copies::shred(reading, uses),
        "mktemp" => copies::mktemp(reading, uses),
        "chmod" | "chown" | "chgrp" | "chattr" | "chflags" | "chcon" | "setfacl" => {
            copies::modes(reading, uses);
        }
        "sed" | "awk" | "perl" | "ruby" | "yq" => editing::editing(reading, uses),
        "vim" | "vi" | "nvim" | "view" | "ex" | "gvim" | "vimdiff" | "rvim" => {
            editing::vim(reading, uses);
        }
        "python" | "node" | "php" | "sh" | "bash" | "zsh" | "dash" | "ksh" | "fish" | "lua"
        | "tsx" | "ts-node" | "ash" | "mksh" | "csh" | "tcsh" | "deno" => {
            editing::script(reading, uses);
        }
        "prettier" | "eslint" | "biome" | "black" | "ruff" | "gofmt" | "rustfmt" | "shfmt"
        | "clang-format" | "isort" => editing::formatter(reading, uses),
        "grep" | "zgrep" | "zegrep" | "bzgrep" | "xzgrep" | "ugrep" | "rg" | "ag" | "ack" => {
            search::grep(invocation, reading, uses);
        }
        "fd" | "jq" | "gojq" | "jaq" => search::expression_first(reading, uses),
        "find" => find::find(invocation, reading, uses),
        "tar" | "zip" | "unzip" | "7z" | "cpio" => archives::archives(reading, uses),
        "gzip" | "bzip2" | "xz" | "zstd" | "lzma" | "lz4" | "compress" | "pigz" | "gunzip"
        | "bunzip2" | "unxz" | "unzstd" | "uncompress" | "unlzma" | "pbzip2" => {
            archives::compress(reading, uses);
        }
        "curl" => transfers::curl(reading, uses),
        "wget" | "wget2" | "aria2c" | "http" | "xh" | "xhs" | "httpie" | "curlie" => {
            transfers::downloads(reading, uses);
        }
        "scp" | "rsync" | "rclone" => remote_copies::remote_copies(reading, uses),
        "ssh" | "mosh" | "autossh" | "sftp" | "ssh-copy-id" | "nc" | "telnet" | "ftp" | "lftp"
        | "tftp" | "socat" | "ping" | "dig" | "nslookup" | "host" | "traceroute" | "nmap"
        | "whois" | "ssh-keyscan" => network::hosts(invocation, reading, uses),
        "git" | "hub" | "yadm" => git::git(invocation, reading, uses),
        "patch" => patches::patch(invocation, reading, uses),
        "apply_patch" | "apply-patch" => patches::apply_patch(invocation, reading, uses),
        "docker" | "buildah" | "docker-compose" => containers::docker(reading, uses),
        "kubectl" | "k" | "helm" => containers::kubernetes(reading, uses),
        "aws" | "awslocal" | "gsutil" | "gcloud" | "az" | "terraform" | "terragrunt" | "pulumi"
        | "gh" | "glab" => clouds::clouds(reading, uses),
        "psql" | "pgcli" | "mysql" | "mysqldump" | "mariadb-dump" | "mysqladmin" | "pg_dump"
        | "pg_dumpall" | "dropdb" | "createdb" | "mongosh" | "mongodump" | "mongorestore"
        | "redis-cli" | "valkey-cli" => databases::servers(reading, uses),
        "sqlite3" | "sqlite" | "duckdb" | "sqlcipher" => {
            databases::sqlite(invocation, reading, uses);
        }
        "ssh-keygen" | "gpg" | "openssl" | "crontab" => keys::keys(reading, uses),
        "pip" | "npm" | "pnpm" | "bun" | "yarn" | "uv" | "pipx" | "poetry" | "gem" | "make"
        | "gnumake" | "ninja" | "samu" => packages::packages(reading, uses),
        name => by_rule(name, invocation, reading, uses),
    }
}

fn by_rule(name: &str, invocation: &Invocation, reading: &Reading<'_>, uses: &mut Uses) {
    // What follows a subcommand is rarely a path: `docker pull a/b`, `npm install @a/b`.
    let has_subcommands = reading.spec.is_some_and(|spec| spec.depth > 0);
    match rule(name) {
        Some(rule) => rule.apply(reading, uses),
        None => {
            if !has_subcommands {
                UNKNOWN_PROGRAM.apply(reading, uses);
            }
            for word in &invocation.args {
                uses.reads(path_inside(Text::from(word)));
            }
        }
    }
}

/// The path inside a word of a program that is not known: `--file=/x`, `@~/x`, `name=@/x`, `-k/x`.
fn path_inside(word: Text<'_>) -> Option<Text<'_>> {
    let text = word.text;
    let value = match text.split_once('=') {
        Some((name, value)) if !name.contains('/') => value,
        Some(_) | None if text.starts_with('@') => text,
        Some(_) | None => {
            let short =
                text.strip_prefix('-').filter(|rest| rest.starts_with(char::is_alphabetic))?;
            let letter = short.chars().next().map_or(0, char::len_utf8);
            short.get(letter..)?
        }
    };
    let path = value.strip_prefix(['@', '<']).unwrap_or(value);
    let path = path.strip_prefix("file://").unwrap_or(path);
    let is_path = ["/", "~/", "./", "../"].iter().any(|start| path.starts_with(start));
    is_path.then(|| word.part(path))
}
