//! Expansion of words.

use super::{OpaqueKind, check, opaque, view};

#[test]
fn expands_words() {
    check(&[
        ("r\\m -r'f' \"/\"", "rm -rf /"),
        ("$'\\x72\\155' $'\\u002f' $\"a\"", "rm / a"),
        ("echo \"a $USER b\" '$USER' \\$USER", "echo a u b $USER $USER"),
        ("ls ~ ~/x ~root/x a~", "ls /home/u /home/u/x ~root/x a~"),
        ("rm {a,b}{1,2} {1..3} {c..a} {x} ${USER}{1,2}", "rm a1 a2 b1 b2 1 2 3 c b a {x} u1 u2"),
        ("echo '{a,b}' \"{a,b}\" {01..03}", "echo {a,b} {a,b} 01 02 03"),
        ("{rm,-rf,/}", "rm -rf /"),
        ("X=rm; Y=\"-rf /\"; $X $Y", "rm -rf /"),
        ("X=a; X+=b; echo $X ${X} \"${X}c\"", "echo ab ab abc"),
        ("export X=/; rm $X", "export X=/ ; rm /"),
        ("X=1; echo $((X + 2 * 3))", "echo 7"),
        ("rm${IFS}-rf${IFS}/", "rm -rf /"),
        ("echo ${A:-def} ${A-def} ${USER:-def} ${A:+x}y", "echo def def u y"),
        ("read X; rm $X", "read X ; rm … …more"),
        ("read X <<< /; rm $X", "read X ; rm /"),
        ("rm $FILES", "rm … …more"),
        ("rm \"$FILE\" $DIR/x", "rm … …/x"),
        ("echo $? $# $1 \"$@\"", "echo … … … … …more"),
        ("$(echo rm) -rf /", "echo rm ; rm -rf /"),
        ("$(printf '%s' rm) /", "printf %s rm ; rm /"),
        ("$(which rm) x", "which rm ; rm x"),
        ("$(command -v rm) x", "command -v rm ; rm x"),
        ("rm -rf $(pwd)/x \"$PWD\"", "pwd ; rm -rf /home/you/app/x /home/you/app"),
        ("X=rxm; ${X/x/} a", "rm a"),
        ("X=xxrm; ${X#xx} ${X:2:1} ${X%m} ${X^^}", "rm r xxr XXRM"),
        ("X=/a/b.c; echo ${X##*/} ${X%/*} ${X%.*} ${#X}", "echo b.c /a /a/b 6"),
        ("A=(rm -rf); \"${A[@]}\" /", "rm -rf /"),
        ("set -- rm -rf; \"$@\" /", "set -- rm -rf ; rm -rf /"),
        ("X=a; (X=b; echo $X); echo $X", "echo b ; echo a"),
        ("printf -v X %s rm; $X /", "printf -v X %s rm ; rm /"),
        ("X=Y; Y=rm; ${!X} z", "rm z"),
        ("a=b echo $a", "echo … …more"),
        ("echo \"a\\\nb\" a\\\nb", "echo ab ab"),
        ("echo \"\" ''", "echo  "),
        ("r\"\"m x", "rm x"),
        ("IFS=,; X=rm,-rf,/; $X", "rm -rf /"),
    ]);
}

#[test]
fn computes_paths_that_programs_print() {
    check(&[
        ("rm $(realpath .)", "realpath . ; rm /home/you/app"),
        ("rm $(realpath -m a/../..)", "realpath -m a/../.. ; rm /home/you"),
        ("rm $(readlink -f ~)", "readlink -f /home/u ; rm /home/u"),
        ("readlink x | xargs rm", "readlink x ; xargs rm ; rm …more"),
        ("cd /x; rm $(realpath ..)", "cd /x ; /x: realpath .. ; /x: rm /"),
        ("rm $(dirname /etc/x) $(dirname src)", "dirname /etc/x ; dirname src ; rm /etc ."),
        (
            "rm /$(basename a/etc) $(basename a/b.c .c)",
            "basename a/etc ; basename a/b.c .c ; rm /etc b",
        ),
        ("cd /etc; cd /tmp; rm $OLDPWD ~-/x", "cd /etc ; /etc: cd /tmp ; /tmp: rm /etc /etc/x"),
        ("cd src; rm $OLDPWD", "cd src ; src: rm /home/you/app"),
        ("rm $(printenv HOME)", "printenv HOME ; rm /home/u"),
        (
            "rm $(echo ~ | head -n 1 | tr -d '\\n')",
            "echo /home/u ; head -n 1 ; tr -d \\n ; rm /home/u",
        ),
        ("rm $(dirname \"$x\")", "dirname … ; rm … …more"),
    ]);
}

#[test]
fn a_value_from_a_branch_keeps_the_other_one() {
    check(&[
        ("X=/; if a; then X=/tmp; fi; rm $X", "a ; rm /tmp ; rm /"),
        ("X=/; a && X=/tmp; Y=$X/b; rm $Y", "a ; rm /tmp/b ; rm //b"),
        ("X=/; a && X=/tmp; rm $X", "a ; rm / ; rm /tmp"),
        ("a && X=/tmp; rm $X", "a ; rm … …more ; rm /tmp"),
        ("a && X=/tmp && rm $X", "a ; rm /tmp"),
        ("a || X=/tmp && rm $X", "a ; rm … …more ; rm /tmp"),
        ("A=(a); b && A=(c); rm \"${A[@]}\"", "b ; rm … …more"),
        ("if a; then X=b; else X=c; fi; rm $X; d $X", "a ; rm b ; rm c ; d c ; d b"),
        ("case a in b) X=c;; *) X=d;; esac; rm $X", "rm c ; rm d"),
        ("if a; then cd b; fi; c", "a ; cd b ; ?: c"),
    ]);
}

#[test]
fn long_loops_end_with_an_unknown_value() {
    let view = view("for i in {1..100}; do rm $i; done");
    assert_eq!(view.programs.len(), super::super::limits::LOOP_VALUES + 1);
}

#[test]
fn keeps_wildcards_apart_from_quoted_ones() {
    let view = view("rm *.a '*.b' \"?\" [x] \\*");
    let globs: Vec<bool> = view.programs[0].args.iter().map(super::super::Word::is_glob).collect();
    assert_eq!(globs, [true, false, false, true, false]);
}

#[test]
fn reports_unknown_programs() {
    for line in ["$X -rf /", "\"$PYTHON\" -m pytest", "$(date) x", "./${X} a"] {
        assert_eq!(opaque(line), [OpaqueKind::Program], "{line}");
    }
    assert_eq!(opaque("$VENV/bin/python -m pytest"), []);
    check(&[("$SUDO rm -rf /", "… rm -rf / …more ; rm -rf / …more")]);
}
