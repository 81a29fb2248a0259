//! Damaged and hostile bytes are errors: no panic, no endless work, no more memory than the payload claims to need.

use std::convert::Infallible;

use proptest::prelude::*;

use super::*;

type Unpacked = Result<Vec<u8>, UnpackError<Infallible>>;

/// Unpacks a skeleton over these parts.
fn unpack(skeleton: &[u8], parts: &[&[u8]]) -> Unpacked {
    let mut store = MemoryParts::default();
    for part in parts {
        store.push(part.to_vec());
    }
    Unpacker::default().unpack(skeleton, &mut store)
}

fn damaged(unpacked: &Unpacked) -> bool {
    matches!(unpacked, Err(UnpackError::Unreadable(Unreadable::Damaged(_))))
}

/// A recipe with one reference to the part with this number.
const fn reference(number: u8) -> u8 {
    (number << 3) | 1
}

#[test]
fn hostile_bytes_are_errors() {
    const RECIPE: u8 = 1;
    let newer = unpack(&[2, 5, 0], &[]).unwrap_err().to_string();
    assert!(newer.contains("update hookbus"), "{newer}");
    let dictionary = unpack(&[1, 5, (9 << 2) | 2, 0], &[]);
    assert_eq!(dictionary, Err(Unreadable::UnknownDictionary(9).into()));
    let missing = unpack(&[1, 5, RECIPE, reference(1)], &[]);
    assert_eq!(missing, Err(UnpackError::MissingPart(PartId::new(1).unwrap())));
    let bomb = [1, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, RECIPE, reference(1)];
    assert!(matches!(unpack(&bomb, &[]), Err(UnpackError::Unreadable(Unreadable::TooLong(_)))));
    for (what, skeleton, parts) in [
        ("nothing", &[][..], vec![]),
        ("no length", &[1], vec![]),
        ("no body", &[1, 5], vec![]),
        ("too short", &[1, 5, 0, b'a'], vec![]),
        ("too long", &[1, 1, 0, b'a', b'b'], vec![]),
        ("a frame that is none", &[1, 1, 6, b'a', b'b'], vec![]),
        ("part zero", &[1, 1, RECIPE, reference(0)], vec![]),
        ("a cycle", &[1, 1, RECIPE, reference(1)], vec![&[RECIPE, reference(1)][..]]),
        (
            "a longer cycle",
            &[1, 1, RECIPE, reference(1)],
            vec![&[RECIPE, reference(2)], &[RECIPE, reference(1)]],
        ),
        ("an empty part", &[1, 0, RECIPE, reference(1)], vec![&[0]]),
        ("an empty recipe", &[1, 0, RECIPE, reference(1)], vec![&[RECIPE]]),
        ("a skeleton with a base", &[1, 1, (63 << 2) | 2, 1, 0], vec![&[0, b'a']]),
        ("its own base", &[1, 1, RECIPE, reference(1)], vec![&[(63 << 2) | 2, 1, 0]]),
        (
            "a recipe as base",
            &[1, 1, RECIPE, reference(2)],
            vec![&[RECIPE, 4, b'a'], &[(63 << 2) | 2, 1, 0]],
        ),
    ] {
        let unpacked = unpack(skeleton, &parts);
        assert!(damaged(&unpacked), "{what}: {unpacked:?}");
    }
}

#[test]
fn parts_that_double_each_other_end_at_the_length_of_the_payload() {
    let twice = |number: u8| [1, reference(number), 1]; // the part, and the same part again
    let mut parts = vec![vec![0, b'a']];
    parts.extend((1..15).map(|number| twice(number).to_vec()));
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    assert_eq!(unpack(&[1, 16, 1, reference(5)], &parts), Ok(b"a".repeat(16)));
    assert!(damaged(&unpack(&[1, 100, 1, reference(15)], &parts)));
    let mut chain = vec![vec![0, b'a']];
    for number in 1..400_i64 {
        let mut recipe = vec![1];
        varint::write((varint::zigzag(number) << 2) | 1, &mut recipe);
        chain.push(recipe);
    }
    let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
    assert!(damaged(&unpack(&[1, 1, 1, 0x81, 0x19], &chain)), "400 levels");
}

/// Counts how many parts are read.
struct Counted(MemoryParts, usize);

impl PartSource for Counted {
    type Error = Infallible;

    fn read(&mut self, id: PartId, data: &mut Vec<u8>) -> Result<bool, Infallible> {
        self.1 += 1;
        self.0.read(id, data)
    }
}

#[test]
fn recipes_inside_of_each_other_are_not_all_as_long_as_the_payload() {
    // Each is the part before it, and then as many bytes as the whole payload has.
    let long = 100_000_usize;
    let of_part = |number: i64, recipe: &mut Vec<u8>| {
        varint::write((varint::zigzag(number) << 2) | 1, recipe);
    };
    let mut store = MemoryParts::default();
    store.push(vec![0, b'a']);
    for number in 1..200 {
        let mut recipe = vec![1];
        of_part(number, &mut recipe);
        varint::write(varint::of_len(long) << 2, &mut recipe);
        recipe.extend(std::iter::repeat_n(b'b', long));
        store.push(recipe);
    }
    let mut skeleton = vec![1];
    varint::write(varint::of_len(long), &mut skeleton);
    skeleton.push(1);
    of_part(200, &mut skeleton);
    let mut store = Counted(store, 0);
    assert!(damaged(&Unpacker::default().unpack(&skeleton, &mut store)));
    assert!(store.1 < 5, "{} parts were read", store.1);
}

/// A payload with many parts.
fn history() -> Vec<u8> {
    let message = |number: usize| format!(r#"{{"content": "{}"}}"#, number.to_string().repeat(100));
    format!("[{}]", (0..40).map(message).collect::<Vec<_>>().join(", ")).into_bytes()
}

proptest! {
    #[test]
    fn any_skeleton_and_any_parts_end(
        len in 0_u8..100,
        rest in prop::collection::vec(any::<u8>(), 0..60),
        parts in prop::collection::vec(prop::collection::vec(prop_oneof![any::<u8>(), 0_u8..40], 0..30), 0..8),
    ) {
        let skeleton = [&[1, len], rest.as_slice()].concat();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        if let Ok(payload) = unpack(&skeleton, &parts) {
            prop_assert_eq!(payload.len(), usize::from(len));
        }
        for part in parts {
            drop(Unpacker::default().references_of_part(part));
        }
    }

    #[test]
    fn a_changed_byte_never_panics(at: prop::sample::Index, byte: u8, part: prop::sample::Index) {
        let mut parts = MemoryParts::default();
        let packed = Packer::default().pack(&history(), &mut parts);
        let Ok(Packed::Skeleton(mut skeleton)) = packed else { panic!("nothing to pack") };
        let mut changed: Vec<Vec<u8>> = parts.all().map(<[u8]>::to_vec).collect();
        let target = part.index(changed.len() + 1);
        let bytes = changed.get_mut(target).unwrap_or(&mut skeleton);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let parts: Vec<&[u8]> = changed.iter().map(Vec::as_slice).collect();
        drop(unpack(&skeleton, &parts));
    }
}
