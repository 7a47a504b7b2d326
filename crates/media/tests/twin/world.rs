//! One run: two workers and their twins, told the same, and what became of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, mpsc};

use base::{AudioSink, Clip, Command, Event, StreamId};
use media::{Batch, Config, Input, Lanes, PacketIo, Worker};

use crate::model::{Sent, Twin, instant};
use crate::parts::Keep;
use crate::script::{Act, CLIPS, Script, WORKERS, sound};

/// Wall time at the beginning, for reports.
const NTP_AT_ZERO: u64 = 0xe000_0000_1234_5678;

/// Datagrams that wait in sockets.
type Inbox = Rc<std::cell::RefCell<VecDeque<(u32, bool, SocketAddr, Vec<u8>)>>>;

/// The network of one worker.
struct Net {
    now_ms: u64,
    /// Datagrams that it gives at a time, at most.
    batch: usize,
    inbox: Inbox,
    attached: BTreeMap<u32, StreamId>,
    sent: BTreeMap<StreamId, Vec<Sent>>,
}

impl Net {
    fn left(&mut self, id: StreamId, to: SocketAddr, rtcp: bool, shared: bool, packet: &[u8]) -> bool {
        let sent = Sent { at_ms: self.now_ms, to, rtcp, shared, bytes: packet.to_vec(), is_exact: true };
        self.sent.entry(id).or_default().push(sent);
        true
    }
}

impl PacketIo for Net {
    type Leg = StreamId;
    fn attach(&mut self, slot: u32, leg: &mut StreamId) -> bool {
        self.attached.insert(slot, *leg);
        true
    }
    fn detach(&mut self, leg: &mut StreamId) {
        self.attached.remove(&leg.slot);
    }
    fn rx_batch(&mut self, batch: &mut Batch) -> bool {
        let mut inbox = self.inbox.borrow_mut();
        // A batch of as many as the test wants, or as fit.
        for _ in 0..self.batch {
            let Some(at) = inbox.iter().position(|(slot, ..)| self.attached.contains_key(slot)) else {
                return false;
            };
            let (slot, rtcp, from, bytes) = &inbox[at];
            if !batch.copy(*slot, *rtcp, *from, bytes) {
                return true;
            }
            inbox.remove(at);
        }
        true
    }
    fn put(&mut self, _: u32, leg: &mut StreamId, to: SocketAddr, packet: &[u8]) -> bool {
        self.left(*leg, to, false, false, packet)
    }
    fn put_rtcp(&mut self, _: u32, leg: &mut StreamId, to: SocketAddr, shared: bool, packet: &[u8]) -> bool {
        self.left(*leg, to, true, shared, packet)
    }
    fn lock(&mut self, _: &mut StreamId, _: Option<SocketAddr>) {}
}

struct Sink(Keep);
impl AudioSink for Sink {
    fn write(&mut self, linear: &[i16]) -> usize {
        self.0.send(linear.to_vec()).expect("somebody keeps it");
        linear.len()
    }
}

/// What a run made of the lines: packets, events, recordings.
#[derive(Default, PartialEq)]
pub struct Outcome {
    pub sent: BTreeMap<StreamId, Vec<Sent>>,
    pub events: BTreeMap<StreamId, Vec<String>>,
    pub recorded: Vec<Vec<i16>>,
    pub panics: u64,
}

fn by_line(events: Vec<Event>) -> BTreeMap<StreamId, Vec<String>> {
    let mut lines: BTreeMap<StreamId, Vec<String>> = BTreeMap::new();
    for event in events {
        let stream = match event {
            Event::Played { stream, .. }
            | Event::DigitBegin { stream, .. }
            | Event::DigitEnd { stream, .. }
            | Event::DigitsSent { stream }
            | Event::Silence { stream, .. }
            | Event::Sound { stream, .. }
            | Event::Talking { stream, .. }
            | Event::Speaker { stream }
            | Event::PictureWanted { stream }
            | Event::Tone { stream, .. }
            | Event::Latched { stream, .. }
            | Event::Sends { stream, .. }
            | Event::RtpTimeout { stream }
            | Event::Stats { stream, .. }
            | Event::Rtcp { stream, .. }
            | Event::Closed { stream, .. } => stream,
        };
        lines.entry(stream).or_default().push(format!("{event:?}"));
    }
    lines
}

fn clips() -> Vec<Arc<Clip>> {
    CLIPS
        .iter()
        .map(|(format, ms, again)| {
            let samples = format.rate().0 as usize * ms / 1000;
            let mut data = vec![0; format.bytes_in(*ms as u16)];
            codec::Encoder::new(*format).encode(&sound(*format, 0, samples), &mut data);
            Arc::new(Clip {
                format: *format,
                data: data.into(),
                loop_from: again.map(|ms| format.bytes_in(ms)),
                packets: None,
            })
        })
        .collect()
}

/// Who is told what happens: workers, or twins.
trait Cast {
    fn now(&mut self, ms: u64);
    fn act(&mut self, act: &Act, clips: &[Arc<Clip>], keep: &Keep);
    fn tick(&mut self, packets: Vec<(u32, bool, SocketAddr, Vec<u8>)>);
}

/// Workers.
struct Workers {
    workers: Vec<(Worker<StreamId>, Net, Vec<Event>)>,
    inbox: Inbox,
    now_ms: u64,
}

impl Workers {
    fn new(lanes: Lanes, batch: usize) -> Self {
        let inbox = Inbox::default();
        let net = || Net {
            now_ms: 0,
            batch,
            inbox: inbox.clone(),
            attached: BTreeMap::new(),
            sent: BTreeMap::new(),
        };
        let config = Config { ntp_at_zero: NTP_AT_ZERO, lanes };
        let workers = (0..WORKERS).map(|_| (Worker::new(config), net(), Vec::new())).collect();
        Self { workers, inbox: inbox.clone(), now_ms: 0 }
    }
    fn input(&mut self, worker: usize, input: Input<StreamId>) {
        let (worker, net, events) = &mut self.workers[worker];
        worker.input(input, instant(self.now_ms), net, events);
        // A leg that is gone is heard no more.
        let open: BTreeSet<_> = worker.streams().collect();
        net.attached.retain(|_, id| open.contains(id));
    }
    fn command(&mut self, make: impl Fn() -> Command) {
        for worker in 0..WORKERS {
            self.input(worker, Input::Command(make()));
        }
    }
}

impl Cast for Workers {
    fn now(&mut self, ms: u64) {
        self.now_ms = ms;
        self.workers.iter_mut().for_each(|(_, net, _)| net.now_ms = ms);
    }
    fn act(&mut self, act: &Act, clips: &[Arc<Clip>], keep: &Keep) {
        match act.clone() {
            // Signalling gives a slot to one stream at a time.
            Act::Open { line, .. }
                if self
                    .workers
                    .iter()
                    .any(|(worker, ..)| worker.streams().any(|id| id.slot == line.slot)) => {}
            Act::Open { worker, line, internal, plan } => {
                let plan = Box::new(plan);
                self.input(
                    worker,
                    match internal {
                        true => Input::OpenInternal { stream: line, plan },
                        false => Input::Open { stream: line, leg: line, plan },
                    },
                );
            }
            Act::Plan { line, plan } => {
                self.command(|| Command::Plan { stream: line, plan: Box::new(plan.clone()) });
            }
            Act::Close { line } => self.command(|| Command::Close { stream: line }),
            Act::Tie { a, b } => self.command(|| Command::Tie { a, b }),
            Act::Join { a, b } => self.command(|| Command::Join { a, b }),
            Act::Part { line } => self.command(|| Command::Part { stream: line }),
            Act::Echo { line, on } => self.command(|| Command::Echo { stream: line, on }),
            Act::Mute { line, heard, sent } => self.command(|| Command::Mute { stream: line, heard, sent }),
            Act::Play { line, play, clip, offset } => {
                self.command(|| Command::Play { stream: line, play, clip: clips[clip].clone(), offset });
            }
            Act::Music { line, clip, epoch_ms } => self.command(|| Command::Music {
                stream: line,
                clip: clips[clip].clone(),
                epoch: instant(epoch_ms),
            }),
            Act::StopPlay { line } => self.command(|| Command::StopPlay { stream: line }),
            Act::SendDigit { line, digit, ms } => {
                self.command(|| Command::SendDigit { stream: line, digit, duration_ms: ms });
            }
            Act::KeepDigits { line, on } => self.command(|| Command::KeepDigits { stream: line, on }),
            Act::Detect { line, on } => self.command(|| Command::DetectInband { stream: line, on }),
            Act::Record { line, format } => self.command(|| {
                let sink = Box::new(Sink(keep.clone()));
                Command::Record { stream: line, format, sink }
            }),
            Act::StopRecord { line } => self.command(|| Command::StopRecord { stream: line }),
            Act::WatchSilence { line, ms } => {
                self.command(|| Command::WatchSilence { stream: line, ms, threshold: 256 });
            }
            Act::Enter { line, room, mixing, member } => {
                self.command(|| Command::Enter { stream: line, room, mixing, member });
            }
            Act::Adjust { line, member } => self.command(|| Command::Adjust { stream: line, member }),
            Act::Stats { line } => self.command(|| Command::Stats { stream: line }),
            Act::Poison { line } => (0..WORKERS).for_each(|worker| self.input(worker, Input::Poison(line))),
            Act::Move { lines, to } => {
                let mut moving = Vec::new();
                for (from, (worker, net, events)) in self.workers.iter_mut().enumerate() {
                    for line in lines.iter().filter(|_| from != to) {
                        moving.extend(worker.release(*line, instant(self.now_ms), net, events));
                    }
                }
                moving.into_iter().for_each(|moving| self.input(to, Input::Adopt(moving)));
            }
            Act::Packet { slot, rtcp, from, bytes } => {
                self.inbox.borrow_mut().push_back((slot, rtcp, from, bytes));
            }
        }
    }
    fn tick(&mut self, _: Vec<(u32, bool, SocketAddr, Vec<u8>)>) {
        for (worker, net, events) in &mut self.workers {
            worker.tick(instant(self.now_ms), net, events);
            let open: BTreeSet<_> = worker.streams().collect();
            net.attached.retain(|_, id| open.contains(id));
        }
        self.inbox.borrow_mut().clear();
    }
}

/// Twins.
struct Twins {
    twins: Vec<Twin>,
}

impl Cast for Twins {
    fn now(&mut self, ms: u64) {
        self.twins.iter_mut().for_each(|twin| twin.set_now(ms));
    }
    fn act(&mut self, act: &Act, clips: &[Arc<Clip>], keep: &Keep) {
        if let Act::Open { line, .. } = act
            && self.twins.iter().any(|twin| twin.is_taken(line.slot))
        {
            return;
        }
        if let Act::Move { lines, to } = act {
            let mut moving = Vec::new();
            for (from, twin) in self.twins.iter_mut().enumerate() {
                for line in lines.iter().filter(|_| from != *to) {
                    moving.extend(twin.release(*line));
                }
            }
            moving.into_iter().for_each(|moved| self.twins[*to].adopt(moved));
            return;
        }
        for (number, twin) in self.twins.iter_mut().enumerate() {
            match act.clone() {
                Act::Open { worker, line, internal, plan } if worker == number => {
                    twin.open(line, internal, plan);
                }
                Act::Plan { line, plan } => twin.plan(line, plan),
                Act::Close { line } => twin.close(line, None),
                Act::Tie { a, b } => twin.tie(a, b),
                Act::Join { a, b } => twin.join(a, b),
                Act::Part { line } => twin.part(line),
                Act::Echo { line, on } => twin.echo(line, on),
                Act::Mute { line, heard, sent } => twin.mute(line, heard, sent),
                Act::Play { line, play, clip, offset } => {
                    twin.play(line, play, clips[clip].clone(), offset);
                }
                Act::Music { line, clip, epoch_ms } => {
                    twin.music(line, clips[clip].clone(), instant(epoch_ms));
                }
                Act::StopPlay { line } => twin.stop_play(line),
                Act::SendDigit { line, digit, ms } => twin.send_digit(line, digit, ms),
                Act::KeepDigits { line, on } => twin.keep_digits(line, on),
                Act::Detect { line, on } => twin.detect(line, on),
                Act::Record { line, format } => twin.record(line, format, Some(keep.clone())),
                Act::StopRecord { line } => twin.record(line, base::FormatId::SLIN, None),
                Act::WatchSilence { line, ms } => twin.watch_silence(line, ms, 256),
                Act::Enter { line, room, mixing, member } => twin.enter(line, room, mixing, member),
                Act::Adjust { line, member } => twin.adjust(line, member),
                Act::Stats { line } => twin.stats(line),
                Act::Poison { line } => twin.poison(line),
                Act::Open { .. } | Act::Move { .. } | Act::Packet { .. } => {}
            }
        }
    }
    fn tick(&mut self, packets: Vec<(u32, bool, SocketAddr, Vec<u8>)>) {
        for (slot, rtcp, from, bytes) in packets {
            self.twins.iter_mut().for_each(|twin| twin.arrived(slot, rtcp, from, &bytes));
        }
        self.twins.iter_mut().for_each(Twin::tick);
    }
}

/// Lets it all happen.
fn perform(script: &Script, cast: &mut dyn Cast) -> Vec<Vec<i16>> {
    let clips = clips();
    let mut kept = Vec::new();
    let mut acts = script.acts.iter().peekable();
    for tick in &script.ticks {
        let mut packets = Vec::new();
        while let Some(timed) = acts.next_if(|timed| timed.at_ms <= *tick) {
            if let Act::Packet { slot, rtcp, from, bytes } = &timed.act {
                packets.push((*slot, *rtcp, *from, bytes.clone()));
            }
            let (keep, recorded) = mpsc::channel();
            if matches!(timed.act, Act::Record { .. }) {
                kept.push(recorded);
            }
            cast.now(timed.at_ms);
            cast.act(&timed.act, &clips, &keep);
        }
        cast.now(*tick);
        cast.tick(packets);
    }
    // In the end all hang up.
    for timed in &script.acts {
        if let Act::Open { line, .. } = timed.act {
            cast.act(&Act::Close { line }, &clips, &mpsc::channel().0);
        }
    }
    kept.into_iter().map(|kept| kept.try_iter().flatten().collect()).collect()
}

/// What workers make of it.
pub fn workers(script: &Script, lanes: Lanes, batch: usize) -> Outcome {
    let mut cast = Workers::new(lanes, batch);
    let recorded = perform(script, &mut cast);
    let mut outcome = Outcome { recorded, ..Outcome::default() };
    let mut events = Vec::new();
    for (worker, net, told) in cast.workers {
        outcome.panics += worker.load().panics;
        for (id, sent) in net.sent {
            outcome.sent.entry(id).or_default().extend(sent);
        }
        events.extend(told);
    }
    outcome.sent.values_mut().for_each(|sent| sent.sort_by_key(|sent| sent.at_ms));
    outcome.events = by_line(events);
    outcome
}

/// What their twins make of it.
pub fn twins(script: &Script) -> Outcome {
    let mut cast = Twins { twins: (0..WORKERS).map(|_| Twin::new(NTP_AT_ZERO)).collect() };
    let recorded = perform(script, &mut cast);
    let mut outcome = Outcome { recorded, ..Outcome::default() };
    let mut events = Vec::new();
    for twin in cast.twins {
        for (id, sent) in twin.sent {
            outcome.sent.entry(id).or_default().extend(sent);
        }
        events.extend(twin.events);
    }
    outcome.sent.values_mut().for_each(|sent| sent.sort_by_key(|sent| sent.at_ms));
    let panicked = |event: &&Event| matches!(event, Event::Closed { fault: Some(base::Fault::Panicked), .. });
    outcome.panics = events.iter().filter(panicked).count() as u64;
    outcome.events = by_line(events);
    outcome
}
