//! Compound commands: every branch counts as run, loops run once per known value.

use super::super::limits;
use super::super::syntax::{Branch, Compound, List, Redirect, Script};
use super::super::view::Directory;
use super::super::word::UNKNOWN;
use super::flow::{Flow, Origin};
use super::follower::{Follower, Function};
use super::scope::Value;

impl Follower<'_> {
    /// Follows a compound command with its redirections.
    pub(super) fn redirected(
        &mut self,
        compound: &Compound<'_>,
        redirects: &[Redirect<'_>],
        script: &Script<'_>,
        input: &Flow,
    ) -> Flow {
        if !self.count("") {
            return Flow::unknown(Origin::Output);
        }
        let redirected = self.redirects(redirects, script);
        let target = redirected.stdout.clone();
        let first = self.view.programs.len();
        let stdin = redirected.stdin.clone();
        self.place(redirected, None);
        let flow = self.compound(compound, script, stdin.as_ref().unwrap_or(input));
        match target {
            Some(target) => {
                let by = (first < self.view.programs.len()).then_some(first);
                self.wrote(&target, flow, by);
                Flow::text("")
            }
            None => flow,
        }
    }

    fn compound(&mut self, compound: &Compound<'_>, script: &Script<'_>, input: &Flow) -> Flow {
        match compound {
            Compound::Group(list) => self.list(list, script, input),
            Compound::Subshell(list) => {
                self.in_subshell(|follower| follower.list(list, script, input))
            }
            Compound::If(branches) => self.branches(branches, script, input),
            Compound::For { name, values, body } => {
                self.for_loop(name, values.as_deref(), body, script, input)
            }
            Compound::ArithmeticFor(header, body) => {
                self.arithmetic(header);
                self.list(body, script, input)
            }
            Compound::While(condition, body) => self.while_loop(condition, body, script, input),
            Compound::Case(words, bodies) => {
                self.expand_for_programs(words);
                let always = words.contains(&"*");
                let branches = bodies.iter().map(|body| (None, body));
                self.alternatives(branches, always, script, input)
            }
            Compound::Arithmetic(text) => {
                self.arithmetic(text);
                Flow::text("")
            }
            Compound::Test(words) => {
                self.test(words);
                Flow::text("")
            }
            Compound::Coproc(command) => {
                self.in_subshell(|follower| follower.command(command, script, input))
            }
        }
    }

    fn branches(&mut self, branches: &[Branch<'_>], script: &Script<'_>, input: &Flow) -> Flow {
        let always = branches.last().is_some_and(|branch| branch.condition.is_empty());
        let parts = branches.iter().map(|branch| (Some(&branch.condition), &branch.body));
        self.alternatives(parts, always, script, input)
    }

    /// Follows bodies of which one runs, or, unless `always`, none. Each starts from the state that its condition
    /// leaves; afterwards the state is that of any of them.
    fn alternatives<'t>(
        &mut self,
        parts: impl Iterator<Item = (Option<&'t List<'t>>, &'t List<'t>)>,
        always: bool,
        script: &Script<'_>,
        input: &Flow,
    ) -> Flow {
        let mut flow = Flow::text("");
        let mut outcomes = Vec::new();
        for (condition, body) in parts {
            if let Some(condition) = condition {
                flow.append(self.list(condition, script, input));
            }
            let (variables, directory) =
                (self.scope.variables.clone(), self.scope.directory.clone());
            flow.append(self.list(body, script, input));
            let variables = std::mem::replace(&mut self.scope.variables, variables);
            let directory = std::mem::replace(&mut self.scope.directory, directory);
            outcomes.push((variables, directory));
        }
        if always && let Some((variables, directory)) = outcomes.pop() {
            self.scope.variables = variables;
            self.scope.directory = directory;
        }
        for (variables, directory) in outcomes {
            self.scope.merge(&variables);
            if directory != self.scope.directory {
                self.scope.directory = Directory::Unknown;
            }
        }
        flow.text = None;
        flow.origin = flow.origin.max(Origin::Output);
        flow
    }

    fn for_loop(
        &mut self,
        name: &str,
        values: Option<&[&str]>,
        body: &List<'_>,
        script: &Script<'_>,
        input: &Flow,
    ) -> Flow {
        let (values, more) = match values {
            Some(words) => self.expand_list(words),
            None => self.expand_list(&["\"$@\""]),
        };
        let mut flow = Flow::text("");
        let mut known: Vec<_> = values
            .iter()
            .filter(|value| value.word.as_str() != UNKNOWN.to_string() || !more)
            .collect();
        // Of many values those come first that may be more than a plain name or number.
        if known.len() > limits::LOOP_VALUES {
            known.sort_by_key(|value| !limits::is_more_than_a_name(value.word.as_str()));
            let first = known.get(limits::LOOP_VALUES).map(|value| value.word.as_str());
            if let Some(left_out) = first.filter(|text| limits::is_more_than_a_name(text)) {
                self.cut(left_out);
            }
        }
        for value in known.into_iter().take(limits::LOOP_VALUES) {
            let value = Value::path(&value.word, value.origin);
            self.scope.set(name, value);
            flow.append(self.list(body, script, input));
        }
        if more || values.len() > limits::LOOP_VALUES || values.is_empty() {
            let origin = values.iter().map(|value| value.origin).max().unwrap_or_default();
            self.scope.set(name, Value::unknown(origin.max(Origin::Variable)));
            flow.append(self.list(body, script, input));
        }
        flow
    }

    /// A loop runs once per line of a known input, as `while read` does, else once.
    fn while_loop(
        &mut self,
        condition: &List<'_>,
        body: &List<'_>,
        script: &Script<'_>,
        input: &Flow,
    ) -> Flow {
        let mut flow = Flow::text("");
        let text = input.text.clone().unwrap_or_default();
        let mut rest = text.as_str();
        for turn in 0..limits::LOOP_VALUES {
            let mut lines = input.clone();
            lines.items.drain(..turn.min(input.items.len()));
            if input.text.is_some() {
                lines.text = Some(rest.to_owned());
            }
            flow.append(self.list(condition, script, &lines));
            let before = self.scope.variables.clone();
            if turn + 1 == limits::LOOP_VALUES && limits::is_more_than_a_name(rest) {
                self.cut(rest);
            }
            flow.append(self.list(body, script, &lines));
            self.scope.merge(&before);
            rest = rest.split_once('\n').map_or("", |(_, behind)| behind);
            if rest.trim().is_empty() && turn + 1 >= input.items.len() {
                break;
            }
        }
        flow.text = None;
        flow.origin = flow.origin.max(Origin::Output);
        flow
    }

    pub(super) fn define(&mut self, name: &str, body: &str) {
        let function =
            Function { name: name.to_owned(), body: body.to_owned(), called: false, active: false };
        self.functions.push(function);
    }

    /// `[[ … ]]`: it computes both sides of `-eq` and the like, and the subscript behind `-v`.
    fn test(&mut self, words: &[&str]) {
        let computes = |word: &&str| {
            matches!(*word, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R")
        };
        if !words.iter().any(computes) {
            return self.expand_for_programs(words);
        }
        for word in words {
            let arg = self.expand_one(word);
            self.compute(arg.word.as_str());
        }
    }

    /// Expands words only for the programs that their substitutions run.
    pub(crate) fn expand_for_programs(&mut self, words: &[&str]) {
        for word in words {
            if word.contains(['$', '`', '(']) {
                self.expand_one(word);
            }
        }
    }

    /// Runs the substitutions of a calculation and forgets the variables that it assigns.
    pub(crate) fn arithmetic(&mut self, text: &str) {
        if text.contains(['$', '`']) {
            let (expanded, _) = self.expand_quoted(text);
            self.compute(&expanded);
        } else {
            self.compute(text);
        }
        for (at, _) in text.match_indices(['=', '+', '-']) {
            let name =
                text.get(..at).unwrap_or_default().trim_end_matches([' ', '+', '-', '*', '/']);
            let from = name
                .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .map_or(0, |found| found + 1);
            let name = name.get(from..).unwrap_or_default();
            if !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) {
                self.scope.set(name, Value::unknown(Origin::Line));
            }
        }
    }
}
