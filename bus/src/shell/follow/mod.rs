//! Follows a script command by command, the way bash would run it, and keeps what becomes known on the way:
//! variables, directories, functions, what flows through pipes.

mod assignments;
mod builtins;
mod compounds;
mod flow;
mod follower;
mod implicit_code;
mod lists;
mod redirects;
mod scope;
mod simple;

pub(crate) use flow::{Flow, Origin};
pub(crate) use follower::Follower;
pub(crate) use redirects::Target;
pub(crate) use scope::{Value, join};
pub(crate) use simple::{Arg, Call};
