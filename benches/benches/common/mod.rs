//! What all benches share.

use std::time::Duration;

use criterion::Criterion;

/// Short enough that all benches run in a few minutes, long enough to tell a few percent apart on a quiet machine.
pub fn criterion() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args()
}
