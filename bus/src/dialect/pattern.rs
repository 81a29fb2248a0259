//! A regex of a matcher or a rule. The `regex` crate runs it in linear time if it can. Look-around and
//! back-references, which agents' own engines know, need a backtracking engine, which has limits: reaching one is
//! a failure of the hook, never "no match", or a long command would get past its guard.

use std::sync::{Arc, OnceLock};

use fancy_regex::RegexBuilder as BacktrackingBuilder;
use regex::{Regex, RegexBuilder};

/// How many steps the backtracking engine may take.
const MOST_STEPS: usize = 1_000_000;

/// The longest text for the backtracking engine. One step can look at the whole text, so the limit of steps alone
/// is no limit of time.
const LONGEST_TEXT: usize = 32 << 10;

/// A compiled regex.
#[derive(Debug, Clone)]
pub struct Pattern(Engine);

#[derive(Debug, Clone)]
enum Engine {
    Linear(Regex),
    /// Compiled when it is first needed. It has been parsed, and is short enough to be compiled.
    Later(Arc<LaterRegex>),
    Backtracking(Box<fancy_regex::Regex>),
}

#[derive(Debug)]
struct LaterRegex {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

/// A longer regex is compiled at once: it may turn out to be too large.
const LONGEST_TO_COMPILE_LATER: usize = 700;

/// So is one with more classes of characters: about 200 times `\w` is too large.
const MOST_CLASSES_TO_COMPILE_LATER: usize = 60;

/// How much memory a compiled regex may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternSize {
    /// For the names of tools, which are short.
    Small,
    /// For any text.
    Large,
}

/// Whether a text matches could not be found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternFailure {
    /// The text is too long for the backtracking engine.
    #[error(
        "a regex with look-around is run on texts of at most {LONGEST_TEXT} bytes, and this one has {0}; write it without look-around and back-references"
    )]
    TooLong(usize),
    /// The engine gave up.
    #[error(
        "a regex with look-around took more than {MOST_STEPS} steps on this text; write it without nested repetitions"
    )]
    TooManySteps,
}

impl Pattern {
    /// Compiles `regex`; an error says what is wrong with `written`, which is what the user wrote.
    pub fn compile(written: &str, regex: &str, size: PatternSize) -> Result<Self, String> {
        let size = match size {
            PatternSize::Small => 1 << 20,
            PatternSize::Large => 10 << 20,
        };
        let error = match RegexBuilder::new(regex).size_limit(size).build() {
            Ok(regex) => return Ok(Self(Engine::Linear(regex))),
            Err(error) => error,
        };
        if !needs_backtracking(regex) {
            return Err(describe(written, &error));
        }
        let mut backtracking = BacktrackingBuilder::new(regex);
        backtracking.backtrack_limit(MOST_STEPS).delegate_size_limit(size);
        let compiled = backtracking.build().map_err(|_| describe(written, &error))?;
        Ok(Self(Engine::Backtracking(Box::new(compiled))))
    }

    /// [`compile`](Self::compile) for a regex that may never be needed: if it can be compiled, that is done when it is.
    /// Most rules of a policy are about other calls than the one at hand, and compiling is what takes longest to read a
    /// policy.
    pub fn compile_later(regex: &str) -> Result<Self, String> {
        let is_short = regex.len() <= LONGEST_TO_COMPILE_LATER
            && classes(regex) <= MOST_CLASSES_TO_COMPILE_LATER
            && !repeats_often(regex);
        if is_short && regex_syntax::Parser::new().parse(regex).is_ok() {
            let later = LaterRegex { text: regex.to_owned(), compiled: OnceLock::new() };
            return Ok(Self(Engine::Later(Arc::new(later))));
        }
        Self::compile(regex, regex, PatternSize::Large)
    }

    /// Whether it matches somewhere in `text`.
    pub fn is_match(&self, text: &str) -> Result<bool, PatternFailure> {
        match &self.0 {
            Engine::Linear(regex) => Ok(regex.is_match(text)),
            Engine::Later(later) => {
                let compiled = later.compiled.get_or_init(|| Regex::new(&later.text).ok());
                compiled
                    .as_ref()
                    .map(|regex| regex.is_match(text))
                    .ok_or(PatternFailure::TooManySteps)
            }
            Engine::Backtracking(_) if text.len() > LONGEST_TEXT => {
                Err(PatternFailure::TooLong(text.len()))
            }
            Engine::Backtracking(regex) => {
                regex.is_match(text).map_err(|_| PatternFailure::TooManySteps)
            }
        }
    }

    /// Whether a match can fail.
    pub const fn can_fail(&self) -> bool {
        matches!(self.0, Engine::Backtracking(_))
    }
}

/// How many classes such as `\w` a regex names.
fn classes(regex: &str) -> usize {
    regex
        .split('\\')
        .skip(1)
        .filter(|rest| rest.starts_with(['w', 'W', 'p', 'P', 'd', 'D', 's', 'S']))
        .count()
}

/// Whether a regex has a counted repetition that makes it large.
fn repeats_often(regex: &str) -> bool {
    regex.split('{').skip(1).any(|rest| {
        let digits = rest.split(|letter: char| !letter.is_ascii_digit()).take(2);
        digits.filter_map(|digits| digits.parse::<u32>().ok()).any(|count| count > 10)
    })
}

/// Whether a regex has look-around or back-references. The other engine also accepts what no agent takes for a
/// regex (`a{2,1}`), and that stays a mistake.
fn needs_backtracking(regex: &str) -> bool {
    let has_group =
        ["(?=", "(?!", "(?<=", "(?<!", "(?P="].iter().any(|group| regex.contains(group));
    let has_reference = regex.split('\\').skip(1).any(|rest| {
        rest.starts_with(|letter: char| letter == 'k' || ('1'..='9').contains(&letter))
    });
    has_group || has_reference
}

/// Whether a regex is cheap to compile. A project's file is read before the user approved it.
pub fn is_cheap_regex(text: &str) -> bool {
    text.len() <= 200 && RegexBuilder::new(text).size_limit(64 << 10).build().is_ok()
}

fn describe(written: &str, error: &regex::Error) -> String {
    let why = error.to_string();
    let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
    format!(
        "`{written}` is not a regex we can run ({why}); see https://docs.rs/regex for the syntax"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(text: &str) -> Pattern {
        Pattern::compile(text, text, PatternSize::Small).expect("a regex")
    }

    #[test]
    fn a_regex_that_is_too_large_is_a_mistake_when_the_policy_is_read() {
        for count in [60, 61, 100, 350] {
            let regex = r"\w".repeat(count);
            match Pattern::compile_later(&regex) {
                Ok(pattern) => assert_eq!(pattern.is_match("no"), Ok(false), "{count}"),
                Err(why) => assert!(count == 350 && why.contains("size limit"), "{count}: {why}"),
            }
        }
    }

    #[test]
    fn look_around_and_back_references_work() {
        for (regex, yes, no) in [
            ("^(?!read_)", "write_file", "read_file"),
            ("term(?=inal)", "terminal", "term"),
            ("(?<!un)safe", "safe", "unsafe"),
            (r"^(\w+)-\1$", "a-a", "a-b"),
            ("^(?:write_(?!notes).*)$", "write_file", "write_notes"),
        ] {
            let pattern = compile(regex);
            assert!(pattern.can_fail(), "{regex}");
            assert_eq!(
                (pattern.is_match(yes), pattern.is_match(no)),
                (Ok(true), Ok(false)),
                "{regex}"
            );
        }
    }

    #[test]
    fn whatever_needs_no_backtracking_runs_in_linear_time() {
        for regex in ["git push", "(a+)+$", r"\bx\b", "(?i)rm", "a|b"] {
            assert!(!compile(regex).can_fail(), "{regex}");
        }
    }

    #[test]
    fn a_limit_is_a_failure_and_not_a_mismatch() {
        let nested = compile(r"^(?=(x+x+)+y)");
        assert_eq!(nested.is_match("xxy"), Ok(true));
        assert_eq!(
            compile(r"^(a|aa)+\1$(?=b)").is_match(&"a".repeat(60)),
            Err(PatternFailure::TooManySteps)
        );
        let long = "x".repeat(LONGEST_TEXT + 1);
        assert_eq!(compile("(?=y)").is_match(&long), Err(PatternFailure::TooLong(long.len())));
    }

    #[test]
    fn what_no_engine_can_read_is_an_error_with_the_text_as_written() {
        for regex in ["(", "(?=", "a{2,1}", "[z-a]"] {
            let error = Pattern::compile("written", regex, PatternSize::Large).map(drop);
            assert!(error.is_err_and(|why| why.starts_with("`written` is not a regex")), "{regex}");
        }
        assert!(
            Pattern::compile("x", "(?:a{1000}){1000}", PatternSize::Small).is_err(),
            "too large"
        );
    }
}
