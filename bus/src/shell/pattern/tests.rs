//! Patterns against invocations, as tables. In an invocation `$X` is unknown, `·` is a space in
//! a word, and `…` at the end says that more arguments follow.

use proptest::prelude::*;

use super::{CommandPattern, Match};
use crate::shell::effects::add_effects;
use crate::shell::programs::ParsedInvocation;
use crate::shell::view::{Invocation, ShellView};
use crate::shell::word::{UNKNOWN, Word};

fn invocation(line: &str) -> Invocation {
    let word =
        |text: &str| Word::literal(text.replace("$X", &UNKNOWN.to_string()).replace('·', " "));
    let mut words = line.split_whitespace().filter(|word| *word != "…");
    Invocation {
        program: words.next().map(word).expect("a program"),
        args: words.map(word).collect(),
        more_args: line.ends_with('…'),
        ..Invocation::default()
    }
}

fn outcome(pattern: &str, line: &str) -> Match {
    let pattern = CommandPattern::parse(pattern).expect("a pattern");
    pattern.matches(&ParsedInvocation::new(&invocation(line)))
}

#[track_caller]
fn matches(pattern: &str, lines: &[&str]) {
    for line in lines {
        assert_eq!(outcome(pattern, line), Match::Yes, "`{pattern}` against `{line}`");
    }
}

#[track_caller]
fn misses(pattern: &str, lines: &[&str]) {
    for line in lines {
        assert_eq!(outcome(pattern, line), Match::No, "`{pattern}` against `{line}`");
    }
}

#[track_caller]
fn may_match(pattern: &str, lines: &[&str]) {
    for line in lines {
        assert_eq!(outcome(pattern, line), Match::Maybe, "`{pattern}` against `{line}`");
    }
}

#[test]
fn options_count_in_any_order_spelling_and_bundle() {
    matches(
        "git push --force",
        &[
            "git push --force",
            "git push -f",
            "git push -fu origin main",
            "git push -uf origin main",
            "git push origin main --force",
            "git -C /x push -f",
            "git -c a.b=c --no-pager push --forc origin",
            "git --git-dir=/x/.git --work-tree /x push -f",
            "/usr/bin/git push -f",
            "git.exe push -f",
            "git push -o ci.skip -f",
        ],
    );
    misses(
        "git push --force",
        &[
            "git push",
            "git push --force-with-lease",
            "git push --force-with-lease=main:abc",
            "git push -u origin main",
            "git push -- -f",
            "git push -o -f",
            "git fetch --force",
            "git commit -m push -f",
            "git stash push -f",
            "got push --force",
            "git commit -m --force",
        ],
    );
    matches("git push -f", &["git push --force"]);
    matches("git push --force-with-lease", &["git push --force-with-lease=main:abc"]);
    matches("git clean -fdx", &["git clean -xdf", "git clean -d -x --force", "git clean -ffdx"]);
    misses("git clean -fdx", &["git clean -fd", "git clean -n"]);
    matches(
        "git commit --no-verify",
        &["git commit -nm·x -n", "git commit -anm x", "git commit --no-verif"],
    );
    misses("git commit --no-verify", &["git commit -m n", "git commit -mn"]);
    matches("git reset --hard", &["git reset HEAD~1 --hard"]);
}

#[test]
fn words_of_a_subcommand_are_a_beginning() {
    matches("git push", &["git push", "git -C x push origin"]);
    misses("git push", &["git log push", "git", "git stash push"]);
    matches("git push origin main", &["git push -u origin main", "git push origin x main"]);
    misses("git push origin main", &["git push main origin", "git push origin"]);
    matches("git push +*", &["git push origin +main", "git push origin +main:main"]);
    misses("git push +*", &["git push origin main"]);
    matches("git push * :*", &["git push origin :old"]);
    matches("git {push,fetch}", &["git push", "git fetch x"]);
    misses("git {push,fetch}", &["git pull"]);
    matches("git p*", &["git push", "git pull"]);
    matches("docker system prune", &["docker system prune -af", "docker --context x system prune"]);
    misses(
        "docker system prune",
        &["docker system df", "docker image prune", "docker run system prune"],
    );
    matches("docker run --privileged", &["docker run --rm -it --privileged alpine sh"]);
    misses("docker run --privileged", &["docker run alpine sh --privileged"]);
    matches("docker run -v /:*", &["docker run -v /:/host alpine", "docker run --volume=/:/x a"]);
    misses("docker run -v /:*", &["docker run -v /tmp:/host alpine"]);
    matches(
        "gcloud compute instances delete",
        &["gcloud --project p compute instances delete x -q"],
    );
    matches(
        "aws s3 rm --recursive",
        &["aws --profile p s3 rm s3://b --recursive", "aws s3 rm --region x --recursive s3://b"],
    );
    misses("aws s3 rm --recursive", &["aws s3 rm s3://b", "aws s3 cp --recursive a b"]);
    matches(
        "terraform destroy -auto-approve",
        &[
            "terraform -chdir=x destroy -auto-approve",
            "terraform destroy --auto-approve",
            "tofu destroy -auto-approve",
        ],
    );
    matches("terraform apply -auto-approve", &["terraform apply -var a=b -auto-approve"]);
    matches("cargo publish", &["cargo +nightly publish", "cargo --manifest-path x publish"]);
    matches("npm publish", &["npm --prefix x publish", "npm publish --access public"]);
    matches("hookbus stop", &["hookbus --home /x stop"]);
    matches("systemctl stop *", &["systemctl --user stop x.service"]);
}

#[test]
fn synonyms_count() {
    matches("docker rmi", &["docker image rm x", "docker rmi -f x", "podman rmi x"]);
    matches("docker image rm", &["docker rmi x"]);
    matches("docker rm -f", &["docker container rm --force x"]);
    misses("docker rm", &["docker rmi x"]);
    matches("docker r*", &["docker rm x", "docker rmi x", "docker run x"]);
    matches("docker compose down -v", &["docker compose -f x.yml down --volumes"]);
    matches(
        "docker-compose down -v",
        &["docker compose -f x.yml down -v", "docker-compose down -v"],
    );
    matches(
        "kubectl delete namespace",
        &[
            "kubectl delete ns prod",
            "kubectl -n x delete namespaces prod",
            "kubectl delete ns/prod",
            "oc delete project x",
            "kubectl delete pod,ns --all",
        ],
    );
    misses("kubectl delete namespace", &["kubectl delete pod x", "kubectl get ns"]);
    matches("kubectl delete ns", &["kubectl delete namespace x"]);
    matches("git remote remove", &["git remote rm origin"]);
    matches("npm install", &["npm i x", "npm add x"]);
    matches("helm uninstall", &["helm delete x -n y"]);
    matches(
        "pip install",
        &[
            "pip3 install x",
            "pip3.11 install x",
            "python3 -m pip install x",
            "python -m pip -q install x",
            "uv pip install x",
            "uv --quiet pip install x",
        ],
    );
    misses("pip install", &["python -m pipx install x", "python x.py -m pip install"]);
    matches("python -m pip", &["python3.11 -m pip install x"]);
    matches("rm -rf", &["grm -rf x", "busybox rm -rf x"]);
    matches("apt remove", &["apt-get remove -y x"]);
}

#[test]
fn without_subcommands_each_word_is_an_operand() {
    matches(
        "rm -r /",
        &[
            "rm -r /",
            "rm -rf --no-preserve-root /",
            "rm a / -R",
            "rm --recursive -- /",
            "rm -fr //",
        ],
    );
    misses("rm -r /", &["rm -r /tmp", "rm /", "rm -r", "rm -- -r /"]);
    matches("rm -rf", &["rm -fr x", "rm -r x -f", "rm -Rf x", "rm --recurs --forc x", "rm -rvf x"]);
    misses("rm -rf", &["rm -r x", "rm -f x", "rmdir x"]);
    matches("rm", &["rm x"]);
    matches("rm -rf '/*'", &["rm -rf /*"]);
    misses("rm -rf '/*'", &["rm -rf /tmp"]);
    matches("chmod 777", &["chmod -R 777 /x"]);
    matches("dd of=/dev/*", &["dd if=a of=/dev/sda bs=1M"]);
    misses("dd of=/dev/*", &["dd if=/dev/zero of=x"]);
    matches("find -delete", &["find . -name x -delete", "find / -type f -delete"]);
    misses("find -delete", &["find . -name -delete", "find . -exec ls -delete ;"]);
    matches("find -exec", &["find . -exec rm {} +"]);
    matches("curl -o *", &["curl -ox http://y", "curl --output x http://y", "curl -sSLo x y"]);
    misses("curl -o *", &["curl -O http://y", "curl -H -o x"]);
    matches("curl --output=x", &["curl -o x http://y"]);
    misses("curl --output=x", &["curl -o z http://y"]);
    matches("curl -k", &["curl --insecure https://x", "curl -sk https://x"]);
    matches("tar -x", &["tar xzf a.tgz", "tar -xzf a.tgz", "tar --extract -f a"]);
    misses("tar -x", &["tar czf x.tgz", "tar -cf x a"]);
    matches("kill -9", &["kill -9 123", "kill -KILL 1", "kill -SIGKILL 1"]);
    misses("kill -9", &["kill -15 9", "kill 9", "kill -19 1"]);
    matches("pkill -9", &["pkill -9 x", "pkill -KILL x"]);
    matches(
        "sed -i",
        &["sed -i s/a/b/ x", "sed -i.bak s/a/b/ x", "sed -ni p x", "sed --in-place=.b p x"],
    );
    misses("sed -i", &["sed -n p x", "sed -e -i x"]);
    matches("wget --no-clobber", &["wget -nc http://x"]);
    matches(
        "git -c core.hooksPath=*",
        &["git -c core.hooksPath=/dev/null commit", "git -c a=b -c core.hooksPath= commit"],
    );
    misses(
        "git -c core.hooksPath=*",
        &["git -c user.name=x commit", "git commit -c core.hooksPath=x"],
    );
    matches("iptables -F", &["iptables -F", "iptables --flush", "iptables -t nat -F"]);
    matches("sudo -u root", &["sudo -u root id", "sudo --user=root id"]);
    misses("sudo -u root", &["sudo id -u root"]);
    matches("bash -c", &["bash -lc x"]);
}

#[test]
fn a_program_is_compared_by_name_or_path() {
    matches("mkfs*", &["mkfs.ext4 /dev/sda", "mkfs -t ext4 /dev/sda", "/sbin/mkfs.xfs x"]);
    misses("mkfs*", &["ls mkfs"]);
    matches("* --force", &["git push -f", "anything --force"]);
    matches("/usr/bin/rm -r", &["/usr/bin/rm -rf x"]);
    misses("/usr/bin/rm -r", &["rm -rf x", "/bin/rm -rf x"]);
    matches("./deploy.sh prod", &["./deploy.sh prod"]);
    matches("deploy.sh prod", &["./deploy.sh prod", "/x/deploy.sh -v prod"]);
    matches("{npm,pnpm,yarn} publish", &["yarn publish", "pnpm publish"]);
}

#[test]
fn programs_that_are_not_known_are_compared_word_by_word() {
    matches("deploy prod --now", &["deploy --now prod", "deploy x prod --now=1"]);
    misses("deploy prod --now", &["deploy prod", "deploy --now", "deploy --nowhere prod"]);
    matches("deploy a b", &["deploy a x b"]);
    misses("deploy a b", &["deploy b a"]);
    matches("deploy -rf", &["deploy -rf", "deploy -f -r", "deploy -xrf"]);
    misses("deploy -f", &["deploy -config x", "deploy f"]);
    matches("deploy -config", &["deploy -config x", "deploy --config=x"]);
    matches("deploy --env=prod", &["deploy --env=prod", "deploy --env prod"]);
    misses("deploy --env=prod", &["deploy --env=test", "deploy prod"]);
    matches("deploy --env=p*", &["deploy --env=prod"]);
}

#[test]
fn what_is_not_known_may_match() {
    may_match(
        "git push --force",
        &[
            "git push $X",
            "git push origin $X main",
            "git $X --force",
            "git $X push -f",
            "git push --fo$X",
            "git push -u$X",
            "git push …",
            "git …",
            "$X push --force",
            "gi$X push --force",
        ],
    );
    misses(
        "git push --force",
        &[
            "git status $X",
            "git push -- $X",
            "git commit -m $X",
            "git push origin/$X",
            "git push --dry$X",
            "git push -o $X",
            "git push -- …",
            "ls $X",
            "l$X push --force",
        ],
    );
    matches("git push --force", &["git push -f $X", "git push -f …"]);
    may_match("rm -rf /", &["rm -rf $X", "rm $X /", "rm -rf /$X", "rm -rf …", "rm -r$X /"]);
    misses("rm -rf /", &["rm -rf /tmp/$X", "rm -rf ./$X"]);
    may_match("git -c core.hooksPath=x", &["git -c $X commit", "git -c core.hooksPath=$X commit"]);
    matches("git -c core.hooksPath=*", &["git -c core.hooksPath=$X commit"]);
    // The word behind an option that is not in the table may be its value.
    matches("docker push", &["docker --new-option x push", "docker --new-option push"]);
    may_match("gcloud compute ssh", &["gcloud --new-option x compute ssh y"]);
}

#[test]
fn variables_before_the_program_must_be_set() {
    let pattern = CommandPattern::parse("HUSKY=0 git commit").expect("a pattern");
    let mut line = invocation("git commit");
    assert_eq!(pattern.matches(&ParsedInvocation::new(&line)), Match::No);
    line.env.push(("HUSKY".to_owned(), Word::literal("0")));
    assert_eq!(pattern.matches(&ParsedInvocation::new(&line)), Match::Yes);
}

#[test]
fn a_pattern_can_be_indexed_by_program() {
    let names = |text| CommandPattern::parse(text).expect("a pattern").program_names();
    assert_eq!(names("podman run"), ["docker"]);
    assert_eq!(names("{npm,pnpm,npm} publish"), ["npm", "pnpm"]);
    assert_eq!(names("mkfs*"), ["mkfs*"]);
    let line = invocation("python3 -m pip install x");
    assert_eq!(ParsedInvocation::new(&line).names().collect::<Vec<_>>(), ["python", "pip"]);
}

#[test]
fn a_miss_is_explained() {
    for (pattern, line, expected) in [
        ("git push --force", "ls", "the program is `ls`"),
        ("git push --force", "git push", "it has no `--force`"),
        ("git push -f", "git push", "it has no `-f`"),
        ("git push --force", "git status -f", "it has `status`, not `push`"),
        ("git push", "git", "it has no `push`"),
        ("git push origin", "git push x", "it has no `origin`"),
        ("curl -o x", "curl -o y", "its `-o` is `y`, not `x`"),
        ("rm -r /", "rm -r /tmp", "it has no `/`"),
        ("terraform destroy -auto-approve", "terraform destroy", "it has no `-auto-approve`"),
        (
            "git push --force",
            "git push $X",
            "it depends on a part that is not known before the command runs",
        ),
        ("git push", "git push", "it matches"),
    ] {
        let parsed = CommandPattern::parse(pattern).expect("a pattern");
        let why = parsed.explain(&ParsedInvocation::new(&invocation(line)));
        assert_eq!(why, expected, "`{pattern}` against `{line}`");
    }
}

#[test]
fn a_pattern_needs_a_program() {
    for (text, expected) in [
        ("", "the pattern is empty"),
        ("  ", "the pattern is empty"),
        ("A=b", "the pattern is empty"),
        ("--force", "write the program first, or `*` for any: `* --force`"),
    ] {
        let error = CommandPattern::parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// Words with the signs that are read specially, often.
fn any_word() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        Just("-".to_owned()),
        Just("--".to_owned()),
        Just("=".to_owned()),
        Just("/".to_owned()),
        Just(UNKNOWN.to_string()),
        Just("*".to_owned()),
        Just("+".to_owned()),
        Just("push".to_owned()),
        Just("force".to_owned()),
        "[a-zA-Zé0-9]{1,3}",
    ];
    prop::collection::vec(parts, 0..5).prop_map(|parts| parts.concat())
}

const PROGRAMS: [&str; 24] = [
    "git",
    "rm",
    "docker",
    "kubectl",
    "tar",
    "dd",
    "find",
    "curl",
    "python",
    "sqlite3",
    "aws",
    "uv",
    "busybox",
    "chmod",
    "openssl",
    "rsync",
    "sed",
    "terraform",
    "7z",
    "npm",
    "gzip",
    "apply_patch",
    "unknown",
    "http",
];

proptest! {
    #[test]
    fn no_words_are_too_strange(
        program in prop::sample::select(&PROGRAMS),
        words in prop::collection::vec(any_word(), 0..6),
        pattern in prop::collection::vec(any_word(), 0..4),
        more_args: bool,
    ) {
        let args = words.iter().map(|word| Word::literal(word.as_str())).collect();
        let line = Invocation { program: Word::literal(program), args, more_args, ..Invocation::default() };
        if let Ok(pattern) = CommandPattern::parse(&format!("{program} {}", pattern.join(" "))) {
            let parsed = ParsedInvocation::new(&line);
            prop_assert!(!pattern.explain(&parsed).is_empty());
        }
        let mut view = ShellView { programs: vec![line], ..ShellView::default() };
        add_effects(&mut view);
    }

    #[test]
    fn a_command_matches_itself(
        program in prop::sample::select(&PROGRAMS),
        words in prop::collection::vec("-{0,2}[a-zé0-9+/=]{1,6}", 0..6),
    ) {
        let line = format!("{program} {}", words.join(" "));
        prop_assert_eq!(outcome(&line, &line), Match::Yes, "{}", line);
    }
}
