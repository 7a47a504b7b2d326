//! Advice of charge over SIP (3GPP TS 24.647): `application/vnd.etsi.aoc+xml` in a provisional response, INFO or BYE.

use ::sip::Method;
use ::sip::stack::{Answer, Body};
use base::ChannelId;
use call::Core;
use call::charge::{Advice, Billing, Fee, Item, Money, Rate, Scale};

use super::SipDriver;
use super::leg::Stage;
use super::watch::body::escape;

pub(super) const CONTENT_TYPE: &str = "application/vnd.etsi.aoc+xml";
/// Namespace of the document (TS 24.647 Annex D).
const NAMESPACE: &str = "http://uri.etsi.org/ngn/params/xml/simservs/aoc";

impl SipDriver {
    /// Tells the peer of a channel what its call costs, when its endpoint and it itself want to hear of it.
    pub(super) fn advise(
        &mut self,
        core: &mut Core,
        channel: ChannelId,
        advice: &Advice,
    ) -> Result<(), &'static str> {
        let leg = self.leg_of(channel, core).ok_or("the call is over")?;
        if !leg.endpoint.send_aoc {
            return Err("its endpoint has send_aoc=no");
        }
        let reads = leg.invite.as_ref().and_then(|invite| invite.view().accepts(CONTENT_TYPE));
        if reads != Some(true) {
            return Err("its phone does not accept application/vnd.etsi.aoc+xml");
        }
        let (dialog, stage) = (leg.dialog.ok_or("the call is over")?, leg.stage);
        let text = document(advice).ok_or("TS 24.647 has no words for it")?;
        let body = Body { content_type: CONTENT_TYPE, bytes: text.as_bytes() };
        let ringing = if leg.indicated == 180 { 180 } else { 183 };
        let reliable = leg.reliable;
        let sent = match (advice, stage) {
            // The end of the call says it.
            (Advice::End { .. }, _) => {
                self.stack.set_farewell(dialog, CONTENT_TYPE, text.into_bytes()).is_ok()
            }
            (_, Stage::Up) => self
                .with_stack(core, |stack, now, out| {
                    stack.request_inside(dialog, (Method::Info, &[], Some(body)), now, out)
                })
                .is_ok(),
            (Advice::Setup { .. }, Stage::Ringing) => {
                let answer = Answer::new(ringing).body(body);
                self.with_stack(core, |stack, now, out| match reliable {
                    true => stack.answer_reliably(dialog, &answer, now, out),
                    false => stack.answer(dialog, &answer, now, out),
                })
                .is_ok()
            }
            _ => return Err("the call is not answered"),
        };
        if sent { Ok(()) } else { Err("the dialog takes no request at this moment") }
    }
}

/// The document; `None` when the schema has no element for the advice.
pub(super) fn document(advice: &Advice) -> Option<String> {
    let (name, inner) = match advice {
        Advice::Setup { item, rate } => ("aoc-s", setup(*item, rate)?),
        Advice::During { fee, is_total, billing } => {
            let kind = if *is_total { "total" } else { "subtotal" };
            ("aoc-d", element("charging-info", kind) + &charges(fee) + &billing_id(*billing))
        }
        Advice::End { fee, billing, .. } => ("aoc-e", charges(fee) + &billing_id(*billing)),
    };
    let inner = element(name, &inner);
    Some(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<aoc xmlns=\"{NAMESPACE}\">{inner}</aoc>\n"))
}

fn element(name: &str, inner: &str) -> String {
    format!("<{name}>{inner}</{name}>")
}

fn money(money: &Money) -> String {
    element("currency-id", &escape(&money.name)) + &element("currency-amount", &money.decimal())
}

fn charges(fee: &Fee) -> String {
    let inner = match fee {
        Fee::NotAvailable => "<not-available/>".to_owned(),
        Fee::Free => "<free-charge/>".to_owned(),
        Fee::Currency(of) => element("recorded-currency-units", &money(of)),
        Fee::Units(entries) => entries
            .iter()
            .map(|(amount, kind)| {
                let amount = amount.map_or_else(
                    || "<not-available/>".to_owned(),
                    |amount| element("recorded-number-of-units", &amount.to_string()),
                );
                let kind = kind.map(|kind| element("recorded-type-of-unit", &kind.to_string()));
                element("recorded-charging-units", &(amount + &kind.unwrap_or_default()))
            })
            .collect(),
    };
    element("recorded-charges", &inner)
}

fn billing_id(billing: Option<Billing>) -> String {
    billing.map_or_else(String::new, |billing| element("billing-id", billing_word(billing)))
}

/// Who is billed, in the words of the document.
pub(super) const fn billing_word(billing: Billing) -> &'static str {
    match billing {
        Billing::Normal => "normal-charging",
        Billing::Reverse => "reverse-charging",
        Billing::CreditCard => "credit-card-charging",
        Billing::ForwardingUnconditional => "call-forwarding-unconditional",
        Billing::ForwardingBusy => "call-forwarding-busy",
        Billing::ForwardingNoReply => "call-forwarding-no-reply",
        Billing::Deflection => "call-deflection",
        Billing::Transfer => "call-transfer",
    }
}

fn setup(item: Item, rate: &Rate) -> Option<String> {
    let name = match item {
        Item::SpecialArrangement(code) => return Some(element("special-arrangement", &code.to_string())),
        Item::BasicCommunication => "basic",
        Item::CallAttempt => "communication-attempt",
        Item::CallSetup => "communication-setup",
        Item::SupplementaryService => "services",
        Item::NotAvailable | Item::UserUserInfo => return None,
    };
    let inner = match rate {
        Rate::NotAvailable => "<not-available/>".to_owned(),
        Rate::Free | Rate::FreeFromBeginning => "<free-charge/>".to_owned(),
        Rate::Flat(price) => element("flat-rate", &money(price)),
        Rate::SpecialCode(code) => element("special-code", &code.to_string()),
        Rate::Duration { price, length, granularity, by_steps } => {
            let kind = if *by_steps { "step-function" } else { "continuous" };
            let mut inner = money(price);
            inner += &element("length-time-unit", &time(*length));
            inner += &element("charging-type", kind);
            if let Some(granularity) = granularity {
                inner += &element("granularity", &time(*granularity));
            }
            element("price-time", &inner)
        }
        Rate::Volume(..) => return None,
    };
    Some(element("charged-items", &element(name, &inner)))
}

fn time((units, scale): (u32, Scale)) -> String {
    element("time-unit", &units.to_string()) + &element("scale", scale_word(scale))
}

/// A unit of time, in the words of the document.
pub(super) const fn scale_word(scale: Scale) -> &'static str {
    match scale {
        Scale::OneHundredthSecond => "one-hundredth-second",
        Scale::OneTenthSecond => "one-tenth-second",
        Scale::Second => "one-second",
        Scale::TenSeconds => "ten-seconds",
        Scale::Minute => "one-minute",
        Scale::Hour => "one-hour",
        Scale::Day => "twenty-four-hours",
    }
}
