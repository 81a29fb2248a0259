//! Programs that run the program in their arguments, behind options and a fixed number of other words.

use super::super::follow::{Call, Flow, Follower, Origin};
use super::options;

/// How such a program is called.
#[derive(Debug)]
pub(super) struct Wrapper {
    names: &'static [&'static str],
    /// Its options that take the next word.
    values: &'static [&'static str],
    /// How many words stand between its options and the program.
    words: usize,
}

const TABLE: &[Wrapper] = &[
    Wrapper { names: &["exec"], values: &["-a"], words: 0 },
    Wrapper {
        names: &[
            "nohup",
            "setsid",
            "busybox",
            "toybox",
            "fakeroot",
            "catchsegv",
            "torsocks",
            "torify",
            "nosync",
            "eatmydata",
            "dbus-run-session",
            "dbus-launch",
            "unbuffer",
            "setarch",
            "linux64",
            "chronic",
            "ifne",
            "prime-run",
            "gamemoderun",
        ],
        values: &["-l", "-s", "-b", "-i", "--config-file"],
        words: 0,
    },
    Wrapper { names: &["nice"], values: &["-n", "--adjustment"], words: 0 },
    Wrapper {
        names: &["ionice"],
        values: &["-c", "-n", "-p", "-P", "-u", "--class", "--classdata"],
        words: 0,
    },
    Wrapper { names: &["chrt"], values: &["-T", "-P", "-D", "-p"], words: 1 },
    Wrapper { names: &["taskset"], values: &[], words: 1 },
    Wrapper {
        names: &["stdbuf"],
        values: &["-i", "-o", "-e", "--input", "--output", "--error"],
        words: 0,
    },
    Wrapper { names: &["time", "gtime"], values: &["-f", "-o", "--format", "--output"], words: 0 },
    Wrapper {
        names: &["timeout", "gtimeout"],
        values: &["-s", "-k", "--signal", "--kill-after"],
        words: 1,
    },
    Wrapper {
        names: &["unshare"],
        values: &[
            "-S",
            "-G",
            "-R",
            "-w",
            "--root",
            "--wd",
            "--setuid",
            "--setgid",
            "--map-user",
            "--map-group",
        ],
        words: 0,
    },
    Wrapper {
        names: &["nsenter"],
        values: &["-t", "-S", "-G", "--target", "--setuid", "--setgid"],
        words: 0,
    },
    Wrapper { names: &["chroot"], values: &[], words: 1 },
    Wrapper {
        names: &["systemd-run"],
        values: &[
            "-u",
            "-p",
            "-E",
            "-M",
            "-H",
            "--unit",
            "--property",
            "--setenv",
            "--slice",
            "--description",
            "--on-active",
            "--on-calendar",
            "--working-directory",
            "--uid",
            "--gid",
        ],
        words: 0,
    },
    Wrapper {
        names: &["systemd-inhibit"],
        values: &["--what", "--who", "--why", "--mode"],
        words: 0,
    },
    Wrapper { names: &["firejail"], values: &[], words: 0 },
    Wrapper {
        names: &["bwrap"],
        values: &[
            "--chdir",
            "--uid",
            "--gid",
            "--hostname",
            "--proc",
            "--dev",
            "--tmpfs",
            "--dir",
            "--unsetenv",
            "--cap-add",
            "--cap-drop",
        ],
        words: 0,
    },
    Wrapper { names: &["proot"], values: &["-r", "-b", "-w", "-q", "-R", "-S"], words: 0 },
    Wrapper {
        names: &["strace", "ltrace"],
        values: &[
            "-e", "-o", "-p", "-s", "-a", "-P", "-u", "-E", "-I", "-O", "-S", "-U", "-X", "-l",
            "-n", "-A", "-D", "-F", "-x",
        ],
        words: 0,
    },
    Wrapper {
        names: &["gdb", "lldb"],
        values: &["-ex", "-iex", "-x", "-o", "-s", "-d", "-cd"],
        words: 0,
    },
    Wrapper {
        names: &["valgrind", "perf-record", "heaptrack", "hyperfine", "samply"],
        values: &[
            "-w",
            "-r",
            "-p",
            "-o",
            "--tool",
            "--runs",
            "--warmup",
            "--prepare",
            "--export-json",
        ],
        words: 0,
    },
    Wrapper { names: &["rlwrap"], values: &["-f", "-H", "-s", "-C", "-b", "-P"], words: 0 },
    Wrapper { names: &["caffeinate"], values: &["-t", "-w"], words: 0 },
    Wrapper { names: &["proxychains", "proxychains4"], values: &["-f"], words: 0 },
    Wrapper {
        names: &["xvfb-run"],
        values: &["-n", "-s", "-e", "-f", "-p", "-w", "--server-args"],
        words: 0,
    },
    Wrapper { names: &["sshpass"], values: &["-p", "-f", "-d", "-P"], words: 0 },
    Wrapper { names: &["setpriv"], values: &["--reuid", "--regid", "--groups"], words: 0 },
    Wrapper { names: &["gosu", "su-exec", "chpst"], values: &["-u", "-e"], words: 1 },
    Wrapper { names: &["start-stop-daemon"], values: &["-p", "-x", "-u", "-d"], words: 0 },
    Wrapper { names: &["numactl"], values: &["-N", "-m", "-C", "-i", "-p"], words: 0 },
    Wrapper {
        names: &["prlimit", "cpulimit", "softlimit", "cgexec"],
        values: &["-l", "-g", "-p"],
        words: 0,
    },
    Wrapper { names: &["tini", "dumb-init", "catatonit"], values: &["-p"], words: 0 },
];

/// The wrapper with this name.
pub(super) fn find(name: &str) -> Option<&'static Wrapper> {
    TABLE.iter().find(|wrapper| wrapper.names.contains(&name))
}

impl Follower<'_> {
    pub(super) fn wrapper(&mut self, wrapper: &Wrapper, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let behind = options::leading(args, wrapper.values) + wrapper.words;
        match args.get(behind..) {
            Some([]) | None => Flow::unknown(Origin::Output),
            Some(inner) => self.launch(call.with(inner.to_vec()), input),
        }
    }

    /// `command` and `builtin`: start the program, or tell where it is.
    pub(super) fn command_builtin(&mut self, index: usize, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let tells = args.first().is_some_and(|arg| matches!(arg.word.as_str(), "-v" | "-V"));
        if tells {
            return self.output(index, input);
        }
        let behind = options::leading(args, &[]);
        match args.get(behind..) {
            Some([]) | None => Flow::unknown(Origin::Output),
            Some(inner) => self.launch(call.with(inner.to_vec()), input),
        }
    }
}
