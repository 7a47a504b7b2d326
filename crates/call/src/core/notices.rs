//! What is told to watchers and to the log.

use base::ChannelId;

use super::Core;
use crate::{ChanEvent, Level, Notice, Snapshot};

impl Core {
    /// Tells watchers, if there are any.
    pub fn notice(&mut self, notice: impl FnOnce(&Self) -> Option<Notice>) {
        if self.watched
            && let Some(notice) = notice(self)
        {
            self.notices.push(notice);
        }
    }
    /// A channel that was called for somebody shows this application, and watchers hear so.
    pub fn show_outgoing(&mut self, id: ChannelId, application: &'static str) {
        const DATA: &str = "(Outgoing Line)";
        let Some(channel) = self.get_mut(id) else { return };
        channel.app = application;
        DATA.clone_into(&mut channel.app_data);
        self.notice_of(id, |channel| Notice::NewExten { channel, application, data: DATA.to_owned() });
    }
    /// Tells watchers something of one channel.
    pub fn notice_of(&mut self, id: ChannelId, notice: impl FnOnce(Snapshot) -> Notice) {
        self.notice(|core| core.snapshot(id).map(notice));
    }
    pub(super) fn notice_event(&mut self, id: ChannelId, event: &ChanEvent) {
        let is_digit = matches!(event, ChanEvent::DigitBegin(_) | ChanEvent::Digit { .. });
        if is_digit && self.is_in_native_pair(id) {
            return;
        }
        match *event {
            ChanEvent::DigitBegin(digit) => {
                self.notice_of(id, |channel| Notice::Dtmf {
                    channel,
                    digit,
                    duration_ms: None,
                    received: true,
                });
            }
            ChanEvent::Digit { digit, duration_ms, .. } => self.notice_of(id, |channel| Notice::Dtmf {
                channel,
                digit,
                duration_ms: Some(duration_ms),
                received: true,
            }),
            ChanEvent::Hold => {
                let class = self.get(id).map(|channel| match channel.music_suggested.as_str() {
                    "" => channel.music_class.clone(),
                    suggested => suggested.to_owned(),
                });
                let class = class.unwrap_or_default();
                self.notice_of(id, |channel| Notice::Hold { channel, class });
            }
            ChanEvent::Unhold => self.notice_of(id, Notice::Unhold),
            _ => {}
        }
    }
    /// Writes a log line, if anybody reads its level.
    pub fn log(&mut self, level: Level, place: &str, text: &str) {
        if self.services.log.enabled(level) {
            self.services.log.line_of_call(self.speaking, level, place, text);
        }
    }
    /// Lines that are logged from here on are about the call of this channel; with `None` about none.
    pub(crate) fn speak_of(&mut self, owner: Option<ChannelId>) {
        self.speaking = owner.and_then(|id| self.get(id)).map(|channel| channel.call_number);
    }
    /// Who is in a bridge may be held from here on, or no more.
    pub(crate) fn touch_bridge(&mut self, bridge: base::BridgeId) {
        for member in self.bridge_members(bridge).to_vec() {
            self.touch_device(member);
        }
    }
    pub(crate) fn touch_device(&mut self, id: ChannelId) {
        let Some(channel) = self.get(id) else { return };
        let device = channel.name.rsplit_once('-').map_or(&*channel.name, |(device, _)| device).to_owned();
        // Nobody remembers what a Local channel did last: each step of each half is told.
        if channel.is_local() || self.touched_devices.last() != Some(&device) {
            self.touched_devices.push(device);
        }
    }
}
