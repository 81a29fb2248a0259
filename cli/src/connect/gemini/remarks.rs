//! What `connect gemini` tells its user beside the change: hooks that stay, settings that keep Gemini from running the new
//! ones, and other places that are connected too.

use std::path::Path;

use serde_json::Value;

use super::super::files;
use super::super::record::Record;
use super::bus_hooks::{self, Call};
use super::connect_plan::ConnectRequest;
use super::location::Location;
use super::settings_text;
use super::trust::is_trusted;
use super::wire::{NAME, Wire};
use crate::files::behind_links;

/// The remarks about a connection; `settings` are those of the file before it.
pub(super) fn about(request: &ConnectRequest, settings: &Value, wire: &Wire) -> Vec<String> {
    let mut remarks = vec![format!("each event runs: {}", wire.call())];
    match bus_hooks::count_others(settings) {
        0 => {}
        1 => remarks.push("1 other hook stays in Gemini and runs beside the bus".to_owned()),
        count => remarks.push(format!("{count} other hooks stay in Gemini and run beside the bus")),
    }
    let target = behind_links(&request.location.file);
    let file = request.location.file.display();
    if target != request.location.file {
        remarks.push(format!("{file} is a link; what changes is {}", target.display()));
    }
    remarks.extend(bus_hooks::switched_off(settings, NAME).map(|why| format!("{file}: {why}")));
    let user = request.user.as_ref().unwrap_or(&request.location);
    match &request.location.project {
        None => remarks.push(
            "Gemini runs no hooks in a folder that you have not trusted (`/permissions` in Gemini)"
                .to_owned(),
        ),
        Some(project) => {
            if !is_trusted(project, &user.file) {
                remarks.push(format!(
                    "Gemini does not trust {} yet and runs no hooks there; start Gemini there once and trust it",
                    project.display()
                ));
            }
            remarks.push(format!(
                "{file} then holds paths of this machine: do not commit it, or others hear that hookbus is missing"
            ));
        }
    }
    let elsewhere = connected_elsewhere(request);
    remarks.extend(elsewhere.iter().filter_map(|other| twice(&request.location, other, wire)));
    remarks
}

/// The other files that a Gemini may read together with this one: the user's beside a project's, and the reverse.
fn connected_elsewhere(request: &ConnectRequest) -> Vec<Location> {
    if let Some(user) = &request.user {
        return vec![user.clone()];
    }
    let records = Record::files(&request.hookbus, "gemini");
    let changes =
        records.iter().filter_map(|file| Record::load(file).ok()).flat_map(|record| record.changes);
    let others = changes.map(|change| Location::of_file(&change.path, Some(&request.location)));
    others.filter(|other| other.project.is_some()).collect()
}

/// If the hooks of both files run: Gemini runs a hook that is in both with the same name and command only once.
fn twice(location: &Location, other: &Location, wire: &Wire) -> Option<String> {
    let differs = |call: &Call| *call != Call::Wired(wire.clone());
    let found = calls_in(&other.file);
    found.iter().any(differs).then(|| {
        format!(
            "{} calls the bus too, in another way, so events of {} arrive twice; run `hookbus {} gemini{}`",
            other.file.display(),
            location.project.as_ref().or(other.project.as_ref()).map_or_else(
                || "both".to_owned(),
                |project| format!("Gemini in {}", project.display())
            ),
            if found.iter().all(|call| matches!(call, Call::Wired(_))) { "disconnect" } else { "connect" },
            other.option()
        )
    })
}

fn calls_in(file: &Path) -> Vec<Call> {
    let text = files::read(file).ok().flatten().unwrap_or_default();
    let settings = settings_text::read(&text).unwrap_or_default();
    bus_hooks::find(&settings).into_iter().map(|hook| hook.call).collect()
}
