//! The relay itself: a thread that follows the log and publishes what is new. It has no memory
//! that matters: after any trouble it asks the stream how far it is, and goes on from there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use async_nats::jetstream;
use tokio::sync::Notify;

use super::batch::{Ids, NotStored, Publisher};
use super::connect::connect;
use super::line::Line;
use super::position::{self, Lost};
use super::ready::Limits;
use super::settings::NatsSettings;
use super::state::{Phase, RelayState};
use super::stream::{self, NoStream};
use crate::event::Clock;
use crate::log::{LogPath, LogReader};

/// Rows that other processes wrote are found this soon; our own wake us at once.
const LOOK: Duration = Duration::from_millis(200);

/// Before the first, second, … next try.
const BACK_OFF: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// A relay that runs until it is dropped.
#[derive(Debug)]
pub struct Relay {
    state: RelayState,
    stop: Arc<AtomicBool>,
    appended: Arc<Notify>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Relay {
    /// Follows `log`. `appended` is notified after every append of this process.
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
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(move || follower.run());
        if let Err(error) = &thread {
            state.trouble(Phase::Stuck, &format!("cannot start the relay's thread: {error}"));
        }
        Self { state, stop, appended, thread: thread.ok() }
    }

    /// How it is doing.
    pub const fn state(&self) -> &RelayState {
        &self.state
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.appended.notify_one();
        // It ends by itself within a look or a time-out; nothing it does needs an orderly end.
        drop(self.thread.take());
    }
}

pub(super) struct Follower {
    log: LogPath,
    pub(super) settings: NatsSettings,
    pub(super) clock: Arc<dyn Clock>,
    appended: Arc<Notify>,
    pub(super) state: RelayState,
    pub(super) stop: Arc<AtomicBool>,
}

/// Why publishing stopped.
enum Stopped {
    /// Try again.
    Interrupted(String),
    /// Try again, but a person should know.
    NeedsAPerson(String),
}

impl Follower {
    fn run(self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(self.follow()),
            Err(error) => self.state.trouble(Phase::Stuck, &format!("no runtime: {error}")),
        }
    }

    async fn follow(&self) {
        let mut tries = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let stopped = self.connect_and_publish(&mut tries).await;
            let (phase, error) = match stopped {
                Ok(()) => return,
                Err(Stopped::Interrupted(error)) => (Phase::Connecting, error),
                Err(Stopped::NeedsAPerson(error)) => (Phase::Stuck, error),
            };
            if tries == 0 {
                tracing::warn!(error, "the relay is interrupted");
            }
            self.state.trouble(phase, &error);
            tokio::time::sleep(BACK_OFF[tries.min(BACK_OFF.len() - 1)]).await;
            tries += 1;
        }
    }

    async fn connect_and_publish(&self, tries: &mut usize) -> Result<(), Stopped> {
        let log = self.open_log().await?;
        let bus = log.bus().map_err(|error| Stopped::Interrupted(error.to_string()))?;
        let connection =
            connect(&self.settings, "hookbus relay").await.map_err(Stopped::Interrupted)?;
        let (context, abilities) =
            (jetstream::new(connection.client.clone()), connection.abilities);
        let mut stream = stream::ready(&context, &self.settings, abilities).await.map_err(
            |error| match error {
                NoStream::NotNow(error) => Stopped::Interrupted(error),
                NoStream::Wrong(error) => Stopped::NeedsAPerson(error),
            },
        )?;
        let limits = Limits {
            max_payload: connection.client.server_info().max_payload,
            most_messages: abilities.most_messages(),
        };
        let publisher = Publisher::new(&connection, bus);
        let line = Line { relay: self, publisher, context, bus, limits };
        let (mut ids, mut refused_at) = (Ids::Sent, None);
        loop {
            let position = position::find(&mut stream, abilities, bus, &log).await;
            let position = position.map_err(|lost| match lost {
                Lost::NotNow(error) => Stopped::Interrupted(error),
                Lost::Wrong(error) => Stopped::NeedsAPerson(error),
            })?;
            self.state.found(position.logged, abilities.note());
            // Nothing of ours came in meanwhile, and it says that it has seen it: it forgot the
            // events (a purge, say) but not their ids. The guard alone must do then.
            ids = if refused_at == Some(position.logged) { Ids::LeftOut } else { ids };
            let reader = self.open_log().await?;
            let stored = line.publish_from(position, ids, reader, tries).await;
            match stored {
                Ok(()) => return Ok(()),
                Err(NotStored::Overtaken) => (ids, refused_at) = (Ids::Sent, None),
                Err(NotStored::NotWithIds) => {
                    (ids, refused_at) = (Ids::Sent, Some(position.logged));
                }
                Err(error @ NotStored::Unknown(_)) => {
                    return Err(Stopped::Interrupted(error.to_string()));
                }
                Err(error @ (NotStored::Silence | NotStored::Refused(_))) => {
                    return Err(Stopped::NeedsAPerson(error.to_string()));
                }
            }
        }
    }

    /// Waits for the log to be there: it appears with the first event.
    async fn open_log(&self) -> Result<LogReader, Stopped> {
        loop {
            match LogReader::open(&self.log) {
                Ok(log) => return Ok(log),
                Err(crate::log::OpenError::Missing(_)) if !self.stop.load(Ordering::Relaxed) => {
                    self.wait().await;
                }
                Err(error) => return Err(Stopped::Interrupted(error.to_string())),
            }
        }
    }

    pub(super) async fn wait(&self) {
        // Either way there may be something new.
        if tokio::time::timeout(LOOK, self.appended.notified()).await.is_err() {
            tracing::trace!("nothing was appended here");
        }
    }
}
