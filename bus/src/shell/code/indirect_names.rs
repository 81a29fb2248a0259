//! Names of modules and functions that are written as strings: `__import__("os")`, `getattr(os, "system")`,
//! `require("fs")["rmSync"]`, `Kernel.send(:system, …)`. They are replaced by the plain names, for the search for calls.

use super::context::Context;
use super::languages::Language;
use super::literals::{Argument, Literals};

/// How many characters such an expression may have.
const LONGEST: usize = 160;
/// How many places of one code are looked at.
const PLACES: usize = 1_000;
/// How deep they may be nested.
const DEPTH: usize = 4;

/// How a name is written as a string.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// The string is the name of a module: `require("fs")`.
    Module,
    /// An object and the name of its member: `getattr(os, "system")`.
    Member,
    /// A member behind an object: `os.__dict__["system"]`.
    Index,
    /// A function and its arguments: `send(:system, "line")`.
    Call,
    /// A function, without its arguments: `method(:system).call("line")`.
    Function,
}

const PYTHON: &[(&str, Form)] = &[
    ("__import__(", Form::Module),
    ("importlib.import_module(", Form::Module),
    ("import_module(", Form::Module),
    ("sys.modules[", Form::Module),
    ("getattr(", Form::Member),
    (".__dict__[", Form::Index),
    (".__getattribute__(", Form::Index),
];
const JAVASCRIPT: &[(&str, Form)] = &[
    ("process.mainModule.require(", Form::Module),
    ("require(", Form::Module),
    ("await import(", Form::Module),
    ("import(", Form::Module),
    ("[", Form::Index),
    ("?.[", Form::Index),
];
const RUBY: &[(&str, Form)] = &[
    (".send(", Form::Call),
    (".public_send(", Form::Call),
    (".__send__(", Form::Call),
    ("method(", Form::Function),
];
const PERL: &[(&str, Form)] = &[("&{", Form::Function)];
const PHP: &[(&str, Form)] =
    &[("call_user_func(", Form::Call), ("call_user_func_array(", Form::Call)];

/// The code has more such names than are looked at.
#[derive(Debug)]
pub(super) struct TooMany;

/// The code with plain names; None if nothing is written in such a way.
pub(super) fn plain(language: Language, code: &str) -> Result<Option<String>, TooMany> {
    let forms = match language {
        Language::Python => PYTHON,
        Language::JavaScript => JAVASCRIPT,
        Language::Ruby => RUBY,
        Language::Perl => PERL,
        Language::Php => PHP,
        Language::Lua
        | Language::Awk
        | Language::Osascript
        | Language::Vim
        | Language::Sqlite
        | Language::Rarer
        | Language::Lisp => {
            return Ok(None);
        }
    };
    if !forms.iter().any(|(start, _)| code.contains(start)) {
        return Ok(None);
    }
    let plain = replaced(language, forms, code, DEPTH).ok_or(TooMany)?;
    Ok((plain != code).then_some(plain))
}

/// None if there are too many places.
fn replaced(
    language: Language,
    forms: &[(&str, Form)],
    code: &str,
    depth: usize,
) -> Option<String> {
    let mut places = 0;
    let mut result = String::with_capacity(code.len());
    let mut at = 0;
    let firsts: Vec<u8> = forms.iter().filter_map(|(start, _)| start.bytes().next()).collect();
    while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
        let ordinary = rest.bytes().position(|byte| firsts.contains(&byte)).unwrap_or(rest.len());
        if ordinary > 0 {
            result.push_str(rest.get(..ordinary).unwrap_or_default());
            at += ordinary;
            continue;
        }
        let before = result.bytes().next_back().unwrap_or(b' ');
        let in_name = before.is_ascii_alphanumeric() || before == b'_';
        if places > PLACES {
            return None;
        }
        let found = forms.iter().find_map(|(start, form)| {
            // `[` follows an object, the other forms start a name.
            let fits = match form {
                Form::Index => in_name || matches!(before, b')' | b']'),
                Form::Call => true,
                Form::Module | Form::Member | Form::Function => !in_name && before != b'.',
            };
            let inside = rest.strip_prefix(start).filter(|_| fits)?;
            if matches!(form, Form::Index) && !inside.trim_start().starts_with(['"', '\'', '`']) {
                return None;
            }
            places += 1;
            let (text, used) = name(language, forms, *form, inside, depth)?;
            Some((text, start.len() + used))
        });
        match found {
            Some((text, used)) => {
                result.push_str(&text);
                at += used;
            }
            None => {
                let length = rest.chars().next().map_or(1, char::len_utf8);
                result.push_str(rest.get(..length).unwrap_or_default());
                at += length;
            }
        }
    }
    Some(result)
}

/// The plain name that an expression stands for, and how long it is from behind its bracket.
fn name(
    language: Language,
    forms: &[(&str, Form)],
    form: Form,
    inside: &str,
    depth: usize,
) -> Option<(String, usize)> {
    let depth = depth.checked_sub(1)?;
    let end = closing(inside)?;
    let inner = inside.get(..end)?;
    match form {
        Form::Module => {
            let module = string(language, inner)?;
            let module = module.strip_prefix("node:").unwrap_or(&module);
            let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '.' };
            Some((module.chars().map(plain).collect(), end + 1))
        }
        Form::Member => {
            let (object, member) = inner.split_at_checked(comma(inner)?)?;
            let object = replaced(language, forms, object.trim(), depth)?;
            // Which function of such a module is called is not known: it may be the worst.
            let worst = || match object.as_str() {
                "os" => Some("system".to_owned()),
                "subprocess" => Some("run".to_owned()),
                "shutil" => Some("rmtree".to_owned()),
                _ => None,
            };
            let is_call = inside.get(end + 1..).is_some_and(|behind| behind.starts_with('('));
            let member =
                string(language, member.get(1..)?).or_else(|| is_call.then(worst).flatten())?;
            is_name(&member).then(|| (format!("{object}.{member}"), end + 1))
        }
        Form::Index => {
            let member = string(language, inner)?;
            is_name(&member).then(|| (format!(".{member}"), end + 1))
        }
        Form::Call => {
            let comma = comma(inner)?;
            let function = string(language, inner.get(..comma)?)?;
            is_name(&function).then(|| (format!(";{function}("), comma + 1))
        }
        Form::Function => {
            let function = string(language, inner)?;
            let behind = inside.get(end + 1..)?;
            let call = if behind.starts_with(".call(") { ".call".len() } else { 0 };
            is_name(&function).then(|| (function, end + 1 + call))
        }
    }
}

/// The string that an expression is: a literal, parts of one joined by `+`, or a symbol of Ruby.
fn string(language: Language, expression: &str) -> Option<String> {
    let expression = expression.trim();
    if let Some(symbol) = expression.strip_prefix(':').filter(|_| language == Language::Ruby) {
        return Some(symbol.trim_matches('"').to_owned());
    }
    if !expression.starts_with(['"', '\'', '`']) {
        return None;
    }
    let context = Context::new("", None, Some(language));
    match Literals::new(expression, &context).expression() {
        Argument::Text(text) => Some(text),
        Argument::List(_) | Argument::Other(_) => None,
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Where the bracket closes that is open.
fn closing(text: &str) -> Option<usize> {
    at_depth_zero(text, |c| matches!(c, ')' | ']' | '}'))
}

/// Where the first comma is that is in no brackets.
fn comma(text: &str) -> Option<usize> {
    at_depth_zero(text, |c| c == ',')
}

fn at_depth_zero(text: &str, wanted: impl Fn(char) -> bool) -> Option<usize> {
    let (mut open, mut quote) = (0_usize, None);
    for (at, c) in text.char_indices().take(LONGEST) {
        match c {
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => {}
            '"' | '\'' => quote = Some(c),
            _ if open == 0 && wanted(c) => return Some(at),
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.checked_sub(1)?,
            _ => {}
        }
    }
    None
}
