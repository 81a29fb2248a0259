//! Counts calls by what they are about, such as a tool and its command. The size does not depend on the length of the
//! log. A replay and the report about shadow mode use the same counts.

use std::collections::HashMap;

use hookbus::event::Seq;
use serde_json::{Value, json};

/// Most distinct calls to count; the rarest are dropped first.
const MOST_CALLS: usize = 20_000;

/// Longest summary of a call, in characters.
const GIST_LENGTH: usize = 80;

/// How often each call was affected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallCounts(HashMap<String, CallCount>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CallCount {
    times: u64,
    first: Seq,
}

/// A call that was affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AffectedCall<'a> {
    /// The tool, or the name of the event, and what it was about.
    pub call: &'a str,
    /// How often.
    pub times: u64,
    /// Position of the first one.
    pub first: Seq,
}

impl CallCounts {
    /// Counts the call at `seq`: `tool` is the tool or the name of the event, `gist` what it is about.
    pub fn add(&mut self, tool: &str, gist: &str, seq: Seq) {
        let call = format!("{tool}  {}", gist.chars().take(GIST_LENGTH).collect::<String>());
        self.add_count(call.trim_end().to_owned(), CallCount { times: 1, first: seq });
    }

    /// Adds the counts of the next chunk.
    pub(crate) fn merge(&mut self, chunk: Self) {
        for (call, count) in chunk.0 {
            self.add_count(call, count);
        }
    }

    fn add_count(&mut self, call: String, CallCount { times, first }: CallCount) {
        let known = self.0.entry(call).or_insert(CallCount { times: 0, first });
        known.times += times;
        known.first = known.first.min(first);
        let mut threshold = 1;
        while self.0.len() > MOST_CALLS {
            self.0.retain(|_, count| count.times > threshold);
            threshold *= 2;
        }
    }

    /// The calls that were affected most often, at most `most` of them.
    pub fn most(&self, most: usize) -> Vec<AffectedCall<'_>> {
        let mut calls: Vec<AffectedCall<'_>> = self
            .0
            .iter()
            .map(|(call, count)| AffectedCall { call, times: count.times, first: count.first })
            .collect();
        calls.sort_by(|a, b| b.times.cmp(&a.times).then(a.call.cmp(b.call)));
        calls.truncate(most);
        calls
    }

    /// The same as JSON.
    pub fn to_json(&self, most: usize) -> Value {
        let call = |it: AffectedCall<'_>| json!({"call": it.call, "times": it.times, "first": it.first.as_i64()});
        self.most(most).into_iter().map(call).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_calls_come_first_with_their_first_position() {
        let (mut calls, mut chunk) = (CallCounts::default(), CallCounts::default());
        calls.add("terminal", "ls", Seq::from_i64(5));
        calls.add("stop", "", Seq::from_i64(6));
        chunk.add("terminal", "ls", Seq::from_i64(9));
        calls.merge(chunk);
        let most = calls.most(9);
        let found: Vec<(&str, u64, i64)> =
            most.iter().map(|it| (it.call, it.times, it.first.as_i64())).collect();
        assert_eq!(found, [("terminal  ls", 2, 5), ("stop", 1, 6)]);
        assert_eq!(calls.most(1).len(), 1);
    }

    #[test]
    fn the_rarest_calls_are_dropped() {
        let mut calls = CallCounts::default();
        for number in 0..=MOST_CALLS {
            calls.add("a", &number.to_string(), Seq::FIRST);
            calls.add("frequent", "", Seq::FIRST);
        }
        assert!(calls.0.len() <= MOST_CALLS);
        assert_eq!(calls.most(1)[0].call, "frequent");
    }
}
