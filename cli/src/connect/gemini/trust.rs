//! Whether Gemini trusts a folder. In a folder that the user has not trusted it runs no hooks of any `settings.json`.

use std::path::Path;

use serde_json::Value;

use super::super::files;
use super::settings_text;

/// Whether Gemini runs the hooks of its settings in `folder`; `user` is the `settings.json` of the user.
pub(super) fn is_trusted(folder: &Path, user: &Path) -> bool {
    let settings = read(user);
    if settings["security"]["folderTrust"]["enabled"] == false {
        return true;
    }
    let rules = read(&user.with_file_name("trustedFolders.json"));
    let folder = files::canonical(folder);
    let matching = rules.as_object().into_iter().flatten().filter(|(path, level)| {
        let path = Path::new(path);
        let trusted = if *level == "TRUST_PARENT" { path.parent().unwrap_or(path) } else { path };
        folder.starts_with(files::canonical(trusted))
    });
    // Of several rules the longest counts.
    let rule = matching.max_by_key(|(path, _)| path.len());
    rule.is_some_and(|(_, level)| level != "DO_NOT_TRUST")
}

fn read(file: &Path) -> Value {
    let text = files::read(file).ok().flatten();
    text.and_then(|text| settings_text::read(&text).ok()).unwrap_or_default()
}
