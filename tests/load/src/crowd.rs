//! Connections that say nothing, or a byte now and then, and come again when they are thrown out.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

/// Connections from one address: what the program lets one source have.
const PER_SOURCE: usize = 32;
/// What those that trickle say, a byte at a time: the beginning of a handshake.
const HELLO: &[u8] = &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];

/// A crowd; it goes when this goes.
#[derive(Debug)]
pub struct Crowd {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

struct Seat {
    stream: Option<TcpStream>,
    said: usize,
}

impl Crowd {
    /// Holds `size` connections to the servers in turn; every second one trickles.
    pub fn start(servers: Vec<SocketAddr>, size: usize) -> Self {
        let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let thread = std::thread::spawn({
            let (stop, rounds) = (stop.clone(), rounds.clone());
            move || {
                let mut seats: Vec<Seat> = (0..size).map(|_| Seat { stream: None, said: 0 }).collect();
                while !stop.load(Relaxed) {
                    for (number, seat) in seats.iter_mut().enumerate() {
                        seat.turn(number, servers[number % servers.len()]);
                    }
                    rounds.fetch_add(1, Relaxed);
                    // A crowd that shoves without a pause would measure this machine's processors.
                    std::thread::sleep(std::time::Duration::from_millis(200));
                }
            }
        });
        let crowd = Self { stop, rounds, thread: Some(thread) };
        while crowd.rounds.load(Relaxed) == 0 {
            std::thread::yield_now();
        }
        crowd
    }
}

impl Seat {
    fn turn(&mut self, number: usize, server: SocketAddr) {
        let gone = match &mut self.stream {
            Some(stream) => {
                matches!(stream.read(&mut [0; 64]), Ok(0))
                    || matches!(stream.take_error(), Ok(Some(_)) | Err(_))
            }
            None => true,
        };
        if gone {
            (self.stream, self.said) = (open(number / PER_SOURCE, server), 0);
        } else if let (0, Some(stream)) = (number % 2, &mut self.stream) {
            let byte = HELLO.get(self.said).copied().unwrap_or(0);
            // A full or broken connection is seen in the next turn.
            self.said += usize::from(stream.write(&[byte]).is_ok());
        }
    }
}

/// A connection under way from one of the many addresses of loopback.
fn open(source: usize, server: SocketAddr) -> Option<TcpStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).ok()?;
    let ip = Ipv4Addr::new(127, 200, (source / 250) as u8, (source % 250 + 1) as u8);
    bind(&socket, &SocketAddr::V4(SocketAddrV4::new(ip, 0))).ok()?;
    match connect(&socket, &server) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Some(TcpStream::from(socket)),
        Err(_) => None,
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            assert!(joined.is_ok() || std::thread::panicking(), "the crowd has panicked");
        }
    }
}
