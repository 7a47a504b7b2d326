//! UDPTL, the packets of fax over UDP (ITU-T T.38 §9.1): one machine that reads them and makes good what was lost, one that
//! writes them with what protects against loss. What an IFP packet says is nobody's business here.

use base::UdptlProtection;

use crate::Discard;

/// Longest datagram that is written: fits into an Ethernet frame with room for tunnels.
pub const UDPTL_BYTES_MAX: usize = 1400;
/// Longest IFP packet: three times what 40 ms at 33,600 bit/s need.
pub const IFP_BYTES_MAX: usize = 512;
/// IFP packets that are remembered, in either direction; a power of two. More than 0.3 s, so that nobody repeats older ones.
const HISTORY: usize = 16;
/// Older IFP packets that one datagram repeats: three in a row may get lost.
const REPEATED: u16 = 3;
/// A jump of numbers that begins anew.
const JUMP_MAX: u16 = 512;
/// Parity fields of a datagram that are read.
const PARITIES_MAX: usize = HISTORY;
/// Parity fields of a datagram that is written, and how many packets each stands for.
const PARITIES: u16 = 3;
const SPAN: u16 = 3;

/// An IFP packet, or that some never came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// The next one.
    Ifp(&'a [u8]),
    /// So many are lost before the next one.
    Lost(u16),
}

/// One remembered IFP packet; none with length 0.
#[derive(Debug, Clone, Copy)]
struct Row {
    sequence: u16,
    length: u16,
    bytes: [u8; IFP_BYTES_MAX],
}

/// The latest IFP packets, by number.
#[derive(Debug, Clone)]
struct History([Row; HISTORY]);

impl History {
    const EMPTY: Self = Self([Row { sequence: 0, length: 0, bytes: [0; IFP_BYTES_MAX] }; HISTORY]);

    fn get(&self, sequence: u16) -> Option<&[u8]> {
        let row = self.0.get(usize::from(sequence) % HISTORY)?;
        row.bytes.get(..usize::from(row.length)).filter(|bytes| row.sequence == sequence && !bytes.is_empty())
    }
    /// Keeps one; too long ones are not.
    fn keep(&mut self, sequence: u16, ifp: &[u8]) {
        let Some(row) = self.0.get_mut(usize::from(sequence) % HISTORY) else { return };
        (row.sequence, row.length) = (sequence, 0);
        if let Some(room) = row.bytes.get_mut(..ifp.len()) {
            room.copy_from_slice(ifp);
            row.length = u16::try_from(ifp.len()).unwrap_or(0);
        }
    }
}

/// Reads the fields of a datagram (ASN.1, aligned packed encoding).
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn byte(&mut self) -> Result<u8, Discard> {
        let (byte, rest) = self.0.split_first().ok_or(Discard::TooShort)?;
        self.0 = rest;
        Ok(*byte)
    }
    /// A length below 16,384; longer ones come in fragments, and no datagram has room for those.
    fn length(&mut self) -> Result<usize, Discard> {
        let first = usize::from(self.byte()?);
        match first {
            0..0x80 => Ok(first),
            0x80..0xc0 => Ok((first & 0x3f) << 8 | usize::from(self.byte()?)),
            _ => Err(Discard::Malformed),
        }
    }
    fn octets(&mut self) -> Result<&'a [u8], Discard> {
        let length = self.length()?;
        let (octets, rest) = self.0.split_at_checked(length).ok_or(Discard::TooShort)?;
        self.0 = rest;
        Ok(octets)
    }
    fn list<const MAX: usize>(&mut self) -> Result<List<'a, MAX>, Discard> {
        let count = self.length()?;
        let mut list = List { items: [&[]; MAX], count: 0 };
        for _ in 0..count {
            // Whoever counts more than there are has sent a broken datagram; more than we keep are only skipped.
            let octets = self.octets()?;
            if let Some(slot) = list.items.get_mut(list.count) {
                *slot = octets;
                list.count += 1;
            }
        }
        Ok(list)
    }
}

struct List<'a, const MAX: usize> {
    items: [&'a [u8]; MAX],
    count: usize,
}

impl<'a, const MAX: usize> List<'a, MAX> {
    const NONE: Self = Self { items: [&[]; MAX], count: 0 };

    fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.items.get(..self.count)?.get(index).copied().filter(|octets| !octets.is_empty())
    }
}

/// Reads datagrams.
#[derive(Debug, Clone)]
pub struct UdptlReceiver {
    next: Option<u16>,
    history: History,
}

impl Default for UdptlReceiver {
    fn default() -> Self {
        Self { next: None, history: History::EMPTY }
    }
}

impl UdptlReceiver {
    /// The number of a datagram, before anything else is believed of it.
    pub fn sequence(datagram: &[u8]) -> Option<u16> {
        datagram.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
    }
    /// Takes a datagram and hands on the IFP packets that it brings, in order, each once: those that were lost before it
    /// and can be made good, and its own. A datagram that is broken anywhere brings nothing.
    pub fn datagram(&mut self, datagram: &[u8], mut deliver: impl FnMut(Piece<'_>)) -> Result<(), Discard> {
        let sequence = Self::sequence(datagram).ok_or(Discard::TooShort)?;
        let mut fields = Fields(datagram.get(2..).unwrap_or_default());
        let primary = fields.octets()?;
        if primary.len() > IFP_BYTES_MAX {
            return Err(Discard::Overflow);
        }
        let mut repeated = List::<HISTORY>::NONE;
        let mut parity = (0_usize, List::<PARITIES_MAX>::NONE);
        // A datagram that ends here protects nothing; some senders leave the field out then.
        match fields.byte() {
            Ok(choice) if choice & 0x80 == 0 => repeated = fields.list()?,
            Ok(_) => {
                let span = fields.octets()?;
                let span =
                    if let [span] = span { usize::from(*span) } else { return Err(Discard::Malformed) };
                parity = (span, fields.list()?);
            }
            Err(_) => {}
        }
        let before = u16::try_from(repeated.count).unwrap_or(0);
        let next = self.next.filter(|next| {
            let ahead = sequence.wrapping_sub(*next);
            ahead.min(ahead.wrapping_neg()) <= JUMP_MAX
        });
        if next.is_none() {
            self.history = History::EMPTY;
        }
        // The first one brings what was sent before it, and nobody knows of more.
        let next = next.unwrap_or(sequence.wrapping_sub(before));
        let missing = sequence.wrapping_sub(next);
        if missing > JUMP_MAX {
            return Err(Discard::Late);
        }
        self.restore(sequence, missing, &parity);
        let mut lost = 0;
        for back in (1..=missing).rev() {
            let number = sequence.wrapping_sub(back);
            if let Some(ifp) = repeated.get(usize::from(back) - 1).filter(|ifp| ifp.len() <= IFP_BYTES_MAX) {
                self.history.keep(number, ifp);
            }
            match self.history.get(number) {
                Some(ifp) => {
                    if lost > 0 {
                        deliver(Piece::Lost(std::mem::take(&mut lost)));
                    }
                    deliver(Piece::Ifp(ifp));
                }
                None => lost += 1,
            }
        }
        if lost > 0 {
            deliver(Piece::Lost(lost));
        }
        self.history.keep(sequence, primary);
        self.next = Some(sequence.wrapping_add(1));
        if !primary.is_empty() {
            deliver(Piece::Ifp(primary));
        }
        Ok(())
    }
    /// Makes packets good from parity fields: field `m` of `n` is the sum of every `n`-th packet, as many as the span
    /// says, up to the one `n - m` before this. It stands for the one of them that is missing.
    fn restore(&mut self, sequence: u16, missing: u16, (span, parities): &(usize, List<'_, PARITIES_MAX>)) {
        let count = parities.count;
        if missing == 0 || count == 0 || span * count > HISTORY {
            return;
        }
        for field in 0..count {
            let Some(parity) = parities.get(field).filter(|parity| parity.len() <= IFP_BYTES_MAX) else {
                continue;
            };
            let back = |step: usize| u16::try_from(step * count - field).unwrap_or(u16::MAX);
            let numbers = || (1..=*span).map(|step| sequence.wrapping_sub(back(step)));
            let mut gone = numbers().filter(|number| self.history.get(*number).is_none());
            let (Some(number), None) = (gone.next(), gone.next()) else { continue };
            // Only what is awaited: older ones have been given up.
            if sequence.wrapping_sub(number) > missing {
                continue;
            }
            let mut sum = [0; IFP_BYTES_MAX];
            let Some(sum) = sum.get_mut(..parity.len()) else { continue };
            sum.copy_from_slice(parity);
            for known in numbers().filter_map(|number| self.history.get(number)) {
                sum.iter_mut().zip(known).for_each(|(sum, byte)| *sum ^= byte);
            }
            self.history.keep(number, sum);
        }
    }
}

/// Writes datagrams.
#[derive(Debug, Clone)]
pub struct UdptlSender {
    next: u16,
    protection: UdptlProtection,
    datagram_max: usize,
    history: History,
}

impl UdptlSender {
    /// Begins at number 0. No datagram is longer than `datagram_max` but for one whose own packet is.
    pub fn new(protection: UdptlProtection, datagram_max: u16) -> Self {
        let datagram_max = usize::from(datagram_max).min(UDPTL_BYTES_MAX);
        Self { next: 0, protection, datagram_max, history: History::EMPTY }
    }
    /// Leaves numbers out, so that the receiver knows that packets were lost on their way here.
    pub fn skip(&mut self, lost: u16) {
        self.next = self.next.wrapping_add(lost);
    }
    /// The datagram of an IFP packet; `None` when the packet is too long.
    pub fn datagram<'a>(&mut self, ifp: &[u8], room: &'a mut [u8; UDPTL_BYTES_MAX]) -> Option<&'a [u8]> {
        if ifp.is_empty() || ifp.len() > IFP_BYTES_MAX {
            return None;
        }
        let sequence = self.next;
        let mut out = Writer { room, at: 0 };
        out.put(&sequence.to_be_bytes());
        out.octets(ifp);
        let length = out.at;
        match self.protection {
            UdptlProtection::None => out.put(&[0, 0]),
            UdptlProtection::Redundancy => self.repeat(sequence, &mut out),
            UdptlProtection::Fec => self.add_parity(sequence, &mut out),
        }
        if out.at > self.datagram_max.max(length + 2) || out.at > UDPTL_BYTES_MAX {
            out.at = length;
            out.put(&[0, 0]);
        }
        self.history.keep(sequence, ifp);
        self.next = sequence.wrapping_add(1);
        let Writer { room, at } = out;
        room.get(..at)
    }
    /// The packets right before this one, as many as fit, the latest first.
    fn repeat(&self, sequence: u16, out: &mut Writer<'_>) {
        let room = self.datagram_max.saturating_sub(out.at + 2);
        let mut bytes = 0;
        let fits = |ifp: &&[u8]| {
            bytes += ifp.len() + if ifp.len() < 0x80 { 1 } else { 2 };
            bytes <= room
        };
        let packets = || (1..=REPEATED).map_while(|back| self.history.get(sequence.wrapping_sub(back)));
        let count = packets().take_while(fits).count();
        out.put(&[0, u8::try_from(count).unwrap_or(0)]);
        packets().take(count).for_each(|ifp| out.octets(ifp));
    }
    fn add_parity(&self, sequence: u16, out: &mut Writer<'_>) {
        let is_there = |back: u16| self.history.get(sequence.wrapping_sub(back)).is_some();
        let known = (1..=PARITIES * SPAN).take_while(|back| is_there(*back)).count();
        let span = u16::try_from(known).unwrap_or(0) / PARITIES;
        let count = if span == 0 { 0 } else { PARITIES };
        out.put(&[0x80, 1, u8::try_from(span).unwrap_or(0), u8::try_from(count).unwrap_or(0)]);
        for field in 0..count {
            let (mut sum, mut length) = ([0; IFP_BYTES_MAX], 0);
            for step in 1..=span {
                let packet =
                    self.history.get(sequence.wrapping_sub(step * PARITIES - field)).unwrap_or_default();
                sum.iter_mut().zip(packet).for_each(|(sum, byte)| *sum ^= byte);
                length = length.max(packet.len());
            }
            out.octets(sum.get(..length).unwrap_or_default());
        }
    }
}

/// Writes into a room; what goes over its end is counted and not written.
struct Writer<'a> {
    room: &'a mut [u8; UDPTL_BYTES_MAX],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(room) = self.room.get_mut(self.at..self.at + bytes.len()) {
            room.copy_from_slice(bytes);
        }
        self.at += bytes.len();
    }
    fn octets(&mut self, bytes: &[u8]) {
        let [high, low] = u16::try_from(bytes.len()).unwrap_or(0).to_be_bytes();
        if high == 0 && low < 0x80 {
            self.put(&[low]);
        } else {
            self.put(&[0x80 | high, low]);
        }
        self.put(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use UdptlProtection::{Fec, None as Bare, Redundancy};

    /// Of one length: what parity brings back is as long as the longest of its packets.
    fn ifp(number: u8) -> Vec<u8> {
        vec![number.wrapping_mul(31), number, !number, 1]
    }
    /// What a receiver makes of these datagrams.
    fn heard<'a>(datagrams: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<Result<Vec<u8>, u16>> {
        let (mut receiver, mut heard) = (UdptlReceiver::default(), Vec::new());
        for datagram in datagrams {
            receiver
                .datagram(datagram, |piece| {
                    heard.push(match piece {
                        Piece::Ifp(ifp) => Ok(ifp.to_vec()),
                        Piece::Lost(count) => Err(count),
                    });
                })
                .ok();
        }
        heard
    }
    fn sent(protection: UdptlProtection, count: u8) -> Vec<Vec<u8>> {
        let mut sender = UdptlSender::new(protection, 400);
        let mut room = [0; UDPTL_BYTES_MAX];
        (0..count).map(|number| sender.datagram(&ifp(number), &mut room).unwrap().to_vec()).collect()
    }

    #[test]
    fn t38_9_1_datagrams_are_coded_as_the_packed_rules_have_it() {
        let mut sender = UdptlSender::new(Redundancy, 400);
        let mut room = [0; UDPTL_BYTES_MAX];
        assert_eq!(sender.datagram(&[0x06], &mut room).unwrap(), [0, 0, 1, 0x06, 0, 0]);
        assert_eq!(sender.datagram(&[0xa0, 1], &mut room).unwrap(), [0, 1, 2, 0xa0, 1, 0, 1, 1, 0x06]);
        let long = vec![7; 200];
        let datagram = sender.datagram(&long, &mut room).unwrap();
        assert_eq!(datagram[..5], [0, 2, 0x80, 200, 7]);
        assert_eq!(datagram[204..], [0, 2, 2, 0xa0, 1, 1, 0x06]);
        let mut sender = UdptlSender::new(Bare, 400);
        assert_eq!(sender.datagram(&[9], &mut room).unwrap(), [0, 0, 1, 9, 0, 0]);
        let parity = sent(Fec, 4);
        assert_eq!(parity[0][parity[0].len() - 4..], [0x80, 1, 0, 0]);
        let [first, second, third] = [ifp(0), ifp(1), ifp(2)];
        let mut fields = vec![0x80, 1, 1, 3, 4];
        fields.extend(&first);
        fields.push(4);
        fields.extend(&second);
        fields.push(4);
        fields.extend(&third);
        assert!(parity[3].ends_with(&fields), "{:?}", parity[3]);
    }

    #[test]
    fn t38_9_1_lost_datagrams_are_made_good_as_far_as_the_protection_goes() {
        let all: Vec<_> = (0..30).map(|number| Ok(ifp(number))).collect();
        for (name, protection, dropped, whole) in [
            ("nothing lost", Bare, &[][..], true),
            ("one lost, bare", Bare, &[9], false),
            ("three in a row, repeated", Redundancy, &[9, 10, 11], true),
            ("four in a row, repeated", Redundancy, &[9, 10, 11, 12], false),
            ("the first ones, repeated", Redundancy, &[0, 1], true),
            ("one lost, parity", Fec, &[12], true),
            ("three in a row, parity", Fec, &[12, 13, 14], true),
            ("four in a row, parity", Fec, &[12, 13, 14, 15], false),
        ] {
            let datagrams = sent(protection, 30);
            let kept = datagrams.iter().enumerate().filter(|(number, _)| !dropped.contains(number));
            let heard = heard(kept.map(|(_, datagram)| datagram));
            assert_eq!(heard == all, whole, "{name}");
            let lost: u16 = heard.iter().filter_map(|piece| piece.as_ref().err()).sum();
            assert_eq!(
                heard.iter().flatten().count() + usize::from(lost),
                30,
                "{name}: nothing is forgotten"
            );
            // What comes is right and in order, whatever is missing.
            let mut next = all.iter();
            assert!(heard.iter().flatten().all(|ifp| next.any(|one| one.as_ref() == Ok(ifp))), "{name}");
        }
    }

    #[test]
    fn datagrams_that_come_twice_late_or_after_a_jump_bring_each_packet_once() {
        let datagrams = sent(Redundancy, 6);
        let [a, b, c, d, e, f] = &datagrams[..] else { panic!() };
        let whole: Vec<_> = (0..6).map(|number| Ok(ifp(number))).collect();
        assert_eq!(heard([a, a, b, d, c, b, f, e]), whole);
        // Numbers go round.
        let mut sender = UdptlSender::new(Redundancy, 400);
        sender.skip(u16::MAX - 1);
        let mut room = [0; UDPTL_BYTES_MAX];
        let mut round: Vec<Vec<u8>> =
            (0..6).map(|number| sender.datagram(&ifp(number), &mut room).unwrap().to_vec()).collect();
        round.remove(2);
        assert_eq!(heard(&round), whole);
        // Another sender begins anew.
        let mut far = UdptlSender::new(Bare, 400);
        far.skip(30_000);
        let jump = far.datagram(&[5], &mut room).unwrap().to_vec();
        assert_eq!(heard([a, &jump]), [Ok(ifp(0)), Ok(vec![5])]);
        // What was lost on its way here is told to whoever comes after us.
        let mut gap = UdptlSender::new(Redundancy, 400);
        let first = gap.datagram(&[1], &mut room).unwrap().to_vec();
        gap.skip(2);
        let second = gap.datagram(&[2], &mut room).unwrap().to_vec();
        assert_eq!(heard([&first, &second]), [Ok(vec![1]), Err(2), Ok(vec![2])]);
    }

    #[test]
    fn no_datagram_is_longer_than_the_peer_takes() {
        let mut room = [0; UDPTL_BYTES_MAX];
        for protection in [Redundancy, Fec] {
            let mut sender = UdptlSender::new(protection, 250);
            for number in 0..20 {
                let datagram = sender.datagram(&[number; 100], &mut room).unwrap();
                assert!(datagram.len() <= 250, "{protection:?}: {}", datagram.len());
            }
            let alone = sender.datagram(&[0; IFP_BYTES_MAX], &mut room).unwrap();
            assert_eq!(alone.len(), IFP_BYTES_MAX + 6, "{protection:?}");
            assert_eq!(sender.datagram(&[0; IFP_BYTES_MAX + 1], &mut room), None);
        }
    }

    #[test]
    fn broken_datagrams_bring_nothing_and_change_nothing() {
        let good = sent(Fec, 12);
        let mut receiver = UdptlReceiver::default();
        for datagram in &good[..10] {
            receiver.datagram(datagram, |_| {}).unwrap();
        }
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        for round in 0..20_000 {
            let mut bytes = good[round % good.len()].clone();
            for _ in 0..=round % 3 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                let at = 2 + seed as usize % (bytes.len() - 2);
                bytes[at] = (seed >> 32) as u8;
            }
            bytes.truncate(seed as usize % (bytes.len() + 1));
            let mut other = receiver.clone();
            let mut pieces = 0;
            if other.datagram(&bytes, |_| pieces += 1).is_err() {
                assert_eq!(pieces, 0, "{bytes:?}");
                assert_eq!(other.next, receiver.next, "{bytes:?}");
            }
        }
        for (name, bytes) in [
            ("empty", &[][..]),
            ("no packet", &[0, 10]),
            ("cut short", &[0, 10, 5, 1, 2]),
            ("fragments", &[0, 10, 0xc1, 1, 2]),
            ("fewer repeats than counted", &[0, 10, 1, 1, 0, 2, 1, 1]),
            ("a span of two bytes", &[0, 10, 1, 1, 0x80, 2, 0, 3, 0]),
        ] {
            assert!(receiver.clone().datagram(bytes, |_| panic!("{name}")).is_err(), "{name}");
        }
    }
}
