//! An auth service on sprat. Read in this order: [`routes`], a handler or two, [`database`], [`store`], the rest.
//!
//! ```text
//!   the loop (one thread)          database threads            the pool (nice 19)
//!   guards, limits, JWT   --job--> store::Store, one
//!   handlers              <------- connection each
//!                         --------------------------work-----> bcrypt
//! ```
//!
//! Nothing on the loop waits for a disk, a network or a hash, with one exception that is reasoned about in
//! [`handlers::validate`].

#![forbid(unsafe_code)]

pub mod config;
pub mod routes;

pub mod guards;
pub mod handlers;

pub mod database;
pub mod store;

pub mod passwords;
pub mod refusals;
pub mod tokens;

pub mod log;
mod service;

pub use config::Config;
pub use routes::App;
pub use service::{Service, StartError};
