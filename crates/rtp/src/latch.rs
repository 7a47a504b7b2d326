//! Who may send to a stream: the latch against RTP bleed and injection.
//!
//! A refused packet changes nothing but a counter: no address, no statistics, no audio.

use core::net::SocketAddr;

use base::Latch;

/// Consecutive packets that a source must send before a learning stream locks onto it.
const LEARN_PACKETS: u8 = 4;

/// Packets of the source that was locked before which close a window that was opened again: a second of 20 ms. Fewer,
/// and stragglers of a port that the phone has just left would shut the new one out.
const GRACE_PACKETS: u8 = 50;

/// Sources watched at once while learning; an interleaving stranger at the same address cannot reset the others.
const CANDIDATES: usize = 3;

/// What the latch says to one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// From the known source.
    Accept,
    /// The source has just become known; packets go there from here on.
    Locked(SocketAddr),
    /// Learning: the source may become known, but is not heard yet.
    Learning,
    /// A stranger.
    Refuse,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    source: SocketAddr,
    ssrc: u32,
    next_sequence: u16,
    seen: u8,
}

/// The latch of one stream.
#[derive(Debug)]
pub struct SourceLock {
    rule: Latch,
    locked: Option<SocketAddr>,
    candidates: [Option<Candidate>; CANDIDATES],
    replace_next: u8,
    /// While not 0 the window is open again, and the locked source is heard meanwhile.
    grace: u8,
}

impl SourceLock {
    /// Nothing is known yet.
    pub const fn new(rule: Latch) -> Self {
        Self { rule, locked: None, candidates: [None; CANDIDATES], replace_next: 0, grace: 0 }
    }
    /// A new plan. Another rule, or a peer that `moved` to another address in SDP, begins anew. `relearn` alone opens
    /// the window again, but the source that is locked goes on being heard: a session refresh costs no audio.
    pub fn replan(&mut self, rule: Latch, relearn: bool, moved: bool) {
        if rule != self.rule || relearn && moved {
            *self = Self::new(rule);
        } else if relearn && self.locked.is_some() && matches!(rule, Latch::Learn(_)) {
            self.grace = GRACE_PACKETS;
            self.candidates = [None; CANDIDATES];
        }
    }
    /// Whether another source than the locked one may become known.
    pub const fn is_open(&self) -> bool {
        self.locked.is_none() || self.grace > 0
    }
    /// The source that is locked.
    pub const fn locked(&self) -> Option<SocketAddr> {
        self.locked
    }
    /// Judges one well-formed packet of a negotiated payload type; `expected` is the address that SDP named.
    pub fn judge(
        &mut self,
        from: SocketAddr,
        expected: Option<SocketAddr>,
        ssrc: u32,
        sequence: u16,
    ) -> Verdict {
        match (self.rule, self.locked) {
            (Latch::Strict, _) if Some(from) != expected => Verdict::Refuse,
            (Latch::Strict | Latch::Off, Some(known)) if known == from => Verdict::Accept,
            (Latch::Strict | Latch::Off, _) => self.lock(from),
            (Latch::Learn(_), Some(known)) if known == from => self.known(from),
            (Latch::Learn(_), Some(_)) if self.grace == 0 => Verdict::Refuse,
            (Latch::Learn(ip), _) if ip != from.ip() => Verdict::Refuse,
            (Latch::Learn(_), _) => self.learn(from, ssrc, sequence),
        }
    }

    fn known(&mut self, source: SocketAddr) -> Verdict {
        match self.grace {
            0 => Verdict::Accept,
            1 => self.lock(source),
            _ => {
                self.grace -= 1;
                Verdict::Accept
            }
        }
    }
    fn lock(&mut self, source: SocketAddr) -> Verdict {
        self.locked = Some(source);
        self.candidates = [None; CANDIDATES];
        self.grace = 0;
        Verdict::Locked(source)
    }

    fn learn(&mut self, source: SocketAddr, ssrc: u32, sequence: u16) -> Verdict {
        let known = |c: &&mut Candidate| c.source == source && c.ssrc == ssrc;
        if let Some(candidate) = self.candidates.iter_mut().flatten().find(known) {
            candidate.seen = if sequence == candidate.next_sequence { candidate.seen + 1 } else { 1 };
            candidate.next_sequence = sequence.wrapping_add(1);
            if candidate.seen >= LEARN_PACKETS {
                return self.lock(source);
            }
            return Verdict::Learning;
        }
        let fresh = Candidate { source, ssrc, next_sequence: sequence.wrapping_add(1), seen: 1 };
        let empty = self.candidates.iter().position(Option::is_none);
        let index = empty.unwrap_or_else(|| {
            self.replace_next = self.replace_next.wrapping_add(1);
            usize::from(self.replace_next) % CANDIDATES
        });
        if let Some(slot) = self.candidates.get_mut(index) {
            *slot = Some(fresh);
        }
        Verdict::Learning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn strict_accepts_only_the_address_that_sdp_named() {
        let (peer, other) = (at("192.0.2.1:4000"), at("192.0.2.1:4002"));
        let mut lock = SourceLock::new(Latch::Strict);
        assert_eq!(lock.judge(other, Some(peer), 1, 1), Verdict::Refuse);
        assert_eq!(lock.judge(peer, None, 1, 1), Verdict::Refuse);
        assert_eq!(lock.judge(peer, Some(peer), 1, 1), Verdict::Locked(peer));
        assert_eq!(lock.judge(peer, Some(peer), 1, 2), Verdict::Accept);
        // SDP moved: the old source is refused at once.
        assert_eq!(lock.judge(peer, Some(other), 1, 3), Verdict::Refuse);
        assert_eq!(lock.judge(other, Some(other), 1, 4), Verdict::Locked(other));
    }

    #[test]
    fn learning_needs_four_consecutive_packets_of_one_ssrc_from_the_signalling_address() {
        let (phone, thief) = (at("198.51.100.7:50000"), at("203.0.113.9:50000"));
        let mut lock = SourceLock::new(Latch::Learn(phone.ip()));
        for n in 0..100 {
            assert_eq!(lock.judge(thief, None, 9, n), Verdict::Refuse, "a thief elsewhere never counts");
        }
        for (sequence, ssrc) in [(1, 5), (2, 5), (3, 5), (5, 5), (6, 5), (7, 6), (7, 5)] {
            assert_eq!(lock.judge(phone, None, ssrc, sequence), Verdict::Learning, "{sequence}/{ssrc}");
        }
        assert_eq!(lock.judge(phone, None, 5, 8), Verdict::Locked(phone));
        assert_eq!(lock.judge(phone, None, 5, 9), Verdict::Accept);
        let rebound = at("198.51.100.7:50002");
        for n in 10..20 {
            assert_eq!(lock.judge(rebound, None, 5, n), Verdict::Refuse, "locked until a new plan relearns");
        }
        lock.replan(Latch::Learn(phone.ip()), false, true);
        assert!(!lock.is_open() && lock.locked() == Some(phone));
        lock.replan(Latch::Learn(phone.ip()), true, false);
        assert_eq!(lock.judge(phone, None, 5, 10), Verdict::Accept, "heard until another one is known");
        assert_eq!(lock.judge(thief, None, 5, 10), Verdict::Refuse);
        let verdicts: Vec<_> = (20..24).map(|n| lock.judge(rebound, None, 5, n)).collect();
        assert_eq!(verdicts[2..], [Verdict::Learning, Verdict::Locked(rebound)]);
    }

    #[test]
    fn a_window_that_was_opened_again_closes_when_the_phone_goes_on_as_before_or_when_it_moved() {
        let phone = at("198.51.100.7:50000");
        let rule = Latch::Learn(phone.ip());
        let mut lock = SourceLock::new(rule);
        assert_eq!((0..4).map(|n| lock.judge(phone, None, 5, n)).last(), Some(Verdict::Locked(phone)));
        lock.replan(rule, true, false);
        let verdicts: Vec<_> = (4..60).map(|n| lock.judge(phone, None, 5, n)).collect();
        let closed = verdicts.iter().position(|v| *v == Verdict::Locked(phone));
        assert_eq!(closed, Some(usize::from(GRACE_PACKETS) - 1));
        assert!(verdicts.iter().filter(|v| **v == Verdict::Accept).count() == verdicts.len() - 1);
        assert_eq!(lock.judge(at("198.51.100.7:50002"), None, 5, 60), Verdict::Refuse);
        lock.replan(rule, true, true);
        assert_eq!((lock.locked(), lock.judge(phone, None, 5, 61)), (None, Verdict::Learning));
    }

    #[test]
    fn a_stranger_interleaving_at_the_same_address_cannot_keep_the_phone_from_locking() {
        let (phone, stranger) = (at("198.51.100.7:50000"), at("198.51.100.7:60000"));
        let mut lock = SourceLock::new(Latch::Learn(phone.ip()));
        for n in 0..3 {
            assert_eq!(lock.judge(phone, None, 1, n), Verdict::Learning);
            assert_eq!(lock.judge(stranger, None, 2, n.wrapping_mul(77)), Verdict::Learning);
        }
        assert_eq!(lock.judge(phone, None, 1, 3), Verdict::Locked(phone));
    }

    #[test]
    fn off_follows_the_latest_source() {
        let (one, two) = (at("192.0.2.1:4000"), at("[2001:db8::1]:4000"));
        let mut lock = SourceLock::new(Latch::Off);
        assert_eq!(lock.judge(one, None, 1, 1), Verdict::Locked(one));
        assert_eq!(lock.judge(one, None, 1, 2), Verdict::Accept);
        assert_eq!(lock.judge(two, None, 1, 3), Verdict::Locked(two));
    }
}
