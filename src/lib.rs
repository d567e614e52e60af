#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
mod tests;

mod date;
mod limits;
mod method;
mod reject;
mod status;

mod chunked;
mod framing;
mod head;
mod output;
mod target;

mod connection;
mod held;

mod extract;
mod rejection;
mod request;
mod response;
mod route;
#[cfg(feature = "json")]
mod json {
    #[derive(Debug, Default)]
    pub(crate) struct Tape;
}

pub mod testing;

pub use connection::CloseReason;
pub use extract::{
    Basic, Bearer, Cookies, FieldName, Header, Optional, Realm, Restricted, SameSite, SetCookie, constant_time_eq,
    fields,
};
#[cfg(feature = "json")]
pub use extract::{Form, Query};
pub use framing::Framing;
pub use head::{Fields, Version};
pub use limits::Limits;
pub use method::{Method, Methods};
pub use reject::Reject;
pub use rejection::Rejection;
pub use request::{
    Body, FromParam, FromRequest, Nothing, PARAMS_MAX, Params, RawQuery, Request, Rest, Takes, TheBody, TheWriter,
};
pub use response::{Html, Redirect, Respond, Response, Sent, Static, WithField};
pub use route::{Routes, Table};
pub use status::Status;
pub use target::Form as TargetForm;
