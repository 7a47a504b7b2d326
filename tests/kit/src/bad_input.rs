//! Input that no peer should send: the sets beside the project, and packets that are spoiled from a seed.

use std::path::Path;
use std::process::Command;

use crate::Random;

/// The files of one archive of `../shared/bad-input` beside the project, whole; none, and said, when it is not there.
///
/// `folder` is part of the path that a file must have; empty takes all.
pub fn bad_input(archive: &str, folder: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/bad-input").join(archive);
    if !path.exists() {
        println!("skipped: {} is not here", path.display());
        return Vec::new();
    }
    let tar = |words: &str| {
        let output = Command::new("tar").arg(words).arg(&path).output().expect("the program tar");
        assert!(output.status.success(), "tar {words} {}", path.display());
        output.stdout
    };
    // Sizes come from the verbose listing, so that one process unpacks all.
    let (all, listing) = (tar("xJOf"), tar("tvf"));
    let mut rest = &all[..];
    let mut files = Vec::new();
    for line in String::from_utf8_lossy(&listing).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [kind, _, size, .., name] = words[..] else { continue };
        if kind.starts_with('-') {
            let (file, after) = rest.split_at(size.parse().expect("a size"));
            if name.contains(folder) {
                files.push(file.to_vec());
            }
            rest = after;
        }
    }
    assert!(rest.is_empty(), "{archive}: {} bytes are in no file", rest.len());
    files
}

/// Spoils a packet: bits turned, a piece cut off, bytes put in or doubled.
pub fn spoil(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => {
                let more = random.below(40);
                let noise = random.bytes(more);
                bytes.splice(at..at, noise);
            }
            2 => {
                let piece = bytes[at..].to_vec();
                bytes.extend(piece);
            }
            _ => {
                let bit = 1 << random.below(8);
                // Where most is decided: the header.
                let early = random.below(bytes.len().clamp(1, 16));
                if let Some(byte) = bytes.get_mut(if random.below(2) == 0 { at } else { early }) {
                    *byte ^= bit;
                }
            }
        }
        bytes.truncate(1400);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spoiled_is_another_packet_that_fits_a_datagram_and_the_same_for_the_same_seed() {
        let packet: Vec<u8> = (0..172).collect();
        let spoiled = |seed| {
            let mut random = Random(seed);
            let mut bytes = packet.clone();
            spoil(&mut random, &mut bytes);
            bytes
        };
        let other = (0..100).filter(|seed| spoiled(*seed) != packet).count();
        assert!(other > 90, "{other} of 100");
        assert!((0..100).all(|seed| spoiled(seed).len() <= 1400 && spoiled(seed) == spoiled(seed)));
    }
}
