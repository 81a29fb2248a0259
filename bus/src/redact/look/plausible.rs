//! Whether a value beside a secret's name is a secret: not a placeholder, not code, not words.

use super::super::alphabet::{ALNUM, Alphabet, entropy};
use super::super::mark;
use super::Operator;
use super::strength::{Strength, is_one_of};

/// What is known about a value from its surroundings.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) strength: Strength,
    /// It is written where only literals are: in quotes, in an environment, after an option.
    pub(super) literal: bool,
    pub(super) quoted: bool,
    /// Nothing follows it on its line.
    pub(super) ends_line: bool,
    pub(super) operator: Operator,
}

/// Values that stand for "a value", in lower case.
const STAND_INS: &str = " true false null none nil undefined nan string str text number int integer bool boolean \
    object array any unknown bytes required optional secret password passwd token pass user \
    username apikey api_key api-key access_token bearer basic value default empty hidden masked \
    redacted removed changed prompt stdin env file keyring keychain credential credentials input \
    self this yes no on off never always notset not_set ";

/// Texts that only placeholders contain, in lower case.
const STAND_IN_PARTS: &str = "your_ your- yourpass yourtoken yourapi yoursecret placeholder xxxx **** redacted -here _here \
    insert_ replace_ replace-";

/// Starts of expressions that fetch the secret from elsewhere.
const REFERENCES: &str = "process.env os.environ os.getenv getenv import.meta env. env[ env( config. config[ cfg. \
    settings. self. this. secrets. vars. var. data. local. module. std::env ssm: op:// vault:";

const IDENTIFIER: Alphabet = ALNUM.and(Alphabet::of("_"));

/// Whether a value stands for a value: a placeholder, a variable, a mask, a type.
pub(crate) fn is_placeholder(value: &[u8]) -> bool {
    let Some(first) = value.first() else { return true };
    let lower = value.to_ascii_lowercase();
    let lower = String::from_utf8_lossy(&lower);
    let same = value.iter().all(|byte| byte == first);
    let mask = value.iter().all(|byte| b"*xX.-_#?0 ".contains(byte));
    same || mask
        || value.starts_with(mark::OPENING.as_bytes())
        || (lower.len() <= 12 && is_one_of(STAND_INS, &lower))
        || STAND_IN_PARTS.split(' ').any(|part| lower.contains(part))
        || REFERENCES.split(' ').any(|start| lower.starts_with(start))
        || lower.starts_with("example")
        || value.ends_with(b"EXAMPLE")
        || value.ends_with(b"EXAMPLEKEY")
        || is_variable(value)
}

/// `$NAME`, `${NAME}`, `$(command)`, `%NAME%`, `{{ name }}`, `<name>`, `@name@`.
fn is_variable(value: &[u8]) -> bool {
    match value {
        [b'$' | b'%', b'{' | b'(', ..] | [b'{', b'{', ..] => true,
        [b'$', first, rest @ ..] if first.is_ascii_alphabetic() || *first == b'_' => {
            let name = IDENTIFIER.prefix(rest, rest.len());
            rest.get(name).is_none_or(|byte| b"/.:\"',;)".contains(byte))
        }
        [b'<', .., b'>'] | [b'{', .., b'}'] | [b'[', .., b']'] => true,
        [quote @ (b'%' | b'@'), inner @ .., last] => {
            quote == last && IDENTIFIER.prefix(inner, inner.len()) == inner.len()
        }
        _ => false,
    }
}

/// Whether a value is a secret, given what its name and place say.
pub(super) fn is_plausible(value: &[u8], evidence: &Evidence) -> bool {
    if is_placeholder(value) || is_expression(value, evidence) || is_location(value) {
        return false;
    }
    let value = value.trim_ascii();
    let has_blank = value.iter().any(|byte| *byte <= b' ');
    match evidence.strength {
        Strength::Strong if has_blank => is_phrase(value) || is_app_password(value),
        Strength::Medium | Strength::Weak if has_blank => false,
        Strength::Strong => is_password(value, evidence),
        Strength::Medium if evidence.operator == Operator::Beside => {
            value.len() >= 16 && looks_made_up(value)
        }
        Strength::Weak if evidence.operator == Operator::Beside => false,
        Strength::Medium => looks_random(value, 8),
        Strength::Weak => {
            looks_random(value, 16) && !value.contains(&b'/') && entropy(value) >= 320
        }
    }
}

/// Code that computes the value rather than the value.
fn is_expression(value: &[u8], evidence: &Evidence) -> bool {
    // The next option of a command.
    if value.starts_with(b"--") {
        return true;
    }
    if evidence.quoted {
        return false;
    }
    let name = IDENTIFIER.and(Alphabet::of(".:")).prefix(value, value.len());
    let after = value.get(name);
    let is_call = name > 0 && after == Some(&b'(') && (value.ends_with(b")") || !evidence.literal);
    let is_index = name > 0 && after == Some(&b'[');
    let is_name = !evidence.literal && is_code_name(value);
    // Long and even use of characters: a generated key with brackets in it.
    let is_generated = value.len() >= 32 && entropy(value) >= 450;
    let has_brackets = value.iter().any(|byte| b"(){}[]".contains(byte));
    let is_code = !evidence.literal && has_brackets && !is_generated
        || value.windows(2).any(|pair| pair == b"::" || pair == b"->" || pair == b"=>");
    is_call || is_index || is_code || is_name || value.starts_with(b"(") || value.starts_with(b"&")
}

/// `node.colon2_token`, `x25519_generate_key`: parts of letters with a number in them, joined as code joins them.
fn is_code_name(value: &[u8]) -> bool {
    let count = |part: &[u8], test: fn(u8, u8) -> bool| {
        part.windows(2).filter(|pair| matches!(pair, [a, b] if test(*a, *b))).count()
    };
    let is_part = |part: &[u8]| {
        let changes = count(part, |a, b| a.is_ascii_digit() != b.is_ascii_digit());
        let capitals = count(part, |a, b| a.is_ascii_uppercase() && b.is_ascii_uppercase());
        let is_mixed = part.iter().any(u8::is_ascii_lowercase) && capitals >= 2;
        part.len() <= 16 && changes <= 2 && !is_mixed
    };
    let mut parts = value.split(|byte| matches!(byte, b'_' | b'.' | b'&'));
    IDENTIFIER.and(Alphabet::of(".&;,")).prefix(value, value.len()) == value.len()
        && value.iter().any(|byte| matches!(byte, b'_' | b'.'))
        && parts.all(is_part)
}

/// A URL or a path of words: where a secret is, not what it is.
fn is_location(value: &[u8]) -> bool {
    let is_url = value.windows(3).take(16).any(|part| part == b"://");
    let is_path = matches!(
        value,
        [b'/' | b'~', ..] | [b'.', b'/', ..] | [b'.', b'.', b'/', ..] | [_, b':', b'\\', ..]
    );
    is_url || (is_path && is_words(value)) || value.starts_with(b"arn:")
}

/// `abcd-efgh-ijkl-mnop`, or with blanks: what Apple and Google issue for programs that cannot ask for a second factor.
fn is_app_password(value: &[u8]) -> bool {
    let separator = value.get(4).copied().filter(|byte| matches!(byte, b'-' | b' '));
    let mut parts = value.split(|byte| Some(*byte) == separator);
    value.len() == 19
        && parts.all(|part| part.len() == 4 && part.iter().all(u8::is_ascii_lowercase))
}

fn is_password(value: &[u8], evidence: &Evidence) -> bool {
    if is_app_password(value) {
        return true;
    }
    let letters_only = value.iter().all(|byte| byte.is_ascii_alphabetic() || *byte >= 128);
    let digits_only = value.iter().all(u8::is_ascii_digit);
    let characters = value.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    if characters < 4 || (digits_only && !evidence.literal && value.len() < 6) {
        return false;
    }
    match evidence.operator {
        Operator::Compares | Operator::Argument | Operator::Is => looks_random(value, 6),
        Operator::Beside => looks_made_up(value),
        Operator::Environment | Operator::Blank | Operator::Tag | Operator::Pair => {
            !is_identifier_path(value)
        }
        Operator::Equals | Operator::Colon if evidence.quoted => {
            // "Password" and "Passwort" are labels; `user_password` is the name of a field.
            let label = letters_only
                && value.first().is_some_and(u8::is_ascii_uppercase)
                && value.iter().skip(1).all(|byte| !byte.is_ascii_uppercase());
            // A sentence in a language that is written without blanks is a label too; its characters have three bytes.
            let is_sentence = value.iter().all(|byte| *byte >= 0xe0 || *byte & 0xc0 == 0x80);
            !label
                && !is_sentence
                && (letters_only || !is_words(value) || digits_only)
                && !value.ends_with(b":")
        }
        // Bare: `password: hunter2` in YAML, `password = user_password` in code, prose behind a colon.
        Operator::Equals | Operator::Colon if letters_only => {
            let is_lower = value.iter().all(u8::is_ascii_lowercase);
            evidence.ends_line
                && value.len() >= 6
                && (is_lower || !is_words(value))
                && evidence.operator == Operator::Colon
        }
        Operator::Equals | Operator::Colon => !is_words(value) || digits_only,
    }
}

/// `user.password`: attributes of an object, written where a literal is usual.
fn is_identifier_path(value: &[u8]) -> bool {
    value.contains(&b'.')
        && value.split(|byte| *byte == b'.').all(|part| {
            part.first().is_some_and(u8::is_ascii_alphabetic)
                && part.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_')
        })
}

/// A password with spaces: it has a digit or a sign that sentences do not have.
fn is_phrase(value: &[u8]) -> bool {
    let words = value.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).count();
    let lower = value.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b' ');
    let is_seed = lower && [12, 15, 18, 21, 24].contains(&words);
    let sign = value.iter().any(|byte| byte.is_ascii_digit() || b"!@#$%^&*+=~|".contains(byte));
    let line = value.iter().all(|byte| *byte >= b' ');
    is_seed
        || (line
            && sign
            && words <= 6
            && value.len() <= 80
            && !value.ends_with(b".")
            && !value.ends_with(b"?"))
}

/// Whether a value looks like one that a machine made: letters and digits mixed, and not words.
pub(super) fn looks_random(value: &[u8], min: usize) -> bool {
    let count = |class: fn(&u8) -> bool| value.iter().filter(|byte| class(byte)).count();
    let (digits, upper, lower) =
        (count(u8::is_ascii_digit), count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    let letters = upper + lower;
    if value.len() < min || letters + digits < value.len() / 2 || is_words(value) {
        return false;
    }
    let mixed = digits > 0 && letters > 0;
    let long_mixed_case = value.len() >= 20 && upper >= 3 && lower >= 3 && entropy(value) >= 380;
    let needed = if value.len() < 20 { 230 } else { 290 };
    (mixed || long_mixed_case) && entropy(value) >= needed
}

/// Whether a word in a sentence is no word: capitals, small letters and digits, in no order that names have.
fn looks_made_up(value: &[u8]) -> bool {
    let count = |class: fn(&u8) -> bool| value.iter().filter(|byte| class(byte)).count();
    let changes = value
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if a.is_ascii_digit() != b.is_ascii_digit()))
        .count();
    value.len() >= 8
        && count(u8::is_ascii_digit) >= 1
        && count(u8::is_ascii_uppercase) >= 2
        && count(u8::is_ascii_lowercase) >= 2
        && (changes >= 2 || count(u8::is_ascii_digit) >= 3)
        && !value.iter().any(|byte| b"(){}[]<>".contains(byte))
        && looks_random(value, 8)
}

/// Whether a text is made of words and small numbers: `my-secret-name`, `us-east-1`, `2024-01-01`, `/run/secrets/db`.
pub(crate) fn is_words(value: &[u8]) -> bool {
    let parts = value.split(|byte| !byte.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.into_iter().all(|part| {
        let digits = part.iter().all(u8::is_ascii_digit) && part.len() <= 4;
        let head = part.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let word = part.get(..head).unwrap_or_default();
        // At most one change from small to capital letters in a hump, so `getSecretName` passes and `aBxQz` does not.
        let humps = word
            .windows(2)
            .filter(
                |pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()),
            )
            .count();
        let letters =
            head == part.len() && head <= 24 && (humps == 0 || word.len() / (humps + 1) >= 4);
        digits || letters
    })
}
