//! Writes the seeds in `fuzz/corpus` from the conformance corpus: `cargo run --example seeds`, in `fuzz/`.
//!
//! Each case becomes a seed of those targets that can make something of it, in the form that they take it in. Targets
//! that the corpus has nothing for get a few inputs made by hand, or by a small generator.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Longer seeds only slow the fuzzer down.
const LEN_MAX: usize = 512;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cases = fs::read_to_string(root.join("../tests/corpus/cases.jsonl")).expect("the corpus is there");
    let mut seeds = Seeds { root: root.join("corpus"), seen: HashSet::new(), bytes: 0, count: 0 };
    for (at, line) in cases.lines().enumerate() {
        let case: Value = serde_json::from_str(line).expect("a case is one line of JSON");
        if case.get("repeat").is_none() {
            let text = case["send"].as_str().expect("a case has bytes to send");
            let bytes: Vec<u8> = text.chars().map(|c| u8::try_from(c).expect("a byte")).collect();
            seeds.add_case(case["id"].as_str().expect("a case has a name"), at, &bytes);
        }
        if at % 48 == 0 {
            seeds.add("json", &format!("case-{at}"), &[b"  ", line.as_bytes()].concat());
        }
    }
    seeds.add_handmade();
    println!("{} seeds, {} bytes", seeds.count, seeds.bytes);
}

struct Seeds {
    root: std::path::PathBuf,
    seen: HashSet<(String, Vec<u8>)>,
    bytes: usize,
    count: usize,
}

impl Seeds {
    fn add(&mut self, target: &str, name: &str, bytes: &[u8]) {
        if bytes.len() > LEN_MAX || !self.seen.insert((target.to_owned(), bytes.to_vec())) {
            return;
        }
        let folder = self.root.join(target);
        fs::create_dir_all(&folder).expect("a folder can be made");
        fs::write(folder.join(format!("seed-{name}")), bytes).expect("a seed can be written");
        self.bytes += bytes.len();
        self.count += 1;
    }

    fn add_case(&mut self, name: &str, at: usize, bytes: &[u8]) {
        // Other limits and other cuts for each of them.
        let (limits, cuts) = (at as u8 & 1, [at as u8 % 61, at as u8 % 127, at as u8]);
        // These three find their way from any request, so each case goes to one of them.
        match at % 3 {
            0 => self.add("connection", name, &[&[limits], &cuts[..], &[at as u8 % 32], bytes].concat()),
            1 => self.add("smuggling", name, &[&cuts, bytes].concat()),
            _ => {}
        }
        let head_len = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        let head = &bytes[..head_len.unwrap_or(bytes.len())];
        if at % 3 == 2 {
            self.add("head", name, &[&[limits], &cuts[..], head].concat());
        }

        let Some(line_len) = head.windows(2).position(|two| two == b"\r\n") else { return };
        let text = String::from_utf8_lossy(&head[..line_len]).into_owned();
        if let Some((method, rest)) = text.split_once(' ') {
            let target = rest.rsplit_once(' ').map_or(rest, |(target, _)| target);
            let method = ["GET", "OPTIONS", "CONNECT", "POST"].iter().position(|m| *m == method).unwrap_or(0);
            self.add("target", name, &[&[method as u8, 0], target.as_bytes()].concat());
            if let Some((_, query)) = target.split_once('?') {
                self.add("query", name, &[b"\0", query.as_bytes()].concat());
                self.add("form", name, &[b"\0", query.as_bytes()].concat());
            }
        }
        let Some(head_len) = head_len else { return };
        if let Some(lines) = head.get(line_len + 2..head_len - 4) {
            let version = u8::from(text.ends_with("1.0"));
            // Host says nothing about framing.
            let lines: Vec<_> = lines.split(|&b| b == b'\n').filter(|line| !line.starts_with(b"Host:")).collect();
            self.add("framing", name, &[&[version], &lines.join(&b'\n')[..]].concat());
        }
        if head.to_ascii_lowercase().windows(7).any(|seven| seven == b"chunked") {
            self.add("chunked", name, &[&[limits], &cuts[..], &bytes[head_len..]].concat());
        }
    }

    fn add_handmade(&mut self) {
        for (name, form) in [
            ("pairs", "a=1&b=x+y&a=%C3%A9"),
            ("odd", "&&=&a&b==c&%3D=%26&+"),
            ("typed", "n=255&i=-5&t=true&c=%C3%A9&e=blue"),
            ("bad", "a=%zz&%E0=%"),
        ] {
            for target in ["query", "form"] {
                self.add(target, name, format!("\u{1}\u{1}k\u{2}v {form}").as_bytes());
            }
        }
        for (name, line) in [("pairs", "a=b; c=\"d e\";f"), ("odd", ";; = ;=x;y=; a = b ;a=c"), ("text", "é=ü; %20=+")]
        {
            let line = [&[1, line.len() as u8], line.as_bytes(), b"\x04name\x05value"].concat();
            self.add("cookies", name, &line);
        }
        for (name, text) in [
            ("numbers", "[0,-0,1.5e3,0.1,18446744073709551615,18446744073709551616,-9223372036854775808,1e-400,1e400]"),
            ("strings", r#"["","\"\\\/\b\f\n\r\t","\u00e9\ud83d\ude00","é😀","\ud83d"]"#),
            ("twice", r#"{"a":1,"b":{"c":[],"c":{}}}"#),
            ("escaped-twice", r#"{"a":1,"\u0061":2}"#),
            ("spaces", " \t\r\n{ \"a\" : [ true , false , null ] } "),
            (
                "typed",
                r#"{"a":1,"b":-1,"c":7,"d":-9,"e":9,"f":0.5,"g":true,"h":"x","i":"t","j":{"l":[1,null]},
                "k":["Unit",{"One":1},{"Two":[1,"a"]},{"Named":{"x":1}}],"m":{"-1":null},"n":{"true":"a"},"o":{"Other":null}}"#,
            ),
            ("tail", "[1]x"),
            ("comma", "[1,]"),
            ("deep", &("[".repeat(128) + &"]".repeat(128))),
            ("deeper", &("[".repeat(129) + &"]".repeat(129))),
        ] {
            self.add("json", name, &[b"\"]", text.as_bytes()].concat());
        }
        // So many that they are sorted, and not compared each with each.
        let keys = (b'a'..=b'z').chain(b'A'..=b'Z').map(|key| format!("\"{}\":0", char::from(key)));
        let members = keys.collect::<Vec<_>>().join(",");
        self.add("json", "many-keys", format!("  {{{members}}}").as_bytes());
        self.add("json", "many-keys-twice", format!("  {{{members},\"Z\":1}}").as_bytes());
        let v2 = |rest: &[u8]| [b"\r\n\r\n\0\r\nQUIT\n", rest].concat();
        for (name, header) in [
            ("v1-4", b"PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\n".to_vec()),
            ("v1-6", b"PROXY TCP6 ::1 2001:db8::1 65535 0\r\nGET".to_vec()),
            ("v1-unknown", b"PROXY UNKNOWN ffff::1 x\r\n".to_vec()),
            ("v2-local", v2(b"\x20\x00\x00\x00")),
            ("v2-4", v2(b"\x21\x11\x00\x0c\x01\x02\x03\x04\x05\x06\x07\x08\x00\x01\x00\x50")),
            ("v2-6", v2(&[b"\x21\x21\x00\x27", &[7; 36][..], b"\x03\x00\x00"].concat())),
            ("v2-unix", v2(&[b"\x21\x31\x00\xd8", &[0; 216][..]].concat())),
        ] {
            self.add("proxy", name, &[&[0; 26][..], &header].concat());
        }
        for (name, value) in [
            ("bearer", "Bearer abc.DEF-1_2~+/=="),
            ("basic", "Basic dXNlcjpwYTpzcw=="),
            ("loose-bits", "basic dXNlcjpwYTpzcx=="),
            ("no-colon", "Basic Zm9v"),
            ("two-tokens", "bearer a b"),
            ("no-token", "Bearer"),
            ("padding", "Bearer ="),
        ] {
            let line = [&b"\x04user\x05p:\xc3\xa9s\x01Q\x01"[..], &[value.len() as u8], value.as_bytes()].concat();
            self.add("credentials", name, &line);
        }
        self.add("credentials", "twice", b"\0\0\0g\x02\x08Bearer a\x08Bearer b");
        self.add("credentials", "nobody", b"\x01u\0\x02=\0");
        // A parameter to add, codings, and the media type.
        for (name, parameter, codings, value) in [
            ("json", "charset=utf-8", &[][..], "application/json"),
            ("built-on", "charset=utf-16", &["identity"], "application/vnd.a+json; profile=\"b\""),
            ("form", "a=b", &["gzip"], "Application/X-WWW-Form-Urlencoded;charset=UTF-8"),
            ("odd", ";; = ;", &["", "identity, br"], "application/json ; utf-8 ; charset = 'us-ascii'"),
            ("other", "", &[","], "text/plain"),
        ] {
            let codings =
                [&[codings.len() as u8], &codings.iter().flat_map(|text| sized(text)).collect::<Vec<_>>()[..]].concat();
            self.add("media_type", name, &[&sized(parameter)[..], &codings, value.as_bytes()].concat());
        }
        // Table, path and method; the method that is asked for, and origins.
        for (name, choices, wanted, origins) in [
            ("preflight", [1, 0, 0], "POST", &["https://a.example"][..]),
            ("other", [1, 0, 0], "PUT", &["https://b.example"]),
            ("unnamed", [1, 0, 0], "DELETE", &["https://a.example"]),
            ("two", [1, 0, 1], "", &["https://a.example", "http://[::1]:5173"]),
            ("own", [1, 1, 0], "GET", &["http://[::1]:5173"]),
            ("inner", [1, 2, 1], "", &["null"]),
            ("none", [0, 1, 4], "GET", &[]),
        ] {
            let origins: Vec<_> =
                [origins.len() as u8].into_iter().chain(origins.iter().flat_map(|text| sized(text))).collect();
            self.add("cors", name, &[&choices, &sized(wanted)[..], &origins].concat());
        }
        // Limits, how many requests and which, three cuts; then what happens, in the words of the target.
        for (name, acts) in [
            ("answer", &b"\0\0\0\x09\x28\x44\0\0\0\0\x03\0\0\x04late"[..]),
            (
                "stream",
                b"\0\x01\0\x04\0\0\0\0\0\0\0\x03\0\x02\x03\0\0\x12eighteen letters!!\x02\x03\0\0\x01b\x03\0\x01\x02",
            ),
            ("cut", b"\x01\x01\0\x02\0\0\0\0\0\0\0\x03\0\x02\x03\0\0\x03abc\x02\x03\0\x03\x02"),
            ("pipeline", b"\0\x03\0\x04\x02\x01\x10\x50\x80\0\0\0\0\x01\x10\x03\0\0\x04one.\x02\x03\0\x01\x04two.\x02"),
            ("old", b"\0\0\x06\0\0\0\0\0\0\0\x03\0\x02\x03\0\0\x03abc\x02"),
            ("dropped", b"\x01\x02\0\x03\x04\0\0\0\0\0\0\0\x03\0\x03\x02"),
            ("last", b"\0\x01\x05\0\x20\x30\x40\0\0\0\0\x03\0\x01\x02hi\x02"),
        ] {
            self.add("later", name, acts);
        }
        for target in ["routes", "response", "date"] {
            for name in 0..24 {
                let mut state: u64 = 0x9E37_79B9_7F4A_7C15 ^ (name << 20);
                let bytes = (0..24 + 8 * name).map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    (state >> 32) as u8
                });
                self.add(target, &format!("random-{name}"), &bytes.collect::<Vec<_>>());
            }
        }
    }
}

/// A length in one byte, and so many bytes.
fn sized(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes()].concat()
}
