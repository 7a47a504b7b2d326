//! Any bytes as a file of any extension, made into a clip.
#![no_main]

use base::FormatId;
use codec::{SoundFile, extensions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [extension, target, bytes @ ..] = data else { return };
    let count = extensions().count();
    let Some(extension) = extensions().nth(usize::from(*extension) % count) else { return };
    let Some(target) = FormatId::coded().nth(usize::from(*target) % FormatId::coded().count()) else { return };
    if let Ok(sound) = SoundFile::parse(extension, bytes) {
        // What only passes through is played in no other format; the catalogue of sounds says so before it asks for a clip.
        if !sound.format.is_coded() && sound.format != target {
            return;
        }
        let clip = sound.to_clip(target);
        // Linear, where frames of the target have no fixed size.
        assert_eq!(clip.data.len() % clip.format.bytes_in(u16::from(clip.format.usual_ms())), 0);
    }
});
