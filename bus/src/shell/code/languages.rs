//! The interpreters that are known, and how they are given code.

/// A language whose code is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    Perl,
    Ruby,
    JavaScript,
    Php,
    Lua,
    Awk,
    /// `AppleScript`.
    Osascript,
    /// `vim -c '!cmd'`.
    Vim,
    /// `sqlite3 db '.shell cmd'`.
    Sqlite,
    /// Julia, R, Elixir, Groovy, Scala, Erlang: rarer, so all of them share one table.
    Rarer,
    /// Emacs Lisp.
    Lisp,
}

/// The language of the interpreter with this name; versions in the name (`python3.12`) do not matter.
pub(crate) fn language(name: &str) -> Option<Language> {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    Some(match plain {
        "python" | "pypy" | "ipython" | "python3w" | "micropython" => Language::Python,
        "perl" => Language::Perl,
        "ruby" | "jruby" | "irb" => Language::Ruby,
        "node" | "nodejs" | "deno" | "bun" | "tsx" | "ts-node" | "qjs" => Language::JavaScript,
        "php" => Language::Php,
        "lua" | "luajit" | "texlua" => Language::Lua,
        "awk" | "gawk" | "mawk" | "nawk" => Language::Awk,
        "osascript" => Language::Osascript,
        "vim" | "vi" | "nvim" | "ex" | "view" => Language::Vim,
        "sqlite" => Language::Sqlite,
        "julia" | "R" | "Rscript" | "elixir" | "iex" | "groovy" | "scala" | "erl" => {
            Language::Rarer
        }
        "emacs" | "emacsclient" => Language::Lisp,
        _ => return None,
    })
}

impl Language {
    /// Whether a short option holds code in the next argument: `-c`, or `-e` in a cluster such as `-lne`.
    pub(super) fn is_code_option(self, option: &str) -> bool {
        let cluster = |letters: &[char]| {
            option.starts_with('-')
                && !option.starts_with("--")
                && option.len() > 1
                && option.ends_with(letters)
                && option.len() < 8
        };
        match self {
            Self::Python => cluster(&['c']),
            Self::Perl => cluster(&['e', 'E']),
            Self::Ruby | Self::Lua | Self::Osascript => cluster(&['e']),
            Self::JavaScript => {
                matches!(
                    option,
                    "-e" | "-p" | "-pe" | "--eval" | "--print" | "eval" | "-r" | "--require"
                )
            }
            Self::Php => matches!(option, "-r" | "--run" | "-B" | "-R" | "-E"),
            Self::Vim => matches!(option, "-c" | "--cmd" | "-S"),
            Self::Rarer => matches!(option, "-e" | "-E" | "--eval" | "-eval" | "--print"),
            Self::Lisp => matches!(option, "--eval" | "-eval" | "--execute" | "-e"),
            Self::Awk | Self::Sqlite => false,
        }
    }

    /// Options that take the next argument, which is no code.
    pub(super) const fn other_values(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["-W", "-X", "-Q"],
            Self::Perl => &["-I", "-M", "-m"],
            Self::Ruby => &["-I", "-r", "-C"],
            Self::JavaScript => &["--loader", "--import", "-C"],
            Self::Php => &["-d", "-c", "-z", "-S", "-t"],
            Self::Lua => &["-l"],
            Self::Awk => &["-F", "-v"],
            Self::Osascript => &["-l"],
            Self::Vim => &["-u", "-U", "-i", "-T", "-w"],
            Self::Sqlite => &["-cmd", "-separator", "-init"],
            Self::Rarer => &["-L", "-pa", "-cp"],
            Self::Lisp => &["-l", "--load", "-f", "--funcall", "-L"],
        }
    }
}
