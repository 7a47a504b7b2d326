//! What all legs of a machine share: numbers, limits, tokens, indexes and deadlines. It knows no call.

use super::out::Out;
use super::trunk::{TrunkOut, TrunkSettings};
use super::watch::Watching;
use super::{Leg, join::Join, link::Space, registrant::Registering};
use crate::auth::Secret;
use crate::frame::{Command, Discard, Element, FULL_BYTES, Full, Kind, write_element};
use crate::limit::{Hosts, NUMBERS_OF_ADDRESS, NUMBERS_WITHOUT_TOKEN, Throttle, host};
use crate::number::{OwnNumbers, REST, REST_OWN, SHORT_LIFE, SINGLE, SharedNumbers, TRUNKED};
use crate::token::{ADDRESS_BYTES, Tokens, address_bytes};
use base::hash::{DigestMap, Key, Randomness};
use base::{Cause, Deadlines, FormatId, Instant, Place, Slab, in_network};
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};

/// The number that answers without state carry; no leg has it.
pub(super) const STATELESS: u16 = 1;
/// Most remotes whose own numbers are kept, and most hosts whose remotes share theirs: each is 80 octets, and is forgotten
/// twice [`REST_OWN`] after its last number.
const REMOTES_MAX: usize = 1 << 18;
/// Most remotes of one host that have numbers of their own; further ports of it share one sequence, which gives them all
/// as many as one of them could have. More phones than this behind one address are rare, and 256 hosts are needed to fill
/// the table, after which every further host shares among its own ports.
const REMOTES_OF_HOST: u32 = 1024;
/// Most registrations of ours, watched peers, trunks and joins, each.
const OTHERS_MAX: usize = 1 << 16;
/// Tries to find a shared number that the remote has not as its own already.
const SHARED_TRIES: usize = 8;

/// Whether a peer has to bring a token (`requirecalltoken`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TokenRule {
    /// Always.
    #[default]
    Yes,
    /// From its first good token on.
    Auto,
    /// Never.
    No,
}

/// What an administrator decides for a machine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Most legs at once.
    pub legs_max: usize,
    /// Voice formats, best first, for calls that bring no list of their own.
    pub formats: Vec<FormatId>,
    /// Networks from which nobody has to bring a token (`calltokenoptional`).
    pub token_optional: Vec<(IpAddr, u8)>,
    /// Users with a rule of their own (`requirecalltoken`); others have [`TokenRule::Yes`].
    pub token_users: BTreeMap<Vec<u8>, TokenRule>,
    /// Most numbers of one address (`maxcallnumbers`).
    pub numbers_of_address: u32,
    /// Networks with another limit (`[callnumberlimits]`); the first that fits decides.
    pub number_ranges: Vec<((IpAddr, u8), u32)>,
    /// Most numbers that were given without a token (`maxcallnumbers_nonvalidated`).
    pub numbers_without_token: u32,
    /// Answers without state a second, for each /24 and /48.
    pub answers_per_second: u32,
    /// Whether calls that come in may be transferred; their numbers are then unique on the socket.
    pub transfers: bool,
    /// How voice of several calls is sent together.
    pub trunk: TrunkSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            legs_max: 100_000,
            formats: vec![FormatId::ULAW, FormatId::ALAW, FormatId::GSM],
            token_optional: Vec::new(),
            token_users: BTreeMap::new(),
            numbers_of_address: NUMBERS_OF_ADDRESS,
            number_ranges: Vec::new(),
            numbers_without_token: NUMBERS_WITHOUT_TOKEN,
            answers_per_second: 20_000,
            transfers: true,
            trunk: TrunkSettings::default(),
        }
    }
}

/// What there is at present, and what was dropped so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Legs: calls, registrations and pokes under way.
    pub legs: usize,
    /// Shared numbers in use, and resting.
    pub shared: (usize, usize),
    /// Own numbers that rest after a long life.
    pub own_resting: usize,
    /// Addresses with numbers.
    pub hosts: usize,
    /// Numbers that were given without a token.
    pub without_token: u32,
    /// Entries of the indexes by number.
    pub indexed: usize,
    /// Trunks with voice to send, or lately.
    pub trunks: usize,
    /// Datagrams dropped, by [`Discard::index`].
    pub discards: [u64; Discard::ALL.len()],
}

/// Whom a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Leg(Place),
    Registration(Place),
    Watch(Place),
    Join(Place),
    Trunk(Place),
}

#[derive(Debug)]
pub(super) struct Core {
    pub(super) settings: Settings,
    pub(super) random: Randomness,
    pub(super) deadlines: Deadlines<Timer>,
    pub(super) registrations: Slab<Registering>,
    pub(super) watches: Slab<Watching>,
    pub(super) joins: Slab<Join>,
    pub(super) trunks: Slab<TrunkOut>,
    pub(super) trunk_of: DigestMap<Place>,
    /// Where a frame is put in the clear.
    pub(super) opened: Vec<u8>,
    /// Users who have brought a token, of those that need none before ([`TokenRule::Auto`]).
    proven_users: DigestMap<()>,
    key: Key,
    ours: DigestMap<Place>,
    theirs: DigestMap<Place>,
    single: SharedNumbers,
    trunked: SharedNumbers,
    /// By remote, or by host for those that share.
    own: DigestMap<OwnNumbers>,
    /// How many remotes of a host have numbers of their own.
    remotes_of: DigestMap<u32>,
    /// Hosts whose further remotes share.
    sharing: usize,
    /// Remotes, and whose host they are of, in the order in which they are looked at to be forgotten; hosts that share are
    /// of none.
    remotes: VecDeque<(Instant, u128, Option<u128>)>,
    own_resting: VecDeque<(Instant, u128)>,
    own_rests: DigestMap<()>,
    hosts: Hosts,
    /// Shared numbers count for their address until they have rested.
    hosts_resting: VecDeque<(Instant, IpAddr)>,
    without_token: u32,
    tokens: Tokens,
    throttle: Throttle,
    discards: [u64; Discard::ALL.len()],
}

impl Core {
    pub(super) fn new(now: Instant, key: Key, settings: Settings) -> Self {
        let mut random = Randomness::new(key);
        let mut fresh = || Key::new(random.next_wide());
        let (key, hosts_key, throttle_key) = (fresh(), fresh(), fresh());
        let hosts = Hosts::new(hosts_key, settings.numbers_of_address, settings.number_ranges.clone());
        let throttle = Throttle::new(throttle_key, settings.answers_per_second);
        let tokens = Tokens::new(now, &mut random);
        Self {
            settings,
            random,
            deadlines: Deadlines::default(),
            registrations: Slab::new(OTHERS_MAX),
            watches: Slab::new(OTHERS_MAX),
            joins: Slab::new(OTHERS_MAX),
            trunks: Slab::new(OTHERS_MAX),
            trunk_of: DigestMap::default(),
            opened: Vec::new(),
            proven_users: DigestMap::default(),
            key,
            ours: DigestMap::default(),
            theirs: DigestMap::default(),
            single: SharedNumbers::new(SINGLE),
            trunked: SharedNumbers::new(TRUNKED),
            own: DigestMap::default(),
            remotes_of: DigestMap::default(),
            sharing: 0,
            remotes: VecDeque::new(),
            own_resting: VecDeque::new(),
            own_rests: DigestMap::default(),
            hosts,
            hosts_resting: VecDeque::new(),
            without_token: 0,
            tokens,
            throttle,
            discards: [0; Discard::ALL.len()],
        }
    }

    /// Takes other settings; the most legs stay as they were.
    pub(super) fn configure(&mut self, settings: Settings) {
        self.hosts.set_limits(settings.numbers_of_address, settings.number_ranges.clone());
        self.throttle.set_rate(settings.answers_per_second);
        self.settings = settings;
    }
    pub(super) fn counts(&self, legs: usize) -> Counts {
        Counts {
            legs,
            shared: (
                self.single.in_use() + self.trunked.in_use(),
                self.single.resting() + self.trunked.resting(),
            ),
            own_resting: self.own_resting.len(),
            hosts: self.hosts.len(),
            without_token: self.without_token,
            indexed: self.ours.len() + self.theirs.len(),
            trunks: self.trunks.len(),
            discards: self.discards,
        }
    }

    /// See [`Machine::numbers_of_hosts`](super::Machine::numbers_of_hosts).
    pub(super) fn numbers_of_hosts(&self) -> impl Iterator<Item = (IpAddr, u32, u32)> {
        self.hosts.each()
    }
    pub(super) fn discard(&mut self, why: Discard) {
        if let Some(count) = self.discards.get_mut(why.index()) {
            *count += 1;
        }
    }

    fn name(&self, remote: SocketAddr, number: u16) -> u128 {
        self.key.digest(&[&address_bytes(remote), &number.to_le_bytes()])
    }
    /// The leg that a remote means by our number.
    pub(super) fn by_ours(&self, remote: SocketAddr, number: u16) -> Option<Place> {
        self.ours.get(&self.name(remote, number)).copied()
    }
    /// The leg that a remote means by its own number.
    pub(super) fn by_theirs(&self, remote: SocketAddr, number: u16) -> Option<Place> {
        self.theirs.get(&self.name(remote, number)).copied()
    }
    /// Whether a remote may mean this leg by our number: no other leg has it, and none whose late frames could come.
    pub(super) fn is_ours_free(&self, remote: SocketAddr, number: u16, place: Place) -> bool {
        let name = self.name(remote, number);
        self.ours.get(&name).is_none_or(|holder| *holder == place) && !self.own_rests.contains_key(&name)
    }
    /// Whether a remote may mean this leg by its own number.
    pub(super) fn is_theirs_free(&self, remote: SocketAddr, number: u16, place: Place) -> bool {
        self.by_theirs(remote, number).is_none_or(|holder| holder == place)
    }
    pub(super) fn index_ours(&mut self, remote: SocketAddr, number: u16, place: Place) {
        self.ours.insert(self.name(remote, number), place);
    }
    pub(super) fn index_theirs(&mut self, remote: SocketAddr, number: u16, place: Place) {
        self.theirs.insert(self.name(remote, number), place);
    }
    pub(super) fn forget_ours(&mut self, remote: SocketAddr, number: u16, place: Place) {
        let name = self.name(remote, number);
        if self.ours.get(&name) == Some(&place) {
            self.ours.remove(&name);
        }
    }
    pub(super) fn forget_theirs(&mut self, remote: SocketAddr, number: u16, place: Place) {
        let name = self.name(remote, number);
        if self.theirs.get(&name) == Some(&place) {
            self.theirs.remove(&name);
        }
    }

    /// Counts and draws a number for a new leg with `remote`; `None` when its address has enough, or none is left.
    pub(super) fn take_number(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        space: Space,
        most: Option<u32>,
    ) -> Option<u16> {
        self.wake_numbers(now);
        if !self.hosts.take(remote.ip(), most) {
            return None;
        }
        let number = match space {
            Space::Shared | Space::Trunked => self.take_shared(now, remote, space),
            Space::Own => self.take_own(now, remote),
        };
        if number.is_none() {
            self.hosts.give_back(remote.ip());
        }
        number
    }

    fn take_shared(&mut self, now: Instant, remote: SocketAddr, space: Space) -> Option<u16> {
        for _ in 0..SHARED_TRIES {
            let pool = if space == Space::Trunked { &mut self.trunked } else { &mut self.single };
            let number = pool.take(now, &mut self.random)?;
            let name = self.name(remote, number);
            if !self.ours.contains_key(&name) && !self.own_rests.contains_key(&name) {
                return Some(number);
            }
            let pool = if space == Space::Trunked { &mut self.trunked } else { &mut self.single };
            pool.give_back(now, number);
        }
        None
    }

    /// Whose sequence a remote takes its own numbers from: its own one, or that of its host. `None` when there are too many.
    ///
    /// A remote changes from one to the other only when nothing that it was given before could still be under way: while
    /// the sequence of a host is kept no further remote of it gets one, and a remote that has one stays with it.
    fn sequence_of(&mut self, now: Instant, remote: SocketAddr) -> Option<(u128, [u8; ADDRESS_BYTES])> {
        let bytes = address_bytes(remote);
        let name = self.key.digest(&[&bytes]);
        if self.own.contains_key(&name) {
            return Some((name, bytes));
        }
        let host_bytes = address_bytes(SocketAddr::new(host(remote.ip()), 0));
        let host = self.key.digest(&[b"host", &host_bytes]);
        if self.own.contains_key(&host) {
            return Some((host, host_bytes));
        }
        let remotes = self.remotes_of.get(&host).copied().unwrap_or(0);
        let (name, bytes, of) = match remotes < REMOTES_OF_HOST && self.own.len() - self.sharing < REMOTES_MAX
        {
            true => (name, bytes, Some(host)),
            false if self.sharing < REMOTES_MAX => (host, host_bytes, None),
            false => return None,
        };
        match of {
            Some(host) => *self.remotes_of.entry(host).or_default() += 1,
            None => self.sharing += 1,
        }
        self.own.insert(name, OwnNumbers::new(now, &mut self.random));
        self.remotes.push_back((now, name, of));
        Some((name, bytes))
    }

    fn take_own(&mut self, now: Instant, remote: SocketAddr) -> Option<u16> {
        let (name, sequence) = self.sequence_of(now, remote)?;
        let bytes = address_bytes(remote);
        let (key, ours, rests) = (self.key, &self.ours, &self.own_rests);
        self.own.get_mut(&name)?.take(now, key, &sequence, |number| {
            let name = key.digest(&[&bytes, &number.to_le_bytes()]);
            ours.contains_key(&name) || rests.contains_key(&name)
        })
    }

    /// A sequence of numbers is forgotten.
    fn forget_sequence(&mut self, name: u128, of: Option<u128>) {
        self.own.remove(&name);
        let Some(host) = of else {
            self.sharing -= 1;
            return;
        };
        if let Some(count) = self.remotes_of.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                self.remotes_of.remove(&host);
            }
        }
    }

    /// What has rested is free.
    pub(super) fn wake_numbers(&mut self, now: Instant) {
        while let Some((_, name)) = self.own_resting.pop_front_if(|(since, _)| now - *since >= REST) {
            self.own_rests.remove(&name);
        }
        while let Some((_, host)) = self.hosts_resting.pop_front_if(|(since, _)| now - *since >= REST) {
            self.hosts.give_back(host);
        }
        self.single.wake(now);
        self.trunked.wake(now);
        // A remote is forgotten when nothing that it was given could still be under way.
        while let Some((_, name, of)) = self.remotes.pop_front_if(|(since, ..)| now - *since >= REST_OWN * 2)
        {
            match self.own.get(&name) {
                Some(numbers) if now - numbers.last_used() < REST_OWN * 2 => {
                    self.remotes.push_back((now, name, of));
                }
                _ => self.forget_sequence(name, of),
            }
        }
    }

    /// Takes a leg that is gone out of every index, and gives its number back.
    pub(super) fn release(&mut self, place: Place, leg: &Leg, now: Instant) {
        let link = &leg.link;
        self.forget_ours(link.remote, link.ours, place);
        self.forget_theirs(link.remote, link.theirs, place);
        if let super::Role::Call(call) = &leg.role
            && let Some(transfer) = &call.transfer
        {
            self.forget_ours(transfer.peer, link.ours, place);
            self.forget_theirs(transfer.peer, transfer.number, place);
        }
        if leg.without_token {
            self.without_token -= 1;
        }
        match link.space {
            Space::Shared => self.single.give_back(now, link.ours),
            Space::Trunked => self.trunked.give_back(now, link.ours),
            Space::Own => {
                self.hosts.give_back(leg.host);
                if now - link.born > SHORT_LIFE {
                    let name = self.name(link.remote, link.ours);
                    self.own_rests.insert(name, ());
                    self.own_resting.push_back((now, name));
                }
                return;
            }
        }
        self.hosts_resting.push_back((now, leg.host));
    }

    /// Whether who asks with this has to bring a token first.
    pub(super) fn wants_token(&self, from: IpAddr, user: &[u8]) -> bool {
        let rule = self.settings.token_users.get(user).copied().unwrap_or_default();
        let free = self.settings.token_optional.iter().any(|network| in_network(*network, from));
        match rule {
            _ if free => false,
            TokenRule::Yes => true,
            TokenRule::No => false,
            TokenRule::Auto => self.proven_users.contains_key(&self.key.digest(&[user])),
        }
    }
    /// One more leg without a token; `false` when there are enough.
    pub(super) fn admit_without_token(&mut self) -> bool {
        let room = self.without_token < self.settings.numbers_without_token;
        self.without_token += u32::from(room);
        room
    }
    pub(super) fn forget_without_token(&mut self) {
        self.without_token -= 1;
    }
    /// Whether the token is good; a user of [`TokenRule::Auto`] needs one from here on.
    pub(super) fn check_token(
        &mut self,
        now: Instant,
        from: SocketAddr,
        command: Command,
        token: &[u8],
        user: &[u8],
    ) -> bool {
        let good = self.tokens.check(now, from, command, token, &mut self.random);
        if good && self.settings.token_users.get(user) == Some(&TokenRule::Auto) {
            self.proven_users.insert(self.key.digest(&[user]), ());
        }
        good
    }

    /// Answers a frame without a leg: swapped numbers, the same timestamp. Nothing when its network has had enough.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        from: SocketAddr,
        to: &Full<'_>,
        command: Command,
        element: Option<Element<'_>>,
        out: &mut Out,
    ) {
        if !self.throttle.take(now, from.ip()) {
            return self.discard(Discard::Throttled);
        }
        let mut data = Vec::with_capacity(FULL_BYTES * 3);
        if let Some(element) = element {
            write_element(&element, &mut data);
        }
        let source = if to.dest == 0 { STATELESS } else { to.dest };
        let iseq = if to.is_sequenced() { to.oseq.wrapping_add(1) } else { to.oseq };
        let frame = Full {
            source,
            dest: to.source,
            again: false,
            timestamp: to.timestamp,
            oseq: to.iseq,
            iseq,
            kind: Kind::Iax(command),
            data: &data,
        };
        if !super::link::may_answer(FULL_BYTES + to.data.len(), FULL_BYTES + data.len(), from.ip()) {
            return self.discard(Discard::Throttled);
        }
        out.datagram(from, |buffer| frame.write(buffer));
    }

    /// Answers who asks for a token with one.
    pub(super) fn answer_token(
        &mut self,
        now: Instant,
        from: SocketAddr,
        to: &Full<'_>,
        command: Command,
        out: &mut Out,
    ) {
        let token = self.tokens.issue(now, from, command, &mut self.random);
        self.answer(now, from, to, Command::CALLTOKEN, Some(Element::CallToken(&token)), out);
    }

    /// Refuses who asks, without a leg.
    pub(super) fn refuse(
        &mut self,
        now: Instant,
        from: SocketAddr,
        to: &Full<'_>,
        command: Command,
        cause: Cause,
        out: &mut Out,
    ) {
        let refusal = if command == Command::NEW { Command::REJECT } else { Command::REGREJ };
        self.answer(now, from, to, refusal, Some(Element::CauseCode(cause.0)), out);
    }

    /// A fresh key of 128 random bits.
    pub(super) fn fresh_key(&mut self) -> [u8; 16] {
        self.random.next_wide().to_le_bytes()
    }
    /// A fresh challenge.
    pub(super) fn fresh_challenge(&mut self) -> Vec<u8> {
        crate::auth::challenge(&mut self.random)
    }
    /// `base`, up to a quarter shorter or longer, so that legs that began together do not stay together.
    pub(super) fn jittered(&mut self, base: core::time::Duration) -> core::time::Duration {
        base * 3 / 4 + core::time::Duration::from_millis(self.random.below(base.as_millis() as u64 / 2 + 1))
    }
}

/// What a challenged side has to prove, and with what.
#[derive(Debug, Clone)]
pub(super) struct Challenged {
    pub(super) challenge: Vec<u8>,
    pub(super) methods: crate::frame::Auth,
    pub(super) secret: Secret,
}

impl Challenged {
    /// Whether the answer proves a password.
    pub(super) fn check(&self, fields: &crate::frame::Fields<'_>) -> bool {
        crate::auth::check(&self.secret, self.methods, &self.challenge, fields.md5, fields.password)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use std::collections::BTreeSet;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }
    fn core() -> Core {
        let settings = Settings { numbers_of_address: u32::MAX, ..Settings::default() };
        Core::new(at(0), Key::new(5), settings)
    }
    fn remote(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], port))
    }

    #[test]
    fn ports_of_one_host_fill_no_table_and_those_beyond_the_bound_share_numbers_that_rest_all_the_same() {
        let mut core = core();
        let mut shared = BTreeSet::new();
        for port in 1..=5000 {
            let number = core.take_number(at(0), remote(1, port), Space::Own, None).expect("a number");
            if u32::from(port) > REMOTES_OF_HOST {
                assert!(shared.insert(number), "port {port} was given a number that another has");
            }
        }
        assert_eq!(core.own.len(), REMOTES_OF_HOST as usize + 1);
        assert!(core.take_number(at(0), remote(2, 4569), Space::Own, None).is_some(), "another host");
        // Of one sequence no number comes back before its rest, whichever port asks.
        for second in 0..119 {
            for port in 2000..2200 {
                match core.take_number(at(second), remote(1, port), Space::Own, None) {
                    Some(number) => assert!(shared.insert(number), "{number} at {second} s"),
                    None => assert!(shared.len() > 20_000, "{} were given", shared.len()),
                }
            }
        }
        // Whoever shared does so until nothing of that is under way.
        assert!(core.take_number(at(130), remote(1, 3000), Space::Own, None).is_some());
        core.wake_numbers(at(240));
        assert!(core.take_number(at(240), remote(1, 9000), Space::Own, None).is_some());
        assert_eq!(
            (core.own.len(), core.sharing),
            (1, 1),
            "the ports before are forgotten, and a new one shares"
        );
        for second in [500, 900, 1300] {
            core.wake_numbers(at(second));
        }
        assert_eq!((core.own.len(), core.remotes_of.len(), core.sharing, core.remotes.len()), (0, 0, 0, 0));
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_host() {
        let mut core = core();
        for last in 0..3000u16 {
            let ip = core::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 7, 0, 0, 0, last);
            assert!(core.take_number(at(0), SocketAddr::from((ip, 4569)), Space::Own, None).is_some());
        }
        assert_eq!(core.own.len(), REMOTES_OF_HOST as usize + 1);
    }
}
