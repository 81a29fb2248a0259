//! The columns of a row that are derived from the rest of it and that its hash does not cover: session, turn,
//! kind, tool and tool class.

/// What the columns are derived from. The hash of the row covers all of it.
#[derive(Debug, Clone, Copy)]
pub struct DerivedFrom<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The agent's name for the event.
    pub name: &'a str,
    /// JSON: the working directory, the agent's session variables, marks.
    pub context: Option<&'a str>,
    /// The payload; none if it was removed on purpose, and only its digest is there.
    pub payload: Option<&'a [u8]>,
}

/// The derived columns of a row, as [`DerivedFrom`] gives them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Derived {
    /// The kind, and what earlier versions derived for the same event.
    pub kinds: Vec<String>,
    /// The columns that only the payload tells.
    pub session: Column<String>,
    /// The turn.
    pub turn: Column<Option<String>>,
    /// The tool.
    pub tool: Column<Option<String>>,
    /// Its class, and what earlier versions derived for the same tool.
    pub tool_classes: Column<Vec<Option<String>>>,
}

/// What a column has to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Column<T> {
    /// It cannot be told: the row was recorded by a version that did not record how it found the session, or
    /// only the beginning of the payload is stored, or nothing of it.
    #[default]
    Unknown,
    /// This.
    Known(T),
}

impl<T> Column<T> {
    /// The value, if it can be told.
    pub fn known(self) -> Option<T> {
        match self {
            Self::Unknown => None,
            Self::Known(value) => Some(value),
        }
    }

    /// Whether a row may hold a value for which `fits` is true.
    pub fn allows(&self, fits: impl FnOnce(&T) -> bool) -> bool {
        match self {
            Self::Unknown => true,
            Self::Known(value) => fits(value),
        }
    }
}
