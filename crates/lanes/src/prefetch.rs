//! Asking for memory before it is needed, so that waits for it overlap.

use core::ops::Range;

/// Bytes of a line of the cache.
pub const LINE_BYTES: usize = 64;

/// Asks for these lines of the memory that begins at `place`, counted from its own. Reads nothing, waits for nothing and
/// changes no result; lines beyond the value do no harm. Without such an instruction it does nothing.
#[inline]
pub fn prefetch<T: ?Sized>(place: &T, lines: Range<usize>) {
    let start = core::ptr::from_ref(place).cast::<i8>();
    for line in lines {
        ask(start.wrapping_add(line * LINE_BYTES));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ask(place: *const i8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction belongs to every x86-64, and an address that cannot be read is no fault of it.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn ask(_: *const i8) {}

#[cfg(test)]
mod tests {
    #[test]
    fn a_prefetch_changes_nothing_wherever_it_points() {
        let bytes = [7_u8; 3];
        super::prefetch(&bytes, 0..1);
        super::prefetch(&bytes[..0], 0..1_000_000);
        assert_eq!(bytes, [7; 3]);
    }
}
