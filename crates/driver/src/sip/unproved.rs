//! Callers by datagram of whom nothing shows that they are where their INVITEs say: guests, and those whose calls need no
//! password. Each address gets at most one and a half times what came from it, until it has shown that it receives what
//! is sent there, by an ACK with our tag. What is held back is sent when it is repeated: by then the caller has repeated
//! its INVITE, too.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};

use base::{Instant, answer_octets, datagram_overhead};

/// Addresses that are kept account of, some 60 bytes each. While there are so many, further such callers are not heard.
const ADDRESSES_MAX: usize = 16_384;
/// How long an address is kept after the last datagram to or from it: longer than a ringing call is silent, which repeats
/// its provisional response each minute.
const KEPT: Duration = Duration::from_secs(130);

struct Account {
    /// Bytes that came, with IP and UDP around them.
    asked: usize,
    /// The same of those that were sent.
    sent: usize,
    until: Instant,
}

/// See the module's page.
#[derive(Default)]
pub(super) struct Unproved {
    accounts: HashMap<IpAddr, Account>,
    /// When accounts may be closed, in order.
    closed_at: VecDeque<(Instant, IpAddr)>,
}

impl Unproved {
    /// Whether nobody is kept account of, which is all that most sites ever ask.
    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }
    /// A caller was let in whose INVITE has so many bytes; `false`: there is no room for another.
    pub(super) fn admit(&mut self, ip: IpAddr, bytes: usize, now: Instant) -> bool {
        let ip = ip.to_canonical();
        while let Some((at, known)) = self.closed_at.pop_front_if(|(at, _)| *at <= now) {
            match self.accounts.get(&known) {
                Some(account) if account.until > now => {
                    self.closed_at.push_back((account.until.max(at), known))
                }
                _ => _ = self.accounts.remove(&known),
            }
        }
        if self.accounts.contains_key(&ip) {
            return true; // counted when it came in
        }
        if self.accounts.len() >= ADDRESSES_MAX || self.closed_at.len() >= 2 * ADDRESSES_MAX {
            return false;
        }
        let (asked, until) = (bytes + datagram_overhead(ip), now + KEPT);
        self.accounts.insert(ip, Account { asked, sent: 0, until });
        self.closed_at.push_back((until, ip));
        true
    }
    /// A datagram came.
    pub(super) fn received(&mut self, ip: IpAddr, bytes: usize, now: Instant) {
        if let Some(account) = self.accounts.get_mut(&ip.to_canonical()) {
            account.asked = account.asked.saturating_add(bytes + datagram_overhead(ip));
            account.until = now + KEPT;
        }
    }
    /// Whether a datagram may leave. Of provisional responses only as many do that there is room for a final one.
    pub(super) fn may_send(&mut self, ip: IpAddr, bytes: &[u8], now: Instant) -> bool {
        let ip = ip.to_canonical();
        let Some(account) = self.accounts.get_mut(&ip) else { return true };
        account.until = account.until.max(now + KEPT);
        let around = datagram_overhead(ip);
        let most = answer_octets(account.asked);
        let most = if bytes.starts_with(b"SIP/2.0 1") { most / 3 } else { most };
        let sent = account.sent + bytes.len() + around;
        if sent > most {
            return false;
        }
        account.sent = sent;
        true
    }
    /// Whoever is there has shown that it receives what is sent there.
    pub(super) fn prove(&mut self, ip: IpAddr) {
        self.accounts.remove(&ip.to_canonical());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_one_and_a_half_times_what_it_sends_until_it_is_proved() {
        let ip = IpAddr::from([192, 0, 2, 9]);
        let now = Instant::ZERO;
        let (ringing, answer) =
            ([b"SIP/2.0 180 ".as_slice(), &[0; 388]].concat(), [&b"SIP/2.0 200 "[..], &[0; 788]].concat());
        let mut unproved = Unproved::default();
        assert!(unproved.may_send(ip, &answer, now), "nobody's account");
        assert!(unproved.admit(ip, 572, now)); // 600 on the wire, so that 900 may leave
        assert!(!unproved.may_send(ip, &ringing, now), "there has to be room for the answer");
        assert!(unproved.may_send(ip, &answer, now));
        assert!(!unproved.may_send(ip, &answer, now), "a repetition is one too many");
        unproved.received(ip, 572, now);
        assert!(unproved.may_send(ip, &answer, now), "the caller has repeated its INVITE");
        unproved.prove(ip);
        assert!((0..9).all(|_| unproved.may_send(ip, &answer, now)) && unproved.is_empty());
        let late = now + KEPT * 2;
        for number in 0..20_000_u32 {
            let known = unproved.admit(IpAddr::from(number.to_be_bytes()), 572, now);
            assert_eq!(known, (number as usize) < ADDRESSES_MAX, "{number}");
        }
        assert!(
            unproved.admit(ip, 572, late) && unproved.accounts.len() == 1,
            "those who have ceased make room"
        );
    }
}
