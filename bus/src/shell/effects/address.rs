//! Scheme and host of a URL or an address.

use crate::shell::view::HostUse;
use crate::shell::word::{UNKNOWN, Word};

/// Scheme and host, both in lower case; empty if they are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) scheme: String,
    pub(super) host: String,
}

impl Address {
    /// A host as such, perhaps with user and port.
    pub(super) fn new(scheme: &str, authority: &str) -> Self {
        Self { scheme: known(scheme), host: host(authority) }
    }

    /// A URL. Without a scheme it has this one.
    pub(super) fn from_url(url: &str, scheme: &str) -> Self {
        let (scheme, rest) = match url.split_once("://") {
            Some((scheme, rest)) => (scheme.rsplit('+').next().unwrap_or(scheme), rest),
            // Nothing is known about the scheme of `$URL`.
            None if url.starts_with(UNKNOWN) => ("", url),
            None => (scheme, url),
        };
        let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        Self::new(scheme, authority)
    }

    /// `user@host:path` or `host:path`, as scp, rsync and git write it.
    pub(super) fn from_remote_path(text: &str) -> Option<Self> {
        let (before, _) = match text.strip_prefix('[') {
            // `[::1]:path`
            Some(_) => text.split_once("]:")?,
            None => text.split_once(':')?,
        };
        // `./a:b` is a file; `C:\x` a drive.
        let is_host = !before.is_empty() && !before.contains('/') && before.len() > 1;
        is_host.then(|| Self::new("ssh", before.trim_start_matches('[')))
    }
}

/// The host of a URL that the program at an index talks to.
pub(crate) fn host_of_url(url: &str, by: usize) -> HostUse {
    let Address { scheme, host } = Address::from_url(url, "");
    HostUse { text: Word::literal(url), scheme, host, by: Some(by) }
}

fn known(text: &str) -> String {
    if text.contains(UNKNOWN) { String::new() } else { text.to_lowercase() }
}

/// The host of `user@host:port`.
fn host(authority: &str) -> String {
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or(inner),
        // More than one colon: an IPv6 address without brackets.
        None if host.matches(':').count() > 1 => host,
        None => host.split(':').next().unwrap_or(host),
    };
    if host.contains(['{', '*', '[']) { String::new() } else { known(host.trim_end_matches('.')) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_scheme_and_a_host() {
        for (url, scheme, host) in [
            ("https://Example.com/x", "https", "example.com"),
            ("HTTPS://user:pw@example.com:8443/x?y#z", "https", "example.com"),
            ("example.com/x", "http", "example.com"),
            ("example.com:80", "http", "example.com"),
            ("http://[::1]:80/", "http", "::1"),
            ("git+https://github.com/x/y", "https", "github.com"),
            ("https://\u{FFFC}/x", "https", ""),
            ("https://a.b\u{FFFC}", "https", ""),
            ("https://a.b/\u{FFFC}", "https", "a.b"),
            ("\u{FFFC}", "", ""),
            ("\u{FFFC}://a.b", "", "a.b"),
            ("https://good.example@evil.example/", "https", "evil.example"),
            ("https://evil.example\\@good.example/", "https", "evil.example"),
            ("https://{a,b}.example", "https", ""),
        ] {
            let expected = Address { scheme: scheme.to_owned(), host: host.to_owned() };
            assert_eq!(Address::from_url(url, "http"), expected, "{url}");
        }
    }

    #[test]
    fn a_remote_path_has_a_host() {
        for (text, host) in [
            ("git@github.com:x/y", Some("github.com")),
            ("host:path", Some("host")),
            ("[::1]:path", Some("::1")),
            ("./a:b", None),
            ("file", None),
            ("C:\\x", None),
        ] {
            let found = Address::from_remote_path(text).map(|address| address.host);
            assert_eq!(found.as_deref(), host, "{text}");
        }
    }
}
