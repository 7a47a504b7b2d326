//! The text of a tone in `indications.conf`: `!950/330,!1400/330,!1800/330,0`, `440+480/2000,0/4000`, `400*25/500`.

use std::str::FromStr;

/// Most parts of a script: the longest in the field has 24.
pub const PARTS_MAX: usize = 64;
/// Longest part, milliseconds: longer than any cadence, short enough to render.
pub const PART_MS_MAX: u32 = 60_000;
/// Longest script, milliseconds, its parts summed: the longest in the field has 12 s.
pub const SCRIPT_MS_MAX: u32 = 120_000;
/// What stands for ever is rendered as a loop of this length: whole periods of every whole frequency.
const ENDLESS_LOOP_MS: u64 = 1000;
/// Highest frequency, hertz: half of the widest rate.
const HERTZ_MAX: f64 = 24_000.0;
/// Highest MIDI note.
const NOTE_MAX: f64 = 127.0;

/// What sounds during a part. Frequencies in hertz; 0 is silent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tone {
    /// Nothing.
    Silence,
    /// One or two frequencies together (`350+440`).
    Sum(f64, f64),
    /// The first, its amplitude modulated by the second (`400*25`).
    Modulated(f64, f64),
}

/// One part of a script.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TonePart {
    /// What sounds.
    pub tone: Tone,
    /// How long, milliseconds; `None` for ever.
    pub duration_ms: Option<u32>,
    /// Played on the way in, not when the script repeats (`!`).
    pub once: bool,
}

/// A parsed tone. Parts marked `!` are played once, the rest repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct ToneScript {
    parts: Vec<TonePart>,
}

/// Why a tone's text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToneError {
    /// There is no part at all.
    #[error("the tone is empty")]
    Empty,
    /// A part is not `[!]frequency[+frequency][/milliseconds]`.
    #[error("'{0}' is not a tone: expected [!]FREQ[+FREQ or *FREQ][/MILLISECONDS]")]
    Part(String),
    /// More than 64 parts or two minutes.
    #[error("more than {PARTS_MAX} parts or {SCRIPT_MS_MAX} ms")]
    TooLong,
}

impl ToneScript {
    /// The parts in order.
    pub fn parts(&self) -> &[TonePart] {
        &self.parts
    }

    /// The parts with their lengths as they are played: all of them, then the repeating ones, again and again.
    pub(super) fn playing(&self) -> impl Iterator<Item = (TonePart, u64)> + '_ {
        let length = |part: &TonePart| (*part, part.duration_ms.map_or(ENDLESS_LOOP_MS, u64::from));
        let reachable = self.reachable();
        let endless = reachable.last().filter(|part| part.duration_ms.is_none());
        let repeat: Vec<_> = match endless {
            Some(part) => vec![length(part)],
            None => reachable.iter().filter(|part| !part.once).map(length).collect(),
        };
        reachable.iter().map(length).chain(repeat.into_iter().cycle())
    }

    /// Milliseconds before the loop begins, and of the loop; 0 without one.
    pub(super) fn lengths_ms(&self) -> (u64, u64) {
        let reachable = self.reachable();
        let sum = |parts: &mut dyn Iterator<Item = &TonePart>| -> u64 {
            parts.map(|part| u64::from(part.duration_ms.unwrap_or(0))).sum()
        };
        if reachable.last().is_some_and(|part| part.duration_ms.is_none()) {
            return (sum(&mut reachable.iter()), ENDLESS_LOOP_MS);
        }
        let repeats = sum(&mut reachable.iter().filter(|part| !part.once));
        // When the parts played once come first, the first round of the loop is the loop itself.
        let ordered = reachable.iter().skip_while(|part| part.once).all(|part| !part.once);
        let intro = if ordered {
            sum(&mut reachable.iter().filter(|part| part.once))
        } else {
            sum(&mut reachable.iter())
        };
        (intro, repeats)
    }

    /// The parts up to the first that never ends.
    fn reachable(&self) -> &[TonePart] {
        let endless = self.parts.iter().position(|part| part.duration_ms.is_none());
        self.parts.get(..endless.map_or(self.parts.len(), |at| at + 1)).unwrap_or_default()
    }
}

impl FromStr for ToneScript {
    type Err = ToneError;

    /// Reads parts between commas (or the `|` of old files). A part without a length, or of length 0, lasts for ever.
    fn from_str(text: &str) -> Result<Self, ToneError> {
        let mut parts = Vec::new();
        for piece in text.split([',', '|']).map(str::trim).filter(|piece| !piece.is_empty()) {
            if parts.len() == PARTS_MAX {
                return Err(ToneError::TooLong);
            }
            parts.push(parse_part(piece).ok_or_else(|| ToneError::Part(piece.to_owned()))?);
        }
        let length: u32 = parts.iter().map(|part: &TonePart| part.duration_ms.unwrap_or(0)).sum();
        match parts.len() {
            0 => Err(ToneError::Empty),
            _ if length > SCRIPT_MS_MAX => Err(ToneError::TooLong),
            _ => Ok(Self { parts }),
        }
    }
}

fn parse_part(piece: &str) -> Option<TonePart> {
    let (once, rest) = piece.strip_prefix('!').map_or((false, piece), |rest| (true, rest.trim()));
    let (tone, duration) = match rest.split_once('/') {
        Some((tone, duration)) => (tone, Some(duration.trim().parse::<u32>().ok()?.min(PART_MS_MAX))),
        None => (rest, None),
    };
    let both = |first: &str, second: &str| Some((parse_frequency(first)?, parse_frequency(second)?));
    let tone = if let Some((first, second)) = tone.split_once('*') {
        let (first, second) = both(first, second)?;
        Tone::Modulated(first, second)
    } else if let Some((first, second)) = tone.split_once('+') {
        let (first, second) = both(first, second)?;
        Tone::Sum(first, second)
    } else {
        let hertz = parse_frequency(tone)?;
        if hertz == 0.0 { Tone::Silence } else { Tone::Sum(hertz, 0.0) }
    };
    Some(TonePart { tone, duration_ms: duration.filter(|&ms| ms > 0), once })
}

/// Hertz, or `M` and a MIDI note: 69 is 440 Hz.
fn parse_frequency(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Some(note) = text.strip_prefix('M') {
        let note = decimal(note, NOTE_MAX)?;
        return Some(440.0 * 2f64.powf((note - 69.0) / 12.0));
    }
    decimal(text, HERTZ_MAX)
}

fn decimal(text: &str, max: f64) -> Option<f64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let value: f64 = if plain { text.parse().ok()? } else { return None };
    (value <= max).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(tone: Tone, duration_ms: Option<u32>, once: bool) -> TonePart {
        TonePart { tone, duration_ms, once }
    }

    #[test]
    fn the_forms_of_indications_conf_are_read() {
        for (text, expected) in [
            ("425", vec![part(Tone::Sum(425.0, 0.0), None, false)]),
            ("0/4000", vec![part(Tone::Silence, Some(4000), false)]),
            (
                "480+620/500, 0/500",
                vec![part(Tone::Sum(480.0, 620.0), Some(500), false), part(Tone::Silence, Some(500), false)],
            ),
            (
                "!950/330,0",
                vec![part(Tone::Sum(950.0, 0.0), Some(330), true), part(Tone::Silence, None, false)],
            ),
            ("400*16.7/100", vec![part(Tone::Modulated(400.0, 16.7), Some(100), false)]),
            (
                "425/1000|0/0",
                vec![part(Tone::Sum(425.0, 0.0), Some(1000), false), part(Tone::Silence, None, false)],
            ),
            ("M69/100", vec![part(Tone::Sum(440.0, 0.0), Some(100), false)]),
            ("M69+M81", vec![part(Tone::Sum(440.0, 880.0), None, false)]),
        ] {
            assert_eq!(text.parse::<ToneScript>().map(|s| s.parts), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_tone_is_refused_by_name() {
        for text in
            ["abc", "425/x", "425+", "+425", "1e3", "425/-5", "inf", "999999", "M200", "!", "425/1/2", "-1"]
        {
            assert_eq!(text.parse::<ToneScript>(), Err(ToneError::Part(text.to_owned())), "{text}");
        }
        assert_eq!(" , ".parse::<ToneScript>(), Err(ToneError::Empty));
        assert_eq!("1/1,".repeat(65).parse::<ToneScript>(), Err(ToneError::TooLong));
        assert_eq!("1/60000,1/60000,1/1".parse::<ToneScript>(), Err(ToneError::TooLong));
        assert_eq!("1/1,".repeat(64).parse::<ToneScript>().unwrap().parts().len(), 64);
    }

    #[test]
    fn lengths_tell_the_way_in_from_the_loop() {
        for (text, expected) in [
            ("425/1000,0/4000", (0, 5000)),
            ("!425/100,!0/100", (200, 0)),
            ("!425/100,350/200,0/200", (100, 400)),
            ("350/200,!425/100,0/200", (500, 400)),
            ("!425/100,350", (100, 1000)),
            ("425/100,350,0/700", (100, 1000)),
        ] {
            assert_eq!(text.parse::<ToneScript>().unwrap().lengths_ms(), expected, "{text}");
        }
    }
}
