//! What a session does with packets, of every suite, and what it never does for packets that are not authentic.

use base::{SrtpKeys, SrtpSecret, SrtpSuite};
use kit::Random;
use proptest::prelude::*;
use srtp::{RTCP_TRAILER_MAX, RTP_TRAILER_MAX, Refused, Session};

#[global_allocator]
static ALLOCATOR: kit::Counting = kit::Counting;

fn secret(suite: SrtpSuite, seed: u64) -> SrtpSecret {
    SrtpSecret::new(suite, &Random(seed).bytes(suite.secret_bytes())).unwrap()
}
fn keys(suite: SrtpSuite, send: u64, receive: u64) -> SrtpKeys {
    let (send, receive) = (secret(suite, send), secret(suite, receive));
    SrtpKeys { suite, send, receive, replay_protection: true }
}
/// Two ends of a stream.
fn ends(suite: SrtpSuite) -> (Session, Session) {
    (Session::new(&keys(suite, 1, 2)).unwrap(), Session::new(&keys(suite, 2, 1)).unwrap())
}
fn rtp(ssrc: u32, sequence: u16, payload: usize) -> Vec<u8> {
    let mut packet = vec![0x80, 0];
    packet.extend(sequence.to_be_bytes());
    packet.extend((u32::from(sequence) * 160).to_be_bytes());
    packet.extend(ssrc.to_be_bytes());
    packet.extend((0..payload).map(|at| at as u8));
    packet
}
fn rtcp(ssrc: u32, more: usize) -> Vec<u8> {
    let mut packet = vec![0x80, 201, 0, 1 + more as u8];
    packet.extend(ssrc.to_be_bytes());
    packet.extend((0..more * 4).map(|at| at as u8));
    packet
}
fn seal(session: &mut Session, packet: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut buffer = [packet, &[0xee; RTP_TRAILER_MAX]].concat();
    let length = session.seal_rtp(&mut buffer, packet.len())?;
    buffer.truncate(length);
    Ok(buffer)
}
fn open(session: &mut Session, sealed: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut buffer = sealed.to_vec();
    let opened = session.open_rtp(&mut buffer);
    if opened.is_err() {
        assert_eq!(buffer, sealed, "what is refused stays as it came");
    }
    buffer.truncate(opened?);
    Ok(buffer)
}
fn seal_rtcp(session: &mut Session, packet: &[u8]) -> Vec<u8> {
    let mut buffer = [packet, &[0xee; RTCP_TRAILER_MAX]].concat();
    let length = session.seal_rtcp(&mut buffer, packet.len()).unwrap();
    buffer.truncate(length);
    buffer
}
fn open_rtcp(session: &mut Session, sealed: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut buffer = sealed.to_vec();
    let length = session.open_rtcp(&mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}

#[test]
fn rfc3711_3_1_packets_of_every_length_open_to_what_was_sealed() {
    for suite in SrtpSuite::ALL {
        let (mut a, mut b) = ends(suite);
        for payload in 0..400 {
            let plain = rtp(7, payload as u16, payload);
            let sealed = seal(&mut a, &plain).unwrap();
            assert_eq!(sealed.len(), plain.len() + suite.tag_bytes(), "{suite:?}");
            assert_eq!(sealed[..12], plain[..12], "the header is clear, {suite:?}");
            assert!(payload < 8 || sealed[12..12 + payload] != plain[12..], "{suite:?}");
            assert_eq!(open(&mut b, &sealed).unwrap(), plain, "{suite:?}, {payload} bytes");
        }
        for words in 0..50 {
            let plain = rtcp(7, words);
            let sealed = seal_rtcp(&mut a, &plain);
            assert_eq!(sealed[..8], plain[..8], "{suite:?}");
            assert_eq!(open_rtcp(&mut b, &sealed).unwrap(), plain, "{suite:?}, {words} words");
            assert_eq!(open_rtcp(&mut b, &sealed), Err(Refused::Replayed), "{suite:?}");
        }
    }
}

#[test]
fn rfc3711_3_3_one_wrong_bit_anywhere_is_refused_and_the_packet_itself_still_opens() {
    for suite in SrtpSuite::ALL {
        let (mut a, mut b) = ends(suite);
        for sequence in 0..3 {
            let plain = rtp(7, sequence, 21);
            let sealed = seal(&mut a, &plain).unwrap();
            for at in 0..sealed.len() * 8 {
                let mut wrong = sealed.clone();
                wrong[at / 8] ^= 1 << (at % 8);
                assert!(open(&mut b, &wrong).is_err(), "{suite:?}, bit {at}");
            }
            for length in 0..sealed.len() {
                assert!(open(&mut b, &sealed[..length]).is_err(), "{suite:?}, {length} bytes");
            }
            assert_eq!(open(&mut b, &sealed), Ok(plain), "{suite:?}");
        }
        let plain = rtcp(7, 6);
        let sealed = seal_rtcp(&mut a, &plain);
        for at in 0..sealed.len() * 8 {
            let mut wrong = sealed.clone();
            wrong[at / 8] ^= 1 << (at % 8);
            assert!(open_rtcp(&mut b, &wrong).is_err(), "{suite:?}, bit {at}");
        }
        for length in 0..sealed.len() {
            assert!(open_rtcp(&mut b, &sealed[..length]).is_err(), "{suite:?}, {length} bytes");
        }
        assert_eq!(open_rtcp(&mut b, &sealed), Ok(plain), "{suite:?}");
    }
}

#[test]
fn rfc3711_3_3_1_the_rollover_counter_follows_both_ends_over_wraps_loss_and_disorder() {
    for suite in SrtpSuite::ALL {
        let (mut a, mut b) = ends(suite);
        // Six times round in steps of nearly half the numbers, then over the edge one by one and out of order.
        let mut sequence = 40_000_u16;
        for step in 0..=20_u16 {
            let plain = rtp(7, sequence, 160);
            assert_eq!(open(&mut b, &seal(&mut a, &plain).unwrap()), Ok(plain), "{suite:?} {step}");
            sequence = sequence.wrapping_add(20_011);
        }
        let late: Vec<_> = [65_500, 65_534, 65_535, 0, 2, 1]
            .map(|sequence| (rtp(7, sequence, 160), seal(&mut a, &rtp(7, sequence, 160)).unwrap()))
            .into();
        for at in [0, 3, 4, 1, 5, 2] {
            let (plain, sealed) = &late[at];
            assert_eq!(open(&mut b, sealed).as_ref(), Ok(plain), "{suite:?} {at}");
        }
        for (_, sealed) in &late {
            assert_eq!(open(&mut b, sealed), Err(Refused::Replayed), "{suite:?}");
        }
    }
}

#[test]
fn rfc3711_3_3_2_replays_and_what_is_too_old_are_refused_unless_that_is_switched_off() {
    let suite = SrtpSuite::AesCm128Sha1Tag80;
    let (mut a, _) = ends(suite);
    let sealed: Vec<_> = (0..200).map(|sequence| seal(&mut a, &rtp(7, sequence, 10)).unwrap()).collect();
    for (protects, again, old) in
        [(true, Err(Refused::Replayed), Err(Refused::TooOld)), (false, Ok(()), Ok(()))]
    {
        let mut b = Session::new(&SrtpKeys { replay_protection: protects, ..keys(suite, 2, 1) }).unwrap();
        assert!(open(&mut b, &sealed[150]).is_ok());
        assert_eq!(open(&mut b, &sealed[150]).map(drop), again);
        assert_eq!(open(&mut b, &sealed[22]).map(drop), old);
    }
    // A sender never uses an index twice, whatever it is asked for.
    assert_eq!(seal(&mut a, &rtp(7, 199, 11)), Err(Refused::Replayed));
    assert_eq!(seal(&mut a, &rtp(7, 20, 11)), Err(Refused::TooOld));
}

#[test]
fn a_million_forgeries_in_every_disguise_change_nothing() {
    let forgeries = if cfg!(debug_assertions) { 40_000 } else { 1_000_000 };
    for suite in [SrtpSuite::AesCm128Sha1Tag80, SrtpSuite::AesGcm128] {
        let (mut a, mut b) = ends(suite);
        let mut random = Random(9);
        let mut sequence = 65_400_u16;
        for round in 0..forgeries / 1000 {
            let sealed = seal(&mut a, &rtp(7, sequence, 20)).unwrap();
            for _ in 0..1000 {
                let mut wrong = sealed.clone();
                // Any source, any number, any bytes; or a spoiled form of the real one.
                match random.below(4) {
                    0 => wrong[2..4].copy_from_slice(&(random.bits() as u16).to_be_bytes()),
                    1 => random.fill(&mut wrong[2..]),
                    2 => {
                        let at = wrong.len() - 1 - random.below(4);
                        wrong[at] ^= 1 << random.below(8);
                    }
                    _ => kit::spoil(&mut random, &mut wrong),
                }
                if wrong != sealed {
                    assert!(open(&mut b, &wrong).is_err(), "{wrong:x?}");
                }
            }
            assert!(open(&mut b, &sealed).is_ok(), "{suite:?}, round {round}");
            sequence = sequence.wrapping_add(3);
        }
    }
}

#[test]
fn several_sources_under_one_key_have_counters_of_their_own() {
    let (mut a, mut b) = ends(SrtpSuite::AesCm256Sha1Tag80);
    for sequence in [65_000_u16, 20_000, 50_000, 10_000] {
        for ssrc in [7, 8, 9] {
            let plain = rtp(ssrc, sequence - ssrc as u16 * 100, 30);
            assert_eq!(open(&mut b, &seal(&mut a, &plain).unwrap()), Ok(plain), "{ssrc} {sequence}");
        }
    }
}

#[test]
fn keys_that_stay_go_on_and_keys_that_change_begin_anew() {
    let suite = SrtpSuite::AesCm128Sha1Tag80;
    let (mut a, mut b) = ends(suite);
    let talk = |a: &mut Session, b: &mut Session, sequence| {
        let plain = rtp(7, sequence, 20);
        assert_eq!(open(b, &seal(a, &plain).unwrap()), Ok(plain), "{sequence}");
    };
    // Once round.
    for sequence in [60_000, 20_000, 50_000, 9000] {
        talk(&mut a, &mut b, sequence);
    }
    let first = seal(&mut a, &rtp(7, 9001, 20)).unwrap();
    // Hold and resume with the keys as they are: the counters go on, and so does the window.
    let (same_a, same_b) = (keys(suite, 1, 2), keys(suite, 2, 1));
    assert!(a.rekey(&same_a).is_some() && b.rekey(&same_b).is_some());
    assert!(open(&mut b, &first).is_ok());
    assert_eq!(open(&mut b, &first), Err(Refused::Replayed));
    talk(&mut a, &mut b, 9002);

    // Another key for one direction: what was sealed under the old one still opens until the new one is heard.
    let on_its_way = seal(&mut a, &rtp(7, 9003, 20)).unwrap();
    let last = seal(&mut a, &rtp(7, 9004, 20)).unwrap();
    assert!(a.rekey(&keys(suite, 3, 2)).is_some() && b.rekey(&keys(suite, 2, 3)).is_some());
    assert!(open(&mut b, &on_its_way).is_ok());
    talk(&mut a, &mut b, 9005);
    assert_eq!(open(&mut b, &last), Err(Refused::BadTag), "the old key is gone");
    talk(&mut b, &mut a, 1);

    // A peer that keeps its rollover counter under a new key is understood, too (RFC 3711 §3.3.1).
    let (mut c, mut d) = ends(suite);
    for sequence in [60_000, 20_000, 50_000, 9000] {
        talk(&mut c, &mut d, sequence);
    }
    let mut keeps = Session::new(&keys(suite, 5, 2)).unwrap();
    for sequence in [60_000, 20_000, 50_000, 9000] {
        seal(&mut keeps, &rtp(7, sequence, 20)).unwrap();
    }
    assert!(d.rekey(&keys(suite, 2, 5)).is_some());
    talk(&mut keeps, &mut d, 9001);

    // A suite that the secret does not fit changes nothing.
    let wrong = SrtpKeys { suite: SrtpSuite::AesGcm256, ..keys(suite, 8, 9) };
    assert!(Session::new(&wrong).is_none() && d.rekey(&wrong).is_none());
    talk(&mut keeps, &mut d, 9002);
}

#[test]
fn nothing_is_allocated_for_packets() {
    for suite in SrtpSuite::ALL {
        let (mut a, mut b) = ends(suite);
        let (plain, compound) = (rtp(7, 1, 160), rtcp(7, 10));
        let mut buffer = [0; 256];
        let count = kit::allocations(|| {
            for sequence in 0..100_u16 {
                buffer[..plain.len()].copy_from_slice(&plain);
                buffer[2..4].copy_from_slice(&sequence.to_be_bytes());
                let length = a.seal_rtp(&mut buffer, plain.len()).unwrap();
                assert!(b.open_rtp(&mut buffer[..length - 1]).is_err());
                assert_eq!(b.open_rtp(&mut buffer[..length]), Ok(plain.len()));
                buffer[..compound.len()].copy_from_slice(&compound);
                let length = a.seal_rtcp(&mut buffer, compound.len()).unwrap();
                assert_eq!(b.open_rtcp(&mut buffer[..length]), Ok(compound.len()));
            }
        });
        assert_eq!(count, 0, "{suite:?}");
    }
}

#[test]
fn a_buffer_without_room_for_the_tag_stays_as_it_is() {
    for suite in SrtpSuite::ALL {
        let (mut a, _) = ends(suite);
        let plain = rtp(7, 1, 160);
        for room in 0..suite.tag_bytes() {
            let mut buffer = [plain.clone(), vec![0; room]].concat();
            assert_eq!(a.seal_rtp(&mut buffer, plain.len()), Err(Refused::NoRoom), "{suite:?} {room}");
            assert_eq!(buffer[..plain.len()], plain);
        }
        let compound = rtcp(7, 3);
        for room in 0..14 {
            let mut buffer = [compound.clone(), vec![0; room]].concat();
            assert_eq!(a.seal_rtcp(&mut buffer, compound.len()), Err(Refused::NoRoom), "{suite:?} {room}");
            assert_eq!(buffer[..compound.len()], compound);
        }
        assert!(seal(&mut a, &plain).is_ok(), "no index was used up, {suite:?}");
    }
}

#[test]
fn bad_input_of_other_projects_is_refused_and_disturbs_nobody() {
    let suites = [SrtpSuite::AesCm128Sha1Tag80, SrtpSuite::AesCm128Sha1Tag32, SrtpSuite::AesGcm256];
    for suite in suites {
        let (mut a, mut b) = ends(suite);
        let mut sequence = 65_000_u16;
        for file in kit::bad_input("libsrtp-fuzz.tar.xz", "") {
            for skipped in [0, 30, 46] {
                let datagram = file.get(skipped..).unwrap_or_default();
                assert!(open(&mut b, datagram).is_err(), "{suite:?}");
                assert!(open_rtcp(&mut b, datagram).is_err(), "{suite:?}");
                // What cannot be a packet is not sealed either; nothing panics.
                let mut buffer = [datagram, &[0; RTCP_TRAILER_MAX]].concat();
                let mut other = Session::new(&keys(suite, 5, 6)).unwrap();
                if let Ok(length) = other.seal_rtp(&mut buffer, datagram.len()) {
                    assert_eq!(length, datagram.len() + suite.tag_bytes());
                }
            }
            sequence = sequence.wrapping_add(1);
            let plain = rtp(7, sequence, 20);
            assert_eq!(open(&mut b, &seal(&mut a, &plain).unwrap()), Ok(plain));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever is lost, doubled and disordered within the window, each packet opens once and to what was sealed.
    #[test]
    fn what_arrives_in_any_order_opens_once(
        suite in 0..SrtpSuite::ALL.len(),
        first in any::<u16>(),
        extension in any::<bool>(),
        sources in 0..4_usize,
        order in proptest::collection::vec((0..60_usize, 0..200_usize), 1..100),
    ) {
        let (mut a, mut b) = ends(SrtpSuite::ALL[suite]);
        let packets: Vec<_> = (0..60_u16).map(|at| {
            let mut plain = rtp(7, first.wrapping_add(at), usize::from(at) * 3);
            plain[0] |= sources as u8;
            plain.splice(12..12, std::iter::repeat_n(9, sources * 4));
            if extension {
                plain[0] |= 0x10;
                plain.splice(12 + sources * 4..12 + sources * 4, [0xbe, 0xde, 0, 1, 1, 2, 3, 4]);
            }
            let sealed = seal(&mut a, &plain).unwrap();
            (plain, sealed)
        }).collect();
        // The first packet tells where the counter stands.
        prop_assert_eq!(open(&mut b, &packets[0].1).unwrap(), packets[0].0.clone());
        let mut opened = vec![false; packets.len()];
        opened[0] = true;
        for (at, spoiled) in order {
            let (plain, sealed) = &packets[at];
            let mut wrong = sealed.clone();
            let place = spoiled % wrong.len();
            wrong[place] ^= 0x10;
            prop_assert!(open(&mut b, &wrong).is_err());
            let expected = if opened[at] { Err(Refused::Replayed) } else { Ok(plain.clone()) };
            prop_assert_eq!(open(&mut b, sealed), expected);
            opened[at] = true;
        }
    }
}
