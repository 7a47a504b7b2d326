//! Who has guessed passwords too often, and is not listened to for a while.
//!
//! Failures are counted in two places. One user name at one address: from there its passwords are not looked at any more,
//! while others behind the same address log in as before. And one address as a whole: what comes from it is dropped
//! unread. Both counts drain with time; each further ban of the same is twice as long as the one before.
//!
//! Whoever reports a failure has made sure that the address is the sender's own: by a connection, or by an answer to a
//! challenge that was sent there. So nobody can have somebody else banned by writing another address on a datagram.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use base::{Instant, in_network, source_of};

use crate::security::{Attempt, shown};
use crate::{Level, Notice};

/// Addresses and user names that are kept account of: at some 200 bytes each, 20 MB. The one that would be forgotten
/// first makes room.
pub const ENTRIES_MAX: usize = 100_000;
/// Longest user name that is kept, bytes; longer ones count as what they begin with.
pub const NAME_BYTES_MAX: usize = 64;
/// How long after its end a ban makes the next one longer.
const MEMORY: Duration = Duration::from_secs(24 * 3600);
/// How much longer the next ban is.
const GROWTH: u32 = 2;

/// What the administrator has set (`[bans]` of `asterisk.conf`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BanRules {
    /// Refused passwords of one user at one address within [`span`](Self::span) that ban the user there; 0 bans nobody.
    pub per_user: u32,
    /// Refused passwords at one address, whatever the user, that ban the address; 0 bans none.
    pub per_address: u32,
    /// The span in which failures are counted.
    pub span: Duration,
    /// The first ban.
    pub first: Duration,
    /// The longest.
    pub longest: Duration,
    /// Networks (address, prefix bits) that are never banned.
    pub allowed: Vec<(IpAddr, u8)>,
}

impl BanRules {
    fn allows(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|net| in_network(*net, address))
    }
}

/// One ban.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ban {
    /// The address, or the first of the /64 that is banned.
    pub address: IpAddr,
    /// The user, when only that one is.
    pub user: Option<String>,
    /// When it ends.
    pub until: Instant,
    /// How many there were of late, this one included.
    pub count: u32,
}

/// An address, and the user when it is about one.
type Key = (IpAddr, Option<Box<str>>);

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// When its failures are forgotten: each moves it away by its share of the span.
    drained_at: Instant,
    banned_until: Option<Instant>,
    bans: u32,
    forget_at: Instant,
}

/// The table. See the module's page.
#[derive(Debug, Default)]
pub struct Bans {
    rules: BanRules,
    entries: BTreeMap<Key, Entry>,
    /// The same by when they are forgotten.
    by_end: BTreeSet<(Instant, Key)>,
    /// Entries that have been banned and are not forgotten; 0 costs packets nothing.
    banned: usize,
}

fn kept(user: &str) -> Box<str> {
    user.get(..user.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default().into()
}

impl Bans {
    /// Takes other rules. Bans that run go on, but for those of addresses that are allowed from here on.
    pub fn configure(&mut self, rules: BanRules) {
        self.rules = rules;
        let allowed = self.entries.keys().filter(|(address, _)| self.rules.allows(*address));
        let allowed: Vec<Key> = allowed.cloned().collect();
        allowed.iter().for_each(|key| self.remove(key));
        if self.rules.per_user == 0 && self.rules.per_address == 0 {
            self.lift(None, None);
        }
    }
    /// Whether nothing from this address is to be read.
    pub fn is_banned(&self, address: IpAddr, now: Instant) -> bool {
        self.banned > 0 && self.runs(&(source_of(address), None), now)
    }
    /// Whether the passwords that this user gives from this address are not to be looked at.
    pub fn is_user_banned(&self, address: IpAddr, user: &str, now: Instant) -> bool {
        self.banned > 0 && self.runs(&(source_of(address), Some(kept(user))), now)
    }
    fn runs(&self, key: &Key, now: Instant) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.banned_until.is_some_and(|until| until > now))
    }
    /// Counts a refused password, and returns the bans that begin with it. An address at which somebody is at home by
    /// `is_home` is not banned as a whole.
    pub fn failed(
        &mut self,
        address: IpAddr,
        user: &str,
        is_home: impl FnOnce() -> bool,
        now: Instant,
    ) -> Vec<Ban> {
        if self.rules.allows(address) {
            return Vec::new();
        }
        let address = source_of(address);
        let of_user = self.count((address, Some(kept(user))), self.rules.per_user, || true, now);
        let of_all = self.count((address, None), self.rules.per_address, || !is_home(), now);
        of_user.into_iter().chain(of_all).collect()
    }
    /// A password was right: what the user failed before is forgotten.
    pub fn succeeded(&mut self, address: IpAddr, user: &str) {
        if !self.entries.is_empty() {
            self.remove(&(source_of(address), Some(kept(user))));
        }
    }
    fn count(&mut self, key: Key, most: u32, may_ban: impl FnOnce() -> bool, now: Instant) -> Option<Ban> {
        let share = self.rules.span.checked_div(most)?;
        while self.by_end.first().is_some_and(|(at, _)| *at <= now) {
            self.remove_first();
        }
        let fresh = Entry { drained_at: now, banned_until: None, bans: 0, forget_at: now };
        let mut entry = self.entries.get(&key).copied().unwrap_or(fresh);
        entry.drained_at = entry.drained_at.max(now) + share;
        let runs = entry.banned_until.is_some_and(|until| until > now);
        // The count is above `most - 1`: those that came together make it `most`.
        let is_full = entry.drained_at.since(now) > share * (most - 1);
        let begins = !runs && is_full && may_ban();
        if begins {
            let longer = GROWTH.saturating_pow(entry.bans);
            let length = self.rules.first.saturating_mul(longer).min(self.rules.longest);
            entry.banned_until = Some(now + length);
            entry.bans = entry.bans.saturating_add(1);
            entry.drained_at = now;
        } else if is_full {
            // What is full already does not grow: it is to drain within the span.
            entry.drained_at = now + share * (most - 1);
        }
        let remembered = entry.banned_until.map_or(now, |until| until + MEMORY);
        entry.forget_at = entry.drained_at.max(remembered);
        self.put(key.clone(), entry);
        let until = entry.banned_until.filter(|_| begins)?;
        Some(Ban { address: key.0, user: key.1.map(String::from), until, count: entry.bans })
    }
    fn put(&mut self, key: Key, entry: Entry) {
        self.remove(&key);
        if self.entries.len() >= ENTRIES_MAX {
            self.remove_first();
        }
        self.banned += usize::from(entry.bans > 0);
        self.by_end.insert((entry.forget_at, key.clone()));
        self.entries.insert(key, entry);
    }
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.banned -= usize::from(entry.bans > 0);
            self.by_end.remove(&(entry.forget_at, key.clone()));
        }
    }
    fn remove_first(&mut self) {
        if let Some((_, key)) = self.by_end.first().cloned() {
            self.remove(&key);
        }
    }
    /// Takes back bans of an address, of one user there, or all of them, and forgets what led to them; how many there were.
    pub fn lift(&mut self, address: Option<IpAddr>, user: Option<&str>) -> usize {
        let address = address.map(source_of);
        let user = user.map(kept);
        let fits = |(of, name): &Key| {
            address.is_none_or(|address| *of == address)
                && user.as_ref().is_none_or(|user| name.as_ref() == Some(user))
        };
        let keys: Vec<Key> = self.entries.keys().filter(|key| fits(key)).cloned().collect();
        let before = self.banned;
        keys.iter().for_each(|key| self.remove(key));
        before - self.banned
    }
    /// Every ban that runs, by address.
    pub fn list(&self, now: Instant) -> impl Iterator<Item = Ban> {
        self.entries.iter().filter_map(move |((address, user), entry)| {
            let until = entry.banned_until.filter(|until| *until > now)?;
            Some(Ban {
                address: *address,
                user: user.as_deref().map(str::to_owned),
                until,
                count: entry.bans,
            })
        })
    }
}

impl crate::Core {
    /// Counts a password that was refused to somebody whose address is proved, and tells of the bans that begin with it.
    /// `service` is as in [`Attempt::service`]; for `is_home` see [`Bans::failed`].
    pub fn password_refused(
        &mut self,
        service: &'static str,
        address: IpAddr,
        user: &str,
        is_home: impl FnOnce() -> bool,
    ) {
        for ban in self.bans.failed(address, user, is_home, self.now) {
            let (address, seconds) = (ban.address, ban.until.since(self.now).as_secs());
            let user = ban.user.as_deref().map(shown);
            let whom =
                user.as_ref().map_or(address.to_string(), |user| format!("user '{user}' at {address}"));
            let line = format!(
                "{whom} is banned for {seconds} s after too many wrong passwords; `core unban {address}` lifts it"
            );
            self.log(Level::Security, "bans", &line);
            self.log(Level::Notice, "bans", &line);
            self.tell_ban("AddressBanned", service, address, user.unwrap_or_default());
        }
    }
    /// Takes bans back as [`Bans::lift`] does, and tells of it; how many there were.
    pub fn unban(&mut self, address: Option<IpAddr>, user: Option<&str>) -> usize {
        let running: Vec<Ban> = self.bans.list(self.now).collect();
        let lifted = self.bans.lift(address, user);
        let left: Vec<Ban> = self.bans.list(self.now).collect();
        for ban in running.into_iter().filter(|ban| !left.contains(ban)) {
            let user = ban.user.as_deref().map(shown).unwrap_or_default();
            let line = format!("the ban of {} {user} is lifted", ban.address);
            self.log(Level::Notice, "bans", line.trim_end());
            self.tell_ban("AddressUnbanned", "CLI", ban.address, user);
        }
        lifted
    }
    fn tell_ban(&mut self, event: &'static str, service: &'static str, address: IpAddr, account: String) {
        let family = if address.is_ipv4() { "IPV4" } else { "IPV6" };
        let remote = format!("{family}/ANY/{address}/0");
        let attempt =
            Attempt { event, service, account, remote, time: self.event_time(), ..Attempt::default() };
        self.notice(|_| Some(Notice::Security(Box::new(attempt))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }
    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }
    fn rules() -> BanRules {
        BanRules {
            per_user: 10,
            per_address: 30,
            span: Duration::from_secs(60),
            first: Duration::from_secs(600),
            longest: Duration::from_secs(86_400),
            allowed: vec![(ip("198.51.100.0"), 24), (ip("2001:db8:1::"), 48)],
        }
    }
    fn bans() -> Bans {
        let mut bans = Bans::default();
        bans.configure(rules());
        bans
    }
    /// Fails until something is banned; how often it took.
    fn until_banned(bans: &mut Bans, address: &str, user: &str, now: Instant) -> (usize, Ban) {
        let found = (1..=1000).find_map(|count| {
            let ban = bans.failed(ip(address), user, || false, now).into_iter().next()?;
            Some((count, ban))
        });
        found.unwrap()
    }

    #[test]
    fn the_tenth_wrong_password_in_a_minute_bans_the_user_there_and_nobody_else() {
        let mut bans = bans();
        let (count, ban) = until_banned(&mut bans, "192.0.2.1", "6001", at(0));
        let expected =
            Ban { address: ip("192.0.2.1"), user: Some("6001".to_owned()), until: at(600), count: 1 };
        assert_eq!((count, ban), (10, expected));
        for (address, user, now, banned) in [
            ("192.0.2.1", "6001", 0, true),
            ("::ffff:192.0.2.1", "6001", 599, true),
            ("192.0.2.1", "6001", 600, false),
            ("192.0.2.1", "6002", 0, false),
            ("192.0.2.2", "6001", 0, false),
        ] {
            assert_eq!(
                bans.is_user_banned(ip(address), user, at(now)),
                banned,
                "{user} at {address}, {now} s"
            );
        }
        assert!(!bans.is_banned(ip("192.0.2.1"), at(0)), "neighbours log in as before");
    }

    #[test]
    fn an_address_is_banned_whatever_names_it_tries_unless_somebody_is_at_home_there() {
        let (mut bans, mut home) = (bans(), bans());
        for number in 1..=40 {
            let user = format!("{number}");
            let begun = bans.failed(ip("192.0.2.1"), &user, || false, at(0));
            assert_eq!(begun.len(), usize::from(number == 30), "{number}");
            assert!(home.failed(ip("192.0.2.1"), &user, || true, at(0)).is_empty());
        }
        assert!(bans.is_banned(ip("192.0.2.1"), at(0)) && !bans.is_banned(ip("192.0.2.2"), at(0)));
        assert!(!home.is_banned(ip("192.0.2.1"), at(0)));
        // One user alone does it too, if it goes on: the first ten were looked at.
        let (count, _) = until_banned(&mut bans, "192.0.2.9", "6001", at(0));
        let more = (1..100).position(|_| !bans.failed(ip("192.0.2.9"), "6001", || false, at(0)).is_empty());
        assert_eq!((count, more), (10, Some(19)));
    }

    #[test]
    fn what_fails_seldom_is_never_banned_and_a_right_password_wipes_the_slate() {
        let mut bans = bans();
        for number in 0..10_000 {
            assert!(bans.failed(ip("192.0.2.1"), "old", || false, at(number * 6)).is_empty(), "{number}");
        }
        for number in 0..1000 {
            assert!(bans.failed(ip("192.0.2.2"), "typist", || true, at(60_000)).is_empty());
            if number % 9 == 8 {
                bans.succeeded(ip("192.0.2.2"), "typist");
            }
        }
    }

    #[test]
    fn each_further_ban_is_twice_as_long_up_to_a_day_and_a_quiet_day_forgives() {
        let mut bans = bans();
        let mut now = at(0);
        for (number, length) in
            [600, 1200, 2400, 4800, 9600, 19_200, 38_400, 76_800, 86_400, 86_400].into_iter().enumerate()
        {
            let (_, ban) = until_banned(&mut bans, "192.0.2.1", "6001", now);
            assert_eq!((ban.until, ban.count), (now + Duration::from_secs(length), number as u32 + 1));
            now = ban.until + Duration::from_secs(3600);
        }
        let (_, ban) = until_banned(&mut bans, "192.0.2.1", "6001", now + MEMORY);
        assert_eq!(ban.count, 1);
    }

    #[test]
    fn ipv6_is_counted_by_its_64_bits_and_allowed_networks_are_never_banned() {
        let mut bans = bans();
        for number in 0..10 {
            bans.failed(ip(&format!("2001:db8::{number}")), "6001", || false, at(0));
        }
        assert!(bans.is_user_banned(ip("2001:db8::ffff:1"), "6001", at(0)));
        assert!(!bans.is_user_banned(ip("2001:db8:0:1::1"), "6001", at(0)));
        for address in ["198.51.100.7", "::ffff:198.51.100.7", "2001:db8:1:2::3"] {
            for _ in 0..100 {
                assert!(bans.failed(ip(address), "6001", || false, at(0)).is_empty(), "{address}");
            }
        }
        bans.configure(BanRules { allowed: vec![(ip("2001:db8::"), 64)], ..rules() });
        assert_eq!(bans.list(at(0)).count(), 0, "what is allowed is banned no more");
    }

    #[test]
    fn bans_are_listed_and_taken_back_one_by_one_or_all_together() {
        let mut bans = bans();
        for (address, user) in [("192.0.2.1", "a"), ("192.0.2.1", "b"), ("192.0.2.2", "a")] {
            until_banned(&mut bans, address, user, at(0));
        }
        let named = |bans: &Bans| -> Vec<String> {
            bans.list(at(1)).map(|ban| format!("{} {}", ban.address, ban.user.unwrap_or_default())).collect()
        };
        assert_eq!(named(&bans), ["192.0.2.1 a", "192.0.2.1 b", "192.0.2.2 a"]);
        assert_eq!(bans.lift(Some(ip("192.0.2.1")), Some("a")), 1);
        assert_eq!(named(&bans), ["192.0.2.1 b", "192.0.2.2 a"]);
        assert_eq!(bans.lift(Some(ip("192.0.2.9")), None), 0);
        assert_eq!(bans.lift(Some(ip("192.0.2.1")), None), 1);
        assert_eq!(bans.lift(None, None), 1);
        assert!(bans.entries.is_empty() && bans.by_end.is_empty() && bans.banned == 0);
        // Who was let go begins anew.
        assert_eq!(until_banned(&mut bans, "192.0.2.1", "a", at(2)).1.count, 1);
    }

    #[test]
    fn the_table_is_bounded_and_what_would_be_forgotten_first_makes_room() {
        let mut bans = bans();
        until_banned(&mut bans, "192.0.2.1", "6001", at(0));
        for number in 0..ENTRIES_MAX as u64 {
            let address = IpAddr::from(core::net::Ipv6Addr::from_bits(
                (0x2001_0db8_u128 << 96) | u128::from(number) << 64,
            ));
            bans.failed(address, &"n".repeat(500), || false, at(0));
        }
        assert_eq!(bans.entries.len(), ENTRIES_MAX);
        assert_eq!(bans.by_end.len(), ENTRIES_MAX);
        assert!(bans.is_user_banned(ip("192.0.2.1"), "6001", at(1)), "bans outlive what is only counted");
        assert!(
            bans.entries
                .keys()
                .all(|(_, name)| name.as_ref().is_none_or(|name| name.len() <= NAME_BYTES_MAX))
        );
        // What has drained is forgotten by whoever comes next.
        bans.failed(ip("192.0.2.3"), "x", || false, at(61));
        assert!(bans.entries.len() < 10, "{}", bans.entries.len());
    }

    #[test]
    fn without_rules_nobody_is_banned() {
        let mut bans = Bans::default();
        for _ in 0..1000 {
            assert!(bans.failed(ip("192.0.2.1"), "6001", || false, at(0)).is_empty());
        }
        assert!(bans.entries.is_empty());
    }
}
