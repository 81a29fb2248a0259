//! Scopes: what figures are told apart by. Each has a number, which SQLite gives it with the first row that needs it.

use std::collections::HashMap;

/// What figures are told apart by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    /// The number of the bus in the database.
    pub(super) bus: i64,
    pub(super) agent: String,
    pub(super) project: String,
    pub(super) model: String,
    pub(super) host: String,
}

/// The scopes that the database holds, and those to be added with the next write.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    pub(super) known: HashMap<Scope, i64>,
    pub(super) new: Vec<(Scope, i64)>,
}

impl Scopes {
    /// The number of a scope.
    pub(super) fn number(&mut self, scope: Scope) -> i64 {
        if let Some(number) = self.known.get(&scope) {
            return *number;
        }
        let number = i64::try_from(self.known.len()).unwrap_or(i64::MAX).saturating_add(1);
        self.new.push((scope.clone(), number));
        self.known.insert(scope, number);
        number
    }
}
