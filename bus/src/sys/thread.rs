//! Threads whose stack does not depend on the environment. By default Rust takes its size from the variable
//! `RUST_MIN_STACK`, and an agent may have that from the `.env` file of a repository: too large, no thread can
//! start; too small, the process dies of it. Either way no hook would be asked.

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// The size of a thread's stack, as Rust has it without the variable. Runtimes that start threads use it too.
pub const STACK_SIZE: usize = 2 << 20;

/// Starts a thread. Fails if the system has no room for one more.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).stack_size(STACK_SIZE).spawn(work)
}

/// Starts a thread that ends with `scope`. Fails if the system has no room for one more.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().name(name.to_owned()).stack_size(STACK_SIZE).spawn_scoped(scope, work)
}
