//! A daemon that confirms each call and then fails: it hangs, or breaks the connection off as one does that panics.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::home::Home;

/// What it does once it has confirmed a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It never replies.
    Hang,
    /// It writes this much of a reply and closes the connection.
    BreakOff(&'static [u8]),
}

/// The daemon; ends when dropped.
#[derive(Debug)]
pub struct BrokenDaemon {
    socket: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BrokenDaemon {
    /// Listens on the socket of this home.
    pub fn start(home: &Home, then: Then) -> Self {
        let socket = home.path().join("bus.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut hanging = Vec::new();
            while let Ok((mut stream, _)) = listener.accept()
                && !seen.load(Ordering::Relaxed)
            {
                stream.read_exact(&mut [0; 100]).expect("a request");
                stream.write_all(b"!").expect("the client reads");
                match then {
                    Then::Hang => hanging.push(stream),
                    Then::BreakOff(part) => stream.write_all(part).expect("the client reads"),
                }
            }
        });
        Self { socket, is_over, thread: Some(thread) }
    }
}

impl Drop for BrokenDaemon {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        drop(UnixStream::connect(&self.socket)); // so that it looks
        let ended = self.thread.take().is_none_or(|thread| thread.join().is_ok());
        drop(fs::remove_file(&self.socket));
        assert!(ended || thread::panicking(), "the daemon got something else than a call");
    }
}
