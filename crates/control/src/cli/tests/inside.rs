//! What works inside the process, and what is registered.

use super::*;

#[test]
fn threads_queues_and_locks_are_what_the_process_has() {
    let mut desk = Desk::new("inside");
    let threads = desk.json("core show threads");
    let threads = threads["threads"].as_array().unwrap();
    let own = u64::from(std::process::id());
    assert!(threads.iter().any(|thread| thread["id"].as_u64() == Some(own)), "{threads:?}");
    let text = desk.text("core show threads");
    assert!(text.ends_with(" threads listed.\n"), "{text}");
    assert!(desk.text("core show locks").contains("=== Currently Held Locks\n"));

    let record = |name: &str, waiting, written| crate::site::RecordLine {
        name: name.into(),
        waiting,
        written,
        refused: 0,
        is_away: false,
    };
    *desk.cli.site.record_tables.borrow_mut() = vec![record("cdr_pgsql", 3, 40)];
    desk.cli.site.counters.set(crate::site::Counters {
        rows_waiting: 2,
        rows_written: 9,
        ..Default::default()
    });
    let lines = desk.lines("core show taskprocessors");
    let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(cells(&lines[1]), ["realtime/registrations", "9", "2"]);
    assert_eq!(cells(&lines[2]), ["records/cdr_pgsql", "40", "3"]);
    assert_eq!(lines[3], "2 taskprocessors");
    assert_eq!(desk.lines("core show taskprocessors like CDR").last().unwrap(), "1 taskprocessor");
}

#[test]
fn technologies_formats_switches_and_tones_are_listed() {
    let mut desk = Desk::new("registered");
    assert!(
        desk.text("core show channeltypes")
            .contains("PJSIP           SIP over UDP, TCP, TLS and WebSocket\n")
    );
    assert!(desk.text("core show channeltype pjsip").starts_with("-- Info about channel driver: PJSIP --\n"));
    assert_eq!(
        desk.run("core show channeltype DAHDI"),
        ("DAHDI is not a registered channel driver.\n".into(), 1)
    );
    let formats = desk.lines("core show file formats");
    assert!(formats.contains(&"slin       sln|slin|raw|wav".to_owned()), "{formats:?}");
    assert!(desk.text("core show switches").contains("Realtime: "));
    assert!(desk.text("indication show").contains("\nus      "));
    let zone = desk.text("indication show US");
    assert!(zone.contains("us      dial            350+440\n"), "{zone}");
    assert_eq!(desk.run("indication show atlantis"), ("Indication 'atlantis' not found\n".into(), 1));
    assert!(desk.text("core show license").contains("MIT"));
    assert!(desk.text("core show warranty").contains("without warranties"));
    assert!(desk.run("module refresh app_dial.so").0.starts_with("Unable to refresh module app_dial.so: "));
}

#[test]
fn groups_and_local_channels_of_the_calls_that_are_up_are_listed() {
    let mut desk = Desk::new("groups");
    assert_eq!(desk.text("local show channels"), "No local channels in use\n");
    let id = desk.call("6001", "100");
    let group = ("".to_owned(), "sales".to_owned());
    desk.cli.site.shard.core.borrow_mut().get_mut(id).unwrap().groups.push(group);
    let rows = desk.json("group show channels");
    let row = &rows["groups"][0];
    assert_eq!((row["channel"].as_str(), row["group"].as_str()), (Some("SIM/6001-00000000"), Some("sales")));
    assert!(desk.text("group show channels").ends_with("1 active channel\n"));
    assert!(desk.text("group show channels nobody").ends_with("0 active channels\n"));
}

#[test]
fn events_of_the_manager_are_described() {
    let mut desk = Desk::new("events");
    assert!(desk.text("manager show events").contains("  BridgeEnter "));
    let text = desk.text("manager show event bridgeenter");
    assert!(text.starts_with("Event: BridgeEnter\n[Synopsis]\nA channel entered a bridge.\n"), "{text}");
    assert!(text.contains("\nBridgeNumChannels:\n") && text.contains("\nChannelStateDesc:\n"), "{text}");
    let dialled = desk.text("manager show event dialbegin");
    assert!(dialled.contains("\nDestUniqueid:\n") && !dialled.contains('*'), "{dialled}");
    assert_eq!(desk.run("manager show event Nothing"), ("Could not find event 'Nothing'\n".into(), 1));
}
