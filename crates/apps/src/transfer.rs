//! Channels that somebody else brings together: bridged by name, or transferred blindly. Each is taken out of the story that
//! has it, and goes on in its dialplan, if it has one, when the conversation is over.

use core::time::Duration;
use std::rc::Rc;

use base::{BridgeId, Cause, ChannelId};
use call::parking::ParkWish;
use call::{BridgeLimits, CelKind, Chan, ChanState, Core, Leg, Location, Notice, Shard};

use crate::{features, pbx};

/// How long stories may take to let go of a channel: they do at the next thing they wait for.
const LET_GO: Duration = Duration::from_secs(5);

/// Why channels cannot be brought together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such channel, or it has ended.
    #[error("there is no such channel")]
    Gone,
    /// Both are the same.
    #[error("a channel cannot talk to itself")]
    Same,
    /// It is not answered, or nobody would let go of it.
    #[error("the channel is not answered")]
    NotUp,
    /// It does not talk to exactly one other.
    #[error("the channel talks to nobody, or to several")]
    NoPeer,
    /// The dialplan has no such extension.
    #[error("there is no such extension")]
    NoExtension,
    /// There is no room for another story.
    #[error("too much is going on")]
    Full,
}

/// Whether a channel can be taken from whoever has it.
pub fn is_free(core: &Core, id: ChannelId) -> Result<(), Refused> {
    let channel = core.get(id).filter(|channel| channel.hangup.is_none()).ok_or(Refused::Gone)?;
    let held = channel.has_pbx || channel.bridge.is_some() || core.parking.place_of(id).is_some();
    if channel.state == ChanState::Up && held { Ok(()) } else { Err(Refused::NotUp) }
}

/// The one that a channel talks to, and their bridge.
pub fn peer(core: &Core, id: ChannelId) -> Result<(ChannelId, BridgeId), Refused> {
    let bridge = core.get(id).ok_or(Refused::Gone)?.bridge.ok_or(Refused::NoPeer)?;
    match core.bridge_members(bridge) {
        [a, b] if core.conferences.of(id).is_none() => Ok((if *a == id { *b } else { *a }, bridge)),
        _ => Err(Refused::NoPeer),
    }
}

/// A channel, and where its dialplan goes on afterwards.
pub(crate) struct Party {
    leg: Leg,
    back: Option<Location>,
}

impl Party {
    pub(crate) fn new(leg: Leg, goes_on: bool) -> Self {
        let at = leg.chan().with(|c| c.has_pbx.then(|| c.location.clone())).ok().flatten();
        let next = |at: Location| Location { priority: at.priority + 1, ..at };
        let back = at.filter(|_| goes_on).map(next);
        // It stands there from here on.
        if let Some(back) = &back {
            let _ = leg.chan().with(|c| c.location.clone_from(back));
        }
        Self { leg, back }
    }
    pub(crate) fn chan(&self) -> &Chan {
        self.leg.chan()
    }
    pub(crate) fn into_leg(self) -> Leg {
        self.leg
    }
    pub(crate) fn go(self) {
        pbx::let_go(self.leg, self.back);
    }
}

/// Nobody is to do anything with these channels before the story runs that is about to take them.
pub(crate) fn claim(core: &mut Core, ids: [ChannelId; 2]) {
    for id in ids {
        if let Some(channel) = core.get_mut(id) {
            channel.wanted = true;
        }
    }
}

/// Takes two channels out of the stories that have them, in this order.
pub(crate) async fn take_two(shard: &Rc<Shard>, ids: [ChannelId; 2], go_on: bool) -> Option<[Party; 2]> {
    let deadline = shard.core.borrow().now + LET_GO;
    let mut legs = Chan::take_all(shard, &ids, deadline).await?;
    // They come in the order in which they were let go of.
    if legs.first().is_some_and(|leg| leg.chan().id() != ids[0]) {
        legs.reverse();
    }
    let [first, second] = <[Leg; 2]>::try_from(legs).ok()?;
    Some([Party::new(first, go_on), Party::new(second, go_on)])
}

/// Takes two channels out of what they do and lets them talk. Their dialplans go on after the step they were in.
pub fn bridge(shard: &Rc<Shard>, a: ChannelId, b: ChannelId) -> Result<(), Refused> {
    if a == b {
        return Err(Refused::Same);
    }
    {
        let core = shard.core.borrow();
        is_free(&core, a)?;
        is_free(&core, b)?;
    }
    let own = shard.clone();
    let story = async move {
        if let Some([a, b]) = take_two(&own, [a, b], true).await {
            talk(a, b).await;
        }
    };
    if shard.spawn(None, story) { Ok(()) } else { Err(Refused::Full) }
}

/// The two talk, with the rights that they have; then each goes on.
pub(crate) async fn talk(a: Party, b: Party) {
    show(a.chan(), b.chan()).await;
    show(b.chan(), a.chan()).await;
    let parties = [(a.chan(), None), (b.chan(), None)];
    let _ = features::converse(parties, BridgeLimits::default()).await;
    b.go();
    a.go();
}

/// One learns who the other is.
pub(crate) async fn show(to: &Chan, whom: &Chan) {
    if let Ok(party) = whom.with(|c| c.caller.clone()) {
        to.connect_line(party).await;
    }
}

/// Sends a channel out of its bridge: on in its dialplan, else to its end.
pub fn kick(core: &mut Core, id: ChannelId) -> Result<(), Refused> {
    let channel = core.get(id).filter(|channel| channel.bridge.is_some()).ok_or(Refused::NoPeer)?;
    if let Some(name) = core.conferences.of(id).map(|conference| conference.name.clone()) {
        let _ = core.conference_kick(&name, call::conference::Which::One(id));
    } else if channel.has_pbx {
        let next = Location { priority: channel.location.priority + 1, ..channel.location.clone() };
        core.request_goto(id, next);
    } else {
        core.request_hangup(id, Cause::NORMAL_CLEARING);
    }
    Ok(())
}

/// Sends the party that a channel talks to elsewhere; the channel's own call ends, or goes on as its Dial says. At an
/// extension that parks it is parked, and the channel hears where.
/// `external`: a phone asked for it.
pub fn blind(core: &mut Core, transferer: ChannelId, to: Location, external: bool) -> Result<(), Refused> {
    let (peer, bridge) = peer(core, transferer)?;
    let caller = core.get(peer).map(|channel| channel.caller.number().to_owned()).unwrap_or_default();
    if (core.reach)(core, &to.context, &to.exten, &caller) != call::Reach::Whole {
        return Err(Refused::NoExtension);
    }
    let (name, other) = (core.get(transferer), core.get(peer));
    let names = name.zip(other).map(|(a, b)| (a.name.clone(), b.name.clone())).ok_or(Refused::Gone)?;
    for (id, name) in [(peer, &names.0), (transferer, &names.1)] {
        core.set_variable(id, "BLINDTRANSFER", name);
    }
    core.leave_first(transferer);
    core.notice_logged(CelKind::BlindTransfer, |core| {
        Some(Notice::BlindTransfer {
            transferer: core.snapshot(transferer).map(Box::new)?,
            transferee: core.snapshot(peer).map(Box::new),
            replacement: None,
            bridge: core.bridge_snapshot(bridge)?,
            members: core.bridge_uniqueids(bridge),
            external,
            to: (to.context.clone(), to.exten.clone()),
        })
    });
    match (core.parks)(core, &to.context, &to.exten, &caller) {
        Some(arguments) => core.request_parking(ParkWish { parker: transferer, parkee: peer, arguments }),
        None => {
            core.cdr_sent(peer, &to.exten, &to.context);
            core.request_goto(peer, to);
        }
    }
    Ok(())
}
