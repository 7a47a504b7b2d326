//! SIPp with scenarios of our own.

use crate::place::{Place, address};
use crate::site::SECRET;
use crate::wait;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A run of a scenario, to be described and started.
#[derive(Debug)]
pub struct Sipp {
    scenario: String,
    server: SocketAddr,
    local: SocketAddr,
    user: String,
    secret: String,
    service: String,
    transport: &'static str,
    calls: u32,
    /// Calls a second, side by side; `None` for one after the other.
    rate: Option<u32>,
    words: Vec<(String, String)>,
}

/// At a rate, no more calls are open at once than begin in so many seconds.
const RATE_SECONDS_MAX: u32 = 10;

/// A scenario that runs.
#[derive(Debug)]
pub struct SippRun {
    name: String,
    child: Child,
    place: Place,
}

impl Sipp {
    /// A scenario from `scenarios/`, from an address of its own.
    pub fn new(scenario: &str, server: SocketAddr) -> Self {
        let ip = if server.is_ipv4() { address() } else { server.ip() };
        let port = if server.is_ipv4() { 5060 } else { crate::place::free_ports(ip, 1) };
        Self {
            scenario: scenario.to_owned(),
            server,
            local: SocketAddr::new(ip, port),
            user: "alice".to_owned(),
            secret: SECRET.to_owned(),
            service: "100".to_owned(),
            transport: "u1",
            calls: 1,
            rate: None,
            words: Vec::new(),
        }
    }

    /// Where it sends from.
    #[must_use]
    pub fn at(mut self, ip: IpAddr, port: u16) -> Self {
        self.local = SocketAddr::new(ip, port);
        self
    }

    /// Who it is.
    #[must_use]
    pub fn user(mut self, name: &str) -> Self {
        self.user = name.to_owned();
        self
    }

    /// Another password than the right one.
    #[must_use]
    pub fn secret(mut self, secret: &str) -> Self {
        self.secret = secret.to_owned();
        self
    }

    /// The number it calls.
    #[must_use]
    pub fn dials(mut self, number: &str) -> Self {
        self.service = number.to_owned();
        self
    }

    /// TCP instead of UDP.
    #[must_use]
    pub fn over_tcp(mut self) -> Self {
        self.transport = "t1";
        self
    }

    /// How many calls, one after the other.
    #[must_use]
    pub fn calls(mut self, calls: u32) -> Self {
        self.calls = calls;
        self
    }

    /// So many calls a second, each begun whatever became of the others; no message is kept.
    #[must_use]
    pub fn rate(mut self, per_second: u32) -> Self {
        self.rate = Some(per_second);
        self
    }

    /// Replaces `@NAME@` in the scenario.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.words.push((format!("@{name}@"), value.to_owned()));
        self
    }

    /// Starts it; one that waits for a call is listening when this returns.
    pub fn start(self) -> SippRun {
        let place = Place::new("sipp");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(&self.scenario);
        let mut text =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for (name, value) in &self.words {
            text = text.replace(name, value);
        }
        text = text.replace("@USER@", &self.user).replace("@SECRET@", &self.secret);
        let scenario = place.write("scenario.xml", text);
        let output = std::fs::File::create(place.join("output")).expect("a file for its output");
        let mut command = Command::new("sipp");
        command
            .arg(self.server.to_string())
            .arg("-sf")
            .arg(scenario)
            .args(["-i", &self.local.ip().to_string(), "-p", &self.local.port().to_string()])
            .args(["-mi", &self.local.ip().to_string(), "-mp", "6000"])
            .args(["-s", &self.service, "-t", self.transport, "-m", &self.calls.to_string()])
            .args(["-nostdin", "-trace_err", "-error_file"])
            .arg(place.join("errors"))
            .current_dir(place.path())
            .stdin(Stdio::null())
            .stderr(output.try_clone().expect("the same file"))
            .stdout(output);
        match self.rate {
            Some(rate) => {
                command.args(["-r", &rate.to_string(), "-l", &(rate * RATE_SECONDS_MAX).to_string()])
            }
            None => command
                .args(["-l", "1", "-timeout", "120s", "-timeout_error", "-trace_msg", "-message_file"])
                .arg(place.join("messages")),
        };
        let child = command.spawn().expect("sipp starts");
        let mut run = SippRun { name: self.scenario, child, place };
        let listening = || !matches!(run.child.try_wait(), Ok(None)) || listens(self.local);
        wait::until_true("sipp listens", listening);
        run
    }

    /// Runs it to its end, which must be a success.
    pub fn run(self) {
        self.start().finish();
    }
}

impl SippRun {
    /// Waits for its end, which must be a success.
    pub fn finish(mut self) {
        let name = self.name.clone();
        // SIPp ends itself after its own time-out.
        let status = wait::for_some(wait::SOON * 3, || self.child.try_wait().ok()?);
        let ok = status.is_some_and(|status| status.success());
        assert!(ok, "{name}: {status:?}\n{}\n{}", self.place.read("errors"), self.messages());
    }

    /// All messages it sent and received.
    pub fn messages(&self) -> String {
        self.place.read("messages")
    }
}

impl Drop for SippRun {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Whether somebody has bound this address for UDP or listens on it for TCP.
fn listens(at: SocketAddr) -> bool {
    let table = |name: &str| std::fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    let (ip, names) = match at.ip() {
        IpAddr::V4(ip) => (format!("{:08X}", u32::from_le_bytes(ip.octets())), ["udp", "tcp"]),
        // The last word of the loopback address is the only one of it that is not zero.
        IpAddr::V6(_) => (format!("{:024}{:08X}", 0, 0x0100_0000), ["udp6", "tcp6"]),
    };
    let wanted = format!(": {ip}:{:04X} ", at.port());
    names.into_iter().any(|name| table(name).contains(&wanted))
}
