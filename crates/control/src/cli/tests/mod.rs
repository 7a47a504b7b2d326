//! A small running system, and what its commands say of it.

mod bridges;
mod calls;
mod conferences;
mod config;
mod content;
mod iax;
mod inside;
mod plan;
mod process;
mod queues;
mod realtime;
mod sight;
mod sip;
mod table;
mod voicemail;

use std::rc::Rc;

use call::Location;
use driver::sip::Config;
use serde_json::Value;
use sim::World;
use store::{Defaults, Snapshot, Where};

use super::*;
use crate::testing::{self, Folder, sip_config};

const DIALPLAN: &str = "[globals]\nTRUNK=PJSIP/out\n\
    [default]\nexten => 100,1,Answer()\nsame => n(talk),Wait(600)\nexten => 101,1,Wait(30)\nexten => 102,1,ConfBridge(room)\n\
    exten => 6001,hint,Custom:lamp\n";

/// The system, and the folder it writes into.
struct Desk {
    world: World,
    cli: Cli,
    view: View,
    folder: Folder,
    /// Whom the kernel says that it is.
    who: Option<crate::socket::Who>,
}

impl Desk {
    fn new(name: &str) -> Self {
        Self::with(name, sip_config())
    }
    fn with(name: &str, sip: Config) -> Self {
        let folder = Folder::new(&format!("cli-{name}"));
        let world = testing::world(DIALPLAN);
        let defaults = Defaults {
            root: folder.to_path_buf(),
            data: folder.to_path_buf(),
            bind: Defaults::BIND,
            secrets: ["a secret of 20 letters".into(), "another one of twenty".into()],
        };
        let (snapshot, _) = Snapshot::load(&Where::Embedded(defaults)).unwrap();
        let cli = Cli::new(testing::site(&world, &folder, snapshot, sip));
        Self { world, cli, view: View::default(), folder, who: None }
    }
    /// A message comes in from 192.0.2.7.
    fn hear(&self, text: &str) {
        let site = &self.cli.site;
        let flow = ::sip::stack::Flow {
            transport: ::sip::stack::TransportId(0),
            protocol: ::sip::stack::Protocol::Udp,
            connection: None,
            name: ::sip::stack::PeerName::NONE,
            remote: ([192, 0, 2, 7], 5070).into(),
        };
        site.sip.borrow_mut().receive(&mut site.shard.core.borrow_mut(), flow, text.as_bytes());
    }
    /// Runs a command; what it said and its exit status.
    fn run(&mut self, line: &str) -> (String, u8) {
        self.ask(line, false)
    }
    fn ask(&mut self, line: &str, json: bool) -> (String, u8) {
        self.ask_as(line, json, true)
    }
    /// As a manager client without the class `system` would.
    fn run_as_caller(&mut self, line: &str) -> (String, u8) {
        self.ask_as(line, false, false)
    }
    fn ask_as(&mut self, line: &str, json: bool, may_reach_outside: bool) -> (String, u8) {
        let view = &mut self.view;
        let call = Call {
            session: 1,
            who: self.who,
            line,
            json,
            columns: 0,
            may_wait: false,
            may_reach_outside,
            rights: if may_reach_outside { dialplan::Rights::ALL } else { dialplan::Rights::CALLS },
            view,
        };
        match self.cli.run(call) {
            Answer::Done { text, status, .. } => (text, status),
            Answer::Pages(pages) => (std::iter::from_fn(|| pages.next()).collect(), 0),
            Answer::Later => panic!("{line} was to be answered at once"),
        }
    }
    /// Runs a command that succeeds.
    fn text(&mut self, line: &str) -> String {
        let (text, status) = self.run(line);
        assert_eq!(status, 0, "{line}: {text}");
        text
    }
    fn json(&mut self, line: &str) -> Value {
        let (text, status) = self.ask(line, true);
        assert_eq!(status, 0, "{line}: {text}");
        assert_eq!(text.lines().count(), 1, "{line}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}: {text}"))
    }
    fn lines(&mut self, line: &str) -> Vec<String> {
        self.text(line).lines().map(|line| line.trim_end().to_owned()).collect()
    }
    /// A call that runs the dialplan, `at` milliseconds after the start.
    fn call(&mut self, phone: &str, exten: &str) -> base::ChannelId {
        let location = Location { context: "default".into(), exten: exten.into(), priority: 1 };
        let caller = format!("\"Al!ce\x1b\" <{phone}>");
        let id = self.world.incoming(phone, &caller, location.clone(), &[]);
        assert!(apps::pbx::start(&self.world.shard, id, location));
        self.world.run_until(self.world.now());
        id
    }
    fn pass(&mut self, seconds: u64) {
        self.world.run_until(self.world.now() + core::time::Duration::from_secs(seconds));
    }
}
