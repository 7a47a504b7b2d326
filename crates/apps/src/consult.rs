//! Attended transfers by keys and by managers: one of two holds the other and asks a third, who may be connected, talk with
//! both, or not be there; who transfers and hangs up too early is called back.

use core::cell::Cell;
use core::time::Duration;
use std::rc::Rc;

use base::{Cause, ChannelId};
use call::features::{Features, Rights};
use call::parking::dial_string;
use call::{
    AfterKey, BridgeEnd, BridgeLimits, CelKind, Chan, ChanEvent, Core, Key, Keys, Leg, Level, Location,
    Notice, OnKey, PartyId, Pressed, Pressing, Request, Shard, Stop, Stroke, bridge_pair,
};

use crate::features;
use crate::together;
use crate::transfer::{Party, Refused, claim, is_free, peer, show, take_two, talk};

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
    if !shard.spawn(None, story) {
        return Err(Refused::Full);
    }
    claim(&mut shard.core.borrow_mut(), [transferer, peer]);
    Ok(())
}

/// Ends the question of an attended transfer; the two talk again.
pub fn cancel(core: &mut Core, transferer: ChannelId) -> Result<(), Refused> {
    let asked = core.get(transferer).ok_or(Refused::Gone)?.consulted.ok_or(Refused::NoPeer)?;
    core.request_hangup(asked, Cause::NORMAL_CLEARING);
    Ok(())
}

/// How the third party's ringing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// All three talk.
    Three,
}

const WISHES: [Wish; 4] = [Wish::Abort, Wish::Complete, Wish::Swap, Wish::Three];

/// Keys of the transferer while it asks; each stands for the wish of its place in [`WISHES`].
fn wishes(features: &Features) -> Keys {
    let codes = [&features.abort, &features.complete, &features.swap, &features.three_way];
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
    let end = bridge_pair(transferer, other, limits).await;
    match (wish.get(), end) {
        (Some(wish), BridgeEnd::Disconnected(_)) => Ok(wish),
        (_, BridgeEnd::Stopped(id, _)) if id == transferer.id() => Ok(Wish::Complete),
        (_, end) => Err(end),
    }
}

/// The transferer asks the third party, who has answered; what it wishes at last.
async fn question(transferer: &Chan, held: &Chan, asked: &Chan) -> Wish {
    let (mut with, mut waits) = (asked, held);
    loop {
        match speak(transferer, with).await {
            Ok(Wish::Swap) => {
                std::mem::swap(&mut with, &mut waits);
                with.stop_music();
                let _ = waits.start_music("").await;
            }
            Ok(wish) => return wish,
            Err(_) => return Wish::Abort,
        }
    }
}

async fn consult(shard: &Rc<Shard>, transferer: Party, held: Party, resource: String) {
    let settings = features::of(transferer.chan());
    let Some(question_of) = Question::of(transferer.chan(), resource) else { return transferer.go() };
    let _ = held.chan().start_music("").await;
    let Some(asked) = question_of.ask(shard, transferer.chan().id()) else {
        return ask_no_more(transferer, held).await;
    };
    let _ = transferer.chan().with(|c| c.consulted = Some(asked.chan().id()));
    let limit = settings.no_answer;
    let rang = ring(shard, transferer.chan(), asked.chan(), limit, wishes(&settings)).await;
    let wish = match rang {
        Rang::Answered => {
            show(transferer.chan(), asked.chan()).await;
            question(transferer.chan(), held.chan(), asked.chan()).await
        }
        Rang::Left => Wish::Complete,
        Rang::Refused => Wish::Abort,
    };
    let _ = transferer.chan().with(|c| c.consulted = None);
    match wish {
        Wish::Abort | Wish::Swap => {
            asked.end(Cause::NORMAL_CLEARING);
            return ask_no_more(transferer, held).await;
        }
        Wish::Three => {
            held.chan().stop_music();
            asked.chan().stop_music();
            let room = together::new_room(transferer.chan());
            return together::seat(shard, &room, [transferer, held, Party::new(asked, false)]);
        }
        Wish::Complete => {}
    }
    held.chan().stop_music();
    shard.core.borrow_mut().notice_logged(CelKind::AttendedTransfer, |core| {
        Some(Notice::AttendedTransfer {
            transferer: core.snapshot(transferer.chan().id()).map(Box::new)?,
            second: None,
            transferee: core.snapshot(held.chan().id()).map(Box::new),
            target: core.snapshot(asked.chan().id()).map(Box::new),
            link: None,
            // It has left the one to talk in the other, and that one too.
            bridges: [None, None],
            stays: None,
            external: false,
        })
    });
    transferer.go();
    if rang != Rang::Answered {
        return unanswered(shard, &settings, question_of, held, asked).await;
    }
    asked.chan().stop_music();
    // Who is told by it has not to hear it.
    let _ = asked.chan().play(&settings.done_sound, "").await;
    talk(held, Party::new(asked, false)).await;
}

/// The transferer hung up while the third party rang: that one may still answer, else the transferer is called back, and so
/// on in turn as often as `atxfercallbackretries` says.
async fn unanswered(shard: &Rc<Shard>, settings: &Features, question: Question, held: Party, asked: Leg) {
    let limit = settings.no_answer;
    let retries = if settings.drop_call { 0 } else { settings.callback_retries };
    let mut asked = Some(asked);
    for turn in 0..=retries {
        let again = asked.take().or_else(|| question.ask(shard, held.chan().id()));
        if let Some(answered) = rings(shard, &held, again, limit).await {
            return talk(held, Party::new(answered, false)).await;
        }
        if turn == retries || held.chan().check().is_err() {
            break;
        }
        held.chan().log(Level::Verbose(3), "features", &format!("{} is called back", question.back));
        let back = question.call_back(shard, held.chan().id()).await;
        if let Some(back) = rings(shard, &held, back, limit).await {
            let _ = back.chan().with(|c| c.rights = question.rights);
            return talk(Party::new(back, false), held).await;
        }
        if turn + 1 == retries {
            break;
        }
        let _ = held.chan().start_music("").await;
        let waited = held.chan().wait(settings.loop_delay).await;
        held.chan().stop_music();
        if waited.is_err() {
            break;
        }
    }
    held.go();
}

/// The leg, once it has answered; it is ended when it does not, or when whoever waits is gone.
async fn rings(shard: &Rc<Shard>, waits: &Party, leg: Option<Leg>, limit: Duration) -> Option<Leg> {
    let leg = leg?;
    if ring(shard, waits.chan(), leg.chan(), limit, Keys::default()).await == Rang::Answered {
        return Some(leg);
    }
    leg.end(Cause::NORMAL_CLEARING);
    None
}

/// The question is over, and the two talk again.
async fn ask_no_more(transferer: Party, held: Party) {
    let sound = features::of(transferer.chan()).failed_sound.clone();
    let _ = transferer.chan().play(&sound, "").await;
    held.chan().stop_music();
    talk(transferer, held).await;
}

/// Who asks whom; true of the transferer also when it is gone.
struct Question {
    resource: String,
    formats: base::FormatSet,
    caller: PartyId,
    rights: Rights,
    /// How the transferer is called back.
    back: String,
    /// Its name.
    name: Rc<str>,
    /// Variables that it hands down.
    vars: dialplan::Vars,
}

impl Question {
    fn of(transferer: &Chan, resource: String) -> Option<Self> {
        let of = |c: &mut call::Channel| {
            let (formats, caller, rights) = (c.formats, c.caller.clone(), c.rights);
            let (back, name, vars) = (dial_string(&c.name), c.name.clone(), c.vars.inherited());
            Self { resource, formats, caller, rights, back, name, vars }
        };
        transferer.with(of).ok()
    }
    /// Calls the third party on behalf of a channel, which is the transferer, or whom that one left behind.
    fn ask(&self, shard: &Rc<Shard>, requestor: ChannelId) -> Option<Leg> {
        self.call(shard, requestor, ("Local", &self.resource), self.caller.clone())
    }
    /// Calls the transferer, who sees whom he left behind.
    async fn call_back(&self, shard: &Rc<Shard>, requestor: ChannelId) -> Option<Leg> {
        let (tech, resource) = self.back.split_once('/')?;
        shard.look_up(tech, resource).await;
        let caller = shard.core.borrow().get(requestor)?.caller.clone();
        self.call(shard, requestor, (tech, resource), caller)
    }
    fn call(
        &self,
        shard: &Rc<Shard>,
        requestor: ChannelId,
        (tech, resource): (&str, &str),
        caller: PartyId,
    ) -> Option<Leg> {
        let (requestor, caller, resource) = (Some(requestor), Some(caller), resource.to_owned());
        let request = Request { resource, requestor, caller, formats: self.formats, ..Request::default() };
        let leg = Leg::new(shard.clone(), shard.request(tech, &request).ok()?);
        if tech == "Local" {
            self.tell_whose(&leg);
        }
        let called = shard.with_tech(leg.chan().id(), |tech, core| tech.call(core, leg.chan().id()));
        matches!(called, Some(Ok(()))).then_some(leg)
    }
    /// What is asked for knows who asks, and what that one hands down.
    fn tell_whose(&self, leg: &Leg) {
        let id = leg.chan().id();
        leg.chan().core(|core| {
            for name in ["TRANSFERERNAME", "ATTENDEDTRANSFER"] {
                core.set_variable(id, name, &self.name);
            }
            for (inherit, name, value) in self.vars.iter() {
                core.set_variable(id, &format!("{}{name}", inherit.prefix()), value);
            }
        });
    }
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
                    Some(Wish::Swap | Wish::Three) | None => {}
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
