//! Which texts are JSON texts (RFC 8259), whatever they are read into.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::parse::DEPTH_MAX;
use super::super::{Kind, Tape, parse};
use super::{Any, accepted, malformed, read, well_formed};

fn text(text: &str) -> Any {
    Any::Text(text.to_owned())
}

#[test]
fn every_kind_of_value_stands_alone() {
    for (json, value) in [
        ("null", Any::Null),
        ("true", Any::Bool(true)),
        ("false", Any::Bool(false)),
        ("0", Any::Unsigned(0)),
        ("-1", Any::Signed(-1)),
        ("0.5", Any::Float(0.5)),
        ("\"s\"", text("s")),
        ("\"\"", text("")),
        ("[]", Any::Array(vec![])),
        ("{}", Any::Object(vec![])),
        (" \t\r\n[ 1 ,\n2 ]\t", Any::Array(vec![Any::Unsigned(1), Any::Unsigned(2)])),
        ("{ \"\" : null }", Any::Object(vec![(String::new(), Any::Null)])),
    ] {
        accepted(json, value);
    }
}

#[test]
fn an_empty_or_blank_body_is_malformed() {
    for body in ["", " ", "\r\n", &" ".repeat(63), &" ".repeat(64), &" ".repeat(65)] {
        malformed(body);
        let outcome = read::<u8>(body);
        assert_eq!(outcome, Err((Kind::Malformed, "empty body", String::new())));
        well_formed(format!("{body}1"));
    }
}

#[test]
fn what_the_grammar_does_not_derive_is_malformed() {
    for (refused, neighbour) in [
        ("{", "{}"),
        ("}", "{}"),
        ("[", "[]"),
        ("]", "[]"),
        ("[}", "[]"),
        ("{]", "{}"),
        ("[1", "[1]"),
        ("[1,]", "[1,1]"),
        ("[,1]", "[1,1]"),
        ("[1 1]", "[1,1]"),
        ("[1,,1]", "[1,1,1]"),
        ("[1:1]", "[1,1]"),
        ("{\"a\"}", "{\"a\":1}"),
        ("{\"a\":}", "{\"a\":1}"),
        ("{\"a\" 1}", "{\"a\":1}"),
        ("{\"a\",1}", "{\"a\":1}"),
        ("{\"a\":1,}", "{\"a\":1}"),
        ("{,\"a\":1}", "{\"a\":1}"),
        ("{\"a\":1 \"b\":2}", "{\"a\":1,\"b\":2}"),
        ("{a:1}", "{\"a\":1}"),
        ("{'a':1}", "{\"a\":1}"),
        ("{1:1}", "{\"1\":1}"),
        ("{null:1}", "{\"null\":1}"),
        ("{\"a\":1}}", "{\"a\":1}"),
        ("{\"a\":1}x", "{\"a\":1} "),
        ("{\"a\":1}{}", "{\"a\":1}"),
        ("1 1", "1 "),
        ("1,", "1"),
        ("\"a\" \"b\"", "\"a\""),
        ("\"a\"b", "\"a\""),
        ("[]\0", "[] "),
        ("[1]\u{a0}", "[1] "),
        ("[1]\x0B", "[1]\t"),
        ("nul", "null"),
        ("nulll", "null"),
        ("tru", "true"),
        ("truex", "true"),
        ("True", "true"),
        ("fals", "false"),
        ("falsee", "false"),
        ("[nul]", "[null]"),
        ("[truefalse]", "[true,false]"),
        ("NaN", "0"),
        ("Infinity", "0"),
        ("-Infinity", "-0"),
        ("undefined", "null"),
        ("\"a", "\"a\""),
        ("a\"", "\"a\""),
        ("\"", "\"\""),
        ("\"a\\\"", "\"a\\\\\""),
        ("[\\\"]", "[\"\"]"),
        ("//\n1", "\n1"),
        ("/**/1", "1"),
        ("1#", "1"),
    ] {
        malformed(refused);
        well_formed(neighbour);
    }
}

#[test]
fn a_byte_order_mark_is_malformed() {
    malformed("\u{feff}{}");
    well_formed(" {}");
    // Elsewhere it is a character like any other.
    accepted("\"\u{feff}\"", text("\u{feff}"));
}

#[test]
fn every_cut_of_a_document_is_malformed() {
    let json = r#"{"name":"al\u00e9\nce","tags":["a",true,null,-12.5e3],"in":{"x":false}}"#;
    well_formed(json);
    for end in 0..json.len() {
        malformed(&json[..end]);
    }
}

/// Short and long, so that each vectorised loop and each of its tails is met.
const LENGTHS: [usize; 14] = [0, 1, 7, 15, 16, 30, 31, 32, 33, 61, 64, 65, 129, 300];

/// Puts `part` inside a string of about `length` bytes, as a value and as a key.
fn placed(part: &[u8], length: usize) -> impl Iterator<Item = Vec<u8>> {
    let filler = vec![b'x'; length];
    let tails: [&[u8]; 3] = [b"", b"y", &[b'z'; 70]];
    tails
        .map(|tail| [&filler, part, tail].concat())
        .into_iter()
        .flat_map(|inner| [[b"[\"", &*inner, b"\"]"].concat(), [b"{\"k\":1,\"", &*inner, b"\":null}"].concat()])
}

#[test]
fn bytes_that_are_not_utf8_are_malformed() {
    for (refused, neighbour) in [
        (&b"\xFF"[..], &b"\x7F"[..]),
        (b"\x80", b"\xC2\x80"),
        (b"\xBF", b"\xC2\xBF"),
        (b"\xC0\xAF", b"\xC2\xAF"),
        (b"\xC1\xBF", b"\xC2\xBF"),
        (b"\xC2", b"\xC2\x80"),
        (b"\xE0\x80\x80", b"\xE0\xA0\x80"),
        (b"\xE0\x9F\xBF", b"\xE0\xA0\xBF"),
        (b"\xED\xA0\x80", b"\xED\x9F\xBF"),
        (b"\xED\xBF\xBF", b"\xEE\xBF\xBF"),
        (b"\xE2\x82", b"\xE2\x82\xAC"),
        (b"\xF0\x8F\xBF\xBF", b"\xF0\x90\x80\x80"),
        (b"\xF0\x9F\x98", b"\xF0\x9F\x98\x80"),
        (b"\xF4\x90\x80\x80", b"\xF4\x8F\xBF\xBF"),
        (b"\xF5\x80\x80\x80", b"\xF4\x80\x80\x80"),
    ] {
        for length in LENGTHS {
            placed(refused, length).for_each(malformed);
            placed(neighbour, length).for_each(|json| {
                well_formed(json);
            });
        }
    }
    malformed(b"[1]\xFF");
    malformed(b"\xFF[1]");
    malformed([&b"[1]"[..], &[b' '; 80], b"\xC2"].concat());
}

#[test]
fn a_control_byte_in_a_string_is_malformed_unless_escaped() {
    for control in 0..0x20u8 {
        for length in LENGTHS {
            placed(&[control], length).for_each(malformed);
        }
        let escaped = format!("\\u{control:04x}");
        accepted(format!("\"{escaped}\""), text(&char::from(control).to_string()));
    }
    for length in LENGTHS {
        placed(b" ", length).chain(placed(b"\x7F", length)).for_each(|json| {
            well_formed(json);
        });
    }
}

#[test]
fn half_a_surrogate_pair_is_malformed() {
    for (refused, neighbour) in [
        (r"\uDE71", r"\u0E71"),
        (r"\uD83D", r"\uD7FF"),
        (r"\uD83Dx", r"\uE000x"),
        (r"\uD83D\n", r"\uD83D\uDE00"),
        (r"\uD83D\uD83D", r"\uD83D\uDE00"),
        (r"\uDE00\uD83D", r"\uD83D\uDE00"),
        (r"\uD83D\u0041", r"\uD83D\uDE00"),
        (r"\uD83D\uDE0", r"\uD83D\uDE00"),
        (r"\uD83DuDE00", r"\uD83D\uDE00"),
        (r"\uD83D\\uDE00", r"\uD83D\uDE00"),
        (r"\udfff", r"\udbff\udfff"),
    ] {
        for length in LENGTHS {
            placed(refused.as_bytes(), length).for_each(malformed);
            placed(neighbour.as_bytes(), length).for_each(|json| {
                well_formed(json);
            });
        }
    }
}

#[test]
fn an_escape_that_json_does_not_know_is_malformed() {
    for (refused, neighbour) in [
        (r"\a", r"\b"),
        (r"\'", r"\/"),
        (r"\x41", r"\u0041"),
        (r"\0", r"\u0000"),
        (r"\U0041", r"\u0041"),
        (r"\u041", r"\u0041"),
        (r"\u00g1", r"\u00f1"),
        (r"\u+041", r"\u0041"),
        (r"\u{41}", r"\u0041"),
        ("\\\n", r"\n"),
        ("\\\u{e9}", r"\u00e9"),
    ] {
        for length in LENGTHS {
            placed(refused.as_bytes(), length).for_each(malformed);
            placed(neighbour.as_bytes(), length).for_each(|json| {
                well_formed(json);
            });
        }
    }
}

#[test]
fn escapes_are_read_at_every_place_of_a_string() {
    let escapes = [
        (r#"\""#, "\""),
        (r"\\", "\\"),
        (r"\/", "/"),
        (r"\b\f\n\r\t", "\u{8}\u{c}\n\r\t"),
        (r"\u0000", "\0"),
        (r"\u00e9", "\u{e9}"),
        (r"\u20AC", "\u{20ac}"),
        (r"\uFFFF", "\u{ffff}"),
        (r"\uD83D\uDE00", "\u{1f600}"),
    ];
    for (escaped, plain) in escapes {
        for before in 0..70 {
            for after in [0, 1, 31, 40, 100] {
                let (before, after) = ("x".repeat(before), "\u{e9}".repeat(after));
                let json = format!("[\"{before}{escaped}{after}{escaped}\",1]");
                let whole = text(&format!("{before}{plain}{after}{plain}"));
                accepted(json, Any::Array(vec![whole, Any::Unsigned(1)]));
            }
        }
    }
}

#[test]
fn a_borrowed_string_may_have_escapes() {
    #[derive(Deserialize, Debug, PartialEq)]
    struct Borrowed<'r> {
        text: &'r str,
        bytes: &'r [u8],
    }
    let json = br#"{"text":"a\u00e9\n\"","bytes":"\t!"}"#;
    let mut bytes = [&json[..], &[b'x'; 64]].concat();
    let value: Borrowed<'_> = parse(&mut bytes, json.len(), &mut Tape::default()).unwrap();
    assert_eq!(value, Borrowed { text: "a\u{e9}\n\"", bytes: b"\t!" });
}

#[test]
fn the_depth_is_bounded_at_128() {
    assert_eq!(DEPTH_MAX, 128);
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":[", "]}]")] {
        let levels = DEPTH_MAX / open.bytes().filter(|byte| b"[{".contains(byte)).count();
        let nested = |levels| format!("{}1{}", open.repeat(levels), close.repeat(levels));
        well_formed(nested(levels));
        malformed(nested(levels + 1));
    }
    let deep = "[".repeat(129);
    let outcome = read::<IgnoredAny>(&deep);
    assert_eq!(outcome.err().map(|error| error.1), Some("nesting deeper than 128 levels"));
}

#[test]
fn two_hundred_kilobytes_of_brackets_are_malformed() {
    #[derive(Deserialize, Debug)]
    struct Known {
        #[serde(rename = "a")]
        _a: u8,
    }
    let open = "[".repeat(100_000);
    let both = format!("{open}{}", "]".repeat(100_000));
    for body in [&open, &both] {
        malformed(body);
        let unknown = format!("{{\"a\":1,\"unknown\":{body}}}");
        assert_eq!(read::<Known>(&unknown).err().map(|error| error.0), Some(Kind::Malformed));
    }
}

/// A thread of the usual 2 MiB, in whatever build the tests run.
#[test]
fn recursive_types_fit_on_the_stack_at_the_full_depth() {
    #[derive(Deserialize, Debug)]
    struct List(Vec<List>);

    #[derive(Deserialize, Debug)]
    struct Link {
        next: Option<Box<Link>>,
    }

    #[derive(Deserialize, Debug)]
    #[serde(untagged)]
    enum Tree {
        Leaf(u8),
        Branch(Vec<Tree>),
    }

    let stack = std::thread::Builder::new().stack_size(2 << 20);
    let body = || {
        let lists = format!("{}{}", "[".repeat(128), "]".repeat(128));
        let mut list = &read::<List>(&lists).unwrap();
        let mut depth = 1;
        while let Some(inner) = list.0.first() {
            (list, depth) = (inner, depth + 1);
        }
        assert_eq!(depth, 128);

        let links = format!("{}{{}}{}", "{\"next\":".repeat(127), "}".repeat(127));
        let mut link = &read::<Link>(&links).unwrap();
        let mut depth = 1;
        while let Some(inner) = &link.next {
            (link, depth) = (inner, depth + 1);
        }
        assert_eq!(depth, 128);

        let trees = format!("{}1{}", "[".repeat(128), "]".repeat(128));
        let mut tree = &read::<Tree>(&trees).unwrap();
        let mut depth = 0;
        while let Tree::Branch(inner) = tree {
            (tree, depth) = (&inner[0], depth + 1);
        }
        assert_eq!(depth, 128);
        assert!(matches!(tree, Tree::Leaf(1)));
    };
    stack.spawn(body).unwrap().join().unwrap();
}

#[test]
fn a_large_body_leaves_no_large_storage_and_the_next_body_is_read() {
    let mut tape = Tape::default();
    let large = format!("[{}1]", "1,".repeat(100_000));
    for body in [large.as_str(), "[1]", large.as_str(), "[1", "[2]"] {
        let mut bytes = [body.as_bytes(), &[b' '; 64]].concat();
        let read: Result<Vec<u8>, _> = parse(&mut bytes, body.len(), &mut tape);
        assert_eq!(read.is_ok(), body.ends_with(']'));
    }
}

#[test]
fn a_panic_in_a_type_leaves_the_tape_usable() {
    #[derive(Debug)]
    struct Bomb;
    impl<'de> Deserialize<'de> for Bomb {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            panic!("expected by the test");
        }
    }
    let mut tape = Tape::default();
    let mut bytes = [b"[1]", &[b' '; 64][..]].concat();
    let caught =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| parse::<Bomb>(&mut bytes, 3, &mut tape).is_ok()));
    assert!(caught.is_err());
    let read: Vec<u8> = parse(&mut bytes, 3, &mut tape).unwrap();
    assert_eq!(read, [1]);
}
