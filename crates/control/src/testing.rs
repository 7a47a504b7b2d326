//! What the tests of both dialects share: a small running system on invented time.

use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use apps::hints::Hints;
use base::{FormatId, FormatSet, Instant};
use call::PartyId;
use driver::sip::{Aor, Auth, Bind, Config, Endpoint, Proof, SipDriver};
use io::media::{Level, MediaFront, MediaSettings, PortRange, Translation};
use sim::World;
use store::Snapshot;
use store::config::tones::Tones;
use store::log::LogSink;
use store::sounds::{Catalogue, Sounds};

use crate::site::Site;

/// An empty folder of a test, gone with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// `name` is the test's own among all of this program.
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("strowger-control-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl std::ops::Deref for Folder {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A world that runs this dialplan.
pub(crate) fn world(dialplan: &str) -> World {
    let (program, findings) = sim::parse_dialplan(dialplan, &apps::table::tables());
    assert_eq!(findings, [] as [&str; 0]);
    World::new(program)
}

/// All of a running system around a world; what it writes goes into `folder`.
pub(crate) fn site(world: &World, folder: &Path, snapshot: Arc<Snapshot>, sip: Config) -> Rc<Site> {
    let (log, sender) = LogSink::start(&snapshot.logger, folder, None).unwrap();
    let settings = MediaSettings {
        ports: PortRange { first: 10_000, last: 10_099 },
        io: io::media::Io::sockets(Some(1)),
        real_time: false,
        tick_ms: None,
        lanes: Default::default(),
        random: Box::new(|| 4),
    };
    let (media, _) = MediaFront::start(settings).unwrap();
    let sounds = Sounds::start(Catalogue::default(), Tones::default(), || {}).unwrap();
    let mut hints = Hints::default();
    hints.update(&world.shard);
    let sip = Rc::new(RefCell::new(SipDriver::new(sip, 7, [7; 32], |_| None)));
    let index = world.shard.add_tech(sip.clone());
    sip.borrow_mut().set_tech_index(index);
    Rc::new(Site {
        shard: world.shard.clone(),
        sip,
        hints: Rc::new(RefCell::new(hints)),
        media: Rc::new(RefCell::new(media)),
        translation: Translation::open(Level::best(), folder, store::sounds::speech),
        external: RefCell::default(),
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

fn endpoint(name: &str, caller: &str) -> Endpoint {
    let mut allow = FormatSet::EMPTY;
    allow.push(FormatId::ULAW);
    Endpoint {
        name: name.into(),
        context: "default".into(),
        aors: vec![name.into()],
        auths: vec![name.into()],
        allow,
        caller: PartyId::parse(caller),
        force_rport: true,
        rtp_symmetric: true,
        ptime_ms: 20,
        ..Endpoint::default()
    }
}

/// Two endpoints: one with a contact that is written down, one without any.
pub(crate) fn sip_config() -> Config {
    let mut config = Config::default();
    for (name, caller, contacts, max_contacts) in
        [("6001", "Alice <6001>", vec!["sip:6001@192.0.2.7:5070".to_owned()], 0), ("6002", "", Vec::new(), 2)]
    {
        config.endpoints.insert(name.into(), Rc::new(endpoint(name, caller)));
        let aor = Aor {
            name: name.into(),
            contacts,
            max_contacts,
            remove_existing: true,
            remove_unavailable: false,
            default_expiration: 3_600,
            minimum_expiration: 60,
            maximum_expiration: 7_200,
            qualify_frequency: 0,
            qualify_timeout: core::time::Duration::from_secs(3),
            qualify_2xx_only: false,
            authenticate_qualify: false,
            outbound_proxy: String::new(),
            support_path: false,
            mailboxes: Vec::new(),
            voicemail: String::new(),
        };
        config.aors.insert(name.into(), Rc::new(aor));
        let auth = Auth {
            username: format!("user{name}"),
            realm: String::new(),
            proof: Proof::Password("very secret words".into()),
            algorithms: Vec::new(),
            answers: Vec::new(),
        };
        config.auths.insert(name.into(), Rc::new(auth));
    }
    config.registrations.push(Rc::new(driver::sip::Registration {
        name: "provider".into(),
        server_uri: "sip:192.0.2.50".into(),
        client_uri: "sip:4930@192.0.2.50".into(),
        transport: String::new(),
        outbound_proxy: String::new(),
        outbound_auths: vec!["6001".into()],
        contact_user: "4930".into(),
        contact_params: String::new(),
        rules: ::sip::registration::Rules {
            expiration: 3600,
            retry: Some(std::time::Duration::from_secs(60)),
            forbidden_retry: None,
            fatal_retry: None,
            max_retries: 10,
            rejection_is_permanent: true,
        },
        line: true,
        endpoint: "6001".into(),
        path: false,
        outbound: false,
        user_agent: String::new(),
    }));
    config.binds.push(Bind {
        name: "transport-udp".into(),
        id: ::sip::stack::TransportId(0),
        protocol: ::sip::stack::Protocol::Udp,
        local: SocketAddr::from((Ipv4Addr::LOCALHOST, 5060)),
        external_media: None,
        external_signaling: None,
        local_nets: Vec::new(),
        domain: String::new(),
        marking: base::Marking::default(),
    });
    config
}
