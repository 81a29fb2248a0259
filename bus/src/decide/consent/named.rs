//! Which scripts a command runs, as far as its words say: the program itself if it is somebody's own, what an
//! interpreter is given, and the same inside of a shell's line. Never a word that merely is the name of some
//! file where the agent happens to stand, and never what a script writes or reads.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::super::launch::with_home;
use super::super::script::{ends_like_a_script, is_a_path};
use super::super::shell_line;
use super::super::surroundings::Surroundings;
use super::wrapper;

/// Programs that run a line or a file that they are given.
const SHELLS: [&str; 6] = ["bash", "dash", "fish", "ksh", "sh", "zsh"];
const INTERPRETERS: [&str; 12] =
    ["bun", "deno", "node", "npx", "perl", "php", "pypy", "python", "ruby", "tsx", "uv", "uvx"];

/// What belongs to the machine and is renewed with it.
const OF_THE_MACHINE: [&str; 7] =
    ["/usr/bin/", "/usr/sbin/", "/usr/lib/", "/bin/", "/sbin/", "/nix/store/", "/opt/homebrew/"];

/// Lines inside of lines are looked into this deep.
const DEEPEST: usize = 4;

/// What a command runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::decide) struct Named {
    /// Files, in the order of the words.
    pub(in crate::decide) files: Vec<PathBuf>,
    /// Directories that are run as a whole.
    pub(in crate::decide) folders: Vec<PathBuf>,
    /// Something else may run as well that cannot be told from the words.
    pub(in crate::decide) open: bool,
    /// Where all of it was looked for, whether or not it was there: another file may have been taken first.
    pub(in crate::decide) looked_for: Vec<PathBuf>,
    /// What is to be run and is not there, where that can be told for sure.
    pub(in crate::decide) missing: Vec<PathBuf>,
    /// One of several commands is looked at: another one may lead to another directory, or do without it.
    one_of_several: bool,
}

impl Named {
    /// Whether all code that runs is known, as far as can be told.
    pub(in crate::decide) fn is_made_out(&self) -> bool {
        let found = !self.files.is_empty() || !self.folders.is_empty();
        found && !self.open
    }

    fn add(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        for file in files {
            if !self.files.contains(&file) {
                self.files.push(file);
            }
        }
    }
}

/// What `words` run, with `env` on top of what is there.
pub(in crate::decide) fn by(
    words: &[OsString],
    env: &[(String, String)],
    place: &Surroundings,
) -> Named {
    let mut named = Named::default();
    Search { env, place }.command(words, DEEPEST, &mut named);
    if named.open {
        named.missing.clear();
    }
    named
}

struct Search<'a> {
    env: &'a [(String, String)],
    place: &'a Surroundings,
}

impl Search<'_> {
    /// One command: a program and its words.
    fn command(&self, words: &[OsString], depth: usize, named: &mut Named) {
        let Some((program, rest)) = words.split_first() else { return };
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        let name = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        if let Some(wrapper) = wrapper::called(name) {
            self.own_copy(program, named);
            let inner = wrapper.inner(&rest.iter().map(|word| text(word)).collect::<Vec<_>>());
            named.open |= !inner.certain;
            return self.command(&rest[inner.at..], depth, named);
        }
        // An option of a wrapper that is not known as one.
        named.open |= is_option(program);
        if SHELLS.contains(&name) || INTERPRETERS.contains(&name) {
            self.own_copy(program, named);
        }
        if SHELLS.contains(&name) {
            self.shell(rest, depth, named);
        } else if INTERPRETERS.contains(&name) {
            self.interpreter(rest, named);
        } else if program == "." || program == "source" {
            self.files(rest.first(), named, |_| true);
            self.miss(rest.first(), named);
        } else {
            self.program(program, named);
        }
        // A script by its ending, or something that can be run and is given by its path.
        self.files(rest.iter().filter(|word| is_a_script(word)), named, is_code);
    }

    fn shell(&self, words: &[OsString], depth: usize, named: &mut Named) {
        let is_line = |word: &&OsString| {
            let word = text(word);
            word.starts_with('-') && !word.starts_with("--") && word.contains('c')
        };
        let Some(at) = words.iter().position(|word| is_line(&word)) else {
            let script = words.iter().find(|word| !is_option(word));
            self.files(script, named, |_| true);
            return self.miss(words.first().filter(|word| !is_option(word)), named);
        };
        let line = words.get(at + 1).and_then(|line| line.to_str());
        let Some(line) = line.filter(|_| depth > 0) else {
            named.open = true;
            return;
        };
        let line = self.filled(line);
        named.open |= line.contains(['$', '`', '*', '[']);
        named.open |= ["eval", "PATH="].iter().any(|word| line.contains(word));
        let commands = shell_line::commands(&line);
        named.one_of_several |= commands.iter().filter(|words| !words.is_empty()).count() > 1;
        for simple in commands {
            let words: Vec<OsString> =
                simple.into_iter().map(|(word, _)| with_home(&word, self.place)).collect();
            self.command(&words, depth - 1, named);
        }
        self.files(read_from(&line), named, |_| true);
    }

    fn interpreter(&self, words: &[OsString], named: &mut Named) {
        if let Some(at) = words.iter().position(|word| word == "-m") {
            let module = words.get(at + 1).and_then(|module| module.to_str());
            let found = module.is_some_and(|module| self.module(module, named));
            named.open |= !found;
            return;
        }
        let line = ["-c", "-e", "--eval"];
        named.open |= words.iter().any(|word| line.iter().any(|option| word == option));
        let given = words.iter().filter(|word| !is_option(word));
        let given: Vec<PathBuf> = given.map(|word| self.place.cwd.join(word)).collect();
        named.looked_for.extend(given.iter().cloned());
        for path in given {
            if path.is_file() {
                return named.add([path]);
            }
            if path.join("__main__.py").is_file() || path.join("index.js").is_file() {
                return named.folders.push(path);
            }
        }
        self.miss(words.first().filter(|word| ends_like_a_script(word)), named);
    }

    /// It is missing if it is plainly not there: the very next word, and nothing that a shell, an option or the
    /// bus may still make something else of.
    fn miss(&self, word: Option<&OsString>, named: &mut Named) {
        let is_whole = |word: &&OsString| {
            let word = text(word);
            !word.is_empty()
                && !word.contains(['$', '`', '*', '?', '{', '@'])
                && !word.contains("://")
        };
        let word = word.filter(is_whole).filter(|_| !named.one_of_several);
        let is_not_there = |path: &PathBuf| {
            fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let path = word.map(|word| self.place.cwd.join(word)).filter(is_not_there);
        named.missing.extend(path);
    }

    /// `python3 -m a.b`, where `a` can be found.
    fn module(&self, name: &str, named: &mut Named) -> bool {
        let top = name.split('.').next().unwrap_or_default();
        let more = self.var("PYTHONPATH").unwrap_or_default();
        let more = std::env::split_paths(&more).map(|path| self.place.cwd.join(path));
        if top.is_empty() {
            return false;
        }
        let bases = std::iter::once(self.place.cwd.clone()).chain(more);
        let places: Vec<(PathBuf, PathBuf)> =
            bases.map(|base| (base.join(top), base.join(format!("{top}.py")))).collect();
        let all = places.iter().flat_map(|(folder, file)| [folder.clone(), file.clone()]);
        named.looked_for.extend(all);
        for (folder, file) in places {
            if folder.is_dir() {
                named.folders.push(folder);
                return true;
            } else if file.is_file() {
                named.add([file]);
                return true;
            }
        }
        false
    }

    fn var(&self, name: &str) -> Option<OsString> {
        let own = self.env.iter().rfind(|(key, _)| key == name);
        own.map(|(_, value)| value.into()).or_else(|| self.place.var(name).map(OsString::from))
    }

    /// The files of these words that `count`.
    fn files<W: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = W>,
        named: &mut Named,
        count: impl Fn(&Path) -> bool,
    ) {
        for word in words {
            let file = self.file(word.as_ref(), named);
            named.add(file.filter(|file| count(file)));
        }
    }

    fn file(&self, word: &OsStr, named: &mut Named) -> Option<PathBuf> {
        let path = (!word.is_empty()).then(|| self.place.cwd.join(word))?;
        named.looked_for.push(path.clone());
        path.is_file().then_some(path)
    }

    /// A well-known program that is given by its path, and is not the machine's: it may be anything.
    fn own_copy(&self, word: &OsStr, named: &mut Named) {
        let is_a_link =
            |file: &Path| file.canonicalize().is_ok_and(|real| is_of_the_machine(&real));
        let path = Some(word).filter(|word| is_a_path(word));
        self.files(path, named, |file| !is_of_the_machine(file) && !is_a_link(file));
    }

    /// A program, by its path or where the command would look, if it is not the machine's.
    fn program(&self, word: &OsStr, named: &mut Named) {
        if is_a_path(word) {
            self.files([word], named, |file| !is_of_the_machine(file));
            return self.miss(Some(&word.to_owned()), named);
        }
        let path = self.var("PATH").filter(|_| !word.is_empty()).unwrap_or_default();
        let places = std::env::split_paths(&path).filter(|_| !path.is_empty());
        let places: Vec<PathBuf> =
            places.map(|folder| self.place.cwd.join(folder).join(word)).collect();
        let found = places.iter().find(|file| file.is_file() && can_run(file));
        let counts = |file: &&PathBuf| is_script(file) && !is_of_the_machine(file);
        named.add(found.filter(counts).cloned());
        named.looked_for.extend(places);
    }

    /// With `$NAME`, `${NAME}` and `~/` as the environment has them; what else a shell would put in stays.
    fn filled(&self, line: &str) -> String {
        let line = format!(" {line}").replace(" ~/", " $HOME/");
        let mut out = String::new();
        let mut rest = line.as_str();
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            let open = after.strip_prefix('{');
            let body = open.unwrap_or(after);
            let end = body.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
            let (name, tail) = body.split_at(end.unwrap_or(body.len()));
            let tail = if open.is_some() { tail.strip_prefix('}') } else { Some(tail) };
            // What is no text stays as well, and so is seen not to be made out.
            let value = self.var(name).and_then(|value| value.into_string().ok());
            match value.zip(tail) {
                Some((value, tail)) => {
                    out.push_str(&value);
                    rest = tail;
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

fn text(word: &OsStr) -> Cow<'_, str> {
    word.to_string_lossy()
}

fn is_a_script(word: &OsStr) -> bool {
    ends_like_a_script(word) || is_a_path(word)
}

fn is_option(word: &OsStr) -> bool {
    text(word).starts_with('-')
}

/// The words after `<` in a line.
fn read_from(line: &str) -> impl Iterator<Item = &str> {
    let parts = line.split('<').skip(1);
    parts.filter_map(|part| {
        part.split([' ', '\t', '\n', ';', '|', '&', ')']).find(|it| !it.is_empty())
    })
}

fn is_of_the_machine(file: &Path) -> bool {
    // `/usr/bin/../../home` is not.
    let leads_away = file.components().any(|part| part == Component::ParentDir);
    let real = if leads_away { file.canonicalize().ok() } else { None };
    let file = real.as_deref().unwrap_or(file);
    OF_THE_MACHINE.iter().any(|folder| file.starts_with(folder))
}

fn is_code(file: &Path) -> bool {
    (ends_like_a_script(file) || can_run(file) && is_script(file)) && !is_of_the_machine(file)
}

fn can_run(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|file| file.permissions().mode() & 0o111 != 0)
}

fn is_script(file: &Path) -> bool {
    let mut start = [0; 2];
    fs::File::open(file).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    /// A place with scripts and with things that are none.
    fn place() -> (tempfile::TempDir, Surroundings) {
        let folder = tempfile::tempdir().expect("a place");
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [
            ("p.sh", "exit 0\n"),
            ("pol.py", "pass\n"),
            ("notes.out", "exit 0\n"),
            ("state.json", "{}"),
            ("test", "not a program"),
            ("index.js", "//"),
            ("sh", "a shell"),
        ] {
            fs::write(at(name), text).expect("a file");
        }
        fs::create_dir_all(at("bin")).expect("a folder");
        fs::write(at("bin/guard"), "#!/bin/sh\n").expect("a script");
        fs::set_permissions(at("bin/guard"), fs::Permissions::from_mode(0o755)).expect("a mode");
        std::os::unix::fs::symlink("/bin/sh", at("python")).expect("a link");
        fs::create_dir(at("pkg")).expect("a package");
        fs::write(at("pkg/__main__.py"), "pass\n").expect("a module");
        let env = vec![
            ("D".into(), folder.path().into()),
            ("HOME".into(), folder.path().into()),
            ("PATH".into(), "/usr/bin:/bin:bin".into()),
            ("NO_TEXT".into(), OsStr::from_bytes(b"/\xff").into()),
        ];
        let cwd = folder.path().to_owned();
        (folder, Surroundings { cwd, env, ..Surroundings::default() })
    }

    fn words(line: &str) -> Vec<OsString> {
        shlex::split(line).expect("words").into_iter().map(OsString::from).collect()
    }

    #[test]
    fn a_script_is_found_wherever_in_a_line_it_hides() {
        let (folder, place) = place();
        let at = |name: &str| folder.path().join(name);
        let find = |line: &str| by(&words(line), &[], &place);
        for line in [
            "./p.sh",
            "sh p.sh --log notes.out",
            "timeout 5 sh p.sh state.json",
            "timeout 5s sh p.sh",
            "timeout -k 1m 2.5h sh p.sh",
            "sudo -u bob -- sh p.sh",
            "nice -n 5 ionice -c 3 stdbuf -oL ./p.sh",
            "sh -c 'timeout 5s sh p.sh'",
            "sh -c 'exec ./p.sh --x'",
            "sh -c '~/p.sh'",
            "bash -c 'exec sh ~/p.sh'",
            "sh -c 'sh < p.sh'",
            "dash -ec 'sh <p.sh >notes.out'",
            "/bin/zsh -c 'cat p.sh|sh'",
            "env A=1 bash -c 'bash -c \"./p.sh; true\"'",
            "sh -c '$D/p.sh && ${D}/p.sh'",
            "sh -c 'cd /tmp; . ./p.sh'",
            "sh -c 'sh p.sh; : >>p.sh'",
        ] {
            let named = find(line);
            let names: Vec<_> = named.files.iter().map(|file| file.file_name()).collect();
            assert!(names.iter().all(|name| *name == at("p.sh").file_name()), "{line}: {named:?}");
            assert!(named.is_made_out(), "{line}: {named:?}");
        }
        for line in ["guard", "timeout 5s guard", "sudo -u bob guard", "env -u A B=1 guard"] {
            assert_eq!(find(line).files, [at("bin/guard")], "{line}");
        }
        assert_eq!(find("./sh p.sh").files, [at("sh"), at("p.sh")], "a shell of one's own");
        assert_eq!(find("./python p.sh").files, [at("p.sh")], "a link to the machine's");
        assert_eq!(find("sh -c '. ./notes.out'").files, [at("notes.out")]);
        assert_eq!(find("python3 -m pol").files, [at("pol.py")]);
        assert_eq!(find("python3 -m pkg.inner").folders, [at("pkg")]);
        assert_eq!(find("python3 pkg").folders, [at("pkg")]);
    }

    #[test]
    fn words_that_happen_to_be_files_are_no_scripts() {
        let (_folder, place) = place();
        let find = |line: &str| by(&words(line), &[], &place);
        for line in ["echo test", "true --check .", "jq -c . state.json", "python3 -m elsewhere"] {
            assert!(find(line).files.is_empty() && find(line).folders.is_empty(), "{line}");
            assert!(!find(line).is_made_out(), "{line}");
        }
    }

    #[test]
    fn what_is_not_there_is_missed_where_that_is_sure() {
        let (folder, place) = place();
        let at = |name: &str| folder.path().join(name);
        let missing = |line: &str| by(&words(line), &[], &place).missing;
        for line in [
            "python3 gone.py",
            "timeout 5 sh gone.py",
            "bash -c 'perl gone.py 2>/dev/null'",
            "env A=1 ./gone.py",
        ] {
            assert_eq!(missing(line).len(), 1, "{line}");
            assert!(missing(line)[0].ends_with("gone.py"), "{line}");
        }
        assert_eq!(missing("sh gone"), [at("gone")]);
        for line in [
            "python3 pol.py gone.py",
            "python3 -c pass gone.py",
            "python3 -m gone",
            "python3 {script}.py",
            "npx @scope/gone.js",
            "npx @scope/gone",
            "deno run https://example.org/gone.ts",
            "uv run --directory there gone.py",
            "perl -ne 'exit 2 if /gone.py/'",
            "python3 -Ic 'gone/x.py'",
            "gone --now gone.py",
            "jq . gone.py",
            "env -C /tmp python3 gone.py",
            "sh -c 'cd /tmp && python3 gone.py'",
            "sh -c 'python3 $UNKNOWN/gone.py'",
        ] {
            assert!(missing(line).is_empty(), "{line}: {:?}", missing(line));
        }
    }

    #[test]
    fn what_else_may_run_is_said() {
        let (_folder, place) = place();
        let find = |line: &str| by(&words(line), &[], &place);
        for line in [
            "sh -c 'sh p.sh; sh ${Q:-y.sh}'",
            "sh -c 'sh p.sh; sh $UNKNOWN'",
            "sh -c 'sh p.sh; sh $NO_TEXT/q.sh'",
            "sh -c 'sh p.sh; eval x'",
            "python3 -c 'import p' p.sh",
            "timeout --new-option 5s sh p.sh",
            "sudo -R /jail sh p.sh",
            "sh -c 'exec -a name ./p.sh'",
            "sh -c 'PATH=bin guard; ./p.sh'",
        ] {
            assert!(!find(line).is_made_out(), "{line}");
        }
    }
}
