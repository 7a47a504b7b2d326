//! Channels that somebody else brings together: bridged by name, transferred blindly or after a question. Each is taken
//! out of the story that has it, and goes on in its dialplan, if it has one, when the conversation is over.

use core::cell::Cell;
use core::time::Duration;
use std::rc::Rc;

use base::{BridgeId, Cause, ChannelId};
use call::parking::ParkWish;
use call::{
    AfterKey, BridgeEnd, BridgeLimits, CelKind, Chan, ChanEvent, ChanState, Core, Key, Keys, Leg, Location,
    Notice, OnKey, Pressed, Pressing, Request, Shard, Stop, Stroke, bridge_pair,
};
use dialplan::{Inherit, Var};

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
        Self { leg, back: at.filter(|_| goes_on).map(next) }
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
            talk(a, b, "Bridge").await;
        }
    };
    if shard.spawn(None, story) { Ok(()) } else { Err(Refused::Full) }
}

/// The two talk, with the rights that they have; then each goes on.
pub(crate) async fn talk(a: Party, b: Party, creator: &'static str) {
    show(a.chan(), b.chan()).await;
    show(b.chan(), a.chan()).await;
    let parties = [(a.chan(), None), (b.chan(), None)];
    let _ = features::converse(parties, BridgeLimits::default(), creator).await;
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
        if let Some(channel) = core.get_mut(id) {
            channel.vars.set(Var::named("BLINDTRANSFER"), name, Inherit::Never);
        }
    }
    if let Some(channel) = core.get_mut(peer) {
        channel.vars.set(Var::named("TRANSFERERNAME"), &names.0, Inherit::Never);
    }
    core.notice_logged(CelKind::BlindTransfer, |core| {
        Some(Notice::BlindTransfer {
            transferer: core.snapshot(transferer).map(Box::new)?,
            transferee: core.snapshot(peer).map(Box::new)?,
            bridge: (bridge, core.bridge_members(bridge).len()),
            external,
            to: (to.context.clone(), to.exten.clone()),
        })
    });
    match (core.parks)(core, &to.context, &to.exten, &caller) {
        Some(arguments) => core.request_parking(ParkWish { parker: transferer, parkee: peer, arguments }),
        None => core.request_goto(peer, to),
    }
    Ok(())
}

/// Holds the party that a channel talks to, and lets it ask a third, who is found at an extension. When it hangs up, the
/// other two talk; when the third does not answer or hangs up, all is as before.
pub fn attended(shard: &Rc<Shard>, transferer: ChannelId, to: &Location) -> Result<(), Refused> {
    let peer = {
        let core = shard.core.borrow();
        is_free(&core, transferer)?;
        let (peer, _) = peer(&core, transferer)?;
        is_free(&core, peer)?;
        let caller =
            core.get(transferer).map(|channel| channel.caller.number().to_owned()).unwrap_or_default();
        if (core.reach)(&core, &to.context, &to.exten, &caller) != call::Reach::Whole {
            return Err(Refused::NoExtension);
        }
        peer
    };
    let (own, resource) = (shard.clone(), format!("{}@{}", to.exten, to.context));
    let story = async move {
        if let Some([transferer, peer]) = take_two(&own, [transferer, peer], false).await {
            consult(&own, transferer, peer, resource).await;
        }
    };
    if shard.spawn(None, story) { Ok(()) } else { Err(Refused::Full) }
}

/// Ends the question of an attended transfer; the two talk again.
pub fn cancel(core: &mut Core, transferer: ChannelId) -> Result<(), Refused> {
    let asked = core.get(transferer).ok_or(Refused::Gone)?.consulted.ok_or(Refused::NoPeer)?;
    core.request_hangup(asked, Cause::NORMAL_CLEARING);
    Ok(())
}

/// How the third party's ringing ended.
enum Rang {
    Answered,
    Refused,
    /// Whoever waited for the answer is gone, or has what it asked for.
    Left,
}

/// What the transferer wants, by a key or by hanging up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// All is as before.
    Abort,
    /// The other two talk.
    Complete,
    /// To talk to the other one of the two.
    Swap,
}

const WISHES: [Wish; 3] = [Wish::Abort, Wish::Complete, Wish::Swap];

/// Keys of the transferer while it asks; each stands for the wish of its place in [`WISHES`].
fn wishes(features: &call::features::Features) -> Keys {
    let codes = [&features.abort, &features.complete, &features.swap];
    let keys = codes.iter().enumerate().filter_map(|(wish, code)| Key::new(code, wish));
    Keys { keys: keys.collect(), timeout: features.code_timeout }
}

/// The transferer talks to one of the two until it wishes something, or either is gone.
async fn speak(transferer: &Chan, other: &Chan) -> Result<Wish, BridgeEnd> {
    let wish = Rc::new(Cell::new(None));
    let keyed = wish.clone();
    let on_key: OnKey = Rc::new(move |key| {
        keyed.set(WISHES.get(key.meaning).copied());
        Box::pin(async { Ok(AfterKey::Disconnect) })
    });
    let keys = [wishes(&features::of(transferer)), Keys::default()];
    let limits = BridgeLimits { keys, on_key: Some(on_key), ..BridgeLimits::default() };
    let end = bridge_pair(transferer, other, limits, "AttendedTransfer").await;
    match (wish.get(), end) {
        (Some(wish), BridgeEnd::Disconnected(_)) => Ok(wish),
        (_, BridgeEnd::Stopped(id, _)) if id == transferer.id() => Ok(Wish::Complete),
        (_, end) => Err(end),
    }
}

/// The transferer asks the third party, who has answered; whether the other two are to talk.
async fn question(transferer: &Chan, held: &Chan, asked: &Chan) -> bool {
    let (mut with, mut waits) = (asked, held);
    loop {
        match speak(transferer, with).await {
            Ok(Wish::Complete) => return true,
            Ok(Wish::Abort) | Err(_) => return false,
            Ok(Wish::Swap) => {
                std::mem::swap(&mut with, &mut waits);
                with.stop_music();
                let _ = waits.start_music("").await;
            }
        }
    }
}

async fn consult(shard: &Rc<Shard>, transferer: Party, held: Party, resource: String) {
    let settings = features::of(transferer.chan());
    let _ = held.chan().start_music("").await;
    let Some(asked) = ask(shard, transferer.chan(), resource) else {
        return ask_no_more(transferer, held).await;
    };
    let _ = transferer.chan().with(|c| c.consulted = Some(asked.chan().id()));
    let limit = settings.no_answer;
    let rang = ring(shard, transferer.chan(), asked.chan(), limit, wishes(&settings)).await;
    let connects = match rang {
        Rang::Answered => {
            show(transferer.chan(), asked.chan()).await;
            question(transferer.chan(), held.chan(), asked.chan()).await
        }
        Rang::Left => true,
        Rang::Refused => false,
    };
    let _ = transferer.chan().with(|c| c.consulted = None);
    if !connects {
        asked.end(Cause::NORMAL_CLEARING);
        return ask_no_more(transferer, held).await;
    }
    held.chan().stop_music();
    shard.core.borrow_mut().notice_logged(CelKind::AttendedTransfer, |core| {
        Some(Notice::AttendedTransfer {
            transferer: core.snapshot(transferer.chan().id()).map(Box::new)?,
            second: None,
            transferee: core.snapshot(held.chan().id()).map(Box::new),
            target: core.snapshot(asked.chan().id()).map(Box::new),
            link: None,
            external: false,
        })
    });
    transferer.go();
    let is_up = matches!(rang, Rang::Answered);
    if is_up {
        asked.chan().stop_music();
        // Who is told by it has not to hear it.
        let _ = asked.chan().play(&settings.done_sound, "").await;
    }
    let no_keys = Keys::default();
    if is_up || matches!(ring(shard, held.chan(), asked.chan(), limit, no_keys).await, Rang::Answered) {
        return talk(held, Party::new(asked, false), "AttendedTransfer").await;
    }
    asked.end(Cause::NORMAL_CLEARING);
    held.go();
}

/// The question is over, and the two talk again.
async fn ask_no_more(transferer: Party, held: Party) {
    let sound = features::of(transferer.chan()).failed_sound.clone();
    let _ = transferer.chan().play(&sound, "").await;
    held.chan().stop_music();
    talk(transferer, held, "AttendedTransfer").await;
}

/// Calls the third party on behalf of the transferer.
fn ask(shard: &Rc<Shard>, transferer: &Chan, resource: String) -> Option<Leg> {
    let formats = transferer.with(|c| c.formats).ok()?;
    let caller = transferer.with(|c| c.caller.clone()).ok();
    let request =
        Request { resource, requestor: Some(transferer.id()), caller, formats, ..Request::default() };
    let leg = Leg::new(shard.clone(), shard.request("Local", &request).ok()?);
    let called = shard.with_tech(leg.chan().id(), |tech, core| tech.call(core, leg.chan().id()));
    matches!(called, Some(Ok(()))).then_some(leg)
}

/// Lets one hear that another rings, until that answers or the one wishes otherwise.
async fn ring(shard: &Rc<Shard>, hears: &Chan, asked: &Chan, limit: Duration, keys: Keys) -> Rang {
    hears.start_tone("ring");
    let deadline = hears.now() + limit;
    let mut pressing = Pressing::default();
    let rang = loop {
        match Chan::any(shard, &[hears.id(), asked.id()], Some(deadline)).await {
            Some((id, Ok(ChanEvent::Answered))) if id == asked.id() => break Rang::Answered,
            Some((id, Ok(ChanEvent::Digit { digit, duration_ms, relayed }))) if id == hears.id() => {
                let stroke = Stroke { digit, duration_ms, relayed };
                let Pressed::Key(key) = pressing.stroke(&keys, stroke, hears.now()) else { continue };
                match keys.keys.get(key).and_then(|key| WISHES.get(key.meaning)) {
                    Some(Wish::Abort) => break Rang::Refused,
                    Some(Wish::Complete) => break Rang::Left,
                    Some(Wish::Swap) | None => {}
                }
            }
            Some((_, Ok(_))) => {}
            Some((id, Err(_))) if id == asked.id() => break Rang::Refused,
            Some((_, Err(Stop::Hangup | Stop::Goto | Stop::AbsoluteTimeout))) => break Rang::Left,
            None => break Rang::Refused,
        }
    };
    hears.stop_sound();
    rang
}
