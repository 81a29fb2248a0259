//! Filters for a tool or an event that neither hookbus nor the log knows are mistakes: they would match no row, without
//! saying why.

use anyhow::{Result, bail};
use hookbus::config::did_you_mean;
use hookbus::dialect::{can_be_event_of, event_names, tools_of};
use hookbus::event::{Agent, ToolClass};
use hookbus::log::{LogReader, Query};

/// Checks the name of a tool or of a tool class.
pub(super) fn check_tool(log: &LogReader, tool: &str) -> Result<()> {
    let known = || Agent::ALL.into_iter().flat_map(|agent| tools_of(agent).iter().map(|it| it.0));
    let is_known = known().any(|name| match name.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => tool == name,
    });
    if ToolClass::parse(tool).is_some() || is_known {
        return Ok(());
    }
    let query = Query { tool: Some(tool.to_owned()), ..Query::default() };
    if !log.last(&query, 1)?.is_empty() {
        return Ok(());
    }
    let classes = ToolClass::ALL.iter().map(|class| class.as_str());
    let hint = match did_you_mean(tool, classes.clone().chain(known())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "write the name of a tool, or one of {}",
            classes.collect::<Vec<_>>().join(", ")
        ),
    };
    bail!("no tool `{tool}` is known or recorded; {hint}")
}

/// Checks the name of an event.
pub(super) fn check_name(log: &LogReader, name: &str) -> Result<()> {
    let is_known = Agent::ALL.into_iter().any(|agent| can_be_event_of(agent, name));
    let query = Query { name: Some(name.to_owned()), ..Query::default() };
    if is_known || !log.last(&query, 1)?.is_empty() {
        return Ok(());
    }
    let known = Agent::ALL.into_iter().flat_map(event_names);
    let hint = did_you_mean(name, known).map_or_else(
        || "`hookbus log` shows the names of events".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    bail!("no event `{name}` is known or recorded; {hint}")
}
