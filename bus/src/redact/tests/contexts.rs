//! Secrets that are recognised by what is around them. `«…»` marks what has to go; the rest of the text has to stay.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::super::Mark;
use super::{BASE64, Seeds, redactor};

/// The text with marks taken out again, as it should be: `«…»` without its content.
fn without_marks(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    for (range, _) in Mark::find_all(text) {
        out.push_str(&text[at..range.start]);
        out.push_str("«»");
        at = range.end;
    }
    out + &text[at..]
}

fn check(marked: &str) {
    let text = marked.replace(['«', '»'], "");
    let mut expected = String::new();
    let mut rest = marked;
    while let Some((before, behind)) = rest.split_once('«') {
        let (_, after) = behind.split_once('»').expect("the end of a secret");
        expected.push_str(before);
        expected.push_str("«»");
        rest = after;
    }
    expected.push_str(rest);
    let redactor = redactor();
    let out = redactor.redact_text(&text);
    assert_eq!(without_marks(&out), expected, "{text}");
    // The same inside one and two JSON strings.
    let once = json!({ "x": text }).to_string();
    let twice = json!({ "y": once }).to_string();
    for (json, depth) in [(once, 1), (twice, 2)] {
        let out = redactor.redact(json.as_bytes());
        let mut value: serde_json::Value = serde_json::from_slice(&out.bytes).expect("valid JSON");
        for name in ["y", "x"].into_iter().skip(2 - depth) {
            value = value[name].clone();
            if name == "y" {
                value = serde_json::from_str(value.as_str().expect("a string"))
                    .expect("valid JSON inside");
            }
        }
        assert_eq!(
            without_marks(value.as_str().expect("a string")),
            expected,
            "at depth {depth}: {text}"
        );
    }
}

#[test]
fn names_say_what_is_secret() {
    for text in [
        "DB_PASSWORD=«hunter2»",
        "export PGPASSWORD=«hunter2»; psql",
        "PGPASSWORD=«hunter2» psql -h db",
        "password: «hunter2»",
        "password = \"«hunter2»\"",
        "\"password\": \"«hunter2»\"",
        "'passwd': '«hunter2»'",
        "const password: string = \"«hunter2»\"",
        "db.password := \"«hunter2»\"",
        "password => '«hunter2»'",
        "<password>«hunter2»</password>",
        "{\"name\": \"DB_PASSWORD\", \"value\": \"«hunter2»\"}",
        "- name: DB_PASSWORD\n  value: «hunter2»\n",
        "ENV DB_PASSWORD «hunter22»\n",
        "--password «hunter2» --user me",
        "--password=«hunter2»",
        "machine host login me password «hunter22»",
        "the password is «hunter2!»",
        "Server=x;User Id=sa;Password=«Ab1!xyz9»;Encrypt=true",
        "?user=me&password=«hunter2»&x=1",
        "client_secret: \"«a8Kd92Lm0sQ1»\"",
        "API_KEY=«9f8a7b6c5d4e3f2a»",
        "X-Api-Key: «9f8a7b6c5d4e3f2a»",
        "//registry.npmjs.org/:_authToken=«9f8a7b6c-5d4e-3f2a-1b0c»",
        "setPassword('«hunt3r2x»')",
        "SECRET_KEY_BASE=«0f8a7b6c5d4e3f2a0f8a7b6c5d4e3f2a»",
        "requirepass «hunter22»",
        "password: «letmein»\n",
        "spring.datasource.password=«hunter2»",
        "aws configure set aws_secret_access_key «Zk3v9LmQ0pXw7RtYbN2c»",
        "\"auth_token\":\"«eaf0127bc9d84e1»\"",
        "DB_PASSWORD=«p@ss'w0rd\"x»",
        "config.set('api_key', '«9f8a7b6c5d4e3f2a»')",
        "mnemonic: \"«army van defense carry jealous true garbage claim echo media make crunch»\"",
    ] {
        check(text);
    }
}

#[test]
fn places_say_what_is_secret() {
    for text in [
        "Authorization: Bearer «abc123def456»",
        "curl -H 'Authorization: Bearer «abc123def456»' https://x",
        "\"Authorization\": \"token «abc123def456»\"",
        "Authorization: Basic «dXNlcjpwYXNz»",
        "curl -u admin:«s3cr3tpw» https://x",
        "curl --user 'admin:«s3cr3t pw»' https://x",
        "curl -s -uadmin:«s3cr3tpw» x",
        "[\"curl\", \"-u\", \"admin:«s3cr3tpw»\", \"https://x\"]",
        "mysql -uroot -p«S3cretPw» db",
        "mysqldump -p'«S3cret Pw»' db",
        "sshpass -p «hunter22» ssh host",
        "docker login -u me -p «hunter22» reg.io",
        "redis-cli -a «hunter22» ping",
        "smbclient //h/s -U me%«hunter22»",
        "https://user:«p4ssw0rd»@host/path",
        "postgres://app:«p4ss»@db:5432/x",
        "redis://:«p4ss»@cache",
        "https://«Zk3v9LmQ0pXw7RtYbN2c»@git.host/x",
        "amqp://u:«p@ss»@mq/vhost",
        "{\"auths\": {\"reg.io\": {\"auth\": \"«dXNlcjpwYXNzd29yZA==»\"}}}",
        "CREATE USER app WITH PASSWORD '«hunter2»'",
        "CREATE USER app IDENTIFIED BY '«hunter2»';",
        "Cookie: session=«abcdef1234567890»; theme=dark",
        "Set-Cookie: sid=«abcdef1234567890»; Path=/; HttpOnly",
        "kind: Secret\nmetadata:\n  name: x\ndata:\n  a: «aHVudGVyMg==»\n  b: «c2VjcmV0»\ntype: Opaque",
        "apiVersion: v1\nstringData:\n  a: «plain words»\nkind: Secret",
        "{\"kind\":\"Secret\",\"data\":{\"a\":\"«aHVudGVyMg==»\",\"b\":\"«c2VjcmV0»\"},\"x\":1}",
    ] {
        check(text);
    }
}

#[test]
fn what_only_looks_like_a_secret_stays() {
    for text in [
        "password = get_password()",
        "token: str",
        "const apiKey = process.env.KEY",
        "if token == nil {",
        "max_tokens: 4096",
        "\"usage\": {\"total_tokens\": 123}",
        "\"password\": \"string\"",
        "password: \"${DB_PASSWORD}\"",
        "api_key: \"<your-key>\"",
        "token = \"your-token-here\"",
        "\"secretName\": \"my-tls-cert\"",
        "\"token_type\": \"bearer\"",
        "password: required",
        "Password: should be at least 8 characters",
        "self.password = password",
        "\"next_page_token\": \"CAUQAA9f8a7b6c\"",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "\"db_password\": \"/run/secrets/db_password\"",
        "password=None",
        "PASSWORD=$1",
        "token = os.environ[\"TOKEN\"]",
        "api_key=********",
        "secret: xxxxxxxx",
        "password: Option<String>,",
        "postgres://user:password@localhost/db",
        "https://host:8080/path@x",
        "tokens: [1, 2, 3]",
        "let token = tokens.next();",
        "\"password\": {\"type\": \"string\", \"description\": \"The password\"}",
        "curl -u $USER:$PASS https://x",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer <token>",
        "PWD=/home/me/project",
        "mysql -p db",
        "public_key: \"9f8a7b6c5d4e3f2a\"",
        "is the password 'optional' here?",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "if (!password) throw new Error('password required')",
    ] {
        check(text);
    }
}

#[test]
fn private_keys_are_found_in_every_form() {
    let mut seeds = Seeds(5);
    let redactor = redactor();
    for label in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let lines: Vec<String> = (0..12).map(|_| seeds.text(BASE64, 64)).collect();
        let dashes = "-".repeat(5);
        let key = format!(
            "{dashes}BEGIN {label}PRIVATE KEY{dashes}\n{}\n{dashes}END {label}PRIVATE KEY{dashes}\n",
            lines.join("\n")
        );
        let encoded = STANDARD.encode(&key);
        let texts = [
            key.clone(),
            json!({"private_key": key}).to_string(),
            json!({"stdout": json!({"k": key}).to_string()}).to_string(),
            json!({"env": format!("KEY=\"{}\"", key.replace('\n', "\\n"))}).to_string(),
            json!({"cut": key}).to_string()[..600].to_owned(),
            format!("client-key-data: {encoded}\nuser: x"),
            key.replace('\n', "\r\n    "),
        ];
        for text in texts {
            let out = redactor.redact(text.as_bytes());
            let out = String::from_utf8_lossy(&out.bytes);
            assert!(!lines.iter().any(|line| out.contains(line.as_str())), "{text}\n{out}");
            assert!(!out.contains(&encoded[40..]), "{text}");
        }
        let public = key.replace("PRIVATE", "PUBLIC");
        assert_eq!(redactor.redact_text(&public), public);
    }
}

#[test]
fn the_same_secret_has_the_same_fingerprint_however_it_is_written() {
    let secret = "pa\"ss/w0rd\n";
    let inner = json!({"password": secret}).to_string();
    let texts = [
        inner.clone(),
        json!({"out": inner}).to_string(),
        json!({"out": json!({"in": inner}).to_string()}).to_string(),
        inner.replace('/', "\\/").replace('w', "\\u0077"),
    ];
    let found = texts.map(|text| redactor().redact(text.as_bytes()).found);
    for found in &found {
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].chars, &found[0].fingerprint), (11, &redactor_fingerprint(secret)));
    }
}

fn redactor_fingerprint(secret: &str) -> super::super::Fingerprint {
    super::FingerprintKey::new([7; 32]).fingerprint(secret.as_bytes())
}

#[test]
fn logins_and_what_scripts_send_are_replaced_without_what_is_around_them() {
    for marked in [
        r#"{"password": "«секретныйпароль»"}"#,
        "<password>«@dm1nS3cret»</password>",
        "root:«c2VjcmV0cGFzcw==»@tcp(db:3306)/app",
        "sqlplus -S svc/«Tr0ub4dor»@//db:1521/ORCL",
        "NEO4J_AUTH=neo4j/«Tr0ub4dor3»\nvolumes: ./a/b",
        "CREATE USER shop IDENTIFIED WITH caching_sha2_password\nBY '«Tr0ub4dor»';",
        "expect \"*?assword:*\"\nsend \"«Tr0ub4dor3»\r\"\nexpect eof",
        "the commit identified by 3f2a9c1d",
        "mongodb+srv://<user>:<password>@cluster.example.net/shop",
    ] {
        check(marked);
    }
}
