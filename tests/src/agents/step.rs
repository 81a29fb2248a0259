//! What the played model says, one step per request of the main conversation. The words are the same
//! for both agents; `openai` and `google` turn them into each protocol's own shape.

use serde_json::Value;

/// What the model answers once its script has ended, so that an agent never waits for more.
pub const SCRIPT_ENDED: &str = "(the script has ended)";

/// One answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A text in one piece.
    Text(String),
    /// A text in several streamed pieces.
    Chunks(Vec<String>),
    /// One tool call.
    Tool {
        /// The tool's name, as the agent declares it.
        name: String,
        /// Its arguments, a JSON object.
        args: Value,
    },
    /// Several tool calls in one answer.
    Tools(Vec<(String, Value)>),
    /// What another step says, by a model whose context is nearly full.
    Crowded(Box<Step>),
    /// The request fails. An agent that tries again is given the next step.
    Error {
        /// The HTTP status.
        status: u16,
        /// What the error body says.
        message: String,
    },
}

impl Step {
    /// A text in one piece.
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// A text in several streamed pieces.
    pub fn chunks(pieces: &[&str]) -> Self {
        Self::Chunks(pieces.iter().map(|&piece| piece.to_owned()).collect())
    }

    /// One tool call.
    pub fn tool(name: &str, args: Value) -> Self {
        Self::Tool { name: name.to_owned(), args }
    }

    /// Several tool calls in one answer.
    pub fn tools(calls: &[(&str, Value)]) -> Self {
        Self::Tools(calls.iter().map(|(name, args)| ((*name).to_owned(), args.clone())).collect())
    }

    /// The same answer; the model counts so many tokens that an agent had better compress the conversation.
    #[must_use]
    pub fn crowded(self) -> Self {
        Self::Crowded(Box::new(self))
    }

    /// A failed request.
    pub fn error(status: u16, message: &str) -> Self {
        Self::Error { status, message: message.to_owned() }
    }

    /// The step as text pieces and tool calls, or the error it is.
    pub(super) fn spoken(self) -> Result<Spoken, (u16, String)> {
        match self {
            Self::Text(text) => Ok(Spoken { pieces: vec![text], ..Spoken::default() }),
            Self::Chunks(pieces) => Ok(Spoken { pieces, ..Spoken::default() }),
            Self::Tool { name, args } => {
                Ok(Spoken { calls: vec![(name, args)], ..Spoken::default() })
            }
            Self::Tools(calls) => Ok(Spoken { calls, ..Spoken::default() }),
            Self::Crowded(step) => Ok(Spoken { is_crowded: true, ..step.spoken()? }),
            Self::Error { status, message } => Err((status, message)),
        }
    }
}

/// A step that is not an error, ready to be put into a protocol's words.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    pub(super) pieces: Vec<String>,
    pub(super) calls: Vec<(String, Value)>,
    /// Whether the model says that its context is nearly full.
    pub(super) is_crowded: bool,
}
