//! Programs that are there, and what each of them wants to hear.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{Stasis, StasisError, StasisNotice};
use crate::{Core, TextMessage};

/// Most programs at once; a site has a handful, and each has a connection.
pub const APPS_MAX: usize = 1024;
/// Longest name of a program, bytes.
pub const APP_NAME_BYTES_MAX: usize = 128;
/// Most things that one program listens to by its own wish: every phone of a large site.
pub const SUBSCRIPTIONS_MAX: usize = 16_384;
/// Most kinds of events that a filter names; there are about fifty.
pub const FILTER_MAX: usize = 128;

/// Longest name of something that is listened to, or of a kind of events, bytes.
const TOPIC_BYTES_MAX: usize = 256;

/// Something that a program can listen to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// A channel, by its UNIQUEID.
    Channel(String),
    /// A bridge, by its id.
    Bridge(String),
    /// A technology's endpoint, or all of it.
    Endpoint(String, Option<String>),
    /// The state of a device: `PJSIP/6001`, `Stasis:door`.
    DeviceState(String),
}

impl Topic {
    /// Of its name: `channel:ID`, `bridge:ID`, `endpoint:TECH[/RESOURCE]`, `deviceState:NAME`; an empty id of channels and
    /// bridges means all.
    pub fn parse(text: &str) -> Result<Self, StasisError> {
        let bad = || StasisError::BadRequest("Invalid event source URI scheme".into());
        let (scheme, rest) = text.split_once(':').ok_or_else(bad)?;
        if rest.len() > TOPIC_BYTES_MAX {
            return Err(StasisError::BadRequest("the name of an event source is too long".into()));
        }
        Ok(match scheme {
            "channel" => Self::Channel(rest.to_owned()),
            "bridge" => Self::Bridge(rest.to_owned()),
            "endpoint" => match rest.split_once('/') {
                Some((tech, resource)) => Self::Endpoint(tech.to_owned(), Some(resource.to_owned())),
                None => Self::Endpoint(rest.to_owned(), None),
            },
            "deviceState" => Self::DeviceState(rest.to_owned()),
            _ => return Err(bad()),
        })
    }
}

/// A program.
#[derive(Debug, Default)]
pub struct Application {
    /// A client is connected that hears for it.
    pub is_active: bool,
    /// It hears everything.
    pub subscribes_all: bool,
    /// What it listens to by its own wish.
    pub topics: BTreeSet<Topic>,
    /// Kinds of events that it hears; empty: all.
    pub allowed: Vec<String>,
    /// Kinds that it does not hear, whatever `allowed` says.
    pub disallowed: Vec<String>,
    /// What it listens to because it has a channel, or had one in a bridge.
    pub(super) follows: BTreeMap<Topic, u32>,
}

impl Application {
    /// Whether it hears events of this kind (`StasisStart`).
    pub fn hears(&self, kind: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|known| known == kind);
        !is_in(&self.disallowed) && (self.allowed.is_empty() || is_in(&self.allowed))
    }
    /// All that it listens to, each once.
    pub fn listens_to(&self) -> impl Iterator<Item = &Topic> {
        let own = self.topics.iter();
        own.chain(self.follows.keys().filter(|topic| !self.topics.contains(*topic)))
    }
}

impl Stasis {
    /// A program that a client hears for, or one whose client has gone and that has channels yet.
    pub fn app(&self, name: &str) -> Option<&Application> {
        self.apps.get(name)
    }
    /// All of them, by name.
    pub fn apps(&self) -> impl Iterator<Item = (&Rc<str>, &Application)> {
        self.apps.iter()
    }
    /// A client hears for these programs from here on; whether another one did before, which hears no more.
    ///
    /// Errors: the name is empty or too long (`BadRequest`), there are too many (`Internal`).
    pub fn register(&mut self, name: &str, subscribes_all: bool) -> Result<bool, StasisError> {
        if name.is_empty() || name.len() > APP_NAME_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(StasisError::BadRequest("an application has a name of 1 to 128 bytes".into()));
        }
        if self.apps.len() >= APPS_MAX && !self.apps.contains_key(name) {
            return Err(StasisError::full());
        }
        let app = self.apps.entry(name.into()).or_default();
        let replaced = core::mem::replace(&mut app.is_active, true);
        app.subscribes_all = subscribes_all;
        Ok(replaced)
    }
    /// No client hears for a program any more. Its channels stay with it, and it is as it was when one comes back before
    /// the last of them has gone; without channels it is forgotten.
    pub fn unregister(&mut self, name: &str) {
        if let Some(app) = self.apps.get_mut(name) {
            app.is_active = false;
        }
        self.forget_if_idle(name);
    }
    pub(super) fn forget_if_idle(&mut self, name: &str) {
        let is_active = self.apps.get(name).is_none_or(|app| app.is_active);
        if !is_active && self.channels_of(name).next().is_none() {
            self.apps.remove(name);
        }
    }
    /// A program's own name, when it is there.
    pub(super) fn active(&self, name: &str) -> Result<Rc<str>, StasisError> {
        let found = self.apps.get_key_value(name).filter(|(_, app)| app.is_active);
        found
            .map(|(name, _)| name.clone())
            .ok_or_else(|| StasisError::NotFound("Application not found".into()))
    }
    fn known(&mut self, name: &str) -> Result<&mut Application, StasisError> {
        self.apps.get_mut(name).ok_or_else(|| StasisError::NotFound("Application not found".into()))
    }
    /// A program hears these kinds of events; `None` leaves a list as it is.
    pub fn set_filter(
        &mut self,
        name: &str,
        allowed: Option<Vec<String>>,
        disallowed: Option<Vec<String>>,
    ) -> Result<(), StasisError> {
        let app = self.known(name)?;
        let is_long = |kind: &String| kind.len() > TOPIC_BYTES_MAX;
        let too_long = |list: &Option<Vec<String>>| {
            list.as_ref().is_some_and(|list| list.len() > FILTER_MAX || list.iter().any(is_long))
        };
        if too_long(&allowed) || too_long(&disallowed) {
            return Err(StasisError::BadRequest("a filter names too many kinds of events".into()));
        }
        if let Some(allowed) = allowed {
            app.allowed = allowed;
        }
        if let Some(disallowed) = disallowed {
            app.disallowed = disallowed;
        }
        Ok(())
    }
}

impl Core {
    /// The clients that heard for a program before hear that another one does.
    pub fn stasis_replaced(&mut self, app: &str) {
        let app: Rc<str> = app.into();
        self.stasis_tell(|_| Some(StasisNotice::Replaced { app }));
    }
    /// A program listens to these from here on; to all of them or, with an error, to none more.
    ///
    /// Errors: no such program (`NotFound`), no such source (`Unprocessable`), too many (`Internal`).
    pub fn stasis_subscribe(&mut self, app: &str, topics: &[Topic]) -> Result<(), StasisError> {
        self.stasis.known(app)?;
        if let Some(missing) = topics.iter().find(|topic| !self.stasis_has(topic)) {
            return Err(StasisError::Unprocessable(
                format!("Event source does not exist: {missing:?}").into(),
            ));
        }
        let app = self.stasis.known(app)?;
        if app.topics.len() + topics.len() > SUBSCRIPTIONS_MAX {
            return Err(StasisError::full());
        }
        app.topics.extend(topics.iter().cloned());
        Ok(())
    }
    /// A program listens to these no more, not even because it has them.
    ///
    /// Errors: no such program (`NotFound`), it does not listen to one of them (`Conflict`), which leaves all as they are.
    pub fn stasis_unsubscribe(&mut self, app: &str, topics: &[Topic]) -> Result<(), StasisError> {
        let app = self.stasis.known(app)?;
        let is_known = |topic: &&Topic| app.topics.contains(*topic) || app.follows.contains_key(*topic);
        if !topics.iter().all(|topic| is_known(&topic)) {
            return Err(StasisError::Conflict("Application not subscribed to event source".into()));
        }
        for topic in topics {
            app.topics.remove(topic);
            app.follows.remove(topic);
        }
        Ok(())
    }
    /// Whether a program that is there wants to hear of an endpoint: of it, of all of its technology, or of everything.
    pub fn stasis_hears_of(&self, tech: &str, resource: &str) -> bool {
        let wants = |topic: &Topic| match topic {
            Topic::Endpoint(own, which) => {
                own == tech && which.as_deref().is_none_or(|which| which == resource)
            }
            _ => false,
        };
        self.stasis
            .apps
            .values()
            .any(|app| app.is_active && (app.subscribes_all || app.topics.iter().any(wants)))
    }
    /// Programs that want to hear of an endpoint hear of a text that it has sent.
    pub fn stasis_tell_text(&mut self, endpoint: (&'static str, String), message: TextMessage) {
        self.stasis_tell(|_| Some(StasisNotice::Text { endpoint, message: Box::new(message) }));
    }
    fn stasis_has(&self, topic: &Topic) -> bool {
        match topic {
            Topic::Channel(id) => id.is_empty() || self.stasis_channel(id).is_ok(),
            Topic::Bridge(id) => {
                id.is_empty() || self.stasis.bridge(id).is_some() || self.bridge_by_uid(id).is_some()
            }
            // Who is one is the technology's to say, and a phone may come later.
            Topic::Endpoint(tech, _) => !tech.is_empty(),
            Topic::DeviceState(name) => !name.is_empty(),
        }
    }
}
