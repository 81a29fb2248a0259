//! Code that bash runs though no command of the line names it: in subscripts, prompts, variables and callbacks.

use super::{CodeSource, foreign, programs};

/// Checks that each line runs `rm -rf /`.
fn runs_rm(lines: &[&str]) {
    for line in lines {
        let programs = programs(line);
        assert!(programs.iter().any(|program| program == "rm -rf /"), "{line}: {programs:?}");
    }
}

#[test]
fn subscripts_run_their_substitutions() {
    runs_rm(&[
        "echo ${a[$(rm -rf /)]}",
        "echo ${#a[$(rm -rf /)]} ",
        "echo \"${!a[$(rm -rf /)]}\"",
        "echo ${a[${b[$(rm -rf /)]}]}",
        "a[$(rm -rf /)]=1",
        "a[${b[0]}+$(rm -rf /)]+=1",
        "a[`rm -rf /`]=1 ls",
        "echo $((a[$(rm -rf /)]))",
        "((a[$(rm -rf /)]++))",
        "i='a[$(rm -rf /)]'; echo $((i))",
        "i='a[$(rm -rf /)]'; echo $(($i + 1))",
        "i='a[$(rm -rf /)]'; ((i > 0))",
        "i='a[$(rm -rf /)]'; [[ $i -eq 1 ]]",
        "i='a[$(rm -rf /)]'; [[ i -gt 1 ]]",
        "i='a[$(rm -rf /)]'; echo ${!i}",
        "[[ -v 'a[$(rm -rf /)]' ]]",
        "test -v 'a[$(rm -rf /)]'",
        "[ -v 'a[$(rm -rf /)]' ]",
        "let 'a[$(rm -rf /)]'",
        "unset 'a[$(rm -rf /)]'",
        "printf -v 'a[$(rm -rf /)]' x",
        "read 'a[$(rm -rf /)]' <<< x",
        "declare 'a[$(rm -rf /)]=1'",
    ]);
}

#[test]
fn prompts_and_callbacks_run() {
    runs_rm(&[
        "x='$(rm -rf /)'; echo \"${x@P}\"",
        "x='\\044(rm -rf /)'; echo ${x@P}",
        "PS4='$(rm -rf /)'; set -x; ls",
        "PS4='$(rm -rf /)' bash -x script.sh",
        "env PS4='$(rm -rf /)' bash -x script.sh",
        "export PS1='$(rm -rf /)'",
        "PROMPT_COMMAND='rm -rf /'",
        "PROMPT_COMMAND=\"$PROMPT_COMMAND; rm -rf /\" bash -i",
        "BASH_ENV=<(echo rm -rf /) bash -c ls",
        "echo 'rm -rf /' > x; BASH_ENV=x bash -c ls",
        "BASH_ENV='$(rm -rf /)' bash -c ls",
        "bash --rcfile <(echo rm -rf /) -i",
        "trap 'rm -rf /' EXIT",
        "mapfile -C 'rm -rf /' -c 1 lines < file",
        "compgen -W '$(rm -rf /)'",
    ]);
    assert_eq!(foreign("echo \"${x@P}\""), [CodeSource::Variable]);
    for line in ["PS1='\\u@\\h $ '", "echo ${a[1]} ${a[$i]}", "[[ $x -eq 1 ]]", "a[i]=1"] {
        assert_eq!(foreign(line), [], "{line}");
    }
}
