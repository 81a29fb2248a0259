//! What can be wrong with a log.

use std::fmt;

use crate::event::Seq;

/// How many flaws, and how many gaps, are listed; the first one matters most.
pub(super) const MAX_LISTED: usize = 20;

/// What kind of flaw it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlawKind {
    /// A row was changed.
    Altered,
    /// Rows were removed.
    Missing,
    /// A row was put between others.
    Inserted,
    /// Rows have changed places.
    Reordered,
    /// Rows at the end were cut off.
    Truncated,
    /// The file is another log than the one that was expected.
    Replaced,
    /// A derived column does not follow from the row.
    Derived,
    /// A page of the file is damaged.
    Page,
    /// An index does not agree with its table.
    Index,
    /// The tables, indexes or triggers are not those of a log.
    Schema,
    /// A checkpoint is not what it claims to be.
    Checkpoint,
}

impl FlawKind {
    /// The word in `hookbus verify --json`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Altered => "altered",
            Self::Missing => "missing",
            Self::Inserted => "inserted",
            Self::Reordered => "reordered",
            Self::Truncated => "truncated",
            Self::Replaced => "replaced",
            Self::Derived => "derived",
            Self::Page => "page",
            Self::Index => "index",
            Self::Schema => "schema",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// Something wrong with a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// What kind of flaw it is.
    pub kind: FlawKind,
    /// The first row that it is about, if it is about rows.
    pub seq: Option<Seq>,
    /// What is wrong, and what to do if there is something to do.
    pub what: String,
}

impl Flaw {
    pub(super) fn of_row(kind: FlawKind, seq: i64, what: impl Into<String>) -> Self {
        Self { kind, seq: Some(Seq::from_i64(seq)), what: what.into() }
    }

    pub(super) fn of_file(kind: FlawKind, what: impl Into<String>) -> Self {
        Self { kind, seq: None, what: what.into() }
    }

    /// Sorts by the first row that they are about.
    pub(super) fn sort(flaws: &mut [Self]) {
        flaws.sort_by_key(|flaw| flaw.seq.map_or(i64::MAX, Seq::as_i64));
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seq {
            Some(seq) => write!(f, "{}, seq {seq}: {}", self.kind.as_str(), self.what),
            None => write!(f, "{}: {}", self.kind.as_str(), self.what),
        }
    }
}
