//! What is on the wire, as tshark sees it.

use crate::place::Place;
use crate::wait;
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};

/// A capture of one address on the loopback interface.
#[derive(Debug)]
pub struct Capture {
    place: Place,
    child: Child,
}

impl Capture {
    /// Starts capturing; nothing, and said, when this user may not.
    pub fn start(ip: IpAddr) -> Option<Self> {
        let place = Place::new("capture");
        let errors = std::fs::File::create(place.join("errors")).expect("a file for its messages");
        let mut child = Command::new("tcpdump")
            .args(["-i", "lo", "-U", "-s", "0", "-Z", "root", "-w"])
            .arg(place.join("pcap"))
            .args(["udp", "and", "host", &ip.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .expect("tcpdump starts");
        let begun = wait::until("tcpdump listens or refuses", || {
            let listening = place.read("errors").contains("listening on");
            let ended = matches!(child.try_wait(), Ok(Some(_)));
            (listening || ended).then_some(!ended)
        });
        if !begun {
            println!("skipped: packets cannot be captured here: {}", place.read("errors").trim());
            return None;
        }
        Some(Self { place, child })
    }

    /// Ends the capture and asks tshark for these fields of the packets that a filter chooses, a line a packet.
    /// `ports` are UDP ports to read as RTP.
    pub fn fields(&mut self, filter: &str, fields: &[&str]) -> Vec<String> {
        self.stop();
        let mut command = Command::new("tshark");
        command.arg("-r").arg(self.place.join("pcap"));
        // RTP is found by the session descriptions, and by its look where none was seen.
        command.args(["--enable-heuristic", "rtp_udp", "-Y", filter, "-T", "fields", "-E", "separator=|"]);
        for field in fields {
            command.args(["-e", field]);
        }
        let output = command.stdin(Stdio::null()).output().expect("tshark runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tshark: {said}");
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    fn stop(&mut self) {
        // tcpdump writes what it holds when it is interrupted.
        let pid = self.child.id().to_string();
        if matches!(self.child.try_wait(), Ok(None)) {
            let _told = Command::new("kill").args(["-INT", &pid]).status();
            wait::until("tcpdump ends", || self.child.try_wait().ok()?);
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
