//! Checks the examples in Markdown documents: what a document shows is run in a scratch home, in the order in which a
//! user reads it.
//!
//! | block | check |
//! |---|---|
//! | ` ```yaml ` | a complete `hookbus.yaml`; `hookbus hooks list` finds no problem in it |
//! | ` ```yaml title=PATH ` (any language) | the same if PATH is a `hookbus.yaml`, else it must parse; then it is written to PATH for the steps that follow |
//! | ` ```console ` | every `$ ` line is run and must succeed; shown output must match, `…` stands for any text, and alone on a line for any lines |
//! | ` ```console exit=1 ` | the same, but the last command ends with this exit code |
//! | ` ```console no-run: why ` | not run |
//! | ` ```json `, ` ```python ` | must parse |

mod markdown;
mod transcript;
mod walkthrough;

pub use markdown::{Block, Link, anchors, blocks, links};
pub use transcript::{Step, steps};
pub use walkthrough::Walkthrough;
