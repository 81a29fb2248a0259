//! Text that looks like what agents and tools write, made of a vocabulary by a seeded generator: compresses about as real
//! text does, and is different each time.

/// Makes text, ids and times. The same seed gives the same.
#[derive(Debug, Clone)]
pub struct Words {
    state: u64,
}

/// The words, the most frequent ones first.
const VOCABULARY: &str = "the of to and a in is it that for was on are with as be this have from or had by not but what all were when we \
there can an your which their said if do will each about how up out them then she many some so these would other into has more her two like \
him see time could no make than first been its who now people my made over did down only way find use may water long little very after words \
called just where most know get through back much before go good new write our used me man too any day same right look think also around \
another came come work three word must because does part even place well such here take why things help put years different away again off \
went old number great tell men say small every found still between name should home big give air line set own under read last never us left \
end along while might next sound below saw something thought both few those always looked show large often together asked house world going \
want school important until form food keep children feet land side without boy once animals life enough took sometimes four head above kind \
began almost live page got earth need far hand high year mother light parts country father let night following picture being study second \
eyes soon times story boys since white days ever paper hard near sentence better best across during today others however sure means knew it's \
try told young miles sun ways thing whole hear example heard several change answer room sea against top turned learn point city play toward \
five using himself usually function return value request response server client token session payload module import error warning failed \
passed build test release branch commit merge patch file folder path line column index buffer thread queue worker lock timeout retry cache \
database table schema migration row query join filter sort limit offset cursor transaction rollback checkpoint snapshot replica cluster node \
pod container image volume network socket port proxy gateway router balancer certificate key secret header cookie cors middleware handler \
controller service repository model view template component render state store action reducer effect hook event listener callback promise \
async await stream pipe reader writer parser lexer compiler linker debugger profiler benchmark fixture mock assert coverage pipeline deploy \
staging production rollback monitor alert metric trace span dashboard incident customer invoice order shipment basket price discount tax \
currency refund account balance ledger statement report export archive upload download attachment thumbnail avatar comment thread reply \
mention notification subscription plan quota usage invoice billing address postcode region locale timezone calendar meeting agenda minutes \
deadline milestone estimate backlog sprint ticket epic label priority severity owner reviewer approver auditor policy consent retention \
encryption signature fingerprint digest nonce salt entropy random generator sequence permutation combination matrix vector tensor gradient \
epoch batch layer weight bias activation dropout optimizer scheduler checkpointing inference prompt completion embedding retrieval ranking";

impl Words {
    /// A generator with this seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Text of at least `len` bytes, and not much more.
    pub fn text(&mut self, len: usize) -> String {
        let mut text = String::with_capacity(len + 24);
        let vocabulary: Vec<&str> = VOCABULARY.split_whitespace().collect();
        let mut words = 0;
        while text.len() < len {
            text.push_str(&self.fragment(&vocabulary));
            words += 1;
            text.push_str(match (words % 12, self.below(8)) {
                (0, 0) => ".\n\n",
                (0, _) => ". ",
                (_, 0) => ", ",
                _ => " ",
            });
        }
        text
    }

    /// A word, or something that stands between words in what agents and tools write.
    fn fragment(&mut self, vocabulary: &[&str]) -> String {
        let mut word = || self.word(vocabulary).to_owned();
        let [one, two, three] = [word(), word(), word()];
        match self.below(60) {
            0 => format!("src/{one}/{two}_{three}.rs:{}", self.below(900)),
            1 => format!("`{one}_{two}()`"),
            2 => self.below(100_000).to_string(),
            3 => self.hex(8),
            4 => format!("\n- {one}:"),
            5 => format!("\"{one}\""),
            _ => one,
        }
    }

    /// A word; those at the beginning of the vocabulary come more often.
    fn word<'a>(&mut self, vocabulary: &[&'a str]) -> &'a str {
        let len = u64::try_from(vocabulary.len()).unwrap_or(1);
        let place = self.below(len) * self.below(len) / len;
        usize::try_from(place)
            .ok()
            .and_then(|place| vocabulary.get(place))
            .copied()
            .unwrap_or("word")
    }

    /// So many hexadecimal digits.
    pub fn hex(&mut self, digits: usize) -> String {
        (0..digits)
            .map(|_| {
                char::from_digit(u32::try_from(self.below(16)).unwrap_or(0), 16).unwrap_or('0')
            })
            .collect()
    }

    /// A time in seconds since 1970, as Python writes it.
    pub fn time(&mut self) -> f64 {
        1_794_789_280.0 + self.seconds()
    }

    /// Some seconds, with a fraction.
    pub fn seconds(&mut self) -> f64 {
        f64::from(u32::try_from(self.below(1 << 31)).unwrap_or(0)) / 7_777_777.0
    }

    /// A number below `limit`.
    pub const fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15); // splitmix64
        let mut mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}
