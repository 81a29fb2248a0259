//! The daemon: keeps the log open and the hooks compiled, and handles calls until it is told to
//! leave, has been idle for long enough, is called by a newer client, or its home is gone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, flock};
use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::holder::lock_file;
use super::message::RECEIVED;
use super::status::{Counters, describe, of_daemon};
use super::supervise::{ObserverProgram, Supervisor};
use super::{Build, Reply, Request, SocketPath};
use crate::bus::Bus;
use crate::decide::drain_notifications;
use crate::log::{LogReader, Recorder};
use crate::pipeline::handle;
use crate::relay::{NatsSettings, Relay};

/// How often the daemon looks around: is its home still there, is anybody calling.
const LOOK_AROUND: Duration = Duration::from_millis(500);

/// How long calls under way may take once the daemon is leaving.
const LAST_CALLS: Duration = Duration::from_mins(1);

/// How long plugins that only look on may then take until they know of what they are due.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Longer requests are no events.
const LONGEST_REQUEST: u64 = 1 << 30;

/// How long a daemon means to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// Until it is told to leave.
    ForGood,
    /// Until nobody has called for this long.
    UntilIdle(Duration),
}

/// Why a daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There is one.
    #[error(
        "a daemon is running already for {0}; `hookbus status` tells about it, `hookbus stop` ends it"
    )]
    Running(PathBuf),
    /// The home cannot be used.
    #[error("cannot use {path}: {error}")]
    Home {
        /// What was touched.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// A daemon that has its home to itself and listens.
#[derive(Debug)]
pub struct Daemon {
    bus: Bus,
    home: PathBuf,
    socket: SocketPath,
    listener: UnixListener,
    lock: File,
    stay: Stay,
    build: Build,
    counters: Counters,
    newer_client: Notify,
    /// Overrides the servers in `hookbus.yaml`.
    nats_urls: Option<Vec<String>>,
    relay: Mutex<Option<(NatsSettings, Relay)>>,
    supervisor: Mutex<Option<Supervisor>>,
}

/// What a daemon is to do.
#[derive(Debug, Clone)]
pub struct Plans {
    /// How long it stays.
    pub stay: Stay,
    /// The NATS servers, in place of those in `hookbus.yaml`.
    pub nats_urls: Option<Vec<String>>,
    /// How observers are started; none are where it is not said.
    pub observers: Option<ObserverProgram>,
}

impl Daemon {
    /// Takes the home and starts to listen. `make_bus` is called once the home is ours.
    pub fn start(
        home: &Path,
        plans: Plans,
        make_bus: impl FnOnce() -> Bus,
    ) -> Result<Self, ServeError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| ServeError::Home { path, error }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(failed(home))?;
        let lock_file = lock_file(home);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&lock_file)
            .map_err(failed(&lock_file))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| ServeError::Running(home.to_owned()))?;
        let socket = SocketPath::in_home(home);
        let listener = listen(&socket).map_err(failed(&socket.file()))?;
        Ok(Self {
            bus: make_bus(),
            home: home.to_owned(),
            socket,
            listener,
            lock,
            stay: plans.stay,
            build: Build::current(),
            counters: Counters::new(),
            newer_client: Notify::new(),
            nats_urls: plans.nats_urls,
            relay: Mutex::new(None),
            supervisor: Mutex::new(plans.observers.map(Supervisor::new)),
        })
    }

    /// Handles calls until it is time to leave.
    pub async fn serve(self) -> io::Result<()> {
        let mut asked_to_leave = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut look_around = tokio::time::interval(LOOK_AROUND);
        let mut marks = self.marks();
        let daemon = Arc::new(self);
        let spool = tokio::spawn(take_in_now_and_then(daemon.bus.recorder.clone()));
        tracing::info!(home = %daemon.home.display(), pid = std::process::id(), "serving");
        let reason = loop {
            tokio::select! {
                accepted = daemon.listener.accept() => match accepted {
                    Ok((stream, _)) => daemon.welcome(stream),
                    Err(error) => {
                        tracing::error!(%error, "cannot accept a call");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                _ = look_around.tick() => {
                    marks.log = marks.log.or(inode(daemon.bus.log.file()));
                    if let Some(reason) = daemon.reason_to_leave(&marks) {
                        break reason;
                    }
                    daemon.keep_relay();
                    daemon.keep_observers();
                    daemon.bus.projects.drop_idle(Instant::now());
                }
                () = daemon.newer_client.notified() => break "a newer client called",
                _ = asked_to_leave.recv() => break "asked to leave",
                _ = interrupted.recv() => break "interrupted",
            }
        };
        tracing::info!(reason, "leaving");
        spool.abort();
        daemon.leave(&marks).await;
        Ok(())
    }

    fn welcome(self: &Arc<Self>, stream: UnixStream) {
        // The file's mode keeps others out; this is for the case that somebody changed it.
        let ours = rustix::process::geteuid().as_raw();
        match stream.peer_cred() {
            Ok(peer) if peer.uid() == ours => {
                let daemon = Arc::clone(self);
                tokio::spawn(async move {
                    if let Err(error) = daemon.attend(stream).await {
                        tracing::debug!(%error, "a call broke off");
                    }
                });
            }
            Ok(peer) => tracing::warn!(uid = peer.uid(), "turned somebody else away"),
            Err(error) => tracing::warn!(%error, "cannot tell who is calling"),
        }
    }

    async fn attend(&self, mut stream: UnixStream) -> io::Result<()> {
        let length = stream.read_u64().await?;
        if length > LONGEST_REQUEST {
            return Err(io::Error::other("the request is too long"));
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        stream.read_exact(&mut bytes).await?;
        let request = Request::from_bytes(&bytes);
        let newer = Request::is_of_a_newer_client(&bytes);
        drop(bytes);
        stream.write_u8(RECEIVED).await?;
        let reply = match request {
            Some(Request::Call { build, .. }) if build > self.build => {
                self.newer_client.notify_one();
                Reply::Declined
            }
            Some(Request::Call { call, .. }) => {
                let _in_flight = self.counters.begin();
                let hung_up = || matches!(stream.try_read(&mut [0]), Ok(0));
                let answer = handle(*call, &self.bus, hung_up).await;
                Reply::Answer(answer.0.unwrap_or_default().into_bytes())
            }
            Some(Request::Status) => self.status(),
            None => {
                if newer {
                    self.newer_client.notify_one();
                }
                Reply::Declined
            }
        };
        stream.write_all(&reply.to_bytes()).await
    }

    fn status(&self) -> Reply {
        let leaves_after = match self.stay {
            Stay::ForGood => None,
            Stay::UntilIdle(after) => Some(after),
        };
        let mut state = describe(&self.bus.log, &self.bus.hooks);
        self.describe_processes(&mut state);
        state.insert("daemon".to_owned(), of_daemon(&self.counters, leaves_after));
        state.insert("relay".to_owned(), self.relay_report());
        Reply::Status(Value::Object(state).to_string().into_bytes())
    }

    fn nats(&self) -> Option<NatsSettings> {
        NatsSettings::chosen(self.bus.hooks.active().file.nats.clone(), self.nats_urls.as_deref())
    }

    /// Runs the observers in force, and no others.
    fn keep_observers(&self) {
        let active = self.bus.hooks.active();
        let names: Vec<String> =
            active.file.observer_names().into_iter().map(str::to_owned).collect();
        let version = (active.file.hash.clone(), self.nats());
        let mut supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(supervisor) = supervisor.as_mut() {
            supervisor.look_after(&names, &version);
        }
    }

    /// Whether an observer still has something to do.
    fn observers_are_busy(&self) -> bool {
        let state = describe(&self.bus.log, &self.bus.hooks);
        let observers = state.get("observers").and_then(Value::as_array).into_iter().flatten();
        observers.into_iter().any(|one| one["state"] == "working" && one["lag_events"] != 0)
    }

    /// What is known of the observers' processes, beside what they say themselves.
    fn describe_processes(&self, state: &mut Map<String, Value>) {
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
        let observers = state.get_mut("observers").and_then(Value::as_array_mut);
        for observer in observers.into_iter().flatten() {
            let name = observer["name"].as_str().unwrap_or_default().to_owned();
            observer["process"] =
                supervisor.as_ref().map_or(Value::Null, |supervisor| supervisor.describe(&name));
        }
    }

    /// Runs a relay with the settings of the moment, or none.
    fn keep_relay(&self) {
        let wanted = self.nats();
        let mut relay = self.relay.lock().unwrap_or_else(PoisonError::into_inner);
        if relay.as_ref().map(|(settings, _)| settings) == wanted.as_ref() {
            return;
        }
        *relay = wanted.map(|settings| {
            let (log, appended) = (self.bus.log.clone(), self.bus.recorder.appended());
            let started =
                Relay::start(log, settings.clone(), appended, Arc::clone(&self.bus.clock));
            (settings, started)
        });
    }

    fn relay_report(&self) -> Value {
        let relay = self.relay.lock().unwrap_or_else(PoisonError::into_inner);
        let head = LogReader::open(&self.bus.log).ok().and_then(|log| log.head().ok()).flatten();
        relay
            .as_ref()
            .map_or(Value::Null, |(_, relay)| relay.state().report(head, self.bus.clock.now()))
    }

    /// The files that tell whether this home is still ours.
    fn marks(&self) -> Marks {
        Marks { socket: inode(&self.socket.file()), log: inode(self.bus.log.file()) }
    }

    fn reason_to_leave(&self, marks: &Marks) -> Option<&'static str> {
        if inode(&self.socket.file()) != marks.socket {
            return Some("the home is gone");
        }
        // Writing on into a file that was taken away would keep nothing.
        if marks.log.is_some() && inode(self.bus.log.file()) != marks.log {
            return Some("the log is gone");
        }
        match self.stay {
            Stay::UntilIdle(after)
                if self.counters.idle() >= after && !self.observers_are_busy() =>
            {
                Some("idle")
            }
            Stay::UntilIdle(_) | Stay::ForGood => None,
        }
    }

    /// Makes room for a successor at once, then lets the calls under way finish.
    async fn leave(&self, marks: &Marks) {
        if inode(&self.socket.file()) == marks.socket
            && let Err(error) = fs::remove_file(self.socket.file())
        {
            tracing::warn!(%error, "the socket's file stays behind");
        }
        if let Err(error) = flock(&self.lock, FlockOperation::Unlock) {
            tracing::warn!(%error, "cannot give the home back");
        }
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut supervisor) = supervisor {
            supervisor.leave().await;
        }
        let finished = async {
            while self.counters.in_flight() > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(LAST_CALLS, finished).await.is_err() {
            tracing::warn!("left with calls under way");
        }
        let unheard = drain_notifications(LAST_WORDS).await;
        if unheard > 0 {
            tracing::warn!(
                unheard,
                "left before plugins had heard of all events that they only look on at"
            );
        }
        if self.home.is_dir() {
            self.bus.recorder.checkpoint().await;
        }
    }
}

/// Events that the log could not take come in as soon as it can.
async fn take_in_now_and_then(recorder: Recorder) {
    loop {
        recorder.take_in().await;
        tokio::time::sleep(LOOK_AROUND).await;
    }
}

struct Marks {
    socket: Option<u64>,
    log: Option<u64>,
}

fn inode(file: &Path) -> Option<u64> {
    fs::metadata(file).ok().map(|file| file.ino())
}

/// Binds the socket for this user only. Whoever was there before is gone: we hold the lock.
fn listen(socket: &SocketPath) -> io::Result<UnixListener> {
    match fs::remove_file(socket.file()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    // Set before the file appears: there is no moment in which others could connect.
    let before = rustix::process::umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let listener = socket.reach(|path| UnixListener::bind(path));
    rustix::process::umask(before);
    listener
}
