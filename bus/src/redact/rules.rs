//! All rules with their keywords: which rule looks closer where which keyword was found.

use std::ops::Range;

use super::alphabet::{Alphabet, LOWER_ALNUM, entropy};
use super::detectors::{SERVICES, Service, TOKENS};
use super::keywords::{Hit, Keywords};
use super::look::{
    self, COMMANDS, Command, Look, NAME_KEYWORDS, NAME_PHRASES, Operator, Rank, assignment,
    is_placeholder, is_words,
};
use super::mark;
use super::own::Own;
use super::settings::SettingsError;
use super::shape::Token;

/// What looks closer at a keyword.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    Token(&'static Token),
    Service(&'static Service),
    Command(&'static Command),
    Name,
    Authorization,
    Bearer,
    Cookies,
    PrivateKey,
    Url,
    DockerAuth,
    KubernetesSecret,
    SqlPassword,
    Insert,
    Piped,
    Parameter,
    WebKey,
    Pgpass,
    OracleLogin,
    Neo4jAuth,
    GoMysqlLogin,
    SentPassword,
    UnsealKey,
    RandomPassword,
    SessionCookie,
    Csv,
    Call,
    UserAndPassword,
    RedisAuth,
    /// A mark of an earlier run.
    Mark,
    OwnKey(usize),
    OwnPattern(usize),
}

/// Keywords of rules that are not in a table.
const KEYWORDS: [(&str, Rule); 39] = [
    ("auth ", Rule::RedisAuth),
    ("| password", Rule::Csv),
    ("password |", Rule::Csv),
    ("\"random_password\"", Rule::RandomPassword),
    ("\"sessionid\"", Rule::SessionCookie),
    (",password", Rule::Csv),
    ("password,", Rule::Csv),
    ("jdbc:oracle:thin:", Rule::OracleLogin),
    ("sqlplus ", Rule::OracleLogin),
    ("neo4j_auth", Rule::Neo4jAuth),
    ("@tcp(", Rule::GoMysqlLogin),
    ("@unix(", Rule::GoMysqlLogin),
    ("send \"", Rule::SentPassword),
    ("send -- \"", Rule::SentPassword),
    ("unseal key", Rule::UnsealKey),
    ("identified by", Rule::SqlPassword),
    ("identified with", Rule::SqlPassword),
    ("authorization", Rule::Authorization),
    ("bearer ", Rule::Bearer),
    ("cookie", Rule::Cookies),
    ("insert into", Rule::Insert),
    ("\"kty\"", Rule::WebKey),
    ("-----begin", Rule::PrivateKey),
    ("-----end", Rule::PrivateKey),
    ("begin ssh2 encrypted", Rule::PrivateKey),
    ("<rsakeyvalue", Rule::PrivateKey),
    ("ls0tls1crudjti", Rule::PrivateKey),
    ("private-lines:", Rule::PrivateKey),
    ("\"auth\"", Rule::DockerAuth),
    ("'auth'", Rule::DockerAuth),
    ("kind: secret", Rule::KubernetesSecret),
    ("kind: \"secret\"", Rule::KubernetesSecret),
    ("\"kind\": \"secret\"", Rule::KubernetesSecret),
    ("\"kind\":\"secret\"", Rule::KubernetesSecret),
    ("\"kind\" : \"secret\"", Rule::KubernetesSecret),
    ("kind: 'secret'", Rule::KubernetesSecret),
    ("auth: bearer", Rule::Authorization),
    ("apikey ", Rule::Bearer),
    (mark::OPENING, Rule::Mark),
];

/// Kinds that no table names.
pub(super) const OTHER_KINDS: [&str; 22] = [
    "password",
    "passphrase",
    "seed-phrase",
    "client-secret",
    "secret-key",
    "api-key",
    "secret",
    "token",
    "credential",
    "url-password",
    "url-token",
    "json-web-key",
    "bearer-token",
    "basic-auth",
    "authorization",
    "cookie",
    "private-key",
    "registry-auth",
    "command-password",
    "kubernetes-secret",
    "configured-key",
    "configured-path",
];

/// What can follow the name of a service that has fewer than four letters.
const AFTER_NAME: Alphabet = LOWER_ALNUM.and(Alphabet::of("_-. =:\"'"));

/// The rules, and the search for their keywords.
#[derive(Debug)]
pub(super) struct Rules {
    rules: Vec<Rule>,
    keywords: Keywords,
}

impl Rules {
    pub(super) fn new(off: &[String], own: &Own) -> Result<Self, SettingsError> {
        for kind in off {
            if !kinds().any(|known| known == kind) {
                return Err(unknown_kind(kind));
            }
        }
        let mut rules = Self { rules: Vec::with_capacity(1024), keywords: Keywords::new() };
        let is_on = |kind: &str| !off.iter().any(|name| name == kind);
        for token in TOKENS.iter().copied().flatten().filter(|token| is_on(token.kind)) {
            rules.add(token.keyword.as_bytes(), Rule::Token(token));
        }
        for service in SERVICES.iter().copied().flatten().filter(|service| is_on(service.kind)) {
            rules.add(service.name.as_bytes(), Rule::Service(service));
        }
        for command in &COMMANDS {
            rules.add(command.program.as_bytes(), Rule::Command(command));
        }
        for (keyword, rule) in KEYWORDS {
            rules.add(keyword.as_bytes(), rule);
        }
        for keyword in look::FUNCTIONS {
            rules.add(keyword.as_bytes(), Rule::Call);
        }
        for keyword in look::PAIRS {
            rules.add(keyword.as_bytes(), Rule::UserAndPassword);
        }
        for keyword in look::READERS {
            rules.add(keyword.as_bytes(), Rule::Piped);
        }
        for keyword in look::PARAMETERS {
            rules.add(keyword.as_bytes(), Rule::Parameter);
        }
        for keyword in look::PGPASS_PORTS {
            rules.add(keyword.as_bytes(), Rule::Pgpass);
        }
        for keyword in NAME_KEYWORDS.split_whitespace().chain(NAME_PHRASES) {
            rules.add(keyword.as_bytes(), Rule::Name);
        }
        for keyword in look::url_keywords() {
            rules.add(&keyword, Rule::Url);
        }
        for (index, name) in own.key_names.iter().enumerate() {
            rules.add(name.literal(), Rule::OwnKey(index));
        }
        for (index, pattern) in own.patterns.iter().enumerate() {
            for keyword in pattern.keywords.iter().filter(|keyword| !keyword.is_empty()) {
                rules.add(keyword.as_bytes(), Rule::OwnPattern(index));
            }
        }
        rules.keywords.finish();
        Ok(rules)
    }

    fn add(&mut self, keyword: &[u8], rule: Rule) {
        let next = match rule {
            Rule::Token(token) => token.next(),
            Rule::Service(_) => Some(AFTER_NAME),
            Rule::Command(_)
            | Rule::Name
            | Rule::Authorization
            | Rule::Bearer
            | Rule::Cookies
            | Rule::PrivateKey
            | Rule::Url
            | Rule::DockerAuth
            | Rule::KubernetesSecret
            | Rule::SqlPassword
            | Rule::Insert
            | Rule::Piped
            | Rule::Parameter
            | Rule::WebKey
            | Rule::Pgpass
            | Rule::OracleLogin
            | Rule::Neo4jAuth
            | Rule::GoMysqlLogin
            | Rule::SentPassword
            | Rule::UnsealKey
            | Rule::RandomPassword
            | Rule::SessionCookie
            | Rule::Csv
            | Rule::Call
            | Rule::UserAndPassword
            | Rule::RedisAuth
            | Rule::Mark
            | Rule::OwnKey(_)
            | Rule::OwnPattern(_) => None,
        };
        self.keywords.add(keyword, next, self.rules.len());
        self.rules.push(rule);
    }

    /// Calls `found` for every keyword in the text, with the rule that it belongs to.
    pub(super) fn search(&self, text: &[u8], mut found: impl FnMut(Rule, Hit)) {
        self.keywords.search(text, |hit| {
            if let Some(rule) = self.rules.get(hit.rule) {
                found(*rule, hit);
            }
        });
    }
}

/// All kinds that a built-in detector can find.
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    let tokens = TOKENS.iter().copied().flatten().map(|token| token.kind);
    let services = SERVICES.iter().copied().flatten().map(|service| service.kind);
    tokens.chain(services).chain(OTHER_KINDS)
}

fn unknown_kind(kind: &str) -> SettingsError {
    let similar = kinds().find(|known| known.contains(kind) || kind.contains(known));
    let hint = similar.map(|known| format!(" (did you mean `{known}`?)")).unwrap_or_default();
    SettingsError::UnknownKind { kind: kind.to_owned(), hint }
}

impl Rule {
    /// Reads what is around the keyword, and adds what is secret in it.
    pub(super) fn look_closer(self, look: &mut Look<'_>, hit: Hit, own: &Own) {
        let keyword = hit.start..hit.start + hit.len;
        match self {
            Self::Token(token) => {
                let range = token.match_at(look, hit.start);
                let is_token = |range: &Range<usize>| {
                    !is_example(look.slice(range.clone()), token.keyword.len())
                };
                if let Some(range) = range.filter(is_token) {
                    look.add(range, token.kind, Rank::Token);
                }
            }
            Self::Service(service) => service.find(look, keyword),
            Self::Command(command) => command.find(look, &keyword),
            Self::Name => {
                let inside = |found: &look::Candidate| {
                    found.range.contains(&hit.start) && found.rank == Rank::Named
                };
                if !look.found.last().is_some_and(inside) {
                    look::named_secret(look, keyword);
                }
            }
            Self::Authorization => look::authorization(look, keyword),
            Self::Bearer => look::bearer(look, keyword),
            Self::Cookies => look::cookies(look, keyword),
            Self::PrivateKey => look::private_key(look, keyword),
            Self::Url => look::url_password(look, keyword.end),
            Self::DockerAuth => look::docker_auth(look, keyword),
            Self::KubernetesSecret => look::kubernetes_secret(look, keyword),
            Self::SqlPassword => look::sql_password(look, keyword),
            Self::Insert => look::insert_values(look, keyword),
            Self::Piped => look::piped_secret(look, keyword),
            Self::Parameter => look::url_parameter(look, keyword),
            Self::WebKey => look::json_web_key(look, keyword),
            Self::Pgpass => look::pgpass(look, keyword),
            Self::OracleLogin => look::oracle_login(look, keyword),
            Self::Neo4jAuth => look::neo4j_auth(look, keyword),
            Self::GoMysqlLogin => look::go_mysql_login(look, keyword),
            Self::SentPassword => look::sent_password(look, keyword),
            Self::UnsealKey => look::unseal_key(look, keyword),
            Self::RandomPassword => look::random_password(look, keyword),
            Self::SessionCookie => look::session_cookie(look, keyword),
            Self::Csv => look::csv_column(look, keyword),
            Self::Call => look::last_argument(look, keyword),
            Self::UserAndPassword => look::user_and_password(look, keyword),
            Self::RedisAuth => look::redis_auth(look, keyword),
            Self::OwnKey(index) => {
                let Some(name) = own.key_names.get(index) else { return };
                let Some(found) = assignment(look, keyword, 0) else { return };
                let value = look.slice(found.value.clone());
                let is_secret = !is_placeholder(value) && found.operator != Operator::Compares;
                if is_secret && name.matches(look.slice(found.name)) {
                    look.add(found.value, "configured-key", Rank::Own);
                }
            }
            Self::Mark | Self::OwnPattern(_) => {}
        }
    }
}

/// `ghp_xxxxxxxxxxxx`, `AKIAIOSFODNN7EXAMPLE`: tokens in documentation; `al-jazeera-reports-on-…`: a name that starts alike.
fn is_example(token: &[u8], prefix: usize) -> bool {
    let body = token.get(prefix..).unwrap_or(token);
    let is_name = || {
        let is_part = |byte: &u8| !byte.is_ascii_uppercase();
        body.iter().any(|byte| b"-_".contains(byte)) && body.iter().all(is_part) && is_words(body)
    };
    token.ends_with(b"EXAMPLE")
        || (body.len() >= 8 && entropy(body) < 180)
        || (body.len() >= 20 && token.first().is_some_and(u8::is_ascii_alphabetic) && is_name())
}
