//! Hermes plugin and gateway hook directories, unmodified, as hooks of the bus: discovery, loading, calls, return values,
//! and isolation from failures.

use std::fs;
use std::path::Path;

use hookbus_tests::consent::blocking_script;
use hookbus_tests::home::{Home, feed, path_text, wait_until};
use hookbus_tests::plugins::{call, gateway_hook, plugin, tool, write};
use serde_json::{Value, json};

/// Writes a hooks file with one plugin and this setting.
fn write_plugin_entry(home: &Home, folder: &Path, setting: &str) {
    home.write_hooks(&format!("hooks:\n  '*':\n    - python: {}\n{setting}", path_text(folder)));
}

/// The answer to an event over the bridge.
fn bridge_answer(home: &Home, payload: &Value) -> Value {
    let hook = home.command(["hook", "hermes", "--wire", "bridge"]);
    let output = feed(hook, payload.to_string().as_bytes());
    assert_eq!((output.exit, output.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&output.stdout).unwrap_or(Value::Null)
}

/// The code of a plugin that adds this context to each turn.
fn adds_context(text: &str) -> String {
    format!("def register(ctx):\n    ctx.register_hook('pre_llm_call', lambda **k: '{text}')\n")
}

/// Everything that a hook can return, by event.
const EVERYTHING: &str = "
print('noise on stdout')
import os
os.system('echo more noise')
def before(tool_name, args, session_id, task_id='', **kwargs):
    if 'rm' in args.get('command', ''):
        return {'action': 'block', 'message': 'no %s for %s' % (tool_name, session_id)}
    if 'sudo' in args.get('command', ''):
        return {'action': 'approve', 'message': 'as root?', 'rule_key': 'sudo'}
def register(ctx):
    ctx.register_hook('pre_tool_call', before)
    ctx.register_hook('pre_llm_call', lambda **k: 'plain text')
    ctx.register_hook('pre_llm_call', lambda **k: {'context': 'and a dict'})
    ctx.register_hook('transform_tool_result', lambda result, arguments, **k: result.replace('secret', arguments['path']))
    ctx.register_hook('transform_terminal_output', lambda output, exit_code, **k: '%s (%d)' % (output, exit_code))
    ctx.register_hook('transform_llm_output', lambda response_text: response_text.upper())
    ctx.register_hook('pre_verify', lambda **k: {'action': 'continue', 'message': 'test it'})
    ctx.register_hook('pre_gateway_dispatch', drop)
    ctx.register_middleware('tool_request', lambda args, **k: {'args': dict(args, safe=True)} if 'careful' in str(args) else None)
    ctx.register_tool(name='t', toolset='x', schema={}, handler=None)
    assert ctx.manifest.name == 'everything' and ctx.inject_message('x') is False
def drop(event, gateway, session_store, **kwargs):
    if event.source.chat_type == 'group' and event.source.platform.value == 'chat':
        return {'action': 'skip', 'reason': event.text}
";

#[test]
fn return_values_have_the_same_meaning_as_in_hermes() {
    let home = Home::new();
    let folder = plugin(&home, "everything", EVERYTHING);
    write_plugin_entry(&home, &folder, "");
    let message =
        json!({"event": {"text": "hi", "source": {"chat_type": "group", "platform": "chat"}}});
    for (payload, answer) in [
        (
            tool("pre_tool_call", "terminal", &json!({"command": "rm x"}), &json!({})),
            json!({"action": "block", "message": "no terminal for s"}),
        ),
        (
            tool("pre_tool_call", "terminal", &json!({"command": "sudo x"}), &json!({})),
            json!({"action": "approve", "message": "as root?", "rule_key": "sudo"}),
        ),
        (
            tool("pre_tool_call", "terminal", &json!({"command": "careful"}), &json!({})),
            json!({"args": {"command": "careful", "safe": true}}),
        ),
        (tool("pre_tool_call", "terminal", &json!({"command": "ls"}), &json!({})), Value::Null),
        (
            call("pre_llm_call", &json!({"user_message": "x"})),
            json!({"context": "plain text\n\nand a dict"}),
        ),
        (
            tool(
                "transform_tool_result",
                "read_file",
                &json!({"path": "p"}),
                &json!({"result": "a secret"}),
            ),
            json!("a p"),
        ),
        (
            call("transform_terminal_output", &json!({"output": "out", "returncode": 3})),
            json!("out (3)"),
        ),
        (call("transform_llm_output", &json!({"response_text": "hello"})), json!("HELLO")),
        (
            call("pre_verify", &json!({"attempt": 0})),
            json!({"action": "continue", "message": "test it"}),
        ),
        (call("pre_gateway_dispatch", &message), json!({"action": "skip", "reason": "hi"})),
        (call("on_session_start", &json!({})), Value::Null),
    ] {
        assert_eq!(bridge_answer(&home, &payload), answer, "{payload}");
    }
    assert!(!folder.join("__pycache__").exists(), "no files are left in the plugin's directory");
    let decisions = home.decisions();
    assert!(decisions[0]["verdicts"][0]["script"].as_str().is_some_and(|hash| hash.len() == 64));
}

#[test]
fn empty_texts_and_contexts_that_are_not_text_have_the_same_meaning_as_in_hermes() {
    let home = Home::new();
    let code = "def register(ctx):
    ctx.register_hook('transform_llm_output', lambda **k: '')
    ctx.register_hook('transform_llm_output', lambda **k: 'a later text')
    ctx.register_hook('transform_terminal_output', lambda **k: '')
    ctx.register_hook('transform_terminal_output', lambda **k: 'too late')
    ctx.register_hook('pre_llm_call', lambda **k: {'context': 42})
    ctx.register_hook('pre_llm_call', lambda **k: {'context': 0})
    ctx.register_hook('pre_llm_call', lambda **k: {'context': [True, 'x']})
";
    write_plugin_entry(&home, &plugin(&home, "odd", code), "");
    let ask = |name: &str| bridge_answer(&home, &call(name, &json!({})));
    assert_eq!(ask("transform_llm_output"), "a later text");
    assert_eq!(ask("transform_terminal_output"), "");
    assert_eq!(ask("pre_llm_call"), json!({"context": "42\n\n[True, 'x']"}));
}

#[test]
fn a_plugin_decides_for_other_agents_too_and_comes_before_commands() {
    let home = Home::new();
    let folder = plugin(&home, "everything", EVERYTHING);
    let later = home.script("later", &blocking_script("later"));
    home.write_hooks(&format!(
        "hooks:\n  tool.before:\n    - command: {later}\n    - python: {}\n",
        path_text(&folder)
    ));
    let payload = json!({"hook_event_name": "BeforeTool", "session_id": "s", "tool_name": "run_shell_command", "tool_input": {"command": "rm x"}});
    home.answer("gemini", &payload);
    let verdicts = home.decisions()[0]["verdicts"].clone();
    assert_eq!(verdicts[0]["reason"], "no run_shell_command for s", "{verdicts}");
    assert_eq!(verdicts[1]["reason"], "later");
}

const COUNTS: &str = "
count = 0
def step(**kwargs):
    global count
    count += 1
    import os
    return {'context': '%d in %s with %s' % (count, os.getcwd(), os.environ.get('MARK'))}
def register(ctx):
    ctx.register_hook('pre_llm_call', step)
";

#[test]
fn a_daemon_keeps_a_plugins_process_and_each_call_has_its_agents_directory_and_environment() {
    let home = Home::with_daemon("running");
    let folder = plugin(&home, "counts", COUNTS);
    write_plugin_entry(&home, &folder, "");
    let _daemon = home.serve();
    let ask = |mark: &str| {
        let mut command = home.command(["hook", "hermes"]);
        command.env("MARK", mark);
        let output = feed(command, call("pre_llm_call", &json!({})).to_string().as_bytes());
        serde_json::from_str::<Value>(&output.stdout).expect("an answer")["context"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    let work = path_text(&home.work());
    assert_eq!(ask("a"), format!("1 in {work} with a"));
    assert_eq!(ask("b"), format!("2 in {work} with b"));
    // An edited plugin is restarted.
    write(&folder, "__init__.py", &COUNTS.replace("count = 0", "count = 100"));
    wait_until("the edit is noticed", || ask("c") == format!("101 in {work} with c"));
}

#[test]
fn one_process_gets_concurrent_events_and_survives_a_rewritten_but_unchanged_hooks_file() {
    let home = Home::with_daemon("auto");
    write_plugin_entry(&home, &plugin(&home, "counts", COUNTS), "");
    let contexts: Vec<String> = std::thread::scope(|scope| {
        let ask = || scope.spawn(|| context(&home, "x").as_str().unwrap_or_default().to_owned());
        let threads: Vec<_> = (0..4).map(|_| ask()).collect();
        threads.into_iter().map(|thread| thread.join().expect("an answer")).collect()
    });
    let mut counts: Vec<&str> = contexts.iter().filter_map(|it| it.split(' ').next()).collect();
    counts.sort_unstable();
    assert_eq!(counts, ["1", "2", "3", "4"]);
    let file = home.path().join("hookbus.yaml");
    let same = fs::read(&file).expect("the hooks");
    fs::write(&file, same).expect("the same text");
    assert!(context(&home, "x").as_str().is_some_and(|text| text.starts_with("5 in")));
}

#[test]
fn the_event_that_starts_the_daemon_goes_to_the_same_process_as_later_ones() {
    let home = Home::with_daemon("auto");
    write_plugin_entry(&home, &plugin(&home, "counts", COUNTS), "");
    for n in 1..4 {
        let text = context(&home, "x");
        assert!(text.as_str().is_some_and(|text| text.starts_with(&format!("{n} in"))), "{text}");
    }
}

/// The context in the answer to a turn with this message.
fn context(home: &Home, message: &str) -> Value {
    home.answer("hermes", &call("pre_llm_call", &json!({"user_message": message})))["context"]
        .clone()
}

const FORKS: &str = "
import os
def step(user_message, **kwargs):
    if user_message == 'fork' and os.fork() == 0:
        return 'from the child'
    return 'to ' + user_message
def register(ctx):
    ctx.register_hook('pre_llm_call', step)
";

#[test]
fn a_plugin_that_forks_answers_each_call_once() {
    let home = Home::with_daemon("running");
    write_plugin_entry(&home, &plugin(&home, "forks", FORKS), "");
    let _daemon = home.serve();
    for message in ["one", "fork", "two", "three", "fork", "four"] {
        assert_eq!(context(&home, message), format!("to {message}"));
    }
}

const ANSWERS_TWICE: &str = "
import os, gc, io
def step(user_message, **kwargs):
    if user_message == 'twice':
        line = next(one for one in gc.get_objects() if isinstance(one, io.FileIO) and one.mode == 'wb' and one.name > 2)
        line.write(b'{\"id\": 1, \"returns\": [\"an old answer\"], \"errors\": []}\\n')
    return 'to ' + user_message
def register(ctx):
    ctx.register_hook('pre_llm_call', step)
";

#[test]
fn an_answer_to_another_call_is_discarded() {
    let home = Home::with_daemon("running");
    write_plugin_entry(&home, &plugin(&home, "twice", ANSWERS_TWICE), "");
    let _daemon = home.serve();
    assert_eq!(context(&home, "one"), "to one");
    assert_eq!(context(&home, "twice"), Value::Null);
    assert_eq!(context(&home, "two"), "to two");
    let failure = home.decisions()[1]["verdicts"][0]["failure"].clone();
    assert!(
        failure.as_str().is_some_and(|why| why.contains("it answered another request")),
        "{failure}"
    );
}

const ODD_ANSWERS: &str = "
class Rude:
    def __str__(self):
        raise RuntimeError('no')
odd = {'nan': float('nan'), 'half': chr(0xd800), 'rude': Rude(), 'digits': 10 ** 5000, 'key': {(1, 2): 3}}
def before(args, **kwargs):
    if args['kind'] == 'long':
        return {'action': 'block', 'message': 'x' * (17 << 20)}
    return {'action': 'block', 'message': 'no', 'odd': odd[args['kind']]}
def register(ctx):
    ctx.register_hook('pre_tool_call', before)
";

#[test]
fn a_block_with_values_that_are_not_json_is_a_block() {
    let home = Home::with_daemon("running");
    write_plugin_entry(&home, &plugin(&home, "odd", ODD_ANSWERS), "      on_failure: block\n");
    let _daemon = home.serve();
    let ask = |kind: &str| {
        let payload = tool("pre_tool_call", "terminal", &json!({"kind": kind}), &json!({}));
        home.answer("hermes", &payload)["reason"].as_str().unwrap_or_default().to_owned()
    };
    for kind in ["nan", "half", "rude", "digits", "key"] {
        assert_eq!(ask(kind), "no", "{kind}");
    }
    assert!(ask("long").contains("longer than 16 MiB"));
    assert_eq!(ask("nan"), "no");
}

const SLOW_NOTIFICATION: &str = "
import threading, time
seen = []
def after(tool_name, **kwargs):
    if tool_name == 'slow':
        threading.Event().wait(3600)
    seen.append(tool_name)
def register(ctx):
    ctx.register_hook('post_tool_call', after)
    ctx.register_hook('pre_llm_call', lambda **k: 'seen ' + ' '.join(seen))
";

#[test]
fn a_decision_comes_after_earlier_notifications_unless_one_hangs() {
    let home = Home::with_daemon("running");
    write_plugin_entry(&home, &plugin(&home, "slow", SLOW_NOTIFICATION), "      timeout: 20\n");
    let _daemon = home.serve();
    let after = |name: &str| {
        home.answer("hermes", &tool("post_tool_call", name, &json!({}), &json!({})));
    };
    after("a");
    after("b");
    wait_until("both are delivered", || context(&home, "x") == "seen a b");
    after("slow");
    after("c");
    for _ in 0..3 {
        assert_eq!(context(&home, "x"), "seen a b");
    }
    assert_eq!(home.last_decision()["verdicts"][0]["failed"], false);
}

#[test]
fn a_plugin_under_two_keys_gets_an_event_once() {
    let home = Home::with_daemon("running");
    let folder = plugin(&home, "counts", COUNTS);
    let entry = format!("[{{ python: {} }}]", path_text(&folder));
    home.write_hooks(&format!("hooks: {{ '*': {entry}, pre_llm_call: {entry} }}"));
    let _daemon = home.serve();
    for n in 1..3 {
        let text = context(&home, "x");
        assert!(text.as_str().is_some_and(|text| text.starts_with(&format!("{n} in"))), "{text}");
    }
}

const ONE_THREAD: &str = "
import contextvars, threading, time
loaded_in, seen = threading.get_ident(), []
left = contextvars.ContextVar('left', default='nothing')
def watch(**kwargs):
    seen.append('elsewhere' if threading.get_ident() != loaded_in else 'here')
    left.set(kwargs.get('turn_id'))
def first(**kwargs):
    time.sleep(2)  # as long as it takes to load something large
    watch(**kwargs)
def step(**kwargs):
    watch()
    return ' '.join(seen)
def register(ctx):
    ctx.register_hook('on_session_start', first)
    ctx.register_hook('post_tool_call', watch)
    ctx.register_hook('pre_llm_call', step)
    ctx.register_hook('transform_llm_output', lambda **k: str(left.get()))
";

#[test]
fn all_callbacks_run_in_the_plugins_own_thread_in_the_order_of_their_events() {
    let home = Home::with_daemon("running");
    write_plugin_entry(&home, &plugin(&home, "thread", ONE_THREAD), "");
    let _daemon = home.serve();
    home.answer("hermes", &call("on_session_start", &json!({})));
    home.answer("hermes", &tool("post_tool_call", "terminal", &json!({}), &json!({})));
    assert_eq!(context(&home, "x"), "here here here");
}

#[test]
fn context_variables_are_kept_within_a_turn_only() {
    let home = Home::with_daemon("running");
    write_plugin_entry(&home, &plugin(&home, "turns", ONE_THREAD), "");
    let _daemon = home.serve();
    let watch = |turn: &str| {
        let extra = json!({"turn_id": turn});
        home.answer("hermes", &tool("post_tool_call", "terminal", &json!({}), &extra));
    };
    let left =
        |turn: &str| bridge_answer(&home, &call("transform_llm_output", &json!({"turn_id": turn})));
    watch("one");
    assert_eq!(left("one"), "one");
    assert_eq!(left("two"), "nothing");
    watch("two");
    assert_eq!(left("two"), "two");
}

#[test]
fn a_plugin_finishes_and_runs_its_exit_handlers_when_the_daemon_is_killed() {
    let home = Home::with_daemon("running");
    let written = home.work().join("written");
    let code = format!(
        "import atexit, threading\ndef tell(word):\n    open({:?}, 'a').write(word + '\\n')\natexit.register(tell, 'bye')\n\
         def register(ctx):\n    ctx.register_hook('on_session_end', lambda **k: (tell('begin'), threading.Event().wait(1), tell('end')))\n    \
         ctx.register_hook('pre_llm_call', lambda **k: 'hello')\n",
        path_text(&written)
    );
    write_plugin_entry(&home, &plugin(&home, "leaves", &code), "");
    let mut daemon = home.serve();
    assert_eq!(context(&home, "x"), "hello");
    home.answer("hermes", &call("on_session_end", &json!({})));
    let text = || fs::read_to_string(&written).unwrap_or_default();
    wait_until("the callback has begun", || text() == "begin\n");
    daemon.kill();
    wait_until("the exit handler has run", || text() == "begin\nend\nbye\n");
}

#[test]
fn modules_in_the_agents_working_directory_are_not_imported() {
    let home = Home::new();
    write(&home.work(), "hookbus_test_module.py", "raise SystemExit('the agent wrote this')\n");
    let code = "def step(**k):
    try:
        import hookbus_test_module
    except ImportError:
        return 'not found'
def register(ctx):
    ctx.register_hook('pre_llm_call', step)
";
    write_plugin_entry(&home, &plugin(&home, "imports", code), "");
    assert_eq!(context(&home, "x"), "not found");
}

#[test]
fn callbacks_get_the_models_answer_as_an_object_and_the_arguments_that_hermes_passes() {
    let home = Home::with_daemon("running");
    let code = "
seen = []
def answered(assistant_message, **more):
    calls = [(one.id, one.function.name, one.function.arguments) for one in assistant_message.tool_calls or []]
    seen.append('%s %s' % (assistant_message.content, calls))
def passed(**more):
    seen.append(' '.join(sorted(more)))
def register(ctx):
    ctx.register_hook('post_api_request', answered)
    ctx.register_hook('post_tool_call', passed)
    ctx.register_hook('transform_terminal_output', passed)
    ctx.register_hook('pre_llm_call', lambda **k: '; '.join(seen))
";
    write_plugin_entry(&home, &plugin(&home, "answers", code), "");
    let _daemon = home.serve();
    let printed = "NormalizedResponse(content='it\\'s', tool_calls=[ToolCall(id='c', name='t', arguments='{}')], \
                   finish_reason='stop', usage=Usage(prompt_tokens=1))";
    let other = json!({"assistant_message": {"content": "hi", "tool_calls": null}});
    for extra in [
        json!({"assistant_message": printed}),
        json!({"assistant_message": "content='hi' role='assistant'", "response": other}),
    ] {
        home.answer("hermes", &call("post_api_request", &extra));
    }
    home.answer("hermes", &tool("post_tool_call", "t", &json!({}), &json!({"result": "{}"})));
    let mut output = call("transform_terminal_output", &json!({"output": "x", "returncode": 0}));
    output["session_id"] = json!("");
    bridge_answer(&home, &output);
    assert_eq!(
        context(&home, "x"),
        "it's [('c', 't', '{}')]; hi []; args result session_id telemetry_schema_version tool_name; \
         output returncode telemetry_schema_version"
    );
}

#[test]
fn an_event_at_which_a_plugin_exits_is_not_delivered_again() {
    let home = Home::with_daemon("running");
    let received = home.work().join("received");
    let code = format!(
        "import os\ndef step(user_message, **k):\n    open({:?}, 'a').write(user_message + '\\n')\n    \
         os._exit(3)\ndef register(ctx):\n    ctx.register_hook('pre_llm_call', step)\n",
        path_text(&received)
    );
    let folder = plugin(&home, "dies", &code);
    write_plugin_entry(&home, &folder, "");
    let _daemon = home.serve();
    for message in ["a", "b", "c"] {
        assert_eq!(context(&home, message), Value::Null);
    }
    assert_eq!(fs::read_to_string(&received).expect("events"), "a\nb\n", "then it is in back-off");
    // An edit ends the back-off.
    write(&folder, "__init__.py", &code.replace("os._exit(3)", "return 'well'"));
    wait_until("the edit is noticed", || context(&home, "d") == "well");
}

#[test]
fn a_plugin_that_is_added_while_the_daemon_runs_is_noticed() {
    let home = Home::with_daemon("running");
    plugin(&home, "group/first", &adds_context("first"));
    home.write_hooks(&format!(
        "plugins: {{ enabled: [group/first, group/second] }}\nhooks: {{ '*': [{{ python: {} }}] }}\n",
        path_text(&home.work().join("plugins"))
    ));
    let _daemon = home.serve();
    assert_eq!(context(&home, "x"), "first");
    plugin(&home, "group/second", &adds_context("second"));
    wait_until("it is noticed", || context(&home, "x") == "first\n\nsecond");
}

#[test]
fn circular_links_and_installed_packages_are_not_searched_for_code() {
    let home = Home::with_daemon("running");
    let folder = plugin(&home, "counts", COUNTS);
    for name in ["a", "b", "c"] {
        std::os::unix::fs::symlink("..", folder.join(name)).expect("a link");
        std::os::unix::fs::symlink("/", folder.join(format!("root-{name}"))).expect("a link");
    }
    for n in 0..3000 {
        write(&folder.join("venv/lib"), &format!("m{n}.py"), "");
    }
    write_plugin_entry(&home, &folder, "");
    let _daemon = home.serve();
    assert!(context(&home, "x").as_str().is_some_and(|text| text.starts_with("1 in")));
}

const STARTS_A_TASK: &str = "
import asyncio
done = []
async def later():
    await asyncio.sleep(0.05)
    done.append('done')
async def step(user_message, **kwargs):
    if user_message == 'start':
        step.task = asyncio.ensure_future(later())
    if user_message == 'exit':
        raise SystemExit(1)
    return 'so far ' + ''.join(done)
def register(ctx):
    ctx.register_hook('pre_llm_call', step)
";

#[test]
fn a_task_that_a_callback_starts_continues_after_it() {
    let home = Home::with_daemon("running");
    write_plugin_entry(&home, &plugin(&home, "tasks", STARTS_A_TASK), "");
    let _daemon = home.serve();
    context(&home, "start");
    assert_eq!(context(&home, "exit"), Value::Null);
    wait_until("it is done", || context(&home, "x") == "so far done");
}

#[test]
fn the_log_of_plugins_is_private_and_variables_that_are_not_utf8_reach_a_plugin() {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::with_daemon("running");
    let code = "import os\ndef register(ctx):\n    ctx.register_hook('pre_llm_call', lambda **k: \
                repr(os.environb.get(b'MARK')))\n";
    write_plugin_entry(&home, &plugin(&home, "bytes", code), "");
    let _daemon = home.serve();
    context(&home, "first");
    let mut command = home.command(["hook", "hermes"]);
    command.env("MARK", std::ffi::OsStr::from_bytes(b"caf\xe9"));
    let output = feed(command, call("pre_llm_call", &json!({})).to_string().as_bytes());
    assert_eq!(output.stdout.trim(), r#"{"context":"b'caf\\xe9'"}"#);
    let log = fs::metadata(home.path().join("plugins.log")).expect("the log");
    assert_eq!(log.permissions().mode() & 0o777, 0o600);
}

const FAILS: &str = "
import os, time
def step(user_message, **kwargs):
    if user_message == 'die': os._exit(3)
    if user_message == 'hang': time.sleep(600)
    if user_message == 'raise': raise ValueError('oh')
    if user_message == 'leave': raise SystemExit(1)
    if user_message == 'grow': return len(bytearray(1 << 30))
    return {'context': 'well'}
def register(ctx):
    ctx.register_hook('pre_llm_call', step)
";

#[test]
fn a_failing_plugin_is_restarted_and_does_not_affect_another_one() {
    let home = Home::with_daemon("running");
    let folder = plugin(&home, "unstable", FAILS).parent().expect("a folder").to_owned();
    plugin(&home, "fine", &adds_context("fine"));
    home.write_hooks(&format!(
        "plugins: {{ enabled: [unstable, fine] }}\nhooks:\n  '*':\n    - {{ name: all, python: {}, timeout: 15, memory: 400 }}\n",
        path_text(&folder)
    ));
    let _daemon = home.serve();
    let ask = |message: &str| {
        home.answer("hermes", &call("pre_llm_call", &json!({"user_message": message})))["context"]
            .clone()
    };
    for (message, context) in [
        ("ok", "fine\n\nwell"),
        ("raise", "fine"),
        ("leave", "fine"),
        ("die", "fine"),
        ("ok", "fine\n\nwell"),
        ("grow", "fine"),
        ("ok", "fine\n\nwell"),
        ("hang", "fine"),
        ("ok", "fine"),
    ] {
        assert_eq!(ask(message), context, "{message}");
    }
    let failures: Vec<String> = home
        .decisions()
        .iter()
        .map(|row| row["verdicts"][1]["failure"].as_str().unwrap_or("").to_owned())
        .collect();
    let expected = [
        "",
        "oh",
        "SystemExit",
        "ended",
        "",
        "Memory",
        "",
        "no answer within",
        "not called for a while",
    ];
    for (failure, expected) in failures.iter().zip(expected) {
        assert!(
            failure.contains(expected) && failure.is_empty() == expected.is_empty(),
            "{failures:?}"
        );
    }
}

#[test]
fn only_enabled_plugins_are_loaded_in_the_order_of_their_directories() {
    let home = Home::new();
    let folder =
        plugin(&home, "b-second", &adds_context("second")).parent().expect("a folder").to_owned();
    plugin(&home, "a-first", &adds_context("first"));
    plugin(&home, "group/inner", &adds_context("inner"));
    plugin(&home, "never", &adds_context("never"));
    let bridge = plugin(&home, "hookbus", &adds_context("the bridge itself"));
    write(&bridge, "bridge.json", "{}");
    write(&bridge, "client.py", "");
    plugin(&home, "unnamed", &adds_context("unnamed"));
    home.write_hooks(&format!(
        "plugins:\n  enabled: [b-second, a-first, group/inner, never, hookbus]\n  disabled: [never]\nhooks: {{ '*': [{{ python: {} }}] }}\n",
        path_text(&folder)
    ));
    let ask = || home.answer("hermes", &call("pre_llm_call", &json!({})))["context"].clone();
    assert_eq!(ask(), "first\n\nsecond\n\ninner");
}

#[test]
fn of_two_plugins_with_the_same_name_the_later_one_is_loaded_and_a_provider_never() {
    let home = Home::new();
    let folder = plugin(&home, "a", &adds_context("first")).parent().expect("a folder").to_owned();
    for (path, name, kind) in [
        ("a", "same", "standalone"),
        ("b", "same", "standalone"),
        ("c", "other", "standalone"),
        ("group/a", "same", "standalone"),
        ("d", "memory", " Exclusive"),
        ("e", "model", "model-provider"),
    ] {
        write(
            &plugin(&home, path, &adds_context(path)),
            "plugin.yaml",
            &format!("name: {name}\nkind: '{kind}'\n"),
        );
    }
    for name in ["one", "two"] {
        let code = format!(
            "def handle(event_type, context):\n    return {{'decision': 'deny', 'message': '{name}'}}\n"
        );
        let hook = gateway_hook(&home, name, "['command:*']", &code);
        write(&hook, "HOOK.yaml", "name: same\nevents: ['command:*']\n");
    }
    let all = |more: &str| {
        home.write_hooks(&format!(
            "plugins: {{ enabled: [same, other, memory, model] }}\nhooks: {{ '*': [{{ python: {} }}, {{ python: {} }}] }}\n{more}",
            path_text(&folder),
            path_text(&home.work().join("hooks"))
        ));
    };
    all("");
    let ask = || home.answer("hermes", &call("pre_llm_call", &json!({})))["context"].clone();
    assert_eq!(ask(), "b\n\nc\n\ngroup/a");
    // Gateway hooks with the same name are all called.
    bridge_answer(&home, &call("command:help", &json!({"command": "help"})));
    let verdicts = home.last_decision()["verdicts"].clone();
    assert_eq!([&verdicts[0]["reason"], &verdicts[1]["reason"]], ["one", "two"], "{verdicts}");
    write_plugin_entry(&home, &folder.join("d"), "");
    assert_eq!(ask(), Value::Null);
    let listed = home.run(&["hooks", "list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("holds only providers (memory;"), "{listed}");
}

#[test]
fn a_plugin_whose_required_variables_are_missing_fails_with_their_names() {
    let home = Home::new();
    let folder = plugin(&home, "keyed", &adds_context("hello"));
    let manifest = "name: keyed\nrequires_env:\n  - PLAIN_KEY\n  - name: RICH_KEY\n    description: for something\n    secret: true\n";
    write(&folder, "plugin.yaml", manifest);
    write_plugin_entry(&home, &folder, "");
    let ask = |key: &str| {
        let mut command = home.command(["hook", "hermes"]);
        command.env("PLAIN_KEY", "x").env("RICH_KEY", key);
        feed(command, call("pre_llm_call", &json!({})).to_string().as_bytes()).stdout
    };
    assert_eq!(ask(""), "");
    let failure = home.decisions()[0]["verdicts"][0]["failure"].clone();
    assert!(failure.as_str().is_some_and(|why| why.contains("needs RICH_KEY")), "{failure}");
    assert_eq!(ask("y"), "{\"context\":\"hello\"}");
}

#[test]
fn a_missing_variable_is_recorded_once_unless_on_failure_is_block() {
    for (more, times) in [("", 1), ("      on_failure: block\n", 3)] {
        let home = Home::with_daemon("running");
        let folder = plugin(&home, "keyed", "def register(ctx):\n    pass\n");
        write(&folder, "plugin.yaml", "name: keyed\nrequires_env: [MISSING_VARIABLE]\n");
        write_plugin_entry(&home, &folder, more);
        let _daemon = home.serve();
        for _ in 0..3 {
            home.answer("hermes", &tool("pre_tool_call", "terminal", &json!({}), &json!({})));
        }
        assert_eq!(home.decisions().len(), times, "{more}");
    }
}

#[test]
fn gateway_hooks_run_and_the_agent_waits_only_for_those_that_can_answer() {
    let home = Home::with_daemon("running");
    let seen = home.work().join("seen");
    let code = format!(
        "import asyncio, json\nasync def handle(event_type, context):\n    await asyncio.sleep(0.3)\n    \
         open({:?}, 'a').write(event_type + ' ' + json.dumps(context) + '\\n')\n    \
         return {{'decision': 'deny', 'message': 'not ' + context.get('command', '')}}\n",
        path_text(&seen)
    );
    let folder = gateway_hook(&home, "watch", "['agent:*', 'command:deploy']", &code);
    write_plugin_entry(&home, &folder, "");
    let _daemon = home.serve();
    let event = |name: &str, extra: Value| bridge_answer(&home, &call(name, &extra));
    assert_eq!(event("agent:start", json!({"message": "hi"})), Value::Null);
    assert_eq!(event("command:status", json!({"command": "status"})), Value::Null);
    assert_eq!(
        event("command:deploy", json!({"command": "deploy"})),
        json!({"decision": "deny", "message": "not deploy"})
    );
    let lines = || fs::read_to_string(&seen).unwrap_or_default();
    wait_until("both are handled", || lines().lines().count() == 2);
    assert!(
        lines().contains("agent:start {\"message\": \"hi\", \"session_id\": \"s\"}"),
        "{}",
        lines()
    );
    assert_eq!(home.decisions().len(), 1, "no decision for an event that cannot be answered");
}

#[test]
fn a_plugin_that_cannot_be_loaded_fails_with_the_reason() {
    let home = Home::new();
    let folder = plugin(&home, "broken", "import nothing_of_that_name\n");
    write_plugin_entry(&home, &folder, "      on_failure: block\n");
    let answer = home.answer("hermes", &tool("pre_tool_call", "terminal", &json!({}), &json!({})));
    assert!(
        answer["reason"].as_str().is_some_and(|why| why.contains("nothing_of_that_name")),
        "{answer}"
    );
    let log = fs::read_to_string(home.path().join("plugins.log")).expect("the details");
    assert!(log.contains("Traceback"), "{log}");
    home.write_hooks("hooks: { '*': [{ python: ./nowhere, on_failure: block }] }");
    let answer = home.answer("hermes", &tool("pre_tool_call", "terminal", &json!({}), &json!({})));
    assert!(
        answer["reason"].as_str().is_some_and(|why| why.contains("there is no directory")),
        "{answer}"
    );
}
