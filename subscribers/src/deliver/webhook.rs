//! Posting events to an endpoint: the envelope as its body, signed in the way of the Standard
//! Webhooks specification, so that receivers can check it with a library they already have.

use std::ffi::OsString;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use hookbus::decide::{Place, SecretPlace, Webhook};
use hookbus::envelope;
use sha2::Sha256;
use ureq::Agent;

use super::Try;
use crate::source::Arrived;

/// What a secret starts with when it is given in base64.
const ENCODED: &str = "whsec_";

/// Posts to one endpoint.
#[derive(Debug, Clone)]
pub(super) struct Postman {
    webhook: Webhook,
    agent: Agent,
}

impl Postman {
    pub(super) fn new(webhook: &Webhook, timeout: Duration) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            // A receiver that moved is told where events go by a person, not by itself.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent(concat!("hookbus/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { webhook: webhook.clone(), agent: config.into() }
    }

    /// Whether the secrets it needs are there.
    pub(super) fn is_ready(&self, env: &[(OsString, OsString)]) -> Result<(), String> {
        self.webhook.secret.iter().try_for_each(|kept| secret(kept, env).map(drop))?;
        self.webhook.headers_env.iter().try_for_each(|(_, name)| variable(name, env).map(drop))
    }

    pub(super) async fn post(
        &self,
        arrived: &Arrived,
        place: &Place,
        this: Try,
    ) -> Result<(), String> {
        let body = envelope::write(arrived.bus, &arrived.row, None);
        let (id, timestamp) = (arrived.row.id.to_string(), this.now.millis().div_euclid(1000));
        let signature = match &self.webhook.secret {
            Some(kept) => Some(sign(&secret(kept, &place.env)?, &id, timestamp, &body)?),
            None => None,
        };
        let mut headers = vec![
            ("content-type".to_owned(), "application/cloudevents+json".to_owned()),
            ("webhook-id".to_owned(), id),
            ("webhook-timestamp".to_owned(), timestamp.to_string()),
            ("webhook-attempt".to_owned(), this.attempt.to_string()),
        ];
        headers.extend(signature.map(|signature| ("webhook-signature".to_owned(), signature)));
        if place.replayed {
            headers.push(("hookbus-replay".to_owned(), "1".to_owned()));
        }
        headers.extend(self.webhook.headers.iter().cloned());
        for (header, name) in &self.webhook.headers_env {
            headers.push((header.clone(), variable(name, &place.env)?));
        }
        let postman = self.clone();
        tokio::task::spawn_blocking(move || postman.send(&headers, &body))
            .await
            .map_err(|error| format!("cannot post: {error}"))?
    }

    fn send(&self, headers: &[(String, String)], body: &[u8]) -> Result<(), String> {
        let mut request = self.agent.post(&self.webhook.url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let response = request.send(body).map_err(|error| format!("cannot post: {error}"))?;
        let status = response.status();
        if status.is_success() { Ok(()) } else { Err(format!("the endpoint answered {status}")) }
    }
}

fn variable(name: &str, env: &[(OsString, OsString)]) -> Result<String, String> {
    env.iter()
        .find(|(key, _)| *key == *name)
        .map(|(_, value)| value.to_string_lossy().into_owned())
        .ok_or_else(|| format!("the secret is not in the environment; set {name}"))
}

fn secret(place: &SecretPlace, env: &[(OsString, OsString)]) -> Result<Vec<u8>, String> {
    let text = match place {
        SecretPlace::Env(name) => variable(name, env)?,
        SecretPlace::File(file) => std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read the secret in {}: {error}", file.display()))?,
    };
    let text = text.trim();
    match text.strip_prefix(ENCODED) {
        Some(encoded) => STANDARD
            .decode(encoded)
            .map_err(|_| "the secret after `whsec_` is not base64".to_owned()),
        None => Ok(text.as_bytes().to_vec()),
    }
}

/// `v1,` and the HMAC-SHA256 of `id.timestamp.body`.
fn sign(secret: &[u8], id: &str, timestamp: i64, body: &[u8]) -> Result<String, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret)
        .map_err(|error| format!("the secret cannot be used: {error}"))?;
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_the_specification() {
        // The example of the specification's own libraries.
        let place = SecretPlace::Env("S".to_owned());
        let env = [("S".into(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into())];
        let secret = secret(&place, &env).expect("a secret");
        let signed = sign(
            &secret,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed.as_deref(), Ok("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn a_missing_secret_says_what_to_set() {
        let error = secret(&SecretPlace::Env("NONE".to_owned()), &[]).unwrap_err();
        assert_eq!(error, "the secret is not in the environment; set NONE");
    }
}
