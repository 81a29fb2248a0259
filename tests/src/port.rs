//! Reserves a port of 127.0.0.1 for a server that has to listen on the same port after a restart. No other
//! process gets the port meanwhile: it is below the range that the kernel assigns, and a lock file keeps
//! other tests away, in this process and in others.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use rustix::process::getuid;

/// The ports to choose from. The kernel assigns ports from 32768 (`ip_local_port_range`).
const RANGE: std::ops::Range<u16> = 12_000..32_000;

/// A port that is reserved until this is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// Reserves a port on which no process listens.
    pub fn reserve() -> Self {
        let folder = format!("hookbus-test-ports-{}", getuid().as_raw());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).expect("a directory for the locks");
        // A new hasher has a random key. A random start keeps tests from trying the same ports.
        let [low, high, ..] = RandomState::new().hash_one(()).to_le_bytes();
        let start = usize::from(u16::from_le_bytes([low, high]));
        let mut ports = RANGE.cycle().skip(start).take(RANGE.len());
        let reserved = ports.find_map(|number| {
            let lock = File::create(folder.join(number.to_string())).expect("a lock");
            lock.try_lock().ok()?;
            TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
            Some(Self { number, _lock: lock })
        });
        reserved.expect("a free port")
    }

    /// Its number.
    pub const fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Port;

    #[test]
    fn no_port_is_reserved_twice() {
        let ports: Vec<Port> = (0..200).map(|_| Port::reserve()).collect();
        let numbers: BTreeSet<u16> = ports.iter().map(Port::number).collect();
        assert_eq!(numbers.len(), 200);
    }
}
