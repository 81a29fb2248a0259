//! `hookbus replay --step`: the events of one session one by one, each with what was recorded and what the hooks of this
//! replay would decide; as JSON lines with `--json`.

use std::collections::HashMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Result, bail};
use hookbus::event::Seq;
use hookbus::log::{LogPath, LogReader};
use hookbus::view::Step;
use hookbus_replay::{ChunkResult, Drive, drive};
use serde_json::{Value, json};

use super::options::Arguments;
use super::setup::ReplaySetup;
use crate::args::{find_session, short_session};
use crate::cli::Exit;
use crate::output::{self, Progress, shorten};
use crate::screen::{Input, Screen, Theme, read_input};
use crate::settings::{Format, Settings};
use crate::step::{Compared, SessionEvents, StepModel, StepNext, draw};

/// The version of the shape of a line. A key that is added keeps it; one that is changed or removed raises it.
const SHAPE: u32 = 1;

/// The screen is drawn at least so often, which tells whether the terminal is still there.
const REDRAW: Duration = Duration::from_secs(2);

/// Refuses what cannot be stepped through, before anything runs.
pub(super) fn check(arguments: &Arguments, format: Format, settings: &Settings) -> Result<()> {
    if arguments.sessions.len() != 1 {
        bail!("--step takes one session: an id, the start of one, or `last`");
    }
    if format == Format::Text && !settings.has_screen {
        bail!("--step needs a terminal; `--step --json` prints the same steps as lines of JSON");
    }
    Ok(())
}

pub(super) fn run(
    what: &Drive<'_>,
    setup: &ReplaySetup,
    arguments: &Arguments,
    format: Format,
    settings: &Settings,
) -> Result<Exit> {
    let compared = replay(what)?;
    let Some(path) = &setup.log else { bail!("--step needs a log") };
    let mut events = read(path, arguments)?;
    let mut steps = events.steps();
    if arguments.has_filters() {
        steps.retain(|step| compared.contains_key(&step.seq));
    }
    if steps.is_empty() {
        bail!("no event of this session is selected");
    }
    if format == Format::Json {
        for step in &steps {
            let line = to_json(step, compared.get(&step.seq), &events)?;
            output::line(line.to_string())?;
        }
        return Ok(Exit::Success);
    }
    let title = shorten(&short_session(events.session()), 20);
    let skipped = arguments.skips_commands() && setup.hooks.has_commands();
    let skipped = if skipped { "; commands skipped, --yes runs them" } else { "" };
    let about = format!("compared with {}{skipped}", setup.hooks_name);
    let mut model = StepModel::new(title, steps, compared);
    model.set_about(shorten(&about, 300));
    walk(&mut model, &events, Theme { colour: settings.colour })?;
    Ok(Exit::Success)
}

/// What each event comes to now.
fn replay(what: &Drive<'_>) -> Result<HashMap<Seq, Compared>> {
    let rows = what.source.rows_per_chunk();
    let mut progress = Progress::new(what.source.chunks() * rows, "rows");
    let (mut compared, mut done) = (HashMap::new(), 0);
    drive(what, |chunk: ChunkResult| -> Result<()> {
        compared.extend(chunk.events.iter().map(|event| (event.seq, Compared::new(event))));
        done += rows;
        progress.update(done);
        Ok(())
    })?;
    Ok(compared)
}

fn read(path: &LogPath, arguments: &Arguments) -> Result<SessionEvents> {
    let log = LogReader::open(path)?;
    let text = arguments.sessions.first().map_or("last", String::as_str);
    let session = find_session(&log, text)?;
    SessionEvents::read(log, &session)
}

fn to_json(step: &Step, compared: Option<&Compared>, events: &SessionEvents) -> Result<Value> {
    let mut line = json!({"shape": SHAPE, "session": events.session()});
    if let (Value::Object(line), Value::Object(step)) = (&mut line, step.to_json()) {
        line.extend(step);
    }
    line["replay"] = compared.map_or(Value::Null, |compared| compared.to_json().clone());
    line["payload"] = events.payload(step.seq)?;
    Ok(line)
}

/// The screen, until the user leaves it.
fn walk(model: &mut StepModel, events: &SessionEvents, theme: Theme) -> Result<()> {
    let (sender, inputs) = channel();
    let mut screen = Screen::open()?;
    read_input(move |input| sender.send(input).is_ok());
    loop {
        if let Some(step) = model.wants() {
            let sources = events.sources(step);
            model.set_sources(&sources);
        }
        screen.draw(|frame| draw(frame, model, theme))?;
        match inputs.recv_timeout(REDRAW) {
            Ok(Input::Key(key)) => {
                if model.press(key) != StepNext::Stay {
                    return Ok(());
                }
            }
            Ok(Input::Resized) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Input::Gone) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}
