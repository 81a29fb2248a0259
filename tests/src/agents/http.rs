//! The part of HTTP/1.1 that a model server needs: one request per connection, a body with a length, and a
//! response that is JSON or a stream of server-sent events.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// One request, read to the end of its body.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    pub(super) body: Value,
}

/// A response.
#[derive(Debug)]
pub(super) enum Response {
    Json {
        status: u16,
        body: Value,
    },
    /// Each string is the `data` of one event.
    Events(Vec<String>),
}

impl Response {
    pub(super) fn ok(body: Value) -> Self {
        Self::Json { status: 200, body }
    }
}

/// Reads one request; `None` if the client closed the connection without one.
pub(super) fn read(stream: &TcpStream) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let length = body_length(&mut reader)?;
    let mut raw = vec![0; length];
    reader.read_exact(&mut raw)?;
    let body = serde_json::from_slice(&raw).unwrap_or(Value::Null);
    Ok(Some(Request { method, path, body }))
}

fn body_length(reader: &mut impl BufRead) -> io::Result<usize> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok(length);
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(io::Error::other("chunked request bodies are not supported"));
        }
    }
}

/// Writes the response. A stream of events ends when the connection is closed afterwards.
pub(super) fn write(stream: &mut TcpStream, response: &Response) -> io::Result<()> {
    match response {
        Response::Json { status, body } => {
            let body = body.to_string();
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status} Scripted\r\nContent-Type: application/json\r\n\
                 Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )?;
        }
        Response::Events(events) => {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
            )?;
            for event in events {
                write!(stream, "data: {event}\r\n\r\n")?;
                stream.flush()?;
            }
        }
    }
    stream.flush()
}
