//! `exec(…)`, `eval(…)` and the like: where the code comes from that they run.

use super::super::follow::Origin;
use super::calls::{Called, Effect};
use super::context::Context;
use super::languages::Language;
use super::literals::{Argument, Literals};

/// How much of an argument is looked at.
const SHOWN: usize = 2_048;

/// Names in code that loads something.
const LOADS: &[&str] = &[
    "urlopen",
    "requests.",
    "httpx.",
    "http",
    "fetch(",
    "axios",
    "socket",
    "urllib",
    "uri.open",
    "open-uri",
    "curl",
    "wget",
    "lwp::",
    "www::",
];

/// Names in code that decodes something.
const DECODES: &[&str] = &[
    "base64",
    "b64",
    "decode",
    "decompress",
    "atob",
    "unhexlify",
    "fromhex",
    "rot13",
    "codecs",
    "buffer.from",
    "unpack",
    "gzinflate",
    "marshal.loads",
    "zlib",
];

/// Code that is run and not written here.
pub(super) fn evaluates(call: &Called<'_>, effects: &mut Vec<Effect>) {
    let raw = call.raw();
    let context = call.context;
    let runs_program = context.language != Some(Language::JavaScript)
        && (raw.starts_with(['`']) || raw.starts_with("qx") || raw.starts_with("%x"));
    if runs_program {
        effects.push(Effect::Code(origin(raw, context).unwrap_or(Origin::Output)));
        return;
    }
    if let Some(Argument::Text(text)) = call.arguments.first()
        && text.contains(['(', '`', ' '])
    {
        effects.push(Effect::Evaluated(text.clone()));
    }
    let Some(Argument::Other(text)) = call.arguments.first() else { return };
    // A block (`eval { … }`) is written here; what `compile` gives is looked at where it is called.
    if text.is_empty() || text.starts_with('{') {
        return;
    }
    let found = origin(text, context);
    // `exec(compile("code", …))`
    if let Some(inside) = text.strip_prefix("compile(")
        && let Some(Argument::Text(code)) =
            Literals::new(inside, context).arguments().into_iter().next()
    {
        effects.push(Effect::Evaluated(code));
        return;
    }
    if found.is_none() && text.contains("compile(") {
        return;
    }
    // `fetch(u).then(t => eval(t))`: the code gets what the line loads.
    let loads = || {
        let code = context.code.to_lowercase();
        ["urlopen(", "requests.get(", "fetch(", "axios", "http.get(", "https.get(", "uri.open"]
            .iter()
            .any(|name| code.contains(name))
    };
    let otherwise = || if loads() { Origin::Download } else { Origin::Variable };
    effects.push(Effect::Code(found.unwrap_or_else(otherwise)));
}

/// Where the value of an expression comes from, if it is loaded or decoded; also if that is what a variable was
/// assigned.
pub(super) fn origin(text: &str, context: &Context<'_>) -> Option<Origin> {
    let own = named_origin(text);
    own.or_else(|| {
        let assigned = context.assigned_text(text)?;
        let end = assigned.find(['\n', ';']).unwrap_or(assigned.len());
        named_origin(shortened(assigned.get(..end)?))
    })
}

fn named_origin(text: &str) -> Option<Origin> {
    let lower = shortened(text).to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(LOADS) {
        Some(Origin::Download)
    } else if has(DECODES) {
        Some(Origin::Decoded)
    } else {
        None
    }
}

fn shortened(text: &str) -> &str {
    let mut end = text.len().min(SHOWN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

impl<'a> Called<'a> {
    /// Its arguments as written, up to the closing parenthesis or the end of the line.
    pub(super) fn raw(&self) -> &'a str {
        let text = shortened(self.inside).trim_start();
        let mut open = 0_usize;
        for (at, c) in text.char_indices() {
            match c {
                '(' => open += 1,
                ')' if open == 0 => return text.get(..at).unwrap_or_default(),
                ')' => open -= 1,
                ';' | '\n' if open == 0 => return text.get(..at).unwrap_or_default(),
                _ => {}
            }
        }
        text
    }
}
