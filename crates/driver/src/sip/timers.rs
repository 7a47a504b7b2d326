//! Session timers of calls (RFC 4028): refreshes that leave, and sessions that nobody refreshed.

use core::time::Duration;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ::sip::session::Due;
use ::sip::stack::{Body, ClientId, DialogId, Failure, Refused};
use ::sip::{HeaderName, Message, Method, OwnedMessage};
use base::{Cause, Instant};
use call::Core;

use super::SipDriver;
use super::leg::Stage;

/// Pause before a refresh that met another request in the same call.
const BUSY_PAUSE: Duration = Duration::from_secs(2);

/// When which leg's session has something due. An entry that is too early finds nothing to do.
#[derive(Default)]
pub(crate) struct Sessions(BinaryHeap<Reverse<(Instant, u64)>>);

impl Sessions {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }
    fn pop_due(&mut self, now: Instant) -> Option<u64> {
        let due = self.0.peek().is_some_and(|Reverse((at, _))| *at <= now);
        due.then(|| self.0.pop())?.map(|Reverse((_, handle))| handle)
    }
}

impl SipDriver {
    /// Sees to a leg's timer after it has changed.
    pub(crate) fn watch_session(&mut self, handle: u64) {
        if let Some(at) = self.legs.get(handle).and_then(|leg| leg.timer.deadline()) {
            self.sessions.0.push(Reverse((at, handle)));
        }
    }
    /// Looks at a leg's media again then.
    pub(crate) fn look_again(&mut self, handle: u64, at: Instant) {
        self.sessions.0.push(Reverse((at, handle)));
    }
    /// Refreshes what is to be refreshed and ends what nobody refreshed.
    pub(crate) fn sessions_due(&mut self, core: &mut Core) {
        while let Some(handle) = self.sessions.pop_due(core.now) {
            let Some(leg) = self.legs.get_mut(handle).filter(|leg| leg.stage == Stage::Up) else { continue };
            self.unsettled.push(handle);
            let due = leg.timer.due(core.now);
            match due {
                Some(Due::Refresh) => self.refresh_session(core, handle),
                Some(Due::Lapsed) => self.lapsed(core, handle),
                None => {}
            }
            self.watch_session(handle);
        }
    }
    fn lapsed(&mut self, core: &mut Core, handle: u64) {
        let Some(leg) = self.legs.get(handle) else { return };
        let (channel, dialog) = (leg.channel, leg.dialog);
        let cause = Cause::RECOVERY_ON_TIMER_EXPIRE;
        let name = core.get(channel).map(|c| c.name.clone()).unwrap_or_default();
        let line = format!("{name}: nobody refreshed the session in time (RFC 4028), the call is ended");
        core.log(call::Level::Notice, "res_pjsip_session", &line);
        let Some(dialog) = dialog else { return };
        self.legs.unbind(dialog);
        core.remote_hangup(channel, cause, "SIP session timer");
        let reason = format!("Q.850;cause={};text=\"Session timer expired\"", cause.0);
        self.with_stack(core, |stack, now, out| stack.bye(dialog, &[("Reason", &reason)], now, out)).ok();
    }
    /// Sends a refresh: an UPDATE without an offer when the peer takes UPDATE, else a re-INVITE with what stands.
    pub(crate) fn refresh_session(&mut self, core: &mut Core, handle: u64) {
        let Some(leg) = self.legs.get(handle) else { return };
        let Some(dialog) = leg.dialog else { return };
        let timer = leg.timer.ask();
        let sent = match leg.peer_updates {
            true => self.send_update(core, dialog, &timer),
            false => self.send_reinvite(core, handle, &timer),
        };
        if sent == Err(Refused::Pending)
            && let Some(leg) = self.legs.get_mut(handle)
        {
            leg.timer.postpone(core.now + BUSY_PAUSE);
        }
    }
    /// Sends an UPDATE without an offer.
    pub(crate) fn send_update(
        &mut self,
        core: &mut Core,
        dialog: DialogId,
        headers: &[(impl AsRef<str>, String)],
    ) -> Result<(), Refused> {
        self.send_update_with(core, dialog, headers, None)
    }
    /// Sends an UPDATE.
    pub(crate) fn send_update_with(
        &mut self,
        core: &mut Core,
        dialog: DialogId,
        headers: &[(impl AsRef<str>, String)],
        body: Option<Body<'_>>,
    ) -> Result<(), Refused> {
        let supported = self.supported_in(dialog);
        let party = self.legs.by_dialog(dialog).map(|handle| self.standing_party(core, handle));
        let party = party.unwrap_or_default();
        let all = with_party(&supported, headers, &party);
        let sent = self.with_stack(core, |stack, now, out| {
            stack.request_inside(dialog, (Method::Update, &all, body), now, out)
        });
        sent.map(|request| {
            self.updates.insert(request, dialog);
        })
    }
    /// Sends a re-INVITE that offers what stands: audio, or fax.
    pub(crate) fn send_reinvite(
        &mut self,
        core: &mut Core,
        handle: u64,
        headers: &[(impl AsRef<str>, String)],
    ) -> Result<(), Refused> {
        let dialog = self.legs.get(handle).and_then(|leg| leg.dialog).ok_or(Refused::Gone)?;
        // What is out already is answered by what it says, not by another offer of ours.
        self.stack.may_offer(dialog)?;
        let sdp = self.standing_offer(handle);
        self.send_offer(core, handle, &sdp, headers)
    }
    /// Sends a re-INVITE with this offer.
    pub(crate) fn send_offer(
        &mut self,
        core: &mut Core,
        handle: u64,
        sdp: &[u8],
        headers: &[(impl AsRef<str>, String)],
    ) -> Result<(), Refused> {
        let dialog = self.legs.get(handle).and_then(|leg| leg.dialog).ok_or(Refused::Gone)?;
        let leg = self.legs.get(handle).ok_or(Refused::Gone)?;
        let supported = leg.endpoint.supported_with_history();
        let party = self.standing_party(core, handle);
        let all = with_party(&supported, headers, &party);
        self.with_stack(core, |stack, now, out| stack.reinvite(dialog, &all, Some(Body::sdp(sdp)), now, out))
    }
    /// Who is at our end of a call that is up: every request and response that may change the session says it, where the
    /// endpoint is told of changes.
    pub(crate) fn standing_party(&self, core: &Core, handle: u64) -> Vec<(String, String)> {
        let Some(leg) = self.legs.get(handle).filter(|leg| leg.endpoint.send_connected_line) else {
            return Vec::new();
        };
        let Some(party) = core.get(leg.channel).map(|channel| &channel.connected) else { return Vec::new() };
        let role = if leg.target.is_empty() { "called" } else { "calling" };
        super::identity::assertions(&leg.endpoint, party, &self.own_host(leg.flow), role)
    }
    fn supported_in(&self, dialog: DialogId) -> String {
        let leg = self.legs.by_dialog(dialog).and_then(|handle| self.legs.get(handle));
        leg.map(|leg| leg.endpoint.supported()).unwrap_or_default()
    }

    /// A final response to an UPDATE of ours, or none.
    pub(crate) fn updated(
        &mut self,
        core: &mut Core,
        request: ClientId,
        answer: Result<(u16, &OwnedMessage), &Failure>,
    ) {
        let Some(dialog) = self.updates.remove(&request) else { return };
        let Some(handle) = self.legs.by_dialog(dialog) else { return };
        let Some(leg) = self.legs.get_mut(handle) else { return };
        match answer {
            Ok((200..300, message)) => {
                leg.timer.accepted(&message.view(), core.now);
                self.watch_session(handle);
                if message.view().sdp().is_some() {
                    self.take_description(core, handle, message);
                }
                self.direct_agreed(handle);
                self.tell_owed(core, handle);
            }
            Ok((422, message)) => {
                if let Some(again) = leg.timer.too_small(&message.view()) {
                    self.send_update(core, dialog, &again).ok();
                }
            }
            // They said that they take UPDATE and do not: the other way is left.
            Ok((405 | 501, _)) => {
                (leg.peer_updates, leg.told) = (false, None);
                self.direct_crossed(core, handle);
                self.refresh_session(core, handle);
            }
            Ok((491, _)) => {
                leg.timer.postpone(core.now + BUSY_PAUSE);
                self.watch_session(handle);
                self.direct_crossed(core, handle);
            }
            // RFC 4028 §10: nobody is there.
            Err(Failure::Timeout) | Ok((408, _)) => self.lapsed(core, handle),
            // The session stands until it lapses.
            Ok(_) | Err(_) => self.direct_refused(core, handle),
        }
    }
    /// A 422 to an INVITE of ours: it is sent again with the interval that the peer wants. `false` when that has no hope.
    pub(crate) fn ask_longer(&mut self, core: &mut Core, dialog: DialogId, message: &OwnedMessage) -> bool {
        let Some(handle) = self.legs.by_dialog(dialog) else { return false };
        let config = self.config.clone();
        let random = core.random();
        let Some(asked) = self.stack.asked_by_invite(dialog) else { return false };
        let Some(leg) = self.legs.get_mut(handle) else { return false };
        let Some(timer) = leg.timer.too_small(&message.view()) else { return false };
        let mut headers: Vec<(String, String)> =
            timer.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        headers.extend(super::outbound::proofs(&config, leg, &asked.uri, random));
        headers.extend(leg.agreement.verification());
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        self.with_stack(core, |stack, now, out| stack.retry_invite(dialog, &headers, now, out)).is_ok()
    }
}

/// Supported, these headers, and of the identity what they do not say already.
fn with_party<'a>(
    supported: &'a str,
    headers: &'a [(impl AsRef<str>, String)],
    party: &'a [(String, String)],
) -> Vec<(&'a str, &'a str)> {
    let mut all = vec![("Supported", supported)];
    all.extend(headers.iter().map(|(name, value)| (name.as_ref(), value.as_str())));
    for (name, value) in party {
        if all.iter().all(|(said, _)| said != name) {
            all.push((name, value));
        }
    }
    all
}

/// Whether a message says that its sender takes UPDATE; `None` when it says nothing.
pub(crate) fn takes_update(message: &Message<'_>) -> Option<bool> {
    message.has(HeaderName::Allow).then(|| message.lists(HeaderName::Allow, b"UPDATE"))
}
