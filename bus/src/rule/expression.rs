//! `if:`, a condition in CEL, over the same values that the other conditions see. It is checked when the file is read:
//! unknown names, unknown functions and wrong types are mistakes of the file, not surprises at an event.

use std::collections::BTreeSet;

use cel::common::ast::{EntryExpr, Expr, LiteralValue};
use cel::{Context, ExecutionError, IdedExpr, Program, Value};

use super::RuleFailure;
use super::expression_values::{VARIABLES, Values};
use super::facts::Facts;
use crate::shell::{CommandPattern, Match};

/// Functions of CEL that have a name; operators have none.
const FUNCTIONS: [&str; 13] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "string",
    "int",
    "uint",
    "double",
    "bytes",
    "type",
    "dyn",
    "under",
];

/// A longer expression is a program, and belongs into a script.
const LONGEST: usize = 4096;

/// A checked expression.
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    /// Each `runs("…")` in it is replaced by a variable that holds its result.
    expr: IdedExpr,
    patterns: Vec<CommandPattern>,
    /// The variables that it uses.
    variables: BTreeSet<String>,
}

impl Expression {
    /// Reads and checks an expression. An error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("`if` has {LONGEST} bytes at most; write a `command` for more"));
        }
        let program = Program::compile(text).map_err(|errors| {
            let first = errors.to_string();
            format!("`if` is not CEL: {}", first.lines().next().unwrap_or_default())
        })?;
        let mut checker = Checker::default();
        let expr = checker.checked(program.expression(), &[])?;
        let Checker { patterns, variables, .. } = checker;
        let expression = Self { text: text.to_owned(), expr, patterns, variables };
        expression.check_types()?;
        Ok(expression)
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is true for an event. A field that the event does not have makes it false.
    pub(super) fn holds(&self, facts: &Facts<'_>) -> Result<bool, RuleFailure> {
        let values = Values::of_event(facts, &self.variables);
        let runs = |pattern: &CommandPattern| {
            facts.invocations().any(|program| pattern.matches(program) == Match::Yes)
        };
        let results: Vec<bool> = self.patterns.iter().map(runs).collect();
        match self.evaluate(&values, &results) {
            Ok(Value::Bool(held)) => Ok(held),
            Ok(_) => Err(RuleFailure::Expression("its value is neither true nor false".into())),
            Err(ExecutionError::NoSuchKey(_)) => Ok(false),
            Err(error) => Err(RuleFailure::Expression(error.to_string())),
        }
    }

    fn evaluate(&self, values: &Values, runs: &[bool]) -> Result<Value, ExecutionError> {
        let mut context = Context::default();
        values.bind(&mut context);
        for (index, held) in runs.iter().enumerate() {
            context.add_variable_from_value(result_name(index), *held);
        }
        context.resolve(&self.expr)
    }

    /// Evaluates it, and each part of it, with sample values of the right types.
    fn check_types(&self) -> Result<(), String> {
        let runs = vec![true; self.patterns.len()];
        let sample = Values::sample(&self.variables);
        let mut context = Context::default();
        sample.bind(&mut context);
        for (index, held) in runs.iter().enumerate() {
            context.add_variable_from_value(result_name(index), *held);
        }
        let mut parts = Vec::new();
        closed_parts(&self.expr, &mut parts);
        for part in parts {
            match context.resolve(part) {
                Ok(_) | Err(ExecutionError::NoSuchKey(_)) => {}
                Err(error) => return Err(format!("`if` does not fit together: {error}")),
            }
        }
        match self.evaluate(&sample, &runs) {
            Ok(Value::Bool(_)) | Err(ExecutionError::NoSuchKey(_)) => Ok(()),
            Ok(other) => Err(format!(
                "`if` must be true or false, and this is {}; compare it with something",
                other.type_of()
            )),
            Err(error) => Err(format!("`if` does not fit together: {error}")),
        }
    }
}

fn result_name(index: usize) -> String {
    format!("hookbus_runs_{index}")
}

/// The parts that use no variable of a comprehension, so that they can be evaluated by themselves.
fn closed_parts<'e>(expr: &'e IdedExpr, parts: &mut Vec<&'e IdedExpr>) {
    match &expr.expr {
        Expr::Call(call) => {
            parts.push(expr);
            call.target.iter().for_each(|target| closed_parts(target, parts));
            call.args.iter().for_each(|argument| closed_parts(argument, parts));
        }
        Expr::Comprehension(comprehension) => closed_parts(&comprehension.iter_range, parts),
        Expr::Select(select) => closed_parts(&select.operand, parts),
        Expr::List(list) => list.elements.iter().for_each(|item| closed_parts(item, parts)),
        Expr::Map(_) | Expr::Struct(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

/// Walks an expression once: finds unknown names and takes `runs("…")` out.
#[derive(Default)]
struct Checker {
    patterns: Vec<CommandPattern>,
    variables: BTreeSet<String>,
}

impl Checker {
    /// `bound` are the variables of the comprehensions around.
    fn checked(&mut self, expr: &IdedExpr, bound: &[&str]) -> Result<IdedExpr, String> {
        let mut copy = expr.clone();
        match &mut copy.expr {
            Expr::Ident(name) => self.ident(name, bound)?,
            Expr::Call(call) if call.func_name == "runs" && call.target.is_none() => {
                copy.expr = Expr::Ident(self.runs(&call.args)?);
            }
            Expr::Call(call) => {
                known_function(&call.func_name)?;
                if let Some(target) = &mut call.target {
                    **target = self.checked(target, bound)?;
                }
                self.all(&mut call.args, bound)?;
            }
            Expr::Select(select) => *select.operand = self.checked(&select.operand, bound)?,
            Expr::List(list) => self.all(&mut list.elements, bound)?,
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        entry.key = self.checked(&entry.key, bound)?;
                        entry.value = self.checked(&entry.value, bound)?;
                    }
                }
            }
            Expr::Comprehension(inner) => {
                inner.iter_range = self.checked(&inner.iter_range, bound)?;
                inner.accu_init = self.checked(&inner.accu_init, bound)?;
                let (var, var2, accu) =
                    (inner.iter_var.clone(), inner.iter_var2.clone(), inner.accu_var.clone());
                let mut within = bound.to_vec();
                within.extend([var.as_str(), accu.as_str()]);
                within.extend(var2.as_deref());
                inner.loop_cond = self.checked(&inner.loop_cond, &within)?;
                inner.loop_step = self.checked(&inner.loop_step, &within)?;
                inner.result = self.checked(&inner.result, &within)?;
            }
            Expr::Struct(_) => return Err("`if` has no types of its own; remove the `{…}`".into()),
            Expr::Literal(_) | Expr::Unspecified => {}
        }
        Ok(copy)
    }

    fn all(&mut self, items: &mut [IdedExpr], bound: &[&str]) -> Result<(), String> {
        for item in items {
            *item = self.checked(item, bound)?;
        }
        Ok(())
    }

    fn ident(&mut self, name: &str, bound: &[&str]) -> Result<(), String> {
        if bound.contains(&name) || name.starts_with('@') {
            return Ok(());
        }
        if VARIABLES.contains(&name) {
            self.variables.insert(name.to_owned());
            return Ok(());
        }
        let similar = |known: &&&str| strsim::damerau_levenshtein(name, known) <= 2;
        let hint = VARIABLES.iter().find(similar).map(|it| format!("; did you mean `{it}`?"));
        let known = VARIABLES.join(", ");
        Err(format!("`if` knows no `{name}`{} (it knows {known})", hint.unwrap_or_default()))
    }

    /// The variable that holds the result of `runs("…")`.
    fn runs(&mut self, arguments: &[IdedExpr]) -> Result<String, String> {
        let [IdedExpr { expr: Expr::Literal(LiteralValue::String(text)), .. }] = arguments else {
            return Err("`runs` takes one text; write `runs(\"git push\")`".into());
        };
        let pattern = CommandPattern::parse(text.inner()).map_err(|why| why.to_string())?;
        self.patterns.push(pattern);
        Ok(result_name(self.patterns.len() - 1))
    }
}

fn known_function(name: &str) -> Result<(), String> {
    let is_operator = !name.starts_with(|letter: char| letter.is_ascii_alphabetic());
    if is_operator || FUNCTIONS.contains(&name) {
        return Ok(());
    }
    let known = FUNCTIONS.join(", ");
    Err(format!("`if` knows no function `{name}` (it knows runs, {known})"))
}
