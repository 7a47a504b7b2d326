//! Writes behind, on invented time.

use std::time::Duration;

use base::Instant;
use realtime::behind::{BATCH_MAX, Behind, GATHER, Outcome, WAITING_MAX};

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn keys(batch: &[(u32, &str)]) -> Vec<(u32, String)> {
    batch.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
}

#[test]
fn writes_of_one_key_are_one_write_of_its_last_state() {
    let mut behind: Behind<u32, &str> = Behind::default();
    for (key, value) in [(1, "a"), (2, "b"), (1, "c"), (1, "d")] {
        assert!(behind.put(key, value, at(0)));
    }
    assert_eq!(behind.take(at(0)), [], "they are gathered");
    assert_eq!(behind.deadline(), Some(at(0) + GATHER));
    assert_eq!(keys(behind.take(at(1))), [(1, "d".to_owned()), (2, "b".to_owned())]);
    assert_eq!(behind.take(at(1)), [], "one batch at once");
    assert_eq!(behind.deadline(), None);
    behind.done(Outcome::Written, at(1));
    assert!(behind.is_empty() && behind.counts() == (2, 0) && behind.deadline().is_none());
}

#[test]
fn an_hour_without_the_database_loses_nothing_and_tries_with_growing_patience() {
    let mut behind: Behind<u32, &str> = Behind::default();
    behind.put(1, "old", at(0));
    behind.put(2, "kept", at(0));
    let (mut now, mut tries, mut waits) = (at(1), 0, Vec::new());
    while now < at(3600) {
        assert!(!behind.take(now).is_empty(), "try {tries}");
        if tries == 0 {
            behind.put(1, "new", now);
        }
        behind.done(Outcome::Away, now);
        let next = behind.deadline().unwrap();
        waits.push(next.since(now).as_secs());
        (now, tries) = (next, tries + 1);
    }
    assert_eq!(waits.get(..7), Some(&[1, 2, 4, 5, 5, 5, 5][..]));
    let mut batch = keys(behind.take(now));
    batch.sort();
    assert_eq!(batch, [(1, "new".to_owned()), (2, "kept".to_owned())]);
    behind.done(Outcome::Written, now);
    assert_eq!((behind.len(), behind.counts()), (0, (2, 0)));
}

#[test]
fn what_is_pending_of_a_key_is_its_newest_write_until_it_is_done() {
    let mut behind: Behind<u32, &str> = Behind::default();
    assert_eq!(behind.pending(&1), None);
    behind.put(1, "old", at(0));
    assert_eq!(behind.pending(&1), Some(&"old"), "waits");
    assert_eq!(behind.take(at(1)).len(), 1);
    assert_eq!(behind.pending(&1), Some(&"old"), "is on its way");
    behind.put(1, "new", at(1));
    assert_eq!(behind.pending(&1), Some(&"new"), "follows it");
    behind.done(Outcome::Away, at(1));
    assert_eq!(behind.take(at(9)).len(), 1);
    behind.done(Outcome::Written, at(9));
    assert_eq!(behind.pending(&1), None);
}

#[test]
fn of_a_batch_that_is_refused_only_the_bad_write_is_lost() {
    let mut behind: Behind<u32, &str> = Behind::default();
    (0..5).for_each(|key| assert!(behind.put(key, if key == 3 { "bad" } else { "good" }, at(0))));
    let mut sizes = Vec::new();
    while !behind.is_empty() {
        let batch = keys(behind.take(at(9)));
        sizes.push(batch.len());
        let bad = batch.iter().any(|(_, value)| value == "bad");
        behind.done(if bad { Outcome::Refused } else { Outcome::Written }, at(9));
    }
    assert_eq!((sizes, behind.counts()), (vec![5, 1, 1, 1, 1, 1], (4, 1)));
}

#[test]
fn what_waits_is_bounded_taken_in_batches_and_due_at_once_when_the_process_ends() {
    let mut behind: Behind<usize, ()> = Behind::default();
    (0..WAITING_MAX).for_each(|key| assert!(behind.put(key, (), at(0))));
    assert!(!behind.put(WAITING_MAX, (), at(0)) && behind.put(0, (), at(0)), "a known key replaces");
    assert_eq!(behind.counts(), (0, 1));
    behind.hurry(at(0));
    assert_eq!(behind.take(at(0)).len(), BATCH_MAX);
    behind.done(Outcome::Written, at(0));
    assert_eq!(behind.len(), WAITING_MAX - BATCH_MAX);
    assert_eq!(behind.deadline(), Some(at(0)), "the next batch follows at once");
}
