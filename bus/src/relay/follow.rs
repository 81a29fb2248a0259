//! The relay's thread: follows the log and publishes new rows. It keeps no state of its own: after any
//! error it reads the position from the stream and continues from there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use async_nats::jetstream;
use tokio::sync::Notify;

use super::batch::{MessageIds, PublishError, Publisher};
use super::batch_builder::BatchLimits;
use super::connect::{Connection, connect};
use super::error::RelayError;
use super::object_sweep::ObjectSweep;
use super::position::{PositionReader, StreamMemory};
use super::publish_loop::PublishLoop;
use super::state::{Phase, RelayState};
use super::stream;
use crate::backoff::Backoff;
use crate::config::NatsSettings;
use crate::event::Clock;
use crate::log::{LogPath, LogReader, OpenError};
use crate::sys::thread::{STACK_SIZE, spawn};

/// How often to look for rows of other processes. Rows of this process wake the relay at once.
const POLL_LOG: Duration = Duration::from_millis(200);

/// Between attempts to connect and publish.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(2) };

/// A relay that runs until it is dropped.
#[derive(Debug)]
pub struct Relay {
    state: RelayState,
    stop: Arc<AtomicBool>,
    appended: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts a relay for `log`. `appended` is notified after every append of this process.
    pub fn start(
        log: LogPath,
        settings: NatsSettings,
        appended: Arc<Notify>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (state, stop) = (RelayState::new(), Arc::new(AtomicBool::new(false)));
        let follower = Follower {
            log,
            settings,
            clock,
            appended: Arc::clone(&appended),
            state: state.clone(),
            stop: Arc::clone(&stop),
        };
        let thread = spawn("relay", move || follower.run());
        if let Err(error) = &thread {
            state.failed(Phase::Stuck, &format!("cannot start the thread of the relay: {error}"));
        }
        Self { state, stop, appended, thread: thread.ok() }
    }

    /// Its state.
    pub const fn state(&self) -> &RelayState {
        &self.state
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.appended.notify_one();
        // The thread ends by itself, at the latest after a timeout. It is not joined: being killed
        // at any point is safe.
        drop(self.thread.take());
    }
}

/// What the relay's thread works with.
pub(super) struct Follower {
    log: LogPath,
    pub(super) settings: NatsSettings,
    pub(super) clock: Arc<dyn Clock>,
    appended: Arc<Notify>,
    pub(super) state: RelayState,
    pub(super) stop: Arc<AtomicBool>,
}

impl Follower {
    fn run(self) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        match runtime.enable_all().thread_stack_size(STACK_SIZE).build() {
            Ok(runtime) => runtime.block_on(self.follow()),
            Err(error) => {
                self.state.failed(Phase::Stuck, &format!("cannot start the runtime: {error}"));
            }
        }
    }

    async fn follow(&self) {
        let (mut failures, mut memory) = (0, StreamMemory::default());
        let mut objects = ObjectSweep::default();
        while !self.stop.load(Ordering::Relaxed) {
            let Err(error) =
                self.connect_and_publish(&mut failures, &mut memory, &mut objects).await
            else {
                return;
            };
            if failures == 0 {
                tracing::warn!(%error, "the relay is interrupted");
            }
            let phase = if error.needs_user() { Phase::Stuck } else { Phase::Connecting };
            self.state.failed(phase, &error.to_string());
            failures = failures.saturating_add(1);
            tokio::time::sleep(BACKOFF.delay(failures)).await;
        }
    }

    async fn connect_and_publish(
        &self,
        failures: &mut u32,
        memory: &mut StreamMemory,
        objects: &mut ObjectSweep,
    ) -> Result<(), RelayError> {
        let connection = connect(&self.settings, "hookbus relay").await?;
        let (context, features) = (jetstream::new(connection.client.clone()), connection.features);
        // Before there is a first event: subscribers can start, and a wrong setting shows.
        let mut stream = stream::get_or_create(&context, &self.settings, features).await?;
        let log = self.open_log(&connection).await?;
        let bus = log.bus()?;
        let limits = BatchLimits {
            max_payload: connection.client.server_info().max_payload,
            max_messages: features.max_batch(),
        };
        let publisher = Publisher::new(&connection, bus);
        let publish_loop = PublishLoop { relay: self, publisher, context, bus, limits };
        let (mut ids, mut refused_at) = (MessageIds::Sent, None);
        loop {
            let reader = PositionReader { stream: &mut stream, features, bus, log: &log };
            let position = reader.find(memory).await?;
            self.state.position_found(position.seq, features.note(), memory.foreign);
            objects.run(&publish_loop.context, &stream, (bus, &log)).await;
            // The server refused the ids as duplicates, but the position has not changed since: it
            // remembers the ids of messages that it no longer holds (after a purge). The expected
            // position alone then prevents duplicates.
            ids = if refused_at == Some(position.seq) { MessageIds::LeftOut } else { ids };
            let reader = self.open_log(&connection).await?;
            match publish_loop.publish_from(position, ids, reader, failures).await {
                Ok(()) => return Ok(()),
                Err(PublishError::StalePosition) => (ids, refused_at) = (MessageIds::Sent, None),
                Err(PublishError::IdsRefused) => {
                    (ids, refused_at) = (MessageIds::Sent, Some(position.seq));
                }
                Err(
                    error @ (PublishError::Interrupted(_)
                    | PublishError::NoAcknowledgement
                    | PublishError::Refused(_)),
                ) => return Err(error.into()),
            }
        }
    }

    /// Opens the log, and waits for it if it does not exist yet: the first event creates it.
    async fn open_log(&self, connection: &Connection) -> Result<LogReader, RelayError> {
        loop {
            match LogReader::open(&self.log) {
                Ok(log) => return Ok(log),
                Err(OpenError::Missing(_)) if !self.stop.load(Ordering::Relaxed) => {
                    if *connection.lost.borrow() {
                        let why = "the connection to NATS is lost".to_owned();
                        return Err(PublishError::Interrupted(why).into());
                    }
                    self.state.published(None);
                    self.wait().await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for an append of this process, or until it is time to look for rows of others.
    pub(super) async fn wait(&self) {
        if tokio::time::timeout(POLL_LOG, self.appended.notified()).await.is_err() {
            tracing::trace!("no append in this process");
        }
    }
}
