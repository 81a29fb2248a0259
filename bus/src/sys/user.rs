//! The user that this process acts as, by the password database: what the environment says about the user is not asked.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use nix::unistd::{Uid, User};

/// What the password database says about one user.
#[derive(Debug)]
pub struct Account {
    /// The login name.
    pub name: String,
    /// The home directory.
    pub home: PathBuf,
}

/// The account of the effective user; none if the database does not know it. Looked up once per process.
pub fn account() -> Option<&'static Account> {
    static ACCOUNT: LazyLock<Option<Account>> = LazyLock::new(|| {
        let user = User::from_uid(Uid::effective()).ok().flatten()?;
        Some(Account { name: user.name, home: user.dir })
    });
    ACCOUNT.as_ref()
}

/// The home directory of the effective user.
pub fn user_home() -> Option<&'static Path> {
    account().map(|account| account.home.as_path())
}
