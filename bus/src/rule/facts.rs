//! What rules see of one event. Each part is worked out when the first rule asks for it, and then shared by all rules:
//! a shell line is read once, however many rules look at it.

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use serde_json::{Map, Value};

use super::commands::{CommandFact, commands_of};
use super::condition::FileKey;
use super::field::{FieldText, find_texts};
use super::files::{FileFact, files_of};
use super::hosts::{HostFact, hosts_of};
use super::place::Place;
use super::program_match::{ProgramFact, ProgramNames};
use crate::event::Event;
use crate::redact::{FingerprintKey, FoundSecret, Mark, RedactionSettings, Redactor};
use crate::shell::ParsedInvocation;

/// More files than a call of an agent names. Each costs a look at the disk.
const MOST_FILES: usize = 2000;

/// Looks for the secrets that are built in. Its fingerprints are not used.
static BUILT_IN: LazyLock<Option<Redactor>> = LazyLock::new(|| {
    Redactor::new(FingerprintKey::new([0; 32]), &RedactionSettings::default()).ok()
});

/// What rules see of one event.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The event.
    pub event: &'a Event,
    /// Where it happens.
    pub place: &'a Place,
    lines: &'a ShellLines,
    programs: OnceLock<Vec<Vec<ProgramFact<'a>>>>,
    names: OnceLock<ProgramNames>,
    command_texts: OnceLock<Vec<FieldText<'a>>>,
    files: OnceLock<Vec<FileFact<'a>>>,
    hosts: OnceLock<Vec<HostFact<'a>>>,
    /// The secrets that were found when the event was recorded; none if nothing looked for them yet.
    found_secrets: Option<Vec<FoundSecret>>,
    secrets: OnceLock<Vec<String>>,
}

/// The shell lines of one event, which the files and hosts of its [`Facts`] are taken from.
#[derive(Debug, Default)]
pub struct ShellLines {
    commands: OnceLock<Vec<CommandFact>>,
}

/// The MCP server and the tool that a call goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpTool<'a> {
    /// The server's name.
    pub server: &'a str,
    /// The tool's own name there.
    pub tool: &'a str,
}

impl<'a> Facts<'a> {
    /// The facts of `event`, which happens at `place`.
    pub fn new(event: &'a Event, place: &'a Place, lines: &'a ShellLines) -> Self {
        let (programs, files, hosts) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (names, command_texts) = (OnceLock::new(), OnceLock::new());
        let (found_secrets, secrets) = (None, OnceLock::new());
        Self {
            event,
            place,
            lines,
            programs,
            names,
            command_texts,
            files,
            hosts,
            found_secrets,
            secrets,
        }
    }

    /// The same, with the secrets that were found in the event; none if nothing looked for them.
    #[must_use]
    pub fn with_secrets(self, found: Option<Vec<FoundSecret>>) -> Self {
        Self { found_secrets: found, ..self }
    }

    /// The facts of the same call after a hook has changed its input.
    pub fn of_changed<'b>(&self, event: &'b Event, lines: &'b ShellLines) -> Facts<'b>
    where
        'a: 'b,
    {
        Facts::new(event, self.place, lines).with_secrets(self.found_secrets.clone())
    }

    /// The kinds of the secrets in the event. In a recorded event marks stand for them. Without the settings of a home, as
    /// in the examples of a rule, what is built in is looked for.
    pub fn secrets(&self) -> &[String] {
        self.secrets.get_or_init(|| {
            let raw = &self.event.raw;
            let found = match (&self.found_secrets, &*BUILT_IN) {
                (Some(found), _) => found.clone(),
                (None, Some(redactor)) => redactor.redact(raw).found,
                (None, None) => Vec::new(),
            };
            let marks = Mark::find_all(&String::from_utf8_lossy(raw));
            let mut kinds: Vec<String> = found.into_iter().map(|secret| secret.kind).collect();
            kinds.extend(marks.into_iter().map(|(_, mark)| mark.kind));
            kinds.sort_unstable();
            kinds.dedup();
            kinds
        })
    }

    /// Where the event happens, for its context in the log. All of its files are looked at for that: another rule may
    /// ask about them in a replay.
    pub fn place_to_record(&self) -> Map<String, Value> {
        self.files();
        self.place.to_record()
    }

    /// The shell lines.
    pub fn commands(&self) -> &'a [CommandFact] {
        self.lines.commands.get_or_init(|| commands_of(self.event, self.place))
    }

    /// The texts of the field that a condition names. Those of `command` are kept: many rules ask for them.
    pub(super) fn texts(&self, field: &str) -> Cow<'_, [FieldText<'a>]> {
        if field == "command" {
            let found = self.command_texts.get_or_init(|| find_texts(self.event, field));
            return Cow::Borrowed(found);
        }
        Cow::Owned(find_texts(self.event, field))
    }

    /// The programs of each line with their options, in the order of its view.
    pub(super) fn programs(&self) -> &[Vec<ProgramFact<'a>>] {
        self.programs.get_or_init(|| {
            let parsed = |it: &'a CommandFact| {
                it.view.programs.iter().map(|it| ProgramFact::new(ParsedInvocation::new(it)))
            };
            self.commands().iter().map(|command| parsed(command).collect()).collect()
        })
    }

    /// All programs, of all lines.
    pub(super) fn invocations(&self) -> impl Iterator<Item = &ParsedInvocation<'a>> {
        self.programs().iter().flatten().map(|program| &program.invocation)
    }

    /// The names of all programs.
    pub(super) fn program_names(&self) -> ProgramNames {
        *self.names.get_or_init(|| {
            let programs = self.programs().iter().flatten();
            programs.fold(ProgramNames::default(), |all, it| all.with(it.names()))
        })
    }

    /// Whether a line has a part that cannot be understood, or runs code from elsewhere.
    pub(super) fn has_opaque_parts(&self) -> bool {
        let is_opaque =
            |it: &CommandFact| !it.view.opaque.is_empty() || !it.view.foreign_code.is_empty();
        self.commands().iter().any(is_opaque)
    }

    /// Whether a file is touched in this way.
    pub(super) fn touches(&self, key: FileKey) -> bool {
        self.files().iter().any(|file| key.covers(file.access))
    }

    /// The files.
    pub fn files(&self) -> &[FileFact<'a>] {
        self.files.get_or_init(|| files_of(self.event, self.commands(), self.place, MOST_FILES))
    }

    /// Whether all files of the call are among [`files`](Self::files).
    pub fn has_all_files(&self) -> bool {
        self.files().len() < MOST_FILES
    }

    /// The hosts.
    pub fn hosts(&self) -> &[HostFact<'a>] {
        self.hosts.get_or_init(|| hosts_of(self.event, self.commands()))
    }

    /// The model that the agent says it uses.
    pub fn model(&self) -> Option<&'a str> {
        let text = |value: Option<&'a Value>| value.and_then(Value::as_str);
        let nested = |object: &str| text(self.event.field(object)?.get("model"));
        text(self.event.field("model"))
            .or_else(|| nested("extra"))
            .or_else(|| nested("llm_request"))
    }

    /// The MCP server and tool, if the call goes to one.
    pub fn mcp(&self) -> Option<McpTool<'a>> {
        let context = self.event.field("mcp_context").and_then(Value::as_object);
        if let Some(context) = context {
            let text = |key: &str| context.get(key).and_then(Value::as_str);
            return Some(McpTool { server: text("server_name")?, tool: text("tool_name")? });
        }
        let name = self.event.tool.as_ref()?.name.as_str();
        let (server, tool) = match name.strip_prefix("mcp__") {
            Some(rest) => rest.split_once("__")?,
            None => name.strip_prefix("mcp_")?.split_once('_')?,
        };
        Some(McpTool { server, tool })
    }

    /// How many bytes the tool's input has; without a tool, the payload.
    pub fn size(&self) -> usize {
        match self.event.field("tool_input") {
            Some(Value::String(text)) => text.len(),
            Some(input) => input.to_string().len(),
            None => self.event.raw.len(),
        }
    }
}
