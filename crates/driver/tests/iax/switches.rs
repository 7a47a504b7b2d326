//! Numbers that one site asks another for: our switches, and the answers to those of others (RFC 5456 §6.8).

use core::time::Duration;
use std::rc::Rc;

use ::iax2::machine::Dial;
use ::iax2::{Event, Machine, Out, Secret, Settings};
use base::{Cause, FormatId, Place};
use call::SwitchAnswer;

use crate::lab::{Lab, SECRET, address, config};

fn lab() -> Lab {
    Lab::new([config(0, "one", "two"), config(1, "two", "one")])
}

/// Asks at the first site as a story would.
fn ask(lab: &Lab, switch: &str, number: &str) -> Option<SwitchAnswer> {
    let site = &lab.sites[0];
    let mut core = site.shard.core.borrow_mut();
    core.now = lab.now;
    let known = core.switches.ask(switch, number, lab.now);
    site.iax.borrow_mut().ask_switches(&mut core);
    known
}

const YES: SwitchAnswer = SwitchAnswer { exists: true, more: false };
const NO: SwitchAnswer = SwitchAnswer { exists: false, more: false };

#[test]
fn rfc5456_6_8_a_switch_is_asked_for_numbers_and_what_it_says_is_kept() {
    for (switch, number, expected) in [
        ("far/in", "100", YES),
        ("far/in", "nobody", NO),
        ("far/other", "100", NO),
        ("one:correct horse@192.0.2.2/in", "100", YES),
        ("wrong/in", "100", NO),
        ("unknown/in", "100", NO),
    ] {
        let mut lab = lab();
        assert_eq!(ask(&lab, switch, number), None, "{switch} {number}");
        lab.pass(Duration::from_secs(1));
        assert_eq!(ask(&lab, switch, number), Some(expected), "{switch} {number}");
        assert!(lab.sites[1].started.is_empty(), "{switch}: a question is no call");
        lab.assert_idle();
    }
}

#[test]
fn questions_to_one_site_share_a_call_which_ends_when_nobody_asks() {
    let mut lab = lab();
    for number in ["1", "12", "123"] {
        ask(&lab, "far/in", number);
    }
    lab.pass(Duration::from_secs(1));
    let legs = lab.sites[1].iax.borrow().legs();
    assert_eq!(legs, 1, "one call for three questions");
    for number in ["1", "12", "123"] {
        assert_eq!(ask(&lab, "far/in", number), Some(YES), "{number}");
    }
    lab.assert_idle();
}

#[test]
fn a_site_that_does_not_answer_has_no_numbers_and_is_asked_again_soon() {
    let mut lab = lab();
    lab.lost = 1000;
    assert_eq!(ask(&lab, "far/in", "100"), None);
    lab.pass(Duration::from_secs(10));
    assert_eq!(ask(&lab, "far/in", "100"), Some(NO));
    lab.lost = 0;
    lab.pass(Duration::from_secs(6));
    assert_eq!(ask(&lab, "far/in", "100"), None, "asked again");
    lab.pass(Duration::from_secs(1));
    assert_eq!(ask(&lab, "far/in", "100"), Some(YES));
    lab.assert_idle();
}

/// A client of another kind at the address of the first site.
struct Client {
    machine: Machine,
    out: Out,
    told: Vec<Event>,
}

impl Client {
    fn new(lab: &Lab) -> Self {
        let machine = Machine::new(lab.now, 77, Settings::default());
        Self { machine, out: Out::default(), told: Vec::new() }
    }
    /// Carries frames to and fro until nobody says any more.
    fn exchange(&mut self, lab: &mut Lab) {
        for _ in 0..20 {
            let site = &lab.sites[1];
            {
                let mut core = site.shard.core.borrow_mut();
                core.now = lab.now;
                let mut iax = site.iax.borrow_mut();
                let sent: Vec<Vec<u8>> = self.out.datagrams().map(|(_, bytes)| bytes.to_vec()).collect();
                self.told.append(&mut self.out.events);
                self.out.clear();
                for bytes in &sent {
                    iax.receive(&mut core, 0, address(0), bytes);
                }
                let mut back = Vec::new();
                iax.send(|_, _, bytes, _| back.push(bytes.to_vec()));
                for bytes in back {
                    self.machine.on_datagram(lab.now, address(1), &bytes, &mut self.out);
                }
            }
            let started = site.iax.borrow_mut().take_started();
            for (id, location) in started {
                lab.sites[1].started.push_back((id, format!("{}@{}", location.exten, location.context)));
            }
        }
        self.told.append(&mut self.out.events);
    }
    /// A call without a number that is taken.
    fn begin(&mut self, lab: &mut Lab, called: &[u8]) -> Place {
        let dial = Dial {
            called,
            username: b"one",
            secret: Some(Secret::new(SECRET)),
            formats: &[FormatId::ULAW],
            ..Dial::to(address(1))
        };
        let leg = self.machine.dial(lab.now, &dial, &mut self.out).unwrap();
        self.exchange(lab);
        assert!(self.told.contains(&Event::Accepted(leg, FormatId::ULAW)), "{:?}", self.told);
        leg
    }
}

#[test]
fn rfc5456_6_8_1_numbers_that_others_ask_for_are_told_and_one_is_dialled() {
    // The field says TBD where the RFC has no number.
    for called in [&b""[..], b"TBD"] {
        let mut lab = lab();
        lab.sites[1].shard.core.borrow_mut().reach = |_, _, exten, _| match exten {
            "100" => call::Reach::Whole,
            "10" | "1" => call::Reach::Partial,
            _ => call::Reach::None,
        };
        let mut client = Client::new(&lab);
        let leg = client.begin(&mut lab, called);
        for (number, expected) in [("100", 1), ("10", 0x8002), ("7", 4)] {
            client.machine.ask_number(lab.now, leg, number.as_bytes(), &mut client.out).unwrap();
            client.exchange(&mut lab);
            let told = client.told.iter().rev().find_map(|event| match event {
                Event::NumberTold { number, status, refresh, .. } => {
                    Some((number.clone(), *status, *refresh))
                }
                _ => None,
            });
            assert_eq!(told, Some((number.as_bytes().to_vec(), expected, 60)), "{number}");
        }
        assert!(lab.sites[1].started.is_empty());
        client.machine.dial_on(lab.now, leg, b"100", &mut client.out).unwrap();
        client.exchange(&mut lab);
        let (channel, place) = lab.sites[1].started.pop_front().expect("a call");
        assert_eq!(place, "100@in");
        lab.sites[1].shard.finish(channel, Cause::USER_BUSY);
        client.exchange(&mut lab);
        let ended =
            client.told.iter().any(|event| matches!(event, Event::Ended { cause: Cause::USER_BUSY, .. }));
        assert!(ended, "{:?}", client.told);
    }
}

#[test]
fn rfc5456_6_8_1_a_number_that_is_not_there_cannot_be_dialled_either() {
    let mut lab = lab();
    let mut client = Client::new(&lab);
    let leg = client.begin(&mut lab, b"TBD");
    client.machine.dial_on(lab.now, leg, b"nobody", &mut client.out).unwrap();
    client.exchange(&mut lab);
    assert!(lab.sites[1].started.is_empty());
    let refused = |event: &Event| matches!(event, Event::Ended { cause: Cause::NO_ROUTE_DESTINATION, .. });
    assert!(client.told.iter().any(refused), "{:?}", client.told);
}

#[test]
fn with_immediate_a_call_without_a_number_is_at_extension_s_at_once() {
    for (name, immediate, called, started) in [
        ("waits for its number", false, &b"TBD"[..], None),
        ("no number at all, and there is s", false, b"", Some("s@in")),
        ("immediate", true, b"TBD", Some("s@in")),
        ("immediate, no number at all", true, b"", Some("s@in")),
        ("immediate, a number", true, b"100", Some("100@in")),
    ] {
        let mut site = config(1, "two", "one");
        let mut user = crate::lab::user("one");
        user.common.immediate = immediate;
        site.users.insert(user.name.clone(), Rc::new(user));
        let mut lab = Lab::new([config(0, "one", "two"), site]);
        lab.sites[1].shard.core.borrow_mut().reach = |_, _, exten, _| match exten {
            "100" | "s" => call::Reach::Whole,
            _ => call::Reach::None,
        };
        let mut client = Client::new(&lab);
        client.begin(&mut lab, called);
        let place = lab.sites[1].started.pop_front().map(|(_, place)| place);
        assert_eq!(place.as_deref(), started, "{name}");
    }
}
