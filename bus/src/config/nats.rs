//! The `nats:` section of `hookbus.yaml`: the servers, the login, the stream.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::problem::hint;

/// How to reach NATS, and how to configure the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsSettings {
    /// The servers of one cluster; the client connects to any of them.
    pub urls: Vec<String>,
    /// The stream's name.
    pub stream: String,
    /// How many servers of the cluster store the stream.
    pub replicas: usize,
    /// How long the stream keeps events; no limit if none.
    pub max_age: Option<Duration>,
    /// How many bytes the stream keeps; no limit if none.
    pub max_bytes: Option<i64>,
    /// How long the server remembers message ids to refuse duplicates.
    pub duplicate_window: Duration,
    /// How to log in.
    pub login: Login,
    /// The certificate authority of the server, if it is not a public one.
    pub ca: Option<PathBuf>,
    /// The client certificate and its key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

/// How to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// Without credentials, or with those in the URL.
    None,
    /// With a user name and a password.
    Password(String, Secret),
    /// With a token.
    Token(Secret),
    /// With the seed of an nkey.
    Nkey(Secret),
    /// With a credentials file.
    Credentials(PathBuf),
}

/// A secret. Its `Debug` output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for the NATS client.
    pub(crate) fn reveal(&self) -> String {
        self.0.clone()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// What is wrong with the `nats:` section.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NatsSettingsError {
    /// A key that does not exist.
    #[error("`nats` has no `{0}`{hint}; it has {keys}", hint = hint(.0, KEYS, ""), keys = KEYS.join(", "))]
    UnknownKey(String),
    /// Neither `url` nor `urls`, or both.
    #[error("`nats` needs a server; write `nats: {{ url: nats://127.0.0.1:4222 }}`")]
    NoServer,
    /// A value of the wrong kind.
    #[error("`{0}` under `nats` is {1}")]
    WrongValue(&'static str, &'static str),
    /// A client certificate without its key, or the other way round.
    #[error("`cert` and `key` under `nats` belong together; write both or none")]
    HalfACertificate,
    /// More than one way to log in, or an incomplete one.
    #[error("`nats` takes one way to log in: user and password, token, nkey or credentials")]
    SeveralLogins,
}

const KEYS: [&str; 15] = [
    "url",
    "urls",
    "stream",
    "replicas",
    "max_age",
    "max_bytes",
    "duplicate_window",
    "user",
    "password",
    "token",
    "nkey",
    "credentials",
    "ca",
    "cert",
    "key",
];

impl NatsSettings {
    /// Settings for these servers, with defaults for the rest.
    pub fn for_servers(urls: Vec<String>) -> Self {
        Self {
            urls,
            stream: "HOOKBUS".to_owned(),
            replicas: 1,
            max_age: None,
            max_bytes: None,
            duplicate_window: Duration::from_mins(2),
            login: Login::None,
            ca: None,
            client_certificate: None,
        }
    }

    /// The configured settings, with `urls` instead of the configured servers if given.
    pub fn with_servers(configured: Option<Self>, urls: Option<&[String]>) -> Option<Self> {
        match (configured, urls) {
            (Some(settings), Some(urls)) => Some(Self { urls: urls.to_vec(), ..settings }),
            (None, Some(urls)) => Some(Self::for_servers(urls.to_vec())),
            (configured, None) => configured,
        }
    }

    /// Reads the fields of the `nats:` section.
    pub(super) fn read(fields: &Map<String, Value>) -> Result<Self, NatsSettingsError> {
        if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(NatsSettingsError::UnknownKey(unknown.clone()));
        }
        let urls = match (fields.get("url"), fields.get("urls")) {
            (Some(Value::String(url)), None) => {
                url.split(',').map(|url| url.trim().to_owned()).collect()
            }
            (None, Some(Value::Array(urls))) if !urls.is_empty() => {
                urls.iter().map(|url| url.as_str().unwrap_or_default().to_owned()).collect()
            }
            _ => return Err(NatsSettingsError::NoServer),
        };
        check_values(fields)?;
        let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        let path = |key: &str| text(key).map(PathBuf::from);
        let seconds = |key: &str| fields.get(key).and_then(Value::as_u64).map(Duration::from_secs);
        let default = Self::for_servers(urls);
        Ok(Self {
            stream: text("stream").unwrap_or(default.stream),
            replicas: fields
                .get("replicas")
                .and_then(Value::as_u64)
                .map_or(1, |n| usize::try_from(n).unwrap_or(1)),
            max_age: seconds("max_age"),
            max_bytes: fields.get("max_bytes").and_then(Value::as_i64),
            duplicate_window: seconds("duplicate_window").unwrap_or(default.duplicate_window),
            login: login(&text)?,
            ca: path("ca"),
            client_certificate: path("cert").zip(path("key")),
            urls: default.urls,
        })
    }
}

/// Whether every value is of the right kind: a wrong one must not count as absent.
fn check_values(fields: &Map<String, Value>) -> Result<(), NatsSettingsError> {
    let is_wrong = |key: &str, is_right: fn(&Value) -> bool| {
        fields.get(key).is_some_and(|value| !value.is_null() && !is_right(value))
    };
    for key in ["replicas", "max_age", "max_bytes", "duplicate_window"] {
        if is_wrong(key, |value| value.as_u64().is_some()) {
            return Err(NatsSettingsError::WrongValue(
                key,
                "a whole number; write it without quotes",
            ));
        }
    }
    for key in ["stream", "user", "password", "token", "nkey", "credentials", "ca", "cert", "key"] {
        if is_wrong(key, Value::is_string) {
            return Err(NatsSettingsError::WrongValue(key, "a text; put it in quotes"));
        }
    }
    if fields.contains_key("cert") != fields.contains_key("key") {
        return Err(NatsSettingsError::HalfACertificate);
    }
    Ok(())
}

fn login(text: &impl Fn(&str) -> Option<String>) -> Result<Login, NatsSettingsError> {
    match (text("user"), text("password"), text("token"), text("nkey"), text("credentials")) {
        (None, None, None, None, None) => Ok(Login::None),
        (Some(user), Some(password), None, None, None) => {
            Ok(Login::Password(user, Secret(password)))
        }
        (None, None, Some(token), None, None) => Ok(Login::Token(Secret(token))),
        (None, None, None, Some(seed), None) => Ok(Login::Nkey(Secret(seed))),
        (None, None, None, None, Some(file)) => Ok(Login::Credentials(PathBuf::from(file))),
        _ => Err(NatsSettingsError::SeveralLogins),
    }
}
