//! The action AOCMessage: a user is told what its call costs.

use base::ChannelId;
use call::charge::{Advice, Association, Billing, Fee, Item, Money, Multiplier, Rate, Scale, UNITS_MAX};
use call::{Level, Notice};

use super::super::packet::Action;
use super::super::table::{ActionRow, Done, Refusal, Turn, may, must};

/// Longest name of a currency, characters (EN 300 182-1).
const CURRENCY_MAX: usize = 10;
/// Most rates of one action: there are not as many kinds of charged items.
const RATES_MAX: usize = 16;

pub(super) const ROWS: &[ActionRow] = &[ActionRow {
    name: "AOCMessage",
    class: &["aoc"],
    synopsis: "Tells the user of a channel what its call costs (advice of charge): endpoints with send_aoc=yes are told: of S by INFO, or in the responses to an INVITE that is not answered; of D by INFO; of E, or of the last D, at the end of the call.",
    fields: &[
        may("Channel", "name or UNIQUEID; needed without ChannelPrefix"),
        may("ChannelPrefix", "beginning of a name; the first channel that has it is told"),
        must("MsgType", "S: what it will cost; D: what it has cost so far; E: what it has cost"),
        may("ChargeType", "with D and E: NA, FREE, Currency or Unit"),
        may("UnitAmount(0)", "number of charging units; up to UnitAmount(31)"),
        may("UnitType(0)", "their type, 1 to 16"),
        may("CurrencyName", "at most 10 characters, the rest is left away"),
        may("CurrencyAmount", "a whole number"),
        may(
            "CurrencyMultiplier",
            "of what: OneThousandth, OneHundredth, OneTenth, One, Ten, Hundred or Thousand",
        ),
        may("TotalType", "with D: Total (what is meant when it is missing) or SubTotal"),
        may(
            "AOCBillingId",
            "Normal, ReverseCharge or CreditCard; with E also CallFwdUnconditional, CallFwdBusy, CallFwdNoReply, CallDeflection or CallTransfer",
        ),
        may("ChargingAssociationId", "with E: identifier of the call that is charged"),
        may("ChargingAssociationNumber", "with E: number of the call that is charged"),
        may("ChargingAssociationPlan", "its numbering plan"),
        may(
            "ChargedItem",
            "with S: NA, SpecialArrangement, BasicCommunication, CallAttempt, CallSetup, UserUserInfo or SupplementaryService",
        ),
        may("RateType", "with S: NA, Free, FreeFromBeginning, Duration, Flat, Volume or SpecialCode"),
        may("Time", "with Duration: for how long the amount is"),
        may("TimeScale", "OneHundredthSecond, OneTenthSecond, Second, TenSeconds, Minute, Hour or Day"),
        may("Granularity", "with Duration: how finely it is counted"),
        may("GranularityTimeScale", "as TimeScale"),
        may("ChargingType", "with Duration: ContinuousCharging or StepFunction"),
        may("VolumeUnit", "with Volume: Octet, Segment or Message"),
        may("Code", "with SpecialArrangement and SpecialCode: 1 to 10"),
    ],
    run: advise,
}];

fn advise(turn: &mut Turn<'_>) -> Done {
    let id = whom(turn)?;
    let advice = match several(turn)? {
        Some(rates) => rates,
        None => advice(turn)?,
    };
    let told = turn.site.shard.with_tech(id, |tech, core| tech.advise_charge(core, id, &advice));
    {
        let mut core = turn.site.shard.core.borrow_mut();
        if let Some(Err(why)) = told {
            let name = core.get(id).map(|channel| channel.name.clone()).unwrap_or_default();
            core.log(Level::Notice, "aoc", &format!("{name} is not told what its call costs: {why}"));
        }
        // Events are of spans of ISDN: what phones are told over SIP raises none.
        let has_events = core
            .get(id)
            .is_some_and(|channel| !["PJSIP/", "Local/"].iter().any(|tech| channel.name.starts_with(tech)));
        if has_events {
            core.notice_of(id, |channel| Notice::Charge { channel, advice: Box::new(advice) });
        }
    }
    turn.success("AOC Message successfully queued on channel")
}

/// The rates of an action that has more than one: each `ChargedItem` begins another, to which what follows belongs.
fn several(turn: &mut Turn<'_>) -> Result<Option<Advice>, Refusal> {
    let begins = |name: &str| name.eq_ignore_ascii_case("ChargedItem");
    let whole = turn.action;
    let is_setup = whole.get("MsgType").is_some_and(|kind| kind.eq_ignore_ascii_case("S"));
    if !is_setup || whole.headers().filter(|(name, _)| begins(name)).count() < 2 {
        return Ok(None);
    }
    let mut groups: Vec<Vec<(String, String)>> = Vec::new();
    for (name, value) in whole.headers() {
        if begins(name) {
            groups.push(Vec::new());
        }
        if let Some(group) = groups.last_mut() {
            group.push((name.to_owned(), value.to_owned()));
        }
    }
    let mut rates = Vec::new();
    for group in groups.into_iter().take(RATES_MAX) {
        let own = Action::of(group);
        let part = Part { action: &own };
        rates.push((item(&part)?, rate(&part)?));
    }
    Ok(Some(Advice::Rates(rates)))
}

/// The headers of one rate.
struct Part<'a> {
    action: &'a Action,
}

/// What a rate is read from.
trait Headers {
    fn value(&self, name: &str) -> Option<&str>;
}

impl Headers for Part<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.action.get(name)
    }
}

impl Headers for Turn<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.get(name)
    }
}

fn whom(turn: &Turn<'_>) -> Result<ChannelId, Refusal> {
    if turn.get("Channel").is_some() {
        return turn.channel("Channel");
    }
    let Some(prefix) = turn.get("ChannelPrefix").filter(|prefix| !prefix.is_empty()) else {
        return Err("Channel and PartialChannel are not specified. Specify at least one of these.".into());
    };
    let core = turn.site.shard.core.borrow();
    let begins =
        |name: &str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let found = core.channels().find(|channel| begins(&channel.name)).map(|channel| channel.id);
    found.ok_or_else(|| "No such channel".into())
}

fn advice(turn: &Turn<'_>) -> Result<Advice, Refusal> {
    match turn.need("MsgType")? {
        "S" | "s" => Ok(Advice::Setup { item: item(turn)?, rate: rate(turn)? }),
        "D" | "d" => {
            let is_total =
                one_of(turn, "TotalType", &[("Total", true), ("SubTotal", false)])?.unwrap_or(true);
            let billing = billing(turn)?;
            if billing.is_some_and(|billing| !billing.is_of_running_call()) {
                return Err("AOCBillingId is for MsgType E only: a call that goes on is billed as Normal, ReverseCharge or CreditCard".into());
            }
            Ok(Advice::During { fee: fee(turn)?, is_total, billing })
        }
        "E" | "e" => {
            Ok(Advice::End { fee: fee(turn)?, billing: billing(turn)?, association: association(turn)? })
        }
        _ => Err("Invalid MsgType".into()),
    }
}

/// The value that a header means, any case; an error that names the words that there are.
fn one_of<T: Clone>(turn: &impl Headers, header: &str, words: &[(&str, T)]) -> Result<Option<T>, Refusal> {
    let Some(text) = turn.value(header).filter(|text| !text.is_empty()) else { return Ok(None) };
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    found.map(|(_, value)| Some(value.clone())).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("{header} is one of {}", words.join(", ")).into()
    })
}

fn number<T: core::str::FromStr>(turn: &impl Headers, header: &str) -> Result<Option<T>, Refusal> {
    let Some(text) = turn.value(header).filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| format!("{header} is not a number that it can be").into())
}

const NO_MULTIPLIER: &str =
    "ChargeMultiplier unspecified, ChargeMultiplier is required when ChargeType is Currency.";

fn needed<T>(value: Option<T>, header: &str) -> Result<T, Refusal> {
    value.ok_or_else(|| format!("{header} not specified").into())
}

#[derive(Clone, Copy)]
enum Kind {
    NotAvailable,
    Free,
    Currency,
    Unit,
}

fn fee(turn: &impl Headers) -> Result<Fee, Refusal> {
    let kinds = [
        ("NA", Kind::NotAvailable),
        ("FREE", Kind::Free),
        ("Currency", Kind::Currency),
        ("Unit", Kind::Unit),
    ];
    Ok(match needed(one_of(turn, "ChargeType", &kinds)?, "ChargeType")? {
        Kind::NotAvailable => Fee::NotAvailable,
        Kind::Free => Fee::Free,
        Kind::Currency => Fee::Currency(money(turn)?),
        Kind::Unit => {
            let mut entries = Vec::new();
            for index in 0..UNITS_MAX {
                let amount = number(turn, &format!("UnitAmount({index})"))?;
                let kind: Option<u8> = number(turn, &format!("UnitType({index})"))?;
                if kind.is_some_and(|kind| !(1..=16).contains(&kind)) {
                    return Err(format!("UnitType({index}) is 1 to 16").into());
                }
                if amount.is_none() && kind.is_none() {
                    break;
                }
                entries.push((amount, kind));
            }
            if entries.is_empty() {
                return Err("UnitAmount(0) not specified".into());
            }
            Fee::Units(entries)
        }
    })
}

fn money(turn: &impl Headers) -> Result<Money, Refusal> {
    let multipliers = [
        ("OneThousandth", Multiplier::OneThousandth),
        ("OneHundredth", Multiplier::OneHundredth),
        ("OneTenth", Multiplier::OneTenth),
        ("One", Multiplier::One),
        ("Ten", Multiplier::Ten),
        ("Hundred", Multiplier::Hundred),
        ("Thousand", Multiplier::Thousand),
    ];
    let name = turn.value("CurrencyName").unwrap_or_default();
    Ok(Money {
        name: name.chars().take(CURRENCY_MAX).collect(),
        amount: needed(number(turn, "CurrencyAmount")?, "CurrencyAmount")?,
        multiplier: one_of(turn, "CurrencyMultiplier", &multipliers)?.ok_or(NO_MULTIPLIER)?,
    })
}

fn billing(turn: &impl Headers) -> Result<Option<Billing>, Refusal> {
    let words = [
        ("Normal", Billing::Normal),
        ("ReverseCharge", Billing::Reverse),
        ("CreditCard", Billing::CreditCard),
        ("CallFwdUnconditional", Billing::ForwardingUnconditional),
        ("CallFwdBusy", Billing::ForwardingBusy),
        ("CallFwdNoReply", Billing::ForwardingNoReply),
        ("CallDeflection", Billing::Deflection),
        ("CallTransfer", Billing::Transfer),
    ];
    one_of(turn, "AOCBillingId", &words)
}

fn association(turn: &impl Headers) -> Result<Option<Association>, Refusal> {
    if let Some(id) = number(turn, "ChargingAssociationId")? {
        return Ok(Some(Association::Id(id)));
    }
    let Some(of) = turn.value("ChargingAssociationNumber").filter(|number| !number.is_empty()) else {
        return Ok(None);
    };
    Ok(Some(Association::Number(of.to_owned(), number(turn, "ChargingAssociationPlan")?.unwrap_or(0))))
}

fn code(turn: &impl Headers) -> Result<u8, Refusal> {
    let code = needed(number(turn, "Code")?, "Code")?;
    if (1..=10).contains(&code) { Ok(code) } else { Err("Code is 1 to 10".into()) }
}

fn item(turn: &impl Headers) -> Result<Item, Refusal> {
    let words = [
        ("NA", Item::NotAvailable),
        ("SpecialArrangement", Item::SpecialArrangement(0)),
        ("BasicCommunication", Item::BasicCommunication),
        ("CallAttempt", Item::CallAttempt),
        ("CallSetup", Item::CallSetup),
        ("UserUserInfo", Item::UserUserInfo),
        ("SupplementaryService", Item::SupplementaryService),
    ];
    match needed(one_of(turn, "ChargedItem", &words)?, "ChargedItem")? {
        Item::SpecialArrangement(_) => Ok(Item::SpecialArrangement(code(turn)?)),
        item => Ok(item),
    }
}

fn rate(turn: &impl Headers) -> Result<Rate, Refusal> {
    let is_arranged =
        turn.value("ChargedItem").is_some_and(|item| item.eq_ignore_ascii_case("SpecialArrangement"));
    if is_arranged {
        return Ok(Rate::NotAvailable);
    }
    let words = ["NA", "Free", "FreeFromBeginning", "Duration", "Flat", "Volume", "SpecialCode"];
    let words: Vec<(&str, &str)> = words.iter().map(|word| (*word, *word)).collect();
    Ok(match needed(one_of(turn, "RateType", &words)?, "RateType")? {
        "NA" => Rate::NotAvailable,
        "Free" => Rate::Free,
        "FreeFromBeginning" => Rate::FreeFromBeginning,
        "Flat" => Rate::Flat(money(turn)?),
        "Volume" => {
            let units = [("Octet", "Octet"), ("Segment", "Segment"), ("Message", "Message")];
            Rate::Volume(money(turn)?, needed(one_of(turn, "VolumeUnit", &units)?, "VolumeUnit")?)
        }
        "SpecialCode" => Rate::SpecialCode(code(turn)?),
        _ => Rate::Duration {
            price: money(turn)?,
            length: (needed(number(turn, "Time")?, "Time")?, needed(scale(turn, "TimeScale")?, "TimeScale")?),
            granularity: match number(turn, "Granularity")? {
                Some(granularity) => {
                    Some((granularity, needed(scale(turn, "GranularityTimeScale")?, "GranularityTimeScale")?))
                }
                None => None,
            },
            by_steps: one_of(turn, "ChargingType", &[("ContinuousCharging", false), ("StepFunction", true)])?
                .unwrap_or(false),
        },
    })
}

fn scale(turn: &impl Headers, header: &str) -> Result<Option<Scale>, Refusal> {
    one_of(turn, header, &Scale::ALL.map(|scale| (scale.name(), scale)))
}
