//! Any Identity and Date. Oracles: nothing is proved without a right signature, only acceptable URLs are asked for, and what
//! we write is read back.
#![no_main]

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use stir::{
    Authority, Begun, Call, Certificate, FailureAction, Fetching, Verdict, Verification, begin, is_acceptable,
    read_date,
};

struct Trust;

impl Authority for Trust {
    fn trusts(&self, _: &Certificate, _: u64) -> bool {
        true
    }
    fn verifies(&self, _: &[u8], _: &[u8], signature: &[u8]) -> bool {
        // One of a right length.
        signature.len() == 64
    }
}

fuzz_target!(|input: (u64, bool, &str, &str, &str)| {
    let (now, relaxed, caller, identity, date) = input;
    let now = now % 253_402_300_800;
    let rules = Verification {
        authority: Rc::new(Trust),
        fetching: Fetching {
            within: Duration::ZERO,
            allows: Arc::new(|_| false),
            folder: Default::default(),
            keep: Duration::ZERO,
        },
        max_iat_age: u64::MAX / 2,
        max_date_age: u64::MAX / 2,
        ignores_date: relaxed,
        any_port_and_scheme: relaxed,
        any_path: relaxed,
        failure_action: FailureAction::Continue,
        stir_reasons: false,
    };
    if let Some(at) = read_date(date) {
        assert_eq!(read_date(&stir::date_header(at % 253_402_300_800)), Some(at % 253_402_300_800));
    }
    let call = Call { caller, identities: &[identity, identity], date: Some(date) };
    match begin(&call, &rules, now) {
        Begun::Failed(outcome) => assert_ne!(outcome.verdict, Verdict::Success),
        Begun::Needs(pending) => {
            assert!(is_acceptable(&pending.url, relaxed, relaxed) && !pending.url.contains(char::is_whitespace));
            let outcome = pending.finish(Err(Verdict::Retrieval), &rules);
            assert_eq!((outcome.verdict, outcome.attestation), (Verdict::Retrieval, None));
        }
    }
});
