//! Forms, which are decoded in the receive buffer: the same language as queries.

use std::borrow::Cow;

use serde::Deserialize;
use sprat::internals::read_form;

use super::input::Input;
use super::query::{encode, naive};

/// Any bytes are read as the naive reader reads them, though each text lies where its escapes were, borrowed; and any
/// pairs, encoded, come back, in order and by key.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let pairs: Vec<_> = (0..input.below(4)).map(|_| (input.text(), input.text())).collect();
    let mut form = encode(&pairs).into_bytes();
    assert_eq!(read_form::<Vec<(String, String)>>(&mut form), Some(pairs));

    let bytes = input.rest();
    let mut form = bytes.to_vec();
    let ours = read_form::<Vec<(&str, &str)>>(&mut form);
    let naive = naive(bytes);
    let borrowed = |pairs: &[(Cow<'static, str>, Cow<'static, str>)]| {
        pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect::<Vec<_>>()
    };
    let owned = |pairs: Vec<(&str, &str)>| pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    assert_eq!(ours.map(owned), naive.as_deref().map(borrowed));

    check_typed(bytes, naive.as_deref());
    let mut form = bytes.to_vec();
    let ours = read_form::<Keys<'_>>(&mut form);
    let values = |key: &str| -> Option<Vec<String>> {
        let pairs = naive.as_ref()?;
        Some(pairs.iter().filter(|(k, _)| k == key).map(|(_, value)| value.to_string()).collect())
    };
    let expected = values("a").zip(values("b")).filter(|(_, once)| once.len() <= 1);
    assert_eq!(
        ours.map(|keys| (keys.a.iter().map(|&a| a.to_owned()).collect(), keys.b.map(str::to_owned))),
        expected.map(|(all, once)| (all, once.into_iter().next()))
    );
}

/// Reads a type that knows what it wants. Every key may come once, and its value has one spelling.
fn check_typed(form: &[u8], naive: Option<&[(Cow<'static, str>, Cow<'static, str>)]>) {
    let mut form = form.to_vec();
    let ours = read_form::<Typed>(&mut form);
    let once = |key: &str| -> Option<Option<&str>> {
        let mut values = naive?.iter().filter(|(k, _)| k == key).map(|(_, value)| &**value);
        let value = values.next();
        values.next().is_none().then_some(value)
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let expected = || {
        Some(Typed {
            n: once("n")?.map(|n| n.parse().ok().filter(|_| is_number(n)).ok_or(())).transpose().ok()?,
            i: once("i")?
                .map(|i| i.parse().ok().filter(|_| is_number(i.strip_prefix('-').unwrap_or(i))).ok_or(()))
                .transpose()
                .ok()?,
            t: match once("t")? {
                None => None,
                Some("true") => Some(true),
                Some("false") => Some(false),
                Some(_) => return None,
            },
            c: once("c")?.map(|c| c.parse().map_err(drop)).transpose().ok()?,
            e: match once("e")? {
                None => None,
                Some("red") => Some(Color::Red),
                Some("blue") => Some(Color::Blue),
                Some(_) => return None,
            },
        })
    };
    assert_eq!(ours, expected());
}

#[derive(Debug, PartialEq, Deserialize)]
struct Typed {
    n: Option<u8>,
    i: Option<i16>,
    t: Option<bool>,
    c: Option<char>,
    e: Option<Color>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Color {
    Red,
    Blue,
}

#[derive(Deserialize)]
struct Keys<'r> {
    #[serde(borrow, default)]
    a: Vec<&'r str>,
    b: Option<&'r str>,
}
