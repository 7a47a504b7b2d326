//! Users and peers of IAX2 that lie in databases (families `iaxusers` and `iaxpeers`): what is known of them, what is asked,
//! what is written back, and what follows for the driver.
//!
//! The journal is the truth about registrations; rows follow it behind.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use call::Level;
use conf::{Findings, Section};
use control::site::{CacheFault, CacheLine, CacheWish, Caches, ObjectLine};
use driver::Lookup;
use driver::iax::{Config, Directory, Kind, Learned, Lease, Peer, User};
use io::clock::Clock;
use realtime::Row;
use realtime::cache::{Given, Rules};
use store::Snapshot;
use store::config::iax::{Iax, IaxGeneral};
use store::config::realtime::{IAX_PEERS, IAX_USERS, NAME, RowReader};

use crate::databases::{Asker, Shared};
use crate::family::{self, Family, Name, Rowed, Said};
use crate::registrations::Clocks;
use crate::rows::TOLD_MAX;
use crate::wire::iax::{iax_peer, iax_user};
use crate::wire::system_name;
use crate::writer::{Write, Writer};

/// With `rtcachefriends` a row is asked for again behind its next use after so long, so that a changed password is obeyed.
const STALE: Duration = Duration::from_secs(600);
/// With `rtcachefriends` it is remembered for so long that there is no such row.
const NEGATIVE: Duration = Duration::from_secs(10);

const KINDS: [(Kind, &str, &str, Asker); 2] = [
    (Kind::User, IAX_USERS, "users of IAX2", Asker::IaxUsers),
    (Kind::Peer, IAX_PEERS, "peers of IAX2", Asker::IaxPeers),
];

/// What a column of a row says that tells where a peer is.
fn place_of(row: &Row) -> Option<(SocketAddr, u64)> {
    let ip: IpAddr = row.get("ipaddr")?.trim().parse().ok()?;
    let port = row.get("port")?.trim().parse().ok().filter(|port| *port != 0)?;
    let until = row.get("regseconds").and_then(|seconds| seconds.trim().parse().ok()).unwrap_or(0);
    (!ip.is_unspecified()).then_some((SocketAddr::new(ip, port), until))
}

/// What was written of a peer last, or is on its way.
#[derive(Debug, Clone, Copy)]
struct Touched {
    address: SocketAddr,
    /// Second of the epoch at which the registration ends, as the row says.
    until: u64,
    at: Instant,
    /// The row is touched again then.
    again_at: Option<Instant>,
}

/// A registration as the journal has it.
#[derive(Debug, Clone, Copy)]
struct Held {
    address: SocketAddr,
    expires_at: Instant,
}

/// Rows of who is registered where.
struct Leases {
    writer: Writer<Name>,
    held: BTreeMap<Name, Held>,
    touched: BTreeMap<Name, Touched>,
    /// Rows to be touched later, as nothing but time has passed.
    later: BTreeSet<(Instant, Name)>,
    /// Who had gone before the process began, and where it was: its row may say that it is still there.
    gone: BTreeMap<Name, (SocketAddr, u64)>,
    /// `rtupdate`.
    is_on: bool,
    /// `rtsavesysname`.
    system: Option<String>,
}

impl Leases {
    fn write(&mut self, name: &Name, place: Option<(SocketAddr, u64)>, now: Instant) {
        let text = |place: Option<String>, none: &str| Some(place.unwrap_or_else(|| none.to_owned()));
        let mut sets = vec![
            ("ipaddr".to_owned(), text(place.map(|(at, _)| at.ip().to_canonical().to_string()), "")),
            ("port".to_owned(), text(place.map(|(at, _)| at.port().to_string()), "0")),
            ("regseconds".to_owned(), text(place.map(|(_, until)| until.to_string()), "0")),
        ];
        if let Some(system) = &self.system {
            sets.push(("regserver".to_owned(), place.map(|_| system.clone())));
        }
        self.writer.put(name.clone(), Write::Update(vec![(NAME.to_owned(), name.to_string())], sets), now);
    }
    /// The row has what the journal has, or will; `at` is when it is touched again because time passes.
    fn touch(&mut self, name: &Name, clocks: Clocks) {
        let Some(held) = self.held.get(name).copied() else { return };
        let left = held.expires_at.since(clocks.now);
        let until = (clocks.wall + left).as_secs();
        if let Some(before) = self.touched.get(name).copied() {
            if let Some(at) = before.again_at {
                self.later.remove(&(at, name.clone()));
            }
            let early = before.at + left / 2;
            if before.address == held.address && clocks.now < early {
                // Behind a row that says less than is so there is one more write, in time.
                let again_at = (until > before.until).then_some(early);
                self.later.extend(again_at.map(|at| (at, name.clone())));
                self.touched.insert(name.clone(), Touched { again_at, ..before });
                return;
            }
        }
        let touched = Touched { address: held.address, until, at: clocks.now, again_at: None };
        self.touched.insert(name.clone(), touched);
        self.write(name, Some((held.address, until)), clocks.now);
    }
    fn release(&mut self, name: &Name, now: Instant) {
        self.held.remove(name);
        if let Some(at) = self.touched.remove(name).and_then(|touched| touched.again_at) {
            self.later.remove(&(at, name.clone()));
        }
        self.write(name, None, now);
    }
    /// A row was read: it catches up with the journal.
    fn compare(&mut self, name: &Name, row: &Row, clocks: Clocks) {
        if !self.is_on || self.touched.contains_key(name) {
            return;
        }
        let says = place_of(row);
        if let Some(held) = self.held.get(name).copied() {
            let until = (clocks.wall + held.expires_at.since(clocks.now)).as_secs();
            match says {
                // Seconds are cut off on either way.
                Some((address, said)) if address == held.address && said.abs_diff(until) <= 1 => {
                    let touched = Touched { address, until: said, at: clocks.now, again_at: None };
                    self.touched.insert(name.clone(), touched);
                }
                _ => self.touch(name, clocks),
            }
        } else if let Some((address, until)) = self.gone.remove(name)
            && says.is_some_and(|(at, said)| at == address && said <= until + 1)
        {
            self.write(name, None, clocks.now);
        }
    }
}

/// See the module's page.
pub(crate) struct IaxRows {
    snapshot: Arc<Snapshot>,
    databases: Shared,
    families: BTreeMap<Kind, (Family<Name>, RowReader)>,
    /// Names that somebody waits for.
    awaited: BTreeSet<(Kind, Name)>,
    users: BTreeMap<Name, Rc<User>>,
    peers: BTreeMap<Name, Rc<Peer>>,
    changed: Vec<(Kind, Name, Option<Rowed>)>,
    finished: Vec<(Kind, Name, bool)>,
    lines: Vec<(Level, String)>,
    leases: Leases,
    seed: u64,
}

/// What is to be done with the driver.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) lines: Vec<(Level, String)>,
    /// Names that were looked up, and whether the database said something.
    pub(crate) finished: Vec<(Kind, Name, bool)>,
    pub(crate) learned: Learned,
}

impl Effects {
    pub(crate) fn is_nothing(&self) -> bool {
        self.lines.is_empty() && self.finished.is_empty() && self.learned.is_empty()
    }
}

fn rules(general: &IaxGeneral) -> Rules {
    match general.rtcachefriends {
        false => Rules::default(),
        true => Rules {
            remembers: true,
            stale: Some(STALE),
            lifetime: general.rtautoclear.filter(|after| !after.is_zero()),
            negative: NEGATIVE,
            ..Rules::default()
        },
    }
}

/// What the log is told of rows: those that are no users or peers, and values that are not obeyed, for which the default
/// holds. A row of both is told once.
fn told(findings: &Findings) -> Vec<(Level, String)> {
    let level = |finding: &conf::Finding| match finding.level {
        conf::Level::Error => Some(Level::Error),
        conf::Level::Warning => Some(Level::Warning),
        conf::Level::Note => None,
    };
    let mut lines: Vec<(Level, String)> = Vec::new();
    let mut more: u64 = 0;
    for (level, finding) in findings.iter().filter_map(|finding| Some((level(finding)?, finding))) {
        let line = (level, crate::reload::one_line(finding));
        match lines.len() {
            _ if lines.contains(&line) => {}
            TOLD_MAX => more += 1,
            _ => lines.push(line),
        }
    }
    if more > 0 {
        lines.push((Level::Warning, format!("{more} more remarks on rows of users and peers")));
    }
    lines
}

impl IaxRows {
    /// Asks for what databases hold of IAX2. `None`: nothing.
    pub(crate) fn open(
        snapshot: &Arc<Snapshot>,
        databases: &Shared,
        seed: u64,
        now: Instant,
    ) -> Option<Self> {
        if !snapshot.realtime.has_iax() {
            return None;
        }
        let writer = Writer::new(databases.clone(), Asker::IaxLeases, "registrations of IAX2", Vec::new());
        let mut rows = Self {
            snapshot: snapshot.clone(),
            databases: databases.clone(),
            families: BTreeMap::new(),
            awaited: BTreeSet::new(),
            users: BTreeMap::new(),
            peers: BTreeMap::new(),
            changed: Vec::new(),
            finished: Vec::new(),
            lines: Vec::new(),
            leases: Leases {
                writer,
                held: BTreeMap::new(),
                touched: BTreeMap::new(),
                later: BTreeSet::new(),
                gone: BTreeMap::new(),
                is_on: true,
                system: None,
            },
            seed,
        };
        rows.take_tables();
        rows.load(now);
        Some(rows)
    }
    fn take_tables(&mut self) {
        let (realtime, general) = (&self.snapshot.realtime, &self.snapshot.iax.general);
        let mut before = std::mem::take(&mut self.families);
        for (kind, family, what, asker) in KINDS {
            let places = family::places(realtime, family);
            let Some(reader) = places.first().and_then(|(_, table)| RowReader::new("iax", table)) else {
                continue;
            };
            let rules = rules(general);
            let kept = before.remove(&kind).map(|(family, _)| family).filter(|kept| *kept.places() == places);
            self.seed = self.seed.wrapping_add(1);
            let mut family = kept.unwrap_or_else(|| {
                let databases = self.databases.clone();
                Family::new(databases, asker, (what, NAME), places, (rules.clone(), self.seed))
            });
            family.set_rules(rules);
            self.families.insert(kind, (family, reader));
        }
        self.leases.is_on = general.rtupdate;
        self.leases.system = general.rtsavesysname.then(|| system_name(&self.snapshot));
        let places = self.families.get(&Kind::Peer).map(|(family, _)| family.places().clone());
        self.leases.writer.set_places(places.unwrap_or_default());
        for (kind, ..) in KINDS.iter().filter(|(kind, ..)| !self.families.contains_key(kind)) {
            match kind {
                Kind::User => self.users.clear(),
                Kind::Peer => self.peers.clear(),
            }
        }
    }
    fn load(&mut self, now: Instant) {
        self.families.values_mut().for_each(|(family, _)| family.load(now));
    }
    /// Waits for what was asked for, until then at most. What comes later is taken when it comes.
    pub(crate) fn wait(&mut self, until: Instant, clocks: &dyn Fn() -> Clocks) {
        self.take_in(clocks());
        while self.families.values().any(|(family, _)| family.is_asking()) && clocks().now < until {
            self.databases.borrow_mut().wait(until.since(clocks().now));
            self.take_in(clocks());
        }
        self.learn(clocks());
    }
    /// A reload has taken another configuration: all rows are asked for anew.
    pub(crate) fn configure(&mut self, snapshot: &Arc<Snapshot>, now: Instant) {
        let before = std::mem::replace(&mut self.snapshot, snapshot.clone());
        self.take_tables();
        if before.iax.general != snapshot.iax.general || before.acls != snapshot.acls {
            // What rows do not say is otherwise from here on.
            for (kind, (family, _)) in &self.families {
                let rows = family.rows(now).map(|(name, row)| (*kind, name.clone(), Some(row.clone())));
                self.changed.extend(rows);
            }
        }
        self.load(now);
    }
    /// Adds the users and peers of rows to those of the file, which go before them.
    pub(crate) fn merge(&self, config: &mut Config) {
        for (name, user) in &self.users {
            config.users.entry(name.clone()).or_insert_with(|| user.clone());
        }
        for (name, peer) in &self.peers {
            config.peers.entry(name.clone()).or_insert_with(|| peer.clone());
        }
    }
    fn is_of_file(&self, kind: Kind, name: &str) -> bool {
        match kind {
            Kind::User => self.snapshot.iax.users.contains_key(name),
            Kind::Peer => self.snapshot.iax.peers.contains_key(name),
        }
    }

    /// Whose patience ends when, and when rows are written.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let families = self.families.values().filter_map(|(family, _)| family.deadline());
        let leases =
            self.leases.later.first().map(|(at, _)| *at).into_iter().chain(self.leases.writer.deadline());
        families.chain(leases).min()
    }
    /// Tells who has waited long enough, and writes what is due.
    pub(crate) fn due(&mut self, clocks: Clocks) {
        self.families.values_mut().for_each(|(family, _)| family.due(clocks.now));
        while self.leases.later.first().is_some_and(|(at, _)| *at <= clocks.now) {
            let Some((_, name)) = self.leases.later.pop_first() else { break };
            if let Some(touched) = self.leases.touched.get_mut(&name) {
                touched.again_at = None;
            }
            self.leases.touch(&name, clocks);
        }
        self.leases.writer.due(clocks.now);
    }
    /// What databases have answered.
    pub(crate) fn take_in(&mut self, clocks: Clocks) {
        self.families.values_mut().for_each(|(family, _)| family.take_in(clocks.now));
        self.leases.writer.take_in(clocks.now);
    }
    fn listen(&mut self) {
        for (kind, (family, _)) in &mut self.families {
            for said in family.take_said() {
                match said {
                    Said::Tell(name, given) => {
                        if self.awaited.remove(&(*kind, name.clone())) {
                            self.finished.push((*kind, name, given != Given::Failed));
                        }
                    }
                    Said::Changed(name, row) => self.changed.push((*kind, name, row)),
                    Said::Line(level, line) => self.lines.push((level, line)),
                }
            }
        }
        self.lines.append(&mut self.leases.writer.take_lines());
    }
    /// What follows for the driver.
    pub(crate) fn take_effects(&mut self, clocks: Clocks) -> Effects {
        let learned = self.learn(clocks);
        Effects {
            lines: std::mem::take(&mut self.lines),
            finished: std::mem::take(&mut self.finished),
            learned,
        }
    }
    /// Makes users and peers of rows that changed.
    fn learn(&mut self, clocks: Clocks) -> Learned {
        self.listen();
        let changed = std::mem::take(&mut self.changed);
        let mut learned = Learned::default();
        if changed.is_empty() {
            return learned;
        }
        // Of several changes the last holds.
        let last: BTreeMap<(Kind, Name), Option<Rowed>> =
            changed.into_iter().map(|(kind, name, row)| ((kind, name), row)).collect();
        let mut findings = Findings::new();
        for kind in [Kind::User, Kind::Peer] {
            let rows = || last.iter().filter(|((of, _), _)| *of == kind).map(|((_, name), row)| (name, row));
            let reader = self.families.get(&kind).map(|(_, reader)| reader);
            let section = |row: &Rowed| reader.and_then(|reader| section(reader, row));
            let sections: Vec<Section> = rows().filter_map(|(_, row)| section(row.as_ref()?)).collect();
            let (snapshot, general) = (&self.snapshot, &self.snapshot.iax.general);
            let made =
                Iax::of_rows(&sections, general, &snapshot.acls, snapshot.codecs.coded(), &mut findings);
            for (name, row) in rows() {
                let jitter = general.maxjitterbuffer;
                match kind {
                    Kind::User => {
                        let user = made.users.get(&**name).map(|of| {
                            let mut user = iax_user(name, of, jitter);
                            user.common.is_realtime = true;
                            Rc::new(user)
                        });
                        put(&mut self.users, name, user.clone());
                        if !self.snapshot.iax.users.contains_key(&**name) {
                            learned.users.push((name.clone(), user));
                        }
                    }
                    Kind::Peer => {
                        let peer = made.peers.get(&**name).map(|of| {
                            let mut peer = iax_peer(name, of, jitter, general.srvlookup);
                            peer.common.is_realtime = true;
                            peer.is_friend = of.is_user();
                            peer.seen = row.as_ref().and_then(|row| seen(row, general, clocks));
                            Rc::new(peer)
                        });
                        put(&mut self.peers, name, peer.clone());
                        if !self.snapshot.iax.peers.contains_key(&**name) {
                            learned.peers.push((name.clone(), peer));
                        }
                        if let Some(row) = row {
                            self.leases.compare(name, row, clocks);
                        }
                    }
                }
            }
        }
        self.lines.append(&mut told(&findings));
        learned
    }

    /// What was put back when the process began: registrations that hold, and those that had ended, with where they were.
    pub(crate) fn restored(
        &mut self,
        held: impl Iterator<Item = Lease>,
        gone: impl Iterator<Item = (Name, SocketAddr, u64)>,
        clocks: Clocks,
    ) {
        for Lease { peer, address, expires_at } in held {
            if let Some(address) = address {
                self.leases.held.insert(peer, Held { address, expires_at });
            }
        }
        self.leases.gone = gone.map(|(peer, address, until)| (peer, (address, until))).collect();
        let Some((family, _)) = self.families.get(&Kind::Peer) else { return };
        for (name, row) in family.rows(clocks.now) {
            self.leases.compare(name, row, clocks);
        }
    }
    /// Registrations have begun, go on or have ended; the journal has it.
    pub(crate) fn changed(&mut self, leases: &[Lease], clocks: Clocks) {
        let clears = self.snapshot.iax.general.rtautoclear == Some(Duration::ZERO);
        for Lease { peer, address, expires_at } in leases {
            if self.is_of_file(Kind::Peer, peer) || !self.families.contains_key(&Kind::Peer) {
                continue;
            }
            if let Some(address) = address {
                self.leases.gone.remove(peer);
                self.leases.held.insert(peer.clone(), Held { address: *address, expires_at: *expires_at });
                if self.leases.is_on {
                    self.leases.touch(peer, clocks);
                }
                continue;
            }
            if self.leases.is_on {
                self.leases.release(peer, clocks.now);
            }
            if clears && let Some((family, _)) = self.families.get_mut(&Kind::Peer) {
                family.forget(peer, clocks.now);
            }
        }
    }
    /// Rows that wait to be written, that were, and that were lost.
    pub(crate) fn written(&self) -> [u64; 3] {
        self.leases.writer.counts()
    }
    /// All that waits to be written is due; whether something does.
    pub(crate) fn hurry(&mut self, clocks: Clocks) -> bool {
        self.take_in(clocks);
        self.leases.writer.hurry(clocks.now);
        self.leases.writer.len() > 0 && !self.leases.writer.is_away()
    }
}

/// The section of a row. The port of a peer that registers is that of its registration.
fn section(reader: &RowReader, row: &Row) -> Option<Section> {
    let is_dynamic = row.get("host").is_some_and(|host| host.trim().eq_ignore_ascii_case("dynamic"));
    let says = |(column, value): &(&str, &str)| {
        !column.eq_ignore_ascii_case("port") || !is_dynamic && value.trim() != "0"
    };
    reader.section(row.get(NAME), row.iter().filter(says))
}

/// Where a row says that its peer has registered, and until when.
fn seen(row: &Row, general: &IaxGeneral, clocks: Clocks) -> Option<(SocketAddr, Instant)> {
    let (address, until) = place_of(row)?;
    if general.rtignoreregexpire {
        return Some((address, Instant::FAR));
    }
    let left = Duration::from_secs(until).checked_sub(clocks.wall)?;
    Some((address, clocks.now + left))
}

fn put<T>(map: &mut BTreeMap<Name, T>, name: &Name, object: Option<T>) {
    match object {
        Some(object) => _ = map.insert(name.clone(), object),
        None => _ = map.remove(name),
    }
}

impl Directory for IaxRows {
    fn look_up(&mut self, kind: Kind, name: &str, now: Instant) -> Lookup {
        if self.is_of_file(kind, name) {
            return Lookup::Ready;
        }
        let name: Name = name.into();
        if self.awaited.contains(&(kind, name.clone())) {
            return Lookup::Awaited;
        }
        let Some((family, _)) = self.families.get_mut(&kind) else { return Lookup::Ready };
        match family.get(&name, name.clone(), now) {
            Given::Known(_) | Given::Absent => Lookup::Ready,
            Given::Failed => Lookup::Unavailable,
            Given::Awaited => {
                self.awaited.insert((kind, name));
                Lookup::Awaited
            }
        }
    }
}

/// What people call a cache.
fn cache_name(kind: Kind) -> String {
    let family = KINDS.iter().find(|(own, ..)| *own == kind).map_or("", |(_, family, ..)| family);
    format!("chan_iax2/{family}")
}

impl Caches for IaxRows {
    fn list(&self) -> Vec<CacheLine> {
        self.families.iter().map(|(kind, (family, _))| family.line(cache_name(*kind))).collect()
    }
    fn objects(&self, cache: &str, most: usize) -> Option<Vec<ObjectLine>> {
        let (_, (family, _)) = self.families.iter().find(|(kind, _)| cache_name(**kind) == cache)?;
        Some(family.objects(most, Clock.now()))
    }
    fn change(&mut self, cache: &str, object: Option<&str>, wish: CacheWish) -> Result<(), CacheFault> {
        let found = self.families.iter_mut().find(|(kind, _)| cache_name(**kind) == cache);
        let (_, (family, _)) = found.ok_or(CacheFault::NoCache)?;
        family.change(object, wish, Clock.now())
    }
}

/// A handle to them.
pub(crate) type SharedIaxRows = Rc<RefCell<IaxRows>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_rows_that_are_not_obeyed_are_told_once_and_no_more_than_twenty() {
        let mut findings = Findings::new();
        let place = |name: &str| conf::Place::new(format!("iaxfriends/{name}"), 0);
        for _ in 0..2 {
            findings.error(&place("a"), "[a] is skipped", "correct it");
            findings.warning(
                &place("b"),
                "encryption=yess is not one of its words; the default holds",
                "write yes",
            );
            findings.note(&place("c"), "the secret is short", "choose a longer one");
        }
        let lines = told(&findings);
        let levels: Vec<Level> = lines.iter().map(|(level, _)| *level).collect();
        assert_eq!(levels, [Level::Error, Level::Warning], "{lines:?}");
        assert!(lines[1].1.starts_with("iaxfriends/b: warning: encryption=yess"), "{lines:?}");
        for number in 0..100 {
            findings.warning(&place(&number.to_string()), "qualify=banana", "write yes");
        }
        let lines = told(&findings);
        assert_eq!(lines.len(), TOLD_MAX + 1);
        assert_eq!(lines[TOLD_MAX].1, "82 more remarks on rows of users and peers");
    }
}
