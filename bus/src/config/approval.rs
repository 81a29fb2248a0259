//! The types of consent that several rooms share: whether the user has approved an entry, and why a hook
//! must not run. `consent/` finds that out.

/// Which entries run without an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Those in the user's own hooks file.
    Home,
    /// None.
    #[default]
    Nobody,
}

/// Whether the user has approved an entry; what weighs more comes later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Approval {
    /// As it is now.
    Approved,
    /// Never.
    NotApproved,
    /// Before it, or a file that it covers, changed.
    Lapsed,
    /// Yes, and the user has not revoked it, but the approval is gone.
    Lost,
}

impl Approval {
    /// Whether the user approved it once, and it must not run any more. Such a hook was a guard, so it blocks
    /// unless its entry says otherwise.
    pub const fn is_void(self) -> bool {
        match self {
            Self::Lapsed | Self::Lost => true,
            Self::Approved | Self::NotApproved => false,
        }
    }
}

/// Why a hook must not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Never approved, or not any more.
    pub approval: Approval,
    /// The reason, ending with what to do. The model may read it.
    pub why: String,
    /// Whether the files were compared. If not, the reason is only that they could not be.
    pub checked: bool,
    /// Whether everything that was ever approved under this entry is a gateway hook; those cannot answer most
    /// events.
    pub only_gateway_hooks: bool,
}

impl Refusal {
    /// Of several refusals for one plugin directory, the one with the greatest weight counts.
    pub(crate) const fn weight(&self) -> (Approval, bool) {
        (self.approval, !self.only_gateway_hooks)
    }
}
