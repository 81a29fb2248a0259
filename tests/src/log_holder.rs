//! Another process that holds the log of a home.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Command, Stdio};

use crate::home::Home;

/// How the log is held.
#[derive(Debug)]
pub enum LogHolder {
    /// By its lock.
    Flock(File),
    /// By a transaction of SQLite in another process.
    Transaction(Child),
}

impl LogHolder {
    /// Holds the lock that the writers of hookbus queue on.
    pub fn flock(home: &Home) -> Self {
        let lock = File::options().write(true).open(home.path().join("log.lock"));
        let lock = lock.expect("the lock");
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("it is free");
        Self::Flock(lock)
    }

    /// Keeps others from writing, as a tool that writes to the log does.
    pub fn transaction(home: &Home) -> Self {
        Self::hold(home, "BEGIN IMMEDIATE")
    }

    /// Keeps others from reading, too.
    pub fn exclusive(home: &Home) -> Self {
        Self::hold(home, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE")
    }

    fn hold(home: &Home, statements: &str) -> Self {
        let program = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)\n\
                       for statement in sys.argv[2].split('; '): db.execute(statement)\n\
                       print('held', flush=True)\nsys.stdin.read()";
        let mut holder = Command::new("python3")
            .args(["-c", program])
            .arg(home.path().join("log.db"))
            .arg(statements)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let stdout = holder.stdout.as_mut().expect("a pipe");
        stdout.read_exact(&mut [0; 4]).expect("held");
        Self::Transaction(holder)
    }

    /// Lets go of the log.
    pub fn release(self) {
        match self {
            Self::Flock(lock) => drop(lock),
            Self::Transaction(mut holder) => {
                drop(holder.stdin.take());
                holder.wait().expect("our child");
            }
        }
    }
}
