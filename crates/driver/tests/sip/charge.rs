//! Advice of charge (3GPP TS 24.647): what a phone is told that its call costs, and when.

use base::{Cause, ChannelId};
use call::charge::{Advice, Billing, Fee, Item, Money, Multiplier, Rate, Scale};
use call::{Notice, Request};
use driver::sip::Config;

use crate::lab::{Lab, body, change, header, line, site};
use crate::phone::{Phone, sdp};

const READS: &str = "Accept: application/sdp, application/vnd.etsi.aoc+xml;sv=1\r\n";
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<aoc xmlns=\"http://uri.etsi.org/ngn/params/xml/simservs/aoc\">";

fn charged() -> Config {
    let mut config = site();
    change(&mut config, "alice", |alice| alice.send_aoc = true);
    config
}

/// A call of Alice's whose INVITE has these headers.
fn ringing(lab: &mut Lab, headers: &str) -> (Phone, ChannelId) {
    let mut alice = Phone::new("alice");
    alice.ask(lab, "INVITE", "sip:100@strowger", headers, &sdp("198.51.100.7", 4000, "0 101"));
    (alice, lab.started.pop_front().unwrap())
}

fn answered(lab: &mut Lab, headers: &str) -> (Phone, ChannelId) {
    let (mut alice, id) = ringing(lab, headers);
    lab.answer(id);
    let answer = lab.sent();
    alice.ack(lab, &answer, "");
    lab.lines();
    (alice, id)
}

fn advise(lab: &mut Lab, id: ChannelId, advice: &Advice) -> Result<(), &'static str> {
    let told = lab.shard.with_tech(id, |tech, core| tech.advise_charge(core, id, advice)).unwrap();
    lab.settle();
    told
}

fn euros(amount: u32) -> Money {
    Money { name: "EUR".to_owned(), amount, multiplier: Multiplier::OneHundredth }
}

const KIND: &str = "Content-Type: application/vnd.etsi.aoc+xml\r\n";
const TOTAL_FREE: &str =
    "<aoc-d><charging-info>total</charging-info><recorded-charges><free-charge/></recorded-charges></aoc-d>";
const END_FREE: &str = "<aoc-e><recorded-charges><free-charge/></recorded-charges></aoc-e>";

/// A call of Alice's, who is told of charges where `told`, that `trunk` has answered: the phones and the channels.
fn carried(told: bool) -> (Lab, [Phone; 2], [ChannelId; 2]) {
    let mut lab = Lab::new(if told { charged() } else { site() });
    lab.storyless = true;
    lab.world.watch();
    let (mut alice, caller) = ringing(&mut lab, READS);
    lab.answer(caller);
    let ok = lab.sent();
    alice.ack(&mut lab, &ok, "");
    lab.lines();
    let request = Request { requestor: Some(caller), ..Request::default() };
    let callee = lab.dial_with("trunk", request, |_, _| {}).unwrap();
    let invite = lab.sent();
    let accept = if told { "application/sdp, multipart/mixed, application/vnd.etsi.aoc+xml" } else { "" };
    assert_eq!(header(&invite, "Accept"), accept);
    let mut trunk = Phone::new("trunk");
    trunk.called(&invite);
    trunk.respond(&mut lab, &invite, 200, "", &sdp("198.51.100.7", 4000, "0 101"));
    assert_eq!(lab.lines(), ["ACK"]);
    lab.talk(caller, callee);
    (lab, [alice, trunk], [caller, callee])
}

/// Charges that managers were told of: the channel's name, and what.
fn told(lab: &Lab) -> Vec<(String, Advice)> {
    let notices = std::mem::take(&mut lab.shard.core.borrow_mut().notices);
    let charge = |notice| match notice {
        Notice::Charge { channel, advice } => Some((channel.name.to_string(), *advice)),
        _ => None,
    };
    notices.into_iter().filter_map(charge).collect()
}

fn document(inner: &str) -> String {
    format!("{HEAD}{inner}</aoc>\n")
}

/// The same as it is sent: an element a line, each level a blank further in.
fn laid_out(inner: &str) -> String {
    let mut out = format!("{HEAD}\n");
    let (mut depth, mut open) = (1_usize, false);
    for piece in inner.split_inclusive('>') {
        let (text, tag) = piece.split_at(piece.find('<').unwrap());
        out.push_str(text);
        if tag.starts_with("</") {
            depth -= 1;
            if !open {
                out.push_str(&" ".repeat(depth));
            }
            out.push_str(&format!("{tag}\n"));
            open = false;
        } else {
            if open {
                out.push('\n');
            }
            out.push_str(&" ".repeat(depth));
            open = !tag.ends_with("/>");
            match open {
                true => out.push_str(tag),
                false => out.push_str(&format!("{}\n", tag.replace("/>", " />"))),
            }
            depth += usize::from(open);
        }
    }
    format!("{out}</aoc>\n")
}

#[test]
fn ts24647_4_5_2_a_charge_during_the_call_goes_out_in_info() {
    let price = "<recorded-currency-units><currency-id>EUR</currency-id><currency-amount>0.05</currency-amount></recorded-currency-units>";
    let rows = [
        (
            Advice::During { fee: Fee::Currency(euros(5)), is_total: true, billing: Some(Billing::Normal) },
            format!("<aoc-d><charging-info>total</charging-info><recorded-charges>{price}</recorded-charges></aoc-d>"),
        ),
        (
            Advice::During { fee: Fee::Free, is_total: false, billing: None },
            "<aoc-d><charging-info>subtotal</charging-info><recorded-charges><free-charge/></recorded-charges></aoc-d>".to_owned(),
        ),
        (
            Advice::During { fee: Fee::NotAvailable, is_total: true, billing: Some(Billing::CreditCard) },
            "<aoc-d><charging-info>total</charging-info><recorded-charges><not-available/></recorded-charges></aoc-d>".to_owned(),
        ),
        (
            Advice::During { fee: Fee::Units(vec![(Some(3), Some(2)), (None, None)]), is_total: true, billing: None },
            "<aoc-d><charging-info>total</charging-info><recorded-charges><recorded-currency-units><currency-id>UNIT</currency-id><currency-amount>3</currency-amount></recorded-currency-units></recorded-charges></aoc-d>".to_owned(),
        ),
        (
            Advice::Setup {
                item: Item::BasicCommunication,
                rate: Rate::Duration {
                    price: Money { name: "<&>".to_owned(), ..euros(120) },
                    length: (1, Scale::Minute),
                    granularity: Some((6, Scale::Second)),
                    by_steps: true,
                },
            },
            "<aoc-s><charged-items><basic><price-time><currency-id>&lt;&amp;&gt;</currency-id><currency-amount>1.20</currency-amount><length-time-unit><time-unit>1</time-unit><scale>one-minute</scale></length-time-unit><charging-type>step-function</charging-type></price-time></basic></charged-items></aoc-s>".to_owned(),
        ),
        (
            Advice::Setup { item: Item::CallSetup, rate: Rate::Flat(euros(9)) },
            "<aoc-s><charged-items><communication-setup><flat-rate><currency-id>EUR</currency-id><currency-amount>0.09</currency-amount></flat-rate></communication-setup></charged-items></aoc-s>".to_owned(),
        ),
        (
            Advice::Rates(vec![
                (Item::CallSetup, Rate::Free),
                (Item::SpecialArrangement(4), Rate::NotAvailable),
                (Item::CallAttempt, Rate::Flat(Money { name: String::new(), ..euros(1) })),
            ]),
            "<aoc-s><charged-items><communication-setup><free-charge/></communication-setup><communication-attempt><flat-rate><currency-amount>0.01</currency-amount></flat-rate></communication-attempt></charged-items></aoc-s>".to_owned(),
        ),
    ];
    for (advice, inner) in rows {
        let mut lab = Lab::new(charged());
        // Whether the phone says that it reads them does not matter.
        let (_, id) = answered(&mut lab, "");
        advise(&mut lab, id, &advice).unwrap();
        let info = lab.sent();
        assert_eq!((line(&info), body(&info)), ("INFO".to_owned(), laid_out(&inner)), "{advice:?}");
        assert_eq!(header(&info, "Content-Type"), "application/vnd.etsi.aoc+xml");
    }
}

#[test]
fn ts24647_4_5_2_a_price_before_the_answer_goes_out_in_each_response() {
    let advice = Advice::Setup { item: Item::CallAttempt, rate: Rate::Free };
    let price = laid_out(
        "<aoc-s><charged-items><communication-attempt><free-charge/></communication-attempt></charged-items></aoc-s>",
    );
    for indicated in
        [None, Some((call::Indication::Ringing, "180")), Some((call::Indication::Progress, "183"))]
    {
        let mut lab = Lab::new(charged());
        let (_, id) = ringing(&mut lab, "");
        lab.lines();
        advise(&mut lab, id, &Advice::Setup { item: Item::CallSetup, rate: Rate::Free }).unwrap();
        advise(&mut lab, id, &advice).unwrap();
        assert_eq!(lab.lines(), [""; 0], "nothing leaves for its sake");
        let mut expected = vec![("200", true)];
        if let Some((indication, status)) = indicated {
            lab.indicate(id, indication);
            expected.insert(0, (status, status == "183"));
        }
        for (status, has_sdp) in expected {
            if status == "200" {
                lab.answer(id);
            }
            let answer = lab.sent();
            assert_eq!(line(&answer), status);
            assert!(header(&answer, "Content-Type").starts_with("multipart/mixed;boundary="), "{status}");
            let text = body(&answer);
            let at = |part: &str| text.find(part);
            assert_eq!(at("Content-Type: application/sdp\r\n").is_some(), has_sdp, "{text}");
            assert!(at(&price).is_some() && at("Content-Type: application/sdp") < at(&price), "{text}");
        }
    }
}

#[test]
fn what_a_call_has_cost_so_far_is_its_total_in_the_end_unless_that_is_known() {
    let so_far = |cents| Advice::During { fee: Fee::Currency(euros(cents)), is_total: false, billing: None };
    let end = Advice::End { fee: Fee::Free, billing: None, association: None };
    let total = "<aoc-d><charging-info>total</charging-info><recorded-charges><recorded-currency-units><currency-id>EUR</currency-id><currency-amount>0.02</currency-amount></recorded-currency-units></recorded-charges></aoc-d>";
    for (name, advices, expected) in [
        ("the last so far", vec![so_far(1), so_far(2)], total),
        ("the end", vec![so_far(1), end.clone()], END_FREE),
        ("what comes after the end", vec![end, so_far(3)], END_FREE),
    ] {
        for ours in [true, false] {
            let mut lab = Lab::new(charged());
            let (mut alice, id) = answered(&mut lab, "");
            for advice in &advices {
                advise(&mut lab, id, advice).unwrap();
            }
            lab.lines();
            match ours {
                true => lab.finish(id, Cause::NORMAL_CLEARING),
                false => alice.inside(&mut lab, "BYE", "", ""),
            }
            assert_eq!(body(&lab.sent()), laid_out(expected), "{name}");
        }
    }
}

#[test]
fn ts24647_4_5_2_the_charge_of_the_whole_call_goes_out_with_its_bye_whoever_sends_that() {
    let cost = |cents| Advice::End {
        fee: Fee::Currency(euros(cents)),
        billing: Some(Billing::Transfer),
        association: None,
    };
    let expected = laid_out(
        "<aoc-e><recorded-charges><recorded-currency-units><currency-id>EUR</currency-id><currency-amount>0.42</currency-amount></recorded-currency-units></recorded-charges></aoc-e>",
    );
    for ours in [true, false] {
        let mut lab = Lab::new(charged());
        let (mut alice, id) = answered(&mut lab, READS);
        // The last one counts.
        advise(&mut lab, id, &cost(41)).unwrap();
        advise(&mut lab, id, &cost(42)).unwrap();
        assert_eq!(lab.lines(), [""; 0], "nothing leaves before the end");
        let last = if ours {
            lab.finish(id, Cause::NORMAL_CLEARING);
            lab.sent()
        } else {
            alice.inside(&mut lab, "BYE", "", "");
            lab.sent()
        };
        assert_eq!(line(&last), if ours { "BYE" } else { "200" });
        assert_eq!(
            (header(&last, "Content-Type"), body(&last)),
            ("application/vnd.etsi.aoc+xml".to_owned(), expected.clone())
        );
    }
}

#[test]
fn nobody_is_told_who_does_not_want_to_hear_or_whom_the_schema_has_no_words_for() {
    let during = Advice::During { fee: Fee::Free, is_total: true, billing: None };
    let volume = Advice::Setup { item: Item::BasicCommunication, rate: Rate::Volume(euros(1), "Octet") };
    let code = Advice::Setup { item: Item::SpecialArrangement(4), rate: Rate::NotAvailable };
    for (config, headers, up, advice, why) in [
        (site(), READS, true, &during, "its endpoint has send_aoc=no"),
        (charged(), READS, true, &volume, "TS 24.647 has no words for it"),
        (charged(), READS, true, &code, "TS 24.647 has no words for it"),
        (charged(), READS, false, &code, "TS 24.647 has no words for it"),
    ] {
        let mut lab = Lab::new(config);
        let (_, id) = if up { answered(&mut lab, headers) } else { ringing(&mut lab, headers) };
        lab.lines();
        assert_eq!(advise(&mut lab, id, advice), Err(why));
        assert_eq!(lab.lines(), [""; 0], "{why}");
    }
}

#[test]
fn ts24647_4_5_2_what_a_carrier_says_of_charges_reaches_managers_and_the_caller_who_wants_to_hear() {
    for wants in [true, false] {
        let (mut lab, [_, mut trunk], [_, callee]) = carried(wants);
        let name = lab.shard.core.borrow().get(callee).unwrap().name.to_string();
        told(&lab);
        trunk.inside(&mut lab, "INFO", KIND, &document(TOTAL_FREE));
        let during = Advice::During { fee: Fee::Free, is_total: true, billing: None };
        assert_eq!(told(&lab), [(name.clone(), during)]);
        assert_eq!(line(&lab.sent()), "200");
        if wants {
            let info = lab.sent();
            assert_eq!((line(&info), body(&info)), ("INFO".to_owned(), laid_out(TOTAL_FREE)));
        }
        assert_eq!(lab.lines(), [""; 0]);
        // Its BYE says what the call has cost, and so does ours to the phone.
        trunk.inside(&mut lab, "BYE", KIND, &document(END_FREE));
        let end = Advice::End { fee: Fee::Free, billing: None, association: None };
        assert_eq!(told(&lab), [(name, end)]);
        assert_eq!(line(&lab.sent()), "200");
        let bye = lab.sent();
        let expected = if wants { laid_out(END_FREE) } else { String::new() };
        assert_eq!((line(&bye), body(&bye)), ("BYE".to_owned(), expected));
    }
}

#[test]
fn ts24647_4_5_2_the_charge_in_the_answer_to_our_bye_is_told_of_the_channel_that_was() {
    let (mut lab, [mut alice, trunk], [_, callee]) = carried(false);
    let name = lab.shard.core.borrow().get(callee).unwrap().name.to_string();
    alice.inside(&mut lab, "BYE", "", "");
    assert_eq!(line(&lab.sent()), "200");
    let bye = lab.sent();
    assert_eq!(line(&bye), "BYE");
    told(&lab);
    trunk.respond(&mut lab, &bye, 200, KIND, &document(END_FREE));
    let end = Advice::End { fee: Fee::Free, billing: None, association: None };
    assert_eq!(told(&lab), [(name, end)]);
    lab.rest();
}

#[test]
fn ts24647_4_5_2_a_price_in_a_provisional_response_is_heard_before_the_answer() {
    let mut lab = Lab::new(site());
    let mut trunk = Phone::new("trunk");
    lab.dial("trunk").unwrap();
    let invite = lab.sent();
    trunk.called(&invite);
    let price = document("<aoc-s><charged-items><basic><free-charge/></basic></charged-items></aoc-s>");
    trunk.respond(&mut lab, &invite, 180, KIND, &price);
    let heard = lab.heard();
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(heard[0].starts_with("Charge(Setup { item: BasicCommunication, rate: Free })"), "{heard:?}");
    assert_eq!(heard[1], "Ringing");
}

#[test]
fn documents_that_cannot_be_read_and_those_of_others_are_dropped() {
    // The carrier's own: refused, and nobody hears of it.
    let (mut lab, [mut alice, mut trunk], _) = carried(true);
    told(&lab);
    for bad in ["<aoc>", "<aoc/><aoc/>", "no document", "<aoc><aoc-e/></aoc>", &document(&"<x>".repeat(9))] {
        trunk.inside(&mut lab, "INFO", KIND, bad);
        assert_eq!(lab.lines(), ["400"], "{bad}");
    }
    assert!(told(&lab).is_empty());
    // A phone that calls has no charges to tell.
    alice.inside(&mut lab, "INFO", KIND, &document(TOTAL_FREE));
    assert_eq!(lab.lines(), ["415"]);
    assert!(told(&lab).is_empty());
    // Nor has one that is called and is told of them by us.
    let mut config = site();
    change(&mut config, "trunk", |trunk| trunk.send_aoc = true);
    let mut lab = Lab::new(config);
    lab.world.watch();
    let mut phone = Phone::new("trunk");
    lab.dial("trunk").unwrap();
    let invite = lab.sent();
    phone.called(&invite);
    phone.respond(&mut lab, &invite, 200, "", &sdp("198.51.100.7", 4000, "0 101"));
    assert_eq!(lab.lines(), ["ACK"]);
    phone.inside(&mut lab, "INFO", KIND, &document(TOTAL_FREE));
    assert_eq!(lab.lines(), ["415"]);
    assert!(told(&lab).is_empty());
}
