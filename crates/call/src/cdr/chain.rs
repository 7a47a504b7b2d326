//! The chain of records of one channel: which of them are open, and what begins and closes them.
//!
//! What the channel runs goes into its open record until that has a party B: from there on the record names the application
//! that has dialled. The end of the attempt closes it, or either of the two leaving the bridge. What the channel does next is a
//! new record. Who is B in somebody's record is told of there: its own record without B is closed.

use std::rc::Rc;

use base::{BridgeId, Cause, ChannelId, Instant};

use super::{AmaFlags, Cdr, CdrFork, Disposition};
use crate::{Channel, Core, Settings};

/// Most records of a channel that are open at once: a dialplan that forks in a loop closes the oldest.
pub const CDR_FORKS_MAX: usize = 32;
/// Most records of a channel that wait for its end: those of one that is called again and again for hours are written
/// before, oldest first.
pub const CDR_CHAIN_MAX: usize = 256;

/// A moment by both clocks.
type Moment = (Instant, i64);

/// How far the attempt to reach party B has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Attempt {
    /// There is none.
    #[default]
    None,
    /// B is called.
    Open,
    /// B has answered.
    Answered,
}

/// Party B.
#[derive(Debug, Clone)]
struct PartyB {
    /// Its channel, whose name stays its own when channels change places.
    name: Rc<str>,
    /// What the record says instead, of one that is known by another name: an agent of a queue.
    shown: Option<Box<str>>,
}

/// A record that is open, or closed and not written.
#[derive(Debug, Clone)]
struct Record {
    sequence: u32,
    start: Moment,
    answer: Option<Moment>,
    party: Option<PartyB>,
    attempt: Attempt,
    /// What is known of how it came out before it is closed.
    disposition: Option<Disposition>,
    /// The bridge that the conversation is in.
    bridge: Option<BridgeId>,
    /// It waits in a parking lot; what ran on the channel before.
    parked: Option<(&'static str, String)>,
    last_app: &'static str,
    last_data: String,
    dst: String,
    dcontext: String,
    user_field: String,
    custom: Vec<(String, String)>,
    peer_account: Option<String>,
    /// It is closed.
    closed: Option<Box<Closed>>,
}

/// What a record was when it was closed.
#[derive(Debug, Clone)]
struct Closed {
    cdr: Cdr,
    is_written: bool,
}

impl Record {
    fn is_open(&self) -> bool {
        self.closed.is_none()
    }
    /// Whether it is about this channel.
    fn is_about(&self, name: &str) -> bool {
        self.party.as_ref().is_some_and(|party| *party.name == *name)
    }
    /// Whether what the channel runs goes into it.
    fn follows(&self) -> bool {
        self.is_open() && self.party.is_none() && self.bridge.is_none() && self.parked.is_none()
    }
    /// Whether it is about nobody in this bridge.
    fn waits_in(&self, bridge: BridgeId) -> bool {
        self.party.is_none() && self.bridge == Some(bridge)
    }
}

/// What a channel keeps for its records while it lives.
#[derive(Debug, Clone, Default)]
pub struct CdrState {
    /// `CDR_PROP(disable)`: records that are closed meanwhile are not written.
    pub disabled: bool,
    /// `CDR_PROP(party_a)`: it is party A, whoever is older.
    pub is_party_a: bool,
    /// It was dialled on behalf of another channel and does nothing else.
    pub dialled: bool,
    /// What runs on it is a routine beside its dialplan.
    pub in_routine: bool,
    /// When it was brought to another channel that wanted to talk to it: counts as its beginning.
    pub fetched: Option<Instant>,
    /// What it is for.
    pub ama_flags: AmaFlags,
    /// How its first attempt to reach somebody came out, or that one was answered, in the word of the event DialEnd: what
    /// channel event logging says of its end.
    pub dial_status: &'static str,
    /// It comes into the place of another, whose application and extension are not its own.
    replaces: bool,
    /// What ran on it when its records were last looked at.
    ran: (&'static str, String),
    /// What it does from here on is in no record.
    over: bool,
    /// Oldest first.
    chain: Vec<Record>,
}

impl CdrState {
    /// The state a channel begins with.
    pub fn new(settings: &Settings) -> Self {
        Self { disabled: settings.cdr_on_request, ..Self::default() }
    }
    fn open(&mut self) -> impl Iterator<Item = &mut Record> {
        self.chain.iter_mut().filter(|record| record.is_open())
    }
    fn has_open(&self) -> bool {
        self.chain.iter().any(Record::is_open)
    }
    /// Sets a variable of all open records. `None` when they hold as many as they may.
    pub fn set_custom(&mut self, name: &str, value: &str, most: usize) -> Option<()> {
        for record in self.open() {
            let full = record.custom.len() >= most;
            match record.custom.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => value.clone_into(known),
                None if full => return None,
                None => record.custom.push((name.to_owned(), value.to_owned())),
            }
        }
        Some(())
    }
    /// Sets the user field of all open records.
    pub fn set_user_field(&mut self, value: &str) {
        self.open().for_each(|record| value.clone_into(&mut record.user_field));
    }
    /// The user field of the last record.
    pub fn user_field(&self) -> &str {
        self.chain.last().map_or("", |record| &record.user_field)
    }
    /// Says which account party B has, whatever its channel says.
    pub fn set_peer_account(&mut self, value: &str) {
        self.open().for_each(|record| record.peer_account = Some(value.to_owned()));
    }
    /// Says by which name party B is known.
    pub fn show_party(&mut self, name: &str) {
        for party in self.open().filter_map(|record| record.party.as_mut()) {
            party.shown = Some(name.into());
        }
    }
}

impl Core {
    fn cdr_moment(&self) -> Moment {
        (self.now, self.services.wall.now_micros())
    }
    /// Appends a record to the chain of a channel, which has what the last one had of its own.
    pub(crate) fn cdr_begin(&mut self, id: ChannelId) {
        let moment = self.cdr_moment();
        let sequence = self.cdr_sequence;
        let Some(channel) = self.get_mut(id).filter(|channel| !channel.cdr.over) else { return };
        let last = channel.cdr.chain.last();
        let mut record = Record {
            sequence,
            start: if last.is_none() { (channel.created, channel.created_wall) } else { moment },
            answer: channel.answered.map(|_| moment),
            party: None,
            attempt: Attempt::None,
            disposition: None,
            bridge: None,
            parked: None,
            last_app: channel.app,
            last_data: channel.app_data.clone(),
            dst: channel.location.exten.clone(),
            dcontext: channel.location.context.clone(),
            user_field: last.map(|last| last.user_field.clone()).unwrap_or_default(),
            custom: last.map(|last| last.custom.clone()).unwrap_or_default(),
            peer_account: None,
            closed: None,
        };
        let is_elsewhere = channel.cdr.in_routine || channel.cdr.replaces;
        match last {
            Some(last) if is_elsewhere => {
                (record.last_app, record.last_data) = (last.last_app, last.last_data.clone());
                (record.dst, record.dcontext) = (last.dst.clone(), last.dcontext.clone());
            }
            Some(Record { parked: Some((app, data)), .. }) if channel.app.is_empty() => {
                (record.last_app, record.last_data) = (app, data.clone());
            }
            _ => {}
        }
        channel.cdr.chain.push(record);
        channel.cdr.ran = (channel.app, channel.app_data.clone());
        self.cdr_sequence = self.cdr_sequence.wrapping_add(1);
        self.cdr_bound(id);
    }
    /// Keeps the chain of a channel within its bounds.
    fn cdr_bound(&mut self, id: ChannelId) {
        let Some(channel) = self.get(id) else { return };
        let chain = &channel.cdr.chain;
        if chain.iter().filter(|record| record.is_open()).count() > CDR_FORKS_MAX {
            let oldest = chain.iter().position(Record::is_open);
            self.cdr_close(id, |at, _| Some(at) == oldest);
        }
        let settings = self.settings.clone();
        let Some(channel) = self.get_mut(id) else { return };
        let chain = &mut channel.cdr.chain;
        if chain.len() > CDR_CHAIN_MAX && chain.first().is_some_and(|record| !record.is_open()) {
            let record = chain.remove(0);
            self.cdrs.extend(written(record, &settings));
        }
    }
    /// Closes the open records of a channel that `which` wants, by their places in the chain.
    fn cdr_close(&mut self, id: ChannelId, which: impl Fn(usize, &Record) -> bool) {
        let moment = self.cdr_moment();
        let Some(channel) = self.get(id) else { return };
        let wanted = |(at, record): (usize, &Record)| (record.is_open() && which(at, record)).then_some(at);
        let places: Vec<usize> = channel.cdr.chain.iter().enumerate().filter_map(wanted).collect();
        for at in places {
            let Some(channel) = self.get(id) else { return };
            let Some(record) = channel.cdr.chain.get(at) else { continue };
            let disposition = record.disposition.unwrap_or_else(|| outcome(channel, record));
            let cdr = self.cdr_of(channel, record, disposition, moment);
            let has_record = record.party.is_some() || !channel.cdr.dialled;
            let closed = Closed { cdr, is_written: has_record && !channel.cdr.disabled };
            if let Some(record) = self.get_mut(id).and_then(|channel| channel.cdr.chain.get_mut(at)) {
                record.closed = Some(Box::new(closed));
            }
        }
    }
    /// The record as it would be if it ended at this moment.
    fn cdr_of(
        &self,
        channel: &Channel,
        record: &Record,
        disposition: Disposition,
        (now, wall): Moment,
    ) -> Cdr {
        let settings = &self.settings;
        let party = record.party.as_ref();
        let other = party.and_then(|party| self.by_name(&party.name)).and_then(|id| self.get(id));
        let (billsec, billed) = billing(settings, record.answer, now);
        let mut custom = record.custom.clone();
        let mut user_field = record.user_field.clone();
        if let Some(theirs) = other.and_then(|other| other.cdr.chain.last()) {
            for (name, value) in &theirs.custom {
                if !custom.iter().any(|(known, _)| known == name) {
                    custom.push((name.clone(), value.clone()));
                }
            }
            if !theirs.user_field.is_empty() {
                if !user_field.is_empty() {
                    user_field.push(';');
                }
                user_field.push_str(&theirs.user_field);
            }
        }
        let account_of = |other: &Channel| other.account.clone();
        let shown = |party: &PartyB| party.shown.as_deref().unwrap_or(&party.name).to_owned();
        Cdr {
            account: channel.account.clone(),
            src: channel.caller.number().to_owned(),
            dst: record.dst.clone(),
            dcontext: record.dcontext.clone(),
            clid: clid(&channel.caller),
            channel: channel.name.to_string(),
            dst_channel: party.map(shown).unwrap_or_default(),
            last_app: record.last_app.to_owned(),
            last_data: record.last_data.clone(),
            start: record.start.1,
            answer: record.answer.map(|(_, wall)| wall),
            end: wall,
            duration: now.since(record.start.0),
            billsec,
            billed,
            disposition: told(disposition, settings),
            ama_flags: channel.cdr.ama_flags,
            uniqueid: channel.uniqueid.to_string(),
            linkedid: channel.linkedid.to_string(),
            tenant: channel.tenant.to_string(),
            peer_tenant: other.map(|other| other.tenant.to_string()).unwrap_or_default(),
            user_field,
            sequence: record.sequence,
            peer_account: record.peer_account.clone().or_else(|| other.map(account_of)).unwrap_or_default(),
            custom,
        }
    }
    /// The channel's last record as it is at this moment.
    pub fn current_cdr(&self, id: ChannelId) -> Option<Cdr> {
        let channel = self.get(id)?;
        let record = channel.cdr.chain.last()?;
        Some(match &record.closed {
            Some(closed) => closed.cdr.clone(),
            None => self.cdr_of(channel, record, record.disposition.unwrap_or_default(), self.cdr_moment()),
        })
    }

    /// The channel runs something: so says its open record, or, if it `begins` there, a new one when there is none.
    pub fn cdr_step(&mut self, id: ChannelId, begins: bool) {
        let Some(channel) = self.get(id).filter(|channel| !channel.cdr.over) else { return };
        let (app, data) = (channel.app, channel.app_data.clone());
        let (dst, dcontext) = (channel.location.exten.clone(), channel.location.context.clone());
        let is_news = begins && (channel.cdr.ran.0, &channel.cdr.ran.1) != (app, &data);
        if is_news {
            // Whoever was asked for and has answered is not talked to.
            self.cdr_close(id, |_, record| record.attempt == Attempt::Answered && record.bridge.is_none());
        }
        let Some(channel) = self.get_mut(id) else { return };
        if !channel.cdr.has_open() && is_news {
            return self.cdr_begin(id);
        }
        channel.cdr.ran = (app, data.clone());
        for record in channel.cdr.open().filter(|record| record.follows()) {
            record.last_app = app;
            data.clone_into(&mut record.last_data);
            dst.clone_into(&mut record.dst);
            dcontext.clone_into(&mut record.dcontext);
        }
    }
    /// Whether what the channel runs next begins a record.
    pub fn cdr_waits(&self, id: ChannelId) -> bool {
        let waits = |record: &Record| !record.is_open() || record.attempt == Attempt::Answered;
        self.get(id).is_some_and(|channel| !channel.cdr.over && channel.cdr.chain.iter().all(waits))
    }
    /// The channel is up.
    pub(crate) fn cdr_answered(&mut self, id: ChannelId) {
        let moment = self.cdr_moment();
        let Some(channel) = self.get_mut(id) else { return };
        for record in channel.cdr.open() {
            record.answer.get_or_insert(moment);
        }
    }
    /// A program calls a channel that it has made: unless it talks to somebody there is no record of it.
    pub fn cdr_placed(&mut self, id: ChannelId) {
        if let Some(channel) = self.get_mut(id) {
            channel.cdr.dialled = true;
        }
    }
    /// A channel that was dialled does more than that from here on: it has records of its own.
    pub fn cdr_own(&mut self, id: ChannelId) {
        if self.get(id).is_none_or(|channel| !channel.cdr.dialled) {
            return;
        }
        self.cdr_close(id, |_, record| record.party.is_none());
        if let Some(channel) = self.get_mut(id) {
            channel.cdr.dialled = false;
        }
        self.cdr_begin(id);
    }

    /// `caller` calls `dest`.
    pub fn cdr_dial(&mut self, caller: ChannelId, dest: ChannelId) {
        let Some(called) = self.get_mut(dest) else { return };
        called.cdr.dialled = true;
        let name = called.name.clone();
        if self.settings.cdr_ignore_dialling {
            return;
        }
        let takes = |record: &Record| record.party.is_none() && record.parked.is_none();
        if !self.get_mut(caller).is_some_and(|channel| channel.cdr.open().any(|record| takes(record))) {
            self.cdr_begin(caller);
        }
        let Some(channel) = self.get_mut(caller) else { return };
        for record in channel.cdr.open().filter(|record| takes(record)) {
            record.party = Some(PartyB { name: name.clone(), shown: None });
            record.attempt = Attempt::Open;
        }
    }
    /// That attempt is over.
    pub fn cdr_dialled(&mut self, caller: ChannelId, dest: ChannelId, disposition: Disposition) {
        let Some(name) = self.get(dest).map(|dest| dest.name.clone()) else { return };
        let Some(channel) = self.get_mut(caller) else { return };
        let is_it = |record: &Record| record.attempt == Attempt::Open && record.is_about(&name);
        for record in channel.cdr.open().filter(|record| is_it(record)) {
            record.disposition = Some(disposition);
            if disposition == Disposition::Answered {
                record.attempt = Attempt::Answered;
            }
        }
        if disposition != Disposition::Answered {
            self.cdr_close(caller, |_, record| is_it(record));
        }
    }

    /// The channel waits for somebody who will come to it: what it was about until then is over.
    pub fn cdr_waits_for_party(&mut self, id: ChannelId) {
        self.cdr_close(id, |_, record| record.party.is_none());
    }
    /// The channel is in a bridge from here on, with all who are there.
    pub(crate) fn cdr_enter(&mut self, bridge: BridgeId, id: ChannelId) {
        let others: Vec<(ChannelId, Rc<str>)> = self
            .bridge_members(bridge)
            .iter()
            .filter(|member| **member != id)
            .filter_map(|member| Some((*member, self.get(*member)?.name.clone())))
            .collect();
        let is_here = |record: &Record| others.iter().any(|(_, name)| record.is_about(name));
        // Somebody else has taken the place of whom it has called.
        self.cdr_close(id, |_, record| {
            record.attempt != Attempt::None && record.bridge.is_none() && !is_here(record)
        });
        let Some(channel) = self.get_mut(id) else { return };
        for record in channel.cdr.open().filter(|record| record.bridge.is_none()) {
            (record.bridge, record.parked) = (Some(bridge), None);
        }
        for (other, _) in others {
            let (a, b) = if self.cdr_is_party_a(id, other) { (id, other) } else { (other, id) };
            self.cdr_pair(bridge, a, b);
        }
    }
    /// Whether a channel that enters a bridge is party A towards another that is there.
    fn cdr_is_party_a(&self, id: ChannelId, other: ChannelId) -> bool {
        let (Some(one), Some(two)) = (self.get(id), self.get(other)) else { return false };
        let has = |of: &Channel, party: &Channel| {
            of.cdr.chain.iter().any(|record| record.is_open() && record.is_about(&party.name))
        };
        let born = |of: &Channel| (of.cdr.fetched.unwrap_or(of.created), of.id);
        match (has(one, two), has(two, one)) {
            (true, false) => return true,
            (false, true) => return false,
            (true, true) | (false, false) => {}
        }
        match (one.cdr.dialled, two.cdr.dialled) {
            // When both were called, who comes to the other is the one who wants something.
            (false | true, true) if one.cdr.dialled <= two.cdr.dialled => true,
            (true, _) => false,
            (false, _) if one.cdr.is_party_a != two.cdr.is_party_a => one.cdr.is_party_a,
            (false, _) => born(one) <= born(two),
        }
    }
    /// Two are in a bridge: a record of `a` is about `b`.
    fn cdr_pair(&mut self, bridge: BridgeId, a: ChannelId, b: ChannelId) {
        let Some(name) = self.get(b).map(|b| b.name.clone()) else { return };
        let moment = self.cdr_moment();
        let Some(channel) = self.get_mut(a) else { return };
        let over = channel.cdr.over;
        if channel.cdr.open().any(|record| record.is_about(&name) && record.bridge == Some(bridge)) {
            return;
        }
        if !channel.cdr.open().any(|record| record.waits_in(bridge)) {
            // Who was B of another becomes A of somebody who came later.
            match channel.cdr.chain.last_mut().filter(|last| last.waits_in(bridge) && !over) {
                Some(last) => last.closed = None,
                None => {
                    self.cdr_begin(a);
                    if let Some(last) = self.get_mut(a).and_then(|a| a.cdr.chain.last_mut()) {
                        last.bridge = Some(bridge);
                    }
                }
            }
        }
        let Some(channel) = self.get_mut(a) else { return };
        let is_up = channel.answered.is_some();
        for record in channel.cdr.open().filter(|record| record.waits_in(bridge)) {
            record.party = Some(PartyB { name: name.clone(), shown: None });
            record.answer = record.answer.or_else(|| is_up.then_some(moment));
        }
        self.cdr_close(b, |_, record| record.party.is_none());
    }
    /// The channel has left a bridge: so have the conversations that it had there.
    pub(crate) fn cdr_leave(&mut self, bridge: BridgeId, id: ChannelId) {
        self.cdr_close(id, |_, record| record.bridge == Some(bridge));
        let Some(name) = self.get(id).map(|channel| channel.name.clone()) else { return };
        for other in self.bridge_members(bridge).to_vec() {
            self.cdr_close(other, |_, record| record.bridge == Some(bridge) && record.is_about(&name));
        }
    }
    /// A channel is in a bridge from here on in the place of another, which has left it.
    pub(crate) fn cdr_replaced(&mut self, bridge: BridgeId, id: ChannelId, former: ChannelId) {
        if !self.bridge_holds(bridge) {
            self.cdr_leave(bridge, former);
            let replaces = |core: &mut Self, is| {
                if let Some(channel) = core.get_mut(id) {
                    channel.cdr.replaces = is;
                }
            };
            replaces(self, true);
            self.cdr_enter(bridge, id);
            replaces(self, false);
        }
    }
    /// The channel is sent elsewhere while it talks: so says the record of the conversation.
    pub fn cdr_sent(&mut self, id: ChannelId, exten: &str, context: &str) {
        let Some(channel) = self.get_mut(id) else { return };
        for record in channel.cdr.open() {
            exten.clone_into(&mut record.dst);
            context.clone_into(&mut record.dcontext);
        }
    }
    /// The channel waits in a space of a parking lot.
    pub(crate) fn cdr_parked(&mut self, id: ChannelId, space: &str) {
        if self.get(id).is_some_and(|channel| !channel.cdr.has_open()) {
            self.cdr_begin(id);
        }
        let Some(channel) = self.get_mut(id) else { return };
        for record in channel.cdr.open().filter(|record| record.party.is_none()) {
            let before = (record.last_app, std::mem::replace(&mut record.last_data, space.to_owned()));
            (record.last_app, record.parked) = ("Park", Some(before));
        }
    }
    /// It waits there no more.
    pub(crate) fn cdr_unparked(&mut self, id: ChannelId) {
        self.cdr_close(id, |_, record| record.parked.is_some());
    }

    /// Nothing that the channel does from here on is in a record.
    pub fn cdr_over(&mut self, id: ChannelId) {
        self.cdr_close(id, |_, _| true);
        if let Some(channel) = self.get_mut(id) {
            channel.cdr.over = true;
        }
    }
    /// The channel is gone: its records are written.
    pub(crate) fn cdr_end(&mut self, id: ChannelId) {
        self.cdr_close(id, |_, _| true);
        let settings = self.settings.clone();
        let Some(channel) = self.get_mut(id) else { return };
        let chain = std::mem::take(&mut channel.cdr.chain);
        self.cdrs.extend(chain.into_iter().filter_map(|record| written(record, &settings)));
    }

    /// Begins another record of a channel, as `ForkCDR` does.
    pub fn fork_cdr(&mut self, id: ChannelId, fork: CdrFork) {
        let moment = self.cdr_moment();
        let sequence = self.cdr_sequence;
        let Some(channel) = self.get(id).filter(|channel| !channel.cdr.over) else { return };
        let Some(mut copy) = channel.cdr.chain.last().cloned() else { return };
        (copy.sequence, copy.closed) = (sequence, None);
        self.cdr_sequence = self.cdr_sequence.wrapping_add(1);
        if fork.end {
            self.cdr_close(id, |_, _| true);
        }
        let Some(channel) = self.get_mut(id) else { return };
        let is_up = channel.answered.is_some();
        if fork.restart {
            copy.start = moment;
        }
        if (fork.answer || fork.restart) && is_up {
            copy.answer = Some(moment);
        }
        if !fork.keep {
            copy.custom.clear();
        }
        channel.cdr.chain.push(copy);
        self.cdr_bound(id);
    }
    /// Begins the open records of a channel anew, as `ResetCDR` does: from this moment, without variables unless `keep`.
    pub fn reset_cdr(&mut self, id: ChannelId, keep: bool) {
        let moment = self.cdr_moment();
        let Some(channel) = self.get_mut(id) else { return };
        for record in channel.cdr.open() {
            record.start = moment;
            record.answer = record.answer.map(|_| moment);
            if !keep {
                record.custom.clear();
                record.user_field.clear();
            }
        }
    }
}

/// How a record came out of which nothing is known: answered when the channel is, else by the cause of its end.
fn outcome(channel: &Channel, record: &Record) -> Disposition {
    if record.answer.is_some() {
        return Disposition::Answered;
    }
    match channel.hangup.unwrap_or(channel.last_cause) {
        Cause::USER_BUSY => Disposition::Busy,
        Cause::NORMAL_CIRCUIT_CONGESTION => Disposition::Congestion,
        Cause::NONE | Cause::NO_ROUTE_DESTINATION | Cause::SUBSCRIBER_ABSENT => Disposition::Failed,
        _ => Disposition::NoAnswer,
    }
}

/// A closed record, when it is to be written: one without a second party only if it was answered, unless the settings want
/// those, too.
fn written(record: Record, settings: &Settings) -> Option<Cdr> {
    let Closed { cdr, is_written } = *record.closed?;
    let counts = match cdr.disposition {
        Disposition::Answered | Disposition::Congestion => true,
        Disposition::NoAnswer | Disposition::Cancel | Disposition::Failed | Disposition::Busy => {
            !cdr.dst_channel.is_empty() || settings.cdr_unanswered
        }
    };
    (is_written && counts && settings.cdr_enabled).then_some(cdr)
}

/// A disposition as the settings want it told.
fn told(disposition: Disposition, settings: &Settings) -> Disposition {
    match disposition {
        Disposition::Congestion if !settings.cdr_congestion => Disposition::Failed,
        Disposition::Cancel if !settings.cdr_cancel => Disposition::NoAnswer,
        other => other,
    }
}

/// Time to bill, and what of it is billed.
fn billing(settings: &Settings, answer: Option<Moment>, now: Instant) -> (core::time::Duration, u64) {
    let talked = answer.map(|(at, _)| now.since(at)).unwrap_or_default();
    let begun = u64::from(settings.cdr_initiated_seconds && talked.subsec_nanos() > 0);
    (talked, talked.as_secs() + begun)
}

/// The caller as records have it: `"NAME" <NUMBER>`, whatever there is of both.
fn clid(caller: &crate::PartyId) -> String {
    let name = caller.name().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{name}\" <{}>", caller.number())
}
