//! The hooks in Gemini's settings that call the bus: those that `connect` wrote, and those that the user wrote by hand.

use hookbus::dialect::event_names;
use hookbus::event::Agent;
use serde_json::Value;

use super::super::shell_wire::{BusCall, bus_call};
use super::settings_text::HookPlace;
use super::wire::{NAME, Wire};

/// How a hook calls the bus.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Call {
    /// As `connect` writes it.
    Wired(Wire),
    /// Written by hand, and it does nothing else.
    ByHand,
    /// Written by hand, possibly with other work too.
    WithOtherWork,
}

/// A hook that calls the bus.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BusHook {
    pub(super) place: HookPlace,
    pub(super) command: String,
    /// The name that it is switched off by: its own, else its command.
    pub(super) name: String,
    /// The tools or sources that its group is for, if not all.
    pub(super) matcher: Option<String>,
    /// In milliseconds, if it has one.
    pub(super) timeout: Option<u64>,
    pub(super) call: Call,
}

/// A command hook in Gemini's settings, as far as it matters here.
struct CommandHook<'a> {
    place: HookPlace,
    group: &'a Value,
    hook: &'a Value,
    command: &'a str,
}

/// All hooks that call the bus at an event that Gemini has.
pub(super) fn find(settings: &Value) -> Vec<BusHook> {
    let found = command_hooks(settings).into_iter().filter_map(|hook| {
        let is_named = hook.hook["name"] == NAME;
        let call =
            match (Wire::parse(hook.command).filter(|_| is_named), bus_call(hook.hook, "gemini")) {
                (Some(wire), _) => Call::Wired(wire),
                (None, BusCall::Only) => Call::ByHand,
                (None, BusCall::WithOtherWork) => Call::WithOtherWork,
                (None, BusCall::No) => return None,
            };
        let name = hook.hook["name"].as_str().filter(|name| !name.is_empty());
        let matcher = hook.group["matcher"].as_str().filter(|matcher| !["", "*"].contains(matcher));
        Some(BusHook {
            name: name.unwrap_or(hook.command).to_owned(),
            matcher: matcher.map(str::to_owned),
            timeout: hook.hook["timeout"].as_u64(),
            command: hook.command.to_owned(),
            place: hook.place,
            call,
        })
    });
    found.collect()
}

/// How many command hooks do not call the bus.
pub(super) fn count_others(settings: &Value) -> usize {
    command_hooks(settings).len() - find(settings).len()
}

/// Why Gemini runs no hook of this name with these settings, if so.
pub(super) fn switched_off(settings: &Value, name: &str) -> Option<String> {
    let config = &settings["hooksConfig"];
    if config["enabled"] == false {
        return Some(
            "`hooksConfig.enabled` is false in it, so Gemini runs no hooks; set it to true"
                .to_owned(),
        );
    }
    let disabled = config["disabled"].as_array().into_iter().flatten();
    let is_listed = disabled.into_iter().any(|entry| entry == name);
    is_listed.then(|| {
        format!("`hooksConfig.disabled` in it contains `{name}`; take it out, or run `/hooks enable {name}` in Gemini")
    })
}

fn command_hooks(settings: &Value) -> Vec<CommandHook<'_>> {
    let groups = event_names(Agent::Gemini).flat_map(|event| {
        let groups = settings["hooks"][event].as_array().into_iter().flatten().enumerate();
        groups.map(move |(index, group)| (event, index, group))
    });
    let hooks = groups.flat_map(|(event, group_index, group)| {
        let hooks = group["hooks"].as_array().into_iter().flatten().enumerate();
        hooks.filter_map(move |(index, hook)| {
            let command = hook["command"].as_str()?;
            let place = HookPlace { event: event.to_owned(), group: group_index, index };
            Some(CommandHook { place, group, hook, command })
        })
    });
    hooks.collect()
}
