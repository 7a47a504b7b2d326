//! Who hears whom, and how: decided once per join, plan or change of format, never per packet.

use base::{SampleRate, StreamId};

use crate::ear::Ear;
use crate::mouth::Mouth;
use crate::packet_io::PacketIo;
use crate::stream::Feed;
use crate::worker::Desk;

impl<P: PacketIo> Desk<'_, P> {
    /// Plans the routes of a stream and of its bridged peer anew.
    pub(crate) fn plan_routes(&mut self, id: StreamId) {
        self.recall(id);
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.reroute = false;
        self.seat_member(id);
        let Some(stream) = self.streams.get(id) else { return };
        let pair = [Some(id), stream.bridge];
        for stream in pair.into_iter().flatten() {
            self.plan_feed(stream);
        }
        for stream in pair.into_iter().flatten() {
            self.plan_ear(stream);
        }
        self.plan_viewers(id);
    }
    /// Joins two streams; earlier joins of either end.
    pub(crate) fn join(&mut self, a: StreamId, b: StreamId) {
        if a == b || self.streams.get(a).is_none() || self.streams.get(b).is_none() {
            return;
        }
        for (one, other) in [(a, b), (b, a)] {
            if self.streams.get(one).is_some_and(|s| s.room.is_some() || s.bridge != Some(other)) {
                self.part(one);
            }
        }
        for (one, other) in [(a, b), (b, a)] {
            if let Some(stream) = self.streams.get_mut(one) {
                stream.bridge = Some(other);
            }
        }
        self.plan_routes(a);
    }
    /// Takes a stream and its peer out of their bridge.
    pub(crate) fn part(&mut self, id: StreamId) {
        if self.streams.get(id).is_some_and(|stream| stream.room.is_some()) {
            self.part_pictures(id);
        }
        if self.leave_room(id) {
            return self.plan_routes(id);
        }
        let Some(peer) = self.streams.get_mut(id).and_then(|s| s.bridge.take()) else { return };
        if let Some(stream) = self.streams.get_mut(peer)
            && stream.bridge == Some(id)
        {
            stream.bridge = None;
        }
        for stream in [id, peer] {
            if let Some(stream) = self.streams.get_mut(stream) {
                stream.dial_with(|digits| digits.release_held());
            }
            self.plan_routes(stream);
        }
    }

    /// Where `id` gets its audio from, and the encoder for it.
    pub(crate) fn plan_feed(&mut self, id: StreamId) {
        let coders = self.coders;
        let coded = coders.coded();
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.whisper.take_if(|whisper| whisper.is_empty());
        let Some(stream) = self.streams.get(id) else { return };
        let shown = stream.pictures.as_ref().and_then(|pictures| pictures.shown());
        let source_id = if stream.echo { Some(id) } else { stream.bridge.or(shown) };
        // A stream in echo hears only itself, and nobody hears it; nor one that left the bridge while the two were on different
        // workers.
        let source = source_id.and_then(|source| self.streams.get(source)).filter(|source| {
            source.id == id || (!source.echo && (source.bridge == Some(id) || source.is_seen_by(id)))
        });
        let whispers = stream.whisper.is_some();
        let is_away = source_id.is_some_and(|source| self.streams.get(source).is_none());
        let feed = match source {
            None => Feed::Quiet,
            Some(source) => {
                let same_length = source.plan.ptime_ms == stream.plan.ptime_ms;
                let internal = source.leg.is_none() || stream.leg.is_none();
                let (from, to) = (source.rx_format, stream.plan.format);
                // What nobody here can take apart goes on in the packets it came in, whatever their length.
                let same_bytes = from == to || codec::direct(from, to).is_some();
                let can_code = coded.contains(from) && coded.contains(to);
                // What is to be held back is evened out in an ear.
                let is_held_back = source.held_back.is_some_and(|limits| limits.most_ms > 0);
                let must_code = (whispers || is_held_back || source.shaper.is_some()) && can_code;
                if same_bytes && (same_length || internal || !from.is_coded()) && !must_code {
                    Feed::Relay(source.id)
                } else if can_code {
                    Feed::Transcode(source.id)
                } else {
                    Feed::Quiet
                }
            }
        };
        let (to, wishes) = (stream.plan.format, stream.plan.wishes);
        let recode = source.and_then(|source| codec::direct(source.rx_format, to));
        let heard = source.map_or(SampleRate(8000), |source| source.rx_format.rate());
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.feed = feed;
        stream.recode = recode;
        let is_alone = feed == Feed::Quiet && stream.room.is_none() && coded.contains(to);
        let from = match feed {
            Feed::Transcode(_) => Some(heard),
            // Who is murmured to and hears nothing else, or is to hear silence.
            Feed::Quiet if is_alone && stream.is_made_sound_for() => Some(to.rate()),
            Feed::Quiet | Feed::Relay(_) => None,
        };
        if let Some(whisper) = &mut stream.whisper {
            if !matches!(feed, Feed::Transcode(_)) {
                // What nobody can mix is not heard.
                whisper.drop_clip();
            }
            let beside = stream.play.as_ref().map(|play| play.rate()).or(from);
            beside.into_iter().for_each(|rate| whisper.prepare(rate));
        }
        stream.whisper.take_if(|whisper| whisper.is_empty());
        stream.settle_play(coders);
        match from {
            // Until its partner has moved here, too, an encoder waits in the state that the far end's decoder is in.
            None => drop(stream.mouth.take_if(|_| !is_away)),
            Some(from) if stream.mouth.as_ref().is_none_or(|mouth| !mouth.fits(from, to, wishes)) => {
                stream.mouth = Some(Box::new(Mouth::new(from, to, wishes, coders)));
            }
            Some(_) => {}
        }
    }
    /// An ear for `id` when somebody needs samples of it.
    fn plan_ear(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(id) else { return };
        let takers = [Some(id), stream.bridge];
        let pulled = takers
            .into_iter()
            .flatten()
            .filter_map(|taker| self.streams.get(taker))
            .any(|taker| taker.feed == Feed::Transcode(id));
        let mixed = stream.room.is_some_and(|room| self.rooms.hears(room, id));
        // Nor is what was heard lost while its partner is on its way.
        let waits =
            stream.ear.is_some() && stream.bridge.is_some_and(|peer| self.streams.get(peer).is_none());
        let room_rate = stream.room.and_then(|room| self.rooms.rate_of(room, id));
        let heard_rate = stream
            .bridge
            .and_then(|peer| self.streams.get(peer))
            .map(|peer| peer.rx_format.rate())
            .filter(|_| matches!(stream.feed, Feed::Transcode(_)));
        let beside = stream.play.as_ref().map(|play| play.rate()).or(room_rate).or(heard_rate);
        let beside = beside.unwrap_or(stream.format.rate());
        let beside = stream.hears_apart().then_some(beside);
        let Some(stream) = self.streams.get_mut(id) else { return };
        if stream.taps.as_ref().is_some_and(|taps| taps.is_empty()) {
            stream.taps = None;
        }
        // The rounds of its room take what taps hear, too.
        stream.ear_is_pulled = pulled || stream.room.is_some();
        let format = stream.rx_format;
        if !self.coders.coded().contains(format) || (!pulled && !mixed && !waits && stream.taps.is_none()) {
            stream.ear = None;
        } else if stream.ear.as_ref().is_none_or(|ear| !ear.fits(format)) {
            let ear = match stream.held_back {
                Some(limits) => Ear::holding_back(format, limits, self.coders),
                None => Ear::new(format, stream.plan.jitter_max_ms, self.coders),
            };
            stream.ear = Some(Box::new(ear));
        }
        if let Some(taps) = &mut stream.taps {
            taps.prepare(format.rate());
            if let Some(monitors) = &mut taps.monitors {
                let jitter_ms = stream.plan.jitter_max_ms;
                monitors.prepare(format.rate(), stream.plan.format, beside, jitter_ms, self.coders);
            }
        }
    }
}
