//! Bridges that programs have made. Their channels sit in a room of the conferences, of which nobody else hears; who is in it
//! is the conference's to know, and what programs see of it is here.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use base::{BridgeId, ChannelId, MemberSettings, RoomId};

use super::guests::{Guest, GuestKind};
use super::{BridgeView, Stasis, StasisError, StasisNotice, Target, WORKS_MAX};
use crate::conference::{self, BridgeProfile, Seat};
use crate::{BridgeUse, CelKind, ChanEvent, Core, VideoChoice};

/// Most bridges at once: one for every two channels of a large site.
pub const BRIDGES_MAX: usize = 16_384;
/// Most channels in one: what a worker mixes with ease.
pub const MEMBERS_MAX: usize = 1024;
/// Longest id or name that a client gives, bytes.
pub const ID_BYTES_MAX: usize = 128;
/// Most variables of one bridge.
pub const BRIDGE_VARIABLES_MAX: usize = 256;
/// What the names of programs' rooms begin with. No dialplan enters such a room.
pub const ROOM_PREFIX: &str = "\u{1}ari:";

/// Rooms that are gone and of which nobody has asked, before they are looked for.
const ROOMS_KEPT: usize = 64;

/// Whether a conference of this name is a bridge of programs.
pub fn is_room_of_programs(name: &str) -> bool {
    name.starts_with(ROOM_PREFIX)
}

/// How channels in a bridge hear each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BridgeKind {
    /// All hear all.
    #[default]
    Mixing,
    /// All hear music, or those who announce something.
    Holding,
}

impl BridgeKind {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixing => "mixing",
            Self::Holding => "holding",
        }
    }
}

/// A bridge that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewBridge {
    /// Its id; `None` makes one.
    pub id: Option<String>,
    /// Its name.
    pub name: String,
    /// How channels in it hear each other.
    pub kind: BridgeKind,
    /// Programs hear of digits in it. They always do; it is kept to be shown.
    pub dtmf_events: bool,
    /// Media goes through here. It always does; it is kept to be shown.
    pub proxy_media: bool,
    /// How whose video is seen is chosen.
    pub video: VideoChoice,
    /// Its variables, by their names.
    pub variables: BTreeMap<String, ToldVariable>,
}

/// A variable of a bridge, and one that a channel is to have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToldVariable {
    /// Its value.
    pub value: String,
    /// Whether it is told with whatever has it; `None`: as before.
    pub is_told: Option<bool>,
}

/// A channel in a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgeMember {
    /// The channel.
    pub channel: ChannelId,
    /// In a holding bridge: all others hear it instead of music.
    pub announces: bool,
    /// Its digits are not passed on to the others.
    pub absorbs_digits: bool,
    /// The others do not hear it.
    pub is_muted: bool,
    /// The others are not shown who it is.
    pub is_quiet: bool,
}

impl BridgeMember {
    /// One that takes part as most do.
    pub fn new(channel: ChannelId) -> Self {
        Self { channel, announces: false, absorbs_digits: false, is_muted: false, is_quiet: false }
    }
}

/// A bridge that a program has made. It is there until a program takes it away.
#[derive(Debug)]
pub struct ProgramBridge {
    /// Its id.
    pub id: Rc<str>,
    /// Its name.
    pub name: String,
    /// How channels in it hear each other.
    pub kind: BridgeKind,
    /// Programs hear of digits in it.
    pub dtmf_events: bool,
    /// Media goes through here.
    pub proxy_media: bool,
    /// When it was made, microseconds since the Unix epoch.
    pub created_wall: i64,
    /// Channels in it, in the order in which they came.
    pub members: Vec<BridgeMember>,
    /// The class of music that its channels hear while nothing is played to it; `None`: none, but for a holding bridge, which plays its channels' own.
    pub music: Option<String>,
    /// The story that plays it to a mixing one.
    pub music_story: u32,
    /// Sounds that play or wait, in order.
    plays: VecDeque<Rc<str>>,
    has_player: bool,
    /// Whose user holds the others.
    held_by: Option<ChannelId>,
    /// The two who hear each other directly, out of the room.
    pub(super) direct: Option<[ChannelId; 2]>,
    /// Its number among all bridges.
    pub(super) core: BridgeId,
    pub(super) guests: Vec<Guest>,
    pub(crate) recording: Option<Rc<str>>,
    /// How whose video is seen is chosen.
    pub video: VideoChoice,
    /// Whose video it is, where a program has named somebody.
    video_source: Option<ChannelId>,
    /// Its variables, which are no channel's.
    variables: BTreeMap<String, ToldVariable>,
}

impl ProgramBridge {
    /// The name of its room.
    pub fn room(&self) -> String {
        room_of(&self.id)
    }
    /// The music that a channel in it hears while nothing else is played to it; an empty class is the channel's own. Who is told
    /// that it is held needs none for that.
    pub fn music_for(&self, id: ChannelId, is_told_held: bool) -> Option<String> {
        if !self.plays.is_empty() {
            return None;
        }
        let announces = |member: &BridgeMember| member.announces;
        let is_told = self.members.iter().any(announces);
        let is_announcer = self.members.iter().any(|member| member.channel == id && announces(member));
        match self.kind {
            BridgeKind::Holding if is_told || is_announcer => None,
            BridgeKind::Holding => Some(self.music.clone().unwrap_or_default()),
            // Who is held by one of two hears music; among several nobody knows who holds whom.
            BridgeKind::Mixing if self.holds(id) && !is_told_held => {
                Some(self.music.clone().unwrap_or_default())
            }
            // What all hear is played to the room, beside what they say.
            BridgeKind::Mixing => None,
        }
    }
    /// The other one of two holds it.
    fn holds(&self, id: ChannelId) -> bool {
        self.members.len() == 2 && self.held_by.is_some_and(|by| by != id)
    }
    /// Something is played to all.
    pub fn is_told(&self) -> bool {
        self.has_plays()
    }
    /// The same, or waits for that.
    pub(super) fn has_plays(&self) -> bool {
        !self.plays.is_empty()
    }
    /// A recording of it runs or waits.
    pub fn recording(&self) -> Option<&str> {
        self.recording.as_deref()
    }
}

fn room_of(id: &str) -> String {
    format!("{ROOM_PREFIX}{id}")
}

impl Stasis {
    /// The bridge of this id.
    pub fn bridge(&self, id: &str) -> Option<&ProgramBridge> {
        self.bridges.get(id)
    }
    /// All bridges that programs have made.
    pub fn bridges(&self) -> impl Iterator<Item = &ProgramBridge> {
        self.bridges.values()
    }
}

impl Core {
    /// Makes a bridge; its id.
    ///
    /// Errors: the id is too long (`BadRequest`), it is taken (`Conflict`), there are too many (`Internal`).
    pub fn stasis_bridge_create(&mut self, new: NewBridge) -> Result<Rc<str>, StasisError> {
        let is_bad = |text: &str| text.len() > ID_BYTES_MAX || text.chars().any(char::is_control);
        if is_bad(&new.name) || new.id.as_deref().is_some_and(|id| is_bad(id) || id.is_empty()) {
            return Err(StasisError::BadRequest("ids and names have 1 to 128 bytes".into()));
        }
        if self.stasis.bridges.len() >= BRIDGES_MAX {
            return Err(StasisError::full());
        }
        let id: Rc<str> = match new.id {
            Some(id) => id.into(),
            None => self.stasis_new_id().into(),
        };
        if self.stasis.bridges.contains_key(&id) {
            return Err(StasisError::Conflict(format!("Bridge with id '{id}' already exists").into()));
        }
        if new.variables.len() > BRIDGE_VARIABLES_MAX {
            return Err(StasisError::BadRequest("too many variables".into()));
        }
        let used_for = BridgeUse::Program { holds: new.kind == BridgeKind::Holding, video: new.video };
        let core = self.bridge_create(used_for, &new.name, Some(&id));
        self.stasis_room_made(core);
        let bridge = ProgramBridge {
            id: id.clone(),
            name: new.name,
            kind: new.kind,
            dtmf_events: new.dtmf_events,
            proxy_media: new.proxy_media,
            created_wall: self.services.wall.now_micros(),
            members: Vec::new(),
            music: None,
            music_story: 0,
            plays: VecDeque::new(),
            has_player: false,
            held_by: None,
            direct: None,
            core,
            guests: Vec::new(),
            recording: None,
            video: new.video,
            video_source: None,
            variables: new.variables,
        };
        self.stasis.bridges.insert(id.clone(), bridge);
        self.stasis_tell(|core| Some(StasisNotice::BridgeCreated(core.stasis_bridge_view(&id)?)));
        Ok(id)
    }
    /// An id that nobody has given, in the shape that clients know.
    pub fn stasis_new_id(&mut self) -> String {
        let (high, low) = (self.random(), self.random());
        let [a, b, c] = [high >> 32, high >> 16 & 0xFFFF, high & 0x0FFF];
        let [d, e] = [low >> 48 & 0x3FFF | 0x8000, low & 0xFFFF_FFFF_FFFF];
        format!("{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
    }
    /// Sets variables of a bridge.
    ///
    /// Errors: no such bridge (`NotFound`), too many (`Internal`).
    pub fn stasis_bridge_set(
        &mut self,
        id: &str,
        variables: impl IntoIterator<Item = (String, ToldVariable)>,
    ) -> Result<(), StasisError> {
        let bridge = self.stasis.bridges.get_mut(id).ok_or_else(StasisError::no_bridge)?;
        for (name, variable) in variables {
            if bridge.variables.len() >= BRIDGE_VARIABLES_MAX && !bridge.variables.contains_key(&name) {
                return Err(StasisError::full());
            }
            let known = bridge.variables.entry(name).or_default();
            known.value = variable.value;
            known.is_told = variable.is_told.or(known.is_told);
        }
        Ok(())
    }
    /// A variable of a bridge.
    pub fn stasis_bridge_get(&self, id: &str, name: &str) -> Option<&str> {
        self.stasis.bridges.get(id)?.variables.get(name).map(|variable| &*variable.value)
    }
    /// The video of one channel is seen in a bridge from here on (`Some`), or that of who talks.
    ///
    /// Errors: no such bridge (`NotFound`), the channel is not in it (`Unprocessable`).
    pub fn stasis_bridge_shows(&mut self, id: &str, source: Option<ChannelId>) -> Result<(), StasisError> {
        let bridge = self.stasis.bridges.get_mut(id).ok_or_else(StasisError::no_bridge)?;
        if source.is_some_and(|source| bridge.members.iter().all(|member| member.channel != source)) {
            return Err(StasisError::Unprocessable("Channel not in this bridge".into()));
        }
        bridge.video = if source.is_some() { VideoChoice::Single } else { VideoChoice::Talker };
        let before = core::mem::replace(&mut bridge.video_source, source);
        let (core, seen) = (bridge.core, bridge.video);
        self.bridge_sees(core, seen);
        if source.is_some() && before != source {
            let old = before.and_then(|before| self.get(before)).map(|channel| channel.uniqueid.clone());
            self.stasis_tell(|core| {
                Some(StasisNotice::VideoSource { bridge: core.stasis_bridge_view(id)?, old })
            });
        }
        Ok(())
    }
    /// Takes a bridge away; its channels stay with their programs.
    pub fn stasis_bridge_destroy(&mut self, id: &str) -> Result<(), StasisError> {
        let bridge = self.stasis.bridges.get_mut(id).ok_or_else(StasisError::no_bridge)?;
        let members: Vec<ChannelId> = bridge.members.iter().map(|member| member.channel).collect();
        let (plays, recording) = (core::mem::take(&mut bridge.plays), bridge.recording.take());
        for play in plays {
            self.stasis_steer_playback(&play, None);
        }
        if let Some(recording) = recording {
            // It may have been ended a moment ago.
            let _ = self.stasis_stop_recording(&recording, true);
        }
        for member in members {
            self.conference_leave(member);
            self.stasis_rouse(member);
        }
        let view = self.stasis_bridge_view(id);
        if let Some(bridge) = self.stasis.bridges.remove(id) {
            self.bridge_destroy(bridge.core);
        }
        self.stasis_tell(|_| view.map(StasisNotice::BridgeDestroyed));
        Ok(())
    }
    /// The bridge of programs that a channel is in.
    pub fn stasis_bridge_of(&self, id: ChannelId) -> Option<&ProgramBridge> {
        let name = &self.conferences.of(id)?.name;
        self.stasis.bridges.get(name.strip_prefix(ROOM_PREFIX)?)
    }
    /// The bridge of programs that watchers of calls know by this number.
    pub fn stasis_bridge_with(&self, bridge: BridgeId) -> Option<&ProgramBridge> {
        let uid = self.bridge_snapshot(bridge)?.uid;
        self.stasis.bridges.get(&uid).filter(|program| program.core == bridge)
    }
    /// Where a bridge is mixed; `None` while nobody is in it.
    pub fn stasis_bridge_room(&self, id: &str) -> Option<RoomId> {
        self.conferences.get(&room_of(id)).map(|conference| conference.room)
    }
    /// Puts a channel that a program has into a bridge, out of the one that it is in.
    ///
    /// Errors: no such bridge or channel (`NotFound`), no program has the channel (`Conflict`), the bridge is full
    /// (`Internal`), the channel has no media (`Unprocessable`).
    pub fn stasis_bridge_enter(&mut self, id: &str, member: BridgeMember) -> Result<(), StasisError> {
        let channel = member.channel;
        let bridge = self.stasis.bridges.get(id).ok_or_else(StasisError::no_bridge)?;
        self.stasis_stays(channel)?;
        if bridge.members.iter().any(|known| known.channel == channel) {
            return Ok(());
        }
        if bridge.members.len() >= MEMBERS_MAX {
            return Err(StasisError::full());
        }
        let muted = match bridge.kind {
            BridgeKind::Mixing => member.is_muted,
            BridgeKind::Holding => !member.announces,
        };
        if self.stasis_bridge_of(channel).is_some() {
            self.conference_leave(channel);
        }
        let mixing = MemberSettings { muted, ..MemberSettings::default() };
        let guest = conference::Guest {
            seat: Seat { mixing, ..Seat::default() },
            is_of_program: true,
            ..conference::Guest::default()
        };
        let profile = Arc::new(BridgeProfile::default());
        // It is there when its entry is told of.
        if let Some(bridge) = self.stasis.bridges.get_mut(id) {
            bridge.members.push(member);
        }
        if self.conference_enter(&room_of(id), channel, guest, &profile).is_err() {
            if let Some(bridge) = self.stasis.bridges.get_mut(id) {
                bridge.members.retain(|member| member.channel != channel);
            }
            return Err(StasisError::Unprocessable("the channel has no media, or is elsewhere".into()));
        }
        self.stasis_show_parties(id);
        self.stasis_bridge_changed(id);
        Ok(())
    }
    /// Takes a channel out of a bridge.
    ///
    /// Errors: no such bridge (`NotFound`), the channel is not in it (`Unprocessable`).
    pub fn stasis_bridge_leave(&mut self, id: &str, channel: ChannelId) -> Result<(), StasisError> {
        let bridge = self.stasis.bridges.get(id).ok_or_else(StasisError::no_bridge)?;
        if !bridge.members.iter().any(|member| member.channel == channel) {
            return Err(StasisError::Unprocessable("Channel not in this bridge".into()));
        }
        self.conference_leave(channel);
        self.stasis_rouse(channel);
        Ok(())
    }
    /// Two who are alone in a bridge learn who the other is.
    fn stasis_show_parties(&mut self, id: &str) {
        let Some(bridge) = self.stasis.bridges.get(id).filter(|b| b.kind == BridgeKind::Mixing) else {
            return;
        };
        let members = bridge.members.clone();
        if members.len() != 2 {
            return;
        }
        for member in members.iter().filter(|member| !member.is_quiet) {
            let party = self.get(member.channel).map(|channel| channel.caller.clone()).unwrap_or_default();
            self.push_event(member.channel, ChanEvent::ConnectedLine(Box::new(party)));
        }
    }
    /// The bridge whose room has this name; `None`: it is no program's.
    pub(crate) fn stasis_bridge_of_room(&self, room: &str) -> Option<BridgeId> {
        Some(self.stasis.bridges.get(room.strip_prefix(ROOM_PREFIX)?)?.core)
    }
    /// A channel has entered a bridge; where that is one of programs, they hear of it.
    pub(crate) fn stasis_entered(&mut self, bridge: BridgeId, channel: ChannelId) {
        let Some(id) = self.stasis_bridge_with(bridge).map(|bridge| bridge.id.clone()) else { return };
        self.stasis_tell(|core| {
            let (bridge, channel) = (core.stasis_bridge_view(&id)?, core.snapshot(channel)?);
            Some(StasisNotice::BridgeEntered { bridge, channel })
        });
    }
    /// A room was made, which is `bridge` to watchers of calls.
    pub(crate) fn stasis_room_made(&mut self, bridge: BridgeId) {
        if self.stasis.rooms.len() > 2 * self.stasis.bridges.len() + ROOMS_KEPT {
            let alive: Vec<BridgeId> = self.bridges().map(|(id, _)| id).collect();
            self.stasis.rooms.retain(|id| alive.contains(id));
        }
        self.stasis.rooms.insert(bridge);
    }
    /// A channel has left a room; where that is a bridge of programs, they hear of it.
    pub(crate) fn stasis_left_room(&mut self, room: &str, channel: ChannelId) {
        let Some(id) = room.strip_prefix(ROOM_PREFIX) else { return };
        let Some(bridge) = self.stasis.bridges.get_mut(id) else { return };
        bridge.members.retain(|member| member.channel != channel);
        bridge.held_by = bridge.held_by.filter(|by| *by != channel);
        if bridge.video_source.take_if(|source| *source == channel).is_some() {
            self.stasis_tell(|core| {
                let (bridge, source) = (core.stasis_bridge_view(id)?, core.get(channel)?);
                Some(StasisNotice::VideoSource { bridge, old: Some(source.uniqueid.clone()) })
            });
        }
        self.stasis_tell(|core| {
            let (bridge, channel) = (core.stasis_bridge_view(id)?, core.snapshot(channel)?);
            Some(StasisNotice::BridgeLeft { bridge, channel })
        });
        let core = self.stasis.bridges.get(id).map(|bridge| bridge.core);
        self.stasis_bridge_changed(id);
        if let Some(core) = core {
            self.bridge_rechosen(core);
        }
    }
    /// Who hears whom is brought up to date, channels in a bridge look at what they hear, and its recording at whether there is somebody to record.
    pub(crate) fn stasis_bridge_changed(&mut self, id: &str) {
        self.stasis_settle_bridge(id);
        let Some(bridge) = self.stasis.bridges.get(id) else { return };
        let members: Vec<ChannelId> = bridge.members.iter().map(|member| member.channel).collect();
        let recording = bridge.recording.as_ref().and_then(|name| self.stasis.recordings.get(name));
        let waiter = recording.and_then(|recording| recording.waiter);
        self.woken.extend(waiter);
        members.into_iter().for_each(|member| self.stasis_rouse(member));
    }
    /// The user of a channel in a bridge holds the other one there, or does no more.
    pub fn stasis_bridge_held(&mut self, by: ChannelId, holds: bool) {
        let Some(id) = self.stasis_bridge_of(by).map(|bridge| bridge.id.clone()) else { return };
        if let Some(bridge) = self.stasis.bridges.get_mut(&id) {
            bridge.held_by = holds.then_some(by).or(bridge.held_by.filter(|held| *held != by));
        }
        self.stasis_bridge_changed(&id);
    }
    /// Channels in a bridge hear music of this class, or none but their own; the number of a story that is needed to play it.
    pub fn stasis_bridge_music(
        &mut self,
        id: &str,
        class: Option<String>,
    ) -> Result<Option<u32>, StasisError> {
        let bridge = self.stasis.bridges.get_mut(id).ok_or_else(StasisError::no_bridge)?;
        let plays = class.is_some();
        let needs_story = plays && bridge.kind == BridgeKind::Mixing && bridge.music.is_none();
        bridge.music = class;
        bridge.music_story = bridge.music_story.wrapping_add(u32::from(needs_story));
        let story = needs_story.then_some(bridge.music_story);
        match plays {
            true => self.stasis_guest_comes(id, GuestKind::Music),
            false => {
                self.stasis_guest_logs(id, GuestKind::Music, CelKind::StreamEnd, Vec::new());
                self.stasis_guest_goes(id, GuestKind::Music);
            }
        }
        self.stasis_bridge_changed(id);
        Ok(story)
    }
    /// A sound is played to a bridge when those before it are over; whether a story is needed that plays.
    pub fn stasis_bridge_queue(&mut self, id: &str, playback: Rc<str>) -> Result<bool, StasisError> {
        let bridge = self.stasis.bridges.get_mut(id).ok_or_else(StasisError::no_bridge)?;
        if bridge.plays.len() >= WORKS_MAX {
            return Err(StasisError::full());
        }
        bridge.plays.push_back(playback);
        let needs_story = !core::mem::replace(&mut bridge.has_player, true);
        self.stasis_guest_comes(id, GuestKind::Announcer);
        self.stasis_bridge_changed(id);
        Ok(needs_story)
    }
    /// The sound that a bridge hears next; with none its story ends.
    pub fn stasis_bridge_next(&mut self, id: &str) -> Option<Rc<str>> {
        let bridge = self.stasis.bridges.get_mut(id)?;
        let next = bridge.plays.front().cloned();
        bridge.has_player = next.is_some();
        if next.is_none() {
            self.stasis_guest_goes(id, GuestKind::Announcer);
        }
        next
    }
    /// That sound is over.
    pub fn stasis_bridge_played(&mut self, id: &str, playback: &str) {
        if let Some(bridge) = self.stasis.bridges.get_mut(id) {
            bridge.plays.retain(|known| &**known != playback);
        }
        self.stasis_bridge_changed(id);
    }
    /// A bridge is recorded from here on, by the recording of this name, or no more.
    ///
    /// Errors: no such bridge (`NotFound`), it is recorded already (`Conflict`).
    pub fn stasis_bridge_records(&mut self, id: &str, name: Option<Rc<str>>) -> Result<(), StasisError> {
        let bridge = self.stasis.bridges.get_mut(id).ok_or_else(StasisError::no_bridge)?;
        if name.is_some() && bridge.recording.is_some() {
            return Err(StasisError::Conflict("the bridge is being recorded".into()));
        }
        let records = name.is_some();
        bridge.recording = name;
        match records {
            true => self.stasis_guest_comes(id, GuestKind::Recorder),
            false => self.stasis_guest_goes(id, GuestKind::Recorder),
        }
        self.stasis_bridge_changed(id);
        Ok(())
    }
    /// A bridge as it is.
    pub fn stasis_bridge_view(&self, id: &str) -> Option<BridgeView> {
        let bridge = self.stasis.bridges.get(id)?;
        let uniqueid = |member: &BridgeMember| Some(self.get(member.channel)?.uniqueid.clone());
        Some(BridgeView {
            id: bridge.id.clone(),
            name: bridge.name.clone(),
            kind: bridge.kind,
            technology: self.bridge_snapshot(bridge.core).map_or("simple_bridge", |bridge| bridge.technology),
            channels: bridge.members.iter().filter_map(uniqueid).collect(),
            created_wall: bridge.created_wall,
            video: bridge.video,
            video_source: bridge
                .video_source
                .and_then(|source| self.get(source))
                .map(|channel| channel.uniqueid.clone()),
            variables: bridge
                .variables
                .iter()
                .filter(|(_, variable)| variable.is_told == Some(true))
                .map(|(name, variable)| (name.clone(), variable.value.clone()))
                .collect(),
        })
    }
    /// Who hears it, or is recorded, is there yet.
    pub fn stasis_has_target(&self, target: &Target) -> bool {
        match target {
            Target::Channel(uniqueid) => self.stasis_channel(uniqueid).is_ok(),
            Target::Bridge(id) => self.stasis.bridges.contains_key(id),
        }
    }
}
