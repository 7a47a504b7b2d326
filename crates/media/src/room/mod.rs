//! Rooms: more than two streams that hear each other.
//!
//! A room is mixed in rounds of 10 or 20 ms. Each round takes what every member's ear has heard, adds up what is said by
//! sample rate (`bus`), and sends each member the sum without its own part (`speech`): one packet for all who say nothing
//! and share format and packet length, one of its own for everybody else. `talk` judges who talks and shapes levels,
//! `mixdown` is one round of one room, `recorder` where that is written down, and `run` walks through a worker's rooms that are due, all together, so that
//! decoders and encoders of different rooms are run side by side.
//!
//! This file: who is in a room, and what follows from that. It knows nothing of packets.

mod announce;
mod bus;
mod leader;
mod mixdown;
mod recorder;
mod run;
mod speech;
mod talk;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use base::{
    AudioSink, FormatId, Gain, MemberSettings, RoomId, RoomSettings, RoomVideo, SampleRate, StreamId, Wishes,
};
use codec::{Coders, Level, RATES, Resampler};

pub(crate) use talk::{Talk, amplify};

use crate::groups::Turn;
use crate::packet_io::PacketIo;
use crate::room::announce::Announcer;
use crate::room::bus::{Buses, samples};
use crate::room::leader::Leader;
use crate::room::recorder::Recorder;
use crate::room::speech::{Speech, Voice};
use crate::wheel::{Seat, Wheel};
use crate::worker::Desk;

/// Longest round, milliseconds; longer intervals are several rounds one after the other.
pub(crate) const ROUND_MS_MAX: u8 = 20;
/// Members of all rooms of one process are bounded by its streams; those of one room by what one worker can mix in one
/// interval.
const MEMBERS_MAX: usize = 4096;

/// One stream in a room.
#[derive(Debug)]
struct Member {
    id: StreamId,
    settings: MemberSettings,
    /// What it sends and hears; `None` while its format cannot be coded here.
    seat: Option<MemberSeat>,
    talk: Talk,
    /// What it says in this round, at the rate of its bus.
    pcm: Box<[i16]>,
    /// It is heard in this round.
    is_heard: bool,
    /// It has one of the places of those who may be heard at once.
    is_on_stage: bool,
    /// How long it has heard what all hear, milliseconds.
    alike_ms: u32,
    /// It is sent what all are sent.
    shares: bool,
    /// Somebody murmurs to it alone.
    hears_apart: bool,
    /// Set by the test hook: its next round panics.
    poisoned: bool,
}

/// A member's ways in and out.
#[derive(Debug)]
struct MemberSeat {
    heard: FormatId,
    bus: usize,
    voice: usize,
    /// From the rate that its ear hears to that of its bus, when they differ.
    resampler: Option<Resampler>,
    own: Speech,
}

/// What a stream sends and hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ways {
    /// Format that arrives.
    pub(crate) heard: FormatId,
    /// Format that is sent.
    pub(crate) format: FormatId,
    pub(crate) ptime_ms: u8,
    /// What the peer wishes of the encoder.
    pub(crate) wishes: Wishes,
}

/// One room.
#[derive(Debug)]
pub(crate) struct Room {
    coders: Arc<Coders>,
    id: RoomId,
    settings: RoomSettings,
    seat: Seat,
    visits_left: u8,
    members: Vec<Member>,
    /// Their streams of video, which are not mixed.
    screens: Vec<StreamId>,
    leader: Leader,
    buses: Buses,
    voices: Vec<Voice>,
    announcer: Announcer,
    recorder: Option<Recorder>,
    /// Members by presence; room for choosing speakers without an allocation.
    order: Vec<(u32, u32)>,
    /// What one member is to hear; room for the longest round.
    mix: Box<[i16]>,
    /// Set by the test hook: the next mix panics.
    poisoned: bool,
}

impl Room {
    fn new(id: RoomId, settings: RoomSettings, seat: Seat, coders: Arc<Coders>) -> Self {
        Self {
            coders,
            id,
            settings,
            seat,
            visits_left: seat.visits,
            members: Vec::new(),
            screens: Vec::new(),
            leader: Leader::default(),
            buses: Buses::default(),
            voices: Vec::new(),
            announcer: Announcer::default(),
            recorder: None,
            order: Vec::new(),
            mix: vec![0; samples(SampleRate(48_000), ROUND_MS_MAX)].into(),
            poisoned: false,
        }
    }
    /// Milliseconds of a round, and rounds of an interval.
    fn rounds(&self) -> (u8, u8) {
        match self.settings.interval_ms {
            10 => (10, 1),
            ms => (ROUND_MS_MAX, ms / ROUND_MS_MAX),
        }
    }
    fn member_mut(&mut self, id: StreamId) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.id == id)
    }
    /// The rate at which a stream of this rate is mixed.
    fn mixed_rate(&self, own: SampleRate) -> SampleRate {
        let most = self.settings.rate_max.unwrap_or(own);
        if own <= most {
            return own;
        }
        let [lowest, ..] = RATES;
        SampleRate(RATES.into_iter().filter(|rate| *rate <= most.0).max().unwrap_or(lowest))
    }
    /// Gives a member its place in buses and voices.
    fn place(&mut self, id: StreamId, ways: Ways) {
        let rate = self.mixed_rate(ways.format.rate());
        let Some(at) = self.members.iter().position(|member| member.id == id) else { return };
        self.unshare(at);
        let known = self.coders.coded();
        let coded = known.contains(ways.format) && known.contains(ways.heard);
        let seat = coded.then(|| {
            let bus = self.buses.of(rate);
            let same = |v: &Voice| v.bus == bus && v.fits(ways);
            let found = self.voices.iter().position(same);
            let voice = found.unwrap_or_else(|| {
                self.voices.push(Voice::new(ways, bus, rate, &self.coders));
                self.voices.len() - 1
            });
            let resampler = Resampler::new(ways.heard.rate(), rate);
            let own = Speech::new(rate, ways, &self.coders);
            MemberSeat { heard: ways.heard, bus, voice, resampler, own }
        });
        let voices = &mut self.voices;
        if let Some(member) = self.members.get_mut(at) {
            member.pcm = vec![0; samples(rate, ROUND_MS_MAX)].into();
            member.is_heard = false;
            member.seat = seat;
            // It begins as a listener; the encoder for those may have rested.
            if let Some(voice) = member.seat.as_ref().and_then(|seat| voices.get_mut(seat.voice)) {
                voice.listeners += 1;
                member.shares = true;
            }
        }
        self.sweep();
    }
    /// Takes a member out of those who are sent what all are sent.
    fn unshare(&mut self, at: usize) {
        let Some(member) = self.members.get_mut(at).filter(|member| member.shares) else { return };
        member.shares = false;
        let voice = member.seat.as_ref().and_then(|seat| self.voices.get_mut(seat.voice));
        if let Some(voice) = voice {
            voice.listeners -= 1;
        }
    }
    /// Forgets voices and buses that nobody uses.
    fn sweep(&mut self) {
        for at in (0..self.voices.len()).rev() {
            let moved = self.voices.len() - 1;
            let mut seats = self.members.iter_mut().filter_map(|member| member.seat.as_mut());
            if seats.any(|seat| seat.voice == at) {
                continue;
            }
            self.voices.swap_remove(at);
            for seat in self.members.iter_mut().filter_map(|member| member.seat.as_mut()) {
                if seat.voice == moved {
                    seat.voice = at;
                }
            }
        }
        for at in (0..self.buses.list.len()).rev() {
            let moved = self.buses.list.len() - 1;
            let used =
                self.members.iter().filter_map(|member| member.seat.as_ref()).any(|seat| seat.bus == at);
            let recorded = self.recorder.as_ref().is_some_and(|recorder| recorder.bus == at);
            if used || recorded || self.announcer.bus() == Some(at) {
                continue;
            }
            self.buses.remove(at);
            let seats = self.members.iter_mut().filter_map(|member| member.seat.as_mut()).map(|s| &mut s.bus);
            let voices = self.voices.iter_mut().map(|voice| &mut voice.bus);
            let recorder = self.recorder.as_mut().map(|recorder| &mut recorder.bus);
            for bus in seats.chain(voices).chain(self.announcer.bus_mut()).chain(recorder) {
                if *bus == moved {
                    *bus = at;
                }
            }
        }
    }
    /// Nobody is in it any more.
    fn is_deserted(&self) -> bool {
        self.members.is_empty() && self.screens.is_empty()
    }
    fn remove(&mut self, id: StreamId) {
        self.screens.retain(|screen| *screen != id);
        self.leader.forget(id);
        let Some(at) = self.members.iter().position(|member| member.id == id) else { return };
        self.unshare(at);
        self.members.swap_remove(at);
        self.sweep();
    }
}

/// The rooms of one worker.
#[derive(Debug)]
pub(crate) struct Rooms {
    coders: Arc<Coders>,
    level: Level,
    wheel: Wheel,
    slots: Vec<Option<Box<Room>>>,
    /// Those that are being mixed.
    #[expect(clippy::vec_box, reason = "boxes move between here and the slots, rooms never do")]
    running: Vec<Box<Room>>,
    /// Ears that are decoded side by side.
    turns: Vec<Turn>,
}

impl Rooms {
    pub(crate) fn new(level: Level) -> Self {
        Self {
            coders: Arc::default(),
            level,
            wheel: Wheel::new(),
            slots: Vec::new(),
            running: Vec::new(),
            turns: Vec::new(),
        }
    }
    /// How members are coded from here on; each is [placed](Self::place) anew afterwards.
    pub(crate) fn set_coders(&mut self, coders: &Arc<Coders>) {
        self.coders = coders.clone();
        for room in self.slots.iter_mut().flatten() {
            room.coders = coders.clone();
        }
    }
    fn get_mut(&mut self, id: RoomId) -> Option<&mut Room> {
        self.slots.get_mut(id.slot as usize)?.as_deref_mut().filter(|room| room.id == id)
    }
    /// The room, made when it is not there, with these settings.
    fn open(&mut self, id: RoomId, settings: RoomSettings) -> Option<&mut Room> {
        let interval_ms = match settings.interval_ms {
            0..15 => 10,
            15..30 => 20,
            30..60 => 40,
            60.. => 80,
        };
        let settings = RoomSettings { interval_ms, ..settings };
        let slot = id.slot as usize;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
            self.running.reserve(self.slots.len());
        }
        let Self { coders, wheel, slots, .. } = self;
        let place = slots.get_mut(slot)?;
        // Signalling gives a slot away again when its room has ended; should one be left, its members hear nothing more.
        if let Some(other) = place.take_if(|room| room.id != id) {
            wheel.rise(id.slot, other.seat);
        }
        let room = match place {
            Some(room) => {
                if room.settings.interval_ms != interval_ms {
                    wheel.rise(id.slot, room.seat);
                    room.seat = wheel.sit(id.slot, interval_ms);
                    room.visits_left = room.seat.visits;
                }
                room
            }
            None => place.insert(Box::new(Room::new(
                id,
                settings,
                wheel.sit(id.slot, interval_ms),
                coders.clone(),
            ))),
        };
        room.settings = settings;
        Some(room)
    }
    /// Takes a member out; the last one ends the room. Nothing happens to a room that is being mixed: `run` looks after
    /// it.
    pub(crate) fn leave(&mut self, id: RoomId, stream: StreamId) {
        let Some(room) = self.get_mut(id) else { return };
        room.remove(stream);
        if room.is_deserted() {
            let seat = room.seat;
            self.close(id.slot, seat);
        }
    }
    fn close(&mut self, slot: u32, seat: Seat) {
        self.wheel.rise(slot, seat);
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = None;
        }
    }
    /// Whether the ear of a member is needed: somebody may hear it.
    pub(crate) fn hears(&mut self, id: RoomId, stream: StreamId) -> bool {
        let member = self.get_mut(id).and_then(|room| room.member_mut(stream));
        member.is_some_and(|member| !member.settings.muted && member.seat.is_some())
    }
    /// The rate at which a member hears.
    pub(crate) fn rate_of(&mut self, id: RoomId, stream: StreamId) -> Option<SampleRate> {
        let room = self.get_mut(id)?;
        let bus = room.members.iter().find(|member| member.id == stream)?.seat.as_ref()?.bus;
        room.buses.list.get(bus).map(|bus| bus.rate)
    }
    /// The ways of a member may have changed.
    pub(crate) fn place(&mut self, id: RoomId, stream: StreamId, ways: Ways) {
        let Some(room) = self.get_mut(id) else { return };
        let Some(member) = room.members.iter().find(|member| member.id == stream) else { return };
        let same = |seat: &MemberSeat| {
            let voice = room.voices.get(seat.voice);
            let bus = room.buses.list.get(seat.bus);
            seat.heard == ways.heard
                && voice.is_some_and(|voice| voice.fits(ways) && !seat.own.is_orphan())
                && bus.is_some_and(|bus| bus.rate == room.mixed_rate(ways.format.rate()))
        };
        if !member.seat.as_ref().is_some_and(same) {
            room.place(stream, ways);
        }
    }
    /// What a room does for video.
    pub(crate) fn video(&mut self, id: RoomId) -> Option<RoomVideo> {
        self.get_mut(id).map(|room| room.settings.video)
    }
    /// The streams of video in a room.
    pub(crate) fn screens(&mut self, id: RoomId) -> &[StreamId] {
        self.get_mut(id).map_or(&[], |room| room.screens.as_slice())
    }
    /// The test hooks.
    pub(crate) fn poison(&mut self, id: RoomId, member: Option<StreamId>) {
        let Some(room) = self.get_mut(id) else { return };
        match member {
            None => room.poisoned = true,
            Some(member) => {
                if let Some(member) = room.member_mut(member) {
                    member.poisoned = true;
                }
            }
        }
    }
    /// The test hook for groups of encoders.
    pub(crate) fn poison_mouth(&mut self, id: RoomId, stream: StreamId) {
        let seat = self.get_mut(id).and_then(|room| room.member_mut(stream)).and_then(|m| m.seat.as_mut());
        if let Some(mouth) = seat.and_then(|seat| seat.own.mouth.as_mut()) {
            mouth.poison();
        }
    }
}

impl<P: PacketIo> Desk<'_, P> {
    /// Puts a stream into a room.
    pub(crate) fn enter_room(
        &mut self,
        id: StreamId,
        room: RoomId,
        mixing: RoomSettings,
        settings: MemberSettings,
    ) {
        let Some(stream) = self.streams.get(id) else { return };
        let is_video = stream.is_video;
        if stream.room == Some(room) {
            self.adjust_member(id, settings);
        } else {
            self.part(id);
        }
        let Some(found) = self.rooms.open(room, mixing) else { return };
        if is_video {
            if found.screens.len() < MEMBERS_MAX && !found.screens.contains(&id) {
                found.screens.push(id);
            }
        } else if found.member_mut(id).is_none() {
            if found.members.len() >= MEMBERS_MAX {
                return;
            }
            found.members.push(Member {
                id,
                settings,
                seat: None,
                talk: Talk::default(),
                pcm: Box::default(),
                is_heard: false,
                is_on_stage: false,
                alike_ms: 0,
                shares: false,
                hears_apart: false,
                poisoned: false,
            });
            found.order.reserve(found.members.len());
            self.rooms.turns.reserve(self.load.streams as usize);
        }
        if let Some(stream) = self.streams.get_mut(id) {
            stream.room = Some(room);
        }
        // The highest rate may have changed for all.
        let Some(found) = self.rooms.get_mut(room) else { return };
        let others: smallvec::SmallVec<[StreamId; 8]> = match mixing.rate_max {
            Some(_) => found.members.iter().map(|member| member.id).filter(|other| *other != id).collect(),
            None => smallvec::SmallVec::new(),
        };
        for other in others {
            self.seat_member(other);
        }
        self.plan_routes(id);
    }
    /// Changes how a stream takes part in its room.
    pub(crate) fn adjust_member(&mut self, id: StreamId, settings: MemberSettings) {
        let Some(room) = self.streams.get(id).and_then(|stream| stream.room) else { return };
        if let Some(member) = self.rooms.get_mut(room).and_then(|room| room.member_mut(id)) {
            member.settings = settings;
        }
        self.plan_routes(id);
    }
    /// Lets a room hear a clip.
    pub(crate) fn announce(&mut self, room: RoomId, clip: std::sync::Arc<base::Clip>) {
        let Some(room) = self.rooms.get_mut(room) else { return };
        let Room { announcer, buses, .. } = room;
        announcer.queue(clip, buses);
    }
    /// Writes down what is heard in a room from here on, or nothing any more.
    pub(crate) fn record_room(&mut self, room: RoomId, sink: Option<(FormatId, Box<dyn AudioSink>)>) {
        let Some(room) = self.rooms.get_mut(room) else { return };
        let buses = &mut room.buses;
        room.recorder = sink.map(|(format, sink)| Recorder { bus: buses.of(format.rate()), sink });
        room.sweep();
    }
    /// Takes a stream out of its room; whether it was in one.
    pub(crate) fn leave_room(&mut self, id: StreamId) -> bool {
        let Some(stream) = self.streams.get_mut(id) else { return false };
        let Some(room) = stream.room.take() else { return false };
        self.rooms.leave(room, id);
        true
    }
    /// Tells its room what a stream sends and hears.
    pub(crate) fn seat_member(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(id) else { return };
        let Some(room) = stream.room else { return };
        let plan = &stream.plan;
        let ways = Ways {
            heard: stream.rx_format,
            format: plan.format,
            ptime_ms: plan.ptime_ms,
            wishes: plan.wishes,
        };
        let hears_apart = stream.hears_apart();
        if let Some(member) = self.rooms.get_mut(room).and_then(|room| room.member_mut(id)) {
            member.hears_apart = hears_apart;
        }
        self.rooms.place(room, id, ways);
        let rate = self.rooms.rate_of(room, id);
        if let (Some(rate), Some(stream)) = (rate, self.streams.get_mut(id))
            && let Some(whisper) = &mut stream.whisper
        {
            whisper.prepare(rate);
        }
    }
}

impl Member {
    /// Whether it hears exactly what all hear.
    fn hears_all(&self) -> bool {
        !self.is_heard && !self.settings.deaf && !self.hears_apart && self.settings.listening == Gain::UNITY
    }
}
