//! Observers: at least once, in order, from the log and from NATS. The same tests run on both.

#![expect(clippy::expect_used, reason = "a test that cannot set its scene has failed")]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hookbus_tests::home::{Home, Served, wait_until};
use hookbus_tests::nats::NatsServer;
use hookbus_tests::payloads::{gemini_shell, hermes_shell, one};
use hookbus_tests::plugins::write;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A home, and what its observers read from.
struct Stage {
    home: Home,
    nats: Option<NatsServer>,
    /// Whether [`WATCH`] is a plugin here, and not a program.
    plugin: bool,
}

/// An observer run by hand; killed when dropped.
struct ByHand(Child);

impl Stage {
    fn on_the_log(hooks: &str) -> Self {
        let home = Home::with_daemon("running");
        home.write_hooks(&format!("trust: home\nhooks:\n{hooks}"));
        Self { home, nats: None, plugin: false }
    }

    fn on_nats(hooks: &str) -> Self {
        let (home, nats) = (Home::with_daemon("running"), NatsServer::start());
        let url = nats.url();
        home.write_hooks(&format!("trust: home\nnats: {{url: \"{url}\"}}\nhooks:\n{hooks}"));
        Self { home, nats: Some(nats), plugin: false }
    }

    fn rewrite(&self, hooks: &str) {
        let nats = self.nats.as_ref().map(|nats| format!("nats: {{url: \"{}\"}}\n", nats.url()));
        let hooks = if self.plugin { as_plugin(hooks) } else { hooks.to_owned() };
        let nats = nats.unwrap_or_default();
        self.home.write_hooks(&format!("trust: home\n{nats}hooks:\n{hooks}"));
    }

    /// The same with a plugin as the observer.
    fn with_a_plugin(self) -> Self {
        let stage = Self { plugin: true, ..self };
        stage.rewrite(WATCH);
        stage
    }

    /// The file that the scripts here write to.
    fn seen_file(&self) -> PathBuf {
        self.home.work().join("seen")
    }

    /// The lines in it.
    fn seen(&self) -> Vec<String> {
        let text = fs::read_to_string(self.seen_file()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A long-lived observer, or a plugin, that writes down what `expression` says of each event `e`.
    fn write_down(&self, expression: &str) {
        let seen = self.seen_file();
        let code = WATCHING_PLUGIN.replace("SEEN", &format!("{:?}", seen.to_string_lossy()));
        self.plugin("watch", &code.replace("EXPRESSION", expression));
        self.home.script(
            "watch.py",
            &format!(
                "#!/usr/bin/python3 -S\nimport json, os, sys, time\nfor line in sys.stdin:\n    e = json.loads(line)\n    answer = 'ok'\n    with open({:?}, 'a') as seen:\n        said = {expression}\n        if said is not None: seen.write(str(said) + '\\n')\n    print(answer, flush=True)\n",
                seen.to_string_lossy()
            ),
        );
    }

    /// A plugin beside the home, under `../PATH`.
    fn plugin(&self, path: &str, code: &str) {
        let folder = self.home.path().with_file_name(path);
        let name = path.rsplit('/').next().unwrap_or(path);
        write(&folder, "plugin.yaml", &format!("name: {name}\n"));
        write(&folder, "__init__.py", code);
    }

    fn fire(&self, from: usize, to: usize) {
        for round in from..to {
            self.home.answer("hermes", &hermes_shell(&format!("echo {round}")));
        }
    }

    fn observer(&self, name: &str) -> Value {
        let status = self.home.run(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
        let observers = status["observers"].as_array().cloned().unwrap_or_default();
        observers.into_iter().find(|observer| observer["name"] == name).unwrap_or_default()
    }

    /// Ends the daemon, and has each observer go through all that is left for it: nothing more comes after that.
    fn let_all_come(&self) {
        wait_until("it is relayed", || {
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

    fn by_hand(&self, arguments: &[&str]) -> ByHand {
        let child = self
            .home
            .command([&["observe"], arguments].concat())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        ByHand(child.expect("hookbus observe starts"))
    }

    fn dead(&self) -> Vec<Value> {
        let listed = self.home.run(&["dead", "list", "--json"]);
        let text = String::from_utf8(listed.stdout).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        if self.0.try_wait().expect("ours").is_none() {
            self.0.kill().expect("ours");
            self.0.wait().expect("ours");
        }
    }
}

/// A long-lived observer of everything but our own rows.
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
        said = EXPRESSION
        if said is not None: seen.write(str(said) + '\\n')
    if answer != 'ok':
        raise RuntimeError(json.loads(answer)['error'])
    return {'action': 'block', 'message': 'nobody listens'}
def register(ctx):
    ctx.register_hook('pre_tool_call', watch)
";

/// What a shell call of ours says.
const WHICH: &str = "e['tool_input']['command'].split()[1]";

fn numbers(lines: &[String]) -> Vec<usize> {
    lines.iter().map(|line| line.parse().expect("a number")).collect()
}

/// Without what was seen before: what is left must be in order.
fn first_sights(lines: &[String]) -> Vec<usize> {
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

fn every_event_is_seen_in_order(stage: &Stage) {
    stage.write_down(WHICH);
    let _daemon = stage.home.serve();
    stage.fire(0, 30);
    wait_until("all are seen", || stage.seen().len() >= 30);
    assert_eq!(numbers(&stage.seen()), (0..30).collect::<Vec<_>>());
    wait_until("it says so", || {
        let state = stage.observer("watch");
        state["state"] == "working" && state["handled"] == 30 && state["lag_events"] == 0
    });
}

/// No daemon has to be up when an event comes: the first one under an observer's configuration is
/// seen, what was before it is not.
fn a_new_observer_sees_everything_from_its_configuration_on(stage: &Stage) {
    stage.write_down(WHICH);
    stage.rewrite("  tool.before:\n    - rule: {when: {command: never}, block: no}\n");
    stage.fire(0, 3);
    stage.rewrite(WATCH);
    stage.fire(3, 6);
    let _daemon = stage.home.serve();
    stage.fire(6, 9);
    wait_until("all are seen", || stage.seen().len() >= 6);
    assert_eq!(numbers(&stage.seen()), (3..9).collect::<Vec<_>>());
}

fn whatever_is_killed_nothing_is_missed(stage: &Stage) {
    stage.write_down(WHICH);
    let mut daemon = Some(stage.home.serve());
    for round in 0..6 {
        stage.fire(round * 10, round * 10 + 5);
        if round % 2 == 0 {
            wait_until("it works", || stage.observer("watch")["state"] == "working");
            kill(&stage.observer("watch")["pid"]);
        } else {
            drop(daemon.take()); // SIGKILL
        }
        stage.fire(round * 10 + 5, round * 10 + 10);
        daemon = daemon.or_else(|| Some(stage.home.serve()));
    }
    wait_until("all are seen", || first_sights(&stage.seen()).len() >= 60);
    assert_eq!(first_sights(&stage.seen()), (0..60).collect::<Vec<_>>());
}

fn an_event_that_fails_is_tried_again_and_nothing_overtakes_it(stage: &Stage) {
    let flag = stage.home.work().join("failed");
    stage.write_down(&format!(
        "{WHICH}\n        if said == '3' and e['hookbus']['attempt'] < 3:\n            open({:?}, 'a').write('x')\n            said, answer = None, json.dumps({{'error': 'not yet'}})",
        flag.to_string_lossy()
    ));
    let _daemon = stage.home.serve();
    stage.fire(0, 6);
    wait_until("all are seen", || stage.seen().len() >= 6);
    assert_eq!(numbers(&stage.seen()), (0..6).collect::<Vec<_>>());
    assert_eq!(fs::read_to_string(flag).expect("it failed").len(), 2);
    assert_eq!(stage.dead(), Vec::<Value>::new());
}

fn an_event_that_keeps_failing_is_set_aside_alone(stage: &Stage) {
    let broken = stage.home.work().join("broken");
    fs::write(&broken, "").expect("a file");
    stage.write_down(&format!(
        "{WHICH}\n        if said == '2' and os.path.exists({:?}):\n            said, answer = None, json.dumps({{'error': 'cannot stand 2'}})",
        broken.to_string_lossy()
    ));
    stage.rewrite(&WATCH.replace("wait: 0.05", "wait: 0.05, tries: 3"));
    let _daemon = stage.home.serve();
    stage.fire(0, 5);
    wait_until("the others are seen", || stage.seen().len() >= 4);
    assert_eq!(numbers(&stage.seen()), [0, 1, 3, 4]);
    let dead = stage.dead();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0]["tries"], 3);
    assert!(dead[0]["error"].as_str().is_some_and(|error| error.ends_with("cannot stand 2")));
    assert_eq!(dead[0]["event"]["data"]["tool_input"]["command"], "echo 2");
    wait_until("status tells", || stage.observer("watch")["dead_letters"] == 1);
    let seq = dead[0]["event"]["seq"].to_string();
    let shown = stage.home.text(&["dead", "show", "watch", &seq]);
    assert!(shown.contains("cannot stand 2") && shown.contains("echo 2"), "{shown}");
    // Still broken: it stays; mended: it goes.
    assert!(!stage.home.run(&["dead", "retry", "watch", &seq]).status.success());
    assert_eq!(stage.dead().len(), 1);
    fs::remove_file(broken).expect("ours");
    stage.home.text(&["dead", "retry", "watch", "--all"]);
    assert_eq!(stage.dead(), Vec::<Value>::new());
    assert_eq!(numbers(&stage.seen()), [0, 1, 3, 4, 2]);
}

fn a_dead_letter_can_be_dropped(stage: &Stage) {
    stage.rewrite("  tool.before:\n    - {name: no, mode: observe, command: 'false', tries: 1}\n");
    let _daemon = stage.home.serve();
    stage.fire(0, 2);
    wait_until("both are set aside", || stage.dead().len() == 2);
    let id = stage.dead()[0]["event"]["id"].as_str().expect("an id").to_owned();
    stage.home.text(&["dead", "drop", "no", &id]);
    assert_eq!(stage.dead().len(), 1);
    stage.home.text(&["dead", "drop", "no", "--all"]);
    assert_eq!(stage.dead(), Vec::<Value>::new());
    let nothing = stage.home.run(&["dead", "drop", "no", "7"]);
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("dead list"));
}

/// One is at work, the other stands by and takes over when the first is killed.
fn a_stand_by_takes_over(stage: &Stage) {
    stage.write_down(&format!("{WHICH} + ' ' + str(os.getppid())"));
    let daemon = without_observers(stage);
    let mut first = stage.by_hand(&["watch"]);
    wait_until("the first is at work", || stage.observer("watch")["state"] == "working");
    let _second = stage.by_hand(&["watch"]);
    stage.fire(0, 5);
    wait_until("the first has seen them", || stage.seen().len() >= 5);
    wait_until("its position is saved", || {
        let state = stage.observer("watch");
        // It counts what waits whenever it has saved; the other one writes there too.
        state["pid"] == first.0.id() && state["handled"] == 5 && state["lag_events"] == 0
    });
    first.0.kill().expect("ours");
    first.0.wait().expect("ours");
    stage.fire(5, 10);
    let sights = || -> Vec<String> {
        stage.seen().iter().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
    };
    wait_until("the second has seen the rest", || first_sights(&sights()).len() >= 10);
    let who: Vec<String> =
        stage.seen().iter().filter_map(|line| Some(line.split_once(' ')?.1.to_owned())).collect();
    assert_eq!(first_sights(&sights()), (0..10).collect::<Vec<_>>());
    assert!(who[..5].iter().all(|pid| *pid == who[0]) && who[9] != who[0], "{who:?}");
    drop(daemon);
}

/// Beside NATS somebody has to relay; the observers there are run by hand.
fn without_observers(stage: &Stage) -> Option<Served> {
    let nats = stage.nats.as_ref()?;
    let hooks = fs::read_to_string(stage.home.path().join("hookbus.yaml")).expect("hooks");
    let other = stage.home.serve_with(&["--no-observers"]);
    assert!(hooks.contains(&nats.url()));
    Some(other)
}

/// Sessions are split up among the workers; the events of each stay in order.
fn sessions_can_be_shared_out(stage: &Stage) {
    stage.write_down(
        "e['session_id'] + ' ' + e['tool_input']['command'].split()[1] + ' ' + str(os.getppid())",
    );
    stage.rewrite(&WATCH.replace("wait: 0.05", "share: session"));
    let daemon = without_observers(stage);
    let _workers = [stage.by_hand(&["watch"]), stage.by_hand(&["watch"])];
    let mut fired = 0;
    // Until both have had something to do: which session is whose is up to them.
    wait_until("both are at work", || {
        for session in 0..8 {
            let mut payload = hermes_shell(&format!("echo {fired}"));
            payload["session_id"] = json!(format!("session-{session}"));
            payload["extra"] = json!({});
            stage.home.answer("hermes", &payload);
            fired += 1;
        }
        let mut who: Vec<String> = stage
            .seen()
            .iter()
            .filter_map(|line| line.split(' ').nth(2).map(str::to_owned))
            .collect();
        who.sort();
        who.dedup();
        who.len() == 2
    });
    wait_until("all are seen", || {
        let mut seen = numbers_of(&stage.seen());
        seen.sort_unstable();
        seen.dedup();
        seen.len() == fired
    });
    for session in 0..8 {
        let own: Vec<String> = stage
            .seen()
            .iter()
            .filter_map(|line| Some(line.strip_prefix(&format!("session-{session} "))?.to_owned()))
            .filter_map(|rest| Some(rest.split(' ').next()?.to_owned()))
            .collect();
        let sights = first_sights(&own);
        assert!(sights.is_sorted(), "{session}: {sights:?}");
    }
    drop(daemon);
}

fn numbers_of(lines: &[String]) -> Vec<usize> {
    lines.iter().filter_map(|line| line.split(' ').nth(1)?.parse().ok()).collect()
}

fn filters_choose_what_is_seen(stage: &Stage) {
    let script = |name: &str| {
        stage.home.script(
            name,
            &format!(
                "#!/bin/sh\ncat > /dev/null; echo {name} >> {}\n",
                stage.seen_file().display()
            ),
        );
        format!("mode: observe, command: ../{name}")
    };
    stage.rewrite(&format!(
        "  tool.*:\n    - {{{}}}\n    - {{agent: gemini, {}}}\n    - {{tool: file.write, {}}}\n    - {{session: 'other-*', {}}}\n  pre_tool_call:\n    - {{{}}}\n  decision:\n    - {{{}}}\n  \"*\":\n    - rule: {{when: {{command: 'echo 1'}}, context: x}}\n",
        script("all"), script("gemini"), script("writes"), script("other"), script("own-name"), script("decisions"),
    ));
    let _daemon = stage.home.serve();
    stage.home.answer("hermes", &hermes_shell("echo 1"));
    stage.home.answer("gemini", &gemini_shell("echo 2"));
    let mut other = hermes_shell("echo 3");
    other["session_id"] = json!("other-1");
    stage.home.answer("hermes", &other);
    let mut expected =
        ["all", "all", "all", "gemini", "other", "own-name", "own-name", "decisions"]
            .map(str::to_owned)
            .to_vec();
    expected.sort();
    wait_until("all are seen", || stage.seen().len() >= expected.len());
    stage.let_all_come();
    let mut seen = stage.seen();
    seen.sort();
    assert_eq!(seen, expected);
}

fn a_command_reads_what_a_decision_hook_reads(stage: &Stage) {
    let seen = stage.seen_file();
    let file = seen.to_string_lossy();
    stage.home.script(
        "show.sh",
        &format!(
            "#!/bin/sh\n(cat; pwd; echo $HOOKBUS_ATTEMPT) > {file}.part; mv {file}.part {file}\n"
        ),
    );
    stage.rewrite("  tool.before:\n    - {name: show, mode: observe, command: ../show.sh}\n");
    let _daemon = stage.home.serve();
    let payload = hermes_shell("echo 1");
    stage.home.answer("hermes", &payload);
    wait_until("it ran", || seen.exists());
    let text = fs::read_to_string(seen).expect("it wrote");
    let (json_part, rest) = text.rsplit_once("}/").expect("JSON, then a directory");
    let mut read: Value = serde_json::from_str(&format!("{json_part}}}")).expect("JSON");
    let ours = read.as_object_mut().and_then(|fields| fields.remove("hookbus")).expect("ours");
    assert_eq!(read, payload);
    assert_eq!((&ours["kind"], &ours["attempt"]), (&json!("tool.before"), &json!(1)));
    assert_eq!(ours["seq"], stage.home.log(&["--kind", "tool.before"])[0]["seq"]);
    let beside_its_file = stage.home.path();
    assert_eq!(format!("/{rest}"), format!("{}\n1\n", beside_its_file.to_string_lossy()));
}

/// Events that were read but not handled when a worker had to leave come again.
fn what_was_under_way_when_a_worker_was_stopped_comes_again(stage: &Stage) {
    stage.write_down(&format!("{WHICH}\n        time.sleep(0.1)"));
    let daemon = stage.home.serve_with(&["--no-observers"]);
    stage.fire(0, 10);
    let mut first = stage.by_hand(&["watch"]);
    wait_until("it has begun", || !stage.seen().is_empty());
    first.0.kill().expect("ours");
    first.0.wait().expect("ours");
    let told = stage.home.json(&["observe", "watch", "--drain", "--json"]);
    assert!(told["handled"].as_u64() >= Some(1), "{told}");
    assert_eq!(first_sights(&stage.seen()), (0..10).collect::<Vec<_>>());
    drop(daemon);
}

/// Two that share sessions become one that does not, and the other way round: nothing is missed.
fn sharing_can_be_switched_on_and_off(stage: &Stage) {
    stage.write_down(WHICH);
    let daemon = stage.home.serve_with(&["--no-observers"]);
    let relayed = || {
        let status = stage.home.json(&["status", "--json"]);
        stage.nats.is_none() || status["relay"]["published"] == status["log"]["rows"]
    };
    for (round, share) in ["share: session", "wait: 0.05", "share: session"].iter().enumerate() {
        stage.rewrite(&WATCH.replace("wait: 0.05", share));
        for session in 0..8 {
            let mut payload = hermes_shell(&format!("echo {}", round * 8 + session));
            payload["session_id"] = json!(format!("session-{session}"));
            payload["extra"] = json!({});
            stage.home.answer("hermes", &payload);
        }
        wait_until("it is relayed", relayed);
        stage.home.text(&["observe", "watch", "--drain"]);
        let mut seen = numbers(&stage.seen());
        seen.sort_unstable();
        assert_eq!(seen, (0..=round * 8 + 7).collect::<Vec<_>>(), "each once");
    }
    drop(daemon);
}

fn a_filter_fits_decisions_too(stage: &Stage) {
    stage.write_down("e['hookbus']['kind'] + ' ' + e['hookbus']['agent']");
    stage.rewrite("  decision:\n    - {name: watch, mode: observe, agent: hermes, tool: shell, long_lived: true, command: ../watch.py}\n  tool.before:\n    - rule: {when: {command: echo}, context: x}\n");
    let _daemon = stage.home.serve();
    stage.home.answer("gemini", &gemini_shell("echo 1"));
    stage.home.answer("hermes", &hermes_shell("echo 2"));
    wait_until("it is seen", || !stage.seen().is_empty());
    assert_eq!(stage.seen(), ["decision hermes"]);
}

/// Every callback that is registered for an event hears it, under Hermes' name and with Hermes' arguments,
/// whoever the agent is.
fn plugins_hear_every_agent_in_the_words_of_hermes(stage: &Stage) {
    let seen = format!("{:?}", stage.seen_file().to_string_lossy());
    let code = format!(
        "def say(*words):\n    open({seen}, 'a').write(' '.join(map(str, words)) + '\\n')\n\
         async def second(tool_name, args, **kwargs):\n    say('second', args['command'])\n\
         def register(ctx):\n    \
         ctx.register_hook('pre_tool_call', lambda tool_name, args, cwd, **k: say('first', tool_name, args['command'], k['session_id'], cwd is not None))\n    \
         ctx.register_hook('pre_tool_call', second)\n    \
         ctx.register_hook('on_session_start', lambda platform='', **k: say('start', platform))\n"
    );
    stage.plugin("many/one", &code);
    stage.plugin("many/two", &code.replace("'first'", "'other'").replace("'second'", "'fourth'"));
    stage.plugin("many/off", &code.replace("'first'", "'never'"));
    let gateway = stage.home.path().with_file_name("gateway");
    write(&gateway.join("greet"), "HOOK.yaml", "name: greet\nevents: [session:start]\n");
    let handler = format!(
        "def handle(event_type, context):\n    open({seen}, 'a').write(event_type + '\\n')\n"
    );
    write(&gateway.join("greet"), "handler.py", &handler);
    let nats = stage.nats.as_ref().map(|nats| format!("nats: {{url: \"{}\"}}\n", nats.url()));
    stage.home.write_hooks(&format!(
        "trust: home\n{}plugins: {{enabled: [one, two]}}\nhooks:\n  '*':\n    \
         - {{name: many, mode: observe, python: ../many}}\n    - {{name: gateway, mode: observe, python: ../gateway}}\n",
        nats.unwrap_or_default()
    ));
    let _daemon = stage.home.serve();
    stage.home.answer("hermes", &hermes_shell("echo 1"));
    stage.home.answer("gemini", &gemini_shell("echo 2"));
    let mut claude = one("claude", "PreToolUse");
    claude["tool_input"] = json!({"command": "echo 3"});
    stage.home.answer("claude", &claude);
    stage.home.answer("claude", &one("claude", "SessionStart"));
    wait_until("all are seen", || stage.seen().len() >= 15);
    let seen = stage.seen();
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
    wait_until("it says so", || {
        let state = stage.observer("many");
        state["state"] == "working" && state["lag_events"] == 0 && state["dead_letters"] == 0
    });
}

/// A plugin that failed hears the event again; one beside it that did not, does not.
fn only_the_plugin_that_failed_hears_an_event_again(stage: &Stage) {
    let seen = format!("{:?}", stage.seen_file().to_string_lossy());
    let code = |name: &str, then: &str| {
        format!(
            "import os\ndef hear(args, **k):\n    open({seen}, 'a').write('{name} ' + args['command'] + '\\n')\n    {then}\n\
             def register(ctx):\n    ctx.register_hook('pre_tool_call', hear)\n"
        )
    };
    let fails =
        "if args['command'] == 'echo 0' and os.environ['HOOKBUS_ATTEMPT'] == '1': os._exit(3)";
    stage.plugin("many/a", &code("a", fails));
    stage.plugin("many/b", &code("b", "pass"));
    let hooks = "  tool.before:\n    - {name: many, mode: observe, python: ../many, wait: 0.05}\n";
    let nats = stage.nats.as_ref().map(|nats| format!("nats: {{url: \"{}\"}}\n", nats.url()));
    stage.home.write_hooks(&format!(
        "trust: home\n{}plugins: {{enabled: [a, b]}}\nhooks:\n{hooks}",
        nats.unwrap_or_default()
    ));
    let _daemon = stage.home.serve();
    stage.fire(0, 2);
    wait_until("all are seen", || stage.seen().len() >= 5);
    let of = |name: &str| -> Vec<String> {
        stage.seen().iter().filter(|line| line.starts_with(name)).cloned().collect()
    };
    assert_eq!(of("a"), ["a echo 0", "a echo 0", "a echo 1"]);
    assert_eq!(of("b"), ["b echo 0", "b echo 1"]);
}

/// What a plugin says it needs is no event's fault: nothing is set aside for it.
fn a_plugin_without_its_variables_waits_for_them(stage: &Stage) {
    stage.write_down(WHICH);
    let manifest = stage.home.path().with_file_name("watch").join("plugin.yaml");
    fs::write(&manifest, "name: watch\nrequires_env: [A_TOKEN]\n").expect("a manifest");
    let _daemon = stage.home.serve();
    stage.fire(0, 2);
    wait_until("it says what it needs", || {
        stage.observer("watch")["error"].as_str().is_some_and(|why| why.contains("A_TOKEN"))
    });
    fs::write(&manifest, "name: watch\n").expect("a manifest");
    wait_until("all are seen", || stage.seen().len() >= 2);
    assert_eq!(numbers(&stage.seen()), [0, 1]);
    assert_eq!(stage.dead(), Vec::<Value>::new());
}

macro_rules! contract_of_plugins {
    ($($test:ident),* $(,)?) => {
        mod plugins_from_the_log {
            $(#[test] fn $test() {
                super::$test(&super::Stage::on_the_log(super::WATCH).with_a_plugin());
            })*
        }
        mod plugins_from_nats {
            $(#[test] fn $test() {
                super::$test(&super::Stage::on_nats(super::WATCH).with_a_plugin());
            })*
        }
    };
}

contract_of_plugins!(
    every_event_is_seen_in_order,
    a_new_observer_sees_everything_from_its_configuration_on,
    whatever_is_killed_nothing_is_missed,
    an_event_that_fails_is_tried_again_and_nothing_overtakes_it,
    an_event_that_keeps_failing_is_set_aside_alone,
    a_stand_by_takes_over,
    sessions_can_be_shared_out,
    what_was_under_way_when_a_worker_was_stopped_comes_again,
    sharing_can_be_switched_on_and_off,
    plugins_hear_every_agent_in_the_words_of_hermes,
    only_the_plugin_that_failed_hears_an_event_again,
    a_plugin_without_its_variables_waits_for_them,
);

macro_rules! contract {
    ($($test:ident),* $(,)?) => {
        mod from_the_log {
            $(#[test] fn $test() { super::$test(&super::Stage::on_the_log(super::WATCH)); })*
        }
        mod from_nats {
            $(#[test] fn $test() { super::$test(&super::Stage::on_nats(super::WATCH)); })*
        }
    };
}

contract!(
    every_event_is_seen_in_order,
    a_new_observer_sees_everything_from_its_configuration_on,
    whatever_is_killed_nothing_is_missed,
    an_event_that_fails_is_tried_again_and_nothing_overtakes_it,
    an_event_that_keeps_failing_is_set_aside_alone,
    a_dead_letter_can_be_dropped,
    a_stand_by_takes_over,
    sessions_can_be_shared_out,
    filters_choose_what_is_seen,
    a_command_reads_what_a_decision_hook_reads,
    what_was_under_way_when_a_worker_was_stopped_comes_again,
    sharing_can_be_switched_on_and_off,
    a_filter_fits_decisions_too,
);

/// A server that hangs for longer than a lease, in the middle of a batch.
#[test]
fn a_server_that_hangs_costs_no_event() {
    let stage = Stage::on_nats(WATCH);
    stage.write_down(&format!("{WHICH}\n        time.sleep(0.3)"));
    let _daemon = stage.home.serve_with(&["--no-observers"]);
    stage.fire(0, 20);
    wait_until("it is relayed", || {
        stage.home.json(&["status", "--json"])["relay"]["published"].as_u64() >= Some(20)
    });
    let _worker = stage.by_hand(&["watch", "--from", "start"]);
    wait_until("it has begun", || !stage.seen().is_empty());
    let nats = stage.nats.as_ref().expect("a server");
    nats.freeze();
    std::thread::sleep(Duration::from_secs(8));
    nats.thaw();
    wait_until("all are seen", || first_sights(&stage.seen()).len() >= 20);
    assert_eq!(first_sights(&stage.seen()), (0..20).collect::<Vec<_>>());
}

/// What a long-lived program says counts only if it is one whole line, and the answer to its event.
#[test]
fn a_program_that_does_not_keep_to_one_line_has_failed() {
    for (name, answer, why) in [
        (
            "half",
            "sys.stdout.write('{\"error\": \"x'); sys.stdout.flush(); os._exit(1)",
            "without an answer",
        ),
        ("long", "print(json.dumps({'error': 'x' * 1500000}), flush=True)", "longer than 1 MiB"),
    ] {
        let stage = Stage::on_the_log(&WATCH.replace("wait: 0.05", "tries: 1"));
        stage.write_down(&format!("None\n        {answer}"));
        stage.fire(0, 2);
        let told = stage.home.json(&["observe", "watch", "--drain", "--json"]);
        assert_eq!((&told["handled"], &told["set_aside"]), (&json!(0), &json!(2)), "{name}");
        let error = stage.dead()[0]["error"].as_str().expect("an error").to_owned();
        assert!(error.contains(why), "{name}: {error}");
    }
}

/// At the end of its input a program may put things in order.
#[test]
fn a_long_lived_program_ends_with_its_input() {
    let stage = Stage::on_the_log(WATCH);
    stage.home.script("watch.py", &format!("#!/usr/bin/python3 -S\nimport sys\nseen = open({:?}, 'w')\nfor line in sys.stdin:\n    seen.write('one\\n')\n    print('ok', flush=True)\nseen.write('end\\n')\n", stage.seen_file().to_string_lossy()));
    stage.fire(0, 2);
    stage.home.text(&["observe", "watch", "--drain"]);
    assert_eq!(stage.seen(), ["one", "one", "end"]);
}

#[test]
fn a_supervised_observer_that_is_told_to_leave_is_replaced() {
    let stage = Stage::on_the_log(WATCH);
    stage.write_down(WHICH);
    let _daemon = stage.home.serve();
    wait_until("it works", || stage.observer("watch")["state"] == "working");
    let first = stage.observer("watch")["pid"].clone();
    let pid = Pid::from_raw(i32::try_from(first.as_i64().expect("a pid")).expect("a pid"));
    kill_process(pid.expect("a pid"), Signal::TERM).expect("it can be told");
    stage.fire(0, 3);
    wait_until("another one sees to it", || stage.seen().len() >= 3);
}

#[test]
fn a_password_that_is_mended_reaches_the_observers() {
    let server = NatsServer::start_with(&["--user", "me", "--pass", "right"]);
    let stage = Stage { home: Home::with_daemon("running"), nats: None, plugin: false };
    let write = |password: &str| {
        let nats = format!("nats: {{url: \"{}\", user: me, password: {password}}}\n", server.url());
        stage.home.write_hooks(&format!("{nats}hooks:\n{WATCH}"));
    };
    write("wrong");
    stage.write_down(WHICH);
    let _daemon = stage.home.serve();
    stage.fire(0, 2);
    wait_until("it cannot log in", || {
        stage.observer("watch")["error"].as_str().is_some_and(|error| error.contains("NATS"))
    });
    write("right");
    wait_until("all are seen", || stage.seen().len() >= 2);
}

/// Positions and dead letters that a power cut or a person spoiled stop nobody.
#[test]
fn a_spoiled_position_is_started_over() {
    let stage = Stage::on_the_log(&WATCH.replace("wait: 0.05", "from: start"));
    stage.write_down(WHICH);
    stage.fire(0, 2);
    stage.home.text(&["observe", "watch", "--drain"]);
    let folder = stage.home.path().join("observers/watch");
    fs::write(folder.join("0of1.json"), "").expect("ours");
    fs::create_dir_all(folder.join("dead")).expect("ours");
    fs::write(folder.join("dead/x.json"), "nonsense").expect("ours");
    stage.home.text(&["observe", "watch", "--drain"]);
    assert_eq!(numbers(&stage.seen()), [0, 1, 0, 1]);
    assert!(stage.home.run(&["dead", "list"]).status.success());
}

/// A log that was put back to an older state has new events at places that were seen.
#[test]
fn a_log_that_is_put_back_hides_nothing() {
    let stage = Stage::on_the_log(WATCH);
    stage.write_down(WHICH);
    stage.fire(0, 2);
    let kept = stage.home.work().join("kept");
    fs::create_dir_all(&kept).expect("a place");
    let files = ["log.db", "log.db-wal", "log.db-shm"];
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        for file in files {
            drop(fs::remove_file(to.join(file)));
            drop(fs::copy(from.join(file), to.join(file)));
        }
    };
    copy(&stage.home.path(), &kept);
    stage.fire(2, 5);
    stage.home.text(&["observe", "watch", "--drain"]);
    copy(&kept, &stage.home.path());
    stage.fire(5, 7);
    stage.home.text(&["observe", "watch", "--drain"]);
    assert_eq!(numbers(&stage.seen()), [0, 1, 2, 3, 4, 5, 6]);
}

/// Its configuration is gone, what it set aside is not.
#[test]
fn dead_letters_outlive_their_observer() {
    let stage = Stage::on_the_log(
        "  tool.before:\n    - {name: no, mode: observe, command: 'false', tries: 1}\n",
    );
    stage.fire(0, 2);
    stage.home.text(&["observe", "no", "--drain"]);
    stage.rewrite("  {}\n");
    assert_eq!(stage.dead().len(), 2);
    let seq = stage.dead()[0]["event"]["seq"].to_string();
    stage.home.text(&["dead", "show", "no", &seq]);
    stage.home.text(&["dead", "drop", "no", "--all"]);
    assert_eq!(stage.dead(), Vec::<Value>::new());
}

/// An observer that read the log goes on with the stream when a server is configured.
#[test]
fn a_server_that_is_added_brings_nothing_twice() {
    let stage = Stage::on_the_log(WATCH);
    stage.write_down(WHICH);
    stage.fire(0, 5);
    stage.home.text(&["observe", "watch", "--drain"]);
    let stage = Stage { home: stage.home, nats: Some(NatsServer::start()), plugin: false };
    stage.rewrite(WATCH);
    let _daemon = stage.home.serve();
    stage.fire(5, 8);
    wait_until("the rest is seen", || stage.seen().len() >= 8);
    stage.let_all_come();
    assert_eq!(numbers(&stage.seen()), (0..8).collect::<Vec<_>>());
}

#[test]
fn observers_come_and_go_with_the_file() {
    let stage = Stage::on_the_log(WATCH);
    stage.write_down(WHICH);
    let mut daemon = stage.home.serve();
    wait_until("it works", || stage.observer("watch")["state"] == "working");
    let first = stage.observer("watch")["pid"].clone();
    stage.rewrite(&WATCH.replace("name: watch", "name: other"));
    wait_until("the new one works", || stage.observer("other")["state"] == "working");
    let gone = |pid: &Value| !fs::exists(format!("/proc/{pid}")).expect("proc");
    wait_until("the old one is gone", || gone(&first));
    let second = stage.observer("other")["pid"].clone();
    daemon.kill();
    wait_until("it leaves with its daemon", || gone(&second));
}

#[test]
fn an_observer_that_dies_is_started_again() {
    let stage = Stage::on_the_log(WATCH);
    stage.write_down(WHICH);
    let _daemon = stage.home.serve();
    wait_until("it works", || stage.observer("watch")["state"] == "working");
    let first = stage.observer("watch")["pid"].clone();
    kill(&first);
    wait_until("another one works", || {
        let state = stage.observer("watch");
        state["state"] == "working" && state["pid"] != first && state["process"]["deaths"] == 1
    });
}

#[test]
fn agents_do_not_wait_for_observers() {
    let stage = Stage::on_the_log(
        "  tool.before:\n    - {name: slow, mode: observe, command: sleep 600}\n",
    );
    let _daemon = stage.home.serve();
    wait_until("it works", || stage.observer("slow")["state"] == "working");
    // With a deadline that the observer would never meet, every call is answered in full.
    for round in 0..5 {
        stage.home.answer("hermes", &hermes_shell(&format!("echo {round}")));
    }
    wait_until("four wait", || stage.observer("slow")["lag_events"] == 5);
    assert_eq!(stage.home.log(&["--kind", "tool.before"]).len(), 5);
}

/// Another machine that reaches the server: a hooks file, and no log.
#[test]
fn an_observer_elsewhere_needs_no_log() {
    let stage = Stage::on_nats("  tool.before:\n    - rule: {when: {command: never}, block: no}\n");
    let _daemon = stage.home.serve();
    stage.fire(0, 10);
    let elsewhere = Stage { home: Home::new(), nats: None, plugin: false };
    elsewhere.home.write_hooks(&format!("hooks:\n{WATCH}"));
    elsewhere.write_down(WHICH);
    let url = stage.nats.as_ref().expect("a server").url();
    wait_until("it has read all of them", || {
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
fn a_stream_that_is_put_back_hides_nothing_from_an_observer() {
    let stage = Stage::on_nats(WATCH);
    stage.write_down(WHICH);
    let mut nats = stage.nats.expect("a server");
    let stage = Stage { home: stage.home, nats: None, plugin: false };
    let _daemon = stage.home.serve();
    stage.fire(0, 5);
    wait_until("all are seen", || stage.seen().len() >= 5);
    nats.kill();
    nats.save();
    nats.run();
    stage.fire(5, 10);
    wait_until("all are seen", || first_sights(&stage.seen()).len() >= 10);
    nats.kill();
    nats.restore();
    stage.fire(10, 15);
    nats.run();
    wait_until("all are seen", || first_sights(&stage.seen()).len() >= 15);
    nats.with_stream(async |stream, _| stream.purge().await.expect("a purge"));
    stage.fire(15, 20);
    wait_until("all are seen", || first_sights(&stage.seen()).len() >= 20);
    assert_eq!(first_sights(&stage.seen()), (0..20).collect::<Vec<_>>());
}

/// An endpoint that checks every signature by itself and answers 503 to the first request.
struct Receiver {
    process: Child,
    port: String,
}

impl Receiver {
    fn start(stage: &Stage) -> Self {
        let port_file = stage.home.work().join("port");
        let process = Command::new(stage.home.script("receiver.py", RECEIVER))
            .args([&port_file, &stage.seen_file()])
            .stderr(Stdio::null())
            .spawn()
            .expect("python runs");
        wait_until("it listens", || port_file.exists());
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
fn a_webhook_is_signed_and_tried_again() {
    let stage = Stage::on_the_log(WATCH);
    let receiver = Receiver::start(&stage);
    stage.rewrite(&receiver.hook("secret_file: secret"));
    fs::write(stage.home.path().join("secret"), format!("{SECRET}\n")).expect("a file");
    let _daemon = stage.home.serve();
    stage.fire(0, 3);
    wait_until("all are posted", || stage.seen().len() >= 4);
    assert_eq!(stage.seen(), ["0 1 ops busy", "0 2 ops ok", "1 1 ops ok", "2 1 ops ok"]);
}

/// A row may come from any bus: what it says of its environment does not decide what runs here.
#[test]
fn a_stranger_s_environment_does_not_reach_a_command() {
    let stage =
        Stage::on_nats("  tool.before:\n    - {name: show, mode: observe, command: ../show.sh}\n");
    let seen = stage.seen_file();
    stage.home.script(
        "show.sh",
        &format!("#!/bin/sh\necho \"$EVIL $HERMES_SESSION_ID\" > {}\n", seen.display()),
    );
    let _daemon = stage.home.serve();
    stage.fire(0, 1);
    wait_until("it ran", || seen.exists());
    fs::remove_file(&seen).expect("ours");
    let nats = stage.nats.as_ref().expect("a server");
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
    wait_until("it ran again", || seen.exists());
    wait_until("it is done", || stage.seen().len() == 1);
    assert_eq!(stage.seen(), [" s9"]);
}

/// A worker without the secret says what is missing, and leaves the work to one that has it.
#[test]
fn a_worker_that_cannot_work_keeps_nobody_from_it() {
    let stage = Stage::on_nats(WATCH);
    let receiver = Receiver::start(&stage);
    stage.rewrite(&receiver.hook("secret_env: POST_SECRET"));
    let _daemon = stage.home.serve_with(&["--no-observers"]);
    stage.fire(0, 2);
    let _without = stage.by_hand(&["post"]);
    wait_until("it says so", || {
        stage.observer("post")["error"]
            .as_str()
            .is_some_and(|said| said.contains("set POST_SECRET"))
    });
    let with = stage
        .home
        .command(["observe", "post"])
        .env("POST_SECRET", SECRET)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _with = ByHand(with.expect("hookbus observe starts"));
    wait_until("all are posted", || stage.seen().len() >= 3);
    assert_eq!(stage.seen(), ["0 1 ops busy", "0 2 ops ok", "1 1 ops ok"]);
    assert_eq!(stage.dead(), Vec::<Value>::new());
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
fn what_only_observers_can_have_says_so() {
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
fn an_event_that_is_tried_again_waits_and_so_does_what_stands_behind_it() {
    let stage = Stage::on_the_log(
        "  tool.before:\n    - {name: no, mode: observe, command: 'false', tries: 2, wait: 600}\n",
    );
    let _daemon = stage.home.serve();
    wait_until("it works", || stage.observer("no")["state"] == "working");
    stage.fire(0, 1);
    wait_until("it has failed", || stage.observer("no")["error"].is_string());
    stage.fire(1, 2);
    wait_until("both wait", || stage.observer("no")["lag_events"].as_u64() >= Some(2));
    let said = stage.home.text(&["status"]);
    assert!(said.contains("rows wait") && !said.contains("nothing waits"), "{said}");
}
