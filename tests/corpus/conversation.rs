//! What a driver hands to the judge: everything that came back, and how the talk ended.

use super::case::{Case, Then};
use super::response::Answers;

/// One conversation, finished. It holds no bytes of its own, so that playing a case a thousand times copies nothing.
#[derive(Clone, Copy)]
pub struct Conversation<'r> {
    /// Up to the point where all was sent and the server had fallen silent.
    pub first: Heard<'r>,
    /// After the probe, if one was sent.
    pub probe: Option<Heard<'r>>,
    pub gate: Gate,
    /// The server neither closed nor read the rest of the request.
    pub stuck: bool,
    /// The server's idea of now, in seconds since 1970, against which Date is held.
    pub unix_now: u64,
}

/// A stretch of received bytes.
#[derive(Clone, Copy)]
pub struct Heard<'r> {
    pub received: &'r [u8],
    /// The client has seen the end of the stream, orderly or by a reset.
    pub closed: bool,
}

/// What happened where the client waits for an interim answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The case has none.
    None,
    /// An interim answer came and the rest was sent.
    Opened,
    /// A final answer or a close came instead; the rest was never sent.
    Withheld,
    /// Neither came.
    Silent,
}

impl Gate {
    /// What the client makes of the bytes received while it stands at the gate; `Silent` means: go on waiting.
    pub fn seen(case: &Case, heard: Heard<'_>) -> Gate {
        match Answers::new(case, heard.received, heard.closed).next() {
            _ if heard.closed => Gate::Withheld,
            Ok(Some(response)) if response.is_interim() => Gate::Opened,
            Ok(None) => Gate::Silent,
            // A final answer; or bytes that are no answer at all, and those are for the judge to complain about.
            _ => Gate::Withheld,
        }
    }
}

/// The request that finds out whether client and server still agree on where a message begins.
pub const PROBE: &[u8] = b"GET / HTTP/1.1\r\nHost: probe.test\r\n\r\n";

/// Whether a connection that is still open after the case's bytes has to answer `PROBE`.
pub fn is_probe_due(case: &Case, gate: Gate) -> bool {
    match case.then {
        Then::Close => false,
        // After a half-close nobody can ask, and a server that still owes the answer to a partial message, or
        // waits for withheld content, would rightly read the probe as the rest of it.
        _ if case.half_close || case.answers.is_empty() => false,
        Then::Open => true,
        Then::Either => case.probe && gate != Gate::Withheld,
    }
}
