//! Conferences: who is in a room, and what may be done about it.
//!
//! The room itself is a media worker's; here is who entered it under which name, whether it is locked, and who may not
//! be heard; `profile` and `menu` are what confbridge.conf says of them, `record` writes them down. A story enters with [`Core::conference_enter`] and leaves with [`Core::conference_leave`]; whoever watches
//! over conferences changes them by name, and the member's story learns of it by [`ChanEvent::Conference`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::{BridgeId, ChannelId, Command, Instant, MemberSettings, RoomId};

use crate::BridgeUse;
use crate::stasis::is_room_of_programs;
use crate::{ChanEvent, Core, Notice};

mod announcer;
mod documents;
mod menu;
mod profile;
mod record;
mod video;

pub use documents::DOCUMENT_TYPE;
pub(crate) use documents::Documents;
pub use menu::{Action, Menu, Step};
pub use profile::{
    BRIDGE_ROWS, Bookings, BridgeProfile, Field, OptionRow, Pins, Rooms, SFU, SOUND_ROWS, Sounds, USER_ROWS,
    UserProfile, row,
};
pub use record::{RecordPlan, RecordRefused};
pub use video::{VideoMode, VideoSeen};

/// Who a member of a conference is and may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seat {
    /// How it takes part in the mix, unless it waits or the participants are muted.
    pub mixing: MemberSettings,
    /// It may enter a locked conference and is not kicked out with the participants.
    pub is_admin: bool,
    /// Others may wait for it.
    pub is_marked: bool,
    /// It neither hears nor is heard while there is no marked member.
    pub waits_marked: bool,
    /// It leaves with the last marked member.
    pub ends_marked: bool,
    /// It leaves with any marked member.
    pub ends_marked_any: bool,
    /// Watchers are told when it begins and ceases to talk.
    pub tells_talking: bool,
    /// Texts of others do not reach it, nor its texts them.
    pub refuses_texts: bool,
    /// It is told what happens, where the conference tells it.
    pub reads_events: bool,
    /// But for what it does itself.
    pub misses_own_events: bool,
}

/// Who enters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guest {
    /// What it is and may do.
    pub seat: Seat,
    /// Name of its user profile.
    pub user: String,
    /// Name of its menu; empty: none.
    pub menu: String,
    /// A program has put it here: into a room of programs, which nobody else enters.
    pub is_of_program: bool,
}

impl From<Seat> for Guest {
    fn from(seat: Seat) -> Self {
        Self { seat, ..Self::default() }
    }
}

/// What a dialplan can name. `default_bridge` and `default_user` are always there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profiles {
    /// Bridge profiles by name.
    pub bridges: BTreeMap<String, Arc<BridgeProfile>>,
    /// User profiles by name.
    pub users: BTreeMap<String, Arc<UserProfile>>,
    /// Menus by name.
    pub menus: BTreeMap<String, Arc<Menu>>,
}

/// What the names of rooms begin with in which parties of a call talk together whom nobody put into a conference. Watchers
/// see the bridge of the call. No dialplan makes one by accident.
pub const TOGETHER: &str = "together-";

/// Who has made the extension of a conference.
const REGISTRAR: &str = "app_confbridge";

/// The bridge profile of those who name none.
pub const DEFAULT_BRIDGE: &str = "default_bridge";
/// The user profile of those who name none.
pub const DEFAULT_USER: &str = "default_user";
/// The menu of those who name none, if there is one of this name.
pub const DEFAULT_MENU: &str = "default_menu";

impl Profiles {
    /// The bridge profile of this name, which may be empty; `None` when there is none.
    pub fn bridge(&self, name: &str) -> Option<Arc<BridgeProfile>> {
        let name = if name.is_empty() { DEFAULT_BRIDGE } else { name };
        let default = || BridgeProfile { name: name.to_owned(), ..BridgeProfile::default() };
        self.bridges.get(name).cloned().or_else(|| (name == DEFAULT_BRIDGE).then(|| Arc::new(default())))
    }
    /// The user profile of this name, which may be empty; `None` when there is none.
    pub fn user(&self, name: &str) -> Option<Arc<UserProfile>> {
        let name = if name.is_empty() { DEFAULT_USER } else { name };
        let default = || UserProfile { name: name.to_owned(), ..UserProfile::default() };
        self.users.get(name).cloned().or_else(|| (name == DEFAULT_USER).then(|| Arc::new(default())))
    }
    /// All bridge profiles, by name.
    pub fn all_bridges(&self) -> BTreeMap<String, Arc<BridgeProfile>> {
        let default = self.bridge(DEFAULT_BRIDGE).map(|profile| (DEFAULT_BRIDGE.to_owned(), profile));
        self.bridges.clone().into_iter().chain(default).collect()
    }
    /// All user profiles, by name.
    pub fn all_users(&self) -> BTreeMap<String, Arc<UserProfile>> {
        let default = self.user(DEFAULT_USER).map(|profile| (DEFAULT_USER.to_owned(), profile));
        self.users.clone().into_iter().chain(default).collect()
    }
    /// The menu of this name, which may be empty; `None` when there is none.
    pub fn menu(&self, name: &str) -> Option<Arc<Menu>> {
        self.menus.get(if name.is_empty() { DEFAULT_MENU } else { name }).cloned()
    }
}

/// What a dialplan has made of profiles for one channel (`CONFBRIDGE()`), each in place of the default one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Custom {
    /// How the conference runs that it begins.
    pub bridge: Option<BridgeProfile>,
    /// How it takes part.
    pub user: Option<UserProfile>,
    /// What its keys do.
    pub menu: Option<Menu>,
}

/// One member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its channel.
    pub channel: ChannelId,
    /// The how many-th it was who came.
    pub number: u32,
    /// What it is and may do.
    pub seat: Seat,
    /// Name of its user profile.
    pub user: String,
    /// Name of its menu; empty: none.
    pub menu: String,
    /// It talks at present.
    pub talks: bool,
    /// It waits for a marked member.
    pub waits: bool,
    /// It has come in; before that it hears what it is greeted with.
    pub is_in: bool,
    /// It is elsewhere for a while, and hears and says nothing here.
    pub is_away: bool,
    /// When it entered.
    pub since: Instant,
    /// It is to leave; its story ends its stay.
    pub leaves: Option<Leaving>,
}

/// Why a member is to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// Somebody sent it out.
    Kicked,
    /// A marked member has left with whom it leaves.
    Marked,
}

/// One conference. It begins with its first member and ends with its last.
#[derive(Debug, Clone)]
pub struct Conference {
    /// Its name.
    pub name: String,
    /// Where it is mixed.
    pub room: RoomId,
    /// How it runs, as the latest who came would have it.
    pub profile: Arc<BridgeProfile>,
    /// What watchers see it as.
    pub bridge: BridgeId,
    /// Nobody but administrators may enter.
    pub is_locked: bool,
    /// An administrator has muted all others, and those who come later.
    pub mutes_participants: bool,
    /// When it began, microseconds since the Unix epoch.
    pub began: i64,
    /// Digits to enter with, where the first who came has chosen some.
    pub pin: String,
    /// In the order in which they came.
    pub members: Vec<Member>,
    /// When it ends, where that is fixed.
    pub ends: Option<Instant>,
    /// Somebody has asked for it by its name, so that watchers see a conference.
    is_listed: bool,
    /// Members that have come so far.
    came: u32,
    /// Context in which its extension is.
    registered_in: String,
    recording: Option<record::Recording>,
    announcer: Option<announcer::Announcer>,
    vision: video::Vision,
    /// Where it was recorded last: path and extension.
    recorded: Option<(String, String)>,
}

impl Conference {
    /// Whether it is a bridge of programs, of which managers and consoles hear as of other bridges.
    pub fn is_of_programs(&self) -> bool {
        is_room_of_programs(&self.name)
    }
    /// Whether nobody but administrators may be heard.
    pub fn is_muted(&self) -> bool {
        self.members.iter().all(|member| member.seat.is_admin || self.silences(member))
    }
    /// Whether a member is not heard by those who do not wait.
    pub fn silences(&self, member: &Member) -> bool {
        member.seat.mixing.muted || (self.mutes_participants && !member.seat.is_admin)
    }
    /// How many are marked.
    pub fn marked(&self) -> usize {
        self.members.iter().filter(|member| member.seat.is_marked).count()
    }
    /// How many do not wait.
    pub fn active(&self) -> usize {
        self.members.iter().filter(|member| !member.waits).count()
    }
    /// The file that it is being recorded to.
    pub fn recording(&self) -> Option<&str> {
        self.recording.as_ref().map(|recording| recording.file.as_str())
    }
    /// How a member takes part as things are.
    fn mixing(&self, member: &Member) -> MemberSettings {
        let own = member.seat.mixing;
        MemberSettings {
            muted: member.waits || member.is_away || self.silences(member),
            deaf: member.waits || member.is_away || own.deaf,
            ..own
        }
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
    /// Who came last, unless that is an administrator.
    Last,
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
#[derive(Default)]
pub struct Conferences {
    by_name: BTreeMap<String, Conference>,
    of_channel: BTreeMap<ChannelId, String>,
    /// Bridges in which those talk already who will be in the rooms of these names.
    adopted: BTreeMap<String, BridgeId>,
    /// Guests that conferences have had, for their names.
    guests: u32,
    /// What is to be written down once somebody is in the room, by name of the conference.
    unrecorded: BTreeMap<String, Command>,
    free: Vec<RoomId>,
    rooms: u32,
}

impl Conferences {
    /// All of them, by name, but for bridges of programs and of calls.
    pub fn iter(&self) -> impl Iterator<Item = &Conference> {
        self.by_name.values().filter(|conference| conference.is_listed)
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
        let last = conference.members.last().map(|member| member.channel);
        let meant = |member: &&Member| match which {
            Which::One(channel) => member.channel == channel,
            Which::All => true,
            Which::Participants => !member.seat.is_admin,
            Which::Last => !member.seat.is_admin && Some(member.channel) == last,
        };
        let ids: Vec<ChannelId> = conference.members.iter().filter(meant).map(|m| m.channel).collect();
        if ids.is_empty() { Err(NotThere::Member) } else { Ok(ids) }
    }
}

/// How somebody came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entered {
    /// Members in the conference, itself among them.
    pub count: usize,
    /// Of those, who do not wait.
    pub active: usize,
    /// It waits for a marked member.
    pub waits: bool,
    /// It is the first marked member, and somebody has waited.
    pub begins: bool,
    /// The conference began with it.
    pub is_first: bool,
}

/// What a member has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Name of the conference.
    pub conference: String,
    /// Members that are left.
    pub count: usize,
    /// It was the last marked one.
    pub was_last_marked: bool,
}

impl Core {
    /// Puts a channel into the conference of this name, which begins with it when there is none.
    pub fn conference_enter(
        &mut self,
        name: &str,
        id: ChannelId,
        guest: Guest,
        profile: &Arc<BridgeProfile>,
    ) -> Result<Entered, Refused> {
        let entered = self.conference_seat(name, id, guest, profile)?;
        if entered.is_first {
            self.conference_started(name);
        }
        self.conference_join(id);
        Ok(entered)
    }
    /// Gives a channel its place in the conference of this name, which begins with it when there is none. It is greeted
    /// before it comes in with [`Core::conference_join`]; of a conference that has begun watchers hear by
    /// [`Core::conference_started`].
    pub fn conference_seat(
        &mut self,
        name: &str,
        id: ChannelId,
        guest: Guest,
        profile: &Arc<BridgeProfile>,
    ) -> Result<Entered, Refused> {
        self.get(id).and_then(|channel| channel.stream).ok_or(Refused::NoMedia)?;
        if self.conferences.of(id).is_some() {
            return Err(Refused::NoMedia);
        }
        let Guest { seat, user, menu, is_of_program } = guest;
        if is_room_of_programs(name) != is_of_program {
            return Err(Refused::NoMedia);
        }
        let most = profile.members_max as usize;
        match self.conferences.get(name) {
            Some(conference) if conference.is_locked && !seat.is_admin => return Err(Refused::Locked),
            Some(conference) if most > 0 && conference.members.len() >= most && !seat.is_admin => {
                return Err(Refused::Full);
            }
            Some(_) => {}
            None => self.conference_begin(name, profile),
        }
        let since = self.now;
        let Some(conference) = self.conferences.by_name.get_mut(name) else { return Err(Refused::NoMedia) };
        let marked = conference.marked();
        let waits = seat.waits_marked && !seat.is_marked && marked == 0;
        let is_first = conference.members.is_empty();
        conference.came += 1;
        let number = conference.came;
        let member = Member {
            channel: id,
            number,
            seat,
            user,
            menu,
            talks: false,
            waits,
            is_in: false,
            is_away: false,
            since,
            leaves: None,
        };
        conference.profile = profile.clone();
        conference.members.push(member);
        self.conferences.of_channel.insert(id, name.to_owned());
        let begins = seat.is_marked && marked == 0 && self.conference_waiting(name, false);
        self.conference_rouse(name, id);
        let conference = self.conferences.by_name.get(name);
        let (count, active) = conference.map_or((0, 0), |c| (c.members.len(), c.active()));
        Ok(Entered { count, active, waits, begins, is_first })
    }
    /// Watchers hear that a conference has begun.
    pub fn conference_started(&mut self, name: &str) {
        self.notice(|core| {
            let found = core.conferences.get(name).filter(|conference| conference.is_listed)?;
            let bridge = core.bridge_snapshot(found.bridge)?;
            Some(Notice::ConferenceStart { conference: name.to_owned(), bridge })
        });
    }
    /// Lets a member come in that has its place already.
    pub fn conference_join(&mut self, id: ChannelId) {
        let Some(stream) = self.get(id).and_then(|channel| channel.stream) else { return };
        let Some(member) = self.conferences.member_mut(id).filter(|member| !member.is_in) else { return };
        member.is_in = true;
        let Some(conference) = self.conferences.of(id) else { return };
        let (name, bridge, room) = (conference.name.clone(), conference.bridge, conference.room);
        let mixing = conference.profile.mixing();
        if !self.bridge_members(bridge).contains(&id) {
            self.bridge_enter(bridge, id);
        }
        if let Some(member) = self.conference_mixing(id) {
            self.media(Command::Enter { stream, room, mixing, member });
        }
        if let Some(record) = self.conferences.unrecorded.remove(&name) {
            self.media(record);
        }
        self.conference_notice(id, MemberChange::Entered);
        self.conference_tell_newcomer(id);
        self.conference_show(&name);
    }
    /// Digits to enter a conference with from here on.
    pub fn conference_pin(&mut self, name: &str, pin: &str) {
        if let Some(conference) = self.conferences.by_name.get_mut(name) {
            pin.clone_into(&mut conference.pin);
        }
    }
    /// A conference ends at a time, unless that is fixed already.
    pub fn conference_ends(&mut self, name: &str, at: Instant) {
        if let Some(conference) = self.conferences.by_name.get_mut(name) {
            conference.ends.get_or_insert(at);
        }
    }
    /// Puts the end of a conference off; whether it has one.
    pub fn conference_extend(&mut self, name: &str, by: Duration) -> bool {
        let conference = self.conferences.by_name.get_mut(name);
        let ends = conference.and_then(|conference| conference.ends.as_mut());
        ends.map(|at| *at += by).is_some()
    }
    fn conference_begin(&mut self, name: &str, profile: &Arc<BridgeProfile>) {
        let is_listed = !is_room_of_programs(name) && !name.starts_with(TOGETHER);
        let adopted = self.conferences.adopted.remove(name);
        let bridge = match adopted.or_else(|| self.stasis_bridge_of_room(name)) {
            Some(bridge) => bridge,
            None if !is_listed => self.bridge_create(BridgeUse::Call, "", None),
            None => {
                self.touched_devices.push(format!("confbridge:{name}"));
                self.bridge_create(BridgeUse::Conference, name, None)
            }
        };
        let fresh = Conference {
            name: name.to_owned(),
            room: self.conferences.room(),
            profile: profile.clone(),
            bridge,
            is_locked: false,
            mutes_participants: false,
            began: self.services.wall.now_micros(),
            pin: String::new(),
            ends: None,
            members: Vec::new(),
            is_listed,
            came: 0,
            registered_in: profile.register_in.clone(),
            recording: None,
            announcer: None,
            vision: video::Vision::default(),
            recorded: None,
        };
        self.registered.add(&profile.register_in, name, REGISTRAR, name);
        self.conferences.by_name.insert(name.to_owned(), fresh);
        if is_listed {
            self.bridge_shows(bridge, profile.video.seen(), None);
            self.conference_announcer_comes(name);
        }
    }
    /// Two who talk are about to be in the room of this name, together with more: their bridge goes on there. `false`: they
    /// do not talk in one.
    pub fn conference_adopt(&mut self, name: &str, one: ChannelId) -> bool {
        let bridge = self.bridge_keep(one, true);
        self.conferences.adopted.extend(bridge.map(|bridge| (name.to_owned(), bridge)));
        bridge.is_some()
    }
    /// They have been let go, and talk in it from here on; or, where they are not `there`, it ends.
    pub fn conference_adopted(&mut self, name: &str, there: bool) {
        let Some(&bridge) = self.conferences.adopted.get(name) else { return };
        if let Some(entry) = self.bridge_mut(bridge) {
            (entry.is_kept, entry.pair) = (false, None);
        }
        if !there {
            self.conferences.adopted.remove(name);
            for id in self.bridge_members(bridge).to_vec() {
                self.bridge_leave(bridge, id);
            }
            self.bridge_destroy(bridge);
        }
    }
    /// Lets those who wait for marked members wait, or takes them in; whether that changed anything for anybody.
    fn conference_waiting(&mut self, name: &str, waits: bool) -> bool {
        let Some(conference) = self.conferences.by_name.get_mut(name) else { return false };
        let mut changed = Vec::new();
        for member in &mut conference.members {
            let is_meant = member.seat.waits_marked && !member.seat.is_marked && member.leaves.is_none();
            if is_meant && member.waits != waits {
                member.waits = waits;
                changed.push(member.channel);
            }
        }
        for id in &changed {
            self.conference_adjust(*id);
            self.push_event(*id, ChanEvent::Conference);
        }
        self.conference_show(name);
        !changed.is_empty()
    }
    /// Who is alone, or was until this member came or left, hears of it.
    fn conference_rouse(&mut self, name: &str, but: ChannelId) {
        let Some(conference) = self.conferences.by_name.get(name) else { return };
        if conference.active() > 2 {
            return;
        }
        let others = conference.members.iter().filter(|member| !member.waits && member.channel != but);
        for id in others.map(|member| member.channel).collect::<Vec<_>>() {
            self.push_event(id, ChanEvent::Conference);
        }
    }
    /// Tells the media plane how a member takes part as things are.
    fn conference_adjust(&mut self, id: ChannelId) {
        let Some(conference) = self.conferences.of(id) else { return };
        let is_in = |member: &&Member| member.channel == id && member.is_in;
        let Some(member) = conference.members.iter().find(is_in) else { return };
        let member = conference.mixing(member);
        if let Some(stream) = self.get(id).and_then(|channel| channel.stream) {
            self.media(Command::Adjust { stream, member });
        }
    }
    /// Puts a member into its room that was joined to another channel meanwhile.
    pub(crate) fn conference_seat_again(&mut self, id: ChannelId) {
        if self.conferences.member(id).is_none_or(|member| !member.is_in) {
            return;
        }
        let Some(conference) = self.conferences.of(id) else { return };
        let (room, mixing) = (conference.room, conference.profile.mixing());
        let stream = self.get(id).and_then(|channel| channel.stream);
        if let (Some(stream), Some(member)) = (stream, self.conference_mixing(id)) {
            self.media(Command::Enter { stream, room, mixing, member });
        }
    }
    /// How a member takes part as things are.
    pub(crate) fn conference_mixing(&self, id: ChannelId) -> Option<MemberSettings> {
        let conference = self.conferences.of(id)?;
        conference.members.iter().find(|member| member.channel == id).map(|member| conference.mixing(member))
    }
    /// Takes a channel out of its conference, which ends with its last member.
    pub fn conference_leave(&mut self, id: ChannelId) -> Option<Left> {
        let was_in = self.conferences.member(id)?.is_in;
        if was_in {
            self.conference_notice(id, MemberChange::Left);
        }
        let name = self.conferences.of_channel.remove(&id)?;
        if let Some(stream) = self.get(id).and_then(|channel| channel.stream).filter(|_| was_in) {
            self.media(Command::Part { stream });
        }
        let conference = self.conferences.by_name.get_mut(&name)?;
        let at = conference.members.iter().position(|member| member.channel == id)?;
        let was_marked = conference.members.remove(at).seat.is_marked;
        let (bridge, room, count) = (conference.bridge, conference.room, conference.members.len());
        let was_last_marked = was_marked && conference.marked() == 0;
        if was_in {
            self.bridge_leave(bridge, id);
            self.left_bridge_by_itself(id);
        }
        self.stasis_left_room(&name, id);
        self.conference_part_video(&name, id);
        if count == 0 {
            let is_listed = self.conferences.get(&name).is_some_and(|conference| conference.is_listed);
            if is_listed {
                let conference = name.clone();
                self.notice(|core| {
                    Some(Notice::ConferenceEnd { conference, bridge: core.bridge_snapshot(bridge)? })
                });
            }
            self.conference_record_end(&name);
            self.conference_announcer_falls_silent(&name);
            if let Some(ended) = self.conferences.by_name.remove(&name) {
                self.registered.remove(&ended.registered_in, &name, REGISTRAR, &name);
            }
            self.conferences.free.push(room);
            // One of a program's is there until the program takes it away.
            if is_listed {
                self.touched_devices.push(format!("confbridge:{name}"));
                self.conference_announcer_goes(&name, bridge);
            } else if !is_room_of_programs(&name) {
                self.bridge_destroy(bridge);
            }
        } else {
            if was_marked {
                self.conference_end_marked(&name, was_last_marked);
            }
            self.conference_rouse(&name, id);
        }
        Some(Left { conference: name, count, was_last_marked })
    }
    /// A marked member has left: who leaves with it does, and who waits for one waits.
    fn conference_end_marked(&mut self, name: &str, was_last: bool) {
        let Some(conference) = self.conferences.by_name.get_mut(name) else { return };
        let mut ended = Vec::new();
        for member in conference.members.iter_mut().filter(|member| member.leaves.is_none()) {
            if member.seat.ends_marked_any || (was_last && member.seat.ends_marked) {
                member.leaves = Some(Leaving::Marked);
                ended.push(member.channel);
            }
        }
        ended.into_iter().for_each(|id| self.push_event(id, ChanEvent::Conference));
        if was_last {
            self.conference_waiting(name, true);
        }
    }
    /// Changes how loud a member is for the others, or the others for it: a step of its key.
    pub fn conference_volume(&mut self, id: ChannelId, change: impl FnOnce(&mut MemberSettings)) {
        if let Some(member) = self.conferences.member_mut(id) {
            change(&mut member.seat.mixing);
            self.conference_adjust(id);
        }
    }
    /// A member is elsewhere for a while, or comes back.
    pub fn conference_away(&mut self, id: ChannelId, away: bool) {
        if let Some(member) = self.conferences.member_mut(id) {
            member.is_away = away;
            self.conference_adjust(id);
            if let Some(name) = self.conferences.of_channel.get(&id).cloned() {
                self.conference_show(&name);
            }
        }
    }
    /// Mutes all but administrators, and who comes later, or lets them be heard again.
    pub fn conference_mute_participants(&mut self, name: &str, muted: bool) -> Result<(), NotThere> {
        let conference = self.conferences.by_name.get_mut(name).ok_or(NotThere::Conference)?;
        conference.mutes_participants = muted;
        let participants = conference.members.iter().filter(|member| !member.seat.is_admin);
        for id in participants.map(|member| member.channel).collect::<Vec<_>>() {
            self.conference_adjust(id);
            self.conference_notice(id, if muted { MemberChange::Muted } else { MemberChange::Unmuted });
        }
        Ok(())
    }
    /// Mutes members, or lets them be heard again.
    pub fn conference_mute(&mut self, name: &str, which: Which, muted: bool) -> Result<(), NotThere> {
        let ids = self.conferences.select(name, which)?;
        // Who lets all be heard means those, too, who are not heard because a key has muted all.
        let lets_all = !muted && !matches!(which, Which::One(_));
        if lets_all && self.conferences.get(name).is_some_and(|conference| conference.mutes_participants) {
            self.conference_mute_participants(name, false)?;
        }
        for id in ids {
            let Some(member) = self.conferences.member_mut(id) else { continue };
            if member.seat.mixing.muted == muted {
                continue;
            }
            member.seat.mixing.muted = muted;
            self.conference_adjust(id);
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
                member.leaves = Some(Leaving::Kicked);
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
        self.conference_tell(id, change);
        self.notice(|core| {
            let conference = core.conferences.of(id).filter(|conference| conference.is_listed)?;
            let member = conference.members.iter().find(|member| member.channel == id)?;
            Some(Notice::ConferenceMember {
                conference: conference.name.clone(),
                bridge: core.bridge_snapshot(conference.bridge)?,
                channel: core.snapshot(id)?,
                is_admin: member.seat.is_admin,
                is_muted: conference.silences(member),
                change,
            })
        });
    }
}
