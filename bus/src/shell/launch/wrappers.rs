//! Programs that run the program in their arguments, behind options and a fixed number of other words.

use super::super::follow::{Call, Flow, Follower, Origin};
use super::options;
use super::wrapper_table::TABLE;

/// How such a program is called.
#[derive(Debug)]
pub(super) struct Wrapper {
    pub(super) names: &'static [&'static str],
    /// Its options that take the next word.
    pub(super) values: &'static [&'static str],
    /// How many words stand between its options and the program.
    pub(super) words: usize,
    /// Its options that take the next two words.
    pub(super) pairs: &'static [&'static str],
}

/// The wrapper with this name.
pub(super) fn find(name: &str) -> Option<&'static Wrapper> {
    TABLE.iter().find(|wrapper| wrapper.names.contains(&name))
}

impl Follower<'_> {
    pub(super) fn wrapper(
        &mut self,
        wrapper: &Wrapper,
        index: usize,
        call: &Call,
        input: &Flow,
    ) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let mut behind = options::leading(args, wrapper.values);
        while let Some(pair) = behind.checked_sub(1).and_then(|last| args.get(last))
            && wrapper.pairs.contains(&pair.word.as_str())
        {
            behind += 2;
            match args.get(behind..) {
                Some(rest) => behind += options::leading(rest, wrapper.values),
                None => break,
            }
        }
        match args.get(behind + wrapper.words..) {
            Some([]) | None => self.output(index, input),
            Some(inner) => self.launch(call.with(inner.to_vec()), input),
        }
    }

    /// `command` and `builtin`: start the program, or tell where it is.
    pub(super) fn command_builtin(&mut self, index: usize, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let tells = args.first().is_some_and(|arg| matches!(arg.word.as_str(), "-v" | "-V"));
        if tells {
            return self.output(index, input);
        }
        let behind = options::leading(args, &[]);
        match args.get(behind..) {
            Some([]) | None => Flow::unknown(Origin::Output),
            Some(inner) => self.launch(call.with(inner.to_vec()), input),
        }
    }
}
