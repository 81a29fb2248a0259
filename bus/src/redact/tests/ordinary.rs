//! Strings that are not secrets: generated ones, and those of this repository. Fewer than one in a thousand may be touched.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::super::Redactor;
use super::{ALNUM, BASE64, HEX, Seeds, redactor};

fn uuid(seeds: &mut Seeds) -> String {
    [8, 4, 4, 4, 12].map(|len| seeds.text(HEX, len)).join("-")
}

/// Ids, hashes, data and code as agents send them.
fn generated() -> Vec<String> {
    let mut seeds = Seeds(9);
    let seeds = &mut seeds;
    let mut all = Vec::new();
    for round in 0..120 {
        let dashes = "-".repeat(5);
        let lines: Vec<String> = (0..16).map(|_| seeds.text(BASE64, 64)).collect();
        all.extend([
            seeds.text(HEX, 40),
            seeds.text(HEX, 64),
            format!("commit {} (HEAD -> main)", seeds.text(HEX, 40)),
            uuid(seeds),
            format!(r#"{{"session_id":"{}","turn_id":"{}"}}"#, uuid(seeds), uuid(seeds)),
            format!("toolu_01{}", seeds.text(ALNUM, 22)),
            format!("call_{}", seeds.text(ALNUM, 24)),
            format!("chatcmpl-{}", seeds.text(ALNUM, 29)),
            format!("msg_01{}", seeds.text(ALNUM, 22)),
            format!(r#"{{"id":"resp_{}","request_id":"req_011{}"}}"#, seeds.text(HEX, 48), seeds.text(ALNUM, 22)),
            format!("sha256:{}", seeds.text(HEX, 64)),
            format!("image: ghcr.io/org/app@sha256:{}", seeds.text(HEX, 64)),
            format!("\"integrity\": \"sha512-{}==\"", seeds.text(BASE64, 86)),
            format!("checksum = \"{}\"", seeds.text(HEX, 64)),
            format!("{{\"type\":\"image\",\"data\":\"iVBORw0KGgo{}\"}}", seeds.text(BASE64, 6000)),
            format!("data:image/png;base64,{}", seeds.text(BASE64, 3000)),
            format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} me@host", seeds.text(BASE64, 43)),
            format!("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ{} me@host", seeds.text(BASE64, 500)),
            format!("{dashes}BEGIN CERTIFICATE{dashes}\n{}\n{dashes}END CERTIFICATE{dashes}", lines.join("\n")),
            format!("{dashes}BEGIN PUBLIC KEY{dashes}\n{}\n{dashes}END PUBLIC KEY{dashes}", lines.join("\n")),
            format!("color: #{}; background: #{}", seeds.text(HEX, 6), seeds.text(HEX, 3)),
            format!("\"usage\":{{\"input_tokens\":{round},\"output_tokens\":12,\"max_tokens\":4096}}"),
            format!("test tests::password_{round}_is_checked ... ok"),
            format!("!function(e,t){{var n=e[{round}],r=t.token||n.key;return r?n.set(\"token\",r):a({round})}}(window,x);"),
            format!("https://host.example/path/{}?page={round}&sort=asc", seeds.text(HEX, 12)),
            format!("fn token_{round}(password: &str, key: &[u8]) -> Result<Token, Error> {{"),
            format!("{} {} src/auth/token_{round}.rs", seeds.text(HEX, 7), seeds.text(HEX, 7)),
            format!("2026-11-17T15:{:02}:00Z INFO auth token refreshed for user {round}", round % 60),
            format!("\"etag\": \"W/\\\"{}\\\"\", \"cache_key\": \"{}\"", seeds.text(HEX, 32), seeds.text(HEX, 32)),
            format!("/home/dev/.cache/{}/{}.json", seeds.text(HEX, 16), seeds.text(ALNUM, 12)),
            format!("arn:aws:iam::{}:role/my-role-{round}", 100_000_000_000_u64 + round),
            format!("\"thought_signature\": \"{}\"", seeds.text(BASE64, 400)),
        ]);
    }
    all
}

fn files(folder: &Path, out: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, out) } else { out.push(path) }
    }
}

/// Every line of the sources and of the lock file, and every string of the recorded payloads.
fn of_the_repository() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut paths = vec![root.join("Cargo.lock"), root.join("bus/README.md")];
    files(&root.join("bus/src"), &mut paths);
    // This room's own tests are full of planted secrets.
    paths.retain(|path| !path.components().any(|part| part.as_os_str() == "redact"));
    let mut all: Vec<String> = Vec::new();
    for path in paths {
        all.extend(
            fs::read_to_string(path)
                .unwrap_or_default()
                .lines()
                .filter(|line| !line.is_empty())
                .map(str::to_owned),
        );
    }
    let mut payloads = Vec::new();
    files(&root.join("tests/payloads"), &mut payloads);
    for path in payloads {
        let value: Value = fs::read(path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        strings(&value, &mut all);
    }
    all
}

fn strings(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        Value::Object(members) => {
            for (key, member) in members {
                // The key counts for what is beside it.
                if let Value::String(text) = member {
                    out.push(format!(
                        "{{{}:{}}}",
                        Value::from(key.as_str()),
                        Value::from(text.as_str())
                    ));
                }
                strings(member, out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn touched(redactor: &Redactor, texts: &[String]) -> Vec<String> {
    let is_touched = |text: &&String| {
        let as_json = Value::from(text.as_str()).to_string();
        !redactor.redact(text.as_bytes()).found.is_empty()
            || !redactor.redact(as_json.as_bytes()).found.is_empty()
    };
    texts
        .iter()
        .filter(is_touched)
        .map(|text| redactor.redact_text(text).chars().take(200).collect())
        .collect()
}

#[test]
fn ordinary_strings_stay() {
    let texts = generated();
    assert!(texts.len() >= 3000, "{} strings", texts.len());
    let touched = touched(redactor(), &texts);
    assert!(
        touched.len() * 1000 < texts.len(),
        "{} of {}: {touched:#?}",
        touched.len(),
        texts.len()
    );
}

#[test]
fn the_repository_stays() {
    let texts = of_the_repository();
    assert!(texts.len() >= 3000, "{} strings", texts.len());
    let touched = touched(redactor(), &texts);
    assert!(
        touched.len() * 1000 < texts.len(),
        "{} of {}: {touched:#?}",
        touched.len(),
        texts.len()
    );
}
