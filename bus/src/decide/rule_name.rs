//! The name of the rule, at the end of the reason that an agent reads: a person who reads along knows what to change, and
//! the model can say which rule it is about. The log keeps the rule's own words.

use crate::config::{Action, Hook};
use crate::event::{Ruling, Verdict};

/// What stands between the reason and the name.
const BEGINNING: &str = " (hookbus rule ";

/// Adds the name of the rule that blocks, asks or stops, unless the reason has it already.
pub(super) fn add_rule_name(verdict: &mut Verdict, hook: &Hook) {
    let Action::Rule(_) = &hook.action else { return };
    let quoted = format!("`{}`", hook.name);
    let add = |reason: &mut Option<String>| {
        let unnamed = reason.as_mut().filter(|reason| !reason.contains(&quoted));
        if let Some(reason) = unnamed {
            *reason = format!("{}{BEGINNING}{})", reason.trim_end(), hook.name);
        }
    };
    if matches!(verdict.ruling, Some(Ruling::Block | Ruling::Ask)) {
        add(&mut verdict.reason);
    }
    if verdict.stop {
        add(&mut verdict.stop_reason);
    }
}

/// A text without the names of rules in it. Earlier versions did not add them.
pub fn without_rule_names(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, named)) = rest.split_once(BEGINNING) {
        kept.push_str(before);
        rest = named.get(end_of_name(named)..).unwrap_or_default();
    }
    kept.push_str(rest);
    kept
}

/// Where the text behind a name begins. A name may have parentheses in it.
fn end_of_name(text: &str) -> usize {
    let mut open = 1_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::HooksFile;

    fn hook(entry: &str) -> Hook {
        let text = format!("hooks: {{ tool.before: [{entry}] }}");
        HooksFile::parse(&text, Path::new("/")).expect("a file").hooks.remove(0)
    }

    #[test]
    fn the_reason_of_a_rule_ends_with_its_name() {
        let rule = hook("{ name: no-push (main), rule: { block: Ask a person. } }");
        let mut verdict = Verdict::block("Ask a person.\n");
        add_rule_name(&mut verdict, &rule);
        let reason = verdict.reason.expect("a reason");
        assert_eq!(reason, "Ask a person. (hookbus rule no-push (main))");
        assert_eq!(without_rule_names(&format!("{reason}\n{reason} x")), {
            "Ask a person.\nAsk a person. x"
        });
    }

    #[test]
    fn no_name_is_added_to_what_is_no_reason_of_a_rule() {
        let added = |hook: &Hook, mut verdict: Verdict| {
            add_rule_name(&mut verdict, hook);
            verdict.reason
        };
        let command = hook("{ name: guard, command: ./guard }");
        assert_eq!(added(&command, Verdict::block("no")).as_deref(), Some("no"));
        let rule = hook("{ name: guard, rule: { block: true } }");
        let named = "not allowed by hook `guard`";
        assert_eq!(added(&rule, Verdict::block(named)).as_deref(), Some(named));
        assert_eq!(added(&rule, Verdict { reason: Some("fine".into()), ..Verdict::silent() }), {
            Some("fine".to_owned())
        });
    }

    #[test]
    fn a_stop_names_the_rule_in_its_own_reason() {
        let rule = hook("{ name: enough, rule: { stop: Enough. } }");
        let stop = Some("Enough.".to_owned());
        let mut verdict = Verdict { stop: true, stop_reason: stop, ..Verdict::silent() };
        add_rule_name(&mut verdict, &rule);
        assert_eq!(verdict.stop_reason.as_deref(), Some("Enough. (hookbus rule enough)"));
    }
}
