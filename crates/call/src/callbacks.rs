//! Callers who are called back instead of waiting in a queue: one place for each, and what the database keeps of it, so
//! that a restart forgets nobody.
//!
//! A row is written before the caller is told that the place is kept, and goes when the caller talks to a member or the
//! queue has let the place go; whoever carries out the calls says so. A process that ends leaves the rows.

use core::fmt::Write as _;
use core::time::Duration;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::task::Poll;

use base::{ChannelId, Instant};
use queue::{Bounds, Now, Skills, Stage};

use crate::{Chan, Core, Database, PartyId, Presentation, QueuePlace};

/// Family of the database that keeps them.
pub const CALLBACKS: &str = "Queue/Callbacks";
/// Most callers who are called back, in all queues.
pub const CALLBACKS_MAX: usize = 1000;
/// Longest that a place is kept: nobody waits for a call that comes later.
pub const CALLBACK_LIFETIME_MAX: Duration = Duration::from_secs(30 * 86_400);
/// Shortest pause between two attempts: a queue that takes nobody is asked no more often, for however many callers.
pub const CALLBACK_PAUSE_MIN: Duration = Duration::from_secs(10);
/// Most attempts.
pub const CALLBACK_ATTEMPTS_MAX: u32 = 100;
/// Longest row, in bytes: a hundred times what a caller with a name and skills takes. Longer ones are neither written nor
/// read.
const ROW_BYTES_MAX: usize = 16 << 10;
/// Highest number of a row; then they begin again.
const NUMBER_MAX: u64 = 1 << 53;

/// The number of one of them: its key in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallbackId(u64);

/// Why there is no place for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCallback {
    /// As many are called back as may.
    Full,
    /// There is one of this queue and target.
    Exists,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callback {
    /// What is dialled: `technology/resource`.
    pub target: String,
    /// The place.
    pub place: QueuePlace,
    /// Who waits.
    pub caller: PartyId,
    /// Account code.
    pub account: String,
    /// Language.
    pub language: String,
    /// Attempts that are made at most.
    pub attempts: u32,
    /// The one that comes next or is under way, from 1 on.
    pub attempt: u32,
    /// When it begins, seconds since the epoch.
    pub due: i64,
    /// When the place is given up, seconds since the epoch.
    pub ends: i64,
    /// Between two attempts.
    pub pause: Duration,
    /// How long the caller's phone rings.
    pub ring: Duration,
}

/// The places that are taken.
#[derive(Debug, Default)]
pub struct Callbacks {
    /// By queue and target, both in lower case.
    places: BTreeMap<(String, String), CallbackId>,
    /// The channels that stand in queues for them.
    standing: BTreeMap<CallbackId, ChannelId>,
    last: u64,
}

impl Callbacks {
    /// Whether nobody is called back.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
    /// A number that no place has and no row, also none that somebody else has written.
    fn number(&mut self, db: &dyn Database) -> CallbackId {
        loop {
            self.last = self.last % NUMBER_MAX + 1;
            let id = CallbackId(self.last);
            if db.get(CALLBACKS, &id.key()).is_none() && !self.places.values().any(|taken| *taken == id) {
                return id;
            }
        }
    }
}

impl CallbackId {
    fn key(self) -> String {
        self.0.to_string()
    }
    /// The number that a key is, in the one way of writing it.
    fn of(key: &str) -> Option<Self> {
        let id = Self(key.parse().ok().filter(|number| (1..=NUMBER_MAX).contains(number))?);
        (id.key() == key).then_some(id)
    }
}

fn key(callback: &Callback) -> (String, String) {
    (callback.place.queue.to_ascii_lowercase(), callback.target.to_ascii_lowercase())
}

impl Core {
    /// Takes the one place of a target in a queue.
    pub fn callback_take(&mut self, callback: &Callback) -> Result<CallbackId, NoCallback> {
        let key = key(callback);
        if self.callbacks.places.contains_key(&key) {
            return Err(NoCallback::Exists);
        }
        if self.callbacks.places.len() >= CALLBACKS_MAX {
            return Err(NoCallback::Full);
        }
        let id = self.callbacks.number(&*self.services.db);
        self.callbacks.places.insert(key, id);
        Ok(id)
    }
    /// Writes down what is to be done next; false when that cannot be kept.
    pub fn callback_keep(&mut self, id: CallbackId, callback: &Callback) -> bool {
        let text = callback.to_text();
        text.len() <= ROW_BYTES_MAX && self.services.db.put(CALLBACKS, &id.key(), &text)
    }
    /// This channel stands in the queue for it.
    pub fn callback_stands(&mut self, id: CallbackId, channel: ChannelId) {
        self.callbacks.standing.insert(id, channel);
    }
    /// Nothing is left to do that a restart would have to know of.
    pub fn callback_done(&mut self, id: CallbackId) {
        self.callbacks.standing.remove(&id);
        self.services.db.delete(CALLBACKS, &id.key());
    }
    /// The place may be taken again.
    pub fn callback_free(&mut self, id: CallbackId) {
        self.callbacks.standing.remove(&id);
        self.callbacks.places.retain(|_, taken| *taken != id);
    }
    /// What the process before this one has left to do, in the order of the places. The second number says how many rows
    /// are not followed: nothing can be read of them, or they are too many. Those stay for whoever has to look at them; one
    /// that says what another says is of no use, and goes.
    pub fn callbacks_left(&mut self) -> (Vec<(CallbackId, Callback)>, usize) {
        let now = self.queue_now();
        let prefix = format!("/{CALLBACKS}");
        let (mut found, mut twice, mut ignored) = (Vec::new(), Vec::new(), 0);
        for (path, text) in self.services.db.list(&prefix) {
            let Some(name) = path.strip_prefix(&prefix).and_then(|rest| rest.strip_prefix('/')) else {
                continue;
            };
            let id = CallbackId::of(name).filter(|_| found.len() < CALLBACKS_MAX);
            let Some((id, callback)) = id.zip(Callback::parse(&text, now)) else {
                ignored += 1;
                continue;
            };
            match self.callbacks.places.entry(key(&callback)) {
                Entry::Occupied(_) => twice.push(id),
                Entry::Vacant(place) => {
                    place.insert(id);
                    self.callbacks.last = self.callbacks.last.max(id.0);
                    found.push((id, callback));
                }
            }
        }
        // No more than the database takes at once.
        for id in twice.iter().take(CALLBACKS_MAX) {
            self.services.db.delete(CALLBACKS, &id.key());
        }
        found.sort_by_key(|(id, callback)| (callback.place.since.wall, *id));
        (found, ignored + twice.len())
    }
    /// Whether nobody talks or waits but those whose places a restart keeps.
    pub fn is_idle(&self) -> bool {
        let waits = |id: &&ChannelId| {
            let caller = self.queues.caller(**id);
            caller.is_some_and(|(_, caller)| !matches!(caller.stage, Stage::Answered { .. }))
        };
        let standing = self.callbacks.standing.values().filter(waits);
        let calls: BTreeSet<Rc<str>> =
            standing.filter_map(|id| self.get(*id)).map(|channel| channel.linkedid.clone()).collect();
        self.channels().all(|channel| calls.contains(&channel.linkedid))
    }
    /// The database has put on the disk what somebody waits for: whoever does asks again.
    pub fn database_saved(&mut self) {
        self.woken.append(&mut self.save_waiters);
    }
}

impl Chan {
    /// Waits until all that the database has been given is on the disk; false when it is not at `deadline`. Knows nothing of
    /// the call's end, so that what a caller has asked for is kept when he hangs up.
    pub async fn saved(&self, deadline: Instant) -> bool {
        let mark = self.core(|core| core.services.db.mark());
        std::future::poll_fn(|_| {
            let mut core = self.shard().core.borrow_mut();
            let mut exec = self.shard().exec.borrow_mut();
            let is_saved = core.services.db.is_saved(mark);
            if is_saved || deadline <= core.now {
                exec.set_deadline(None);
                return Poll::Ready(is_saved);
            }
            exec.set_deadline(Some(deadline));
            if let Some(current) = exec.current().filter(|id| !core.save_waiters.contains(id)) {
                core.save_waiters.push(current);
            }
            Poll::Pending
        })
        .await
    }
}

impl Callback {
    /// As the database keeps it: fields `name=value`, parted by `;`.
    fn to_text(&self) -> String {
        let Self { target, place, caller, .. } = self;
        let bound = |bound: Option<u32>| bound.map(|bound| bound.to_string()).unwrap_or_default();
        let fields = [
            ("target", target.clone()),
            ("queue", place.queue.to_string()),
            ("since", place.since.wall.to_string()),
            ("priority", place.priority.to_string()),
            ("max", bound(place.bounds.max)),
            ("min", bound(place.bounds.min)),
            ("raise", bound(place.bounds.raise)),
            ("skills", place.skills.to_string()),
            ("rule", place.rule.clone()),
            ("number", caller.number.clone().unwrap_or_default()),
            ("name", caller.name.clone().unwrap_or_default()),
            ("number-pres", caller.number_presentation.name().to_owned()),
            ("name-pres", caller.name_presentation.name().to_owned()),
            ("tag", caller.tag.clone()),
            ("account", self.account.clone()),
            ("language", self.language.clone()),
            ("attempts", self.attempts.to_string()),
            ("attempt", self.attempt.to_string()),
            ("due", self.due.to_string()),
            ("ends", self.ends.to_string()),
            ("pause", self.pause.as_secs().to_string()),
            ("ring", self.ring.as_secs().to_string()),
        ];
        let mut text = String::new();
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            let part = if text.is_empty() { "" } else { ";" };
            let _ = write!(text, "{part}{name}=");
            escape(value, &mut text);
        }
        text
    }
    /// Reads that. `None` when it names no target or queue, when its times are none, or when it is too long to be ours. The
    /// moment at which the place was taken lies as far back as the clock that never goes back reaches. Whoever has written
    /// it, what it says keeps within the bounds of what may be asked for.
    fn parse(text: &str, now: Now) -> Option<Self> {
        if text.len() > ROW_BYTES_MAX {
            return None;
        }
        let fields: BTreeMap<&str, String> = text
            .split(';')
            .filter_map(|field| field.split_once('='))
            .map(|(name, value)| (name, unescape(value)))
            .collect();
        let word = |name: &str| fields.get(name).cloned().unwrap_or_default();
        let given = |name: &str| fields.get(name).cloned().filter(|value| !value.is_empty());
        let seconds = |name: &str| given(name)?.parse::<u32>().ok();
        let stamp = |name: &str| given(name)?.parse::<i64>().ok();
        let presentation =
            |name: &str| given(name).and_then(|value| Presentation::parse(&value)).unwrap_or_default();
        let since = stamp("since")?;
        let ago = Duration::from_secs(u64::try_from(now.wall.saturating_sub(since)).unwrap_or(0));
        let ago = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
        let at = Instant::from_nanos(now.at.as_nanos().saturating_sub(ago));
        let ends = stamp("ends")?.min(now.wall.saturating_add_unsigned(CALLBACK_LIFETIME_MAX.as_secs()));
        let attempts = seconds("attempts")?.clamp(1, CALLBACK_ATTEMPTS_MAX);
        let longest =
            |field: &str| Some(Duration::from_secs(seconds(field)?.into()).min(CALLBACK_LIFETIME_MAX));
        let pause = longest("pause")?.max(CALLBACK_PAUSE_MIN);
        // Also where the clock was wrong when the machine started: nobody waits longer than he would have.
        let due = stamp("due")?.min(now.wall.saturating_add_unsigned(pause.as_secs()));
        Some(Self {
            target: given("target").filter(|target| target.contains('/'))?,
            place: QueuePlace {
                queue: given("queue")?.into(),
                since: Now { at, wall: since },
                priority: word("priority").parse().unwrap_or(0),
                bounds: Bounds::read(&word("max"), &word("min"), &word("raise")),
                skills: Skills::parse(&word("skills")).unwrap_or_default(),
                rule: word("rule"),
            },
            caller: PartyId {
                number: given("number"),
                name: given("name"),
                number_presentation: presentation("number-pres"),
                name_presentation: presentation("name-pres"),
                tag: word("tag"),
            },
            account: word("account"),
            language: word("language"),
            attempts,
            attempt: seconds("attempt")?.clamp(1, attempts),
            due,
            ends,
            pause,
            ring: longest("ring")?.max(Duration::from_secs(1)),
        })
    }
}

/// What would part fields, and what a console would not show, as `%` and two hexadecimal digits.
fn escape(value: &str, text: &mut String) {
    for character in value.chars() {
        if character.is_ascii_control() || matches!(character, '%' | ';') {
            let _ = write!(text, "%{:02x}", u32::from(character));
        } else {
            text.push(character);
        }
    }
}

fn unescape(value: &str) -> String {
    let mut parts = value.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code.filter(u8::is_ascii) {
            Some(code) => {
                text.push(char::from(code));
                text.push_str(part.get(2..).unwrap_or_default());
            }
            None => {
                text.push('%');
                text.push_str(part);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Now {
        Now { at: Instant::ZERO + Duration::from_secs(500), wall: 1_000 }
    }

    fn full() -> Callback {
        Callback {
            target: "Local/0301;2%3b@call-back/n".to_owned(),
            place: QueuePlace {
                queue: "sales".into(),
                since: Now { at: Instant::ZERO + Duration::from_secs(440), wall: 940 },
                priority: -3,
                bounds: Bounds { max: Some(7), min: None, raise: Some(0) },
                skills: Skills::parse("german=3&sales").unwrap(),
                rule: "night".to_owned(),
            },
            caller: PartyId {
                number: Some("030 1234".to_owned()),
                name: Some("Zoë = \"Z\"; 100 %\n".to_owned()),
                number_presentation: Presentation::ProhibPassedScreen,
                name_presentation: Presentation::Allowed,
                tag: "a tag".to_owned(),
            },
            account: "account".to_owned(),
            language: "de".to_owned(),
            attempts: 4,
            attempt: 2,
            due: 1_100,
            ends: 15_000,
            pause: Duration::from_secs(300),
            ring: Duration::from_secs(25),
        }
    }

    #[test]
    fn what_is_kept_is_read_as_it_was() {
        let full = full();
        let text = full.to_text();
        assert!(!text.contains('\n'), "{text}");
        assert_eq!(Callback::parse(&text, now()), Some(full.clone()));
        let bare = Callback {
            target: "SIM/1".to_owned(),
            caller: PartyId::default(),
            account: String::new(),
            language: String::new(),
            place: QueuePlace {
                bounds: Bounds::default(),
                skills: Skills::default(),
                rule: String::new(),
                ..full.place.clone()
            },
            ..full
        };
        assert_eq!(Callback::parse(&bare.to_text(), now()), Some(bare));
    }

    #[test]
    fn a_row_that_says_too_little_is_none_and_an_unknown_field_does_no_harm() {
        let row = "target=SIM/1;queue=q;since=990;attempts=2;attempt=1;due=1000;ends=2000;pause=0;ring=0";
        for (name, change, is_read) in [
            ("as it should be", ("", ""), true),
            ("another field", ("queue=q", "queue=q;colour=red"), true),
            ("a half escape", ("SIM/1", "SIM/1%3"), true),
            ("no target", ("target=SIM/1;", ""), false),
            ("a target without technology", ("SIM/1", "SIM"), false),
            ("no queue", ("queue=q;", ""), false),
            ("no moment", ("since=990;", ""), false),
            ("an end that is none", ("ends=2000", "ends=soon"), false),
            ("attempts that are none", ("attempts=2", "attempts=-2"), false),
        ] {
            let read = Callback::parse(&row.replace(change.0, change.1), now());
            assert_eq!(read.is_some(), is_read, "{name}");
            let times = read.map(|read| (read.pause, read.ring));
            let shortest = (CALLBACK_PAUSE_MIN, Duration::from_secs(1));
            assert!(times.is_none_or(|times| times == shortest), "{name}");
        }
        for text in ["", ";;;=", "=", "%"] {
            assert_eq!(Callback::parse(text, now()), None, "{text}");
        }
    }

    #[test]
    fn the_moment_is_told_by_the_clock_of_this_process() {
        let row = |since: i64| {
            format!("target=SIM/1;queue=q;since={since};attempts=2;attempt=1;due=0;ends=0;pause=1;ring=1")
        };
        for (name, since, at) in [
            ("a minute ago", 940, 440),
            ("before the machine began to count", 100, 0),
            ("to come, after somebody set the clock", 5_000, 500),
        ] {
            let read = Callback::parse(&row(since), now()).unwrap();
            assert_eq!(
                read.place.since,
                Now { at: Instant::ZERO + Duration::from_secs(at), wall: since },
                "{name}"
            );
        }
    }

    #[test]
    fn whoever_has_written_it_nothing_is_due_never_or_called_for_ever() {
        let row = full().to_text();
        let mut random = base::Random::new(17);
        let mut read = 0;
        for _ in 0..20_000 {
            let mut bytes = row.clone().into_bytes();
            for _ in 0..1 + random.below(4) {
                let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
                let piece: &[u8] = match random.below(5) {
                    0 => b"9999999999",
                    1 => b"-",
                    2 => b";",
                    3 => b"%",
                    _ => &[u8::try_from(random.below(256)).unwrap()],
                };
                let end = bytes.len().min(at + usize::try_from(random.below(3)).unwrap());
                bytes.splice(at..end, piece.iter().copied());
            }
            let text = String::from_utf8_lossy(&bytes);
            let Some(one) = Callback::parse(&text, now()) else { continue };
            read += 1;
            let lifetime = i64::try_from(CALLBACK_LIFETIME_MAX.as_secs()).unwrap();
            assert!(one.ends <= now().wall + lifetime, "{text}");
            assert!(one.due <= now().wall + i64::try_from(one.pause.as_secs()).unwrap(), "{text}");
            assert!((CALLBACK_PAUSE_MIN..=CALLBACK_LIFETIME_MAX).contains(&one.pause), "{text}");
            assert!(
                (1..=one.attempts).contains(&one.attempt) && one.attempts <= CALLBACK_ATTEMPTS_MAX,
                "{text}"
            );
            assert!(one.place.since.at <= now().at && one.ring <= CALLBACK_LIFETIME_MAX, "{text}");
            assert_eq!(Callback::parse(&one.to_text(), now()), Some(one), "{text}");
        }
        assert!(read > 5_000, "{read}");
    }
}
