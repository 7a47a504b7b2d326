//! Payload types: what numbers mean in a stream, and which numbers we give.

use base::{Codec, FormatId, FormatSet, MAX_RX_PAYLOADS};

use super::{MAX_STREAM_FORMATS, Stream};
use crate::header::lex::{number, split_once, trim};

/// What a payload type stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Audio(FormatId),
    /// telephone-event at this clock.
    Event(u32),
}

/// Dynamic payload types we give out, in this order (RFC 3551 §6); 101 is telephone-event's by custom.
const DYNAMIC: core::ops::RangeInclusive<u8> = 96..=127;
const EVENT: u8 = 101;
/// Formats in one offer: what a stream can receive, with room for their digits.
const AUDIO_MAX: usize = MAX_RX_PAYLOADS * 2 / 3;
/// The clock of telephone-event that nearly all peers share.
pub(super) const EVENT_CLOCK: u32 = 8000;

/// A payload type table; the first entry of a number counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Payloads(Vec<(u8, Meaning)>);

impl Payloads {
    /// What the payload types of a stream mean, in its order; unknown ones are left out. `known` explains dynamic numbers
    /// that come without a map.
    pub(super) fn of(stream: &Stream<'_>, known: &Self) -> Self {
        let mut maps: [Option<Option<Meaning>>; 128] = [None; 128];
        let rtpmaps = stream.attributes().filter(|(name, _)| *name == b"rtpmap");
        for (_, value) in rtpmaps.take(2 * MAX_STREAM_FORMATS) {
            if let Some((payload, meaning)) = rtpmap(value)
                && let Some(slot) = maps.get_mut(usize::from(payload))
            {
                slot.get_or_insert(meaning);
            }
        }
        let mut table = Self(Vec::with_capacity(8));
        let fmtps = Fmtps::of(stream);
        for payload in stream.payloads() {
            let meaning = match maps.get(usize::from(payload)).copied().flatten() {
                Some(mapped) => mapped,
                None => FormatId::from_static_payload(payload)
                    .map(Meaning::Audio)
                    .or_else(|| known.meaning(payload)),
            };
            let meaning = match meaning {
                Some(Meaning::Audio(format)) => format.refined(fmtps.find(payload)).map(Meaning::Audio),
                other => other,
            };
            if let Some(meaning) = meaning
                && table.meaning(payload).is_none()
            {
                table.0.push((payload, meaning));
            }
        }
        table
    }

    /// The numbers of an offer of ours. What `used` already gave a number keeps it: within a session a number never
    /// changes its meaning (RFC 3264 §8.3.2). As many formats as a stream can receive; of iLBC one mode, since the answer
    /// decides it.
    pub(super) fn offered(formats: &FormatSet, telephone_event: bool, used: &Self) -> Self {
        let mut table = Self::default();
        for format in formats.iter().take(AUDIO_MAX) {
            if table.agreed(format).is_none() {
                table.add(Meaning::Audio(format), format.usual_payload(), used);
            }
        }
        if telephone_event {
            let mut clocks: Vec<u32> = Vec::new();
            for clock in table.audio().map(FormatId::rtp_clock) {
                if !clocks.contains(&clock) {
                    clocks.push(clock);
                }
            }
            for clock in clocks.into_iter().take(MAX_RX_PAYLOADS - AUDIO_MAX) {
                let custom = (clock == EVENT_CLOCK).then_some(EVENT);
                table.add(Meaning::Event(clock), custom, used);
            }
        }
        table
    }

    fn add(&mut self, meaning: Meaning, custom: Option<u8>, used: &Self) {
        let free = |payload: &u8| self.meaning(*payload).is_none() && used.meaning(*payload).is_none();
        let payload = used
            .payload(meaning)
            .filter(|payload| self.meaning(*payload).is_none())
            .or(custom.filter(free))
            .or_else(|| DYNAMIC.filter(|payload| *payload != EVENT).find(free));
        if let Some(payload) = payload {
            self.0.push((payload, meaning));
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, Meaning)> + Clone + '_ {
        self.0.iter().copied()
    }
    pub(super) fn meaning(&self, payload: u8) -> Option<Meaning> {
        self.0.iter().find(|(number, _)| *number == payload).map(|(_, meaning)| *meaning)
    }
    pub(super) fn payload(&self, meaning: Meaning) -> Option<u8> {
        self.0.iter().find(|(_, found)| *found == meaning).map(|(number, _)| *number)
    }
    pub(super) fn audio(&self) -> impl Iterator<Item = FormatId> + '_ {
        self.0.iter().filter_map(|(_, meaning)| match meaning {
            Meaning::Audio(format) => Some(*format),
            Meaning::Event(_) => None,
        })
    }
    pub(super) fn has_audio(&self) -> bool {
        self.audio().next().is_some()
    }
    /// The first entry that goes with `format`: its number, and the format that both sides then use.
    pub(super) fn agreed(&self, format: FormatId) -> Option<(u8, FormatId)> {
        self.iter().find_map(|(payload, meaning)| match meaning {
            Meaning::Audio(own) => Some((payload, own.agreed(format)?)),
            Meaning::Event(_) => None,
        })
    }
    /// Puts audio into the order of `formats`; what is not in there stays behind it.
    pub(super) fn sort_by(&mut self, formats: &FormatSet) {
        let rank = |meaning: &Meaning| match meaning {
            Meaning::Audio(format) => formats.iter().position(|own| own.agreed(*format).is_some()),
            Meaning::Event(_) => None,
        };
        self.0.sort_by_key(|(_, meaning)| rank(meaning).unwrap_or(usize::MAX));
    }
    pub(super) fn push(&mut self, payload: u8, meaning: Meaning) {
        if self.meaning(payload).is_none() {
            self.0.push((payload, meaning));
        }
    }
}

/// The `a=fmtp` lines of a stream.
struct Fmtps<'a>(Vec<(u8, &'a [u8])>);

impl<'a> Fmtps<'a> {
    fn of(stream: &Stream<'a>) -> Self {
        let lines = stream.attributes().filter(|(name, _)| *name == b"fmtp").take(MAX_STREAM_FORMATS);
        Self(lines.filter_map(|(_, value)| fmtp(value)).collect())
    }
    /// The parameters of a payload type; empty when there are none.
    fn find(&self, payload: u8) -> &'a [u8] {
        self.0.iter().find(|(number, _)| *number == payload).map_or(&[], |(_, parameters)| parameters)
    }
}

/// `97 mode=20` as number and parameters.
fn fmtp(value: &[u8]) -> Option<(u8, &[u8])> {
    let (payload, parameters) = split_once(value, b' ');
    Some((u8::try_from(number(payload)?).ok()?, trim(parameters?)))
}

/// `96 opus/48000/2` as number and meaning; `Some((n, None))` maps the number to something unknown.
fn rtpmap(value: &[u8]) -> Option<(u8, Option<Meaning>)> {
    let end = value.iter().position(|b| b.is_ascii_whitespace())?;
    let (payload, map) = value.split_at_checked(end)?;
    let payload = u8::try_from(number(payload)?).ok().filter(|&n| n < 128)?;
    let (name, rest) = split_once(trim(map), b'/');
    let (clock, channels) = split_once(rest.unwrap_or(b"8000"), b'/');
    let meaning = meaning(trim(name), trim(clock), channels.map(trim));
    Some((payload, meaning))
}

fn meaning(name: &[u8], clock: &[u8], channels: Option<&[u8]>) -> Option<Meaning> {
    let clock = number(clock).and_then(|clock| u32::try_from(clock).ok())?;
    if name.eq_ignore_ascii_case(b"telephone-event") {
        return (clock > 0).then_some(Meaning::Event(clock));
    }
    let name = core::str::from_utf8(name).ok()?;
    let format = FormatId::from_rtpmap(name, clock).or_else(|| {
        // G.722 samples at 16 kHz, and some peers write that instead of its RTP clock (RFC 3551 §4.5.2).
        FormatId::from_rtpmap(name, 8000).filter(|f| f.codec() == Codec::G722 && clock == 16_000)
    })?;
    // Opus always says two channels; everything else here is mono.
    let mono = channels.is_none_or(|channels| channels == b"1") || name.eq_ignore_ascii_case("opus");
    mono.then_some(Meaning::Audio(format))
}
