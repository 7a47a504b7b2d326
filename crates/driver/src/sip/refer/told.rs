//! Transfers that programs carry out (`PJSIP_TRANSFER_HANDLING()=ari-only`): what a REFER asks for is told to them, and what
//! they say of it to the phone.

use ::sip::header::Replaces;
use ::sip::stack::{Answer, DialogId, ServerId};
use ::sip::subscription::{Input, Reason};
use ::sip::{HeaderName, Message, NameAddr, OwnedMessage};
use base::ChannelId;
use call::Core;
use call::stasis::{StasisNotice, Transfer};

use super::{SipDriver, identity, peer_of, refer_to};

/// What a REFER has asked for, to be told again with each step.
#[derive(Clone)]
pub(super) struct Asked {
    source: ChannelId,
    destination: String,
    replaces: Option<Named>,
    /// Our channel that it names.
    second: Option<ChannelId>,
}

/// The dialog that `Replaces` names.
#[derive(Clone)]
struct Named {
    call_id: String,
    from_tag: String,
    to_tag: String,
}

impl SipDriver {
    /// `PJSIP_TRANSFER_HANDLING()=core|ari-only`.
    pub(crate) fn set_transfer_handling(&mut self, core: &mut Core, channel: ChannelId, value: &str) -> bool {
        let by_programs = match value.trim().to_ascii_lowercase().as_str() {
            "ari-only" => true,
            "core" => false,
            _ => return false,
        };
        let Some(leg) = self.leg_of(channel, core) else { return false };
        leg.transfers_told = by_programs;
        true
    }
    /// A REFER on a call whose transfers programs carry out: it is accepted, and nothing happens but that they are told.
    pub(super) fn referred_to_programs(
        &mut self,
        core: &mut Core,
        (dialog, channel): (DialogId, ChannelId),
        request: ServerId,
        message: &OwnedMessage,
    ) {
        let view = message.view();
        let is_open = self.referrals.all.contains_key(&dialog);
        let asked = if is_open { Err(491) } else { self.asked(channel, &view) };
        let asked = match asked {
            Ok(asked) => asked,
            Err(status) => {
                let refusal = Answer::new(status);
                self.with_stack(core, |stack, now, out| stack.respond(request, &refusal, now, out)).ok();
                return;
            }
        };
        let headers = [("Expires", "600")];
        let accepted = Answer::new(202).headers(&headers);
        self.with_stack(core, |stack, now, out| stack.respond(request, &accepted, now, out)).ok();
        self.referrals.next += 1;
        let token = self.referrals.next;
        self.begin_referral(core, dialog, token, None);
        if let Some(referral) = self.referrals.all.get_mut(&dialog) {
            referral.asked = Some(Box::new(asked.clone()));
        }
        tell(core, &asked, None);
    }
    fn asked(&self, channel: ChannelId, message: &Message<'_>) -> Result<Asked, u16> {
        let target = refer_to(message, self.config.ignore_user_options)?;
        let replaces = match &target.replaces {
            None => None,
            Some(text) => Some(Replaces::parse(text.as_bytes()).ok_or(400_u16)?),
        };
        let second = replaces.as_ref().and_then(|named| {
            let dialog = self.stack.find_dialog(named.call_id, named.to_tag, named.from_tag)?;
            self.legs.get(self.legs.by_dialog(dialog)?).map(|leg| leg.channel)
        });
        let replaces = replaces.map(|named| Named {
            call_id: identity::text(named.call_id),
            from_tag: identity::text(named.from_tag),
            to_tag: identity::text(named.to_tag),
        });
        let of_uri = || {
            let value = message.header(HeaderName::ReferTo).and_then(NameAddr::parse)?;
            Some(identity::text(&value.uri.user_decoded()))
        };
        let destination =
            if target.user.is_empty() { of_uri().unwrap_or_default() } else { target.user.clone() };
        Ok(Asked { source: channel, destination, replaces, second })
    }
    /// What a program says of a transfer that it carries out: `false` when there is none, or for another word.
    pub(crate) fn transfer_progress(&mut self, core: &mut Core, channel: ChannelId, state: &str) -> bool {
        let Some((state, status)) = STATES.iter().copied().find(|(word, _)| *word == state) else {
            return false;
        };
        let dialog = self.leg_of(channel, core).and_then(|leg| leg.dialog);
        let Some(dialog) = dialog else { return false };
        let Some(referral) = self.referrals.all.get_mut(&dialog) else { return false };
        let Some(asked) = referral.asked.clone() else { return false };
        referral.status = status;
        let input = if status < 200 { Input::Changed } else { Input::End(Reason::NoResource) };
        self.turn_referral(core, dialog, input);
        tell(core, &asked, Some(state));
        true
    }
}

/// States that programs report, and the status of the NOTIFY.
const STATES: [(&str, u16); 4] = [
    ("channel_progress", 100),
    ("channel_answered", 200),
    ("channel_unavailable", 503),
    ("channel_declined", 603),
];

fn tell(core: &mut Core, asked: &Asked, state: Option<&'static str>) {
    core.notice(|core| {
        let in_program = |id: ChannelId| match core.stasis_bridge_of(id)?.members.as_slice() {
            [a, b] => Some(if a.channel == id { b.channel } else { a.channel }),
            _ => None,
        };
        let peer =
            |id: ChannelId| peer_of(core, id).or_else(|| in_program(id)).and_then(|peer| core.snapshot(peer));
        let (named, mut params) = (asked.replaces.as_ref(), Vec::new());
        if let Some(named) = named {
            params.push(("from".to_owned(), named.from_tag.clone()));
            params.push(("to".to_owned(), named.to_tag.clone()));
        }
        let transfer = Transfer {
            state,
            destination: asked.destination.clone(),
            protocol_id: named.map(|named| named.call_id.clone()),
            params,
            target: asked.second.and_then(|id| core.snapshot(id)),
            target_peer: asked.second.and_then(peer),
            target_bridge: asked.second.and_then(|id| core.bridge_around(id)),
            source: core.snapshot(asked.source)?,
            source_peer: peer(asked.source),
            source_bridge: core.bridge_around(asked.source),
        };
        Some(call::Notice::Stasis(Box::new(StasisNotice::Transfer(Box::new(transfer)))))
    });
}
