//! The pool of media ports: random even ports out of `rtpstart`..`rtpend`, given back whatever happens.
#![forbid(unsafe_code)]

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// First and last UDP port for media, as `rtp.conf` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    /// `rtpstart`.
    pub first: u16,
    /// `rtpend`.
    pub last: u16,
}

impl PortRange {
    /// Even ports within the range, the last one included: RTCP takes the port above it, also where that is beyond the range.
    pub const fn pairs(self) -> u16 {
        let first = self.first.div_ceil(2);
        (self.last / 2 + 1).saturating_sub(first)
    }
    const fn port(self, pair: u16) -> u16 {
        (self.first.div_ceil(2) + pair) * 2
    }
}

/// Which pairs are leased. Shared with the workers, because a leg gives its ports back where it dies.
#[derive(Debug)]
pub struct PortPool {
    range: PortRange,
    taken: Box<[AtomicU64]>,
}

/// A pair of ports; dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Lease {
    pool: Arc<PortPool>,
    pair: u16,
}

/// Why no port was to be had.
#[derive(Debug)]
pub(crate) enum NoPort {
    /// All pairs are ours already, or other programs hold the rest.
    Exhausted {
        /// Pairs that other programs hold.
        foreign: u16,
    },
    /// The address cannot be bound at all.
    Bind(io::Error),
}

impl PortPool {
    /// A pool with every pair free.
    pub fn new(range: PortRange) -> Arc<Self> {
        let words = usize::from(range.pairs()).div_ceil(64);
        Arc::new(Self { range, taken: (0..words).map(|_| AtomicU64::new(0)).collect() })
    }
    /// The range it serves.
    pub fn range(&self) -> PortRange {
        self.range
    }
    /// Pairs that are leased.
    pub fn leased(&self) -> u32 {
        self.taken.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum()
    }
    /// Leases a pair and binds its even port, for RTP; begins at a random pair, steps over those that another program
    /// holds.
    pub(crate) fn lease(self: &Arc<Self>, ip: IpAddr, random: u64) -> Result<(Lease, UdpSocket), NoPort> {
        let pairs = self.range.pairs();
        let mut foreign = 0;
        if pairs == 0 {
            return Err(NoPort::Exhausted { foreign });
        }
        let start = (random % u64::from(pairs)) as u16;
        // An odd stride of random length visits scattered pairs, so that one lease does not tell the next.
        let stride = coprime(((random >> 32) as u16) | 1, pairs);
        let mut pair = start;
        for _ in 0..pairs {
            if let Some(lease) = self.claim(pair) {
                match bind(ip, lease.port()) {
                    Ok(socket) => return Ok((lease, socket)),
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => foreign += 1,
                    Err(error) => return Err(NoPort::Bind(error)),
                }
            }
            pair = ((u32::from(pair) + u32::from(stride)) % u32::from(pairs)) as u16;
        }
        Err(NoPort::Exhausted { foreign })
    }

    fn claim(self: &Arc<Self>, pair: u16) -> Option<Lease> {
        let word = self.taken.get(usize::from(pair / 64))?;
        let bit = 1 << (pair % 64);
        let before = word.fetch_or(bit, Ordering::AcqRel);
        (before & bit == 0).then(|| Lease { pool: self.clone(), pair })
    }
}

impl Lease {
    /// The RTP port; RTCP has the one above.
    pub(crate) fn port(&self) -> u16 {
        self.pool.range.port(self.pair)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(word) = self.pool.taken.get(usize::from(self.pair / 64)) {
            word.fetch_and(!(1 << (self.pair % 64)), Ordering::AcqRel);
        }
    }
}

/// Binds one UDP socket, non-blocking, and never for both address families.
pub(crate) fn bind(ip: IpAddr, port: u16) -> io::Result<UdpSocket> {
    let address = SocketAddr::new(ip, port);
    let fd = crate::sys::socket(address, libc::SOCK_DGRAM)?;
    crate::sys::bind(&fd, address)?;
    Ok(UdpSocket::from(fd))
}

/// The first number from `from` up that shares no divisor with `with`.
fn coprime(from: u16, with: u16) -> u16 {
    let shares = |mut a: u32, mut b: u32| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a != 1
    };
    let mut candidate = u32::from(from);
    while shares(candidate, u32::from(with)) {
        candidate += 1;
    }
    (candidate % u32::from(with)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn every_even_port_of_the_range_is_one_of_a_call() {
        for (first, last, pairs, lowest) in [
            (10_000, 20_000, 5001, 10_000),
            (10_001, 10_004, 2, 10_002),
            (10_000, 10_004, 3, 10_000),
            (10_000, 10_005, 3, 10_000),
            (9, 9, 0, 10),
            (65_534, 65_535, 1, 65_534),
        ] {
            let range = PortRange { first, last };
            assert_eq!((range.pairs(), range.port(0)), (pairs, lowest), "{first}-{last}");
        }
    }

    #[test]
    fn every_pair_is_leased_once_then_the_pool_is_exhausted_and_drops_refill_it() {
        let pool = PortPool::new(PortRange { first: 23_000, last: 23_099 });
        let mut leases = Vec::new();
        let mut foreign_at_end = 0;
        for n in 0_u64.. {
            match pool.lease(LOCAL, n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
                Ok(lease) => leases.push(lease),
                Err(NoPort::Exhausted { foreign }) => {
                    foreign_at_end = foreign;
                    break;
                }
                Err(NoPort::Bind(error)) => panic!("{error}"),
            }
        }
        let ports: BTreeSet<_> = leases.iter().map(|(lease, ..)| lease.port()).collect();
        assert_eq!(ports.len() + usize::from(foreign_at_end), 50);
        assert!(ports.iter().all(|port| port % 2 == 0 && (23_000..23_100).contains(port)));
        assert_eq!(pool.leased() as usize, ports.len());
        drop(leases);
        assert_eq!(pool.leased(), 0);
    }

    #[test]
    fn a_port_that_another_program_holds_is_stepped_over() {
        let pool = PortPool::new(PortRange { first: 23_200, last: 23_203 });
        let (held, ..) = pool.lease(LOCAL, 0).unwrap();
        let foreign = held.port();
        drop(held);
        let _theirs = UdpSocket::bind((LOCAL, foreign)).unwrap();
        for random in 0..8 {
            let (lease, ..) = pool.lease(LOCAL, random << 31).unwrap();
            assert_ne!(lease.port(), foreign, "{random}");
        }
        assert_eq!(pool.leased(), 0);
    }

    #[test]
    fn an_address_that_is_not_ours_is_an_error_and_costs_no_port() {
        let pool = PortPool::new(PortRange { first: 23_300, last: 23_301 });
        let elsewhere = "192.0.2.77".parse().unwrap();
        assert!(matches!(pool.lease(elsewhere, 1), Err(NoPort::Bind(_))));
        assert_eq!(pool.leased(), 0);
    }
}
