//! Parked calls as managers and the console see them.

use base::Cause;
use sim::{Act, Phone};

use super::*;

const ALICE: &str = "SIM/alice-00000000";
const BOB: &str = "SIM/bob-00000001";

/// Alice talks to bob, whom she has called; there are two lots.
fn talking(name: &str) -> Desk {
    let mut desk = Desk::new(name);
    desk.login(1, "all");
    desk.act(1, "Events|EventMask: call");
    desk.world.phone("bob", Phone { acts: vec![(100, Act::Answer)], refuses: None });
    desk.call("alice", "102");
    let lot = |name: &str, first| call::parking::LotSettings {
        name: name.to_owned(),
        first,
        last: first + 9,
        ..call::parking::LotSettings::default()
    };
    desk.world.shard.core.borrow_mut().parking.configure([lot("default", 701), lot("shop", 50)], false);
    desk.pass_to(1_000);
    desk.sent(1);
    desk
}

#[test]
fn managers_park_calls_list_them_and_hear_of_them() {
    for (name, act, heard) in [
        ("park-alone", format!("Park|Channel: {BOB}|Timeout: 20000"), 0),
        ("park-told", format!("Park|Channel: {BOB}|TimeoutChannel: {ALICE}|Timeout: 20000"), 3),
        ("park-space", format!("Park|Channel: {BOB}|Parkinglot: shop|ParkingSpace: 55|Timeout: 20000"), 0),
    ] {
        let mut desk = talking(name);
        let (lot, space) = if name == "park-space" { ("shop", "55") } else { ("default", "701") };
        assert!(desk.act(1, &act).contains("Message: Park successfully queued"), "{name}");
        desk.pass_to(6_000);
        let sent = desk.sent(1);
        let parked =
            messages(&sent).into_iter().find(|message| field(message, "Event") == Some("ParkedCall"));
        let parked = parked.unwrap_or_else(|| panic!("{name}: {sent}"));
        let parker = if heard > 0 { "SIM/alice" } else { "SIM/bob" };
        for (field_name, expected) in [
            ("ParkeeChannel", BOB),
            ("ParkeeChannelStateDesc", "Up"),
            ("ParkerDialString", parker),
            ("Parkinglot", lot),
            ("ParkingSpace", space),
            ("ParkingTimeout", "20"),
            ("ParkingDuration", "0"),
        ] {
            assert_eq!(field(&parked, field_name), Some(expected), "{name} {field_name}");
        }
        let digits = desk.world.transcript().iter().filter(|line| line.contains("#1 hears digits/")).count();
        assert_eq!(digits, heard, "{name}");
        let listed = desk.act(1, "ParkedCalls");
        assert_eq!(event_names(&listed), ["ParkedCall", "ParkedCallsComplete"], "{name}");
        assert_eq!(field(&messages(&listed)[1], "ParkingDuration"), Some("5"), "{name}");
        let other = if lot == "shop" { "default" } else { "shop" };
        assert_eq!(
            event_names(&desk.act(1, &format!("ParkedCalls|ParkingLot: {other}"))),
            ["ParkedCallsComplete"]
        );
        let bob = desk.world.shard.core.borrow().by_name(BOB).unwrap();
        desk.world.shard.core.borrow_mut().request_hangup(bob, Cause::NORMAL_CLEARING);
        desk.pass_to(7_000);
        assert!(event_names(&desk.sent(1)).contains(&"ParkedCallGiveUp".to_owned()), "{name}");
    }
    let mut desk = talking("park-lots");
    let lots = desk.act(1, "Parkinglots");
    assert_eq!(event_names(&lots), ["Parkinglot", "Parkinglot", "ParkinglotsComplete"]);
    for (name, expected) in [("Name", "shop"), ("StartSpace", "50"), ("StopSpace", "59"), ("Timeout", "45")] {
        assert_eq!(field(&messages(&lots)[2], name), Some(expected));
    }
    for (act, why) in [
        ("Park|Channel: SIM/nobody", "No such channel"),
        (&format!("Park|Channel: {BOB}|TimeoutChannel: SIM/nobody"), "TimeoutChannel does not exist"),
        (&format!("Park|Channel: {BOB}|Timeout: soon"), "Invalid Timeout value"),
        ("ParkedCalls|ParkingLot: none", "Requested parking lot could not be found."),
    ] {
        assert_eq!(desk.act(1, act), error(why), "{act}");
    }
}
