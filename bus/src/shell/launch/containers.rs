//! `docker run`, `docker exec`, `kubectl exec`: programs in a container, where no directory is known. The files of a new
//! container are gone with it, unless they are in a directory of this machine.

use super::super::effects::on_this_machine;
use super::super::follow::{Arg, Call, Flow, Follower, Origin};
use super::super::view::{Container, Directory};
use super::option_lines::values;

/// Options of `docker run` and `docker exec` that take no value. All others do.
const SWITCHES: &[&str] = &[
    "--rm",
    "--privileged",
    "--init",
    "--interactive",
    "--tty",
    "--detach",
    "--read-only",
    "--publish-all",
    "--no-healthcheck",
    "--oom-kill-disable",
    "--sig-proxy",
    "--quiet",
    "--no-deps",
    "--service-ports",
    "--build",
    "--disable-content-trust",
    "--use-aliases",
    "--no-TTY",
    "--replace",
    "--tls",
    "--debug",
];

impl Follower<'_> {
    pub(super) fn container(&mut self, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let at = args
            .iter()
            .position(|arg| matches!(arg.word.as_str(), "run" | "exec"))
            .filter(|at| *at < 8);
        if let Some(at) = at {
            let rest = args.get(at + 1..).unwrap_or_default();
            let name = options_end(rest);
            let mut inner = call.with(Vec::new());
            inner.directory = Directory::Unknown;
            inner.env.clear();
            inner.args.extend(entrypoint(rest.get(..name).unwrap_or_default()));
            inner.args.extend(rest.get(name + 1..).unwrap_or_default().iter().cloned());
            let (programs, files) = (self.view.programs.len(), self.view.files.len());
            self.launch(inner, input);
            if args.get(at).is_some_and(|arg| arg.word.as_str() == "run") {
                let container = started(rest.get(..name).unwrap_or_default(), &call.directory);
                self.contain(&container, programs, files);
            }
        }
        Flow::unknown(Origin::Output)
    }

    /// The programs and files from these indexes on are inside a new container.
    fn contain(&mut self, container: &Container, programs: usize, files: usize) {
        for program in self.view.programs.iter_mut().skip(programs) {
            program.container = Some(container.clone());
        }
        let inside = self.view.files.split_off(files);
        let mapped = inside.into_iter().filter_map(|file| on_this_machine(file, container));
        self.view.files.extend(mapped);
    }

    pub(super) fn kubectl(&mut self, index: usize, call: &Call, input: &Flow) -> Flow {
        let args = call.args.get(1..).unwrap_or_default();
        let runs =
            args.iter().any(|arg| matches!(arg.word.as_str(), "exec" | "run" | "debug" | "rsh"));
        let dashes = args.iter().position(|arg| arg.word.as_str() == "--");
        if let (true, Some(dashes)) = (runs, dashes) {
            let mut inner = call.with(args.get(dashes + 1..).unwrap_or_default().to_vec());
            inner.directory = Directory::Unknown;
            inner.env.clear();
            self.launch(inner, input);
        }
        self.output(index, input)
    }
}

/// How many mounts of a container are looked at.
const MOUNTS: usize = 32;

/// The container that `docker run` starts with these options.
fn started(options: &[Arg], base: &Directory) -> Container {
    let mut mounts = Vec::new();
    for (volume, _) in values(options, &["-v", "--volume"]).into_iter().take(MOUNTS) {
        let mut parts = volume.split(':');
        if let (Some(host), Some(inside)) = (parts.next(), parts.next()) {
            // A volume with a name has no directory here; what happens to it counts all the same.
            let named = !host.contains(['/', '.', '~', super::super::word::UNKNOWN]);
            let host = if named { inside } else { host };
            mounts.push((host.to_owned(), inside.to_owned()));
        }
    }
    for (mount, _) in values(options, &["--mount"]).into_iter().take(MOUNTS) {
        let field = |names: &[&str]| {
            let mut fields = mount.split(',').filter_map(|field| field.split_once('='));
            fields.find(|(name, _)| names.contains(name)).map(|(_, value)| value.to_owned())
        };
        if let Some(inside) = field(&["target", "dst", "destination"]) {
            let host = field(&["source", "src"]).unwrap_or_else(|| inside.clone());
            mounts.push((host, inside));
        }
    }
    let directory = values(options, &["-w", "--workdir"]).pop().map(|(directory, _)| directory);
    Container { mounts, directory, base: base.clone() }
}

/// Where the options end and the container or image stands.
fn options_end(args: &[Arg]) -> usize {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.word.as_str();
        let Some(option) = text.strip_prefix('-') else { break };
        let switch = match option.strip_prefix('-') {
            Some(long) => long.contains('=') || SWITCHES.contains(&text),
            None => option.chars().all(|c| matches!(c, 'i' | 't' | 'd' | 'P' | 'T' | 'q')),
        };
        // `-v/a:/b` and `-eA=b` hold their values; `-v /a:/b` does not.
        let holds_value = !text.starts_with("--") && option.len() > 1 && !switch;
        at += if switch || holds_value { 1 } else { 2 };
    }
    at.min(args.len())
}

/// The program of `--entrypoint`.
fn entrypoint(options: &[Arg]) -> Option<Arg> {
    let at = options.iter().position(|arg| arg.word.as_str().starts_with("--entrypoint"))?;
    let arg = options.get(at)?;
    match arg.word.as_str().split_once('=') {
        Some((_, program)) => {
            Some(Arg { word: super::super::word::Word::literal(program), ..arg.clone() })
        }
        None => options.get(at + 1).cloned(),
    }
}
