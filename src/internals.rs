//! For the benches, the fuzz targets and the checks of this repository: the layers below the machine, as functions.
//!
//! Behind the feature `internals`, hidden from the documentation, and without any promise of stability. What is here
//! adds no logic; each function is what its name says, made reachable.

use std::mem::MaybeUninit;
use std::net::SocketAddr;

#[cfg(feature = "json")]
use serde::{Deserialize, Serialize};

use crate::chunked::Decoder;
use crate::connection::{Connection, Next, Tick, Turn, Workspace};
use crate::date::DateLine;
pub use crate::framing::Decision;
use crate::framing::{self, Framing};
use crate::head::{self, Version};
use crate::held::PADDING_LEN;
use crate::limits::{Limits, READ_BUFFER_LEN};
use crate::method::Method;
use crate::output::Output;
use crate::proxy;
use crate::reject::Reject;
use crate::response::{Asked, Facts, Response, Sent};
pub use crate::route::owned::{Answered, OwnedTable};
use crate::route::{Routes, Table};
use crate::target::{self, Form};

pub use crate::explore::{Report, Violation, explore};

/// A head with everything that the layers below the routes know about it, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Understood {
    pub method: Method,
    pub target: String,
    pub version: Version,
    pub fields: Vec<(String, Vec<u8>)>,
    pub form: Form,
    pub path: String,
    pub query: Option<String>,
    pub host: Option<String>,
    pub escaped: bool,
    pub framing: Framing,
    pub persistent: bool,
    pub expects_continue: bool,
}

/// The length of the head at the start of `bytes`, if it is whole. `scanned` bytes were looked at before.
pub fn scan(bytes: &[u8], scanned: usize, head_bytes_max: usize) -> Result<Option<usize>, Reject> {
    head::scan(bytes, scanned, head_bytes_max)
}

/// Where the next [`scan`] of these bytes and more may start.
pub fn scanned_len(bytes: &[u8]) -> usize {
    head::scanned_len(bytes)
}

/// Parses a head, reads its target and decides its framing, without keeping anything: the work of every request.
pub fn understand_and_forget(bytes: &[u8], limits: &Limits) -> Result<Framing, Reject> {
    let mut slots = [const { MaybeUninit::uninit() }; head::SLOTS_READY];
    let (head, known) = head::parse(bytes, &mut slots, limits)?;
    if let Some(host) = known.host {
        target::check_host(host)?;
    }
    if !target::is_plain(&head, known.host) {
        std::hint::black_box(target::read(&head, known.host)?);
    }
    Ok(framing::decide(head.version, &known)?.framing)
}

/// The same, and everything found.
pub fn understand(bytes: &[u8], limits: &Limits) -> Result<Understood, Reject> {
    let mut slots = Vec::new();
    slots.resize_with(limits.fields_max, MaybeUninit::uninit);
    let mut bytes = bytes.to_vec();
    if let Err(Reject::VersionUnsupported) = head::parse(&bytes, &mut slots, limits).map(|_| ()) {
        head::lower_version(&mut bytes);
    }
    let mut slots = Vec::new();
    slots.resize_with(limits.fields_max, MaybeUninit::uninit);
    let (head, known) = head::parse(&bytes, &mut slots, limits)?;
    if let Some(host) = known.host {
        target::check_host(host)?;
    }
    let target = target::read(&head, known.host);
    // The short way through a request reads no more of such a target.
    assert!(!target::is_plain(&head, known.host) || target == Ok(target::Target::plain(head.target)));
    let target = target?;
    let decision = framing::decide(head.version, &known)?;
    Ok(Understood {
        method: head.method,
        target: head.target.to_owned(),
        version: head.version,
        fields: head.fields.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        form: target.form,
        path: target.path.to_owned(),
        query: target.query.map(str::to_owned),
        host: target::host(&head, target.form, known.host).map(str::to_owned),
        escaped: target.escaped,
        framing: decision.framing,
        persistent: decision.persistent,
        expects_continue: decision.expects_continue,
    })
}

/// Parses a head and decides its framing, whatever its target is.
pub fn decide(bytes: &[u8], limits: &Limits) -> Result<Decision, Reject> {
    let mut slots = Vec::new();
    slots.resize_with(limits.fields_max, MaybeUninit::uninit);
    let (head, known) = head::parse(bytes, &mut slots, limits)?;
    framing::decide(head.version, &known)
}

/// The length of a usual and whole head at the start of `bytes`, and its field lines, as the short way through a
/// connection finds them; `None` for whatever is unusual.
#[allow(clippy::type_complexity)]
pub fn parse_at_once(bytes: &[u8], limits: &Limits) -> Option<(usize, Vec<(String, Vec<u8>)>)> {
    let mut slots = [const { MaybeUninit::uninit() }; head::SLOTS_READY];
    let ready = head::SLOTS_READY.min(limits.fields_max);
    let mut known = head::Known::default();
    let (len, head) = head::parse_at_once(bytes, &mut slots[..ready], &mut known, limits)?;
    Some((len, head.fields.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
}

/// Where a blank line ends within the limit: at the guess, or else the first.
pub fn find_blank_line(bytes: &[u8], guess: usize, head_bytes_max: usize) -> Option<usize> {
    head::find_blank_line(bytes, guess, head_bytes_max)
}

/// A chunked body's decoder, as a connection uses it.
#[derive(Clone, Debug)]
pub struct ChunkedDecoder(Decoder);

/// How far one call of [`ChunkedDecoder::decode`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkedDecoded {
    pub content_end: usize,
    pub raw_start: usize,
    pub done: bool,
}

impl ChunkedDecoder {
    #[allow(clippy::new_without_default)]
    pub fn new() -> ChunkedDecoder {
        ChunkedDecoder(Decoder::new())
    }

    pub fn decode(
        &mut self,
        buffer: &mut [u8],
        content_end: usize,
        raw_start: usize,
        body_bytes_max: usize,
        limits: &Limits,
    ) -> Result<ChunkedDecoded, Reject> {
        let decoded = self.0.decode(buffer, content_end, raw_start, body_bytes_max, limits)?;
        let crate::chunked::Decoded { content_end, raw_start, done } = decoded;
        Ok(ChunkedDecoded { content_end, raw_start, done })
    }
}

/// Decodes a chunked body that comes in these pieces: its content and how many bytes it took, if its end came.
pub fn decode_chunked(
    pieces: &[&[u8]],
    body_bytes_max: usize,
    limits: &Limits,
) -> Result<Option<(Vec<u8>, usize)>, Reject> {
    let mut decoder = Decoder::new();
    let mut buffer = Vec::new();
    let mut used = 0;
    for piece in pieces {
        let content_end = buffer.len();
        buffer.extend_from_slice(piece);
        let decoded = decoder.decode(&mut buffer, content_end, content_end, body_bytes_max, limits)?;
        used += decoded.raw_start - content_end;
        buffer.truncate(decoded.content_end);
        if decoded.done {
            return Ok(Some((buffer, used)));
        }
    }
    Ok(None)
}

/// Decodes a whole chunked body in place: how much content there is.
pub fn decode_chunked_in_place(body: &mut [u8], limits: &Limits) -> Result<usize, Reject> {
    Decoder::new().decode(body, 0, 0, usize::MAX >> 1, limits).map(|decoded| decoded.content_end)
}

/// Percent-decodes; `None` if an escape is broken.
pub fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    target::decode(text, &mut decoded).map(|()| decoded)
}

/// Reads a PROXY header: its length and who is behind it. `None`: not whole yet.
pub fn parse_proxy(bytes: &[u8]) -> Result<Option<(usize, Option<SocketAddr>)>, Reject> {
    Ok(proxy::parse(bytes)?.map(|proxied| (proxied.len, proxied.source)))
}

/// The Date line of the last of these seconds since 1970, set one after the other on the same line.
pub fn date_line(first: u64, then: &[u64]) -> Vec<u8> {
    let mut line = DateLine::new(first);
    for &unix_seconds in then {
        line.set(unix_seconds);
    }
    line.as_bytes().to_vec()
}

/// Reads a query; `None` if it is refused.
#[cfg(feature = "json")]
pub fn read_query<'r, T: Deserialize<'r>>(query: &'r str) -> Option<T> {
    crate::extract::urlencoded::from_query(query).ok()
}

/// Reads a form in place; `None` if it is refused.
#[cfg(feature = "json")]
pub fn read_form<'r, T: Deserialize<'r>>(form: &'r mut [u8]) -> Option<T> {
    crate::extract::urlencoded::from_form(form).ok()
}

/// What parsing JSON keeps from one body to the next.
#[cfg(feature = "json")]
#[derive(Debug, Default)]
pub struct JsonTape(crate::json::Tape);

/// Why JSON was refused.
#[cfg(feature = "json")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonFault {
    /// Malformed, in contrast to well-formed and of another shape.
    pub malformed: bool,
    pub message: &'static str,
    /// Which byte it is at, of those whose place is known.
    pub offset: Option<usize>,
    pub path: String,
}

/// Reads `bytes[..len]` as JSON, in place.
#[cfg(feature = "json")]
pub fn parse_json<'r, T: Deserialize<'r>>(
    bytes: &'r mut [u8],
    len: usize,
    tape: &mut JsonTape,
) -> Result<T, JsonFault> {
    crate::json::parse(bytes, len, &mut tape.0).map_err(|error| JsonFault {
        malformed: error.kind() == crate::json::Kind::Malformed,
        message: error.message(),
        offset: error.offset(),
        path: error.path().to_string(),
    })
}

/// Appends a value as JSON; false, and nothing appended, if it has none.
#[cfg(feature = "json")]
pub fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> bool {
    crate::json::write(out, value).is_ok()
}

/// One open connection as the loop drives it, without a socket: received bytes in, bytes to send out.
pub struct Replay<S: 'static> {
    routes: &'static Routes<S>,
    state: S,
    limits: Limits,
    workspace: Workspace,
    connection: Connection,
    read: Vec<u8>,
}

impl<S: 'static> Replay<S> {
    /// A connection that has just been accepted.
    pub fn new<T: Table<S>>(table: T, state: S) -> Replay<S> {
        let _ = table;
        Replay {
            routes: T::ROUTES,
            state,
            limits: Limits::DEFAULT,
            workspace: Workspace::new(0),
            connection: Connection::new(None, Tick(0)),
            read: vec![0; READ_BUFFER_LEN + PADDING_LEN],
        }
    }

    /// Receives these bytes in one piece, and hands what is sent to `sent`.
    ///
    /// # Panics
    /// If the connection closes, or has no room for the bytes.
    pub fn receive(&mut self, bytes: &[u8], mut sent: impl FnMut(&[u8])) {
        let Replay { routes, state, limits, workspace, connection, read } = self;
        connection.recv_space(read, &mut workspace.pool)[..bytes.len()].copy_from_slice(bytes);
        let mut turn = Turn { workspace, routes, state, limits, now: Tick(0), ran: None };
        connection.handle_recv(bytes.len(), read, &mut turn);
        loop {
            let transmitted = connection.transmit(&mut turn.workspace.output, turn.now, |slices| {
                slices.iter().for_each(|slice| sent(slice));
                Ok(slices.iter().map(|slice| slice.len()).sum())
            });
            assert!(transmitted.is_ok() && connection.next(turn.now) == Next::Stay, "the connection closed");
            if !connection.can_go_on(turn.limits) {
                return;
            }
            connection.handle_resume(&mut turn);
        }
    }
}

/// Where answers are written one after the other, each over the one before.
pub struct Desk {
    output: Output,
}

impl Desk {
    /// With nothing on it.
    pub fn new() -> Desk {
        Desk { output: Output::new(0) }
    }

    /// Writes one answer on a persistent connection, and says how long it is.
    pub fn write(&mut self, answer: impl for<'r> FnOnce(Response<'r>) -> Sent<'r>) -> usize {
        self.output.clear();
        let facts = Facts { head_only: false, http10: false, persistent: true };
        let _ = answer(Response::new(&mut self.output, &mut Asked::Nothing, facts));
        self.output.len()
    }
}

impl Default for Desk {
    fn default() -> Desk {
        Desk::new()
    }
}
