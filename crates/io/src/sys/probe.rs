//! System calls that only ask the kernel what it has; nothing that they make outlives them.

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libc::{c_int, c_long, c_void};

use super::{check, own};

/// `BPF_PROG_LOAD` of `bpf(2)`.
const BPF_PROG_LOAD: c_int = 5;
/// Two instructions: `r0 = 1; exit`. The least that every kind of program accepts as a verdict.
const PASS: [u64; 2] = [0x0000_0001_0000_00b7, 0x0000_0000_0000_0095];

/// The head of the kernel's `union bpf_attr` for `BPF_PROG_LOAD`; what follows is taken as zero.
#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
}

/// Loads a program that does nothing, and lets it go again.
pub(crate) fn load_program(prog_type: u32, attach_type: u32) -> io::Result<()> {
    let attr = ProgLoad {
        prog_type,
        insn_cnt: PASS.len() as u32,
        insns: PASS.as_ptr() as u64,
        license: c"Dual MIT/GPL".as_ptr() as u64,
        expected_attach_type: attach_type,
        ..ProgLoad::default()
    };
    // SAFETY: `attr` and what it points to outlive the call, which only reads them; the length is that of `attr`.
    let result: c_long = unsafe {
        libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, (&raw const attr).cast::<c_void>(), size_of::<ProgLoad>())
    };
    own(result as c_int).map(drop)
}

/// `struct io_uring_params` is 120 bytes; the kernel fills it in.
const RING_PARAMS_WORDS: usize = 15;

/// Makes an `io_uring` of one entry, and lets it go again.
pub(crate) fn make_ring() -> io::Result<()> {
    let mut params = [0_u64; RING_PARAMS_WORDS];
    // SAFETY: `params` has the size and alignment of the kernel's structure and outlives the call.
    let result: c_long = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, params.as_mut_ptr()) };
    own(result as c_int).map(drop)
}

/// Opens a raw socket of a family, and lets it go again.
pub(crate) fn open_raw(family: c_int) -> io::Result<()> {
    // SAFETY: no pointers.
    own(unsafe { libc::socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) }).map(drop)
}

/// Whether the kernel believes that its clock follows a reference (`adjtimex(2)` without a change).
pub(crate) fn clock_is_synchronised() -> io::Result<bool> {
    // SAFETY: all-zero bytes are a valid `timex` that changes nothing; the call fills it in.
    let state = check(unsafe {
        let mut time: libc::timex = mem::zeroed();
        libc::adjtimex(&raw mut time)
    })?;
    Ok(state != libc::TIME_ERROR)
}

/// Bytes that an ordinary user may still write where `path` lies.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: all-zero bytes are a valid `statvfs`; the path ends with a zero; both outlive the call.
    let told = unsafe {
        let mut told: libc::statvfs = mem::zeroed();
        check(libc::statvfs(path.as_ptr(), &raw mut told))?;
        told
    };
    Ok(told.f_bavail.saturating_mul(told.f_frsize))
}

/// `ETHTOOL_GDRVINFO` of `linux/ethtool.h`.
const GET_DRIVER: u32 = 0x03;
/// `SIOCETHTOOL` of `linux/sockios.h`.
const SIOCETHTOOL: c_int = 0x8946;
/// Words of `struct ethtool_drvinfo` (196 bytes), rounded up.
const ANSWER_WORDS: usize = 64;

/// The head of the kernel's `struct ifreq`, padded to its size.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    data: *mut c_void,
    rest: [u8; 16],
}

fn ethtool(interface: &str, question: u32) -> io::Result<[u32; ANSWER_WORDS]> {
    let mut name = [0_u8; 16];
    match name.get_mut(..interface.len()) {
        // The last byte stays zero.
        Some(room) if interface.len() < 16 => room.copy_from_slice(interface.as_bytes()),
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    }
    let mut answer = [0_u32; ANSWER_WORDS];
    answer[0] = question;
    // SAFETY: no pointers.
    let socket = own(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    let mut request = InterfaceRequest { name, data: answer.as_mut_ptr().cast(), rest: [0; 16] };
    // SAFETY: the request has the layout of `ifreq`, its name ends with a zero, and the answer has room for what
    // the question of this module is told; all outlive the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) })?;
    Ok(answer)
}

/// The driver of a network interface.
pub(crate) fn driver(name: &str) -> io::Result<String> {
    let told = ethtool(name, GET_DRIVER)?;
    // The driver's name is the 32 bytes after the question.
    let driver = told.iter().skip(1).take(8).flat_map(|word| word.to_ne_bytes());
    let driver: Vec<u8> = driver.take_while(|byte| *byte != 0).collect();
    Ok(String::from_utf8_lossy(&driver).into_owned())
}
