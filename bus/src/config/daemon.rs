//! The `daemon:` part of `hookbus.yaml`: whether clients start a daemon, and how one that a client started behaves. It
//! takes these from the file alone, never from the environment of the agent that caused it to be started.

use std::time::Duration;

use super::yaml::{Node, Pair};

/// Whether clients of a home use a daemon.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DaemonMode {
    /// Clients use a running daemon, and start one if there is none.
    #[default]
    Auto,
    /// Clients use a running daemon, but never start one: the home is served elsewhere, for example by a container.
    Running,
    /// No daemon serves this home: clients start none, and `hookbus serve` refuses to.
    Off,
}

impl DaemonMode {
    /// The mode with this name.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Self::Auto),
            "running" => Some(Self::Running),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

/// The settings under `daemon:`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DaemonSettings {
    /// Whether clients use a daemon.
    pub mode: DaemonMode,
    /// How long a daemon that a hook started stays up without calls; none: 15 minutes.
    pub idle: Option<Duration>,
    /// What the daemon and its observers log, from `error` to `trace`; none: `info`.
    pub log: Option<String>,
}

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// The longest idle time; more could overflow the clock.
const LONGEST_IDLE: f64 = 31_536_000.0;

/// Reads `daemon: running` or `daemon: {mode: …, idle: …, log: …}`; also what is wrong with it, by line. A mode that cannot
/// be read counts as `running`: a daemon in the wrong place would take the home from the right one.
pub(super) fn read(node: &Node, line: usize) -> (DaemonSettings, Vec<(usize, &'static str)>) {
    let (mut settings, mut wrong) = (DaemonSettings::default(), Vec::new());
    if node.is_null() {
        return (settings, wrong);
    }
    let Some(pairs) = node.pairs() else {
        settings.mode = read_mode(node, line, &mut wrong);
        return (settings, wrong);
    };
    for Pair { key, value, line } in pairs {
        match key.as_str() {
            "mode" => settings.mode = read_mode(value, *line, &mut wrong),
            "idle" => match value.number().filter(|number| (0.0..=LONGEST_IDLE).contains(number)) {
                Some(seconds) => settings.idle = Some(Duration::from_secs_f64(seconds)),
                None => wrong.push((*line, "`idle` is a number of seconds; write `idle: 900`")),
            },
            "log" => match value.text().filter(|text| LEVELS.contains(&text.as_str())) {
                Some(level) => settings.log = Some(level),
                None => wrong.push((*line, "`log` is `error`, `warn`, `info`, `debug` or `trace`")),
            },
            _ => wrong.push((*line, "under `daemon` there are `mode`, `idle` and `log`")),
        }
    }
    (settings, wrong)
}

fn read_mode(node: &Node, line: usize, wrong: &mut Vec<(usize, &'static str)>) -> DaemonMode {
    node.text().as_deref().and_then(DaemonMode::parse).unwrap_or_else(|| {
        wrong.push((
            line,
            "`daemon` is `auto`, `running` or `off`; until you correct it no client starts one",
        ));
        DaemonMode::Running
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::HooksFile;

    fn parsed(text: &str) -> (DaemonSettings, usize) {
        let file = HooksFile::parse(text, Path::new("/")).expect("a file");
        (file.daemon, file.problems.len())
    }

    #[test]
    fn the_mode_alone_or_all_settings_can_be_given() {
        let mode = |mode| DaemonSettings { mode, ..DaemonSettings::default() };
        assert_eq!(parsed("hooks: {}"), (mode(DaemonMode::Auto), 0));
        assert_eq!(parsed("daemon: running"), (mode(DaemonMode::Running), 0));
        assert_eq!(parsed("daemon: off"), (mode(DaemonMode::Off), 0));
        let all = DaemonSettings {
            mode: DaemonMode::Running,
            idle: Some(Duration::from_millis(1500)),
            log: Some("debug".to_owned()),
        };
        assert_eq!(parsed("daemon: {mode: running, idle: 1.5, log: debug}"), (all, 0));
    }

    #[test]
    fn a_mode_that_cannot_be_read_starts_no_daemon() {
        for text in ["daemon: runing", "daemon: [off]", "daemon: {mode: no}"] {
            let (settings, problems) = parsed(text);
            assert_eq!((settings.mode, problems), (DaemonMode::Running, 1), "{text}");
        }
        for text in ["deamon: running\nhooks: {}", "hooks: {}\ndaemn: {mode: off}"] {
            let (settings, problems) = parsed(text);
            assert_eq!((settings.mode, problems), (DaemonMode::Running, 1), "{text}");
        }
        let (settings, _) = parsed("deamon: running\ndaemon: off\nhooks: {}");
        assert_eq!(settings.mode, DaemonMode::Off, "the right word counts");
        assert_eq!(parsed("daemon: {idle: -1, log: loud, x: 1}"), (DaemonSettings::default(), 3));
    }
}
