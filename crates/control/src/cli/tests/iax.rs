//! What `iax2 …` says, over a table in place of the driver.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::iax::Trace;
use crate::testing::Iax;

/// A desk where IAX2 is served, and the table behind it.
pub(super) fn served(name: &str) -> (Desk, Rc<RefCell<Iax>>) {
    let desk = Desk::new(name);
    let iax = Rc::new(RefCell::new(Iax::default()));
    *desk.cli.site.iax_sight.borrow_mut() = Some(iax.clone());
    (desk, iax)
}

#[test]
fn without_iax_conf_every_command_says_so_and_fails() {
    let mut desk = Desk::new("iax-none");
    for row in super::super::iax::ROWS.iter().chain(super::super::iax_set::ROWS) {
        let line =
            row.shape.replace("[like <pattern>]", "").replace("<iax-peer>", "x").replace("on|off", "on");
        let line =
            line.replace("<address>", "192.0.2.1").replace("<mtu>", "default").replace("<percent>", "1");
        if line == "iax2 reload" || line.starts_with("iax2 show users") {
            continue;
        }
        let told = "IAX2 is not served: there is no iax.conf; write one, then `core reload`\n";
        assert_eq!(desk.run(&line), (told.to_owned(), 1), "{line}");
    }
}

#[test]
fn peers_are_listed_in_the_columns_of_the_field() {
    let (mut desk, _) = served("iax-peers");
    let lines = desk.lines("iax2 show peers");
    assert!(lines[0].starts_with(&format!("{:<17}{:<46}Mask ", "Name/Username", "Host")), "{}", lines[0]);
    assert!(lines[0].contains("Port ") && lines[0].contains("Status      Description"), "{}", lines[0]);
    assert!(
        lines[1].starts_with("phone            (null)                                   (D)  (null)"),
        "{}",
        lines[1]
    );
    assert!(lines[1].contains(" 0 ") && lines[1].contains("UNKNOWN     a site"), "{}", lines[1]);
    assert!(
        lines[2].starts_with("site-b/site-a    192.0.2.7                                (S)"),
        "{}",
        lines[2]
    );
    assert!(lines[2].contains("4569   (T)(E)  OK (12 ms)  a site"), "{}", lines[2]);
    // There is a row of a database among them.
    assert!(
        lines[0].ends_with("Realtime") && lines[1].ends_with("a site                           Cached RT")
    );
    assert!(!lines[2].contains("Cached"), "{}", lines[2]);
    let users = desk.lines("iax2 show users");
    assert!(users[0].starts_with("Username         Secret ") && users[0].ends_with("Realtime"), "{users:?}");
    assert!(
        users[1].starts_with("phone            <Set>                 md5 ")
            && users[1].ends_with("Cached RT")
    );
    assert_eq!(lines[3], "2 iax2 peers [1 online, 1 offline, 0 unmonitored]");
    assert_eq!(desk.lines("iax2 show peers like ^site").len(), 3);
    assert_eq!(desk.run("iax2 show peers like ["), ("'[' is no regular expression\n".to_owned(), 1));
    let peer = desk.text("iax2 show peer site-b");
    assert!(
        peer.contains(
            "  * Name       : site-b\n    Dynamic      : No\n    Realtime     : No\n    Trunk        : Yes\n"
        ),
        "{peer}"
    );
    assert!(
        peer.contains("    Addr->IP     : 192.0.2.7 Port 4569\n")
            && peer.contains("    description  : a site\n"),
        "{peer}"
    );
    assert_eq!(desk.run("iax2 show peer nobody"), ("Peer nobody not found.\n".to_owned(), 1));
}

#[test]
fn registrations_calls_and_totals_are_told() {
    let (mut desk, _) = served("iax-tables");
    let registry = desk.text("iax2 show registry");
    assert!(
        registry.contains("dnsmgr  Username    Perceived") && registry.contains("1 IAX2 registration.\n"),
        "{registry}"
    );
    assert!(registry.contains("  Y       us          198.51.100.1:4569"), "{registry}");
    assert!(registry.contains("      60  Registered\n"), "{registry}");
    let channels = desk.text("iax2 show channels");
    assert!(
        channels.contains("IAX2/site-b-00000001  192.0.2.7 ")
            && channels.contains(
                "  17000/00003  00015/00007  00012ms  0002ms  0040ms  ulaw    Rx:NEW      Tx:LAGRQ    (T)\n1 active IAX channel\n"
            ),
        "{channels}"
    );
    assert!(
        channels
            .contains(" ID (Lo/Rem)  Seq (Tx/Rx)  Lag      Jitter  JitBuf  Format  FirstMsg    LastMsg\n"),
        "{channels}"
    );
    let netstats = desk.text("iax2 show netstats");
    assert!(
        netstats.contains("IAX2/site-b-00000001   12    2    0     7   0     0    0      5    0    0"),
        "{netstats}"
    );
    assert!(
        netstats.contains(" FirstMsg    LastMsg\n") && netstats.contains(" Rx:NEW      Tx:LAGRQ\n"),
        "{netstats}"
    );
    let stats = desk.text("iax2 show stats");
    assert!(
        stats.contains("Datagrams: 100 received, 90 sent\n")
            && stats.contains("dropped: 3\n    too_short: 3\n"),
        "{stats}"
    );
    assert!(!stats.contains("bad_version"), "{stats}");
    let numbers = desk.text("iax2 show callnumber usage");
    assert!(numbers.contains("Non-CallToken Validation Callno Limit         : 8192\n"), "{numbers}");
    assert!(
        numbers.starts_with(
            "Address                                       Callno Usage Callno Limit\n192.0.2.7 "
        ) && numbers.contains("\n192.0.2.8                                     1            2048        \n"),
        "{numbers}"
    );
    assert_eq!(desk.lines("iax2 show callnumber usage 192.0.2.8").len(), 2);
    assert_eq!(desk.run("iax2 show callnumber usage nowhere"), ("'nowhere' is no address\n".to_owned(), 1));
}

#[test]
fn what_switches_said_is_listed_without_passwords() {
    let (mut desk, _) = served("iax-cache");
    {
        let mut core = desk.cli.site.shard.core.borrow_mut();
        for (number, exists, more) in [("100", true, false), ("1", false, true), ("7", false, false)] {
            let question = ("us:secret@far.example/in".to_owned(), number.to_owned());
            let answer = call::SwitchAnswer { exists, more };
            core.switch_said(question, Some((answer, core::time::Duration::from_secs(60))));
        }
    }
    let lines = desk.lines("iax2 show cache");
    assert_eq!(lines[0], "Peer/Context         Exten        Exp.      Wait.    Flags");
    assert_eq!(lines[1], "far.example/in       1            60        0        CANEXIST|MATCHMORE");
    assert!(lines[2].ends_with(" EXISTS") && lines[3].ends_with(" NONEXISTENT"), "{lines:?}");
    assert!(!desk.text("iax2 show cache").contains("secret"));
}

#[test]
fn keys_are_listed_and_those_that_need_a_passcode_are_told_what_to_do_about() {
    let (mut desk, _) = served("iax-keys");
    let keys = desk.text("keys show");
    assert!(keys.starts_with("Key Name           Type     Status           Sum "), "{keys}");
    assert!(keys.contains("\nsite-b             PUBLIC   [Loaded]         0f0f0f0f"), "{keys}");
    assert!(keys.ends_with("2 known RSA keys.\n"), "{keys}");
    let (told, status) = desk.run("keys init");
    assert!(told.contains("openssl rsa -traditional -in site-b.key -out site-b.key"), "{told}");
    assert_eq!(status, 1);
}

#[test]
fn debug_is_switched_and_a_registration_is_forgotten_once() {
    let (mut desk, iax) = served("iax-debug");
    for (line, told, trace) in [
        ("iax2 set debug on", "IAX2 Debugging Enabled\n", Trace::All),
        (
            "iax2 set debug ip 192.0.2.7",
            "IAX2 Debugging Enabled for IP: 192.0.2.7\n",
            Trace::Of([192, 0, 2, 7].into()),
        ),
        (
            "iax2 set debug peer site-b",
            "IAX2 Debugging Enabled for IP: 192.0.2.7\n",
            Trace::Of([192, 0, 2, 7].into()),
        ),
        ("iax2 set debug off", "IAX2 Debugging Disabled\n", Trace::Off),
    ] {
        assert_eq!(desk.run(line), (told.to_owned(), 0));
        assert_eq!(iax.borrow().trace, trace);
    }
    let unknown = "The address of phone is not known; wait until it has registered\n";
    assert_eq!(desk.run("iax2 set debug peer phone"), (unknown.to_owned(), 1));
    assert_eq!(desk.run("iax2 set debug peer nobody"), ("Peer nobody not found.\n".to_owned(), 1));
    assert_eq!(desk.run("iax2 set debug ip nonsense"), ("'nonsense' is no address\n".to_owned(), 1));
    assert_eq!(desk.run("iax2 unregister phone"), ("Peer phone unregistered\n".to_owned(), 0));
    assert_eq!(desk.run("iax2 unregister phone"), ("Peer phone is not registered\n".to_owned(), 1));
}

#[test]
fn trunks_and_jitter_buffers_are_told_or_not() {
    let (mut desk, iax) = served("iax-told");
    for (line, told, after) in [
        ("iax2 set debug trunk on", "IAX2 Trunk Debugging Enabled\n", [true, false]),
        ("iax2 set debug jb on", "IAX2 Jitterbuffer Debugging Enabled\n", [true, true]),
        ("iax2 set debug off", "IAX2 Debugging Disabled\n", [true, true]),
        ("iax2 set debug trunk off", "IAX2 Trunk Debugging Disabled\n", [false, true]),
        ("iax2 set debug jb off", "IAX2 Jitterbuffer Debugging Disabled\n", [false, false]),
    ] {
        assert_eq!(desk.run(line), (told.to_owned(), 0), "{line}");
        assert_eq!(iax.borrow().told, after, "{line}");
    }
}

#[test]
fn the_length_of_trunks_and_the_loss_of_a_test_are_set_within_their_bounds() {
    let (mut desk, iax) = served("iax-set");
    let bounds = "Trunk MTU must be between 172 and 1472\n";
    for (line, told, status, mtu, loss) in [
        ("iax2 set mtu default", "Trunk MTU changed from 0 to 1240\n", 0, 1240, 0),
        ("iax2 set mtu 500", "Trunk MTU changed from 1240 to 500\n", 0, 500, 0),
        ("iax2 set mtu 171", bounds, 1, 500, 0),
        ("iax2 set mtu 1473", bounds, 1, 500, 0),
        ("iax2 set mtu -1", bounds, 1, 500, 0),
        ("iax2 set mtu much", bounds, 1, 500, 0),
        ("iax2 set mtu 0", "Trunk MTU control disabled (mtu was 500)\n", 0, 1472, 0),
        ("iax2 test losspct 10", "10 of 100 IAX2 datagrams that come are thrown away\n", 0, 1472, 10),
        ("iax2 test losspct 101", "'101' is no percentage of 0 to 100\n", 1, 1472, 10),
        ("iax2 test losspct -1", "'-1' is no percentage of 0 to 100\n", 1, 1472, 10),
        ("iax2 test losspct 0", "All IAX2 datagrams are taken\n", 0, 1472, 0),
    ] {
        assert_eq!(desk.run(line), (told.to_owned(), status), "{line}");
        assert_eq!((iax.borrow().mtu, iax.borrow().loss), (mtu, loss), "{line}");
    }
}

#[test]
fn json_has_the_keys_of_the_manual() {
    let (mut desk, _) = served("iax-json");
    for (line, pointer, expected) in [
        ("iax2 show peers", "/peers/1/status", "\"OK (12 ms)\""),
        ("iax2 show peers", "/peers/0/host", "null"),
        ("iax2 show peer phone", "/peers/0/options/0/value", "\"a site\""),
        ("iax2 show registry", "/registry/0/state", "\"Registered\""),
        ("iax2 show channels", "/channels/0/local_number", "17000"),
        ("iax2 show channels", "/channels/0/last_message", "\"Tx:LAGRQ\""),
        ("iax2 show callnumber usage", "/hosts/0/used", "20"),
        ("iax2 show netstats", "/channels/0/local/lost", "7"),
        ("iax2 show stats", "/discards/too_short", "3"),
        ("iax2 show callnumber usage", "/of_address_max", "2048"),
        ("keys show", "/keys/1/status", "\"Needs Passcode\""),
        ("iax2 show peers", "/peers/0/realtime", "true"),
        ("iax2 show peers", "/peers/1/realtime", "false"),
        ("iax2 show users", "/users/0/context", "\"internal\""),
        ("iax2 show users", "/users/0/realtime", "true"),
        ("iax2 show threads", "/threads", "1"),
        ("iax2 show cache", "/numbers", "[]"),
    ] {
        let (text, status) = desk.ask(line, true);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(status, 0, "{line}: {text}");
        assert_eq!(
            value.pointer(pointer).map(ToString::to_string).as_deref(),
            Some(expected),
            "{line}: {text}"
        );
    }
}
