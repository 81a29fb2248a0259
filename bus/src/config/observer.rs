//! The settings of observers: the hooks with `mode: observe`. Entries of one name that do the same thing
//! are one observer. The crate in `subscribers/` runs them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::hook::{Action, Hook};
use super::problem::Problem;
use crate::event::encode_token;

/// How an observer is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserverSettings {
    /// Its command stays up and reads one event per line.
    pub long_lived: bool,
    /// How often an event is tried before it becomes a dead letter.
    pub tries: u32,
    /// The delay before the second try; it doubles with each further one.
    pub wait: Duration,
    /// How long one try may take.
    pub timeout: Duration,
    /// Whether several workers share its events, session by session.
    pub shared: bool,
    /// Where it reads events from, if the file says so.
    pub source: Option<ObserverSource>,
    /// Where it starts when it is new, if the file says so.
    pub from: Option<StartAt>,
}

impl Default for ObserverSettings {
    fn default() -> Self {
        Self {
            long_lived: false,
            tries: 5,
            wait: Duration::from_millis(500),
            timeout: Duration::from_mins(1),
            shared: false,
            source: None,
            from: None,
        }
    }
}

/// Where an observer reads events from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObserverSource {
    /// The log of this machine's bus.
    Log,
    /// The stream of all buses.
    Nats,
}

/// Where a new observer starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    /// With the first event that is recorded after it was configured.
    Now,
    /// With the first event of the log or stream.
    First,
}

/// An HTTP endpoint that events are posted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its address.
    pub url: String,
    /// Where the secret that signs requests is.
    pub secret: Option<SecretSource>,
    /// More headers.
    pub headers: Vec<(String, String)>,
    /// Headers whose value is in an environment variable.
    pub headers_env: Vec<(String, String)>,
}

/// Where a secret is. The hooks file itself is recorded in the log and must hold none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In this environment variable.
    Env(String),
    /// In this file.
    File(PathBuf),
}

/// Turns every observer into a broken hook that has the name of another one and does something else: positions
/// are stored by name.
pub(super) fn break_taken_names(hooks: &mut [Hook]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for index in 0..hooks.len() {
        let (before, rest) = hooks.split_at_mut(index);
        let Some(hook) = rest.first_mut().filter(|hook| hook.is_observer()) else { continue };
        let is_taken = before.iter().any(|other| {
            other.is_observer() && other.name == hook.name && !does_the_same(other, hook)
        });
        if is_taken {
            let why = format!(
                "another observer is called `{}` and does something else; give this one a `name` of its own",
                hook.name
            );
            let problem = Problem::broken_entry(hook.line, why.clone());
            problems.push(problem.about(&hook.name, hook.place.clone()));
            hook.action = Action::Broken(why);
        }
    }
    problems
}

fn does_the_same(one: &Hook, other: &Hook) -> bool {
    let same = match (&one.action, &other.action) {
        (Action::Command(one), Action::Command(other)) => {
            (&one.text, &one.env, &one.pass_env) == (&other.text, &other.env, &other.pass_env)
        }
        (Action::Webhook(one), Action::Webhook(other)) => one == other,
        (Action::Archive(one), Action::Archive(other))
        | (Action::Analytics(one), Action::Analytics(other)) => one == other,
        (Action::Python(one), Action::Python(other)) => one == other,
        _ => false,
    };
    same && one.observer == other.observer
}

/// The directory of an observer's position and dead letters, in the home it works for.
pub fn observer_folder(home: &Path, name: &str) -> PathBuf {
    home.join("observers").join(encode_token(name))
}
