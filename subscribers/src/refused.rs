//! Messages of a stream that an observer refused, because they cannot be what they say. The newest of them are kept
//! next to the observer's position, so that the user can look at them; nothing is done with them.

use std::path::{Path, PathBuf};
use std::{fs, io};

use hookbus::config::observer_folder;
use hookbus::event::Time;
use serde_json::{Value, json};

use crate::store::create_private_dir;

/// How many messages are kept; older ones are deleted, because anyone who may publish can send more.
const MAX_KEPT: usize = 100;

/// How many bytes of a message are kept.
const MAX_BODY: usize = 16 << 10;

/// A message that an observer refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedMessage {
    /// Its sequence number in the stream.
    pub sequence: u64,
    /// Its subject.
    pub subject: String,
    /// Why it was refused.
    pub reason: String,
    /// The start of its body, as text.
    pub body: String,
    /// When it was refused.
    pub at: Time,
}

impl RefusedMessage {
    pub(crate) fn new(sequence: u64, subject: &str, reason: String, body: &[u8], at: Time) -> Self {
        let start = &body[..body.len().min(MAX_BODY)];
        let body = String::from_utf8_lossy(start).into_owned();
        Self { sequence, subject: subject.to_owned(), reason, body, at }
    }

    fn to_json(&self) -> Value {
        json!({
            "message": self.sequence,
            "subject": self.subject,
            "reason": self.reason,
            "body": self.body,
            "at": self.at.micros(),
        })
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        Some(Self {
            sequence: value["message"].as_u64()?,
            subject: text("subject")?,
            reason: text("reason")?,
            body: text("body")?,
            at: Time::from_micros(value["at"].as_i64()?),
        })
    }
}

/// The refused messages of one observer.
#[derive(Debug, Clone)]
pub struct RefusedMessages {
    folder: PathBuf,
}

impl RefusedMessages {
    /// Those of the observer `name` in this home.
    pub fn of(home: &Path, name: &str) -> Self {
        Self { folder: observer_folder(home, name).join("refused") }
    }

    /// Keeps these messages, and deletes the oldest of too many. A message that is refused again is kept once.
    pub(crate) fn keep(&self, messages: &[RefusedMessage]) -> io::Result<()> {
        create_private_dir(&self.folder)?;
        for message in messages.iter().rev().take(MAX_KEPT) {
            let content = message.to_json().to_string();
            fs::write(self.folder.join(format!("{:020}.json", message.sequence)), content)?;
        }
        let files = self.files();
        for file in files.iter().take(files.len().saturating_sub(MAX_KEPT)) {
            fs::remove_file(file)?;
        }
        Ok(())
    }

    /// All that are kept, in the order of the stream.
    pub fn list(&self) -> Vec<RefusedMessage> {
        let read = |file: PathBuf| {
            RefusedMessage::from_json(&serde_json::from_slice(&fs::read(file).ok()?).ok()?)
        };
        self.files().into_iter().filter_map(read).collect()
    }

    /// Deletes all.
    pub fn clear(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The files, in the order of the stream.
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.sort();
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_messages_are_kept_and_each_once() {
        let home = tempfile::tempdir().expect("a home");
        let refused = RefusedMessages::of(home.path(), "watch");
        let at = Time::from_micros(1);
        let message =
            |sequence| RefusedMessage::new(sequence, "hookbus.x", "why".to_owned(), b"\xff", at);
        refused.keep(&[message(1), message(2)]).expect("a directory");
        refused.keep(&[message(2), message(3)]).expect("a directory");
        assert_eq!(refused.list(), [message(1), message(2), message(3)]);
        refused.keep(&(4..400).map(message).collect::<Vec<_>>()).expect("a directory");
        let kept: Vec<u64> = refused.list().iter().map(|message| message.sequence).collect();
        assert_eq!(kept, (300..400).collect::<Vec<_>>());
        refused.clear().expect("a directory");
        assert_eq!(refused.list(), []);
    }
}
