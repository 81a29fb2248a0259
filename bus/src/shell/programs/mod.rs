//! What is known about programs: their names, options and subcommands, and how an invocation is taken apart with
//! that.

mod name;
mod option_table;
mod options;
mod read_arguments;
mod readings;
mod spec;
mod tables;

pub(super) use name::program;
pub(super) use options::{Arguments, Certainty, GivenOption, Operand, Text};
pub(super) use spec::{OptionName, spellings};

pub use readings::ParsedInvocation;
pub(super) use readings::Reading;
