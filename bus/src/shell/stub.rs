//! stub
use super::*;
use std::fmt;
#[derive(Debug, Default, Clone)]
pub struct Start {
    pub home: Option<String>,
    pub cwd: Option<String>,
    pub variables: Vec<(String, String)>,
}
pub fn read(_line: &str, _start: &Start) -> ShellView {
    ShellView::default()
}
#[derive(Debug, Clone)]
pub struct CommandPattern(String);
#[derive(Debug, Clone)]
pub struct ParsedInvocation(String);
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    Yes,
    No,
    Maybe,
}
impl ParsedInvocation {
    pub fn new(i: &Invocation) -> Self {
        Self(i.program.as_str().into())
    }
    pub fn name(&self) -> &str {
        &self.0
    }
}
impl CommandPattern {
    pub fn parse(t: &str) -> Result<Self, String> {
        Ok(Self(t.into()))
    }
    pub fn matches(&self, _: &ParsedInvocation) -> Match {
        Match::No
    }
    pub fn explain(&self, _: &ParsedInvocation) -> Option<String> {
        None
    }
}
impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl ShellView {
    pub fn unreadable(_: &str) -> Self {
        Self::default()
    }
}
