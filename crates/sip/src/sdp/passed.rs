//! Streams in offer and answer (RFC 3264) that are passed through: video, and further audio beside the one stream that is
//! served. Which formats a side has, what it says of them and what feedback it understands comes from the other party of the
//! call, and is told word by word.

use core::net::SocketAddr;
use std::io::Write as _;

use base::{AUDIO_SLOTS, Direction, FormatId, FormatSet, SrtpKeys, VIDEO_SLOTS};

use super::answer::{family, is_rtp, is_secure, push_declined, reach, rtcp_address, secured, write_rtpmap};
use super::crypto::{Crypto, Line, write_keys};
use super::payload::{Meaning, Payloads};
use super::{Local, MAX_STREAM_FORMATS, Session, Stream, words};
use crate::header::lex::{number, split_once, trim};
use crate::write::push_clean;

/// Dynamic payload types that our offers give out (RFC 3551 §6).
const DYNAMIC: core::ops::RangeInclusive<u8> = 96..=127;

/// What a stream carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Video,
    Audio,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Video, Self::Audio];

    pub(super) const fn of_slot(slot: usize) -> Self {
        if slot < VIDEO_SLOTS { Self::Video } else { Self::Audio }
    }
    /// Its slots.
    pub(super) const fn slots(self) -> core::ops::Range<usize> {
        match self {
            Self::Video => 0..VIDEO_SLOTS,
            Self::Audio => VIDEO_SLOTS..VIDEO_SLOTS + AUDIO_SLOTS,
        }
    }
    const fn word(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Audio => "audio",
        }
    }
    /// What a media line of this kind and profile carries, when that can be passed through.
    pub(super) fn of(kind: &[u8], protocol: &[u8]) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|own| kind.eq_ignore_ascii_case(own.word().as_bytes()));
        found.filter(|_| is_rtp(protocol))
    }
    fn of_stream(stream: &Stream<'_>) -> Option<Self> {
        Self::of(stream.kind, stream.protocol)
    }
}

/// The streams of a session that have a slot, with their places; `served` is that of the audio which is served.
pub(super) fn slots<'s, 'a>(
    session: &'s Session<'a>,
    served: Option<usize>,
) -> impl Iterator<Item = (usize, usize, &'s Stream<'a>)> {
    let mut next = Kind::ALL.map(Kind::slots);
    session.streams.iter().enumerate().filter_map(move |(index, stream)| {
        let kind = Kind::of_stream(stream).filter(|_| Some(index) != served)?;
        let slot = next.get_mut(kind as usize)?.next()?;
        Some((slot, index, stream))
    })
}

/// A format, with what one side says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedFormat {
    /// Format.
    pub format: FormatId,
    /// What stands behind the payload type in `a=fmtp`; `None`: nothing is said.
    pub fmtp: Option<Box<[u8]>>,
}

impl PassedFormat {
    /// A format of which nothing is said.
    pub const fn plain(format: FormatId) -> Self {
        Self { format, fmtp: None }
    }
}

/// Feedback about pictures that a side understands, of that which is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VideoFeedback {
    /// Packets that were lost (RFC 4585 §6.2.1).
    pub nack: bool,
    /// A picture was lost (RFC 4585 §6.3.1).
    pub pli: bool,
    /// A whole picture is wanted (RFC 5104 §4.3.1).
    pub fir: bool,
    /// The highest rate that gets through, as receivers estimate it (draft-alvestrand-rmcat-remb).
    pub remb: bool,
}

impl VideoFeedback {
    /// All that is passed on.
    pub const ALL: Self = Self { nack: true, pli: true, fir: true, remb: true };

    /// What both understand.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            nack: self.nack && other.nack,
            pli: self.pli && other.pli,
            fir: self.fir && other.fir,
            remb: self.remb && other.remb,
        }
    }
    const fn rows(self) -> [(bool, &'static str); 4] {
        [(self.nack, "nack"), (self.pli, "nack pli"), (self.fir, "ccm fir"), (self.remb, "goog-remb")]
    }
    /// What `a=rtcp-fb` says of a payload type (RFC 4585 §4.2).
    fn of(stream: &Stream<'_>, payload: u8) -> Self {
        let mut found = Self::default();
        let lines = stream.attributes().filter(|(name, _)| name.eq_ignore_ascii_case(b"rtcp-fb"));
        for (_, value) in lines.take(4 * MAX_STREAM_FORMATS) {
            let mut words = words(value);
            let about = words.next().unwrap_or_default();
            if about != b"*" && number(about) != Some(payload.into()) {
                continue;
            }
            let is =
                |word: Option<&[u8]>, wanted: &[u8]| word.is_some_and(|w| w.eq_ignore_ascii_case(wanted));
            let (kind, more) = (words.next(), words.next());
            found.nack |= is(kind, b"nack") && more.is_none();
            found.pli |= is(kind, b"nack") && is(more, b"pli");
            found.fir |= is(kind, b"ccm") && is(more, b"fir");
            found.remb |= is(kind, b"goog-remb");
        }
        found
    }
}

/// Our side of one stream that is passed through.
#[derive(Debug, Clone, Copy)]
pub struct LocalPassed<'a> {
    /// Formats in order of preference; none declines the stream. What nothing is said of is answered in the offer's words.
    pub formats: &'a [PassedFormat],
    /// RTP port; RTCP is one above unless multiplexed.
    pub port: u16,
    /// What we say that we understand, as far as the peer does.
    pub feedback: VideoFeedback,
    /// Which way it goes as our offers have it; while we hold the peer that comes first.
    pub direction: Direction,
}

/// What offer and answer agreed on for a stream that is passed through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NegotiatedPassed {
    /// Where the peer wants RTP; `None` on the old form of hold, and for a name.
    pub remote: Option<SocketAddr>,
    /// Where the peer wants RTCP; equal to `remote` with `rtcp_mux`.
    pub remote_rtcp: Option<SocketAddr>,
    /// RTP and RTCP share a port.
    pub rtcp_mux: bool,
    /// The formats that both have, with what the peer says of them. The first one is sent; never empty.
    pub formats: Vec<PassedFormat>,
    /// Payload types towards the peer, one for each of the formats.
    pub payloads: Vec<u8>,
    /// Payload types under which they may come.
    pub receive: Vec<(u8, FormatId)>,
    /// Which way it flows, from our side.
    pub direction: Direction,
    /// The peer wants none: `sendonly`, `inactive` or `c=0.0.0.0`.
    pub held: bool,
    /// Feedback that the peer understands.
    pub feedback: VideoFeedback,
    /// What SRTP is sealed with; `None` is plain RTP.
    pub keys: Option<Box<SrtpKeys>>,
}

impl NegotiatedPassed {
    /// The format that is sent.
    pub fn primary(&self) -> Option<&PassedFormat> {
        self.formats.first()
    }
    /// The payload type towards the peer of one of the formats.
    pub fn payload_of(&self, format: FormatId) -> Option<u8> {
        let mut both = self.formats.iter().zip(&self.payloads);
        both.find(|(own, _)| own.format == format).map(|(_, payload)| *payload)
    }
}

/// Whether an offer has video that is not declined, in one of these formats.
pub fn video_offered(offer: &[u8], formats: FormatSet) -> bool {
    let Some(session) = Session::parse(offer) else { return false };
    session.streams.iter().filter(|stream| stream.port != 0).any(|stream| {
        Kind::of_stream(stream) == Some(Kind::Video)
            && offered_video(stream, &[]).iter().any(|(_, found)| formats.contains(found.format))
    })
}

/// Which slots ([`VIDEO_SLOTS`], then [`AUDIO_SLOTS`]) an offer has streams for that it does not decline, when its first audio is the one that is served.
pub fn passed_offered(offer: &[u8]) -> [bool; VIDEO_SLOTS + AUDIO_SLOTS] {
    let mut offered = [false; VIDEO_SLOTS + AUDIO_SLOTS];
    let Some(session) = Session::parse(offer) else { return offered };
    let is_first = |stream: &&Stream<'_>| Kind::of_stream(stream) == Some(Kind::Audio) && stream.port != 0;
    let served = session.streams.iter().position(|stream| is_first(&stream));
    for (slot, _, stream) in slots(&session, served) {
        if let Some(offered) = offered.get_mut(slot) {
            *offered = stream.port != 0;
        }
    }
    offered
}

/// A stream that is passed through, in its place among the streams of a session.
#[derive(Debug, Clone)]
pub(super) struct PassedPlace {
    /// Its slot.
    pub(super) slot: usize,
    protocol: Box<[u8]>,
    crypto: Crypto,
    /// What every payload type has meant: within a session none changes its meaning (RFC 3264 §8.3.2).
    used: Vec<(u8, FormatId)>,
    /// What our last description says of it; nothing when it declines it.
    said: Vec<(u8, PassedFormat)>,
    direction: Direction,
    rtcp_mux: bool,
    feedback: VideoFeedback,
    /// For how many of the formats the feedback is said: an answer knows that of the first.
    fed: usize,
    keys: Vec<Line>,
    /// The network's edge is asked to take part in the encryption.
    to_edge: bool,
}

impl PassedPlace {
    /// A stream that nobody has spoken of.
    pub(super) fn new(slot: usize, protocol: &[u8]) -> Self {
        Self {
            slot,
            protocol: protocol.into(),
            crypto: Crypto::default(),
            used: Vec::new(),
            said: Vec::new(),
            direction: Direction::SendRecv,
            rtcp_mux: false,
            feedback: VideoFeedback::default(),
            fed: 0,
            keys: Vec::new(),
            to_edge: false,
        }
    }
    pub(super) const fn kind(&self) -> Kind {
        Kind::of_slot(self.slot)
    }
    /// Its profile.
    pub(super) fn protocol(&self) -> &[u8] {
        &self.protocol
    }
    /// Sets out what an offer of ours says of it.
    pub(super) fn offer(&mut self, local: &Local<'_>, is_plain: bool) {
        self.said.clear();
        let Some(own) = local.passed.get(self.slot) else { return };
        for format in own.formats {
            if self.said.iter().any(|(_, said)| said.format == format.format) {
                continue;
            }
            if let Some(payload) = self.payload_for(format.format) {
                self.said.push((payload, format.clone()));
            }
        }
        for (payload, format) in &self.said {
            keep(&mut self.used, *payload, format.format);
        }
        let direction = if local.direction == Direction::SendRecv { own.direction } else { local.direction };
        (self.direction, self.rtcp_mux, self.feedback) = (direction, local.rtcp_mux, own.feedback);
        self.fed = self.said.len();
        self.keys = self.crypto.offer(local.encryption.as_ref().filter(|_| !is_plain)).to_vec();
        self.to_edge = local.encryption.is_some_and(|wanted| wanted.to_edge);
    }
    fn payload_for(&self, format: FormatId) -> Option<u8> {
        let free = |payload: &u8| {
            self.said.iter().all(|(said, _)| said != payload)
                && self.used.iter().all(|(used, meant)| used != payload || *meant == format)
        };
        let before = self.used.iter().rev().find(|(_, meant)| *meant == format).map(|(payload, _)| *payload);
        before.filter(free).or(format.usual_payload().filter(free)).or_else(|| DYNAMIC.clone().find(free))
    }
    /// Answers an offered stream; `None` declines it.
    pub(super) fn answer(
        mut self,
        session: &Session<'_>,
        stream: &Stream<'_>,
        local: &Local<'_>,
    ) -> Option<(Self, NegotiatedPassed)> {
        let own = local.passed.get(self.slot).filter(|_| stream.port != 0)?;
        let theirs = offered(self.kind(), stream, &[]);
        let rank = |format: FormatId| own.formats.iter().position(|own| own.format == format);
        let mut common: Vec<_> = theirs.into_iter().filter(|(_, f)| rank(f.format).is_some()).collect();
        if !local.prefer_remote {
            common.sort_by_key(|(_, format)| rank(format.format));
        }
        let first = common.first().map(|(payload, _)| *payload)?;
        let secured = secured(&mut self.crypto, stream, local).ok()?;
        let (line, keys) = secured.unzip();
        let rtcp_mux = local.rtcp_mux && stream.attribute(b"rtcp-mux").is_some();
        let mut agreed = agree(session, stream, local.direction, rtcp_mux);
        agreed.payloads = common.iter().map(|(payload, _)| *payload).collect();
        agreed.receive = common.iter().map(|(payload, format)| (*payload, format.format)).collect();
        agreed.feedback = VideoFeedback::of(stream, first);
        agreed.keys = keys.map(Box::new);
        for (payload, format) in &common {
            keep(&mut self.used, *payload, format.format);
        }
        let ours = |format: FormatId| rank(format).and_then(|rank| own.formats.get(rank)?.fmtp.clone());
        let said = |(payload, theirs): &(u8, PassedFormat)| {
            let fmtp = ours(theirs.format).or_else(|| theirs.fmtp.clone());
            (*payload, PassedFormat { format: theirs.format, fmtp })
        };
        self.said = common.iter().map(said).collect();
        agreed.formats = common.into_iter().map(|(_, format)| format).collect();
        self.protocol = stream.protocol.into();
        (self.direction, self.rtcp_mux) = (agreed.direction, rtcp_mux);
        (self.feedback, self.fed) = (own.feedback.and(agreed.feedback), 1);
        (self.keys, self.to_edge) = (line.into_iter().collect(), false);
        Some((self, agreed))
    }
    /// What the answer to our offer of the stream says; `None` when it is declined or cannot be used.
    pub(super) fn accept(
        &mut self,
        session: &Session<'_>,
        stream: &Stream<'_>,
        local: &Local<'_>,
    ) -> Option<NegotiatedPassed> {
        if stream.port == 0 {
            return None;
        }
        let ours = |format: FormatId| self.said.iter().find(|(_, said)| said.format == format);
        let both: Vec<_> = offered(self.kind(), stream, &self.said)
            .into_iter()
            .filter_map(|(payload, theirs)| Some((payload, ours(theirs.format)?.0, theirs)))
            .collect();
        let first = both.first().map(|(payload, ..)| *payload)?;
        let keys = self.crypto.accept(stream).ok()?;
        let must = self.crypto.is_offered() && local.encryption.is_some_and(|wanted| !wanted.optimistic);
        if keys.is_none() && (must || is_secure(stream.protocol)) {
            return None;
        }
        let rtcp_mux = local.rtcp_mux && stream.attribute(b"rtcp-mux").is_some();
        let mut agreed = agree(session, stream, self.direction, rtcp_mux);
        agreed.payloads = both.iter().map(|(payload, ..)| *payload).collect();
        agreed.receive = both.iter().map(|(_, own, format)| (*own, format.format)).collect();
        // Some peers send under the numbers of their answer instead of those of our offer.
        for (payload, _, format) in &both {
            if self.said.iter().all(|(said, _)| said != payload) {
                agreed.receive.push((*payload, format.format));
            }
        }
        agreed.feedback = VideoFeedback::of(stream, first).and(self.feedback);
        agreed.formats = both.into_iter().map(|(_, _, format)| format).collect();
        agreed.keys = keys.map(Box::new);
        Some(agreed)
    }
    /// Whether our last description has it.
    pub(super) fn is_said(&self) -> bool {
        !self.said.is_empty()
    }
    /// Appends the stream; without `local`, or when nothing is said of it, port 0 declines it.
    pub(super) fn write(&self, local: Option<&Local<'_>>, text: &mut Vec<u8>) {
        let own = local.and_then(|local| Some((local, local.passed.get(self.slot)?)));
        let Some((local, own)) = own.filter(|_| self.is_said()) else {
            let formats: Vec<String> = self.used.iter().map(|(payload, _)| payload.to_string()).collect();
            let formats = if formats.is_empty() { "0".to_owned() } else { formats.join(" ") };
            let kind = self.kind().word().as_bytes();
            let line = [kind, b"\n", &*self.protocol, b"\n", formats.as_bytes()].concat();
            return push_declined(text, &line);
        };
        // Writing to a Vec cannot fail.
        write!(text, "m={} {} ", self.kind().word(), own.port).ok();
        push_clean(text, &self.protocol);
        self.said.iter().for_each(|(payload, _)| {
            write!(text, " {payload}").ok();
        });
        text.extend_from_slice(b"\r\n");
        if local.elsewhere.is_some() {
            write!(text, "c=IN {} {}\r\n", family(local.address), local.address).ok();
        }
        write_keys(&self.keys, self.to_edge, text);
        for (payload, PassedFormat { format, fmtp }) in &self.said {
            write_rtpmap(*payload, *format, text);
            if let Some(fmtp) = fmtp {
                write!(text, "a=fmtp:{payload} ").ok();
                push_clean(text, fmtp);
                text.extend_from_slice(b"\r\n");
            }
        }
        if self.kind() == Kind::Audio {
            let length = local.ptime_of(self.said.first().map(|(_, said)| said.format));
            if length > 0 {
                write!(text, "a=ptime:{length}\r\n").ok();
            }
            super::answer::push_longest(self.said.iter().map(|(_, said)| said.format), text);
        }
        for (payload, _) in self.said.iter().take(self.fed).filter(|_| self.kind() == Kind::Video) {
            for (_, name) in self.feedback.rows().iter().filter(|(understood, _)| *understood) {
                write!(text, "a=rtcp-fb:{payload} {name}\r\n").ok();
            }
        }
        if self.rtcp_mux {
            text.extend_from_slice(b"a=rtcp-mux\r\n");
        }
        text.extend_from_slice(super::answer::direction_line(self.direction));
    }
}

fn keep(used: &mut Vec<(u8, FormatId)>, payload: u8, format: FormatId) {
    if used.iter().all(|(used, _)| *used != payload) {
        used.push((payload, format));
    }
}

/// What can be said of a stream without looking at its formats.
fn agree(session: &Session<'_>, stream: &Stream<'_>, wanted: Direction, rtcp_mux: bool) -> NegotiatedPassed {
    let reach = reach(session, stream, wanted);
    NegotiatedPassed {
        remote: reach.remote,
        remote_rtcp: if rtcp_mux { reach.remote } else { rtcp_address(stream, reach.remote) },
        rtcp_mux,
        formats: Vec::new(),
        payloads: Vec::new(),
        receive: Vec::new(),
        direction: reach.direction,
        held: reach.held,
        feedback: VideoFeedback::default(),
        keys: None,
    }
}

/// The formats of a stream in its order, the first payload type of each. `known` explains dynamic numbers without a map.
fn offered(kind: Kind, stream: &Stream<'_>, known: &[(u8, PassedFormat)]) -> Vec<(u8, PassedFormat)> {
    match kind {
        Kind::Video => offered_video(stream, known),
        Kind::Audio => offered_audio(stream, known),
    }
}

fn offered_audio(stream: &Stream<'_>, known: &[(u8, PassedFormat)]) -> Vec<(u8, PassedFormat)> {
    let mut explained = Payloads::default();
    known.iter().for_each(|(payload, known)| explained.push(*payload, Meaning::Audio(known.format)));
    let mut found: Vec<(u8, PassedFormat)> = Vec::new();
    for (payload, meaning) in Payloads::of(stream, &explained).iter() {
        let Meaning::Audio(format) = meaning else { continue };
        if found.iter().all(|(_, other)| other.format != format) {
            found.push((payload, PassedFormat { format, fmtp: fmtp_of(stream, payload) }));
        }
    }
    found
}

fn fmtp_of(stream: &Stream<'_>, payload: u8) -> Option<Box<[u8]>> {
    attributes_of(stream, b"fmtp").find(|(number, _)| *number == payload).map(|(_, rest)| rest.into())
}

fn offered_video(stream: &Stream<'_>, known: &[(u8, PassedFormat)]) -> Vec<(u8, PassedFormat)> {
    let maps: Vec<_> = attributes_of(stream, b"rtpmap").collect();
    let mut found: Vec<(u8, PassedFormat)> = Vec::new();
    for payload in stream.payloads() {
        let format = match maps.iter().find(|(mapped, _)| *mapped == payload) {
            Some((_, map)) => named(map),
            None => FormatId::video_from_static_payload(payload).or_else(|| {
                known.iter().find(|(number, _)| *number == payload).map(|(_, known)| known.format)
            }),
        };
        let Some(format) = format.filter(|format| found.iter().all(|(_, other)| other.format != *format))
        else {
            continue;
        };
        found.push((payload, PassedFormat { format, fmtp: fmtp_of(stream, payload) }));
    }
    found
}

/// The attributes of a name that begin with a payload type, and what follows it.
fn attributes_of<'a>(stream: &Stream<'a>, wanted: &'static [u8]) -> impl Iterator<Item = (u8, &'a [u8])> {
    let all = stream.attributes().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
    all.take(2 * MAX_STREAM_FORMATS).filter_map(|(_, value)| {
        let (payload, rest) = split_once(value, b' ');
        Some((u8::try_from(number(payload)?).ok()?, trim(rest?)))
    })
}

/// `H264/90000` as a format.
fn named(map: &[u8]) -> Option<FormatId> {
    let (name, clock) = split_once(map, b'/');
    let clock = u32::try_from(number(trim(split_once(clock?, b'/').0))?).ok()?;
    FormatId::video_from_rtpmap(core::str::from_utf8(trim(name)).ok()?, clock)
}

#[cfg(test)]
mod tests;
