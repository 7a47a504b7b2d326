//! IAX2 with what is not ours: a modem of Debian, frames that are spoiled, strangers who try names.

use e2e::{Phone, Server, Site, Speak, bad_input, installed, unpack, wait};
use md5::{Digest as _, Md5};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What fax machines send who call (T.30 §4.2), and who answer (§4.3.3.2), Hz.
const CALLING: f64 = 1100.0;
/// See [`CALLING`].
const ANSWERING: f64 = 2100.0;
/// Milliseconds of a tone that count as heard; who calls sends half a second of each three and a half.
const ENOUGH: u32 = 300;

const SECRET: &str = "the-password-of-a-modem";

/// `iaxmodem`, with its terminal.
struct Modem {
    process: Child,
    device: PathBuf,
    terminal: Option<File>,
    said: Arc<Mutex<String>>,
}

impl Modem {
    /// One that registers as `modem`; `None` where the package is not installed.
    fn start(server: &Server) -> Option<Self> {
        if !installed(&["iaxmodem", "stty"]) || !Path::new("/etc/iaxmodem").is_dir() {
            println!("skipped: calls with iaxmodem, which is not installed");
            return None;
        }
        let port = UdpSocket::bind("0.0.0.0:0").expect("a port").local_addr().expect("its address").port();
        let place = &server.site.place;
        let (device, config) = (place.join("modem"), place.join("modem.conf"));
        let text = format!(
            "device {}\nowner root:root\nmode 660\nport {port}\nrefresh 60\nserver {}\npeername modem\nsecret {SECRET}\n\
             cidname Fax\ncidnumber 8005551212\ncodec ulaw\n",
            device.display(),
            server.site.sip.ip()
        );
        std::fs::write(&config, text).expect("its configuration");
        let process = Command::new("iaxmodem")
            // It looks below /etc/iaxmodem.
            .arg(format!("../..{}", config.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("iaxmodem");
        Some(Self { process, device, terminal: None, said: Arc::default() })
    }
    /// Opens the terminal and takes what comes from it.
    fn open(&mut self) {
        wait::until_true("the modem's terminal is there", || self.device.exists());
        let raw = Command::new("stty").arg("-F").arg(&self.device).args(["raw", "-echo"]).status();
        assert!(raw.expect("stty").success());
        let terminal = File::options().read(true).write(true).open(&self.device).expect("its terminal");
        let lines = BufReader::new(terminal.try_clone().expect("the terminal again"));
        let said = self.said.clone();
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut said = said.lock().expect("what was said");
                said.push_str(line.trim());
                said.push('\n');
            }
        });
        self.terminal = Some(terminal);
    }
    fn order(&mut self, command: &str) {
        let terminal = self.terminal.as_mut().expect("an open terminal");
        terminal.write_all(format!("{command}\r").as_bytes()).expect("an order");
    }
    /// Waits until it has said this, and forgets what it said.
    fn says(&self, words: &str) {
        wait::until_true(&format!("the modem says {words}"), || {
            let mut said = self.said.lock().expect("what was said");
            let heard = said.contains(words);
            if heard {
                said.clear();
            }
            heard
        });
    }
}

impl Drop for Modem {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A site where `modem` may register and call, and alice has a phone.
fn site(name: &str) -> Site {
    let site = Site::new(name).phone("alice");
    let ip = site.sip.ip();
    site.add(
        "iax.conf",
        &format!(
            "[general]\nbindaddr={ip}\ndisallow=all\nallow=ulaw,slin\n\
             [modem]\ntype=friend\nhost=dynamic\nsecret={SECRET}\ncontext=test\nrequirecalltoken=no\nqualify=yes\n\
             [known]\ntype=friend\nhost=dynamic\nsecret={SECRET}\ncontext=test\n"
        ),
    )
    .dialplan(
        "[test]\nexten => 600,1,Set(DB(told/of)=${CALLERID(num)} ${CALLERID(name)})\n same => n,Dial(PJSIP/alice,30)\n\
         exten => modem,1,Dial(IAX2/modem/77,30)\nexten => echo,1,Answer()\n same => n,Echo()\n",
    )
}

fn iax(server: &Server) -> SocketAddr {
    SocketAddr::new(server.site.sip.ip(), 4569)
}

/// A modem in fax class 1 that has registered, and alice's phone.
fn modem_and_alice(server: &Server) -> Option<(Modem, Phone)> {
    let mut modem = Modem::start(server)?;
    modem.open();
    server.until_logged(&["Registered IAX2 'modem' at "]);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_register();
    for command in ["ATE0", "AT+FCLASS=1"] {
        modem.order(command);
        modem.says("OK");
    }
    Some((modem, alice))
}

#[test]
fn iaxmodem_registers_and_calls() {
    let server = Server::start(site("iaxmodem-calls"));
    let Some((mut modem, mut alice)) = modem_and_alice(&server) else { return };
    modem.order("ATDT600");
    let invite = alice.ring();
    alice.take(&invite);
    wait::until_true("alice hears a fax machine that calls", || alice.media.heard().tone(CALLING) >= ENOUGH);
    assert_eq!(server.database("told", "of"), "8005551212 Fax");
    alice.hang_up();
    modem.says("NO CARRIER");
    server.until_idle();
}

#[test]
fn iaxmodem_registers_and_is_called() {
    let server = Server::start(site("iaxmodem-called"));
    let Some((mut modem, mut alice)) = modem_and_alice(&server) else { return };
    alice.begin("modem");
    modem.says("RING");
    modem.order("ATA");
    assert_eq!(alice.outcome().status(), Some(200));
    alice.media.speak(Speak::Tone(440.0));
    wait::until_true("alice hears a fax machine that answers", || {
        alice.media.heard().tone(ANSWERING) >= ENOUGH
    });
    alice.hang_up();
    modem.says("NO CARRIER");
    server.until_idle();
}

#[test]
fn frames_that_are_spoiled_disturb_no_call_and_leave_nothing() {
    let mut server = Server::start(site("iax-spoiled"));
    let Some(archive) = bad_input("generated.tar.xz") else { return };
    let folder = server.site.place.join("set");
    if !unpack(&archive, &folder) {
        return;
    }
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Tone(440.0));
    alice.must_call("echo");
    wait::until_true("the call is up", || alice.media.heard().tone(440.0) >= 200);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder.join("generated/iax2"))
        .expect("the set")
        .map(|entry| entry.expect("a file").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let stranger = UdpSocket::bind((server.site.sip.ip(), 0)).expect("a port");
    stranger.set_nonblocking(true).expect("a mode");
    for path in paths {
        let mut bytes = Vec::new();
        File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)).expect("a frame");
        // What is longer than a datagram does not leave.
        let _sent = stranger.send_to(&bytes, iax(&server));
        while stranger.recv(&mut [0; 2048]).is_ok() {}
        assert!(server.alive(), "{} ends the process", path.display());
    }
    let heard = alice.media.heard().tone(440.0);
    wait::until_true("the call goes on", || alice.media.heard().tone(440.0) > heard + 200);
    assert_eq!(server.channels(), 1, "no frame has made a call");
    server.assert_healthy();
    alice.hang_up();
    server.until_idle();
}

/// Elements of a frame: number and data.
type Elements = Vec<(u8, Vec<u8>)>;

/// What a registrar says to who tries a name: the frames with what differs each time taken out.
struct Stranger {
    socket: UdpSocket,
    server: SocketAddr,
    number: u16,
}

/// Elements of RFC 5456 §8.6: username, MD5 challenge and result, refresh, call token.
const USERNAME: u8 = 6;
/// See [`USERNAME`].
const CHALLENGE: u8 = 15;
/// See [`USERNAME`].
const MD5_RESULT: u8 = 16;
/// See [`USERNAME`].
const CALL_TOKEN: u8 = 54;
/// Subclasses of RFC 5456 §8.4.
const ACK: u8 = 4;
/// See [`ACK`].
const REGREQ: u8 = 13;

impl Stranger {
    fn new(server: SocketAddr, number: u16) -> Self {
        let socket = UdpSocket::bind((server.ip(), 0)).expect("a port");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
        Self { socket, server, number }
    }
    /// Sends a full frame (RFC 5456 §8.1.1).
    fn send(&self, theirs: u16, (sent, taken): (u8, u8), command: u8, elements: &[(u8, &[u8])]) {
        let mut frame = Vec::new();
        frame.extend((self.number | 0x8000).to_be_bytes());
        frame.extend(theirs.to_be_bytes());
        frame.extend(u32::from(sent).to_be_bytes());
        frame.extend([sent, taken, 6, command]);
        for (element, data) in elements {
            frame.extend([*element, u8::try_from(data.len()).expect("a short element")]);
            frame.extend(*data);
        }
        self.socket.send_to(&frame, self.server).expect("a frame leaves");
    }
    /// The next frame that is no mere acknowledgement: their number, its subclass, its elements.
    fn hear(&self) -> (u16, u8, Elements) {
        loop {
            let mut frame = [0; 2048];
            let length = self.socket.recv(&mut frame).expect("an answer");
            let frame = frame.get(..length).expect("its length");
            // Repetitions of what was heard before.
            if frame[2] & 0x80 != 0 || frame[11] == ACK {
                continue;
            }
            let mut elements = Elements::new();
            let mut rest = &frame[12..];
            while let [element, length, data @ ..] = rest {
                let (data, tail) = data.split_at(usize::from(*length));
                elements.push((*element, data.to_vec()));
                rest = tail;
            }
            return (u16::from_be_bytes([frame[0] & 0x7f, frame[1]]), frame[11], elements);
        }
    }
    /// Tries to register under a name; every frame that came back, without what is drawn anew each time.
    fn tries(&self, name: &str, secret: &str) -> Vec<(u8, Elements)> {
        let mut heard = Vec::new();
        let user = (USERNAME, name.as_bytes());
        self.send(0, (0, 0), REGREQ, &[user, (CALL_TOKEN, b"")]);
        let (_, command, elements) = self.hear();
        let token = taken(&elements, CALL_TOKEN);
        heard.push((command, elements));
        self.send(0, (0, 0), REGREQ, &[user, (CALL_TOKEN, &token)]);
        let (theirs, command, elements) = self.hear();
        let challenge = taken(&elements, CHALLENGE);
        heard.push((command, elements));
        let result = Md5::new().chain_update(&challenge).chain_update(secret).finalize();
        let result: String = result.iter().map(|byte| format!("{byte:02x}")).collect();
        self.send(theirs, (1, 1), REGREQ, &[user, (MD5_RESULT, result.as_bytes())]);
        let (_, command, elements) = self.hear();
        heard.push((command, elements));
        for (_, elements) in &mut heard {
            for (element, data) in elements {
                match *element {
                    // Told back as it was said.
                    USERNAME if data == name.as_bytes() => data.clear(),
                    // A number in decimal digits, so not always of one length.
                    CHALLENGE => data.clear(),
                    CALL_TOKEN => data.fill(0),
                    _ => {}
                }
            }
        }
        heard
    }
}

fn taken(elements: &[(u8, Vec<u8>)], wanted: u8) -> Vec<u8> {
    let found = elements.iter().find(|(element, _)| *element == wanted);
    found.unwrap_or_else(|| panic!("no element {wanted} in {elements:?}")).1.clone()
}

#[test]
fn who_is_unknown_and_who_has_a_wrong_password_hear_the_same_frames() {
    let server = Server::start(site("iax-alike"));
    let known = Stranger::new(iax(&server), 3).tries("known", "not its password");
    let unknown = Stranger::new(iax(&server), 3).tries("stranger", "not its password");
    assert_eq!(known, unknown);
    // CALLTOKEN, REGAUTH, REGREJ.
    assert_eq!(known.iter().map(|(command, _)| *command).collect::<Vec<_>>(), [40, 14, 16]);
    let right = Stranger::new(iax(&server), 3).tries("known", SECRET);
    assert_eq!(right.last().map(|(command, _)| *command), Some(15), "REGACK: the password itself is good");
}
