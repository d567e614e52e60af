use std::io::IoSlice;
use std::sync::Arc;

use crate::limits::{Limits, READ_BUFFER_LEN};
use crate::output::{Borrowed, COPY_BYTES_MAX, Output, Unsent};
use crate::testing::Random;

fn gather(slices: &[IoSlice<'_>]) -> Vec<u8> {
    slices.iter().flat_map(|slice| slice.iter().copied()).collect()
}

#[test]
fn copied_and_borrowed_bytes_go_out_in_order_however_they_are_sent() {
    let mut random = Random::new(3);
    for _ in 0..500 {
        let mut output = Output::new(0);
        let mut unsent = Unsent::default();
        let mut expected = Vec::new();
        let mut got = Vec::new();
        for turn in 0..4u8 {
            for piece in 0..random.below(5) as u8 {
                let bytes = vec![turn * 16 + piece; random.len(0, 39)];
                expected.extend_from_slice(&bytes);
                if random.below(2) == 0 {
                    output.bytes.extend_from_slice(&bytes);
                } else {
                    output.push_borrowed(Borrowed::Shared(Arc::from(bytes)));
                }
            }
            let mut sent = 0;
            if unsent.is_empty() {
                let mut slices = [IoSlice::new(&[]); 16];
                let filled = output.slices(&mut slices);
                let all = gather(&slices[..filled]);
                assert_eq!(all.len(), output.len());
                sent = random.len(0, all.len());
                got.extend_from_slice(&all[..sent]);
            }
            output.move_rest(sent, &mut unsent);
            assert!(output.is_empty());
            assert_eq!(unsent.len(), expected.len() - got.len());
            let mut slices = [IoSlice::new(&[]); 3];
            let filled = unsent.slices(&mut slices);
            let some = gather(&slices[..filled]);
            let taken = random.len(0, some.len());
            got.extend_from_slice(&some[..taken]);
            unsent.advance(taken);
        }
        while !unsent.is_empty() {
            let mut slices = [IoSlice::new(&[]); 2];
            let filled = unsent.slices(&mut slices);
            let some = gather(&slices[..filled]);
            got.extend_from_slice(&some);
            unsent.advance(some.len());
        }
        assert_eq!(got, expected);
    }
}

#[test]
fn rolling_back_forgets_borrowed_bytes_too() {
    let mut output = Output::new(0);
    output.bytes.extend_from_slice(b"one");
    let mark = output.mark();
    output.bytes.extend_from_slice(b"two");
    output.push_borrowed(Borrowed::Static(&[0; COPY_BYTES_MAX]));
    output.roll_back(mark);
    assert_eq!((output.len(), &*output.bytes), (3, &b"one"[..]));
}

/// Found by simulation: all small answers were merged into one segment, whose memory came back only once all was sent.
#[test]
fn memory_of_waiting_answers_comes_back_though_some_always_wait() {
    let (mut output, mut unsent) = (Output::new(0), Unsent::default());
    for _ in 0..10_000 {
        output.bytes.extend_from_slice(&[b'a'; 300]);
        output.move_rest(0, &mut unsent);
        if unsent.len() > 10_000 {
            unsent.advance(300);
        }
        assert!(unsent.held_bytes() < 8 * COPY_BYTES_MAX, "{} bytes for {}", unsent.held_bytes(), unsent.len());
    }
}

/// Found by simulation: under a small bound for output, what was sent of a segment is more than what waits.
#[test]
fn answers_put_together_stay_within_the_worst_case_of_a_small_bound_for_output() {
    let limits = Limits { output_bytes_max: 1024, head_bytes_max: 64, body_bytes_max: 0, ..Limits::DEFAULT };
    let for_input = 2 * READ_BUFFER_LEN;
    let (mut output, mut unsent, mut most) = (Output::new(0), Unsent::default(), 0);
    for _ in 0..10_000 {
        output.bytes.extend_from_slice(&[b'a'; 130]);
        output.move_rest(0, &mut unsent);
        if unsent.len() > limits.output_bytes_max {
            unsent.advance(130);
        }
        most = most.max(unsent.held_bytes());
    }
    assert!(for_input + most <= limits.worst_case_bytes_per_connection(), "{most} bytes");
    assert!(most > 6 * limits.output_bytes_max, "{most} bytes: the bound could be lower");
}
