//! Which calls are listened to, and what is made of what is heard.

use std::time::Duration;

use base::Instant;

use super::{Generator, PROBE_STEP};
use crate::call::Phase;
use crate::check::Verdict;
use crate::plan::Hear;
use crate::tone::{Heard, TONES};

/// Calls so old ought to hear what they ought to; callees know their tone by then.
const SETTLED: Duration = Duration::from_secs(3);

impl Generator {
    /// Compares what a call hears with what it ought to. What is wrong once, and no silence, is listened to again: a codec may make
    /// a beat unlike itself, but hardly the next one too.
    pub(super) fn judge(&mut self, verdict: &Verdict, now: Instant) {
        let Some(Some(call)) = self.calls.get_mut(verdict.slot as usize) else { return };
        let (number, is_callee) = (call.number, call.is_callee);
        let Some(talk) = &mut call.talk else { return };
        talk.probe = None;
        let right = match (self.plan.hear, is_callee) {
            (Hear::Anything, false) => return,
            (Hear::Sound, _) => verdict.heard != Heard::Silence,
            (Hear::Hertz(_), false) => verdict.is_wanted,
            (Hear::Own, false) => verdict.heard == Heard::Tone(number as usize % TONES),
            // A callee learns who calls, and answers with the same tone.
            (_, true) => match (verdict.heard, talk.tone) {
                (Heard::Tone(tone), None) => {
                    talk.tone = Some(tone);
                    let (format, packet_ms) = (talk.format, talk.packet_ms);
                    let sound = self.sound(format, packet_ms, Some(tone));
                    if let Some(Some(call)) = self.calls.get_mut(verdict.slot as usize)
                        && let Some(talk) = &mut call.talk
                    {
                        talk.speak(sound);
                    }
                    return;
                }
                (heard, Some(tone)) => heard == Heard::Tone(tone),
                (_, None) => self.plan.hear == Hear::Anything,
            },
        };
        self.counted.checked += 1;
        let again = !right && !talk.suspect && verdict.heard != Heard::Silence;
        self.counted.wrong += u64::from(!right && !again);
        talk.suspect = again;
        if again {
            talk.probe = Some(self.checker.begin(verdict.slot, talk.format, now));
        }
    }

    /// Lets some calls be listened to, so that each has its turn in `check_every`.
    pub(super) fn give_out_probes(&mut self, now: Instant) {
        for verdict in self.checker.give_up(now) {
            self.judge(&verdict, now);
        }
        if self.plan.hear == Hear::Anything && !self.plan.answers {
            return;
        }
        let every = self.plan.check_every.as_secs_f64().max(0.1);
        self.probes_due += self.up as f64 * PROBE_STEP as f64 / 1e3 / every;
        let mut looked_at = 0;
        while self.probes_due >= 1.0 && looked_at < self.calls.len() {
            looked_at += 1;
            self.cursor = (self.cursor + 1) % self.calls.len().max(1);
            if self.probe(self.cursor, now) {
                self.probes_due -= 1.0;
            }
        }
        self.probes_due = self.probes_due.min(1.0);
    }

    /// Listens to a call, when it is one that ought to hear something.
    fn probe(&mut self, slot: usize, now: Instant) -> bool {
        let hear = self.plan.hear;
        let Some(Some(call)) = self.calls.get_mut(slot) else { return false };
        let is_young = now - call.up_at < SETTLED;
        let learns = call.is_callee && call.talk.as_ref().is_some_and(|talk| talk.tone.is_none());
        if call.phase != Phase::Up || (is_young && !learns) || (hear == Hear::Anything && !call.is_callee) {
            return false;
        }
        let Some(talk) = call.talk.as_mut().filter(|talk| talk.probe.is_none()) else { return false };
        talk.probe = Some(self.checker.begin(slot as u32, talk.format, now));
        true
    }
}
