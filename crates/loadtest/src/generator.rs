//! The generator's one thread: signalling, packets out on a wheel of milliseconds, packets in at every look.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use base::{FormatId, Instant};
use io::clock::Clock;
use io::media::{Batch, Wire, thread_cpu};
use sip::sdp::{Local, Negotiated, Negotiator};
use sip::stack::{Incoming, ServerId};

use crate::call::{Call, Phase, Talk};
use crate::check::{Checker, Verdict};
use crate::plan::{Hear, Media, Plan};
use crate::report::Report;
use crate::signalling::{Signalling, Told};
use crate::tone::{self, Heard, Sound, TONES};

/// A step of the wheel.
const STEP: Duration = Duration::from_millis(1);
/// Places of the wheel: more than the longest packet has milliseconds.
const PLACES: usize = 64;
/// Milliseconds that are caught up with after a delay; what is older is left out, and counted.
const CATCH_UP: u64 = 100;
/// Calls that are begun in one step at most, so that a pause does not end in a burst.
const BEGUN_MAX: u64 = 20;
/// Packets after which an address is learned by everyone, and after which [`Media::Receive`] is silent.
const INTRODUCTION: u64 = 8;
/// Calls so old ought to hear what they ought to; callees know their tone by then.
const SETTLED: Duration = Duration::from_secs(3);
/// A side that has heard nothing for so long is silent.
const SILENT: Duration = Duration::from_secs(1);
/// How often probes are given out.
const PROBE_STEP: u64 = 20;

/// What the thread is asked for.
#[derive(Debug)]
pub(crate) enum Ask {
    /// Count from here on.
    Begin,
    /// What was counted since.
    Count(Sender<Report>),
    /// Send from another call's port, as a stranger would; or as oneself again.
    Stray(bool),
    /// End all calls, so many a second.
    HangUp(f64),
    /// End at once.
    Stop,
}

/// Numbers that anybody may look at while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    /// Sides of calls that are up.
    pub up: AtomicU64,
    /// Sides of calls in any state.
    pub open: AtomicU64,
    /// Calls begun.
    pub begun: AtomicU64,
    /// Calls of ours answered.
    pub answered: AtomicU64,
    /// Calls refused or not answered.
    pub refused: AtomicU64,
    /// Packets received.
    pub received: AtomicU64,
    /// Packets lost.
    pub lost: AtomicU64,
    /// 0 before the first answer of the registrar, then its status.
    pub registered: AtomicU64,
}

pub(crate) struct Generator {
    plan: Plan,
    signalling: Signalling,
    calls: Vec<Option<Box<Call>>>,
    free: Vec<u32>,
    generation: u32,
    wheel: Vec<Vec<(u32, u32)>>,
    /// The next step to do.
    next: Instant,
    steps: u64,
    /// Phase of the next call's packets.
    phase: usize,
    sounds: HashMap<(FormatId, u8, Option<usize>), Sound>,
    checker: Checker,
    cursor: usize,
    probes_due: f64,
    random: u64,
    /// When calling began, and calls begun and taken since the start.
    calling_since: Option<Instant>,
    begun: u64,
    taken: u64,
    hanging_up: Option<(Instant, f64, u64)>,
    stray: bool,
    up: u64,
    counted: Report,
    counted_since: Instant,
    unsent_before: u64,
    cpu_before: Duration,
    progress: Arc<Progress>,
    told: Vec<Told>,
    packet: Box<[u8]>,
    // After the calls, which hold legs of it.
    wire: Wire,
}

impl Generator {
    pub(crate) fn new(
        plan: Plan,
        wire: Wire,
        signalling: Signalling,
        random: u64,
        progress: Arc<Progress>,
    ) -> Self {
        let now = Clock.now();
        let mut generator = Self {
            plan,
            signalling,
            calls: Vec::new(),
            free: Vec::new(),
            generation: 0,
            wheel: vec![Vec::new(); PLACES],
            next: now,
            steps: 0,
            phase: 0,
            sounds: HashMap::new(),
            checker: Checker::default(),
            cursor: 0,
            probes_due: 0.0,
            random,
            calling_since: None,
            begun: 0,
            taken: 0,
            hanging_up: None,
            stray: false,
            up: 0,
            counted: Report::default(),
            counted_since: now,
            unsent_before: 0,
            cpu_before: thread_cpu(),
            progress,
            told: Vec::new(),
            packet: vec![0; 8192].into(),
            wire,
        };
        generator.prepare_sounds();
        if generator.plan.registers {
            generator.signalling.register(now);
        }
        generator
    }

    /// Codes every tone that is going to be spoken: later it would delay packets.
    fn prepare_sounds(&mut self) {
        let formats: Vec<FormatId> = self.plan.offers.iter().chain(self.plan.accepts.iter()).collect();
        for format in formats {
            for tone in 0..TONES {
                self.sound(format, self.plan.packet_ms, Some(tone));
            }
        }
    }

    fn sound(&mut self, format: FormatId, packet_ms: u8, tone: Option<usize>) -> Sound {
        let make = || tone::spoken(format, usize::from(packet_ms), tone.map(tone::hertz));
        self.sounds.entry((format, packet_ms, tone)).or_insert_with(make).clone()
    }

    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ self.random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// The thread's whole life.
    pub(crate) fn run(mut self, asks: &Receiver<Ask>) {
        self.next = Clock.now();
        self.begin_counting();
        let mut batch = Batch::new();
        loop {
            loop {
                match asks.try_recv() {
                    Ok(Ask::Stop) | Err(TryRecvError::Disconnected) => return,
                    Ok(ask) => self.obey(ask),
                    Err(TryRecvError::Empty) => break,
                }
            }
            self.look(&mut batch);
            let now = Clock.now();
            if now >= self.next {
                self.step(now);
            }
            let now = Clock.now();
            let wake = self.next.min(now + self.plan.look_every);
            if wake > now {
                std::thread::sleep(wake - now);
            }
        }
    }

    fn obey(&mut self, ask: Ask) {
        match ask {
            Ask::Begin => self.begin_counting(),
            Ask::Count(reply) => {
                // Who asked may have gone.
                let _ = reply.send(self.report());
            }
            Ask::Stray(on) if on != self.stray => {
                self.stray = on;
                self.swap_legs();
            }
            Ask::Stray(_) => {}
            Ask::HangUp(rate) => {
                let now = Clock.now();
                self.plan.calls = self.begun;
                self.hanging_up = Some((now, rate, 0));
            }
            Ask::Stop => {}
        }
    }

    fn begin_counting(&mut self) {
        self.counted = Report::default();
        self.counted_since = Clock.now();
        self.unsent_before = self.wire.unsent();
        self.cpu_before = thread_cpu();
    }

    /// What was counted, with what each call has to say at this moment.
    fn report(&self) -> Report {
        let now = Clock.now();
        let mut report = self.counted.clone();
        report.io = format!("{}; {}", self.wire.io().name(), self.wire.io().reason());
        report.length = now - self.counted_since;
        report.up = self.up;
        report.unsent = self.wire.unsent() - self.unsent_before;
        report.own.cpu = thread_cpu().saturating_sub(self.cpu_before);
        for call in self.calls.iter().flatten().filter(|call| call.phase == Phase::Up) {
            let Some(talk) = &call.talk else { continue };
            report.jitter.add(talk.reception.jitter());
            report.lossy += u64::from(talk.reception.lost() > 0);
            let hears = self.plan.hear != Hear::Anything || talk.reception.received() > 0;
            let quiet = now - talk.reception.heard_at().max(call.up_at) > SILENT;
            report.silent += u64::from(hears && quiet);
        }
        report
    }

    /// Takes in everything that has arrived.
    fn look(&mut self, batch: &mut Batch) {
        let before = thread_cpu();
        loop {
            batch.clear();
            let more = self.wire.rx_batch(batch);
            let now = Clock.now();
            for (arrival, packet) in batch.iter().filter(|(arrival, _)| !arrival.rtcp) {
                self.hear(arrival.slot, packet, now);
            }
            if !more {
                break;
            }
        }
        self.counted.own.cpu_receive += thread_cpu().saturating_sub(before);
    }

    fn hear(&mut self, slot: u32, packet: &[u8], now: Instant) {
        let Some(Some(call)) = self.calls.get_mut(slot as usize) else { return };
        let Some(talk) = &mut call.talk else { return };
        let Ok((header, payload)) = rtp::parse(packet) else { return };
        let Some(format) = talk.received_format(header.payload_type) else { return };
        talk.reception.packet(&header, format.rtp_clock(), now, &mut self.counted.arrivals);
        if let (Some(probe), Some(payload)) = (talk.probe, packet.get(payload)) {
            let wanted = match (self.plan.hear, call.is_callee) {
                (Hear::Hertz(hertz), false) => Some(hertz),
                _ => None,
            };
            if let Some(verdict) = self.checker.packet(probe, format, &header, payload, wanted) {
                talk.probe = None;
                self.judge(&verdict, now);
            }
        }
    }

    /// Compares what a call hears with what it ought to. What is wrong once is listened to again at once: a codec may make
    /// a beat unlike itself, but hardly the next one too.
    fn judge(&mut self, verdict: &Verdict, now: Instant) {
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
        let again = !right && !talk.suspect;
        self.counted.wrong += u64::from(!right && !again);
        talk.suspect = again;
        if again {
            talk.probe = Some(self.checker.begin(verdict.slot, talk.format, now));
        }
    }

    /// Does all steps whose time has come.
    fn step(&mut self, now: Instant) {
        let behind = (now - self.next).as_millis() as u64;
        if behind > CATCH_UP {
            self.counted.own.skipped += behind - CATCH_UP;
            self.next += STEP * u32::try_from(behind - CATCH_UP).unwrap_or(u32::MAX);
        }
        self.signal(now);
        let before = thread_cpu();
        while self.next <= now {
            self.counted.own.lateness.add(now - self.next);
            self.send_due();
            self.next += STEP;
            self.steps += 1;
            if self.steps.is_multiple_of(PROBE_STEP) {
                self.give_out_probes(now);
            }
        }
        self.wire.tx_batch();
        self.counted.own.cpu_send += thread_cpu().saturating_sub(before);
        self.show_progress();
    }

    fn send_due(&mut self) {
        let place = (self.steps % PLACES as u64) as usize;
        let Some(due) = self.wheel.get_mut(place) else { return };
        let mut due = std::mem::take(due);
        for &(slot, generation) in &due {
            let Some(Some(call)) = self.calls.get_mut(slot as usize) else { continue };
            let Call { generation: own, talk: Some(talk), leg, .. } = &mut **call else { continue };
            if *own != generation || !(self.plan.media.sends() || talk.sent < INTRODUCTION) {
                continue;
            }
            let length = talk.write(&mut self.packet);
            if let Some(packet) = self.packet.get(..length).filter(|packet| !packet.is_empty()) {
                self.wire.put(slot, leg, talk.to, packet);
                self.counted.sent += 1;
            }
            let again = (place + usize::from(talk.packet_ms)) % PLACES;
            if let Some(place) = self.wheel.get_mut(again) {
                place.push((slot, generation));
            }
        }
        // The room goes back for the next round.
        due.clear();
        if let Some(place) = self.wheel.get_mut(place)
            && place.is_empty()
        {
            *place = due;
        }
    }

    fn show_progress(&self) {
        self.progress.up.store(self.up, Relaxed);
        self.progress.open.store((self.calls.len() - self.free.len()) as u64, Relaxed);
        self.progress.begun.store(self.begun, Relaxed);
        self.progress.received.store(self.counted.arrivals.received, Relaxed);
        self.progress.lost.store(self.counted.arrivals.lost, Relaxed);
    }

    /// Lets some calls be listened to, so that each has its turn in `check_every`.
    fn give_out_probes(&mut self, now: Instant) {
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

    /// Everything about SIP: what came, calls that begin, calls that end.
    fn signal(&mut self, now: Instant) {
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

    /// Exchanges the ports of every second call with those of its neighbour: what they send comes from a stranger then.
    fn swap_legs(&mut self) {
        for pair in self.calls.chunks_exact_mut(2) {
            if let [Some(one), Some(other)] = pair {
                std::mem::swap(&mut one.leg, &mut other.leg);
            }
        }
    }
}

/// Our side of a call's session.
fn local(plan: &Plan, call: &Call, formats: base::FormatSet) -> Local<'static> {
    Local {
        ptime_ms: plan.packet_ms,
        use_remote_ptime: true,
        single_format: true,
        owner: "load",
        session_name: "load",
        ..Local::new(formats, call.ip, call.leg.port())
    }
}
