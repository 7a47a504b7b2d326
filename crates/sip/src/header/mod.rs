//! Typed headers, parsed from the bytes of a value when they are asked for.
//!
//! Every parser here takes a value as it stands in the message, folding included, and returns `None` for what it cannot
//! read; none panics and none allocates. This room knows no transaction and no dialog.

mod addr;
pub(crate) mod lex;
mod method;
mod name;
mod simple;
mod via;

pub use addr::{Contact, NameAddr};
pub use lex::{CommaList, MAX_LIST_VALUES, Params, ParamsIter, unquote};
pub use method::Method;
pub use name::HeaderName;
pub(crate) use name::{OTHER, find as find_name};
pub use simple::{
    CSeq, Disposition, Event, MediaType, RAck, Reason, Replaces, RetryAfter, SessionExpires,
    SubscriptionState, delta_seconds, has_token, q850_cause,
};
pub use via::{MAGIC_COOKIE, Via};
