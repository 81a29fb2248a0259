//! Cuts long text into chunks where its content says so, so that two versions of a file share the chunks that did not
//! change. A gear hash (as in `FastCDC`) over the last 64 bytes decides.

/// Longer text is cut.
pub(super) const LONGEST_WHOLE: usize = 32 * 1024;
/// Shortest chunk, but for the last.
const MIN: usize = 4 * 1024;
/// Longest chunk.
const MAX: usize = 64 * 1024;
/// A boundary is where these 13 bits of the hash are zero: on average 8 KB after the shortest chunk.
const MASK: u64 = 0xfff8_0000_0000_0000;

/// The lengths of the chunks of `text`.
pub(super) fn chunks(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let mut left = text;
    std::iter::from_fn(move || {
        let len = first_chunk(left);
        left = left.get(len..).unwrap_or_default();
        (len > 0).then_some(len)
    })
}

fn first_chunk(text: &[u8]) -> usize {
    let mut hash = 0_u64;
    let longest = text.len().min(MAX);
    // The hash forgets a byte after 64 steps, so it need not see what is further before the first possible boundary.
    let start = (MIN - 64).min(longest);
    for (index, &byte) in text.iter().enumerate().take(longest).skip(start) {
        hash = roll(hash, byte);
        if index >= MIN && hash & MASK == 0 {
            return index + 1;
        }
    }
    longest
}

/// The hash of the last 64 bytes, the last of which is `byte`; `hash` is that of the 64 bytes before it.
pub(super) fn roll(hash: u64, byte: u8) -> u64 {
    (hash << 1).wrapping_add(GEAR.get(usize::from(byte)).copied().unwrap_or_default())
}

/// A random number for each byte. Other numbers would cut elsewhere, and old and new chunks would not be shared.
static GEAR: [u64; 256] = {
    let mut table = [0; 256];
    let mut state = 0_u64;
    let mut index = 0;
    while index < 256 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15); // splitmix64
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[index] = mixed ^ (mixed >> 31);
        index += 1;
    }
    table
};
