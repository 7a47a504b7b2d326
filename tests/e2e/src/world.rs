//! Where program and phones live: one machine's loopback interface, or two network namespaces with a wire between them.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;

use crate::place::address;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A place for the program and one for its phones.
#[derive(Debug)]
pub struct World {
    /// Address of the program.
    pub program: IpAddr,
    /// Address of the phones.
    pub phones: IpAddr,
    namespaces: Option<Namespaces>,
}

/// Two namespaces; gone with the value.
#[derive(Debug)]
struct Namespaces {
    program: String,
    phones: String,
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in [&self.program, &self.phones] {
            let _gone = ip(&["netns", "del", name]);
        }
    }
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output =
        Command::new("ip").args(words).output().map_err(|error| format!("no program ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

/// Runs `work` in a thread that lives in the namespace; sockets, threads and processes that it makes stay there.
fn inside<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    let file = File::open(Path::new("/run/netns").join(namespace)).expect("the namespace");
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("a way into it");
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl World {
    /// Interface of the program on the wire.
    pub const INTERFACE: &str = "v0";
    /// Interface of the phones on the wire.
    pub const PHONES_INTERFACE: &str = "v1";

    /// Both on the loopback interface.
    pub fn loopback() -> Self {
        Self { program: address(), phones: address(), namespaces: None }
    }

    /// A namespace each, and a veth pair between them.
    ///
    /// # Errors
    /// Without the program `ip` or the privileges.
    pub fn wire(name: &str) -> Result<Self, String> {
        let id = std::process::id();
        let (program, phones) = (format!("sg{id}{name}a"), format!("sg{id}{name}b"));
        ip(&["netns", "add", &program])?;
        let namespaces = Namespaces { program, phones };
        let Namespaces { program, phones } = &namespaces;
        ip(&["netns", "add", phones])?;
        let (near, far) = (Self::INTERFACE, Self::PHONES_INTERFACE);
        ip(&["link", "add", near, "netns", program, "type", "veth", "peer", "name", far, "netns", phones])?;
        for (namespace, device, address) in [(program, near, "10.44.0.1/24"), (phones, far, "10.44.0.2/24")] {
            ip(&["-n", namespace, "addr", "add", address, "dev", device])?;
            for device in [device, "lo"] {
                ip(&["-n", namespace, "link", "set", device, "up"])?;
            }
        }
        let [program, phones] = [1, 2].map(|host| IpAddr::V4(Ipv4Addr::new(10, 44, 0, host)));
        Ok(Self { program, phones, namespaces: Some(namespaces) })
    }

    /// Has the phones' end of the wire take frames that a program below the kernel's own way sends: it does when it collects
    /// what it receives (GRO), as the ends of containers may or may not.
    ///
    /// # Errors
    /// Without a wire, or the program `ethtool`.
    pub fn take_frames(&self) -> Result<(), String> {
        let namespaces = self.namespaces.as_ref().ok_or("no wire")?;
        ip(&["netns", "exec", &namespaces.phones, "ethtool", "-K", Self::PHONES_INTERFACE, "gro", "on"])
    }

    /// Names of the namespaces of the program and of the phones, when there is a wire.
    pub fn namespaces(&self) -> Option<[&str; 2]> {
        self.namespaces.as_ref().map(|Namespaces { program, phones }| [program.as_str(), phones.as_str()])
    }

    /// Whether there is a wire.
    pub const fn has_wire(&self) -> bool {
        self.namespaces.is_some()
    }

    /// Runs `work` where the program lives.
    pub fn at_program<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.namespaces {
            Some(namespaces) => inside(&namespaces.program, work),
            None => work(),
        }
    }

    /// Runs `work` where the phones live.
    pub fn at_phones<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.namespaces {
            Some(namespaces) => inside(&namespaces.phones, work),
            None => work(),
        }
    }
}
