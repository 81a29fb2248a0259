//! Runs jobs on several threads and delivers their results in the order of the jobs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// Most threads.
const MOST_WORKERS: usize = 64;

/// The next result to deliver. Workers do not run far ahead of it, because early results stay in memory.
struct Delivered {
    next: Mutex<u64>,
    advanced: Condvar,
}

impl Delivered {
    /// Waits until job `index` is less than `ahead` jobs away.
    fn wait_for(&self, index: u64, ahead: u64) {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.advanced.wait_while(next, |next| index >= next.saturating_add(ahead)));
    }

    fn advance_to(&self, next: u64) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = next;
        self.advanced.notify_all();
    }
}

/// Runs the jobs `0..jobs`. Every worker thread calls `start` once for its own state and then `work` for
/// each job; `deliver` gets the results in order, on the calling thread. The first error ends everything.
pub(crate) fn run_ordered<S, T: Send, E: Send>(
    jobs: u64,
    workers: usize,
    start: impl Fn() -> Result<S, E> + Sync,
    work: impl Fn(&mut S, u64) -> T + Sync,
    deliver: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let next_job = AtomicU64::new(0);
    let delivered = Delivered { next: Mutex::new(0), advanced: Condvar::new() };
    let stopped = AtomicBool::new(false);
    let workers = workers.clamp(1, MOST_WORKERS);
    thread::scope(|scope| {
        let (sender, results) = sync_channel(workers);
        for _ in 0..workers {
            let sender = sender.clone();
            let (start, work) = (&start, &work);
            let (next_job, delivered, stopped) = (&next_job, &delivered, &stopped);
            scope.spawn(move || {
                let mut state = match start() {
                    Ok(state) => state,
                    Err(error) => return drop(sender.send(Err(error))),
                };
                loop {
                    let index = next_job.fetch_add(1, Ordering::Relaxed);
                    delivered.wait_for(index, workers as u64 * 2);
                    if index >= jobs || stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    if sender.send(Ok((index, work(&mut state, index)))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let result = deliver_in_order(&results, &delivered, deliver);
        stopped.store(true, Ordering::Relaxed);
        // Wakes workers that wait for their turn or for room in the channel.
        delivered.advance_to(u64::MAX);
        drop(results);
        result
    })
}

fn deliver_in_order<T, E>(
    results: &Receiver<Result<(u64, T), E>>,
    delivered: &Delivered,
    mut deliver: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let mut early = BTreeMap::new();
    let mut next = 0;
    for result in results {
        let (index, output) = result?;
        early.insert(index, output);
        while let Some(output) = early.remove(&next) {
            deliver(output)?;
            next += 1;
            delivered.advance_to(next);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn results_are_delivered_in_order_whichever_worker_finishes_first() {
        let mut seen = Vec::new();
        let slow_first = |(): &mut (), index: u64| {
            thread::sleep(Duration::from_millis(3 - index % 4));
            index
        };
        let start = || Ok::<_, ()>(());
        let result = run_ordered(40, 4, start, slow_first, |index| {
            seen.push(index);
            Ok(())
        });
        assert_eq!((result, seen), (Ok(()), (0..40).collect()));
    }

    #[test]
    fn workers_do_not_run_far_ahead_of_a_slow_job() {
        let furthest = AtomicU64::new(0);
        let furthest_meanwhile = AtomicU64::new(0);
        let work = |(): &mut (), index: u64| {
            if index == 0 {
                thread::sleep(Duration::from_millis(100));
                furthest_meanwhile.store(furthest.load(Ordering::SeqCst), Ordering::SeqCst);
            }
            furthest.fetch_max(index, Ordering::SeqCst);
        };
        let result = run_ordered(1000, 4, || Ok::<_, ()>(()), work, |()| Ok(()));
        assert_eq!((result, furthest.load(Ordering::SeqCst)), (Ok(()), 999));
        assert!(furthest_meanwhile.load(Ordering::SeqCst) < 8, "{furthest_meanwhile:?}");
    }

    #[test]
    fn an_error_ends_all_workers() {
        let deliver = |index| if index == 3 { Err("enough") } else { Ok(()) };
        let result = run_ordered(1000, 2, || Ok(()), |(), index| index, deliver);
        assert_eq!(result, Err("enough"));
    }
}
