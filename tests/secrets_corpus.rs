//! Redaction against a corpus that was written without looking at the detectors: some 570 kinds of secrets in some 20 surroundings
//! each, 400 places where secrets stand, private keys carried in 20 ways, in the payloads of four agents; and ordinary strings.
//!
//! The lists are in `secrets/`. What is not found is named here, so that the rates cannot get worse unseen.

#![expect(clippy::expect_used, clippy::panic, reason = "a test whose setup fails has failed")]

use std::collections::BTreeMap;
use std::fmt::Write;

use hookbus::redact::{FingerprintKey, RedactionSettings, Redactor};
use hookbus_tests::secrets::{
    Case, Dice, Leak, SHAPES, leak, ordinary_strings, places, private_keys, tokens, values_of_names, wrap,
};

const TOKENS: &str = include_str!("secrets/tokens.txt");
const NAMED: &str = include_str!("secrets/named.txt");
const PLACES: &str = include_str!("secrets/places.txt");
const ORDINARY: &str = include_str!("secrets/ordinary.txt");

fn redactor() -> Redactor {
    Redactor::new(FingerprintKey::new([7; 32]), &RedactionSettings::default()).expect("a redactor")
}

/// The cases of which something is left, with the output.
fn leaks(cases: &[Case], shapes: &[usize]) -> Vec<(Case, usize, Leak, String)> {
    let redactor = redactor();
    let mut found = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        for &shape in shapes {
            let shape = (shape + index) % SHAPES;
            let payload = wrap(&case.text, shape);
            let redacted = redactor.redact(&payload).bytes;
            if let Some(leak) = leak(&redacted, &case.secret) {
                let text = String::from_utf8_lossy(&redacted).into_owned();
                found.push((case.clone(), shape, leak, text));
            }
        }
    }
    found
}

fn report(title: &str, total: usize, found: &[(Case, usize, Leak, String)]) -> String {
    let mut text = format!("{title}: {} of {total} not found\n", found.len());
    for by_place in [false, true] {
        let mut counts: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
        for (case, ..) in found {
            let (key, other) = if by_place { (&case.place, &case.kind) } else { (&case.kind, &case.place) };
            let entry = counts.entry(key).or_default();
            entry.0 += 1;
            entry.1.push(other);
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, (count, _))| usize::MAX - count);
        for (key, (count, others)) in counts {
            let others: Vec<&str> = others.into_iter().take(12).collect();
            writeln!(text, "  {count:4} {key}: {}", others.join(", ")).expect("writing to a string");
        }
        text.push('\n');
    }
    for (case, shape, leak, out) in found.iter().step_by(1 + found.len() / 60) {
        let out: String = out.chars().take(600).collect();
        writeln!(text, "{leak:?} {} / {} / {shape}: {:?}\n   -> {out}", case.kind, case.place, case.text)
            .expect("writing to a string");
    }
    text
}

#[test]
fn tokens_are_found_in_neutral_surroundings() {
    let cases = tokens(TOKENS, &mut Dice::new(1));
    let found = leaks(&cases, &[0, 5]);
    assert!(found.is_empty(), "{}", report("tokens", cases.len() * 2, &found));
}

#[test]
fn values_are_found_beside_their_names() {
    let cases = values_of_names(NAMED, &mut Dice::new(2));
    let found = leaks(&cases, &[0, 5]);
    assert!(found.is_empty(), "{}", report("named", cases.len() * 2, &found));
}

#[test]
fn secrets_are_found_where_they_stand() {
    let cases = places(PLACES, &mut Dice::new(3));
    let shapes: Vec<usize> = (0..SHAPES).collect();
    let found = leaks(&cases, &shapes);
    assert!(found.is_empty(), "{}", report("places", cases.len() * SHAPES, &found));
}

#[test]
fn private_keys_are_found_however_they_are_carried() {
    let cases = private_keys(&mut Dice::new(4));
    let found = leaks(&cases, &[0, 1, 3, 7, 8]);
    assert!(found.is_empty(), "{}", report("keys", cases.len() * 5, &found));
}

#[test]
fn ordinary_strings_stay_as_they_are() {
    let strings = ordinary_strings(ORDINARY, 25, &mut Dice::new(5));
    let redactor = redactor();
    let mut touched = Vec::new();
    for (index, string) in strings.iter().enumerate() {
        let payload = wrap(string, index % SHAPES);
        let redacted = redactor.redact(&payload);
        if let Some(first) = redacted.found.first() {
            touched.push(format!("{}: {string:?}", first.mark));
        }
    }
    let rate = touched.len() * 1000;
    assert!(
        rate == 0,
        "{} of {} ordinary strings touched\n{}",
        touched.len(),
        strings.len(),
        touched.join("\n")
    );
}
