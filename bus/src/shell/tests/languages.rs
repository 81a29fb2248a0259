//! Code of other languages.

use super::{check, files};

#[test]
fn finds_programs_that_code_starts() {
    check(&[
        (
            "python3 -c 'import os; os.system(\"rm -rf /\")'",
            "python3 -c import os; os.system(\"rm -rf /\") ; rm -rf /",
        ),
        (
            "python -c \"import subprocess; subprocess.run(['rm', '-rf', '/'])\"",
            "python -c import subprocess; subprocess.run(['rm', '-rf', '/']) ; rm -rf /",
        ),
        (
            "python3 - <<'E'\nimport subprocess\ncmd = 'rm x'\nsubprocess.run(cmd, shell=True)\nE",
            "python3 - ; rm x",
        ),
        ("perl -e 'system(\"rm x\")'", "perl -e system(\"rm x\") ; rm x"),
        ("perl -ne 'print `rm x`' f", "perl -ne print `rm x` f ; rm x"),
        ("ruby -e 'system \"rm\", \"x\"'", "ruby -e system \"rm\", \"x\" ; rm x"),
        (
            "node -e \"require('child_process').execSync('rm x')\"",
            "node -e require('child_process').execSync('rm x') ; rm x",
        ),
        (
            "node -e \"require('child_process').spawnSync('rm', ['-rf', 'x'])\"",
            "node -e require('child_process').spawnSync('rm', ['-rf', 'x']) ; rm -rf x",
        ),
        ("php -r 'shell_exec(\"rm x\");'", "php -r shell_exec(\"rm x\"); ; rm x"),
        ("awk 'BEGIN{system(\"rm x\")}'", "awk BEGIN{system(\"rm x\")} ; rm x"),
        ("osascript -e 'do shell script \"rm x\"'", "osascript -e do shell script \"rm x\" ; rm x"),
        ("vim -c '!rm x' f", "vim -c !rm x f ; rm x"),
        ("vim -c 'q!' f", "vim -c q! f"),
        ("sqlite3 db '.shell rm x'", "sqlite3 db .shell rm x ; rm x"),
        ("lua -e 'os.execute(\"rm x\")'", "lua -e os.execute(\"rm x\") ; rm x"),
        (
            "python3 -c 'import os; os.execvp(\"rm\", [\"rm\", \"x\"])'",
            "python3 -c import os; os.execvp(\"rm\", [\"rm\", \"x\"]) ; rm x",
        ),
    ]);
}

#[test]
fn finds_files_that_code_changes() {
    let table = [
        ("python3 -c \"import shutil; shutil.rmtree('/x')\"", "delete /x"),
        ("python3 -c \"import os; os.remove(os.path.expanduser('~/x'))\"", "delete /home/u/x"),
        ("python3 -c \"import os; os.unlink(os.environ['HOME'] + '/x')\"", "delete /home/u/x"),
        ("python3 -c \"from pathlib import Path; Path('x').unlink()\"", "delete x"),
        ("python3 -c \"open('x','w').write('a')\"", "write x"),
        ("python3 -c \"open('x').read()\"", ""),
        ("node -e \"fs.rmSync('x', {recursive: true})\"", "delete x"),
        ("node -e \"require('fs').writeFileSync('x', 'y')\"", "write x"),
        ("ruby -e \"FileUtils.rm_rf('x')\"", "delete x"),
        ("perl -e 'unlink \"x\"'", "delete x"),
    ];
    for (line, expected) in table {
        assert_eq!(files(line).join(" ; "), expected, "{line}");
    }
}
