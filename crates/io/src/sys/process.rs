//! System calls about the process itself: limits, identity, session.

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::c_int;

use super::check;

/// The soft and the hard value of a resource limit.
pub(crate) fn limit(resource: libc::__rlimit_resource_t) -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives the call.
    check(unsafe { libc::getrlimit(resource, &raw mut limit) })?;
    Ok((limit.rlim_cur, limit.rlim_max))
}

/// Sets the soft and the hard value of a resource limit.
pub(crate) fn set_limit(resource: libc::__rlimit_resource_t, soft: u64, hard: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: `limit` outlives the call, which only reads it.
    check(unsafe { libc::setrlimit(resource, &raw const limit) }).map(drop)
}

/// Whether the process may be dumped and traced by its own user.
pub(crate) fn set_dumpable(dumpable: bool) -> io::Result<()> {
    // SAFETY: this `prctl` takes one integer.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, libc::c_ulong::from(dumpable)) }).map(drop)
}

/// Lets go of the pages of the program's own file that are mapped: those that are used again come back from the kernel's
/// cache of the file. The number of bytes that were looked at.
pub(crate) fn unmap_program() -> usize {
    extern "C" fn each(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        bytes: *mut libc::c_void,
    ) -> c_int {
        // SAFETY: the linker calls this with a record that is whole while it does, and with our pointer, which is valid and
        // used nowhere else meanwhile.
        let (info, bytes) = unsafe { (&*info, &mut *bytes.cast::<usize>()) };
        // SAFETY: the linker says where the program headers lie and how many there are; they stay as long as the program.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        // What the linker has written addresses into is never read from the file again.
        let is_clean =
            |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0;
        for header in headers.iter().filter(is_clean) {
            let begin = info.dlpi_addr.saturating_add(header.p_vaddr);
            let end = begin.saturating_add(header.p_filesz);
            // Pages at the edges may be another segment's too.
            let (begin, end) = (begin.next_multiple_of(PAGE_BYTES), end / PAGE_BYTES * PAGE_BYTES);
            let (Ok(at), Ok(length)) = (usize::try_from(begin), usize::try_from(end.saturating_sub(begin)))
            else {
                continue;
            };
            // SAFETY: the pages are mapped from a file, privately, and never written: whoever reads or runs them at this
            // moment or later finds the same bytes, those of the file. A refusal leaves them mapped.
            if unsafe { libc::madvise(at as *mut libc::c_void, length, libc::MADV_DONTNEED) } == 0 {
                *bytes += length;
            }
        }
        // The first is the program itself; its libraries are shared with others and small.
        1
    }
    let mut bytes = 0_usize;
    // SAFETY: the function and the number outlive the call, which is over before anything else uses either.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut bytes).cast()) };
    bytes
}

/// Lets the program's allocator give back what nobody holds. By itself it does so some time after the next that is freed, and
/// who has nothing to do frees nothing: what the kernel tells of its types, read to load the relay, is 25 MB.
pub(crate) fn release_free_memory() {
    // SAFETY: takes no pointers; it goes through the heap of this thread and through what no thread owns. A process that has
    // another allocator, as tests have, has an empty one here.
    unsafe { libmimalloc_sys::mi_collect(true) };
}

/// The unit of `madvise`: the largest page that Linux has on the processors this is built for.
const PAGE_BYTES: u64 = 64 * 1024;

/// CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF, as bits: what the set-up of the media plane may use.
pub(crate) const MEDIA: u64 = 1 << 12 | 1 << 13 | 1 << 39;

/// `_LINUX_CAPABILITY_VERSION_3`: 64 capabilities in two words.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// `struct __user_cap_header_struct`; process 0 is the calling thread.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

/// `struct __user_cap_data_struct`: 32 capabilities.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilitySets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Lets capabilities outlive the next change of user.
pub(crate) fn keep_capabilities() -> io::Result<()> {
    // SAFETY: this `prctl` takes one integer.
    check(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1 as libc::c_ulong) }).map(drop)
}

/// Keeps of the calling thread's capabilities what `keep` says of those it may have; those are in effect. Children get
/// none that it has not.
pub(crate) fn limit_capabilities(keep: impl Fn(u64) -> u64) -> io::Result<()> {
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let mut sets = [CapabilitySets::default(); 2];
    // SAFETY: header and both sets are laid out as the kernel's version 3 and outlive the call.
    check_long(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) })?;
    let [low, high] = sets;
    let permitted = keep(u64::from(high.permitted) << 32 | u64::from(low.permitted));
    for (set, kept) in sets.iter_mut().zip([permitted as u32, (permitted >> 32) as u32]) {
        *set = CapabilitySets { effective: kept, permitted: kept, inheritable: set.inheritable & kept };
    }
    // SAFETY: as above; the call only reads.
    check_long(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) })
}

fn check_long(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes these bits from the mode of every file the process makes from here on.
pub(crate) fn set_umask(mask: libc::mode_t) {
    // SAFETY: `umask` cannot fail and takes no pointers.
    unsafe { libc::umask(mask) };
}

/// Sets the nice value of the whole process.
pub(crate) fn set_nice(nice: c_int) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) }).map(drop)
}

/// Room for the strings of one entry of the user or group database; the longest group lists fit.
const ENTRY_BYTES: usize = 64 * 1024;

/// The user and primary group of a login name.
pub(crate) fn user_ids(name: &CString) -> Option<(u32, u32)> {
    let mut room = vec![0; ENTRY_BYTES];
    let mut found: *mut libc::passwd = ptr::null_mut();
    // SAFETY: all-zero bytes are a valid `passwd`; every pointer lives through the call and `room` has the length
    // that is told. The entry is read only when the call says that it filled it.
    unsafe {
        let mut entry: libc::passwd = mem::zeroed();
        let result =
            libc::getpwnam_r(name.as_ptr(), &raw mut entry, room.as_mut_ptr(), room.len(), &raw mut found);
        (result == 0 && !found.is_null()).then_some((entry.pw_uid, entry.pw_gid))
    }
}

/// The id of a group.
pub(crate) fn group_id(name: &CString) -> Option<u32> {
    let mut room = vec![0; ENTRY_BYTES];
    let mut found: *mut libc::group = ptr::null_mut();
    // SAFETY: as in `user_ids`.
    unsafe {
        let mut entry: libc::group = mem::zeroed();
        let result =
            libc::getgrnam_r(name.as_ptr(), &raw mut entry, room.as_mut_ptr(), room.len(), &raw mut found);
        (result == 0 && !found.is_null()).then_some(entry.gr_gid)
    }
}

/// Takes the supplementary groups of a user.
pub(crate) fn set_groups_of(name: &CString, gid: u32) -> io::Result<()> {
    // SAFETY: the name outlives the call.
    check(unsafe { libc::initgroups(name.as_ptr(), gid) }).map(drop)
}

/// Becomes a group: real, effective and saved when privileged.
pub(crate) fn set_gid(gid: u32) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::setgid(gid) }).map(drop)
}

/// Becomes a user: real, effective and saved when privileged.
pub(crate) fn set_uid(uid: u32) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::setuid(uid) }).map(drop)
}

/// The user this process acts as.
pub(crate) fn effective_uid() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::geteuid() }
}

/// Makes the program that `command` starts the leader of a session without a terminal.
pub(crate) fn new_session(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt;
    let leave = || {
        // SAFETY: no pointers.
        check(unsafe { libc::setsid() }).map(drop)
    };
    // SAFETY: between fork and exec only `setsid` is called, which is async-signal-safe and allocates nothing.
    unsafe { command.pre_exec(leave) };
}

/// Lets the program that `command` starts hear every signal, whatever this thread has blocked, and end by SIGHUP, which is how
/// it is told of a call's end, even where this process was started to ignore it (`nohup`).
pub(crate) fn unblock_signals(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt;
    let unblock = || {
        // SAFETY: the calls only touch a set that lives on this frame, and what the new process does at a signal.
        match unsafe {
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            let mut none: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut())
        } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    };
    // SAFETY: between fork and exec only `signal`, `sigemptyset` and `pthread_sigmask` are called, which are async-signal-safe
    // and allocate nothing.
    unsafe { command.pre_exec(unblock) };
}

/// Lets the program that `command` starts have `fd` as its descriptor `number`.
pub(crate) fn give_descriptor(command: &mut std::process::Command, fd: std::os::fd::OwnedFd, number: c_int) {
    use std::os::unix::process::CommandExt;
    let give = move || {
        if fd.as_raw_fd() == number {
            // SAFETY: no pointers; the descriptor is open, because the closure owns it.
            return check(unsafe { libc::fcntl(number, libc::F_SETFD, 0) }).map(drop);
        }
        // SAFETY: no pointers. What had this number belongs to this process's copy in the child, which is about to be
        // replaced; the copy that is made does not close at that.
        check(unsafe { libc::dup2(fd.as_raw_fd(), number) }).map(drop)
    };
    // SAFETY: between fork and exec only `fcntl` and `dup2` are called, which are async-signal-safe and allocate nothing.
    unsafe { command.pre_exec(give) };
}

/// Puts `fd` in the place of standard input, output and error.
pub(crate) fn replace_standard_streams(fd: BorrowedFd<'_>) -> io::Result<()> {
    for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: `fd` is open, and `std` treats the standard streams as always open and never owns them.
        check(unsafe { libc::dup2(fd.as_raw_fd(), stream) })?;
    }
    Ok(())
}
