//! The program, running.

use crate::peer::root;
use crate::site::Site;
use crate::wait;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Lines of the log shown when a test fails.
const LOG_TAIL: usize = 80;
/// Longest start.
const BOOT: Duration = wait::SOON.saturating_mul(2);

/// The program under test: the one `STROWGER` names, or the one of this build, which is made when it is missing or old.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| std::env::var_os("STROWGER").map_or_else(build, PathBuf::from))
}

/// Builds beside this test's own program, in the same profile.
///
/// Asks for a test that runs the program, of the whole workspace: so every dependency has the features it has under
/// `cargo test --workspace`, and after that nothing is left to build. `cargo build` would build most of them once more.
fn build() -> PathBuf {
    // <target>/<profile>/deps/<test>
    let own = std::env::current_exe().expect("the path of the test");
    let profile = own.ancestors().nth(2).expect("a profile folder").to_owned();
    let target = profile.parent().expect("a target folder").to_owned();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["test", "--no-run", "--quiet", "--workspace", "--test", "command_line"])
        .current_dir(root());
    command.arg("--target-dir").arg(&target);
    match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => {}
        Some("release") => {
            command.arg("--release");
        }
        Some(other) => {
            command.args(["--profile", other]);
        }
    }
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "the program does not build:\n{}", text(&output.stderr));
    profile.join("strowger")
}

/// A server on a site; it goes when this goes.
#[derive(Debug)]
pub struct Server {
    /// Its configuration.
    pub site: Site,
    child: Child,
    started: Instant,
    words: Vec<String>,
}

/// A start that failed.
#[derive(Debug)]
pub struct Refused {
    /// Exit status; `None` when a signal ended it.
    pub code: Option<i32>,
    /// All it said.
    pub said: String,
}

impl Server {
    /// Writes the configuration, starts the program and waits until it answers.
    pub fn start(site: Site) -> Self {
        Self::try_start(site).unwrap_or_else(|refused| panic!("it does not start: {refused:?}"))
    }

    /// As [`Server::start`]; `Err` when the program ends instead.
    pub fn try_start(site: Site) -> Result<Self, Refused> {
        Self::try_start_with(site, &[])
    }

    /// As [`Server::try_start`], with more words on the command line.
    pub fn try_start_with(site: Site, words: &[&str]) -> Result<Self, Refused> {
        site.write();
        let config = site.config().display().to_string();
        let words = ["-C", &config].iter().chain(words).map(|&word| word.to_owned()).collect();
        Self::launch(site, words)
    }

    /// The program without any configuration, as a new user starts it, on the site's address.
    pub fn embedded(name: &str) -> Self {
        Self::launch(Site::new(name), Vec::new())
            .unwrap_or_else(|refused| panic!("it does not start: {refused:?}"))
    }

    fn launch(site: Site, words: Vec<String>) -> Result<Self, Refused> {
        let child = spawn(&site, &words);
        let mut server = Self { site, child, started: Instant::now(), words };
        server.wait_booted()?;
        Ok(server)
    }

    fn wait_booted(&mut self) -> Result<(), Refused> {
        loop {
            assert!(self.started.elapsed() < BOOT, "it neither answers nor ends");
            if let Some(status) = wait::for_some(Duration::from_millis(30), || self.child.try_wait().ok()?) {
                return Err(Refused { code: status.code(), said: self.console() });
            }
            let output = self.run("core waitfullybooted");
            if output.status.success() {
                let said = text(&output.stdout);
                assert!(said.trim_end().ends_with("Asterisk has fully booted."), "{said}");
                return Ok(());
            }
        }
    }

    /// Ends it as a power cut does and starts it again on what lies on the disk.
    pub fn kill_and_restart(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
        self.child = spawn(&self.site, &self.words);
        self.started = Instant::now();
        if let Err(refused) = self.wait_booted() {
            panic!("it does not start again: {refused:?}");
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal by its short name.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "the signal {name} is not sent");
    }

    /// Whether it still runs.
    pub fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, which somebody else asked for.
    pub fn ended(&mut self) -> Option<i32> {
        wait::until("the process ends", || self.child.try_wait().ok()?).code()
    }

    /// `-rx COMMAND`.
    pub fn run(&self, command: &str) -> Output {
        self.call(&["-rx", command])
    }

    /// The program with this site's configuration and these words.
    pub fn call(&self, words: &[&str]) -> Output {
        let mut call = command(&self.site);
        call.args(&self.words).args(words).stdin(Stdio::null());
        call.output().expect("the program runs")
    }

    /// What `-rx COMMAND` prints; it must succeed.
    pub fn cli(&self, command: &str) -> String {
        let output = self.run(command);
        let (said, error) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "-rx '{command}' fails: {said}{error}");
        said
    }

    /// `-rx COMMAND --json`, parsed; it must succeed.
    pub fn json(&self, command: &str) -> serde_json::Value {
        let output = self.call(&["-rx", command, "--json"]);
        let said = text(&output.stdout);
        assert!(output.status.success(), "-rx '{command}' --json fails: {said}{}", text(&output.stderr));
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("-rx '{command}' --json: {error}: {said}"))
    }

    /// A value of the internal database, waiting until it is there.
    pub fn database(&self, family: &str, key: &str) -> String {
        wait::until(&format!("{family}/{key} is written"), || self.database_now(family, key))
    }

    /// A value of the internal database.
    pub fn database_now(&self, family: &str, key: &str) -> Option<String> {
        let said = text(&self.run(&format!("database get {family} {key}")).stdout);
        said.lines().find_map(|line| line.strip_prefix("Value: ").map(|value| value.trim_end().to_owned()))
    }

    /// How many channels there are.
    pub fn channels(&self) -> usize {
        let said = self.cli("core show channels count");
        let count = said.lines().find_map(|line| line.split_once(" active channel"));
        count
            .and_then(|(count, _)| count.trim().parse().ok())
            .unwrap_or_else(|| panic!("no count of channels in: {said}"))
    }

    /// Waits until no channel is left.
    pub fn until_idle(&self) {
        wait::until_true("all channels are gone", || self.channels() == 0);
    }

    /// Lines of `Master.csv`.
    pub fn records(&self) -> Vec<Vec<String>> {
        self.site.place.read("log/cdr-csv/Master.csv").lines().map(columns).collect()
    }

    /// All it said on its terminal.
    pub fn console(&self) -> String {
        self.site.place.read("console")
    }

    /// Its log, as far as it is written.
    pub fn log(&self) -> String {
        self.site.place.read("log/full")
    }

    /// Waits until a line of its log has all of these words: a thread of its own writes it.
    pub fn until_logged(&self, words: &[&str]) {
        let has = |line: &str| words.iter().all(|word| line.contains(word));
        let seen = wait::for_some(wait::SOON, || self.log().lines().any(has).then_some(()));
        assert!(seen.is_some(), "no line with {words:?} in the log:\n{}", self.log());
    }

    /// Memory in use, in bytes.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
        kilobytes.expect("VmRSS of the process") * 1024
    }

    /// Open descriptors.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).map_or(0, Iterator::count)
    }

    /// Local addresses of its sockets: protocol, address and port, as the kernel lists them in `/proc/net`.
    pub fn sockets(&self) -> Vec<(&'static str, SocketAddr)> {
        let links = std::fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("its descriptors").flatten();
        let links = links.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        let own: Vec<String> = links
            .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
            .collect();
        let mut sockets = Vec::new();
        for protocol in ["tcp", "udp", "tcp6", "udp6"] {
            let table = std::fs::read_to_string(format!("/proc/net/{protocol}")).unwrap_or_default();
            for line in table.lines().skip(1) {
                let columns: Vec<&str> = line.split_whitespace().collect();
                if let [_, local, _, _, _, _, _, _, _, inode, ..] = columns[..]
                    && own.iter().any(|known| known == inode)
                {
                    sockets.push((protocol, kernel_address(local)));
                }
            }
        }
        sockets
    }

    /// The process lives, answers, and nothing of it has panicked.
    pub fn assert_healthy(&mut self) {
        assert!(self.alive(), "the process has ended");
        self.cli("core show uptime");
        for said in [self.console(), self.log()] {
            assert!(!said.contains("panicked at"), "a panic:\n{}", tail(&said));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- console\n{}--- log\n{}", tail(&self.console()), tail(&self.log()));
        }
    }
}

/// The program, with what it reads from its environment; the last two matter without a configuration only.
fn command(site: &Site) -> Command {
    let mut command = Command::new(program());
    surround(&mut command, site);
    command
}

pub(crate) fn surround(command: &mut Command, site: &Site) {
    command
        .env("HOME", site.place.path())
        .env("STROWGER_STATE", site.place.join("state"))
        .env("STROWGER_BIND", site.sip.to_string())
        .envs(site.environment.iter().copied())
        .current_dir(site.place.path());
}

fn spawn(site: &Site, words: &[String]) -> Child {
    let console =
        File::options().create(true).append(true).open(site.place.join("console")).expect("a console");
    let errors = console.try_clone().expect("the same file");
    let mut command = match site.descriptors {
        None => command(site),
        Some(most) => {
            let mut shell = Command::new("sh");
            surround(&mut shell, site);
            shell.args(["-c", &format!("ulimit -n {most} && exec \"$0\" \"$@\"")]).arg(program());
            shell
        }
    };
    command
        .args(["-f", "-n"])
        .args(words)
        .stdin(Stdio::null())
        .stdout(console)
        .stderr(errors)
        .spawn()
        .expect("the program starts")
}

/// `0100007F:13C4` or 32 digits for IPv6: words in the machine's own order, here little-endian.
fn kernel_address(text: &str) -> SocketAddr {
    let (ip, port) = text.split_once(':').expect("address and port");
    let word =
        |at: usize| u32::from_str_radix(&ip[at..at + 8], 16).expect("hexadecimal digits").to_le_bytes();
    let port = u16::from_str_radix(port, 16).expect("hexadecimal digits");
    if ip.len() == 8 {
        return SocketAddr::new(word(0).into(), port);
    }
    let mut bytes = [0; 16];
    for (to, from) in bytes.chunks_exact_mut(4).zip([0, 8, 16, 24].map(word)) {
        to.copy_from_slice(&from);
    }
    SocketAddr::new(bytes.into(), port)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.len().saturating_sub(LOG_TAIL);
    lines.iter().skip(start).map(|line| format!("{line}\n")).collect()
}

/// Columns of a CSV line, quotes taken off.
fn columns(line: &str) -> Vec<String> {
    let (mut columns, mut column, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                column.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => columns.push(std::mem::take(&mut column)),
            c => column.push(c),
        }
    }
    columns.push(column);
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_records_and_the_kernels_addresses_are_read() {
        assert_eq!(kernel_address("0100007F:13C4"), "127.0.0.1:5060".parse().unwrap());
        assert_eq!(kernel_address("00000000000000000000000001000000:13C4"), "[::1]:5060".parse().unwrap());
        assert_eq!(columns(r#""a","b ""c"", d",,5"#), ["a", "b \"c\", d", "", "5"]);
    }
}
