//! `docker-compose.yml`, as far as it can be tested without Docker: its NATS configuration and its hooks file
//! are used by plain processes, and its health checks are run against what is well and what is broken.

#![expect(clippy::expect_used, clippy::panic, reason = "a test whose setup fails has failed")]

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use hookbus_tests::home::{Home, path_text, wait_until};
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::hermes_shell;
use saphyr::{LoadableYamlNode, Yaml};
use serde_json::Value;

fn compose_text() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docker-compose.yml");
    fs::read_to_string(file).expect("docker-compose.yml")
}

/// The NATS configuration as its container gets it: Compose turns `$$` into `$`.
fn node_config() -> String {
    let text = compose_text();
    let file = Yaml::load_from_str(&text).expect("YAML");
    let content = file[0]["configs"]["node"]["content"].as_str().expect("a text");
    content.replace("$$", "$")
}

/// The hooks file of all services, with these servers.
fn policy(nodes: &[NatsServer; 3]) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/compose/hookbus.yaml");
    let mut text = fs::read_to_string(file).expect("cli/compose/hookbus.yaml");
    for (index, node) in nodes.iter().enumerate() {
        text = text.replace(&format!("nats://nats-{}:4222", index + 1), &node.url());
    }
    text
}

fn nodes() -> [NatsServer; 3] {
    NatsServer::cluster_of(&node_config(), ["nats-1", "nats-2", "nats-3"])
}

/// Runs the health check of a service, as Docker would.
fn is_healthy(service: &str, home: &Home) -> bool {
    let text = compose_text();
    let file = Yaml::load_from_str(&text).expect("YAML");
    let test = file[0]["services"][service]["healthcheck"]["test"].as_sequence().expect("a test");
    let words: Vec<&str> = test.iter().map(|word| word.as_str().expect("a word")).collect();
    let ["CMD", "hookbus", arguments @ ..] = words.as_slice() else { panic!("{words:?}") };
    home.run(arguments).status.success()
}

/// A process of a service; killed when dropped.
struct Service(Child);

impl Service {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.command(arguments);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("hookbus starts"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.0.kill().expect("our child");
        self.0.wait().expect("our child");
    }
}

#[test]
fn the_three_nats_nodes_replicate_what_a_bus_relays() {
    let nodes = nodes();
    let home = Home::with_daemon("running");
    let hooks = policy(&nodes);
    home.write_hooks(&hooks);
    assert!(home.run(&["hooks", "list"]).status.success());
    let _daemon = home.serve_with(&["--no-observers"]);
    let answer = home.answer("hermes", &hermes_shell("git push --force"));
    assert_eq!(answer["reason"], "force pushes need a person (hookbus rule no-force-push)");
    wait_until("the relay has published everything", || {
        let published = home.json(&["status", "--json"])["relay"]["published"].as_u64();
        published == Some(home.log(&[]).len() as u64)
    });
    let rows = home.log(&[]).len();
    let replicas = nodes[0].with_stream(async |mut stream, _| {
        stream.info().await.expect("a stream").config.num_replicas
    });
    assert_eq!(replicas, 3);
    // The archive service uses the same hooks file in another home.
    let archive = Home::new();
    archive.write_hooks(&hooks);
    wait_until("all rows are archived", || {
        archive.text(&["observe", "archive", "--drain"]);
        archive.log(&[]).len() == rows
    });
    assert!(archive.is_sound());
}

#[test]
fn the_health_checks_pass_before_the_first_event_and_fail_when_the_relay_is_away() {
    let mut nodes = nodes();
    let (bus, archive) = (Home::with_daemon("running"), Home::new());
    let hooks = policy(&nodes);
    bus.write_hooks(&hooks);
    archive.write_hooks(&hooks);
    // The observer starts before there is a stream.
    let _archive = Service::start(&archive, &["observe", "archive"]);
    wait_until("the archive is healthy", || is_healthy("archive", &archive));
    let _bus = Service::start(&bus, &["serve", "--no-observers"]);
    wait_until("the bus is healthy", || is_healthy("bus", &bus));
    // The daemon answers, and is healthy, before its own row has created the log.
    wait_until("there is a log", || bus.run(&["log"]).status.success());
    assert!(bus.log(&["--agent", "hermes"]).is_empty(), "there are no events yet");
    assert!(is_healthy("archive", &archive));
    bus.answer("hermes", &hermes_shell("ls"));
    wait_until("the event is archived", || archive.run(&["log"]).stdout.len() > 10);
    assert!(is_healthy("bus", &bus) && is_healthy("archive", &archive));
    nodes.iter_mut().for_each(NatsServer::kill);
    wait_until("the bus is not healthy", || !is_healthy("bus", &bus));
    wait_until("the archive is not healthy", || !is_healthy("archive", &archive));
}

#[test]
fn an_observer_that_fails_every_event_or_left_dead_letters_is_not_healthy() {
    let home = Home::with_daemon("running");
    home.write_hooks(
        "hooks: { tool.before: [{ name: audit, mode: observe, from: start, command: 'false', tries: 1 },
                        { name: stuck, mode: observe, from: start, command: 'false', tries: 1000 }] }",
    );
    let _daemon = home.serve();
    let healthy = || home.run(&["status", "--check"]).status.success();
    wait_until("no events yet is healthy", healthy);
    home.answer("hermes", &hermes_shell("ls"));
    wait_until("the audit has dead letters", || !is_healthy("audit", &home));
    let stuck = ["status", "--observer", "stuck"];
    wait_until("the other one fails", || !home.run(&stuck).status.success());
    wait_until("the check names both", || {
        let check = home.run(&["status", "--check", "--json"]);
        let report = String::from_utf8_lossy(&check.stdout).into_owned();
        !check.status.success() && report.contains("dead letter") && report.contains("stuck fails")
    });
    wait_until("the age of its event shows", || {
        let state = home.json(&["status", "--json"]);
        let mut observers = state["observers"].as_array().expect("observers").iter();
        observers.any(|it| it["name"] == "stuck" && it["lag_s"].is_u64())
    });
}

#[test]
fn the_audit_file_has_one_json_object_per_line() {
    let nodes = nodes();
    let home = Home::with_daemon("running");
    let folder = path_text(&home.work());
    home.write_hooks(&policy(&nodes).replace("/var/lib/hookbus", &folder));
    let _bus = home.serve_with(&["--no-observers"]);
    home.hook("hermes", format!("{:#}", hermes_shell("ls")));
    home.hook("hermes", "not JSON\nat all");
    let audit = home.work().join("audit.jsonl");
    wait_until("both events are there", || {
        home.run(&["observe", "audit", "--drain"]);
        fs::read_to_string(&audit).is_ok_and(|text| text.contains("at all"))
    });
    let text = fs::read_to_string(&audit).expect("the audit");
    assert!(text.lines().count() >= 2);
    for line in text.lines() {
        let object: Value = serde_json::from_str(line).expect("JSON");
        assert!(object["hookbus"]["seq"].is_u64(), "{line}");
    }
}

#[test]
fn a_changed_policy_in_the_mounted_directory_reaches_the_bus() {
    let home = Home::with_daemon("running");
    // As in the image: the home has a link to the mounted directory.
    let mounted = home.work().join("compose");
    fs::create_dir_all(&mounted).expect("a directory");
    fs::create_dir_all(home.path()).expect("a home");
    let link = home.path().join("hookbus.yaml");
    std::os::unix::fs::symlink(mounted.join("hookbus.yaml"), link).expect("a link");
    let write = |reason: &str| {
        let text = format!(
            "trust: home\nhooks:\n  tool.before:\n    - rule: {{when: {{command: rm}}, block: {reason}}}\n"
        );
        // As editors do: a new file takes the place of the old one.
        let new = mounted.join("hookbus.yaml.new");
        fs::write(&new, text).expect("a policy");
        fs::rename(new, mounted.join("hookbus.yaml")).expect("a policy");
    };
    write("before");
    let _daemon = home.serve();
    for reason in ["before", "after"] {
        write(reason);
        assert_eq!(
            home.answer("hermes", &hermes_shell("rm x"))["reason"],
            format!("{reason} (hookbus rule tool.before#1)")
        );
    }
}

#[test]
fn every_service_has_a_health_check_and_the_file_holds_no_secret() {
    let text = compose_text();
    let file = Yaml::load_from_str(&text).expect("YAML");
    let services = file[0]["services"].as_mapping().expect("services");
    assert_eq!(services.len(), 6);
    for word in ["password", "token", "nkey", "secret_env", "BEGIN"] {
        assert!(!text.contains(word), "{word}");
    }
    for part in ["x-nats", "bus", "archive", "audit"] {
        let part = if part.starts_with('x') { &file[0][part] } else { &file[0]["services"][part] };
        assert!(part["healthcheck"]["test"].as_sequence().is_some());
    }
    for (service, on_host) in [("nats-1", "4222"), ("nats-2", "4223"), ("nats-3", "4224")] {
        let ports = file[0]["services"][service]["ports"].as_sequence().expect("ports");
        assert_eq!(ports[0].as_str(), Some(format!("127.0.0.1:{on_host}:4222").as_str()));
    }
    for limit in ["logging", "mem_limit", "pids_limit"] {
        assert!(!file[0]["x-limits"][limit].is_badvalue(), "{limit}");
    }
}
