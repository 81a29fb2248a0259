//! Programs that start other programs.

use super::check;

#[test]
fn sees_through_wrappers() {
    check(&[
        ("sudo -u root -E rm -rf /", "sudo -u root -E rm -rf / ; !rm -rf /"),
        ("sudo A=b rm x", "sudo A=b rm x ; !rm x"),
        ("sudo -s rm x", "sudo -s rm x ; !rm x"),
        ("sudo -- rm x", "sudo -- rm x ; !rm x"),
        ("doas rm x", "doas rm x ; !rm x"),
        ("su - root -c 'rm x'", "su - root -c rm x ; !rm x"),
        ("runuser -u x -- rm y", "runuser -u x -- rm y ; !rm y"),
        ("sudo sh -c 'rm x | y'", "sudo sh -c rm x | y ; !sh -c rm x | y ; !rm x ; !y"),
        ("env -i A=b rm x", "env -i A=b rm x ; rm x"),
        ("env -S 'rm -rf' /", "env -S rm -rf / ; rm -rf /"),
        ("command rm x; command -v rm", "command rm x ; rm x ; command -v rm"),
        ("exec -a n rm x", "exec -a n rm x ; rm x"),
        ("nohup nice -n 5 rm x &", "nohup nice -n 5 rm x ; nice -n 5 rm x ; rm x"),
        ("timeout -k 5 10s rm x", "timeout -k 5 10s rm x ; rm x"),
        ("time -v rm x", "time -v rm x ; rm x"),
        ("/usr/bin/time -o f rm x", "/usr/bin/time -o f rm x ; rm x"),
        ("stdbuf -oL rm x; setsid rm x", "stdbuf -oL rm x ; rm x ; setsid rm x ; rm x"),
        ("watch -n 1 'rm x; y'", "watch -n 1 rm x; y ; rm x ; y"),
        ("flock /l rm x; flock /l -c 'rm y'", "flock /l rm x ; rm x ; flock /l -c rm y ; rm y"),
        ("script -qc 'rm x' /dev/null", "script -qc rm x /dev/null ; rm x"),
        ("busybox rm x", "busybox rm x ; rm x"),
        ("strace -f -o o rm x", "strace -f -o o rm x ; rm x"),
        ("chroot /m rm x", "chroot /m rm x ; rm x"),
    ]);
}

#[test]
fn fills_in_arguments() {
    check(&[
        ("echo / | xargs rm -rf", "echo / ; xargs rm -rf ; rm -rf /"),
        ("ls | xargs -n 1 rm", "ls ; xargs -n 1 rm ; rm *"),
        ("echo / | xargs -I{} rm -rf {}/x", "echo / ; xargs -I{} rm -rf {}/x ; rm -rf //x"),
        ("ls | xargs -I X sh -c 'rm X'", "ls ; xargs -I X sh -c rm X ; sh -c rm * ; rm *"),
        ("find / -exec rm -rf {} \\;", "find / -exec rm -rf {} ; ; rm -rf /"),
        ("find a b -name x -exec rm {} +", "find a b -name x -exec rm {} + ; rm a/…/x b/…/x …more"),
        (
            "find . -type f -exec sh -c 'rm \"$1\"' _ {} \\;",
            "find . -type f -exec sh -c rm \"$1\" _ {} ; ; sh -c rm \"$1\" _ . ; rm .",
        ),
        ("fd x -x rm", "fd x -x rm ; rm … …more"),
        ("parallel rm ::: a b", "parallel rm ::: a b ; rm a ; rm b"),
        ("echo / | while read d; do rm -rf $d; done", "echo / ; read d ; rm -rf /"),
    ]);
}

#[test]
fn follows_remote_and_contained_programs() {
    check(&[
        ("ssh -p 22 u@h rm -rf /", "ssh -p 22 u@h rm -rf / ; ?: rm -rf /"),
        ("ssh h 'cd /x; rm y'", "ssh h cd /x; rm y ; ?: cd /x ; /x: rm y"),
        ("ssh h <<EOF\nrm x\nEOF", "ssh h ; ?: rm x"),
        (
            "docker exec -it c sh -c 'rm x'",
            "docker exec -it c sh -c rm x ; ?: sh -c rm x ; ?: rm x",
        ),
        (
            "docker run --rm -v /a:/b -w /b img rm x",
            "docker run --rm -v /a:/b -w /b img rm x ; ?: rm x",
        ),
        ("docker compose exec web rm x", "docker compose exec web rm x ; ?: rm x"),
        ("kubectl exec -it p -- rm x", "kubectl exec -it p -- rm x ; ?: rm x"),
    ]);
}

#[test]
fn follows_runners() {
    check(&[
        ("npx -y rimraf /", "npx -y rimraf / ; rimraf /"),
        ("pnpm exec rm x", "pnpm exec rm x ; rm x"),
        (
            "uv run --with x python -c 'import os; os.system(\"rm y\")'",
            "uv run --with x python -c import os; os.system(\"rm y\") ; python -c import os; os.system(\"rm y\") ; rm y",
        ),
        ("poetry run rm x", "poetry run rm x ; rm x"),
        ("bundle exec rm x", "bundle exec rm x ; rm x"),
        ("mise exec node@20 -- rm x", "mise exec node@20 -- rm x ; rm x"),
        ("direnv exec . rm x", "direnv exec . rm x ; rm x"),
        ("nix-shell -p x --run 'rm y'", "nix-shell -p x --run rm y ; rm y"),
        ("conda run -n e rm x", "conda run -n e rm x ; rm x"),
        ("npm install x", "npm install x"),
    ]);
}

/// Lines that start `rm -rf /` in a way of their own.
const RARE_WRAPPERS: &[&str] = &[
    "tmux new-session -d 'rm -rf /'",
    "tmux -L s new -d -s x rm -rf /",
    "tmux new-window 'rm -rf /'",
    "tmux split-window -h -c /x 'rm -rf /'",
    "tmux send-keys -t x 'rm -rf /' Enter",
    "tmux send -t x rm Space -rf Space / C-m",
    "tmux run-shell 'rm -rf /'",
    "tmux new -d ls \\; send-keys 'rm -rf /' Enter",
    "tmux if-shell 'rm -rf /' ''",
    "tmux if-shell true \"run-shell 'rm -rf /'\"",
    "tmux set-hook -g pane-exited \"run-shell 'rm -rf /'\"",
    "screen -dmS x rm -rf /",
    "screen -dm bash -c 'rm -rf /'",
    "screen -S x -X stuff 'rm -rf /\\n'",
    "screen -S x -X exec rm -rf /",
    "bwrap --ro-bind / / --dev /dev --setenv A b rm -rf /",
    "bwrap --unshare-all --dev-bind / / sh -c 'rm -rf /'",
    "capsh --drop=all -- -c 'rm -rf /'",
    "capsh == -- -c 'rm -rf /'",
    "hyperfine 'rm -rf /' ls",
    "hyperfine --warmup 3 --prepare 'rm -rf /' 'ls -la'",
    "sg docker -c 'rm -rf /'",
    "sg docker 'rm -rf /'",
    "chpst -u me rm -rf /",
    "setarch x86_64 -R rm -rf /",
    "setarch -R rm -rf /",
    "linux32 rm -rf /",
    "faketime '1 day ago' rm -rf /",
    "faketime -f -1d rm -rf /",
    "torsocks -i rm -rf /",
    "unshare -rm --propagation private rm -rf /",
    "ltrace -S rm -rf /",
    "perf stat -r 5 -- rm -rf /",
    "perf trace rm -rf /",
    "gdb -batch -ex run --args rm -rf /",
    "gdb -ex 'run -rf /' rm",
    "gdb -ex 'python import os; os.system(\"rm -rf /\")'",
    "ssh-agent -t 60 bash -c 'rm -rf /'",
    "script --command='rm -rf /'",
    "expect -c 'set r [exec rm -rf /]'",
    "expect -c 'spawn bash; send \"rm -rf /\\r\"'",
    "ls | entr -rs 'rm -rf /'",
    "sem rm -rf /",
    "sandbox-exec -p '(version 1)' rm -rf /",
    "rr record rm -rf /",
    "pueue add 'rm -rf /'",
    "zellij run -- rm -rf /",
    "dtach -n /tmp/s rm -rf /",
    "ld.so rm -rf /",
    "echo 'rm -rf /' | at now",
    "at now + 1 minute <<< 'rm -rf /'",
    "echo 'rm -rf /' > x; at -f x now",
    "batch <<< 'rm -rf /'",
    "echo '* * * * * rm -rf /' | crontab -",
    "crontab - <<< '@reboot rm -rf /'",
    "(crontab -l; echo '0 0 * * * rm -rf /') | crontab -",
    "crontab <(echo '* * * * * rm -rf /')",
    "{ cat x; echo 'rm -rf /'; } | sh",
];

#[test]
fn sees_through_rare_wrappers() {
    for line in RARE_WRAPPERS {
        let found = super::programs(line);
        assert!(found.iter().any(|program| program.starts_with("rm -rf /")), "{line}: {found:?}");
    }
    // These start nothing.
    check(&[
        ("bwrap --bind", "bwrap --bind"),
        ("bwrap --bind a; bwrap --bind a b --bind", "bwrap --bind a ; bwrap --bind a b --bind"),
        ("screen -r work", "screen -r work"),
        ("tmux attach -t x", "tmux attach -t x"),
        ("crontab -l", "crontab -l"),
        ("eval \"$(ssh-agent -s)\"", "ssh-agent -s ; eval …"),
    ]);
    assert_eq!(super::foreign("eval \"$(ssh-agent -s)\""), []);
}
