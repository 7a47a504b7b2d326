//! A port that hears and forgets.

use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where all callers have their audio sent; it counts packets until the process ends.
#[derive(Debug, Clone)]
pub struct Listener {
    port: u16,
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
        Self { port, heard }
    }

    /// The port for audio.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Packets heard so far.
    pub fn heard(&self) -> u64 {
        self.heard.load(Relaxed)
    }
}
