//! The six kinds of delivery behind one type.

use std::ffi::OsString;
use std::sync::Arc;

use hookbus::config::Hook;
use hookbus::event::Time;

use super::analytics::AnalyticsWriter;
use super::archive::ArchiveWriter;
use super::command;
use super::home_path::expand_home;
use super::input::DeliveryContext;
use super::long_lived::LongLivedProgram;
use super::plugins::{self, PluginTargets};
use super::webhook::WebhookSender;
use crate::error::DeliveryError;
use crate::observer::{Observer, ObserverAction};
use crate::position::ObserverPosition;
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
    Analytics(AnalyticsWriter),
    Plugins(PluginTargets),
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
        let target = match observer.action() {
            ObserverAction::Command => Target::Command,
            ObserverAction::LongLived => Target::LongLived(Box::default()),
            ObserverAction::Webhook(webhook) => {
                Target::Webhook(WebhookSender::new(webhook, observer.settings().timeout))
            }
            ObserverAction::Archive(folder) => {
                Target::Archive(ArchiveWriter::new(&expand_home(folder, &env)))
            }
            ObserverAction::Analytics(file) => {
                Target::Analytics(AnalyticsWriter::new(&expand_home(file, &env)))
            }
            ObserverAction::Plugins => Target::Plugins(PluginTargets::default()),
        };
        Self { observer, env, target, replayed: false }
    }

    /// Marks events and environment as a replay.
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
        let context = DeliveryContext {
            bus: event.bus,
            env: Arc::clone(&self.env),
            attempt: attempt.number,
            replayed: self.replayed,
        };
        match &mut self.target {
            Target::Command => Ok(command::run(observer, hook, row, &context).await?),
            Target::LongLived(program) => Ok(program.send(observer, row, &context).await?),
            Target::Webhook(sender) => Ok(sender.post(event, &context, attempt).await?),
            Target::Archive(archive) => {
                Ok(archive.append(std::slice::from_ref(event), attempt.now)?)
            }
            // An event of a replay happened once.
            Target::Analytics(_) if self.replayed => Ok(()),
            Target::Analytics(database) => {
                Ok(database.add(std::slice::from_ref(event), attempt.now)?)
            }
            Target::Plugins(plugins) => Ok(plugins.call(observer, hook, row, &context).await?),
        }
    }

    /// Whether the observer has everything that it needs to run; no event is to blame if it has not.
    pub(crate) fn check_ready(&mut self, now: Time) -> Result<(), DeliveryError> {
        self.check_approved()?;
        match &mut self.target {
            Target::Command | Target::LongLived(_) => Ok(()),
            Target::Webhook(sender) => Ok(sender.check_ready(&self.env)?),
            Target::Archive(archive) => Ok(archive.append(&[], now)?),
            Target::Analytics(database) => Ok(database.open(now).map(drop)?),
            Target::Plugins(_) => Ok(plugins::check_ready(&self.observer, &self.env)?),
        }
    }

    /// Whether the user has approved what the observer runs.
    pub(crate) fn check_approved(&self) -> Result<(), DeliveryError> {
        let missing = self.observer.missing_approval(&self.env);
        missing.map_or(Ok(()), |refusal| Err(DeliveryError::NotApproved(refusal.why)))
    }

    /// Whether it takes many events in one transaction and skips those it has: an archive, or analytics.
    pub(crate) const fn takes_batches(&self) -> bool {
        matches!(self.target, Target::Archive(_) | Target::Analytics(_))
    }

    /// The position of a target that keeps its own, in the same transactions as what it makes of the events.
    pub(crate) fn own_position(
        &mut self,
        now: Time,
    ) -> Result<Option<ObserverPosition>, DeliveryError> {
        match &mut self.target {
            Target::Analytics(database) => Ok(Some(database.position(now)?)),
            Target::Command
            | Target::LongLived(_)
            | Target::Webhook(_)
            | Target::Archive(_)
            | Target::Plugins(_) => Ok(None),
        }
    }

    /// Delivers many events at once, all or none; `false` if that failed or it takes them one by one only.
    pub(crate) fn deliver_batch(&mut self, events: &[SourceEvent], now: Time) -> bool {
        match &mut self.target {
            Target::Archive(archive) => archive.append(events, now).is_ok(),
            Target::Analytics(database) => database.add(events, now).is_ok(),
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
