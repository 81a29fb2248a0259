//! What a name says about its value: a secret, something about a secret, or nothing.

/// `password` in other scripts, or with letters that are not ASCII: such a name has no words to look at.
const FOREIGN: [&str; 7] =
    ["contraseña", "lösenord", "пароль", "密码", "密碼", "パスワード", "비밀번호"];

/// Words that end in `pass` and are no passwords.
const NO_PASSWORDS: &str = " compass bypass encompass surpass trespass overpass underpass renderpass multipass onepass \
    firstpass secondpass lastpass keepass ";

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
    pattern env var list rotation scope in age id invalid mismatch missing incorrect expired \
    forgotten updated rules requirements visibility toggle manager ";

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
        let harmless =
            words.first().is_some_and(|first| is_one_of(HARMLESS, first)) && !is_reset_token;
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
