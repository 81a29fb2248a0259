//! Sets of ASCII characters that tokens are made of, and how evenly a text uses its characters.

/// A set of ASCII characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Alphabet(u128);

pub(super) const DIGIT: Alphabet = Alphabet::range(b'0', b'9');
pub(super) const LOWER: Alphabet = Alphabet::range(b'a', b'z');
pub(super) const UPPER: Alphabet = Alphabet::range(b'A', b'Z');
pub(super) const HEX: Alphabet = DIGIT.and(Alphabet::range(b'a', b'f'));
pub(super) const ANY_HEX: Alphabet = HEX.and(Alphabet::range(b'A', b'F'));
pub(super) const LOWER_ALNUM: Alphabet = LOWER.and(DIGIT);
pub(super) const UPPER_ALNUM: Alphabet = UPPER.and(DIGIT);
pub(super) const ALNUM: Alphabet = LOWER.and(UPPER_ALNUM);
pub(super) const WORD: Alphabet = ALNUM.and(Alphabet::of("_"));
/// base64 with `-` and `_`, as tokens have it.
pub(super) const URL_SAFE: Alphabet = WORD.and(Alphabet::of("-"));
/// What ids and paths of tokens are made of: [`URL_SAFE`] and dots.
pub(super) const DOTTED: Alphabet = URL_SAFE.and(Alphabet::of("."));
pub(super) const BASE64: Alphabet = ALNUM.and(Alphabet::of("+/="));
pub(super) const UUID: Alphabet = ANY_HEX.and(Alphabet::of("-"));

impl Alphabet {
    pub(super) const fn range(first: u8, last: u8) -> Self {
        let mut set = 0;
        let mut byte = first;
        while byte <= last {
            set |= 1_u128 << byte;
            byte += 1;
        }
        Self(set)
    }

    pub(super) const fn of(characters: &str) -> Self {
        let (mut set, mut rest) = (0, characters.as_bytes());
        while let [byte, behind @ ..] = rest {
            set |= 1_u128 << (*byte & 0x7f);
            rest = behind;
        }
        Self(set)
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn has(self, byte: u8) -> bool {
        byte < 128 && self.0 >> byte & 1 == 1
    }

    pub(super) fn bytes(self) -> impl Iterator<Item = u8> {
        (0..128).filter(move |byte| self.has(*byte))
    }

    /// How many bytes at the start of `text` belong to it, at most `limit`.
    pub(super) fn prefix(self, text: &[u8], limit: usize) -> usize {
        text.iter().take(limit).take_while(|byte| self.has(**byte)).count()
    }

    /// How many bytes at the end of `text` belong to it, at most `limit`.
    pub(super) fn suffix(self, text: &[u8], limit: usize) -> usize {
        text.iter().rev().take(limit).take_while(|byte| self.has(**byte)).count()
    }
}

/// Shannon entropy in hundredths of a bit per byte: 0 for `aaaa`, 400 for sixteen different bytes.
pub(super) fn entropy(text: &[u8]) -> u32 {
    let mut counts = [0_u32; 256];
    for byte in text {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let total = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX).max(1));
    let bits: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / total;
            -share * share.log2()
        })
        .sum();
    // Between 0 and 8 bits, so the conversion cannot lose anything that matters.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0.0 to 800.0")]
    let hundredths = (bits * 100.0).round() as u32;
    hundredths
}
