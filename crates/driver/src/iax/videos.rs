//! Video between IAX2 and the media plane: pieces of pictures with a time become RTP, and RTP becomes pieces. Nothing is
//! coded here; what one party sends the other one gets, as packets of RTP cut it.

use core::ops::Range;
use std::collections::HashMap;

use ::iax2::frame::{DATAGRAM_BYTES_MAX, FULL_BYTES, Media};
use ::iax2::machine::{Encrypt, Piece};
use base::{FormatId, FormatSet, Instant, PictureRequest, Plan, StreamId};
use call::{Core, Level};

use super::config::Common;
use super::voice::{RTP_BYTES, Voice, write_packet};
use super::{At, IaxDriver};

/// Payload type between here and the media plane; there is one format.
const PAYLOAD: u8 = 96;
/// Longest piece that a datagram carries.
const PIECE_BYTES_MAX: usize = DATAGRAM_BYTES_MAX - FULL_BYTES;
/// RTP ticks of a millisecond (RFC 3551 §5).
const TICKS: u32 = 90;

/// The video of a leg.
#[derive(Debug)]
struct Video {
    at: At,
    format: FormatId,
    /// The number of the next packet for the media plane: the protocol has none, so what was lost on the way is not missed.
    sequence: u16,
    /// The time of the last packet that was sent: packets of one picture have one.
    sent: Option<u32>,
}

impl Video {
    /// A piece of the other side as a packet.
    fn packet(&mut self, slot: u32, at_ms: u32, mark: bool, payload: &[u8], packet: &mut Vec<u8>) {
        write_packet((PAYLOAD, mark), self.sequence, at_ms.wrapping_mul(TICKS), slot, payload, packet);
        self.sequence = self.sequence.wrapping_add(1);
    }
    /// The piece in a packet that the media plane sends; `None` for what no datagram carries.
    fn piece<'a>(&mut self, packet: &'a [u8]) -> Option<Piece<'a>> {
        let (header, payload) = packet.split_at_checked(RTP_BYTES)?;
        let [_, kind, _, _, t0, t1, t2, t3, ..] = *header else { return None };
        let fits = kind & 0x7f == PAYLOAD && !payload.is_empty() && payload.len() <= PIECE_BYTES_MAX;
        let format = Media::of_video(self.format).filter(|_| fits)?;
        let stamp = u32::from_be_bytes([t0, t1, t2, t3]);
        let goes_on = self.sent.replace(stamp) == Some(stamp);
        Some(Piece { format, goes_on, mark: kind & 0x80 != 0, payload })
    }
    /// What the stream is to know: it sends and takes one format, at once.
    fn plan(format: FormatId, ssrc: u32) -> Plan {
        let only = [format].into_iter().collect();
        Plan { picture: PictureRequest::Signalling, ..Voice::plan(format, only, 0, ssrc) }
    }
}

/// The video of all legs: of few, and looked for only when it is there.
#[derive(Debug, Default)]
pub(super) struct Videos {
    by_stream: HashMap<StreamId, Video>,
    of_leg: HashMap<At, StreamId>,
}

impl Videos {
    /// The leg has none any more.
    pub(super) fn remove(&mut self, at: At) {
        if let Some(stream) = self.of_leg.remove(&at) {
            self.by_stream.remove(&stream);
        }
    }
    fn add(&mut self, at: At, stream: StreamId, format: FormatId) {
        self.remove(at);
        self.by_stream.insert(stream, Video { at, format, sequence: 0, sent: None });
        self.of_leg.insert(at, stream);
    }
    /// The video of a leg and its stream.
    fn of_leg(&mut self, at: At) -> Option<(StreamId, &mut Video)> {
        let stream = *self.of_leg.get(&at)?;
        Some((stream, self.by_stream.get_mut(&stream)?))
    }
}

impl IaxDriver {
    /// What a call may be offered of video: what its caller shows, as far as the configuration allows it; all of that for a
    /// call that nobody makes it for. The protocol has no frames of it that are enciphered and not kept.
    pub(super) fn video_to_offer(
        &self,
        core: &Core,
        common: &Common,
        caller: Option<base::ChannelId>,
    ) -> FormatSet {
        if common.encrypt != Encrypt::No {
            return FormatSet::EMPTY;
        }
        let shown = caller.and_then(|caller| core.get(caller)).map(|caller| caller.video_formats);
        common.video.iter().filter(|format| shown.is_none_or(|shown| shown.contains(*format))).collect()
    }
    /// Opens the video of a call that is accepted, in the first format of ours that the other side has, too.
    pub(super) fn open_video(&mut self, core: &mut Core, handle: u64) {
        let ssrc = self.random.next() as u32;
        let Some(leg) = self.legs.get(&handle) else { return };
        let (Some(at), channel, ours) = (leg.place, leg.channel, leg.video) else { return };
        let look = |machine: &mut ::iax2::Machine, _: &mut ::iax2::Out| machine.look(at.1);
        let Some(seen) = self.order(at.0, look).flatten().filter(|seen| !seen.encrypted) else { return };
        let both = |format: &FormatId| {
            Media::of_video(*format).is_some_and(|media| !seen.video.and(media).is_empty())
        };
        let Some(format) = ours.iter().find(both) else { return };
        match core.services.media.open_piped(Video::plan(format, ssrc)) {
            Ok(stream) => {
                self.videos.add(at, stream, format);
                if let Some(entry) = core.get_mut(channel) {
                    entry.video_formats = [format].into_iter().collect();
                }
                core.set_passed(channel, vec![Some(stream)]);
            }
            Err(why) => {
                let line = format!("no video for a call over IAX2: {why}");
                core.log(Level::Warning, "chan_iax2", &line);
            }
        }
    }
    /// A piece of a picture of the other side goes to its stream; what is not of the format that was agreed on is dropped.
    pub(super) fn seen(
        &mut self,
        core: &mut Core,
        at: At,
        (format, mark): (Media, bool),
        at_ms: u32,
        payload: &Range<usize>,
    ) {
        let Some((stream, video)) = self.videos.of_leg(at) else { return };
        let Some(Some(socket)) = self.sockets.get(at.0 as usize) else { return };
        if format.video() == Some(video.format) {
            video.packet(stream.slot, at_ms, mark, socket.out.payload(payload), &mut self.packet);
            core.services.media.feed(stream, &self.packet);
        }
    }
    /// What a stream of video sends.
    pub(super) fn show(&mut self, now: Instant, stream: StreamId, packet: &[u8]) {
        let Some(video) = self.videos.by_stream.get_mut(&stream) else { return };
        let (at, Some(piece)) = (video.at, video.piece(packet)) else { return };
        if let Some(Some(socket)) = self.sockets.get_mut(at.0 as usize) {
            // What cannot leave is lost, as on any network.
            let _ = socket.machine.video(now, at.1, &piece, &mut socket.out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Place;

    fn video() -> Video {
        let at = (0, Place { slot: 1, generation: 0 });
        Video { at, format: FormatId::H264, sequence: 65_535, sent: None }
    }

    #[test]
    fn pieces_are_numbered_as_they_come_and_those_of_one_picture_have_one_time() {
        let (mut video, mut packet) = (video(), Vec::new());
        let mut headers = Vec::new();
        for (at_ms, mark) in [(1000, false), (1000, true), (1040, true), (u32::MAX, true)] {
            video.packet(7, at_ms, mark, &[9], &mut packet);
            let sequence = u16::from_be_bytes([packet[2], packet[3]]);
            let stamp = u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
            headers.push((sequence, stamp, packet[1] & 0x80 != 0));
            assert_eq!(&packet[12..], [9]);
        }
        let expected =
            [(65_535, 90_000, false), (0, 90_000, true), (1, 93_600, true), (2, u32::MAX - 89, true)];
        assert_eq!(headers, expected);
    }

    #[test]
    fn what_the_media_plane_sends_is_a_piece_that_a_datagram_carries() {
        let rtp = |kind: u8, stamp: u32, payload: &[u8]| {
            let mut packet = vec![0x80, kind, 0, 1];
            packet.extend_from_slice(&stamp.to_be_bytes());
            packet.extend_from_slice(&[0, 0, 0, 7]);
            packet.extend_from_slice(payload);
            packet
        };
        let mut video = video();
        for (name, packet, expected) in [
            ("the first of a picture", rtp(96, 90, &[1]), Some((false, false))),
            ("the last of it", rtp(96 | 0x80, 90, &[2]), Some((true, true))),
            ("another picture", rtp(96 | 0x80, 91, &[3]), Some((false, true))),
            ("as long as can be", rtp(96, 92, &vec![1; PIECE_BYTES_MAX]), Some((false, false))),
            ("longer", rtp(96, 92, &vec![1; PIECE_BYTES_MAX + 1]), None),
            ("another payload type", rtp(97, 92, &[1]), None),
            ("nothing in it", rtp(96, 92, &[]), None),
            ("no header", vec![0x80, 96], None),
        ] {
            let piece = video.piece(&packet);
            assert_eq!(piece.map(|piece| (piece.goes_on, piece.mark)), expected, "{name}");
            assert!(piece.is_none_or(|piece| piece.format == Media(1 << 21)), "{name}");
        }
    }
}
