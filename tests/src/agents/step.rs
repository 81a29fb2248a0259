//! The script of the model: one step per request of the main conversation. Steps are the same for both
//! agents; `openai` and `google` encode them for each protocol.

use serde_json::Value;

/// The model's answer after the end of its script.
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
    /// Another step, with a token count that says that the context is nearly full.
    NearlyFull(Box<Step>),
    /// The request fails. An agent that retries gets the next step.
    Error {
        /// The HTTP status.
        status: u16,
        /// The message in the error body.
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

    /// The same answer, with so many tokens that the agent compresses the conversation.
    #[must_use]
    pub fn nearly_full(self) -> Self {
        Self::NearlyFull(Box::new(self))
    }

    /// A failed request.
    pub fn error(status: u16, message: &str) -> Self {
        Self::Error { status, message: message.to_owned() }
    }

    /// The text and the tool calls of the step, or its error.
    pub(super) fn answer(self) -> Result<ModelAnswer, (u16, String)> {
        match self {
            Self::Text(text) => Ok(ModelAnswer { pieces: vec![text], ..ModelAnswer::default() }),
            Self::Chunks(pieces) => Ok(ModelAnswer { pieces, ..ModelAnswer::default() }),
            Self::Tool { name, args } => {
                Ok(ModelAnswer { calls: vec![(name, args)], ..ModelAnswer::default() })
            }
            Self::Tools(calls) => Ok(ModelAnswer { calls, ..ModelAnswer::default() }),
            Self::NearlyFull(step) => {
                Ok(ModelAnswer { context_is_nearly_full: true, ..step.answer()? })
            }
            Self::Error { status, message } => Err((status, message)),
        }
    }
}

/// A step that is not an error.
#[derive(Debug, Default)]
pub(super) struct ModelAnswer {
    pub(super) pieces: Vec<String>,
    pub(super) calls: Vec<(String, Value)>,
    /// Whether the token count says that the context is nearly full.
    pub(super) context_is_nearly_full: bool,
}
