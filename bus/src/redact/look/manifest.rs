//! Kubernetes Secret manifests: every value under `data` and `stringData` is a secret, whatever it is called.

use std::ops::Range;

use super::plausible::is_placeholder;
use super::{Look, Rank};

/// How far around `kind: Secret` the manifest is read.
const MAX_MANIFEST: usize = 64 * 1024;

/// The values of the manifest that says `kind: Secret` at `keyword`.
pub(crate) fn kubernetes_secret(look: &mut Look<'_>, keyword: Range<usize>) {
    if look.byte(keyword.end).is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return;
    }
    let area = manifest(look, &keyword);
    look.spend(area.len());
    let text = look.slice(area.clone());
    for block in [&b"data"[..], b"stringData"] {
        let found: Vec<usize> = memchr::memmem::find_iter(text, block).collect();
        for at in found {
            let start = area.start + at;
            let is_name =
                look.before(start).last().is_none_or(|byte| !byte.is_ascii_alphanumeric());
            if is_name {
                values(look, start + block.len(), area.end);
            }
        }
    }
}

/// From the `---` before to the `---` after it, within the limit.
fn manifest(look: &Look<'_>, keyword: &Range<usize>) -> Range<usize> {
    let before = look.before(keyword.start);
    let low = before.len().saturating_sub(MAX_MANIFEST);
    let start = memchr::memmem::rfind(before.get(low..).unwrap_or_default(), b"\n---")
        .map_or(low, |at| low + at);
    let behind = look.from(keyword.end);
    let behind = behind.get(..MAX_MANIFEST).unwrap_or(behind);
    let len = memchr::memmem::find(behind, b"\n---").unwrap_or(behind.len());
    start..keyword.end + len
}

/// The values of the map behind `data`.
fn values(look: &mut Look<'_>, at: usize, end: usize) {
    let at = at + usize::from(look.byte(at) == Some(b'"'));
    let at = look.skip_blanks(at, 4);
    if look.byte(at) != Some(b':') {
        return;
    }
    let at = look.skip_blanks(at + 1, 4);
    match look.byte(at) {
        Some(b'{') => json_values(look, at + 1, end),
        Some(b'\n' | b'\r') => yaml_values(look, at, end),
        Some(_) | None => {}
    }
}

fn json_values(look: &mut Look<'_>, mut at: usize, end: usize) {
    while at < end {
        match look.byte(at) {
            Some(b'"') => {
                let name = look.quoted(at);
                let colon = look.skip_blanks(name.end + 1, 8);
                if look.byte(colon) != Some(b':') {
                    return;
                }
                let start = look.skip_blanks(colon + 1, 8);
                if look.byte(start) != Some(b'"') {
                    return;
                }
                let value = look.quoted(start);
                at = value.end + 1;
                add(look, value);
            }
            Some(b' ' | b'\n' | b'\r' | b'\t' | b',') => at += 1,
            Some(_) | None => return,
        }
    }
}

/// Lines that are indented deeper than nothing: `  name: value`, and the lines of a block behind `name: |`.
fn yaml_values(look: &mut Look<'_>, at: usize, end: usize) {
    let mut start = at;
    let mut block: Option<usize> = None;
    let mut first_indent = None;
    for line in look.slice(at..end).split_inclusive(|byte| *byte == b'\n') {
        let line_start = start;
        start += line.len();
        let indent = line.iter().take_while(|byte| **byte == b' ').count();
        let text = line.get(indent..).unwrap_or_default().trim_ascii_end();
        if text.is_empty() {
            continue;
        }
        if indent < *first_indent.get_or_insert(indent) || indent == 0 {
            return;
        }
        let here = line_start + indent;
        if block.is_some_and(|above| indent > above) {
            add(look, here..here + text.len());
            continue;
        }
        block = None;
        let Some(colon) = memchr::memchr(b':', text) else { return };
        let value = look.skip_blanks(here + colon + 1, 8);
        let value_end = (here + text.len()).max(value);
        match look.byte(value) {
            Some(b'|' | b'>') => block = Some(indent),
            Some(b'"' | b'\'') => {
                let inner = look.quoted(value);
                add(look, inner.start..inner.end.min(value_end));
            }
            Some(_) | None => add(look, value..value_end),
        }
    }
}

fn add(look: &mut Look<'_>, value: Range<usize>) {
    let text = look.slice(value.clone());
    let ends = |at: &usize| look.is_json && look.view.quote_level(value.start + at) == 0;
    let len = memchr::memchr_iter(b'"', text).find(ends).unwrap_or(text.len());
    if text.get(..len).is_some_and(|text| !is_placeholder(text)) {
        look.add(value.start..value.start + len, "kubernetes-secret", Rank::Placed);
    }
}
