//! Any stream, cut in two places. Oracle: frames do not depend on the cuts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sip::frame::Framer;

fuzz_target!(|input: (u16, Vec<u8>)| {
    let (cut, bytes) = input;
    let cut = usize::from(cut) % (bytes.len() + 1);
    let whole = frames(&[&bytes]);
    let pieces = frames(&[&bytes[..cut], &bytes[cut..]]);
    assert_eq!(whole, pieces);
});

/// The frames of the pieces, as text.
fn frames(pieces: &[&[u8]]) -> Vec<String> {
    let mut framer = Framer::new();
    let mut frames = Vec::new();
    for piece in pieces {
        framer.push(piece);
        loop {
            match framer.next_frame() {
                Ok(Some(frame)) => frames.push(format!("{frame:?}")),
                Ok(None) => break,
                Err(_) => return frames,
            }
        }
    }
    frames
}
