//! Makes a zstd dictionary for `bus/src/pack`, from the recorded payloads and this repository's own documents. Ids, numbers
//! and texts of the recordings are replaced by random ones, so that only the shapes get into it.
//!
//! `cargo run --release -p hookbus-tests --example pack_dictionary -- <file> [<bytes>]`

#![expect(clippy::expect_used, clippy::print_stdout, reason = "run by hand")]

use std::fs;
use std::path::{Path, PathBuf};

use hookbus::pack::{Compression, MemoryParts, Packed, Packer};
use hookbus_tests::long_session::python;
use hookbus_tests::payloads;
use hookbus_tests::words::Words;
use serde_json::Value;

/// How often each recorded payload is varied.
const VARIANTS: u64 = 40;
/// One of so many parts is a sample.
const PROSE: u64 = 6;
/// Strings from this length on are replaced by text of another length.
const TEXT: usize = 40;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("the file to write");
    let size = arguments.next().map_or(16 * 1024, |size| size.parse().expect("a number of bytes"));
    let samples = samples();
    let total: usize = samples.iter().map(Vec::len).sum();
    let dictionary = zstd::dict::from_samples(&samples, size).expect("enough samples");
    fs::write(&file, &dictionary).expect("a file that can be written");
    println!("{} bytes from {} samples of {total} bytes", dictionary.len(), samples.len());
}

/// Everything that would be compressed: skeletons and parts of all variants.
fn samples() -> Vec<Vec<u8>> {
    let mut random = Words::new(1);
    let prose = Prose::of_this_repository();
    let mut samples = Vec::new();
    for _ in 0..VARIANTS {
        for (agent, _, payload) in payloads::all() {
            let mut payload: Value = serde_json::from_slice(&payload).expect("payloads are JSON");
            vary(&mut payload, &mut random, &prose);
            let written = if agent == "hermes" { python(&payload) } else { payload.to_string() };
            let mut parts = MemoryParts::default();
            let packed = Packer::new(Compression::Off).pack(written.as_bytes(), &mut parts);
            samples.push(match packed.expect("memory") {
                Packed::AsIs => written.into_bytes(),
                Packed::Skeleton(skeleton) => skeleton.get(4..).unwrap_or_default().to_vec(),
            });
            let bodies = parts.all().map(|part| part.get(1..).unwrap_or_default());
            // Prose has little in common: with all of it, the shapes would not fit.
            samples.extend(bodies.filter(|_| random.below(PROSE) == 0).map(<[u8]>::to_vec));
        }
    }
    samples
}

/// Other ids, numbers and texts in the same shape.
fn vary(value: &mut Value, random: &mut Words, prose: &Prose) {
    match value {
        Value::Number(number) if !number.is_f64() && number.as_u64().is_some_and(|it| it > 9) => {
            *value = random.below(number.as_u64().unwrap_or(1).saturating_mul(2)).into();
        }
        Value::Number(number) if number.is_f64() => {
            *value = (number.as_f64().unwrap_or_default() + random.seconds()).into();
        }
        Value::String(text) if text.len() >= TEXT && text.contains(' ') => {
            *text = prose
                .passage(text.len() / 2 + usize::try_from(random.below(1200)).unwrap_or(0), random);
        }
        Value::String(text) => *text = other_digits(text, random),
        Value::Array(list) => list.iter_mut().for_each(|item| vary(item, random, prose)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|item| vary(item, random, prose));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces runs of digits by other ones, decimal or hexadecimal.
fn other_digits(text: &str, random: &mut Words) -> String {
    let is_id = |word: &str| word.len() > 3 && word.chars().any(|it| it.is_ascii_digit());
    text.split_inclusive(|it: char| !it.is_ascii_hexdigit())
        .map(|word| {
            let digits = word.trim_end_matches(|it: char| !it.is_ascii_hexdigit());
            let rest = word.get(digits.len()..).unwrap_or_default();
            match digits {
                digits if !is_id(digits) => word.to_owned(),
                digits if digits.chars().all(|it| it.is_ascii_digit()) => {
                    digits.chars().map(|_| random.below(10).to_string()).collect::<String>() + rest
                }
                digits => random.hex(digits.len()) + rest,
            }
        })
        .collect()
}

/// The documents of this repository.
struct Prose(String);

impl Prose {
    fn of_this_repository() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folders = ["", "bus", "bus/docs", "cli", "replay", "subscribers", "tests"];
        let mut files: Vec<PathBuf> = Vec::new();
        for folder in folders {
            let entries = fs::read_dir(root.join(folder)).expect("a folder of the repository");
            files.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
        files.retain(|file| file.extension().is_some_and(|end| end == "md"));
        files.sort();
        Self(files.iter().map(|file| fs::read_to_string(file).expect("text")).collect())
    }

    /// So many bytes from a random place.
    fn passage(&self, len: usize, random: &mut Words) -> String {
        let places = u64::try_from(self.0.len() - len).unwrap_or(1);
        let start = usize::try_from(random.below(places)).unwrap_or(0);
        let (start, end) =
            (self.0.floor_char_boundary(start), self.0.floor_char_boundary(start + len));
        self.0.get(start..end).unwrap_or_default().to_owned()
    }
}
