use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use call::Progress;
use call::voicemail::{Change, Delivery, Folder, Greeting, Info, Message};

use super::*;

const MANY: u32 = 9999;

fn of(name: &str) -> BoxName {
    BoxName::parse(name).unwrap()
}

/// A complete recording: a WAVE file of so many milliseconds of a tone.
fn held(folder: &Path, ms: usize) -> Held {
    let samples: Vec<i16> = (0..ms * 8).map(|at| (at as i16 % 40 - 20) * 300).collect();
    let (mut recording, mut data) = (codec::Recording::new("wav").unwrap(), Vec::new());
    recording.write(&samples, &mut data);
    recording.finish(&mut data);
    let file = folder.join(format!("held-{ms}.wav"));
    fs::write(&file, [recording.header(data.len() as u32), data].concat()).unwrap();
    let progress = Arc::new(Progress::default());
    progress.end();
    Held { file, progress }
}

fn delivery(to: &BoxName, held: Option<Held>, id: &str) -> Delivery {
    Delivery {
        to: to.clone(),
        folder: Folder::INBOX,
        held,
        copied: None,
        formats: vec!["wav".to_owned(), "gsm".to_owned(), "WAV".to_owned()],
        info: Info { id: id.to_owned(), caller_id: "\"Bob\" <6002>".to_owned(), ..Info::default() },
        min_ms: 0,
        max_messages: MANY,
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn ids(boxes: &Boxes, of: &BoxName, folder: Folder) -> Vec<String> {
    boxes.list(of, folder).into_iter().map(|message| message.info.id).collect()
}

#[test]
fn a_message_is_kept_in_every_format_with_its_length() {
    let spool = tempfile::tempdir().unwrap();
    let (boxes, alice) = (Boxes::new(spool.path().join("voicemail")), of("6001"));
    let held = held(spool.path(), 2500);
    let recorded = fs::read(&held.file).unwrap();
    let kept = boxes.deliver(&delivery(&alice, Some(held.clone()), "a")).unwrap();
    assert_eq!((kept.number, kept.info.duration), (0, 2));
    let inbox = boxes.home(&alice).join("INBOX");
    assert_eq!(names(&inbox), ["msg0000.WAV", "msg0000.gsm", "msg0000.txt", "msg0000.wav"]);
    assert_eq!(fs::read(inbox.join("msg0000.wav")).unwrap(), recorded, "as it was recorded");
    assert_eq!(fs::read(inbox.join("msg0000.gsm")).unwrap().len(), 125 * 33);
    assert!(!held.file.exists());
    assert_eq!(names(&boxes.home(&alice).join("tmp")), [""; 0]);
    assert_eq!(boxes.count(&alice), Counts { urgent: 0, new: 1, old: 0 });
    assert_eq!(boxes.list(&alice, Folder::INBOX), [kept]);
}

#[test]
fn what_is_too_short_or_has_no_room_is_not_kept() {
    let spool = tempfile::tempdir().unwrap();
    let (boxes, alice) = (Boxes::new(spool.path()), of("6001"));
    let short = Delivery { min_ms: 3000, ..delivery(&alice, Some(held(spool.path(), 2900)), "a") };
    assert_eq!(boxes.deliver(&short), Err(Refusal::TooShort));
    for (most, expected) in [(1, true), (1, false), (2, true)] {
        let one = Delivery { max_messages: most, ..delivery(&alice, Some(held(spool.path(), 100)), "a") };
        assert_eq!(boxes.deliver(&one).is_ok(), expected, "{most}");
    }
    assert_eq!(boxes.count(&alice).new, 2);
    assert_eq!(names(&boxes.home(&alice).join("tmp")), [""; 0]);
}

/// A mailbox as another program has left it.
fn laid_out(home: &Path, folder: &str, number: u32, id: &str) -> Vec<u8> {
    let folder = home.join(folder);
    fs::create_dir_all(&folder).unwrap();
    let text = format!(
        ";\n; Message Information file\n;\n[message]\norigmailbox=6001\ncontext=macro-vm\nmacrocontext=\nexten=6001\nrdnis=unknown\n\
         priority=5\ncallerchan=SIP/6002-00000001\ncallerid=\"{id}\" <6002>\norigdate=Mon Jan 01 10:00:00 AM UTC 2018\n\
         origtime=1514800800\ncategory=\nmsg_id=1514800800-{id}\nflag=\nduration=3\nodd = kept as it is\n"
    );
    fs::write(folder.join(format!("msg{number:04}.txt")), &text).unwrap();
    fs::write(folder.join(format!("msg{number:04}.gsm")), [0xd2; 33 * 3]).unwrap();
    text.into_bytes()
}

#[test]
fn a_mailbox_of_asterisk_opens_and_its_messages_move_unchanged() {
    let spool = tempfile::tempdir().unwrap();
    let (boxes, alice) = (Boxes::new(spool.path()), of("6001@office"));
    let home = boxes.home(&alice);
    let texts: Vec<Vec<u8>> = ["a", "b", "c", "d"]
        .iter()
        .zip(0..)
        .map(|(id, number)| laid_out(&home, "INBOX", number, id))
        .collect();
    laid_out(&home, "Old", 0, "z");
    let all = boxes.list(&alice, Folder::INBOX);
    assert_eq!(
        all.iter().map(|m| m.info.caller_id.as_str()).collect::<Vec<_>>().join(" "),
        "\"a\" <6002> \"b\" <6002> \"c\" <6002> \"d\" <6002>"
    );
    let [a, b, c, d] = <[Message; 4]>::try_from(all).unwrap();
    let changes = [
        (a, Change::Delete(0)),
        (c.clone(), Change::Move(Folder::OLD, MANY)),
        (b, Change::Move(Folder::OLD, 2)),
    ];
    assert_eq!(boxes.change(&alice, Folder::INBOX, &changes), Ok(1), "there is no room for b");
    assert_eq!(names(&home.join("INBOX")), ["msg0000.gsm", "msg0000.txt", "msg0001.gsm", "msg0001.txt"]);
    assert_eq!(names(&home.join("Old")), ["msg0000.gsm", "msg0000.txt", "msg0001.gsm", "msg0001.txt"]);
    assert_eq!(fs::read(home.join("Old/msg0001.txt")).unwrap(), texts[2]);
    assert_eq!(fs::read(home.join("INBOX/msg0001.txt")).unwrap(), texts[3]);
    // A list that was made before numbers changed still means the same messages.
    assert_eq!(boxes.change(&alice, Folder::INBOX, &[(d, Change::Move(Folder::WORK, MANY))]), Ok(0));
    assert_eq!(fs::read(home.join("Work/msg0000.txt")).unwrap(), texts[3]);
    assert_eq!(
        boxes.change(&alice, Folder::INBOX, &[(c, Change::Delete(0))]),
        Ok(1),
        "it has gone elsewhere"
    );
}

#[test]
fn the_last_deleted_messages_are_kept_where_that_is_wanted() {
    let spool = tempfile::tempdir().unwrap();
    let (boxes, alice) = (Boxes::new(spool.path()), of("6001"));
    for (id, number) in ["a", "b", "c"].iter().zip(0..) {
        laid_out(&boxes.home(&alice), "INBOX", number, id);
    }
    for message in boxes.list(&alice, Folder::INBOX) {
        assert_eq!(boxes.change(&alice, Folder::INBOX, &[(message, Change::Delete(2))]), Ok(0));
    }
    assert_eq!(ids(&boxes, &alice, Folder::DELETED), ["1514800800-b", "1514800800-c"]);
    assert_eq!(names(&boxes.home(&alice).join("Deleted")).len(), 4);
}

#[test]
fn a_message_is_forwarded_behind_what_was_said_to_it() {
    let spool = tempfile::tempdir().unwrap();
    let (boxes, alice, bob) = (Boxes::new(spool.path()), of("6001"), of("6002"));
    let first = boxes.deliver(&delivery(&alice, Some(held(spool.path(), 2000)), "a")).unwrap();
    let copied = Some((alice.clone(), Folder::INBOX, Box::new(first)));
    let forwarded = Delivery { copied: copied.clone(), ..delivery(&bob, None, "b") };
    assert_eq!(boxes.deliver(&forwarded).unwrap().info.duration, 2);
    let with_words = Delivery { copied, ..delivery(&bob, Some(held(spool.path(), 3000)), "c") };
    assert_eq!(boxes.deliver(&with_words).unwrap().info.duration, 5);
    assert_eq!((boxes.count(&alice).new, boxes.count(&bob).new), (1, 2));
}

#[test]
fn greetings_replace_each_other_in_every_format() {
    let spool = tempfile::tempdir().unwrap();
    let (boxes, alice) = (Boxes::new(spool.path()), of("6001"));
    let home = boxes.home(&alice);
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("unavail.gsm"), "old").unwrap();
    assert!(boxes.has_greeting(&alice, Greeting::Unavailable) && !boxes.has_greeting(&alice, Greeting::Busy));
    let new = held(spool.path(), 500);
    boxes.greet(&alice, Greeting::Unavailable, Some(&new), &["wav".to_owned()]).unwrap();
    assert_eq!(names(&home), ["tmp", "unavail.wav"]);
    boxes.greet(&alice, Greeting::Unavailable, None, &[]).unwrap();
    assert!(!boxes.has_greeting(&alice, Greeting::Unavailable));
    boxes.set_pin(&alice, "4711").unwrap();
    assert_eq!((boxes.pin(&alice).as_deref(), boxes.pin(&of("6002"))), (Some("4711"), None));
}

fn desk(spool: &Path, lines: BTreeMap<BoxName, (String, String)>) -> PostDesk {
    let places = Places {
        boxes: spool.join("voicemail"),
        letters: spool.join("tmp"),
        config: spool.to_owned(),
        lines,
    };
    PostDesk::start(places, Catalogue::default(), || {}).unwrap()
}

/// Waits for the thread, which says when it is done.
fn answer(desk: &mut PostDesk, job: Job) -> Answer {
    let ticket = desk.ask(job);
    loop {
        desk.take_in();
        if let Some(answer) = desk.take(ticket) {
            return answer;
        }
        std::thread::yield_now();
    }
}

#[test]
fn the_thread_waits_for_the_end_of_a_recording_and_says_what_is_in_the_mailbox_then() {
    let spool = tempfile::tempdir().unwrap();
    let mut desk = desk(spool.path(), BTreeMap::new());
    let alice = of("6001");
    let mut held = held(spool.path(), 1000);
    held.progress = Arc::default();
    let ticket = desk.ask(Job::Deliver(Box::new(delivery(&alice, Some(held.clone()), "a"))));
    // Another job goes first meanwhile.
    let (counted, counts) = answer(&mut desk, Job::Count(alice.clone()));
    assert!(matches!(counted, Ok(Posted::Done)));
    assert_eq!(counts, [(alice.clone(), Counts::default())]);
    assert!(desk.take(ticket).is_none());
    held.progress.end();
    let (kept, counts) = loop {
        desk.take_in();
        if let Some(answer) = desk.take(ticket) {
            break answer;
        }
        std::thread::yield_now();
    };
    let Ok(Posted::Kept(message)) = kept else { panic!("{kept:?}") };
    assert_eq!(counts, [(alice.clone(), Counts { urgent: 0, new: 1, old: 0 })]);
    let sound = Sound::Message(Folder::INBOX, message.clone());
    let (clip, _) = answer(&mut desk, Job::Load(alice.clone(), sound, base::FormatId::SLIN));
    let Ok(Posted::Clip(clip)) = clip else { panic!("{clip:?}") };
    assert_eq!(clip.data.len(), 16_000);
    let letter = Letter {
        to: vec!["alice@example.com".into()],
        attach: Some(call::voicemail::Attach {
            of: alice,
            folder: Folder::INBOX,
            message,
            format: "gsm".into(),
            name: "msg0000".into(),
        }),
        ..Letter::default()
    };
    let (file, _) = answer(&mut desk, Job::Write(Box::new(letter)));
    let Ok(Posted::File(file)) = file else { panic!("{file:?}") };
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("msg0000.gsm") && text.contains("audio/x-gsm"), "{text}");
}

#[test]
fn a_recording_goes_with_a_letter_in_the_format_that_is_wanted_and_lines_are_added_to_a_file() {
    let spool = tempfile::tempdir().unwrap();
    let file = held(spool.path(), 1000).file;
    let name = file.file_stem().unwrap().to_string_lossy().into_owned();
    let own = file.extension().unwrap().to_string_lossy().into_owned();
    for (format, extension) in
        [("", own.as_str()), (own.as_str(), own.as_str()), ("gsm", "gsm"), ("x", own.as_str())]
    {
        let (called, bytes) = super::enclosed(&file, format, base::Gain::UNITY).unwrap();
        assert_eq!(called, format!("{name}.{extension}"), "{format}");
        let sound = codec::SoundFile::parse(extension, &bytes).unwrap();
        assert_eq!(sound.to_clip(base::FormatId::SLIN).data.len(), 16_000, "{format}");
    }
    let (mut desk, log) = (desk(spool.path(), BTreeMap::new()), spool.path().join("minivm.log"));
    for line in ["one", "two"] {
        let (done, _) = answer(&mut desk, Job::Note(log.clone(), line.to_owned()));
        assert!(matches!(done, Ok(Posted::Done)), "{done:?}");
    }
    assert_eq!(fs::read_to_string(&log).unwrap(), "one\ntwo\n");
    let (refused, _) = answer(&mut desk, Job::Note(log.join("none"), "x".to_owned()));
    assert!(matches!(refused, Err(Refusal::Failed(_))), "{refused:?}");
}

#[test]
fn what_goes_with_a_letter_is_louder_as_volgain_says_and_what_is_kept_is_not() {
    let spool = tempfile::tempdir().unwrap();
    let (boxes, alice) = (Boxes::new(spool.path().join("voicemail")), of("6001"));
    let message = boxes.deliver(&delivery(&alice, Some(held(spool.path(), 1000)), "a")).unwrap();
    let peak = |gain: f64, format: &str| {
        let louder = base::Gain::of_decibels(gain);
        let (extension, bytes) = boxes.attached(&alice, Folder::INBOX, &message, format, louder).unwrap();
        let sound = codec::SoundFile::parse(&extension, &bytes).unwrap();
        let clip = sound.to_clip(base::FormatId::SLIN);
        let samples = clip.data.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair).unsigned_abs());
        i32::from(samples.max().unwrap_or_default())
    };
    for (format, gain, expected) in
        [("wav", 0.0, 6000), ("wav", 6.0, 11_970), ("wav", -6.0, 3007), ("wav", 48.0, 32_767)]
    {
        let peak = peak(gain, format);
        assert!((peak - expected).abs() <= expected / 20, "{format} {gain} dB: {peak}");
    }
    assert_eq!(peak(0.0, "wav"), 6000);
}

#[test]
fn a_new_pin_is_written_into_the_line_of_its_mailbox_and_nowhere_else() {
    let spool = tempfile::tempdir().unwrap();
    let before = "; mailboxes\n[default]\n6001 => 1234,Alice,a@example.com ; boss\n6002 => 1234\n[office]\n6001 => 1\n";
    let file = spool.path().join("voicemail.conf");
    fs::write(&file, before).unwrap();
    let line = |text: &str| ("voicemail.conf".to_owned(), text.to_owned());
    let lines = [(of("6001"), line("1234,Alice,a@example.com")), (of("6002"), line("1234"))];
    let mut desk = desk(spool.path(), lines.into());
    for (of, pin) in [(of("6001"), "99"), (of("6001"), "4711"), (of("6002"), "77")] {
        let (done, _) = answer(&mut desk, Job::SetPin(of, PinPlace::Config, pin.into()));
        assert!(matches!(done, Ok(Posted::Done)), "{done:?}");
    }
    let after = before.replace("1234,Alice", "4711,Alice").replace("6002 => 1234", "6002 => 77");
    assert_eq!(fs::read_to_string(&file).unwrap(), after);
    let (done, _) = answer(&mut desk, Job::SetPin(of("6003"), PinPlace::Config, "1".into()));
    assert_eq!(done.unwrap_err(), Refusal::Missing);
}

const CHILD: &str = "STROWGER_TEST_VOICEMAIL_CHILD";

/// Keeps messages, and moves each third one, until it is killed; says each when it is done.
#[test]
#[ignore = "the process that the next test kills"]
fn keeps_messages_until_it_is_killed() {
    let Some(spool) = std::env::var_os(CHILD) else { return };
    let (boxes, alice) = (Boxes::new(Path::new(&spool)), of("6001"));
    for number in 0.. {
        let id = format!("{}-{number}", std::process::id());
        let held = held(Path::new(&spool), 60);
        let Ok(message) = boxes.deliver(&delivery(&alice, Some(held), &id)) else { continue };
        println!("kept {id}");
        if number % 3 == 2
            && boxes.change(&alice, Folder::INBOX, &[(message, Change::Move(Folder::OLD, MANY))]) == Ok(0)
        {
            println!("moved {id}");
        }
    }
}

#[test]
fn no_kill_loses_or_doubles_a_message_that_was_said_to_be_kept() {
    let spool = tempfile::tempdir().unwrap();
    let mut random = base::Random::new(7);
    let mut below = |most: u64| random.below(most);
    let mut acknowledged: Vec<String> = Vec::new();
    let mut moved: Vec<String> = Vec::new();
    for _ in 0..25 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "voicemail::tests::keeps_messages_until_it_is_killed",
                "--ignored",
                "--nocapture",
            ])
            .env(CHILD, spool.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // It dies in the middle of whatever it does after this many messages.
        let (mut after, spin) = (1 + below(6), below(4000));
        for line in lines {
            let line = line.unwrap();
            let (what, id) = match line.rsplit_once(' ').unwrap_or_default() {
                (what, id) if what.ends_with("kept") => ("kept", id),
                (what, id) if what.ends_with("moved") => ("moved", id),
                _ => continue,
            };
            if what == "kept" { &mut acknowledged } else { &mut moved }.push(id.to_owned());
            after = after.saturating_sub(1);
            if after == 0 {
                (0..spin).for_each(|_| std::hint::spin_loop());
                let _ = child.kill();
            }
        }
        child.wait().unwrap();
    }
    let (boxes, alice) = (Boxes::new(spool.path()), of("6001"));
    boxes.sweep([&alice].into_iter());
    // What comes after a kill finds the folder in order.
    boxes.deliver(&delivery(&alice, Some(held(spool.path(), 60)), "last")).unwrap();
    let (inbox, old) = (ids(&boxes, &alice, Folder::INBOX), ids(&boxes, &alice, Folder::OLD));
    for id in &acknowledged {
        let found = inbox.iter().chain(&old).filter(|found| *found == id).count();
        assert_eq!(found, 1, "{id}");
    }
    moved.iter().for_each(|id| assert!(old.contains(id), "{id}"));
    assert!(acknowledged.len() >= 25, "{}", acknowledged.len());
    for folder in [Folder::INBOX, Folder::OLD] {
        for message in boxes.list(&alice, folder) {
            let files = boxes.files_of(&alice, folder, &message).unwrap();
            let names: Vec<&str> = files.iter().map(|(extension, _)| extension.as_str()).collect();
            assert_eq!(names, ["WAV", "gsm", "wav", "txt"], "{}", message.info.id);
            assert_eq!(fs::metadata(&files[2].1).unwrap().len(), 44 + 960, "{}", message.info.id);
        }
    }
}
