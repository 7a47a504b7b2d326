//! Formats as they go over the wire, coded by others than the program under test: libraries of Debian, behind a pipe.
//!
//! iLBC has no package; it is coded by the program's own `strowger codec`, which reaches another part of it than a call
//! does, and by the golden payloads of its reference where those are beside the project.

use crate::likeness::{self, Clip, Least, VOCODER, WAVEFORM, resample};
use crate::media::Recital;
use crate::place::Place;
use crate::server::program;
use crate::tone;
use oracle::{GSM, OPUS, Oracle, SPANDSP, SPEEX};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A format as a session description names it.
#[derive(Debug)]
pub struct Wire {
    /// What `allow=` calls it.
    pub name: &'static str,
    /// Payload type under which a phone offers it.
    pub payload_type: u8,
    /// `a=rtpmap`.
    pub rtpmap: &'static str,
    /// `a=fmtp`.
    pub fmtp: Option<&'static str>,
    /// Milliseconds of a packet.
    pub ms: u32,
    /// Clock of the timestamps.
    clock: u32,
    /// Samples a second.
    rate: usize,
    /// Who codes it.
    coder: Coder,
}

#[derive(Debug, Clone, Copy)]
enum Coder {
    /// Tables of this crate.
    Law { encode: fn(i16) -> u8, decode: fn(u8) -> i16 },
    /// A library with modes that read and write packets of so many bytes.
    Library { library: &'static oracle::Library, encode: &'static str, decode: &'static str, bytes: usize },
    /// libopus, whose packets follow their lengths.
    Opus,
    /// Nobody: a test says what payloads it likes.
    Nobody,
    /// `strowger codec`, by frames of so many bytes.
    Tool { bytes: usize },
    /// A codec in a process of its own, spoken to as docs/codecs.md says: samples and bytes of a frame.
    Process { library: &'static oracle::Library, samples: usize, bytes: usize },
}

impl Wire {
    const fn row(
        name: &'static str,
        payload_type: u8,
        rtpmap: &'static str,
        fmtp: Option<&'static str>,
        ms: u32,
        (clock, rate): (u32, usize),
        coder: Coder,
    ) -> Self {
        Self { name, payload_type, rtpmap, fmtp, ms, clock, rate, coder }
    }

    const fn narrow(name: &'static str, payload_type: u8, rtpmap: &'static str, coder: Coder) -> Self {
        Self::row(name, payload_type, rtpmap, None, 20, (8000, 8000), coder)
    }
}

const fn spandsp(encode: &'static str, decode: &'static str, bytes: usize) -> Coder {
    Coder::Library { library: &SPANDSP, encode, decode, bytes }
}

const fn speex(encode: &'static str, decode: &'static str, bytes: usize) -> Coder {
    Coder::Library { library: &SPEEX, encode, decode, bytes }
}

/// G.711 µ-law (RFC 3551 §4.5.14).
pub static ULAW: Wire =
    Wire::narrow("ulaw", 0, "PCMU/8000", Coder::Law { encode: tone::to_ulaw, decode: tone::from_ulaw });
/// G.711 A-law.
pub static ALAW: Wire =
    Wire::narrow("alaw", 8, "PCMA/8000", Coder::Law { encode: tone::to_alaw, decode: tone::from_alaw });
/// GSM 06.10 (RFC 3551 §4.5.8), by libgsm.
pub static GSM_FULL: Wire = Wire::narrow(
    "gsm",
    3,
    "GSM/8000",
    Coder::Library { library: &GSM, encode: "encode", decode: "decode", bytes: 33 },
);
/// G.722, whose clock is half its rate (RFC 3551 §4.5.2), by spandsp.
pub static G722: Wire =
    Wire::row("g722", 9, "G722/8000", None, 20, (8000, 16_000), spandsp("g722-encode", "g722-decode", 160));
/// G.726 at 32 kbit/s (RFC 3551 §4.5.4), by spandsp.
pub static G726: Wire = Wire::narrow("g726", 111, "G726-32/8000", spandsp("g726-encode", "g726-decode", 80));
/// The same, packed as AAL2 does.
pub static G726_AAL2: Wire =
    Wire::narrow("g726aal2", 112, "AAL2-G726-32/8000", spandsp("g726aal2-encode", "g726aal2-decode", 80));
/// LPC-10, two frames a packet, by spandsp.
pub static LPC10: Wire =
    Wire::row("lpc10", 7, "LPC/8000", None, 45, (8000, 8000), spandsp("lpc10-encode", "lpc10-decode", 14));
/// iLBC in frames of 20 ms (RFC 3952).
pub static ILBC20: Wire =
    Wire::row("ilbc", 97, "iLBC/8000", Some("mode=20"), 20, (8000, 8000), Coder::Tool { bytes: 38 });
/// iLBC in frames of 30 ms.
pub static ILBC30: Wire =
    Wire::row("ilbc30", 97, "iLBC/8000", Some("mode=30"), 30, (8000, 8000), Coder::Tool { bytes: 50 });
/// Speex narrowband (RFC 5574), said by libspeex at quality 3.
pub static SPEEX3: Wire = Wire::narrow("speex", 110, "speex/8000", speex("encode-q3", "decode-q3", 20));
/// The same at quality 8, so that what is said has another size than what is heard.
pub static SPEEX8: Wire = Wire::narrow("speex", 110, "speex/8000", speex("encode-q8", "decode-q8", 38));
/// Opus (RFC 7587), by libopus.
pub static OPUS48: Wire = Wire::row("opus", 107, "opus/48000/2", None, 20, (48_000, 48_000), Coder::Opus);

/// G.729A (RFC 3551 §4.5.6), two frames a packet, by bcg729.
pub static G729A: Wire =
    Wire::narrow("g729", 18, "G729/8000", Coder::Process { library: &oracle::G729, samples: 80, bytes: 10 });

/// G.723.1, which nobody codes here.
pub static G723: Wire = Wire::row("g723", 4, "G723/8000", None, 30, (8000, 8000), Coder::Nobody);
/// AMR in its bandwidth-efficient form, which nobody codes here.
pub static AMR: Wire = Wire::narrow("amr", 98, "AMR/8000", Coder::Nobody);
/// G.722.1 at 32 kbit/s, which nobody codes here.
pub static SIREN7: Wire =
    Wire::row("siren7", 102, "G7221/16000", Some("bitrate=32000"), 20, (16_000, 16_000), Coder::Nobody);

impl Wire {
    /// The program that codes it, for a server that shall do the same; `None`, and a line that says why, without one.
    pub fn process(&self) -> Option<PathBuf> {
        let Coder::Process { library, .. } = self.coder else { return None };
        Some(Oracle::build(library)?.path().to_owned())
    }

    /// Whether there is somebody to code it; says who is missing otherwise.
    pub fn is_there(&self) -> bool {
        match self.coder {
            Coder::Law { .. } | Coder::Tool { .. } => true,
            Coder::Library { library, .. } | Coder::Process { library, .. } => {
                Oracle::build(library).is_some()
            }
            Coder::Opus => Oracle::build(&OPUS).is_some(),
            Coder::Nobody => false,
        }
    }

    /// What a vocoder keeps of speech, or any other codec.
    pub fn least(&self) -> Least {
        if core::ptr::eq(self, &raw const LPC10) { VOCODER } else { WAVEFORM }
    }

    /// Packets of speech at 8 kHz.
    pub fn code(&self, speech: &[i16]) -> Vec<Vec<u8>> {
        let linear = resample(speech, likeness::RATE, self.rate);
        match self.coder {
            Coder::Nobody => Vec::new(),
            Coder::Law { encode, .. } => {
                let coded: Vec<u8> = linear.into_iter().map(encode).collect();
                coded.chunks_exact(160).map(<[u8]>::to_vec).collect()
            }
            Coder::Library { library, encode, bytes, .. } => {
                let coded = built(library).run(encode, &oracle::bytes(&linear));
                coded.chunks_exact(bytes).map(<[u8]>::to_vec).collect()
            }
            Coder::Opus => {
                let coded = built(&OPUS).run("encode", &oracle::bytes(&linear));
                let mut rest = &coded[..];
                let mut packets = Vec::new();
                while let [low, high, tail @ ..] = rest {
                    let (packet, tail) = tail.split_at(usize::from(*low) | usize::from(*high) << 8);
                    packets.push(packet.to_vec());
                    rest = tail;
                }
                packets
            }
            Coder::Tool { bytes } => {
                let coded = self.tool("encode", &oracle::bytes(&linear));
                coded.chunks_exact(bytes).map(<[u8]>::to_vec).collect()
            }
            Coder::Process { library, samples, .. } => {
                let sound = oracle::bytes(&linear);
                let frames = converse(library, b'e', sound.chunks_exact(2 * samples));
                let packet = self.rate * self.ms as usize / 1000 / samples;
                frames.chunks_exact(packet).map(<[Vec<u8>]>::concat).collect()
            }
        }
    }

    /// What packets sound like, at 8 kHz.
    pub fn hear(&self, packets: &[Vec<u8>]) -> Vec<i16> {
        let linear = match self.coder {
            Coder::Nobody => Vec::new(),
            Coder::Law { decode, .. } => packets.concat().into_iter().map(decode).collect(),
            Coder::Library { library, decode, bytes, .. } => {
                let (decode, bytes) = speex_mode(packets)
                    .filter(|_| library.program == SPEEX.program)
                    .unwrap_or((decode, bytes));
                assert!(packets.iter().all(|packet| packet.len() == bytes), "{}: odd packets", self.name);
                oracle::samples(&built(library).run(decode, &packets.concat()))
            }
            Coder::Opus => {
                let lengths = packets.iter().map(|packet| (packet.len() as u16).to_le_bytes());
                let framed: Vec<u8> = lengths
                    .zip(packets)
                    .flat_map(|(length, packet)| [&length, &packet[..]].concat())
                    .collect();
                oracle::samples(&built(&OPUS).run("decode", &framed))
            }
            Coder::Tool { .. } => oracle::samples(&self.tool("decode", &packets.concat())),
            Coder::Process { library, bytes, .. } => {
                let coded = packets.concat();
                oracle::samples(&converse(library, b'd', coded.chunks_exact(bytes)).concat())
            }
        };
        resample(&linear, self.rate, likeness::RATE)
    }

    /// A recital of speech at 8 kHz.
    pub fn recital(&self, speech: &[i16]) -> Recital {
        self.recital_of(self.code(speech))
    }

    /// A recital of payloads that somebody else has made.
    pub fn recital_of(&self, payloads: Vec<Vec<u8>>) -> Recital {
        Recital {
            payload_type: self.payload_type,
            units: self.clock / 1000 * self.ms,
            period: Duration::from_millis(u64::from(self.ms)),
            payloads: payloads.into(),
        }
    }

    /// `strowger codec`, in a folder of its own.
    fn tool(&self, verb: &str, input: &[u8]) -> Vec<u8> {
        let place = Place::new("codec");
        let (from, to) = if verb == "encode" { ("in.sln", "out.coded") } else { ("in.coded", "out.sln") };
        place.write(from, input);
        let direction = if verb == "encode" { "--to" } else { "--from" };
        let output = Command::new(program())
            .args(["codec", verb, from, to, direction, self.name])
            .current_dir(place.path())
            .stdin(Stdio::null())
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "codec {verb}: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::read(place.join(to)).expect("it wrote a file")
    }
}

/// What a codec's process answers to these frames of one stream.
fn converse<'a>(
    library: &oracle::Library,
    direction: u8,
    frames: impl Iterator<Item = &'a [u8]>,
) -> Vec<Vec<u8>> {
    let message = |kind: u8, sequence: u32, data: &[u8]| {
        let length = u16::try_from(9 + data.len()).expect("a short message");
        [&length.to_le_bytes()[..], &[kind], &1u32.to_le_bytes(), &sequence.to_le_bytes(), data].concat()
    };
    let mut asked = message(b'O', 0, &[direction]);
    for (sequence, frame) in (0..).zip(frames) {
        asked.extend(message(b'F', sequence, frame));
    }
    let mut child = Command::new(built(library).path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program that was built runs");
    let mut input = child.stdin.take().expect("its input is a pipe");
    // It answers while it is asked: both pipes would fill.
    let asking = std::thread::spawn(move || input.write_all(&asked));
    let mut answered = Vec::new();
    child.stdout.take().expect("its output is a pipe").read_to_end(&mut answered).expect("its output");
    asking.join().expect("the asker lives").expect("it reads its input");
    child.wait().expect("it ends");
    let mut rest = &answered[..];
    let mut answers = Vec::new();
    while let [low, high, tail @ ..] = rest {
        let (message, tail) = tail.split_at(usize::from(*low) | usize::from(*high) << 8);
        answers.push(message[9..].to_vec());
        rest = tail;
    }
    answers
}

fn built(library: &oracle::Library) -> Oracle {
    Oracle::build(library).expect("it was asked whether it is there")
}

/// The quality that frames of Speex have, told by their size.
fn speex_mode(packets: &[Vec<u8>]) -> Option<(&'static str, usize)> {
    let bytes = packets.first()?.len();
    [("decode-q2", 15), ("decode-q3", 20), ("decode-q5", 28), ("decode-q8", 38), ("decode-q9", 46)]
        .into_iter()
        .find(|(_, size)| *size == bytes)
}

/// Speech for one of two parties, six seconds each, which nobody confuses.
pub fn clip(party: usize) -> Clip {
    let speech = oracle::speech();
    let start = [8000, 100_000][party % 2];
    Clip::new(&speech[start..start + 48_000])
}

/// Payloads that the reference encoder of iLBC made of a clip, where the golden files are beside the project.
pub fn golden_ilbc(wire: &Wire) -> Option<(Clip, Vec<Vec<u8>>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/golden");
    let read = |name: &str| std::fs::read(folder.join(name)).ok();
    let speech = oracle::samples(&read("es_en-gb.pcm")?);
    let coded = read(&format!("es_en-gb.float.ilbc{}", wire.ms))?;
    let (frame, bytes) = if wire.ms == 30 { (240, 50) } else { (160, 38) };
    // As many whole frames as look ahead fits the loop.
    let frames = (speech.len() / frame).min(coded.len() / bytes).min(48_000 / frame);
    let payloads = coded.chunks_exact(bytes).take(frames).map(<[u8]>::to_vec).collect();
    Some((Clip::new(&speech[..frames * frame]), payloads))
}
