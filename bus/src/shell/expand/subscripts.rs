//! Calculations and subscripts. Bash expands a subscript when it computes it, so `$(…)` in it runs even if quotes have
//! kept it as text until then: `[[ -v 'a[$(line)]' ]]`, `i='a[$(line)]'; echo $((i))`.

use super::super::follow::{Follower, Value};
use super::super::syntax::subscript_length;

/// How far variables that name each other are followed.
const DEPTH: usize = 2;
/// How many names of one calculation are looked up.
const NAMES: usize = 16;

impl Follower<'_> {
    /// Runs the substitutions in the subscripts of a calculation, and in those of the variables that it names.
    pub(crate) fn compute(&mut self, text: &str) {
        self.compute_within(text, DEPTH);
    }

    fn compute_within(&mut self, text: &str, depth: usize) {
        if runs_something(text) {
            self.expand_quoted(text);
        }
        let Some(depth) = depth.checked_sub(1) else { return };
        for name in names(text).take(NAMES) {
            let value = match self.scope.value(name) {
                Some(Value::Text(value, _)) if runs_something(value) => value.clone(),
                Some(_) | None => continue,
            };
            self.compute_within(&value, depth);
        }
    }

    /// Runs the substitutions in the subscript of a name that a builtin gets: `unset 'a[$(line)]'`.
    pub(crate) fn compute_subscript(&mut self, name: &str) {
        let Some(subscript) = name.find('[').and_then(|at| name.get(at..)) else { return };
        let length = subscript_length(subscript).unwrap_or(subscript.len());
        self.compute(subscript.get(..length).unwrap_or_default());
    }
}

/// Whether a text has a subscript and a substitution.
fn runs_something(text: &str) -> bool {
    text.contains('[') && (text.contains("$(") || text.contains('`') || text.contains("${"))
}

/// The names in a calculation.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}
