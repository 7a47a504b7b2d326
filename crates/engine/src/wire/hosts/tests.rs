//! What is asked for grows with what the DNS has said.

use std::collections::BTreeSet;

use super::*;
use crate::wire::testing::{Site, hosts};

#[test]
fn rfc3263_4_the_servers_of_a_matched_host_are_asked_for_as_they_become_known() {
    let service = |kind: &str| format!("Srv {kind}.pbx.example");
    let services = [service("_sip._udp"), service("_sip._tcp"), service("_sips._tcp")];
    let own = ["Addresses pbx.example".to_owned()];
    for (lines, before, after) in [
        ("", [&own[..], &services].concat(), vec!["Addresses sbc.pbx.example".to_owned()]),
        ("srv_lookups=no\n", own.to_vec(), vec![]),
    ] {
        let site = Site::new(&format!(
            "[e]\ntype=endpoint\n[i]\ntype=identify\nendpoint=e\nmatch=PBX.example:5060,192.0.2.1\n{lines}"
        ));
        let snapshot = site.snapshot();
        let asked = |hosts: &Hosts| -> BTreeSet<String> {
            let text = |question: &Question| format!("{:?} {}", question.kind, question.name);
            questions(&snapshot, hosts).iter().map(text).collect()
        };
        let first = asked(&Hosts::default());
        assert_eq!(first, before.into_iter().collect(), "{lines}");
        let more = asked(&hosts());
        assert_eq!(more.difference(&first).cloned().collect::<Vec<_>>(), after, "{lines}");
    }
}
