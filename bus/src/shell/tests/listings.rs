//! Programs and loops that get their paths from a program that lists them.

use super::{files, programs, view};

fn last(line: &str) -> String {
    programs(line).pop().unwrap_or_default()
}

#[test]
fn gives_listed_paths_to_programs() {
    let table = [
        ("ls -d ~/* | xargs -n1 rm -rf", "rm -rf /home/u/*"),
        ("printf '%s\\0' /etc /usr | xargs -0 -I{} rm -rf {}", "rm -rf /usr"),
        ("printf '%s\\0' /etc '/a b' | xargs -0 rm", "rm /etc /a b"),
        ("printf '%s\\n' /etc '/a b' | xargs -d '\\n' rm", "rm /etc /a b"),
        ("find /var/log -type f -print0 | xargs -0 rm -f", "rm -f /var/log"),
        ("find ~/x -name '*.key' | xargs shred -u", "shred -u /home/u/x/…/*.key"),
        ("find ~ -name id_rsa | xargs cat", "cat /home/u/…/id_rsa"),
        ("find ~ -printf '%s' | xargs rm", "rm …more"),
        ("find ~ | sort | xargs rm", "rm /home/u"),
        ("find ~ | grep x | xargs rm", "rm /home/u/…"),
        ("find ~ | grep -v x | xargs rm", "rm /home/u"),
        ("ls -d ~/* | head -3 | xargs rm", "rm /home/u/…"),
        ("echo ~/* | xargs rm -rf", "rm -rf /home/u/*"),
        ("ls -l ~/* | xargs rm", "rm …more"),
        ("fd . ~ | xargs rm -rf", "rm -rf /home/u"),
        ("fd -e log . ~ | parallel rm {}", "rm /home/u/…"),
        ("find ~ | parallel rm", "rm /home/u"),
        ("rm -rf $(find ~ -mtime +1)", "rm -rf /home/u/…"),
        ("rm -rf $(ls -d ~/*)", "rm -rf /home/u/*"),
        ("while read -r p; do rm -rf \"$p\"; done < <(ls -d ~/*)", "rm -rf /home/u/*"),
        ("ls ~ | while read f; do rm -rf ~/\"$f\"; done", "rm -rf /home/u/…"),
        ("find ~ -print0 | while IFS= read -r -d '' f; do rm \"$f\"; done", "rm /home/u"),
        ("for f in $(find /etc /usr); do rm \"$f\"; done", "rm /usr"),
        ("mapfile -t a < <(find /etc /usr); rm \"${a[@]}\"", "rm /etc /usr"),
        ("find ~ | while read -r a b; do rm \"$a\"; done", "rm /home/u"),
        ("git ls-files | xargs rm", "rm …more"),
        ("ls | xargs rm", "rm *"),
    ];
    for (line, expected) in table {
        assert_eq!(last(line), expected, "{line}");
    }
    assert_eq!(files("printf '%s\\0' /a /b | xargs -0 -I{} rm {}"), ["delete /a", "delete /b"]);
}

#[test]
fn paths_of_loops_keep_their_wildcards() {
    for line in [
        "ls -d ~/* | xargs rm",
        "ls -d ~/* | while read p; do rm \"$p\"; done",
        "for p in ~/*; do rm \"$p\"; done",
    ] {
        let files = view(line).files;
        assert!(files.iter().rev().any(|file| file.path.is_glob()), "{line}");
    }
}

#[test]
fn find_gives_its_starts_or_something_below() {
    let table = [
        ("find ~ -exec rm {} +", "rm /home/u …more"),
        ("find ~ -maxdepth 1 -mindepth 1 -type f -exec rm {} \\;", "rm /home/u"),
        ("find ~ -not -name keep -exec rm {} \\;", "rm /home/u"),
        ("find ~ ! -name keep -exec rm {} \\;", "rm /home/u"),
        ("find ~ -name '*' -exec rm {} \\;", "rm /home/u"),
        ("find ~ -name '*.log' -exec rm {} \\;", "rm /home/u/…/*.log"),
        ("find ~ -newermt 2020-01-01 -exec rm {} \\;", "rm /home/u/…"),
        ("find ~ -size +1M -exec rm {} \\;", "rm /home/u/…"),
        ("find ~ -name id_rsa -exec cat {} \\;", "cat /home/u/…/id_rsa"),
        ("find ~ -exec grep -name {} \\;", "grep -name /home/u"),
        ("fd . ~ -x rm -rf {}", "rm -rf /home/u"),
        ("fd -e log . ~ -x rm", "rm /home/u/…"),
        ("fd secret ~ /etc -X cat", "cat /home/u/… /etc/…"),
    ];
    for (line, expected) in table {
        assert_eq!(last(line), expected, "{line}");
    }
    assert_eq!(files("find ~ -name x -delete"), ["delete /home/u/…/x"]);
    assert_eq!(files("find ~ ! -name x -delete"), ["delete /home/u"]);
}
