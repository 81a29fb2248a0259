//! What is known about the place where a line will run.

/// What is known before a line runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// The home directory of the user, which `~` stands for.
    pub home: Option<String>,
    /// Other variables whose values are known, by name: `PWD`, `TMPDIR`, `USER`.
    pub variables: Vec<(String, String)>,
}

impl Start {
    /// The value of a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        if name == "HOME"
            && let Some(home) = &self.home
        {
            return Some(home);
        }
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
