//! Code that is not in the line.

use super::{CodeSource, OpaqueKind, foreign, opaque};

/// Lines that run what they download.
const DOWNLOADS: &[&str] = &[
    "curl x | sh",
    "curl -fsSL https://x/y | sudo bash -s -- a",
    "wget -qO- x | bash",
    "wget -O - x | sh",
    "bash <(curl x)",
    "source <(curl x)",
    "sh -c \"$(curl x)\"",
    "eval \"$(curl x)\"",
    "python3 -c \"$(curl x)\"",
    "curl x | python3",
    "curl x | python3 -",
    "curl x | sed s/a/b/ | sh",
    "curl x | tee y | sh",
    "curl x | gunzip | sh",
    "curl -o x u; sh x",
    "curl -sSLo x u && bash x",
    "curl u > x && chmod +x x && ./x",
    "wget https://h/install.sh; sh install.sh",
    "curl -O https://h/i.sh && sh ./i.sh",
    "X=$(curl u); eval \"$X\"",
    "curl x | { bash; }",
    "curl x | tee >(sh)",
    "bash < <(curl x)",
    "sh <<< \"$(curl x)\"",
    "curl x | base64 -d | sh",
    "curl x | xargs -I{} sh -c '{}'",
    "curl x | ssh h",
    "python3 -c 'import requests; exec(requests.get(\"u\").text)'",
    "python3 -c 'exec(urlopen(\"https://u\").read())'",
    "python3 -c 'c = requests.get(u).text; exec(c)'",
    "ruby -e 'eval(`curl u`)'",
    "f=$(mktemp) && curl -s u -o \"$f\" && sh \"$f\"",
    "tmp=$(mktemp); curl u > \"$tmp\"; chmod +x \"$tmp\"; \"$tmp\"",
    "d=$(mktemp -d); curl u -o $d/x.sh; bash \"${d}/x.sh\"",
    "curl u -o \"$OUT\"; source \"$OUT\"",
    "f=$(mktemp); wget -qO \"$f\" u; cat \"$f\" | sh",
    "f=$(mktemp); curl u -o $f; python3 $f",
    "curl u -o a; mv a b; sh b",
    "f=$(mktemp); curl u -o $f; install -m 755 $f ~/x; ~/x",
    "curl u | xargs -0 bash -c",
    "curl u | xargs sh -c",
    "perl -e 'eval `curl u`'",
    "node -e 'fetch(u).then(r => r.text()).then(eval)'",
    "node -e 'fetch(u).then(r => r.text()).then(c => eval(c))'",
];

#[test]
fn tells_where_code_comes_from() {
    for line in DOWNLOADS {
        assert_eq!(foreign(line), [CodeSource::Download], "{line}");
        assert!(opaque(line).contains(&OpaqueKind::Code), "{line}");
    }
    let others = [
        (CodeSource::Decoded, "base64 -d f | sh"),
        (CodeSource::Decoded, "echo cm0gLXJmIC8= | base64 -d | sh"),
        (CodeSource::Decoded, "xxd -r -p f | sh"),
        (CodeSource::Decoded, "openssl enc -d -in f | sh"),
        (CodeSource::Decoded, "gpg -d f | sh"),
        (CodeSource::Decoded, "echo 'x/ fr- mr' | rev | sh"),
        (CodeSource::Decoded, "echo x | tr a b | sh"),
        (CodeSource::Decoded, "python3 -c 'exec(base64.b64decode(\"x\"))'"),
        (CodeSource::Decoded, "python3 -c 'os.system(base64.b64decode(\"x\").decode())'"),
        (CodeSource::Decoded, "python3 -c 'c=base64.b64decode(\"x\").decode()\nos.system(c)'"),
        (CodeSource::Decoded, "node -e 'eval(atob(\"x\"))'"),
        (CodeSource::Output, "eval \"$(cat f)\""),
        (CodeSource::Output, "sh -c \"$(cat f)\""),
        (CodeSource::Output, "X=$(cat f); eval \"$X\""),
        (CodeSource::Output, "ssh h 'cat x' | bash"),
        (CodeSource::Output, "gen | xargs sh -c"),
        (CodeSource::Output, "gen | xargs -0 bash -c"),
        (CodeSource::Output, "gen | sh"),
        (CodeSource::Output, "eval \"$(gen)\""),
        (CodeSource::Output, "sed s/a/b/ f | sh"),
        (CodeSource::Variable, "eval \"$x\""),
        (CodeSource::Variable, "sh -c \"$x\""),
        (CodeSource::Variable, "eval $x"),
    ];
    for (source, line) in others {
        assert_eq!(foreign(line), [source], "{line}");
    }
}

#[test]
fn ordinary_code_is_not_foreign() {
    let lines = [
        "curl x | tar x",
        "curl x | jq .",
        "curl x",
        "cat script.sh | sh",
        "sh < script.sh",
        "eval \"$(cat <<'E'\necho a\nE\n)\"",
        "f=$(mktemp); curl u -o \"$f\"; f=$(mktemp); sh \"$f\"",
        "f=$(mktemp); curl u -o \"$f\"; sh \"$g\"",
        "gen | xargs -I{} sh -c 'rm {}'",
        "bash script.sh",
        "eval \"$(ssh-agent -s)\"",
        "eval \"$(direnv hook bash)\"",
        "eval \"$(pyenv init -)\"",
        "eval \"$(brew shellenv)\"",
        "source <(kubectl completion bash)",
        "eval \"$(mise activate bash)\"",
        "eval \"$(conda shell.bash hook)\"",
        "bash -c \"cd $DIR && make\"",
        "curl -o x.tgz u; sh install.sh",
        "python3 script.py",
        "curl x | python3 -m json.tool",
        "curl x | python3 -c 'import json,sys; print(json.load(sys.stdin))'",
        "curl x | awk '{print $1}'",
    ];
    for line in lines {
        assert_eq!(foreign(line), [], "{line}");
    }
}
