//! `hookbus demo`: starts a daemon in a scratch home with a sample policy, plays two short sessions through the real
//! `hookbus hook`, and prints what to try next.

mod sessions;

use std::borrow::Cow;
use std::fs::{self, DirBuilder};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hookbus::event::{Clock, EventId, SystemClock};
use serde_json::{Value, json};

use crate::cli::Exit;
use crate::output::{self, Paint, columns, pad, shorten, width};
use crate::settings::{Format, Settings};
use crate::{show, status, stop};

const POLICY: &str = include_str!("demo/policy.yaml");

const START_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(format: Format, settings: &Settings) -> Result<Exit> {
    let home = scratch_home(settings.is_pinned.then_some(&settings.home))?;
    let settings = settings.for_home(home);
    let policy = settings.home.join("hookbus.yaml");
    fs::write(&policy, POLICY).with_context(|| format!("cannot write {}", policy.display()))?;
    let program = std::env::current_exe().context("cannot find the hookbus program")?;
    let daemon = start_daemon(&program, &settings)?;
    let calls = play_sessions(&program, &settings, format);
    let stopped = stop_daemon(daemon, &settings);
    let calls = calls?;
    stopped?;
    match format {
        Format::Json => output::line(
            json!({"home": settings.home.to_string_lossy(), "calls": calls}).to_string(),
        )?,
        Format::Text => print_next_steps(&program, &settings)?,
    }
    Ok(Exit::Success)
}

/// The home that the user named, or a new temporary directory.
fn scratch_home(named: Option<&PathBuf>) -> Result<PathBuf> {
    let home = named.cloned().unwrap_or_else(|| {
        let id = EventId::mint(SystemClock.now()).to_string();
        std::env::temp_dir().join(format!("hookbus-demo-{}", &id[id.len() - 8..]))
    });
    if home.join("hookbus.yaml").exists() {
        bail!("{} already holds a hookbus.yaml; name a new directory with --home", home.display());
    }
    let created = DirBuilder::new().recursive(true).mode(0o700).create(&home);
    created.with_context(|| format!("cannot create {}", home.display()))?;
    std::path::absolute(&home)
        .with_context(|| format!("cannot make {} an absolute path", home.display()))
}

fn start_daemon(program: &Path, settings: &Settings) -> Result<Child> {
    let child = Command::new(program)
        .arg("--home")
        .arg(&settings.home)
        .args(["serve", "--idle", "60"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the daemon")?;
    let started = Instant::now();
    while status::state(settings)["daemon"].is_null() {
        if started.elapsed() > START_TIMEOUT {
            bail!(
                "the daemon did not start; run `hookbus --home {} serve` to see why",
                settings.home.display()
            );
        }
        sleep(Duration::from_millis(10));
    }
    Ok(child)
}

fn stop_daemon(mut daemon: Child, settings: &Settings) -> Result<()> {
    let stopped = stop::stop(settings);
    daemon.wait().context("cannot wait for the daemon")?;
    stopped.map(|_| ())
}

/// Plays both sessions through `hookbus hook`, as the agents would.
fn play_sessions(program: &Path, settings: &Settings, format: Format) -> Result<Vec<Value>> {
    let paint = Paint(settings.colour);
    let mut calls = Vec::new();
    for (agent, events) in [("hermes", sessions::hermes()), ("gemini", sessions::gemini())] {
        if format == Format::Text {
            output::line(
                paint.bold(&format!("Events of a {agent} session, and the answers of hookbus:")),
            )?;
        }
        for event in events {
            let answer = call_hook(program, settings, agent, &event)?;
            if format == Format::Text {
                print_call(&event, answer.as_ref(), paint)?;
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

fn call_hook(
    program: &Path,
    settings: &Settings,
    agent: &str,
    event: &Value,
) -> Result<Option<Value>> {
    let mut child = Command::new(program)
        .args(["hook", agent, "--home"])
        .arg(&settings.home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run `hookbus hook`")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin
            .write_all(event.to_string().as_bytes())
            .context("cannot write the event to `hookbus hook`")?;
    }
    let output = child.wait_with_output().context("cannot read the answer of `hookbus hook`")?;
    Ok(serde_json::from_slice(&output.stdout).ok())
}

/// An event in one line, and the answer to it below.
fn print_call(event: &Value, answer: Option<&Value>, paint: Paint) -> Result<()> {
    let name = event["hook_event_name"].as_str().unwrap_or_default();
    let input = &event["tool_input"];
    let text = input["command"].as_str().or(input["file_path"].as_str());
    let text = text.or(event["prompt"].as_str()).or(event["extra"]["user_message"].as_str());
    let label = format!("  {} ", pad(name, 20));
    let room = columns().saturating_sub(width(&label));
    output::labelled(&label, shorten(text.unwrap_or_default(), room).trim_end())?;
    if let Some(answer) = answer {
        let answer = shorten(&answer.to_string(), 200);
        output::labelled(&" ".repeat(width(&label)), &paint.notable(&format!("→ {answer}")))?;
    }
    Ok(())
}

fn print_next_steps(program: &Path, settings: &Settings) -> Result<()> {
    let paint = Paint(settings.colour);
    output::line(paint.bold("The timelines of both sessions:"))?;
    for session in [sessions::HERMES_SESSION, sessions::GEMINI_SESSION] {
        output::line("")?;
        show::print_session(settings, session)?;
    }
    // Each command names the home: a variable would also apply to the next `hookbus connect` in this shell.
    let home = settings.home.to_string_lossy();
    let word =
        |path: &str| shlex::try_quote(path).map_or_else(|_| path.to_owned(), Cow::into_owned);
    let hookbus = format!("{} --home {}", word(&program.to_string_lossy()), word(&home));
    let event = r#"{"hook_event_name":"pre_tool_call","tool_name":"terminal","tool_input":{"command":"rm -rf /"}}"#;
    output::line(format!("\n{}", paint.bold("Try next:")))?;
    for (command, what) in [
        (format!("{hookbus} log --kind decision"), "all decisions, with their reasons".to_owned()),
        (format!("{hookbus} hooks list"), format!("the sample policy, from {home}/hookbus.yaml")),
        (
            format!("{hookbus} replay --all"),
            "the same events again; try it after changing the policy".to_owned(),
        ),
        (format!("{hookbus} verify"), "check the hash chain of the log".to_owned()),
        (format!("echo '{event}' | {hookbus} hook hermes"), "an event of your own".to_owned()),
    ] {
        // Whole, so that it can be copied.
        output::whole_line(format!("  {command}"))?;
        output::labelled("      ", &paint.dim(&what))?;
    }
    output::line(
        "To wire your own agent, run `hookbus connect hermes` or `hookbus connect gemini`.",
    )?;
    output::line("You can delete this scratch home at any time.")?;
    Ok(())
}
