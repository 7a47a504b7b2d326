//! Several who talk together without a conference that anybody named: after a key of an attended transfer, or because a
//! channel joins two others. They sit in a room of their own, which ends when one is left.

use std::rc::Rc;
use std::sync::Arc;

use base::ChannelId;
use call::conference::{BridgeProfile, Seat, TOGETHER, Which};
use call::{Chan, ChanEvent, Core, Level, Shard, Stop};

use crate::transfer::Party;

/// Most who sit in one.
const SEATS_MAX: u32 = 16;

/// The room of whoever sits in one.
pub(crate) fn room_of(core: &Core, id: ChannelId) -> Option<String> {
    core.conferences.of(id).map(|conference| conference.name.clone())
}

/// A name for a new room.
pub(crate) fn new_room(chan: &Chan) -> String {
    format!("{TOGETHER}{}", chan.with(|c| c.uniqueid.to_string()).unwrap_or_default())
}

/// Seats them in a room; each leaves it by itself.
pub(crate) fn seat<const N: usize>(shard: &Rc<Shard>, room: &str, parties: [Party; N]) {
    for party in parties {
        let (id, room) = (party.chan().id(), room.to_owned());
        let story = async move {
            let _ = sit(party.chan(), &room).await;
            party.go();
        };
        // Without room for a story the leg is ended where it is dropped.
        shard.spawn(Some(id), story);
    }
}

/// Sits in a room until the channel ends, is sent elsewhere, or is the last one there (`Ok`).
pub(crate) async fn sit(chan: &Chan, room: &str) -> Result<(), Stop> {
    let profile = Arc::new(BridgeProfile { members_max: SEATS_MAX, ..BridgeProfile::default() });
    let entered = chan.core(|core| core.conference_enter(room, chan.id(), Seat::default().into(), &profile));
    if let Err(why) = entered {
        chan.log(Level::Warning, "bridge", &format!("cannot talk with the others: {why:?}"));
        return Ok(());
    }
    let _seat = Seated(chan);
    loop {
        let event = chan.event(None).await?;
        let is_kicked =
            |core: &mut Core| core.conferences.member(chan.id()).is_none_or(|member| member.leaves.is_some());
        if event == Some(ChanEvent::Conference) && chan.core(is_kicked) {
            return Ok(());
        }
    }
}

/// Gives the seat up however the story ends; the last one has nobody to talk to.
struct Seated<'a>(&'a Chan);

impl Drop for Seated<'_> {
    fn drop(&mut self) {
        self.0.core(|core| {
            let left = core.conference_leave(self.0.id()).filter(|left| left.count == 1);
            if let Some(left) = left.filter(|left| left.conference.starts_with(TOGETHER)) {
                let _ = core.conference_kick(&left.conference, Which::All);
            }
        });
    }
}
