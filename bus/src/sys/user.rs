//! The user that this process acts as, by the password database: what the environment says about the user is not asked.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use nix::unistd::{Group, Uid, User};

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

/// Whether this is the group that the system made for the effective user alone, as many do: it is the user's own, has
/// the same name and no other member. A umask of 002 is the default with such groups. Looked up once per process.
pub fn is_private_group(gid: u32) -> bool {
    static PRIVATE: LazyLock<Option<u32>> = LazyLock::new(|| {
        let user = User::from_uid(Uid::effective()).ok().flatten()?;
        let group = Group::from_gid(user.gid).ok().flatten()?;
        let is_private = is_only_for(&user.name, &group.name, &group.mem) && !user.uid.is_root();
        is_private.then_some(user.gid.as_raw())
    });
    *PRIVATE == Some(gid)
}

fn is_only_for(user: &str, group: &str, members: &[String]) -> bool {
    user == group && members.iter().all(|member| member == user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_private_if_it_has_the_users_name_and_no_other_member() {
        let members =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(is_only_for("anna", "anna", &[]));
        assert!(is_only_for("anna", "anna", &members(&["anna"])));
        assert!(!is_only_for("anna", "anna", &members(&["anna", "ben"])));
        assert!(!is_only_for("anna", "users", &[]));
    }
}
