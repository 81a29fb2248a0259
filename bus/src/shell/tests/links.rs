//! Links that the line makes, and directories that programs name.

use super::{files, programs};

#[test]
fn uses_behind_a_link_are_uses_of_its_target() {
    for (line, expected) in [
        ("ln -s ~ h && rm -rf h/*", "delete /home/u/*"),
        ("ln -s ~/.ssh/id_rsa k && cat k", "read /home/u/.ssh/id_rsa"),
        ("ln -sfn / r; rm -rf ./r/etc", "delete /etc"),
        ("ln -s ~ h; cd h; rm -rf x", "delete /home/u/x"),
        ("ln -s ~/.ssh; cat .ssh/id_rsa", "read /home/u/.ssh/id_rsa"),
        ("cd /a && ln -s ../b l && rm -rf /a/l/x", "delete ../b/x"),
        ("ln -s ~ h; echo a > h/.bashrc", "write /home/u/.bashrc"),
        ("ln -s ~ h; ln -s h/.ssh s; cat s/id_rsa", "read /home/u/.ssh/id_rsa"),
    ] {
        assert!(files(line).iter().any(|file| file == expected), "{line}: {:?}", files(line));
    }
    for line in ["ln -s ~ h && rm -rf h", "ln -s ~ h; rm -rf hx", "rm -rf h/x; ln -s ~ h"] {
        let found = files(line);
        assert!(!found.iter().any(|file| file.starts_with("delete /home/u")), "{line}: {found:?}");
    }
}

#[test]
fn the_top_of_the_repository_is_where_the_line_starts() {
    for (line, expected) in [
        ("rm -rf $(git rev-parse --show-toplevel)", "rm -rf ."),
        ("rm -rf \"$(git rev-parse --show-toplevel)/x\"", "rm -rf ./x"),
        ("cd \"$(git rev-parse --show-toplevel)\" && rm x", "rm x"),
        ("cd a && rm $(git rev-parse --show-toplevel)/x", "a: rm /home/you/app/x"),
        ("rm -rf $(dirname \"$PWD\")", "rm -rf /home/you"),
    ] {
        assert_eq!(programs(line).pop().as_deref(), Some(expected), "{line}");
    }
}
