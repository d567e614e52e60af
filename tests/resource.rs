//! The example `resource`, driven in process and with curl.
#![cfg(feature = "json")]

#[allow(dead_code)]
#[path = "../examples/resource.rs"]
mod resource;

use std::process::Command;

use resource::{Api, App};
use sprat::Method;
use sprat::testing::{Answer, Client};

const TARGET: &str = "/api/v1/resource/42";
const ALICE: &str = r#"{"name":"alice","active":true}"#;
const CREATED: &str = r#"{"status":"success","id":42,"data":{"name":"alice","active":true}}"#;

fn client() -> Client<App> {
    Client::new(Api, App { created: 0 })
}

#[track_caller]
fn post(target: &str, media_type: Option<&str>, body: &str) -> Answer {
    let mut client = client();
    let request = client.request(Method::Post, target).field("Authorization", "Bearer tok").body(body);
    match media_type {
        Some(media_type) => request.field("Content-Type", media_type).send(),
        None => request.send(),
    }
}

#[track_caller]
fn refuses(target: &str, body: &str, status: u16, text: &str) {
    let answer = post(target, Some("application/json"), body);
    assert_eq!((answer.status(), answer.text()), (status, text), "{target} {body}");
}

/// A request as it goes over the wire, with more field lines and a body in its framing.
fn wire(lines: &str, body: &str) -> Vec<u8> {
    format!("POST {TARGET} HTTP/1.1\r\nHost: x\r\n{lines}\r\n{body}").into_bytes()
}

#[test]
fn a_resource_is_created_and_echoed() {
    let answer = post(TARGET, Some("application/json"), ALICE);
    assert_eq!((answer.status(), answer.text()), (200, CREATED));
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(answer.field("content-length"), Some("66"));
    let mut client = client();
    let request = client.request(Method::Post, TARGET).field("Authorization", "Bearer tok").body(ALICE);
    request.send();
    assert_eq!(client.state().created, 1);
}

#[test]
fn keys_come_in_any_order_and_strings_are_unescaped_in_place() {
    let answer = post(TARGET, None, " { \"active\" : false, \"x\": [1, {}], \"name\": \"\\u0061\\n\\ud83d\\ude00\" } ");
    assert_eq!(
        answer.text(),
        "{\"status\":\"success\",\"id\":42,\"data\":{\"name\":\"a\\n\u{1f600}\",\"active\":false}}"
    );
}

#[test]
fn the_same_bytes_get_the_same_answer_however_they_come() {
    let length = wire(&format!("Authorization: Bearer tok\r\nContent-Length: {}\r\n", ALICE.len()), ALICE);
    let chunks = format!("5\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n", &ALICE[..5], ALICE.len() - 5, &ALICE[5..]);
    let chunked = wire("authorization: BEARER  tok\r\nTransfer-Encoding: chunked\r\n", &chunks);
    for bytes in [length, chunked] {
        for cut in 0..bytes.len() {
            let mut client = client();
            let mut link = client.connect();
            link.send_split(&bytes, &[cut]);
            assert_eq!(link.answers().len(), 1);
            assert_eq!(link.answers()[0].text(), CREATED);
            assert_eq!(link.state().created, 1);
        }
        let mut client = client();
        let mut link = client.connect();
        link.send_bytewise(&bytes.repeat(3));
        assert_eq!(link.answers().iter().map(Answer::text).collect::<Vec<_>>(), [CREATED; 3]);
    }
}

#[test]
fn without_a_token_nothing_is_read_and_the_answer_is_401() {
    let length = format!("Content-Length: {}\r\n", ALICE.len());
    for (line, status) in [
        ("Authorization: bearer tok\r\n", 200),
        ("Authorization: BEARER  tok\r\n", 200),
        ("", 401),
        ("Authorization: Bearer\r\n", 401),
        ("Authorization: Basic tok\r\n", 401),
        ("Authorization: Bearer tok tok\r\n", 401),
    ] {
        let mut client = client();
        let mut link = client.connect();
        link.send(&wire(&format!("{line}{length}"), ""));
        assert_eq!(link.answers().len(), usize::from(status == 401), "{line}");
        link.send(ALICE.as_bytes());
        let answer = &link.answers()[0];
        assert_eq!(answer.status(), status, "{line}");
        if status == 401 {
            assert_eq!(answer.text(), r#"{"error":"Unauthorized"}"#);
            assert_eq!(answer.field("www-authenticate"), Some("Bearer"));
            assert_eq!(answer.field("content-type"), Some("application/json"));
        }
    }
}

#[test]
fn media_types_are_taken_as_senders_write_them() {
    let unsupported = r#"{"error":"unsupported_media_type","message":"expected application/json in UTF-8"}"#;
    for (media_type, status) in [
        (Some("application/json"), 200),
        (Some("Application/JSON;charset=UTF-8"), 200),
        (Some("application/json; utf-8"), 200),
        (Some("application/json;"), 200),
        (Some("application/vnd.api+json"), 200),
        (None, 200),
        (Some("text/plain"), 415),
        (Some("application/json; charset=utf-16"), 415),
        (Some("application/x-www-form-urlencoded"), 415),
    ] {
        let answer = post(TARGET, media_type, ALICE);
        assert_eq!(answer.status(), status, "{media_type:?}");
        assert_eq!(answer.text(), if status == 200 { CREATED } else { unsupported });
        assert_eq!(answer.field("accept"), (status == 415).then_some("application/json"));
    }
}

#[test]
fn a_wrong_media_type_an_empty_body_and_a_large_one_are_refused_on_the_head_before_100_continue() {
    let mut client = client();
    for (lines, status) in [
        ("Content-Type: text/plain\r\nContent-Length: 9\r\nExpect: 100-continue\r\n", 415),
        ("Content-Length: 0\r\n", 400),
        ("", 400),
        ("Content-Length: 65537\r\nExpect: 100-continue\r\n", 413),
    ] {
        let mut link = client.connect();
        link.send(&wire(&format!("Authorization: Bearer tok\r\n{lines}"), ""));
        assert_eq!(link.answers().iter().map(Answer::status).collect::<Vec<_>>(), [status], "{lines}");
    }
    let mut link = client.connect();
    link.send(&wire("Authorization: Bearer tok\r\nContent-Length: 65536\r\nExpect: 100-continue\r\n", ""));
    assert_eq!(link.received(), b"HTTP/1.1 100 Continue\r\n\r\n");
}

#[test]
fn what_is_no_json_is_a_400() {
    refuses(TARGET, "", 400, r#"{"error":"invalid_body","message":"empty body"}"#);
    refuses(TARGET, " ", 400, r#"{"error":"invalid_body","message":"empty body"}"#);
    for (body, place) in [
        (&ALICE[1..], " at byte 0"),
        (&ALICE[..29], " at byte 25"),
        (r#"{"name":"alice","active":True}"#, " at byte 25"),
        ("\u{feff}{}", " at byte 0"),
        (r#"{"name":"al\xice"}"#, ": invalid escape"),
    ] {
        refuses(TARGET, body, 400, &format!(r#"{{"error":"invalid_body","message":"malformed json{place}"}}"#));
    }
    let mut client = client();
    let mut link = client.connect();
    link.send(&wire("Authorization: Bearer tok\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"));
    assert_eq!(link.answers()[0].text(), r#"{"error":"invalid_body","message":"empty body"}"#);
}

#[test]
fn what_is_no_resource_is_a_422_that_names_the_field() {
    refuses(
        TARGET,
        r#"{"name":"alice","active":"true"}"#,
        422,
        r#"{"error":"invalid_body","message":"expected a boolean","path":"active"}"#,
    );
    refuses(TARGET, r#"{"active":true}"#, 422, r#"{"error":"invalid_body","message":"missing field","path":"name"}"#);
    refuses(TARGET, "{}", 422, r#"{"error":"invalid_body","message":"missing field","path":"name"}"#);
    let null = r#"{"name":null,"active":true}"#;
    refuses(TARGET, null, 422, r#"{"error":"invalid_body","message":"expected a string","path":"name"}"#);
}

#[test]
fn the_id_is_a_number_in_digits() {
    let largest = post("/api/v1/resource/18446744073709551615", None, ALICE);
    assert_eq!(largest.text(), CREATED.replace("42", "18446744073709551615"));
    for id in ["18446744073709551616", "+5", "-5", "4a", "0x2", "4%202"] {
        let answer = post(&format!("/api/v1/resource/{id}"), None, ALICE);
        assert_eq!(answer.status(), 400, "{id}");
        assert!(answer.text().contains("id"), "{}", answer.text());
    }
    assert_eq!(post("/api/v1/resource/", None, ALICE).status(), 404);
    assert_eq!(post("/api/v1/resource/42/", None, ALICE).status(), 404);
}

#[test]
fn greeting_health_and_version_need_no_token() {
    let mut client = client();
    assert_eq!(client.get("/").text(), "Hello, World!");
    let health = client.get("/health");
    assert_eq!((health.text(), health.field("content-type")), ("ok", Some("text/plain; charset=utf-8")));
    let version = client.get("/version");
    assert_eq!(version.field("content-type"), Some("application/json"));
    assert!(version.text().starts_with(r#"{"name":"sprat","version":""#), "{}", version.text());
}

#[test]
fn another_method_is_refused_with_those_that_are_allowed() {
    let wrong = client().get(TARGET);
    assert_eq!((wrong.status(), wrong.field("allow")), (405, Some("POST, OPTIONS")));
}

#[test]
fn head_has_the_length_that_get_would_have() {
    let mut client = client();
    let version = client.get("/version");
    let head = client.request(Method::Head, "/version").send();
    let length = version.text().len().to_string();
    assert_eq!((head.status(), head.field("content-length"), head.body()), (200, Some(length.as_str()), &b""[..]));
}

#[test]
fn curl_gets_along_with_it() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("curl is not installed: nothing was tested");
        return;
    }
    let server = sprat::Server::bind("127.0.0.1:0").expect("a free port");
    let base = format!("http://{}", server.local_addr().expect("an address"));
    let handle = server.handle();
    let thread = std::thread::spawn(move || server.serve(Api, App { created: 0 }));
    let curl = |target: &str, arguments: &[&str]| {
        let format = "|%{http_code} %{content_type}";
        let mut command = Command::new("curl");
        command.args(["-sS", "--max-time", "10", "-w", format]).args(arguments).arg(format!("{base}{target}"));
        let output = command.output().expect("curl runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("the answer is text")
    };
    let (json, token) = ("Content-Type: application/json", "Authorization: Bearer tok");
    assert_eq!(curl("/health", &[]), "ok|200 text/plain; charset=utf-8");
    assert_eq!(curl(TARGET, &["-d", ALICE, "-H", json, "-H", token]), format!("{CREATED}|200 application/json"));
    let chunked = ["-d", ALICE, "-H", json, "-H", token, "-H", "Transfer-Encoding: chunked"];
    assert_eq!(curl(TARGET, &chunked), format!("{CREATED}|200 application/json"));
    let expecting = ["-d", ALICE, "-H", json, "-H", token, "-H", "Expect: 100-continue"];
    assert_eq!(curl(TARGET, &expecting), format!("{CREATED}|200 application/json"));
    let unauthorized = "{\"error\":\"Unauthorized\"}|401 application/json";
    assert_eq!(curl(TARGET, &["-d", ALICE, "-H", json]), unauthorized);
    // curl calls it a form, so it is none.
    assert!(curl(TARGET, &["-d", ALICE, "-H", token]).ends_with("|415 application/json"));
    assert!(curl(TARGET, &[]).ends_with("|405 text/plain; charset=utf-8"));
    assert!(curl("/version", &[]).contains("\"created\":3"));
    handle.shutdown();
    thread.join().expect("the server ends").expect("the server ends well");
}
