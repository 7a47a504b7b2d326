//! Binds keep their numbers, and two transports share an address only where clients can tell them apart.

use std::collections::BTreeSet;

use super::*;
use crate::wire::sip::sip_config;
use crate::wire::sip::tests::config;
use crate::wire::testing::Site;

#[test]
fn binds_keep_their_numbers_when_others_come_and_go() {
    let site = |text: &str| Site::new(text).snapshot();
    let binds_of = |text: &str, before: &[Bind]| {
        sip_config(&site(text), &Hosts::default(), before, &mut Findings::new()).binds
    };
    let m = "[m]\ntype=transport\nbind=127.0.0.1:5070\n";
    let first = binds_of(m, &[]);
    let more = format!(
        "[a]\ntype=transport\nprotocol=tcp\nbind=127.0.0.1:5070\n{m}[z]\ntype=transport\nbind=127.0.0.1:5071\n"
    );
    let second = binds_of(&more, &first);
    let id = |binds: &[Bind], name: &str| binds.iter().find(|bind| bind.name == name).unwrap().id;
    assert_eq!(id(&first, "m"), id(&second, "m"));
    let numbers: BTreeSet<u16> = second.iter().map(|bind| bind.id.0).collect();
    assert_eq!(numbers.len(), 3);
    // Gone and another in its place: the old number is not used again in the same reload.
    let third = binds_of("[n]\ntype=transport\nbind=127.0.0.1:5099\n", &first);
    assert_ne!(id(&third, "n"), id(&first, "m"));
}

#[test]
fn two_transports_at_one_address_are_an_error_with_its_line() {
    let (config, findings) =
        config("[a]\ntype=transport\nbind=127.0.0.1:5070\n[b]\ntype=transport\nbind=127.0.0.1:5070\n");
    assert_eq!(config.binds.len(), 1);
    let said: Vec<String> = findings.iter().map(crate::reload::one_line).collect();
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("pjsip.conf:6: error: transport 'b' listens where 'a' does"), "{said:?}");
    assert!(said[0].ends_with("; give one of them another bind="), "{said:?}");
    assert!(!said[0].contains('\n'));
}

#[test]
fn rfc6066_3_transports_under_tls_share_an_address_when_clients_can_tell_them_apart_and_prove_the_same() {
    let transport = |name: &str, lines: &str| {
        format!("[{name}]\ntype=transport\nprotocol=tls\nbind=127.0.0.1:5071\n{lines}\n")
    };
    for (name, first, second, said) in [
        ("two certificates", "cert_file=/a", "cert_file=/b", None),
        (
            "of their own authorities, which clients need not prove",
            "cert_file=/a",
            "cert_file=/b\nca_list_file=/l",
            None,
        ),
        ("one certificate", "cert_file=/a", "", Some("give each of them a cert_file")),
        (
            "one asks clients for more",
            "cert_file=/a",
            "cert_file=/b\nrequire_client_cert=yes",
            Some("need the same"),
        ),
        ("other versions", "cert_file=/a\nmethod=tlsv1_3", "cert_file=/b", Some("need the same")),
        (
            "other suites",
            "cert_file=/a",
            "cert_file=/b\ncipher=ECDHE-RSA-AES128-GCM-SHA256",
            Some("need the same"),
        ),
    ] {
        // The order is that of the file, not of names.
        let (config, findings) = config(&(transport("z", first) + &transport("a", second)));
        let names: Vec<&str> = config.binds.iter().map(|bind| &*bind.name).collect();
        let lines: Vec<String> = findings.iter().map(crate::reload::one_line).collect();
        match said {
            None => assert_eq!((names, lines.len()), (vec!["z", "a"], 0), "{name}: {lines:?}"),
            Some(said) => {
                assert_eq!(names, ["z"], "{name}");
                assert!(lines.iter().any(|line| line.contains(said)), "{name}: {lines:?}");
            }
        }
    }
}

#[test]
fn transports_that_share_an_address_keep_their_own_numbers_over_a_reload() {
    let tls = |name: &str| {
        format!("[{name}]\ntype=transport\nprotocol=tls\nbind=127.0.0.1:5071\ncert_file=/{name}\n")
    };
    let read = |text: &str, before: &[Bind]| {
        sip_config(&Site::new(text).snapshot(), &Hosts::default(), before, &mut Findings::new()).binds
    };
    let id = |binds: &[Bind], name: &str| binds.iter().find(|bind| bind.name == name).map(|bind| bind.id);
    let first = read(&(tls("a") + &tls("b")), &[]);
    let turned = read(&(tls("b") + &tls("a")), &first);
    let renamed = read(&(tls("c") + &tls("b")), &first);
    for name in ["a", "b"] {
        assert_eq!(id(&first, name), id(&turned, name), "{name}");
    }
    assert_eq!((id(&renamed, "c"), id(&renamed, "b")), (id(&first, "a"), id(&first, "b")));
}
