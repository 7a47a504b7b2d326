//! The driver as the call core sees it.

use std::cell::Cell;
use std::rc::Rc;

use ::iax2::frame::Control;
use ::iax2::machine::Refused;
use base::{Cause, ChannelId, Digit};
use call::{ChanState, Core, DeviceState, Indication, Request, Tech, Transferring};
use dialplan::{Inherit, Var};

use super::config::Transfer;
use super::leg::{Leg, Stage, Target};
use super::outbound::VARIABLE;
use super::{IaxDriver, PeerState};

/// Longest variable for the other side, bytes: name, `=` and value are one element.
const VARIABLE_BYTES_MAX: usize = 255;

impl IaxDriver {
    /// Says something of a call that the other side has to acknowledge; `false` when it cannot be said.
    fn say(&mut self, core: &Core, channel: ChannelId, control: Control) -> bool {
        let now = core.now;
        let Some((socket, place)) = self.leg_of(core, channel).and_then(|leg| leg.place) else {
            return false;
        };
        let said = self.order(socket, |machine, out| machine.control(now, place, control, out));
        matches!(said, Some(Ok(())))
    }
    /// Connects legs of ours directly whose channels talk to each other, where the configuration allows it.
    pub fn follow_bridges(&mut self, core: &mut Core) {
        let own = |id: &ChannelId| {
            let entry = core.get(*id).filter(|entry| entry.tech == self.tech_index)?;
            Some((entry.handle, self.legs.get(&entry.handle)?))
        };
        let may = |leg: &&Leg| leg.stage == Stage::Up && leg.party.common().transfer != Transfer::No;
        let pairs: Vec<(u64, u64, bool)> = core
            .regrouped()
            .iter()
            .filter_map(own)
            .filter(|(_, leg)| may(leg))
            .filter_map(|(handle, leg)| {
                let bridge = core.get(leg.channel)?.bridge?;
                let [a, b] = core.bridge_members(bridge) else { return None };
                let other = if *a == leg.channel { *b } else { *a };
                let other = core.get(other).filter(|entry| entry.tech == self.tech_index)?.handle;
                let peer = self.legs.get(&other).filter(may)?;
                let both = [leg, peer];
                // What is written down or watched of a call goes on here.
                let watched = both.iter().any(|leg| {
                    core.get(leg.channel).is_none_or(|entry| !entry.monitors.is_empty() || leg.held)
                });
                let native = both.iter().all(|leg| leg.party.common().transfer == Transfer::Yes);
                let fresh = leg.joined != Some(other) && leg.place?.0 == peer.place?.0;
                (fresh && !watched).then_some((handle, other, !native))
            })
            .collect();
        for (a, b, media_only) in pairs {
            if self.legs.get(&a).is_some_and(|leg| leg.joined == Some(b)) {
                continue;
            }
            let places = [a, b].map(|handle| self.legs.get(&handle).and_then(|leg| leg.place));
            if let [Some((socket, one)), Some((_, two))] = places {
                let now = core.now;
                let _ = self.order(socket, |machine, out| machine.join(now, one, two, media_only, out));
            }
            for (own, other) in [(a, b), (b, a)] {
                if let Some(leg) = self.legs.get_mut(&own) {
                    leg.joined = Some(other);
                }
            }
        }
        self.settle(core);
    }
}

impl Tech for IaxDriver {
    fn names(&self) -> &'static [&'static str] {
        &["IAX2", "IAX"]
    }
    fn look_up(&mut self, core: &mut Core, resource: &str) -> Option<Rc<Cell<bool>>> {
        self.look_up_dialled(&Target::parse(resource).host, core.now)
    }
    fn request(&mut self, core: &mut Core, request: &Request) -> Result<ChannelId, Cause> {
        self.request_leg(core, request)
    }
    fn call(&mut self, core: &mut Core, channel: ChannelId) -> Result<(), Cause> {
        let handle = core.get(channel).map(|entry| entry.handle).ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?;
        self.call_leg(core, handle)
    }
    fn indicate(&mut self, core: &mut Core, channel: ChannelId, indication: &Indication) {
        let Some(leg) = self.leg_of(core, channel) else { return };
        let (ringing, up) = (leg.stage == Stage::Ringing, leg.stage == Stage::Up);
        let passes = core.get(channel).is_some_and(|entry| entry.passes_hold);
        let control = match indication {
            Indication::Ringing if ringing => Control::RINGING,
            Indication::Progress if ringing => Control::PROGRESS,
            Indication::Proceeding if ringing => Control::PROCEEDING,
            Indication::Hold if up && passes => Control::HOLD,
            Indication::Unhold if up && passes => Control::UNHOLD,
            Indication::ConnectedLine(party) => {
                if let Some(entry) = core.get_mut(channel) {
                    entry.connected = party.clone();
                }
                return self.tell_connected(core, channel);
            }
            _ => return,
        };
        self.say(core, channel, control);
    }
    fn answer(&mut self, core: &mut Core, channel: ChannelId) {
        let Some(leg) = self.leg_of(core, channel).filter(|leg| leg.stage == Stage::Ringing) else { return };
        leg.stage = Stage::Up;
        if !self.say(core, channel, Control::ANSWER) {
            core.remote_hangup(channel, Cause::NORMAL_TEMPORARY_FAILURE, "IAX2 call is gone");
        }
    }
    fn hangup(&mut self, core: &mut Core, channel: ChannelId, cause: Cause) {
        let Some(handle) = core.get(channel).map(|entry| entry.handle) else { return };
        let Some(leg) = self.legs.remove(&handle) else { return };
        let Some(at) = leg.place else { return };
        self.unplace(at);
        let cause = if cause == Cause::NONE { Cause::NORMAL_CLEARING } else { cause };
        let now = core.now;
        // It may be over this very moment.
        let _ = self.order(at.0, |machine, out| machine.hang_up(now, at.1, cause, out));
    }
    fn send_digit(&mut self, core: &mut Core, channel: ChannelId, digit: Digit, _: u16) -> bool {
        let now = core.now;
        let at = self.leg_of(core, channel).and_then(|leg| leg.place);
        if let Some((socket, place)) = at {
            // Whole digits are what every client understands; how long they sound is the other side's to choose.
            let _ = self.order(socket, |machine, out| machine.digit(now, place, digit, false, out));
        }
        true
    }
    fn send_text(&mut self, core: &mut Core, channel: ChannelId, text: &str) -> bool {
        let now = core.now;
        let Some((socket, place)) = self.leg_of(core, channel).and_then(|leg| leg.place) else {
            return false;
        };
        let sent = self.order(socket, |machine, out| machine.text(now, place, text.as_bytes(), out));
        matches!(sent, Some(Ok(())))
    }
    fn transfer(&mut self, core: &mut Core, channel: ChannelId, target: &str) -> Transferring {
        let now = core.now;
        let Some((socket, place)) = self.leg_of(core, channel).and_then(|leg| leg.place) else {
            return Transferring::Failed;
        };
        let target = target.strip_prefix("IAX2/").unwrap_or(target);
        let (number, context) = match target.split_once('@') {
            Some((number, context)) => (number, Some(context.as_bytes())),
            None => (target, None),
        };
        let sent: Option<Result<(), Refused>> =
            self.order(socket, |machine, out| machine.send_on(now, place, number.as_bytes(), context, out));
        match sent {
            Some(Ok(())) => Transferring::Begun,
            Some(Err(_)) | None => Transferring::Unsupported,
        }
    }
    fn exchanged(&mut self, core: &Core, a: ChannelId, b: ChannelId) {
        for id in [a, b] {
            let own = core.get(id).filter(|entry| entry.tech == self.tech_index);
            if let Some(leg) = own.and_then(|entry| self.legs.get_mut(&entry.handle)) {
                leg.channel = id;
            }
        }
    }
    fn device_state(&self, core: &Core, resource: &str) -> DeviceState {
        let name = resource.split('/').next().unwrap_or(resource);
        let name = name.rsplit_once('@').map_or(name, |(_, name)| name);
        let Some(peer) = self.config.peers.get(name) else { return DeviceState::Invalid };
        let (mut busy, mut ringing, mut held) = (0_u32, 0_u32, 0_u32);
        for leg in self.legs.values().filter(|leg| leg.party.name() == name) {
            match core.get(leg.channel).map(|entry| entry.state) {
                Some(_) if core.is_on_hold(leg.channel) => held += 1,
                Some(ChanState::Ringing) => ringing += 1,
                // Called, and not ringing yet: as free as before.
                Some(ChanState::Down) => {}
                Some(_) => busy += 1,
                None => {}
            }
        }
        let there =
            self.known_address(peer, core.now).is_some() || matches!(peer.host, super::Host::Named(..));
        let answers = !matches!(self.peer_state(peer), PeerState::Unreachable | PeerState::Lagged(_));
        match () {
            () if ringing > 0 && busy > 0 => DeviceState::RingInUse,
            () if busy > 0 => DeviceState::InUse,
            () if ringing > 0 => DeviceState::Ringing,
            () if held > 0 => DeviceState::OnHold,
            () if there && answers => DeviceState::NotInUse,
            () => DeviceState::Unavailable,
        }
    }
    fn read(&mut self, core: &mut Core, channel: ChannelId, function: &str, args: &str) -> Option<String> {
        match function {
            "CHANNEL" => self.channel_item(core, channel, args),
            "IAXPEER" => self.peer_item(core, channel, args),
            "IAXVAR" => {
                let sent = self.leg_of(core, channel).and_then(|leg| {
                    leg.variables.iter().find(|(name, _)| name == args).map(|(_, value)| value.clone())
                });
                let own = format!("{VARIABLE}{args})");
                let set = core.get(channel)?.vars.get_name(&own).map(str::to_owned);
                Some(set.or(sent).unwrap_or_default())
            }
            _ => None,
        }
    }
    fn write(
        &mut self,
        core: &mut Core,
        channel: ChannelId,
        function: &str,
        args: &str,
        value: &str,
    ) -> bool {
        let fits = args.len() + value.len() < VARIABLE_BYTES_MAX && !args.contains(['=', ')']);
        let Some(entry) = core.get_mut(channel).filter(|_| function == "IAXVAR" && fits) else {
            return false;
        };
        entry.vars.set(Var::named(&format!("{VARIABLE}{args})")), value, Inherit::Always)
    }
}

impl IaxDriver {
    /// `CHANNEL(item)`.
    fn channel_item(&mut self, core: &Core, channel: ChannelId, args: &str) -> Option<String> {
        let leg = self.leg_of(core, channel)?;
        match args.trim() {
            "peerip" | "recvip" => Some(leg.remote.map(|remote| remote.ip().to_string()).unwrap_or_default()),
            "peername" => Some(leg.party.name().to_owned()),
            "secure_signaling" | "secure_media" => {
                let (socket, place) = leg.place?;
                let look = self.order(socket, |machine, _| machine.look(place))??;
                Some(if look.encrypted { "1" } else { "" }.to_owned())
            }
            _ => None,
        }
    }
    /// `IAXPEER(peer[,item])`; `CURRENTCHANNEL` is whom this channel talks to.
    fn peer_item(&mut self, core: &Core, channel: ChannelId, args: &str) -> Option<String> {
        let (name, item) = args.split_once(',').unwrap_or((args, "ip"));
        if name == "CURRENTCHANNEL" {
            let remote = self.leg_of(core, channel).and_then(|leg| leg.remote);
            return Some(remote.map(|remote| remote.ip().to_string()).unwrap_or_default());
        }
        let Some(peer) = self.config.peers.get(name.trim()).cloned() else { return Some(String::new()) };
        let live = self.peers.get(&peer.name);
        let formats = || peer.common.formats.iter().map(|format| format.name());
        Some(match item.trim() {
            "ip" => self.known_address(&peer, core.now).map(|at| at.ip().to_string()).unwrap_or_default(),
            "port" => self.known_address(&peer, core.now).map(|at| at.port().to_string()).unwrap_or_default(),
            "status" => self.peer_state(&peer).text(),
            "mailbox" => peer.mailboxes.join(","),
            "context" => super::show::contexts(&peer, self.config.users.get(&peer.name)),
            "expire" => {
                let left = live.and_then(|live| live.expires_at()).map(|at| at.since(core.now).as_secs());
                left.map_or_else(|| "-1".to_owned(), |left| left.to_string())
            }
            "dynamic" => if matches!(peer.host, super::Host::Dynamic(_)) { "yes" } else { "no" }.to_owned(),
            "callerid_name" => peer.common.caller.name().to_owned(),
            "callerid_num" => peer.common.caller.number().to_owned(),
            "codecs" => formats().collect::<Vec<_>>().join(","),
            item => match item.strip_prefix("codec[").and_then(|rest| rest.strip_suffix(']')) {
                Some(at) => at.parse().ok().and_then(|at| formats().nth(at)).unwrap_or_default().to_owned(),
                None => return None,
            },
        })
    }
}
