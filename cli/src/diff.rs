//! The lines that an edit changes, to show them before anything is written.

use anyhow::Result;

use crate::output::{self, Paint, fit};

/// Shows the lines that differ between two texts, each cut after `most` columns.
pub(crate) fn show(before: &str, after: &str, most: usize, paint: Paint) -> Result<()> {
    for line in changed_lines(before, after) {
        let mut line = output::sanitize(&line);
        line = fit(&line, most.saturating_add(1));
        let painted = if line.starts_with('+') { paint.good(&line) } else { paint.bad(&line) };
        output::labelled("           ", &painted)?;
    }
    Ok(())
}

/// The lines that differ between two texts, each marked `-` or `+`.
pub(crate) fn changed_lines(before: &str, after: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let is_same = |(one, other): &(&&str, &&str)| one == other;
    let head = old.iter().zip(&new).take_while(is_same).count();
    let rest = (old.len() - head).min(new.len() - head);
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(is_same).count();
    let (old, new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    // The length of the longest common subsequence of `old[i..]` and `new[j..]`.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut changed) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[i + 1][j] >= common[i][j + 1] {
            changed.push(format!("- {}", old[i]));
            i += 1;
        } else {
            changed.push(format!("+ {}", new[j]));
            j += 1;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lines_that_differ_are_shown() {
        let before = "a: 1\nhooks:\n  x: []\nplugins:\n  enabled:\n  - one\nb: 2\n";
        let after = "a: 1\nplugins:\n  enabled:\n  - one\n  - hookbus\nb: 3\n";
        assert_eq!(
            changed_lines(before, after),
            ["- hooks:", "-   x: []", "- b: 2", "+   - hookbus", "+ b: 3"]
        );
        assert_eq!(changed_lines(before, before), Vec::<String>::new());
        assert_eq!(changed_lines("", "a\n"), ["+ a"]);
    }
}
