//! What is taken from a request beside its path and its raw parts: credentials, fields, cookies, forms.
//!
//! Each file has one extractor, or one grammar that two of them share. Whatever the head can decide is refused in
//! [`FromRequest::check`](crate::FromRequest::check), before the body is read. Refusals are JSON, and never hold the
//! peer's bytes. Nothing here names a socket or a clock.

mod authorization;
mod base64;
mod basic;
mod bearer;
mod constant_time;
mod cookies;
pub mod fields;
#[cfg(feature = "json")]
mod form;
mod header;
#[cfg(feature = "json")]
mod json;
#[cfg(feature = "json")]
mod media_type;
mod optional;
#[cfg(feature = "json")]
mod query;
mod set_cookie;
#[cfg(feature = "json")]
pub(crate) mod urlencoded;

pub use basic::{Basic, Realm, Restricted};
pub use bearer::Bearer;
pub use constant_time::constant_time_eq;
pub use cookies::Cookies;
#[cfg(feature = "json")]
pub use form::Form;
pub use header::{FieldName, Header};
#[cfg(feature = "json")]
pub use json::Json;
pub use optional::Optional;
#[cfg(feature = "json")]
pub use query::Query;
pub use set_cookie::{SameSite, SetCookie};
