//! Finds calls in code of other languages that start programs, delete or write files, or run further code. It looks
//! for names with literal arguments; it does not understand the languages.

use super::super::follow::Origin;
use super::super::view::Access;
use super::super::word::UNKNOWN;
use super::languages::Language;
use super::literals::{Argument, Literals};

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

/// What a call with a certain name does.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    /// A shell line, or a list of words.
    Runs,
    /// A program and a list of its words, or all words one by one.
    Executes,
    Deletes,
    DeletesTree,
    Writes,
    /// `open`: writes if the mode says so.
    Opens,
    /// Code of the same language.
    Evaluates,
}

const PYTHON: &[(&str, Meaning)] = &[
    ("os.system", Meaning::Runs),
    ("os.popen", Meaning::Runs),
    ("subprocess.run", Meaning::Runs),
    ("subprocess.call", Meaning::Runs),
    ("subprocess.check_call", Meaning::Runs),
    ("subprocess.check_output", Meaning::Runs),
    ("subprocess.Popen", Meaning::Runs),
    ("subprocess.getoutput", Meaning::Runs),
    ("subprocess.getstatusoutput", Meaning::Runs),
    ("sp.run", Meaning::Runs),
    ("Popen", Meaning::Runs),
    ("check_output", Meaning::Runs),
    ("check_call", Meaning::Runs),
    ("create_subprocess_shell", Meaning::Runs),
    ("pty.spawn", Meaning::Runs),
    ("system", Meaning::Runs),
    ("run", Meaning::Runs),
    ("os.execvp", Meaning::Executes),
    ("os.execv", Meaning::Executes),
    ("os.execl", Meaning::Executes),
    ("os.execlp", Meaning::Executes),
    ("os.execve", Meaning::Executes),
    ("os.spawnvp", Meaning::Executes),
    ("os.posix_spawn", Meaning::Executes),
    ("create_subprocess_exec", Meaning::Executes),
    ("shutil.rmtree", Meaning::DeletesTree),
    ("rmtree", Meaning::DeletesTree),
    ("os.removedirs", Meaning::DeletesTree),
    ("os.remove", Meaning::Deletes),
    ("os.unlink", Meaning::Deletes),
    ("os.rmdir", Meaning::Deletes),
    ("os.truncate", Meaning::Writes),
    ("open", Meaning::Opens),
    ("exec", Meaning::Evaluates),
    ("eval", Meaning::Evaluates),
];

const JAVASCRIPT: &[(&str, Meaning)] = &[
    ("execSync", Meaning::Runs),
    ("exec", Meaning::Runs),
    ("spawnSync", Meaning::Executes),
    ("spawn", Meaning::Executes),
    ("execFileSync", Meaning::Executes),
    ("execFile", Meaning::Executes),
    ("Deno.Command", Meaning::Executes),
    ("Deno.run", Meaning::Executes),
    ("Bun.spawn", Meaning::Runs),
    ("Bun.spawnSync", Meaning::Runs),
    ("rmSync", Meaning::DeletesTree),
    ("rm", Meaning::DeletesTree),
    ("rimraf", Meaning::DeletesTree),
    ("removeSync", Meaning::DeletesTree),
    ("rmdirSync", Meaning::DeletesTree),
    ("rmdir", Meaning::DeletesTree),
    ("unlinkSync", Meaning::Deletes),
    ("unlink", Meaning::Deletes),
    ("Deno.remove", Meaning::DeletesTree),
    ("Deno.removeSync", Meaning::DeletesTree),
    ("writeFileSync", Meaning::Writes),
    ("writeFile", Meaning::Writes),
    ("appendFileSync", Meaning::Writes),
    ("appendFile", Meaning::Writes),
    ("createWriteStream", Meaning::Writes),
    ("Deno.writeTextFile", Meaning::Writes),
    ("Deno.writeTextFileSync", Meaning::Writes),
    ("Bun.write", Meaning::Writes),
    ("eval", Meaning::Evaluates),
    ("Function", Meaning::Evaluates),
];

const RUBY: &[(&str, Meaning)] = &[
    ("system", Meaning::Runs),
    ("exec", Meaning::Runs),
    ("spawn", Meaning::Runs),
    ("IO.popen", Meaning::Runs),
    ("popen", Meaning::Runs),
    ("Open3.capture2", Meaning::Runs),
    ("Open3.capture3", Meaning::Runs),
    ("FileUtils.rm_rf", Meaning::DeletesTree),
    ("FileUtils.rm_r", Meaning::DeletesTree),
    ("FileUtils.remove_dir", Meaning::DeletesTree),
    ("FileUtils.remove_entry", Meaning::DeletesTree),
    ("FileUtils.rm_f", Meaning::Deletes),
    ("FileUtils.rm", Meaning::Deletes),
    ("File.delete", Meaning::Deletes),
    ("File.unlink", Meaning::Deletes),
    ("Dir.rmdir", Meaning::Deletes),
    ("File.write", Meaning::Writes),
    ("IO.write", Meaning::Writes),
    ("File.open", Meaning::Opens),
    ("File.new", Meaning::Opens),
    ("eval", Meaning::Evaluates),
];

const PERL: &[(&str, Meaning)] = &[
    ("system", Meaning::Runs),
    ("exec", Meaning::Runs),
    ("unlink", Meaning::Deletes),
    ("rmdir", Meaning::Deletes),
    ("rmtree", Meaning::DeletesTree),
    ("remove_tree", Meaning::DeletesTree),
    ("eval", Meaning::Evaluates),
];

const PHP: &[(&str, Meaning)] = &[
    ("system", Meaning::Runs),
    ("exec", Meaning::Runs),
    ("shell_exec", Meaning::Runs),
    ("passthru", Meaning::Runs),
    ("popen", Meaning::Runs),
    ("proc_open", Meaning::Runs),
    ("unlink", Meaning::Deletes),
    ("rmdir", Meaning::Deletes),
    ("file_put_contents", Meaning::Writes),
    ("fopen", Meaning::Opens),
    ("eval", Meaning::Evaluates),
];

const LUA: &[(&str, Meaning)] = &[
    ("os.execute", Meaning::Runs),
    ("io.popen", Meaning::Runs),
    ("os.remove", Meaning::Deletes),
    ("io.open", Meaning::Opens),
    ("load", Meaning::Evaluates),
    ("loadstring", Meaning::Evaluates),
];

const AWK: &[(&str, Meaning)] = &[("system", Meaning::Runs)];

/// How many effects of one code are listed.
const EFFECTS: usize = 64;

/// What code does, as far as it can be seen.
pub(super) fn effects(language: Language, code: &str, home: Option<&str>) -> Vec<Effect> {
    let mut effects = Vec::new();
    let table = match language {
        Language::Python => PYTHON,
        Language::JavaScript => JAVASCRIPT,
        Language::Ruby => RUBY,
        Language::Perl => PERL,
        Language::Php => PHP,
        Language::Lua => LUA,
        Language::Awk => AWK,
        Language::Osascript => {
            applescript(code, &mut effects);
            return effects;
        }
        Language::Vim => {
            vim(code, &mut effects);
            return effects;
        }
        Language::Sqlite => {
            sqlite(code, &mut effects);
            return effects;
        }
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
        backquotes(code, &mut effects);
    }
    if language == Language::Awk {
        awk_pipes(code, &mut effects);
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

/// `` `line` ``, `qx(line)`, `%x(line)`.
fn backquotes(code: &str, effects: &mut Vec<Effect>) {
    let pieces: Vec<&str> = code.split('`').take(EFFECTS).collect();
    for line in pieces.chunks(2).take(pieces.len() / 2).filter_map(|pair| pair.get(1)) {
        effects.push(Effect::Line((*line).to_owned()));
    }
    for (open, close) in [
        ("qx(", ')'),
        ("qx{", '}'),
        ("qx/", '/'),
        ("%x(", ')'),
        ("%x{", '}'),
        ("%x[", ']'),
        ("qx[", ']'),
    ] {
        for (at, _) in code.match_indices(open).take(8) {
            let inside = code.get(at + open.len()..).unwrap_or_default();
            if let Some((line, _)) = inside.split_once(close) {
                effects.push(Effect::Line(line.to_owned()));
            }
        }
    }
}

/// `"line" | getline` and `print | "line"`.
fn awk_pipes(code: &str, effects: &mut Vec<Effect>) {
    for (at, _) in code.match_indices('|').take(16) {
        let (before, behind) = (
            code.get(..at).unwrap_or_default().trim_end(),
            code.get(at + 1..).unwrap_or_default().trim_start(),
        );
        if behind.starts_with("getline") {
            let quoted = before.strip_suffix('"').and_then(|text| text.rsplit_once('"'));
            effects.extend(quoted.map(|(_, line)| Effect::Line(line.to_owned())));
        } else if let Some((line, _)) =
            behind.strip_prefix('"').and_then(|text| text.split_once('"'))
        {
            effects.push(Effect::Line(line.to_owned()));
        }
    }
}

/// `do shell script "line"`.
fn applescript(code: &str, effects: &mut Vec<Effect>) {
    for (at, found) in code.match_indices("do shell script").take(8) {
        let inside = code.get(at + found.len()..).unwrap_or_default();
        if let Some(Argument::Text(line)) =
            Literals::new(inside, None).arguments().into_iter().next()
        {
            effects.push(Effect::Line(line));
        }
    }
}

/// `!line`, also behind `:`, `|`, `r` or `w`.
fn vim(code: &str, effects: &mut Vec<Effect>) {
    if let Some((before, line)) = code.split_once('!')
        && before
            .trim_start_matches(':')
            .chars()
            .all(|c| c.is_ascii_alphabetic() || matches!(c, ' ' | '%' | '.'))
        && before.len() < 12
        && !matches!(
            before.trim_start_matches(':'),
            "q" | "wq" | "x" | "qa" | "wqa" | "e" | "w" | "bd"
        )
    {
        effects.push(Effect::Line(line.to_owned()));
    }
    if let Some((_, inside)) = code.split_once("system(")
        && let Some(Argument::Text(line)) =
            Literals::new(inside, None).arguments().into_iter().next()
    {
        effects.push(Effect::Line(line));
    }
}

/// `.shell line` and `.system line`.
fn sqlite(code: &str, effects: &mut Vec<Effect>) {
    for line in code.lines().take(64) {
        let line = line.trim_start();
        let command = line.strip_prefix(".shell ").or_else(|| line.strip_prefix(".system "));
        effects.extend(command.map(|command| Effect::Line(command.to_owned())));
    }
}
