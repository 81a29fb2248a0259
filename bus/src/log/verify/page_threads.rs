//! Reads pages on several threads, each with its own connection, and hands them out in the order of the chain. Which rows
//! are in a page, and what is said about them, does not depend on the number of threads.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::Scope;

use super::page::{Derive, PAGE, Page, PageRange};
use crate::event::BusId;
use crate::log::{LogPath, LogReader, ReadError};
use crate::sys::thread::spawn_scoped;

/// How many pages per thread are read ahead.
const AHEAD: usize = 4;

/// A page to be read, and where it is sent.
type Task = (BusId, PageRange, SyncSender<Result<Page, ReadError>>);

/// The threads that read pages.
#[derive(Debug)]
pub(super) struct PageThreads {
    tasks: Sender<Task>,
    count: usize,
}

/// The tasks that no thread has taken yet.
#[derive(Debug)]
pub(super) struct TaskQueue(Mutex<Receiver<Task>>);

impl TaskQueue {
    /// An empty queue, and where tasks are put.
    pub(super) fn new() -> (Self, Sender<Task>) {
        let (tasks, queue) = channel();
        (Self(Mutex::new(queue)), tasks)
    }

    fn take(&self) -> Option<Task> {
        self.0.lock().ok()?.recv().ok()
    }
}

impl PageThreads {
    /// Starts up to `count` threads, as many as the system has room for. They end when this value is dropped.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        (queue, tasks): (&'scope TaskQueue, Sender<Task>),
        count: usize,
        log: &'scope LogPath,
        derive: &'scope Derive<'scope>,
    ) -> Self {
        let start = |_: &usize| {
            spawn_scoped(scope, "verify", move || read_pages(queue, log, derive)).is_ok()
        };
        // With one thread there is nothing to be gained: the walk reads the pages itself.
        let count = if count > 1 { (0..count).take_while(start).count() } else { 0 };
        Self { tasks, count }
    }
}

/// Reads pages until there are no more tasks.
fn read_pages(queue: &TaskQueue, log: &LogPath, derive: &Derive<'_>) {
    let mut opened = None;
    while let Some((bus, range, result)) = queue.take() {
        let page = match &opened {
            Some(log) => Page::read(log, bus, range, derive),
            None => LogReader::open(log)
                .map_err(ReadError::from)
                .and_then(|log| Page::read(opened.insert(log), bus, range, derive)),
        };
        // Nothing waits for it if the walk has ended early, because the file is damaged.
        result.send(page).unwrap_or_default();
    }
}

/// The pages of one bus, in order.
#[derive(Debug)]
pub(super) struct Pages<'a> {
    threads: &'a PageThreads,
    log: &'a LogReader,
    bus: BusId,
    /// Where the page after those being read begins; none if that is not known yet, or if there is none.
    next: Option<i64>,
    reading: VecDeque<(PageRange, Receiver<Result<Page, ReadError>>)>,
}

impl<'a> Pages<'a> {
    /// The pages from the place `from` on.
    pub(super) fn new(threads: &'a PageThreads, log: &'a LogReader, bus: BusId, from: i64) -> Self {
        Self { threads, log, bus, next: Some(from), reading: VecDeque::new() }
    }

    /// The next page; none after the last one.
    pub(super) fn next(&mut self, derive: &Derive<'_>) -> Result<Option<Page>, ReadError> {
        if self.threads.count == 0 {
            let Some(from) = self.next else { return Ok(None) };
            let range = PageRange { from, to: None };
            let page = Page::read(self.log, self.bus, range, derive)?;
            self.next = place_after(&page);
            return Ok(Some(page));
        }
        while let Some(from) = self.next.filter(|_| self.reading.len() < self.threads.count * AHEAD)
        {
            let range = PageRange::find(self.log, self.bus, from)?;
            let (result, page) = sync_channel(1);
            // Threads end only after this value.
            if self.threads.tasks.send((self.bus, range, result)).is_err() {
                break;
            }
            self.reading.push_back((range, page));
            self.next = range.to.and_then(|last| last.checked_add(1));
        }
        let Some((range, page)) = self.reading.pop_front() else { return Ok(None) };
        // A thread that has ended without a result has panicked, and its scope passes that on.
        let Ok(page) = page.recv() else { return Ok(None) };
        let page = page?;
        if range.to.is_none() {
            self.next = place_after(&page);
        }
        Ok(Some(page))
    }
}

/// Where the page after a page that was read without knowing its end begins.
fn place_after(page: &Page) -> Option<i64> {
    let (last, _) = page.rows.last().filter(|_| page.rows.len() == PAGE)?;
    last.checked_add(1)
}
