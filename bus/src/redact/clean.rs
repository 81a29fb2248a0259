//! Payloads in which the search found nothing. A later payload that repeats one of them is searched only where it differs.

use std::ops::{Deref, Range};

use super::redactor::Redactor;
use super::repeats::Earlier;

/// How much of the repeated bytes is searched again beside what is new: a keyword there may belong to a secret here.
const MARGIN: usize = 4096;

/// A payload without secrets.
#[derive(Debug)]
pub struct CleanPayload<B>(Earlier<B>);

impl<B: Deref<Target = [u8]>> CleanPayload<B> {
    /// `raw`, in which `Redactor::redact` found nothing.
    pub fn new(raw: B) -> Self {
        Self(Earlier::new(raw))
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// The stretches of `raw` that have to be searched: what this payload does not have, with its surroundings.
    fn to_search(&self, raw: &[u8]) -> Vec<Range<usize>> {
        let mut stretches: Vec<Range<usize>> = Vec::new();
        let mut add = |new: Range<usize>| {
            let wide = new.start.saturating_sub(MARGIN)..(new.end + MARGIN).min(raw.len());
            match stretches.last_mut() {
                Some(last) if wide.start <= last.end => last.end = wide.end,
                Some(_) | None => stretches.push(wide),
            }
        };
        let mut at = 0;
        for same in self.0.repeated_in(raw) {
            add(at..same.start);
            at = same.end;
        }
        add(at..raw.len());
        stretches
    }
}

impl Redactor {
    /// Whether `raw` is certainly without secrets, because the stretches in which it differs from `earlier` are. If not, it
    /// has to be searched as a whole. The settings must be those that `earlier` was searched with.
    pub fn is_clean_beside<B: Deref<Target = [u8]>>(
        &self,
        raw: &[u8],
        earlier: &CleanPayload<B>,
    ) -> bool {
        self.searches_by_keyword_alone()
            && earlier.to_search(raw).into_iter().all(|stretch| self.is_clean(raw, stretch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::{FingerprintKey, RedactionSettings};

    fn redactor() -> Redactor {
        Redactor::new(FingerprintKey::new([7; 32]), &RedactionSettings::default()).expect("valid")
    }

    fn history(messages: usize) -> String {
        let message = |at: usize| {
            let words = "ordinary words about the work of the day ".repeat(20);
            format!(r#"{{"role":"user","content":"{at} {words}"}}"#)
        };
        (0..messages).map(message).collect::<Vec<_>>().join(", ")
    }

    fn payload(turn: &str, messages: usize, last: &str) -> Vec<u8> {
        format!(r#"{{"turn":"{turn}","history":[{}, "{last}"],"model":"m"}}"#, history(messages))
            .into_bytes()
    }

    #[test]
    fn a_history_that_grew_is_searched_at_its_end_and_a_secret_there_is_found() {
        let redactor = redactor();
        let before = payload("one", 200, "thanks");
        assert!(redactor.redact(&before).found.is_empty());
        let earlier = CleanPayload::new(before);
        let after = payload("two", 202, "please go on");
        let searched: usize = earlier.to_search(&after).iter().map(ExactSizeIterator::len).sum();
        assert!(searched < after.len() / 4, "{searched} of {}", after.len());
        assert!(redactor.is_clean_beside(&after, &earlier));
        let secret = format!("AKIA{}", "Q3EXAMPLE7KEYZ2B".replace("EXAMPLE", "WOPDKCN"));
        for after in [
            payload("two", 202, &format!("the key is {secret}")),
            payload(&secret, 202, "please go on"),
            payload("two", 202, &format!("password: {secret}")),
        ] {
            assert!(!redactor.redact(&after).found.is_empty());
            assert!(!redactor.is_clean_beside(&after, &earlier));
        }
    }

    #[test]
    fn a_keyword_at_the_end_of_what_repeats_counts_for_what_is_new_behind_it() {
        let redactor = redactor();
        let before = format!(r#"{{"text":"{} PASSWORD=","x":1}}"#, "words ".repeat(10_000));
        assert!(redactor.redact(before.as_bytes()).found.is_empty());
        let earlier = CleanPayload::new(before.as_bytes());
        let after = before.replace("PASSWORD=", "PASSWORD=hT7kq9LmZx2w");
        assert!(!redactor.is_clean_beside(after.as_bytes(), &earlier));
    }
}
