//! Cross-origin policies, against the rules of `Cors` on two tables that are written down once more as lists.

use sprat::testing::Client;
use sprat::{Cors, Method, routes};

use super::input::{Input, sendable};

const ORIGINS: [&str; 2] = ["https://a.example", "http://[::1]:5173"];
const NAMED: Cors = Cors::of(&ORIGINS).credentials().fields(&["X-A", "X-B"]).expose(&["X-C"]).max_age(7);
const ANY: Cors = Cors::any().expose(&["X-D"]);

/// How many handlers were called.
type Calls = usize;

routes! {
    Api for Calls {
        GET     "/mixed" => handler() [cors = NAMED],
        POST    "/mixed" => handler() [cors = NAMED],
        PUT     "/mixed" => handler() [cors = ANY],
        DELETE  "/mixed" => handler(),
        OPTIONS "/asked" => handler() [cors = NAMED],
        "/inner"         => Inner,
    }
}

routes! {
    Inner for Calls [cors = ANY] {
        GET "/" => handler(),
    }
}

fn handler(calls: &mut Calls) {
    *calls += 1;
}

type Rows = &'static [(&'static str, Method, Option<Cors>)];

const API: Rows = &[
    ("/mixed", Method::Get, Some(NAMED)),
    ("/mixed", Method::Head, Some(NAMED)),
    ("/mixed", Method::Post, Some(NAMED)),
    ("/mixed", Method::Put, Some(ANY)),
    ("/mixed", Method::Delete, None),
    ("/asked", Method::Options, Some(NAMED)),
    ("/inner/", Method::Get, Some(ANY)),
    ("/inner/", Method::Head, Some(ANY)),
];
const INNER: Rows = &[("/", Method::Get, Some(ANY)), ("/", Method::Head, Some(ANY))];

/// Which pages may read an answer is what the policy of its row says, byte for byte, and nothing is said where there is
/// none; a preflight calls no handler, and is told the methods that are under one policy.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let is_inner = input.below(4) == 0;
    let path = input.pick(if is_inner { &["/", "/none"] } else { &["/mixed", "/asked", "/inner/", "/none"][..] });
    let method = input.pick(&[Method::Options, Method::Get, Method::Post, Method::Delete, Method::Patch]);
    let wanted = sendable(input.bytes());
    let origins: Vec<_> = (0..input.below(3)).map(|_| sendable(input.bytes())).collect();

    let mut client = if is_inner { Client::new(Inner, 0) } else { Client::new(Api, 0) };
    let request = client.request(method, path);
    let request = if wanted.is_empty() { request } else { request.field("Access-Control-Request-Method", &wanted) };
    let answer = origins.iter().fold(request, |request, origin| request.field("Origin", origin)).send();
    let is_ours = |name: &str| name == "vary" || name.starts_with("access-control-");
    let lines = answer.fields().iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
    let lines: Vec<_> = lines.filter(|(name, _)| is_ours(name)).collect();

    let (rows, outer) = if is_inner { (INNER, Some(ANY)) } else { (API, None) };
    let is_preflight = method == Method::Options && !origins.is_empty() && !wanted.is_empty();
    let asked_for = if is_preflight { Method::from_token(trimmed(&wanted)) } else { method };
    let mut of_path = rows.iter().filter(|row| row.0 == path);
    let is_known = of_path.clone().next().is_some();
    let row = of_path.clone().find(|row| row.1 == asked_for).or(of_path.clone().next());
    let policy = row.map_or(outer, |row| row.2);
    let methods: Vec<_> = of_path.clone().filter(|row| row.2 == policy).map(|row| row.1.as_str()).collect();
    assert_eq!(lines, expected(policy, &origins, (is_preflight && is_known).then_some(&methods)));

    let is_called = !is_preflight && of_path.any(|row| row.1 == method);
    assert_eq!(*client.state(), usize::from(is_called));
    let status = match method {
        _ if !is_known => 404,
        _ if is_called || method == Method::Options => 204,
        _ => 405,
    };
    assert_eq!(answer.status(), status);
}

/// The field lines of an answer under this policy; of one to a preflight if there are methods.
fn expected(policy: Option<Cors>, origins: &[Vec<u8>], preflight: Option<&Vec<&str>>) -> Vec<(String, String)> {
    let origin = match origins {
        [one] => ORIGINS.into_iter().find(|origin| origin.as_bytes() == trimmed(one)),
        _ => None,
    };
    let methods = preflight.map(|methods| methods.join(", "));
    let lines = match (policy, origin) {
        (None, _) => vec![],
        (Some(ANY), _) => match methods {
            Some(methods) => vec![("allow-origin", "*".to_owned()), ("allow-methods", methods)],
            None => vec![("allow-origin", "*".to_owned()), ("expose-headers", "X-D".to_owned())],
        },
        (Some(_), None) => vec![("vary", "Origin".to_owned())],
        (Some(_), Some(origin)) => {
            let always = [("vary", "Origin"), ("allow-origin", origin), ("allow-credentials", "true")];
            let mut lines: Vec<_> = always.map(|(name, value)| (name, value.to_owned())).into();
            match methods {
                Some(methods) => lines.extend([
                    ("allow-methods", methods),
                    ("allow-headers", "X-A, X-B".to_owned()),
                    ("max-age", "7".to_owned()),
                ]),
                None => lines.push(("expose-headers", "X-C".to_owned())),
            }
            lines
        }
    };
    let prefixed = |name: &str| if name == "vary" { name.to_owned() } else { format!("access-control-{name}") };
    lines.into_iter().map(|(name, value)| (prefixed(name), value)).collect()
}

fn trimmed(value: &[u8]) -> &[u8] {
    value.trim_ascii()
}
