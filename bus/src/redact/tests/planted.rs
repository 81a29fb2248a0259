//! One secret of every kind in the tables, in many surroundings: a byte search finds none of them afterwards.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::alphabet::UUID;
use super::super::detectors::{SERVICES, TOKENS};
use super::super::shape::{Piece, Token};
use super::{HEX, Seeds, redactor};

fn piece(seeds: &mut Seeds, piece: &Piece) -> String {
    match *piece {
        Piece::Text(text) => text.to_owned(),
        Piece::OneOf(texts) => texts[seeds.below(texts.len())].to_owned(),
        Piece::Run(alphabet, 36, _) if alphabet == UUID => {
            [8, 4, 4, 4, 12].map(|len| seeds.text(HEX, len)).join("-")
        }
        Piece::Run(alphabet, min, max) => {
            let len = min + seeds.below(max.min(min + 40) - min + 1);
            // `=` is only at the end of base64, and a space or newline would end a token.
            let bytes: Vec<u8> = alphabet.bytes().filter(|byte| !b"= \n".contains(byte)).collect();
            seeds.text(&bytes, len)
        }
    }
}

fn token(seeds: &mut Seeds, token: &Token) -> String {
    let before = token.before.as_ref().map(|before| piece(seeds, before)).unwrap_or_default();
    let after: String = token.after().iter().map(|after| piece(seeds, after)).collect();
    format!("{before}{}{after}", token.keyword)
}

/// The text as a JSON string, with the quotes.
fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// Texts with the secret in them, and the form that it has there.
fn surroundings(secret: &str) -> Vec<(&'static str, String, String)> {
    let plain = |name, text: String| (name, text, secret.to_owned());
    let once = quote(&format!("line one\n{secret}\nline three"));
    let twice = quote(&json!({"out": format!("A=1\nX={secret}\nB=2")}).to_string());
    let thrice =
        quote(&json!({"in": json!({"deep": format!("say \"{secret}\"")}).to_string()}).to_string());
    let escaped =
        secret.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect::<Vec<_>>().concat();
    vec![
        plain("text", format!("please use {secret} for this")),
        plain("alone", secret.to_owned()),
        plain("string", json!({"prompt": format!("use {secret}, thanks")}).to_string()),
        plain("lines", format!(r#"{{"stdout":{once}}}"#)),
        plain("nested", format!(r#"{{"result":{twice}}}"#)),
        plain("nested deeper", format!(r#"{{"result":{thrice},"n":1}}"#)),
        plain(
            "environment",
            json!({"env": format!("HOME=/root\nMY_VALUE={secret}\nPATH=/bin")}).to_string(),
        ),
        plain("export", json!({"command": format!("export VALUE='{secret}' && run")}).to_string()),
        plain("header", format!("curl -H \"X-Value: {secret}\" https://api.host/v1")),
        plain("query", format!("GET https://api.host/v1?value={secret}&page=2")),
        plain("yaml", format!("a:\n  value: {secret}\n  other: 1\n")),
        plain("toml", format!("[a]\nvalue = \"{secret}\"\n")),
        plain("python", format!("{{'value': '{secret}', 'n': 1}}")),
        plain("colour", format!("\u{1b}[31m{secret}\u{1b}[0m")),
        plain("truncated", format!(r#"{{"tool":"x","out":"{secret}"#)),
        plain("broken", format!(r#"{{"tool":"x",,"out":"{secret}"]"#)),
        plain("table", format!("| value | {secret} |")),
        ("unicode", format!(r#"{{"out":"a {escaped} b"}}"#), escaped),
    ]
}

#[test]
fn no_token_of_any_kind_is_left_in_any_surroundings() {
    let redactor = redactor();
    let mut seeds = Seeds(1);
    let mut kinds = BTreeSet::new();
    let (mut planted, mut left) = (0, Vec::new());
    for shape in TOKENS.iter().copied().flatten() {
        for _ in 0..2 {
            let secret = token(&mut seeds, shape);
            // Keywords with quotes in them, and secrets of several lines, have tests of their own.
            if secret.contains(['"', '\n']) {
                continue;
            }
            kinds.insert(shape.kind);
            for (place, text, form) in surroundings(&secret) {
                planted += 1;
                let out = redactor.redact(text.as_bytes());
                let out = String::from_utf8_lossy(&out.bytes).into_owned();
                // The prefix alone is not a secret; what follows it is.
                let body = &form[form.len() / 2..];
                if out.contains(&form) || out.contains(body) {
                    left.push(format!("{} in {place}: {text}", shape.kind));
                }
            }
        }
    }
    assert!(kinds.len() >= 250, "{} kinds", kinds.len());
    assert!(planted >= 10_000, "{planted} planted");
    assert_eq!(
        left.len(),
        0,
        "{} of {planted}, such as {:#?}",
        left.len(),
        &left[..left.len().min(20)]
    );
}

/// Assignments with the name of a service, as configuration and code have them.
fn assignments(name: &str, value: &str) -> Vec<String> {
    let upper = name.to_uppercase().replace([' ', '-'], "_");
    let snake = name.replace([' ', '-'], "_");
    vec![
        format!("{upper}_VALUE={value}"),
        format!("export {upper}_ACCESS=\"{value}\""),
        json!({format!("{snake}_value"): value}).to_string(),
        json!({"env": json!({format!("{snake}Value"): value}).to_string()}).to_string(),
        json!({"stdout": format!("A=1\n{upper}_X={value}\nB=2")}).to_string(),
        format!("{snake}_value: {value}\nnext: 1"),
        format!("{snake}.value = '{value}'"),
        format!("const {snake}Value = \"{value}\";"),
        format!("{name} value: {value}"),
    ]
}

#[test]
fn no_secret_of_a_named_service_is_left() {
    let redactor = redactor();
    let mut seeds = Seeds(2);
    let mut kinds = BTreeSet::new();
    let (mut planted, mut left) = (0, Vec::new());
    for service in SERVICES.iter().copied().flatten() {
        let mixed = |text: &String| {
            text.contains(|c: char| c.is_ascii_digit())
                && text.contains(|c: char| c.is_ascii_alphabetic())
                && text.ends_with(|c: char| c.is_ascii_alphanumeric())
                && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        };
        let value =
            std::iter::repeat_with(|| piece(&mut seeds, &service.shape)).find(mixed).unwrap();
        kinds.insert(service.kind);
        for text in assignments(service.name, &value) {
            planted += 1;
            let out = redactor.redact(text.as_bytes());
            if String::from_utf8_lossy(&out.bytes).contains(&value) {
                left.push(format!("{}: {text}", service.kind));
            }
        }
    }
    assert!(kinds.len() >= 200, "{} kinds", kinds.len());
    assert_eq!(
        left.len(),
        0,
        "{} of {planted}, such as {:#?}",
        left.len(),
        &left[..left.len().min(20)]
    );
}

#[test]
fn kinds_are_told_apart() {
    let redactor = redactor();
    let mut seeds = Seeds(3);
    let mut wrong = Vec::new();
    for shape in TOKENS.iter().copied().flatten() {
        let secret = token(&mut seeds, shape);
        let text = format!("use {secret} now");
        let found = redactor.redact(text.as_bytes()).found;
        // Some services share a prefix (`sk_live_`, `live_`): their tokens cannot be told apart.
        if found.first().is_none_or(|found| found.kind != shape.kind) {
            wrong.push(shape.kind);
        }
    }
    assert!(wrong.len() <= 30, "{} kinds: {wrong:?}", wrong.len());
}
