//! `hookbus hooks check`: runs the examples of the rules in a hooks file, and reports its mistakes. Nothing else runs, and
//! no approval is needed: the file is checked as it is written.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use hookbus::config::{Action, ExampleResult, Hook, HooksFile, Problem, Reach, run_examples};
use hookbus::plugins::{EmptyPluginEntry, empty_entries};
use hookbus_replay::{CaseResult, Finding, JUnitReport};
use serde_json::{Value, json};

use super::effective::{EffectiveHooks, current_caller};
use crate::cli::Exit;
use crate::output::{self, Paint, count, sanitize, shorten, wrapped};
use crate::settings::{Format, Settings};

const EXAMPLES: &str = "\
Examples:
  hookbus hooks check                       Check your file and the project's
  hookbus hooks check policy/hookbus.yaml   Check another file
  hookbus hooks check --junit examples.xml  Also write the results for CI";

/// The arguments of `hookbus hooks check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// File to check, as if it were your own [default: your hookbus.yaml and the project's]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write a JUnit report to this file, for CI
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// A hooks file and how its examples came out.
struct CheckedFile {
    path: PathBuf,
    /// What is wrong with the file, without the missed examples.
    problems: Vec<Problem>,
    own: RuleCounts,
    of_packs: RuleCounts,
    examples: Vec<ExampleResult>,
}

/// How many rules there are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct RuleCounts {
    with_examples: usize,
    without_examples: usize,
}

pub(super) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let files = match &arguments.file {
        Some(file) => vec![CheckedFile::own(file)?],
        None => files_in_force(settings)?,
    };
    if let Some(path) = &arguments.junit {
        write_junit(path, &files).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let is_sound = files.iter().all(CheckedFile::is_sound);
    match format {
        Format::Json => {
            let all: Vec<Value> = files.iter().map(CheckedFile::to_json).collect();
            output::line(json!({"sound": is_sound, "files": all}).to_string())?;
        }
        Format::Text if files.is_empty() => {
            let file = settings.home.join("hookbus.yaml");
            let file = sanitize(&file.display().to_string());
            output::line(format!("no hooks: {file} does not exist; `hookbus init` writes one"))?;
        }
        Format::Text => {
            for file in &files {
                file.print(Paint(settings.colour))?;
            }
        }
    }
    Ok(if is_sound { Exit::Success } else { Exit::Failure })
}

/// The user's own file and those of the project in the current directory.
fn files_in_force(settings: &Settings) -> Result<Vec<CheckedFile>> {
    let own = settings.home.join("hookbus.yaml");
    let mut files = Vec::new();
    if own.exists() {
        files.push(CheckedFile::own(&own)?);
    }
    let hooks = EffectiveHooks::load(settings);
    for (source, active) in hooks.files().filter(|(_, active)| active.file.project.is_some()) {
        let Some(path) = &active.file.project else { continue };
        let text = read(source.file())?;
        // Only read: nothing of it runs, so that no approval is needed.
        let parsed = HooksFile::parse_project(&text, path, &|_, _| true);
        files.push(CheckedFile::new(source.file(), parsed));
    }
    Ok(files)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

impl CheckedFile {
    /// The user's own file at `path`.
    fn own(path: &Path) -> Result<Self> {
        let text = read(path)?;
        let absolute = std::path::absolute(path)?;
        let base = absolute.parent().unwrap_or(Path::new("/"));
        Ok(Self::new(path, HooksFile::parse(&text, base)))
    }

    fn new(path: &Path, parsed: Result<HooksFile, Problem>) -> Self {
        let mut checked = Self {
            path: path.to_owned(),
            problems: Vec::new(),
            own: RuleCounts::default(),
            of_packs: RuleCounts::default(),
            examples: Vec::new(),
        };
        match parsed {
            Err(problem) => checked.problems.push(problem),
            Ok(file) => checked.add(&file),
        }
        checked
    }

    fn add(&mut self, file: &HooksFile) {
        let is_rule = |hook: &&Hook| matches!(hook.action, Action::Rule(_));
        for hook in file.hooks.iter().filter(is_rule) {
            let counts = if hook.pack.is_some() { &mut self.of_packs } else { &mut self.own };
            let results = run_examples(hook);
            if results.is_empty() {
                counts.without_examples += 1;
            } else {
                counts.with_examples += 1;
            }
            self.examples.extend(results);
        }
        let missed: Vec<usize> = self.missed().map(|it| it.line).collect();
        // A missed example is told with its reason.
        let is_told = |it: &&Problem| it.reach == Reach::Example && missed.contains(&it.line);
        let empty = empty_entries(file, &current_caller()).into_iter();
        let empty =
            empty.map(|EmptyPluginEntry { line, why, .. }| Problem::broken_entry(line, why));
        let problems = file.problems.iter().filter(|problem| !is_told(problem)).cloned();
        self.problems = problems.chain(empty).collect();
    }

    fn missed(&self) -> impl Iterator<Item = &ExampleResult> {
        self.examples.iter().filter(|example| example.missed.is_some())
    }

    fn is_sound(&self) -> bool {
        self.missed().next().is_none() && !self.problems.iter().any(is_mistake)
    }

    fn to_json(&self) -> Value {
        let problem = |it: &Problem| json!({"line": it.line, "message": it.message, "mistake": is_mistake(it)});
        let example = |it: &ExampleResult| {
            let ExampleResult { hook, pack, line, expected, text, missed } = it;
            json!({"hook": hook, "pack": pack, "line": line, "expected": expected, "example": text, "missed": missed})
        };
        json!({
            "file": self.path.to_string_lossy(),
            "problems": self.problems.iter().map(problem).collect::<Vec<_>>(),
            "rules": self.own.with_examples + self.own.without_examples,
            "rules_without_examples": self.own.without_examples,
            "rules_of_packs": self.of_packs.with_examples + self.of_packs.without_examples,
            "missed": self.missed().count(),
            "examples": self.examples.iter().map(example).collect::<Vec<_>>(),
        })
    }

    fn print(&self, paint: Paint) -> Result<()> {
        let file = sanitize(&self.path.display().to_string());
        for problem in &self.problems {
            let text = format!("{file}:{}: {}", problem.line, sanitize(&problem.message));
            output::line(if is_mistake(problem) { paint.bad(&text) } else { text })?;
        }
        for example in self.missed() {
            let place = match &example.pack {
                Some(pack) => format!("pack {}, line {}", sanitize(pack), example.line),
                None => format!("{file}:{}", example.line),
            };
            let hook = sanitize(&example.hook);
            output::line(format!("{place}: {}: {}", paint.bold(&hook), missed(example, paint)))?;
            let why = example.missed.as_deref().unwrap_or_default();
            wrapped(why, "    ").into_iter().try_for_each(output::line)?;
        }
        // On lines of their own: a path may fill the first one.
        output::line(format!("{file}:\n  {}", self.summary(paint)))?;
        Ok(())
    }

    fn summary(&self, paint: Paint) -> String {
        let part = |of_packs: bool, counts: RuleCounts| {
            let examples = || self.examples.iter().filter(|it| it.pack.is_some() == of_packs);
            let missed = examples().filter(|it| it.missed.is_some()).count();
            let result = match missed {
                0 => paint.good("all as expected"),
                missed => paint.bad(&format!("{missed} missed")),
            };
            let of = if of_packs { " of packs" } else { "" };
            let (examples, rules) =
                (count(examples().count(), "example"), count(counts.with_examples, "rule"));
            format!("{examples} of {rules}{of}: {result}")
        };
        let mut parts = Vec::new();
        let has_rules = self.own != RuleCounts::default() || self.of_packs != RuleCounts::default();
        if self.own.with_examples > 0 {
            parts.push(part(false, self.own));
        } else if !has_rules {
            parts.push("no rules".to_owned());
        }
        if self.of_packs.with_examples > 0 {
            parts.push(part(true, self.of_packs));
        }
        match self.own.without_examples {
            0 => {}
            1 => parts.push("1 rule has no examples".to_owned()),
            more => parts.push(format!("{more} rules have no examples")),
        }
        parts.join("\n  ")
    }
}

/// Whether a problem is more than a remark.
fn is_mistake(problem: &Problem) -> bool {
    problem.reach != Reach::Nothing
}

/// What was expected of which example.
fn missed(example: &ExampleResult, paint: Paint) -> String {
    let expected = match example.expected.as_str() {
        "pass" => "should pass".to_owned(),
        answer => format!("expected {answer}"),
    };
    format!("{}: {}", paint.bad(&expected), shorten(&example.text, 200))
}

fn write_junit(path: &Path, files: &[CheckedFile]) -> std::io::Result<()> {
    let mut report = JUnitReport::create(path, "hookbus hooks check")?;
    for file in files {
        let shown = file.path.to_string_lossy();
        for problem in file.problems.iter().filter(|problem| is_mistake(problem)) {
            let place = format!("{shown}:{}", problem.line);
            let finding = Finding { kind: "mistake", message: &problem.message, details: &place };
            report.add_case(
                &shown,
                &format!("line {}", problem.line),
                CaseResult::Error(finding),
            )?;
        }
        for example in &file.examples {
            let class = match &example.pack {
                Some(pack) => format!("pack {pack}.{}", example.hook),
                None => format!("{shown}.{}", example.hook),
            };
            let name = format!("{}: {}", example.expected, example.text);
            let details = format!("line {}", example.line);
            let result = match &example.missed {
                None => CaseResult::Passed,
                Some(why) => CaseResult::Failure(Finding {
                    kind: "missed example",
                    message: why,
                    details: &details,
                }),
            };
            report.add_case(&class, &name, result)?;
        }
    }
    report.finish()
}
