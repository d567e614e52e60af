//! Every bound of the server, in one struct.

use std::time::Duration;

/// What a peer can make the server hold, read or wait for. Nothing is unbounded, and nothing is off by default.
///
/// Sizes are bytes. Timeouts are exact to about a quarter of a second, never early.
///
/// ```
/// use sprat::Limits;
/// let limits = Limits { body_bytes_max: 4 << 20, ..Limits::DEFAULT };
/// assert!(limits.check().is_ok());
/// assert!(limits.worst_case_bytes_per_connection() < 9 << 20);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Request-line through blank line. Beyond it: 431, or 414 while the request-line is unfinished. Default 16 KiB.
    pub head_bytes_max: usize,
    /// Request-target. Beyond it: 414. Default 8 KiB (RFC 9112 3 recommends at least 8000 for the request-line).
    pub target_bytes_max: usize,
    /// Field lines in a head, and in a trailer section. Beyond it: 431. Default 100.
    pub fields_max: usize,
    /// Content of a request, by its declared length or as its chunks are announced. Beyond it: 413.
    /// A row can have its own: `[body_max = 4096]`. Default 1 MiB.
    pub body_bytes_max: usize,
    /// One chunk-size line, its CRLF included (RFC 9112 7.1). Beyond it: 400. Default 256.
    pub chunk_line_bytes_max: usize,
    /// All chunk extensions of a body together (RFC 9112 7.1.1). Beyond it: 400. Default 16 KiB.
    pub chunk_extension_bytes_max: usize,
    /// A trailer section (RFC 9112 7.1.2). Beyond it: 431. Default 8 KiB.
    pub trailer_bytes_max: usize,
    /// Output a peer has not taken. Beyond it the peer is not read until it has taken half. Default 64 KiB.
    /// One answer may be larger; what this bounds is how many more are made.
    pub output_bytes_max: usize,
    /// Input dropped after a final error answer, so that a reset does not destroy it (RFC 9112 9.6). Default 256 KiB.
    pub linger_bytes_max: usize,
    /// Request bodies held for all connections together. Beyond it those above 64 KiB get 503. Default 256 MiB.
    pub bodies_bytes_max: usize,
    /// Connections at a time; more wait in the kernel's queue. Default 10,000. The server never takes more than
    /// max(descriptors - 64, descriptors / 2) of the process's descriptor limit.
    pub connections_max: usize,
    /// Requests answered for one connection before the others have their turn. Default 64.
    pub requests_per_turn: usize,

    /// From accept to the first byte; then the connection is closed without a word. Default 10 s.
    pub first_byte_timeout: Duration,
    /// From the first byte of a head to its blank line, no matter how the bytes drip: 408. Default 10 s.
    pub head_timeout: Duration,
    /// A body may be this slow to start before its rate counts. Default 5 s.
    pub body_grace: Duration,
    /// After the grace a body must average this many bytes a second: 408. Default 500.
    pub body_bytes_per_second_min: u32,
    /// A whole body, however fast: 408. Default 10 min.
    pub body_timeout: Duration,
    /// Between an answer and the first byte of the next request; then closed without a word. Default 75 s, above what
    /// proxies pool for.
    pub idle_timeout: Duration,
    /// From a handler that took [`Later`](crate::Later) to its answer, or to the start of its stream: 503. Default 60 s.
    pub answer_timeout: Duration,
    /// Whether a peer that shuts down its sending side while its answer is made elsewhere, or is being streamed, still
    /// gets it. Default false: nearly all that do have left, so their work is cancelled.
    pub answer_half_closed: bool,
    /// How long the peer may take none of the pending output; then the connection is reset. Default 30 s. The system says
    /// that there is room again for some 64 KiB at a time, so a peer that takes less in this time can count as taking none.
    pub write_timeout: Duration,
    /// How long input is dropped after a final error answer. Default 2 s.
    pub linger_timeout: Duration,
    /// From `shutdown` to the end of the last connection. Default 30 s.
    pub drain_timeout: Duration,
}

impl Limits {
    /// The defaults named at each field.
    pub const DEFAULT: Limits = Limits {
        head_bytes_max: 16 << 10,
        target_bytes_max: 8 << 10,
        fields_max: 100,
        body_bytes_max: 1 << 20,
        chunk_line_bytes_max: 256,
        chunk_extension_bytes_max: 16 << 10,
        trailer_bytes_max: 8 << 10,
        output_bytes_max: 64 << 10,
        linger_bytes_max: 256 << 10,
        bodies_bytes_max: 256 << 20,
        connections_max: 10_000,
        requests_per_turn: 64,
        first_byte_timeout: Duration::from_secs(10),
        head_timeout: Duration::from_secs(10),
        body_grace: Duration::from_secs(5),
        body_bytes_per_second_min: 500,
        body_timeout: Duration::from_secs(600),
        idle_timeout: Duration::from_secs(75),
        answer_timeout: Duration::from_secs(60),
        answer_half_closed: false,
        write_timeout: Duration::from_secs(30),
        linger_timeout: Duration::from_secs(2),
        drain_timeout: Duration::from_secs(30),
    };

    /// The most user-space bytes that one connection can hold: its slot, a partial head or body or what was pipelined
    /// behind one, and unsent output up to the bound plus one answer of that size. Doubled, because buffers double as
    /// they grow and a segment's memory is freed only when all of it is sent.
    ///
    /// A handler that makes larger answers, and a row with its own `body_max`, adds to it. All connections together
    /// hold no more than [`connections_max`](Limits::connections_max) times this, and bodies no more than about
    /// [`bodies_bytes_max`](Limits::bodies_bytes_max). The loop's own buffers come once: 4 MiB at most.
    pub const fn worst_case_bytes_per_connection(&self) -> usize {
        self.worst_case_with(self.head_bytes_max.saturating_add(self.body_bytes_max))
    }

    /// The most user-space bytes that a server with so many connections can hold, whatever its peers do: theirs, of
    /// which bodies take no more than `bodies_bytes_max` together, and the loop's own buffers. The same holds for
    /// handlers and rows as [above](Limits::worst_case_bytes_per_connection); what a handler has while it runs, and
    /// keeps, is its own.
    pub const fn worst_case_bytes(&self, connections: usize) -> usize {
        let each = self.worst_case_bytes_per_connection();
        let without_bodies = connections.saturating_mul(self.worst_case_with(self.head_bytes_max));
        // The sum is looked at when more of a body has come.
        let one_at_a_time = without_bodies.saturating_add(self.bodies_bytes_max).saturating_add(each);
        let all_at_once = connections.saturating_mul(each);
        let connections = if one_at_a_time < all_at_once { one_at_a_time } else { all_at_once };
        // Growing a buffer, and parsing JSON, takes memory beside the body, for one request at a time.
        let parsing = max(self.body_bytes_max, READ_BUFFER_LEN).saturating_mul(JSON_FACTOR + 2);
        connections.saturating_add(LOOP_BYTES).saturating_add(parsing)
    }

    /// For a connection whose message, as far as it is held, is no larger than this.
    const fn worst_case_with(&self, message: usize) -> usize {
        // Buffers are powers of two, with some room.
        let input = max(message, READ_BUFFER_LEN).saturating_add(1024).saturating_mul(2);
        // Segments are given back when they are sent to their end: the first can be of an earlier turn, and small
        // ones are put together in vectors that double. They are so however little may wait.
        let waiting = self.output_bytes_max;
        let output = max(waiting.saturating_mul(6), waiting.saturating_mul(4).saturating_add(2 * MERGED_BYTES_MAX));
        // And the head of a request that is answered later, which an observer is to be told of.
        input.saturating_add(self.head_bytes_max).saturating_add(output).saturating_add(SLOT_BYTES)
    }

    /// Whether the settings make sense together.
    ///
    /// # Errors
    /// The name of the first setting that does not, and what it must be.
    pub fn check(&self) -> Result<(), &'static str> {
        let rules = [
            (self.head_bytes_max >= 64, "head_bytes_max must be at least 64"),
            (self.head_bytes_max <= 1 << 20, "head_bytes_max must be at most 1 MiB"),
            (self.target_bytes_max >= 1, "target_bytes_max must be at least 1"),
            (self.target_bytes_max <= self.head_bytes_max, "target_bytes_max must be at most head_bytes_max"),
            (self.fields_max >= 1, "fields_max must be at least 1"),
            (self.fields_max <= 4096, "fields_max must be at most 4096"),
            (self.body_bytes_max as u64 <= 1 << 40, "body_bytes_max must be at most 1 TiB"),
            (self.chunk_line_bytes_max >= 18, "chunk_line_bytes_max must be at least 18"),
            (self.chunk_line_bytes_max <= 1 << 20, "chunk_line_bytes_max must be at most 1 MiB"),
            (self.chunk_extension_bytes_max as u64 <= 1 << 40, "chunk_extension_bytes_max must be at most 1 TiB"),
            // The CRLF that ends a body without trailer fields.
            (self.trailer_bytes_max >= 2, "trailer_bytes_max must be at least 2"),
            (self.trailer_bytes_max <= 1 << 20, "trailer_bytes_max must be at most 1 MiB"),
            (self.output_bytes_max >= 1024, "output_bytes_max must be at least 1024"),
            (self.output_bytes_max as u64 <= 1 << 40, "output_bytes_max must be at most 1 TiB"),
            (self.linger_bytes_max as u64 <= 1 << 40, "linger_bytes_max must be at most 1 TiB"),
            (self.connections_max >= 1, "connections_max must be at least 1"),
            (self.connections_max <= 1 << 24, "connections_max must be at most 16,777,216"),
            (self.requests_per_turn >= 1, "requests_per_turn must be at least 1"),
            (!self.first_byte_timeout.is_zero(), "first_byte_timeout must be above zero"),
            (!self.head_timeout.is_zero(), "head_timeout must be above zero"),
            (!self.body_timeout.is_zero(), "body_timeout must be above zero"),
            (self.body_bytes_per_second_min >= 1, "body_bytes_per_second_min must be at least 1"),
            (!self.idle_timeout.is_zero(), "idle_timeout must be above zero"),
            (!self.answer_timeout.is_zero(), "answer_timeout must be above zero"),
            (!self.write_timeout.is_zero(), "write_timeout must be above zero"),
        ];
        for (holds, rule) in rules {
            if !holds {
                return Err(rule);
            }
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// A slot, its socket and timer, and the boxed parts of its connection; twice, as vectors double.
const SLOT_BYTES: usize = 1536;

/// The loop's read and write buffers and spare ones, the storage for JSON that is kept, and change.
const LOOP_BYTES: usize = 4 << 20;

/// What parsing JSON can take, as a multiple of its size.
const JSON_FACTOR: usize = if cfg!(feature = "json") { 32 } else { 0 };

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// The most that small answers which wait are put together in.
pub(crate) const MERGED_BYTES_MAX: usize = 32 << 10;

/// The loop's read buffer. A connection can be left holding up to this much pipelined input.
pub(crate) const READ_BUFFER_LEN: usize = 64 << 10;
