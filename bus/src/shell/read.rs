//! The entry: reads a shell line and tells what it does. Pure, and bounded for any text.

use super::effects::{add_effects, add_links};
use super::follow::{Flow, Follower};
use super::limits;
use super::start::Start;
use super::view::{Invocation, OpaqueKind, ShellView};
use super::word::{UNKNOWN, Word};

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
    if follower.scope.full.get() {
        follower.cut(line);
    }
    let mut view = follower.view;
    add_without_unknown_parts(&mut view);
    add_effects(&mut view);
    add_links(&mut view);
    view
}

/// A variable that is not set is empty: `r${x}m` runs `rm`. Each program with an unknown part between letters is listed
/// again without it.
fn add_without_unknown_parts(view: &mut ShellView) {
    let mut without = Vec::new();
    for program in &view.programs {
        let words = || std::iter::once(&program.program).chain(&program.args);
        if words().any(|word| !word.is_known()) && without.len() < limits::PROGRAMS {
            let mut words = words().map(without_unknown_parts);
            let name = words.next().unwrap_or_default();
            let again = Invocation { program: name, args: words.collect(), ..program.clone() };
            if again != *program {
                without.push(again);
            }
        }
    }
    view.programs.extend(without);
}

fn without_unknown_parts(word: &Word) -> Word {
    let letters: Vec<char> = word.as_str().chars().collect();
    let is_letter = |at: Option<usize>| {
        let letter = at.and_then(|at| letters.get(at));
        letter.is_some_and(|it| it.is_alphanumeric() || matches!(it, '-' | '.' | '_'))
    };
    let is_kept = |at: usize| {
        letters[at] != UNKNOWN || !is_letter(at.checked_sub(1)) || !is_letter(Some(at + 1))
    };
    if (0..letters.len()).all(is_kept) {
        return word.clone();
    }
    let text: String = (0..letters.len()).filter(|at| is_kept(*at)).map(|at| letters[at]).collect();
    if word.is_glob() { Word::glob(text) } else { Word::literal(text) }
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
