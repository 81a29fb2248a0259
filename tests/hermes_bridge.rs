//! The real Hermes, connected by `hookbus connect hermes`: every hook call is an event, and the answers of the bus take
//! effect where the model or the user sees them.

use hookbus_tests::agents::{Act, Hermes, Run, Step};
use hookbus_tests::home::Home;
use hookbus_tests::wiring::{Agent, Recorder, decisions_on, recorded_events};
use serde_json::json;

/// A Hermes that makes `made.txt` with the shell, connected by the bridge, without a daemon.
fn hermes(home: &Home) -> Run {
    Hermes::working("bridge").connected(home, "off").go()
}

fn names(home: &Home) -> Vec<String> {
    recorded_events(home, "hermes").iter().map(|recorded| recorded.name().to_owned()).collect()
}

/// The last tool result that the model got.
fn tool_result(run: &Run) -> String {
    format!("{:?}", run.outcome().requests[1].conversation.last())
}

#[test]
fn every_hook_call_of_a_turn_arrives_once_in_order_and_with_the_payload_of_a_shell_hook() {
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
    for (recorded, payload) in recorded_events(&home, "hermes").iter().zip(recorder.seen()) {
        let (ours, theirs) = (recorded.payload(&home), payload);
        assert_eq!(ours, theirs, "{}", recorded.name());
        assert_eq!(recorded.event["context"]["wire"], "bridge");
    }
}

#[test]
fn the_model_gets_the_reason_of_a_block() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ name: no, tool: shell, rule: { when: { command: made }, block: files need a person } }] }",
    );
    let run = hermes(&home);
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None));
    assert!(tool_result(&run).contains("files need a person"), "{}", tool_result(&run));
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
    assert!(tool_result(&run).contains("another word"));
    let decisions = decisions_on(&home, "hermes", "pre_tool_call");
    assert_eq!((decisions.len(), &decisions[0]["outcome"]), (1, &json!("rewrite")));
    let after = recorded_events(&home, "hermes");
    let after = after.iter().find(|recorded| recorded.name() == "post_tool_call").expect("it ran");
    assert!(after.event["payload"]["tool_input"]["command"].to_string().contains("other.txt"));
}

#[test]
fn input_that_another_plugin_replaces_is_decided_on_as_it_will_run() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ tool: shell, rule: { when: { command: sneaky }, block: seen } }] }",
    );
    let sneaky = "def register(ctx):\n    ctx.register_middleware('tool_request', lambda **k: {'args': {'command': 'echo sneaky > sneaky.txt'}})\n";
    let run = Hermes::working("two plugins")
        .plugin("zz-last", &[("plugin.yaml", "name: zz-last\n"), ("__init__.py", sneaky)])
        .connected(&home, "off")
        .go();
    assert_eq!((run.exit, run.file("sneaky.txt")), (Some(0), None));
    assert!(tool_result(&run).contains("seen"), "{}", tool_result(&run));
    let outcomes: Vec<_> = recorded_events(&home, "hermes")
        .iter()
        .filter(|recorded| recorded.name() == "pre_tool_call")
        .map(|recorded| recorded.decision.as_ref().map(|row| row["payload"]["outcome"].clone()))
        .collect();
    assert_eq!(
        outcomes,
        [None, Some(json!("block"))],
        "first the requested input, then the input that would have run"
    );
}

#[test]
fn input_that_another_plugin_changes_in_place_is_decided_on_as_it_will_run() {
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
    assert!(tool_result(&run).contains("seen"), "{}", tool_result(&run));
}

const ASK: &str = "hooks: { tool.before: [{ tool: shell, rule: { ask: is that wise } }] }";

#[test]
fn ask_blocks_if_the_user_cannot_be_asked() {
    let home = Home::with_hooks(ASK);
    let run = Hermes::working("no user").connected(&home, "off").one_shot().go();
    assert_eq!((run.exit, run.file("made.txt")), (Some(0), None));
    let result = tool_result(&run);
    assert!(result.contains("is that wise ("), "{result}");
    // `hermes -z` would have approved its own question.
    assert_eq!(decisions_on(&home, "hermes", "pre_tool_call")[0]["outcome"], "block");
}

#[test]
fn a_user_who_is_asked_can_say_yes() {
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
fn context_and_all_three_transforms_take_effect() {
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
    assert!(tool_result(&run).contains("made by elves"), "{}", tool_result(&run));
    assert!(run.stdout.contains("dOnE"), "{}", run.stdout);

    let home = Home::new();
    let redact = home.script("redact.py", "#!/usr/bin/python3\nimport json, sys\n\
        event = json.load(sys.stdin)\nprint(json.dumps(event['extra']['result'].replace('made', '[removed]')))\n");
    home.write_hooks(&format!("hooks: {{ transform_tool_result: [{{ command: {redact} }}] }}"));
    let run = hermes(&home);
    assert!(tool_result(&run).contains("it is [removed]"), "{}", tool_result(&run));
}

#[test]
fn a_block_of_pre_verify_makes_the_agent_continue() {
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
fn a_daemon_answers_the_same_and_is_started_by_the_first_event() {
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
fn one_shot_mode_errors_and_subagents_use_the_bridge_too() {
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

/// Calls hooks of the real Hermes in several threads, and in a child process that is forked while they run.
const MANY_AT_ONCE: &str = "
import os, threading
from hermes_cli.plugins import discover_plugins, invoke_hook
discover_plugins()
def fire(who):
    for n in range(20):
        answer = invoke_hook('pre_llm_call', session_id='s', user_message='%s-%d' % (who, n))
        assert answer == [{'context': 'hello'}], answer
threads = [threading.Thread(target=fire, args=('thread-%d' % n,)) for n in range(6)]
[thread.start() for thread in threads]
child = os.fork()
if child == 0:
    fire('child')
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
[thread.join() for thread in threads]
print('all answered')
";

#[test]
fn threads_and_forks_get_their_own_answers() {
    for mode in ["off", "running"] {
        let home = Home::with_daemon(mode);
        home.write_hooks("hooks: { turn.start: [{ rule: { context: hello } }] }");
        let daemon = (mode == "running").then(|| home.serve());
        let run = Hermes::new("many").connected(&home, mode).run_python(MANY_AT_ONCE);
        assert!(run.stdout.contains("all answered"), "{mode}: {} {}", run.stdout, run.stderr);
        let mut messages: Vec<String> = recorded_events(&home, "hermes")
            .iter()
            .map(|recorded| recorded.event["payload"]["extra"]["user_message"].to_string())
            .collect();
        messages.sort();
        messages.dedup();
        assert_eq!(messages.len(), 7 * 20, "each event once");
        drop(daemon);
    }
}

/// Values that JSON cannot encode: lone surrogates, odd keys, cycles, objects whose `__str__` raises.
const ODD_VALUES: &str = "
from hermes_cli.plugins import discover_plugins, invoke_hook
discover_plugins()
class Raises:
    def __str__(self):
        raise RuntimeError('no')
    __repr__ = __str__
cycle = {}
cycle['self'] = cycle
wide = []
wide.extend([wide] * 10)
doubled = []
for n in range(40):
    doubled = [doubled, doubled]
many = [wide, doubled, 10 ** 5000, 'x' * (150 << 20), {10 ** 5000: 1}]
for odd in ['\\ud800', {(1, 2): 3}, cycle, Raises(), float('nan'), b'bytes', {1, 2}] + many:
    answer = invoke_hook('pre_tool_call', tool_name='terminal', args={'command': 'made', 'odd': odd}, session_id='s')
    assert answer == [{'action': 'block', 'message': 'no (hookbus rule tool.before#1)'}], (type(odd), answer)
print('all blocked')
";

#[test]
fn values_that_cannot_be_encoded_do_not_bypass_a_policy() {
    let home = Home::with_hooks(
        "hooks: { tool.before: [{ tool: shell, rule: { when: { command: made }, block: no } }] }",
    );
    let run = Hermes::new("odd").connected(&home, "off").run_python(ODD_VALUES);
    assert!(run.stdout.contains("all blocked"), "{} {}", run.stdout, run.stderr);
}

/// Tool calls that the bridge has to cut, with `git push --force` somewhere, and calls that it need not cut.
const TOO_LARGE: &str = "
from hermes_cli.plugins import discover_plugins, invoke_hook
discover_plugins()
class Raises(dict):
    def items(self):
        raise RuntimeError('no')
    keys = values = __iter__ = items
def message(args, **more):
    answers = invoke_hook('pre_tool_call', tool_name='terminal', args=args, session_id='s', **more)
    return ''.join(answer['message'] for answer in answers)
push, half = 'git push --force x', 'x' * (20 << 20)
pad = [0] * 600000
many = {str(n): 0 for n in range(600000)}
seen = {
    'after a list': message({'pad': pad, 'command': push}),
    'after many lists': message({**{'p%d' % n: pad for n in range(30)}, 'command': push}),
    'after many keys': message({**many, 'command': push}),
    'in the middle': message({'command': half + '; ' + push + ' ;' + half}, copy=half + half),
    'in a list': message({'command': ['x'] * 600000 + [push]}),
    'unreadable': message(Raises(command=push)),
    'no dict': message([push]),
    'harmless': message({'pad': pad, 'command': 'ls'}),
    'large': message({'pad': [0] * 100000, 'command': 'ls'}),
    'large push': message({'pad': [0] * 100000, 'command': push}),
}
for name, text in seen.items():
    print(name, '=', text)
";

#[test]
fn a_command_does_not_pass_a_rule_because_the_bridge_cuts_its_event() {
    let home = Home::with_hooks(
        "hooks:
           tool.before:
             - { tool: shell, rule: { when: { command: 'git push --force' }, block: guarded } }
             - { rule: { when: { args: 'git push --force' }, block: guarded } }",
    );
    let run = Hermes::new("large").connected(&home, "off").run_python(TOO_LARGE);
    let seen: Vec<(&str, &str)> =
        run.stdout.lines().filter_map(|line| line.split_once(" =")).collect();
    assert_eq!(seen.len(), 10, "{} {}", run.stdout, run.stderr);
    for (name, message) in seen {
        let is_right = match name {
            "harmless" | "large" => message.trim().is_empty(),
            "after a list" | "after many lists" | "no dict" | "large push" => {
                message.contains("guarded")
            }
            _ => message.contains("too deep, to be searched completely"),
        };
        assert!(is_right, "{name}: {message}");
    }
    let places: Vec<_> = recorded_events(&home, "hermes")
        .iter()
        .map(|recorded| recorded.event["payload"]["hookbus_incomplete"].clone())
        .collect();
    assert_eq!(places[0], json!(["tool_input.pad"]));
    assert_eq!(places[2], json!(["tool_input"]));
    assert_eq!(places[3], json!(["tool_input.command", "extra.copy"]));
    assert_eq!((&places[5], &places[8]), (&json!([""]), &json!(null)));
}

/// A process on the daemon's socket that sends invalid answers.
const INVALID_ANSWERS: &str = "
import os, socket, struct, threading
os.makedirs(os.environ['BUS_HOME'], exist_ok=True)
other = socket.socket(socket.AF_UNIX)
other.bind(os.path.join(os.environ['BUS_HOME'], 'bus.sock'))
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
for sent in answers:
    client.STATE.avoid_until = 0.0
    answer = invoke_hook('pre_tool_call', tool_name='terminal', args={'command': 'x'}, session_id='s')
    assert answer == [{'action': 'block', 'message': 'no (hookbus rule tool.before#1)'}], (sent, answer)
print('all blocked')
";

#[test]
fn an_invalid_answer_does_not_allow_anything() {
    let home = Home::with_daemon("running");
    home.write_hooks("hooks: { tool.before: [{ rule: { block: no } }] }");
    let run = Hermes::new("other").connected(&home, "running").run_python(INVALID_ANSWERS);
    assert!(run.stdout.contains("all blocked"), "{} {}", run.stdout, run.stderr);
}

/// A daemon that accepts connections and never answers; with `ACKNOWLEDGES` it confirms that it has received the event.
const HANGING_DAEMON: &str = "
import os, socket, sys, threading
os.makedirs(os.environ['BUS_HOME'], exist_ok=True)
daemon = socket.socket(socket.AF_UNIX)
daemon.bind(os.path.join(os.environ['BUS_HOME'], 'bus.sock'))
daemon.listen(50)
called = []
def take(acknowledges):
    one, _ = daemon.accept()
    called.append(one)
    if acknowledges:
        one.recv(1 << 20)
        one.sendall(b'!')
def take_all():
    while True:
        take(True)
if ACKNOWLEDGES:
    threading.Thread(target=take_all, daemon=True).start()
from hermes_cli.plugins import discover_plugins, invoke_hook
discover_plugins()
client = next(module for name, module in sys.modules.items() if name.endswith('hookbus.client'))
client.FALLBACK_RESERVE, client.AVOID_FOR = 5.0, 600.0  # enough for a slow machine
for n in range(5):
    answer = invoke_hook('pre_llm_call', session_id='s', user_message='hello')
    assert answer == [{'context': 'hello'}], answer
if not ACKNOWLEDGES:
    daemon.setblocking(False)
    try:
        while True:
            take(False)
    except BlockingIOError:
        pass  # all connections are counted
assert len(called) == 1, called
print('once')
";

#[test]
fn a_hanging_daemon_is_waited_for_once() {
    for acknowledges in ["False", "True"] {
        let home = Home::with_daemon("running");
        home.write_hooks("hooks: { turn.start: [{ rule: { context: hello } }] }");
        let code = HANGING_DAEMON.replace("ACKNOWLEDGES", acknowledges);
        let run = Hermes::new("hanging")
            .connected_with(&home, "running", &["--deadline", "20"])
            .run_python(&code);
        assert!(run.stdout.contains("once"), "{acknowledges}: {} {}", run.stdout, run.stderr);
        std::fs::remove_file(home.path().join("bus.sock"))
            .expect("the socket of the hanging daemon");
        assert_eq!(names(&home).len(), 5, "each event is in the log, once");
    }
}

#[test]
fn without_daemon_allow_allows_events() {
    let home = Home::with_hooks("hooks: { tool.before: [{ rule: { block: no } }] }");
    let run =
        Hermes::working("allow").connected_with(&home, "off", &["--without-daemon", "allow"]).go();
    assert_eq!((run.exit, run.file("made.txt").as_deref()), (Some(0), Some("made\n")));
    assert!(!home.path().join("log.db").exists(), "nothing was recorded");
}

#[test]
fn approvals_of_hermes_arrive_with_their_session() {
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
    let all = recorded_events(&home, "hermes");
    for name in ["pre_approval_request", "post_approval_response"] {
        let asked = all.iter().find(|recorded| recorded.name() == name).expect("it fired");
        assert_eq!(asked.event["payload"]["session_id"], "");
        assert_eq!(asked.event["session"], all[0].event["session"], "{name}");
    }
}

#[test]
fn a_session_over_the_bridge_with_plugins_replays_unchanged() {
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
