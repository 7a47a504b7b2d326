//! Two sites that call each other by IAX2 (RFC 5456).

use e2e::{Phone, Server, Site, Speak, wait};
use std::net::IpAddr;

/// What each phone says.
const ALICE: f64 = 440.0;
const BOB: f64 = 750.0;
/// Milliseconds of a tone that count as heard.
const ENOUGH: u32 = 500;

const DIALPLAN: &str = "
[test]
exten => _far-.,1,Set(IAXVAR(colour)=blue)
 same => n,Set(DB(told/status)=${IAXPEER(far,status)})
 same => n,Dial(IAX2/far/${EXTEN:4},20)
 same => n,Hangup(${HANGUPCAUSE})
exten => _bad-.,1,Dial(IAX2/wrong/${EXTEN:4},20)
 same => n,Set(DB(outcome/wrong)=${HANGUPCAUSE})
 same => n,Hangup(${HANGUPCAUSE})
exten => _odd-.,1,Dial(IAX2/unknown/${EXTEN:4},20)
 same => n,Set(DB(outcome/unknown)=${HANGUPCAUSE})
 same => n,Hangup(${HANGUPCAUSE})
[incoming]
exten => alice,1,Dial(PJSIP/alice,20)
exten => bob,1,Set(DB(told/of)=${CALLERID(num)} ${CHANNEL(peername)} ${IAXVAR(colour)})
 same => n,Dial(PJSIP/bob,20)
exten => read,1,Answer()
 same => n,Read(TYPED,,4,,1,20)
 same => n,Set(DB(typed/read)=${TYPED})
 same => n,Hangup()
exten => _via-.,1,Dial(IAX2/next/${EXTEN:4},20)
exten => busy,1,Busy()
exten => 42,1,Set(DB(typed/at)=${EXTEN})
 same => n,Hangup()
exten => cleared,1,Answer()
 same => n,Hangup()
exten => desk,1,Set(CONNECTEDLINE(all)=Front Desk <100>)
 same => n,Answer()
 same => n,Wait(30)
[test]
exten => _who-.,1,Dial(IAX2/far/${EXTEN:4},20,U(who))
[who]
exten => s,1,Set(DB(told/who)=${CALLERID(all)})
 same => n,Return()
";

/// Both sites, up: each knows the other as `far`, and is known by its own name.
fn sites(name: &str, more: &str) -> (Server, Server) {
    let first = Site::new(&format!("{name}-first")).phone("alice");
    let second = Site::new(&format!("{name}-second")).phone("bob");
    let (one, two) = (first.sip.ip(), second.sip.ip());
    let conf = |own: &str, ip: IpAddr, other: &str, far: IpAddr| {
        format!(
            "[general]\nbindaddr = {ip}\ndisallow = all\nallow = ulaw\n\
             [far]\ntype = peer\nhost = {far}\nusername = {own}\nsecret = between the two of us\n{more}\n\
             [wrong]\ntype = peer\nhost = {far}\nusername = {own}\nsecret = something else entirely\n\
             [unknown]\ntype = peer\nhost = {far}\nusername = nobody\nsecret = between the two of us\n\
             [{other}]\ntype = user\nsecret = between the two of us\ncontext = incoming\n{more}\n"
        )
    };
    let first = first.add("iax.conf", &conf("first", one, "second", two)).dialplan(DIALPLAN);
    let second = second.add("iax.conf", &conf("second", two, "first", one)).dialplan(DIALPLAN);
    (Server::start(first), Server::start(second))
}

fn until_heard(phone: &Phone, hertz: f64) {
    wait::until_true(&format!("{} hears {hertz} Hz", phone.name), || {
        phone.media.heard().tone(hertz) >= ENOUGH
    });
}

/// A call from a phone of one site to a phone of the other, with sound both ways.
fn talk(name: &str, more: &str) {
    let (first, second) = sites(name, more);
    let mut alice = Phone::new(first.site.sip, "alice");
    let mut bob = Phone::new(second.site.sip, "bob");
    bob.must_register();
    alice.media.speak(Speak::Tone(ALICE));
    bob.media.speak(Speak::Tone(BOB));
    alice.begin("far-bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    until_heard(&alice, BOB);
    until_heard(&bob, ALICE);
    assert_eq!(second.database("told", "of"), "alice first blue", "caller, user and IAXVAR()");
    assert_eq!(first.database("told", "status"), "Unmonitored", "IAXPEER()");
    bob.hang_up();
    alice.until_hung_up();
    first.until_idle();
    second.until_idle();
}

#[test]
fn rfc5456_phones_of_two_sites_hear_each_other() {
    talk("iax-plain", "");
}

#[test]
fn rfc5456_7_1_phones_hear_each_other_through_a_trunk() {
    talk("iax-trunk", "trunk = yes");
}

#[test]
fn rfc5456_7_4_phones_hear_each_other_through_an_enciphered_call() {
    talk("iax-secret", "encryption = yes");
}

#[test]
fn rfc5456_8_2_digits_are_read_at_the_other_site() {
    let (first, second) = sites("iax-digits", "");
    let mut alice = Phone::new(first.site.sip, "alice");
    alice.must_call("far-read");
    alice.media.type_digits("40#");
    assert_eq!(second.database("typed", "read"), "40");
    alice.until_hung_up();
    first.until_idle();
    second.until_idle();
}

#[test]
fn a_site_tells_who_answers_where_both_say_connectedline() {
    for (name, more, told) in [
        ("iax-line", "connectedline = yes", "\"Front Desk\" <100>"),
        ("iax-no-line", "connectedline = receive", "\"\" <who-desk>"),
    ] {
        let (first, second) = sites(name, more);
        let mut alice = Phone::new(first.site.sip, "alice");
        alice.must_call("who-desk");
        assert_eq!(first.database("told", "who"), told, "{name}");
        alice.hang_up();
        first.until_idle();
        second.until_idle();
    }
}

#[test]
fn rfc5456_8_6_33_causes_come_back_and_strangers_are_refused_like_those_with_a_wrong_password() {
    let (first, second) = sites("iax-causes", "");
    let mut alice = Phone::new(first.site.sip, "alice");
    for (number, status) in [("far-busy", 486), ("far-nowhere", 404)] {
        assert_eq!(alice.call(number).status(), Some(status), "{number}");
    }
    let refusals = [alice.call("bad-bob").status(), alice.call("odd-bob").status()];
    assert_eq!(refusals[0], refusals[1]);
    assert_eq!(first.database("outcome", "wrong"), first.database("outcome", "unknown"));
    alice.must_call("far-cleared");
    alice.until_hung_up();
    first.until_idle();
    second.until_idle();
}

#[test]
fn rfc5456_6_1_a_site_registers_is_called_there_and_is_known_after_a_crash() {
    let home = Site::new("iax-registrar").phone("alice");
    let away = Site::new("iax-registrant").phone("bob");
    let (one, two) = (home.sip.ip(), away.sip.ip());
    let home = home
        .add(
            "iax.conf",
            &format!(
                "[general]\nbindaddr = {one}\ndisallow = all\nallow = ulaw\n\
                 [far]\ntype = friend\nhost = dynamic\nsecret = between the two of us\ncontext = incoming\n"
            ),
        )
        .dialplan(DIALPLAN);
    let away = away
        .add(
            "iax.conf",
            &format!(
                "[general]\nbindaddr = {two}\ndisallow = all\nallow = ulaw\n\
                 register => far:between the two of us@{one}\n\
                 [far]\ntype = user\nsecret = between the two of us\ncontext = incoming\n"
            ),
        )
        .dialplan(DIALPLAN);
    let mut home = Server::start(home);
    let mut alice = Phone::new(home.site.sip, "alice");
    assert_eq!(alice.call("far-cleared").status(), Some(480), "nobody has registered");
    let away = Server::start(away);
    home.until_logged(&["Registered IAX2 'far' at "]);
    // What it was told outlives it: the other side does not register again so soon.
    home.kill_and_restart();
    assert_eq!(alice.call("far-cleared").status(), Some(200));
    alice.until_hung_up();
    home.until_idle();
    away.until_idle();
}

/// A site in a row of three: `before` may call it, and it calls `next`; it leaves calls as `transfer` says.
fn in_a_row(site: Site, before: &str, next: Option<(&str, IpAddr)>, transfer: &str) -> Site {
    let mut conf = format!(
        "[general]\nbindaddr = {}\ndisallow = all\nallow = ulaw\n\
         [{before}]\ntype = user\nsecret = between the two of us\ncontext = incoming\ntransfer = {transfer}\n",
        site.sip.ip()
    );
    for name in ["far", "next"] {
        let Some((own, to)) = next else { continue };
        conf += &format!(
            "[{name}]\ntype = peer\nhost = {to}\nusername = {own}\nsecret = between the two of us\ntransfer = {transfer}\n"
        );
    }
    site.add("iax.conf", &conf).dialplan(DIALPLAN)
}

/// Three sites in a row, of which the one in the middle leaves calls as `transfer` says, and the phones at both ends, which
/// have begun a call through it.
fn through_the_middle(name: &str, transfer: &str) -> ([Server; 3], Phone, Phone) {
    let site = |end: &str| Site::new(&format!("{name}-{end}"));
    let (first, middle, last) = (site("first").phone("alice"), site("middle"), site("last").phone("bob"));
    let (to_middle, to_last) = (("first", middle.sip.ip()), ("middle", last.sip.ip()));
    let first = Server::start(in_a_row(first, "nobody", Some(to_middle), "yes"));
    let middle = Server::start(in_a_row(middle, "first", Some(to_last), transfer));
    let last = Server::start(in_a_row(last, "middle", None, "yes"));
    let mut alice = Phone::new(first.site.sip, "alice");
    let mut bob = Phone::new(last.site.sip, "bob");
    bob.must_register();
    alice.media.speak(Speak::Tone(ALICE));
    bob.media.speak(Speak::Tone(BOB));
    alice.begin("far-via-bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    ([first, middle, last], alice, bob)
}

/// Waits until both have heard each other for a while from now on.
fn until_heard_on(alice: &Phone, bob: &Phone) {
    let (heard_there, heard_here) = (bob.media.heard().tone(ALICE), alice.media.heard().tone(BOB));
    wait::until_true("both hear each other", || {
        bob.media.heard().tone(ALICE) >= heard_there + ENOUGH
            && alice.media.heard().tone(BOB) >= heard_here + ENOUGH
    });
}

#[test]
fn rfc5456_6_7_a_site_between_two_others_leaves_a_call_that_it_only_passes_on() {
    let ([first, middle, last], mut alice, mut bob) = through_the_middle("iax-row", "yes");
    middle.until_idle();
    until_heard_on(&alice, &bob);
    bob.hang_up();
    alice.until_hung_up();
    first.until_idle();
    last.until_idle();
}

#[test]
fn rfc5456_6_7_with_mediaonly_voice_goes_directly_while_the_site_between_sees_the_call_end() {
    let ([first, middle, last], mut alice, mut bob) = through_the_middle("iax-media", "mediaonly");
    let received = || middle.json("iax2 show stats")["received"].as_u64().expect("a count");
    wait::until_true("no voice comes to the site between", || {
        let before = received();
        until_heard_on(&alice, &bob);
        // Half a second of voice both ways would be 50 datagrams.
        received() < before + 10
    });
    assert_eq!(middle.channels(), 2, "both calls are still seen");
    bob.hang_up();
    alice.until_hung_up();
    for site in [&first, &middle, &last] {
        site.until_idle();
    }
}

#[test]
fn a_reload_moves_the_address_and_calls_go_on_at_the_new_one() {
    let (mut first, mut second) = sites("iax-moves", "");
    let ports = |server: &Server| -> Vec<u16> {
        let udp = server.sockets().into_iter().filter(|(protocol, _)| *protocol == "udp");
        udp.map(|(_, address)| address.port()).filter(|port| [4569, 5036].contains(port)).collect()
    };
    assert_eq!(ports(&second), [4569]);
    let moved = second.site.text("iax.conf").replace("[general]\n", "[general]\nbindport = 5036\n");
    second.site.rewrite("iax.conf", &moved);
    second.cli("core reload");
    wait::until_true("the port is another one", || ports(&second) == [5036]);
    let host = format!("host = {}", second.site.sip.ip());
    let there = first.site.text("iax.conf").replace(&host, &format!("{host}\nport = 5036"));
    first.site.rewrite("iax.conf", &there);
    first.cli("core reload");
    let mut alice = Phone::new(first.site.sip, "alice");
    alice.must_call("far-cleared");
    alice.until_hung_up();
    first.until_idle();
    second.until_idle();
}

#[test]
fn rfc5456_8_6_16_a_site_calls_and_registers_by_its_key() {
    if !e2e::installed(&["openssl"]) {
        return;
    }
    let (home, away) = (Site::new("iax-key-home").phone("bob"), Site::new("iax-key-away").phone("alice"));
    let (one, two) = (home.sip.ip(), away.sip.ip());
    for site in [&home, &away] {
        std::fs::create_dir_all(site.place.join("key/keys")).expect("a folder");
    }
    let (private, public) = (away.place.join("key/keys/away.key"), home.place.join("key/keys/away.pub"));
    let openssl = |words: &[&std::ffi::OsStr]| {
        let done = std::process::Command::new("openssl").args(words).output().expect("openssl");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    openssl(&["genrsa".as_ref(), "-out".as_ref(), private.as_ref(), "1024".as_ref()]);
    let (into, out) = ("-in".as_ref(), "-out".as_ref());
    openssl(&["rsa".as_ref(), into, private.as_ref(), "-pubout".as_ref(), out, public.as_ref()]);
    let home = home
        .add(
            "iax.conf",
            &format!(
                "[general]\nbindaddr = {one}\ndisallow = all\nallow = ulaw\n\
                 [far]\ntype = friend\nhost = dynamic\nauth = rsa\ninkeys = away\ncontext = incoming\n"
            ),
        )
        .dialplan(DIALPLAN);
    let away = away
        .add(
            "iax.conf",
            &format!(
                "[general]\nbindaddr = {two}\ndisallow = all\nallow = ulaw\n\
                 register => far:[away]@{one}\n\
                 [far]\ntype = peer\nhost = {one}\nusername = far\nauth = rsa\noutkey = away\n"
            ),
        )
        .dialplan(DIALPLAN);
    let home = Server::start(home);
    let away = Server::start(away);
    home.until_logged(&["Registered IAX2 'far' at "]);
    assert_eq!(home.json("keys show")["keys"][0]["status"], "Loaded");
    let mut alice = Phone::new(away.site.sip, "alice");
    alice.must_call("far-cleared");
    alice.until_hung_up();
    home.until_idle();
    away.until_idle();
}

#[test]
fn rfc5456_6_8_a_switch_dials_what_another_site_has_and_nothing_else() {
    let (mut first, second) = sites("iax-switch", "");
    let plan = "[test]\nexten => own,1,Answer()\n same => n,Hangup()\n\
                exten => menu,1,Answer()\n same => n,WaitExten(20)\n\
                switch => IAX2/far/incoming\n";
    first.site.rewrite("extensions.conf", plan);
    first.cli("core reload");
    let mut alice = Phone::new(first.site.sip, "alice");
    let mut bob = Phone::new(second.site.sip, "bob");
    bob.must_register();
    alice.must_call("own");
    alice.until_hung_up();
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    bob.hang_up();
    alice.until_hung_up();
    for (number, status) in [("nowhere", 404), ("busy", 486)] {
        assert_eq!(alice.call(number).status(), Some(status), "{number}");
    }
    // Digits that are pressed are asked for one after the other; 42 is there, 4 is not.
    alice.must_call("menu");
    alice.media.type_digits("42");
    assert_eq!(second.database("typed", "at"), "42");
    alice.until_hung_up();
    first.until_idle();
    second.until_idle();
}
