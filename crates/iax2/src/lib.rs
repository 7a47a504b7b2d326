//! IAX2 (RFC 5456, and what the field added to it) without a socket or a clock.
//!
//! [`frame`] is what the wire carries and knows no state. [`number`] gives call numbers, `window` keeps what the other
//! side has not acknowledged.
#![forbid(unsafe_code)]

pub mod frame;
pub mod number;
pub mod window;
