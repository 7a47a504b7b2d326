//! Numbers that the DNS knows: ENUMLOOKUP() asks a name server of the test's own (RFC 6116).

use e2e::{NameServer, Phone, Server, Site};

#[test]
fn rfc6116_a_number_is_dialled_where_the_dns_says_it_is() {
    let dns =
        NameServer::start(r"0.3.9.4.e164.arpa NAPTR 10 20 u E2U+sip !^\+49(.*)$!sip:bob\1@example.com! -");
    let site = Site::new("enum").phone("alice").phone("bob30").dialplan(
        "[test]
exten => _+X.,1,Set(uri=${ENUMLOOKUP(${EXTEN})})
 same => n,Set(DB(enum/${EXTEN:1})=${ENUMLOOKUP(${EXTEN},sip,c)} ${uri} ${ENUMLOOKUP(${EXTEN},ALL)})
 same => n,GotoIf($[\"${uri}\" = \"\"]?nobody)
 same => n,Dial(PJSIP/${CUT(uri,@,1)},20)
 same => n,Hangup()
 same => n(nobody),Busy(1)
",
    );
    let server = Server::start(site.add("resolver_unbound.conf", &dns.configuration()));
    let mut alice = Phone::new(server.site.sip, "alice");
    let mut bob = Phone::new(server.site.sip, "bob30");
    bob.must_register();
    alice.begin("+4930");
    let invite = bob.ring();
    bob.take(&invite);
    assert_eq!(alice.outcome().status(), Some(200));
    assert_eq!(server.database("enum", "4930"), "1 bob30@example.com sip:bob30@example.com");
    alice.hang_up();
    // The answer is kept: three calls of the function and a second call ask once.
    alice.begin("+4930");
    let invite = bob.ring();
    bob.refuse(&invite, 486, "Busy Here");
    assert_eq!(alice.outcome().status(), Some(486));
    assert_eq!(alice.call("+4931").status(), Some(486));
    assert_eq!(server.database("enum", "4931"), "0");
    assert_eq!(dns.asked(), ["NAPTR 0.3.9.4.e164.arpa", "NAPTR 1.3.9.4.e164.arpa"]);
    server.until_idle();
}
