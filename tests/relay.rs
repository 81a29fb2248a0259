//! The relay: every row of the log is in the stream, once and in log order, whatever is killed, and
//! agents never wait for any of it.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hookbus::log::{LogPath, LogReader};
use hookbus_tests::accounts::Accounts;
use hookbus_tests::home::{Home, feed, wait_until};
use hookbus_tests::nats::{NatsServer, Published, Version, python_client};
use hookbus_tests::payloads::{self, hermes_shell};
use serde_json::{Value, json};

const GUARD: &str = "hooks:\n  tool.before:\n    - rule: {when: {command: rm}, block: guarded}\n";

fn home_of(server: &NatsServer) -> Home {
    let home = Home::with_daemon("running");
    home.write_hooks(&format!("nats: {{url: \"{}\"}}\n{GUARD}", server.url()));
    home
}

fn relay(home: &Home) -> Value {
    let status = home.run(&["status", "--json"]);
    serde_json::from_slice::<Value>(&status.stdout).expect("JSON")["relay"].clone()
}

fn caught_up(home: &Home) {
    wait_until("the relay has published everything", || {
        let state = relay(home);
        let rows = home.log(&["-n", "1"])[0]["seq"].clone();
        state["phase"] == "publishing" && state["published"] == rows
    });
}

/// So many clients, sixty calls each; every one of them is answered.
fn fire(home: &Arc<Home>, clients: usize) -> Vec<thread::JoinHandle<()>> {
    let client = |client: usize| {
        let home = Arc::clone(home);
        thread::spawn(move || {
            for round in 0..60 {
                let told = home.answer("hermes", &hermes_shell(&format!("rm {client}-{round}")));
                assert_eq!(told["reason"], "guarded");
            }
        })
    };
    (0..clients).map(client).collect()
}

/// The stream holds the log: each row once, in order, with its hash.
fn holds_the_log(home: &Home, published: &[Published]) {
    let rows = home.log(&[]);
    let logged: Vec<(i64, String)> = rows
        .iter()
        .map(|row| {
            (
                row["seq"].as_i64().expect("a place"),
                row["hash"].as_str().expect("a hash").to_owned(),
            )
        })
        .collect();
    let streamed: Vec<(i64, String)> =
        published.iter().map(|message| (message.seq, message.hash.clone())).collect();
    assert_eq!(streamed, logged);
}

#[test]
fn every_row_is_published_once_in_order_and_as_it_came() {
    let server = NatsServer::start();
    let home = home_of(&server);
    let _daemon = home.serve();
    for (agent, _, bytes) in payloads::all().iter().filter(|(agent, ..)| agent == "gemini") {
        home.hook(agent, bytes);
    }
    home.hook("hermes", b"\xff not text");
    home.hook("hermes", hermes_shell("rm x").to_string());
    caught_up(&home);
    let published = server.published();
    holds_the_log(&home, &published);
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
            assert!(inside, "the payload stands in the envelope byte for byte");
            let read = hookbus::envelope::read(&message.body).expect("an envelope");
            assert_eq!(read.row.payload, raw, "with the space around it");
        } else {
            assert_eq!(envelope["data_base64"], "/yBub3QgdGV4dA==");
        }
    }
}

#[test]
fn nats_that_comes_later_gets_everything() {
    let mut server = NatsServer::prepare(&[]);
    let home = home_of(&server);
    let _daemon = home.serve();
    for _ in 0..5 {
        assert_eq!(home.answer("hermes", &hermes_shell("rm x"))["reason"], "guarded");
    }
    wait_until("the trouble shows", || relay(&home)["error"].is_string());
    assert_eq!(relay(&home)["connected"], false);
    assert_eq!(relay(&home)["lag_events"], 11);
    server.run();
    caught_up(&home);
    holds_the_log(&home, &server.published());
}

#[test]
fn rows_of_clients_without_the_daemon_are_published_too() {
    let server = NatsServer::start();
    let home = home_of(&server);
    let _daemon = home.serve();
    let mut alone = home.command(["hook", "hermes"]);
    alone.env("HOOKBUS_DAEMON", "off");
    feed(alone, hermes_shell("ls").to_string().as_bytes());
    caught_up(&home);
    holds_the_log(&home, &server.published());
}

/// Eight clients, while the server and the daemon are killed in turn.
fn killed_again_and_again(mut server: NatsServer) {
    let home = Arc::new(home_of(&server));
    let done = Arc::new(AtomicBool::new(false));
    let clients = fire(&home, 8);
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
    daemons.join().expect("the killer is done");
    let _daemon = home.serve();
    caught_up(&home);
    holds_the_log(&home, &server.published());
    assert_eq!(home.log(&["--kind", "tool.before"]).len(), 480);
}

#[test]
fn under_load_with_both_sides_killed_again_and_again_the_stream_holds_the_log() {
    killed_again_and_again(NatsServer::start());
}

#[test]
fn a_server_without_atomic_batches_gets_the_same_one_by_one() {
    killed_again_and_again(NatsServer::start_version(Version::V2_11));
}

#[test]
fn a_server_without_a_guard_per_bus_gets_the_same_one_by_one() {
    killed_again_and_again(NatsServer::start_version(Version::V2_10));
}

#[test]
fn buses_that_share_a_server_of_any_age_do_not_harm_each_other() {
    for version in [Version::Newest, Version::V2_11, Version::V2_10] {
        let server = NatsServer::start_version(version);
        let homes = [(); 3].map(|()| Arc::new(home_of(&server)));
        let daemons = homes.each_ref().map(|home| home.serve());
        let clients: Vec<_> = homes.iter().flat_map(|home| fire(home, 1)).collect();
        for client in clients {
            client.join().expect("no client fails");
        }
        for home in &homes {
            caught_up(home);
        }
        let published = server.published();
        for home in &homes {
            let log = LogReader::open(&LogPath::in_home(&home.path())).expect("a log");
            let prefix = format!("hookbus.{}.", log.bus().expect("a bus"));
            let own = published.iter().filter(|message| message.subject.starts_with(&prefix));
            holds_the_log(home, &own.cloned().collect::<Vec<_>>());
        }
        drop(daemons);
    }
}

#[test]
fn a_server_whose_disk_is_full_shows_as_trouble_until_it_is_mended() {
    let mut server = NatsServer::start_with_little_room(1000);
    let home = home_of(&server);
    let _daemon = home.serve();
    let mut payload = hermes_shell("rm x");
    payload["tool_input"]["filler"] = json!("x".repeat(200 << 10));
    for _ in 0..5 {
        assert_eq!(home.answer("hermes", &payload)["reason"], "guarded");
    }
    // It is there, and says how far the stream is, but stores nothing. It refuses, says nothing, or calls a
    // batch incomplete, depending on where in it the room ended.
    wait_until("the trouble shows", || {
        let state = relay(&home);
        state["phase"] != "publishing" && state["error"].is_string()
    });
    server.kill();
    server.make_room();
    server.run();
    caught_up(&home);
    assert_eq!(relay(&home)["error"], Value::Null);
    holds_the_log(&home, &server.published());
}

#[test]
fn a_server_that_hangs_shows_as_trouble_until_it_goes_on() {
    let server = NatsServer::start();
    let home = home_of(&server);
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    caught_up(&home);
    server.freeze();
    assert_eq!(home.answer("hermes", &hermes_shell("rm x"))["reason"], "guarded");
    wait_until("the trouble shows", || {
        relay(&home)["phase"] != "publishing" && relay(&home)["error"].is_string()
    });
    server.thaw();
    caught_up(&home);
    assert_eq!(relay(&home)["error"], Value::Null);
    holds_the_log(&home, &server.published());
}

#[test]
fn a_cluster_that_loses_its_leader_under_load_loses_nothing() {
    let mut servers = NatsServer::cluster();
    let urls: Vec<String> = servers.iter().map(|server| format!("\"{}\"", server.url())).collect();
    let home = Home::with_daemon("running");
    home.write_hooks(&format!("nats: {{urls: [{}], replicas: 3}}\n{GUARD}", urls.join(", ")));
    let home = Arc::new(home);
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    caught_up(&home);
    let leader = servers[0].with_stream(async |mut stream, _| {
        let cluster = stream.info().await.expect("a stream").cluster.clone();
        cluster.and_then(|cluster| cluster.leader).expect("a leader")
    });
    let leader: usize = leader.trim_start_matches("node-").parse().expect("one of ours");
    let clients = fire(&home, 4);
    thread::sleep(Duration::from_millis(300));
    servers[leader].kill();
    for client in clients {
        client.join().expect("no client fails");
    }
    caught_up(&home);
    let alive = &servers[(leader + 1) % 3];
    holds_the_log(&home, &alive.published());
}

#[test]
fn a_stream_put_back_to_an_older_state_is_filled_up_again() {
    let mut server = NatsServer::start();
    let home = home_of(&server);
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    caught_up(&home);
    server.kill();
    server.save();
    server.run();
    for _ in 0..5 {
        home.answer("hermes", &hermes_shell("rm x"));
    }
    caught_up(&home);
    server.kill();
    server.restore();
    server.run();
    home.answer("hermes", &hermes_shell("rm x"));
    caught_up(&home);
    holds_the_log(&home, &server.published());
}

#[test]
fn a_stream_that_was_emptied_or_deleted_is_filled_again() {
    let server = NatsServer::start();
    let home = home_of(&server);
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    caught_up(&home);
    // Emptied, it still remembers the ids.
    server.with_stream(async |stream, _| stream.purge().await.expect("a purge"));
    home.answer("hermes", &hermes_shell("rm x"));
    caught_up(&home);
    holds_the_log(&home, &server.published());
    server.with_stream(async |_, context| context.delete_stream("HOOKBUS").await.expect("deleted"));
    home.answer("hermes", &hermes_shell("rm x"));
    caught_up(&home);
    holds_the_log(&home, &server.published());
    // Without any new event, too.
    server.with_stream(async |stream, _| stream.purge().await.expect("a purge"));
    wait_until("it is filled again", || {
        server.with_stream(async |mut stream, _| {
            stream.info().await.expect("a stream").state.messages
        }) == 7
    });
    holds_the_log(&home, &server.published());
}

#[test]
fn a_payload_larger_than_a_message_goes_through_the_object_store() {
    let server = NatsServer::start();
    let home = home_of(&server);
    let _daemon = home.serve();
    let mut payload = hermes_shell("ls");
    payload["tool_input"]["filler"] = json!("x".repeat(3 << 20));
    home.hook("hermes", payload.to_string());
    caught_up(&home);
    let published = server.published();
    holds_the_log(&home, &published);
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

#[test]
fn names_of_any_kind_are_published_and_can_be_read_back() {
    let server = NatsServer::start();
    let home = home_of(&server);
    let _daemon = home.serve();
    let long = "x".repeat(500);
    let names = ["", " ", "a.b", "*", ">", "a b\tc", "😀", "command:deploy", "a::b", long.as_str()];
    for name in names {
        home.hook("hermes", json!({"hook_event_name": name, "session_id": name}).to_string());
    }
    caught_up(&home);
    let published = server.published();
    holds_the_log(&home, &published);
    for (message, row) in published.iter().zip(home.log(&[])) {
        let envelope = message.envelope();
        assert_eq!((&envelope["eventname"], &envelope["subject"]), (&row["name"], &row["session"]));
        if let Some((agent, session, name)) = hookbus::event::read_subject(&message.subject) {
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
fn wrong_credentials_are_told_without_the_secret_and_harm_nobody() {
    let server = NatsServer::start_with(&["--user", "bus", "--pass", "right"]);
    let home = Home::with_daemon("running");
    let with = |password: &str| {
        format!("nats:\n  url: \"{}\"\n  user: bus\n  password: {password}\n{GUARD}", server.url())
    };
    home.write_hooks(&with("hush-hush"));
    let _daemon = home.serve();
    assert_eq!(home.answer("hermes", &hermes_shell("rm x"))["reason"], "guarded");
    wait_until("the trouble shows", || relay(&home)["error"].is_string());
    let everything = format!("{}{:?}", home.text(&["status"]), home.log(&[]));
    assert!(!everything.contains("hush-hush"), "{everything}");
    home.write_hooks(&with("right"));
    caught_up(&home);
}

/// A relay with these lines under `nats:` reaches the server.
fn gets_in(server: &NatsServer, lines: &str) {
    let home = Home::with_daemon("running");
    home.write_hooks(&format!("nats:\n  url: \"{}\"\n{lines}{GUARD}", server.url()));
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    caught_up(&home);
}

#[test]
fn a_token_lets_us_in() {
    gets_in(&NatsServer::start_with(&["--auth", "t0ken"]), "  token: t0ken\n");
}

#[test]
fn an_nkey_lets_us_in() {
    let home = Home::new();
    let pair = nkeys::KeyPair::new_user();
    let config = home.script(
        "nats.conf",
        &format!("authorization {{ users: [{{ nkey: {} }}] }}", pair.public_key()),
    );
    let server = NatsServer::start_with(&["-c", &config]);
    gets_in(&server, &format!("  nkey: {}\n", pair.seed().expect("a seed")));
}

#[test]
fn a_credentials_file_lets_us_in_and_a_stranger_s_does_not() {
    let home = Home::new();
    let (accounts, strangers) = (Accounts::new(), Accounts::new());
    let config = home.script("nats.conf", &accounts.config);
    let server = NatsServer::start_with(&["-c", &config]);
    let own = home.script("own.creds", &accounts.credentials);
    gets_in(&server, &format!("  credentials: {own}\n"));
    let other = home.script("other.creds", &strangers.credentials);
    let home = Home::with_daemon("running");
    home.write_hooks(&format!(
        "nats:\n  url: \"{}\"\n  credentials: {other}\n{GUARD}",
        server.url()
    ));
    let _daemon = home.serve();
    assert_eq!(home.answer("hermes", &hermes_shell("rm x"))["reason"], "guarded");
    wait_until("the trouble shows", || relay(&home)["error"].is_string());
    let secret = strangers.credentials.lines().nth(5).expect("a seed").to_owned();
    assert!(secret.starts_with("SU"), "line 6 is the seed");
    assert!(!home.text(&["status", "--json"]).contains(&secret));
}

#[test]
fn tls_with_our_own_authority_lets_us_in() {
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
    gets_in(&server, &format!("  ca: {}\n", file("ca.pem")));
}

#[test]
fn a_stream_made_otherwise_is_left_alone_and_said_so() {
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
    let home = home_of(&server);
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    wait_until("it is stuck", || relay(&home)["phase"] == "stuck");
    let said = relay(&home)["error"].as_str().expect("a sentence").to_owned();
    assert!(said.contains("something.else") && said.contains("allow_atomic"), "{said}");
}

#[test]
fn an_observer_in_another_language_reads_it_with_its_own_client() {
    let server = NatsServer::start();
    let home = home_of(&server);
    let _daemon = home.serve();
    home.answer("hermes", &hermes_shell("rm x"));
    home.answer("hermes", &payloads::one("hermes", "pre_llm_call"));
    caught_up(&home);
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
    let said = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(
        said.trim(),
        "hookbus.tool.before shell rm x",
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
