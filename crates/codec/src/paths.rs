//! Ways from one format to another: which steps, what they lose, what they cost.
//!
//! A way never leads through a format that loses what both ends could keep: of two ways the one that loses less wins,
//! and only among equals the cheaper one. Costs are microseconds of processor time for a second of sound, measured on
//! this machine ([`Costs::measure`]) or estimated ([`Costs::estimates`]). All of it is worked out once, never per packet.

use core::fmt::Write as _;
use core::time::Duration;

use base::{Coded, FormatId, SampleRate};
use lanes::Level;

use crate::group::group_size;
use crate::measure::{Material, Trial, Work};
use crate::{RATES, Resampler, direct};

/// What one step costs one stream, in microseconds for a second of sound.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Price {
    /// When nobody else needs the step.
    pub alone: f32,
    /// In a full group; equal to `alone` for a format without lanes.
    pub group: f32,
}

/// Formats there are.
const FORMATS: usize = FormatId::ALL.len();
/// A byte through a table, a second of them.
const TABLE_COST: f32 = 3.0;
/// Our share of an external codec: frames into a ring and out of another. What its process needs is not ours.
const LINE_COST: f32 = 40.0;

/// What every step costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    decode: [Price; FORMATS],
    encode: [Price; FORMATS],
    resample: [[f32; RATES.len()]; RATES.len()],
    /// Whether they were measured on this machine.
    pub measured: bool,
}

/// Estimates for lanes of 256 bits, from the project's own measurements: decode alone and in a group, encode alone and in
/// a group.
const ESTIMATES: &[(FormatId, [f32; 4])] = &[
    (FormatId::ULAW, [2.3, 2.3, 3.3, 3.3]),
    (FormatId::ALAW, [2.3, 2.3, 3.3, 3.3]),
    (FormatId::GSM, [203.0, 21.0, 557.0, 48.0]),
    (FormatId::G722, [400.0, 70.0, 634.0, 90.0]),
    (FormatId::ILBC, [229.0, 66.0, 2400.0, 306.0]),
    (FormatId::ILBC30, [216.0, 60.0, 2730.0, 350.0]),
    (FormatId::SPEEX, [239.0, 239.0, 1313.0, 220.0]),
    (FormatId::SPEEX16, [500.0, 500.0, 2500.0, 2500.0]),
    (FormatId::SPEEX32, [700.0, 700.0, 3300.0, 3300.0]),
    (FormatId::G726, [760.0, 110.0, 590.0, 100.0]),
    (FormatId::G726AAL2, [760.0, 110.0, 590.0, 100.0]),
    (FormatId::ADPCM, [25.0, 25.0, 86.0, 86.0]),
    (FormatId::LPC10, [304.0, 304.0, 742.0, 742.0]),
    (FormatId::OPUS, [500.0, 500.0, 5600.0, 5600.0]),
    (FormatId::CODEC2, [500.0, 500.0, 1000.0, 1000.0]),
];

impl Costs {
    /// Estimates, for a machine where nobody has measured.
    pub fn estimates() -> Self {
        let mut costs = Self {
            decode: [Price { alone: 1.0, group: 1.0 }; FORMATS],
            encode: [Price { alone: 1.0, group: 1.0 }; FORMATS],
            resample: [[0.0; RATES.len()]; RATES.len()],
            measured: false,
        };
        let line = Price { alone: LINE_COST, group: LINE_COST };
        for &format in FormatId::ALL.iter().filter(|format| !format.is_coded()) {
            costs.set(format, line, line);
        }
        for &(format, [decode, decode_group, encode, encode_group]) in ESTIMATES {
            costs.set(
                format,
                Price { alone: decode, group: decode_group },
                Price { alone: encode, group: encode_group },
            );
        }
        for (row, from) in costs.resample.iter_mut().zip(RATES) {
            for (cost, to) in row.iter_mut().zip(RATES) {
                // The dot products grow with both rates.
                *cost = if from == to { 0.0 } else { (from.max(to) as f32) / 1000.0 * 4.0 };
            }
        }
        costs
    }
    fn set(&mut self, format: FormatId, decode: Price, encode: Price) {
        if let (Some(a), Some(b)) = (self.decode.get_mut(format.index()), self.encode.get_mut(format.index()))
        {
            (*a, *b) = (decode, encode);
        }
    }
    /// What decoding costs.
    pub fn decode(&self, format: FormatId) -> Price {
        self.decode.get(format.index()).copied().unwrap_or_default()
    }
    /// What encoding costs.
    pub fn encode(&self, format: FormatId) -> Price {
        self.encode.get(format.index()).copied().unwrap_or_default()
    }
    /// What turning one rate into another costs; 0 for equal ones.
    pub fn resample(&self, from: SampleRate, to: SampleRate) -> f32 {
        let index = |rate: SampleRate| RATES.iter().position(|&known| known == rate.0);
        let row = index(from).and_then(|from| self.resample.get(from));
        row.zip(index(to)).and_then(|(row, to)| row.get(to)).copied().unwrap_or(0.0)
    }

    /// Measures every step on `speech` of 8 kHz, `rounds` times, and keeps the shortest time of each.
    ///
    /// `now` is processor time of the calling thread. Takes about 40 ms a second of speech and round; meant for a thread
    /// of its own, because it allocates and does not pause.
    pub fn measure(level: Level, speech: &[i16], rounds: usize, now: &mut dyn FnMut() -> Duration) -> Self {
        let mut costs = Self::estimates();
        costs.measured = true;
        let seconds = (speech.len() as f32 / 8000.0).max(f32::EPSILON);
        let mut timed = |work: &mut dyn FnMut()| {
            let mut best = Duration::MAX;
            for _ in 0..rounds.max(1) {
                let before = now();
                work();
                best = best.min(now().saturating_sub(before));
            }
            best.as_secs_f32() * 1e6 / seconds
        };
        let mut at_rate: Vec<(u32, Vec<i16>)> = vec![(8000, speech.to_vec())];
        for to in RATES {
            for from in RATES {
                let Some(mut resampler) = Resampler::new(SampleRate(from), SampleRate(to)) else { continue };
                let Some((_, source)) = at_rate.iter().find(|(rate, _)| *rate == from) else { continue };
                let mut room = vec![0; resampler.output_max(source.len())];
                let mut count = 0;
                let cost = timed(&mut || count = resampler.process(source, &mut room));
                room.truncate(count);
                costs.set_resample(from, to, cost);
                if !at_rate.iter().any(|(rate, _)| *rate == to) {
                    at_rate.push((to, room));
                }
            }
        }
        // Downwards, once all rates are there.
        for from in RATES {
            for to in RATES.into_iter().filter(|to| *to < from) {
                let Some(mut resampler) = Resampler::new(SampleRate(from), SampleRate(to)) else { continue };
                let Some((_, source)) = at_rate.iter().find(|(rate, _)| *rate == from) else { continue };
                let mut room = vec![0; resampler.output_max(source.len())];
                let cost = timed(&mut || {
                    resampler.process(source, &mut room);
                });
                costs.set_resample(from, to, cost);
            }
        }
        for format in FormatId::coded() {
            let (decode, encode) = measure_format(level, format, speech, &mut timed);
            costs.set(format, decode, encode);
        }
        costs
    }
    fn set_resample(&mut self, from: u32, to: u32, cost: f32) {
        let index = |rate: u32| RATES.iter().position(|&known| known == rate);
        let row = index(from).and_then(|from| self.resample.get_mut(from));
        if let Some(slot) = row.zip(index(to)).and_then(|(row, to)| row.get_mut(to)) {
            *slot = cost;
        }
    }

    /// As text, a line a step, for a file.
    pub fn to_text(&self) -> String {
        let mut text = String::from("# microseconds a second of sound: alone, in a full group\n");
        for format in FormatId::coded() {
            let (decode, encode) = (self.decode(format), self.encode(format));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "decode {format} {:.2} {:.2}", decode.alone, decode.group);
            let _ = writeln!(text, "encode {format} {:.2} {:.2}", encode.alone, encode.group);
        }
        for from in RATES {
            for to in RATES.into_iter().filter(|to| *to != from) {
                let cost = self.resample(SampleRate(from), SampleRate(to));
                let _ = writeln!(text, "resample {from} {to} {cost:.2}");
            }
        }
        text
    }
    /// Reads what [`Self::to_text`] wrote; `None` when a line says something else. What it does not name is estimated.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut costs = Self::estimates();
        costs.measured = true;
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            let mut words = line.split_whitespace();
            let (step, first, second, third) = (words.next()?, words.next()?, words.next()?, words.next()?);
            let number =
                |text: &str| text.parse::<f32>().ok().filter(|cost| cost.is_finite() && *cost >= 0.0);
            match step {
                "decode" | "encode" => {
                    let format = FormatId::from_name(first)?;
                    let price = Price { alone: number(second)?, group: number(third)? };
                    let (decode, encode) = match step {
                        "decode" => (price, costs.encode(format)),
                        _ => (costs.decode(format), price),
                    };
                    costs.set(format, decode, encode);
                }
                "resample" => costs.set_resample(first.parse().ok()?, second.parse().ok()?, number(third)?),
                _ => return None,
            }
        }
        Some(costs)
    }
}

/// Decoding and encoding of one format, alone and in a full group.
fn measure_format(
    level: Level,
    format: FormatId,
    speech: &[i16],
    timed: &mut dyn FnMut(&mut dyn FnMut()) -> f32,
) -> (Price, Price) {
    let material = Material::new(format, speech);
    let mut price = |work: Work| {
        let size = group_size(format, level);
        let Some(mut trial) = Trial::new(work, size, &material) else { return Price::default() };
        // All of the speech, once through.
        let ticks = (material.seconds() / trial.seconds(1)).round() as usize;
        let mut cost =
            |streams: usize| timed(&mut || trial.run(Some(level), streams, ticks)) / streams as f32;
        let alone = cost(1);
        Price { alone, group: if size == 1 { alone } else { cost(size) } }
    };
    (price(Work::Decode(format)), price(Work::Encode(format)))
}

/// Longest way: decode, resample, encode.
const STEPS_MAX: usize = 4;

/// One way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    formats: [FormatId; STEPS_MAX],
    count: usize,
    /// What it costs one stream: alone, and with every step in a full group.
    pub cost: Price,
}

impl Path {
    /// The formats passed, both ends included.
    pub fn formats(&self) -> &[FormatId] {
        self.formats.get(..self.count).unwrap_or_default()
    }
    /// Steps between them.
    pub fn steps(&self) -> usize {
        self.count.saturating_sub(1)
    }
}

/// The best way between any two formats.
#[derive(Debug, Clone)]
pub struct Paths {
    table: Vec<Option<Path>>,
    costs: Costs,
}

/// What a step loses, in steps of a ladder on which every rung down is heard: bandwidth first, then the codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Loss {
    /// Hertz of the sampling rate that are given up.
    band: u32,
    /// Times that a lossy codec was passed.
    codecs: u32,
}

#[derive(Clone, Copy)]
struct Edge {
    loss: Loss,
    cost: Price,
}

/// The step from one format to another, when there is one.
fn edge(from: FormatId, to: FormatId, costs: &Costs, coded: Coded) -> Option<Edge> {
    let flat = |cost: f32| Price { alone: cost, group: cost };
    let lossy = Loss { codecs: 1, band: 0 };
    if direct(from, to).is_some() {
        // Another packing of the same code words loses nothing.
        let same_words = from.rtp_name().ends_with("G726-32") && to.rtp_name().ends_with("G726-32");
        let loss = if same_words { Loss::default() } else { lossy };
        return Some(Edge { loss, cost: flat(TABLE_COST) });
    }
    if from == to || !coded.leads(from, to) {
        return None;
    }
    match (from.is_linear(), to.is_linear()) {
        (false, true) if from.linear() == to => {
            Some(Edge { loss: Loss::default(), cost: costs.decode(from) })
        }
        (true, false) if to.linear() == from => Some(Edge { loss: lossy, cost: costs.encode(to) }),
        (true, true) => {
            let band = from.rate().0.saturating_sub(to.rate().0);
            Some(Edge { loss: Loss { band, codecs: 0 }, cost: flat(costs.resample(from.rate(), to.rate())) })
        }
        _ => None,
    }
}

impl Paths {
    /// Works out every way between these formats.
    pub fn new(costs: &Costs, coded: Coded) -> Self {
        let mut table = Vec::with_capacity(FORMATS * FORMATS);
        for &from in FormatId::ALL {
            table.extend(ways_from(from, costs, coded));
        }
        Self { table, costs: costs.clone() }
    }
    /// The best way; `None` when there is none, and for equal formats, which need none.
    pub fn get(&self, from: FormatId, to: FormatId) -> Option<&Path> {
        self.table.get(from.index() * FORMATS + to.index())?.as_ref()
    }
    /// What the steps cost.
    pub const fn costs(&self) -> &Costs {
        &self.costs
    }
}

/// The best way from one format to each, in table order: relaxation over at most [`STEPS_MAX`] formats.
fn ways_from(from: FormatId, costs: &Costs, coded: Coded) -> [Option<Path>; FORMATS] {
    let start = Path { formats: [from; STEPS_MAX], count: 1, cost: Price::default() };
    let mut best: [Option<(Loss, Path)>; FORMATS] = [None; FORMATS];
    if let Some(slot) = best.get_mut(from.index()) {
        *slot = Some((Loss::default(), start));
    }
    for _ in 1..STEPS_MAX {
        let before = best;
        for (&at, way) in FormatId::ALL.iter().zip(before) {
            let Some((loss, way)) = way else { continue };
            for &to in FormatId::ALL {
                let Some(step) = edge(at, to, costs, coded).filter(|_| way.count < STEPS_MAX) else {
                    continue;
                };
                let loss = Loss { band: loss.band + step.loss.band, codecs: loss.codecs + step.loss.codecs };
                let mut longer = way;
                if let Some(slot) = longer.formats.get_mut(way.count) {
                    *slot = to;
                }
                longer.count += 1;
                longer.cost.alone += step.cost.alone;
                longer.cost.group += step.cost.group;
                let Some(slot) = best.get_mut(to.index()) else { continue };
                let better = slot.as_ref().is_none_or(|(known, path)| {
                    loss < *known || (loss == *known && longer.cost.group < path.cost.group)
                });
                if better {
                    *slot = Some((loss, longer));
                }
            }
        }
    }
    let mut ways = best.map(|way| way.map(|(_, path)| path));
    if let Some(slot) = ways.get_mut(from.index()) {
        *slot = None;
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sine;

    #[test]
    fn a_way_is_decode_resample_encode_or_a_table_and_never_a_detour_that_loses() {
        let coded = Coded::default().with(FormatId::G729);
        let paths = Paths::new(&Costs::estimates(), coded);
        for &from in FormatId::ALL {
            for &to in FormatId::ALL {
                let path = paths.get(from, to);
                if from == to || (!coded.leads(from, to) && direct(from, to).is_none()) {
                    assert_eq!(path, None, "{from} -> {to}");
                    continue;
                }
                let mut expected = vec![from];
                if direct(from, to).is_none() {
                    for step in [from.linear(), to.linear(), to] {
                        if expected.last() != Some(&step) {
                            expected.push(step);
                        }
                    }
                } else {
                    expected.push(to);
                }
                assert_eq!(path.unwrap().formats(), expected, "{from} -> {to}");
            }
        }
        let cost = |from, to| paths.get(from, to).unwrap().cost;
        assert!(cost(FormatId::GSM, FormatId::ILBC).group < cost(FormatId::GSM, FormatId::ILBC).alone / 5.0);
        assert!(cost(FormatId::ULAW, FormatId::ALAW).alone < 5.0);
    }

    #[test]
    fn a_cheap_detour_through_a_narrow_band_is_not_taken() {
        let mut costs = Costs::estimates();
        costs.set_resample(16_000, 48_000, 1e6);
        costs.set_resample(16_000, 8000, 0.1);
        costs.set_resample(8000, 48_000, 0.1);
        let paths = Paths::new(&costs, Coded::default());
        let way = paths.get(FormatId::SLIN16, FormatId::SLIN48).unwrap();
        assert!(!way.formats().contains(&FormatId::SLIN), "{way:?}");
        // Through a higher rate it may go, when that is cheaper.
        costs.set_resample(16_000, 24_000, 0.1);
        costs.set_resample(24_000, 48_000, 0.1);
        let paths = Paths::new(&costs, Coded::default());
        let way = paths.get(FormatId::SLIN16, FormatId::SLIN48).unwrap();
        assert_eq!(way.formats(), [FormatId::SLIN16, FormatId::SLIN24, FormatId::SLIN48]);
    }

    #[test]
    fn measured_costs_are_written_and_read_back() {
        let speech = sine(440.0, 8000, 9000.0, 4000);
        let mut clock = 0u64;
        let mut now = || {
            clock += 1;
            Duration::from_micros(clock * 10)
        };
        let costs = Costs::measure(Level::portable(), &speech, 1, &mut now);
        assert!(costs.measured);
        // Each step took one tick of the invented clock: 10 us for half a second.
        assert!((costs.encode(FormatId::GSM).alone - 20.0).abs() < 0.1, "{costs:?}");
        let share = 20.0 / group_size(FormatId::GSM, Level::portable()) as f32;
        assert!((costs.encode(FormatId::GSM).group - share).abs() < 0.1);
        assert!((costs.resample(SampleRate(48_000), SampleRate(8000)) - 20.0).abs() < 0.1);
        let read = Costs::from_text(&costs.to_text()).unwrap();
        for format in FormatId::coded() {
            assert!((read.decode(format).group - costs.decode(format).group).abs() < 0.01, "{format}");
        }
        assert_eq!(Costs::from_text("decode gsm 1 nonsense"), None);
        assert_eq!(Costs::from_text("something else entirely here"), None);
    }
}
