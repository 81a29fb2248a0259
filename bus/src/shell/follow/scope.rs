//! What a shell knows at one point of a script: its variables, directory, aliases and parameters. A subshell works on
//! a copy.

use std::cell::Cell;
use std::rc::Rc;

use super::super::limits;
use super::super::view::Directory;
use super::super::word::{UNKNOWN, Word};
use super::flow::Origin;

/// The value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// It may have unknown parts; the origin tells where those come from.
    Text(Rc<str>, Origin),
    /// One of several: a branch that may not run has changed it.
    Either(Vec<Rc<str>>),
    /// An array.
    List(Vec<Word>),
}

impl Value {
    pub(crate) fn text(text: impl Into<Rc<str>>, origin: Origin) -> Self {
        Self::Text(text.into(), origin)
    }

    /// A path of a loop. Wildcards in it have been expanded by the shell, so it stays a path with wildcards even between
    /// quotes: it is kept as an array of one word.
    pub(crate) fn path(word: &Word, origin: Origin) -> Self {
        if word.is_glob() {
            Self::List(vec![word.clone()])
        } else {
            Self::text(word.as_str(), origin)
        }
    }

    /// A value of which nothing is known.
    pub(crate) fn unknown(origin: Origin) -> Self {
        Self::text(UNKNOWN.to_string(), origin)
    }
}

/// Variables and their values; shared until one side changes them.
pub(crate) type Variables = Rc<Vec<(Rc<str>, Value)>>;

/// The state of a shell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// The variables that the line has assigned; the latest value of each.
    pub(crate) variables: Variables,
    pub(crate) directory: Directory,
    pub(crate) previous: Option<Directory>,
    pub(crate) stack: Vec<Directory>,
    /// `$0`, `$1`, …, if they are known.
    pub(crate) parameters: Option<Vec<Word>>,
    pub(crate) aliases: Vec<(String, String)>,
    pub(crate) privileged: bool,
    /// Whether a variable was left out because there are too many.
    pub(crate) full: Rc<Cell<bool>>,
}

impl Scope {
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.variables.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        let variables = Rc::make_mut(&mut self.variables);
        let full = variables.len() >= limits::VARIABLES;
        match variables.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, old)) => *old = value,
            None if full => self.full.set(true), // stays unknown
            None => variables.push((name.into(), value)),
        }
    }

    /// Puts back the value that a variable had.
    pub(crate) fn restore(&mut self, name: &str, old: Option<&Value>) {
        match old {
            Some(value) => self.set(name, value.clone()),
            None => Rc::make_mut(&mut self.variables).retain(|(known, _)| **known != *name),
        }
    }

    /// Enters a directory.
    pub(crate) fn enter(&mut self, directory: Directory) {
        self.previous = Some(std::mem::replace(&mut self.directory, directory));
    }

    /// Joins the variables of another way through the script: one that differs has one of both values. One that
    /// only one way has assigned may be anything on the other, as the environment may hold it.
    pub(crate) fn merge(&mut self, other: &Variables) {
        if Rc::ptr_eq(other, &self.variables) {
            return;
        }
        let unassigned = Value::unknown(Origin::Variable);
        let variables = Rc::make_mut(&mut self.variables);
        for (name, value) in &mut *variables {
            let found = other.iter().find(|(known, _)| known == name).map(|(_, value)| value);
            let old = found.unwrap_or(&unassigned);
            if old != value {
                *value = either(old, value);
            }
        }
        for (name, value) in other.iter() {
            if !variables.iter().any(|(known, _)| known == name) {
                variables.push((name.clone(), either(&unassigned, value)));
            }
        }
    }
}

fn either(old: &Value, new: &Value) -> Value {
    let mut texts = Vec::new();
    for value in [old, new] {
        match value {
            Value::Text(text, _) => add(&mut texts, text),
            Value::Either(some) => some.iter().for_each(|text| add(&mut texts, text)),
            Value::List(_) => return Value::unknown(Origin::Variable),
        }
    }
    texts.truncate(limits::LOOP_VALUES);
    Value::Either(texts)
}

fn add(texts: &mut Vec<Rc<str>>, text: &Rc<str>) {
    if !texts.contains(text) {
        texts.push(text.clone());
    }
}

/// A directory that is entered from another one, joined as text.
pub(crate) fn join(from: &Directory, target: &str) -> Directory {
    if target.starts_with('/') || target.starts_with('~') {
        return Directory::Path(target.to_owned());
    }
    match from {
        _ if matches!(target, "." | "./") => from.clone(),
        Directory::Start => Directory::Path(target.to_owned()),
        Directory::Path(path) if path.len() > limits::PATH_BYTES => Directory::Unknown,
        Directory::Path(path) => {
            Directory::Path(format!("{}/{target}", path.strip_suffix('/').unwrap_or(path)))
        }
        Directory::Unknown => Directory::Unknown,
    }
}
