//! Reading plugins' manifests. They are cached until they change, because an agent waits while a directory of a
//! hundred plugins is searched for the one that is loaded.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use crate::config::parse_yaml;
use crate::files::{Stamp, open_regular};

/// The cache is emptied when it holds this many manifests.
const MOST: usize = 10_000;

/// How many bytes of a manifest are read.
const LARGEST: u64 = 1 << 20;

/// Manifests by path and stamp.
#[derive(Debug, Default)]
pub(crate) struct ManifestCache {
    cached: Mutex<HashMap<PathBuf, (Stamp, Arc<Manifest>)>>,
}

/// The content of a manifest.
#[derive(Debug)]
pub(super) struct Manifest {
    /// Its fields; there is always a `name`.
    pub(super) fields: Map<String, Value>,
    /// Why it cannot be read.
    pub(super) broken: Option<String>,
}

impl ManifestCache {
    /// The manifest `file` in `folder`; none if there is no such file.
    pub(super) fn read(&self, folder: &Path, file: &str) -> Option<Arc<Manifest>> {
        let path = folder.join(file);
        let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let stamp = Stamp::from(&metadata);
        if let Some((_, manifest)) = self.cached().get(&path).filter(|(cached, _)| *cached == stamp)
        {
            return Some(Arc::clone(manifest));
        }
        // The lock is not held while the file is read.
        let manifest = Arc::new(Manifest::of(&path, folder, file));
        let mut cached = self.cached();
        if cached.len() >= MOST {
            cached.clear();
        }
        cached.insert(path, (stamp, Arc::clone(&manifest)));
        Some(manifest)
    }

    fn cached(&self) -> MutexGuard<'_, HashMap<PathBuf, (Stamp, Arc<Manifest>)>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Manifest {
    fn of(path: &Path, folder: &Path, file: &str) -> Self {
        let mut text = String::new();
        let read = open_regular(path).map(|file| file.take(LARGEST).read_to_string(&mut text));
        if !matches!(read, Ok(Ok(_))) {
            text.clear();
        }
        let (mut fields, broken) =
            match parse_yaml(&text).map(|node| node.map(|node| node.to_json())) {
                Ok(Some(Value::Object(fields))) => (fields, None),
                Ok(_) => (Map::new(), None),
                Err(problem) => (Map::new(), Some(format!("{file}: {problem}"))),
            };
        fields.entry("name").or_insert_with(|| json!(folder_name(folder)));
        Self { fields, broken }
    }

    /// Whether Hermes loads the plugin as a provider and not for its hooks.
    pub(super) fn is_provider(&self) -> bool {
        let kind = self.fields.get("kind").and_then(Value::as_str).unwrap_or_default();
        matches!(kind.trim().to_lowercase().as_str(), "exclusive" | "model-provider")
    }

    /// The plugin's name, if it is a string.
    pub(super) fn name(&self) -> Option<&str> {
        self.fields.get("name").and_then(Value::as_str)
    }
}

/// The last part of a directory's path.
pub(super) fn folder_name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
