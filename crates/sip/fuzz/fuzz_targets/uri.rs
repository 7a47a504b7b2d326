//! Any URI. Oracles: it equals itself, and an encoded user decodes to what it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sip::Uri;
use sip::uri::percent_encode_user;

fuzz_target!(|bytes: &[u8]| {
    if let Some(uri) = Uri::parse(bytes) {
        assert!(uri.matches(&uri));
        std::hint::black_box((uri.host.ip(), uri.port_or_default(), uri.header_fields().count()));
    }
    let mut text = b"sip:".to_vec();
    percent_encode_user(bytes, &mut text);
    text.extend_from_slice(b"@h");
    let uri = Uri::parse(&text).expect("an encoded user is a user");
    assert_eq!(uri.user_decoded().as_ref(), bytes);
});
