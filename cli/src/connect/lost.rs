//! A connection that nothing is known of any more, because the home of hookbus is gone: what is plainly ours can be
//! taken out all the same. What Hermes had before nobody knows.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hookbus::decide::is_bridge;

use super::bridge::{self, NAME};
use super::files::{self, Record};
use super::meaning::place_in;
use super::way_back::WayBack;
use super::{hermes, yaml_edit};

/// What stands in a Hermes that this home knows nothing of.
pub(super) enum Trace {
    /// Nothing of ours.
    None,
    /// A bridge that another home knows of, which can take it back as it should be.
    Of(PathBuf),
    /// A bridge that nobody knows of.
    Left(Left),
}

/// What was left behind.
pub(super) struct Left {
    /// Those directories of the bridge that are there.
    folders: Vec<PathBuf>,
    /// Whether Hermes is told to load it.
    is_named: bool,
}

/// Looks for it, from `hookbus`, the home that knows nothing.
pub(super) fn trace(hermes: &Path, hookbus: &Path) -> Result<Trace> {
    let [plugin, gateway] = bridge::folders(hermes);
    let config = files::read(&hermes.join("config.yaml"))?.unwrap_or_default();
    // Somebody else's plugin may have our name.
    let may_be_ours = !plugin.exists() || is_bridge(&plugin);
    let is_named = may_be_ours && hermes::is_enabled(&config);
    let folders: Vec<PathBuf> =
        [plugin, gateway].into_iter().filter(|folder| is_bridge(folder)).collect();
    let known_in = folders.iter().find_map(|folder| {
        let settings = bridge::settings_in(&folder.join(bridge::SETTINGS));
        let home = files::real(Path::new(settings["home"].as_str()?));
        let is_known = home != hookbus && Record::file(&home, "hermes", hermes).is_file();
        is_known.then_some(home)
    });
    Ok(match known_in {
        Some(home) => Trace::Of(home),
        None if folders.is_empty() && !is_named => Trace::None,
        None => Trace::Left(Left { folders, is_named }),
    })
}

impl Left {
    pub(super) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// A configuration of Hermes without the bridge in it.
    pub(super) fn out_of(&self, config: Option<String>) -> Result<Option<String>> {
        let Some(text) = config.filter(|_| self.is_named) else { return Ok(None) };
        let place = place_in(&yaml_edit::read(&text)?, "enabled");
        Ok(Some(yaml_edit::remove(&text, &place.into_iter().collect::<Vec<_>>())?))
    }

    /// The way back, as far as it can be found.
    pub(super) fn way_back(&self, hermes: &Path) -> Result<WayBack> {
        let mut back = WayBack {
            known: Record { changes: Vec::new(), made: self.folders.clone() },
            returns: Vec::new(),
            kept: Vec::new(),
            remarks: vec![
                "the record of this connection is lost: shell hooks that `connect` took out of Hermes or moved to \
                 hookbus.yaml are not put back"
                    .to_owned(),
            ],
        };
        let config = hermes.join("config.yaml");
        let now = files::read(&config)?;
        yaml_edit::read(now.as_deref().unwrap_or("")).with_context(|| by_hand(hermes))?;
        if let Some(then) = self.out_of(now.clone()).with_context(|| by_hand(hermes))? {
            back.returns.push((config, now, Some(then)));
        }
        for (path, text) in bridge::code(hermes) {
            if let Some(now) = self.now(&path)? {
                if now != text {
                    back.keep(&path, &now);
                }
                back.returns.push((path, Some(now), None));
            }
        }
        for folder in &self.folders {
            let path = folder.join(bridge::SETTINGS);
            back.returns.push((path.clone(), files::read(&path)?, None));
        }
        Ok(back)
    }

    /// What is in a file, if it is one of those that were left behind.
    fn now(&self, path: &Path) -> Result<Option<String>> {
        let is_ours = self.folders.iter().any(|folder| path.starts_with(folder));
        if is_ours { files::read(path) } else { Ok(None) }
    }
}

/// What a person has to do where we cannot.
fn by_hand(hermes: &Path) -> String {
    let [plugin, gateway] = bridge::folders(hermes);
    format!(
        "nothing has changed: {} cannot be edited. Take `{NAME}` out of its `plugins: enabled:` by hand, and remove {} and {}",
        hermes.join("config.yaml").display(),
        plugin.display(),
        gateway.display()
    )
}
