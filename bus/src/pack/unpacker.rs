//! Puts payloads together again. Damaged or hostile bytes give an error: no panic, no cycle (a part refers to smaller
//! numbers only), no depth without end, no more memory than the payload claims to need, and no more than a log can hold.

use std::sync::Arc;

use super::bodies::{Bodies, OpenPart};
use super::chunk;
use super::error::{UnpackError, Unreadable};
use super::packer::{FORMAT, LONGEST_PAYLOAD};
use super::part::{PartId, PartSource};
use super::recipe::{NoRecipe, Step, Steps};
use super::sealed::{Body, Compression, Opener, Sealed, Sealer};
use super::varint;

/// Parts inside of parts. Those that we write are less deep: 24 levels of JSON, each a list with a few levels of nodes.
const DEPTH: usize = 256;
/// A recipe is not longer than what it makes, but for this.
const RECIPE_EXTRA: usize = 16;
/// All recipes that are open at once, each inside of the one before, are not longer than twice the payload, but for this: their
/// bytes end up in the payload, and their references stand for more bytes than they have.
const OPEN_EXTRA: usize = DEPTH * RECIPE_EXTRA;
/// More parts than a payload has room for are not referred to by one recipe.
const MOST_REFERENCES: usize = LONGEST_PAYLOAD / 64;
/// Memory for a payload is reserved up to here before there are any bytes for it.
const RESERVED: usize = 4 << 20;

/// Unpacks payloads of one store, one after the other. Keeps the parts that it read lately, so use one for many payloads.
#[derive(Debug, Default)]
pub struct Unpacker {
    opener: Opener,
    bodies: Bodies,
    data: Vec<u8>,
    body: Vec<u8>,
}

impl Unpacker {
    /// The payload that `skeleton` was made of.
    pub fn unpack<S: PartSource>(
        &mut self,
        skeleton: &[u8],
        source: &mut S,
    ) -> Result<Vec<u8>, UnpackError<S::Error>> {
        let (len, sealed) = header(skeleton)?;
        let sealed = Sealed::read(sealed)?;
        if sealed.base.is_some() {
            return Err(Unreadable::Damaged("a skeleton has a base").into());
        }
        let mut body = Vec::new();
        self.opener.open(&sealed, &[], len + RECIPE_EXTRA, &mut body)?;
        let out = Vec::with_capacity(len.min(RESERVED));
        let mut work = Work { unpacker: self, source, out, len, open: body.len() };
        work.expand(sealed.kind, &body, None, DEPTH)?;
        if work.out.len() == len {
            Ok(work.out)
        } else {
            Err(Unreadable::Damaged("the parts are shorter than the payload").into())
        }
    }

    /// Forgets the parts that it read. Needed only if the store was replaced by another one.
    pub fn clear(&mut self) {
        self.bodies.clear();
    }

    /// The parts that a skeleton refers to, without those that only its parts refer to. In order, possibly repeated.
    pub fn references_of_skeleton(&mut self, skeleton: &[u8]) -> Result<Vec<PartId>, Unreadable> {
        let (_, sealed) = header(skeleton)?;
        self.references_of_part(sealed)
    }

    /// The parts that the part with this data refers to, without those that only its parts refer to. In order, possibly
    /// repeated.
    pub fn references_of_part(&mut self, data: &[u8]) -> Result<Vec<PartId>, Unreadable> {
        let sealed = Sealed::read(data)?;
        let mut parts: Vec<PartId> = sealed.base.into_iter().collect();
        if sealed.kind == Body::Recipe {
            let mut recipe = Vec::new();
            self.opener.open(&sealed, &[], LONGEST_PAYLOAD, &mut recipe)?;
            for step in Steps::of(&recipe) {
                if let Step::Part { id, .. } = step? {
                    if parts.len() == MOST_REFERENCES {
                        return Err(Unreadable::Damaged("a recipe refers to too many parts"));
                    }
                    parts.push(id);
                }
            }
        }
        Ok(parts)
    }

    /// The part that the part with this data is compressed with. It is the first of its references.
    pub fn base_of_part(data: &[u8]) -> Result<Option<PartId>, Unreadable> {
        Ok(Sealed::read(data)?.base)
    }

    /// The data of the part `id`, compressed without another part, so that the part that it is compressed with now can be
    /// deleted.
    pub fn without_base<S: PartSource>(
        &mut self,
        id: PartId,
        source: &mut S,
    ) -> Result<Vec<u8>, UnpackError<S::Error>> {
        let mut work =
            Work { unpacker: self, source, out: Vec::new(), len: LONGEST_PAYLOAD, open: 0 };
        let (kind, body) = work.read(id)?;
        let mut data = Vec::new();
        Sealer::new(Compression::WhereItPays).seal(kind, &body, &mut data);
        Ok(data)
    }
}

impl Unpacker {
    /// The body of the part that was read last, which is `id`.
    fn open(
        &mut self,
        id: PartId,
        base_text: &[u8],
        longest: usize,
    ) -> Result<OpenPart, Unreadable> {
        let sealed = Sealed::read(&self.data)?;
        self.body.clear();
        self.opener.open(&sealed, base_text, longest, &mut self.body)?;
        let body: Arc<[u8]> = Arc::from(self.body.as_slice());
        self.bodies.add(id, sealed.kind, &body);
        Ok((sealed.kind, body))
    }
}

/// The length of the payload, and what follows.
fn header(skeleton: &[u8]) -> Result<(usize, &[u8]), Unreadable> {
    let (&format, mut rest) = skeleton.split_first().ok_or(Unreadable::Damaged("it is empty"))?;
    if format != FORMAT {
        return Err(Unreadable::UnknownFormat(format));
    }
    let len = varint::read(&mut rest).ok_or(Unreadable::Damaged("it has no length"))?;
    match usize::try_from(len) {
        Ok(known) if known <= LONGEST_PAYLOAD => Ok((known, rest)),
        Ok(_) | Err(_) => Err(Unreadable::TooLong(len)),
    }
}

/// One payload in the making.
struct Work<'a, S> {
    unpacker: &'a mut Unpacker,
    source: &'a mut S,
    out: Vec<u8>,
    len: usize,
    /// The length of the recipes that are open.
    open: usize,
}

impl<S: PartSource> Work<'_, S> {
    /// Appends what `body` makes. `own` is its number if it is a part.
    fn expand(
        &mut self,
        kind: Body,
        body: &[u8],
        own: Option<PartId>,
        depth: usize,
    ) -> Result<(), UnpackError<S::Error>> {
        if kind == Body::Text {
            return Ok(self.append(body)?);
        }
        for step in Steps::of(body) {
            match step.map_err(Unreadable::from)? {
                Step::Bytes(bytes) => self.append(bytes)?,
                Step::Part { id, then } => {
                    check_earlier(id, own)?;
                    self.part(id, depth)?;
                    self.append(then)?;
                }
            }
        }
        Ok(())
    }

    fn part(&mut self, id: PartId, depth: usize) -> Result<(), UnpackError<S::Error>> {
        let depth = depth.checked_sub(1).ok_or(Unreadable::Damaged("its parts are too deep"))?;
        let (kind, body) = match self.unpacker.bodies.get(id) {
            Some(known) => known,
            None => self.read(id)?,
        };
        let start = self.out.len();
        self.open += body.len();
        self.expand(kind, &body, Some(id), depth)?;
        self.open -= body.len();
        if self.out.len() == start {
            return Err(Unreadable::Damaged("a part makes no bytes").into());
        }
        Ok(())
    }

    /// Reads a part, and the one that it is compressed with.
    fn read(&mut self, id: PartId) -> Result<OpenPart, UnpackError<S::Error>> {
        self.fetch(id)?;
        let mut base_text: Arc<[u8]> = Arc::default();
        if let Some(base) = Sealed::read(&self.unpacker.data)?.base {
            check_earlier(base, Some(id))?;
            let data = std::mem::take(&mut self.unpacker.data);
            base_text = self.base(base)?;
            self.unpacker.data = data;
        }
        let open = (2 * self.len + OPEN_EXTRA).saturating_sub(self.open);
        let longest = (self.len - self.out.len() + RECIPE_EXTRA).min(open);
        Ok(self.unpacker.open(id, &base_text, longest)?)
    }

    /// The text of a part that others are compressed with. It is text, and compressed without another part.
    fn base(&mut self, id: PartId) -> Result<Arc<[u8]>, UnpackError<S::Error>> {
        if let Some((Body::Text, text)) = self.unpacker.bodies.get(id) {
            return Ok(text);
        }
        self.fetch(id)?;
        let sealed = Sealed::read(&self.unpacker.data)?;
        if sealed.base.is_some() || sealed.kind == Body::Recipe {
            return Err(Unreadable::Damaged("a base is no plain text").into());
        }
        let (_, text) = self.unpacker.open(id, &[], chunk::LONGEST_WHOLE)?;
        Ok(text)
    }

    fn fetch(&mut self, id: PartId) -> Result<(), UnpackError<S::Error>> {
        let found = self.source.read(id, &mut self.unpacker.data).map_err(UnpackError::Store)?;
        if found { Ok(()) } else { Err(UnpackError::MissingPart(id)) }
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Unreadable> {
        self.check_room(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn check_room(&self, bytes: usize) -> Result<(), Unreadable> {
        if bytes <= self.len - self.out.len() {
            Ok(())
        } else {
            Err(Unreadable::Damaged("the parts are longer than the payload"))
        }
    }
}

fn check_earlier(id: PartId, own: Option<PartId>) -> Result<(), Unreadable> {
    match own {
        Some(own) if id >= own => Err(Unreadable::Damaged("a part refers to a later one")),
        Some(_) | None => Ok(()),
    }
}

impl From<NoRecipe> for Unreadable {
    fn from(NoRecipe: NoRecipe) -> Self {
        Self::Damaged("it is no recipe")
    }
}
