//! The promises of the room: every payload comes back, nothing is stored twice, lists cost what is new.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;

/// A store with a packer and an unpacker for it.
#[derive(Default)]
struct Log {
    parts: MemoryParts,
    packer: Packer,
    unpacker: Unpacker,
}

impl Log {
    /// Packs a payload, checks that it comes back, and returns how many parts and bytes were new.
    fn add(&mut self, payload: &[u8]) -> (usize, usize) {
        let size = |parts: &MemoryParts| (parts.all().len(), parts.all().map(<[u8]>::len).sum());
        let before: (usize, usize) = size(&self.parts);
        let packed = self.packer.pack(payload, &mut self.parts).unwrap();
        self.packer.commit();
        let after: (usize, usize) = size(&self.parts);
        let skeleton = match packed {
            Packed::AsIs => self.packer.wrap(payload),
            Packed::Skeleton(skeleton) => skeleton,
        };
        let unpacked = self.unpacker.unpack(&skeleton, &mut self.parts);
        assert_eq!(unpacked.as_deref(), Ok(payload), "{}", String::from_utf8_lossy(payload));
        (after.0 - before.0, after.1 - before.1 + skeleton.len())
    }

    fn skeleton(&mut self, payload: &[u8]) -> Vec<u8> {
        match self.packer.pack(payload, &mut self.parts).unwrap() {
            Packed::AsIs => panic!("nothing to pack"),
            Packed::Skeleton(skeleton) => skeleton,
        }
    }
}

/// Text of this many words, different for each seed.
fn words(seed: usize, count: usize) -> String {
    let word = |word| format!("{:x}", (seed * 7919 + word * 104_729) % 65_521);
    (0..count).map(word).collect::<Vec<_>>().join(" ") + " "
}

fn message(seed: usize) -> String {
    format!(r#"{{"role": "user", "content": "{}", "n": {seed}}}"#, words(seed, 60))
}

fn history(messages: std::ops::Range<usize>) -> Vec<u8> {
    let messages: Vec<String> = messages.map(message).collect();
    format!(r#"{{"id": "{}", "history": [{}], "end": true}}"#, messages.len(), messages.join(", "))
        .into_bytes()
}

/// The recorded payloads of all agents.
fn recorded() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/payloads");
    let agents = fs::read_dir(folder).unwrap().map(|agent| agent.unwrap().path());
    let files = agents.flat_map(|agent| fs::read_dir(agent).unwrap());
    files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn every_recorded_payload_comes_back() {
    let mut log = Log::default();
    let payloads = recorded();
    assert!(payloads.len() > 100);
    for payload in payloads {
        log.add(&payload);
        let (parts, _) = log.add(&payload);
        assert_eq!(parts, 0, "parts stored twice");
        for end in [payload.len() / 3, payload.len() - 2] {
            log.add(&payload[..end]);
        }
    }
}

#[test]
fn the_dictionary_has_no_id_of_a_recording() {
    let dictionary = String::from_utf8_lossy(dictionary::FIRST);
    let mut ids = 0;
    for payload in recorded() {
        let payload = String::from_utf8(payload).unwrap();
        for word in payload.split(|it: char| !it.is_ascii_hexdigit()) {
            if word.len() >= 6 && word.contains(|it: char| it.is_ascii_digit()) {
                assert!(!dictionary.contains(word), "{word}");
                ids += 1;
            }
        }
    }
    assert!(ids > 500);
}

#[test]
fn odd_json_comes_back() {
    let long = words(1, 100);
    let deep = "[".repeat(3000) + &"]".repeat(3000);
    let mut log = Log::default();
    for payload in [
        format!("{{ \"a\" :\t\"{long}\"\r\n,\n\n\"a\":\"{long}\" , }}"),
        format!(r#"{{"a": "\ud800 {long} \\\" \u0000", "b": [1, 2 ,3,"{long}" , "{long}"]}}"#),
        format!(r#"{{"number": 1{}e99999, "x": ["{long}"]}}"#, "0".repeat(5000)),
        format!(r#"{{"open": "{long}"#),
        format!(r#"{{"escaped end": "{long}\"#),
        format!("{{\"a\": {deep}, \"b\": \"{long}\"}}"),
        "[".repeat(5000) + &long,
        deep,
        format!("{long}\n{{\"a\": \"{long}\"}}\n{{\"b\": \"{long}\"}}"),
        format!("{{\"a\": \"{long}\"}}\n{{\"b\": \"{long}\"}}"),
        format!("{{{{\"a\": \"{long}\"}}}}]]"),
        format!("\u{feff}{{\"a\": \"{long}\"}}"),
        "\"".repeat(700),
        "\\".repeat(700),
        format!("\"{}\"", "\\\"".repeat(40_000)),
        " ".repeat(100_000),
        "0,".repeat(100_000),
        format!("[{}0]", "0,".repeat(100_000)),
    ] {
        log.add(payload.as_bytes());
    }
}

#[test]
fn long_text_that_changes_a_little_is_stored_once() {
    let mut log = Log::default();
    let file: String = (0..400).map(|line| words(line, 100)).collect();
    log.add(format!("{{\"content\": \"{file}\"}}").as_bytes());
    let changed = format!("{} changed {}", &file[..60_000], &file[60_010..]);
    let (_, bytes) = log.add(format!("{{\"result\": \"{changed}\"}}").as_bytes());
    assert!(bytes < file.len() / 6, "{bytes} of {}", file.len());
    let (_, bytes) = log.add(format!("the file has this text now:\n{changed}").as_bytes());
    assert!(bytes < file.len() / 4, "{bytes} of {}", file.len());
}

#[test]
fn a_text_inside_of_another_costs_little() {
    let mut log = Log::default();
    let text = words(3, 500);
    let (_, first) = log.add(format!("{{\"content\": \"{text}\"}}").as_bytes());
    let (_, cut) = log.add(format!("{{\"content\": \"{}…\"}}", &text[..1024]).as_bytes());
    let (_, quoted) =
        log.add(format!("{{\"message\": \"Response(content='{text}')\"}}").as_bytes());
    assert!(cut + quoted < first / 5, "{first}, then {cut} and {quoted}");
}

#[test]
fn a_list_that_grows_costs_what_is_new() {
    let mut log = Log::default();
    log.add(&history(0..2));
    let mut most = (0, 0);
    for messages in 3..600 {
        let new = log.add(&history(0..messages));
        most = (most.0.max(new.0), most.1.max(new.1));
    }
    assert!(most.0 <= 5, "{} parts for one message", most.0);
    assert!(most.1 <= 1500, "{} bytes for one message of 300", most.1);
}

#[test]
fn a_list_that_loses_its_beginning_shares_the_rest() {
    let mut log = Log::default();
    let (_, all) = log.add(&history(0..400));
    let (parts, bytes) = log.add(&history(50..400));
    assert!(parts < 30 && bytes < all / 20, "{parts} parts, {bytes} of {all} bytes");
}

#[test]
fn small_payloads_are_left_alone() {
    let mut log = Log::default();
    for payload in [&b""[..], b"{}", b"{\"hook_event_name\": \"Stop\"}", &[0, 255, 7]] {
        assert_eq!(log.packer.pack(payload, &mut log.parts), Ok(Packed::AsIs));
        log.add(payload);
    }
    assert_eq!(log.parts.all().len(), 0);
}

#[test]
fn a_rollback_is_forgotten() {
    let mut log = Log::default();
    let payload = history(0..40);
    log.skeleton(&payload);
    log.packer.roll_back();
    log.parts = MemoryParts::default();
    log.add(&payload);
}

#[test]
fn references_lead_to_every_part() {
    let mut log = Log::default();
    log.add(format!("[\"{}\"]", words(5, 500)).as_bytes());
    log.add(format!("[\"and {}\"]", words(5, 500)).as_bytes());
    let skeletons = [
        log.skeleton(&history(0..300)),
        log.skeleton(format!("[\"{}\"]", words(5, 500)).as_bytes()),
        log.skeleton(format!("[\"and {}\"]", words(5, 500)).as_bytes()),
    ];
    let mut reached = vec![false; log.parts.all().len()];
    let mut open: Vec<PartId> =
        skeletons.iter().flat_map(|it| log.unpacker.references_of_skeleton(it).unwrap()).collect();
    while let Some(id) = open.pop() {
        let place = &mut reached[usize::try_from(id.as_i64() - 1).unwrap()];
        if !*place {
            *place = true;
            let mut data = Vec::new();
            assert_eq!(log.parts.read(id, &mut data), Ok(true));
            let inside = log.unpacker.references_of_part(&data).unwrap();
            assert!(inside.iter().all(|part| *part < id));
            open.extend(inside);
        }
    }
    assert!(reached.iter().all(|it| *it), "{reached:?}");
}

/// JSON of some depth, with repeated and long strings.
fn any_json() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[ -~]{0,20}".prop_map(|text| format!("{text:?}")),
        (0..6_usize, 1..80_usize).prop_map(|(seed, count)| format!("\"{}\"", words(seed, count))),
        any::<i64>().prop_map(|number| number.to_string()),
    ];
    text.prop_recursive(6, 200, 20, |inner| {
        let pretty = prop_oneof![Just(","), Just(", "), Just(",\n  ")];
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..20), pretty.clone())
                .prop_map(|(list, comma)| format!("[{}]", list.join(comma))),
            (prop::collection::vec(inner, 0..8), pretty).prop_map(|(list, comma)| {
                let members: Vec<String> = list.iter().map(|it| format!("\"key\": {it}")).collect();
                format!("{{{}}}", members.join(comma))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_come_back(payload in prop::collection::vec(any::<u8>(), 0..5000)) {
        Log::default().add(&payload);
    }

    #[test]
    fn any_json_comes_back_whole_and_cut(payloads in prop::collection::vec(any_json(), 1..4), cut: prop::sample::Index) {
        let mut log = Log::default();
        for payload in &payloads {
            log.add(payload.as_bytes());
            log.add(&payload.as_bytes()[..cut.index(payload.len())]);
            prop_assert_eq!(log.add(payload.as_bytes()).0, 0);
        }
        let mut raw = MemoryParts::default();
        let packed = Packer::new(Compression::Off).pack(payloads[0].as_bytes(), &mut raw);
        if let Ok(Packed::Skeleton(skeleton)) = packed {
            prop_assert_eq!(Unpacker::default().unpack(&skeleton, &mut raw).unwrap(), payloads[0].as_bytes());
        }
    }
}

/// What a packer remembers makes it faster, and changes nothing.
fn is_packed_as_by_a_packer_without_memory(payloads: &[Vec<u8>]) {
    let mut log = Log::default();
    for payload in payloads {
        let mut other = Log { parts: log.parts.clone(), ..Log::default() };
        let pack = |log: &mut Log| log.packer.pack(payload, &mut log.parts).unwrap();
        assert_eq!(pack(&mut log), pack(&mut other), "{}", String::from_utf8_lossy(payload));
        assert_eq!(log.parts.all().len(), other.parts.all().len());
        log.packer.commit();
    }
}

#[test]
fn lists_that_were_seen_before_are_cut_at_the_same_places() {
    let grown = (1..40).map(|turn| history(0..turn * 11));
    let cut_off = (1..20).map(|turn| history(turn * 7..turn * 13));
    let deeper = [3, 2, 1].map(|depth| {
        let history = String::from_utf8(history(0..300)).unwrap();
        format!("{}{history}{}", "[".repeat(depth * 10), "]".repeat(depth * 10)).into_bytes()
    });
    let twice = {
        let list = (0..90).map(message).collect::<Vec<_>>().join(", ");
        format!(r#"{{"a": [{list}], "b": [{list}, 1], "c": [{list}7]}}"#).into_bytes()
    };
    let payloads: Vec<_> = grown.chain(cut_off).chain(deeper).chain([twice]).collect();
    is_packed_as_by_a_packer_without_memory(&payloads);
}

proptest! {
    #[test]
    fn lists_of_any_elements_are_cut_at_the_same_places(
        lists in prop::collection::vec((0_usize..3, 0_usize..60, 0_usize..200), 1..8),
    ) {
        let element = |seed: usize| match seed % 7 {
            0 => seed.to_string().repeat(300),
            1 => format!("\"{}\"", words(seed, 3)),
            2 => format!("[{}]", words(seed, 0).repeat(2) + &"1,".repeat(seed) + "2"),
            3 => format!("\"{}\"", words(seed / 20, 40)),
            _ => message(seed),
        };
        let payload = |(step, first, count): &(usize, usize, usize)| {
            let elements = (0..*count).map(|at| element(first + at * (step + 1)));
            format!("{{\"list\": [{}]}}", elements.collect::<Vec<_>>().join(",")).into_bytes()
        };
        is_packed_as_by_a_packer_without_memory(&lists.iter().map(payload).collect::<Vec<_>>());
    }
}
