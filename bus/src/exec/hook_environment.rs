//! The environment that a hook runs with: the agent's, without what changes a program (`stripped_variables.rs`), with
//! the user's own `PATH` and home directory, and with what the entry wants as the agent has it (`pass_env`).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::script::is_path;
use super::stripped_variables::is_stripped;
use super::user_environment::UserEnvironment;
use crate::caller::Caller;

/// `agent` as its hooks get it. `home` is that of the bus; an entry wants the variables in `pass` as the agent has
/// them.
pub fn hook_caller(
    agent: &Caller,
    user: &UserEnvironment,
    home: Option<&Path>,
    pass: &[String],
) -> Caller {
    let is_passed = |name: &OsStr| pass.iter().any(|passed| name == passed.as_str());
    let is_own = |name: &OsStr| name == "PATH" || name == "HOME";
    let stays = |(name, _): &&(OsString, OsString)| {
        is_passed(name) || !is_own(name) && !is_stripped(name.as_bytes()) && !is_function(name)
    };
    let env = agent.env.iter().filter(stays).cloned().collect();
    let mut caller = Caller { env, cwd: agent.cwd.clone(), pid: agent.pid, wire: agent.wire };
    let mut set = |name: &str, value: Option<&OsStr>| {
        if let Some(value) = value.filter(|_| !is_passed(OsStr::new(name))) {
            caller.set_var(name, value);
        }
    };
    set("PATH", Some(&user.path));
    set("HOME", user.home.as_deref());
    set("HOOKBUS_HOME", home.map(Path::as_os_str));
    caller
}

/// Whether a variable is a function that another shell exported. Its name cannot be that of a plain variable.
fn is_function(name: &OsStr) -> bool {
    name.as_bytes().ends_with(b"()")
}

/// The file of a program: a bare name is looked up on the `PATH` that its entry sets in `env`, else on that of
/// `caller`, and nowhere else. None if it is not there.
pub fn find_program(program: &OsStr, env: &[(String, String)], caller: &Caller) -> Option<PathBuf> {
    if program.is_empty() {
        return None;
    }
    if is_path(program) {
        return Some(program.into());
    }
    let set = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| OsStr::new(path));
    let path = set.or_else(|| caller.var("PATH"))?;
    // An empty or relative entry would mean the working directory.
    let mut folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.find_map(|folder| Some(folder.join(program)).filter(|file| is_executable(file)))
}

fn is_executable(file: &Path) -> bool {
    let metadata = std::fs::metadata(file);
    metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(env: &[(&str, &str)]) -> Caller {
        let env = env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Caller { env: env.collect(), cwd: "/repo".into(), pid: Some(7), ..Caller::default() }
    }

    fn user() -> UserEnvironment {
        UserEnvironment {
            path: "/usr/bin".into(),
            home: Some("/home/me".into()),
            is_recorded: true,
        }
    }

    #[test]
    fn a_hook_gets_the_users_own_path_and_home_and_nothing_that_changes_programs() {
        let agent = agent(&[
            ("PATH", "/repo/bin:/usr/bin"),
            ("HOME", "/repo"),
            ("LD_PRELOAD", "/repo/x.so"),
            ("HOOKBUS_HOME", "/repo/.hb"),
            ("BASH_FUNC_ls%%", "() { :; }"),
            ("ls()", "() { :; }"),
            ("VIRTUAL_ENV", "/repo/.venv"),
        ]);
        let caller = hook_caller(&agent, &user(), Some(Path::new("/h")), &[]);
        let var = |name: &str| caller.var(name).map(|value| value.to_string_lossy().into_owned());
        assert_eq!(var("PATH").as_deref(), Some("/usr/bin"));
        assert_eq!(var("HOME").as_deref(), Some("/home/me"));
        assert_eq!(var("HOOKBUS_HOME").as_deref(), Some("/h"));
        assert_eq!(var("VIRTUAL_ENV").as_deref(), Some("/repo/.venv"));
        assert_eq!(caller.env.len(), 4, "{:?}", caller.env);
        assert_eq!((caller.cwd, caller.pid), (agent.cwd.clone(), agent.pid));
    }

    #[test]
    fn an_entry_gets_what_it_names_as_the_agent_has_it() {
        let agent = agent(&[("PATH", "/repo/bin"), ("PYTHONPATH", "/repo"), ("LD_PRELOAD", "x")]);
        let pass = ["PATH".to_owned(), "PYTHONPATH".to_owned(), "UNSET".to_owned()];
        let caller = hook_caller(&agent, &user(), None, &pass);
        assert_eq!(caller.var("PATH"), Some(OsStr::new("/repo/bin")));
        assert_eq!(caller.var("PYTHONPATH"), Some(OsStr::new("/repo")));
        assert_eq!(caller.var("LD_PRELOAD"), None);
        assert_eq!(caller.var("UNSET"), None);
    }

    #[test]
    fn a_bare_name_is_found_on_the_path_only() {
        let folder = tempfile::tempdir().expect("a directory");
        let program = folder.path().join("guard");
        std::fs::write(&program, "").expect("a file");
        let path = folder.path().to_string_lossy().into_owned();
        let caller =
            Caller { cwd: folder.path().into(), ..agent(&[("PATH", &format!(":.:{path}"))]) };
        let found = || find_program(OsStr::new("guard"), &[], &caller);
        assert_eq!(found(), None, "it is not executable");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        assert_eq!(found(), Some(program));
        let elsewhere = Caller { env: vec![("PATH".into(), "".into())], ..caller.clone() };
        assert_eq!(find_program(OsStr::new("guard"), &[], &elsewhere), None);
        assert_eq!(find_program(OsStr::new("./guard"), &[], &elsewhere), Some("./guard".into()));
        let set = [("PATH".to_owned(), path)];
        assert!(find_program(OsStr::new("guard"), &set, &elsewhere).is_some(), "the entry's PATH");
    }
}
