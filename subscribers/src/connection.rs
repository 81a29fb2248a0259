//! The NATS connection that all workers of one observer process share, and the error of every call
//! that goes over it.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use async_nats::connection::State;
use hookbus::config::NatsSettings;
use hookbus::relay::{ConnectError, connect};
use tokio::sync::Mutex;

/// Why a call to NATS failed. All of these can be temporary: reconnect and retry.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NatsError {
    /// No connection.
    #[error("{0}")]
    Connect(Arc<ConnectError>),
    /// The server did not answer in time.
    #[error("NATS did not answer within {} s; is the server overloaded or stopped?", .0.as_secs())]
    TimedOut(Duration),
    /// The server refused the call, or the connection broke.
    #[error("cannot {action}: {reason}")]
    Failed {
        /// What was attempted.
        action: String,
        /// What NATS said.
        reason: String,
    },
    /// The stream was deleted, emptied or restored from a backup while it was read.
    #[error("the stream was replaced or emptied; reading it from its start")]
    StreamReset,
}

impl From<ConnectError> for NatsError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(Arc::new(error))
    }
}

impl NatsError {
    /// For `map_err`: wraps what the NATS library said about `action`.
    pub(crate) fn failed<E: Display>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        |error| Self::Failed { action: action.into(), reason: error.to_string() }
    }
}

/// Waits for an answer of the server, at most this long.
pub(crate) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = T>,
) -> Result<T, NatsError> {
    tokio::time::timeout(limit, answer).await.map_err(|_| NatsError::TimedOut(limit))
}

/// A connection that opens on first use and reconnects after it broke.
#[derive(Debug, Clone)]
pub(crate) struct NatsConnection {
    pub(crate) settings: NatsSettings,
    client: Arc<Mutex<Option<Client>>>,
}

impl NatsConnection {
    pub(crate) fn new(settings: NatsSettings) -> Self {
        Self { settings, client: Arc::new(Mutex::new(None)) }
    }

    /// The same connection, to read another stream.
    pub(crate) fn for_stream(&self, stream: String) -> Self {
        let settings = NatsSettings { stream, ..self.settings.clone() };
        Self { settings, client: Arc::clone(&self.client) }
    }

    /// A connected client.
    pub(crate) async fn client(&self) -> Result<Client, NatsError> {
        let mut shared = self.client.lock().await;
        if let Some(client) = shared.as_ref()
            && client.connection_state() == State::Connected
        {
            return Ok(client.clone());
        }
        let connected = connect(&self.settings, "hookbus observer").await;
        Ok(shared.insert(connected?.client).clone())
    }

    /// Drops a connection that does not answer; the next caller opens a new one.
    pub(crate) async fn reset(&self) {
        self.client.lock().await.take();
    }
}
