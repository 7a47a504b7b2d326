//! Listens into calls, a few at a time, and says what is heard there.

use std::time::Duration;

use base::{FormatId, Instant};
use codec::Decoder;
use rtp::Header;

use crate::tone::{self, Heard, MEASURED_MS};

/// Sound that a decoder hears before what it says counts: codecs that begin in the middle take some frames to settle.
const SETTLE_MS: usize = 120;
/// A call from which not enough came in so long is one in which nothing is heard.
const PATIENCE: Duration = Duration::from_secs(2);

/// One call that is listened to.
#[derive(Debug)]
struct Probe {
    slot: u32,
    since: Instant,
    decoder: Decoder,
    /// The next packet's number, once there was one.
    next: Option<u16>,
    linear: Vec<i16>,
}

/// What was heard in a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Which call.
    pub slot: u32,
    /// What it is.
    pub heard: Heard,
    /// Whether it is the tone that was looked for in particular.
    pub is_wanted: bool,
}

/// All calls that are listened to at present.
#[derive(Debug, Default)]
pub struct Checker {
    probes: Vec<Option<Probe>>,
    free: Vec<u32>,
}

impl Checker {
    /// Begins to listen; the number goes with each packet of the call.
    pub fn begin(&mut self, slot: u32, format: FormatId, now: Instant) -> u32 {
        let probe = Probe { slot, since: now, decoder: Decoder::new(format), next: None, linear: Vec::new() };
        let index = self.free.pop().unwrap_or_else(|| {
            self.probes.push(None);
            u32::try_from(self.probes.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(place) = self.probes.get_mut(index as usize) {
            *place = Some(probe);
        }
        index
    }

    /// A packet of a call that is listened to. A verdict ends the listening.
    pub fn packet(
        &mut self,
        index: u32,
        format: FormatId,
        header: &Header,
        payload: &[u8],
        wanted: Option<f64>,
    ) -> Option<Verdict> {
        let probe = self.probes.get_mut(index as usize)?.as_mut()?;
        let follows = probe.next.is_none_or(|next| next == header.sequence);
        if probe.decoder.format() != format || !follows {
            // A gap: what a decoder makes of it is not what is to be judged.
            probe.decoder = Decoder::new(format);
            probe.linear.clear();
        }
        probe.next = Some(header.sequence.wrapping_add(1));
        decode(&mut probe.decoder, payload, &mut probe.linear);
        let rate = format.rate();
        let per_ms = rate.0 as usize / 1000;
        let settled = probe.linear.len().checked_sub((SETTLE_MS + MEASURED_MS) * per_ms)?;
        let sound = probe.linear.get(settled + SETTLE_MS * per_ms..)?;
        let verdict = Verdict {
            slot: probe.slot,
            heard: tone::recognise(sound, rate),
            is_wanted: wanted.is_some_and(|hertz| tone::is_tone(sound, rate, hertz)),
        };
        self.end(index);
        Some(verdict)
    }

    /// Stops listening to a call that is over.
    pub fn end(&mut self, index: u32) {
        if self.probes.get_mut(index as usize).is_some_and(|place| place.take().is_some()) {
            self.free.push(index);
        }
    }

    /// Calls in which nothing is heard, and which are listened to no more.
    pub fn give_up(&mut self, now: Instant) -> Vec<Verdict> {
        let mut silent = Vec::new();
        for index in 0..self.probes.len() {
            let Some(Some(probe)) = self.probes.get(index) else { continue };
            if now - probe.since > PATIENCE {
                silent.push(Verdict { slot: probe.slot, heard: Heard::Silence, is_wanted: false });
                self.end(u32::try_from(index).unwrap_or(u32::MAX));
            }
        }
        silent
    }
}

/// Appends what a payload sounds like.
fn decode(decoder: &mut Decoder, payload: &[u8], linear: &mut Vec<i16>) {
    let format = decoder.format();
    let begin = linear.len();
    linear.resize(begin + codec::packet_samples(format, payload), 0);
    let room = linear.get_mut(begin..).unwrap_or_default();
    let count = if format.is_linear() {
        // Network order on the wire.
        let mut bytes = payload.to_vec();
        codec::swap_bytes(&mut bytes);
        decoder.decode(&bytes, room)
    } else {
        decoder.decode(payload, room)
    };
    linear.truncate(begin + count);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(sequence: u16) -> Header {
        Header { sequence, ..Header::default() }
    }

    fn listen(checker: &mut Checker, index: u32, sound: &tone::Sound, numbers: &[u16]) -> Option<Verdict> {
        let wanted = Some(tone::hertz(5));
        numbers.iter().find_map(|number| {
            let payload = &sound[usize::from(*number) % sound.len()];
            checker.packet(index, FormatId::GSM, &header(*number), payload, wanted)
        })
    }

    #[test]
    fn a_call_is_judged_by_packets_in_a_row_and_a_gap_begins_anew() {
        let sound = tone::spoken(FormatId::GSM, 20, Some(tone::hertz(5)));
        let mut checker = Checker::default();
        let index = checker.begin(9, FormatId::GSM, Instant::ZERO);
        let numbers: Vec<u16> = (1..10).chain(11..22).collect();
        assert_eq!(listen(&mut checker, index, &sound, &numbers), None);
        let verdict = listen(&mut checker, index, &sound, &[22]).unwrap();
        assert_eq!(verdict, Verdict { slot: 9, heard: Heard::Tone(5), is_wanted: true });
        assert_eq!(listen(&mut checker, index, &sound, &[23]), None, "it is over");
        assert_eq!(checker.begin(10, FormatId::GSM, Instant::ZERO), index, "its place is free again");
    }

    #[test]
    fn a_call_in_which_nothing_comes_is_silent() {
        let mut checker = Checker::default();
        checker.begin(3, FormatId::ULAW, Instant::ZERO);
        assert_eq!(checker.give_up(Instant::ZERO + PATIENCE), []);
        let silent = checker.give_up(Instant::ZERO + PATIENCE * 2);
        assert_eq!(silent, [Verdict { slot: 3, heard: Heard::Silence, is_wanted: false }]);
    }
}
