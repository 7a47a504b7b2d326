//! Who talks to whom, told to those who are to see it: connected line and redirecting, with the dialplan's say.

use std::future::Future;
use std::pin::Pin;

use crate::{Chan, Indication, Notice, PartyId, Redirecting};

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
        self.core(|core| core.notice_of(self.id(), Notice::NewConnectedLine));
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
    async fn intercept(&self, told: Told) {
        let routine = (self.shard().interception.get())(self, told);
        if let Some(routine) = routine {
            routine.await;
        }
    }
}
