//! The server as others meet it: hostile peers, listeners of every kind, restarts, and what all of it costs in memory.
//! Each test has its server in a process of its own, so that its memory, descriptors and processor time can be read.

#[cfg(target_os = "linux")]
#[path = "../common/mod.rs"]
mod common;
#[cfg(target_os = "linux")]
mod lab;
#[cfg(target_os = "linux")]
mod listeners;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod peers;
#[cfg(target_os = "linux")]
mod restarts;
