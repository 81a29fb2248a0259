//! The contract of observers: every event at least once, in order, with dead letters. The same tests run on the
//! log and on NATS.

#![expect(clippy::expect_used, reason = "a test whose setup fails has failed")]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hookbus_tests::home::{Daemon, Home, wait_until};
use hookbus_tests::nats::{NatsServer, Published};
use hookbus_tests::payloads::{gemini_shell, hermes_shell, one};
use hookbus_tests::plugins::write;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A home, and the NATS server that its observers read from, if any.
struct Setup {
    home: Home,
    nats: Option<NatsServer>,
    /// Whether [`WATCH`] runs a plugin instead of a program.
    plugin: bool,
}

/// A `hookbus observe` process; killed when dropped.
struct ObserverProcess(Child);

impl Setup {
    fn with_log(hooks: &str) -> Self {
        let home = Home::with_daemon("running");
        home.write_hooks(&format!("trust: home\nhooks:\n{hooks}"));
        Self { home, nats: None, plugin: false }
    }

    fn with_nats(hooks: &str) -> Self {
        let (home, nats) = (Home::with_daemon("running"), NatsServer::start());
        let url = nats.url();
        home.write_hooks(&format!("trust: home\nnats: {{url: \"{url}\"}}\nhooks:\n{hooks}"));
        Self { home, nats: Some(nats), plugin: false }
    }

    fn write_hooks(&self, hooks: &str) {
        let nats = self.nats.as_ref().map(|nats| format!("nats: {{url: \"{}\"}}\n", nats.url()));
        let hooks = if self.plugin { as_plugin(hooks) } else { hooks.to_owned() };
        let nats = nats.unwrap_or_default();
        self.home.write_hooks(&format!("trust: home\n{nats}hooks:\n{hooks}"));
    }

    /// The same setup with a plugin as the observer.
    fn with_plugin(self) -> Self {
        let setup = Self { plugin: true, ..self };
        setup.write_hooks(WATCH);
        setup
    }

    /// The file that observers append to.
    fn seen_file(&self) -> PathBuf {
        self.home.work().join("seen")
    }

    /// The lines that observers have written.
    fn seen(&self) -> Vec<String> {
        let text = fs::read_to_string(self.seen_file()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Installs the program and the plugin of [`WATCH`]: they write the value of the Python `expression` for each
    /// event `e`.
    fn observe_with(&self, expression: &str) {
        let seen = self.seen_file();
        let code = WATCHING_PLUGIN.replace("SEEN", &format!("{:?}", seen.to_string_lossy()));
        self.plugin("watch", &code.replace("EXPRESSION", expression));
        self.home.script(
            "watch.py",
            &format!(
                "#!/usr/bin/python3 -S\nimport json, os, sys, time\nfor line in sys.stdin:\n    e = json.loads(line)\n    answer = 'ok'\n    with open({:?}, 'a') as seen:\n        value = {expression}\n        if value is not None: seen.write(str(value) + '\\n')\n    print(answer, flush=True)\n",
                seen.to_string_lossy()
            ),
        );
    }

    /// Installs a plugin next to the home, at `../PATH`.
    fn plugin(&self, path: &str, code: &str) {
        let folder = self.home.path().with_file_name(path);
        let name = path.rsplit('/').next().unwrap_or(path);
        write(&folder, "plugin.yaml", &format!("name: {name}\n"));
        write(&folder, "__init__.py", code);
    }

    fn send(&self, from: usize, to: usize) {
        for round in from..to {
            self.home.answer("hermes", &hermes_shell(&format!("echo {round}")));
        }
    }

    fn status_of(&self, name: &str) -> Value {
        let status = self.home.run(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
        let observers = status["observers"].as_array().cloned().unwrap_or_default();
        observers.into_iter().find(|observer| observer["name"] == name).unwrap_or_default()
    }

    /// Stops the daemon and lets each observer handle all remaining events; nothing arrives after that.
    fn drain_all(&self) {
        wait_until("the relay has published everything", || {
            let status = self.home.json(&["status", "--json"]);
            self.nats.is_none() || status["relay"]["published"] == status["log"]["rows"]
        });
        self.home.text(&["stop"]);
        let status = self.home.run(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
        let names = status["observers"].as_array().cloned().unwrap_or_default();
        assert!(!names.is_empty(), "{status}");
        for name in names.iter().filter_map(|observer| observer["name"].as_str()) {
            self.home.text(&["observe", name, "--drain"]);
        }
    }

    fn start_observer(&self, arguments: &[&str]) -> ObserverProcess {
        let child = self
            .home
            .command([&["observe"], arguments].concat())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        ObserverProcess(child.expect("hookbus observe starts"))
    }

    fn dead_letters(&self) -> Vec<Value> {
        let listed = self.home.run(&["dead", "list", "--json"]);
        let text = String::from_utf8(listed.stdout).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

impl Drop for ObserverProcess {
    fn drop(&mut self) {
        if self.0.try_wait().expect("ours").is_none() {
            self.0.kill().expect("ours");
            self.0.wait().expect("ours");
        }
    }
}

/// A long-lived observer of tool calls.
const WATCH: &str = "  tool.before:\n    - {name: watch, mode: observe, long_lived: true, command: ../watch.py, wait: 0.05}\n";

/// The same observer as a plugin.
fn as_plugin(hooks: &str) -> String {
    hooks.replace("long_lived: true, command: ../watch.py", "python: ../watch")
}

const WATCHING_PLUGIN: &str = "
import json, os, time
def watch(tool_name, args, session_id, **kwargs):
    e = {'tool_input': args, 'session_id': session_id}
    e['hookbus'] = {'attempt': int(os.environ['HOOKBUS_ATTEMPT'])}
    answer = 'ok'
    with open(SEEN, 'a') as seen:
        value = EXPRESSION
        if value is not None: seen.write(str(value) + '\\n')
    if answer != 'ok':
        raise RuntimeError(json.loads(answer)['error'])
    return {'action': 'block', 'message': 'ignored'}
def register(ctx):
    ctx.register_hook('pre_tool_call', watch)
";

/// The number in the shell command of an event that [`Setup::send`] sent.
const EVENT_NUMBER: &str = "e['tool_input']['command'].split()[1]";

fn numbers(lines: &[String]) -> Vec<usize> {
    lines.iter().map(|line| line.parse().expect("a number")).collect()
}

/// The numbers without those that were delivered again.
fn without_repeats(lines: &[String]) -> Vec<usize> {
    let mut seen = Vec::new();
    for number in numbers(lines) {
        if !seen.contains(&number) {
            seen.push(number);
        }
    }
    seen
}

fn kill(pid: &Value) {
    let pid = i32::try_from(pid.as_i64().expect("a pid")).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a pid"), Signal::KILL).expect("it can be killed");
}

fn every_event_is_delivered_in_order(setup: &Setup) {
    setup.observe_with(EVENT_NUMBER);
    let _daemon = setup.home.serve();
    setup.send(0, 30);
    wait_until("all events are delivered", || setup.seen().len() >= 30);
    assert_eq!(numbers(&setup.seen()), (0..30).collect::<Vec<_>>());
    wait_until("the status is up to date", || {
        let state = setup.status_of("watch");
        state["state"] == "working" && state["handled"] == 30 && state["lag_events"] == 0
    });
}

/// This holds without a daemon too: events before the observer was configured are skipped, the first one after
/// it is delivered.
fn a_new_observer_starts_with_the_first_event_after_its_configuration(setup: &Setup) {
    setup.observe_with(EVENT_NUMBER);
    setup.write_hooks("  tool.before:\n    - rule: {when: {command: never}, block: no}\n");
    setup.send(0, 3);
    setup.write_hooks(WATCH);
    setup.send(3, 6);
    let _daemon = setup.home.serve();
    setup.send(6, 9);
    wait_until("all events are delivered", || setup.seen().len() >= 6);
    assert_eq!(numbers(&setup.seen()), (3..9).collect::<Vec<_>>());
}

fn no_event_is_lost_when_the_observer_or_the_daemon_is_killed(setup: &Setup) {
    setup.observe_with(EVENT_NUMBER);
    let mut daemon = Some(setup.home.serve());
    for round in 0..6 {
        setup.send(round * 10, round * 10 + 5);
        if round % 2 == 0 {
            wait_until("the observer is working", || {
                setup.status_of("watch")["state"] == "working"
            });
            kill(&setup.status_of("watch")["pid"]);
        } else {
            drop(daemon.take()); // SIGKILL
        }
        setup.send(round * 10 + 5, round * 10 + 10);
        daemon = daemon.or_else(|| Some(setup.home.serve()));
    }
    wait_until("all events are delivered", || without_repeats(&setup.seen()).len() >= 60);
    assert_eq!(without_repeats(&setup.seen()), (0..60).collect::<Vec<_>>());
}

fn a_failed_event_is_retried_before_later_events(setup: &Setup) {
    let flag = setup.home.work().join("failed");
    setup.observe_with(&format!(
        "{EVENT_NUMBER}\n        if value == '3' and e['hookbus']['attempt'] < 3:\n            open({:?}, 'a').write('x')\n            value, answer = None, json.dumps({{'error': 'not yet'}})",
        flag.to_string_lossy()
    ));
    let _daemon = setup.home.serve();
    setup.send(0, 6);
    wait_until("all events are delivered", || setup.seen().len() >= 6);
    assert_eq!(numbers(&setup.seen()), (0..6).collect::<Vec<_>>());
    assert_eq!(fs::read_to_string(flag).expect("it failed").len(), 2);
    assert_eq!(setup.dead_letters(), Vec::<Value>::new());
}

fn an_event_that_keeps_failing_becomes_a_dead_letter_and_the_rest_goes_on(setup: &Setup) {
    let broken = setup.home.work().join("broken");
    fs::write(&broken, "").expect("a file");
    setup.observe_with(&format!(
        "{EVENT_NUMBER}\n        if value == '2' and os.path.exists({:?}):\n            value, answer = None, json.dumps({{'error': 'cannot handle 2'}})",
        broken.to_string_lossy()
    ));
    setup.write_hooks(&WATCH.replace("wait: 0.05", "wait: 0.05, tries: 3"));
    let _daemon = setup.home.serve();
    setup.send(0, 5);
    wait_until("the other events are delivered", || setup.seen().len() >= 4);
    assert_eq!(numbers(&setup.seen()), [0, 1, 3, 4]);
    let dead = setup.dead_letters();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0]["tries"], 3);
    assert!(dead[0]["error"].as_str().is_some_and(|error| error.ends_with("cannot handle 2")));
    assert_eq!(dead[0]["event"]["data"]["tool_input"]["command"], "echo 2");
    wait_until("the status shows the dead letter", || {
        setup.status_of("watch")["dead_letters"] == 1
    });
    let seq = dead[0]["event"]["seq"].to_string();
    let shown = setup.home.text(&["dead", "show", "watch", &seq]);
    assert!(shown.contains("cannot handle 2") && shown.contains("echo 2"), "{shown}");
    // While the observer still fails, the dead letter stays; after the fix it is delivered.
    assert!(!setup.home.run(&["dead", "retry", "watch", &seq]).status.success());
    assert_eq!(setup.dead_letters().len(), 1);
    fs::remove_file(broken).expect("ours");
    setup.home.text(&["dead", "retry", "watch", "--all"]);
    assert_eq!(setup.dead_letters(), Vec::<Value>::new());
    assert_eq!(numbers(&setup.seen()), [0, 1, 3, 4, 2]);
}

fn a_dead_letter_can_be_dropped(setup: &Setup) {
    setup.write_hooks(
        "  tool.before:\n    - {name: no, mode: observe, command: 'false', tries: 1}\n",
    );
    let _daemon = setup.home.serve();
    setup.send(0, 2);
    wait_until("both are dead letters", || setup.dead_letters().len() == 2);
    let id = setup.dead_letters()[0]["event"]["id"].as_str().expect("an id").to_owned();
    setup.home.text(&["dead", "drop", "no", &id]);
    assert_eq!(setup.dead_letters().len(), 1);
    setup.home.text(&["dead", "drop", "no", "--all"]);
    assert_eq!(setup.dead_letters(), Vec::<Value>::new());
    let nothing = setup.home.run(&["dead", "drop", "no", "7"]);
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("dead list"));
}

fn a_stand_by_worker_takes_over_when_the_first_is_killed(setup: &Setup) {
    setup.observe_with(&format!("{EVENT_NUMBER} + ' ' + str(os.getppid())"));
    let daemon = relay_only(setup);
    let mut first = setup.start_observer(&["watch"]);
    wait_until("the first is working", || setup.status_of("watch")["state"] == "working");
    let _second = setup.start_observer(&["watch"]);
    setup.send(0, 5);
    wait_until("the first has handled them", || setup.seen().len() >= 5);
    wait_until("the position is saved", || {
        let state = setup.status_of("watch");
        // The lag is counted after each save. The stand-by worker writes the same status file.
        state["pid"] == first.0.id() && state["handled"] == 5 && state["lag_events"] == 0
    });
    first.0.kill().expect("ours");
    first.0.wait().expect("ours");
    setup.send(5, 10);
    let numbers_seen = || -> Vec<String> {
        setup.seen().iter().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
    };
    wait_until("the second has handled the rest", || without_repeats(&numbers_seen()).len() >= 10);
    let who: Vec<String> =
        setup.seen().iter().filter_map(|line| Some(line.split_once(' ')?.1.to_owned())).collect();
    assert_eq!(without_repeats(&numbers_seen()), (0..10).collect::<Vec<_>>());
    assert!(who[..5].iter().all(|pid| *pid == who[0]) && who[9] != who[0], "{who:?}");
    drop(daemon);
}

/// With NATS, a daemon that relays but runs no observers.
fn relay_only(setup: &Setup) -> Option<Daemon> {
    let nats = setup.nats.as_ref()?;
    let hooks = fs::read_to_string(setup.home.path().join("hookbus.yaml")).expect("hooks");
    let other = setup.home.serve_with(&["--no-observers"]);
    assert!(hooks.contains(&nats.url()));
    Some(other)
}

fn workers_share_sessions_and_each_session_stays_in_order(setup: &Setup) {
    setup.observe_with(
        "e['session_id'] + ' ' + e['tool_input']['command'].split()[1] + ' ' + str(os.getppid())",
    );
    setup.write_hooks(&WATCH.replace("wait: 0.05", "share: session"));
    let daemon = relay_only(setup);
    let _workers = [setup.start_observer(&["watch"]), setup.start_observer(&["watch"])];
    let mut sent = 0;
    // Which worker gets which session is not fixed, so events are sent until both have handled one.
    wait_until("both have handled something", || {
        for session in 0..8 {
            let mut payload = hermes_shell(&format!("echo {sent}"));
            payload["session_id"] = json!(format!("session-{session}"));
            payload["extra"] = json!({});
            setup.home.answer("hermes", &payload);
            sent += 1;
        }
        let mut who: Vec<String> = setup
            .seen()
            .iter()
            .filter_map(|line| line.split(' ').nth(2).map(str::to_owned))
            .collect();
        who.sort();
        who.dedup();
        who.len() == 2
    });
    wait_until("all events are delivered", || {
        let mut seen = numbers_of(&setup.seen());
        seen.sort_unstable();
        seen.dedup();
        seen.len() == sent
    });
    for session in 0..8 {
        let own: Vec<String> = setup
            .seen()
            .iter()
            .filter_map(|line| Some(line.strip_prefix(&format!("session-{session} "))?.to_owned()))
            .filter_map(|rest| Some(rest.split(' ').next()?.to_owned()))
            .collect();
        let numbers_seen = without_repeats(&own);
        assert!(numbers_seen.is_sorted(), "{session}: {numbers_seen:?}");
    }
    drop(daemon);
}

fn numbers_of(lines: &[String]) -> Vec<usize> {
    lines.iter().filter_map(|line| line.split(' ').nth(1)?.parse().ok()).collect()
}

fn filters_select_the_events_of_an_observer(setup: &Setup) {
    let script = |name: &str| {
        setup.home.script(
            name,
            &format!(
                "#!/bin/sh\ncat > /dev/null; echo {name} >> {}\n",
                setup.seen_file().display()
            ),
        );
        format!("mode: observe, command: ../{name}")
    };
    setup.write_hooks(&format!(
        "  tool.*:\n    - {{{}}}\n    - {{agent: gemini, {}}}\n    - {{tool: file.write, {}}}\n    - {{session: 'other-*', {}}}\n  pre_tool_call:\n    - {{{}}}\n  decision:\n    - {{{}}}\n  \"*\":\n    - rule: {{when: {{command: 'echo 1'}}, context: x}}\n",
        script("all"), script("gemini"), script("writes"), script("other"), script("own-name"), script("decisions"),
    ));
    let _daemon = setup.home.serve();
    setup.home.answer("hermes", &hermes_shell("echo 1"));
    setup.home.answer("gemini", &gemini_shell("echo 2"));
    let mut other = hermes_shell("echo 3");
    other["session_id"] = json!("other-1");
    setup.home.answer("hermes", &other);
    let mut expected =
        ["all", "all", "all", "gemini", "other", "own-name", "own-name", "decisions"]
            .map(str::to_owned)
            .to_vec();
    expected.sort();
    wait_until("all events are delivered", || setup.seen().len() >= expected.len());
    setup.drain_all();
    let mut seen = setup.seen();
    seen.sort();
    assert_eq!(seen, expected);
}

fn a_command_gets_the_same_input_as_a_decision_hook(setup: &Setup) {
    let seen = setup.seen_file();
    let file = seen.to_string_lossy();
    setup.home.script(
        "show.sh",
        &format!(
            "#!/bin/sh\n(cat; pwd; echo $HOOKBUS_ATTEMPT) > {file}.part; mv {file}.part {file}\n"
        ),
    );
    setup.write_hooks("  tool.before:\n    - {name: show, mode: observe, command: ../show.sh}\n");
    let _daemon = setup.home.serve();
    let payload = hermes_shell("echo 1");
    setup.home.answer("hermes", &payload);
    wait_until("the command ran", || seen.exists());
    let text = fs::read_to_string(seen).expect("it wrote");
    let (json_part, rest) = text.rsplit_once("}/").expect("JSON, then a directory");
    let mut read: Value = serde_json::from_str(&format!("{json_part}}}")).expect("JSON");
    let ours = read.as_object_mut().and_then(|fields| fields.remove("hookbus")).expect("ours");
    assert_eq!(read, payload);
    assert_eq!((&ours["kind"], &ours["attempt"]), (&json!("tool.before"), &json!(1)));
    assert_eq!(ours["seq"], setup.home.log(&["--kind", "tool.before"])[0]["seq"]);
    let beside_its_file = setup.home.path();
    assert_eq!(format!("/{rest}"), format!("{}\n1\n", beside_its_file.to_string_lossy()));
}

fn events_that_a_killed_worker_did_not_finish_are_delivered_again(setup: &Setup) {
    setup.observe_with(&format!("{EVENT_NUMBER}\n        time.sleep(0.1)"));
    let daemon = setup.home.serve_with(&["--no-observers"]);
    setup.send(0, 10);
    let mut first = setup.start_observer(&["watch"]);
    wait_until("the first event is delivered", || !setup.seen().is_empty());
    first.0.kill().expect("ours");
    first.0.wait().expect("ours");
    let summary = setup.home.json(&["observe", "watch", "--drain", "--json"]);
    assert!(summary["handled"].as_u64() >= Some(1), "{summary}");
    assert_eq!(without_repeats(&setup.seen()), (0..10).collect::<Vec<_>>());
    drop(daemon);
}

fn switching_share_on_and_off_neither_loses_nor_repeats_events(setup: &Setup) {
    setup.observe_with(EVENT_NUMBER);
    let daemon = setup.home.serve_with(&["--no-observers"]);
    let relayed = || {
        let status = setup.home.json(&["status", "--json"]);
        setup.nats.is_none() || status["relay"]["published"] == status["log"]["rows"]
    };
    for (round, share) in ["share: session", "wait: 0.05", "share: session"].iter().enumerate() {
        setup.write_hooks(&WATCH.replace("wait: 0.05", share));
        for session in 0..8 {
            let mut payload = hermes_shell(&format!("echo {}", round * 8 + session));
            payload["session_id"] = json!(format!("session-{session}"));
            payload["extra"] = json!({});
            setup.home.answer("hermes", &payload);
        }
        wait_until("the relay has published everything", relayed);
        setup.home.text(&["observe", "watch", "--drain"]);
        let mut seen = numbers(&setup.seen());
        seen.sort_unstable();
        assert_eq!(seen, (0..=round * 8 + 7).collect::<Vec<_>>(), "each once");
    }
    drop(daemon);
}

fn filters_apply_to_decisions_too(setup: &Setup) {
    setup.observe_with("e['hookbus']['kind'] + ' ' + e['hookbus']['agent']");
    setup.write_hooks("  decision:\n    - {name: watch, mode: observe, agent: hermes, tool: shell, long_lived: true, command: ../watch.py}\n  tool.before:\n    - rule: {when: {command: echo}, context: x}\n");
    let _daemon = setup.home.serve();
    setup.home.answer("gemini", &gemini_shell("echo 1"));
    setup.home.answer("hermes", &hermes_shell("echo 2"));
    wait_until("the decision is delivered", || !setup.seen().is_empty());
    assert_eq!(setup.seen(), ["decision hermes"]);
}

/// Every callback that is registered for an event is called.
fn plugins_get_events_of_every_agent_with_hermes_names_and_arguments(setup: &Setup) {
    let seen = format!("{:?}", setup.seen_file().to_string_lossy());
    let code = format!(
        "def record(*words):\n    open({seen}, 'a').write(' '.join(map(str, words)) + '\\n')\n\
         async def second(tool_name, args, **kwargs):\n    record('second', args['command'])\n\
         def register(ctx):\n    \
         ctx.register_hook('pre_tool_call', lambda tool_name, args, cwd, **k: record('first', tool_name, args['command'], k['session_id'], cwd is not None))\n    \
         ctx.register_hook('pre_tool_call', second)\n    \
         ctx.register_hook('on_session_start', lambda platform='', **k: record('start', platform))\n"
    );
    setup.plugin("many/one", &code);
    setup.plugin("many/two", &code.replace("'first'", "'other'").replace("'second'", "'fourth'"));
    setup.plugin("many/off", &code.replace("'first'", "'never'"));
    let gateway = setup.home.path().with_file_name("gateway");
    write(&gateway.join("greet"), "HOOK.yaml", "name: greet\nevents: [session:start]\n");
    let handler = format!(
        "def handle(event_type, context):\n    open({seen}, 'a').write(event_type + '\\n')\n"
    );
    write(&gateway.join("greet"), "handler.py", &handler);
    let nats = setup.nats.as_ref().map(|nats| format!("nats: {{url: \"{}\"}}\n", nats.url()));
    setup.home.write_hooks(&format!(
        "trust: home\n{}plugins: {{enabled: [one, two]}}\nhooks:\n  '*':\n    \
         - {{name: many, mode: observe, python: ../many}}\n    - {{name: gateway, mode: observe, python: ../gateway}}\n",
        nats.unwrap_or_default()
    ));
    let _daemon = setup.home.serve();
    setup.home.answer("hermes", &hermes_shell("echo 1"));
    setup.home.answer("gemini", &gemini_shell("echo 2"));
    let mut claude = one("claude", "PreToolUse");
    claude["tool_input"] = json!({"command": "echo 3"});
    setup.home.answer("claude", &claude);
    setup.home.answer("claude", &one("claude", "SessionStart"));
    wait_until("all events are delivered", || setup.seen().len() >= 15);
    let seen = setup.seen();
    let ours = |start: &str| -> Vec<String> {
        seen.iter().filter(|line| line.starts_with(start)).cloned().collect()
    };
    let session = |payload: &Value| payload["session_id"].as_str().unwrap_or_default().to_owned();
    let first = [
        format!("first terminal echo 1 {} True", session(&hermes_shell(""))),
        format!("first run_shell_command echo 2 {} True", session(&gemini_shell(""))),
        format!(
            "first {} echo 3 {} True",
            claude["tool_name"].as_str().unwrap_or_default(),
            session(&claude)
        ),
    ];
    assert_eq!(ours("first"), first, "{seen:?}");
    assert_eq!(ours("second"), ["second echo 1", "second echo 2", "second echo 3"]);
    assert_eq!((ours("other").len(), ours("fourth").len()), (3, 3));
    assert_eq!(ours("start"), ["start claude", "start claude"]);
    assert_eq!((ours("session:start").len(), ours("never").len()), (1, 0));
    wait_until("the status is up to date", || {
        let state = setup.status_of("many");
        state["state"] == "working" && state["lag_events"] == 0 && state["dead_letters"] == 0
    });
}

fn only_the_plugin_that_failed_gets_the_event_again(setup: &Setup) {
    let seen = format!("{:?}", setup.seen_file().to_string_lossy());
    let code = |name: &str, body: &str| {
        format!(
            "import os\ndef callback(args, **k):\n    open({seen}, 'a').write('{name} ' + args['command'] + '\\n')\n    {body}\n\
             def register(ctx):\n    ctx.register_hook('pre_tool_call', callback)\n"
        )
    };
    let fails =
        "if args['command'] == 'echo 0' and os.environ['HOOKBUS_ATTEMPT'] == '1': os._exit(3)";
    setup.plugin("many/a", &code("a", fails));
    setup.plugin("many/b", &code("b", "pass"));
    let hooks = "  tool.before:\n    - {name: many, mode: observe, python: ../many, wait: 0.05}\n";
    let nats = setup.nats.as_ref().map(|nats| format!("nats: {{url: \"{}\"}}\n", nats.url()));
    setup.home.write_hooks(&format!(
        "trust: home\n{}plugins: {{enabled: [a, b]}}\nhooks:\n{hooks}",
        nats.unwrap_or_default()
    ));
    let _daemon = setup.home.serve();
    setup.send(0, 2);
    wait_until("all events are delivered", || setup.seen().len() >= 5);
    let of = |name: &str| -> Vec<String> {
        setup.seen().iter().filter(|line| line.starts_with(name)).cloned().collect()
    };
    assert_eq!(of("a"), ["a echo 0", "a echo 0", "a echo 1"]);
    assert_eq!(of("b"), ["b echo 0", "b echo 1"]);
}

/// A missing variable is not the event's fault, so no event becomes a dead letter.
fn an_observer_waits_until_the_variables_of_its_plugin_are_set(setup: &Setup) {
    setup.observe_with(EVENT_NUMBER);
    let manifest = setup.home.path().with_file_name("watch").join("plugin.yaml");
    fs::write(&manifest, "name: watch\nrequires_env: [A_TOKEN]\n").expect("a manifest");
    let _daemon = setup.home.serve();
    setup.send(0, 2);
    wait_until("the status names the variable", || {
        setup.status_of("watch")["error"].as_str().is_some_and(|why| why.contains("A_TOKEN"))
    });
    fs::write(&manifest, "name: watch\n").expect("a manifest");
    wait_until("all events are delivered", || setup.seen().len() >= 2);
    assert_eq!(numbers(&setup.seen()), [0, 1]);
    assert_eq!(setup.dead_letters(), Vec::<Value>::new());
}

macro_rules! plugin_contract {
    ($($test:ident),* $(,)?) => {
        mod plugins_from_the_log {
            $(#[test] fn $test() {
                super::$test(&super::Setup::with_log(super::WATCH).with_plugin());
            })*
        }
        mod plugins_from_nats {
            $(#[test] fn $test() {
                super::$test(&super::Setup::with_nats(super::WATCH).with_plugin());
            })*
        }
    };
}

plugin_contract!(
    every_event_is_delivered_in_order,
    a_new_observer_starts_with_the_first_event_after_its_configuration,
    no_event_is_lost_when_the_observer_or_the_daemon_is_killed,
    a_failed_event_is_retried_before_later_events,
    an_event_that_keeps_failing_becomes_a_dead_letter_and_the_rest_goes_on,
    a_stand_by_worker_takes_over_when_the_first_is_killed,
    workers_share_sessions_and_each_session_stays_in_order,
    events_that_a_killed_worker_did_not_finish_are_delivered_again,
    switching_share_on_and_off_neither_loses_nor_repeats_events,
    plugins_get_events_of_every_agent_with_hermes_names_and_arguments,
    only_the_plugin_that_failed_gets_the_event_again,
    an_observer_waits_until_the_variables_of_its_plugin_are_set,
);

macro_rules! contract {
    ($($test:ident),* $(,)?) => {
        mod from_the_log {
            $(#[test] fn $test() { super::$test(&super::Setup::with_log(super::WATCH)); })*
        }
        mod from_nats {
            $(#[test] fn $test() { super::$test(&super::Setup::with_nats(super::WATCH)); })*
        }
    };
}

contract!(
    every_event_is_delivered_in_order,
    a_new_observer_starts_with_the_first_event_after_its_configuration,
    no_event_is_lost_when_the_observer_or_the_daemon_is_killed,
    a_failed_event_is_retried_before_later_events,
    an_event_that_keeps_failing_becomes_a_dead_letter_and_the_rest_goes_on,
    a_dead_letter_can_be_dropped,
    a_stand_by_worker_takes_over_when_the_first_is_killed,
    workers_share_sessions_and_each_session_stays_in_order,
    filters_select_the_events_of_an_observer,
    a_command_gets_the_same_input_as_a_decision_hook,
    events_that_a_killed_worker_did_not_finish_are_delivered_again,
    switching_share_on_and_off_neither_loses_nor_repeats_events,
    filters_apply_to_decisions_too,
);

/// The server hangs for longer than a lease, in the middle of a batch.
#[test]
fn no_event_is_lost_when_the_nats_server_hangs() {
    let setup = Setup::with_nats(WATCH);
    setup.observe_with(&format!("{EVENT_NUMBER}\n        time.sleep(0.3)"));
    let _daemon = setup.home.serve_with(&["--no-observers"]);
    setup.send(0, 20);
    wait_until("the relay has published everything", || {
        setup.home.json(&["status", "--json"])["relay"]["published"].as_u64() >= Some(20)
    });
    let _worker = setup.start_observer(&["watch", "--from", "start"]);
    wait_until("the first event is delivered", || !setup.seen().is_empty());
    let nats = setup.nats.as_ref().expect("a server");
    nats.freeze();
    std::thread::sleep(Duration::from_secs(8));
    nats.thaw();
    wait_until("all events are delivered", || without_repeats(&setup.seen()).len() >= 20);
    assert_eq!(without_repeats(&setup.seen()), (0..20).collect::<Vec<_>>());
}

#[test]
fn an_answer_that_is_cut_off_or_too_long_is_a_failure() {
    for (name, answer, why) in [
        (
            "half",
            "sys.stdout.write('{\"error\": \"x'); sys.stdout.flush(); os._exit(1)",
            "without an answer",
        ),
        ("long", "print(json.dumps({'error': 'x' * 1500000}), flush=True)", "longer than 1 MiB"),
    ] {
        let setup = Setup::with_log(&WATCH.replace("wait: 0.05", "tries: 1"));
        setup.observe_with(&format!("None\n        {answer}"));
        setup.send(0, 2);
        let summary = setup.home.json(&["observe", "watch", "--drain", "--json"]);
        assert_eq!((&summary["handled"], &summary["set_aside"]), (&json!(0), &json!(2)), "{name}");
        let error = setup.dead_letters()[0]["error"].as_str().expect("an error").to_owned();
        assert!(error.contains(why), "{name}: {error}");
    }
}

#[test]
fn a_long_lived_program_can_finish_after_its_stdin_is_closed() {
    let setup = Setup::with_log(WATCH);
    setup.home.script("watch.py", &format!("#!/usr/bin/python3 -S\nimport sys\nseen = open({:?}, 'w')\nfor line in sys.stdin:\n    seen.write('one\\n')\n    print('ok', flush=True)\nseen.write('end\\n')\n", setup.seen_file().to_string_lossy()));
    setup.send(0, 2);
    setup.home.text(&["observe", "watch", "--drain"]);
    assert_eq!(setup.seen(), ["one", "one", "end"]);
}

#[test]
fn the_daemon_replaces_an_observer_that_got_sigterm() {
    let setup = Setup::with_log(WATCH);
    setup.observe_with(EVENT_NUMBER);
    let _daemon = setup.home.serve();
    wait_until("the observer is working", || setup.status_of("watch")["state"] == "working");
    let first = setup.status_of("watch")["pid"].clone();
    let pid = Pid::from_raw(i32::try_from(first.as_i64().expect("a pid")).expect("a pid"));
    kill_process(pid.expect("a pid"), Signal::TERM).expect("it can be signalled");
    setup.send(0, 3);
    wait_until("a new observer handles the events", || setup.seen().len() >= 3);
}

/// The attempt that was running fails after the signal; the observer exits instead of retrying.
#[test]
fn an_observer_that_is_stopped_during_a_failing_attempt_exits() {
    let setup = Setup::with_log(
        "  tool.before:\n    - {name: slow, mode: observe, command: ../slow.sh, wait: 600}\n",
    );
    let begun = setup.seen_file();
    let script = format!("#!/bin/sh\necho begun >> {}\nsleep 1\nexit 1\n", begun.display());
    setup.home.script("slow.sh", &script);
    setup.send(0, 1);
    let mut observer = setup.start_observer(&["slow"]);
    wait_until("the attempt has begun", || begun.exists());
    kill_process(Pid::from_child(&observer.0), Signal::TERM).expect("it can be signalled");
    wait_until("the observer has exited", || observer.0.try_wait().expect("ours").is_some());
    assert_eq!(setup.seen().len(), 1, "no second attempt");
    assert_eq!(setup.dead_letters(), Vec::<Value>::new());
}

#[test]
fn a_corrected_nats_password_reaches_running_observers() {
    let server = NatsServer::start_with(&["--user", "me", "--pass", "right"]);
    let setup = Setup { home: Home::with_daemon("running"), nats: None, plugin: false };
    let write = |password: &str| {
        let nats = format!("nats: {{url: \"{}\", user: me, password: {password}}}\n", server.url());
        setup.home.write_hooks(&format!("{nats}hooks:\n{WATCH}"));
    };
    write("wrong");
    setup.observe_with(EVENT_NUMBER);
    let _daemon = setup.home.serve();
    setup.send(0, 2);
    wait_until("the login fails", || {
        setup.status_of("watch")["error"].as_str().is_some_and(|error| error.contains("NATS"))
    });
    write("right");
    wait_until("all events are delivered", || setup.seen().len() >= 2);
}

#[test]
fn a_corrupt_position_starts_over_and_a_corrupt_dead_letter_is_skipped() {
    let setup = Setup::with_log(&WATCH.replace("wait: 0.05", "from: start"));
    setup.observe_with(EVENT_NUMBER);
    setup.send(0, 2);
    setup.home.text(&["observe", "watch", "--drain"]);
    let folder = setup.home.path().join("observers/watch");
    fs::write(folder.join("0of1.json"), "").expect("ours");
    fs::create_dir_all(folder.join("dead")).expect("ours");
    fs::write(folder.join("dead/x.json"), "nonsense").expect("ours");
    setup.home.text(&["observe", "watch", "--drain"]);
    assert_eq!(numbers(&setup.seen()), [0, 1, 0, 1]);
    assert!(setup.home.run(&["dead", "list"]).status.success());
}

/// A log that was restored from a backup has new events at seqs that were handled before.
#[test]
fn new_events_of_a_restored_log_are_delivered() {
    let setup = Setup::with_log(WATCH);
    setup.observe_with(EVENT_NUMBER);
    setup.send(0, 2);
    let backup = setup.home.work().join("backup");
    fs::create_dir_all(&backup).expect("a directory");
    let files = ["log.db", "log.db-wal", "log.db-shm"];
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        for file in files {
            drop(fs::remove_file(to.join(file)));
            drop(fs::copy(from.join(file), to.join(file)));
        }
    };
    copy(&setup.home.path(), &backup);
    setup.send(2, 5);
    setup.home.text(&["observe", "watch", "--drain"]);
    copy(&backup, &setup.home.path());
    setup.send(5, 7);
    setup.home.text(&["observe", "watch", "--drain"]);
    assert_eq!(numbers(&setup.seen()), [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn dead_letters_remain_when_their_observer_is_removed() {
    let setup = Setup::with_log(
        "  tool.before:\n    - {name: no, mode: observe, command: 'false', tries: 1}\n",
    );
    setup.send(0, 2);
    setup.home.text(&["observe", "no", "--drain"]);
    setup.write_hooks("  {}\n");
    assert_eq!(setup.dead_letters().len(), 2);
    let seq = setup.dead_letters()[0]["event"]["seq"].to_string();
    setup.home.text(&["dead", "show", "no", &seq]);
    setup.home.text(&["dead", "drop", "no", "--all"]);
    assert_eq!(setup.dead_letters(), Vec::<Value>::new());
}

/// An observer that read the log continues with the stream once a server is configured.
#[test]
fn adding_a_nats_server_repeats_no_event() {
    let setup = Setup::with_log(WATCH);
    setup.observe_with(EVENT_NUMBER);
    setup.send(0, 5);
    setup.home.text(&["observe", "watch", "--drain"]);
    let setup = Setup { home: setup.home, nats: Some(NatsServer::start()), plugin: false };
    setup.write_hooks(WATCH);
    let _daemon = setup.home.serve();
    setup.send(5, 8);
    wait_until("the rest is delivered", || setup.seen().len() >= 8);
    setup.drain_all();
    assert_eq!(numbers(&setup.seen()), (0..8).collect::<Vec<_>>());
}

#[test]
fn observers_start_and_stop_with_the_hooks_file_and_the_daemon() {
    let setup = Setup::with_log(WATCH);
    setup.observe_with(EVENT_NUMBER);
    let mut daemon = setup.home.serve();
    wait_until("the observer is working", || setup.status_of("watch")["state"] == "working");
    let first = setup.status_of("watch")["pid"].clone();
    setup.write_hooks(&WATCH.replace("name: watch", "name: other"));
    wait_until("the new observer is working", || setup.status_of("other")["state"] == "working");
    let gone = |pid: &Value| !fs::exists(format!("/proc/{pid}")).expect("proc");
    wait_until("the old observer has exited", || gone(&first));
    let second = setup.status_of("other")["pid"].clone();
    daemon.kill();
    wait_until("the observer has exited with its daemon", || gone(&second));
}

#[test]
fn a_killed_observer_is_started_again() {
    let setup = Setup::with_log(WATCH);
    setup.observe_with(EVENT_NUMBER);
    let _daemon = setup.home.serve();
    wait_until("the observer is working", || setup.status_of("watch")["state"] == "working");
    let first = setup.status_of("watch")["pid"].clone();
    kill(&first);
    wait_until("another observer is working", || {
        let state = setup.status_of("watch");
        state["state"] == "working" && state["pid"] != first && state["process"]["deaths"] == 1
    });
}

#[test]
fn agents_do_not_wait_for_observers() {
    let setup =
        Setup::with_log("  tool.before:\n    - {name: slow, mode: observe, command: sleep 600}\n");
    let _daemon = setup.home.serve();
    wait_until("the observer is working", || setup.status_of("slow")["state"] == "working");
    // The observer needs ten minutes per event, yet every hook call is answered within its deadline.
    for round in 0..5 {
        setup.home.answer("hermes", &hermes_shell(&format!("echo {round}")));
    }
    wait_until("all five wait", || setup.status_of("slow")["lag_events"] == 5);
    assert_eq!(setup.home.log(&["--kind", "tool.before"]).len(), 5);
}

/// The other machine has a hooks file and reaches the server, but has no log.
#[test]
fn an_observer_on_another_machine_needs_no_log() {
    let setup =
        Setup::with_nats("  tool.before:\n    - rule: {when: {command: never}, block: no}\n");
    let _daemon = setup.home.serve();
    setup.send(0, 10);
    let elsewhere = Setup { home: Home::new(), nats: None, plugin: false };
    elsewhere.home.write_hooks(&format!("hooks:\n{WATCH}"));
    elsewhere.observe_with(EVENT_NUMBER);
    let url = setup.nats.as_ref().expect("a server").url();
    wait_until("all events are delivered", || {
        let read = elsewhere
            .home
            .json(&["observe", "watch", "--nats", &url, "--from", "start", "--drain", "--json"]);
        assert_eq!(read["set_aside"], 0);
        elsewhere.seen().len() >= 10
    });
    assert_eq!(numbers(&elsewhere.seen()), (0..10).collect::<Vec<_>>());
    assert!(!elsewhere.home.path().join("log.db").exists());
    let unknown = elsewhere.home.run(&["observe", "wach"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("did you mean `watch`?"));
}

#[test]
fn no_event_is_lost_when_the_stream_is_restored_or_purged() {
    let setup = Setup::with_nats(WATCH);
    setup.observe_with(EVENT_NUMBER);
    let mut nats = setup.nats.expect("a server");
    let setup = Setup { home: setup.home, nats: None, plugin: false };
    let _daemon = setup.home.serve();
    setup.send(0, 5);
    wait_until("all events are delivered", || setup.seen().len() >= 5);
    nats.kill();
    nats.save();
    nats.run();
    setup.send(5, 10);
    wait_until("all events are delivered", || without_repeats(&setup.seen()).len() >= 10);
    nats.kill();
    nats.restore();
    setup.send(10, 15);
    nats.run();
    wait_until("all events are delivered", || without_repeats(&setup.seen()).len() >= 15);
    nats.with_stream(async |stream, _| stream.purge().await.expect("a purge"));
    setup.send(15, 20);
    wait_until("all events are delivered", || without_repeats(&setup.seen()).len() >= 20);
    assert_eq!(without_repeats(&setup.seen()), (0..20).collect::<Vec<_>>());
}

/// An endpoint that verifies every signature and answers 503 to the first request.
struct Receiver {
    process: Child,
    port: String,
}

impl Receiver {
    fn start(setup: &Setup) -> Self {
        let port_file = setup.home.work().join("port");
        let process = Command::new(setup.home.script("receiver.py", RECEIVER))
            .args([&port_file, &setup.seen_file()])
            .stderr(Stdio::null())
            .spawn()
            .expect("python runs");
        wait_until("the endpoint listens", || port_file.exists());
        Self { process, port: fs::read_to_string(port_file).expect("a port") }
    }

    /// The observer that posts to it.
    fn hook(&self, secret: &str) -> String {
        let url = format!("http://127.0.0.1:{}/in", self.port);
        format!(
            "  tool.before:\n    - name: post\n      mode: observe\n      wait: 0.05\n      webhook: {{url: '{url}', {secret}, headers: {{X-Team: ops}}}}\n"
        )
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.process.kill().expect("ours");
        self.process.wait().expect("ours");
    }
}

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[test]
fn a_webhook_is_signed_and_retried() {
    let setup = Setup::with_log(WATCH);
    let receiver = Receiver::start(&setup);
    setup.write_hooks(&receiver.hook("secret_file: secret"));
    fs::write(setup.home.path().join("secret"), format!("{SECRET}\n")).expect("a file");
    let _daemon = setup.home.serve();
    setup.send(0, 3);
    wait_until("all are posted", || setup.seen().len() >= 4);
    assert_eq!(setup.seen(), ["0 1 ops busy", "0 2 ops ok", "1 1 ops ok", "2 1 ops ok"]);
}

/// An event may come from any bus, so its recorded environment must not decide what runs here.
#[test]
fn the_environment_recorded_by_another_bus_does_not_reach_a_command() {
    let setup = Setup::with_nats(
        "  tool.before:\n    - {name: show, mode: observe, command: ../show.sh}\n",
    );
    let seen = setup.seen_file();
    setup.home.script(
        "show.sh",
        &format!("#!/bin/sh\necho \"$EVIL $HERMES_SESSION_ID\" > {}\n", seen.display()),
    );
    let _daemon = setup.home.serve();
    setup.send(0, 1);
    wait_until("the command ran", || seen.exists());
    fs::remove_file(&seen).expect("ours");
    let nats = setup.nats.as_ref().expect("a server");
    let mut forged = nats.published().pop().expect("an event");
    let mut envelope = forged.envelope();
    envelope["context"] =
        json!(json!({"cwd": "/", "env": {"EVIL": "x", "HERMES_SESSION_ID": "s9"}}).to_string());
    envelope["source"] = json!("urn:hookbus:01a1e357-920d-7e19-bab5-6636f7000000");
    forged.body = envelope.to_string().into_bytes();
    let subject = forged.subject.replacen(
        forged.subject.split('.').nth(1).expect("a bus"),
        "01a1e357-920d-7e19-bab5-6636f7000000",
        1,
    );
    nats.with_stream(async |_, context| {
        let sent = context.publish(subject, forged.body.into()).await.expect("a stream");
        sent.await.expect("an acknowledgement");
    });
    wait_until("the command ran again", || seen.exists());
    wait_until("the command has written its line", || setup.seen().len() == 1);
    assert_eq!(setup.seen(), [" s9"]);
}

/// Its status names the missing variable.
#[test]
fn a_worker_without_the_secret_leaves_the_events_to_others() {
    let setup = Setup::with_nats(WATCH);
    let receiver = Receiver::start(&setup);
    setup.write_hooks(&receiver.hook("secret_env: POST_SECRET"));
    let _daemon = setup.home.serve_with(&["--no-observers"]);
    setup.send(0, 2);
    let _without = setup.start_observer(&["post"]);
    wait_until("the status names the variable", || {
        setup.status_of("post")["error"]
            .as_str()
            .is_some_and(|error| error.contains("set POST_SECRET"))
    });
    let with = setup
        .home
        .command(["observe", "post"])
        .env("POST_SECRET", SECRET)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _with = ObserverProcess(with.expect("hookbus observe starts"));
    wait_until("all are posted", || setup.seen().len() >= 3);
    assert_eq!(setup.seen(), ["0 1 ops busy", "0 2 ops ok", "1 1 ops ok"]);
    assert_eq!(setup.dead_letters(), Vec::<Value>::new());
}

const RECEIVER: &str = r#"#!/usr/bin/python3
import base64, hashlib, hmac, http.server, json, os, sys
key, calls = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), 0
class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        global calls
        calls += 1
        body, head = self.rfile.read(int(self.headers["content-length"])), self.headers
        signed = f'{head["webhook-id"]}.{head["webhook-timestamp"]}.'.encode() + body
        signature = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        event = json.loads(body)
        good = signature == head["webhook-signature"] and event["id"] == head["webhook-id"]
        status = 401 if not good else 503 if calls == 1 else 204
        word = {401: "forged", 503: "busy", 204: "ok"}[status]
        with open(sys.argv[2], "a") as seen:
            which = event["data"]["tool_input"]["command"].split()[1]
            seen.write(f'{which} {head["webhook-attempt"]} {head["x-team"]} {word}\n')
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
with open(sys.argv[1] + ".new", "w") as port: port.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
"#;

#[test]
fn mistakes_in_observer_entries_are_explained() {
    for (entry, expected) in [
        ("{webhook: 'http://x'}", "add `mode: observe`"),
        ("{mode: observe, webhook: nowhere}", "a webhook needs an address"),
        ("{mode: observe, webhook: {url: 'http://x', secret: hush}}", "no secret belongs in it"),
        ("{mode: observe, command: x, share: turns}", "`share` is `session`"),
        ("{mode: observe, command: x, tries: 0}", "`tries` is a number"),
        ("{mode: observe, archive: ''}", "`archive` is a directory"),
        ("{mode: observe, webhook: 'http://u:p@x/'}", "no secret belongs in it"),
        (
            "{mode: observe, webhook: {url: 'http://x', headers: {Authorization: hush}}}",
            "headers_env",
        ),
        ("{mode: observe, webhook: 'http://'}", "a webhook needs an address"),
        ("{mode: observe, webhook: 'http://x', command: y}", "write two hooks"),
        ("{mode: observe, rule: {block: x}}", "it cannot observe"),
    ] {
        let home = Home::with_hooks(&format!("hooks:\n  tool.before:\n    - {entry}\n"));
        let listed = String::from_utf8(home.run(&["hooks", "list"]).stdout).expect("text");
        assert!(listed.contains(expected), "{entry}: {listed}");
    }
    let twice = "  tool.before:\n    - {name: a, mode: observe, command: x}\n    - {name: a, mode: observe, command: y}\n";
    let home = Home::with_hooks(&format!("hooks:\n{twice}"));
    let listed = String::from_utf8(home.run(&["hooks", "list"]).stdout).expect("text");
    assert!(listed.contains("another observer is called `a`"), "{listed}");
}

#[test]
fn the_lag_counts_a_retried_event_and_those_after_it() {
    let setup = Setup::with_log(
        "  tool.before:\n    - {name: no, mode: observe, command: 'false', tries: 2, wait: 600}\n",
    );
    let _daemon = setup.home.serve();
    wait_until("the observer is working", || setup.status_of("no")["state"] == "working");
    setup.send(0, 1);
    wait_until("the event has failed", || setup.status_of("no")["error"].is_string());
    setup.send(1, 2);
    wait_until("both wait", || setup.status_of("no")["lag_events"].as_u64() >= Some(2));
    let status = setup.home.text(&["status"]);
    assert!(status.contains("rows wait") && !status.contains("nothing waits"), "{status}");
}

/// Messages that no bus published, made from one that a bus published: each with what is wrong with it.
fn forged_from(genuine: &Published) -> Vec<((String, Vec<u8>), &'static str)> {
    let own_bus = genuine.subject.split('.').nth(1).expect("a bus").to_owned();
    let other_bus = "01a1e357-920d-7e19-bab5-6636f7000000";
    let changed = |key: &str, value: Value| {
        let mut envelope = genuine.envelope();
        envelope[key] = value;
        (genuine.subject.clone(), envelope.to_string().into_bytes())
    };
    vec![
        ((genuine.subject.clone(), b"garbage \x1b[2J\xff".to_vec()), "not a hookbus envelope"),
        (changed("source", json!(format!("urn:hookbus:{other_bus}"))), "its subject is of bus"),
        (
            (genuine.subject.replacen(&own_bus, other_bus, 1), genuine.body.clone()),
            "its subject is of bus",
        ),
        (changed("subject", json!("another session")), "another one than in its subject"),
        (changed("seq", json!(1_000_000)), "no row can have the seq 1000000"),
        (changed("seq", json!(i64::MAX)), "no row can have the seq"),
        (changed("seq", json!(0)), "no row can have the seq 0"),
        (changed("seq", json!("7")), "its `seq` is invalid"),
        (changed("time", json!(7)), "its `time` is invalid"),
        (changed("dataref", json!("SECRETS/plan")), "which hookbus did not write"),
    ]
}

/// Neither does a number in them move the position of the observer.
#[test]
fn forged_messages_are_refused_and_counted_and_every_event_after_them_is_delivered() {
    let setup = Setup::with_nats(WATCH);
    setup.observe_with(EVENT_NUMBER);
    let daemon = setup.home.serve();
    setup.send(0, 3);
    wait_until("all events are delivered", || setup.seen().len() >= 3);
    let nats = setup.nats.as_ref().expect("a server");
    let forged = forged_from(&nats.published().pop().expect("an event"));
    nats.forge(forged.iter().map(|(message, _)| message.clone()));
    setup.send(3, 6);
    wait_until("all events are delivered", || setup.seen().len() >= 6);
    assert_eq!(numbers(&setup.seen()), (0..6).collect::<Vec<_>>());
    wait_until("the status counts them", || setup.status_of("watch")["refused"] == forged.len());
    assert!(setup.home.text(&["status"]).contains("10 messages from NATS refused"));
    let listed = setup.dead_letters();
    assert_eq!(listed.len(), forged.len(), "{listed:?}");
    for (message, (_, reason)) in listed.iter().zip(&forged) {
        assert!(message["error"].as_str().is_some_and(|error| error.contains(reason)), "{message}");
    }
    let text = setup.home.run(&["dead", "list"]);
    assert!(!text.stdout.contains(&b'\x1b'), "{text:?}");
    // What was refused is neither forgotten nor refused again by the next process.
    drop(daemon);
    let again = setup.home.json(&["observe", "watch", "--drain", "--json"]);
    assert_eq!((&again["handled"], &again["refused"]), (&json!(0), &json!(0)));
    assert_eq!(setup.status_of("watch")["refused"], forged.len());
    let dropped = setup.home.json(&["dead", "drop", "watch", "--all", "--json"]);
    assert_eq!(dropped["refused"], forged.len());
    assert_eq!(setup.dead_letters(), Vec::<Value>::new());
}

/// A seq that is possible, but not the next one, is delivered, because only the log knows which row has it. The
/// real events with this seq and below are delivered too.
#[test]
fn a_forged_seq_makes_an_observer_skip_nothing_even_after_a_purge() {
    let setup = Setup::with_nats(WATCH);
    setup.observe_with(EVENT_NUMBER);
    let _daemon = setup.home.serve();
    setup.send(0, 20);
    wait_until("all events are delivered", || setup.seen().len() >= 20);
    let nats = setup.nats.as_ref().expect("a server");
    let genuine = nats.published().pop().expect("an event");
    let mut envelope = genuine.envelope();
    // The stream has a message for each row, and these messages.
    let filler = (0..30).map(|_| (genuine.subject.clone(), b"filler".to_vec()));
    nats.forge(filler);
    envelope["seq"] = json!(genuine.seq + 25);
    envelope["id"] = json!("01a1e357-920d-7e19-bab5-6636f7000000");
    envelope["data"]["tool_input"]["command"] = json!("echo 1000");
    nats.forge([(genuine.subject.clone(), envelope.to_string().into_bytes())]);
    wait_until("the forged event is delivered", || setup.seen().len() >= 21);
    setup.send(20, 30);
    wait_until("all events are delivered", || without_repeats(&setup.seen()).len() >= 31);
    let seen = numbers(&setup.seen());
    assert_eq!(seen, (0..20).chain([1000]).chain(20..30).collect::<Vec<_>>());
    // The bus publishes its rows again.
    nats.with_stream(async |stream, _| stream.purge().await.expect("a purge"));
    setup.send(30, 60);
    wait_until("all events are delivered", || without_repeats(&setup.seen()).len() >= 61);
    let unique = without_repeats(&setup.seen());
    assert_eq!(unique, (0..20).chain([1000]).chain(20..60).collect::<Vec<_>>());
}

fn large_event(number: usize) -> Value {
    let mut payload = hermes_shell(&format!("echo {number}"));
    payload["tool_input"]["filler"] = json!("x".repeat(3 << 20));
    payload
}

/// What is in the object store was put there by others, too.
#[test]
fn a_payload_that_was_replaced_in_the_object_store_is_refused() {
    let setup = Setup::with_nats(WATCH);
    setup.observe_with(EVENT_NUMBER);
    let _daemon = setup.home.serve_with(&["--no-observers"]);
    setup.send(0, 1);
    setup.home.answer("hermes", &large_event(1));
    setup.home.answer("hermes", &large_event(2));
    setup.send(3, 4);
    wait_until("the relay has published everything", || {
        let status = setup.home.json(&["status", "--json"]);
        status["relay"]["published"] == status["log"]["rows"]
    });
    let nats = setup.nats.as_ref().expect("a server");
    let id = setup.home.log(&["--kind", "tool.before"])[1]["id"].clone();
    let other = large_event(1000).to_string();
    nats.with_stream(async |_, context| {
        let bucket = context.get_object_store("HOOKBUS_LARGE").await.expect("a bucket");
        let id = id.as_str().expect("an id");
        bucket.put(id, &mut other.as_bytes()).await.expect("an object");
    });
    let arguments = ["observe", "watch", "--drain", "--from", "start", "--json"];
    let summary = setup.home.json(&arguments);
    assert_eq!((&summary["handled"], &summary["refused"]), (&json!(3), &json!(1)));
    assert_eq!(numbers(&setup.seen()), [0, 2, 3]);
    let listed = setup.dead_letters();
    let error = listed[0]["error"].as_str().expect("an error");
    assert!(error.contains("its digest is another one than the event names"), "{error}");
}

/// An object without its parts looks as if they were still on their way. Events wait behind it, and other workers take over
/// from one that is silent.
#[test]
fn a_payload_whose_parts_are_missing_does_not_hold_up_the_events_behind_it() {
    let setup = Setup::with_nats(WATCH);
    setup.observe_with(EVENT_NUMBER);
    setup.write_hooks(&WATCH.replace("wait: 0.05", "wait: 0.05, tries: 2, share: session"));
    let _daemon = setup.home.serve_with(&["--no-observers"]);
    setup.send(0, 1);
    setup.home.answer("hermes", &large_event(1));
    setup.send(2, 3);
    wait_until("the relay has published everything", || {
        let status = setup.home.json(&["status", "--json"]);
        status["relay"]["published"] == status["log"]["rows"]
    });
    let nats = setup.nats.as_ref().expect("a server");
    nats.with_stream(async |_, context| {
        let parts = context.get_stream("OBJ_HOOKBUS_LARGE").await.expect("a stream");
        parts.purge().filter("$O.HOOKBUS_LARGE.C.>").await.expect("a purge");
    });
    let started = Instant::now();
    let arguments = ["observe", "watch", "--drain", "--from", "start", "--json"];
    let summary = setup.home.json(&arguments);
    assert_eq!((&summary["handled"], &summary["set_aside"]), (&json!(2), &json!(1)), "{summary}");
    assert_eq!(numbers(&setup.seen()), [0, 2]);
    // Two attempts of three seconds each.
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let listed = setup.dead_letters();
    let error = listed[0]["error"].as_str().expect("an error");
    assert!(error.contains("nothing arrived for 3 s"), "{error}");
}

/// The dead letter names an object of NATS; the observer reads the log by now.
#[test]
fn a_large_dead_letter_is_retried_with_its_payload_whatever_the_source_is() {
    let setup = Setup::with_nats(WATCH);
    let broken = setup.home.work().join("broken");
    fs::write(&broken, "").expect("a file");
    setup.observe_with(&format!(
        "len(e['tool_input']['filler'])\n        if os.path.exists({:?}):\n            value, answer = None, json.dumps({{'error': 'not now'}})",
        broken.to_string_lossy()
    ));
    setup.write_hooks(&WATCH.replace("wait: 0.05", "tries: 1"));
    let _daemon = setup.home.serve();
    setup.home.answer("hermes", &large_event(0));
    wait_until("it is a dead letter", || setup.dead_letters().len() == 1);
    fs::remove_file(broken).expect("ours");
    setup.write_hooks(&WATCH.replace("wait: 0.05", "tries: 1, source: log"));
    setup.home.text(&["dead", "retry", "watch", "--all"]);
    assert_eq!(setup.seen(), [(3 << 20).to_string()]);
    assert_eq!(setup.dead_letters(), Vec::<Value>::new());
}
