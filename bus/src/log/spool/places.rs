//! Where spool files are: in the home, or, if that is full or read-only, in a directory of this home in a
//! place that every process of the user knows.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use sha2::{Digest, Sha256};

use super::file::SpoolEntry;
use crate::sys::fs::{rename_if_new, sync_directory};
use crate::sys::process::effective_uid;

/// The spool of one home.
#[derive(Debug, Clone)]
pub struct Spool {
    pub(super) home: HomeId,
    /// In the order in which they are tried for writing.
    pub(super) places: Vec<Place>,
}

/// Recognises a home: the SHA-256 of its path, in hex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HomeId(pub(super) String);

/// A directory with spool files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) directory: PathBuf,
    pub(super) owner: PlaceOwner,
}

/// Whose files a place holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceOwner {
    /// It is inside of the home: all files in it belong to the home, also if the home was moved.
    Home,
    /// It is outside, and named after the home. Each file names its home too.
    Shared,
    /// As earlier versions named it; only read. Files in it do not name their home.
    Earlier,
}

impl Spool {
    /// The spool of `home`. If the home cannot take a file, it is written below `/run/user/<uid>` or `/tmp`: fixed
    /// places, so that a daemon finds what a client with another environment left there. `more` places
    /// come last.
    pub fn new(home: &Path, more: &[PathBuf]) -> Self {
        let user = effective_uid();
        let mut bases = vec![PathBuf::from(format!("/run/user/{user}")), PathBuf::from("/tmp")];
        for base in more {
            if !bases.contains(base) {
                bases.push(base.clone());
            }
        }
        let id = HomeId::of(home);
        let in_base = |base: &PathBuf, name: &str, owner| Place {
            directory: base.join(format!("hookbus-spool-{user}")).join(name),
            owner,
        };
        let own = Place { directory: home.join("spool"), owner: PlaceOwner::Home };
        let shared = bases.iter().map(|base| in_base(base, &id.0, PlaceOwner::Shared));
        // Earlier versions used the last 80 digits of the path, which several homes with long paths may share.
        let earlier = hex::encode(home.as_os_str().as_encoded_bytes());
        let earlier = (earlier.len() <= 80).then_some(earlier);
        let earlier = earlier
            .iter()
            .flat_map(|name| bases.iter().map(|base| in_base(base, name, PlaceOwner::Earlier)));
        let places = std::iter::once(own).chain(shared).chain(earlier).collect();
        Self { home: id, places }
    }

    /// Writes an event to the first place that takes it; returns the file.
    pub(in crate::log) fn write(&self, entry: &SpoolEntry<'_>) -> io::Result<PathBuf> {
        let mut last = io::Error::other("there is no spool directory");
        let places = self.places.iter().filter(|place| place.owner != PlaceOwner::Earlier);
        for place in places {
            match place.write(entry, &self.home) {
                Ok(file) => return Ok(file),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl HomeId {
    fn of(home: &Path) -> Self {
        // A home that does not exist yet is recognised by its directory.
        let canonical = home.canonicalize().or_else(|_| {
            let (parent, name) = (home.parent(), home.file_name());
            let parent = parent.ok_or(io::ErrorKind::NotFound)?.canonicalize()?;
            Ok::<_, io::Error>(parent.join(name.unwrap_or_default()))
        });
        let path = canonical.unwrap_or_else(|_| home.to_owned());
        Self(hex::encode(Sha256::digest(path.as_os_str().as_encoded_bytes())))
    }
}

impl Place {
    /// Writes a temporary file and renames it, so that no process reads an incomplete one. Both the file and
    /// its name are on disk when this returns.
    fn write(&self, entry: &SpoolEntry<'_>, home: &HomeId) -> io::Result<PathBuf> {
        self.create()?;
        let file = self.directory.join(entry.file_name());
        let temporary = self.directory.join(temporary_name(entry));
        let written = entry.write_to(&temporary, home).and_then(|()| {
            if entry.decision.is_some() {
                // The first decision counts, as in the log: it is the one that the agent was given.
                rename_if_new(&temporary, &file)
            } else {
                fs::rename(&temporary, &file).map(|()| true)
            }
        });
        match written {
            Ok(true) => {}
            Ok(false) => fs::remove_file(&temporary)?,
            Err(error) => {
                if let Err(left) = fs::remove_file(&temporary) {
                    tracing::debug!(%left, "cannot remove an incomplete spool file");
                }
                return Err(error);
            }
        }
        sync_directory(&self.directory)?;
        Ok(file)
    }

    fn create(&self) -> io::Result<()> {
        let parent = self.directory.parent().ok_or(io::ErrorKind::NotFound)?;
        match self.owner {
            PlaceOwner::Home => {
                DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
            }
            // `/run/user/<uid>` is not ours to create.
            PlaceOwner::Shared | PlaceOwner::Earlier => create_directory(parent)?,
        }
        create_directory(&self.directory)?;
        if is_ours(&self.directory) && is_ours(parent) {
            return Ok(());
        }
        Err(io::Error::other("another user owns the spool directory or can write to it"))
    }

    /// Whether files may be taken in from here: what another user left in a shared directory is not an event.
    pub(super) fn is_ours(&self) -> bool {
        is_ours(&self.directory)
    }

    /// The files in it.
    pub(super) fn files(&self) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(&self.directory)?.map(|entry| Ok(entry?.path())).collect()
    }
}

/// A name of its own for every try: the daemon and a client that gave up on it may spool the same event.
fn temporary_name(entry: &SpoolEntry<'_>) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}.{}-{count}.part", entry.event.id, process::id())
}

fn create_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => path.parent().map_or(Ok(()), sync_directory),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether we own the directory and no other user can write to it.
fn is_ours(directory: &Path) -> bool {
    let own = effective_uid();
    fs::symlink_metadata(directory)
        .is_ok_and(|found| found.is_dir() && found.uid() == own && found.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_homes_never_share_a_directory() {
        let deep = "a-directory-with-a-long-name/".repeat(4);
        let one = Spool::new(Path::new("/first").join(&deep).as_path(), &[]);
        let other = Spool::new(Path::new("/other").join(&deep).as_path(), &[]);
        for place in &one.places {
            assert!(!other.places.contains(place), "{place:?}");
        }
    }

    #[test]
    fn the_directory_of_an_earlier_version_is_read_only_if_no_other_home_can_have_used_it() {
        let earlier = |home: &str| {
            let places = Spool::new(Path::new(home), &[]).places;
            places.into_iter().any(|place| place.owner == PlaceOwner::Earlier)
        };
        assert!(earlier("/home/me/.hookbus"));
        assert!(!earlier("/home/me/a/directory/with/a/rather/long/name"));
    }
}
