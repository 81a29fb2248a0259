//! The arguments of `hookbus hook`. Agents call it many times per turn, so the forms that `connect` writes are parsed
//! without clap, which is slower to start.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use hookbus::event::{Agent, Wire};

/// In seconds; below the 60 that both Hermes and Gemini give a hook.
const DEFAULT_DEADLINE: f64 = 55.0;

const EXAMPLES: &str = "\
Examples:
  hookbus hook gemini < event.json               Handle one event by hand
  hookbus hook hermes --deadline 5 < event.json  Answer within five seconds
  hookbus hook gemini --home /home/you/.hookbus  As `connect` wires an agent";

/// The arguments of `hookbus hook`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Agent that sends the event: hermes, gemini, claude or codex
    ///
    /// Events of claude and codex are recorded; hooks do not run for them yet.
    #[arg(value_name = "AGENT")]
    pub(super) agent: String,
    /// Answer within this many seconds; stay below the agent's own timeout
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_DEADLINE)]
    pub(super) deadline: f64,
    /// What the agent may do when the home cannot be opened, its hooks are not known or hookbus itself fails: go on
    /// (allow), or nothing that can be blocked (block)
    ///
    /// The home may belong to another user, its mount may be missing, or its disk may hang. No hook is
    /// known then, and nothing can be recorded. Or hookbus.yaml cannot be read, and no earlier version of it is
    /// known. The agent's user is told in either case, where the agent shows it.
    #[arg(long, value_name = "WHAT", default_value = "allow", value_parser = ["allow", "block"])]
    pub(super) on_failure: String,
    /// How the event arrived: `shell`, or `bridge` from the plugin that `hookbus connect` installs
    #[arg(long, value_name = "WIRE", default_value = "shell", hide = true)]
    pub(super) wire: String,
    /// The id of the event, if the client has tried to deliver it before
    #[arg(long, value_name = "UUID", hide = true)]
    pub(super) id: Option<String>,
    /// Do not ask the daemon: the client knows that it hangs
    #[arg(long, hide = true)]
    pub(super) without_daemon: bool,
}

/// Parses the command lines that agents use, with the home of `--home`; none for all others, and for wrong ones.
pub(crate) fn parse_fast(
    mut words: impl Iterator<Item = OsString>,
) -> Option<(Arguments, Option<PathBuf>)> {
    if words.next()? != "hook" {
        return None;
    }
    let agent = words.next()?.into_string().ok()?.parse::<Agent>().ok()?.as_str().to_owned();
    let (mut home, mut deadline, mut on_failure) = (None, None, None);
    let (mut wire, mut id, mut without_daemon) = (None, None, false);
    while let Some(option) = words.next() {
        let is_new = match option.to_str()? {
            "--home" => home.replace(PathBuf::from(words.next()?)).is_none(),
            "--deadline" => deadline.replace(text(words.next()?)?.parse().ok()?).is_none(),
            "--on-failure" => on_failure.replace(text(words.next()?)?).is_none(),
            "--wire" => wire.replace(text(words.next()?)?).is_none(),
            "--id" => id.replace(text(words.next()?)?).is_none(),
            "--without-daemon" => !std::mem::replace(&mut without_daemon, true),
            _ => return None,
        };
        if !is_new {
            return None;
        }
    }
    let is_usable = home.as_ref().is_none_or(|home| home.is_absolute())
        && on_failure.as_deref().is_none_or(|word| ["allow", "block"].contains(&word));
    let arguments = Arguments {
        agent,
        deadline: deadline.unwrap_or(DEFAULT_DEADLINE),
        on_failure: on_failure.unwrap_or_else(|| "allow".to_owned()),
        wire: wire.unwrap_or_else(|| Wire::Shell.as_str().to_owned()),
        id,
        without_daemon,
    };
    is_usable.then_some((arguments, home))
}

/// An option's value. What begins with `-` is another option, and clap says what is missing.
fn text(word: OsString) -> Option<String> {
    word.into_string().ok().filter(|word| !word.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fast(line: &str) -> Option<(Arguments, Option<PathBuf>)> {
        parse_fast(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_forms_that_connect_writes_are_parsed_without_clap() {
        let (arguments, home) = fast("hook hermes").expect("parsed");
        assert_eq!((arguments.on_failure.as_str(), home), ("allow", None));
        let line = "hook gemini --home /srv/bus --on-failure block --deadline 20";
        let (arguments, home) = fast(line).expect("parsed");
        assert_eq!(home, Some(PathBuf::from("/srv/bus")));
        assert_eq!((arguments.on_failure.as_str(), arguments.deadline), ("block", 20.0));
        let line =
            "hook hermes --wire bridge --id 00 --deadline 1.5 --home /srv/bus --without-daemon";
        let (arguments, _) = fast(line).expect("parsed");
        assert_eq!((arguments.wire.as_str(), arguments.without_daemon), ("bridge", true));
    }

    #[test]
    fn wrong_forms_are_left_to_clap_which_says_what_is_wrong() {
        for line in [
            "hook",
            "status",
            "hook hermes --home",
            "hook hermes --home bus",
            "hook hermes --home /a --home /b",
            "hook hermes --on-failure deny",
            "hook hermes --on-failure --home /a",
            "hook hermes --deadline soon",
            "hook hermes extra",
        ] {
            assert_eq!(fast(line), None, "{line}");
        }
    }
}
