//! The reasons for which a connection ends.

use crate::reject::Reject;

/// Why a connection was closed.
///
/// ```
/// use sprat::CloseReason;
/// assert!(CloseReason::IdleTimeout.to_string().contains("idle"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer closed between two requests.
    PeerClosed,
    /// The peer reset the connection, or the socket failed.
    PeerReset,
    /// The request said `Connection: close`, or was HTTP/1.0 without `keep-alive`.
    AskedByPeer,
    /// The handler asked for it.
    AskedByHandler,
    /// The answer was early, and the body too long to be skipped.
    BodyUnread,
    /// A message broke this rule or limit; it was answered before the close.
    Rejected(Reject),
    /// The handler panicked; 500 was answered.
    HandlerPanicked,
    /// No byte came after accept.
    FirstByteTimeout,
    /// No request came after an answer.
    IdleTimeout,
    /// It was idle, and all places were taken: one who waited to be accepted has its place (RFC 9112 9.5).
    PlaceNeeded,
    /// The peer did not take its answers.
    WriteTimeout,
    /// The peer left while its answer was being made elsewhere, or was being streamed.
    PeerLeft,
    /// The producer of a stream dropped it before its end.
    StreamAborted,
    /// The peer took a stream more slowly than it was made.
    StreamTooSlow,
    /// The server is shutting down.
    Drained,
    /// The server was shut down and its deadline passed.
    DrainTimeout,
}

impl std::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CloseReason::PeerClosed => "the peer closed",
            CloseReason::PeerReset => "the peer reset the connection",
            CloseReason::AskedByPeer => "the peer asked for it",
            CloseReason::AskedByHandler => "the handler asked for it",
            CloseReason::BodyUnread => "a body was left unread",
            CloseReason::Rejected(reject) => reject.sentence(),
            CloseReason::HandlerPanicked => "the handler panicked",
            CloseReason::FirstByteTimeout => "no byte came",
            CloseReason::IdleTimeout => "idle for too long",
            CloseReason::PlaceNeeded => "idle, and its place was needed",
            CloseReason::WriteTimeout => "the peer did not take its answers",
            CloseReason::PeerLeft => "the peer left before its answer was whole",
            CloseReason::StreamAborted => "a stream was broken off",
            CloseReason::StreamTooSlow => "the peer was slower than its stream",
            CloseReason::Drained => "the server is shutting down",
            CloseReason::DrainTimeout => "the server's shutdown deadline passed",
        })
    }
}
