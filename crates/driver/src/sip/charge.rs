//! Advice of charge over SIP (3GPP TS 24.647): `application/vnd.etsi.aoc+xml` in a provisional response, INFO or BYE.

use ::sip::Method;
use ::sip::stack::Body;
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
    /// Tells the peer of a channel what its call costs, when its endpoint says `send_aoc=yes`: rates and what it has cost so
    /// far at once, what it has cost in the end with its last message. While an INVITE of the peer is not answered, its
    /// responses tell the rates.
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
        let dialog = leg.dialog.ok_or("the call is over")?;
        let text = document(advice).ok_or("TS 24.647 has no words for it")?;
        let is_asked = leg.stage == Stage::Ringing && leg.target.is_empty();
        match advice {
            Advice::Setup { .. } | Advice::Rates(_) if is_asked => {
                leg.rates = Some(text);
                return Ok(());
            }
            Advice::Setup { .. } | Advice::Rates(_) => {}
            // The end of the call says it.
            Advice::End { .. } => {
                leg.knows_fee = true;
                return self.keep_fee(dialog, text);
            }
            Advice::During { fee, billing, .. } => {
                let kept = !leg.knows_fee;
                let total = Advice::During { fee: fee.clone(), is_total: true, billing: *billing };
                if let Some(total) = document(&total).filter(|_| kept) {
                    self.keep_fee(dialog, total)?;
                }
            }
        }
        let body = Body { content_type: CONTENT_TYPE, bytes: text.as_bytes() };
        let sent = self.with_stack(core, |stack, now, out| {
            stack.request_inside(dialog, (Method::Info, &[], Some(body)), now, out)
        });
        sent.map(|_| ()).map_err(|_| "the dialog takes no request at this moment")
    }
    fn keep_fee(&mut self, dialog: ::sip::stack::DialogId, text: String) -> Result<(), &'static str> {
        let kept = self.stack.set_farewell(dialog, CONTENT_TYPE, text.into_bytes());
        kept.map_err(|_| "the call is over")
    }
    /// The body of a response to an INVITE, and what it is: its description, and the rates beside it when there are any
    /// (RFC 2046 §5.1.3).
    pub(super) fn with_rates(&mut self, core: &mut Core, handle: u64, sdp: Vec<u8>) -> (String, Vec<u8>) {
        let Some(rates) = self.legs.get(handle).and_then(|leg| leg.rates.clone()) else {
            return ("application/sdp".to_owned(), sdp);
        };
        let boundary = format!("{:016x}", core.random());
        let mut body = Vec::new();
        let parts = [("application/sdp", &*sdp), (CONTENT_TYPE, rates.as_bytes())];
        for (kind, bytes) in parts.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            body.extend_from_slice(format!("--{boundary}\r\nContent-Type: {kind}\r\n\r\n").as_bytes());
            body.extend_from_slice(bytes);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        (format!("multipart/mixed;boundary=\"{boundary}\""), body)
    }
}

/// The document; `None` when it has no element for the advice.
pub(super) fn document(advice: &Advice) -> Option<String> {
    let (name, inner) = match advice {
        Advice::Setup { item, rate } => ("aoc-s", rates(&[(*item, rate.clone())])?),
        Advice::Rates(all) => ("aoc-s", rates(all)?),
        Advice::During { fee, is_total, .. } => {
            let kind = if *is_total { "total" } else { "subtotal" };
            ("aoc-d", vec![leaf("charging-info", kind), charges(fee)])
        }
        Advice::End { fee, .. } => ("aoc-e", vec![charges(fee)]),
    };
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    text.push_str(&format!("<aoc xmlns=\"{NAMESPACE}\">\n"));
    node(name, inner).write(1, &mut text);
    text.push_str("</aoc>\n");
    Some(text)
}

/// An element: one a line, each level a blank further in.
enum Element {
    Node(&'static str, Vec<Element>),
    Leaf(&'static str, String),
}

impl Element {
    fn write(&self, depth: usize, out: &mut String) {
        let indent = " ".repeat(depth);
        match self {
            Self::Node(name, inner) if inner.is_empty() => out.push_str(&format!("{indent}<{name} />\n")),
            Self::Node(name, inner) => {
                out.push_str(&format!("{indent}<{name}>\n"));
                inner.iter().for_each(|element| element.write(depth + 1, out));
                out.push_str(&format!("{indent}</{name}>\n"));
            }
            Self::Leaf(name, text) => out.push_str(&format!("{indent}<{name}>{text}</{name}>\n")),
        }
    }
}

fn node(name: &'static str, inner: Vec<Element>) -> Element {
    Element::Node(name, inner)
}

fn leaf(name: &'static str, text: &str) -> Element {
    Element::Leaf(name, escape(text))
}

fn money(money: &Money) -> Vec<Element> {
    let name = (!money.name.is_empty()).then(|| leaf("currency-id", &money.name));
    name.into_iter().chain([leaf("currency-amount", &money.decimal())]).collect()
}

fn charges(fee: &Fee) -> Element {
    let inner = match fee {
        Fee::NotAvailable => node("not-available", Vec::new()),
        Fee::Free => node("free-charge", Vec::new()),
        Fee::Currency(of) => node("recorded-currency-units", money(of)),
        // Units are told as a currency of that name: the first entry, as the field has it.
        Fee::Units(entries) => {
            let number = entries.first().and_then(|(number, _)| *number).unwrap_or(0);
            let units = vec![leaf("currency-id", "UNIT"), leaf("currency-amount", &number.to_string())];
            node("recorded-currency-units", units)
        }
    };
    node("recorded-charges", vec![inner])
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

/// Rates in their order; what the document has no words for is left out, and `None` when nothing is left.
fn rates(all: &[(Item, Rate)]) -> Option<Vec<Element>> {
    let items: Vec<Element> = all.iter().filter_map(|(item, rate)| setup(*item, rate)).collect();
    (!items.is_empty()).then(|| vec![node("charged-items", items)])
}

fn setup(item: Item, rate: &Rate) -> Option<Element> {
    let name = match item {
        Item::BasicCommunication => "basic",
        Item::CallAttempt => "communication-attempt",
        Item::CallSetup => "communication-setup",
        Item::SpecialArrangement(_)
        | Item::SupplementaryService
        | Item::NotAvailable
        | Item::UserUserInfo => return None,
    };
    let inner = match rate {
        Rate::NotAvailable => node("not-available", Vec::new()),
        Rate::Free | Rate::FreeFromBeginning => node("free-charge", Vec::new()),
        Rate::Flat(price) => node("flat-rate", money(price)),
        Rate::Duration { price, length, by_steps, .. } if item == Item::BasicCommunication => {
            let kind = if *by_steps { "step-function" } else { "continuous" };
            let mut inner = money(price);
            inner.push(node("length-time-unit", time(*length)));
            inner.push(leaf("charging-type", kind));
            node("price-time", inner)
        }
        Rate::Duration { .. } | Rate::Volume(..) | Rate::SpecialCode(_) => return None,
    };
    Some(node(name, vec![inner]))
}

fn time((units, scale): (u32, Scale)) -> Vec<Element> {
    vec![leaf("time-unit", &units.to_string()), leaf("scale", scale_word(scale))]
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
