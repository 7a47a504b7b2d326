//! Conferences on the console.

use super::*;

#[test]
fn conferences_are_listed_and_members_muted_locked_and_sent_out() {
    let mut desk = Desk::new("conferences");
    assert_eq!(desk.lines("confbridge list").len(), 2, "two lines of heading");
    for _ in 0..2 {
        desk.call("6001", "102");
    }
    desk.pass(2);
    let line = "room                                  2      0 No     No";
    assert_eq!(desk.lines("confbridge list")[2], line);
    let bridges = desk.text("bridge show all");
    assert!(bridges.trim_end().ends_with("    3 base            softmix         00:00:01"), "{bridges}");
    let members = desk.lines("confbridge list room");
    assert!(members[2].starts_with("SIM/6001-00000000") && members[2].ends_with("6001"), "{members:?}");
    for (command, said, listed) in [
        (
            "confbridge mute room SIM/6001-00000001",
            "Muted SIM/6001-00000001 in conference room\n",
            "No     No",
        ),
        ("confbridge mute room all", "Muted all in conference room\n", "No     Yes"),
        ("confbridge unmute room participants", "Unmuted participants in conference room\n", "No     No"),
        ("confbridge lock room", "Conference room is locked.\n", "Yes    No"),
        ("confbridge unlock room", "Conference room is unlocked.\n", "No     No"),
    ] {
        assert_eq!(desk.text(command), said);
        let lines = desk.lines("confbridge list");
        assert!(lines[2].ends_with(listed), "{command}: {lines:?}");
    }
    for (command, said) in [
        ("confbridge list other", "No conference bridge named 'other' found!\n"),
        ("confbridge lock other", "No conference bridge named 'other' found!\n"),
        ("confbridge kick other all", "No conference bridge named 'other' found!\n"),
        ("confbridge kick room SIM/nobody", "No channel named 'SIM/nobody' found\n"),
    ] {
        assert_eq!(desk.run(command), (said.to_owned(), 1), "{command}");
    }
    for (command, words) in [
        ("confbridge record start room /x/kept.wav", "Recording started: /x/kept.wav"),
        ("confbridge record stop room", "Recording stopped: /x/kept.wav"),
        ("confbridge show profile bridges", "default_bridge"),
        ("confbridge show profile users", "default_user"),
        ("confbridge show menus", "menus"),
        ("confbridge show profile bridge default_bridge", "max_members:                 0"),
        ("confbridge show profile user default_user", "announce_only_user:          yes"),
    ] {
        let said = desk.text(command);
        assert!(said.contains(words), "{command}: {said}");
    }
    for (command, said) in [
        ("confbridge record stop room", "Conference 'room': it is not recorded\n"),
        ("confbridge record start other", "No conference bridge named 'other' found!\n"),
        ("confbridge show profile user other", "No conference user profile named 'other' found!\n"),
        ("confbridge mute room SIM/6001", "No channel named 'SIM/6001' found\n"),
    ] {
        assert_eq!(desk.run(command), (said.to_owned(), 1), "{command}: two channels begin so");
    }
    desk.text("confbridge kick room SIM/6001-00000000");
    desk.pass(1);
    assert_eq!(desk.json("confbridge list room")["members"].as_array().unwrap().len(), 1);
    desk.text("confbridge kick room all");
    desk.pass(1);
    assert_eq!(desk.lines("confbridge list").len(), 2);
}
