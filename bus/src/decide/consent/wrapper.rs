//! Programs that run the rest of their words (`timeout 5s …`, `sudo -u bob …`): which of their words are theirs,
//! and where the other program begins.

/// One of them.
#[derive(Debug)]
pub(in crate::decide) struct Wrapper {
    name: &'static str,
    /// Letters of options that take a value, and of those that take none.
    letters: (&'static str, &'static str),
    /// The same for options by name.
    names: (&'static [&'static str], &'static [&'static str]),
    /// How many words of its own come after the options.
    operands: usize,
    /// Whether `NAME=value` may come before the program.
    settings: bool,
}

/// Where the program of a wrapper begins.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::decide) struct Inner {
    pub(in crate::decide) at: usize,
    /// Every word before it is understood, and none of them has a say in which file is found.
    pub(in crate::decide) certain: bool,
}

const PLAIN: Wrapper =
    Wrapper { name: "", letters: ("", ""), names: (&[], &[]), operands: 0, settings: false };

/// What changes where a program is looked for (`env -C`, `sudo -R`) is left out, and so counts as not understood.
const WRAPPERS: [Wrapper; 11] = [
    Wrapper { name: "command", letters: ("", "p"), ..PLAIN },
    Wrapper {
        name: "env",
        letters: ("u", "v0"),
        names: (&["unset"], &["debug", "null"]),
        settings: true,
        ..PLAIN
    },
    Wrapper { name: "exec", letters: ("a", "cl"), ..PLAIN },
    Wrapper {
        name: "ionice",
        letters: ("cn", "t"),
        names: (&["class", "classdata"], &["ignore"]),
        ..PLAIN
    },
    Wrapper { name: "nice", letters: ("n", "0123456789"), names: (&["adjustment"], &[]), ..PLAIN },
    Wrapper { name: "nohup", ..PLAIN },
    Wrapper {
        name: "setsid",
        letters: ("", "cfw"),
        names: (&[], &["ctty", "fork", "wait"]),
        ..PLAIN
    },
    Wrapper {
        name: "stdbuf",
        letters: ("ioe", ""),
        names: (&["input", "output", "error"], &[]),
        ..PLAIN
    },
    Wrapper {
        name: "sudo",
        letters: ("ugpCrtT", "AbBEHknNPS"),
        names: (
            &["user", "group", "prompt", "close-from", "role", "type", "command-timeout"],
            &[
                "askpass",
                "background",
                "bell",
                "preserve-env",
                "set-home",
                "non-interactive",
                "stdin",
            ],
        ),
        settings: true,
        ..PLAIN
    },
    Wrapper {
        name: "time",
        letters: ("fo", "apqv"),
        names: (&["format", "output"], &["append", "portability", "quiet", "verbose"]),
        ..PLAIN
    },
    Wrapper {
        name: "timeout",
        letters: ("ks", "fpv"),
        names: (&["kill-after", "signal"], &["foreground", "preserve-status", "verbose"]),
        operands: 1,
        ..PLAIN
    },
];

/// The wrapper of this name, if it is one.
pub(in crate::decide) fn called(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.name == name)
}

impl Wrapper {
    /// Where in its words the other program begins. After a word that is not understood that is a guess.
    pub(in crate::decide) fn inner(&self, words: &[impl AsRef<str>]) -> Inner {
        let mut inner = Inner { at: 0, certain: true };
        while let Some(word) =
            words.get(inner.at).map(AsRef::as_ref).filter(|word| word.starts_with('-'))
        {
            inner.at += 1;
            if word == "--" {
                break;
            }
            match self.option(word) {
                Some(Takes::ItsOwn) => {}
                Some(Takes::TheNext) => inner.at += 1,
                None => inner.certain = false,
            }
        }
        inner.at += self.operands;
        if self.settings {
            while let Some((name, _)) =
                words.get(inner.at).and_then(|word| word.as_ref().split_once('='))
            {
                inner.certain &= !name.contains("PATH");
                inner.at += 1;
            }
        }
        inner.at = inner.at.min(words.len());
        inner
    }

    fn option(&self, word: &str) -> Option<Takes> {
        if let Some(name) = word.strip_prefix("--") {
            let (name, value) = name.split_once('=').map_or((name, None), |(a, b)| (a, Some(b)));
            let takes_one = self.names.0.contains(&name);
            return match value {
                Some(_) if takes_one || self.names.1.contains(&name) => Some(Takes::ItsOwn),
                None if takes_one => Some(Takes::TheNext),
                None if self.names.1.contains(&name) => Some(Takes::ItsOwn),
                Some(_) | None => None,
            };
        }
        // Several letters can share a dash, and the last of them may have its value behind it.
        let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty())?;
        for (at, letter) in letters.char_indices() {
            if self.letters.0.contains(letter) {
                let has_value = at + letter.len_utf8() < letters.len();
                return Some(if has_value { Takes::ItsOwn } else { Takes::TheNext });
            }
            if !self.letters.1.contains(letter) {
                return None;
            }
        }
        Some(Takes::ItsOwn)
    }
}

/// Where the value of an option is.
enum Takes {
    ItsOwn,
    TheNext,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inner(line: &str) -> (String, bool) {
        let words = shlex::split(line).expect("words");
        let found = called(&words[0]).expect("a wrapper").inner(&words[1..]);
        (words[1..][found.at..].join(" "), found.certain)
    }

    #[test]
    fn the_program_begins_after_the_wrappers_own_words() {
        for line in [
            "timeout 5 x -y z",
            "timeout 5s x -y z",
            "timeout -k 5s --signal=KILL 1.5m x -y z",
            "timeout -vs KILL --kill-after 3 -- 1m x -y z",
            "sudo -u bob x -y z",
            "sudo -nubob -- A=1 x -y z",
            "env -u HOME A=1 B=/a/b x -y z",
            "nice -n 5 x -y z",
            "nice -10 x -y z",
            "nice -n-5 x -y z",
            "ionice -c2 -n 7 x -y z",
            "stdbuf -oL -e 0 x -y z",
            "exec -a name x -y z",
            "setsid -fw x -y z",
            "time -f %e -o out x -y z",
            "nohup x -y z",
        ] {
            assert_eq!(inner(line), ("x -y z".to_owned(), true), "{line}");
        }
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for line in [
            "env -S 'sh p.sh'",
            "env -C /tmp sh p.sh",
            "env -i sh p.sh",
            "env - sh p.sh",
            "env PATH=/tmp:/bin sh p.sh",
            "sudo -R /jail sh p.sh",
            "timeout --new-option 5 sh p.sh",
            "command -v sh",
        ] {
            assert!(!inner(line).1, "{line}");
        }
    }

    #[test]
    fn words_that_end_too_early_name_nothing() {
        for line in ["timeout", "timeout 5", "timeout -k", "env A=1", "sudo -u"] {
            assert_eq!(inner(line).0, "", "{line}");
        }
    }
}
