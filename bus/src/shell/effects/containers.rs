//! docker, docker compose, kubectl, helm: mounts, manifests, registries.

use super::network::registry;
use super::uses::{Below, Uses, looks_like_path};
use crate::shell::programs::{Reading, Text};
use crate::shell::view::Access;
use crate::shell::word::{UNKNOWN, Word};

const HUB: &str = "docker.io";

pub(super) fn docker(reading: &Reading<'_>, uses: &mut Uses) {
    let words = reading.operands();
    mounts(reading, uses);
    uses.reads(reading.values("env-file"));
    for option in ["cidfile", "iidfile", "metadata-file"] {
        uses.writes(reading.values(option));
    }
    let name =
        reading.arguments.sub.map_or("", |sub| sub.names.split('|').next().unwrap_or_default());
    match name {
        "image build" => {
            uses.reads(reading.values("file"));
            let contexts = words.into_iter().filter(|context| !context.text.contains("://"));
            uses.files(contexts, Access::Read, Below::Yes);
        }
        "container cp" => {
            for (word, access) in words.into_iter().zip([Access::Read, Access::Write]) {
                // `container:path` is inside.
                if !word.text.contains(':') {
                    uses.file(word, access, Below::Yes);
                }
            }
        }
        "image save" | "container export" => uses.writes(reading.values("output")),
        "image load" => uses.reads(reading.values("input")),
        "image import" => uses.reads(words.into_iter().take(1)),
        "image push" | "image pull" => {
            for image in words {
                registry(image, HUB, uses);
            }
        }
        "login" => match words.first() {
            Some(host) => uses.url(*host, "https"),
            None => registry(Text::literal(HUB), HUB, uses),
        },
        "container run" | "container create" => {
            // An image with a registry in its name may be pulled.
            if let Some(image) = words.first()
                && image.text.split('/').next().is_some_and(|first| first.contains('.'))
                && image.text.contains('/')
            {
                uses.url(*image, "https");
            }
        }
        _ if reading.name == "docker-compose" => {
            uses.reads(reading.values("file"));
        }
        _ => {}
    }
}

/// The directories of this host that a container can write: `-v host:container`, `--mount source=host`.
fn mounts(reading: &Reading<'_>, uses: &mut Uses) {
    for volume in reading.values("volume") {
        let parts: Vec<&str> = volume.text.split(':').collect();
        // Without a `/` it is the name of a volume.
        if let [host, _, options @ ..] = parts.as_slice()
            && (looks_like_path(host) || host.contains(UNKNOWN))
        {
            let reads = options.iter().any(|option| option.split(',').any(|each| each == "ro"));
            let access = if reads { Access::Read } else { Access::Write };
            uses.file(volume.part(host), access, Below::Yes);
        }
    }
    for mount in reading.values("mount") {
        let fields = || mount.text.split(',');
        let is_read_only =
            fields().any(|field| matches!(field, "ro" | "readonly" | "readonly=true"));
        let source = fields()
            .find_map(|field| field.strip_prefix("source=").or_else(|| field.strip_prefix("src=")));
        if let Some(source) = source.filter(|source| looks_like_path(source)) {
            let access = if is_read_only { Access::Read } else { Access::Write };
            uses.file(mount.part(source), access, Below::Yes);
        }
    }
    for device in reading.values("device") {
        let host = device.text.split(':').next().unwrap_or_default();
        uses.write(device.part(host));
    }
}

/// kubectl and helm read manifests, values and keys.
pub(super) fn kubernetes(reading: &Reading<'_>, uses: &mut Uses) {
    for option in [
        "kubeconfig",
        "client-key",
        "client-certificate",
        "certificate-authority",
        "patch-file",
        "values",
    ] {
        uses.reads(reading.values(option));
    }
    for option in ["filename", "kustomize"] {
        let below = Below::from(option == "kustomize" || reading.has("recursive"));
        for value in reading.values(option) {
            if value.text.contains("://") {
                uses.url(value, "");
            } else {
                uses.file(value, Access::Read, below);
            }
        }
    }
    for option in ["from-file", "from-env-file", "set-file"] {
        for value in reading.values(option) {
            let path = value.text.split_once('=').map_or(value.text, |(_, path)| path);
            uses.read(value.part(path));
        }
    }
    reading.values("server").for_each(|url| uses.url(url, "https"));
    if reading.is_sub("cp") {
        for (word, access) in reading.arguments.rest().iter().zip([Access::Read, Access::Write]) {
            if !word.word.text.contains(':') {
                uses.file(word.word, access, Below::Yes);
            }
        }
    }
    let words = reading.operands();
    if reading.is_sub("repo add")
        && let Some(url) = words.get(1)
    {
        uses.url(*url, "");
    }
    if reading.is_sub("pull") {
        let directory = reading.value("destination").map_or(".", |directory| directory.text);
        uses.word(Word::literal(directory), Access::Write, Below::No);
    }
    if reading.is_sub("install") || reading.is_sub("upgrade") || reading.is_sub("template") {
        let charts = words.iter().filter(|word| word.text.starts_with(['.', '/', '~']));
        uses.files(charts.copied(), Access::Read, Below::Yes);
    }
}
