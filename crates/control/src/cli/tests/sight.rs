//! What the media plane measures of itself.

use base::StreamStats;
use call::Quality;

use super::*;

#[test]
fn workers_show_where_the_last_second_went_and_how_late_ticks_were() {
    let mut desk = Desk::new("workers");
    let lines = desk.lines("media show workers");
    let columns: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(
        columns,
        "Worker Streams Tick control receive jitter decode mix encode seal send idle late p50 p99 p99.9 most"
            .split(' ')
            .collect::<Vec<_>>()
    );
    let row: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(row[..2], ["0", "0"], "one worker without a stream");
    assert_eq!(row[11..], ["100.0%", "-", "-", "-", "0us"]);
    assert_eq!(lines.len(), 2);

    let worker = desk.json("media show workers")["workers"][0].clone();
    assert_eq!(worker["recent_permille"]["idle"], 1000);
    assert_eq!(worker["recent_permille"].as_object().unwrap().len(), 9);
    assert_eq!(worker["ticks_within"]["1000"], 0);
    assert_eq!(worker["late_p99_us"], Value::Null);
    assert!(worker["phases_ns"]["send"].is_u64());
}

#[test]
fn a_call_shows_its_losses_and_what_they_are_worth() {
    let mut desk = Desk::new("stats");
    assert_eq!(desk.lines("rtp show stats").last().unwrap(), "0 channels");
    let id = desk.call("6001", "100");
    let stats = StreamStats {
        received_packets: 950,
        lost_packets: 50,
        jitter_us: 5000,
        buffer_ms: 40,
        sent_packets: 1000,
        round_trip_us: 40_000,
        ..StreamStats::default()
    };
    let mut quality = Quality::default();
    quality.latest = stats;
    desk.world.shard.core.borrow_mut().get_mut(id).unwrap().quality = Some(Box::new(quality));
    let row = desk.json("rtp show stats")["channels"][0].clone();
    assert_eq!(
        (&row["name"], &row["lost"], &row["buffer_ms"]),
        (&"SIM/6001-00000000".into(), &50.into(), &40.into())
    );
    // 5 % of G.711 lost, 80 ms from mouth to ear; nothing lost towards the peer, 40 ms.
    assert_eq!((&row["rating"], &row["mos"]), (&75.5.into(), &3.84.into()));
    assert_eq!((&row["peer_rating"], &row["peer_mos"]), (&92.24.into(), &4.39.into()));
    let line = desk.lines("rtp show stats")[1].clone();
    assert!(line.contains(" 3.84 ") && line.contains(" 4.39 "), "{line}");
}
