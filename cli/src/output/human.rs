//! Times and numbers as people say them.

use chrono::{DateTime, Datelike, Local};
use hookbus::event::Time;

use super::local_time;

/// When something was, seen from `now`: `today 14:03`, `yesterday 09:12`, `Mon 09:12`, `2 Nov 09:12`, `2025-12-31`.
pub(crate) fn when(at: Time, now: Time) -> String {
    said(local_time(at), local_time(now))
}

fn said(at: DateTime<Local>, now: DateTime<Local>) -> String {
    let days = now.date_naive().signed_duration_since(at.date_naive()).num_days();
    let format = match days {
        0 => "today %H:%M",
        1 => "yesterday %H:%M",
        2..=6 => "%a %H:%M",
        _ if at.year() == now.year() => "%-d %b %H:%M",
        _ => "%Y-%m-%d",
    };
    at.format(format).to_string()
}

/// A number with separators: `12,345`.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    #[test]
    fn a_time_is_told_as_people_say_it() {
        let at =
            |day, hour| Local.with_ymd_and_hms(2026, 11, day, hour, 3, 0).single().expect("a time");
        let now = at(17, 18);
        for (then, expected) in [
            (at(17, 14), "today 14:03"),
            (at(16, 9), "yesterday 09:03"),
            (at(12, 9), "Thu 09:03"),
            (at(2, 9), "2 Nov 09:03"),
        ] {
            assert_eq!(said(then, now), expected);
        }
        let last_year = Local.with_ymd_and_hms(2025, 12, 31, 9, 0, 0).single().expect("a time");
        assert_eq!(said(last_year, now), "2025-12-31");
    }

    #[test]
    fn a_large_number_has_separators() {
        let told: Vec<String> = [0, 999, 1000, 12_345, 1_234_567].map(number).to_vec();
        assert_eq!(told, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
