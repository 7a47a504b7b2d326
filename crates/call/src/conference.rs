//! Conferences: who is in a room, and what may be done about it.
//!
//! The room itself is a media worker's; here is who entered it under which name, whether it is locked, and who may not
//! be heard. A story enters with [`Core::conference_enter`] and leaves with [`Core::conference_leave`]; whoever watches
//! over conferences changes them by name, and the member's story learns of it by [`ChanEvent::Conference`].

use std::collections::BTreeMap;

use base::{BridgeId, ChannelId, Clip, Command, Instant, MemberSettings, RoomId, RoomSettings};

use crate::{ChanEvent, Core, Notice};

/// Who a member of a conference is and may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seat {
    /// How it takes part in the mix.
    pub mixing: MemberSettings,
    /// It may enter a locked conference and is not kicked out with the participants.
    pub is_admin: bool,
    /// Watchers are told when it begins and ceases to talk.
    pub tells_talking: bool,
}

/// A bridge profile: how conferences mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BridgeProfile {
    /// How the room is mixed.
    pub mixing: RoomSettings,
    /// Most members; 0: no limit.
    pub members_max: usize,
}

/// A user profile: how somebody takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserProfile {
    /// What it is and may do.
    pub seat: Seat,
    /// It is told when it is alone.
    pub hears_that_it_is_alone: bool,
    /// Nobody hears a sound when it comes and goes.
    pub is_quiet: bool,
}

impl Default for UserProfile {
    fn default() -> Self {
        Self { seat: Seat::default(), hears_that_it_is_alone: true, is_quiet: false }
    }
}

/// The profiles that a dialplan can name. `default_bridge` and `default_user` are always there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profiles {
    /// Bridge profiles by name.
    pub bridges: BTreeMap<String, BridgeProfile>,
    /// User profiles by name.
    pub users: BTreeMap<String, UserProfile>,
}

/// The bridge profile of those who name none.
pub const DEFAULT_BRIDGE: &str = "default_bridge";
/// The user profile of those who name none.
pub const DEFAULT_USER: &str = "default_user";

impl Profiles {
    /// The bridge profile of this name, which may be empty; `None` when there is none.
    pub fn bridge(&self, name: &str) -> Option<BridgeProfile> {
        let name = if name.is_empty() { DEFAULT_BRIDGE } else { name };
        self.bridges.get(name).copied().or_else(|| (name == DEFAULT_BRIDGE).then(BridgeProfile::default))
    }
    /// The user profile of this name, which may be empty; `None` when there is none.
    pub fn user(&self, name: &str) -> Option<UserProfile> {
        let name = if name.is_empty() { DEFAULT_USER } else { name };
        self.users.get(name).copied().or_else(|| (name == DEFAULT_USER).then(UserProfile::default))
    }
}

/// One member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its channel.
    pub channel: ChannelId,
    /// What it is and may do.
    pub seat: Seat,
    /// It talks at present.
    pub talks: bool,
    /// When it entered.
    pub since: Instant,
    /// Somebody sent it out; its story ends its stay.
    pub is_kicked: bool,
}

/// One conference. It begins with its first member and ends with its last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conference {
    /// Its name.
    pub name: String,
    /// Where it is mixed.
    pub room: RoomId,
    /// How it is mixed.
    pub mixing: RoomSettings,
    /// What watchers see it as.
    pub bridge: BridgeId,
    /// Nobody but administrators may enter.
    pub is_locked: bool,
    /// In the order in which they came.
    pub members: Vec<Member>,
}

impl Conference {
    /// Whether nobody but administrators may be heard.
    pub fn is_muted(&self) -> bool {
        self.members.iter().all(|member| member.seat.is_admin || member.seat.mixing.muted)
    }
}

/// Which members something is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// This one.
    One(ChannelId),
    /// All.
    All,
    /// All but administrators.
    Participants,
}

/// Why somebody may not enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It is locked.
    Locked,
    /// It has as many members as it may have.
    Full,
    /// The channel has no media, or is in a conference already.
    NoMedia,
}

/// What is to be done cannot be: there is no such conference, or no such member in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotThere {
    /// No conference of this name.
    Conference,
    /// Nobody in it is meant.
    Member,
}

/// What watchers are told of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberChange {
    /// It entered.
    Entered,
    /// It left.
    Left,
    /// It is not heard any more.
    Muted,
    /// It is heard again.
    Unmuted,
    /// It began or ceased to talk.
    Talking(bool),
}

/// All conferences.
#[derive(Debug, Default)]
pub struct Conferences {
    by_name: BTreeMap<String, Conference>,
    of_channel: BTreeMap<ChannelId, String>,
    free: Vec<RoomId>,
    rooms: u32,
}

impl Conferences {
    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Conference> {
        self.by_name.values()
    }
    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Conference> {
        self.by_name.get(name)
    }
    /// The one that a channel is in.
    pub fn of(&self, channel: ChannelId) -> Option<&Conference> {
        self.by_name.get(self.of_channel.get(&channel)?)
    }
    /// What a channel is in its conference.
    pub fn member(&self, channel: ChannelId) -> Option<&Member> {
        self.of(channel)?.members.iter().find(|member| member.channel == channel)
    }
    fn member_mut(&mut self, channel: ChannelId) -> Option<&mut Member> {
        let conference = self.by_name.get_mut(self.of_channel.get(&channel)?)?;
        conference.members.iter_mut().find(|member| member.channel == channel)
    }
    /// A room that nobody is in.
    fn room(&mut self) -> RoomId {
        match self.free.pop() {
            Some(RoomId { slot, generation }) => RoomId::new(slot, generation.wrapping_add(1)),
            None => {
                self.rooms += 1;
                RoomId::new(self.rooms - 1, 0)
            }
        }
    }
    fn select(&self, name: &str, which: Which) -> Result<Vec<ChannelId>, NotThere> {
        let conference = self.by_name.get(name).ok_or(NotThere::Conference)?;
        let meant = |member: &&Member| match which {
            Which::One(channel) => member.channel == channel,
            Which::All => true,
            Which::Participants => !member.seat.is_admin,
        };
        let ids: Vec<ChannelId> = conference.members.iter().filter(meant).map(|m| m.channel).collect();
        if ids.is_empty() { Err(NotThere::Member) } else { Ok(ids) }
    }
}

impl Core {
    /// Puts a channel into the conference of this name, which begins with it when there is none; how many are in it then.
    /// At most `most` are (0: no limit).
    pub fn conference_enter(
        &mut self,
        name: &str,
        id: ChannelId,
        seat: Seat,
        mixing: RoomSettings,
        most: usize,
    ) -> Result<usize, Refused> {
        let stream = self.get(id).and_then(|channel| channel.stream).ok_or(Refused::NoMedia)?;
        if self.conferences.of(id).is_some() {
            return Err(Refused::NoMedia);
        }
        match self.conferences.get(name) {
            Some(conference) if conference.is_locked && !seat.is_admin => return Err(Refused::Locked),
            Some(conference) if most > 0 && conference.members.len() >= most => return Err(Refused::Full),
            Some(_) => {}
            None => {
                let bridge = self.bridge_create("ConfBridge");
                let room = self.conferences.room();
                let fresh = Conference {
                    name: name.to_owned(),
                    room,
                    mixing,
                    bridge,
                    is_locked: false,
                    members: Vec::new(),
                };
                self.conferences.by_name.insert(name.to_owned(), fresh);
                let conference = name.to_owned();
                self.notice(|_| Some(Notice::ConferenceStart { conference, bridge }));
            }
        }
        let since = self.now;
        let Some(conference) = self.conferences.by_name.get_mut(name) else { return Err(Refused::NoMedia) };
        conference.members.push(Member { channel: id, seat, talks: false, since, is_kicked: false });
        let (bridge, room, count) = (conference.bridge, conference.room, conference.members.len());
        self.conferences.of_channel.insert(id, name.to_owned());
        self.bridge_enter(bridge, id);
        self.media(Command::Enter { stream, room, mixing, member: seat.mixing });
        self.conference_notice(id, MemberChange::Entered);
        Ok(count)
    }
    /// Takes a channel out of its conference, which ends with its last member; the conference's name and how many are left.
    pub fn conference_leave(&mut self, id: ChannelId) -> Option<(String, usize)> {
        self.conferences.of(id)?;
        self.conference_notice(id, MemberChange::Left);
        let name = self.conferences.of_channel.remove(&id)?;
        if let Some(stream) = self.get(id).and_then(|channel| channel.stream) {
            self.media(Command::Part { stream });
        }
        let conference = self.conferences.by_name.get_mut(&name)?;
        conference.members.retain(|member| member.channel != id);
        let (bridge, room, left) = (conference.bridge, conference.room, conference.members.len());
        self.bridge_leave(bridge, id);
        if left == 0 {
            self.conferences.by_name.remove(&name);
            self.conferences.free.push(room);
            let conference = name.clone();
            self.notice(|_| Some(Notice::ConferenceEnd { conference, bridge }));
            self.bridge_destroy(bridge);
        }
        Some((name, left))
    }
    /// Lets everyone in the conference that a channel is in hear a linear clip.
    pub fn conference_announce(&mut self, name: &str, clip: std::sync::Arc<Clip>) {
        if let Some(room) = self.conferences.get(name).map(|conference| conference.room) {
            self.media(Command::Announce { room, clip });
        }
    }
    /// Mutes members, or lets them be heard again.
    pub fn conference_mute(&mut self, name: &str, which: Which, muted: bool) -> Result<(), NotThere> {
        for id in self.conferences.select(name, which)? {
            let Some(member) = self.conferences.member_mut(id) else { continue };
            if member.seat.mixing.muted == muted {
                continue;
            }
            member.seat.mixing.muted = muted;
            let mixing = member.seat.mixing;
            if let Some(stream) = self.get(id).and_then(|channel| channel.stream) {
                self.media(Command::Adjust { stream, member: mixing });
            }
            let change = if muted { MemberChange::Muted } else { MemberChange::Unmuted };
            self.conference_notice(id, change);
            self.push_event(id, ChanEvent::Conference);
        }
        Ok(())
    }
    /// Sends members out.
    pub fn conference_kick(&mut self, name: &str, which: Which) -> Result<(), NotThere> {
        for id in self.conferences.select(name, which)? {
            if let Some(member) = self.conferences.member_mut(id) {
                member.is_kicked = true;
                self.push_event(id, ChanEvent::Conference);
            }
        }
        Ok(())
    }
    /// Locks a conference, or opens it again.
    pub fn conference_lock(&mut self, name: &str, locked: bool) -> Result<(), NotThere> {
        let conference = self.conferences.by_name.get_mut(name).ok_or(NotThere::Conference)?;
        conference.is_locked = locked;
        Ok(())
    }
    /// A worker's word on who talks.
    pub(crate) fn conference_talking(&mut self, id: ChannelId, talks: bool) {
        let Some(member) = self.conferences.member_mut(id) else { return };
        member.talks = talks;
        if member.seat.tells_talking {
            self.conference_notice(id, MemberChange::Talking(talks));
        }
    }
    fn conference_notice(&mut self, id: ChannelId, change: MemberChange) {
        self.notice(|core| {
            let conference = core.conferences.of(id)?;
            let member = conference.members.iter().find(|member| member.channel == id)?;
            Some(Notice::ConferenceMember {
                conference: conference.name.clone(),
                bridge: conference.bridge,
                count: conference.members.len(),
                channel: core.snapshot(id)?,
                is_admin: member.seat.is_admin,
                is_muted: member.seat.mixing.muted,
                change,
            })
        });
    }
}
