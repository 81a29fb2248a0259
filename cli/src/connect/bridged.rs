//! Whether the usual Hermes loads the bridge, for whoever has to speak to it as it would hear.

use super::{files, hermes};
use crate::settings::Settings;

/// Whether it does.
pub(crate) fn is_bridged(settings: &Settings) -> bool {
    let config = hermes::home(None, settings).ok().map(|home| home.join("config.yaml"));
    let text = config.and_then(|file| files::read(&file).ok().flatten());
    text.is_some_and(|text| hermes::is_enabled(&text))
}
