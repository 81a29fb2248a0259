//! Lines and what they do, as tables. An invocation is shown as `program arg arg`, with `dir: ` before it unless it
//! runs where the line starts, `!` before it if it is privileged, and ` …more` behind it if arguments are missing.

use super::{Access, CodeSource, Directory, Invocation, OpaqueKind, ShellView, Start, read};

mod bounds;
mod code;
mod containers;
mod copied_programs;
mod foreign;
mod implicit_code;
mod languages;
mod links;
mod listings;
mod option_lines;
mod redirections;
mod syntax;
mod words;
mod wrappers;

fn start() -> Start {
    Start {
        home: Some("/home/u".to_owned()),
        variables: vec![
            ("PWD".to_owned(), "/home/you/app".to_owned()),
            ("USER".to_owned(), "u".to_owned()),
        ],
    }
}

fn view(line: &str) -> ShellView {
    read(line, &start())
}

fn show(invocation: &Invocation) -> String {
    let mut text = match &invocation.cwd {
        Directory::Start => String::new(),
        Directory::Path(path) => format!("{path}: "),
        Directory::Unknown => "?: ".to_owned(),
    };
    if invocation.privileged {
        text.push('!');
    }
    text.push_str(&invocation.program.to_string());
    for arg in &invocation.args {
        text.push(' ');
        text.push_str(&arg.to_string());
    }
    if invocation.more_args {
        text.push_str(" …more");
    }
    text
}

fn programs(line: &str) -> Vec<String> {
    view(line).programs.iter().map(show).collect()
}

/// Checks a table of lines and the programs that they start, separated by ` ; `.
fn check(table: &[(&str, &str)]) {
    for (line, expected) in table {
        assert_eq!(programs(line).join(" ; "), *expected, "{line}");
    }
}

fn foreign(line: &str) -> Vec<CodeSource> {
    view(line).foreign_code.into_iter().map(|code| code.source).collect()
}

fn opaque(line: &str) -> Vec<OpaqueKind> {
    view(line).opaque.into_iter().map(|opaque| opaque.kind).collect()
}

fn files(line: &str) -> Vec<String> {
    let show = |access| match access {
        Access::Read => "read",
        Access::Write => "write",
        Access::Delete => "delete",
    };
    let view = view(line);
    view.files.iter().map(|file| format!("{} {}", show(file.access), file.path)).collect()
}
