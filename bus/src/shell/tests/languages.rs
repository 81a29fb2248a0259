//! Code of other languages.

use super::{check, files, view};

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
        ("python3 -c \"open('x').read()\"", "read x"),
        ("node -e \"fs.rmSync('x', {recursive: true})\"", "delete x"),
        ("node -e \"require('fs').writeFileSync('x', 'y')\"", "write x"),
        ("ruby -e \"FileUtils.rm_rf('x')\"", "delete x"),
        ("perl -e 'unlink \"x\"'", "delete x"),
    ];
    for (line, expected) in table {
        assert_eq!(files(line).join(" ; "), expected, "{line}");
    }
}

#[test]
fn finds_files_that_code_reads() {
    let table = [
        ("python3 -c 'print(open(\"x\").read())'", "read x"),
        ("python3 -c 'from pathlib import Path; print(Path(\"x\").read_text())'", "read x"),
        ("node -e 'require(\"fs\").readFileSync(\"x\")'", "read x"),
        ("node -e 'fs.readFile(\"x\", cb)'", "read x"),
        ("deno eval 'Deno.readTextFileSync(\"x\")'", "read x"),
        ("bun -e 'await Bun.file(\"x\").text()'", "read x"),
        ("ruby -e 'puts File.read(\"x\")'", "read x"),
        ("perl -e 'open F, \"<\", \"x\"; print <F>'", "read x"),
        ("perl -e 'open(my $fh, \"<x\")'", "read x"),
        ("perl -e 'open F, \">>\", \"/etc/hosts\"'", "write /etc/hosts"),
        ("perl -e 'open(F, \">/etc/hosts\")'", "write /etc/hosts"),
        ("php -r 'echo file_get_contents(\"x\");'", "read x"),
        ("awk 'BEGIN { print \"a\" > \"/etc/motd\" }'", "write /etc/motd"),
        ("awk 'BEGIN { printf \"a\" >> \"/etc/motd\" }'", "write /etc/motd"),
        ("awk 'BEGIN { while ((getline l < \"/etc/x\") > 0) print l }'", "read /etc/x"),
        ("awk '$1 > \"abc\"'", ""),
    ];
    for (line, expected) in table {
        assert_eq!(files(line).join(" ; "), expected, "{line}");
    }
    check(&[
        ("awk 'BEGIN { \"rm x\" | getline }'", "awk BEGIN { \"rm x\" | getline } ; rm x"),
        ("awk '{ print | \"sh\" }'", "awk { print | \"sh\" } ; sh"),
        ("perl -e 'open(F, \"rm x |\")'", "perl -e open(F, \"rm x |\") ; rm x"),
    ]);
}

#[test]
fn knows_the_home_directory_in_code() {
    let table = [
        ("python3 -c 'import os; open(os.path.expanduser(\"~/x\"))'", "read /home/u/x"),
        (
            "python3 -c 'home = os.path.expanduser(\"~\"); open(os.path.join(home, \"x\"))'",
            "read /home/u/x",
        ),
        ("python3 -c '(Path.home() / \".x\" / \"y\").read_text()'", "read /home/u/.x/y"),
        ("python3 -c 'Path.home().joinpath(\".x\").read_text()'", "read /home/u/.x"),
        ("python3 -c 'p = Path.home() / \".x\"\np.write_text(\"a\")'", "write /home/u/.x"),
        ("python3 -c 'open(os.environ[\"HOME\"] + \"/x\", \"w\")'", "write /home/u/x"),
        ("python3 -c 'h = str(Path.home()); open(f\"{h}/x\")'", "read /home/u/x"),
        ("python3 -c 'p=\"/a/b\"; json.dump(d, open(p,\"w\"))'", "write /a/b"),
        ("python3 -c 'for name in os.listdir(home): shutil.rmtree(os.path.join(home, name))' ", ""),
        (
            "python3 -c 'home=os.path.expanduser(\"~\")\nshutil.rmtree(os.path.join(home, name))'",
            "delete /home/u/…",
        ),
        ("node -e 'fs.rmSync(os.homedir(), {recursive: true})'", "delete /home/u"),
        (
            "node -e 'fs.rmSync(require(\"os\").homedir() + \"/x\", {recursive: true})'",
            "delete /home/u/x",
        ),
        ("node -e 'fs.readFileSync(process.env.HOME + \"/x\")'", "read /home/u/x"),
        ("node -e 'fs.readFileSync(`${process.env.HOME}/x`)'", "read /home/u/x"),
        (
            "node -e 'fs.readFileSync(path.join(os.homedir(), \".ssh\", \"k\"))'",
            "read /home/u/.ssh/k",
        ),
        ("ruby -e 'File.read(Dir.home + \"/x\")'", "read /home/u/x"),
        ("ruby -e 'File.read(\"#{Dir.home}/x\")'", "read /home/u/x"),
        ("ruby -e 'File.read(ENV[\"HOME\"] + \"/x\")'", "read /home/u/x"),
        ("perl -e 'open F, \"<\", \"$ENV{HOME}/x\"'", "read /home/u/x"),
        ("perl -e 'unlink $ENV{HOME} . \"/x\"'", "delete /home/u/x"),
    ];
    for (line, expected) in table {
        assert_eq!(files(line).join(" ; "), expected, "{line}");
    }
}

#[test]
fn finds_hosts_that_code_talks_to() {
    for line in [
        "python3 -c 'requests.post(\"https://h.example/x\", data=d)'",
        "python3 -c 'urllib.request.urlopen(\"https://h.example/x\")'",
        "python3 -c 'u = \"https://h.example\"; requests.get(u)'",
        "node -e 'fetch(\"https://h.example/x\")'",
        "node -e 'axios.post(\"https://h.example/x\", d)'",
        "node -e 'https.get(\"https://h.example/x\")'",
        "ruby -e 'Net::HTTP.get(URI(\"https://h.example/x\"))'",
        "php -r 'file_get_contents(\"https://h.example/x\");'",
    ] {
        let hosts: Vec<String> = view(line).hosts.into_iter().map(|host| host.host).collect();
        assert_eq!(hosts, ["h.example"], "{line}");
    }
}

/// Lines with code that deletes `/` by a call under another name.
const RENAMED: &[&str] = &[
    "python -c 'import shutil as s; s.rmtree(\"/\")'",
    "python -c 'from os import system as x; x(\"rm -rf /\")'",
    "python -c 'from shutil import rmtree as r; r(\"/\")'",
    "python -c 'import os as o; o.system(\"rm -rf /\")'",
    "python -c 'import os, shutil as s; s.rmtree(\"/\")'",
    "python -c 'import subprocess as q; q.run([\"rm\",\"-rf\",\"/\"])'",
    "python -c 'from subprocess import run as r, call as c; c([\"rm\",\"-rf\",\"/\"])'",
    "python -c '__import__(\"os\").system(\"rm -rf /\")'",
    "python -c '__import__(\"shutil\").rmtree(\"/\")'",
    "python -c 'import os; getattr(os,\"system\")(\"rm -rf /\")'",
    "python -c 'import importlib; importlib.import_module(\"os\").system(\"rm -rf /\")'",
    "python -c 'import os; f=os.system; f(\"rm -rf /\")'",
    "python -c 'import os; os.__dict__[\"system\"](\"rm -rf /\")'",
    "python -c 'import sys; sys.modules[\"os\"].system(\"rm -rf /\")'",
    "python -c 'o=__import__(\"os\"); o.system(\"rm -rf /\")'",
    "python -c 'import builtins; builtins.exec(\"import os; os.system(\\\"rm -rf /\\\")\")'",
    "python -c 'exec(\"import os\\nos.system(\\\"rm -rf /\\\")\")'",
    "python -c 'eval(\"__import__(\\\"os\\\").system(\\\"rm -rf /\\\")\")'",
    "python -c 'import os; getattr(os,\"sys\"+\"tem\")(\"rm -rf /\")'",
    "node -e 'const f=require(\"fs\"); f.rmSync(\"/\",{recursive:true})'",
    "node -e 'require(\"child_process\")[\"exec\"](\"rm -rf /\")'",
    "node -e \"require('child_process')['ex'+'ec']('rm -rf /')\"",
    "node -e 'const {exec:e}=require(\"child_process\"); e(\"rm -rf /\")'",
    "node -e 'const c=require(\"child_process\"); c.exec(\"rm -rf /\")'",
    "node -e 'const e=require(\"child_process\").exec; e(\"rm -rf /\")'",
    "node -e 'import(\"child_process\").then(c=>c.exec(\"rm -rf /\"))'",
    "node -e 'import * as x from \"fs\"; x.rmSync(\"/\")'",
    "node -e 'import {rmSync as r} from \"fs\"; r(\"/\")'",
    "node -e 'process.mainModule.require(\"child_process\").exec(\"rm -rf /\")'",
    "node -e 'require(\"fs\")[\"rmSync\"](\"/\")'",
    "node -e 'const x=require(\"fs\").promises; x.rm(\"/\",{recursive:true})'",
    "node -e 'let r=require; r(\"child_process\").execSync(\"rm -rf /\")'",
    "ruby -e 'Kernel.send(:system, \"rm -rf /\")'",
    "ruby -e 'f=FileUtils; f.rm_rf(\"/\")'",
    "ruby -e 'require \"fileutils\"; include FileUtils; rm_rf \"/\"'",
    "ruby -e 'method(:system).call(\"rm -rf /\")'",
    "ruby -e 'Object.send(\"system\",\"rm -rf /\")'",
    "ruby -e 'F = FileUtils; F.rm_rf \"/\"'",
    "perl -e '&{\"system\"}(\"rm -rf /\")'",
    "perl -e 'use File::Path; File::Path::rmtree(\"/\")'",
    "perl -e 'my $s=\\&CORE::system; $s->(\"rm -rf /\")'",
    "perl -e 'CORE::system(\"rm -rf /\")'",
    "php -r '$f=\"system\"; $f(\"rm -rf /\");'",
    "php -r 'call_user_func(\"system\",\"rm -rf /\");'",
    "python -c 'import os; getattr(os, n)(\"rm -rf /\")'",
];

#[test]
fn finds_calls_under_other_names() {
    for line in RENAMED {
        let files = files(line);
        assert!(files.iter().any(|file| file == "delete /"), "{line}: {files:?}");
    }
    // Ordinary code is not code from elsewhere.
    for line in [
        "python3 -c 'import re; p = re.compile(x); print(getattr(p, n))'",
        "python3 -c 'import numpy as np; print(np.zeros(3))'",
        "python3 -c 'import json as j, sys; j.dump(j.load(sys.stdin), sys.stdout)'",
        "node -e 'const p = require(\"path\"); console.log(p[\"sep\"], process.env[\"HOME\"])'",
        "node -e 'const {version: v} = require(\"./package.json\"); console.log(v)'",
        "ruby -e 'puts [1, 2].send(:sum)'",
    ] {
        let view = view(line);
        assert_eq!((view.programs.len(), view.foreign_code.len()), (1, 0), "{line}: {view:?}");
    }
}

#[test]
fn looks_into_rarer_languages() {
    let table: &[(&str, &[&str])] = &[
        ("julia -e 'rm(\"/a\", recursive=true)'", &["delete /a"]),
        ("Rscript -e 'unlink(\"/a\", recursive=TRUE)'", &["delete /a"]),
        ("elixir -e 'File.rm_rf!(\"/a\")'", &["delete /a"]),
        ("emacs --batch --eval '(delete-directory \"/a\" t)'", &["delete /a"]),
        ("vim -c 'w! /etc/hosts' -c q x", &["write /etc/hosts", "write x"]),
        ("ruby -e 'Dir.glob(\"/a/*\").each { |f| File.delete(f) }'", &["read /a/*", "delete /a/*"]),
        ("perl -e 'unlink glob(\"/a/*\")'", &["delete /a/*"]),
    ];
    for (line, expected) in table {
        assert_eq!(files(line), *expected, "{line}");
    }
    check(&[
        (
            "awk 'BEGIN { print \"rm -rf /etc\" | \"sh\" }'",
            "awk BEGIN { print \"rm -rf /etc\" | \"sh\" } ; rm -rf /etc",
        ),
        ("$SHELL -c 'rm x'", "/bin/bash -c rm x ; rm x"),
    ]);
}
