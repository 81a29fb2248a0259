//! The relay: every row of the log is in the stream once and in log order, even if processes are killed,
//! and agents never wait for it.

#![expect(clippy::expect_used, reason = "a failed setup fails the test")]

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use futures_util::StreamExt;
use hookbus::envelope;
use hookbus::event::payload_digest;
use hookbus::log::{LogPath, LogReader, Received, row_hash};
use hookbus_tests::accounts::Accounts;
use hookbus_tests::home::{Home, feed, wait_until};
use hookbus_tests::nats::{NatsServer, Published, Version, python_client};
use hookbus_tests::payloads::{self, hermes_shell};
use serde_json::{Value, json};

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

fn home_with(server: &NatsServer) -> Home {
    let home = Home::with_daemon("running");
    home.write_hooks(&format!("nats: {{url: \"{}\"}}\n{GUARD}", server.url()));
    home
}

/// The relay's state in `hookbus status --json`.
fn relay_state(home: &Home) -> Value {
    let status = home.run(&["status", "--json"]);
    serde_json::from_slice::<Value>(&status.stdout).expect("JSON")["relay"].clone()
}

fn wait_until_caught_up(home: &Home) {
    wait_until("the relay has published everything", || {
        let state = relay_state(home);
        let rows = home.log(&["-n", "1"])[0]["seq"].clone();
        state["phase"] == "publishing" && state["published"] == rows
    });
}

/// Starts clients with sixty calls each; every call must be answered.
fn start_clients(home: &Arc<Home>, clients: usize) -> Vec<thread::JoinHandle<()>> {
    let client = |client: usize| {
        let home = Arc::clone(home);
        thread::spawn(move || {
            for round in 0..60 {
                let answer = home.answer("hermes", &hermes_shell(&format!("rm {client}-{round}")));
                assert_eq!(answer["reason"], "guarded (hookbus rule tool.before#1)");
            }
        })
    };
    (0..clients).map(client).collect()
}

/// Asserts that the stream holds each row of the log once, in order, with its hash.
fn assert_holds_log(home: &Home, published: &[Published]) {
    let rows = home.log(&[]);
    let logged: Vec<(i64, String)> = rows
        .iter()
        .map(|row| {
            (row["seq"].as_i64().expect("a seq"), row["hash"].as_str().expect("a hash").to_owned())
        })
        .collect();
    let streamed: Vec<(i64, String)> =
        published.iter().map(|message| (message.seq, message.hash.clone())).collect();
    assert_eq!(streamed, logged);
}

#[test]
fn every_row_is_published_once_in_order_and_unchanged() {
    let server = NatsServer::start();
    let home = home_with(&server);
    let _daemon = home.serve();
    for (agent, _, bytes) in payloads::all().iter().filter(|(agent, ..)| agent == "gemini") {
        home.hook(agent, bytes);
    }
    home.hook("hermes", b"\xff not text");
    home.hook("hermes", hermes_shell("rm x").to_string());
    wait_until_caught_up(&home);
    let published = server.published();
    assert_holds_log(&home, &published);
    let rows = home.log(&[]);
    for (message, row) in published.iter().zip(&rows) {
        let envelope = message.envelope();
        assert_eq!((&envelope["specversion"], &envelope["id"]), (&json!("1.0"), &row["id"]));
        assert_eq!(message.id.as_deref(), row["id"].as_str());
        assert_eq!(
            envelope["type"],
            json!(format!("hookbus.{}", row["kind"].as_str().expect("a kind")))
        );
        assert_eq!((&envelope["time"], &envelope["subject"]), (&row["time"], &row["session"]));
        let raw = home.run(&["log", "--seq", &message.seq.to_string(), "--raw"]).stdout;
        if envelope.get("data").is_some() {
            let value = raw.trim_ascii();
            let inside = message.body.windows(value.len()).any(|window| window == value);
            assert!(inside, "the envelope contains the payload byte for byte");
            let read = envelope::read(&message.body).expect("an envelope");
            assert_eq!(read.row.payload, raw, "with the white space around it");
        } else {
            assert_eq!(envelope["data_base64"], "/yBub3QgdGV4dA==");
        }
    }
}

#[test]
fn a_server_that_starts_later_gets_every_row() {
    let mut server = NatsServer::prepare(&[]);
    let home = home_with(&server);
    let _daemon = home.serve();
    for _ in 0..5 {
        assert_eq!(
            home.answer("hermes", &hermes_shell("rm x"))["reason"],
            "guarded (hookbus rule tool.before#1)"
        );
    }
    wait_until("the status shows the error", || relay_state(&home)["error"].is_string());
    assert_eq!(relay_state(&home)["connected"], false);
    assert_eq!(relay_state(&home)["lag_events"], home.log(&[]).len());
    server.run();
    wait_until_caught_up(&home);
    assert_holds_log(&home, &server.published());
}

#[test]
fn rows_that_clients_append_without_the_daemon_are_published_too() {
    let server = NatsServer::start();
    let home = home_with(&server);
    let _daemon = home.serve();
    let mut alone = home.command(["hook", "hermes"]);
    alone.env("HOOKBUS_DAEMON", "off");
    feed(alone, hermes_shell("ls").to_string().as_bytes());
    wait_until_caught_up(&home);
    assert_holds_log(&home, &server.published());
}

/// Eight clients send events while the server and the daemon are killed repeatedly.
fn survives_repeated_kills(mut server: NatsServer) {
    let home = Arc::new(home_with(&server));
    let done = Arc::new(AtomicBool::new(false));
    let clients = start_clients(&home, 8);
    let daemons = {
        let (home, done) = (Arc::clone(&home), Arc::clone(&done));
        thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let mut daemon = home.serve();
                thread::sleep(Duration::from_millis(700));
                daemon.kill();
            }
        })
    };
    for round in 0..6 {
        thread::sleep(Duration::from_millis(250 + 130 * (round % 3)));
        server.kill();
        thread::sleep(Duration::from_millis(100));
        server.run();
    }
    for client in clients {
        client.join().expect("no client fails");
    }
    done.store(true, Ordering::Relaxed);
    daemons.join().expect("the killing thread ends");
    let _daemon = home.serve();
    wait_until_caught_up(&home);
    assert_holds_log(&home, &server.published());
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 480);
}

#[test]
fn the_stream_equals_the_log_after_both_sides_were_killed_repeatedly_under_load() {
    survives_repeated_kills(NatsServer::start());
}

#[test]
fn a_server_without_atomic_batches_gets_every_row_one_by_one() {
    survives_repeated_kills(NatsServer::start_version(Version::V2_11));
}

#[test]
fn a_server_that_can_only_check_the_whole_stream_gets_every_row_one_by_one() {
    survives_repeated_kills(NatsServer::start_version(Version::V2_10));
}

#[test]
fn several_buses_can_share_a_server_of_any_version() {
    for version in [Version::Newest, Version::V2_11, Version::V2_10] {
        let server = NatsServer::start_version(version);
        let homes = [(); 3].map(|()| Arc::new(home_with(&server)));
        let daemons = homes.each_ref().map(|home| home.serve());
        let clients: Vec<_> = homes.iter().flat_map(|home| start_clients(home, 1)).collect();
        for client in clients {
            client.join().expect("no client fails");
        }
        for home in &homes {
            wait_until_caught_up(home);
        }
        let published = server.published();
        for home in &homes {
            let log = LogReader::open(&LogPath::in_home(&home.path())).expect("a log");
            let prefix = format!("hookbus.{}.", log.bus().expect("a bus"));
            let own = published.iter().filter(|message| message.subject.starts_with(&prefix));
            assert_holds_log(home, &own.cloned().collect::<Vec<_>>());
        }
        drop(daemons);
    }
}

#[test]
fn the_status_shows_a_full_disk_of_the_server_until_it_has_space_again() {
    let mut server = NatsServer::start_with_file_limit(1000);
    let home = home_with(&server);
    let _daemon = home.serve();
    let mut payload = hermes_shell("rm x");
    payload["tool_input"]["filler"] = json!("x".repeat(200 << 10));
    for _ in 0..5 {
        assert_eq!(
            home.answer("hermes", &payload)["reason"],
            "guarded (hookbus rule tool.before#1)"
        );
    }
    // The server answers, and knows its last message, but stores nothing. Depending on where the space ran
    // out, it refuses, does not acknowledge, or calls a batch incomplete.
    wait_until("the status shows the error", || {
        let state = relay_state(&home);
        state["phase"] != "publishing" && state["error"].is_string()
    });
    server.kill();
    server.remove_file_limit();
    server.run();
    wait_until_caught_up(&home);
    assert_eq!(relay_state(&home)["error"], Value::Null);
    assert_holds_log(&home, &server.published());
}

#[test]
fn the_status_shows_a_hung_server_until_it_continues() {
    let server = NatsServer::start();
    let home = home_with(&server);
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    wait_until_caught_up(&home);
    server.freeze();
    assert_eq!(
        home.answer("hermes", &hermes_shell("rm x"))["reason"],
        "guarded (hookbus rule tool.before#1)"
    );
    wait_until("the status shows the error", || {
        relay_state(&home)["phase"] != "publishing" && relay_state(&home)["error"].is_string()
    });
    server.thaw();
    wait_until_caught_up(&home);
    assert_eq!(relay_state(&home)["error"], Value::Null);
    assert_holds_log(&home, &server.published());
}

#[test]
fn a_cluster_that_loses_its_leader_under_load_loses_no_row() {
    let mut servers = NatsServer::cluster();
    let urls: Vec<String> = servers.iter().map(|server| format!("\"{}\"", server.url())).collect();
    let home = Home::with_daemon("running");
    home.write_hooks(&format!("nats: {{urls: [{}], replicas: 3}}\n{GUARD}", urls.join(", ")));
    let home = Arc::new(home);
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    wait_until_caught_up(&home);
    let leader = servers[0].with_stream(async |mut stream, _| {
        let cluster = stream.info().await.expect("a stream").cluster.clone();
        cluster.and_then(|cluster| cluster.leader).expect("a leader")
    });
    let leader: usize = leader.trim_start_matches("node-").parse().expect("the number of a node");
    let clients = start_clients(&home, 4);
    thread::sleep(Duration::from_millis(300));
    servers[leader].kill();
    for client in clients {
        client.join().expect("no client fails");
    }
    wait_until_caught_up(&home);
    let alive = &servers[(leader + 1) % 3];
    assert_holds_log(&home, &alive.published());
}

#[test]
fn a_stream_restored_from_an_older_copy_is_completed() {
    let mut server = NatsServer::start();
    let home = home_with(&server);
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    wait_until_caught_up(&home);
    server.kill();
    server.save();
    server.run();
    for _ in 0..5 {
        home.answer("hermes", &hermes_shell("rm x"));
    }
    wait_until_caught_up(&home);
    server.kill();
    server.restore();
    server.run();
    home.answer("hermes", &hermes_shell("rm x"));
    wait_until_caught_up(&home);
    assert_holds_log(&home, &server.published());
}

#[test]
fn a_stream_that_was_emptied_or_deleted_is_filled_again() {
    let server = NatsServer::start();
    let home = home_with(&server);
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    wait_until_caught_up(&home);
    // After a purge the server still remembers the message ids.
    server.with_stream(async |stream, _| stream.purge().await.expect("a purge"));
    home.answer("hermes", &hermes_shell("rm x"));
    wait_until_caught_up(&home);
    assert_holds_log(&home, &server.published());
    server.with_stream(async |_, context| context.delete_stream("HOOKBUS").await.expect("deleted"));
    home.answer("hermes", &hermes_shell("rm x"));
    wait_until_caught_up(&home);
    assert_holds_log(&home, &server.published());
    // Also without a new event.
    server.with_stream(async |stream, _| stream.purge().await.expect("a purge"));
    let rows = home.log(&[]).len();
    wait_until("the stream is filled again", || {
        let messages = server.with_stream(async |mut stream, _| {
            stream.info().await.expect("a stream").state.messages
        });
        messages == rows as u64
    });
    assert_holds_log(&home, &server.published());
}

#[test]
fn a_payload_that_does_not_fit_a_message_is_in_the_object_store() {
    let server = NatsServer::start();
    let home = home_with(&server);
    let _daemon = home.serve();
    let mut payload = hermes_shell("ls");
    payload["tool_input"]["filler"] = json!("x".repeat(3 << 20));
    home.hook("hermes", payload.to_string());
    wait_until_caught_up(&home);
    let published = server.published();
    assert_holds_log(&home, &published);
    let envelope = published.last().expect("a message").envelope();
    let reference = envelope["dataref"].as_str().expect("a reference").to_owned();
    let (bucket, object) = reference.split_once('/').expect("bucket and name");
    let stored = server.with_stream(async |_, context| {
        let bucket = context.get_object_store(bucket).await.expect("a bucket");
        let mut object = bucket.get(object).await.expect("an object");
        let mut bytes = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut object, &mut bytes).await.expect("its bytes");
        bytes
    });
    assert_eq!(stored, payload.to_string().into_bytes());
}

/// The names of the objects in the bucket for large payloads.
fn objects(server: &NatsServer) -> BTreeSet<String> {
    server.with_stream(async |_, context| {
        let bucket = context.get_object_store("HOOKBUS_LARGE").await.expect("a bucket");
        let objects = bucket.list().await.expect("a list");
        objects.map(|object| object.expect("an object").name).collect().await
    })
}

#[test]
fn a_large_payload_goes_with_its_message_and_those_of_others_stay() {
    let server = NatsServer::start();
    let (home, other) = (home_with(&server), home_with(&server));
    let large = |number: usize| {
        let mut payload = hermes_shell(&format!("echo {number}"));
        payload["tool_input"]["filler"] = json!("x".repeat(3 << 20));
        payload.to_string()
    };
    let id_of = |home: &Home, number: usize| {
        let command = format!("echo {number}");
        let rows = home.log(&["--kind", "tool.before"]);
        let row =
            rows.iter().find(|row| row["payload"]["tool_input"]["command"] == command.as_str());
        row.expect("a row")["id"].as_str().expect("an id").to_owned()
    };
    let daemon = home.serve();
    let other_daemon = other.serve();
    other.hook("hermes", large(9));
    wait_until_caught_up(&other);
    for number in 0..3 {
        home.hook("hermes", large(number));
    }
    wait_until_caught_up(&home);
    let [first, second, third] = [0, 1, 2].map(|number| id_of(&home, number));
    let of_other = id_of(&other, 9);
    drop((daemon, other_daemon));
    // The messages up to the second large one age out, and so does that of the other bus, whose relay does not run.
    let published = server.published();
    let sequence =
        published.iter().position(|it| it.envelope()["id"] == third.as_str()).expect("a message");
    server.with_stream(async |stream, context| {
        stream
            .purge()
            .sequence(u64::try_from(sequence).expect("a number") + 1)
            .await
            .expect("a purge");
        let bucket = context.get_object_store("HOOKBUS_LARGE").await.expect("a bucket");
        bucket.put("not-of-a-bus", &mut &b"x"[..]).await.expect("an object");
    });
    assert!(objects(&server).is_superset(&[first, second].into()));
    let _daemon = home.serve();
    let expected = [third, of_other, "not-of-a-bus".to_owned()].into();
    wait_until("only the payloads of old messages of this bus are gone", || {
        objects(&server) == expected
    });
    wait_until_caught_up(&home);
    assert_eq!(objects(&server), expected);
}

#[test]
fn any_session_and_event_names_are_published_and_can_be_read_from_the_subject() {
    let server = NatsServer::start();
    let home = home_with(&server);
    let _daemon = home.serve();
    let long = "x".repeat(500);
    let names = ["", " ", "a.b", "*", ">", "a b\tc", "😀", "command:deploy", "a::b", long.as_str()];
    for name in names {
        home.hook("hermes", json!({"hook_event_name": name, "session_id": name}).to_string());
    }
    wait_until_caught_up(&home);
    let published = server.published();
    assert_holds_log(&home, &published);
    for (message, row) in published.iter().zip(home.log(&[])) {
        let envelope = message.envelope();
        assert_eq!((&envelope["eventname"], &envelope["subject"]), (&row["name"], &row["session"]));
        if let Some((agent, session, name)) = hookbus::event::parse_subject(&message.subject) {
            assert_eq!(
                (json!(agent), json!(session), json!(name)),
                (row["agent"].clone(), row["session"].clone(), row["name"].clone())
            );
        } else {
            assert!(row["session"].as_str().is_some_and(|session| session.len() == 500));
        }
    }
    assert!(published.iter().any(|message| message.subject.ends_with(".command.deploy")));
}

#[test]
fn wrong_credentials_are_reported_without_the_secret_and_agents_still_get_answers() {
    let server = NatsServer::start_with(&["--user", "bus", "--pass", "right"]);
    let home = Home::with_daemon("running");
    let with = |password: &str| {
        format!("nats:\n  url: \"{}\"\n  user: bus\n  password: {password}\n{GUARD}", server.url())
    };
    home.write_hooks(&with("hush-hush"));
    let _daemon = home.serve();
    assert_eq!(
        home.answer("hermes", &hermes_shell("rm x"))["reason"],
        "guarded (hookbus rule tool.before#1)"
    );
    wait_until("the status shows the error", || relay_state(&home)["error"].is_string());
    let everything = format!("{}{:?}", home.text(&["status"]), home.log(&[]));
    assert!(!everything.contains("hush-hush"), "{everything}");
    home.write_hooks(&with("right"));
    wait_until_caught_up(&home);
}

/// Asserts that a relay with these lines under `nats:` can publish to the server.
fn assert_can_publish(server: &NatsServer, lines: &str) {
    let home = Home::with_daemon("running");
    home.write_hooks(&format!("nats:\n  url: \"{}\"\n{lines}{GUARD}", server.url()));
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    wait_until_caught_up(&home);
}

#[test]
fn the_relay_logs_in_with_a_token() {
    assert_can_publish(&NatsServer::start_with(&["--auth", "t0ken"]), "  token: t0ken\n");
}

#[test]
fn the_relay_logs_in_with_an_nkey() {
    let home = Home::new();
    let pair = nkeys::KeyPair::new_user();
    let config = home.script(
        "nats.conf",
        &format!("authorization {{ users: [{{ nkey: {} }}] }}", pair.public_key()),
    );
    let server = NatsServer::start_with(&["-c", &config]);
    assert_can_publish(&server, &format!("  nkey: {}\n", pair.seed().expect("a seed")));
}

#[test]
fn the_relay_logs_in_with_a_credentials_file_but_not_with_that_of_another_account() {
    let home = Home::new();
    let (accounts, other_accounts) = (Accounts::new(), Accounts::new());
    let config = home.script("nats.conf", &accounts.config);
    let server = NatsServer::start_with(&["-c", &config]);
    let own = home.script("own.creds", &accounts.credentials);
    assert_can_publish(&server, &format!("  credentials: {own}\n"));
    let other = home.script("other.creds", &other_accounts.credentials);
    let home = Home::with_daemon("running");
    home.write_hooks(&format!(
        "nats:\n  url: \"{}\"\n  credentials: {other}\n{GUARD}",
        server.url()
    ));
    let _daemon = home.serve();
    assert_eq!(
        home.answer("hermes", &hermes_shell("rm x"))["reason"],
        "guarded (hookbus rule tool.before#1)"
    );
    wait_until("the status shows the error", || relay_state(&home)["error"].is_string());
    let secret = other_accounts.credentials.lines().nth(5).expect("a seed").to_owned();
    assert!(secret.starts_with("SU"), "line 6 is the seed");
    assert!(!home.text(&["status", "--json"]).contains(&secret));
}

#[test]
fn the_relay_connects_over_tls_with_a_private_certificate_authority() {
    let home = Home::new();
    let make = "
        echo 'subjectAltName=IP:127.0.0.1,DNS:localhost' > names
        openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem
        openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out request.pem
        openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out cert.pem
    ";
    let made = Command::new("sh").args(["-euc", make]).current_dir(home.work()).output();
    let made = made.expect("sh runs");
    assert!(made.status.success(), "openssl is needed: {made:?}");
    let file = |name: &str| home.work().join(name).to_string_lossy().into_owned();
    let server = NatsServer::start_with(&[
        "--tls",
        "--tlscert",
        &file("cert.pem"),
        "--tlskey",
        &file("key.pem"),
    ]);
    assert_can_publish(&server, &format!("  ca: {}\n", file("ca.pem")));
}

#[test]
fn a_stream_that_does_not_fit_is_reported_and_not_changed() {
    let server = NatsServer::start();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = async_nats::connect(server.url()).await.expect("a server");
        let config = async_nats::jetstream::stream::Config {
            name: "HOOKBUS".to_owned(),
            subjects: vec!["something.else".to_owned()],
            ..Default::default()
        };
        async_nats::jetstream::new(client).create_stream(config).await.expect("a stream");
    });
    let home = home_with(&server);
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    wait_until("the relay is stuck", || relay_state(&home)["phase"] == "stuck");
    let error = relay_state(&home)["error"].as_str().expect("an error").to_owned();
    assert!(error.contains("something.else") && error.contains("allow_atomic"), "{error}");
}

#[test]
fn a_python_client_can_read_the_stream() {
    let server = NatsServer::start();
    let home = home_with(&server);
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    home.answer("hermes", &payloads::one("hermes", "pre_llm_call"));
    wait_until_caught_up(&home);
    let observer = r#"
import asyncio, json, sys
sys.path.insert(0, sys.argv[2])
import nats
async def main():
    client = await nats.connect(sys.argv[1])
    events = await client.jetstream().subscribe("hookbus.*.hermes.*.pre_tool_call", ordered_consumer=True)
    event = json.loads((await events.next_msg(timeout=10)).data)
    print(event["type"], event["toolclass"], event["data"]["tool_input"]["command"])
    await client.close()
asyncio.run(main())
"#;
    let ran = Command::new("python3")
        .args(["-c", observer, &server.url()])
        .arg(python_client())
        .output()
        .expect("python3 runs");
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(
        printed.trim(),
        "hookbus.tool.before shell rm x",
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// A first row with another payload, with the hash that a first row with that payload has.
fn another_first_row(first: &Published) -> (String, Vec<u8>) {
    let Received { bus, mut row, .. } = envelope::read(&first.body).expect("a row");
    row.payload = b"{}".to_vec();
    row.hash = row_hash(bus, None, &row, &payload_digest(&row.payload));
    (first.subject.clone(), envelope::write(bus, &row, None))
}

/// A person with the password of the server publishes on the subjects of a bus, under load.
fn goes_on_after_garbage(server: &NatsServer) {
    let home = home_with(server);
    let daemon = home.serve();
    for _ in 0..3 {
        home.answer("hermes", &hermes_shell("rm x"));
    }
    wait_until_caught_up(&home);
    let own = server.published();
    let subject = own[0].subject.clone();
    let changed = |key: &str, value: Value| {
        let mut envelope = own[4].envelope();
        envelope[key] = value;
        (own[4].subject.clone(), envelope.to_string().into_bytes())
    };
    server.forge([
        (subject.clone(), b"garbage".to_vec()),
        (subject, b"{}".to_vec()),
        changed("seq", json!(8)),
        changed("seq", json!(1_000_000)),
        changed("hash", json!("0".repeat(64))),
        // A message of its own that is published again must not move it back.
        (own[1].subject.clone(), own[1].body.clone()),
        // Whatever a first row says, its hash follows from the id of the bus.
        another_first_row(&own[0]),
    ]);
    home.answer("hermes", &hermes_shell("rm x"));
    wait_until_caught_up(&home);
    assert_eq!(relay_state(&home)["foreign"], 7);
    let status = home.text(&["status"]);
    assert!(status.contains("7 messages on the subjects of this bus are not its own"), "{status}");
    // A daemon that knows nothing of them yet.
    drop(daemon);
    server.forge([(own[1].subject.clone(), own[1].body.clone())]);
    let mut alone = home.command(["hook", "hermes"]);
    alone.env("HOOKBUS_DAEMON", "off");
    feed(alone, hermes_shell("ls").to_string().as_bytes());
    let _daemon = home.serve();
    wait_until_caught_up(&home);
    let rows = home.log(&[]);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let bodies = runtime.block_on(server.bodies());
    let published = |row: &Value| {
        let hash = row["hash"].as_str().expect("a hash").as_bytes();
        bodies.iter().filter(|(_, body)| body.windows(64).any(|part| part == hash)).count()
    };
    for row in &rows {
        // Row 2 was published by the bus, and forged twice. Changed envelopes keep the hash of row 5.
        let expected = match row["seq"].as_i64() {
            Some(2 | 5) => 3,
            _ => 1,
        };
        assert_eq!(published(row), expected, "{row}");
    }
}

#[test]
fn garbage_on_the_subjects_of_a_bus_does_not_stop_its_relay() {
    goes_on_after_garbage(&NatsServer::start());
}

#[test]
fn garbage_on_the_subjects_of_a_bus_does_not_stop_its_relay_on_older_servers() {
    goes_on_after_garbage(&NatsServer::start_version(Version::V2_11));
    goes_on_after_garbage(&NatsServer::start_version(Version::V2_10));
}

#[test]
fn the_stream_exists_before_the_first_event() {
    let server = NatsServer::start();
    let home = home_with(&server);
    let _daemon = home.serve();
    wait_until("the relay is ready", || relay_state(&home)["phase"] == "publishing");
    server.with_stream(async |mut stream, _| stream.info().await.expect("a stream").state.messages);
    let own = |message: &Published| message.envelope()["agent"] == "hookbus";
    assert!(server.published().iter().all(own), "no event of an agent");
    assert!(home.run(&["status", "--check"]).status.success(), "no events yet is healthy");
}

#[test]
fn the_relay_tells_the_age_of_the_oldest_row_that_waits() {
    let mut server = NatsServer::start();
    let home = home_with(&server);
    server.kill();
    // Recorded without a daemon, long before the relay starts.
    home.answer("hermes", &hermes_shell("ls"));
    thread::sleep(Duration::from_secs(3));
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("ls"));
    let relay = relay_state(&home);
    assert!(relay["lag_s"].as_u64().is_some_and(|age| age >= 3), "{relay}");
    assert!(!home.run(&["status", "--check"]).status.success());
}
