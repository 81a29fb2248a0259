//! The bounds of reading a line. Whatever goes beyond one of them is cut and reported as
//! [`OpaqueKind::Syntax`](super::OpaqueKind::Syntax), so that reading is quick and needs little stack for any text.

/// The longest text that is read as a shell line.
pub(super) const LINE_BYTES: usize = 64 * 1024;
/// How deep quotes, substitutions and compound commands may nest in one text.
pub(super) const NESTING: usize = 24;
/// How deep code may nest while it is followed: compound commands, substitutions, `sh -c`, functions.
pub(super) const DEPTH: usize = 28;
/// How many programs are listed.
pub(super) const PROGRAMS: usize = 600;
/// How many commands are followed, those in loops and functions counted each time.
pub(super) const COMMANDS: usize = 2_000;
/// How many bytes of code are read in all: the line, its substitutions and the code in its strings.
pub(super) const CODE_BYTES: usize = 160 * 1024;
/// The longest word; variables that double each other stop here.
pub(super) const WORD_BYTES: usize = 64 * 1024;
/// How many words braces may make of one.
pub(super) const BRACE_WORDS: usize = 256;
/// How many values of a loop are followed one by one.
pub(super) const LOOP_VALUES: usize = 12;
/// How much of a text is shown as opaque.
pub(super) const SHOWN_CHARS: usize = 80;
/// How many variables are remembered.
pub(super) const VARIABLES: usize = 512;
/// How many commands one text may have; one with more is only searched for words.
pub(super) const PARSED_COMMANDS: usize = 4_000;
/// How many words a command may have.
pub(super) const WORDS: usize = 2_048;
/// How many redirections a command may have; a text with more is only searched for words.
pub(super) const REDIRECTS: usize = 256;
/// How many bytes all expanded words may have together.
pub(super) const EXPANDED_BYTES: usize = 512 * 1024;
/// How many pieces (quotes, variables, plain text) a word may have.
pub(super) const PIECES: usize = 2_048;
/// The longest directory.
pub(super) const PATH_BYTES: usize = 1_024;
/// How many opaque parts are listed.
pub(super) const OPAQUE: usize = 64;

/// Whether a value may be a path, an option or a program, and not only a name or a number that a loop goes through.
pub(super) fn is_more_than_a_name(text: &str) -> bool {
    text.starts_with('-') || text.contains(['/', '~', '*', ' ', '$']) || text.contains("..")
}
