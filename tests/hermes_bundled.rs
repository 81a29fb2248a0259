//! Plugins that ship with Hermes, unmodified, once loaded by a real Hermes and once by the bus that Hermes is connected
//! to. Their effects (requests to the model, files they write and remove, requests to a server) are the same except for
//! ids and times.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hookbus_tests::agents::{Collector, Hermes, Run, Step, hermes_plugins, hermes_python};
use hookbus_tests::home::{Home, feed, path_text, wait_until};
use hookbus_tests::plugins::{plugin, tool};
use hookbus_tests::wiring::Agent;
use serde_json::{Map, Value, json};

/// Runs a session with the plugin loaded by Hermes.
fn run_in_hermes(plugin: &str, setup: impl Fn(Hermes) -> Hermes) -> Run {
    let run = setup(Hermes::working("in Hermes")).setting("plugins.enabled", json!([plugin])).go();
    assert_eq!((run.exit, run.steps_left), (Some(0), 0), "{}", run.stderr);
    run
}

/// Runs the same session with the plugin loaded by the bus and not by Hermes. The first event starts the daemon.
fn run_under_bus(home: &Home, plugin: &str, setup: impl Fn(Hermes) -> Hermes) -> Run {
    home.write_hooks(&format!(
        "hooks: {{ '*': [{{ python: {}, interpreter: {}, pass_env: [PYTHONPATH] }}] }}\n",
        path_text(&hermes_plugins().join(plugin)),
        path_text(&hermes_python())
    ));
    let run = setup(Hermes::working("under the bus")).connected(home, "auto").go();
    assert_eq!((run.exit, run.steps_left), (Some(0), 0), "{}", run.stderr);
    run
}

/// Single and parallel tool calls, one that fails, a request that fails, and a second turn in a new process.
fn long_session(hermes: Hermes) -> Hermes {
    let read = |path: &str| ("read_file", json!({"path": path}));
    // Hermes runs tools that only read concurrently, in varying order. A tool that writes separates them.
    let between = ("terminal", json!({"command": "echo between"}));
    hermes
        .with_extras()
        .script(vec![
            Step::tool("terminal", json!({"command": "echo made > made.txt; echo it is made"})),
            Step::error(500, "not now"),
            Step::tools(&[read("made.txt"), between, read("none.txt")]),
            Step::text("Done."),
            Step::tool("terminal", json!({"command": "rm -rf ./made.txt"})),
            Step::text("Gone."),
        ])
        .setting("approvals", json!({"mode": "manual", "timeout": 1}))
        .prompts(&["Make a file.", "And remove it."])
}

/// A value without these keys, at any depth.
fn without(value: &Value, keys: &[&str]) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !keys.contains(&name.as_str()))
            .map(|(name, field)| (name.clone(), without(field, keys)))
            .collect(),
        Value::Array(items) => items.iter().map(|item| without(item, keys)).collect(),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Compares item by item and field by field, so that a failure shows only the difference.
fn assert_same(found: &[Value], expected: &[Value]) {
    let names = |all: &[Value]| all.iter().map(|one| one["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names(found), names(expected));
    for (found, expected) in found.iter().zip(expected) {
        for (name, field) in expected.as_object().into_iter().flatten() {
            assert_eq!(&found[name], field, "`{name}` of {}", expected["name"]);
        }
        assert_eq!(found, expected);
    }
}

// ---- langfuse: the requests to its server -----------------------------------------------------------

const LANGFUSE: &str = "observability/langfuse";

fn traced(hermes: Hermes, collector: &Collector) -> Hermes {
    long_session(hermes)
        .env("HERMES_LANGFUSE_PUBLIC_KEY", "pk-lf-x")
        .env("HERMES_LANGFUSE_SECRET_KEY", "sk-lf-y")
        .env("HERMES_LANGFUSE_BASE_URL", &collector.address())
        .env("HERMES_LANGFUSE_ENV", "tests")
}

/// The spans in the order of their start, with names instead of the ids they refer to.
fn spans(run: &Run, collector: &Collector) -> Vec<Value> {
    let mut spans = collector.spans();
    spans.sort_by_key(|span| span["startTimeUnixNano"].as_str().unwrap_or_default().to_owned());
    let mut traces: Vec<Value> = Vec::new();
    let names: BTreeMap<String, Value> =
        spans.iter().map(|span| (span["spanId"].to_string(), span["name"].clone())).collect();
    let reduced = spans.iter().map(|span| {
        if !traces.contains(&span["traceId"]) {
            traces.push(span["traceId"].clone());
        }
        let attributes = span["attributes"].as_array().into_iter().flatten();
        let attributes: Map<String, Value> = attributes
            .map(|pair| {
                (pair["key"].as_str().unwrap_or_default().to_owned(), pair["value"].clone())
            })
            .filter(|(name, _)| !name.ends_with("api_duration_s"))
            .collect();
        json!({
            "name": span["name"], "attributes": attributes,
            "parent": names.get(&span["parentSpanId"].to_string()),
            "trace": traces.iter().position(|trace| *trace == span["traceId"]),
        })
    });
    let reduced: Vec<Value> = reduced.collect();
    reduced.iter().map(|span| run.masked(span)).collect()
}

#[test]
fn langfuse_sends_the_same_traces() {
    let [of_hermes, of_bus] = [(); 2].map(|()| Collector::start());
    let first = run_in_hermes(LANGFUSE, |hermes| traced(hermes, &of_hermes));
    let expected = spans(&first, &of_hermes);
    let names: Vec<&str> = expected.iter().filter_map(|span| span["name"].as_str()).collect();
    let turns = names.iter().filter(|name| **name == "Hermes turn").count();
    assert_eq!((turns, names.len()), (2, 13), "{names:?}");
    assert!(json!(expected).to_string().contains("it is made"));

    let home = Home::with_daemon("auto");
    let second = run_under_bus(&home, LANGFUSE, |hermes| traced(hermes, &of_bus));
    wait_until("all spans are sent", || of_bus.spans().len() >= expected.len());

    assert_same(&spans(&second, &of_bus), &expected);
    let endpoints = |collector: &Collector| {
        let requests = collector.requests();
        let mut endpoints: Vec<Value> =
            requests.iter().map(|one| json!([one["path"], one["authorization"]])).collect();
        endpoints.dedup();
        endpoints
    };
    assert_eq!(endpoints(&of_bus), endpoints(&of_hermes));
}

// ---- nemo_relay: the files it writes ----------------------------------------------------------------

const NEMO_RELAY: &str = "observability/nemo_relay";

fn relayed(hermes: Hermes) -> Hermes {
    let folder = path_text(&hermes.home().join("relay"));
    long_session(hermes)
        .env("HERMES_NEMO_RELAY_ATOF_ENABLED", "1")
        .env("HERMES_NEMO_RELAY_ATOF_OUTPUT_DIRECTORY", &folder)
        .env("HERMES_NEMO_RELAY_ATIF_ENABLED", "1")
        .env("HERMES_NEMO_RELAY_ATIF_OUTPUT_DIRECTORY", &folder)
        .env("HERMES_NEMO_RELAY_ATIF_FILENAME_TEMPLATE", "atif.json")
}

/// Its events, with line numbers instead of the ids of scopes, and its trajectory.
fn relay_files(run: &Run) -> (Vec<Value>, Value) {
    let read =
        |name: &str| fs::read_to_string(run.home.join("relay").join(name)).unwrap_or_default();
    let mut events: Vec<Value> = read("hermes-atof.jsonl")
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok()) // the last line may be half written
        .collect();
    let ids: Vec<Value> = events.iter().map(|event| event["uuid"].clone()).collect();
    for event in &mut events {
        for name in ["propagation_root_uuid", "parent_uuid", "uuid"] {
            // The root scope is in no line.
            if let Some(id) = event.get_mut(name) {
                *id = json!(ids.iter().position(|known| known == id));
            }
        }
    }
    let times = [
        "timestamp",
        "start_timestamp",
        "end_timestamp",
        "duration_ms",
        "api_duration",
        "started_at",
        "ended_at",
    ];
    let comparable = |value: &Value| run.masked(&without(value, &times));
    let trajectory = serde_json::from_str(&read("atif.json")).unwrap_or_default();
    (events.iter().map(comparable).collect(), comparable(&trajectory))
}

#[test]
fn nemo_relay_writes_the_same_events_and_the_same_trajectory() {
    let (expected, trajectory) = relay_files(&run_in_hermes(NEMO_RELAY, relayed));
    let names: Vec<&Value> = expected.iter().map(|event| &event["name"]).collect();
    for name in ["hermes.turn.start", "hermes.approval.request", "terminal", "read_file"] {
        assert!(names.contains(&&json!(name)), "{name} in {names:?}");
    }
    assert!(trajectory["steps"].as_array().is_some_and(|steps| steps.len() > 2), "{trajectory}");

    let home = Home::with_daemon("auto");
    let run = run_under_bus(&home, NEMO_RELAY, relayed);
    wait_until("everything is written", || relay_files(&run).0.len() >= expected.len());
    let (events, found) = relay_files(&run);
    assert_same(&events, &expected);
    assert_eq!(found, trajectory);
}

// ---- security-guidance: the requests to the model ----------------------------------------------------

#[test]
fn security_guidance_warns_and_blocks_with_the_same_texts() {
    let code = "import pickle\npickle.load(open('x', 'rb'))\nos.system('ls')\n";
    for (variable, is_written) in [("UNUSED", true), ("SECURITY_GUIDANCE_BLOCK", false)] {
        let setup = |hermes: Hermes| {
            let write = json!({"path": "made.py", "content": code});
            let script = vec![Step::tool("write_file", write), Step::text("Done.")];
            hermes.script(script).env(variable, "1")
        };
        let first = run_in_hermes("security-guidance", setup);
        let home = Home::with_daemon("auto");
        let second = run_under_bus(&home, "security-guidance", setup);
        assert!(first.requests[1].to_string().contains("pickle.load"));
        assert_eq!(first.file("made.py").is_some(), is_written, "{variable}");
        assert_eq!(second.outcome(), first.outcome(), "{variable}");
    }
}

// ---- disk-cleanup: its records and the files it removes ----------------------------------------------

/// All files in a directory, by name.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            (entry.file_name().to_string_lossy().into_owned(), text)
        })
        .collect()
}

#[test]
fn disk_cleanup_records_and_removes_the_same_files() {
    let setup = |hermes: Hermes| {
        let home = hermes.home().join(".hermes");
        // The plugin removes this directory if it is empty; under the bus the bridge is in it.
        fs::create_dir_all(home.join("hooks/mine")).expect("a directory");
        fs::write(home.join("hooks/mine/notes"), "mine").expect("a file");
        let write = |name: &str| {
            let path = path_text(&home.join(name));
            Step::tool("write_file", json!({"path": path, "content": "x = 1\n"}))
        };
        let script = vec![
            write("test_scratch.py"),
            write("cache/kept.py"),
            write("notes.md"),
            Step::text("Done."),
        ];
        hermes.script(script).prompts(&["Try something."])
    };
    let result = |run: &Run| {
        let home = run.home.join(".hermes");
        let exists = |name: &str| home.join(name).exists();
        let records = files(&home.join("disk-cleanup"));
        let records: Value = records.into_iter().map(|(name, text)| (name, json!(text))).collect();
        let files = ["test_scratch.py", "cache/kept.py", "notes.md"].map(exists);
        (files, run.masked(&records))
    };
    let first = run_in_hermes("disk-cleanup", setup);
    let expected = result(&first);
    assert_eq!(expected.0, [false, true, true], "{expected:?}");
    let home = Home::with_daemon("auto");
    let second = run_under_bus(&home, "disk-cleanup", setup);
    wait_until("the file is removed", || !result(&second).0[0]);
    wait_until("the removal is recorded", || result(&second) == expected);
}

// ---- middleware: its arguments and its result --------------------------------------------------------

const CHANGES: &str = "
import json, os
def seen(who, fields):
    fields.pop('middleware_trace', None)
    with open(os.environ['SEEN'], 'a') as file:
        file.write(json.dumps([who, fields], sort_keys=True) + '\\n')
def first(args, original_args, **kwargs):
    seen('first', dict(kwargs, args=args, original_args=original_args))
    args['in_place'] = original_args['nested']['deep'] = True
    return {'args': {'command': 'first'}}
def second(**kwargs):
    seen('second', kwargs)
    return {'args': dict(kwargs['args'], second=True)}
def register(ctx):
    ctx.register_middleware('tool_request', first)
    ctx.register_middleware('tool_request', second)
    ctx.register_middleware('tool_request', lambda **k: {'args': 'no arguments'})
    ctx.register_hook('pre_tool_call', lambda **k: seen('hook', k))
";

/// Calls Hermes' own functions, with the plugin's callbacks registered there.
const IN_HERMES: &str = "
import json, runpy, sys, types
from hermes_cli import middleware, plugins
manager = plugins.get_plugin_manager()
put = lambda where: lambda name, callback: where.setdefault(name, []).append(callback)
context = types.SimpleNamespace(register_hook=put(manager._hooks), register_middleware=put(manager._middleware))
runpy.run_path(sys.argv[1])['register'](context)
ids = dict(task_id='t', session_id='', tool_call_id='c', turn_id='u', api_request_id='a')
args = middleware.apply_tool_request_middleware('terminal', json.loads(sys.argv[2]), **ids).payload
plugins.get_pre_tool_call_block_message('terminal', args, **ids)
print(json.dumps({'args': args}))
";

#[test]
fn middleware_gets_the_same_arguments_and_has_the_same_result_as_in_hermes() {
    let home = Home::new();
    let folder = plugin(&home, "changes", CHANGES);
    let input = json!({"command": "ls", "nested": {"deep": false}});
    let file = |name: &str| home.work().join(name);
    let mut command = std::process::Command::new(hermes_python());
    command.args(["-c", IN_HERMES, &path_text(&folder.join("__init__.py")), &input.to_string()]);
    command
        .env("SEEN", file("in-hermes"))
        .env("HERMES_HOME", file("hermes"))
        .current_dir(home.work());
    let output = feed(command, b"");
    let expected: Value =
        serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));

    home.write_hooks(&format!("hooks: {{ '*': [{{ python: {} }}] }}\n", path_text(&folder)));
    let ids = json!({"task_id": "t", "tool_call_id": "c", "turn_id": "u", "api_request_id": "a", "middleware_trace": []});
    let mut payload = tool("pre_tool_call", "terminal", &input, &ids);
    payload["session_id"] = json!("");
    let mut command = home.command(["hook", "hermes", "--wire", "bridge"]);
    command.env("SEEN", file("under-bus"));
    let output = feed(command, payload.to_string().as_bytes());
    let answer: Value = serde_json::from_str(&output.stdout).expect("an answer");

    let seen = |name: &str| fs::read_to_string(file(name)).expect("its arguments");
    assert_eq!(seen("under-bus"), seen("in-hermes"));
    assert_eq!(seen("under-bus").lines().count(), 3);
    assert_eq!(answer, expected);
    assert_eq!(answer["args"]["second"], true);
}
