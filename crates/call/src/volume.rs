//! How loud a channel is, and what it hears (`VOLUME()`, `AGC()`): what was wanted, and the keys that change it.

use base::{ChannelId, Command, Digit, Gain, Loudness};

use crate::Core;

/// Keys by which a party makes it louder and quieter.
const LOUDER: char = '*';
const QUIETER: char = '#';

/// How loud one side is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VolumeSide {
    /// Positive steps multiply, negative ones divide; -1, 0 and 1 change nothing.
    pub step: i8,
    /// Its own keys change it.
    pub by_keys: bool,
    /// Mean absolute amplitude that talking is brought to; 0: none.
    pub level: u16,
}

impl VolumeSide {
    fn loudness(self) -> Loudness {
        Loudness { gain: Gain::of_step(self.step), level: self.level }
    }
    fn turn(&mut self, up: bool) {
        if self.by_keys {
            self.step = if up { self.step.saturating_add(1) } else { self.step.saturating_sub(1) };
        }
    }
}

/// How loud a channel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Volume {
    /// What it says.
    pub received: VolumeSide,
    /// What it hears.
    pub sent: VolumeSide,
}

impl Volume {
    /// What it says, and what it hears, as the media plane is told.
    pub fn loudness(self) -> (Loudness, Loudness) {
        (self.received.loudness(), self.sent.loudness())
    }
}

impl Core {
    /// How loud a channel is; as it comes unless somebody has said otherwise.
    pub fn volume(&self, id: ChannelId) -> Volume {
        self.get(id).and_then(|channel| channel.volume.as_deref()).copied().unwrap_or_default()
    }
    /// Changes how loud a channel is.
    pub fn change_volume(&mut self, id: ChannelId, change: impl FnOnce(&mut Volume)) {
        let before = self.volume(id);
        let mut volume = before;
        change(&mut volume);
        let Some(channel) = self.get_mut(id).filter(|_| volume != before) else { return };
        channel.volume = Some(Box::new(volume));
        if let Some(stream) = channel.stream {
            let (heard, sent) = volume.loudness();
            self.media(Command::Shape { stream, heard, sent });
        }
    }
    /// A party has pressed a key, which may make something louder or quieter; it is a digit as any other all the same.
    pub(crate) fn volume_key(&mut self, id: ChannelId, digit: Digit) {
        let Volume { received, sent } = self.volume(id);
        let up = match digit.to_char() {
            LOUDER => true,
            QUIETER => false,
            _ => return,
        };
        if received.by_keys || sent.by_keys {
            self.change_volume(id, |volume| {
                volume.received.turn(up);
                volume.sent.turn(up);
            });
        }
    }
}
