//! Lists a program and goes on with what it starts.

use super::super::code::known_output;
use super::super::follow::{Arg, Call, Flow, Follower, Origin};
use super::super::view::Invocation;
use super::super::word::Word;
use super::kinds::{Kind, kind};
use super::option_lines::has_lines;

impl Follower<'_> {
    /// Starts a program; gives what it prints.
    pub(crate) fn launch(&mut self, call: Call, input: &Flow) -> Flow {
        if call.args.is_empty() || !self.count("") {
            return Flow::unknown(Origin::Output);
        }
        self.deeper("", |follower| follower.dispatch(call, input))
            .unwrap_or_else(|| Flow::unknown(Origin::Output))
    }

    fn dispatch(&mut self, call: Call, input: &Flow) -> Flow {
        if let Some(flow) = self.launch_original(&call, input) {
            return flow;
        }
        let program = call.args.first().map(|arg| arg.word.as_str()).unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or_default();
        let name = name.strip_suffix(".exe").unwrap_or(name);
        let kind = kind(name);
        if matches!(kind, Kind::Plain) {
            return self.plain(call, input);
        }
        let name = name.to_owned();
        self.spend(call.args.len() * 64);
        let index = self.list_call(call.clone(), input);
        self.option_lines(&name, index, &call, input);
        let mut flow = self.start_inner(kind, &name, index, &call, input);
        if !flow.from.contains(&index) {
            flow.from.push(index);
        }
        flow
    }

    fn start_inner(
        &mut self,
        kind: Kind,
        name: &str,
        index: usize,
        call: &Call,
        input: &Flow,
    ) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        match kind {
            Kind::Plain => Flow::unknown(Origin::Output),
            Kind::Builtin => {
                self.builtin(name, args, input);
                self.output(index, input)
            }
            Kind::Shell => self.shell(index, call, input),
            Kind::Eval => self.eval(index, args, input),
            Kind::Source => self.source(index, args, input),
            Kind::Trap => self.trap(index, args),
            Kind::Interpreter => self.interpreter(name, index, call, input),
            Kind::Wrapper(wrapper) => self.wrapper(wrapper, index, call, input),
            Kind::Command => self.command_builtin(index, call, input),
            Kind::Env => self.env(call, input),
            Kind::Sudo => self.sudo(name, index, call, input),
            Kind::Su => self.su(name, index, call, input),
            Kind::Xargs => self.xargs(call, input),
            Kind::Parallel => self.parallel(index, call, input),
            Kind::Find => self.find(call, input),
            Kind::Fd => self.fd(call, input),
            Kind::LineOption => self.line_option(name, index, call, input),
            Kind::Ssh => self.ssh(index, call, input),
            Kind::Container => self.container(call, input),
            Kind::Kubectl => self.kubectl(index, call, input),
            Kind::Tmux => self.tmux(index, call, input),
            Kind::Screen => self.screen(index, call, input),
            Kind::Scheduler => self.scheduler(name, index, call, input),
            Kind::Odd => self.odd_wrapper(name, index, call, input),
            Kind::GitSubcommand => {
                let word = |text: &str| Arg { word: Word::literal(text), ..Arg::default() };
                let sub = name.strip_prefix("git-").unwrap_or(name);
                let words = [word("git"), word(sub)].into_iter().chain(args.iter().cloned());
                self.launch(call.with(words.collect()), input)
            }
            Kind::Runner => self.runner(name, index, call, input),
        }
    }

    /// A program that starts nothing itself, unless the line has written it before.
    fn plain(&mut self, mut call: Call, input: &Flow) -> Flow {
        let fallback = unknown_first(&mut call);
        let program = call.args.first().map(|arg| arg.word.as_str()).unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or_default().to_owned();
        let inner = has_lines(&name).then(|| call.clone());
        let index = self.list_call(call, input);
        if let Some(inner) = inner {
            self.option_lines(&name, index, &inner, input);
        }
        self.remember_copy(index);
        if !self.written.is_empty() {
            self.run_written_program(index, input);
        }
        if let Some(inner) = fallback {
            self.launch(inner, input);
        }
        let mut flow = self.output(index, input);
        flow.from.push(index);
        flow
    }

    /// Adds a program to the list; gives its index.
    pub(crate) fn list_call(&mut self, call: Call, input: &Flow) -> usize {
        let mut words = call.args.into_iter().map(|arg| arg.word);
        let program = words.next().unwrap_or_default();
        self.report_unknown_program(&program);
        self.spend(input.text.as_ref().map_or(0, String::len));
        self.view.programs.push(Invocation {
            program,
            args: words.collect(),
            env: call.env,
            cwd: call.directory,
            privileged: call.privileged,
            stdin_from: input.from.clone(),
            stdin_text: input.text.as_deref().map(Word::literal),
            more_args: call.more_args,
            container: None,
        });
        self.view.programs.len() - 1
    }

    /// What the program at an index prints.
    pub(super) fn output(&mut self, index: usize, input: &Flow) -> Flow {
        known_output(self, index, input)
    }
}

/// `$SUDO rm -rf /`: a program that is not known may be nothing, or start the next word.
fn unknown_first(call: &mut Call) -> Option<Call> {
    let (first, next) = (call.args.first()?, call.args.get(1)?);
    let only_unknown = first.word.as_str().chars().eq([super::super::word::UNKNOWN]);
    let program = next.word.as_str();
    let looks_like_program = !program.is_empty()
        && program.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        && !program.starts_with('-');
    (only_unknown && looks_like_program)
        .then(|| call.with(call.args.get(1..).unwrap_or_default().to_vec()))
}
