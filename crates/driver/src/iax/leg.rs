//! What the driver holds for a channel.

use core::net::SocketAddr;
use std::rc::Rc;

use ::iax2::Secret;
use base::{ChannelId, FormatSet, Instant, Place};

use super::config::{Common, Peer, User};

/// How far a leg is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Made, not called yet.
    Idle,
    /// Waits for the DNS until then.
    Resolving(Instant),
    /// NEW is out.
    Calling,
    /// An incoming call that is not answered.
    Ringing,
    /// Answered.
    Up,
    /// The other side is gone.
    Over,
}

/// Whose call it is.
#[derive(Clone)]
pub(super) enum Party {
    User(Rc<User>),
    Peer(Rc<Peer>),
    /// An address that a dial string names.
    Bare(Rc<Common>),
}

impl Party {
    pub(super) fn common(&self) -> &Common {
        match self {
            Self::User(user) => &user.common,
            Self::Peer(peer) => &peer.common,
            Self::Bare(common) => common,
        }
    }
    pub(super) fn name(&self) -> &str {
        match self {
            Self::User(user) => &user.name,
            Self::Peer(peer) => &peer.name,
            Self::Bare(_) => "",
        }
    }
}

/// Where a call of ours goes, as its dial string says.
#[derive(Clone, Default)]
pub(super) struct Target {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) username: String,
    pub(super) secret: Option<Secret>,
    pub(super) key: String,
    pub(super) exten: String,
    pub(super) context: String,
    pub(super) auto_answer: bool,
}

/// What the driver holds for a channel.
pub(super) struct Leg {
    pub(super) channel: ChannelId,
    pub(super) party: Party,
    pub(super) stage: Stage,
    /// The socket and the leg of its machine, while there is one.
    pub(super) place: Option<(u32, Place)>,
    pub(super) remote: Option<SocketAddr>,
    pub(super) formats: FormatSet,
    /// Formats of video that the other side may have.
    pub(super) video: FormatSet,
    pub(super) target: Target,
    /// When the digit that is being pressed began.
    pub(super) digit: Option<Instant>,
    /// Variables that the other side sent (`IAXVAR`).
    pub(super) variables: Vec<(String, String)>,
    /// Held by its user.
    pub(super) held: bool,
    /// Whom the other side was told that it talks to: number, name, presentation.
    pub(super) told: Option<(String, String, u8)>,
    /// The leg that it was to be connected with directly was tried.
    pub(super) joined: Option<u64>,
}
