//! The SIP driver against scripted peers, on invented time.

mod agreements;
mod asked;
mod carrier;
mod charge;
mod codecs;
mod direct;
mod fax;
mod flows;
mod gate;
mod incoming;
mod lab;
mod lists;
mod lookups;
mod messages;
mod outgoing;
mod parties;
mod phone;
mod publications;
mod registration;
mod secure;
mod session;
mod storm;
mod transfers;
mod trunks;
mod video;
mod watchers;
