//! One round of one room: what is said is added up, and what is heard goes to encoders.

use base::{FormatId, StreamId};
use codec::{GROUP_MAX, Level};
use smallvec::SmallVec;

use crate::groups::Bench;
use crate::mouth::Mouth;
use crate::room::bus::samples;
use crate::room::speech::Speech;
use crate::room::{Room, talk};
use crate::taps::Taps;
use crate::whisper::Whisper;

/// Who a mouth is to blame on that belongs to nobody.
pub(super) const NOBODY: StreamId = StreamId::new(u32::MAX, u32::MAX);
/// A member is louder than this to take the place of one who is heard already: twice, 6 dB, so that places do not
/// change with every syllable.
const INCUMBENT: u32 = 2;

/// What somebody says to one member alone, and who listens to that one.
pub(super) type Beside<'a> = (Option<&'a mut Whisper>, Option<&'a mut Taps>);

/// Where a mouth belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Member(usize),
    Voice(usize),
}

impl Room {
    /// Adds up what is said.
    pub(super) fn mix(&mut self, level: Level) {
        assert!(!self.poisoned, "a fault injected into a room");
        let (ms, _) = self.rounds();
        self.choose_speakers();
        let Self { members, buses, announcer, recorder, mix, .. } = self;
        for bus in &mut buses.list {
            bus.clear();
        }
        for member in members.iter().filter(|member| member.is_heard) {
            if let Some(bus) = member.seat.as_ref().and_then(|seat| buses.list.get_mut(seat.bus)) {
                let said = member.pcm.get(..samples(bus.rate, ms)).unwrap_or_default();
                bus.add(level, said);
            }
        }
        if let Some(bus) = announcer.bus().and_then(|at| buses.list.get_mut(at)) {
            let said = mix.get_mut(..samples(bus.rate, ms)).unwrap_or_default();
            if announcer.fill(said) {
                bus.add(level, said);
            }
        }
        buses.join(level, ms);
        if let Some(recorder) = recorder
            && let Some(bus) = buses.list.get(recorder.bus)
        {
            // What does not fit is counted by the sink.
            recorder.sink.write(bus.full(ms));
        }
    }
    /// Of more who talk than may be heard, the loudest; who is heard already keeps the place against one who is not
    /// clearly louder.
    pub(super) fn choose_speakers(&mut self) {
        let most = usize::from(self.settings.speakers_max);
        let Self { members, order, .. } = self;
        if most == 0 {
            return;
        }
        order.clear();
        for (n, member) in members.iter_mut().enumerate() {
            let incumbent = core::mem::take(&mut member.is_on_stage);
            if member.is_heard {
                let presence = member.talk.presence;
                order.push((if incumbent { presence * INCUMBENT } else { presence }, n as u32));
            }
        }
        if order.len() > most {
            order.select_nth_unstable_by(most, |a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
            order.truncate(most);
        }
        members.iter_mut().for_each(|member| member.is_heard = false);
        for (_, n) in order {
            if let Some(member) = members.get_mut(*n as usize) {
                (member.is_heard, member.is_on_stage) = (true, true);
            }
        }
    }
    /// What all hear goes to the encoders that all share.
    pub(super) fn feed_voices(&mut self) {
        let (ms, _) = self.rounds();
        // First who parts from the others, while these stand where it stood.
        for n in 0..self.members.len() {
            let Some(member) = self.members.get_mut(n) else { continue };
            member.alike_ms =
                if member.hears_all() { member.alike_ms.saturating_add(u32::from(ms)) } else { 0 };
            let Some(seat) = &mut member.seat else { continue };
            let Some(voice) = self.voices.get_mut(seat.voice) else { continue };
            match (member.shares, member.alike_ms) {
                (true, 0) => {
                    seat.own.take_over(&voice.speech);
                    member.shares = false;
                    voice.listeners -= 1;
                }
                // What it has of its next packet has to be what all heard, or it would hear itself.
                (false, alike)
                    if alike > voice.alike_ms()
                        && seat.own.begun_ms(voice.ptime_ms) <= alike - u32::from(ms) =>
                {
                    if voice.listeners == 0 {
                        voice.speech.take_over(&seat.own);
                    }
                    member.shares = true;
                    voice.listeners += 1;
                }
                _ => {}
            }
        }
        for voice in &mut self.voices {
            let Some(bus) = self.buses.list.get(voice.bus) else { continue };
            if voice.listeners > 0 {
                voice.speech.feed(bus.full(ms));
            } else {
                voice.speech.pass(bus.full(ms));
            }
        }
    }
    /// What one member hears besides that goes to its own encoder.
    pub(super) fn feed_member(&mut self, n: usize, level: Level, beside: Beside<'_>) {
        let (ms, _) = self.rounds();
        let Self { members, buses, mix, .. } = self;
        let Some(member) = members.get_mut(n).filter(|member| !member.shares) else { return };
        let Some(seat) = &mut member.seat else { return };
        let Some(bus) = buses.list.get(seat.bus) else { return };
        let Some(mix) = mix.get_mut(..samples(bus.rate, ms)) else { return };
        match (member.settings.deaf, member.is_heard) {
            (true, _) => mix.fill(0),
            (false, true) => bus.without(level, &member.pcm, mix),
            (false, false) => mix.copy_from_slice(bus.full(ms)),
        }
        talk::amplify(mix, member.settings.listening);
        if let (Some(whisper), taps) = beside {
            whisper.add(mix, bus.rate, taps);
        }
        seat.own.feed(mix);
    }
    pub(super) fn is_ready(&self) -> bool {
        self.voices.iter().any(|voice| voice.speech.ready)
            || self
                .members
                .iter()
                .any(|member| member.seat.as_ref().is_some_and(|seat| !member.shares && seat.own.ready))
    }
    /// Lends mouths that have a frame for a group.
    pub(super) fn seat_mouths(
        &mut self,
        n: usize,
        format: FormatId,
        size: usize,
        bench: &mut Bench<Mouth>,
        places: &mut SmallVec<[(usize, Place); GROUP_MAX]>,
    ) {
        let mut seat = |id, place, speech: &mut Speech| {
            if bench.len() >= size || !speech.ready {
                return;
            }
            if let Some(mouth) = speech.mouth.take_if(|mouth| mouth.format() == format && mouth.is_ready()) {
                bench.push((id, mouth));
                places.push((n, place));
            }
        };
        for (v, voice) in self.voices.iter_mut().enumerate().filter(|(_, voice)| voice.format == format) {
            seat(NOBODY, Place::Voice(v), &mut voice.speech);
        }
        for (m, member) in self.members.iter_mut().enumerate().filter(|(_, member)| !member.shares) {
            if let Some(own) = member.seat.as_mut().map(|seat| &mut seat.own) {
                seat(member.id, Place::Member(m), own);
            }
        }
    }
    pub(super) fn put_mouth_back(&mut self, place: Place, mouth: Box<Mouth>, fell: bool) {
        let (members, voices) = (&mut self.members, &mut self.voices);
        let speech = match place {
            Place::Member(m) => {
                members.get_mut(m).and_then(|member| member.seat.as_mut()).map(|seat| &mut seat.own)
            }
            Place::Voice(v) => voices.get_mut(v).map(|voice| &mut voice.speech),
        };
        let Some(speech) = speech else { return };
        speech.mouth = Some(mouth);
        if fell {
            speech.ready = false;
            if let Place::Voice(_) = place {
                self.renew_voices();
            }
        }
    }
    /// Makes the packets that all are sent.
    pub(super) fn code_voices(&mut self) {
        for voice in &mut self.voices {
            voice.bytes = match &mut voice.speech.mouth {
                Some(mouth) if voice.speech.ready => mouth.speak(&mut voice.coded),
                _ => 0,
            };
        }
    }
    /// Goes on to the next packet of the round.
    pub(super) fn next_packets(&mut self) {
        for voice in &mut self.voices {
            voice.bytes = 0;
            if voice.speech.ready {
                voice.speech.sent();
            }
        }
        for member in self.members.iter_mut().filter(|member| !member.shares) {
            if let Some(own) = member.seat.as_mut().map(|seat| &mut seat.own).filter(|own| own.ready) {
                own.sent();
            }
        }
    }
    /// Encoders of nobody in particular begin anew.
    pub(super) fn renew_voices(&mut self) {
        for voice in &mut self.voices {
            let Some(bus) = self.buses.list.get(voice.bus) else { continue };
            voice.speech = Speech::new(bus.rate, voice.ways(), &self.coders);
            voice.bytes = 0;
        }
    }
}
