//! One connection: who it is, what it wants to hear, and what it waits for.

use std::net::SocketAddr;

use base::Instant;
use store::config::manager::Classes;

use crate::pages::Pages;

use super::filter::Filters;
use super::packet::Framer;
use super::web::Web;

/// What one client may send ahead, bytes, while a slow action runs or others have their turn: sixteen of the longest
/// actions. Who sends more is closed.
pub(crate) const AHEAD_BYTES_MAX: usize = 1 << 20;

/// A connection.
pub(crate) struct Session {
    pub peer: SocketAddr,
    pub framer: Framer,
    /// The last challenge it was given; good for one attempt.
    pub challenge: Option<String>,
    pub stage: Stage,
    pub busy: Option<Busy>,
    /// It speaks over HTTP.
    pub web: Option<Box<Web>>,
    /// What was sent and is not looked at yet.
    pub ahead: Vec<u8>,
}

/// How far it has come.
pub(crate) enum Stage {
    /// Nobody yet; it is closed at this moment.
    Stranger(Instant),
    /// A user of manager.conf.
    User(Box<Login>),
}

/// A user at a session.
pub(crate) struct Login {
    /// Name in manager.conf.
    pub user: String,
    /// When it logged in, microseconds since the epoch.
    pub since: i64,
    /// Classes whose events it may get.
    pub read: Classes,
    /// Classes whose actions it may use.
    pub write: Classes,
    /// Classes whose events it wants.
    pub wanted: Classes,
    pub filters: Filters,
    /// How many of the filters come from the configuration; a reload replaces those.
    pub configured_filters: usize,
    pub timestamps: bool,
    /// Variables of channels it originates.
    pub variables: Vec<(String, String)>,
    /// Its logins and logoffs are told.
    pub is_told: bool,
}

/// What a session waits for before its next action is looked at.
pub(crate) enum Busy {
    /// A call that is being placed.
    Originate { action_id: Option<String> },
    /// A story that says the answer.
    Story,
    /// The rest of a long answer, a page at a time; what happens meanwhile is told behind it.
    Pages { pages: Pages, held: String },
    /// An event, until this moment.
    Event { until: Instant, action_id: Option<String> },
}

/// What may happen, in bytes, while a client reads a long answer: who takes longer is treated as one who does not read.
pub(crate) const HELD_BYTES_MAX: usize = 1 << 20;

impl Session {
    /// A connection that has to log in before `until`.
    pub fn new(peer: SocketAddr, until: Instant) -> Self {
        Self {
            peer,
            framer: Framer::default(),
            challenge: None,
            stage: Stage::Stranger(until),
            busy: None,
            web: None,
            ahead: Vec::new(),
        }
    }
    /// Who it is.
    pub fn login(&self) -> Option<&Login> {
        match &self.stage {
            Stage::User(login) => Some(login),
            Stage::Stranger(_) => None,
        }
    }
    /// Who it is, to change what it wants.
    pub fn login_mut(&mut self) -> Option<&mut Login> {
        match &mut self.stage {
            Stage::User(login) => Some(login),
            Stage::Stranger(_) => None,
        }
    }
    /// Whether it gets events of this class at this moment.
    pub fn hears(&self, class: Classes) -> bool {
        match (&self.stage, &self.busy) {
            (Stage::Stranger(_), _) => false,
            (Stage::User(login), Some(Busy::Event { .. })) => login.read.intersects(class),
            (Stage::User(login), _) => login.read.intersects(class) && login.wanted.intersects(class),
        }
    }
    /// When something is due for it.
    pub fn deadline(&self) -> Option<Instant> {
        match (&self.stage, &self.busy) {
            (Stage::Stranger(until), _) | (_, Some(Busy::Event { until, .. })) => Some(*until),
            (Stage::User(_), _) => self.web.as_ref().and_then(|web| web.deadline()),
        }
    }
}
