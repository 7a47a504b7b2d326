//! Any bytes as Opus packets at any rate, with losses between them.
#![no_main]

use bound::{Concealed, opus};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [rate, rest @ ..] = data else { return };
    let rate = opus::RATES[usize::from(*rate) % opus::RATES.len()];
    let mut decoder = opus::Decoder::new(rate).unwrap();
    let mut rest = rest;
    while let [size, tail @ ..] = rest {
        let (payload, tail) = tail.split_at(usize::from(*size).min(tail.len()));
        rest = tail;
        let mut pcm = [0; 5760];
        let said = opus::samples(payload, rate);
        match decoder.decode(payload, &mut pcm) {
            Ok(samples) => assert_eq!(Some(samples), said),
            Err(Concealed(samples)) => assert!(samples <= pcm.len()),
        }
        if size % 5 == 0 {
            let room = usize::from(*size) * 8;
            decoder.recover(payload, &mut pcm[..room]);
            decoder.conceal(&mut pcm[..room]);
        }
    }
});
