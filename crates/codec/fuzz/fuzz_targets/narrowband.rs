//! Any bytes as G.722, G.726, ADPCM and LPC-10, plain and in lanes: the lanes make what the plain form makes.
#![no_main]

use codec::{adpcm, g722, g726, lpc10};
use lanes::Level;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut linear = vec![0; data.len() * 2];
    adpcm::Decoder::default().decode(data, &mut linear);
    let mut vocoder = lpc10::Decoder::default();
    for (index, frame) in data.as_chunks().0.iter().enumerate() {
        let mut speech = [0; lpc10::FRAME_SAMPLES];
        vocoder.decode(frame, &mut speech);
        if index % 9 == 8 {
            vocoder.conceal(&mut speech);
        }
    }

    let mut states = vec![g722::Decoder::default(); 3];
    let mut room = vec![linear.clone(); 3];
    let jobs = states.iter_mut().zip(&mut room);
    let mut jobs: Vec<_> = jobs.map(|(state, pcm)| g722::DecodeJob::new(state, data, pcm)).collect();
    g722::decode(Level::best(), &mut jobs);
    g722::Decoder::default().decode(data, &mut linear);
    assert!(room.iter().all(|pcm| *pcm == linear));

    let packing = g726::Packing::Aal2;
    let mut states = vec![g726::Decoder::new(packing); 3];
    let jobs = states.iter_mut().zip(&mut room);
    let mut jobs: Vec<_> = jobs.map(|(state, pcm)| g726::DecodeJob::new(state, data, pcm)).collect();
    g726::decode(Level::best(), &mut jobs);
    g726::Decoder::new(packing).decode(data, &mut linear);
    assert!(room.iter().all(|pcm| *pcm == linear));
});
