//! Other names that code gives to modules and functions: `import shutil as s`, `from os import system as x`,
//! `const {exec: e} = child_process`, `f = os.system`. They are replaced by the first names, for the search for calls.

use std::collections::HashMap;

use super::super::limits;
use super::indirect_names::TooMany;
use super::languages::Language;

/// How many names are remembered.
const ALIASES: usize = 256;
/// The longest name.
const LONGEST: usize = 96;

/// Names and what they stand for.
type Aliases = HashMap<String, String>;

/// The code with the first names; None if it gives no others.
pub(super) fn resolved(language: Language, code: &str) -> Result<Option<String>, TooMany> {
    let aliases = aliases(language, code);
    if aliases.is_empty() {
        return Ok(None);
    }
    if aliases.len() >= ALIASES {
        return Err(TooMany);
    }
    let resolved = substituted(language, code, &aliases);
    Ok((resolved != code).then_some(resolved))
}

fn aliases(language: Language, code: &str) -> Aliases {
    let mut found = Aliases::new();
    for statement in code.split(['\n', ';']) {
        let statement = statement.trim();
        match language {
            Language::Python => python(statement, &mut found),
            Language::JavaScript => javascript(statement, &mut found),
            Language::Ruby if statement == "include FileUtils" => {
                for name in ["rm", "rm_r", "rm_f", "rm_rf", "remove_dir", "mv", "cp", "cp_r"] {
                    add(&mut found, name, &format!("FileUtils.{name}"));
                }
            }
            Language::Ruby | Language::Lua | Language::Perl | Language::Php => {
                assignment(language, statement, &mut found);
            }
            Language::Awk
            | Language::Osascript
            | Language::Vim
            | Language::Sqlite
            | Language::Rarer
            | Language::Lisp => {}
        }
    }
    found
}

fn add(aliases: &mut Aliases, name: &str, meaning: &str) {
    let name = name.trim().trim_start_matches('$');
    let meaning = meaning.trim();
    let is_short = name.len() < LONGEST && meaning.len() < LONGEST;
    let is_value =
        matches!(meaning, "None" | "True" | "False" | "null" | "true" | "false" | "undefined");
    if !is_name(name) || !is_dotted(meaning) || name == meaning || !is_short || is_value {
        return;
    }
    // What a name stands for may be such a name itself.
    let (first, rest) = match meaning.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (meaning, None),
    };
    let meaning = match (aliases.get(first), rest) {
        (Some(known), Some(rest)) => format!("{known}.{rest}"),
        (Some(known), None) => known.clone(),
        (None, _) => meaning.to_owned(),
    };
    if meaning.len() < LONGEST && aliases.len() < ALIASES {
        aliases.insert(name.to_owned(), meaning);
    }
}

fn python(statement: &str, aliases: &mut Aliases) {
    if let Some(modules) = statement.strip_prefix("import ") {
        for (module, name) in modules.split(',').filter_map(|part| part.split_once(" as ")) {
            add(aliases, name, module);
        }
    } else if let Some((module, names)) =
        statement.strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
    {
        for part in names.trim_matches(['(', ')', ' ']).split(',') {
            let (name, alias) = part.split_once(" as ").unwrap_or((part, part));
            add(aliases, alias, &format!("{}.{}", module.trim(), name.trim()));
        }
    } else {
        assignment(Language::Python, statement, aliases);
    }
}

fn javascript(statement: &str, aliases: &mut Aliases) {
    if let Some((names, module)) =
        statement.strip_prefix("import ").and_then(|rest| rest.split_once(" from "))
    {
        let module = module.trim().trim_matches(['"', '\'', '`']);
        let module = module.strip_prefix("node:").unwrap_or(module).replace('/', ".");
        let (whole, members) = names.split_once('{').unwrap_or((names, ""));
        for name in whole.split(',') {
            add(aliases, name.trim().trim_start_matches("* as "), &module);
        }
        destructured(members, " as ", &module, aliases);
        return;
    }
    // `import("fs").then(f => f.rmSync("x"))`, without the name of the module as a string.
    if let Some((module, behind)) = statement.split_once(".then(") {
        let parameter = behind.split("=>").next().unwrap_or_default();
        let parameter = parameter.trim_matches(['(', ')', ' ']);
        let module = module.rsplit(|c: char| !is_part(c) && c != '.').next().unwrap_or_default();
        add(aliases, parameter, module);
    }
    let declared = ["const", "let", "var"].iter().find_map(|word| statement.strip_prefix(word));
    let declared = declared.filter(|rest| rest.starts_with([' ', '\t', '{', '[']));
    let declared = declared.unwrap_or(statement).trim();
    if let Some((members, module)) =
        declared.strip_prefix('{').and_then(|rest| rest.split_once('}'))
    {
        let module = module.trim().trim_start_matches('=').trim();
        destructured(members, ":", module, aliases);
    } else {
        for part in declared.split(',') {
            assignment(Language::JavaScript, part, aliases);
        }
    }
}

/// `{a, b: c}` of a module.
fn destructured(members: &str, separator: &str, module: &str, aliases: &mut Aliases) {
    for part in members.trim_end_matches(['}', ' ']).split(',') {
        let (member, name) = part.split_once(separator).unwrap_or((part, part));
        add(aliases, name, &format!("{module}.{}", member.trim()));
    }
}

/// `name = module.function`.
fn assignment(language: Language, statement: &str, aliases: &mut Aliases) {
    let Some((name, value)) = statement.split_once('=') else { return };
    let (name, value) =
        (name.trim().trim_start_matches("my ").trim_start_matches("local "), value.trim());
    match language {
        // The name of a function as a string can be called.
        Language::Php | Language::Perl if value.starts_with(['"', '\'']) => {
            add(aliases, name, value.trim_matches(['"', '\'']));
        }
        Language::Perl => {
            let function = value.strip_prefix("\\&").unwrap_or_default();
            add(aliases, name, function.rsplit("::").next().unwrap_or_default());
        }
        Language::Python
        | Language::Ruby
        | Language::JavaScript
        | Language::Php
        | Language::Lua
        | Language::Awk
        | Language::Osascript
        | Language::Vim
        | Language::Sqlite
        | Language::Rarer
        | Language::Lisp => {
            if value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                add(aliases, name, value);
            }
        }
    }
}

/// The code with aliases replaced, except in strings.
fn substituted(language: Language, code: &str, aliases: &Aliases) -> String {
    let sigils = matches!(language, Language::Perl | Language::Php);
    let mut result = String::with_capacity(code.len());
    let mut rest = code;
    let mut quote = None;
    while let Some(c) = rest.chars().next() {
        if result.len() > limits::WORD_BYTES {
            break;
        }
        let length = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        if length == 0 || quote.is_some() && !matches!(c, '"' | '\'') {
            // A backslash keeps the next character from ending the string.
            let mut chars = rest.chars();
            chars.next();
            if c == '\\' {
                chars.next();
            }
            match c {
                '"' | '\'' if quote == Some(c) => quote = None,
                '"' | '\'' if quote.is_none() => quote = Some(c),
                _ => {}
            }
            let behind = chars.as_str();
            result.push_str(rest.get(..rest.len() - behind.len()).unwrap_or_default());
            rest = behind;
            continue;
        }
        let (name, behind) = rest.split_at(length);
        match aliases.get(name).filter(|_| !result.ends_with('.')) {
            Some(meaning) => {
                if sigils {
                    let kept = result.trim_end_matches(['$', '&']).len();
                    result.truncate(kept);
                    rest = behind.strip_prefix("->").unwrap_or(behind);
                } else {
                    rest = behind;
                }
                result.push_str(meaning);
            }
            None => {
                result.push_str(name);
                rest = behind;
            }
        }
    }
    result
}

const fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_name(text: &str) -> bool {
    text.chars().all(is_part) && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn is_dotted(text: &str) -> bool {
    text.split('.').all(is_name)
}
