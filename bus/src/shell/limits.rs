//! The bounds of reading a line. Whatever goes beyond one of them is cut and reported as
//! [`OpaqueKind::Syntax`](super::OpaqueKind::Syntax), so that reading is quick and needs little stack for any text.

/// The longest text that is read as a shell line.
pub(super) const LINE_BYTES: usize = 64 * 1024;
/// How deep quotes, substitutions and compound commands may nest in one text.
pub(super) const NESTING: usize = 24;
/// How deep code may nest while it is followed: compound commands, substitutions, `sh -c`, functions.
pub(super) const DEPTH: usize = 28;
/// How many programs are listed.
pub(super) const PROGRAMS: usize = 2_000;
/// How many commands are followed, those in loops and functions counted each time.
pub(super) const COMMANDS: usize = 3_000;
/// How many bytes of code are read in all: the line, its substitutions and the code in its strings.
pub(super) const CODE_BYTES: usize = 256 * 1024;
/// The longest word; variables that double each other stop here.
pub(super) const WORD_BYTES: usize = 16 * 1024;
/// How many words braces may make of one.
pub(super) const BRACE_WORDS: usize = 256;
/// How many values of a loop are followed one by one.
pub(super) const LOOP_VALUES: usize = 12;
/// How much of a text is shown as opaque.
pub(super) const SHOWN_CHARS: usize = 80;
/// How many variables are remembered.
pub(super) const VARIABLES: usize = 256;
