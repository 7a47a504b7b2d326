//! Who can be reached where: the bindings of every address of record (RFC 3261 §10.3).
//!
//! [`Registrar`] decides about a REGISTER that the driver has authenticated, and says what changed, so that a store can
//! journal it. It does not know passwords, sockets, files or whether a phone answers OPTIONS; what it needs of that comes
//! in as an argument.

use crate::header::{Contact, HeaderName, NameAddr};
use crate::layer::{Deadlines, DigestMap, Key, Place, Scheduled, Slab};
use crate::message::Message;
use crate::stack::Flow;
use crate::uri::Uri;
use base::Instant;
use core::time::Duration;

/// Most addresses of record with a binding: ten times the phones of the largest site that fits one machine.
pub const AORS_MAX: usize = 500_000;
/// Most contacts in one REGISTER; phones send one, gateways a handful.
pub const REQUEST_CONTACTS_MAX: usize = 16;
/// Longest contact URI, Call-ID or path that is kept, in bytes; ten times an ordinary one.
pub const FIELD_BYTES_MAX: usize = 1024;

/// What the administrator allows an address of record (an `aor` section).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Most bindings at one time; 0 forbids registration.
    pub max_contacts: u32,
    /// A new binding beyond `max_contacts` replaces those that would expire first, instead of being refused.
    pub remove_existing: bool,
    /// Bindings that do not answer make room for a new one beyond `max_contacts`.
    pub remove_unavailable: bool,
    /// Shortest lifetime granted, seconds; a shorter request is refused with 423.
    pub minimum_expiration: u32,
    /// Lifetime when the request names none, seconds.
    pub default_expiration: u32,
    /// Longest lifetime granted, seconds.
    pub maximum_expiration: u32,
    /// Keep the Path of a request (RFC 3327).
    pub support_path: bool,
    /// Contacts are kept as where they came from (`rewrite_contact`).
    pub rewrites: bool,
}

impl Rules {
    /// Seconds that a contact gets who asks for so many: what is too brief is made longer, not refused
    /// (RFC 3261 §10.3, step 7); 0 stays what it is.
    pub fn granted(&self, seconds: u32) -> u32 {
        match seconds {
            0 => 0,
            asked => {
                asked.clamp(self.minimum_expiration, self.maximum_expiration.max(self.minimum_expiration))
            }
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            max_contacts: 1,
            remove_existing: false,
            remove_unavailable: false,
            minimum_expiration: 60,
            default_expiration: 3600,
            maximum_expiration: 7200,
            support_path: false,
            rewrites: false,
        }
    }
}

/// One place where an address of record can be reached. Plain data, so that a store can keep it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Contact URI as the phone sent it; where it is rewritten, with the far end of its flow in the place of its host, and
    /// the host that it had in `x-ast-orig-host`.
    pub uri: Vec<u8>,
    /// Preference in thousandths; 1000 when none was given.
    pub q: u16,
    /// Call-ID of the last REGISTER.
    pub call_id: Vec<u8>,
    /// CSeq number of the last REGISTER.
    pub cseq: u32,
    /// Path values, first hop first (RFC 3327).
    pub path: Vec<Vec<u8>>,
    /// Where the last REGISTER came from, for phones whose contact is behind NAT (`rewrite_contact`).
    pub source: Flow,
    /// `+sip.instance`, quotes removed (RFC 5626).
    pub instance: Option<Vec<u8>>,
    /// `reg-id` (RFC 5626).
    pub reg_id: Option<u32>,
    /// The phone keeps the flow open that it registered by, and wants to be reached by no other: it named the flow and said
    /// that it supports `outbound`. Many phones name one and mean nothing by it.
    pub outbound: bool,
    /// User-Agent of the last REGISTER.
    pub user_agent: Vec<u8>,
    /// When it lapses.
    pub expires_at: Instant,
}

/// Largest `reg-id` (RFC 5626 §4.2).
const REG_ID_MAX: u32 = 0x7FFF_FFFF;

/// The parameter of a rewritten contact that keeps where it said to be. Phones never see it.
const ORIGINAL_HOST: &[u8] = b";x-ast-orig-host=";

/// A contact at the far end of the flow by which it came.
fn located(uri: &Uri<'_>, source: Flow) -> Vec<u8> {
    let mut out = crate::dialog::relocated(uri.as_bytes(), source).into_vec();
    let is_there = uri.host.ip().is_some_and(|ip| ip.to_canonical() == source.remote.ip().to_canonical());
    if !is_there {
        out.extend_from_slice(ORIGINAL_HOST);
        out.extend_from_slice(uri.host.as_bytes());
        out.extend(uri.port.map(|port| format!(":{port}")).unwrap_or_default().into_bytes());
    }
    out
}

/// A stored contact as it is told: without what only we know.
pub fn told_uri(uri: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    let Some(start) = memchr::memmem::find(uri, ORIGINAL_HOST) else { return uri.into() };
    let (head, tail) = uri.split_at(start);
    let end = tail.iter().skip(1).position(|byte| *byte == b';').map_or(tail.len(), |at| at + 1);
    [head, tail.get(end..).unwrap_or_default()].concat().into()
}

/// Whether two bindings are one: by instance and flow when both name them (RFC 5626 §6), so that a phone may have several
/// flows with one Contact; else by instance, or by what the contacts are called.
fn is_same(
    a: (Option<&[u8]>, Option<u32>),
    b: (Option<&[u8]>, Option<u32>),
    same_uri: impl Fn() -> bool,
) -> bool {
    let same_instance = a.0.is_some() && a == b;
    let both_flows = a.1.is_some() && b.1.is_some();
    same_instance || !both_flows && same_uri()
}

impl Binding {
    fn flow_name(&self) -> (Option<&[u8]>, Option<u32>) {
        (self.instance.as_deref(), self.reg_id)
    }

    fn is(&self, item: &Item<'_>) -> bool {
        let same_uri = || {
            Uri::parse(&self.uri).is_some_and(|uri| uri.matches(&item.addr.uri))
                || located(&item.addr.uri, self.source) == self.uri
        };
        is_same(self.flow_name(), (item.instance.as_deref(), item.reg_id), same_uri)
    }

    /// Its Contact value in the 200 to a REGISTER; with the parameters that a phone of several flows knows it by.
    pub fn contact(&self, now: Instant) -> Vec<u8> {
        // Whole seconds that are surely left: who counts them down is back in time.
        let left = self.expires_at.since(now).as_millis().div_ceil(1000).saturating_sub(1).max(1);
        let mut value = [b"<", told_uri(&self.uri).as_ref(), b">"].concat();
        // What would end a quoted string is nothing that an instance is named by (a URN).
        let is_plain =
            |id: &&Vec<u8>| id.iter().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(byte));
        if let (Some(instance), Some(reg_id)) = (self.instance.as_ref().filter(is_plain), self.reg_id) {
            value.extend_from_slice(format!(";reg-id={reg_id};+sip.instance=\"").as_bytes());
            value.extend_from_slice(instance);
            value.push(b'"');
        }
        value.extend_from_slice(format!(";expires={left}").as_bytes());
        value
    }
}

/// Why a binding changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It is new.
    Added,
    /// It lives longer, or its address or path changed.
    Refreshed,
    /// A REGISTER took it away, or a newer one took its place.
    Removed,
    /// Its time has come.
    Expired,
}

/// One change, for journal and events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Address of record.
    pub aor: String,
    /// Why.
    pub cause: Cause,
    /// The binding as it is, or as it last was.
    pub binding: Binding,
}

/// Why a REGISTER is refused; nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 403: more bindings than `max_contacts`.
    TooMany,
    /// 400: `*` with something else or without Expires 0, a Contact that cannot be read, a field too long.
    Malformed,
    /// 500: a newer request of the same Call-ID has been served (RFC 3261 §10.3 step 7).
    OutOfOrder,
    /// 503: [`AORS_MAX`].
    Full,
}

impl Refusal {
    /// The status that says so.
    pub const fn status(self) -> u16 {
        match self {
            Self::TooMany => 403,
            Self::Malformed => 400,
            Self::OutOfOrder => 500,
            Self::Full => 503,
        }
    }
}

#[derive(Debug)]
struct Aor {
    name: String,
    bindings: Vec<Binding>,
    scheduled: Scheduled,
}

impl Aor {
    fn deadline(&self) -> Option<Instant> {
        self.bindings.iter().map(|binding| binding.expires_at).min()
    }
}

/// One contact of a request.
struct Item<'a> {
    addr: NameAddr<'a>,
    /// `None` takes the binding away.
    lifetime: Option<Duration>,
    instance: Option<Vec<u8>>,
    reg_id: Option<u32>,
}

/// All bindings.
#[derive(Debug)]
pub struct Registrar {
    key: Key,
    by_name: DigestMap<Place>,
    aors: Slab<Aor>,
    deadlines: Deadlines<Place>,
}

impl Registrar {
    /// An empty registrar. `seed` keys its table.
    pub fn new(seed: u128) -> Self {
        Self {
            key: Key::new(seed),
            by_name: DigestMap::default(),
            aors: Slab::new(AORS_MAX),
            deadlines: Deadlines::default(),
        }
    }

    /// The bindings of an address of record, oldest first.
    pub fn bindings(&self, aor: &str) -> &[Binding] {
        self.place(aor).and_then(|place| self.aors.get(place)).map_or(&[], |entry| &entry.bindings)
    }

    /// Every address of record that has a binding, with its bindings.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[Binding])> {
        self.aors.iter().map(|(_, entry)| (entry.name.as_str(), entry.bindings.as_slice()))
    }

    /// Addresses of record that have a binding.
    pub fn len(&self) -> usize {
        self.aors.len()
    }

    /// Whether nobody is registered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When [`due`](Self::due) next wants to be called; may be earlier than needed.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines.earliest()
    }

    /// Serves an authenticated REGISTER. Without Contact it only asks; the answer carries [`bindings`](Self::bindings).
    ///
    /// `unavailable` says whether a binding is known not to answer; asked only under `remove_unavailable`.
    pub fn register(
        &mut self,
        aor: &str,
        rules: &Rules,
        (request, source): (&Message<'_>, Flow),
        unavailable: &dyn Fn(&Binding) -> bool,
        now: Instant,
        changes: &mut Vec<Change>,
    ) -> Result<(), Refusal> {
        let call_id = request.call_id().ok_or(Refusal::Malformed)?;
        let cseq = request.cseq().ok_or(Refusal::Malformed)?.number;
        let current = self.bindings(aor);
        // A request that came late must not undo a newer one; `*` speaks of every binding. One that repeats the last number
        // says the same again.
        let in_order = |binding: &Binding| binding.call_id != call_id || binding.cseq <= cseq;
        let Some(items) = items(request, rules)? else {
            if !current.iter().all(in_order) {
                return Err(Refusal::OutOfOrder);
            }
            self.replace(aor, Vec::new(), now, changes);
            return Ok(());
        };
        if items.is_empty() {
            return Ok(());
        }
        let touched = |binding: &&Binding| items.iter().any(|item| binding.is(item));
        if !current.iter().filter(touched).all(in_order) {
            return Err(Refusal::OutOfOrder);
        }
        if current.is_empty() && self.aors.room() == 0 {
            return Err(Refusal::Full);
        }
        let mut next: Vec<Binding> = current.iter().filter(|binding| !touched(binding)).cloned().collect();
        let kept = next.len();
        next.extend(items.iter().filter_map(|item| bind(item, rules, request, source, now)));
        shrink(&mut next, kept, rules, unavailable)?;
        self.replace(aor, next, now, changes);
        Ok(())
    }

    /// Puts a binding back that the store has kept, without asking any rule. One that has lapsed is dropped.
    pub fn restore(&mut self, aor: &str, binding: Binding, now: Instant) {
        if binding.expires_at > now {
            let mut next = self.bindings(aor).to_vec();
            next.retain(|other| !same(other, &binding));
            next.push(binding);
            self.replace(aor, next, now, &mut Vec::new());
        }
    }

    /// Takes one binding away, by its URI as it stands in [`Binding::uri`]. Says whether it was there.
    pub fn remove(&mut self, aor: &str, uri: &[u8], now: Instant, changes: &mut Vec<Change>) -> bool {
        self.remove_those(aor, &|binding| binding.uri == uri, now, changes)
    }

    /// Takes away those bindings of an address of record of which `gone` says so. Says whether there were any.
    pub fn remove_those(
        &mut self,
        aor: &str,
        gone: &dyn Fn(&Binding) -> bool,
        now: Instant,
        changes: &mut Vec<Change>,
    ) -> bool {
        let current = self.bindings(aor);
        let next: Vec<Binding> = current.iter().filter(|binding| !gone(binding)).cloned().collect();
        let found = next.len() < current.len();
        if found {
            self.replace(aor, next, now, changes);
        }
        found
    }

    /// Drops what has lapsed.
    pub fn due(&mut self, now: Instant, changes: &mut Vec<Change>) {
        while let Some((at, place)) = self.deadlines.pop_due(now) {
            let Some(entry) = self.aors.get_mut(place) else { continue };
            entry.scheduled.fired(at);
            let name = &entry.name;
            for binding in entry.bindings.extract_if(.., |binding| binding.expires_at <= now) {
                changes.push(Change { aor: name.clone(), cause: Cause::Expired, binding });
            }
            self.settle(place);
        }
    }

    fn place(&self, aor: &str) -> Option<Place> {
        self.by_name.get(&self.key.digest(&[aor.as_bytes()])).copied()
    }

    /// Makes `next` the bindings of `aor` and notes every difference.
    fn replace(&mut self, aor: &str, next: Vec<Binding>, now: Instant, changes: &mut Vec<Change>) {
        let mut note = |cause, binding: &Binding| {
            changes.push(Change { aor: aor.to_owned(), cause, binding: binding.clone() });
        };
        let current = self.bindings(aor);
        for old in current.iter().filter(|old| !next.iter().any(|new| same(new, old))) {
            note(if old.expires_at <= now { Cause::Expired } else { Cause::Removed }, old);
        }
        for new in &next {
            match current.iter().find(|old| same(new, old)) {
                None => note(Cause::Added, new),
                Some(old) if old != new => note(Cause::Refreshed, new),
                Some(_) => {}
            }
        }
        let place = self.place(aor).or_else(|| {
            let key = self.key.digest(&[aor.as_bytes()]);
            let empty = Aor { name: aor.to_owned(), bindings: Vec::new(), scheduled: Scheduled::default() };
            let place = self.aors.insert_with(|_| empty)?;
            self.by_name.insert(key, place);
            Some(place)
        });
        let Some(place) = place else { return };
        if let Some(entry) = self.aors.get_mut(place) {
            entry.bindings = next;
        }
        self.settle(place);
    }

    /// Forgets an address without bindings, else sees to its next expiry.
    fn settle(&mut self, place: Place) {
        let Some(entry) = self.aors.get_mut(place) else { return };
        if entry.bindings.is_empty() {
            let key = self.key.digest(&[entry.name.as_bytes()]);
            self.by_name.remove(&key);
            self.aors.remove(place);
        } else {
            let deadline = entry.deadline();
            self.deadlines.schedule(place, &mut entry.scheduled, deadline);
        }
    }
}

fn same(a: &Binding, b: &Binding) -> bool {
    is_same(a.flow_name(), b.flow_name(), || a.uri == b.uri)
}

/// The contacts of a request with their lifetimes; `None` for `*` (§10.3 steps 6 and 7).
fn items<'a>(request: &Message<'a>, rules: &Rules) -> Result<Option<Vec<Item<'a>>>, Refusal> {
    let mut items: Vec<Item<'a>> = Vec::new();
    let mut star = false;
    let mut values = 0;
    for value in request.values(HeaderName::Contact) {
        values += 1;
        if values > REQUEST_CONTACTS_MAX {
            return Err(Refusal::TooMany);
        }
        match Contact::parse(value).ok_or(Refusal::Malformed)? {
            Contact::Star => star = true,
            Contact::Addr(addr) => {
                if addr.uri.as_bytes().len() > FIELD_BYTES_MAX {
                    return Err(Refusal::Malformed);
                }
                // What no request can be sent to may be taken away, if it ever was there.
                let is_reached = addr.uri.can_be_sent_to();
                let seconds = addr.expires().or(request.expires()).unwrap_or(rules.default_expiration);
                if seconds > 0 && !is_reached {
                    return Err(Refusal::Malformed);
                }
                let seconds = u64::from(rules.granted(seconds));
                let instance =
                    addr.params.get(b"+sip.instance").map(|id| crate::header::unquote(id).into_owned());
                // RFC 5626 §6: a flow is one of an instance.
                let reg_id = addr.params.get(b"reg-id").and_then(crate::header::delta_seconds);
                let reg_id = reg_id.filter(|id| instance.is_some() && (1..=REG_ID_MAX).contains(id));
                // The same contact twice in one request: the later one counts.
                items.retain(|item| !item.addr.uri.matches(&addr.uri));
                let lifetime = (seconds > 0).then(|| Duration::from_secs(seconds));
                items.push(Item { addr, lifetime, instance, reg_id });
            }
        }
    }
    match (star, values) {
        (false, _) => Ok(Some(items)),
        (true, 1) if request.expires() == Some(0) => Ok(None),
        (true, _) => Err(Refusal::Malformed),
    }
}

fn bind(
    item: &Item<'_>,
    rules: &Rules,
    request: &Message<'_>,
    source: Flow,
    now: Instant,
) -> Option<Binding> {
    let bounded = |bytes: &[u8]| bytes.get(..bytes.len().min(FIELD_BYTES_MAX)).unwrap_or_default().to_vec();
    let path = request.values(HeaderName::Path).filter(|_| rules.support_path).map(bounded);
    let uri = match rules.rewrites {
        true => located(&item.addr.uri, source),
        false => item.addr.uri.as_bytes().to_vec(),
    };
    Some(Binding {
        uri,
        q: item.addr.q().unwrap_or(1000),
        call_id: bounded(request.call_id()?),
        cseq: request.cseq()?.number,
        path: path.take(REQUEST_CONTACTS_MAX).collect(),
        source,
        instance: item.instance.as_deref().map(bounded),
        reg_id: item.reg_id,
        outbound: item.reg_id.is_some()
            && request.values(HeaderName::Supported).any(|tag| tag.eq_ignore_ascii_case(b"outbound")),
        user_agent: bounded(request.header(HeaderName::UserAgent).unwrap_or_default()),
        expires_at: now + item.lifetime?,
    })
}

/// Brings `bindings`, of which the first `kept` were there before, down to what the rules allow.
fn shrink(
    bindings: &mut Vec<Binding>,
    mut kept: usize,
    rules: &Rules,
    unavailable: &dyn Fn(&Binding) -> bool,
) -> Result<(), Refusal> {
    let max = usize::try_from(rules.max_contacts).unwrap_or(usize::MAX);
    let added = bindings.len().saturating_sub(kept);
    if added == 0 {
        return Ok(()); // taking away is always allowed
    }
    if added > max {
        return Err(Refusal::TooMany);
    }
    while bindings.len() > max {
        let old = || bindings.iter().take(kept).enumerate();
        let first = |a: &(usize, &Binding), b: &(usize, &Binding)| a.1.expires_at.cmp(&b.1.expires_at);
        let gone =
            old().filter(|(_, binding)| rules.remove_unavailable && unavailable(binding)).min_by(first);
        let victim = gone.or_else(|| old().filter(|_| rules.remove_existing).min_by(first));
        let (at, _) = victim.ok_or(Refusal::TooMany)?;
        bindings.remove(at);
        kept -= 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
