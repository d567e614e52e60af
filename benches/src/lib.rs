//! The evidence for sprat: how it is measured, in the order a newcomer should read it.
//!
//! - [`load`]: the load generator, closed loop and open loop. Also a program of its own, `load`.
//! - [`process`]: what a process costs, read from `/proc`.
//! - [`peers`]: the servers that are compared, how each is built, started and checked.
//! - [`ladder`]: one command that runs them all in turns and keeps every raw row.
//! - [`report`]: rows in, one page and one summary out.
//! - [`budgets`]: instructions per request, gated; [`inputs`] and [`app`] are what they and the benches replay.
//! - [`machine`] and [`stats`]: what it was measured on, and how sure the figures are.
//!
//! Nothing here is part of the crate that is measured, and nothing here is built by its users.

#![forbid(unsafe_code)]

pub mod load;
pub mod process;

pub mod ladder;
pub mod peers;

pub mod report;

pub mod app;
pub mod budgets;
pub mod inputs;

pub mod machine;
pub mod stats;
