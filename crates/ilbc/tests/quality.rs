//! How the fast mode sounds beside the exact one: clips of speech through encoder and decoder, rated by PESQ
//! (ITU-T P.862.1). The exact mode needs no ear: it equals the plain codec, bit for bit.

use std::fmt::Debug;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use ilbc::{DecodeJob, Decoder, EncodeJob, Encoder, Mode, Mode20, Mode30};
use lanes::Level;

/// Samples of a clip: 2.16 s, whole frames of both sizes.
const CLIP: usize = 36 * 480;
/// Fewer clips would let one that happens to gain hide another that loses.
const CLIPS_MIN: usize = 16;
/// How far the mean over all clips may be from that of the exact mode, in MOS-LQO.
const MEAN_MAX: f64 = 0.02;
/// How far one clip may be.
const CLIP_MAX: f64 = 0.05;

/// A frame size with arrays that tests can make and compare.
trait Size:
    Mode<Pcm: Copy + Debug + PartialEq + for<'a> TryFrom<&'a [i16]>, Payload: Copy + Debug + PartialEq>
{
    const NAME: &str;
    const SAMPLES: usize;
    const PCM: Self::Pcm;
    const PAYLOAD: Self::Payload;
}

impl Size for Mode20 {
    const NAME: &str = "20 ms";
    const SAMPLES: usize = 160;
    const PCM: [i16; 160] = [0; 160];
    const PAYLOAD: [u8; 38] = [0; 38];
}

impl Size for Mode30 {
    const NAME: &str = "30 ms";
    const SAMPLES: usize = 240;
    const PCM: [i16; 240] = [0; 240];
    const PAYLOAD: [u8; 50] = [0; 50];
}

/// Speech from the project's prompts, and from beside the project where that is.
fn clips() -> Vec<Vec<i16>> {
    let mut speech = oracle::speech();
    for name in ["libilbc_sample.pcm", "es_en-gb.pcm"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/golden").join(name);
        match std::fs::read(&path) {
            Ok(bytes) => speech.extend(oracle::samples(&bytes)),
            Err(_) => println!("skipped: no speech in {}", path.display()),
        }
    }
    let clips: Vec<_> = speech.chunks_exact(CLIP).map(<[i16]>::to_vec).collect();
    assert!(clips.len() >= CLIPS_MIN);
    clips
}

/// In which way a direction is coded: plainly, or on a level in groups as large as can be or each stream alone.
#[derive(Clone, Copy)]
enum Way {
    Plain,
    Exact(Level),
    Fast(Level),
    ExactAlone(Level),
    FastAlone(Level),
}

/// Payloads of each clip.
fn encode<M: Size>(way: Way, clips: &[Vec<i16>]) -> Vec<Vec<M::Payload>> {
    let mut encoders = vec![Encoder::<M>::new(); clips.len()];
    let mut payloads = vec![vec![M::PAYLOAD; CLIP / M::SAMPLES]; clips.len()];
    for n in 0..CLIP / M::SAMPLES {
        let frame = |clip: &Vec<i16>| M::Pcm::try_from(&clip[n * M::SAMPLES..][..M::SAMPLES]).ok();
        let frames: Vec<M::Pcm> = clips.iter().filter_map(frame).collect();
        let mut parts: Vec<_> = encoders.iter_mut().zip(&frames).zip(&mut payloads).collect();
        if let Way::Plain = way {
            parts.iter_mut().for_each(|((encoder, pcm), out)| encoder.encode(pcm, &mut out[n]));
            continue;
        }
        let job = |((encoder, pcm), out)| -> EncodeJob<'_, M> {
            let out: &mut Vec<M::Payload> = out;
            EncodeJob::new(encoder, pcm, &mut out[n])
        };
        let mut jobs: Vec<_> = parts.into_iter().map(job).collect();
        match way {
            Way::Plain => {}
            Way::Exact(level) => ilbc::encode(level, &mut jobs),
            Way::Fast(level) => ilbc::encode_fast(level, &mut jobs),
            Way::ExactAlone(level) => jobs.chunks_mut(1).for_each(|job| ilbc::encode(level, job)),
            Way::FastAlone(level) => jobs.chunks_mut(1).for_each(|job| ilbc::encode_fast(level, job)),
        }
    }
    payloads
}

/// Samples of each clip, with the enhancer.
fn decode<M: Size>(way: Way, payloads: &[Vec<M::Payload>]) -> Vec<Vec<i16>> {
    let mut decoders = vec![Decoder::<M>::new(true); payloads.len()];
    let mut clips = vec![Vec::with_capacity(CLIP); payloads.len()];
    for n in 0..CLIP / M::SAMPLES {
        let mut frames = vec![M::PCM; payloads.len()];
        let mut jobs: Vec<_> = decoders
            .iter_mut()
            .zip(payloads)
            .zip(&mut frames)
            .map(|((decoder, payloads), pcm)| DecodeJob::new(decoder, payloads[n].as_ref(), pcm))
            .collect();
        match way {
            Way::Plain => jobs.iter_mut().for_each(|job| {
                job.outcome = Some(job.state.decode(job.payload, job.pcm));
            }),
            Way::Exact(level) => ilbc::decode(level, &mut jobs),
            Way::Fast(level) => ilbc::decode_fast(level, &mut jobs),
            Way::ExactAlone(level) => jobs.chunks_mut(1).for_each(|job| ilbc::decode(level, job)),
            Way::FastAlone(level) => jobs.chunks_mut(1).for_each(|job| ilbc::decode_fast(level, job)),
        }
        assert!(jobs.iter().all(|job| job.outcome == Some(Ok(()))));
        clips.iter_mut().zip(&frames).for_each(|(clip, frame)| clip.extend_from_slice(frame.as_ref()));
    }
    clips
}

fn exact_equals_plain<M: Size>() {
    let clips = clips();
    let payloads = encode::<M>(Way::Plain, &clips);
    let heard = decode::<M>(Way::Plain, &payloads);
    for level in Level::all_available() {
        for (name, way) in [("in groups", Way::Exact(level)), ("alone", Way::ExactAlone(level))] {
            assert!(encode::<M>(way, &clips) == payloads, "{} encoder, {level} {name}", M::NAME);
            assert!(decode::<M>(way, &payloads) == heard, "{} decoder, {level} {name}", M::NAME);
        }
    }
}

#[test]
fn the_exact_mode_equals_the_plain_codec() {
    exact_equals_plain::<Mode20>();
    exact_equals_plain::<Mode30>();
}

/// PESQ, which a process of Python knows.
struct Ear {
    process: Child,
    answers: BufReader<ChildStdout>,
}

impl Ear {
    /// `None`, and why, where there is no PESQ.
    fn open() -> Option<Self> {
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = project.join("../../.venv/bin/python");
        let has = Command::new(&python).args(["-c", "import pesq"]).stderr(Stdio::null()).status();
        if !has.is_ok_and(|status| status.success()) {
            println!("skipped: PESQ for Python is not installed (make .venv/bin/python)");
            return None;
        }
        let mut process = Command::new(&python)
            .arg(project.join("tests/python/rate.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        Some(Self { process, answers })
    }

    /// MOS-LQO of a clip.
    fn rate(&mut self, said: &[i16], heard: &[i16]) -> std::io::Result<f64> {
        let questions = self.process.stdin.as_mut().expect("a pipe");
        writeln!(questions, "{}", said.len())?;
        questions.write_all(&oracle::bytes(said))?;
        questions.write_all(&oracle::bytes(heard))?;
        questions.flush()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        answer.trim().parse().map_err(std::io::Error::other)
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().expect("Python ends with its input");
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn fast_sounds_as_exact<M: Size>() {
    let Some(mut ear) = Ear::open() else { return };
    let said = clips();
    let payloads = encode::<M>(Way::Plain, &said);
    let heard = decode::<M>(Way::Plain, &payloads);
    let exact: Vec<f64> =
        said.iter().zip(&heard).map(|(said, heard)| ear.rate(said, heard).expect("PESQ answers")).collect();
    println!("{}: {} clips, exact {:.3} MOS-LQO", M::NAME, said.len(), mean(&exact));
    let mut faults = Vec::new();
    for level in Level::all_available() {
        let (group, alone) =
            (encode::<M>(Way::Fast(level), &said), encode::<M>(Way::FastAlone(level), &said));
        for (name, fast) in [
            ("encoder", decode::<M>(Way::Plain, &group)),
            ("encoder alone", decode::<M>(Way::Plain, &alone)),
            ("decoder", decode::<M>(Way::Fast(level), &payloads)),
            ("decoder alone", decode::<M>(Way::FastAlone(level), &payloads)),
            ("encoder and decoder", decode::<M>(Way::Fast(level), &group)),
        ] {
            let (mut deltas, mut differ) = (vec![0.0; said.len()], 0);
            for (n, delta) in deltas.iter_mut().enumerate() {
                // What is the same sounds the same.
                if fast[n] != heard[n] {
                    *delta = ear.rate(&said[n], &fast[n]).expect("PESQ answers") - exact[n];
                    differ += 1;
                }
            }
            let most = deltas.iter().fold(0.0, |most: f64, delta| most.max(delta.abs()));
            let mean = mean(&deltas);
            let row = format!(
                "{} fast {name}, {level}: {differ} clips differ, by {mean:+.4} in the mean, {most:.4} at most",
                M::NAME
            );
            println!("{row}");
            // Written so that what is no number is a fault.
            if !(mean.abs() <= MEAN_MAX && most <= CLIP_MAX) {
                faults.push(format!("{row}: {deltas:.3?}"));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "beyond {MEAN_MAX} in the mean or {CLIP_MAX} in a clip:\n{}",
        faults.join("\n")
    );
}

#[test]
fn rfc3951_20_ms_frames_coded_fast_sound_as_if_coded_exactly() {
    fast_sounds_as_exact::<Mode20>();
}

#[test]
fn rfc3951_30_ms_frames_coded_fast_sound_as_if_coded_exactly() {
    fast_sounds_as_exact::<Mode30>();
}
