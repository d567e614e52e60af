//! The server that the conformance corpus is run against: `cargo run --release --example conformance [ADDRESS]`.

use sprat::{Body, Limits, Server, routes};

routes! {
    /// What the corpus asks for.
    Conformance for () {
        GET "/" => hello(),
        GET "/echo-path/{id}" => echo_path(id),
        POST "/echo" => echo(body),
    }
}

fn hello(_: &mut ()) -> &'static str {
    "hello"
}

fn echo_path(_: &mut (), id: u64) -> String {
    id.to_string()
}

fn echo<'r>(_: &mut (), body: Body<'r>) -> Body<'r> {
    body
}

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".into());
    let limits = Limits { head_bytes_max: 8 << 10, fields_max: 64, body_bytes_max: 1 << 20, ..Limits::DEFAULT };
    let server = Server::bind(address)?.limits(limits).shutdown_on_signals();
    println!("listening on http://{}", server.local_addr()?);
    server.serve(Conformance, ())
}
