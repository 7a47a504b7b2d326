//! An allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with a count for each thread; a test program makes it its `#[global_allocator]`.
#[derive(Debug)]
pub struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; the count is a thread-local cell that allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on; `pointer` came from `alloc`, and so from the system.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// How often the work allocates on this thread.
///
/// # Panics
/// When [`Counting`] is not the program's allocator, so that no test passes for want of a count.
pub fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(0u8)));
    let counted = ALLOCATIONS.get();
    assert_eq!(counted, before + 1, "kit::Counting is the #[global_allocator]");
    work();
    ALLOCATIONS.get() - counted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    #[test]
    fn each_allocation_of_the_work_counts_and_no_other() {
        let mut kept = Vec::new();
        let others = std::thread::spawn(|| drop(std::hint::black_box(vec![0u8; 100])));
        assert_eq!(allocations(|| ()), 0);
        assert_eq!(allocations(|| kept.push(Box::new(1))), 2, "the vector's room, and the box");
        assert_eq!(allocations(|| kept.reserve(1000)), 1, "growth is one more");
        others.join().unwrap();
    }
}
