//! Security agreements of calls (RFC 3329); those of registrations are kept with them.

use ::sip::OwnedMessage;
use ::sip::agreement::Agreement;
use ::sip::stack::{DialogId, Flow};
use call::Core;

use super::SipDriver;
use super::config::Endpoint;
use super::outbound::{CHALLENGES_MAX, proofs};

impl SipDriver {
    /// What a call of this endpoint by this way begins with: what the registration there has agreed on, or nothing yet.
    pub(super) fn agreement(&self, endpoint: &Endpoint, flow: Flow) -> Agreement {
        if endpoint.security.is_empty() {
            return Agreement::default();
        }
        let made = self.trunks.agreement(&endpoint.name, flow).cloned();
        made.unwrap_or_else(|| Agreement::new(&endpoint.security))
    }
    /// Requests in the leg's dialog say what was agreed on.
    pub(super) fn keep_agreement(&mut self, handle: u64) {
        let Some(leg) = self.legs.get(handle).filter(|leg| leg.agreement.is_made()) else { return };
        let (headers, Some(dialog)) = (leg.agreement.headers(false), leg.dialog) else { return };
        // A dialog that is gone says nothing more.
        self.stack.set_headers(dialog, headers).ok();
    }
    /// A 494 to an INVITE of ours: it is sent again with what the server says it can do. `false` when that has no hope.
    pub(super) fn agree(&mut self, core: &mut Core, dialog: DialogId, message: &OwnedMessage) -> bool {
        let Some(handle) = self.legs.by_dialog(dialog) else { return false };
        let (config, random) = (self.config.clone(), core.random());
        let Some(asked) = self.stack.asked_by_invite(dialog) else { return false };
        let Some(leg) = self.legs.get_mut(handle) else { return false };
        leg.challenges += 1;
        if !leg.agreement.learn(&message.view()) || leg.challenges > CHALLENGES_MAX {
            return false;
        }
        let mut headers = proofs(&config, leg, &asked.uri, random);
        headers.extend(leg.agreement.verification());
        self.keep_agreement(handle);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        self.with_stack(core, |stack, now, out| stack.retry_invite(dialog, &headers, now, out)).is_ok()
    }
}
