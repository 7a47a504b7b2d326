//! A program at the end of a wire that drops every IPv4 packet before the kernel makes one of it: the cheapest of phones.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};

/// Commands and names of `linux/bpf.h`.
const PROG_LOAD: i64 = 5;
const LINK_CREATE: i64 = 28;
const TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// Instructions: drop what has the type of IPv4, pass all else (address resolution).
const PROGRAM: [u64; 9] = [
    instruction(0x61, 2, 1, 0, 0),    // r2 = frame->data
    instruction(0x61, 3, 1, 4, 0),    // r3 = frame->data_end
    instruction(0xbf, 4, 2, 0, 0),    // r4 = r2
    instruction(0x07, 4, 0, 0, 14),   // r4 += 14
    instruction(0xb7, 0, 0, 0, 2),    // r0 = XDP_PASS
    instruction(0x2d, 4, 3, 2, 0),    // if r4 > r3 goto exit
    instruction(0x69, 4, 2, 12, 0),   // r4 = type
    instruction(0x55, 4, 0, 0, IPV4), // if r4 != IPv4 goto exit
    instruction(0x95, 0, 0, 0, 0),    // exit
];
const IPV4: i32 = u16::from_ne_bytes([0x08, 0x00]) as i32;

const fn instruction(code: u8, to: u8, from: u8, offset: i16, value: i32) -> u64 {
    let [a, b] = offset.to_ne_bytes();
    let [c, d, e, f] = value.to_ne_bytes();
    u64::from_ne_bytes([code, to | from << 4, a, b, c, d, e, f])
}

/// Puts the program on an interface; it stays as long as the value.
pub fn drop_ipv4(interface: &str) -> io::Result<[OwnedFd; 2]> {
    let name = CString::new(interface)?;
    // SAFETY: the name is terminated and outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    let licence = c"Apache-2.0 OR MIT";
    // `union bpf_attr` as BPF_PROG_LOAD has it: type, instructions, their place, the licence's.
    let mut load = [0_u64; 16];
    load[0] = words(TYPE_XDP, PROGRAM.len() as u32);
    load[1] = PROGRAM.as_ptr() as u64;
    load[2] = licence.as_ptr() as u64;
    let program = call(PROG_LOAD, &load)?;
    // As BPF_LINK_CREATE has it: program, interface, what kind of attachment.
    let mut link = [0_u64; 16];
    link[0] = words(fd_number(&program), index);
    link[1] = words(ATTACH_XDP, 0);
    let link = call(LINK_CREATE, &link)?;
    Ok([program, link])
}

fn words(low: u32, high: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (low.to_ne_bytes(), high.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

fn fd_number(fd: &OwnedFd) -> u32 {
    std::os::fd::AsRawFd::as_raw_fd(fd).cast_unsigned()
}

fn call(command: i64, attributes: &[u64; 16]) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads the attributes, whose length is theirs, and what they point at, which outlives the call.
    let fd = unsafe {
        libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), std::mem::size_of_val(attributes))
    };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just returned this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
