//! Whatever comes from the network, the process goes on and a call that is up does not notice.

use e2e::websocket::{REQUEST, frame};
use e2e::{
    Authority, Baresip, Phone, Server, Site, Speak, TlsClient, WebSocket, bad_input, installed, unpack, wait,
};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

const DIALPLAN: &str = "
[test]
exten => echo,1,Answer()
 same => n,Echo()
";
const TONE: f64 = 440.0;
/// Silence that no machine makes by itself, however busy it is.
const STALL: Duration = Duration::from_secs(5);
/// Port of the manager, on the server's own address.
const MANAGER: u16 = 5038;
/// Ports of the manager and of SIP under TLS, and of HTTP with and without.
const MANAGER_TLS: u16 = 5039;
const SIP_TLS: u16 = 5061;
const HTTP: u16 = 8088;
const HTTP_TLS: u16 = 8089;
/// Largest payload of a datagram.
const DATAGRAM_BYTES_MAX: usize = 65_507;
/// Name in the certificate.
const NAME: &str = "pbx.example.com";

/// A server with a call that must not notice what else comes.
struct Scene {
    server: Server,
    alice: Phone,
    descriptors: usize,
    stranger: UdpSocket,
    /// A WebSocket that all messages go by, until it is closed, and one under TLS.
    page: RefCell<Option<WebSocket>>,
    secure_page: RefCell<Option<WebSocket>>,
    /// Who knows the services under TLS; none without openssl, which makes their certificate.
    tls: Option<TlsClient>,
}

impl Scene {
    fn new(name: &str) -> Self {
        let srtp = "media_encryption=sdes\nmedia_encryption_optimistic=yes\n";
        let site = Site::new(name)
            .phone("alice")
            .phone("mallory")
            .phone_with("sealed", srtp)
            .phone_with("mallet", srtp)
            .dialplan(DIALPLAN);
        let ip = site.sip.ip();
        let authority = installed(&["openssl"]).then(|| Authority::new(name));
        let own = authority.as_ref().map(|authority| authority.sign(&format!("DNS:{NAME}")));
        let (files, secure) = own.map_or_else(Default::default, |own| {
            let (certificate, key) = (own.certificate.display(), own.key.display());
            let transport = format!(
                "[tls]\ntype=transport\nprotocol=tls\nbind={ip}:{SIP_TLS}\ncert_file={certificate}\npriv_key_file={key}\n"
            );
            (format!("tlsenable=yes\ntlscertfile={certificate}\ntlsprivatekey={key}\n"), transport)
        });
        let site = site
            .add(
                "manager.conf",
                &format!(
                    "[general]\nenabled=yes\nwebenabled=yes\nport={MANAGER}\nbindaddr={ip}\n{files}[admin]\n\
                     secret=a-long-manager-secret\n"
                ),
            )
            .add("http.conf", &format!("[general]\nenabled=yes\nbindaddr={ip}\nbindport={HTTP}\n{files}"))
            .add(
                "pjsip.conf",
                &format!("[ws]\ntype=transport\nprotocol=ws\n[wss]\ntype=transport\nprotocol=wss\n{secure}"),
            );
        let server = Server::start(site);
        let mut alice = Phone::new(server.site.sip, "alice");
        alice.media.speak(Speak::Tone(TONE));
        alice.must_call("echo");
        wait::until_true("the call is up", || alice.media.heard().tone(TONE) >= 200);
        alice.media.forget();
        let descriptors = server.descriptors();
        let stranger = UdpSocket::bind((e2e::address(), 0)).expect("a port");
        let tls = authority.map(|authority| TlsClient::new(&authority, NAME));
        let (page, secure_page) = Default::default();
        Self { server, alice, descriptors, stranger, page, secure_page, tls }
    }

    fn sip(&self) -> SocketAddr {
        self.server.site.sip
    }

    /// A datagram, and whatever comes back so far thrown away.
    fn datagram(&self, bytes: &[u8]) {
        // What is longer than a datagram does not leave.
        let _sent = self.stranger.send_to(bytes, self.sip());
        self.drain();
    }

    fn drain(&self) {
        self.stranger.set_nonblocking(true).expect("a mode");
        let mut buffer = [0; 4096];
        while self.stranger.recv(&mut buffer).is_ok() {}
    }

    fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.sip().ip(), port)
    }

    /// A connection with these bytes, closed by us.
    fn plain(&self, port: u16, bytes: &[u8]) {
        e2e::pass(self.at(port), bytes);
    }

    /// The same under TLS.
    fn secure(&self, port: u16, bytes: &[u8]) {
        if let Some(tls) = &self.tls {
            tls.pass(self.at(port), bytes);
        }
    }

    /// A WebSocket message, by the connection that is open.
    fn message(&self, bytes: &[u8]) {
        say(&self.page, bytes, || WebSocket::connect(self.at(HTTP)));
    }

    /// The same under TLS.
    fn secure_message(&self, bytes: &[u8]) {
        if let Some(tls) = &self.tls {
            say(&self.secure_page, bytes, || WebSocket::by(tls.connect(self.at(HTTP_TLS))));
        }
    }

    /// Every input by each of these ways: one way after the other, because a server that is busy with datagrams naps
    /// between two looks, and each connection would wait for that.
    fn pass(&mut self, ways: &[Way], inputs: &[(String, Vec<u8>)]) {
        for (way, go) in ways {
            for (name, bytes) in inputs {
                go(self, bytes);
                assert!(self.server.alive(), "'{name}' by {way} ends the process");
            }
        }
    }

    /// The process is well, the call has lost nothing, and nothing is left of the strangers.
    fn finish(mut self) {
        // What went by the WebSockets has been read when this is answered.
        for mut page in [self.page.take(), self.secure_page.take()].into_iter().flatten() {
            page.say(
                b"OPTIONS sip:a SIP/2.0\r\nVia: SIP/2.0/WS a.invalid;branch=z9hG4bKlast\r\nFrom: <sip:a@a.invalid>;tag=1\r\n\
                  To: <sip:a>\r\nCall-ID: the-last-of-all\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\n\r\n",
            );
            while page.message().header("Call-ID") != Some("the-last-of-all") {}
        }
        self.server.assert_healthy();
        assert_eq!(self.server.channels(), 1);
        let before = self.alice.media.heard();
        assert_eq!(before.lost(), 0, "packets are missing");
        assert!(before.longest_gap() < STALL, "{:?} of silence", before.longest_gap());
        self.alice.media.forget();
        wait::until_true("the call goes on", || self.alice.media.heard().tone(TONE) >= 500);
        // The port for RTCP of the call that is up is opened when the first report is near.
        wait::until_true("connections are given back", || self.server.descriptors() <= self.descriptors + 1);
        self.alice.hang_up();
        self.server.until_idle();
    }
}

/// A name, and how bytes go.
type Way = (&'static str, fn(&Scene, &[u8]));

/// What carries SIP.
const SIP: [Way; 5] = [
    ("UDP", Scene::datagram),
    ("TCP", |scene, bytes| scene.plain(scene.sip().port(), bytes)),
    ("TLS", |scene, bytes| scene.secure(SIP_TLS, bytes)),
    ("WebSocket", Scene::message),
    ("WebSocket under TLS", Scene::secure_message),
];
/// Requests of HTTP.
const WEB: [Way; 2] = [
    ("HTTP", |scene, bytes| scene.plain(HTTP, bytes)),
    ("HTTPS", |scene, bytes| scene.secure(HTTP_TLS, bytes)),
];
/// Actions of the manager, as they are and posted.
const ACTIONS: [Way; 4] = [
    ("TCP", |scene, bytes| scene.plain(MANAGER, bytes)),
    ("TLS", |scene, bytes| scene.secure(MANAGER_TLS, bytes)),
    ("HTTP", |scene, bytes| scene.plain(HTTP, &posted(bytes))),
    ("HTTPS", |scene, bytes| scene.secure(HTTP_TLS, &posted(bytes))),
];
/// Frames of a WebSocket, on connections of their own.
const FRAMES: [Way; 2] = [
    ("WebSocket", |scene, bytes| scene.plain(HTTP, &upgraded(bytes))),
    ("WebSocket under TLS", |scene, bytes| scene.secure(HTTP_TLS, &upgraded(bytes))),
];

/// A form with these bytes.
fn posted(bytes: &[u8]) -> Vec<u8> {
    let head = format!("POST /rawman HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", bytes.len());
    [head.as_bytes(), bytes].concat()
}

/// A request for a WebSocket, and these bytes in it.
fn upgraded(bytes: &[u8]) -> Vec<u8> {
    [REQUEST.as_bytes(), bytes].concat()
}

/// Sends a message of a WebSocket by a connection that stays for the next one, unless the server closes it.
fn say(page: &RefCell<Option<WebSocket>>, bytes: &[u8], connect: impl FnOnce() -> WebSocket) {
    let mut page = page.borrow_mut();
    let open = page.get_or_insert_with(connect);
    open.send(&frame(0x82, bytes));
    if !open.is_heard() {
        *page = None;
    }
}

/// All files below a folder with their content, in order.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut folders = vec![folder.to_owned()];
    let mut paths: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { paths.push(path) }
        }
    }
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths.iter().map(|path| (path.display().to_string(), std::fs::read(path).expect("a file"))).collect()
}

/// A request that is right but for what a case changes.
fn request(change: &dyn Fn(&str) -> String) -> Vec<u8> {
    let good = "INVITE sip:echo@example.com SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1:5060;rport;branch=z9hG4bKhostile\r\n\
                Max-Forwards: 70\r\nFrom: <sip:mallory@example.com>;tag=1\r\nTo: <sip:echo@example.com>\r\n\
                Call-ID: hostile@example.com\r\nCSeq: 1 INVITE\r\nContact: <sip:mallory@192.0.2.1>\r\n\
                Content-Type: application/sdp\r\nContent-Length: 0\r\n\r\n";
    change(good).into_bytes()
}

#[test]
fn hostile_sip_is_survived() {
    let mut scene = Scene::new("sip");
    let replace = |from: &'static str, to: String| request(&move |good| good.replace(from, &to));
    let many = |line: &str, count: usize| line.repeat(count);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("zeros", vec![0; 1500]),
        ("all bytes", (0..=255).collect()),
        ("line ends only", b"\r\n\r\n\r\n\r\n".to_vec()),
        ("no line end", b"INVITE sip:echo@example.com SIP/2.0".to_vec()),
        ("a response to nothing", b"SIP/2.0 200 OK\r\n\r\n".to_vec()),
        (
            "a status of ten digits",
            replace("INVITE sip:echo@example.com SIP/2.0", "SIP/2.0 9999999999 X".into()),
        ),
        ("a negative length", replace("Content-Length: 0", "Content-Length: -1".into())),
        ("a huge length", replace("Content-Length: 0", "Content-Length: 99999999999999999999".into())),
        ("two lengths", replace("Content-Length: 0", "Content-Length: 0\r\nContent-Length: 5".into())),
        ("a header of 100 kB", replace("Max-Forwards: 70", format!("X: {}", "a".repeat(50_000)))),
        ("5,000 headers", replace("Max-Forwards: 70\r\n", many("X: 1\r\n", 5_000))),
        ("1,000 Via", replace("Max-Forwards: 70\r\n", many("Via: SIP/2.0/UDP a;branch=z9hG4bK1\r\n", 1_000))),
        ("no Via", replace("Via: ", "Not-Via: ".into())),
        ("no From", replace("From: ", "Not-From: ".into())),
        ("a sequence number over 2^31", replace("CSeq: 1 INVITE", "CSeq: 4294967296 INVITE".into())),
        ("two methods", replace("CSeq: 1 INVITE", "CSeq: 1 BYE".into())),
        ("an open quote", replace("From: <", "From: \"<".into())),
        ("escapes without digits", replace("sip:echo@", "sip:%%%zz%0@".into())),
        ("an escaped zero", replace("sip:echo@", "sip:echo%00@".into())),
        ("an address without an end", replace("192.0.2.1:5060", "[::1".into())),
        ("a port over 65535", replace("192.0.2.1:5060", "192.0.2.1:70000".into())),
        ("half of a multibyte character", [request(&str::to_owned), vec![0xe2, 0x82]].concat()),
        ("credentials of nothing", replace("Max-Forwards: 70", "Authorization: Digest".into())),
        (
            "credentials of all kinds",
            replace(
                "Max-Forwards: 70",
                format!(
                    "Authorization: Digest username=\"{}\", realm=,nonce=\"\", uri=x, response=\"zz\", nc=zz, qop=auth",
                    "\\".repeat(999)
                ),
            ),
        ),
        (
            "a description of nonsense",
            replace("Content-Length: 0\r\n\r\n", "Content-Length: 20\r\n\r\nv=0\r\nm=audio x y z\r\n".into()),
        ),
        ("an unknown method", replace("INVITE", "FROBNICATE".into())),
        ("a CANCEL of nothing", replace("INVITE", "CANCEL".into())),
        ("a BYE of nothing", replace("INVITE", "BYE".into())),
        ("an ACK of nothing", replace("INVITE", "ACK".into())),
    ];
    let cases: Vec<(String, Vec<u8>)> =
        cases.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    for _ in 0..3 {
        scene.pass(&SIP, &cases);
        scene.pass(&WEB, &cases);
    }
    scene.finish();
}

#[test]
fn rfc4475_and_rfc5118_torture_is_survived() {
    let sets: Vec<PathBuf> = ["rfc4475", "rfc5118"].iter().filter_map(|name| bad_input(name)).collect();
    if sets.is_empty() {
        return;
    }
    let mut scene = Scene::new("torture");
    for set in sets {
        let inputs = files(&set);
        scene.pass(&SIP, &inputs);
        scene.pass(&WEB, &inputs);
    }
    scene.finish();
}

#[test]
fn fuzz_seeds_of_others_are_survived() {
    let Some(archive) = bad_input("pjsip-fuzz.tar.xz") else { return };
    let mut scene = Scene::new("seeds");
    let folder = scene.server.site.place.join("seeds");
    if !unpack(&archive, &folder) {
        return;
    }
    let inputs = files(&folder);
    scene.pass(&SIP, &inputs);
    scene.pass(&WEB, &inputs);
    scene.finish();
}

/// The cases of the suite: `<length> <bytes>` twice, the INVITE and what takes it down, with places to fill in.
fn parts(file: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = file;
    while let Some(blank) = rest.iter().position(|&byte| byte == b' ') {
        let length =
            std::str::from_utf8(&rest[..blank]).ok().and_then(|text| text.trim().parse::<usize>().ok());
        let Some(length) = length else { break };
        let end = (blank + 1 + length).min(rest.len());
        parts.push(&rest[blank + 1..end]);
        rest = &rest[end..];
    }
    parts
}

fn fill(template: &[u8], number: usize, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let values = [
        ("<To>", format!("sip:echo@{to}")),
        ("<From>", format!("sip:mallory@{from}")),
        ("<From-Address>", format!("mallory@{from}")),
        ("<From-IP>", from.ip().to_string()),
        ("<Local-Port>", from.port().to_string()),
        ("<Branch-ID>", format!("z9hG4bK{number}")),
        ("<Call-ID>", format!("protos{number}")),
        ("<CSeq>", number.to_string()),
        ("<Teardown-Method>", "CANCEL".to_owned()),
        ("<Content-Length>", "0".to_owned()),
    ];
    let mut filled = Vec::with_capacity(template.len() + 200);
    let mut rest = template;
    while let Some((first, tail)) = rest.split_first() {
        match values.iter().find(|(name, _)| rest.starts_with(name.as_bytes())) {
            Some((name, value)) => {
                filled.extend_from_slice(value.as_bytes());
                rest = &rest[name.len()..];
            }
            None => {
                filled.push(*first);
                rest = tail;
            }
        }
    }
    filled
}

#[test]
fn the_protos_suite_is_survived() {
    let Some(archive) = bad_input("protos-c07-sip.tar.xz") else { return };
    let mut scene = Scene::new("protos");
    let folder = scene.server.site.place.join("protos");
    if !unpack(&archive, &folder) {
        return;
    }
    let from = scene.stranger.local_addr().expect("its address");
    let mut messages = Vec::new();
    for (number, (name, file)) in files(&folder).into_iter().enumerate() {
        let filled = parts(&file).into_iter().map(|part| fill(part, number, from, scene.sip()));
        messages.extend(filled.map(|message| (name.clone(), message)));
    }
    scene.pass(&SIP, &messages);
    scene.finish();
}

/// Unpacks the generated set; nothing, and said, when it is absent.
fn generated(scene: &Scene) -> Option<PathBuf> {
    let archive = bad_input("generated.tar.xz")?;
    let folder = scene.server.site.place.join("set");
    unpack(&archive, &folder).then(|| folder.join("generated"))
}

#[test]
fn hostile_session_descriptions_are_answered() {
    let mut scene = Scene::new("sdp");
    let mut offers: Vec<(String, Vec<u8>)> = [
        "v=0\r\n",
        "m=audio 0 RTP/AVP\r\n",
        "v=0\r\no=- 1 1 IN IP4 x\r\ns=-\r\nc=IN IP4 999.1.1.1\r\nt=0 0\r\nm=audio 99999 RTP/AVP 0\r\n",
        "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 999 -1 0\r\na=rtpmap:\r\na=ptime:0\r\n",
        "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 255.255.255.255\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\na=ptime:99999999999\r\n",
    ]
    .iter()
    .enumerate()
    .map(|(number, text)| (format!("own {number}"), text.as_bytes().to_vec()))
    .collect();
    if let Some(folder) = generated(&scene) {
        offers.extend(files(&folder.join("sdp")));
    }
    for (name, offer) in offers {
        let mut mallory = Phone::at(scene.stranger_ip(), scene.sip(), "mallory");
        mallory.offer = Some(offer);
        match mallory.call("echo").status() {
            Some(200) => mallory.hang_up(),
            Some(400..700) => {}
            other => panic!("'{name}' is answered {other:?}"),
        }
        assert!(scene.server.alive(), "'{name}' ends the process");
    }
    wait::until_true("only the good call is left", || scene.server.channels() == 1);
    scene.finish();
}

#[test]
fn hostile_rtp_and_rtcp_end_nothing() {
    let scene = Scene::new("rtp");
    let mut packets: Vec<(String, Vec<u8>)> = vec![
        ("nothing".into(), Vec::new()),
        ("a byte".into(), vec![0x80]),
        ("no payload".into(), vec![0x80, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]),
        ("15 sources, none there".into(), vec![0x8f, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]),
        ("an extension without an end".into(), vec![0x90, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0xff, 0xff]),
        ("more padding than packet".into(), vec![0xa0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0xff]),
        ("a digit of nothing".into(), vec![0x80, 101, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]),
        ("a report without an end".into(), vec![0x81, 200, 0xff, 0xff, 0, 0, 0, 1]),
        ("a report of 31 sources, none there".into(), vec![0x9f, 201, 0, 1, 0, 0, 0, 1]),
    ];
    if let Some(folder) = generated(&scene) {
        for set in ["rtp", "rtcp", "stun", "udptl"] {
            packets.extend(files(&folder.join(set)));
        }
    }
    for set in ["libsrtp-fuzz", "pjsip-fuzz", "openssl-dtlsclient", "openssl-dtlsserver"] {
        let Some(archive) = bad_input(&format!("{set}.tar.xz")) else { continue };
        let folder = scene.server.site.place.join(set);
        if unpack(&archive, &folder) {
            packets.extend(files(&folder));
        }
    }
    packets.retain(|(_, packet)| packet.len() <= DATAGRAM_BYTES_MAX);
    let sound = [0x80, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1].into_iter().chain([0x55; 160]).collect::<Vec<u8>>();
    let mut random = kit::Random(9);
    packets.extend((0..2000).map(|number| {
        let mut spoiled = sound.clone();
        kit::spoil(&mut random, &mut spoiled);
        (format!("spoiled {number}"), spoiled)
    }));
    // A call under SRTP that must not notice either, and one that gives up its own audio.
    let mut sealed = installed(&["baresip"]).then(|| {
        let mut phone = Baresip::sealed(scene.sip(), "sealed", "pcmu", 1100.0, "srtp-mand");
        phone.dial(&format!("sip:echo@{}", scene.sip()));
        phone.until_heard(1100.0);
        phone
    });
    let mut mallet = Phone::new(scene.sip(), "mallet");
    "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz\r\n"
        .clone_into(&mut mallet.also);
    let answer = mallet.must_call("echo");
    assert!(answer.text().contains("a=crypto:1 "), "it is under SRTP: {}", answer.text());
    let under_srtp = SocketAddr::new(scene.sip().ip(), port_of(&answer));
    // A second call gives up its own audio; a stranger tries the first one's ports.
    let mut mallory = Phone::new(scene.sip(), "mallory");
    mallory.media.speak(Speak::Tone(750.0));
    let answer = mallory.must_call("echo");
    wait::until_true("the second call is up", || mallory.media.heard().tone(750.0) >= 200);
    let port = port_of(&answer);
    let own = SocketAddr::new(scene.sip().ip(), port);
    let good = scene.alice.media.heard().sources()[0];
    // Whatever port is open for the phone under SRTP.
    let others = [own.port(), under_srtp.port(), good.port(), scene.sip().port()].map(|port| port & !1);
    let sockets = scene.server.sockets();
    let media: Vec<u16> = sockets
        .iter()
        .filter(|(kind, at)| *kind == "udp" && !others.contains(&(at.port() & !1)))
        .map(|(_, at)| at.port())
        .collect();
    assert!(!media.is_empty() || sealed.is_none(), "{sockets:?}");
    for (_, packet) in &packets {
        for at in [own, SocketAddr::new(own.ip(), port + 1)] {
            mallory.media.send_raw(packet, at);
        }
        for port in [under_srtp.port(), under_srtp.port() + 1] {
            mallet.media.send_raw(packet, (under_srtp.ip(), port).into());
        }
        for port in media.iter().chain(&[good.port(), good.port() + 1]) {
            let _sent = scene.stranger.send_to(packet, (good.ip(), *port));
        }
    }
    scene.stranger.set_nonblocking(true).expect("a mode");
    assert!(scene.stranger.recv(&mut [0; 4096]).is_err(), "whoever sprays ports of media gets nothing back");
    let heard = scene.alice.media.heard();
    assert_eq!(heard.tone(750.0), 0);
    if let Some(sealed) = &mut sealed {
        let before = sealed.heard(1100.0);
        wait::until_true("the call under SRTP goes on", || sealed.heard(1100.0) >= before + 500);
        sealed.hang_up();
    }
    mallory.hang_up();
    mallet.hang_up();
    wait::until_true("only the good call is left", || scene.server.channels() == 1);
    scene.drain();
    scene.finish();
}

/// Where a description wants the audio.
fn port_of(answer: &e2e::Message) -> u16 {
    let media = answer.sdp("m=audio ").expect("audio");
    media.split(' ').next().and_then(|port| port.parse().ok()).expect("a port")
}

#[test]
fn hostile_manager_input_is_survived() {
    let mut scene = Scene::new("ami");
    let mut inputs: Vec<(String, Vec<u8>)> = vec![
        ("no line end".into(), vec![b'a'; 100_000]),
        ("headers without an end".into(), b"Action: Login\r\n".repeat(5_000)),
        ("zeros".into(), vec![0; 4096]),
    ];
    if let Some(folder) = generated(&scene) {
        inputs.extend(files(&folder.join("ami")));
    }
    scene.pass(&ACTIONS, &inputs);
    scene.finish();
}

#[test]
fn hostile_frames_end_nothing_but_their_connection() {
    let mut scene = Scene::new("frames");
    let options = b"OPTIONS sip:a SIP/2.0\r\n\r\n";
    let mut inputs: Vec<(String, Vec<u8>)> = vec![
        (
            "empty pieces".into(),
            [frame(0x01, b""), frame(0x00, b"").repeat(5_000), frame(0x80, b"")].concat(),
        ),
        ("pings".into(), frame(0x89, &[0; 125]).repeat(5_000)),
        ("goodbyes".into(), frame(0x88, &1000u16.to_be_bytes()).repeat(1_000)),
        ("half a frame".into(), frame(0x81, options)[..20].to_vec()),
        ("a length of 2^64 - 1".into(), [&[0x82][..], &[0xff; 9], &[0; 100]].concat()),
    ];
    if let Some(folder) = generated(&scene) {
        inputs.extend(files(&folder.join("ws")));
    }
    let mut random = kit::Random(7);
    inputs.extend((0..200).map(|number| {
        let mut spoiled = frame(0x81, options).repeat(3);
        kit::spoil(&mut random, &mut spoiled);
        (format!("spoiled {number}"), spoiled)
    }));
    scene.pass(&FRAMES, &inputs);
    // The same without having asked.
    scene.pass(&WEB, &inputs);
    scene.message(options);
    scene.finish();
}

#[test]
fn what_belongs_to_other_protocols_is_passed_over() {
    let mut scene = Scene::new("others");
    let Some(folder) = generated(&scene) else { return };
    for set in ["stun", "iax2", "udptl"] {
        let inputs = files(&folder.join(set));
        scene.pass(&SIP, &inputs);
        scene.pass(&WEB, &inputs);
    }
    scene.finish();
}

impl Scene {
    fn stranger_ip(&self) -> IpAddr {
        self.stranger.local_addr().expect("its address").ip()
    }
}
