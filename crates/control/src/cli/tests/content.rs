//! Commands about the dialplan, the database, formats and music.

use super::*;

#[test]
fn the_bundled_music_shows_as_the_default_class() {
    let mut desk = Desk::new("moh");
    assert_eq!(desk.lines("moh show classes")[..2], ["Class: default", "\tMode: files"]);
    assert_eq!(desk.json("moh show classes")["classes"][0]["name"], "default");
}

#[test]
fn the_database_is_written_and_read() {
    let mut desk = Desk::new("database");
    for (line, said, status) in [
        ("database put cidname 100 \"Al Ice\"", "Updated database successfully\n", 0),
        ("database get cidname 100", "Value: Al Ice\n", 0),
        ("database get cidname 101", "Database entry not found.\n", 1),
        (
            "database show",
            "/cidname/100                                      : Al Ice                   \n1 results found.\n",
            0,
        ),
        (
            "database showkey 100",
            "/cidname/100                                      : Al Ice                   \n1 results found.\n",
            0,
        ),
        ("database showkey 10", "0 results found.\n", 0),
        ("database del cidname 100", "Database entry removed.\n", 0),
        ("database del cidname 100", "Database entry could not be removed.\n", 1),
        ("database put f a 1", "Updated database successfully\n", 0),
        ("database put f b 2", "Updated database successfully\n", 0),
        ("database deltree f", "2 database entries removed.\n", 0),
        ("database deltree f", "Database entries do not exist.\n", 1),
    ] {
        assert_eq!(desk.run(line), (said.to_owned(), status), "{line}");
    }
    let (text, status) = desk.run("database deltree \"\"");
    assert_eq!(status, 1);
    assert!(text.starts_with("Usage: database deltree <family> [<key>]\n"), "{text}");
}

#[test]
fn the_dialplan_is_shown_and_its_globals_set() {
    let mut desk = Desk::new("dialplan");
    assert_eq!(
        desk.lines("dialplan show 101@default"),
        [
            "[ Context 'default' created by 'pbx_config' ]",
            "  '101' =>          1. Wait(30)                                   [extensions.conf:6]",
            "",
            "-= 1 extension (1 priority) in 1 context. =-",
        ]
    );
    assert_eq!(
        desk.run("dialplan show nowhere"),
        ("There is no existence of 'nowhere' context\nCommand 'dialplan show nowhere' failed.\n".into(), 1)
    );
    let json = desk.json("dialplan show default");
    assert_eq!(json["contexts"][0]["extensions"][0]["steps"][1]["label"], "talk");
    assert_eq!(
        desk.text("dialplan set global LINE \"a b\""),
        "\n    -- Global variable 'LINE' set to 'a b'\n"
    );
    assert_eq!(
        desk.text("dialplan show globals"),
        "   LINE=a b\n   TRUNK=PJSIP/out\n\n    -- 2 variable(s)\n"
    );
    assert_eq!(
        desk.lines("core show hints"),
        [
            "",
            "    -= Registered Asterisk Dial Plan Hints =-",
            "6001@default                  : Custom:lamp                                                   State:Idle            Presence:not_set         Watchers  0",
            "----------------",
            "- 1 hints registered",
        ]
    );
    assert_eq!(desk.text("devstate change Custom:lamp INUSE"), "Changing lamp to INUSE\n");
    desk.cli.site.hints.borrow_mut().update(&desk.world.shard);
    assert!(desk.text("core show hint 6001").contains("State:InUse "));
    assert!(desk.text("devstate list").contains("--- Name: 'Custom:lamp'  State: 'INUSE'\n"));
    assert_eq!(desk.run("devstate change PJSIP/6001 INUSE").1, 1);
    let change = "presencestate change CustomPresence:alice \"away,,Out to lunch\"";
    assert_eq!(desk.text(change), "Changing alice to away,,Out to lunch\n");
    assert!(
        desk.text("presencestate list").contains("--- Name: 'CustomPresence:alice'\n --- State: 'away'\n")
    );
    assert_eq!(desk.run("presencestate change Custom:alice away").1, 1);
    assert!(
        desk.run("presencestate change CustomPresence:alice asleep").0.starts_with("Usage: presencestate")
    );
    assert!(desk.run("devstate change Custom:lamp LIT").0.starts_with("Usage: devstate change"));
}

#[test]
fn applications_and_functions_are_those_of_the_tables() {
    let mut desk = Desk::new("catalogue");
    let listed = desk.lines("core show applications");
    assert_eq!(listed.len(), apps::table::applications().len() + 2);
    assert_eq!(listed[0], "    -= Registered Asterisk Applications =-");
    let like = desk.lines("core show applications like PLAYB");
    assert_eq!(like.len(), 4, "{like:?}");
    assert!(like[1].starts_with("       ControlPlayback: "), "{like:?}");
    assert!(like[2].starts_with("              Playback: "), "{like:?}");
    assert_eq!(like[3], "    -= 2 Applications Matching =-");
    assert!(desk.text("core show application dial").contains("Info about application 'Dial'"));
    assert_eq!(desk.run("core show application Nothing").1, 1);
    assert!(desk.text("core show function len").contains("Info about function 'LEN'"));
    assert!(desk.text("core show functions").ends_with(" custom functions installed.\n"));
    let disabled = BTreeSet::from(["app_playback".to_owned()]);
    desk.world.settings(|settings| settings.disabled_modules = disabled);
    assert_eq!(desk.run("core show application Playback").1, 1);
}

#[test]
fn formats_and_the_ways_between_them_are_shown_as_asterisk_prints_them() {
    let mut desk = Desk::new("codecs");
    let codecs = desk.lines("core show codecs");
    assert!(
        codecs.contains(&"       1 audio ulaw         ulaw             (G.711 u-law)".to_owned()),
        "{codecs:?}"
    );
    assert!(codecs.iter().any(|line| line.contains("audio speex        speex16          (SpeeX 16khz)")));
    assert_eq!(desk.lines("core show codec 3"), ["          3 GSM"]);
    let is_video = |line: &&String| line.contains(" video h264         h264             (");
    assert_eq!(codecs.iter().filter(is_video).count(), 1, "{codecs:?}");
    let video = desk.lines("core show codecs video");
    assert!(video.iter().any(|line| is_video(&line)) && !video.iter().any(|line| line.contains("ulaw")));
    let number =
        video.iter().find(is_video).and_then(|line| line.split_whitespace().next()).unwrap().to_owned();
    assert!(desk.lines(&format!("core show codec {number}"))[0].trim().starts_with(&number));
    assert!(desk.lines("core show codecs audio").iter().all(|line| !line.contains(" video ")));
    assert_eq!(desk.run("core show codec 99").1, 1);
    let matrix = desk.lines("core show translation");
    assert_eq!(
        matrix[0].trim(),
        "Translation times between formats (in microseconds) for one second of data"
    );
    let figure = |word: &str| word == "-" || word.parse::<u32>().is_ok();
    let row = |name: &str| {
        let is_row = |line: &&String| {
            let mut words = line.split_whitespace();
            words.next() == Some(name) && words.next().is_some_and(figure)
        };
        matrix.iter().find(is_row).unwrap_or_else(|| panic!("{name}: {matrix:?}"))
    };
    assert_eq!(row("ulaw").split_whitespace().nth(1), Some("-"), "no way to itself");
    assert_eq!(row("ulaw").split_whitespace().nth(2), Some("3"), "a table");
    assert!(!matrix.iter().any(|line| line.trim_start().starts_with("g729 ")), "nobody codes it");
    let paths = desk.text("core show translation paths gsm");
    assert!(paths.starts_with("--- Translation paths SRC Codec \"gsm\" sample rate 8000 ---\n"), "{paths}");
    assert!(paths.contains(": (gsm@8000)->(slin@8000)->(slin16@16000)->(g722@16000)\n"), "{paths}");
    assert!(paths.contains("To g729:8000       : No Translation Path\n"), "{paths}");
    assert_eq!(desk.run("core show translation paths nonsense").1, 1);
    assert_eq!(desk.run("core show translation recalc 0").1, 1);
    assert_eq!(desk.run("core show translation recalc 61").1, 1);
    let json = desk.json("core show translation");
    let rows = json["translations"].as_array().unwrap();
    let found = rows.iter().find(|row| row["from"] == "gsm" && row["to"] == "ilbc").unwrap();
    assert_eq!(found["steps"], 2);
    assert!(found["group_us"].as_f64() < found["alone_us"].as_f64(), "{found}");
}

#[test]
fn a_measurement_of_translations_is_answered_when_it_is_over() {
    let mut desk = Desk::new("recalc");
    for (session, json) in [(7, false), (8, true)] {
        let line = "core show translation recalc 1";
        let call = Call {
            session,
            who: None,
            line,
            json,
            columns: 0,
            may_wait: true,
            may_reach_outside: true,
            rights: dialplan::Rights::ALL,
            view: &mut desk.view,
        };
        assert_eq!(desk.cli.run(call), Answer::Later);
    }
    let finished = loop {
        let finished = desk.cli.measured();
        if !finished.is_empty() {
            break finished;
        }
        std::thread::yield_now();
    };
    let [text, json] = &finished[..] else { panic!("{finished:?}") };
    assert_eq!((text.session, text.status, json.session, json.status), (7, 0, 8, 0));
    let head = "         Recalculating Codec Translation (number of sample seconds: 1)\n\n         Translation times";
    assert!(text.text.starts_with(head), "{}", text.text);
    assert!(text.text.contains("(measured on this machine)"), "{}", text.text);
    let data: Value = serde_json::from_str(&json.text).unwrap();
    assert_eq!((&data["seconds"], &data["measured"]), (&1.into(), &true.into()));
    assert!(data["translations"].as_array().is_some_and(|rows| rows.len() > 100));
    assert_eq!(desk.cli.measured(), [], "each is answered once");
}
