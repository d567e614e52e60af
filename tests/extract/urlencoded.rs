//! `Query` and `Form`: one grammar, two places.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use sprat::testing::Client;
use sprat::{Form, Method, Query, Rejection, Table, routes};

/// What both answer to this text: 200 and the value as text, or their refusals.
#[track_caller]
fn check<T: Table<()>>(table: T, text: &str, expected: Result<&str, (u16, &str)>) {
    let mut client = Client::new(table, ());
    let form = client.post("/", text.as_bytes());
    let query = client.get(&format!("/?{text}"));
    match expected {
        Ok(value) => {
            assert_eq!((form.status(), form.text()), (200, value), "the form {text:?}");
            assert_eq!((query.status(), query.text()), (200, value), "the query {text:?}");
        }
        Err((status, inside)) => {
            let body = |error| format!("{{\"error\":\"{error}\",{inside}}}");
            assert_eq!((form.status(), form.text()), (status, body("invalid_body").as_str()), "the form {text:?}");
            assert_eq!((query.status(), query.text()), (400, body("invalid_query").as_str()), "the query {text:?}");
            assert_eq!(query.field("content-type"), Some("application/json"));
        }
    }
}

/// A table that shows what a type becomes, in both places.
macro_rules! table {
    ($table:ident, $type:ty) => {
        mod shown {
            use super::*;
            pub fn query(_: &mut (), Query(value): Query<$type>) -> String {
                format!("{value:?}")
            }
            pub fn form(_: &mut (), Form(value): Form<$type>) -> String {
                format!("{value:?}")
            }
        }
        routes! { $table for () { GET "/" => shown::query(query), POST "/" => shown::form(form), } }
    };
}

macro_rules! scalar_tests {
    ($($name:ident $type:ty { $($text:literal => $value:expr,)* } $message:literal { $($bad:literal)* })*) => {$(
        mod $name {
            use super::*;
            #[derive(Debug, Deserialize)]
            #[allow(dead_code)]
            pub struct One { v: $type }
            table!(Shown, One);
            #[test]
            fn a_query_and_a_form_take_and_refuse_the_same_texts() {
                $(check(Shown, concat!("v=", $text), Ok(&format!("One {{ v: {:?} }}", $value)));)*
                $(check(Shown, concat!("v=", $bad), Err((422, concat!("\"message\":\"", $message, "\",\"path\":\"v\""))));)*
            }
        }
    )*};
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Color {
    Red,
    Green,
}

scalar_tests! {
    of_u8 u8 { "0" => 0, "255" => 255, "007" => 7, } "expected a whole number in digits (u8)" {
        "256" "-1" "%2B5" "+5" "" "a" "1.0" "1e1" "0x1" "5+"
    }
    of_i64 i64 { "-9223372036854775808" => i64::MIN, "5" => 5, } "expected a whole number in digits (i64)" {
        "-9223372036854775809" "%2B5" "-" "--5"
    }
    of_u128 u128 { "340282366920938463463374607431768211455" => u128::MAX, } "expected a whole number in digits (u128)" {
        "340282366920938463463374607431768211456"
    }
    of_f64 f64 { "1.5" => 1.5, "-2e3" => -2000.0, "0" => 0.0, "-0.1000000000000000055511" => -0.1, } "expected a decimal number" {
        "0.1000000000000000055511.1" "0.1000000000000000055511x" "inf" "NaN" "-inf" "infinity" "%2B1.5" ".5" "1e400" "" "-" "-.5" "1,5"
    }
    of_f32 f32 { "1.5" => 1.5, } "expected a decimal number" { "1e39" }
    of_bool bool { "true" => true, "false" => false, } "expected true or false" { "True" "1" "on" "" }
    of_char char { "a" => 'a', "%C3%A9" => 'é', "+" => ' ', } "expected one character" { "ab" "" }
    of_string String { "" => "", "a+b%2Bc%26d%3De" => "a b+c&d=e", "a=b" => "a=b", } "the key comes more than once" { "a&v=b" }
    of_unit () { "" => (), } "expected no value" { "a" }
    of_option Option<u8> { "5" => Some(5), } "expected a whole number in digits (u8)" { "" "256" }
    of_color Color { "red" => Color::Red, "green" => Color::Green, } "expected one of red, green" { "Red" "blue" "" }
    of_bytes Bytes { "a%20b" => Bytes(b"a b".to_vec()), } "the key comes more than once" { "a&v=b" }
    of_nested BTreeMap<String, String> { } "a value cannot hold keys of its own" { "" "a" }
}

#[derive(Debug)]
struct Bytes(#[allow(dead_code)] Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Visitor)
    }
}

mod structs {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    pub struct Search {
        q: String,
        page: Option<u32>,
        #[serde(default)]
        tag: Vec<String>,
        #[serde(default, alias = "n")]
        number: BTreeSet<i8>,
        #[serde(default)]
        at: (u8, u8),
    }

    table!(Searches, Search);

    #[test]
    fn keys_come_in_any_order_and_unknown_ones_are_ignored() {
        let value = "Search { q: \"a\", page: Some(2), tag: [], number: {}, at: (0, 0) }";
        check(Searches, "q=a&page=2", Ok(value));
        check(Searches, "page=2&x=1&q=a&x=2&&", Ok(value));
        check(Searches, "pag%65=2&%71=a", Ok(value));
    }

    #[test]
    fn a_repeated_key_is_a_sequence_in_order() {
        let value = "Search { q: \"\", page: None, tag: [\"b\", \"\", \"a\"], number: {1, 2}, at: (0, 0) }";
        check(Searches, "tag=b&n=2&tag&q&n=1&tag=a", Ok(value));
        let value = "Search { q: \"\", page: None, tag: [\"b\"], number: {}, at: (1, 2) }";
        check(Searches, "tag=b&q=&at=1&at=2", Ok(value));
    }

    #[test]
    fn a_repeated_key_of_a_single_value_is_refused_by_name() {
        check(Searches, "q=a&q=a", Err((422, r#""message":"the key comes more than once","path":"q""#)));
        check(Searches, "q=a&page=1&page=2", Err((422, r#""message":"the key comes more than once","path":"page""#)));
    }

    #[test]
    fn the_wrong_value_of_a_sequence_is_counted() {
        let message = r#""message":"expected a whole number in digits (i8)","path":"number[1]""#;
        check(Searches, "q=a&number=1&number=x", Err((422, message)));
        check(Searches, "q=a&at=1", Err((422, r#""message":"wrong number of values","path":"at""#)));
        check(Searches, "q=a&at=1&at=2&at=3", Err((422, r#""message":"wrong number of values","path":"at""#)));
    }

    #[test]
    fn the_first_missing_field_is_named() {
        check(Searches, "page=1", Err((422, r#""message":"missing field","path":"q""#)));
        check(Searches, "", Err((422, r#""message":"missing field","path":"q""#)));
        check(Searches, "n=1&number=2&q=a", Err((422, r#""message":"duplicate field","path":"number""#)));
    }

    #[test]
    fn escapes_are_whole_and_text_is_utf8() {
        check(Searches, "q=%41", Ok("Search { q: \"A\", page: None, tag: [], number: {}, at: (0, 0) }"));
        let escape = r#""message":"a % is not followed by two hexadecimal digits""#;
        for text in ["q=%4", "q=%", "q=%4g", "%", "q=a&x=%zz", "q=a&%4"] {
            check(Searches, text, Err((400, escape)));
        }
        for text in ["q=%c3", "q=%C3%28", "q=a&x=%ff", "q=a&%ff=1", "q=%ed%a0%80"] {
            check(Searches, text, Err((400, r#""message":"a key or a value is not UTF-8""#)));
        }
    }
}

mod strict {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    pub struct Strict {
        a: u8,
    }

    table!(Stricts, Strict);

    #[test]
    fn unknown_keys_can_be_denied_and_are_not_echoed() {
        check(Stricts, "a=1", Ok("Strict { a: 1 }"));
        check(Stricts, "a=1&b=1", Err((422, r#""message":"unknown field""#)));
    }
}

mod flattened {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    pub struct Outer {
        id: u8,
        #[serde(flatten)]
        inner: Inner,
        #[serde(flatten)]
        rest: BTreeMap<String, String>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    pub struct Inner {
        name: String,
    }

    table!(Outers, Outer);

    #[test]
    fn text_can_be_flattened() {
        let value = "Outer { id: 1, inner: Inner { name: \"a b\" }, rest: {\"x\": \"2\", \"y\": \"3\"} }";
        check(Outers, "name=a+b&id=1&y=3&x=2", Ok(value));
        // The names of a flattened type are not known here, so the key is not named.
        check(Outers, "name=a&id=x", Err((422, r#""message":"expected a whole number in digits (u8)""#)));
    }
}

mod maps {
    use super::*;

    table!(Maps, BTreeMap<String, Vec<u8>>);

    #[test]
    fn a_map_takes_any_key_and_does_not_echo_it() {
        check(Maps, "b=2&a=1&b=3", Ok("{\"a\": [1], \"b\": [2, 3]}"));
        check(Maps, "b=x", Err((422, r#""message":"expected a whole number in digits (u8)""#)));
    }
}

mod lists {
    use super::*;

    table!(Lists, Vec<(String, String)>);

    #[test]
    fn a_list_of_pairs_keeps_their_order() {
        check(Lists, "b=2&a=1&b=3&c", Ok(r#"[("b", "2"), ("a", "1"), ("b", "3"), ("c", "")]"#));
        check(Lists, "", Ok("[]"));
    }
}

mod borrowed {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    pub struct Borrowed<'r> {
        #[serde(borrow)]
        cow: Cow<'r, str>,
        text: Option<&'r str>,
    }

    routes! { Both for () { GET "/" => query(query), POST "/" => form(form), } }

    fn is_borrowed(value: &Borrowed<'_>) -> String {
        format!("{value:?} {}", matches!(value.cow, Cow::Borrowed(_)))
    }

    fn query<'r>(_: &mut (), Query(value): Query<Borrowed<'r>>) -> String {
        is_borrowed(&value)
    }

    fn form<'r>(_: &mut (), Form(value): Form<Borrowed<'r>>) -> String {
        is_borrowed(&value)
    }

    #[test]
    fn a_form_lends_any_text_and_a_query_what_needs_no_decoding() {
        let mut client = Client::new(Both, ());
        let plain = "Borrowed { cow: \"a\", text: Some(\"b\") } true";
        assert_eq!(client.get("/?cow=a&text=b").text(), plain);
        assert_eq!(client.post("/", b"cow=a&text=b").text(), plain);
        assert_eq!(client.get("/?cow=%61&text=b").text(), plain.replace("true", "false"));
        assert_eq!(client.post("/", b"cow=%61&te%78t=%62").text(), plain);
    }

    #[test]
    fn a_query_that_a_borrowing_type_cannot_hold_is_the_programs_fault() {
        let answer = Client::new(Both, ()).get("/?cow=a&text=%62");
        let message = "a borrowed string cannot hold a value that had to be decoded";
        let body = format!("{{\"error\":\"invalid_query\",\"message\":\"{message}\",\"path\":\"text\"}}");
        assert_eq!((answer.status(), answer.text()), (500, body.as_str()));
    }
}

mod whole {
    use super::*;

    table!(Units, Option<()>);

    #[test]
    fn a_type_without_keys_takes_anything_well_formed() {
        check(Units, "a=1&a=2", Ok("Some(())"));
        check(Units, "a=%", Err((400, r#""message":"a % is not followed by two hexadecimal digits""#)));
    }

    #[test]
    fn an_optional_query_is_none_without_a_question_mark_and_an_optional_form_without_a_body() {
        routes! { Options for () { GET "/" => query(query), POST "/" => form(form), } }
        fn query(_: &mut (), query: Option<Query<strict::Strict>>) -> String {
            format!("{query:?}")
        }
        fn form(_: &mut (), form: Option<Form<strict::Strict>>) -> String {
            format!("{form:?}")
        }
        let mut client = Client::new(Options, ());
        assert_eq!(client.get("/").text(), "None");
        assert_eq!(client.get("/?a=1").text(), "Some(Query(Strict { a: 1 }))");
        assert_eq!(client.get("/?").status(), 400);
        assert_eq!(client.post("/", b"").text(), "None");
        assert_eq!(client.post("/", b"a=1").text(), "Some(Form(Strict { a: 1 }))");
        assert_eq!(client.post("/", b"a").status(), 422);
    }

    #[test]
    fn a_result_gets_the_refusal_with_its_path() {
        routes! { Results for () { GET "/" => query(query), } }
        fn query(_: &mut (), query: Result<Query<strict::Strict>, Rejection>) -> String {
            query.map_or_else(|rejection| format!("{:?}", rejection.path()), |Query(value)| format!("{value:?}"))
        }
        let mut client = Client::new(Results, ());
        assert_eq!(client.get("/?a=1").text(), "Strict { a: 1 }");
        assert_eq!(client.get("/?a=x").text(), "Some(\"a\")");
    }
}

mod limits {
    use super::*;

    table!(Maps, BTreeMap<String, String>);

    #[test]
    fn there_are_1000_pairs_at_most() {
        let pairs = |count: usize| (0..count).map(|n| format!("{n}=")).collect::<Vec<_>>().join("&");
        let mut client = Client::new(Maps, ());
        for count in [1, 15, 16, 17, 18, 999, 1000] {
            let answer = client.post("/", pairs(count).as_bytes());
            assert_eq!((answer.status(), answer.text().matches(": ").count()), (200, count));
        }
        let body = r#"{"error":"invalid_body","message":"more than 1000 pairs"}"#;
        let answer = client.post("/", pairs(1001).as_bytes());
        assert_eq!((answer.status(), answer.text()), (400, body));
        // Empty ones are none, however many.
        assert_eq!(client.post("/", "&".repeat(5000).as_bytes()).text(), "{}");
    }
}

mod media_types {
    use super::*;

    routes! { Forms for () { POST "/" => count(form), } }

    fn count(_: &mut (), Form(pairs): Form<Vec<(&str, &str)>>) -> String {
        pairs.len().to_string()
    }

    #[test]
    fn another_media_type_is_refused_on_the_head() {
        let mut client = Client::new(Forms, ());
        let mut send = |media_type: &str| {
            client.request(Method::Post, "/").field("Content-Type", media_type).body("a=1&b=2").send()
        };
        assert_eq!(send("application/x-www-form-urlencoded").text(), "2");
        assert_eq!(send("Application/X-WWW-form-urlencoded; charset=UTF-8").text(), "2");
        let answer = send("application/x-www-form-urlencodee");
        let message = "expected application/x-www-form-urlencoded in UTF-8";
        let body = format!("{{\"error\":\"unsupported_media_type\",\"message\":\"{message}\"}}");
        assert_eq!((answer.status(), answer.text()), (415, body.as_str()));
        assert_eq!(answer.field("accept"), Some("application/x-www-form-urlencoded"));
        assert_eq!(send("application/x-www-form-urlencoded; charset=utf-16").status(), 415);
        assert_eq!(send("multipart/form-data; boundary=a").status(), 415);
        assert_eq!(send("").status(), 415);

        let mut link = client.connect();
        link.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\n");
        assert_eq!(link.answers()[0].status(), 415);
    }

    #[test]
    fn a_media_type_that_comes_twice_is_refused_and_none_is_taken() {
        let mut client = Client::new(Forms, ());
        assert_eq!(client.post("/", b"a=1").text(), "1");
        let form = "application/x-www-form-urlencoded";
        let twice = client.request(Method::Post, "/").field("Content-Type", form).field("Content-Type", form);
        assert_eq!(twice.body("a=1").send().status(), 415);
    }
}

mod twin {
    use super::*;

    table!(Lists, Vec<(String, String)>);

    /// The obvious reading: split, then decode byte by byte.
    fn naive(text: &str) -> Option<Vec<(String, String)>> {
        let decode = |text: &str| {
            let mut bytes = Vec::new();
            let mut rest = text.bytes();
            while let Some(byte) = rest.next() {
                bytes.push(match byte {
                    b'+' => b' ',
                    b'%' => {
                        let digits = [rest.next()?, rest.next()?].map(char::from);
                        let digits = digits.map(|digit| digit.to_digit(16));
                        u8::try_from(digits[0]? * 16 + digits[1]?).ok()?
                    }
                    byte => byte,
                });
            }
            String::from_utf8(bytes).ok()
        };
        let pairs = text.split('&').filter(|piece| !piece.is_empty());
        pairs
            .map(|piece| match piece.find('=') {
                Some(at) => Some((decode(&piece[..at])?, decode(&piece[at + 1..])?)),
                None => Some((decode(piece)?, String::new())),
            })
            .collect()
    }

    #[test]
    fn queries_and_forms_are_read_as_the_obvious_twin_reads_them() {
        let mut client = Client::new(Lists, ());
        let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..4000 {
            let mut text = String::new();
            for _ in 0..seed % 17 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                let pieces = ["a", "b", "&", "&", "=", "=", "+", "%", "%41", "%C3%A9", "%c3", "4", "%2", "%26", "%00"];
                text.push_str(pieces[(seed >> 32) as usize % pieces.len()]);
            }
            seed = seed.wrapping_add(1);
            let expected = naive(&text).map(|pairs| format!("{pairs:?}"));
            let answers = [client.get(&format!("/?{text}")), client.post("/", text.as_bytes())];
            for answer in &answers {
                match &expected {
                    Some(pairs) => assert_eq!((answer.status(), answer.text()), (200, pairs.as_str()), "{text:?}"),
                    None => assert_eq!(answer.status(), 400, "{text:?}"),
                }
            }
            if expected.is_some() { taken += 1 } else { refused += 1 }
        }
        assert!(taken > 500 && refused > 500, "{taken} taken, {refused} refused");
    }
}
