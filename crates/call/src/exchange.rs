//! Two channels change places: how an attended transfer, or an INVITE that replaces a call, comes out.
//!
//! What runs on a channel (a bridge, a Dial that rings, a conference, an application) knows it by its [`ChannelId`] and
//! goes on undisturbed. What the channel is (its name, its caller, its account, its way to the phone, its media stream)
//! moves to the other id. So whoever is transferred takes the exact place of the transferer, whatever that place is.

use base::{Cause, ChannelId, Command, PlayEnd};
use std::mem::swap;
use std::rc::Rc;

use dialplan::{Inherit, Var};

use crate::{
    Advance, CelKind, ChanEvent, ChanState, Channel, Core, Indication, Level, Location, Notice, Request,
    Shard,
};

/// An exchange that a driver has asked for; the shard carries it out at its next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Whose place is taken.
    pub place: ChannelId,
    /// Who takes it.
    pub newcomer: ChannelId,
    /// Other channels that end with it.
    pub leaving: Vec<ChannelId>,
    /// No story runs on the newcomer: what is left of it is ended outright.
    pub is_fresh: bool,
    /// Whoever talks to the place goes into the newcomer's bridge, as watchers are told; its story goes on.
    pub mirrored: bool,
    /// The place rings, and is answered by that; nothing happens when it does not ring any more.
    pub answers: bool,
    /// What watchers are told once it is done.
    pub notice: Option<Notice>,
    /// Why those who leave are let go.
    pub cause: Cause,
}

/// Somebody who is found at an extension takes a seat among several: how one of a conference is transferred, who has no
/// peer that could be sent. The shard carries it out at its next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandIn {
    /// Whose seat is taken.
    pub place: ChannelId,
    /// Where whoever takes it is found.
    pub to: Location,
    /// Number under which the call to him is followed ([`Channel::advance_watch`]).
    pub watch: Option<u64>,
    /// What the dialplan there is to know.
    pub variables: Vec<(String, String)>,
    /// A phone has asked for it.
    pub external: bool,
}

/// Two places of one party hear each other from here on, through a pair of Local channels that sit there in its stead: how
/// an attended transfer comes out between conferences, of which neither is one party that could be sent. The shard carries
/// it out at its next turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coupling {
    /// The transferer's channel that asks for it, and its other one; the first sits in a conference.
    pub places: [ChannelId; 2],
}

impl Core {
    /// Asks for two places to be coupled; nothing happens when either is empty by then.
    pub fn request_coupling(&mut self, coupling: Coupling) {
        self.couplings.push(coupling);
    }
    /// Asks for somebody to take a seat; nothing happens when it is empty by then.
    pub fn request_stand_in(&mut self, stand_in: StandIn) {
        self.stand_ins.push(stand_in);
    }
    /// Asks for an exchange; nothing happens when either channel is gone by then.
    pub fn request_exchange(&mut self, exchange: Exchange) {
        self.exchanges.push(exchange);
    }

    /// Whether somebody is about to take the place of this channel: that was accepted, and is not undone by what comes
    /// before the shard's next turn. Whoever sends a call on may hang up in the same breath.
    fn is_to_be_taken(&self, id: ChannelId) -> bool {
        self.exchanges.iter().any(|exchange| exchange.place == id)
            || self.stand_ins.iter().any(|stand_in| stand_in.place == id)
            || self.couplings.iter().any(|coupling| coupling.places.contains(&id))
    }
    /// Keeps the end of a call for after the exchange that it would have overtaken.
    pub(crate) fn end_after_exchange(&mut self, id: ChannelId, cause: Cause, source: &str) -> bool {
        let waits = self.is_to_be_taken(id);
        if waits {
            self.late_ends.push((id, cause, source.to_owned()));
        }
        waits
    }
    /// What was to be done with places has been tried: where it was done the one who left is gone already, elsewhere the
    /// call ends as it was to.
    fn end_late(&mut self, tried: &[(ChannelId, bool)]) {
        for (id, cause, source) in std::mem::take(&mut self.late_ends) {
            match tried.iter().find(|(place, _)| *place == id) {
                Some((_, true)) => {}
                Some((_, false)) => self.remote_hangup(id, cause, &source),
                None => self.late_ends.push((id, cause, source)),
            }
        }
    }

    /// Changes the places of two channels.
    fn exchange(&mut self, place: ChannelId, newcomer: ChannelId, mirrored: bool) {
        let streams = |core: &Self| (stream(core, place), stream(core, newcomer));
        let (left, came) = streams(self);
        // What either of them plays or hears ends; who waits for that hears of it.
        for stream in [left, came].into_iter().flatten() {
            self.media(Command::StopPlay { stream });
        }
        self.exchange_conference(place, left, came);
        let held = self.get(place).is_some_and(|channel| channel.held);
        let enters_app = self.tell_apps(place, newcomer);
        if !self.swap_channels(place, newcomer) {
            return;
        }
        if enters_app {
            self.log_event_with(CelKind::AppStart, place, |core, event| {
                event.app = core.get(place).map_or("", |channel| channel.told_app);
            });
        }
        self.stasis_takes_places(place, newcomer);
        let is_at_place = |core: &Self| core.get(place).is_some_and(|channel| channel.bridge.is_none());
        if enters_app && is_at_place(self) {
            self.tell_entered(place, newcomer);
        }
        if mirrored && self.tell_mirrored(place, newcomer) {
            // Each has talked to whom it has talked to; who is there now is told.
            let connected = [place, newcomer].map(|id| self.get(id).map(|channel| channel.connected.clone()));
            if let [Some(here), Some(there)] = connected {
                for (id, party) in [(place, there), (newcomer, here)] {
                    self.get_mut(id).into_iter().for_each(|channel| channel.connected = party.clone());
                }
            }
        } else {
            self.tell_bridges(place, newcomer);
        }
        self.parking_swapped(place);
        self.stasis_exchanged(place, newcomer);
        for id in [place, newcomer] {
            self.tell_kept_digits(id);
            self.regroup(id);
        }
        let Some((bridge, state, play)) = self.get(place).map(|c| (c.bridge, c.state, c.last_play)) else {
            return;
        };
        if self.conferences.of(place).is_none()
            && let Some(bridge) = bridge
        {
            for id in [place, newcomer] {
                self.part_streams(id);
            }
            let others: Vec<ChannelId> =
                self.bridge_members(bridge).iter().copied().filter(|member| *member != place).collect();
            for other in others {
                self.join_streams(place, other);
                self.hold_anew(other);
            }
        }
        if bridge.is_none() {
            self.push_event(place, ChanEvent::Played { play, end: PlayEnd::Stopped, offset: 0 });
        }
        match (held, self.get(place).is_some_and(|channel| channel.held)) {
            (true, false) => self.push_event(place, ChanEvent::Unhold),
            (false, true) => self.push_event(place, ChanEvent::Hold),
            (true, true) | (false, false) => {}
        }
        // Who is up and takes the place of somebody who heard it ring by signalling hears it ring by a tone.
        let heard_ringing =
            self.get(newcomer).is_some_and(|c| c.state == ChanState::Ring && c.is_told_ringing);
        if heard_ringing && state == ChanState::Up {
            self.ring_inside(place);
        }
    }

    /// Who goes on holding is heard to hold by whoever comes; watchers know of it already.
    fn hold_anew(&mut self, id: ChannelId) {
        let Some(channel) = self.get_mut(id).filter(|c| c.held) else { return };
        if channel.events.len() + 2 > crate::channel::EVENTS_MAX {
            return;
        }
        channel.events.extend([ChanEvent::Unhold, ChanEvent::Hold]);
        if let Some(task) = channel.waiter {
            self.woken.push(task);
        }
    }

    /// Ringing as a tone, until the channel is bridged.
    fn ring_inside(&mut self, id: ChannelId) {
        let Some((zone, format, stream)) =
            self.get(id).and_then(|c| Some((c.tone_zone.clone(), c.format, c.stream?)))
        else {
            return;
        };
        if let Some(clip) = self.services.library.tone(&zone, "ring", format) {
            let play = self.next_play(id);
            self.media(Command::Play { stream, play, clip, offset: 0 });
            if let Some(channel) = self.get_mut(id) {
                channel.rings_inside = true;
            }
        }
    }

    /// The conference that the place is in hears the newcomer's stream instead.
    fn exchange_conference(
        &mut self,
        place: ChannelId,
        left: Option<base::StreamId>,
        came: Option<base::StreamId>,
    ) {
        let Some(conference) = self.conferences.of(place) else { return };
        let Some(member) = self.conference_mixing(place) else { return };
        let (room, mixing) = (conference.room, conference.profile.mixing());
        if let Some(stream) = came {
            self.media(Command::Part { stream });
            self.media(Command::Enter { stream, room, mixing, member });
        }
        if let Some(stream) = left {
            self.media(Command::Part { stream });
        }
    }

    /// What the channels are changes ids; what runs on them stays.
    fn swap_channels(&mut self, a: ChannelId, b: ChannelId) -> bool {
        let before = self.counted(a) + self.counted(b);
        let Some(mut first) = self.take_channel(a) else { return false };
        let Some(second) = self.get_mut(b) else {
            self.put_channel(a, first);
            return false;
        };
        swap(&mut *first, second);
        keep_story(&mut first, second);
        let names = [(&first.name, a)].map(|(name, id)| (name.clone(), id));
        let streams = [(first.stream, a)];
        self.put_channel(a, first);
        for (name, id) in names {
            self.rename(name, id);
        }
        let (name, stream) =
            self.get(b).map(|c| (c.name.clone(), c.stream)).unwrap_or_else(|| (Rc::from(""), None));
        self.rename(name, b);
        for (stream, id) in streams.into_iter().chain([(stream, b)]) {
            if let Some(stream) = stream {
                self.stream_belongs_to(stream, id);
            }
        }
        // A party that was called and runs a dialplan from here on has a record of its own.
        if self.get(a).is_some_and(|c| c.has_pbx && c.outgoing && c.answered.is_some()) {
            self.cdr_own(a);
        }
        let after = self.counted(a) + self.counted(b);
        self.recount(before, after);
        true
    }

    /// The newcomer enters the bridge of its place, its former owner leaves that bridge, and nobody is left in the
    /// newcomer's own.
    fn tell_bridges(&mut self, place: ChannelId, newcomer: ChannelId) {
        self.leave_former(place, newcomer);
        if let Some(bridge) = self.get(place).and_then(|channel| channel.bridge) {
            let instead_of = self.get(newcomer).map(|channel| channel.uniqueid.clone());
            self.forget_peers(newcomer);
            self.notice(|core| {
                let mut bridge = core.bridge_snapshot(bridge)?;
                bridge.count = bridge.count.saturating_sub(1);
                Some(Notice::BridgeLeave { bridge, channel: core.snapshot(newcomer)? })
            });
            self.link_bridge(bridge);
            self.cdr_replaced(bridge, place, newcomer);
            self.notice(|core| {
                let (bridge, channel) = (core.bridge_snapshot(bridge)?, core.snapshot(place)?);
                Some(Notice::BridgeEnter { bridge, channel, instead_of })
            });
            self.log_bridge(CelKind::BridgeEnter, bridge, place);
            self.log_bridge(CelKind::BridgeExit, bridge, newcomer);
            self.bridge_changed_anew(bridge);
        }
    }
    /// The other one at the place leaves its bridge and enters that of the newcomer instead of whoever was in it, whose
    /// bridge goes on under the id of the one that was left. `false` when these are no two bridges of two.
    fn tell_mirrored(&mut self, place: ChannelId, newcomer: ChannelId) -> bool {
        let bridge = |core: &Self, id| core.get(id).and_then(|channel| channel.bridge);
        let (Some(kept), Some(left)) = (bridge(self, place), bridge(self, newcomer)) else { return false };
        let other = |core: &Self, bridge, id| match core.bridge_members(bridge) {
            &[a, b] => Some(if a == id { b } else { a }),
            _ => None,
        };
        let (Some(comer), Some(goer)) = (other(self, kept, place), other(self, left, newcomer)) else {
            return false;
        };
        self.exchange_bridges(kept, left);
        let leaves = |core: &mut Self, bridge, id, beside| {
            core.forget_peers(id);
            core.notice(|core| {
                let mut bridge = core.bridge_snapshot(bridge)?;
                bridge.count = bridge.count.saturating_sub(1);
                Some(Notice::BridgeLeave { bridge, channel: core.snapshot(id)? })
            });
            core.log_bridge_beside(CelKind::BridgeExit, (bridge, id), &[beside]);
        };
        self.notice(|core| {
            let mut bridge = core.bridge_snapshot(left)?;
            bridge.count = bridge.count.saturating_sub(1);
            Some(Notice::BridgeLeave { bridge, channel: core.snapshot(comer)? })
        });
        self.log_bridge_beside(CelKind::BridgeExit, (left, comer), &[newcomer]);
        leaves(self, kept, goer, place);
        let instead_of = self.get(goer).map(|channel| channel.uniqueid.clone());
        self.notice(|core| {
            let (bridge, channel) = (core.bridge_snapshot(kept)?, core.snapshot(comer)?);
            Some(Notice::BridgeEnter { bridge, channel, instead_of })
        });
        self.log_bridge(CelKind::BridgeEnter, kept, comer);
        self.forget_transfer(comer);
        self.link_bridge(kept);
        self.forget_peers(newcomer);
        self.forget_member(left, goer);
        self.bridge_is_left(left);
        self.bridge_changed_anew(kept);
        true
    }
    /// The halves of a Local channel are gone from between two: what each has talked to is over, and a pair begins.
    fn cdr_rejoined(&mut self, place: ChannelId, newcomer: ChannelId) {
        let bridge = |id| self.get(id).and_then(|channel| channel.bridge);
        let (kept, left) = (bridge(place), bridge(newcomer));
        if let Some(left) = left {
            self.cdr_leave(left, place);
        }
        if let Some(kept) = kept {
            self.cdr_replaced(kept, place, newcomer);
        }
    }
    /// Whoever has picked a call up is the line that was called, from here on; who was to answer is none any more.
    fn show_picked_up(&mut self, place: ChannelId, newcomer: ChannelId) {
        if let Some(channel) = self.get_mut(newcomer) {
            (channel.own_app, channel.app) = ("", "");
            channel.app_data.clear();
        }
        let data = crate::core::notices::OUTGOING.to_owned();
        if let Some(application) = self.get(place).map(|channel| channel.app).filter(|app| !app.is_empty()) {
            self.notice_of(place, |channel| Notice::NewExten { channel, application, data });
        }
    }
    /// The newcomer leaves the bridge that it has been in, if it has been in one.
    fn leave_former(&mut self, place: ChannelId, newcomer: ChannelId) {
        let Some(bridge) = self.get(newcomer).and_then(|channel| channel.bridge) else { return };
        self.forget_member(bridge, newcomer);
        self.cdr_leave(bridge, place);
        self.notice(|core| {
            let (bridge, channel) = (core.bridge_snapshot(bridge)?, core.snapshot(place)?);
            Some(Notice::BridgeLeave { bridge, channel })
        });
        self.log_bridge(CelKind::BridgeExit, bridge, place);
    }

    /// Whoever was at the newcomer's own place has been transferred: its story, which ends now, is to know whereto.
    fn note_sent(&mut self, place: ChannelId, newcomer: ChannelId) {
        let Some(there) = self.get(place) else { return };
        let into = match there.bridge {
            Some(bridge) => (true, crate::cel::bridge_name(bridge)),
            None => (false, there.app.to_string()),
        };
        if let Some(channel) = self.get_mut(newcomer) {
            channel.sent_into = Some(into);
        }
    }

    /// Watchers hear which application the newcomer has come into, and that its former owner is an outgoing line now, which ends.
    fn tell_entered(&mut self, place: ChannelId, newcomer: ChannelId) {
        let Some(here) = self.get(place).filter(|here| !matches!(here.app, "" | "Dial" | "Queue")) else {
            return;
        };
        let (application, data) = (here.app, here.app_data.clone());
        self.notice_of(place, |channel| Notice::NewExten { channel, application, data });
        let (application, data) = ("AppDial", crate::core::notices::OUTGOING.to_owned());
        self.notice_of(newcomer, |channel| Notice::NewExten { channel, application, data });
    }

    /// Whoever takes a place goes on in the application that runs there, whose story stays; what ran at its own place is
    /// over for both.
    fn tell_apps(&mut self, place: ChannelId, newcomer: ChannelId) -> bool {
        let told = |core: &Self, id| core.get(id).map_or("", |channel| channel.told_app);
        let (here, there) = (told(self, place), told(self, newcomer));
        for (id, app) in [(place, here), (newcomer, if there == here { "" } else { there })] {
            if !app.is_empty() {
                self.log_event_with(CelKind::AppEnd, id, |_, event| event.app = app);
            }
        }
        if let Some(channel) = self.get_mut(newcomer) {
            channel.told_app = "";
        }
        !here.is_empty() && here != there
    }
}

fn stream(core: &Core, id: ChannelId) -> Option<base::StreamId> {
    core.get(id).and_then(|channel| channel.stream)
}

/// Gives back to each id what belongs to the story that runs on it.
fn keep_story(a: &mut Channel, b: &mut Channel) {
    swap(&mut a.id, &mut b.id);
    // Of two who run no dialplan each keeps the place and the application that it is seen in.
    if a.has_pbx || b.has_pbx {
        swap(&mut a.location, &mut b.location);
        swap(&mut a.app, &mut b.app);
        swap(&mut a.app_data, &mut b.app_data);
    }
    swap(&mut a.rung_at, &mut b.rung_at);
    swap(&mut a.told_app, &mut b.told_app);
    swap(&mut a.last_play, &mut b.last_play);
    swap(&mut a.sounding, &mut b.sounding);
    swap(&mut a.hears_music, &mut b.hears_music);
    swap(&mut a.rights, &mut b.rights);
    swap(&mut a.features, &mut b.features);
    swap(&mut a.keeps_digits, &mut b.keeps_digits);
    swap(&mut a.bridge, &mut b.bridge);
    // Who is at the other end of the conversation.
    swap(&mut a.connected, &mut b.connected);
    swap(&mut a.goto, &mut b.goto);
    swap(&mut a.keeper, &mut b.keeper);
    swap(&mut a.wanted, &mut b.wanted);
    swap(&mut a.consulted, &mut b.consulted);
    swap(&mut a.agi, &mut b.agi);
    swap(&mut a.has_pbx, &mut b.has_pbx);
    swap(&mut a.absolute_deadline, &mut b.absolute_deadline);
    swap(&mut a.digit_timeout_ms, &mut b.digit_timeout_ms);
    swap(&mut a.response_timeout_ms, &mut b.response_timeout_ms);
    swap(&mut a.events, &mut b.events);
    swap(&mut a.waiter, &mut b.waiter);
    swap(&mut a.hangup, &mut b.hangup);
}

impl Shard {
    /// Carries out the exchanges that drivers have asked for.
    pub(crate) fn exchange_pending(&self) {
        let may_settle = {
            let core = self.core.borrow();
            let is_up = |id: &ChannelId| core.get(*id).is_some_and(|channel| channel.hangup.is_none());
            let is_whole = |exchange: &Exchange| exchange.leaving.iter().all(is_up);
            // Who comes into an application has no story there that would end what it hears.
            let talks = |id| core.get(id).is_some_and(|channel: &Channel| channel.bridge.is_some());
            let settles = |exchange: &Exchange| {
                exchange.mirrored || !exchange.is_fresh && !exchange.answers && !talks(exchange.place)
            };
            core.exchanges.iter().any(settles)
                && core.late_ends.is_empty()
                && core.exchanges.iter().all(is_whole)
        };
        if may_settle {
            // Music for those who were held ends before they are somewhere else. A transferer who has hung up already must not
            // end what is to be carried out first.
            self.poll_ready();
        }
        let wanted = std::mem::take(&mut self.core.borrow_mut().exchanges);
        for exchange in wanted {
            let place = exchange.place;
            let done = self.exchange(exchange);
            self.core.borrow_mut().end_late(&[(place, done)]);
        }
    }

    /// Calls those who are to take seats: each by a Local channel, which sits there from the first moment on.
    pub(crate) fn seat_pending(&self) {
        let wanted = std::mem::take(&mut self.core.borrow_mut().stand_ins);
        for stand_in in wanted {
            let (place, watch) = (stand_in.place, stand_in.watch);
            let done = self.seat(stand_in).is_some();
            self.core.borrow_mut().end_late(&[(place, done)]);
            if !done {
                let mut core = self.core.borrow_mut();
                core.advances.extend(watch.map(|token| (token, Advance::Failed(Cause::SWITCH_CONGESTION))));
                core.request_hangup(place, Cause::NORMAL_CLEARING);
            }
        }
    }
    fn seat(&self, wanted: StandIn) -> Option<()> {
        let StandIn { place, to, watch, variables, external } = wanted;
        let (formats, caller) = {
            let core = self.core.borrow();
            let channel = core.get(place).filter(|channel| channel.hangup.is_none())?;
            (channel.formats, channel.caller.clone())
        };
        let resource = format!("{}@{}", to.exten, to.context);
        let (requestor, caller) = (Some(place), Some(caller));
        let request = Request { resource, requestor, caller, formats, variables, ..Request::default() };
        let newcomer = self.request("Local", &request).ok()?;
        let notice = {
            let mut core = self.core.borrow_mut();
            if let Some(channel) = core.get_mut(newcomer) {
                channel.advance_watch = watch;
            }
            // What was there before: it is told once it is done.
            let transferred = |core: &Core| {
                let bridge = core.get(place)?.bridge?;
                let other = match core.bridge_members(bridge) {
                    &[a, b] => core.snapshot(if a == place { b } else { a }),
                    _ => None,
                };
                Some(Notice::BlindTransfer {
                    transferer: core.snapshot(place).map(Box::new)?,
                    transferee: other.map(Box::new),
                    replacement: core.snapshot(newcomer).map(Box::new),
                    bridge: core.bridge_snapshot(bridge)?,
                    members: core.bridge_uniqueids(bridge),
                    external,
                    to: (to.context.clone(), to.exten.clone()),
                })
            };
            transferred(&core)
        };
        let (leaving, cause) = (Vec::new(), Cause::NORMAL_CLEARING);
        self.exchange(Exchange {
            place,
            newcomer,
            leaving,
            is_fresh: true,
            mirrored: false,
            answers: false,
            notice,
            cause,
        });
        let called = self.with_tech(place, |tech, core| tech.call(core, place))?;
        called.is_err().then(|| self.core.borrow_mut().request_hangup(place, Cause::NORMAL_CLEARING));
        Some(())
    }

    /// Couples the places of those who have asked for it.
    pub(crate) fn couple_pending(&self) {
        let wanted = std::mem::take(&mut self.core.borrow_mut().couplings);
        for Coupling { places } in wanted {
            let done = self.couple(places).is_some();
            self.core.borrow_mut().end_late(&places.map(|place| (place, done)));
            if !done {
                let mut core = self.core.borrow_mut();
                core.log(
                    Level::Warning,
                    "bridge",
                    "two calls of a transferer cannot be coupled: no room, or one is over",
                );
            }
        }
    }
    fn couple(&self, places: [ChannelId; 2]) -> Option<()> {
        let tech = self.tech_named("Local")?;
        let (by, notice, halves) = {
            let mut core = self.core.borrow_mut();
            let [first, second] = places.map(|id| core.snapshot(id).map(Box::new));
            let (transferer, second) = (first?, second?);
            let goes_on = |id| core.get(id).is_some_and(|channel: &Channel| channel.hangup.is_none());
            if !places.into_iter().all(goes_on) {
                return None;
            }
            let by = transferer.name.to_string();
            let bridges = places.map(|id| core.bridge_around(id));
            let notice = move |transferee, link| Notice::AttendedTransfer {
                transferer,
                second: Some(second),
                transferee,
                target: None,
                link,
                bridges,
                stays: None,
                external: false,
            };
            (by, notice, tech.borrow_mut().pair(&mut core, "_attended@transfer", places)?)
        };
        for (place, newcomer) in places.into_iter().zip(halves) {
            if let Some(channel) = self.core.borrow_mut().get_mut(newcomer) {
                channel.vars.set(Var::named("ATTENDEDTRANSFER"), &by, Inherit::Never);
            }
            let (leaving, cause) = (Vec::new(), Cause::NORMAL_CLEARING);
            self.exchange(Exchange {
                place,
                newcomer,
                leaving,
                is_fresh: true,
                mirrored: false,
                answers: false,
                notice: None,
                cause,
            });
        }
        let mut core = self.core.borrow_mut();
        let [one, two] = places.map(|id| core.snapshot(id).map(Box::new));
        let notice = match core.get(places[1])?.bridge {
            Some(_) => notice(None, Some((one?, two?))),
            // The second place is an application, which talks to a conference.
            None => notice(two, None),
        };
        core.tell(Some(notice));
        Some(())
    }

    /// Carries one out; whether it was.
    fn exchange(&self, wanted: Exchange) -> bool {
        let Exchange { place, newcomer, leaving, is_fresh, mirrored, answers, notice, cause } = wanted;
        let is_transfer = matches!(notice, Some(Notice::AttendedTransfer { .. }));
        let is_pickup = matches!(notice, Some(Notice::Pickup { .. }));
        let halves = match &notice {
            Some(Notice::LocalOptimizationEnd { first, second, .. }) => {
                Some((first.name.clone(), second.name.clone()))
            }
            _ => None,
        };
        {
            let mut core = self.core.borrow_mut();
            let goes_on = |id| core.get(id).is_some_and(|channel: &Channel| channel.hangup.is_none());
            let is_late = answers && core.get(place).is_some_and(|channel| channel.state == ChanState::Up);
            if !goes_on(place) || !goes_on(newcomer) || is_late {
                drop(core);
                if is_fresh {
                    // Nobody else knows of it.
                    self.finish(newcomer, cause);
                }
                return false;
            }
            // A transfer names the bridges that were; a Local channel is out of the way when the exchange is done.
            if let Some(transfer) = notice.as_ref().filter(|_| is_transfer) {
                core.log_notice(transfer);
            }
            // A party that is picked up is told of as it was.
            if let Some(pickup) = notice.as_ref().filter(|_| is_pickup) {
                core.log_notice(pickup);
            }
            core.exchange(place, newcomer, mirrored);
            if mirrored && halves.is_some() {
                core.cdr_rejoined(place, newcomer);
            }
            if is_pickup {
                core.show_picked_up(place, newcomer);
            }
            if is_transfer && !mirrored {
                core.note_sent(place, newcomer);
            }
            match is_transfer || is_pickup {
                true => core.notice(|_| notice),
                false => core.tell(notice),
            }
            core.stasis_left_places(place, newcomer);
            if answers {
                core.push_event(place, ChanEvent::Answered);
                // Who picks up is the party that was called from here on.
                if let Some(channel) = core.get_mut(place) {
                    channel.cdr.dialled = true;
                }
            }
        }
        self.techs_exchanged(place, newcomer);
        self.tell_parties(place, is_pickup);
        let mut core = self.core.borrow_mut();
        if let Some((first, second)) = halves {
            // The second half hears of it, and its dialplan ends; nobody asks the first one.
            let [first, second] = [first, second].map(|name| core.by_name(&name));
            second.into_iter().for_each(|id| core.end_left_behind(id, cause));
            first.into_iter().for_each(|id| core.request_hangup(id, cause));
            return true;
        }
        for id in leaving {
            if is_transfer {
                core.soft_hangup(id, cause, crate::SoftHangup::Device);
            } else {
                core.request_hangup(id, cause);
            }
        }
        if !is_fresh {
            core.request_hangup(newcomer, cause);
            return true;
        }
        drop(core);
        self.finish(newcomer, cause);
        true
    }

    /// Who talks to whom is another: both sides of a bridge are told by the story that has it, and whoever came into an
    /// application or to somebody who rings hears of who is there.
    /// `knows`: whoever came has known before.
    fn tell_parties(&self, place: ChannelId, knows: bool) {
        let mut core = self.core.borrow_mut();
        let Some(here) = core.get(place) else { return };
        let members = here.bridge.filter(|_| core.conferences.of(place).is_none());
        let members = members.map(|bridge| core.bridge_members(bridge)).unwrap_or_default();
        if let &[a, b] = members {
            let other = if a == place { b } else { a };
            for id in [place, other] {
                let party = core.get(id).map(|channel| channel.caller.clone()).unwrap_or_default();
                core.push_event(id, ChanEvent::ConnectedLine(Box::new(party)));
            }
            return;
        }
        let party = here.connected.clone();
        if party.number.is_some() || party.name.is_some() {
            if !knows {
                core.notice_of(place, Notice::NewConnectedLine);
            }
            drop(core);
            self.indicate(place, &Indication::ConnectedLine(party));
        }
    }
}
