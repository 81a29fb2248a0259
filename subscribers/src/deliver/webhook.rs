//! Posts events to an HTTP endpoint: the body is the envelope, signed as the Standard Webhooks specification
//! says, so that receivers can verify it with an existing library.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use hookbus::config::{SecretSource, Webhook};
use hookbus::envelope;
use sha2::Sha256;
use ureq::Agent;
use ureq::http::StatusCode;

use super::delivery::Attempt;
use super::home_path::expand_home;
use super::input::DeliveryContext;
use crate::source::SourceEvent;

/// The prefix of a secret that is given in base64.
const BASE64_PREFIX: &str = "whsec_";

/// Why an event was not posted.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// A variable that holds a secret is not set.
    #[error(
        "the secret is not in the environment; set {0}, or write it into observers.env in the home"
    )]
    NoVariable(String),
    /// The file that holds the secret cannot be read.
    #[error("cannot read the secret in {}: {error}", file.display())]
    NoFile {
        /// The file.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The secret is malformed.
    #[error("the secret after `whsec_` is not base64")]
    NotBase64,
    /// The secret cannot be an HMAC key.
    #[error("the secret cannot be used as a key: {0}")]
    BadKey(String),
    /// The request failed.
    #[error("cannot post: {0}")]
    Post(String),
    /// The endpoint refused the event.
    #[error("the endpoint answered {0}")]
    Status(StatusCode),
}

/// Posts to one endpoint.
#[derive(Debug, Clone)]
pub(super) struct WebhookSender {
    webhook: Webhook,
    agent: Agent,
}

impl WebhookSender {
    pub(super) fn new(webhook: &Webhook, timeout: Duration) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            // Where events go is decided by the configuration, not by the receiver.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent(concat!("hookbus/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { webhook: webhook.clone(), agent: config.into() }
    }

    /// Whether the secrets that it needs are there.
    pub(super) fn check_ready(&self, env: &[(OsString, OsString)]) -> Result<(), WebhookError> {
        self.webhook.secret.iter().try_for_each(|place| secret(place, env).map(drop))?;
        self.webhook.headers_env.iter().try_for_each(|(_, name)| variable(name, env).map(drop))
    }

    pub(super) async fn post(
        &self,
        event: &SourceEvent,
        context: &DeliveryContext,
        attempt: Attempt,
    ) -> Result<(), WebhookError> {
        let body = envelope::write(event.bus, &event.row, None);
        let (id, timestamp) = (event.row.id.to_string(), attempt.now.millis().div_euclid(1000));
        let signature = match &self.webhook.secret {
            Some(at) => Some(sign(&secret(at, &context.env)?, &id, timestamp, &body)?),
            None => None,
        };
        let mut headers = vec![
            ("content-type".to_owned(), "application/cloudevents+json".to_owned()),
            ("webhook-id".to_owned(), id),
            ("webhook-timestamp".to_owned(), timestamp.to_string()),
            ("webhook-attempt".to_owned(), attempt.number.to_string()),
        ];
        headers.extend(signature.map(|signature| ("webhook-signature".to_owned(), signature)));
        if context.replayed {
            headers.push(("hookbus-replay".to_owned(), "1".to_owned()));
        }
        headers.extend(self.webhook.headers.iter().cloned());
        for (header, name) in &self.webhook.headers_env {
            headers.push((header.clone(), variable(name, &context.env)?));
        }
        let sender = self.clone();
        tokio::task::spawn_blocking(move || sender.send(&headers, &body))
            .await
            .map_err(|error| WebhookError::Post(error.to_string()))?
    }

    fn send(&self, headers: &[(String, String)], body: &[u8]) -> Result<(), WebhookError> {
        let mut request = self.agent.post(&self.webhook.url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let response = request.send(body).map_err(|error| WebhookError::Post(error.to_string()))?;
        let status = response.status();
        if status.is_success() { Ok(()) } else { Err(WebhookError::Status(status)) }
    }
}

fn variable(name: &str, env: &[(OsString, OsString)]) -> Result<String, WebhookError> {
    env.iter()
        .find(|(key, _)| *key == *name)
        .map(|(_, value)| value.to_string_lossy().into_owned())
        .ok_or_else(|| WebhookError::NoVariable(name.to_owned()))
}

fn secret(source: &SecretSource, env: &[(OsString, OsString)]) -> Result<Vec<u8>, WebhookError> {
    let text = match source {
        SecretSource::Env(name) => variable(name, env)?,
        SecretSource::File(file) => std::fs::read_to_string(expand_home(file, env))
            .map_err(|error| WebhookError::NoFile { file: file.clone(), error })?,
    };
    let text = text.trim();
    match text.strip_prefix(BASE64_PREFIX) {
        Some(encoded) => STANDARD.decode(encoded).map_err(|_| WebhookError::NotBase64),
        None => Ok(text.as_bytes().to_vec()),
    }
}

/// `v1,` and the HMAC-SHA256 of `id.timestamp.body`.
fn sign(secret: &[u8], id: &str, timestamp: i64, body: &[u8]) -> Result<String, WebhookError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret)
        .map_err(|error| WebhookError::BadKey(error.to_string()))?;
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_the_example_of_the_specification() {
        // From the libraries of the specification.
        let place = SecretSource::Env("S".to_owned());
        let env = [("S".into(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into())];
        let secret = secret(&place, &env).expect("a secret");
        let signed = sign(
            &secret,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed.expect("a signature"), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn the_error_for_a_missing_secret_names_the_variable_to_set() {
        let error = secret(&SecretSource::Env("NONE".to_owned()), &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the secret is not in the environment; set NONE, or write it into observers.env in the home"
        );
    }
}
