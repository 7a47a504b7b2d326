//! Subscriptions on disk: journaled when they begin and are refreshed, given back to the driver at the start.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use driver::sip::{Bind, KeptSubscription, SipDriver, SubscriptionChange};
use serde::{Deserialize, Serialize};
use sip::OwnedMessage;
use store::journal::{Journal, RECORD_BYTES_MAX};

use crate::registrations::{Clocks, Octets, way_to};

/// File name in `astdbdir`, without its generation.
const STEM: &str = "subscriptions";

/// A subscription as it stands in the journal.
#[derive(Serialize, Deserialize)]
struct Record {
    tag: String,
    /// Seconds since the epoch; 0: it is gone.
    expires: u64,
    #[serde(default)]
    kept: Option<Kept>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    endpoint: String,
    cseq: u32,
    message: Octets,
    remote: SocketAddr,
    /// Name of the transport: numbers may be others after a restart.
    bind: String,
    protocol: String,
}

impl Record {
    fn of(kept: &KeptSubscription, binds: &[Bind], clocks: Clocks) -> Self {
        let source = kept.source;
        let bind = binds.iter().find(|bind| bind.id == source.transport);
        Self {
            tag: kept.tag.clone(),
            expires: (clocks.wall + kept.until.since(clocks.now)).as_secs(),
            kept: Some(Kept {
                endpoint: kept.endpoint.clone(),
                cseq: kept.cseq,
                message: Octets::of(&kept.message.bytes()),
                remote: source.remote,
                bind: bind.map(|bind| bind.name.clone()).unwrap_or_default(),
                protocol: source.protocol.name().to_owned(),
            }),
        }
    }
    /// The subscription, when it has not lapsed and a transport leads to its watcher.
    fn subscription(self, binds: &[Bind], clocks: Clocks) -> Option<KeptSubscription> {
        let left = Duration::from_secs(self.expires).checked_sub(clocks.wall)?;
        let kept = self.kept.filter(|_| !left.is_zero())?;
        Some(KeptSubscription {
            endpoint: kept.endpoint,
            tag: self.tag,
            cseq: kept.cseq,
            message: OwnedMessage::parse(kept.message.0).ok()?,
            // Other connections went with the process that held them.
            source: way_to(binds, kept.remote, &kept.bind).filter(|_| kept.protocol == "UDP")?,
            until: clocks.now + left,
        })
    }
}

/// The journal of subscriptions.
pub(crate) struct Subscriptions {
    journal: Journal,
    live_bytes: u64,
}

impl Subscriptions {
    /// Opens the journal below `folder` and gives the driver what is alive. Says how many.
    pub(crate) fn open(
        folder: &Path,
        driver: &mut SipDriver,
        clocks: Clocks,
    ) -> std::io::Result<(Self, usize)> {
        let (journal, replay) = Journal::open(&folder.join(STEM))?;
        let mut last: BTreeMap<String, Record> = BTreeMap::new();
        for record in replay.records.iter().filter_map(|bytes| serde_json::from_slice::<Record>(bytes).ok()) {
            last.insert(record.tag.clone(), record);
        }
        let mut count = 0;
        let config = driver.config().clone();
        for kept in last.into_values().filter_map(|record| record.subscription(&config.binds, clocks)) {
            driver.restore_subscription(kept);
            count += 1;
        }
        let mut own = Self { journal, live_bytes: 0 };
        own.compact(driver, clocks);
        Ok((own, count))
    }
    /// Writes what changed. Says what went wrong.
    pub(crate) fn write(
        &mut self,
        changes: &[SubscriptionChange],
        driver: &SipDriver,
        clocks: Clocks,
    ) -> Option<String> {
        let binds = &driver.config().binds;
        let record = |change: &SubscriptionChange| match change {
            SubscriptionChange::Kept(kept) => Record::of(kept, binds, clocks),
            SubscriptionChange::Gone(tag) => Record { tag: tag.clone(), expires: 0, kept: None },
        };
        let records = changes.iter().filter_map(|change| serde_json::to_vec(&record(change)).ok());
        // One that is too long is as one that nobody wrote down: its watcher subscribes anew.
        let records: Vec<Vec<u8>> = records.filter(|bytes| bytes.len() <= RECORD_BYTES_MAX).collect();
        let mut trouble = self.journal.trouble();
        if let Err(why) = self.journal.append_all(records.iter().map(Vec::as_slice)) {
            trouble = Some(format!("{} changes of subscriptions are not on disk: {why}", records.len()));
        }
        if self.journal.wants_compaction(self.live_bytes) {
            self.compact(driver, clocks);
        }
        trouble
    }
    fn compact(&mut self, driver: &SipDriver, clocks: Clocks) {
        let binds = &driver.config().binds;
        let live: Vec<Vec<u8>> = driver
            .kept_subscriptions(clocks.now)
            .filter_map(|kept| serde_json::to_vec(&Record::of(&kept, binds, clocks)).ok())
            .collect();
        self.live_bytes = live.iter().map(|bytes| bytes.len() as u64).sum();
        self.journal.compact(live.iter().map(Vec::as_slice));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Instant;
    use driver::sip::Config;
    use sip::stack::{Flow, PeerName, Protocol, TransportId};

    fn driver(name: &str, id: u16) -> SipDriver {
        let bind = Bind {
            name: name.to_owned(),
            id: TransportId(id),
            protocol: Protocol::Udp,
            local: "127.0.0.1:5070".parse().unwrap(),
            external_media: None,
            external_signaling: None,
            local_nets: Vec::new(),
            domain: String::new(),
            marking: base::Marking::default(),
        };
        SipDriver::new(Config { binds: vec![bind], ..Config::default() }, 1, [1; 32], |_| None)
    }
    fn kept(tag: &str, protocol: Protocol, seconds: u64, now: Instant) -> KeptSubscription {
        let text = "SUBSCRIBE sip:600@h SIP/2.0\r\nVia: SIP/2.0/UDP p;branch=z9hG4bK1\r\nFrom: <sip:a@h>;tag=1\r\n\
                    To: <sip:600@h>\r\nCall-ID: c\r\nCSeq: 1 SUBSCRIBE\r\nContent-Length: 0\r\n\r\n";
        KeptSubscription {
            endpoint: "alice".to_owned(),
            tag: tag.to_owned(),
            cseq: 9,
            message: OwnedMessage::parse(text.as_bytes().to_vec()).unwrap(),
            source: Flow {
                transport: TransportId(3),
                protocol,
                connection: None,
                name: PeerName::NONE,
                remote: "198.51.100.7:5062".parse().unwrap(),
            },
            until: now + Duration::from_secs(seconds),
        }
    }

    #[test]
    fn subscriptions_survive_a_restart_by_the_name_of_their_transport() {
        let folder = std::env::temp_dir().join(format!("strowger-subscriptions-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let wall = Duration::from_secs(1_800_000_000);
        let before = Clocks { now: Instant::ZERO + Duration::from_secs(500), wall };
        {
            let mut driver = driver("phones", 3);
            let (mut journal, restored) = Subscriptions::open(&folder, &mut driver, before).unwrap();
            assert_eq!(restored, 0);
            let of = |tag, protocol, seconds| {
                SubscriptionChange::Kept(Box::new(kept(tag, protocol, seconds, before.now)))
            };
            let changes = [
                of("kept", Protocol::Udp, 60),
                of("gone", Protocol::Udp, 600),
                SubscriptionChange::Gone("gone".to_owned()),
                of("short", Protocol::Udp, 60),
                of("tcp", Protocol::Tcp, 600),
                of("kept", Protocol::Udp, 600),
            ];
            assert_eq!(journal.write(&changes, &driver, before), None);
        }
        let after = Clocks { now: Instant::ZERO, wall: wall + Duration::from_secs(100) };
        for _ in 0..2 {
            let mut driver = driver("phones", 7);
            let (_, restored) = Subscriptions::open(&folder, &mut driver, after).unwrap();
            let back: Vec<KeptSubscription> = driver.kept_subscriptions(after.now).collect();
            let [one] = back.as_slice() else { panic!("{back:?}") };
            assert_eq!((restored, &*one.tag, &*one.endpoint, one.cseq), (1, "kept", "alice", 9));
            assert_eq!(one.source.transport, TransportId(7), "by the transport of that name");
            assert_eq!(one.until, after.now + Duration::from_secs(500));
            assert_eq!(one.message.view().request_uri_bytes(), b"sip:600@h");
        }
        std::fs::remove_dir_all(&folder).ok();
    }
}
