//! What a user can set: own patterns, key names, JSON paths, detectors that are off, values that are never secrets.

/// The settings, as texts; [`super::Redactor::new`] checks them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedactionSettings {
    /// Own patterns, beside the built-in detectors.
    pub patterns: Vec<OwnPattern>,
    /// Names whose values are secrets, in JSON and in `name=value`; `*` and `?` are wildcards, case does not matter.
    pub key_names: Vec<String>,
    /// Places in the payload that are secrets: `tool_input.env.*`, `messages.0.content`. `*` is any key or position. What is
    /// below the place is secret too.
    pub json_paths: Vec<String>,
    /// Kinds that are not looked for, such as `jwt`.
    pub off: Vec<String>,
    /// Values that are never replaced.
    pub allowed: Vec<Allowed>,
}

/// A pattern of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPattern {
    /// What a mark calls it: lower-case letters, digits and hyphens.
    pub name: String,
    /// A regex of the `regex` crate. If it has a group, the first group is the secret, else the whole match.
    pub regex: String,
    /// The regex is tried only where the payload contains one of these. Empty: on every payload.
    pub keywords: Vec<String>,
}

/// A value that is never replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// This value.
    Exact(String),
    /// Every value that this regex matches as a whole.
    Matching(String),
}

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A name cannot stand in a mark.
    #[error(
        "the pattern name `{name}` cannot stand in a mark; use 1 to 64 lower-case letters, digits and hyphens"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A regex cannot be compiled.
    #[error("the regex of `{name}` is not valid: {error}")]
    Regex {
        /// The pattern's name, or what the regex is for.
        name: String,
        /// What the `regex` crate says.
        #[source]
        error: Box<regex::Error>,
    },
    /// A regex matches nothing at all, so it would match everywhere.
    #[error("the regex of `{name}` matches the empty text; make it match at least one character")]
    Empty {
        /// The pattern's name.
        name: String,
    },
    /// A key name or a path without any text.
    #[error("`{pattern}` matches every name; write at least one letter of the name")]
    TooWide {
        /// The pattern.
        pattern: String,
    },
    /// A path with an empty part.
    #[error("the path `{path}` has an empty part; write it as `tool_input.env.*`")]
    Path {
        /// The path.
        path: String,
    },
    /// There is no such detector.
    #[error("there is no detector `{kind}`{hint}; `off` takes the kinds that marks show")]
    UnknownKind {
        /// What was written.
        kind: String,
        /// A kind that is spelled similarly.
        hint: String,
    },
}
