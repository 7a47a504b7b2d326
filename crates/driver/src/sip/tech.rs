//! The driver as the call core sees it.

use std::cell::Cell;
use std::rc::Rc;

use ::sip::stack::Body;
use ::sip::{HeaderName, Method};
use base::{Cause, ChannelId, Command, Digit, FormatSet, PlayId};
use call::{Core, DeviceState, Indication, Request, Sending, Tech, TextMessage, Transferring};

use super::config::Dtmf;
use super::leg::Stage;
use super::qualify::Reachable;
use super::{SipDriver, ask, identity};

impl Tech for SipDriver {
    fn names(&self) -> &'static [&'static str] {
        &["PJSIP", "SIP"]
    }
    fn look_up(&mut self, core: &mut Core, resource: &str) -> Option<Rc<Cell<bool>>> {
        self.look_up_dialled(resource, core.now)
    }
    fn request(&mut self, core: &mut Core, request: &Request) -> Result<ChannelId, Cause> {
        self.request_leg(core, request)
    }
    fn call(&mut self, core: &mut Core, channel: ChannelId) -> Result<(), Cause> {
        let handle = core.get(channel).map(|c| c.handle).ok_or(Cause::NORMAL_TEMPORARY_FAILURE)?;
        self.call_leg(core, handle)
    }
    fn indicate(&mut self, core: &mut Core, channel: ChannelId, indication: &Indication) {
        let Some(handle) = core.get(channel).map(|c| c.handle) else { return };
        let Some(leg) = self.leg_of(channel, core) else { return };
        let (ringing, inband) = (leg.stage == Stage::Ringing, leg.endpoint.inband_progress);
        match indication {
            Indication::Ringing if ringing && inband => {
                self.provisional(core, handle, 183, true);
                self.ring_tone(core, handle);
            }
            Indication::Ringing if ringing => self.provisional(core, handle, 180, false),
            Indication::Progress if ringing => {
                self.still(core, handle);
                self.provisional(core, handle, 183, true);
            }
            // The stack says 100 by itself; hold and identity need no message for a bridged leg.
            Indication::Ringing | Indication::Progress | Indication::Proceeding => {}
            Indication::Hold | Indication::Unhold => {
                leg.to_be_held = *indication == Indication::Hold && leg.endpoint.passes_hold;
                self.unsettle(handle);
            }
            Indication::ConnectedLine(party) => {
                if let Some(entry) = core.get_mut(channel) {
                    entry.connected = party.clone();
                }
                self.tell_connected(core, handle, party);
            }
            Indication::Redirecting(_) => self.tell_redirected(core, handle),
        }
    }
    fn suit(&mut self, core: &mut Core, channel: ChannelId, other: ChannelId, formats: FormatSet) {
        let handle = core.get(channel).map(|c| c.handle);
        let leg = handle.and_then(|handle| self.legs.get_mut(handle));
        let Some(leg) = leg.filter(|leg| leg.stage == Stage::Ringing && leg.channel == channel) else {
            return;
        };
        leg.passes_with = Some(other);
        if !leg.endpoint.codecs.answers_in_own_order() {
            leg.suits = formats;
        }
    }
    fn answer(&mut self, core: &mut Core, channel: ChannelId) {
        if let Some(handle) = core.get(channel).map(|c| c.handle) {
            self.answer_leg(core, handle);
        }
    }
    fn hangup(&mut self, core: &mut Core, channel: ChannelId, cause: Cause) {
        let Some(handle) = core.get(channel).map(|c| c.handle) else { return };
        self.fax_leaves(core, handle);
        self.take_back(core, handle);
        let unanswered = self.legs.get(handle).is_some_and(|leg| leg.stage == Stage::Ringing);
        let mut headers = if unanswered { self.refusal_headers(core, handle) } else { Vec::new() };
        let Some(leg) = self.legs.remove(handle) else { return };
        if let (Some(stream), true) = (leg.stream, core.services.log.enabled(super::TOTALS_LEVEL)) {
            let name = core.get(channel).map(|c| c.name.clone()).unwrap_or_default();
            self.parting.insert(stream, name);
        }
        let Some(dialog) = leg.dialog else { return };
        self.note_leaving(dialog, &leg);
        self.note_charged(core, dialog, &leg);
        // A transferer is told how it goes before his call ends.
        if self.is_referral_open(dialog) {
            return self.rest(dialog, leg);
        }
        // A CANCEL tells phones that the call was not missed (RFC 3326 §3.1).
        let elsewhere = cause == Cause::ANSWERED_ELSEWHERE && leg.stage == Stage::Calling;
        let mut reason = |value: String| headers.push(("Reason".to_owned(), value));
        if elsewhere {
            reason("SIP;cause=200;text=\"Call completed elsewhere\"".to_owned());
        }
        if !leg.endpoint.suppress_reason {
            reason(format!("Q.850;cause={}", cause.0));
        }
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let status = leg.refusal.unwrap_or_else(|| refusal_status(cause));
        let is_told = !matches!(cause, Cause::NONE | Cause::NORMAL_CLEARING | Cause::ANSWERED_ELSEWHERE);
        if let Some(entry) = core.get_mut(channel).filter(|_| is_told) {
            entry.tech_cause.get_or_insert(status);
        }
        self.with_stack(core, |stack, now, out| stack.hang_up(dialog, status, &headers, now, out)).ok();
    }
    fn send_digit(&mut self, core: &mut Core, channel: ChannelId, digit: Digit, duration_ms: u16) -> bool {
        let Some(leg) = self.leg_of(channel, core) else { return true };
        let event = leg.media.agreed().is_some_and(|agreed| agreed.dtmf.is_some());
        let by_info = match leg.endpoint.dtmf {
            Dtmf::Info => true,
            Dtmf::AutoInfo => !event,
            Dtmf::None => return true,
            Dtmf::Rfc4733 | Dtmf::Inband | Dtmf::Auto => false,
        };
        let Some(dialog) = leg.dialog.filter(|_| by_info) else { return false };
        let body = format!("Signal={}\r\nDuration={duration_ms}\r\n", digit.to_char());
        let body = Body { content_type: "application/dtmf-relay", bytes: body.as_bytes() };
        self.with_stack(core, |stack, now, out| {
            stack.request_inside(dialog, (Method::Info, &[], Some(body)), now, out)
        })
        .is_ok()
    }
    fn send_text(&mut self, core: &mut Core, channel: ChannelId, text: &str) -> bool {
        self.send_document(core, channel, "text/plain", text)
    }
    fn pass_text(&mut self, core: &mut Core, channel: ChannelId, text: &call::Text) -> bool {
        self.send_document(core, channel, &text.kind, &text.body)
    }
    fn send_rich_text(&mut self, core: &mut Core, channel: ChannelId, text: &call::RichText) -> bool {
        let Some(dialog) = self.leg_of(channel, core).and_then(|leg| leg.dialog) else { return false };
        let kind = text.kind.as_deref().unwrap_or("text/plain");
        // It becomes a line of the message.
        if kind.chars().any(char::is_control) || !kind.contains('/') {
            return false;
        }
        let body = Body { content_type: kind, bytes: text.body.as_bytes() };
        let names = [text.from_name.as_deref(), text.to_name.as_deref()];
        self.with_stack(core, |stack, now, out| {
            stack.request_inside_named(dialog, names, (Method::Message, &[], Some(body)), now, out)
        })
        .is_ok()
    }
    fn send_document(&mut self, core: &mut Core, channel: ChannelId, kind: &str, document: &str) -> bool {
        let Some(dialog) = self.leg_of(channel, core).and_then(|leg| leg.dialog) else { return false };
        let body = Body { content_type: kind, bytes: document.as_bytes() };
        self.with_stack(core, |stack, now, out| {
            stack.request_inside(dialog, (Method::Message, &[], Some(body)), now, out)
        })
        .is_ok()
    }
    fn advise_charge(
        &mut self,
        core: &mut Core,
        channel: ChannelId,
        advice: &call::charge::Advice,
    ) -> Result<(), &'static str> {
        self.advise(core, channel, advice)
    }
    fn transfer(&mut self, core: &mut Core, channel: ChannelId, target: &str) -> Transferring {
        match self.send_elsewhere(core, channel, target) {
            Some(()) => Transferring::Begun,
            None => Transferring::Failed,
        }
    }
    fn message(&mut self, core: &mut Core, destination: &str, message: &TextMessage) -> Sending {
        self.send_message(core, destination, message)
    }
    fn exchanged(&mut self, core: &Core, a: ChannelId, b: ChannelId) {
        for id in [a, b] {
            let own = core.get(id).filter(|channel| channel.tech == self.tech_index);
            if let Some(leg) = own.and_then(|channel| self.legs.get_mut(channel.handle)) {
                leg.channel = id;
            }
        }
    }
    fn device_state(&self, core: &Core, resource: &str) -> DeviceState {
        // `6001`, `6001/sip:…` and `number@trunk` all speak of an endpoint.
        // A name with a domain (`6001@example.com`) stands for itself.
        let named = |name: &str| self.config.endpoints.get(name);
        let found = match resource.split_once('/') {
            Some((name, _)) => named(name),
            None => {
                let trunk = resource.rsplit_once('@').and_then(|(_, name)| named(name));
                trunk.or_else(|| named(resource))
            }
        };
        let Some(endpoint) = found else { return DeviceState::Invalid };
        let (mut in_use, mut ringing, mut held, mut down, mut busy) = (0_u32, 0_u32, 0_u32, 0_u32, 0_u32);
        for leg in self.legs.of_endpoint(&endpoint.name) {
            use call::ChanState;
            match core.get(leg.channel).map(|c| c.state) {
                Some(_) if core.is_on_hold(leg.channel) || is_told_held(core, leg.channel) => held += 1,
                Some(ChanState::Ringing) => ringing += 1,
                // It is called and does not ring yet: the phone is as free as before.
                Some(ChanState::Down) if leg.stage == Stage::Calling => down += 1,
                // Made and not called yet: nobody hears of it.
                Some(ChanState::Down) | None => {}
                Some(ChanState::Busy) => busy += 1,
                Some(
                    ChanState::Up
                    | ChanState::Ring
                    | ChanState::Reserved
                    | ChanState::OffHook
                    | ChanState::Dialing,
                ) => in_use += 1,
            }
        }
        let calls = in_use + ringing + held + busy;
        match () {
            () if endpoint.busy_at > 0 && calls >= endpoint.busy_at => DeviceState::Busy,
            () if endpoint.call_limit > 0 && calls + down >= endpoint.call_limit => DeviceState::Busy,
            () if ringing > 0 && in_use > 0 => DeviceState::RingInUse,
            () if busy > 0 => DeviceState::Busy,
            () if in_use > 0 => DeviceState::InUse,
            () if ringing > 0 => DeviceState::Ringing,
            () if held > 0 => DeviceState::OnHold,
            () if down > 0 || self.is_reachable(&endpoint.aors) => DeviceState::NotInUse,
            () => DeviceState::Unavailable,
        }
    }
    fn read(&mut self, core: &mut Core, channel: ChannelId, function: &str, args: &str) -> Option<String> {
        match function {
            "CHANNEL" => self.channel_item(core, channel, args),
            "PJSIP_HEADER" | "SIP_HEADER" => self.header(core, channel, function, args),
            "PJSIP_RESPONSE_HEADER" => self.response_header(core, channel, args),
            "PJSIP_HEADERS" => self.header_names(core, channel, args, false),
            "PJSIP_RESPONSE_HEADERS" => self.header_names(core, channel, args, true),
            "PJSIP_MEDIA_OFFER" => self.media_offer(core, channel, args),
            "PJSIP_DTMF_MODE" => self.dtmf_mode(core, channel),
            "PJSIP_MOH_PASSTHROUGH" => self.moh_passthrough(core, channel),
            "PJSIP_DIAL_CONTACTS" => Some(self.dial_contacts(args)),
            "PJSIP_HEADER_PARAM" => self.header_param(core, channel, args),
            "PJSIP_INHERITABLE_HEADER" => ask::inheritable_header(core, channel, args),
            "PJSIP_ENDPOINT" => self.endpoint_setting(args),
            "PJSIP_AOR" => self.aor_setting(core, args),
            "PJSIP_CONTACT" => self.contact_property(core, args),
            "PJSIP_PARSE_URI" => ask::uri_part(args),
            "SIPPEER" => self.peer_item(core, args),
            "SIPCHANINFO" => self.call_item(core, channel, args),
            "CHECKSIPDOMAIN" => Some(self.own_domain(args)),
            "PJSIPHangup" => self.chosen_refusal(core, channel),
            "STIR_SHAKEN" => self.verified_item(core, channel, args),
            _ => None,
        }
    }
    fn transfer_progress(&mut self, core: &mut Core, channel: ChannelId, state: &str) -> bool {
        SipDriver::transfer_progress(self, core, channel, state)
    }
    fn write(
        &mut self,
        core: &mut Core,
        channel: ChannelId,
        function: &str,
        args: &str,
        value: &str,
    ) -> bool {
        match function {
            "PJSIP_HEADER" => self.set_header(core, channel, args, value),
            "PJSIPHangup" => self.refuse_with(core, channel, value),
            "PJSIP_HEADER_PARAM" => self.set_header_param(core, channel, args, value),
            "PJSIP_MEDIA_OFFER" => self.set_media_offer(core, channel, args, value),
            "PJSIP_DTMF_MODE" => self.set_dtmf_mode(core, channel, value),
            "PJSIP_MOH_PASSTHROUGH" => self.set_moh_passthrough(core, channel, value),
            "PJSIP_TRANSFER_HANDLING" => self.set_transfer_handling(core, channel, value),
            "PJSIP_SEND_SESSION_REFRESH" => self.send_refresh(core, channel, value),
            "PJSIP_INHERITABLE_HEADER" => ask::set_inheritable_header(core, channel, args, value),
            "STIR_SHAKEN_ATTESTATION" => self.suppress_attestation(core, channel, value == "yes"),
            _ => false,
        }
    }
}

impl SipDriver {
    /// Tells the peer that the other party is somebody else: by UPDATE or re-INVITE while the call is up, and while it
    /// rings when the endpoint wants that (`rpid_immediate`).
    fn tell_connected(&mut self, core: &mut Core, handle: u64, party: &call::PartyId) {
        let Some(leg) = self.legs.get_mut(handle) else { return };
        let endpoint = leg.endpoint.clone();
        let told = leg.told.as_ref() == Some(party);
        if told || !endpoint.send_connected_line || !(endpoint.send_pai || endpoint.send_rpid) {
            return;
        }
        let (flow, stage, dialog) = (leg.flow, leg.stage, leg.dialog);
        if stage == Stage::Ringing {
            // The next response says it, at once where the endpoint wants that: by ringing, or by progress of what rings.
            let status = if leg.indicated == 0 && !endpoint.inband_progress { 180 } else { 183 };
            if endpoint.rpid_immediate && !party.number().is_empty() {
                leg.indicated = 0;
                self.provisional(core, handle, status, status == 183);
            }
            return;
        }
        let role = if leg.target.is_empty() { "called" } else { "calling" };
        let headers = identity::assertions(&endpoint, party, &self.own_host(flow), role);
        let Some(leg) = self.legs.get_mut(handle).filter(|_| !headers.is_empty()) else { return };
        match (stage, dialog) {
            (Stage::Up, Some(dialog)) => {
                leg.told = Some(party.clone());
                // A peer that takes UPDATE is spared another offer, whichever method the site prefers.
                let by_update = leg.peer_updates;
                let timer = leg.timer.ask().into_iter().map(|(name, value)| (name.to_owned(), value));
                let headers: Vec<(String, String)> = headers.into_iter().chain(timer).collect();
                let sent = match by_update {
                    true => self.send_update(core, dialog, &headers),
                    false => self.send_reinvite(core, handle, &headers),
                };
                // Another request is in the way: told when that is over.
                if let (Err(_), Some(leg)) = (sent, self.legs.get_mut(handle)) {
                    leg.told = None;
                }
            }
            (Stage::Idle | Stage::Calling | Stage::Ringing | Stage::Up | Stage::Over, _) => {}
        }
    }
}

impl SipDriver {
    /// What another request was in the way of is told.
    pub(crate) fn tell_owed(&mut self, core: &mut Core, handle: u64) {
        let owed = |leg: &&super::Leg| leg.stage == Stage::Up && leg.told.is_none();
        let Some(channel) = self.legs.get(handle).filter(owed).map(|leg| leg.channel) else { return };
        if let Some(party) = core.get(channel).map(|c| c.connected.clone()) {
            self.tell_connected(core, handle, &party);
        }
    }
    /// Tells a caller that is not answered that the call is sent on: 181, with the Diversion that its endpoint is to get.
    fn tell_redirected(&mut self, core: &mut Core, handle: u64) {
        let Some(leg) = self.legs.get(handle).filter(|leg| leg.stage == Stage::Ringing) else { return };
        let (endpoint, flow) = (leg.endpoint.clone(), leg.flow);
        let Some(redirecting) = core.get(leg.channel).map(|c| c.redirecting.clone()) else { return };
        let host = self.own_host(flow);
        let headers = identity::sent_on_to(&endpoint, &redirecting, &host);
        let Some(leg) = self.legs.get_mut(handle) else { return };
        // Once for each forwarding.
        if headers == leg.sent_on {
            return;
        }
        leg.sent_on = headers;
        let status = std::mem::replace(&mut leg.indicated, 0);
        self.provisional(core, handle, 181, false);
        if let Some(leg) = self.legs.get_mut(handle) {
            // What was said before needs not be said again.
            leg.indicated = status;
        }
    }
}

/// From or To as dialplans read it: quotes escaped, without port and parameters.
fn shown(party: &::sip::NameAddr<'_>) -> String {
    let (user, host) = (identity::text(&party.uri.user_decoded()), identity::text(party.uri.host.as_bytes()));
    let scheme = identity::text(party.uri.scheme.as_bytes());
    let at = if user.is_empty() { "" } else { "@" };
    let uri = format!("<{scheme}:{user}{at}{host}>");
    match identity::text(&party.display_name()) {
        name if name.is_empty() => uri,
        name => format!("\\\"{name}\\\" {uri}"),
    }
}

/// The final status that refuses an INVITE with this cause. A plain hang-up before the answer is a decline.
pub(super) fn refusal_status(cause: Cause) -> u16 {
    match cause {
        Cause::NONE | Cause::NORMAL_CLEARING => 603,
        Cause::ANSWERED_ELSEWHERE => 486,
        other => other.to_sip(),
    }
}

impl SipDriver {
    /// Ringing in early media (`inband_progress`): the tone of the channel's zone until it is answered or hears something
    /// else.
    fn ring_tone(&mut self, core: &mut Core, handle: u64) {
        let Some(leg) = self.legs.get_mut(handle).filter(|leg| !leg.ringing_tone) else { return };
        let Some((zone, format)) = core.get(leg.channel).map(|c| (c.tone_zone.clone(), c.format)) else {
            return;
        };
        let Some(stream) = leg.stream else { return };
        if let Some(clip) = core.services.library.tone(&zone, "ring", format) {
            leg.ringing_tone = true;
            core.media(Command::Play { stream, play: PlayId(u32::MAX), clip, offset: 0 });
        }
    }
    /// Ends the ringing that [`ring_tone`](Self::ring_tone) began.
    pub(crate) fn still(&mut self, core: &mut Core, handle: u64) {
        let Some(leg) = self.legs.get_mut(handle) else { return };
        if let (true, Some(stream)) = (std::mem::take(&mut leg.ringing_tone), leg.stream) {
            core.media(Command::StopPlay { stream });
        }
    }
    fn is_reachable(&self, aors: &[std::rc::Rc<str>]) -> bool {
        aors.iter().filter_map(|name| self.config.aors.get(name)).any(|aor| {
            let registered =
                self.registrations.registrar.bindings(&aor.name).iter().map(|b| b.uri.as_slice());
            let fixed = aor.contacts.iter().map(|uri| uri.as_bytes());
            registered.chain(fixed).any(|uri| self.qualify.state(&aor.name, uri).0 != Reachable::No)
        })
    }
    /// `CHANNEL(pjsip,item)`, `CHANNEL(rtp,dest[,audio])` and their like.
    fn channel_item(&mut self, core: &Core, channel: ChannelId, args: &str) -> Option<String> {
        let mut words = args.split(',').map(str::trim);
        let mut word = || words.next().unwrap_or_default();
        let (family, item, media) = (word(), word(), word());
        match family {
            "pjsip" => self.sip_item(core, channel, item),
            "endpoint" => Some(self.leg_of(channel, core)?.endpoint.name.to_string()),
            "rtp" if matches!(media, "" | "audio") => self.rtp_item(core, channel, item),
            _ => None,
        }
    }
    fn rtp_item(&mut self, core: &Core, channel: ChannelId, item: &str) -> Option<String> {
        let leg = self.leg_of(channel, core)?;
        let agreed = leg.media.agreed();
        Some(match item {
            "dest" => agreed.and_then(|a| a.remote).map(|r| r.to_string()).unwrap_or_default(),
            "src" => leg.media.own_address().to_string(),
            "secure" => u8::from(agreed.is_some_and(|agreed| agreed.keys.is_some())).to_string(),
            "direct" => {
                let direct = leg.media.direct().map(|direct| direct.at.rtp.to_string());
                direct.unwrap_or_else(|| "(null)".to_owned())
            }
            "hold" => u8::from(leg.held).to_string(),
            _ => return None,
        })
    }
    fn sip_item(&mut self, core: &Core, channel: ChannelId, item: &str) -> Option<String> {
        let leg = self.leg_of(channel, core)?;
        let (target, flow, dialog) = (leg.target.clone(), leg.flow, leg.dialog);
        let message = leg.invite.clone();
        let read = |read: &dyn Fn(&::sip::Message<'_>) -> Option<String>| {
            message.as_ref().and_then(|m| read(&m.view())).unwrap_or_default()
        };
        let calls = !target.is_empty();
        let names = dialog.and_then(|dialog| self.stack.names(dialog));
        Some(match item {
            "call-id" => read(&|m| m.call_id().map(identity::text)),
            "request_uri" if calls => target,
            "request_uri" => read(&|m| Some(identity::text(m.request_uri_bytes()))),
            "target_uri" => {
                let known = dialog.and_then(|dialog| self.stack.remote_target(dialog)).map(identity::text);
                known.filter(|known| !known.is_empty()).unwrap_or(target)
            }
            // Our own name is in To of a call that has come, and in From of one of ours.
            "local_uri" => read(&|m| if calls { m.from() } else { m.to() }.map(|party| shown(&party))),
            "remote_uri" => read(&|m| if calls { m.to() } else { m.from() }.map(|party| shown(&party))),
            "local_tag" => names.map(|names| names.local_tag.to_owned()).unwrap_or_default(),
            "remote_tag" => names.map(|names| identity::text(names.remote_tag)).unwrap_or_default(),
            "local_addr" => {
                let host = self.own_host(flow);
                let port =
                    self.stack.sent_by(flow).and_then(|own| own.rsplit_once(':')?.1.parse::<u16>().ok());
                format!("{host}:{}", port.unwrap_or(flow.protocol.default_port()))
            }
            "remote_addr" => flow.remote.to_string(),
            "transport" => flow.protocol.name().to_owned(),
            "secure" => u8::from(flow.protocol.is_secure()).to_string(),
            "endpoint" => self.leg_of(channel, core)?.endpoint.name.to_string(),
            "t38state" => self.fax_state(core.get(channel)?.handle).to_owned(),
            _ => return None,
        })
    }
    /// `PJSIP_HEADER(read,name[,number])`, `SIP_HEADER(name[,number])`; a `*` at the end of the name is any rest.
    pub(crate) fn header(
        &mut self,
        core: &Core,
        channel: ChannelId,
        function: &str,
        args: &str,
    ) -> Option<String> {
        let leg = self.leg_of(channel, core)?;
        let mut parts = args.split(',').map(str::trim);
        let action = if function == "SIP_HEADER" { "read" } else { parts.next()? };
        let name = parts.next()?;
        let number: usize = parts.next().and_then(|n| n.parse().ok()).unwrap_or(1);
        let is_ours = leg.stage == Stage::Idle || !leg.target.is_empty();
        if function == "PJSIP_HEADER" && action.eq_ignore_ascii_case("remove") {
            let is_open = matches!(leg.stage, Stage::Idle | Stage::Ringing);
            return is_open.then(|| ask::remove_headers(&mut leg.headers, name).to_string());
        }
        if !action.eq_ignore_ascii_case("read") {
            return None;
        }
        // What was added to a call of ours can be read.
        if function == "PJSIP_HEADER"
            && is_ours
            && let Some(added) = ask::header_in(&leg.headers, name, number)
        {
            return Some(added.to_owned());
        }
        let Some(message) = leg.invite.as_ref() else { return is_ours.then(String::new) };
        let view = message.view();
        let value = match name.strip_suffix('*') {
            Some(prefix) => view
                .fields()
                .filter(|(field, _)| ask::begins(&String::from_utf8_lossy(field.as_bytes()), prefix))
                .map(|(_, value)| value)
                .nth(number.saturating_sub(1)),
            None => view.headers(HeaderName::from_bytes(name.as_bytes())).nth(number.saturating_sub(1)),
        };
        // What a REFER has given it stands for its own.
        let added = || ask::header_in(&leg.headers, name, number).map(str::to_owned);
        Some(value.map(identity::text).or_else(added).unwrap_or_default())
    }
    /// `PJSIP_HEADER(add,name)=`, `(update,name)=`, `(remove,name)=`: in the INVITE of a channel that has not been called
    /// yet, and in our answers to one that has not been answered.
    fn set_header(&mut self, core: &Core, channel: ChannelId, args: &str, value: &str) -> bool {
        let before = |leg: &&mut super::Leg| matches!(leg.stage, Stage::Idle | Stage::Ringing);
        let Some(leg) = self.leg_of(channel, core).filter(before) else {
            return false;
        };
        ask::change_headers(&mut leg.headers, args, value)
    }
    /// A dial string with every contact of an endpoint, or of the AOR that is named, called as a user if one is named.
    fn dial_contacts(&self, args: &str) -> String {
        let mut parts = args.split(',').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let mut named = || parts.next().filter(|word| !word.is_empty());
        let (only, user) = (named(), named());
        let Some(endpoint) = self.config.endpoints.get(name) else { return String::new() };
        let mut dial = Vec::new();
        let only: Option<Rc<str>> = only.map(Into::into);
        let aors = only.as_ref().map_or(&endpoint.aors[..], std::slice::from_ref);
        // What parts dial strings and arguments would not stay in the user.
        let whole = |text: &str| text.replace('&', "%26").replace(',', "%2C").replace('/', "%2F");
        let named = match user {
            Some(user) => format!("{}@{name}", whole(user)),
            None => name.to_owned(),
        };
        for aor in aors {
            let registered = self.contacts_called(aor).into_iter();
            let fixed = self.config.aors.get(aor).into_iter().flat_map(|a| a.contacts.iter().cloned());
            dial.extend(registered.chain(fixed).map(|uri| format!("PJSIP/{named}/{uri}")));
        }
        dial.join("&")
    }
}

/// Whether whoever is on this channel was told to wait: by a bridge, a program or a feature.
fn is_told_held(core: &Core, channel: ChannelId) -> bool {
    core.get(channel).is_some_and(|channel| channel.told_held)
}
