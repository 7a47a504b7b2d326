//! A program listens to a channel, and speaks to it, by a channel of its own: `Snoop/…`, which hears nothing but that.

use std::rc::Rc;

use base::ChannelId;
use call::spy::{SpyWish, Voice};
use call::stasis::StasisError;
use call::{ChanEvent, Leg, Shard};

use super::channels::Direction;
use super::origin::{check_app, check_id, follow};
use crate::{Call, pbx};

/// How a channel is listened to.
#[derive(Debug, Clone, Default)]
pub struct Snoop {
    /// What of it is heard; `None`: nothing.
    pub spy: Option<Direction>,
    /// Who hears the program: the channel (`Out`), the others in its bridge (`In`), or all of them (`Both`); `None`:
    /// nobody.
    pub whisper: Option<Direction>,
    /// The program that has the new channel.
    pub app: String,
    /// What it is told beside.
    pub args: Vec<String>,
    /// UNIQUEID of the new channel; `None` makes one.
    pub id: Option<String>,
}

impl Snoop {
    fn wish(&self) -> Result<SpyWish, StasisError> {
        let voice = match self.whisper {
            None => Voice::Silent,
            Some(Direction::Out) => Voice::Whisper,
            Some(Direction::Both) => Voice::Barge,
            Some(Direction::In) => Voice::Aside,
        };
        let (hears, overhears) = match self.spy {
            None => (false, false),
            Some(Direction::In) => (true, false),
            Some(Direction::Out) => (false, true),
            Some(Direction::Both) => (true, true),
        };
        if self.spy.is_none() && self.whisper.is_none() {
            return Err(StasisError::BadRequest("Direction specified for spy and whisper is none".into()));
        }
        Ok(SpyWish { hears, overhears, voice, ..SpyWish::default() })
    }
}

/// Makes a channel in a program's hands by which it listens to another, whoever has that; the new channel. It ends with the
/// other one. What it is played or bridged to is what is whispered.
///
/// Errors: no such channel, or no such program is there (`NotFound`), nothing is to be done, or an id that cannot be
/// (`BadRequest`), an id that is taken (`Conflict`), the channel has no media or cannot be whispered to so
/// (`Unprocessable`), too much is going on (`Internal`).
pub fn snoop(shard: &Rc<Shard>, channel: &str, wanted: Snoop) -> Result<ChannelId, StasisError> {
    let wish = wanted.wish()?;
    let Snoop { app, args, id, .. } = wanted;
    check_app(&app, &args)?;
    let on = {
        let core = shard.core.borrow();
        if let Some(id) = &id {
            check_id(&core, id)?;
        }
        if !core.stasis.app(&app).is_some_and(|app| app.is_active) {
            return Err(StasisError::NotFound("Application not found".into()));
        }
        core.stasis_channel(channel)?
    };
    let tech = shard.tech_named("Local").ok_or_else(StasisError::full)?;
    let halves = tech.borrow_mut().ear(&mut shard.core.borrow_mut(), on, id).ok_or_else(StasisError::full)?;
    let [own, ear] = halves.map(|id| Leg::new(shard.clone(), id));
    let made = own.chan().id();
    let began = shard.core.borrow_mut().spy_begin(ear.chan().id(), on, wish);
    began.map_err(|why| StasisError::Unprocessable(why.into()))?;
    follow(shard, made, Some(&app));
    let listening = async move {
        loop {
            match ear.chan().event(None).await {
                Ok(Some(ChanEvent::Spied)) => {
                    if !ear.chan().core(|core| core.spy_follow(ear.chan().id())) {
                        return;
                    }
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    };
    let talking = async move {
        let call = Call::new(own.chan().clone());
        // Where it goes on says where the program has sent it.
        let _ = super::visit(&call, &app, args).await;
        pbx::let_go(own, None);
    };
    // Without room for a story its channel is ended where it is dropped, and the other with it.
    let listens = shard.spawn(Some(halves[1]), listening);
    if listens && shard.spawn(Some(made), talking) { Ok(made) } else { Err(StasisError::full()) }
}
