//! Applications: what a dialplan can do with a call. Each is a story over a [`Chan`](call::Chan), or, when it cannot
//! wait, a plain function; one table row names it, documents it and says which module switches it off.
//!
//! This room knows the dialplan's language and the call core, and no protocol.
#![forbid(unsafe_code)]

mod agents;
pub mod agi;
mod asking;
mod bridging;
mod call_ctx;
mod check;
pub mod conference;
pub mod consult;
mod contract;
mod control_playback;
mod dial;
mod dialled;
mod dictate;
mod directory;
mod dtmf;
mod env;
mod features;
mod flow;
mod followme;
mod functions;
mod gate;
mod hear;
pub mod hints;
mod intercept;
pub mod ivr;
mod listen;
pub mod message;
pub mod mf;
pub mod monitor;
pub mod originate;
mod own_name;
mod page;
pub mod parking;
pub mod pbx;
pub mod pickup;
mod playback;
pub mod presence;
mod queue;
pub mod records;
mod say;
mod sf;
mod shell;
mod spy;
pub mod stasis;
mod statsd;
pub mod table;
mod together;
mod tones;
pub mod transfer;
mod voicemail;

pub use call_ctx::{Call, CallFuture, NoSuchPlace};
pub use check::{Concern, Constants, Named, UNKNOWN, Use, check, devices, names, uses};
pub use contract::{AppFuture, AppRow, Flow, Outcome, Run};
pub use dial::{DialOptions, UNSUPPORTED_OPTIONS};
pub use env::{priority_of_label, reach};
pub use flow::line::choose_refusal;
pub use functions::rows::statement;
pub use functions::state::SPEAKS;
pub use hints::hinted;
pub use intercept::intercept;
pub use queue::callback::restore as restore_callbacks;
