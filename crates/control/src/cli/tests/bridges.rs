//! Bridges on the console.

use super::*;

#[test]
fn a_bridge_is_shown_and_who_is_in_it_sent_out() {
    let mut desk = Desk::new("bridges");
    for phone in ["6001", "6002", "6003"] {
        desk.call(phone, "102");
    }
    desk.pass(2);
    let listed = desk.json("bridge show all");
    let id = listed["bridges"][0]["id"].as_str().unwrap().to_owned();
    let unique = {
        let core = desk.world.shard.core.borrow();
        crate::ami::bridge_name(core.bridges().next().unwrap().0)
    };
    assert_eq!(id, unique, "as the manager's events name it");
    let concise = desk.text("core show channels concise");
    assert!(concise.lines().all(|line| line.split('!').nth(12) == Some(&id)), "{concise}");
    let lines = desk.lines(&format!("bridge show {id}"));
    assert_eq!(
        lines[1..],
        [
            "Type: base",
            "Technology: softmix",
            "Conference: room",
            "Num-Channels: 4",
            "Channel: CBAnn/room-00000000;2",
            // Who came first was told that he is alone before he entered.
            "Channel: SIM/6002-00000001 6002 00:00:02",
            "Channel: SIM/6003-00000002 6003 00:00:02",
            "Channel: SIM/6001-00000000 6001 00:00:02",
        ]
    );
    let shown = desk.json(&format!("bridge show {id}"));
    assert_eq!((&shown["type"], &shown["conference"]), (&"base".into(), &"room".into()));
    assert_eq!(shown["channels"][1]["caller_number"], "6003");
    for (command, said) in [
        ("bridge show 9-9".to_owned(), "Bridge '9-9' not found\n"),
        ("bridge kick 9-9 SIM/6001-00000000".to_owned(), "Bridge '9-9' not found\n"),
        (format!("bridge kick {id} SIM/nobody"), "Channel 'SIM/nobody' is not in that bridge\n"),
        ("bridge destroy x".to_owned(), "Bridge 'x' not found\n"),
    ] {
        assert_eq!(desk.run(&command), (said.to_owned(), 1), "{command}");
    }
    let said = desk.text(&format!("bridge kick {id} SIM/6002-00000001"));
    assert_eq!(said, format!("Kicking channel 'SIM/6002-00000001' from bridge '{id}'\n"));
    desk.pass(1);
    assert_eq!(desk.json(&format!("bridge show {id}"))["channels"].as_array().map(Vec::len), Some(2));
    assert_eq!(desk.text(&format!("bridge destroy {id}")), format!("Destroying bridge '{id}'\n"));
    desk.pass(5);
    assert_eq!(desk.json("bridge show all")["bridges"], Value::Array(Vec::new()));
    let technologies = desk.lines("bridge technology show");
    let names: Vec<&str> = technologies[1..].iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["native_rtp", "holding_bridge", "simple_bridge", "softmix"]);
}

#[test]
fn conferences_answer_to_the_words_of_meetme() {
    let mut desk = Desk::new("meetme");
    desk.call("6001", "102");
    desk.pass(1);
    for (old, new) in [("meetme list", "confbridge list"), ("meetme list room", "confbridge list room")] {
        assert_eq!(desk.text(old), desk.text(new), "{old}");
    }
    assert_eq!(desk.text("meetme lock room"), "Conference room is locked.\n");
    assert_eq!(desk.text("meetme unlock room"), "Conference room is unlocked.\n");
    assert_eq!(desk.text("meetme mute room all"), "Muted all in conference room\n");
    assert_eq!(desk.text("meetme kick room all"), "Kicked all in conference room\n");
}
