//! The documents: every example runs, every link leads somewhere, the reference of the commands is up to date, and
//! completions and man pages are what a shell and `man` can read.

#![expect(clippy::expect_used, reason = "a test that cannot set up its files has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::thread;

use hookbus_tests::docs::{Walkthrough, anchors, blocks, links};
use hookbus_tests::home::{Home, feed};
use hookbus_tests::payloads;
use serde_json::Value;

/// Where the examples of a document need something in the home that the document does not write itself.
const PREPARED: [(&str, &str); 3] = [
    ("cli/docs/keeping.md", "hookbus --home ~/.hookbus demo"),
    (
        "subscribers/README.md",
        "mkdir -p ~/.hermes/plugins/scribe && cd ~/.hermes/plugins/scribe && \
         echo 'name: scribe' > plugin.yaml && echo 'def register(ctx): pass' > __init__.py && cd",
    ),
    (
        "replay/README.md",
        "hookbus --home ~/.hookbus demo && cp ~/.hookbus/hookbus.yaml policy.yaml && mkdir tests && \
         hookbus replay --check --update last --hooks policy.yaml --expect tests/policy.jsonl",
    ),
];

/// Documents for users; the examples in them are run.
fn for_users() -> Vec<PathBuf> {
    let named = ["README.md", "cli/README.md", "subscribers/README.md", "replay/README.md"];
    let folders = ["cli/docs", "subscribers/docs"];
    named.iter().map(PathBuf::from).chain(folders.into_iter().flat_map(markdown_in)).collect()
}

/// All documents; the links in them are followed.
fn all_documents() -> Vec<PathBuf> {
    let folders = [
        ".",
        "bus",
        "cli",
        "cli/docs",
        "subscribers",
        "subscribers/docs",
        "replay",
        "tests",
        "tests/corpus",
    ];
    folders.into_iter().flat_map(markdown_in).collect()
}

fn markdown_in(folder: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(root().join(folder)).expect("a directory of documents");
    let names = files.map(|file| file.expect("a readable directory").file_name());
    let mut documents: Vec<PathBuf> = names
        .map(|name| Path::new(folder).join(name))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    documents.sort();
    documents
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(document: &Path) -> String {
    fs::read_to_string(root().join(document)).expect("a readable document")
}

/// What is wrong with the examples of a document.
fn wrong_examples(document: &Path) -> Vec<String> {
    let walk = Walkthrough::default();
    for (_, command) in PREPARED.iter().filter(|(path, _)| Path::new(path) == document) {
        walk.prepare(command);
    }
    let problems = walk.follow(&read(document));
    problems.into_iter().map(|problem| format!("{}, {problem}", document.display())).collect()
}

/// Without `.` and `..`, so that two ways to one file are the same path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[test]
fn every_example_runs_as_it_is_shown() {
    let documents = for_users();
    let problems: Vec<String> = thread::scope(|scope| {
        let walks: Vec<_> =
            documents.iter().map(|document| scope.spawn(|| wrong_examples(document))).collect();
        walks.into_iter().flat_map(|walk| walk.join().expect("a walk ends")).collect()
    });
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn a_wrong_example_is_found() {
    for (document, why) in [
        ("```yaml\nhooks: { tool.before: [{ comand: x }] }\n```\n", "did you mean `command`"),
        ("```yaml\nhooks: { tool.bevore: [{ rule: { block: x } }] }\n```\n", "tool.bevore"),
        ("```yaml\nhooks: [\n```\n", "line 1"),
        ("```yaml title=~/other.yaml\na: [\n```\n", "line 1"),
        ("```json\n{\"a\": }\n```\n", "line 1"),
        ("```python\nif:\n```\n", "SyntaxError"),
        ("```console\n$ hookbus no-such-verb\n```\n", "ended with Some(1), not Some(0)"),
        ("```console\n$ true\n$ hookbus sessions --no-such-flag\n$ true\n```\n", "line 3"),
        ("```console exit=1\n$ hookbus hooks list\n```\n", "ended with Some(0), not Some(1)"),
        ("```console\n$ echo it\nthat\n```\n", "prints\nit\n"),
        ("```console\n$ export A=b\n$ cd /\n$ echo $A in $PWD\nb in ~\n```\n", "prints\nb in /\n"),
    ] {
        let problems = Walkthrough::default().follow(document);
        assert_eq!(problems.len(), 1, "{document}: {problems:?}");
        assert!(problems[0].contains(why), "{document}: {problems:?}");
    }
    let fine = "```yaml title=~/.hookbus/hookbus.yaml\nhooks: { turn.start: [{ name: a, rule: { context: b } }] }\n```\n\
                ```console\n$ hookbus hooks list\nturn.start … a … rule\n```\n\
                ```console no-run: needs Hermes\n$ hermes\n```\n";
    assert_eq!(Walkthrough::default().follow(fine), Vec::<String>::new());
}

#[test]
fn the_settings_for_an_agent_name_events_that_it_really_sends() {
    for (agent, is_complete) in [("codex", true), ("claude", false)] {
        let document = read(&Path::new("cli/docs").join(format!("{agent}.md")));
        let settings = blocks(&document).into_iter().find(|block| block.language == "json");
        let settings: Value =
            serde_json::from_str(&settings.expect("an example").text).expect("JSON");
        let hooks = settings["hooks"].as_object().expect("hooks by event");
        let named: BTreeSet<&str> = hooks.keys().map(String::as_str).collect();
        let payloads = payloads::all();
        let sent: BTreeSet<&str> = payloads
            .iter()
            .filter(|(sender, ..)| sender == agent)
            .filter_map(|(_, file, _)| file.split('.').next())
            .collect();
        assert!(named.is_subset(&sent), "{agent}: {named:?} {sent:?}");
        assert!(!is_complete || named == sent, "{agent}: {named:?} {sent:?}");
        for entries in hooks.values() {
            assert_eq!(entries[0]["hooks"][0]["command"], format!("hookbus hook {agent}"));
        }
    }
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut problems = Vec::new();
    for document in all_documents() {
        let text = read(&document);
        let folder = document.parent().expect("a file is in a directory");
        for link in links(&text) {
            let target = plain(&if link.path.is_empty() {
                document.clone()
            } else {
                folder.join(&link.path)
            });
            let place = format!("{}, line {}", document.display(), link.line);
            if !root().join(&target).exists() {
                problems.push(format!("{place}: there is no {}", target.display()));
            } else if let Some(anchor) = &link.anchor
                && !anchors(&read(&target)).contains(anchor)
            {
                problems.push(format!("{place}: {} has no heading #{anchor}", target.display()));
            }
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn the_reference_of_the_commands_is_what_the_command_line_says() {
    let file = root().join("cli/docs/commands.md");
    let now = Home::new().text(&["man", "--markdown"]);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &now).expect("the reference is written");
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == now,
        "cli/docs/commands.md is out of date: run `UPDATE_DOCS=1 tests/run -E 'binary(docs)'`"
    );
}

#[test]
fn every_command_has_a_man_page() {
    let home = Home::new();
    let pages = home.work().join("man1");
    let told = home.json(&["man", "--out", &pages.to_string_lossy(), "--json"]);
    let files: Vec<PathBuf> =
        fs::read_dir(&pages).expect("the pages").map(|file| file.expect("a page").path()).collect();
    assert_eq!(told["pages"], files.len());
    let reference = read(Path::new("cli/docs/commands.md"));
    for command in reference.lines().filter_map(|line| line.strip_prefix("## ")) {
        let page = pages.join(format!("{}.1", command.replace(' ', "-")));
        let text = fs::read_to_string(&page).expect(command);
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{command}");
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        assert_eq!(home.text(&[&["man"], words.as_slice()].concat()), text, "{command}");
    }
    let wrong = home.run(&["man", "hooks", "tset"]);
    assert!(
        String::from_utf8_lossy(&wrong.stderr).contains("there is no command `hookbus hooks tset`")
    );
    assert_eq!(wrong.status.code(), Some(1));
}

#[test]
fn every_shell_gets_a_completion_script() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.text(&["completions", shell]);
        for word in ["sessions", "approve", "as-recorded"] {
            assert!(script.contains(word), "{shell} does not complete {word}");
        }
    }
    // What bash completes after `hookbus hooks a`.
    let script = home.text(&["completions", "bash"]);
    let ask = "COMP_WORDS=(hookbus hooks a); COMP_CWORD=2; _hookbus hookbus a hooks; echo \"${COMPREPLY[@]}\"";
    let mut bash = std::process::Command::new("bash");
    bash.arg("-c").arg(format!("{script}\n{ask}"));
    assert_eq!(feed(bash, b"").stdout.trim(), "approve");
}
