//! The media plane on real sockets of the loopback interface.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant as Wall};

use base::{
    Clip, Command, Direction, DtmfMode, Event, Fault, FormatId, Latch, MAX_RX_PAYLOADS, Plan, PlayEnd,
    PlayId, RxPayload, StreamId,
};
use io::media::{Interfaces, Io, IoWish, MediaFront, MediaSettings, OpenError, PortRange, StartError};
use rtp::{Header, rtcp};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// How long a test waits for what must come; nothing sleeps that long unless it fails.
const PATIENCE: Duration = Duration::from_secs(60);

fn front(first: u16, last: u16, workers: usize) -> MediaFront {
    start(first, last, workers, None)
}

fn ticking(first: u16, last: u16, tick_ms: Option<u8>) -> MediaFront {
    start(first, last, 1, tick_ms)
}

/// How sockets are looked into: by `epoll`, and once more by io_uring in the tests of that name.
fn sockets(workers: usize) -> Io {
    if env!("CARGO_CRATE_NAME") != "media_uring" {
        return Io::sockets(Some(workers));
    }
    Io::choose(IoWish::Uring, Interfaces::default(), Some(workers)).unwrap_or_else(|why| {
        println!("skipped: {why}; {}", why.remedy());
        Io::sockets(Some(workers))
    })
}

fn start(first: u16, last: u16, workers: usize, tick_ms: Option<u8>) -> MediaFront {
    let mut draws = 0x1234_5678_9abc_def0_u64;
    let random = Box::new(move || {
        draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        draws
    });
    let ports = PortRange { first, last };
    let settings = MediaSettings {
        ports,
        io: sockets(workers),
        real_time: false,
        tick_ms,
        lanes: Default::default(),
        random,
    };
    MediaFront::start(settings).unwrap().0
}

fn plan(remote: Option<SocketAddr>) -> Plan {
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
        marking: base::Marking::default(),
        keys: None,
        picture: base::PictureRequest::default(),
    }
}

struct Phone {
    socket: UdpSocket,
    to: SocketAddr,
    sequence: u16,
}

impl Phone {
    fn new(ip: IpAddr) -> Self {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { to: socket.local_addr().unwrap(), socket, sequence: 0 }
    }
    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }
    fn say(&mut self, byte: u8) {
        let header = Header {
            payload_type: 0,
            marker: false,
            sequence: self.sequence,
            timestamp: u32::from(self.sequence) * 160,
            ssrc: 0xfeed,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let packet = [&rtp::write(&header)[..], &[byte; 160]].concat();
        self.socket.send_to(&packet, self.to).unwrap();
    }
    fn hear(&self) -> (Header, u8) {
        let mut buffer = [0; 2048];
        let length = patiently(|| self.socket.recv(&mut buffer)).unwrap();
        let (header, payload) = rtp::parse(&buffer[..length]).unwrap();
        (header, buffer[payload.start])
    }
}

/// Does it again when a signal interrupts it, as one that stops the process and lets it go on does.
fn patiently<T>(mut receive: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    loop {
        match receive() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Drains events until one satisfies `wanted`; returns all of them.
fn await_event(front: &mut MediaFront, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
    let give_up = Wall::now() + PATIENCE;
    let mut seen = Vec::new();
    while !seen.iter().any(&wanted) {
        assert!(Wall::now() < give_up, "{seen:?}");
        front.drain_events(|event| seen.push(event));
        std::thread::yield_now();
    }
    seen
}
fn open(front: &mut MediaFront, phone: &mut Phone) -> StreamId {
    let (stream, port) = front.open(phone.address().ip(), plan(Some(phone.address()))).unwrap();
    phone.to = SocketAddr::new(phone.address().ip(), port);
    stream
}

#[test]
fn two_phones_talk_through_relay_in_both_address_families_and_a_stranger_is_not_heard() {
    for ip in [LOCAL, IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        if UdpSocket::bind((ip, 0)).is_err() {
            println!("skipped: no {ip} here");
            continue;
        }
        let mut front = front(24_000, 24_099, 1);
        let (mut alice, mut bob, mut thief) = (Phone::new(ip), Phone::new(ip), Phone::new(ip));
        let (a, b) = (open(&mut front, &mut alice), open(&mut front, &mut bob));
        assert_eq!((front.streams(), front.ports().leased()), (2, 2));
        front.command(Command::Join { a, b });
        thief.to = alice.to;
        for byte in 1..20 {
            thief.say(66);
            alice.say(byte);
            assert_eq!(bob.hear().1, byte);
            bob.say(byte + 100);
            assert_eq!(alice.hear().1, byte + 100);
        }
        front.command(Command::Stats { stream: a });
        let events = await_event(&mut front, |event| matches!(event, Event::Stats { .. }));
        assert!(events.contains(&Event::Latched { stream: a, remote: alice.address() }));
        let Some(Event::Stats { stats, .. }) = events.last() else { panic!("{events:?}") };
        assert_eq!((stats.received_packets, stats.sent_packets, stats.lost_packets), (19, 19, 0));
        for stream in [a, b] {
            front.command(Command::Close { stream });
        }
        await_event(&mut front, |event| matches!(event, Event::Closed { stream, .. } if *stream == b));
        assert_eq!((front.streams(), front.ports().leased()), (0, 0));
    }
}

#[test]
fn a_prompt_plays_at_20_ms_and_ends_with_an_event_and_close_says_bye() {
    let mut front = front(24_100, 24_199, 1);
    let mut alice = Phone::new(LOCAL);
    let control = Phone::new(LOCAL);
    let mut with_rtcp = plan(Some(alice.address()));
    (with_rtcp.remote_rtcp, with_rtcp.rtcp_interval_ms) = (Some(control.address()), 5000);
    let (stream, port) = front.open(LOCAL, with_rtcp).unwrap();
    alice.to.set_port(port);
    let data: Vec<u8> = (0..25).flat_map(|n| [n; 160]).collect();
    let clip = std::sync::Arc::new(Clip {
        format: FormatId::ULAW,
        data: data.into(),
        loop_from: None,
        packets: None,
    });
    let begin = Wall::now();
    front.command(Command::Play { stream, play: PlayId(9), clip, offset: 0 });
    let heard: Vec<_> = (0..25).map(|_| alice.hear()).collect();
    assert!(begin.elapsed() >= Duration::from_millis(460), "{:?}", begin.elapsed());
    assert!(
        heard
            .iter()
            .enumerate()
            .all(|(n, (header, byte))| { usize::from(*byte) == n && usize::from(header.sequence) == n + 1 })
    );
    let played = Event::Played { stream, play: PlayId(9), end: PlayEnd::Finished, offset: 4000 };
    await_event(&mut front, |event| *event == played);
    front.command(Command::Close { stream });
    let mut buffer = [0; 256];
    let (length, from) = patiently(|| control.socket.recv_from(&mut buffer)).unwrap();
    assert_eq!(from.port(), port + 1, "reports leave from the port above");
    let parts: Vec<_> = rtcp::Compound::parse(&buffer[..length]).unwrap().collect();
    assert!(matches!(parts.last(), Some(rtcp::Packet::Bye(_))), "{parts:?}");
}

#[test]
fn a_join_across_workers_moves_one_leg_to_the_other_and_orders_what_follows() {
    let mut front = front(24_200, 24_399, 3);
    let mut phones: Vec<Phone> = (0..12).map(|_| Phone::new(LOCAL)).collect();
    let streams: Vec<_> = phones.iter_mut().map(|phone| open(&mut front, phone)).collect();
    // Every pair, one after the other, without waiting for the moves: commands for moving streams are held in order.
    for n in 0..streams.len() {
        for m in 0..n {
            front.command(Command::Join { a: streams[n], b: streams[m] });
        }
    }
    for pair in streams.chunks(2) {
        front.command(Command::Join { a: pair[0], b: pair[1] });
        front.command(Command::Stats { stream: pair[1] });
    }
    let mut asked = streams.len() / 2;
    let give_up = Wall::now() + PATIENCE;
    while asked > 0 {
        assert!(Wall::now() < give_up);
        front.drain_events(|event| asked -= usize::from(matches!(event, Event::Stats { .. })));
        std::thread::yield_now();
    }
    for pair in phones.chunks_mut(2) {
        let [one, other] = pair else { continue };
        for byte in 0..5 {
            one.say(byte);
            assert_eq!(other.hear().1, byte);
            other.say(byte);
            assert_eq!(one.hear().1, byte);
        }
    }
    // A Local channel whose halves and legs are born on different workers comes together as well.
    let (x, y) = (front.open_internal(plan(None)).unwrap(), front.open_internal(plan(None)).unwrap());
    front.command(Command::Tie { a: x, b: y });
    front.command(Command::Join { a: streams[0], b: x });
    front.command(Command::Join { a: y, b: streams[5] });
    front.command(Command::Stats { stream: y });
    await_event(&mut front, |event| matches!(event, Event::Stats { stream, .. } if *stream == y));
    phones[0].say(77);
    assert_eq!(phones[5].hear().1, 77);
    let panics = front.loads().total().panics;
    assert_eq!(panics, 0);
}

#[test]
fn an_injected_panic_ends_one_stream_and_its_ports_come_back() {
    let mut front = front(24_400, 24_499, 1);
    let (mut alice, mut bob) = (Phone::new(LOCAL), Phone::new(LOCAL));
    let (a, b) = (open(&mut front, &mut alice), open(&mut front, &mut bob));
    front.command(Command::Echo { stream: b, on: true });
    front.inject_panic(a);
    await_event(
        &mut front,
        |event| matches!(event, Event::Closed { stream, fault: Some(Fault::Panicked), .. } if *stream == a),
    );
    assert_eq!((front.streams(), front.ports().leased()), (1, 1));
    bob.say(5);
    assert_eq!(bob.hear().1, 5);
}

#[test]
fn an_exhausted_range_and_an_impossible_one_are_explained() {
    let mut small = front(24_500, 24_503, 1);
    let phone = Phone::new(LOCAL);
    let leases: Vec<_> = (0..2).map(|_| small.open(LOCAL, plan(Some(phone.address()))).unwrap()).collect();
    assert_ne!(leases[0].1, leases[1].1);
    let error = small.open(LOCAL, plan(None)).unwrap_err();
    assert!(matches!(error, OpenError::NoPort { first: 24_500, last: 24_503, leased: 2, .. }), "{error}");
    assert!(error.to_string().contains("24500 and 24503") && error.remedy().contains("rtpend"), "{error}");
    // One that is closed makes room again.
    small.command(Command::Close { stream: leases[0].0 });
    await_event(&mut small, |event| matches!(event, Event::Closed { .. }));
    small.open(LOCAL, plan(None)).unwrap();
    let elsewhere = "192.0.2.77".parse().unwrap();
    let error = small.open(elsewhere, plan(None)).unwrap_err();
    assert!(matches!(error, OpenError::NoPort { .. } | OpenError::Bind { .. }));
    let none = MediaSettings {
        ports: PortRange { first: 9, last: 9 },
        io: Io::sockets(None),
        real_time: false,
        tick_ms: None,
        lanes: Default::default(),
        random: Box::new(|| 0),
    };
    assert!(matches!(MediaFront::start(none), Err(StartError::NoPorts { .. })));
}

#[test]
fn hundreds_of_streams_open_play_and_close_without_leaving_a_port_or_an_event_behind() {
    let mut front = front(25_000, 28_999, 1);
    let sink = Phone::new(LOCAL);
    let clip = std::sync::Arc::new(Clip {
        format: FormatId::ULAW,
        data: vec![1; 480].into(),
        loop_from: None,
        packets: None,
    });
    let mut ends = 0;
    for round in 0..2 {
        let streams: Vec<_> =
            (0..300).map(|_| front.open(LOCAL, plan(Some(sink.address()))).unwrap().0).collect();
        for &stream in &streams {
            front.command(Command::Play { stream, play: PlayId(round), clip: clip.clone(), offset: 0 });
        }
        let (mut played, mut closed) = (0, 0);
        let give_up = Wall::now() + PATIENCE;
        while closed < streams.len() {
            assert!(Wall::now() < give_up, "{played} played, {closed} closed");
            let mut finished = Vec::new();
            front.drain_events(|event| match event {
                Event::Played { stream, .. } => finished.push(stream),
                Event::Closed { .. } => closed += 1,
                _ => {}
            });
            played += finished.len();
            for stream in finished {
                front.command(Command::Close { stream });
            }
            std::thread::yield_now();
        }
        ends += played;
        assert_eq!((front.streams(), front.ports().leased()), (0, 0));
    }
    assert_eq!(ends, 600);
}

#[test]
fn a_worker_without_streams_does_not_wake_and_one_with_streams_ticks() {
    let mut front = front(24_600, 24_699, 1);
    let mut alice = Phone::new(LOCAL);
    let stream = open(&mut front, &mut alice);
    front.command(Command::Echo { stream, on: true });
    for byte in 0..10 {
        alice.say(byte);
        assert_eq!(alice.hear().1, byte);
    }
    front.command(Command::Close { stream });
    await_event(&mut front, |event| matches!(event, Event::Closed { .. }));
    // The counters are stored before each sleep without an end, and now and then before that: those of a worker that
    // sleeps stand still, though a phone goes on talking to the closed port.
    let loads = front.loads();
    let give_up = Wall::now() + PATIENCE;
    loop {
        let before = loads.total();
        let until = Wall::now() + Duration::from_millis(200);
        while Wall::now() < until {
            alice.say(1);
            std::thread::yield_now();
        }
        let after = loads.total();
        let told = |load: &io::media::WorkerLoad| (load.ticks, load.cpu_nanos);
        if before.streams == 0 && before.ticks > 0 && told(&before) == told(&after) {
            break;
        }
        assert!(Wall::now() < give_up, "it wakes again and again: {before:?} {after:?}");
    }
}

#[test]
fn packets_carry_the_mark_that_the_plan_asks_for() {
    use std::os::fd::AsRawFd as _;
    let mut front = front(24_900, 24_999, 1);
    let receiver = UdpSocket::bind((LOCAL, 0)).unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let on: libc::c_int = 1;
    let size = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap();
    // SAFETY: pointer and length describe `on`, which outlives the call.
    let asked = unsafe {
        libc::setsockopt(
            receiver.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_RECVTOS,
            (&raw const on).cast(),
            size,
        )
    };
    assert_eq!(asked, 0);
    let mut plan = plan(Some(receiver.local_addr().unwrap()));
    plan.marking = base::Marking { tos: 0xb8, priority: 5 };
    plan.keepalive_ms = 20;
    let (stream, _) = front.open(LOCAL, plan).unwrap();
    assert_eq!(tos_of_next(&receiver), 0xb8);
    front.command(Command::Close { stream });
}

/// Takes one datagram and says what its IP header was marked with.
fn tos_of_next(socket: &UdpSocket) -> u8 {
    use std::os::fd::AsRawFd as _;
    let (mut bytes, mut control) = ([0_u8; 2048], [0_u64; 16]);
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: all-zero bytes are a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the message's pointers and lengths describe `bytes` and `control`, which outlive the call.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    assert!(received > 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the kernel filled the control room, whose first header is read; the datum of IP_TOS is one byte.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        assert!(!header.is_null() && (*header).cmsg_type == libc::IP_TOS);
        *libc::CMSG_DATA(header)
    }
}

#[test]
fn members_of_a_room_gather_on_one_worker_wherever_they_were_and_hear_each_other() {
    use base::{MemberSettings, RoomId, RoomSettings};

    let mut front = front(24_700, 24_799, 3);
    let mut phones: Vec<Phone> = (0..6).map(|_| Phone::new(LOCAL)).collect();
    let streams: Vec<_> = phones.iter_mut().map(|phone| open(&mut front, phone)).collect();
    // The first two rooms have three members each; then everyone goes to the third.
    let enter = |front: &mut MediaFront, stream, room| {
        let (mixing, member) = (RoomSettings::default(), MemberSettings::default());
        front.command(Command::Enter { stream, room: RoomId::new(room, 1), mixing, member });
    };
    for (n, stream) in streams.iter().enumerate() {
        enter(&mut front, *stream, n as u32 % 2);
    }
    for stream in &streams {
        enter(&mut front, *stream, 2);
    }
    // µ-law of +/- 132 and of 0: everyone says 132, and hears five times that.
    const SAID: u8 = 0xef;
    let give_up = Wall::now() + PATIENCE;
    let mut content = [false; 6];
    while content != [true; 6] {
        assert!(Wall::now() < give_up, "{content:?}");
        phones.iter_mut().for_each(|phone| phone.say(SAID));
        let next = Wall::now() + Duration::from_millis(20);
        while Wall::now() < next {
            // Who moves between workers passes through here.
            front.drain_events(|event| assert!(!matches!(event, Event::Closed { .. }), "{event:?}"));
            for (phone, content) in phones.iter().zip(&mut content) {
                phone.socket.set_nonblocking(true).unwrap();
                let mut packet = [0; 200];
                let Ok(length) = phone.socket.recv(&mut packet) else { continue };
                let mut linear = [0];
                codec::Decoder::new(FormatId::ULAW).decode(&packet[length - 1..length], &mut linear);
                *content |= (linear[0] - 5 * 132).abs() < 40; // as near as µ-law gets
            }
            std::thread::yield_now();
        }
    }
    // Ties drag whole rooms along, and neither ends.
    let halves = [0, 1].map(|_| front.open_internal(plan(None)).unwrap());
    enter(&mut front, halves[0], 2);
    enter(&mut front, halves[1], 3);
    front.command(Command::Tie { a: halves[0], b: halves[1] });
    for stream in streams.iter().chain(&halves) {
        front.command(Command::Close { stream: *stream });
    }
    let mut closed = 0;
    while closed < 8 {
        assert!(Wall::now() < give_up, "{closed} closed");
        front.drain_events(|event| closed += usize::from(matches!(event, Event::Closed { .. })));
        std::thread::yield_now();
    }
    assert_eq!(front.streams(), 0);
}

#[test]
fn a_worker_tells_where_its_time_went_and_how_late_its_ticks_were() {
    use io::media::Phase;

    let mut front = front(26_300, 26_310, 1);
    let phone = Phone::new(LOCAL);
    let (stream, _) = front.open(LOCAL, plan(Some(phone.address()))).unwrap();
    let clip = Arc::new(Clip {
        format: FormatId::ULAW,
        data: vec![7; 800_000].into(),
        loop_from: None,
        packets: None,
    });
    front.command(Command::Play { stream, play: PlayId(1), clip, offset: 0 });
    let mut buffer = [0; 512];
    let loads = front.loads();
    let until = Wall::now() + PATIENCE;
    let sight = loop {
        patiently(|| phone.socket.recv(&mut buffer)).unwrap();
        let sight = loads.sights(io::clock::Clock.now()).next().unwrap();
        if sight.phases[Phase::Send as usize] > 0 && sight.recent.iter().any(|share| *share > 0) {
            break sight;
        }
        assert!(Wall::now() < until, "{sight:?}");
    };
    assert_eq!(
        (sight.phases[Phase::Decode as usize], sight.phases[Phase::Encode as usize]),
        (0, 0),
        "{sight:?}"
    );
    // How much of either there is depends on who else uses the processor.
    assert!(sight.busy() > 0 && sight.idle > 0, "{sight:?}");
    assert!(sight.lateness.count() > 10, "{sight:?}");
    assert!(sight.lateness.sum_nanos >= sight.lateness.most_nanos, "{sight:?}");
    // A worker without streams sleeps, and its last second was idle.
    front.command(Command::Close { stream });
    let until = Wall::now() + PATIENCE;
    while loads.sights(io::clock::Clock.now()).next().unwrap().recent.iter().any(|share| *share > 0) {
        assert!(Wall::now() < until);
        std::thread::yield_now();
    }
}

#[test]
fn a_tick_that_is_set_stays_whatever_the_load_is() {
    for tick_ms in [1, 2, 10, 20] {
        let mut front = ticking(26_320, 26_330, Some(tick_ms));
        let phone = Phone::new(LOCAL);
        let began = Wall::now();
        let (stream, _) = front.open(LOCAL, plan(Some(phone.address()))).unwrap();
        let clip = Arc::new(Clip {
            format: FormatId::ULAW,
            data: vec![7; 8 * 1600].into(),
            loop_from: None,
            packets: None,
        });
        front.command(Command::Play { stream, play: PlayId(1), clip, offset: 0 });
        let mut buffer = [0; 512];
        for _ in 0..60 {
            patiently(|| phone.socket.recv(&mut buffer)).unwrap();
        }
        let load = front.loads().total();
        let passed = began.elapsed().as_millis() as u64;
        assert_eq!(load.tick_ms, u64::from(tick_ms), "more than a second after the start");
        // The counters are up to a tenth of a second old, and a busy machine may skip ticks.
        let most = passed / u64::from(tick_ms) + 5;
        assert!(load.ticks <= most && load.ticks >= 5, "{tick_ms} ms: {} ticks in {passed} ms", load.ticks);
    }
}

/// What a stream without ports is handed: RTP as the phone's.
fn piped_packet(sequence: u16, byte: u8) -> Vec<u8> {
    let header = Header {
        payload_type: 0,
        marker: false,
        sequence,
        timestamp: u32::from(sequence) * 160,
        ssrc: 0xbeef,
    };
    [&rtp::write(&header)[..], &[byte; 160]].concat()
}

#[test]
fn a_stream_without_ports_is_bridged_to_one_that_has_them_wherever_they_live() {
    for workers in [1, 2] {
        let (first, last) = if workers == 1 { (36_000, 36_019) } else { (36_020, 36_039) };
        let mut front = front(first, last, workers);
        let mut phone = Phone::new(LOCAL);
        phone.socket.set_nonblocking(true).unwrap();
        let stream = open(&mut front, &mut phone);
        // One of them is on the other worker, when there are two.
        let piped: Vec<StreamId> =
            (0..2).map(|_| front.open_piped(plan(Some(base::PIPE))).unwrap()).collect();
        for (round, piped) in piped.into_iter().enumerate() {
            front.command(Command::Join { a: stream, b: piped });
            let (to_phone, from_phone) = (0x40 + round as u8, 0x50 + round as u8);
            let (mut heard, mut fetched, mut sequence) = (false, false, 0);
            let mut buffer = [0; 2048];
            let give_up = Wall::now() + PATIENCE;
            while !(heard && fetched) {
                assert!(Wall::now() < give_up, "{workers} workers, round {round}: {heard} {fetched}");
                phone.say(from_phone);
                front.feed(piped, &piped_packet(sequence, to_phone));
                sequence += 1;
                front.drain_events(|event| assert!(!matches!(event, Event::Closed { .. }), "{event:?}"));
                front.drain_piped(|packets| {
                    for (from, packet) in packets {
                        assert_eq!(*from, piped);
                        let (_, payload) = rtp::parse(packet).unwrap();
                        fetched |= packet[payload.start] == from_phone;
                    }
                });
                while let Ok(length) = phone.socket.recv(&mut buffer) {
                    let (_, payload) = rtp::parse(&buffer[..length]).unwrap();
                    heard |= buffer[payload.start] == to_phone;
                }
                std::thread::park_timeout(Duration::from_millis(1));
            }
            front.command(Command::Close { stream: piped });
            await_event(
                &mut front,
                |event| matches!(event, Event::Closed { stream, fault: None, .. } if *stream == piped),
            );
            assert!(!front.feed(piped, &piped_packet(0, 0)), "a stream that is gone");
            front.drain_piped(|_| {});
        }
    }
}
