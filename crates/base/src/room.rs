//! What signalling says about rooms, in which more than two streams hear each other.

use crate::SampleRate;

/// How one room mixes. The latest member to enter says so for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomSettings {
    /// Milliseconds between two mixes: 10, 20, 40 or 80; any other value is brought to one of them.
    pub interval_ms: u8,
    /// Nothing is mixed at a higher rate than this; `None`: as high as the members'.
    pub rate_max: Option<SampleRate>,
    /// At most so many members are heard at once, the loudest; 0: all.
    pub speakers_max: u8,
    /// What is done for the video of its members.
    pub video: RoomVideo,
}

impl Default for RoomSettings {
    /// The field's: 20 ms, any rate, everyone is heard.
    fn default() -> Self {
        Self { interval_ms: 20, rate_max: None, speakers_max: 0, video: RoomVideo::default() }
    }
}

/// What a room does for the video of its members; who is shown to whom is said by [`Command::Show`](crate::Command::Show).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomVideo {
    /// Who leads the talk is told ([`Event::Speaker`](crate::Event::Speaker)).
    pub tells_speaker: bool,
    /// A sender is asked for a whole picture once in so many milliseconds at most.
    pub pause_ms: u32,
    /// What senders are told of the rate that gets through to those who see them.
    pub estimates: Estimates,
}

impl Default for RoomVideo {
    /// The field's: a whole picture every 2 s, and no estimates.
    fn default() -> Self {
        Self { tells_speaker: false, pause_ms: 2000, estimates: Estimates::default() }
    }
}

/// What the sender of pictures that several see is told of the rate that gets through (draft-alvestrand-rmcat-remb).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimates {
    /// Milliseconds from one to the next at least; 0: it is told nothing.
    pub interval_ms: u32,
    /// What is made of the viewers' own.
    pub combined: Combined,
    /// Those of all who see anybody count; else those of who sees this sender.
    pub of_all: bool,
    /// Bits a second that are told whatever viewers say.
    pub forced: Option<u32>,
}

/// One estimate of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Combined {
    /// Their mean.
    #[default]
    Average,
    /// The lowest.
    Lowest,
    /// The highest.
    Highest,
}

/// A factor for samples in 256ths: 256 leaves them as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gain(pub u16);

impl Default for Gain {
    fn default() -> Self {
        Self::UNITY
    }
}

impl Gain {
    /// As it is.
    pub const UNITY: Self = Self(256);

    /// The factor of a volume step as the field counts them: a positive step multiplies by it, a negative one divides,
    /// 0 and 1 change nothing.
    pub const fn of_step(step: i8) -> Self {
        match step {
            -1..=1 => Self::UNITY,
            2.. => Self((step as u16).saturating_mul(256)),
            _ => Self(256 / step.unsigned_abs() as u16),
        }
    }
    /// One sample, as loud as there is room for.
    pub fn apply(self, sample: i16) -> i16 {
        let louder = i32::from(sample) * i32::from(self.0) / i32::from(Self::UNITY.0);
        louder.clamp(i16::MIN.into(), i16::MAX.into()) as i16
    }
    /// Both, one after the other.
    pub fn times(self, other: Self) -> Self {
        Self(
            u16::try_from(u32::from(self.0) * u32::from(other.0) / u32::from(Self::UNITY.0))
                .unwrap_or(u16::MAX),
        )
    }
    /// The factor of so many decibels, from -48 (nothing is heard) to 48 (255 times).
    pub fn of_decibels(decibels: f64) -> Self {
        let factor = 256.0 * 10f64.powf(decibels.clamp(-48.2, 48.1) / 20.0);
        Self(factor.round() as u16)
    }
}

/// How one member takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberSettings {
    /// Nobody hears it.
    pub muted: bool,
    /// It hears nobody.
    pub deaf: bool,
    /// How loud it is for the others.
    pub talking: Gain,
    /// How loud the others are for it.
    pub listening: Gain,
    /// Noise gate: what is not taken for talking does not reach the others.
    pub drop_silence: bool,
    /// Automatic gain: the mean absolute amplitude that talking is brought to, by at most 18 dB up and 12 dB down;
    /// 0 leaves it as it is.
    pub level: u16,
    /// Mean absolute amplitude of a mix's length from which on it counts as talking.
    pub talking_threshold: u16,
    /// Milliseconds below the threshold after which it counts as silent.
    pub silence_ms: u32,
}

impl Default for MemberSettings {
    /// The field's: heard as it is, silence after 2.5 s below an amplitude of 160.
    fn default() -> Self {
        Self {
            muted: false,
            deaf: false,
            talking: Gain::UNITY,
            listening: Gain::UNITY,
            drop_silence: false,
            level: 0,
            talking_threshold: 160,
            silence_ms: 2500,
        }
    }
}

/// What somebody who writes a call down wants of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorSettings {
    /// How loud what the stream receives becomes.
    pub heard: Gain,
    /// How loud what it sends becomes.
    pub said: Gain,
    /// What it receives is wanted; silence in its place otherwise.
    pub hears: bool,
    /// What it sends is wanted; silence in its place otherwise.
    pub says: bool,
    /// Only while the stream talks to another one or is in a room.
    pub bridged_only: bool,
    /// Nothing is written for the time being.
    pub paused: bool,
    /// Both sides side by side, a sample of what is received before each of what is sent, instead of their sum.
    pub stereo: bool,
    /// Files of one side have silence where nothing came, so that they stay in step with each other; else they leave it out.
    pub in_step: bool,
}

impl Default for MonitorSettings {
    fn default() -> Self {
        Self {
            heard: Gain::UNITY,
            said: Gain::UNITY,
            hears: true,
            says: true,
            bridged_only: false,
            paused: false,
            stereo: false,
            in_step: true,
        }
    }
}

/// Where both sides of a call go.
#[derive(Default)]
pub struct MonitorSinks {
    /// The sum of both sides, or both side by side.
    pub mixed: Option<Box<dyn crate::AudioSink>>,
    /// What the stream receives.
    pub heard: Option<Box<dyn crate::AudioSink>>,
    /// What it sends.
    pub said: Option<Box<dyn crate::AudioSink>>,
}

#[cfg(test)]
mod tests {
    use super::Gain;

    #[test]
    fn a_volume_step_multiplies_or_divides() {
        for (step, factor) in [(0, 256), (1, 256), (-1, 256), (2, 512), (-2, 128), (10, 2560), (-10, 25)] {
            assert_eq!(Gain::of_step(step), Gain(factor), "{step}");
        }
    }
}
