//! Two channels talking: joined in the media plane, watched by one story.

use core::time::Duration;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use base::{BridgeId, ChannelId, Clip, Command, Digit, Instant, PlayId};

use crate::{Chan, ChanEvent, Indication, Level, Shard, Stop};

/// Names of the sounds that say how much time is left.
pub type SayRemaining = Rc<dyn Fn(Duration) -> Vec<String>>;

/// Warnings before a bridge's limit (`L(x:y:z)`).
#[derive(Clone)]
pub struct Warnings {
    /// How long before the limit the first one comes; zero: there is none.
    pub before: Duration,
    /// How often again; zero: once.
    pub every: Duration,
    /// What is said, given the time that is left.
    pub say: SayRemaining,
    /// Whether the first party hears it.
    pub to_a: bool,
    /// Whether the second party hears it.
    pub to_b: bool,
}

impl Default for Warnings {
    /// None.
    fn default() -> Self {
        let say: SayRemaining = Rc::new(|_| Vec::new());
        Self { before: Duration::ZERO, every: Duration::ZERO, say, to_a: false, to_b: false }
    }
}

/// How long two may talk, and which of them may end it with a key.
#[derive(Clone, Default)]
pub struct BridgeLimits {
    /// Longest time from the join; `None`: no limit.
    pub duration: Option<Duration>,
    /// Warnings before the limit.
    pub warnings: Warnings,
    /// The digit with which the first party ends the call (`H`).
    pub hangup_digit_a: Option<Digit>,
    /// The digit with which the second party ends the call (`h`).
    pub hangup_digit_b: Option<Digit>,
}

/// Why two stopped talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgeEnd {
    /// This one's story must stop.
    Stopped(ChannelId, Stop),
    /// This one pressed its hang-up digit.
    Disconnected(ChannelId),
    /// The limit was reached.
    Limit,
}

/// Bridges `a` and `b` until one ends, is sent elsewhere, or the limit is reached.
///
/// Digits that the media worker has not passed on itself are sent on; hold gives the other music. Neither channel is
/// hung up here. `creator` is the application that watchers see.
pub async fn bridge_pair(a: &Chan, b: &Chan, limits: BridgeLimits, creator: &'static str) -> BridgeEnd {
    let shard = a.shard().clone();
    if let (Ok(Some((_, from))), Ok(Some((_, to)))) = (a.stream(), b.stream())
        && !shard.core.borrow().settings.coded.leads(from, to)
    {
        // Silence that nobody explains would be worse than an end.
        let text = format!(
            "no path to translate from {} ({from}) to {} ({to}): one of the formats can only be passed through; allow \
             ulaw or alaw for both",
            a.name(),
            b.name()
        );
        a.log(Level::Warning, "bridge", &text);
        return BridgeEnd::Disconnected(a.id());
    }
    let listens = limits.hangup_digit_a.is_some() || limits.hangup_digit_b.is_some();
    let _joined = Joined::new(&shard, a.id(), b.id(), creator, listens);
    let mut clock = LimitClock::new(a.now(), &limits);
    let (mut first, mut second) =
        (Party::new(a, limits.hangup_digit_a), Party::new(b, limits.hangup_digit_b));
    loop {
        let Some((id, heard)) = Chan::any(&shard, &[a.id(), b.id()], clock.next).await else {
            let Some(left) = clock.advance(a.now(), &limits) else { return BridgeEnd::Limit };
            let names = (limits.warnings.say)(left);
            for (party, wanted) in [(&mut first, limits.warnings.to_a), (&mut second, limits.warnings.to_b)] {
                if wanted && let Err(stop) = party.say(&names).await {
                    return BridgeEnd::Stopped(party.chan.id(), stop);
                }
            }
            continue;
        };
        let (own, other) = if id == a.id() { (&mut first, &mut second) } else { (&mut second, &mut first) };
        match heard {
            Err(stop) => return BridgeEnd::Stopped(id, stop),
            Ok(ChanEvent::Digit { digit, .. }) if own.hangup_digit == Some(digit) => {
                return BridgeEnd::Disconnected(id);
            }
            Ok(ChanEvent::Played { play, .. }) => own.played(play),
            Ok(event) => {
                if let Err(stop) = pass_on(event, own, other).await {
                    return BridgeEnd::Stopped(other.chan.id(), stop);
                }
            }
        }
    }
}

/// What one party did, told to the other.
async fn pass_on(event: ChanEvent, own: &Party<'_>, other: &mut Party<'_>) -> Result<(), Stop> {
    match event {
        ChanEvent::Digit { digit, duration_ms, relayed: false } => {
            other.chan.pass_digit(digit, duration_ms);
        }
        ChanEvent::Hold => {
            other.chan.indicate(&Indication::Hold);
            if other.chan.with(|c| c.passes_hold)? {
                return Ok(());
            }
            let class = other.music_class(own.chan);
            other.hears_music = other.chan.start_music(&class).await?;
        }
        ChanEvent::Unhold => {
            other.end_music();
            other.chan.indicate(&Indication::Unhold);
        }
        ChanEvent::ConnectedLine(party) => other.chan.connect_line(*party).await,
        ChanEvent::Redirecting(redirecting) => other.chan.redirect_line(*redirecting).await,
        ChanEvent::Text(text) => {
            let other = other.chan;
            other.shard().with_tech(other.id(), |tech, core| tech.send_text(core, other.id(), &text));
        }
        _ => {}
    }
    Ok(())
}

/// One of the two, with what it is made to hear beside the other.
struct Party<'a> {
    chan: &'a Chan,
    hangup_digit: Option<Digit>,
    hears_music: bool,
    playing: Option<PlayId>,
    to_play: VecDeque<Arc<Clip>>,
}

impl<'a> Party<'a> {
    fn new(chan: &'a Chan, hangup_digit: Option<Digit>) -> Self {
        Self { chan, hangup_digit, hears_music: false, playing: None, to_play: VecDeque::new() }
    }
    /// The class it hears while `holder` holds it: its own when it has one, else the holder's.
    fn music_class(&self, holder: &Chan) -> String {
        let class = |chan: &Chan| chan.with(|c| c.music_class.clone()).unwrap_or_default();
        let own = class(self.chan);
        if own.is_empty() || own == DEFAULT_MUSIC { class(holder) } else { own }
    }
    fn end_music(&mut self) {
        if std::mem::take(&mut self.hears_music) {
            self.chan.stop_music();
        }
    }
    /// Says these sounds one after the other; who hears music is left alone.
    async fn say(&mut self, names: &[String]) -> Result<(), Stop> {
        if self.hears_music {
            return Ok(());
        }
        for name in names {
            self.to_play.extend(self.chan.clip(name).await?);
        }
        if self.playing.is_none() {
            self.play_next();
        }
        Ok(())
    }
    fn play_next(&mut self) {
        self.playing = self.to_play.pop_front().map(|clip| self.chan.start_clip(clip, 0));
    }
    fn played(&mut self, play: PlayId) {
        if self.playing == Some(play) {
            self.play_next();
        }
    }
}

impl Drop for Party<'_> {
    fn drop(&mut self) {
        self.end_music();
        if self.playing.is_some() {
            self.chan.stop_sound();
        }
    }
}

/// The class of channels that were given none.
const DEFAULT_MUSIC: &str = "default";

/// When the next warning or the end is due.
struct LimitClock {
    end: Option<Instant>,
    next: Option<Instant>,
}

impl LimitClock {
    fn new(start: Instant, limits: &BridgeLimits) -> Self {
        let end = limits.duration.map(|limit| start + limit);
        let warning = limits.duration.zip(Some(limits.warnings.before).filter(|b| !b.is_zero()));
        let next = warning.map(|(limit, before)| start + limit.saturating_sub(before)).or(end);
        Self { end, next }
    }
    /// Goes past `next`; the time that is left, `None` when that was the end.
    fn advance(&mut self, now: Instant, limits: &BridgeLimits) -> Option<Duration> {
        let end = self.end.filter(|end| *end > now)?;
        let again = (!limits.warnings.every.is_zero()).then(|| now + limits.warnings.every);
        self.next = [again, Some(end)].into_iter().flatten().min();
        Some(end - now)
    }
}

/// The join, undone when dropped, however the story ends.
struct Joined {
    shard: Rc<Shard>,
    bridge: BridgeId,
    a: ChannelId,
    b: ChannelId,
}

impl Joined {
    fn new(shard: &Rc<Shard>, a: ChannelId, b: ChannelId, creator: &'static str, listens: bool) -> Self {
        let mut core = shard.core.borrow_mut();
        let bridge = core.bridge_create(creator);
        core.bridge_pairs(bridge, listens);
        core.bridge_enter(bridge, a);
        core.bridge_enter(bridge, b);
        for id in [a, b] {
            let rings = core.get_mut(id).is_some_and(|c| std::mem::take(&mut c.rings_inside));
            if let Some(stream) = core.get(id).and_then(|c| c.stream).filter(|_| rings) {
                core.media(Command::StopPlay { stream });
            }
        }
        core.join_streams(a, b);
        Self { shard: shard.clone(), bridge, a, b }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let mut core = self.shard.core.borrow_mut();
        // Parting one parts both; the first may be gone already.
        if !core.part_streams(self.a) {
            core.part_streams(self.b);
        }
        core.bridge_leave(self.bridge, self.b);
        core.bridge_leave(self.bridge, self.a);
        core.bridge_destroy(self.bridge);
    }
}
