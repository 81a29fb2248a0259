//! The code that is searched, and what its variables are: the literals that it assigns to them.

use std::cell::Cell;

use super::languages::Language;
use super::literals::{Argument, Literals};

/// How many variables of one code are looked up.
const LOOKUPS: u32 = 128;
/// How many bytes of one code are looked through, each time counted.
const SCANNED: usize = 512 * 1024;
/// How many places of a name are tried.
const PLACES: usize = 16;

/// A code with what is needed to understand its expressions.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) code: &'a str,
    pub(super) home: Option<&'a str>,
    pub(super) language: Option<Language>,
    lookups: Cell<u32>,
    scanned: Cell<usize>,
}

impl<'a> Context<'a> {
    pub(super) const fn new(
        code: &'a str,
        home: Option<&'a str>,
        language: Option<Language>,
    ) -> Self {
        Self { code, home, language, lookups: Cell::new(0), scanned: Cell::new(0) }
    }

    /// Counts bytes that were looked through for the end of a string or an expression.
    pub(super) fn spend(&self, bytes: usize) {
        self.scanned.set(self.scanned.get().saturating_add(bytes));
    }

    /// Whether the code has strings and brackets without end, so that reading on would take too long.
    pub(super) fn is_spent(&self) -> bool {
        self.scanned.get() > SCANNED
    }

    /// What a variable was assigned, as written, up to the end of the code.
    pub(super) fn assigned_text(&self, name: &str) -> Option<&'a str> {
        let name =
            name.split(['.', '[', '(']).next().unwrap_or_default().trim().trim_start_matches('$');
        let count = self.lookups.get() + 1;
        self.lookups.set(count);
        let part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if count > LOOKUPS || name.is_empty() || !name.bytes().all(part) {
            return None;
        }
        let mut from = 0;
        for _ in 0..PLACES {
            let at = from + self.code.get(from..)?.find(name)?;
            from = at + name.len();
            let inside =
                self.code.as_bytes().get(at.wrapping_sub(1)).is_some_and(|byte| part(*byte));
            let behind = self.code.get(from..)?.trim_start();
            if let Some(value) = behind.strip_prefix('=')
                && !inside
                && !value.starts_with(['=', '~', '>'])
            {
                return Some(value.trim_start());
            }
        }
        None
    }

    /// The literal that a variable was assigned.
    pub(super) fn assigned(&self, name: &str, depth: usize) -> Option<Argument> {
        let mut literals = Literals::new(self.assigned_text(name)?, self);
        literals.depth = depth + 1;
        let value = literals.arguments().into_iter().next()?;
        (!matches!(value, Argument::Other(_))).then_some(value)
    }
}
