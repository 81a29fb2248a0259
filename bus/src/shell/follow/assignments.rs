//! Assignments: `X=…`, `X+=…`, arrays, and those before a program.

use super::super::syntax::{Parser, split_assignment};
use super::super::word::Word;
use super::flow::Origin;
use super::follower::Follower;
use super::scope::Value;

impl Follower<'_> {
    pub(super) fn assign_all(&mut self, assignments: &[&str]) {
        for assignment in assignments {
            self.assign(assignment);
        }
    }

    /// Follows one assignment, given as written.
    pub(crate) fn assign(&mut self, assignment: &str) {
        let Some((name, index, append, value)) = split_assignment(assignment) else { return };
        if let Some(index) = index {
            self.arithmetic(index);
        }
        if let Some(list) = value.strip_prefix('(').and_then(|list| list.strip_suffix(')')) {
            let mut words = self.array(list);
            if append && let Some(Value::List(old)) = self.scope.value(name) {
                let mut all = old.clone();
                all.append(&mut words);
                words = all;
            }
            self.scope.set(name, Value::List(words));
            return;
        }
        let arg = self.expand_one(value);
        self.run_variable(name, &arg);
        if !self.written.is_empty() {
            self.forget_written(name);
        }
        if index.is_some() {
            self.scope.set(name, Value::unknown(arg.origin.max(Origin::Variable)));
            return;
        }
        self.set_text(name, arg.word.as_str(), append, arg.origin);
    }

    fn set_text(&mut self, name: &str, text: &str, append: bool, origin: Origin) {
        if !append {
            self.scope.set(name, Value::text(text, origin));
            return;
        }
        let (old, old_origin) = match self.scope.value(name) {
            Some(Value::Text(old, origin)) => (old.to_string(), *origin),
            Some(Value::Either(_) | Value::List(_)) | None => {
                (self.start.variable(name).unwrap_or_default().to_owned(), Origin::Line)
            }
        };
        let joined = old + text;
        let value = if joined.len() > super::super::limits::WORD_BYTES {
            self.cut(name);
            Value::unknown(Origin::Variable)
        } else {
            Value::text(joined, origin.max(old_origin))
        };
        self.scope.set(name, value);
    }

    /// The words of an array literal.
    fn array(&mut self, list: &str) -> Vec<Word> {
        let mut words = Vec::new();
        let mut parser = Parser::new(list);
        let mut at = 0;
        while let Some(rest) = list.get(at..).filter(|rest| !rest.is_empty()) {
            let blank = rest.len() - rest.trim_start().len();
            at += blank;
            let Ok(end) = parser.word_end(at) else { break };
            if end == at {
                if list.get(at..).is_none_or(str::is_empty) {
                    break;
                }
                at += 1;
                continue;
            }
            words.push(list.get(at..end).unwrap_or_default());
            at = end;
        }
        let (args, _, _) = self.expand_words(&words);
        args.into_iter().map(|arg| arg.word).collect()
    }

    /// The assignments before a program, expanded.
    pub(super) fn environment(&mut self, assignments: &[&str]) -> Vec<(String, Word)> {
        assignments
            .iter()
            .filter_map(|assignment| {
                let (name, index, append, value) = split_assignment(assignment)?;
                if let Some(index) = index {
                    self.arithmetic(index);
                }
                let arg = self.expand_one(value);
                self.run_variable(name, &arg);
                let word = arg.word;
                let old = match self.scope.value(name) {
                    Some(Value::Text(old, _)) if append => &**old,
                    Some(_) | None => "",
                };
                let text = if append {
                    format!("{old}{}", word.as_str())
                } else {
                    return Some((name.to_owned(), word));
                };
                Some((name.to_owned(), Word::literal(text)))
            })
            .collect()
    }

    /// Runs with variables that hold only meanwhile: `X=1 eval …`, `X=1 function`.
    pub(super) fn with_environment<T>(
        &mut self,
        env: &[(String, Word)],
        run: impl FnOnce(&mut Self) -> T,
    ) -> T {
        if env.is_empty() {
            return run(self);
        }
        let before = self.scope.variables.clone();
        for (name, value) in env {
            self.scope.set(name, Value::text(value.as_str(), Origin::Line));
        }
        let result = run(self);
        for (name, _) in env {
            let old = before.iter().find(|(known, _)| **known == **name).map(|(_, value)| value);
            self.scope.restore(name, old);
        }
        result
    }
}
