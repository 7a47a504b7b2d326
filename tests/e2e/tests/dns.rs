//! Servers that the DNS names (RFC 3263): a name server of the test's own, and carriers of which the first ones fail.

use e2e::{NameServer, Phone, Server, Site};

/// A site with a carrier whose contact is a bare name.
fn site(name: &str, more: &str) -> Site {
    Site::new(name)
        .phone("alice")
        .add(
            "pjsip.conf",
            &format!(
                "[carrier]\ntype=endpoint\ncontext=test\ndisallow=all\nallow=ulaw\naors=carrier\n\
                 [carrier]\ntype=aor\ncontact=sip:carrier.example\n{more}"
            ),
        )
        .dialplan("[test]\nexten => _9.,1,Dial(PJSIP/${EXTEN:1}@carrier,60)\n same => n,Hangup()\n")
}

/// A line of the zone: the server is at this place of the list.
fn service(rank: u16, name: &str, phone: &Phone) -> String {
    let at = phone.local();
    format!("_sip._udp.carrier.example SRV {rank} 0 {} {name}\n{name} A {}\n", at.port(), at.ip())
}

#[test]
fn rfc3263_4_3_a_call_goes_on_to_the_server_that_answers() {
    // A server that is silent is given up after timer B: long enough for one that is only slow.
    let site = site("dns-failover", "[system]\ntype=system\ntimer_b=8000\n");
    let [mut refusing, mut good] = ["first", "second"].map(|name| Phone::new(site.sip, name));
    // Nobody listens at the best one.
    let dead = Phone::new(site.sip, "dead");
    let zone = [
        "carrier.example NAPTR 10 10 s SIP+D2U - _sip._udp.carrier.example\n".to_owned(),
        service(10, "dead.carrier.example", &dead),
        service(20, "busy.carrier.example", &refusing),
        service(30, "good.carrier.example", &good),
    ];
    drop(dead);
    let dns = NameServer::start(&zone.concat());
    let server = Server::start(site.add("resolver_unbound.conf", &dns.configuration()));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.begin("94930");
    let refused = refusing.expect("INVITE");
    refusing.refuse(&refused, 503, "Service Unavailable");
    let invite = good.ring();
    for name in ["Call-ID", "CSeq", "From", "To"] {
        assert_eq!(invite.must(name), refused.must(name), "the same request: {name}");
    }
    assert_ne!(invite.branch(), refused.branch(), "in a transaction of its own");
    good.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    alice.hang_up();
    good.until_hung_up();
    // Those that failed come last for a while.
    alice.begin("94931");
    let invite = good.ring();
    good.refuse(&invite, 486, "Busy Here");
    assert_eq!(alice.outcome().status(), Some(486));
    let asked = dns.asked();
    for question in ["NAPTR carrier.example", "SRV _sip._udp.carrier.example", "A good.carrier.example"] {
        assert!(asked.iter().any(|asked| asked == question), "{question}: {asked:?}");
    }
    server.until_idle();
}

#[test]
fn rfc3261_18_4_a_server_that_is_not_there_is_passed_over_as_soon_as_the_network_says_so() {
    // Silence would be waited for during an hour.
    let site = site("dns-icmp", "[system]\ntype=system\ntimer_b=3600000\n");
    let (mut good, dead) = (Phone::new(site.sip, "good"), Phone::new(site.sip, "dead"));
    let zone = [service(10, "dead.carrier.example", &dead), service(20, "good.carrier.example", &good)];
    drop(dead);
    let dns = NameServer::start(&zone.concat());
    let server = Server::start(site.add("resolver_unbound.conf", &dns.configuration()));
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.begin("94930");
    let invite = good.ring();
    good.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    alice.hang_up();
    good.until_hung_up();
    server.until_idle();
}

#[test]
fn rfc3263_4_2_an_account_is_registered_where_its_domain_says() {
    let site = site(
        "dns-register",
        "[line]\ntype=registration\nserver_uri=sip:carrier.example\nclient_uri=sip:account@carrier.example\n\
         contact_user=4930\nretry_interval=5\n",
    );
    let [mut refusing, mut registrar] = ["first", "second"].map(|name| Phone::new(site.sip, name));
    let zone =
        [service(1, "busy.carrier.example", &refusing), service(2, "good.carrier.example", &registrar)];
    let dns = NameServer::start(&zone.concat());
    let server = Server::start(site.add("resolver_unbound.conf", &dns.configuration()));
    let refused = refusing.expect("REGISTER");
    refusing.respond(&refused, 503, "Service Unavailable", false);
    let register = registrar.expect("REGISTER");
    assert_eq!(register.must("CSeq"), refused.must("CSeq"), "the same request");
    registrar.respond(&register, 200, "OK", false);
    e2e::wait::until_true("the account is registered", || {
        server.cli("pjsip show registrations").contains("Registered")
    });
}
