//! Why a rule applies to an event or does not: each condition, what it expects, what it saw.

use std::fmt;

use serde_json::{Value, json};

use super::condition::{Condition, FileKey};
use super::evaluate::Rule;
use super::facts::Facts;
use super::field::{FieldsOf, chosen};
use super::files::FileFact;
use super::program_match::{ProgramMatch, RunSubject};
use crate::shell::CommandPattern;

/// More values than a person reads.
const MOST_VALUES: usize = 12;

/// A longer value is cut.
const LONGEST_VALUE: usize = 200;

/// Why a rule applies or does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleReport {
    /// Whether it applies; none if that cannot be told.
    pub applies: Option<bool>,
    /// Its conditions, in the order of the file.
    pub conditions: Vec<ConditionReport>,
    /// Why it cannot be told, if so.
    pub failure: Option<String>,
}

/// One condition at one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionReport {
    /// `when`, `unless` or `if`.
    pub list: &'static str,
    /// Its key: `runs`, `path`, …
    pub key: String,
    /// What it expects.
    pub expects: String,
    /// Whether it holds by itself; none if that cannot be told. The rule applies if all of `when` and `if` hold and nothing of
    /// `unless` does.
    pub holds: Option<bool>,
    /// What it looked at.
    pub saw: Vec<String>,
    /// What is missing, where that can be said in a few words.
    pub why: Option<String>,
}

impl Rule {
    /// Why it applies to an event or does not.
    pub fn explain(&self, facts: &Facts<'_>) -> RuleReport {
        let verdict = self.verdict(facts);
        let when = self.when.iter().map(|it| self.report("when", it, facts));
        let applies = matches!(verdict, Ok(Some(_)));
        let unless = self.unless.iter().map(|it| {
            let report = self.report("unless", it, facts);
            if applies { report.about_another() } else { report }
        });
        let expression = self.expression.iter().map(|expression| {
            let holds = expression.holds(facts);
            ConditionReport {
                list: "if",
                key: String::new(),
                expects: expression.text().to_owned(),
                why: holds.as_ref().err().map(ToString::to_string),
                holds: holds.ok(),
                saw: Vec::new(),
            }
        });
        RuleReport {
            conditions: when.chain(unless).chain(expression).collect(),
            failure: verdict.as_ref().err().map(ToString::to_string),
            applies: verdict.ok().map(|verdict| verdict.is_some()),
        }
    }

    fn report(
        &self,
        list: &'static str,
        condition: &Condition,
        facts: &Facts<'_>,
    ) -> ConditionReport {
        let holds = self.holds_alone(condition, facts);
        let mut saw: Vec<String> = Vec::new();
        for value in values(condition, facts) {
            if !saw.contains(&value) {
                saw.push(value);
            }
        }
        let more = saw.len().saturating_sub(MOST_VALUES);
        saw.truncate(MOST_VALUES);
        saw.iter_mut().for_each(shorten);
        if more > 0 {
            saw.push(format!("and {more} more"));
        }
        let missing = || missing_in_programs(condition, facts);
        ConditionReport {
            list,
            key: condition.key().to_owned(),
            expects: condition.to_string(),
            why: match &holds {
                Ok(true) => None,
                Ok(false) => missing(),
                Err(why) => Some(why.to_string()),
            },
            holds: holds.ok(),
            saw,
        }
    }
}

impl RuleReport {
    /// As `--json` prints it.
    pub fn to_json(&self) -> Value {
        let conditions: Vec<Value> = self.conditions.iter().map(ConditionReport::to_json).collect();
        json!({"applies": self.applies, "conditions": conditions, "failure": self.failure})
    }

    /// The first condition that keeps the rule from applying.
    pub fn obstacle(&self) -> Option<&ConditionReport> {
        self.conditions.iter().find(|it| it.is_obstacle())
    }
}

impl ConditionReport {
    /// Whether it keeps the rule from applying.
    pub fn is_obstacle(&self) -> bool {
        match self.list {
            "unless" => self.holds == Some(true),
            _ => self.holds == Some(false),
        }
    }

    /// A condition of `unless` that holds by itself, of a rule that applies: it is about another part of the call.
    fn about_another(self) -> Self {
        if self.holds != Some(true) {
            return self;
        }
        let why = "it holds for another program, file or host of the call";
        Self { holds: Some(false), why: Some(why.to_owned()), ..self }
    }

    fn to_json(&self) -> Value {
        json!({
            "list": self.list,
            "key": self.key,
            "expects": self.expects,
            "holds": self.holds,
            "saw": self.saw,
            "why": self.why,
        })
    }
}

/// One sentence for people.
impl fmt::Display for ConditionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { list, key, expects, saw, why, .. } = self;
        if key.is_empty() {
            return write!(f, "`{list}` is not true: {expects}");
        }
        let mut expects = expects.clone();
        shorten(&mut expects);
        let holds = if *list == "unless" { "holds" } else { "does not hold" };
        write!(f, "`{list}: {key}` {holds}: it expects {expects}, and saw ")?;
        match saw.as_slice() {
            [] => f.write_str("nothing")?,
            saw => write!(f, "`{}`", saw.join("`, `"))?,
        }
        why.as_ref().map_or(Ok(()), |why| write!(f, " ({why})"))
    }
}

/// What a condition looks at.
fn values(condition: &Condition, facts: &Facts<'_>) -> Vec<String> {
    let event = facts.event;
    match condition {
        Condition::Field(path, _) => {
            chosen(&facts.texts(path), FieldsOf::Everyone).map(str::to_owned).collect()
        }
        Condition::Tool(_) => {
            event.tool.iter().map(|tool| format!("{} ({})", tool.name, tool.class)).collect()
        }
        Condition::Agent(_) => vec![event.agent.to_string()],
        Condition::Session(_) => vec![event.session.clone()],
        Condition::Model(_) => facts.model().map(str::to_owned).into_iter().collect(),
        Condition::Cwd(_) => vec![facts.place.cwd.to_string_lossy().into_owned()],
        Condition::Mcp(..) => {
            facts.mcp().map(|mcp| format!("{} {}", mcp.server, mcp.tool)).into_iter().collect()
        }
        Condition::Secret(_) => facts.secrets().to_vec(),
        Condition::Size(_) => vec![format!("{} bytes", facts.size())],
        Condition::Runs(_) => facts
            .commands()
            .iter()
            .flat_map(|command| RunSubject::all(command).map(|it| it.shown(command)))
            .collect(),
        Condition::File(key, _) => files(*key, facts),
        Condition::Host(_) => facts
            .hosts()
            .iter()
            .map(|it| if it.host.is_empty() { it.text.to_string() } else { it.host.to_string() })
            .collect(),
    }
}

fn files(key: FileKey, facts: &Facts<'_>) -> Vec<String> {
    let files = facts.files().iter().filter(|file| key.covers(file.access));
    files.map(FileFact::shown).collect()
}

/// What the programs of a call miss to be the command of a pattern: for the programs of the right name.
fn missing_in_programs(condition: &Condition, facts: &Facts<'_>) -> Option<String> {
    let Condition::Runs(any_of) = condition else { return None };
    let patterns = any_of.iter().filter_map(|it| match it {
        ProgramMatch::Command(pattern, _) => Some(pattern),
        ProgramMatch::Opaque(_) | ProgramMatch::CodeFrom(_) => None,
    });
    let about = |pattern: &CommandPattern| {
        let names = pattern.program_names();
        let of_name = facts
            .invocations()
            .find(|it| it.names().any(|name| names.iter().any(|own| own == name)));
        of_name.map(|program| pattern.explain(program))
    };
    patterns.into_iter().find_map(about)
}

fn shorten(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(LONGEST_VALUE) {
        text.truncate(at);
        text.push('…');
    }
}
