//! The redactor in force: the settings of the hooks file in force, and the key of this home.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::clean_payloads::CleanPayloads;
use crate::config::{HooksFile, Redaction};
use crate::event::Event;
use crate::files::{create_secret, random_key};
use crate::redact::{FingerprintKey, Redacted, RedactionSettings, Redactor};

/// The file with the key of the fingerprints, in the home.
const KEY_FILE: &str = "redaction.key";

/// Gives the redactor of a home.
#[derive(Debug)]
pub struct ActiveRedaction {
    key_file: PathBuf,
    key: OnceLock<FingerprintKey>,
    last: Mutex<Option<(RedactionSettings, Arc<Redactor>)>>,
    /// None in a process that handles one event.
    clean: Option<Mutex<CleanPayloads>>,
}

impl ActiveRedaction {
    /// That of `home`. Its key is read or made when it is first needed.
    pub fn new(home: &Path) -> Self {
        let key_file = home.join(KEY_FILE);
        Self { key_file, key: OnceLock::new(), last: Mutex::default(), clean: None }
    }

    /// The same, for a process that handles many events: it remembers what it has searched lately.
    #[must_use]
    pub fn with_memory(self) -> Self {
        Self { clean: Some(Mutex::default()), ..self }
    }

    /// The payload of `event` without secrets.
    pub fn redact<'e>(&self, redactor: &Arc<Redactor>, event: &'e Event) -> Redacted<'e> {
        match &self.clean {
            Some(clean) => {
                clean.lock().unwrap_or_else(PoisonError::into_inner).redact(redactor, event)
            }
            None => redactor.redact(&event.raw),
        }
    }

    /// The redactor for the settings of `file`; none if it switches redaction off.
    pub fn redactor(&self, file: &HooksFile) -> Option<Arc<Redactor>> {
        let settings = match &file.redaction {
            Redaction::On(settings) => settings,
            Redaction::Off => return None,
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, redactor)) = last.as_ref()
            && known == settings
        {
            return Some(Arc::clone(redactor));
        }
        // Settings were checked when the file was read; what is built in always works.
        let redactor = Redactor::new(self.key(), settings).ok().or_else(|| self.built_in())?;
        let redactor = Arc::new(redactor);
        *last = Some((settings.clone(), Arc::clone(&redactor)));
        Some(redactor)
    }

    /// A redactor with the built-in detectors alone.
    pub fn built_in(&self) -> Option<Redactor> {
        Redactor::new(self.key(), &RedactionSettings::default()).ok()
    }

    /// The key of the fingerprints.
    pub fn key(&self) -> FingerprintKey {
        self.key.get_or_init(|| key(&self.key_file)).clone()
    }
}

/// The key in `file`, which is made if there is none. If neither works, a key for this process: then the same secret has
/// another fingerprint in another process.
fn key(file: &Path) -> FingerprintKey {
    let read = || -> io::Result<[u8; 32]> {
        let bytes = fs::read(file)?;
        bytes.try_into().map_err(|_| io::ErrorKind::InvalidData.into())
    };
    let made = read().or_else(|error| {
        let is_new = error.kind() == io::ErrorKind::NotFound;
        if is_new { make_key(file).or_else(|_| read()) } else { Err(error) }
    });
    let bytes = made.or_else(|error| {
        tracing::warn!(%error, file = %file.display(), "no lasting key for fingerprints of secrets");
        random_key()
    });
    FingerprintKey::new(bytes.unwrap_or_default())
}

/// Another process may make it at the same time, and the first one counts.
fn make_key(file: &Path) -> io::Result<[u8; 32]> {
    let key = random_key()?;
    create_secret(file, &key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_has_one_key_which_only_its_owner_can_read() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().expect("a home");
        let file = HooksFile::empty(home.path());
        let secret = format!("{}{}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let redacted = || {
            let redactor = ActiveRedaction::new(home.path()).redactor(&file).expect("a redactor");
            redactor.redact_text(&secret).into_owned()
        };
        let first = redacted();
        assert!(first.starts_with("[redacted:"), "{first}");
        assert_eq!(first, redacted(), "another process has the same key");
        let mode = fs::metadata(home.path().join(KEY_FILE)).expect("a key").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let off = HooksFile { redaction: Redaction::Off, ..file.clone() };
        assert!(ActiveRedaction::new(home.path()).redactor(&off).is_none());
    }
}
