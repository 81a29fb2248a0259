//! How to mend what was found: a way out for every failure of a command or a plugin.

use std::fs;

use hookbus::decide::Ailment;

use super::start::on_path;

/// For a command that failed at a made-up event; `test` is what `hookbus hooks test` has to be asked for that event.
pub(super) fn command(failure: &str, exit: Option<i64>, test: &str) -> String {
    let again = format!("`hookbus hooks test {test}` tries it again");
    if failure.starts_with("no answer within") {
        return "make it quicker, give it a longer `timeout:`, or let it look on with `mode: observe`"
            .to_owned();
    }
    if failure.contains("holds its output open") {
        return "start what goes on after it with `>/dev/null 2>&1 &`".to_owned();
    }
    if failure.contains("not one JSON object") {
        return format!(
            "print one JSON object or nothing, and send the rest to stderr (`>&2`); {again}"
        );
    }
    match exit {
        Some(0) => format!("mend the script; {again}"),
        Some(_) => format!(
            "mend the script: it has to exit 0 with its answer on stdout, or 2 to block; {again}"
        ),
        None => format!("mend the script, so that it comes to its end; {again}"),
    }
}

/// For a plugin; `log` has what it printed.
pub(super) fn plugin(ailment: &Ailment, log: &str) -> Option<String> {
    let way = match ailment {
        // It says so itself.
        Ailment::Vague(_) => return None,
        Ailment::Needs(_) => {
            "it was looked for in the environment of this command: run this with what the agent has"
                .to_owned()
        }
        Ailment::Unfinished(_) => {
            "mend the file or put it there, or take the directory away".to_owned()
        }
        Ailment::Broken(why) => loading(why),
        Ailment::Raised(_) => format!("mend its code; {log} has the traceback"),
        Ailment::Hung(_) => "make it quicker, or give its entry a longer `timeout:`".to_owned(),
        Ailment::Died(_) => format!(
            "it ends its own process (`os._exit`, a crash), which is the host's; mend its code, {log} has its last words"
        ),
    };
    Some(way)
}

fn loading(why: &str) -> String {
    if why.contains("No module named") {
        let theirs = hermes_python().unwrap_or_else(|| "the one that Hermes runs with".to_owned());
        return format!(
            "write `interpreter:` into its entry, with a Python that has this module; for those of Hermes that is {theirs}"
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
        "mend its code".to_owned()
    }
}

/// The Python that Hermes runs with, as its program says.
fn hermes_python() -> Option<String> {
    let program = fs::read_to_string(on_path("hermes")?).ok()?;
    let python = program.lines().next()?.strip_prefix("#!")?.trim();
    python.contains("python").then(|| format!("`{python}`"))
}
