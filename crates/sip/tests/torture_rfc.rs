//! The torture messages of RFC 4475 and RFC 5118, each with the verdict we hold to be right.

mod torture_support;

use sip::{Index, Invalid, Message, Method};
use torture_support::{bad_input, exercise};

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Good for transactions; what the application then answers is another question.
    Good,
    Answer(u16),
    Drop,
    NotSip,
}
use Verdict::{Answer, Drop, Good, NotSip};

fn verdict(bytes: &[u8]) -> Verdict {
    let mut index = Index::new();
    match Message::parse(bytes, &mut index).map(|message| message.validate()) {
        Ok(Ok(())) => Good,
        Ok(Err(Invalid::Answer(status, _))) => Answer(status.code()),
        Ok(Err(Invalid::Drop(_))) => Drop,
        Err(_) => NotSip,
    }
}

fn check(set: &str, table: &[(&str, Verdict)]) {
    let Some(folder) = bad_input().map(|folder| folder.join(set)) else { return };
    for (name, expected) in table {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        assert_eq!(verdict(&bytes), *expected, "{set}/{name}");
        exercise(&bytes);
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), table.len(), "every file of {set} has its row");
}

/// Valid messages (§3.1.1) and well-formed ones for the application (§3.2 to 3.4) pass; those that must be refused are.
/// Of those where the RFC lets the receiver be liberal we accept what cannot be misread: blanks inside angle
/// brackets, a Date in a foreign zone, a branch that is the bare cookie, a name without its quotes.
#[test]
fn rfc_4475() {
    check(
        "rfc4475",
        &[
            ("wsinv.dat", Good),
            ("intmeth.dat", Good),
            ("esc01.dat", Good),
            ("escnull.dat", Good),
            ("esc02.dat", Good),
            ("lwsdisp.dat", Good),
            ("longreq.dat", Good),
            ("dblreq.dat", Good),
            ("semiuri.dat", Good),
            ("transports.dat", Good),
            ("mpart01.dat", Good),
            ("unreason.dat", Good),
            ("noreason.dat", Good),
            ("badinv01.dat", Answer(400)),
            ("clerr.dat", Answer(400)),
            ("ncl.dat", Answer(400)),
            ("scalar02.dat", Answer(400)),
            ("scalarlg.dat", Drop),
            ("quotbal.dat", Answer(400)),
            ("ltgtruri.dat", Answer(400)),
            ("lwsruri.dat", Answer(400)),
            ("lwsstart.dat", Answer(400)),
            ("trws.dat", Answer(400)),
            ("escruri.dat", Answer(400)),
            ("baddate.dat", Good),
            ("regbadct.dat", Answer(400)),
            ("badaspec.dat", Good),
            ("baddn.dat", Good), // this copy ends without the empty line
            ("badvers.dat", Answer(505)),
            ("mismatch01.dat", Answer(400)),
            ("mismatch02.dat", Answer(400)),
            ("bigcode.dat", Drop),
            ("badbranch.dat", Good),
            ("insuf.dat", Answer(400)),
            ("unkscm.dat", Answer(416)),
            ("novelsc.dat", Answer(416)),
            ("unksm2.dat", Answer(416)),
            ("bext01.dat", Good),
            ("invut.dat", Good),
            ("regaut01.dat", Good),
            ("multi01.dat", Answer(400)),
            ("mcl01.dat", Answer(400)),
            ("bcast.dat", Good),
            ("zeromf.dat", Good),
            ("cparam01.dat", Good),
            ("cparam02.dat", Good),
            ("regescrt.dat", Good),
            ("sdp01.dat", Good),
            ("inv2543.dat", Answer(400)), // it says no Contact, which makes no dialog
            ("test.dat", NotSip),
        ],
    );
}

#[test]
fn rfc_5118() {
    check(
        "rfc5118",
        &[
            ("ipv6-good", Good),
            ("ipv6-bad", Answer(400)),
            ("port-ambiguous", Good),
            ("port-unambiguous", Good),
            ("via-received-param-with-delim", Good),
            ("via-received-param-no-delim", Good),
            ("ipv6-in-sdp", Good),
            ("mult-ip-in-header", Good),
            ("mult-ip-in-sdp", Good),
            ("ipv4-mapped-ipv6", Good),
            ("ipv6-correct-abnf-2-colons", Good),
            ("ipv6-bug-abnf-3-colons", Good),
        ],
    );
}

/// RFC 4475 §3.1.1.1: the message that uses every freedom of the grammar still says what it says.
#[test]
fn rfc_4475_wsinv_is_read_in_full() {
    let Some(folder) = bad_input() else { return };
    let bytes = std::fs::read(folder.join("rfc4475/wsinv.dat")).unwrap();
    let mut index = Index::new();
    let message = Message::parse(&bytes, &mut index).unwrap();
    assert_eq!(message.from_tag(), Some(&b"98asjd8"[..]));
    assert_eq!(message.from().unwrap().display_name().as_ref(), b"J Rosenberg \\\"");
    assert_eq!(message.to_tag(), Some(&b"1918181833n"[..]));
    assert_eq!(message.max_forwards(), Some(68));
    assert_eq!(message.cseq().map(|cseq| (cseq.number, cseq.method)), Some((9, Method::Invite)));
    let branches: Vec<_> = message.vias().map(|via| via.branch().unwrap()).collect();
    assert_eq!(branches, [&b"390skdjuw"[..], b"z9hG4bK9ikj8", b"z9hG4bK30239"]);
    let contact = message.contact().unwrap();
    assert_eq!((contact.q(), contact.params.get(b"newparam")), (Some(330), Some(&b"newvalue"[..])));
    assert_eq!(message.routes().count(), 1);
    assert_eq!(message.sdp().map(<[u8]>::len), Some(150));
}

/// RFC 5118 §4.5: an IPv6 address in `received` counts with and without brackets.
#[test]
fn rfc_5118_received_is_the_same_address_in_both_forms() {
    let Some(folder) = bad_input() else { return };
    for name in ["via-received-param-with-delim", "via-received-param-no-delim"] {
        let bytes = std::fs::read(folder.join("rfc5118").join(name)).unwrap();
        let mut index = Index::new();
        let message = Message::parse(&bytes, &mut index).unwrap();
        assert_eq!(message.top_via().unwrap().received(), "2001:db8::9:255".parse().ok(), "{name}");
    }
}
