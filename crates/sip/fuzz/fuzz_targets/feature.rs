//! Any body of the package as-feature-event. Oracles: what is read could be dialled, and is read the same where we write it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sip::feature::{Change, NUMBER_MAX, RINGS_MAX, State, gather, read, write};
use sip::xml::read_flat;

fuzz_target!(|bytes: &[u8]| {
    let Some(change) = read(bytes) else { return };
    let state = match &change {
        Change::DoNotDisturb(on) => State::DoNotDisturb(*on),
        Change::Forward { when, active: _, to, rings } => {
            if let Some(to) = to {
                assert!((1..=NUMBER_MAX).contains(&to.len()));
                assert!(to.chars().all(|c| c.is_ascii_alphanumeric() || "+*#-._".contains(c)));
            }
            assert!(rings.is_none_or(|rings| (1..=RINGS_MAX).contains(&rings)));
            State::Forward { when: *when, to: to.as_deref(), rings: *rings }
        }
    };
    let document = write("a<\"b\">", state);
    let flat = read_flat(&document).expect("what we write is well formed");
    assert_eq!(flat.text("device"), Some("a<\"b\">"));
    match &change {
        Change::DoNotDisturb(on) => assert_eq!(flat.text("doNotDisturbOn"), Some(&*on.to_string())),
        Change::Forward { to, .. } => {
            assert_eq!(flat.text("forwardTo"), Some(to.as_deref().unwrap_or_default()));
            assert_eq!(flat.text("forwardStatus"), Some(&*to.is_some().to_string()));
        }
    }
    let (_, body) = gather(&[document.clone(), document], "edge");
    assert_eq!(body.matches("--edge").count(), 3);
});
