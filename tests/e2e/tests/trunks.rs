//! Carriers: registration, passwords, reliable ringing, session timers, redirection, against SIPp.

use e2e::{Server, Sipp, Site, installed, wait};
use std::net::SocketAddr;

/// A site with a carrier at this address; calls to `9…` go there and calls from there are answered after early media.
fn site(name: &str, carrier: SocketAddr, endpoint: &str) -> Site {
    Site::new(name)
        .phone("alice")
        .add(
            "pjsip.conf",
            &format!(
                "[carrier]\ntype=endpoint\ncontext=incoming\ndisallow=all\nallow=ulaw\naors=carrier\noutbound_auth=account\n\
                 send_pai=yes\nfrom_domain=carrier.example\n{endpoint}\n\
                 [carrier]\ntype=aor\ncontact=sip:{carrier}\n\
                 [carrier]\ntype=identify\nendpoint=carrier\nmatch={}\n\
                 [account]\ntype=auth\nauth_type=userpass\nusername=account\npassword=secret of the account\n\
                 realm=carrier.example\n",
                carrier.ip()
            ),
        )
        .dialplan(
            "[test]\nexten => _9.,1,Set(CALLERID(num)=0301234)\n same => n,Dial(PJSIP/${EXTEN:1}@carrier,20)\n\
             [incoming]\nexten => 4930,1,Set(DB(t/by)=${REDIRECTING(from-num)} ${REDIRECTING(reason)})\n same => n,Progress()\n\
             same => n,Answer()\n same => n,Wait(20)\n",
        )
}

/// An address of its own for the carrier.
fn address() -> SocketAddr {
    SocketAddr::new(e2e::address(), 5060)
}

#[test]
fn rfc3261_10_an_account_is_registered_proved_and_refreshed() {
    if !installed(&["sipp"]) {
        return;
    }
    let carrier = address();
    let site = site("carrier-registers", carrier, "").add(
        "pjsip.conf",
        &format!(
            "[line]\ntype=registration\nserver_uri=sip:{carrier}\nclient_uri=sip:account@carrier.example\n\
             outbound_auth=account\ncontact_user=4930\nline=yes\nendpoint=carrier\nretry_interval=5\n"
        ),
    );
    let registrar = Sipp::new("registrar.xml", site.sip)
        .at(carrier.ip(), carrier.port())
        .user("account")
        .secret("secret of the account")
        .start();
    let server = Server::start(site);
    wait::until_true("the account is registered", || {
        server.cli("pjsip show registrations").contains("Registered")
    });
    registrar.finish();
    let shown = server.cli("pjsip show registration line");
    assert!(!shown.contains("secret of the account"), "{shown}");
}

#[test]
fn rfc3262_and_rfc4028_a_call_to_a_carrier_is_proved_acknowledged_and_refreshed() {
    if !installed(&["sipp"]) {
        return;
    }
    let carrier = address();
    let site = site("carrier-called", carrier, "");
    let server = Server::start(site);
    let callee = Sipp::new("carrier.xml", server.site.sip).at(carrier.ip(), carrier.port()).start();
    Sipp::new("call.xml", server.site.sip).dials("9030999").with("TALK", "1500").run();
    callee.finish();
    server.until_idle();
}

#[test]
fn rfc3262_a_carrier_that_requires_reliable_ringing_gets_it() {
    if !installed(&["sipp"]) {
        return;
    }
    let carrier = address();
    let server = Server::start(site("carrier-calls", carrier, ""));
    Sipp::new("carrier_calls.xml", server.site.sip).at(carrier.ip(), carrier.port()).dials("4930").run();
    assert_eq!(server.database("t", "by"), "4930 cfb");
    server.until_idle();
}

#[test]
fn rfc3261_8_1_3_4_a_call_that_a_carrier_sends_elsewhere_goes_there() {
    if !installed(&["sipp"]) {
        return;
    }
    let (carrier, there) = (address(), address());
    let server = Server::start(site("carrier-moves", carrier, "redirect_method=uri_pjsip\n"));
    let first = Sipp::new("callee_elsewhere.xml", server.site.sip)
        .at(carrier.ip(), carrier.port())
        .with("THERE", &there.to_string())
        .start();
    let second = Sipp::new("callee_answers.xml", server.site.sip).at(there.ip(), there.port()).start();
    Sipp::new("call.xml", server.site.sip).dials("9030999").with("TALK", "300").run();
    first.finish();
    second.finish();
    server.until_idle();
}

#[test]
fn a_call_with_a_password_an_identity_and_a_session_timer_is_answered_with_all_of_them() {
    if !installed(&["sipp"]) {
        return;
    }
    let site = Site::new("identity").phone_with("alice", "send_pai=yes\ntrust_id_inbound=yes\n").dialplan(
        "[test]\nexten => 100,1,Set(DB(t/who)=${CALLERID(all)})\n same => n,Set(CONNECTEDLINE(all,i)=\"Hall\" <100>)\n\
         same => n,Answer()\n same => n,Wait(1)\n same => n,Hangup()\n",
    );
    let server = Server::start(site);
    Sipp::new("call_with_identity.xml", server.site.sip).run();
    // What the site says of the phone comes before what the phone says of itself.
    assert_eq!(server.database("t", "who"), "\"Phone alice\" <alice>");
    server.until_idle();
}
