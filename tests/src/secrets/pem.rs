//! Private keys as text: the headers that tools write, and how such a text is carried (indented, numbered, on one line, cut off).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::cases::Case;
use super::form::{Dice, Secret};

const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A key file with this label and so many lines.
pub(super) fn private_key(label: &str, lines: usize, dice: &mut Dice) -> String {
    let body: Vec<String> = (0..lines).map(|_| dice.text(ALPHABET, 64)).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", body.join("\n"))
}

/// Every kind of key in every way to carry it. The secret is the last full line.
pub fn private_keys(dice: &mut Dice) -> Vec<Case> {
    let labels = [
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "DSA PRIVATE KEY",
        "PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
        "ANY PRIVATE KEY",
    ];
    let mut cases = Vec::new();
    for label in labels {
        let kind = label.to_lowercase().replace(' ', "-");
        for (place, carry) in carriers() {
            let mut body: Vec<String> = (0..9).map(|_| dice.text(ALPHABET, 64)).collect();
            body.push(format!("{}=", dice.text(ALPHABET, 43)));
            let text = carry(label, &body);
            for (line, which) in [(0, "first"), (4, "middle"), (8, "last")] {
                let secret = Secret { value: body[line].clone(), part: body[line].clone() };
                cases.push(Case {
                    kind: format!("{kind} ({which} line)"),
                    place: place.to_owned(),
                    text: text.clone(),
                    secret,
                });
            }
        }
    }
    cases.extend(others(dice));
    cases
}

type Carry = fn(&str, &[String]) -> String;

fn carriers() -> Vec<(&'static str, Carry)> {
    vec![
        ("file", |label, body| whole(label, body, "\n", "")),
        ("crlf", |label, body| whole(label, body, "\r\n", "")),
        ("indented", |label, body| format!("key: |\n    {}", whole(label, body, "\n    ", ""))),
        ("one-line", |label, body| format!("KEY=\"{}\"", whole(label, body, "\\n", ""))),
        ("one-line-twice", |label, body| format!("\"{}\"", whole(label, body, "\\\\n", ""))),
        ("spaces", |label, body| format!("KEY={}", whole(label, body, " ", ""))),
        ("quoted-mail", |label, body| format!("> {}", whole(label, body, "\n> ", ""))),
        ("diff", |label, body| format!("+{}", whole(label, body, "\n+", ""))),
        ("cat-n", |label, body| {
            let text = whole(label, body, "\n", "");
            let line = |(number, line)| format!("{:6}\t{line}", number + 1);
            text.lines().enumerate().map(line).collect::<Vec<_>>().join("\n")
        }),
        ("read-arrow", |label, body| {
            let text = whole(label, body, "\n", "");
            let line = |(number, line)| format!("{:6}→{line}", number + 1);
            text.lines().enumerate().map(line).collect::<Vec<_>>().join("\n")
        }),
        ("grep-n", |label, body| {
            let text = whole(label, body, "\n", "");
            let line = |(number, line)| format!("id_rsa:{}:{line}", number + 1);
            text.lines().enumerate().map(line).collect::<Vec<_>>().join("\n")
        }),
        ("concatenated", |label, body| {
            let text = whole(label, body, "\n", "");
            let line = |line| format!("\"{line}\\n\"");
            text.lines().map(line).collect::<Vec<_>>().join(" +\n  ")
        }),
        ("json-list", |label, body| {
            let text = whole(label, body, "\n", "");
            serde_json::to_string(&text.lines().collect::<Vec<_>>()).expect("strings are JSON")
        }),
        ("headers", |label, body| {
            whole(label, body, "\n", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n")
        }),
        ("end-missing", |label, body| {
            let text = whole(label, body, "\n", "");
            text.split("\n-----END").next().unwrap_or_default().to_owned()
        }),
        ("cut-in-a-line", |label, body| {
            let text = whole(label, body, "\n", "");
            let end = text.find("\n-----END").unwrap_or(text.len()) - 20;
            format!("{}… [truncated]", &text[..end])
        }),
        ("begin-missing", |label, body| {
            let text = whole(label, body, "\n", "");
            text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
        }),
        ("base64-again", |label, body| {
            // The lines are not visible here; what has to go is the whole.
            format!("client-key-data: {}", STANDARD.encode(whole(label, body, "\n", "")))
        }),
        ("html-breaks", |label, body| whole(label, body, "<br>", "")),
        ("powershell", |label, body| format!("$k = @\"\n{}\"@", whole(label, body, "\n", ""))),
    ]
}

fn whole(label: &str, body: &[String], between: &str, headers: &str) -> String {
    let headers = headers.replace('\n', between);
    let body = body.join(between);
    format!(
        "-----BEGIN {label}-----{between}{headers}{body}{between}-----END {label}-----{between}"
    )
}

/// Key files that are no PEM.
fn others(dice: &mut Dice) -> Vec<Case> {
    let lines: Vec<String> = (0..8).map(|_| dice.text(ALPHABET, 64)).collect();
    let of = |kind: &str, text: String, line: &str| Case {
        kind: kind.to_owned(),
        place: "file".to_owned(),
        text,
        secret: Secret { value: line.to_owned(), part: line.to_owned() },
    };
    let putty = format!(
        "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nComment: jo\nPublic-Lines: 2\n{}\n{}\nPrivate-Lines: 3\n{}\n{}\n{}\n\
         Private-MAC: 00ff\n",
        lines[0], lines[1], lines[2], lines[3], lines[4]
    );
    let ssh2 = format!(
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: \"jo\"\n{}\n{}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
        lines[5], lines[6]
    );
    let xml = format!(
        "<RSAKeyValue><Modulus>{}</Modulus><Exponent>AQAB</Exponent><P>x</P><D>{}</D></RSAKeyValue>",
        lines[0], lines[7]
    );
    let account = format!(
        "{{\"type\": \"service_account\", \"project_id\": \"demo\", \"private_key_id\": \"{}\", \"private_key\": \
         \"-----BEGIN PRIVATE KEY-----\\n{}\\n{}\\n-----END PRIVATE KEY-----\\n\", \"client_email\": \"a@demo.iam.gserviceaccount.com\"}}",
        dice.text("0123456789abcdef", 40),
        lines[2],
        lines[3]
    );
    vec![
        of("putty", putty.clone(), &lines[2]),
        of("putty (last)", putty, &lines[4]),
        of("ssh2", ssh2.clone(), &lines[5]),
        of("ssh2 (last)", ssh2, &lines[6]),
        of("rsa-xml", xml, &lines[7]),
        of("service-account", account.clone(), &lines[2]),
        of("service-account (last)", account, &lines[3]),
    ]
}
