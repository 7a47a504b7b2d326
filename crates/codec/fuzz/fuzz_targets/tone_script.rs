//! Any text as a tone of indications.conf; what is accepted and short is rendered.
#![no_main]

use base::SampleRate;
use codec::{ToneScript, tone};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(script) = text.parse::<ToneScript>() else { return };
    let total: u32 = script.parts().iter().map(|part| part.duration_ms.unwrap_or(1000)).sum();
    if total < 5_000 {
        let tone = tone::render(&script, SampleRate(8000));
        assert_eq!(tone.samples.len() % 160, 0);
        assert!(tone.loop_from.is_none_or(|start| start < tone.samples.len()));
    }
});
