//! Advice of charge as managers read it: the events AOC-S, AOC-D and AOC-E.

use call::charge::{Advice, Association, Billing, Fee, Item, Money, Rate};

use super::packet::Message;

/// Name of the event.
pub(super) const fn event_name(advice: &Advice) -> &'static str {
    match advice {
        Advice::Setup { .. } | Advice::Rates(_) => "AOC-S",
        Advice::During { .. } => "AOC-D",
        Advice::End { .. } => "AOC-E",
    }
}

/// Its fields beside the channel's.
pub(super) fn fields<'a>(m: Message<'a>, advice: &Advice) -> Message<'a> {
    match advice {
        Advice::Setup { item, rate } => setup(m, *item, rate),
        Advice::Rates(all) => all.iter().fold(m, |m, (item, rate)| setup(m, *item, rate)),
        Advice::During { fee: paid, is_total, billing } => {
            fee(m, paid, *billing).field("TotalType", if *is_total { "Total" } else { "SubTotal" })
        }
        Advice::End { fee: paid, billing, association: of } => {
            let m = match of {
                Some(Association::Id(id)) => m.field("ChargingAssociation", "ID").field("ID", id),
                Some(Association::Number(number, plan)) => {
                    m.field("ChargingAssociation", "Number").field("Number", number).field("Plan", plan)
                }
                None => m,
            };
            fee(m, paid, *billing)
        }
    }
}

fn money<'a>(m: Message<'a>, money: &Money) -> Message<'a> {
    m.field("Currency", &money.name)
        .field("Name", &money.name)
        .field("Cost", money.amount)
        .field("Multiplier", money.multiplier.text())
}

fn fee<'a>(m: Message<'a>, fee: &Fee, billing: Option<Billing>) -> Message<'a> {
    let m = m.field("Charge", fee.name()).field("Type", fee.name());
    let m = match fee {
        Fee::Currency(_) | Fee::Units(_) => {
            m.field("BillingID", billing.map_or("NotAvailable", Billing::name))
        }
        Fee::NotAvailable | Fee::Free => m,
    };
    match fee {
        Fee::NotAvailable | Fee::Free => m,
        Fee::Currency(of) => money(m, of),
        Fee::Units(entries) => {
            let total: u64 = entries.iter().filter_map(|(number, _)| number.map(u64::from)).sum();
            m.field("Units", total)
                .field("NumberOf", list(entries.iter().map(|(number, _)| *number)))
                .field("TypeOf", list(entries.iter().map(|(_, kind)| *kind)))
        }
    }
}

/// Values separated by commas, empty where there is none.
fn list<T: ToString>(values: impl Iterator<Item = Option<T>>) -> String {
    values.map(|value| value.map(|value| value.to_string()).unwrap_or_default()).collect::<Vec<_>>().join(",")
}

fn setup<'a>(m: Message<'a>, item: Item, rate: &Rate) -> Message<'a> {
    let m = m.field("Chargeable", item.name());
    if let Item::SpecialArrangement(code) = item {
        return m.field("SpecialCode", code);
    }
    let m = m.field("RateType", rate.name());
    match rate {
        Rate::NotAvailable | Rate::Free | Rate::FreeFromBeginning => m,
        Rate::Duration { price, length: (length, scale), granularity, by_steps } => {
            let m = money(m, price)
                .field("ChargingType", if *by_steps { "StepFunction" } else { "ContinuousCharging" })
                .field("StepFunction", if *by_steps { "Yes" } else { "No" });
            let m = match granularity {
                Some((granularity, scale)) => {
                    m.field("Granularity", granularity).field("GranularityScale", scale.name())
                }
                None => m,
            };
            m.field("Length", length).field("Scale", scale.name())
        }
        Rate::Flat(price) => money(m, price),
        Rate::Volume(price, unit) => money(m, price).field("Unit", unit),
        Rate::SpecialCode(code) => m.field("SpecialCode", code),
    }
}
