//! Panics of what is not ours: handlers, mappers, hooks, and the `Drop` of the values they made.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `run` returns, or `None` if it panicked.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Option<T> {
    let thrown = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(value) => return Some(value),
        Err(thrown) => thrown,
    };
    // What was thrown may panic when it is dropped, and so may what that throws: this one is kept.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(thrown))) {
        std::mem::forget(again);
    }
    None
}

/// Drops a value, whatever it thinks of that.
pub(crate) fn discard<T>(value: T) {
    let _ = caught(|| drop(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("on purpose");
            }
        }
    }

    #[test]
    fn a_panic_is_caught_though_what_it_throws_panics_when_dropped() {
        assert_eq!(caught(|| 1), Some(1));
        assert_eq!(caught(|| std::panic::panic_any(Bomb)), None::<()>);
        discard(Bomb);
    }
}
