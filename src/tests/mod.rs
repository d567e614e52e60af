//! Tests of the layers below the machine, and the slow, obvious twins that the fast paths are compared with.

mod chunked;
mod connection;
mod framing;
mod head;
mod layers;
mod naive;
mod output;
mod proxy;
mod target;
