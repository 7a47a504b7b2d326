//! Any bytes as Speex packets in any band, with losses between them.
#![no_main]

use bound::{Concealed, speex};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [band, rest @ ..] = data else { return };
    let band = [speex::Band::Narrow, speex::Band::Wide, speex::Band::UltraWide][usize::from(*band) % 3];
    // Without the library there is nothing to try.
    let Ok(mut decoder) = speex::Decoder::new(band, true) else { return };
    let mut rest = rest;
    while let [size, tail @ ..] = rest {
        let (payload, tail) = tail.split_at(usize::from(*size).min(tail.len()));
        rest = tail;
        let mut pcm = [0; 640 * 6];
        match decoder.decode(payload, &mut pcm) {
            Ok(samples) => assert_eq!(Some(samples), speex::frames(payload, band).map(|n| n * band.frame())),
            Err(Concealed(samples)) => assert!(samples <= pcm.len()),
        }
        if size % 5 == 0 {
            decoder.conceal(&mut pcm);
        }
    }
});
