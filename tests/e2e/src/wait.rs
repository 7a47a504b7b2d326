//! Waiting for a condition, with a limit.

use std::time::{Duration, Instant};

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// Longest wait for something that takes a moment on an idle machine; generous, because test machines are not idle.
pub const SOON: Duration = Duration::from_secs(60);

/// Looks until there is something, at most `limit` long.
pub fn for_some<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(seen) = look() {
            return Some(seen);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(LOOK);
    }
}

/// Looks until there is something; panics with `what` when [`SOON`] has passed.
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    for_some(SOON, look).unwrap_or_else(|| panic!("did not happen within {SOON:?}: {what}"))
}

/// Looks until it is so; panics with `what` when [`SOON`] has passed.
pub fn until_true(what: &str, mut look: impl FnMut() -> bool) {
    until(what, || look().then_some(()));
}
