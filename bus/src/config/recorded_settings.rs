//! The settings of a hooks file as the log records them, to notice and name changes: everything beside `hooks:`,
//! and no secrets. Of a server's address only what follows a user name and a password is recorded.

use serde_json::{Map, Value, json};

use super::nats::{Login, NatsSettings};
use super::yaml::Pair;

/// Keys of `nats:` whose values are not recorded.
const SECRETS: [&str; 4] = ["user", "password", "token", "nkey"];

/// Stands for a secret.
const SET: &str = "(set)";

/// The settings in `pairs` with one of the `known` keys, without `hooks` and without secrets.
pub(super) fn recorded_settings(pairs: &[Pair], known: &[&str]) -> Map<String, Value> {
    let is_setting = |pair: &&Pair| {
        let key = pair.key.as_str();
        !["hooks", "packs"].contains(&key) && known.contains(&key)
    };
    let value = |pair: &Pair| match (pair.key.as_str(), pair.value.to_json()) {
        ("nats", Value::Object(nats)) => Value::Object(without_secrets(nats)),
        // Whatever this is, it may hold a secret.
        ("nats", _) => json!(SET),
        (_, value) => value,
    };
    pairs.iter().filter(is_setting).map(|pair| (pair.key.clone(), value(pair))).collect()
}

fn without_secrets(nats: Map<String, Value>) -> Map<String, Value> {
    let clean = |(key, value): (String, Value)| {
        let value = match (key.as_str(), value) {
            (secret, _) if SECRETS.contains(&secret) => json!(SET),
            ("url", Value::String(urls)) => {
                json!(urls.split(',').map(without_login).collect::<Vec<_>>().join(","))
            }
            ("urls", Value::Array(urls)) => {
                let urls = urls.iter().filter_map(Value::as_str).map(without_login);
                json!(urls.collect::<Vec<_>>())
            }
            // A wrong type or an unknown key: a mistyped `pasword` holds a secret too.
            (key, value) => {
                let is_plain = PLAIN.contains(&key) && !value.is_object() && !value.is_array();
                if is_plain { value } else { json!(SET) }
            }
        };
        (key, value)
    };
    nats.into_iter().map(clean).collect()
}

/// The keys of `nats:` with a secret that differs. The log holds no secrets to compare with.
pub(crate) fn changed_secrets(before: &NatsSettings, after: &NatsSettings) -> Vec<String> {
    let (old, new) = (secrets(before), secrets(after));
    let differs = |(key, value): &&(&str, String)| !old.contains(&(*key, value.clone()));
    let gone = |(key, _): &&(&str, String)| !new.iter().any(|(kept, _)| kept == key);
    let changed = new.iter().filter(differs).chain(old.iter().filter(gone));
    changed.map(|(key, _)| format!("nats.{key}")).collect()
}

fn secrets(nats: &NatsSettings) -> Vec<(&'static str, String)> {
    let login = |url: &String| url.trim().rsplit_once('@').map(|(login, _)| login.to_owned());
    let in_urls: Vec<String> = nats.urls.iter().filter_map(login).collect();
    let mut secrets = match &nats.login {
        Login::None | Login::Credentials(_) => Vec::new(),
        Login::Password(user, password) => {
            vec![("user", user.clone()), ("password", password.reveal())]
        }
        Login::Token(token) => vec![("token", token.reveal())],
        Login::Nkey(seed) => vec![("nkey", seed.reveal())],
    };
    if !in_urls.is_empty() {
        secrets.push(("url", in_urls.join(" ")));
    }
    secrets
}

/// Keys of `nats:` whose values are recorded as they are.
const PLAIN: [&str; 9] = [
    "stream",
    "replicas",
    "max_age",
    "max_bytes",
    "duplicate_window",
    "credentials",
    "ca",
    "cert",
    "key",
];

/// An address without user name, password and query.
fn without_login(url: &str) -> String {
    let url = url.trim();
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    // A password may hold any character, so everything up to the last `@` is left out.
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    if scheme.is_empty() { rest.to_owned() } else { format!("{scheme}://{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_recorded_without_its_login() {
        for (url, clean) in [
            ("nats://n1:4222", "nats://n1:4222"),
            ("nats://me:hush@n1:4222", "nats://n1:4222"),
            ("nats://hush/@x@n1", "nats://n1"),
            ("me:hush@n1:4222", "n1:4222"),
            ("wss://n1/path?token=hush", "wss://n1/path"),
        ] {
            assert_eq!(without_login(url), clean, "{url}");
        }
    }

    #[test]
    fn a_changed_secret_is_named_and_not_shown() {
        let nats = |urls: &str, login: Value| {
            let mut fields = login.as_object().cloned().unwrap_or_default();
            fields.insert("url".to_owned(), json!(urls));
            NatsSettings::read(&fields).expect("settings")
        };
        let one = nats("nats://a", json!({"user": "me", "password": "one"}));
        let two = nats("nats://b", json!({"user": "me", "password": "two"}));
        assert_eq!(changed_secrets(&one, &two), ["nats.password"]);
        assert_eq!(changed_secrets(&one, &one), Vec::<String>::new());
        let in_url = nats("nats://me:hush@a", json!({}));
        assert_eq!(changed_secrets(&in_url, &one), ["nats.user", "nats.password", "nats.url"]);
    }

    #[test]
    fn secrets_and_mistyped_keys_are_named_without_their_values() {
        let nats = json!({"url": "nats://a:hush@h, nats://h2", "token": "hush", "pasword": "hush", "stream": "S"});
        let clean = without_secrets(nats.as_object().cloned().unwrap_or_default());
        assert_eq!(
            Value::Object(clean),
            json!({"url": "nats://h,nats://h2", "token": "(set)", "pasword": "(set)", "stream": "S"})
        );
    }
}
