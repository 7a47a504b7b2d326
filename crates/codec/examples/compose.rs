//! Composes what `assets/` holds besides speech: beeps, silence and a piece of music. `compose FOLDER`.
//!
//! The music, "Cross-connect", was written for this project: four bars of chords in G major, twice, plucked and padded,
//! with echoes that wrap around the end, so that it repeats without a seam.

use std::f64::consts::TAU;
use std::fs;
use std::io;
use std::path::Path;

use base::{FormatId, SampleRate};
use codec::{Encoder, ToneScript, tone};

const RATE: usize = 16_000;
/// Beats of the piece at 88 a minute: 12 bars of four.
const BEATS: usize = 48;
const BEAT: f64 = RATE as f64 * 60.0 / 88.0;

fn main() -> io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let root = Path::new(&folder);
    let english = root.join("sounds/en");
    let beeps = [
        ("beep", "!1000/180,!0/40"),
        ("beeperr", "!440/140,!0/60,!330/260,!0/40"),
        ("confbridge-join", "!660/90,!880/140,!0/40"),
        ("confbridge-leave", "!880/90,!660/140,!0/40"),
    ];
    for (name, script) in beeps {
        let script: ToneScript = script.parse().map_err(io::Error::other)?;
        let tone = tone::render(&script, SampleRate(RATE as u32));
        save(&english.join(name), &soften(tone.samples))?;
    }
    for seconds in 1..=10 {
        save(&english.join(format!("silence/{seconds}")), &vec![0; seconds * RATE])?;
    }
    // The second round is kept: the codec's state at its end is the one at its beginning.
    let round = music();
    let mut data = vec![0; round.len()];
    let count = Encoder::new(FormatId::G722).encode(&round.repeat(2), &mut data);
    fs::create_dir_all(root.join("moh"))?;
    fs::write(root.join("moh/cross-connect.g722"), data.get(count / 2..count).unwrap_or_default())
}

fn save(path: &Path, samples: &[i16]) -> io::Result<()> {
    let mut data = vec![0; samples.len() / 2];
    let count = Encoder::new(FormatId::G722).encode(samples, &mut data);
    data.truncate(count);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path.with_extension("g722"), data)
}

/// Rounds the edges of a beep: no change is faster than 5 ms.
fn soften(samples: Vec<i16>) -> Vec<i16> {
    let width = RATE / 200;
    let level: Vec<f64> = samples.iter().map(|&s| if s == 0 { 0.0 } else { 1.0 }).collect();
    (0..samples.len())
        .map(|n| {
            let window = &level[n.saturating_sub(width)..(n + width).min(level.len())];
            let envelope = window.iter().sum::<f64>() / (2 * width) as f64;
            (f64::from(samples[n]) * envelope * envelope) as i16
        })
        .collect()
}

/// A ring of samples: what sounds past the end goes on at the beginning.
struct Ring(Vec<f64>);

impl Ring {
    fn add(&mut self, at: f64, length: f64, voice: impl Fn(f64) -> f64) {
        let count = self.0.len();
        for n in 0..(length * RATE as f64) as usize {
            let index = (at as usize + n) % count;
            self.0[index] += voice(n as f64 / RATE as f64);
        }
    }
    /// Echoes of the whole ring, each pass quieter.
    fn echo(&mut self, delay: f64, gain: f64) {
        let count = self.0.len();
        let dry = self.0.clone();
        for repeat in 1..=5usize {
            let shift = (delay * RATE as f64) as usize * repeat;
            let level = gain.powi(repeat as i32);
            for (n, sample) in self.0.iter_mut().enumerate() {
                *sample += level * dry[(n + count - shift % count) % count];
            }
        }
    }
}

fn hertz(note: i32) -> f64 {
    440.0 * 2f64.powf(f64::from(note - 69) / 12.0)
}

/// A plucked string: a few harmonics that die the faster the higher they are.
fn pluck(ring: &mut Ring, at: f64, note: i32, level: f64) {
    let base = hertz(note);
    ring.add(at, 1.8, |t| {
        let attack = (t / 0.006).min(1.0);
        let sum: f64 = (1..=5)
            .map(|k| {
                let k = f64::from(k);
                (TAU * base * k * t).sin() * (-t * (2.2 + 1.6 * k)).exp() / (k * k)
            })
            .sum();
        level * attack * sum
    });
}

/// A soft chord tone that swells and leaves, two voices a little apart.
fn pad(ring: &mut Ring, at: f64, seconds: f64, note: i32, level: f64) {
    let base = hertz(note);
    ring.add(at, seconds + 1.2, |t| {
        let envelope = (t / 0.9).min(1.0) * ((seconds + 1.2 - t) / 1.2).clamp(0.0, 1.0);
        let voice = |detune: f64| {
            let f = base * detune;
            (TAU * f * t).sin() + 0.25 * (TAU * 2.0 * f * t).sin() + 0.08 * (TAU * 3.0 * f * t).sin()
        };
        level * envelope * envelope * (voice(1.0013) + voice(0.9987))
    });
}

fn music() -> Vec<i16> {
    // G, Em7, Cmaj7, D | G, Bm, C, Dsus | Em, C, Am7, D: bass, then the notes of the chord from low to high.
    let bars: [(i32, [i32; 4]); 12] = [
        (43, [55, 59, 62, 67]),
        (40, [55, 59, 62, 64]),
        (36, [55, 59, 60, 64]),
        (38, [54, 57, 62, 66]),
        (43, [55, 59, 62, 67]),
        (47, [54, 59, 62, 66]),
        (48, [55, 60, 64, 67]),
        (50, [55, 57, 62, 67]),
        (40, [55, 59, 64, 67]),
        (48, [55, 60, 64, 67]),
        (45, [55, 60, 64, 69]),
        (50, [54, 57, 62, 66]),
    ];
    // Order in which the eighths of a bar run over the chord; 4 and 5 are its lower notes an octave up.
    let figures: [[usize; 8]; 3] =
        [[0, 2, 4, 3, 1, 3, 2, 3], [0, 1, 3, 2, 4, 2, 5, 3], [0, 3, 2, 4, 3, 5, 4, 2]];
    // One line of song a bar: eighth, note, level.
    let song: [&[(usize, i32)]; 12] = [
        &[(0, 74), (3, 71), (6, 69)],
        &[(0, 71)],
        &[(0, 72), (3, 71), (6, 67)],
        &[(0, 69), (6, 66)],
        &[(0, 67), (3, 71), (6, 74)],
        &[(0, 78), (4, 74)],
        &[(0, 76), (3, 74), (6, 72)],
        &[(0, 74), (4, 69)],
        &[(0, 71), (3, 76), (6, 79)],
        &[(0, 76), (4, 72)],
        &[(0, 72), (3, 71), (6, 69)],
        &[(0, 66), (3, 69), (6, 66)],
    ];
    let mut ring = Ring(vec![0.0; (BEAT * BEATS as f64) as usize / 320 * 320]);
    for (bar, ((bass, chord), line)) in bars.iter().zip(song).enumerate() {
        let start = bar as f64 * 4.0 * BEAT;
        let seconds = 4.0 * BEAT / RATE as f64;
        for note in chord {
            pad(&mut ring, start, seconds, *note, 0.055);
        }
        pluck(&mut ring, start, *bass + 12, 0.5);
        pluck(&mut ring, start + 2.5 * BEAT, *bass + 12, 0.3);
        for (eighth, step) in figures[bar % 3].iter().enumerate() {
            let note = chord.get(*step).copied().unwrap_or_else(|| chord[step - 4] + 12);
            let accent = if eighth % 4 == 0 { 0.34 } else { 0.24 };
            pluck(&mut ring, start + eighth as f64 * BEAT / 2.0, note, accent);
        }
        for (eighth, note) in line {
            pluck(&mut ring, start + *eighth as f64 * BEAT / 2.0, *note, 0.62);
        }
    }
    ring.echo(0.75 * BEAT / RATE as f64, 0.36);
    let peak = ring.0.iter().fold(0.0f64, |peak, s| peak.max(s.abs()));
    ring.0.iter().map(|s| (s / peak * 0.5 * 32767.0) as i16).collect()
}
