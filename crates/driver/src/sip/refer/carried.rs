//! What a REFER has besides its target, for the dialplan that the other party goes on in.

use ::sip::{HeaderName, Message, NameAddr};
use base::ChannelId;
use call::Core;
use dialplan::{Inherit, Var};

use super::super::{SipDriver, identity};

/// Where headers of a REFER are found: `${HASH(TRANSFER_DATA,name)}`.
const DATA: &str = "TRANSFER_DATA";
/// What says which of them are wanted.
const WANTED: &str = "GET_TRANSFERRER_DATA";
/// The key for voicemail of Digium and Sangoma phones: a reason in Diversion, or a header of its own.
const TO_VOICEMAIL: &str = "send_to_vm";
const FEATURE_HEADER: &str = "X-Digium-Call-Feature";
const FEATURE: &str = "feature_send_to_vm";

impl SipDriver {
    /// The party that is sent on carries what its new extension may ask for.
    pub(super) fn pass_on(&mut self, core: &mut Core, transferee: ChannelId, refer: &Message<'_>) {
        if diverts_to_voicemail(refer)
            && let Some(entry) = core.get_mut(transferee)
        {
            TO_VOICEMAIL.clone_into(&mut entry.redirecting.reason);
        }
        if has_feature(refer)
            && let Some(leg) = self.leg_of(transferee, core)
        {
            leg.headers.retain(|(name, _)| !name.eq_ignore_ascii_case(FEATURE_HEADER));
            leg.headers.push((FEATURE_HEADER.to_owned(), FEATURE.to_owned()));
        }
        let Some(entry) = core.get_mut(transferee) else { return };
        let Some(prefix) = entry.vars.get_name(WANTED).filter(|prefix| !prefix.is_empty()) else { return };
        let prefix = prefix.trim_end_matches('*').to_owned();
        for (name, value) in refer.fields() {
            let name = identity::text(name.as_bytes());
            if super::super::ask::begins(&name, &prefix) {
                let key = format!("~HASH~{DATA}~{name}~");
                entry.vars.set(Var::named(&key), &identity::text(value), Inherit::Never);
            }
        }
    }
}

/// Whether the other party is to speak to the voicemail of whoever has been called.
pub(super) fn sends_to_voicemail(refer: &Message<'_>) -> bool {
    diverts_to_voicemail(refer) || has_feature(refer)
}

fn diverts_to_voicemail(refer: &Message<'_>) -> bool {
    let reason = |value: &[u8]| {
        let params = NameAddr::parse(value).map(|address| address.params);
        let reason = params.and_then(|params| params.get(b"reason"));
        reason
            .is_some_and(|reason| identity::text(reason).trim_matches('"').eq_ignore_ascii_case(TO_VOICEMAIL))
    };
    refer.values(HeaderName::Diversion).any(reason)
}

fn has_feature(refer: &Message<'_>) -> bool {
    let is_it = |value: &[u8]| value.trim_ascii().eq_ignore_ascii_case(FEATURE.as_bytes());
    refer.headers(HeaderName::from_bytes(FEATURE_HEADER.as_bytes())).any(is_it)
}
