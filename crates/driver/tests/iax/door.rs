//! Who is asked to prove who it is, who may try how often, and when it hears that it failed.

use core::net::SocketAddr;
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use ::iax2::frame::{Auth, Command, Datagram, Element, Full, Kind, parse, write_element};
use call::BanRules;
use driver::iax::{Common, Config, Host, Keys, Registration};

use crate::lab::{Lab, SECRET, Words, address, config, peer, user};

fn lab(change: impl FnOnce(&mut Config)) -> Lab {
    let mut asked = config(1, "two", "one");
    change(&mut asked);
    Lab::new([config(0, "one", "two"), asked])
}

/// The commands that the second site sends after a NEW of this name without a token, by the number of its call.
fn begin(lab: &Lab, from: SocketAddr, number: u16, name: &str) -> Vec<Command> {
    knock(lab, from, number, name).into_iter().map(|(command, _)| command).collect()
}

/// The same, with the methods that are asked for.
fn knock(lab: &Lab, from: SocketAddr, number: u16, name: &str) -> Vec<(Command, Option<u16>)> {
    let mut data = Vec::new();
    write_element(&Element::Version(2), &mut data);
    write_element(&Element::Username(name.as_bytes()), &mut data);
    write_element(&Element::CalledNumber(b"100"), &mut data);
    write_element(&Element::Capability(4), &mut data);
    let kind = Kind::Iax(Command::NEW);
    let frame =
        Full { source: number, dest: 0, again: false, timestamp: 3, oseq: 0, iseq: 0, kind, data: &data };
    let mut bytes = Vec::new();
    frame.write(&mut bytes);
    let site = &lab.sites[1];
    let mut core = site.shard.core.borrow_mut();
    core.now = lab.now;
    let mut iax = site.iax.borrow_mut();
    iax.receive(&mut core, 0, from, &bytes);
    let mut said = Vec::new();
    iax.send(|_, _, bytes, _| {
        if let Ok(Datagram::Full(Full { kind: Kind::Iax(command), data, .. })) = parse(bytes) {
            let methods = ::iax2::frame::Fields::collect(data).and_then(|fields| fields.methods);
            said.push((command, methods.map(|methods| methods.0)));
        }
    });
    said
}

#[test]
fn maxauthreq_bounds_calls_of_one_name_and_address_that_wait_for_a_proof_whoever_it_is() {
    let lab = lab(|config| {
        config.token_optional = vec![(address(0).ip(), 24)];
        config.defaults = Common { challenges_max: 2, ..Common::default() };
        let common = Common { challenges_max: 2, ..user("one").common };
        config.users.insert("one".into(), Rc::new(driver::iax::User { common, ..user("one") }));
    });
    for name in ["one", "nobody"] {
        let here = if name == "one" { address(0) } else { SocketAddr::from(([192, 0, 2, 77], 4569)) };
        for (number, expected) in [(100, Command::AUTHREQ), (101, Command::AUTHREQ), (102, Command::REJECT)] {
            assert_eq!(begin(&lab, here, number, name), [expected], "{name} {number}");
        }
        // Strangers elsewhere shut nobody out.
        let elsewhere = SocketAddr::from(([192, 0, 2, 99], here.port()));
        let number = 200 + name.len() as u16;
        assert_eq!(begin(&lab, elsewhere, number, name), [Command::AUTHREQ], "{name}");
    }
}

#[test]
fn with_delayreject_who_fails_hears_of_it_after_a_second_and_no_sooner() {
    for (delay_reject, soon) in [(false, true), (true, false)] {
        for peer in ["wrong", "unknown"] {
            let mut lab = lab(|config| config.delay_reject = delay_reject);
            // Beyond the answer to the first repetition nothing is under way.
            lab.dial(0, &format!("{peer}/100")).unwrap();
            lab.pass(Duration::from_millis(500));
            assert_eq!(lab.sites[0].last().starts_with("Hangup"), soon, "{peer} {delay_reject}");
            lab.pass(Duration::from_millis(600));
            assert!(lab.sites[0].last().starts_with("Hangup"), "{peer} {delay_reject}");
            lab.assert_idle();
        }
    }
}

#[test]
fn who_guesses_passwords_is_banned_as_by_sip_and_who_is_right_starts_anew() {
    let rules = |per_user| BanRules {
        per_user,
        span: Duration::from_secs(60),
        first: Duration::from_secs(600),
        longest: Duration::from_secs(3600),
        ..BanRules::default()
    };
    let guess = |lab: &mut Lab, peer: &str, times: usize| {
        for _ in 0..times {
            lab.dial(0, &format!("{peer}/100")).unwrap();
            lab.pass(Duration::from_millis(500));
        }
    };
    for (name, wrong, times, who, banned) in [
        ("too few", "wrong", 2, "one", false),
        ("enough", "wrong", 3, "one", true),
        ("a name that is nobody's", "unknown", 3, "nobody", true),
    ] {
        let mut lab = lab(|_| {});
        lab.sites[1].shard.core.borrow_mut().bans.configure(rules(3));
        guess(&mut lab, wrong, times);
        let is_banned = {
            let core = lab.sites[1].shard.core.borrow();
            core.bans.is_user_banned(address(0).ip(), who, lab.now)
        };
        assert_eq!(is_banned, banned, "{name}");
        // The right password of a banned user is not looked at.
        lab.dial(0, "far/100").unwrap();
        lab.pass(Duration::from_secs(1));
        assert_eq!(lab.sites[1].started.is_empty(), banned && who == "one", "{name}");
    }
    let mut lab = lab(|_| {});
    lab.sites[1].shard.core.borrow_mut().bans.configure(rules(3));
    for _ in 0..3 {
        guess(&mut lab, "wrong", 2);
        lab.dial(0, "far/100").unwrap();
        lab.pass(Duration::from_secs(1));
    }
    assert_eq!(lab.sites[1].started.len(), 3, "who is right is forgiven");
}

/// Keys whose signatures are words.
fn keys() -> Keys {
    Keys { set: Some(Arc::new(Words)), ..Keys::default() }
}

#[test]
fn rfc5456_8_6_16_who_calls_or_registers_proves_itself_by_a_key_that_its_section_names() {
    for (name, own, secret, let_in) in [
        ("the second key of the section", "b", None, true),
        ("a key of somebody else", "c", None, false),
        ("a key that is not there", "lost", None, false),
        ("a password where a key is wanted", "", Some(SECRET), false),
    ] {
        let with_keys = |config: &mut Config| config.keys = keys();
        let mut asked = config(1, "two", "one");
        let mut asking = config(0, "one", "two");
        [&mut asked, &mut asking].into_iter().for_each(with_keys);
        let common = Common { auth: Auth::RSA, ..user("one").common };
        let one = driver::iax::User {
            secret: None,
            keys: vec!["a".to_owned(), "b".to_owned()],
            common: common.clone(),
            ..user("one")
        };
        asked.users.insert("one".into(), Rc::new(one));
        let home = driver::iax::Peer {
            secret: None,
            keys: vec!["b".to_owned()],
            common: common.clone(),
            ..peer("one", Host::Dynamic(None), "", SECRET)
        };
        asked.peers.insert("one".into(), Rc::new(home));
        let far = driver::iax::Peer {
            secret: secret.map(::iax2::Secret::new),
            own_key: own.to_owned(),
            common,
            ..peer("far", Host::Fixed(address(1)), "one", SECRET)
        };
        asking.peers.insert("far".into(), Rc::new(far));
        asking.registrations.push(Rc::new(Registration {
            host: address(1).ip().to_string(),
            port: 4569,
            username: "one".to_owned(),
            secret: secret.map(::iax2::Secret::new),
            key: own.to_owned(),
            refresh: 60,
            plaintext: false,
            place: address(1).to_string(),
        }));
        let mut lab = Lab::new([asking, asked]);
        // Again and again, each time by another leg.
        for minutes in 0..5 {
            lab.pass(Duration::from_secs(61));
            let registered = lab.sites[1].iax.borrow().leases().count() == 1;
            assert_eq!(registered, let_in, "{name}: registers, after {minutes} minutes");
        }
        lab.dial(0, "far/100").unwrap();
        lab.pass(Duration::from_secs(1));
        assert_eq!(lab.sites[1].started.len() == 1, let_in, "{name}: calls");
    }
}

/// A datagram of an exchange that fails: when, to whom, octets, the command, unless it is enciphered, and what a challenge shows:
/// methods and ciphers.
type Seen = (Duration, usize, usize, Option<Command>, Option<(u16, u16)>);

/// What both sides send while a call of this name and a registration of it fail.
fn failing(delay_reject: bool, name: &str, methods: Auth) -> Vec<Seen> {
    let common = Common { auth: methods, encrypt: ::iax2::machine::Encrypt::Wanted, ..user("one").common };
    // A key of somebody else's is as good as a wrong password.
    let by_key = methods.has(Auth::RSA);
    let keys_of = |name: &str| if by_key { vec![name.to_owned()] } else { Vec::new() };
    let mut asked = config(1, "two", "one");
    (asked.delay_reject, asked.keys) = (delay_reject, keys());
    let one = driver::iax::User { common: common.clone(), keys: keys_of("a"), ..user("one") };
    asked.users.insert("one".into(), Rc::new(one));
    let home = driver::iax::Peer {
        common: common.clone(),
        keys: keys_of("a"),
        ..peer("one", Host::Dynamic(None), "", SECRET)
    };
    asked.peers.insert("one".into(), Rc::new(home));
    let mut asking = config(0, "one", "two");
    asking.keys = keys();
    let mut far =
        driver::iax::Peer { common, ..peer("far", Host::Fixed(address(1)), name, b"something else") };
    if by_key {
        (far.secret, far.own_key) = (None, "b".to_owned());
    }
    asking.peers.insert("far".into(), Rc::new(far));
    asking.registrations.push(Rc::new(Registration {
        host: address(1).ip().to_string(),
        port: 4569,
        username: name.to_owned(),
        secret: (!by_key).then(|| ::iax2::Secret::new(b"something else")),
        key: if by_key { "b".to_owned() } else { String::new() },
        refresh: 60,
        plaintext: methods.has(Auth::PLAINTEXT),
        place: address(1).to_string(),
    }));
    let mut lab = Lab::new([asking, asked]);
    lab.key_wait = [Duration::from_millis(70); 2];
    lab.pass(Duration::from_secs(4));
    lab.dial(0, "far/100").unwrap();
    lab.pass(Duration::from_secs(4));
    let each = lab.wire.iter().map(|(at, to, bytes)| {
        let Ok(Datagram::Full(frame)) = parse(bytes) else { panic!("a full frame: {bytes:02x?}") };
        let Kind::Iax(command) = frame.kind else {
            return (at.since(base::Instant::ZERO), *to, bytes.len(), None, None);
        };
        let fields = ::iax2::frame::Fields::collect(frame.data).unwrap_or_default();
        let challenge = fields.methods.map(|methods| (methods.0, fields.encryption.unwrap_or(0)));
        (at.since(base::Instant::ZERO), *to, bytes.len(), Some(command), challenge)
    });
    each.collect()
}

#[test]
fn an_unknown_name_and_a_wrong_password_look_the_same_and_take_the_same_time_frame_by_frame() {
    for methods in [Auth::MD5, Auth::PLAINTEXT, Auth(Auth::MD5.0 | Auth::PLAINTEXT.0), Auth::RSA] {
        for delay_reject in [false, true] {
            let known = failing(delay_reject, "one", methods);
            assert_eq!(known, failing(delay_reject, "eno", methods), "{methods:?} {delay_reject}");
            let said = |command| known.iter().filter(|(.., said, _)| *said == Some(command)).count();
            assert!(said(Command::REGREJ) > 0 && said(Command::AUTHREQ) > 0, "{known:?}");
        }
    }
}

#[test]
fn signatures_of_one_address_that_wait_have_a_bound_whoever_it_says_to_be() {
    for name in ["one", "eno"] {
        let common = Common { auth: Auth::RSA, challenges_max: 0, ..user("one").common };
        let mut asked = config(1, "two", "one");
        asked.keys = keys();
        let one = driver::iax::User {
            secret: None,
            keys: vec!["a".to_owned()],
            common: common.clone(),
            ..user("one")
        };
        asked.users.insert("one".into(), Rc::new(one));
        let mut asking = config(0, "one", "two");
        asking.keys = keys();
        let far = driver::iax::Peer {
            secret: None,
            own_key: "b".to_owned(),
            common,
            ..peer("far", Host::Fixed(address(1)), name, SECRET)
        };
        asking.peers.insert("far".into(), Rc::new(far));
        let mut lab = Lab::new([asking, asked]);
        lab.key_wait[1] = Duration::from_secs(40);
        for _ in 0..70 {
            lab.dial(0, "far/100").unwrap();
        }
        let ended = |lab: &Lab, cause: u8| {
            let heard = lab.sites[0].heard.borrow();
            heard.iter().filter(|said| **said == format!("Hangup {cause}")).count()
        };
        assert_eq!((ended(&lab, 42), ended(&lab, 50)), (6, 0), "{name}: refused at once");
        assert_eq!(lab.key_work.len(), 16, "{name}: in hand");
        lab.key_wait[1] = Duration::from_millis(1);
        for (at, ..) in &mut lab.key_work {
            *at = lab.now;
        }
        lab.pass(Duration::from_secs(5));
        assert_eq!((ended(&lab, 42), ended(&lab, 50)), (6, 64), "{name}: looked at, and wrong");
        lab.assert_idle();
    }
}

#[test]
fn a_signature_that_is_checked_when_its_caller_has_hung_up_does_nothing() {
    let common = Common { auth: Auth::RSA, ..user("one").common };
    let mut asked = config(1, "two", "one");
    asked.keys = keys();
    let one =
        driver::iax::User { secret: None, keys: vec!["a".to_owned()], common: common.clone(), ..user("one") };
    asked.users.insert("one".into(), Rc::new(one));
    let mut asking = config(0, "one", "two");
    asking.keys = keys();
    let far = driver::iax::Peer {
        secret: None,
        own_key: "a".to_owned(),
        common,
        ..peer("far", Host::Fixed(address(1)), "one", SECRET)
    };
    asking.peers.insert("far".into(), Rc::new(far));
    for (slow, quick) in [(0, 1), (1, 0)] {
        let mut lab = Lab::new([asking.clone(), asked.clone()]);
        lab.key_wait[slow] = Duration::from_secs(20);
        let calling = lab.dial(0, "far/100").unwrap();
        lab.pass(Duration::from_secs(1));
        let at_work: Vec<usize> = lab.key_work.iter().map(|(_, site, _)| *site).collect();
        assert_eq!(at_work, [slow], "{quick} has done its part, or has none");
        lab.sites[0].shard.finish(calling, base::Cause::NORMAL_CLEARING);
        lab.pass(Duration::from_secs(30));
        assert!(lab.sites[1].started.is_empty() && lab.key_work.is_empty(), "{slow}");
        lab.assert_idle();
    }
}

#[test]
fn unknown_names_are_challenged_as_known_ones_are_each_always_in_the_same_way() {
    let rsa = driver::iax::User {
        secret: None,
        keys: vec!["a".to_owned()],
        common: Common { auth: Auth::RSA, ..user("rsa").common },
        ..user("rsa")
    };
    let lab = lab(|config| {
        config.token_optional = vec![(address(0).ip(), 8)];
        config.defaults = Common { auth: Auth::PLAINTEXT, ..Common::default() };
        config.users.insert("rsa".into(), Rc::new(rsa.clone()));
        for number in 0..2 {
            let name = format!("more{number}");
            config.users.insert(name.as_str().into(), Rc::new(user(&name)));
        }
    });
    let mut methods = std::collections::BTreeMap::<u16, usize>::new();
    for number in 0..400u16 {
        let name = format!("nobody{number}");
        let ask = |call: u16| {
            let from = SocketAddr::from(([192, 0, 3, (number % 250) as u8], 5000 + number));
            match knock(&lab, from, call, &name)[..] {
                [(Command::AUTHREQ, Some(methods))] => methods,
                ref other => panic!("{name}: {other:?}"),
            }
        };
        let first = ask(100);
        assert_eq!(first, ask(101), "{name} is always asked the same");
        *methods.entry(first).or_default() += 1;
    }
    // Three of four users have passwords, and nobody has what the general section says.
    assert_eq!(methods.keys().copied().collect::<Vec<_>>(), [Auth::MD5.0, Auth::RSA.0]);
    assert!((240..360).contains(&methods[&Auth::MD5.0]), "{methods:?}");
}

/// A frame of a registration that site 1 is sent; whether more follows than datagrams, and the commands that it answers.
fn registers(lab: &Lab, frame: Full<'_>) -> (bool, Vec<Command>, Vec<u8>) {
    let (mut bytes, mut said, mut token) = (Vec::new(), Vec::new(), Vec::new());
    frame.write(&mut bytes);
    let site = &lab.sites[1];
    let mut core = site.shard.core.borrow_mut();
    core.now = lab.now;
    let mut iax = site.iax.borrow_mut();
    let follows = iax.receive(&mut core, 0, address(0), &bytes);
    iax.send(|_, _, bytes, _| {
        let Ok(Datagram::Full(Full { kind: Kind::Iax(command), data, .. })) = parse(bytes) else { return };
        said.push(command);
        token.extend_from_slice(
            ::iax2::frame::Fields::collect(data).and_then(|fields| fields.token).unwrap_or_default(),
        );
    });
    (follows, said, token)
}

#[test]
fn only_what_a_machine_cannot_answer_by_itself_is_said_to_have_consequences() {
    let mut lab = lab(|_| {});
    let mut data = Vec::new();
    write_element(&Element::Username(b"one"), &mut data);
    let ask = data.len();
    write_element(&Element::CallToken(b""), &mut data);
    let kind = Kind::Iax(Command::REGREQ);
    let frame = Full { source: 77, dest: 0, again: false, timestamp: 3, oseq: 0, iseq: 0, kind, data: &[] };
    let (follows, said, token) = registers(&lab, Full { data: &data, ..frame });
    assert_eq!((follows, said), (false, vec![Command::CALLTOKEN]), "a stranger without a token");
    data.truncate(ask);
    write_element(&Element::CallToken(&token), &mut data);
    let (follows, said, _) = registers(&lab, Full { data: &data, ..frame });
    assert_eq!((follows, said), (true, vec![Command::REGAUTH]), "it has to prove who it is");
    let ack = Full { kind: Kind::Iax(Command::ACK), oseq: 1, iseq: 1, data: &[], dest: 2, ..frame };
    let (follows, said, _) = registers(&lab, ack);
    assert_eq!((follows, said.len()), (false, 0), "an acknowledgement of whatever it is");
    lab.sites[1].iax.borrow_mut().set_trace(driver::iax::Trace::All);
    let (follows, ..) = registers(&lab, ack);
    assert!(follows, "what is traced is told on the consoles");
    lab.pass(Duration::from_secs(1));
}
