//! Reading and writing JSON allocates nothing once its storage is warm.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use sprat::internals::{JsonTape, parse_json, write_json};
use sprat_checks::counting::{Counting, count};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(mut job: impl FnMut()) -> usize {
    job();
    let before = count();
    for _ in 0..100 {
        job();
    }
    count() - before
}

#[derive(Deserialize, Serialize)]
struct Resource<'r> {
    name: &'r str,
    active: bool,
    #[serde(borrow, default)]
    cow: Option<Cow<'r, str>>,
}

#[test]
fn a_borrowed_struct_is_read_without_allocating() {
    let mut tape = JsonTape::default();
    for text in [
        r#"{"name":"alice","active":true}"#.to_owned(),
        r#"{"name":"a\u00e9\n","active":true,"unknown":[1,2.5,{"x":null}]}"#.to_owned(),
        format!(r#"{{"name":"{}","active":false}}"#, "long \\\"text".repeat(5000)),
        format!(
            r#"{{"name":"n","active":false,"unknown":{{{}"z":0}}}}"#,
            (0..1000).map(|n| format!("\"k{n}\":[{n}],")).collect::<String>()
        ),
    ] {
        for padding in [64, 0] {
            let mut bytes = vec![b'x'; text.len() + padding];
            let count = allocations(|| {
                bytes[..text.len()].copy_from_slice(text.as_bytes());
                let read: Resource = parse_json(&mut bytes, text.len(), &mut tape).unwrap();
                assert!(!read.name.is_empty());
            });
            assert_eq!(count, 0, "{} bytes, padding {padding}", text.len());
        }
    }
}

#[test]
fn any_text_is_ignored_without_allocating() {
    let mut tape = JsonTape::default();
    let text = br#"[{"a":[1,2,{"b":"\u00e9"}],"c":null},-1.5e3,"x"]"#;
    let mut bytes = [&text[..], &[0; 64]].concat();
    let count = allocations(|| {
        bytes[..text.len()].copy_from_slice(text);
        parse_json::<IgnoredAny>(&mut bytes, text.len(), &mut tape).unwrap();
    });
    assert_eq!(count, 0);
}

#[test]
fn a_value_is_written_without_allocating() {
    #[derive(Serialize)]
    struct Created<'r> {
        status: &'static str,
        id: u64,
        ratio: f64,
        data: Resource<'r>,
        list: [Option<i32>; 2],
        shown: std::net::Ipv4Addr,
    }
    let mut out = Vec::with_capacity(4096);
    let data = Resource { name: "a\"\n\u{e9}", active: true, cow: Some("cow".into()) };
    let shown = std::net::Ipv4Addr::LOCALHOST;
    let value = Created { status: "success", id: 42, ratio: 0.1, data, list: [None, Some(-1)], shown };
    let count = allocations(|| {
        out.clear();
        assert!(write_json(&mut out, &value));
    });
    assert_eq!(count, 0);
}
