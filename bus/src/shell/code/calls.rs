//! Finds calls in code of other languages that start programs, touch files, talk to hosts, or run further code. It
//! looks for names with literal arguments; it does not understand the languages.

use super::super::follow::Origin;
use super::super::view::Access;
use super::super::word::UNKNOWN;
use super::context::Context;
use super::indirect_names::TooMany;
use super::languages::Language;
use super::literals::{Argument, Literals};
use super::tables::{self, Meaning};
use super::{aliases, embedded, evaluation, indirect_names, path_methods};

/// Something that code does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It runs a shell line.
    Line(String),
    /// It starts a program.
    Program(Vec<String>),
    /// It reads, deletes or writes a file; with everything below it.
    File(String, Access, bool),
    /// It talks to the host of a URL.
    Host(String),
    /// It runs a text as code of the same language.
    Evaluated(String),
    /// It runs code that is not written here.
    Code(Origin),
}

/// How many effects of one code are listed.
pub(super) const EFFECTS: usize = 64;
/// How many calls of one code are looked at.
const CALLS: usize = 2_000;

/// What code does, as far as it can be seen.
pub(super) fn effects(language: Language, code: &str, home: Option<&str>) -> Vec<Effect> {
    let mut effects = Vec::new();
    match language {
        Language::Osascript => embedded::applescript(code, &mut effects),
        Language::Vim => embedded::vim(code, &mut effects),
        Language::Sqlite => embedded::sqlite(code, &mut effects),
        Language::Lisp => embedded::lisp(code, &mut effects),
        Language::Python
        | Language::Perl
        | Language::Ruby
        | Language::JavaScript
        | Language::Php
        | Language::Lua
        | Language::Rarer
        | Language::Awk => {
            let context = Context::new(code, home, Some(language));
            calls(language, &context, &mut effects);
            match with_first_names(language, code) {
                Ok(None) => {}
                Ok(Some(named)) => {
                    let mut others = Vec::new();
                    calls(language, &Context::new(&named, home, Some(language)), &mut others);
                    others.retain(|effect| !effects.contains(effect));
                    effects.append(&mut others);
                }
                Err(TooMany) => effects.push(Effect::Code(Origin::Variable)),
            }
        }
    }
    if matches!(language, Language::Ruby | Language::Perl | Language::Php | Language::Rarer) {
        embedded::backquotes(code, &mut effects);
    }
    embedded::listed_files(code, &mut effects);
    if language == Language::Awk {
        embedded::awk_pipes(code, &mut effects);
        embedded::awk_files(code, &mut effects);
    }
    if language == Language::JavaScript && code.contains(".then(eval)") {
        effects.push(Effect::Code(Origin::Download));
    }
    effects
}

/// The code with the first names of modules and functions, where it uses others; None if it does not.
fn with_first_names(language: Language, code: &str) -> Result<Option<String>, TooMany> {
    let plain = indirect_names::plain(language, code)?;
    let resolved = aliases::resolved(language, plain.as_deref().unwrap_or(code))?;
    Ok(resolved.or(plain))
}

/// The calls whose names are known.
fn calls(language: Language, context: &Context<'_>, effects: &mut Vec<Effect>) {
    let table = tables::table(language);
    let bare = matches!(language, Language::Ruby | Language::Perl | Language::Php);
    let mut left = CALLS;
    for (at, name) in names(context.code) {
        if effects.len() >= EFFECTS || left == 0 || context.is_spent() {
            // What comes behind is not looked at, so it is code that is not known.
            effects.push(Effect::Code(Origin::Variable));
            break;
        }
        let behind = context.code.get(at + name.len()..).unwrap_or_default();
        if path_methods::is_path(name) {
            left -= 1;
            path_methods::add(context.code.get(at..).unwrap_or_default(), context, effects);
        } else if behind.starts_with('(') && path_methods::is_method_of_variable(name) {
            left -= 1;
            path_methods::add_variable(name, behind, context, effects);
        }
        let Some((_, meaning)) = table.iter().find(|(known, _)| is_call_of(name, known)) else {
            continue;
        };
        // Elixir: `File.rm_rf!(path)`.
        let behind = behind.strip_prefix('!').unwrap_or(behind);
        let inside = match behind.trim_start().strip_prefix('(') {
            Some(inside) => inside,
            None if bare && behind.starts_with([' ', '\t']) => behind,
            None => continue,
        };
        left -= 1;
        let arguments = Literals::new(inside, context).arguments();
        effect(*meaning, &Called { name, arguments, inside, context }, effects);
    }
}

/// A call in a code.
#[derive(Debug)]
pub(super) struct Called<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Vec<Argument>,
    /// The code from its arguments on.
    pub(super) inside: &'a str,
    pub(super) context: &'a Context<'a>,
}

/// Whether a dotted name ends in a name of the table: `cp.execSync`, `require('fs').rmSync`.
fn is_call_of(name: &str, known: &str) -> bool {
    let Some(before) = name.strip_suffix(known) else { return false };
    if before.is_empty() {
        return true;
    }
    let is_common = matches!(
        known,
        "run" | "open" | "exec" | "eval" | "system" | "rm" | "load" | "unlink" | "file" | "fetch"
    );
    before.ends_with('.') && (!is_common || is_module_call(name))
}

/// `re.exec`, `cursor.exec`, `model.eval()` are methods of something else.
fn is_module_call(name: &str) -> bool {
    let module = name.split('.').next().unwrap_or_default();
    matches!(
        module,
        "" | "os"
            | "subprocess"
            | "sp"
            | "child_process"
            | "cp"
            | "fs"
            | "builtins"
            | "io"
            | "posix"
            | "Kernel"
            | "promises"
    )
}

/// The dotted names in a code, each with its position.
fn names(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let bytes = code.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let from = at;
            while bytes.get(at).is_some_and(|byte| part(*byte)) {
                at += 1;
            }
            if at > from {
                return Some((from, code.get(from..at)?));
            }
            at += 1;
        }
        None
    })
}

fn effect(meaning: Meaning, call: &Called<'_>, effects: &mut Vec<Effect>) {
    let mut file = |path: Option<&Argument>, access, tree| {
        if let Some(Argument::Text(path)) = path {
            add_file(path, access, tree, effects);
        }
    };
    let arguments = &call.arguments;
    match meaning {
        Meaning::Runs | Meaning::Executes => runs(meaning, call, effects),
        Meaning::Deletes | Meaning::DeletesTree => {
            let tree = matches!(meaning, Meaning::DeletesTree);
            for argument in arguments {
                match argument {
                    Argument::Text(path) => add_file(path, Access::Delete, tree, effects),
                    Argument::List(paths) => {
                        for path in paths {
                            add_file(path, Access::Delete, tree, effects);
                        }
                    }
                    Argument::Other(_) => {}
                }
            }
        }
        Meaning::Writes => file(arguments.first(), Access::Write, false),
        Meaning::Reads => match arguments.first() {
            Some(Argument::Text(url)) if url.contains("://") => {
                effects.push(Effect::Host(url.clone()));
            }
            path => file(path, Access::Read, false),
        },
        Meaning::Copies => {
            file(arguments.first(), Access::Read, true);
            file(arguments.get(1), Access::Write, true);
        }
        Meaning::Moves => {
            file(arguments.first(), Access::Delete, true);
            file(arguments.get(1), Access::Write, true);
        }
        Meaning::Opens => {
            let writes = matches!(arguments.get(1), Some(Argument::Text(mode))
                if mode.len() <= 4 && mode.contains(['w', 'a', 'x', '+']));
            file(arguments.first(), if writes { Access::Write } else { Access::Read }, false);
        }
        Meaning::OpensPerl => embedded::perl_open(arguments, effects),
        Meaning::Fetches => {
            let urls = arguments.iter().filter_map(|argument| match argument {
                Argument::Text(url) if url.contains("://") => Some(Effect::Host(url.clone())),
                Argument::Text(_) | Argument::List(_) | Argument::Other(_) => None,
            });
            effects.extend(urls.take(1));
            if call.name.ends_with("urlretrieve") {
                effect(Meaning::Writes, &call.without_first(), effects);
            }
        }
        Meaning::Evaluates => evaluation::evaluates(call, effects),
    }
}

impl Called<'_> {
    /// The same call without its first argument.
    fn without_first(&self) -> Self {
        let arguments = self.arguments.get(1..).unwrap_or_default().to_vec();
        Self { arguments, ..*self }
    }
}

/// Adds a file, unless nothing of its path is known, or it is the terminal or a device that keeps nothing.
pub(super) fn add_file(path: &str, access: Access, tree: bool, effects: &mut Vec<Effect>) {
    if path.starts_with("/dev/std") || matches!(path, "/dev/null" | "/dev/tty" | "-" | "") {
        return;
    }
    let effect = Effect::File(path.to_owned(), access, tree);
    if path.chars().any(|c| c != UNKNOWN) && !effects.contains(&effect) {
        effects.push(effect);
    }
}

/// A call that starts a program.
fn runs(meaning: Meaning, call: &Called<'_>, effects: &mut Vec<Effect>) {
    let name = call.name;
    let arguments: Vec<Argument> = call
        .arguments
        .iter()
        .map(|argument| match argument {
            Argument::Other(text) => {
                call.context.assigned(text, 0).unwrap_or_else(|| argument.clone())
            }
            Argument::Text(_) | Argument::List(_) => argument.clone(),
        })
        .collect();
    match arguments.as_slice() {
        [Argument::List(words), ..] if !words.is_empty() => {
            effects.push(Effect::Program(words.clone()));
        }
        // The first word of the list of `execvp` is the name again.
        [Argument::Text(program), Argument::List(words), ..] => {
            let again = name.contains("exec") && name.contains("os.") || name.contains("spawnv");
            let mut all = vec![program.clone()];
            all.extend(words.iter().skip(usize::from(again)).cloned());
            effects.push(Effect::Program(all));
        }
        [Argument::Text(line), rest @ ..] => {
            let words: Vec<String> = rest
                .iter()
                .map_while(|argument| match argument {
                    Argument::Text(word) => Some(word.clone()),
                    Argument::List(_) | Argument::Other(_) => None,
                })
                .collect();
            let again = name.starts_with("os.execl");
            if words.is_empty() && !matches!(meaning, Meaning::Executes) {
                effects.push(Effect::Line(line.clone()));
            } else {
                let words = words.into_iter().skip(usize::from(again));
                effects.push(Effect::Program(std::iter::once(line.clone()).chain(words).collect()));
            }
        }
        [Argument::Other(text), ..] if name != "run" => {
            if let Some(origin) = evaluation::origin(text, call.context) {
                effects.push(Effect::Code(origin));
            }
            effects.push(Effect::Program(vec![UNKNOWN.to_string()]));
        }
        _ => {}
    }
    if let Some(Argument::Text(text)) = arguments.first()
        && text.starts_with(UNKNOWN)
        && let Some(origin) = evaluation::origin(call.raw(), call.context)
    {
        effects.push(Effect::Code(origin));
    }
}
