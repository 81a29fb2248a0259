//! `hookbus init`: writes a first policy into an empty home, and offers to connect the agents that are installed. It
//! never replaces a file. At a terminal it asks; without one, or with `--yes`, it asks nothing and connects nothing.

mod agents;

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde_json::{Value, json};

pub(crate) use self::agents::{FoundAgent, installed};
use crate::cli::Exit;
use crate::connect;
use crate::output::{self, Paint, sanitize, sanitize_lines};
use crate::prompt::{PromptOn, is_user_at_terminal, yes_no};
use crate::settings::{Format, Settings};

/// The first policy. `@USE@` stands for the packs that it uses.
const STARTER: &str = include_str!("init/starter.yaml");

const ENFORCED: &str = "\
# The rules that ship with hookbus: they guard hookbus itself, your files, git, secrets and the cloud.
use: [starter]
";

const IN_SHADOW: &str = "\
# The rules that ship with hookbus: they guard hookbus itself, your files, git, secrets and the cloud.
# In shadow mode they only record what they would do: `hookbus hooks shadow` reports it.
# `hookbus hooks promote --all` turns them on when you have seen enough.
use: [{ pack: starter, shadow: true }]
";

const EXAMPLES: &str = "\
Examples:
  hookbus init                 Ask, write a first policy, connect agents
  hookbus init --yes           Ask nothing; the rules count at once
  hookbus init --yes --shadow  Ask nothing; the rules only record
  hookbus init --print         Only show the policy";

/// The arguments of `hookbus init`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Ask nothing, and connect nothing
    #[arg(long)]
    yes: bool,
    /// Let the rules only record what they would do, without blocking anything
    #[arg(long)]
    shadow: bool,
    /// Print the policy and write nothing
    #[arg(long)]
    print: bool,
}

/// Whether the rules of the first policy count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// They block and ask.
    Enforce,
    /// They record what they would do.
    Shadow,
}

pub(crate) fn run(arguments: &Arguments, format: Format, settings: &Settings) -> Result<Exit> {
    let file = settings.home.join("hookbus.yaml");
    let chosen = if arguments.shadow { Start::Shadow } else { Start::Enforce };
    if arguments.print {
        let policy = starter(chosen);
        match format {
            Format::Json => output::line(json!({"file": file, "policy": policy}).to_string())?,
            Format::Text => output::part(&policy)?,
        }
        return Ok(Exit::Success);
    }
    let asks = !arguments.yes && format == Format::Text && is_user_at_terminal();
    if asks {
        // Before any question, whose answer would be in vain.
        ensure_absent(&file)?;
    }
    let start = if asks && !arguments.shadow { ask_how_to_start()? } else { chosen };
    write_new(&file, &starter(start))?;
    let found = installed(settings);
    let next = next_steps(start, &found, settings);
    match format {
        Format::Json => {
            let agents: Vec<Value> = found.iter().map(FoundAgent::to_json).collect();
            let shadow = start == Start::Shadow;
            let done = json!({"file": file, "written": true, "shadow": shadow, "agents": agents, "next": next});
            output::line(done.to_string())?;
        }
        Format::Text => {
            output::line(format!("wrote {}", sanitize(&file.display().to_string())))?;
            show_agents(&found)?;
            if asks {
                offer_to_connect(&found, settings)?;
            }
            let paint = Paint(settings.colour);
            output::line("\nnext:")?;
            next.iter().try_for_each(|step| output::line(format!("  {}", paint.bold(step))))?;
        }
    }
    Ok(Exit::Success)
}

/// The starter policy.
fn starter(start: Start) -> String {
    let packs = match start {
        Start::Enforce => ENFORCED,
        Start::Shadow => IN_SHADOW,
    };
    STARTER.replace("@USE@\n", &format!("{packs}\n"))
}

fn ask_how_to_start() -> Result<Start> {
    output::line("The starter packs block what cannot be undone and ask about what is risky.")?;
    output::line("With `no` they look first: they record what they would do, and block nothing.")?;
    let enforce = yes_no(PromptOn::Stdout, "enforce the rules from now on?")?;
    Ok(if enforce { Start::Enforce } else { Start::Shadow })
}

fn show_agents(found: &[FoundAgent]) -> Result<()> {
    if found.is_empty() {
        output::line("no agent was found: neither hermes, gemini, claude nor codex")?;
        return Ok(());
    }
    output::line("agents on this machine:")?;
    for agent in found {
        output::line(format!("  {}", agent.describe()))?;
    }
    Ok(())
}

/// Asks about each agent that can be connected. An agent that cannot be is told, and does not end this.
fn offer_to_connect(found: &[FoundAgent], settings: &Settings) -> Result<()> {
    for agent in found {
        let Some(connected_as) = agent.connected_as else { continue };
        let question = format!("connect {} now? The change is shown first", agent.name);
        if !yes_no(PromptOn::Stdout, &question)? {
            continue;
        }
        let arguments = connect::Connect::for_agent(connected_as);
        if let Err(error) = connect::connect(arguments, Format::Text, settings) {
            output::to_stderr(sanitize_lines(&format!(
                "{} is not connected: {error:#}",
                agent.name
            )));
        }
    }
    Ok(())
}

/// Three things to type.
fn next_steps(start: Start, found: &[FoundAgent], settings: &Settings) -> [String; 3] {
    let connectable = found.iter().find(|agent| agent.connected_as.is_some());
    let second = match (start, connectable) {
        (Start::Shadow, _) => "hookbus hooks shadow".to_owned(),
        (Start::Enforce, Some(agent)) => agent.how_to_connect(),
        (Start::Enforce, None) => "hookbus connect gemini".to_owned(),
    };
    let steps = [
        "hookbus hooks test --command 'git push --force'".to_owned(),
        second,
        "hookbus show last".to_owned(),
    ];
    steps.map(|step| settings.command(&step))
}

fn ensure_absent(file: &Path) -> Result<()> {
    if file.exists() {
        return Err(exists(file));
    }
    Ok(())
}

fn exists(file: &Path) -> anyhow::Error {
    let file = file.display();
    anyhow!(
        "{file} exists and is left as it is; `hookbus init --print` shows the starter policy, and `use: [starter]` in \
         your file puts its rules in force"
    )
}

/// Writes a file that only its owner can read; fails if there is one.
fn write_new(file: &Path, text: &str) -> Result<()> {
    if let Some(home) = file.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(home);
        made.with_context(|| format!("cannot create {}", home.display()))?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    match opened.and_then(|mut opened| opened.write_all(text.as_bytes())) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(file)),
        Err(error) => {
            // A policy that is cut off would be an error at every event.
            if let Err(error) = fs::remove_file(file) {
                tracing::debug!(%error, "cannot remove the unfinished file");
            }
            Err(error).with_context(|| format!("cannot write {}", file.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use hookbus::config::HooksFile;

    use super::*;

    fn parse(text: &str) -> HooksFile {
        HooksFile::parse(text, Path::new("/")).expect("a file")
    }

    #[test]
    fn the_policy_has_no_mistakes_and_neither_have_its_examples() {
        let plain = starter(Start::Enforce);
        assert_eq!(parse(&plain).problems, []);
        let uncommented = |line: &str| {
            let text = line.trim_start();
            let is_example = text.starts_with('#') && !text.starts_with("# ");
            if is_example { line.replacen('#', "", 1) } else { line.to_owned() }
        };
        let used: Vec<String> = plain.lines().map(uncommented).collect();
        let used = parse(&used.join("\n"));
        assert_eq!(used.problems, [], "neither mistakes nor missed examples");
        let names = ["ask-before-publishing", "journal"];
        assert!(names.iter().all(|name| used.hooks.iter().any(|hook| hook.name == *name)));
        let plain = parse(&plain);
        assert_eq!(used.max_continuations, plain.max_continuations, "a default");
        assert_eq!((used.on_failure, used.trust), (plain.on_failure, plain.trust), "defaults");
    }

    #[test]
    fn the_policy_fits_a_page() {
        for start in [Start::Enforce, Start::Shadow] {
            let policy = starter(start);
            let longest = policy.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(120) && policy.lines().count() <= 60, "{policy}");
            assert!(!policy.contains('@'), "{policy}");
        }
    }
}
