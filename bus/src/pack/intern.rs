//! Stores parts: looks at the texts seen lately, asks the cache and the store for the key, and compresses and inserts what
//! none of them has.

use std::ops::Range;

use super::cache::PartCache;
use super::nodes::SeenNodes;
use super::part::{PartId, PartKey, Parts};
use super::recipe::{self, Cut};
use super::sealed::{Body, Compression, Sealer};
use super::seen::SeenTexts;
use super::similar::{RecentTexts, Samples};

/// What a packer knows about the parts of one store, and the memory to write more.
#[derive(Debug)]
pub(super) struct Known {
    cache: PartCache,
    seen: SeenTexts,
    pub(super) nodes: SeenNodes,
    recent: RecentTexts,
    pub(super) sealer: Sealer,
    recipe: Vec<u8>,
    data: Vec<u8>,
}

impl Known {
    pub(super) fn new(compression: Compression) -> Self {
        Self {
            cache: PartCache::default(),
            seen: SeenTexts::default(),
            nodes: SeenNodes::default(),
            recent: RecentTexts::default(),
            sealer: Sealer::new(compression),
            recipe: Vec::new(),
            data: Vec::new(),
        }
    }

    /// What was inserted since the last commit is there to stay.
    pub(super) fn commit(&mut self) {
        self.cache.commit();
    }

    /// Forgets what was inserted since the last commit.
    pub(super) fn roll_back(&mut self) {
        self.cache.roll_back();
        self.seen.clear();
        self.nodes.clear();
        self.recent.clear();
    }

    /// Forgets what the store has.
    pub(super) fn clear(&mut self) {
        self.cache.clear();
        self.seen.clear();
        self.nodes.clear();
        self.recent.clear();
    }
}

/// A store of parts, with what is known about it.
#[derive(Debug)]
pub(super) struct Interner<'a, P> {
    pub(super) store: &'a mut P,
    pub(super) known: &'a mut Known,
}

impl<P: Parts> Interner<'_, P> {
    /// Stores `span` of `text`, of which `cuts` are parts already.
    pub(super) fn store(
        &mut self,
        text: &[u8],
        span: Range<usize>,
        cuts: &[Cut],
    ) -> Result<Cut, P::Error> {
        if cuts.is_empty() {
            let (id, hash) = self.text(text.get(span.clone()).unwrap_or_default())?;
            return Ok(Cut { span, id, hash });
        }
        let mut body = std::mem::take(&mut self.known.recipe);
        body.clear();
        recipe::write(text, &span, cuts, &mut body);
        let key = PartKey::of_recipe(&body);
        let id = self.recipe(&key, &body);
        self.known.recipe = body;
        Ok(Cut { span, id: id?, hash: key.short().cast_unsigned() })
    }

    /// Stores a text. Returns its part and its hash.
    fn text(&mut self, text: &[u8]) -> Result<(PartId, u64), P::Error> {
        if let Some(seen) = self.known.seen.get(text) {
            return Ok(seen);
        }
        let key = PartKey::of_text(text);
        let id = match self.find(&key)? {
            Some(id) => id,
            None => self.new_text(&key, text)?,
        };
        let hash = key.short().cast_unsigned();
        self.known.seen.add(text, id, hash);
        Ok((id, hash))
    }

    fn new_text(&mut self, key: &PartKey, text: &[u8]) -> Result<PartId, P::Error> {
        self.seal(Body::Text, text);
        let Known { recent, sealer, data, .. } = &mut *self.known;
        let samples = Samples::of(text);
        let is_like_another = match recent.most_similar(text, &samples) {
            Some((base, base_text)) => sealer.seal_like(text, base, base_text, data),
            None => false,
        };
        let id = self.insert(key)?;
        if !is_like_another {
            self.known.recent.add(id, text, samples); // a base has no base itself
        }
        Ok(id)
    }

    fn recipe(&mut self, key: &PartKey, recipe: &[u8]) -> Result<PartId, P::Error> {
        if let Some(id) = self.find(key)? {
            return Ok(id);
        }
        self.seal(Body::Recipe, recipe);
        self.insert(key)
    }

    fn seal(&mut self, kind: Body, body: &[u8]) {
        self.known.data.clear();
        self.known.sealer.seal(kind, body, &mut self.known.data);
    }

    fn find(&mut self, key: &PartKey) -> Result<Option<PartId>, P::Error> {
        if let Some(id) = self.known.cache.get(key) {
            return Ok(Some(id));
        }
        let found = self.store.find(key)?;
        if let Some(id) = found {
            self.known.cache.found(*key, id);
        }
        Ok(found)
    }

    fn insert(&mut self, key: &PartKey) -> Result<PartId, P::Error> {
        let id = self.store.insert(key, &self.known.data)?;
        self.known.cache.inserted(*key, id);
        Ok(id)
    }
}
