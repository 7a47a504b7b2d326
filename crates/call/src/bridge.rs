//! Two channels talking: joined in the media plane, watched by one story.

use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use base::{BridgeId, ChannelId, Clip, Command, Digit, Instant};

use crate::{Chan, ChanEvent, Indication, Shard, Stop};

/// Warnings before a bridge's limit (`L(x:y:z)`), each played to one party.
#[derive(Debug, Clone, Default)]
pub struct Warnings {
    /// How long before the limit the first one comes.
    pub before: Duration,
    /// How often again; zero: once.
    pub every: Duration,
    /// What the first party hears.
    pub for_a: Option<Arc<Clip>>,
    /// What the second party hears.
    pub for_b: Option<Arc<Clip>>,
}

/// How long two may talk, and which of them may end it with a key.
#[derive(Debug, Clone, Default)]
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
    let _joined = Joined::new(&shard, a.id(), b.id(), creator);
    let mut clock = LimitClock::new(a.now(), &limits);
    loop {
        let Some((id, heard)) = Chan::any(&shard, &[a.id(), b.id()], clock.next).await else {
            if clock.advance(a.now(), &limits) {
                return BridgeEnd::Limit;
            }
            warn(a, limits.warnings.for_a.as_ref());
            warn(b, limits.warnings.for_b.as_ref());
            continue;
        };
        let (other, hangup_digit) =
            if id == a.id() { (b, limits.hangup_digit_a) } else { (a, limits.hangup_digit_b) };
        match heard {
            Err(stop) => return BridgeEnd::Stopped(id, stop),
            Ok(ChanEvent::Digit { digit, .. }) if hangup_digit == Some(digit) => {
                return BridgeEnd::Disconnected(id);
            }
            Ok(event) => {
                if let Err(stop) = pass_on(event, other).await {
                    return BridgeEnd::Stopped(other.id(), stop);
                }
            }
        }
    }
}

fn warn(chan: &Chan, clip: Option<&Arc<Clip>>) {
    if let Some(clip) = clip {
        chan.start_clip(clip.clone(), 0);
    }
}

/// What one party did, told to the other.
async fn pass_on(event: ChanEvent, other: &Chan) -> Result<(), Stop> {
    match event {
        ChanEvent::Digit { digit, duration_ms, relayed: false } => {
            other.send_digit(digit, u16::try_from(duration_ms.clamp(80, 6000)).unwrap_or(100));
        }
        ChanEvent::Hold => {
            other.indicate(&Indication::Hold);
            other.start_music("").await?;
        }
        ChanEvent::Unhold => {
            other.stop_music();
            other.indicate(&Indication::Unhold);
        }
        ChanEvent::Text(text) => {
            other.shard().with_tech(other.id(), |tech, core| tech.send_text(core, other.id(), &text));
        }
        _ => {}
    }
    Ok(())
}

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
    /// Goes past `next`; whether that was the end.
    fn advance(&mut self, now: Instant, limits: &BridgeLimits) -> bool {
        if self.end.is_some_and(|end| end <= now) {
            return true;
        }
        let again = (!limits.warnings.every.is_zero()).then(|| now + limits.warnings.every);
        self.next = [again, self.end].into_iter().flatten().min();
        false
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
    fn new(shard: &Rc<Shard>, a: ChannelId, b: ChannelId, creator: &'static str) -> Self {
        let mut core = shard.core.borrow_mut();
        let bridge = core.bridge_create(creator);
        core.bridge_enter(bridge, a);
        core.bridge_enter(bridge, b);
        let streams = (core.get(a).and_then(|c| c.stream), core.get(b).and_then(|c| c.stream));
        if let (Some(a), Some(b)) = streams {
            core.media(Command::Join { a, b });
        }
        Self { shard: shard.clone(), bridge, a, b }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let mut core = self.shard.core.borrow_mut();
        if let Some(stream) = core.get(self.a).and_then(|c| c.stream) {
            core.media(Command::Part { stream });
        }
        core.bridge_leave(self.bridge, self.b);
        core.bridge_leave(self.bridge, self.a);
        core.bridge_destroy(self.bridge);
    }
}
