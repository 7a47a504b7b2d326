//! Voice between IAX2 and the media plane: frames with a time become RTP, and RTP becomes frames.
//!
//! A voice frame of IAX2 has a time and no number. The media plane wants both, and times that follow each other without
//! gaps: so a frame that comes about when it should is taken to follow the one before it, whatever its clock says, and a
//! gap of a few frames is a loss.

use ::iax2::frame::millis;
use base::{
    Direction, DtmfMode, FormatId, FormatSet, Latch, MAX_RX_PAYLOADS, Marking, PIPE, Plan, RxPayload,
    StreamId, Wishes,
};

/// Bytes of the header of RTP (RFC 3550 §5.1).
pub(super) const RTP_BYTES: usize = 12;
/// The first payload type; formats are numbered from it in the order of their preference. With the marker it is not taken
/// for RTCP (RFC 5761 §4).
const PAYLOAD_FIRST: u8 = 96;
/// Frames that may be missing in a row before the time begins anew.
const GAP_MAX: u32 = 10;
/// Where the other side's voice is.
#[derive(Debug, Clone, Copy)]
struct Heard {
    format: FormatId,
    /// When the next frame should begin, on the sender's clock.
    next_ms: u32,
    sequence: u16,
    stamp: u32,
}

/// The media of a leg.
#[derive(Debug)]
pub(super) struct Voice {
    pub(super) stream: StreamId,
    formats: FormatSet,
    heard: Option<Heard>,
}

impl Voice {
    pub(super) fn new(stream: StreamId, formats: FormatSet) -> Self {
        Self { stream, formats, heard: None }
    }
    /// Its clock begins anew: the other side is another one.
    pub(super) fn restart(&mut self) {
        self.heard = None;
    }
    fn payload_type(&self, format: FormatId) -> Option<u8> {
        let at = self.formats.iter().take(MAX_RX_PAYLOADS).position(|known| known == format)?;
        Some(PAYLOAD_FIRST + u8::try_from(at).ok()?)
    }
    /// A frame of the other side as a packet; false when its format was not offered.
    pub(super) fn packet(
        &mut self,
        format: FormatId,
        at_ms: u32,
        payload: &[u8],
        packet: &mut Vec<u8>,
    ) -> bool {
        let Some(payload_type) = self.payload_type(format) else { return false };
        let length = i32::from(millis(format, payload.len()));
        let ticks = |ms: i32| (i64::from(ms) * i64::from(format.rtp_clock()) / 1000) as u32;
        let fresh = |sequence| Heard {
            format,
            next_ms: at_ms.wrapping_add(length as u32),
            sequence,
            stamp: (u64::from(at_ms) * u64::from(format.rtp_clock()) / 1000) as u32,
        };
        let mut marker = false;
        let (sequence, stamp) = match self.heard.filter(|heard| heard.format == format) {
            None => {
                marker = true;
                let first = fresh(self.heard.map_or(0, |heard| heard.sequence));
                self.heard = Some(Heard {
                    sequence: first.sequence.wrapping_add(1),
                    stamp: first.stamp.wrapping_add(ticks(length)),
                    ..first
                });
                (first.sequence, first.stamp)
            }
            Some(heard) => {
                let off = at_ms.wrapping_sub(heard.next_ms) as i32;
                // Frames away from where it should be, the nearer one.
                let frames = off.saturating_add(length / 2).div_euclid(length);
                if frames.unsigned_abs() > GAP_MAX {
                    marker = true;
                    let first = fresh(heard.sequence);
                    self.heard = Some(Heard {
                        sequence: first.sequence.wrapping_add(1),
                        stamp: first.stamp.wrapping_add(ticks(length)),
                        ..first
                    });
                    (first.sequence, first.stamp)
                } else {
                    let sequence = heard.sequence.wrapping_add(frames as u16);
                    let stamp = heard.stamp.wrapping_add(ticks(frames * length));
                    if frames >= 0 {
                        // The rest is jitter of the sender's clock, or drift, which is followed slowly.
                        let rest = off - frames * length;
                        self.heard = Some(Heard {
                            next_ms: heard.next_ms.wrapping_add((frames * length + length + rest / 4) as u32),
                            sequence: sequence.wrapping_add(1),
                            stamp: stamp.wrapping_add(ticks(length)),
                            ..heard
                        });
                    }
                    (sequence, stamp)
                }
            }
        };
        write_packet((payload_type, marker), sequence, stamp, self.stream.slot, payload, packet);
        true
    }
    /// The voice in a packet that the media plane sends.
    pub(super) fn frame<'a>(&self, packet: &'a [u8]) -> Option<(FormatId, u16, &'a [u8])> {
        let (header, payload) = packet.split_at_checked(RTP_BYTES)?;
        let kind = header.get(1)? & 0x7f;
        let at = usize::from(kind.checked_sub(PAYLOAD_FIRST)?);
        let format = self.formats.iter().nth(at).filter(|_| !payload.is_empty())?;
        Some((format, millis(format, payload.len()), payload))
    }
    /// What the stream is to know: it sends `format`, and hears every format of the leg.
    pub(super) fn plan(format: FormatId, formats: FormatSet, jitter_max_ms: u16, ssrc: u32) -> Plan {
        let mut rx = [None; MAX_RX_PAYLOADS];
        for ((place, format), payload) in rx.iter_mut().zip(formats.iter()).zip(PAYLOAD_FIRST..) {
            *place = Some(RxPayload::Audio(payload, format));
        }
        let at = formats.iter().position(|known| known == format).unwrap_or(0);
        Plan {
            remote: Some(PIPE),
            remote_rtcp: None,
            latch: Latch::Strict,
            relearn: false,
            format,
            payload: PAYLOAD_FIRST + u8::try_from(at).unwrap_or(0),
            ptime_ms: format.usual_ms(),
            wishes: Wishes::default(),
            rx,
            dtmf: DtmfMode::Signalling,
            direction: Direction::SendRecv,
            ssrc,
            first_sequence: 0,
            first_timestamp: 0,
            jitter_max_ms,
            rtcp_interval_ms: 0,
            rtp_timeout_ms: 0,
            keepalive_ms: 0,
            marking: Marking::default(),
            keys: None,
            picture: base::PictureRequest::default(),
        }
    }
}

/// A packet for the media plane, in place of what was there.
pub(super) fn write_packet(
    (payload_type, marker): (u8, bool),
    sequence: u16,
    stamp: u32,
    source: u32,
    payload: &[u8],
    packet: &mut Vec<u8>,
) {
    packet.clear();
    packet.extend_from_slice(&[0x80, payload_type | if marker { 0x80 } else { 0 }]);
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&stamp.to_be_bytes());
    packet.extend_from_slice(&source.to_be_bytes());
    packet.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voice() -> Voice {
        let formats = [FormatId::ULAW, FormatId::GSM, FormatId::G722].into_iter().collect();
        Voice::new(StreamId::new(7, 1), formats)
    }
    /// Sequence, timestamp and marker of frames of 20 ms that come with these times.
    fn numbered(times: &[u32]) -> Vec<(u16, u32, bool)> {
        let mut voice = voice();
        let mut packet = Vec::new();
        let each = |at: &u32| {
            assert!(voice.packet(FormatId::ULAW, *at, &[0xff; 160], &mut packet));
            let sequence = u16::from_be_bytes([packet[2], packet[3]]);
            let stamp = u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
            (sequence, stamp, packet[1] & 0x80 != 0)
        };
        times.iter().map(each).collect()
    }

    #[test]
    fn frames_are_numbered_by_their_times() {
        for (name, times, expected) in [
            ("even", &[100, 120, 140][..], vec![(0, 800, true), (1, 960, false), (2, 1120, false)]),
            (
                "a clock that jitters",
                &[100, 123, 138, 161],
                vec![(0, 800, true), (1, 960, false), (2, 1120, false), (3, 1280, false)],
            ),
            ("one lost", &[100, 140], vec![(0, 800, true), (2, 1120, false)]),
            (
                "one late",
                &[100, 140, 120, 160],
                vec![(0, 800, true), (2, 1120, false), (1, 960, false), (3, 1280, false)],
            ),
            ("silence between", &[100, 1100, 1120], vec![(0, 800, true), (1, 8800, true), (2, 8960, false)]),
            (
                "half of all times ahead, and back",
                &[100, 120, 0x8000_008b, 0x9f],
                vec![(0, 800, true), (1, 960, false), (2, 1112, true), (3, 1272, true)],
            ),
            (
                "the end of the clock",
                &[0xffff_fff0, 4],
                vec![
                    (0, ((0xffff_fff0_u64 * 8) & 0xffff_ffff) as u32, true),
                    (1, (((0xffff_fff0_u64 * 8) & 0xffff_ffff) as u32).wrapping_add(160), false),
                ],
            ),
        ] {
            assert_eq!(numbered(times), expected, "{name}");
        }
    }

    #[test]
    fn a_clock_that_drifts_is_followed_without_a_loss() {
        // 21 ms a frame of 20 ms: far worse than any clock.
        let times: Vec<u32> = (0..500).map(|frame| 1000 + frame * 20 + frame / 20).collect();
        let sequences: Vec<u16> = numbered(&times).into_iter().map(|(sequence, ..)| sequence).collect();
        assert_eq!(sequences, (0..500).collect::<Vec<u16>>());
    }

    #[test]
    fn what_the_media_plane_sends_is_a_frame_of_its_format_and_length() {
        let (mut voice, mut packet) = (voice(), Vec::new());
        for (format, bytes, ms) in [
            (FormatId::ULAW, 160, 20),
            (FormatId::ULAW, 240, 30),
            (FormatId::GSM, 33, 20),
            (FormatId::GSM, 66, 40),
            (FormatId::G722, 160, 20),
        ] {
            assert!(voice.packet(format, 0, &vec![1; bytes], &mut packet));
            let (read, length, payload) = voice.frame(&packet).unwrap();
            assert_eq!((read, length, payload.len()), (format, ms, bytes), "{format}");
        }
        assert!(!voice.packet(FormatId::ALAW, 0, &[0; 160], &mut packet), "a format that was not offered");
        for broken in [&[][..], &[0x80; 11], &[0x80; 12], &[0x80, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]] {
            assert!(voice.frame(broken).is_none());
        }
    }
}
