//! Any bytes as a configuration file that may include itself.
#![no_main]

use conf::{Findings, Memory, Options, load};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let source = Memory::new().with("a.conf", bytes).with("b.conf", "[b](!)\nx=1\n");
    let mut findings = Findings::new();
    let file = load(&source, "a.conf", Options::default(), &mut findings);
    assert_eq!(file.is_err(), findings.has_errors());
});
