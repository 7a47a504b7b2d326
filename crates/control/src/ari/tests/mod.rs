//! The REST interface on a small running system, on invented time.

mod auth;
mod field;
mod hostile;
mod shapes;
mod socket;
mod table;
mod verbs;

use base::ChannelId;
use call::Location;
use core::time::Duration;
use serde_json::Value;
use sim::World;
use store::{Snapshot, Where};

use super::*;
use crate::testing::{self, Folder};

const DIALPLAN: &str = "[default]\nexten => 100,1,Stasis(hello,one,two)\nsame => n,Wait(60)\n\
    exten => 101,1,Answer()\nsame => n,Wait(600)\nexten => 102,1,Dial(SIM/bob)\nexten => 103,1,Stasis(other)\n\
    exten => 104,1,StasisBroadcast(1000,^s,x:y,yes)\nsame => n,Wait(60)\n";

const PASSWORD: &str = "a secret of twenty";

/// `full` may everything, `looks` nothing but look, `far` comes from elsewhere.
const CONF: &str = "[general]\nenabled = yes\nauth_realm = The \"realm\"\nchannelvars = COLOUR\n\
    allowed_origins = https://panel.example.com\n\
    [full]\ntype = user\npassword = a secret of twenty\n\
    [hashed]\ntype = user\npassword_format = crypt\n\
    password = $6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1\n\
    [looks]\ntype = user\npassword = a secret of twenty\nread_only = yes\n\
    [far]\ntype = user\npassword = a secret of twenty\ndeny = 0.0.0.0/0\npermit = 192.0.2.0/24\n";

/// An answer: status, headers, body.
struct Heard {
    status: u16,
    head: String,
    body: String,
}

impl Heard {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|why| panic!("{why}: {}", self.body))
    }
    fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_default().to_owned()
    }
}

struct Desk {
    world: World,
    ari: Ari,
    http: Http,
    site: Rc<Site>,
    out: Vec<Output>,
    told: usize,
    last: u64,
    _folder: Folder,
}

fn peer() -> SocketAddr {
    "127.0.0.1:40000".parse().unwrap()
}

impl Desk {
    fn new(name: &str) -> Self {
        Self::with(name, "")
    }
    /// With more lines in `[general]` of ari.conf.
    fn with(name: &str, more: &str) -> Self {
        let folder = Folder::new(&format!("ari-{name}"));
        let conf = CONF.replacen("[general]\n", &format!("[general]\n{more}"), 1);
        std::fs::write(folder.join("ari.conf"), conf).unwrap();
        std::fs::write(folder.join("http.conf"), "[general]\nenabled = yes\nprefix = pbx\n").unwrap();
        let world = testing::world(DIALPLAN);
        let (snapshot, _) = Snapshot::load(&Where::Dir(folder.to_path_buf())).unwrap();
        let site = testing::site(&world, &folder, snapshot, testing::sip_config());
        let local = Rc::new(std::cell::RefCell::new(driver::local::LocalDriver::default()));
        local.borrow_mut().set_tech_index(world.shard.add_tech(local.clone()));
        let (ari, http) = (Ari::new(site.clone()), Http::new(site.clone()));
        Self { world, ari, http, site, out: Vec::new(), told: 0, last: 0, _folder: folder }
    }
    /// Sends bytes on a new connection; its number.
    fn send(&mut self, request: &[u8]) -> u64 {
        self.last += 1;
        self.http.open(self.last, peer(), false, &mut self.out);
        self.http.bytes(self.last, request, &mut self.out);
        let now = self.world.now();
        for request in self.http.take_ari() {
            self.ari.request(request, &mut self.http, now, &mut self.out);
        }
        self.last
    }
    /// What was sent to a connection since it was last asked, and whether it was closed.
    fn sent(&mut self, connection: u64) -> (Vec<u8>, bool) {
        let (mut bytes, mut is_closed) = (Vec::new(), false);
        self.out.retain(|output| match output {
            Output::Send(id, more) if *id == connection => {
                bytes.extend_from_slice(more);
                false
            }
            Output::Close(id) if *id == connection => {
                is_closed = true;
                false
            }
            _ => true,
        });
        (bytes, is_closed)
    }
    fn raw(&mut self, request: &[u8]) -> Heard {
        let connection = self.send(request);
        let (bytes, is_closed) = self.sent(connection);
        assert!(is_closed, "{}", String::from_utf8_lossy(request));
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Heard { status, head: head.to_owned(), body: body.to_owned() }
    }
    /// As the user `full`.
    fn ask(&mut self, method: &str, target: &str, body: &str) -> Heard {
        self.ask_as("full", PASSWORD, method, target, body)
    }
    fn ask_as(&mut self, user: &str, password: &str, method: &str, target: &str, body: &str) -> Heard {
        let token = crate::base64::encode(format!("{user}:{password}").as_bytes());
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let text = format!(
            "{method} /pbx/ari{target} HTTP/1.1\r\nHost: pbx.example.com:8088\r\nAuthorization: Basic {token}\r\n{kind}\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.raw(text.as_bytes())
    }
    /// A program that hears for these applications; the connection's number.
    fn connect(&mut self, query: &str) -> u64 {
        let key = PASSWORD.replace(' ', "+");
        let text = format!(
            "GET /pbx/ari/events?api_key=full:{key}&{query} HTTP/1.1\r\nHost: pbx\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        let connection = self.send(text.as_bytes());
        let (bytes, is_closed) = self.sent(connection);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("HTTP/1.1 101 ") && !is_closed, "{text}");
        assert!(self.ari.has(connection));
        connection
    }
    /// Events that a connection was sent, as JSON.
    fn events(&mut self, connection: u64) -> Vec<Value> {
        self.tell();
        let (bytes, _) = self.sent(connection);
        let mut rest = bytes.as_slice();
        let mut events = Vec::new();
        while let [first, second, tail @ ..] = rest {
            assert_eq!(*first, 0x81, "text frames only");
            let (length, tail) = match second {
                126 => (usize::from(u16::from_be_bytes([tail[0], tail[1]])), &tail[2..]),
                short => (usize::from(*short), tail),
            };
            events.push(serde_json::from_slice(&tail[..length]).unwrap());
            rest = &tail[length..];
        }
        events
    }
    /// Names of the events.
    fn names(&mut self, connection: u64) -> Vec<String> {
        let events = self.events(connection);
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }
    fn tell(&mut self) {
        let mut notices = self.world.notices.split_off(self.told);
        notices.append(&mut self.world.shard.core.borrow_mut().notices);
        self.told = self.world.notices.len();
        self.ari.notices(&notices, &mut self.out);
    }
    fn pass(&mut self, millis: u64) {
        let at = self.world.now() + Duration::from_millis(millis);
        self.world.run_until(at);
    }
    /// A call that runs the dialplan; its UNIQUEID.
    fn call(&mut self, phone: &str, exten: &str) -> String {
        let location = Location { context: "default".into(), exten: exten.into(), priority: 1 };
        let id = self.world.incoming(phone, &format!("\"{phone}\" <6001>"), location.clone(), &[]);
        assert!(apps::pbx::start(&self.world.shard, id, location));
        self.world.run_until(self.world.now());
        self.uniqueid(id)
    }
    fn uniqueid(&self, id: ChannelId) -> String {
        self.world.shard.core.borrow().get(id).unwrap().uniqueid.to_string()
    }
}
