//! A log to keep: what payloads have in common is stored once, logs of earlier versions get smaller by
//! `hookbus compact`, and `hookbus backup` copies one while agents go on. Nothing is lost on the way.

#![expect(clippy::expect_used, reason = "a test that cannot set up its files has failed")]

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use hookbus::event::{Agent, Seq};
use hookbus::log::{LogPath, LogReader, Query, Row};
use hookbus_tests::home::Home;
use hookbus_tests::recording::{query, record, record_after, rows, store_whole};
use serde_json::{Value, json};

/// A session in which each event carries all messages before it, as Hermes sends them.
fn with_history(index: usize) -> (Agent, Value) {
    let message = |at: usize| {
        let words: Vec<String> =
            (0..40).map(|word| format!("word{}", at * 7919 + word * 31)).collect();
        json!({"role": "user", "content": words.join(" ")})
    };
    let history: Vec<Value> = (0..=index).map(message).collect();
    let payload = json!({
        "hook_event_name": "pre_llm_call", "session_id": "long", "cwd": "/srv/shop",
        "extra": {"turn_id": index, "conversation_history": history},
    });
    (Agent::Hermes, payload)
}

fn log_len(home: &Home) -> u64 {
    fs::metadata(home.path().join("log.db")).expect("a log").len()
}

fn packed_rows(home: &Home) -> i64 {
    query(home, "SELECT count(*) FROM events WHERE packed IS NOT NULL")[0]
}

#[test]
fn a_history_that_every_event_repeats_is_stored_once() {
    let home = Home::new();
    record(&home, 60, with_history);
    let payloads: usize = rows(&home).iter().map(|row| row.payload.len()).sum();
    let text: usize = rows(&home).last().map_or(0, |row| row.payload.len());
    assert!(payloads > 20 * text, "{payloads} {text}");
    assert!(log_len(&home) < 3 * text as u64 + 100_000, "{} {text}", log_len(&home));
    // What was sent is what is read, byte for byte.
    for (index, row) in rows(&home).iter().filter(|row| row.agent == "hermes").enumerate() {
        assert_eq!(String::from_utf8_lossy(&row.payload), with_history(index).1.to_string());
    }
    let raw = home.text(&["log", "--seq", "40", "--raw"]);
    let (_, sent) =
        with_history(usize::try_from(seq_of_first(&home)).map_or(0, |first| 40 - first));
    assert_eq!(raw.trim_end(), sent.to_string());
    assert!(home.is_sound());
}

fn seq_of_first(home: &Home) -> i64 {
    rows(home).iter().find(|row| row.agent == "hermes").map_or(0, |row| row.seq.as_i64())
}

#[test]
fn a_log_of_an_earlier_version_gets_small_and_stays_the_same() {
    let home = Home::new();
    record(&home, 60, with_history);
    let before = rows(&home);
    store_whole(&home);
    assert_eq!((rows(&home), packed_rows(&home)), (before.clone(), 0));
    let large = log_len(&home);
    let report = home.json(&["compact", "--json"]);
    assert!(report["packed"].as_u64() > Some(50), "{report}");
    assert!(log_len(&home) < large / 8, "{large} {}", log_len(&home));
    assert_eq!(rows(&home), before);
    assert!(home.is_sound());
    // A second time there is nothing to do, and the next event fits.
    assert_eq!(home.json(&["compact", "--json"])["packed"], 0);
    record_after(&home, 60, 1, with_history);
    assert_eq!(rows(&home).len(), before.len() + 1);
    assert!(home.is_sound());
}

#[test]
fn compacting_can_be_killed_at_any_moment() {
    let home = Home::new();
    record(&home, 250, with_history);
    let before = rows(&home);
    store_whole(&home);
    let mut killed = 0;
    for pause in 0..25 {
        let mut child: Child =
            home.command(["compact"]).stdout(Stdio::null()).spawn().expect("hookbus runs");
        sleep(Duration::from_millis(5 + pause * 12));
        child.kill().expect("a signal");
        killed += usize::from(!child.wait().expect("an end").success());
        assert_eq!(rows(&home), before);
    }
    assert!(killed > 0, "it was never killed");
    assert!(home.is_sound());
    home.text(&["compact"]);
    assert!(packed_rows(&home) > 200);
    assert_eq!(rows(&home), before);
    assert!(home.is_sound());
}

#[test]
fn the_logs_of_earlier_versions_are_migrated_when_they_are_written_to() {
    for version in ["0001", "0002", "0003", "0004"] {
        let home = Home::new();
        fs::create_dir_all(home.path()).expect("a home");
        let corpus = format!("{}/corpus/{version}.db", env!("CARGO_MANIFEST_DIR"));
        fs::copy(corpus, home.path().join("log.db")).expect("a log");
        let before = rows(&home);
        // An old log is read as it is.
        assert!(home.is_sound(), "{version}");
        home.text(&["compact"]);
        record_after(&home, 1, 1, with_history);
        let after = rows(&home);
        assert_eq!(after[..before.len()], before[..], "{version}");
        assert!(after.len() > before.len() && home.is_sound(), "{version}");
    }
}

#[test]
fn a_backup_is_a_log_of_a_moment_and_can_be_put_back() {
    let home = Home::new();
    record(&home, 20, with_history);
    let daemon = home.serve();
    let file = home.work().join("copy.db");
    let copy = file.to_str().expect("a path");
    let head = home.json(&["backup", copy, "--json"])["head"].as_i64().expect("a row");
    // The daemon may record its own start at any moment.
    let until_head = |rows: Vec<Row>| -> Vec<Row> {
        rows.into_iter().filter(|row| row.seq <= Seq::from_i64(head)).collect()
    };
    let before = until_head(rows(&home));
    // It does not overwrite anything.
    let again = home.run(&["backup", copy]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists already"), "{again:?}");
    home.answer("hermes", &with_history(20).1);
    assert!(rows(&home).len() > before.len());
    let busy = home.run(&["restore", copy]);
    assert!(String::from_utf8_lossy(&busy.stderr).contains("hookbus stop"), "{busy:?}");
    home.text(&["stop"]);
    drop(daemon);
    let restored = home.json(&["restore", copy, "--json"]);
    assert_eq!(restored["head"], head);
    // The copy has no write-ahead log yet; a process that keeps the log open needs one.
    home.text(&["compact"]);
    assert_eq!(rows(&home), before);
    assert!(home.is_sound());
    let kept = restored["kept"].as_str().expect("a file");
    let kept = LogReader::open(&LogPath::of_file(kept.as_ref())).expect("the log before");
    assert!(kept.head().expect("a head").is_some_and(|(seq, _)| seq.as_i64() > head));
    // The chain goes on from the restored row.
    home.answer("hermes", &with_history(20).1);
    assert!(home.is_sound());
}

#[test]
fn a_copy_that_is_not_sound_is_restored_on_purpose_only() {
    let home = Home::new();
    record(&home, 5, with_history);
    let file = home.work().join("copy.db");
    let copy = file.to_str().expect("a path");
    home.text(&["backup", copy]);
    let mut bytes = fs::read(&file).expect("a copy");
    let at = bytes.windows(8).position(|it| it == b"pre_llm_").expect("a name");
    bytes[at] = b'P';
    fs::write(&file, bytes).expect("a changed copy");
    let refused = home.run(&["restore", copy]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--unsound"), "{refused:?}");
    assert!(home.is_sound());
    home.text(&["restore", copy, "--unsound"]);
    assert!(!home.is_sound());
}

/// The rows of the logs that were kept in the home.
fn kept(home: &Home) -> Vec<Vec<Row>> {
    let files = fs::read_dir(home.path()).expect("a home").flatten().map(|entry| entry.path());
    let is_log = |name: &str| {
        name.contains("before-restore") && !name.ends_with("-wal") && !name.ends_with("-shm")
    };
    let logs = files.filter(|file| is_log(&file.to_string_lossy()));
    let read = |file: &Path| {
        LogReader::open(&LogPath::of_file(file)).map(|it| it.last(&Query::default(), 1000))
    };
    logs.map(|file| read(&file).expect("a log").expect("rows")).collect()
}

#[test]
fn restoring_can_be_killed_at_any_moment() {
    let home = Home::new();
    record(&home, 20, with_history);
    let file = home.work().join("copy.db");
    let copy = file.to_str().expect("a path");
    home.text(&["backup", copy]);
    let in_copy = rows(&home);
    let (mut killed, mut put_back) = (0, 0);
    for round in 0..20 {
        // Rows in the write-ahead log only.
        home.answer("hermes", &with_history(20 + round).1);
        let before = rows(&home);
        let mut child: Child =
            home.command(["restore", copy]).stdout(Stdio::null()).spawn().expect("hookbus runs");
        sleep(Duration::from_millis(round as u64 * 6));
        child.kill().expect("a signal");
        killed += usize::from(!child.wait().expect("an end").success());
        let now = rows(&home);
        assert!(now == before || now == in_copy, "{round}: {} {}", before.len(), now.len());
        if now != before {
            put_back += 1;
            assert!(kept(&home).contains(&before), "{round}: the rows before are lost");
        }
        assert!(home.is_sound(), "{round}");
    }
    assert!(killed > 0 && put_back > 0, "{killed} {put_back}");
    home.text(&["restore", copy]);
    assert_eq!(rows(&home), in_copy);
    home.answer("hermes", &with_history(50).1);
    assert!(home.is_sound());
}

#[test]
fn a_log_that_was_kept_is_restored_with_what_is_in_its_write_ahead_log() {
    let home = Home::new();
    record(&home, 5, with_history);
    home.answer("hermes", &with_history(5).1);
    let before = rows(&home);
    // As an earlier hookbus kept it, and a restore of a damaged log keeps it.
    let kept = home.work().join("log.db.before-restore-1");
    for end in ["", "-wal"] {
        let to = format!("{}{end}", kept.display());
        fs::copy(home.path().join(format!("log.db{end}")), to).expect("our file");
    }
    assert!(fs::metadata(format!("{}-wal", kept.display())).is_ok_and(|wal| wal.len() > 0));
    for _ in 0..2 {
        home.answer("hermes", &with_history(6).1);
    }
    home.text(&["restore", kept.to_str().expect("a path")]);
    assert_eq!(rows(&home), before);
    assert!(home.is_sound());
}

#[test]
fn an_archive_is_not_put_in_the_place_of_a_log_and_can_be_put_in_that_of_an_archive() {
    let home = Home::new();
    record(&home, 5, with_history);
    let lines = home.work().join("rows.jsonl");
    fs::write(&lines, home.text(&["export"])).expect("a file");
    let archive = home.work().join("archive");
    let (lines, into) = (lines.to_str().expect("a path"), archive.to_str().expect("a path"));
    home.text(&["import", lines, "--into", into]);
    let before = rows(&home);
    let in_archive = archive.join("log.db");
    let copy = in_archive.to_str().expect("a path");
    let refused = home.run(&["restore", copy]);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && text.contains("is an archive") && text.contains("--home"),
        "{text}"
    );
    assert_eq!(rows(&home), before);
    let saved = home.work().join("archive.db");
    let saved = saved.to_str().expect("a path");
    home.text(&["--home", into, "backup", saved]);
    home.text(&["--home", into, "restore", saved]);
}
