//! A ref of a git repository with one commit per checkpoint, each on top of the last. Written with git's plumbing: the work
//! tree, the index and HEAD are not touched, and no hook of the repository runs. The checkpoint is in the message of the commit,
//! and in the file `checkpoint.json` for people who look.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use super::file::LARGEST;
use super::place::{Agrees, AnchorError, Anchored, may_follow};
use crate::event::BusId;
use crate::log::{CheckpointError, SignedCheckpoint};
use crate::sys::thread::spawn_scoped;

/// How much of git's messages is read.
const LONGEST_MESSAGE: u64 = 64 << 10;

/// How often to try again if the ref changes meanwhile.
const MOST_TRIES: usize = 5;

/// Variables with which an agent's repository could lead git somewhere else, or run something.
const GIT_VARIABLES: [&str; 14] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_CONFIG",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXEC_PATH",
    "GIT_GRAFT_FILE",
];

/// The ref to use.
pub(super) fn name_of(reference: Option<&str>, bus: BusId) -> String {
    match reference {
        Some(name) if name.starts_with("refs/") => name.to_owned(),
        Some(name) => format!("refs/{name}"),
        None => format!("refs/hookbus/{bus}"),
    }
}

pub(super) fn add(
    repository: &Path,
    reference: &str,
    signed: &SignedCheckpoint,
    agrees: &Agrees<'_>,
) -> Result<Anchored, AnchorError> {
    let place = format!("git:{}#{reference}", repository.display());
    let git = |arguments: &[&str], input: &str| git(repository, arguments, input);
    git(&["check-ref-format", reference], "").map_err(|_| AnchorError::Git {
        command: format!("check-ref-format {reference}"),
        message: "this is not the name of a ref; write refs/hookbus/NAME".to_owned(),
    })?;
    for _ in 0..MOST_TRIES {
        let tip = tip(repository, reference)?;
        if let Some(tip) = &tip {
            let foreign = |why| AnchorError::Foreign { place: place.clone(), why };
            let last = history(repository, tip, Some(1))?.pop();
            let last = last.unwrap_or(Err(CheckpointError::Malformed)).map_err(foreign)?;
            if last.checkpoint.bus != signed.checkpoint.bus {
                let bus = last.checkpoint.bus;
                return Err(AnchorError::OtherBus { place, bus });
            }
            if may_follow(&last, signed, &place, agrees)? == Anchored::Known {
                return Ok(Anchored::Known);
            }
        }
        let line = signed.to_json().to_string();
        let blob = git(&["hash-object", "-w", "--stdin"], &format!("{line}\n"))?;
        let tree = git(&["mktree"], &format!("100644 blob {blob}\tcheckpoint.json\n"))?;
        let message = format!("hookbus checkpoint: row {}\n\n{line}\n", signed.checkpoint.seq);
        let mut commit = vec!["commit-tree", &tree];
        commit.extend(tip.iter().flat_map(|tip| ["-p", tip]));
        let commit = git(&commit, &message)?;
        // The last word is what the ref must be now; empty: it must not be there.
        let before = tip.as_deref().unwrap_or_default();
        let update = ["update-ref", "-m", "hookbus anchor", reference, &commit, before];
        match git(&update, "") {
            Ok(_) => return Ok(Anchored::Added),
            Err(error) if self::tip(repository, reference)? == tip => return Err(error),
            Err(_) => {}
        }
    }
    Err(AnchorError::Busy(place))
}

pub(super) fn read(
    repository: &Path,
    reference: &str,
) -> Result<Vec<Result<SignedCheckpoint, CheckpointError>>, AnchorError> {
    match tip(repository, reference)? {
        Some(tip) => history(repository, &tip, None),
        None => Ok(Vec::new()),
    }
}

/// The commit that the ref names; none if there is no such ref.
fn tip(repository: &Path, reference: &str) -> Result<Option<String>, AnchorError> {
    // Fails if this is no repository, which must not be taken for a repository without the ref.
    git(repository, &["rev-parse", "--git-dir"], "")?;
    let found =
        git(repository, &["for-each-ref", "--format=%(objectname) %(refname)", reference], "")?;
    let exact = found.lines().find_map(|line| line.strip_suffix(reference)?.strip_suffix(' '));
    Ok(exact.map(str::to_owned))
}

/// The checkpoints in the messages of the commits up to `tip`, the oldest first.
fn history(
    repository: &Path,
    tip: &str,
    most: Option<usize>,
) -> Result<Vec<Result<SignedCheckpoint, CheckpointError>>, AnchorError> {
    let limit = most.map(|most| format!("--max-count={most}"));
    let mut arguments = vec!["rev-list", "--first-parent", "--no-commit-header", "--format=%B%x00"];
    arguments.extend(limit.as_deref());
    arguments.push(tip);
    let messages = git(repository, &arguments, "")?;
    let read = |message: &str| {
        let line = message.lines().find(|line| line.starts_with('{'));
        line.map_or(Err(CheckpointError::Malformed), SignedCheckpoint::from_line)
    };
    let mut all: Vec<_> =
        messages.split('\0').filter(|it| !it.trim().is_empty()).map(read).collect();
    all.reverse();
    Ok(all)
}

/// Runs git and returns what it prints.
fn git(repository: &Path, arguments: &[&str], input: &str) -> Result<String, AnchorError> {
    let failed = |message: String| AnchorError::Git {
        command: arguments.first().copied().unwrap_or_default().to_owned(),
        message,
    };
    let mut command = Command::new("git");
    for variable in GIT_VARIABLES {
        command.env_remove(variable);
    }
    for (variable, value) in [
        ("GIT_AUTHOR_NAME", "hookbus"),
        ("GIT_AUTHOR_EMAIL", "hookbus@localhost"),
        ("GIT_COMMITTER_NAME", "hookbus"),
        ("GIT_COMMITTER_EMAIL", "hookbus@localhost"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        // The settings of the repository name the programs that git fetches with, and a ref can name an object that is not
        // there, which git would then fetch. Git before 2.45 knows only the second variable: no way to fetch is allowed.
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_ALLOW_PROTOCOL", ""),
        ("LC_ALL", "C"),
    ] {
        command.env(variable, value);
    }
    // No hook of the repository runs, and what is written is on disk afterwards.
    let settings = ["core.hooksPath=/dev/null", "core.fsmonitor=false", "core.fsync=all"];
    command.arg("-C").arg(repository).args(settings.iter().flat_map(|it| ["-c", it]));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| failed(format!("cannot be started: {error}")))?;
    let output = exchange(child, input).map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.message).trim().to_owned();
        return Err(failed(if message.is_empty() { output.status.to_string() } else { message }));
    }
    Ok(String::from_utf8_lossy(&output.printed).trim_end_matches('\n').to_owned())
}

/// What a git has said.
struct Output {
    status: ExitStatus,
    printed: Vec<u8>,
    message: Vec<u8>,
}

/// Gives git its input and reads what it prints, up to the size that a file of checkpoints may have: the repository may be
/// another user's.
fn exchange(mut child: Child, input: &str) -> io::Result<Output> {
    if let Some(mut stdin) = child.stdin.take() {
        // A git that has failed does not read it, and says why below.
        stdin.write_all(input.as_bytes()).unwrap_or_default();
    }
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let read = thread::scope(|scope| -> io::Result<_> {
        // In a thread of its own: if its messages are not read, git waits, and prints no more.
        let message = spawn_scoped(scope, "git-messages", || read_up_to(stderr, LONGEST_MESSAGE))?;
        let printed = read_up_to(stdout, LARGEST + 1)?;
        if printed.len() as u64 > LARGEST {
            // Otherwise its messages, which are read to their end, would go on.
            child.kill()?;
        }
        let message = message.join().unwrap_or_else(|_| Ok(Vec::new()))?;
        Ok((printed, message))
    });
    // Waited for also if it could not be read from, so that no ended process is left behind.
    let status = child.wait();
    let (printed, message) = read?;
    if printed.len() as u64 > LARGEST {
        let why = "what the ref holds is too large to be checkpoints; name another ref";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(Output { status: status?, printed, message })
}

/// What a pipe holds, up to a number of bytes. The pipe is closed then: a git that prints more is ended by the system.
fn read_up_to(pipe: Option<impl Read>, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(most).read_to_end(&mut content)?;
    }
    Ok(content)
}
