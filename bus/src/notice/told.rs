//! Which problems the user was told of in which session. The log is the record of it; this is a bounded cache, so
//! that a daemon reads the log once per session with a problem. A client without a daemon reads it each time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::log::{LogPath, LogReader};

/// How many sessions are remembered. A forgotten one is read from the log again.
const MOST_SESSIONS: usize = 256;

/// What the user was told, by session.
#[derive(Debug, Default)]
pub struct Told(Mutex<Sessions>);

#[derive(Debug, Default)]
struct Sessions {
    told: HashMap<String, HashSet<String>>,
    /// The sessions in `told`, oldest first.
    order: VecDeque<String>,
}

impl Told {
    /// Which of these problems are new in this session. From now on they count as told.
    pub(super) fn take_new(
        &self,
        log: &LogPath,
        session: &str,
        problems: impl IntoIterator<Item = String>,
    ) -> HashSet<String> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told = sessions.of(session, || {
            // A log that cannot be read says nothing; better told twice than never.
            let told = LogReader::open(log).ok().and_then(|log| log.told(session).ok());
            told.unwrap_or_default().into_iter().collect()
        });
        problems.into_iter().filter(|problem| told.insert(problem.clone())).collect()
    }
}

impl Sessions {
    fn of(
        &mut self,
        session: &str,
        in_log: impl FnOnce() -> HashSet<String>,
    ) -> &mut HashSet<String> {
        if !self.told.contains_key(session) {
            self.order.push_back(session.to_owned());
            if self.order.len() > MOST_SESSIONS
                && let Some(oldest) = self.order.pop_front()
            {
                self.told.remove(&oldest);
            }
        }
        self.told.entry(session.to_owned()).or_insert_with(in_log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_new_once_per_session_and_the_memory_is_bounded() {
        let home = tempfile::tempdir().expect("a home");
        let (log, told) = (LogPath::in_home(home.path()), Told::default());
        let is_new = |session: &str| !told.take_new(&log, session, ["a".to_owned()]).is_empty();
        assert!(is_new("one") && !is_new("one") && is_new("two"));
        for number in 0..2 * MOST_SESSIONS {
            assert!(is_new(&format!("session {number}")));
        }
        let sessions = told.0.lock().expect("the sessions");
        assert_eq!((sessions.told.len(), sessions.order.len()), (MOST_SESSIONS, MOST_SESSIONS));
    }
}
