//! `Local/exten@context`: two channels back to back inside the process. What the first is told the second hears.
//!
//! The first half (`;1`) belongs to whoever dialled it; the second (`;2`) runs the dialplan at `exten@context`. Their
//! media streams have no socket and are tied to each other.

use std::collections::{HashMap, HashSet};

use base::{
    Cause, ChannelId, Command, Digit, Direction, DtmfMode, FormatId, Latch, MAX_RX_PAYLOADS, Plan, RxPayload,
    StreamId,
};
use call::{
    ChanEvent, ChanState, Core, DeviceState, Exchange, Indication, Location, NewChannel, Notice, Reach,
    Request, Tech, Transferring,
};

/// The variable with the result of a dialplan's last Dial.
const DIAL_STATUS: &str = "DIALSTATUS";
/// The variable of the first half with that of the second one.
const LOCAL_STATUS: &str = "CHANLOCALSTATUS";

/// Milliseconds a frame that crosses between the halves.
const PTIME_MS: u8 = 20;

/// The driver. One per shard.
#[derive(Default)]
pub struct LocalDriver {
    tech_index: usize,
    /// Each half and its other.
    others: HashMap<ChannelId, ChannelId>,
    started: Vec<(ChannelId, Location)>,
    /// First halves that somebody wants out of the way, until they can go.
    unwanted: Vec<ChannelId>,
    /// First halves that are to stay where they are (`/n`), until they are called.
    fixed: HashSet<ChannelId>,
    optimizations: u32,
    /// [`Core::entries`] when it was looked last who can go.
    looked_at: u64,
    /// Pairs that connect conferences.
    couplings: Vec<[ChannelId; 2]>,
    /// First halves that are somebody else's from before they rang; watchers hear so once they do.
    renamed: HashSet<ChannelId>,
}

impl LocalDriver {
    /// The index that [`Shard::add_tech`](call::Shard::add_tech) gave this driver.
    pub fn set_tech_index(&mut self, index: usize) {
        self.tech_index = index;
    }
    /// Second halves whose dialplan is to be started, and where.
    pub fn take_started(&mut self) -> Vec<(ChannelId, Location)> {
        std::mem::take(&mut self.started)
    }

    /// Takes halves out of the way that somebody wants there, as far as both sides talk by now; true when some go. Pairs that
    /// connect a conference with nobody else in it end.
    pub fn optimize(&mut self, core: &mut Core) -> bool {
        let uncoupled = self.uncouple(core);
        if std::mem::replace(&mut self.looked_at, core.entries) == core.entries {
            return uncoupled;
        }
        let unwanted = std::mem::take(&mut self.unwanted);
        let before = self.optimizations;
        for first in unwanted {
            let Some(second) = self.others.get(&first).copied() else { continue };
            let talks = core.get(first).is_some_and(|half| half.bridge.is_some());
            if !talks || !self.connect_directly(core, first, second) {
                self.unwanted.push(first);
            }
        }
        uncoupled || self.optimizations != before
    }
    /// Ends pairs that connect a conference with nobody else in it.
    fn uncouple(&mut self, core: &mut Core) -> bool {
        self.couplings.retain(|pair| self.others.contains_key(&pair[0]));
        let couplings = &self.couplings;
        let is_half = |id: ChannelId| couplings.iter().flatten().any(|half| *half == id);
        let is_empty = |half: &&ChannelId| {
            let goes_on = core.get(**half).is_some_and(|half| half.hangup.is_none());
            let conference = core.conferences.of(**half).filter(|_| goes_on);
            conference.is_some_and(|room| room.members.iter().all(|member| is_half(member.channel)))
        };
        let over: Vec<ChannelId> = couplings.iter().flatten().filter(is_empty).copied().collect();
        for half in &over {
            core.request_hangup(*half, Cause::NORMAL_CLEARING);
        }
        !over.is_empty()
    }
    /// One of the two that a pair connects takes the place of the half that talks to the other one.
    fn connect_directly(&mut self, core: &mut Core, first: ChannelId, second: ChannelId) -> bool {
        let found = mover(core, first, second).map(|mover| (first, mover));
        let Some((place, mover)) = found.or_else(|| Some((second, mover(core, second, first)?))) else {
            return false;
        };
        let Some(bridge) = core.get(place).and_then(|half| half.bridge) else { return false };
        // Watchers see whoever talks to the first half take the place of the second one, whichever story goes on.
        let source = match core.bridge_members(bridge) {
            &[a, b] if place == first => {
                if a == first {
                    b
                } else {
                    a
                }
            }
            _ => mover,
        };
        let snapshots = (core.snapshot(first), core.snapshot(second), core.snapshot(source));
        let (Some(one), Some(two), Some(source)) = snapshots else { return false };
        let id = self.optimizations;
        self.optimizations = self.optimizations.wrapping_add(1);
        let (one, two, source) = (Box::new(one), Box::new(two), Box::new(source));
        core.tell(Some(Notice::LocalOptimizationBegin {
            first: one.clone(),
            second: two.clone(),
            source,
            id,
        }));
        core.request_exchange(Exchange {
            place,
            newcomer: mover,
            leaving: vec![if place == first { second } else { first }],
            is_fresh: false,
            mirrored: place == first,
            answers: false,
            notice: Some(Notice::LocalOptimizationEnd { first: one, second: two, id }),
            cause: Cause::NORMAL_CLEARING,
        });
        true
    }

    fn half(
        &self,
        core: &mut Core,
        name: String,
        request: &Request,
        place: &Location,
        first: Option<ChannelId>,
    ) -> Option<ChannelId> {
        let formats =
            if request.formats.is_empty() { [FormatId::SLIN].into_iter().collect() } else { request.formats };
        let second = first.is_some();
        let from = request.requestor.and_then(|id| core.get(id));
        let (account, language, music_class) =
            from.map(|c| (c.account.clone(), c.language.clone(), c.music_class.clone())).unwrap_or_default();
        // Two channels cannot have the same one.
        let second_id =
            request.other_uniqueid.clone().or_else(|| Some(format!("{};2", request.uniqueid.as_ref()?)));
        core.create(NewChannel {
            base_name: name.clone(),
            exact_name: Some(name),
            tech: self.tech_index,
            state: if second { ChanState::Ring } else { ChanState::Down },
            outgoing: !second,
            account,
            language,
            music_class,
            formats,
            location: place.clone(),
            // Both halves belong to one call, also when nobody asked for it (originated).
            linked_to: request.requestor.or(first),
            uniqueid: if second { second_id } else { request.uniqueid.clone() },
            ..NewChannel::default()
        })
    }
    /// Makes the other half and ties both; without room for that the first is gone as well.
    fn back_to_back(
        &mut self,
        core: &mut Core,
        first: ChannelId,
        (name, request, place): (&str, &Request, &Location),
    ) -> Option<ChannelId> {
        let format = core.get(first).map_or(FormatId::SLIN, |c| c.format);
        let second = self.half(core, format!("{name};2"), request, place, Some(first));
        let streams = Self::tie(core, format);
        let (Some(second), Some((a, b))) = (second, streams) else {
            for id in [Some(first), second].into_iter().flatten() {
                core.discard(id);
            }
            if let Some((a, b)) = streams {
                core.media(Command::Close { stream: a });
                core.media(Command::Close { stream: b });
            }
            return None;
        };
        core.set_stream(first, a, format);
        core.set_stream(second, b, format);
        self.others.insert(first, second);
        self.others.insert(second, first);
        Some(second)
    }
    /// Opens both streams and ties them; `None` when the media plane has no room.
    fn tie(core: &mut Core, format: FormatId) -> Option<(StreamId, StreamId)> {
        let a = core.services.media.open_internal(plan(format)).ok()?;
        let Ok(b) = core.services.media.open_internal(plan(format)) else {
            core.media(Command::Close { stream: a });
            return None;
        };
        core.media(Command::Tie { a, b });
        Some((a, b))
    }
}

/// A stream without a peer on the network: one format, both ways.
fn plan(format: FormatId) -> Plan {
    let mut rx = [None; MAX_RX_PAYLOADS];
    if let Some(first) = rx.first_mut() {
        *first = Some(RxPayload::Audio(0, format));
    }
    Plan {
        remote: None,
        remote_rtcp: None,
        latch: Latch::Strict,
        relearn: false,
        format,
        payload: 0,
        ptime_ms: PTIME_MS,
        wishes: base::Wishes::default(),
        rx,
        dtmf: DtmfMode::Signalling,
        direction: Direction::SendRecv,
        ssrc: 0,
        first_sequence: 0,
        first_timestamp: 0,
        jitter_max_ms: 0,
        rtcp_interval_ms: 0,
        rtp_timeout_ms: 0,
        keepalive_ms: 0,
        marking: base::Marking::default(),
        keys: None,
        picture: base::PictureRequest::default(),
    }
}

/// Who talks to `half` and may take the place of `place`, which talks to somebody, too: it has no dialplan of its own to go
/// on with, and nothing is written down of the halves.
fn mover(core: &Core, place: ChannelId, half: ChannelId) -> Option<ChannelId> {
    let talks = |id: ChannelId| {
        let channel =
            core.get(id).filter(|channel| channel.monitors.is_empty() && channel.hangup.is_none())?;
        match (channel.bridge, core.bridge_members(channel.bridge?)) {
            (Some(bridge), &[a, b]) if core.conferences.of(id).is_none() => {
                Some((bridge, if a == id { b } else { a }))
            }
            _ => None,
        }
    };
    let ((here, _), (there, mover)) = (talks(place)?, talks(half)?);
    let goes_on = core.get(mover).is_some_and(|channel| !channel.has_pbx && channel.hangup.is_none());
    (here != there && goes_on).then_some(mover)
}

/// `exten@context[/options]`; without a context it is `default`.
fn place_of(resource: &str) -> Location {
    let address = resource.rsplit_once('/').map_or(resource, |(address, _)| address);
    let (exten, context) = address.rsplit_once('@').unwrap_or((address, "default"));
    Location { context: context.to_owned(), exten: exten.to_owned(), priority: 1 }
}

impl Tech for LocalDriver {
    fn names(&self) -> &'static [&'static str] {
        &["Local"]
    }
    fn request(&mut self, core: &mut Core, request: &Request) -> Result<ChannelId, Cause> {
        let place = place_of(&request.resource);
        let caller = request.caller.as_ref().map(|caller| caller.number().to_owned()).unwrap_or_default();
        if (core.reach)(core, &place.context, &place.exten, &caller) != Reach::Whole {
            return Err(Cause::UNALLOCATED);
        }
        let serial = core.next_serial();
        let name = format!("Local/{}@{}-{serial:08x}", place.exten, place.context);
        let first =
            self.half(core, format!("{name};1"), request, &place, None).ok_or(Cause::SWITCH_CONGESTION)?;
        self.back_to_back(core, first, (&name, request, &place)).ok_or(Cause::SWITCH_CONGESTION)?;
        let options = request.resource.rsplit_once('/').map_or("", |(_, options)| options);
        if options.contains('n') {
            self.fixed.insert(first);
        }
        if let Some(channel) = core.get_mut(first) {
            if let Some(caller) = request.shown_caller() {
                channel.connected = caller.clone();
            }
            for (variable, value) in &request.variables {
                let (inherit, variable) = dialplan::Inherit::strip(variable);
                channel.vars.set(dialplan::Var::named(variable), value, inherit);
            }
        }
        Ok(first)
    }
    fn other_half(&self, channel: ChannelId) -> Option<ChannelId> {
        self.others.get(&channel).copied()
    }
    fn call(&mut self, core: &mut Core, channel: ChannelId) -> Result<(), Cause> {
        let second = *self.others.get(&channel).ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?;
        let optimizes = !self.fixed.remove(&channel);
        if optimizes && !self.unwanted.contains(&channel) {
            self.unwanted.push(channel);
        }
        let (vars, redirecting, connected, own, accounts, left, watch) = core
            .get_mut(channel)
            .map(|c| {
                let (connected, own, accounts) =
                    (c.connected.clone(), c.caller.clone(), (c.peer_account.clone(), c.account.clone()));
                let (left, watch) = ((c.forwards, c.hops), c.advance_watch.take());
                (c.vars.clone(), c.redirecting.clone(), connected, own, accounts, left, watch)
            })
            .ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?;
        let told = vars.iter().filter(|_| core.watched);
        let told: Vec<(String, String)> = told
            .map(|(inherit, name, value)| (format!("{}{name}", inherit.prefix()), value.to_owned()))
            .collect();
        let place = core.get(second).map(|c| c.location.clone()).ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?;
        for (variable, value) in told {
            core.notice(|core| {
                Some(Notice::VarSet { channel: Some(core.snapshot(second)?), variable, value })
            });
        }
        if let Some(other) = core.get_mut(second) {
            (other.vars, other.redirecting) = (vars, redirecting);
            other.connected = own;
            (other.forwards, other.hops) = left;
            // Who follows the call follows what the other half comes to.
            other.advance_watch = watch;
            if connected.number.is_some() || connected.name.is_some() {
                other.caller = connected;
            }
            // What is one's own here is the other party's there.
            (other.account, other.peer_account) = accounts;
            other.ani = other.caller.number.clone();
        }
        core.notice_of(second, Notice::NewCallerId);
        core.notice_of(second, Notice::NewConnectedLine);
        core.notice(|core| {
            let (first, second) = (core.snapshot(channel)?, core.snapshot(second)?);
            Some(Notice::LocalBridge { first: Box::new(first), second: Box::new(second), optimizes })
        });
        self.started.push((second, place));
        Ok(())
    }
    fn indicate(&mut self, core: &mut Core, channel: ChannelId, indication: &Indication) {
        let Some(&other) = self.others.get(&channel) else { return };
        match indication {
            Indication::Ringing => {
                core.set_state(other, ChanState::Ringing);
                if self.renamed.remove(&other) {
                    core.notice_of(other, Notice::NewCallerId);
                }
                core.push_event(other, ChanEvent::Ringing);
            }
            Indication::Progress => core.push_event(other, ChanEvent::Progress),
            Indication::Proceeding => core.push_event(other, ChanEvent::Proceeding),
            Indication::Hold => core.push_event(other, ChanEvent::Hold),
            Indication::Unhold => core.push_event(other, ChanEvent::Unhold),
            Indication::ConnectedLine(party) => {
                let Some(channel) = core.get_mut(other) else { return };
                let is_another = channel.caller != *party;
                channel.caller = party.clone();
                if channel.state == ChanState::Down {
                    self.renamed.insert(other);
                } else {
                    core.notice_of(other, Notice::NewCallerId);
                }
                if is_another {
                    core.push_event(other, ChanEvent::ConnectedLine(Box::new(party.clone())));
                }
            }
            Indication::Redirecting(redirecting) => {
                core.push_event(other, ChanEvent::Redirecting(redirecting.clone()));
            }
        }
    }
    fn answer(&mut self, core: &mut Core, channel: ChannelId) {
        if let Some(&first) = self.others.get(&channel) {
            core.answered(first);
            if self.renamed.remove(&first) {
                core.notice_of(first, Notice::NewCallerId);
            }
            core.push_event(first, ChanEvent::Answered);
        }
    }
    fn hangup(&mut self, core: &mut Core, channel: ChannelId, cause: Cause) {
        let Some(other) = self.others.remove(&channel) else { return };
        for half in [channel, other] {
            self.renamed.remove(&half);
        }
        self.fixed.remove(&channel);
        self.others.remove(&other);
        let waiting = self.started.iter().position(|(id, _)| *id == other);
        // Who talks to the first half hears how dialling from the second one has come out.
        let is_second = core.get(channel).is_some_and(|half| !half.outgoing);
        let status = core.get(channel).and_then(|half| half.vars.get_name(DIAL_STATUS).map(str::to_owned));
        if let Some(status) = status.filter(|status| is_second && !status.is_empty()) {
            core.set_variable(other, LOCAL_STATUS, &status);
        }
        core.remote_hangup(other, cause, call::BY_OTHER_HALF);
        // A second half that was never called has no story to end it.
        let never_called = core.get(other).is_some_and(|c| !c.outgoing && !c.has_pbx) && waiting.is_none();
        if never_called {
            core.discard(other);
        }
    }
    fn send_digit(&mut self, _: &mut Core, _: ChannelId, _: Digit, _: u16) -> bool {
        // The tied streams carry it.
        false
    }
    fn send_text(&mut self, core: &mut Core, channel: ChannelId, text: &str) -> bool {
        let Some(&other) = self.others.get(&channel) else { return false };
        core.push_event(other, ChanEvent::Text(call::Text::plain(text)));
        true
    }
    fn pass_text(&mut self, core: &mut Core, channel: ChannelId, text: &call::Text) -> bool {
        let Some(&other) = self.others.get(&channel) else { return false };
        core.push_event(other, ChanEvent::Text(Box::new(text.clone())));
        true
    }
    fn advise_charge(
        &mut self,
        core: &mut Core,
        channel: ChannelId,
        advice: &call::charge::Advice,
    ) -> Result<(), &'static str> {
        let &other = self.others.get(&channel).ok_or("the call is over")?;
        core.push_event(other, ChanEvent::Charge(Box::new(advice.clone())));
        Ok(())
    }
    fn transfer(&mut self, _: &mut Core, _: ChannelId, _: &str) -> Transferring {
        Transferring::Unsupported
    }
    fn optimize_away(&mut self, core: &mut Core, channel: ChannelId) -> bool {
        let Some(&other) = self.others.get(&channel) else { return false };
        // The first half is the one that was dialled.
        let first = if core.get(channel).is_some_and(|half| half.outgoing) { channel } else { other };
        if !self.unwanted.contains(&first) {
            self.unwanted.push(first);
        }
        self.looked_at = core.entries.wrapping_sub(1);
        self.optimize(core);
        true
    }
    fn pair(&mut self, core: &mut Core, name: &str, places: [ChannelId; 2]) -> Option<[ChannelId; 2]> {
        let place = place_of(name);
        let name = format!("Local/{name}-{:08x}", core.next_serial());
        let of = |core: &Core, id| {
            let from = core.get(id)?;
            let (requestor, caller) = (Some(id), Some(from.caller.clone()));
            Some((
                Request { requestor, caller, formats: from.formats, ..Request::default() },
                from.caller.clone(),
            ))
        };
        let [(one, party), (two, _)] = [of(core, places[0])?, of(core, places[1])?];
        let first = self.half(core, format!("{name};1"), &one, &place, None)?;
        let second = self.back_to_back(core, first, (&name, &two, &place))?;
        if let Some(channel) = core.get_mut(first) {
            channel.caller = party;
        }
        for half in [first, second] {
            core.answered(half);
        }
        self.couplings.push([first, second]);
        core.notice(|core| {
            let (first, second) = (core.snapshot(first)?, core.snapshot(second)?);
            let (first, second) = (Box::new(first), Box::new(second));
            Some(Notice::LocalBridge { first, second, optimizes: false })
        });
        Some([first, second])
    }
    fn ear(&mut self, core: &mut Core, on: ChannelId, uniqueid: Option<String>) -> Option<[ChannelId; 2]> {
        let from = core.get(on)?;
        let request = Request {
            requestor: Some(on),
            caller: Some(from.caller.clone()),
            formats: [from.format].into_iter().collect(),
            uniqueid,
            ..Request::default()
        };
        let (name, place) = (format!("Snoop/{}", from.uniqueid), Location::default());
        let name = format!("{name}-{:08x}", core.next_serial());
        let first = self.half(core, name.clone(), &request, &place, None)?;
        let second = self.back_to_back(core, first, (&name, &request, &place))?;
        for half in [first, second] {
            core.answered(half);
        }
        Some([first, second])
    }
    fn exchanged(&mut self, _: &Core, a: ChannelId, b: ChannelId) {
        let moved = |id: ChannelId| match id {
            id if id == a => b,
            id if id == b => a,
            id => id,
        };
        self.others = self.others.drain().map(|(half, other)| (moved(half), moved(other))).collect();
        let coupled = self.couplings.iter_mut().flatten();
        for id in self.started.iter_mut().map(|(id, _)| id).chain(&mut self.unwanted).chain(coupled) {
            *id = moved(*id);
        }
    }
    fn device_state(&self, core: &Core, resource: &str) -> DeviceState {
        let place = place_of(resource);
        let prefix = format!("Local/{}@{}-", place.exten, place.context);
        let busy = self.others.keys().filter_map(|id| core.get(*id)).any(|c| c.name.starts_with(&prefix));
        match (core.reach)(core, &place.context, &place.exten, "") {
            Reach::Whole if busy => DeviceState::InUse,
            Reach::Whole => DeviceState::NotInUse,
            Reach::Partial | Reach::None | Reach::Separator(_) => DeviceState::Invalid,
        }
    }
    fn read(&mut self, _: &mut Core, _: ChannelId, _: &str, _: &str) -> Option<String> {
        None
    }
    fn write(&mut self, _: &mut Core, _: ChannelId, _: &str, _: &str, _: &str) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_address_is_extension_context_and_options() {
        for (resource, exten, context) in [
            ("100@sales", "100", "sales"),
            ("100@sales/n", "100", "sales"),
            ("100", "100", "default"),
            ("a@b@ctx/nj", "a@b", "ctx"),
        ] {
            let place = place_of(resource);
            assert_eq!((place.exten.as_str(), place.context.as_str()), (exten, context), "{resource}");
        }
    }
}
