//! Connecting to NATS.

use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event};
use tokio::sync::watch;

use super::abilities::Abilities;
use super::settings::{Login, NatsSettings};

/// A server that does not answer by then is not there.
const CONNECT: Duration = Duration::from_secs(3);

/// A server that does not acknowledge by then does not, or is gone.
const ACKNOWLEDGED: Duration = Duration::from_secs(5);

/// A connection, and what is known of it.
#[derive(Debug)]
pub struct Connection {
    /// The client.
    pub client: Client,
    pub(super) abilities: Abilities,
    /// Whether it broke. The client connects again by itself, but what was under way is gone.
    pub(super) lost: watch::Receiver<bool>,
}

/// Connects, or says why not. Errors of the library do not hold secrets; the URL might, and is
/// not repeated.
pub async fn connect(settings: &NatsSettings, name: &str) -> Result<Connection, String> {
    let (losing, lost) = watch::channel(false);
    let mut options = ConnectOptions::new()
        .name(name)
        .connection_timeout(CONNECT)
        .request_timeout(Some(ACKNOWLEDGED))
        .max_reconnects(1)
        .event_callback(move |event| {
            if event == Event::Disconnected {
                losing.send_replace(true);
            }
            std::future::ready(())
        });
    options = match &settings.login {
        Login::None => options,
        Login::Password(user, password) => {
            options.user_and_password(user.clone(), password.reveal())
        }
        Login::Token(token) => options.token(token.reveal()),
        Login::Nkey(seed) => options.nkey(seed.reveal()),
        Login::Credentials(file) => options.credentials_file(file).await.map_err(|error| {
            format!("cannot read the credentials file {}: {error}", file.display())
        })?,
    };
    if let Some(ca) = &settings.ca {
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    if let Some((certificate, key)) = &settings.client_certificate {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    let client = tokio::time::timeout(CONNECT * 2, options.connect(&settings.urls)).await;
    let client = client
        .map_err(|_| {
            "NATS takes the connection but says nothing; is the server stopped, or is it something \
             else that listens there?"
                .to_owned()
        })?
        .map_err(|error| format!("cannot connect to NATS: {error}"))?;
    let abilities = Abilities::of(&client.server_info().version)?;
    Ok(Connection { client, abilities, lost })
}
