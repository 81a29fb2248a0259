//! `hookbus dead`: lists, shows, retries and drops dead letters, the events that failed every attempt of an
//! observer. Lists and drops the messages from NATS that an observer refused, too.

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use hookbus::log::Received;
use hookbus::view::EventView;
use hookbus_subscribers::{
    DeadLetter, DeadLetterStore, RefusedMessage, StoredDeadLetter, retry_dead_letter,
};
use serde_json::{Value, json};

use crate::args::nats_settings;
use crate::cli::Exit;
use crate::observe::assignment;
use crate::output::{
    self, Paint, Progress, count, local_time, pad, pad_left, sanitize, sanitize_lines, shorten,
};
use crate::settings::{Format, Settings};

const CANNOT_LIST: &str = "cannot list the dead letters";

/// `hookbus dead …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List dead letters, the oldest first, and messages from NATS that were refused. Exits 1 if there are any.
    List {
        /// Only those of this observer.
        observer: Option<String>,
    },
    /// Show one event in full, and why it failed.
    Show {
        /// The name of the observer.
        observer: String,
        /// The seq of the event, or a unique prefix of its id.
        event: String,
    },
    /// Deliver again now; what succeeds is removed from the list.
    Retry(Choice),
    /// Remove from the list without delivering.
    Drop(Choice),
}

/// Which dead letters.
#[derive(Debug, Args)]
pub(crate) struct Choice {
    /// The name of the observer.
    observer: String,
    /// The seq of the event, or a unique prefix of its id.
    #[arg(required_unless_present = "all")]
    event: Option<String>,
    /// All dead letters of this observer.
    #[arg(long, conflicts_with = "event")]
    all: bool,
}

pub(crate) fn run(verb: &Verb, format: Format, settings: &Settings) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match verb {
            Verb::List { observer } => list(observer.as_deref(), format, settings).await,
            Verb::Show { observer, event } => show(observer, event, format, settings).await,
            Verb::Retry(choice) => Box::pin(retry(choice, format, settings)).await,
            Verb::Drop(choice) => drop_letters(choice, format, settings).await,
        }
    })
}

/// The dead letters in this home and on the configured NATS server.
fn store(settings: &Settings) -> DeadLetterStore {
    DeadLetterStore::new(&settings.home, nats_settings(None, settings))
}

async fn list(observer: Option<&str>, format: Format, settings: &Settings) -> Result<Exit> {
    let store = store(settings);
    let all = store.list(observer).await.context(CANNOT_LIST)?;
    let refused = store.refused(observer);
    if all.is_empty() && refused.is_empty() && format == Format::Text {
        output::line("no dead letters")?;
    }
    for stored in &all {
        output::line(match format {
            Format::Json => to_json(&stored.letter).to_string(),
            Format::Text => describe(&stored.letter, Paint(settings.colour)),
        })?;
    }
    if !all.is_empty() && format == Format::Text {
        output::to_stderr("next: `hookbus dead show|retry|drop <observer> <seq>`");
    }
    for (observer, message) in &refused {
        output::line(match format {
            Format::Json => refused_to_json(observer, message).to_string(),
            Format::Text => describe_refused(observer, message, Paint(settings.colour)),
        })?;
    }
    if !refused.is_empty() && format == Format::Text {
        output::to_stderr(
            "refused messages were not delivered: they are not what a bus publishes; find out who may \
             publish to the stream, then `hookbus dead drop <observer> --all`",
        );
    }
    Ok(if all.is_empty() && refused.is_empty() { Exit::Success } else { Exit::Failure })
}

async fn show(name: &str, event: &str, format: Format, settings: &Settings) -> Result<Exit> {
    let all = store(settings).list(Some(name)).await.context(CANNOT_LIST)?;
    let letter = &find(&all, event)?.letter;
    match format {
        Format::Json => output::line(to_json(letter).to_string())?,
        Format::Text => {
            output::line(describe(letter, Paint(settings.colour)))?;
            let event: Value = serde_json::from_slice(&letter.envelope)?;
            output::whole_line(sanitize_lines(&serde_json::to_string_pretty(&event)?))?;
        }
    }
    Ok(Exit::Success)
}

async fn retry(choice: &Choice, format: Format, settings: &Settings) -> Result<Exit> {
    let assignment = assignment(&choice.observer, None, None, settings)?;
    let (store, nats) = (store(settings), nats_settings(None, settings));
    let all = chosen(choice, store.list(Some(&choice.observer)).await.context(CANNOT_LIST)?)?;
    let mut progress = Progress::new(all.len() as u64, "events");
    let mut failed = Vec::new();
    for (index, stored) in all.iter().enumerate() {
        match retry_dead_letter(&assignment, nats.as_ref(), &stored.letter).await {
            Ok(()) => store.delete(stored).await?,
            Err(error) => {
                store.record_failure(stored, &error).await?;
                failed.push((&stored.letter, error.to_string()));
            }
        }
        progress.update(index as u64 + 1);
    }
    drop(progress);
    let delivered = all.len() - failed.len();
    match format {
        Format::Json => {
            let failed: Vec<Value> = failed
                .iter()
                .map(|(letter, error)| json!({"event": to_json(letter), "error": error}))
                .collect();
            output::line(json!({"delivered": delivered, "failed": failed}).to_string())?;
        }
        Format::Text => {
            output::line(format!("{} delivered", count(delivered, "event")))?;
            for (letter, error) in &failed {
                let line = describe(letter, Paint(settings.colour));
                output::line(format!("{line}\n        failed again: {}", shorten(error, 200)))?;
            }
        }
    }
    Ok(if failed.is_empty() { Exit::Success } else { Exit::Failure })
}

async fn drop_letters(choice: &Choice, format: Format, settings: &Settings) -> Result<Exit> {
    let store = store(settings);
    let all = chosen(choice, store.list(Some(&choice.observer)).await.context(CANNOT_LIST)?)?;
    for stored in &all {
        store.delete(stored).await?;
    }
    let refused = if choice.all { store.refused(Some(&choice.observer)).len() } else { 0 };
    if refused > 0 {
        store.delete_refused(&choice.observer)?;
    }
    output::line(match format {
        Format::Json => json!({"dropped": all.len(), "refused": refused}).to_string(),
        Format::Text => {
            let dropped = count(all.len(), "dead letter");
            let refused = match refused {
                0 => String::new(),
                refused => format!("; {} forgotten", count(refused, "refused message")),
            };
            format!("{dropped} dropped; the log of the bus still has the event{refused}")
        }
    })?;
    Ok(Exit::Success)
}

fn chosen(choice: &Choice, all: Vec<StoredDeadLetter>) -> Result<Vec<StoredDeadLetter>> {
    match &choice.event {
        Some(event) => Ok(vec![find(&all, event)?.clone()]),
        None => Ok(all),
    }
}

/// The one dead letter whose event has this seq or id.
fn find<'a>(all: &'a [StoredDeadLetter], event: &str) -> Result<&'a StoredDeadLetter> {
    let matches = |stored: &&StoredDeadLetter| {
        stored.letter.event().is_ok_and(|Received { row, .. }| {
            row.seq.to_string() == event || row.id.to_string().starts_with(event)
        })
    };
    let found: Vec<&StoredDeadLetter> = all.iter().filter(matches).collect();
    match found.as_slice() {
        [only] => Ok(only),
        [] => bail!("no dead letter has the seq or id `{event}`; `hookbus dead list` shows them"),
        [..] => bail!("`{event}` matches {} dead letters; use more of the id", found.len()),
    }
}

fn to_json(letter: &DeadLetter) -> Value {
    json!({
        "observer": letter.observer,
        "set_aside": letter.at.to_string(),
        "tries": letter.tries,
        "error": letter.error,
        "event": serde_json::from_slice::<Value>(&letter.envelope).unwrap_or_default(),
    })
}

fn refused_to_json(observer: &str, message: &RefusedMessage) -> Value {
    json!({
        "observer": observer,
        "refused": message.at.to_string(),
        "message": message.sequence,
        "subject": message.subject,
        "error": message.reason,
        "body": message.body,
    })
}

fn describe_refused(observer: &str, message: &RefusedMessage, paint: Paint) -> String {
    format!(
        "{} {}  {}  {}  {}",
        pad(&paint.bold(&sanitize(observer)), 20),
        pad_left("-", 6),
        paint.dim(&local_time(message.at).format("%m-%d %H:%M:%S").to_string()),
        shorten(&format!("message {} on {}", message.sequence, message.subject), 100),
        paint.bad(&format!("refused: {}", shorten(&message.reason, 200))),
    )
}

fn describe(letter: &DeadLetter, paint: Paint) -> String {
    let (seq, what) = match letter.event() {
        Ok(Received { row, .. }) => {
            let event = EventView::new(&row);
            let tool = row.tool.as_deref().map_or_else(String::new, |tool| format!("{tool}  "));
            let gist = format!("{tool}{}", event.subject());
            (row.seq.to_string(), format!("{} {}", shorten(&row.name, 40), shorten(&gist, 40)))
        }
        Err(error) => ("?".to_owned(), shorten(&error.to_string(), 100)),
    };
    let tries = match letter.tries {
        1 => "1 try".to_owned(),
        tries => format!("{tries} tries"),
    };
    format!(
        "{} {}  {}  {what}  {}",
        pad(&paint.bold(&sanitize(&letter.observer)), 20),
        pad_left(&seq, 6),
        paint.dim(&local_time(letter.at).format("%m-%d %H:%M:%S").to_string()),
        paint.bad(&format!("{}: {}", tries, shorten(&letter.error, 100))),
    )
}
