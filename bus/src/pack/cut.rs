//! Decides what of a payload becomes a part. Walks through the JSON once; never changes a byte, so what is left between
//! the parts is copied as it is. Where the JSON is broken, the walk ends and the rest is text.

use std::ops::Range;

use super::chunk;
use super::intern::Interner;
use super::list::{Groups, own_bytes};
use super::nodes::Setting;
use super::part::Parts;
use super::recipe::Cut;
use super::scan::Scanner;

/// Strings from this length on, with their quotes, are parts.
const STRING: usize = 96;
/// The same in a payload shorter than `SMALL`: a part costs more time than it saves space there.
const STRING_IN_SMALL: usize = 256;
const SMALL: usize = 1024;
/// List elements with this many bytes outside of their own parts are parts; smaller ones stay in the list's nodes.
const ELEMENT: usize = 256;
/// Objects and lists without parts inside are parts from this length on.
const CONTAINER: usize = 512;
/// Bytes that no rule made a part are one from this length on: large objects of small values, text that is not JSON.
const GAP: usize = 4096;
/// Values inside of more objects and lists than this are not cut.
const DEPTH: usize = 24;

/// What a value stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The payload itself, which is different each time.
    Payload,
    /// An object.
    Member,
    /// A list, whose other elements may be new or old.
    Element,
}

/// Why the walk ended early.
enum Stop<E> {
    /// Broken JSON.
    Broken,
    /// The store failed.
    Store(E),
}

impl<E> From<E> for Stop<E> {
    fn from(error: E) -> Self {
        Self::Store(error)
    }
}

/// Stores the parts of `text`, and returns where they stand, in order and without overlap.
pub(super) fn cut<P: Parts>(text: &[u8], parts: Interner<'_, P>) -> Result<Vec<Cut>, P::Error> {
    let string = if text.len() < SMALL { STRING_IN_SMALL } else { STRING };
    let mut cutter = Cutter { scanner: Scanner { text, at: 0 }, cuts: Vec::new(), parts, string };
    while matches!(cutter.scanner.next(), Some(b'{' | b'[' | b'"')) {
        match cutter.value(Place::Payload, DEPTH) {
            Ok(()) => {}
            Err(Stop::Broken) => break,
            Err(Stop::Store(error)) => return Err(error),
        }
    }
    cutter.cut_gaps()
}

struct Cutter<'a, 'p, P> {
    scanner: Scanner<'a>,
    cuts: Vec<Cut>,
    parts: Interner<'p, P>,
    /// The length from which on strings are parts.
    string: usize,
}

impl<P: Parts> Cutter<'_, '_, P> {
    /// Walks through the value that starts here.
    fn value(&mut self, place: Place, depth: usize) -> Result<(), Stop<P::Error>> {
        let (start, first_cut) = (self.scanner.at, self.cuts.len());
        match self.scanner.next() {
            Some(b'"') => {
                check(self.scanner.skip_string())?;
                let span = start..self.scanner.at;
                if span.len() >= self.string {
                    self.cut_text(span)?;
                }
                return Ok(());
            }
            Some(b'{' | b'[') if depth == 0 => check(self.scanner.skip_container())?,
            Some(b'{') => self.object(depth - 1)?,
            Some(b'[') => self.list(depth - 1)?,
            Some(_) | None => return check(self.scanner.skip_word()),
        }
        self.container_ended(place, start..self.scanner.at, first_cut)?;
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), Stop<P::Error>> {
        self.scanner.at += 1;
        if self.scanner.take(b'}') {
            return Ok(());
        }
        loop {
            check(self.scanner.next() == Some(b'"') && self.scanner.skip_string())?;
            check(self.scanner.take(b':'))?;
            self.scanner.next();
            self.value(Place::Member, depth)?;
            if !self.scanner.take(b',') {
                return check(self.scanner.take(b'}'));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<(), Stop<P::Error>> {
        self.scanner.at += 1;
        if self.scanner.take(b']') {
            return Ok(());
        }
        let text = self.scanner.text;
        let mut groups = Groups::new(Setting { depth, string: self.string });
        loop {
            self.scanner.next();
            let (start, first_cut) = (self.scanner.at, self.cuts.len());
            match groups.add_seen(text, start, &mut self.cuts, &mut self.parts)? {
                Some(end) => self.scanner.at = end,
                None => {
                    self.value(Place::Element, depth)?;
                    let span = start..self.scanner.at;
                    groups.add(text, span, first_cut, &mut self.cuts, &mut self.parts)?;
                }
            }
            if !self.scanner.take(b',') {
                return check(self.scanner.take(b']'));
            }
        }
    }

    /// Makes the object or list at `span` a part if it is worth it.
    fn container_ended(
        &mut self,
        place: Place,
        span: Range<usize>,
        first_cut: usize,
    ) -> Result<(), P::Error> {
        let inside = self.cuts.get(first_cut..).unwrap_or_default();
        let own = own_bytes(&span, inside);
        match (place, inside) {
            (Place::Payload, _) => Ok(()),
            (Place::Member | Place::Element, []) if own >= CONTAINER => self.cut_text(span),
            (Place::Element, _) if own >= ELEMENT => {
                let cut = self.parts.store(self.scanner.text, span, inside)?;
                self.cuts.truncate(first_cut);
                self.cuts.push(cut);
                Ok(())
            }
            (Place::Member | Place::Element, _) => Ok(()),
        }
    }

    /// Makes `span`, in which there are no cuts, a part. A long one is a part that consists of chunks.
    fn cut_text(&mut self, span: Range<usize>) -> Result<(), P::Error> {
        let text = self.scanner.text;
        if span.len() <= chunk::LONGEST_WHOLE {
            self.cuts.push(self.parts.store(text, span, &[])?);
            return Ok(());
        }
        let mut chunks = Vec::new();
        let mut at = span.start;
        for len in chunk::chunks(text.get(span.clone()).unwrap_or_default()) {
            chunks.push(self.parts.store(text, at..at + len, &[])?);
            at += len;
        }
        self.cuts.push(self.parts.store(text, span, &chunks)?);
        Ok(())
    }

    /// Makes long stretches between the cuts parts as well.
    fn cut_gaps(mut self) -> Result<Vec<Cut>, P::Error> {
        let cuts = std::mem::take(&mut self.cuts);
        let mut at = 0;
        for cut in cuts {
            self.cut_gap(at..cut.span.start)?;
            at = cut.span.end;
            self.cuts.push(cut);
        }
        self.cut_gap(at..self.scanner.text.len())?;
        Ok(self.cuts)
    }

    fn cut_gap(&mut self, span: Range<usize>) -> Result<(), P::Error> {
        if span.len() >= GAP { self.cut_text(span) } else { Ok(()) }
    }
}

/// Ends the walk where the JSON is not as expected.
fn check<E>(as_expected: bool) -> Result<(), Stop<E>> {
    if as_expected { Ok(()) } else { Err(Stop::Broken) }
}
