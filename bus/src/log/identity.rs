//! Who recorded each row. A row refers to an identity by its key, as the last field `by` of its `context` (`hooks.loaded` rows, which
//! are found by their context, of their payload); the table `identities` holds each identity once.
//!
//! The chain covers the key, and the key follows from the identity. So the table cannot be changed unnoticed, and an
//! identity that came over NATS is kept only if the row that it came with refers to it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};
use serde_json::{Value, json};

use super::row::Row;
use crate::event::{BusIdentity, IdentityKey, Kind};
use crate::sys::process::host_name;
use crate::sys::user::account;

const OPENING: &str = "\"by\":\"";
const CLOSING: &str = "\"}";
const DIGITS: usize = 16;

/// Who this process is as a writer of the log in `home`. Neither host nor user are taken from the environment, which an
/// agent can set.
pub fn local_identity(home: &Path, name: Option<&str>) -> BusIdentity {
    let home = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
    let user = account().map_or("?", |account| account.name.as_str());
    BusIdentity::new(&host_name(), user, &home.to_string_lossy(), name)
}

/// A JSON object with the key as its last field; unchanged if it is no object.
pub(super) fn with_key(object: Option<&str>, key: IdentityKey) -> Cow<'_, str> {
    let field = format!("{OPENING}{key}{CLOSING}");
    match object.map(str::trim_end) {
        None | Some("{}") => Cow::Owned(format!("{{{field}")),
        Some(text) => match text.strip_suffix('}') {
            Some(open) if text.starts_with('{') => Cow::Owned(format!("{open},{field}")),
            Some(_) | None => Cow::Borrowed(text),
        },
    }
}

/// The key that is the last field of a JSON object.
fn key_in(object: &str) -> Option<IdentityKey> {
    let field = object.strip_suffix(CLOSING)?;
    let digits = field.get(field.len().checked_sub(DIGITS)?..)?;
    field.strip_suffix(digits)?.strip_suffix(OPENING)?.strip_suffix(['{', ','])?;
    IdentityKey::parse(digits)
}

/// The key of the identity that recorded a row.
pub(super) fn key_of(kind: &str, context: Option<&str>, payload: &[u8]) -> Option<IdentityKey> {
    if kind == Kind::HooksLoaded.as_str() {
        return key_in(std::str::from_utf8(payload).ok()?);
    }
    key_in(context?)
}

impl Row {
    /// The key of the identity that recorded it.
    pub fn identity_key(&self) -> Option<IdentityKey> {
        key_of(&self.kind, self.context.as_deref(), &self.payload)
    }
}

/// Whether the file is of a version with identities.
pub(super) fn has_table(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'identities')",
        [],
        |row| row.get(0),
    )
}

/// Stores an identity, if it is not there yet.
pub(super) fn store(db: &Connection, identity: &BusIdentity) -> rusqlite::Result<()> {
    let BusIdentity { host, user, home, name } = identity;
    db.prepare_cached(
        "INSERT INTO identities (key, host, user, home, name) \
         SELECT ?1, ?2, ?3, ?4, ?5 WHERE NOT EXISTS (SELECT 1 FROM identities WHERE key = ?1)",
    )?
    .execute((identity.key().to_string(), host, user, home, name))?;
    Ok(())
}

fn find(db: &Connection, key: IdentityKey) -> rusqlite::Result<Option<BusIdentity>> {
    db.prepare_cached("SELECT host, user, home, name FROM identities WHERE key = ?1")?
        .query_row([key.to_string()], |row| {
            Ok(BusIdentity {
                host: row.get(0)?,
                user: row.get(1)?,
                home: row.get(2)?,
                name: row.get(3)?,
            })
        })
        .optional()
}

/// The identities that were not stored by hookbus as they are: their keys do not follow from them.
pub(super) fn changed(db: &Connection) -> rusqlite::Result<Vec<String>> {
    if !has_table(db)? {
        return Ok(Vec::new());
    }
    let mut statement = db.prepare("SELECT key FROM identities NOT INDEXED")?;
    let keys = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut changed = Vec::new();
    for key in keys {
        let key = key?;
        let parsed = IdentityKey::parse(&key);
        let is_right = match parsed {
            Some(parsed) => find(db, parsed)?.is_some_and(|identity| identity.key() == parsed),
            None => false,
        };
        if !is_right {
            changed.push(key);
        }
    }
    Ok(changed)
}

/// Whether the identities that rows refer to are there. Each is looked for once.
#[derive(Debug)]
pub(super) struct Referred {
    has_table: bool,
    seen: HashSet<IdentityKey>,
}

impl Referred {
    pub(super) fn new(db: &Connection) -> rusqlite::Result<Self> {
        Ok(Self { has_table: has_table(db)?, seen: HashSet::new() })
    }

    /// Whether a row refers to an identity that is missing and was not asked for before.
    pub(super) fn lacks(
        &mut self,
        db: &Connection,
        key: Option<IdentityKey>,
    ) -> rusqlite::Result<bool> {
        match key {
            Some(key) if self.has_table && self.seen.insert(key) => Ok(find(db, key)?.is_none()),
            Some(_) | None => Ok(false),
        }
    }
}

/// The identities of one file, as far as a reader has met them.
#[derive(Debug, Default)]
pub(super) struct KnownIdentities {
    has_table: bool,
    known: RefCell<HashMap<IdentityKey, Arc<BusIdentity>>>,
}

impl KnownIdentities {
    pub(super) fn new(db: &Connection) -> rusqlite::Result<Self> {
        Ok(Self { has_table: has_table(db)?, known: RefCell::default() })
    }

    /// The identity with this key; none if the file does not hold it.
    pub(super) fn get(
        &self,
        db: &Connection,
        key: IdentityKey,
    ) -> rusqlite::Result<Option<Arc<BusIdentity>>> {
        if !self.has_table {
            return Ok(None);
        }
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        // What another program put there in its place is not believed.
        let found = find(db, key)?.filter(|identity| identity.key() == key).map(Arc::new);
        if let Some(identity) = &found {
            self.known.borrow_mut().insert(key, Arc::clone(identity));
        }
        Ok(found)
    }
}

/// As a spool file holds it.
pub(super) fn to_json(identity: &BusIdentity) -> Value {
    let BusIdentity { host, user, home, name } = identity;
    json!({"host": host, "user": user, "home": home, "name": name})
}

/// Reads what [`to_json`] wrote.
pub(super) fn from_json(value: &Value) -> Option<BusIdentity> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    Some(BusIdentity::new(text("host")?, text("user")?, text("home")?, Some(text("name")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> IdentityKey {
        BusIdentity::new("laptop", "anna", "/home/anna/.hookbus", None).key()
    }

    #[test]
    fn a_key_is_found_where_it_was_put_and_the_rest_stays_as_it_was() {
        for object in [None, Some("{}"), Some(r#"{"cwd":"/x","env":{}}"#), Some(r#"{"a":"}"}"#)] {
            let with = with_key(object, key());
            assert_eq!(key_in(&with), Some(key()), "{with}");
            let mut json: Value = serde_json::from_str(&with).expect("JSON");
            json.as_object_mut().expect("an object").remove("by");
            let before =
                object.map_or_else(|| json!({}), |it| serde_json::from_str(it).expect("JSON"));
            assert_eq!(json, before);
        }
        assert_eq!(with_key(Some("[1]"), key()), "[1]");
    }

    #[test]
    fn a_key_inside_of_another_value_is_not_taken_for_it() {
        let inside = json!({"env": {"by": key().to_string()}}).to_string();
        assert_eq!(key_in(&inside), None);
        let quoted = json!({"cwd": format!("/x\",\"by\":\"{}", key())}).to_string();
        assert_eq!(key_in(&quoted), None, "{quoted}");
        assert_eq!(key_in(""), None);
        assert_eq!(key_in("\"}"), None);
    }
}
