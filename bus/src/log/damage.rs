//! `log.damage` beside the log: one line for each time that rows were lost because another program cut the log off. The
//! log itself cannot show that rows are missing at its end, and the daemon that noticed it ends when it is idle.
//! `hookbus status` shows the lines until the user deletes the file.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use super::LogPath;
use crate::event::Time;

/// How much of the file is shown.
const MAX_BYTES: u64 = 16 << 10;

/// Adds a line.
pub(super) fn note(log: &LogPath, text: &str, now: Time) {
    tracing::error!("{text}");
    let path = log.damage_file();
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let written = file.and_then(|mut file| writeln!(file, "{now}: {text}"));
    if let Err(error) = written {
        tracing::error!(%error, file = %path.display(), "cannot note that rows are lost");
    }
}

impl LogPath {
    /// The lines of the file; none if no loss was noticed.
    pub fn damage(&self) -> Vec<String> {
        let mut text = String::new();
        let file = fs::File::open(self.damage_file());
        match file.and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text)) {
            Ok(_) => text.lines().map(str::to_owned).collect(),
            Err(_) => Vec::new(),
        }
    }
}
