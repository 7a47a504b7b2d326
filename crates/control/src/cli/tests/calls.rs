//! Commands about channels.

use call::{ChanState, Limits};

use super::*;

#[test]
fn channels_are_listed_in_the_columns_that_tools_cut() {
    let mut desk = Desk::new("channels");
    desk.call("6001", "100");
    desk.pass(75);
    assert_eq!(
        desk.lines("core show channels"),
        [
            "Channel                                                          Location                         State   Application(Data)",
            "SIM/6001-00000000                                                100@default:2                    Up      Wait(600)",
            "1 active channel",
            "1 active call",
            "1 call processed",
        ]
    );
    assert_eq!(desk.text("show channels"), desk.text("core show channels"));
    let concise = desk.text("core show channels concise");
    assert_eq!(concise, "SIM/6001-00000000!default!100!2!Up!Wait!600!6001!!!3!75!!1795262400.0\n");
    assert_eq!(concise.matches('!').count(), 13);
    assert_eq!(
        desk.lines("core show channels verbose")[1],
        format!(
            "{:<80} {:<24} {:<24} {:>4} Up      Wait         600                       6001            00:01:15",
            "SIM/6001-00000000", "default", "100", 2
        )
    );
    assert_eq!(
        desk.lines("core show channels count"),
        ["1 active channel", "1 active call", "1 call processed"]
    );
    desk.world.shard.core.borrow_mut().admission.set_limits(Limits { max_calls: 8, ..Limits::default() });
    assert_eq!(desk.lines("core show channels count")[1], "1 of 8 max active calls (12.50% of capacity)");
    let json = desk.json("core show channels");
    assert_eq!(json["channels"][0]["name"], "SIM/6001-00000000");
    assert_eq!(json["channels"][0]["caller_name"], "Al!ce\x1b");
    assert_eq!(json["active_calls"], 1);
}

#[test]
fn a_channel_is_shown_by_name_and_by_uniqueid_and_never_steers_the_terminal() {
    let mut desk = Desk::new("channel");
    desk.call("6001", "100");
    desk.pass(1);
    let shown = desk.text("core show channel SIM/6001-00000000");
    for line in [
        " -- General --",
        "           Name: SIM/6001-00000000",
        "      Caller ID: 6001",
        " Caller ID Name: Al!ce?",
        "          State: Up (6)",
        " --   PBX   --",
        "        Context: default",
        "      Extension: 100",
        "       Priority: 2",
        "    Application: Wait",
        "           Data: 600",
    ] {
        assert!(shown.lines().any(|have| have == line), "{line:?} is missing in\n{shown}");
    }
    assert_eq!(desk.text("core show channel 1795262400.0"), shown);
    assert_eq!(desk.json("core show channel 1795262400.0")["state_code"], 6);
    let (text, status) = desk.run("core show channel SIM/none");
    assert_eq!((text.as_str(), status), ("SIM/none is not a known channel\n", 1));
    let (text, status) = desk.ask("core show channel SIM/none", true);
    assert_eq!((text.as_str(), status), ("{\"error\":\"SIM/none is not a known channel\"}\n", 1));
}

#[test]
fn a_channel_is_hung_up_and_sent_on() {
    let mut desk = Desk::new("steer");
    desk.call("6001", "100");
    let kept = desk.call("6002", "100");
    desk.pass(1);
    assert_eq!(
        desk.text("channel redirect SIM/6002-00000001 default,101,1"),
        "Channel 'SIM/6002-00000001' successfully redirected to default,101,1\n"
    );
    assert_eq!(desk.run("channel redirect SIM/6002-00000001 default,999,1").1, 1);
    assert_eq!(
        desk.text("channel request hangup SIM/6001-00000000"),
        "Requested Hangup on channel 'SIM/6001-00000000'\n"
    );
    desk.pass(1);
    assert_eq!(desk.lines("core show channels count")[0], "1 active channel");
    assert_eq!(desk.world.shard.core.borrow().get(kept).unwrap().location.exten, "101");
    assert_eq!(desk.text("channel request hangup all"), "Requested Hangup on channel 'SIM/6002-00000001'\n");
    desk.pass(1);
    assert_eq!(desk.lines("core show channels count")[0], "0 active channels");
    assert_eq!(desk.run("channel request hangup SIM/x"), ("SIM/x is not a known channel\n".into(), 1));
}

#[test]
fn an_originated_call_runs_an_application_or_the_dialplan_and_failure_is_logged() {
    let mut desk = Desk::new("originate");
    let phone = sim::Phone { acts: vec![(100, sim::Act::Ring), (500, sim::Act::Answer)], refuses: None };
    desk.world.phone("6001", phone);
    assert_eq!(desk.text("channel originate SIM/6001 application Wait 600"), "");
    assert_eq!(desk.text("channel originate SIM/6001 extension 100@default"), "");
    desk.pass(0);
    assert_eq!(
        desk.lines("core show channels")[1],
        "SIM/6001-00000000                                                (None)                           Down    AppDial2((Outgoing Line))"
    );
    desk.pass(2);
    let shown = desk.lines("core show channels");
    assert_eq!(
        shown[1],
        "SIM/6001-00000000                                                (None)                           Up      Wait(600)"
    );
    assert_eq!(
        shown[2],
        "SIM/6001-00000001                                                100@default:2                    Up      Wait(600)"
    );
    for (line, said) in [
        ("channel originate 6001 application Wait 1", "'6001' is no TECHNOLOGY/RESOURCE to call\n"),
        ("channel originate DAHDI/1 extension 100", "There is no channel technology 'DAHDI'\n"),
        ("channel originate SIM/6001 application Nothing", "There is no application 'Nothing'\n"),
    ] {
        assert_eq!(desk.run(line), (said.to_owned(), 1), "{line}");
    }
    desk.text("channel originate SIM/nobody extension 100@default");
    desk.pass(1);
    assert_eq!(
        desk.world.log(call::Level::Warning),
        ["the call to SIM/nobody that was originated failed: Unallocated (unassigned) number (1)"]
    );
}

#[test]
fn forty_thousand_channels_are_listed_in_linear_time_and_whole() {
    let mut desk = Desk::new("many");
    {
        let core = &mut *desk.world.shard.core.borrow_mut();
        for _ in 0..40_000 {
            let new = call::NewChannel {
                base_name: "SIM/6001".into(),
                state: ChanState::Up,
                ..call::NewChannel::default()
            };
            core.create(new).unwrap();
        }
    }
    let text = desk.text("core show channels concise");
    assert_eq!(text.lines().count(), 40_000);
    assert!(text.lines().all(|line| line.matches('!').count() == 13));
    assert_eq!(desk.json("core show channels")["channels"].as_array().unwrap().len(), 40_000);
    assert_eq!(desk.cli.complete("core show channel S", None).len(), COMPLETIONS_MAX);
}
