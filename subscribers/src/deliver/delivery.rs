//! The five kinds of delivery behind one type.

use std::ffi::OsString;
use std::sync::Arc;

use hookbus::decide::{Deed, Hook, Observer, Onlookers, Place, run_once};
use hookbus::event::Time;

use super::archive::ArchiveWriter;
use super::long_lived::LongLivedProgram;
use super::webhook::WebhookSender;
use crate::error::DeliveryError;
use crate::source::SourceEvent;

/// How the events of one observer are delivered.
#[derive(Debug)]
pub(crate) struct Delivery {
    observer: Arc<Observer>,
    env: Arc<[(OsString, OsString)]>,
    target: Target,
    /// Whether the events are recorded ones, delivered again by a replay.
    replayed: bool,
}

#[derive(Debug)]
enum Target {
    Command,
    LongLived(Box<LongLivedProgram>),
    Webhook(WebhookSender),
    Archive(ArchiveWriter),
    Plugins(Onlookers),
}

/// One attempt to deliver an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    /// Counted from 1.
    pub(crate) number: u32,
    pub(crate) now: Time,
}

impl Delivery {
    pub(crate) fn new(observer: Arc<Observer>, env: Arc<[(OsString, OsString)]>) -> Self {
        let target = match observer.deed() {
            Deed::Command => Target::Command,
            Deed::LongLived => Target::LongLived(Box::default()),
            Deed::Webhook(webhook) => {
                Target::Webhook(WebhookSender::new(webhook, observer.terms().timeout))
            }
            Deed::Archive(folder) => Target::Archive(ArchiveWriter::new(folder)),
            Deed::Plugins => Target::Plugins(Onlookers::default()),
        };
        Self { observer, env, target, replayed: false }
    }

    /// The same for a replay; events and environment say so.
    pub(crate) fn for_replay(mut self) -> Self {
        self.replayed = true;
        let variable = ("HOOKBUS_REPLAY".into(), "1".into());
        self.env = self.env.iter().cloned().chain([variable]).collect();
        self
    }

    /// Delivers one event for the entry that matches it.
    pub(crate) async fn deliver(
        &mut self,
        hook: &Hook,
        event: &SourceEvent,
        attempt: Attempt,
    ) -> Result<(), DeliveryError> {
        let (observer, row) = (&self.observer, &event.row);
        let place = Place {
            bus: event.bus,
            env: Arc::clone(&self.env),
            attempt: attempt.number,
            replayed: self.replayed,
        };
        match &mut self.target {
            Target::Command => {
                run_once(observer, hook, row, &place).await.map_err(DeliveryError::Command)
            }
            Target::LongLived(program) => Ok(program.send(observer, row, &place).await?),
            Target::Webhook(sender) => Ok(sender.post(event, &place, attempt).await?),
            Target::Archive(archive) => {
                Ok(archive.append(std::slice::from_ref(event), attempt.now)?)
            }
            Target::Plugins(plugins) => {
                let called = plugins.tell(observer, hook, row, &place).await;
                called.map_err(DeliveryError::Plugins)
            }
        }
    }

    /// Whether the observer has everything that it needs to run; no event is to blame if it has not.
    pub(crate) fn check_ready(&mut self, now: Time) -> Result<(), DeliveryError> {
        self.check_approved()?;
        match &mut self.target {
            Target::Command | Target::LongLived(_) => Ok(()),
            Target::Webhook(sender) => Ok(sender.check_ready(&self.env)?),
            Target::Archive(archive) => Ok(archive.append(&[], now)?),
            Target::Plugins(plugins) => {
                plugins.are_ready(&self.observer, &self.env).map_err(DeliveryError::Plugins)
            }
        }
    }

    /// Whether the user has approved what the observer runs.
    pub(crate) fn check_approved(&self) -> Result<(), DeliveryError> {
        let missing = self.observer.waits_for_consent(&self.env);
        missing.map_or(Ok(()), |why| Err(DeliveryError::NotApproved(why)))
    }

    /// Whether it is an archive, which takes many events in one transaction and skips those it has.
    pub(crate) const fn is_archive(&self) -> bool {
        matches!(self.target, Target::Archive(_))
    }

    /// Delivers many events to an archive, all or none; `false` if that failed or it is no archive.
    pub(crate) fn deliver_batch(&mut self, events: &[SourceEvent], now: Time) -> bool {
        match &mut self.target {
            Target::Archive(archive) => archive.append(events, now).is_ok(),
            Target::Command | Target::LongLived(_) | Target::Webhook(_) | Target::Plugins(_) => {
                false
            }
        }
    }

    /// Ends a long-lived program.
    pub(crate) async fn close(&mut self) {
        if let Target::LongLived(program) = &mut self.target {
            program.close().await;
        }
    }
}
