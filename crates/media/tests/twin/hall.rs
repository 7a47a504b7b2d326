//! Rooms of the twin: everybody hears the sum of all others, added up sample by sample, and everybody has an encoder of
//! their own.

use std::collections::BTreeMap;

use base::{FormatId, Gain, MemberSettings, RoomSettings, SampleRate, StreamId, Wishes};
use codec::Resampler;

use crate::parts::samples;
use crate::timetable::Seat;

/// What decides how a member is spoken to, and how heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ways {
    pub heard: FormatId,
    pub format: FormatId,
    pub ptime_ms: u8,
    pub wishes: Wishes,
}

impl Ways {
    /// Those who are spoken to alike share the moments of their packets.
    fn is_spoken_to_like(&self, other: &Self) -> bool {
        (self.format, self.ptime_ms, self.wishes) == (other.format, other.ptime_ms, other.wishes)
    }
    fn packet(&self) -> usize {
        samples(self.format.rate(), self.ptime_ms)
    }
}

pub struct Member {
    pub id: StreamId,
    pub settings: MemberSettings,
    pub ways: Option<Ways>,
    from_heard: Option<Resampler>,
    talks: bool,
    silent_ms: u32,
    said: Option<Vec<i16>>,
    /// What it is to hear and has not been sent.
    mix: Vec<i16>,
}

/// What all hear who say nothing, as far as it is not in a packet yet.
struct Listening {
    ways: Ways,
    mix: Vec<i16>,
}

pub struct Hall {
    pub settings: RoomSettings,
    pub seat: Seat,
    pub visits_left: u8,
    pub members: Vec<Member>,
    listening: Vec<Listening>,
    /// From rate to rate, while both are spoken.
    links: BTreeMap<(u32, u32), Resampler>,
}

impl Hall {
    pub fn new(settings: RoomSettings, seat: Seat) -> Self {
        Self {
            settings,
            seat,
            visits_left: seat.visits,
            members: Vec::new(),
            listening: Vec::new(),
            links: BTreeMap::new(),
        }
    }
    /// Milliseconds of a round, and rounds of an interval.
    pub fn rounds(&self) -> (u8, u8) {
        match self.settings.interval_ms {
            10 => (10, 1),
            ms => (20, ms / 20),
        }
    }
    pub fn member(&mut self, id: StreamId) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.id == id)
    }
    pub fn enter(&mut self, id: StreamId, settings: MemberSettings) {
        if self.member(id).is_none() {
            self.members.push(Member {
                id,
                settings,
                ways: None,
                from_heard: None,
                talks: false,
                silent_ms: u32::MAX,
                said: None,
                mix: Vec::new(),
            });
        }
    }
    pub fn leave(&mut self, id: StreamId) {
        if let Some(at) = self.members.iter().position(|member| member.id == id) {
            self.members.swap_remove(at);
        }
        self.tidy();
    }
    /// What a member sends and hears has been decided.
    pub fn place(&mut self, id: StreamId, ways: Ways) {
        let Some(member) = self.member(id) else { return };
        if member.ways == Some(ways) {
            return;
        }
        member.ways = None;
        member.said = None;
        member.mix.clear();
        if ways.format.is_coded() && ways.heard.is_coded() {
            member.from_heard = Resampler::new(ways.heard.rate(), ways.format.rate());
            member.ways = Some(ways);
            let found = self.listening.iter().find(|listening| listening.ways.is_spoken_to_like(&ways));
            let mix = found.map(|listening| listening.mix.clone()).unwrap_or_default();
            if found.is_none() {
                self.listening.push(Listening { ways, mix: Vec::new() });
            }
            if let Some(member) = self.member(id) {
                member.mix = mix;
            }
        }
        self.tidy();
    }
    fn rates(&self) -> Vec<u32> {
        let mut rates: Vec<u32> =
            self.members.iter().filter_map(|member| Some(member.ways?.format.rate().0)).collect();
        rates.sort_unstable();
        rates.dedup();
        rates
    }
    /// Forgets what nobody needs, and makes what somebody does.
    fn tidy(&mut self) {
        let members = &self.members;
        self.listening.retain(|listening| {
            members
                .iter()
                .filter_map(|member| member.ways)
                .any(|ways| ways.is_spoken_to_like(&listening.ways))
        });
        let rates = self.rates();
        self.links.retain(|(from, to), _| rates.contains(from) && rates.contains(to));
        for from in &rates {
            for to in &rates {
                if let Some(resampler) = Resampler::new(SampleRate(*from), SampleRate(*to)) {
                    self.links.entry((*from, *to)).or_insert(resampler);
                }
            }
        }
    }
    /// Takes what a member said in this round; tells when it begins or ceases to talk.
    pub fn heard(&mut self, id: StreamId, linear: Option<(Vec<i16>, FormatId)>) -> Option<bool> {
        let (ms, _) = self.rounds();
        let member = self.member(id)?;
        member.said = None;
        let heard = linear.filter(|(_, format)| {
            !member.settings.muted && member.ways.is_some_and(|ways| ways.heard == *format)
        });
        let said = heard.map(|(linear, _)| match &mut member.from_heard {
            None => linear,
            Some(resampler) => {
                let mut out = vec![0; resampler.output_max(linear.len())];
                let count = resampler.process(&linear, &mut out);
                out.truncate(count);
                out
            }
        });
        let sum: u64 = said.iter().flatten().map(|sample| u64::from(sample.unsigned_abs())).sum();
        let mean = sum / said.as_ref().map_or(1, |said| said.len().max(1)) as u64;
        let before = member.talks;
        if mean >= u64::from(member.settings.talking_threshold.max(1)) {
            (member.talks, member.silent_ms) = (true, 0);
        } else if member.settings.muted {
            (member.talks, member.silent_ms) = (false, u32::MAX);
        } else {
            member.silent_ms = member.silent_ms.saturating_add(ms.into());
            member.talks &= member.silent_ms < member.settings.silence_ms;
        }
        if sum > 0 && (member.talks || !member.settings.drop_silence) {
            let gain = member.settings.talking;
            member.said = said.map(|said| said.into_iter().map(|sample| times(sample, gain)).collect());
        }
        (member.talks != before).then_some(member.talks)
    }
    /// Everybody has been heard: adds up.
    pub fn mix(&mut self) {
        let (ms, _) = self.rounds();
        let rates = self.rates();
        let mut sums: BTreeMap<u32, Vec<i32>> =
            rates.iter().map(|rate| (*rate, vec![0; samples(SampleRate(*rate), ms)])).collect();
        for member in &self.members {
            let (Some(said), Some(ways)) = (&member.said, member.ways) else { continue };
            add(sums.get_mut(&ways.format.rate().0), said);
        }
        let mut totals = sums.clone();
        for ((from, to), resampler) in &mut self.links {
            let given: Vec<i16> = sums[from].iter().map(|sum| limit(*sum)).collect();
            let mut out = vec![0; resampler.output_max(given.len())];
            let count = resampler.process(&given, &mut out);
            add(totals.get_mut(to), &out[..count]);
        }
        for member in &mut self.members {
            let Some(ways) = member.ways else { continue };
            let total = &totals[&ways.format.rate().0];
            let own = |n: usize| member.said.as_ref().and_then(|said| said.get(n)).copied().unwrap_or(0);
            let hears = total.iter().enumerate().map(|(n, total)| match member.settings.deaf {
                true => 0,
                false => times(limit(total - i32::from(own(n))), member.settings.listening),
            });
            let hears: Vec<i16> = hears.collect();
            member.mix.extend(hears);
        }
        for Listening { ways, mix } in &mut self.listening {
            mix.extend(totals[&ways.format.rate().0].iter().map(|total| limit(*total)));
            mix.drain(..mix.len() / ways.packet() * ways.packet());
        }
    }
    /// The next packet's samples of a member, when they are complete.
    pub fn packet(&mut self, id: StreamId) -> Option<(Vec<i16>, Ways)> {
        let member = self.member(id)?;
        let ways = member.ways?;
        (member.mix.len() >= ways.packet()).then(|| (member.mix.drain(..ways.packet()).collect(), ways))
    }
}

fn add(sum: Option<&mut Vec<i32>>, said: &[i16]) {
    for (sum, said) in sum.into_iter().flatten().zip(said) {
        *sum += i32::from(*said);
    }
}

fn limit(sum: i32) -> i16 {
    sum.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

fn times(sample: i16, gain: Gain) -> i16 {
    limit((i32::from(sample) * i32::from(gain.0)) >> 8)
}
