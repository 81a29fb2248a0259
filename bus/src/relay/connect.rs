//! Connects to NATS.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event};
use tokio::sync::watch;

use super::server_features::{ServerFeatures, UnsupportedServer};
use crate::config::{Login, NatsSettings};

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a server may take to acknowledge a message.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection, and what is known about it.
#[derive(Debug)]
pub struct Connection {
    /// The client.
    pub client: Client,
    pub(super) features: ServerFeatures,
    /// Becomes true when the connection breaks. The client reconnects by itself, but requests that
    /// were in flight get no reply.
    pub(super) lost: watch::Receiver<bool>,
}

/// Why there is no connection. No message contains the URL or a secret.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The credentials file cannot be read.
    #[error("cannot read the credentials file {}: {error}", .file.display())]
    Credentials {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The port accepts connections, but does not speak NATS.
    #[error(
        "the NATS server accepts the connection but sends nothing; is its process stopped, or does \
         another program listen on this port?"
    )]
    NoGreeting,
    /// No server can be reached, or the login is refused.
    #[error("cannot connect to NATS: {0}")]
    Refused(#[from] async_nats::ConnectError),
    /// The server is too old.
    #[error(transparent)]
    Unsupported(#[from] UnsupportedServer),
}

/// Connects; `name` is shown in the server's list of connections.
pub async fn connect(settings: &NatsSettings, name: &str) -> Result<Connection, ConnectError> {
    let (set_lost, lost) = watch::channel(false);
    let mut options = ConnectOptions::new()
        .name(name)
        .connection_timeout(CONNECT_TIMEOUT)
        .request_timeout(Some(ACKNOWLEDGE_TIMEOUT))
        .max_reconnects(1)
        .event_callback(move |event| {
            if event == Event::Disconnected {
                set_lost.send_replace(true);
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
        Login::Credentials(file) => options
            .credentials_file(file)
            .await
            .map_err(|error| ConnectError::Credentials { file: file.clone(), error })?,
    };
    if let Some(ca) = &settings.ca {
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    if let Some((certificate, key)) = &settings.client_certificate {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    let client = tokio::time::timeout(CONNECT_TIMEOUT * 2, options.connect(&settings.urls))
        .await
        .map_err(|_| ConnectError::NoGreeting)??;
    let features = ServerFeatures::of_version(&client.server_info().version)?;
    Ok(Connection { client, features, lost })
}
