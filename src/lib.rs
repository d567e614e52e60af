#![doc = include_str!("../README.md")]
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

/// How the crate is built, for those who want to change it or to know what they depend on.
#[cfg(doc)]
#[doc = include_str!("../ARCHITECTURE.md")]
pub mod architecture {}

pub use connection::CloseReason;
pub use cors::Cors;
pub use extract::{
    Basic, Bearer, Cookies, FieldName, Header, Optional, Realm, Restricted, SameSite, SetCookie, constant_time_eq,
    fields,
};
#[cfg(feature = "json")]
pub use extract::{Form, Json, Query};
pub use framing::Framing;
pub use head::{Fields, Version};
pub use later::{Later, TicketPart};
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
