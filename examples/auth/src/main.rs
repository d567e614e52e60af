//! `auth` serves, `auth add-client ID REDIRECT_URI...` lets an application in, `auth service-key` prints the key of the
//! internal routes. Settings are environment variables; see [`auth::config::Config`].

#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use auth::config::Config;
use auth::guards::ClientId;
use auth::store::Store;
use auth::{Service, log, tokens};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::line(format_args!("auth: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let config = Config::from_env()?;
    match words.as_slice() {
        [] => serve(config),
        ["add-client", id, uri, ..] => {
            if !ClientId::is_well_formed(id) {
                return Err(format!("{id:?} is no id: 1 to 64 letters, digits, '-', '_', '.'").into());
            }
            let uris = &arguments[2..];
            Store::open(&config.database)?.put_client(id, id, uris, tokens::now())?;
            println!("client {id}, who may be sent back to {uri}{}", if uris.len() > 1 { " and others" } else { "" });
            Ok(())
        }
        ["service-key"] => {
            let key = match config.service_key {
                Some(key) => key,
                None => Store::open(&config.database)?.secret("service", &tokens::random_secret())?,
            };
            println!("{key}");
            Ok(())
        }
        _ => Err("usage: auth [add-client ID REDIRECT_URI... | service-key]".into()),
    }
}

fn serve(config: Config) -> Result<(), Box<dyn Error>> {
    let service = Service::start(config)?.end_on_signals();
    // It serves, whether or not somebody reads where.
    let _ = writeln!(io::stdout(), "listening on http://{}", service.local_addr()?);
    Ok(service.run()?)
}
