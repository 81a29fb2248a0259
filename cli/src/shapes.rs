//! The numbers of the shapes that `--json` prints, one for each command. `cli/docs/output.md` documents each of them; a test
//! compares what commands print with what is written there.

use hookbus::view;
use serde_json::{Map, Value, json};

/// The number of the shape of `hookbus --json`.
pub(crate) const OVERVIEW: u32 = 1;

/// The number of the shape of `status --json`.
pub(crate) const STATUS: u32 = 1;

/// The number of the shape of `top --json`.
pub(crate) const TOP: u32 = 1;

/// Every command with `--json`, and the number of its shape. A key that is added keeps it; one that is removed, or that
/// changes its meaning, raises it.
const SHAPES: [(&str, u32); 40] = [
    ("hookbus", OVERVIEW),
    ("anchor", 1),
    ("backup", 1),
    ("boot", 1),
    ("compact", 1),
    ("connect", 1),
    ("dead drop", 1),
    ("dead list", 1),
    ("dead retry", 1),
    ("dead show", 1),
    ("demo", 1),
    ("disconnect", 1),
    ("export", 1),
    ("hold", 1),
    ("hooks approve", 1),
    ("hooks check", 1),
    ("hooks doctor", 1),
    ("hooks list", 1),
    ("hooks promote", 1),
    ("hooks revoke", 1),
    ("hooks shadow", 1),
    ("hooks test", 1),
    ("import", 1),
    ("init", 1),
    ("log", 1),
    ("man", 1),
    ("observe", 1),
    ("prune", 1),
    ("query", 1),
    ("replay", 1),
    ("restore", 1),
    ("scan", 1),
    ("sessions", 1),
    ("show", view::SHAPE),
    ("stats", 1),
    ("status", STATUS),
    ("stop", 1),
    ("top", TOP),
    ("verify", 1),
    ("why", 1),
];

/// The commands that print no JSON of their own: `hook` answers an agent, `serve` prints its log, `completions` a script.
#[cfg(test)]
const WITHOUT_JSON: [&str; 3] = ["completions", "hook", "serve"];

/// All of them.
pub(crate) fn to_json() -> Value {
    let shape = |(command, shape): &(&str, u32)| ((*command).to_owned(), json!(shape));
    Value::Object(SHAPES.iter().map(shape).collect::<Map<String, Value>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands that do something, by their names behind `hookbus`.
    fn leaves(command: &clap::Command, before: &str) -> Vec<String> {
        let of_child = |child: &clap::Command| {
            let name = format!("{before} {}", child.get_name()).trim().to_owned();
            if child.has_subcommands() { leaves(child, &name) } else { vec![name] }
        };
        command.get_subcommands().flat_map(of_child).collect()
    }

    #[test]
    fn every_command_has_a_shape_or_prints_no_json() {
        let shapes = to_json();
        let mut expected = leaves(&crate::cli::command(), "");
        expected.retain(|name| !WITHOUT_JSON.contains(&name.as_str()));
        expected.push("hookbus".to_owned());
        expected.sort();
        let mut known: Vec<&String> = shapes.as_object().expect("an object").keys().collect();
        known.sort();
        assert_eq!(known, expected.iter().collect::<Vec<_>>());
    }
}
