//! Callers whom the dialplan sends elsewhere: 302 before the answer, REFER after it (RFC 3515), and what comes of that.

use ::sip::header::Event as EventHeader;
use ::sip::stack::{Answer, ClientId, DialogId};
use ::sip::{HeaderName, Message, Method, OwnedMessage};
use base::ChannelId;
use call::{ChanEvent, Core};

use super::SipDriver;
use super::leg::Stage;

impl SipDriver {
    /// Sends the peer of a channel to an endpoint or a URI; `None` when there is no such endpoint, or no call.
    pub(crate) fn send_elsewhere(&mut self, core: &mut Core, channel: ChannelId, target: &str) -> Option<()> {
        let target = target.strip_prefix("PJSIP/").or_else(|| target.strip_prefix("SIP/")).unwrap_or(target);
        let uri = self.uri_to_send_to(target.trim())?;
        let leg = self.leg_of(channel, core)?;
        let dialog = leg.dialog?;
        match leg.stage {
            Stage::Up => self.refer_out(core, (dialog, channel), &uri),
            Stage::Ringing => {
                let contact = format!("<{uri}>");
                let mut headers = vec![("Contact", contact.as_str())];
                if !leg.endpoint.suppress_reason {
                    headers.push(("Reason", "Q.850;cause=0"));
                }
                let answer = Answer::new(302).headers(&headers);
                let sent = self.with_stack(core, |stack, now, out| stack.answer(dialog, &answer, now, out));
                self.legs.unbind(dialog);
                sent.ok()
            }
            Stage::Idle | Stage::Calling | Stage::Over => None,
        }
    }
    /// The first contact of an endpoint of that name, or the URI that it is.
    fn uri_to_send_to(&self, target: &str) -> Option<String> {
        if let Some(endpoint) = self.config.endpoints.get(target) {
            return endpoint.aors.iter().find_map(|name| {
                let registered = self.contacts_called(name).into_iter().next();
                registered.or_else(|| self.config.aors.get(name)?.contacts.first().cloned())
            });
        }
        let (scheme, _) = target.split_once(':')?;
        let is_sip = scheme.eq_ignore_ascii_case("sip") || scheme.eq_ignore_ascii_case("sips");
        is_sip.then(|| target.to_owned())
    }
    /// Transfers an answered call with REFER; [`ChanEvent::Transferred`] tells how it came out. Refer-To is without brackets,
    /// as RFC 3515 §2.1 allows and the field writes it.
    fn refer_out(
        &mut self,
        core: &mut Core,
        (dialog, channel): (DialogId, ChannelId),
        uri: &str,
    ) -> Option<()> {
        let told = core.get(channel).and_then(|channel| channel.vars.get_name("SIPREFERREDBYHDR"));
        let own = || self.stack.own_identity(dialog).map(super::identity::text);
        let referred_by =
            told.filter(|by| !by.is_empty()).map(str::to_owned).or_else(own).unwrap_or_default();
        let supported = self.leg_of(channel, core).map(|leg| leg.endpoint.supported()).unwrap_or_default();
        let headers = [
            ("Event", "refer"),
            ("Expires", "600"),
            ("Supported", supported.as_str()),
            ("Accept", "message/sipfrag;version=2.0"),
            ("Allow-Events", super::ALLOW_EVENTS),
            ("Refer-To", uri),
            ("Referred-By", referred_by.as_str()),
        ];
        let sent = self.with_stack(core, |stack, now, out| {
            stack.request_inside(dialog, (Method::Refer, &headers, None), now, out)
        });
        sent.map(|request| self.referrals.ours.insert(request, dialog)).ok().map(drop)
    }
    /// A response to a REFER of ours, or none; `false` when it is about another request.
    pub(super) fn own_refer_answered(
        &mut self,
        core: &mut Core,
        request: ClientId,
        answer: Option<(u16, &OwnedMessage)>,
    ) -> bool {
        let Some(dialog) = self.referrals.ours.remove(&request) else { return false };
        match answer {
            // It only says that the other side tries; NOTIFY tells how it comes out, unless that was declined (RFC 4488 §4).
            Some((200..=299, message)) => {
                let tells_nothing = message
                    .view()
                    .header(HeaderName::ReferSub)
                    .is_some_and(|value| value.trim_ascii().eq_ignore_ascii_case(b"false"));
                if tells_nothing {
                    self.transfer_over(core, dialog, 200);
                }
            }
            answer => self.transfer_over(core, dialog, answer.map_or(408, |(status, _)| status)),
        }
        true
    }
    /// A NOTIFY inside a call: how a transfer of ours goes (RFC 3515 §2.4.5).
    pub(crate) fn told(&mut self, core: &mut Core, dialog: DialogId, message: &Message<'_>) {
        let event = message.header(HeaderName::Event).and_then(EventHeader::parse);
        let about_refer = event.is_some_and(|event| event.package.eq_ignore_ascii_case(b"refer"));
        let fragment = message.part("message", "sipfrag").filter(|_| about_refer);
        let Some(status) = fragment.and_then(sipfrag) else { return };
        if status >= 200 {
            self.transfer_over(core, dialog, status);
        }
    }
    fn transfer_over(&mut self, core: &mut Core, dialog: DialogId, status: u16) {
        if let Some(leg) = self.legs.by_dialog(dialog).and_then(|handle| self.legs.get(handle)) {
            core.push_event(leg.channel, ChanEvent::Transferred(status));
        }
    }
}

/// The status in a fragment of a response (RFC 3420).
fn sipfrag(body: &[u8]) -> Option<u16> {
    let line = core::str::from_utf8(body).ok()?.lines().next()?;
    let status = line.strip_prefix("SIP/2.0 ")?.split(' ').next()?;
    status.parse().ok().filter(|status| (100..700).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3420_2_a_fragment_tells_a_status() {
        for (body, status) in [
            (&b"SIP/2.0 200 OK\r\n"[..], Some(200)),
            (b"SIP/2.0 486 Busy Here", Some(486)),
            (b"SIP/2.0 100", Some(100)),
            (b"SIP/2.0 99 x", None),
            (b"INVITE sip:a@b SIP/2.0", None),
            (b"", None),
            (b"\xff\xfe", None),
        ] {
            assert_eq!(sipfrag(body), status, "{body:?}");
        }
    }
}
