//! `IAX2/…` channels: translates between the machine of crate `iax2` and the call core.

mod config;
mod show;

pub use config::{
    Access, CheckSignature, Common, Config, Host, JITTER_DEFAULT, Keys, Peer, Registration, Sign, Transfer,
    User,
};
pub use show::{
    ChannelRow, NetstatRow, Netstats, Numbers, PeerRow, PeerState, RegistryRow, RegistryState, Stats,
};
