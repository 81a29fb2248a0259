//! Methods of paths that touch the file: `Path('x').unlink()`, `(Path.home() / "x").read_text()`, `p.write_text(…)`.

use super::super::view::Access;
use super::calls::{Effect, add_file};
use super::context::Context;
use super::literals::{Argument, Literals};

/// Whether a name starts an expression that is a path.
pub(super) fn is_path(name: &str) -> bool {
    matches!(
        name,
        "Path"
            | "pathlib.Path"
            | "Path.home"
            | "pathlib.Path.home"
            | "Bun.file"
            | "Pathname"
            | "Pathname.new"
    )
}

/// Adds what is done to the path that an expression gives.
pub(super) fn add(expression: &str, context: &Context<'_>, effects: &mut Vec<Effect>) {
    let mut literals = Literals::new(expression, context);
    if let Argument::Text(path) = literals.expression() {
        method(&path, literals.rest().trim_start_matches([')', ' ']), effects);
    }
}

/// Whether a name is such a method of a variable.
pub(super) fn is_method_of_variable(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(variable, method)| {
        !variable.is_empty()
            && !variable.contains('.')
            && matches!(
                method,
                "unlink"
                    | "rmdir"
                    | "write_text"
                    | "write_bytes"
                    | "touch"
                    | "read_text"
                    | "read_bytes"
                    | "iterdir"
                    | "open"
            )
    })
}

/// Adds what is done to the path in a variable.
pub(super) fn add_variable(
    name: &str,
    behind: &str,
    context: &Context<'_>,
    effects: &mut Vec<Effect>,
) {
    let Some((variable, called)) = name.rsplit_once('.') else { return };
    if let Some(Argument::Text(path)) = context.assigned(variable, 0) {
        let behind: String = behind.chars().take(4).collect();
        method(&path, &format!(".{called}{behind}"), effects);
    }
}

fn method(path: &str, method: &str, effects: &mut Vec<Effect>) {
    let starts = |names: &[&str]| names.iter().any(|name| method.starts_with(name));
    let (access, tree) = if starts(&[".unlink", ".rmdir", ".delete"]) {
        (Access::Delete, false)
    } else if starts(&[".rmtree"]) {
        (Access::Delete, true)
    } else if starts(&[".write", ".touch", ".open('w", ".open(\"w", ".open('a", ".open(\"a"])
        || starts(&[".mkdir", ".chmod"])
    {
        (Access::Write, false)
    } else if starts(&[".read", ".open", ".iterdir", ".glob", ".rglob", ".text(", ".json("]) {
        (Access::Read, false)
    } else {
        return;
    };
    add_file(path, access, tree, effects);
}
