//! Registrations on disk: journaled before the reply leaves, replayed at the start.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use base::Instant;
use driver::sip::{Bind, Binding, Change, SipDriver};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sip::registrar::Cause;
use sip::stack::{Flow, PeerName, Protocol};
use store::journal::{Journal, RECORD_BYTES_MAX};

/// File name in `astdbdir`, without its generation.
const STEM: &str = "registrations";

/// A binding as it stands in the journal. Times are wall time: the monotonic clock begins anew with each start.
#[derive(Serialize, Deserialize)]
struct Record {
    aor: String,
    uri: Octets,
    /// Seconds since the epoch; 0: it is gone.
    expires: u64,
    q: u16,
    call_id: Octets,
    cseq: u32,
    path: Vec<Octets>,
    remote: SocketAddr,
    /// Name of the transport: numbers may be others after a restart.
    bind: String,
    protocol: String,
    instance: Option<Octets>,
    reg_id: Option<u32>,
    #[serde(default)]
    outbound: bool,
    user_agent: Octets,
}

/// Bytes of a SIP message: text in the journal, or numbers when they are no UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Octets(pub(crate) Vec<u8>);

impl Octets {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl Serialize for Octets {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => to.serialize_str(text),
            Err(_) => to.collect_seq(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Octets {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

/// Reads either form.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Octets;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("text or bytes")
    }
    fn visit_str<E>(self, text: &str) -> Result<Octets, E> {
        Ok(Octets::of(text.as_bytes()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Octets, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.push(byte);
        }
        Ok(Octets(bytes))
    }
}

/// Both clocks, read together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    pub(crate) now: Instant,
    pub(crate) wall: Duration,
}

/// What a binding of an AOR is known by: its instance and flow, or what it is called.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    Flow(Octets, Option<u32>),
    Contact(Octets),
}

impl Record {
    fn identity(&self) -> Identity {
        match &self.instance {
            Some(instance) => Identity::Flow(instance.clone(), self.reg_id),
            None => Identity::Contact(self.uri.clone()),
        }
    }
    fn of(aor: &str, binding: &Binding, gone: bool, binds: &[Bind], clocks: Clocks) -> Self {
        let bind = binds.iter().find(|bind| bind.id == binding.source.transport);
        let left = binding.expires_at.since(clocks.now);
        Self {
            aor: aor.to_owned(),
            uri: Octets::of(&binding.uri),
            expires: if gone { 0 } else { (clocks.wall + left).as_secs() },
            q: binding.q,
            call_id: Octets::of(&binding.call_id),
            cseq: binding.cseq,
            path: binding.path.iter().map(|hop| Octets::of(hop)).collect(),
            remote: binding.source.remote,
            bind: bind.map(|bind| bind.name.clone()).unwrap_or_default(),
            protocol: binding.source.protocol.name().to_owned(),
            instance: binding.instance.as_deref().map(Octets::of),
            reg_id: binding.reg_id,
            outbound: binding.outbound,
            user_agent: Octets::of(&binding.user_agent),
        }
    }
    fn is_alive(&self, clocks: Clocks) -> bool {
        self.expires > clocks.wall.as_secs()
    }
    /// The binding, when it still lives and there is a bind that leads to it: its own, or one like it.
    fn binding(self, binds: &[Bind], clocks: Clocks) -> Option<(String, Binding)> {
        let left =
            Duration::from_secs(self.expires).checked_sub(clocks.wall).filter(|left| !left.is_zero())?;
        // Other connections went with the process that held them.
        let source = way_to(binds, self.remote, &self.bind).filter(|_| self.protocol == "UDP")?;
        let binding = Binding {
            uri: self.uri.0,
            q: self.q,
            call_id: self.call_id.0,
            cseq: self.cseq,
            path: self.path.into_iter().map(|hop| hop.0).collect(),
            source,
            instance: self.instance.map(|instance| instance.0),
            reg_id: self.reg_id,
            outbound: self.outbound,
            user_agent: self.user_agent.0,
            expires_at: clocks.now + left,
        };
        Some((self.aor, binding))
    }
}

/// The way to an address by UDP: by the bind of this name, or by one like it.
pub(crate) fn way_to(binds: &[Bind], remote: SocketAddr, name: &str) -> Option<Flow> {
    let protocol = Protocol::Udp;
    let fits = |bind: &&Bind| bind.protocol == protocol && bind.local.is_ipv4() == remote.is_ipv4();
    let mut candidates = binds.iter().filter(fits);
    let own = candidates.clone().find(|bind| bind.name == name);
    let transport = own.or_else(|| candidates.next())?.id;
    Some(Flow { transport, protocol, connection: None, name: PeerName::NONE, remote })
}

/// The journal of bindings.
pub(crate) struct Registrations {
    journal: Journal,
    live_bytes: u64,
    /// It held nothing when it was opened.
    pub(crate) is_new: bool,
    /// Bindings of AORs that no database has told of yet.
    homeless: BTreeMap<String, Vec<Record>>,
}

impl Registrations {
    /// Opens the journal below `folder` and puts back what is alive. Says how many. When AORs may be known later, so that
    /// what is theirs waits for them.
    pub(crate) fn open(
        folder: &Path,
        driver: &mut SipDriver,
        may_come: bool,
        clocks: Clocks,
    ) -> std::io::Result<(Self, usize)> {
        let (journal, replay) = Journal::open(&folder.join(STEM))?;
        let mut last: BTreeMap<(String, Identity), Record> = BTreeMap::new();
        for record in replay.records.iter().filter_map(|bytes| serde_json::from_slice::<Record>(bytes).ok()) {
            last.insert((record.aor.clone(), record.identity()), record);
        }
        let mut count = 0;
        let config = driver.config().clone();
        let mut homeless: BTreeMap<String, Vec<Record>> = BTreeMap::new();
        if may_come {
            let strangers = last.extract_if(.., |(aor, _), _| !config.aors.contains_key(aor.as_str()));
            for ((aor, _), record) in strangers.filter(|(_, record)| record.is_alive(clocks)) {
                homeless.entry(aor).or_default().push(record);
            }
        }
        for (aor, binding) in last.into_values().filter_map(|record| record.binding(&config.binds, clocks)) {
            driver.restore(&aor, binding, clocks.now);
            count += 1;
        }
        let mut own = Self { journal, live_bytes: 0, is_new: replay.records.is_empty(), homeless };
        own.compact(driver, clocks);
        Ok((own, count))
    }
    /// Puts back what waited for its AOR, once that is known; whether something did.
    pub(crate) fn settle(&mut self, driver: &mut SipDriver, clocks: Clocks) -> bool {
        let before = self.homeless.len();
        if before == 0 {
            return false;
        }
        let config = driver.config().clone();
        let known = self.homeless.extract_if(.., |aor, _| config.aors.contains_key(aor.as_str()));
        for record in known.flat_map(|(_, records)| records) {
            if let Some((aor, binding)) = record.binding(&config.binds, clocks) {
                driver.restore(&aor, binding, clocks.now);
            }
        }
        self.homeless.len() < before
    }
    /// Whether bindings wait for this AOR.
    pub(crate) fn awaits(&self, aor: &str) -> bool {
        self.homeless.contains_key(aor)
    }
    /// Writes what changed; to be called before the replies leave. Says what went wrong.
    pub(crate) fn write(&mut self, changes: &[Change], driver: &SipDriver, clocks: Clocks) -> Option<String> {
        let mut trouble = self.journal.trouble();
        let binds = &driver.config().binds;
        let mut records = Vec::with_capacity(changes.len());
        for change in changes {
            let gone = matches!(change.cause, Cause::Removed | Cause::Expired);
            let record = Record::of(&change.aor, &change.binding, gone, binds, clocks);
            let bytes = serde_json::to_vec(&record).unwrap_or_default();
            if bytes.len() <= RECORD_BYTES_MAX {
                records.push(bytes);
            } else {
                // It must not keep those of others from the disk.
                let (aor, length) = (&change.aor, bytes.len());
                trouble = Some(format!("registration of '{aor}' is not on disk: it is {length} bytes long"));
            }
        }
        if let Err(why) = self.journal.append_all(records.iter().map(Vec::as_slice)) {
            let aors: Vec<&str> = changes.iter().map(|change| change.aor.as_str()).collect();
            trouble = Some(format!("registrations of {} are not on disk: {why}", aors.join(", ")));
        }
        if self.journal.wants_compaction(self.live_bytes) {
            self.compact(driver, clocks);
        }
        trouble
    }
    fn compact(&mut self, driver: &SipDriver, clocks: Clocks) {
        let binds = &driver.config().binds;
        let live: Vec<Vec<u8>> = driver
            .bindings()
            .filter_map(|(aor, binding)| {
                serde_json::to_vec(&Record::of(aor, binding, false, binds, clocks)).ok()
            })
            .collect();
        let waiting = self.homeless.values().flatten().filter(|record| record.is_alive(clocks));
        let waiting = waiting.filter_map(|record| serde_json::to_vec(record).ok());
        let live: Vec<Vec<u8>> = live.into_iter().chain(waiting).collect();
        self.live_bytes = live.iter().map(|bytes| bytes.len() as u64).sum();
        self.journal.compact(live.iter().map(Vec::as_slice));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::sip::{Aor, Config};
    use sip::stack::TransportId;

    fn bind(name: &str, id: u16, protocol: Protocol, local: &str) -> Bind {
        Bind {
            name: name.to_owned(),
            id: TransportId(id),
            protocol,
            local: local.parse().unwrap(),
            external_media: None,
            external_signaling: None,
            local_nets: Vec::new(),
            domain: String::new(),
            marking: base::Marking::default(),
        }
    }
    fn driver(binds: Vec<Bind>) -> SipDriver {
        let aor = Aor {
            name: "alice".into(),
            contacts: Vec::new(),
            max_contacts: 9,
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
            support_path: true,
            mailboxes: Vec::new(),
            voicemail: String::new(),
        };
        let aors = [(aor.name.clone(), std::rc::Rc::new(aor))].into();
        SipDriver::new(Config { binds, aors, ..Config::default() }, 1, [1; 32], |_| None)
    }
    fn binding(uri: &str, protocol: Protocol, id: u16, seconds: u64, now: Instant) -> Binding {
        Binding {
            uri: uri.as_bytes().to_vec(),
            q: 500,
            call_id: b"c".to_vec(),
            cseq: 7,
            path: vec![b"<sip:edge;lr>".to_vec()],
            source: Flow {
                transport: TransportId(id),
                protocol,
                connection: None,
                name: PeerName::NONE,
                remote: "198.51.100.7:5062".parse().unwrap(),
            },
            instance: None,
            reg_id: None,
            outbound: false,
            user_agent: b"phone".to_vec(),
            expires_at: now + Duration::from_secs(seconds),
        }
    }

    fn by_flow(uri: &str, now: Instant) -> Binding {
        let instance = Some(b"<urn:uuid:1>".to_vec());
        Binding { instance, outbound: true, ..binding(uri, Protocol::Udp, 1, 600, now) }
    }

    #[test]
    fn bytes_are_kept_as_text_where_they_are_text() {
        for (bytes, json) in [(&b"sip:a@h"[..], "\"sip:a@h\""), (b"a\xff", "[97,255]"), (b"", "\"\"")] {
            let octets = Octets::of(bytes);
            assert_eq!(serde_json::to_string(&octets).unwrap(), json);
            assert_eq!(serde_json::from_str::<Octets>(json).unwrap(), octets);
        }
    }

    #[test]
    fn registrations_survive_a_restart_by_the_name_of_their_transport() {
        let folder = std::env::temp_dir().join(format!("strowger-registrations-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let wall = Duration::from_secs(1_800_000_000);
        let before = Clocks { now: Instant::ZERO + Duration::from_secs(500), wall };
        let udp = |name: &str, id| bind(name, id, Protocol::Udp, &format!("127.0.0.1:{}", 5070 + id));
        {
            let mut driver =
                driver(vec![udp("a", 0), udp("b", 1), bind("t", 2, Protocol::Tcp, "127.0.0.1:5070")]);
            let (mut journal, restored) = Registrations::open(&folder, &mut driver, false, before).unwrap();
            assert_eq!(restored, 0);
            let change = |cause, binding| Change { aor: "alice".to_owned(), cause, binding };
            let flow = |uri, reg_id| Binding { reg_id: Some(reg_id), ..by_flow(uri, before.now) };
            let changes = [
                change(Cause::Added, binding("sip:kept@h", Protocol::Udp, 1, 600, before.now)),
                change(Cause::Added, binding("sip:gone@h", Protocol::Udp, 1, 600, before.now)),
                change(Cause::Removed, binding("sip:gone@h", Protocol::Udp, 1, 600, before.now)),
                change(Cause::Added, binding("sip:short@h", Protocol::Udp, 1, 60, before.now)),
                change(Cause::Added, binding("sip:tcp@h", Protocol::Tcp, 2, 600, before.now)),
                // One phone by three flows: one moves, one goes, and their contacts are the same.
                change(Cause::Added, flow("sip:moved@h", 1)),
                change(Cause::Refreshed, flow("sip:a@h", 1)),
                change(Cause::Added, flow("sip:a@h", 2)),
                change(Cause::Added, flow("sip:a@h", 3)),
                change(Cause::Removed, flow("sip:a@h", 2)),
            ];
            assert_eq!(journal.write(&changes, &driver, before), None);
        }
        // The clock of the new process begins elsewhere, and the transports have other numbers.
        let after =
            Clocks { now: Instant::ZERO + Duration::from_secs(3), wall: wall + Duration::from_secs(100) };
        let mut driver = driver(vec![udp("b", 0), udp("z", 1)]);
        let (_, restored) = Registrations::open(&folder, &mut driver, false, after).unwrap();
        assert_eq!(restored, 3);
        let mut kept: Vec<Binding> = driver.bindings().map(|(_, binding)| binding.clone()).collect();
        kept.sort_by_key(|binding| binding.reg_id);
        let flows: Vec<Option<u32>> = kept.iter().map(|binding| binding.reg_id).collect();
        assert_eq!(flows, [None, Some(1), Some(3)]);
        assert!(kept.iter().skip(1).all(|flow| flow.uri == b"sip:a@h" && flow.outbound));
        let mut expected = binding("sip:kept@h", Protocol::Udp, 0, 500, after.now);
        expected.source.transport = TransportId(0);
        assert_eq!(kept.first(), Some(&expected));
        std::fs::remove_dir_all(&folder).ok();
    }
}
