//! Any text is read in little time and stack, without a panic.

use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{OpaqueKind, opaque, start, view};
use crate::shell::read;

/// What odd lines repeat.
const REPEATED: &[&str] = &[
    "(",
    "((",
    "$((",
    "$(",
    "${",
    "{ ",
    "`",
    "[[ ( ",
    "case a in a) ",
    "if a; then ",
    "<<A ",
    "a && ",
    "a | ",
    "'",
    "\"",
    "\"$(",
    "\\",
    "f() { ",
    "{a,",
    "{a,b}",
    "x=$x$x;",
    "a;",
    "$(((",
    "! ",
    "time ",
    "while a; do ",
    "for x in a b; do ",
    "eval ",
    "sudo ",
    "sh -c ",
    "xargs ",
    "<(",
    ">(",
    "@(",
    "a=(",
    "${x:-",
    "$'",
    "#",
    "\n",
    "a|a=1|",
    "function f ",
    "env -S ",
    "coproc ",
    "[[ ",
    "find -exec ",
    "a=1;",
    "\"'",
    "python -c '",
    "q(",
    "echo {1..9}",
    "*(",
    "~",
    "$[",
    "a() ",
];

/// What odd code of other languages repeats.
const CODE: &[&str] = &[
    "open(",
    "os.path.join(a,",
    "x=x+x;open(x);",
    "Path(x)/",
    "f\"{x}",
    "x=f\"{x}{x}\";open(x)",
    "eval(",
    "x.unlink()",
    "`",
    "open F,",
    "\"a\"",
    "os.system(",
    "print > \"",
    "str(",
    "a,",
];

/// Texts that are deep, long, or make a reader try again and again.
fn odd_lines() -> Vec<String> {
    let mut lines = Vec::new();
    for piece in REPEATED {
        for count in [20, 1_000, 30_000] {
            lines.push(piece.repeat(count));
        }
    }
    for piece in CODE {
        for (name, option) in [("python3", "-c"), ("perl", "-e"), ("awk", "--")] {
            for count in [20, 4_000] {
                lines.push(format!("{name} {option} '{}'", piece.repeat(count)));
            }
        }
    }
    lines.push("x=aaaaaaaaaaaaaaaa; ".to_owned() + &"x=$x$x; ".repeat(100));
    lines.push("f() { f; f; }; ".to_owned() + &"f; ".repeat(3_000));
    lines.push(
        (0..40)
            .fold(String::new(), |text, n| format!("{text}f{n}() {{ f{m}; f{m}; }}; ", m = n + 1))
            + "f0",
    );
    lines.push("for a in {1..9}; do ".repeat(8) + "x" + &"; done".repeat(8));
    lines.push("echo ".to_owned() + &"{a,b}".repeat(40));
    lines
}

#[test]
fn any_line_needs_little_stack() {
    let small = thread::Builder::new().stack_size(512 * 1024).spawn(|| {
        for line in odd_lines() {
            read(&line, &start());
        }
    });
    small.expect("a thread").join().expect("no overflow");
}

#[test]
fn what_is_too_much_is_reported() {
    for line in ["a ".repeat(60_000), "$(".repeat(500), "a; ".repeat(10_000), "(".repeat(100)] {
        assert!(opaque(&line).contains(&OpaqueKind::Syntax), "{}", &line[..20]);
    }
    assert!(view(&"a; ".repeat(10_000)).programs.len() <= super::super::limits::PROGRAMS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_text_never_panics(text in ".{0,200}") {
        read(&text, &start());
    }

    #[test]
    fn random_tokens_never_panic(tokens in vec(select(TOKENS), 0..40)) {
        read(&tokens.concat(), &start());
    }
}

const TOKENS: &[&str] = &[
    "a",
    "rm ",
    " -rf ",
    "/",
    " ",
    "\n",
    ";",
    "&",
    "|",
    "&&",
    "||",
    "(",
    ")",
    "{",
    "}",
    "$(",
    "${",
    "$((",
    "))",
    "`",
    "'",
    "\"",
    "\\",
    "$'",
    "$x",
    "x=",
    "<<E\n",
    "\nE\n",
    "<",
    ">",
    ">>",
    "<(",
    ">(",
    "<<<",
    "if ",
    "then ",
    "fi",
    "for x in ",
    "do ",
    "done",
    "case ",
    " in ",
    "esac",
    ";;",
    "[[ ",
    " ]]",
    "f() ",
    "sudo ",
    "sh -c ",
    "xargs ",
    "eval ",
    "find ",
    "-exec ",
    "{} ",
    "{a,b}",
    "{1..3}",
    "*",
    "?",
    "[",
    "~",
    "#",
    "!",
    "%",
    ":-",
    "@",
    "é",
    "\u{FFFC}",
    "python -c ",
    "os.system(",
    "open('x','w')",
    "base64 -d",
    "curl u",
    "docker run ",
    "ssh h ",
    "env -S ",
    "-I{} ",
    "parallel ",
    ":::",
    "printf ",
    "%s",
    "$1",
    "$@",
    "trap ",
];

#[test]
fn what_is_left_out_is_told() {
    let many = |count: usize, each: &dyn Fn(usize) -> String| {
        (0..count).map(each).collect::<Vec<_>>().join(" ")
    };
    let start = crate::shell::Start::default();
    for line in [
        format!("for i in {} /root; do rm -rf $i; done", many(40, &|at| format!("/a{at}"))),
        format!("{} x=/root; rm -rf $x", many(2000, &|at| format!("v{at}=1;"))),
        format!("python3 -c '{} x()'", many(500, &|at| format!("os.remove(\"a{at}\");"))),
        format!("printf '%s\\n' {} | xargs -I{{}} rm {{}}", many(40, &|at| format!("/a{at}"))),
    ] {
        let view = read(&line, &start);
        let shown: String = line.chars().take(60).collect();
        assert!(!view.opaque.is_empty(), "{shown}");
    }
    let plain = format!("for i in {}; do echo $i; done", many(40, &|at| at.to_string()));
    assert!(read(&plain, &start).opaque.is_empty(), "numbers are no reason to ask");
}

#[test]
fn a_variable_that_is_not_set_is_empty() {
    let start = crate::shell::Start::default();
    for (line, program) in
        [("r${x}m -rf a", "rm"), ("git pu${x}sh", "push"), ("git push --fo${x}rce", "--force")]
    {
        let view = read(line, &start);
        let words =
            view.programs.iter().flat_map(|it| std::iter::once(&it.program).chain(&it.args));
        assert!(words.into_iter().any(|word| word.as_str() == program), "{line}");
    }
    let view = read("rm -rf \"$X/a\"", &start);
    assert_eq!(view.programs.len(), 1, "a path that begins with a variable is not read as /a");
}
