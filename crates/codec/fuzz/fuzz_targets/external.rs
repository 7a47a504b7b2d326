//! Any bytes as what a codec in another process writes: messages are whole, within their bounds, and the same again as
//! bytes; after nonsense the line is given up.
#![no_main]

use codec::external::{BODY_BYTES_MAX, HEAD_BYTES, Message};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    while let Ok(Some((message, length))) = Message::parse(rest) {
        assert!(message.data.len() <= BODY_BYTES_MAX && length == HEAD_BYTES + message.data.len());
        let head = message.head().expect("what was read can be written");
        let (bytes, tail) = rest.split_at(length);
        assert_eq!([&head[..], message.data].concat(), bytes);
        rest = tail;
    }
});
