//! What the process is allowed: descriptors, real time, capabilities.

use super::machine::Machine;
use super::{Entry, Level, Wanted};

/// Descriptors of a leg: RTP and RTCP.
const DESCRIPTORS: u64 = 2;
/// Descriptors that are open without a call: listeners, logs, the database, rings, the console.
const STANDING: u64 = 256;

/// Bits of `linux/capability.h`.
const CAP_NET_BIND_SERVICE: u32 = 10;
const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;
const CAP_SYS_NICE: u32 = 23;
const CAP_BPF: u32 = 39;

/// The hard limit on open files, to which the server raises its own, and the system's table of them.
pub fn open_files(machine: &dyn Machine, wanted: &Wanted) -> Vec<Entry> {
    const NAME: &str = "open files";
    const WHY: &str = "each leg of a call takes two sockets, and a quarter of all is kept for phones on TCP";
    // A quarter is kept for flows: see `io::net::Limits::within`.
    let needed = (wanted.legs() * DESCRIPTORS + STANDING) * 4 / 3;
    let mut entries = Vec::new();
    if let Some((_, hard)) = machine.limit("Max open files") {
        let shown = if hard == u64::MAX { "no limit".to_owned() } else { format!("hard limit {hard}") };
        let found = format!("{shown}, {needed} wanted");
        entries.push(if hard >= needed {
            Entry::good(NAME, found, WHY)
        } else {
            Entry::new(NAME, Level::Error, found, WHY).mend(format!(
                "ulimit -Hn {needed}\nor in the service unit: LimitNOFILE={needed}; or in /etc/security/limits.d: \
                 asterisk - nofile {needed}"
            ))
        });
    }
    if let Some(all) = machine.number("/proc/sys/fs/file-max").filter(|all| *all < needed) {
        let found = format!("fs.file-max is {all}, {needed} wanted");
        let why = "the whole system shares one table of open files";
        entries.push(
            Entry::new("open files of the system", Level::Error, found, why)
                .mend(format!("sysctl -w fs.file-max={}", needed * 2)),
        );
    }
    entries
}

/// Whether media workers get real-time priority.
pub fn real_time(machine: &dyn Machine, _: &Wanted) -> Vec<Entry> {
    const NAME: &str = "real-time priority";
    const WHY: &str =
        "a media worker that waits for other programs sends its packets late, and audio stutters";
    /// Microseconds of a second that real-time threads may use unless someone changed it.
    const USUAL: u64 = 950_000;
    let (soft, _) = machine.limit("Max realtime priority").unwrap_or((0, 0));
    let capable = machine.may(CAP_SYS_NICE) == Some(true);
    let allowed = if capable {
        Entry::good(NAME, "CAP_SYS_NICE", WHY)
    } else if soft >= 1 {
        Entry::good(NAME, format!("limit {soft}, 1 wanted"), WHY)
    } else {
        Entry::new(NAME, Level::Warning, "limit 0, and no CAP_SYS_NICE", WHY).mend(
            "setcap cap_sys_nice,cap_net_bind_service+ep $(command -v strowger)\nor in the service unit: \
             LimitRTPRIO=1; or in /etc/security/limits.d: asterisk - rtprio 1; in a container: --cap-add SYS_NICE",
        )
    };
    let mut entries = vec![allowed];
    // -1 is no limit and no number of ours; it is fine.
    if let Some(share) = machine.number("/proc/sys/kernel/sched_rt_runtime_us").filter(|share| *share < USUAL)
    {
        entries.push(
            Entry::new(
                "real-time share",
                Level::Warning,
                format!("real-time threads may use {share} us of each second"),
                "a worker that has used its share is stopped until the second is over",
            )
            .mend(format!("sysctl -w kernel.sched_rt_runtime_us={USUAL}")),
        );
    }
    entries
}

/// What other powers of root are there, and what they are good for.
pub fn capabilities(machine: &dyn Machine, wanted: &Wanted) -> Vec<Entry> {
    let mut entries = Vec::new();
    let first = machine.number("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap_or(1024);
    if u64::from(wanted.lowest_port) < first {
        let why = "without this capability the port cannot be listened on and the server does not start";
        let name = "privileged port";
        entries.push(if machine.may(CAP_NET_BIND_SERVICE) == Some(false) {
            Entry::new(
                name,
                Level::Error,
                format!("port {}, no CAP_NET_BIND_SERVICE", wanted.lowest_port),
                why,
            )
            .mend("setcap cap_net_bind_service,cap_sys_nice+ep $(command -v strowger)")
        } else {
            Entry::good(name, format!("port {}, CAP_NET_BIND_SERVICE", wanted.lowest_port), why)
        });
    }
    let powers = [(CAP_NET_ADMIN, "CAP_NET_ADMIN"), (CAP_NET_RAW, "CAP_NET_RAW"), (CAP_BPF, "CAP_BPF")];
    let missing: Vec<&str> =
        powers.iter().filter(|(bit, _)| machine.may(*bit) == Some(false)).map(|(_, name)| *name).collect();
    let why = "media in few sockets or past the kernel's IP stack costs three fifths to a quarter of a socket for each leg";
    let name = "capabilities for media";
    entries.push(if missing.is_empty() {
        Entry::good(name, "CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF", why)
    } else {
        Entry::new(name, Level::Note, format!("no {}; media uses a socket for each leg", missing.join(", ")), why).mend(
            "setcap cap_net_admin,cap_net_raw,cap_bpf,cap_sys_nice,cap_net_bind_service+ep $(command -v strowger)",
        )
    });
    entries
}
