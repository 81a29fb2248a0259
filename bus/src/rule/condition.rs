//! One condition of a rule. Conditions about the call as a whole hold or do not. Conditions about programs, files and
//! hosts are asked about each of them: `evaluate.rs` puts them together.

use std::fmt;

use super::RuleFailure;
use super::directory::Reading;
use super::facts::Facts;
use super::field::{FieldsOf, chosen, is_incomplete};
use super::files::FileFact;
use super::hosts::HostFact;
use super::path_match::PathMatch;
use super::program_match::ProgramMatches;
use super::text_match::{TextMatch, any, every, write_list};
use crate::dialect::PatternFailure;
use crate::event::{Agent, ToolClass};
use crate::shell::Access;

/// A condition.
#[derive(Debug, Clone)]
pub enum Condition {
    /// A text at this path of the payload matches one of these.
    Field(String, Vec<TextMatch>),
    /// The tool is one of these.
    Tool(Vec<ToolMatch>),
    /// The agent is one of these.
    Agent(Vec<Agent>),
    /// The session's id matches one of these.
    Session(Vec<TextMatch>),
    /// The model's name matches one of these.
    Model(Vec<TextMatch>),
    /// The working directory matches one of these.
    Cwd(Vec<PathMatch>),
    /// The call goes to an MCP server and tool that match one of each; an empty list is any.
    Mcp(Vec<TextMatch>, Vec<TextMatch>),
    /// The size of the tool's input.
    Size(SizeMatch),
    /// A secret of one of these kinds is in the event: `aws-access-key`, `*`.
    Secret(Vec<TextMatch>),
    /// A program that runs matches one of these.
    Runs(ProgramMatches),
    /// A file that is touched in this way matches one of these.
    File(FileKey, Vec<PathMatch>),
    /// A host matches one of these.
    Host(Vec<HostMatch>),
}

/// Which files a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKey {
    /// All of them: `path`.
    Path,
    /// Those that are read: `reads`.
    Reads,
    /// Those that are created, changed or removed: `writes`.
    Writes,
    /// Those that are removed: `deletes`.
    Deletes,
}

/// A tool, by what it does or by its own name.
#[derive(Debug, Clone)]
pub enum ToolMatch {
    /// A tool of this class.
    Class(ToolClass),
    /// A tool whose own name matches.
    Name(TextMatch),
}

/// A host, by its parts. What is empty is not compared.
#[derive(Debug, Clone, Default)]
pub struct HostMatch {
    /// The regex of `url: 'regex'`, which is searched in the fields of the event.
    pub written: Option<TextMatch>,
    /// The whole address matches all of these.
    pub text: Vec<TextMatch>,
    /// The host is, or matches, one of these: `example.org`, `*.example.org`.
    pub host: Vec<TextMatch>,
    /// The scheme is one of these.
    pub scheme: Vec<TextMatch>,
    /// It is not known before the call which host it is.
    pub unknown: bool,
    /// None of these matches.
    pub not: Vec<Self>,
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeMatch {
    /// More than this.
    Over(usize),
    /// Less than this.
    Under(usize),
}

impl ToolMatch {
    /// The class that it is about, if it is about one.
    pub const fn class(&self) -> Option<ToolClass> {
        match self {
            Self::Class(class) => Some(*class),
            Self::Name(_) => None,
        }
    }
}

impl FileKey {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Path, Self::Reads, Self::Writes, Self::Deletes];

    /// The key in a policy.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Deletes => "deletes",
        }
    }

    /// Whether a file that is touched in this way is meant.
    pub const fn covers(self, access: Access) -> bool {
        match (self, access) {
            (Self::Path, _)
            | (Self::Reads, Access::Read)
            | (Self::Writes, Access::Write | Access::Delete)
            | (Self::Deletes, Access::Delete) => true,
            (Self::Reads, Access::Write | Access::Delete)
            | (Self::Writes, Access::Read)
            | (Self::Deletes, Access::Read | Access::Write) => false,
        }
    }
}

impl Condition {
    /// Its key in a policy.
    pub fn key(&self) -> &str {
        match self {
            Self::Field(path, _) => path,
            Self::Tool(_) => "tool",
            Self::Agent(_) => "agent",
            Self::Session(_) => "session",
            Self::Model(_) => "model",
            Self::Cwd(_) => "cwd",
            Self::Mcp(..) => "mcp",
            Self::Size(_) => "size",
            Self::Secret(_) => "secret",
            Self::Runs(_) => "runs",
            Self::File(key, _) => key.as_str(),
            Self::Host(_) => "url",
        }
    }

    /// Whether it is about the call as a whole, and not about a program, a file or a host.
    pub(super) const fn is_about_call(&self) -> bool {
        !matches!(self, Self::Runs(_) | Self::File(..) | Self::Host(_))
    }

    /// Whether a condition about the call as a whole holds.
    pub(super) fn holds_for_call(
        &self,
        facts: &Facts<'_>,
        of: FieldsOf,
        reading: Reading,
    ) -> Result<bool, RuleFailure> {
        let event = facts.event;
        let text = |matches: &[TextMatch], text: &str| any(matches, |it| it.matches(text));
        Ok(match self {
            Self::Field(path, matches) => {
                any(chosen(&facts.texts(path), of), |found| text(matches, found))?
            }
            Self::Tool(tools) => match &event.tool {
                Some(tool) => any(tools, |it| match it {
                    ToolMatch::Class(class) => Ok(*class == tool.class),
                    ToolMatch::Name(name) => name.matches(&tool.name),
                })?,
                None => false,
            },
            Self::Agent(agents) => agents.contains(&event.agent),
            Self::Session(matches) => text(matches, &event.session)?,
            Self::Model(matches) => {
                let found = facts.texts("model");
                any(facts.model().into_iter().chain(chosen(&found, of)), |it| text(matches, it))?
            }
            Self::Cwd(matches) => holds_for_cwd(matches, facts, of, reading)?,
            Self::Mcp(server, tool) => match facts.mcp() {
                Some(mcp) => {
                    (server.is_empty() || text(server, mcp.server)?)
                        && (tool.is_empty() || text(tool, mcp.tool)?)
                }
                None => false,
            },
            Self::Secret(kinds) => any(facts.secrets(), |kind| text(kinds, kind))?,
            Self::Size(SizeMatch::Over(bytes)) => facts.size() > *bytes,
            Self::Size(SizeMatch::Under(bytes)) => facts.size() < *bytes,
            Self::Runs(_) | Self::File(..) | Self::Host(_) => false,
        })
    }

    /// Whether what it looks at may be missing, because only a part of the payload was kept.
    pub(super) fn is_incomplete(&self, facts: &Facts<'_>) -> bool {
        let at = |path: &str| is_incomplete(facts.event, path);
        match self {
            Self::Field(path, _) => at(path),
            Self::Cwd(_) => at("cwd"),
            Self::Runs(_) => at("command"),
            Self::File(..) => at("path") || at("command"),
            Self::Host(_) => at("url") || at("command"),
            Self::Model(_) => at("model"),
            Self::Size(_) | Self::Secret(_) => facts.event.is_partial(),
            Self::Tool(_) | Self::Agent(_) | Self::Session(_) | Self::Mcp(..) => false,
        }
    }
}

/// Whether the working directory matches. A plain regex is searched in every field that is called `cwd`, as it has
/// always been.
fn holds_for_cwd(
    matches: &[PathMatch],
    facts: &Facts<'_>,
    of: FieldsOf,
    reading: Reading,
) -> Result<bool, PatternFailure> {
    let resolved = FileFact::of_directory(&facts.place.cwd);
    any(matches, |it| {
        if let PathMatch::Written(text) = it {
            return any(chosen(&facts.texts("cwd"), of), |found| text.matches(found));
        }
        it.matches(&resolved, facts.place, reading)
    })
}

impl HostMatch {
    /// Whether `host` matches.
    pub(super) fn matches(
        &self,
        host: &HostFact<'_>,
        of: FieldsOf,
    ) -> Result<bool, PatternFailure> {
        if let Some(written) = &self.written {
            let is_meant = host.is_field && (of == FieldsOf::Everyone || host.is_first);
            return if is_meant { written.matches(&host.text) } else { Ok(false) };
        }
        // An address whose host is not known matches nothing else, not even `not`.
        if self.unknown || host.host.is_empty() && host.scheme.is_empty() {
            return Ok(self.unknown && host.host.is_empty());
        }
        let part = |matches: &[TextMatch], text: &str| {
            if matches.is_empty() { Ok(true) } else { any(matches, |it| it.matches(text)) }
        };
        Ok(part(&self.host, &host.host)?
            && part(&self.scheme, &host.scheme)?
            && every(&self.text, |it| it.matches(&host.text))?
            && !any(&self.not, |it| it.matches(host, of))?)
    }
}

/// What it expects, for people.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(_, texts)
            | Self::Session(texts)
            | Self::Model(texts)
            | Self::Secret(texts) => write_list(f, texts, " or "),
            Self::Tool(tools) => write_list(f, tools, " or "),
            Self::Agent(agents) => write_list(f, agents, " or "),
            Self::Cwd(paths) | Self::File(_, paths) => write_list(f, paths, " or "),
            Self::Mcp(server, tool) => {
                f.write_str("server ")?;
                write_list(f, server, " or ")?;
                f.write_str(" tool ")?;
                write_list(f, tool, " or ")
            }
            Self::Size(SizeMatch::Over(bytes)) => write!(f, "over {bytes} bytes"),
            Self::Size(SizeMatch::Under(bytes)) => write!(f, "under {bytes} bytes"),
            Self::Runs(programs) => write_list(f, programs, " or "),
            Self::Host(hosts) => write_list(f, hosts, " or "),
        }
    }
}

impl fmt::Display for ToolMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(class) => class.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl fmt::Display for HostMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(written) = &self.written {
            return written.fmt(f);
        }
        if self.unknown {
            return f.write_str("not known");
        }
        write_list(f, &self.scheme, " or ")?;
        f.write_str(if self.scheme.is_empty() || self.host.is_empty() { "" } else { "://" })?;
        write_list(f, &self.host, " or ")?;
        write_list(f, &self.text, " and ")?;
        if !self.not.is_empty() {
            f.write_str(" not ")?;
            write_list(f, &self.not, " or ")?;
        }
        Ok(())
    }
}
