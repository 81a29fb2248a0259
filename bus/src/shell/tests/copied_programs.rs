//! Programs under another name.

use super::{check, programs};

#[test]
fn a_copied_program_is_still_that_program() {
    for line in [
        "cp /bin/rm ./x; ./x -rf /y",
        "ln -s $(which rm) x && ./x -rf /y",
        "install -m 755 /bin/rm /tmp/x; /tmp/x -rf /y",
        "mv /bin/rm /tmp/x; /tmp/x -rf /y",
        "cat /bin/rm > x; chmod +x x; ./x -rf /y",
        "dd if=/bin/rm of=x; ./x -rf /y",
        "cp /bin/sh x; ./x -c '/bin/rm -rf /y'",
        "cp /bin/rm x; cp x z; ./z -rf /y",
        "cp /bin/rm x; cd src; ../x -rf /y",
        "cp /bin/rm x; find . -exec ./x -rf /y \\;",
        "cp /bin/rm x; PATH=.:$PATH; x -rf /y",
        "ln -sf /bin/rm ~/bin/x; x -rf /y",
        "hash -p /bin/rm x; x -rf /y",
    ] {
        let found = programs(line);
        let is_rm = |program: &String| program.ends_with("rm -rf /y");
        assert!(found.iter().any(is_rm), "{line}: {found:?}");
    }
    check(&[
        ("cp /bin/rm x; x -rf y", "cp /bin/rm x ; x -rf y"),
        ("cp a b; cp b a; ./a", "cp a b ; cp b a ; ./a"),
        ("cp /bin/rm x; cp /bin/ls x; ./x", "cp /bin/rm x ; cp /bin/ls x ; ./x ; /bin/ls"),
    ]);
}

#[test]
fn a_subcommand_of_git_has_a_name_of_its_own() {
    check(&[
        ("git-push -f", "git-push -f ; git push -f"),
        ("/usr/lib/git-core/git-push -f", "/usr/lib/git-core/git-push -f ; git push -f"),
    ]);
}
