//! How a system codes: the settings of its codecs, and those of them that are other processes.
//!
//! Made at start and reload and shared from then on; an encoder or decoder takes what it needs when it is made.

use std::sync::Arc;

use base::{Coded, FormatId, Wishes};

use crate::external::External;
use crate::{Decoder, Encoder};

/// Settings of iLBC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IlbcSettings {
    /// The decoder smooths the sound (RFC 3951 §4.6), which costs time and 5 to 10 ms of delay.
    pub enhancer: bool,
    /// Sums in another order and with contraction: faster, and not the reference's bits.
    pub fast: bool,
}

/// Settings of Speex.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeexSettings {
    /// Quality at constant bit rate, 0 to 10.
    pub quality: u8,
    /// Effort, 0 to 10.
    pub complexity: u8,
    /// The decoder deepens the valleys between harmonics.
    pub enhancement: bool,
    /// The bit rate follows the sound.
    pub vbr: bool,
    /// Quality at variable bit rate, 0 to 10.
    pub vbr_quality: f32,
    /// Average bit rate to keep, in bits a second; 0 for none.
    pub abr: u32,
    /// Silence is told from speech.
    pub vad: bool,
    /// Silence is not sent.
    pub dtx: bool,
}

impl Default for SpeexSettings {
    fn default() -> Self {
        Self {
            quality: 3,
            complexity: 2,
            enhancement: true,
            vbr: false,
            vbr_quality: 4.0,
            abr: 0,
            vad: false,
            dtx: false,
        }
    }
}

impl SpeexSettings {
    /// The quality at which lanes code for 8 kHz; `None` for what only libspeex can.
    pub(crate) fn native(&self) -> Option<speex::Quality> {
        let plain = !self.vbr && self.abr == 0 && !self.vad && !self.dtx && self.complexity == 2;
        plain.then(|| self.nearest()).filter(|_| matches!(self.quality, 3 | 4 | 7 | 8))
    }
    /// The native quality that is nearest, for machines without libspeex.
    pub(crate) const fn nearest(&self) -> speex::Quality {
        if self.quality <= 5 { speex::Quality::Q3 } else { speex::Quality::Q8 }
    }
    /// Whether speech at 8 kHz is coded by libspeex instead of in lanes.
    pub fn wants_library(&self) -> bool {
        self.native().is_none()
    }
}

/// Settings of Opus: bounds to what peers wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpusSettings {
    /// Bits a second at most on average; `None` for what suits the bandwidth.
    pub bitrate: Option<u32>,
    /// Highest rate that is worth sending, in Hz.
    pub playback_rate: u32,
    /// Effort, 0 to 10.
    pub complexity: u8,
    /// Share of packets that are taken to be lost, in percent.
    pub loss_percent: u8,
    /// Peers that can use it get a coarse copy of the frame before in each packet.
    pub fec: bool,
    /// Little is sent in silence, whether the peer wishes so or not.
    pub dtx: bool,
    /// Each packet is equally long, whether the peer wishes so or not.
    pub constant: bool,
}

impl Default for OpusSettings {
    fn default() -> Self {
        Self {
            bitrate: None,
            playback_rate: 48_000,
            complexity: 5,
            loss_percent: 10,
            fec: true,
            dtx: false,
            constant: false,
        }
    }
}

/// Settings of all codecs that have any.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Settings {
    /// Of `ilbc` and `ilbc30`.
    pub ilbc: IlbcSettings,
    /// Of `speex`, `speex16`, `speex32`.
    pub speex: SpeexSettings,
    /// Of `opus`.
    pub opus: OpusSettings,
}

/// How a system codes.
#[derive(Debug, Clone, Default)]
pub struct Coders {
    settings: Settings,
    external: Vec<(FormatId, Arc<dyn External>)>,
    coded: Coded,
}

impl Coders {
    /// With these settings, and a codec of its own for each of these formats. One for a format of this build is ignored;
    /// formats whose library is missing are not coded.
    pub fn new(
        settings: Settings,
        external: impl IntoIterator<Item = (FormatId, Arc<dyn External>)>,
    ) -> Self {
        let external: Vec<_> = external.into_iter().filter(|(format, _)| !format.is_coded()).collect();
        let built_in =
            crate::missing_libraries().fold(Coded::default(), |coded, (format, _)| coded.without(format));
        let coded = external.iter().fold(built_in, |coded, (format, _)| coded.with(*format));
        Self { settings, external, coded }
    }
    /// The settings.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }
    /// The formats that are coded here.
    pub const fn coded(&self) -> Coded {
        self.coded
    }
    /// An encoder in its initial state, for a peer with these wishes.
    pub fn encoder(&self, format: FormatId, wishes: &Wishes) -> Encoder {
        match self.external(format) {
            Some(external) => Encoder::external(format, &**external),
            None => Encoder::with(format, &self.settings, wishes),
        }
    }
    /// A decoder in its initial state.
    pub fn decoder(&self, format: FormatId) -> Decoder {
        match self.external(format) {
            Some(external) => Decoder::external(format, &**external),
            None => Decoder::with(format, &self.settings),
        }
    }
    fn external(&self, format: FormatId) -> Option<&Arc<dyn External>> {
        self.external.iter().find(|(known, _)| *known == format).map(|(_, external)| external)
    }
}
