//! The hosts that a call talks to: those in the URLs of a web tool, and those in a shell line.

use std::borrow::Cow;

use super::commands::CommandFact;
use super::field::find_texts;
use super::files::ProgramIndex;
use crate::event::Event;

/// A host that a call talks to.
#[derive(Debug)]
pub struct HostFact<'a> {
    /// The URL or address as written.
    pub text: Cow<'a, str>,
    /// `https`, `ssh`, …; empty if it is not known.
    pub scheme: Cow<'a, str>,
    /// In lower case, without user and port; empty if it is not known.
    pub host: Cow<'a, str>,
    /// The program that talks to it; none if the tool itself does.
    pub by: Option<ProgramIndex>,
    /// Whether a field of the event holds it, in which a plain regex of `url` is searched.
    pub is_field: bool,
    /// Whether it is in the first field of its name.
    pub is_first: bool,
}

/// The hosts of `event` and of its shell lines.
pub(super) fn hosts_of<'a>(event: &'a Event, commands: &'a [CommandFact]) -> Vec<HostFact<'a>> {
    let mut hosts = Vec::new();
    for field in find_texts(event, "url") {
        // The items of a list are there one by one too.
        let urls = if field.is_string { addresses_in(&field.text) } else { Vec::new() };
        let fact = |scheme: String, host: String| HostFact {
            text: field.text.clone(),
            scheme: Cow::Owned(scheme),
            host: Cow::Owned(host),
            by: None,
            is_field: true,
            is_first: field.is_first,
        };
        if urls.is_empty() {
            hosts.push(fact(String::new(), String::new()));
        }
        hosts.extend(urls.into_iter().map(|(scheme, host)| fact(scheme, host)));
    }
    for (line, command) in commands.iter().enumerate() {
        hosts.extend(command.view.hosts.iter().map(|used| HostFact {
            text: Cow::Borrowed(used.text.as_str()),
            scheme: Cow::Borrowed(&used.scheme),
            host: Cow::Borrowed(&used.host),
            by: used.by.map(|program| ProgramIndex { line, program }),
            is_field: false,
            is_first: false,
        }));
    }
    hosts
}

/// More addresses than a call names.
const MOST: usize = 1000;

/// Scheme and host of the addresses in a text. One without a scheme is read as a browser does.
fn addresses_in(text: &str) -> Vec<(String, String)> {
    let urls: Vec<(String, String)> = urls_in(text).take(MOST).collect();
    let bare = text.trim().trim_start_matches(['/', '\\']);
    if !urls.is_empty() || bare.is_empty() || bare.contains(char::is_whitespace) {
        return urls;
    }
    let (scheme, rest) = match bare.split_once(':') {
        Some((scheme, rest)) if rest.starts_with(['/', '\\']) => {
            (scheme.to_ascii_lowercase(), rest.trim_start_matches(['/', '\\']))
        }
        _ => (String::new(), bare),
    };
    let host = host_in(rest);
    if host.contains('.') || host == "localhost" { vec![(scheme, host)] } else { urls }
}

/// Scheme and host of every URL in a text: a field may be a prompt with addresses in it.
fn urls_in(text: &str) -> impl Iterator<Item = (String, String)> + '_ {
    text.match_indices("://").filter_map(|(at, _)| {
        let is_scheme = |letter: &char| letter.is_ascii_alphanumeric() || "+-.".contains(*letter);
        let scheme: Vec<char> = text[..at].chars().rev().take_while(is_scheme).collect();
        let scheme: String = scheme.into_iter().rev().collect::<String>().to_ascii_lowercase();
        (!scheme.is_empty()).then(|| (scheme, host_in(&text[at + 3..])))
    })
}

/// The host at the start of what follows `://`. A browser reads a backslash as a slash.
fn host_in(rest: &str) -> String {
    let ends = |letter: char| {
        letter.is_whitespace() || letter.is_control() || "/\\?#\"'<>`)]}".contains(letter)
    };
    let authority = rest.split(ends).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if let Some(address) = host.strip_prefix('[') {
        return address.to_lowercase();
    }
    let host = host.split(':').next().unwrap_or_default();
    host.trim_end_matches('.').to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_url_is_found_where_a_client_would_find_it() {
        for (text, expected) in [
            ("https://Example.ORG/x", "example.org"),
            ("https://good.org@evil.org/x", "evil.org"),
            ("https://evil.org\\@good.org/", "evil.org"),
            ("http://user:pw@host.net:8080?q=@other", "host.net"),
            ("http://[::1]:80/x", "::1"),
            ("see https://a.b./c for more", "a.b"),
        ] {
            let found: Vec<(String, String)> = urls_in(text).collect();
            assert_eq!(found[0].1, expected, "{text}");
        }
        assert_eq!(urls_in("http://a.b and ftp://c.d").count(), 2);
        assert_eq!(urls_in("no address").count(), 0);
        for bare in ["evil.org/x", "//evil.org/x", "https:\\\\evil.org\\x"] {
            assert_eq!(addresses_in(bare)[0].1, "evil.org", "{bare}");
        }
    }
}
