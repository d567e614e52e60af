//! The smallest server: `cargo run --release --example hello [ADDRESS]`.

use sprat::{Server, routes};

routes! {
    /// One row.
    Hello for () {
        GET "/" => hello(),
    }
}

fn hello(_: &mut ()) -> &'static str {
    "Hello, World!"
}

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".into());
    let server = Server::bind(address)?.shutdown_on_signals();
    println!("listening on http://{}", server.local_addr()?);
    server.serve(Hello, ())
}
