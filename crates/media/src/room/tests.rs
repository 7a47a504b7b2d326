//! The mix against a plain twin: everyone hears the sum of the others, to the bit.

use super::*;

/// Repeatable numbers (Knuth's MMIX generator).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }
    fn below(&mut self, most: u32) -> u32 {
        self.next() % most
    }
    /// Often loud, so that sums saturate.
    fn sample(&mut self) -> i16 {
        if self.below(4) == 0 { [i16::MIN, i16::MAX][self.below(2) as usize] } else { self.next() as i16 }
    }
}

fn id(n: u32) -> StreamId {
    StreamId::new(n, 1)
}

fn member(n: u32, settings: MemberSettings) -> Member {
    Member {
        id: id(n),
        settings,
        seat: None,
        talk: Talk::default(),
        pcm: Box::default(),
        is_heard: false,
        is_on_stage: false,
        alike_ms: 0,
        shares: false,
        hears_apart: false,
        poisoned: false,
    }
}

fn room(settings: RoomSettings) -> Room {
    let seat = Wheel::new().sit(0, settings.interval_ms);
    Room::new(RoomId::new(0, 1), settings, seat, std::sync::Arc::default())
}

fn enter(room: &mut Room, n: u32, format: FormatId) {
    room.members.push(member(n, MemberSettings::default()));
    room.place(id(n), Ways { heard: format, format, ptime_ms: 20, wishes: base::Wishes::default() });
}

/// What a member is sent after this round, as linear samples.
fn hears(room: &mut Room, n: usize, level: Level) -> Vec<i16> {
    let (ms, _) = room.rounds();
    let member = &room.members[n];
    let seat = member.seat.as_ref().unwrap();
    if member.shares {
        return room.buses.list[seat.bus].full(ms).to_vec();
    }
    let count = samples(room.buses.list[seat.bus].rate, ms);
    room.feed_member(n, level, (None, None));
    room.mix[..count].to_vec()
}

fn clamp(total: i32) -> i16 {
    total.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
}

#[test]
fn everyone_hears_the_sum_of_the_others_bit_for_bit_through_joins_leaves_mutes_and_volumes() {
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let level = Level::all_available().nth(dice.below(3) as usize).unwrap_or(Level::portable());
        let interval_ms = [10, 20][dice.below(2) as usize];
        let mut room = room(RoomSettings { interval_ms, ..RoomSettings::default() });
        let mut next = 0;
        for round in 0..120 {
            match dice.below(6) {
                0 | 1 if room.members.len() < 12 => {
                    enter(&mut room, next, FormatId::SLIN);
                    next += 1;
                }
                2 if !room.members.is_empty() => {
                    let leaves = room.members[dice.below(room.members.len() as u32) as usize].id;
                    room.remove(leaves);
                }
                3 if !room.members.is_empty() => {
                    let n = dice.below(room.members.len() as u32) as usize;
                    let settings = &mut room.members[n].settings;
                    settings.deaf = dice.below(4) == 0;
                    settings.listening = Gain([64, 256, 256, 512][dice.below(4) as usize]);
                }
                _ => {}
            }
            let count = samples(SampleRate(8000), interval_ms);
            for member in &mut room.members {
                member.is_heard = dice.below(3) > 0;
                member.pcm[..count].iter_mut().for_each(|sample| *sample = dice.sample());
            }
            room.mix(level);
            room.feed_voices();
            for n in 0..room.members.len() {
                let heard = hears(&mut room, n, level);
                let own = &room.members[n];
                let expected: Vec<i16> = (0..count)
                    .map(|at| {
                        let others = room.members.iter().filter(|m| m.is_heard && m.id != own.id);
                        let sum = clamp(others.map(|m| i32::from(m.pcm[at])).sum());
                        let gain = if own.settings.deaf { 0 } else { i32::from(own.settings.listening.0) };
                        clamp((i32::from(sum) * gain) >> 8)
                    })
                    .collect();
                assert_eq!(heard, expected, "seed {seed}, round {round}, member {n} on {level}");
            }
            let listeners = room.members.iter().filter(|member| member.shares).count();
            assert_eq!(room.voices.iter().map(|voice| voice.listeners).sum::<usize>(), listeners);
            assert!(room.voices.len() <= 1 && room.buses.list.len() <= 1, "one format, one bus");
        }
    }
}

#[test]
fn places_follow_members_that_come_and_go_at_every_rate() {
    let formats =
        [FormatId::ULAW, FormatId::GSM, FormatId::G722, FormatId::SLIN, FormatId::SLIN48, FormatId::ALAW];
    for seed in 100..140 {
        let mut dice = Dice(seed);
        let mut room = room(RoomSettings::default());
        let mut next = 0;
        for _ in 0..150 {
            match dice.below(3) {
                0 => {
                    enter(&mut room, next, formats[dice.below(6) as usize]);
                    next += 1;
                }
                1 if !room.members.is_empty() => {
                    let leaves = room.members[dice.below(room.members.len() as u32) as usize].id;
                    room.remove(leaves);
                }
                _ if !room.members.is_empty() => {
                    let changes = room.members[dice.below(room.members.len() as u32) as usize].id;
                    let format = formats[dice.below(6) as usize];
                    let ptime_ms = [20, 40, 60][dice.below(3) as usize];
                    room.place(
                        changes,
                        Ways { heard: format, format, ptime_ms, wishes: base::Wishes::default() },
                    );
                }
                _ => {}
            }
            for member in &mut room.members {
                member.is_heard = dice.below(2) == 0;
            }
            room.mix(Level::best());
            room.feed_voices();
            for n in 0..room.members.len() {
                room.feed_member(n, Level::best(), (None, None));
            }
            for member in &room.members {
                let seat = member.seat.as_ref().unwrap();
                let (voice, bus) = (&room.voices[seat.voice], &room.buses.list[seat.bus]);
                assert_eq!((voice.bus, bus.rate), (seat.bus, voice.format.rate()), "seed {seed}");
                assert_eq!(member.pcm.len(), samples(bus.rate, ROUND_MS_MAX), "seed {seed}");
            }
            for (at, voice) in room.voices.iter().enumerate() {
                let mut seats =
                    room.members.iter().filter(|m| m.seat.as_ref().is_some_and(|s| s.voice == at));
                assert!(voice.listeners <= seats.clone().count() && seats.next().is_some(), "seed {seed}");
            }
        }
    }
}

#[test]
fn a_place_among_the_speakers_is_kept_against_one_who_is_not_twice_as_loud() {
    let mut room = room(RoomSettings { speakers_max: 2, ..RoomSettings::default() });
    for n in 0..4 {
        enter(&mut room, n, FormatId::SLIN);
    }
    let heard = |room: &mut Room, presence: [u32; 4]| {
        for (member, presence) in room.members.iter_mut().zip(presence) {
            member.is_heard = presence > 0;
            member.talk.presence = presence;
        }
        room.choose_speakers();
        room.members.iter().map(|member| member.is_heard).collect::<Vec<_>>()
    };
    assert_eq!(heard(&mut room, [500, 400, 300, 0]), [true, true, false, false]);
    assert_eq!(heard(&mut room, [500, 400, 700, 0]), [true, true, false, false], "not twice as loud");
    assert_eq!(heard(&mut room, [500, 400, 900, 0]), [true, false, true, false]);
    assert_eq!(heard(&mut room, [500, 0, 900, 100]), [true, false, true, false]);
    assert_eq!(heard(&mut room, [0, 0, 900, 100]), [false, false, true, true]);
}

#[test]
fn a_lower_highest_rate_moves_wide_members_to_a_narrow_bus() {
    let settings = RoomSettings { rate_max: Some(SampleRate(8000)), ..RoomSettings::default() };
    let mut room = room(settings);
    enter(&mut room, 0, FormatId::SLIN48);
    enter(&mut room, 1, FormatId::ULAW);
    assert_eq!(room.buses.list.iter().map(|bus| bus.rate.0).collect::<Vec<_>>(), [8000]);
    // No rate of ours is below 8 kHz; one between two is brought to the lower.
    for (most, rate) in [(4000, 8000), (8000, 8000), (20_000, 16_000), (96_000, 48_000)] {
        room.settings.rate_max = Some(SampleRate(most));
        assert_eq!(room.mixed_rate(SampleRate(48_000)), SampleRate(rate), "{most}");
    }
}
