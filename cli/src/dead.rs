//! `hookbus dead`: events that an observer failed on to its last try.

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use hookbus::envelope::Travelled;
use hookbus_subscribers::{DeadLetter, DeadLetters, Kept, retry};
use serde_json::{Value, json};

use crate::cli::Ending;
use crate::log::gist;
use crate::observe::assignment;
use crate::output::{self, Paint, Progress, count, harmless, harmless_lines, local, shorten};
use crate::reading::nats;
use crate::settings::{Format, Settings};

const CANNOT_LOOK: &str = "cannot look for dead letters";

/// `hookbus dead …`.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// What was set aside, the oldest first. Exits 1 if there is anything.
    List {
        /// Of this observer only.
        observer: Option<String>,
    },
    /// One event, whole, and why it was set aside.
    Show {
        /// Whose.
        observer: String,
        /// Its seq, or as much of its id as makes it plain.
        event: String,
    },
    /// Try again, now; what succeeds is gone from the list.
    Retry(Choice),
    /// Forget about them.
    Drop(Choice),
}

/// Which dead letters.
#[derive(Debug, Args)]
pub(crate) struct Choice {
    /// Whose.
    observer: String,
    /// Its seq, or as much of its id as makes it plain.
    #[arg(required_unless_present = "all")]
    event: Option<String>,
    /// All of this observer.
    #[arg(long, conflicts_with = "event")]
    all: bool,
}

pub(crate) fn run(verb: &Verb, format: Format, settings: &Settings) -> Result<Ending> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match verb {
            Verb::List { observer } => list(observer.as_deref(), format, settings).await,
            Verb::Show { observer, event } => show(observer, event, format, settings).await,
            Verb::Retry(choice) => Box::pin(retry_all(choice, format, settings)).await,
            Verb::Drop(choice) => drop_all(choice, format, settings).await,
        }
    })
}

/// Where dead letters of this home may be.
fn letters(settings: &Settings) -> DeadLetters {
    DeadLetters::of(&settings.home, nats(None, settings))
}

async fn list(observer: Option<&str>, format: Format, settings: &Settings) -> Result<Ending> {
    let all = letters(settings).all(observer).await.context(CANNOT_LOOK)?;
    if all.is_empty() && format == Format::Text {
        output::line("nothing was set aside")?;
    }
    for kept in &all {
        output::line(match format {
            Format::Json => to_json(&kept.letter).to_string(),
            Format::Text => describe(&kept.letter, Paint(settings.colour)),
        })?;
    }
    if !all.is_empty() && format == Format::Text {
        output::aside("`hookbus dead show|retry|drop <observer> <seq>` does something about one");
    }
    Ok(if all.is_empty() { Ending::Yes } else { Ending::No })
}

async fn show(name: &str, event: &str, format: Format, settings: &Settings) -> Result<Ending> {
    let all = letters(settings).all(Some(name)).await.context(CANNOT_LOOK)?;
    let letter = &the_one(&all, event)?.letter;
    match format {
        Format::Json => output::line(to_json(letter).to_string())?,
        Format::Text => {
            output::line(describe(letter, Paint(settings.colour)))?;
            let event: Value = serde_json::from_slice(&letter.envelope)?;
            output::line(harmless_lines(&serde_json::to_string_pretty(&event)?))?;
        }
    }
    Ok(Ending::Yes)
}

async fn retry_all(choice: &Choice, format: Format, settings: &Settings) -> Result<Ending> {
    let assignment = assignment(&choice.observer, None, None, settings)?;
    let place = letters(settings);
    let all = chosen(choice, place.all(Some(&choice.observer)).await.context(CANNOT_LOOK)?)?;
    let mut progress = Progress::of(all.len() as u64, "events");
    let mut failed = Vec::new();
    for (index, kept) in all.iter().enumerate() {
        match retry(&assignment, &kept.letter).await {
            Ok(()) => place.forget(kept).await?,
            Err(error) => {
                place.failed_again(kept, &error).await?;
                failed.push((&kept.letter, error));
            }
        }
        progress.at(index as u64 + 1);
    }
    drop(progress);
    let done = all.len() - failed.len();
    match format {
        Format::Json => {
            let failed: Vec<Value> = failed
                .iter()
                .map(|(letter, error)| json!({"event": to_json(letter), "error": error}))
                .collect();
            output::line(json!({"delivered": done, "failed": failed}).to_string())?;
        }
        Format::Text => {
            output::line(format!("{} delivered", count(done, "event")))?;
            for (letter, error) in &failed {
                let line = describe(letter, Paint(settings.colour));
                output::line(format!("{line}\n        failed again: {}", shorten(error, 200)))?;
            }
        }
    }
    Ok(if failed.is_empty() { Ending::Yes } else { Ending::No })
}

async fn drop_all(choice: &Choice, format: Format, settings: &Settings) -> Result<Ending> {
    let place = letters(settings);
    let all = chosen(choice, place.all(Some(&choice.observer)).await.context(CANNOT_LOOK)?)?;
    for kept in &all {
        place.forget(kept).await?;
    }
    output::line(match format {
        Format::Json => json!({"dropped": all.len()}).to_string(),
        Format::Text => {
            format!("{} dropped; the log of its bus still has it", count(all.len(), "event"))
        }
    })?;
    Ok(Ending::Yes)
}

fn chosen(choice: &Choice, all: Vec<Kept>) -> Result<Vec<Kept>> {
    match &choice.event {
        Some(event) => Ok(vec![the_one(&all, event)?.clone()]),
        None => Ok(all),
    }
}

fn the_one<'a>(all: &'a [Kept], event: &str) -> Result<&'a Kept> {
    let is_it = |kept: &&Kept| {
        kept.letter.event().is_ok_and(|Travelled { row, .. }| {
            row.seq.to_string() == event || row.id.to_string().starts_with(event)
        })
    };
    let found: Vec<&Kept> = all.iter().filter(is_it).collect();
    match found.as_slice() {
        [only] => Ok(only),
        [] => bail!("no dead letter is called `{event}`; `hookbus dead list` shows them"),
        [..] => bail!("`{event}` fits {} dead letters; write more of the id", found.len()),
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

fn describe(letter: &DeadLetter, paint: Paint) -> String {
    let (seq, what) = match letter.event() {
        Ok(Travelled { row, .. }) => {
            let gist = gist(&row, &row.payload_json());
            (row.seq.to_string(), format!("{} {}", shorten(&row.name, 40), shorten(&gist, 40)))
        }
        Err(error) => ("?".to_owned(), shorten(&error.to_string(), 100)),
    };
    let tries = match letter.tries {
        1 => "1 try".to_owned(),
        tries => format!("{tries} tries"),
    };
    format!(
        "{:<20} {seq:>6}  {}  {what}  {}",
        paint.bold(&harmless(&letter.observer)),
        paint.dim(&local(letter.at).format("%m-%d %H:%M:%S").to_string()),
        paint.bad(&format!("{}: {}", tries, shorten(&letter.error, 100))),
    )
}
