//! Signed checkpoints: `hookbus anchor` keeps them in files, git and NATS; `hookbus verify` finds what was done to the log, to the
//! key or to the checkpoints since.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use hookbus_tests::home::{Home, path_text, wait_until};
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::hermes_shell;
use serde_json::{Value, json};

/// Changes a log with SQL as a program of the same user can, and computes all hashes again, so that the chain is sound.
fn rewrite(home: &Home, sql: &str) {
    let program = r"
import hashlib, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
triggers = db.execute('SELECT name, sql FROM sqlite_schema WHERE type = \'trigger\'').fetchall()
for name, _ in triggers: db.execute('DROP TRIGGER ' + name)
db.executescript(sys.argv[2])
number = lambda it: (it or 0).to_bytes(8, 'big')
octets = lambda it: it if isinstance(it, bytes) else (it or '').encode()
before = hashlib.sha256(b'hookbus log 1\0' + db.execute('SELECT id FROM bus').fetchone()[0]).digest()
for row in db.execute('SELECT seq, id, time, cause, agent, name, context, payload FROM events ORDER BY seq').fetchall():
    seq, id, time, cause, agent, name, context, payload = row
    it = before + number(seq) + id + number(time) + number(cause)
    for text in (agent, name, context): it += number(len(octets(text))) + octets(text)
    before = hashlib.sha256(it + hashlib.sha256(octets(payload)).digest()).digest()
    db.execute('UPDATE events SET hash = ? WHERE seq = ?', (before, seq))
for _, sql in triggers: db.execute(sql)
db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
";
    let status = Command::new("python3")
        .args(["-c", program])
        .arg(home.path().join("log.db"))
        .arg(sql)
        .status();
    assert!(status.expect("python3 runs").success(), "{sql}");
}

const CUT: &str = "DELETE FROM events WHERE seq > 3";
const NO_CHECKPOINTS: &str = "DELETE FROM events WHERE kind = 'log.checkpoint'";

/// Adds events to the log.
fn work(home: &Home, count: usize) {
    for number in 1..=count {
        home.answer("hermes", &hermes_shell(&format!("echo {number}")));
    }
}

fn home_with_events() -> Home {
    let home = Home::new();
    work(&home, 5);
    home
}

fn anchor(home: &Home, place: &str) -> Value {
    home.json(&["anchor", "--json", "--to", place])
}

/// The flaws that `verify` finds: kind and seq.
fn flaws(home: &Home, arguments: &[&str]) -> Vec<(String, Option<i64>)> {
    let output = home.run(&[&["verify", "--json"], arguments].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert!(report.is_object(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(report["sound"].as_bool(), Some(output.status.success()), "{report}");
    let listed = report["flaws"].as_array().cloned().unwrap_or_default();
    let kind = |flaw: &Value| flaw["kind"].as_str().unwrap_or_default().to_owned();
    listed.iter().map(|flaw| (kind(flaw), flaw["seq"].as_i64())).collect()
}

fn flaw(kind: &str, seq: i64) -> (String, Option<i64>) {
    (kind.to_owned(), Some(seq))
}

fn failure(home: &Home, arguments: &[&str]) -> String {
    let output = home.run(arguments);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn git(repository: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(repository).args(arguments).output();
    let output = output.expect("git runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// A repository with a commit, a changed file, and a hook that would leave a trace.
fn repository(home: &Home) -> PathBuf {
    let repository = home.work().join("proof");
    fs::create_dir_all(&repository).expect("a directory");
    git(&repository, &["init", "-q", "-b", "main"]);
    fs::write(repository.join("file"), "one").expect("a file");
    git(&repository, &["add", "file"]);
    let author = ["-c", "user.name=me", "-c", "user.email=me@localhost"];
    git(&repository, &[&author[..], &["commit", "-q", "-m", "first"]].concat());
    fs::write(repository.join("file"), "two").expect("a file");
    let hook = repository.join(".git/hooks/reference-transaction");
    fs::write(&hook, format!("#!/bin/sh\ntouch {}/ran\n", path_text(&home.work())))
        .expect("a hook");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a mode");
    repository
}

#[test]
fn a_file_of_checkpoints_shows_rows_that_were_cut_off_and_a_log_that_was_rewritten() {
    for (sql, expected) in [
        (CUT, vec![flaw("truncated", 4)]),
        (
            "UPDATE events SET payload = replace(payload, 'echo 2', 'echo x') WHERE seq = 2",
            // The first one in the log, and the first one in the file.
            vec![flaw("altered", 5), flaw("altered", 5)],
        ),
    ] {
        let home = home_with_events();
        let file = path_text(&home.work().join("proof.jsonl"));
        let first = anchor(&home, &file);
        assert_eq!((&first["row"], &first["checkpoint"]["seq"]), (&json!(6), &json!(5)), "{first}");
        assert_eq!(first["checkpoint"]["rows"], 5);
        work(&home, 2);
        assert_eq!(anchor(&home, &file)["checkpoint"]["seq"], 8);
        assert_eq!(flaws(&home, &["--against", &file]), []);
        let found = home.json(&["verify", "--json", "--against", &file]);
        assert_eq!(found["checkpoints"]["fit"], 2, "{found}");
        assert_eq!(found["checkpoints"]["newest"]["seq"], 8, "{found}");
        rewrite(&home, sql);
        assert_eq!(flaws(&home, &["--against", &file]), expected, "{sql}");
    }
}

#[test]
fn a_log_that_was_rewritten_without_its_checkpoints_is_sound_alone_and_not_beside_the_file() {
    let home = home_with_events();
    let file = path_text(&home.work().join("proof.jsonl"));
    anchor(&home, &file);
    rewrite(&home, &format!("UPDATE events SET payload = '{{}}' WHERE seq = 2; {NO_CHECKPOINTS}"));
    let derived = ("derived".to_owned(), Some(2));
    assert_eq!(flaws(&home, &[]).iter().filter(|flaw| **flaw != derived).count(), 0);
    assert!(flaws(&home, &["--against", &file]).contains(&flaw("altered", 5)));
}

#[test]
fn nothing_new_is_not_signed_again() {
    let home = home_with_events();
    let file = home.work().join("proof.jsonl");
    let first = anchor(&home, &path_text(&file));
    let again = anchor(&home, &path_text(&file));
    assert_eq!((&first["new"], &again["new"]), (&json!(true), &json!(false)));
    assert_eq!(first["checkpoint"], again["checkpoint"]);
    assert_eq!(again["places"][0]["result"], "known");
    assert_eq!(fs::read_to_string(&file).expect("a file").lines().count(), 1);
    assert_eq!(home.log(&["--kind", "log.checkpoint"]).len(), 1);
}

#[test]
fn an_edited_a_foreign_and_a_cut_checkpoint_are_told() {
    let home = home_with_events();
    let file = home.work().join("proof.jsonl");
    let place = path_text(&file);
    anchor(&home, &place);
    let sound = fs::read_to_string(&file).expect("a file");
    for (from, to) in
        [("\"seq\":5", "\"seq\":4"), ("\"rows\":5", "\"rows\":6"), ("\"time\":\"2", "\"time\":\"1")]
    {
        fs::write(&file, sound.replace(from, to)).expect("an edited file");
        assert_ne!(fs::read_to_string(&file).expect("a file"), sound);
        let found = flaws(&home, &["--against", &place]);
        assert!(
            found.iter().all(|(kind, _)| kind == "checkpoint") && found.len() == 1,
            "{to}: {found:?}"
        );
        assert!(failure(&home, &["verify", "--from", &place]).contains("edited or forged"));
    }
    fs::write(&file, format!("{sound}{}", &sound[..100])).expect("a cut file");
    assert_eq!(flaws(&home, &["--against", &place]), [("checkpoint".to_owned(), None)]);
    // Another `hookbus anchor` takes the half line away.
    work(&home, 1);
    anchor(&home, &place);
    assert_eq!(flaws(&home, &["--against", &place]), []);

    let other = home_with_events();
    let foreign = path_text(&other.work().join("foreign.jsonl"));
    anchor(&other, &foreign);
    let found = flaws(&home, &["--against", &foreign]);
    assert_eq!(found, [("replaced".to_owned(), None)], "a checkpoint of another bus");
}

#[test]
fn a_replaced_key_is_told_and_never_used_at_a_place_of_the_old_one() {
    let home = home_with_events();
    let place = path_text(&home.work().join("proof.jsonl"));
    let key = anchor(&home, &place)["checkpoint"]["key"].clone();
    let key = key.as_str().expect("a key");
    fs::remove_file(home.path().join("signing.key")).expect("there is a key");
    let text = failure(&home, &["verify", "--against", &place]);
    assert!(text.contains("--key"), "{text}");
    assert_eq!(flaws(&home, &["--against", &place, "--key", key]), []);
    work(&home, 1);
    // The attacker signs with a key of their own.
    let text = failure(&home, &["anchor", "--to", &place]);
    assert!(text.contains("not the key of this home"), "{text}");
    assert_eq!(flaws(&home, &["--against", &place]), [flaw("checkpoint", 5)]);
    let new = path_text(&home.work().join("new.jsonl"));
    anchor(&home, &new);
    let found = flaws(&home, &["--against", &new, "--key", key]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "checkpoint", "the key that the user wrote down tells");
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let home = home_with_events();
    anchor(&home, &path_text(&home.work().join("proof.jsonl")));
    let key = home.path().join("signing.key");
    let mode = |mode| fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("a mode");
    assert_eq!(fs::metadata(&key).expect("a key").permissions().mode() & 0o777, 0o600);
    for wrong in [0o640, 0o604, 0o622] {
        mode(wrong);
        let text = failure(&home, &["anchor"]);
        assert!(text.contains("chmod"), "{wrong:o}: {text}");
    }
    mode(0o600);
    fs::write(&key, "not a key").expect("a file");
    assert!(failure(&home, &["anchor"]).contains("64 hex digits"));
}

#[test]
fn a_log_that_was_cut_back_is_neither_signed_nor_anchored_over_its_own_past() {
    let home = home_with_events();
    let place = path_text(&home.work().join("proof.jsonl"));
    anchor(&home, &place);
    work(&home, 3);
    anchor(&home, &place);
    rewrite(&home, CUT);
    let text = failure(&home, &["anchor", "--to", &place]);
    assert!(text.contains("row 9") && text.contains("cut off"), "{text}");
    // A user who writes the line by hand is told too.
    let line = home.json(&["anchor", "--json"])["checkpoint"].to_string();
    let file = home.work().join("proof.jsonl");
    let lines = fs::read_to_string(&file).expect("a file");
    fs::write(&file, format!("{lines}{line}\n")).expect("a file");
    let kinds: Vec<String> =
        flaws(&home, &["--against", &place]).into_iter().map(|it| it.0).collect();
    assert!(
        kinds.contains(&"checkpoint".to_owned()) && kinds.contains(&"truncated".to_owned()),
        "{kinds:?}"
    );
}

/// The files in the spool of a home.
fn spooled(home: &Home) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.path().join("spool")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}

#[test]
fn a_checkpoint_that_waited_in_the_spool_is_no_cut() {
    let home = home_with_events();
    let place = path_text(&home.work().join("proof.jsonl"));
    // The log takes no row, so that the checkpoint has to wait.
    let lock = fs::File::open(home.path().join("log.lock")).expect("a lock file");
    lock.lock().expect("the lock");
    let text = failure(&home, &["anchor", "--to", &place]);
    assert!(text.contains("waits in the spool"), "{text}");
    lock.unlock().expect("the lock");
    // It stays there while a later one is signed.
    let [waiting] = spooled(&home).try_into().expect("one file");
    let elsewhere = home.work().join("waiting");
    fs::rename(&waiting, &elsewhere).expect("our file");
    work(&home, 2);
    let later = anchor(&home, &place)["checkpoint"]["seq"].clone();
    fs::rename(&elsewhere, &waiting).expect("our file");
    work(&home, 1);
    let seqs = |home: &Home| -> Vec<i64> {
        let recorded = home.log(&["--kind", "log.checkpoint"]);
        recorded.iter().filter_map(|row| row["payload"]["seq"].as_i64()).collect()
    };
    assert_eq!(seqs(&home), [later.as_i64().expect("a row"), 5]);
    assert_eq!(flaws(&home, &["--against", &place]), []);
    assert_eq!(anchor(&home, &place)["places"][0]["result"], "added");
    assert_eq!(flaws(&home, &["--against", &place]), []);
}

#[test]
fn a_log_that_was_rewritten_is_not_anchored_behind_what_contradicts_it() {
    for (sql, is_same_row) in [
        // The rows stay as many as they were.
        (
            format!(
                "UPDATE events SET payload = '{{}}' WHERE agent = 'hermes' AND seq = 2; {NO_CHECKPOINTS}"
            ),
            true,
        ),
        (
            format!(
                "{NO_CHECKPOINTS}; UPDATE events SET context = '{{}}' WHERE agent = 'hermes' AND seq = 2"
            ),
            false,
        ),
    ] {
        let home = home_with_events();
        let file = home.work().join("proof.jsonl");
        let repository = repository(&home);
        let places = [path_text(&file), format!("git:{}", path_text(&repository))];
        let to = ["anchor", "--to", &places[0], "--to", &places[1]];
        home.text(&to);
        let kept =
            || (fs::read_to_string(&file).expect("a file"), git(&repository, &["for-each-ref"]));
        let before = kept();
        rewrite(&home, &sql);
        // What the reader derives from rows is not in their hash, and would be told first.
        home.text(&["verify", "--repair"]);
        if !is_same_row {
            work(&home, 3);
        }
        let output = home.run(&to);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert_eq!(text.matches("holds another row 5").count(), 2, "{text}");
        assert!(text.contains("hookbus verify --against"), "{text}");
        assert_eq!(kept(), before);
    }
}

/// A repository can name a remote that git asks for objects that are not there, with a program of its choice.
#[test]
fn a_hostile_repository_runs_nothing() {
    let home = home_with_events();
    let repository = repository(&home);
    let ran = home.work().join("ran");
    let bus = home.json(&["anchor", "--json"])["checkpoint"]["bus"].clone();
    let place = format!("git:{}", path_text(&repository));
    let reference = repository.join(".git/refs/hookbus").join(bus.as_str().expect("a bus"));
    fs::create_dir_all(reference.parent().expect("a directory")).expect("a directory");
    let program = format!("touch {}; false", path_text(&ran));
    for url in ["ssh://localhost/x", "ext::sh -c touch% ran", "file:///nowhere"] {
        for (key, value) in [
            ("core.repositoryFormatVersion", "1"),
            ("extensions.partialClone", "origin"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.url", url),
            ("remote.origin.uploadpack", &program),
            ("core.sshCommand", &program),
            ("protocol.allow", "always"),
        ] {
            git(&repository, &["config", key, value]);
        }
        fs::write(&reference, format!("{}\n", "1".repeat(40))).expect("a ref");
        for arguments in [["anchor", "--to", &place], ["verify", "--against", &place]] {
            let output = home.run(&arguments);
            assert!(!output.status.success(), "{url} {arguments:?}");
            assert!(!ran.exists(), "{url} {arguments:?}");
        }
    }
}

#[test]
fn a_ref_with_too_much_in_it_is_refused() {
    let home = home_with_events();
    let repository = repository(&home);
    let bus = home.json(&["anchor", "--json"])["checkpoint"]["bus"].clone();
    let message = path_text(&home.work().join("message"));
    fs::write(&message, "x".repeat(65 << 20)).expect("a file");
    let tree = git(&repository, &["rev-parse", "HEAD^{tree}"]);
    let author = ["-c", "user.name=me", "-c", "user.email=me@localhost"];
    let commit = [&author[..], &["commit-tree", &tree, "-F", &message]].concat();
    let commit = git(&repository, &commit);
    let reference = format!("refs/hookbus/{}", bus.as_str().expect("a bus"));
    git(&repository, &["update-ref", &reference, &commit]);
    let place = format!("git:{}", path_text(&repository));
    for arguments in [["anchor", "--to", &place], ["verify", "--against", &place]] {
        let text = failure(&home, &arguments);
        assert!(text.contains("too large"), "{text}");
    }
}

#[test]
fn a_log_that_is_not_sound_is_not_signed() {
    let home = home_with_events();
    hookbus_tests::recording::damage(&home, &["UPDATE events SET context = '{}' WHERE seq = 3"]);
    assert!(failure(&home, &["anchor"]).contains("nothing is signed"));
    assert_eq!(home.log(&["--kind", "log.checkpoint"]), Vec::<Value>::new());
}

#[test]
fn a_git_ref_gets_a_commit_per_checkpoint_and_nothing_else_changes() {
    let home = home_with_events();
    let repository = repository(&home);
    let place = format!("git:{}", path_text(&repository));
    let state =
        || (git(&repository, &["status", "--porcelain"]), git(&repository, &["rev-parse", "HEAD"]));
    let before = state();
    let bus = anchor(&home, &place)["checkpoint"]["bus"].clone();
    work(&home, 2);
    anchor(&home, &place);
    assert_eq!(anchor(&home, &place)["places"][0]["result"], "known");
    assert_eq!(state(), before);
    assert!(!home.work().join("ran").exists(), "a hook of the repository ran");
    let reference = format!("refs/hookbus/{}", bus.as_str().expect("a bus"));
    assert_eq!(git(&repository, &["rev-list", "--count", &reference]), "2");
    let shown = git(&repository, &["show", &format!("{reference}:checkpoint.json")]);
    let shown: Value = serde_json::from_str(&shown).expect("a checkpoint");
    assert_eq!(shown["seq"], 8);
    assert_eq!(flaws(&home, &["--against", &place]), []);
    assert_eq!(flaws(&home, &["--against", &place, "--from", &place]), []);
    // A ref that holds something else, and a directory that is no repository.
    let text = failure(&home, &["anchor", "--to", &format!("{place}#heads/main")]);
    assert!(text.contains("something else"), "{text}");
    let text = failure(&home, &["anchor", "--to", &format!("git:{}", path_text(&home.path()))]);
    assert!(text.contains("not a git repository"), "{text}");
    assert_eq!(state(), before);
    rewrite(&home, CUT);
    assert_eq!(flaws(&home, &["--against", &place]), [flaw("truncated", 4)]);
}

#[test]
fn a_stream_holds_checkpoints_that_show_a_log_that_was_rewritten() {
    let nats = NatsServer::start();
    let home = Home::with_daemon("running");
    home.write_hooks(&format!("nats: {{ url: \"{}\" }}\n", nats.url()));
    let mut daemon = home.serve();
    work(&home, 4);
    let signed = anchor(&home, "nats");
    assert_eq!(signed["places"][0]["result"], "added", "{signed}");
    let seq = signed["checkpoint"]["seq"].as_i64().expect("a row");
    work(&home, 1);
    wait_until("all rows are published", || {
        home.json(&["status", "--json"])["relay"]["lag_events"] == 0
    });
    daemon.kill();
    let found = home.json(&["verify", "--json", "--against", "nats"]);
    assert_eq!(found["checkpoints"]["fit"], 1, "{found}");
    assert_eq!(found["checkpoints"]["newest"]["seq"], seq, "{found}");
    rewrite(&home, &format!("UPDATE events SET payload = '{{}}' WHERE seq = 3; {NO_CHECKPOINTS}"));
    assert!(flaws(&home, &["--against", "nats"]).contains(&flaw("altered", seq)));
}

#[test]
fn a_stream_without_a_relay_says_why_it_does_not_hold_the_checkpoint() {
    let home = home_with_events();
    let text = failure(&home, &["anchor", "--to", "nats"]);
    assert!(text.contains("no `nats:`"), "{text}");
}

#[test]
fn from_a_checkpoint_only_later_rows_are_checked_and_it_says_so() {
    let home = home_with_events();
    let place = path_text(&home.work().join("proof.jsonl"));
    anchor(&home, &place);
    work(&home, 4);
    for from in ["last", &place] {
        let found = home.json(&["verify", "--json", "--from", from]);
        assert_eq!(
            (&found["rows"], &found["first"], &found["from"]["seq"]),
            (&json!(5), &json!(6), &json!(5))
        );
        let text = home.text(&["verify", "--from", from]);
        assert!(text.contains("not checked: rows 1 to 5"), "{text}");
    }
    let damage = |sql: &str| hookbus_tests::recording::damage(&home, &[sql]);
    damage("UPDATE events SET context = '{}' WHERE seq = 8");
    assert!(flaws(&home, &["--from", &place]).contains(&flaw("altered", 8)));
    damage("UPDATE events SET context = NULL WHERE seq = 8");
    damage("UPDATE events SET context = '{}' WHERE seq = 2");
    assert!(!flaws(&home, &["--from", "last"]).contains(&flaw("altered", 2)));
    assert!(flaws(&home, &[]).contains(&flaw("altered", 2)));
    damage("UPDATE events SET hash = zeroblob(32) WHERE seq = 5");
    assert!(failure(&home, &["verify", "--from", "last"]).contains("row 5 is not there as it was"));
}

#[test]
fn checkpoints_count_across_what_was_pruned() {
    let home = home_with_events();
    let place = path_text(&home.work().join("proof.jsonl"));
    anchor(&home, &place);
    let mut later = hermes_shell("echo later");
    later["session_id"] = json!("another");
    home.answer("hermes", &later);
    home.run(&["prune", "--rows", "--yes", "--kind", "tool.before", "--older-than", "2100-01-01"]);
    assert_eq!(flaws(&home, &["--against", &place]), []);
    assert_eq!(anchor(&home, &place)["places"][0]["result"], "added");
    assert_eq!(flaws(&home, &["--against", &place, "--from", "last"]), []);
}

#[test]
fn a_killed_anchor_leaves_whole_lines_and_whole_commits() {
    let home = home_with_events();
    let file = path_text(&home.work().join("proof.jsonl"));
    let repository = repository(&home);
    let git_place = format!("git:{}", path_text(&repository));
    for round in 0..12 {
        work(&home, 1);
        let mut anchor = home
            .command(["anchor", "--to", &file, "--to", &git_place])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("hookbus starts");
        sleep(Duration::from_millis(round * 12));
        anchor.kill().expect("it is ours");
        anchor.wait().expect("it has ended");
    }
    work(&home, 1);
    // A git that was killed may have left its lock beside the ref.
    let locks = Command::new("find").arg(&repository).args(["-name", "*.lock", "-delete"]).status();
    assert!(locks.expect("find runs").success());
    let done = home.json(&["anchor", "--json", "--to", &file, "--to", &git_place]);
    assert_eq!(
        (&done["places"][0]["result"], &done["places"][1]["result"]),
        (&json!("added"), &json!("added")),
        "{done}"
    );
    assert_eq!(flaws(&home, &["--against", &file]), []);
    assert_eq!(flaws(&home, &["--against", &git_place]), []);
}
