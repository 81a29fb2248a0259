//! Which files `find` and `fd` find: the directories where they start, or something below them if they choose by
//! name, age or size.

use super::super::word::{UNKNOWN, Word};

/// What a search looks for below a directory where it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Most files, so that whatever is done to them is done to the directory.
    All,
    /// Some files.
    Some,
    /// Files of this name, which may have wildcards.
    Named(String),
}

impl Selection {
    /// The path that stands for what is found below a start.
    pub(crate) fn below(&self, start: &Word) -> Word {
        let directory = start.as_str().strip_suffix('/').unwrap_or(start.as_str());
        match self {
            Self::All => start.clone(),
            Self::Some => Word::new(format!("{directory}/{UNKNOWN}"), start.is_glob()),
            Self::Named(name) => {
                let glob = start.is_glob() || name.contains(['*', '?', '[']);
                Word::new(format!("{directory}/{UNKNOWN}/{name}"), glob)
            }
        }
    }
}

/// What the arguments of `find` choose. A test behind `!` leaves most files, and those for types and depths do not
/// choose.
pub(crate) fn find_selection<'a>(args: impl Iterator<Item = &'a str>) -> Selection {
    let mut selection = Selection::All;
    let mut negated = false;
    let mut args = args.peekable();
    while let Some(arg) = args.next() {
        let value = args.peek().copied().unwrap_or_default();
        if is_action(arg) {
            break;
        }
        if !negated && is_choice(arg, value) {
            let named = matches!(arg, "-name" | "-iname") && !value.contains(UNKNOWN);
            selection = match selection {
                Selection::All if named => Selection::Named(value.to_owned()),
                Selection::All | Selection::Some | Selection::Named(_) => Selection::Some,
            };
        }
        negated = matches!(arg, "!" | "-not" | "\\!");
    }
    selection
}

/// Actions end the tests: what stands behind them belongs to the program.
fn is_action(arg: &str) -> bool {
    matches!(arg, "-exec" | "-execdir" | "-ok" | "-okdir")
}

/// Whether a test of `find` holds for some files only.
fn is_choice(test: &str, value: &str) -> bool {
    match test {
        "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-iwholename" | "-regex"
        | "-iregex" => !value.chars().all(|c| matches!(c, '*' | '.' | '/')) || value == ".",
        "-mtime" | "-mmin" | "-atime" | "-amin" | "-ctime" | "-cmin" | "-empty" | "-size"
        | "-inum" | "-samefile" | "-lname" | "-anewer" | "-cnewer" => true,
        _ => test.starts_with("-newer"),
    }
}

/// Options of `fd` that take the next word.
const FD_VALUES: &[&str] = &[
    "-e",
    "-E",
    "-t",
    "-d",
    "-S",
    "-c",
    "-j",
    "-o",
    "--extension",
    "--exclude",
    "--type",
    "--max-depth",
    "--min-depth",
    "--exact-depth",
    "--size",
    "--changed-within",
    "--changed-before",
    "--owner",
    "--max-results",
    "--color",
    "--threads",
    "--base-directory",
];

/// What the arguments of `fd` choose, and where it starts: `fd pattern directory…`.
pub(super) fn fd_selection<'a>(args: &'a [&'a Word]) -> (Selection, Vec<&'a Word>) {
    let mut selection = Selection::All;
    let mut operands = Vec::new();
    let mut starts = Vec::new();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--search-path" => starts.extend(words.next().copied()),
            option if FD_VALUES.contains(&option) => {
                if matches!(option, "-e" | "--extension" | "-S" | "--size")
                    || option.contains("--changed")
                {
                    selection = Selection::Some;
                }
                words.next();
            }
            option if option.starts_with('-') && option.len() > 1 => {}
            _ => operands.push(*word),
        }
    }
    let mut operands = operands.into_iter();
    if let Some(pattern) = operands.next()
        && !pattern.as_str().chars().all(|c| matches!(c, '.' | '*' | '^' | '$'))
    {
        selection = Selection::Some;
    }
    starts.extend(operands);
    (selection, starts)
}
