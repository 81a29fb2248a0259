//! Values of names that say that they are secret: which names are searched for, and where the value is.

use std::ops::Range;

use super::assignment::add_rest_of_list;
use super::plausible::{Evidence, is_plausible};
use super::strength::Strength;
use super::{Assignment, Look, Operator, Rank, assignment};

/// What is searched for; [`Strength::of`] decides about the whole name.
pub(crate) const NAME_KEYWORDS: &str = r#"password passwd passphrase passwort passcode kennwort _pass -pass pass= pass: pass"
    storepass keypass _pwd -pwd pwd= pwd: pwd" pwd' "pw" 'pw' psk= psk" contraseña lösenord пароль 密码 密碼 パスワード 비밀번호 requirepass masterauth secret token api_key apikey api-key api.key access_key accesskey access-key access.key
    private_key privatekey private-key _key -key key" account_key accountkey sharedkey encryptionkey signingkey masterkey
    credential _auth mnemonic seed_phrase _pw="#;

/// Keywords with a blank in them.
pub(crate) const NAME_PHRASES: [&str; 35] = [
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
    "pwd =",
    "pwd\t=",
    ";pwd",
    "; pwd",
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

/// What the check of a name and its value costs, in bytes read.
const COST_OF_NAME: usize = 48;

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
    // Most of what stands beside such a word in a sentence is a word.
    let value = look.slice(found.value.clone());
    if found.operator == Operator::Beside && !value.iter().any(u8::is_ascii_digit) {
        return;
    }
    look.spend(COST_OF_NAME);
    if is_resource_name(look, &found) {
        return;
    }
    let Some((strength, kind)) = Strength::of(look.slice(found.name.clone())) else { return };
    if kind == "seed-phrase" && !found.quoted {
        return seed_phrase(look, found.value.start);
    }
    let opens_list =
        found.quoted && look.before(found.value.start.saturating_sub(1)).ends_with(b"[");
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
