use sprat::{Body, routes};
struct App;
fn echo(_: &mut App, body: Body<'_>, more: Vec<u8>) -> String { format!("{} {}", body.len(), more.len()) }
routes! {
    Api for App {
        POST "/echo" => echo(body, more),
    }
}
fn main() {}
