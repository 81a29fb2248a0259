//! Names that say that their value is a secret, and names that only sound like it.

use std::ops::Range;

use super::plausible::{Evidence, is_plausible};
use super::assignment::add_rest_of_list;
use super::{Assignment, Look, Operator, Rank, assignment};

/// What is searched for; [`Strength::of`] decides about the whole name.
pub(crate) const NAME_KEYWORDS: &str = r#"password passwd passphrase passwort passcode kennwort _pass -pass pass= pass: pass"
    storepass keypass _pwd -pwd pwd= pwd: pwd" pwd' "pw" 'pw' psk= psk" contraseña lösenord пароль 密码 密碼 パスワード 비밀번호 requirepass masterauth secret token api_key apikey api-key api.key access_key accesskey access-key
    private_key privatekey private-key _key -key key" account_key accountkey sharedkey encryptionkey signingkey masterkey
    credential _auth mnemonic seed_phrase _pw="#;

/// Keywords with a blank in them.
pub(crate) const NAME_PHRASES: [&str; 32] = [
    "key content",
    "api key",
    "app key",
    "consumer key",
    "key base",
    "secret key",
    "access key",
    "private key",
    "encryption key",
    "signing key",
    "master key",
    "auth key",
    "subscription key",
    "key = ",
    "key=\"",
    "key='",
    "key: \"",
    "key: '",
    "pass = ",
    "pwd = ",
    "-pwd ",
    "pwd | ",
    "psk \"",
    "mot de passe",
    "pw: ",
    " pw=",
    "\npw=",
    " pw is",
    " pw for ",
    "seed phrase",
    "recovery phrase",
    "recovery code",
];

/// `password` in other scripts, or with letters that are not ASCII: such a name has no words to look at.
const FOREIGN: [&str; 7] = ["contraseña", "lösenord", "пароль", "密码", "密碼", "パスワード", "비밀번호"];

/// Words that end in `pass` and are no passwords.
const NO_PASSWORDS: &str = " compass bypass encompass surpass trespass overpass underpass renderpass multipass onepass \
    firstpass secondpass lastpass keepass ";

/// What the check of a name and its value costs, in bytes read.
const COST_OF_NAME: usize = 48;

/// How clearly a name says that its value is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// `STRIPE_KEY`: only a value that looks random counts.
    Weak,
    /// `token`, `api_key`: the value has to look like one.
    Medium,
    /// `password`: nearly every value counts.
    Strong,
}

/// Endings of a word, or of two words together, and what they say.
const ENDINGS: [(&str, Strength, &str); 45] = [
    ("keycontent", Strength::Strong, "password"),
    ("password", Strength::Strong, "password"),
    ("passwords", Strength::Strong, "password"),
    ("kennwort", Strength::Strong, "password"),
    ("depasse", Strength::Strong, "password"),
    ("recoveryphrase", Strength::Strong, "seed-phrase"),
    ("secrets", Strength::Medium, "secret"),
    ("apikeys", Strength::Medium, "api-key"),
    ("subscriptionkey", Strength::Medium, "api-key"),
    ("consumerkey", Strength::Medium, "api-key"),
    ("recoverycode", Strength::Medium, "secret"),
    ("psk", Strength::Strong, "password"),
    ("presharedkey", Strength::Medium, "secret-key"),
    ("passwd", Strength::Strong, "password"),
    ("passwort", Strength::Strong, "password"),
    ("passphrase", Strength::Strong, "passphrase"),
    ("passcode", Strength::Strong, "password"),
    ("userpass", Strength::Strong, "password"),
    ("dbpass", Strength::Strong, "password"),
    ("requirepass", Strength::Strong, "password"),
    ("masterauth", Strength::Strong, "password"),
    ("pwd", Strength::Strong, "password"),
    ("mnemonic", Strength::Strong, "seed-phrase"),
    ("seedphrase", Strength::Strong, "seed-phrase"),
    ("clientsecret", Strength::Strong, "client-secret"),
    ("secretkey", Strength::Medium, "secret-key"),
    ("privatekey", Strength::Medium, "secret-key"),
    ("encryptionkey", Strength::Medium, "secret-key"),
    ("signingkey", Strength::Medium, "secret-key"),
    ("masterkey", Strength::Medium, "secret-key"),
    ("accountkey", Strength::Medium, "secret-key"),
    ("sharedkey", Strength::Medium, "secret-key"),
    ("servicekey", Strength::Medium, "secret-key"),
    ("authkey", Strength::Medium, "secret-key"),
    ("licensekey", Strength::Medium, "secret-key"),
    ("deploykey", Strength::Medium, "secret-key"),
    ("accesskey", Strength::Medium, "secret-key"),
    ("apikey", Strength::Medium, "api-key"),
    ("apitoken", Strength::Medium, "api-key"),
    ("secret", Strength::Medium, "secret"),
    ("token", Strength::Medium, "token"),
    ("credential", Strength::Medium, "credential"),
    ("credentials", Strength::Medium, "credential"),
    ("secretid", Strength::Medium, "secret"),
    ("cookiesecret", Strength::Strong, "secret"),
];

/// A name that ends in one of these words tells something about a secret, not the secret.
const ABOUT: &str = " name names type types url uri path file filename count limit length len size min max expires \
    expiry expiration ttl endpoint policy version format field prefix suffix usage budget hint \
    label placeholder error message description title help text reset strength required enabled \
    disabled arn ref status at date time provider method algorithm schema column index regex \
    pattern env var list rotation scope in age id ";

/// Names that begin with one of these words are counts, cursors, special tokens of a model, or public.
const HARMLESS: &str = " next page continuation cursor sync max min total num public input output prompt completion \
    cached reasoning pad eos bos unk sep cls mask special stop start end has is no show forgot \
    reset pagination primary foreign partition first publishable ";

/// Keys that are names of things, in front of a bare `key`.
const ORDINARY_KEYS: &str = " public primary foreign partition sort cache idempotency row object dedup hash group order \
    index unique composite candidate natural session storage map dict json field state routing \
    range parent config query gpg pgp publishable site ";

impl Strength {
    /// What a name says, and which kind of secret its value is.
    pub(super) fn of(name: &[u8]) -> Option<(Self, &'static str)> {
        if is_foreign(name) {
            return Some((Self::Strong, "password"));
        }
        let words = words(name);
        let last = words.last()?;
        let joined: Vec<String> =
            words.windows(2).map(<[String]>::concat).chain(words.iter().cloned()).collect();
        let is_secret_id = joined.iter().any(|word| word == "secretid");
        let about = is_one_of(ABOUT, last) && !is_secret_id;
        // A token that resets a password is one; a "reset password" is not.
        let is_reset_token = last == "token" && words.first().is_some_and(|first| first == "reset");
        let harmless = words.first().is_some_and(|first| is_one_of(HARMLESS, first)) && !is_reset_token;
        if about || harmless || joined.iter().any(|word| word == "publickey") {
            return None;
        }
        let is_pass = last.ends_with("pass") && !is_one_of(NO_PASSWORDS, last);
        if is_pass || last == "pw" {
            return Some((Self::Strong, "password"));
        }
        let ending = |word: &String| ENDINGS.iter().find(|(ending, ..)| word.ends_with(ending));
        let best = joined.iter().filter_map(ending).max_by_key(|(_, strength, _)| *strength);
        if let Some((_, strength, kind)) = best {
            return Some((*strength, kind));
        }
        let before_key = words.len().checked_sub(2).and_then(|index| words.get(index));
        match last.as_str() {
            "auth" if name.starts_with(b"_") => Some((Self::Medium, "token")),
            "key" if before_key.is_some_and(|word| !is_one_of(ORDINARY_KEYS, word)) => {
                Some((Self::Weak, "secret-key"))
            }
            _ => None,
        }
    }
}

fn is_foreign(name: &[u8]) -> bool {
    !name.is_ascii() && FOREIGN.iter().any(|word| name == word.as_bytes())
}

/// Whether a list of words, with a space before and after each of them, has this one.
pub(super) fn is_one_of(list: &str, word: &str) -> bool {
    memchr::memmem::find(list.as_bytes(), format!(" {word} ").as_bytes()).is_some()
}

/// The words of `dbPassword`, `DB_PASSWORD`, `db-password` and `db.password`, in lower case.
pub(crate) fn words(name: &[u8]) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut previous = b'_';
    for byte in name {
        let new_hump = byte.is_ascii_uppercase() && !previous.is_ascii_uppercase();
        if (new_hump || !byte.is_ascii_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if byte.is_ascii_alphanumeric() {
            word.push(char::from(byte.to_ascii_lowercase()));
        }
        previous = *byte;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The value of a name that says that it is secret.
pub(crate) fn named_secret(look: &mut Look<'_>, keyword: Range<usize>) {
    // The keywords that end in `=`, `:` or a quote are names up to there.
    let whole = look.slice(keyword.clone());
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 128 || b"_-.".contains(byte);
    let front = whole.iter().take_while(|byte| !is_name(byte)).count();
    // "api key" is a name of two words; `pw: ` is one with its operator.
    let is_phrase = whole.contains(&b' ') && whole.last().is_some_and(is_name) && front == 0;
    let first = whole.iter().skip(front).take_while(|byte| is_name(byte)).count();
    let name_len = if is_phrase && !whole.starts_with(b"pw ") { whole.len() } else { first };
    let keyword = keyword.start + front..keyword.start + front + name_len;
    let Some(found) = assignment(look, keyword, 0).filter(|found| found.value.len() >= 4) else {
        return;
    };
    look.spend(COST_OF_NAME);
    if is_resource_name(look, &found) {
        return;
    }
    let Some((strength, kind)) = Strength::of(look.slice(found.name.clone())) else { return };
    if kind == "seed-phrase" && !found.quoted {
        return seed_phrase(look, found.value.start);
    }
    let opens_list = found.quoted
        && look.before(found.value.start.saturating_sub(1)).ends_with(b"[");
    let is_beside = found.operator == Operator::Beside && !names_password(look, &found);
    if is_beside || (opens_list && strength != Strength::Strong) {
        return;
    }
    let evidence = evidence(look, &found, strength);
    if is_plausible(look.slice(found.value.clone()), &evidence) {
        look.add(found.value.clone(), kind, Rank::Named);
        if opens_list {
            add_rest_of_list(look, &found, kind);
        }
    }
}

/// Whether a name in a sentence is the word itself: "two-pass" and "tokens" are not.
fn names_password(look: &Look<'_>, found: &Assignment) -> bool {
    let name = look.slice(found.name.clone()).to_ascii_lowercase();
    let words = ["password", "passphrase", "passwort", "kennwort", "psk", "token", "secret"];
    words.iter().any(|word| name.ends_with(word.as_bytes())) || !name.is_ascii()
}

/// Twelve to 24 words in lower case behind "seed phrase:".
fn seed_phrase(look: &mut Look<'_>, start: usize) {
    let is_part = |byte: &&u8| byte.is_ascii_lowercase() || **byte == b' ';
    let len = look.from(start).iter().take(300).take_while(is_part).count();
    look.spend(len);
    let phrase = look.slice(start..start + len).trim_ascii_end();
    let words = phrase.split(|byte| *byte == b' ').filter(|word| word.len() >= 3).count();
    if (12..=24).contains(&words) {
        look.add(start..start + phrase.len(), "seed-phrase", Rank::Named);
    }
}

/// `arn:aws:secretsmanager:…:secret:prod/db-a1B2c3`: which secret it is, not what it is.
fn is_resource_name(look: &Look<'_>, found: &Assignment) -> bool {
    let before = look.before(found.name.start);
    let before = before.get(before.len().saturating_sub(80)..).unwrap_or_default();
    before.ends_with(b":") && memchr::memmem::find(before, b"arn:").is_some()
}

fn evidence(look: &Look<'_>, found: &Assignment, strength: Strength) -> Evidence {
    let rest = look.from(found.value.end);
    let line_ends = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\'' | b'`'));
    // In JSON, the quote that ends the string around the value.
    let ends_line = line_ends.is_none_or(|byte| matches!(byte, b'\n' | b'"' | b'#'));
    let literal = match found.operator {
        Operator::Environment | Operator::Blank | Operator::Pair | Operator::Tag => true,
        Operator::Equals | Operator::Colon => found.quoted,
        Operator::Compares | Operator::Argument | Operator::Is | Operator::Beside => false,
    };
    Evidence { strength, literal, quoted: found.quoted, ends_line, operator: found.operator }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_told_from_names_about_secrets() {
        let secret = [
            "password",
            "DB_PASSWORD",
            "dbPassword",
            "spring.datasource.password",
            "PGPASSWORD",
            "client_secret",
            "clientSecret",
            "API_KEY",
            "apiKey",
            "x-api-key",
            "authToken",
            "_authToken",
            "MYSQL_PWD",
            "SMTP_PASS",
            "secret_access_key",
            "SECRET_KEY_BASE",
            "STRIPE_KEY",
            "private_key",
            "accountKey",
        ];
        for name in secret {
            assert!(Strength::of(name.as_bytes()).is_some(), "{name}");
        }
        let ordinary = [
            "max_tokens",
            "total_tokens",
            "token_type",
            "tokenizer",
            "next_page_token",
            "secretName",
            "public_key",
            "password_length",
            "passwordless",
            "primary_key",
            "monkey",
            "token_count",
            "api_key_id",
            "eos_token",
            "compass",
            "cache_key",
            "bypass",
            "tokens",
        ];
        for name in ordinary {
            assert_eq!(Strength::of(name.as_bytes()), None, "{name}");
        }
    }
}
