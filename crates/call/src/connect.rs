//! Who talks to whom, told to those who are to see it: connected line and redirecting, with the dialplan's say.

use std::future::Future;
use std::pin::Pin;

use crate::charge::Advice;
use crate::{Chan, Indication, Level, Notice, PartyId, Redirecting};

/// What the side of a channel is about to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Who the other party is.
    ConnectedLine,
    /// Who sent the call on, and to whom.
    Redirecting,
}

/// Finds the routine of the dialplan that is to run on a channel before its side is told; none when it has none. Set by
/// whoever runs the dialplan ([`Shard::interception`](crate::Shard::interception)).
pub type Interception = fn(&Chan, Told) -> Option<Pin<Box<dyn Future<Output = ()>>>>;

impl Chan {
    /// The other party is `party` from here on: the channel knows it, its routine may change that, and its side is told.
    ///
    /// A side that knows it already is not told once more. Nothing happens on a channel that has ended.
    pub async fn connect_line(&self, party: PartyId) {
        let changed = self.with(|c| {
            let changed = c.connected != party;
            c.connected = party;
            changed
        });
        if changed != Ok(true) {
            return;
        }
        self.intercept(Told::ConnectedLine).await;
        self.core(|core| {
            core.seen_anew(self.id());
            core.notice_of(self.id(), Notice::NewConnectedLine);
        });
        if let Ok(party) = self.with(|c| c.connected.clone()) {
            self.indicate(&Indication::ConnectedLine(party));
        }
    }
    /// The call that this channel makes is sent on: the channel knows it, its routine may change that, and its side is told.
    pub async fn redirect_line(&self, redirecting: Redirecting) {
        if self.with(|c| c.redirecting = redirecting).is_err() {
            return;
        }
        self.intercept(Told::Redirecting).await;
        if let Ok(redirecting) = self.with(|c| c.redirecting.clone()) {
            self.indicate(&Indication::Redirecting(Box::new(redirecting)));
        }
    }
    /// What the call costs, as the other party's side says it, is told to this channel's side; whoever is not to be told, or
    /// cannot be, is not, which only a developer wants to know.
    pub fn advise_charge(&self, advice: &Advice) {
        let told =
            self.shard().with_tech(self.id(), |tech, core| tech.advise_charge(core, self.id(), advice));
        if let Some(Err(why)) = told {
            self.log(
                Level::Debug(1),
                "aoc",
                &format!("{} is not told what its call costs: {why}", self.name()),
            );
        }
    }
    async fn intercept(&self, told: Told) {
        let routine = (self.shard().interception.get())(self, told);
        if let Some(routine) = routine {
            routine.await;
        }
    }
}
