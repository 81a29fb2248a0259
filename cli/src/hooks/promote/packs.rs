//! Turning rules of packs on: by an entry under `change:`, or by taking `shadow: true` away from the packs in `use:`.
//! Works on lines, so that comments and layout stay; the caller parses the result before it is used.

/// `text` with these rules of packs turned on; with `all`, every pack.
pub(super) fn promote(text: &str, names: &[&str], all: bool) -> String {
    if all {
        let without = edit_section(text, "use", |line| {
            line.replace(", shadow: true", "").replace("shadow: true, ", "")
        });
        return edit_section(&without, "change", |line| {
            line.replace("mode: shadow", "mode: decide")
        });
    }
    names.iter().fold(text.to_owned(), |text, name| decide(&text, name))
}

/// `text` in which `change:` says that this rule decides.
fn decide(text: &str, name: &str) -> String {
    let own = format!("{name}:");
    let mut is_own = false;
    let changed = edit_section(text, "change", |line| {
        let is_key = line.starts_with("  ") && !line.starts_with("   ");
        is_own = if is_key { line.trim_start().starts_with(&own) } else { is_own };
        if is_own { line.replace("mode: shadow", "mode: decide") } else { line.to_owned() }
    });
    if changed != text {
        return changed;
    }
    let entry = format!("  {name}: {{ mode: decide }}");
    let is_block = |line: &str| {
        let rest = line.strip_prefix("change:").map(str::trim);
        rest.is_some_and(|rest| rest.is_empty() || rest == "{}" || rest.starts_with('#'))
    };
    match text.lines().position(is_block) {
        Some(at) => {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let key = lines[at].replacen("{}", "", 1);
            lines.splice(at..=at, [key.trim_end().to_owned(), entry]);
            lines.join("\n") + "\n"
        }
        None => format!("{}\n\nchange:\n{entry}\n", text.trim_end()),
    }
}

/// `text` with each line of a section at the top level changed by `edit`.
fn edit_section(text: &str, section: &str, mut edit: impl FnMut(&str) -> String) -> String {
    let mut is_within = false;
    let mut edited = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let is_top =
            line.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
        if is_top {
            is_within = line.strip_prefix(section).is_some_and(|rest| rest.starts_with(':'));
        }
        if is_within { edited.push_str(&edit(line)) } else { edited.push_str(line) }
    }
    edited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_a_pack_is_turned_on_under_change() {
        let text = "use:\n  - { pack: git, shadow: true }   # look first\nhooks: {}\n";
        assert_eq!(
            promote(text, &["git-history"], false),
            format!("{}\n\nchange:\n  git-history: {{ mode: decide }}\n", text.trim_end())
        );
        for (text, expected) in [
            ("change:\n  a: off\n", "change:\n  b: { mode: decide }\n  a: off\n"),
            ("change: {}\n", "change:\n  b: { mode: decide }\n"),
            ("change:\n  b: { mode: shadow } # x\n", "change:\n  b: { mode: decide } # x\n"),
            ("change:\n  b:\n    mode: shadow\n", "change:\n  b:\n    mode: decide\n"),
        ] {
            assert_eq!(promote(text, &["b"], false), expected, "{text}");
        }
    }

    #[test]
    fn all_packs_are_turned_on_in_use() {
        let text =
            "use:\n  - { pack: starter, shadow: true } # look\nchange: { a: { mode: shadow } }\n";
        let expected = "use:\n  - { pack: starter } # look\nchange: { a: { mode: decide } }\n";
        assert_eq!(promote(text, &[], true), expected);
    }
}
