//! Fax through the program (ITU-T T.38): datagrams of two phones pass with what protects them, and audio before and after.

use e2e::{Message, Phone, Server, Site, Speak, wait};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

const DIALPLAN: &str = "
[test]
exten => bob,1,Dial(PJSIP/bob,20)
exten => carol,1,Dial(PJSIP/carol,20)
";

/// Milliseconds of a tone that tell it from an accident.
const HEARD_MS: u32 = 300;

/// The fax end of a phone.
struct Modem(UdpSocket);

impl Modem {
    fn of(phone: &Phone) -> Self {
        let socket = UdpSocket::bind((phone.local().ip(), 0)).expect("a port for fax");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a time-out");
        Self(socket)
    }
    fn sdp(&self, more: &str) -> String {
        let at = self.0.local_addr().expect("its address");
        let (ip, port) = (at.ip(), at.port());
        format!(
            "v=0\r\no=- 1 2 IN IP4 {ip}\r\ns=-\r\nc=IN IP4 {ip}\r\nt=0 0\r\nm=image {port} udptl t38\r\n\
             a=T38FaxVersion:0\r\na=T38MaxBitRate:14400\r\na=T38FaxRateManagement:transferredTCF\r\n\
             a=T38FaxMaxDatagram:400\r\n{more}"
        )
    }
    /// Sends packet `number` with the two before it.
    fn send(&self, number: u8, to: SocketAddr) {
        let mut datagram = vec![0, number, 2, 0xc0, number, 0];
        let before: Vec<u8> = (number.saturating_sub(2)..number).rev().collect();
        datagram.push(before.len() as u8);
        before.iter().for_each(|earlier| datagram.extend([2, 0xc0, *earlier]));
        self.0.send_to(&datagram, to).expect("the datagram leaves");
    }
    /// The next datagram: its number, its packet, and what follows.
    fn next(&self) -> Option<(u16, Vec<u8>, Vec<u8>)> {
        let mut room = [0; 1500];
        let (length, _) = self.0.recv_from(&mut room).ok()?;
        let [high, low, size, rest @ ..] = &room[..length] else { return None };
        let (packet, rest) = rest.split_at_checked(usize::from(*size))?;
        Some((u16::from_be_bytes([*high, *low]), packet.to_vec(), rest.to_vec()))
    }
}

/// Where a description wants fax.
fn wanted(message: &Message) -> SocketAddr {
    let image = message.sdp("m=image ").unwrap_or_else(|| panic!("no fax in\n{}", message.text()));
    assert!(image.ends_with("udptl t38"), "{image}");
    let port: u16 = image.split(' ').next().and_then(|port| port.parse().ok()).expect("a port");
    let ip: std::net::IpAddr = message.sdp("c=IN IP4 ").and_then(|ip| ip.parse().ok()).expect("an address");
    (ip, port).into()
}

fn pair(server: &Server, other: &str) -> (Phone, Phone) {
    let (mut alice, mut bob) = (Phone::new(server.site.sip, "alice"), Phone::new(server.site.sip, other));
    bob.must_register();
    alice.media.speak(Speak::Tone(440.0));
    bob.media.speak(Speak::Tone(1000.0));
    alice.begin(other);
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    talk(&alice, &bob);
    (alice, bob)
}

/// Each hears the other.
fn talk(alice: &Phone, bob: &Phone) {
    alice.media.forget();
    bob.media.forget();
    wait::until_true("alice hears bob", || alice.media.heard().tone(1000.0) >= HEARD_MS);
    wait::until_true("bob hears alice", || bob.media.heard().tone(440.0) >= HEARD_MS);
}

#[test]
fn t38_9_1_fax_passes_with_its_protection_and_audio_comes_back_after_it() {
    let fax = "allow=ulaw\nt38_udptl=yes\nt38_udptl_ec=redundancy\n";
    let site = Site::new("t38").phone_with("alice", fax).phone_with("bob", fax).dialplan(DIALPLAN);
    let server = Server::start(site);
    let (mut alice, mut bob) = pair(&server, "bob");
    let (sender, receiver) = (Modem::of(&alice), Modem::of(&bob));
    // Who was called hears that a fax calls, and asks for T.38.
    let offer = receiver.sdp("");
    let (asked, answer) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| bob.reinvite_with(&offer));
        let asked = alice.expect("INVITE");
        alice.take_with(&asked, &sender.sdp("a=T38FaxUdpEC:t38UDPRedundancy\r\n"));
        (asked, asking.join().expect("bob has an answer"))
    });
    assert_eq!(answer.status(), Some(200));
    assert!(asked.text().contains("a=T38FaxUdpEC:t38UDPRedundancy"), "{}", asked.text());
    let (to, from) = (wanted(&asked), wanted(&answer));
    // Two in a row are lost on their way here, and come out all the same.
    let mut heard: Vec<u8> = Vec::new();
    for number in (0..30).filter(|number| !matches!(number, 7 | 8 | 20)) {
        wait::until_true("the fax passes", || {
            // Again when nothing comes: the first ones may be faster than the session, as fax machines know.
            sender.send(number, to);
            while heard.last() != Some(&number) {
                let Some((sequence, packet, rest)) = receiver.next() else { return false };
                assert_eq!((sequence, &packet[..]), (heard.len() as u16, &[0xc0, heard.len() as u8][..]));
                assert_eq!(rest, [0, 0], "bob wants no protection");
                heard.push(packet[1]);
            }
            true
        });
    }
    assert_eq!(heard, (0..30).collect::<Vec<u8>>());
    // The other way datagrams repeat what went before.
    let mut repeats = 0;
    for number in 0..5 {
        wait::until_true("the answer passes", || {
            receiver.send(number, from);
            let Some((sequence, packet, rest)) = sender.next() else { return false };
            assert_eq!((sequence, packet), (u16::from(number), vec![0xc0, number]));
            repeats = repeats.max(rest[1]);
            true
        });
    }
    assert_eq!(repeats, 3);
    // Back to audio.
    let again = alice.sdp("sendrecv");
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| alice.reinvite_with(&again));
        let asked = bob.expect("INVITE");
        bob.take(&asked);
        assert_eq!(asking.join().expect("alice has an answer").status(), Some(200));
    });
    talk(&alice, &bob);
    alice.hang_up();
    bob.until_hung_up();
    server.until_idle();
}

#[test]
fn a_fax_that_would_need_a_gateway_is_refused_and_says_so() {
    let site =
        Site::new("no-gateway").phone_with("alice", "t38_udptl=yes\n").phone("carol").dialplan(DIALPLAN);
    let server = Server::start(site);
    let (mut alice, mut carol) = pair(&server, "carol");
    let offer = Modem::of(&alice).sdp("");
    let answer = alice.inside("INVITE", &offer);
    assert_eq!(answer.status(), Some(488));
    wait::until_true("the log says why", || {
        let log = server.log();
        log.contains("T.38 offered by 'alice' is refused") && log.contains("a T.38 gateway is not built in")
    });
    talk(&alice, &carol);
    alice.hang_up();
    carol.until_hung_up();
    server.until_idle();
}
