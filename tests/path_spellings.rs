//! Spellings of the same files, as a file tool gets them: `under` and `outside` mean the file, not its spelling. The
//! table was made by asking the kernel which file it opens.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hookbus::active::{ActiveHooks, HookSets};
use hookbus::caller::Caller;
use hookbus::config::HooksFile;
use hookbus::decide::{plan, run_rules};
use hookbus::dialect::{Arrival, decode};
use hookbus::event::{Agent, Event, EventId, Time, Wire};
use hookbus::rule::{Facts, Place, ShellLines};
use saphyr::{LoadableYamlNode, Yaml};
use serde_json::json;

/// The directories that the table speaks of.
struct Fixture {
    _folder: tempfile::TempDir,
    project: PathBuf,
    home: PathBuf,
    out: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a real path");
        let (project, home, out) =
            (root.join("a/project"), root.join("b/home"), root.join("c/out"));
        for folder in [project.join("src"), project.join("sub/dir"), project.join(".git")] {
            fs::create_dir_all(folder).expect("a folder");
        }
        for folder in [".ssh", "My Documents", "caf\u{e9}"] {
            fs::create_dir_all(home.join(folder)).expect("a folder");
        }
        fs::create_dir_all(&out).expect("a folder");
        let files = [
            project.join("src/main.rs"),
            project.join(".env"),
            home.join(".ssh/id_rsa"),
            home.join(".bashrc"),
            out.join("secret.txt"),
        ];
        for file in files {
            fs::write(file, "x").expect("a file");
        }
        for (link, target) in [
            (project.join("link-out"), out.clone()),
            (project.join("link-file"), out.join("secret.txt")),
            (project.join("link-home"), home.clone()),
            (project.join("sub/up"), "..".into()),
            (project.join("loop"), "loop".into()),
            (project.join("dangling"), out.join("new.txt")),
            (out.join("back"), project.clone()),
            (project.join("chain"), "link-out/back/link-out".into()),
        ] {
            symlink(target, link).expect("a link");
        }
        Self { _folder: folder, project, home, out }
    }

    fn fill(&self, text: &str) -> String {
        let parent = |path: &Path| path.parent().expect("a parent").display().to_string();
        text.replace("@PROJECT_PARENT@", &parent(&self.project))
            .replace("@HOME_PARENT@", &parent(&self.home))
            .replace("@OUT_PARENT@", &parent(&self.out))
            .replace("@PROJECT@", &self.project.display().to_string())
            .replace("@HOME@", &self.home.display().to_string())
            .replace("@OUT@", &self.out.display().to_string())
    }

    fn caller(&self) -> Caller {
        let env = vec![("HOME".into(), self.home.clone().into())];
        Caller { cwd: self.project.clone(), env, ..Caller::default() }
    }
}

struct Spelling {
    path: String,
    cwd: String,
    is: Option<String>,
}

fn table(fixture: &Fixture) -> Vec<Spelling> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("shell_lines/paths.yaml");
    let text = fs::read_to_string(file).expect("the table");
    let documents = Yaml::load_from_str(&text).expect("YAML");
    let rows = documents[0].as_vec().expect("a list").iter().map(|row| {
        let get = |key: &str| row.as_mapping_get(key).and_then(|value| value.as_str());
        Spelling {
            path: fixture.fill(get("path").expect("a path")),
            cwd: fixture.fill(get("cwd").unwrap_or("@PROJECT@")),
            is: get("is").map(|is| fixture.fill(is)),
        }
    });
    rows.collect()
}

fn write_file(path: &str, cwd: &str) -> Event {
    let payload = json!({
        "hook_event_name": "BeforeTool",
        "session_id": "spellings",
        "cwd": cwd,
        "tool_name": "write_file",
        "tool_input": {"file_path": path, "content": ""},
    });
    let at = Time::from_micros(1);
    let (id, raw) = (EventId::mint(at), payload.to_string().into_bytes());
    decode(Arrival {
        id,
        at,
        agent: Agent::Gemini,
        wire: Wire::Shell,
        raw: raw.into(),
        session_hint: None,
    })
}

#[test]
fn a_path_is_the_file_that_the_kernel_would_open() {
    let fixture = Fixture::new();
    let rows = table(&fixture);
    assert!(rows.len() >= 100);
    let mut wrong = Vec::new();
    for Spelling { path, cwd, is } in &rows {
        let event = write_file(path, cwd);
        let place = Place::of_call(&event, &fixture.caller(), Path::new("/none"));
        let lines = ShellLines::default();
        let facts = Facts::new(&event, &place, &lines);
        let found = facts.files()[0].path().map(|path| path.display().to_string());
        if found != *is {
            wrong.push(format!("{path} in {cwd}: {found:?}, not {is:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn under_and_outside_hold_for_the_file_and_not_for_its_spelling() {
    let fixture = Fixture::new();
    let policy = fixture.fill(
        "hooks:\n  tool.before:\n\
         \x20   - { name: under, rule: { when: { path: { under: '@OUT@' } }, block: x } }\n\
         \x20   - { name: outside, rule: { when: { path: { outside: $project } }, block: x } }\n\
         \x20   - { name: home, rule: { when: { path: { under: ~/.ssh } }, block: x } }\n",
    );
    let file = HooksFile::parse(&policy, Path::new("/none")).expect("hooks");
    let hooks = HookSets::own(Arc::new(ActiveHooks::for_replay(file)));
    for Spelling { path, cwd, is } in table(&fixture) {
        let Some(is) = is else { continue };
        let event = write_file(&path, &cwd);
        let place = Place::of_call(&event, &fixture.caller(), Path::new("/none"));
        let lines = ShellLines::default();
        let results =
            run_rules(&plan(&event, &hooks), &Facts::new(&event, &place, &lines), Duration::MAX);
        let said: Vec<&str> = results.iter().map(|it| it.record().hook.as_str()).collect();
        let is_in = |folder: &Path| Path::new(&is).starts_with(folder);
        // The project is the one that the working directory is in.
        let expected = [
            ("under", is_in(&fixture.out)),
            ("outside", !is_in(&place.project)),
            ("home", is_in(&fixture.home.join(".ssh"))),
        ];
        let expected: Vec<&str> =
            expected.iter().filter(|(_, holds)| *holds).map(|(name, _)| *name).collect();
        assert_eq!(said, expected, "{path} in {cwd} is {is}");
    }
}
