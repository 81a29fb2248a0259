//! Changes to a known value: `${x#a}`, `${x%b}`, `${x/a/b}`, `${x:1:2}`, `${x^^}`. Of wildcards only `*/` at the
//! start and `/*` or `.*` at the end are understood, which cut paths.

/// Applies an operation, given with its operator; None if it is not understood.
pub(super) fn apply(value: &str, operation: &str) -> Option<String> {
    if let Some(pattern) = operation.strip_prefix("##") {
        return prefix(value, pattern, true);
    }
    if let Some(pattern) = operation.strip_prefix('#') {
        return prefix(value, pattern, false);
    }
    if let Some(pattern) = operation.strip_prefix("%%") {
        return suffix(value, pattern, true);
    }
    if let Some(pattern) = operation.strip_prefix('%') {
        return suffix(value, pattern, false);
    }
    if let Some(rest) = operation.strip_prefix('/') {
        return replace(value, rest);
    }
    if let Some(rest) = operation.strip_prefix(':') {
        return substring(value, rest);
    }
    let capital = |change: fn(&str) -> String| {
        let (first, rest) = value.split_at_checked(value.chars().next()?.len_utf8())?;
        Some(change(first) + rest)
    };
    match operation {
        "^^" | "@U" => Some(value.to_uppercase()),
        ",," | "@L" => Some(value.to_lowercase()),
        "^" | "@u" => capital(str::to_uppercase),
        "," => capital(str::to_lowercase),
        "@Q" | "@E" => Some(value.to_owned()),
        _ => None,
    }
}

fn is_literal(pattern: &str) -> bool {
    !pattern.contains(['*', '?', '[', '\\', '('])
}

fn prefix(value: &str, pattern: &str, longest: bool) -> Option<String> {
    if let Some(end) = pattern.strip_prefix('*').filter(|end| is_literal(end) && !end.is_empty()) {
        let found = if longest { value.rfind(end) } else { value.find(end) };
        return value.get(found.map_or(0, |at| at + end.len())..).map(str::to_owned);
    }
    is_literal(pattern).then(|| value.strip_prefix(pattern).unwrap_or(value).to_owned())
}

fn suffix(value: &str, pattern: &str, longest: bool) -> Option<String> {
    if let Some(start) =
        pattern.strip_suffix('*').filter(|start| is_literal(start) && !start.is_empty())
    {
        let found = if longest { value.find(start) } else { value.rfind(start) };
        return value.get(..found.unwrap_or(value.len())).map(str::to_owned);
    }
    is_literal(pattern).then(|| value.strip_suffix(pattern).unwrap_or(value).to_owned())
}

fn replace(value: &str, rest: &str) -> Option<String> {
    let (all, rest) = match rest.strip_prefix('/') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (pattern, new) = rest.split_once('/').unwrap_or((rest, ""));
    if pattern.is_empty() || !is_literal(pattern) || pattern.starts_with(['#', '%']) {
        return None;
    }
    let replaced = if all { value.replace(pattern, new) } else { value.replacen(pattern, new, 1) };
    (replaced.len() <= super::super::limits::WORD_BYTES).then_some(replaced)
}

fn substring(value: &str, rest: &str) -> Option<String> {
    let (offset, length) = match rest.split_once(':') {
        Some((offset, length)) => (offset, Some(length.trim().parse::<usize>().ok()?)),
        None => (rest, None),
    };
    let offset: i64 = offset.trim().parse().ok()?;
    let count = value.chars().count();
    let skip = match usize::try_from(offset) {
        Ok(offset) => offset,
        Err(_) => count.saturating_sub(usize::try_from(offset.unsigned_abs()).ok()?),
    };
    Some(value.chars().skip(skip).take(length.unwrap_or(count)).collect())
}
