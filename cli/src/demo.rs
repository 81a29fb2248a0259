//! `hookbus demo`: the first five minutes. A scratch home, a sample policy, the real front door, two
//! short sessions, and what to type next.

mod sessions;

use std::fs::{self, DirBuilder};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use hookbus::event::{Clock, EventId, SystemClock};
use serde_json::{Value, json};

use crate::cli::Exit;
use crate::output::{self, Paint, shorten};
use crate::settings::{Format, Settings};
use crate::{show, status, stop};

const POLICY: &str = include_str!("demo/policy.yaml");

const DAEMON_IS_UP: Duration = Duration::from_secs(10);

/// `hookbus demo`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to put it (default: a new directory for temporary files).
    #[arg(long, value_name = "DIRECTORY")]
    home: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, format: Format, mut settings: Settings) -> Result<Exit> {
    settings.home = scratch_home(arguments)?;
    let policy = settings.home.join("hookbus.yaml");
    fs::write(&policy, POLICY).with_context(|| format!("cannot write {}", policy.display()))?;
    let program = std::env::current_exe().context("cannot find my own program")?;
    let daemon = start_bus(&program, &settings)?;
    let played = play_all(&program, &settings, format);
    let stopped = stop_bus(daemon, &settings);
    let played = played?;
    stopped?;
    match format {
        Format::Json => output::line(
            json!({"home": settings.home.to_string_lossy(), "calls": played}).to_string(),
        )?,
        Format::Text => tell_what_is_next(&program, &settings)?,
    }
    Ok(Exit::Success)
}

fn scratch_home(arguments: &Arguments) -> Result<PathBuf> {
    let home = arguments.home.clone().unwrap_or_else(|| {
        let id = EventId::mint(SystemClock.now()).to_string();
        std::env::temp_dir().join(format!("hookbus-demo-{}", &id[id.len() - 8..]))
    });
    if home.join("hookbus.yaml").exists() {
        bail!("{} holds a hookbus.yaml already; name a new directory with --home", home.display());
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&home);
    made.with_context(|| format!("cannot make {}", home.display()))?;
    std::path::absolute(&home).context("cannot tell where that is")
}

fn start_bus(program: &Path, settings: &Settings) -> Result<Child> {
    let child = Command::new(program)
        .args(["serve", "--idle", "60"])
        .env("HOOKBUS_HOME", &settings.home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the bus")?;
    let started = Instant::now();
    while status::state(settings)["daemon"].is_null() {
        if started.elapsed() > DAEMON_IS_UP {
            bail!(
                "the bus did not come up; try `HOOKBUS_HOME={} hookbus serve`",
                settings.home.display()
            );
        }
        sleep(Duration::from_millis(10));
    }
    Ok(child)
}

fn stop_bus(mut daemon: Child, settings: &Settings) -> Result<()> {
    let stopped = stop::stop(settings);
    daemon.wait().context("cannot wait for the bus")?;
    stopped.map(|_| ())
}

/// Plays both sessions through `hookbus hook`, as the agents would.
fn play_all(program: &Path, settings: &Settings, format: Format) -> Result<Vec<Value>> {
    let paint = Paint(settings.colour);
    let mut calls = Vec::new();
    for (agent, events) in [("hermes", sessions::hermes()), ("gemini", sessions::gemini())] {
        if format == Format::Text {
            output::line(paint.bold(&format!("{agent} works, hookbus listens:")))?;
        }
        for event in events {
            let answer = call(program, settings, agent, &event)?;
            if format == Format::Text {
                output::line(told(&event, answer.as_ref(), paint))?;
            }
            calls
                .push(json!({"agent": agent, "event": event["hook_event_name"], "answer": answer}));
        }
        if format == Format::Text {
            output::line("")?;
        }
    }
    Ok(calls)
}

fn call(program: &Path, settings: &Settings, agent: &str, event: &Value) -> Result<Option<Value>> {
    let mut child = Command::new(program)
        .args(["hook", agent])
        .env("HOOKBUS_HOME", &settings.home)
        .env("HOOKBUS_DAEMON", "running")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run `hookbus hook`")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(event.to_string().as_bytes()).context("the hook did not listen")?;
    }
    let output = child.wait_with_output().context("the hook did not answer")?;
    Ok(serde_json::from_slice(&output.stdout).ok())
}

fn told(event: &Value, answer: Option<&Value>, paint: Paint) -> String {
    let name = event["hook_event_name"].as_str().unwrap_or_default();
    let input = &event["tool_input"];
    let text = input["command"].as_str().or(input["file_path"].as_str());
    let text = text.or(event["prompt"].as_str()).or(event["extra"]["user_message"].as_str());
    let answer = match answer {
        Some(answer) => paint.notable(&format!("→ {}", shorten(&answer.to_string(), 110))),
        None => String::new(),
    };
    format!("  {name:<20} {:<44} {answer}", shorten(text.unwrap_or_default(), 44))
        .trim_end()
        .to_owned()
}

fn tell_what_is_next(program: &Path, settings: &Settings) -> Result<()> {
    let paint = Paint(settings.colour);
    output::line(paint.bold("what the log holds:"))?;
    for session in [sessions::HERMES_SESSION, sessions::GEMINI_SESSION] {
        output::line("")?;
        show::print_session(settings, session)?;
    }
    let home = settings.home.display();
    let hookbus = program.display();
    output::line(format!(
        "\n{}\n  export HOOKBUS_HOME={home}\n  \
         {hookbus} log --kind decision     every decision, with its reason\n  \
         {hookbus} hooks list              the sample policy, from {home}/hookbus.yaml\n  \
         {hookbus} replay --all            the same events through the hooks again; try it after a change to the policy\n  \
         {hookbus} verify                  the hash chain over all of it\n  \
         echo '{{\"hook_event_name\":\"pre_tool_call\",\"tool_name\":\"terminal\",\"tool_input\":{{\"command\":\"rm -rf /\"}}}}' | {hookbus} hook hermes\n\
         To wire your own agent, see the README: the same command on each event, for Hermes and for Gemini CLI.\n\
         This scratch home can be deleted at any time.",
        paint.bold("what to type next:")
    ))?;
    Ok(())
}
