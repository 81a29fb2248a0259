//! A bridge in Hermes that has no record, because the home of hookbus was deleted. What is clearly ours can be removed
//! all the same; what Hermes' files held before is lost.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hookbus::plugins::is_bridge;

use super::bridge::{self, NAME};
use super::disconnect_plan::DisconnectPlan;
use super::record::Record;
use super::yaml::{self, YamlError};
use super::{files, hermes};

/// What is in a Hermes that this home has no record about.
pub(super) enum Unrecorded {
    /// No bridge.
    Nothing,
    /// A bridge that another home has a record about, from where it can be disconnected.
    OfOtherHome(PathBuf),
    /// A bridge without a record.
    Orphaned(OrphanedBridge),
}

/// A bridge without a record.
pub(super) struct OrphanedBridge {
    /// Those of its directories that exist.
    folders: Vec<PathBuf>,
    /// Whether Hermes' configuration enables it.
    is_enabled: bool,
}

/// Looks for a bridge; `hookbus` is the home that has no record about this Hermes.
pub(super) fn find(hermes: &Path, hookbus: &Path) -> Result<Unrecorded> {
    let [plugin, gateway] = bridge::folders(hermes);
    let config = files::read(&hermes.join("config.yaml"))?.unwrap_or_default();
    // The user may have another plugin with the same name.
    let may_be_ours = !plugin.exists() || is_bridge(&plugin);
    let is_enabled = may_be_ours && hermes::is_enabled(&config);
    let folders: Vec<PathBuf> =
        [plugin, gateway].into_iter().filter(|folder| is_bridge(folder)).collect();
    let other_home = folders.iter().find_map(|folder| {
        let settings = bridge::read_settings(&folder.join(bridge::SETTINGS));
        let home = files::canonical(Path::new(settings["home"].as_str()?));
        let has_record = home != hookbus && Record::file(&home, "hermes", hermes).is_file();
        has_record.then_some(home)
    });
    Ok(match other_home {
        Some(home) => Unrecorded::OfOtherHome(home),
        None if folders.is_empty() && !is_enabled => Unrecorded::Nothing,
        None => Unrecorded::Orphaned(OrphanedBridge { folders, is_enabled }),
    })
}

impl OrphanedBridge {
    pub(super) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Hermes' configuration without the bridge.
    pub(super) fn removed_from(&self, config: &str) -> Result<String, YamlError> {
        if self.is_enabled { hermes::without_name(config) } else { Ok(config.to_owned()) }
    }

    /// Removes what is ours.
    pub(super) fn disconnect_plan(&self, hermes: &Path) -> Result<DisconnectPlan> {
        let mut plan = DisconnectPlan {
            known: Record { created_folders: self.folders.clone(), ..Record::default() },
            remarks: vec![
                "the record of this connection is lost: shell hooks that `connect` took out of Hermes or moved to \
                 hookbus.yaml are not put back"
                    .to_owned(),
            ],
            ..DisconnectPlan::default()
        };
        let config = hermes.join("config.yaml");
        if let Some(now) = files::read(&config)? {
            let without = yaml::read(&now).and_then(|_| self.removed_from(&now));
            let then = without.with_context(|| by_hand(hermes))?;
            plan.change(&config, now, Some(then));
        }
        for (path, text) in bridge::code(hermes) {
            let is_ours = self.folders.iter().any(|folder| path.starts_with(folder));
            let Some(now) = files::read(&path)?.filter(|_| is_ours) else { continue };
            if now != text {
                plan.back_up_edited(&path, &now);
            }
            plan.change(&path, now, None);
        }
        for folder in &self.folders {
            let path = folder.join(bridge::SETTINGS);
            if let Some(now) = files::read(&path)? {
                plan.change(&path, now, None);
            }
        }
        Ok(plan)
    }
}

fn by_hand(hermes: &Path) -> String {
    let [plugin, gateway] = bridge::folders(hermes);
    format!(
        "nothing has changed: {} cannot be edited. Take `{NAME}` out of its `plugins: enabled:` by hand, and remove {} and {}",
        hermes.join("config.yaml").display(),
        plugin.display(),
        gateway.display()
    )
}
