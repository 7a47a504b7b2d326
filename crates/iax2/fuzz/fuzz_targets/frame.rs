//! Any datagram. Oracles: what reads as a full frame writes and reads back as the same frame, and so do its elements.
#![no_main]

use iax2::frame::{Datagram, Elements, Fields, Kind, parse, preferences, write_element};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match parse(bytes) {
        Ok(Datagram::Full(full)) => {
            let mut again = Vec::new();
            full.write(&mut again);
            // A kind may have two spellings; past the header nothing changes.
            assert_eq!(parse(&again), Ok(Datagram::Full(full)));
            if let Kind::Iax(_) = full.kind {
                elements(full.data);
            }
        }
        Ok(Datagram::Mini(mini)) => {
            let mut again = Vec::new();
            mini.write(&mut again);
            assert_eq!(again, bytes);
        }
        Ok(Datagram::Video(video)) => {
            let mut again = Vec::new();
            video.write(&mut again);
            assert_eq!(again, bytes);
        }
        Ok(Datagram::Trunk(trunk)) => {
            let voice: usize = trunk.entries.map(|entry| entry.data.len()).sum();
            assert!(voice <= bytes.len());
        }
        Err(_) => {}
    }
});

fn elements(data: &[u8]) {
    let mut written = Vec::new();
    for element in Elements::new(data) {
        write_element(&element, &mut written);
    }
    assert!(Elements::new(data).eq(Elements::new(&written)));
    if let Some(fields) = Fields::collect(data) {
        std::hint::black_box((fields.formats().formats().count(), fields.format_one().format()));
        std::hint::black_box(preferences(fields.prefs.unwrap_or_default()).count());
    }
}
