//! Calls that are offered to several programs, of which the first that claims one has it (`StasisBroadcast`).

use std::rc::Rc;

use base::ChannelId;

use super::{StasisError, StasisNotice};
use crate::{ChanEvent, Core};

/// Longest time that programs have for their claim, milliseconds.
pub const BROADCAST_MS_MAX: u64 = 60_000;

impl Core {
    /// Offers a channel to the programs that are there and fit; those.
    pub fn stasis_offer(&mut self, id: ChannelId, fits: impl Fn(&str) -> bool) -> Vec<Rc<str>> {
        let there = self.stasis.apps.iter().filter(|(name, app)| app.is_active && fits(name));
        let mut apps: Vec<Rc<str>> = there.map(|(name, _)| name.clone()).collect();
        // Nobody is to be the first each time.
        for at in (1..apps.len()).rev() {
            let other = usize::try_from(self.random() % (at as u64 + 1)).unwrap_or(at);
            apps.swap(at, other);
        }
        self.stasis.offers.insert(id, None);
        let told = apps.clone();
        self.stasis_tell(|core| Some(StasisNotice::Offered { apps: told, channel: core.snapshot(id)? }));
        apps
    }
    /// The program that has claimed a channel.
    pub fn stasis_winner(&self, id: ChannelId) -> Option<Rc<str>> {
        self.stasis.offers.get(&id)?.clone()
    }
    /// A program claims a channel.
    ///
    /// Errors: it is not offered (`NotFound`), or was claimed (`Conflict`).
    pub fn stasis_claim(&mut self, id: ChannelId, app: &str) -> Result<(), StasisError> {
        let winner = self.stasis.offers.get_mut(&id).ok_or_else(StasisError::no_channel)?;
        if winner.is_some() {
            return Err(StasisError::Conflict("Channel has already been claimed".into()));
        }
        *winner = Some(app.into());
        self.push_event(id, ChanEvent::Stasis);
        Ok(())
    }
    /// The programs that a channel was offered to hear which of them has it.
    pub fn stasis_tell_claimed(&mut self, id: ChannelId, apps: &[Rc<str>], winner: &Rc<str>) {
        let (apps, winner) = (apps.to_vec(), winner.clone());
        self.stasis_tell(|core| Some(StasisNotice::Claimed { apps, channel: core.snapshot(id)?, winner }));
    }
    /// A channel is offered no more, and nobody has it who claimed it.
    pub fn stasis_offered(&mut self, id: ChannelId) {
        self.stasis.offers.remove(&id);
    }
}
