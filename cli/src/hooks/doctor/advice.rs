//! What to do about each failure of a command or a plugin.

use std::fs;

use hookbus::exec::find_program;
use hookbus::plugins::PluginFault;

use super::super::current_caller;

/// For a command that failed with a sample event; `test` are the arguments of `hookbus hooks test` for that event.
pub(super) fn for_command(failure: &str, exit: Option<i32>, test: &str) -> String {
    let again = format!("`hookbus hooks test {test}` runs it again");
    if failure.starts_with("no answer within") {
        return "make it faster, give it a longer `timeout:`, or use `mode: observe`".to_owned();
    }
    if failure.contains("holds its output open") {
        return "start background processes with `>/dev/null 2>&1 &`".to_owned();
    }
    if failure.contains("not one JSON object") {
        return format!(
            "print one JSON object or nothing, and everything else to stderr (`>&2`); {again}"
        );
    }
    match exit {
        Some(0) => format!("fix the script; {again}"),
        Some(_) => format!(
            "fix the script: it has to exit 0 with its answer on stdout, or 2 to block; {again}"
        ),
        None => format!("fix the script, so that it exits by itself; {again}"),
    }
}

/// For a plugin; `log` is the file with its output.
pub(super) fn for_plugin(fault: &PluginFault, log: &str) -> Option<String> {
    let advice = match fault {
        // Its text says what to do.
        PluginFault::BadManifest(_) => return None,
        PluginFault::MissingVariables(_) => {
            "this command looked for it in its own environment: run it with the environment of the agent"
                .to_owned()
        }
        PluginFault::Incomplete(_) => {
            "fix the file or add it, or remove the directory".to_owned()
        }
        PluginFault::NotLoadable(why) => for_loading(why),
        PluginFault::Raised(_) => format!("fix its code; the traceback is in {log}"),
        PluginFault::Hung(_) => "make it faster, or give its entry a longer `timeout:`".to_owned(),
        PluginFault::Died(_) => format!(
            "it ends the process of the plugin host (`os._exit`, or a crash); fix its code. Its last output is in {log}"
        ),
    };
    Some(advice)
}

fn for_loading(why: &str) -> String {
    if why.contains("No module named") {
        let hermes = hermes_python().unwrap_or_else(|| "the Python that Hermes uses".to_owned());
        return format!(
            "set `interpreter:` in its entry to a Python that has this module; for modules of Hermes that is {hermes}"
        );
    }
    for (missing, code, file) in [
        ("no attribute 'register'", "register(ctx)", "__init__.py"),
        ("no attribute 'handle'", "handle(event_type, context)", "handler.py"),
    ] {
        if why.contains(missing) {
            return format!("define `{code}` in its {file}");
        }
    }
    if why.contains("interpreter:") {
        "check that path".to_owned()
    } else {
        "fix its code".to_owned()
    }
}

/// The Python in the first line of the `hermes` program.
fn hermes_python() -> Option<String> {
    let program =
        fs::read_to_string(find_program("hermes".as_ref(), &[], &current_caller())?).ok()?;
    let python = program.lines().next()?.strip_prefix("#!")?.trim();
    python.contains("python").then(|| format!("`{python}`"))
}
