//! The files and hosts that a tool call names, told from its input alone: nothing is looked up on disk, so that every
//! rebuild says the same.

use std::path::{Component, Path, PathBuf};

use hookbus::event::{ToolClass, one_line};
use hookbus::shell::{Access, Directory, Start, read};
use serde_json::{Map, Value};

use super::reading::NAME;

/// Fields of a tool's input that hold a path.
const PATHS: [&str; 5] = ["file_path", "path", "absolute_path", "notebook_path", "dir_path"];

/// How much of a shell line is looked at, and how many files and hosts of a call are kept.
const LINE: usize = 4096;
const MOST: usize = 50;

/// What a call touches.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    /// Absolute where the working directory is known.
    pub(super) files: Vec<(String, &'static str)>,
    pub(super) hosts: Vec<String>,
}

/// What the call of a tool of this class touches.
pub(super) fn touched(class: Option<ToolClass>, input: &Map<String, Value>, cwd: &str) -> Touched {
    let mut touched = Touched::default();
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let access = match class {
        Some(ToolClass::Shell) => {
            if let Some(line) = text("command") {
                of_line(line, cwd, &mut touched);
            }
            return touched;
        }
        Some(ToolClass::FileRead | ToolClass::FileSearch) => "read",
        Some(ToolClass::FileWrite) => "write",
        Some(_) => {
            let urls = ["url", "urls", "prompt"].iter().filter_map(|key| text(key));
            touched.hosts.extend(urls.filter_map(host_of).take(MOST));
            return touched;
        }
        None => return touched,
    };
    let named = PATHS.iter().filter_map(|key| text(key)).map(|path| (path, access));
    let patched = ["command", "patch", "input"].iter().filter_map(|key| text(key));
    let patched = patched.flat_map(str::lines).filter_map(patched_file);
    for (path, access) in named.chain(patched).take(MOST) {
        touched.files.push((absolute(cwd, path), access));
    }
    touched
}

/// A file that a line of a patch in Codex' format is about.
fn patched_file(line: &str) -> Option<(&str, &'static str)> {
    [("*** Update File: ", "write"), ("*** Add File: ", "write"), ("*** Delete File: ", "delete")]
        .into_iter()
        .find_map(|(start, access)| Some((line.strip_prefix(start)?, access)))
}

fn of_line(line: &str, cwd: &str, touched: &mut Touched) {
    if line.len() > LINE {
        return;
    }
    let view = read(line, &Start::default());
    for file in view.files.iter().filter(|file| file.path.is_known()).take(MOST) {
        let access = match file.access {
            Access::Read => "read",
            Access::Write => "write",
            Access::Delete => "delete",
        };
        let base = match &file.base {
            Directory::Start => cwd.to_owned(),
            Directory::Path(path) => absolute(cwd, path),
            Directory::Unknown if file.path.as_str().starts_with('/') => String::new(),
            Directory::Unknown => continue,
        };
        touched.files.push((absolute(&base, file.path.as_str()), access));
    }
    let hosts = view.hosts.iter().filter(|host| !host.host.is_empty()).take(MOST);
    touched.hosts.extend(hosts.map(|host| one_line(&host.host.to_lowercase(), NAME)));
}

/// The host of a URL, without user and port.
fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', ' ', '\n', '"']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next()?,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then(|| one_line(&host.to_lowercase(), NAME))
}

/// The path as it is seen from `cwd`, with `.` and `..` resolved by their text.
fn absolute(cwd: &str, path: &str) -> String {
    let joined =
        if path.starts_with('~') { PathBuf::from(path) } else { Path::new(cwd).join(path) };
    let mut plain = PathBuf::new();
    for part in joined.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    one_line(&plain.to_string_lossy(), NAME)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(class: ToolClass, input: &Value) -> Touched {
        touched(Some(class), input.as_object().expect("an object"), "/srv/shop")
    }

    #[test]
    fn files_and_hosts_are_told_from_the_input_of_a_call() {
        let read = of(ToolClass::FileRead, &json!({"file_path": "../a/./b.txt"}));
        assert_eq!(read.files, [("/srv/a/b.txt".to_owned(), "read")]);
        let fetched = of(ToolClass::WebFetch, &json!({"url": "https://u:p@Example.org:8443/x?y"}));
        assert_eq!(fetched.hosts, ["example.org"]);
        let patch = "*** Begin Patch\n*** Update File: src/a.rs\n*** Delete File: b\n*** End Patch";
        let patched = of(ToolClass::FileWrite, &json!({"command": patch}));
        let files =
            [("/srv/shop/src/a.rs".to_owned(), "write"), ("/srv/shop/b".to_owned(), "delete")];
        assert_eq!(patched.files, files);
        let shell =
            of(ToolClass::Shell, &json!({"command": "curl https://example.org/x > out.txt"}));
        assert_eq!(shell.hosts, ["example.org"]);
        assert!(shell.files.contains(&("/srv/shop/out.txt".to_owned(), "write")), "{shell:?}");
    }
}
