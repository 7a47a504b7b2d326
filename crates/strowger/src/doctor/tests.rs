//! Every check against machines made of strings.

use std::collections::BTreeMap;

use ::io::probe::Feature;

use super::*;

/// A machine on which everything is as it should be, until a test says otherwise.
struct Paper {
    files: BTreeMap<String, String>,
    refused: Vec<(Feature, i32)>,
    synchronised: bool,
    free: u64,
    interfaces: Vec<(&'static str, &'static str)>,
    lanes: &'static str,
}

/// Capabilities of a unit as `make install` writes it, and the ones that media can use besides.
const CAPABLE: &str = "CapEff:\t0000008000803400";

impl Paper {
    fn sound() -> Self {
        let files = [
            (
                "limits",
                "Limit Soft Hard Units\nMax open files            1024                 1048576              files\nMax realtime priority     0                    0",
            ),
            ("status", &format!("Name:\tstrowger\n{CAPABLE}\nCpus_allowed_list:\t0-3,8")),
            ("cgroup", "0::/system.slice/strowger.service"),
            ("/sys/fs/cgroup/system.slice/strowger.service/cpu.max", "max 100000"),
            ("/proc/sys/fs/file-max", "9223372036854775807"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "950000"),
            ("/proc/sys/net/ipv4/ip_unprivileged_port_start", "1024"),
            ("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999"),
            ("/proc/sys/net/core/rmem_max", "16777216"),
            ("/proc/sys/net/core/wmem_max", "8388608"),
            (
                "/proc/net/snmp",
                "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 900 1 0 800 0",
            ),
            ("/proc/net/softnet_stat", "0036b00e 00000000 00000005\n00a2f76f 00000000 00000005"),
            ("/proc/sys/net/core/netdev_max_backlog", "1000"),
            ("/proc/sys/net/core/somaxconn", "4096"),
            ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance"),
            ("/proc/stat", "cpu  2583769 196227 499373 1455174 37926 0 6443 9930 0 0\ncpu0 1 1 1 1"),
            ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
            ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm"),
        ];
        Self {
            files: files.map(|(path, text)| (path.to_owned(), text.to_owned())).into(),
            refused: Vec::new(),
            synchronised: true,
            free: 500_000_000_000,
            interfaces: vec![("eth0", "virtio_net")],
            lanes: "avx2",
        }
    }
    fn with(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), text.to_owned());
        self
    }
    fn refusing(mut self, features: &[Feature], code: i32) -> Self {
        self.refused.extend(features.iter().map(|feature| (*feature, code)));
        self
    }
}

impl Machine for Paper {
    fn read(&self, path: &str) -> Option<String> {
        self.files.get(path).cloned()
    }
    fn list(&self, path: &str) -> Vec<String> {
        match path {
            "/sys/class/net" => self.interfaces.iter().map(|(name, _)| (*name).to_owned()).collect(),
            "/sys/devices/system/cpu" => vec!["cpu0".into(), "cpu1".into(), "online".into()],
            other => panic!("nobody should list {other}"),
        }
    }
    fn of_process(&self, name: &str) -> Option<String> {
        self.read(name)
    }
    fn whose(&self) -> String {
        "a machine of paper".into()
    }
    fn try_feature(&self, feature: Feature) -> io::Result<()> {
        match self.refused.iter().find(|(refused, _)| *refused == feature) {
            Some((_, code)) => Err(io::Error::from_raw_os_error(*code)),
            None => Ok(()),
        }
    }
    fn clock_is_synchronised(&self) -> io::Result<bool> {
        Ok(self.synchronised)
    }
    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(self.free)
    }
    fn driver(&self, interface: &str) -> io::Result<String> {
        let found = self.interfaces.iter().find(|(known, _)| *known == interface);
        found.map(|(_, driver)| (*driver).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn lanes(&self) -> &'static str {
        self.lanes
    }
}

fn wanted() -> Wanted {
    Wanted {
        calls: 1000,
        because: "a test",
        ports: (10_000, 20_000),
        workers: None,
        lowest_port: 5060,
        tcp: true,
        folders: vec![("/var/lib/asterisk/sounds".into(), "recordings")],
    }
}

#[test]
fn a_sound_machine_gives_nothing_to_mend() {
    let entries = examine(&Paper::sound(), &wanted());
    for entry in &entries {
        assert_eq!((entry.level, &entry.remedy), (Level::Good, &None), "{entry:?}");
    }
    assert_eq!(worst(&entries).status(), 0);
    // Buffers are two entries, and there is no veth here.
    assert_eq!(entries.len(), CHECKS.len());
}

/// What one change of a sound machine makes of a check: its level, a part of what was found, a part of the remedy.
#[test]
fn what_is_wrong_is_found_and_the_remedy_names_the_number_that_is_missing() {
    use Feature::{AfXdp, IoUring, PacketSocket, SkLookup, Xdp};
    use Level::{Error, Good, Note, Warning};
    let sound = Paper::sound;
    let status = |caps: &str, cpus: &str| format!("CapEff:\t{caps}\nCpus_allowed_list:\t{cpus}");
    let limits = |files: &str, rt: &str| format!("Max open files {files} files\nMax realtime priority {rt}");
    let more = |calls| Wanted { calls, ..wanted() };
    let none = "0000000000000000";
    let tracked = |count: &str, max: &str| {
        sound()
            .with("/proc/sys/net/netfilter/nf_conntrack_count", count)
            .with("/proc/sys/net/netfilter/nf_conntrack_max", max)
    };
    let rows: Vec<(&str, Paper, Wanted, Level, &str, &str)> = vec![
        (
            "open files",
            sound().with("limits", &limits("1024 4096", "0 0")),
            wanted(),
            Error,
            "hard limit 4096, 5674 wanted",
            "LimitNOFILE=5674",
        ),
        (
            "open files",
            sound().with("limits", &limits("1024 unlimited", "0 0")),
            wanted(),
            Good,
            "no limit",
            "",
        ),
        (
            "open files of the system",
            sound().with("/proc/sys/fs/file-max", "5000"),
            wanted(),
            Error,
            "5000",
            "fs.file-max=11348",
        ),
        (
            "real-time priority",
            sound().with("status", &status(none, "0-3")),
            wanted(),
            Warning,
            "limit 0",
            "LimitRTPRIO=1",
        ),
        (
            "real-time priority",
            sound().with("status", &status(none, "0-3")).with("limits", &limits("1 9999", "1 1")),
            wanted(),
            Good,
            "limit 1",
            "",
        ),
        (
            "real-time share",
            sound().with("/proc/sys/kernel/sched_rt_runtime_us", "0"),
            wanted(),
            Warning,
            "0 us",
            "=950000",
        ),
        (
            "privileged port",
            sound().with("status", &status(none, "0")),
            Wanted { lowest_port: 443, ..wanted() },
            Error,
            "port 443",
            "cap_net_bind_service",
        ),
        (
            "privileged port",
            sound(),
            Wanted { lowest_port: 443, ..wanted() },
            Good,
            "CAP_NET_BIND_SERVICE",
            "",
        ),
        (
            "capabilities for media",
            sound().with("status", &status("0000008000801400", "0-3")),
            wanted(),
            Note,
            "no CAP_NET_RAW;",
            "setcap",
        ),
        ("media ports", sound(), more(3000), Error, "5001 pairs, 6000 wanted", "rtpend=21999"),
        (
            "media ports",
            sound(),
            more(20_000),
            Error,
            "40000 wanted",
            "one address has ports for 16127 calls",
        ),
        (
            "ports of other programs",
            sound(),
            Wanted { ports: (20_000, 40_000), ..wanted() },
            Warning,
            "32768 to 60999",
            "reserved_ports=20000-40000",
        ),
        (
            "ports of other programs",
            sound().with("/proc/sys/net/ipv4/ip_local_reserved_ports", "8080"),
            Wanted { ports: (20_000, 40_000), ..wanted() },
            Warning,
            "32768",
            "=8080,20000-40000",
        ),
        (
            "ports of other programs",
            sound().with("/proc/sys/net/ipv4/ip_local_reserved_ports", "8080,20000-40000"),
            Wanted { ports: (20_000, 40_000), ..wanted() },
            Good,
            "reserved",
            "",
        ),
        (
            "receive buffers",
            sound().with("/proc/sys/net/core/rmem_max", "212992"),
            wanted(),
            Warning,
            "212992 bytes, 16777216 wanted",
            "net.core.rmem_max=16777216",
        ),
        (
            "send buffers",
            sound().with("/proc/sys/net/core/wmem_max", "212992"),
            wanted(),
            Warning,
            "640000 wanted",
            "net.core.wmem_max=640000",
        ),
        (
            "datagrams lost in sockets",
            sound().with("/proc/net/snmp", "Udp: InDatagrams RcvbufErrors\nUdp: 90 10"),
            wanted(),
            Note,
            "10 of 100",
            "nstat",
        ),
        ("packet backlog", sound(), more(5000), Warning, "1000, 5000 wanted", "netdev_max_backlog=5000"),
        (
            "packet backlog",
            sound().with("/proc/net/softnet_stat", "00000001 0000000a 0"),
            wanted(),
            Warning,
            "10 packets dropped",
            "=2000",
        ),
        (
            "connections that wait",
            sound().with("/proc/sys/net/core/somaxconn", "128"),
            wanted(),
            Warning,
            "128",
            "somaxconn=1024",
        ),
        ("connection tracking", tracked("0", "65536"), wanted(), Good, "nothing is tracked", ""),
        (
            "connection tracking",
            tracked("12", "65536"),
            wanted(),
            Note,
            "12 of 65536",
            "udp dport 10000-20000 notrack",
        ),
        (
            "connection tracking",
            tracked("65000", "65536"),
            wanted(),
            Error,
            "4000 wanted",
            "nf_conntrack_max=73000",
        ),
        (
            "veth pairs",
            Paper { interfaces: vec![("eth0", "virtio_net"), ("veth7", "veth")], ..sound() },
            wanted(),
            Note,
            "veth7",
            "gro on",
        ),
        (
            "io_uring",
            sound().refusing(&[IoUring], 1).with("/proc/sys/kernel/io_uring_disabled", "2"),
            wanted(),
            Note,
            "not permitted",
            "io_uring_disabled=0",
        ),
        ("io_uring", sound().refusing(&[IoUring], 1), wanted(), Note, "not permitted", "seccomp"),
        (
            "sk_lookup",
            sound().refusing(&[SkLookup, PacketSocket], 1),
            wanted(),
            Note,
            "packet sockets: ",
            "setcap",
        ),
        ("sk_lookup", sound().refusing(&[SkLookup], 38), wanted(), Note, "sk_lookup: ", "run a kernel"),
        ("AF_XDP", sound().refusing(&[Xdp, AfXdp], 97), wanted(), Note, "AF_XDP: ", "run a kernel"),
        (
            "processors",
            sound().with("status", &status(none, "0")),
            wanted(),
            Warning,
            "1, media workers 1",
            "second processor",
        ),
        (
            "processors",
            sound(),
            Wanted { workers: Some(5), ..wanted() },
            Warning,
            "5, media workers 5",
            "media_workers=4",
        ),
        (
            "processor quota",
            sound().with("/sys/fs/cgroup/system.slice/cpu.max", "50000 100000"),
            wanted(),
            Warning,
            "50000 us of each 100000 us for /sys/fs/cgroup/system.slice",
            "CPUQuota=",
        ),
        ("codec lanes", Paper { lanes: "portable", ..sound() }, wanted(), Note, "portable", "-cpu host"),
        (
            "frequency governor",
            sound().with("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave"),
            wanted(),
            Warning,
            "powersave on 1 of 2",
            "cpupower",
        ),
        (
            "stolen time",
            sound().with("/proc/stat", "cpu 900 0 0 70 0 0 0 30 0 0"),
            wanted(),
            Warning,
            "3.0 %",
            "dedicated",
        ),
        (
            "disk",
            Paper { free: 1_500_000_000, ..sound() },
            wanted(),
            Warning,
            "1.5 GB free for recordings in /var/lib/asterisk/sounds, 26 hours",
            "df -h",
        ),
        ("disk", Paper { free: 99_000_000, ..sound() }, wanted(), Error, "0.0 GB", "df -h"),
        ("clock", Paper { synchronised: false, ..sound() }, wanted(), Warning, "no reference", "timesyncd"),
        (
            "clock source",
            sound().with("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"),
            wanted(),
            Warning,
            "hpet",
            "echo tsc >",
        ),
    ];
    for (check, machine, wanted, level, found, remedy) in rows {
        let entries = examine(&machine, &wanted);
        let row = entries.iter().filter(|entry| entry.check == check).max_by_key(|entry| entry.level);
        let row = row.unwrap_or_else(|| panic!("{check}: nothing was said"));
        assert_eq!(row.level, level, "{check}: {row:?}");
        assert!(row.found.contains(found), "{check}: {found:?} is not in {row:?}");
        let mends = row.remedy.as_deref().unwrap_or("");
        assert!(mends.contains(remedy), "{check}: {remedy:?} is not in {row:?}");
        assert_eq!(
            mends.is_empty(),
            level == Good,
            "{check}: what is wrong has a remedy, and nothing else has"
        );
    }
}

#[test]
fn a_machine_that_tells_nothing_is_judged_by_what_remains_and_never_panics() {
    let silent = Paper { files: BTreeMap::new(), interfaces: Vec::new(), ..Paper::sound() };
    let entries = examine(&silent, &wanted());
    assert!(entries.iter().any(|entry| entry.check == "media ports"));
    let garbled = ["limits", "status", "cgroup", "/proc/stat", "/proc/net/snmp", "/proc/net/softnet_stat"]
        .iter()
        .fold(Paper::sound(), |paper, path| {
            paper.with(path, "cpu  x\nUdp:\nCapEff:\tzz\n0::\nMax open files\u{0}")
        });
    assert!(!examine(&garbled, &wanted()).is_empty());
}

#[test]
fn the_exit_status_is_that_of_the_worst_entry_as_monitoring_programs_read_it() {
    for (levels, status) in [
        (&[Level::Good, Level::Note][..], 0),
        (&[Level::Good, Level::Warning, Level::Note], 1),
        (&[Level::Error, Level::Warning], 2),
        (&[], 0),
    ] {
        let entries: Vec<Entry> = levels.iter().map(|level| Entry::new("x", *level, "", "")).collect();
        assert_eq!(worst(&entries).status(), status, "{levels:?}");
    }
}

#[test]
fn people_read_what_why_and_what_to_do_and_programs_the_same() {
    let entries = [
        Entry::good("clock", "follows a reference", "records carry it"),
        Entry::new("ports", Level::Error, "1 pair, 2 wanted", "each leg takes one").mend("rtpend=4\nor less"),
    ];
    let text = as_text(&Paper::sound(), &wanted(), &entries);
    assert_eq!(
        text,
        "Judged for 1000 calls, 200000 packets a second (a test); limits are those of a machine of paper.\n\n\
         good     clock: follows a reference\n         records carry it\n\
         error    ports: 1 pair, 2 wanted\n         each leg takes one\n       > rtpend=4\n       > or less\n\n\
         1 good, 0 notes, 0 warnings, 1 error\n"
    );
    let told: serde_json::Value =
        serde_json::from_str(&as_json(&Paper::sound(), &wanted(), &entries)).unwrap();
    assert_eq!(told["level"], "error");
    assert_eq!(told["calls"], 1000);
    assert_eq!(told["checks"][1]["remedy"], "rtpend=4\nor less");
    assert_eq!(told["checks"][0]["remedy"], serde_json::Value::Null);
}

#[test]
fn this_machine_can_be_examined() {
    let machine = RealMachine::beside(Path::new("/no/such/folder"));
    assert!(machine.whose().starts_with("this shell"));
    let entries = examine(&machine, &wanted());
    for check in ["open files", "real-time priority", "media ports", "io_uring", "disk", "codec lanes"] {
        assert!(entries.iter().any(|entry| entry.check == check), "{check}");
    }
}
