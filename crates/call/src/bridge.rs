//! Two channels talking: joined in the media plane, watched by one story.

use core::time::Duration;
use std::rc::Rc;

use base::{BridgeId, ChannelId, Command};

use crate::{Chan, ChanEvent, Indication, Shard, Stop};

/// How long two may talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BridgeLimits {
    /// Longest time from the join; `None`: no limit.
    pub duration: Option<Duration>,
}

/// Why two stopped talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgeEnd {
    /// This one's story must stop.
    Stopped(ChannelId, Stop),
    /// The limit was reached.
    Limit,
}

/// Bridges `a` and `b` until one ends, is sent elsewhere, or the limit is reached.
///
/// Digits that the media worker has not passed on itself are sent on; hold gives the other music. Neither channel is
/// hung up here. `creator` is the application that watchers see.
pub async fn bridge_pair(a: &Chan, b: &Chan, limits: BridgeLimits, creator: &'static str) -> BridgeEnd {
    let shard = a.shard().clone();
    let joined = Joined::new(&shard, a.id(), b.id(), creator);
    let deadline = limits.duration.map(|limit| a.now() + limit);
    loop {
        let Some((id, heard)) = Chan::any(&shard, &[a.id(), b.id()], deadline).await else { return BridgeEnd::Limit };
        let other = if id == a.id() { b } else { a };
        match heard {
            Err(stop) => {
                drop(joined);
                return BridgeEnd::Stopped(id, stop);
            }
            Ok(ChanEvent::Digit { digit, duration_ms, relayed: false }) => {
                other.send_digit(digit, u16::try_from(duration_ms.clamp(80, 6000)).unwrap_or(100));
            }
            Ok(ChanEvent::Hold) => {
                other.indicate(&Indication::Hold);
                if let Err(stop) = other.start_music("").await {
                    drop(joined);
                    return BridgeEnd::Stopped(other.id(), stop);
                }
            }
            Ok(ChanEvent::Unhold) => {
                other.stop_music();
                other.indicate(&Indication::Unhold);
            }
            Ok(ChanEvent::Text(text)) => {
                shard.with_tech(other.id(), |tech, core| tech.send_text(core, other.id(), &text));
            }
            Ok(_) => {}
        }
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
