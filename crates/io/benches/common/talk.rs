//! Phones that all talk: one packet of 20 ms of G.711 each every 20 ms, spread over the milliseconds.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Wall};

use rtp::Header;

pub struct Talk {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Talk {
    /// Talks to all targets on a thread of its own; `send` sends the packet of one of them, by its number, and says whether
    /// it left.
    pub fn start(
        targets: Vec<SocketAddr>,
        send: impl Fn(usize, &[u8], SocketAddr) -> bool + Send + 'static,
    ) -> Self {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counted) = (stop.clone(), sent.clone());
        let thread = std::thread::spawn(move || {
            let mut due = Wall::now();
            let mut packet = [0_u8; 172];
            for round in 0_u32.. {
                if stopped.load(Relaxed) {
                    return;
                }
                std::thread::sleep(due.saturating_duration_since(Wall::now()));
                due += Duration::from_millis(1);
                let (frame, part) = (round / 20, round as usize % 20);
                for (number, to) in targets.iter().enumerate().skip(part).step_by(20) {
                    let header = Header {
                        payload_type: 0,
                        marker: frame == 0,
                        sequence: frame as u16,
                        timestamp: frame * 160,
                        ssrc: number as u32 + 1,
                    };
                    packet[..12].copy_from_slice(&rtp::write(&header));
                    counted.fetch_add(u64::from(send(number, &packet, *to)), Relaxed);
                }
            }
        });
        Self { stop, sent, thread }
    }
    /// Packets that have left.
    #[allow(dead_code, reason = "most benches count at the other end")]
    pub fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }
    pub fn stop(self) {
        self.stop.store(true, Relaxed);
        self.thread.join().expect("the phones end");
    }
}
