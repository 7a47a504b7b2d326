//! What plays, listens and sends: Playback, BackGround, Read, Record, Echo, music, tones and digits.

mod common;

use std::time::Duration;

use base::Cause;
use common::{at, call, noted, run, warnings, world};
use sim::{Act, World};

const BYE: Act = Act::Hangup(Cause::NORMAL_CLEARING);

fn lines(world: &World, part: &str) -> Vec<String> {
    world.transcript().into_iter().filter(|line| line.contains(part)).collect()
}

fn typed(digits: &str, from: u64) -> Vec<(u64, Act)> {
    digits.chars().zip(0u64..).map(|(digit, nth)| (from + 300 * nth, Act::Press(digit))).collect()
}

/// A world whose sounds `none` and `path.wav` do not exist, and one call of `1` in it.
fn heard(dialplan: &str, acts: &[(u64, Act)]) -> World {
    let mut world = world(&format!("[default]\n{dialplan}\n"));
    world.watch();
    world.missing("none");
    world.missing("readonly/a.wav");
    world.recorded("msg0.wav");
    world.recorded("msg1.wav");
    world.clip("long", Duration::from_secs(10));
    call(&mut world, "1", acts);
    world.run();
    assert_eq!((world.shard.core.borrow().channel_count(), world.open_streams()), (0, 0), "{dialplan}");
    world
}

#[test]
fn mp3player_plays_a_file_until_a_key_is_pressed_and_nothing_from_elsewhere() {
    for (name, app, acts, heard_it, warned) in [
        ("by its name", "MP3Player(long.mp3)", vec![], Some("#1 hears long"), ""),
        ("without its ending", "MP3Player(/songs/a)", vec![], Some("#1 hears /songs/a"), ""),
        ("a key ends it", "MP3Player(long)", vec![(2000, Act::Press('5'))], Some("#1 hears long"), ""),
        ("an address", "MP3Player(http://radio/live.mp3)", vec![], None, "plays files only"),
        ("a list", "MP3Player(list.m3u)", vec![], None, "plays files only"),
        ("nothing", "MP3Player()", vec![], None, "requires an argument"),
    ] {
        let world = heard(&format!("exten => 1,1,{app}\n same => n,NoOp(on)"), &acts);
        let said = lines(&world, "#1 hears");
        assert_eq!(said.first().map(|line| line.split_once(' ').unwrap().1), heard_it, "{name}: {said:?}");
        assert_eq!(noted(&world), ["on"], "{name}");
        assert_eq!(warnings(&world).iter().any(|line| line.contains(warned)), !warned.is_empty(), "{name}");
        if !acts.is_empty() {
            assert!(world.now() < at(9000), "{name}: it was not heard to its end");
        }
    }
}

#[test]
fn playback_says_how_it_came_out() {
    for (name, app, status, transcript) in [
        (
            "one file, answered first",
            "Playback(a)",
            "SUCCESS",
            vec!["0 SIM/6001-00000000 is answered", "20 #1 hears a"],
        ),
        (
            "files in turn",
            "Playback(a&b)",
            "SUCCESS",
            vec!["0 SIM/6001-00000000 is answered", "20 #1 hears a", "1020 #1 hears b"],
        ),
        (
            "a missing one among them",
            "Playback(a&none&b)",
            "FAILED",
            vec!["0 SIM/6001-00000000 is answered", "20 #1 hears a", "1020 #1 hears b"],
        ),
        ("a missing one", "Playback(none)", "FAILED", vec!["0 SIM/6001-00000000 is answered"]),
        ("skip", "Playback(a,skip)", "SUCCESS", vec![]),
        (
            "noanswer",
            "Playback(a,noanswer)",
            "SUCCESS",
            vec!["0 SIM/6001-00000000 is told of early audio", "0 #1 hears a"],
        ),
        ("no file", "Playback()", "FAILED", vec![]),
        (
            "language",
            "Set(CHANNEL(language)=de)\n same => n,Playback(a)",
            "SUCCESS",
            vec!["0 SIM/6001-00000000 is answered", "20 #1 hears a (de)"],
        ),
    ] {
        let world = heard(&format!("exten => 1,1,{app}\n same => n,NoOp(${{PLAYBACKSTATUS}})"), &[]);
        assert_eq!(noted(&world), [status], "{name}");
        let mut said = world.transcript();
        said.pop();
        assert_eq!(said, transcript, "{name}");
    }
    let unsupported = heard("exten => 1,1,Playback(a,say)", &[]);
    assert!(warnings(&unsupported).iter().any(|line| line.contains("say.conf")));
}

#[test]
fn background_is_stopped_by_digits_and_collects_a_number() {
    let menu = "exten => 2,1,NoOp(two)\nexten => 34,1,NoOp(thirty-four)\nexten => i,1,NoOp(i ${INVALID_EXTEN})\n[other]\nexten => 7,1,NoOp(seven ${CONTEXT})\nexten => 88,1,NoOp(eighty-eight)";
    for (name, app, digits, expected, played) in [
        ("one digit", "BackGround(long)", "2", vec!["two"], vec!["20 #1 hears long"]),
        ("two digits", "BackGround(long)", "34", vec!["thirty-four"], vec!["20 #1 hears long"]),
        (
            "a digit that begins nothing is invalid at once",
            "BackGround(long)",
            "9",
            vec!["i 9"],
            vec!["20 #1 hears long"],
        ),
        ("no digit", "BackGround(a&b)", "", vec!["SUCCESS"], vec!["20 #1 hears a", "1020 #1 hears b"]),
        ("a missing file", "BackGround(none)", "", vec!["FAILED"], vec![]),
        ("s", "BackGround(a,s)", "", vec!["SUCCESS"], vec![]),
        ("n", "BackGround(a,n)", "", vec!["SUCCESS"], vec!["0 #1 hears a"]),
        (
            "m: a digit that is no extension does not stop it",
            "BackGround(a,m)",
            "3",
            vec!["SUCCESS"],
            vec!["20 #1 hears a"],
        ),
        ("m: a digit that is one does", "BackGround(long,m)", "32", vec!["two"], vec!["20 #1 hears long"]),
        ("p", "BackGround(a,p)", "2", vec!["SUCCESS"], vec!["20 #1 hears a"]),
        (
            "language for it alone",
            "BackGround(a,,de)\n same => n,Playback(b)",
            "",
            vec!["SUCCESS"],
            vec!["20 #1 hears a (de)", "1020 #1 hears b"],
        ),
        (
            "a digit of another context",
            "BackGround(long,,,other)",
            "7",
            vec!["seven other"],
            vec!["20 #1 hears long"],
        ),
        (
            "a longer number of another context is collected here",
            "BackGround(long,,,other)",
            "8",
            vec!["i 8"],
            vec!["20 #1 hears long"],
        ),
        ("no file", "BackGround()", "", vec!["FAILED"], vec![]),
    ] {
        let dialplan = format!("exten => 1,1,{app}\n same => n,NoOp(${{BACKGROUNDSTATUS}})\n{menu}");
        let world = heard(&dialplan, &typed(digits, 400));
        assert_eq!(noted(&world), expected, "{name}: {:?}", warnings(&world));
        assert_eq!(lines(&world, "hears"), played, "{name}");
    }
}

#[test]
fn background_gives_the_language_back_when_the_call_is_sent_elsewhere() {
    let world = heard(
        "exten => 1,1,BackGround(long,,de)\nexten => 5,1,NoOp(${CHANNEL(language)})",
        &[(2000, Act::Redirect(common::location("default", "5")))],
    );
    assert_eq!(noted(&world), ["en"]);
}

#[test]
fn read_takes_digits_and_says_how() {
    for (name, args, digits, expected) in [
        ("ended by #", "got,a", "12#3", "12/OK"),
        ("the number is full", "got,a,3", "1234", "123/OK"),
        ("nothing comes", "got,a,,,,2", "", "/TIMEOUT"),
        ("a digit and then nothing", "got,a,,,,2", "1", "1/TIMEOUT"),
        ("only #", "got,a", "#", "/OK"),
        ("e keeps a lone #", "got,a,,e", "#", "#/OK"),
        ("e drops it after others", "got,a,,e", "1#", "1/OK"),
        ("o keeps it always", "got,a,,o", "1#", "1#/OK"),
        ("t with another end", "got,a,,t(*)", "1#*", "1#/OK"),
        ("t without an end", "got,a,3,t", "1#*", "1#*/OK"),
        ("s on a call that is not up", "got,a,,s", "1#", "/SKIPPED"),
        ("n does not answer", "got,a,,n", "1#", "1/OK"),
        ("files end with the first digit", "got,long&b,1", "1", "1/OK"),
        ("no variable", "", "1", "/ERROR"),
        ("hang-up keeps what was typed", "got,a", "12x", "h 12/HANGUP"),
    ] {
        let (digits, hangs_up) = digits.split_once('x').map_or((digits, false), |(digits, _)| (digits, true));
        let mut acts = typed(digits, 400);
        if hangs_up {
            acts.push((2000, BYE));
        }
        let show = "NoOp(${got}/${READSTATUS})";
        let at_end = if hangs_up { "exten => h,1,NoOp(h ${got}/${READSTATUS})" } else { "" };
        let world = heard(&format!("exten => 1,1,Read({args})\n same => n,{show}\n{at_end}"), &acts);
        assert_eq!(noted(&world).concat(), expected, "{name}: {:?}", common::steps(&world));
        let answered = !lines(&world, "is answered").is_empty();
        assert_eq!(answered, !matches!(expected, "/SKIPPED" | "/ERROR") && !args.ends_with(",n"), "{name}");
    }
}

#[test]
fn read_asks_again_with_its_files_and_its_tone() {
    let again =
        heard("exten => 1,1,Read(got,a,,,3,2)\n same => n,NoOp(${got}/${READSTATUS})", &typed("7#", 4000));
    assert_eq!(noted(&again), ["7/OK"]);
    assert_eq!(lines(&again, "hears"), ["20 #1 hears a", "3020 #1 hears a"]);
    let mut tone = world("[default]\nexten => 1,1,Read(got,dial,2,i)\n same => n,Wait(60)\n");
    let id = call(&mut tone, "1", &typed("12", 1000));
    tone.run_until(at(500));
    assert_eq!(tone.endless_sound(id).as_deref(), Some("tone dial"));
    tone.run_until(at(1100));
    assert_eq!(tone.endless_sound(id), None);
}

#[test]
fn the_tone_of_read_ends_when_the_call_is_sent_elsewhere() {
    let mut tone = world("[default]\nexten => 1,1,Read(got,dial,2,i)\nexten => 5,1,Wait(60)\n");
    let id = call(&mut tone, "1", &[(1000, Act::Redirect(common::location("default", "5")))]);
    tone.run_until(at(1500));
    assert_eq!(tone.endless_sound(id), None);
}

#[test]
fn record_says_how_it_ended_and_where() {
    for (name, args, acts, status, transcript) in [
        (
            "#",
            "/tmp/a.wav",
            vec![(3000, Act::Press('#'))],
            "DTMF /tmp/a",
            vec![
                "20 records /tmp/a.wav",
                "20 #1 hears beep",
                "1020 #1 is recorded",
                "3000 #1 is recorded no more",
            ],
        ),
        (
            "other digits do not end it",
            "/tmp/a.wav,,4",
            vec![(3000, Act::Press('5'))],
            "TIMEOUT /tmp/a",
            vec![
                "20 records /tmp/a.wav",
                "20 #1 hears beep",
                "1020 #1 is recorded",
                "5020 #1 is recorded no more",
            ],
        ),
        (
            "silence",
            "/tmp/a.wav,3",
            vec![(4500, Act::Silence(3000))],
            "SILENCE /tmp/a",
            vec![
                "20 records /tmp/a.wav",
                "20 #1 hears beep",
                "1020 #1 is recorded",
                "1020 #1 is watched for 3000 ms of silence",
                "4500 #1 is recorded no more",
            ],
        ),
        (
            "q",
            "/tmp/a.wav,,,q",
            vec![(3000, Act::Press('#'))],
            "DTMF /tmp/a",
            vec!["20 records /tmp/a.wav", "20 #1 is recorded", "3000 #1 is recorded no more"],
        ),
        (
            "a",
            "/tmp/a.wav,,,aq",
            vec![(3000, Act::Press('#'))],
            "DTMF /tmp/a",
            vec!["20 appends to /tmp/a.wav", "20 #1 is recorded", "3000 #1 is recorded no more"],
        ),
        (
            "t",
            "/tmp/a.wav,,,tq",
            vec![(2000, Act::Press('#')), (3000, Act::Press('*'))],
            "DTMF /tmp/a",
            vec!["20 records /tmp/a.wav", "20 #1 is recorded", "3000 #1 is recorded no more"],
        ),
        (
            "y",
            "/tmp/a.wav,,,yq",
            vec![(2000, Act::Press('7'))],
            "DTMF /tmp/a",
            vec!["20 records /tmp/a.wav", "20 #1 is recorded", "2000 #1 is recorded no more"],
        ),
        (
            "x",
            "/tmp/a.wav,,5,xq",
            vec![(2000, Act::Press('#'))],
            "TIMEOUT /tmp/a",
            vec!["20 records /tmp/a.wav", "20 #1 is recorded", "5020 #1 is recorded no more"],
        ),
        (
            "o",
            "/tmp/a.wav,,,oq",
            vec![(2000, Act::Press('0'))],
            "OPERATOR /tmp/a",
            vec!["20 records /tmp/a.wav", "20 #1 is recorded", "2000 #1 is recorded no more"],
        ),
        ("s", "/tmp/a.wav,,,s", vec![], "SKIP ", vec![]),
        (
            "the first free number",
            "msg%d.wav,,1,q",
            vec![],
            "TIMEOUT msg2",
            vec!["20 records msg2.wav", "20 #1 is recorded", "1020 #1 is recorded no more"],
        ),
        (
            "hang-up",
            "/tmp/a.wav,,,q",
            vec![(2000, BYE)],
            "HANGUP /tmp/a",
            vec!["20 records /tmp/a.wav", "20 #1 is recorded", "2000 #1 is recorded no more"],
        ),
        (
            "hang-up during the beep",
            "/tmp/a.wav",
            vec![(500, BYE)],
            "HANGUP /tmp/a",
            vec!["20 records /tmp/a.wav", "20 #1 hears beep"],
        ),
        ("a file that cannot be written", "readonly/a.wav", vec![], "ERROR ", vec![]),
        ("no format", "name", vec![], "ERROR ", vec![]),
        (
            "the old form",
            "/tmp/a:wav,,1,q",
            vec![],
            "TIMEOUT /tmp/a",
            vec!["20 records /tmp/a.wav", "20 #1 is recorded", "1020 #1 is recorded no more"],
        ),
    ] {
        let world = heard(
            &format!("exten => 1,1,Record({args})\nexten => h,1,NoOp(${{RECORD_STATUS}} ${{RECORDED_FILE}})"),
            &acts,
        );
        assert_eq!(noted(&world), [status], "{name}: {:?}", warnings(&world));
        let said: Vec<_> = world.transcript().into_iter().filter(|line| !line.contains("SIM/")).collect();
        assert_eq!(said, transcript, "{name}");
    }
}

#[test]
fn what_is_not_wanted_of_a_recording_is_taken_away() {
    for (name, args, acts, expected) in [
        ("ended by a digit", "/tmp/a.wav", vec![(3000, Act::Press('#'))], (false, 0)),
        (
            "the silence that ended it is cut off",
            "/tmp/a.wav,3",
            vec![(6000, Act::Silence(3000))],
            (false, 3000),
        ),
        ("u keeps it", "/tmp/a.wav,3,,u", vec![(6000, Act::Silence(3000))], (false, 0)),
        ("hang-up", "/tmp/a.wav", vec![(3000, BYE)], (true, 0)),
        ("hang-up during the beep", "/tmp/a.wav", vec![(500, BYE)], (true, 0)),
        ("k keeps it on hang-up", "/tmp/a.wav,,,k", vec![(3000, BYE)], (false, 0)),
        (
            "sent elsewhere",
            "/tmp/a.wav",
            vec![(3000, Act::Redirect(common::location("default", "5")))],
            (false, 0),
        ),
    ] {
        let world = heard(&format!("exten => 1,1,Record({args})\nexten => 5,1,NoOp()"), &acts);
        assert_eq!(world.afterwards("/tmp/a.wav"), Some(expected), "{name}");
    }
}

#[test]
fn a_prompt_waits_half_a_second_for_media_that_does_not_come() {
    let mut world = common::world("[default]\nexten => 1,1,Playback(a)\n");
    world.mute_answers();
    call(&mut world, "1", &[]);
    world.run();
    assert_eq!(lines(&world, "hears"), ["500 #1 hears a"]);
}

#[test]
fn echo_ends_with_a_hash_and_sends_other_digits_back() {
    let world = heard("exten => 1,1,Answer(0)\n same => n,Echo()\n same => n,NoOp(on)", &typed("5#", 1000));
    assert_eq!(noted(&world), ["on"]);
    assert_eq!(lines(&world, "#1"), ["0 #1 echo true", "1000 #1 is sent digit 5", "1300 #1 echo false"]);
}

#[test]
fn music_plays_for_its_time() {
    let world = heard("exten => 1,1,MusicOnHold(jazz,2.5)\n same => n,NoOp(on)", &[]);
    assert_eq!((noted(&world), world.now()), (vec!["on".to_owned()], at(2500)));
    assert_eq!(lines(&world, "hears"), ["0 #1 hears music jazz"]);

    let mut endless = common::world("[default]\nexten => 1,1,MusicOnHold()\n same => n,NoOp(no)\n");
    endless.watch();
    endless.missing("music none");
    let id = call(&mut endless, "1", &[(60_000, BYE)]);
    endless.run_until(at(59_000));
    assert_eq!(endless.endless_sound(id).as_deref(), Some("music default"));
    endless.run();
    assert!(noted(&endless).is_empty());

    let mut none = common::world("[default]\nexten => 1,1,MusicOnHold(none,5)\n same => n,NoOp(on)\n");
    none.watch();
    none.missing("music none");
    call(&mut none, "1", &[]);
    none.run();
    assert_eq!((noted(&none).len(), none.now()), (1, at(0)));
    assert!(warnings(&none).iter().any(|line| line.contains("'none'")));
}

#[test]
fn who_hears_a_class_from_its_beginning_goes_on_where_it_was() {
    let steps = "MusicOnHold(own,3) Playback(said) MusicOnHold(own,2) MusicOnHold(jazz,1) MusicOnHold(own,1)";
    let steps = steps.split(' ').map(|step| format!(" same => n,{step}\n")).collect::<String>();
    let mut world = world(&format!("[default]\nexten => 1,1,Wait(1)\n{steps}"));
    world.heard_alone("own");
    call(&mut world, "1", &[]);
    world.run();
    let heard: Vec<String> =
        lines(&world, "hears").iter().map(|line| line[line.find("hears").unwrap()..].into()).collect();
    // Another class in between, and the next begins anew.
    let expected = ["music own", "said", "music own from 3000 ms", "music jazz", "music own"];
    assert_eq!(heard, expected.map(|what| format!("hears {what}")));
}

#[test]
fn sounds_that_go_on_beside_the_dialplan_end_when_told() {
    for (start, stop, sound) in [
        ("StartMusicOnHold(jazz)", "StopMusicOnHold()", "music jazz"),
        ("PlayTones(busy)", "StopPlayTones()", "tone busy"),
        ("PlayTones(425/50,0/50)", "StopPlayTones()", "tone 425/50,0/50"),
    ] {
        let mut world = world(&format!(
            "[default]\nexten => 1,1,{start}\n same => n,Wait(1)\n same => n,{stop}\n same => n,Wait(60)\n"
        ));
        let id = call(&mut world, "1", &[]);
        world.run_until(at(500));
        assert_eq!(world.endless_sound(id).as_deref(), Some(sound));
        world.run_until(at(1500));
        assert_eq!(world.endless_sound(id), None, "{stop}");
    }
    let unknown = heard("exten => 1,1,PlayTones(xyz)\n same => n,NoOp(on)", &[]);
    assert_eq!(noted(&unknown), ["on"]);
    assert!(warnings(&unknown)[0].contains("xyz"));
}

#[test]
fn milliwatt_sounds_until_hang_up() {
    for (options, tone) in [("", "tone 1004/1000"), ("o", "tone 1000/1000"), ("m", "tone 1004/9000,0/1000")] {
        let world = heard(&format!("exten => 1,1,Milliwatt({options})\n same => n,NoOp(no)"), &[(5000, BYE)]);
        assert_eq!(lines(&world, "hears"), [format!("0 #1 hears {tone}")]);
        assert!(noted(&world).is_empty() && !lines(&world, "is answered").is_empty());
    }
}

#[test]
fn digits_are_sent_in_time() {
    for (args, expected, until) in [
        ("12", vec!["0 #1 is sent digit 1", "350 #1 is sent digit 2"], 700),
        ("1w2", vec!["0 #1 is sent digit 1", "850 #1 is sent digit 2"], 1200),
        ("1W2", vec!["0 #1 is sent digit 1", "1350 #1 is sent digit 2"], 1700),
        ("1,500,200", vec!["0 #1 is sent digit 1"], 700),
        ("1?2", vec!["0 #1 is sent digit 1", "350 #1 is sent digit 2"], 700),
        ("", vec![], 0),
    ] {
        let world = heard(&format!("exten => 1,1,SendDTMF({args})\n same => n,NoOp(on)"), &[]);
        assert_eq!(noted(&world), ["on"], "{args}");
        assert_eq!(
            (lines(&world, "digit"), world.now()),
            (Vec::from_iter(expected.iter().map(|s| (*s).to_owned())), at(until)),
            "{args}"
        );
    }
    let flash = heard("exten => 1,1,SendDTMF(f1)", &[]);
    assert_eq!(lines(&flash, "is sent digit").len(), 2);
}

#[test]
fn digits_sent_on_another_channel_leave_its_story_alone() {
    let mut world = world(
        "[default]\nexten => 1,1,Read(got,,2)\n same => n,NoOp(${got})\nexten => 2,1,SendDTMF(99,,,SIM/6001-00000000)\n same => n,Wait(20)\nexten => 3,1,SendDTMF(9,,,SIM/none)\n",
    );
    world.watch();
    call(&mut world, "1", &[(200, Act::Press('4')), (5000, Act::Press('2'))]);
    call(&mut world, "2", &[]);
    call(&mut world, "3", &[]);
    world.run();
    assert_eq!(noted(&world), ["42"]);
    assert_eq!(lines(&world, "digit"), ["0 #1 is sent digit 9", "350 #1 is sent digit 9"]);
    assert!(warnings(&world).iter().any(|line| line.contains("SIM/none")));
}

#[test]
fn a_caller_who_hangs_up_ends_every_one_of_them() {
    for app in [
        "Playback(long)",
        "BackGround(long)",
        "Read(x,long)",
        "Echo()",
        "MusicOnHold()",
        "SendDTMF(WWWWWWWWWW1)",
    ] {
        let world = run(
            &format!(
                "[default]\nexten => 1,1,Answer(0)\n same => n,{app}\n same => n,NoOp(no)\nexten => h,1,NoOp(h)\n"
            ),
            "1",
            &[(700, BYE)],
        );
        assert_eq!((noted(&world), world.open_streams()), (vec!["h".to_owned()], 0), "{app}");
    }
}

#[test]
fn control_playback_winds_pauses_starts_over_and_stops_by_keys() {
    let press = |digit: char, at: u64| (at, Act::Press(digit));
    for (name, args, acts, heard_from, status, offset, key) in [
        ("to its end", "long", vec![], vec!["20"], "SUCCESS", "-1", ""),
        (
            "forward, three seconds",
            "long",
            vec![press('#', 1020)],
            vec!["20", "1020 4000"],
            "SUCCESS",
            "-1",
            "",
        ),
        (
            "back, not before the beginning",
            "long",
            vec![press('*', 1020), press('*', 6020)],
            vec!["20", "1020", "6020 2000"],
            "SUCCESS",
            "-1",
            "",
        ),
        (
            "by other keys and another length",
            "long,500,6,4",
            vec![press('6', 1020), press('4', 2020), press('#', 2320)],
            vec!["20", "1020 1500", "2020 2000"],
            "SUCCESS",
            "-1",
            "",
        ),
        (
            "forward beyond the end",
            "long,60000",
            vec![press('#', 1020)],
            vec!["20", "1020 10000"],
            "SUCCESS",
            "-1",
            "",
        ),
        ("stop", "long,,,,0", vec![press('0', 1520)], vec!["20"], "USERSTOPPED", "1500", "0"),
        ("stop by either key", "long,,,,01", vec![press('1', 520)], vec!["20"], "USERSTOPPED", "500", "1"),
        (
            "pause and on",
            "long,,,,,8",
            vec![press('8', 1020), press('5', 2020), press('8', 5020)],
            vec!["20", "5020 1000"],
            "SUCCESS",
            "-1",
            "",
        ),
        (
            "stop while it rests",
            "long,,,,0,8",
            vec![press('8', 1020), press('0', 5020)],
            vec!["20"],
            "USERSTOPPED",
            "1000",
            "0",
        ),
        ("start over", "long,,,,,,9", vec![press('9', 3020)], vec!["20", "3020"], "SUCCESS", "-1", ""),
        ("from a place", "long,,,,,,,o(4000)", vec![], vec!["20 4000"], "SUCCESS", "-1", ""),
        ("a missing file", "none", vec![], vec![], "ERROR", "0", ""),
        ("no file", "", vec![], vec![], "ERROR", "", ""),
    ] {
        let dialplan = format!(
            "exten => 1,1,ControlPlayback({args})\n same => n,NoOp(${{CPLAYBACKSTATUS}} ${{CPLAYBACKOFFSET}} ${{CPLAYBACKSTOPKEY}})"
        );
        let world = heard(&dialplan, &acts);
        let expected = format!("{status} {offset} {key}");
        assert_eq!(noted(&world).first().map(|line| line.trim()), Some(expected.trim()), "{name}");
        let expected: Vec<String> = heard_from
            .iter()
            .map(|place| match place.split_once(' ') {
                Some((at, from)) => format!("{at} #1 hears long from {from} ms"),
                None => format!("{place} #1 hears long"),
            })
            .collect();
        assert_eq!(lines(&world, "hears"), expected, "{name}");
    }
}

#[test]
fn control_playback_plays_files_in_turn_and_a_manager_steers_it() {
    use call::{ChanEvent, Steer};

    let mut world = world(
        "[default]\nexten => 1,1,ControlPlayback(long&a)\n same => n,NoOp(${CPLAYBACKSTATUS} ${CPLAYBACKOFFSET})\n",
    );
    world.watch();
    world.clip("long", Duration::from_secs(10));
    let id = call(&mut world, "1", &[]);
    for (ms, steer) in [
        (1020, Steer::Forward),
        (2020, Steer::Pause),
        (4020, Steer::Reverse),
        (5020, Steer::Restart),
        (15_520, Steer::Stop),
    ] {
        world.run_until(at(ms));
        world.shard.core.borrow_mut().push_event(id, ChanEvent::Steer(steer));
        world.run_until(at(ms));
    }
    world.run();
    assert_eq!(noted(&world), ["REMOTESTOPPED 500"]);
    assert_eq!(
        lines(&world, "hears"),
        [
            "20 #1 hears long",
            "1020 #1 hears long from 4000 ms",
            "4020 #1 hears long from 2000 ms",
            "5020 #1 hears long",
            "15020 #1 hears a"
        ]
    );
}

#[test]
fn with_transmit_silence_who_is_answered_hears_silence_when_there_is_nothing_to_hear() {
    for (wanted, expected) in
        [(false, &[][..]), (true, &["1000 #1 hears silence when there is nothing to hear"])]
    {
        let mut world = world("[default]\nexten => 1,1,Wait(1)\n same => n,Answer()\n same => n,Wait(2)\n");
        world.settings(|settings| settings.transmit_silence = wanted);
        call(&mut world, "1", &[]);
        world.run();
        assert_eq!(lines(&world, "nothing to hear"), expected, "{wanted}");
    }
}

#[test]
fn the_class_that_the_dialplan_chose_goes_before_a_named_one_unless_preferchannelclass_says_no() {
    for (name, choose, named, named_first, expected) in [
        ("nobody says anything", "", "", false, "music default"),
        ("the application", "", "jazz", false, "music jazz"),
        ("the channel", "Set(CHANNEL(musicclass)=soft)", "", false, "music soft"),
        ("both", "Set(CHANNEL(musicclass)=soft)", "jazz", false, "music soft"),
        ("both, by the old application", "SetMusicOnHold(soft)", "jazz", false, "music soft"),
        ("both, preferchannelclass=no", "Set(CHANNEL(musicclass)=soft)", "jazz", true, "music jazz"),
        ("chosen, and chosen no longer", "Set(CHANNEL(musicclass)=)", "jazz", false, "music jazz"),
    ] {
        let choose = if choose.is_empty() { "NoOp()" } else { choose };
        let dialplan = format!(
            "[default]\nexten => 1,1,Answer()\n same => n,{choose}\n same => n,MusicOnHold({named},5)\n"
        );
        let mut world = world(&dialplan);
        world.settings(|settings| settings.named_music_first = named_first);
        let id = call(&mut world, "1", &[]);
        world.run_until(at(3000));
        assert_eq!(world.endless_sound(id).as_deref(), Some(expected), "{name}");
    }
}
