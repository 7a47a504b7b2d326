//! Registrations between two sites, and how peers answer (RFC 5456 §6.1, §6.7).

use core::time::Duration;
use std::rc::Rc;

use base::{Cause, Instant};
use call::{DeviceState, Tech as _};
use driver::iax::{Config, Host, Lease, PeerState, Registration, RegistryState};

use crate::lab::{Lab, SECRET, address, config, peer};

/// The second site registers as `mobile` at the first.
fn lab(secret: &[u8], username: &str) -> Lab {
    let mut home = config(0, "one", "two");
    let mut mobile = peer("mobile", Host::Dynamic(None), "one", SECRET);
    mobile.qualify = Some(Duration::from_secs(2));
    home.peers.insert("mobile".into(), Rc::new(mobile));
    let mut away = config(1, "two", "one");
    away.registrations.push(Rc::new(Registration {
        host: address(0).ip().to_string(),
        port: 4569,
        username: username.to_owned(),
        secret: Some(::iax2::Secret::new(secret)),
        key: String::new(),
        refresh: 60,
        plaintext: false,
        place: address(0).to_string(),
    }));
    Lab::new([home, away])
}

/// What the DNS of a site is asked, and says: an address for every name, for a minute. How often it was asked.
fn answer(lab: &mut Lab, site: usize, says: Option<core::net::SocketAddr>) -> usize {
    let questions = lab.sites[site].iax.borrow_mut().take_lookups();
    for question in &questions {
        let records = Some(base::dns::Records::Addresses(says.iter().map(|says| says.ip()).collect()));
        let answer = base::dns::Answer { records, keep: Duration::from_secs(60) };
        let at = &lab.sites[site];
        let mut core = at.shard.core.borrow_mut();
        core.now = lab.now;
        at.iax.borrow_mut().resolved(&mut core, question, &answer);
    }
    questions.len()
}

/// As many seconds pass, in which the DNS of the second site says this; how often it was asked.
fn pass(lab: &mut Lab, seconds: u64, says: Option<core::net::SocketAddr>) -> usize {
    let each = (0..seconds).map(|_| {
        lab.pass(Duration::from_secs(1));
        answer(lab, 1, says)
    });
    each.sum()
}

#[test]
fn names_of_registrars_and_watched_peers_are_looked_up_again_and_followed_where_they_go() {
    let elsewhere = core::net::SocketAddr::from(([192, 0, 2, 2], 4569));
    for (name, first, then) in [
        ("not known at first", None, Some(address(0))),
        ("another host at first", Some(elsewhere), Some(address(0))),
        ("nowhere in the end, where the last address stays", Some(address(0)), None),
    ] {
        let mut home = config(0, "one", "two");
        home.peers.insert("mobile".into(), Rc::new(peer("mobile", Host::Dynamic(None), "one", SECRET)));
        let mut away = config(1, "two", "one");
        away.registrations.push(Rc::new(Registration {
            host: "home.example".to_owned(),
            port: 4569,
            username: "mobile".to_owned(),
            secret: Some(::iax2::Secret::new(SECRET)),
            key: String::new(),
            refresh: 60,
            plaintext: false,
            place: "home.example:4569".to_owned(),
        }));
        let host = Host::Named("home.example".to_owned(), 4569, false);
        let qualify = Some(Duration::from_secs(2));
        let named = driver::iax::Peer { qualify, ..peer("named", host, "two", SECRET) };
        away.peers.insert("named".into(), Rc::new(named));
        let mut lab = Lab::new([home, away]);
        pass(&mut lab, 30, first);
        let is_there = |lab: &Lab| {
            let iax = lab.sites[1].iax.borrow();
            let row = iax.show_peers(&lab.sites[1].shard.core.borrow(), Some("named")).remove(0);
            let registry = iax.show_registry().remove(0);
            (matches!(row.state, PeerState::Ok(_)), registry.state == RegistryState::Registered)
        };
        let is_right = first == Some(address(0));
        assert_eq!(is_there(&lab), (is_right, is_right), "{name}: at first");
        let asked = pass(&mut lab, 200, then);
        assert!((2..=10).contains(&asked), "{name}: asked {asked} times in 200 s");
        assert_eq!(is_there(&lab), (true, true), "{name}: in the end");
    }
}

fn state(lab: &Lab) -> DeviceState {
    lab.sites[0].iax.borrow().device_state(&lab.sites[0].shard.core.borrow(), "mobile")
}

#[test]
fn rfc5456_6_1_a_peer_that_registers_is_found_watched_and_called_there() {
    let mut lab = lab(SECRET, "mobile");
    assert_eq!(state(&lab), DeviceState::Unavailable);
    assert_eq!(lab.dial(0, "mobile/100").unwrap_err(), Cause::SUBSCRIBER_ABSENT);
    lab.pass(Duration::from_secs(5));
    let changes = lab.sites[0].iax.borrow_mut().take_changes();
    assert_eq!(changes.len(), 1, "what is to be written down");
    assert_eq!((&*changes[0].peer, changes[0].address), ("mobile", Some(address(1))));
    assert_eq!(state(&lab), DeviceState::NotInUse);
    let rows = lab.sites[0].iax.borrow().show_peers(&lab.sites[0].shard.core.borrow(), Some("mobile"));
    assert_eq!(rows[0].address, Some(address(1)));
    assert!(
        matches!(rows[0].state, PeerState::Ok(way) if way == Duration::from_millis(20)),
        "{:?}",
        rows[0].state
    );
    let registry = lab.sites[1].iax.borrow().show_registry();
    assert_eq!((registry[0].state, registry[0].perceived), (RegistryState::Registered, Some(address(1))));
    let calling = lab.dial(0, "mobile/100").unwrap();
    assert_eq!(lab.sites[1].started.len(), 1);
    lab.sites[0].shard.finish(calling, Cause::NORMAL_CLEARING);
    // It is renewed for as long as the other side is there.
    lab.pass(Duration::from_secs(600));
    assert_eq!(state(&lab), DeviceState::NotInUse);
    // Then it does not answer, and lapses.
    lab.lost = 1000;
    lab.pass(Duration::from_secs(90));
    assert_eq!(state(&lab), DeviceState::Unavailable);
    assert_eq!(lab.sites[0].iax.borrow().leases().count(), 0);
    let last = lab.sites[0].iax.borrow_mut().take_changes().pop();
    assert_eq!(last.map(|lease| lease.address), Some(None), "that it has ended is written down");
}

#[test]
fn rfc5456_7_2_2_a_registration_of_ours_is_renewed_in_time_for_as_long_as_it_was_granted() {
    // What is granted counts, not what was asked for: a minute.
    for (granted, renewed) in [(60, 36..=55), (30, 18..=28), (300, 36..=55)] {
        let mut lab = lab(SECRET, "mobile");
        let mut home = (**lab.sites[0].iax.borrow().config()).clone();
        (home.lease_min, home.lease_max) = (10, granted);
        {
            let site = &lab.sites[0];
            site.iax.borrow_mut().configure(&mut site.shard.core.borrow_mut(), home);
        }
        let mut times = Vec::new();
        for second in 0..1200u64 {
            lab.pass(Duration::from_secs(1));
            let changes = lab.sites[0].iax.borrow_mut().take_changes();
            for change in changes {
                assert_eq!(change.address, Some(address(1)), "{granted} s: it never lapses");
                let left = change.expires_at.since(lab.now).as_secs();
                assert!(u64::from(granted.min(60)) - left <= 1, "{granted} s: {left}");
                times.push(second);
            }
            assert_ne!(state(&lab), DeviceState::Unavailable, "{granted} s, second {second}");
        }
        assert!(times.len() > 20, "{granted} s: {times:?}");
        for pair in times.windows(2) {
            assert!(renewed.contains(&(pair[1] - pair[0])), "{granted} s: {times:?}");
        }
        let gaps: std::collections::BTreeSet<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.len() > 3, "not all at once: {gaps:?}");
        assert_eq!(lab.sites[1].iax.borrow().show_registry()[0].state, RegistryState::Registered);
    }
}

#[test]
fn rfc5456_6_1_nobody_registers_with_a_wrong_password_or_an_unknown_name() {
    for (name, secret, username) in [
        ("wrong", &b"something else"[..], "mobile"),
        ("unknown", SECRET, "nobody"),
        ("not dynamic", SECRET, "far"),
    ] {
        let mut lab = lab(secret, username);
        lab.pass(Duration::from_secs(5));
        assert!(lab.sites[0].iax.borrow_mut().take_changes().is_empty(), "{name}");
        let registry = lab.sites[1].iax.borrow().show_registry();
        assert_eq!(registry[0].state, RegistryState::Rejected, "{name}");
    }
}

#[test]
fn what_was_written_down_holds_after_a_restart_until_it_lapses() {
    let mut lab = lab(b"something else", "mobile");
    let expires_at = Instant::ZERO + Duration::from_secs(100);
    let lease = Lease { peer: "mobile".into(), address: Some(address(1)), expires_at };
    {
        let site = &lab.sites[0];
        let mut core = site.shard.core.borrow_mut();
        site.iax.borrow_mut().restore(&mut core, &lease);
        let stranger = Lease { peer: "stranger".into(), ..lease };
        site.iax.borrow_mut().restore(&mut core, &stranger);
    }
    lab.pass(Duration::from_secs(5));
    assert_eq!(state(&lab), DeviceState::NotInUse);
    assert_eq!(lab.sites[0].iax.borrow().leases().count(), 1);
    lab.pass(Duration::from_secs(100));
    assert_eq!(state(&lab), DeviceState::Unavailable);
}

#[test]
fn a_reload_ends_what_is_gone_and_keeps_the_rest() {
    let mut lab = lab(SECRET, "mobile");
    lab.pass(Duration::from_secs(5));
    let reload = |lab: &mut Lab, site: usize, change: &dyn Fn(&mut Config)| {
        let mut changed = (**lab.sites[site].iax.borrow().config()).clone();
        change(&mut changed);
        let mut core = lab.sites[site].shard.core.borrow_mut();
        lab.sites[site].iax.borrow_mut().configure(&mut core, changed);
    };
    reload(&mut lab, 1, &|_| {});
    lab.pass(Duration::from_secs(1));
    assert_eq!(lab.sites[1].iax.borrow().show_registry()[0].state, RegistryState::Registered);
    assert_eq!(state(&lab), DeviceState::NotInUse);
    reload(&mut lab, 1, &|config| config.registrations.clear());
    lab.pass(Duration::from_secs(5));
    assert_eq!(state(&lab), DeviceState::Unavailable, "it has said that it goes");
    reload(&mut lab, 0, &|config| {
        config.peers.remove("mobile");
    });
    assert_eq!(state(&lab), DeviceState::Invalid);
}

#[test]
fn a_peer_has_its_extensions_in_regcontext_while_it_is_registered() {
    for (said, context, expected) in [
        ("", "reg", &[("reg", "mobile")][..]),
        ("100&200@other", "reg", &[("reg", "100"), ("other", "200")]),
        ("100", "", &[]),
    ] {
        let mut home = config(0, "one", "two");
        home.reg_context = context.to_owned();
        let mobile = driver::iax::Peer {
            extensions: said.to_owned(),
            ..peer("mobile", Host::Dynamic(None), "one", SECRET)
        };
        home.peers.insert("mobile".into(), Rc::new(mobile));
        let mut lab = Lab::new([home, config(1, "two", "one")]);
        let there = |lab: &Lab| {
            let core = lab.sites[0].shard.core.borrow();
            let all = [("reg", "mobile"), ("reg", "100"), ("other", "200")];
            all.into_iter()
                .filter(|(context, exten)| {
                    core.registered
                        .of(context)
                        .any(|(there, holder)| there == *exten && holder.registrar == "IAX2")
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(there(&lab), [], "{said}");
        let lease = Lease {
            peer: "mobile".into(),
            address: Some(address(1)),
            expires_at: lab.now + Duration::from_secs(60),
        };
        {
            let site = &lab.sites[0];
            site.iax.borrow_mut().restore(&mut site.shard.core.borrow_mut(), &lease);
        }
        assert_eq!(there(&lab), expected, "{said}");
        lab.pass(Duration::from_secs(61));
        assert_eq!(there(&lab), [], "{said}: it has lapsed");
    }
}

#[test]
fn rfc5456_8_6_28_confirmations_and_calls_say_what_time_it_is() {
    let mut lab = lab(SECRET, "mobile");
    lab.pass(Duration::from_secs(5));
    lab.dial(0, "mobile/100").unwrap();
    let mut said = std::collections::BTreeMap::new();
    for (.., bytes) in &lab.wire {
        if let Ok(::iax2::frame::Datagram::Full(frame)) = ::iax2::frame::parse(bytes)
            && let ::iax2::frame::Kind::Iax(command) = frame.kind
        {
            let fields = ::iax2::frame::Fields::collect(frame.data).unwrap_or_default();
            said.insert(command, fields.datetime);
        }
    }
    use ::iax2::frame::Command;
    // The clock of the world stands at its beginning: noon of 21 November 2026, UTC.
    let noon = Some(::iax2::frame::packed_time(2026, 11, 21, 12, 0, 0));
    for (command, expected) in [(Command::REGACK, noon), (Command::NEW, noon), (Command::REGAUTH, None)] {
        assert_eq!(said.get(&command), Some(&expected), "{}", command.name());
    }
}

#[test]
fn managers_hear_where_a_peer_is_how_long_it_takes_to_answer_and_that_its_time_is_over() {
    let mut lab = lab(SECRET, "mobile");
    lab.sites[0].shard.core.borrow_mut().watched = true;
    lab.pass(Duration::from_secs(10));
    lab.lost = 1000;
    lab.pass(Duration::from_secs(200));
    let core = lab.sites[0].shard.core.borrow();
    let told: Vec<String> = core
        .notices
        .iter()
        .filter_map(|notice| match notice {
            call::Notice::PeerStatus { peer, status, address, cause, time_ms, .. } => {
                Some(format!("{peer} {status} {address} {cause} {time_ms:?}"))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        told,
        [
            "IAX2/mobile Registered 192.0.2.2:4569  None",
            "IAX2/mobile Reachable   Some(20)",
            "IAX2/mobile Unreachable   None",
            "IAX2/mobile Unregistered  Expired None",
        ]
    );
}
