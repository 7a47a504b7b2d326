//! Headers of calls by the names that older dialplans use.

use e2e::{Phone, Server, Site};

#[test]
fn headers_that_sipaddheader_added_are_in_the_invite_until_they_are_removed() {
    let site = Site::new("old-headers")
        .phone_with("alice", "allow=ulaw\n")
        .phone_with("bob", "allow=ulaw\n")
        .dialplan(
            "[test]
exten => add,1,SIPAddHeader(X-Door: red: and blue)
 same => n,SIPAddHeader(X-Window: open)
 same => n,Dial(PJSIP/bob,20)
exten => one,1,SIPAddHeader(X-Door: red)
 same => n,SIPAddHeader(Y-Window: open)
 same => n,SIPRemoveHeader(X-)
 same => n,Dial(PJSIP/bob,20)
exten => all,1,SIPAddHeader(X-Door: red)
 same => n,SIPRemoveHeader()
 same => n,Dial(PJSIP/bob,20)
",
        );
    let server = Server::start(site);
    let mut alice = Phone::new(server.site.sip, "alice");
    let mut bob = Phone::new(server.site.sip, "bob");
    bob.must_register();
    for (exten, door, window) in
        [("add", Some("red: and blue"), None), ("one", None, Some("open")), ("all", None, None)]
    {
        alice.begin(exten);
        let invite = bob.ring();
        assert_eq!(invite.header("X-Door"), door, "{exten}");
        assert_eq!(invite.header("Y-Window"), window, "{exten}");
        bob.refuse(&invite, 486, "Busy Here");
        alice.outcome();
    }
    server.until_idle();
}
