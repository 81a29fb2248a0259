//! Small calculations with known numbers.

/// How deep parentheses and signs may nest.
const DEPTH: usize = 12;

/// The value of a calculation; None if it is not a plain one.
pub(super) fn evaluate(text: &str, variable: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
    let mut reader = Reader { rest: text.trim(), variable };
    let value = reader.sum(DEPTH)?;
    reader.rest.is_empty().then_some(value)
}

struct Reader<'a> {
    rest: &'a str,
    variable: &'a dyn Fn(&str) -> Option<i64>,
}

impl Reader<'_> {
    fn take(&mut self, operator: char) -> bool {
        match self.rest.strip_prefix(operator) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn sum(&mut self, depth: usize) -> Option<i64> {
        let mut value = self.product(depth)?;
        loop {
            if self.take('+') {
                value = value.checked_add(self.product(depth)?)?;
            } else if self.take('-') {
                value = value.checked_sub(self.product(depth)?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self, depth: usize) -> Option<i64> {
        let mut value = self.operand(depth)?;
        loop {
            if self.rest.starts_with("**") {
                return None;
            } else if self.take('*') {
                value = value.checked_mul(self.operand(depth)?)?;
            } else if self.take('/') {
                value = value.checked_div(self.operand(depth)?)?;
            } else if self.take('%') {
                value = value.checked_rem(self.operand(depth)?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn operand(&mut self, depth: usize) -> Option<i64> {
        let depth = depth.checked_sub(1)?;
        if self.take('(') {
            let value = self.sum(depth)?;
            return self.take(')').then_some(value);
        }
        if self.take('-') {
            return self.operand(depth)?.checked_neg();
        }
        let length = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest.trim_start();
        if word.starts_with('0') && word.len() > 1 {
            return None; // octal or hexadecimal
        }
        word.parse().ok().or_else(|| (self.variable)(word))
    }
}
