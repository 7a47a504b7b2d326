//! A port that hears and forgets.

use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where all callers have their audio sent; it counts packets until the process ends.
#[derive(Debug, Clone)]
pub struct Listener {
    port: u16,
    /// The address as the kernel's table of sockets has it; of IPv6 there is no such line.
    kernel_name: String,
    heard: Arc<AtomicU64>,
}

impl Listener {
    /// Begins to listen at an even port of this address; the next one takes the reports.
    pub fn start(ip: IpAddr) -> Self {
        let (audio, reports) = (0..1000)
            .find_map(|_| {
                let audio = UdpSocket::bind((ip, 0)).ok()?;
                let port = audio.local_addr().ok()?.port();
                let reports = UdpSocket::bind((ip, port.checked_add(1)?)).ok()?;
                (port % 2 == 0).then_some((audio, reports))
            })
            .expect("two ports side by side");
        let port = audio.local_addr().expect("an address").port();
        let heard = Arc::new(AtomicU64::new(0));
        let count = heard.clone();
        std::thread::spawn(move || {
            let _reports = reports;
            let mut buffer = [0; 2048];
            while audio.recv(&mut buffer).is_ok() {
                count.fetch_add(1, Relaxed);
            }
        });
        let kernel_name = match ip {
            IpAddr::V4(ip) => format!("{:08X}", u32::from_ne_bytes(ip.octets())),
            IpAddr::V6(_) => String::new(),
        };
        Self { port, kernel_name, heard }
    }

    /// The port for audio.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Packets that have come so far: those that were read, and those for which the socket's queue had no room.
    ///
    /// All callers have one port, and a long tick sends to it in one burst what the queue does not hold. To be asked where
    /// the listener lives: each network namespace has a table of its own.
    pub fn heard(&self) -> u64 {
        self.heard.load(Relaxed) + self.dropped()
    }

    fn dropped(&self) -> u64 {
        let table = std::fs::read_to_string("/proc/thread-self/net/udp").unwrap_or_default();
        let place = format!("{}:{:04X}", self.kernel_name, self.port);
        let line = table.lines().find(|line| line.split_whitespace().nth(1) == Some(place.as_str()));
        let drops = line.and_then(|line| line.split_whitespace().last()?.parse().ok());
        drops.unwrap_or(0)
    }
}
