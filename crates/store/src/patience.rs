//! Writing what has to be written, on a disk that refuses.

use std::mem::replace;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Time between two tries.
const RETRY: Duration = Duration::from_secs(1);
/// Tries that are left once the owner is closing.
const LAST_TRIES: u32 = 3;

/// What a writing thread has of it, over all that it writes.
#[derive(Debug)]
pub(crate) struct Patience {
    last_tries: u32,
}

impl Patience {
    pub(crate) const fn new() -> Self {
        Self { last_tries: LAST_TRIES }
    }
    /// Tries until it is written, and tells once why it is not; whether it was. It is given up only while `closing`.
    pub(crate) fn write<E>(
        &mut self,
        closing: &AtomicBool,
        mut write: impl FnMut() -> Result<(), E>,
        tell: impl Fn(E),
    ) -> bool {
        let mut told = false;
        while let Err(error) = write() {
            if !replace(&mut told, true) {
                tell(error);
            }
            if closing.load(Ordering::Relaxed) {
                self.last_tries -= 1;
                if self.last_tries == 0 {
                    return false;
                }
            }
            sleep(RETRY);
        }
        true
    }
}
