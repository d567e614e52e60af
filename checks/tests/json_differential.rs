//! JSON against serde_json, on texts made and mutated by a seeded generator. What both accept is equal; what exactly one
//! accepts falls under a rule with a name. ROUNDS sets how many texts.

use std::collections::BTreeMap;

use serde_json::Value;
use sprat::internals::{JsonTape, parse_json, write_json};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const SPACES: &[&str] = &["", "", "", "", " ", "\n", "\t\r\n", "                                  "];
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "12",
    "1.5",
    "-1.5e3",
    "1e5",
    "1E-7",
    "0.1",
    "123456789",
    "-0.0",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "-9223372036854775809",
    "1234567890123456789",
    "12345678901234567890123",
    "1e308",
    "1e309",
    "1e-400",
    "0.30000000000000004",
    "01",
    "1.",
    ".5",
    "+1",
    "1e",
    "1e+",
    "0x1",
    "NaN",
    "-",
    "1_0",
];
const PARTS: &[&str] = &[
    "a",
    "b",
    "key",
    "\\n",
    "\\u0061",
    "\\u00e9",
    "\\uD83D\\uDE00",
    "é",
    "😀",
    "\\\\",
    "\\/",
    "\\\"",
    "a fairly long run of text that fills more than one vector of thirty-two bytes",
    "\\uD83D",
    "\\uDE00",
    "\\x",
    "\\u12",
    "\u{1}",
    "\n",
    "\u{7f}",
    "0",
    "{",
    "]",
    ":",
    ",",
];

fn string(random: &mut Random, out: &mut String, wild: bool) {
    out.push('"');
    for _ in 0..random.below(4) {
        let end = if wild { PARTS.len() } else { 13 };
        out.push_str(PARTS[..end][random.below(end)]);
    }
    out.push('"');
}

fn value(random: &mut Random, out: &mut String, depth: usize, wild: bool) {
    out.push_str(random.pick(SPACES));
    match random.below(if depth == 0 { 5 } else { 9 }) {
        0 => out.push_str(random.pick(&["null", "true", "false"])),
        1 | 2 => out.push_str(if wild { random.pick(NUMBERS) } else { random.pick(&NUMBERS[..22]) }),
        3 | 4 => string(random, out, wild),
        5 | 6 => {
            out.push('[');
            for n in 0..random.below(5) {
                if n > 0 {
                    out.push(',');
                }
                value(random, out, depth - 1, wild);
            }
            out.push(']');
        }
        _ => {
            out.push('{');
            let most = if random.below(20) == 0 { 50 } else { 5 };
            for n in 0..random.below(most) {
                if n > 0 {
                    out.push(',');
                }
                out.push_str(random.pick(SPACES));
                string(random, out, wild);
                // Mostly unique: a number after the parts.
                if random.below(6) != 0 {
                    out.pop();
                    *out += &format!("{n}\"");
                }
                out.push_str(random.pick(SPACES));
                out.push(':');
                value(random, out, depth - 1, wild);
            }
            out.push('}');
        }
    }
    out.push_str(random.pick(SPACES));
}

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..random.below(3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => drop(bytes.remove(at)),
            1 => bytes.insert(at, random.pick(b"{}[]:,\"\\ 019-+.eEu\0\x1F\x7F\x80\xC3\xFFtnf")),
            2 => bytes[at] ^= 1 << random.below(8),
            3 => bytes.truncate(at),
            _ => {
                let tail = bytes[at..].to_vec();
                bytes.extend(tail);
            }
        }
    }
}

fn depth(text: &[u8]) -> usize {
    let (mut depth, mut most, mut inside, mut escaped) = (0usize, 0, false, false);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b'[' | b'{' if !inside => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !inside => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// Equal but for `-0`, which serde_json reads as a float.
fn alike(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && alike(a, b))
        }
        (Value::Number(a), Value::Number(b)) if a != b => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            a == 0.0 && b == 0.0
        }
        _ => ours == theirs,
    }
}

#[test]
fn sprat_and_serde_json_agree_but_for_named_rules() {
    let rounds = std::env::var("ROUNDS").map_or(20_000, |rounds| rounds.parse().unwrap());
    let mut random = Random(0xD1FF);
    let mut tape = JsonTape::default();
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    let mut text = String::new();
    for _ in 0..rounds {
        text.clear();
        let (wild, levels) = (random.below(3) == 0, random.below(5));
        if random.below(200) == 0 {
            let deep = 124 + random.below(8);
            text = "[".repeat(deep) + "1" + &"]".repeat(deep);
        } else {
            value(&mut random, &mut text, levels, wild);
        }
        let mut body = text.clone().into_bytes();
        if random.below(2) == 0 {
            mutate(&mut random, &mut body);
        }
        let shown = || String::from_utf8_lossy(&body).into_owned();
        let theirs = serde_json::from_slice::<Value>(&body);
        let padding: Vec<u8> = (0..64).map(|_| random.pick(b"{}[]:,\"\\ 019-.eu\0tnf\xFF")).collect();
        let mut bytes = [&body[..], &padding].concat();
        let ours = parse_json::<Value>(&mut bytes, body.len(), &mut tape);
        assert_eq!(&bytes[body.len()..], padding, "{}", shown());
        let mut bare = body.clone();
        assert_eq!(ours, parse_json::<Value>(&mut bare, body.len(), &mut tape), "{}", shown());
        let rule = match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                assert!(alike(&ours, &theirs), "{}: {ours} {theirs}", shown());
                let (mut a, mut b) = (Vec::new(), Vec::new());
                assert!(write_json(&mut a, &ours));
                serde_json::to_writer(&mut b, &ours).unwrap();
                let same: Value = serde_json::from_slice(&a).unwrap();
                assert!(alike(&same, &ours), "{}", shown());
                // Floats may differ in spelling (1e16, 1e+16), nothing else.
                assert!(a == b || shown().contains(['.', 'e', 'E']) || a.len() > 19, "{}", shown());
                "both accept"
            }
            (Err(_), Err(_)) => "both refuse",
            (Err(ours), Ok(_)) if ours.message == "duplicate key" => "duplicate keys: we refuse",
            (Ok(_), Err(_)) if depth(&body) == 128 => "depth 128: serde_json refuses",
            (ours, theirs) => panic!("{}: {ours:?} {theirs:?}", shown()),
        };
        *rules.entry(rule).or_default() += 1;
    }
    println!("{rules:?}");
    assert!(rules.len() == 4 && rules.values().all(|&count| count > 3), "{rules:?}");
}
