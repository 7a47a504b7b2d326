//! The worker simulated: calls and their network from seeds on invented time, and a twin that does the same the plain way.
//! What every stream sends, tells and records is equal to the bit.
//!
//! `STROWGER_TWIN_SEEDS=1000` runs so many seeds instead of the quick set, `STROWGER_TWIN_SEED=7` one of them. A failure
//! prints the fewest acts that show it, and the command that runs just those.

mod dialler;
mod hall;
mod model;
mod parts;
mod script;
mod timetable;
mod world;

use std::ops::Range;

use codec::Level;
use media::Lanes;

use crate::model::Sent;
use crate::script::{Act, Script, Timed, Voices};
use crate::world::Outcome;

/// Seeds of the quick set.
const QUICK: u64 = 24;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn seeds() -> Range<u64> {
    match (number("STROWGER_TWIN_SEED"), number("STROWGER_TWIN_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(count)) => 0..count,
        (None, None) => 0..QUICK,
    }
}

/// What differs, as a sentence; `None` when nothing does.
fn difference(script: &Script, plain: &Outcome, done: &Outcome) -> Option<String> {
    let longest = script.ticks.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(1);
    let wait = match script.wait_ms {
        0 => 0,
        wait => u64::from(wait) + longest,
    };
    if plain.panics != done.panics {
        return Some(format!("{} panics, {} expected", done.panics, plain.panics));
    }
    let ids: std::collections::BTreeSet<_> = plain.sent.keys().chain(done.sent.keys()).collect();
    for id in ids {
        let none = Vec::new();
        let (expected, sent) = (plain.sent.get(id).unwrap_or(&none), done.sent.get(id).unwrap_or(&none));
        for n in 0..expected.len().max(sent.len()) {
            let (expected, sent) = (expected.get(n), sent.get(n));
            let same = expected.zip(sent).is_some_and(|(expected, sent)| is_same(expected, sent, wait));
            if !same {
                return Some(format!(
                    "{id:?}, packet {n}:\n  twin   {}\n  worker {}",
                    show(expected),
                    show(sent)
                ));
            }
        }
    }
    let ids: std::collections::BTreeSet<_> = plain.events.keys().chain(done.events.keys()).collect();
    for id in ids {
        let told = |outcome: &Outcome| {
            let mut events = outcome.events.get(id).cloned().unwrap_or_default();
            if wait > 0 {
                // What is found in sound is found when that is decoded.
                events.sort();
            }
            events
        };
        let (expected, told) = (told(plain), told(done));
        for n in 0..expected.len().max(told.len()) {
            let (expected, told) = (expected.get(n), told.get(n));
            if expected != told {
                return Some(format!("{id:?}, event {n}:\n  twin   {expected:?}\n  worker {told:?}"));
            }
        }
    }
    for (n, (expected, recorded)) in plain.recorded.iter().zip(&done.recorded).enumerate() {
        if expected != recorded {
            let at = expected.iter().zip(recorded).position(|(a, b)| a != b);
            let (expected, recorded) = (expected.len(), recorded.len());
            return Some(format!(
                "recording {n}: {recorded} samples, {expected} expected, first other at {at:?}"
            ));
        }
    }
    None
}

fn is_same(expected: &Sent, sent: &Sent, wait: u64) -> bool {
    let body = expected.bytes == sent.bytes
        || (!expected.is_exact
            && expected.bytes.len() == sent.bytes.len()
            && expected.bytes.get(..rtp::HEADER_BYTES) == sent.bytes.get(..rtp::HEADER_BYTES));
    let (to, rtcp, shared) = (sent.to, sent.rtcp, sent.shared);
    body && (expected.to, expected.rtcp, expected.shared) == (to, rtcp, shared)
        && (expected.at_ms..=expected.at_ms + wait).contains(&sent.at_ms)
}

fn show(sent: Option<&Sent>) -> String {
    let Some(Sent { at_ms, to, rtcp, bytes, .. }) = sent else { return "nothing".into() };
    let header = rtp::parse(bytes).ok().filter(|_| !rtcp).map(|(header, _)| header);
    let end = bytes.iter().skip(12).take(24).map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("{at_ms} ms to {to}, {} bytes, {header:?} {end}", bytes.len())
}

/// What the workers make of a script that their twins do not.
fn fault(script: &Script) -> Option<String> {
    let plain = world::twins(script);
    let lanes = Lanes { level: Level::best(), wait_ms: script.wait_ms };
    difference(script, &plain, &world::workers(script, lanes, script.batch))
}

/// The script with these of its acts; packets only for lines that are left.
fn only(script: &Script, keep: &[usize]) -> Script {
    let mut acts: Vec<_> = keep.iter().filter_map(|at| script.acts.get(*at)).cloned().collect();
    acts.sort_by_key(|timed| timed.at_ms);
    Script { acts, ..script.clone() }
}

/// Fewest acts that still show a fault: pieces are left out as long as it stays, smaller and smaller ones.
fn minimised(script: &Script) -> Vec<usize> {
    let mut keep: Vec<usize> = (0..script.acts.len()).collect();
    let mut piece = keep.len() / 2;
    while piece > 0 {
        let mut from = 0;
        while from < keep.len() {
            let mut fewer = keep.clone();
            fewer.drain(from..(from + piece).min(keep.len()));
            if fault(&only(script, &fewer)).is_some() {
                keep = fewer;
            } else {
                from += piece;
            }
        }
        piece /= 2;
    }
    keep
}

/// Panics that the runs inject are not printed.
fn quiet() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload_as_str().is_some_and(|text| text.contains("injected")) {
            print(info);
        }
    }));
}

#[test]
fn every_stream_of_a_worker_sends_tells_and_records_what_its_plain_twin_does() {
    quiet();
    let mut voices = Voices::default();
    let (mut packets, mut acts) = (0, 0);
    for seed in seeds() {
        let (mut script, after) = script::script(seed, voices);
        voices = after;
        if let Ok(list) = std::env::var("STROWGER_TWIN_ONLY") {
            let keep: Vec<usize> = list.split(',').filter_map(|at| at.parse().ok()).collect();
            script = only(&script, &keep);
        }
        let plain = world::twins(&script);
        let lanes = Lanes { level: Level::best(), wait_ms: script.wait_ms };
        let done = world::workers(&script, lanes, script.batch);
        if difference(&script, &plain, &done).is_some() {
            report(&script);
        }
        packets += done.sent.values().map(Vec::len).sum::<usize>();
        acts += script.acts.iter().filter(|timed| !timed.act.is_packet()).count();
    }
    println!("{packets} packets and {acts} commands as expected");
    assert!(packets > 0);
}

/// Slots between two companies, and milliseconds by which a crowd comes later.
const APART: u32 = 100;
const LATER_MS: u64 = 250;

/// A run in which nobody takes another seat once all have one: seats depend on who else is there.
fn seated(script: &Script) -> Script {
    let began = script.acts.first().map_or(0, |timed| timed.at_ms);
    let stays = |timed: &&Timed| match timed.act {
        Act::Open { worker, .. } => worker == 0 && timed.at_ms < began + LATER_MS,
        Act::Plan { .. } | Act::Close { .. } | Act::Move { .. } | Act::Poison { .. } => false,
        _ => true,
    };
    Script { acts: script.acts.iter().filter(stays).cloned().collect(), ..script.clone() }
}

/// The same lines with others beside them, who come later and are in no rooms.
fn in_a_crowd(script: &Script, crowd: &[Script]) -> Script {
    let mut acts = script.acts.clone();
    for (number, others) in (1..).zip(crowd) {
        let rooms = |timed: &&Timed| !matches!(timed.act, Act::Enter { .. } | Act::Adjust { .. });
        acts.extend(others.acts.iter().filter(rooms).map(|timed| Timed {
            at_ms: timed.at_ms + LATER_MS,
            act: timed.act.clone().apart(number * APART),
        }));
    }
    acts.sort_by_key(|timed| timed.at_ms);
    Script { acts, ..script.clone() }
}

#[test]
fn what_a_stream_sends_depends_on_neither_neighbours_nor_groups_nor_batches_nor_the_wait() {
    quiet();
    let mut voices = Voices::default();
    let mut packets = 0;
    for seed in seeds() {
        let mut seated = |seed| {
            let (script, after) = script::script(seed, std::mem::take(&mut voices));
            voices = after;
            seated(&script)
        };
        let mut script = seated(seed);
        if script.wait_ms == 0 {
            continue; // with things in it that come when a group is run
        }
        let alone = Lanes { level: Level::portable(), wait_ms: 0 };
        let alone = world::workers(&script, alone, 1);
        packets += alone.sent.values().map(Vec::len).sum::<usize>();
        let crowd: Vec<_> = (1..=6).map(|n| seated(1000 * n + seed)).collect();
        let crowded = in_a_crowd(&script, &crowd);
        for level in Level::all_available() {
            for (wait_ms, batch) in [(0, 64), (script.wait_ms, 3), (9, 17)] {
                script.wait_ms = wait_ms.max(1);
                let mut done = world::workers(&crowded, Lanes { level, wait_ms }, batch);
                done.sent.retain(|id, _| id.slot < APART);
                done.events.retain(|id, _| id.slot < APART);
                done.recorded.clear();
                if let Some(wrong) = difference(&script, &alone, &done) {
                    panic!("seed {seed}, {level}, {wait_ms} ms, batches of {batch}: {wrong}");
                }
            }
        }
    }
    assert!(packets > 0 || number("STROWGER_TWIN_SEED").is_some());
}

/// Fails with the fewest acts that show what is wrong with this script.
fn report(script: &Script) -> ! {
    let mut keep: Vec<usize> = (0..script.acts.len()).collect();
    // Acts that were chosen by hand are all wanted.
    if std::env::var("STROWGER_TWIN_ONLY").is_err() {
        keep = minimised(script);
    }
    let small = only(script, &keep);
    for timed in &small.acts {
        match &timed.act {
            Act::Packet { slot, rtcp, from, bytes } => {
                let header = rtp::parse(bytes).map(|(header, _)| header);
                println!(
                    "{} ms: slot {slot} from {from} rtcp {rtcp} {} bytes {header:?}",
                    timed.at_ms,
                    bytes.len()
                );
            }
            act => println!("{} ms: {act:?}", timed.at_ms),
        }
    }
    let list: Vec<String> = keep.iter().map(ToString::to_string).collect();
    let wrong = fault(&small).unwrap_or_else(|| "nothing any more".into());
    panic!(
        "seed {}, waits {} ms: {wrong}\nagain: STROWGER_TWIN_SEED={} STROWGER_TWIN_ONLY={} \
         cargo test -p media --test twin -- --nocapture",
        script.seed,
        script.wait_ms,
        script.seed,
        list.join(",")
    );
}
