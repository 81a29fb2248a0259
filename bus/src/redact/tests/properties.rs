//! What holds for every payload.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::Value;

use super::super::{Mark, Redactor};
use super::redactor;

/// Pieces of payloads that detectors react to.
fn fragment() -> impl Strategy<Value = String> {
    let words = [
        "password",
        "\"password\":",
        "token=",
        "api_key: ",
        "hunter2",
        "\"",
        "\\\"",
        "\\",
        "\\n",
        "\n",
        "'",
        " ",
        ",",
        "{",
        "}",
        "[",
        "]",
        "ghp_",
        "0123456789abcdefghijABCDEFGHIJ0123456789",
        "AKIA",
        "ABCDEFGHIJKLMNOP",
        "Authorization: Bearer ",
        "https://u:",
        "@host",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "curl -u a:b",
        "kind: Secret\ndata:\n  a: ",
        "Cookie: s=",
        ";",
        "&",
        "[redacted:token:8:0123456789ab]",
        "eyJhbGciOiJIUzI1NiJ9",
        ".",
        "\\u0041",
        "\\u0022",
        "é",
        "mysql -p",
        "=",
        ":",
        "1234567",
        "null",
    ];
    prop_oneof![
        6 => proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => "[ -~]{0,12}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(fragment(), 0..24).prop_map(|parts| parts.concat())
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => text().prop_map(Value::from),
        1 => any::<i32>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("password".to_owned()),
        Just("a".to_owned()),
        Just("api_key".to_owned()),
        "[a-z]{1,5}"
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner.clone()), 0..4)
                .prop_map(|members| members.into_iter().collect()),
            inner.prop_map(|value| Value::from(value.to_string())),
        ]
    })
}

/// Same keys and lists; only the contents of strings differ, and numbers that became marks.
fn same_structure(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((_, a), (_, b))| same_structure(a, b))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_structure(a, b))
        }
        (Value::String(a), Value::String(b)) => a == b || !Mark::find_all(b).is_empty(),
        (Value::Number(a), Value::String(b)) => {
            Mark::find_all(b).first().is_some_and(|(_, mark)| mark.chars == a.to_string().len())
        }
        (a, b) => a == b,
    }
}

fn twice(redactor: &Redactor, raw: &[u8]) -> Result<(), TestCaseError> {
    let once = redactor.redact(raw);
    let again = redactor.redact(&once.bytes);
    prop_assert_eq!(
        String::from_utf8_lossy(&again.bytes),
        String::from_utf8_lossy(&once.bytes),
        "from {}",
        String::from_utf8_lossy(raw)
    );
    let untouched = once.found.is_empty();
    prop_assert_eq!(untouched, matches!(once.bytes, Cow::Borrowed(_)));
    prop_assert!(!untouched || *once.bytes == *raw);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn redacting_twice_changes_nothing(text in text()) {
        twice(redactor(), text.as_bytes())?;
    }

    #[test]
    fn json_stays_json_with_the_same_structure(value in json()) {
        let raw = value.to_string();
        let redactor = redactor();
        let out = redactor.redact(raw.as_bytes());
        let after: Value = serde_json::from_slice(&out.bytes)
            .map_err(|error| TestCaseError::fail(format!("{error}: {}", String::from_utf8_lossy(&out.bytes))))?;
        prop_assert!(same_structure(&value, &after), "{} became {}", value, after);
        twice(redactor, raw.as_bytes())?;
    }

    #[test]
    fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let out = redactor().redact(&bytes);
        prop_assert_eq!(out.found.is_empty(), matches!(out.bytes, Cow::Borrowed(_)));
    }

    #[test]
    fn truncated_json_is_still_redacted(at in 0_usize..30, value in json()) {
        let raw = format!(r#"{{"a":{value},"password":"planted7planted7planted7planted7"}}"#);
        let cut = &raw[..raw.len() - at];
        let out = redactor().redact(cut.as_bytes());
        prop_assert!(!String::from_utf8_lossy(&out.bytes).contains("planted7"));
    }
}

#[test]
fn hostile_payloads_take_linear_time_and_leave_nothing() {
    let redactor = redactor();
    let secret = format!("ghp{}", "_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    for part in [
        "password=",
        "-eyJh",
        "\\\"password\\\":\\\"",
        "-----BEGIN PRIVATE KEY-----A",
        "curl -u ",
        "kind: Secret\ndata:\n a: b\n",
        "password='\"",
    ] {
        let hostile = part.repeat(40_000);
        for text in [
            format!("{hostile} {secret} "),
            format!(r#"{{"a":"{} {secret} "}}"#, hostile.replace('"', "").replace('\n', "\\n")),
        ] {
            let out = redactor.redact(text.as_bytes());
            assert!(!String::from_utf8_lossy(&out.bytes).contains(&secret), "{part}");
        }
    }
}
