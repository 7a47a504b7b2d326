//! RTCP of one stream: when a report is due, what it says, what the peer's reports say.

use core::net::SocketAddr;
use core::time::Duration;

use base::{Instant, Plan, Random, ReportBlock, RtcpReport, SenderInfo};
use rtp::{Discard, rtcp};

use crate::stream::Stream;

/// Bytes of the largest compound that we write: SR with a block, SDES, BYE.
pub(crate) const COMPOUND_BYTES: usize = 128;

/// Bytes of the largest compound of feedback that goes on: RR, SDES, and what the peer's compound has, as far as it fits.
pub(crate) const FEEDBACK_BYTES: usize = 1024;

/// What one report says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said {
    ssrc: u32,
    sender: Option<SenderInfo>,
    block: Option<ReportBlock>,
}

#[derive(Debug)]
pub(crate) struct Report {
    next_at: Option<Instant>,
    /// Packets sent when the last report left: an SR only when there are newer ones (RFC 3550 §6.4).
    sent_before: u64,
    /// A report has left.
    pub(crate) reported: bool,
    /// Middle 32 bits of the peer's last SR, and when it came.
    last_sr: Option<(u32, Instant)>,
    pub(crate) round_trip: Duration,
    pub(crate) peer_lost: u32,
    peer_jitter: u32,
}

impl Report {
    pub(crate) fn new(plan: &Plan, now: Instant) -> Self {
        let mut report = Self {
            next_at: None,
            sent_before: 0,
            reported: false,
            last_sr: None,
            round_trip: Duration::ZERO,
            peer_lost: 0,
            peer_jitter: 0,
        };
        report.replan(plan, now);
        report
    }
    pub(crate) fn replan(&mut self, plan: &Plan, now: Instant) {
        if plan.rtcp_interval_ms == 0 || plan.remote_rtcp.is_none() {
            self.next_at = None;
        } else if self.next_at.is_none() {
            self.next_at = Some(now + interval(plan));
        }
    }
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next_at.is_some_and(|at| at <= now)
    }
    /// When the next report is due.
    pub(crate) const fn next_at(&self) -> Option<Instant> {
        self.next_at
    }
    /// Whether reports are exchanged at all.
    pub(crate) const fn is_on(&self) -> bool {
        self.next_at.is_some()
    }
    pub(crate) fn peer_jitter_us(&self, clock: u32) -> u32 {
        let us = (u64::from(self.peer_jitter) * 1_000_000).checked_div(u64::from(clock)).unwrap_or(0);
        u32::try_from(us).unwrap_or(u32::MAX)
    }
}

/// The time from one report to the next, and to the first: `rtcpinterval` to the millisecond. RFC 3550 §6.3.1 spreads reports so
/// that the members of a large group do not send at once; here are two, whose monitors count a line for each interval.
fn interval(plan: &Plan) -> Duration {
    Duration::from_millis(plan.rtcp_interval_ms.into())
}

impl<L> Stream<L> {
    /// Whether any packet of this stream has left, RTP or RTCP.
    pub(crate) fn has_spoken(&self) -> bool {
        self.sent.packets > 0 || self.report.reported
    }
    /// Where RTCP goes, and whether from the RTP port.
    ///
    /// Behind a NAT the address that SDP named is of no use: the report follows RTP to the port above the locked one.
    pub(crate) fn rtcp_target(&self) -> Option<(SocketAddr, bool)> {
        let named = self.plan.remote_rtcp?;
        let shared = self.plan.remote_rtcp == self.plan.remote;
        match self.lock.locked() {
            Some(locked) if shared => Some((locked, true)),
            Some(locked) if locked.ip() != named.ip() => {
                Some((SocketAddr::new(locked.ip(), locked.port().checked_add(1)?), false))
            }
            Some(_) | None => Some((named, shared)),
        }
    }
    /// Whether RTCP from this source is read: the peer's host, by SDP or by the latch.
    pub(crate) fn accepts_rtcp(&self, from: SocketAddr) -> bool {
        let known = [self.lock.locked(), self.plan.remote_rtcp, self.plan.remote];
        match self.lock.locked() {
            Some(locked) => locked.ip() == from.ip(),
            None => known.into_iter().flatten().any(|peer| peer.ip() == from.ip()),
        }
    }
    /// Writes the report that is due, with BYE when the stream ends; sets the next date.
    pub(crate) fn write_report(
        &mut self,
        now: Instant,
        ntp: u64,
        bye: bool,
        buffer: &mut [u8],
    ) -> (usize, Said) {
        let ssrc = self.out.ssrc();
        let sent = self.sent.packets;
        let sender = (sent > self.report.sent_before).then(|| rtcp::SenderInfo {
            ntp,
            timestamp: self.out.timestamp_at(now),
            packets: sent as u32,
            bytes: self.sent.bytes as u32,
        });
        self.report.sent_before = sent;
        self.report.reported = true;
        let block = self.reception.ssrc().map(|source| {
            let (last_report, delay) = self.report.last_sr.map_or((0, 0), |(middle, at)| {
                let delay = (now - at).as_nanos() * 65_536 / 1_000_000_000;
                (middle, u32::try_from(delay).unwrap_or(u32::MAX))
            });
            rtcp::Block {
                ssrc: source,
                fraction_lost: self.reception.fraction_lost(),
                lost: i32::try_from(self.reception.lost()).unwrap_or(i32::MAX),
                highest: self.reception.extended_highest(),
                jitter: self.reception.jitter(),
                last_report,
                delay,
            }
        });
        let mut writer = rtcp::Writer::new(buffer);
        writer.report(ssrc, sender, block);
        writer.cname(ssrc, &cname(ssrc));
        if bye {
            writer.bye(ssrc);
        }
        let interval = interval(&self.plan);
        self.report.next_at = (!bye && self.report.is_on()).then(|| now + interval);
        (writer.len(), Said { ssrc, sender, block })
    }
    /// Writes what the compound of a peer says of pictures that it was sent by `about`, which relays them, for who sends them
    /// to this stream, as the smallest compound there is (RFC 4585 §3.1). 0 when it says nothing of them.
    pub(crate) fn write_feedback(&self, compound: &[u8], about: &Self, buffer: &mut [u8]) -> usize {
        let Some(origin) = self.reception.ssrc() else { return 0 };
        let Ok(compound) = rtcp::Compound::parse(compound) else { return 0 };
        let key = self.source_key(origin);
        let passage = rtcp::Passage { about: about.out.ssrc(), origin, sender: self.out.ssrc() };
        feedback_compound(passage, buffer, |writer| {
            for part in compound {
                if let rtcp::Packet::Feedback(feedback) = part {
                    writer.feedback(&feedback, passage, |sequence| about.out.origin(key, sequence));
                }
            }
        })
    }
    /// Reads the peer's compound; what its first report says.
    pub(crate) fn read_report(
        &mut self,
        packet: &[u8],
        now: Instant,
        ntp: u64,
    ) -> Result<Option<Said>, Discard> {
        let ours = self.out.ssrc();
        let mut said = None;
        for part in rtcp::Compound::parse(packet)? {
            let rtcp::Packet::Report { ssrc, sender, blocks } = part else { continue };
            let block = { blocks }.next();
            said.get_or_insert(Said { ssrc, sender, block });
            if let Some(info) = sender {
                self.report.last_sr = Some(((info.ntp >> 16) as u32, now));
            }
            for block in blocks.filter(|block| block.ssrc == ours) {
                self.report.peer_lost = block.lost.max(0).cast_unsigned();
                self.report.peer_jitter = block.jitter;
                if let Some(round_trip) = rtcp::round_trip(&block, ntp) {
                    self.report.round_trip = round_trip;
                }
            }
        }
        Ok(said)
    }
    /// What a report said, for those who are told of reports.
    pub(crate) fn told(&self, said: Said, sent: bool, peer: SocketAddr) -> RtcpReport {
        let Said { ssrc, sender, block } = said;
        let round_trip_us = u32::try_from(self.report.round_trip.as_micros()).unwrap_or(u32::MAX);
        RtcpReport { sent, peer, ssrc, sender, block, round_trip_us }
    }
}

/// Writes feedback as the smallest compound there is (RFC 4585 §3.1); 0 when there is none.
pub(crate) fn feedback_compound(
    passage: rtcp::Passage,
    buffer: &mut [u8],
    write: impl FnOnce(&mut rtcp::Writer<'_>),
) -> usize {
    let mut writer = rtcp::Writer::new(buffer);
    writer.report(passage.sender, None, None);
    writer.cname(passage.sender, &cname(passage.sender));
    let before = writer.len();
    write(&mut writer);
    if writer.len() > before { writer.len() } else { 0 }
}

/// A short-term persistent CNAME without names or addresses (RFC 7022 §4.2).
fn cname(ssrc: u32) -> [u8; 12] {
    let mut bits = Random::new(u64::from(ssrc) ^ 0x5354_5257_4743_4e4d);
    [(); 12].map(|()| b'a' + (bits.word() % 26) as u8)
}
