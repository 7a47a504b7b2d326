//! SIP without a socket or a clock: messages, headers, URIs, SDP and digest; transactions, dialogs and the registrar.
//!
//! Syntax (`message`, `header`, `uri`, `write`, `sdp`, `digest`, `frame`) knows no state; the machines know no I/O.
#![forbid(unsafe_code)]

pub mod agreement;
mod dialog;
pub mod digest;
pub mod feature;
mod form;
pub mod frame;
pub mod header;
pub mod keeper;
mod layer;
pub mod locate;
pub mod message;
pub mod publication;
pub mod publisher;
pub mod registrar;
pub mod registration;
pub mod sdp;
pub mod session;
pub mod stack;
pub mod stun;
pub mod subscription;
mod transaction;
pub mod uri;
pub mod write;
pub mod xml;

pub use form::Form;
pub use header::{CSeq, Contact, HeaderName, Method, NameAddr, Via};
pub use message::{Flaw, Index, Invalid, Message, OwnedMessage, ParseError, Status};
pub use uri::{Host, Scheme, Uri};
pub use write::{MessageWriter, Reply};
