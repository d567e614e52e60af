//! `Json`, as an argument and as an answer. The language itself is tested beside the parser.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use sprat::testing::Client;
use sprat::{Json, Method, Rejection, Respond, Status, routes};

#[derive(Debug, Deserialize)]
struct Order<'r> {
    #[allow(dead_code)]
    name: &'r str,
    #[serde(borrow)]
    items: Vec<Item<'r>>,
}

#[derive(Debug, Deserialize)]
struct Item<'r> {
    #[allow(dead_code)]
    name: &'r str,
    price: Price,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "i64")]
struct Price(i64);

impl TryFrom<i64> for Price {
    type Error = String;
    fn try_from(cents: i64) -> Result<Price, String> {
        if cents < 0 { Err(format!("{cents} is no price")) } else { Ok(Price(cents)) }
    }
}

routes! {
    Orders for () {
        POST "/plain" => plain(order),
        POST "/option" => option(order),
        POST "/result" => result(order),
    }
}

fn plain(_: &mut (), Json(order): Json<Order<'_>>) -> String {
    order.items.iter().map(|item| item.price.0).sum::<i64>().to_string()
}

fn option(app: &mut (), order: Option<Json<Order<'_>>>) -> String {
    order.map_or_else(|| "none".into(), |order| plain(app, order))
}

fn result(app: &mut (), order: Result<Json<Order<'_>>, Rejection>) -> String {
    match order {
        Ok(order) => plain(app, order),
        Err(r) => format!("{} {} {:?} {:?}", r.status().code(), r.message(), r.path(), r.detail()),
    }
}

#[track_caller]
fn check(target: &str, body: &str, status: u16, text: &str) {
    let answer = Client::new(Orders, ()).post(target, body.as_bytes());
    assert_eq!((answer.status(), answer.text()), (status, text), "{target} {body}");
}

const GOOD: &str = r#"{"name":"a","items":[{"name":"b","price":2},{"name":"c","price":3}]}"#;

#[test]
fn a_refusal_names_the_place_and_does_not_quote_the_body() {
    check("/plain", GOOD, 200, "5");
    check(
        "/plain",
        &GOOD.replace('3', "\"3\""),
        422,
        r#"{"error":"invalid_body","message":"expected an integer of 64 bits","path":"items[1].price"}"#,
    );
    check(
        "/plain",
        &GOOD.replace('3', "-3"),
        422,
        r#"{"error":"invalid_body","message":"invalid value","path":"items[1].price"}"#,
    );
    check(
        "/plain",
        &GOOD.replace("price\":3", "name\":3"),
        400,
        r#"{"error":"invalid_body","message":"duplicate key","path":"items[1]"}"#,
    );
}

#[test]
fn an_optional_body_is_none_only_when_there_is_none() {
    check("/option", "", 200, "none");
    check("/option", GOOD, 200, "5");
    check("/option", " ", 400, r#"{"error":"invalid_body","message":"empty body"}"#);
    check("/option", "null", 422, r#"{"error":"invalid_body","message":"expected an object"}"#);
    let mut client = Client::new(Orders, ());
    let mut link = client.connect();
    link.send(b"POST /option HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    link.send(b"POST /option HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!([link.answers()[0].text(), link.answers()[1].text()], ["none", "none"]);
    drop(link);
    let text = client.request(Method::Post, "/option").field("Content-Type", "text/plain").body(GOOD).send();
    assert_eq!(text.status(), 415);
}

#[test]
fn a_result_gets_every_refusal_and_its_detail() {
    check("/result", GOOD, 200, "5");
    check("/result", "", 200, "400 empty body None None");
    check(
        "/result",
        &GOOD.replace('3', "-3"),
        200,
        "422 invalid value Some(\"items[1].price\") Some(\"-3 is no price\")",
    );
    let mut client = Client::new(Orders, ());
    let text = client.request(Method::Post, "/result").field("Content-Type", "text/plain").body(GOOD).send();
    assert_eq!(text.text(), "415 expected application/json in UTF-8 None None");
}

/// Fails, after something has been written.
struct Broken;

impl Serialize for Broken {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("broken"))
    }
}

routes! {
    Answers for () {
        GET "/value" => value(),
        GET "/created" => created(),
        GET "/typed" => typed(),
        GET "/broken" => broken(),
        GET "/keys" => keys(),
        GET "/large" => large(),
    }
}

fn value(_: &mut ()) -> Json<(u8, &'static str, Option<()>)> {
    Json((1, "a\"\u{e9}\n", None))
}

fn created(_: &mut ()) -> impl Respond {
    (Status::CREATED, Json([1]).field("Location", "/things/1"))
}

fn typed(_: &mut ()) -> impl Respond {
    Json([1]).field("Content-Type", "application/problem+json")
}

fn broken(_: &mut ()) -> impl Respond {
    Json(("x".repeat(10_000), Broken)).field("X-Leak", "1")
}

fn keys(_: &mut ()) -> Json<BTreeMap<Vec<u8>, u8>> {
    Json(BTreeMap::from([(vec![1], 1)]))
}

fn large(_: &mut ()) -> Json<Vec<String>> {
    Json(vec!["x".repeat(1000); 1000])
}

#[test]
fn an_answer_is_json_with_its_length() {
    let mut client = Client::new(Answers, ());
    let answer = client.get("/value");
    assert_eq!((answer.status(), answer.text()), (200, "[1,\"a\\\"\u{e9}\\n\",null]"));
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(answer.field("content-length"), Some("18"));
    let created = client.get("/created");
    assert_eq!((created.status(), created.text(), created.field("location")), (201, "[1]", Some("/things/1")));
    let typed = client.get("/typed");
    assert_eq!(typed.fields().iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type")).count(), 1);
    assert_eq!(typed.field("content-type"), Some("application/problem+json"));
    assert_eq!(client.get("/large").body().len(), 1000 * 1003 + 1);
}

#[test]
fn an_answer_to_head_has_the_length_and_no_content() {
    let mut client = Client::new(Answers, ());
    let answer = client.request(Method::Head, "/value").send();
    assert_eq!((answer.field("content-length"), answer.body()), (Some("18"), &b""[..]));
}

#[test]
fn a_value_that_cannot_be_written_is_a_clean_500() {
    let mut client = Client::new(Answers, ());
    let mut link = client.connect();
    link.send(&b"GET /value HTTP/1.1\r\nHost: x\r\n\r\n"[..]);
    for target in ["/broken", "/keys"] {
        link.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
    }
    link.send(&b"GET /value HTTP/1.1\r\nHost: x\r\n\r\n"[..]);
    let answers = link.answers();
    assert_eq!(answers.iter().map(|answer| answer.status()).collect::<Vec<_>>(), [200, 500, 500, 200]);
    assert_eq!((answers[1].field("x-leak"), answers[1].text()), (None, "the server failed to answer this request"));
    assert_eq!(answers[0], answers[3]);
}

#[derive(Deserialize)]
struct Sample {
    of: f64,
}

fn sampled(_: &mut (), Json(sample): Json<Sample>) -> String {
    sample.of.to_string()
}

routes! { Samples for () { POST "/" => sampled(sample), } }

#[test]
fn a_body_of_numbers_that_take_long_to_read_is_refused_even_where_nobody_wants_them() {
    let mut client = Client::new(Samples, ());
    // The middle between two floats, and a little less.
    let mut send = |count: usize, number: &str| {
        let unwanted = vec![number; count].join(",");
        client.post("/", format!(r#"{{"of":{number},"unwanted":[{unwanted}]}}"#).as_bytes())
    };
    assert_eq!(send(15, "0.500000000000000055511151231257827").status(), 200);
    let answer = send(16, "0.500000000000000055511151231257827");
    assert_eq!(answer.status(), 400);
    assert!(answer.text().contains("too many numbers of more than 19 digits"), "{}", answer.text());
    // As long, and told apart by their first digits.
    assert_eq!(send(1000, "0.500000000000000075511151231257827").text(), "0.5000000000000001");
}
