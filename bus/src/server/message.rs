//! The protocol of the socket: one request, one byte that confirms it, one reply. A message is a list of
//! byte strings (payloads and environments need not be text), each with its length before it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use super::BuildVersion;
use crate::caller::Caller;
use crate::event::{Agent, EventId, Payload, Time, Wire};
use crate::pipeline::Call;

/// The protocol version, the first byte of every message. A higher one comes from a newer client.
const PROTOCOL: u8 = 2;

/// The confirmation: sent as soon as a request is read, so that the client can tell a busy daemon from
/// a hung one.
pub(super) const RECEIVED: u8 = b'!';

/// A payload from this length on is not copied: it is sent by itself, and stays in the message that it came in. What comes
/// behind it there, the client's environment, is cut off: the daemon may keep the payload, and should not keep that.
const IN_PLACE: usize = 64 << 10;

/// What a client asks for.
#[derive(Debug, Clone)]
pub enum DaemonRequest {
    /// Handle an event.
    Call {
        /// The client's build.
        build: BuildVersion,
        /// The event.
        call: Box<Call>,
    },
    /// Report the daemon's state.
    Status,
}

/// What the daemon replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaemonReply {
    /// The answer for the agent; empty if there is none.
    Answer {
        /// What the client prints.
        text: Vec<u8>,
        /// What the user is told besides. A part of its own, which earlier clients do not read.
        notice: Vec<u8>,
    },
    /// The client has to handle the event itself: the daemon exits for a newer version, or does not
    /// understand the request.
    Declined,
    /// The daemon's state, as JSON.
    Status(Vec<u8>),
}

impl DaemonRequest {
    /// Writes the request in one piece; a large payload by itself, without copying it.
    pub(super) fn write_to(&self, mut to: impl Write) -> io::Result<()> {
        let mut parts = MessageWriter::default();
        match self {
            Self::Status => {
                parts.add(b"status");
                to.write_all(&parts.finish(0))
            }
            Self::Call { build, call } => {
                let Call { id, at, agent, raw, caller, deadline } = call.as_ref();
                let micros = u64::try_from(deadline.as_micros()).unwrap_or(u64::MAX);
                let Caller { cwd, env, pid, wire } = caller;
                parts.add(b"call");
                parts.add(&build.to_bytes());
                parts.add(id.as_bytes());
                parts.add(&at.micros().to_be_bytes());
                parts.add(agent.as_str().as_bytes());
                parts.add(wire.as_str().as_bytes());
                parts.add(&micros.to_be_bytes());
                parts.add(&pid.unwrap_or(0).to_be_bytes());
                parts.add(cwd.as_os_str().as_bytes());
                parts.add_length(raw);
                let mut after = MessageWriter::default();
                for (key, value) in env {
                    after.add(key.as_bytes());
                    after.add(value.as_bytes());
                }
                let MessageWriter(after) = after;
                let mut message = parts.finish(raw.len() + after.len());
                if raw.len() < IN_PLACE {
                    message.reserve(raw.len() + after.len());
                    message.extend_from_slice(raw);
                } else {
                    to.write_all(&message)?;
                    to.write_all(raw)?;
                    message.clear();
                }
                message.extend_from_slice(&after);
                to.write_all(&message)
            }
        }
    }

    /// Whether these bytes are in a later version of the protocol.
    pub(super) fn is_newer_protocol(bytes: &[u8]) -> bool {
        bytes.first().is_some_and(|protocol| *protocol > PROTOCOL)
    }

    /// Reads a request; none if it is malformed or in another version of the protocol.
    pub(super) fn from_bytes(mut bytes: Vec<u8>) -> Option<Self> {
        let (mut request, payload) = Self::without_payload(&bytes)?;
        if let Self::Call { call, .. } = &mut request {
            call.raw = if payload.len() < IN_PLACE {
                bytes.get(payload)?.to_vec().into()
            } else {
                bytes.truncate(payload.end);
                bytes.shrink_to_fit();
                Payload::within(bytes, payload)
            };
        }
        Some(request)
    }

    /// The request, and where its payload is.
    fn without_payload(bytes: &[u8]) -> Option<(Self, Range<usize>)> {
        let (protocol, mut rest) = bytes.split_first()?;
        if *protocol != PROTOCOL {
            return None;
        }
        match read_part(&mut rest)? {
            b"status" => Some((Self::Status, 0..0)),
            b"call" => {
                let build = BuildVersion::from_bytes(read_part(&mut rest)?)?;
                let id = EventId::from_bytes(read_part(&mut rest)?.try_into().ok()?);
                if id == id.of_decision() {
                    return None; // the event would be taken for a decision
                }
                let at = i64::from_be_bytes(read_part(&mut rest)?.try_into().ok()?);
                let agent =
                    std::str::from_utf8(read_part(&mut rest)?).ok()?.parse::<Agent>().ok()?;
                let wire = Wire::parse(std::str::from_utf8(read_part(&mut rest)?).ok()?)?;
                let deadline = u64::from_be_bytes(read_part(&mut rest)?.try_into().ok()?);
                let pid = u32::from_be_bytes(read_part(&mut rest)?.try_into().ok()?);
                let cwd = PathBuf::from(os_string(read_part(&mut rest)?));
                let length = read_part(&mut rest)?.len();
                let end = bytes.len() - rest.len();
                let mut env = Vec::new();
                while !rest.is_empty() {
                    env.push((os_string(read_part(&mut rest)?), os_string(read_part(&mut rest)?)));
                }
                let pid = (pid != 0).then_some(pid);
                let caller = Caller { cwd, env, pid, wire };
                let deadline = Duration::from_micros(deadline);
                let at = Time::from_micros(at);
                let call = Call { id, at, agent, raw: Payload::default(), caller, deadline };
                Some((Self::Call { build, call: Box::new(call) }, end - length..end))
            }
            _ => None,
        }
    }
}

impl DaemonReply {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut parts = MessageWriter::default();
        match self {
            Self::Answer { text, notice } => {
                parts.add(b"answer");
                parts.add(text);
                parts.add(notice);
            }
            Self::Declined => parts.add(b"declined"),
            Self::Status(json) => {
                parts.add(b"status");
                parts.add(json);
            }
        }
        parts.finish(0)
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (_, mut rest) = bytes.split_first()?;
        match read_part(&mut rest)? {
            b"answer" => {
                let text = read_part(&mut rest)?.to_vec();
                // An earlier daemon sends none.
                let notice = read_part(&mut rest).unwrap_or_default().to_vec();
                Some(Self::Answer { text, notice })
            }
            b"declined" => Some(Self::Declined),
            b"status" => Some(Self::Status(read_part(&mut rest)?.to_vec())),
            _ => None,
        }
    }
}

fn os_string(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// A message under construction.
#[derive(Default)]
struct MessageWriter(Vec<u8>);

impl MessageWriter {
    fn add(&mut self, bytes: &[u8]) {
        self.add_length(bytes);
        self.0.extend_from_slice(bytes);
    }

    /// For a part that is sent after this one.
    fn add_length(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    }

    /// The message: its length, the protocol version, the parts. `more` bytes will follow.
    fn finish(self, more: usize) -> Vec<u8> {
        let mut message = Vec::with_capacity(self.0.len() + 9);
        let length = self.0.len() + more + 1;
        message.extend_from_slice(&(length as u64).to_be_bytes());
        message.push(PROTOCOL);
        message.extend_from_slice(&self.0);
        message
    }
}

/// Takes the next part off `rest`.
fn read_part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
    let (part, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_call_is_read_as_it_was_written() {
        is_read_as_it_was_written(vec![0, 255, b'{']);
        is_read_as_it_was_written(vec![b'x'; IN_PLACE]);
    }

    fn is_read_as_it_was_written(raw: Vec<u8>) {
        let at = Time::from_micros(1_700_000_000_000_000);
        let caller = Caller {
            cwd: PathBuf::from("/somewhere"),
            env: vec![("A".into(), os_string(b"not \xff text")), ("EMPTY".into(), OsString::new())],
            pid: Some(7),
            wire: Wire::Bridge,
        };
        let call = Call {
            id: EventId::mint(at),
            at,
            agent: Agent::Gemini,
            raw: raw.into(),
            caller,
            deadline: Duration::from_millis(1500),
        };
        let request =
            DaemonRequest::Call { build: BuildVersion::current(), call: Box::new(call.clone()) };
        let bytes = written(&request);
        let Some(DaemonRequest::Call { call: read, .. }) =
            DaemonRequest::from_bytes(bytes[8..].to_vec())
        else {
            panic!("a call");
        };
        assert_eq!(format!("{read:?}"), format!("{call:?}"));
    }

    #[test]
    fn an_event_cannot_have_the_id_of_a_decision() {
        let at = Time::from_micros(1);
        let read = |id| {
            let (agent, raw, caller) = (Agent::Gemini, Payload::default(), Caller::default());
            let call = Call { id, at, agent, raw, caller, deadline: Duration::ZERO };
            let build = BuildVersion::current();
            let bytes = written(&DaemonRequest::Call { build, call: Box::new(call) });
            DaemonRequest::from_bytes(bytes[8..].to_vec())
        };
        let id = EventId::mint(at);
        assert!(read(id).is_some());
        assert!(read(id.of_decision()).is_none());
    }

    fn written(request: &DaemonRequest) -> Vec<u8> {
        let mut bytes = Vec::new();
        request.write_to(&mut bytes).expect("memory takes it");
        let length = u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
        assert_eq!(length, bytes.len() as u64 - 8);
        bytes
    }

    #[test]
    fn a_payload_that_stays_in_its_message_does_not_keep_the_environment() {
        let at = Time::from_micros(1);
        let caller =
            Caller { env: vec![("KEY".into(), "v".repeat(1000).into())], ..Caller::default() };
        let (id, agent, raw) = (EventId::mint(at), Agent::Gemini, vec![b'x'; IN_PLACE].into());
        let call = Call { id, at, agent, raw, caller, deadline: Duration::ZERO };
        let build = BuildVersion::current();
        let bytes = written(&DaemonRequest::Call { build, call: Box::new(call) });
        let read = DaemonRequest::from_bytes(bytes[8..].to_vec());
        let Some(DaemonRequest::Call { call, .. }) = read else { panic!("it is a call") };
        assert_eq!(call.raw.len(), IN_PLACE);
        assert!(call.raw.held() < bytes.len() - 1000, "{} bytes are kept", call.raw.held());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(DaemonRequest::from_bytes(bytes.clone()));
            drop(DaemonReply::from_bytes(&bytes));
        }
    }
}
