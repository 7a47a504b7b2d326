//! The real program against real peers.
//!
//! A [`Site`] is a configuration in a folder of its own; a [`Server`] is the program running on it, on an address of its
//! own, so that all tests run side by side. The peers are SIPp ([`Sipp`]), baresip ([`Baresip`]), a Python manager client,
//! tshark ([`Capture`]) and [`Phone`], a small phone that does exactly what a test says. None of them shares code with
//! Strowger: what both sides misread alike would be found by nobody.
//!
//! A peer that is not installed makes its tests say `skipped: …` and pass. Nothing here sleeps for a fixed time: tests wait
//! for what they want to see, with a limit ([`wait`]).
#![forbid(unsafe_code)]

mod baresip;
pub mod camera;
mod capture;
pub mod digest;
pub mod likeness;
mod media;
mod message;
mod name_server;
mod peer;
mod phone;
mod place;
mod repeats;
mod secure;
mod server;
mod sipp;
mod site;
mod sqlite;
mod terminal;
mod tls;
pub mod tone;
pub mod wait;
pub mod websocket;
pub mod wire;
mod world;

pub use baresip::Baresip;
pub use capture::Capture;
pub use media::{Heard, Media, Recital, Speak};
pub use message::Message;
pub use name_server::NameServer;
pub use peer::{Owned, bad_input, installed, node_with, python, python_with, unpack};
pub use phone::Phone;
pub use place::{Place, address, free_ports};
pub use secure::{Authority, Identity, Secure};
pub use server::{Refused, Server, program};
pub use sipp::{Sipp, SippRun};
pub use site::{SECRET, Site};
pub use sqlite::{Held, Sqlite};
pub use terminal::{Running, Terminal};
pub use tls::{TlsClient, TlsStream, pass};
pub use websocket::WebSocket;
pub use wire::Wire;
pub use world::World;
