//! The raw-request conformance corpus: what a client sends, byte for byte, and which answers are right.
//!
//! `case` reads the data; `response` and `date` read a server's answers strictly; `judge` decides, from a
//! finished `Conversation` alone, whether a case was passed. Two drivers hold conversations: `sockets` over TCP,
//! with the pauses that the data asks for, and `in_process` over a `Peer`, without any waiting. `splits` plays one
//! case cut in every way and demands the same `transcript` each time.
//!
//! The judge never reads a socket or a clock, so both drivers are held to one and the same standard.

mod case;
mod conversation;
mod date;
mod in_process;
mod judge;
#[cfg(test)]
mod judge_tests;
mod report;
mod response;
mod sockets;
mod splits;
mod transcript;
mod visible;

pub use case::load;
pub use in_process::{Peer, check_whole};
pub use report::{assert_all_pass, judge_all};
pub use sockets::{Patience, check_over_tcp};
pub use splits::{Effort, check_every_split};
