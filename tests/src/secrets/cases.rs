//! The planted secrets: every token in neutral surroundings, every secret without a form beside its name, every place of `places.txt`.

use super::form::{Dice, Secret, make};

/// A text with a secret in it.
#[derive(Debug, Clone)]
pub struct Case {
    /// What kind of secret it is.
    pub kind: String,
    /// Where it stands.
    pub place: String,
    /// The text.
    pub text: String,
    /// What must not be found in the text any more.
    pub secret: Secret,
}

/// Surroundings that say nothing about what § is.
const NEUTRAL: &[(&str, &str)] = &[
    ("alone", "§"),
    ("sentence", "Please use § for this."),
    ("end of sentence", "It is §."),
    ("assignment", "DEPLOY_VALUE=§"),
    ("export", "export DEPLOY_VALUE=\"§\""),
    ("json", "{\"value\": \"§\", \"n\": 1}"),
    ("json list", "[\"a\", \"§\", \"b\"]"),
    ("call", "client = Client('§', 3)"),
    ("backticks", "Run it with `§` please"),
    ("log line", "[info] using §, retrying"),
    ("yaml", "value: §\nother: 1"),
    ("brackets", "see (§) above"),
    ("colours", "\u{1b}[1m§\u{1b}[0m"),
    ("html", "<code>§</code>"),
    ("diff", "+§\n-old"),
    ("bearer", "Authorization: Bearer §"),
    ("token=", "token=§"),
    ("here document", "cat <<EOF\n§\nEOF"),
    ("argument", "tool login § --quiet"),
    ("tab", "name\t§\tother"),
];

/// Every token with a form of its own, in neutral surroundings.
pub fn tokens(list: &str, dice: &mut Dice) -> Vec<Case> {
    let mut cases = Vec::new();
    for line in lines(list) {
        let (kind, form) = line.split_once(' ').expect("a kind and a form");
        for (place, text) in NEUTRAL {
            let secret = make(form, dice);
            cases.push(Case {
                kind: kind.to_owned(),
                place: (*place).to_owned(),
                text: text.replace('§', &secret.value),
                secret,
            });
        }
    }
    cases
}

/// Every secret without a form, beside its name as different files spell it.
pub fn values_of_names(list: &str, dice: &mut Dice) -> Vec<Case> {
    let mut cases = Vec::new();
    for line in lines(list) {
        let (name, form) = line.split_once(' ').expect("a name and a form");
        for (place, text) in beside(name) {
            let secret = make(form, dice);
            cases.push(Case {
                kind: name.to_owned(),
                place: place.to_owned(),
                text: text.replace('§', &secret.value),
                secret,
            });
        }
    }
    cases
}

fn beside(name: &str) -> Vec<(&'static str, String)> {
    let snake = name.to_lowercase();
    let (kebab, prose) = (snake.replace('_', "-"), snake.replace('_', " "));
    let camel = camel(&snake);
    vec![
        ("assignment", format!("{name}=§")),
        ("export", format!("export {name}=\"§\"")),
        ("environment", format!("HOME=/root\n{name}=§\nPATH=/bin\n")),
        ("json", format!("{{\"{name}\": \"§\"}}")),
        ("json snake", format!("{{\"a\": 1, \"{snake}\": \"§\"}}")),
        ("json camel", format!("{{\"{camel}\": \"§\"}}")),
        ("yaml", format!("{snake}: §\nother: 1\n")),
        ("toml", format!("{snake} = \"§\"")),
        ("option", format!("tool --{kebab} § run")),
        ("option=", format!("tool --{kebab}=§ run")),
        ("python", format!("{name} = '§'")),
        ("javascript", format!("const {camel} = \"§\";")),
        ("docker", format!("docker run -e {name}=§ img")),
        ("name and value", format!("{{\"name\": \"{name}\", \"value\": \"§\"}}")),
        ("kubernetes", format!("- name: {name}\n  value: §\n")),
        ("environ", format!("os.environ[\"{name}\"] = \"§\"")),
        ("windows", format!("set {name}=§\r\n")),
        ("fallback", format!("process.env.{name} || '§'")),
        ("prose", format!("{prose}: §")),
        ("table", format!("| {name} | § |")),
    ]
}

fn camel(snake: &str) -> String {
    let mut words = snake.split('_').filter(|word| !word.is_empty());
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(1);
        camel.push_str(&first.to_uppercase());
        camel.push_str(rest);
    }
    camel
}

/// Every place of the list.
pub fn places(list: &str, dice: &mut Dice) -> Vec<Case> {
    let mut cases = Vec::new();
    for line in lines(list) {
        let mut fields = line.splitn(3, " | ");
        let mut field = || fields.next().expect("a place, a form and a text");
        let (place, form, text) = (field(), field(), unescape(field()));
        let secret = make(form, dice);
        cases.push(Case {
            kind: form.to_owned(),
            place: place.to_owned(),
            text: text.replace('§', &secret.value),
            secret,
        });
    }
    cases
}

/// The lines of a list that are no comments.
pub(super) fn lines(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty())
}

/// Turns `\n`, `\r`, `\t`, `\e` and `\0` into the characters, `\c` into a backslash and a line break; `\\` before one of them stays as it is.
pub(super) fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        let replaced = match (letter, rest.peek()) {
            ('\\', Some('n')) => Some('\n'),
            ('\\', Some('r')) => Some('\r'),
            ('\\', Some('t')) => Some('\t'),
            ('\\', Some('e')) => Some('\u{1b}'),
            ('\\', Some('0')) => Some('\0'),
            _ => None,
        };
        if (letter, rest.peek()) == ('\\', Some(&'c')) {
            rest.next();
            out.push_str("\\\n");
            continue;
        }
        out.push(replaced.unwrap_or(letter));
        if replaced.is_some() || (letter == '\\' && rest.peek() == Some(&'\\')) {
            let next = rest.next();
            if replaced.is_none() {
                out.extend(next);
            }
        }
    }
    out
}
