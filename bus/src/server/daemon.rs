//! The daemon: keeps the log open and the hooks compiled, and handles calls. It exits on a signal, when it
//! was idle for long enough, when a newer client calls, or when its home or log is removed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::lock_owner::lock_file;
use super::message::RECEIVED;
use super::status::{Counters, describe, of_daemon};
use super::supervise::{ObserverProgram, Supervisor};
use super::{BuildVersion, DaemonReply, DaemonRequest, SocketPath};
use crate::bus::Bus;
use crate::config::NatsSettings;
use crate::decide::drain_notifications;
use crate::log::{LogReader, Recorder};
use crate::pipeline::handle;
use crate::relay::Relay;
use crate::sys::file_lock;
use crate::sys::process::effective_uid;
use crate::sys::socket::{create_private, peer_uid};

/// How often the daemon does its regular work: checks its home, its idle time, its relay and observers.
const TICK: Duration = Duration::from_millis(500);

/// How long calls in flight may take when the daemon shuts down.
const DRAIN_CALLS: Duration = Duration::from_mins(1);

/// How long the remaining notifications of plugins may then take.
const DRAIN_NOTIFICATIONS: Duration = Duration::from_secs(10);

/// The longest request, in bytes.
const MAX_REQUEST: u64 = 1 << 30;

/// How long a daemon runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it gets a signal.
    UntilStopped,
    /// Until there was no call for this long.
    UntilIdle(Duration),
}

/// Why a daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A daemon runs already.
    #[error(
        "a daemon is already running for {0}; `hookbus status` shows it, `hookbus stop` stops it"
    )]
    Running(PathBuf),
    /// The home cannot be used.
    #[error("cannot use {path}: {error}")]
    Home {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

/// A daemon that owns its home and listens on its socket.
#[derive(Debug)]
pub struct Daemon {
    bus: Bus,
    home: PathBuf,
    socket: SocketPath,
    listener: UnixListener,
    lock: File,
    lifetime: Lifetime,
    build: BuildVersion,
    counters: Counters,
    newer_client: Notify,
    /// Instead of the servers in `hookbus.yaml`.
    nats_urls: Option<Vec<String>>,
    relay: Mutex<Option<(NatsSettings, Relay)>>,
    supervisor: Mutex<Option<Supervisor>>,
}

/// How to run a daemon.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    /// How long it runs.
    pub lifetime: Lifetime,
    /// The NATS servers, instead of those in `hookbus.yaml`.
    pub nats_urls: Option<Vec<String>>,
    /// How to start observers; none are started without.
    pub observers: Option<ObserverProgram>,
}

impl Daemon {
    /// Locks the home and starts to listen. `make_bus` is called once the home is locked.
    pub fn start(
        home: &Path,
        plans: DaemonOptions,
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
        file_lock::try_lock(&lock).map_err(|_| ServeError::Running(home.to_owned()))?;
        let socket = SocketPath::in_home(home);
        let listener = listen(&socket).map_err(failed(&socket.file()))?;
        Ok(Self {
            bus: make_bus(),
            home: home.to_owned(),
            socket,
            listener,
            lock,
            lifetime: plans.lifetime,
            build: BuildVersion::current(),
            counters: Counters::new(),
            newer_client: Notify::new(),
            nats_urls: plans.nats_urls,
            relay: Mutex::new(None),
            supervisor: Mutex::new(plans.observers.map(Supervisor::new)),
        })
    }

    /// Handles calls until it is time to exit.
    pub async fn serve(self) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut tick = tokio::time::interval(TICK);
        let mut inodes = self.home_inodes();
        let daemon = Arc::new(self);
        let spool = tokio::spawn(append_spooled(daemon.bus.recorder.clone()));
        tracing::info!(home = %daemon.home.display(), pid = std::process::id(), "serving");
        let reason = loop {
            tokio::select! {
                accepted = daemon.listener.accept() => match accepted {
                    Ok((stream, _)) => daemon.accept(stream),
                    Err(error) => {
                        tracing::error!(%error, "cannot accept a call");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                _ = tick.tick() => {
                    inodes.log = inodes.log.or(inode(daemon.bus.log.file()));
                    if let Some(reason) = daemon.reason_to_exit(&inodes) {
                        break reason;
                    }
                    daemon.update_relay();
                    daemon.update_observers();
                    daemon.bus.projects.drop_idle(Instant::now());
                }
                () = daemon.newer_client.notified() => break "a newer client called",
                _ = terminate.recv() => break "terminated",
                _ = interrupt.recv() => break "interrupted",
            }
        };
        tracing::info!(reason, "exiting");
        spool.abort();
        daemon.shut_down(&inodes).await;
        Ok(())
    }

    fn accept(self: &Arc<Self>, stream: UnixStream) {
        // The mode of the socket's file keeps other users out, but it may have been changed.
        match peer_uid(&stream) {
            Ok(uid) if uid == effective_uid() => {
                let daemon = Arc::clone(self);
                tokio::spawn(async move {
                    if let Err(error) = daemon.handle_request(stream).await {
                        tracing::debug!(%error, "a request failed");
                    }
                });
            }
            Ok(uid) => tracing::warn!(uid, "refused a call of another user"),
            Err(error) => tracing::warn!(%error, "cannot find out which user is calling"),
        }
    }

    async fn handle_request(&self, mut stream: UnixStream) -> io::Result<()> {
        let length = stream.read_u64().await?;
        if length > MAX_REQUEST {
            return Err(io::Error::other("the request is too long"));
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        stream.read_exact(&mut bytes).await?;
        let request = DaemonRequest::from_bytes(&bytes);
        let newer = DaemonRequest::is_newer_protocol(&bytes);
        drop(bytes);
        stream.write_u8(RECEIVED).await?;
        let reply = match request {
            Some(DaemonRequest::Call { build, .. }) if build > self.build => {
                self.newer_client.notify_one();
                DaemonReply::Declined
            }
            Some(DaemonRequest::Call { call, .. }) => {
                let _in_flight = self.counters.begin();
                let hung_up = || matches!(stream.try_read(&mut [0]), Ok(0));
                let answer = handle(*call, &self.bus, hung_up).await;
                DaemonReply::Answer(answer.0.unwrap_or_default().into_bytes())
            }
            Some(DaemonRequest::Status) => self.status(),
            None => {
                if newer {
                    self.newer_client.notify_one();
                }
                DaemonReply::Declined
            }
        };
        stream.write_all(&reply.to_bytes()).await
    }

    fn status(&self) -> DaemonReply {
        let idle_timeout = match self.lifetime {
            Lifetime::UntilStopped => None,
            Lifetime::UntilIdle(after) => Some(after),
        };
        let mut state = describe(&self.bus.log, &self.bus.hooks);
        self.describe_processes(&mut state);
        state.insert("daemon".to_owned(), of_daemon(&self.counters, idle_timeout));
        state.insert("relay".to_owned(), self.relay_report());
        DaemonReply::Status(Value::Object(state).to_string().into_bytes())
    }

    fn nats(&self) -> Option<NatsSettings> {
        NatsSettings::with_servers(
            self.bus.hooks.active().file.nats.clone(),
            self.nats_urls.as_deref(),
        )
    }

    /// Runs the active observers, and no others.
    fn update_observers(&self) {
        let active = self.bus.hooks.active();
        let names: Vec<String> =
            active.file.observer_names().into_iter().map(str::to_owned).collect();
        let version = (active.file.hash.clone(), self.nats());
        let mut supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(supervisor) = supervisor.as_mut() {
            supervisor.reconcile(&names, &version);
        }
    }

    /// Whether an observer still has events to handle.
    fn observers_are_busy(&self) -> bool {
        let state = describe(&self.bus.log, &self.bus.hooks);
        let observers = state.get("observers").and_then(Value::as_array).into_iter().flatten();
        observers
            .into_iter()
            .any(|observer| observer["state"] == "working" && observer["lag_events"] != 0)
    }

    /// Adds what the supervisor knows about the processes of the observers.
    fn describe_processes(&self, state: &mut Map<String, Value>) {
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
        let observers = state.get_mut("observers").and_then(Value::as_array_mut);
        for observer in observers.into_iter().flatten() {
            let name = observer["name"].as_str().unwrap_or_default().to_owned();
            observer["process"] =
                supervisor.as_ref().map_or(Value::Null, |supervisor| supervisor.describe(&name));
        }
    }

    /// Runs a relay with the present settings, or none.
    fn update_relay(&self) {
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

    /// The present inodes of the files that show whether the home is still the same.
    fn home_inodes(&self) -> HomeInodes {
        HomeInodes { socket: inode(&self.socket.file()), log: inode(self.bus.log.file()) }
    }

    fn reason_to_exit(&self, inodes: &HomeInodes) -> Option<&'static str> {
        if inode(&self.socket.file()) != inodes.socket {
            return Some("the home is gone");
        }
        // What is appended to a removed file is lost.
        if inodes.log.is_some() && inode(self.bus.log.file()) != inodes.log {
            return Some("the log is gone");
        }
        match self.lifetime {
            Lifetime::UntilIdle(after)
                if self.counters.idle() >= after && !self.observers_are_busy() =>
            {
                Some("idle")
            }
            Lifetime::UntilIdle(_) | Lifetime::UntilStopped => None,
        }
    }

    /// Releases the home at once, so that another daemon can start, and then lets the calls in flight
    /// finish.
    async fn shut_down(&self, inodes: &HomeInodes) {
        if inode(&self.socket.file()) == inodes.socket
            && let Err(error) = fs::remove_file(self.socket.file())
        {
            tracing::warn!(%error, "cannot remove the socket");
        }
        if let Err(error) = file_lock::unlock(&self.lock) {
            tracing::warn!(%error, "cannot unlock the home");
        }
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut supervisor) = supervisor {
            supervisor.stop_all().await;
        }
        let finished = async {
            while self.counters.in_flight() > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(DRAIN_CALLS, finished).await.is_err() {
            tracing::warn!("exiting with calls in flight");
        }
        let undelivered = drain_notifications(DRAIN_NOTIFICATIONS).await;
        if undelivered > 0 {
            tracing::warn!(undelivered, "exiting before plugins were notified of all events");
        }
        if self.home.is_dir() {
            self.bus.recorder.checkpoint().await;
        }
    }
}

/// Appends spooled events as soon as the log can be written again.
async fn append_spooled(recorder: Recorder) {
    loop {
        recorder.append_spooled().await;
        tokio::time::sleep(TICK).await;
    }
}

/// The inodes of files in the home; another inode is another file.
struct HomeInodes {
    socket: Option<u64>,
    log: Option<u64>,
}

fn inode(file: &Path) -> Option<u64> {
    fs::metadata(file).ok().map(|file| file.ino())
}

/// Binds the socket for this user only. Removes the socket of an earlier daemon, which has ended: we hold
/// the lock.
fn listen(socket: &SocketPath) -> io::Result<UnixListener> {
    match fs::remove_file(socket.file()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    create_private(|| socket.with_short_path(|path| UnixListener::bind(path)))
}
