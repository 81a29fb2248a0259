//! The grammar of bash: a text becomes a [`Script`], or, if bash would not run it, a list of rough fragments.
//! Words stay as they are written; expanding them is left to others. Reading takes time linear in the text,
//! nests to a fixed depth and never panics.

mod command;
mod compound;
mod parser;
mod rough;
mod scan;
mod tree;

pub(super) use parser::{Parser, parse};
pub(super) use rough::fragments;
pub(super) use scan::{name_length, split_assignment, subscript_length};
pub(super) use tree::{
    AndOr, Branch, Command, Compound, Join, List, Pipeline, Redirect, RedirectKind, Script, Simple,
};
