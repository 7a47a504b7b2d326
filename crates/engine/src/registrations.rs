//! Registrations on disk: journaled before the reply leaves, replayed at the start.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use base::Instant;
use driver::sip::{Bind, Binding, Change, SipDriver};
use serde::{Deserialize, Serialize};
use sip::registrar::Cause;
use sip::stack::{Flow, Protocol};
use store::journal::Journal;

/// File name in `astdbdir`, without its generation.
const STEM: &str = "registrations";

/// A binding as it stands in the journal. Times are wall time: the monotonic clock begins anew with each start.
#[derive(Serialize, Deserialize)]
struct Record {
    aor: String,
    uri: Vec<u8>,
    /// Seconds since the epoch; 0: it is gone.
    expires: u64,
    q: u16,
    call_id: Vec<u8>,
    cseq: u32,
    path: Vec<Vec<u8>>,
    remote: SocketAddr,
    /// Name of the transport: numbers may be others after a restart.
    bind: String,
    protocol: String,
    instance: Option<Vec<u8>>,
    reg_id: Option<u32>,
    user_agent: Vec<u8>,
}

/// Both clocks, read together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    pub(crate) now: Instant,
    pub(crate) wall: Duration,
}

impl Record {
    fn of(aor: &str, binding: &Binding, gone: bool, binds: &[Bind], clocks: Clocks) -> Self {
        let bind = binds.iter().find(|bind| bind.id == binding.source.transport);
        let left = binding.expires_at.since(clocks.now);
        Self {
            aor: aor.to_owned(),
            uri: binding.uri.clone(),
            expires: if gone { 0 } else { (clocks.wall + left).as_secs() },
            q: binding.q,
            call_id: binding.call_id.clone(),
            cseq: binding.cseq,
            path: binding.path.clone(),
            remote: binding.source.remote,
            bind: bind.map(|bind| bind.name.clone()).unwrap_or_default(),
            protocol: binding.source.protocol.name().to_owned(),
            instance: binding.instance.clone(),
            reg_id: binding.reg_id,
            user_agent: binding.user_agent.clone(),
        }
    }
    /// The binding, when it still lives and there is a bind that leads to it: its own, or one like it.
    fn binding(self, binds: &[Bind], clocks: Clocks) -> Option<(String, Binding)> {
        let left =
            Duration::from_secs(self.expires).checked_sub(clocks.wall).filter(|left| !left.is_zero())?;
        let protocol = match self.protocol.as_str() {
            "UDP" => Protocol::Udp,
            // The connection went with the process that held it.
            _ => return None,
        };
        let fits = |bind: &&Bind| bind.protocol == protocol && bind.local.is_ipv4() == self.remote.is_ipv4();
        let mut candidates = binds.iter().filter(fits);
        let own = candidates.clone().find(|bind| bind.name == self.bind);
        let transport = own.or_else(|| candidates.next())?.id;
        let source = Flow { transport, protocol, connection: None, remote: self.remote };
        let binding = Binding {
            uri: self.uri,
            q: self.q,
            call_id: self.call_id,
            cseq: self.cseq,
            path: self.path,
            source,
            instance: self.instance,
            reg_id: self.reg_id,
            user_agent: self.user_agent,
            expires_at: clocks.now + left,
        };
        Some((self.aor, binding))
    }
}

/// The journal of bindings.
pub(crate) struct Registrations {
    journal: Journal,
    live_bytes: u64,
}

impl Registrations {
    /// Opens the journal below `folder` and puts back what is alive. Says how many.
    pub(crate) fn open(
        folder: &Path,
        driver: &mut SipDriver,
        clocks: Clocks,
    ) -> std::io::Result<(Self, usize)> {
        let (journal, replay) = Journal::open(&folder.join(STEM))?;
        let mut last: BTreeMap<(String, Vec<u8>), Record> = BTreeMap::new();
        for record in replay.records.iter().filter_map(|bytes| serde_json::from_slice::<Record>(bytes).ok()) {
            last.insert((record.aor.clone(), record.uri.clone()), record);
        }
        let mut count = 0;
        let config = driver.config().clone();
        for (aor, binding) in last.into_values().filter_map(|record| record.binding(&config.binds, clocks)) {
            driver.restore(&aor, binding, clocks.now);
            count += 1;
        }
        let mut own = Self { journal, live_bytes: 0 };
        own.compact(driver, clocks);
        Ok((own, count))
    }
    /// Writes what changed; to be called before the replies leave. Says what went wrong.
    pub(crate) fn write(&mut self, changes: &[Change], driver: &SipDriver, clocks: Clocks) -> Option<String> {
        let mut trouble = self.journal.trouble();
        for change in changes {
            let gone = matches!(change.cause, Cause::Removed | Cause::Expired);
            let record = Record::of(&change.aor, &change.binding, gone, &driver.config().binds, clocks);
            let bytes = serde_json::to_vec(&record).unwrap_or_default();
            if let Err(why) = self.journal.append(&bytes) {
                trouble = Some(format!("registration of '{}' is not on disk: {why}", change.aor));
            }
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
        self.live_bytes = live.iter().map(|bytes| bytes.len() as u64).sum();
        self.journal.compact(live.iter().map(Vec::as_slice));
    }
}
