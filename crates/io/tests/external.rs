//! Codecs in another process: they code, and when they are ill nobody waits for them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use codec::external::{Direction, Port, Refused};
use io::external::{ExternalCodec, ExternalError, Limits, Peer};
use oracle::{Library, Oracle};

/// Far beyond what anything here takes; reached only by what is broken.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(
    library: &Library,
    illness: &[&str],
    limits: Limits,
) -> Option<Result<ExternalCodec, ExternalError>> {
    let program = Oracle::build(library)?;
    let args = illness.iter().map(|&word| word.to_owned()).collect();
    let peer = Peer::Program { path: program.path().to_owned(), args };
    Some(ExternalCodec::start(library.program, library.program, peer, limits))
}

/// Limits that no process in good health runs into, however busy the machine is.
fn patient() -> Limits {
    Limits { greeting: PATIENCE, answer: PATIENCE, ..Limits::default() }
}

/// Short limits for processes that greet, and run into them then.
fn short() -> Limits {
    Limits { greeting: PATIENCE, answer: Duration::from_millis(100), restart: Duration::from_millis(20) }
}

/// Looks until it is so.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

/// One frame there and back.
fn encode(port: &mut Port, pcm: &[i16]) -> Vec<u8> {
    let mut out = vec![0; port.geometry().bytes];
    port.encode(pcm);
    let mut made = None;
    until("an encoded frame", || {
        made = port.encoded(&mut out);
        made.is_some()
    });
    out.truncate(made.and_then(Result::ok).unwrap_or(0));
    out
}

fn decode(port: &mut Port, payload: &[u8]) -> Vec<i16> {
    let mut pcm = vec![0; port.geometry().samples];
    port.decode(payload);
    until("a decoded frame", || port.decoded(&mut pcm).is_some());
    pcm
}

#[test]
fn many_streams_share_a_process_and_each_gets_its_own_answers() {
    let Some(codec) = start(&oracle::TOY, &[], patient()) else { return };
    let codec = codec.unwrap();
    let mut ports: Vec<(Port, Port)> = (0..40)
        .map(|_| (codec.open(Direction::Encode).unwrap(), codec.open(Direction::Decode).unwrap()))
        .collect();
    for tick in 0..20i16 {
        // All ask at once, as in a worker's tick.
        for (stream, (to, from)) in ports.iter_mut().enumerate() {
            to.encode(&[stream as i16 * 256 + tick; 160]);
            let coded = [(stream as u8) ^ 0x7f; 320];
            from.decode(&coded);
        }
        for (stream, (to, from)) in ports.iter_mut().enumerate() {
            let (mut out, mut pcm) = ([0; 320], [0; 160]);
            until("an encoded frame", || to.encoded(&mut out) == Some(Ok(320)));
            until("a decoded frame", || from.decoded(&mut pcm) == Some(Ok(160)));
            assert_eq!(out[..2], [tick as u8 ^ 0x7f, stream as u8 ^ 0x7f]);
            assert_eq!(pcm, [stream as i16 * 257; 160]);
        }
    }
    let status = codec.status();
    assert_eq!((status.alive, status.restarts, status.streams), (true, 0, 80));
    assert_eq!((status.frames, status.dropped), (1600, 0));
    drop(ports);
    until("all streams closed", || codec.status().streams == 0);
}

#[test]
fn a_lost_frame_is_made_up_by_the_process_and_a_bad_one_refused() {
    let Some(codec) = start(&oracle::TOY, &[], patient()) else { return };
    let codec = codec.unwrap();
    let mut port = codec.open(Direction::Decode).unwrap();
    let mut pcm = [7; 160];
    port.conceal();
    until("a frame made up", || port.decoded(&mut pcm).is_some());
    assert_eq!(pcm, [0; 160]);
    port.decode(&[1; 5]);
    until("a refusal", || port.decoded(&mut pcm) == Some(Err(Refused)));
    assert_eq!(codec.status().faults.refused, 1);
}

#[test]
fn g729_by_bcg729_equals_the_golden_files() {
    let Some(codec) = start(&oracle::G729, &[], patient()) else { return };
    let codec = codec.unwrap();
    assert_eq!((codec.geometry().samples, codec.geometry().bytes), (80, 10));
    let mut encoder = codec.open(Direction::Encode).unwrap();
    let mut decoder = codec.open(Direction::Decode).unwrap();
    let golden = |name: &str| {
        let path =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/golden").join(name);
        std::fs::read(&path).inspect_err(|error| println!("skipped: {}: {error}", path.display())).ok()
    };
    let (Some(pcm), Some(coded), Some(decoded)) =
        (golden("es_en-gb.pcm"), golden("es_en-gb.g729a"), golden("es_en-gb.g729a.pcm"))
    else {
        // Without the files it still codes: a tone keeps its level.
        let tone: Vec<i16> = (0..80).map(|n| (8000.0 * f64::sin(f64::from(n) * 0.3)) as i16).collect();
        let payload = encode(&mut encoder, &tone);
        assert_eq!(payload.len(), 10);
        assert_eq!(decode(&mut decoder, &payload).len(), 80);
        return;
    };
    let (pcm, decoded) = (oracle::samples(&pcm), oracle::samples(&decoded));
    for (index, samples) in pcm.as_chunks::<80>().0.iter().enumerate().take(400) {
        let payload = encode(&mut encoder, samples);
        assert_eq!(payload, coded[index * 10..][..10], "frame {index}");
        assert_eq!(decode(&mut decoder, &payload), decoded[index * 80..][..80], "frame {index}");
    }
}

#[test]
fn a_process_that_dies_is_started_again_and_its_streams_go_on() {
    let Some(codec) = start(&oracle::TOY, &["mortal"], short()) else { return };
    let codec = codec.unwrap();
    let mut port = codec.open(Direction::Encode).unwrap();
    let mut out = [0; 320];
    let mut heard = 0;
    until("three lives", || {
        port.encode(&[1; 160]);
        heard += u32::from(port.encoded(&mut out).is_some());
        codec.status().restarts >= 2 && heard >= 8
    });
    let faults = codec.status().faults;
    assert!(faults.dead > 0 || faults.full > 0, "{faults:?}");
    // Another stream knows nothing of it: opened while the process is well, it is served.
    let mut other = codec.open(Direction::Decode).unwrap();
    let mut pcm = [0; 160];
    until("another stream's frame", || {
        other.decode(&[0x7f; 320]);
        other.decoded(&mut pcm).is_some()
    });
    assert_eq!(pcm, [0; 160]);
}

#[test]
fn a_process_that_hangs_or_talks_nonsense_is_ended_and_nobody_waits_for_it() {
    for illness in ["deaf", "mad"] {
        let Some(codec) = start(&oracle::TOY, &[illness], short()) else { return };
        let codec = codec.unwrap();
        let mut port = codec.open(Direction::Encode).unwrap();
        let (mut asked, mut slow) = (0, 0);
        until("restarts", || {
            let start = Instant::now();
            port.encode(&[1; 160]);
            port.encoded(&mut [0; 320]);
            asked += 1;
            slow += u32::from(start.elapsed() >= short().answer / 2);
            codec.status().restarts >= 2
        });
        // Whoever waited for the process would be slow each time; one that loses its processor is so now and then.
        assert!(2 * slow < asked, "{illness}: a worker would have waited {slow} times of {asked}");
    }
}

#[test]
fn a_process_that_is_not_there_or_does_not_greet_is_told_at_the_start() {
    let hurried = Limits { greeting: Duration::from_millis(300), ..short() };
    if let Some(started) = start(&oracle::TOY, &["mute"], hurried) {
        let error = started.unwrap_err();
        assert!(matches!(error, ExternalError::Greeting { .. }), "{error}");
    }
    let peer = Peer::Program { path: "/nonexistent/codec".into(), args: Vec::new() };
    let error = ExternalCodec::start("x", "g729", peer, short()).unwrap_err();
    assert!(error.to_string().starts_with("codec 'x': cannot start /nonexistent/codec"), "{error}");
    let error = ExternalCodec::start("x", "g729", Peer::Socket("/nonexistent".into()), short()).unwrap_err();
    assert!(matches!(error, ExternalError::Start { .. }), "{error}");
}

#[test]
fn a_codec_behind_a_unix_socket_is_spoken_to_alike() {
    use std::os::fd::OwnedFd;
    let Some(program) = Oracle::build(&oracle::TOY) else { return };
    let path = std::env::temp_dir().join(format!("strowger-toy-{}.sock", std::process::id()));
    let _absent = std::fs::remove_file(&path);
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let program = program.path().to_owned();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let (input, output): (OwnedFd, OwnedFd) = (stream.try_clone().unwrap().into(), stream.into());
        let mut child = std::process::Command::new(program).stdin(input).stdout(output).spawn().unwrap();
        child.wait().unwrap()
    });
    let codec = ExternalCodec::start("toy", "toy", Peer::Socket(path.clone()), patient()).unwrap();
    let mut port = codec.open(Direction::Decode).unwrap();
    assert_eq!(decode(&mut port, &[0x7e; 320]), [257; 160]);
    let lines = codec.lines().clone();
    drop(codec);
    until("an orphan", || port.is_orphan());
    assert!(lines.open(Direction::Decode).is_err() && !lines.status().alive, "it was ended");
    assert!(server.join().unwrap().success(), "the program ends when the server goes");
    std::fs::remove_file(path).unwrap();
}
