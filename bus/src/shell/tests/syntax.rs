//! Every construct of the shell language.

use super::{OpaqueKind, check, opaque, programs, view};

#[test]
fn finds_programs_in_every_construct() {
    check(&[
        ("git push --force origin main", "git push --force origin main"),
        ("a; b & c && d || e", "a ; b ; c ; d ; e"),
        ("a | b |& c", "a ; b ; c"),
        ("! a; time b; time -p c; ! time d", "a ; b ; c ; d"),
        ("(a; (b)) ; { c; d; }", "a ; b ; c ; d"),
        ("( (rm -rf /) )", "rm -rf /"),
        ("((rm -rf /); (ls))", "rm -rf / ; ls"),
        ("!(rm -rf /)", "rm -rf /"),
        ("if a; then b; elif c; then d; else e; fi", "a ; b ; c ; d ; e"),
        ("for f in x y; do rm $f; done", "rm x ; rm y"),
        ("for f in x y\ndo\n rm $f\ndone", "rm x ; rm y"),
        ("for ((i=0;i<3;i++)); do a; done", "a"),
        ("for x do a $x; done", "a … …more"),
        ("while a; do b; done; until c; do d; done", "a ; b ; c ; d"),
        ("case $x in a) b;; (c|d) e;& *) f;; esac", "b ; e ; f"),
        ("case x in esac; a", "a"),
        ("select x in a b; do rm $x; done", "rm a ; rm b"),
        ("f() { rm -rf $1; }; f /", "f / ; rm -rf /"),
        ("function f { a; }; f", "f ; a"),
        ("function f() (a); f", "f ; a"),
        ("f() { a; }", "a"),
        (":(){ :|:& };:", ": ; : ; :"),
        ("[[ $(rm x) == b && ! -f y ]]", "rm x"),
        ("[[ a =~ ^(x|y)$ ]] && b", "b"),
        ("[[ -f x ]] || rm -rf y", "rm -rf y"),
        ("(( $(rm x) > 3 )) && b", "rm x ; b"),
        ("echo $(a; b) `c`", "a ; b ; c ; echo … … …more"),
        ("echo `echo \\`gen\\``", "gen ; echo … …more ; echo … …more"),
        ("diff <(a) <(b)", "a ; b ; diff /dev/fd/63 /dev/fd/63"),
        ("tee >(sh x) out", "tee /dev/fd/63 out ; sh x"),
        ("coproc a; coproc N { b; }", "a ; b"),
        ("a # b; c\nd", "a ; d"),
        ("a \\\n  b", "a b"),
        ("trap 'rm -rf x' EXIT", "trap rm -rf x EXIT ; rm -rf x"),
        ("alias x='rm -rf'; x /", "alias x=rm -rf ; rm -rf /"),
        ("{ a; } > f; (b) 2>&1 | c", "a ; b ; c"),
        ("echo ${x:-$(gen y)}", "gen y ; echo … …more"),
        ("echo $((1 + $(gen x)))", "gen x ; echo … …more"),
        ("a=$(rm x)", "rm x"),
        ("x=(a $(rm b))", "rm b"),
        ("echo {fd}>f", "echo"),
        ("X=rm\n$X y\nif", "rm y"),
    ]);
}

#[test]
fn reads_here_documents() {
    check(&[
        ("cat <<EOF | sh\nrm -rf /\nEOF\necho x", "cat ; sh ; rm -rf / ; echo x"),
        ("cat <<'EOF'\n$(rm x)\nEOF", "cat"),
        ("cat <<EOF\n$(rm x)\nEOF", "rm x ; cat"),
        ("bash <<-EOF\n\trm x\n\tEOF\n", "bash ; rm x"),
        ("bash <<< 'rm x'", "bash ; rm x"),
        ("cmd <<A <<B\na\nA\nb\nB\nnext", "cmd ; next"),
        ("bash <<EOF\nrm x", "bash ; rm x"),
        ("git commit -m \"$(cat <<'EOF'\nit's (fine\nEOF\n)\"", "cat ; git commit -m it's (fine"),
    ]);
    let view = view("cat <<EOF\nhello $USER\nEOF");
    let text = view.programs[0].stdin_text.as_ref().map(ToString::to_string);
    assert_eq!(text.as_deref(), Some("hello u\n"));
}

#[test]
fn lists_what_it_can_when_bash_would_refuse() {
    for line in ["rm -rf / ; if", "rm -rf / )", "echo 'a ; rm -rf /", "( rm -rf /", "fi; rm -rf /"]
    {
        assert!(opaque(line).contains(&OpaqueKind::Syntax), "{line}");
        let found = programs(line);
        let inside = line.starts_with("echo");
        assert!(
            inside || found.iter().any(|program| program.starts_with("rm -rf /")),
            "{line}: {found:?}"
        );
    }
}

#[test]
fn quotes_that_other_readers_get_wrong() {
    check(&[
        ("echo $$'\\'; rm -rf / #'", "echo …\\ ; rm -rf /"),
        ("echo \\$'\\'; rm -rf /; echo x", "echo $\\ ; rm -rf / ; echo x"),
        ("echo \"$'\"; rm x; echo \"'\"", "echo $' ; rm x ; echo '"),
        ("echo '#'; rm x # y", "echo # ; rm x"),
        ("echo a#b; rm x", "echo a#b ; rm x"),
        ("99999999999>f rm x", "rm x"),
    ]);
}

#[test]
fn follows_pipes() {
    let view = view("a | b | (c; d) | e");
    let from: Vec<Vec<usize>> =
        view.programs.iter().map(|program| program.stdin_from.clone()).collect();
    assert_eq!(from, [vec![], vec![0], vec![1], vec![1], vec![2, 3]]);
}

#[test]
fn follows_directories() {
    check(&[
        ("cd sub && make; ls", "cd sub ; sub: make ; sub: ls"),
        ("(cd sub && a); b", "cd sub ; sub: a ; b"),
        ("cd a; cd ../b; x", "cd a ; a: cd ../b ; a/../b: x"),
        ("cd /tmp; cd -; x", "cd /tmp ; /tmp: cd - ; x"),
        ("pushd a; x; popd; y", "pushd a ; a: x ; a: popd ; y"),
        ("cd a || exit; x", "cd a ; exit ; a: x"),
        ("cd \"$(dirname \"$0\")\"; x", "dirname … ; cd … ; ?: x"),
        ("cd; x", "cd ; /home/u: x"),
        ("cd ~/x; y", "cd /home/u/x ; /home/u/x: y"),
        ("env -C sub a", "env -C sub a ; sub: a"),
        ("cd $X; y", "cd … …more ; ?: y"),
        ("cd a | b; c", "cd a ; b ; c"),
    ]);
}
