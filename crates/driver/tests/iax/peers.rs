//! What peers are told beside their calls, and from where.

use core::net::SocketAddr;
use core::time::Duration;
use std::rc::Rc;

use ::iax2::frame::{Command, Datagram, Fields, Full, Kind, parse};
use call::Mailbox;
use driver::iax::{Common, Host, IaxDriver, Peer};

use crate::lab::{Lab, SECRET, address, config, peer};

type Sent = (u32, SocketAddr, Vec<u8>);

/// Lets the first site act, and catches what it sends.
fn caught(lab: &Lab, act: impl FnOnce(&mut IaxDriver, &mut call::Core)) -> Vec<Sent> {
    let site = &lab.sites[0];
    let mut core = site.shard.core.borrow_mut();
    core.now = lab.now;
    let mut iax = site.iax.borrow_mut();
    act(&mut iax, &mut core);
    let mut sent = Vec::new();
    iax.send(|socket, to, bytes, _| sent.push((socket, to, bytes.to_vec())));
    sent
}

/// Messages that a datagram tells of, when it tells of any.
fn messages((_, to, bytes): &Sent) -> Option<(SocketAddr, u16)> {
    let Ok(Datagram::Full(Full { kind: Kind::Iax(Command::MWI), data, .. })) = parse(bytes) else {
        return None;
    };
    Some((*to, Fields::collect(data)?.messages?))
}

#[test]
fn rfc5456_8_6_23_a_peer_is_told_when_its_messages_change_and_no_other_one() {
    let mut home = config(0, "one", "two");
    for (name, host, mailboxes) in [
        ("phone", Host::Fixed(address(1)), &["100@default", "200@office"][..]),
        ("other", Host::Fixed(address(1)), &["300@default"]),
        ("away", Host::Dynamic(None), &["100@default"]),
    ] {
        let mailboxes = mailboxes.iter().map(|name| (*name).to_owned()).collect();
        let known = Peer { mailboxes, ..peer(name, host, "one", SECRET) };
        home.peers.insert(name.into(), Rc::new(known));
    }
    let lab = Lab::new([home, config(1, "two", "one")]);
    for (mailbox, new, old, expected) in [
        ("100", 2, 1, vec![(address(1), 0x0102)]),
        ("200@office", 3, 0, vec![(address(1), 0x0105)]),
        ("400", 9, 9, vec![]),
    ] {
        let sent = caught(&lab, |iax, core| {
            core.board.take_changed();
            core.set_mailbox(mailbox, Some(Mailbox { new, old }));
            iax.tell_messages(core);
        });
        let told: Vec<_> = sent.iter().filter_map(messages).collect();
        assert_eq!(told, expected, "{mailbox}");
    }
}

#[test]
fn a_peer_with_an_address_of_ours_is_called_and_watched_from_there() {
    let own = SocketAddr::from(([192, 0, 2, 1], 5036));
    for (name, source, socket) in [
        ("none", None, 0),
        ("with its port", Some(own), 1),
        ("any port, so the first that fits", Some(SocketAddr::new(own.ip(), 0)), 0),
        ("one that nobody listens on", Some(SocketAddr::from(([192, 0, 2, 50], 0))), 0),
    ] {
        let mut home = config(0, "one", "two");
        let mut far = peer("far", Host::Fixed(address(1)), "one", SECRET);
        far.common = Common { source, ..far.common };
        far.qualify = Some(Duration::from_secs(2));
        let lab = Lab::new([config(0, "one", "two"), config(1, "two", "one")]);
        home.peers.insert("far".into(), Rc::new(far));
        let sent = caught(&lab, |iax, core| {
            iax.open(1, own, core.now);
            iax.configure(core, home);
        });
        assert_eq!(sent.iter().map(|(socket, ..)| *socket).collect::<Vec<_>>(), [socket], "{name}: POKE");
        let site = &lab.sites[0];
        let request = call::Request { resource: "far/100".to_owned(), ..call::Request::default() };
        let channel = site.shard.request("IAX2", &request).unwrap();
        site.shard.with_tech(channel, |tech, core| tech.call(core, channel)).unwrap().unwrap();
        let sent = caught(&lab, |_, _| {});
        assert_eq!(sent.iter().map(|(socket, ..)| *socket).collect::<Vec<_>>(), [socket], "{name}: NEW");
    }
}

#[test]
fn rfc5456_6_7_3_netstats_tell_loss_and_both_sides() {
    let mut lab = Lab::new([config(0, "one", "two"), config(1, "two", "one")]);
    let (calling, _) = lab.talk();
    let stream = *lab.sites[0].streams.borrow().open.keys().next().unwrap();
    let payload_type = lab.sites[0].streams.borrow().open[&stream].payload;
    let mut packet = vec![0x80, payload_type, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    packet.extend_from_slice(&[0x55; 160]);
    for frame in 0..200 {
        lab.lost = if (50..54).contains(&frame) { 1000 } else { 0 };
        lab.sites[0].iax.borrow_mut().media(lab.now, &[(stream, &packet)]);
        lab.pass(Duration::from_millis(20));
    }
    lab.pass(Duration::from_secs(120));
    let rows = |site: usize| {
        let site = &lab.sites[site];
        site.iax.borrow().show_netstats(&site.shard.core.borrow())
    };
    let (here, there) = (rows(0), rows(1));
    assert_eq!((there[0].local.received, there[0].local.lost, there[0].local.loss_percent), (196, 4, 2));
    assert_eq!((here[0].remote.received, here[0].remote.lost, here[0].remote.loss_percent), (196, 4, 2));
    lab.sites[0].shard.finish(calling, base::Cause::NORMAL_CLEARING);
    lab.pass(Duration::from_secs(1));
    lab.assert_idle();
}
