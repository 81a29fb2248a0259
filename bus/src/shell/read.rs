//! The entry: reads a shell line and tells what it does. Pure, and bounded for any text.

use super::effects::{add_effects, add_links};
use super::follow::{Flow, Follower};
use super::limits;
use super::start::Start;
use super::view::{OpaqueKind, ShellView};

/// Tells what a shell line does when it is run at `start`: the programs that it starts, the code that they run, the
/// files and hosts of its redirections, and what cannot be told. A line that bash would refuse gives
/// [`OpaqueKind::Syntax`] and the programs that can still be recognised in it.
pub fn read(line: &str, start: &Start) -> ShellView {
    let mut follower = Follower::new(start);
    let text = shortened(line);
    if text.len() < line.len() {
        follower.opaque(OpaqueKind::Syntax, line);
    }
    follower.run_text(text, &Flow::default());
    follower.run_uncalled_functions();
    let mut view = follower.view;
    add_effects(&mut view);
    add_links(&mut view);
    view
}

/// The part of a line that is read.
fn shortened(line: &str) -> &str {
    if line.len() <= limits::LINE_BYTES {
        return line;
    }
    let mut end = limits::LINE_BYTES;
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.get(..end).unwrap_or_default()
}
