//! Calls from their INVITE to their BYE.

use base::{FormatSet, Instant};
use sip::sdp::{Local, Negotiated, Negotiator};
use sip::stack::{Incoming, ServerId};
use std::sync::atomic::Ordering::Relaxed;

use super::{Generator, PLACES, PROBE_STEP};
use crate::call::{Call, Phase, Talk};
use crate::plan::{Media, Plan};
use crate::signalling::Told;
use crate::tone::TONES;

/// Calls that are begun in one step at most, so that a pause does not end in a burst.
const BEGUN_MAX: u64 = 20;

impl Generator {
    /// Everything about SIP: what came, calls that begin, calls that end.
    pub(super) fn signal(&mut self, now: Instant) {
        let mut told = std::mem::take(&mut self.told);
        self.signalling.turn(now, &mut told);
        for told in told.drain(..) {
            self.heed(told, now);
        }
        self.told = told;
        self.begin_calls(now);
        self.end_calls(now);
    }

    fn heed(&mut self, told: Told, now: Instant) {
        match told {
            Told::Answered(slot, sdp) => self.answered(slot, &sdp, now),
            Told::Offered(incoming) => self.offered(&incoming, now),
            Told::Refused(slot, status) => {
                if let Some(call) = self.remove(slot)
                    && call.phase == Phase::Calling
                {
                    *self.counted.refused.entry(status).or_default() += 1;
                    self.counted.refusal_time.add(now - call.began);
                    self.progress.refused.fetch_add(1, Relaxed);
                }
            }
            Told::Ended(slot, by_peer) => {
                if let Some(call) = self.remove(slot) {
                    // A callee's call ends with its caller's.
                    self.counted.ended += u64::from(by_peer && !call.is_callee);
                }
            }
            Told::Renewed(slot, request, sdp) => self.renewed(slot, request, &sdp, now),
            Told::Registered(done) => {
                self.progress.registered.store(done.map_or_else(u64::from, |()| 200), Relaxed);
            }
        }
    }

    fn begin_calls(&mut self, now: Instant) {
        let ready = !self.plan.registers || self.progress.registered.load(Relaxed) == 200;
        if self.plan.number.is_none() || !ready || self.begun >= self.plan.calls {
            return;
        }
        let since = *self.calling_since.get_or_insert(now);
        let due = ((now - since).as_secs_f64() * self.plan.rate) as u64 + 1;
        let until = due.min(self.plan.calls).min(self.begun + BEGUN_MAX);
        while self.begun < until {
            self.call(now);
        }
    }

    fn call(&mut self, now: Instant) {
        let number = self.begun;
        self.begun += 1;
        self.counted.begun += 1;
        let Some(slot) = self.open(false, number, now) else {
            *self.counted.refused.entry(0).or_default() += 1;
            self.progress.refused.fetch_add(1, Relaxed);
            return;
        };
        let local = |call: &Call| local(&self.plan, call, self.plan.offers);
        let mut offer = Vec::new();
        if let Some(Some(call)) = self.calls.get_mut(slot as usize) {
            let local = local(call);
            call.negotiator.offer(&local, &mut offer);
        }
        if self.signalling.invite(slot, &offer, now).is_err() {
            self.remove(slot);
            *self.counted.refused.entry(0).or_default() += 1;
        }
    }

    /// A place, with ports, for a call.
    fn open(&mut self, is_callee: bool, number: u64, now: Instant) -> Option<u32> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.calls.push(None);
            u32::try_from(self.calls.len() - 1).unwrap_or(u32::MAX)
        });
        let (random, id) = (self.draw(), self.draw());
        let ips = &self.plan.local;
        let ip = *ips.get(slot as usize % ips.len().max(1))?;
        let Ok(leg) = self.wire.open(slot, ip, random) else {
            self.free.push(slot);
            return None;
        };
        self.generation = self.generation.wrapping_add(1);
        let call = Call {
            is_callee,
            number,
            generation: self.generation,
            phase: Phase::Calling,
            ip,
            leg,
            negotiator: Negotiator::new(id),
            began: now,
            up_at: now,
            talk: None,
        };
        *self.calls.get_mut(slot as usize)? = Some(Box::new(call));
        Some(slot)
    }

    fn remove(&mut self, slot: u32) -> Option<Box<Call>> {
        let call = self.calls.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        self.up -= u64::from(matches!(call.phase, Phase::Up | Phase::Ending));
        if let Some(probe) = call.talk.as_ref().and_then(|talk| talk.probe) {
            self.checker.end(probe);
        }
        Some(call)
    }

    fn answered(&mut self, slot: u32, sdp: &[u8], now: Instant) {
        let offers = self.plan.offers;
        let Some(Some(call)) = self.calls.get_mut(slot as usize) else { return };
        if call.phase != Phase::Calling {
            return;
        }
        let local = local(&self.plan, call, offers);
        let agreed = call.negotiator.accept_answer(sdp, &local).ok();
        let began = call.began;
        self.counted.answered += 1;
        self.counted.answer_time.add(now - began);
        self.progress.answered.fetch_add(1, Relaxed);
        self.rise(slot, agreed.as_ref(), now);
    }

    fn offered(&mut self, incoming: &Incoming, now: Instant) {
        if !self.plan.answers {
            self.signalling.refuse(incoming, 480);
            return;
        }
        let number = self.taken;
        let Some(slot) = self.open(true, number, now) else {
            self.signalling.refuse(incoming, 503);
            return;
        };
        let accepts = self.plan.accepts;
        let mut answer = Vec::new();
        let agreed = self.calls.get_mut(slot as usize).and_then(|place| {
            let call = place.as_mut()?;
            let local = local(&self.plan, call, accepts);
            call.negotiator.answer(incoming.message.view().sdp()?, &local, &mut answer).ok()
        });
        if agreed.is_none() {
            self.remove(slot);
            self.signalling.refuse(incoming, 488);
        } else if self.signalling.accept(slot, incoming, &answer, now).is_err() {
            self.remove(slot);
        } else {
            self.taken += 1;
            self.counted.taken += 1;
            self.rise(slot, agreed.as_ref(), now);
        }
    }

    fn renewed(&mut self, slot: u32, request: ServerId, sdp: &[u8], now: Instant) {
        let (offers, accepts) = (self.plan.offers, self.plan.accepts);
        let mut answer = Vec::new();
        let agreed = self.calls.get_mut(slot as usize).and_then(|place| {
            let call = place.as_mut()?;
            let local = local(&self.plan, call, if call.is_callee { accepts } else { offers });
            call.negotiator.answer(sdp, &local, &mut answer).ok()
        });
        if let (Some(agreed), Some(Some(call))) = (&agreed, self.calls.get_mut(slot as usize))
            && let (Some(talk), Some(to)) = (&mut call.talk, agreed.remote)
        {
            talk.to = to;
        }
        self.signalling.answer_inside(request, agreed.is_some().then_some(&answer), now);
    }

    /// A call is up: its audio begins.
    fn rise(&mut self, slot: u32, agreed: Option<&Negotiated>, now: Instant) {
        self.up += 1;
        let random = self.draw();
        let Some(Some(call)) = self.calls.get_mut(slot as usize) else { return };
        (call.phase, call.up_at) = (Phase::Up, now);
        let (number, generation, is_callee) = (call.number, call.generation, call.is_callee);
        let Some(agreed) = agreed.filter(|_| self.plan.media != Media::None) else { return };
        let Some(send) = agreed.primary() else { return };
        let tone = if is_callee { None } else { Some(number as usize % TONES) };
        // A callee that does not know its tone yet speaks all the same: a peer learns its address.
        let sound = self.sound(send.format, agreed.ptime_ms, Some(tone.unwrap_or(0)));
        let Some(mut talk) = Talk::new(agreed, sound, random) else { return };
        if is_callee {
            // It learns at once whose tone to speak.
            talk.probe = Some(self.checker.begin(slot, talk.format, now));
        }
        let packet_ms = usize::from(talk.packet_ms).max(1);
        if let Some(Some(call)) = self.calls.get_mut(slot as usize) {
            call.talk = Some(talk);
        }
        // From the next step on, calls spread over the milliseconds of a packet.
        self.phase = self.phase.wrapping_add(1);
        let place = (self.steps as usize + 1 + self.phase % packet_ms) % PLACES;
        if let Some(place) = self.wheel.get_mut(place) {
            place.push((slot, generation));
        }
    }

    fn end_calls(&mut self, now: Instant) {
        if let Some((since, rate, done)) = self.hanging_up {
            let due = ((now - since).as_secs_f64() * rate) as u64;
            let mut left = due.saturating_sub(done);
            self.hanging_up = Some((since, rate, due));
            for slot in 0..self.calls.len() {
                if left == 0 {
                    break;
                }
                left -= u64::from(self.hang_up(slot, now));
            }
        }
        let Some(hold) = self.plan.hold.filter(|_| self.steps.is_multiple_of(PROBE_STEP)) else { return };
        for slot in 0..self.calls.len() {
            let over = |call: &Call| !call.is_callee && call.phase == Phase::Up && now - call.up_at >= hold;
            if self.calls.get(slot).is_some_and(|call| call.as_ref().is_some_and(|call| over(call))) {
                self.hang_up(slot, now);
            }
        }
    }

    /// Ends a call; false when there is none to end.
    fn hang_up(&mut self, slot: usize, now: Instant) -> bool {
        let Some(Some(call)) = self.calls.get_mut(slot) else { return false };
        call.phase = match call.phase {
            Phase::Calling => Phase::Canceling,
            Phase::Up => Phase::Ending,
            Phase::Canceling | Phase::Ending => return false,
        };
        call.talk = None;
        self.signalling.hang_up(slot as u32, now);
        true
    }
}

/// Our side of a call's session.
fn local(plan: &Plan, call: &Call, formats: FormatSet) -> Local<'static> {
    Local {
        ptime_ms: plan.packet_ms,
        use_remote_ptime: true,
        single_format: true,
        owner: "load",
        session_name: "load",
        ..Local::new(formats, call.ip, call.leg.port())
    }
}
