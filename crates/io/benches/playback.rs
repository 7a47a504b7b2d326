//! What a call in Playback and a relayed packet cost, on the loopback interface.
//!
//! `cargo bench -p io --bench playback` writes `media_playback_500.json` and `media_relay_packet.json` to
//! `$STROWGER_BENCH_DIR`, by default `target/bench` of the workspace. The worker's time is its thread's CPU clock; the
//! baselines run in this same process, one thread a call as telephony servers of the last decades do.

mod common;
#[path = "common/talk.rs"]
mod talk;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant as Wall};

use base::{
    Clip, Command, Direction, DtmfMode, Event, FormatId, Latch, MAX_RX_PAYLOADS, Plan, PlayId, RxPayload,
    StreamId,
};
use io::media::{MediaFront, MediaSettings, PortRange, thread_cpu};
use rtp::Header;

use common::poll_two;
use talk::Talk;

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Calls in Playback.
const PLAYERS: u32 = 500;
/// Bridged calls in the relay measurement: 200 legs, 10,000 packets a second.
const RELAYS: u32 = 100;
/// How long our own side is measured, and how long a baseline.
const MEASURED: Duration = Duration::from_secs(6);
const BASELINE: Duration = Duration::from_secs(3);
/// Warm-up before either: sockets, caches, the worker's choice of tick.
const WARM_UP: Duration = Duration::from_millis(1500);

fn main() {
    // Two sockets a call and the phones' own; a refusal shows up as an error of the first socket too many.
    let _ = io::process::raise_file_limit();
    playback();
    relay();
}

/// Resident memory of this process, bytes.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0
}

fn playback() {
    let sink = UdpSocket::bind((LOCAL, 0)).expect("a loopback socket");
    let to = sink.local_addr().expect("an address");
    let drain = Drain::start(sink.try_clone().expect("a second handle"));
    let mut front = start();
    let data: Vec<u8> = (0..160_000_u32).map(|n| (n * 7 + n / 160) as u8).collect();
    let clip =
        Arc::new(Clip { format: FormatId::ULAW, data: data.into(), loop_from: Some(0), packets: None });
    let before = resident();
    for number in 0..PLAYERS {
        let (stream, _) = front.open(LOCAL, plan(number, to)).expect("a free port");
        front.command(Command::Play { stream, play: PlayId(number), clip: clip.clone(), offset: 0 });
    }
    let (seconds, cpu, sent, _) = measure(&mut front, MEASURED);
    let packets = f64::from(PLAYERS) * 50.0 * seconds;
    assert!((sent as f64) > packets * 0.98, "{sent} packets of {packets:.0}: the worker could not keep up");
    let value = cpu / seconds / f64::from(PLAYERS) * 100.0;
    println!(
        "playback: {sent} packets in {seconds:.2} s, {:.2} us each, {value:.4} % of a core a call, {} late ticks",
        cpu * 1e6 / sent as f64,
        front.loads().total().late_ticks
    );
    println!("memory: {:.0} bytes a stream resident", (resident() - before) / f64::from(PLAYERS));
    drop(front);
    let (baseline, kept) = thread_per_player(to);
    println!("baseline: {baseline:.4} % of a core a call, {:.0} % of its packets sent", kept * 100.0);
    drain.stop();
    write(
        "media_playback_500",
        value,
        "percent of a core per call",
        baseline,
        "thread per stream, sleep and sendto",
    );
}

/// One thread a stream; returns percent of a core a call and the share of packets that it managed to send.
fn thread_per_player(to: SocketAddr) -> (f64, f64) {
    let (stop, nanos, sent) = shared();
    let begin = Wall::now();
    let threads: Vec<_> = (0..PLAYERS)
        .map(|number| {
            let (stop, nanos, sent) = (stop.clone(), nanos.clone(), sent.clone());
            small_thread(move || {
                let socket = UdpSocket::bind((LOCAL, 0)).expect("a loopback socket");
                let mut packet = [0_u8; 172];
                let mut header = Header { ssrc: number, ..Header::default() };
                let before = thread_cpu();
                let mut due = Wall::now() + Duration::from_micros(u64::from(number) * 40);
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(due.saturating_duration_since(Wall::now()));
                    due += Duration::from_millis(20);
                    header.sequence = header.sequence.wrapping_add(1);
                    header.timestamp = header.timestamp.wrapping_add(160);
                    packet[..12].copy_from_slice(&rtp::write(&header));
                    socket.send_to(&packet, to).expect("a loopback send");
                    sent.fetch_add(1, Ordering::Relaxed);
                }
                nanos.fetch_add((thread_cpu() - before).as_nanos() as u64, Ordering::Relaxed);
            })
        })
        .collect();
    let (seconds, cpu, packets) = finish(begin, &stop, threads, &nanos, &sent);
    let due = f64::from(PLAYERS) * 50.0 * seconds;
    (cpu / seconds / f64::from(PLAYERS) * 100.0, packets / due)
}

fn relay() {
    let mut front = start();
    let phones: Vec<UdpSocket> =
        (0..2 * RELAYS).map(|_| UdpSocket::bind((LOCAL, 0)).expect("a loopback socket")).collect();
    let mut targets = Vec::new();
    let mut streams: Vec<StreamId> = Vec::new();
    for (number, phone) in phones.iter().enumerate() {
        let address = phone.local_addr().expect("an address");
        let (stream, port) = front.open(LOCAL, plan(number as u32, address)).expect("a free port");
        streams.push(stream);
        targets.push(SocketAddr::new(LOCAL, port));
    }
    for pair in streams.chunks_exact(2) {
        front.command(Command::Join { a: pair[0], b: pair[1] });
    }
    let talk = talk(&phones, targets);
    let (seconds, cpu, sent, received) = measure(&mut front, MEASURED);
    let value = cpu * 1e6 / sent as f64;
    println!("relay: {received} received, {sent} sent in {seconds:.2} s, {value:.2} us a packet");
    assert!(sent * 100 >= received * 98, "{sent} of {received} packets were relayed");
    talk.stop();
    drop(front);
    let (baseline, rate) = thread_per_relay(&phones);
    println!("baseline: {baseline:.2} us a packet at {rate:.0} packets a second");
    write(
        "media_relay_packet",
        value,
        "us per relayed packet",
        baseline,
        "thread per call, poll, recvfrom and sendto",
    );
}

/// One thread a call with two sockets, as Asterisk has it; returns microseconds a packet and packets a second.
fn thread_per_relay(phones: &[UdpSocket]) -> (f64, f64) {
    let (stop, nanos, sent) = shared();
    let begin = Wall::now();
    let mut targets = Vec::new();
    let mut threads = Vec::new();
    for pair in phones.chunks_exact(2) {
        let legs = [0, 1].map(|_| UdpSocket::bind((LOCAL, 0)).expect("a loopback socket"));
        targets.extend(legs.iter().map(|leg| leg.local_addr().expect("an address")));
        let peers = [0, 1].map(|n: usize| pair[n].local_addr().expect("an address"));
        let (stop, nanos, sent) = (stop.clone(), nanos.clone(), sent.clone());
        threads.push(small_thread(move || {
            let before = thread_cpu();
            let mut buffer = [0; 2048];
            while !stop.load(Ordering::Relaxed) {
                for ready in poll_two(&legs) {
                    let Ok((length, _)) = legs[ready].recv_from(&mut buffer) else { continue };
                    if legs[1 - ready].send_to(&buffer[..length], peers[1 - ready]).is_ok() {
                        sent.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            nanos.fetch_add((thread_cpu() - before).as_nanos() as u64, Ordering::Relaxed);
        }));
    }
    let talk = talk(phones, targets);
    let (seconds, cpu, packets) = finish(begin, &stop, threads, &nanos, &sent);
    talk.stop();
    (cpu * 1e6 / packets, packets / seconds)
}

/// Phones on a socket each.
fn talk(phones: &[UdpSocket], targets: Vec<SocketAddr>) -> Talk {
    let phones: Vec<UdpSocket> = phones.iter().map(|p| p.try_clone().expect("a second handle")).collect();
    Talk::start(targets, move |number, packet, to| {
        phones[number].send_to(packet, to).expect("a loopback send");
        true
    })
}

/// Reads and forgets, so that the sink's buffer is neither always full nor always empty.
struct Drain {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Drain {
    fn start(sink: UdpSocket) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        sink.set_nonblocking(true).expect("a non-blocking socket");
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !stopped.load(Ordering::Relaxed) {
                while sink.recv(&mut buffer).is_ok() {}
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Self { stop, thread }
    }
    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the sink ends");
    }
}

type Shared = (Arc<AtomicBool>, Arc<AtomicU64>, Arc<AtomicU64>);

fn shared() -> Shared {
    Default::default()
}

fn small_thread(body: impl FnOnce() + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::Builder::new().stack_size(64 * 1024).spawn(body).expect("a thread")
}

/// Lets the threads of a baseline run; returns seconds, CPU seconds and packets.
fn finish(
    begin: Wall,
    stop: &AtomicBool,
    threads: Vec<std::thread::JoinHandle<()>>,
    nanos: &AtomicU64,
    sent: &AtomicU64,
) -> (f64, f64, f64) {
    std::thread::sleep(BASELINE);
    stop.store(true, Ordering::Relaxed);
    let seconds = begin.elapsed().as_secs_f64();
    for thread in threads {
        thread.join().expect("a baseline thread ends");
    }
    (seconds, nanos.load(Ordering::Relaxed) as f64 / 1e9, sent.load(Ordering::Relaxed) as f64)
}

/// Warms up, then lets `time` pass; returns seconds, the worker's CPU seconds, packets sent and received.
fn measure(front: &mut MediaFront, time: Duration) -> (f64, f64, u64, u64) {
    let loads = front.loads();
    std::thread::sleep(WARM_UP);
    let (first, begin) = (loads.total(), Wall::now());
    std::thread::sleep(time);
    let (last, seconds) = (loads.total(), begin.elapsed().as_secs_f64());
    front.drain_events(|event| assert!(matches!(event, Event::Latched { .. }), "{event:?}"));
    let cpu = (last.cpu_nanos - first.cpu_nanos) as f64 / 1e9;
    (seconds, cpu, last.sent - first.sent, last.received - first.received)
}

fn start() -> MediaFront {
    let mut draws = 1_u64;
    let random = Box::new(move || {
        draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        draws
    });
    let settings = MediaSettings {
        ports: PortRange { first: 20_000, last: 29_999 },
        io: io::media::Io::sockets(Some(1)),
        real_time: true,
        tick_ms: None,
        lanes: Default::default(),
        random,
    };
    let (front, warnings) = MediaFront::start(settings).expect("the media plane starts");
    for warning in warnings {
        println!("warning: {}", warning.0);
    }
    front
}

fn plan(number: u32, remote: SocketAddr) -> Plan {
    let mut rx = [None; MAX_RX_PAYLOADS];
    rx[0] = Some(RxPayload::Audio(0, FormatId::ULAW));
    Plan {
        remote: Some(remote),
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
        ssrc: number,
        first_sequence: 1,
        first_timestamp: 1,
        jitter_max_ms: 200,
        rtcp_interval_ms: 0,
        rtp_timeout_ms: 0,
        keepalive_ms: 0,
        marking: base::Marking::default(),
        keys: None,
        picture: base::PictureRequest::default(),
    }
}

fn write(name: &str, value: f64, unit: &str, baseline: f64, baseline_name: &str) {
    let folder = std::env::var_os("STROWGER_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/bench"), PathBuf::from);
    std::fs::create_dir_all(&folder).expect("a folder for the figures");
    let mut file =
        std::fs::File::create(folder.join(format!("{name}.json"))).expect("a file for the figures");
    let ratio = baseline / value;
    writeln!(
        file,
        "{{\"name\": \"{name}\", \"value\": {value:.5}, \"unit\": \"{unit}\", \"baseline\": {baseline:.5}, \
         \"baseline_name\": \"{baseline_name}\", \"ratio\": {ratio:.2}}}"
    )
    .expect("the figures are written");
}
