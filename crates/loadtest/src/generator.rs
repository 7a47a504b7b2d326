//! The generator's one thread: signalling, packets out on a wheel of milliseconds, packets in at every look.

mod calls;
mod checks;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use base::{FormatId, Instant, Random};
use io::clock::Clock;
use io::media::{Batch, Wire, thread_cpu};

use crate::call::{Call, Phase};
use crate::check::Checker;
use crate::plan::{Hear, Plan};
use crate::report::Report;
use crate::signalling::{Signalling, Told};
use crate::tone::{self, Sound, TONES};

/// A step of the wheel.
const STEP: Duration = Duration::from_millis(1);
/// Places of the wheel: more than the longest packet has milliseconds.
const PLACES: usize = 64;
/// Milliseconds that are caught up with after a delay; what is older is left out, and counted.
const CATCH_UP: u64 = 100;
/// Packets after which an address is learned by everyone, and after which [`Media::Receive`] is silent.
const INTRODUCTION: u64 = 8;
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
    random: Random,
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
            random: Random::new(random),
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
        self.random.bits()
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

    /// Exchanges the ports of every second call with those of its neighbour: what they send comes from a stranger then.
    fn swap_legs(&mut self) {
        for pair in self.calls.chunks_exact_mut(2) {
            if let [Some(one), Some(other)] = pair {
                std::mem::swap(&mut one.leg, &mut other.leg);
            }
        }
    }
}
