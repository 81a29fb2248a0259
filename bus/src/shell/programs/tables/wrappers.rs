//! Programs that start another program: their options, then the other program's line.

use crate::shell::programs::spec::Spec;

pub(super) const PROGRAMS: &[Spec] = &[
    Spec::new("sudo").options(&[
        "-u --user =", "-g --group =", "-h --host =", "-p --prompt =", "-C --close-from =", "-D --chdir =", "-R --chroot =", "-T --command-timeout =",
        "-U --other-user =", "-r --role =", "-t --type =", "-A --askpass", "-b --background", "-E", "--preserve-env [=]", "-e --edit", "-H --set-home",
        "-i --login", "-K --remove-timestamp", "-k --reset-timestamp", "-l --list", "-n --non-interactive", "-P --preserve-groups", "-S --stdin",
        "-s --shell", "-V --version", "-v --validate", "-B --bell", "-N --no-update",
    ]).ends_after(1),
    Spec::new("doas").options(&["-u =", "-C =", "-a =", "-n", "-s", "-L"]).ends_after(1),
    Spec::new("su").like("runuser").options(&["-c --command =", "-l --login", "-s --shell =", "-g --group =", "-G --supp-group =", "-u --user =", "-m -p --preserve-environment", "-P --pty", "-f --fast", "-w --whitelist-environment ="]).ends_after(2),
    Spec::new("pkexec").options(&["--user =", "--disable-internal-agent", "--keep-cwd"]).ends_after(1),
    Spec::new("env").options(&["-i --ignore-environment", "-u --unset =", "-C --chdir =", "-S --split-string =", "-0 --null", "-v --debug", "-a --argv0 =", "-P =", "--block-signal [=]", "--default-signal [=]", "--ignore-signal [=]"]).ends_after(1),
    Spec::new("xargs").options(&["-0 --null", "-a --arg-file =", "-d --delimiter =", "-E =", "-e --eof [=]", "-I =", "-i --replace [=]", "-J =", "-L --max-lines =", "-l [=]", "-n --max-args =", "-P --max-procs =", "-p --interactive", "-r --no-run-if-empty", "-s --max-chars =", "-t --verbose", "-x --exit", "-o --open-tty", "-R =", "-S ="]).ends_after(1),
    Spec::new("parallel").options(&["-j --jobs =", "-a --arg-file =", "-k --keep-order", "-n --max-args =", "-N =", "-I =", "-d --delimiter =", "-C --colsep =", "-S --sshlogin =", "--joblog =", "--results =", "-0 --null", "--bar", "--dry-run --dryrun", "-q --quote", "-X", "-m", "--progress", "--tmpdir =", "--timeout =", "--halt =", "--retries =", "--env =", "-v --verbose", "--will-cite", "-u --ungroup", "--pipe"]).ends_after(1),
    Spec::new("timeout").options(&["-s --signal =", "-k --kill-after =", "-v --verbose", "-p --preserve-status", "-f --foreground"]).ends_after(1),
    Spec::new("nice").options(&["-n --adjustment ="]).ends_after(1),
    Spec::new("ionice").options(&["-c --class =", "-n --classdata =", "-p --pid =", "-P --pgid =", "-t --ignore", "-u --uid ="]).ends_after(1),
    Spec::new("chrt").like("taskset|cpulimit|numactl|prlimit").options(&["-p --pid", "-f --fifo", "-r --rr", "-c --cpu-list", "-a --all-tasks"]).ends_after(1),
    Spec::new("nohup").like("setsid|command|builtin|exec|noglob|nocorrect|coproc|busybox|toybox|winpty|catchsegv|setarch|linux32|linux64|proxychains|proxychains4|torsocks|torify|fakeroot|faketime|dbus-run-session|xvfb-run|unbuffer|chronic|ts|caffeinate|rlwrap|gtime").options(&["-a =", "-c", "-l", "-f --fork", "-w --wait", "-q", "-i", "-s", "-d", "-m", "-v", "-V", "-p"]).ends_after(1),
    Spec::new("time").options(&["-p --portability", "-o --output =", "-a --append", "-f --format =", "-v --verbose", "-q --quiet"]).ends_after(1),
    Spec::new("stdbuf").options(&["-i --input =", "-o --output =", "-e --error ="]).ends_after(1),
    Spec::new("watch").options(&["-n --interval =", "-d --differences [=]", "-t --no-title", "-b --beep", "-e --errexit", "-g --chgexit", "-c --color", "-x --exec", "-p --precise", "-q --equexit =", "-r --no-rerun", "-s --shotsdir ="]).ends_after(1),
    Spec::new("strace").like("ltrace|dtruss|perf|valgrind|gdb|lldb").options(&["-o --output =", "-e --trace =", "-p --attach =", "-f --follow-forks", "-s --string-limit =", "-u --user =", "-E --env =", "-c", "-t", "-T", "-v", "-x", "-y", "-P --trace-path =", "-S --summary-sort-by =", "-k", "--args", "-ex =", "-batch"]).ends_after(1),
    Spec::new("flock").options(&["-s --shared", "-x -e --exclusive", "-u --unlock", "-n --nb --nonblock", "-w --wait --timeout =", "-o --close", "-E --conflict-exit-code =", "-c --command =", "-F --no-fork", "-v --verbose"]).ends_after(1),
    Spec::new("chroot").options(&["--userspec =", "--groups =", "--skip-chdir"]).ends_after(1),
    Spec::new("unshare").options(&["-m --mount [=]", "-u --uts [=]", "-i --ipc [=]", "-n --net [=]", "-p --pid [=]", "-U --user [=]", "-C --cgroup [=]", "-f --fork", "-r --map-root-user", "--mount-proc [=]", "-S --setuid =", "-G --setgid =", "-R --root =", "-w --wd ="]).ends_after(1),
    Spec::new("nsenter").options(&["-t --target =", "-a --all", "-m --mount [=]", "-u --uts [=]", "-i --ipc [=]", "-n --net [=]", "-p --pid [=]", "-U --user [=]", "-r --root [=]", "-w --wd [=]", "-S --setuid =", "-G --setgid =", "-F --no-fork"]).ends_after(1),
    Spec::new("bwrap").like("firejail|sandbox-exec|systemd-nspawn|capsh|proot|gosu|setpriv").options(&["-f =", "-p =", "-D =", "-M =", "--die-with-parent", "--unshare-all", "--share-net", "-b --boot", "--drop =", "--reuid =", "--regid =", "--init-groups", "--print"]).ends_after(1),
    Spec::new("script").options(&["-c --command =", "-q --quiet", "-a --append", "-e --return", "-f --flush", "-t --timing [=]", "-I --log-in =", "-O --log-out =", "-B --log-io ="]),
    Spec::new("entr").options(&["-r", "-c", "-d", "-n", "-p", "-s", "-z", "-a"]).ends_after(1),
    Spec::new("eval").like("trap").ends_after(1),
    Spec::new("direnv").like("mise|asdf|rtx|nvm|pyenv|rbenv|fnm|volta|sdk|dotenv|dotenvx").options(&["-f =", "-e ="]).subs(1, &[]),
];
