//! Refuses to wire an agent to a home or a program under a temporary directory. Every program on the machine can create
//! files there, and the system removes them: another program could put its own policy, or its own `hookbus`, in place of
//! the one that was wired.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::files;

/// Temporary directories of Linux and macOS.
const TEMPORARY: [&str; 7] = [
    "/tmp",
    "/var/tmp",
    "/usr/tmp",
    "/dev/shm",
    "/run/shm",
    "/private/var/folders",
    "/var/folders",
];

/// Fails if the home of hookbus or the program is under a temporary directory, unless the user has allowed it.
pub(super) fn refuse_temporary(home: &Path, program: &Path, allowed: bool) -> Result<()> {
    if allowed {
        return Ok(());
    }
    // `$TMPDIR` can only add a directory here, so a wrong value makes `connect` refuse, never agree.
    let all = TEMPORARY.iter().map(PathBuf::from).chain([std::env::temp_dir()]);
    let all: Vec<PathBuf> = all.map(|folder| files::canonical(&folder)).collect();
    if let Some(folder) = containing(&all, home) {
        bail!(
            "the home {} is in the temporary directory {}, where another program could replace it, and with it your \
             hooks and the log; name a home elsewhere (`hookbus --home DIR connect …`), or pass \
             --allow-temporary-home to wire this one all the same",
            home.display(),
            folder.display()
        );
    }
    if let Some(folder) = containing(&all, program) {
        bail!(
            "this program is {}, in the temporary directory {}, where another program could replace it, and agents \
             would run that; install hookbus elsewhere and run `connect` from there, or pass --allow-temporary-home \
             to wire this one all the same",
            program.display(),
            folder.display()
        );
    }
    Ok(())
}

/// The temporary directory that holds `path`, once links are resolved.
fn containing<'a>(temporary: &'a [PathBuf], path: &Path) -> Option<&'a Path> {
    let resolved = files::canonical(path);
    temporary.iter().map(PathBuf::as_path).find(|folder| resolved.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn refused(home: &str, program: &str) -> String {
        let refused = refuse_temporary(Path::new(home), Path::new(program), false);
        refused.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_temporary_home_or_program_is_refused_unless_the_user_allows_it() {
        assert_eq!(refused("/srv/nowhere/home", "/usr/bin/hookbus"), "");
        let why = refused("/var/tmp/home", "/usr/bin/hookbus");
        assert!(why.starts_with("the home /var/tmp/home is in the temporary directory"), "{why}");
        let why = refused("/srv/nowhere/home", "/dev/shm/hookbus");
        assert!(why.starts_with("this program is /dev/shm/hookbus, in the temporary"), "{why}");
        let allowed =
            refuse_temporary(Path::new("/var/tmp/home"), Path::new("/dev/shm/hookbus"), true);
        assert!(allowed.is_ok());
    }

    #[test]
    fn a_link_into_a_temporary_directory_is_followed_also_to_what_does_not_exist_yet() {
        let (outside, temporary) = (tempfile::tempdir(), tempfile::tempdir());
        let (outside, temporary) = (outside.expect("a folder"), temporary.expect("a folder"));
        let link = outside.path().join("link");
        symlink(temporary.path(), &link).expect("a link");
        let all = [files::canonical(temporary.path())];
        assert_eq!(containing(&all, &link.join("not/yet")), Some(all[0].as_path()));
        assert_eq!(containing(&all, outside.path()), None);
    }
}
