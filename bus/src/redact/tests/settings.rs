//! What a user can set, and the paths of what is found.

use serde_json::{Value, json};

use super::super::{Allowed, FingerprintKey, Mark, OwnPattern, RedactionSettings, Redactor};
use super::{redactor, with};

fn redacted(settings: &RedactionSettings, value: &Value) -> Value {
    serde_json::from_slice(&with(settings).redact(value.to_string().as_bytes()).bytes).unwrap()
}

fn is_mark(value: &Value) -> bool {
    value.as_str().is_some_and(|text| {
        Mark::find_all(text).first().is_some_and(|(range, _)| *range == (0..text.len()))
    })
}

#[test]
fn own_patterns_find_their_group_and_stay_inside_strings() {
    let pattern = |regex: &str, keywords: &[&str]| RedactionSettings {
        patterns: vec![OwnPattern {
            name: "badge".to_owned(),
            regex: regex.to_owned(),
            keywords: keywords.iter().map(|word| (*word).to_owned()).collect(),
        }],
        ..RedactionSettings::default()
    };
    let value = json!({"a": "badge B-12345 ok", "n": 12345, "b": "x"});
    let out = redacted(&pattern(r"B-(\d+)", &["badge"]), &value);
    assert!(out["a"].as_str().unwrap().starts_with("badge B-[redacted:badge:5:"));
    assert_eq!(redacted(&pattern(r"B-(\d+)", &["other"]), &value), value);
    let greedy = redacted(&pattern(r"badge.*x", &[]), &value);
    assert_eq!(greedy["b"].as_str().map(|text| text.starts_with("[redacted:badge:1:")), Some(true));
    assert!(is_mark(&greedy["n"]) && greedy.as_object().unwrap().len() == 3);
}

#[test]
fn key_names_and_paths_cover_all_that_is_below_them() {
    let settings = RedactionSettings {
        key_names: vec!["*_pin".to_owned(), "iv".to_owned()],
        json_paths: vec!["tool_input.env.*".to_owned(), "list.1".to_owned()],
        ..RedactionSettings::default()
    };
    let value = json!({
        "card_pin": 1234, "iv": "abc", "x": "CARD_PIN=9876 iv: short",
        "tool_input": {"env": {"A": "1", "B": {"C": "2"}, "on": true}, "cwd": "/x"},
        "list": ["zero", "one", "two"],
    });
    let out = redacted(&settings, &value);
    for secret in ["/card_pin", "/iv", "/tool_input/env/A", "/tool_input/env/B/C", "/list/1"] {
        assert!(is_mark(out.pointer(secret).unwrap()), "{secret}: {out}");
    }
    for kept in ["/tool_input/cwd", "/list/0", "/list/2", "/tool_input/env/on"] {
        assert_eq!(out.pointer(kept), value.pointer(kept));
    }
    assert_eq!(Mark::find_all(out["x"].as_str().unwrap()).len(), 2, "{out}");
}

#[test]
fn detectors_can_be_off_and_values_allowed() {
    let text = "password=hunter2 url=https://u:hunter3@h";
    let off =
        RedactionSettings { off: vec!["password".to_owned()], ..RedactionSettings::default() };
    assert!(with(&off).redact_text(text).starts_with("password=hunter2 url=https://u:[redacted"));
    let allowed = RedactionSettings {
        allowed: vec![
            Allowed::Exact("hunter2".to_owned()),
            Allowed::Matching("hunter[0-9]".to_owned()),
        ],
        ..RedactionSettings::default()
    };
    assert_eq!(with(&allowed).redact_text(text), text);
}

#[test]
fn mistakes_in_the_settings_are_told() {
    let message = |settings: &RedactionSettings| {
        Redactor::new(FingerprintKey::new([7; 32]), settings).unwrap_err().to_string()
    };
    let pattern = |name: &str, regex: &str| RedactionSettings {
        patterns: vec![OwnPattern {
            name: name.to_owned(),
            regex: regex.to_owned(),
            keywords: Vec::new(),
        }],
        ..RedactionSettings::default()
    };
    assert!(
        message(&pattern("x", "a("))
            .starts_with("the regex of `x` is not valid: regex parse error")
    );
    assert!(message(&pattern("x", "a*")).contains("matches the empty text"));
    assert!(message(&pattern("My Key", "a")).contains("lower-case letters"));
    let off =
        RedactionSettings { off: vec!["aws-access".to_owned()], ..RedactionSettings::default() };
    assert!(message(&off).contains("did you mean `aws-access-key`?"));
    let wide =
        RedactionSettings { key_names: vec!["*".to_owned()], ..RedactionSettings::default() };
    assert!(message(&wide).contains("matches every name"));
    let path =
        RedactionSettings { json_paths: vec!["a..b".to_owned()], ..RedactionSettings::default() };
    assert!(message(&path).contains("empty part"));
}

#[test]
fn what_is_found_has_its_path() {
    let value = json!({"tool_input": {"env": [{"k": "x"}, {"DB_PASSWORD": "hunter2"}]}, "t": "password=hunter3"});
    let mut changed = value;
    let found = redactor().redact_value(&mut changed);
    let paths: Vec<_> = found.iter().map(|found| found.path.clone().unwrap()).collect();
    assert_eq!(paths, ["tool_input.env.1.DB_PASSWORD", "t"]);
    assert!(is_mark(&changed["tool_input"]["env"][1]["DB_PASSWORD"]));
}
