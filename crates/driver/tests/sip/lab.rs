//! A laboratory on invented time: the driver and the call core on one side, scripted peers on the other.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use ::sip::OwnedMessage;
use ::sip::stack::{ConnectionId, Flow, PeerName, Protocol, TransportId};
use base::dns::{Answer, Kind, Question, Records, Srv};
use base::{Cause, ChannelId, Command, Instant, Plan, StreamId};
use call::{Chan, Indication, MediaDoor, MediaRefused, Request, Shard};
use driver::sip::{Aor, Auth, Bind, Config, Endpoint, IdentifyBy, Proof, SipDriver, Watching};
use sim::World;

/// Address of ours that every route leads from.
pub const OWN: &str = "192.0.2.1";
/// The phone of the tables.
pub const PHONE: &str = "198.51.100.7:5062";
/// Password of every auth here.
pub const SECRET: &str = "correct horse";

/// What became of media streams.
#[derive(Default)]
pub struct Streams {
    /// Open streams and their plans.
    pub open: BTreeMap<StreamId, Plan>,
    /// How many were ever opened.
    pub opened: u32,
    /// What was played and stopped.
    pub commands: Vec<&'static str>,
    /// Streams that were told to carry fax, or to cease.
    pub fax: BTreeMap<StreamId, Option<base::Fax>>,
    /// Streams that were joined to each other, or parted.
    pub joined: Vec<(StreamId, Option<StreamId>)>,
    /// Streams that were listened to for tones, or not any more.
    pub tones: Vec<(StreamId, bool)>,
    /// Streams whose peers were asked for whole pictures.
    pub pictures: Vec<StreamId>,
    /// Where the last one was opened.
    pub bound: Option<IpAddr>,
    /// Opening is refused.
    pub full: bool,
    /// A plan with this payload type makes the door panic: stands for a fault in a dialog's own code.
    pub explosive: Option<u8>,
}

struct Door(Rc<RefCell<Streams>>);

impl MediaDoor for Door {
    fn open(&mut self, local: IpAddr, plan: Plan) -> Result<(StreamId, u16), MediaRefused> {
        let mut streams = self.0.borrow_mut();
        streams.bound = Some(local);
        if streams.full {
            return Err(MediaRefused::NoPorts);
        }
        streams.opened += 1;
        let id = StreamId::new(streams.opened, 0);
        streams.open.insert(id, plan);
        Ok((id, 10_000 + 2 * u16::try_from(streams.opened % 5_000).unwrap()))
    }
    fn open_internal(&mut self, plan: Plan) -> Result<StreamId, MediaRefused> {
        self.open(IpAddr::from([0, 0, 0, 0]), plan).map(|(id, _)| id)
    }
    fn command(&mut self, command: Command) {
        let mut streams = self.0.borrow_mut();
        match command {
            Command::Plan { stream, plan } => {
                assert!(streams.explosive != Some(plan.payload), "this plan was made to explode");
                assert!(streams.open.contains_key(&stream), "a plan for a stream that is not open");
                streams.open.insert(stream, *plan);
            }
            Command::Close { stream } => {
                assert!(streams.open.remove(&stream).is_some(), "a stream is closed twice");
            }
            Command::Fax { stream, fax } => {
                assert!(streams.open.contains_key(&stream), "fax for a stream that is not open");
                streams.fax.insert(stream, fax);
            }
            Command::Join { a, b } => streams.joined.push((a, Some(b))),
            Command::Part { stream } => streams.joined.push((stream, None)),
            Command::WatchTone { stream, watch, .. } => streams.tones.push((stream, watch.is_some())),
            Command::AskPicture { stream } => streams.pictures.push(stream),
            Command::Play { .. } => streams.commands.push("play"),
            Command::StopPlay { .. } => streams.commands.push("stop"),
            _ => {}
        }
    }
}

/// Everything, see the module's page.
pub struct Lab {
    pub world: World,
    pub shard: Rc<Shard>,
    pub sip: Rc<RefCell<SipDriver>>,
    pub streams: Rc<RefCell<Streams>>,
    /// Channels whose dialplan would have begun.
    pub started: VecDeque<ChannelId>,
    /// What the channels' stories heard, `Ringing`, `Hangup 17` and so on.
    pub heard: Rc<RefCell<Vec<String>>>,
    pub now: Instant,
    /// Channels get no story of their own: the test gives them one.
    pub storyless: bool,
    /// Messages of STUN that have left.
    pub asked: Vec<(Flow, Vec<u8>)>,
    /// How many 100 have left; nothing else tells of them.
    pub tried: usize,
    sent: VecDeque<(Flow, OwnedMessage)>,
}

/// The flow of datagrams from an address to the first bind.
pub fn udp(from: &str) -> Flow {
    Flow {
        transport: TransportId(0),
        protocol: Protocol::Udp,
        connection: None,
        name: PeerName::NONE,
        remote: from.parse().unwrap(),
    }
}
/// The flow of a connection to the second bind.
pub fn tcp(from: &str, connection: u64) -> Flow {
    Flow {
        transport: TransportId(1),
        protocol: Protocol::Tcp,
        connection: Some(ConnectionId(connection)),
        name: PeerName::NONE,
        remote: from.parse().unwrap(),
    }
}

/// An endpoint as `pjsip.conf` makes it from a name, an auth and an AOR of that name.
pub fn endpoint(name: &str) -> Endpoint {
    Endpoint {
        name: name.into(),
        context: "phones".to_owned(),
        aors: vec![name.into()],
        auths: vec![name.into()],
        allow: [base::FormatId::ULAW, base::FormatId::ALAW].into_iter().collect(),
        identify_by: vec![IdentifyBy::Username, IdentifyBy::Ip],
        force_rport: true,
        ptime_ms: 20,
        allow_overlap: true,
        sdp_owner: "-".to_owned(),
        sdp_session: "Strowger".to_owned(),
        watching: Watching { allow: true, aggregate: true, ..Watching::default() },
        follow_fork: true,
        allow_transfer: true,
        refer_progress: true,
        send_connected_line: true,
        ..Endpoint::default()
    }
}
/// An AOR with the field's defaults and room for two contacts.
pub fn aor(name: &str) -> Aor {
    Aor {
        name: name.into(),
        contacts: Vec::new(),
        max_contacts: 2,
        remove_existing: false,
        remove_unavailable: false,
        default_expiration: 3600,
        minimum_expiration: 60,
        maximum_expiration: 7200,
        qualify_frequency: 0,
        qualify_timeout: Duration::from_secs(3),
        qualify_2xx_only: false,
        authenticate_qualify: false,
        outbound_proxy: String::new(),
        support_path: false,
        mailboxes: Vec::new(),
        voicemail: String::new(),
    }
}

/// A site with two binds (UDP on every address, TCP on every address) and three endpoints: `alice` and `bob` have a
/// password, `trunk` has none and one fixed contact.
pub fn site() -> Config {
    let bind = |name: &str, id: u16, protocol| Bind {
        name: name.to_owned(),
        id: TransportId(id),
        protocol,
        local: "0.0.0.0:5060".parse().unwrap(),
        external_media: None,
        external_signaling: None,
        local_nets: Vec::new(),
        domain: String::new(),
        marking: base::Marking::default(),
    };
    let mut config = Config {
        binds: vec![bind("udp", 0, Protocol::Udp), bind("tcp", 1, Protocol::Tcp)],
        order: vec![IdentifyBy::Ip, IdentifyBy::Username, IdentifyBy::Anonymous],
        default_realm: "asterisk".to_owned(),
        user_agent: "Strowger".to_owned(),
        default_from_user: "asterisk".to_owned(),
        default_algorithms: vec![::sip::digest::Algorithm::Md5],
        strict_rtp: true,
        max_forwards: 70,
        tells_refreshes: true,
        rtcp_interval_ms: 5000,
        ..Config::default()
    };
    for name in ["alice", "bob"] {
        add(&mut config, endpoint(name), aor(name));
        let auth = Auth {
            username: name.to_owned(),
            realm: String::new(),
            proof: Proof::Password(SECRET.to_owned()),
            algorithms: vec![::sip::digest::Algorithm::Md5],
            answers: Vec::new(),
        };
        config.auths.insert(name.into(), Rc::new(auth));
    }
    let trunk = Endpoint { auths: Vec::new(), ..endpoint("trunk") };
    add(&mut config, trunk, Aor { contacts: vec![format!("sip:trunk@{PHONE}")], ..aor("trunk") });
    config
}
/// Adds an endpoint and an AOR.
pub fn add(config: &mut Config, endpoint: Endpoint, aor: Aor) {
    config.endpoints.insert(endpoint.name.clone(), Rc::new(endpoint));
    config.aors.insert(aor.name.clone(), Rc::new(aor));
}
/// Changes an endpoint.
pub fn change(config: &mut Config, name: &str, change: impl FnOnce(&mut Endpoint)) {
    let mut endpoint = (**config.endpoints.get(name).unwrap()).clone();
    change(&mut endpoint);
    config.endpoints.insert(name.into(), Rc::new(endpoint));
}
/// Changes an AOR.
pub fn change_aor(config: &mut Config, name: &str, change: impl FnOnce(&mut Aor)) {
    let mut aor = (**config.aors.get(name).unwrap()).clone();
    change(&mut aor);
    config.aors.insert(name.into(), Rc::new(aor));
}

impl Lab {
    pub fn new(config: Config) -> Self {
        let world = World::new(dialplan::Program::default());
        let shard = world.shard.clone();
        let streams: Rc<RefCell<Streams>> = Rc::default();
        {
            let mut core = shard.core.borrow_mut();
            core.services.media = Box::new(Door(streams.clone()));
            core.hinted = |_, context, exten| context == "phones" && exten.starts_with('6');
            core.reach = |_, _, exten, _| match exten {
                "nobody" => call::Reach::None,
                "10" => call::Reach::Partial,
                "panic" => panic!("this number was made to explode"),
                _ => call::Reach::Whole,
            };
        }
        let route = |_| OWN.parse().ok();
        let sip = Rc::new(RefCell::new(SipDriver::new(config, 0x5eed, [7; 32], route)));
        let index = shard.add_tech(sip.clone());
        sip.borrow_mut().set_tech_index(index);
        let mut lab = Self {
            world,
            shard,
            sip,
            streams,
            started: VecDeque::new(),
            heard: Rc::default(),
            now: Instant::ZERO,
            storyless: false,
            asked: Vec::new(),
            tried: 0,
            sent: VecDeque::new(),
        };
        lab.settle();
        lab
    }
    /// Something arrives.
    pub fn receive(&mut self, flow: Flow, bytes: impl AsRef<[u8]>) {
        {
            let mut core = self.shard.core.borrow_mut();
            core.now = self.now;
            self.sip.borrow_mut().receive(&mut core, flow, bytes.as_ref());
        }
        self.settle();
    }
    /// Does something to the driver.
    pub fn with<R>(&mut self, act: impl FnOnce(&mut SipDriver, &mut call::Core) -> R) -> R {
        let result = {
            let mut core = self.shard.core.borrow_mut();
            core.now = self.now;
            act(&mut self.sip.borrow_mut(), &mut core)
        };
        self.settle();
        result
    }
    /// What is asked of the DNS, as `A name`, `SRV name`, `NAPTR name`.
    pub fn lookups(&mut self) -> Vec<String> {
        let asked = self.with(|sip, _| sip.take_lookups());
        let kind = |kind| match kind {
            Kind::Addresses => "A",
            Kind::Srv => "SRV",
            Kind::Naptr => "NAPTR",
        };
        asked.iter().map(|question| format!("{} {}", kind(question.kind), question.name)).collect()
    }
    /// The DNS has these addresses of a name, and no other records.
    pub fn resolved(&mut self, host: &str, addresses: &[IpAddr]) {
        let keep = Duration::from_secs(if addresses.is_empty() { 10 } else { 60 });
        let mut answer = |kind, name: &str, records| {
            let (question, answer) = (Question::new(kind, name), Answer { records: Some(records), keep });
            self.with(|sip, core| sip.resolved(core, &question, answer));
        };
        answer(Kind::Naptr, host, Records::none(Kind::Naptr));
        for service in ["_sip._udp", "_sip._tcp", "_sips._tcp"] {
            answer(Kind::Srv, &format!("{service}.{host}"), Records::none(Kind::Srv));
        }
        answer(Kind::Addresses, host, Records::Addresses(addresses.into()));
    }
    /// The DNS has these services of a name: priority, weight, port, target.
    pub fn serves(&mut self, name: &str, services: &[(u16, u16, u16, &str)]) {
        let record = |of: &(u16, u16, u16, &str)| Srv {
            priority: of.0,
            weight: of.1,
            port: of.2,
            target: of.3.to_owned(),
        };
        let records = Some(Records::Srv(services.iter().map(record).collect()));
        let answer = Answer { records, keep: Duration::from_secs(60) };
        self.with(|sip, core| sip.resolved(core, &Question::new(Kind::Srv, name), answer));
    }
    pub fn settle(&mut self) {
        for _ in 0..100 {
            self.shard.run(self.now);
            let mut sip = self.sip.borrow_mut();
            sip.due(&mut self.shard.core.borrow_mut());
            for (id, _) in sip.take_started() {
                self.started.push_back(id);
                if !self.storyless {
                    drop_listener(&self.shard, id, &self.heard);
                }
            }
            sip.follow_bridges(&mut self.shard.core.borrow_mut());
            sip.tell_watchers(&mut self.shard.core.borrow_mut());
            let sends = sip.take_sends();
            for send in &sends {
                assert!(
                    send.flow.transport.0 < driver::sip::BINDS_MAX,
                    "the shell knows binds only: {:?}",
                    send.flow
                );
                if ::sip::stun::is_stun(&send.bytes) {
                    self.asked.push((send.flow, send.bytes.to_vec()));
                    continue;
                }
                let message = OwnedMessage::parse(send.bytes.clone()).unwrap();
                if line(&message) == "100" {
                    self.tried += 1;
                    continue;
                }
                self.sent.push_back((send.flow, message));
            }
            drop(sip);
            if sends.is_empty() && self.shard.deadline() != Some(Instant::ZERO) {
                return;
            }
        }
        panic!("the laboratory does not come to rest");
    }
    /// Lets time pass, deadline by deadline.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        for _ in 0..100_000 {
            let next = [self.sip.borrow().deadline(), self.shard.deadline()].into_iter().flatten().min();
            match next.filter(|at| *at <= until) {
                Some(at) => self.now = at.max(self.now),
                None => {
                    self.now = until;
                    return self.settle();
                }
            }
            self.settle();
        }
        panic!("deadlines do not come to rest");
    }
    /// The next message that left, with its way.
    pub fn next(&mut self) -> Option<(Flow, OwnedMessage)> {
        self.sent.pop_front()
    }
    /// The next message that left; panics when there is none.
    #[track_caller]
    pub fn sent(&mut self) -> OwnedMessage {
        self.next().expect("a message").1
    }
    /// Messages that left and that nobody has looked at.
    pub fn give_back(&mut self, messages: Vec<OwnedMessage>) {
        for message in messages.into_iter().rev() {
            self.sent.push_front((udp("198.51.100.7:5060"), message));
        }
    }
    /// The next message that left when it is a challenge.
    pub fn challenge(&mut self) -> Option<OwnedMessage> {
        let (flow, message) = self.sent.pop_front()?;
        if line(&message) == "401" {
            return Some(message);
        }
        self.sent.push_front((flow, message));
        None
    }
    /// What left, as `200` and `INVITE`, oldest first.
    pub fn lines(&mut self) -> Vec<String> {
        self.sent.drain(..).map(|(_, message)| line(&message)).collect()
    }
    /// Makes an outgoing channel and calls it.
    pub fn dial(&mut self, resource: &str) -> Result<ChannelId, Cause> {
        self.dial_with(resource, Request::default(), |_, _| {})
    }
    /// The same with a request and something done before the call.
    pub fn dial_with(
        &mut self,
        resource: &str,
        request: Request,
        before: impl FnOnce(&Shard, ChannelId),
    ) -> Result<ChannelId, Cause> {
        self.shard.core.borrow_mut().now = self.now;
        let id = self.shard.request("PJSIP", &Request { resource: resource.to_owned(), ..request })?;
        before(&self.shard, id);
        if !self.storyless {
            drop_listener(&self.shard, id, &self.heard);
        }
        let called = self.shard.with_tech(id, |tech, core| tech.call(core, id)).unwrap();
        if let Err(cause) = called {
            self.shard.finish(id, cause);
            return Err(cause);
        }
        self.settle();
        Ok(id)
    }
    /// The dialplan answers.
    pub fn answer(&mut self, id: ChannelId) {
        self.shard.core.borrow_mut().now = self.now;
        self.shard.answer(id);
        self.settle();
    }
    /// The dialplan indicates.
    pub fn indicate(&mut self, id: ChannelId, indication: Indication) {
        self.shard.indicate(id, &indication);
        self.settle();
    }
    /// The dialplan hangs up.
    pub fn finish(&mut self, id: ChannelId, cause: Cause) {
        self.shard.core.borrow_mut().now = self.now;
        self.shard.finish(id, cause);
        self.settle();
    }
    /// Lets two channels talk until one of them ends or is sent elsewhere; then both are hung up.
    pub fn talk(&mut self, a: ChannelId, b: ChannelId) {
        let shard = self.shard.clone();
        let story = async move {
            let (first, second) = (Chan::new(shard.clone(), a), Chan::new(shard.clone(), b));
            let _ = call::bridge_pair(&first, &second, call::BridgeLimits::default()).await;
            for id in [b, a] {
                if shard.core.borrow().get(id).is_some_and(|channel| channel.goto.is_none()) {
                    shard.finish(id, Cause::NORMAL_CLEARING);
                }
            }
        };
        self.shard.spawn(None, story);
        self.settle();
    }
    /// What stories heard since the last look.
    pub fn heard(&mut self) -> Vec<String> {
        std::mem::take(&mut self.heard.borrow_mut())
    }
    /// The plan of the only open stream.
    #[track_caller]
    pub fn plan(&self) -> Plan {
        let streams = self.streams.borrow();
        assert_eq!(streams.open.len(), 1, "one stream");
        streams.open.values().next().unwrap().clone()
    }
    /// A function of the channel.
    pub fn read(&self, id: ChannelId, function: &str, args: &str) -> Option<String> {
        self.shard.with_tech(id, |tech, core| tech.read(core, id, function, args)).flatten()
    }
    /// Lets every timer run out and asserts that nothing is left.
    #[track_caller]
    pub fn rest(&mut self) {
        self.pass(Duration::from_secs(200));
        assert_eq!(self.shard.core.borrow().channel_count(), 0, "channels are left");
        assert_eq!(self.streams.borrow().open.len(), 0, "streams are left");
        let load = self.sip.borrow().load();
        assert_eq!(
            (load.dialogs, load.clients, load.servers, load.subscriptions),
            (0, 0, 0, 0),
            "the stack holds something"
        );
    }
}

/// The story of a channel: notes what it hears, and hangs up when the other side has.
fn drop_listener(shard: &Rc<Shard>, id: ChannelId, heard: &Rc<RefCell<Vec<String>>>) {
    let (chan, heard) = (Chan::new(shard.clone(), id), heard.clone());
    shard.spawn(Some(id), async move {
        while let Ok(event) = chan.event(None).await {
            heard.borrow_mut().push(format!("{:?}", event.unwrap()));
        }
        let cause = chan.core(|core| core.get(id).and_then(|c| c.hangup));
        if let Some(cause) = cause {
            heard.borrow_mut().push(format!("Hangup {}", cause.0));
            chan.hangup(cause);
            chan.shard().finish(id, cause);
        }
    });
}

/// `200`, or the method.
pub fn line(message: &OwnedMessage) -> String {
    let view = message.view();
    match view.status() {
        Some(status) => status.code().to_string(),
        None => String::from_utf8_lossy(view.method().as_bytes()).into_owned(),
    }
}
/// The value of the first header of this name.
pub fn header(message: &OwnedMessage, name: &str) -> String {
    let name = ::sip::HeaderName::from_bytes(name.as_bytes());
    let view = message.view();
    view.header(name).map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
}
/// The body as text.
pub fn body(message: &OwnedMessage) -> String {
    String::from_utf8_lossy(message.view().body()).into_owned()
}
/// The address a peer has.
pub fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}
