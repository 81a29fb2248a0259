//! Which program a name means: `/usr/bin/git`, `git.exe` and `git` are one; so are `python3.11` and `python`,
//! `grm`, `RM` and `rm`, `podman` and `docker`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::spec::IndexedSpec;
use super::tables;

/// A program by its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program<'a> {
    /// The name that stands for it; for a program that is not in the tables its own name without directories.
    pub(crate) name: &'a str,
    /// How it reads its arguments, if the tables have it.
    pub(crate) spec: Option<&'static IndexedSpec>,
}

static INDEXED: LazyLock<Vec<IndexedSpec>> =
    LazyLock::new(|| tables::ALL.into_iter().flatten().map(IndexedSpec::new).collect());

static BY_NAME: LazyLock<HashMap<&'static str, Program<'static>>> = LazyLock::new(|| {
    let mut programs = HashMap::new();
    for spec in INDEXED.iter() {
        let first = spec.names.split('|').next().unwrap_or_default();
        for name in spec.names.split('|') {
            programs.insert(name, Program { name: first, spec: Some(spec) });
        }
        for name in spec.like.split('|').filter(|name| !name.is_empty()) {
            programs.insert(name, Program { name, spec: Some(spec) });
        }
    }
    programs
});

/// The tools of GNU that are installed with a `g` in front of their name beside those of macOS.
const WITH_G: &str = "awk|base64|cat|chgrp|chmod|chown|cp|csplit|cut|date|dd|df|du|env|find|grep|head|install|kill|ln|\
ls|make|mkdir|mktemp|mv|nice|nl|nohup|od|patch|paste|printenv|readlink|realpath|rm|rmdir|sed|shred|sort|split|\
stat|stdbuf|tac|tail|tar|tee|timeout|touch|truncate|uniq|unlink|wc|xargs";

/// The programs that are installed with their version behind their name.
const WITH_VERSION: &str =
    "bash|clang|clang-format|gcc|g++|java|lua|node|perl|php|pip|pypy|python|ruby|gem|psql|pg_dump";

/// The file name in a path, without `.exe`.
pub(crate) fn base_name(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = name.len().checked_sub(4).and_then(|at| name.split_at_checked(at));
    match stem {
        Some((stem, end)) if end.eq_ignore_ascii_case(".exe") && !stem.is_empty() => stem,
        _ => name,
    }
}

/// The program with this name or path.
pub(crate) fn program(path: &str) -> Program<'_> {
    let name = base_name(path);
    let lists = |list: &str, name: &str| list.split('|').any(|each| each == name);
    let known = BY_NAME.get(name).or_else(|| {
        let without_g = name.strip_prefix('g').filter(|rest| lists(WITH_G, rest));
        let unversioned =
            name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        let unversioned = Some(unversioned).filter(|rest| lists(WITH_VERSION, rest));
        let found = without_g.or(unversioned).and_then(|name| BY_NAME.get(name));
        // On macOS and Windows `RM` starts `rm`.
        let has_capitals = name.bytes().any(|byte| byte.is_ascii_uppercase());
        let lower = || {
            let lower = has_capitals.then(|| name.to_ascii_lowercase())?;
            BY_NAME.get(lower.as_str())
        };
        found.or_else(lower)
    });
    known.copied().unwrap_or(Program { name, spec: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_one_name() {
        for (path, expected) in [
            ("git", "git"),
            ("/usr/bin/git", "git"),
            ("C:\\Program Files\\Git\\bin\\git.EXE", "git"),
            ("python3.11", "python"),
            ("pip3", "pip"),
            ("gmv", "mv"),
            ("/bin/RM", "rm"),
            ("grep", "grep"),
            ("podman", "docker"),
            ("tofu", "terraform"),
            ("./deploy.sh", "deploy.sh"),
            ("mkfs.ext4", "mkfs.ext4"),
            ("", ""),
            (".exe", ".exe"),
        ] {
            assert_eq!(program(path).name, expected, "{path}");
        }
    }

    #[test]
    fn no_program_is_in_the_tables_twice() {
        let mut seen = HashMap::new();
        for spec in tables::ALL.into_iter().flatten() {
            for name in spec.names.split('|').chain(spec.like.split('|')) {
                if !name.is_empty() {
                    let other = seen.insert(name, spec.names);
                    assert_eq!(other, None, "{name}");
                }
            }
        }
    }
}
