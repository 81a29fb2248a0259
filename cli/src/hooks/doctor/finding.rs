//! The result of one check.

/// One thing that was checked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) about: String,
    /// What is wrong, and what to do. None: nothing.
    pub(super) wrong: Option<String>,
}

impl Finding {
    pub(super) fn ok(about: impl Into<String>) -> Self {
        Self { about: about.into(), wrong: None }
    }

    pub(super) fn bad(about: impl Into<String>, wrong: impl Into<String>) -> Self {
        Self { about: about.into(), wrong: Some(wrong.into()) }
    }
}
