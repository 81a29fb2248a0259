//! Which files the words of a command name. A shell's line, a here-script or a module hides them inside of
//! a word; whatever in there is the name of a file counts, and one too many does no harm.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::surroundings::Surroundings;

/// What a hook writes for itself; unless something can be run, it is no part of what runs.
const NOTES: [&str; 9] = ["log", "jsonl", "ndjson", "db", "sqlite", "out", "err", "pid", "lock"];

/// What makes a directory something that runs.
const STARTS: [&str; 3] = ["__main__.py", "__init__.py", "index.js"];

/// Programs that run what they are told to; some are small scripts themselves, which tells nothing.
const INTERPRETERS: [&str; 17] = [
    "bash", "bun", "dash", "deno", "env", "fish", "node", "npx", "perl", "php", "pypy", "python",
    "ruby", "sh", "uv", "uvx", "zsh",
];

/// What the words name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// Files, in the order of the words.
    pub(super) files: Vec<PathBuf>,
    /// Directories that are run as a whole.
    pub(super) folders: Vec<PathBuf>,
    /// Whether anything but a program of the machine's own was found.
    pub(super) made_out: bool,
}

/// What `words` name, run with `env` on top of what is there.
pub(super) fn by(words: &[String], env: &[(String, String)], place: &Surroundings) -> Named {
    let search = Search { env, place };
    let pieces: Vec<String> = words.iter().flat_map(|word| search.pieces(word)).collect();
    let mut bases = vec![place.cwd.clone()];
    bases.extend(pieces.iter().map(|piece| place.cwd.join(piece)).filter(|path| path.is_dir()));
    let mut named = Named::default();
    for (index, piece) in pieces.iter().enumerate() {
        let after_m = index > 0 && pieces[index - 1] == "-m";
        if after_m && search.module(piece, &bases, &mut named) {
            continue;
        }
        if let Some(file) = bases.iter().map(|base| base.join(piece)).find(|path| path.is_file()) {
            named.add(file);
        } else if let Some(script) =
            search.program(piece).filter(|path| is_script(path) && !interprets(piece))
        {
            named.add(script);
        } else {
            let folder = place.cwd.join(piece);
            if STARTS.iter().any(|start| folder.join(start).is_file()) {
                named.folders.push(folder);
            }
        }
    }
    named.made_out = !(named.files.is_empty() && named.folders.is_empty());
    if !named.made_out {
        named.files.extend(words.first().and_then(|word| search.program(word)));
    }
    named
}

impl Named {
    fn add(&mut self, file: PathBuf) {
        let notes = file.extension().is_some_and(|end| NOTES.iter().any(|one| end == *one));
        if self.files.contains(&file) || (notes && !can_run(&file)) {
            return;
        }
        self.files.push(file);
    }
}

struct Search<'a> {
    env: &'a [(String, String)],
    place: &'a Surroundings,
}

impl Search<'_> {
    fn var(&self, name: &str) -> Option<OsString> {
        let own = self.env.iter().rfind(|(key, _)| key == name);
        own.map(|(_, value)| value.into()).or_else(|| self.place.var(name).map(OsString::from))
    }

    fn program(&self, word: &str) -> Option<PathBuf> {
        if word.is_empty() || word.contains('/') {
            return None;
        }
        let path = self.var("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(word)).find(|path| path.is_file())
    }

    /// `python3 -m a.b`, where `a` can be found.
    fn module(&self, name: &str, bases: &[PathBuf], named: &mut Named) -> bool {
        let top = name.split('.').next().unwrap_or_default();
        let more = self.var("PYTHONPATH").unwrap_or_default();
        let more = std::env::split_paths(&more).map(|path| self.place.cwd.join(path));
        for base in bases.iter().cloned().chain(more).filter(|_| !top.is_empty()) {
            let (folder, file) = (base.join(top), base.join(format!("{top}.py")));
            if folder.is_dir() {
                named.folders.push(folder);
                return true;
            }
            if file.is_file() {
                named.add(file);
                return true;
            }
        }
        false
    }

    /// A word, and what a shell would make of it. What output goes to is left out.
    fn pieces(&self, word: &str) -> Vec<String> {
        let line = self.filled(word);
        let mut pieces = vec![line.clone()];
        // Quoted parts of a line may hold spaces.
        pieces.extend(shlex::split(&line).unwrap_or_default());
        let (mut piece, mut written_to) = (String::new(), false);
        for letter in line.chars().chain([' ']) {
            if !(letter.is_whitespace() || "<>|&;()`{}\"'=,".contains(letter)) {
                piece.push(letter);
                continue;
            }
            if !piece.is_empty() {
                let piece = std::mem::take(&mut piece);
                if written_to {
                    pieces.retain(|known| *known != piece);
                } else {
                    pieces.push(piece);
                }
                written_to = false;
            }
            written_to = letter == '>' || (written_to && letter.is_whitespace());
        }
        let with_home = |piece: String| super::launch::with_home(&piece, self.place);
        let mut pieces: Vec<String> = pieces.into_iter().map(with_home).collect();
        pieces.dedup();
        pieces
    }

    /// With `$NAME` and `${NAME}` as the environment has them.
    fn filled(&self, line: &str) -> String {
        let mut out = String::new();
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            let open = after.strip_prefix('{');
            let body = open.unwrap_or(after);
            let end = body.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
            let (name, tail) = body.split_at(end.unwrap_or(body.len()));
            match self.var(name) {
                Some(value) => {
                    out.push_str(&value.to_string_lossy());
                    rest =
                        if open.is_some() { tail.strip_prefix('}').unwrap_or(tail) } else { tail };
                }
                None => {
                    out.push('$');
                    rest = after;
                }
            }
        }
        out + rest
    }
}

fn interprets(word: &str) -> bool {
    let name = word.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    INTERPRETERS.contains(&name)
}

fn can_run(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|file| file.permissions().mode() & 0o111 != 0) || is_script(file)
}

fn is_script(file: &Path) -> bool {
    let mut start = [0; 2];
    fs::File::open(file).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_found_wherever_in_a_line_it_hides() {
        let folder = tempfile::tempdir().expect("a place");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("p.sh"), "exit 0\n").expect("a script");
        fs::write(at("pol.py"), "pass\n").expect("a module");
        fs::write(at("x.log"), "line\n").expect("a log");
        fs::create_dir(at("pkg")).expect("a package");
        fs::write(at("pkg/__main__.py"), "pass\n").expect("a module");
        let place = Surroundings {
            cwd: folder.path().to_owned(),
            env: vec![("D".into(), folder.path().into()), ("PATH".into(), "/usr/bin:/bin".into())],
            ..Surroundings::default()
        };
        let find = |line: &str| by(&shlex::split(line).expect("words"), &[], &place);
        for line in [
            "./p.sh",
            "sh p.sh --log x.log",
            "sh -c 'exec ./p.sh --x'",
            "sh -c 'sh < p.sh'",
            "dash -ec 'sh <p.sh >x.log'",
            "/bin/zsh -c 'cat p.sh|sh'",
            "env A=1 bash -c 'bash -c \"./p.sh; true\"'",
            "sh -c '$D/p.sh && ${D}/p.sh'",
            "sh -c 'cd /tmp; . ./p.sh'",
        ] {
            let named = find(line);
            let names: Vec<_> = named.files.iter().map(|file| file.file_name()).collect();
            assert!(names.iter().all(|name| *name == at("p.sh").file_name()), "{line}: {named:?}");
            assert!(named.made_out && !named.files.is_empty(), "{line}: {named:?}");
        }
        assert_eq!(find("python3 -m pol").files, [at("pol.py")]);
        assert_eq!(find("python3 -m pkg.inner").folders, [at("pkg")]);
        assert_eq!(find("python3 pkg").folders, [at("pkg")]);
        assert!(!find("python3 -m elsewhere").made_out);
        assert!(!find("sh -c 'echo hello'").made_out);
    }
}
