//! What the conditions of a rule saw of an event, in lines for people: for `hookbus hooks test` and `hookbus why`.

use hookbus::rule::{ConditionReport, RuleReport};

use crate::output::{Paint, shorten, wrapped};

/// More of what a condition expects or saw than a person wants to read here. `--json` has all of it.
const LONGEST: usize = 200;

/// One sentence per condition of a rule, and why the rule cannot be evaluated, if so.
pub(crate) fn condition_lines(report: &RuleReport, indent: &str, paint: Paint) -> Vec<String> {
    let mut lines: Vec<String> =
        report.conditions.iter().flat_map(|it| wrapped(&sentence(it), indent)).collect();
    if report.conditions.is_empty() {
        lines.push(format!("{indent}it has no conditions"));
    }
    let failure = report.failure.iter().flat_map(|why| wrapped(why, indent));
    lines.extend(failure.map(|line| paint.bad(&line)));
    lines
}

fn sentence(condition: &ConditionReport) -> String {
    let ConditionReport { list, key, expects, holds, saw, why } = condition;
    let key = if key.is_empty() { String::new() } else { format!(" {key}") };
    let holds = match holds {
        Some(true) => "holds",
        Some(false) => "does not hold",
        None => "cannot be checked",
    };
    let saw = match saw.as_slice() {
        [] if *list == "if" => String::new(),
        [] => "; it saw nothing".to_owned(),
        saw => format!("; it saw `{}`", shorten(&saw.join("`, `"), LONGEST)),
    };
    let why = why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    format!("{list}{key} {holds}: {}{saw}{why}", shorten(expects, LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(holds: Option<bool>, saw: &[&str]) -> ConditionReport {
        ConditionReport {
            list: "when",
            key: "path".to_owned(),
            expects: "under $hookbus".to_owned(),
            holds,
            saw: saw.iter().map(|&text| text.to_owned()).collect(),
            why: None,
        }
    }

    #[test]
    fn a_condition_is_a_sentence_with_what_it_saw() {
        let text = |condition| sentence(&condition);
        let held = "when path holds: under $hookbus; it saw `/a`, `/b`";
        assert_eq!(text(condition(Some(true), &["/a", "/b"])), held);
        let missed = "when path does not hold: under $hookbus; it saw nothing";
        assert_eq!(text(condition(Some(false), &[])), missed);
        let unknown =
            ConditionReport { why: Some("too large".to_owned()), ..condition(None, &["/a"]) };
        let expected = "when path cannot be checked: under $hookbus; it saw `/a` (too large)";
        assert_eq!(text(unknown), expected);
    }

    #[test]
    fn a_rule_without_conditions_says_so() {
        let report = RuleReport { applies: Some(true), conditions: Vec::new(), failure: None };
        assert_eq!(condition_lines(&report, "  ", Paint(false)), ["  it has no conditions"]);
    }
}
