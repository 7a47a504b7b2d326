//! Manager sessions on a small running system, on invented time.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use apps::hints::Hints;
use base::{Cause, ChannelId};
use call::{Location, PartyId};
use driver::sip::SipDriver;
use io::media::{MediaFront, MediaSettings, PortRange, Translation};
use md5::{Digest as _, Md5};
use sim::{Act, Phone, World};
use store::config::logger::Logger;
use store::config::tones::Tones;
use store::log::LogSink;
use store::sounds::{Catalogue, Sounds};
use store::{Snapshot, Where};

use super::*;
use crate::site::{Reloaded, Wish};
use crate::socket::{Answer, Call};

const DIALPLAN: &str = "[default]\nexten => 100,1,Answer()\nsame => n(talk),Wait(600)\nexten => 101,1,Wait(30)\n\
    exten => 102,1,Dial(SIM/bob)\nexten => 6001,hint,Custom:lamp\n";

/// `all` may everything, `one` nothing, `far` comes from elsewhere, `apart` has a filter and stamps.
const MANAGER: &str = "[general]\nenabled = yes\nbindaddr = 127.0.0.1\n\
    [all]\nsecret = a secret of twenty\nread = all\nwrite = all\nsetvar = WHO=all\n\
    [one]\nsecret = a secret of twenty\nread = call\n\
    [far]\nsecret = a secret of twenty\nread = all\nwrite = all\ndeny = 0.0.0.0/0\npermit = 192.0.2.0/24\n\
    [calls]\nsecret = a secret of twenty\nread = call\nwrite = call,originate\n\
    [apart]\nsecret = a secret of twenty\nread = all\nwrite = all\ntimestampevents = yes\nallowmultiplelogin = no\n\
    eventfilter = Event: Hangup\neventfilter = !Channel: SIM/bob\n";

const SECRET: &str = "a secret of twenty";

struct Console;

impl Commands for Console {
    fn run(&mut self, call: Call<'_>) -> Answer {
        match call.line {
            "core show uptime" => Answer::ok("System uptime: 1 second\nLast reload: 1 second\n"),
            line => Answer::unknown(line),
        }
    }
    fn complete(&mut self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

struct Desk {
    world: World,
    manager: Manager,
    out: Vec<Output>,
    /// Notices of the world that were told already.
    told: usize,
    folder: PathBuf,
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn peer() -> SocketAddr {
    "127.0.0.1:40000".parse().unwrap()
}

fn site(world: &World, folder: &Path) -> Rc<Site> {
    let (snapshot, _) = Snapshot::load(&Where::Dir(folder.to_owned())).unwrap();
    let (log, sender) = LogSink::start(&Logger::default(), folder, None).unwrap();
    let settings = MediaSettings {
        ports: PortRange { first: 10_000, last: 10_099 },
        workers: Some(1),
        real_time: false,
        lanes: Default::default(),
        random: Box::new(|| 4),
    };
    let (media, _) = MediaFront::start(settings).unwrap();
    let sounds = Sounds::start(Catalogue::default(), Tones::default(), || {}).unwrap();
    let mut hints = Hints::default();
    hints.update(&world.shard);
    let sip = Rc::new(RefCell::new(SipDriver::new(crate::cli::tests::sip_config(), 7, [7; 32], |_| None)));
    let index = world.shard.add_tech(sip.clone());
    sip.borrow_mut().set_tech_index(index);
    Rc::new(Site {
        shard: world.shard.clone(),
        sip,
        hints: Rc::new(RefCell::new(hints)),
        media: Rc::new(RefCell::new(media)),
        translation: Translation::open(io::media::Level::best(), folder, store::sounds::speech),
        sounds: Rc::new(RefCell::new(sounds)),
        snapshot: RefCell::new(snapshot),
        log,
        sender,
        started: Instant::ZERO,
        reloaded: Cell::new(Instant::ZERO),
        started_wall: 0,
        reloaded_wall: Cell::new(0),
        wishes: RefCell::default(),
        stopping: Cell::default(),
        last_reload: RefCell::default(),
        reload: RefCell::default(),
        counters: Cell::default(),
        fault_injection: Cell::default(),
    })
}

impl Desk {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("strowger-ami-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("manager.conf"), MANAGER).unwrap();
        let (program, findings) = sim::parse_dialplan(DIALPLAN, &apps::table::tables());
        assert_eq!(findings, [] as [&str; 0]);
        let mut world = World::new(program);
        world.watch();
        let mut manager = Manager::new(site(&world, &folder));
        manager.set_commands(Rc::new(RefCell::new(Console)));
        manager.configure();
        Self { world, manager, out: Vec::new(), told: 0, folder }
    }
    fn open(&mut self, session: u64) -> String {
        let now = self.world.now();
        self.manager.open(session, peer(), now, &mut self.out);
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
        self.world.run_until(at);
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

#[test]
fn plain_and_md5_login_open_the_session_and_the_first_event_says_that_all_is_up() {
    let mut desk = Desk::new("login");
    assert_eq!(desk.open(1), "Asterisk Call Manager/9.0.0\r\n");
    let answer = desk.act(1, &format!("login|ACTIONID: x1|USERNAME: all|SECRET: {SECRET}"));
    let expected = "Response: Success\r\nActionID: x1\r\nMessage: Authentication accepted\r\n\r\n\
        Event: FullyBooted\r\nPrivilege: system,all\r\nUptime: 0\r\nLastReload: 0\r\nStatus: Fully Booted\r\n\r\n";
    assert_eq!(answer, expected);
    assert_eq!(desk.manager.authenticated(), [1]);
    assert!(desk.manager.authenticated().is_empty());
    assert_eq!(desk.manager.connected().collect::<Vec<_>>(), [(1, "all", peer())]);

    desk.open(2);
    let challenge = desk.act(2, "Challenge|AuthType: MD5");
    let challenge = field(&messages(&challenge)[0], "Challenge").unwrap().to_owned();
    let key: String =
        Md5::digest(format!("{challenge}{SECRET}")).iter().map(|byte| format!("{byte:02X}")).collect();
    let answer = desk.act(2, &format!("Login|AuthType: MD5|Username: all|Key: {key}|Events: off"));
    assert_eq!(answer, "Response: Success\r\nMessage: Authentication accepted\r\n\r\n");
    // A challenge is good once.
    desk.open(3);
    let answer = desk.act(3, &format!("Login|AuthType: MD5|Username: all|Key: {key}"));
    assert_eq!(answer, error("Authentication failed") + "<closed>");
}

#[test]
fn every_refused_login_looks_alike_and_only_the_log_tells_them_apart() {
    let mut desk = Desk::new("refused");
    let empty_key: String = Md5::digest(SECRET).iter().map(|byte| format!("{byte:02x}")).collect();
    for (session, (login, event)) in (1..).zip([
        (format!("Username: nobody|Secret: {SECRET}"), "InvalidAccountID"),
        ("Username: all|Secret: wrong".to_owned(), "InvalidPassword"),
        ("Username: all|Secret: no user has this secret".to_owned(), "InvalidPassword"),
        ("Username: nobody|Secret: no user has this secret".to_owned(), "InvalidAccountID"),
        ("Username: all".to_owned(), "InvalidPassword"),
        ("Secret: x".to_owned(), "InvalidAccountID"),
        (format!("Username: far|Secret: {SECRET}"), "FailedACL"),
        (format!("Username: all|AuthType: MD5|Key: {empty_key}"), "ChallengeResponseFailed"),
        ("Username: all|AuthType: MD5|Key: 00".to_owned(), "ChallengeResponseFailed"),
        ("Username: a\u{1b}[31m\"b|Secret: x".to_owned(), "InvalidAccountID"),
    ]) {
        desk.open(session);
        let answer = desk.act(session, &format!("Login|{login}"));
        assert_eq!(answer, error("Authentication failed") + "<closed>", "{login}");
        let log = desk.world.log(Level::Security);
        let line = log.last().unwrap();
        assert!(line.starts_with(&format!("SecurityEvent=\"{event}\"")), "{login}: {line}");
        assert!(line.ends_with("RemoteAddress=\"IPV4/TCP/127.0.0.1/40000\""), "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
    assert!(desk.world.log(Level::Notice)[0].starts_with("127.0.0.1 failed to authenticate as 'nobody'"));
    assert!(!desk.world.log(Level::Security).concat().contains(SECRET));
}

#[test]
fn strangers_are_few_bounded_and_closed_in_time_and_nothing_of_theirs_is_dispatched() {
    let mut desk = Desk::new("strangers");
    for row in actions().filter(|row| !["Login", "Logoff", "Challenge"].contains(&row.name)) {
        desk.open(9);
        assert_eq!(desk.act(9, row.name), error("Permission denied"), "{}", row.name);
        desk.manager.closed(9);
    }
    for session in 0..STRANGERS_OF_ADDRESS_MAX as u64 {
        assert_eq!(desk.open(session), "Asterisk Call Manager/9.0.0\r\n");
    }
    assert_eq!(desk.open(100), "<closed>");
    // One writes too much, one trickles; both end, the first at once.
    let much = format!("X: {}", "y".repeat(STRANGER_BYTES_MAX));
    assert_eq!(desk.bytes(0, much.as_bytes()), "<closed>");
    assert_eq!(desk.bytes(0, b"Action: Ping\r\n\r\n"), "");
    desk.pass_to(4_999);
    assert_eq!(desk.bytes(1, b"Act"), "");
    desk.pass_to(5_000);
    assert_eq!(desk.sent(1), "<closed>");
    assert_eq!(desk.manager.deadline(), None);
    assert_eq!(desk.open(200), "Asterisk Call Manager/9.0.0\r\n");
}

#[test]
fn every_action_that_needs_a_class_is_refused_to_a_user_without_it_and_named_fields_are_needed() {
    let mut desk = Desk::new("matrix");
    desk.login(1, "one");
    desk.login(2, "all");
    for row in actions().filter(|row| !["Login", "Logoff"].contains(&row.name)) {
        if !row.class.is_empty() {
            let fields: String = row.fields.iter().map(|field| format!("|{}: 1", field.name)).collect();
            let answer = desk.act(1, &format!("{}{fields}", row.name));
            assert_eq!(answer, error("Permission denied"), "{}", row.name);
        }
        for class in row.class {
            assert!(store::config::manager::Classes::named(class).is_some(), "{}: {class}", row.name);
        }
        if let Some(field) = row.fields.iter().find(|field| field.required) {
            assert_eq!(
                desk.act(2, row.name),
                error(&format!("{} not specified", field.name)),
                "{}",
                row.name
            );
        }
    }
    let unknown = "Invalid/unknown command: Nonsense. Use Action: ListCommands to show available commands.";
    assert_eq!(desk.act(2, "Nonsense"), error(unknown));
    assert_eq!(desk.bytes(2, b"X: y\r\n\r\n"), error("Missing action in request"));
    let all = desk.act(2, "ListCommands");
    assert_eq!(messages(&all)[0].len(), 1 + actions().count());
    let few = desk.act(1, "ListCommands");
    assert!(few.contains("Ping: ") && !few.contains("Originate: "), "{few}");
}

#[test]
fn names_in_both_tables_are_unique_and_every_row_says_something() {
    let mut names: Vec<String> = actions().map(|row| row.name.to_ascii_lowercase()).collect();
    names.extend(EVENTS.iter().map(|row| format!("event {}", row.name)));
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    for row in actions() {
        assert!(row.synopsis.ends_with('.'), "{}", row.name);
        assert!(row.fields.iter().all(|field| !field.text.is_empty()), "{}", row.name);
    }
}

#[test]
fn a_user_who_may_be_logged_in_once_is_not_logged_in_twice() {
    let mut desk = Desk::new("twice");
    desk.login(1, "apart");
    desk.open(2);
    let answer = desk.act(2, &format!("Login|Username: apart|Secret: {SECRET}"));
    assert_eq!(answer, error("Login Already In Use") + "<closed>");
    assert_eq!(
        desk.act(1, "Logoff"),
        "Response: Goodbye\r\nMessage: Thanks for all the fish.\r\n\r\n<closed>"
    );
    desk.login(3, "apart");
}

#[test]
fn a_call_through_dial_is_told_with_the_fields_that_clients_rely_on() {
    let mut desk = Desk::new("events");
    desk.login(1, "all");
    assert!(!desk.manager.watching());
    assert_eq!(desk.act(1, "Events|EventMask: on"), "Response: Success\r\nEvents: On\r\n\r\n");
    assert!(desk.manager.watching());
    desk.world.phone("bob", Phone { acts: vec![(100, Act::Ring), (500, Act::Answer)], refuses: None });
    let id = desk.call("alice", "102");
    desk.pass_to(1_000);
    desk.world.act(id, Duration::ZERO, Act::Hangup(Cause::NORMAL_CLEARING));
    desk.pass_to(2_000);
    let text = desk.sent(1);
    let all = messages(&text);
    let names = event_names(&text);
    for name in [
        "Newchannel",
        "Newexten",
        "DialBegin",
        "DialState",
        "DialEnd",
        "BridgeCreate",
        "BridgeEnter",
        "BridgeLeave",
        "BridgeDestroy",
        "Newstate",
        "HangupRequest",
        "Hangup",
    ] {
        assert!(names.iter().any(|known| known == name), "{name} is missing of {names:?}");
    }
    let order = |name: &str| names.iter().position(|known| known == name);
    assert!(order("DialBegin") < order("DialEnd") && order("DialEnd") < order("BridgeEnter"));
    let channel = [
        "Channel",
        "ChannelState",
        "ChannelStateDesc",
        "CallerIDNum",
        "CallerIDName",
        "ConnectedLineNum",
        "ConnectedLineName",
        "Language",
        "AccountCode",
        "Context",
        "Exten",
        "Priority",
        "Uniqueid",
        "Linkedid",
    ];
    let bridge = [
        "BridgeUniqueid",
        "BridgeType",
        "BridgeTechnology",
        "BridgeCreator",
        "BridgeName",
        "BridgeNumChannels",
        "BridgeVideoSourceMode",
    ];
    for message in &all {
        let name = field(message, "Event").unwrap();
        let row = EVENTS
            .iter()
            .find(|row| row.name == name)
            .unwrap_or_else(|| panic!("{name} is not in the table"));
        assert_eq!(message[1], ("Privilege", format!("{},all", row.class).as_str()), "{name}");
        let expected: Vec<String> = row
            .fields
            .iter()
            .flat_map(|field| match *field {
                "Channel*" => channel.iter().map(|name| (*name).to_owned()).collect(),
                "Dest*" => channel.iter().map(|name| format!("Dest{name}")).collect(),
                "Bridge*" => bridge.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(),
                field => vec![field.to_owned()],
            })
            .collect();
        for (key, _) in message.iter().skip(2) {
            assert!(
                expected.iter().any(|known| known == key),
                "{name} has {key}, which its row does not name"
            );
        }
    }
    let begin = all.iter().find(|message| field(message, "Event") == Some("DialBegin")).unwrap();
    assert_eq!(field(begin, "Channel"), Some("SIM/alice-00000000"));
    assert_eq!(field(begin, "CallerIDName"), Some("alice"));
    assert_eq!(field(begin, "DestChannel"), Some("SIM/bob-00000001"));
    assert_eq!(field(begin, "DestConnectedLineNum"), Some("6001"));
    assert_eq!(field(begin, "DestCallerIDName"), Some("<unknown>"));
    let end = all.iter().rfind(|message| field(message, "Event") == Some("Hangup")).unwrap();
    assert_eq!((field(end, "Cause"), field(end, "Cause-txt")), (Some("16"), Some("Normal Clearing")));
}

#[test]
fn events_go_to_those_who_may_and_want_to_hear_them_and_pass_their_filters() {
    let mut desk = Desk::new("masks");
    for (session, user) in [(1, "all"), (2, "one"), (3, "apart")] {
        desk.login(session, user);
        desk.act(session, "Events|EventMask: on");
    }
    desk.login(4, "all");
    assert_eq!(desk.act(4, "Events|EventMask: user,dtmf"), "Response: Success\r\nEvents: On\r\n\r\n");
    desk.world.phone("bob", Phone { acts: vec![(10, Act::Hangup(Cause::USER_BUSY))], refuses: None });
    let id = desk.call("alice", "102");
    desk.world.act(id, Duration::from_millis(200), Act::Hangup(Cause::NORMAL_CLEARING));
    desk.act(4, "UserEvent|UserEvent: Hello|Text: x");
    desk.pass_to(1_000);
    let all = event_names(&desk.sent(1));
    assert!(all.contains(&"Newexten".to_owned()) && all.contains(&"UserEvent".to_owned()), "{all:?}");
    let calls = event_names(&desk.sent(2));
    assert!(calls.contains(&"Hangup".to_owned()), "{calls:?}");
    assert!(
        !calls.iter().any(|name| ["Newexten", "VarSet", "UserEvent"].contains(&name.as_str())),
        "{calls:?}"
    );
    let filtered = desk.sent(3);
    assert_eq!(event_names(&filtered), ["Hangup"]);
    let stamp = field(&messages(&filtered)[0], "Timestamp").unwrap();
    assert_eq!(stamp.split_once('.').map(|(seconds, micros)| (seconds.len(), micros.len())), Some((10, 6)));
    assert_eq!(event_names(&desk.sent(4)), ["UserEvent"]);
    // Filters of the session's own come on top.
    assert_eq!(desk.act(4, "Filter|Filter: Text: y"), "Response: Success\r\nMessage: Filter Added\r\n\r\n");
    for text in ["x", "y"] {
        desk.act(1, &format!("UserEvent|UserEvent: Hello|Text: {text}"));
    }
    desk.tell();
    assert_eq!(messages(&desk.sent(4)).len(), 1);
    assert!(desk.act(4, "Filter|Filter: (").starts_with("Response: Error"));
}

#[test]
fn no_value_from_outside_ends_a_line_of_an_event_or_a_response() {
    let mut desk = Desk::new("inject");
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: on");
    let core = desk.world.shard.clone();
    let hostile = "x\r\n\r\nEvent: Fake\r\nResponse: Success\n\0";
    let id = desk.call("alice", "100");
    {
        let mut core = core.core.borrow_mut();
        if let Some(channel) = core.get_mut(id) {
            channel.caller =
                PartyId { number: Some(hostile.into()), name: Some(hostile.into()), ..PartyId::default() };
            channel.account = hostile.into();
            channel.language = hostile.into();
        }
        core.notice_of(id, Notice::NewCallerId);
        let text = hostile.to_owned();
        core.notice_of(id, |channel| Notice::VarSet {
            channel: Some(channel),
            variable: text.clone(),
            value: text.clone(),
        });
        core.notice_of(id, |channel| Notice::UserEvent {
            channel: Some(channel),
            name: text.clone(),
            fields: vec![(text.clone(), text.clone())],
        });
        core.notice(|_| {
            Some(Notice::PeerStatus {
                channel_type: "PJSIP",
                peer: text.clone(),
                status: "Registered",
                address: text.clone(),
            })
        });
    }
    desk.tell();
    let told = desk.sent(1);
    for answer in [
        told,
        desk.act(1, "CoreShowChannels"),
        desk.act(1, "Status|AllVariables: true"),
        desk.act(1, "Ping|ActionID: a\rb\u{85}c"),
        desk.act(1, "Command|Command: no\rsuch"),
        desk.act(1, "Nons\rense"),
        desk.act(1, "Getvar|Variable: CALLERID(all)|Channel: SIM/alice-00000000"),
    ] {
        for message in messages(&answer) {
            assert!(["Event", "Response"].contains(&message[0].0), "{answer:?}");
            assert_ne!(message[0], ("Event", "Fake"), "{answer:?}");
        }
        assert!(!answer.replace("\r\n", "").chars().any(char::is_control), "{answer:?}");
    }
}

#[test]
fn channels_are_listed_moved_limited_and_hung_up() {
    let mut desk = Desk::new("channels");
    desk.login(1, "all");
    for (phone, exten) in [("alice", "100"), ("bob", "100"), ("carol", "101")] {
        desk.call(phone, exten);
    }
    desk.pass_to(100);
    let text = desk.act(1, "CoreShowChannels|ActionID: 5");
    let list = messages(&text);
    assert!(list.iter().all(|message| field(message, "ActionID") == Some("5")));
    assert_eq!(list.len(), 5);
    assert_eq!(field(&list[0], "EventList"), Some("start"));
    assert_eq!(field(&list[1], "Application"), Some("Wait"));
    assert_eq!((field(&list[4], "EventList"), field(&list[4], "ListItems")), (Some("Complete"), Some("3")));

    let text = desk.act(1, "Status|Channel: SIM/bob-00000001|Variables: CALLERID(num),EXTEN");
    let status = &messages(&text)[1];
    assert_eq!(field(status, "Channel"), Some("SIM/bob-00000001"));
    assert!(text.contains("Variable: CALLERID(num)=6001\r\nVariable: EXTEN=100\r\n"), "{text}");

    for (act, expected) in [
        (
            "Redirect|Channel: SIM/carol-00000002|Context: default|Exten: 100|Priority: talk",
            "Redirect successful",
        ),
        ("AbsoluteTimeout|Channel: SIM/carol-00000002|Timeout: 5", "Timeout Set"),
        ("PlayDTMF|Channel: SIM/carol-00000002|Digit: 5", "DTMF successfully queued"),
        ("Hangup|Channel: SIM/alice-00000000|Cause: 17", "Channel Hungup"),
    ] {
        assert_eq!(desk.act(1, act), format!("Response: Success\r\nMessage: {expected}\r\n\r\n"), "{act}");
    }
    for (act, expected) in [
        ("Hangup|Channel: SIM/nobody", "No such channel"),
        ("Hangup|Channel: SIM/bob-00000001|Cause: 300", "Invalid cause"),
        (
            "Redirect|Channel: SIM/bob-00000001|Context: default|Exten: 100|Priority: nowhere",
            "Redirect failed",
        ),
        ("PlayDTMF|Channel: SIM/bob-00000001|Digit: x", "Invalid digit"),
        ("AbsoluteTimeout|Channel: SIM/bob-00000001|Timeout: NaN", "Invalid timeout"),
        ("Atxfer|Channel: SIM/bob-00000001|Exten: 1", "Atxfer is not supported yet"),
        ("MailboxCount|Mailbox: 1", "MailboxCount is not supported yet"),
    ] {
        let answer = desk.act(1, act);
        assert!(answer.starts_with(&format!("Response: Error\r\nMessage: {expected}")), "{act}: {answer}");
    }
    desk.pass_to(200);
    let core = desk.world.shard.clone();
    assert_eq!(core.core.borrow().by_name("SIM/alice-00000000"), None);
    let carol = core.core.borrow().by_name("SIM/carol-00000002").unwrap();
    assert_eq!(core.core.borrow().get(carol).unwrap().location.exten, "100");
    desk.pass_to(5_100);
    assert_eq!(core.core.borrow().by_name("SIM/carol-00000002"), None, "its time is up");
    let text = desk.act(1, "Hangup|Channel: /^SIM\\/.*$/");
    assert_eq!(event_names(&text), ["ChannelHungup", "ChannelsHungupListComplete"]);
    desk.pass_to(5_200);
    assert_eq!(core.core.borrow().channel_count(), 0);
}

#[test]
fn originate_answers_when_the_call_has_come_to_something_and_what_was_sent_ahead_waits() {
    let mut desk = Desk::new("originate");
    desk.world.phone("bob", Phone { acts: vec![(100, Act::Ring), (1_000, Act::Answer)], refuses: None });
    desk.world.phone("busy", Phone { acts: vec![(100, Act::Hangup(Cause::USER_BUSY))], refuses: None });
    desk.login(1, "all");
    let place = "Context: default|Exten: 100|Priority: 1";
    let text = desk.act(1, &format!(
        "Originate|ActionID: 1|Channel: SIM/bob|{place}|CallerID: Boss <100>|Account: acc|ChannelId: own-1\
         |Variable: a=1,b=2|Variable: CHANNEL(language)=de"));
    assert_eq!(text, "");
    assert_eq!(desk.act(1, "Ping|ActionID: 2"), "", "it waits for its turn");
    desk.pass_to(999);
    assert_eq!(desk.sent(1), "");
    desk.pass_to(1_000);
    let text = desk.sent(1);
    let answers = messages(&text);
    assert_eq!(
        answers[0],
        [("Response", "Success"), ("ActionID", "1"), ("Message", "Originate successfully queued")]
    );
    assert_eq!(field(&answers[1], "ActionID"), Some("2"));
    let text = desk.act(1, "Status|Channel: own-1|AllVariables: true");
    for line in [
        "Variable: a=1",
        "Variable: b=2",
        "Variable: WHO=all",
        "Language: de",
        "AccountCode: acc",
        "CallerIDNum: 100",
        "Exten: 100",
    ] {
        assert!(text.contains(&format!("{line}\r\n")), "{line}: {text}");
    }
    desk.act(1, &format!("Originate|ActionID: 3|Channel: SIM/busy|{place}"));
    desk.pass_to(2_000);
    assert_eq!(desk.sent(1), "Response: Error\r\nActionID: 3\r\nMessage: Originate failed\r\n\r\n");

    desk.act(1, "Events|EventMask: call");
    let text = desk.act(1, "Originate|ActionID: 4|Async: true|Channel: SIM/busy|Application: Wait|Data: 1");
    assert_eq!(text, "Response: Success\r\nActionID: 4\r\nMessage: Originate successfully queued\r\n\r\n");
    desk.pass_to(3_000);
    let text = desk.sent(1);
    let all = messages(&text);
    let response = all.iter().find(|message| field(message, "Event") == Some("OriginateResponse")).unwrap();
    let told = ["ActionID", "Response", "Reason"].map(|name| field(response, name));
    assert_eq!(told, [Some("4"), Some("Failure"), Some("5")]);
}

#[test]
fn early_media_is_enough_when_it_is_asked_for() {
    let mut desk = Desk::new("early");
    desk.world.phone("bob", Phone { acts: vec![(100, Act::Progress)], refuses: None });
    desk.login(1, "all");
    for (early, at, expected) in [("true", 200, "Success"), ("false", 2_000, "Error")] {
        desk.act(
            1,
            &format!(
                "Originate|Channel: SIM/bob|Timeout: 1000|EarlyMedia: {early}|Application: Wait|Data: 9"
            ),
        );
        desk.pass_to(at);
        assert!(desk.sent(1).starts_with(&format!("Response: {expected}\r\n")), "{early}");
    }
}

#[test]
fn what_reaches_beyond_calls_needs_the_class_system_and_nothing_in_the_tables_is_missed() {
    let mut desk = Desk::new("capability");
    desk.world.phone("bob", Phone { acts: vec![(1, Act::Answer)], refuses: None });
    desk.login(1, "calls");
    let mut refused = Vec::new();
    for row in apps::table::applications() {
        desk.act(1, &format!("Originate|Async: true|Channel: SIM/bob|Application: {}", row.name))
            .contains("Forbidden")
            .then(|| refused.push(row.name));
    }
    refused.sort_unstable();
    let expected = [
        "DBdel",
        "DBdeltree",
        "DBget",
        "DBput",
        "Exec",
        "ExecIf",
        "ExecIfTime",
        "ImportVar",
        "MSet",
        "Originate",
        "Record",
        "Set",
        "SetGlobalVar",
        "Setvar",
        "System",
        "TryExec",
        "TrySystem",
    ];
    assert_eq!(refused, expected, "an application that is new is refused until it is listed");
    let tables = apps::table::tables();
    let of = |allowed: fn(&str) -> bool, has: fn(&dialplan::FunctionRow) -> bool| -> Vec<&str> {
        let mut names: Vec<&str> = tables
            .functions
            .iter()
            .filter(|row| has(row) && !allowed(row.name))
            .map(|row| row.name)
            .collect();
        names.sort_unstable();
        names
    };
    assert_eq!(
        of(capability::is_plain_to_read, dialplan::FunctionRow::readable),
        ["DB_DELETE", "ENUMLOOKUP", "ENV", "EVAL", "EVAL_EXTEN", "FILE", "IMPORT", "MASTER_CHANNEL", "STAT"]
    );
    assert_eq!(
        of(capability::is_plain_to_write, dialplan::FunctionRow::writable),
        ["DB", "DB_DELETE", "MASTER_CHANNEL"]
    );
    for act in [
        "Getvar|Variable: ENV(HOME)",
        "Getvar|Variable: file(/etc/passwd)",
        "Setvar|Variable: DB(a/b)|Value: 1",
        "Originate|Channel: SIM/bob|Application: NoOp|Data: ${FILE(/etc/passwd)}",
        "Originate|Channel: SIM/bob|Application: NoOp|Data: ${${a}(x)}",
        "Originate|Channel: SIM/bob|Application: NoOp|Data: ${LEN(${ENV(HOME)})}",
        "Originate|Channel: SIM/bob|Application: NoOp|Variable: DB(a/b)=1",
        "Originate|Channel: SIM/bob|Application: NoOp|Variable: x=1,DB(a/b)=1",
    ] {
        let answer = desk.act(1, act);
        assert!(answer.contains("Permission denied for") || answer.contains("Forbidden"), "{act}: {answer}");
    }
    assert_eq!(desk.world.stored("a", "b"), None);
}

#[test]
fn variables_are_read_and_written_on_channels_and_globally() {
    let mut desk = Desk::new("variables");
    desk.login(1, "all");
    desk.call("alice", "100");
    let on = "Channel: SIM/alice-00000000";
    for (act, expected) in [
        (format!("Setvar|{on}|Variable: x|Value: 1"), "Message: Variable Set"),
        (format!("Getvar|{on}|Variable: x"), "Variable: x\r\nValue: 1"),
        (format!("Getvar|{on}|Variable: CALLERID(num)"), "Variable: CALLERID(num)\r\nValue: 6001"),
        (format!("Setvar|{on}|Variable: CALLERID(num)|Value: 7"), "Message: Variable Set"),
        (format!("Getvar|{on}|Variable: CALLERID(num)"), "Variable: CALLERID(num)\r\nValue: 7"),
        (format!("Getvar|{on}|Variable: nothing"), "Variable: nothing\r\nValue: "),
        ("Setvar|Variable: g|Value: 2".to_owned(), "Message: Variable Set"),
        ("Getvar|Variable: g".to_owned(), "Variable: g\r\nValue: 2"),
        (format!("Getvar|{on}|Variable: LEN(${{x}})"), "Variable: LEN(${x})\r\nValue: 4"),
    ] {
        assert_eq!(desk.act(1, &act), format!("Response: Success\r\n{expected}\r\n\r\n"), "{act}");
    }
}

#[test]
fn the_database_the_hints_and_the_dialplan_are_within_reach() {
    let mut desk = Desk::new("plan");
    desk.login(1, "all");
    let ok = |text: &str| format!("Response: Success\r\nMessage: {text}\r\n\r\n");
    assert_eq!(desk.act(1, "DBPut|Family: f|Key: k|Val: v: w"), ok("Updated database successfully"));
    let text = desk.act(1, "DBGet|Family: f|Key: k");
    assert_eq!(event_names(&text), ["DBGetResponse", "DBGetComplete"]);
    assert_eq!(field(&messages(&text)[1], "Val"), Some("v: w"));
    assert_eq!(desk.act(1, "DBDel|Family: f|Key: k"), ok("Key deleted successfully"));
    assert_eq!(desk.act(1, "DBDel|Family: f|Key: k"), error("Database entry not found"));
    assert_eq!(desk.act(1, "DBGet|Family: f|Key: k"), error("Database entry not found"));
    assert_eq!(desk.act(1, "DBDelTree|Family: f"), error("Database entry not found"));

    desk.act(1, "Setvar|Variable: DEVICE_STATE(Custom:lamp)|Value: INUSE");
    let site = desk.site();
    site.hints.borrow_mut().update(&site.shard);
    let text = desk.act(1, "ExtensionState|Exten: 6001|Context: default");
    let state =
        ["Exten", "Context", "Hint", "Status", "StatusText"].map(|name| field(&messages(&text)[0], name));
    assert_eq!(state, [Some("6001"), Some("default"), Some("Custom:lamp"), Some("1"), Some("InUse")]);
    let text = desk.act(1, "ExtensionState|Exten: 1|Context: default");
    assert_eq!(field(&messages(&text)[0], "Status"), Some("-1"));
    assert_eq!(
        event_names(&desk.act(1, "ExtensionStateList")),
        ["ExtensionStatus", "ExtensionStateListComplete"]
    );
    let text = desk.act(1, "DeviceStateList");
    assert!(
        text.contains("Device: Custom:lamp\r\nState: INUSE\r\n") && text.contains("Device: PJSIP/6001\r\n"),
        "{text}"
    );

    let text = desk.act(1, "ShowDialPlan|Context: default");
    let last = messages(&text).pop().unwrap();
    let counts =
        ["ListItems", "ListExtensions", "ListPriorities", "ListContexts"].map(|name| field(&last, name));
    assert_eq!(counts, [Some("5"), Some("4"), Some("4"), Some("1")]);
    assert!(desk.act(1, "ShowDialPlan|Context: none").starts_with("Response: Error"));
}

#[test]
fn sip_endpoints_are_listed_in_the_forms_of_both_drivers() {
    let mut desk = Desk::new("sip");
    desk.login(1, "all");
    for (act, events) in [
        ("PJSIPShowEndpoints", vec!["EndpointList", "EndpointList", "EndpointListComplete"]),
        (
            "PJSIPShowEndpoint|Endpoint: 6001",
            vec![
                "EndpointDetail",
                "AorDetail",
                "ContactStatusDetail",
                "AuthDetail",
                "EndpointDetailComplete",
            ],
        ),
        ("PJSIPShowAors", vec!["AorList", "AorList", "AorListComplete"]),
        ("PJSIPShowContacts", vec!["ContactList", "ContactListComplete"]),
        ("SIPpeers", vec!["PeerEntry", "PeerEntry", "PeerlistComplete"]),
        ("PJSIPShowEndpoint|Endpoint: nobody", vec![]),
        ("PJSIPQualify|Endpoint: nobody", vec![]),
    ] {
        let text = desk.act(1, act);
        assert_eq!(event_names(&text), events, "{act}: {text}");
        assert_eq!(text.starts_with("Response: Error"), events.is_empty(), "{act}");
    }
    let text = desk.act(1, "SIPpeers");
    assert!(
        text.contains("ObjectName: 6001\r\n") && text.contains("IPaddress: 192.0.2.7\r\nIPport: 5070\r\n"),
        "{text}"
    );
    assert!(desk.act(1, "PJSIPQualify|Endpoint: 6001").starts_with("Response: Success"));
    assert!(!desk.act(1, "PJSIPShowEndpoint|Endpoint: 6001").to_lowercase().contains("password"));
}

#[test]
fn console_commands_reload_and_rotation_are_passed_on() {
    let mut desk = Desk::new("system");
    desk.login(1, "all");
    let text = desk.act(1, "Command|ActionID: 1|Command: core show uptime");
    assert_eq!(
        text,
        "Response: Success\r\nActionID: 1\r\nMessage: Command output follows\r\n\
        Output: System uptime: 1 second\r\nOutput: Last reload: 1 second\r\n\r\n"
    );
    assert!(desk.act(1, "Command|Command: nonsense").starts_with(
        "Response: Error\r\nMessage: Command output follows\r\nOutput: No such command 'nonsense'"
    ));
    let site = desk.site();
    assert!(desk.act(1, "Reload|Module: chan_pjsip.so").starts_with("Response: Success"));
    desk.act(1, "LoggerRotate");
    assert_eq!(*site.wishes.borrow(), [Wish::Reload { module: "chan_pjsip".into() }, Wish::RotateLogs]);
    *site.reload.borrow_mut() =
        Some(Box::new(|_| Reloaded { taken: false, said: vec!["pjsip.conf:3: wrong\nremedy".into()] }));
    assert_eq!(desk.act(1, "Reload"), error("Reload failed: pjsip.conf:3: wrong remedy"));
    assert!(desk.act(1, "CoreSettings").contains("AMIversion: 9.0.0\r\n"));
    assert!(desk.act(1, "CoreStatus").contains("CoreCurrentCalls: 0\r\n"));
    assert!(desk.act(1, "ModuleCheck|Module: app_dial.so").starts_with("Response: Success"));
    assert_eq!(desk.act(1, "ModuleCheck|Module: app_nonsense"), error("Module not loaded"));
}

#[test]
fn wait_event_ends_with_the_next_event_or_its_time_and_what_was_sent_ahead_follows() {
    let mut desk = Desk::new("wait");
    desk.login(1, "all");
    desk.login(2, "all");
    assert_eq!(desk.act(1, "WaitEvent|ActionID: 1|Timeout: 10"), "");
    assert_eq!(desk.act(1, "Ping"), "");
    assert!(desk.manager.watching());
    desk.act(2, "UserEvent|UserEvent: Hello");
    desk.tell();
    let text = desk.sent(1);
    assert_eq!(event_names(&text), ["UserEvent", "WaitEventComplete"]);
    assert!(text.contains("Ping: Pong"), "{text}");
    assert_eq!(desk.act(1, "WaitEvent|Timeout: 10"), "");
    desk.pass_to(10_000);
    assert_eq!(event_names(&desk.sent(1)), ["WaitEventComplete"]);
    assert!(desk.act(1, "WaitEvent|Timeout: x").starts_with("Response: Error"));
    // Who sends without end while waiting is closed.
    desk.act(1, "WaitEvent");
    assert_eq!(desk.bytes(1, &b"Action: Ping\r\n\r\n".repeat(AHEAD_MAX + 1)), "<closed>");
}

#[test]
fn a_reload_closes_users_who_are_gone_and_changes_what_the_others_may() {
    let mut desk = Desk::new("reload");
    desk.login(1, "all");
    desk.login(2, "one");
    let changed = MANAGER.replace("[one]", "[other]").replacen("write = all", "write = call", 1);
    std::fs::write(desk.folder.join("manager.conf"), changed).unwrap();
    let site = desk.site();
    let (snapshot, _) = Snapshot::load(&Where::Dir(desk.folder.clone())).unwrap();
    *site.snapshot.borrow_mut() = snapshot;
    desk.manager.configure();
    desk.tell();
    assert_eq!(desk.sent(2), "<closed>");
    assert_eq!(desk.act(1, "CoreShowChannels"), error("Permission denied"));
}

/// The hostile manager inputs that come with the project's shared data, when they are at hand.
#[test]
fn hostile_input_neither_panics_nor_disturbs_a_neighbour() {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/bad-input/generated.tar.xz");
    if !archive.exists() {
        println!("skipped: {} is not there", archive.display());
        return;
    }
    let mut desk = Desk::new("hostile");
    let status =
        std::process::Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(&desk.folder).status();
    if !status.is_ok_and(|status| status.success()) {
        println!("skipped: tar cannot unpack {}", archive.display());
        return;
    }
    desk.login(1, "all");
    let mut cases = 0;
    for entry in std::fs::read_dir(desk.folder.join("generated/ami")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        cases += 1;
        for (session, user) in [(2, None), (3, Some("one")), (4, Some("all"))] {
            match user {
                None => drop(desk.open(session)),
                Some(user) => desk.login(session, user),
            }
            let answer = desk.bytes(session, &bytes);
            let answer = answer.trim_end_matches("<closed>");
            if !answer.is_empty() {
                messages(answer);
            }
            desk.manager.closed(session);
        }
        assert!(desk.act(1, "Ping").starts_with("Response: Success"));
    }
    assert!(cases >= 400, "{cases}");
    assert_eq!(desk.world.log(Level::Error), [] as [&str; 0]);
}

/// With `UPDATE_DOCS=1` in the environment the page is written anew.
#[test]
fn the_manual_is_what_the_tables_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manager.md");
    let page = manual();
    for name in actions().map(|row| format!("### {}\n", row.name)) {
        assert!(page.contains(&name), "{name}");
    }
    for name in EVENTS.iter().map(|row| format!("| {} |", row.name)) {
        assert!(page.contains(&name), "{name}");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let line = written.lines().zip(page.lines()).find(|(old, new)| old != new);
    assert!(written == page, "docs/manager.md is behind the tables, first at {line:?}: set UPDATE_DOCS=1");
}

#[test]
fn a_site_that_lives_dangerously_lets_every_user_reach_every_function() {
    let mut desk = Desk::new("dangerously");
    desk.login(1, "calls");
    assert!(desk.act(1, "Getvar|Variable: ENV(HOME)").contains("Permission denied for"));
    desk.world.settings(|settings| settings.live_dangerously = true);
    assert!(desk.act(1, "Getvar|Variable: ENV(HOME)").starts_with("Response: Success"));
}

#[test]
fn variables_that_the_configuration_names_come_with_events_and_disabled_events_do_not_come() {
    let mut desk = Desk::new("channelvars");
    let changed =
        MANAGER.replace("enabled = yes", "enabled = yes\nchannelvars = who\ndisabledevents = Newexten");
    std::fs::write(desk.folder.join("manager.conf"), changed).unwrap();
    let (snapshot, _) = Snapshot::load(&Where::Dir(desk.folder.clone())).unwrap();
    *desk.site().snapshot.borrow_mut() = snapshot;
    desk.manager.configure();
    desk.login(1, "all");
    desk.call("alice", "101");
    desk.act(1, "Setvar|Channel: SIM/alice-00000000|Variable: who|Value: me");
    desk.tell();
    desk.act(1, "Events|EventMask: on");
    desk.act(1, "AbsoluteTimeout|Channel: SIM/alice-00000000|Timeout: 1");
    let id = desk.call("bob", "101");
    desk.world.act(id, Duration::from_millis(1), Act::Hold);
    desk.pass_to(2_000);
    let text = desk.sent(1);
    assert!(!event_names(&text).contains(&"Newexten".to_owned()), "{text}");
    let all = messages(&text);
    let hold = all.iter().find(|message| field(message, "Event") == Some("Hold")).unwrap();
    assert_eq!(field(hold, "ChanVariable"), Some("who="));
    desk.act(1, "Events|EventMask: off");
    desk.call("carol", "101");
    desk.tell();
    desk.act(1, "Events|EventMask: on");
    let answer = desk.act(1, "Setvar|Channel: SIM/carol-00000002|Variable: who|Value: me");
    assert!(answer.starts_with("Response: Success"), "{answer}");
    desk.tell();
    let text = desk.sent(1);
    assert!(text.contains("Variable: who\r\nValue: me\r\nChanVariable: who=me\r\n"), "{text}");
}
