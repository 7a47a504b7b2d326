//! Disks and clocks.

use super::machine::Machine;
use super::{Entry, Level, Wanted, shown};

/// Bytes of an hour of one recording as 16-bit PCM of 8 kHz.
const RECORDED_HOUR: u64 = 16_000 * 3600;
const MB: u64 = 1_000_000;
const GB: u64 = 1_000_000_000;

/// Whether what is written finds room.
pub fn disks(machine: &dyn Machine, wanted: &Wanted) -> Vec<Entry> {
    const WHY: &str = "a full disk ends recordings and loses call records; calls go on";
    /// Below this a day of logs may fill it.
    const LOW: u64 = 2 * GB;
    /// Below this it is full for all that matters.
    const FULL: u64 = 100 * MB;
    let mut entries = Vec::new();
    for (folder, what) in &wanted.folders {
        let Ok(free) = machine.free_bytes(folder) else {
            let found = format!("{} for {what} cannot be looked at", shown(folder));
            entries.push(
                Entry::new("disk", Level::Warning, found, WHY).mend(format!("mkdir -p {}", shown(folder))),
            );
            continue;
        };
        let hours = if *what == "recordings" {
            format!(", {} hours of calls as .wav", free / RECORDED_HOUR)
        } else {
            String::new()
        };
        let found =
            format!("{}.{} GB free for {what} in {}{hours}", free / GB, free % GB / (GB / 10), shown(folder));
        let level = match free {
            ..FULL => Level::Error,
            FULL..LOW => Level::Warning,
            _ => Level::Good,
        };
        let entry = Entry::new("disk", level, found, WHY);
        entries.push(if level == Level::Good {
            entry
        } else {
            entry.mend(format!(
                "df -h {}; move it in [directories] of asterisk.conf, or delete",
                shown(folder)
            ))
        });
    }
    entries
}

/// Whether the wall clock is right.
pub fn clock(machine: &dyn Machine, _: &Wanted) -> Vec<Entry> {
    const NAME: &str = "clock";
    const WHY: &str =
        "call records, time conditions of the dialplan and RTCP reports carry the time of this clock";
    match machine.clock_is_synchronised() {
        Ok(true) => vec![Entry::good(NAME, "follows a reference", WHY)],
        Ok(false) => {
            vec![
                Entry::new(NAME, Level::Warning, "follows no reference", WHY)
                    .mend("systemctl enable --now systemd-timesyncd, or apt-get install chrony"),
            ]
        }
        Err(_) => Vec::new(),
    }
}

/// Whether asking for the time is cheap.
pub fn clock_source(machine: &dyn Machine, _: &Wanted) -> Vec<Entry> {
    const NAME: &str = "clock source";
    const WHY: &str = "a clock that programs can read themselves takes 25 ns, one that only the kernel can read a microsecond or more";
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    /// Sources that the kernel's vDSO reads without a system call.
    const QUICK: [&str; 4] = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];
    let Some(current) = machine.read(&format!("{FOLDER}/current_clocksource")) else { return Vec::new() };
    if QUICK.contains(&current.as_str()) {
        return vec![Entry::good(NAME, current, WHY)];
    }
    let available = machine.read(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let better = available.split_whitespace().find(|source| QUICK.contains(source));
    let remedy = better.map_or_else(
        || "none of the others is better here; boot with tsc=reliable if the processor's counter can be trusted".to_owned(),
        |source| format!("echo {source} > {FOLDER}/current_clocksource"),
    );
    vec![Entry::new(NAME, Level::Warning, current, WHY).mend(remedy)]
}
