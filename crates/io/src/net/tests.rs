//! Real sockets on loopback; invented time for every deadline.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use super::*;
use crate::wake;

/// What a test remembers of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Datagram(SocketAddr, SocketAddr, Vec<u8>),
    Unsent(SocketAddr),
    Undelivered(SocketAddr, Vec<u8>),
    Accepted(FlowId, Peer),
    Connected(FlowId),
    Bytes(FlowId, Vec<u8>),
    Closed(FlowId, Close),
    Insecure(bool, String),
    Readable(Token),
    Signal(Signal),
}

fn remember(event: NetEvent<'_>) -> Seen {
    match event {
        NetEvent::Datagram { from, local, bytes, .. } => Seen::Datagram(from, local, bytes.to_vec()),
        NetEvent::Unsent { to, .. } => Seen::Unsent(to),
        NetEvent::Undelivered { to, quoted, .. } => Seen::Undelivered(to, quoted.to_vec()),
        NetEvent::Accepted { flow, peer, .. } => Seen::Accepted(flow, peer),
        NetEvent::Connected { flow, .. } => Seen::Connected(flow),
        NetEvent::Bytes { flow, bytes, .. } => Seen::Bytes(flow, bytes.to_vec()),
        NetEvent::Closed { flow, why, .. } => Seen::Closed(flow, why),
        NetEvent::Insecure { outgoing, fault, .. } => Seen::Insecure(outgoing, fault.what.clone()),
        NetEvent::Readable { token } => Seen::Readable(token),
        NetEvent::Signal(signal) => Seen::Signal(signal),
    }
}

/// The real-time guard of tests that wait for the kernel; reached only by a failing test.
const GUARD: Duration = Duration::from_secs(60);

/// Turns the loop, on a clock that stands still, until `enough` events were seen.
fn turn_until(net: &mut Net, enough: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
    let mut seen = Vec::new();
    while !enough(&seen) {
        let before = seen.len();
        net.wait(Instant::ZERO, Some(Instant::ZERO + GUARD), &mut |event| seen.push(remember(event)))
            .unwrap();
        assert!(seen.len() > before || net.stats().wakes < 10_000, "nothing happened: {seen:?}");
    }
    seen
}

fn turn(net: &mut Net, events: usize) -> Vec<Seen> {
    turn_until(net, |seen| seen.len() >= events)
}

/// One turn at an invented time that must not sleep.
fn turn_at(net: &mut Net, now: Instant) -> Vec<Seen> {
    let mut seen = Vec::new();
    net.wait(now, Some(now), &mut |event| seen.push(remember(event))).unwrap();
    seen
}

/// Does it again when a signal interrupts it, as one that stops the process and lets it go on does.
fn patiently<T>(mut receive: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match receive() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[test]
fn rfc3261_18_4_a_port_where_nobody_listens_is_reported_with_what_was_sent_there() {
    for (own, other) in [("127.0.0.1:0", "127.0.0.1:0"), ("0.0.0.0:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0")]
    {
        let mut net = Net::new(Limits::default()).unwrap();
        let Ok(bind) = net.bind_udp(own.parse().unwrap()) else {
            println!("skipped: no IPv6 here");
            continue;
        };
        let good = UdpSocket::bind(other).unwrap();
        good.set_read_timeout(Some(GUARD)).unwrap();
        // A port that was free a moment ago, and stays so: nobody else is told of it.
        let gone = UdpSocket::bind(other).unwrap().local_addr().unwrap();
        let request = [b"OPTIONS sip:gone SIP/2.0\r\n".to_vec(), vec![b'x'; 200]].concat();
        net.send_udp(bind, None, gone, &request);
        let seen = turn_until(&mut net, |seen| seen.iter().any(|seen| matches!(seen, Seen::Undelivered(..))));
        let Some(Seen::Undelivered(to, quoted)) = seen.first() else { panic!("{seen:?}") };
        assert_eq!(*to, gone, "{own}");
        assert!(!quoted.is_empty() && request.starts_with(quoted), "{own}: {quoted:?}");
        assert_eq!(net.stats().datagrams_undelivered, 1, "{own}");
        // The report is nobody else's: what is sent next, to others, leaves.
        net.send_udp(bind, None, gone, &request);
        net.flush();
        net.send_udp(bind, None, good.local_addr().unwrap(), b"still here");
        net.flush();
        let mut buffer = [0; 64];
        let (length, _) = patiently(|| good.recv_from(&mut buffer)).unwrap();
        assert_eq!(buffer.get(..length), Some(&b"still here"[..]), "{own}");
        assert_eq!(net.stats().datagrams_unsent, 0, "{own}");
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn manager(limits: Limits) -> (Net, SocketAddr) {
    let mut net = Net::new(limits).unwrap();
    let listener = net.listen_tcp(loopback(0), FlowKind::Manager).unwrap();
    let addr = net.listener_addr(listener).unwrap();
    (net, addr)
}

fn accepted(seen: &[Seen]) -> FlowId {
    let mut ids =
        seen.iter().filter_map(|event| if let Seen::Accepted(id, _) = event { Some(*id) } else { None });
    ids.next_back().unwrap()
}

#[test]
fn datagrams_keep_their_bounds_and_their_order() {
    let mut net = Net::new(Limits::default()).unwrap();
    let transport = net.bind_udp(loopback(0)).unwrap();
    let ours = net.udp_addr(transport).unwrap();
    let phone = UdpSocket::bind(loopback(0)).unwrap();
    for size in [1, 0, 1200, 65_507] {
        phone.send_to(&vec![b'x'; size], ours).unwrap();
    }
    let from = phone.local_addr().unwrap();
    let expected: Vec<Seen> =
        [1, 0, 1200, 65_507].map(|size| Seen::Datagram(from, ours, vec![b'x'; size])).into();
    assert_eq!(turn(&mut net, 4), expected);
}

#[test]
fn a_hundred_datagrams_leave_in_two_batches_and_all_arrive() {
    let mut net = Net::new(Limits::default()).unwrap();
    let transport = net.bind_udp(loopback(0)).unwrap();
    let phone = UdpSocket::bind(loopback(0)).unwrap();
    phone.set_read_timeout(Some(GUARD)).unwrap();
    for number in 0..100_u8 {
        net.send_udp(transport, None, phone.local_addr().unwrap(), &[number; 200]);
    }
    net.flush();
    let mut buffer = [0; 2048];
    for number in 0..100_u8 {
        let (len, from) = patiently(|| phone.recv_from(&mut buffer)).unwrap();
        assert_eq!((len, buffer[0], from), (200, number, net.udp_addr(transport).unwrap()));
    }
    assert_eq!(net.stats().datagrams_out, 100);
}

#[test]
fn datagrams_that_the_kernel_may_join_arrive_as_they_were_sent() {
    for (bind, to, local) in [
        ("127.0.0.1:0", "127.0.0.1:0", None),
        ("0.0.0.0:0", "127.0.0.1:0", Some("127.0.0.9")),
        ("[::]:0", "[::1]:0", Some("::1")),
    ] {
        let mut net = Net::new(Limits::default()).unwrap();
        let (Ok(sender), Ok(receiver)) =
            (net.bind_udp(bind.parse().unwrap()), net.bind_udp(to.parse().unwrap()))
        else {
            println!("skipped: {bind} is not available here");
            continue;
        };
        let (to, local) = (net.udp_addr(receiver).unwrap(), local.map(|ip| ip.parse().unwrap()));
        let alone = UdpSocket::bind(SocketAddr::new(to.ip(), 0)).unwrap();
        alone.set_read_timeout(Some(GUARD)).unwrap();
        let lengths: Vec<usize> = [[1200; 59].as_slice(), &[700], &[300; 3], &[0; 5], &[40; 30]].concat();
        let bytes = |number: usize| vec![number as u8; lengths[number]];
        for number in 0..lengths.len() {
            net.send_udp(sender, local, to, &bytes(number));
            net.send_udp(sender, local, to, &bytes(number));
            net.send_udp(sender, local, alone.local_addr().unwrap(), &bytes(number));
        }
        // One after the other, so that they lie side by side.
        for number in 0..lengths.len() {
            net.send_udp(sender, local, to, &bytes(number));
        }
        let seen = turn(&mut net, 3 * lengths.len());
        let twice = (0..lengths.len()).flat_map(|number| [number, number]);
        let expected: Vec<Vec<u8>> = twice.chain(0..lengths.len()).map(bytes).collect();
        let came: Vec<Vec<u8>> = seen
            .into_iter()
            .map(|event| match event {
                Seen::Datagram(_, ours, bytes) if ours == to => bytes,
                other => panic!("{bind}: {other:?}"),
            })
            .collect();
        assert!(came == expected, "{bind}");
        let mut buffer = [0; 2048];
        for (number, length) in lengths.iter().enumerate() {
            assert_eq!(patiently(|| alone.recv(&mut buffer)).unwrap(), *length, "{bind} {number}");
        }
        assert_eq!(net.stats().datagrams_in, 3 * lengths.len() as u64);
        assert_eq!(net.stats().datagrams_out, 4 * lengths.len() as u64);
    }
}

#[test]
fn a_wildcard_bind_knows_where_a_datagram_was_sent_and_answers_from_there() {
    let cases = [("0.0.0.0:0", "127.0.0.7"), ("[::]:0", "::1")];
    for (bind, local) in cases {
        let mut net = Net::new(Limits::default()).unwrap();
        let Ok(transport) = net.bind_udp(bind.parse().unwrap()) else {
            println!("skipped: {bind} is not available here");
            continue;
        };
        let local: IpAddr = local.parse().unwrap();
        let ours = SocketAddr::new(local, net.udp_addr(transport).unwrap().port());
        let any = if local.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
        let phone = UdpSocket::bind(any).unwrap();
        phone.set_read_timeout(Some(GUARD)).unwrap();
        phone.send_to(b"OPTIONS", ours).unwrap();
        let from = phone.local_addr().unwrap();
        assert_eq!(turn(&mut net, 1), [Seen::Datagram(from, ours, b"OPTIONS".to_vec())]);
        net.send_udp(transport, Some(local), from, b"200");
        net.flush();
        let mut buffer = [0; 16];
        assert_eq!(patiently(|| phone.recv_from(&mut buffer)).unwrap(), (3, ours));
    }
}

#[test]
fn a_datagram_the_kernel_refuses_is_reported_and_its_neighbours_leave() {
    let mut net = Net::new(Limits::default()).unwrap();
    let transport = net.bind_udp(loopback(0)).unwrap();
    let phone = UdpSocket::bind(loopback(0)).unwrap();
    phone.set_read_timeout(Some(GUARD)).unwrap();
    let to = phone.local_addr().unwrap();
    net.send_udp(transport, None, to, b"before");
    net.send_udp(transport, None, to, &[0; 65_520]);
    net.send_udp(transport, None, to, b"after");
    assert_eq!(turn_at(&mut net, Instant::ZERO), [Seen::Unsent(to)]);
    let mut buffer = [0; 16];
    assert_eq!(patiently(|| phone.recv(&mut buffer)).unwrap(), 6);
    assert_eq!(patiently(|| phone.recv(&mut buffer)).unwrap(), 5);
    assert_eq!((net.stats().datagrams_out, net.stats().datagrams_unsent), (2, 1));
}

#[test]
fn a_port_in_use_and_an_address_of_somebody_else_come_with_a_remedy() {
    let mut net = Net::new(Limits::default()).unwrap();
    let taken = net.bind_udp(loopback(0)).unwrap();
    let error = net.bind_udp(net.udp_addr(taken).unwrap()).unwrap_err();
    assert_eq!(error.error.kind(), io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains("choose another port"), "{error}");
    let foreign = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 5060));
    let error = net.listen_tcp(foreign, FlowKind::Sip).unwrap_err();
    assert!(error.to_string().contains("cannot bind TCP 192.0.2.1:5060"), "{error}");
    assert!(error.remedy().contains("no interface"), "{error}");
    net.close_udp(taken);
    assert!(net.udp_addr(taken).is_none());
}

#[test]
fn an_address_is_shared_only_by_those_who_all_say_so() {
    let mut net = Net::new(Limits::default()).unwrap();
    let own = net.bind_udp(loopback(0)).unwrap();
    let own = net.udp_addr(own).unwrap();
    let shared = net.bind_udp_shared(loopback(0)).unwrap();
    let shared = net.udp_addr(shared).unwrap();
    assert!(net.bind_udp_shared(own).is_err(), "the first keeps it for itself");
    assert!(net.bind_udp(shared).is_err(), "the second wants it for itself");
    assert!(net.bind_udp_shared(shared).is_ok());
}

#[test]
fn a_flow_carries_bytes_both_ways_and_ends_once() {
    let (mut net, addr) = manager(Limits::default());
    let mut client = TcpStream::connect(addr).unwrap();
    let local = client.local_addr().unwrap();
    let seen = turn(&mut net, 1);
    let flow = accepted(&seen);
    assert_eq!(seen, [Seen::Accepted(flow, Peer::Ip { remote: local, local: addr })]);
    client.write_all(b"Action: Ping\r\n\r\n").unwrap();
    assert_eq!(turn(&mut net, 1), [Seen::Bytes(flow, b"Action: Ping\r\n\r\n".to_vec())]);
    net.send_flow(flow, b"Response: ");
    net.send_flow(flow, b"Success\r\n\r\n");
    net.flush();
    let mut answer = [0; 21];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"Response: Success\r\n\r\n");
    drop(client);
    assert_eq!(turn(&mut net, 1), [Seen::Closed(flow, Close::Peer)]);
    net.send_flow(flow, b"to nobody");
    assert_eq!(turn_at(&mut net, Instant::ZERO), []);
    assert_eq!(net.flow_counts(), (0, 0));
}

#[test]
fn an_answer_is_read_to_its_end_by_a_client_that_had_more_to_say() {
    let (mut net, addr) = manager(Limits::default());
    let mut client = TcpStream::connect(addr).unwrap();
    let flow = accepted(&turn(&mut net, 1));
    // Unread input would make a plain close send a reset, which destroys what the peer has not read.
    client.write_all(b"Action: Logoff\r\n\r\n").unwrap();
    let answer = vec![b'a'; 300_000];
    net.send_flow(flow, &answer);
    net.close_flow(flow, Closing::Flush);
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        client.read_to_end(&mut all).map(|_| all)
    });
    while net.flow_counts().0 > 0 {
        net.wait(Instant::ZERO, Some(Instant::ZERO + GUARD), &mut |event| panic!("{event:?}")).unwrap();
    }
    assert_eq!(reader.join().unwrap().unwrap(), answer);
}

#[test]
fn who_is_told_something_while_another_is_let_go_hears_it_once() {
    let (mut net, addr) = manager(Limits::default());
    let mut clients = [TcpStream::connect(addr).unwrap(), TcpStream::connect(addr).unwrap()];
    let flows: Vec<FlowId> = turn(&mut net, 2)
        .into_iter()
        .filter_map(|seen| if let Seen::Accepted(flow, _) = seen { Some(flow) } else { None })
        .collect();
    net.send_flow(flows[0], b"answer");
    net.close_flow(flows[0], Closing::Flush);
    net.send_flow(flows[1], b"event");
    net.flush();
    net.send_flow(flows[1], b".");
    net.flush();
    let heard = clients.each_mut().map(|client| {
        client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut heard = Vec::new();
        // One of them stays open: its reader gives up.
        let _ = client.read_to_end(&mut heard);
        String::from_utf8(heard).unwrap()
    });
    assert_eq!(heard, ["answer", "event."]);
}

#[test]
fn a_client_that_closed_its_side_after_asking_still_gets_the_answer() {
    let (mut net, addr) = manager(Limits::default());
    let mut client = TcpStream::connect(addr).unwrap();
    let flow = accepted(&turn(&mut net, 1));
    client.write_all(b"Q").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(turn(&mut net, 1), [Seen::Bytes(flow, b"Q".to_vec())]);
    net.send_flow(flow, &[b'A'; 1000]);
    assert_eq!(turn(&mut net, 1), [Seen::Closed(flow, Close::Peer)]);
    let mut all = Vec::new();
    client.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), 1000);
}

#[test]
fn a_flow_nobody_vouches_for_ends_after_five_seconds_however_it_trickles() {
    let (mut net, addr) = manager(Limits::default());
    let mut client = TcpStream::connect(addr).unwrap();
    let flow = accepted(&turn(&mut net, 1));
    let start = Instant::ZERO + Duration::from_secs(3600);
    assert_eq!(turn_at(&mut net, start), []);
    client.write_all(b"A").unwrap();
    assert_eq!(turn(&mut net, 1), [Seen::Bytes(flow, b"A".to_vec())]);
    assert_eq!(turn_at(&mut net, start + (PROBATION - Duration::from_nanos(1))), []);
    assert_eq!(turn_at(&mut net, start + PROBATION), [Seen::Closed(flow, Close::Deadline)]);
    assert_eq!(net.stats().expired, 1);
}

#[test]
fn a_flow_that_is_kept_outlives_probation_up_to_its_own_deadline() {
    let (mut net, addr) = manager(Limits::default());
    let clients = [TcpStream::connect(addr).unwrap(), TcpStream::connect(addr).unwrap()];
    let flows: Vec<FlowId> =
        turn(&mut net, 2).iter().map(|event| accepted(std::slice::from_ref(event))).collect();
    let almost = Instant::ZERO + Duration::from_secs(86_399);
    let day = Instant::ZERO + Duration::from_secs(86_400);
    net.keep(flows[0], None);
    net.keep(flows[1], Some(day));
    assert_eq!(net.flow_counts(), (2, 0));
    assert_eq!(turn_at(&mut net, almost), []);
    assert_eq!(turn_at(&mut net, day), [Seen::Closed(flows[1], Close::Deadline)]);
    drop(clients);
    assert_eq!(turn(&mut net, 1), [Seen::Closed(flows[0], Close::Peer)]);
}

#[test]
fn only_phones_that_were_vouched_for_count_towards_a_nap() {
    let mut net = Net::new(Limits::default()).unwrap();
    let listener = net.listen_tcp(loopback(0), FlowKind::Sip).unwrap();
    let mut client = TcpStream::connect(net.listener_addr(listener).unwrap()).unwrap();
    let flow = accepted(&turn(&mut net, 1));
    // What the next look counts for a nap, after a request has come.
    let mut counted = |net: &mut Net| {
        let before = net.moderation.counted();
        client.write_all(b"OPTIONS").unwrap();
        turn(net, 1);
        net.moderation.counted() - before
    };
    assert_eq!(counted(&mut net), 0, "a stranger");
    net.keep(flow, None);
    assert_eq!(counted(&mut net), 1, "a phone");
}

#[test]
fn datagrams_of_a_prompt_bind_are_no_reason_for_a_nap() {
    let mut net = Net::new(Limits::default()).unwrap();
    let (moderated, prompt) = (net.bind_udp(loopback(0)).unwrap(), net.bind_udp(loopback(0)).unwrap());
    net.set_udp_prompt(prompt);
    let client = UdpSocket::bind(loopback(0)).unwrap();
    for (bind, counts) in [(moderated, 1), (prompt, 0)] {
        let before = net.moderation.counted();
        client.send_to(b"OPTIONS", net.udp_addr(bind).unwrap()).unwrap();
        turn(&mut net, 1);
        assert_eq!(net.moderation.counted() - before, counts);
    }
}

#[test]
fn a_source_over_its_share_is_closed_at_the_door_and_others_are_served() {
    let (mut net, addr) = manager(Limits { flows: 64, probation: 64, per_source: 3 });
    let greedy: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(addr).unwrap()).collect();
    turn_until(&mut net, |seen| seen.len() >= 3);
    while net.stats().refused < 2 {
        turn_at(&mut net, Instant::ZERO);
    }
    assert_eq!(net.flow_counts(), (3, 3));
    let other = UdpSocket::bind("127.0.0.2:0");
    assert!(other.is_ok(), "loopback is a /8");
    let mut second = Net::new(Limits::default()).unwrap();
    second.connect_tcp(addr, Some(SocketAddr::from(([127, 0, 0, 2], 0))), FlowKind::Manager).unwrap();
    assert!(matches!(turn(&mut second, 1)[..], [Seen::Connected(_)]));
    assert!(matches!(turn(&mut net, 1)[..], [Seen::Accepted(_, Peer::Ip { .. })]));
    drop(greedy);
}

#[test]
fn a_full_waiting_room_makes_place_by_its_oldest() {
    let (mut net, addr) = manager(Limits { flows: 64, probation: 2, per_source: 9 });
    let clients: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(addr).unwrap()).collect();
    let oldest = accepted(&turn(&mut net, 2)[..1]);
    let late = TcpStream::connect(addr).unwrap();
    let seen = turn(&mut net, 2);
    assert!(seen.contains(&Seen::Closed(oldest, Close::Evicted)), "{seen:?}");
    assert_eq!(net.flow_counts(), (2, 2));
    drop((clients, late));
}

#[test]
fn a_peer_that_never_reads_is_disconnected_at_its_backlog() {
    let (mut net, addr) = manager(Limits::default());
    let client = TcpStream::connect(addr).unwrap();
    let flow = accepted(&turn(&mut net, 1));
    net.keep(flow, None);
    let event = [b'e'; 64 * 1024];
    let mut seen = Vec::new();
    // The kernel's own buffers take some megabytes first.
    for _ in 0..4096 {
        net.send_flow(flow, &event);
        seen = turn_at(&mut net, Instant::ZERO);
        if !seen.is_empty() {
            break;
        }
    }
    assert_eq!(seen, [Seen::Closed(flow, Close::Backlog)]);
    assert_eq!((net.stats().backlogged, net.flow_counts().0), (1, 0));
    drop(client);
}

#[test]
fn an_outgoing_flow_says_what_became_of_it() {
    let (mut net, addr) = manager(Limits::default());
    let flow = net.connect_tcp(addr, None, FlowKind::Sip).unwrap();
    net.send_flow(flow, b"REGISTER");
    let seen = turn_until(&mut net, |seen| seen.iter().any(|event| matches!(event, Seen::Bytes(..))));
    let inner = accepted(
        &seen.iter().filter(|event| matches!(event, Seen::Accepted(..))).cloned().collect::<Vec<_>>(),
    );
    assert!(seen.contains(&Seen::Connected(flow)), "{seen:?}");
    assert!(seen.contains(&Seen::Bytes(inner, b"REGISTER".to_vec())), "{seen:?}");

    // Nobody listens there, and the kernel gives it to nobody.
    let closed = loopback(1);
    let refused = net.connect_tcp(closed, None, FlowKind::Sip).unwrap();
    let expected = Seen::Closed(refused, Close::Failed(io::ErrorKind::ConnectionRefused));
    assert_eq!(turn(&mut net, 1), [expected]);
}

#[test]
fn a_control_socket_has_its_mode_knows_its_peer_and_replaces_only_a_dead_one() {
    let folder = std::env::temp_dir().join(format!("strowger-net-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("asterisk.ctl");
    let mut net = Net::new(Limits::default()).unwrap();
    let listener = net.listen_unix(&path, 0o660, FlowKind::Control).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    let client = UnixStream::connect(&path).unwrap();
    let data = std::fs::metadata(&path).unwrap();
    let (uid, gid) = (std::os::unix::fs::MetadataExt::uid(&data), std::os::unix::fs::MetadataExt::gid(&data));
    let seen = turn(&mut net, 1);
    assert_eq!(seen, [Seen::Accepted(accepted(&seen), Peer::Local { uid, gid })]);

    let mut second = Net::new(Limits::default()).unwrap();
    let error = second.listen_unix(&path, 0o660, FlowKind::Control).unwrap_err();
    assert!(error.remedy().contains("another Strowger"), "{error}");
    net.close_listener(listener);
    assert!(!path.exists());

    // A socket file whose process was killed answers nobody and is taken over; a plain file is left alone.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    second.listen_unix(&path, 0o600, FlowKind::Control).unwrap();
    let plain = folder.join("plain");
    std::fs::write(&plain, "kept").unwrap();
    assert!(second.listen_unix(&plain, 0o600, FlowKind::Control).is_err());
    assert_eq!(std::fs::read_to_string(&plain).unwrap(), "kept");
    drop((second, client));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_queue_of_another_thread_wakes_the_loop_once_for_each_burst() {
    let mut net = Net::new(Limits::default()).unwrap();
    let (sender, receiver) = wake::queue::<u32>(16).unwrap();
    net.watch(receiver.as_fd(), Token(7)).unwrap();
    for _round in 0..3 {
        let sender = sender.clone();
        std::thread::spawn(move || (0..5).for_each(|number| sender.send(number).unwrap())).join().unwrap();
        assert_eq!(turn(&mut net, 1), [Seen::Readable(Token(7))]);
        let mut got = Vec::new();
        receiver.drain(|number| got.push(number));
        assert_eq!(got, [0, 1, 2, 3, 4]);
        assert_eq!(turn_at(&mut net, Instant::ZERO), []);
    }
}

#[test]
fn a_quiet_reactor_sleeps_to_its_deadline_and_wakes_once() {
    let (mut net, _addr) = manager(Limits::default());
    let clock = crate::clock::Clock;
    let start = clock.now();
    let until = start + Duration::from_micros(1_500);
    net.wait(start, Some(until), &mut |event| panic!("{event:?}")).unwrap();
    assert!(clock.now() >= until);
    assert_eq!(net.stats().wakes, 1);
}

#[test]
fn signals_arrive_as_events_in_the_order_of_their_numbers() {
    let mut net = Net::new(Limits::default()).unwrap();
    net.catch_signals().unwrap();
    for (number, signal) in [(libc::SIGHUP, Signal::Reload), (libc::SIGTERM, Signal::Stop)] {
        crate::sys::raise(number);
        assert_eq!(turn(&mut net, 1), [Seen::Signal(signal)]);
    }
}

#[test]
fn a_good_client_is_served_while_thousands_of_others_say_nothing() {
    if crate::process::raise_file_limit().unwrap() < 8192 {
        println!("skipped: 8192 open files are not allowed here");
        return;
    }
    let (mut net, addr) = manager(Limits::default());
    let mut crowd = Vec::new();
    for host in 1..=100_u8 {
        let source = SocketAddr::from(([127, 0, 9, host], 0));
        for _ in 0..20 {
            crowd.push(connect_from(source, addr));
        }
        turn_at(&mut net, Instant::ZERO);
    }
    while net.stats().accepted < 2000 {
        turn_at(&mut net, Instant::ZERO);
    }
    // The waiting room holds so many and no more; whoever came first made place.
    assert_eq!(net.flow_counts(), (1024, 1024));
    assert_eq!(net.stats().evicted, 2000 - 1024);
    let mut good = TcpStream::connect(addr).unwrap();
    good.write_all(b"Action: Login\r\n\r\n").unwrap();
    let is_good =
        |event: &Seen| matches!(event, Seen::Bytes(_, bytes) if bytes.starts_with(b"Action: Login"));
    let seen = turn_until(&mut net, |seen| seen.iter().any(is_good));
    let flow = accepted(&seen);
    net.keep(flow, None);
    net.send_flow(flow, b"Response: Success\r\n\r\n");
    net.flush();
    let mut answer = [0; 21];
    good.read_exact(&mut answer).unwrap();
    assert_eq!(net.flow_counts(), (1024, 1023));
    drop(crowd);
}

/// A connection under way from one of the many addresses of loopback.
fn connect_from(source: SocketAddr, to: SocketAddr) -> OwnedFd {
    let fd = sys::socket(to, libc::SOCK_STREAM).unwrap();
    sys::bind(&fd, source).unwrap();
    sys::connect(&fd, to).unwrap();
    fd
}

/// A reactor that listens under TLS, and what its clients believe.
fn secure(verify: bool) -> (Net, ListenerId, SocketAddr, Tls) {
    let mut net = Net::new(Limits::default()).unwrap();
    let listener = net.listen_tcp((Ipv4Addr::LOCALHOST, 0).into(), FlowKind::Sip).unwrap();
    let (server, client) = tls::tests::ends(verify);
    net.set_listener_tls(listener, Some(server));
    let at = net.listener_addr(listener).unwrap();
    (net, listener, at, client)
}

fn bytes_of(seen: &[Seen], flow: FlowId) -> Vec<u8> {
    let parts = seen.iter().filter_map(|seen| match seen {
        Seen::Bytes(of, bytes) if *of == flow => Some(bytes.clone()),
        _ => None,
    });
    parts.flatten().collect()
}

fn come_in(seen: &[Seen]) -> Option<FlowId> {
    seen.iter().find_map(|seen| if let Seen::Accepted(flow, _) = seen { Some(*flow) } else { None })
}

#[test]
fn a_flow_under_tls_is_reported_after_its_handshake_and_carries_everything_that_was_sent() {
    let (mut net, _, at, client) = secure(true);
    let said: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
    let out = net.connect_tls(at, None, FlowKind::Sip, &client, "pbx.example.com").unwrap();
    // Before there is a connection, let alone a key.
    net.send_flow(out, &said);
    let seen = turn_until(&mut net, |seen| {
        seen.contains(&Seen::Connected(out))
            && come_in(seen).is_some_and(|flow| bytes_of(seen, flow).len() >= said.len())
    });
    let inside = come_in(&seen).unwrap();
    assert_eq!(bytes_of(&seen, inside), said);
    assert_eq!(net.stats().secured, 2);
    net.keep(inside, None);
    net.send_flow(inside, b"answer");
    net.close_flow(inside, Closing::Flush);
    let seen = turn_until(&mut net, |seen| seen.contains(&Seen::Closed(out, Close::Peer)));
    assert_eq!(bytes_of(&seen, out), b"answer", "what was queued leaves before the goodbye");
    assert!(net.connect_tls(at, None, FlowKind::Sip, &client, "no name at all").is_err());
}

#[test]
fn a_server_that_proves_another_name_gets_nothing_of_what_was_sent_to_it() {
    let (mut net, _, at, client) = secure(true);
    let out = net.connect_tls(at, None, FlowKind::Sip, &client, "other.example.com").unwrap();
    net.send_flow(out, b"for other.example.com only");
    let seen = turn_until(&mut net, |seen| {
        seen.contains(&Seen::Closed(out, Close::Insecure))
            && seen.iter().filter(|seen| matches!(seen, Seen::Insecure(..))).count() == 2
    });
    assert_eq!(come_in(&seen), None);
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Bytes(..) | Seen::Connected(_))), "{seen:?}");
    assert_eq!((net.stats().secured, net.stats().insecure), (0, 2));
}

#[test]
fn who_does_not_finish_a_handshake_is_cut_off_without_anybody_hearing_of_it() {
    let (mut net, _, at, _) = secure(false);
    let mut silent = TcpStream::connect(at).unwrap();
    let mut trickling = TcpStream::connect(at).unwrap();
    trickling.write_all(&[0x16, 3, 1]).unwrap();
    while net.stats().accepted < 2 {
        net.wait(Instant::ZERO, Some(Instant::ZERO + GUARD), &mut |event| panic!("{event:?}")).unwrap();
    }
    assert_eq!(net.flow_counts(), (2, 2));
    let late = Instant::ZERO + PROBATION;
    assert_eq!((turn_at(&mut net, Instant::ZERO), turn_at(&mut net, late)), (vec![], vec![]));
    assert_eq!((net.flow_counts(), net.stats().expired), ((0, 0), 2));
    for stream in [&mut silent, &mut trickling] {
        stream.set_read_timeout(Some(GUARD)).unwrap();
        let mut end = Vec::new();
        // An end, or a reset where something had come that nobody read.
        let _reset = stream.read_to_end(&mut end);
        assert!(end.is_empty());
    }
}

#[test]
fn no_nap_precedes_the_handshakes_that_a_turn_has_left_to_the_next() {
    let (mut net, _, at, _) = secure(false);
    let knocks: Vec<TcpStream> = (0..=HANDSHAKES_PER_TURN)
        .map(|_| {
            let mut stream = TcpStream::connect(at).unwrap();
            stream.write_all(&[0x16, 3, 1]).unwrap();
            stream
        })
        .collect();
    // Each is read as it is accepted, but for the last.
    assert_eq!(turn_at(&mut net, Instant::ZERO), vec![]);
    assert_eq!((net.stats().accepted, net.handshakes_left, net.left_over), (knocks.len() as u64, 0, true));
    assert_eq!(turn_at(&mut net, Instant::ZERO), vec![]);
    assert_eq!((net.handshakes_left, net.left_over), (HANDSHAKES_PER_TURN - 1, false));
}

#[test]
fn rfc8446_4_6_1_the_ticket_of_a_session_leaves_with_the_first_answer() {
    let (mut net, _, at, client) = secure(true);
    let out = net.connect_tls(at, None, FlowKind::Sip, &client, "pbx.example.com").unwrap();
    net.send_flow(out, b"question");
    let mut inside = None;
    while inside.is_none() {
        let now = Instant::ZERO;
        net.wait(now, Some(now + GUARD), &mut |event| {
            if let NetEvent::Bytes { flow, .. } = event {
                inside = Some(flow);
            }
        })
        .unwrap();
    }
    let inside = inside.unwrap();
    let ticket = net.unsent(inside);
    assert!(ticket > 0, "it has not left by itself");
    net.send_flow(inside, b"answer");
    assert!(net.unsent(inside) > ticket);
    let seen = turn_until(&mut net, |seen| bytes_of(seen, out) == b"answer");
    assert_eq!((net.unsent(inside), seen.len()), (0, 1));
}

#[test]
fn a_listener_presents_what_it_was_given_last_and_flows_that_are_open_stay() {
    let (mut net, listener, at, client) = secure(true);
    let connect = |net: &mut Net, client: &Tls| {
        let out = net.connect_tls(at, None, FlowKind::Sip, client, "pbx.example.com").unwrap();
        let done = |seen: &[Seen]| {
            seen.contains(&Seen::Connected(out)) && come_in(seen).is_some()
                || seen.contains(&Seen::Closed(out, Close::Insecure))
        };
        let seen = turn_until(net, done);
        (out, come_in(&seen))
    };
    let (first, inside) = connect(&mut net, &client);
    net.keep(inside.unwrap(), None);
    let (other, believes_other) = tls::tests::ends(true);
    net.set_listener_tls(listener, Some(other));
    assert_eq!(connect(&mut net, &client).1, None, "signed by somebody else");
    let (_, third) = connect(&mut net, &believes_other);
    assert!(third.is_some());
    net.send_flow(first, b"still here");
    let seen = turn_until(&mut net, |seen| bytes_of(seen, inside.unwrap()) == b"still here");
    assert!(!seen.is_empty());
}
