//! The words of consent, shared by those who ask for it: whether the user has approved an entry, and
//! why a hook must not run. Finding that out is the work of `consent/`.

/// Which entries run without an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Those in the user's own hooks file.
    Home,
    /// None.
    #[default]
    Nobody,
}

/// Whether the user has approved an entry, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Approval {
    /// As it is now.
    Approved,
    /// Never.
    NotApproved,
    /// Before it, or a file that it covers, changed.
    Lapsed,
}

/// Why a hook must not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Never approved, or not any more.
    pub approval: Approval,
    /// The reason, ending with what to do. The model may read it.
    pub why: String,
    /// Whether the files were really compared. If not (no time), the reason is only that.
    pub checked: bool,
    /// Whether everything that was ever approved under this entry is a gateway hook, which most events
    /// do not concern.
    pub only_gateway_hooks: bool,
}

impl Refusal {
    /// Of two refusals for one plugin directory the heavier one counts.
    pub const fn weight(&self) -> (Approval, bool) {
        (self.approval, !self.only_gateway_hooks)
    }
}
