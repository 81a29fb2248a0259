//! Real Hermes, wired by `hookbus connect hermes`: every hook of its is an event, and what the bus answers
//! takes effect where the model or the person can see it.

use hookbus_tests::agents::{Act, Hermes, Run, Step};
use hookbus_tests::home::Home;
use hookbus_tests::wiring::{Agent, Recorder, decisions_on, firings};
use serde_json::json;

/// Makes `made.txt` with the shell, over the bridge, without a daemon.
fn hermes(home: &Home) -> Run {
    Hermes::working("bridge").connected(home, "off").go()
}

fn names(home: &Home) -> Vec<String> {
    firings(home, "hermes").iter().map(|firing| firing.name().to_owned()).collect()
}

/// What the model was told last by the tool.
fn result_of_the_tool(run: &Run) -> String {
    format!("{:?}", run.outcome().requests[1].said.last())
}

#[test]
fn every_hook_of_a_turn_arrives_once_in_order_and_as_a_shell_hook_would_get_it() {
    let home = Home::new();
    let recorder = Recorder::beside(&home);
    let run = Hermes::working("watched").connected(&home, "off").watched_by(&recorder).go();
    assert_eq!(
        (run.exit, run.file("made.txt").as_deref()),
        (Some(0), Some("made\n")),
        "{}",
        run.stderr
    );
    assert_eq!(names(&home), recorder.names());
    for (firing, payload) in firings(&home, "hermes").iter().zip(recorder.seen()) {
        let (ours, theirs) = (firing.payload(&home), payload);
        assert_eq!(ours, theirs, "{}", firing.name());
        assert_eq!(firing.event["context"]["wire"], "bridge");
    }
}

#[test]
fn a_block_over_the_bridge_is_what_the_model_hears() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ name: no, tool: shell, rule: { when: { command: made }, block: files need a person } }] }",
    );
    let run = hermes(&home);
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None));
    assert!(
        result_of_the_tool(&run).contains("files need a person"),
        "{}",
        result_of_the_tool(&run)
    );
    let decisions = decisions_on(&home, "hermes", "pre_tool_call");
    assert_eq!((decisions.len(), &decisions[0]["outcome"]), (1, &json!("block")));
}

#[test]
fn the_input_of_a_tool_can_be_changed_and_the_call_is_recorded_once() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ tool: shell, rule: { rewrite: { command: 'echo other > other.txt; echo another word' } } }] }",
    );
    let run = hermes(&home);
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None));
    assert_eq!(run.file("other.txt").as_deref(), Some("other\n"));
    assert!(result_of_the_tool(&run).contains("another word"));
    let decisions = decisions_on(&home, "hermes", "pre_tool_call");
    assert_eq!((decisions.len(), &decisions[0]["outcome"]), (1, &json!("rewrite")));
    let after = firings(&home, "hermes");
    let after = after.iter().find(|firing| firing.name() == "post_tool_call").expect("it ran");
    assert!(after.event["payload"]["tool_input"]["command"].to_string().contains("other.txt"));
}

#[test]
fn input_that_another_plugin_changes_afterwards_is_judged_as_it_will_run() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ tool: shell, rule: { when: { command: sneaky }, block: seen } }] }",
    );
    let sneaky = "def register(ctx):\n    ctx.register_middleware('tool_request', lambda **k: {'args': {'command': 'echo sneaky > sneaky.txt'}})\n";
    let run = Hermes::working("two plugins")
        .plugin("zz-last", &[("plugin.yaml", "name: zz-last\n"), ("__init__.py", sneaky)])
        .connected(&home, "off")
        .go();
    assert_eq!((run.exit, run.file("sneaky.txt")), (Some(0), None));
    assert!(result_of_the_tool(&run).contains("seen"), "{}", result_of_the_tool(&run));
    let outcomes: Vec<_> = firings(&home, "hermes")
        .iter()
        .filter(|firing| firing.name() == "pre_tool_call")
        .map(|firing| firing.decision.as_ref().map(|row| row["payload"]["outcome"].clone()))
        .collect();
    assert_eq!(outcomes, [None, Some(json!("block"))], "what was asked for, what would have run");
}

#[test]
fn input_that_another_plugin_changes_in_place_is_judged_as_it_will_run() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ tool: shell, rule: { when: { command: sneaky }, block: seen } }] }",
    );
    let sneaky = "def change(args, **k):\n    args['command'] = 'echo sneaky > sneaky.txt'\n\
        def register(ctx):\n    ctx.register_middleware('tool_request', change)\n";
    let run = Hermes::working("in place")
        .plugin("zz-last", &[("plugin.yaml", "name: zz-last\n"), ("__init__.py", sneaky)])
        .connected(&home, "off")
        .go();
    assert_eq!((run.exit, run.file("sneaky.txt")), (Some(0), None));
    assert!(result_of_the_tool(&run).contains("seen"), "{}", result_of_the_tool(&run));
}

const ASK: &str = "hooks: { tool.before: [{ tool: shell, rule: { ask: is that wise } }] }";

#[test]
fn where_nobody_can_be_asked_a_question_is_a_no() {
    let home = Home::with_hooks(ASK);
    let run = Hermes::working("nobody there").connected(&home, "off").one_shot().go();
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None));
    let told = result_of_the_tool(&run);
    assert!(told.contains("is that wise (nobody can be asked here"), "{told}");
    // `hermes -z` would have said yes to its own question.
    assert_eq!(decisions_on(&home, "hermes", "pre_tool_call")[0]["outcome"], "block");
}

#[test]
fn a_person_who_is_asked_can_say_yes() {
    let home = Home::with_hooks(ASK);
    let acts = [
        Act::See("❯"),
        Act::Type("Make a file."),
        Act::Enter,
        Act::See("is that wise"),
        Act::Enter,
        Act::See("Done."),
        Act::Type("/exit"),
        Act::Enter,
    ];
    let run = Hermes::working("asked").connected(&home, "off").run_at_a_terminal(&acts);
    assert_eq!(run.file("made.txt").as_deref(), Some("made\n"), "{}", run.stdout);
    assert_eq!(decisions_on(&home, "hermes", "pre_tool_call")[0]["outcome"], "ask");
}

#[test]
fn context_and_all_three_transforms_reach_their_readers() {
    let home = Home::with_hooks(
        "hooks:
  turn.start: [{ rule: { context: the moon is green } }]
  transform_terminal_output: [{ rule: { when: { text: it is made }, rewrite: { text: made by elves } } }]
  transform_llm_output: [{ rule: { when: { text: '^Done' }, rewrite: { text: dOnE } } }]
",
    );
    let run = hermes(&home);
    assert_eq!(run.file("made.txt").as_deref(), Some("made\n"));
    assert!(run.requests[0].to_string().contains("the moon is green"));
    assert!(result_of_the_tool(&run).contains("made by elves"), "{}", result_of_the_tool(&run));
    assert!(run.stdout.contains("dOnE"), "{}", run.stdout);

    let home = Home::new();
    let redact = home.script("redact.py", "#!/usr/bin/python3\nimport json, sys\n\
        event = json.load(sys.stdin)\nprint(json.dumps(event['extra']['result'].replace('made', '[removed]')))\n");
    home.write_hooks(&format!("hooks: {{ transform_tool_result: [{{ command: {redact} }}] }}"));
    let run = hermes(&home);
    assert!(result_of_the_tool(&run).contains("it is [removed]"), "{}", result_of_the_tool(&run));
}

#[test]
fn an_agent_that_wants_to_finish_is_sent_on() {
    let home = Home::with_hooks(
        "hooks: { pre_verify: [{ rule: { when: { attempt: '^0$' }, block: run the tests } }] }",
    );
    let edit = json!({"path": "edited.txt", "content": "edited\n"});
    let script =
        vec![Step::tool("write_file", edit), Step::text("Done."), Step::text("The tests pass.")];
    let run = Hermes::working("verify").playing(script).connected(&home, "off").go();
    assert_eq!((run.exit, run.steps_left), (Some(0), 0));
    assert!(run.requests.last().expect("a request").to_string().contains("run the tests"));
    assert!(run.stdout.contains("The tests pass."), "{}", run.stdout);
}

#[test]
fn a_daemon_answers_the_same_and_one_is_started_by_the_first_event() {
    let policy = "hooks: { tool.before: [{ tool: shell, rule: { when: { command: made }, block: not today } }] }";
    let alone = Home::with_hooks(policy);
    let without = hermes(&alone);
    let home = Home::with_daemon("auto");
    home.write_hooks(policy);
    let run = Hermes::working("with a daemon").connected(&home, "auto").go();
    assert_eq!(run.outcome(), without.outcome());
    assert_eq!(names(&home), names(&alone));
    assert!(home.has_daemon() && home.is_sound());
    // The first event started it; the others went over the socket.
    let calls = home.json(&["status", "--json"])["daemon"]["calls"].as_u64();
    assert!(calls.is_some_and(|calls| calls > 5), "{calls:?}");
}

#[test]
fn one_shot_mode_errors_and_sub_agents_go_over_the_bridge_too() {
    let home = Home::new();
    let delegate = json!({"goal": "say hi", "context": "none"});
    let script = vec![
        Step::error(500, "not now"),
        Step::tool("delegate_task", delegate),
        Step::text("hi"),
        Step::text("Done."),
    ];
    let run = Hermes::working("one shot").playing(script).one_shot().connected(&home, "off").go();
    assert_eq!(run.exit, Some(0), "{}", run.stderr);
    let names = names(&home);
    for name in ["api_request_error", "subagent_start", "subagent_stop", "on_session_end"] {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
    }
}

/// Fires hooks of the real Hermes from many threads, and from a child that was forked meanwhile.
const MANY_AT_ONCE: &str = "
import os, threading
from hermes_cli.plugins import discover_plugins, invoke_hook
discover_plugins()
def fire(who):
    for n in range(20):
        said = invoke_hook('pre_llm_call', session_id='s', user_message='%s-%d' % (who, n))
        assert said == [{'context': 'hello'}], said
threads = [threading.Thread(target=fire, args=('thread-%d' % n,)) for n in range(6)]
[thread.start() for thread in threads]
child = os.fork()
if child == 0:
    fire('child')
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
[thread.join() for thread in threads]
print('all heard')
";

#[test]
fn threads_and_forks_get_their_own_answers() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        home.write_hooks("hooks: { turn.start: [{ rule: { context: hello } }] }");
        let daemon = (mode == "running").then(|| home.serve());
        let run = Hermes::new("many").connected(&home, mode).run_python(MANY_AT_ONCE);
        assert!(run.stdout.contains("all heard"), "{mode}: {} {}", run.stdout, run.stderr);
        let mut said: Vec<String> = firings(&home, "hermes")
            .iter()
            .map(|firing| firing.event["payload"]["extra"]["user_message"].to_string())
            .collect();
        said.sort();
        said.dedup();
        assert_eq!(said.len(), 7 * 20, "each event once");
        drop(daemon);
    }
}

/// What no JSON writer takes: half a character, odd keys, circles, objects that cannot be shown.
const ODD_VALUES: &str = "
from hermes_cli.plugins import discover_plugins, invoke_hook
discover_plugins()
class Rude:
    def __str__(self):
        raise RuntimeError('no')
    __repr__ = __str__
circle = {}
circle['self'] = circle
wide = []
wide.extend([wide] * 10)
doubled = []
for n in range(40):
    doubled = [doubled, doubled]
many = [wide, doubled, 10 ** 5000, 'x' * (150 << 20), {10 ** 5000: 1}]
for odd in ['\\ud800', {(1, 2): 3}, circle, Rude(), float('nan'), b'bytes', {1, 2}] + many:
    said = invoke_hook('pre_tool_call', tool_name='terminal', args={'command': 'made', 'odd': odd}, session_id='s')
    assert said == [{'action': 'block', 'message': 'no'}], (type(odd), said)
print('all blocked')
";

#[test]
fn odd_values_do_not_slip_past_a_policy() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ tool: shell, rule: { when: { command: made }, block: no } }] }",
    );
    let run = Hermes::new("odd").connected(&home, "off").run_python(ODD_VALUES);
    assert!(run.stdout.contains("all blocked"), "{} {}", run.stdout, run.stderr);
}

/// Somebody on the daemon's socket who answers with anything but an answer.
const NO_DAEMON_OF_OURS: &str = "
import os, socket, struct, threading
os.makedirs(os.environ['HOOKBUS_HOME'], exist_ok=True)
other = socket.socket(socket.AF_UNIX)
other.bind(os.path.join(os.environ['HOOKBUS_HOME'], 'bus.sock'))
other.listen(50)
part = lambda *parts: b''.join(struct.pack('>Q', len(one)) + one for one in parts)
framed = lambda body: struct.pack('>Q', len(body)) + body
answers = [framed(b''), framed(b'xyz'), struct.pack('>Q', 1 << 60), framed(bytes([2]) + part(b'answer')),
           framed(bytes([2]) + part(b'answer', b'{no json')), framed(bytes([2]) + struct.pack('>Q', 1 << 40) + b'answer')]
def take():
    for answer in answers:
        one, _ = other.accept()
        one.recv(1 << 20)
        one.sendall(b'!' + answer)
threading.Thread(target=take, daemon=True).start()
from hermes_cli.plugins import discover_plugins, invoke_hook
discover_plugins()
import sys
client = next(module for name, module in sys.modules.items() if name.endswith('hookbus.client'))
for answer in answers:
    client.STATE.avoid_until = 0.0
    said = invoke_hook('pre_tool_call', tool_name='terminal', args={'command': 'x'}, session_id='s')
    assert said == [{'action': 'block', 'message': 'no'}], (answer, said)
print('all blocked')
";

#[test]
fn an_answer_that_cannot_be_read_is_no_permission() {
    let home = Home::with_daemon("running");
    home.write_hooks("hooks: { tool.before: [{ rule: { block: no } }] }");
    let run = Hermes::new("other").connected(&home, "running").run_python(NO_DAEMON_OF_OURS);
    assert!(run.stdout.contains("all blocked"), "{} {}", run.stdout, run.stderr);
}

/// A daemon that takes calls and never answers.
const DEAF: &str = "
import os, socket, sys, threading
os.makedirs(os.environ['HOOKBUS_HOME'], exist_ok=True)
deaf = socket.socket(socket.AF_UNIX)
deaf.bind(os.path.join(os.environ['HOOKBUS_HOME'], 'bus.sock'))
deaf.listen(50)
called = []
def take(on_it):
    one, _ = deaf.accept()
    called.append(one)
    if on_it:
        one.recv(1 << 20)
        one.sendall(b'!')
def take_all():
    while True:
        take(True)
if ON_IT:
    threading.Thread(target=take_all, daemon=True).start()
from hermes_cli.plugins import discover_plugins, invoke_hook
discover_plugins()
client = next(module for name, module in sys.modules.items() if name.endswith('hookbus.client'))
client.LAST_MOMENT, client.AVOID_FOR = 5.0, 600.0  # as long as a slow machine needs
for n in range(5):
    said = invoke_hook('pre_llm_call', session_id='s', user_message='hello')
    assert said == [{'context': 'hello'}], said
if not ON_IT:
    deaf.setblocking(False)
    try:
        while True:
            take(False)
    except BlockingIOError:
        pass  # all who called were counted
assert len(called) == 1, called
print('once')
";

#[test]
fn a_daemon_that_hangs_is_waited_for_once() {
    for on_it in ["False", "True"] {
        let home = Home::with_daemon("running");
        home.write_hooks("hooks: { turn.start: [{ rule: { context: hello } }] }");
        let code = DEAF.replace("ON_IT", on_it);
        let run = Hermes::new("deaf")
            .connected_with(&home, "running", &["--deadline", "20"])
            .run_python(&code);
        assert!(run.stdout.contains("once"), "{on_it}: {} {}", run.stdout, run.stderr);
        std::fs::remove_file(home.path().join("bus.sock")).expect("the deaf one's socket");
        assert_eq!(names(&home).len(), 5, "each event is in the log, once");
    }
}

#[test]
fn allowing_without_a_daemon_is_a_choice() {
    let home = Home::with_hooks("hooks: { tool.before: [{ rule: { block: no } }] }");
    let run =
        Hermes::working("allow").connected_with(&home, "off", &["--without-daemon", "allow"]).go();
    assert_eq!((run.exit, run.file("made.txt").as_deref()), (Some(0), Some("made\n")));
    assert!(!home.path().join("log.db").exists(), "nothing was handed in");
}

#[test]
fn hermes_own_approvals_arrive_and_belong_to_their_session() {
    let home = Home::new();
    let danger = json!({"command": "rm -rf ./victim"});
    let script = vec![Step::tool("terminal", danger), Step::text("Done.")];
    let run = Hermes::working("approvals")
        .playing(script)
        .file("victim/file.txt", "alive")
        .setting("approvals", json!({"mode": "manual", "timeout": 1}))
        .connected(&home, "off")
        .go();
    assert_eq!(run.file("victim/file.txt").as_deref(), Some("alive"), "{}", run.stdout);
    let all = firings(&home, "hermes");
    for name in ["pre_approval_request", "post_approval_response"] {
        let asked = all.iter().find(|firing| firing.name() == name).expect("it fired");
        assert_eq!(asked.event["payload"]["session_id"], "");
        assert_eq!(asked.event["session"], all[0].event["session"], "{name}");
    }
}

#[test]
fn a_session_that_went_over_the_bridge_and_through_plugins_replays_unchanged() {
    let home = Home::new();
    let folder = hookbus_tests::agents::hermes_plugins().join("security-guidance");
    home.write_hooks(&format!(
        "hooks:
  '*': [{{ python: {} }}]
  turn.start: [{{ rule: {{ context: the moon is green }} }}]
  transform_llm_output: [{{ rule: {{ rewrite: {{ text: dOnE }} }} }}]
  tool.before: [{{ tool: file.write, rule: {{ rewrite: {{ path: other.py }} }} }}]
",
        folder.display()
    ));
    let write =
        json!({"path": "made.py", "content": "import pickle\npickle.load(open('x', 'rb'))\n"});
    let script = vec![Step::tool("write_file", write), Step::text("Done.")];
    let run = Hermes::working("recorded").playing(script).connected(&home, "off").go();
    assert!(run.stdout.contains("dOnE") && run.file("other.py").is_some(), "{}", run.stdout);
    let report = home.json(&["replay", "--all", "--as-recorded", "--yes", "--json"]);
    let summary = &report["summary"];
    assert!(summary["events"].as_u64().is_some_and(|events| events > 10), "{summary}");
    assert_eq!(summary["unchanged"], summary["events"], "{report:#}");
}
