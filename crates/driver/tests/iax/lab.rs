//! Two sites that talk IAX2 with each other, each with a call core of its own.

use core::net::SocketAddr;
use core::time::Duration;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use base::hash::{Key, Randomness};
use base::{Cause, ChannelId, Command, HoldBack, Instant, Plan, StreamId};
use call::{Chan, MediaDoor, MediaRefused, Request, Shard};
use driver::iax::{
    Common, Config, Host, IaxDriver, KeyAnswer, KeyJob, KeySet, KeyWork, Peer, Transfer, User,
};
use sim::World;

/// Password between the sites.
pub const SECRET: &[u8] = b"correct horse";
/// How long a datagram is under way.
const WAY: Duration = Duration::from_millis(10);

/// What became of media streams.
#[derive(Default)]
pub struct Streams {
    /// Open ones and their plans.
    pub open: BTreeMap<StreamId, Plan>,
    opened: u32,
    /// Packets that a stream was handed.
    pub fed: Vec<(StreamId, Vec<u8>)>,
    /// How long streams were told to hold back what comes, in order.
    pub held_back: Vec<Option<HoldBack>>,
    /// How often one was asked how it is.
    pub asked: u32,
}

struct Door(Rc<RefCell<Streams>>);

impl MediaDoor for Door {
    fn open(&mut self, _: core::net::IpAddr, _: Plan) -> Result<(StreamId, u16), MediaRefused> {
        Err(MediaRefused::NoPorts)
    }
    fn open_internal(&mut self, _: Plan) -> Result<StreamId, MediaRefused> {
        Err(MediaRefused::Busy)
    }
    fn open_piped(&mut self, plan: Plan) -> Result<StreamId, MediaRefused> {
        let mut streams = self.0.borrow_mut();
        streams.opened += 1;
        let id = StreamId::new(streams.opened, 0);
        streams.open.insert(id, plan);
        Ok(id)
    }
    fn feed(&mut self, stream: StreamId, packet: &[u8]) -> bool {
        self.0.borrow_mut().fed.push((stream, packet.to_vec()));
        true
    }
    fn command(&mut self, command: Command) {
        match command {
            Command::Close { stream } => {
                assert!(self.0.borrow_mut().open.remove(&stream).is_some(), "a stream is closed twice");
            }
            Command::Stats { .. } => self.0.borrow_mut().asked += 1,
            Command::HoldBack { limits, .. } => self.0.borrow_mut().held_back.push(limits),
            _ => {}
        }
    }
}

/// One site.
pub struct Site {
    pub world: World,
    pub shard: Rc<Shard>,
    pub iax: Rc<RefCell<IaxDriver>>,
    pub streams: Rc<RefCell<Streams>>,
    /// Channels whose dialplan would have begun, and where.
    pub started: VecDeque<(ChannelId, String)>,
    /// What channels' stories heard.
    pub heard: Rc<RefCell<Vec<String>>>,
    address: SocketAddr,
}

/// Both, and the network between them.
pub struct Lab {
    pub sites: [Site; 2],
    pub now: Instant,
    under_way: VecDeque<(Instant, usize, Vec<u8>)>,
    /// Every datagram that was sent: when, to whom, bytes.
    pub wire: Vec<(Instant, usize, Vec<u8>)>,
    random: Randomness,
    /// Of a thousand datagrams so many are lost, and as many come twice.
    pub lost: u64,
    /// Number of who calls.
    pub number: String,
    /// How long work with keys takes at each site.
    pub key_wait: [Duration; 2],
    /// What is being worked on: until when, at which site.
    pub key_work: VecDeque<(Instant, usize, KeyJob)>,
}

/// A user with the password of the sites.
pub fn user(name: &str) -> User {
    User {
        name: name.into(),
        contexts: vec!["in".to_owned(), "other".to_owned()],
        secret: Some(::iax2::Secret::new(SECRET)),
        common: Common { transfer: Transfer::No, ..Common::default() },
        ..User::default()
    }
}
/// A peer at an address, where we are this user.
pub fn peer(name: &str, host: Host, username: &str, secret: &[u8]) -> Peer {
    Peer {
        name: name.into(),
        host,
        username: username.to_owned(),
        secret: Some(::iax2::Secret::new(secret)),
        qualify_every: Duration::from_secs(60),
        qualify_every_down: Duration::from_secs(10),
        common: Common { transfer: Transfer::No, ..Common::default() },
        ..Peer::default()
    }
}

/// The address of a site.
pub fn address(site: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + site as u8], 4569))
}

/// A configuration of a site that is `own` at the other one, which it knows as `far`.
pub fn config(site: usize, own: &str, other: &str) -> Config {
    let far = Host::Fixed(address(1 - site));
    let peers = [
        peer("far", far.clone(), own, SECRET),
        peer("wrong", far.clone(), own, b"something else"),
        peer("unknown", far, "nobody", SECRET),
    ];
    Config {
        binds: vec![address(site)],
        users: [user(other)].into_iter().map(|user| (user.name.clone(), Rc::new(user))).collect(),
        peers: peers.into_iter().map(|peer| (peer.name.clone(), Rc::new(peer))).collect(),
        ..Config::default()
    }
}

impl Site {
    fn new(site: usize, config: Config) -> Self {
        let world = World::new(dialplan::Program::default());
        let shard = world.shard.clone();
        let streams: Rc<RefCell<Streams>> = Rc::default();
        let iax = Rc::new(RefCell::new(IaxDriver::new(0x5eed + site as u128)));
        {
            let mut core = shard.core.borrow_mut();
            core.services.media = Box::new(Door(streams.clone()));
            core.reach = |_, context, exten, _| match exten {
                "nobody" => call::Reach::None,
                _ if context == "in" => call::Reach::Whole,
                _ => call::Reach::None,
            };
            iax.borrow_mut().open(0, address(site), core.now);
            iax.borrow_mut().configure(&mut core, config);
        }
        let index = shard.add_tech(iax.clone());
        iax.borrow_mut().set_tech_index(index);
        let address = address(site);
        let (started, heard) = (VecDeque::new(), Rc::default());
        Self { world, shard, iax, streams, started, heard, address }
    }
    /// The last that was heard of a channel of this site.
    pub fn last(&self) -> String {
        self.heard.borrow().last().cloned().unwrap_or_default()
    }
}

impl Lab {
    pub fn new(configs: [Config; 2]) -> Self {
        let [one, two] = configs;
        let mut lab = Self {
            sites: [Site::new(0, one), Site::new(1, two)],
            now: Instant::ZERO,
            under_way: VecDeque::new(),
            wire: Vec::new(),
            random: Randomness::new(Key::new(7)),
            lost: 0,
            number: "6001".to_owned(),
            key_wait: [Duration::from_millis(1); 2],
            key_work: VecDeque::new(),
        };
        lab.settle();
        lab
    }
    fn settle(&mut self) {
        for number in 0..2 {
            let site = &mut self.sites[number];
            for _ in 0..100 {
                site.shard.run(self.now);
                {
                    let mut core = site.shard.core.borrow_mut();
                    core.now = self.now;
                    let mut iax = site.iax.borrow_mut();
                    iax.due(&mut core);
                    iax.follow_bridges(&mut core);
                    core.take_regrouped();
                }
                for job in site.iax.borrow_mut().take_key_jobs() {
                    self.key_work.push_back((self.now + self.key_wait[number], number, job));
                }
                for (id, location) in site.iax.borrow_mut().take_started() {
                    let place = format!("{}@{}", location.exten, location.context);
                    site.started.push_back((id, place));
                    listen(&site.shard, id, &site.heard);
                }
                if site.shard.deadline() != Some(Instant::ZERO) {
                    break;
                }
            }
            let (now, lost) = (self.now, self.lost);
            let (random, under_way, wire) = (&mut self.random, &mut self.under_way, &mut self.wire);
            site.iax.borrow_mut().send(|_, to, bytes, _| {
                let at = (0..2).find(|other| address(*other) == to).expect("a datagram to one of the sites");
                wire.push((now, at, bytes.to_vec()));
                let copies = match random.below(1000) {
                    luck if luck < lost => 0,
                    luck if luck < 2 * lost => 2,
                    _ => 1,
                };
                for _ in 0..copies {
                    under_way.push_back((now + WAY, at, bytes.to_vec()));
                }
            });
        }
    }
    /// Lets time pass, datagram by datagram and deadline by deadline.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.settle();
            let arrival = self.under_way.front().map(|(at, ..)| *at);
            let deadlines =
                self.sites.iter().flat_map(|site| [site.iax.borrow().deadline(), site.shard.deadline()]);
            let worked = self.key_work.iter().map(|(at, ..)| *at).min();
            let next = deadlines.flatten().chain(arrival).chain(worked).min();
            let Some(next) = next.filter(|at| *at <= until) else { break };
            self.now = next.max(self.now);
            while let Some(done) = self.key_work.iter().position(|(at, ..)| *at <= self.now) {
                let Some((_, at, job)) = self.key_work.remove(done) else { break };
                let site = &self.sites[at];
                let mut core = site.shard.core.borrow_mut();
                core.now = self.now;
                site.iax.borrow_mut().key_worked(&mut core, job.id, job.carry_out());
            }
            while let Some((_, to, bytes)) = self.under_way.pop_front_if(|(at, ..)| *at <= self.now) {
                let from = self.sites[1 - to].address;
                let site = &self.sites[to];
                let mut core = site.shard.core.borrow_mut();
                core.now = self.now;
                site.iax.borrow_mut().receive(&mut core, 0, from, &bytes);
            }
        }
        self.now = until;
        self.settle();
    }
    /// Makes an outgoing channel and calls it.
    pub fn dial(&mut self, site: usize, resource: &str) -> Result<ChannelId, Cause> {
        let from = &self.sites[site];
        from.shard.core.borrow_mut().now = self.now;
        let id =
            from.shard.request("IAX2", &Request { resource: resource.to_owned(), ..Request::default() })?;
        if let Some(entry) = from.shard.core.borrow_mut().get_mut(id) {
            entry.connected.number = Some(self.number.clone());
            entry.connected.name = Some("Alice".to_owned());
        }
        listen(&from.shard, id, &from.heard);
        let called = from.shard.with_tech(id, |tech, core| tech.call(core, id)).expect("a channel");
        if let Err(cause) = called {
            from.shard.finish(id, cause);
            return Err(cause);
        }
        self.pass(Duration::from_millis(200));
        Ok(id)
    }
    /// A call that is answered: the channels of both sites.
    pub fn talk(&mut self) -> (ChannelId, ChannelId) {
        let calling = self.dial(0, "far/100").unwrap();
        self.pass(Duration::from_secs(20));
        let (called, _) = self.sites[1].started.pop_front().expect("a call");
        self.sites[1].shard.answer(called);
        self.pass(Duration::from_secs(20));
        assert_eq!(self.sites[0].last(), "Answered");
        (calling, called)
    }
    /// Nothing is left of any call.
    pub fn assert_idle(&mut self) {
        // Numbers rest for a minute, and what was lost is repeated for as long.
        self.pass(Duration::from_secs(200));
        for site in &self.sites {
            assert_eq!(site.iax.borrow().legs(), 0, "legs of {}", site.address);
            assert_eq!(site.shard.core.borrow().channel_count(), 0, "channels of {}", site.address);
            assert!(site.streams.borrow().open.is_empty(), "streams of {}", site.address);
            let numbers = site.iax.borrow().show_numbers();
            // Those at rest are looked through when the next one is drawn.
            assert_eq!((numbers.shared_in_use, numbers.hosts), (0, 0), "numbers of {}", site.address);
        }
    }
}

/// Writes down what happens to a channel, and ends it when its other side has.
fn listen(shard: &Rc<Shard>, id: ChannelId, heard: &Rc<RefCell<Vec<String>>>) {
    let (chan, heard) = (Chan::new(shard.clone(), id), heard.clone());
    let own = shard.clone();
    shard.spawn(Some(id), async move {
        loop {
            match chan.event(None).await {
                Ok(Some(event)) => heard.borrow_mut().push(format!("{event:?}")),
                Ok(None) => {}
                Err(_) => break,
            }
        }
        let cause = chan.with(|entry| entry.hangup).ok().flatten();
        let cause = cause.or_else(|| own.core.borrow().get(id).and_then(|entry| entry.hangup));
        heard.borrow_mut().push(format!("Hangup {}", cause.map_or(0, |cause| cause.0)));
        own.finish(id, Cause::NORMAL_CLEARING);
    });
}

/// Keys whose signatures are words: the name of the key and the challenge. Nobody has the one that is `lost`.
pub struct Words;

impl KeySet for Words {
    fn work(&self, work: &KeyWork) -> KeyAnswer {
        let word = |name: &str, challenge: &[u8]| [name.as_bytes(), b" signs ", challenge].concat();
        match work {
            KeyWork::Check { keys, challenge, signature } => {
                KeyAnswer::Checked(keys.iter().any(|key| word(key, challenge) == *signature))
            }
            KeyWork::Sign { key, challenge } => {
                KeyAnswer::Signed((key != "lost").then(|| word(key, challenge)))
            }
        }
    }
}
