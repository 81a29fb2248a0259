//! The choices, and the paths of fields that are left out.

use std::fmt;

/// What is recorded of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RecordChoice {
    /// The payload as it is.
    #[default]
    Everything,
    /// The payload without these fields.
    Without(Vec<FieldPath>),
    /// The structure of the payload; each text is replaced by a mark.
    Outline,
    /// No row, unless a hook answers.
    Nothing,
}

impl RecordChoice {
    /// The word in `hookbus.yaml` and in the context of a row.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Without(_) => "without",
            Self::Outline => "outline",
            Self::Nothing => "nothing",
        }
    }

    /// The choice that one word stands for.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "everything" => Some(Self::Everything),
            "outline" => Some(Self::Outline),
            "nothing" => Some(Self::Nothing),
            _ => None,
        }
    }
}

impl fmt::Display for RecordChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Without(paths) => {
                let paths: Vec<&str> = paths.iter().map(FieldPath::as_str).collect();
                write!(f, "without {}", paths.join(", "))
            }
            Self::Everything | Self::Outline | Self::Nothing => f.write_str(self.as_str()),
        }
    }
}

/// A place in a payload: names and numbers with dots between them; `*` stands for any one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath(String);

impl FieldPath {
    /// Reads `tool_input.env.*`. None if a part is empty, or if it names nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let is_right = text.split('.').all(|part| !part.is_empty());
        let names_something = text.split('.').any(|part| part != "*");
        (is_right && names_something).then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it leads to exactly this place.
    pub(super) fn leads_to(&self, place: &[String]) -> bool {
        let parts = self.0.split('.');
        parts.clone().count() == place.len()
            && parts.zip(place).all(|(part, name)| part == "*" || part == name)
    }
}
