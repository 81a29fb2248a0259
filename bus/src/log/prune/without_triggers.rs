//! Takes triggers that refuse every change out of the schema for one transaction. If that is not committed, they are there
//! as before.

use rusqlite::Transaction;

use super::error::PruneError;
use crate::log::schema::{self, ObjectName};

/// The triggers, to be put back before the transaction is committed.
#[derive(Debug)]
#[must_use]
pub(in crate::log) struct WithoutTriggers(Vec<String>);

impl WithoutTriggers {
    pub(in crate::log) fn begin(
        transaction: &Transaction<'_>,
        names: &[&str],
    ) -> Result<Self, PruneError> {
        let expected = schema::expected_objects(schema::version(transaction)?)?;
        let mut statements = Vec::new();
        for name in names {
            let statement = expected.get(&ObjectName::of_trigger(name));
            statements.push(statement.ok_or(PruneError::ForeignSchema)?.clone());
            transaction.execute_batch(&format!("DROP TRIGGER IF EXISTS {name}"))?;
        }
        Ok(Self(statements))
    }

    pub(in crate::log) fn restore(self, transaction: &Transaction<'_>) -> Result<(), PruneError> {
        self.0.iter().try_for_each(|statement| Ok(transaction.execute_batch(statement)?))
    }
}
