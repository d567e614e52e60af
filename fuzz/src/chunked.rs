//! Chunked bodies, against the decoder in `src/tests/naive.rs`.

use sprat::internals::ChunkedDecoder;
use sprat::{Limits, Reject};

use super::input::{Cuts, Input};
use super::naive::decode_chunked;

type Outcome = Result<Option<(Vec<u8>, usize)>, Reject>;

/// The content and the end are those of the naive decoder, at every split, and no byte behind the end is read or
/// changed.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let limits = if input.byte() & 1 == 0 { Limits::DEFAULT } else { super::TIGHT };
    let cuts = Cuts::read(&mut input);
    let bytes = input.rest();

    let whole = decode(&[bytes], &limits);
    assert_eq!(decode(&cuts.pieces(bytes), &limits), whole);
    assert_eq!(decode(&bytes.chunks(1).collect::<Vec<_>>(), &limits), whole);
    // Not each of them for long inputs, which the cuts above reach.
    for at in 0..bytes.len().min(64) {
        assert_eq!(decode(&[&bytes[..at], &bytes[at..]], &limits), whole, "cut at {at}");
    }
    match (&whole, decode_chunked(bytes)) {
        (Ok(ours), Ok(naive)) => assert_eq!(*ours, naive),
        (Err(_), Err(())) => {}
        (Err(reject), _) if is_limit(*reject) => {}
        (ours, naive) => panic!("{ours:?}, but it is {naive:?}"),
    }
    if let Ok(Some((_, used))) = whole {
        let ended = decode(&[&bytes[..used]], &limits);
        assert_eq!(ended, whole, "it depends on what follows");
        assert_eq!(decode(&[&bytes[..used - 1]], &limits), Ok(None), "it ended before its end");
    }
}

/// What the naive decoder knows nothing of.
pub fn is_limit(reject: Reject) -> bool {
    use Reject::*;
    matches!(reject, BodyTooLarge | ChunkLineTooLong | ChunkOverhead | TrailerTooLarge)
}

/// Decodes pieces as a connection does: behind a head, each piece at the end of the content so far.
fn decode(pieces: &[&[u8]], limits: &Limits) -> Outcome {
    let mut decoder = ChunkedDecoder::new();
    let mut buffer = b"head".to_vec();
    let mut used = 0;
    for piece in pieces {
        let content_end = buffer.len();
        buffer.extend_from_slice(piece);
        let decoded = decoder.decode(&mut buffer, content_end, content_end, limits.body_bytes_max, limits)?;
        used += decoded.raw_start - content_end;
        assert!(decoded.content_end <= decoded.raw_start && decoded.raw_start <= buffer.len());
        assert_eq!(buffer[decoded.raw_start..], piece[decoded.raw_start - content_end..], "what follows was changed");
        assert!(decoded.done || decoded.raw_start == buffer.len(), "bytes are left, and no end");
        buffer.truncate(decoded.content_end);
        if decoded.done {
            assert!(buffer.starts_with(b"head"));
            return Ok(Some((buffer.split_off(4), used)));
        }
    }
    Ok(None)
}
