//! Drives all cases of a source through a judge: parts side by side, their results in order.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use hookbus::event::{Agent, Kind};
use hookbus::log::{Case, Found, ReadError};

use crate::compare::Class;
use crate::judge::{Commands, Detail, Judge, Judged};
use crate::policy::{Policy, Recorded};
use crate::sessions::Mark;
use crate::source::{Reading, Source};
use crate::tally::Tally;

/// What to drive, through what, and how.
#[derive(Clone, Copy)]
pub struct Drive<'a> {
    /// Where the cases come from.
    pub source: &'a dyn Source,
    /// Which hooks are asked.
    pub policy: &'a Policy,
    /// The hooks that were in force, where that is known.
    pub recorded: Option<&'a Recorded>,
    /// What happens to those that run outside.
    pub commands: Commands<'a>,
    /// How many parts are worked on at once; one where plugins are asked, which may remember.
    pub workers: usize,
    /// How much is handed on.
    pub detail: Detail,
}

impl std::fmt::Debug for Drive<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive").field("workers", &self.workers).finish_non_exhaustive()
    }
}

/// What became of one part.
#[derive(Debug, Default)]
pub struct Part {
    /// The sum of it.
    pub tally: Tally,
    /// The differences, in recorded order; every event if that was asked for.
    pub judged: Vec<Judged>,
    /// What is remembered of each event for [`crate::SessionWatch`].
    pub marks: Vec<Mark>,
}

/// Drives everything; `each` gets the parts in recorded order.
pub fn drive<E: From<ReadError> + From<io::Error> + Send>(
    drive: &Drive<'_>,
    each: impl FnMut(Part) -> Result<(), E>,
) -> Result<(), E> {
    let start = || {
        let reading = drive.source.open().map_err(E::from)?;
        let judge = Judge::new(drive.policy, drive.recorded, drive.commands, drive.detail)?;
        Ok((reading, judge))
    };
    let remembers =
        matches!(drive.commands, Commands::Run { .. }) && drive.policy.has_plugins(drive.recorded);
    in_order(
        drive.source.parts(),
        if remembers { 1 } else { drive.workers },
        start,
        |(reading, judge), index| work(drive, reading.as_ref(), judge, index),
        each,
    )
}

fn work(drive: &Drive<'_>, reading: &dyn Reading, judge: &Judge<'_>, index: u64) -> Part {
    let mut part = Part::default();
    let read = reading.part(index, &mut |found| match found {
        Found::Case(case) => take(case, drive.detail, reading, judge, &mut part),
        Found::Other(case) => judge.let_hear(case),
        Found::Damaged { seq, why } => {
            part.tally.remark(format!("row {seq} is damaged ({why}): left out"));
        }
    });
    if let Err(error) = read {
        let first = index * drive.source.rows_per_part();
        part.tally.remark(format!("the rows from about {first} on: {error}; left out"));
    }
    part
}

fn take(case: Case, detail: Detail, reading: &dyn Reading, judge: &Judge<'_>, part: &mut Part) {
    if Kind::parse(&case.kind).is_none() {
        let (seq, kind) = (case.seq, &case.kind);
        if case.agent == "hookbus" {
            part.tally.remark(format!(
                "row {seq} is of a kind `{kind}` that this hookbus does not know: left out"
            ));
            return;
        }
        part.tally.remark(format!("row {seq} is of a kind `{kind}` that this hookbus does not know: its payload is read again"));
    }
    part.marks.push(Mark::of(&case));
    part.tally.in_project += u64::from(judge.asks_candidate(&case));
    if case.agent.parse().is_ok_and(|agent: Agent| !agent.is_answered()) {
        part.tally.add_only_recorded(&case.agent);
    }
    let Some(judged) = judge.judge(case, reading) else { return part.tally.add_quiet() };
    part.tally.add(&judged);
    let different = judged.comparison.class != Class::Unchanged || judged.unsteady.is_some();
    if different || detail > Detail::Differences {
        part.judged.push(*judged);
    }
}

/// How far the results have been handed on. Nobody works much further ahead: what is made too early
/// has to be kept.
struct Due {
    part: Mutex<u64>,
    moved: Condvar,
}

impl Due {
    fn wait_for(&self, index: u64, ahead: u64) {
        let due = self.part.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.moved.wait_while(due, |due| index >= due.saturating_add(ahead)));
    }

    fn reach(&self, part: u64) {
        *self.part.lock().unwrap_or_else(PoisonError::into_inner) = part;
        self.moved.notify_all();
    }
}

/// Works on `parts` with several workers and hands on what they make of them in order.
pub(crate) fn in_order<S, T: Send, E>(
    parts: u64,
    workers: usize,
    start: impl Fn() -> Result<S, E> + Sync,
    work: impl Fn(&mut S, u64) -> T + Sync,
    each: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E>
where
    E: Send,
{
    let next = AtomicU64::new(0);
    let due = Due { part: Mutex::new(0), moved: Condvar::new() };
    let over = AtomicBool::new(false);
    let workers = workers.clamp(1, 64);
    thread::scope(|scope| {
        let (sender, results) = sync_channel(workers);
        for _ in 0..workers {
            let sender = sender.clone();
            let (start, work, next, due, over) = (&start, &work, &next, &due, &over);
            scope.spawn(move || {
                let mut state = match start() {
                    Ok(state) => state,
                    Err(error) => return drop(sender.send(Err(error))),
                };
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    due.wait_for(index, workers as u64 * 2);
                    if index >= parts || over.load(Ordering::Relaxed) {
                        return;
                    }
                    if sender.send(Ok((index, work(&mut state, index)))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let ended = put_in_order(&results, &due, each);
        over.store(true, Ordering::Relaxed);
        // Workers that wait, for their turn or for room, hear that nobody takes their results any more.
        due.reach(u64::MAX);
        drop(results);
        ended
    })
}

fn put_in_order<T, E>(
    results: &Receiver<Result<(u64, T), E>>,
    due: &Due,
    mut each: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let mut early = BTreeMap::new();
    let mut next = 0;
    for result in results {
        let (index, made) = result?;
        early.insert(index, made);
        while let Some(made) = early.remove(&next) {
            each(made)?;
            next += 1;
            due.reach(next);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_in_order_whoever_is_first() {
        let mut seen = Vec::new();
        let slow_first = |(): &mut (), index: u64| {
            thread::sleep(std::time::Duration::from_millis(3 - index % 4));
            index
        };
        let ended = in_order(
            40,
            4,
            || Ok::<_, ()>(()),
            slow_first,
            |index| {
                seen.push(index);
                Ok(())
            },
        );
        assert_eq!((ended, seen), (Ok(()), (0..40).collect()));
    }

    #[test]
    fn nobody_works_far_ahead_of_a_slow_part() {
        let furthest = AtomicU64::new(0);
        let held = AtomicU64::new(0);
        let work = |(): &mut (), index: u64| {
            if index == 0 {
                thread::sleep(std::time::Duration::from_millis(100));
                held.store(furthest.load(Ordering::SeqCst), Ordering::SeqCst);
            }
            furthest.fetch_max(index, Ordering::SeqCst);
        };
        let ended = in_order(1000, 4, || Ok::<_, ()>(()), work, |()| Ok(()));
        assert_eq!((ended, furthest.load(Ordering::SeqCst)), (Ok(()), 999));
        assert!(held.load(Ordering::SeqCst) < 8, "{held:?}");
    }

    #[test]
    fn an_error_ends_it() {
        let ended = in_order(
            1000,
            2,
            || Ok(()),
            |(), index| index,
            |index| {
                if index == 3 { Err("enough") } else { Ok(()) }
            },
        );
        assert_eq!(ended, Err("enough"));
    }
}
