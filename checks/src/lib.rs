//! What needs more than the crate itself: the long simulation, and the faults that it has to find.

pub mod counting;
pub mod planted;
pub mod process;
