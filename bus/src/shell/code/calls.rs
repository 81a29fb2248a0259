//! Finds calls in code of other languages that start programs, delete or write files, or run further code. It looks
//! for names with literal arguments; it does not understand the languages.

use super::super::follow::Origin;
use super::super::view::Access;
use super::super::word::UNKNOWN;
use super::embedded;
use super::languages::Language;
use super::literals::{Argument, Literals};
use super::tables::{self, Meaning};

/// Something that code does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It runs a shell line.
    Line(String),
    /// It starts a program.
    Program(Vec<String>),
    /// It deletes or writes a file; with everything below it.
    File(String, Access, bool),
    /// It runs code that is not written here.
    Code(Origin),
}

/// How many effects of one code are listed.
pub(super) const EFFECTS: usize = 64;

/// What code does, as far as it can be seen.
pub(super) fn effects(language: Language, code: &str, home: Option<&str>) -> Vec<Effect> {
    let mut effects = Vec::new();
    let table = match language {
        Language::Osascript => {
            embedded::applescript(code, &mut effects);
            return effects;
        }
        Language::Vim => {
            embedded::vim(code, &mut effects);
            return effects;
        }
        Language::Sqlite => {
            embedded::sqlite(code, &mut effects);
            return effects;
        }
        Language::Python
        | Language::Perl
        | Language::Ruby
        | Language::JavaScript
        | Language::Php
        | Language::Lua
        | Language::Awk => tables::table(language),
    };
    let bare = matches!(language, Language::Ruby | Language::Perl | Language::Php);
    for (name, behind) in names(code) {
        if effects.len() >= EFFECTS {
            break;
        }
        path_methods(name, behind, home, &mut effects);
        let Some((_, meaning)) = table.iter().find(|(known, _)| is_call_of(name, known)) else {
            continue;
        };
        let arguments = match behind.trim_start().strip_prefix('(') {
            Some(inside) => inside,
            None if bare && behind.starts_with([' ', '\t']) => behind,
            None => continue,
        };
        let arguments = Literals::new(arguments, home).arguments();
        effect(*meaning, name, arguments, code, home, &mut effects);
    }
    if matches!(language, Language::Ruby | Language::Perl | Language::Php) {
        embedded::backquotes(code, &mut effects);
    }
    if language == Language::Awk {
        embedded::awk_pipes(code, &mut effects);
    }
    effects
}

/// Whether a dotted name ends in a name of the table: `cp.execSync`, `require('fs').rmSync`.
fn is_call_of(name: &str, known: &str) -> bool {
    name == known
        || (!matches!(
            known,
            "run" | "open" | "exec" | "eval" | "system" | "rm" | "load" | "unlink"
        ) || is_module_call(name))
            && name.strip_suffix(known).is_some_and(|before| before.ends_with('.'))
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

/// The dotted names in a code, each with what stands behind it.
fn names(code: &str) -> impl Iterator<Item = (&str, &str)> {
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
                return Some((code.get(from..at)?, code.get(at..)?));
            }
            at += 1;
        }
        None
    })
}

fn effect(
    meaning: Meaning,
    name: &str,
    arguments: Vec<Argument>,
    code: &str,
    home: Option<&str>,
    effects: &mut Vec<Effect>,
) {
    match meaning {
        Meaning::Runs | Meaning::Executes => runs(meaning, name, arguments, code, home, effects),
        Meaning::Deletes | Meaning::DeletesTree => {
            let tree = matches!(meaning, Meaning::DeletesTree);
            for argument in arguments {
                match argument {
                    Argument::Text(path) => effects.push(Effect::File(path, Access::Delete, tree)),
                    Argument::List(paths) => {
                        effects.extend(
                            paths.into_iter().map(|path| Effect::File(path, Access::Delete, tree)),
                        );
                    }
                    Argument::Other(text) => {
                        if let Some(Argument::Text(path)) = assigned(&text, code, home) {
                            effects.push(Effect::File(path, Access::Delete, tree));
                        }
                    }
                }
            }
        }
        Meaning::Writes => {
            if let Some(Argument::Text(path)) = arguments.into_iter().next() {
                effects.push(Effect::File(path, Access::Write, false));
            }
        }
        Meaning::Opens => {
            let mut arguments = arguments.into_iter();
            if let (Some(Argument::Text(path)), Some(Argument::Text(mode))) =
                (arguments.next(), arguments.next())
                && mode.len() <= 4
                && mode.contains(['w', 'a', 'x', '+'])
            {
                effects.push(Effect::File(path, Access::Write, false));
            }
        }
        Meaning::Evaluates => evaluates(&arguments, effects),
    }
}

/// A call that starts a program.
fn runs(
    meaning: Meaning,
    name: &str,
    arguments: Vec<Argument>,
    code: &str,
    home: Option<&str>,
    effects: &mut Vec<Effect>,
) {
    let arguments: Vec<Argument> = arguments
        .into_iter()
        .map(|argument| match &argument {
            Argument::Other(text) => assigned(text, code, home).unwrap_or(argument),
            Argument::Text(_) | Argument::List(_) => argument,
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
        [Argument::Other(_), ..] if name != "run" => {
            effects.push(Effect::Program(vec![UNKNOWN.to_string()]));
        }
        _ => {}
    }
}

/// `exec(…)` and `eval(…)` of something that is not written here.
fn evaluates(arguments: &[Argument], effects: &mut Vec<Effect>) {
    if let Some(Argument::Other(text)) = arguments.first() {
        let lower = text.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let origin = if has(&["urlopen", "requests.", "http", "fetch(", "socket", "urllib"]) {
            Origin::Download
        } else if has(&[
            "base64",
            "b64",
            "decode",
            "decompress",
            "atob",
            "unhexlify",
            "fromhex",
            "rot13",
            "codecs",
            "buffer.from",
        ]) {
            Origin::Decoded
        } else if lower.is_empty() || has(&["compile("]) {
            return;
        } else {
            Origin::Variable
        };
        effects.push(Effect::Code(origin));
    }
}

/// The literal that a variable was assigned earlier in the code.
fn assigned(name: &str, code: &str, home: Option<&str>) -> Option<Argument> {
    let name =
        name.split(['.', '[', '(']).next().unwrap_or_default().trim().trim_start_matches('$');
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    let mut from = 0;
    for _ in 0..16 {
        let at = from + code.get(from..)?.find(name)?;
        from = at + name.len();
        let behind = code.get(from..)?.trim_start();
        if let Some(value) = behind.strip_prefix('=').filter(|value| !value.starts_with('=')) {
            let value = Literals::new(value, home).arguments().into_iter().next()?;
            return (!matches!(value, Argument::Other(_))).then_some(value);
        }
    }
    None
}

/// `Path('x').unlink()`, `.rmdir()`, `.write_text(…)`.
fn path_methods(name: &str, behind: &str, home: Option<&str>, effects: &mut Vec<Effect>) {
    if !matches!(name, "Path" | "pathlib.Path" | "Bun.file" | "Pathname") {
        return;
    }
    let Some(inside) = behind.strip_prefix('(') else { return };
    let Some(Argument::Text(path)) = Literals::new(inside, home).arguments().into_iter().next()
    else {
        return;
    };
    let Some((_, method)) = inside.split_once(')') else { return };
    let method = method.trim_start_matches(".expanduser()").trim_start_matches(".resolve()");
    let starts = |names: &[&str]| names.iter().any(|name| method.starts_with(name));
    if starts(&[".unlink", ".rmdir", ".delete"]) {
        effects.push(Effect::File(path, Access::Delete, false));
    } else if starts(&[".rmtree"]) {
        effects.push(Effect::File(path, Access::Delete, true));
    } else if starts(&[".write_text", ".write_bytes", ".touch", ".open('w", ".open(\"w", ".write"])
    {
        effects.push(Effect::File(path, Access::Write, false));
    }
}
