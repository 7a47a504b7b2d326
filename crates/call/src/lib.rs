//! Channels, bridges and the stories that run on them: the owner of calls.
//!
//! This room knows no protocol, no socket, no thread and no clock. Drivers ([`Tech`]) translate a protocol into
//! channels and [`ChanEvent`]s; applications are `async fn`s over a [`Chan`]; the media plane is reached through
//! [`MediaDoor`] and the [`Command`](base::Command)s of `base`. Who watches (manager clients, the log, call records)
//! reads [`Notice`]s and never reaches in.
//!
//! One [`Shard`] belongs to one thread. Its `RefCell`s are borrowed for the length of a call and never across an
//! `await`, so they cannot be found taken.
#![forbid(unsafe_code)]

mod admission;
mod again;
mod agents;
mod agi;
mod bans;
mod bridge;
mod callbacks;
mod cdr;
mod cel;
mod chan;
mod channel;
pub mod charge;
pub mod conference;
mod connect;
mod core;
mod diversion;
mod engaged;
mod exchange;
mod exec;
mod fax;
pub mod features;
pub mod followme;
mod identity;
mod keys;
mod links;
mod locks;
mod message;
pub mod monitor;
pub mod mos;
mod music;
mod notice;
mod others;
pub mod parking;
mod passed;
pub mod pickup;
mod prompt;
pub mod quality;
mod queues;
pub mod security;
mod services;
mod shard;
mod signals;
pub mod spy;
pub mod stasis;
mod switches;
mod tech;
mod tones;
pub mod transactions;
mod unique_ids;
pub mod voicemail;
mod volume;
mod watch;

pub use admission::{Admission, CALLS_ALWAYS, Limits, Refused};
pub use again::RowsAgain;
pub use agents::{Agent, AgentChange, AgentLogin, AgentPhase, AgentRefused, AgentRules, Agents};
pub use agi::{AgiChange, AgiCommand, AgiQueue, AgiRefused};
pub use bans::{Ban, BanRules, Bans};
pub use bridge::{
    AfterKey, Awaiting, BridgeEnd, BridgeLimits, Keyed, OnKey, PLAY_SOUND, SayRemaining, Warnings,
    bridge_pair,
};
pub use callbacks::{
    CALLBACK_ATTEMPTS_MAX, CALLBACK_LIFETIME_MAX, CALLBACK_PAUSE_MIN, CALLBACKS, CALLBACKS_MAX, Callback,
    CallbackId, Callbacks, NoCallback,
};
pub use cdr::{AmaFlags, CDR_CHAIN_MAX, CDR_FORKS_MAX, Cdr, CdrFork, CdrState, Disposition};
pub use cel::{Cel, CelKind, CelSettings, Extra, Extras, bridge_name};
pub use chan::{Chan, DIGIT_MAX_MS, DIGIT_MIN_MS, Heard, Leg, Steered, Stop};
pub use channel::{
    ChanEvent, ChanState, Channel, Elsewhere, Location, NewChannel, QueuePlace, SECURE_MEDIA,
    SECURE_SIGNALING, Steer,
};
pub use connect::{Interception, Told};
pub use core::{Advance, BY_OTHER_HALF, Core, FORWARDER_NAME, MachineSettings, Reach, Settings, Statistics};
pub use diversion::{CUSTOM_FAMILY, Diversion};
pub use exchange::{Coupling, Exchange, StandIn};
pub use exec::{Executor, TaskId};
pub use fax::FaxWatch;
pub use identity::{PartyId, Presentation, Redirecting};
pub use keys::{CODE_MAX, Key, Keys, Pressed, Pressing, Stroke};
pub use links::{LinkId, LinkNews, LinkWant, Links, NoLinks};
pub use locks::{LOCK_NAME_MAX, LOCKS_MAX};
pub use message::{MessageData, Sending, Text, TextMessage};
pub use notice::{
    BridgeSnapshot, BridgeUse, HandlerChange, Notice, Snapshot, SoftHangup, VideoChoice, transfer_app,
};
pub use others::{DEVICES_MAX, Outward};
pub use prompt::Prompt;
pub use quality::{Quality, Series, paths, seconds};
pub use queue::DeviceState;
pub use queues::{MemberRow, PERSISTENT_MEMBERS, QueueTables};
pub use security::Attempt;
pub use services::{
    Afterwards, ClipAnswer, ClipWant, Database, Directories, DnsAnswer, Level, Library, Log, MediaDoor,
    MediaRefused, MusicAnswer, NoOutside, Outside, Progress, Recorder, RecorderState, Services, Take,
    WallClock,
};
pub use shard::{FORWARDS, Shard, panic_text};
pub use switches::{SwitchAnswer, SwitchQuestion, Switches};
pub use tech::{Indication, Request, RichText, Tech, Transferring};
pub use tones::{ToneCounts, ToneSide};
pub use volume::{Volume, VolumeSide};
pub use watch::{Board, Mailbox, Watched, mailbox_name};
