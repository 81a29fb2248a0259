//! The variables that hooks and plugins do not get from the agent. They change what a program is, not what it works
//! on: which code is loaded into it, which other programs it starts, where it finds its modules. An agent may have
//! loaded them from a file of the repository that it works in. The table started from the one in `sudo`.

/// Variables of one sort, and why they are dropped. A name that ends in `*` stands for all that begin so.
struct Group {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for readers, and for the test of the table")
    )]
    reason: &'static str,
    names: &'static [&'static str],
}

const GROUPS: &[Group] = &[
    Group {
        reason: "the dynamic linker loads the libraries that they name, into every program",
        names: &["LD_*", "DYLD_*", "_RLD*", "LDR_*", "LIBPATH", "SHLIB_PATH", "GLIBC_TUNABLES"],
    },
    Group {
        reason: "the C library loads converters, locales, messages or hosts from where they say, or writes there",
        names: &[
            "GCONV_PATH",
            "GETCONF_DIR",
            "HOSTALIASES",
            "LOCALDOMAIN",
            "LOCPATH",
            "MALLOC_CHECK_",
            "MALLOC_PERTURB_",
            "MALLOC_TRACE",
            "NIS_PATH",
            "NLSPATH",
            "RESOLV_*",
            "RES_OPTIONS",
            "TMPPREFIX",
            "TZDIR",
        ],
    },
    Group {
        reason: "shells run the file or the functions that they name, or read commands differently",
        names: &[
            "BASH_ENV",
            "BASH_FUNC_*",
            "BASH_LOADABLES_PATH",
            "BASH_XTRACEFD",
            "BASHOPTS",
            "CDPATH",
            "ENV",
            "FPATH",
            "GLOBIGNORE",
            "IFS",
            "NULLCMD",
            "PROMPT_COMMAND",
            "PS0",
            "PS4",
            "READNULLCMD",
            "SHELLOPTS",
            "ZDOTDIR",
            "fish_complete_path",
            "fish_function_path",
        ],
    },
    Group {
        reason: "Python imports modules from there, starts with that code, or becomes interactive",
        names: &["PYTHON*", "PYENV_*", "UV_*", "PIP_*"],
    },
    Group {
        reason: "Node and its relatives load the modules or take the options that they name",
        names: &[
            "BUN_*",
            "DENO_*",
            "ELECTRON_RUN_AS_NODE",
            "NODE_OPTIONS",
            "NODE_PATH",
            "NODE_REPL_*",
            "NPM_CONFIG_*",
            "npm_config_*",
            "TS_NODE_*",
            "TSX_*",
        ],
    },
    Group {
        reason: "Perl, Ruby, Lua, PHP and Tcl load modules or settings from there",
        names: &[
            "BUNDLE_*",
            "GEM_HOME",
            "GEM_PATH",
            "LUA_*",
            "PERL5*",
            "PERLLIB",
            "PERLIO*",
            "PHPRC",
            "PHP_INI_SCAN_DIR",
            "RUBYLIB",
            "RUBYOPT",
            "RUBYPATH",
            "RUBYSHELL",
            "TCLLIBPATH",
        ],
    },
    Group {
        reason: "Erlang, Elixir, R, Julia, Guile and OCaml load code or take options from there",
        names: &[
            "CAML_LD_LIBRARY_PATH",
            "ELIXIR_ERL_OPTIONS",
            "ERL_AFLAGS",
            "ERL_FLAGS",
            "ERL_LIBS",
            "ERL_ZFLAGS",
            "GUILE_LOAD_COMPILED_PATH",
            "GUILE_LOAD_PATH",
            "JULIA_DEPOT_PATH",
            "JULIA_LOAD_PATH",
            "OCAMLPATH",
            "R_ENVIRON*",
            "R_LIBS*",
            "R_PROFILE*",
        ],
    },
    Group {
        reason: "the Java machine loads the agents and classes that they name",
        names: &[
            "CLASSPATH",
            "IBM_JAVA_OPTIONS",
            "JAVA_OPTIONS",
            "JAVA_OPTS",
            "JAVA_TOOL_OPTIONS",
            "JDK_JAVA_OPTIONS",
            "_JAVA_OPTIONS",
        ],
    },
    Group {
        reason: "Cargo and Go run the wrappers, linkers and tools that they name",
        names: &["CARGO_*", "GOENV", "GOFLAGS", "GOROOT", "GOTOOLCHAIN", "RUSTC*", "RUSTUP_*"],
    },
    Group {
        reason: "programs in Rust and Go fail at their start with the stacks, threads or settings that they name",
        names: &["GODEBUG", "RUST_MIN_STACK", "TOKIO_WORKER_THREADS"],
    },
    Group {
        reason: "compiled programs load plugins, hooks or profilers that they name",
        names: &[
            "COR_*",
            "CORECLR_*",
            "DOTNET_ADDITIONAL_DEPS",
            "DOTNET_STARTUP_HOOKS",
            "GTK_MODULES",
            "GTK_PATH",
            "MONO_PATH",
            "QT_PLUGIN_PATH",
        ],
    },
    Group {
        reason: "git runs the programs, reads the settings or takes the repository that they name",
        names: &[
            "GIT_ALTERNATE_OBJECT_DIRECTORIES",
            "GIT_ASKPASS",
            "GIT_COMMON_DIR",
            "GIT_CONFIG*",
            "GIT_DIR",
            "GIT_EDITOR",
            "GIT_EXEC_PATH",
            "GIT_EXTERNAL_DIFF",
            "GIT_INDEX_FILE",
            "GIT_OBJECT_DIRECTORY",
            "GIT_PAGER",
            "GIT_PROXY_COMMAND",
            "GIT_REPLACE_REF_BASE",
            "GIT_SEQUENCE_EDITOR",
            "GIT_SSH*",
            "GIT_SSL_NO_VERIFY",
            "GIT_TEMPLATE_DIR",
            "GIT_TRACE*",
            "GIT_WORK_TREE",
            "XDG_CONFIG_DIRS",
            "XDG_CONFIG_HOME",
        ],
    },
    Group {
        reason: "other programs start what they name: pagers, editors, askers of passwords, openers",
        names: &[
            "BROWSER",
            "CVS_RSH",
            "EDITOR",
            "EXINIT",
            "GNUMAKEFLAGS",
            "GREP_OPTIONS",
            "LESS",
            "LESSCLOSE",
            "LESSOPEN",
            "LV",
            "MANPAGER",
            "MAKEFLAGS",
            "MAKEFILES",
            "PAGER",
            "RIPGREP_CONFIG_PATH",
            "RSYNC_RSH",
            "SSH_ASKPASS*",
            "SUDO_ASKPASS",
            "SVN_SSH",
            "SYSTEMD_*",
            "TAR_OPTIONS",
            "VIMINIT",
            "VISUAL",
        ],
    },
    Group {
        reason: "the terminal library reads descriptions from there, which programs act on",
        names: &["TERMCAP", "TERMINFO", "TERMINFO_DIRS", "TERMPATH"],
    },
    Group {
        reason: "TLS and Kerberos load engines and settings from there, or write session keys there",
        names: &[
            "CURL_HOME",
            "KRB5_CONFIG*",
            "KRB5_KTNAME",
            "OPENSSL_CONF*",
            "OPENSSL_ENGINES",
            "OPENSSL_MODULES",
            "SSLKEYLOGFILE",
            "WGETRC",
        ],
    },
    Group {
        reason: "they say where hookbus itself works; the bus sets its own",
        names: &["HOOKBUS_*"],
    },
    Group {
        reason: "a guard that asks a server would believe another one: certificates and whether they are checked",
        names: &[
            "CURL_CA_BUNDLE",
            "NODE_EXTRA_CA_CERTS",
            "NODE_TLS_REJECT_UNAUTHORIZED",
            "PYTHONHTTPSVERIFY",
            "REQUESTS_CA_BUNDLE",
            "SSL_CERT_DIR",
            "SSL_CERT_FILE",
        ],
    },
    Group {
        reason: "version managers and awk find programs and libraries where they say",
        names: &["ASDF_*", "AWKLIBPATH", "AWKPATH", "MISE_*", "RBENV_*", "VOLTA_*"],
    },
];

/// Whether a variable of the agent does not reach hooks.
pub(super) fn is_stripped(name: &[u8]) -> bool {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix.as_bytes()),
        None => name == pattern.as_bytes(),
    };
    GROUPS.iter().any(|group| group.names.iter().any(|pattern| fits(pattern)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;
    use crate::exec::{UserEnvironment, hook_caller};

    #[test]
    fn variables_that_change_what_a_program_is_are_stripped() {
        for name in [
            "LD_PRELOAD",
            "LD_AUDIT",
            "DYLD_INSERT_LIBRARIES",
            "PYTHONPATH",
            "PYTHONINSPECT",
            "BASH_ENV",
            "BASH_FUNC_ls%%",
            "NODE_OPTIONS",
            "PERL5OPT",
            "GIT_SSH_COMMAND",
            "GIT_CONFIG_COUNT",
            "GIT_CONFIG_KEY_0",
            "HOOKBUS_HOME",
            "OPENSSL_CONF",
            "IFS",
            "ERL_AFLAGS",
            "R_PROFILE_USER",
            "R_LIBS_SITE",
            "JULIA_LOAD_PATH",
            "GUILE_LOAD_COMPILED_PATH",
            "GNUMAKEFLAGS",
            "VIMINIT",
            "SVN_SSH",
            "OCAMLPATH",
            "MONO_PATH",
            "fish_function_path",
            "RUST_MIN_STACK",
            "MALLOC_PERTURB_",
        ] {
            assert!(is_stripped(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_a_hook_works_with_stays() {
        for name in [
            "PATH",
            "HOME",
            "LANG",
            "TERM",
            "TZ",
            "USER",
            "SHELL",
            "TMPDIR",
            "VIRTUAL_ENV",
            "HERMES_SESSION_ID",
            "GEMINI_PROJECT_DIR",
            "GIT_AUTHOR_NAME",
            "GITHUB_TOKEN",
            "SSH_AUTH_SOCK",
            "OPENAI_API_KEY",
            "JAVA_HOME",
            "https_proxy",
        ] {
            assert!(!is_stripped(name.as_bytes()), "{name}");
        }
    }

    /// The names in the table under `### Environment` of the documentation for users.
    fn documented() -> Vec<String> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/docs/policy.md");
        let text = std::fs::read_to_string(file).expect("the documentation");
        let (_, section) = text.split_once("\n### Environment\n").expect("a section");
        let (section, _) = section.split_once("\n### ").expect("another section after it");
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let cells = rows.filter_map(|row| row.split('|').nth(1));
        // Every second part is between backticks.
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned)).collect()
    }

    #[test]
    fn the_documented_table_and_this_one_agree() {
        let documented = documented();
        assert!(documented.len() > 50, "{documented:?}");
        let names: Vec<&str> = GROUPS.iter().flat_map(|group| group.names).copied().collect();
        let unknown: Vec<&String> =
            documented.iter().filter(|name| !names.contains(&name.as_str())).collect();
        assert!(unknown.is_empty(), "in policy.md only: {unknown:?}");
        for group in GROUPS {
            let is_named = |own: &&&str| documented.iter().any(|name| name == *own);
            assert!(
                group.names.iter().any(|own| is_named(&own)),
                "not in policy.md: {:?}",
                group.names
            );
            assert!(!group.reason.is_empty());
        }
    }

    #[test]
    fn every_name_of_the_table_is_kept_from_hooks() {
        for name in GROUPS.iter().flat_map(|group| group.names) {
            let variable = name.replace('*', "X");
            let user = UserEnvironment { path: "/bin".into(), home: None, is_recorded: true };
            let agent =
                Caller { env: vec![(variable.clone().into(), "x".into())], ..Caller::default() };
            let var =
                |pass: &[String]| hook_caller(&agent, &user, None, pass).var(&variable).is_some();
            assert!(!var(&[]), "{variable} reaches hooks");
            assert!(var(std::slice::from_ref(&variable)), "{variable} can be asked for");
        }
    }
}
