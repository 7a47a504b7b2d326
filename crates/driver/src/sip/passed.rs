//! Streams of a leg that are passed through: video, and further audio beside the one stream that is served. Nothing is chosen
//! here: a callee is offered what the caller has and says of it, and a caller is answered what the callee has taken, as far as
//! both endpoints allow it. A stream's slot says which of the other party's it belongs to.

use ::sip::Method;
use ::sip::sdp::{LocalPassed, NegotiatedPassed, PassedFormat, VideoFeedback, passed_offered};
use ::sip::stack::Body;
use base::{
    AUDIO_SLOTS, ChannelId, Command, Direction, DtmfMode, FormatId, FormatSet, MAX_RX_PAYLOADS,
    PictureRequest, Plan, RxPayload, StreamId, VIDEO_SLOTS,
};
use call::{Core, Level};

use super::SipDriver;
use super::config::Endpoint;
use super::leg::Stage;
use super::session::{Media, Terms};

/// Streams of video of one leg at most, whatever `max_video_streams` says: a camera and a screen, twice.
pub const VIDEO_STREAMS_MAX: u8 = VIDEO_SLOTS as u8;
/// Streams of audio of one leg at most, whatever `max_audio_streams` says: the one that is served, and those beside it.
pub const AUDIO_STREAMS_MAX: u8 = 1 + AUDIO_SLOTS as u8;

/// How often the streams of one peer are turned after those of the other, until it offers something itself: two that answer
/// otherwise than they are asked would go on for ever.
const TURNS_MAX: u8 = 8;

/// What is passed through goes on in the packets it came in; streams are looked after this often, milliseconds.
const STEP_MS: u8 = 20;

/// What asks for a whole picture, and the document that does (RFC 5168 §7).
const PICTURE_REQUEST: &[u8] = b"picture_fast_update";
const PICTURE_XML: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<media_control><vc_primitive><to_encoder>\
    <picture_fast_update/></to_encoder></vc_primitive></media_control>\r\n";

/// What an endpoint may do with video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VideoSettings {
    /// Formats of `allow=`, preferred first.
    pub formats: FormatSet,
    /// Streams of a call (`max_video_streams`).
    pub streams: u8,
    /// How its packets are marked (`tos_video`, `cos_video`).
    pub marking: base::Marking,
}

/// One of a leg's streams.
#[derive(Debug, Clone)]
pub(crate) struct Passed {
    stream: StreamId,
    port: u16,
    said: Said,
    is_agreed: bool,
    /// The peer has ended it: our offers leave it so.
    is_off: bool,
    /// It is so because the other party has ended its own: it comes back with that.
    is_ended: bool,
    /// Which way it goes as our offers have it: as the other party's does, seen from here.
    turned: Direction,
    /// The format that the other party has changed to since the last agreement.
    followed: Option<FormatId>,
    ssrc: u32,
    first_sequence: u16,
    first_timestamp: u32,
}

/// What our descriptions say of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    formats: Vec<PassedFormat>,
    feedback: VideoFeedback,
    /// Which way an offer of ours has it.
    direction: Direction,
}

impl Said {
    /// Nothing: it is declined.
    const NOTHING: Self =
        Self { formats: Vec::new(), feedback: VideoFeedback::ALL, direction: Direction::SendRecv };
}

/// A direction as the other side of a stream has it.
const fn reversed(direction: Direction) -> Direction {
    match direction {
        Direction::SendOnly => Direction::RecvOnly,
        Direction::RecvOnly => Direction::SendOnly,
        Direction::SendRecv | Direction::Inactive => direction,
    }
}

impl Endpoint {
    /// Formats that it may have in a slot; none beyond as many streams as it may have.
    fn may_pass(&self, slot: usize) -> FormatSet {
        let video = usize::from(self.video.streams.min(VIDEO_STREAMS_MAX));
        let audio = usize::from(self.audio_streams.min(AUDIO_STREAMS_MAX)).saturating_sub(1);
        match slot.checked_sub(VIDEO_SLOTS) {
            None if slot < video => self.video.formats,
            Some(beside) if beside < audio => self.allow,
            _ => FormatSet::EMPTY,
        }
    }
}

/// Formats of which nothing is said.
fn plain(formats: impl Iterator<Item = FormatId>) -> Said {
    Said { formats: formats.map(PassedFormat::plain).collect(), ..Said::NOTHING }
}

/// Keeps of what is wanted what an endpoint may have.
fn allowed(mut wanted: Vec<Said>, endpoint: &Endpoint) -> Vec<Said> {
    for (slot, said) in wanted.iter_mut().enumerate() {
        let formats = endpoint.may_pass(slot);
        said.formats.retain(|format| formats.contains(format.format));
    }
    wanted
}

/// What is wanted of the streams that an offer has.
fn wanted_of(offer: &[u8], say: impl Fn(usize) -> Said) -> Vec<Said> {
    let has = passed_offered(offer).into_iter().enumerate();
    has.map(|(slot, offered)| if offered { say(slot) } else { Said::NOTHING }).collect()
}

/// How many of these streams are not declined.
fn shown(said: &[Said]) -> usize {
    said.iter().filter(|said| !said.formats.is_empty()).count()
}

/// Our sides of these streams, for an offer.
pub(crate) fn offered(video: &[Option<Passed>]) -> Vec<LocalPassed<'_>> {
    let mut sides = local(video);
    for (side, _) in sides.iter_mut().zip(video).filter(|(_, video)| video.as_ref().is_some_and(|v| v.is_off))
    {
        side.formats = &[];
    }
    sides
}

/// Our sides of these streams, for an answer.
pub(crate) fn local(video: &[Option<Passed>]) -> Vec<LocalPassed<'_>> {
    video
        .iter()
        .map(|video| match video {
            Some(Passed { said, port, turned, .. }) => LocalPassed {
                formats: &said.formats,
                port: *port,
                feedback: said.feedback,
                direction: *turned,
            },
            None => LocalPassed {
                formats: &[],
                port: 0,
                feedback: VideoFeedback::default(),
                direction: Direction::SendRecv,
            },
        })
        .collect()
}

impl Passed {
    /// Its stream.
    pub(crate) fn stream(&self) -> StreamId {
        self.stream
    }
    /// The plan of the stream for an agreement; without one it sends nothing and takes nothing.
    fn plan(&self, media: &Media, agreed: Option<&NegotiatedPassed>, terms: &Terms<'_>) -> Plan {
        let first = agreed.map(|agreed| &agreed.formats).unwrap_or(&self.said.formats).first();
        let first = first.map_or(FormatId::H264, |first| first.format);
        let payload_of = |format| agreed.and_then(|agreed| agreed.payload_of(format));
        let format = self.followed.filter(|followed| payload_of(*followed).is_some()).unwrap_or(first);
        let plain = media.plan(None, terms);
        let mut rx = [None; MAX_RX_PAYLOADS];
        let payloads = agreed.iter().flat_map(|agreed| agreed.receive.iter().copied());
        for (entry, (payload, format)) in rx.iter_mut().zip(payloads) {
            *entry = Some(RxPayload::Audio(payload, format));
        }
        Plan {
            remote: agreed.and_then(|agreed| agreed.remote),
            remote_rtcp: agreed.and_then(|agreed| agreed.remote_rtcp),
            format,
            payload: payload_of(format).unwrap_or(0),
            ptime_ms: STEP_MS,
            rx,
            dtmf: DtmfMode::Signalling,
            direction: agreed.map_or(Direction::Inactive, |agreed| agreed.direction),
            ssrc: self.ssrc,
            first_sequence: self.first_sequence,
            first_timestamp: self.first_timestamp,
            jitter_max_ms: 0,
            // A camera that is covered is no sign that anybody has gone, and no sound keeps its way open.
            rtp_timeout_ms: 0,
            keepalive_ms: 0,
            marking: if format.is_video() { terms.endpoint.video.marking } else { plain.marking },
            keys: agreed.and_then(|agreed| media.sealed(agreed.keys.as_deref(), terms)),
            picture: agreed.map_or(PictureRequest::Signalling, |agreed| match agreed.feedback {
                VideoFeedback { fir: true, .. } => PictureRequest::Fir,
                VideoFeedback { pli: true, .. } => PictureRequest::Pli,
                _ => PictureRequest::Signalling,
            }),
            ..plain
        }
    }
}

impl SipDriver {
    /// A caller's offer may have more streams than the one that is served: they are answered with what its endpoint allows,
    /// until it is known who the other party is. Before the answer leaves.
    pub(crate) fn answer_passed(&mut self, core: &mut Core, handle: u64, offer: &[u8]) {
        let Some(leg) = self.legs.get(handle) else { return };
        let wanted = wanted_of(offer, |slot| plain(leg.endpoint.may_pass(slot).iter()));
        if self.open_passed(core, handle, wanted) {
            self.answer_passed_again(core, handle, offer);
        }
    }
    /// What the callee has taken of a caller's video becomes the answer to its offer, when that has not left; whether the
    /// offer has to be answered again.
    pub(crate) fn suit_passed(&mut self, core: &Core, handle: u64) -> bool {
        let Some(leg) = self.legs.get_mut(handle).filter(|leg| !leg.described) else { return false };
        let Some(other) = leg.passes_with.take().filter(|_| !leg.media.passed.is_empty()) else {
            return false;
        };
        let Some(taken) = self.passed_of(core, other) else { return false };
        let Some(leg) = self.legs.get_mut(handle) else { return false };
        for (at, video) in leg.media.passed.iter_mut().enumerate() {
            let Some(video) = video else { continue };
            video.said = taken.get(at).cloned().unwrap_or(Said::NOTHING);
        }
        true
    }
    /// Opens the streams that a callee is offered: those of the caller, as far as its endpoint allows their formats.
    pub(crate) fn offer_passed(&mut self, core: &mut Core, handle: u64) {
        let Some(leg) = self.legs.get(handle) else { return };
        let Some(caller) = leg.passes_with else { return };
        let wanted = self.passed_of(core, caller).unwrap_or_default();
        let count = shown(&wanted);
        let wanted = allowed(wanted, &leg.endpoint);
        if let Some(leg) = self.legs.get_mut(handle) {
            leg.passes_asked = Some((caller, count));
        }
        self.open_passed(core, handle, wanted);
    }
    /// Opens what a caller is offered who has made no offer (RFC 3261 §13.2.1): the video that the other party has taken,
    /// else one stream of what both endpoints allow. One whose other party is an application is offered what its own
    /// endpoint allows. Before the offer is made.
    pub(crate) fn offer_passed_unasked(&mut self, core: &mut Core, handle: u64) {
        let Some(leg) = self.legs.get(handle).filter(|leg| leg.media.passed.is_empty()) else { return };
        let endpoint = leg.endpoint.clone();
        let other = leg.passes_with.or_else(|| core.talks_to(leg.channel));
        let first = |formats: FormatSet| vec![plain(formats.iter())];
        let wanted = match other {
            None => first(endpoint.video.formats),
            Some(other) => match self.passed_of(core, other).filter(|said| shown(said) > 0) {
                Some(said) => said,
                None => {
                    let of = core.get(other).filter(|channel| channel.tech == self.tech_index);
                    let of =
                        of.and_then(|channel| self.legs.get(channel.handle)).map(|leg| leg.endpoint.video);
                    let of = of.filter(|of| of.streams > 0).unwrap_or_default().formats;
                    let own = endpoint.video.formats;
                    vec![plain(own.iter().filter(|format| of.contains(*format)))]
                }
            },
        };
        let wanted = allowed(wanted, &endpoint);
        if let (Some(other), Some(leg)) = (other, self.legs.get_mut(handle)) {
            leg.passes_asked = Some((other, shown(&wanted)));
        }
        self.open_passed(core, handle, wanted);
    }
    /// An offer inside the call may have video that the session has not (RFC 3264 §8.1): it is answered with a format that
    /// the other party may have, too, who is asked when the answer has left. One that talks to nobody, but to an application,
    /// is answered as at the start of a call. Before the answer is made.
    pub(crate) fn add_passed(&mut self, core: &mut Core, handle: u64, offer: &[u8]) {
        let Some(leg) = self.legs.get(handle).filter(|leg| leg.stage == Stage::Up) else { return };
        let (channel, endpoint) = (leg.channel, leg.endpoint.clone());
        let offered = passed_offered(offer);
        let is_new = |slot: usize| leg.media.passed.get(slot).is_none_or(Option::is_none);
        if !offered.into_iter().enumerate().any(|(slot, offered)| offered && is_new(slot)) {
            return;
        }
        let partner = self.partner(core, handle);
        let wanted = match core.talks_to(channel) {
            None => wanted_of(offer, |slot| plain(endpoint.may_pass(slot).iter())),
            Some(other) => {
                let shown = self.passed_of(core, other).unwrap_or_default();
                let theirs =
                    partner.and_then(|partner| self.legs.get(partner)).map(|leg| leg.endpoint.clone());
                wanted_of(offer, |slot| match shown.get(slot).filter(|said| !said.formats.is_empty()) {
                    Some(said) => said.clone(),
                    None => {
                        let theirs = theirs.as_ref().map_or(FormatSet::EMPTY, |theirs| theirs.may_pass(slot));
                        let both = endpoint.may_pass(slot);
                        plain(both.iter().filter(|format| theirs.contains(*format)))
                    }
                })
            }
        };
        self.open_passed(core, handle, wanted);
    }
    /// The other party of a call shows what this leg's peer was not offered yet, has ended what it showed, or has turned it: the
    /// peer is offered the same, once. One that will have none keeps the session as it is.
    pub(crate) fn settle_passed(&mut self, core: &mut Core, handle: u64) {
        let Some(partner) = self.partner(core, handle) else { return };
        let Some(other) = self.legs.get(partner).filter(|other| other.stage == Stage::Up) else { return };
        if other.fax.is_some() {
            return;
        }
        let whose = other.channel;
        let Some(leg) = self.legs.get(handle).filter(|leg| leg.stage == Stage::Up) else { return };
        let Some(dialog) = leg.dialog else { return };
        if leg.fax.is_some()
            || leg.media.direct().is_some()
            || leg.media.holds()
            || self.stack.may_offer(dialog).is_err()
        {
            return;
        }
        let before = leg.media.passed.clone();
        let has_turned = self.turn_passed(handle, partner);
        let added = self.passed_to_add(core, handle, whose);
        if added.is_none() && !has_turned {
            return;
        }
        let count = added.as_ref().map(|(count, _)| *count);
        if let Some((_, wanted)) = added {
            self.open_passed(core, handle, wanted);
        }
        let sent = self.send_reinvite(core, handle, &[] as &[(&str, String)]);
        let Some(leg) = self.legs.get_mut(handle) else { return };
        match (sent, count) {
            (Ok(()), Some(count)) => leg.passes_asked = Some((whose, count)),
            (Ok(()), None) => {}
            (Err(_), _) => {
                for (own, before) in leg.media.passed.iter_mut().zip(before) {
                    if let (Some(own), Some(before)) = (own, before) {
                        (own.is_off, own.is_ended) = (before.is_off, before.is_ended);
                        own.turned = before.turned;
                    }
                }
                self.plan_passed(core, handle, false);
            }
        }
    }
    /// What this leg's peer is to be offered of what another shows, with how many streams that has; `None`: nothing, or it was
    /// asked already.
    fn passed_to_add(&self, core: &Core, handle: u64, whose: ChannelId) -> Option<(usize, Vec<Said>)> {
        let leg = self.legs.get(handle)?;
        let mut wanted = self.passed_of(core, whose)?;
        let count = shown(&wanted);
        if leg.passes_asked.is_some_and(|(asked, streams)| asked == whose && streams >= count) {
            return None;
        }
        for (slot, said) in wanted.iter_mut().enumerate() {
            // What it has ended itself it brings back itself.
            if leg.media.passed.get(slot).is_some_and(Option::is_some) {
                *said = Said::NOTHING;
            }
        }
        let wanted = allowed(wanted, &leg.endpoint);
        (shown(&wanted) > 0).then_some((count, wanted))
    }
    /// Has our next offer to a leg's peer say of each stream what the other party has done with its own: ended it, brought it
    /// back, or turned it (RFC 3264 §8.2, §8.4). Whether there is anything to say.
    fn turn_passed(&mut self, handle: u64, partner: u64) -> bool {
        let Some(other) = self.legs.get(partner) else { return false };
        let Some(agreed) = other.media.agreed() else { return false };
        let state = |slot: usize| {
            // Of one that was never agreed on there is nothing to say.
            other.media.passed.get(slot)?.as_ref().filter(|own| own.is_agreed)?;
            Some(agreed.passed.get(slot).and_then(Option::as_ref).map(|theirs| reversed(theirs.direction)))
        };
        let states: Vec<_> = (0..other.media.passed.len()).map(state).collect();
        // Whose peer has chosen last is followed, and follows nobody.
        let follows = |leg: &&mut super::Leg| leg.turns < TURNS_MAX && !leg.chose;
        let Some(leg) = self.legs.get_mut(handle).filter(follows) else { return false };
        let now: Vec<Option<Direction>> = leg.media.agreed().map_or_else(Vec::new, |agreed| {
            agreed.passed.iter().map(|own| own.as_ref().map(|own| own.direction)).collect()
        });
        let mut is_news = false;
        for (slot, (own, state)) in leg.media.passed.iter_mut().zip(states).enumerate() {
            let (Some(own), Some(state)) = (own.as_mut().filter(|own| own.is_agreed), state) else {
                continue;
            };
            let stands = now.get(slot).copied().flatten();
            match state {
                None if !own.is_off => (own.is_off, own.is_ended, is_news) = (true, true, true),
                Some(way) if own.is_ended => {
                    (own.is_off, own.is_ended, own.turned, is_news) = (false, false, way, true);
                }
                Some(way) if !own.is_off && own.turned != way && stands != Some(way) => {
                    (own.turned, is_news) = (way, true);
                }
                Some(_) | None => {}
            }
        }
        leg.turns += u8::from(is_news);
        is_news
    }
    /// What a channel's peer has said of its video; `None` when it is a SIP call whose peer has said nothing yet. Of a channel of
    /// another technology what it shows.
    fn passed_of(&self, core: &Core, channel: ChannelId) -> Option<Vec<Said>> {
        let handle = core.get(channel).filter(|channel| channel.tech == self.tech_index).map(|c| c.handle);
        let leg = handle.and_then(|handle| self.legs.get(handle)).filter(|leg| leg.channel == channel);
        let Some(leg) = leg else {
            // A channel of another technology has one stream of video at most, and its formats stand on it.
            let shown = core.get(channel).map(|channel| channel.video_formats).unwrap_or_default();
            return Some(if shown.is_empty() { Vec::new() } else { vec![plain(shown.iter())] });
        };
        let agreed = leg.media.agreed()?;
        let said = |video: &Option<NegotiatedPassed>| {
            let Some(video) = video else { return Said::NOTHING };
            let direction = reversed(video.direction);
            Said { formats: video.formats.clone(), feedback: video.feedback, direction }
        };
        Some(agreed.passed.iter().map(said).collect())
    }
    /// Opens streams for what is wanted and not there yet; whether there is any video then.
    fn open_passed(&mut self, core: &mut Core, handle: u64, wanted: Vec<Said>) -> bool {
        let config = self.config.clone();
        let Some(leg) = self.legs.get(handle) else { return false };
        let (endpoint, flow, channel) = (leg.endpoint.clone(), leg.flow, leg.channel);
        let Some(bind) = self.bind(flow.transport).cloned() else { return false };
        let (local, _) = self.media_address(&bind, &endpoint, flow.remote.ip());
        let terms = Terms { config: &config, endpoint: &endpoint, signalling: flow.remote.ip() };
        let Some(leg) = self.legs.get_mut(handle) else { return false };
        for (at, said) in wanted.into_iter().enumerate() {
            let is_too_many = endpoint.may_pass(at).is_empty();
            if said.formats.is_empty() || is_too_many || leg.media.passed.get(at).is_some_and(Option::is_some)
            {
                continue;
            }
            let (random, more, turned) = (core.random(), core.random(), said.direction);
            let mut video = Passed {
                stream: StreamId::new(0, 0),
                port: 0,
                said,
                is_agreed: false,
                is_off: false,
                is_ended: false,
                turned,
                followed: None,
                // The truncations take different bits of a random number.
                ssrc: random as u32,
                first_sequence: (more as u16) & 0x7fff,
                first_timestamp: (more >> 32) as u32,
            };
            let plan = video.plan(&leg.media, None, &terms);
            match core.services.media.open(local, plan) {
                Ok((stream, port)) => (video.stream, video.port) = (stream, port),
                Err(why) => {
                    let line = format!("no video for a call of '{}': {why}", endpoint.name);
                    core.log(Level::Warning, "chan_pjsip", &line);
                    break;
                }
            }
            let streams = &mut leg.media.passed;
            streams.resize(streams.len().max(at + 1), None);
            if let Some(slot) = streams.get_mut(at) {
                *slot = Some(video);
            }
        }
        let ids = leg.media.passed_streams();
        let has_some = !ids.is_empty();
        core.set_passed(channel, ids);
        has_some
    }
    /// A stream that is passed through has come in another of the formats that were agreed on: its other party is sent that, where
    /// it has agreed to it, too.
    pub(crate) fn follow_passed(&mut self, core: &mut Core, stream: StreamId, format: FormatId) {
        let slot_in = |leg: &super::Leg| {
            let is_it = |passed: &Option<Passed>| passed.as_ref().is_some_and(|own| own.stream == stream);
            leg.media.passed.iter().position(is_it)
        };
        let found = self.legs.handles().find_map(|handle| Some((handle, slot_in(self.legs.get(handle)?)?)));
        let Some((handle, slot)) = found else { return };
        let Some(partner) = self.partner(core, handle) else { return };
        let config = self.config.clone();
        let Some(leg) = self.legs.get_mut(partner) else { return };
        let endpoint = leg.endpoint.clone();
        let terms = Terms { config: &config, endpoint: &endpoint, signalling: leg.flow.remote.ip() };
        let agreed = leg.media.agreed().and_then(|agreed| agreed.passed.get(slot)?.clone());
        let Some(agreed) = agreed.filter(|agreed| agreed.payload_of(format).is_some()) else { return };
        let Some(mut own) = leg.media.passed.get(slot).cloned().flatten() else { return };
        own.followed = Some(format);
        let plan = Box::new(own.plan(&leg.media, Some(&agreed), &terms));
        core.media(Command::Plan { stream: own.stream, plan });
        if let Some(place) = leg.media.passed.get_mut(slot) {
            *place = Some(own);
        }
    }
    /// A side asks for a whole picture in signalling (RFC 5168): so is the other side, when both have video, or whoever is
    /// seen in its conference.
    pub(crate) fn pass_picture_request(&mut self, core: &mut Core, handle: u64, asked: &[u8]) {
        let is_seen = |handle| {
            let agreed = self.legs.get(handle).and_then(|leg| leg.media.agreed());
            agreed.is_some_and(|agreed| agreed.passed.iter().take(VIDEO_SLOTS).any(Option::is_some))
        };
        if !asked.windows(PICTURE_REQUEST.len()).any(|part| part == PICTURE_REQUEST) || !is_seen(handle) {
            return;
        }
        match self.partner(core, handle) {
            Some(partner) if is_seen(partner) => self.ask_picture(core, partner),
            Some(_) => {}
            None => {
                if let Some(leg) = self.legs.get(handle) {
                    core.conference_ask_pictures(leg.channel);
                }
            }
        }
    }
    /// Asks a peer for a whole picture in signalling (RFC 5168).
    pub(crate) fn ask_picture(&mut self, core: &mut Core, handle: u64) {
        let leg = self.legs.get(handle).filter(|leg| leg.stage == Stage::Up);
        let Some(dialog) = leg.and_then(|leg| leg.dialog) else { return };
        let body = Body { content_type: "application/media_control+xml", bytes: PICTURE_XML.as_bytes() };
        self.with_stack(core, |stack, now, out| {
            stack.request_inside(dialog, (Method::Info, &[], Some(body)), now, out)
        })
        .ok();
    }
    /// Answers the offer once more, which has not been answered on the wire.
    fn answer_passed_again(&mut self, core: &mut Core, handle: u64, offer: &[u8]) {
        let config = self.config.clone();
        let Some(leg) = self.legs.get_mut(handle) else { return };
        let endpoint = leg.endpoint.clone();
        let terms = Terms { config: &config, endpoint: &endpoint, signalling: leg.flow.remote.ip() };
        if leg.media.answer(offer, &terms).is_ok() {
            self.plan_passed(core, handle, true);
        }
    }
    /// The streams of video follow the last agreement. What it declines is closed when it is `new`, or waits to be taken up
    /// again.
    pub(crate) fn plan_passed(&mut self, core: &mut Core, handle: u64, new: bool) {
        let config = self.config.clone();
        let Some(leg) = self.legs.get_mut(handle).filter(|leg| !leg.media.passed.is_empty()) else { return };
        let endpoint = leg.endpoint.clone();
        let terms = Terms { config: &config, endpoint: &endpoint, signalling: leg.flow.remote.ip() };
        let agreed = match leg.fax {
            Some(_) => Vec::new(),
            None => leg.media.agreed().map(|agreed| agreed.passed.clone()).unwrap_or_default(),
        };
        let (is_fax, is_settled) = (leg.fax.is_some(), leg.is_settled());
        let mut streams = std::mem::take(&mut leg.media.passed);
        for (at, slot) in streams.iter_mut().enumerate() {
            let Some(video) = slot else { continue };
            let agreed = agreed.get(at).and_then(Option::as_ref);
            if agreed.is_none() && (new || !video.is_agreed) {
                core.media(Command::Close { stream: video.stream });
                *slot = None;
                continue;
            }
            (video.is_agreed, video.is_off, video.followed) = (true, agreed.is_none() && !is_fax, None);
            video.is_ended &= agreed.is_none();
            let plan = Box::new(video.plan(&leg.media, agreed, &terms));
            core.media(Command::Plan { stream: video.stream, plan });
            if let Some(agreed) = agreed.filter(|_| is_settled) {
                // What follows in the session keeps to it.
                let own = |format| video.said.formats.iter().find(|own| own.format == format);
                let kept = agreed.formats.iter().map(|theirs| {
                    let fmtp = own(theirs.format).and_then(|own| own.fmtp.clone());
                    PassedFormat { format: theirs.format, fmtp: fmtp.or_else(|| theirs.fmtp.clone()) }
                });
                video.said.formats = kept.collect();
            }
        }
        leg.media.passed = streams;
        let (channel, ids) = (leg.channel, leg.media.passed_streams());
        if let Some(entry) = core.get_mut(channel) {
            let sent = agreed.iter().flatten().filter_map(NegotiatedPassed::primary);
            entry.video_formats = sent.map(|first| first.format).filter(|format| format.is_video()).collect();
        }
        core.set_passed(channel, ids);
    }
}
