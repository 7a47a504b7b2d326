//! IAX2 (RFC 5456, and what the field added to it) without a socket or a clock.
//!
//! [`frame`] is what the wire carries and knows no state. [`number`] gives call numbers, [`window`] keeps what the other
//! side has not acknowledged, [`token`] and [`limit`] say who may have a number at all, and [`cipher`] hides frames.
//! [`machine`] puts them together: a [`Machine`] is one socket's worth of calls, registrations and watched peers.
#![forbid(unsafe_code)]

mod auth;
pub mod cipher;
pub mod frame;
pub mod limit;
pub mod machine;
pub mod number;
pub mod token;
pub mod window;

pub use auth::Secret;
pub use machine::{Event, Machine, Out, Settings};
