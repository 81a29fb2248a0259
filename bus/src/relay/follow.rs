//! The relay itself: a thread that follows the log and publishes what is new. It has no memory
//! that matters: after any trouble it asks the stream how far it is, and goes on from there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::{self, Context, object_store};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::batch::{Ids, NotStored, publish};
use super::connect::connect;
use super::envelope::{Message, message};
use super::position::{self, Lost, Position};
use super::settings::NatsSettings;
use super::state::{Phase, RelayState};
use super::stream::{self, NoStream};
use crate::event::{BusId, Clock, EventId, Seq, Time};
use crate::log::{LogPath, LogReader, Query, Row};

/// Rows that other processes wrote are found this soon; our own wake us at once.
const LOOK: Duration = Duration::from_millis(200);

/// In quiet times the stream is asked this often whether it still holds what it held.
const LOOK_AT_STREAM: Duration = Duration::from_secs(3);

/// Before the first, second, … next try.
const BACK_OFF: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// A batch is this long at most; a server takes a thousand.
const MOST_MESSAGES: usize = 800;

/// And this large, so that a slow line acknowledges it in time.
const MOST_BYTES: usize = 4 << 20;

/// What subject and headers may need beside a body.
const HEADROOM: usize = 8 << 10;

/// The bucket for payloads that are larger than a message may be.
const BUCKET: &str = "HOOKBUS_LARGE";

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

struct Follower {
    log: LogPath,
    settings: NatsSettings,
    clock: Arc<dyn Clock>,
    appended: Arc<Notify>,
    state: RelayState,
    stop: Arc<AtomicBool>,
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
        let client =
            connect(&self.settings, "hookbus relay").await.map_err(Stopped::Interrupted)?;
        let context = jetstream::new(client.clone());
        let stream =
            stream::ready(&context, &self.settings).await.map_err(|error| match error {
                NoStream::NotNow(error) => Stopped::Interrupted(error),
                NoStream::Wrong(error) => Stopped::NeedsAPerson(error),
            })?;
        let line = Line { relay: self, client, context, bus };
        let (mut ids, mut refused_at) = (Ids::Sent, None);
        loop {
            let position = position::find(&stream, bus, &log).await.map_err(|lost| match lost {
                Lost::NotNow(error) => Stopped::Interrupted(error),
                Lost::Wrong(error) => Stopped::NeedsAPerson(error),
            })?;
            *tries = 0;
            self.state.published(position.logged, None);
            // Nothing of ours came in meanwhile, and it says that it has seen it: it forgot the
            // events (a purge, say) but not their ids. The guard alone must do then.
            ids = if refused_at == Some(position) { Ids::LeftOut } else { ids };
            match line.publish_from(position, ids).await {
                Ok(()) => return Ok(()),
                Err(NotStored::Overtaken) => (ids, refused_at) = (Ids::Sent, None),
                Err(NotStored::Remembered) => (ids, refused_at) = (Ids::Sent, Some(position)),
                Err(NotStored::Unknown(error)) => return Err(Stopped::Interrupted(error)),
                Err(NotStored::Refused(error)) => return Err(Stopped::NeedsAPerson(error)),
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

    async fn wait(&self) {
        // Either way there may be something new.
        if tokio::time::timeout(LOOK, self.appended.notified()).await.is_err() {
            tracing::trace!("nothing was appended here");
        }
    }
}

/// A connection in good order.
struct Line<'a> {
    relay: &'a Follower,
    client: Client,
    context: Context,
    bus: BusId,
}

impl Line<'_> {
    /// Publishes batch after batch. While one is on its way the next is read and written up.
    async fn publish_from(&self, mut position: Position, ids: Ids) -> Result<(), NotStored> {
        let mut looked = Instant::now();
        let mut next = self.prepare(position.logged);
        while !self.relay.stop.load(Ordering::Relaxed) {
            let ready = next.await.map_err(|error| NotStored::Unknown(error.to_string()))??;
            let Some((last, at)) = ready.last else {
                // Somebody may have emptied the stream: without new events nothing else would tell.
                if looked.elapsed() > LOOK_AT_STREAM {
                    return Err(NotStored::Overtaken);
                }
                self.relay.wait().await;
                next = self.prepare(position.logged);
                continue;
            };
            looked = Instant::now();
            next = self.prepare(Some(last));
            for row in &ready.large {
                self.store(&row.id.to_string(), &row.payload).await?;
            }
            let batch = EventId::mint(self.relay.clock.now());
            let (client, after) = (&self.client, position.streamed);
            let streamed = publish(client, self.bus, batch, after, ready.messages, ids).await?;
            position = Position { logged: Some(last), streamed };
            self.relay.state.published(Some(last), Some(at));
        }
        Ok(())
    }

    /// Reads the rows after `after` and makes messages of them, in a thread for such work.
    fn prepare(&self, after: Option<Seq>) -> JoinHandle<Result<Ready, NotStored>> {
        let (path, bus) = (self.relay.log.clone(), self.bus);
        let room = self.client.server_info().max_payload.saturating_sub(HEADROOM);
        tokio::task::spawn_blocking(move || {
            let rows = LogReader::open(&path)
                .map_err(Into::into)
                .and_then(|log| log.after(&Query::default(), after, MOST_MESSAGES))
                .map_err(|error| NotStored::Unknown(error.to_string()))?;
            Ok(Ready::of(rows, bus, room))
        })
    }

    async fn store(&self, object: &str, payload: &[u8]) -> Result<(), NotStored> {
        let lost = |error: &dyn std::fmt::Display| NotStored::Unknown(error.to_string());
        let bucket = match self.context.get_object_store(BUCKET).await {
            Ok(bucket) => bucket,
            Err(_) => {
                let config = object_store::Config {
                    bucket: BUCKET.to_owned(),
                    num_replicas: self.relay.settings.replicas,
                    ..object_store::Config::default()
                };
                self.context.create_object_store(config).await.map_err(|error| lost(&error))?
            }
        };
        let mut bytes = payload;
        bucket.put(object, &mut bytes).await.map_err(|error| lost(&error))?;
        Ok(())
    }
}

/// A batch that is ready to go.
struct Ready {
    messages: Vec<Message>,
    /// Rows whose payload goes to the object store first.
    large: Vec<Row>,
    last: Option<(Seq, Time)>,
}

impl Ready {
    /// As many of `rows` as one batch may hold; a body over `room` is referred to.
    fn of(rows: Vec<Row>, bus: BusId, room: usize) -> Self {
        let mut ready =
            Self { messages: Vec::with_capacity(rows.len()), large: Vec::new(), last: None };
        let mut bytes = 0;
        for row in rows {
            bytes += row.payload.len();
            if bytes > MOST_BYTES && ready.last.is_some() {
                break;
            }
            ready.last = Some((row.seq, row.at));
            let whole = message(bus, &row, None);
            if whole.body.len() <= room {
                ready.messages.push(whole);
            } else {
                let object = format!("{BUCKET}/{}", row.id);
                ready.messages.push(message(bus, &row, Some(&object)));
                ready.large.push(row);
            }
        }
        ready
    }
}
