//! One connection to NATS for everything an observer's process does over it.

use std::sync::Arc;

use async_nats::Client;
use async_nats::connection::State;
use hookbus::relay::{NatsSettings, connect};
use tokio::sync::Mutex;

use crate::ledger::Trouble;

/// A connection that is made when it is needed, and made anew when it broke.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) settings: NatsSettings,
    client: Arc<Mutex<Option<Client>>>,
}

impl Line {
    pub(crate) fn to(settings: NatsSettings) -> Self {
        Self { settings, client: Arc::new(Mutex::new(None)) }
    }

    /// The same connection, to read another stream.
    pub(crate) fn for_stream(&self, stream: String) -> Self {
        let settings = NatsSettings { stream, ..self.settings.clone() };
        Self { settings, client: Arc::clone(&self.client) }
    }

    /// A client that is connected.
    pub(crate) async fn client(&self) -> Result<Client, Trouble> {
        let mut kept = self.client.lock().await;
        if let Some(client) = kept.as_ref()
            && client.connection_state() == State::Connected
        {
            return Ok(client.clone());
        }
        let connected = connect(&self.settings, "hookbus observer").await;
        let connected = connected.map_err(|error| Trouble(error.to_string()))?;
        Ok(kept.insert(connected.client).clone())
    }

    /// Lets go of a connection that does not answer; whoever needs one next makes it anew.
    pub(crate) async fn give_up(&self) {
        self.client.lock().await.take();
    }
}
