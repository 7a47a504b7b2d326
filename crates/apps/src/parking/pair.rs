//! One of two parks the other: by a key, by a transfer to an extension that parks, or because a manager says so.

use std::rc::Rc;

use base::ChannelId;
use call::parking::dial_string;
use call::{Chan, Leg, Level, Shard};

use super::{Asked, FAILED_SOUND, LET_GO, ParkOptions, Stay, give_space};
use crate::transfer::{self, Party, Refused};
use crate::{Call, pbx, say};

/// What a manager may say of how a channel is parked.
#[derive(Debug, Clone, Default)]
pub struct Manner {
    /// The lot; empty: that of the channel.
    pub lot: String,
    /// Instead of the lot's `parkingtime`; zero: no limit.
    pub time: Option<core::time::Duration>,
    /// The space; empty: a free one.
    pub space: String,
    /// Who is called back, as a dial string; empty: who parks.
    pub parker: String,
}

impl Manner {
    fn asked(&self) -> Asked {
        Asked { lot: self.lot.clone(), options: ParkOptions { time: self.time, ..ParkOptions::default() } }
    }
    fn mark(&self, call: &Call) {
        if !self.space.is_empty() {
            call.set("PARKINGEXTEN", &self.space);
        }
    }
}

/// Parks `parkee`, who talks to `parker`; that one hears the number of the space and is let go of then. When there is no
/// space, they talk on.
pub fn pair(shard: &Rc<Shard>, parker: ChannelId, parkee: ChannelId, arguments: &str) -> Result<(), Refused> {
    let arguments = arguments.to_owned();
    begin(shard, parker, parkee, move |call| {
        let arguments = call.expand(&arguments);
        (Asked::parse(call, &arguments), String::new())
    })
}

/// The same as a manager asks for it.
pub fn pair_as(
    shard: &Rc<Shard>,
    parker: ChannelId,
    parkee: ChannelId,
    manner: Manner,
) -> Result<(), Refused> {
    begin(shard, parker, parkee, move |call| {
        manner.mark(call);
        (manner.asked(), manner.parker)
    })
}

fn begin(
    shard: &Rc<Shard>,
    parker: ChannelId,
    parkee: ChannelId,
    asked: impl FnOnce(&Call) -> (Asked, String) + 'static,
) -> Result<(), Refused> {
    {
        let core = shard.core.borrow();
        transfer::is_free(&core, parker)?;
        transfer::is_free(&core, parkee)?;
    }
    let own = shard.clone();
    let story = async move {
        let Some([parker, parkee]) = transfer::take_two(&own, [parker, parkee], false).await else { return };
        let by = Call::new(parker.chan().clone());
        let (asked, dial) = asked(&by);
        let dial = if dial.is_empty() { dial_string(&by.chan.name()) } else { dial };
        let given = give_space(&by, parkee.chan(), &asked, dial);
        match given {
            Ok((space, stay)) => {
                super::note_space(&by, space);
                wait(&own, parkee, stay);
                // Who hangs up has heard enough.
                let _ = say::play_all(&by, say::digits(&space.to_string()), "").await;
                parker.go();
            }
            Err(why) => {
                by.log(Level::Warning, &why);
                let _ = parker.chan().play(FAILED_SOUND, "").await;
                transfer::talk(parker, parkee).await;
            }
        }
    };
    if !shard.spawn(None, story) {
        return Err(Refused::Full);
    }
    transfer::claim(&mut shard.core.borrow_mut(), [parker, parkee]);
    Ok(())
}

/// Parks a channel out of whatever it does.
pub fn alone(shard: &Rc<Shard>, parkee: ChannelId, manner: Manner) -> Result<(), Refused> {
    transfer::is_free(&shard.core.borrow(), parkee)?;
    let own = shard.clone();
    let story = async move {
        let deadline = own.core.borrow().now + LET_GO;
        let taken = Chan::take_all(&own, &[parkee], deadline).await;
        let Some(leg) = taken.and_then(|mut legs| legs.pop()) else { return };
        let call = Call::new(leg.chan().clone());
        manner.mark(&call);
        let own_dial = || dial_string(&call.chan.name());
        let dial = if manner.parker.is_empty() { own_dial() } else { manner.parker.clone() };
        match give_space(&call, leg.chan(), &manner.asked(), dial) {
            Ok((_, stay)) => wait(&own, Party::new(leg, false), stay),
            Err(why) => {
                call.log(Level::Warning, &why);
                Party::new(leg, true).go();
            }
        }
    };
    if shard.spawn(None, story) { Ok(()) } else { Err(Refused::Full) }
}

/// Lets somebody wait in its space, in a story of its own.
fn wait(shard: &Rc<Shard>, parkee: Party, mut stay: Stay) {
    let leg: Leg = parkee.into_leg();
    let id = leg.chan().id();
    let _ = leg.chan().with(|c| c.app = "Park");
    let story = async move {
        stay.wait().await;
        drop(stay);
        pbx::let_go(leg, None);
    };
    // Without room the leg is ended where it is dropped.
    shard.spawn(Some(id), story);
}

/// Carries out what phones have asked for. The shard's owner calls it each turn.
pub fn carry_out(shard: &Rc<Shard>) {
    let wishes = std::mem::take(&mut shard.core.borrow_mut().parking.wishes);
    for wish in wishes {
        if let Err(why) = pair(shard, wish.parker, wish.parkee, &wish.arguments) {
            let mut core = shard.core.borrow_mut();
            core.log(Level::Warning, "parking", &format!("a call is not parked: {why}"));
            core.request_hangup(wish.parker, base::Cause::NORMAL_CLEARING);
        }
    }
}
