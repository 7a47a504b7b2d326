//! Media that goes from phone to phone (`direct_media`): each of two is told the other's address instead of ours, and ours
//! again as soon as anything here has to hear them or be heard by them.
//!
//! What a leg's peer should be told follows from the two agreements alone ([`SipDriver::direct_target`]); whenever anything
//! of it may have changed it is worked out anew, and an offer leaves when it differs from what was told last. So the order
//! in which holds, answers, transfers and glare come does not matter.

use core::net::{IpAddr, SocketAddr};

use ::sip::sdp::{Elsewhere, Negotiated, SdpError};
use ::sip::stack::{Body, Refused};
use base::{FormatId, Instant};
use call::{Core, Level};

use super::SipDriver;
use super::config::Dtmf;
use super::leg::{Leg, Stage};
use super::session::Terms;

/// How often media of one pair is moved by itself before it stays here: phones that take another port with each offer would
/// go on for ever.
const MOVES_MAX: u8 = 8;

/// Which of our first offers is left out, so that it does not cross one of the peer's
/// (`direct_media_glare_mitigation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Glare {
    /// None.
    #[default]
    None,
    /// That on a leg that we called.
    Outgoing,
    /// That on a leg that called us.
    Incoming,
}

/// `direct_media` and what goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirectMedia {
    /// Offers leave in UPDATE, where the peer takes it (`direct_media_method=update`).
    pub by_update: bool,
    /// What is left out.
    pub glare: Glare,
    /// Not for peers behind address translation (`disable_direct_media_on_nat`).
    pub not_behind_nat: bool,
}

/// What a peer is told of the other party.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Direct {
    /// Where its media is to go.
    pub(crate) at: Elsewhere,
    /// The format that both send.
    pub(crate) format: FormatId,
    /// RTP and RTCP share the port.
    pub(crate) mux: bool,
    /// Both take telephone-event, under the same number.
    pub(crate) events: bool,
}

/// What a leg knows of moving its media.
#[derive(Debug, Default)]
pub(crate) struct Moving {
    /// The leg at the other end, as of last time.
    partner: Option<u64>,
    /// Where its media was seen to come from.
    pub(crate) seen: Option<SocketAddr>,
    /// What its peer knew before the offer that is out.
    before: Option<Option<Direct>>,
    /// What it was not told, to spare a glare.
    spared: Option<Direct>,
    /// One was spared, or an offer has left: what follows is no first one.
    begun: bool,
    moves: u8,
    /// Not before then is an offer made again that has met one of the peer's.
    again_at: Option<Instant>,
    /// The peer would not, or too often otherwise.
    stays: bool,
}

impl Leg {
    /// What it may tell others of its media, when it may be told of theirs.
    fn direct_side(&self) -> Option<(&Negotiated, SocketAddr)> {
        let settings = self.endpoint.direct?;
        let agreed = self.media.agreed()?;
        let told = agreed.remote?;
        let flows = agreed.direction == base::Direction::SendRecv && !agreed.held;
        let heard_here = matches!(self.endpoint.dtmf, Dtmf::Inband)
            || (self.endpoint.dtmf == Dtmf::Auto && agreed.dtmf.is_none());
        let is_up = self.stage == Stage::Up && self.dialog.is_some();
        // Video is passed through here, and both stay together.
        let is_seen = agreed.passed.iter().any(Option::is_some);
        let flows = flows && !self.to_be_held && !self.media.holds() && !is_seen;
        if !is_up || !flows || heard_here || self.fax.is_some() || self.moving.stays || agreed.keys.is_some()
        {
            return None;
        }
        let is_translated =
            told.ip() != self.flow.remote.ip() || self.moving.seen.is_some_and(|seen| seen.ip() != told.ip());
        if settings.not_behind_nat && is_translated {
            return None;
        }
        let at = self.moving.seen.filter(|_| self.endpoint.rtp_symmetric).unwrap_or(told);
        Some((agreed, at))
    }
}

impl SipDriver {
    /// What the bridges and the media of this turn change for our peers. To be called when the stories have run.
    pub fn follow_bridges(&mut self, core: &mut Core) {
        let mut handles = std::mem::take(&mut self.unsettled);
        for id in core.take_regrouped() {
            let own = core.get(id).filter(|channel| channel.tech == self.tech_index);
            handles.extend(own.map(|channel| channel.handle));
        }
        let partners: Vec<u64> = handles.iter().filter_map(|handle| self.partner(core, *handle)).collect();
        handles.extend(partners);
        handles.sort_unstable();
        handles.dedup();
        for handle in handles {
            self.settle_fax(core, handle);
            self.settle_hold(core, handle);
            self.settle_direct(core, handle);
            self.settle_passed(core, handle);
            self.settle_format(core, handle);
        }
    }
    /// Something has happened in a leg's dialog.
    pub(crate) fn unsettle(&mut self, handle: u64) {
        if self.unsettled.last() != Some(&handle) {
            self.unsettled.push(handle);
        }
    }
    /// The leg that this one talks to, when that is a SIP call, too.
    pub(crate) fn partner(&self, core: &Core, handle: u64) -> Option<u64> {
        let leg = self.legs.get(handle)?;
        let other = core.talks_to(leg.channel)?;
        let channel = core.get(other).filter(|channel| channel.tech == self.tech_index)?;
        self.legs.get(channel.handle).filter(|leg| leg.channel == other)?;
        Some(channel.handle)
    }
    /// What the peer of a leg should be told instead of our address; `None`: our address.
    fn direct_target(&self, core: &Core, handle: u64) -> Option<Direct> {
        let leg = self.legs.get(handle)?;
        let partner = self.legs.get(self.partner(core, handle)?)?;
        let (own, own_at) = leg.direct_side()?;
        let (other, at) = partner.direct_side()?;
        if core.is_overheard(leg.channel) || core.is_overheard(partner.channel) {
            return None;
        }
        // Numbers mean the same on both sides, because nobody translates them any more.
        let sent = own.primary()?;
        let alike = other.primary() == Some(sent)
            && own.dtmf == other.dtmf
            && leg.endpoint.g726_aal2 == partner.endpoint.g726_aal2;
        let reachable =
            at.is_ipv4() == leg.media.advertised().is_ipv4() && is_inside(at.ip()) == is_inside(own_at.ip());
        if !alike || !reachable || own.rtcp_mux != other.rtcp_mux {
            return None;
        }
        let told = other.remote_rtcp.filter(|_| Some(at) == other.remote);
        let next = at.port().checked_add(1).map(|port| SocketAddr::new(at.ip(), port));
        Some(Direct {
            at: Elsewhere { rtp: at, rtcp: told.or(next).filter(|_| !own.rtcp_mux) },
            format: sent.format,
            mux: own.rtcp_mux,
            events: own.dtmf.is_some(),
        })
    }

    /// Tells a leg's peer where its media is to go, when that is elsewhere than it was told.
    fn settle_direct(&mut self, core: &mut Core, handle: u64) {
        let partner = self.partner(core, handle);
        let Some(leg) = self.legs.get_mut(handle) else { return };
        if leg.moving.partner != partner {
            let (seen, before) = (leg.moving.seen, leg.moving.before);
            leg.moving = Moving { partner, seen, before, ..Moving::default() };
        }
        let wanted = self.direct_target(core, handle);
        let Some(leg) = self.legs.get_mut(handle) else { return };
        // Who holds the other party stays where it was told to send.
        let holds = partner.is_some() && leg.media.agreed().is_some_and(|agreed| agreed.held);
        if holds && wanted.is_none() && leg.media.direct().is_some() {
            return;
        }
        if leg.media.direct() == wanted || leg.stage != Stage::Up || leg.dialog.is_none() {
            return;
        }
        let glare = leg.endpoint.direct.unwrap_or_default().glare;
        let is_outgoing = !leg.target.is_empty();
        if let Some(first) = wanted
            && (leg.moving.spared == wanted
                || !leg.moving.begun && glare == if is_outgoing { Glare::Outgoing } else { Glare::Incoming })
        {
            (leg.moving.begun, leg.moving.spared) = (true, Some(first));
            return;
        }
        if wanted.is_some() && leg.moving.moves == MOVES_MAX {
            leg.moving.stays = true;
            let line = format!("'{}' has its media here: it moves it too often", leg.endpoint.name);
            core.log(Level::Notice, "chan_pjsip", &line);
            return self.unsettle_both(core, handle);
        }
        if self.tell_direct(core, handle, wanted).is_ok()
            && let Some(leg) = self.legs.get_mut(handle)
        {
            leg.moving.moves += u8::from(wanted.is_some());
        }
    }
    /// Takes media that goes past us back from a peer whose pair is about to part, also from one who is to be hung up: its BYE
    /// waits for the answer.
    pub(crate) fn take_back(&mut self, core: &mut Core, handle: u64) {
        let is_up = |leg: &&Leg| leg.stage == Stage::Up && leg.media.direct().is_some();
        if self.legs.get(handle).filter(is_up).is_some() {
            // What is in the way is over when the peer hears BYE.
            self.tell_direct(core, handle, None).ok();
        }
    }
    /// Tells a leg's peer that it is held, or no longer (RFC 3264 §8.4).
    fn settle_hold(&mut self, core: &mut Core, handle: u64) {
        let is_alone = self.partner(core, handle).is_none();
        let Some(leg) = self.legs.get_mut(handle) else { return };
        leg.to_be_held &= !is_alone;
        let wanted = leg.to_be_held;
        if leg.media.holds() == wanted || leg.stage != Stage::Up || leg.fax.is_some() {
            return;
        }
        let told = leg.media.direct();
        leg.media.set_holds(wanted);
        leg.media.set_direct(None);
        if self.send_reinvite(core, handle, &[] as &[(&str, String)]).is_err()
            && let Some(leg) = self.legs.get_mut(handle)
        {
            leg.media.set_holds(!wanted);
            leg.media.set_direct(told);
        }
    }
    /// Both of a pair are looked at again.
    fn unsettle_both(&mut self, core: &Core, handle: u64) {
        self.unsettle(handle);
        if let Some(partner) = self.partner(core, handle) {
            self.unsettle(partner);
        }
    }
    /// Offers a leg's peer another address. What cannot leave at the moment is tried again when what is in the way is over.
    fn tell_direct(&mut self, core: &mut Core, handle: u64, wanted: Option<Direct>) -> Result<(), Refused> {
        let leg = self.legs.get(handle).ok_or(Refused::Gone)?;
        let dialog = leg.dialog.ok_or(Refused::Gone)?;
        if leg.moving.again_at.is_some_and(|at| at > core.now) {
            return Err(Refused::Pending);
        }
        self.stack.may_offer(dialog)?;
        let config = self.config.clone();
        let leg = self.legs.get_mut(handle).ok_or(Refused::Gone)?;
        let (endpoint, told) = (leg.endpoint.clone(), leg.media.direct());
        leg.media.set_direct(wanted);
        let terms = Terms { config: &config, endpoint: &endpoint, signalling: leg.flow.remote.ip() };
        let (sdp, timer) = (leg.media.offer(&terms), leg.timer.ask());
        let by_update = endpoint.direct.is_some_and(|direct| direct.by_update) && leg.peer_updates;
        let sent = match by_update {
            true => self.send_update_with(core, dialog, &timer, Some(Body::sdp(&sdp))),
            false => self.send_offer(core, handle, &sdp, &timer),
        };
        if let Some(leg) = self.legs.get_mut(handle) {
            leg.moving.begun = true;
            match sent {
                Ok(()) => {
                    leg.moving.before.get_or_insert(told);
                }
                Err(_) => leg.media.set_direct(told),
            }
        }
        sent
    }
    /// The offer that was out is agreed on.
    pub(crate) fn direct_agreed(&mut self, handle: u64) {
        if let Some(leg) = self.legs.get_mut(handle) {
            leg.moving.before = None;
        }
    }
    /// The peer would not: what it knew before holds, and the media of this pair stays here.
    pub(crate) fn direct_refused(&mut self, core: &Core, handle: u64) {
        let Some(leg) = self.legs.get_mut(handle) else { return };
        if let Some(before) = leg.moving.before.take() {
            leg.media.set_direct(before);
            leg.moving.stays = true;
            self.unsettle_both(core, handle);
        }
    }
    /// An offer in an UPDATE met one of the peer's (RFC 3311 §5.2): what it knew before holds, until it is tried again.
    pub(crate) fn direct_crossed(&mut self, core: &mut Core, handle: u64) {
        // As after a 491 to a re-INVITE (RFC 3261 §14.1), in milliseconds: who owns the Call-ID waits longer.
        let random = core.random();
        let Some(leg) = self.legs.get_mut(handle) else { return };
        let Some(before) = leg.moving.before.take() else { return };
        leg.media.set_direct(before);
        let wait_ms = if leg.target.is_empty() { random % 200 * 10 } else { 2_100 + random % 190 * 10 };
        let at = core.now + core::time::Duration::from_millis(wait_ms);
        leg.moving.again_at = Some(at);
        self.look_again(handle, at);
    }

    /// Our answer to an offer of the peer inside the call. When its media may go to the other party, the answer says so at
    /// once.
    pub(crate) fn answer_offer(
        &mut self,
        core: &mut Core,
        handle: u64,
        offer: &[u8],
    ) -> Option<Result<(Vec<u8>, Negotiated), SdpError>> {
        self.add_passed(core, handle, offer);
        let config = self.config.clone();
        let leg = self.legs.get(handle)?;
        let endpoint = leg.endpoint.clone();
        let terms = Terms { config: &config, endpoint: &endpoint, signalling: leg.flow.remote.ip() };
        let media = leg.media.clone();
        if let Some(target) = self.direct_target(core, handle) {
            let leg = self.legs.get_mut(handle)?;
            leg.media.set_direct(Some(target));
            if let Ok(answered) = leg.media.answer(offer, &terms)
                && self.direct_target(core, handle) == Some(target)
            {
                let leg = self.legs.get_mut(handle)?;
                (leg.moving.spared, leg.moving.begun) = (None, true);
                return Some(Ok(answered));
            }
        }
        let partner = self.partner(core, handle);
        let leg = self.legs.get_mut(handle)?;
        let told = media.direct();
        // One that holds or takes up again goes on sending to the other party, who alone is told of music.
        let is_held = |leg: &Leg| leg.media.agreed().is_some_and(|agreed| agreed.held);
        if let Some(direct) = told.filter(|_| partner.is_some() && leg.moving.partner == partner) {
            let was_held = is_held(leg);
            leg.media = media.clone();
            if let Ok((bytes, agreed)) = leg.media.answer(offer, &terms)
                && (agreed.held || was_held)
                && agreed.primary().is_some_and(|sent| sent.format == direct.format)
            {
                return Some(Ok((bytes, agreed)));
            }
        }
        leg.media = media;
        leg.media.set_direct(None);
        let answered = leg.media.answer(offer, &terms);
        if answered.is_err() {
            leg.media.set_direct(told);
            self.plan_passed(core, handle, false);
        }
        Some(answered)
    }
}

impl SipDriver {
    /// Two who talk and send different formats, though both have agreed to the same: one is asked to take what the other sends,
    /// so that nothing is transcoded. That is the one that did not choose last, or else the one that called. Once for each
    /// format: who will not is left in peace.
    fn settle_format(&mut self, core: &mut Core, handle: u64) {
        let Some(partner) = self.partner(core, handle) else {
            return self.legs.get_mut(handle).map_or((), |leg| leg.adapted = None);
        };
        let (Some(leg), Some(other)) = (self.legs.get(handle), self.legs.get(partner)) else { return };
        let follows = match (leg.chose, other.chose) {
            (false, true) => true,
            (true, false) => false,
            (false, false) | (true, true) => leg.target.is_empty() && !other.target.is_empty(),
        };
        let (Some(own), Some(wanted)) = (leg.sends(), other.sends()) else { return };
        // From one law of G.711 to the other there is a table, and both sound alike.
        let is_law = |format| matches!(format, FormatId::ULAW | FormatId::ALAW);
        let is_cheap = own == wanted || is_law(own) && is_law(wanted);
        let takes = leg.taken.contains(wanted)
            || leg.media.agreed().is_some_and(|agreed| agreed.formats().contains(wanted));
        if !follows || is_cheap || leg.adapted == Some(wanted) || !takes {
            return;
        }
        let Some(leg) = self.legs.get_mut(handle) else { return };
        leg.media.lead(Some(wanted));
        if self.send_reinvite(core, handle, &[] as &[(&str, String)]).is_ok()
            && let Some(leg) = self.legs.get_mut(handle)
        {
            leg.adapted = Some(wanted);
        }
    }
    /// A leg's peer has chosen its format by an offer: the other party is asked to follow, not this one.
    pub(crate) fn has_chosen(&mut self, core: &Core, handle: u64) {
        let partner = self.partner(core, handle);
        for (handle, chose) in [(Some(handle), true), (partner, false)] {
            if let Some(leg) = handle.and_then(|handle| self.legs.get_mut(handle)) {
                (leg.chose, leg.adapted) = (chose, None);
                leg.turns = if chose { 0 } else { leg.turns };
            }
        }
    }
}

impl Leg {
    /// The format that it sends, while sound goes both ways.
    fn sends(&self) -> Option<FormatId> {
        let agreed = self.media.agreed()?;
        let flows = agreed.direction == base::Direction::SendRecv && !agreed.held;
        let is_up = self.stage == Stage::Up && self.dialog.is_some() && self.fax.is_none();
        (flows && is_up).then(|| agreed.primary())?.map(|sent| sent.format)
    }
}

/// Whether an address means something in its own network only (RFC 1918, RFC 6598, RFC 4193): nobody outside is told of it.
fn is_inside(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [first, second, ..] = ip.octets();
            ip.is_private() || ip.is_loopback() || ip.is_link_local() || (first == 100 && second & 0xc0 == 64)
        }
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_loopback() || ip.is_unicast_link_local(),
    }
}
