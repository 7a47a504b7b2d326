//! The event state compositor (RFC 3903 §6): what others have published here, for as long as it lasts.
//!
//! [`Compositor`] decides about a PUBLISH that the driver has authenticated, and says what changed. It keeps bodies and
//! does not read them; it knows no passwords and no sockets, and not what a resource is.

use crate::header::{Event, HeaderName, MediaType};
use crate::layer::{Deadlines, DigestMap, Key, Place, Randomness, Scheduled, Slab};
use crate::message::Message;
use base::Instant;
use core::time::Duration;
use std::sync::Arc;

/// Most publications at one time: the states of all phones of a large site.
pub const PUBLICATIONS_MAX: usize = 65_536;
/// Most publications of one resource and package: a user with more devices than this has a phone that forgets its tags.
pub const PER_RESOURCE_MAX: usize = 32;
/// Longest body, bytes: several times the largest presence document that phones write.
pub const BODY_BYTES_MAX: usize = 16 * 1024;
/// Bytes of all bodies together, so that no count of large ones fills the memory.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long publications may last, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Shortest; a shorter wish is refused with 423.
    pub minimum_expiration: u32,
    /// When the request does not say.
    pub default_expiration: u32,
    /// Longest; a longer wish is shortened.
    pub maximum_expiration: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self { minimum_expiration: 60, default_expiration: 3600, maximum_expiration: 86_400 }
    }
}

/// A package that may be published, and the bodies that are understood in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package<'a> {
    /// Its name in Event.
    pub name: &'a str,
    /// Types and subtypes of bodies.
    pub bodies: &'a [(&'a str, &'a str)],
}

/// Whose state a request publishes, and who has proved to send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// What the Request-URI names.
    pub resource: &'a str,
    /// Who publishes. Nobody else may refresh, modify or remove what it has published.
    pub publisher: &'a str,
}

/// One publication, the same one however often it is modified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicationId(Place);

impl PublicationId {
    /// A number that no other publication has at the same time, nor has had for long.
    pub const fn number(self) -> u64 {
        (self.0.generation as u64) << 32 | self.0.slot as u64
    }
}

/// Event state that somebody has published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Whose state it is.
    pub resource: Arc<str>,
    /// Package.
    pub package: Arc<str>,
    /// Who published it.
    pub publisher: Arc<str>,
    /// Content-Type as it came.
    pub content_type: Arc<str>,
    /// The state.
    pub body: Arc<[u8]>,
    /// When it lapses.
    pub expires_at: Instant,
}

/// What became of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It is new.
    Added,
    /// It says something else.
    Modified,
    /// It lasts longer.
    Refreshed,
    /// Its publisher took it back.
    Removed,
    /// Its time has come.
    Expired,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub id: PublicationId,
    /// Why.
    pub cause: Cause,
    /// As it is, or as it last was.
    pub publication: Publication,
}

/// What a 200 says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// SIP-ETag; another one each time (§6 step 6).
    pub tag: String,
    /// Expires.
    pub seconds: u32,
}

/// Why a PUBLISH is refused; nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 489: no package that may be published here (§6 step 2).
    BadEvent,
    /// 400: several entity tags, or nothing published where there is nothing to refresh (§6 steps 3 and 5).
    Malformed,
    /// 412: no such publication, or no longer (§6 step 3).
    Unmatched,
    /// 423 with this Min-Expires, seconds (§6 step 4).
    TooBrief(u32),
    /// 413: [`BODY_BYTES_MAX`].
    TooLarge,
    /// 415: a body that nobody here reads (§6 step 5).
    Unreadable,
    /// 503: [`PUBLICATIONS_MAX`], [`PER_RESOURCE_MAX`], [`BYTES_MAX`].
    Full,
}

impl Refusal {
    /// The status that says so.
    pub const fn status(self) -> u16 {
        match self {
            Self::BadEvent => 489,
            Self::Malformed => 400,
            Self::Unmatched => 412,
            Self::TooBrief(_) => 423,
            Self::TooLarge => 413,
            Self::Unreadable => 415,
            Self::Full => 503,
        }
    }
}

#[derive(Debug)]
struct Entry {
    publication: Publication,
    tag: u128,
    scheduled: Scheduled,
}

/// All publications.
#[derive(Debug)]
pub struct Compositor {
    key: Key,
    tags: Randomness,
    entries: Slab<Entry>,
    by_tag: DigestMap<Place>,
    /// Places by resource and package, oldest first.
    by_subject: DigestMap<Vec<Place>>,
    deadlines: Deadlines<Place>,
    /// Bytes of all bodies.
    held: usize,
}

impl Compositor {
    /// An empty compositor. `seed` makes its tags and keys its tables.
    pub fn new(seed: u128) -> Self {
        Self {
            key: Key::new(seed),
            tags: Randomness::new(Key::new(seed.rotate_left(32) ^ 0x5055_424c)),
            entries: Slab::new(PUBLICATIONS_MAX),
            by_tag: DigestMap::default(),
            by_subject: DigestMap::default(),
            deadlines: Deadlines::default(),
            held: 0,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nobody publishes anything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A publication that has not gone.
    pub fn get(&self, id: PublicationId) -> Option<&Publication> {
        self.entries.get(id.0).map(|entry| &entry.publication)
    }

    /// What is published of a resource, oldest first.
    pub fn of(&self, resource: &str, package: &str) -> impl Iterator<Item = (PublicationId, &Publication)> {
        let places = self.by_subject.get(&self.subject(resource, package));
        places
            .into_iter()
            .flatten()
            .filter_map(|place| Some((PublicationId(*place), &self.entries.get(*place)?.publication)))
    }

    /// When [`due`](Self::due) next wants to be called; may be earlier than needed.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines.earliest()
    }

    /// Serves an authenticated PUBLISH (§6). `packages` is what may be published of the resource.
    pub fn publish(
        &mut self,
        target: Target<'_>,
        (packages, rules): (&[Package<'_>], &Rules),
        request: &Message<'_>,
        now: Instant,
        changes: &mut Vec<Change>,
    ) -> Result<Granted, Refusal> {
        let event = request.header(HeaderName::Event).and_then(Event::parse);
        let package =
            event.and_then(|event| packages.iter().find(|own| own.name.as_bytes() == event.package));
        let package = package.ok_or(Refusal::BadEvent)?;
        let known = self.matched(target, package.name, request)?;
        let seconds = granted(rules, request)?;
        let body = request.body();
        if body.len() > BODY_BYTES_MAX {
            return Err(Refusal::TooLarge);
        }
        let Some(place) = known else {
            readable(package, request)?;
            return self.add(target, package.name, request, seconds, now, changes);
        };
        if seconds == 0 {
            self.take(place, Cause::Removed, changes);
            return Ok(Granted { tag: self.tag(), seconds });
        }
        if !body.is_empty() {
            readable(package, request)?;
        }
        self.change(place, request, seconds, now, changes)
    }

    /// Takes back those of which `gone` says so: their publisher may publish no more, or has begun anew.
    pub fn remove_those(
        &mut self,
        gone: &dyn Fn(PublicationId, &Publication) -> bool,
        changes: &mut Vec<Change>,
    ) {
        let all =
            self.entries.iter().filter(|(place, entry)| gone(PublicationId(*place), &entry.publication));
        let places: Vec<Place> = all.map(|(place, _)| place).collect();
        for place in places {
            self.take(place, Cause::Removed, changes);
        }
    }

    /// Drops what has lapsed.
    pub fn due(&mut self, now: Instant, changes: &mut Vec<Change>) {
        while let Some((at, place)) = self.deadlines.pop_due(now) {
            let Some(entry) = self.entries.get_mut(place) else { continue };
            entry.scheduled.fired(at);
            let until = entry.publication.expires_at;
            if until <= now {
                self.take(place, Cause::Expired, changes);
            } else {
                self.deadlines.schedule(place, &mut entry.scheduled, Some(until));
            }
        }
    }

    fn subject(&self, resource: &str, package: &str) -> u128 {
        self.key.digest(&[resource.as_bytes(), package.as_bytes()])
    }

    fn tag(&mut self) -> String {
        format!("{:032x}", self.tags.next_wide())
    }

    /// The publication that SIP-If-Match names; `None` when the request begins one.
    fn matched(
        &self,
        target: Target<'_>,
        package: &str,
        request: &Message<'_>,
    ) -> Result<Option<Place>, Refusal> {
        let mut tags = request.values(HeaderName::SipIfMatch);
        let tag = match (tags.next(), tags.next()) {
            (None, _) => return Ok(None),
            (Some(tag), None) => tag,
            (Some(_), Some(_)) => return Err(Refusal::Malformed),
        };
        let tag = core::str::from_utf8(tag).ok().filter(|tag| tag.len() == 32);
        let tag = tag.and_then(|tag| u128::from_str_radix(tag, 16).ok()).ok_or(Refusal::Unmatched)?;
        let place = self.by_tag.get(&tag).copied().ok_or(Refusal::Unmatched)?;
        let found = self.entries.get(place).map(|entry| &entry.publication).ok_or(Refusal::Unmatched)?;
        let is_same = *found.resource == *target.resource
            && *found.publisher == *target.publisher
            && *found.package == *package;
        if is_same { Ok(Some(place)) } else { Err(Refusal::Unmatched) }
    }

    fn add(
        &mut self,
        target: Target<'_>,
        package: &str,
        request: &Message<'_>,
        seconds: u32,
        now: Instant,
        changes: &mut Vec<Change>,
    ) -> Result<Granted, Refusal> {
        // State that lasts no time is published and gone before anybody looks.
        if seconds == 0 {
            return Ok(Granted { tag: self.tag(), seconds });
        }
        let subject = self.subject(target.resource, package);
        let count = self.by_subject.get(&subject).map_or(0, Vec::len);
        let bytes = request.body().len();
        if count >= PER_RESOURCE_MAX || self.entries.room() == 0 || self.held + bytes > BYTES_MAX {
            return Err(Refusal::Full);
        }
        let publication = Publication {
            resource: target.resource.into(),
            package: package.into(),
            publisher: target.publisher.into(),
            content_type: content_type(request),
            body: request.body().into(),
            expires_at: now + Duration::from_secs(seconds.into()),
        };
        let tag = self.tags.next_wide();
        let entry = Entry { publication: publication.clone(), tag, scheduled: Scheduled::default() };
        let place = self.entries.insert_with(|_| entry).ok_or(Refusal::Full)?;
        self.held += bytes;
        self.by_tag.insert(tag, place);
        self.by_subject.entry(subject).or_default().push(place);
        self.settle(place);
        changes.push(Change { id: PublicationId(place), cause: Cause::Added, publication });
        Ok(Granted { tag: format!("{tag:032x}"), seconds })
    }

    /// Refreshes, and modifies when there is a body.
    fn change(
        &mut self,
        place: Place,
        request: &Message<'_>,
        seconds: u32,
        now: Instant,
        changes: &mut Vec<Change>,
    ) -> Result<Granted, Refusal> {
        let body = request.body();
        let tag = self.tags.next_wide();
        let entry = self.entries.get_mut(place).ok_or(Refusal::Unmatched)?;
        let mut cause = Cause::Refreshed;
        if !body.is_empty() {
            let held = self.held - entry.publication.body.len() + body.len();
            if held > BYTES_MAX {
                return Err(Refusal::Full);
            }
            self.held = held;
            cause = Cause::Modified;
            entry.publication.body = body.into();
            entry.publication.content_type = content_type(request);
        }
        entry.publication.expires_at = now + Duration::from_secs(seconds.into());
        let old = core::mem::replace(&mut entry.tag, tag);
        changes.push(Change { id: PublicationId(place), cause, publication: entry.publication.clone() });
        self.by_tag.remove(&old);
        self.by_tag.insert(tag, place);
        self.settle(place);
        Ok(Granted { tag: format!("{tag:032x}"), seconds })
    }

    fn settle(&mut self, place: Place) {
        if let Some(entry) = self.entries.get_mut(place) {
            let until = entry.publication.expires_at;
            self.deadlines.schedule(place, &mut entry.scheduled, Some(until));
        }
    }

    fn take(&mut self, place: Place, cause: Cause, changes: &mut Vec<Change>) {
        let Some(Entry { publication, tag, .. }) = self.entries.remove(place) else { return };
        self.held -= publication.body.len();
        self.by_tag.remove(&tag);
        let subject = self.subject(&publication.resource, &publication.package);
        if let Some(places) = self.by_subject.get_mut(&subject) {
            places.retain(|other| *other != place);
            if places.is_empty() {
                self.by_subject.remove(&subject);
            }
        }
        changes.push(Change { id: PublicationId(place), cause, publication });
    }
}

/// How long the request lasts (§6 step 4); 0 takes it back.
fn granted(rules: &Rules, request: &Message<'_>) -> Result<u32, Refusal> {
    match request.expires().unwrap_or(rules.default_expiration) {
        0 => Ok(0),
        asked if asked < rules.minimum_expiration => Err(Refusal::TooBrief(rules.minimum_expiration)),
        asked => Ok(asked.min(rules.maximum_expiration.max(rules.minimum_expiration))),
    }
}

/// Whether the request has a body that is understood (§6 step 5).
fn readable(package: &Package<'_>, request: &Message<'_>) -> Result<(), Refusal> {
    if request.body().is_empty() {
        return Err(Refusal::Malformed);
    }
    let is_coded = request.values(HeaderName::ContentEncoding).any(|c| !c.eq_ignore_ascii_case(b"identity"));
    let fits = |kind: MediaType<'_>| package.bodies.iter().any(|(kind_, sub)| kind.is(kind_, sub));
    if request.content_type().is_some_and(fits) && !is_coded { Ok(()) } else { Err(Refusal::Unreadable) }
}

fn content_type(request: &Message<'_>) -> Arc<str> {
    String::from_utf8_lossy(request.header(HeaderName::ContentType).unwrap_or_default()).into()
}

#[cfg(test)]
mod tests;
