//! Call detail records.
//!
//! A record stands for one conversation of party A (who called) with party B (who was dialled). It begins when A's
//! channel begins, is answered when A is answered, and is finished when A hangs up or turns to another B. When A rings
//! several at once, each that does not answer has a record of its own.
//!
//! Transfers and parking take the two apart while both go on. Whoever then talks to another, or waits for somebody, has a
//! record of its own from the moment at which it left the one before: no moment that a party is up for is in no record.
//! Who was dialled has none of its own until then.

use core::time::Duration;

use base::{ChannelId, Instant};

use crate::{Channel, Core, Settings};

/// How the call came out, in the words of Master.csv.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Disposition {
    /// Nobody answered.
    #[default]
    NoAnswer,
    /// The caller gave up before anybody answered; told as [`Self::NoAnswer`] unless the settings have it.
    Cancel,
    /// Something in the way.
    Failed,
    /// Busy.
    Busy,
    /// Congestion.
    Congestion,
    /// Answered.
    Answered,
}

impl Disposition {
    /// The word in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoAnswer => "NO ANSWER",
            Self::Cancel => "CANCEL",
            Self::Failed => "FAILED",
            Self::Busy => "BUSY",
            Self::Congestion => "CONGESTION",
            Self::Answered => "ANSWERED",
        }
    }
}

/// What the record is for (`CHANNEL(amaflags)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum AmaFlags {
    /// Leave out.
    Omit = 1,
    /// Bill.
    Billing = 2,
    /// Keep for the record.
    #[default]
    Documentation = 3,
}

impl AmaFlags {
    /// The word in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Omit => "OMIT",
            Self::Billing => "BILLING",
            Self::Documentation => "DOCUMENTATION",
        }
    }
}

/// One finished record; times in microseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cdr {
    /// Account code.
    pub account: String,
    /// Caller's number.
    pub src: String,
    /// Extension that was dialled.
    pub dst: String,
    /// Its context.
    pub dcontext: String,
    /// Caller id with name.
    pub clid: String,
    /// Party A's channel.
    pub channel: String,
    /// Party B's channel.
    pub dst_channel: String,
    /// Last application.
    pub last_app: String,
    /// Its arguments.
    pub last_data: String,
    /// Start.
    pub start: i64,
    /// Answer.
    pub answer: Option<i64>,
    /// End.
    pub end: i64,
    /// Start to end, from the monotonic clock.
    pub duration: Duration,
    /// Answer to end.
    pub billsec: Duration,
    /// Whole seconds of `billsec` to bill: cut, or with `initiatedseconds` rounded up.
    pub billed: u64,
    /// How it came out.
    pub disposition: Disposition,
    /// What it is for.
    pub ama_flags: AmaFlags,
    /// UNIQUEID of party A.
    pub uniqueid: String,
    /// LINKEDID.
    pub linkedid: String,
    /// User field.
    pub user_field: String,
    /// Serial within the linkedid.
    pub sequence: u32,
    /// Account of party B.
    pub peer_account: String,
    /// Variables set with `CDR(name)=`.
    pub custom: Vec<(String, String)>,
}

/// A record that `ForkCDR` left running beside the channel's current one: what the two do not share.
#[derive(Debug, Clone)]
pub struct EarlierCdr {
    start: (Instant, i64),
    answer: Option<(Instant, i64)>,
    user_field: String,
    custom: Vec<(String, String)>,
    sequence: u32,
}

/// What becomes of the records at a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CdrFork {
    /// The present record ends; otherwise it runs on beside the new one.
    pub end: bool,
    /// The new record is answered at this moment, if the channel is.
    pub answer: bool,
    /// The new record begins at this moment.
    pub restart: bool,
    /// The new record has no variables.
    pub bare: bool,
}

/// Most records that run beside the current one of a channel; a dialplan that forks in a loop ends the oldest.
pub const CDR_FORKS_MAX: usize = 32;

/// What a channel keeps for its records while it lives.
#[derive(Debug, Clone, Default)]
pub struct CdrState {
    /// `CDR_PROP(disable)` or `NoCDR`.
    pub disabled: bool,
    /// Which party B is being recorded; set by [`Core::turn_to_party`](crate::Core::turn_to_party).
    pub dst_channel: String,
    /// What the record says instead of that channel's name, of a party that is known by another: an agent of a queue.
    pub dst_name: Option<Box<str>>,
    /// Application and arguments that dialled party B.
    pub dialled_by: Option<(&'static str, String)>,
    /// Account of party B.
    pub peer_account: String,
    /// Start of the current record; `None` is the channel's own.
    pub start: Option<(Instant, i64)>,
    /// Answer of the current record.
    pub answer: Option<(Instant, i64)>,
    /// When party A ceased to talk to party B, until it talks to somebody again.
    pub talked_until: Option<(Instant, i64)>,
    /// When the channel left its last bridge, until it enters another, or another record begins.
    pub left: Option<(Instant, i64)>,
    /// A party that was dialled has a record of its own, because it goes on without who dialled it.
    pub own: bool,
    /// Worst or best that happened so far.
    pub disposition: Disposition,
    /// Last application that ran before the channel's end, and its arguments.
    pub last_app: &'static str,
    /// Arguments of `last_app`.
    pub last_data: String,
    /// Extension and context of the record, frozen when party B was dialled or `h` began.
    pub dialed: Option<(String, String)>,
    /// User field.
    pub user_field: String,
    /// Overrides the channel's account code.
    pub account: Option<String>,
    /// What it is for.
    pub ama_flags: AmaFlags,
    /// Variables set with `CDR(name)=`.
    pub custom: Vec<(String, String)>,
    /// Records of this channel before the current one, written or running.
    pub written: u32,
    /// Records that run beside the current one, oldest first.
    pub earlier: Vec<EarlierCdr>,
}

impl CdrState {
    /// The state a channel begins with.
    pub fn new(settings: &Settings) -> Self {
        Self { disabled: settings.cdr_on_request, ..Self::default() }
    }
    /// Sets a variable of all running records. `None` when they hold as many as they may.
    pub fn set_custom(&mut self, name: &str, value: &str, most: usize) -> Option<()> {
        let earlier = self.earlier.iter_mut().map(|record| &mut record.custom);
        for custom in earlier.chain([&mut self.custom]) {
            let full = custom.len() >= most;
            match custom.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => value.clone_into(known),
                None if full => return None,
                None => custom.push((name.to_owned(), value.to_owned())),
            }
        }
        Some(())
    }
    /// Sets the user field of all running records.
    pub fn set_user_field(&mut self, value: &str) {
        value.clone_into(&mut self.user_field);
        self.earlier.iter_mut().for_each(|record| value.clone_into(&mut record.user_field));
    }
}

impl Core {
    /// Writes the current call record of a channel, if it has one to write, and begins the next.
    pub fn finish_cdr(&mut self, id: ChannelId) {
        self.finish_cdr_at(id, (self.now, self.services.wall.now_micros()));
    }
    fn finish_cdr_at(&mut self, id: ChannelId, (now, wall): (Instant, i64)) {
        let settings = self.settings.clone();
        let Some(channel) = self.get_mut(id) else { return };
        let state = &channel.cdr;
        let unwanted = !settings.cdr_enabled || state.disabled || !has_record(channel);
        let unanswered = state.disposition != Disposition::Answered;
        // A call that nobody answered and that had no second party has no record unless `unanswered=yes` (cdr.conf).
        if unwanted || (unanswered && state.dst_channel.is_empty() && !settings.cdr_unanswered) {
            return;
        }
        let record = record_of(channel, &settings, (now, wall));
        let ended = end_of(channel, &settings, (now, wall));
        let earlier = std::mem::take(&mut channel.cdr.earlier);
        let earlier: Vec<Cdr> =
            earlier.into_iter().map(|forked| of_earlier(forked, &record, &settings, ended)).collect();
        let state = &channel.cdr;
        channel.cdr = CdrState {
            disabled: state.disabled,
            start: Some((now, wall)),
            answer: channel.answered.map(|_| (now, wall)),
            disposition: if channel.answered.is_some() { Disposition::Answered } else { Default::default() },
            account: state.account.clone(),
            ama_flags: state.ama_flags,
            written: state.written.wrapping_add(1),
            own: state.own,
            ..CdrState::default()
        };
        self.cdrs.extend(earlier);
        self.cdrs.push(record);
    }

    /// The channel's current record as it would be if it ended at this moment.
    pub fn current_cdr(&self, id: ChannelId) -> Option<Cdr> {
        let moment = (self.now, self.services.wall.now_micros());
        self.get(id).map(|channel| record_of(channel, &self.settings, moment))
    }

    /// Begins another record of a channel, as `ForkCDR` does.
    pub fn fork_cdr(&mut self, id: ChannelId, fork: CdrFork) {
        let moment = (self.now, self.services.wall.now_micros());
        let settings = self.settings.clone();
        let Some(channel) = self.get_mut(id) else { return };
        let (start, answer) = (start_of(channel), channel.cdr.answer);
        let kept = (channel.cdr.user_field.clone(), channel.cdr.custom.clone());
        let mut ended = None;
        if fork.end {
            self.finish_cdr(id);
        } else {
            let state = &mut channel.cdr;
            let (user_field, custom) = kept.clone();
            state.earlier.push(EarlierCdr { start, answer, user_field, custom, sequence: state.written });
            state.written = state.written.wrapping_add(1);
            if state.earlier.len() > CDR_FORKS_MAX {
                let oldest = state.earlier.remove(0);
                let unwanted = !settings.cdr_enabled || state.disabled || !has_record(channel);
                let record = record_of(channel, &settings, moment);
                let until = end_of(channel, &settings, moment);
                ended = (!unwanted).then(|| of_earlier(oldest, &record, &settings, until));
            }
        }
        self.cdrs.extend(ended);
        let Some(channel) = self.get_mut(id) else { return };
        let state = &mut channel.cdr;
        (state.talked_until, state.left) = (None, None);
        (state.user_field, state.custom) = if fork.bare { Default::default() } else { kept };
        state.start = Some(if fork.restart { moment } else { start });
        state.answer = if fork.answer || fork.restart { answer.map(|_| moment) } else { answer };
    }

    /// Begins the running records of a channel anew, as `ResetCDR` does: from this moment, without variables unless
    /// `keep`.
    pub fn reset_cdr(&mut self, id: ChannelId, keep: bool) {
        let moment = (self.now, self.services.wall.now_micros());
        let Some(channel) = self.get_mut(id) else { return };
        let state = &mut channel.cdr;
        state.start = Some(moment);
        state.answer = state.answer.map(|_| moment);
        (state.talked_until, state.left) = (None, None);
        if !keep {
            state.custom.clear();
            state.user_field.clear();
        }
        for record in &mut state.earlier {
            record.start = moment;
            record.answer = record.answer.map(|_| moment);
            if !keep {
                record.custom.clear();
                record.user_field.clear();
            }
        }
    }

    /// Writes a record of a leg that rang beside the one which the channel's own record is about, and was not answered.
    /// `began` is when it was called.
    pub fn write_leg_cdr(
        &mut self,
        id: ChannelId,
        party: &str,
        began: (Instant, i64),
        disposition: Disposition,
    ) {
        let (now, wall) = (self.now, self.services.wall.now_micros());
        let settings = self.settings.clone();
        let Some(channel) = self.get_mut(id) else { return };
        let unwanted = !settings.cdr_enabled || settings.cdr_ignore_dialling || channel.cdr.disabled;
        if unwanted || !has_record(channel) {
            return;
        }
        let (last_app, last_data) = channel
            .cdr
            .dialled_by
            .clone()
            .unwrap_or_else(|| (channel.cdr.last_app, channel.cdr.last_data.clone()));
        let record = Cdr {
            dst_channel: party.to_owned(),
            last_app: last_app.to_owned(),
            last_data,
            start: began.1,
            answer: None,
            end: wall,
            duration: now.since(began.0),
            billsec: Duration::ZERO,
            billed: 0,
            disposition: told(disposition, &settings),
            peer_account: String::new(),
            ..record_of(channel, &settings, (now, wall))
        };
        channel.cdr.written = channel.cdr.written.wrapping_add(1);
        self.cdrs.push(record);
    }

    /// The channel ceased to talk, or begins to.
    pub(crate) fn note_talk(&mut self, id: ChannelId, ended: bool) {
        let moment = (self.now, self.services.wall.now_micros());
        let Some(channel) = self.get_mut(id) else { return };
        channel.cdr.left = ended.then_some(moment);
        if !channel.cdr.dst_channel.is_empty() {
            channel.cdr.talked_until = ended.then_some(moment);
        }
    }

    /// Two begin to talk, with or without a Dial. The record of one of them is about the other from here on: of the one
    /// that dialled, else of the one that called somebody at all, else of the older.
    ///
    /// Whom either talked to before goes on alone, with a record of its own, unless it is `replaced`.
    pub(crate) fn note_pair(&mut self, a: ChannelId, b: ChannelId, replaced: bool) {
        let (Some(first), Some(second)) = (self.get(a), self.get(b)) else { return };
        let is_about = |of: &Channel, other: &Channel| *of.cdr.dst_channel == *other.name;
        let age = |of: &Channel| (of.created, of.id);
        let (party_a, party_b) = match (is_about(first, second), is_about(second, first)) {
            (true, false) => (a, b),
            (false, true) => (b, a),
            (true, true) | (false, false) => match (calls(first), calls(second)) {
                (true, false) => (a, b),
                (false, true) => (b, a),
                (true, true) | (false, false) if age(first) <= age(second) => (a, b),
                (true, true) | (false, false) => (b, a),
            },
        };
        let Some((name, account)) = self.get(party_b).map(|c| (c.name.to_string(), c.account.clone())) else {
            return;
        };
        let mut before = Vec::new();
        if let Some(channel) = self.get(party_a).filter(|channel| *channel.cdr.dst_channel != *name) {
            before.push(channel.cdr.dst_channel.clone());
            self.part_from_party(party_a);
            if let Some(channel) = self.get_mut(party_a).filter(|channel| channel.cdr.dst_channel.is_empty())
            {
                (channel.cdr.dst_channel, channel.cdr.peer_account) = (name, account);
                channel.cdr.dst_name = None;
            }
        }
        // Who was dialled and has been on its own is told of by that record again.
        if let Some(channel) = self.get(party_b).filter(|channel| channel.cdr.own && !channel.has_pbx) {
            before.push(channel.cdr.dst_channel.clone());
            self.finish_cdr_at(party_b, self.left_at(party_b));
            if let Some(channel) = self.get_mut(party_b) {
                (channel.cdr.own, channel.cdr.start, channel.cdr.answer) = (false, None, None);
                channel.cdr.disposition = Disposition::default();
            }
        }
        for name in before.iter().filter(|name| !replaced && !name.is_empty()) {
            let goes_on = |channel: &&Channel| channel.hangup.is_none() && !has_record(channel);
            let id = self.by_name(name).and_then(|id| self.get(id)).filter(goes_on);
            if let Some(id) = id.map(|channel| channel.id).filter(|id| ![a, b].contains(id)) {
                self.part_from_party(id);
            }
        }
    }

    /// The channel goes on without the party that its record is about, or that dialled it: that record ends where it left
    /// the bridge, and the next begins there, about nobody.
    pub fn part_from_party(&mut self, id: ChannelId) {
        let (at, now) = (self.left_at(id), (self.now, self.services.wall.now_micros()));
        let ignores = self.settings.cdr_ignore_dialling;
        let Some(channel) = self.get_mut(id) else { return };
        if !has_record(channel) {
            let at = channel.cdr.left.unwrap_or(now);
            (channel.cdr.own, channel.cdr.left) = (true, None);
            (channel.cdr.start, channel.cdr.answer) = (Some(at), channel.answered.map(|_| at));
            (channel.cdr.last_app, channel.cdr.last_data) = ("AppDial", "(Outgoing Line)".to_owned());
            if channel.answered.is_some() {
                channel.cdr.disposition = Disposition::Answered;
            }
        } else if !channel.cdr.dst_channel.is_empty() && !ignores {
            let app = (channel.cdr.last_app, channel.cdr.last_data.clone());
            let dialed = channel.cdr.dialed.clone();
            self.finish_cdr_at(id, at);
            if let Some(channel) = self.get_mut(id) {
                (channel.cdr.last_app, channel.cdr.last_data) = app;
                channel.cdr.dialed = dialed;
                channel.cdr.dst_channel.clear();
            }
        }
    }
    /// When the channel left its last bridge, but not before its record began; at this moment when it is in one.
    fn left_at(&self, id: ChannelId) -> (Instant, i64) {
        let now = (self.now, self.services.wall.now_micros());
        let Some(channel) = self.get(id) else { return now };
        let (left, began) = (channel.cdr.left.unwrap_or(now), start_of(channel));
        if left.0 < began.0 { began } else { left }
    }
    /// The channel is parked: what its record was about is over.
    pub(crate) fn note_parked(&mut self, id: ChannelId, lot: &str) {
        self.part_from_party(id);
        let Some(channel) = self.get_mut(id).filter(|channel| channel.cdr.last_app != "Park") else { return };
        channel.cdr.last_app = "Park";
        lot.clone_into(&mut channel.cdr.last_data);
        channel.cdr.dialed = None;
    }

    /// The channel dials `party`: its record is about the two. See [`Core::leave_party`].
    pub fn turn_to_party(&mut self, id: ChannelId, party: &str) {
        self.leave_party(id);
        let Some(channel) = self.get_mut(id) else { return };
        (channel.cdr.dst_channel, channel.cdr.dst_name) = (party.to_owned(), None);
    }
    /// The channel is about to ask for somebody. When its record is about a party already, that record is finished, with
    /// the application that dialled, and the next begins; unless dialling is to be ignored.
    pub fn leave_party(&mut self, id: ChannelId) {
        let forks = !self.settings.cdr_ignore_dialling;
        let Some(channel) = self.get_mut(id) else { return };
        if forks && !channel.cdr.dst_channel.is_empty() {
            let dialling =
                (channel.cdr.last_app, std::mem::take(&mut channel.cdr.last_data), channel.location.clone());
            if let Some((app, data)) = channel.cdr.dialled_by.take() {
                (channel.cdr.last_app, channel.cdr.last_data) = (app, data);
            }
            self.finish_cdr(id);
            let Some(channel) = self.get_mut(id) else { return };
            (channel.cdr.last_app, channel.cdr.last_data) = (dialling.0, dialling.1);
            channel.cdr.dialed = Some((dialling.2.exten, dialling.2.context));
        }
        if let Some(channel) = self.get_mut(id) {
            channel.cdr.talked_until = None;
            channel.cdr.dialled_by = Some((channel.cdr.last_app, channel.cdr.last_data.clone()));
        }
    }
}

/// Whether records are written of the channel: not of one that was dialled and does nothing else.
fn has_record(channel: &Channel) -> bool {
    calls(channel) || channel.cdr.own
}
/// Whether the channel called, or runs a dialplan.
fn calls(channel: &Channel) -> bool {
    !channel.outgoing || channel.has_pbx
}

/// When the current record ends: when party A ceased to talk, if nothing else has come of it since, and if what the
/// dialplan does after that is not to count.
fn end_of(channel: &Channel, settings: &Settings, now: (Instant, i64)) -> (Instant, i64) {
    channel.cdr.talked_until.filter(|_| settings.cdr_end_before_h).unwrap_or(now)
}

/// A disposition as the settings want it told.
fn told(disposition: Disposition, settings: &Settings) -> Disposition {
    match disposition {
        Disposition::Congestion if !settings.cdr_congestion => Disposition::Failed,
        Disposition::Cancel if !settings.cdr_cancel => Disposition::NoAnswer,
        other => other,
    }
}

/// When the current record began.
fn start_of(channel: &Channel) -> (Instant, i64) {
    channel.cdr.start.unwrap_or((channel.created, channel.created_wall))
}

/// Time to bill, and what of it is billed.
fn billing(settings: &Settings, answer: Option<(Instant, i64)>, now: Instant) -> (Duration, u64) {
    let talked = answer.map(|(at, _)| now.since(at)).unwrap_or_default();
    let begun = u64::from(settings.cdr_initiated_seconds && talked.subsec_nanos() > 0);
    (talked, talked.as_secs() + begun)
}

/// A record that ran beside `current`.
fn of_earlier(earlier: EarlierCdr, current: &Cdr, settings: &Settings, (now, _): (Instant, i64)) -> Cdr {
    let (billsec, billed) = billing(settings, earlier.answer, now);
    Cdr {
        start: earlier.start.1,
        answer: earlier.answer.map(|(_, wall)| wall),
        duration: now.since(earlier.start.0),
        billsec,
        billed,
        user_field: earlier.user_field,
        custom: earlier.custom,
        sequence: earlier.sequence,
        ..current.clone()
    }
}

/// The channel's current record, as it is at `now`.
fn record_of(channel: &Channel, settings: &Settings, now: (Instant, i64)) -> Cdr {
    let state = &channel.cdr;
    let (now, wall) = end_of(channel, settings, now);
    let (began, began_wall) = start_of(channel);
    let (billsec, billed) = billing(settings, state.answer, now);
    let (dst, dcontext) = state
        .dialed
        .clone()
        .unwrap_or_else(|| (channel.location.exten.clone(), channel.location.context.clone()));
    Cdr {
        account: state.account.clone().unwrap_or_else(|| channel.account.clone()),
        src: channel.caller.number().to_owned(),
        dst,
        dcontext,
        clid: channel.caller.all(),
        channel: channel.name.to_string(),
        dst_channel: state.dst_name.as_deref().unwrap_or(&state.dst_channel).to_owned(),
        last_app: state.last_app.to_owned(),
        last_data: state.last_data.clone(),
        start: began_wall,
        answer: state.answer.map(|(_, wall)| wall),
        end: wall,
        duration: now.since(began),
        billsec,
        billed,
        disposition: told(state.disposition, settings),
        ama_flags: state.ama_flags,
        uniqueid: channel.uniqueid.to_string(),
        linkedid: channel.linkedid.to_string(),
        user_field: state.user_field.clone(),
        sequence: state.written,
        peer_account: state.peer_account.clone(),
        custom: state.custom.clone(),
    }
}
