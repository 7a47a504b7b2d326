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
        iax: Rc::new(RefCell::new(driver::iax::IaxDriver::new(7))),
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
        quiet_reload: Cell::default(),
        counters: Cell::default(),
        fault_injection: Cell::default(),
        iax_sight: RefCell::default(),
        caches: RefCell::default(),
        databases: RefCell::default(),
        record_tables: RefCell::default(),
        down: RefCell::default(),
        ari: RefCell::default(),
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
        initial_spread: std::time::Duration::ZERO,
        line: true,
        endpoint: "6001".into(),
        path: false,
        outbound: false,
        user_agent: String::new(),
        security: Vec::new(),
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

/// IAX2 as a table: two peers, one registration, one call.
#[derive(Default)]
pub(crate) struct Iax {
    /// Peers that are not registered any more.
    pub(crate) unregistered: Vec<String>,
    /// What was last asked to be told.
    pub(crate) trace: crate::iax::Trace,
    /// Whether trunks and jitter buffers are told.
    pub(crate) told: [bool; 2],
    /// Per cent that are thrown away.
    pub(crate) loss: u8,
    /// The longest datagram of trunks.
    pub(crate) mtu: usize,
}

impl crate::iax::Show for Iax {
    fn peers(&self, only: Option<&str>) -> Vec<driver::iax::PeerRow> {
        use driver::iax::{PeerRow, PeerState};
        let row = |name: &str, address: Option<&str>, state| PeerRow {
            name: name.to_owned(),
            username: String::new(),
            address: address.map(|address| address.parse().unwrap()),
            is_dynamic: false,
            trunk: false,
            encrypted: false,
            state,
            expires: None,
            channels: Vec::new(),
            is_realtime: false,
            options: vec![("description", "a site".to_owned())],
        };
        let mut site =
            row("site-b", Some("192.0.2.7:4569"), PeerState::Ok(std::time::Duration::from_millis(12)));
        (site.trunk, site.encrypted, site.username) = (true, true, "site-a".to_owned());
        site.channels = vec!["IAX2/site-b-00000001".to_owned()];
        let mut phone = row("phone", None, PeerState::Unknown);
        (phone.is_dynamic, phone.is_realtime) = (true, true);
        let mut rows = vec![phone, site];
        rows.retain(|row| only.is_none_or(|only| only == row.name));
        rows
    }
    fn users_of_rows(&self) -> Vec<driver::iax::UserRow> {
        vec![driver::iax::UserRow {
            name: "phone".to_owned(),
            has_secret: true,
            has_keys: false,
            auth: [true, false, false],
            context: "internal".to_owned(),
            restricted: false,
            priority: "Host",
        }]
    }
    fn registry(&self) -> Vec<driver::iax::RegistryRow> {
        vec![driver::iax::RegistryRow {
            place: "iax.example.com:4569".to_owned(),
            address: None,
            username: "us".to_owned(),
            perceived: Some("198.51.100.1:4569".parse().unwrap()),
            refresh: 60,
            state: driver::iax::RegistryState::Registered,
        }]
    }
    fn channels(&self) -> Vec<driver::iax::ChannelRow> {
        vec![driver::iax::ChannelRow {
            channel: "IAX2/site-b-00000001".to_owned(),
            remote: "192.0.2.7:4569".parse().unwrap(),
            username: "site-b".to_owned(),
            numbers: (17_000, 3),
            sequence: (15, 7),
            lag_ms: 12,
            jitter_ms: 2,
            buffer_ms: 40,
            messages: ["Rx:NEW".to_owned(), "Tx:LAGRQ".to_owned()],
            format: Some(FormatId::ULAW),
            encrypted: false,
            trunk: true,
        }]
    }
    fn netstats(&self) -> Vec<driver::iax::NetstatRow> {
        let side = driver::iax::Netstats { jitter_ms: 2, received: 5_000, lost: 7, ..Default::default() };
        vec![driver::iax::NetstatRow {
            channel: "IAX2/site-b-00000001".to_owned(),
            round_trip: std::time::Duration::from_millis(12),
            local: side,
            remote: driver::iax::Netstats::default(),
            messages: ["Rx:NEW".to_owned(), "Tx:LAGRQ".to_owned()],
        }]
    }
    fn stats(&self) -> driver::iax::Stats {
        let discards = vec![("too_short", 3), ("bad_version", 0)];
        driver::iax::Stats { received: 100, sent: 90, legs: 2, trunks: 1, discards }
    }
    fn keys(&self) -> Vec<driver::iax::KeyRow> {
        use driver::iax::{KeyKind, KeyRow};
        let row = |kind, status| KeyRow { name: "site-b".to_owned(), kind, status, sum: "0f".repeat(16) };
        vec![row(KeyKind::Public, "[Loaded]"), row(KeyKind::Private, "[Needs Passcode]")]
    }
    fn numbers(&self) -> driver::iax::Numbers {
        driver::iax::Numbers {
            shared_in_use: 1,
            without_token_max: 8192,
            of_address_max: 2048,
            ..Default::default()
        }
    }
    fn hosts(&self, only: Option<std::net::IpAddr>, most: usize) -> Vec<driver::iax::HostNumbers> {
        let row = |last: u8, used| driver::iax::HostNumbers {
            address: std::net::IpAddr::from([192, 0, 2, last]),
            used,
            most: 2048,
        };
        let rows = [row(7, 20), row(8, 1)].into_iter();
        rows.filter(|row| only.is_none_or(|only| only == row.address)).take(most).collect()
    }
    fn unregister(&mut self, peer: &str) -> bool {
        let known = peer == "phone" && !self.unregistered.iter().any(|gone| gone == peer);
        self.unregistered.extend(known.then(|| peer.to_owned()));
        known
    }
    fn set_trace(&mut self, trace: crate::iax::Trace) {
        self.trace = trace;
    }
    fn set_trunk_trace(&mut self, on: bool) {
        self.told[0] = on;
    }
    fn set_jitter_trace(&mut self, on: bool) {
        self.told[1] = on;
    }
    fn set_loss(&mut self, percent: u8) {
        self.loss = percent;
    }
    fn set_trunk_mtu(&mut self, bytes: usize) -> usize {
        std::mem::replace(&mut self.mtu, bytes)
    }
}

/// Two mailboxes of `default`: 6001 (Alice, PIN 1234) and 6002 (Bob).
pub(crate) fn mailboxes(settings: &mut call::Settings) {
    use call::voicemail::{Account, BoxName, BoxRules, Voicemail, Zone};
    let account = |mailbox: &str, full_name: &str, tz: &str| {
        let name = BoxName::new(mailbox, "default").unwrap();
        let rules = BoxRules { maxmsg: 100, tz: tz.into(), ..BoxRules::default() };
        let account = Account {
            name: name.clone(),
            pin: "1234".into(),
            pin_is_fixed: false,
            full_name: full_name.into(),
            emails: vec![format!("{}@example.com", full_name.to_lowercase())],
            pager: String::new(),
            rules: Arc::new(rules),
            is_row: false,
        };
        (name, Arc::new(account))
    };
    let berlin = Zone { zone: "Europe/Berlin".into(), format: "'vm-received' Q".into() };
    settings.voicemail = Arc::new(Voicemail {
        accounts: [account("6001", "Alice", "berlin"), account("6002", "Bob", "")].into(),
        zones: [("berlin".to_owned(), berlin)].into(),
        ..Voicemail::default()
    });
}
