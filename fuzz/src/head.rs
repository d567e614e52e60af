//! Heads, against the strict parser and against themselves.

use sprat::internals::{Understood, find_blank_line, parse_at_once, scan, scanned_len, understand};
use sprat::{Limits, Reject, Version};

use super::input::{Cuts, Input};
use super::strict::{self, Field, Seen};

/// What is accepted is what the strict parser accepts, and parses equal once it is written down again; what is refused
/// breaks the rule that is named; and a peer that drips gets the same, for linear work.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let limits = if input.byte() & 1 == 0 { Limits::DEFAULT } else { super::TIGHT };
    let cuts = Cuts::read(&mut input);
    let bytes = input.rest();

    let scanned = scan(bytes, 0, limits.head_bytes_max);
    check_drip(&cuts.pieces(bytes), scanned, &limits);
    check_drip(&bytes.chunks(1).collect::<Vec<_>>(), scanned, &limits);

    // The short way may give up; if it does not, it finds what the long way finds.
    let at_once = parse_at_once(bytes, &limits);
    if let Some((len, _)) = at_once {
        assert_eq!(scanned, Ok(Some(len)));
    }
    let blank_line = strict::find(bytes, b"\r\n\r\n").map(|at| at + 4).filter(|end| *end <= limits.head_bytes_max);
    assert_eq!(find_blank_line(bytes, 0, limits.head_bytes_max), blank_line);
    // A guess beside it, as a head of another length leaves behind, is taken only if a blank line ends there.
    for guess in blank_line.into_iter().flat_map(|at| [at - 1, at, at + 1, at + 4]) {
        let found = find_blank_line(bytes, guess, limits.head_bytes_max);
        assert!(found == blank_line || bytes[..guess].ends_with(b"\r\n\r\n") && found == Some(guess));
    }

    let ours = match scanned {
        Ok(Some(len)) => understand(&bytes[..len], &limits).map(|head| Some((len, head))),
        Ok(None) => Ok(None),
        Err(reject) => Err(reject),
    };
    match (ours, strict::head(bytes, &limits)) {
        (Ok(None), Seen::Partial) => {}
        (Err(reject), Seen::Refused(broken)) => assert!(broken.contains(&reject), "{reject:?}, but it is {broken:?}"),
        (Ok(Some((len, head))), Seen::Whole(strict)) => {
            assert_eq!((len, &head.target, head.version), (strict.len, &strict.target, strict.version));
            assert_eq!(fields(&head), strict.fields);
            assert!(at_once.is_none_or(|(_, at_once)| at_once == head.fields));
            check_round_trip(&head, &strict.method, &limits);
        }
        (ours, strict) => panic!("{ours:?}, but it is {strict:?}"),
    }
}

/// Scans piece by piece. What was scanned before is overwritten, so that nothing can depend on looking at it again:
/// the work is linear in the bytes. Only how a head is too large may still be looked up, once.
fn check_drip(pieces: &[&[u8]], whole: Result<Option<usize>, Reject>, limits: &Limits) {
    let max = limits.head_bytes_max;
    let (mut bytes, mut done) = (Vec::new(), 0);
    let mut outcome = Ok(None);
    for piece in pieces {
        bytes.extend_from_slice(piece);
        outcome = scan(&bytes, done, max);
        let mut forgotten = bytes.clone();
        // The byte before tells an empty line.
        forgotten[..done.saturating_sub(1)].fill(0);
        let again = scan(&forgotten, done, max);
        assert!(outcome == again || (is_too_large(outcome) && is_too_large(again)), "{outcome:?} {again:?}");
        if outcome != Ok(None) {
            break;
        }
        done = scanned_len(&bytes);
        assert!(done + 1 >= bytes.len(), "{done} of {} were scanned", bytes.len());
    }
    assert_eq!(outcome, whole, "{pieces:?}");
}

fn is_too_large(outcome: Result<Option<usize>, Reject>) -> bool {
    matches!(outcome, Err(Reject::HeadTooLarge | Reject::TargetTooLong | Reject::MethodTooLong))
}

fn fields(head: &Understood) -> Vec<Field> {
    head.fields.iter().map(|(name, value)| Field { name: name.clone(), value: value.clone() }).collect()
}

fn check_round_trip(head: &Understood, method: &str, limits: &Limits) {
    let version = if head.version == Version::Http11 { "1.1" } else { "1.0" };
    let mut again = format!("{method} {} HTTP/{version}\r\n", head.target).into_bytes();
    for (name, value) in &head.fields {
        again.extend([name.as_bytes(), b":", value, b"\r\n"].concat());
    }
    again.extend(b"\r\n");
    assert_eq!(understand(&again, limits).as_ref(), Ok(head));
}
