//! A port of 127.0.0.1 for a server that is told where to listen, and that comes back there after it was
//! killed. Nobody else gets it meanwhile: it lies below those that the kernel hands out by itself to
//! whoever connects or asks for any, and a lock on a file keeps other tests off it, in this process and
//! in others.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use rustix::process::getuid;

/// The ports to choose from. The kernel's own start at 32768 (`ip_local_port_range`).
const CHOICE: std::ops::Range<u16> = 12_000..32_000;

/// Kept for whoever holds this.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// One that nobody listens on and nobody else has reserved.
    pub fn reserve() -> Self {
        let folder = format!("hookbus-test-ports-{}", getuid().as_raw());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).expect("a place for the locks");
        // A new hasher has a new key: as good as a die, and tests do not queue up at the same door.
        let [low, high, ..] = RandomState::new().hash_one(()).to_le_bytes();
        let start = usize::from(u16::from_le_bytes([low, high]));
        let mut ports = CHOICE.cycle().skip(start).take(CHOICE.len());
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
    fn no_two_get_the_same() {
        let ports: Vec<Port> = (0..200).map(|_| Port::reserve()).collect();
        let numbers: BTreeSet<u16> = ports.iter().map(Port::number).collect();
        assert_eq!(numbers.len(), 200);
    }
}
