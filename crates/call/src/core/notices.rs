//! What is told to watchers and to the log.

use base::ChannelId;

use super::Core;
use crate::channel::Seen;
use crate::{ChanEvent, Level, Notice, Snapshot};

/// Arguments of the application that shows on a channel which was called for somebody.
pub(crate) const OUTGOING: &str = "(Outgoing Line)";

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
        let Some(channel) = self.get_mut(id) else { return };
        (channel.own_app, channel.app, channel.seen) = (application, application, None);
        OUTGOING.clone_into(&mut channel.app_data);
        self.notice_of(id, |channel| Notice::NewExten { channel, application, data: OUTGOING.to_owned() });
    }
    /// The same, seen with the channel's next state.
    pub fn show_outgoing_later(&mut self, id: ChannelId, application: &'static str) {
        self.keep_shown(id);
        let Some(channel) = self.get_mut(id) else { return };
        (channel.own_app, channel.app) = (application, application);
        OUTGOING.clone_into(&mut channel.app_data);
    }
    /// What changes on a channel from here on is seen with its next state, or when it ends.
    pub fn keep_shown(&mut self, id: ChannelId) {
        if let Some(channel) = self.get_mut(id)
            && channel.seen.is_none()
        {
            channel.seen = Some(Box::new(Seen::of(channel)));
        }
    }
    /// What watchers see next of a channel is as it is.
    pub fn seen_anew(&mut self, id: ChannelId) {
        if let Some(channel) = self.get_mut(id) {
            channel.seen = None;
        }
    }
    /// Watchers see a channel as it is, and are told what is not as they have seen it.
    pub fn show_changes(&mut self, id: ChannelId) {
        let seen = self.get_mut(id).and_then(|channel| channel.seen.take());
        self.tell_changes(id, seen);
    }
    /// Tells watchers what is not as they have seen it.
    pub(super) fn tell_changes(&mut self, id: ChannelId, seen: Option<Box<Seen>>) {
        let (Some(seen), Some(channel)) = (seen, self.get(id)) else { return };
        let (application, data) = (channel.app, channel.app_data.clone());
        let goes_on = application != seen.app || channel.location != seen.location;
        let other_party = channel.connected != seen.connected;
        if goes_on && !application.is_empty() {
            self.notice_of(id, |channel| Notice::NewExten { channel, application, data });
        }
        if other_party {
            self.notice_of(id, Notice::NewConnectedLine);
        }
    }
    /// No application runs on a channel any more: it shows what it was called for, or nothing.
    pub fn show_own_app(&mut self, id: ChannelId) {
        let Some(channel) = self.get_mut(id) else { return };
        channel.app = channel.own_app;
        channel.app_data.clear();
        if !channel.own_app.is_empty() {
            channel.app_data.push_str(OUTGOING);
        }
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
    /// Whoever calls is told how far his call is: his device is looked at. Of Local channels, each half of which is told of
    /// anyway, nothing has changed.
    pub(crate) fn touch_caller(&mut self, id: ChannelId) {
        if self.get(id).is_some_and(|channel| !channel.is_local()) {
            self.touch_device(id);
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
