//! The media session of a leg: offer and answer on one side, the stream's plan on the other.

use core::net::{IpAddr, SocketAddr};

use ::sip::sdp::{FaxStream, FaxTerms, Local, Negotiated, Negotiator, SdpError, SendFormat};
use base::{
    DtmfMode, FormatId, FormatSet, Latch, MAX_RX_PAYLOADS, Plan, RxPayload, SrtpKeys, StreamId, Wishes,
};
use call::{Core, MediaRefused};

use super::config::{Config, Dtmf, Endpoint};
use super::direct::Direct;
use super::passed::{self, Passed};

/// Longest delay that the jitter buffer may build, milliseconds.
const JITTER_MAX_MS: u16 = 200;

/// How often what we send follows the peer within one agreement; one that changes on and on is not followed any more.
const FOLLOWS_MAX: u8 = 8;

/// One leg's session.
#[derive(Debug, Clone)]
pub(crate) struct Media {
    negotiator: Negotiator,
    /// Address that SDP names.
    advertised: IpAddr,
    /// Address that the stream is bound to.
    bound: IpAddr,
    port: u16,
    formats: FormatSet,
    telephone_event: bool,
    /// The format that the peer has changed to since the last agreement.
    followed: Option<FormatId>,
    follows: u8,
    /// What our descriptions say of the other party instead of us.
    direct: Option<Direct>,
    /// We hold the peer.
    holds: bool,
    /// What our next offer begins with.
    lead: Option<FormatId>,
    /// Our next offer has all formats, also those that are not in use.
    offers_all: bool,
    /// Its peer has offered video that is taken, so that there need be no audio.
    pub(crate) without_audio: bool,
    /// Its streams that are passed through, by their slots.
    pub(crate) passed: Vec<Option<Passed>>,
    ssrc: u32,
    first_sequence: u16,
    first_timestamp: u32,
}

/// Everything a plan is made from besides the agreement.
pub(crate) struct Terms<'a> {
    pub(crate) config: &'a Config,
    pub(crate) endpoint: &'a Endpoint,
    /// Where signalling comes from: the only host that media may be learned from.
    pub(crate) signalling: IpAddr,
}

impl Media {
    /// A session that has not begun; randomness comes from the core.
    pub(crate) fn new(core: &mut Core, endpoint: &Endpoint, formats: FormatSet, advertised: IpAddr) -> Self {
        let random = core.random();
        let more = core.random();
        Self {
            negotiator: Negotiator::new(core.random()),
            advertised,
            bound: advertised,
            port: 0,
            formats,
            telephone_event: endpoint.dtmf.offers_events(),
            followed: None,
            follows: 0,
            direct: None,
            holds: false,
            lead: None,
            offers_all: false,
            without_audio: false,
            passed: Vec::new(),
            // The truncations take different bits of a random number.
            ssrc: random as u32,
            first_sequence: (more as u16) & 0x7fff,
            first_timestamp: (more >> 32) as u32,
        }
    }
    /// Opens the stream, without a peer yet.
    pub(crate) fn open(
        &mut self,
        core: &mut Core,
        local: IpAddr,
        terms: &Terms<'_>,
    ) -> Result<StreamId, MediaRefused> {
        let plan = self.plan(None, terms);
        let (stream, port) = core.services.media.open(local, plan)?;
        self.port = port;
        if !local.is_unspecified() {
            self.bound = local;
        }
        Ok(stream)
    }
    /// Our end of the audio, as descriptions tell it.
    pub(crate) fn own_address(&self) -> SocketAddr {
        SocketAddr::new(self.advertised, self.port)
    }
    /// From the next description on digits travel so.
    pub(crate) fn set_dtmf(&mut self, mode: Dtmf) {
        self.telephone_event = mode.offers_events();
    }
    /// Our end of RTCP.
    pub(crate) fn rtcp_address(&self) -> SocketAddr {
        let shared = self.agreed().is_some_and(|agreed| agreed.rtcp_mux);
        SocketAddr::new(self.bound, if shared { self.port } else { self.port.saturating_add(1) })
    }
    fn local<'a>(&self, terms: &'a Terms<'_>, answering: bool) -> Local<'a> {
        let codecs = &terms.endpoint.codecs;
        let formats = self.direct.map_or(self.formats, |direct| core::iter::once(direct.format).collect());
        Local {
            direction: if self.holds { base::Direction::SendOnly } else { base::Direction::SendRecv },
            elsewhere: self.direct.map(|direct| direct.at),
            prefer_remote: answering && !codecs.answers_in_own_order(),
            own_order: codecs.reads_in_own_order(),
            single_format: answering && codecs.answers_one(),
            rtcp_mux: self.direct.map_or(terms.endpoint.rtcp_mux, |direct| direct.mux),
            telephone_event: self.telephone_event && self.direct.is_none_or(|direct| direct.events),
            ptime_ms: terms.endpoint.ptime_ms,
            packets: &terms.endpoint.packets,
            use_remote_ptime: terms.endpoint.use_ptime,
            encryption: terms.endpoint.encryption,
            feedback: terms.endpoint.feedback,
            without_audio: self.without_audio,
            owner: &terms.endpoint.sdp_owner,
            session_name: &terms.endpoint.sdp_session,
            ..Local::new(formats, self.advertised, self.port)
        }
    }
    /// Our offer. One inside the call has the formats in use, so that nothing changes by it.
    pub(crate) fn offer(&mut self, terms: &Terms<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        let passed = passed::offered(&self.passed);
        let mut local = Local { passed: &passed, ..self.local(terms, false) };
        let used = self.agreed().filter(|_| !self.offers_all && self.direct.is_none());
        let used = used.map(Negotiated::formats).filter(|used| !used.is_empty());
        let lead = self.lead.filter(|format| local.formats.contains(*format));
        if used.is_some() || lead.is_some() {
            let rest = used.unwrap_or(local.formats);
            local.formats = lead.into_iter().chain(rest.iter()).collect();
        }
        self.negotiator.offer(&local, &mut out);
        out
    }
    /// Our answer to the peer's offer, and what was agreed.
    pub(crate) fn answer(
        &mut self,
        offer: &[u8],
        terms: &Terms<'_>,
    ) -> Result<(Vec<u8>, Negotiated), SdpError> {
        let mut out = Vec::with_capacity(512);
        let passed = passed::local(&self.passed);
        let local = Local { passed: &passed, ..self.local(terms, true) };
        let agreed = self.negotiator.answer(offer, &local, &mut out)?;
        self.begin();
        Ok((out, agreed))
    }
    /// The same with this format first. For an answer that has not left yet.
    pub(crate) fn answer_with(
        &mut self,
        first: FormatId,
        offer: &[u8],
        terms: &Terms<'_>,
    ) -> Result<Negotiated, SdpError> {
        let formats = core::iter::once(first).chain(self.formats.iter()).collect();
        let passed = passed::local(&self.passed);
        let local = Local { formats, prefer_remote: false, passed: &passed, ..self.local(terms, true) };
        self.negotiator.answer(offer, &local, &mut Vec::with_capacity(512))
    }
    /// The description that we gave last, once more; empty when there is none.
    pub(crate) fn repeat(&self, terms: &Terms<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        self.negotiator.repeat(&self.local(terms, true), &mut out);
        out
    }
    /// The peer's answer to our offer.
    pub(crate) fn accept(&mut self, answer: &[u8], terms: &Terms<'_>) -> Result<Negotiated, SdpError> {
        let passed = passed::local(&self.passed);
        let local = Local { passed: &passed, ..self.local(terms, false) };
        let agreed = self.negotiator.accept_answer(answer, &local)?;
        self.begin();
        Ok(agreed)
    }
    /// What is sent is what the new agreement has first.
    fn begin(&mut self) {
        (self.followed, self.follows, self.lead, self.offers_all) = (None, 0, None, false);
    }
    /// The peer sends this format from here on; whether what we send follows.
    pub(crate) fn follow(&mut self, format: FormatId, endpoint: &Endpoint) -> bool {
        let is_so_called = endpoint.g726_aal2 && format == FormatId::G726AAL2;
        let format = if is_so_called { FormatId::G726 } else { format };
        let Some(sent) = self.agreed().and_then(|agreed| self.sent(agreed)) else { return false };
        let is_agreed = self.agreed().is_some_and(|agreed| agreed.formats().contains(format));
        if endpoint.asymmetric_codec || !is_agreed || sent.format == format || self.follows == FOLLOWS_MAX {
            return false;
        }
        (self.followed, self.follows) = (Some(format), self.follows + 1);
        true
    }
    /// The format that is sent, and its payload type.
    fn sent(&self, agreed: &Negotiated) -> Option<SendFormat> {
        let followed = |send: &&SendFormat| Some(send.format) == self.followed;
        agreed.send.iter().find(followed).copied().or(agreed.primary())
    }
    /// Our offer of fax in the place of audio.
    pub(crate) fn offer_fax(&mut self, fax: &FaxTerms, terms: &Terms<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        self.direct = None;
        let local = self.local(terms, false);
        self.negotiator.offer_fax(fax, &local, &mut out);
        out
    }
    /// Our answer to an offer of fax.
    pub(crate) fn answer_fax(
        &mut self,
        offer: &[u8],
        stream: &FaxStream,
        fax: &FaxTerms,
        terms: &Terms<'_>,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        self.direct = None;
        let local = self.local(terms, true);
        self.negotiator.answer_fax(offer, stream, fax, &local, &mut out);
        out
    }
    /// The plan of the stream while it carries fax: no audio either way, and silence is no sign that anybody has gone.
    pub(crate) fn fax_plan(&self, fax: &FaxStream, terms: &Terms<'_>) -> Plan {
        let is_hidden = terms.endpoint.fax.is_some_and(|settings| settings.nat);
        Plan {
            remote: Some(fax.remote),
            latch: if is_hidden { Latch::Learn(terms.signalling) } else { self.latch(terms) },
            direction: base::Direction::Inactive,
            rtcp_interval_ms: 0,
            rtp_timeout_ms: 0,
            keepalive_ms: 0,
            ..self.plan(None, terms)
        }
    }
    /// The last agreement.
    pub(crate) fn agreed(&self) -> Option<&Negotiated> {
        self.negotiator.current()
    }
    /// Names another address in our descriptions; before the first one leaves.
    pub(crate) fn advertise(&mut self, address: IpAddr) {
        self.advertised = address;
    }
    /// Address that our descriptions name.
    pub(crate) fn advertised(&self) -> IpAddr {
        self.advertised
    }
    /// What our descriptions say of the other party instead of us.
    pub(crate) fn direct(&self) -> Option<Direct> {
        self.direct
    }
    /// Whether we hold the peer.
    pub(crate) fn holds(&self) -> bool {
        self.holds
    }
    /// Holds the peer from the next description on.
    pub(crate) fn set_holds(&mut self, holds: bool) {
        self.holds = holds;
    }
    /// What our next offer begins with instead of the format in use.
    pub(crate) fn lead(&mut self, format: Option<FormatId>) {
        self.lead = format;
    }
    /// What they say from here on.
    pub(crate) fn set_direct(&mut self, direct: Option<Direct>) {
        self.direct = direct;
    }
    /// The next offer has all formats.
    pub(crate) fn offer_all(&mut self) {
        self.offers_all = true;
    }
    /// Formats of our offers.
    pub(crate) fn formats(&self) -> FormatSet {
        self.formats
    }
    /// Chooses others for what is offered from here on.
    pub(crate) fn set_formats(&mut self, formats: FormatSet) {
        self.formats = formats;
    }
    /// The plan of the stream for an agreement; without one it sends nowhere and takes nothing.
    ///
    /// Nothing comes and nothing is to be sent while media goes elsewhere: silence is no sign that anybody has gone.
    pub(crate) fn plan(&self, agreed: Option<&Negotiated>, terms: &Terms<'_>) -> Plan {
        let here = u32::from(self.direct.is_none());
        let primary = agreed.and_then(|agreed| self.sent(agreed));
        let format = primary.map(|p| p.format).or(self.formats.first()).unwrap_or(FormatId::ULAW);
        let remote = agreed.and_then(|a| a.remote);
        let held = agreed.is_some_and(|a| a.held);
        let timeout = if held { terms.endpoint.rtp_timeout_hold } else { terms.endpoint.rtp_timeout };
        Plan {
            remote,
            remote_rtcp: agreed.and_then(|a| a.remote_rtcp),
            latch: self.latch(terms),
            relearn: true,
            format: packed(format, terms.endpoint),
            payload: primary.map_or(0, |p| p.payload),
            ptime_ms: agreed.map_or(terms.endpoint.ptime_ms, |a| a.ptime_ms),
            wishes: agreed
                .filter(|agreed| agreed.primary() == primary)
                .and_then(|agreed| agreed.fmtp.as_deref())
                .map_or_else(Wishes::default, |fmtp| Wishes::read(format, fmtp)),
            rx: agreed.map_or([None; MAX_RX_PAYLOADS], |agreed| {
                agreed.receive.map(|entry| match entry {
                    Some(RxPayload::Audio(payload, format)) => {
                        Some(RxPayload::Audio(payload, packed(format, terms.endpoint)))
                    }
                    other => other,
                })
            }),
            dtmf: dtmf(agreed, terms.endpoint.dtmf),
            direction: agreed.map_or(base::Direction::SendRecv, |a| a.direction),
            ssrc: self.ssrc,
            first_sequence: self.first_sequence,
            first_timestamp: self.first_timestamp,
            jitter_max_ms: JITTER_MAX_MS,
            rtcp_interval_ms: if self.direct.is_some() { 0 } else { terms.config.rtcp_interval_ms },
            rtp_timeout_ms: timeout.saturating_mul(1000 * here),
            keepalive_ms: terms.endpoint.rtp_keepalive.saturating_mul(1000 * here),
            marking: terms.endpoint.marking,
            keys: agreed.and_then(|agreed| self.sealed(agreed.keys.as_deref(), terms)),
            picture: base::PictureRequest::default(),
        }
    }
    /// The keys that were agreed on, used as the site wants.
    pub(crate) fn sealed(&self, keys: Option<&SrtpKeys>, terms: &Terms<'_>) -> Option<Box<SrtpKeys>> {
        let replay_protection = terms.config.srtp_replay_protection;
        keys.map(|keys| Box::new(SrtpKeys { replay_protection, ..keys.clone() }))
    }
    /// Its streams that are passed through, for the channel.
    pub(crate) fn passed_streams(&self) -> Vec<Option<StreamId>> {
        let mut ids: Vec<_> = self.passed.iter().map(|passed| passed.as_ref().map(Passed::stream)).collect();
        while ids.pop_if(|id| id.is_none()).is_some() {}
        ids
    }
    fn latch(&self, terms: &Terms<'_>) -> Latch {
        match (terms.endpoint.rtp_symmetric, terms.config.strict_rtp) {
            (true, _) => Latch::Learn(terms.signalling),
            (false, true) => Latch::Strict,
            (false, false) => Latch::Off,
        }
    }
}

/// The format as its packets come: some say G726-32 and pack it as AAL2 does.
fn packed(format: FormatId, endpoint: &Endpoint) -> FormatId {
    if endpoint.g726_aal2 && format == FormatId::G726 { FormatId::G726AAL2 } else { format }
}

/// How digits leave, by the endpoint's wish and what the peer takes.
fn dtmf(agreed: Option<&Negotiated>, wish: Dtmf) -> DtmfMode {
    let event = agreed.and_then(|a| a.dtmf).map(|(payload, clock)| DtmfMode::Rfc4733 { payload, clock });
    match wish {
        Dtmf::Rfc4733 => event.unwrap_or(DtmfMode::Signalling),
        Dtmf::Auto => event.unwrap_or(DtmfMode::Inband),
        Dtmf::AutoInfo => event.unwrap_or(DtmfMode::Signalling),
        Dtmf::Inband => DtmfMode::Inband,
        Dtmf::Info | Dtmf::None => DtmfMode::Signalling,
    }
}
