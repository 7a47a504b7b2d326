//! Both sides of a call for whoever writes it down: what a stream receives, from its ear, and what it sends, decoded
//! again from its own packets, whoever made those.

use base::{
    AudioSink, AudioSource, FormatId, Gain, LineIn, LineOut, Listener, MonitorSettings, MonitorSinks,
    SampleRate, ToneWatch, line,
};
use codec::tone::ToneDetector;
use codec::{Coders, Resampler, mix};

use crate::ear::{Ear, FRAME_SAMPLES_MAX};
use crate::room::amplify;

/// Room for what a resampler may give beyond a whole frame.
const SPARE: usize = 8;

/// Those who listen to one stream.
pub(crate) struct Monitors {
    list: Vec<Monitor>,
    /// What the stream sends; `None` while nobody here can decode that.
    sent: Option<Box<Ear>>,
    /// The same while somebody murmurs beside it, without that: who murmurs does not hear himself.
    dry: Option<Box<Dry>>,
    rate: SampleRate,
}

/// What a stream would send without those who murmur to its peer, at the rate of its format.
struct Dry {
    to: LineIn,
    from: LineOut,
    /// Rate that is said, and its converter.
    said: SampleRate,
    rate: SampleRate,
    resampler: Option<Resampler>,
}

impl Dry {
    fn new(rate: SampleRate) -> Self {
        let (to, from) = line(rate);
        Self { to, from, said: rate, rate, resampler: None }
    }
    fn prepare(&mut self, said: SampleRate) {
        if self.said != said {
            self.said = said;
            self.resampler = Resampler::new(said, self.rate);
        }
    }
}

/// Room for a frame of a monitored stream; one for all, because those of a thousand streams would not be in the nearest
/// caches.
pub(crate) struct Room {
    /// What was sent, and both sides as one listener wants them.
    said: Box<[i16]>,
    sides: [Box<[i16]>; 2],
    together: Box<[i16]>,
}

impl Room {
    pub(crate) fn new() -> Self {
        let room = || vec![0; FRAME_SAMPLES_MAX + SPARE].into();
        Self {
            said: room(),
            sides: [room(), room()],
            together: vec![0; 2 * (FRAME_SAMPLES_MAX + SPARE)].into(),
        }
    }
}

/// Detectors of tones in what is received and in what is sent, and how many came since that was last asked.
struct Detectors {
    sides: [Option<ToneDetector>; 2],
    came: [u32; 2],
}

impl Detectors {
    fn frame(&mut self, sides: [&[i16]; 2]) {
        for ((detector, came), side) in self.sides.iter_mut().zip(&mut self.came).zip(sides) {
            *came += detector.as_mut().map_or(0, |detector| detector.process(side));
        }
    }
}

/// The number of the monitor by which somebody listens for tones; those of recordings count from 0.
const fn tones_of(listener: Listener) -> u32 {
    u32::MAX - listener as u32
}

struct Monitor {
    id: u32,
    format: FormatId,
    settings: MonitorSettings,
    sinks: MonitorSinks,
    tones: Option<Box<Detectors>>,
    /// From the rates of what is received and of what is sent.
    resamplers: [Option<Resampler>; 2],
    from: [SampleRate; 2],
}

impl Monitors {
    pub(crate) fn new() -> Self {
        Self { list: Vec::new(), sent: None, dry: None, rate: SampleRate(8000) }
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// Begins one, at the end of those that run; one with the same number ends.
    pub(crate) fn begin(
        &mut self,
        id: u32,
        format: FormatId,
        settings: MonitorSettings,
        sinks: MonitorSinks,
    ) {
        self.end(id);
        let from = [format.rate(); 2];
        self.list.push(Monitor { id, format, settings, sinks, tones: None, resamplers: [None, None], from });
    }
    /// Listens for tones in place of those it listened for.
    pub(crate) fn watch_tone(&mut self, listener: Listener, watch: Option<ToneWatch>) {
        let id = tones_of(listener);
        self.end(id);
        let Some(watch) = watch else { return };
        self.begin(id, FormatId::SLIN, MonitorSettings::default(), MonitorSinks::default());
        if let Some(monitor) = self.list.last_mut() {
            let side = |wanted: bool| wanted.then(|| ToneDetector::new(&watch));
            monitor.tones =
                Some(Box::new(Detectors { sides: [side(watch.heard), side(watch.sent)], came: [0; 2] }));
        }
    }
    /// How many tones came for somebody in what was received and in what was sent since this was last asked.
    pub(crate) fn take_tones(&mut self, listener: Listener) -> [u32; 2] {
        let monitor = self.list.iter_mut().find(|monitor| monitor.id == tones_of(listener));
        monitor
            .and_then(|monitor| monitor.tones.as_mut())
            .map_or([0; 2], |tones| std::mem::take(&mut tones.came))
    }
    pub(crate) fn adjust(&mut self, id: u32, settings: MonitorSettings) {
        if let Some(monitor) = self.list.iter_mut().find(|monitor| monitor.id == id) {
            monitor.settings = settings;
        }
    }
    pub(crate) fn end(&mut self, id: u32) {
        self.list.retain(|monitor| monitor.id != id);
    }
    /// Builds decoder and converters for what is received at `rate` and sent in `format`, with somebody who murmurs beside
    /// something at the rate `beside`; never per packet.
    pub(crate) fn prepare(
        &mut self,
        rate: SampleRate,
        format: FormatId,
        beside: Option<SampleRate>,
        jitter_max_ms: u16,
        coders: &Coders,
    ) {
        self.rate = rate;
        let is_coded = coders.coded().contains(format);
        match beside.filter(|_| is_coded) {
            None => self.dry = None,
            Some(beside) => {
                let own = self.dry.take().filter(|dry| dry.rate == format.rate());
                let dry = own.unwrap_or_else(|| Box::new(Dry::new(format.rate())));
                self.dry.insert(dry).prepare(beside);
            }
        }
        let is_heard = self.list.iter().any(|monitor| {
            monitor.tones.as_ref().is_none_or(|tones| tones.sides.last().is_some_and(Option::is_some))
        });
        if !is_coded || !is_heard {
            self.sent = None;
        } else if self.sent.as_ref().is_none_or(|ear| !ear.fits(format)) {
            self.sent = Some(Box::new(Ear::new(format, jitter_max_ms, coders)));
        }
        let from = [rate, self.sent.as_ref().map_or(rate, |ear| ear.format().rate())];
        for monitor in &mut self.list {
            let sides = monitor.from.iter_mut().zip(&mut monitor.resamplers).zip(from);
            for ((known, resampler), from) in sides {
                if *known != from {
                    *known = from;
                    *resampler = Resampler::new(from, monitor.format.rate());
                }
            }
        }
    }
    /// What the stream is about to send but for those who murmur. A rate that was not prepared, because what it sends has
    /// just changed, is prepared now.
    pub(crate) fn dry(&mut self, linear: &[i16], rate: SampleRate) {
        let Some(dry) = &mut self.dry else { return };
        dry.prepare(rate);
        match &mut dry.resampler {
            None => drop(dry.to.write(linear)),
            Some(resampler) => {
                let mut converted = [0; FRAME_SAMPLES_MAX + SPARE];
                let count = resampler.process(linear, &mut converted).min(converted.len());
                dry.to.write(converted.get(..count).unwrap_or_default());
            }
        }
    }
    /// A packet that the stream sends.
    pub(crate) fn sent(&mut self, format: FormatId, sequence: u16, timestamp: u32, payload: &[u8]) {
        if self.dry.is_some() {
            return;
        }
        if let Some(ear) = self.sent.as_mut().filter(|ear| ear.format() == format) {
            // Too late for the recording, as it would be for the peer.
            let _ = ear.push(sequence, timestamp, payload);
        }
    }
    /// One frame of what was received, at the rate that was prepared; `came`: it is no stopgap for packets that are not sent;
    /// `connected`: the stream talks to somebody.
    pub(crate) fn frame(&mut self, heard: &[i16], came: bool, connected: bool, room: &mut Room) {
        let Self { list, sent, dry, rate } = self;
        let Room { said, sides, together } = room;
        let (mut said_count, mut went) = (0, false);
        if let Some(ear) = sent {
            said_count = heard.len() * ear.format().rate().0 as usize / rate.0.max(1) as usize;
            if let (Some(said), Some(dry)) = (said.get_mut(..said_count), &mut *dry) {
                let count = dry.from.read(said);
                said.get_mut(count..).unwrap_or_default().fill(0);
                went = count > 0;
            } else if let Some(said) = said.get_mut(..said_count) {
                ear.gather(said_count);
                ear.take(said);
                went = !ear.is_starved();
                if !went {
                    said.fill(0);
                }
            }
        }
        let said = said.get(..said_count).unwrap_or_default();
        let runs = |settings: &MonitorSettings| !settings.paused && (connected || !settings.bridged_only);
        for monitor in list.iter_mut().filter(|monitor| runs(&monitor.settings)) {
            let Monitor { settings, sinks, tones, resamplers, .. } = monitor;
            let [mine, theirs] = sides;
            let [from_heard, from_said] = resamplers;
            let mine = shape(heard, from_heard, settings.heard, settings.hears, mine);
            let theirs = shape(said, from_said, settings.said, settings.says, theirs);
            // Rates that do not divide each other may differ by a sample now and then.
            let heard_count = mine.len();
            let count = if said.is_empty() { heard_count } else { heard_count.min(theirs.len()) };
            let theirs = theirs.get(..count).unwrap_or_default();
            if let Some(tones) = tones {
                tones.frame([mine, theirs]);
                continue;
            }
            if came || settings.in_step {
                write(&mut sinks.heard, mine);
            }
            if went || settings.in_step {
                write(&mut sinks.said, theirs);
            }
            if sinks.mixed.is_none() {
                continue;
            }
            let length = if settings.stereo {
                for ((pair, mine), theirs) in together.as_chunks_mut().0.iter_mut().zip(mine).zip(theirs) {
                    *pair = [*mine, *theirs];
                }
                2 * count
            } else {
                let (one, _) = together.split_at_mut(heard_count.min(together.len()));
                one.copy_from_slice(mine);
                mix::add(one, theirs);
                heard_count
            };
            write(&mut sinks.mixed, together.get(..length).unwrap_or_default());
        }
    }
}

/// One side at the rate and loudness that are wanted: as it came, or in the room.
fn shape<'a>(
    from: &'a [i16],
    resampler: &mut Option<Resampler>,
    gain: Gain,
    is_wanted: bool,
    room: &'a mut [i16],
) -> &'a [i16] {
    if resampler.is_none() && is_wanted && gain == Gain::UNITY {
        return from.get(..from.len().min(room.len())).unwrap_or_default();
    }
    let count = match resampler {
        None => room.iter_mut().zip(from).map(|(to, from)| *to = *from).count(),
        Some(resampler) => resampler.process(from, room).min(room.len()),
    };
    let samples = room.get_mut(..count).unwrap_or_default();
    if is_wanted {
        amplify(samples, gain);
    } else {
        samples.fill(0);
    }
    samples
}

fn write(sink: &mut Option<Box<dyn AudioSink>>, samples: &[i16]) {
    if let Some(sink) = sink {
        // What does not fit is counted by the sink.
        sink.write(samples);
    }
}
