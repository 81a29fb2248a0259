//! PowerShell: only whether its code loads or decodes more code and runs that.

use super::super::follow::{Arg, Flow, Follower, Origin};
use super::super::word::UNKNOWN;

/// Commands that load something.
const LOADS: &[&str] = &[
    "iwr",
    "irm",
    "curl",
    "wget",
    "invoke-webrequest",
    "invoke-restmethod",
    "downloadstring",
    "webclient",
    "start-bitstransfer",
];

impl Follower<'_> {
    pub(super) fn powershell(&mut self, index: usize, args: &[Arg], input: &Flow) {
        let encoded = args.iter().any(|arg| {
            let option = arg.word.as_str().to_lowercase();
            matches!(option.as_str(), "-e" | "-ec" | "-enc" | "-encodedcommand")
        });
        if encoded {
            self.report_foreign(index, &UNKNOWN.to_string(), Origin::Decoded);
        }
        let (code, _) = super::options::joined(args);
        let code = code.to_lowercase();
        let has = |name: &str| {
            code.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == name)
        };
        if has("iex") || has("invoke-expression") {
            let origin = if LOADS.iter().any(|name| has(name)) {
                Some(Origin::Download)
            } else {
                code.contains("frombase64string").then_some(Origin::Decoded)
            };
            if let Some(origin) = origin {
                self.report_foreign(index, &UNKNOWN.to_string(), origin);
            }
        }
        let reads_stdin = args.is_empty() || args.iter().any(|arg| arg.word.as_str() == "-");
        if reads_stdin && !input.is_nothing() {
            let unknown = UNKNOWN.to_string();
            self.report_foreign(index, input.text.as_deref().unwrap_or(&unknown), input.origin);
        }
    }
}
