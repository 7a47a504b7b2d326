//! Calls of ours: what a dial string says, where that is, and what the other side is told.

use core::net::SocketAddr;
use core::time::Duration;
use std::rc::Rc;

use ::iax2::Secret;
use ::iax2::frame::Auth;
use ::iax2::machine::{Dial, Refused};
use base::{Cause, ChannelId, FormatId, FormatSet, Instant};
use call::{ChanState, Core, Level, NewChannel, Request};

use super::config::{Host, Transfer};
use super::hosts::Found;
use super::inbound::{PASSTHROUGH, music};
use super::leg::{Leg, Party, Stage, Target};
use super::peers::PORT;
use super::{At, IaxDriver};

/// Longest wait for the DNS before a call is given up.
const NAME_WAIT: Duration = Duration::from_secs(10);
/// Why a call ends that there is no secret and no key for.
const UNPROVEN: &str = "that there is no secret or key for";
/// How `IAXVAR(name)` is kept on a channel: no dialplan can write such a name, and every channel below inherits it.
pub(super) const VARIABLE: &str = "IAXVAR(";

impl Target {
    /// `[user[:secret]@]peer[:port][/exten[@context][/options]]`; the secret may be a key's name in brackets.
    pub(super) fn parse(resource: &str) -> Self {
        let mut parts = resource.splitn(3, '/');
        let (place, number) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let options = parts.next().unwrap_or_default();
        let (account, place) = place.rsplit_once('@').unwrap_or(("", place));
        let (username, secret) = account.split_once(':').unwrap_or((account, ""));
        let key = secret.strip_prefix('[').and_then(|key| key.strip_suffix(']'));
        let (host, port) = split_port(place);
        let (exten, context) = number.split_once('@').unwrap_or((number, ""));
        Self {
            host: host.to_owned(),
            port,
            username: username.to_owned(),
            secret: (!secret.is_empty() && key.is_none()).then(|| Secret::new(secret.as_bytes())),
            key: key.unwrap_or_default().to_owned(),
            exten: exten.to_owned(),
            context: context.to_owned(),
            auto_answer: options.contains('a'),
        }
    }
}

/// `host`, `host:port`, `[2001:db8::1]:port`; a port of 0 is none.
fn split_port(place: &str) -> (&str, u16) {
    if let Some((host, rest)) = place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, rest.strip_prefix(':').and_then(|port| port.parse().ok()).unwrap_or(0));
    }
    match place.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, port.parse().unwrap_or(0)),
        _ => (place, 0),
    }
}

/// The formats to offer: those that the caller can use without transcoding first, in its order.
fn offered(own: FormatSet, caller: FormatSet) -> FormatSet {
    let shared = caller.iter().filter(|format| own.contains(*format));
    shared.chain(own.iter()).collect()
}

impl IaxDriver {
    /// Where a call goes: `Ok(None)` while the DNS is asked.
    pub(super) fn address(
        &mut self,
        party: &Party,
        target: &Target,
        now: Instant,
    ) -> Result<Option<SocketAddr>, Cause> {
        let (host, port, services) = match party {
            Party::Peer(peer) => match &peer.host {
                Host::Fixed(address) => return Ok(Some(*address)),
                Host::Dynamic(fallback) => {
                    let registered = self.registered_at(peer, now);
                    return registered.or(*fallback).map(Some).ok_or(Cause::SUBSCRIBER_ABSENT);
                }
                Host::Named(host, port, services) => (host.clone(), *port, *services),
                Host::Nowhere => return Err(Cause::SUBSCRIBER_ABSENT),
            },
            Party::User(_) | Party::Bare(_) => (target.host.clone(), PORT, self.config.srv_lookup),
        };
        // Who writes a port means that one.
        let (port, services) = if target.port == 0 { (port, services) } else { (target.port, false) };
        match self.hosts.find(&host, port, services, now) {
            Found::At(address) => Ok(Some(address)),
            Found::Awaited => Ok(None),
            Found::Nowhere => Err(Cause::NO_ROUTE_DESTINATION),
        }
    }
    pub(super) fn request_leg(&mut self, core: &mut Core, request: &Request) -> Result<ChannelId, Cause> {
        let target = Target::parse(&request.resource);
        if target.host.is_empty() {
            return Err(Cause::UNALLOCATED);
        }
        let peer = self.config.peers.get(&*target.host).cloned();
        let party = peer.map_or_else(|| Party::Bare(Rc::new(self.config.defaults.clone())), Party::Peer);
        if !self.is_reachable(&party) {
            return Err(Cause::SUBSCRIBER_ABSENT);
        }
        if let Some(address) = self.address(&party, &target, core.now)?
            && self.socket_for(address, party.common()).is_none()
        {
            return Err(Cause::NO_ROUTE_DESTINATION);
        }
        let name = match &party {
            Party::Peer(peer) => peer.name.to_string(),
            _ => target.host.clone(),
        };
        let common = party.common().clone();
        let formats = offered(common.formats, request.formats);
        let location = call::Location { context: target.context.clone(), ..call::Location::default() };
        let channel = core
            .create(NewChannel {
                base_name: format!("IAX2/{name}"),
                tech: self.tech_index,
                state: ChanState::Down,
                account: common.account.clone(),
                language: common.language.clone(),
                music_class: music(&common.music_class),
                music_suggested: common.music_suggested.clone(),
                parking_lot: common.parking_lot.clone(),
                formats,
                linked_to: request.requestor,
                outgoing: true,
                location,
                uniqueid: request.uniqueid.clone(),
                handle: self.next_leg,
                ..NewChannel::default()
            })
            .ok_or(Cause::SWITCH_CONGESTION)?;
        let leg = Leg {
            channel,
            party,
            stage: Stage::Idle,
            place: None,
            remote: None,
            formats,
            video: self.video_to_offer(core, &common, request.requestor),
            target,
            digit: None,
            variables: Vec::new(),
            held: false,
            told: None,
            joined: None,
        };
        self.legs.insert(self.next_leg, leg);
        self.next_leg += 1;
        if let Some(entry) = core.get_mut(channel) {
            entry.caller = common.caller.clone();
            entry.passes_hold = common.music_class == PASSTHROUGH;
            if let Some(caller) = &request.caller {
                entry.connected = caller.clone();
            }
            for (name, value) in common.set_var.iter().chain(&request.variables) {
                let (inherit, name) = dialplan::Inherit::strip(name);
                entry.vars.set(dialplan::Var::named(name), value, inherit);
            }
        }
        Ok(channel)
    }
    /// Calls, or waits for the DNS.
    pub(super) fn call_leg(&mut self, core: &mut Core, handle: u64) -> Result<(), Cause> {
        let leg = self.legs.get(&handle).ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?;
        let (party, target, stage) = (leg.party.clone(), leg.target.clone(), leg.stage);
        match self.address(&party, &target, core.now)? {
            Some(to) => self.place_call(core, handle, to),
            None => {
                if let Some(leg) = self.legs.get_mut(&handle)
                    && stage == Stage::Idle
                {
                    leg.stage = Stage::Resolving(core.now + NAME_WAIT);
                    self.unnamed.insert(handle);
                }
                Ok(())
            }
        }
    }
    /// Who we are at the other side: our user and its context there, and the password.
    pub(super) fn credentials(
        &self,
        core: &mut Core,
        party: &Party,
        target: &Target,
    ) -> (String, String, Option<Secret>) {
        let (mut username, mut context) = (target.username.clone(), target.context.clone());
        let Party::Peer(peer) = party else { return (username, context, target.secret.clone()) };
        if username.is_empty() {
            username.clone_from(&peer.username);
        }
        if context.is_empty() {
            context.clone_from(&peer.context);
        }
        let own = || match peer.secret_in.as_deref() {
            None => peer.secret.clone(),
            Some(place) => {
                let (family, key) = place.split_once('/')?;
                Some(Secret::new(core.services.db.get(family, key)?.as_bytes()))
            }
        };
        let secret = target.secret.clone().or_else(own);
        (username, context, secret)
    }
    fn place_call(&mut self, core: &mut Core, handle: u64, to: SocketAddr) -> Result<(), Cause> {
        let failed = Cause::NORMAL_TEMPORARY_FAILURE;
        let leg = self.legs.get(&handle).ok_or(failed)?;
        let (target, party) = (leg.target.clone(), leg.party.clone());
        let socket = self.socket_for(to, party.common()).ok_or(Cause::NO_ROUTE_DESTINATION)?;
        let (username, context, secret) = self.credentials(core, &party, &target);
        let send_ani = matches!(&party, Party::Peer(peer) if peer.send_ani);
        let leg = self.legs.get(&handle).ok_or(failed)?;
        let entry = core.get(leg.channel).ok_or(failed)?;
        let common = party.common();
        let formats: Vec<FormatId> = leg.formats.iter().collect();
        let video: Vec<FormatId> = leg.video.iter().collect();
        let caller = &entry.connected;
        let variables: Vec<(String, String)> = entry
            .vars
            .iter()
            .filter_map(|(_, name, value)| {
                let name = name.strip_prefix(VARIABLE)?.strip_suffix(')')?;
                Some((name.to_owned(), value.to_owned()))
            })
            .collect();
        let variables: Vec<(&[u8], &[u8])> =
            variables.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        let ani = if send_ani { caller.number() } else { "" };
        let presentation = common.presentation.unwrap_or(caller.number_presentation).code();
        let dial = Dial {
            called: if target.exten.is_empty() { b"s" } else { target.exten.as_bytes() },
            context: context.as_bytes(),
            username: username.as_bytes(),
            secret,
            formats: &formats,
            video: &video,
            calling: caller.number().as_bytes(),
            ani: ani.as_bytes(),
            name: caller.name().as_bytes(),
            presentation: (presentation, 0, 0),
            dnid: target.exten.as_bytes(),
            rdnis: entry.redirecting.from.number().as_bytes(),
            language: entry.language.as_bytes(),
            variables: &variables,
            datetime: Some(super::datetime(core)),
            lines: common.lines,
            auto_answer: target.auto_answer,
            encrypt: common.encrypt,
            keys_stay: common.keys_stay,
            plaintext: common.auth.has(Auth::PLAINTEXT),
            trunk: common.trunk,
            transferable: common.transfer != Transfer::No,
            numbers_max: common.numbers_max,
            autokill: self.config.autokill,
            ..Dial::to(to)
        };
        let told = (caller.number().to_owned(), caller.name().to_owned(), presentation);
        let now = core.now;
        let placed = self.order(socket, |machine, out| machine.dial(now, &dial, out)).ok_or(failed)?;
        let place = placed.map_err(|refused| match refused {
            Refused::NoFormat => Cause::BEARERCAPABILITY_NOTAVAIL,
            _ => Cause::SWITCH_CONGESTION,
        })?;
        if let Some(leg) = self.legs.get_mut(&handle) {
            (leg.stage, leg.place, leg.remote) = (Stage::Calling, Some((socket, place)), Some(to));
            leg.told = Some(told);
        }
        self.by_place.insert((socket, place), handle);
        Ok(())
    }
    /// The other side wants a proof that the call has no password for, or registration one that it has a key for.
    pub(super) fn challenged(&mut self, core: &mut Core, at: At, methods: Auth, challenge: &[u8]) {
        let own = self.leg_at(at).map(|leg| match &leg.party {
            Party::Peer(peer) if leg.target.key.is_empty() => peer.own_key.clone(),
            _ => leg.target.key.clone(),
        });
        let own = own.or_else(|| self.switch_key(at)).or_else(|| self.key_of_registration(at));
        match own.filter(|key| !key.is_empty() && methods.has(Auth::RSA)) {
            Some(key) => self.ask_signature(core, at, key, challenge),
            None => self.unsigned(core, at, Cause::CALL_REJECTED, UNPROVEN),
        }
    }
    /// The key of the registration of ours that a leg is for.
    fn key_of_registration(&mut self, (socket, leg): At) -> Option<String> {
        let registration = self.order(socket, |machine, _| machine.registration_of(leg))??;
        let ours = self.ours.iter().find(|ours| ours.place == Some((socket, registration)))?;
        Some(ours.config.key.clone())
    }
    /// The signature that the other side wants; `None`: there is no such key.
    pub(super) fn sign(&mut self, core: &mut Core, at: At, signature: Option<Vec<u8>>) {
        let Some(signature) = signature else {
            return self.unsigned(core, at, Cause::CALL_REJECTED, UNPROVEN);
        };
        let now = core.now;
        // It may be over.
        let _ = self.order(at.0, |machine, out| machine.sign(now, at.1, &signature, out));
    }
    /// There is nothing to prove by who we are: the call ends; a registration gives up by itself.
    pub(super) fn unsigned(&mut self, core: &mut Core, at: At, cause: Cause, why: &str) {
        let now = core.now;
        let hang_up = |machine: &mut ::iax2::Machine, out: &mut ::iax2::Out| {
            machine.hang_up(now, at.1, Cause::NORMAL_CLEARING, out)
        };
        if self.switch_key(at).is_some() {
            let _ = self.order(at.0, hang_up);
            self.switch_ended(core, at, cause);
            return;
        }
        let Some(leg) = self.leg_at(at) else { return };
        let (channel, name) = (leg.channel, leg.party.name().to_owned());
        core.log(Level::Warning, "chan_iax2", &format!("'{name}' wants a proof {why}"));
        let _ = self.order(at.0, hang_up);
        self.unplace(at);
        if let Some(leg) = core.get(channel).map(|c| c.handle).and_then(|h| self.legs.get_mut(&h)) {
            (leg.place, leg.stage) = (None, Stage::Over);
        }
        core.remote_hangup(channel, cause, "IAX2 no secret");
    }
    /// The DNS has said something: calls that wait for it go on.
    pub(super) fn calls_resolved(&mut self, core: &mut Core) {
        for handle in core::mem::take(&mut self.unnamed) {
            if self.names_wait_of(handle).is_none() {
                continue;
            }
            self.unnamed.insert(handle);
            let channel = self.legs.get(&handle).map(|leg| leg.channel);
            if let (Err(cause), Some(channel)) = (self.call_leg(core, handle), channel) {
                core.remote_hangup(channel, cause, "IAX2 no address of the host");
            }
        }
    }
    /// When the first call has waited long enough for the DNS.
    pub(super) fn names_deadline(&self) -> Option<Instant> {
        self.unnamed.iter().filter_map(|handle| self.names_wait_of(*handle)).min()
    }
    /// Until when a call waits for the DNS; `None` when it does not, or no longer.
    fn names_wait_of(&self, handle: u64) -> Option<Instant> {
        match self.legs.get(&handle)?.stage {
            Stage::Resolving(until) => Some(until),
            _ => None,
        }
    }
    /// Calls that waited too long for a name end.
    pub(super) fn give_up_names(&mut self, core: &mut Core) {
        for handle in core::mem::take(&mut self.unnamed) {
            let Some(until) = self.names_wait_of(handle) else { continue };
            if until > core.now {
                self.unnamed.insert(handle);
            } else if let Some(leg) = self.legs.get_mut(&handle) {
                leg.stage = Stage::Over;
                core.remote_hangup(leg.channel, Cause::NO_ROUTE_DESTINATION, "IAX2 no address of the host");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dial_string_names_user_secret_peer_port_number_context_and_options() {
        for (resource, username, has_secret, key, host, port, exten, context, answers) in [
            ("trunk", "", false, "", "trunk", 0, "", "", false),
            ("trunk/100", "", false, "", "trunk", 0, "100", "", false),
            ("trunk/100@in", "", false, "", "trunk", 0, "100", "in", false),
            ("me@trunk:4570/100", "me", false, "", "trunk", 4570, "100", "", false),
            ("me:pw@192.0.2.1:4570/100@in/a", "me", true, "", "192.0.2.1", 4570, "100", "in", true),
            ("me:[own]@far/s", "me", false, "own", "far", 0, "s", "", false),
            ("me:p@ss@[2001:db8::1]:4570/1", "me", true, "", "2001:db8::1", 4570, "1", "", false),
            ("[2001:db8::1]/1", "", false, "", "2001:db8::1", 0, "1", "", false),
        ] {
            let target = Target::parse(resource);
            assert_eq!(
                (
                    target.username.as_str(),
                    target.secret.is_some(),
                    target.key.as_str(),
                    target.host.as_str(),
                    target.port,
                    target.exten.as_str(),
                    target.context.as_str(),
                    target.auto_answer
                ),
                (username, has_secret, key, host, port, exten, context, answers),
                "{resource}"
            );
        }
    }

    #[test]
    fn the_callers_formats_are_offered_first() {
        let set = |formats: &[FormatId]| formats.iter().copied().collect::<FormatSet>();
        let own = set(&[FormatId::ULAW, FormatId::GSM, FormatId::ALAW]);
        for (caller, expected) in [
            (set(&[]), own),
            (set(&[FormatId::ALAW]), set(&[FormatId::ALAW, FormatId::ULAW, FormatId::GSM])),
            (set(&[FormatId::OPUS, FormatId::GSM]), set(&[FormatId::GSM, FormatId::ULAW, FormatId::ALAW])),
        ] {
            assert_eq!(offered(own, caller), expected, "{caller:?}");
        }
    }
}
