//! `plugins.log`: what plugins print, without secrets. Readable by this user only, and rotated. A plugin's process writes
//! to a pipe; [`LogCopy`] copies whole lines from there to the file, each with the time and the plugin's name in front,
//! because many plugins share the file.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::Local;
use tokio::net::unix::pipe::Receiver;

use crate::event::{Clock, SystemClock};
use crate::files::rotate_if_large;
use crate::redact::Redactor;
use crate::sys::descriptors::read_now;

/// The name of the file, in the home of the bus.
pub(super) const FILE_NAME: &str = "plugins.log";

/// Text that is not complete waits up to this size: a line without an end, a private key whose last line is missing.
const LONGEST_WAIT: usize = 64 << 10;

/// The file that plugins print to.
#[derive(Debug, Clone)]
pub(super) struct PluginLog {
    pub(super) path: PathBuf,
    /// What removes secrets; none if redaction is switched off.
    pub(super) redactor: Option<Arc<Redactor>>,
}

impl PluginLog {
    /// The stderr for the process of `plugin`, and what copies it to the file. Without a file nothing is kept.
    pub(super) fn for_process(&self, plugin: &str) -> (Stdio, Option<Arc<LogCopy>>) {
        match self.open(plugin) {
            Ok((stderr, copy)) => (stderr, Some(copy)),
            Err(error) => {
                tracing::debug!(%error, file = %self.path.display(), "what a plugin prints is not kept");
                (Stdio::null(), None)
            }
        }
    }

    fn open(&self, plugin: &str) -> io::Result<(Stdio, Arc<LogCopy>)> {
        rotate_if_large(&self.path);
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        let (from, stderr) = io::pipe()?;
        let lines = Lines {
            plugin: plugin.to_owned(),
            redactor: self.redactor.clone(),
            file,
            waiting: Vec::new(),
        };
        let copy = Arc::new(LogCopy {
            from: Receiver::from_owned_fd(from.into())?,
            lines: Mutex::new(lines),
        });
        drop(tokio::spawn(Arc::clone(&copy).run()));
        Ok((stderr.into(), copy))
    }
}

/// Copies what one process prints to the log.
#[derive(Debug)]
pub(super) struct LogCopy {
    from: Receiver,
    lines: Mutex<Lines>,
}

impl LogCopy {
    /// Copies until the process and all that it started have closed the pipe.
    async fn run(self: Arc<Self>) {
        while self.from.readable().await.is_ok() {
            if self.copy_with(|buffer| self.from.try_read(buffer)) == PipeState::Closed {
                break;
            }
        }
        self.finish();
    }

    /// Copies what is in the pipe now. A process prints before it answers, so what it printed about an event is in the file
    /// when the event is answered.
    pub(super) fn copy(&self) {
        // Asks the system: what was printed a moment ago may be news to the runtime.
        self.copy_with(|buffer| read_now(&self.from, buffer));
    }

    fn copy_with(&self, read: impl Fn(&mut [u8]) -> io::Result<usize>) -> PipeState {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = [0; 8 << 10];
        loop {
            match read(&mut buffer) {
                Ok(0) => return PipeState::Closed,
                Ok(count) => lines.add(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return PipeState::Open,
                Err(_) => return PipeState::Closed,
            }
        }
    }

    /// Copies the rest, also of a line without an end.
    pub(super) fn finish(&self) {
        self.copy();
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).write(usize::MAX);
    }
}

/// Whether more can come from the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PipeState {
    Open,
    Closed,
}

/// Lines on their way to the file.
#[derive(Debug)]
struct Lines {
    plugin: String,
    redactor: Option<Arc<Redactor>>,
    file: File,
    waiting: Vec<u8>,
}

impl Lines {
    fn add(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        let is_long = self.waiting.len() > LONGEST_WAIT;
        match self.waiting.iter().rposition(|byte| *byte == b'\n') {
            Some(end) if is_long || !has_open_key(&self.waiting) => self.write(end + 1),
            None if is_long => self.write(usize::MAX),
            Some(_) | None => {}
        }
    }

    /// Writes the first `count` bytes, or all of them. A full disk must not stop the plugin, so a write may fail.
    fn write(&mut self, count: usize) {
        let rest = self.waiting.split_off(count.min(self.waiting.len()));
        let text = std::mem::replace(&mut self.waiting, rest);
        if text.is_empty() {
            return;
        }
        let text = match &self.redactor {
            Some(redactor) => redactor.redact(&text).bytes.into_owned(),
            None => text,
        };
        let now = SystemClock.now().to_utc().with_timezone(&Local);
        let prefix = format!("{} {}: ", now.format("%Y-%m-%d %H:%M:%S"), self.plugin);
        let text = text.strip_suffix(b"\n").unwrap_or(&text);
        let mut shown = Vec::with_capacity(text.len() + prefix.len() + 1);
        for line in text.split(|byte| *byte == b'\n') {
            shown.extend_from_slice(prefix.as_bytes());
            shown.extend_from_slice(line);
            shown.push(b'\n');
        }
        if let Err(error) = self.file.write_all(&shown) {
            tracing::debug!(%error, plugin = self.plugin, "what a plugin printed is lost");
        }
    }
}

/// Whether a private key has begun and not ended: it is recognised as a whole.
fn has_open_key(text: &[u8]) -> bool {
    let last = |words: &[u8]| text.windows(words.len()).rposition(|at| at == words);
    last(b"-----BEGIN") > last(b"-----END")
}
