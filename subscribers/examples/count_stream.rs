//! Counts the calls of each tool, from the stream of all buses: `count_stream nats://localhost:4222 counts.db`

#![expect(clippy::disallowed_methods, reason = "a database of its own")]

use std::error::Error;
use std::time::Duration;

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::{self, Message};
use futures_util::StreamExt;
use hookbus::envelope;
use rusqlite::{Connection, OptionalExtension, Transaction};

const TABLES: &str = "CREATE TABLE IF NOT EXISTS positions (bus TEXT PRIMARY KEY, seq INTEGER);
                      CREATE TABLE IF NOT EXISTS tools (tool TEXT PRIMARY KEY, calls INTEGER);";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, counts] = arguments.as_slice() else { return Err("name a server and a file".into()) };
    let mut db = Connection::open(counts)?;
    db.execute_batch(TABLES)?;
    let stream = jetstream::new(async_nats::connect(url).await?);
    let stream = stream.get_stream("HOOKBUS").await.map_err(|error| error.to_string())?;
    let config = Config { durable_name: Some("count-tools".to_owned()), ..Config::default() };
    let consumer = stream.create_consumer(config).await.map_err(|error| error.to_string())?;
    loop {
        let batch = consumer.fetch().max_messages(500).expires(Duration::from_secs(1)).messages();
        let messages: Vec<_> = batch.await.map_err(|error| error.to_string())?.collect().await;
        if messages.is_empty() {
            return Ok(()); // everything is counted
        }
        let messages: Vec<Message> =
            messages.into_iter().collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        // One transaction for the positions and for what is counted.
        let transaction = db.transaction()?;
        for message in &messages {
            count(&transaction, &message.payload)?;
        }
        transaction.commit()?;
        for message in &messages {
            message.ack().await.map_err(|error| error.to_string())?;
        }
    }
}

/// Counts an event once, however often it is delivered. What is no event of hookbus is passed over.
fn count(db: &Transaction<'_>, body: &[u8]) -> Result<(), Box<dyn Error>> {
    let Ok(event) = envelope::read(body) else { return Ok(()) };
    let (bus, seq) = (event.bus.to_string(), event.row.seq.as_i64());
    let last = "SELECT seq FROM positions WHERE bus = ?1";
    let last: Option<i64> = db.query_row(last, [&bus], |row| row.get(0)).optional()?;
    if last.is_some_and(|last| seq <= last) {
        return Ok(());
    }
    if event.row.kind == "tool.before" {
        let add =
            "INSERT INTO tools VALUES (?1, 1) ON CONFLICT (tool) DO UPDATE SET calls = calls + 1";
        db.execute(add, [&event.row.tool])?;
    }
    db.execute("INSERT OR REPLACE INTO positions VALUES (?1, ?2)", (&bus, seq))?;
    Ok(())
}
