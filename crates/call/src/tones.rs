//! Tones that a channel is listened to for (`TONE_DETECT()`): how often they came, and where it goes then.

use base::{ChannelId, ToneWatch};

use crate::stasis::StasisNotice;
use crate::{ChanEvent, Core, Location, Notice};

/// What one side of a channel has heard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToneSide {
    /// How often.
    pub count: u32,
    /// Where the channel goes each time.
    pub goto: Option<Location>,
}

/// Tones of one channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToneCounts {
    /// In what it says.
    pub received: ToneSide,
    /// In what it hears.
    pub sent: ToneSide,
    /// From so many on it goes elsewhere.
    pub times: u32,
    /// Programs hear of the first of those and of no later one.
    pub once: bool,
    /// What is listened for, to go on with once an application has listened for something else.
    pub watch: ToneWatch,
}

impl Core {
    /// A tone has come that a channel is listened to for.
    pub(crate) fn tone_came(&mut self, id: ChannelId, sent: bool) {
        let Some(tones) = self.get_mut(id).and_then(|channel| channel.tones.as_deref_mut()) else {
            return self.push_event(id, ChanEvent::Tone { sent });
        };
        let side = if sent { &mut tones.sent } else { &mut tones.received };
        side.count = side.count.saturating_add(1);
        let to = side.goto.clone().filter(|_| side.count >= tones.times);
        if side.count == tones.times || side.count > tones.times && !tones.once {
            self.notice(|core| {
                Some(Notice::Stasis(Box::new(StasisNotice::ToneDetected { channel: core.snapshot(id)? })))
            });
        }
        if let Some(to) = to {
            self.request_goto(id, to);
        }
    }
}
