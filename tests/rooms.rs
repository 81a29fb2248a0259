//! The rooms of the bus and the arrows between them: `bus/README.md` says which room may use which, and the
//! `use` lines have to agree. No room is in a cycle, and only `sys/` talks to the operating system directly.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Room to the rooms it uses.
type Arrows = BTreeMap<String, BTreeSet<String>>;

fn bus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bus")
}

/// The table under `## Rooms` in the README.
fn documented() -> Arrows {
    let text = fs::read_to_string(bus().join("README.md")).expect("bus/README.md");
    let (_, section) = text.split_once("## Rooms").expect("a section about the rooms");
    let (section, _) = section.split_once("\n## ").expect("another section");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let room: Vec<String> = names(cells[0]);
        (room[0].clone(), names(cells[2]).into_iter().collect())
    })
    .collect()
}

/// Every source file of the bus, without its unit tests, and the room it is in.
fn sources() -> Vec<(String, PathBuf, String)> {
    let source = bus().join("src");
    let mut files = Vec::new();
    let mut folders = vec![source.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.push(path);
            }
        }
    }
    let is_tests = |path: &PathBuf| path.ends_with("tests.rs");
    let of_file = |path: PathBuf| {
        let relative = path.strip_prefix(&source).expect("a file of the bus");
        let first = relative.components().next().expect("a name");
        let room = first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
        let text = fs::read_to_string(&path).expect("a source file");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
        (room, path, code)
    };
    let files = files.into_iter().filter(|path| !is_tests(path)).map(of_file);
    files.filter(|(room, ..)| room != "lib").collect()
}

fn used() -> Arrows {
    let mut arrows = Arrows::new();
    for (room, _, code) in sources() {
        let uses = arrows.entry(room.clone()).or_default();
        for path in code.split("crate::").skip(1) {
            let other: String =
                path.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
            if other != room {
                uses.insert(other);
            }
        }
    }
    arrows
}

#[test]
fn every_room_uses_exactly_the_rooms_that_the_readme_names() {
    let (documented, used) = (documented(), used());
    let rooms: Vec<&String> = documented.keys().collect();
    assert_eq!(rooms, used.keys().collect::<Vec<_>>(), "the rooms in bus/README.md and in bus/src");
    for (room, uses) in &used {
        assert_eq!(uses, &documented[room], "what `{room}` uses, and what bus/README.md says");
    }
}

#[test]
fn control_goes_one_way() {
    let text = fs::read_to_string(bus().join("README.md")).expect("bus/README.md");
    let order = |room: &str| text.find(&format!("\n| `{room}` |")).expect("a room in the table");
    for (room, uses) in used() {
        for other in uses {
            assert!(order(&other) < order(&room), "`{room}` uses `{other}`, which is further down");
        }
    }
}

#[test]
fn only_sys_talks_to_the_operating_system() {
    let direct = ["rustix::", " nix::", "\"/proc", "libc::"];
    for (room, path, code) in sources() {
        // The paths in `shell` are those of the lines that it reads.
        let counts = |it: &&&str| !(room == "shell" && **it == "\"/proc");
        let used: Vec<&&str> =
            direct.iter().filter(counts).filter(|it| code.contains(**it)).collect();
        assert!(room == "sys" || used.is_empty(), "{}: {used:?}", path.display());
    }
}
