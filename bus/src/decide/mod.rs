//! Deciding: which hooks are asked about an event, what they answer, and what the agent is answered.
//! `replay/` holds what only a replay needs.

mod background;
mod capabilities;
mod conclude;
mod explain;
mod plan;
mod probe;
pub mod replay;
mod rule_name;
mod rules_alone;
mod run;
mod run_command;
mod run_plugins;
mod slots;

pub(crate) use background::drain_notifications;
pub use capabilities::{became_a_block, effect_of, without_added_texts};
pub use conclude::{DecisionContext, conclude};
pub use explain::{HookReport, explain_hooks};
pub use plan::{Plan, plan};
pub use probe::{notify_for_test, probe_entry};
pub use rule_name::without_rule_names;
pub use rules_alone::RulesAlone;
pub(crate) use rules_alone::run_rules_alone;
pub use run::{HookResult, RunOutcome, run_all, run_rules};
pub use run_command::with_hookbus_object;
pub use slots::CommandSlots;
