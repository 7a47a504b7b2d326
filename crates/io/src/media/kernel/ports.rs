//! The table of media ports that the BPF programs read, in memory that they share with us.
#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU64, Ordering};

use super::sys::Shared;

/// UDP ports that there are.
const PORTS: usize = 1 << 16;
/// Words of one place of the table; `struct port` of `media.bpf.c`.
const WORDS: usize = 2;
/// `LEASED` of `media.bpf.c`.
const LEASED: u64 = 1;
/// A place of `owners` that names a stream.
const OWNED: u64 = 1;

/// Who gets what arrives. Written by whoever holds a leg, read by the kernel and by the workers; no lock.
#[derive(Debug)]
pub(crate) struct Ports {
    shared: Shared,
    /// Worker << 48 | slot << 16 | RTCP << 1 | [`OWNED`], for those who take a datagram out of a worker's socket.
    owners: Box<[AtomicU64]>,
}

/// Whose port it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) worker: u16,
    pub(crate) slot: u32,
    pub(crate) rtcp: bool,
}

impl Ports {
    /// Bytes of the table.
    pub(crate) const BYTES: usize = PORTS * WORDS * 8;

    pub(crate) fn new(shared: Shared) -> Self {
        Self { shared, owners: (0..PORTS).map(|_| AtomicU64::new(0)).collect() }
    }
    fn store(&self, port: u16, word: usize, value: u64) {
        if let Some(place) = self.shared.words().get(usize::from(port) * WORDS + word) {
            place.store(value, Ordering::Release);
        }
    }
    /// Brings what arrives for the port to `owner`.
    pub(crate) fn give(&self, ip: Ipv4Addr, port: u16, owner: Owner) {
        let Owner { worker, slot, rtcp } = owner;
        if let Some(place) = self.owners.get(usize::from(port)) {
            let word = u64::from(worker) << 48 | u64::from(slot) << 16 | u64::from(rtcp) << 1 | OWNED;
            place.store(word, Ordering::Release);
        }
        self.store(port, 0, u64::from(raw_ip(ip)) << 32 | u64::from(worker) << 16 | LEASED);
    }
    /// The port is nobody's.
    pub(crate) fn take(&self, port: u16) {
        self.store(port, 0, 0);
        self.store(port, 1, 0);
        if let Some(place) = self.owners.get(usize::from(port)) {
            place.store(0, Ordering::Release);
        }
    }
    /// Lets one source in, or everyone.
    pub(crate) fn let_in(&self, port: u16, source: Option<SocketAddrV4>) {
        self.store(port, 1, source.map_or(0, raw_address));
    }
    /// Asks for the memory that says whose port it is.
    pub(crate) fn fetch(&self, port: u16) {
        if let Some(place) = self.owners.get(usize::from(port)) {
            lanes::prefetch(place, 0..1);
        }
    }
    /// Whose port it is at present.
    pub(crate) fn owner(&self, port: u16) -> Option<Owner> {
        let word = self.owners.get(usize::from(port))?.load(Ordering::Acquire);
        (word & OWNED != 0).then_some(Owner {
            worker: (word >> 48) as u16,
            slot: (word >> 16) as u32,
            rtcp: word & 2 != 0,
        })
    }
}

/// `address_of` of `media.bpf.c`.
pub(crate) fn raw_address(address: SocketAddrV4) -> u64 {
    u64::from(raw_ip(*address.ip())) << 32 | raw_port(address.port())
}

/// An address as the programs see it: network order, read as a native number.
pub(crate) fn raw_ip(ip: Ipv4Addr) -> u32 {
    u32::from_ne_bytes(ip.octets())
}

fn raw_port(port: u16) -> u64 {
    u64::from(u16::from_ne_bytes(port.to_be_bytes())) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_somebodys_until_it_is_taken_and_lets_in_whom_it_is_told() {
        let ports = Ports::new(Shared::anonymous(Ports::BYTES).unwrap());
        let owner = Owner { worker: 3, slot: 131_071, rtcp: true };
        let word =
            |port: usize, word: usize| ports.shared.words()[port * WORDS + word].load(Ordering::Relaxed);
        assert_eq!(ports.owner(65_535), None);
        ports.give(Ipv4Addr::new(127, 0, 0, 1), 65_535, owner);
        ports.let_in(65_535, Some(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 0x1234)));
        assert_eq!(ports.owner(65_535), Some(owner));
        let [ip, peer] = [word(65_535, 0), word(65_535, 1)].map(|word| ((word >> 32) as u32).to_ne_bytes());
        assert_eq!((ip, peer), ([127, 0, 0, 1], [192, 0, 2, 1]));
        assert_eq!(
            (word(65_535, 0) as u32, word(65_535, 1) >> 16 & 0xffff),
            (3 << 16 | 1, raw_port(0x1234) >> 16)
        );
        ports.let_in(65_535, None);
        assert_eq!(word(65_535, 1), 0);
        ports.take(65_535);
        assert_eq!((ports.owner(65_535), word(65_535, 0)), (None, 0));
    }
}
