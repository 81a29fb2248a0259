//! What `bus/src/pack` makes of a long session of Hermes, in one run: the size of the SQLite file beside plain JSON lines,
//! gzip and zstd; four ways to store the parts; and how long packing and unpacking take. No limits, so a slow machine
//! causes no failure.
//!
//! `cargo bench -p hookbus-tests --bench pack`

#![expect(clippy::expect_used, reason = "a bench whose setup fails has failed")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(clippy::cast_precision_loss, reason = "rounded for people")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hookbus::pack::{MemoryParts, Packed, Packer, PartId, PartKey, PartSource, Parts, Unpacker};
use hookbus_tests::long_session::LongSession;
use hookbus_tests::payloads;
use hookbus_tests::words::Words;
use rusqlite::{Connection, OptionalExtension, params};

const EVENTS: &str = include_str!("../../bus/src/log/schema/0001_events.sql");
const ROUNDS: usize = 30;

/// How parts may be stored.
#[derive(Debug, Clone, Copy)]
enum Layout {
    /// The key is a column with an index: in the file twice.
    KeyAsColumn,
    /// The key is the primary key of a table of its own.
    KeyInTable,
    /// Eight bytes of the key as a column with an index. Needs a comparison of what is found.
    ShortKeyAsColumn,
    /// Eight bytes of the key as the rowid of a table of its own. Needs the same.
    ShortKeyAsRowid,
}

impl Layout {
    const fn schema(self) -> &'static str {
        match self {
            Self::KeyAsColumn => {
                "CREATE TABLE parts (id INTEGER PRIMARY KEY, data BLOB NOT NULL, key BLOB NOT NULL) STRICT;
                 CREATE UNIQUE INDEX parts_by_key ON parts (key);"
            }
            Self::KeyInTable => {
                "CREATE TABLE parts (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
                 CREATE TABLE part_keys (key BLOB PRIMARY KEY, id INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
            }
            Self::ShortKeyAsColumn => {
                "CREATE TABLE parts (id INTEGER PRIMARY KEY, data BLOB NOT NULL, key INTEGER NOT NULL) STRICT;
                 CREATE INDEX parts_by_key ON parts (key);"
            }
            Self::ShortKeyAsRowid => {
                "CREATE TABLE parts (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
                 CREATE TABLE part_keys (key INTEGER PRIMARY KEY, id INTEGER NOT NULL) STRICT;"
            }
        }
    }

    const fn find(self) -> &'static str {
        match self {
            Self::KeyAsColumn | Self::ShortKeyAsColumn => "SELECT id FROM parts WHERE key = ?1",
            Self::KeyInTable | Self::ShortKeyAsRowid => "SELECT id FROM part_keys WHERE key = ?1",
        }
    }

    fn key(self, key: &PartKey) -> rusqlite::types::Value {
        match self {
            Self::KeyAsColumn | Self::KeyInTable => key.as_bytes().to_vec().into(),
            Self::ShortKeyAsColumn | Self::ShortKeyAsRowid => key.short().into(),
        }
    }
}

/// The parts of a log.
struct Table<'a> {
    db: &'a Connection,
    layout: Layout,
    inserted: usize,
}

impl Parts for Table<'_> {
    type Error = rusqlite::Error;

    fn find(&mut self, key: &PartKey) -> Result<Option<PartId>, Self::Error> {
        let mut find = self.db.prepare_cached(self.layout.find())?;
        let id = find.query_row([self.layout.key(key)], |row| row.get(0)).optional()?;
        Ok(id.and_then(PartId::new))
    }

    fn insert(&mut self, key: &PartKey, data: &[u8]) -> Result<PartId, Self::Error> {
        let key = self.layout.key(key);
        self.inserted += 1;
        match self.layout {
            Layout::KeyAsColumn | Layout::ShortKeyAsColumn => {
                let sql = "INSERT INTO parts (data, key) VALUES (?1, ?2)";
                self.db.prepare_cached(sql)?.execute(params![data, key])?;
            }
            Layout::KeyInTable | Layout::ShortKeyAsRowid => {
                self.db.prepare_cached("INSERT INTO parts (data) VALUES (?1)")?.execute([data])?;
                let sql = "INSERT INTO part_keys (key, id) VALUES (?1, last_insert_rowid())";
                let id = self.db.last_insert_rowid();
                self.db.prepare_cached(sql)?.execute([key])?;
                return Ok(PartId::new(id).expect("a positive rowid"));
            }
        }
        Ok(PartId::new(self.db.last_insert_rowid()).expect("a positive rowid"))
    }
}

impl PartSource for Table<'_> {
    type Error = rusqlite::Error;

    fn read(&mut self, id: PartId, data: &mut Vec<u8>) -> Result<bool, Self::Error> {
        let mut select = self.db.prepare_cached("SELECT data FROM parts WHERE id = ?1")?;
        data.clear();
        let copy = |row: &rusqlite::Row<'_>| {
            data.extend_from_slice(row.get_ref(0)?.as_blob()?);
            Ok(())
        };
        Ok(select.query_row([id.as_i64()], copy).optional()?.is_some())
    }
}

fn main() {
    first_payload();
    small_payloads();
    let folder = tempfile::tempdir().expect("a temporary directory");
    for turns in [120, 200] {
        beside_files(folder.path(), turns);
        for layout in [
            Layout::KeyInTable,
            Layout::KeyAsColumn,
            Layout::ShortKeyAsColumn,
            Layout::ShortKeyAsRowid,
        ] {
            Recording::new(folder.path(), turns, layout).run();
        }
    }
}

/// The same session as JSON lines, as they are and compressed.
fn beside_files(folder: &Path, turns: usize) {
    let path = folder.join("lines");
    let mut lines = BufWriter::new(File::create(&path).expect("a file"));
    let (mut session, mut count) = (LongSession::new(turns, 7), 0);
    for payload in session.by_ref() {
        lines.write_all(&payload).and_then(|()| lines.write_all(b"\n")).expect("room");
        count += 1;
    }
    lines.flush().expect("room");
    let size = fs::metadata(&path).expect("the file").len();
    let text = session.new_text as f64;
    println!("{turns} turns, {count} events, {:.3} MB of new text", text / 1e6);
    println!(
        "  JSON lines               {:9.3} MB = {:6.2} x",
        size as f64 / 1e6,
        size as f64 / text
    );
    for (name, arguments) in
        [("gzip", &["-6", "-c"][..]), ("zstd", &["-19", "--long=31", "-c", "-q"])]
    {
        let input = File::open(&path).expect("the file");
        let run = Command::new(name).args(arguments).stdin(input).stderr(Stdio::null()).output();
        if let Ok(output) = run {
            let size = output.stdout.len() as f64;
            println!(
                "  {name} {:20} {:9.3} MB = {:6.2} x",
                arguments.join(" "),
                size / 1e6,
                size / text
            );
        }
    }
}

/// A session that is written to a log.
struct Recording {
    db: Connection,
    layout: Layout,
    turns: usize,
    packer: Packer,
    random: Words,
    seq: i64,
}

impl Recording {
    #[expect(clippy::disallowed_methods, reason = "not a log, only its schema")]
    fn new(folder: &Path, turns: usize, layout: Layout) -> Self {
        let db = Connection::open(folder.join(format!("{turns}-{layout:?}"))).expect("a database");
        db.pragma_update(None, "synchronous", "OFF").expect("a pragma");
        db.set_prepared_statement_cache_capacity(64);
        db.execute_batch(EVENTS).expect("the schema of the log");
        db.execute_batch(layout.schema()).expect("a schema");
        Self { db, layout, turns, packer: Packer::default(), random: Words::new(1), seq: 0 }
    }

    fn run(mut self) {
        let mut session = LongSession::new(self.turns, 7);
        let (mut last, mut early, mut late) = (Vec::new(), Vec::new(), Vec::new());
        let mut parts = 0;
        let mut ends = 0;
        for payload in session.by_ref() {
            let start = Instant::now();
            parts += self.append(&payload);
            ends += usize::from(payload.starts_with(b"{\"hook_event_name\": \"on_session_end"));
            match ends {
                10 => early.push(start.elapsed()),
                ends if ends + 1 == self.turns => late.push(start.elapsed()),
                _ => {}
            }
            if payload.starts_with(b"{\"hook_event_name\": \"pre_api_request") {
                last = payload;
            }
        }
        self.db.execute_batch("VACUUM").expect("room");
        let pages = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let size: f64 = self.db.query_row(pages, [], |row| row.get(0)).expect("a size");
        println!(
            "  {:24} {:9.3} MB = {:6.2} x, {parts} parts; all events of turn 10 {:?}, of the last {:?}",
            format!("{:?}", self.layout),
            size / 1e6,
            size / session.new_text as f64,
            early.iter().sum::<Duration>(),
            late.iter().sum::<Duration>(),
        );
        if matches!(self.layout, Layout::KeyInTable) {
            self.time(&last);
        }
    }

    /// Appends an event in a transaction. Returns how many parts were new.
    fn append(&mut self, payload: &[u8]) -> usize {
        self.seq += 1;
        let transaction = self.db.transaction().expect("a transaction");
        let mut store = Table { db: &transaction, layout: self.layout, inserted: 0 };
        let packed = self.packer.pack(payload, &mut store).expect("a pack");
        let inserted = store.inserted;
        let stored = match &packed {
            Packed::AsIs => payload,
            Packed::Skeleton(skeleton) => skeleton,
        };
        let id = format!("{:08x}{}", self.seq, self.random.hex(8)).into_bytes();
        let turn = "20261116_003429_2e141a:dc369afc-f11b-4d0a-83fe-84db068a2d78:";
        let hash = self.random.hex(32).into_bytes();
        let sql = "INSERT INTO events VALUES (?1, ?2, ?3, 'hermes', '20261116_003429_2e141a', ?4, 'pre_api_request',
                   'model.before', NULL, NULL, NULL, '{\"cwd\":\"/home/dev/project\",\"env\":{}}', ?5, ?6)";
        let time = 1_790_000_000_000_000 + self.seq * 1000;
        let turn = format!("{turn}{}", self.random.hex(8));
        let values = params![self.seq, id, time, turn, stored, hash];
        transaction.prepare_cached(sql).expect("SQL").execute(values).expect("a row");
        transaction.commit().expect("a commit");
        self.packer.commit();
        inserted
    }

    /// How long the last and largest payload takes.
    fn time(&mut self, payload: &[u8]) {
        let mut store = Table { db: &self.db, layout: self.layout, inserted: 0 };
        let mut skeleton = Vec::new();
        let pack = best(|| {
            if let Packed::Skeleton(packed) = self.packer.pack(payload, &mut store).expect("a pack")
            {
                skeleton = packed;
            }
        });
        let cold = best(|| {
            let unpacked = Unpacker::default().unpack(&skeleton, &mut store).expect("the payload");
            assert_eq!(unpacked, payload);
        });
        let mut unpacker = Unpacker::default();
        let warm = best(|| drop(unpacker.unpack(&skeleton, &mut store).expect("the payload")));
        let per_megabyte = |time: Duration| time.as_secs_f64() * 1e9 / payload.len() as f64;
        println!(
            "    last request, {} bytes, skeleton {}: pack {pack:.0?} ({:.2} ms/MB), unpack {cold:.0?} with a new unpacker \
             ({:.2} ms/MB), {warm:.0?} with one that read it before ({:.2} ms/MB)",
            payload.len(),
            skeleton.len(),
            per_megabyte(pack),
            per_megabyte(cold),
            per_megabyte(warm),
        );
    }
}

/// What the first payload of a process costs: it prepares the dictionary.
fn first_payload() {
    let payload = payloads::one("hermes", "post_api_request").to_string();
    let start = Instant::now();
    let packed = Packer::default().pack(payload.as_bytes(), &mut MemoryParts::default());
    println!("first payload of the process: {:?}", start.elapsed());
    assert!(matches!(packed, Ok(Packed::Skeleton(_))));
}

/// What packing costs where there is nothing large.
fn small_payloads() {
    let (mut packer, mut store) = (Packer::default(), MemoryParts::default());
    for (agent, name) in [
        ("hermes", "on_session_end"),
        ("hermes", "pre_tool_call"),
        ("claude", "Stop"),
        ("gemini", "BeforeTool"),
    ] {
        let payload = payloads::one(agent, name).to_string();
        let mut size = payload.len();
        let time = best(|| {
            let packed = packer.pack(payload.as_bytes(), &mut store).expect("memory");
            if let Packed::Skeleton(skeleton) = packed {
                size = skeleton.len();
            }
        });
        println!("{agent} {name}: {} bytes to {size} in {time:.1?}", payload.len());
    }
}

fn best(mut run: impl FnMut()) -> Duration {
    let one = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..ROUNDS).map(one).min().expect("rounds")
}
