//! An allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

/// Bytes that all threads have taken, less those that they have given back.
static BYTES_OF_ALL: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes that this thread has taken, less those that it has given back.
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, with a count for each thread; a test program makes it its `#[global_allocator]`.
#[derive(Debug)]
pub struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; the counts are thread-local cells that allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get() + layout.size() as i64);
        BYTES_OF_ALL.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get() - layout.size() as i64);
        BYTES_OF_ALL.fetch_sub(layout.size() as i64, Ordering::Relaxed);
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

/// How many bytes the work leaves allocated, as asked for: what it took on this thread less what it gave back.
///
/// # Panics
/// As [`allocations`].
pub fn bytes_kept(work: impl FnOnce()) -> i64 {
    let before = BYTES.get();
    let boxed = std::hint::black_box(Box::new(0u8));
    assert_eq!(BYTES.get(), before + 1, "kit::Counting is the #[global_allocator]");
    drop(boxed);
    work();
    BYTES.get() - before
}

/// Bytes that the whole program has allocated at present, as asked for.
///
/// # Panics
/// As [`allocations`].
pub fn bytes_of_all() -> i64 {
    let boxed = std::hint::black_box(Box::new(0u8));
    let bytes = BYTES_OF_ALL.load(Ordering::Relaxed) - 1;
    drop(boxed);
    assert!(bytes > 0, "kit::Counting is the #[global_allocator]");
    bytes
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

    #[test]
    fn what_another_thread_keeps_is_the_programs() {
        let before = bytes_of_all();
        let kept = std::thread::spawn(|| vec![0u8; 50_000_000]).join().unwrap();
        assert!(bytes_of_all() - before > 40_000_000, "tests beside this one keep less");
        drop(kept);
    }

    #[test]
    fn bytes_that_are_kept_count_until_they_are_given_back() {
        let mut kept = Vec::new();
        assert_eq!(bytes_kept(|| kept = vec![0u8; 1000]), 1000);
        assert_eq!(bytes_kept(|| drop(vec![0u8; 500])), 0);
        assert_eq!(bytes_kept(|| kept.reserve_exact(500)), 500, "a larger room instead of the old one");
        assert_eq!(bytes_kept(|| drop(core::mem::take(&mut kept))), -1500);
    }
}
