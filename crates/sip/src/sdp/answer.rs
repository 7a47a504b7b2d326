//! Offer and answer (RFC 3264) for one audio stream, and streams beside it that are passed through ([`PassedPlace`]); further
//! streams are declined in their places.

use core::net::{IpAddr, SocketAddr};
use std::io::Write as _;

use base::{Direction, FormatId, FormatSet, MAX_RX_PAYLOADS, RxPayload, SrtpKeys};
use zeroize::Zeroizing;

use super::crypto::{Crypto, Line, write_keys};
use super::passed::{Kind, NegotiatedPassed, PassedPlace, slots};
use super::payload::{Meaning, Payloads};
use super::{
    Address, CryptoFlaw, Elsewhere, FaxStream, FaxTerms, Feedback, Local, MAX_STREAM_FORMATS, MAX_STREAMS,
    Session, Stream,
};
use crate::header::lex::{number, split_once, trim};
use crate::message::Status;
use crate::write::push_clean;

/// Packet lengths the media plane sends, milliseconds.
const PTIME_MS: core::ops::RangeInclusive<u8> = 10..=60;

/// Why a description leads to no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdpError {
    /// It cannot be read.
    Malformed,
    /// No audio stream, or none with a format that we allow.
    NotAcceptable,
    /// The answer to our offer refuses the stream.
    Refused,
    /// An answer without an offer of ours.
    NoOffer,
    /// The peer wants plain RTP where SRTP is asked for.
    Plain,
    /// The peer wants SRTP where it is not switched on.
    Encrypted,
    /// The peer's SRTP cannot be used.
    Crypto(CryptoFlaw),
}

impl SdpError {
    /// The status that refuses a request with such an offer.
    pub const fn status(self) -> Status {
        match self {
            Self::Malformed | Self::NoOffer => Status::BAD_REQUEST,
            Self::NotAcceptable | Self::Refused | Self::Plain | Self::Encrypted | Self::Crypto(_) => {
                Status::NOT_ACCEPTABLE_HERE
            }
        }
    }
}

impl core::fmt::Display for SdpError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Crypto(flaw) => return write!(f, "the peer's SRTP cannot be used: {flaw}"),
            Self::Malformed => "session description cannot be read",
            Self::NotAcceptable => "no audio stream with a format that is allowed here",
            Self::Refused => "peer refused the audio stream",
            Self::NoOffer => "answer without an offer",
            Self::Plain => "the peer wants plain RTP, and media_encryption asks for SRTP",
            Self::Encrypted => {
                "the peer wants SRTP with keys in the description, and media_encryption is not sdes"
            }
        })
    }
}
impl std::error::Error for SdpError {}

/// A format and the payload type the peer wants it under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendFormat {
    /// Format.
    pub format: FormatId,
    /// Payload type.
    pub payload: u8,
}

/// What offer and answer agreed on: all a driver needs for a [`base::Plan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// Where the peer wants RTP; `None` on the old form of hold (`c=0.0.0.0`), for a name, and for an ended stream.
    pub remote: Option<SocketAddr>,
    /// Where the peer wants RTCP; equal to `remote` with `rtcp_mux`.
    pub remote_rtcp: Option<SocketAddr>,
    /// The peer's name and port when `c=` holds a name instead of an address.
    pub remote_name: Option<(Box<str>, u16)>,
    /// RTP and RTCP share a port.
    pub rtcp_mux: bool,
    /// What we may send, most preferred first; empty where the session has no audio.
    pub send: Vec<SendFormat>,
    /// What may arrive; entries after the last are `None`.
    pub receive: [Option<RxPayload>; MAX_RX_PAYLOADS],
    /// Milliseconds a packet that we send.
    pub ptime_ms: u8,
    /// Payload type and clock for digits that we send; `None` when the peer takes none.
    pub dtmf: Option<(u8, u32)>,
    /// Which way audio flows, from our side.
    pub direction: Direction,
    /// The peer put us on hold: `sendonly`, `inactive` or `c=0.0.0.0`.
    pub held: bool,
    /// What the peer wrote in `a=fmtp` for the first format to send.
    pub fmtp: Option<Box<[u8]>>,
    /// What SRTP is sealed with; `None` is plain RTP.
    pub keys: Option<Box<SrtpKeys>>,
    /// The streams that are passed through, by their slots; `None` where one is declined.
    pub passed: Vec<Option<NegotiatedPassed>>,
}

impl Negotiated {
    /// The format we send and its payload type.
    pub fn primary(&self) -> Option<SendFormat> {
        self.send.first().copied()
    }
    /// Every format agreed on, most preferred first.
    pub fn formats(&self) -> FormatSet {
        self.send.iter().map(|send| send.format).collect()
    }
}

/// A stream line of the session so far; kept because a stream never leaves its place (RFC 3264 §8).
#[derive(Debug, Clone)]
enum Place {
    /// Ours: audio, or fax instead of it.
    Served,
    /// Video, or further audio, which is passed through.
    Passed(Box<PassedPlace>),
    /// Kind, protocol and formats of a declined stream.
    Declined(Box<[u8]>),
}

/// The offer and answer state of one dialog. A forked INVITE clones it, one for each early dialog.
#[derive(Debug, Clone)]
pub struct Negotiator {
    id: u64,
    version: u64,
    /// Our last description from `s=` on, to know whether it changed.
    last: Zeroizing<Vec<u8>>,
    places: Vec<Place>,
    /// What every payload type of the session has meant.
    used: Payloads,
    /// Payload types of our offer, from when it was made.
    offered: Option<Payloads>,
    /// Protocol of the stream, as the peer spelled it.
    protocol: Box<[u8]>,
    crypto: Crypto,
    current: Option<Negotiated>,
}

impl Negotiator {
    /// A new session; `id` is random (RFC 8866 §5.2), below 2^63 for peers that read it as signed.
    pub fn new(id: u64) -> Self {
        Self {
            id: id >> 1,
            version: id >> 1,
            last: Zeroizing::default(),
            places: Vec::new(),
            used: Payloads::default(),
            offered: None,
            protocol: b"RTP/AVP".as_slice().into(),
            crypto: Crypto::default(),
            current: None,
        }
    }
    /// The last agreement.
    pub fn current(&self) -> Option<&Negotiated> {
        self.current.as_ref()
    }

    /// Appends an offer to `out`: the first of a session, or a new one for a change.
    pub fn offer(&mut self, local: &Local<'_>, out: &mut Vec<u8>) {
        if self.places.is_empty() {
            self.places.push(Place::Served);
            let is_secure = local.encryption.is_some_and(|wanted| !wanted.optimistic && !wanted.force_avp);
            let profile: &[u8] = match (is_secure, local.feedback.is_some()) {
                (false, false) => b"RTP/AVP",
                (false, true) => b"RTP/AVPF",
                (true, false) => b"RTP/SAVP",
                (true, true) => b"RTP/SAVPF",
            };
            self.protocol = profile.into();
        }
        let payloads = Payloads::offered(&local.formats, local.telephone_event, &self.used);
        for (payload, meaning) in payloads.iter() {
            self.used.push(payload, meaning);
        }
        // A session that was agreed on as plain RTP stays that.
        let is_plain = self.current.as_ref().is_some_and(|agreed| agreed.keys.is_none());
        let lines = self.crypto.offer(local.encryption.as_ref().filter(|_| !is_plain)).to_vec();
        self.offer_passed(local, is_plain);
        let audio = Audio {
            payloads: &payloads,
            direction: local.direction,
            rtcp_mux: local.rtcp_mux,
            crypto: &lines,
            to_edge: local.encryption.is_some_and(|wanted| wanted.to_edge),
        };
        self.describe(local, &Content::Audio(audio), out);
        self.offered = Some(payloads);
    }

    /// Sets out what our offer says of the streams that are passed through. Those that the session does not have yet follow
    /// the others, and a declined one may come back in its place (RFC 3264 §8.1).
    fn offer_passed(&mut self, local: &Local<'_>, is_plain: bool) {
        let is_wanted = |slot: &usize| local.passed.get(*slot).is_some_and(|own| !own.formats.is_empty());
        let mut free = Kind::ALL.map(Kind::slots);
        for place in &mut self.places {
            let Some((kind, protocol)) = place.passes() else { continue };
            let Some(slot) = free.get_mut(kind as usize).and_then(Iterator::next) else { continue };
            if let Place::Declined(_) = place
                && is_wanted(&slot)
            {
                let stream = PassedPlace::new(slot, protocol);
                *place = Place::Passed(Box::new(stream));
            }
        }
        for slot in free.into_iter().flat_map(|free| free.take_while(is_wanted)) {
            if self.places.len() < MAX_STREAMS {
                self.places.push(Place::Passed(Box::new(PassedPlace::new(slot, &self.protocol))));
            }
        }
        for place in &mut self.places {
            if let Place::Passed(stream) = place {
                stream.offer(local, is_plain);
            }
        }
    }
    /// The places of an offer's streams, of which the audio at `served` is served, with our answer to those that are passed
    /// through.
    fn answer_passed(
        &self,
        session: &Session<'_>,
        served: Option<usize>,
        local: &Local<'_>,
    ) -> (Vec<Place>, Vec<Option<NegotiatedPassed>>) {
        let mut places = places(session, served);
        let mut agreed = Vec::new();
        for (slot, index, stream) in slots(session, served) {
            if slot >= local.passed.len() {
                continue;
            }
            let before = match self.places.get(index) {
                Some(Place::Passed(before)) if before.slot == slot => (**before).clone(),
                _ => PassedPlace::new(slot, stream.protocol),
            };
            let (place, negotiated) = before.answer(session, stream, local).unzip();
            if let (Some(place), Some(found)) = (place, places.get_mut(index)) {
                *found = Place::Passed(Box::new(place));
            }
            put(&mut agreed, slot, negotiated);
        }
        (places, agreed)
    }

    /// Takes the peer's offer and appends our answer to `out`; on an error nothing of the session changes.
    pub fn answer(
        &mut self,
        offer: &[u8],
        local: &Local<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Negotiated, SdpError> {
        let session = Session::parse(offer).ok_or(SdpError::Malformed)?;
        let none = Payloads::default();
        let mut crypto = self.crypto.clone();
        let mut flaw = None;
        let mut plain = None;
        let mut acceptable = None;
        for (at, stream) in session.streams.iter().enumerate().filter(|(_, stream)| is_audio(stream)) {
            let common = common(&Payloads::of(stream, &none), local);
            let suits = local.feedback != Some(Feedback::Required) || has_feedback(stream.protocol);
            if stream.port == 0 || !common.has_audio() || !suits {
                continue;
            }
            match secured(&mut crypto, stream, local) {
                Ok(Some(keys)) => {
                    acceptable = Some((at, stream, common, Some(keys)));
                    break;
                }
                // Encrypted ones further on are better.
                Ok(None) => plain = plain.or(Some((at, stream, common, None))),
                Err(why) => flaw = flaw.or(Some(why)),
            }
        }
        let Some((at, stream, common, secured)) = acceptable.or(plain) else {
            if local.without_audio {
                return Ok(self.answer_without_audio(&session, local, out));
            }
            return flaw.map_or_else(|| self.answer_without_stream(&session, local, out), Err);
        };
        self.crypto = crypto;
        self.begin_as(&session);
        let (places, passed) = self.answer_passed(&session, Some(at), local);
        self.places = places;
        self.protocol = stream.protocol.into();
        let rtcp_mux = local.rtcp_mux && stream.attribute(b"rtcp-mux").is_some();
        let mut agreed = agree(&session, stream, &common, &common, local, rtcp_mux);
        let (line, keys) = secured.unzip();
        agreed.keys = keys.map(Box::new);
        agreed.passed = passed;
        for (payload, meaning) in common.iter() {
            self.used.push(payload, meaning);
        }
        let audio = Audio {
            payloads: &common,
            direction: agreed.direction,
            rtcp_mux,
            crypto: line.as_slice(),
            to_edge: false,
        };
        self.describe(local, &Content::Audio(audio), out);
        self.offered = None;
        self.current = Some(agreed.clone());
        Ok(agreed)
    }

    /// A session that the peer has begun keeps the id that it gave: answers are told apart by their address, and peers
    /// find them by the id.
    fn begin_as(&mut self, session: &Session<'_>) {
        let Some(origin) = session.origin.filter(|_| self.last.is_empty()) else { return };
        // Below 2^63 for peers that read them as signed.
        let signed = |value: u64| i64::try_from(value).is_ok();
        let version = origin.version.and_then(|version| version.checked_add(1));
        if let (Some(id), Some(version)) = (number(origin.id), version)
            && signed(id)
            && signed(version)
        {
            (self.id, self.version) = (id, version);
        }
    }

    /// A session may have video alone (RFC 3264 §6): its audio is declined, and goes nowhere.
    fn answer_without_audio(
        &mut self,
        session: &Session<'_>,
        local: &Local<'_>,
        out: &mut Vec<u8>,
    ) -> Negotiated {
        self.begin_as(session);
        let (places, passed) = self.answer_passed(session, None, local);
        self.places = places;
        let agreed = Negotiated {
            remote: None,
            remote_rtcp: None,
            remote_name: None,
            rtcp_mux: false,
            send: Vec::new(),
            receive: [None; MAX_RX_PAYLOADS],
            ptime_ms: local.ptime_ms,
            dtmf: None,
            direction: Direction::Inactive,
            held: false,
            fmtp: None,
            keys: None,
            passed,
        };
        self.describe(local, &Content::Beside, out);
        self.offered = None;
        self.current = Some(agreed.clone());
        agreed
    }

    /// A later offer may end all streams by port 0, and a session without streams goes on (RFC 3264 §8.2). One that wants
    /// another kind of stream instead of audio, such as T.38, is refused, so that the audio goes on.
    fn answer_without_stream(
        &mut self,
        session: &Session<'_>,
        local: &Local<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Negotiated, SdpError> {
        let ended = session.streams.iter().all(|stream| stream.port == 0);
        let Some(mut agreed) = self.current.clone().filter(|_| ended && !session.streams.is_empty()) else {
            return Err(SdpError::NotAcceptable);
        };
        agreed.remote = None;
        agreed.remote_rtcp = None;
        agreed.remote_name = None;
        agreed.direction = Direction::Inactive;
        agreed.held = true;
        agreed.passed = Vec::new();
        self.places = places(session, None);
        self.describe(local, &Content::Ended, out);
        self.current = Some(agreed.clone());
        Ok(agreed)
    }

    /// Takes the answer to our last offer. A repeated answer (183, then 200) may be given again.
    pub fn accept_answer(&mut self, answer: &[u8], local: &Local<'_>) -> Result<Negotiated, SdpError> {
        let offered = self.offered.as_ref().ok_or(SdpError::NoOffer)?;
        let session = Session::parse(answer).ok_or(SdpError::Malformed)?;
        let at = self.places.iter().position(|place| matches!(place, Place::Served)).unwrap_or(0);
        // Peers that drop declined streams from their answers shift the rest: the first audio stream is then meant.
        let served = Some(at)
            .filter(|at| session.streams.get(*at).is_some_and(is_audio))
            .or_else(|| session.streams.iter().position(is_audio));
        let stream = served.and_then(|at| session.streams.get(at)).ok_or(SdpError::Malformed)?;
        if stream.port == 0 {
            return Err(SdpError::Refused);
        }
        let mut theirs = Payloads::of(stream, offered);
        if local.own_order {
            theirs.sort_by(&local.formats);
        }
        let mut send = Payloads::default();
        let mut receive = Payloads::default();
        for (payload, meaning) in theirs.iter() {
            let agreed = match meaning {
                Meaning::Audio(format) => {
                    offered.agreed(format).map(|(ours, format)| (ours, Meaning::Audio(format)))
                }
                Meaning::Event(_) => offered.payload(meaning).map(|ours| (ours, meaning)),
            };
            if let Some((ours, meaning)) = agreed {
                send.push(payload, meaning);
                receive.push(ours, meaning);
            }
        }
        if !send.has_audio() {
            return Err(SdpError::NotAcceptable);
        }
        // Some peers send under the number of their answer instead of that of our offer.
        for (payload, meaning) in send.iter() {
            if offered.meaning(payload).is_none() {
                receive.push(payload, meaning);
            }
        }
        let keys = self.crypto.accept(stream).map_err(SdpError::Crypto)?;
        // A peer that takes the profile without a key has not understood what it takes.
        let must = self.crypto.is_offered() && local.encryption.is_some_and(|wanted| !wanted.optimistic);
        if keys.is_none() && (must || is_secure(stream.protocol)) {
            return Err(SdpError::Plain);
        }
        let rtcp_mux = local.rtcp_mux && stream.attribute(b"rtcp-mux").is_some();
        let mut agreed = agree(&session, stream, &send, &receive, local, rtcp_mux);
        agreed.keys = keys.map(Box::new);
        agreed.passed = self.accept_passed(&session, served, local);
        self.current = Some(agreed.clone());
        Ok(agreed)
    }
    /// What the answer says of the streams to be passed through that we offered.
    fn accept_passed(
        &mut self,
        session: &Session<'_>,
        served: Option<usize>,
        local: &Local<'_>,
    ) -> Vec<Option<NegotiatedPassed>> {
        let mut agreed = Vec::new();
        let found: Vec<_> = slots(session, served).collect();
        for (index, place) in self.places.iter_mut().enumerate() {
            let Place::Passed(own) = place else { continue };
            let fits = |slot: usize| Kind::of_slot(slot) == own.kind();
            let here = found.iter().find(|(slot, at, _)| *at == index && fits(*slot));
            let shifted = || found.iter().find(|(slot, ..)| *slot == own.slot);
            let stream = here.or_else(shifted).map(|(_, _, stream)| *stream).filter(|_| own.is_said());
            let taken = stream.and_then(|stream| own.accept(session, stream, local));
            put(&mut agreed, own.slot, taken);
        }
        agreed
    }

    /// Appends a description and counts the version up when it differs from the last (RFC 3264 §8).
    fn describe(&mut self, local: &Local<'_>, content: &Content<'_>, out: &mut Vec<u8>) {
        let address = local.elsewhere.map_or(local.address, |elsewhere| elsewhere.rtp.ip());
        let family = family(address);
        let mut text = Vec::with_capacity(512);
        // Writing to a Vec cannot fail.
        text.extend_from_slice(b"s=");
        push_clean(
            &mut text,
            if local.session_name.is_empty() { "-" } else { local.session_name }.as_bytes(),
        );
        write!(text, "\r\nc=IN {family} {address}\r\nt=0 0\r\n").ok();
        for place in &self.places {
            match (place, content) {
                (Place::Served, Content::Audio(content)) => content.write(&self.protocol, local, &mut text),
                (Place::Served, Content::Fax(terms)) => terms.write(local.port, &mut text),
                (Place::Passed(stream), Content::Audio(_) | Content::Beside) => {
                    stream.write(Some(local), &mut text);
                }
                (Place::Passed(stream), Content::Fax(_) | Content::Ended) => stream.write(None, &mut text),
                (Place::Served, Content::Ended | Content::Beside) => {
                    text.extend_from_slice(b"m=audio 0 ");
                    push_clean(&mut text, &self.protocol);
                    text.extend_from_slice(b" 0\r\n");
                }
                (Place::Declined(line), _) => push_declined(&mut text, line),
            }
        }
        if text != *self.last {
            self.version += u64::from(!self.last.is_empty());
            self.last = Zeroizing::new(text);
        }
        self.repeat(local, out);
    }

    /// Appends an offer of fax in the place of the audio (ITU-T T.38 annex D, RFC 3264 §8.3.3).
    pub fn offer_fax(&mut self, terms: &FaxTerms, local: &Local<'_>, out: &mut Vec<u8>) {
        self.describe(local, &Content::Fax(terms), out);
    }
    /// Appends our answer to an offer that has this fax stream.
    pub fn answer_fax(
        &mut self,
        offer: &[u8],
        stream: &FaxStream,
        terms: &FaxTerms,
        local: &Local<'_>,
        out: &mut Vec<u8>,
    ) {
        if let Some(session) = Session::parse(offer) {
            self.places = places(&session, Some(stream.place));
        }
        self.describe(local, &Content::Fax(terms), out);
    }

    /// Appends our last description as it was, for a response that says it again; false when there is none.
    pub fn repeat(&self, local: &Local<'_>, out: &mut Vec<u8>) -> bool {
        if self.last.is_empty() {
            return false;
        }
        let (family, address) = (family(local.address), local.address);
        out.extend_from_slice(b"v=0\r\no=");
        let owner = if local.owner.is_empty() { "-" } else { local.owner };
        // A blank would end the name.
        out.extend(owner.bytes().map(|b| if b <= b' ' { b'_' } else { b }));
        write!(out, " {} {} IN {family} {address}\r\n", self.id, self.version).ok();
        out.extend_from_slice(&self.last);
        true
    }
}

impl Place {
    /// What a stream in this place carries that could be passed through, and its profile.
    fn passes(&self) -> Option<(Kind, &[u8])> {
        match self {
            Self::Served => None,
            Self::Passed(stream) => Some((stream.kind(), stream.protocol())),
            Self::Declined(line) => {
                let (kind, rest) = split_once(line, b'\n');
                let protocol = split_once(rest?, b'\n').0;
                Kind::of(kind, protocol).map(|kind| (kind, protocol))
            }
        }
    }
}

/// Notes what was agreed on for a slot.
fn put(agreed: &mut Vec<Option<NegotiatedPassed>>, slot: usize, negotiated: Option<NegotiatedPassed>) {
    agreed.resize(agreed.len().max(slot + 1), None);
    if let Some(place) = agreed.get_mut(slot) {
        *place = negotiated;
    }
}

pub(super) const fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IP4" } else { "IP6" }
}

fn is_audio(stream: &Stream<'_>) -> bool {
    stream.kind.eq_ignore_ascii_case(b"audio") && is_rtp(stream.protocol)
}

/// Whether the profile is one of RTP.
pub(super) fn is_rtp(protocol: &[u8]) -> bool {
    [&b"RTP/AVP"[..], b"RTP/AVPF", b"RTP/SAVP", b"RTP/SAVPF"]
        .iter()
        .any(|name| protocol.eq_ignore_ascii_case(name))
}

/// Whether the profile says that packets are SRTP (RFC 3711 §12, RFC 5124).
pub(super) fn is_secure(protocol: &[u8]) -> bool {
    protocol.eq_ignore_ascii_case(b"RTP/SAVP") || protocol.eq_ignore_ascii_case(b"RTP/SAVPF")
}

/// Whether the profile has feedback (RFC 4585 §4, RFC 5124).
fn has_feedback(protocol: &[u8]) -> bool {
    protocol.eq_ignore_ascii_case(b"RTP/AVPF") || protocol.eq_ignore_ascii_case(b"RTP/SAVPF")
}

/// How an offered stream is secured; `None` when it is plain and may be.
pub(super) fn secured(
    crypto: &mut Crypto,
    stream: &Stream<'_>,
    local: &Local<'_>,
) -> Result<Option<(Line, SrtpKeys)>, SdpError> {
    let must_be = is_secure(stream.protocol);
    let Some(encryption) = &local.encryption else {
        // Keys beside a plain profile are an offer that need not be taken.
        return if must_be { Err(SdpError::Encrypted) } else { Ok(None) };
    };
    match crypto.answer(stream, encryption) {
        Ok(Some(secured)) => Ok(Some(secured)),
        Ok(None) if must_be => Err(SdpError::Crypto(CryptoFlaw::Missing)),
        Ok(None) | Err(_) if encryption.optimistic && !must_be => Ok(None),
        Ok(None) => Err(SdpError::Plain),
        Err(flaw) => Err(SdpError::Crypto(flaw)),
    }
}

fn places(session: &Session<'_>, audio: Option<usize>) -> Vec<Place> {
    let line = |stream: &Stream<'_>| {
        let formats = if stream.formats.is_empty() { b"0" } else { stream.formats };
        // A separator that cannot be part of any of them keeps them apart. The address of a line that is declined already is
        // said again, too.
        let own = if stream.port == 0 { stream.connection_line().unwrap_or_default() } else { b"" };
        [stream.kind, b"\n", stream.protocol, b"\n", formats, b"\n", own].concat().into()
    };
    let place = |(at, stream)| if Some(at) == audio { Place::Served } else { Place::Declined(line(stream)) };
    session.streams.iter().enumerate().map(place).collect()
}

/// A declined stream keeps kind, protocol and formats, and says port 0 (RFC 3264 §6).
pub(super) fn push_declined(text: &mut Vec<u8>, line: &[u8]) {
    let (kind, rest) = split_once(line, b'\n');
    let (protocol, rest) = split_once(rest.unwrap_or_default(), b'\n');
    let (formats, connection) = split_once(rest.unwrap_or_default(), b'\n');
    text.extend_from_slice(b"m=");
    push_clean(text, kind);
    text.extend_from_slice(b" 0 ");
    push_clean(text, protocol);
    text.push(b' ');
    push_clean(text, formats);
    text.extend_from_slice(b"\r\n");
    if let Some(connection) = connection.filter(|connection| !connection.is_empty()) {
        text.extend_from_slice(b"c=");
        push_clean(text, connection);
        text.extend_from_slice(b"\r\n");
    }
}

/// What the stream that is served carries.
enum Content<'a> {
    Audio(Audio<'a>),
    Fax(&'a FaxTerms),
    /// Nothing; what is passed through beside it goes on.
    Beside,
    /// Nothing: it ends.
    Ended,
}

struct Audio<'a> {
    payloads: &'a Payloads,
    direction: Direction,
    rtcp_mux: bool,
    crypto: &'a [Line],
    to_edge: bool,
}

impl Audio<'_> {
    fn write(&self, protocol: &[u8], local: &Local<'_>, text: &mut Vec<u8>) {
        let port = local.elsewhere.map_or(local.port, |elsewhere| elsewhere.rtp.port());
        write!(text, "m=audio {port} ").ok();
        push_clean(text, protocol);
        for (payload, _) in self.payloads.iter() {
            write!(text, " {payload}").ok();
        }
        text.extend_from_slice(b"\r\n");
        write_keys(self.crypto, self.to_edge, text);
        for (payload, meaning) in self.payloads.iter() {
            match meaning {
                Meaning::Audio(format) => {
                    write_rtpmap(payload, format, text);
                    if let Some(fmtp) = format.fmtp() {
                        write!(text, "a=fmtp:{payload} {fmtp}\r\n").ok();
                    }
                }
                Meaning::Event(clock) => {
                    write!(text, "a=rtpmap:{payload} telephone-event/{clock}\r\na=fmtp:{payload} 0-16\r\n")
                        .ok();
                }
            }
        }
        let length = local.ptime_of(self.payloads.audio().next());
        if length > 0 {
            write!(text, "a=ptime:{length}\r\n").ok();
        }
        push_longest(self.payloads.audio(), text);
        if let Some(Elsewhere { rtp, rtcp: Some(rtcp) }) = local.elsewhere
            && (rtcp.ip() != rtp.ip() || Some(rtcp.port()) != rtp.port().checked_add(1))
        {
            write!(text, "a=rtcp:{} IN {} {}\r\n", rtcp.port(), family(rtcp.ip()), rtcp.ip()).ok();
        }
        if self.rtcp_mux {
            text.extend_from_slice(b"a=rtcp-mux\r\n");
        }
        text.extend_from_slice(direction_line(self.direction));
    }
}

/// Appends what a payload type stands for; Opus always says two channels (RFC 7587 §7).
pub(super) fn write_rtpmap(payload: u8, format: FormatId, text: &mut Vec<u8>) {
    let (name, clock) = (format.rtp_name(), format.rtp_clock());
    let channels = if name.eq_ignore_ascii_case("opus") { "/2" } else { "" };
    // Writing to a Vec cannot fail.
    write!(text, "a=rtpmap:{payload} {name}/{clock}{channels}\r\n").ok();
}

/// Appends the longest packet that all of these formats allow.
pub(super) fn push_longest(formats: impl Iterator<Item = FormatId>, text: &mut Vec<u8>) {
    if let Some(longest) = formats.map(FormatId::longest_ms).min() {
        write!(text, "a=maxptime:{longest}\r\n").ok();
    }
}

/// The attribute of a direction.
pub(super) const fn direction_line(direction: Direction) -> &'static [u8] {
    match direction {
        Direction::SendRecv => b"a=sendrecv\r\n",
        Direction::SendOnly => b"a=sendonly\r\n",
        Direction::RecvOnly => b"a=recvonly\r\n",
        Direction::Inactive => b"a=inactive\r\n",
    }
}

/// The formats of an offer that we allow, in the order of the answer, and telephone-event where its clock is used.
fn common(theirs: &Payloads, local: &Local<'_>) -> Payloads {
    let mut table = Payloads::default();
    let full = |table: &Payloads| local.single_format && table.has_audio();
    if local.prefer_remote {
        for (payload, meaning) in theirs.iter() {
            if let Meaning::Audio(format) = meaning
                && let Some(format) = local.formats.iter().find_map(|own| own.agreed(format))
                && table.agreed(format).is_none()
                && !full(&table)
            {
                table.push(payload, Meaning::Audio(format));
            }
        }
    } else {
        for format in local.formats.iter() {
            // The very format before one that would do.
            let exact = theirs.payload(Meaning::Audio(format)).map(|payload| (payload, format));
            if let Some((payload, format)) = exact.or_else(|| theirs.agreed(format))
                && table.agreed(format).is_none()
                && !full(&table)
            {
                table.push(payload, Meaning::Audio(format));
            }
        }
    }
    if !local.telephone_event {
        return table;
    }
    for (payload, meaning) in theirs.iter() {
        let used = |clock| table.iter().any(|(_, meaning)| clock_of(meaning) == Some(clock));
        if let Meaning::Event(clock) = meaning
            && (clock == super::payload::EVENT_CLOCK || used(clock))
            && table.payload(meaning).is_none()
        {
            table.push(payload, meaning);
        }
    }
    table
}

fn clock_of(meaning: Meaning) -> Option<u32> {
    match meaning {
        Meaning::Audio(format) => Some(format.rtp_clock()),
        Meaning::Event(_) => None,
    }
}

fn agree(
    session: &Session<'_>,
    stream: &Stream<'_>,
    send: &Payloads,
    receive: &Payloads,
    local: &Local<'_>,
    rtcp_mux: bool,
) -> Negotiated {
    let address = session.address(stream);
    let Reach { remote, direction, held } = reach(session, stream, local.direction);
    let send_formats: Vec<_> = send
        .iter()
        .filter_map(|(payload, meaning)| match meaning {
            Meaning::Audio(format) => Some(SendFormat { format, payload }),
            Meaning::Event(_) => None,
        })
        .collect();
    let primary = send_formats.first().copied();
    Negotiated {
        remote,
        remote_rtcp: if rtcp_mux { remote } else { rtcp_address(stream, remote) },
        remote_name: match address {
            Some(Address::Name(name)) => {
                core::str::from_utf8(name).ok().map(|name| (name.into(), stream.port))
            }
            _ => None,
        },
        rtcp_mux,
        receive: receive_table(receive),
        ptime_ms: ptime(session, stream, primary, local),
        dtmf: event_for(send, primary),
        direction,
        held,
        fmtp: primary.and_then(|primary| fmtp(stream, primary.payload)),
        keys: None,
        send: send_formats,
        passed: Vec::new(),
    }
}

/// Where a stream of the peer goes, and which way.
pub(super) struct Reach {
    pub(super) remote: Option<SocketAddr>,
    pub(super) direction: Direction,
    pub(super) held: bool,
}

/// What a peer's description and our own wish make of a stream.
pub(super) fn reach(session: &Session<'_>, stream: &Stream<'_>, wanted: Direction) -> Reach {
    let ip = match session.address(stream) {
        Some(Address::Ip(ip)) => Some(ip),
        _ => None,
    };
    let on_old_hold = ip.is_some_and(|ip| ip.is_unspecified());
    let theirs = session.direction(stream);
    let they_send = matches!(theirs, Direction::SendRecv | Direction::SendOnly);
    let they_receive = matches!(theirs, Direction::SendRecv | Direction::RecvOnly) && !on_old_hold;
    let we_send = matches!(wanted, Direction::SendRecv | Direction::SendOnly) && they_receive;
    let we_receive = matches!(wanted, Direction::SendRecv | Direction::RecvOnly) && they_send;
    Reach {
        remote: ip.filter(|ip| !ip.is_unspecified()).map(|ip| SocketAddr::new(ip, stream.port)),
        direction: match (we_send, we_receive) {
            (true, true) => Direction::SendRecv,
            (true, false) => Direction::SendOnly,
            (false, true) => Direction::RecvOnly,
            (false, false) => Direction::Inactive,
        },
        held: !they_receive,
    }
}

fn receive_table(payloads: &Payloads) -> [Option<RxPayload>; MAX_RX_PAYLOADS] {
    let mut table = [None; MAX_RX_PAYLOADS];
    // Digits are few and must find room; audio formats fill the rest in order.
    let is_event = |meaning: &Meaning| matches!(meaning, Meaning::Event(_));
    let events = payloads.iter().filter(|(_, meaning)| is_event(meaning)).take(MAX_RX_PAYLOADS / 3);
    let audio = payloads.iter().filter(|(_, meaning)| !is_event(meaning));
    let room = MAX_RX_PAYLOADS - events.clone().count();
    for (slot, (payload, meaning)) in table.iter_mut().zip(audio.take(room).chain(events)) {
        *slot = Some(match meaning {
            Meaning::Audio(format) => RxPayload::Audio(payload, format),
            Meaning::Event(clock) => RxPayload::Event(payload, clock),
        });
    }
    table
}

/// telephone-event at the clock of the audio, or else at 8 kHz, which many peers offer alone (RFC 4733 §2.1 wants the former).
fn event_for(send: &Payloads, primary: Option<SendFormat>) -> Option<(u8, u32)> {
    let clock = primary?.format.rtp_clock();
    [clock, super::payload::EVENT_CLOCK]
        .into_iter()
        .find_map(|clock| send.payload(Meaning::Event(clock)).map(|payload| (payload, clock)))
}

/// `a=rtcp:port [IN IP4 address]` (RFC 3605), or the port after that of RTP.
pub(super) fn rtcp_address(stream: &Stream<'_>, rtp: Option<SocketAddr>) -> Option<SocketAddr> {
    let rtp = rtp?;
    let next = rtp.port().checked_add(1).map(|port| SocketAddr::new(rtp.ip(), port));
    let Some(value) = stream.attribute(b"rtcp") else { return next };
    let mut words = super::words(value);
    let Some(port) =
        words.next().and_then(number).and_then(|port| u16::try_from(port).ok()).filter(|&p| p > 0)
    else {
        return next;
    };
    let ip: IpAddr = words.nth(2).and_then(crate::uri::parse_ip).unwrap_or(rtp.ip());
    Some(SocketAddr::new(ip, port))
}

fn ptime(session: &Session<'_>, stream: &Stream<'_>, primary: Option<SendFormat>, local: &Local<'_>) -> u8 {
    let read = |name: &[u8]| {
        let value = session.attribute(stream, name)?;
        // `20.0` and `20 ms` are written too.
        let digits = value.iter().position(|b| !b.is_ascii_digit()).unwrap_or(value.len());
        number(value.get(..digits)?).map(|ms| u8::try_from(ms).unwrap_or(u8::MAX))
    };
    let own = local.ptime_of(primary.map(|primary| primary.format));
    let wanted = read(b"ptime").filter(|_| local.use_remote_ptime).unwrap_or(own);
    let fmtp = primary.and_then(|primary| fmtp(stream, primary.payload));
    let least = primary.map_or(0, |primary| primary.format.least_ms(fmtp.as_deref().unwrap_or_default()));
    let wanted = wanted.max(least).min(read(b"maxptime").filter(|&ms| ms > 0).unwrap_or(u8::MAX));
    let step = primary.map_or(10, |primary| primary.format.packet_step_ms());
    let max = *PTIME_MS.end() / step * step;
    (wanted / step * step).clamp(*PTIME_MS.start().max(&step), max)
}

fn fmtp(stream: &Stream<'_>, payload: u8) -> Option<Box<[u8]>> {
    let fmtps = stream.attributes().filter(|(name, _)| *name == b"fmtp").take(MAX_STREAM_FORMATS);
    for (_, value) in fmtps {
        let (number_text, rest) = split_once(value, b' ');
        if number(number_text) == Some(u64::from(payload)) {
            return rest.map(|rest| trim(rest).into());
        }
    }
    None
}

#[cfg(test)]
mod secured_tests;
#[cfg(test)]
mod tests;
