//! Faxes that call: a caller who sounds like one, or whose gateway asks for T.38, goes to the extension `fax` of its context.

use core::time::Duration;

use base::{ChannelId, Command, Listener, ToneWatch};

use crate::{Core, Level, Location, Reach};

/// Where faxes go.
const EXTEN: &str = "fax";
/// Hertz of the calling tone (ITU-T T.30 §4.1), which lasts half a second of every three and a half, and may be 15 % short.
const TONE_HERTZ: u16 = 1100;
const TONE_MS: u32 = 425;

/// By what a fax is known that calls (`fax_detect` of an endpoint, `FAXOPT(faxdetect)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaxWatch {
    /// By its calling tone.
    pub tone: bool,
    /// By an offer of T.38.
    pub offer: bool,
    /// For so long after the answer; zero: for the whole call.
    pub timeout: Duration,
}

impl Core {
    /// Looks out for a fax on this channel from its answer on, or not any more.
    pub fn watch_fax(&mut self, id: ChannelId, watch: Option<FaxWatch>) {
        let Some(channel) = self.get_mut(id) else { return };
        let before = std::mem::replace(&mut channel.fax_watch, watch);
        if channel.answered.is_some() {
            self.listen_for_fax(id, before);
        }
    }
    /// A channel is answered: what it says is listened to from here on.
    pub(crate) fn listen_for_fax(&mut self, id: ChannelId, before: Option<FaxWatch>) {
        let Some(channel) = self.get(id) else { return };
        let hears = |watch: Option<FaxWatch>| watch.is_some_and(|watch| watch.tone);
        let (now, before) = (hears(channel.fax_watch), hears(before));
        let Some(stream) = channel.stream.filter(|_| now != before) else { return };
        let tone =
            ToneWatch { hertz: Some(TONE_HERTZ), duration_ms: TONE_MS, sent: false, ..ToneWatch::default() };
        let watch = now.then_some(tone);
        self.media(Command::WatchTone { stream, listener: Listener::Watcher, watch });
    }
    /// The calling tone has come.
    pub(crate) fn fax_sounds(&mut self, id: ChannelId) {
        if self.get(id).and_then(|channel| channel.fax_watch).is_some_and(|watch| watch.tone) {
            self.fax_calls(id, "its tone");
        }
    }
    /// The peer of a channel asks for T.38 (driver).
    pub fn fax_offered(&mut self, id: ChannelId) {
        if self.get(id).and_then(|channel| channel.fax_watch).is_some_and(|watch| watch.offer) {
            self.fax_calls(id, "T.38");
        }
    }
    /// A fax goes to its extension, once, when there is one and it is not there already.
    fn fax_calls(&mut self, id: ChannelId, by: &str) {
        let Some(channel) = self.get(id) else { return };
        let timeout = channel.fax_watch.map_or(Duration::ZERO, |watch| watch.timeout);
        let is_late = channel.answered.is_none_or(|at| !timeout.is_zero() && self.now - at > timeout);
        let at = channel.location.clone();
        let (name, caller) = (channel.name.clone(), channel.caller.number().to_owned());
        // One who was dialled runs no dialplan of its own.
        if !channel.has_pbx || is_late || at.exten == EXTEN {
            return self.watch_fax(id, None);
        }
        if (self.reach)(self, &at.context, EXTEN, &caller) != Reach::Whole {
            let line =
                format!("{name} is a fax by {by}, and context '{}' has no extension 'fax'", at.context);
            self.log(Level::Notice, "res_fax", &line);
            return self.watch_fax(id, None);
        }
        self.watch_fax(id, None);
        self.log(
            Level::Verbose(2),
            "res_fax",
            &format!("{name} is a fax by {by} and goes to extension 'fax'"),
        );
        if let Some(channel) = self.get_mut(id) {
            channel.vars.set(dialplan::Var::named("FAXEXTEN"), &at.exten, dialplan::Inherit::Never);
        }
        self.request_goto(id, Location { exten: EXTEN.into(), priority: 1, ..at });
    }
}
