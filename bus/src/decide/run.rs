//! Asking the planned hooks. All of them run at once unless one asks for its turn; the records
//! come back in the configured order, whichever hook was first to answer.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::command::{self, Latecomers, Program, Ran};
use super::consent::{Agreement, Objection, named};
use super::hook::{Action, Command, Hook, OnFailure};
use super::plan::{Guard, Plan, policy_of};
use super::rehearsal::Scratch;
use super::rule::Rule;
use super::surroundings::Surroundings;
use super::{Hooks, host, launch, rehearsal, script};
use crate::dialect::{Ending, Manner, Said, Understood, understand};
use crate::event::{Body, BusId, Event, Kind, Seq, Verdict, VerdictRecord};

/// Nobody waits longer; keeps a silly deadline from running off the clock.
const LONGEST: Duration = Duration::from_hours(1);

/// How Python, Perl and some shells end when their script is not there. A script that is says the same to block.
const NO_SCRIPT: i32 = 2;

/// What a hook said; without a hook, what the bus itself says.
#[derive(Debug, Clone)]
pub struct Spoken<'a> {
    pub(super) hook: Option<&'a Hook>,
    pub(super) record: VerdictRecord,
}

impl Spoken<'_> {
    /// What is kept of it.
    pub const fn record(&self) -> &VerdictRecord {
        &self.record
    }
}

/// What the rules of a plan say; nothing outside of this process runs.
pub fn run_rules<'a>(plan: &Plan<'a>, event: &Event) -> Vec<Spoken<'a>> {
    ask_inside(plan, event, |_| None)
}

/// The same where there is no time to run anything outside: whatever had to has failed.
pub fn run_out_of_time<'a>(plan: &Plan<'a>, event: &Event) -> Vec<Spoken<'a>> {
    ask_inside(plan, event, |hook| {
        let why = "no time was left to ask it".to_owned();
        Some(record(&plan.for_all(hook), Verdict::silent(), Some(why), Duration::ZERO))
    })
}

fn ask_inside<'a>(
    plan: &Plan<'a>,
    event: &Event,
    outside: impl Fn(&Hook) -> Option<VerdictRecord>,
) -> Vec<Spoken<'a>> {
    match plan.guard {
        Some(Guard::Hook(hook)) => {
            return vec![Spoken { hook: Some(hook), record: refusal(&hook.name, event) }];
        }
        Some(Guard::Bus) => {
            return vec![Spoken { hook: None, record: refusal("hookbus", event) }];
        }
        None => {}
    }
    let ask = |hook: &&'a Hook| {
        let record = if hook.runs_outside() {
            outside(hook)
        } else {
            answer_inside(plan.whole(hook), hook, event)
        };
        Some(Spoken { hook: Some(hook), record: record? })
    };
    plan.hooks.iter().filter_map(ask).collect()
}

/// What all hooks of a plan say. `time` is how long all of it may take.
pub async fn run_all<'a>(
    plan: &Plan<'a>,
    event: &Event,
    seq: Option<Seq>,
    surroundings: &Surroundings,
    time: Duration,
) -> Vec<Spoken<'a>> {
    let end = Instant::now() + time.min(LONGEST);
    let errand = Errand { plan, seq, bus: None, surroundings, scratch: None, said: &[], end };
    errand.ask_everybody(event).await
}

/// The same for an event of the past, recorded at `home`: `surroundings` are those of then, and say where
/// programs are found; they run in `scratch`.
pub async fn rehearse<'a>(
    plan: &Plan<'a>,
    event: &Event,
    home: Home,
    surroundings: &Surroundings,
    scratch: &Scratch,
) -> Vec<Spoken<'a>> {
    Errand::of_then(plan, home, surroundings, scratch, &[]).ask_everybody(event).await
}

/// The same once more, for an event that plugins were asked about and said this: they would count it twice.
pub async fn rehearse_again<'a>(
    plan: &Plan<'a>,
    event: &Event,
    home: Home,
    surroundings: &Surroundings,
    scratch: &Scratch,
    said: &[Spoken<'a>],
) -> Vec<Spoken<'a>> {
    Errand::of_then(plan, home, surroundings, scratch, said).ask_everybody(event).await
}

/// Only tells plugins of an event of the past, so that they remember it.
pub async fn tell_plugins(
    plan: &Plan<'_>,
    event: &Event,
    home: Home,
    surroundings: &Surroundings,
    scratch: &Scratch,
) {
    // They come first, so that nobody else has changed what they hear.
    let hooks = plan.hooks.iter().copied().filter(|hook| hook.is_plugin()).collect();
    let plan = Plan { hooks, doubles: plan.doubles.clone(), guard: None, ..*plan };
    drop(Errand::of_then(&plan, home, surroundings, scratch, &[]).ask_everybody(event).await);
}

/// Polls all of them together and keeps their order.
pub(super) async fn join_in_order<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut ready = true;
        for (future, output) in &mut waiting {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => ready = false,
                }
            }
        }
        if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, output)| output).collect()
}

/// Where an event was recorded: on which bus, where that is not this one, and at which place.
type Home = (Option<BusId>, Seq);

pub(super) struct Errand<'a, 'p> {
    pub(super) plan: &'a Plan<'p>,
    seq: Option<Seq>,
    /// Whose event it is, in a rehearsal of several buses.
    pub(super) bus: Option<BusId>,
    pub(super) surroundings: &'a Surroundings,
    /// Where programs run, if not where the client stands.
    pub(super) scratch: Option<&'a Scratch>,
    /// What plugins said already.
    said: &'a [Spoken<'p>],
    pub(super) end: Instant,
}

impl<'a, 'p> Errand<'a, 'p> {
    fn of_then(
        plan: &'a Plan<'p>,
        (bus, seq): Home,
        surroundings: &'a Surroundings,
        scratch: &'a Scratch,
        said: &'a [Spoken<'p>],
    ) -> Self {
        let end = Instant::now() + scratch.time.min(LONGEST);
        let (seq, scratch) = (Some(seq), Some(scratch));
        Self { plan, seq, bus, surroundings, scratch, said, end }
    }

    async fn ask_everybody(&self, event: &Event) -> Vec<Spoken<'p>> {
        let plan = self.plan;
        if !plan.sequential {
            let answers = plan.hooks.iter().map(|hook| self.ask(hook, event));
            return join_in_order(answers).await.into_iter().flatten().collect();
        }
        let mut event = event.clone();
        let mut all = Vec::new();
        for hook in &plan.hooks {
            for spoken in self.ask(hook, &event).await {
                hand_on(&mut event, &spoken.record.verdict);
                all.push(spoken);
            }
        }
        all
    }

    /// One record per hook, or per plugin of a directory; none from whoever has no opinion.
    async fn ask<'h>(&self, hook: &'h Hook, event: &Event) -> Vec<Spoken<'h>> {
        let for_all = &self.plan.for_all(hook);
        let agreed = match self.agreed(hook).await {
            Ok(entry) => entry,
            Err(objection) => {
                let passes_by = objection.of_gateway && !host::can_gateway_hooks_answer(event);
                let record = self.turned_away(&heard_by_nobody(for_all, passes_by), objection);
                return vec![Spoken { hook: Some(hook), record }];
            }
        };
        let records = match &hook.action {
            Action::Python(_) if !self.said.is_empty() => self.said_by(hook),
            Action::Command(command) => vec![self.run(hook, command, event).await],
            Action::Python(_) => self.ask_plugins(for_all, agreed, event).await,
            Action::Rule(_)
            | Action::Webhook(_)
            | Action::Archive(_)
            | Action::Broken(_)
            | Action::Unread { .. } => {
                answer_inside(self.plan.whole(hook), hook, event).into_iter().collect()
            }
        };
        records.into_iter().map(|record| Spoken { hook: Some(hook), record }).collect()
    }

    /// The first of the entries that `hook` stands for to which somebody agreed; else the worst that is to be said
    /// against them.
    async fn agreed<'h>(&'h self, hook: &'h Hook) -> Result<&'h Hook, Objection> {
        let whole = self.plan.whole(hook);
        let mut worst: Option<Objection> = None;
        for entry in self.plan.entries(hook) {
            let limit = entry.timeout().min(self.end.saturating_duration_since(Instant::now()));
            let objection = whole.objection(entry, self.surroundings, limit).await;
            let Some(objection) = objection else { return Ok(entry) };
            let looked_into =
                objection.looked_into && worst.as_ref().is_none_or(|it| it.looked_into);
            let worse = worst.take().filter(|it| it.weight() >= objection.weight());
            worst = Some(Objection { looked_into, ..worse.unwrap_or(objection) });
        }
        worst.map_or(Ok(hook), Err)
    }

    /// Nobody has agreed to it, and what runs of it does not go on.
    pub(super) fn turned_away(&self, hook: &Hook, objection: Objection) -> VerdictRecord {
        if let (true, Action::Python(python)) = (objection.looked_into, &hook.action) {
            self.let_go(hook, python);
        }
        refused(hook, objection)
    }

    fn said_by(&self, hook: &Hook) -> Vec<VerdictRecord> {
        let own = |spoken: &&Spoken<'_>| spoken.hook.is_some_and(|own| std::ptr::eq(own, hook));
        self.said.iter().filter(own).map(|spoken| spoken.record.clone()).collect()
    }

    async fn run(&self, hook: &Hook, command: &Command, event: &Event) -> VerdictRecord {
        let started = Instant::now();
        let manner = hook.on.manner();
        let base = &self.plan.whole(hook).base;
        let written = match launch::words(command, manner, self.surroundings, base) {
            Ok(words) => words,
            Err(why) => return record(hook, Verdict::silent(), Some(why), started.elapsed()),
        };
        let words = launch::fill(written.clone(), command, Some(event));
        let script = script::hash(&words, self.surroundings);
        let limit = command.timeout.min(self.end.saturating_duration_since(started));
        let input = self.input(event);
        let latecomers = match manner {
            Manner::Hermes | Manner::Gemini => Latecomers::WaitedFor,
            Manner::Common => Latecomers::LeftBehind,
        };
        let (surroundings, scratch) = (self.surroundings, self.scratch);
        let words = match scratch {
            // Before a value of the event can look like a file.
            Some(_) => {
                let written = rehearsal::where_it_was(written, surroundings);
                launch::fill(written, command, Some(event))
            }
            None => words,
        };
        let program = Program { words: &words, env: &command.env, surroundings, scratch };
        let ran = command::run(&program, input, limit, latecomers).await;
        let (understood, exit) = match ran {
            Ok(ran) => {
                let said = Said { stdout: &ran.stdout, stderr: &ran.stderr, ending: ran.ending };
                let exit = match ran.ending {
                    Ending::Exit(code) => Some(code),
                    Ending::Signal(_) => None,
                };
                if let Some(missing) = missing_script(&ran, &program) {
                    let why = format!("`{}` does not exist; check the path", missing.display());
                    let record =
                        record(&strict(hook), Verdict::silent(), Some(why), started.elapsed());
                    return VerdictRecord { exit, script, ..record };
                }
                let mut understood = understand(manner, event.kind, &said);
                if ran.held_open && understood.verdict.is_silent() {
                    let why = "it ended without an answer, and a child holds its output open";
                    understood.failure.get_or_insert_with(|| why.to_owned());
                }
                (understood, exit)
            }
            Err(why) => (Understood { verdict: Verdict::silent(), failure: Some(why) }, None),
        };
        let record = record(hook, understood.verdict, understood.failure, started.elapsed());
        VerdictRecord { exit, script, ..record }
    }

    /// What a command reads.
    fn input(&self, event: &Event) -> Vec<u8> {
        let ours = json!({
            "id": event.id.to_string(),
            "seq": self.seq.map(Seq::as_i64),
            "time": event.at.to_string(),
            "kind": event.kind.as_str(),
            "agent": event.agent.as_str(),
            "tool_class": event.tool.as_ref().map(|tool| tool.class.as_str()),
        });
        with_ours(&event.raw, &ours)
    }
}

/// A payload, byte for byte, with our object put in before its last brace.
pub(super) fn with_ours(raw: &[u8], ours: &Value) -> Vec<u8> {
    let end = raw.iter().rposition(|byte| *byte == b'}').unwrap_or(raw.len());
    let head = &raw[..end];
    let comma = if head.trim_ascii_end().ends_with(b"{") { "" } else { "," };
    [head, format!("{comma}\"hookbus\":{ours}}}").as_bytes()].concat()
}

/// `hook`, which stops nobody at an event that it would not have been asked about.
fn heard_by_nobody(hook: &Hook, passes_by: bool) -> Cow<'_, Hook> {
    if passes_by {
        Cow::Owned(Hook { on_failure: Some(OnFailure::Allow), ..hook.clone() })
    } else {
        Cow::Borrowed(hook)
    }
}

/// The script that was to be run and is not there, where that is why nothing was: the interpreter says so.
fn missing_script(ran: &Ran, program: &Program<'_>) -> Option<PathBuf> {
    let Program { words, env, surroundings, .. } = program;
    let nothing_said = ran.ending == Ending::Exit(NO_SCRIPT) && ran.stdout.trim_ascii().is_empty();
    let missing = nothing_said.then(|| named::by(words, env, surroundings).missing.pop())??;
    let told = String::from_utf8_lossy(&ran.stderr);
    let name = missing.file_name().unwrap_or_default().to_string_lossy();
    let is_why = told.contains(&*name) && told.to_lowercase().contains("open");
    is_why.then_some(missing)
}

/// A guard that somebody has taken away blocks, unless it says otherwise.
fn strict(hook: &Hook) -> Hook {
    Hook { on_failure: hook.on_failure.or(Some(OnFailure::Block)), ..hook.clone() }
}

/// It has failed. One that was agreed to before it changed blocks, unless it says otherwise.
fn refused(hook: &Hook, Objection { agreement, why, .. }: Objection) -> VerdictRecord {
    let mut hook = if agreement == Agreement::Lapsed { strict(hook) } else { hook.clone() };
    if hook.of_project {
        // The model may hear of it, and must not hear what a stranger called it.
        hook.name = format!("line {} of the project's hooks", hook.line);
    }
    let record = record(&hook, Verdict::silent(), Some(why), Duration::ZERO);
    VerdictRecord { refused: true, ..record }
}

fn answer_inside(whole: &Hooks, hook: &Hook, event: &Event) -> Option<VerdictRecord> {
    let started = Instant::now();
    // What is decided in here has no files behind it: its words are all there is to agree to.
    if let Some(objection) = whole.unread(hook) {
        return Some(refused(hook, objection));
    }
    match &hook.action {
        Action::Rule(rule) => {
            let verdict = Rule::verdict(rule, event)?;
            Some(record(hook, verdict, None, started.elapsed()))
        }
        Action::Broken(why) => {
            Some(record(hook, Verdict::silent(), Some(why.clone()), started.elapsed()))
        }
        Action::Command(_)
        | Action::Python(_)
        | Action::Webhook(_)
        | Action::Archive(_)
        | Action::Unread { .. } => None,
    }
}

/// Applies the hook's failure policy: the one line where open or closed is decided.
pub(super) fn record(
    hook: &Hook,
    said: Verdict,
    failure: Option<String>,
    took: Duration,
) -> VerdictRecord {
    let policy = policy_of(hook);
    let verdict = match (&failure, policy) {
        (Some(why), OnFailure::Block) if said.ruling.is_none() && !said.stop => {
            Verdict::block(format!("hook `{}` failed: {why}", hook.name))
        }
        (Some(_) | None, OnFailure::Block | OnFailure::Allow) => said,
    };
    VerdictRecord {
        hook: hook.name.clone(),
        verdict,
        exit: None,
        took,
        failure,
        policy: policy.as_str(),
        script: None,
        heard: None,
        refused: false,
        of_project: hook.of_project,
        note: None,
    }
}

/// An event that nobody can read, and a hook that lets nothing unread pass.
fn refusal(guard: &str, event: &Event) -> VerdictRecord {
    let why = match &event.body {
        Body::Unreadable { why } => why.as_str(),
        Body::Read(_) => "",
    };
    VerdictRecord {
        hook: guard.to_owned(),
        verdict: Verdict::block(format!(
            "hookbus cannot read this event ({why}), and `{guard}` lets nothing pass unread"
        )),
        exit: None,
        took: Duration::ZERO,
        failure: Some(format!("the payload cannot be read: {why}")),
        policy: OnFailure::Block.as_str(),
        script: None,
        heard: None,
        refused: false,
        of_project: false,
        note: None,
    }
}

/// What the next hook in line sees, as Gemini chains them: the input changed, the prompt extended,
/// the request overlaid.
fn hand_on(event: &mut Event, verdict: &Verdict) {
    let Body::Read(fields) = &mut event.body else { return };
    if let (Some(rewrite), Some(Value::Object(input))) =
        (&verdict.rewrite, fields.get_mut("tool_input"))
    {
        let changed = rewrite.apply(input);
        input.extend(changed);
    } else if let (Some(context), Some(Value::String(prompt)), Kind::TurnStart) =
        (&verdict.context, fields.get_mut("prompt"), event.kind)
    {
        prompt.push_str("\n\n");
        prompt.push_str(context);
    } else if let (Some(Value::Object(changes)), Some(Value::Object(request))) =
        (verdict.own.get("llm_request"), fields.get_mut("llm_request"))
    {
        request.extend(changes.clone());
    } else {
        return;
    }
    event.raw = Value::Object(fields.clone()).to_string().into_bytes();
}
