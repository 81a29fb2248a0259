//! `use:` and `change:`: the rules of packs, as the file changes them. A mistake there switches no rule off: what cannot be
//! used leaves the rule as it is shipped.

use super::Parser;
use crate::config::entry;
use crate::config::event_key::EventKey;
use crate::config::hook::Hook;
use crate::config::packs::{self, Change, UsedPack, used_packs};
use crate::config::problem::{Place, Problem, Reach, hint};
use crate::config::yaml::{Data, Node, Pair};

impl Parser<'_> {
    /// Adds the rules of the packs that the file uses. A project's file uses none.
    pub(super) fn use_packs(&mut self, pairs: &[Pair]) {
        if self.file.project.is_some() {
            return;
        }
        let get = |key: &str| pairs.iter().find(|pair| pair.key == key && !pair.value.is_null());
        let changes = get("change");
        let recorded = get("packs").map(|it| &it.value).filter(|it| it.pairs().is_some());
        let (used, problems) =
            get("use").map_or_else(Default::default, |it| used_packs(&it.value, recorded));
        self.file.problems.extend(problems.into_iter().map(|problem| about(problem, "use")));
        if let Some(empty) = pairs.iter().find(|pair| pair.key == "use" && pair.value.is_null()) {
            let why = "`use` is empty; write `use: [starter]`, or `use: []` for none";
            self.file.problems.push(about(Problem::broken_entry(empty.line, why), "use"));
        }
        let mut known = Vec::new();
        for pack in &used {
            let Some(text) = packs::text_of(&pack.name, recorded) else { continue };
            match packs::entries(&text) {
                Ok(entries) => self.pack_entries(pack, entries, changes, &mut known),
                Err(problem) => self.file.problems.push(about(problem, "use")),
            }
            // A content that records its packs is complete already.
            if recorded.is_none() {
                self.file.packs.push((pack.name.clone(), text.into_owned()));
            }
        }
        let written = changes.and_then(|it| it.value.pairs()).into_iter().flatten();
        for pair in written.filter(|pair| !known.contains(&pair.key)) {
            let names = known.iter().map(String::as_str);
            let hint = hint(&pair.key, names, "; `hookbus hooks list` shows their names");
            let why = format!("no pack in `use` has a rule `{}`{hint}", pair.key);
            self.file.problems.push(about(Problem::broken_entry(pair.line, why), "change"));
        }
        if let Some(pair) = changes.filter(|it| it.value.pairs().is_none()) {
            let why = "`change` maps names of rules to what is different; write `change: { git-force-push: off }`";
            self.file.problems.push(about(Problem::broken_entry(pair.line, why), "change"));
        }
    }

    fn pack_entries(
        &mut self,
        pack: &UsedPack,
        entries: Vec<(String, Node)>,
        changes: Option<&Pair>,
        known: &mut Vec<String>,
    ) {
        for (event, mut entry) in entries {
            let Ok(on) = EventKey::parse(&event) else { continue };
            let name = packs::name_of(&entry).unwrap_or_default();
            let changes = changes.and_then(|it| it.value.pairs()).unwrap_or_default();
            let change = changes.iter().find(|pair| pair.key == name);
            known.push(name);
            if pack.shadow {
                let value = Node { line: pack.line, data: Data::Scalar("shadow".into()) };
                packs::set(&mut entry, Pair { key: "mode".to_owned(), line: pack.line, value });
            }
            let hook = match change.map(|change| packs::changed(&entry, change)) {
                Some(Ok(Change::Off)) => continue,
                Some(Ok(Change::To(changed))) => self.changed_entry(&changed, &on),
                Some(Err(problem)) => {
                    self.file.problems.push(about(problem, "change"));
                    None
                }
                None => None,
            };
            let hook = hook.or_else(|| self.pack_entry(&entry, &on, &mut Vec::new()));
            let pack_name = Some(pack.name.clone());
            let hook = hook.map(|hook| Hook { line: pack.line, pack: pack_name, ..hook });
            self.file.hooks.extend(hook);
        }
    }

    /// The entry as `change` wants it; none if it cannot be used, which is a mistake.
    fn changed_entry(&mut self, entry: &Node, on: &EventKey) -> Option<Hook> {
        let mut problems = Vec::new();
        let hook = self.pack_entry(entry, on, &mut problems);
        let is_broken = problems.iter().any(|problem| problem.reach == Reach::Entry);
        self.file.problems.extend(problems.into_iter().map(|problem| about(problem, "change")));
        hook.filter(|_| !is_broken)
    }

    fn pack_entry(&self, entry: &Node, on: &EventKey, problems: &mut Vec<Problem>) -> Option<Hook> {
        let place = Place::Setting("use".to_owned());
        entry::read(entry, on, &place, &self.source(on, entry), problems)
    }
}

fn about(problem: Problem, key: &str) -> Problem {
    problem.about(key, Place::Setting(key.to_owned()))
}
