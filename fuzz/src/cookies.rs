//! Cookie fields, against splitting.

use sprat::testing::Client;
use sprat::{Cookies, Method, SetCookie, routes};

use super::input::{Input, sendable};

type Pairs = Vec<(String, String)>;

routes! {
    Api for Pairs {
        GET "/" => list(cookies),
    }
}

fn list(pairs: &mut Pairs, cookies: Cookies<'_>) {
    pairs.extend(cookies.iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
    for (name, _) in cookies.iter() {
        let first = pairs.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
        assert_eq!(cookies.get(name), first);
    }
}

/// Any Cookie fields are read as the pairs between their `;`, and a cookie that can be set comes back as it was.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let lines: Vec<Vec<u8>> = (0..input.below(4)).map(|_| sendable(input.bytes())).collect();
    let expected: Pairs = lines.iter().flat_map(|line| naive(line)).collect();
    assert_eq!(read(&lines), expected);

    let (name, value) = (input.text(), input.text());
    let set = SetCookie::new(&name, &value);
    if set.fault().is_none() {
        let pair = set.to_string();
        assert_eq!(pair, format!("{name}={value}"));
        assert_eq!(read(&[pair.into_bytes()]), [(name, value)]);
    }
}

fn read(lines: &[Vec<u8>]) -> Pairs {
    let mut client = Client::new(Api, Pairs::new());
    let request = client.request(Method::Get, "/");
    let request = lines.iter().fold(request, |request, line| request.field("Cookie", line));
    assert_eq!(request.send().status(), 204);
    std::mem::take(client.state())
}

fn naive(line: &[u8]) -> Pairs {
    let texts = line.split(|&b| b == b';').filter_map(|pair| std::str::from_utf8(pair).ok());
    let texts = texts.map(|text| text.trim_matches([' ', '\t'])).filter(|text| !text.is_empty());
    let pairs = texts.map(|text| match text.find('=') {
        Some(at) => (text[..at].trim_matches([' ', '\t']), text[at + 1..].trim_matches([' ', '\t'])),
        None => ("", text),
    });
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
