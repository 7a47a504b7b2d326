//! What the process does to itself before a library of others is loaded.

use std::io;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getppid, set_dumpable_behavior,
    set_parent_process_death_signal, setpriority_process, setrlimit,
};

/// Memory, bytes: what a driver may hold of an answer, with all that it is made of.
const MEMORY_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// Descriptors: a driver needs one, and a few files.
const DESCRIPTORS_MAX: u64 = 64;

/// Bounds the process: it ends with the one that started it, holds nothing of that one's, and no core file shows a password.
pub(crate) fn settle() -> io::Result<()> {
    let parent = getppid();
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != parent {
        return Err(io::Error::other("the process that started it has gone"));
    }
    // Nothing but the standard streams is needed; whatever else was left open is not this process's.
    // SAFETY: no descriptor above the standard streams is owned by anything in this process, which has only just begun.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    let limit = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Core, limit(0))?;
    setrlimit(Resource::Nofile, limit(DESCRIPTORS_MAX))?;
    setrlimit(Resource::As, limit(MEMORY_BYTES_MAX))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::thread::set_no_new_privs(true)?;
    // Who was given a better share of the processor was given it for calls.
    let _as_it_was = setpriority_process(None, 0);
    // SAFETY: SIG_IGN runs no code of ours. At the end of the service every process of it is sent SIGTERM, but rows are
    // still written then: this one ends when the socket does.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    // SAFETY: there is one thread, and nothing has asked for the locale yet. Drivers and unixODBC take the coding of text
    // from it; without this it is ASCII.
    unsafe { libc::setlocale(libc::LC_CTYPE, c"".as_ptr()) };
    Ok(())
}
