//! Parts of the kernel that media can use.

use std::io;

use ::io::probe::Feature;

use super::machine::Machine;
use super::{Entry, Level, Wanted};

const PERMISSION: &str = "as root: setcap cap_net_admin,cap_net_raw,cap_bpf,cap_sys_nice,cap_net_bind_service+ep $(command -v strowger)";

fn feature(
    name: &'static str,
    why: &'static str,
    answers: &[(&str, io::Result<()>)],
    refused: &str,
) -> Vec<Entry> {
    let failed: Vec<(&str, &io::Error)> =
        answers.iter().filter_map(|(part, answer)| Some((*part, answer.as_ref().err()?))).collect();
    if failed.is_empty() {
        return vec![Entry::good(name, "can be used", why)];
    }
    let found: Vec<String> = failed.iter().map(|(part, error)| format!("{part}: {error}")).collect();
    let entry = Entry::new(name, Level::Note, found.join("; "), why);
    let forbidden = failed.iter().all(|(_, error)| error.kind() == io::ErrorKind::PermissionDenied);
    let remedy = if forbidden { refused } else { "run a kernel that has it; Debian's have all of them" };
    vec![entry.mend(remedy)]
}

/// System calls in batches.
pub fn io_uring(machine: &dyn Machine, _: &Wanted) -> Vec<Entry> {
    let disabled = machine.number("/proc/sys/kernel/io_uring_disabled").unwrap_or(0);
    let refused = if disabled > 0 {
        "sysctl -w kernel.io_uring_disabled=0"
    } else {
        "allow io_uring in the container's seccomp profile"
    };
    let answers = [("io_uring", machine.try_feature(Feature::IoUring))];
    feature(
        "io_uring",
        "sockets of many legs are read and written with fewer system calls",
        &answers,
        refused,
    )
}

/// All media ports on few sockets.
pub fn sk_lookup(machine: &dyn Machine, _: &Wanted) -> Vec<Entry> {
    let answers = [
        ("sk_lookup", machine.try_feature(Feature::SkLookup)),
        ("packet sockets", machine.try_feature(Feature::PacketSocket)),
    ];
    let why = "all media ports end in a few sockets, which costs three fifths of a socket for each leg";
    feature("sk_lookup", why, &answers, PERMISSION)
}

/// Media past the IP stack.
pub fn xdp(machine: &dyn Machine, _: &Wanted) -> Vec<Entry> {
    let answers =
        [("XDP", machine.try_feature(Feature::Xdp)), ("AF_XDP", machine.try_feature(Feature::AfXdp))];
    let why = "media goes past the kernel's IP stack, which costs a quarter of a socket for each leg";
    feature("AF_XDP", why, &answers, PERMISSION)
}
