//! Taking an edit back out of a text that somebody has worked on since: what we put in goes, what we
//! took out returns, what others changed stays.

/// `now` without what turned `before` into `after`, as far as its lines tell: what has no place any
/// more does not return.
pub(super) fn undo(before: &str, after: &str, now: &str) -> String {
    if now == after {
        return before.to_owned();
    }
    let (was, is, current) = (lines(before), lines(after), lines(now));
    let place_now = matches(&is, &current);
    let mut out: Vec<&str> = Vec::new();
    let mut done = 0; // lines of `now` that are dealt with
    for hunk in hunks(&was, &is) {
        let (start, end) = hunk.after;
        let returning = &was[hunk.before.0..hunk.before.1];
        let found = if start == end {
            // Nothing of ours is there: the place is behind the line before, or before the line after.
            let behind = start.checked_sub(1).and_then(|line| place_now[line]).map(|line| line + 1);
            behind.or(place_now.get(start).copied().flatten()).or((start == 0).then_some(0))
        } else {
            let adjoins = |first: &usize| {
                (start..end).enumerate().all(|(n, line)| place_now[line] == Some(first + n))
            };
            place_now[start].filter(adjoins)
        };
        // Otherwise what we put in is gone already, or is not ours alone any more.
        if let Some(from) = found.filter(|from| *from >= done) {
            out.extend(&current[done..from]);
            out.extend(returning);
            done = from + (end - start);
        }
    }
    out.extend(&current[done..]);
    out.concat()
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// A stretch of lines that differs: from–to in the one, from–to in the other.
struct Hunk {
    before: (usize, usize),
    after: (usize, usize),
}

/// What an edit takes out and puts in, line by line, each marked `-` or `+`.
pub(super) fn shown(before: &str, after: &str) -> Vec<String> {
    let (was, is) = (lines(before), lines(after));
    let marked = |mark: char, lines: &[&str]| {
        lines
            .iter()
            .map(|line| format!("{mark} {}", line.trim_end_matches('\n')))
            .collect::<Vec<_>>()
    };
    let hunks = hunks(&was, &is).into_iter();
    let shown = hunks.flat_map(|hunk| {
        let (old, new) = (&was[hunk.before.0..hunk.before.1], &is[hunk.after.0..hunk.after.1]);
        [marked('-', old), marked('+', new)].concat()
    });
    shown.collect()
}

fn hunks(before: &[&str], after: &[&str]) -> Vec<Hunk> {
    let place = matches(before, after);
    let mut hunks = Vec::new();
    let (mut old, mut new) = (0, 0);
    while old < before.len() || new < after.len() {
        if old < before.len() && place[old] == Some(new) {
            (old, new) = (old + 1, new + 1);
            continue;
        }
        let (old_start, new_start) = (old, new);
        while old < before.len() && place[old].is_none() {
            old += 1;
        }
        new = place.get(old).copied().flatten().unwrap_or(after.len());
        hunks.push(Hunk { before: (old_start, old), after: (new_start, new) });
    }
    hunks
}

/// For each line of `one` its place in `other`, as a longest common subsequence has it.
fn matches(one: &[&str], other: &[&str]) -> Vec<Option<usize>> {
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = one.iter().zip(other).take_while(same).count();
    let rest = (one.len() - head).min(other.len() - head);
    let tail = one.iter().rev().zip(other.iter().rev()).take(rest).take_while(same).count();
    let (a, b) = (&one[head..one.len() - tail], &other[head..other.len() - tail]);
    let mut longest = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i][j] = if a[i] == b[j] {
                longest[i + 1][j + 1] + 1
            } else {
                longest[i + 1][j].max(longest[i][j + 1])
            };
        }
    }
    let mut place: Vec<Option<usize>> = (0..head).map(Some).collect();
    let (mut i, mut j) = (0, 0);
    while i < a.len() {
        if j < b.len() && a[i] == b[j] {
            place.push(Some(head + j));
            (i, j) = (i + 1, j + 1);
        } else if j < b.len() && longest[i][j + 1] >= longest[i + 1][j] {
            j += 1;
        } else {
            place.push(None);
            i += 1;
        }
    }
    place.extend((other.len() - tail..other.len()).map(Some));
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "a: 1\nhooks:\n  x: []\nplugins:\n  enabled:\n  - one\nb: 2\n";
    const AFTER: &str = "a: 1\nplugins:\n  enabled:\n  - hookbus\n  - one\nb: 2\n";

    #[test]
    fn an_edit_is_taken_back_and_what_others_wrote_stays() {
        assert_eq!(undo(BEFORE, AFTER, AFTER), BEFORE);
        let now = AFTER
            .replace("b: 2", "b: 3\nc: 4")
            .replace("- one", "- one\n  - two")
            .replace("a: 1", "# hi\na: 1");
        let expected = BEFORE
            .replace("b: 2", "b: 3\nc: 4")
            .replace("- one", "- one\n  - two")
            .replace("a: 1", "# hi\na: 1");
        assert_eq!(undo(BEFORE, AFTER, &now), expected);
    }

    #[test]
    fn where_nothing_is_left_to_take_back_nothing_is_touched() {
        assert_eq!(undo(BEFORE, AFTER, "something else\n"), "something else\n");
    }

    #[test]
    fn a_file_that_we_made_is_empty_again_but_for_what_was_added() {
        assert_eq!(undo("", "ours\n", "ours\ntheirs\n"), "theirs\n");
    }
}
