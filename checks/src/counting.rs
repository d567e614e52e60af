//! An allocator that counts, for each thread, and otherwise is the system's.
//!
//! ```
//! use sprat_checks::counting::{Counting, count};
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! let before = count();
//! let text = String::from("on the heap");
//! assert_eq!(count() - before, 1, "{text}");
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The global allocator of a test that counts.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// How often this thread has asked for memory, or for more of it.
pub fn count() -> usize {
    COUNT.with(Cell::get)
}

// `realloc` is left to the trait: it asks for new memory, and is counted as that.
// SAFETY: every call is handed on as it is; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}
