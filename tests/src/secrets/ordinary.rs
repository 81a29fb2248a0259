//! Strings that are no secrets.

use super::cases::{lines, unescape};
use super::form::{Dice, make};

/// Every line of the list, and those with random parts so many times.
pub fn ordinary_strings(list: &str, times: usize, dice: &mut Dice) -> Vec<String> {
    let mut strings = Vec::new();
    for line in lines(list) {
        let text = unescape(line);
        let first = make(&text, dice).value;
        let random = first != text;
        strings.push(first);
        if random {
            strings.extend((1..times).map(|_| make(&text, dice).value));
        }
    }
    strings
}
