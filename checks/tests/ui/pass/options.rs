//! Options on a table, a group and each kind of row, under `#![deny(warnings)]`.
#![deny(warnings)]

use sprat::{Cors, Exchange, Rejection, Respond, Status, routes};

struct App {
    errors: u32,
    answers: u32,
}

const PAGES: Cors = Cors::of(&["https://a.example"]).credentials().fields(&["Authorization"]);

impl App {
    fn count(&mut self, error: Rejection) -> impl Respond {
        self.errors += 1;
        (error.status(), &*error.message().to_owned().leak())
    }
}

fn count(app: &mut App, _: &Exchange<'_>) {
    app.answers += 1;
}

fn json(_: &mut App, error: Rejection) -> Rejection {
    error.into_json()
}

fn hello(_: &mut App) -> &'static str {
    "hello"
}

fn user(_: &mut App, id: u64) -> String {
    id.to_string()
}

fn echo<'r>(_: &mut App, body: &'r [u8]) -> &'r [u8] {
    body
}

routes! {
    Api for App [errors = App::count, cors = PAGES, body_max = 4, observe = count] {
        GET "/" => hello() [],
        GET "/users/{id}" => user(id) [errors = json, cors = Cors::any()],
        GET "/closure/{id}" => user(id) [errors = |_: &mut App, error: Rejection| error.status()],
        GET "/const" => const text("x") [cors = Cors::any(),],
        GET "/told" => hello() [observe = |app: &mut App, exchange| app.answers += exchange.answer_len() as u32],
        POST "/echo" => echo(body),
        POST "/more" => echo(body) [body_max = 5],
        "/group" => Group [errors = json],
        "" => Joined [],
    }
}

routes! { Group for App { GET "/{id}" => user(id), } }
routes! { Joined for App [] { GET "/joined" => hello(), } }

fn main() {
    let mut client = sprat::testing::Client::new(Api, App { errors: 0, answers: 0 });
    assert_eq!(client.get("/joined").text(), "hello");
    assert_eq!(client.get("/none").status(), 404);
    assert_eq!(client.get("/closure/x").text(), Status::BAD_REQUEST.reason());
    assert_eq!(client.get("/const").field("access-control-allow-origin"), Some("*"));
    assert!(client.get("/group/x").text().starts_with("{\"error\":\"bad_request\""));
    assert_eq!((client.post("/echo", b"1234").status(), client.post("/echo", b"12345").status()), (200, 413));
    assert_eq!((client.post("/more", b"12345").status(), client.post("/more", b"123456").status()), (200, 413));
    assert_eq!((client.state().errors, client.state().answers), (3, 9));
    client.get("/told");
    assert!(client.state().answers > 100);
}
