//! Fax between two calls (T.38): what one side asks for the other is asked, and the datagrams pass. Nobody here speaks fax:
//! where the other side is no such call, the request is refused and the fax goes on as audio.

use std::collections::HashMap;

use ::sip::OwnedMessage;
use ::sip::sdp::{FaxStream, FaxTerms};
use ::sip::stack::{Answer, Body, Refused, ServerId};
use base::{Cause, Command, Fax, UdptlProtection};
use call::{Core, Level};

use super::SipDriver;
use super::config::Endpoint;
use super::leg::Stage;
use super::session::Terms;

/// Longest datagram that we take, as our descriptions say.
const DATAGRAM_MAX: u16 = 1400;

/// `t38_udptl` and what goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaxSettings {
    /// What protects datagrams to it, as our offers say (`t38_udptl_ec`).
    pub protection: UdptlProtection,
    /// Longest datagram to it; 0: what it says (`t38_udptl_maxdatagram`).
    pub datagram_max: u16,
    /// Datagrams go where its own come from (`t38_udptl_nat`).
    pub nat: bool,
}

/// Re-INVITEs for fax that wait for what the other party says, by the leg that was asked.
pub(crate) type FaxesAsked = HashMap<u64, FaxAsked>;

/// One of them.
pub(crate) struct FaxAsked {
    /// Who wants it.
    from: u64,
    /// Its re-INVITE; `None` when it was withdrawn.
    request: Option<ServerId>,
    invite: OwnedMessage,
    offered: FaxStream,
}

impl SipDriver {
    /// How it stands with fax on a leg, in the words of `CHANNEL(pjsip,t38state)`.
    pub(super) fn fax_state(&self, handle: u64) -> &'static str {
        let asks = || self.faxes_asked.values().any(|asked| asked.from == handle && asked.request.is_some());
        match self.legs.get(handle) {
            Some(leg) if leg.fax.is_some() => "ENABLED",
            _ if self.faxes_asked.contains_key(&handle) => "LOCAL_REINVITE",
            _ if asks() => "PEER_REINVITE",
            _ => "DISABLED",
        }
    }
    /// A re-INVITE that offers fax instead of audio.
    pub(crate) fn fax_offered(
        &mut self,
        core: &mut Core,
        handle: u64,
        request: ServerId,
        message: &OwnedMessage,
        offered: FaxStream,
    ) {
        // It is there already: another address, or the session is only refreshed.
        if self.legs.get(handle).is_some_and(|leg| leg.fax.is_some()) {
            return self.accept_fax(core, handle, request, message, &offered, offered.terms);
        }
        if let Some(leg) = self.legs.get(handle) {
            core.fax_offered(leg.channel);
        }
        let partner = match self.fax_partner(core, handle) {
            Ok(partner) => partner,
            Err(why) => {
                let name = self.legs.get(handle).map(|leg| leg.endpoint.name.clone()).unwrap_or_default();
                let line = format!("T.38 offered by '{name}' is refused, the fax goes on as audio: {why}");
                core.log(Level::Notice, "res_pjsip_t38", &line);
                return self.answer_request(core, request, 488);
            }
        };
        match self.offer_fax(core, partner, &offered.terms) {
            Ok(()) => {
                let asked =
                    FaxAsked { from: handle, request: Some(request), invite: message.clone(), offered };
                self.faxes_asked.insert(partner, asked);
            }
            // The other party is in the midst of something of its own; who asks does so again (RFC 3261 §14.1).
            Err(Refused::Pending) => self.answer_request(core, request, 491),
            Err(_) => self.answer_request(core, request, 488),
        }
    }
    /// The leg that a fax of this one would go to, or why there is none.
    fn fax_partner(&self, core: &Core, handle: u64) -> Result<u64, &'static str> {
        let leg = self.legs.get(handle).ok_or("the call is gone")?;
        leg.may_fax()?;
        let elsewhere = "the other party is no SIP call, and a T.38 gateway is not built in";
        let handle = self.partner(core, handle).ok_or(elsewhere)?;
        let partner = self.legs.get(handle).ok_or(elsewhere)?;
        partner.may_fax().map_err(
            |_| "the other party's endpoint has no t38_udptl, or SRTP, and a T.38 gateway is not built in",
        )?;
        Ok(handle)
    }
    /// Takes a leg whose fax has nobody to go to any more back to audio, and refuses what it waits for.
    pub(crate) fn settle_fax(&mut self, core: &mut Core, handle: u64) {
        let partner = self.partner(core, handle);
        let parted = |(asked, of): &(&u64, &FaxAsked)| {
            of.request.is_some()
                && (**asked == handle && partner != Some(of.from)
                    || of.from == handle && partner != Some(**asked))
        };
        let parted: Vec<u64> = self.faxes_asked.iter().filter(parted).map(|(asked, _)| *asked).collect();
        for asked in parted {
            if let Some(request) = self.faxes_asked.get_mut(&asked).and_then(|asked| asked.request.take()) {
                self.answer_request(core, request, 488);
            }
        }
        let goes_on = partner.and_then(|partner| self.legs.get(partner)).is_some_and(|leg| leg.fax.is_some());
        let Some(leg) = self.legs.get_mut(handle).filter(|leg| leg.fax.is_some() && leg.stage == Stage::Up)
        else {
            return;
        };
        // One that is about to end is asked for nothing any more.
        let ends = core.get(leg.channel).is_none_or(|channel| channel.hangup.is_some());
        if ends || leg.asked_back || goes_on && !leg.leaves_fax {
            return;
        }
        leg.leaves_fax = true;
        let back = self.send_reinvite(core, handle, &[] as &[(&str, String)]);
        // What is in the way goes away; it is tried again then.
        if let (Ok(()), Some(leg)) = (back, self.legs.get_mut(handle)) {
            leg.asked_back = true;
        }
    }
    /// A leg that was to go back to audio would not: a call that carries nothing any more ends.
    pub(crate) fn fax_stays(&mut self, core: &mut Core, handle: u64) {
        let Some(leg) = self.legs.get_mut(handle).filter(|leg| leg.asked_back) else { return };
        leg.asked_back = false;
        let (channel, name) = (leg.channel, leg.endpoint.name.clone());
        let line = format!("'{name}' does not go back from T.38 to audio, its call is ended");
        core.log(Level::Notice, "res_pjsip_t38", &line);
        core.request_hangup(channel, Cause::BEARERCAPABILITY_NOTAVAIL);
    }
    /// Offers fax to a leg in a re-INVITE.
    fn offer_fax(&mut self, core: &mut Core, handle: u64, wanted: &FaxTerms) -> Result<(), Refused> {
        let config = self.config.clone();
        let leg = self.legs.get_mut(handle).ok_or(Refused::Gone)?;
        let endpoint = leg.endpoint.clone();
        let terms = Terms { config: &config, endpoint: &endpoint, signalling: leg.flow.remote.ip() };
        let sdp = leg.media.offer_fax(&own_terms(&endpoint, wanted), &terms);
        let timer = leg.timer.ask();
        self.send_offer(core, handle, &sdp, &timer)
    }
    /// Answers an offer of fax with these terms, and the stream follows.
    fn accept_fax(
        &mut self,
        core: &mut Core,
        handle: u64,
        request: ServerId,
        invite: &OwnedMessage,
        offered: &FaxStream,
        terms: FaxTerms,
    ) {
        let config = self.config.clone();
        let view = invite.view();
        let Some(leg) = self.legs.get_mut(handle) else { return self.answer_request(core, request, 481) };
        let endpoint = leg.endpoint.clone();
        // What it protects its own with it also understands.
        let protection = offered.terms.protection;
        let terms = FaxTerms { datagram_max: DATAGRAM_MAX, protection, ..terms };
        let offer = view.sdp().unwrap_or_default();
        let within = Terms { config: &config, endpoint: &endpoint, signalling: leg.flow.remote.ip() };
        let sdp = leg.media.answer_fax(offer, offered, &terms, &within);
        let mut headers = leg.timer.answer(&view, core.now);
        headers.push(("Supported", endpoint.supported()));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let answer = Answer::new(200).headers(&headers).body(Body::sdp(&sdp));
        self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
        self.watch_session(handle);
        self.begin_fax(core, handle, offered);
    }
    /// A 2xx to our offer of fax, or to another re-INVITE of a leg that carries fax; false when it is about audio.
    pub(crate) fn fax_answered(&mut self, core: &mut Core, handle: u64, answer: Option<&[u8]>) -> bool {
        let accepted = answer.and_then(FaxStream::of);
        let Some(asked) = self.faxes_asked.remove(&handle) else {
            let is_on = self.legs.get(handle).is_some_and(|leg| leg.fax.is_some());
            if let Some(accepted) = accepted.filter(|_| is_on) {
                self.begin_fax(core, handle, &accepted);
                return true;
            }
            return false;
        };
        match (accepted, asked.request) {
            (Some(accepted), Some(request)) => {
                self.begin_fax(core, handle, &accepted);
                self.accept_fax(core, asked.from, request, &asked.invite, &asked.offered, accepted.terms);
            }
            (accepted, request) => {
                if let Some(request) = request {
                    self.answer_request(core, request, 488);
                }
                // It has taken what nobody wants any more, or nothing: back to audio.
                if let (Some(accepted), Some(leg)) = (accepted, self.legs.get_mut(handle)) {
                    (leg.fax, leg.leaves_fax) = (Some(accepted), true);
                }
                let sent = self.send_reinvite(core, handle, &[] as &[(&str, String)]).is_ok();
                if let Some(leg) = self.legs.get_mut(handle) {
                    leg.asked_back = sent;
                }
            }
        }
        true
    }
    /// The other party refused fax, or is gone.
    pub(crate) fn fax_refused(&mut self, core: &mut Core, handle: u64) {
        if let Some(request) = self.faxes_asked.remove(&handle).and_then(|asked| asked.request) {
            self.answer_request(core, request, 488);
        }
    }
    /// Who asked for fax has withdrawn it.
    pub(crate) fn fax_withdrawn(&mut self, request: ServerId) {
        let asked = self.faxes_asked.values_mut().find(|asked| asked.request == Some(request));
        if let Some(asked) = asked {
            asked.request = None;
        }
    }
    /// A leg is going: whoever waits for it is refused, and what it asked for has no answer any more.
    pub(crate) fn fax_leaves(&mut self, core: &mut Core, handle: u64) {
        self.fax_refused(core, handle);
        let own = self.faxes_asked.values_mut().find(|asked| asked.from == handle);
        if let Some(request) = own.and_then(|asked| asked.request.take()) {
            self.answer_request(core, request, 487);
        }
    }
    /// The stream carries fax to and from there.
    fn begin_fax(&mut self, core: &mut Core, handle: u64, stream: &FaxStream) {
        let Some(leg) = self.legs.get_mut(handle) else { return };
        let settings = leg.endpoint.fax.unwrap_or_default();
        let is_new = leg.fax.replace(*stream).is_none_or(|before| before.terms != stream.terms);
        let (id, channel) = (leg.stream, leg.channel);
        let Some((id, plan)) = id.zip(self.plan(core, handle)) else { return };
        core.media(Command::Plan { stream: id, plan: Box::new(plan) });
        if is_new {
            let datagram_max = match settings.datagram_max {
                0 => stream.terms.datagram_max,
                bytes => bytes,
            };
            let fax = Fax { protection: stream.terms.protection, datagram_max };
            core.media(Command::Fax { stream: id, fax: Some(fax) });
            self.plan_passed(core, handle, false);
            let name = core.get(channel).map(|c| c.name.clone()).unwrap_or_default();
            core.log(Level::Verbose(3), "res_pjsip_t38", &format!("{name} carries T.38"));
        }
    }
    /// A leg has agreed on audio: its stream carries that again, and so does the other party's.
    pub(crate) fn end_fax(&mut self, core: &mut Core, handle: u64) {
        let Some(leg) = self.legs.get_mut(handle) else { return };
        (leg.leaves_fax, leg.asked_back) = (false, false);
        if leg.fax.take().is_none() {
            return;
        }
        if let Some(stream) = leg.stream {
            core.media(Command::Fax { stream, fax: None });
        }
        if let Some(partner) = self.partner(core, handle) {
            self.settle_fax(core, partner);
        }
    }
    /// What a re-INVITE or a response that has to make an offer says: what stands, audio or fax.
    pub(crate) fn standing_offer(&mut self, handle: u64) -> Vec<u8> {
        let config = self.config.clone();
        let Some(leg) = self.legs.get_mut(handle) else { return Vec::new() };
        let endpoint = leg.endpoint.clone();
        let terms = Terms { config: &config, endpoint: &endpoint, signalling: leg.flow.remote.ip() };
        match leg.fax.filter(|_| !leg.leaves_fax) {
            Some(fax) => leg.media.offer_fax(&own_terms(&endpoint, &fax.terms), &terms),
            None => leg.media.offer(&terms),
        }
    }
    fn answer_request(&mut self, core: &mut Core, request: ServerId, status: u16) {
        let answer = Answer::new(status);
        self.with_stack(core, |stack, now, out| stack.respond(request, &answer, now, out)).ok();
    }
}

/// What we say of fax to an endpoint whose other party says this.
fn own_terms(endpoint: &Endpoint, wanted: &FaxTerms) -> FaxTerms {
    FaxTerms {
        datagram_max: DATAGRAM_MAX,
        protection: endpoint.fax.unwrap_or_default().protection,
        ..*wanted
    }
}
