//! Strangers that ask for calls from addresses that are not theirs, and hear nothing of what is answered.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use ::io::clock::Clock;
use ::io::net::{Limits, Net};
use base::Random;
use iax2::frame::{Command, Element, Full, Kind, write_element};

use super::Pace;

/// Ports that the strangers have.
const PORTS: usize = 16;
/// What is sent in so much time is sent together.
const TOGETHER: Duration = Duration::from_millis(1);
/// What should have been sent longer ago than this is left out.
const CATCH_UP: Duration = Duration::from_millis(20);

/// NEW from forged addresses of 127.128.0.0/9, at a rate: every third asks for a token, every third brings one that is made
/// up, every third brings none. It stops when this goes.
#[derive(Debug)]
pub struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// Begins.
    ///
    /// # Errors
    /// When a socket or a thread is refused.
    pub fn start(server: SocketAddr, rate: f64) -> io::Result<Self> {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counted) = (stop.clone(), sent.clone());
        let thread = std::thread::Builder::new().name("flood".into()).spawn(move || {
            let done = flood(server, rate, &stopped, &counted);
            debug_assert!(done.is_ok(), "{done:?}");
        })?;
        Ok(Self { stop, sent, thread: Some(thread) })
    }
    /// Datagrams so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

fn flood(server: SocketAddr, rate: f64, stop: &AtomicBool, sent: &AtomicU64) -> io::Result<()> {
    let mut net = Net::new(Limits::default())?;
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let sockets: Result<Vec<_>, _> = (0..PORTS).map(|_| net.bind_udp(any)).collect();
    let sockets = sockets.map_err(io::Error::other)?;
    let mut random = Random::new(Clock.now().as_nanos());
    let mut pace = Pace::new(rate, Clock.now());
    let mut frame = Vec::new();
    while !stop.load(Relaxed) {
        let now = Clock.now();
        while let Some(due) = pace.due(now) {
            if now.since(due) > CATCH_UP {
                continue;
            }
            // Of them none is read: what is answered fills the sockets and is dropped there.
            let from = IpAddr::V4(Ipv4Addr::from_bits(0x7f80_0000 | random.word() & 0x7f_ffff));
            let count = sent.fetch_add(1, Relaxed);
            write(&mut frame, count, &mut random);
            let socket = sockets.get(count as usize % PORTS).copied();
            socket.into_iter().for_each(|socket| net.send_udp(socket, Some(from), server, &frame));
        }
        net.flush();
        std::thread::sleep(TOGETHER);
    }
    Ok(())
}

fn write(frame: &mut Vec<u8>, count: u64, random: &mut Random) {
    let mut data = Vec::with_capacity(64);
    write_element(&Element::Version(2), &mut data);
    write_element(&Element::CalledNumber(b"100"), &mut data);
    write_element(&Element::Username(b"caller"), &mut data);
    write_element(&Element::Capability(4), &mut data);
    write_element(&Element::Format(4), &mut data);
    match count % 3 {
        0 => write_element(&Element::CallToken(b""), &mut data),
        1 => {
            let made_up = [random.word(); 5].map(u32::to_be_bytes);
            write_element(&Element::CallToken(made_up.as_flattened()), &mut data);
        }
        _ => {}
    }
    let new = Full {
        source: 1 + (random.word() & 0x3fff) as u16,
        dest: 0,
        again: false,
        timestamp: 0,
        oseq: 0,
        iseq: 0,
        kind: Kind::Iax(Command::NEW),
        data: &data,
    };
    frame.clear();
    new.write(frame);
}
