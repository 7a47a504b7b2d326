//! The seam between the checks and the machine they look at.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ::io::probe::{self, Feature};

/// What a check may ask.
pub trait Machine {
    /// The text of a file of `/proc` or `/sys`, without blanks around it.
    fn read(&self, path: &str) -> Option<String>;
    /// Names in a folder, sorted.
    fn list(&self, path: &str) -> Vec<String>;
    /// A file of `/proc/PID` of the process that is judged.
    fn of_process(&self, name: &str) -> Option<String>;
    /// Whose limits these are, for people.
    fn whose(&self) -> String;
    /// Whether a feature of the kernel can be had.
    fn try_feature(&self, feature: Feature) -> io::Result<()>;
    /// Whether the clock follows a reference.
    fn clock_is_synchronised(&self) -> io::Result<bool>;
    /// Bytes that may still be written at a path.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
    /// The driver of a network interface.
    fn driver(&self, interface: &str) -> io::Result<String>;
    /// SIMD level of the codecs.
    fn lanes(&self) -> &'static str;
}

/// This machine. The process that is judged is the running server, else this one, which is what the server would get
/// if it were started from here.
pub struct RealMachine {
    server: Option<u32>,
}

impl RealMachine {
    /// With the server whose `asterisk.pid` lies in the folder, if it runs.
    pub fn beside(run_folder: &Path) -> Self {
        let pid = fs::read_to_string(run_folder.join("asterisk.pid")).ok();
        let pid = pid.and_then(|text| text.trim().parse().ok());
        Self { server: pid.filter(|pid| is_ours(*pid)) }
    }
}

/// A pid file may outlive its process, whose number another one then has.
fn is_ours(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    matches!(name.trim(), "strowger" | "asterisk")
}

impl Machine for RealMachine {
    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
    }
    fn list(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
        let entries = entries.filter_map(Result::ok);
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }
    fn of_process(&self, name: &str) -> Option<String> {
        let process = self.server.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        self.read(&format!("/proc/{process}/{name}"))
    }
    fn whose(&self) -> String {
        match self.server {
            Some(pid) => format!("the running server, process {pid}"),
            None => "this shell, for no server runs on this configuration".to_owned(),
        }
    }
    fn try_feature(&self, feature: Feature) -> io::Result<()> {
        probe::try_feature(feature)
    }
    fn clock_is_synchronised(&self) -> io::Result<bool> {
        probe::clock_is_synchronised()
    }
    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        // A folder that will be made lies where its parent lies.
        let mut there: PathBuf = path.to_owned();
        loop {
            match probe::free_bytes(&there) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && there.pop() => {}
                other => return other,
            }
        }
    }
    fn driver(&self, interface: &str) -> io::Result<String> {
        probe::driver(interface)
    }
    fn lanes(&self) -> &'static str {
        ::io::media::Level::best().name()
    }
}

/// Extra questions that follow from the first ones.
impl dyn Machine + '_ {
    /// A file that holds one number.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.parse().ok()
    }
    /// Two numbers with blanks between.
    pub fn pair(&self, path: &str) -> Option<(u64, u64)> {
        let text = self.read(path)?;
        let mut numbers = text.split_whitespace().map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    }
    /// Soft and hard value of a line of `/proc/PID/limits`; `u64::MAX` for "unlimited".
    pub fn limit(&self, name: &str) -> Option<(u64, u64)> {
        let text = self.of_process("limits")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let mut values = line.split_whitespace().map(|word| match word {
            "unlimited" => Some(u64::MAX),
            number => number.parse().ok(),
        });
        Some((values.next()??, values.next()??))
    }
    /// A field of `/proc/PID/status`.
    pub fn status(&self, field: &str) -> Option<String> {
        let text = self.of_process("status")?;
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
        Some(line.trim().to_owned())
    }
    /// Whether the process that is judged may use a capability.
    pub fn may(&self, capability: u32) -> Option<bool> {
        let effective = u64::from_str_radix(&self.status("CapEff")?, 16).ok()?;
        Some(effective >> capability & 1 == 1)
    }
    /// Processors that the process that is judged may run on.
    pub fn processors(&self) -> Option<usize> {
        let list = self.status("Cpus_allowed_list")?;
        list.split(',').try_fold(0_usize, |sum, range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            Some(sum + last.checked_sub(first)? + 1)
        })
    }
}
