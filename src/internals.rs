//! For the benches, the fuzz targets and the checks of this repository: the layers below the machine, as functions.
//!
//! Behind the feature `internals`, hidden from the documentation, and without any promise of stability. What is here
//! adds no logic; each function is what its name says, made reachable.

use std::mem::MaybeUninit;

use crate::chunked::Decoder;
use crate::framing::{self, Framing};
use crate::head::{self, Version};
use crate::limits::Limits;
use crate::method::Method;
use crate::reject::Reject;
use crate::target;

pub use crate::explore::{Report, Violation, explore};

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
