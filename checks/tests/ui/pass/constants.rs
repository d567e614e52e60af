//! Constant rows: any constant text, three kinds, any method, any pattern.
#![deny(warnings)]

use sprat::testing::Client;
use sprat::routes;

const PAGE: &str = concat!("<p>", "hello", "</p>");

routes! {
    Api for () {
        GET "/health" => const text("ok"),
        GET "/page" => const html(PAGE),
        GET "/json" => const json(r#"{"ok":true}"#),
        POST "/" => const text(""),
        GET "/app/{*_path}" => const html(include_str!("constants.rs")),
    }
}

fn main() {
    let mut client = Client::new(Api, ());
    for (path, kind, text) in [
        ("/health", "text/plain; charset=utf-8", "ok"),
        ("/page", "text/html; charset=utf-8", "<p>hello</p>"),
        ("/json", "application/json", "{\"ok\":true}"),
        ("/app/any/path", "text/html; charset=utf-8", include_str!("constants.rs")),
    ] {
        let answer = client.get(path);
        assert_eq!((answer.status(), answer.field("content-type"), answer.text()), (200, Some(kind), text));
        let len = text.len().to_string();
        assert_eq!(answer.field("content-length"), Some(len.as_str()));
        assert!(answer.field("date").is_some());
    }
    assert_eq!(client.post("/", b"").text(), "");
}
