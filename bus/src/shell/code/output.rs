//! What a program prints, or at least where that comes from.

use super::super::follow::{Flow, Follower, Origin, Target};
use super::super::view::{Directory, Invocation};
use super::super::word::{UNKNOWN, Word};
use super::{decode, downloads, listing, paths, printing, received};

/// What the program at an index prints.
pub(crate) fn known_output(follower: &mut Follower<'_>, index: usize, input: &Flow) -> Flow {
    let Some(program) = follower.view.programs.get(index) else { return Flow::default() };
    match program.program.as_str().rsplit('/').next().unwrap_or_default() {
        "curl" | "wget" | "fetch" | "aria2c" | "axel" => {
            return downloads::downloaded(follower, index, input);
        }
        "mv" | "cp" | "install" if !follower.written.is_empty() => {
            moved(follower, index);
            return Flow::text("");
        }
        "scp" | "rsync" | "sftp" | "rclone" | "aws" | "gsutil" | "gcloud" | "az" | "gh"
        | "glab" | "git" | "hg"
            if received::may_load(program) =>
        {
            received::remember(follower, index, input);
        }
        "tar" | "bsdtar" | "gtar" | "unzip" | "7z" | "7za" | "7zz" | "cpio" | "gunzip" | "gzip"
        | "unxz" | "xz" | "bunzip2" | "bzip2" | "zstd" | "unzstd"
            if !follower.written.is_empty() || input.origin == Origin::Download =>
        {
            received::remember(follower, index, input);
        }
        "tee" => return copied(follower, index, input),
        "cat" | "bat" | "zcat" | "gzcat" => return files(follower, index, input),
        "pwd" => {
            let directory = follower.working_directory();
            let origin = if directory.contains(UNKNOWN) { Origin::Output } else { Origin::Line };
            return Flow { text: Some(directory + "\n"), ..Flow::unknown(origin) };
        }
        _ => {}
    }
    let Some(program) = follower.view.programs.get(index) else { return Flow::default() };
    let name = program.program.as_str().rsplit('/').next().unwrap_or_default();
    let args: Vec<&str> = program.args.iter().map(Word::as_str).collect();
    if program.more_args {
        return Flow::unknown(origin_of(name, program, input));
    }
    let text = printed(follower, name, &args, input);
    let origin = match (&text, name) {
        (Some(_), "base64" | "gbase64" | "xxd" | "rev") => Origin::Decoded.max(input.origin),
        (Some(_), "head" | "tail" | "sort" | "uniq" | "tr") => input.origin,
        (Some(text), _) if !text.contains(UNKNOWN) => Origin::Line,
        (Some(_), _) => Origin::Variable,
        (None, _) => origin_of(name, program, input),
    };
    let items = listing::items(name, program, input);
    Flow { text, items, ..Flow::unknown(origin) }
}

/// The text that a program prints, if it can be told.
fn printed(follower: &Follower<'_>, name: &str, args: &[&str], input: &Flow) -> Option<String> {
    match (name, args) {
        ("echo", args) => Some(printing::echo(args)),
        ("printf", ["-v", ..]) => Some(String::new()),
        ("printf", args) => printing::printf(args),
        ("which" | "type" | "whereis", [.., name]) => Some(format!("{name}\n")),
        ("command", ["-v" | "-V", name]) => Some(format!("{name}\n")),
        ("basename" | "dirname" | "realpath" | "grealpath" | "readlink" | "greadlink", args) => {
            paths::printed(follower, name, args)
        }
        ("printenv", [variable]) => follower.known_variable(variable).map(|value| value + "\n"),
        ("git", ["rev-parse", "--show-toplevel"]) => Some(follower.top_level()),
        // One line stays one, whichever lines are wanted.
        ("head" | "tail" | "sort" | "uniq", args) if args.iter().all(|arg| is_line_count(arg)) => {
            input.text.clone().filter(|text| text.lines().count() < 2)
        }
        ("tr", ["-d", "\\n" | "\n" | "\\r\\n" | "\\n\\r"]) => {
            input.text.as_deref().map(|text| text.replace(['\n', '\r'], ""))
        }
        ("rev", []) => input.text.as_deref().map(reversed),
        ("base64" | "gbase64" | "xxd" | "base32", args) => decoded(name, args, input),
        _ if is_silent(name) => Some(String::new()),
        _ => None,
    }
}

fn decoded(name: &str, args: &[&str], input: &Flow) -> Option<String> {
    let text = input.text.as_deref()?;
    let has = |options: &[&str]| args.iter().any(|arg| options.contains(arg));
    match name {
        "xxd" if has(&["-r", "-rp", "-r-p"]) => decode::hex(text),
        "base64" | "gbase64" if has(&["-d", "-D", "--decode", "-di"]) => decode::base64(text),
        _ => None,
    }
}

/// `-1`, `-n`, `1`, `-u`: which lines, not how many bytes.
fn is_line_count(arg: &str) -> bool {
    let rest = arg.strip_prefix('-').unwrap_or(arg).trim_start_matches(['n', 'u', 'r']);
    rest.bytes().all(|byte| byte.is_ascii_digit())
}

fn reversed(text: &str) -> String {
    text.lines().flat_map(|line| line.chars().rev().chain(std::iter::once('\n'))).collect()
}

/// Where the output of a program comes from whose text is not known.
fn origin_of(name: &str, program: &Invocation, input: &Flow) -> Origin {
    let first = program.args.first().map(Word::as_str).unwrap_or_default();
    match name {
        "nc" | "ncat" | "netcat" | "socat" | "http" | "https" | "httpie" | "xh" | "lynx"
        | "w3m" | "links" | "elinks" | "ftp" | "tftp" | "telnet" | "gsutil" | "rclone" | "aws"
        | "ipfs" | "dig" | "nslookup" | "host" => Origin::Download,
        "base64" | "gbase64" | "base32" | "xxd" | "openssl" | "gpg" | "gpg2" | "age" | "rev"
        | "tr" | "uudecode" | "ccrypt" | "basenc" | "rot13" | "hexdump" => {
            input.origin.max(Origin::Decoded)
        }
        _ if is_harmless_generator(name, program) => Origin::Harmless,
        _ if is_filter(name) && first != "--version" => input.origin.max(Origin::Output),
        _ => Origin::Output,
    }
}

/// Programs that print nothing, unless they fail.
fn is_silent(name: &str) -> bool {
    matches!(
        name,
        "cd" | ":"
            | "true"
            | "false"
            | "export"
            | "set"
            | "unset"
            | "shopt"
            | "local"
            | "declare"
            | "readonly"
            | "typeset"
            | "alias"
            | "mkdir"
            | "rm"
            | "touch"
            | "sleep"
            | "test"
            | "["
            | "umask"
            | "wait"
            | "shift"
            | "return"
            | "exit"
            | "read"
            | "chmod"
            | "chown"
            | "cp"
            | "mv"
            | "ln"
            | "pushd"
            | "popd"
            | "trap"
    )
}

/// Programs that pass on what they read, changed.
fn is_filter(name: &str) -> bool {
    matches!(
        name,
        "sed"
            | "gsed"
            | "grep"
            | "egrep"
            | "fgrep"
            | "rg"
            | "awk"
            | "gawk"
            | "mawk"
            | "head"
            | "tail"
            | "sort"
            | "uniq"
            | "cut"
            | "gunzip"
            | "gzip"
            | "bunzip2"
            | "bzip2"
            | "xz"
            | "unxz"
            | "zstd"
            | "unzstd"
            | "zstdcat"
            | "xzcat"
            | "bzcat"
            | "lz4"
            | "iconv"
            | "dos2unix"
            | "jq"
            | "yq"
            | "tac"
            | "nl"
            | "fold"
            | "fmt"
            | "expand"
            | "paste"
            | "pv"
            | "dd"
            | "perl"
            | "python"
            | "python3"
            | "ruby"
            | "node"
            | "envsubst"
            | "col"
            | "strings"
            | "sponge"
            | "buffer"
            | "tar"
            | "unzip"
            | "funzip"
            | "cpio"
            | "xargs"
            | "less"
            | "more"
    )
}

/// Programs whose output is meant for `eval` and sets up a shell.
fn is_harmless_generator(name: &str, program: &Invocation) -> bool {
    let args: Vec<&str> = program.args.iter().map(Word::as_str).collect();
    let has = |words: &[&str]| args.iter().any(|arg| words.contains(arg));
    match name {
        "ssh-agent"
        | "direnv"
        | "dircolors"
        | "gdircolors"
        | "register-python-argcomplete"
        | "getopt"
        | "lesspipe"
        | "lesspipe.sh"
        | "locale"
        | "resize"
        | "tset"
        | "keychain"
        | "thefuck" => true,
        "pyenv" | "rbenv" | "nodenv" | "goenv" | "jenv" | "plenv" | "tfenv" | "phpenv"
        | "starship" | "zoxide" | "atuin" | "oh-my-posh" | "anyenv" => {
            has(&["init", "virtualenv-init", "env"])
        }
        "brew" => has(&["shellenv"]),
        "fnm" | "opam" | "volta" | "rakubrew" | "perlbrew" => has(&["env", "setup", "init"]),
        "mise" | "rtx" => has(&["activate", "env", "hook-env"]),
        "conda" | "mamba" | "micromamba" => {
            has(&["hook", "activate"]) || args.iter().any(|arg| arg.starts_with("shell"))
        }
        "minikube" => has(&["docker-env", "podman-env"]),
        "docker-machine" => has(&["env"]),
        "luarocks" => has(&["path"]),
        _ => has(&[
            "completion",
            "completions",
            "--completion",
            "generate-shell-completion",
            "gen-completions",
        ]),
    }
}

/// `tee` prints what it reads and writes it to files.
fn copied(follower: &mut Follower<'_>, index: usize, input: &Flow) -> Flow {
    let args =
        follower.view.programs.get(index).map(|program| program.args.clone()).unwrap_or_default();
    let append = args.iter().any(|arg| matches!(arg.as_str(), "-a" | "--append"));
    let flow = Flow { from: Vec::new(), ..input.clone() };
    for arg in args.iter().filter(|arg| !arg.as_str().starts_with('-')) {
        follower.wrote(&Target { path: arg.clone(), append }, flow.clone(), Some(index));
    }
    flow
}

/// The file that `mv`, `cp` and the like take, and the one that they make of it, if it is only one.
pub(crate) fn source_and_target(program: &Invocation) -> Option<(&Word, &Word)> {
    let words: Vec<&Word> =
        program.args.iter().filter(|word| !word.as_str().starts_with('-')).collect();
    match words.as_slice() {
        [source, target] => Some((*source, *target)),
        // `install -m 755 a b`: the mode is not the file.
        [_, source, target] if program.program.as_str().ends_with("install") => {
            Some((*source, *target))
        }
        _ => None,
    }
}

/// `mv a b`: what the line has written to `a` is in `b` now.
fn moved(follower: &mut Follower<'_>, index: usize) {
    let Some(program) = follower.view.programs.get(index) else { return };
    let Some((source, target)) = source_and_target(program) else { return };
    let Some(flow) = follower.written_flow(source) else { return };
    let path = match target.as_str().strip_suffix('/') {
        Some(directory) => {
            let name = source.as_str().rsplit('/').next().unwrap_or_default();
            Word::literal(format!("{directory}/{name}"))
        }
        None => target.clone(),
    };
    follower.wrote(&Target { path, append: false }, flow, Some(index));
}

/// `cat` prints files, or what it reads.
fn files(follower: &mut Follower<'_>, index: usize, input: &Flow) -> Flow {
    let args =
        follower.view.programs.get(index).map(|program| program.args.clone()).unwrap_or_default();
    let mut paths =
        args.iter().filter(|arg| !arg.as_str().starts_with('-') || arg.as_str() == "-").peekable();
    if paths.peek().is_none() {
        let mut flow = Flow { from: Vec::new(), ..input.clone() };
        if input.is_nothing() {
            flow.origin = Origin::Output; // from where the line itself reads
        }
        return flow;
    }
    let mut flow = Flow::text("");
    for path in paths {
        flow.append(match path.as_str() {
            "-" => Flow { from: Vec::new(), ..input.clone() },
            _ => follower.written_flow(path).unwrap_or(Flow::unknown(Origin::File)),
        });
    }
    flow.from.clear();
    flow
}

impl Follower<'_> {
    /// The top of the repository: most lines start there.
    fn top_level(&self) -> String {
        match (&self.scope.directory, self.start.variable("PWD")) {
            (Directory::Path(path), Some(start)) if !path.starts_with(['/', '~']) => {
                format!("{start}\n")
            }
            _ => ".\n".to_owned(),
        }
    }
}
