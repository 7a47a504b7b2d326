//! Where the scenarios happen: one machine, or two namespaces with a wire and a router between them.

use std::cell::Cell;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command as Program;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant as Wall};

use base::{Direction, DtmfMode, Event, FormatId, Latch, MAX_RX_PAYLOADS, Plan, RxPayload};
use io::media::{Interfaces, Io, IoWish, MediaFront, MediaSettings, PortRange};
use rtp::{Header, rtcp};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// How long a test waits for what must come; nothing waits that long unless it fails.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Pairs of ports of a test: few, so that they are leased again soon.
const PAIRS: u16 = 32;

pub struct World {
    pub name: &'static str,
    /// Where the PBX is.
    pub ip: IpAddr,
    pub ports: PortRange,
    /// Media threads ask for real-time priority.
    pub real_time: bool,
    /// Bridges may be relayed by the XDP program.
    pub kernel_relay: bool,
    /// What AF_XDP is tried on; nothing outside the namespaces of a test is touched.
    interface: &'static str,
    namespaces: Option<Namespaces>,
}

/// Two namespaces; gone with the value.
struct Namespaces {
    pbx: String,
    phones: String,
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in [&self.pbx, &self.phones] {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output =
        Program::new("ip").args(words).output().map_err(|error| format!("no program ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

/// An address of the loopback interface that hardly another process has: tests of two working copies may run side by side.
fn own_address() -> Ipv4Addr {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 44 + high % 200, low, 1)
}

/// Runs `work` in a thread that lives in the namespace; sockets and threads that it makes stay there.
fn inside<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    let file = File::open(Path::new("/run/netns").join(namespace)).unwrap();
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                work()
            })
            .join()
            .unwrap()
    })
}

impl World {
    pub fn loopback() -> Result<Self, String> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        // Tests of one process run side by side.
        let first = 26_000 + NEXT.fetch_add(1, Ordering::Relaxed) * 2 * PAIRS;
        let ports = PortRange { first, last: first + 2 * PAIRS - 1 };
        Ok(Self {
            name: "loopback",
            ip: IpAddr::V4(own_address()),
            ports,
            interface: "lo",
            real_time: false,
            kernel_relay: false,
            namespaces: None,
        })
    }
    /// A PBX at 10.44.0.1; phones at 10.44.0.2 on the same wire and, behind it as a router, at 198.51.100.1.
    pub fn veth(name: &str) -> Result<Self, String> {
        let id = std::process::id();
        let (pbx, phones) = (format!("sg{id}{name}a"), format!("sg{id}{name}b"));
        ip(&["netns", "add", &pbx])?;
        let namespaces = Namespaces { pbx, phones };
        let Namespaces { pbx, phones } = &namespaces;
        ip(&["netns", "add", phones])?;
        ip(&["link", "add", "v0", "netns", pbx, "type", "veth", "peer", "name", "v1", "netns", phones])?;
        for (namespace, device, addresses) in
            [(pbx, "v0", &["10.44.0.1/24"][..]), (phones, "v1", &["10.44.0.2/24", "198.51.100.1/32"])]
        {
            for address in addresses {
                ip(&["-n", namespace, "addr", "add", address, "dev", device])?;
            }
            for device in [device, "lo"] {
                ip(&["-n", namespace, "link", "set", device, "up"])?;
            }
        }
        ip(&["-n", pbx, "route", "add", "198.51.100.0/24", "via", "10.44.0.2"])?;
        let ports = PortRange { first: 26_000, last: 26_000 + 2 * PAIRS - 1 };
        let ip = IpAddr::V4(Ipv4Addr::new(10, 44, 0, 1));
        Ok(Self {
            name: "veth",
            ip,
            ports,
            interface: "v0",
            real_time: false,
            kernel_relay: false,
            namespaces: Some(namespaces),
        })
    }
    /// The PBX; an error when the back-end is not to be had here.
    pub fn front(&self, wish: IoWish, workers: usize) -> Result<MediaFront, String> {
        let names = [self.interface.to_owned()];
        let interfaces = Interfaces { names: &names, kernel_relay: self.kernel_relay };
        let io = Io::choose(wish, interfaces, Some(workers)).map_err(|why| why.to_string())?;
        assert_eq!(io.used(), wish);
        let mut draws = 0x1234_5678_9abc_def0_u64;
        let random = Box::new(move || {
            draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            draws
        });
        let ports = self.ports;
        let settings = MediaSettings {
            ports,
            io,
            real_time: self.real_time,
            tick_ms: None,
            lanes: Default::default(),
            random,
        };
        Ok(MediaFront::start(settings).unwrap().0)
    }
    /// Runs `work` where the phones live.
    pub fn inside_phones<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.namespaces {
            Some(namespaces) => inside(&namespaces.phones, work),
            None => work(),
        }
    }
    /// Runs `ip` with these words where the PBX lives; nowhere else.
    pub fn ip(&self, words: &[&str]) -> Result<(), String> {
        let namespaces = self.namespaces.as_ref().ok_or("no namespace of its own")?;
        ip(&[&["-n", &namespaces.pbx], words].concat())
    }
    /// Has bridges relayed by the XDP program. The phones' end of the wire takes frames that the program sends only when it
    /// collects what it receives (GRO), as the ends of containers may or may not.
    pub fn relay_in_kernel(&mut self) -> Result<(), String> {
        let namespaces = self.namespaces.as_ref().ok_or("no namespace of its own")?;
        ip(&["netns", "exec", &namespaces.phones, "ethtool", "-K", "v1", "gro", "on"])?;
        self.kernel_relay = true;
        Ok(())
    }
    /// Runs `work` where the PBX lives.
    pub fn inside(&self, work: impl FnOnce() + Send) {
        match &self.namespaces {
            Some(namespaces) => inside(&namespaces.pbx, work),
            None => work(),
        }
    }
    /// A phone: those of odd numbers live behind the router where there is one.
    pub fn phone(&self, number: usize) -> Phone {
        let socket = match &self.namespaces {
            None => UdpSocket::bind("127.0.0.1:0"),
            Some(namespaces) => inside(&namespaces.phones, || {
                UdpSocket::bind(if number.is_multiple_of(2) { "10.44.0.2:0" } else { "198.51.100.1:0" })
            }),
        };
        let socket = socket.unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Phone { to: socket.local_addr().unwrap(), socket, ssrc: 0xfeed, said: 0, from: Cell::new(None) }
    }
}

pub struct Phone {
    pub socket: UdpSocket,
    pub to: SocketAddr,
    pub ssrc: u32,
    said: u32,
    from: Cell<Option<SocketAddr>>,
}

impl Phone {
    /// A phone at an address of this namespace.
    pub fn bind(address: &str) -> std::io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { to: socket.local_addr()?, socket, ssrc: 0xfeed, said: 0, from: Cell::new(None) })
    }
    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }
    /// A packet with this payload, under this payload type.
    pub fn say_coded(&mut self, payload_type: u8, payload: &[u8]) {
        let header = Header { payload_type, ..self.header() };
        self.send(&[&rtp::write(&header)[..], payload].concat());
    }
    /// A packet of an event, all of which have one timestamp.
    pub fn say_event(&mut self, payload_type: u8, payload: &[u8]) {
        let header = Header { payload_type, timestamp: 1 << 20, ..self.header() };
        self.send(&[&rtp::write(&header)[..], payload].concat());
    }
    /// The next packet, whatever is in it.
    pub fn hear_coded(&self) -> (Header, Vec<u8>) {
        let mut buffer = [0; 8192];
        let length = self.receive(&mut buffer);
        let (header, payload) = rtp::parse(&buffer[..length]).unwrap();
        (header, buffer[payload].to_vec())
    }
    pub fn send(&self, bytes: &[u8]) {
        // A port that nobody has may answer so, and the next call is told.
        let _ = self.socket.send_to(bytes, self.to);
    }
    /// The header of the next packet, with a number that no other has.
    pub fn header(&mut self) -> Header {
        let header = Header {
            payload_type: 0,
            marker: false,
            sequence: self.said as u16,
            timestamp: self.said.wrapping_mul(160),
            ssrc: self.ssrc,
        };
        self.said = self.said.wrapping_add(1);
        header
    }
    /// Packets that are lost before they are sent.
    pub fn skip(&mut self, packets: u32) {
        self.said = self.said.wrapping_add(packets);
    }
    pub fn say(&mut self, byte: u8) {
        self.say_long(byte, 160);
    }
    /// A packet of so many bytes of payload.
    pub fn say_long(&mut self, byte: u8, length: usize) {
        self.say_coded(0, &vec![byte; length]);
    }
    fn receive(&self, buffer: &mut [u8]) -> usize {
        let (length, from) = patiently(|| self.socket.recv_from(buffer)).unwrap();
        self.from.set(Some(from));
        length
    }
    /// The next packet: its header and the first byte of its payload, of which all are alike.
    pub fn hear(&self) -> (Header, u8) {
        let mut buffer = [0; 8192];
        let length = self.receive(&mut buffer);
        let (header, payload) = rtp::parse(&buffer[..length]).unwrap();
        let payload = &buffer[payload];
        assert!(payload.iter().all(|byte| *byte == payload[0]));
        (header, payload[0])
    }
    /// Who sent what was heard last.
    pub fn last_from(&self) -> Option<SocketAddr> {
        self.from.get()
    }
    pub fn heard_nothing(&mut self) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let nothing = self.socket.recv_from(&mut [0; 1500]).is_err();
        self.socket.set_nonblocking(false).unwrap();
        nothing
    }
    /// The parts of the next RTCP compound.
    pub fn hear_report(&self) -> Vec<&'static str> {
        let mut buffer = [0; 1500];
        let length = self.receive(&mut buffer);
        let parts = rtcp::Compound::parse(&buffer[..length]).unwrap();
        parts
            .map(|part| match part {
                rtcp::Packet::Report { sender: Some(_), .. } => "sender report",
                rtcp::Packet::Report { .. } => "receiver report",
                rtcp::Packet::Bye(_) => "bye",
                rtcp::Packet::Feedback(_) => "feedback",
                rtcp::Packet::Other(_) => "other",
            })
            .collect()
    }
    /// A receiver report (RFC 3550 §6.4.2) on `ssrc`, of so many packets lost.
    pub fn report_loss(&self, to: SocketAddr, ssrc: u32, lost: u8) {
        let mut report = vec![0x81, 201, 0, 7, 0, 0, 0xfe, 0xed];
        report.extend(ssrc.to_be_bytes());
        report.extend([0, 0, 0, lost]);
        report.resize(32, 0);
        self.socket.send_to(&report, to).unwrap();
    }
}

pub fn plan(remote: Option<SocketAddr>) -> Plan {
    let mut rx = [None; MAX_RX_PAYLOADS];
    rx[0] = Some(RxPayload::Audio(0, FormatId::ULAW));
    Plan {
        remote,
        remote_rtcp: None,
        latch: Latch::Strict,
        relearn: false,
        format: FormatId::ULAW,
        payload: 0,
        ptime_ms: 20,
        wishes: base::Wishes::default(),
        rx,
        dtmf: DtmfMode::Signalling,
        direction: Direction::SendRecv,
        ssrc: 7,
        first_sequence: 1,
        first_timestamp: 1,
        jitter_max_ms: 200,
        rtcp_interval_ms: 0,
        rtp_timeout_ms: 0,
        keepalive_ms: 0,
        marking: base::Marking { tos: 0xb8, priority: 5 },
        keys: None,
        picture: base::PictureRequest::default(),
    }
}

/// Does it again when a signal interrupts it, as one that stops the process and lets it go on does.
pub fn patiently<T>(mut receive: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    loop {
        match receive() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Drains events until one satisfies `wanted`; returns all of them.
pub fn await_event(front: &mut MediaFront, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
    let give_up = Wall::now() + PATIENCE;
    let mut seen = Vec::new();
    while !seen.iter().any(&wanted) {
        assert!(Wall::now() < give_up, "{seen:?}");
        front.drain_events(|event| seen.push(event));
        std::thread::yield_now();
    }
    seen
}
