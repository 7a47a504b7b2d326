//! Registrations of SIP in a table (family `ps_contacts`): written behind the journal, and read at the start and at a reload
//! for what other systems hold.
//!
//! The journal is the truth about registrations here; rows follow it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use base::Instant;
use call::Level;
use driver::sip::{Binding, Change, SipDriver};
use md5::{Digest as _, Md5};
use realtime::{Answer, Failure, Load, Query, Row};
use sip::registrar::Cause;
use sip::stack::Protocol;
use store::Snapshot;
use store::config::realtime::{ID, Realtime};

use crate::databases::{Asker, Shared};
use crate::family::{LOAD_AGAIN, Name, Places, places};
use crate::registrations::{Clocks, Registrations, way_to};
use crate::wire::system_name;
use crate::writer::{Keys, Sets, Write, Writer};

/// Who is told of in the log.
const WHAT: &str = "contacts of SIP";
/// Rows that are read at most: ten times the largest site known.
const ROWS_MAX: u32 = 1_000_000;

/// A `;` as it stands in a column, where it would part values.
const SEMICOLON: &str = "^3B";

/// The name of a row.
fn id(aor: &str, uri: &[u8]) -> Name {
    let mut id = format!("{aor}{SEMICOLON}@");
    for byte in Md5::digest(uri) {
        let _ = write!(id, "{byte:02x}");
    }
    id.into()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(';', SEMICOLON)
}

/// Where contacts lie, when `sorcery.conf` says so.
fn contact_places(realtime: &Realtime) -> Option<Places> {
    let (family, _) = realtime.sorcery.realtime("contact")?;
    Some(places(realtime, family)).filter(|places| !places.is_empty())
}

fn makes_again(snapshot: &Snapshot) -> bool {
    snapshot.realtime.sorcery.general.update_or_create_on_update_miss
}

/// See the module's page.
pub(crate) struct Contacts {
    databases: Shared,
    places: Places,
    writer: Writer<Name>,
    /// Our name in column `reg_server`.
    system: String,
    /// A row that is gone is made again when its contact is registered again (`update_or_create_on_update_miss`).
    makes_again: bool,
    /// The question for all rows, and which of the places has it.
    asked: Option<(u64, usize)>,
    next: u64,
    again_at: Option<Instant>,
    came: Option<Vec<Row>>,
    /// Rows of other systems, whose contacts are known here.
    foreign: BTreeSet<Name>,
    /// AORs whose rows name no endpoint, because there was none of that name when they were written.
    nameless: BTreeSet<String>,
    /// Nothing was registered here before the process began, so that rows of ours are somebody's before us.
    is_first: bool,
    lines: Vec<(Level, String)>,
}

impl Contacts {
    /// Asks for what there is. `None`: contacts lie in no database.
    pub(crate) fn open(snapshot: &Snapshot, databases: &Shared, now: Instant) -> Option<Self> {
        let places = contact_places(&snapshot.realtime)?;
        let mut contacts = Self {
            databases: databases.clone(),
            writer: Writer::new(databases.clone(), Asker::Contacts, WHAT, places.clone()),
            places,
            system: system_name(snapshot),
            makes_again: makes_again(snapshot),
            asked: None,
            next: 0,
            again_at: None,
            came: None,
            foreign: BTreeSet::new(),
            nameless: BTreeSet::new(),
            is_first: false,
            lines: Vec::new(),
        };
        contacts.ask(0, now);
        Some(contacts)
    }
    /// Whether the journal held nothing when the process began.
    pub(crate) fn set_first(&mut self, is_first: bool) {
        self.is_first = is_first;
    }
    /// A reload has taken another configuration.
    pub(crate) fn configure(&mut self, snapshot: &Snapshot, now: Instant) {
        self.places = contact_places(&snapshot.realtime).unwrap_or_default();
        self.writer.set_places(self.places.clone());
        self.system = system_name(snapshot);
        self.makes_again = makes_again(snapshot);
        self.ask(0, now);
    }
    fn ask(&mut self, place: usize, now: Instant) {
        let Some((connection, table)) = self.places.get(place).cloned() else { return };
        self.next += 1;
        self.asked = Some((self.next, place));
        let query = Query::Load(Load { table, limit: Some(ROWS_MAX), ..Load::default() });
        let submitted =
            self.databases.borrow_mut().submit(&connection, (Asker::ContactRows, self.next), query);
        if let Err(failure) = submitted {
            self.answered(Err(failure), now);
        }
    }
    fn answered(&mut self, answer: Result<Answer, Failure>, now: Instant) {
        let Some((_, place)) = self.asked.take() else { return };
        match answer {
            Ok(Answer::Rows(rows)) => self.came = Some(rows),
            Ok(_) => {}
            Err(_) if place + 1 < self.places.len() => self.ask(place + 1, now),
            Err(failure) => {
                if self.again_at.replace(now + LOAD_AGAIN).is_none() {
                    let line = format!("{WHAT}: {failure}; {}", failure.remedy());
                    self.lines.push((Level::Warning, line));
                }
            }
        }
    }
    /// Rows are asked for once more: there are bindings that they have not been compared with.
    pub(crate) fn read_again(&mut self, now: Instant) {
        self.again_at = Some(now);
    }
    /// Waits for what was asked for, until then at most.
    pub(crate) fn wait(&mut self, until: Instant, now: &dyn Fn() -> Instant) {
        self.take_in(now());
        while self.asked.is_some() && now() < until {
            self.databases.borrow_mut().wait(until.since(now()));
            self.take_in(now());
        }
    }
    /// What databases have answered.
    pub(crate) fn take_in(&mut self, now: Instant) {
        let answers = self.databases.borrow_mut().take(Asker::ContactRows);
        for (number, answer) in answers {
            if self.asked.is_some_and(|(asked, _)| asked == number) {
                self.answered(answer, now);
            }
        }
        self.writer.take_in(now);
    }
    /// When rows are written or asked for.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.writer.deadline().into_iter().chain(self.again_at).min()
    }
    /// Does what is due.
    pub(crate) fn due(&mut self, now: Instant) {
        self.writer.due(now);
        if self.asked.is_none() && self.again_at.is_some_and(|at| at <= now) {
            self.ask(0, now);
            // A failure that goes on is told once.
            self.again_at = self.again_at.filter(|at| now < *at);
        }
    }
    /// What the log is to be told.
    pub(crate) fn take_lines(&mut self) -> Vec<(Level, String)> {
        self.lines.append(&mut self.writer.take_lines());
        std::mem::take(&mut self.lines)
    }
    /// Bindings have changed; the journal has it.
    pub(crate) fn changed(&mut self, changes: &[Change], driver: &SipDriver, clocks: Clocks) {
        for change in changes {
            let name = id(&change.aor, &change.binding.uri);
            let was_foreign = self.foreign.remove(&name);
            match change.cause {
                // Its own system may have it for longer than we knew.
                Cause::Expired if was_foreign => _ = self.again_at.get_or_insert(clocks.now + LOAD_AGAIN),
                Cause::Removed | Cause::Expired => {
                    let keys = vec![(ID.to_owned(), name.to_string())];
                    self.writer.put(name, Write::Destroy(keys), clocks.now);
                }
                Cause::Refreshed if !self.makes_again && !was_foreign => {
                    let (keys, sets) = self.values(&name, &change.aor, &change.binding, driver, clocks);
                    self.writer.renew(name, keys, sets, clocks.now);
                }
                Cause::Added | Cause::Refreshed => {
                    self.write(name, &change.aor, &change.binding, driver, clocks);
                }
            }
        }
    }
    fn write(&mut self, name: Name, aor: &str, binding: &Binding, driver: &SipDriver, clocks: Clocks) {
        let (keys, sets) = self.values(&name, aor, binding, driver, clocks);
        self.writer.put(name, Write::Put(keys, sets), clocks.now);
    }
    /// The row of a binding.
    fn values(
        &mut self,
        name: &Name,
        aor: &str,
        binding: &Binding,
        driver: &SipDriver,
        clocks: Clocks,
    ) -> (Keys, Sets) {
        let config = driver.config();
        let yes = |on: bool| if on { "yes" } else { "no" }.to_owned();
        let until = (clocks.wall + binding.expires_at.since(clocks.now)).as_secs();
        let remote = binding.source.remote;
        let path: Vec<String> = binding.path.iter().map(|hop| text(hop)).collect();
        let mut sets = vec![
            ("uri", text(&binding.uri)),
            ("expiration_time", until.to_string()),
            ("path", path.join(",")),
            ("user_agent", text(&binding.user_agent)),
            ("reg_server", self.system.clone()),
            ("via_addr", remote.ip().to_canonical().to_string()),
            ("via_port", remote.port().to_string()),
            ("call_id", text(&binding.call_id)),
            // The connection goes with the process.
            ("prune_on_boot", yes(binding.source.protocol != Protocol::Udp)),
        ];
        if config.endpoints.contains_key(aor) {
            sets.push(("endpoint", aor.to_owned()));
            self.nameless.remove(aor);
        } else {
            self.nameless.insert(aor.to_owned());
        }
        if let Some(aor) = config.aors.get(aor) {
            sets.extend([
                ("qualify_frequency", aor.qualify_frequency.to_string()),
                ("qualify_timeout", format!("{:.6}", aor.qualify_timeout.as_secs_f64())),
                ("qualify_2xx_only", yes(aor.qualify_2xx_only)),
                ("authenticate_qualify", yes(aor.authenticate_qualify)),
                ("outbound_proxy", aor.outbound_proxy.replace(';', SEMICOLON)),
            ]);
        }
        let sets = sets.into_iter().map(|(column, value)| (column.to_owned(), Some(value))).collect();
        (vec![(ID.to_owned(), name.to_string())], sets)
    }
    /// Endpoints have come (`None`: any may have), perhaps after what had registered for them: rows that could not name them
    /// do so.
    pub(crate) fn name_endpoints(&mut self, came: Option<&[Rc<str>]>, driver: &SipDriver, clocks: Clocks) {
        let endpoints = &driver.config().endpoints;
        let is_named = |aor: &&str| endpoints.contains_key(*aor) && self.nameless.contains(*aor);
        let named: BTreeSet<String> = match came {
            Some(came) => came.iter().map(|name| &**name).filter(is_named).map(str::to_owned).collect(),
            None => self.nameless.iter().map(String::as_str).filter(is_named).map(str::to_owned).collect(),
        };
        if named.is_empty() {
            return;
        }
        self.nameless.retain(|aor| !named.contains(aor));
        for (aor, binding) in driver.bindings().filter(|(aor, _)| named.contains(*aor)) {
            let name = id(aor, &binding.uri);
            if !self.foreign.contains(&name) {
                self.write(name, aor, binding, driver, clocks);
            }
        }
    }
    /// Has rows and bindings be of one mind, when rows were read.
    pub(crate) fn agree(&mut self, driver: &mut SipDriver, journal: &Registrations, clocks: Clocks) {
        let Some(rows) = self.came.take() else { return };
        let is_first = std::mem::take(&mut self.is_first);
        let live = driver
            .bindings()
            .map(|(aor, binding)| (id(aor, &binding.uri), (aor.to_owned(), binding.clone())));
        let mut live: BTreeMap<Name, (String, Binding)> = live.collect();
        for row in &rows {
            let Some(contact) = Contact::of(row).filter(|contact| !journal.awaits(&contact.aor)) else {
                continue;
            };
            let until = |binding: &Binding| (clocks.wall + binding.expires_at.since(clocks.now)).as_secs();
            let held = live.remove(&contact.id);
            let held_until = held.as_ref().map(|(_, binding)| until(binding));
            let is_ours = contact.server == self.system;
            let goes_on = contact.until > clocks.wall.as_secs();
            match (held, held_until) {
                // Seconds are cut off on either way.
                (Some(_), Some(own)) if is_ours && own.abs_diff(contact.until) <= 1 => {}
                (Some((aor, binding)), Some(own)) if is_ours || own > contact.until + 1 => {
                    self.write(contact.id, &aor, &binding, driver, clocks);
                }
                (None, _) if is_ours && !(is_first && goes_on && !contact.is_pruned) => {
                    let keys = vec![(ID.to_owned(), contact.id.to_string())];
                    self.writer.put(contact.id, Write::Destroy(keys), clocks.now);
                }
                _ if goes_on => {
                    if let Some(binding) = contact.binding(driver, clocks) {
                        driver.restore(&contact.aor, binding, clocks.now);
                        if !is_ours {
                            self.foreign.insert(contact.id);
                        }
                    }
                }
                _ => {}
            }
        }
        for (name, (aor, binding)) in live {
            if !self.foreign.contains(&name) {
                self.write(name, &aor, &binding, driver, clocks);
            }
        }
    }
    /// Rows that wait to be written, that were, and that were lost.
    pub(crate) fn written(&self) -> [u64; 3] {
        self.writer.counts()
    }
    /// All that waits to be written is due; whether something does that a database would take.
    pub(crate) fn hurry(&mut self, now: Instant) -> bool {
        self.take_in(now);
        self.writer.hurry(now);
        self.writer.len() > 0 && !self.writer.is_away()
    }
}

/// A row.
struct Contact {
    id: Name,
    aor: String,
    server: String,
    until: u64,
    is_pruned: bool,
    uri: String,
    path: Vec<Vec<u8>>,
    user_agent: String,
    call_id: String,
    remote: Option<SocketAddr>,
}

impl Contact {
    fn of(row: &Row) -> Option<Self> {
        let said = |column: &str| row.get(column).unwrap_or_default().replace(SEMICOLON, ";");
        let id = row.get(ID)?;
        let (aor, _) = id.rsplit_once(&format!("{SEMICOLON}@")).or_else(|| id.rsplit_once(";@"))?;
        let ip: Option<IpAddr> = said("via_addr").trim_matches(['[', ']']).parse().ok();
        let port = said("via_port").trim().parse().ok().filter(|port| *port != 0);
        let path = said("path");
        let hops =
            path.split_inclusive('>').map(|hop| hop.trim_start_matches([',', ' ']).as_bytes().to_vec());
        Some(Self {
            id: id.into(),
            aor: aor.to_owned(),
            server: said("reg_server"),
            until: said("expiration_time").trim().parse().unwrap_or(0),
            is_pruned: ["yes", "1", "true", "on"].contains(&said("prune_on_boot").as_str()),
            uri: said("uri"),
            path: hops.filter(|hop| !hop.is_empty()).collect(),
            user_agent: said("user_agent"),
            call_id: said("call_id"),
            remote: ip.zip(port).map(SocketAddr::from),
        })
    }
    /// The binding, when it lives and there is a way to it. A connection is another system's, or gone.
    fn binding(&self, driver: &SipDriver, clocks: Clocks) -> Option<Binding> {
        let left = Duration::from_secs(self.until).checked_sub(clocks.wall).filter(|left| !left.is_zero())?;
        let source = way_to(&driver.config().binds, self.remote?, "")?;
        Some(Binding {
            uri: self.uri.clone().into_bytes(),
            q: 1000,
            call_id: self.call_id.clone().into_bytes(),
            cseq: 0,
            path: self.path.clone(),
            source,
            instance: None,
            reg_id: None,
            outbound: false,
            user_agent: self.user_agent.clone().into_bytes(),
            expires_at: clocks.now + left,
        })
    }
}
