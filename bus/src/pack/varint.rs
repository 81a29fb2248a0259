//! Numbers in few bytes: seven bits a byte, lowest first, the high bit set on all bytes but the last (LEB128); signed
//! numbers with the sign in the lowest bit (zigzag).

/// Bytes of the largest number.
pub(super) const MAX_LEN: usize = 10;

/// Appends `number`.
pub(super) fn write(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push(low_bits(number) | 0x80);
        number >>= 7;
    }
    out.push(low_bits(number));
}

fn low_bits(number: u64) -> u8 {
    let [low, ..] = number.to_le_bytes();
    low & 0x7f
}

/// Takes a number from the start of `bytes`; none if there is no complete one, or it has more than 64 bits.
pub(super) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (index, &byte) in bytes.iter().take(MAX_LEN).enumerate() {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * u32::try_from(index).ok()?;
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            *bytes = bytes.get(index + 1..)?;
            return Some(number);
        }
    }
    None
}

/// A signed number as an unsigned one that is small if it is near zero.
pub(super) const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

/// The number that [`zigzag`] was given.
pub(super) const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// A length as a number.
pub(super) fn of_len(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_number_reads_back(number: u64, signed: i64, rest: Vec<u8>) {
            let mut bytes = Vec::new();
            write(number, &mut bytes);
            write(zigzag(signed), &mut bytes);
            prop_assert!(bytes.len() <= 2 * MAX_LEN);
            bytes.extend(&rest);
            let mut left = bytes.as_slice();
            prop_assert_eq!(read(&mut left), Some(number));
            prop_assert_eq!(read(&mut left).map(unzigzag), Some(signed));
            prop_assert_eq!(left, rest);
        }
    }

    #[test]
    fn a_number_that_does_not_end_or_does_not_fit_is_none() {
        for bytes in [
            &[][..],
            &[0x80],
            &[0xff; 9],
            &[0xff; 11],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
        ] {
            assert_eq!(read(&mut &*bytes), None, "{bytes:?}");
        }
    }
}
