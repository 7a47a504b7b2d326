//! Any stream. Oracles: what reads as a reply writes and reads back as the same reply; nothing larger than a frame is kept.
#![no_main]

use libfuzzer_sys::fuzz_target;
use odbc::{Frames, Reply, Request};

fuzz_target!(|bytes: &[u8]| {
    let mut frames = Frames::default();
    for piece in bytes.chunks(13) {
        frames.push(piece);
        loop {
            match frames.frame() {
                Ok(Some(frame)) => read(frame),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    read(bytes);
});

fn read(frame: &[u8]) {
    let mut again = Vec::new();
    if let Ok(reply) = Reply::read(frame) {
        reply.write(&mut again).expect("it came in a frame");
        assert_eq!(Reply::read(&again[4..]), Ok(reply));
    }
    again.clear();
    if let Ok(request) = Request::read(frame) {
        request.write(&mut again).expect("it came in a frame");
        assert!(Request::read(&again[4..]).is_ok_and(|same| same == request));
    }
}
