//! A pseudo-terminal: one end for a program, the other one for a test.

use std::fs::File;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// A pseudo-terminal.
#[derive(Debug)]
pub struct Pty {
    /// Our end: what the program writes can be read from it, and what is written to it are keys.
    pub ours: File,
    name: String,
}

impl Pty {
    /// A terminal of this size.
    pub fn open(rows: u16, columns: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).expect("a terminal");
        grantpt(&ours).expect("a terminal");
        unlockpt(&ours).expect("a terminal");
        let name = ptsname(&ours, Vec::new()).expect("a terminal has a name");
        let name = name.to_str().expect("a plain name").to_owned();
        let pty = Self { ours: File::from(ours), name };
        pty.resize(rows, columns);
        pty
    }

    /// The end of the program.
    pub fn other_end(&self) -> File {
        File::options().read(true).write(true).open(&self.name).expect("the other end")
    }

    /// Gives the window another size.
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.ours, size).expect("a terminal has a size");
    }

    /// Whether lines are edited and shown while they are typed, as a shell needs it.
    pub fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.ours).expect("a terminal has modes").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }
}
