//! RTCP: compound packets read with the checks of RFC 3550 A.2, written into a caller's buffer, with what they say of time.

use core::time::Duration;

pub use base::{ReportBlock as Block, SenderInfo};

use crate::Discard;

/// Sender report.
const SR: u8 = 200;
/// Receiver report.
const RR: u8 = 201;
/// Source description.
const SDES: u8 = 202;
/// Goodbye.
const BYE: u8 = 203;
/// Feedback about packets (RFC 4585 §6.2), of which type 1 names those that are missing.
const RTPFB: u8 = 205;
const NACK: u8 = 1;
/// Feedback about pictures (RFC 4585 §6.3): one was lost, a whole one is wanted (RFC 5104 §4.3.1), or what an application
/// says.
const PSFB: u8 = 206;
const PLI: u8 = 1;
const FIR: u8 = 4;
const ALFB: u8 = 15;
/// What begins an estimate of the rate that gets through (draft-alvestrand-rmcat-remb §2.2).
const REMB: [u8; 4] = *b"REMB";
/// Longest CNAME that we write, bytes; ours have 12.
pub const CNAME_BYTES_MAX: usize = 32;
/// Entries of one list of missing packets that are passed on; each names up to 17.
pub const NACKS_MAX: usize = 32;
/// Sources of one request that are looked at: a peer has one of ours.
pub const SOURCES_MAX: usize = 16;
/// Report blocks read of one report; a point-to-point peer sends one (RFC 3550 §6.4 allows 31).
pub const BLOCKS_MAX: usize = 31;

/// One packet of a compound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// SR or RR; RR has no sender's information.
    Report {
        /// Who reports.
        ssrc: u32,
        /// Only in an SR.
        sender: Option<SenderInfo>,
        /// Its blocks, 24 bytes each.
        blocks: Blocks<'a>,
    },
    /// BYE of these sources, four bytes each.
    Bye(&'a [u8]),
    /// Feedback about the pictures that a peer is sent.
    Feedback(Feedback<'a>),
    /// SDES, APP and whatever else: nothing here needs it.
    Other(u8),
}

/// Feedback that a relay passes on (RFC 4585, RFC 5104).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback<'a> {
    /// Packets of this source are missing: entries of four bytes.
    Nack(u32, &'a [u8]),
    /// A picture of this source was lost.
    Pli(u32),
    /// Whole pictures are wanted: entries of eight bytes, each of one source.
    Fir(&'a [u8]),
    /// The highest rate that gets through: number of sources and rate, then the sources, four bytes each.
    Remb([u8; 4], &'a [u8]),
}

impl<'a> Feedback<'a> {
    fn read(kind: u8, format: u8, body: &'a [u8]) -> Option<Self> {
        let rest = body.get(8..)?;
        let media = be32(body, 4);
        Some(match (kind, format) {
            (RTPFB, NACK) => Self::Nack(media, rest),
            (PSFB, PLI) => Self::Pli(media),
            (PSFB, FIR) => Self::Fir(rest),
            (PSFB, ALFB) => {
                let rate = rest.strip_prefix(&REMB)?;
                let (rate, sources) = rate.split_first_chunk::<4>()?;
                Self::Remb(*rate, sources)
            }
            _ => return None,
        })
    }
}

/// Bits a second of an estimate: six bits of exponent and eighteen of mantissa behind the number of sources
/// (draft-alvestrand-rmcat-remb §2.2).
pub fn remb_rate([_, r0, r1, r2]: [u8; 4]) -> u64 {
    let mantissa = u64::from(r0 & 3) << 16 | u64::from(r1) << 8 | u64::from(r2);
    let exponent = u32::from(r0 >> 2);
    if mantissa.leading_zeros() < exponent { u64::MAX } else { mantissa << exponent }
}
/// The same for one source, rounded down.
pub fn remb_of(rate: u64) -> [u8; 4] {
    let exponent = (u64::BITS - rate.leading_zeros()).saturating_sub(18);
    let [.., m0, m1, m2] = (rate >> exponent).to_be_bytes();
    [1, (exponent as u8) << 2 | m0, m1, m2]
}

/// Who is meant by feedback on its way through a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// Our source, which the peer means.
    pub about: u32,
    /// The source that it was relayed from, which is told.
    pub origin: u32,
    /// Our source towards that one's sender, which tells it.
    pub sender: u32,
}

/// Report blocks of one report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks<'a>(&'a [u8]);

impl Iterator for Blocks<'_> {
    type Item = Block;
    fn next(&mut self) -> Option<Block> {
        let (block, rest) = self.0.split_first_chunk::<24>()?;
        self.0 = rest;
        let word = |index: usize| be32(block, index * 4);
        let lost = word(1) & 0x00ff_ffff;
        Some(Block {
            ssrc: word(0),
            fraction_lost: (word(1) >> 24) as u8,
            lost: (lost << 8).cast_signed() >> 8,
            highest: word(2),
            jitter: word(3),
            last_report: word(4),
            delay: word(5),
        })
    }
}

/// A compound that passed the validity checks of RFC 3550 A.2.
#[derive(Debug, Clone, Copy)]
pub struct Compound<'a>(&'a [u8]);

impl<'a> Compound<'a> {
    /// Checks the whole compound: versions, first packet a report without padding, lengths adding up exactly.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Discard> {
        let [flags, kind, ..] = *datagram else { return Err(Discard::BadRtcp) };
        if flags & 0x20 != 0 || !matches!(kind, SR | RR) {
            return Err(Discard::BadRtcp);
        }
        let mut rest = datagram;
        while !rest.is_empty() {
            let (packet, after) = split(rest).ok_or(Discard::BadRtcp)?;
            if packet.first().is_none_or(|flags| flags >> 6 != 2) {
                return Err(Discard::BadRtcp);
            }
            if packet.first().is_some_and(|flags| flags & 0x20 != 0) && !after.is_empty() {
                return Err(Discard::BadRtcp); // padding is for the last packet only
            }
            rest = after;
        }
        Ok(Self(datagram))
    }
}

impl<'a> Iterator for Compound<'a> {
    type Item = Packet<'a>;
    fn next(&mut self) -> Option<Packet<'a>> {
        let (packet, after) = split(self.0)?;
        self.0 = after;
        let [flags, kind, _, _, body @ ..] = packet else { return None };
        let count = usize::from(flags & 0x1f);
        Some(match *kind {
            SR if body.len() >= 24 => {
                let ntp = u64::from(be32(body, 4)) << 32 | u64::from(be32(body, 8));
                let sender = SenderInfo {
                    ntp,
                    timestamp: be32(body, 12),
                    packets: be32(body, 16),
                    bytes: be32(body, 20),
                };
                Packet::Report { ssrc: be32(body, 0), sender: Some(sender), blocks: blocks(body, 24, count) }
            }
            RR if body.len() >= 4 => {
                Packet::Report { ssrc: be32(body, 0), sender: None, blocks: blocks(body, 4, count) }
            }
            BYE => Packet::Bye(body.get(..count * 4).unwrap_or(&[])),
            RTPFB | PSFB => {
                Feedback::read(*kind, *flags & 0x1f, body).map_or(Packet::Other(*kind), Packet::Feedback)
            }
            other => Packet::Other(other),
        })
    }
}

fn blocks(body: &[u8], start: usize, count: usize) -> Blocks<'_> {
    let all = body.get(start..).unwrap_or(&[]);
    Blocks(all.get(..count.min(BLOCKS_MAX) * 24).unwrap_or(&[]))
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let [_, _, l0, l1] = *bytes.first_chunk::<4>()?;
    bytes.split_at_checked(4 + 4 * usize::from(u16::from_be_bytes([l0, l1])))
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|word| word.first_chunk::<4>()).map_or(0, |word| u32::from_be_bytes(*word))
}

/// Writes a compound into a buffer; what does not fit is left out whole.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

impl<'a> Writer<'a> {
    /// Starts an empty compound.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, length: 0 }
    }
    /// An SR when we have sent, else an RR, with at most one block.
    pub fn report(&mut self, ssrc: u32, sender: Option<SenderInfo>, block: Option<Block>) {
        let mut body = [0_u8; 48];
        let mut used = 0;
        let mut put = |bytes: &[u8]| {
            if let Some(room) = body.get_mut(used..used + bytes.len()) {
                room.copy_from_slice(bytes);
                used += bytes.len();
            }
        };
        put(&ssrc.to_be_bytes());
        if let Some(info) = sender {
            put(&info.ntp.to_be_bytes());
            put(&info.timestamp.to_be_bytes());
            put(&info.packets.to_be_bytes());
            put(&info.bytes.to_be_bytes());
        }
        if let Some(block) = block {
            let lost = block.lost.clamp(-0x80_0000, 0x7f_ffff).cast_unsigned() & 0x00ff_ffff;
            put(&block.ssrc.to_be_bytes());
            put(&(u32::from(block.fraction_lost) << 24 | lost).to_be_bytes());
            put(&block.highest.to_be_bytes());
            put(&block.jitter.to_be_bytes());
            put(&block.last_report.to_be_bytes());
            put(&block.delay.to_be_bytes());
        }
        let kind = if sender.is_some() { SR } else { RR };
        self.packet(kind, u8::from(block.is_some()), body.get(..used).unwrap_or(&[]));
    }
    /// The mandatory description (RFC 3550 §6.5.1) of one source.
    pub fn cname(&mut self, ssrc: u32, cname: &[u8]) {
        let cname = cname.get(..cname.len().min(CNAME_BYTES_MAX)).unwrap_or(&[]);
        // SSRC, type, length, text, and a null item that fills up to the word.
        let used = (4 + 2 + cname.len() + 4) & !3;
        let mut body = [0_u8; 4 + 2 + CNAME_BYTES_MAX + 4];
        if let Some((head, rest)) = body.split_first_chunk_mut::<4>()
            && let [kind, length, text @ ..] = rest
            && let Some(room) = text.get_mut(..cname.len())
        {
            *head = ssrc.to_be_bytes();
            *kind = 1;
            *length = u8::try_from(cname.len()).unwrap_or(0);
            room.copy_from_slice(cname);
        }
        self.packet(SDES, 1, body.get(..used).unwrap_or(&[]));
    }
    /// Leaves (RFC 3550 §6.6).
    pub fn bye(&mut self, ssrc: u32) {
        self.packet(BYE, 1, &ssrc.to_be_bytes());
    }
    /// Feedback under the numbers of the source that it is for; `number` gives that of a packet which it sent. What is about
    /// another source, or about packets that are not its, is left out.
    pub fn feedback(
        &mut self,
        feedback: &Feedback<'_>,
        Passage { about, origin, sender }: Passage,
        number: impl Fn(u16) -> Option<u16>,
    ) {
        let mut body = [0_u8; 8 + 4 * NACKS_MAX];
        let mut used = 0;
        let mut put = |bytes: &[u8]| {
            if let Some(room) = body.get_mut(used..used + bytes.len()) {
                room.copy_from_slice(bytes);
                used += bytes.len();
            }
        };
        put(&sender.to_be_bytes());
        let (kind, format) = match *feedback {
            Feedback::Nack(media, entries) if media == about => {
                put(&origin.to_be_bytes());
                for [p0, p1, b0, b1] in entries.as_chunks::<4>().0.iter().take(NACKS_MAX) {
                    if let Some(first) = number(u16::from_be_bytes([*p0, *p1])) {
                        put(&first.to_be_bytes());
                        put(&[*b0, *b1]);
                    }
                }
                (RTPFB, NACK)
            }
            Feedback::Pli(media) if media == about => {
                put(&origin.to_be_bytes());
                (PSFB, PLI)
            }
            // The sources stand in the entries (RFC 5104 §4.3.1.2).
            Feedback::Fir(entries) => {
                put(&[0; 4]);
                let entries = entries.as_chunks::<8>().0.iter().take(SOURCES_MAX);
                for [_, _, _, _, sequence, ..] in entries.filter(|entry| be32(&entry[..], 0) == about).take(1)
                {
                    put(&origin.to_be_bytes());
                    put(&[*sequence, 0, 0, 0]);
                }
                (PSFB, FIR)
            }
            Feedback::Remb([_, r0, r1, r2], sources) => {
                put(&[0; 4]);
                let sources = sources.as_chunks::<4>().0.iter().take(SOURCES_MAX);
                if sources.copied().any(|source| u32::from_be_bytes(source) == about) {
                    put(&REMB);
                    put(&[1, r0, r1, r2]);
                    put(&origin.to_be_bytes());
                }
                (PSFB, ALFB)
            }
            Feedback::Nack(..) | Feedback::Pli(_) => return,
        };
        let says_something = used > 8 || (kind, format) == (PSFB, PLI);
        if says_something {
            self.packet(kind, format, body.get(..used).unwrap_or(&[]));
        }
    }
    /// Bytes written.
    pub const fn len(&self) -> usize {
        self.length
    }
    /// Whether nothing was written.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn packet(&mut self, kind: u8, count: u8, body: &[u8]) {
        let words = u16::try_from(body.len() / 4).unwrap_or(0);
        let Some(room) = self.buffer.get_mut(self.length..self.length + 4 + body.len()) else { return };
        let Some((head, tail)) = room.split_first_chunk_mut::<4>() else { return };
        let [w0, w1] = words.to_be_bytes();
        *head = [0x80 | count & 0x1f, kind, w0, w1];
        tail.copy_from_slice(body);
        self.length += 4 + body.len();
    }
}

/// The round trip that a block about us tells (RFC 3550 §6.4.1), from our wall time now; `None` when it cannot.
pub fn round_trip(block: &Block, ntp_now: u64) -> Option<Duration> {
    if block.last_report == 0 {
        return None;
    }
    let now = (ntp_now >> 16) as u32;
    let units = now.wrapping_sub(block.last_report).wrapping_sub(block.delay);
    // More than a minute is a peer's mistake (or a negative value), not a network.
    if units > 60 << 16 {
        return None;
    }
    Some(Duration::from_nanos(u64::from(units) * 1_000_000_000 / 65_536))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Block = Block {
        ssrc: 9,
        fraction_lost: 25,
        lost: -3,
        highest: 70_000,
        jitter: 80,
        last_report: 0x1234_5678,
        delay: 65_536,
    };
    const INFO: SenderInfo =
        SenderInfo { ntp: 0x0102_0304_0506_0708, timestamp: 160, packets: 50, bytes: 8000 };

    fn compound(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut buffer = [0; 256];
        let mut writer = Writer::new(&mut buffer);
        write(&mut writer);
        let length = writer.len();
        buffer[..length].to_vec()
    }

    #[test]
    fn estimates_are_read_and_written_as_exponent_and_mantissa() {
        for (rate, bytes) in [
            (0, [1, 0, 0, 0]),
            (1, [1, 0, 0, 1]),
            (0x3_ffff, [1, 3, 0xff, 0xff]),
            (0x4_0000, [1, 1 << 2 | 2, 0, 0]),
            (2_000_000, [1, 3 << 2 | 3, 0xd0, 0x90]),
            (0x3_ffff << 46, [1, 46 << 2 | 3, 0xff, 0xff]),
        ] {
            assert_eq!((remb_of(rate), remb_rate(bytes)), (bytes, rate), "{rate}");
        }
        assert_eq!(remb_rate([1, 0xff, 0xff, 0xff]), u64::MAX, "more than can be counted");
        assert_eq!(remb_rate(remb_of(u64::MAX)), 0x3_ffff << 46);
        assert_eq!(remb_rate(remb_of(1_000_001)), 1_000_000, "rounded down");
    }
    #[test]
    fn rfc3550_6_4_a_compound_reads_back_as_it_was_written() {
        let bytes = compound(|writer| {
            writer.report(7, Some(INFO), Some(BLOCK));
            writer.cname(7, b"0123456789ab");
            writer.bye(7);
        });
        assert_eq!(bytes.len(), 52 + 4 + 20 + 8);
        let read: Vec<_> = Compound::parse(&bytes).unwrap().collect();
        let [Packet::Report { ssrc: 7, sender: Some(INFO), blocks }, Packet::Other(SDES), Packet::Bye(gone)] =
            read[..]
        else {
            panic!("{read:?}")
        };
        assert_eq!(blocks.collect::<Vec<_>>(), [BLOCK]);
        assert_eq!(gone, 7_u32.to_be_bytes());
    }

    #[test]
    fn rfc4585_6_feedback_goes_on_under_the_numbers_of_the_source_that_it_is_for() {
        const OURS: u32 = 0x0a0a_0a0a;
        let passage = Passage { about: OURS, origin: 0x0b0b_0b0b, sender: 0x0c0c_0c0c };
        // Packets from 100 on are the source's from 65,530 on.
        let number = |sequence: u16| (100..200).contains(&sequence).then(|| sequence.wrapping_add(65_430));
        let ours = OURS.to_be_bytes();
        let told = |kind: u8, format: u8, media: [u8; 4], fci: &[u8]| {
            let body = [&[0x0c; 4][..], &media, fci].concat();
            let words = (body.len() / 4) as u8;
            [&[0x80 | format, kind, 0, words][..], &body].concat()
        };
        let said = |kind, format, media: [u8; 4], fci: &[u8]| {
            let mut bytes = told(kind, format, media, fci);
            bytes[4..8].copy_from_slice(&7_u32.to_be_bytes());
            bytes
        };
        let other = [9; 4];
        let source = [0x0b; 4];
        let fir = |source: [u8; 4], sequence| [&source[..], &[sequence, 0, 0, 0]].concat();
        let remb = |sources: &[[u8; 4]]| {
            [&b"REMB"[..], &[sources.len() as u8, 0x0b, 0x52, 0x34], &sources.concat()].concat()
        };
        let many: Vec<u8> = (0..40).flat_map(|at| [0, 100 + at, 0, 0]).collect();
        let passed: Vec<u8> = (0..32_u16)
            .flat_map(|at| {
                let [p0, p1] = 65_530_u16.wrapping_add(at).to_be_bytes();
                [p0, p1, 0, 0]
            })
            .collect();
        let nothing = Vec::new;
        for (name, incoming, outgoing) in [
            ("6.3.1 a picture", said(206, 1, ours, &[]), told(206, 1, source, &[])),
            ("of another source", said(206, 1, other, &[]), nothing()),
            (
                "6.2.1 packets, across the wrap",
                said(205, 1, ours, &[0, 107, 0xa0, 0x01]),
                told(205, 1, source, &[0, 1, 0xa0, 0x01]),
            ),
            ("none of them its", said(205, 1, ours, &[0, 99, 0, 0]), nothing()),
            (
                "some of them its",
                said(205, 1, ours, &[0, 99, 0, 0, 0, 100, 0, 1]),
                told(205, 1, source, &[0xff, 0xfa, 0, 1]),
            ),
            ("more than are passed on", said(205, 1, ours, &many), told(205, 1, source, &passed)),
            ("an empty list", said(205, 1, ours, &[]), nothing()),
            (
                "5104 4.3.1 a whole picture",
                said(206, 4, [0; 4], &[fir(other, 3), fir(ours, 200)].concat()),
                told(206, 4, [0; 4], &fir(source, 200)),
            ),
            ("5104 4.3.1 of another source", said(206, 4, [0; 4], &fir(other, 3)), nothing()),
            (
                "an estimate",
                said(206, 15, [0; 4], &remb(&[other, ours])),
                told(206, 15, [0; 4], &remb(&[source])),
            ),
            ("an estimate of another source", said(206, 15, [0; 4], &remb(&[other])), nothing()),
            ("another application's", said(206, 15, [0; 4], b"XEMB\x01\x00\x00\x00"), nothing()),
            ("a limit of the rate", said(205, 3, [0; 4], &fir(ours, 3)), nothing()),
            ("cut short", said(206, 1, ours, &[])[..8].to_vec(), nothing()),
        ] {
            let mut incoming = incoming;
            incoming[3] = (incoming.len() / 4 - 1) as u8;
            let whole = [compound(|writer| writer.report(7, None, None)), incoming].concat();
            let written = compound(|writer| {
                for packet in Compound::parse(&whole).unwrap() {
                    if let Packet::Feedback(feedback) = packet {
                        writer.feedback(&feedback, passage, number);
                    }
                }
            });
            assert_eq!(written, outgoing, "{name}");
        }
    }

    #[test]
    fn rfc3550_6_5_a_description_ends_with_a_null_and_fills_words() {
        for length in 0..=CNAME_BYTES_MAX {
            let bytes = compound(|writer| {
                writer.report(7, None, None);
                writer.cname(7, &[b'x'; CNAME_BYTES_MAX][..length]);
            });
            assert_eq!(bytes.len() % 4, 0, "{length}");
            assert_eq!(bytes.last(), Some(&0), "{length}");
            assert_eq!(Compound::parse(&bytes).unwrap().count(), 2, "{length}");
        }
    }

    #[test]
    fn rfc3550_a_2_invalid_compounds_are_refused() {
        let good = compound(|writer| writer.report(7, None, Some(BLOCK)));
        assert!(Compound::parse(&good).is_ok());
        let change = |at: usize, value: u8| {
            let mut bad = good.clone();
            bad[at] = value;
            bad
        };
        let cases = [
            ("empty", vec![]),
            ("one byte", vec![0x80]),
            ("version 1", change(0, 0x41)),
            ("padding in the first", change(0, 0xa1)),
            ("first is SDES", change(1, SDES)),
            ("longer than the datagram", change(3, 200)),
            ("shorter than the datagram", change(3, 1)),
            ("cut", good[..good.len() - 1].to_vec()),
        ];
        for (name, bytes) in cases {
            assert_eq!(Compound::parse(&bytes).map(|_| ()), Err(Discard::BadRtcp), "{name}");
        }
        // More blocks promised than present: none is read, nothing is invented.
        let lying = change(0, 0x9f);
        let Some(Packet::Report { blocks, .. }) = Compound::parse(&lying).unwrap().next() else { panic!() };
        assert_eq!(blocks.count(), 0);
    }

    #[test]
    fn rfc3550_6_4_1_round_trip_is_arrival_less_report_less_delay() {
        // The RFC's example: A = 0xb710:8000, LSR = 0xb705:2000, DLSR = 5.250 s give 6.125 s.
        let block = Block { last_report: 0xb705_2000, delay: 0x0005_4000, ..BLOCK };
        assert_eq!(round_trip(&block, 0xb710_8000 << 16), Some(Duration::from_millis(6125)));
        assert_eq!(round_trip(&Block { last_report: 0, ..block }, 0xb710_8000 << 16), None);
        assert_eq!(
            round_trip(&Block { delay: u32::MAX, ..block }, 0xb705_2000 << 16),
            Some(Duration::from_nanos(15_258))
        );
        assert_eq!(round_trip(&block, 0xb705_2000 << 16), None, "negative");
    }
}
