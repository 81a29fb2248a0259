//! A console block as a list of steps: a command, and the output that the document shows for it.

/// A command and what it prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The line in the document.
    pub line: usize,
    /// The command, with the lines of its here-document or continuation.
    pub command: String,
    /// The output that is shown; none: the document does not say.
    pub shown: Vec<String>,
}

impl Step {
    /// The answers to questions that are shown in the output (`[y/N] y`), in order.
    pub fn answers(&self) -> Vec<&'static str> {
        let answers = self.shown.iter().filter_map(|line| line.split("[y/N] ").nth(1));
        answers.map(|answer| if answer.trim() == "y" { "y" } else { "n" }).collect()
    }

    /// Whether the output of the real command is what the document shows.
    pub fn is_shown_as(&self, output: &str) -> bool {
        let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
        let shown: Vec<&str> = self.shown.iter().map(String::as_str).collect();
        shown.is_empty() || lines_match(&shown, &lines)
    }
}

/// The steps of a console block that begins in this line.
pub fn steps(first_line: usize, block: &str) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    let mut ends_with: Option<String> = None;
    let mut goes_on = false;
    for (number, line) in block.lines().enumerate() {
        let last = found.last_mut();
        match (line.strip_prefix("$ "), last) {
            (_, Some(step)) if goes_on || ends_with.is_some() => {
                step.command.extend(["\n", line]);
                if ends_with.as_deref() == Some(line) {
                    ends_with = None;
                }
            }
            (Some(command), _) => {
                ends_with = here_document(command);
                let command = command.to_owned();
                found.push(Step { line: first_line + number + 1, command, shown: Vec::new() });
            }
            (None, Some(step)) => step.shown.push(line.trim_end().to_owned()),
            (None, None) => {}
        }
        goes_on = line.ends_with('\\');
    }
    // A blank line before the next command is for the reader.
    for step in &mut found {
        while step.shown.last().is_some_and(String::is_empty) {
            step.shown.pop();
        }
    }
    found
}

/// The word that ends the here-document of this command.
fn here_document(command: &str) -> Option<String> {
    let word = command.split("<<").nth(1)?.split_whitespace().next()?;
    Some(word.trim_matches(['\'', '"']).to_owned())
}

fn lines_match(shown: &[&str], lines: &[&str]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((&"…", rest)) => (0..=lines.len()).any(|skip| lines_match(rest, &lines[skip..])),
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, lines)| line_matches(first, line) && lines_match(rest, lines)),
    }
}

fn line_matches(shown: &str, line: &str) -> bool {
    let Some((before, after)) = shown.split_once('…') else { return shown == line };
    let Some(rest) = line.strip_prefix(before) else { return false };
    rest.char_indices()
        .map(|(at, _)| at)
        .chain([rest.len()])
        .any(|at| line_matches(after, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shows(shown: &str, output: &str) -> bool {
        steps(1, &format!("$ x\n{shown}\n"))[0].is_shown_as(output)
    }

    #[test]
    fn an_ellipsis_stands_for_text_in_a_line_and_for_lines() {
        assert!(shows("took … ms", "took 5 ms\n"));
        assert!(!shows("took … ms", "took 5 s\n"));
        assert!(shows("a\n…\nd", "a\nb\nc\nd\n"));
        assert!(shows("a\n…\nd", "a\nd\n"));
        assert!(!shows("a\n…\nd", "a\nb\n"));
    }

    #[test]
    fn other_missing_or_additional_lines_do_not_match() {
        assert!(shows("a\nb", "a\nb\n"));
        assert!(!shows("a\nb", "a\n"));
        assert!(!shows("a", "a\nb\n"));
        assert!(!shows("a", "A\n"));
        assert!(shows("", "anything\n"), "where no output is shown, none is compared");
    }

    #[test]
    fn a_here_document_and_a_continued_line_belong_to_the_command() {
        let block =
            "$ cat > a <<'END'\n$ b\nEND\nout\n$ echo \\\n  c\n\n$ d # why\nagree? [y/N] y\n";
        let found = steps(10, block);
        let commands: Vec<&str> = found.iter().map(|step| step.command.as_str()).collect();
        assert_eq!(commands, ["cat > a <<'END'\n$ b\nEND", "echo \\\n  c", "d # why"]);
        assert_eq!(found[0].shown, ["out"]);
        assert_eq!(found[1].shown, Vec::<String>::new());
        assert_eq!((found[2].line, found[2].answers()), (18, vec!["y"]));
    }
}
