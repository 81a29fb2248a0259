//! A rule: conditions on what an event means, and one fixed answer. It is evaluated in process; nothing is started for
//! it.
//!
//! All of `when` must hold and nothing of `unless`. Conditions about programs, files and hosts are about the same one:
//! `when: {runs: git push --force}` with `unless: {runs: git push --dry-run}` lets `git push --force --dry-run` pass and
//! not a second, real push beside it; `{runs: rm, deletes: {outside: $project}}` is about the files of that `rm`.

use super::RuleFailure;
use super::condition::{Condition, FileKey, HostMatch};
use super::directory::Reading;
use super::expression::Expression;
use super::facts::Facts;
use super::field::FieldsOf;
use super::files::{FileFact, ProgramIndex};
use super::hosts::HostFact;
use super::path_match::PathMatch;
use super::program_match::{ProgramMatches, RunSubject};
use super::text_match::any;
use crate::dialect::PatternFailure;
use crate::event::{Ruling, Verdict};

/// Gives its verdict if its conditions hold.
#[derive(Debug, Clone)]
pub struct Rule {
    /// All must hold.
    pub when: Vec<Condition>,
    /// None may hold.
    pub unless: Vec<Condition>,
    /// Must be true.
    pub expression: Option<Expression>,
    /// The answer.
    pub verdict: Verdict,
}

/// Which programs, files and hosts of a call are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All of them.
    Call,
    /// Those of this line.
    Line(usize),
    /// Those of this program.
    Program(ProgramIndex),
}

impl Scope {
    fn covers(self, by: Option<ProgramIndex>) -> bool {
        match self {
            Self::Call => true,
            Self::Line(line) => by.is_none_or(|by| by.line == line),
            Self::Program(program) => by == Some(program),
        }
    }
}

impl Rule {
    /// The rule's verdict; none if it does not apply. Fails only if all depends on a condition that cannot be checked.
    pub fn verdict(&self, facts: &Facts<'_>) -> Result<Option<Verdict>, RuleFailure> {
        Ok(self.applies(facts)?.then(|| self.verdict.clone()))
    }

    /// Whether it holds the agent back or changes what the agent does, so that it must not fail open.
    pub fn is_guard(&self) -> bool {
        let Verdict { ruling, stop, rewrite, .. } = &self.verdict;
        matches!(ruling, Some(Ruling::Block | Ruling::Ask)) || *stop || rewrite.is_some()
    }

    /// Whether it only allows: then each program, file and host must fit, and the model's word does not count.
    pub(super) fn only_allows(&self) -> bool {
        self.verdict.ruling == Some(Ruling::Allow)
    }

    pub(super) fn fields(&self) -> FieldsOf {
        if self.only_allows() { FieldsOf::TheAgentFirst } else { FieldsOf::Everyone }
    }

    /// How `when` reads what is not certain; `unless` reads it the other way.
    pub(super) fn reading(&self) -> Reading {
        if self.only_allows() { Reading::Narrow } else { Reading::Wide }
    }

    /// Whether the rule might apply, if all of the payload had been kept. For an event that it has no verdict
    /// about.
    pub fn may_apply(&self, facts: &Facts<'_>) -> bool {
        if !facts.event.is_partial() {
            return false;
        }
        let may_hold = |condition: &Condition| {
            condition.is_incomplete(facts) || self.holds_alone(condition, facts).unwrap_or(true)
        };
        self.when.iter().all(may_hold)
    }

    /// Whether a condition of `when` is about programs, files or hosts that the call does not have. A first look, which
    /// passes over most rules.
    fn is_ruled_out(&self, facts: &Facts<'_>) -> bool {
        self.when.iter().any(|condition| match condition {
            Condition::Runs(any_of) => !any_of.may_match(facts),
            Condition::File(key, _) => !facts.touches(*key) && facts.has_all_files(),
            Condition::Host(_) => facts.hosts().is_empty(),
            Condition::Field(..)
            | Condition::Tool(_)
            | Condition::Agent(_)
            | Condition::Session(_)
            | Condition::Model(_)
            | Condition::Cwd(_)
            | Condition::Mcp(..)
            | Condition::Size(_)
            | Condition::Secret(_) => false,
        })
    }

    fn applies(&self, facts: &Facts<'_>) -> Result<bool, RuleFailure> {
        if self.is_ruled_out(facts) {
            return Ok(false);
        }
        let mut failure = None;
        let mut keep = |result: Result<bool, RuleFailure>, otherwise: bool| match result {
            Ok(held) => held,
            Err(why) => {
                failure = Some(why);
                otherwise
            }
        };
        let (of, reading) = (self.fields(), self.reading());
        // Regexes last: most of them are compiled when they are first needed.
        let is_field = |it: &&Condition| matches!(it, Condition::Field(..));
        let mut holds =
            |condition: &Condition| keep(condition.holds_for_call(facts, of, reading), true);
        let mut about_call = self.when.iter().filter(|it| it.is_about_call() && !is_field(it));
        if !about_call.all(&mut holds) {
            return Ok(false);
        }
        if !keep(self.applies_to_subjects(facts), true) {
            return Ok(false);
        }
        let mut holds =
            |condition: &Condition| keep(condition.holds_for_call(facts, of, reading), true);
        if !self.when.iter().filter(is_field).all(&mut holds) {
            return Ok(false);
        }
        for condition in self.unless.iter().filter(|it| it.is_about_call()) {
            // What lets through must not be the model's word.
            let of = if self.only_allows() { FieldsOf::Everyone } else { FieldsOf::TheAgentFirst };
            if keep(condition.holds_for_call(facts, of, reading.opposite()), false) {
                return Ok(false);
            }
        }
        if let Some(expression) = &self.expression
            && !keep(expression.holds(facts), true)
        {
            return Ok(false);
        }
        failure.map_or(Ok(true), Err)
    }

    /// Whether a condition of `when` holds by itself, without the others.
    pub(super) fn holds_alone(
        &self,
        condition: &Condition,
        facts: &Facts<'_>,
    ) -> Result<bool, RuleFailure> {
        if condition.is_about_call() {
            return condition.holds_for_call(facts, self.fields(), self.reading());
        }
        let alone = Self { when: vec![condition.clone()], unless: Vec::new(), ..self.clone() };
        alone.applies_to_subjects(facts)
    }

    /// The conditions about programs, files and hosts.
    fn applies_to_subjects(&self, facts: &Facts<'_>) -> Result<bool, RuleFailure> {
        if runs(&self.when).next().is_none() {
            // An exempt program exempts its own files and hosts; a rule that is about none of them needs all to be exempt.
            let is_about_parts = self.when.iter().any(|it| !it.is_about_call());
            let is_exempt = || (!is_about_parts || self.only_allows()) && self.all_exempt(facts);
            return Ok(self.holds_in(Scope::Call, facts)? && !is_exempt());
        }
        let mut result = Ok(false);
        let lines = facts.commands().iter().zip(facts.programs()).enumerate();
        for (line, (command, programs)) in lines {
            for subject in RunSubject::all(command) {
                let fits = |any_of: &ProgramMatches| any_of.matches(subject, command, programs);
                let is_meant = runs(&self.when).all(fits) && !runs(&self.unless).any(fits);
                if self.only_allows() {
                    if !is_meant {
                        return Ok(false);
                    }
                    result = Ok(true);
                    continue;
                }
                if is_meant {
                    match self.holds_in(scope_of(subject, line), facts) {
                        Ok(true) => return Ok(true),
                        Ok(false) => {}
                        Err(why) => result = Err(why),
                    }
                }
            }
        }
        match result {
            Ok(true) => Ok(self.holds_in(Scope::Call, facts)?),
            other => other,
        }
    }

    /// Whether `unless` names the program that touches a file or a host.
    fn is_exempt_program(&self, by: Option<ProgramIndex>, facts: &Facts<'_>) -> bool {
        let Some(ProgramIndex { line, program }) = by else { return false };
        let (Some(command), Some(programs)) =
            (facts.commands().get(line), facts.programs().get(line))
        else {
            return false;
        };
        let subject = RunSubject::Program(program);
        runs(&self.unless).any(|it| it.matches(subject, command, programs))
    }

    /// Whether every program that runs is one that `unless` names, where `when` names none.
    fn all_exempt(&self, facts: &Facts<'_>) -> bool {
        if runs(&self.unless).next().is_none() {
            return false;
        }
        let mut subjects = facts
            .commands()
            .iter()
            .zip(facts.programs())
            .flat_map(|(command, programs)| {
                RunSubject::all(command).map(move |subject| (subject, command, programs))
            })
            .peekable();
        subjects.peek().is_some() && {
            let is_exempt = |(subject, command, programs): (RunSubject, _, &Vec<_>)| {
                runs(&self.unless).any(|any_of| any_of.matches(subject, command, programs))
            };
            // One program that may not be there is enough against what allows.
            if self.only_allows() { subjects.any(is_exempt) } else { subjects.all(is_exempt) }
        }
    }

    /// Whether the conditions about files and hosts hold for those of a program, or of the whole call.
    fn holds_in(&self, scope: Scope, facts: &Facts<'_>) -> Result<bool, RuleFailure> {
        Ok(self.files_hold(scope, facts)? && self.hosts_hold(scope, facts)?)
    }

    /// No file fits; but if there were too many to look at all of them, that is not known.
    fn unless_too_many(facts: &Facts<'_>) -> Result<bool, RuleFailure> {
        if facts.has_all_files() { Ok(false) } else { Err(RuleFailure::TooManyFiles) }
    }

    fn files_hold(&self, scope: Scope, facts: &Facts<'_>) -> Result<bool, RuleFailure> {
        let (reading, of) = (self.reading(), self.fields());
        let (when, unless) = (files(&self.when), files(&self.unless));
        let is_without_when = when.clone().next().is_none();
        if is_without_when && unless.clone().next().is_none() {
            return Ok(true);
        }
        // What holds for all files cannot be told of some of them.
        let asks_about_all = self.only_allows() || is_without_when;
        if asks_about_all && !facts.has_all_files() {
            return Err(RuleFailure::TooManyFiles);
        }
        let in_scope = |key: FileKey| {
            facts.files().iter().filter(move |it| key.covers(it.access) && scope.covers(it.by))
        };
        let matches = |matches: &[PathMatch], file: &FileFact<'_>, reading: Reading| {
            any(matches, |it| it.matches_of(file, facts.place, reading, of))
        };
        let is_exempt = |file: &FileFact<'_>| {
            if self.is_exempt_program(file.by, facts) {
                return Ok(true);
            }
            let meant = unless.clone().filter(|(key, _)| key.covers(file.access));
            any(meant, |(_, it)| matches(it, file, reading.opposite()))
        };
        for (key, any_of) in when {
            let holds =
                |file: &FileFact<'_>| Ok(matches(any_of, file, reading)? && !is_exempt(file)?);
            // A plain regex is enough for one file, as it has always been.
            let is_plain = any_of.iter().all(|it| matches!(it, PathMatch::Written(_)));
            if !quantified(self.only_allows() && !is_plain, in_scope(key), holds)? {
                return Self::unless_too_many(facts);
            }
        }
        if is_without_when || self.only_allows() {
            for (key, any_of) in unless.clone() {
                let holds = |file: &FileFact<'_>| matches(any_of, file, reading.opposite());
                if quantified(!self.only_allows(), in_scope(key), holds)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn hosts_hold(&self, scope: Scope, facts: &Facts<'_>) -> Result<bool, PatternFailure> {
        let of = self.fields();
        let (when, unless) = (hosts(&self.when), hosts(&self.unless));
        let is_without_when = when.clone().next().is_none();
        if is_without_when && unless.clone().next().is_none() {
            return Ok(true);
        }
        let in_scope = || facts.hosts().iter().filter(move |it| scope.covers(it.by));
        let fits =
            |any_of: &[HostMatch], host: &HostFact<'_>| any(any_of, |it| it.matches(host, of));
        let is_exempt = |host: &HostFact<'_>| {
            if self.is_exempt_program(host.by, facts) {
                Ok(true)
            } else {
                any(unless.clone(), |it| fits(it, host))
            }
        };
        for any_of in when {
            let holds = |host: &HostFact<'_>| Ok(fits(any_of, host)? && !is_exempt(host)?);
            let is_plain = any_of.iter().all(|it| it.written.is_some());
            if !quantified(self.only_allows() && !is_plain, in_scope(), holds)? {
                return Ok(false);
            }
        }
        let is_let_through =
            is_without_when && quantified(!self.only_allows(), in_scope(), is_exempt)?;
        Ok(!is_let_through)
    }
}

/// Whether all of `items` hold, and there are any; or whether one of them does.
fn quantified<T>(
    all: bool,
    items: impl Iterator<Item = T>,
    mut holds: impl FnMut(T) -> Result<bool, PatternFailure>,
) -> Result<bool, PatternFailure> {
    let mut items = items.peekable();
    if all {
        let some = items.peek().is_some();
        return any(items, |item| holds(item).map(|held| !held)).map(|found| some && !found);
    }
    any(items, holds)
}

const fn scope_of(subject: RunSubject, line: usize) -> Scope {
    match subject {
        RunSubject::Program(program) => Scope::Program(ProgramIndex { line, program }),
        RunSubject::Opaque(_) | RunSubject::Code(_) => Scope::Line(line),
    }
}

pub(super) fn runs(conditions: &[Condition]) -> impl Iterator<Item = &ProgramMatches> + Clone {
    conditions.iter().filter_map(|condition| {
        let Condition::Runs(any_of) = condition else { return None };
        Some(any_of)
    })
}

fn files(conditions: &[Condition]) -> impl Iterator<Item = (FileKey, &[PathMatch])> + Clone {
    conditions.iter().filter_map(|condition| {
        let Condition::File(key, any_of) = condition else { return None };
        Some((*key, any_of.as_slice()))
    })
}

fn hosts(conditions: &[Condition]) -> impl Iterator<Item = &[HostMatch]> + Clone {
    conditions.iter().filter_map(|condition| {
        let Condition::Host(any_of) = condition else { return None };
        Some(any_of.as_slice())
    })
}
