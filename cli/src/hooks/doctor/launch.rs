//! Checks whether the program of an entry can be started: the program itself, its interpreter, and the script.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hookbus::caller::Caller;
use hookbus::consent::ApprovalItem;
use hookbus::exec::find_program;

/// Why it cannot be started, if so. `env` is what the entry sets, `caller` what its hook gets.
pub(super) fn problem(
    entry: &ApprovalItem,
    env: &[(String, String)],
    caller: &Caller,
) -> Option<String> {
    let file_of = |program: &OsStr| file_of(program, env, caller);
    let Some(program) = entry.words.first() else {
        return Some(format!("`{}` has a quote that is never closed", entry.command));
    };
    let Some(found) = file_of(program) else {
        let program = program.display();
        return Some(format!("`{program}` does not exist; check the path, or `PATH`"));
    };
    if let Some(script) = entry.missing.first() {
        return Some(format!("`{}` does not exist; check the path", script.display()));
    }
    let mode = fs::metadata(&found).map_or(0, |file| file.permissions().mode());
    if mode & 0o111 == 0 {
        return Some(format!("it is not executable; run `chmod +x {}`", found.display()));
    }
    let start = fs::read(&found).unwrap_or_default();
    let line = String::from_utf8_lossy(&start[..start.len().min(200)])
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    let interpreter =
        line.strip_prefix("#!")?.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let named = match interpreter.as_slice() {
        [env, name, ..] if env.ends_with("/env") => name,
        [name, ..] => name,
        [] => {
            return Some(
                "its first line names no interpreter; start it with `#!/bin/sh` or another one"
                    .to_owned(),
            );
        }
    };
    file_of(named.as_ref()).is_none().then(|| {
        format!("its interpreter `{named}` does not exist; install it, or change the first line")
    })
}

/// The file of a program, by its path or on the `PATH` that hooks get.
fn file_of(program: &OsStr, env: &[(String, String)], caller: &Caller) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return Some(caller.cwd.join(program)).filter(|file| file.is_file());
    }
    find_program(program, env, caller)
}
