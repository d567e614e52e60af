//! For the benches, the fuzz targets and the checks of this repository: the layers below the machine, as functions.
//!
//! Behind the feature `internals`, hidden from the documentation, and without any promise of stability. What is here
//! adds no logic; each function is what its name says, made reachable.

use std::mem::MaybeUninit;

use crate::chunked::Decoder;
use crate::connection::{Connection, Next, Tick, Turn, Workspace};
use crate::framing::{self, Framing};
use crate::head::{self, Version};
use crate::held::PADDING_LEN;
use crate::limits::{Limits, READ_BUFFER_LEN};
use crate::method::Method;
use crate::output::Output;
use crate::reject::Reject;
use crate::response::{Facts, Response, Sent};
use crate::route::{Routes, Table};
use crate::target;

/// A head with everything that the layers below the routes know about it, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Understood {
    pub method: Method,
    pub target: String,
    pub version: Version,
    pub fields: Vec<(String, Vec<u8>)>,
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
    let target = target::read(&head, known.host)?;
    std::hint::black_box(&target);
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
    let target = target::read(&head, known.host)?;
    let decision = framing::decide(head.version, &known)?;
    Ok(Understood {
        method: head.method,
        target: head.target.to_owned(),
        version: head.version,
        fields: head.fields.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        path: target.path.to_owned(),
        query: target.query.map(str::to_owned),
        host: target.host.map(|host| String::from_utf8_lossy(host).into_owned()),
        escaped: target.escaped,
        framing: decision.framing,
        persistent: decision.persistent,
        expects_continue: decision.expects_continue,
    })
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
        let mut turn = Turn { workspace, routes, state, limits, now: Tick(0) };
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
        let _ = answer(Response::new(&mut self.output, &mut false, facts));
        self.output.len()
    }
}

impl Default for Desk {
    fn default() -> Desk {
        Desk::new()
    }
}

/// JSON in and out, as `Json<T>` has it.
#[cfg(feature = "json")]
#[derive(Default)]
pub struct JsonDesk {
    tape: crate::json::Tape,
}

#[cfg(feature = "json")]
impl JsonDesk {
    /// Reads the first `len` bytes, which are garbage afterwards; 64 bytes behind them spare a copy.
    pub fn read<'r, T: serde::Deserialize<'r>>(&mut self, bytes: &'r mut [u8], len: usize) -> Option<T> {
        crate::json::parse(bytes, len, &mut self.tape).ok()
    }

    /// Appends a value.
    pub fn write<T: serde::Serialize>(&self, value: &T, to: &mut Vec<u8>) {
        crate::json::write(to, value).expect("the benches write what JSON can say");
    }
}
