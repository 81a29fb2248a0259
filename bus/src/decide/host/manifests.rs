//! What manifests say: read once for as long as nothing about them changes. An agent waits while a directory of a
//! hundred plugins is looked through for the one that is loaded.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use super::super::regular;
use super::super::stamp::Stamp;
use super::super::yaml;

/// No more of them are remembered.
const MOST: usize = 10_000;

/// Nobody's is longer.
const LARGEST: u64 = 1 << 20;

/// The manifests that were read.
#[derive(Debug, Default)]
pub(in crate::decide) struct Manifests {
    known: Mutex<HashMap<PathBuf, (Stamp, Arc<Manifest>)>>,
}

/// What one says.
#[derive(Debug)]
pub(super) struct Manifest {
    /// With a name in any case.
    pub(super) fields: Map<String, Value>,
    /// Why it cannot be read.
    pub(super) broken: Option<String>,
}

impl Manifests {
    /// What the manifest `file` of `folder` says; none where there is none.
    pub(super) fn read(&self, folder: &Path, file: &str) -> Option<Arc<Manifest>> {
        let path = folder.join(file);
        let about = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let stamp = Stamp::from(&about);
        if let Some((_, manifest)) = self.known().get(&path).filter(|(then, _)| *then == stamp) {
            return Some(Arc::clone(manifest));
        }
        // Nobody else waits while it is read.
        let manifest = Arc::new(Manifest::of(&path, folder, file));
        let mut known = self.known();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(path, (stamp, Arc::clone(&manifest)));
        Some(manifest)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<PathBuf, (Stamp, Arc<Manifest>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Manifest {
    fn of(path: &Path, folder: &Path, file: &str) -> Self {
        let mut text = String::new();
        let read = regular::open(path).map(|file| file.take(LARGEST).read_to_string(&mut text));
        if !matches!(read, Ok(Ok(_))) {
            text.clear();
        }
        let (mut fields, broken) =
            match yaml::parse(&text).map(|node| node.map(|node| node.to_json())) {
                Ok(Some(Value::Object(fields))) => (fields, None),
                Ok(_) => (Map::new(), None),
                Err(problem) => (Map::new(), Some(format!("{file}: {problem}"))),
            };
        fields.entry("name").or_insert_with(|| json!(directory(folder)));
        Self { fields, broken }
    }

    /// Whether it is about something that Hermes loads in another way, for what else it has to offer.
    pub(super) fn is_of_a_provider(&self) -> bool {
        let kind = self.fields.get("kind").and_then(Value::as_str).unwrap_or_default();
        matches!(kind.trim().to_lowercase().as_str(), "exclusive" | "model-provider")
    }

    /// What it calls itself, if that is a text.
    pub(super) fn name(&self) -> Option<&str> {
        self.fields.get("name").and_then(Value::as_str)
    }
}

/// The name of a directory.
pub(super) fn directory(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
