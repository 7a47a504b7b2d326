//! One encoder goes on where another one stands, so that streams that were sent the same bytes can part.

use crate::coder::{Encoder, EncoderKind};

impl Encoder {
    /// Goes on from the state of another encoder of the same format, so that whoever decoded the other's frames decodes
    /// these without a break. Copies, and allocates nothing.
    ///
    /// An encoder in a library does not show its state: this one starts anew then, as it does for another format.
    pub fn take_over(&mut self, from: &Self) {
        use EncoderKind as K;
        match (&mut self.kind, &from.kind) {
            (K::G722(to), K::G722(from)) => (**to).clone_from(from),
            (K::G726(to), K::G726(from)) => (**to).clone_from(from),
            (K::Adpcm(to), K::Adpcm(from)) => to.clone_from(from),
            (K::Gsm(to), K::Gsm(from)) => (**to).clone_from(from),
            (K::Ilbc20(to), K::Ilbc20(from)) => (**to).clone_from(from),
            (K::Ilbc30(to), K::Ilbc30(from)) => (**to).clone_from(from),
            (K::Lpc10(to), K::Lpc10(from)) => (**to).clone_from(from),
            (K::Speex(to), K::Speex(from)) => (**to).clone_from(from),
            _ => self.reset(),
        }
    }
}

#[cfg(test)]
mod tests {
    use base::FormatId;

    use super::*;
    use crate::testing::sine;

    #[test]
    fn who_takes_over_sends_the_bytes_that_the_other_would_have_sent() {
        for format in FormatId::coded() {
            let rate = format.rate().0 as usize;
            // A whole number of frames of every codec: 180 ms, nine packets of 20.
            let sound = sine(440.0, format.rate().0, 9000.0, rate * 360 / 1000);
            let (first, second) = sound.split_at(sound.len() / 2);
            let room = format.packet_room(60) * 3 + 64;
            let (mut one, mut other) = (Encoder::new(format), Encoder::new(format));
            let mut coded = vec![0; room];
            let packet = if format.is_constant() { first.len() } else { rate * 20 / 1000 };
            for piece in first.chunks(packet) {
                one.encode(piece, &mut coded);
            }
            other.take_over(&one);
            let mut both = [&mut one, &mut other].map(|encoder| {
                let mut bytes = Vec::new();
                for piece in second.chunks(packet) {
                    let length = encoder.encode(piece, &mut coded);
                    bytes.extend_from_slice(&coded[..length]);
                }
                bytes
            });
            let [expected, found] = &mut both;
            if matches!(other.kind, EncoderKind::WideSpeex(_) | EncoderKind::Opus(_) | EncoderKind::Codec2(_))
            {
                assert!(!found.is_empty() || expected.is_empty(), "{format}");
            } else {
                assert_eq!(found, expected, "{format}");
            }
        }
    }
}
