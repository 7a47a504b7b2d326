//! What happens on a channel, by its driver, the media plane or another story: who waits on it is woken.

use base::{Cause, ChannelId, Command, Event, Instant, Listener, StreamId};

use super::{Advance, Core};
use crate::channel::EVENTS_MAX;
use crate::{CelKind, ChanEvent, ChanState, Elsewhere, Level, Location, Notice, SoftHangup};

/// Who has ended a half of a Local channel: the other half, which is no party.
pub const BY_OTHER_HALF: &str = "Local";

impl Core {
    /// Changes the state and tells watchers, when it is another.
    pub fn set_state(&mut self, id: ChannelId, state: ChanState) {
        let Some(channel) = self.get_mut(id).filter(|c| c.state != state) else { return };
        channel.state = state;
        let seen = channel.seen.take();
        self.rings_unheard |= state == ChanState::Ringing;
        self.notice_of(id, Notice::NewState);
        self.tell_changes(id, seen);
        self.touch_device(id);
    }
    /// The channel is answered (driver, for outgoing ones; [`Shard::answer`](crate::Shard::answer) for incoming ones).
    pub fn answered(&mut self, id: ChannelId) {
        let now = self.now;
        let Some(channel) = self.get_mut(id) else { return };
        if channel.answered.is_none() {
            channel.answered = Some(now);
            self.cdr_answered(id);
            self.log_event(CelKind::Answer, id, |_| Vec::new());
            self.listen_for_fax(id, None);
            self.fill_silence(id);
        }
        self.set_state(id, ChanState::Up);
    }
    /// An answered call hears silence rather than nothing, where that is wanted.
    pub(super) fn fill_silence(&mut self, id: ChannelId) {
        let stream = self.get(id).and_then(|channel| channel.stream);
        if let Some(stream) = stream.filter(|_| self.settings.transmit_silence) {
            self.media(Command::FillSilence { stream, on: true });
        }
    }

    /// Keeps a digit that was heard or passed on in the channel's events.
    pub(crate) fn log_digit(&mut self, id: ChannelId, digit: base::Digit, duration_ms: u32) {
        self.log_event(CelKind::Dtmf, id, |_| {
            vec![
                ("digit", digit.to_char().to_string().into()),
                ("duration_ms", crate::cel::Extra::Number(duration_ms.into())),
            ]
        });
    }
    /// Something happened on a channel: its story will hear of it. Bounded; the oldest digit makes room.
    pub fn push_event(&mut self, id: ChannelId, event: ChanEvent) {
        if self.watched {
            self.notice_event(id, &event);
        }
        if let ChanEvent::Digit { digit, duration_ms, .. } = event {
            self.volume_key(id, digit);
            self.music_key(id, digit);
            if !self.is_in_native_pair(id) {
                self.log_digit(id, digit, duration_ms);
            }
        }
        let Some(channel) = self.get_mut(id) else { return };
        match event {
            ChanEvent::MediaFlowing => channel.media_flows = true,
            ChanEvent::Hold => channel.held = true,
            ChanEvent::Unhold => channel.held = false,
            _ => {}
        }
        let is_hold = matches!(event, ChanEvent::Hold | ChanEvent::Unhold);
        let bridge = channel.bridge;
        if is_hold && let Some(bridge) = bridge {
            self.touch_bridge(bridge);
            // Hold and its end tell all in the bridge anew whom they talk to.
            self.bridge_changed(bridge);
        }
        let Some(channel) = self.get_mut(id) else { return };
        if channel.events.len() >= EVENTS_MAX {
            let oldest_digit = channel
                .events
                .iter()
                .position(|e| matches!(e, ChanEvent::Digit { .. } | ChanEvent::DigitBegin(_)));
            channel.events.remove(oldest_digit.unwrap_or(0));
        }
        channel.events.push_back(event);
        if let Some(task) = channel.waiter {
            self.woken.push(task);
        }
    }
    /// A channel is to be held, or is no more: whether watchers alone are told, because its dialplan wants it so
    /// (`HOLD_INTERCEPT()`).
    pub(crate) fn catches_hold(&mut self, id: ChannelId, holds: bool) -> bool {
        if !self.get(id).is_some_and(|channel| channel.keeps_holds) {
            return false;
        }
        self.notice_of(id, |channel| match holds {
            true => Notice::Hold { channel, class: "N/A".to_owned() },
            false => Notice::Unhold(channel),
        });
        true
    }
    /// Whether a channel's side is told that it is held; its device is on hold meanwhile.
    pub fn told_held(&mut self, id: ChannelId, holds: bool) {
        let Some(channel) = self.get_mut(id).filter(|channel| channel.told_held != holds) else { return };
        channel.told_held = holds;
        self.touch_device(id);
    }
    /// Whatever a channel has held is held no more, because it sends it elsewhere; that is told whether it held it or not.
    pub fn end_hold(&mut self, id: ChannelId) {
        self.notice_of(id, Notice::Unhold);
        let Some(channel) = self.get_mut(id) else { return };
        if std::mem::take(&mut channel.held) {
            channel.events.push_back(ChanEvent::Unhold);
            let (bridge, waiter) = (channel.bridge, channel.waiter);
            self.woken.extend(waiter);
            bridge.into_iter().for_each(|bridge| self.touch_bridge(bridge));
        }
    }
    /// The other side has ended the call (driver). The story ends by it; the first cause stays.
    pub fn remote_hangup(&mut self, id: ChannelId, cause: Cause, source: &str) {
        if !self.end_after_exchange(id, cause, source) && self.end(id, cause, source) {
            let status =
                source.strip_prefix("SIP ").and_then(|text| text.get(..3)).and_then(|code| code.parse().ok());
            if let Some(channel) = self.get_mut(id) {
                if source != BY_OTHER_HALF {
                    channel.hangup_by = channel.name.clone();
                }
                channel.tech_cause = status.filter(|status| *status >= 300).or(channel.tech_cause);
            }
            self.tell_quality(id);
            self.notice_of(id, |channel| Notice::HangupRequest { channel, cause: Some(cause) });
        }
    }
    /// The other side has ended the call and gives no reason (driver). The cause stays what it was; who talks to somebody it
    /// has dialled, or that has dialled it, is through with that.
    pub fn remote_end(&mut self, id: ChannelId, source: &str) {
        if self.end_after_exchange(id, Cause::NORMAL_CLEARING, source) {
            return;
        }
        let Some(channel) = self.get(id) else { return };
        let known = Some(channel.last_cause).filter(|cause| *cause != Cause::NONE);
        let left = if channel.bridge.is_some() { Cause::NORMAL_CLEARING } else { Cause::NONE };
        if self.end(id, known.unwrap_or(left), source) {
            if let Some(channel) = self.get_mut(id) {
                channel.hangup_by = channel.name.clone();
            }
            self.tell_quality(id);
            self.notice_of(id, |channel| Notice::HangupRequest { channel, cause: known });
        }
    }
    /// A channel has left a bridge and goes on: that is a normal end, unless there is a cause already.
    pub fn left_bridge_by_itself(&mut self, id: ChannelId) {
        if let Some(channel) = self.get_mut(id).filter(|channel| channel.last_cause == Cause::NONE) {
            channel.last_cause = Cause::NORMAL_CLEARING;
        }
    }
    /// The cause of an end for which nobody gives one: clearing in conversations that a Dial has made, else none.
    pub fn plain_cause(&self, id: ChannelId) -> Cause {
        let is_dialled = |channel: &crate::Channel| {
            channel.app == "Dial" || channel.app == "AppDial" && channel.outgoing || channel.app.is_empty()
        };
        let plain = self.get(id).is_none_or(|channel| channel.state != ChanState::Up || is_dialled(channel));
        if plain { Cause::NORMAL_CLEARING } else { Cause::NONE }
    }
    /// We end the call: its story hears of it and hangs up.
    pub fn request_hangup(&mut self, id: ChannelId, cause: Cause) {
        self.end(id, cause, "");
    }
    /// The same because `by` has asked for it, of which watchers hear.
    pub fn soft_hangup(&mut self, id: ChannelId, cause: Cause, by: SoftHangup) {
        if self.end(id, cause, "") {
            // Who asks from outside ends its media at once; a channel that ends by itself keeps it until it goes.
            if by == SoftHangup::Explicit {
                self.tell_quality(id);
            }
            self.notice_of(id, |channel| Notice::SoftHangup { channel, by });
        }
    }
    /// What it talked to has gone without it, as watchers hear: its story ends.
    pub(crate) fn end_left_behind(&mut self, id: ChannelId, cause: Cause) {
        if self.end(id, cause, "") {
            self.notice_of(id, |channel| Notice::HangupRequest { channel, cause: Some(cause) });
        }
    }
    /// A caller who was not answered is refused, and ends the call by that; `status` is what SIP says of it.
    pub fn end_refused(&mut self, id: ChannelId, cause: Cause, status: u16) {
        self.set_state(id, ChanState::Busy);
        if self.end(id, cause, "") {
            if let Some(channel) = self.get_mut(id) {
                channel.hangup_by = channel.name.clone();
                let tells = !channel.call_id.is_empty();
                channel.tech_cause = channel.tech_cause.or(tells.then_some(status));
            }
            self.notice_of(id, |channel| Notice::HangupRequest { channel, cause: Some(cause) });
        }
    }
    fn end(&mut self, id: ChannelId, cause: Cause, source: &str) -> bool {
        let Some(channel) = self.get_mut(id).filter(|c| c.hangup.is_none()) else { return false };
        channel.hangup = Some(cause);
        channel.last_cause = cause;
        channel.hangup_source = source.to_owned();
        if let Some(task) = channel.waiter {
            self.woken.push(task);
        }
        self.spied_changed(id);
        true
    }
    /// Limits how long the call may last (`TIMEOUT(absolute)`); whoever waits on the channel takes it up at once.
    pub fn set_absolute_deadline(&mut self, id: ChannelId, at: Option<Instant>) {
        let Some(channel) = self.get_mut(id) else { return };
        channel.absolute_deadline = at;
        if let Some(task) = channel.waiter {
            self.woken.push(task);
        }
    }
    /// Sends a running channel elsewhere in the dialplan.
    pub fn request_goto(&mut self, id: ChannelId, to: Location) {
        let Some(channel) = self.get_mut(id) else { return };
        channel.goto = Some(Elsewhere::Dialplan(to.clone()));
        let caller = channel.caller.number().to_owned();
        let (application, data, bridge) = (channel.app, channel.app_data.clone(), channel.bridge);
        let waiter = channel.waiter;
        self.woken.extend(waiter);
        // In an application of its own it is seen there when it has come there.
        if bridge.is_none()
            || application.is_empty()
            || (self.reach)(self, &to.context, &to.exten, &caller) != crate::Reach::Whole
        {
            return;
        }
        if let Some(&[a, b]) = bridge.map(|bridge| self.bridge_members(bridge)) {
            self.forget_peers(a);
            self.forget_peers(b);
        }
        self.cdr_sent(id, &to.exten, &to.context);
        // It stands there from here on, whatever it is still in; the step that comes first there is not told again.
        if let Some(channel) = self.get_mut(id) {
            (channel.location, channel.told_place) = (to.clone(), Some(to));
        }
        self.notice_of(id, |channel| Notice::NewExten { channel, application, data });
    }
    /// Sends a channel elsewhere in the dialplan of whose going watchers hear by other words: it stands where it is until
    /// it comes there.
    pub fn leave_for(&mut self, id: ChannelId, to: Location) {
        let Some(channel) = self.get_mut(id) else { return };
        channel.goto = Some(Elsewhere::Dialplan(to));
        let waiter = channel.waiter;
        self.woken.extend(waiter);
    }
    /// The story that has a channel lets go of it, because another one has asked for it; that one goes on.
    pub fn hand_over(&mut self, id: ChannelId) {
        let Some(channel) = self.get_mut(id) else { return };
        if let Some(Elsewhere::Story(task)) = channel.goto {
            channel.goto = None;
            channel.keeper = Some(task);
            self.woken.push(task);
        }
    }
    /// The call of somebody who was transferred has come on: who transferred him hears it. After `Connected` and `Failed`
    /// nothing more is told.
    pub fn advance(&mut self, id: ChannelId, advance: Advance) {
        let Some(channel) = self.get_mut(id) else { return };
        let token = match advance {
            Advance::Ringing | Advance::Early => channel.advance_watch,
            Advance::Connected | Advance::Failed(_) => channel.advance_watch.take(),
        };
        self.advances.extend(token.map(|token| (token, advance)));
    }
    /// A media worker's word.
    pub fn media_event(&mut self, event: Event) {
        let (stream, heard) = match event {
            Event::Played { stream, play, end, offset } => {
                if let Some(id) = self.channel_of_stream(stream) {
                    self.prompt_played(id, play, end);
                }
                (stream, ChanEvent::Played { play, end, offset })
            }
            Event::DigitBegin { stream, digit, .. } => (stream, ChanEvent::DigitBegin(digit)),
            Event::DigitEnd { stream, digit, duration_ms, relayed } => {
                (stream, ChanEvent::Digit { digit, duration_ms, relayed })
            }
            Event::DigitsSent { stream } => (stream, ChanEvent::DigitsSent),
            Event::Silence { stream, ms } => (stream, ChanEvent::Silence(ms)),
            Event::Sound { stream, listener: Listener::Application, sounds, before_ms } => {
                (stream, ChanEvent::Sound { sounds, before_ms })
            }
            Event::Sound { stream, listener: Listener::Watcher, sounds, before_ms } => {
                if let Some(id) = self.channel_of_stream(stream) {
                    let duration_ms = (!sounds).then_some(before_ms);
                    self.notice_of(id, |channel| Notice::Talking { channel, duration_ms });
                }
                return;
            }
            Event::Tone { stream, listener, sent } => {
                match (self.channel_of_stream(stream), listener) {
                    (Some(id), Listener::Application) => self.tone_came(id, sent),
                    (Some(id), Listener::Watcher) => self.fax_sounds(id),
                    (None, _) => {}
                }
                return;
            }
            Event::Talking { stream, talks } => {
                if let Some(id) = self.channel_of_stream(stream) {
                    self.conference_talking(id, talks);
                }
                return;
            }
            Event::Speaker { stream } => {
                if let Some(id) = self.channel_of_stream(stream) {
                    self.conference_speaker(id);
                }
                return;
            }
            Event::Latched { stream, .. } => (stream, ChanEvent::MediaFlowing),
            Event::RtpTimeout { stream } => (stream, ChanEvent::MediaTimeout),
            // What to send then is between the driver and its peer, and a driver tells of reports: it knows both ends.
            Event::Sends { .. } | Event::Rtcp { .. } | Event::PictureWanted { .. } => return,
            Event::Stats { stream, stats, asked } => return self.stats_came(stream, stats, asked),
            Event::Closed { stream, fault, .. } => {
                if let (Some(id), Some(fault)) = (self.by_stream.remove(&stream), fault) {
                    let name = self.get(id).map(|c| c.name.clone()).unwrap_or_default();
                    self.log(Level::Error, "media", &format!("{name}: media stream ended: {fault:?}"));
                    self.remote_hangup(id, Cause::NORMAL_TEMPORARY_FAILURE, "media");
                }
                return;
            }
        };
        if let Some(id) = self.channel_of_stream(stream) {
            if let ChanEvent::Played { play, .. } = heard {
                self.note_played(id, play);
            }
            self.push_event(id, heard);
        }
    }
    /// Watchers hear how good the audio of a channel that carries RTP was, once, as far as is known: when its phone hangs up,
    /// else when it ends. Who talks to it then has that under names of its own.
    pub fn tell_quality(&mut self, id: ChannelId) {
        let is_measured = |channel: &&mut crate::Channel| channel.answered.is_some() || channel.media_flows;
        let Some(channel) = self.get_mut(id).filter(is_measured) else { return };
        let is_told = channel.is_quality_told || channel.rtp_digits.is_none() || channel.stream.is_none();
        if is_told || !self.watched {
            return;
        }
        let Some(channel) = self.get_mut(id) else { return };
        channel.is_quality_told = true;
        let quality = channel.quality.as_deref().copied().unwrap_or_default();
        // Watchers see it where its last step was, not behind it.
        let at = channel.location.priority;
        let is_behind = |told: &u32| told.checked_add(1) == Some(at);
        channel.location.priority = channel.told_step.filter(is_behind).unwrap_or(at);
        let members = channel.bridge.map(|bridge| self.bridge_members(bridge));
        let peer = match members {
            Some(&[a, b]) => Some(if a == id { b } else { a }),
            _ => None,
        };
        for (name, text) in quality.variables() {
            self.set_variable(id, name, &text);
            if let Some(peer) = peer {
                self.set_variable(peer, &format!("{name}BRIDGED"), &text);
            }
        }
        if let Some(channel) = self.get_mut(id) {
            channel.location.priority = at;
        }
    }
    /// The totals of channels that carry RTP are asked for where no report tells them, so that they are known when a call ends.
    pub fn ask_quality(&mut self) {
        let now = self.now;
        let is_asked = |channel: &&crate::Channel| {
            let asks = |at| crate::quality::is_to_be_asked(at, channel.quality.as_deref(), now);
            channel.rtp_digits.is_some() && channel.answered.is_some_and(asks)
        };
        let streams: Vec<StreamId> =
            self.channels().filter(is_asked).filter_map(|channel| channel.stream).collect();
        streams.into_iter().for_each(|stream| self.media(Command::Stats { stream }));
    }
    fn stats_came(&mut self, stream: StreamId, stats: base::StreamStats, asked: bool) {
        let now = self.now;
        let Some(channel) = self.by_stream.get(&stream).copied().and_then(|id| self.get_mut(id)) else {
            return;
        };
        let quality = channel.quality.get_or_insert_default();
        if asked {
            quality.told(stats, now);
            let is_awaited = std::mem::take(&mut channel.asked_quality);
            let waiter = channel.waiter.filter(|_| is_awaited);
            self.woken.extend(waiter);
        } else {
            quality.report(stats, now);
        }
    }
    /// Lets no audio through from the party of a channel (`heard`), or to it (`sent`), or lets it through again; `None`
    /// leaves a way as it is. Digits go on. False without media.
    pub fn mute(&mut self, id: ChannelId, heard: Option<bool>, sent: Option<bool>) -> bool {
        let Some(channel) = self.get_mut(id) else { return false };
        let Some(stream) = channel.stream else { return false };
        channel.muted = (heard.unwrap_or(channel.muted.0), sent.unwrap_or(channel.muted.1));
        let (heard, sent) = channel.muted;
        self.media(Command::Mute { stream, heard, sent });
        true
    }
    /// A sound that was being read has arrived: whoever waits asks again.
    pub fn library_changed(&mut self) {
        self.woken.append(&mut self.library_waiters);
    }
    /// An answer of the DNS has arrived: whoever waits asks again.
    pub fn outside_changed(&mut self) {
        self.woken.append(&mut self.outside_waiters);
    }
}
