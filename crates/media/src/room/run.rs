//! The rounds of a worker's rooms: hear, mix, speak; for all rooms that are due at once.
//!
//! Everything of a member runs in its name, so that a panic ends its stream and no other; what belongs to the room
//! begins anew after one.

use core::time::Duration;

use base::{Event, FormatId, Instant, StreamId};
use codec::{GROUP_MAX, Level, mix};
use rtp::HEADER_BYTES;
use smallvec::SmallVec;

use crate::groups::{Bench, Step, Turn};
use crate::mouth::Mouth;
use crate::packet_io::PacketIo;
use crate::phase::Phase;
use crate::room::bus::samples;
use crate::room::mixdown::{NOBODY, Place};
use crate::room::{Member, Room, Rooms};
use crate::stream::Slab;
use crate::worker::{Desk, Worker};

/// Members ahead of the one whose turn it is for whose streams memory is asked for, and for whose ears, which are found
/// through them: a large room is more than the caches keep from one round to the next.
const STREAM_AHEAD: usize = 8;
const EAR_AHEAD: usize = 4;

impl Rooms {
    /// Takes out the rooms that are due in this millisecond.
    fn take_due(&mut self, ms: u64) {
        let Self { wheel, slots, running, .. } = self;
        for slot in (0..).map_while(|index| wheel.at(ms, index)) {
            let Some(place) = slots.get_mut(slot as usize) else { continue };
            let Some(room) = place else { continue };
            room.visits_left = room.visits_left.saturating_sub(1);
            if room.visits_left == 0 {
                room.visits_left = room.seat.visits;
                running.extend(place.take());
            }
        }
    }
    /// Puts a room back after its rounds, or ends it.
    fn put_back(&mut self, room: Box<Room>) {
        let slot = room.id.slot;
        if room.is_deserted() {
            let seat = room.seat;
            self.close(slot, seat);
        } else if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(room);
        }
    }
}

impl<L> Worker<L> {
    /// Mixes the rooms that are due in this millisecond.
    pub(crate) fn run_rooms<P>(&mut self, ms: u64, at: Instant, io: &mut P, events: &mut Vec<Event>)
    where
        P: PacketIo<Leg = L>,
    {
        self.rooms.take_due(ms);
        if self.rooms.running.is_empty() {
            return;
        }
        // Taken out while others of the worker are borrowed; no allocation, and given back below.
        let mut running = core::mem::take(&mut self.rooms.running);
        let panics = self.load.panics;
        let most = running.iter().map(|room| room.rounds().1).max().unwrap_or(1);
        for round in (0..most).rev() {
            // Several rounds of one interval are stamped as if each had its own time.
            let back = Duration::from_millis(u64::from(round) * u64::from(super::ROUND_MS_MAX));
            let at = Instant::ZERO + (at - Instant::ZERO).saturating_sub(back);
            let is_due = |room: &Room| room.rounds().1 > round;
            io.phase(Phase::Decode);
            self.hear(&mut running, at, is_due, io, events);
            self.bury(&mut running, panics);
            io.phase(Phase::Mix);
            for room in running.iter_mut().filter(|room| is_due(room)) {
                self.mix(room, at, io, events);
            }
            io.phase(Phase::Encode);
            self.speak(&mut running, at, is_due, io, events);
        }
        io.phase(Phase::Jitter);
        self.bury(&mut running, panics);
        for room in running.drain(..) {
            self.rooms.put_back(room);
        }
        self.rooms.running = running;
    }

    /// Takes members out whose streams have ended by a panic since there were so many.
    fn bury(&mut self, running: &mut [Box<Room>], panics: u64) {
        if self.load.panics == panics {
            return;
        }
        for room in running {
            let members = room.members.iter().map(|member| member.id);
            let ids: Vec<StreamId> = members.chain(room.screens.iter().copied()).collect();
            for id in ids.into_iter().filter(|id| self.streams.get(*id).is_none()) {
                room.remove(id);
            }
        }
    }

    /// Runs one step for each member of each room; a panic ends the member's stream and goes on with the next.
    fn each_member<P>(
        &mut self,
        rooms: &mut [Box<Room>],
        at: Instant,
        is_due: impl Fn(&Room) -> bool,
        io: &mut P,
        events: &mut Vec<Event>,
        mut step: impl FnMut(&mut Desk<P>, &mut Room, usize),
    ) where
        P: PacketIo<Leg = L>,
    {
        for room in rooms.iter_mut().filter(|room| is_due(room)) {
            let mut next = 0;
            while next < room.members.len() {
                self.guarded(at, io, events, |desk| {
                    while next < room.members.len() {
                        next += 1;
                        step(desk, room, next - 1);
                    }
                });
            }
        }
    }

    /// What every member's ear has heard comes to its place in the room.
    fn hear<P>(
        &mut self,
        running: &mut [Box<Room>],
        at: Instant,
        is_due: impl Fn(&Room) -> bool + Copy,
        io: &mut P,
        events: &mut Vec<Event>,
    ) where
        P: PacketIo<Leg = L>,
    {
        let mut turns = core::mem::take(&mut self.rooms.turns);
        turns.clear();
        self.each_member(running, at, is_due, io, events, |desk, room, n| {
            let (ms, _) = room.rounds();
            desk.fetch_member(room, n + STREAM_AHEAD, Slab::fetch_receiver);
            desk.fetch_member(room, n + EAR_AHEAD, Slab::fetch_ear);
            let Some(member) = room.members.get(n) else { return };
            let Some(format) = desk.gather(member.id, ms) else { return };
            let step = Step::Decode(format);
            let (to, from) = (member.id, member.id);
            turns.push(Turn { to, from, at, step, speaks: false, plays: false, has_frame: false });
        });
        if !turns.is_empty() {
            for format in FormatId::coded().filter(|format| codec::decode_frame(*format).is_some()) {
                if turns.iter().any(|turn| turn.step == Step::Decode(format)) {
                    while self.decode_group(format, &turns, io, events) {}
                }
            }
        }
        self.rooms.turns = turns;
        let level = self.rooms.level;
        self.each_member(running, at, is_due, io, events, |desk, room, n| {
            let (ms, _) = room.rounds();
            let Some(member) = room.members.get_mut(n) else { return };
            if let Some(talks) = desk.hear_member(member, level, ms) {
                desk.events.push(Event::Talking { stream: member.id, talks });
            }
        });
    }

    /// Adds up what is said. The room's own code: when it panics, the room begins anew and nobody's call ends.
    fn mix<P>(&mut self, room: &mut Room, at: Instant, io: &mut P, events: &mut Vec<Event>)
    where
        P: PacketIo<Leg = L>,
    {
        let (panics, level) = (self.load.panics, self.rooms.level);
        self.guarded(at, io, events, |desk| {
            *desk.current = None;
            room.mix(level);
            if let Some(stream) = room.lead() {
                desk.events.push(Event::Speaker { stream });
            }
        });
        if self.load.panics != panics {
            room.poisoned = false;
            for bus in &mut room.buses.list {
                bus.clear();
            }
            room.members.iter_mut().for_each(|member| member.is_heard = false);
        }
    }

    /// Sends every member what it is to hear.
    fn speak<P>(
        &mut self,
        running: &mut [Box<Room>],
        at: Instant,
        is_due: impl Fn(&Room) -> bool + Copy,
        io: &mut P,
        events: &mut Vec<Event>,
    ) where
        P: PacketIo<Leg = L>,
    {
        let level = self.rooms.level;
        for room in running.iter_mut().filter(|room| is_due(room)) {
            self.own_code(room, at, io, events, Room::feed_voices);
        }
        self.each_member(running, at, is_due, io, events, |desk, room, n| {
            let member = room.members.get(n).map(|member| (member.id, member.hears_apart));
            *desk.current = member.map(|(id, _)| id);
            let apart = member.filter(|(_, hears_apart)| *hears_apart);
            let stream = apart.and_then(|(id, _)| desk.streams.get_mut(id));
            let beside = match stream {
                Some(stream) => (stream.whisper.as_deref_mut(), stream.taps.as_deref_mut()),
                None => (None, None),
            };
            room.feed_member(n, level, beside);
        });
        // A round may be several short packets, or none of a long one.
        while running.iter().any(|room| is_due(room) && room.is_ready()) {
            self.encode(running, at, is_due, io, events);
            for room in running.iter_mut().filter(|room| is_due(room)) {
                self.own_code(room, at, io, events, Room::code_voices);
            }
            self.each_member(running, at, is_due, io, events, |desk, room, n| {
                desk.fetch_member(room, n + STREAM_AHEAD, Slab::fetch_leaving);
                desk.send_mix(room, n);
            });
            for room in running.iter_mut().filter(|room| is_due(room)) {
                self.own_code(room, at, io, events, Room::next_packets);
            }
        }
    }

    /// Runs code of a room that is no member's. When it panics, its encoders begin anew and nobody's call ends.
    fn own_code<P>(
        &mut self,
        room: &mut Room,
        at: Instant,
        io: &mut P,
        events: &mut Vec<Event>,
        step: fn(&mut Room),
    ) where
        P: PacketIo<Leg = L>,
    {
        let panics = self.load.panics;
        self.guarded(at, io, events, |_| step(room));
        if self.load.panics != panics {
            room.renew_voices();
        }
    }

    /// Encodes what lanes can encode, of all rooms side by side.
    fn encode<P>(
        &mut self,
        running: &mut [Box<Room>],
        at: Instant,
        is_due: impl Fn(&Room) -> bool + Copy,
        io: &mut P,
        events: &mut Vec<Event>,
    ) where
        P: PacketIo<Leg = L>,
    {
        for format in FormatId::coded().filter(|format| codec::encode_frame(*format).is_some()) {
            let size = self.groups.size(format);
            loop {
                let mut bench: Bench<Mouth> = SmallVec::new();
                let mut places: SmallVec<[(usize, Place); GROUP_MAX]> = SmallVec::new();
                for (n, room) in running.iter_mut().enumerate().filter(|(_, room)| is_due(room)) {
                    room.seat_mouths(n, format, size, &mut bench, &mut places);
                }
                if bench.is_empty() {
                    break;
                }
                let mut guilty = self.run_group(&mut bench, size);
                for ((_, mut mouth), (n, place)) in bench.into_iter().zip(places) {
                    // A mouth that panicked would be asked again for ever.
                    let fell = !mouth.is_done();
                    mouth.encoded();
                    if let Some(room) = running.get_mut(n) {
                        room.put_mouth_back(place, mouth, fell);
                    }
                }
                guilty.retain(|id| *id != NOBODY);
                self.end(guilty, at, io, events);
            }
        }
    }
}

impl<P: PacketIo> Desk<'_, P> {
    /// Asks for memory of the stream of a member whose turn comes.
    fn fetch_member(&self, room: &Room, n: usize, fetch: impl Fn(&Slab<P::Leg>, u32)) {
        if let Some(member) = room.members.get(n) {
            fetch(self.streams, member.id.slot);
        }
    }
    /// Takes `ms` from the jitter buffer of a member; the format when lanes are to decode it.
    fn gather(&mut self, id: StreamId, ms: u8) -> Option<FormatId> {
        let stream = self.streams.get_mut(id)?;
        let ear = stream.ear.as_mut()?;
        *self.current = Some(id);
        ear.gather(samples(ear.format().rate(), ms));
        ear.has_lanes().then_some(ear.format())
    }
    /// What a member says in this round; tells when it begins or ceases to talk.
    fn hear_member(&mut self, member: &mut Member, level: Level, ms: u8) -> Option<bool> {
        *self.current = Some(member.id);
        assert!(!member.poisoned, "a fault injected into member {:?}", member.id);
        member.is_heard = false;
        let heard = self.take_heard(member.id, ms);
        let rate = self.streams.get(member.id).and_then(|s| s.ear.as_ref()).map(|ear| ear.format());
        let Member { settings, seat, talk, pcm, .. } = member;
        let seat = seat.as_mut().filter(|seat| rate == Some(seat.heard) && !settings.muted);
        let (Some(count), Some(seat)) = (heard, seat) else {
            return if settings.muted { talk.mute() } else { talk.frame(0, ms, settings) };
        };
        let linear = self.scratch.linear.get(..count).unwrap_or_default();
        let written = match &mut seat.resampler {
            None => pcm.iter_mut().zip(linear).map(|(to, from)| *to = *from).count(),
            Some(resampler) => resampler.process(linear, pcm).min(pcm.len()),
        };
        let said = pcm.get_mut(..written).unwrap_or_default();
        let magnitude = mix::wide::magnitude(level, said);
        let mean = u16::try_from(magnitude / (written.max(1) as u64)).unwrap_or(u16::MAX);
        let edge = talk.frame(mean, ms, settings);
        // Silence itself adds nothing: who sends it hears what all hear.
        member.is_heard = magnitude > 0 && (talk.talks || !settings.drop_silence);
        if member.is_heard {
            talk.shape(said, settings);
        }
        edge
    }
    /// Sends one packet of the round to a member.
    fn send_mix(&mut self, room: &mut Room, n: usize) {
        let Room { members, voices, .. } = room;
        let Some(member) = members.get_mut(n) else { return };
        let Some(seat) = &mut member.seat else { return };
        let Some(stream) = self.streams.get(member.id) else { return };
        let busy = stream.play.is_some() || stream.digits.mutes_relay();
        let room = HEADER_BYTES..HEADER_BYTES + stream.packet_room();
        *self.current = Some(member.id);
        let Some(wire) = self.scratch.packets.bytes_mut(room) else { return };
        let bytes = if member.shares {
            let Some(voice) = voices.get(seat.voice) else { return };
            let coded = voice.coded.get(..voice.bytes).unwrap_or_default();
            wire.iter_mut().zip(coded).map(|(to, from)| *to = *from).count()
        } else {
            if !seat.own.ready {
                return;
            }
            seat.own.mouth.as_mut().map_or(0, |mouth| mouth.speak(wire))
        };
        if !busy {
            self.emit_local(member.id, HEADER_BYTES, bytes);
        }
    }
}
