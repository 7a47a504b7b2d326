//! Programs that steer calls from outside (ARI): which are there, which channels, bridges, sounds and recordings they have.
//!
//! Here is what is kept, and what watchers are told of it. The dialect (HTTP, JSON) is `control`'s; what a channel's story
//! does while it is in a program's hands is `apps::stasis`'s, which hears of orders by [`ChanEvent::Stasis`].

mod apps;
mod bridges;
mod guests;
mod inbox;
mod media;
mod notices;
mod offer;
mod pair;
mod route;
mod wait;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use base::{BridgeId, ChannelId};

use crate::{ChanEvent, ChanState, Core, Notice, Progress};

pub use apps::{APP_NAME_BYTES_MAX, APPS_MAX, Application, FILTER_MAX, SUBSCRIPTIONS_MAX, Topic};
pub use bridges::{
    BRIDGE_VARIABLES_MAX, BRIDGES_MAX, BridgeKind, BridgeMember, ID_BYTES_MAX, MEMBERS_MAX, NewBridge,
    ProgramBridge, ROOM_PREFIX, ToldVariable, is_room_of_programs,
};
pub use guests::GuestKind;
pub use inbox::{Digits, ORDERS_MAX, Order, Placing, WORKS_MAX, Work};
pub use media::{
    Gate, IfExists, LiveRecording, MEDIA_MAX, PLAYBACKS_MAX, Playback, PlaybackState, PlaybackSteer,
    RECORDINGS_MAX, RecordingState, TakeFile, Target,
};
pub use notices::{BridgeView, MediaChange, StasisNotice, Transfer};
pub use offer::BROADCAST_MS_MAX;
pub use wait::Tended;

/// Why something that a program asked for is not done; each kind is a status of HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StasisError {
    /// 400: what was asked makes no sense.
    BadRequest(Cow<'static, str>),
    /// 403: it has not got what is asked for.
    Forbidden(Cow<'static, str>),
    /// 404: there is no such thing.
    NotFound(Cow<'static, str>),
    /// 409: it is in a state in which that cannot be.
    Conflict(Cow<'static, str>),
    /// 412: it is not far enough for that.
    Precondition(Cow<'static, str>),
    /// 422: it is understood and cannot be done.
    Unprocessable(Cow<'static, str>),
    /// 500: no room, or a part of the machine refuses.
    Internal(Cow<'static, str>),
}

impl StasisError {
    /// The status of HTTP.
    pub fn status(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::Forbidden(_) => 403,
            Self::NotFound(_) => 404,
            Self::Conflict(_) => 409,
            Self::Precondition(_) => 412,
            Self::Unprocessable(_) => 422,
            Self::Internal(_) => 500,
        }
    }
    /// What is wrong, for people.
    pub fn text(&self) -> &str {
        match self {
            Self::BadRequest(text)
            | Self::Forbidden(text)
            | Self::NotFound(text)
            | Self::Conflict(text)
            | Self::Precondition(text)
            | Self::Unprocessable(text)
            | Self::Internal(text) => text,
        }
    }
    /// There is no such channel.
    pub fn no_channel() -> Self {
        Self::NotFound("Channel not found".into())
    }
    /// The channel is in no program's hands.
    pub fn not_in_stasis() -> Self {
        Self::Conflict("Channel not in Stasis application".into())
    }
    /// There is no such bridge.
    pub fn no_bridge() -> Self {
        Self::NotFound("Bridge not found".into())
    }
    /// One more than a table holds.
    pub fn full() -> Self {
        Self::Internal("too much is going on already".into())
    }
}

impl core::fmt::Display for StasisError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for StasisError {}

/// Most arguments that a channel brings along: as many as an application has.
pub const ARGS_MAX: usize = 128;

/// A channel that is in the hands of a program.
#[derive(Debug)]
pub struct Visit {
    /// The program.
    pub app: Rc<str>,
    /// What the dialplan, or whoever moved it here, said beside.
    pub args: Vec<String>,
    pub(crate) inbox: inbox::Inbox,
}

/// All that programs have.
#[derive(Debug, Default)]
pub struct Stasis {
    pub(crate) apps: BTreeMap<Rc<str>, Application>,
    pub(crate) visits: BTreeMap<ChannelId, Visit>,
    pub(crate) bridges: BTreeMap<Rc<str>, ProgramBridge>,
    pub(crate) playbacks: BTreeMap<Rc<str>, Playback>,
    pub(crate) recordings: BTreeMap<Rc<str>, LiveRecording>,
    /// Channels that are offered to programs, and the program that has claimed each.
    offers: BTreeMap<ChannelId, Option<Rc<str>>>,
    /// Files of recordings that are over and that are being completed, by the names of these.
    finishing: Vec<(Rc<str>, Arc<Progress>)>,
    /// Bridges of calls that are rooms of programs, until those who are told of bridges have heard that they are gone.
    rooms: BTreeSet<BridgeId>,
}

impl Stasis {
    /// The program that has a channel, and what came along.
    pub fn visit(&self, id: ChannelId) -> Option<&Visit> {
        self.visits.get(&id)
    }
    /// Channels that a program has.
    pub fn channels_of(&self, app: &str) -> impl Iterator<Item = ChannelId> {
        self.visits.iter().filter(move |(_, visit)| &*visit.app == app).map(|(id, _)| *id)
    }
    /// How many channels programs have.
    pub fn channel_count(&self) -> usize {
        self.visits.len()
    }
    /// Whether nothing is left of any program but those that are there.
    pub fn is_at_rest(&self) -> bool {
        self.visits.is_empty() && self.playbacks.is_empty() && self.recordings.is_empty()
    }
}

impl Core {
    /// A channel by the id that programs use, its UNIQUEID; names are no ids here.
    pub fn stasis_channel(&self, uniqueid: &str) -> Result<ChannelId, StasisError> {
        let id = self.by_name(uniqueid).ok_or_else(StasisError::no_channel)?;
        let known = self.get(id).is_some_and(|channel| &*channel.uniqueid == uniqueid);
        if known { Ok(id) } else { Err(StasisError::no_channel()) }
    }
    /// The same of a channel that a program has and that goes on in its hands.
    pub fn stasis_visitor(&self, uniqueid: &str) -> Result<ChannelId, StasisError> {
        let id = self.stasis_channel(uniqueid)?;
        self.stasis_stays(id)?;
        Ok(id)
    }
    /// The same of one that is so far that something can be done to it: it was answered, or it is an incoming call.
    pub fn stasis_ready(&self, uniqueid: &str) -> Result<ChannelId, StasisError> {
        let id = self.stasis_visitor(uniqueid)?;
        match self.get(id).map(|channel| channel.state) {
            Some(ChanState::Down | ChanState::Reserved | ChanState::Ringing) => {
                Err(StasisError::Precondition("Channel in invalid state".into()))
            }
            _ => Ok(id),
        }
    }
    /// Whether a channel is in a program's hands and was not sent on.
    pub fn stasis_stays(&self, id: ChannelId) -> Result<(), StasisError> {
        let channel = self.get(id).ok_or_else(StasisError::no_channel)?;
        let visit = self.stasis.visits.get(&id).ok_or_else(StasisError::not_in_stasis)?;
        if visit.inbox.leaves || channel.goto.is_some() || channel.hangup.is_some() {
            return Err(StasisError::not_in_stasis());
        }
        Ok(())
    }
    /// Gives a channel into the hands of a program that is there. The story that calls this gives it back by
    /// [`Core::stasis_leave`], however it ends.
    ///
    /// Errors: no such program is there (`NotFound`), a program has the channel already (`Conflict`).
    pub fn stasis_enter(&mut self, id: ChannelId, app: &str, args: Vec<String>) -> Result<(), StasisError> {
        if self.get(id).is_none() {
            return Err(StasisError::no_channel());
        }
        if self.stasis.visits.contains_key(&id) {
            return Err(StasisError::Conflict("the channel is in a Stasis application already".into()));
        }
        let app = self.stasis.active(app)?;
        let visit = Visit { app, args, inbox: inbox::Inbox::default() };
        self.stasis.visits.insert(id, visit);
        self.stasis_tell_start(id, None);
        Ok(())
    }
    /// Gives a channel from one program to another. When that is not there the first one keeps it and is told.
    pub fn stasis_move(&mut self, id: ChannelId, app: &str, args: Vec<String>) -> bool {
        let Some(from) = self.stasis.visits.get(&id).map(|visit| visit.app.clone()) else { return false };
        let Ok(to) = self.stasis.active(app) else {
            let to = app.to_owned();
            self.stasis_tell(|core| {
                let channel = core.snapshot(id)?;
                Some(StasisNotice::MoveFailed { app: from, to, args, channel })
            });
            return false;
        };
        self.stasis_tell_end(id);
        if let Some(visit) = self.stasis.visits.get_mut(&id) {
            (visit.app, visit.args) = (to, args);
        }
        self.stasis.forget_if_idle(&from);
        self.stasis_tell_start(id, None);
        true
    }
    /// A program has a channel no more; it leaves the bridge of programs that it is in. Nothing when none had it.
    pub fn stasis_leave(&mut self, id: ChannelId) {
        if !self.stasis.visits.contains_key(&id) {
            return;
        }
        if self.stasis_bridge_of(id).is_some() {
            self.conference_leave(id);
        }
        self.stasis_sweep(id);
        self.stasis_tell_end(id);
        if let Some(visit) = self.stasis.visits.remove(&id) {
            self.stasis.forget_if_idle(&visit.app);
        }
    }
    /// Whether programs have both of two channels. Each then leaves one program and comes to another, or back to the same, so
    /// that it has to leave before it comes.
    fn stasis_has_both(&self, a: ChannelId, b: ChannelId) -> bool {
        [a, b].iter().all(|id| self.stasis.visits.contains_key(id))
    }
    /// Two channels change places: a program that had one of them hears that it has the other from here on, which comes with
    /// no word of its own. The story at the place goes on.
    pub(crate) fn stasis_takes_places(&mut self, a: ChannelId, b: ChannelId) {
        for (place, left) in [(a, b), (b, a)] {
            let Some(visit) = self.stasis.visits.get_mut(&place) else { continue };
            visit.args.clear();
            let app = visit.app.to_string();
            // Who was there shows where it was, and who has come where it was called, unless its own story wants that yet.
            if self.get(left).is_some_and(|channel| !channel.has_pbx) {
                let places = [place, left].map(|id| self.get(id).map(|channel| channel.location.clone()));
                let shown = self.get(place).map(|channel| (channel.app, channel.app_data.clone()));
                if let ([Some(here), Some(there)], Some((own_app, data))) = (places, shown) {
                    if let Some(channel) = self.get_mut(left) {
                        (channel.location, channel.app, channel.app_data) = (here, own_app, data);
                    }
                    if let Some(channel) = self.get_mut(place) {
                        (channel.location, channel.app, channel.app_data) = (there, "Stasis", app);
                    }
                }
            }
            if !self.stasis_has_both(a, b) {
                self.stasis_tell_start(place, Some(left));
            }
        }
    }
    /// The same once they have.
    pub(crate) fn stasis_exchanged(&mut self, a: ChannelId, b: ChannelId) {
        if !self.stasis.visits.contains_key(&a) && !self.stasis.visits.contains_key(&b) {
            return;
        }
        let places = [(a, b), (b, a)];
        for (place, left) in places {
            self.stasis_tell(|core| {
                let bridge = core.stasis_bridge_view(&core.stasis_bridge_of(place)?.id)?;
                Some(StasisNotice::BridgeLeft { bridge, channel: core.snapshot(left)? })
            });
        }
        if self.stasis_has_both(a, b) {
            self.stasis_tell_left(a, b);
            for (place, left) in places {
                self.stasis_tell_start(place, Some(left));
            }
        }
        for (place, _) in places {
            self.stasis_tell(|core| {
                let bridge = core.stasis_bridge_view(&core.stasis_bridge_of(place)?.id)?;
                Some(StasisNotice::BridgeEntered { bridge, channel: core.snapshot(place)? })
            });
        }
        self.stasis_pair_again(a);
        self.stasis_pair_again(b);
        let uniqueid = |id| self.get(id).map(|channel| Target::Channel(channel.uniqueid.clone()));
        if let Some((one, other)) = uniqueid(a).zip(uniqueid(b)) {
            self.stasis.swap_targets(&one, &other);
        }
    }
    /// The last word of it: whoever was there is the program's no more.
    pub(crate) fn stasis_left_places(&mut self, a: ChannelId, b: ChannelId) {
        if !self.stasis_has_both(a, b) {
            self.stasis_tell_left(a, b);
        }
    }
    fn stasis_tell_left(&mut self, a: ChannelId, b: ChannelId) {
        for (place, left) in [(a, b), (b, a)] {
            self.stasis_tell(|core| {
                let app = core.stasis.visits.get(&place)?.app.clone();
                Some(StasisNotice::End { app, channel: core.snapshot(left)? })
            });
        }
    }
    /// A program follows a channel that it has made, from what is told of it next on.
    pub fn stasis_follow(&mut self, app: &str, uniqueid: &str) {
        if !self.watched {
            return self.stasis.follow_channel(app, uniqueid);
        }
        let (app, uniqueid) = (Rc::from(app), Rc::from(uniqueid));
        self.stasis_tell(|_| Some(StasisNotice::Followed { app, uniqueid }));
    }
    pub(crate) fn stasis_tell(&mut self, notice: impl FnOnce(&Self) -> Option<StasisNotice>) {
        self.notice(|core| notice(core).map(|notice| Notice::Stasis(Box::new(notice))));
    }
    fn stasis_tell_start(&mut self, id: ChannelId, replaced: Option<ChannelId>) {
        self.stasis_tell(|core| {
            let visit = core.stasis.visits.get(&id)?;
            Some(StasisNotice::Start {
                app: visit.app.clone(),
                args: visit.args.clone(),
                channel: core.snapshot(id)?,
                replaced: replaced.and_then(|id| core.snapshot(id)),
            })
        });
    }
    fn stasis_tell_end(&mut self, id: ChannelId) {
        self.stasis_tell(|core| {
            let app = core.stasis.visits.get(&id)?.app.clone();
            Some(StasisNotice::End { app, channel: core.snapshot(id)? })
        });
    }
    /// The story of a channel looks at what has changed.
    pub(crate) fn stasis_rouse(&mut self, id: ChannelId) {
        // Once for all that has changed: many would make digits lose their places.
        let knows =
            |core: &Self| core.get(id).is_none_or(|channel| channel.events.contains(&ChanEvent::Stasis));
        if self.stasis.visits.contains_key(&id) && !knows(self) {
            self.push_event(id, ChanEvent::Stasis);
        }
    }
}
