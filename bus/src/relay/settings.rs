//! The `nats:` part of `hookbus.yaml`: where the servers are, how to log in, what the stream is like.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

/// Where and how to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsSettings {
    /// The servers; any of them will do.
    pub urls: Vec<String>,
    /// The stream's name.
    pub stream: String,
    /// How many servers keep a copy.
    pub replicas: usize,
    /// How long events are kept; for ever where none.
    pub max_age: Option<Duration>,
    /// How many bytes are kept; any number where none.
    pub max_bytes: Option<i64>,
    /// How long the server remembers ids.
    pub duplicate_window: Duration,
    /// Who we are.
    pub login: Login,
    /// The certificate authority, where it is not a public one.
    pub ca: Option<PathBuf>,
    /// Our own certificate and its key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

/// How to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// As nobody, or as the URL says.
    None,
    /// With a name and a password.
    Password(String, Secret),
    /// With a token.
    Token(Secret),
    /// With the seed of an nkey.
    Nkey(Secret),
    /// With a credentials file.
    Credentials(PathBuf),
}

/// Something that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// For the one who needs it.
    pub(super) fn reveal(&self) -> String {
        self.0.clone()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
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
    /// The settings for these servers, all else as it is by default.
    pub fn at(urls: Vec<String>) -> Self {
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

    /// What is configured, with the servers in `urls` in place of its own where there are any.
    pub fn chosen(configured: Option<Self>, urls: Option<&[String]>) -> Option<Self> {
        match (configured, urls) {
            (Some(settings), Some(urls)) => Some(Self { urls: urls.to_vec(), ..settings }),
            (None, Some(urls)) => Some(Self::at(urls.to_vec())),
            (configured, None) => configured,
        }
    }

    /// Reads what stands under `nats:`; the error says what to write instead.
    pub fn read(fields: &Map<String, Value>) -> Result<Self, String> {
        if let Some(odd) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("`nats` has no `{odd}`; it has {}", KEYS.join(", ")));
        }
        let urls = match (fields.get("url"), fields.get("urls")) {
            (Some(Value::String(url)), None) => {
                url.split(',').map(|url| url.trim().to_owned()).collect()
            }
            (None, Some(Value::Array(urls))) if !urls.is_empty() => {
                urls.iter().map(|url| url.as_str().unwrap_or_default().to_owned()).collect()
            }
            _ => {
                return Err("`nats` needs a server; write `nats: { url: nats://127.0.0.1:4222 }`"
                    .to_owned());
            }
        };
        let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        let path = |key: &str| text(key).map(PathBuf::from);
        let seconds = |key: &str| fields.get(key).and_then(Value::as_u64).map(Duration::from_secs);
        let default = Self::at(urls);
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

fn login(text: &impl Fn(&str) -> Option<String>) -> Result<Login, String> {
    match (text("user"), text("password"), text("token"), text("nkey"), text("credentials")) {
        (None, None, None, None, None) => Ok(Login::None),
        (Some(user), Some(password), None, None, None) => {
            Ok(Login::Password(user, Secret(password)))
        }
        (None, None, Some(token), None, None) => Ok(Login::Token(Secret(token))),
        (None, None, None, Some(seed), None) => Ok(Login::Nkey(Secret(seed))),
        (None, None, None, None, Some(file)) => Ok(Login::Credentials(PathBuf::from(file))),
        _ => Err("`nats` takes one way to log in: user and password, token, nkey or credentials"
            .to_owned()),
    }
}
