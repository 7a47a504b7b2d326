//! Processors: how many, how fast, and whether they are ours.

use super::machine::Machine;
use super::{Entry, Level, Wanted};

/// Processors for media workers and signalling.
pub fn workers(machine: &dyn Machine, wanted: &Wanted) -> Vec<Entry> {
    const NAME: &str = "processors";
    const WHY: &str = "media workers want one each, and signalling one besides";
    let Some(processors) = machine.processors() else { return Vec::new() };
    let workers = wanted.workers.unwrap_or_else(|| processors.saturating_sub(1).max(1));
    let found = format!("{processors}, media workers {workers}");
    if processors > workers {
        return vec![Entry::good(NAME, found, WHY)];
    }
    let remedy = if workers > 1 {
        format!("media_workers={} in rtp.conf", processors.saturating_sub(1).max(1))
    } else {
        "give the machine a second processor".to_owned()
    };
    vec![Entry::new(NAME, Level::Warning, found, WHY).mend(remedy)]
}

/// Whether a control group stops the process when it has used its share.
pub fn quota(machine: &dyn Machine, _: &Wanted) -> Vec<Entry> {
    const NAME: &str = "processor quota";
    const WHY: &str =
        "a group that has used its quota is stopped until the period ends, often for tens of milliseconds";
    let group = machine
        .of_process("cgroup")
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned));
    let Some(group) = group else { return Vec::new() };
    // A quota of any group above holds too.
    let mut path = format!("/sys/fs/cgroup{}", group.trim_end_matches('/'));
    while path.len() >= "/sys/fs/cgroup".len() {
        let limit = machine.read(&format!("{path}/cpu.max"));
        if let Some(limit) = limit.filter(|limit| !limit.starts_with("max")) {
            let mut words = limit.split_whitespace();
            let (quota, period) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let found = format!("{quota} us of each {period} us for {path}");
            let remedy = format!(
                "echo max > {path}/cpu.max\nor remove CPUQuota= of the unit or --cpus of the container"
            );
            return vec![Entry::new(NAME, Level::Warning, found, WHY).mend(remedy)];
        }
        path.truncate(path.rfind('/').unwrap_or(0));
    }
    vec![Entry::good(NAME, "none", WHY)]
}

/// What codecs may use of the processor.
pub fn lanes(machine: &dyn Machine, _: &Wanted) -> Vec<Entry> {
    const NAME: &str = "codec lanes";
    const WHY: &str = "codecs code 8 or 16 calls at once where the processor has AVX2 or AVX-512";
    let level = machine.lanes();
    if level == "portable" {
        let remedy = "in a virtual machine pass the host's processor on, such as -cpu host of QEMU";
        return vec![Entry::new(NAME, Level::Note, level, WHY).mend(remedy)];
    }
    vec![Entry::good(NAME, level, WHY)]
}

/// Whether processors change their speed.
pub fn governor(machine: &dyn Machine, _: &Wanted) -> Vec<Entry> {
    const NAME: &str = "frequency governor";
    const WHY: &str = "a processor that was slowed down between two ticks makes the next one late";
    let governors: Vec<String> = machine
        .list("/sys/devices/system/cpu")
        .iter()
        .filter_map(|cpu| machine.read(&format!("/sys/devices/system/cpu/{cpu}/cpufreq/scaling_governor")))
        .collect();
    let slow: Vec<&String> = governors.iter().filter(|governor| *governor != "performance").collect();
    match slow.first() {
        None if governors.is_empty() => vec![Entry::good(NAME, "frequencies are not ours to change", WHY)],
        None => vec![Entry::good(NAME, "performance", WHY)],
        Some(name) => {
            let found = format!("{name} on {} of {} processors", slow.len(), governors.len());
            vec![Entry::new(NAME, Level::Warning, found, WHY).mend("cpupower frequency-set -g performance")]
        }
    }
}

/// Whether the hypervisor gives our time to others.
pub fn steal(machine: &dyn Machine, _: &Wanted) -> Vec<Entry> {
    const NAME: &str = "stolen time";
    const WHY: &str = "time that the hypervisor gave to other machines; meanwhile no packet leaves, and nothing here can mend it";
    /// Thousandths above which audio suffers: a stolen slice lasts some milliseconds.
    const PERMILLE: u64 = 10;
    let Some(text) = machine.read("/proc/stat") else { return Vec::new() };
    let Some(line) = text.lines().find_map(|line| line.strip_prefix("cpu ")) else { return Vec::new() };
    // user nice system idle iowait irq softirq steal; guest time is counted in user already.
    let times: Vec<u64> = line.split_whitespace().take(8).filter_map(|word| word.parse().ok()).collect();
    let Some(&stolen) = times.get(7) else { return Vec::new() };
    let all: u64 = times.iter().sum();
    let permille = stolen * 1000 / all.max(1);
    let found = format!("{}.{} % since the machine started", permille / 10, permille % 10);
    if permille < PERMILLE {
        return vec![Entry::good(NAME, found, WHY)];
    }
    let remedy = "move the machine to a host that is not overcommitted, or give it dedicated processors";
    vec![Entry::new(NAME, Level::Warning, found, WHY).mend(remedy)]
}
