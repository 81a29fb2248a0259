//! How long one event takes in Hermes: over the bridge, and with a shell hook of Hermes that runs `/bin/true`.
//! Both are measured in turn in one process of the real Hermes, so that other load affects both.
//!
//! `cargo build --release && cargo bench -p hookbus-tests --bench bridge`

#![expect(clippy::print_stdout, reason = "the numbers are the result")]

use hookbus_tests::agents::Hermes;
use hookbus_tests::home::Home;

const RULE: &str = "hooks:\n  tool.before:\n    - name: no-rm\n      tool: shell\n      \
                    rule: {when: {command: 'rm\\s+-rf\\s+/'}, block: no}\n";

const MEASURE: &str = "
import statistics, time
from agent.shell_hooks import ShellHookSpec, _make_callback
from hermes_cli.plugins import discover_plugins, get_plugin_manager
discover_plugins()
manager = get_plugin_manager()
shell = _make_callback(ShellHookSpec(event='pre_tool_call', command='/bin/true', timeout=60))
def measure(name, fields):
    bridge, = manager._hooks[name]
    times = {'bridge': [], 'shell': []}
    for _ in range(300):
        for kind, callback in (('bridge', bridge), ('shell', shell)):
            started = time.perf_counter()
            callback(**fields)
            times[kind].append((time.perf_counter() - started) * 1000)
    medians = {kind: statistics.median(all) for kind, all in times.items()}
    p99 = {kind: sorted(all)[int(len(all) * 0.99)] for kind, all in times.items()}
    print('%-16s bridge p50 %.2f ms p99 %.2f ms   /bin/true p50 %.2f ms p99 %.2f ms   ratio %.2f   (aim: below 1)' % (
        name, medians['bridge'], p99['bridge'], medians['shell'], p99['shell'], medians['bridge'] / medians['shell']))
call = {'tool_name': 'terminal', 'args': {'command': 'rm -rf /'}, 'session_id': 's', 'tool_call_id': '', 'turn_id': 's:t:1'}
measure('pre_tool_call', call)
measure('post_api_request', {'session_id': 's', 'response': 'x' * 48000})
";

fn main() {
    let home = Home::with_daemon("running");
    home.write_hooks(RULE);
    let _daemon = home.serve();
    let run = Hermes::new("bench").connected(&home, "running").run_python(MEASURE);
    println!("{}{}", run.stdout, run.stderr);
}
