//! Who is coded together: turns that wait for company, and the groups that run.
//!
//! A visit of a stream whose decoder or encoder has lanes leaves a [`Turn`]. At the end of a tick the turns whose step
//! (decode or encode, codec, mode) has enough company are run, and so is everything that has waited long enough, in
//! phases: decode, then resample and taps, then encode, then send. What is due is taken from the jitter buffer at the
//! visit and a packet carries the visit's time, so that neither depends on who else is there.

use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

use base::{Event, Fault, FormatId, Instant, StreamId};
use codec::{DecodeTasks, EncodeTasks, GROUP_MAX, Level};
use smallvec::SmallVec;

use crate::ear::Ear;
use crate::mouth::Mouth;
use crate::packet_io::PacketIo;
use crate::phase::Phase;
use crate::stream::Stream;
use crate::worker::{Desk, Worker};

/// Longest wait that may be set, milliseconds: less than the shortest packet, so that a stream never has two turns.
pub const WAIT_MS_MAX: u8 = 9;

/// How streams are coded side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes {
    /// Instructions.
    pub level: Level,
    /// How long a stream's turn may wait for a full group, milliseconds, at most [`WAIT_MS_MAX`]; 0 never waits.
    pub wait_ms: u8,
}

impl Default for Lanes {
    /// What this CPU has, and 5 ms: a quarter of the usual packet.
    fn default() -> Self {
        Self { level: Level::best(), wait_ms: 5 }
    }
}

/// One frame of one stream on its way through decoder and encoder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// Whose visit it was.
    pub(crate) to: StreamId,
    /// Whose ear is heard.
    pub(crate) from: StreamId,
    /// When the visit was due.
    pub(crate) at: Instant,
    /// The step that needs company.
    pub(crate) step: Step,
    /// `to` sends what is heard; else only taps listen.
    pub(crate) speaks: bool,
    /// `to` sends what it plays, and its encoder has listened already: nobody's ear is concerned.
    pub(crate) plays: bool,
    /// There is something to send.
    pub(crate) has_frame: bool,
}

/// What lanes do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Decode(FormatId),
    Encode(FormatId),
}

/// Steps, as indices.
const STEPS: usize = 2 * FormatId::ALL.len();

impl Step {
    const fn format(self) -> FormatId {
        match self {
            Self::Decode(format) | Self::Encode(format) => format,
        }
    }
    fn index(self) -> usize {
        match self {
            Self::Decode(format) => 2 * format.index(),
            Self::Encode(format) => 2 * format.index() + 1,
        }
    }
}

/// Turns that wait, and those that are run.
#[derive(Debug)]
pub(crate) struct Groups {
    lanes: Lanes,
    waiting: Vec<Turn>,
    running: Vec<Turn>,
    /// When turns were last looked at: how long until the next time is taken to be the same again.
    looked: Instant,
}

#[derive(Clone, Copy)]
struct Company {
    /// Those that there are, then those that run.
    turns: usize,
    oldest: Instant,
    judged: bool,
}

impl Groups {
    pub(crate) fn new(lanes: Lanes) -> Self {
        let lanes = Lanes { wait_ms: lanes.wait_ms.min(WAIT_MS_MAX), ..lanes };
        Self { lanes, waiting: Vec::new(), running: Vec::new(), looked: Instant::ZERO }
    }
    /// Room for the turns of so many streams, so that a tick never allocates: one each that speaks, one that is heard meanwhile,
    /// and one for taps.
    pub(crate) fn reserve(&mut self, streams: usize) {
        for turns in [&mut self.waiting, &mut self.running] {
            turns.reserve((3 * streams).saturating_sub(turns.len()));
        }
    }
    pub(crate) fn push(&mut self, turn: Turn) {
        self.waiting.push(turn);
    }
    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
    /// When the first turn has waited long enough.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|turn| turn.at).min().map(|at| at + self.wait())
    }
    const fn wait(&self) -> Duration {
        Duration::from_millis(self.lanes.wait_ms as u64)
    }
    /// How many frames of this format make a full group.
    pub(crate) fn size(&self, format: FormatId) -> usize {
        codec::group_size(format, self.lanes.level).clamp(1, GROUP_MAX)
    }
    /// Moves the turns that are to run: whole groups, and all of a step of which one could not wait until the next look.
    fn select(&mut self, now: Instant, all: bool) {
        let next = now + (now - self.looked).min(self.wait());
        self.looked = now;
        let mut steps = [Company { turns: 0, oldest: Instant::ZERO, judged: false }; STEPS];
        for turn in &self.waiting {
            if let Some(company) = steps.get_mut(turn.step.index()) {
                if company.turns == 0 || turn.at < company.oldest {
                    company.oldest = turn.at;
                }
                company.turns += 1;
            }
        }
        let (wait, level) = (self.wait(), self.lanes.level);
        let Self { waiting, running, .. } = self;
        for turn in waiting.iter() {
            if let Some(company) = steps.get_mut(turn.step.index())
                && !all
                && !company.judged
            {
                company.judged = true;
                if company.oldest + wait > next {
                    company.turns -= company.turns % codec::group_size(turn.step.format(), level).max(1);
                }
            }
        }
        running.clear();
        // In order, so that what is left over of whole groups is the newest.
        waiting.retain(|turn| {
            let Some(company) = steps.get_mut(turn.step.index()).filter(|company| company.turns > 0) else {
                return true;
            };
            company.turns -= 1;
            running.push(*turn);
            false
        });
    }
}

impl<L> Worker<L> {
    /// Runs the turns whose time has come; with `all`, every one.
    pub(crate) fn run_turns<P>(&mut self, now: Instant, all: bool, io: &mut P, events: &mut Vec<Event>)
    where
        P: PacketIo<Leg = L>,
    {
        if self.groups.is_empty() {
            self.groups.looked = now;
            return;
        }
        io.phase(Phase::Decode);
        self.groups.select(now, all);
        // Taken out while others of the worker are borrowed; no allocation, and given back below.
        let mut running = core::mem::take(&mut self.groups.running);
        for turn in &running {
            if let Some(stream) = self.streams.get_mut(turn.to) {
                stream.turns = stream.turns.saturating_sub(1);
            }
        }
        for format in FormatId::coded().filter(|format| codec::decode_frame(*format).is_some()) {
            while self.decode_group(format, &running, io, events) {}
        }
        io.phase(Phase::Mix);
        for turn in &mut running {
            let Turn { to, from, at, speaks, plays, .. } = *turn;
            if plays {
                turn.has_frame = true;
                continue;
            }
            self.guarded(at, io, events, |desk| turn.has_frame = desk.listen(to, from, speaks));
        }
        io.phase(Phase::Encode);
        for format in FormatId::coded().filter(|format| codec::encode_frame(*format).is_some()) {
            while self.encode_group(format, &running, now, io, events) {}
        }
        for turn in running.iter().filter(|turn| turn.has_frame) {
            self.guarded(turn.at, io, events, |desk| match turn.plays {
                true => desk.utter_played(turn.to),
                false => desk.utter(turn.to),
            });
        }
        io.phase(Phase::Control);
        running.clear();
        self.groups.running = running;
    }

    /// Decodes one group of this format; false when nobody needs it.
    pub(crate) fn decode_group<P>(
        &mut self,
        format: FormatId,
        turns: &[Turn],
        io: &mut P,
        events: &mut Vec<Event>,
    ) -> bool
    where
        P: PacketIo<Leg = L>,
    {
        let size = self.groups.size(format);
        let mut bench: Bench<Ear> = SmallVec::new();
        for turn in turns.iter().filter(|turn| !turn.plays) {
            let hears = |ear: &Ear| ear.format() == format;
            if !self.streams.get(turn.from).is_some_and(|s| s.ear.as_deref().is_some_and(hears)) {
                continue;
            }
            // Losses before the next frame are concealed here: the stream's own code.
            let mut ready = false;
            self.guarded(turn.at, io, events, |desk| ready = desk.settle(turn.from));
            if ready && let Some(ear) = self.streams.get_mut(turn.from).and_then(|s| s.ear.take()) {
                bench.push((turn.from, ear));
            }
            if bench.len() == size {
                break;
            }
        }
        let at = turns.first().map_or(Instant::ZERO, |turn| turn.at);
        self.run_bench(bench, size, at, io, events)
    }

    /// Encodes one group of this format; false when nobody needs it.
    fn encode_group<P>(
        &mut self,
        format: FormatId,
        turns: &[Turn],
        now: Instant,
        io: &mut P,
        events: &mut Vec<Event>,
    ) -> bool
    where
        P: PacketIo<Leg = L>,
    {
        let size = self.groups.size(format);
        let mut bench: Bench<Mouth> = SmallVec::new();
        for turn in turns.iter().filter(|turn| turn.has_frame) {
            let Some(stream) = self.streams.get_mut(turn.to) else { continue };
            let ready = |mouth: &mut Box<Mouth>| mouth.format() == format && mouth.is_ready();
            let own = match turn.plays {
                true => stream.play.as_mut().and_then(|playing| playing.mouth_seat()),
                false => Some(&mut stream.mouth),
            };
            if let Some(mouth) = own.and_then(|own| own.take_if(ready)) {
                bench.push((turn.to, mouth));
            }
            if bench.len() == size {
                break;
            }
        }
        self.run_bench(bench, size, now, io, events)
    }

    /// Runs one group, for which there was room for `size`, and gives everybody back; false when it is empty. The streams
    /// of those who panic end, at `at`.
    fn run_bench<C, P>(
        &mut self,
        mut bench: Bench<C>,
        size: usize,
        at: Instant,
        io: &mut P,
        events: &mut Vec<Event>,
    ) -> bool
    where
        C: Coder,
        P: PacketIo<Leg = L>,
    {
        if bench.is_empty() {
            return false;
        }
        let guilty = self.run_group(&mut bench, size);
        for (id, mut coder) in bench {
            coder.note();
            if let Some(place) = self.streams.get_mut(id).and_then(C::place) {
                *place = Some(coder);
            }
        }
        self.end(guilty, at, io, events);
        true
    }

    /// Runs one group, for which there was room for `size`, and tells who panicked.
    ///
    /// When it panics, the state of whoever is not done has not changed: they are run again one by one, and those who
    /// panic then are guilty.
    pub(crate) fn run_group<C: Coder>(&mut self, bench: &mut Bench<C>, size: usize) -> Guilty {
        self.load.groups += 1;
        self.load.grouped += bench.len() as u64;
        self.load.group_room += size as u64;
        let level = self.groups.lanes.level;
        let falls = |bench: &mut [(StreamId, Box<C>)]| {
            catch_unwind(AssertUnwindSafe(|| C::run(level, bench))).is_err()
        };
        let mut guilty = Guilty::new();
        if falls(bench) {
            for one in bench.chunks_mut(1) {
                if !one.iter().all(|(_, coder)| coder.is_done()) && falls(one) {
                    guilty.extend(one.iter().map(|(id, _)| *id));
                }
            }
        }
        guilty
    }

    /// Ends the streams of those who panicked.
    pub(crate) fn end<P>(&mut self, guilty: Guilty, at: Instant, io: &mut P, events: &mut Vec<Event>)
    where
        P: PacketIo<Leg = L>,
    {
        for id in guilty {
            self.load.panics += 1;
            self.close(id, Some(Fault::Panicked), at, io, events);
        }
    }
}

/// Those of a group, taken out of their streams.
pub(crate) type Bench<C> = SmallVec<[(StreamId, Box<C>); GROUP_MAX]>;

/// Those of a group who panicked.
pub(crate) type Guilty = SmallVec<[StreamId; GROUP_MAX]>;

/// An ear or a mouth as a group sees it: something with a frame to lend.
pub(crate) trait Coder: Sized {
    /// Codes the frames that all of them lend.
    fn run(level: Level, bench: &mut [(StreamId, Box<Self>)]);
    /// Whether the frame that was lent has been coded.
    fn is_done(&self) -> bool;
    /// Takes note of that frame, if it has been.
    fn note(&mut self);
    /// Where it belongs, and is missing.
    fn place<L>(stream: &mut Stream<L>) -> Option<&mut Option<Box<Self>>>;
}

impl Coder for Ear {
    fn run(level: Level, bench: &mut [(StreamId, Box<Self>)]) {
        let mut tasks: DecodeTasks<'_> = bench.iter_mut().map(|(_, ear)| ear.task()).collect();
        codec::decode_group(level, &mut tasks);
    }
    fn is_done(&self) -> bool {
        self.is_done()
    }
    fn note(&mut self) {
        self.decoded();
    }
    fn place<L>(stream: &mut Stream<L>) -> Option<&mut Option<Box<Self>>> {
        Some(&mut stream.ear)
    }
}

impl Coder for Mouth {
    fn run(level: Level, bench: &mut [(StreamId, Box<Self>)]) {
        let mut tasks: EncodeTasks<'_> = bench.iter_mut().map(|(_, mouth)| mouth.task()).collect();
        codec::encode_group(level, &mut tasks);
    }
    fn is_done(&self) -> bool {
        self.is_done()
    }
    fn note(&mut self) {
        self.encoded();
    }
    fn place<L>(stream: &mut Stream<L>) -> Option<&mut Option<Box<Self>>> {
        // A stream that plays speaks with nothing else meanwhile.
        let played = stream.play.as_mut().and_then(|playing| playing.mouth_seat());
        match played.filter(|seat| seat.is_none()) {
            Some(seat) => Some(seat),
            None => Some(&mut stream.mouth),
        }
    }
}

impl<P: PacketIo> Desk<'_, P> {
    /// Brings the ear of `id` to its next frame for a group; false when there is none.
    fn settle(&mut self, id: StreamId) -> bool {
        *self.current = Some(id);
        self.streams.get_mut(id).and_then(|stream| stream.ear.as_mut()).is_some_and(|ear| ear.settle())
    }
    /// A turn's frame, as [`Self::pass_on`] has it.
    fn listen(&mut self, to: StreamId, from: StreamId, speaks: bool) -> bool {
        let Some(ms) = self.streams.get(to).map(|stream| stream.plan.ptime_ms) else { return false };
        self.pass_on(to, from, ms, speaks)
    }
}
