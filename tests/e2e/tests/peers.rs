//! Peers that are no simple phones: trunks that ask for passwords, phones behind NAT, contacts that come and go,
//! digits in other clothes.

use e2e::{Phone, Server, Site, Speak, address, wait};
use std::net::SocketAddr;
use std::time::Duration;

const DIALPLAN: &str = "
[test]
exten => echo,1,Answer()
 same => n,Echo()
exten => read,1,Answer()
 same => n,Read(TYPED,,3,,1,10)
 same => n,Set(DB(typed/read)=${TYPED})
 same => n,Hangup()
exten => _X.,1,Dial(PJSIP/${EXTEN}@carrier,10)
exten => bob,1,Dial(PJSIP/bob,10)
";

/// An endpoint at the address of a phone of ours that asks for a password.
fn carrier(phone: &Phone) -> String {
    let at = phone.local();
    format!(
        "[carrier]\ntype=endpoint\ncontext=test\ndisallow=all\nallow=ulaw\naors=carrier\noutbound_auth=carrier\n\
         from_user=account\n\
         [carrier]\ntype=aor\ncontact=sip:{at}\n\
         [carrier]\ntype=auth\nauth_type=userpass\nusername=account\npassword={}\n",
        e2e::SECRET
    )
}

#[test]
fn a_call_to_a_trunk_answers_its_challenge() {
    let site = Site::new("trunk").phone("alice").dialplan(DIALPLAN);
    let mut trunk = Phone::new(site.sip, "trunk");
    let site = site.add("pjsip.conf", &carrier(&trunk));
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Tone(440.0));
    alice.begin("5551234");
    let first = trunk.expect("INVITE");
    assert!(first.start.starts_with("INVITE sip:5551234@"), "{}", first.start);
    assert!(first.must("From").contains("sip:account@"), "{}", first.must("From"));
    let invite = trunk.challenge(&first, "account");
    trunk.respond(&invite, 180, "Ringing", false);
    trunk.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    wait::until_true("the trunk hears alice", || trunk.media.heard().tone(440.0) >= 500);
    alice.hang_up();
    trunk.until_hung_up();
    server.until_idle();
}

#[test]
fn rfc3261_10_2_2_a_server_that_is_stopped_takes_its_registration_back() {
    let site = Site::new("goodbye").dialplan(DIALPLAN);
    let mut registrar = Phone::new(site.sip, "registrar");
    let line = format!(
        "[line]\ntype=registration\nserver_uri=sip:{}\nclient_uri=sip:account@carrier.example\n",
        registrar.local()
    );
    let mut server = Server::start(site.add("pjsip.conf", &line));
    let register = registrar.expect("REGISTER");
    assert_eq!(register.must("Expires"), "3600");
    registrar.grant(&register, "Expires: 3600\r\n");
    wait::until_true("it is registered", || server.cli("pjsip show registrations").contains("Registered"));
    server.signal("TERM");
    let goodbye = registrar.expect("REGISTER");
    assert_eq!(goodbye.must("Expires"), "0");
    assert_eq!(goodbye.must("Contact"), register.must("Contact"));
    registrar.grant(&goodbye, "");
    wait::until_true("it has ended", || server.ended().is_some());
}

#[test]
fn a_caller_that_challenges_a_bye_is_told_no_password_where_the_endpoint_is_strict() {
    // Whoever was not called by us may not ask for what we know about others, whatever realm it names.
    let site = Site::new("leak").dialplan(DIALPLAN);
    let mut trunk = Phone::new(site.sip, "trunk");
    let at = trunk.local().ip();
    let identify = format!("[carrier]\ntype=identify\nendpoint=carrier\nmatch={at}\n");
    let strict = carrier(&trunk).replacen("type=endpoint\n", "type=endpoint\noutbound_auth_strict=yes\n", 1);
    let site = site.add("pjsip.conf", &strict).add("pjsip.conf", &identify);
    let server = Server::start(site);
    trunk.must_call("echo");
    server.cli("channel request hangup all");
    let bye = trunk.expect("BYE");
    assert!(bye.header("Authorization").is_none(), "{}", bye.text());
    trunk.demand(&bye);
    server.until_idle();
    let more = trunk.next(Duration::from_millis(300));
    assert!(more.is_none(), "{}", more.map(|message| message.text()).unwrap_or_default());
}

#[test]
fn endpoints_are_told_by_address_and_by_header() {
    let site = Site::new("identify").phone("alice").dialplan(DIALPLAN);
    let (by_address, elsewhere) = (address(), address());
    let endpoint = |name: &str, how: &str| {
        format!(
            "[{name}]\ntype=endpoint\ncontext=test\ndisallow=all\nallow=ulaw\naors={name}\n[{name}]\ntype=aor\n\
             [{name}]\ntype=identify\nendpoint={name}\n{how}\n"
        )
    };
    let site = site
        .add("pjsip.conf", "[global]\ntype=global\nendpoint_identifier_order=ip,username,header\n")
        .add("pjsip.conf", &endpoint("known", &format!("match={by_address}")))
        .add("pjsip.conf", &endpoint("marked", "match_header=Contact: /sip:marked@/"));
    let server = Server::start(site);
    for (ip, name, expected) in [
        (by_address, "whoever", Some(200)),
        (elsewhere, "marked", Some(200)),
        (elsewhere, "whoever", Some(401)),
    ] {
        let mut phone = Phone::at(ip, server.site.sip, name);
        assert_eq!(phone.call("echo").status(), expected, "{name} from {ip}");
        if expected == Some(200) {
            phone.hang_up();
        }
    }
    server.until_idle();
}

#[test]
fn a_phone_behind_nat_is_called_where_it_came_from() {
    let site = Site::new("nat")
        .phone("alice")
        .phone_with("bob", "rewrite_contact=yes\nforce_rport=yes\nrtp_symmetric=yes\nallow=ulaw\n")
        .dialplan(DIALPLAN);
    let server = Server::start(site);
    // Bob says an address that nobody can reach in Contact and in its descriptions.
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.claims = Some("192.0.2.99:5999".parse::<SocketAddr>().unwrap());
    bob.must_register();
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Tone(440.0));
    bob.media.speak(Speak::Tone(750.0));
    alice.begin("bob");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    wait::until_true("alice hears bob", || alice.media.heard().tone(750.0) >= 500);
    wait::until_true("bob hears alice", || bob.media.heard().tone(440.0) >= 500);
    alice.hang_up();
    bob.until_hung_up();
}

#[test]
fn a_contact_that_answers_no_options_is_unavailable_and_comes_back() {
    let site = Site::new("qualify")
        .phone("bob")
        .add("pjsip.conf", "[bob](+type=aor)\nqualify_frequency=1\nqualify_timeout=3.0\n");
    let server = Server::start(site);
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    let contacts = || server.cli("pjsip show contacts");
    // While nobody reads its socket the phone answers nothing.
    wait::until_true("unavailable", || contacts().contains("Unavail"));
    wait::until_true("available again", || {
        bob.next(Duration::from_millis(50));
        contacts().contains("Avail")
    });
}

#[test]
fn digits_are_read_from_info_and_from_the_audio() {
    let site = Site::new("digits")
        .phone_with("alice", "dtmf_mode=info\nallow=ulaw\n")
        .phone_with("bob", "dtmf_mode=inband\nallow=ulaw\n")
        .dialplan(DIALPLAN);
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("read");
    for digit in ["7", "0", "#"] {
        let answer = alice.info(&format!("Signal={digit}\r\nDuration=160\r\n"));
        assert_eq!(answer.status(), Some(200), "{}", answer.text());
    }
    assert_eq!(server.database("typed", "read"), "70");
    alice.until_hung_up();
    server.cli("database del typed read");

    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_call("read");
    for (low, high) in [(697.0, 1209.0), (770.0, 1336.0), (941.0, 1477.0)] {
        for speak in [Speak::Tones(low, high), Speak::Silence] {
            bob.media.speak(speak);
            // Six packets of each: 120 ms.
            let sent = bob.media.sent();
            wait::until_true("six packets are sent", || bob.media.sent() >= sent + 6);
        }
    }
    assert_eq!(server.database("typed", "read"), "15");
    bob.until_hung_up();
}

#[test]
fn a_call_on_ipv6_is_heard() {
    let server = Server::start(Site::on_ipv6("six").phone("alice").dialplan(DIALPLAN));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.media.speak(Speak::Tone(440.0));
    alice.must_call("echo");
    wait::until_true("alice hears herself", || alice.media.heard().tone(440.0) >= 500);
    alice.hang_up();
}
