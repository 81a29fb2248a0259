//! Lists, `&&` and `||`, and pipelines.

use super::super::syntax::{AndOr, Command, Join, List, Pipeline, Script};
use super::flow::Flow;
use super::follower::Follower;

impl Follower<'_> {
    /// Follows commands one after the other; gives what they print together.
    pub(crate) fn list(&mut self, list: &List<'_>, script: &Script<'_>, input: &Flow) -> Flow {
        let mut items = list.iter();
        let Some(first) = items.next() else {
            return Flow::text("");
        };
        let mut flow = self.and_or(first, script, input);
        for item in items {
            flow.append(self.and_or(item, script, input));
        }
        flow
    }

    fn and_or(&mut self, item: &AndOr<'_>, script: &Script<'_>, input: &Flow) -> Flow {
        if let [(_, pipeline)] = item.pipelines.as_slice() {
            return self.pipeline(pipeline, script, input);
        }
        let mut flow = Flow::text("");
        let mut failed = self.scope.directory.clone();
        // From the second one on, a pipeline may not run: what it changes has one of several values afterwards.
        let mut snapshots = Vec::new();
        for (at, (join, pipeline)) in item.pipelines.iter().enumerate() {
            if at > 0 {
                snapshots.push(self.scope.variables.clone());
            }
            match join {
                Join::And => {
                    failed.clone_from(&self.scope.directory);
                    flow.append(self.pipeline(pipeline, script, input));
                }
                // `cd a || cd b`: the second one starts where the first one failed, and `cd a || exit`
                // goes on in `a`.
                Join::Or => {
                    let entered = std::mem::replace(&mut self.scope.directory, failed.clone());
                    let before = self.scope.variables.clone();
                    flow.append(self.pipeline(pipeline, script, input));
                    self.scope.merge(&before); // what follows may run without it
                    self.scope.directory = entered;
                }
            }
        }
        for before in &snapshots {
            self.scope.merge(before);
        }
        flow
    }

    fn pipeline(&mut self, pipeline: &Pipeline<'_>, script: &Script<'_>, input: &Flow) -> Flow {
        if let [command] = pipeline.as_slice() {
            return self.command(command, script, input);
        }
        let mut flow = input.clone();
        for command in pipeline {
            flow = self.in_subshell(|follower| follower.command(command, script, &flow));
        }
        flow
    }

    pub(super) fn command(
        &mut self,
        command: &Command<'_>,
        script: &Script<'_>,
        input: &Flow,
    ) -> Flow {
        match command {
            Command::Simple(simple) => self.simple(simple, script, input),
            Command::Compound(compound, redirects) => self
                .deeper("", |follower| follower.redirected(compound, redirects, script, input))
                .unwrap_or_default(),
            Command::Function(name, body) => {
                self.define(name, body);
                Flow::text("")
            }
        }
    }
}
