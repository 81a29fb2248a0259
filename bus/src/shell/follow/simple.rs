//! Simple commands: expand the words, then launch the program, or run the alias or function of that name.

use std::rc::Rc;

use super::super::syntax::{Script, Simple, split_assignment};
use super::super::view::{Directory, OpaqueKind};
use super::super::word::{UNKNOWN, Word};
use super::flow::{Flow, Origin};
use super::follower::Follower;
use super::scope::{Scope, Value};

/// A word after expansion, and where its unknown parts come from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arg {
    pub(crate) word: Word,
    pub(crate) origin: Origin,
    /// The programs behind `<(…)`, if the word stands for what they print.
    pub(crate) stream: bool,
}

/// A program that is about to be started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    /// The program and its arguments.
    pub(crate) args: Vec<Arg>,
    pub(crate) env: Vec<(String, Word)>,
    pub(crate) directory: Directory,
    pub(crate) privileged: bool,
    pub(crate) more_args: bool,
}

impl Call {
    /// A call with words that are known as they are.
    pub(crate) fn of(words: Vec<Word>, scope: &Scope) -> Self {
        Self {
            args: words
                .into_iter()
                .map(|word| Arg { word, origin: Origin::Line, stream: false })
                .collect(),
            env: Vec::new(),
            directory: scope.directory.clone(),
            privileged: scope.privileged,
            more_args: false,
        }
    }

    /// The same surroundings, other words.
    pub(crate) fn with(&self, args: Vec<Arg>) -> Self {
        Self { args, ..self.surroundings() }
    }

    fn surroundings(&self) -> Self {
        Self {
            args: Vec::new(),
            env: self.env.clone(),
            directory: self.directory.clone(),
            privileged: self.privileged,
            more_args: self.more_args,
        }
    }
}

impl Follower<'_> {
    pub(super) fn simple(
        &mut self,
        simple: &Simple<'_>,
        script: &Script<'_>,
        input: &Flow,
    ) -> Flow {
        if !self.count("") {
            return Flow::unknown(Origin::Output);
        }
        if let Some((name, values)) = self.undecided(simple) {
            return self.for_each_value(&name, values, simple, script, input);
        }
        let assigned =
            simple.words.iter().take_while(|word| split_assignment(word).is_some()).count();
        let (assignments, words) = simple.words.split_at(assigned);
        self.spend(input.text.as_ref().map_or(0, String::len));
        let outer =
            (!input.is_nothing()).then(|| std::mem::replace(&mut self.stdin, input.clone()));
        let flow = self.expanded(assignments, words, simple, script, input);
        if let Some(outer) = outer {
            self.stdin = outer;
        }
        flow
    }

    /// Follows a command once per value of a variable; afterwards the state is that of any of them.
    fn for_each_value(
        &mut self,
        name: &str,
        values: Vec<Rc<str>>,
        simple: &Simple<'_>,
        script: &Script<'_>,
        input: &Flow,
    ) -> Flow {
        let before = self.scope.variables.clone();
        let mut flow = Flow::text("");
        let mut outcomes = Vec::new();
        for value in values {
            self.scope.variables = before.clone();
            let origin = if value.contains(UNKNOWN) { Origin::Variable } else { Origin::Line };
            self.scope.set(name, Value::Text(value, origin));
            flow = self.simple(simple, script, input);
            outcomes.push(self.scope.variables.clone());
        }
        for variables in &outcomes {
            self.scope.merge(variables);
        }
        flow
    }

    fn expanded(
        &mut self,
        assignments: &[&str],
        words: &[&str],
        simple: &Simple<'_>,
        script: &Script<'_>,
        input: &Flow,
    ) -> Flow {
        let (args, more_args, readers) = self.expand_words(words);
        let mut redirected = self.redirects(&simple.redirects, script);
        redirected.readers.extend(readers);
        if args.is_empty() {
            let mut flow = Flow::text("");
            // `$(< file)` prints the file.
            if let Some(stdin) = redirected.stdin.take() {
                flow = stdin;
            }
            if words.is_empty() {
                self.assign_all(assignments);
            }
            if let Some(target) = redirected.stdout.take() {
                self.wrote(&target, Flow::text(""), None);
            }
            self.place(redirected, None);
            return flow;
        }
        let env = self.environment(assignments);
        let call = Call {
            args,
            env,
            directory: self.scope.directory.clone(),
            privileged: self.scope.privileged,
            more_args,
        };
        let stdin = redirected.stdin.take();
        let readers = std::mem::take(&mut redirected.readers);
        let target = redirected.stdout.take();
        let by = self.view.programs.len();
        self.place(redirected, Some(by));
        let env = call.env.clone();
        let flow = self.with_environment(&env, |follower| {
            follower.call(call, words, stdin.as_ref().unwrap_or(input))
        });
        for code in readers {
            self.in_subshell(|follower| follower.run_text(&code, &flow));
        }
        match target {
            Some(target) => {
                self.wrote(&target, flow, Some(by));
                Flow::text("")
            }
            None => flow,
        }
    }

    /// Runs an alias, a function or a program.
    fn call(&mut self, call: Call, words: &[&str], input: &Flow) -> Flow {
        let name = call.args.first().map(|arg| arg.word.as_str()).unwrap_or_default();
        if let Some(at) = self.scope.aliases.iter().position(|(alias, _)| alias == name) {
            let (_, text) = self.scope.aliases.swap_remove(at);
            let rest = words.get(1..).unwrap_or_default().join(" ");
            let code = format!("{text} {rest}");
            let flow = self.run_text(&code, input);
            self.scope.aliases.push((words.first().copied().unwrap_or_default().to_owned(), text));
            return flow;
        }
        if let Some(at) = self.functions.iter().rposition(|function| function.name == name) {
            return self.call_function(at, call, input);
        }
        self.launch(call, input)
    }

    fn call_function(&mut self, at: usize, call: Call, input: &Flow) -> Flow {
        let parameters = call.args.iter().map(|arg| arg.word.clone()).collect();
        let more = call.more_args;
        self.list_call(call, input);
        let Some(function) = self.functions.get_mut(at) else { return Flow::default() };
        function.called = true;
        if std::mem::replace(&mut function.active, true) {
            return Flow::unknown(Origin::Output);
        }
        let body = function.body.clone();
        let outer = std::mem::replace(&mut self.scope.parameters, (!more).then_some(parameters));
        let flow = self.run_text(&body, input);
        self.scope.parameters = outer;
        if let Some(function) = self.functions.get_mut(at) {
            function.active = false;
        }
        flow
    }

    /// A variable with several possible values that the words use: the command is followed once for each.
    fn undecided(&self, simple: &Simple<'_>) -> Option<(String, Vec<Rc<str>>)> {
        self.scope.variables.iter().find_map(|(name, value)| match value {
            Value::Either(values) => {
                let targets = simple.redirects.iter().map(|redirect| redirect.target);
                let mut words = simple.words.iter().copied().chain(targets);
                words
                    .any(|word| word.contains('$') && word.contains(&**name))
                    .then(|| (name.to_string(), values.clone()))
            }
            Value::Text(..) | Value::List(_) => None,
        })
    }

    /// Reports a program whose name is not known.
    pub(crate) fn report_unknown_program(&mut self, program: &Word) -> bool {
        let name = program.as_str().rsplit('/').next().unwrap_or_default();
        let unknown = name.contains(UNKNOWN);
        if unknown || program.is_glob() {
            self.opaque(OpaqueKind::Program, program.as_str());
        }
        unknown
    }
}
