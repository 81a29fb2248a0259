//! What an observer does with an event. One call, one event: it succeeded, or the error says why not.

mod archive;
mod lines;
mod webhook;

use std::ffi::OsString;
use std::sync::Arc;

use hookbus::decide::{Deed, Hook, Observer, Onlookers, Place, run_once};
use hookbus::event::Time;

use crate::source::Arrived;
use archive::Keeper;
use lines::Speaker;
use webhook::Postman;

/// How one observer's events are delivered.
#[derive(Debug)]
pub(crate) struct Delivery {
    observer: Arc<Observer>,
    env: Arc<[(OsString, OsString)]>,
    means: Means,
    /// Whether its events are re-driven, and not happening now.
    replayed: bool,
}

#[derive(Debug)]
enum Means {
    Command,
    Lines(Box<Speaker>),
    Webhook(Postman),
    Archive(Keeper),
    Plugins(Onlookers),
}

/// The how manyth try it is, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Try {
    pub(crate) attempt: u32,
    pub(crate) now: Time,
}

impl Delivery {
    pub(crate) fn new(observer: Arc<Observer>, env: Arc<[(OsString, OsString)]>) -> Self {
        let means = match observer.deed() {
            Deed::Command => Means::Command,
            Deed::LongLived => Means::Lines(Box::default()),
            Deed::Webhook(webhook) => {
                Means::Webhook(Postman::new(webhook, observer.terms().timeout))
            }
            Deed::Archive(folder) => Means::Archive(Keeper::new(folder)),
            Deed::Plugins => Means::Plugins(Onlookers::default()),
        };
        Self { observer, env, means, replayed: false }
    }

    /// The same for events that are re-driven, which it says.
    pub(crate) fn re_driven(mut self) -> Self {
        self.replayed = true;
        let mark = ("HOOKBUS_REPLAY".into(), "1".into());
        self.env = self.env.iter().cloned().chain([mark]).collect();
        self
    }

    /// Delivers one event for the entry that wants it.
    pub(crate) async fn deliver(
        &mut self,
        hook: &Hook,
        arrived: &Arrived,
        this: Try,
    ) -> Result<(), String> {
        let place = Place {
            bus: arrived.bus,
            env: Arc::clone(&self.env),
            attempt: this.attempt,
            replayed: self.replayed,
        };
        match &mut self.means {
            Means::Command => run_once(&self.observer, hook, &arrived.row, &place).await,
            Means::Lines(speaker) => speaker.tell(&self.observer, &arrived.row, &place).await,
            Means::Webhook(postman) => postman.post(arrived, &place, this).await,
            Means::Archive(keeper) => keeper.keep(std::slice::from_ref(arrived), this.now),
            Means::Plugins(onlookers) => {
                onlookers.tell(&self.observer, hook, &arrived.row, &place).await
            }
        }
    }

    /// Whether it can work at all; the error says what to set right. That is not an event's fault.
    pub(crate) fn is_ready(&mut self, now: Time) -> Result<(), String> {
        if let Some(why) = self.waits_for_consent() {
            return Err(why);
        }
        match &mut self.means {
            Means::Command | Means::Lines(_) => Ok(()),
            Means::Webhook(postman) => postman.is_ready(&self.env),
            Means::Archive(keeper) => keeper.keep(&[], now),
            Means::Plugins(onlookers) => onlookers.are_ready(&self.observer, &self.env),
        }
    }

    /// Why it may not run before somebody has agreed to it, if so.
    pub(crate) fn waits_for_consent(&self) -> Option<String> {
        self.observer.waits_for_consent(&self.env)
    }

    /// Whether many events at once are cheaper for it.
    pub(crate) const fn takes_many(&self) -> bool {
        matches!(self.means, Means::Archive(_))
    }

    /// Whether it can tell by itself what it has already.
    pub(crate) const fn knows_what_it_has(&self) -> bool {
        matches!(self.means, Means::Archive(_))
    }

    /// Lets whatever stays up come to an end.
    pub(crate) async fn close(&mut self) {
        if let Means::Lines(speaker) = &mut self.means {
            speaker.close().await;
        }
    }

    /// Delivers many at once, where that is cheaper; none of them counts unless all do.
    pub(crate) fn deliver_all(&mut self, arrived: &[Arrived], now: Time) -> bool {
        match &mut self.means {
            Means::Archive(keeper) => keeper.keep(arrived, now).is_ok(),
            Means::Command | Means::Lines(_) | Means::Webhook(_) | Means::Plugins(_) => false,
        }
    }
}
