//! What the grammar makes of a text. Words are slices of it, unexpanded.

use std::borrow::Cow;

/// A whole text: its commands, and the bodies of its here-documents.
#[derive(Debug)]
pub(crate) struct Script<'a> {
    pub(crate) list: List<'a>,
    pub(crate) documents: Vec<Document<'a>>,
    /// The end of the text, if bash would refuse it.
    pub(crate) unread: &'a str,
}

/// Commands one after the other, separated by `;`, `&` or a newline.
pub(crate) type List<'a> = Vec<AndOr<'a>>;

/// Pipelines joined by `&&` and `||`. The first one's join means nothing.
#[derive(Debug)]
pub(crate) struct AndOr<'a> {
    pub(crate) pipelines: Vec<(Join, Pipeline<'a>)>,
}

/// How a pipeline depends on the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    And,
    Or,
}

/// Commands joined by `|` or `|&`.
pub(crate) type Pipeline<'a> = Vec<Command<'a>>;

/// One command.
#[derive(Debug)]
pub(crate) enum Command<'a> {
    Simple(Simple<'a>),
    Compound(Compound<'a>, Vec<Redirect<'a>>),
    /// A function: its name, and its body as text, which is read when the function is called.
    Function(&'a str, &'a str),
}

/// A program with its words, or only assignments and redirections.
#[derive(Debug, Default)]
pub(crate) struct Simple<'a> {
    /// Leading assignments, then the program, then its arguments.
    pub(crate) words: Vec<&'a str>,
    pub(crate) redirects: Vec<Redirect<'a>>,
}

/// A command made of commands.
#[derive(Debug)]
pub(crate) enum Compound<'a> {
    Group(List<'a>),
    Subshell(List<'a>),
    If(Vec<Branch<'a>>),
    /// `for` and `select`; without values they run over the positional parameters.
    For {
        name: &'a str,
        values: Option<Vec<&'a str>>,
        body: List<'a>,
    },
    /// `for ((…))`: the text in the parentheses, and the body.
    ArithmeticFor(&'a str, List<'a>),
    /// `while` and `until`: the condition, and the body.
    While(List<'a>, List<'a>),
    /// The words that are compared, and the bodies.
    Case(Vec<&'a str>, Vec<List<'a>>),
    Arithmetic(&'a str),
    /// `[[ … ]]`: its words.
    Test(Vec<&'a str>),
    Coproc(Box<Command<'a>>),
}

/// A branch of `if`: its condition (empty for `else`) and its body.
#[derive(Debug)]
pub(crate) struct Branch<'a> {
    pub(crate) condition: List<'a>,
    pub(crate) body: List<'a>,
}

/// A redirection.
#[derive(Debug)]
pub(crate) struct Redirect<'a> {
    /// The descriptor before the operator, as written.
    pub(crate) fd: Option<&'a str>,
    pub(crate) kind: RedirectKind,
    /// The word behind the operator; for a here-document its delimiter.
    pub(crate) target: &'a str,
}

/// What a redirection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    Read,
    Write,
    Append,
    ReadWrite,
    /// `<&` and `>&`.
    Duplicate,
    HereString,
    /// The index of its [`Document`].
    HereDocument(usize),
}

/// The body of a here-document.
#[derive(Debug, Clone)]
pub(crate) struct Document<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Whether variables and substitutions in it are expanded: its delimiter is not quoted.
    pub(crate) expands: bool,
}
