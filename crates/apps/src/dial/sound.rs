//! What the caller hears while his Dial rings.

use base::ChannelId;
use call::{Advance, Chan, ChanState, Indication, Stop};

use super::DialOptions;

/// What is being made for the caller, undone when dropped.
pub(crate) struct Sound {
    caller: Chan,
    making: Making,
    early_audio: bool,
}

#[derive(PartialEq, Eq)]
enum Making {
    /// Nothing, or the caller's own phone makes it.
    Nothing,
    Tone,
    Music,
}

impl Sound {
    pub(crate) fn new(caller: &Chan) -> Self {
        Self { caller: caller.clone(), making: Making::Nothing, early_audio: false }
    }
    /// What options ask for from the first moment.
    pub(crate) async fn start(&mut self, options: &DialOptions) -> Result<(), Stop> {
        if let Some(class) = &options.music {
            self.open();
            if self.caller.start_music(class).await? {
                self.making = Making::Music;
            }
        } else if let Some(tone) = options.ring.as_deref().filter(|tone| !tone.is_empty()) {
            self.open();
            self.tone(tone);
        } else if options.ring.is_some() || options.ring_until_audio {
            self.ring();
        }
        Ok(())
    }
    /// Tells the caller that it rings: by signalling before the answer, by a tone after it.
    pub(crate) fn ring(&mut self) {
        if self.caller.state() == ChanState::Up {
            // Whoever has sent it here is told that it rings, and, as it hears sound, that it was taken.
            self.caller.core(|core| {
                core.advance(self.caller.id(), Advance::Ringing);
                core.advance(self.caller.id(), Advance::Connected);
            });
            self.tone("ring");
        } else {
            self.caller.indicate(&Indication::Ringing);
        }
    }
    /// Lets the caller hear what the leg sends before it answers.
    pub(crate) fn let_through(&mut self, leg: ChannelId) {
        if std::mem::replace(&mut self.early_audio, true) {
            return;
        }
        self.hush();
        self.caller.suit(leg);
        self.open();
        self.caller.core(|core| {
            core.join_streams(self.caller.id(), leg);
        });
    }
    pub(crate) fn is_early_audio(&self) -> bool {
        self.early_audio
    }
    /// Ends all of it.
    pub(crate) fn end(&mut self) {
        self.hush();
        if std::mem::take(&mut self.early_audio) {
            self.caller.core(|core| core.part_streams(self.caller.id()));
        }
    }

    /// Early media towards a caller who is not answered.
    fn open(&self) {
        if self.caller.state() != ChanState::Up {
            self.caller.indicate(&Indication::Progress);
        }
    }
    fn tone(&mut self, tone: &str) {
        if self.caller.start_tone(tone) {
            self.making = Making::Tone;
        } else {
            self.caller.log(call::Level::Warning, "Dial", &format!("there is no tone '{tone}'"));
        }
    }
    fn hush(&mut self) {
        match std::mem::replace(&mut self.making, Making::Nothing) {
            Making::Nothing => {}
            Making::Tone => self.caller.stop_sound(),
            Making::Music => self.caller.stop_music(),
        }
    }
}

impl Drop for Sound {
    fn drop(&mut self) {
        self.end();
    }
}
