//! Manager sessions on a small running system, on invented time.

mod actions;
mod agi;
mod bridges;
mod charge;
mod config;
mod coverage;
mod events;
mod fields;
mod parking;
mod permissions;
mod queues;
mod sessions;
mod voicemail;
mod web;

use std::net::SocketAddr;

use base::ChannelId;
use call::Location;
use sim::World;
use store::{Snapshot, Where};

use super::*;
use crate::socket::{Answer, Call};
use crate::testing::{self, Folder};

const DIALPLAN: &str = "[default]\nexten => 110,1,ConfBridge(room)\nexten => 100,1,Answer()\nsame => n(talk),Wait(600)\nexten => 101,1,Wait(30)\n\
    exten => 102,1,Dial(SIM/bob)\nexten => 120,1,AGI(agi:async)\nexten => 6001,hint,Custom:lamp\n\
    [more]\nexten => before,1,Set(BEFORE=${ARG1}-${ARG2})\nsame => n,Return()\n";

/// `all` may everything, `one` nothing, `far` comes from elsewhere, `apart` has a filter and stamps.
const MANAGER: &str = "[general]\nenabled = yes\nbindaddr = 127.0.0.1\n\
    [all]\nsecret = a secret of twenty\nread = all\nwrite = all\nsetvar = WHO=all\n\
    [one]\nsecret = a secret of twenty\nread = call\n\
    [far]\nsecret = a secret of twenty\nread = all\nwrite = all\ndeny = 0.0.0.0/0\npermit = 192.0.2.0/24\n\
    [calls]\nsecret = a secret of twenty\nread = call\nwrite = call,originate\n\
    [reads]\nsecret = a secret of twenty\nread = reporting\nwrite = reporting\n\
    [steers]\nsecret = a secret of twenty\nread = agi\nwrite = agi\n\
    [apart]\nsecret = a secret of twenty\nread = all\nwrite = all\ntimestampevents = yes\nallowmultiplelogin = no\n\
    eventfilter = Event: Hangup\neventfilter = !Channel: SIM/bob\n";

/// Files without which the actions of their modules are not there.
const FILES: &[&str] =
    &["agents.conf", "confbridge.conf", "iax.conf", "pjsip_notify.conf", "queues.conf", "res_parking.conf"];

const SECRET: &str = "a secret of twenty";

struct Console;

impl Commands for Console {
    fn run(&mut self, call: Call<'_>) -> Answer {
        match call.line {
            "core show uptime" => Answer::ok("System uptime: 1 second\nLast reload: 1 second\n"),
            "count" => {
                let mut numbers = 0..10_000;
                Answer::Pages(crate::pages::Pages::new(move |out| {
                    let Some(number) = numbers.next() else { return false };
                    out.push_str(&format!("{number:09}\n"));
                    true
                }))
            }
            line => Answer::unknown(line, 0),
        }
    }
    fn complete(&mut self, _: &str, _: Option<crate::socket::Who>) -> Vec<String> {
        Vec::new()
    }
}

struct Desk {
    world: World,
    manager: Manager,
    out: Vec<Output>,
    local: Rc<RefCell<driver::local::LocalDriver>>,
    /// Notices of the world that were told already.
    told: usize,
    folder: Folder,
}

fn peer() -> SocketAddr {
    "127.0.0.1:40000".parse().unwrap()
}

impl Desk {
    fn new(name: &str) -> Self {
        let folder = Folder::new(&format!("ami-{name}"));
        std::fs::write(folder.join("manager.conf"), MANAGER).unwrap();
        FILES.iter().for_each(|file| std::fs::write(folder.join(file), "").unwrap());
        let mut world = testing::world(DIALPLAN);
        world.watch();
        let (snapshot, _) = Snapshot::load(&Where::Dir(folder.to_path_buf())).unwrap();
        let site = testing::site(&world, &folder, snapshot, testing::sip_config());
        let local = Rc::new(RefCell::new(driver::local::LocalDriver::default()));
        local.borrow_mut().set_tech_index(world.shard.add_tech(local.clone()));
        let mut manager = Manager::new(site);
        manager.set_commands(Rc::new(RefCell::new(Console)));
        manager.configure();
        Self { world, manager, out: Vec::new(), local, told: 0, folder }
    }
    fn open(&mut self, session: u64) -> String {
        self.open_from(session, peer())
    }
    fn open_from(&mut self, session: u64, peer: SocketAddr) -> String {
        let now = self.world.now();
        self.manager.open(session, peer, now, &mut self.out);
        self.sent(session)
    }
    /// What was sent to a session since it was last asked; `<closed>` at its end.
    fn sent(&mut self, session: u64) -> String {
        let (own, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.out)
            .into_iter()
            .partition(|output| matches!(output, Output::Send(id, _) | Output::Close(id) if *id == session));
        self.out = others;
        own.into_iter().fold(String::new(), |text, output| match output {
            Output::Send(_, bytes) => text + std::str::from_utf8(&bytes).unwrap(),
            Output::Close(_) => text + "<closed>",
        })
    }
    fn bytes(&mut self, session: u64, bytes: &[u8]) -> String {
        let now = self.world.now();
        self.manager.bytes(session, bytes, now, &mut self.out);
        self.sent(session)
    }
    /// Sends an action, headers separated by `|`.
    fn act(&mut self, session: u64, headers: &str) -> String {
        let text = format!("Action: {}\r\n\r\n", headers.replace('|', "\r\n"));
        self.bytes(session, text.as_bytes())
    }
    /// A session of a user, without events.
    fn login(&mut self, session: u64, user: &str) {
        self.open(session);
        let answer = self.act(session, &format!("Login|Username: {user}|Secret: {SECRET}|Events: off"));
        assert_eq!(answer, "Response: Success\r\nMessage: Authentication accepted\r\n\r\n");
    }
    /// Lets time pass to `millis` and tells what happened.
    fn pass_to(&mut self, millis: u64) {
        let at = Instant::ZERO + Duration::from_millis(millis);
        // Calls to Local channels begin while stories run.
        loop {
            let next = self.world.shard.deadline().map_or(at, |next| next.max(self.world.now()));
            self.world.run_until(next.min(at));
            let started = self.local.borrow_mut().take_started();
            if started.is_empty() && self.world.now() >= at {
                break;
            }
            for (id, location) in started {
                assert!(apps::pbx::start(&self.world.shard, id, location));
            }
        }
        self.tell();
        if self.manager.deadline().is_some_and(|due| due <= at) {
            self.manager.due(at, &mut self.out);
        }
    }
    fn tell(&mut self) {
        let mut notices = self.world.notices.split_off(self.told);
        notices.append(&mut self.world.shard.core.borrow_mut().notices);
        self.told = self.world.notices.len();
        self.manager.notices(&notices, &mut self.out);
        self.manager.flush(&mut self.out);
    }
    fn site(&self) -> Rc<Site> {
        self.manager.site.clone()
    }
    /// A call that runs the dialplan.
    fn call(&mut self, phone: &str, exten: &str) -> ChannelId {
        let location = Location { context: "default".into(), exten: exten.into(), priority: 1 };
        let id = self.world.incoming(phone, &format!("\"{phone}\" <6001>"), location.clone(), &[]);
        assert!(apps::pbx::start(&self.world.shard, id, location));
        self.world.run_until(self.world.now());
        id
    }
}

type Lines<'a> = Vec<(&'a str, &'a str)>;

/// Splits into messages of names and values; every message must be whole.
fn messages(text: &str) -> Vec<Lines<'_>> {
    let whole = text.strip_suffix("\r\n\r\n").unwrap_or_else(|| panic!("unfinished: {text:?}"));
    let line = |line| -> (&str, &str) { str::split_once(line, ": ").unwrap_or_else(|| panic!("{line:?}")) };
    whole.split("\r\n\r\n").map(|message| message.split("\r\n").map(line).collect()).collect()
}

fn field<'a>(message: &Lines<'a>, name: &str) -> Option<&'a str> {
    message.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
}

/// Names of the events in a text.
fn event_names(text: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    messages(text).iter().filter_map(|message| field(message, "Event")).map(str::to_owned).collect()
}

fn error(message: &str) -> String {
    format!("Response: Error\r\nMessage: {message}\r\n\r\n")
}
