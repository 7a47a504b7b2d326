//! Questions to the machine: what the kernel has and lets this process do. Asking changes nothing.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;

use crate::sys::probe as sys;

/// A part of the kernel that media can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// `io_uring`.
    IoUring,
    /// Programs at the receive hook of a network interface.
    Xdp,
    /// Sockets that take packets from such a program.
    AfXdp,
    /// Programs that choose the socket of a packet.
    SkLookup,
    /// Packet sockets, which send frames made by ourselves.
    PacketSocket,
}

/// `BPF_PROG_TYPE_XDP` and `BPF_PROG_TYPE_SK_LOOKUP` of `linux/bpf.h`.
const PROG_XDP: u32 = 6;
const PROG_SK_LOOKUP: u32 = 30;
/// `BPF_XDP` and `BPF_SK_LOOKUP` of `enum bpf_attach_type`.
const ATTACH_XDP: u32 = 37;
const ATTACH_SK_LOOKUP: u32 = 36;

/// Uses a feature once, in the smallest way. An error says why it cannot be had.
pub fn try_feature(feature: Feature) -> io::Result<()> {
    match feature {
        Feature::IoUring => sys::make_ring(),
        Feature::Xdp => sys::load_program(PROG_XDP, ATTACH_XDP),
        Feature::AfXdp => sys::open_raw(libc::AF_XDP),
        Feature::SkLookup => sys::load_program(PROG_SK_LOOKUP, ATTACH_SK_LOOKUP),
        Feature::PacketSocket => sys::open_raw(libc::AF_PACKET),
    }
}

/// Whether the kernel believes that its clock follows a reference.
pub fn clock_is_synchronised() -> io::Result<bool> {
    sys::clock_is_synchronised()
}

/// Bytes that an ordinary user may still write where `path` lies.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    sys::free_bytes(path)
}

/// The driver of a network interface.
pub fn driver(name: &str) -> io::Result<String> {
    sys::driver(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_for_a_feature_gives_it_or_a_reason_that_the_kernel_documents() {
        let reasons = [
            libc::EPERM,
            libc::EACCES,
            libc::ENOSYS,
            libc::EINVAL,
            libc::EAFNOSUPPORT,
            libc::EPROTONOSUPPORT,
            libc::ENOMEM,
        ];
        for feature in
            [Feature::IoUring, Feature::Xdp, Feature::AfXdp, Feature::SkLookup, Feature::PacketSocket]
        {
            if let Err(error) = try_feature(feature) {
                let code = error.raw_os_error().unwrap();
                assert!(reasons.contains(&code), "{feature:?}: {error}");
            }
        }
    }

    #[test]
    fn a_disk_has_room_and_a_folder_that_does_not_exist_is_an_error() {
        assert!(free_bytes(Path::new("/")).is_ok());
        let missing = free_bytes(Path::new("/no/such/folder")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert_eq!(free_bytes(Path::new("a\0b")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn the_clock_of_the_kernel_says_whether_it_is_steered() {
        // Either is a true answer; an error is not, for asking needs no privilege.
        clock_is_synchronised().unwrap();
    }

    #[test]
    fn an_interface_that_does_not_exist_or_cannot_be_a_name_is_an_error() {
        for name in ["no-such-card", "a-name-that-is-longer-than-the-kernel-allows"] {
            assert!(driver(name).is_err(), "{name}");
        }
    }
}
