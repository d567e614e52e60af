//! A small HTTP/1.1 server framework for one CPU core: one event loop, routes checked at compile time, no async
//! runtime, no `unsafe` of its own.
//!
//! ```no_run
//! use sprat::{Server, routes};
//!
//! struct App { visits: u64 }
//!
//! routes! {
//!     Api for App {
//!         GET "/"           => hello(),
//!         GET "/users/{id}" => user(id),
//!     }
//! }
//!
//! fn hello(app: &mut App) -> String { app.visits += 1; format!("visit {}", app.visits) }
//! fn user(_: &mut App, id: u64) -> String { format!("user {id}") }
//!
//! fn main() -> std::io::Result<()> {
//!     Server::bind("127.0.0.1:3000")?.shutdown_on_signals().serve(Api, App { visits: 0 })
//! }
//! ```
//!
//! - Rows, patterns, options, and errors in your own words: [`routes!`].
//! - What a handler takes: parameters of the path ([`FromParam`]), and whatever is made from a request
//!   ([`FromRequest`]): `Json`, `Query`, `Form`, [`Header`], [`Cookies`], [`Bearer`], [`Basic`], [`Limited`], and guards
//!   of your own.
//! - What a handler returns: [`Respond`]. What refuses a request: [`Rejection`].
//! - Slow work, and answers that come later or in parts: [`Later`], [`Stream`], [`EventStream`], [`Broadcast`].
//! - Logs and counters of answers: [`Exchange`]. The server inside a loop of your own: [`Running`]; its state for other
//!   threads: [`Caller`].
//! - Listeners, shutdown, workers and events: [`Server`]. Bounds on sizes, counts, rates and times: [`Limits`].
//! - Tests without sockets: [`testing`]. How the crate is built: [`architecture`].
//!
//! A handler runs on the loop's thread: while one computes, nobody else is served. There is no TLS, no HTTP/2, no
//! WebSocket and no compression; put a proxy in front for those.
//!
//! # Features
//!
//! - `json`, on by default: `Json`, `Query` and `Form`, with serde and simd-json.
//! - `listenfd`: `Server::from_env`, for listeners opened by systemd or another parent.
//! - `internals`: opens internals to benches and fuzz targets; no stability is promised.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[macro_use]
mod planted;
mod macros;
#[cfg(test)]
mod tests;

mod caught;
mod date;
mod limits;
mod method;
mod reject;
mod status;

mod chunked;
mod framing;
mod head;
mod output;
mod proxy;
mod target;

mod connection;
mod held;

mod cors;
mod exchange;
mod extract;
#[cfg(feature = "json")]
mod json;
mod later;
mod rate;
mod rejection;
mod request;
mod response;
mod route;
mod server;
mod stream;

#[cfg(feature = "internals")]
#[doc(hidden)]
#[allow(missing_docs)]
pub mod internals;
pub mod testing;

#[cfg(any(test, feature = "internals"))]
mod explore;

// The program in the README is built as a test; the crate has a front page of its own, since links and charts of the
// README do not work there.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// How the crate is built, for those who want to change it or to know what they depend on.
#[cfg(doc)]
#[doc = include_str!("../ARCHITECTURE.md")]
pub mod architecture {}

pub use connection::CloseReason;
pub use cors::Cors;
pub use exchange::Exchange;
pub use extract::{
    Basic, Bearer, Cookies, FieldName, Header, Optional, Realm, Restricted, SameSite, SetCookie, constant_time_eq,
    fields,
};
#[cfg(feature = "json")]
pub use extract::{Form, Json, Query};
pub use framing::Framing;
pub use head::{Fields, Version};
pub use later::{Caller, Later, TicketPart};
pub use limits::Limits;
pub use method::{Method, Methods};
pub use rate::{ByAddress, Limited, LimitedBy, RateCounts, RateLimit, TooMany};
pub use reject::Reject;
pub use rejection::Rejection;
pub use request::{
    Body, FromParam, FromRequest, Nothing, PARAMS_MAX, Params, RawQuery, Request, Rest, Takes, TheBody, TheLater,
    TheWriter,
};
pub use response::{Html, Redirect, Respond, Response, Sent, Static, WithField};
pub use route::{Routes, Table};
pub use server::{Event, Handle, Level, Listen, Offload, Running, Server, Stats};
pub use status::Status;
pub use stream::{Broadcast, Delivery, EventStream, Message, Stream, StreamError, StreamHead};
pub use target::Form as TargetForm;

/// What `routes!` expands to. No stability is promised.
#[doc(hidden)]
#[allow(missing_docs)]
pub mod __private {
    pub use std::option::Option;
    pub use std::primitive::{bool, str, u8};
    pub use std::result::Result;
    pub use std::{compile_error, concat, stringify};

    pub use crate::cors::CrossOrigin;
    pub use crate::request::Parts;
    pub use crate::response::{Constant, ConstantHead, Mapped, Refusing, constant_head};
    pub use crate::route::Row;
    pub use crate::route::build::{
        Arrays, Choice, Line, Options, Sizes, answer, place, prove_lines, rows, rows_len, sizes_max, text, text_len,
    };
    #[cfg(feature = "internals")]
    pub use crate::route::owned::{Answered as Found, OwnedTable};
    pub use crate::route::row::{Answered, Done, Moment, Slot, Source, finish, head, whole};
}
