//! The bytes of a payload: shared, so that recording a long one copies nothing, with a digest that can be computed ahead.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use crate::sys::thread::spawn;

/// The digest of a payload from this length on takes longer than it takes to wake a thread.
const LONG: usize = 128 << 10;

/// So many payloads wait for the thread that computes digests. If there are more, whoever needs a digest computes it.
const WAITING: usize = 4;

/// The thread that computes digests ahead. It stays: a scheduler puts a thread that wakes on a free core, but a new one on the
/// core of the thread that started it, where it has to wait.
static AHEAD: OnceLock<SyncSender<Payload>> = OnceLock::new();

/// A payload. Clones share their bytes and their digest.
#[derive(Clone, Default)]
pub struct Payload(Arc<Shared>);

#[derive(Default)]
struct Shared {
    bytes: Vec<u8>,
    /// Where in them the payload is.
    place: Range<usize>,
    digest: OnceLock<[u8; 32]>,
    /// Whether a thread was asked for the digest.
    is_ahead: AtomicBool,
}

/// The digest of a payload, which the hash of its row covers.
pub fn payload_digest(payload: &[u8]) -> [u8; 32] {
    Sha256::digest(payload).into()
}

impl Payload {
    /// The payload at `place` in a message. The bytes beside it stay in memory with it. Empty if `place` is not within
    /// the message.
    pub fn within(message: Vec<u8>, place: Range<usize>) -> Self {
        Self(Arc::new(Shared { bytes: message, place, ..Shared::default() }))
    }

    /// How many bytes of memory it keeps: its own, and those of its message beside them.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.0.bytes.capacity()
    }

    /// Has another thread compute the digest of a long payload, while this one decodes, redacts and packs it.
    pub fn digest_ahead(&self) {
        if self.len() < LONG || self.0.is_ahead.swap(true, Ordering::Relaxed) {
            return;
        }
        // Without a thread, or if it has enough to do, the writer computes the digest.
        if let Some(thread) = digest_thread() {
            drop(thread.try_send(self.clone()));
        }
    }

    /// The digest. Waits if another thread is computing it.
    pub fn digest(&self) -> [u8; 32] {
        *self.0.digest.get_or_init(|| payload_digest(self))
    }
}

/// The thread, started when it is first needed. If it cannot be started, the next long payload tries again.
fn digest_thread() -> Option<&'static SyncSender<Payload>> {
    if AHEAD.get().is_none() {
        let sender = start_thread()?;
        // If another call was faster, the thread of this one ends with its sender.
        drop(AHEAD.set(sender));
    }
    AHEAD.get()
}

fn start_thread() -> Option<SyncSender<Payload>> {
    let (sender, payloads) = sync_channel::<Payload>(WAITING);
    let thread = spawn("digest", move || {
        for payload in payloads {
            payload.digest();
        }
    });
    match thread {
        Ok(_) => Some(sender),
        Err(error) => {
            tracing::debug!(%error, "no thread for the digests of payloads");
            None
        }
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes.get(self.0.place.clone()).unwrap_or_default()
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        let place = 0..bytes.len();
        Self::within(bytes, place)
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        String::from_utf8_lossy(self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_within_a_message_is_that_part_of_it() {
        let payload = Payload::within(b"head{}tail".to_vec(), 4..6);
        assert_eq!(payload, Payload::from(b"{}".to_vec()));
        assert_eq!(payload.digest(), payload_digest(b"{}"));
        assert!(Payload::within(b"head".to_vec(), 4..6).is_empty());
    }

    #[test]
    fn the_digest_is_that_of_the_bytes_whether_it_was_computed_ahead_or_not() {
        for len in [0, 10, LONG - 1, LONG, LONG + 1, 3 * LONG] {
            let bytes = vec![b'x'; len];
            let (ahead, later) = (Payload::from(bytes.clone()), Payload::from(bytes.clone()));
            ahead.digest_ahead();
            ahead.digest_ahead();
            assert_eq!(ahead.clone().digest(), payload_digest(&bytes));
            assert_eq!(later.digest(), ahead.digest());
            assert_eq!(ahead, later);
        }
    }
}
