//! What an administrator tries and looks at while calls go on: `iax2 set …`, `iax2 test losspct`, `iax2 show peer`.

use core::time::Duration;
use std::rc::Rc;

use call::Level;
use driver::iax::{Common, Config, Host};

use super::lab::{Lab, SECRET, address, config, peer};

fn lab() -> Lab {
    Lab::new([config(0, "one", "two"), config(1, "two", "one")])
}

/// One frame of voice that site 0 sends.
fn speak(lab: &mut Lab) {
    let stream = *lab.sites[0].streams.borrow().open.keys().next().unwrap();
    let payload_type = lab.sites[0].streams.borrow().open[&stream].payload;
    let mut packet = vec![0x80, payload_type, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    packet.extend_from_slice(&[0x55; 160]);
    lab.sites[0].iax.borrow_mut().media(lab.now, &[(stream, &packet)]);
    lab.pass(Duration::from_millis(20));
}

#[test]
fn so_many_of_a_hundred_datagrams_are_thrown_away_until_none_are() {
    let mut lab = lab();
    lab.talk();
    let heard = |lab: &Lab| lab.sites[1].streams.borrow().fed.len();
    let thrown = |lab: &Lab| lab.sites[1].iax.borrow().show_stats().discards.last().unwrap().1;
    for (percent, expected) in [(0, 1000..=1000), (30, 600..=800), (100, 0..=0), (0, 1000..=1000)] {
        let before = (heard(&lab), thrown(&lab));
        lab.sites[1].iax.borrow_mut().set_loss(percent);
        for _ in 0..if percent == 100 { 10 } else { 1000 } {
            speak(&mut lab);
        }
        let got = heard(&lab) - before.0;
        assert!(expected.contains(&got), "{percent} %: {got}");
        assert_eq!(thrown(&lab) > before.1, percent > 0, "{percent} %");
    }
}

#[test]
fn the_length_of_trunks_is_set_until_a_configuration_says_otherwise() {
    let trunked = || {
        let mut config = config(0, "one", "two");
        let mut far = peer("far", Host::Fixed(address(1)), "one", SECRET);
        far.common = Common { trunk: true, ..far.common };
        config.peers.insert("far".into(), Rc::new(far));
        config
    };
    let mut lab = Lab::new([trunked(), config(1, "two", "one")]);
    lab.talk();
    (0..3).for_each(|_| speak(&mut lab));
    // A frame of G.711 needs 8 octets of the trunk and 6 of its own.
    let in_trunks = |lab: &mut Lab| {
        let before = lab.wire.len();
        (0..5).for_each(|_| speak(lab));
        lab.wire[before..].iter().filter(|(_, _, bytes)| bytes.starts_with(&[0, 0, 1])).count() > 0
    };
    assert!(in_trunks(&mut lab));
    assert_eq!(lab.sites[0].iax.borrow_mut().set_trunk_mtu(173), 1240);
    assert!(!in_trunks(&mut lab), "what does not fit goes alone");
    assert_eq!(lab.sites[0].iax.borrow_mut().set_trunk_mtu(174), 173);
    assert!(in_trunks(&mut lab));
    let site = &lab.sites[0];
    site.iax.borrow_mut().configure(&mut site.shard.core.borrow_mut(), trunked());
    assert_eq!(site.iax.borrow_mut().set_trunk_mtu(500), 1240, "the file's");
}

#[test]
fn jitter_buffers_are_told_once_a_second_and_trunks_where_that_is_on() {
    let mut lab = lab();
    lab.talk();
    let lines = |lab: &Lab| {
        let mut lines = lab.sites[0].world.log(Level::Verbose(0));
        lines.retain(|line| line.starts_with("Jitter buffer of "));
        lines
    };
    lab.pass(Duration::from_secs(2));
    assert!(lines(&lab).is_empty());
    let now = lab.now;
    lab.sites[0].streams.borrow_mut().asked = 0;
    lab.sites[0].iax.borrow_mut().set_jitter_trace(true, now);
    lab.pass(Duration::from_millis(2500));
    let told = lines(&lab);
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(
        told[0],
        "Jitter buffer of IAX2/far-00000000: waits 0 ms, jitter 0 ms, 0 received, 0 lost, 0 too late, 0 out of order"
    );
    let asked = lab.sites[0].streams.borrow().asked;
    assert_eq!(asked, 3, "the media plane is asked for what is told next");
    lab.sites[0].iax.borrow_mut().set_jitter_trace(false, now);
    lab.pass(Duration::from_secs(3));
    assert_eq!(lines(&lab).len(), 3);
}

#[test]
fn a_peer_is_shown_with_its_own_context_and_the_one_it_asks_for() {
    let contexts = |config: Config| {
        let lab = Lab::new([config, config_of_the_other()]);
        let site = &lab.sites[0];
        let rows = site.iax.borrow().show_peers(&site.shard.core.borrow(), Some("far"));
        let option = |name| {
            let found = rows[0].options.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        (option("context"), option("peercontext"))
    };
    for (name, written, is_friend, expected) in [
        ("a peer", &["in"][..], false, "in"),
        ("a peer without a context", &[], false, ""),
        ("a friend: that of its user", &[], true, "in,other"),
    ] {
        let mut config = config(0, "one", "far");
        let mut far = peer("far", Host::Fixed(address(1)), "one", SECRET);
        far.contexts = written.iter().map(|context| (*context).to_owned()).collect();
        (far.context, far.is_friend) = ("there".to_owned(), is_friend);
        config.peers.insert("far".into(), Rc::new(far));
        assert_eq!(contexts(config), (expected.to_owned(), "there".to_owned()), "{name}");
    }
}

fn config_of_the_other() -> Config {
    config(1, "two", "one")
}
