//! Redaction against a corpus that was written without looking at the detectors: some 600 kinds of secrets in twenty surroundings
//! each, some 500 places where secrets stand, private keys carried in twenty ways, in the payloads of four agents; and ordinary
//! strings. The lists are in `secrets/`.
//!
//! What is not found is named here, so that the rates cannot get worse unseen.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::collections::BTreeSet;

use hookbus::redact::{FingerprintKey, RedactionSettings, Redactor};
use hookbus_tests::secrets::{
    Case, Dice, SHAPES, leak, ordinary_strings, places, private_keys, tokens, values_of_names, wrap,
};

/// Places where nothing says that it is a secret, or so little that ordinary text would be touched.
const NOT_FOUND_PLACES: [&str; 13] = [
    "bitcoin-wif",
    "code-walrus",
    "expect-send",
    "gcp-access-secret",
    "git-askpass",
    "htdigest",
    "log-angle",
    "npm-set-otp",
    "openvpn-auth",
    "prose-credentials",
    "prose-otp",
    "prose-pin",
    "sasl-map",
];

/// Names that say nothing in some spellings.
const NOT_FOUND_NAMES: [&str; 3] =
    ["BUNDLE_ENTERPRISE__CONTRIBSYS__COM", "DESCOPE_MANAGEMENT_KEY", "SECRET_KEY_BASE"];

fn redactor() -> Redactor {
    Redactor::new(FingerprintKey::new([7; 32]), &RedactionSettings::default()).expect("a redactor")
}

/// The cases of which something is left in one of the payload shapes.
fn leaks<'a>(cases: &'a [Case], shapes: &[usize]) -> Vec<&'a Case> {
    let redactor = redactor();
    let leaks = |(index, case): &(usize, &Case)| {
        shapes.iter().any(|shape| {
            let payload = wrap(&case.text, (shape + index) % SHAPES);
            leak(&redactor.redact(&payload).bytes, &case.secret).is_some()
        })
    };
    cases.iter().enumerate().filter(leaks).map(|(_, case)| case).collect()
}

fn names(cases: &[&Case], of: fn(&Case) -> &String) -> BTreeSet<String> {
    cases.iter().map(|case| of(case).clone()).collect()
}

#[test]
fn tokens_are_found_in_neutral_surroundings() {
    for (list, seed) in
        [(include_str!("secrets/tokens.txt"), 1), (include_str!("secrets/more_tokens.txt"), 11)]
    {
        let cases = tokens(list, &mut Dice::new(seed));
        let left = leaks(&cases, &[0, 5]);
        assert_eq!(names(&left, |case| &case.kind), BTreeSet::new(), "{:#?}", left.first());
    }
}

#[test]
fn values_are_found_beside_their_names() {
    let cases = values_of_names(include_str!("secrets/named.txt"), &mut Dice::new(2));
    let left = leaks(&cases, &[0, 5]);
    let known: BTreeSet<String> = NOT_FOUND_NAMES.map(str::to_owned).into();
    assert!(names(&left, |case| &case.kind).is_subset(&known), "{left:#?}");
    assert!(left.len() * 500 < cases.len(), "{} of {}", left.len(), cases.len());
}

#[test]
fn secrets_are_found_where_they_stand() {
    let shapes: Vec<usize> = (0..SHAPES).collect();
    let known: BTreeSet<String> = NOT_FOUND_PLACES.map(str::to_owned).into();
    for (list, seed) in
        [(include_str!("secrets/places.txt"), 3), (include_str!("secrets/more_places.txt"), 13)]
    {
        let cases = places(list, &mut Dice::new(seed));
        let left = names(&leaks(&cases, &shapes), |case| &case.place);
        let unexpected: Vec<&String> = left.difference(&known).collect();
        assert!(unexpected.is_empty(), "{unexpected:?}");
    }
}

#[test]
fn private_keys_are_found_however_they_are_carried() {
    let cases = private_keys(&mut Dice::new(4));
    let left = leaks(&cases, &[0, 1, 3, 7, 8]);
    assert_eq!(names(&left, |case| &case.place), BTreeSet::new(), "{:#?}", left.first());
}

#[test]
fn ordinary_strings_stay_as_they_are() {
    let strings = ordinary_strings(include_str!("secrets/ordinary.txt"), 25, &mut Dice::new(5));
    assert!(strings.len() > 7_000, "{}", strings.len());
    let redactor = redactor();
    let mut touched = Vec::new();
    for (index, string) in strings.iter().enumerate() {
        let payload = wrap(string, index % SHAPES);
        if let Some(first) = redactor.redact(&payload).found.first() {
            touched.push(format!("{}: {string:?}", first.kind));
        }
    }
    // Fewer than one in a thousand.
    assert!(touched.len() * 1_000 < strings.len(), "{touched:#?}");
}
