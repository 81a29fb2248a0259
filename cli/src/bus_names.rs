//! What buses are called where a person reads it: the readable name, and as much of the id as tells them apart. The name
//! is what a bus calls itself; two buses can have the same one, and only the id tells which is which.

use std::collections::HashMap;

use anyhow::Result;
use hookbus::event::BusId;
use hookbus::log::LogReader;

use crate::output::sanitize;

/// The names of the buses in one log.
#[derive(Debug)]
pub(crate) struct BusNames(HashMap<BusId, BusName>);

/// What one bus is called.
#[derive(Debug)]
struct BusName {
    /// None if none of its last rows tells.
    name: Option<String>,
    short: String,
}

impl BusNames {
    /// The buses that `log` holds rows of.
    pub(crate) fn read(log: &LogReader) -> Result<Self> {
        let ids: Vec<BusId> = log.buses()?.into_iter().map(|(bus, _)| bus).collect();
        let mut names = HashMap::new();
        for bus in &ids {
            let name = log.identity_of(*bus)?.map(|identity| identity.name.clone());
            names.insert(*bus, BusName { name, short: bus.short(&ids) });
        }
        Ok(Self(names))
    }

    /// Without any: each bus is called by its id.
    pub(crate) fn none() -> Self {
        Self(HashMap::new())
    }

    /// Whether this bus was there when the names were read.
    pub(crate) fn knows(&self, bus: BusId) -> bool {
        self.0.contains_key(&bus)
    }

    /// The readable name.
    pub(crate) fn name(&self, bus: BusId) -> Option<&str> {
        self.0.get(&bus)?.name.as_deref()
    }

    /// The name and the beginning of the id: `anna@laptop 019a1f03`.
    pub(crate) fn describe(&self, bus: BusId) -> String {
        match self.0.get(&bus) {
            Some(BusName { name: Some(name), short }) => format!("{} {short}", sanitize(name)),
            Some(BusName { name: None, .. }) | None => bus.to_string(),
        }
    }

    /// The buses with this name, or whose id starts with it.
    pub(crate) fn matching(&self, text: &str) -> Vec<BusId> {
        let has_name = |bus: &BusName| bus.name.as_deref() == Some(text);
        let named: Vec<BusId> =
            self.0.iter().filter(|(_, bus)| has_name(bus)).map(|(id, _)| *id).collect();
        if !named.is_empty() {
            return named;
        }
        self.0.keys().filter(|id| id.to_string().starts_with(text)).copied().collect()
    }

    /// All of them, as [`describe`](Self::describe) calls them.
    pub(crate) fn all(&self) -> String {
        let mut all: Vec<String> = self.0.keys().map(|bus| self.describe(*bus)).collect();
        all.sort();
        all.join(", ")
    }
}
