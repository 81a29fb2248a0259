//! The daemon: keeps the log open and the hooks compiled, and handles calls. It exits on a signal, when it
//! was idle for long enough, when a newer client calls, or when its home or log is removed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, Semaphore};

use super::limits::{
    LARGE_AT_ONCE, LARGE_REQUEST, LARGE_WAIT, Limits, read_body, read_length, write_reply,
};
use super::lock_owner::lock_file;
use super::message::RECEIVED;
use super::retention::{RetentionProgram, RetentionSchedule};
use super::status::{Counters, describe, of_daemon};
use super::supervise::{ObserverProgram, Supervisor};
use super::version::VERSION;
use super::{BuildVersion, DaemonReply, DaemonRequest, SocketPath};
use crate::bus::Bus;
use crate::config::{NatsSettings, changed_secrets};
use crate::decide::{CommandSlots, drain_notifications};
use crate::log::{
    BusRow, ChangedSetting, DaemonStart, LogReader, RecordOutcome, SettingsChange, SpoolThread,
};
use crate::pipeline::{Answer, Call, Declined, handle_in_daemon};
use crate::relay::Relay;
use crate::sys::descriptors::raise_limit;
use crate::sys::file_lock;
use crate::sys::process::{effective_uid, host_name};
use crate::sys::shortage::is_shortage;
use crate::sys::socket::{create_private, peer_uid};

/// How often the daemon does its regular work: checks its home, its idle time, its relay and observers.
const TICK: Duration = Duration::from_millis(500);

/// How long calls in flight may take when the daemon shuts down.
const DRAIN_CALLS: Duration = Duration::from_mins(1);

/// How long the remaining notifications of plugins may then take.
const DRAIN_NOTIFICATIONS: Duration = Duration::from_secs(10);

/// How long a row about the bus itself may wait for the log before it goes to the spool.
const RECORDING: Duration = Duration::from_secs(5);

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
    /// A connection beyond these is closed at once.
    connections: Arc<Semaphore>,
    slots: CommandSlots,
    large: Semaphore,
    /// Closed to accept a connection when no other descriptor is left.
    spare: Mutex<Option<File>>,
    /// Whether a hook started it.
    in_background: bool,
    /// Instead of the servers in `hookbus.yaml`.
    nats_urls: Option<Vec<String>>,
    relay: Mutex<Option<(NatsSettings, Relay)>>,
    supervisor: Mutex<Option<Supervisor>>,
    retention: Mutex<Option<RetentionSchedule>>,
}

/// How to run a daemon.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    /// How long it runs.
    pub lifetime: Lifetime,
    /// Whether a hook started it in the background.
    pub in_background: bool,
    /// The NATS servers, instead of those in `hookbus.yaml`.
    pub nats_urls: Option<Vec<String>>,
    /// How to start observers; none are started without.
    pub observers: Option<ObserverProgram>,
    /// How to run the rules of `retain:`; they are not run without.
    pub retention: Option<RetentionProgram>,
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
        let limits = Limits::of(raise_limit());
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
            connections: Arc::new(Semaphore::new(limits.connections)),
            slots: CommandSlots::new(limits.commands),
            large: Semaphore::new(LARGE_AT_ONCE),
            spare: Mutex::new(open_spare()),
            in_background: plans.in_background,
            nats_urls: plans.nats_urls,
            relay: Mutex::new(None),
            supervisor: Mutex::new(plans.observers.map(Supervisor::new)),
            retention: Mutex::new(plans.retention.map(RetentionSchedule::new)),
        })
    }

    /// Handles calls until it is time to exit.
    pub async fn serve(self) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut tick = tokio::time::interval(TICK);
        let mut inodes = self.home_inodes();
        let daemon = Arc::new(self);
        let spool = SpoolThread::start(daemon.bus.recorder.clone());
        tracing::info!(home = %daemon.home.display(), pid = std::process::id(), "serving");
        daemon.record_later(BusRow::DaemonStarted(DaemonStart {
            version: VERSION.to_owned(),
            pid: std::process::id(),
            host: host_name(),
            background: daemon.in_background,
        }));
        let reason = loop {
            tokio::select! {
                accepted = daemon.listener.accept() => match accepted {
                    Ok((stream, _)) => daemon.accept(stream),
                    Err(error) => {
                        tracing::error!(%error, "cannot accept a call");
                        if is_shortage(&error) {
                            daemon.close_next_connection().await;
                        }
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                },
                _ = tick.tick() => {
                    inodes.log = inodes.log.or(inode(daemon.bus.log.file()));
                    if let Some(reason) = daemon.reason_to_exit(&inodes) {
                        break reason;
                    }
                    daemon.update_relay();
                    daemon.update_observers();
                    daemon.update_retention();
                    daemon.bus.projects.drop_idle(Instant::now());
                }
                () = daemon.newer_client.notified() => break "a newer client called",
                _ = terminate.recv() => break "terminated",
                _ = interrupt.recv() => break "interrupted",
            }
        };
        tracing::info!(reason, "exiting");
        drop(spool);
        daemon.shut_down(&inodes).await;
        Ok(())
    }

    fn accept(self: &Arc<Self>, stream: UnixStream) {
        // The mode of the socket's file keeps other users out, but it may have been changed.
        match peer_uid(&stream) {
            Ok(uid) if uid == effective_uid() => {
                // Closed without a confirmation, the client handles the event itself.
                let Ok(connection) = Arc::clone(&self.connections).try_acquire_owned() else {
                    tracing::debug!("too many connections; closed one");
                    return;
                };
                let daemon = Arc::clone(self);
                tokio::spawn(async move {
                    if let Err(error) = daemon.handle_request(stream).await {
                        tracing::debug!(%error, "a request failed");
                    }
                    drop(connection);
                });
            }
            Ok(uid) => tracing::warn!(uid, "refused a call of another user"),
            Err(error) => tracing::warn!(%error, "cannot find out which user is calling"),
        }
    }

    /// Closes the connection that waits longest, so that its client handles the event itself at once.
    async fn close_next_connection(&self) {
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        drop(spare().take());
        let next = tokio::time::timeout(Duration::from_millis(1), self.listener.accept()).await;
        drop(next);
        *spare() = open_spare();
    }

    async fn handle_request(self: Arc<Self>, mut stream: UnixStream) -> io::Result<()> {
        let length = read_length(&mut stream).await?;
        if length <= LARGE_REQUEST {
            let bytes = read_body(&mut stream, length).await?;
            return self.reply(stream, bytes).await;
        }
        // Closed without a confirmation, the client handles the event itself.
        let waiting = tokio::time::timeout(LARGE_WAIT, self.large.acquire()).await;
        let _turn = waiting?.map_err(io::Error::other)?;
        let bytes = read_body(&mut stream, length).await?;
        let (daemon, runtime) = (Arc::clone(&self), Handle::current());
        let replying = move || runtime.block_on(daemon.reply(stream, bytes));
        tokio::task::spawn_blocking(replying).await?
    }

    /// Handles a request that was read, and replies.
    async fn reply(&self, mut stream: UnixStream, bytes: Vec<u8>) -> io::Result<()> {
        stream.write_u8(RECEIVED).await?;
        let newer = DaemonRequest::is_newer_protocol(&bytes);
        let reply = match DaemonRequest::from_bytes(bytes) {
            Some(DaemonRequest::Call { build, .. }) if build > self.build => {
                self.newer_client.notify_one();
                DaemonReply::Declined
            }
            Some(DaemonRequest::Call { call, .. }) => self.handle_call(*call, &stream).await,
            Some(DaemonRequest::Status) => self.status(),
            None => {
                if newer {
                    self.newer_client.notify_one();
                }
                DaemonReply::Declined
            }
        };
        write_reply(&mut stream, &reply.to_bytes()).await
    }

    async fn handle_call(&self, call: Call, stream: &UnixStream) -> DaemonReply {
        let _in_flight = self.counters.begin();
        let hung_up = || matches!(stream.try_read(&mut [0]), Ok(0));
        match handle_in_daemon(call, &self.bus, &self.slots, hung_up).await {
            Ok(Answer { text, notice }) => {
                let bytes = |text: Option<String>| text.unwrap_or_default().into_bytes();
                DaemonReply::Answer { text: bytes(text), notice: bytes(notice) }
            }
            Err(Declined) => DaemonReply::Declined,
        }
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
        let backlog = self.bus.recorder.spool().backlog();
        state.insert("spool".to_owned(), backlog.to_json(self.bus.clock.now()));
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

    /// Runs the rules of `retain:` if that is due.
    fn update_retention(&self) {
        let active = self.bus.hooks.active();
        let has_rules = active.retain_rules().is_ok_and(|rules| !rules.is_empty());
        let mut retention = self.retention.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(retention) = retention.as_mut() {
            retention.update(&self.home, has_rules, self.counters.idle(), self.bus.clock.now());
        }
    }

    /// Whether the log is being pruned by the rules of `retain:`.
    fn is_pruning(&self) -> bool {
        let mut retention = self.retention.lock().unwrap_or_else(PoisonError::into_inner);
        retention.as_mut().is_some_and(RetentionSchedule::is_running)
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

    /// Appends a row about the bus itself in a task of its own. The hooks in force go along, so that changed
    /// settings are noticed before the first event.
    fn record_later(&self, row: BusRow) {
        let (recorder, at) = (self.bus.recorder.clone(), self.bus.clock.now());
        let active = self.bus.hooks.active();
        recorder.set_name(active.file.name.as_deref());
        let hooks = active.to_record().into_iter().collect();
        drop(tokio::spawn(async move {
            let recorded = recorder.event(row.to_draft(at), None, hooks, RECORDING).await;
            if let RecordOutcome::Lost { why } = recorded {
                tracing::warn!(why, kind = %row.kind(), "a row about the bus is lost");
            }
        }));
    }

    /// Runs a relay with the present settings, or none.
    fn update_relay(&self) {
        let wanted = self.nats();
        let mut relay = self.relay.lock().unwrap_or_else(PoisonError::into_inner);
        let running = relay.as_ref().map(|(settings, _)| settings);
        if running == wanted.as_ref() {
            return;
        }
        // The log holds no secrets to compare with, so only the daemon that used the old one notices this.
        let secrets = match (running, &wanted) {
            (Some(before), Some(after)) => changed_secrets(before, after),
            (None, _) | (_, None) => Vec::new(),
        };
        if !secrets.is_empty() {
            let file = self.bus.hooks.file().to_string_lossy().into_owned();
            let changes =
                secrets.into_iter().map(|key| ChangedSetting { key, values: None }).collect();
            self.record_later(BusRow::SettingsChanged(SettingsChange { file, changes }));
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
        let Some((_, relay)) = relay.as_ref() else { return Value::Null };
        let log = LogReader::open(&self.bus.log).ok();
        relay.state().report(log.as_ref(), self.bus.clock.now())
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
                if self.counters.idle() >= after
                    && !self.observers_are_busy()
                    && !self.is_pruning() =>
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
        let retention = self.retention.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut retention) = retention {
            retention.stop();
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

fn open_spare() -> Option<File> {
    File::open("/dev/null").ok()
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
