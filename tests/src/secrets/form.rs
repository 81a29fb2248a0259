//! Forms of secrets: text with random parts such as `{h40}`, and the seeded dice that fill them.
//!
//! | letter | alphabet |
//! |---|---|
//! | `h` `H` | hex, lower or upper case |
//! | `d` | digits |
//! | `a` `A` `u` | letters and digits: lower case, both, upper case |
//! | `l` `L` | letters: both, lower case |
//! | `U` `v` | base32, upper or lower case |
//! | `w` `b` | base64 for URLs, base64 |
//! | `k` `K` `B` | bech32, upper or lower case; base58 |
//! | `g` | a UUID |
//! | `p` `q` | a password of words and digits; one with punctuation |
//! | `j` | a JWT |
//! | `e` `E` | base64 of `user:password`, of a private key |
//! | `n` | base64 of a number of so many digits, as Discord's ids are |
//! | `m` | so many words of a seed phrase |
//! | `y` `Y` | an English word, with a capital letter |

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::pem;

/// A value, and the random parts that it was made of.
#[derive(Debug, Clone)]
pub struct Secret {
    /// The whole value.
    pub value: String,
    /// What is secret about it: its longest random part.
    pub part: String,
}

/// Random numbers (`SplitMix64`): the same seed gives the same ones.
#[derive(Debug, Clone)]
pub struct Dice(u64);

const WORDS: &str = "anchor basket candle dragon ember falcon garden harbor island jacket kettle ladder maple needle orange pencil quartz \
river saddle timber umbrella velvet window yellow zebra copper lantern meadow pebble rocket silver thunder violin walnut blossom cabin";
const HEX: &str = "0123456789abcdef";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";
const BECH32: &str = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const BASE58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

impl Dice {
    /// Dice with this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below the limit.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(limit).unwrap_or(1)).unwrap_or(0)
    }

    /// So many characters of an alphabet, of which at least one is a digit if the alphabet has digits.
    pub fn text(&mut self, alphabet: &str, length: usize) -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        loop {
            let text: String = (0..length).map(|_| alphabet[self.below(alphabet.len())]).collect();
            let digits = alphabet.contains(&'7') && length >= 8;
            if !digits || text.contains(|letter: char| letter.is_ascii_digit()) {
                return text;
            }
        }
    }

    /// An English word.
    pub fn word(&mut self) -> &'static str {
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        words[self.below(words.len())]
    }
}

/// Makes a value of a form.
pub fn make(form: &str, dice: &mut Dice) -> Secret {
    let (mut value, mut part, mut rest) = (String::new(), String::new(), form);
    while let Some((before, after)) = rest.split_once('{') {
        value.push_str(before);
        let Some(made) = random_part(after, dice) else {
            value.push('{');
            rest = after;
            continue;
        };
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
        value.push_str(&made);
        if made.len() >= part.len() {
            part = made;
        }
    }
    value.push_str(rest);
    if part.len() < 4 {
        part.clone_from(&value);
    }
    Secret { value, part }
}

fn random_part(after: &str, dice: &mut Dice) -> Option<String> {
    let (inside, _) = after.split_once('}')?;
    let letter = inside.chars().next()?;
    let length = inside.get(1..)?;
    let length = if length.is_empty() { 1 } else { length.parse().ok()? };
    let both = format!("{LOWER}{UPPER}");
    Some(match letter {
        'h' => dice.text(HEX, length),
        'H' => dice.text(&HEX.to_uppercase(), length),
        'd' => dice.text(DIGITS, length),
        'a' => dice.text(&format!("{LOWER}{DIGITS}"), length),
        'A' => dice.text(&format!("{both}{DIGITS}"), length),
        'u' => dice.text(&format!("{UPPER}{DIGITS}"), length),
        'l' => dice.text(&both, length),
        'L' => dice.text(LOWER, length),
        'U' => dice.text(&format!("{UPPER}234567"), length),
        'v' => dice.text(&format!("{LOWER}234567"), length),
        'w' => within(dice, &format!("{both}{DIGITS}_-"), length),
        'b' => within(dice, &format!("{both}{DIGITS}+/"), length),
        'k' => dice.text(&BECH32.to_uppercase(), length),
        'K' => dice.text(BECH32, length),
        'B' => dice.text(BASE58, length),
        'g' => uuid(dice),
        'p' => format!("{}-{}{}", capital(dice.word()), dice.word(), dice.text(DIGITS, 2)),
        'q' => {
            let inner = format!("{both}{DIGITS}!#%^*()_+-=.?~@");
            format!("{}{}7", dice.text(&both, 1), dice.text(&inner, length.max(8) - 2))
        }
        'j' => jwt(dice),
        'e' => STANDARD.encode(format!("ci-user:{}", dice.text(&format!("{both}{DIGITS}"), 17))),
        'E' => STANDARD.encode(pem::private_key("RSA PRIVATE KEY", 12, dice)),
        'n' => {
            let first = dice.text("16789", 1);
            URL_SAFE_NO_PAD.encode(format!("{first}{}", dice.text(DIGITS, length - 1)))
        }
        'm' => (0..length).map(|_| dice.word()).collect::<Vec<_>>().join(" "),
        'y' => dice.word().to_owned(),
        'Y' => capital(dice.word()),
        _ => return None,
    })
}

/// Text that starts and ends with a letter or a digit, as people copy it.
fn within(dice: &mut Dice, alphabet: &str, length: usize) -> String {
    let ends = format!("{LOWER}{UPPER}{DIGITS}");
    if length < 3 {
        return dice.text(&ends, length);
    }
    format!("{}{}{}", dice.text(&ends, 1), dice.text(alphabet, length - 2), dice.text(&ends, 1))
}

fn uuid(dice: &mut Dice) -> String {
    let mut part = |length| dice.text(HEX, length);
    format!("{}-{}-4{}-a{}-{}", part(8), part(4), part(3), part(3), part(12))
}

fn capital(word: &str) -> String {
    word.chars()
        .enumerate()
        .map(|(index, letter)| if index == 0 { letter.to_ascii_uppercase() } else { letter })
        .collect()
}

fn jwt(dice: &mut Dice) -> String {
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    let subject = dice.text(DIGITS, 10);
    let claims = URL_SAFE_NO_PAD
        .encode(format!(r#"{{"sub":"{subject}","name":"{}","iat":1516239022}}"#, dice.word()));
    format!("{header}.{claims}.{}", dice.text(&format!("{LOWER}{UPPER}{DIGITS}"), 43))
}
