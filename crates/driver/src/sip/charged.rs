//! Advice of charge that whom we call sends (3GPP TS 24.647): what its documents say, and who hears of it.

use ::sip::Message;
use ::sip::stack::DialogId;
use ::sip::xml::{Element, decoded, read_tree};
use call::charge::{Advice, Billing, Fee, Item, Money, Multiplier, Rate, Scale, UNITS_MAX};
use call::{ChanEvent, Core, Notice, Snapshot};

use super::SipDriver;
use super::charge::{billing_word, scale_word};
use super::leg::{Leg, Stage};

/// Longest document that is read, bytes: four times one with as many charging units as there may be.
const DOCUMENT_BYTES_MAX: usize = 16 * 1024;
/// Most advices of one document: each item that may be charged at the setup with a rate or two, the charge so far and that
/// of the whole call.
const ADVICES_MAX: usize = 10;
/// Longest name of a currency (EN 300 182-1).
const CURRENCY_MAX: usize = 10;

impl Leg {
    /// Whether what its peer says of charges is read: we have called it, and it is not told of any by us.
    fn is_charged(&self) -> bool {
        !self.target.is_empty() && !self.endpoint.send_aoc
    }
}

impl SipDriver {
    /// What the INVITE of a leg says of the bodies that we read, when somebody is there who is told of charges: who it is
    /// made for. A carrier that does not know that they are read may not say them (TS 24.647 §4.5.2).
    pub(super) fn advice_wanted(&mut self, core: &Core, handle: u64) -> Option<(String, String)> {
        let caller = self.legs.get(handle).filter(|leg| !leg.endpoint.send_aoc)?.passes_with?;
        let is_told = self.leg_of(caller, core)?.endpoint.send_aoc;
        is_told.then(|| {
            (
                "Accept".to_owned(),
                format!("application/sdp, multipart/mixed, {}", super::charge::CONTENT_TYPE),
            )
        })
    }
    /// The advice of charge that a message carries, alone or beside other parts (RFC 5621).
    pub(super) fn advice_in<'a>(message: &Message<'a>) -> Option<&'a [u8]> {
        message.part("application", "vnd.etsi.aoc+xml").filter(|document| !document.is_empty())
    }
    /// Takes the advice that a message of a leg's peer may carry: managers and whoever talks to the leg hear of it. `None`
    /// when it is not read, `false` when it cannot be.
    pub(super) fn charged(&mut self, core: &mut Core, handle: u64, message: &Message<'_>) -> Option<bool> {
        let leg = self.legs.get(handle).filter(|leg| leg.is_charged())?;
        let (channel, name) = (leg.channel, leg.endpoint.name.clone());
        let Some(advices) = read(Self::advice_in(message)?) else {
            let line =
                format!("what '{name}' says of charges is no document of 3GPP TS 24.647; it is dropped");
            core.log(call::Level::Notice, "aoc", &line);
            return Some(false);
        };
        for advice in advices {
            core.notice_of(channel, |channel| Notice::Charge { channel, advice: Box::new(advice.clone()) });
            core.push_event(channel, ChanEvent::Charge(Box::new(advice)));
        }
        Some(true)
    }
    /// A call that we end may be told its charge in the answer to our BYE: whose that was, for those who watch.
    pub(super) fn note_charged(&mut self, core: &Core, dialog: DialogId, leg: &Leg) {
        if core.watched && leg.stage == Stage::Up && leg.is_charged() {
            self.charging.extend(core.snapshot(leg.channel).map(|of| (dialog, Box::new(of))));
        }
    }
    /// A dialog is over: what the answer to our BYE says of the charge is told of the channel that was.
    pub(super) fn charged_after(&mut self, core: &mut Core, dialog: DialogId, message: Option<&Message<'_>>) {
        let Some(channel) = self.charging.remove(&dialog) else { return };
        let Some(document) = message.and_then(Self::advice_in) else { return };
        for advice in read(document).unwrap_or_default() {
            let channel: Snapshot = (*channel).clone();
            core.notice(|_| Some(Notice::Charge { channel, advice: Box::new(advice) }));
        }
    }
}

/// What a document says; `None` when it cannot be read. What it says in words that we do not know is passed over.
fn read(bytes: &[u8]) -> Option<Vec<Advice>> {
    if bytes.len() > DOCUMENT_BYTES_MAX {
        return None;
    }
    let text = decoded(bytes);
    let tree = read_tree(&text)?;
    let root = tree.root().filter(|root| root.name() == "aoc")?;
    let mut advices = Vec::new();
    for part in root.children() {
        match part.name() {
            "aoc-s" => advices.extend(setup(&part)?),
            "aoc-d" => advices.push(during(&part)?),
            "aoc-e" => {
                let (fee, billing) = (charges(&part)?, billing_of(&part));
                advices.push(Advice::End { fee, billing, association: None });
            }
            _ => {}
        }
    }
    (advices.len() <= ADVICES_MAX).then_some(advices)
}

fn during(part: &Element<'_, '_>) -> Option<Advice> {
    let is_total = match part.child("charging-info")?.text() {
        "total" => true,
        "subtotal" => false,
        _ => return None,
    };
    // Who pays for a call that was forwarded is known at its end (EN 300 182-1).
    let billing = billing_of(part).filter(|billing| billing.is_of_running_call());
    Some(Advice::During { fee: charges(part)?, is_total, billing })
}

fn charges(part: &Element<'_, '_>) -> Option<Fee> {
    let of = part.child("recorded-charges")?;
    let first = of.children().next()?;
    Some(match first.name() {
        "not-available" => Fee::NotAvailable,
        "free-charge" => Fee::Free,
        "recorded-currency-units" => Fee::Currency(money(&first)?),
        "recorded-charging-units" => {
            let entries: Vec<_> = of
                .children()
                .filter(|entry| entry.name() == first.name())
                .map(|entry| units(&entry))
                .collect();
            Fee::Units(Some(entries).filter(|entries| entries.len() <= UNITS_MAX)?)
        }
        _ => return None,
    })
}

/// How many units, and of which type; what is no number is not known.
fn units(entry: &Element<'_, '_>) -> (Option<u32>, Option<u8>) {
    let count = entry.child("recorded-number-of-units").and_then(|count| count.text().parse().ok());
    let kind = entry.child("recorded-type-of-unit").and_then(|kind| kind.text().parse().ok());
    (count, kind.filter(|kind| (1..=16).contains(kind)))
}

fn money(of: &Element<'_, '_>) -> Option<Money> {
    let (amount, multiplier) = amount(of.child("currency-amount")?.text())?;
    let name = of.child("currency-id").map_or("", |name| name.text());
    let name = name.chars().filter(|c| !c.is_control()).take(CURRENCY_MAX).collect();
    Some(Money { name, amount, multiplier })
}

/// A decimal number (XML Schema) in the largest unit that says it whole; beyond thousandths it is rounded.
fn amount(text: &str) -> Option<(u32, Multiplier)> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + part.len() == 0 || !digits(whole) || !digits(part) {
        return None;
    }
    let part = part.trim_end_matches('0');
    let (kept, rest) = part.split_at_checked(3).unwrap_or((part, ""));
    let number = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() };
    let scale = 10_u64.checked_pow(u32::try_from(kept.len()).ok()?)?;
    let up = u64::from(rest.bytes().next().is_some_and(|digit| digit >= b'5'));
    let all = number(whole)?.checked_mul(scale)?.checked_add(number(kept)?)?.checked_add(up)?;
    let multiplier = match kept.len() {
        0 => Multiplier::One,
        1 => Multiplier::OneTenth,
        2 => Multiplier::OneHundredth,
        _ => Multiplier::OneThousandth,
    };
    Some((u32::try_from(all).ok()?, multiplier))
}

fn billing_of(part: &Element<'_, '_>) -> Option<Billing> {
    let id = part.child("billing-id")?.text();
    Billing::ALL.into_iter().find(|billing| billing_word(*billing) == id)
}

/// One advice for each rate of each item that is charged.
fn setup(part: &Element<'_, '_>) -> Option<Vec<Advice>> {
    let arrangement = |of: &Element<'_, '_>| {
        let code = of.child("special-arrangement")?.text().parse().ok()?;
        Some(Advice::Setup { item: Item::SpecialArrangement(code), rate: Rate::NotAvailable })
    };
    let mut advices: Vec<Advice> = arrangement(part).into_iter().collect();
    let Some(items) = part.child("charged-items") else { return Some(advices) };
    for of in items.children() {
        let item = match of.name() {
            "basic" => Item::BasicCommunication,
            "communication-attempt" => Item::CallAttempt,
            "communication-setup" => Item::CallSetup,
            "services" => Item::SupplementaryService,
            _ => continue,
        };
        for of in of.children() {
            let rate = match of.name() {
                "not-available" => Rate::NotAvailable,
                "free-charge" => Rate::Free,
                "flat-rate" => Rate::Flat(money(&of)?),
                "special-code" => Rate::SpecialCode(of.text().parse().ok()?),
                "price-time" => by_time(&of)?,
                _ => continue,
            };
            advices.push(Advice::Setup { item, rate });
        }
    }
    Some(advices)
}

fn by_time(of: &Element<'_, '_>) -> Option<Rate> {
    Some(Rate::Duration {
        price: money(of)?,
        length: time(&of.child("length-time-unit")?)?,
        granularity: match of.child("granularity") {
            Some(granularity) => Some(time(&granularity)?),
            None => None,
        },
        by_steps: match of.child("charging-type")?.text() {
            "step-function" => true,
            "continuous" => false,
            _ => return None,
        },
    })
}

fn time(of: &Element<'_, '_>) -> Option<(u32, Scale)> {
    let word = of.child("scale")?.text();
    let scale = Scale::ALL.into_iter().find(|scale| scale_word(*scale) == word)?;
    Some((of.child("time-unit")?.text().parse().ok()?, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_write_of_charges_is_what_we_read() {
        let euros =
            || Money { name: "<€&>".to_owned(), amount: 1234, multiplier: Multiplier::OneHundredth };
        let fees = [Fee::NotAvailable, Fee::Free, Fee::Currency(euros())];
        let mut all = Vec::new();
        for fee in &fees {
            all.push(Advice::End { fee: fee.clone(), billing: None, association: None });
            for is_total in [true, false] {
                all.push(Advice::During { fee: fee.clone(), is_total, billing: None });
            }
        }
        let timed = Scale::ALL.map(|scale| Rate::Duration {
            price: euros(),
            length: (3, scale),
            granularity: None,
            by_steps: scale != Scale::Hour,
        });
        for rate in [Rate::NotAvailable, Rate::Free, Rate::Flat(euros())] {
            for item in [Item::BasicCommunication, Item::CallAttempt, Item::CallSetup] {
                all.push(Advice::Setup { item, rate: rate.clone() });
            }
        }
        all.extend(timed.map(|rate| Advice::Setup { item: Item::BasicCommunication, rate }));
        for advice in all {
            let text = super::super::charge::document(&advice).unwrap();
            assert_eq!(read(text.as_bytes()), Some(vec![advice]), "{text}");
        }
    }

    /// Both directions have them from one place, so that place is held against the words themselves.
    #[test]
    fn who_is_billed_and_units_of_time_are_said_in_the_words_of_the_document() {
        assert_eq!(
            Billing::ALL.map(billing_word),
            [
                "normal-charging",
                "reverse-charging",
                "credit-card-charging",
                "call-forwarding-unconditional",
                "call-forwarding-busy",
                "call-forwarding-no-reply",
                "call-deflection",
                "call-transfer",
            ]
        );
        assert_eq!(
            Scale::ALL.map(scale_word),
            [
                "one-hundredth-second",
                "one-tenth-second",
                "one-second",
                "ten-seconds",
                "one-minute",
                "one-hour",
                "twenty-four-hours",
            ]
        );
    }

    #[test]
    fn an_amount_is_a_decimal_number_rounded_to_thousandths() {
        for (text, expected) in [
            ("12.34", Some((1234, Multiplier::OneHundredth))),
            ("12", Some((12, Multiplier::One))),
            ("+1.50", Some((15, Multiplier::OneTenth))),
            (".005", Some((5, Multiplier::OneThousandth))),
            ("7.", Some((7, Multiplier::One))),
            ("0.0149", Some((15, Multiplier::OneThousandth))),
            ("0.0144999", Some((14, Multiplier::OneThousandth))),
            ("0.99999", Some((1000, Multiplier::OneThousandth))),
            ("4294967295", Some((u32::MAX, Multiplier::One))),
            ("4294967296", None),
            ("99999999999999999999", None),
            ("", None),
            (".", None),
            ("-1", None),
            ("++1", None),
            ("++1.5", None),
            ("1,5", None),
            ("1.5.2", None),
            ("1e3", None),
            ("٣", None),
        ] {
            assert_eq!(amount(text), expected, "{text}");
        }
    }

    #[test]
    fn ts24647_annex_d_documents_of_others_are_read_or_dropped_whole() {
        let free = "<aoc-e><recorded-charges><free-charge/></recorded-charges></aoc-e>";
        let end = || Advice::End { fee: Fee::Free, billing: None, association: None };
        let many = |count: usize| {
            let unit = "<recorded-charging-units><recorded-number-of-units>1</recorded-number-of-units></recorded-charging-units>";
            format!("<aoc-e><recorded-charges>{}</recorded-charges></aoc-e>", unit.repeat(count))
        };
        let items = format!(
            "<aoc-s><charged-items>{}</charged-items></aoc-s>",
            "<basic><free-charge/></basic>".repeat(11)
        );
        let setup = |item, rate| Advice::Setup { item, rate };
        for (name, inner, expected) in [
            ("nothing", "", Some(vec![])),
            (
                "what we do not know is passed over",
                "<aoc-x/><aoc-s><charged-items><x/></charged-items></aoc-s>",
                Some(vec![]),
            ),
            ("one", free, Some(vec![end()])),
            (
                "several items with their rates",
                "<aoc-s><charged-items><basic><free-charge/></basic><communication-setup><not-available/><free-charge/>\
                 </communication-setup></charged-items></aoc-s>",
                Some(vec![
                    setup(Item::BasicCommunication, Rate::Free),
                    setup(Item::CallSetup, Rate::NotAvailable),
                    setup(Item::CallSetup, Rate::Free),
                ]),
            ),
            (
                "a currency without a name, one too long, and one of other lines",
                "<aoc-d><charging-info>total</charging-info><recorded-charges><recorded-currency-units><currency-id>EUR&#13;&#10;X: 1234567\
                 </currency-id><currency-amount>1</currency-amount></recorded-currency-units></recorded-charges></aoc-d>",
                Some(vec![Advice::During {
                    fee: Fee::Currency(Money {
                        name: "EURX: 1234".to_owned(),
                        amount: 1,
                        multiplier: Multiplier::One,
                    }),
                    is_total: true,
                    billing: None,
                }]),
            ),
            (
                "a charge without an amount",
                "<aoc-e><recorded-charges><recorded-currency-units/></recorded-charges></aoc-e>",
                None,
            ),
            ("no charge", "<aoc-e/>", None),
            (
                "neither total nor subtotal",
                "<aoc-d><charging-info>all</charging-info><recorded-charges><free-charge/></recorded-charges></aoc-d>",
                None,
            ),
            ("as many units as there may be and one", &many(33), None),
            ("more items than are read", &items, None),
            ("not well formed", "<aoc-e>", None),
        ] {
            let text = format!("<?xml version=\"1.0\"?><a:aoc xmlns:a=\"urn:x\">{inner}</a:aoc>");
            assert_eq!(read(text.as_bytes()), expected, "{name}");
        }
        assert_eq!(read(b"<aocx/>"), None, "another document");
        let long = format!("<aoc>{free}</aoc>{}", " ".repeat(DOCUMENT_BYTES_MAX));
        assert_eq!(read(long.as_bytes()), None, "too long");
    }
}
