//! What tests of several crates share: numbers from a seed, an allocator that counts, entries into the kernel that are
//! counted, processor time, a stack that ends, bad input.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: kit::Counting = kit::Counting;
//!
//! let mut random = kit::Random(7);
//! assert!(random.below(10) < 10);
//! assert_eq!(kit::allocations(|| drop(vec![0u8; 100])), 1);
//! ```

mod bad_input;
mod counting;
mod random;
mod syscalls;
mod time;

pub use bad_input::{bad_input, spoil};
pub use counting::{Counting, allocations, bytes_kept, bytes_of_all};
pub use random::Random;
pub use syscalls::system_calls;
pub use time::processor_time;

/// The most that a run of a group of streams may take of a media worker's stack.
const GROUP_STACK_BYTES: usize = 256 * 1024;

/// Does the work on a stack as small as that which a group of streams may use, and panics as it does.
///
/// An overflow ends the whole test program.
pub fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    let worker = std::thread::Builder::new().stack_size(GROUP_STACK_BYTES).spawn(work).expect("a thread");
    if let Err(panic) = worker.join() {
        std::panic::resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "as the work does")]
    fn a_panic_on_the_small_stack_is_the_tests_own() {
        on_small_stack(|| panic!("as the work does"));
    }
}
