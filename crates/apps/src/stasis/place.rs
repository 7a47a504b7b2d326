//! A channel that a program has made and calls from its hands.

use base::{Cause, ChannelId, Instant};
use call::stasis::Placing;
use call::{ChanEvent, ChanState, Core, Level, Notice, Snapshot};

use super::stay::Stay;

/// It is being called.
pub(super) struct Placed {
    caller: Option<ChannelId>,
    deadline: Option<Instant>,
}

impl Placed {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

/// Who calls, and who is called.
fn parties(core: &Core, id: ChannelId, caller: Option<ChannelId>) -> Option<(Option<Snapshot>, Snapshot)> {
    Some((caller.and_then(|caller| core.snapshot(caller)), core.snapshot(id)?))
}

impl Stay<'_> {
    /// Calls it.
    pub(super) fn place(&mut self, placing: Placing) {
        let (chan, id) = (self.chan, self.id());
        if self.placed.is_some() || chan.with(|c| !c.outgoing || c.state != ChanState::Down).unwrap_or(true) {
            return;
        }
        let Placing { caller, timeout } = placing;
        chan.core(|core| {
            match caller {
                Some(caller) => core.cdr_dial(caller, id),
                None => core.cdr_placed(id),
            }
            core.notice(|core| {
                let (caller, dest) = parties(core, id, caller)?;
                let dial_string = dest.name.rsplit_once('-').map_or(&*dest.name, |(name, _)| name);
                let dial_string = dial_string.split_once('/').map_or(dial_string, |(_, to)| to).to_owned();
                Some(Notice::DialBegin { caller, dest, dial_string })
            });
        });
        let called = chan.shard().with_tech(id, |tech, core| tech.call(core, id));
        self.placed = Some(Placed { caller, deadline: timeout.map(|timeout| chan.now() + timeout) });
        if let Some(Err(cause)) = called {
            chan.hangup(cause);
        }
    }
    /// Word of the other end.
    pub(super) fn place_heard(&mut self, event: &ChanEvent) {
        let id = self.id();
        let Some(placed) = &self.placed else { return };
        let caller = placed.caller;
        let status = match event {
            ChanEvent::Answered => return self.place_end("ANSWER"),
            ChanEvent::Forwarded(to) => {
                self.chan.log(
                    Level::Notice,
                    "Stasis",
                    &format!("is sent on to '{to}', which a program does"),
                );
                return self.chan.hangup(Cause::INTERWORKING);
            }
            ChanEvent::Ringing => "RINGING",
            ChanEvent::Progress => "PROGRESS",
            _ => "PROCEEDING",
        };
        self.chan.core(|core| {
            core.notice(|core| {
                let (caller, dest) = parties(core, id, caller)?;
                Some(Notice::DialState { caller, dest, status, dial_string: String::new() })
            });
        });
    }
    /// Nobody has answered in time, if so.
    pub(super) fn place_due(&mut self) {
        let now = self.chan.now();
        if self.placed.as_ref().and_then(Placed::deadline).is_some_and(|at| at <= now) {
            self.place_end("NOANSWER");
            self.chan.hangup(Cause::NO_ANSWER);
        }
    }
    /// The call has ended before it was answered.
    pub(super) fn place_cut_short(&mut self) {
        let cause = self.chan.with(|c| c.hangup).ok().flatten();
        self.place_end(cause.map_or("CANCEL", crate::dial::status_of));
    }
    fn place_end(&mut self, status: &'static str) {
        let id = self.id();
        let Some(Placed { caller, .. }) = self.placed.take() else { return };
        self.chan.core(|core| {
            if let Some(caller) = caller {
                core.cdr_dialled(caller, id, crate::dial::disposition_of(status));
            }
            core.notice(|core| {
                let (caller, dest) = parties(core, id, caller)?;
                Some(Notice::DialEnd {
                    caller,
                    dest,
                    status,
                    forward: None,
                    forwarded: None,
                    dial_string: String::new(),
                })
            });
        });
    }
}
