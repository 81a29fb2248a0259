//! `docker-compose.yml`, as far as it can be tested without Docker: its NATS configuration and its hooks file
//! are used by plain processes, and every service has a health check.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;
use std::path::Path;

use hookbus_tests::home::{Home, wait_until};
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::hermes_shell;
use saphyr::{LoadableYamlNode, Yaml};

fn compose_text() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docker-compose.yml");
    fs::read_to_string(file).expect("docker-compose.yml")
}

/// A config as its container gets it: Compose turns `$$` into `$`.
fn config(name: &str) -> String {
    let text = compose_text();
    let file = Yaml::load_from_str(&text).expect("YAML");
    let content = file[0]["configs"][name]["content"].as_str().expect("a text");
    content.replace("$$", "$")
}

#[test]
fn the_three_nats_nodes_replicate_what_a_bus_relays() {
    let nodes = NatsServer::cluster_of(&config("node"), ["nats-1", "nats-2", "nats-3"]);
    let home = Home::with_daemon("running");
    let mut hooks = config("hooks");
    for (index, node) in nodes.iter().enumerate() {
        hooks = hooks.replace(&format!("nats://nats-{}:4222", index + 1), &node.url());
    }
    home.write_hooks(&hooks);
    assert!(home.run(&["hooks", "list"]).status.success());
    let _daemon = home.serve_with(&["--no-observers"]);
    let answer = home.answer("hermes", &hermes_shell("git push --force"));
    assert_eq!(answer["reason"], "force pushes need a person");
    wait_until("the relay has published everything", || {
        home.json(&["status", "--json"])["relay"]["published"].as_u64() == Some(3)
    });
    let replicas = nodes[0].with_stream(async |mut stream, _| {
        stream.info().await.expect("a stream").config.num_replicas
    });
    assert_eq!(replicas, 3);
    // The archive service uses the same hooks file in another home.
    let archive = Home::new();
    archive.write_hooks(&hooks);
    wait_until("all rows are archived", || {
        archive.text(&["observe", "archive", "--drain"]);
        archive.log(&[]).len() == 3
    });
    assert!(archive.is_sound());
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
    for port in file[0]["services"]["nats-1"]["ports"].as_sequence().expect("ports") {
        assert!(port.as_str().expect("a port").starts_with("127.0.0.1:"));
    }
}
