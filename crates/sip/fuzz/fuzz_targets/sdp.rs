//! Any description, as an offer and as an answer. Oracle: our answer is a description with as many streams.
#![no_main]

use base::{Direction, FormatId, FormatSet, SrtpSuite};
use libfuzzer_sys::fuzz_target;
use sip::sdp::{Encryption, Local, LocalPassed, Negotiator, Session, VideoFeedback, PassedFormat};

fuzz_target!(|bytes: &[u8]| {
    let formats: FormatSet = FormatId::ALL.iter().copied().collect();
    // Of descriptions of even length SRTP is wanted where it can be had.
    let encryption = Encryption {
        suites: &[SrtpSuite::AesCm128Sha1Tag80],
        optimistic: true,
        force_avp: false,
        to_edge: true,
        random: |bytes| bytes.fill(7),
    };
    let encryption = Some(encryption).filter(|_| bytes.len().is_multiple_of(2));
    let pictures: Vec<PassedFormat> = FormatId::VIDEO.iter().copied().map(PassedFormat::plain).collect();
    let video = LocalPassed { formats: &pictures, port: 5000, feedback: VideoFeedback::ALL, direction: Direction::SendRecv };
    let video = [video, LocalPassed { port: 5002, ..video }];
    let local = Local {
        encryption,
        passed: &video,
        rtcp_mux: true,
        use_remote_ptime: true,
        ..Local::new(formats, [192, 0, 2, 1].into(), 4000)
    };
    let mut negotiator = Negotiator::new(7);
    let mut out = Vec::new();
    if let Ok(agreed) = negotiator.answer(bytes, &local, &mut out) {
        let theirs = Session::parse(bytes).expect("it was answered");
        let ours = Session::parse(&out).expect("what we write is a description");
        assert_eq!(theirs.streams.len(), ours.streams.len());
        assert!(agreed.primary().is_some() && (10..=60).contains(&agreed.ptime_ms));
        assert!(agreed.passed.len() <= video.len());
        assert!(agreed.passed.iter().flatten().all(|video| video.primary().is_some()));
        out.clear();
        negotiator.offer(&local, &mut out);
        assert!(Session::parse(&out).is_some());
    }
    let mut caller = Negotiator::new(8);
    caller.offer(&local, &mut Vec::new());
    let _ = caller.accept_answer(bytes, &local);
});
