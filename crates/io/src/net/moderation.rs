//! Fewer, fuller turns under load.
//!
//! A turn of the loop has a price that does not depend on what it finds: a sleep, a wake-up, the kernel's wait, and above
//! all caches that have gone cold (measured at 100 calls a second: four fifths of the time of a turn that finds one
//! message). So once datagrams come fast the reactor naps between two turns, as a network card moderates its interrupts,
//! and takes in together what came meanwhile. A registration may wait for some milliseconds: no SIP timer (T1 is 500 ms) and
//! no person notices. Whoever places a call may not: each message of one would wait anew. So while the owner says that
//! somebody waits ([`Moderation::hurry`]) there are no naps between datagrams: what is there at the end of a turn is batch
//! enough (measured at 400 bridged calls a second: rests of 1.5 ms doubled the time until a caller was answered). A quiet reactor answers at once, and so does one whose senders say nothing more before they have their
//! answers: naps would not gather anything, and slow them down.
//!
//! What registered phones send over their connections counts as datagrams do. Other connections are moderated in the same
//! way, on another scale: programs that ask a thousand things a second wait for each answer, so that a nap may be a fraction
//! of what one answer takes, and pays only while several of them ask at once.

use std::time::Duration;

use base::Instant;

/// How long arrivals are counted before the nap is chosen anew.
const WINDOW: Duration = Duration::from_millis(100);
/// Below this rate every arrival is looked at when it comes: some 40 calls a second.
const QUIET_PER_SECOND: u64 = 120;
/// Arrivals that a turn is to find, on average: enough to share its cost, few enough for the socket's buffer by far.
const WANTED: u64 = 32;
/// Longest nap: two of them are within the 20 ms that a registration may take.
const NAP_MAX: Duration = Duration::from_millis(15);
/// How long somebody waits: what belongs to a call follows within this time, or finds a reactor that naps once more.
const HURRY: Duration = Duration::from_secs(2);
/// A nap shorter than this costs more than it saves: at such a rate turns fill by themselves.
const NAP_MIN: Duration = Duration::from_millis(1);

/// Below this many reads a second connections are looked at when something comes: no program of a person asks so fast.
const CALM_PER_SECOND: u64 = 8_000;
/// The nap between two turns of busy connections: what the kernel needs to let a handful of other programs ask.
const MOMENT: Duration = Duration::from_micros(50);
/// Reads that a turn has to find for the nap to have paid: one alone was only delayed.
const COMPANY: u64 = 2;
/// Windows with naps before it is looked whether turns still find one read alone without them.
const NAPS_MAX: u32 = 20;
/// Most windows without naps after some that did not pay: one program that asks as fast as it can loses a hundredth.
const RESTS_MAX: u32 = 64;

/// Windows in a row that have to be quiet before naps end. What naps delay is not counted in the first of them: of phones
/// that connect, each takes several turns to come as far as its first message that counts.
const QUIET_WINDOWS: u32 = 3;
/// Windows with naps after which it is looked whether less comes than before: then those who send wait for our answers, and
/// naps do not gather what they say but keep them from saying it.
const TRIAL_WINDOWS: u32 = 3;
/// Windows with naps before there is one without, to see what comes then.
const TRIED_AGAIN: u32 = 64;

/// Counts arrivals and says how long to nap.
#[derive(Debug, Default)]
pub(super) struct Moderation {
    since: Instant,
    arrivals: u64,
    /// Somebody waits until then.
    hurried_until: Instant,
    datagrams: Datagrams,
    streams: Streams,
}

/// Windows without naps after some that did not pay: longer each time, until some do.
#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    left: u32,
    /// How long the last one was.
    last: u32,
}

impl Rest {
    fn begin(&mut self) {
        self.last = (self.last * 2).clamp(1, RESTS_MAX);
        self.left = self.last;
    }
    /// Naps have paid: the next rest is a short one again.
    fn forget(&mut self) {
        *self = Self::default();
    }
    /// Whether the window that is over was one of a rest.
    fn goes_on(&mut self) -> bool {
        let goes_on = self.left > 0;
        self.left = self.left.saturating_sub(1);
        goes_on
    }
}

/// Naps between datagrams, and between what registered phones say on their connections.
#[derive(Debug, Default)]
struct Datagrams {
    nap: Duration,
    /// Arrivals a second before there were naps.
    before: u64,
    /// Windows with naps so far, and the sum of their arrivals a second.
    napped: u32,
    since_then: u64,
    /// Windows in a row that were quiet while there were naps.
    quiet: u32,
    rest: Rest,
}

impl Datagrams {
    /// Decides after a window at so many arrivals a second.
    fn decide(&mut self, rate: u64) {
        let wanted = nap_at(rate);
        if self.nap.is_zero() {
            if !self.rest.goes_on() {
                *self = Self { nap: wanted, before: rate, rest: self.rest, ..Self::default() };
            }
            return;
        }
        self.napped += 1;
        self.since_then = self.since_then.saturating_add(rate);
        self.quiet = if wanted.is_zero() { self.quiet + 1 } else { 0 };
        if self.napped == TRIAL_WINDOWS {
            let slowed = self.since_then / u64::from(TRIAL_WINDOWS) < self.before / 2;
            if slowed { self.rest.begin() } else { self.rest.forget() }
        }
        if self.rest.left > 0 || self.quiet >= QUIET_WINDOWS || self.napped >= TRIED_AGAIN {
            self.nap = Duration::ZERO;
        } else if !wanted.is_zero() {
            self.nap = wanted;
        }
    }
}

/// The same for connections.
#[derive(Debug, Default)]
struct Streams {
    reads: u64,
    /// Turns that read something.
    turns: u64,
    naps: bool,
    /// Windows with naps so far.
    napped: u32,
    rest: Rest,
}

impl Streams {
    /// Decides after a window of so many milliseconds.
    fn decide(&mut self, millis: u64) {
        let rate = self.reads.saturating_mul(1000) / millis;
        let has_company = self.reads >= self.turns.saturating_mul(COMPANY);
        if self.naps && !has_company {
            self.naps = false;
            self.rest.begin();
        } else if self.naps {
            self.napped += 1;
            self.naps = rate >= CALM_PER_SECOND && self.napped < NAPS_MAX;
            self.rest.forget();
        } else if !self.rest.goes_on() {
            // A thread that has no time to sleep finds company without naps.
            self.naps = rate >= CALM_PER_SECOND && !has_company;
            self.napped = 0;
        }
        (self.reads, self.turns) = (0, 0);
    }
}

impl Moderation {
    /// Notes what a turn found: datagrams and reads of phones' connections, and other connections that were read.
    pub(super) fn arrived(&mut self, count: u64, reads: u64) {
        self.arrivals += count;
        self.streams.reads += reads;
        self.streams.turns += u64::from(reads > 0);
    }
    /// What has come belongs to a call.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.hurried_until = now + HURRY;
    }
    /// How long to nap before the next look.
    pub(super) fn nap(&mut self, now: Instant) -> Duration {
        let elapsed = now.since(self.since);
        if elapsed >= WINDOW {
            let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
            let rate = self.arrivals.saturating_mul(1000) / millis;
            self.datagrams.decide(rate);
            self.streams.decide(millis);
            (self.since, self.arrivals) = (now, 0);
        }
        let nap = if now < self.hurried_until { Duration::ZERO } else { self.datagrams.nap };
        if self.streams.naps { nap.max(MOMENT) } else { nap }
    }
}

/// Takes a nap.
pub(super) fn sleep(nap: Duration) {
    std::thread::sleep(nap);
}

fn nap_at(rate: u64) -> Duration {
    if rate < QUIET_PER_SECOND {
        return Duration::ZERO;
    }
    let nap = Duration::from_nanos(WANTED * 1_000_000_000 / rate).min(NAP_MAX);
    if nap < NAP_MIN { Duration::ZERO } else { nap }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Moderation {
        /// What has arrived in this window so far.
        pub(in crate::net) const fn counted(&self) -> u64 {
            self.arrivals
        }
    }

    #[test]
    fn naps_fit_the_rate() {
        for (rate, micros) in [
            (0, 0),
            (119, 0),
            (120, 15_000),
            (1_600, 15_000),
            (3_200, 10_000),
            (32_000, 1_000),
            (33_000, 0),
            (u64::MAX, 0),
        ] {
            assert_eq!(nap_at(rate).as_micros(), micros, "{rate} a second");
        }
    }

    #[test]
    fn a_burst_is_followed_by_naps_until_it_is_over() {
        let mut moderation = Moderation::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        moderation.arrived(320, 0);
        assert_eq!(moderation.nap(at(50)), Duration::ZERO, "not known yet");
        assert_eq!(moderation.nap(at(100)), Duration::from_millis(10));
        moderation.arrived(5, 0);
        assert_eq!(moderation.nap(at(199)), Duration::from_millis(10));
        for (millis, nap) in [(200, 10), (300, 10), (399, 10), (400, 0)] {
            assert_eq!(moderation.nap(at(millis)), Duration::from_millis(nap), "after {millis} ms");
        }
    }

    #[test]
    fn there_are_no_naps_while_somebody_waits() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        // Arrivals in 100 ms, and the nap in milliseconds of whoever only registers.
        for (arrivals, patient) in [(5, 0), (50, 15), (150, 15), (400, 8), (4_000, 0)] {
            let mut moderation = Moderation::default();
            moderation.arrived(arrivals, 0);
            assert_eq!(moderation.nap(at(100)).as_millis(), patient, "{arrivals}");
            moderation.hurry(at(100));
            assert_eq!(moderation.nap(at(101)), Duration::ZERO, "{arrivals}: a call");
            moderation.arrived(arrivals, 0);
            moderation.hurry(at(200));
            assert_eq!(moderation.nap(at(200)), Duration::ZERO, "{arrivals}: and its next message");
            moderation.arrived(arrivals * 20, 0);
            assert_eq!(moderation.nap(at(2_200)).as_millis(), patient, "{arrivals}: nobody waits any more");
        }
    }

    #[test]
    fn naps_go_on_while_what_they_have_delayed_is_not_counted_yet() {
        let mut datagrams = Datagrams::default();
        for (window, rate) in [300, 40, 20, 700, 20, 20, 320, 20, 20].into_iter().enumerate() {
            datagrams.decide(rate);
            assert_eq!(datagrams.nap, NAP_MAX, "window {window}");
        }
        datagrams.decide(20);
        assert_eq!(datagrams.nap, Duration::ZERO, "the third quiet one in a row");
    }

    /// Of so many windows those without naps, when `comes` says how much comes a second at a nap.
    fn windows_without_naps(windows: usize, comes: impl Fn(Duration) -> u64) -> Vec<usize> {
        let mut datagrams = Datagrams::default();
        let mut without = Vec::new();
        for window in 0..windows {
            if datagrams.nap.is_zero() {
                without.push(window);
            }
            datagrams.decide(comes(datagrams.nap));
        }
        without
    }

    #[test]
    fn who_waits_for_each_answer_is_kept_waiting_less_and_less_often() {
        for clients in [1, 4, 20] {
            let comes = |nap: Duration| match nap.as_micros() as u64 {
                0 => 5_000,
                nap => clients * 1_000_000 / nap,
            };
            let without = windows_without_naps(1_000, comes);
            assert_eq!(without.get(..7), Some(&[0, 4, 5, 9, 10, 11, 15][..]), "{clients} clients");
            assert!(without.len() > 930, "{clients} clients: {}", without.len());
        }
    }

    #[test]
    fn who_does_not_wait_shares_turns_but_for_a_look_now_and_then() {
        for rate in [150, 1_000, 30_000] {
            assert_eq!(windows_without_naps(200, |_| rate), [0, 65, 130, 195], "{rate} a second");
        }
        assert_eq!(windows_without_naps(200, |_| 100).len(), 200);
    }

    /// Windows of 100 ms with so many reads in so many turns, and whether there are naps after each.
    fn naps_after(windows: &[(u64, u64)]) -> Vec<bool> {
        let mut moderation = Moderation::default();
        let mut at = Instant::ZERO;
        let mut after = Vec::new();
        for (reads, turns) in windows {
            for turn in 0..*turns {
                moderation.arrived(0, reads / turns + u64::from(turn < reads % turns));
            }
            at += WINDOW;
            after.push(moderation.nap(at) == MOMENT);
        }
        after
    }

    #[test]
    fn several_programs_that_ask_fast_share_turns() {
        assert_eq!(naps_after(&[(799, 799)]), [false], "calm");
        assert_eq!(naps_after(&[(6_000, 5_000), (6_000, 1_000), (6_000, 1_000)]), [true, true, true]);
        assert_eq!(naps_after(&[(6_000, 5_000), (6_000, 1_000), (100, 30)]), [true, true, false], "over");
        assert_eq!(naps_after(&[(6_000, 1_000), (6_000, 1_000)]), [false, false], "turns are full already");
        let naps = naps_after(&[&[(6_000, 5_000)][..], &[(6_000, 1_000); 40]].concat());
        let looked = naps.iter().position(|naps| !naps);
        assert_eq!(looked, Some(20), "once in a while it is looked whether they are needed");
        assert!(naps.iter().skip(20).all(|naps| !naps), "they are not");
    }

    #[test]
    fn one_program_that_asks_fast_is_left_alone_for_longer_and_longer() {
        let alone: Vec<bool> = naps_after(&[(3_000, 3_000); 400]);
        let naps: Vec<usize> = (0..alone.len()).filter(|window| alone[*window]).collect();
        assert_eq!(naps, [0, 3, 7, 13, 23, 41, 75, 141, 207, 273, 339]);
    }
}
