//! `hookbus dead`: events that an observer failed on to its last try.

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use hookbus::decide::HooksSource;
use hookbus::envelope::Travelled;
use hookbus::log::LogPath;
use hookbus_subscribers::{Assignment, DeadLetter, retry};
use serde_json::{Value, json};

use crate::cli::Ending;
use crate::log::gist;
use crate::observe::assignment;
use crate::output::{self, Paint, Progress, count, local, shorten};
use crate::settings::{Format, Settings};

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
            Verb::Retry(choice) => retry_all(choice, format, settings).await,
            Verb::Drop(choice) => drop_all(choice, format, settings).await,
        }
    })
}

async fn list(observer: Option<&str>, format: Format, settings: &Settings) -> Result<Ending> {
    let names = match observer {
        Some(name) => vec![name.to_owned()],
        None => {
            let hooks = HooksSource::new(&settings.home, LogPath::in_home(&settings.home));
            let observers = hooks.in_force().hooks.observers();
            observers.iter().map(|observer| observer.name().to_owned()).collect()
        }
    };
    let mut letters = Vec::new();
    for name in &names {
        letters.extend(letters_of(&assignment(name, None, None, settings)?).await?);
    }
    if letters.is_empty() && format == Format::Text {
        output::line("nothing was set aside")?;
    }
    for letter in &letters {
        output::line(match format {
            Format::Json => to_json(letter).to_string(),
            Format::Text => describe(letter, Paint(settings.colour)),
        })?;
    }
    if !letters.is_empty() && format == Format::Text {
        output::aside("`hookbus dead show|retry|drop <observer> <seq>` does something about one");
    }
    Ok(if letters.is_empty() { Ending::Yes } else { Ending::No })
}

async fn show(name: &str, event: &str, format: Format, settings: &Settings) -> Result<Ending> {
    let letters = letters_of(&assignment(name, None, None, settings)?).await?;
    let letter = the_one(&letters, event)?;
    match format {
        Format::Json => output::line(to_json(letter).to_string())?,
        Format::Text => {
            output::line(describe(letter, Paint(settings.colour)))?;
            let event: Value = serde_json::from_slice(&letter.envelope)?;
            output::line(serde_json::to_string_pretty(&event)?)?;
        }
    }
    Ok(Ending::Yes)
}

async fn retry_all(choice: &Choice, format: Format, settings: &Settings) -> Result<Ending> {
    let assignment = assignment(&choice.observer, None, None, settings)?;
    let letters = chosen(choice, letters_of(&assignment).await?)?;
    let mut progress = Progress::of(letters.len() as u64, "events");
    let mut failed = Vec::new();
    for (index, letter) in letters.iter().enumerate() {
        if let Err(error) = retry(&assignment, letter).await {
            failed.push((letter, error));
        }
        progress.at(index as u64 + 1);
    }
    drop(progress);
    let done = letters.len() - failed.len();
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
    let assignment = assignment(&choice.observer, None, None, settings)?;
    let letters = chosen(choice, letters_of(&assignment).await?)?;
    let mut ledger = assignment.ledger();
    for letter in &letters {
        ledger.drop_letter(letter).await?;
    }
    output::line(match format {
        Format::Json => json!({"dropped": letters.len()}).to_string(),
        Format::Text => {
            format!("{} dropped; the log still has them", count(letters.len(), "event"))
        }
    })?;
    Ok(Ending::Yes)
}

async fn letters_of(assignment: &Assignment) -> Result<Vec<DeadLetter>> {
    assignment.ledger().dead_letters().await.context("cannot look for dead letters")
}

fn chosen(choice: &Choice, letters: Vec<DeadLetter>) -> Result<Vec<DeadLetter>> {
    match &choice.event {
        Some(event) => Ok(vec![the_one(&letters, event)?.clone()]),
        None => Ok(letters),
    }
}

fn the_one<'a>(letters: &'a [DeadLetter], event: &str) -> Result<&'a DeadLetter> {
    let is_it = |letter: &&DeadLetter| {
        letter.event().is_ok_and(|Travelled { row, .. }| {
            row.seq.to_string() == event || row.id.to_string().starts_with(event)
        })
    };
    let found: Vec<&DeadLetter> = letters.iter().filter(is_it).collect();
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
            (row.seq.to_string(), format!("{} {}", row.name, shorten(&gist, 40)))
        }
        Err(error) => ("?".to_owned(), error.to_string()),
    };
    format!(
        "{:<20} {seq:>6}  {}  {what}  {}",
        paint.bold(&letter.observer),
        paint.dim(&local(letter.at).format("%m-%d %H:%M:%S").to_string()),
        paint.bad(&format!("{} tries: {}", letter.tries, shorten(&letter.error, 100))),
    )
}
