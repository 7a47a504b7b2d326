//! What packets pass on their way: ports, buffers, queues, connection tracking.

use super::machine::Machine;
use super::{Entry, LEGS, Level, Wanted};
use io::net::RECEIVE_BUFFER_BYTES;

/// Whether the ports for media are enough.
pub fn ports(_: &dyn Machine, wanted: &Wanted) -> Vec<Entry> {
    const NAME: &str = "media ports";
    const WHY: &str = "each leg of a call takes a pair of ports; a call without a pair is refused";
    let (first, last) = wanted.ports;
    let (pairs, legs) = (wanted.pairs(), wanted.legs());
    let found = format!("{first} to {last}: {pairs} pairs, {legs} wanted");
    if pairs >= legs {
        return vec![Entry::good(NAME, found, WHY)];
    }
    let needed = u64::from(first) + legs * 2 - 1;
    let remedy = if needed <= u64::from(u16::MAX) {
        format!("rtpend={needed} in [general] of rtp.conf")
    } else {
        let most = (u64::from(u16::MAX) - 1024) / 2 / u64::from(LEGS);
        format!("lower rtpstart in rtp.conf; one address has ports for {most} calls")
    };
    vec![Entry::new(NAME, Level::Error, found, WHY).mend(remedy)]
}

/// Whether the kernel gives media ports to other programs.
pub fn local_ports(machine: &dyn Machine, wanted: &Wanted) -> Vec<Entry> {
    const NAME: &str = "ports of other programs";
    const WHY: &str = "the kernel may give a media port to any program that asks for none in particular";
    let Some((low, high)) = machine.pair("/proc/sys/net/ipv4/ip_local_port_range") else { return Vec::new() };
    let (first, last) = (u64::from(wanted.ports.0), u64::from(wanted.ports.1));
    let found = format!("the kernel gives away {low} to {high}, media has {first} to {last}");
    if high < first || last < low {
        return vec![Entry::good(NAME, found, WHY)];
    }
    let reserved = machine.read("/proc/sys/net/ipv4/ip_local_reserved_ports").unwrap_or_default();
    if covers(&reserved, first.max(low), last.min(high)) {
        return vec![Entry::good(NAME, format!("{found}; these are reserved"), WHY)];
    }
    let kept = if reserved.is_empty() { String::new() } else { format!("{reserved},") };
    let remedy = format!("sysctl -w net.ipv4.ip_local_reserved_ports={kept}{first}-{last}");
    vec![Entry::new(NAME, Level::Warning, found, WHY).mend(remedy)]
}

/// Whether a list such as `5000-6000,8080` holds every port from `first` to `last`. The kernel sorts and joins it.
fn covers(list: &str, first: u64, last: u64) -> bool {
    list.split(',').any(|range| {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let bounds = low.trim().parse::<u64>().ok().zip(high.trim().parse::<u64>().ok());
        bounds.is_some_and(|(low, high)| low <= first && last <= high)
    })
}

/// Milliseconds of packets that one socket of many legs sends in one go: the longest tick under load.
const TICK_MS: u64 = 5;
/// What the kernel charges for a packet of 172 bytes of RTP, headers and its own structures included.
const CHARGED_BYTES: u64 = 1280;
/// What the kernel gives each socket unless it is asked: enough for a leg's own.
const USUAL_BYTES: u64 = 212_992;

/// How large the buffers of sockets may be.
pub fn socket_buffers(machine: &dyn Machine, wanted: &Wanted) -> Vec<Entry> {
    let sent = wanted.packets() / 2 * TICK_MS / 1000 * CHARGED_BYTES;
    let mut entries = Vec::new();
    for (name, file, needed, why) in [
        (
            "receive buffers",
            "rmem_max",
            RECEIVE_BUFFER_BYTES.unsigned_abs().into(),
            "signalling that comes while the program is busy waits here; what does not fit is lost without a word",
        ),
        (
            "send buffers",
            "wmem_max",
            sent.max(USUAL_BYTES),
            "where many legs share a socket, the packets of a whole tick leave through it at once",
        ),
    ] {
        let Some(bytes) = machine.number(&format!("/proc/sys/net/core/{file}")) else { continue };
        let found = format!("net.core.{file} is {bytes} bytes, {needed} wanted");
        entries.push(if bytes >= needed {
            Entry::good(name, found, why)
        } else {
            Entry::new(name, Level::Warning, found, why).mend(format!("sysctl -w net.core.{file}={needed}"))
        });
    }
    entries
}

/// Whether datagrams were lost in sockets since the machine started.
pub fn lost_datagrams(machine: &dyn Machine, _: &Wanted) -> Vec<Entry> {
    const NAME: &str = "datagrams lost in sockets";
    const WHY: &str = "counts since the start of the machine, of every program; a count that grows is lost audio or signalling";
    let Some(text) = machine.read("/proc/net/snmp") else { return Vec::new() };
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return Vec::new() };
    let of = |wanted: &str| {
        let at = names.split_whitespace().position(|name| name == wanted)?;
        values.split_whitespace().nth(at)?.parse::<u64>().ok()
    };
    let (Some(lost), Some(received)) = (of("RcvbufErrors"), of("InDatagrams")) else { return Vec::new() };
    let found = format!("{lost} of {}", received.saturating_add(lost));
    if lost == 0 {
        return vec![Entry::good(NAME, found, WHY)];
    }
    vec![Entry::new(NAME, Level::Note, found, WHY).mend("nstat -az UdpRcvbufErrors, now and a minute later")]
}

/// How many packets may wait between a network interface and the IP stack, and whether some were thrown away there.
pub fn backlog(machine: &dyn Machine, wanted: &Wanted) -> Vec<Entry> {
    const NAME: &str = "packet backlog";
    const WHY: &str = "packets of loopback and virtual interfaces wait here while a worker has the processor";
    /// What a worker may hold the processor for, twice.
    const MS: u64 = 10;
    let needed = (wanted.packets() / 2 * MS / 1000).max(1000);
    let dropped = machine.read("/proc/net/softnet_stat").map(|text| {
        let of_line = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
        text.lines().filter_map(of_line).sum::<u64>()
    });
    let Some(room) = machine.number("/proc/sys/net/core/netdev_max_backlog") else { return Vec::new() };
    let dropped = dropped.unwrap_or(0);
    let found =
        format!("net.core.netdev_max_backlog is {room}, {needed} wanted; {dropped} packets dropped so far");
    if room >= needed && dropped == 0 {
        return vec![Entry::good(NAME, found, WHY)];
    }
    let larger = if room >= needed { room * 2 } else { needed };
    let remedy = format!("sysctl -w net.core.netdev_max_backlog={larger}");
    vec![Entry::new(NAME, Level::Warning, found, WHY).mend(remedy)]
}

/// How many TCP connections may wait to be accepted.
pub fn accept_queue(machine: &dyn Machine, wanted: &Wanted) -> Vec<Entry> {
    const NAME: &str = "connections that wait";
    const WHY: &str = "after a power cut all phones on TCP come at once";
    /// What the listeners ask for: `io::net::listen`.
    const ASKED: u64 = 1024;
    let Some(room) = machine.number("/proc/sys/net/core/somaxconn").filter(|_| wanted.tcp) else {
        return Vec::new();
    };
    let found = format!("net.core.somaxconn is {room}, {ASKED} wanted");
    if room >= ASKED {
        return vec![Entry::good(NAME, found, WHY)];
    }
    vec![Entry::new(NAME, Level::Warning, found, WHY).mend(format!("sysctl -w net.core.somaxconn={ASKED}"))]
}

/// Whether the firewall keeps a record of every media stream.
pub fn conntrack(machine: &dyn Machine, wanted: &Wanted) -> Vec<Entry> {
    const NAME: &str = "connection tracking";
    const WHY: &str =
        "each packet is looked up in a table, and when the table is full new calls are without sound";
    let count = machine.number("/proc/sys/net/netfilter/nf_conntrack_count");
    let most = machine.number("/proc/sys/net/netfilter/nf_conntrack_max");
    let (Some(count), Some(most)) = (count, most) else {
        return vec![Entry::good(NAME, "not in this kernel", WHY)];
    };
    // RTP and RTCP of each leg.
    let needed = wanted.legs() * 2;
    let found = format!("{count} of {most} entries in use, {needed} wanted for media");
    if count == 0 {
        return vec![Entry::good(NAME, "nothing is tracked", WHY)];
    }
    let (first, last) = wanted.ports;
    let without = format!(
        "nft 'add table inet strowger; add chain inet strowger in {{ type filter hook prerouting priority raw; }}; \
         add chain inet strowger out {{ type filter hook output priority raw; }}; \
         add rule inet strowger in udp dport {first}-{last} notrack; \
         add rule inet strowger out udp sport {first}-{last} notrack'"
    );
    if most.saturating_sub(count) < needed {
        let room = format!("{without}\nor: sysctl -w net.netfilter.nf_conntrack_max={}", count + needed * 2);
        return vec![Entry::new(NAME, Level::Error, found, WHY).mend(room)];
    }
    vec![Entry::new(NAME, Level::Note, found, WHY).mend(without)]
}

/// Virtual interfaces, whose other end has to be ready for frames that an XDP program sends.
pub fn virtual_pairs(machine: &dyn Machine, _: &Wanted) -> Vec<Entry> {
    const NAME: &str = "veth pairs";
    const WHY: &str = "a relay inside XDP can send only to an end that collects frames, by GRO or a program of its own; elsewhere \
                       bridges cost the workers' time";
    let pairs = machine
        .list("/sys/class/net")
        .into_iter()
        .filter(|interface| machine.driver(interface).is_ok_and(|driver| driver == "veth"));
    pairs
        .map(|interface| {
            let found = format!("what the other end of {interface} does is not to be seen from here");
            Entry::new(NAME, Level::Note, found, WHY)
                .mend("ethtool -K INTERFACE gro on, where the other end is".to_owned())
        })
        .collect()
}
