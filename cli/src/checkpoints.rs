//! Signed checkpoints that were kept elsewhere: reads them from files, git and NATS, and knows which key they have to be signed
//! with.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use hookbus::anchor::AnchorPlace;
use hookbus::event::BusId;
use hookbus::log::{CheckpointError, LogReader, PublicKey, SignedCheckpoint, SigningKey};
use hookbus::relay::published_checkpoints;

use crate::args::nats_settings;
use crate::output::local_time;
use crate::settings::Settings;

/// The checkpoints of a place, the oldest first.
pub(crate) type Checkpoints = Vec<Result<SignedCheckpoint, CheckpointError>>;

/// Whether `place` is the NATS stream or a server.
pub(crate) fn is_nats(place: &str) -> bool {
    place == "nats" || place.contains("://")
}

/// The checkpoints at `place` about these buses; none if it is a place of another kind, such as an archive.
pub(crate) fn read(
    place: &str,
    buses: &[BusId],
    settings: &Settings,
) -> Result<Option<Checkpoints>> {
    if is_nats(place) {
        return from_nats(place, buses, settings).map(Some);
    }
    let parsed = AnchorPlace::parse(place);
    match &parsed {
        AnchorPlace::File(path) if !holds_checkpoints(path) => return Ok(None),
        // All buses are in one file, or in one ref.
        AnchorPlace::File(_) | AnchorPlace::Git { reference: Some(_), .. } => {
            let Some(bus) = buses.first() else { return Ok(Some(Vec::new())) };
            return Ok(Some(parsed.read(*bus)?));
        }
        AnchorPlace::Git { reference: None, .. } => {}
    }
    let mut all = Vec::new();
    for bus in buses {
        all.extend(parsed.read(*bus)?);
    }
    Ok(Some(all))
}

/// The checkpoints in the stream.
pub(crate) fn from_nats(place: &str, buses: &[BusId], settings: &Settings) -> Result<Checkpoints> {
    let Some(nats) = nats_settings((place != "nats").then_some(place), settings) else {
        bail!("there is no `nats:` in hookbus.yaml; add it, or name the server: nats://HOST");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut all = Vec::new();
    for bus in buses {
        all.extend(runtime.block_on(published_checkpoints(&nats, *bus))?);
    }
    Ok(all)
}

/// Whether a file has lines of checkpoints; one line that was edited does not make it another file.
fn holds_checkpoints(path: &Path) -> bool {
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() < 64 << 20);
    is_file
        && fs::read(path).is_ok_and(|content| {
            String::from_utf8_lossy(&content).lines().any(|line| {
                line.starts_with('{')
                    && line.contains("\"format\"")
                    && line.contains("hookbus checkpoint")
            })
        })
}

/// The key that checkpoints have to be signed with: the one that is named, in hex, else that of the home; none if
/// neither is there.
pub(crate) fn trusted_key(named: Option<&str>, settings: &Settings) -> Result<Option<PublicKey>> {
    if let Some(text) = named {
        let key = text.trim().parse();
        return key.map(Some).ok().context(
            "--key takes the 64 hex digits that `hookbus anchor` prints; it is the public key, not the file signing.key",
        );
    }
    Ok(SigningKey::of_home(&settings.home)?.map(|key| key.public()))
}

/// The newest checkpoint at `place` that is signed with `key` and about the bus of `log`, whose row is still there. `last` is
/// the newest that the log itself recorded.
pub(crate) fn starting_point(
    place: &str,
    log: &LogReader,
    key: PublicKey,
    settings: &Settings,
) -> Result<SignedCheckpoint> {
    let bus = log.bus()?;
    let found = if place == "last" {
        log.recorded_checkpoints()?.into_iter().map(|(_, signed)| Ok(signed)).collect()
    } else {
        read(place, &[bus], settings)?.with_context(|| {
            format!("{place} holds no checkpoints; `hookbus anchor --to {place}` writes one")
        })?
    };
    let of_bus = |signed: &SignedCheckpoint| signed.checkpoint.bus == bus;
    let newest = found.into_iter().rfind(|read| read.as_ref().map_or(true, of_bus));
    let place = if place == "last" { "this log" } else { place };
    let Some(newest) = newest else {
        bail!("{place} holds no checkpoint of bus {bus}; `hookbus verify` checks everything");
    };
    let signed = newest.with_context(|| format!("the newest checkpoint in {place}"))?;
    let (seq, time) = (signed.checkpoint.seq, local_time(signed.checkpoint.time));
    signed.check(Some(key)).with_context(|| {
        format!("the checkpoint of row {seq} in {place} is not to be relied on")
    })?;
    if log.confirms(&signed.checkpoint)? {
        return Ok(signed);
    }
    if log.is_removed(seq)? {
        bail!(
            "row {seq}, which the checkpoint in {place} is about, was removed on purpose; `hookbus verify` checks everything"
        );
    }
    bail!(
        "not sound: row {seq} is not there as it was on {}, when it was signed: rows were cut off, or the log was rewritten; \
         `hookbus verify` tells more",
        time.format("%Y-%m-%d %H:%M")
    );
}
