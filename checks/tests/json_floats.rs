//! Random decimals against the standard library, which rounds to nearest. ROUNDS sets how many.

use sprat::internals::{JsonTape, parse_json};

fn next(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_F491_4F6C_DD1D)
}

#[test]
fn floats_are_the_nearest() {
    let rounds: u64 = std::env::var("ROUNDS").map_or(20_000, |rounds| rounds.parse().unwrap());
    let mut state = 0xF10A7;
    let mut tape = JsonTape::default();
    let mut doubly_rounded = 0;
    for round in 0..rounds {
        let (a, b, c) = (next(&mut state), next(&mut state), next(&mut state));
        let text = match round % 6 {
            0 => format!("{:e}", f64::from_bits(a & !(0x7FF << 52) | (b % 2047) << 52)),
            1 => format!("{}.{}e{}", a % 100, b, c as i64 % 340),
            2 => format!("{}e{}", a >> (b % 60), c as i64 % 340),
            3 => format!("{}.{:0width$}", a >> (b % 64), b, width = (c % 30) as usize),
            // Halfway between two floats, with or without something far behind.
            4 => {
                let half = (u128::from(a >> 11 | 1 << 52) << 1 | 1) << (b % 60);
                format!("{half}{}", ["", ".0", ".0000000000000000000000000001", "e0"][(c % 4) as usize])
            }
            _ => format!("0.{}{}e-{}", "0".repeat((a % 30) as usize), b, c % 320),
        };
        let nearest: f64 = text.parse().unwrap();
        let mut bytes = [text.as_bytes(), &[b'9'; 64]].concat();
        match parse_json::<f64>(&mut bytes, text.len(), &mut tape) {
            Ok(float) => assert_eq!(float.to_bits(), nearest.to_bits(), "{text}"),
            Err(error) => assert!(error.malformed && nearest.is_infinite(), "{text} {error:?}"),
        }
        if nearest.is_finite() {
            let mut bytes = [text.as_bytes(), &[b'9'; 64]].concat();
            match parse_json::<f32>(&mut bytes, text.len(), &mut tape) {
                Ok(float) => {
                    let steps = float.to_bits().abs_diff(text.parse::<f32>().unwrap().to_bits());
                    assert!(steps <= 1, "{text}");
                    doubly_rounded += u64::from(steps);
                }
                Err(_) => assert!((nearest as f32).is_infinite(), "{text}"),
            }
        }
    }
    println!("{doubly_rounded} of {rounds} were rounded to f32 by way of f64");
}
