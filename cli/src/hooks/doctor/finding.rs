//! What the doctor found.

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) about: String,
    /// What is wrong, ending with the way to mend it. None: all is well.
    pub(super) wrong: Option<String>,
}

impl Finding {
    pub(super) fn well(about: impl Into<String>) -> Self {
        Self { about: about.into(), wrong: None }
    }

    pub(super) fn bad(about: impl Into<String>, wrong: impl Into<String>) -> Self {
        Self { about: about.into(), wrong: Some(wrong.into()) }
    }
}
