use super::*;
use crate::config::tones::Tones;
use base::Command;
use call::Recorder as _;

fn want(name: &str, language: &str, format: FormatId) -> ClipWant {
    ClipWant { name: name.to_owned(), language: language.to_owned(), format }
}

/// A front end and a way to wait for its thread without a clock.
fn sounds(catalogue: Catalogue) -> (Sounds, std::sync::mpsc::Receiver<()>) {
    let (tell, told) = std::sync::mpsc::channel();
    let sounds = Sounds::start(catalogue, Tones::default(), move || {
        let _ = tell.send(());
    });
    (sounds.unwrap(), told)
}

fn settled(sounds: &mut Sounds, told: &std::sync::mpsc::Receiver<()>, want: &ClipWant) -> ClipAnswer {
    loop {
        match sounds.clip(want) {
            ClipAnswer::Loading => {
                told.recv().unwrap();
                sounds.take_in();
            }
            answer => return answer,
        }
    }
}

#[test]
fn a_bundled_prompt_is_coded_once_per_format_and_shared() {
    let (mut sounds, told) = sounds(Catalogue::default());
    for format in [FormatId::ULAW, FormatId::GSM, FormatId::G722] {
        let wanted = want("hello-world", "en", format);
        let (ClipAnswer::Ready(first), ClipAnswer::Ready(second)) =
            (settled(&mut sounds, &told, &wanted), sounds.clip(&wanted))
        else {
            panic!("hello-world is bundled");
        };
        assert!(Arc::ptr_eq(&first, &second), "{format}");
        assert_eq!(first.format, format);
        assert!(first.data.len() > format.bytes_in(200), "{format} has sound");
    }
}

#[test]
fn a_prompt_in_a_format_of_variable_rate_comes_with_packets_for_all_listeners() {
    let (mut sounds, told) = sounds(Catalogue::default());
    for format in [FormatId::SPEEX, FormatId::OPUS] {
        let wanted = want("hello-world", "en", format);
        let ClipAnswer::Ready(clip) = settled(&mut sounds, &told, &wanted) else { panic!("bundled") };
        let packets = clip.packets.as_ref().unwrap();
        assert_eq!(
            (clip.format, packets.len()),
            (format.linear(), clip.data.len() / clip.format.bytes_in(20))
        );
        assert!(packets.suits(format, 20, &base::Wishes::default()));
        assert!(packets.bytes() > packets.len() * 10, "{format} has sound");
    }
}

#[test]
fn with_an_encoder_for_each_call_a_file_is_decoded_once_and_not_encoded() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("own.gsm"), [0xd0; 330]).unwrap();
    let bundled = || [("default".to_owned(), MusicList::Bundled)].into_iter().collect();
    let catalogue = Catalogue {
        folders: vec![folder.path().to_owned()],
        music: bundled(),
        encode_each: true,
        ..Catalogue::default()
    };
    let (mut sounds, told) = sounds(catalogue);
    for (format, made, packets) in [
        (FormatId::ILBC, FormatId::SLIN, false),
        (FormatId::SPEEX, FormatId::SLIN, false),
        (FormatId::OPUS, FormatId::SLIN48, false),
        (FormatId::ULAW, FormatId::SLIN, false),
        (FormatId::GSM, FormatId::GSM, false),
    ] {
        let wanted = want("own", "en", format);
        let ClipAnswer::Ready(clip) = settled(&mut sounds, &told, &wanted) else { panic!("{format}") };
        assert_eq!((clip.format, clip.packets.is_some()), (made, packets), "{format}");
    }
    let music = loop {
        match sounds.music("", FormatId::ILBC) {
            MusicAnswer::Ready(clip, _) => break clip,
            MusicAnswer::Loading => told.recv().unwrap(),
            MusicAnswer::Missing | MusicAnswer::Live(..) => panic!("bundled music"),
        }
        sounds.take_in();
    };
    assert_eq!((music.format, music.loop_from), (FormatId::SLIN, Some(0)));
}

#[test]
fn the_sites_own_prompt_wins_and_languages_fall_back() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, byte: u8| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, [byte; 160]).unwrap();
    };
    write("de/greet.ulaw", 1);
    write("greet.ulaw", 2);
    write("digits/de/7.ulaw", 3);
    let (mut sounds, told) =
        sounds(Catalogue { folders: vec![folder.path().to_owned()], ..Catalogue::default() });
    for (name, language, first) in [("greet", "de_AT", 1), ("greet", "fr", 2), ("digits/7", "de", 3)] {
        let answer = settled(&mut sounds, &told, &want(name, language, FormatId::ULAW));
        let ClipAnswer::Ready(clip) = answer else { panic!("{name} {language}") };
        assert_eq!(clip.data.first(), Some(&first), "{name} {language}");
    }
}

#[test]
fn names_that_climb_out_or_do_not_exist_are_missing() {
    let (mut sounds, told) = sounds(Catalogue::default());
    for name in ["../../etc/passwd", "no-such-prompt", "a/../../b", ""] {
        let answer = settled(&mut sounds, &told, &want(name, "en", FormatId::ULAW));
        assert!(matches!(answer, ClipAnswer::Missing(_)), "{name}");
    }
}

#[test]
fn music_of_a_class_is_one_clip_that_everybody_shares() {
    let music = [("default".to_owned(), MusicList::Bundled)].into_iter().collect();
    let (mut sounds, told) = sounds(Catalogue { music, ..Catalogue::default() });
    assert!(matches!(sounds.music("", FormatId::ULAW), MusicAnswer::Loading));
    told.recv().unwrap();
    assert!(sounds.take_in());
    let MusicAnswer::Ready(clip, epoch) = sounds.music("default", FormatId::ULAW) else {
        panic!("bundled music")
    };
    assert_eq!((epoch, clip.loop_from), (Some(Instant::ZERO), Some(0)));
    assert!(clip.data.len() > FormatId::ULAW.bytes_in(10_000), "more than ten seconds");
    assert!(matches!(sounds.music("nowhere", FormatId::ULAW), MusicAnswer::Loading));
    told.recv().unwrap();
    sounds.take_in();
    assert!(matches!(sounds.music("nowhere", FormatId::ULAW), MusicAnswer::Missing));
}

#[test]
fn the_announcement_of_a_class_follows_each_of_its_pieces() {
    let folder = tempfile::tempdir().unwrap();
    for (name, code, milliseconds) in [("first", 0x11, 400), ("second", 0x22, 600), ("said", 0x33, 200)] {
        std::fs::write(folder.path().join(format!("{name}.ulaw")), vec![code; milliseconds * 8]).unwrap();
    }
    let files = ["first", "second"].map(|name| folder.path().join(name)).to_vec();
    let music = [("own".to_owned(), MusicList::Files(files))].into_iter().collect();
    for (announcement, last, expected, again) in [
        ("said", false, vec![(0x11, 3200), (0x33, 1600), (0x22, 4800), (0x33, 1600)], 0),
        ("not-there", false, vec![(0x11, 3200), (0x22, 4800)], 0),
        ("said", true, vec![(0x11, 3200), (0x33, 1600), (0x22, 4800), (0x33, 1600)], 4800),
        ("not-there", true, vec![(0x11, 3200), (0x22, 4800)], 3200),
    ] {
        let announcements = [("own".to_owned(), announcement.to_owned())].into_iter().collect();
        let folders = vec![folder.path().to_owned()];
        let music: std::collections::BTreeMap<_, _> = Clone::clone(&music);
        let loops_last = last.then(|| "own".to_owned()).into_iter().collect();
        let catalogue = Catalogue { folders, music, announcements, loops_last, ..Catalogue::default() };
        let (mut sounds, told) = sounds(catalogue);
        assert!(matches!(sounds.music("own", FormatId::ULAW), MusicAnswer::Loading));
        told.recv().unwrap();
        sounds.take_in();
        let MusicAnswer::Ready(clip, epoch) = sounds.music("own", FormatId::ULAW) else { panic!("music") };
        assert_eq!((clip.loop_from, epoch.is_none()), (Some(again), last), "{announcement} {last}");
        let runs: Vec<(u8, usize)> =
            clip.data.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
        assert_eq!(runs, expected, "{announcement}");
    }
}

#[test]
fn a_last_piece_that_is_repeated_begins_with_a_packet() {
    let folder = tempfile::tempdir().unwrap();
    for (name, milliseconds) in [("first", 405), ("second", 600)] {
        std::fs::write(folder.path().join(format!("{name}.ulaw")), vec![0x11; milliseconds * 8]).unwrap();
    }
    let files = ["first", "none", "second"].map(|name| folder.path().join(name)).to_vec();
    let catalogue = Catalogue {
        music: [("own".to_owned(), MusicList::Files(files))].into_iter().collect(),
        loops_last: ["own".to_owned()].into_iter().collect(),
        ..Catalogue::default()
    };
    for (format, again, whole) in [
        (FormatId::OPUS, FormatId::SLIN48.bytes_in(420), FormatId::SLIN48.bytes_in(1020)),
        (FormatId::SPEEX, FormatId::SLIN.bytes_in(420), FormatId::SLIN.bytes_in(1020)),
        (FormatId::ULAW, 420 * 8, 1020 * 8),
    ] {
        let clip = catalogue.music("own", format).unwrap();
        assert_eq!((clip.loop_from, clip.data.len()), (Some(again), whole), "{format}");
        let packets = clip.packets.as_ref().map(base::Packets::len);
        assert_eq!(packets.unwrap_or(51), 51, "{format}");
    }
}

#[test]
fn the_pieces_of_a_folder_play_by_name_at_random_or_from_a_random_one_on() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<u8> = (b'a'..=b'h').collect();
    for name in &names {
        let path = folder.path().join(format!("{}.ulaw", char::from(*name)));
        std::fs::write(path, vec![*name; 160]).unwrap();
    }
    let played = |order, last: bool, seed| {
        let path = folder.path().to_owned();
        let catalogue = Catalogue {
            music: [("own".to_owned(), MusicList::Folder { path, order })].into_iter().collect(),
            loops_last: last.then(|| "own".to_owned()).into_iter().collect(),
            seed,
            ..Catalogue::default()
        };
        let clip = catalogue.music("own", FormatId::ULAW).unwrap();
        clip.data.chunks(160).map(|piece| piece[0]).collect::<Vec<u8>>()
    };
    let mut firsts = std::collections::BTreeSet::new();
    for seed in 0..40 {
        assert_eq!(played(MusicOrder::ByName, false, seed), names);
        let mut shuffled = played(MusicOrder::Shuffled, false, seed);
        shuffled.sort_unstable();
        assert_eq!(shuffled, names);
        let (round, onward) =
            (played(MusicOrder::FromAny, false, seed), played(MusicOrder::FromAny, true, seed));
        let first = names.iter().position(|name| *name == round[0]).unwrap();
        assert_eq!(round, [&names[first..], &names[..first]].concat());
        assert_eq!(onward, names[first..]);
        firsts.insert(first);
    }
    assert_eq!(firsts.len(), names.len(), "each is once the first");
}

#[test]
fn tones_are_found_by_zone_and_name_or_rendered_from_a_list() {
    let (mut sounds, _told) = sounds(Catalogue::default());
    for (zone, tone, known) in [
        ("", "busy", true),
        ("de", "ring", true),
        ("", "425/100,0/100", true),
        ("", "milliwatt", true),
        ("", "no-such-tone", false),
    ] {
        assert_eq!(sounds.tone(zone, tone, FormatId::ALAW).is_some(), known, "{zone} {tone}");
    }
}

#[test]
fn a_recording_is_a_complete_wave_file_when_its_sink_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut recordings =
        Recordings::start(folder.path().to_owned(), Box::new(|text| panic!("{text}"))).unwrap();
    assert!(recordings.is_free("note", "wav"));
    let call::Take { mut sink, format, .. } = recordings.open("note", "wav", false).unwrap();
    assert_eq!(format, FormatId::SLIN);
    assert_eq!(sink.write(&[1000; 1600]), 1600);
    // The worker drops the sink with its command.
    drop(Command::Record { stream: base::StreamId::new(0, 0), format, sink });
    let path = folder.path().join("note.wav");
    let complete =
        |bytes: &[u8]| bytes.len() == 44 + 3200 && bytes.get(40..44) == Some(&3200_u32.to_le_bytes()[..]);
    while !std::fs::read(&path).is_ok_and(|bytes| complete(&bytes)) {
        std::thread::yield_now();
    }
    assert!(!recordings.is_free("note", "wav"));
    assert!(recordings.open("../note", "wav", false).is_err());
    assert!(recordings.open("note", "mp3", false).is_err());
}

#[test]
fn what_is_not_wanted_of_a_recording_is_cut_off_and_what_was_there_before_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mut recordings =
        Recordings::start(folder.path().to_owned(), Box::new(|text| panic!("{text}"))).unwrap();
    let mut record = |name: &str, extension: &str, append: bool, wish: fn(&call::Afterwards)| {
        let call::Take { mut sink, afterwards, .. } = recordings.open(name, extension, append).unwrap();
        assert_eq!(sink.write(&[1000; 1600]), 1600);
        wish(&afterwards);
        drop(sink);
        // The writer lets go of what it shares when the file is as it is to be.
        while std::sync::Arc::strong_count(&afterwards) > 1 {
            std::thread::yield_now();
        }
        std::fs::read(folder.path().join(format!("{name}.{extension}"))).ok()
    };
    for (name, extension, wish, expected) in [
        ("whole", "wav", (|_| {}) as fn(&call::Afterwards), Some(44 + 3200)),
        ("half", "wav", |after| after.cut(100), Some(44 + 1600)),
        ("all", "ulaw", |after| after.cut(5000), Some(0)),
        ("frames", "gsm", |after| after.cut(110), Some(5 * 33)),
        ("gone", "wav", call::Afterwards::discard, None),
        ("gone", "opus", call::Afterwards::discard, None),
    ] {
        let bytes = record(name, extension, false, wish);
        assert_eq!(bytes.as_ref().map(Vec::len), expected, "{name}");
        if let Some(bytes) = bytes.filter(|_| extension == "wav") {
            let said = u32::from_le_bytes(bytes[40..44].try_into().unwrap()) as usize;
            assert_eq!(said, bytes.len() - 44, "{name}: the header");
        }
    }
    let appended = record("whole", "wav", true, call::Afterwards::discard).unwrap();
    assert_eq!(appended.len(), 44 + 3200, "what was appended to");
    let appended = record("whole", "wav", true, |after| after.cut(150)).unwrap();
    assert_eq!(appended.len(), 44 + 3200 + 800);
}

#[test]
fn a_full_disk_ends_a_recording_with_a_word_and_not_the_call() {
    let (tell, told) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let hear = move |text: &str| tell.lock().unwrap().send(text.to_owned()).unwrap();
    let mut recordings = Recordings::start("/tmp".into(), Box::new(hear)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("full.sln");
    if std::os::unix::fs::symlink("/dev/full", &link).is_err() || !std::path::Path::new("/dev/full").exists()
    {
        println!("skipped: there is no /dev/full");
        return;
    }
    let path = folder.path().join("full");
    let mut take = recordings.open(path.to_str().unwrap(), "sln", false).unwrap();
    let written = take.sink.write(&[1; 160]);
    assert_eq!(written, 160);
    let text = told.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    assert!(text.contains("full.sln has ended: No space left"), "{text}");
    assert!(take.progress.failure().is_some_and(|why| why.starts_with("No space left")));
    while recordings.state().running > 0 {
        std::thread::yield_now();
    }
    assert_eq!(recordings.state().failed, 1);
    // The worker goes on writing until its ring is full, and nothing happens then.
    while take.sink.write(&[1; 1600]) > 0 {}
}

#[test]
fn sound_that_a_slow_disk_has_no_room_for_is_counted_and_told() {
    let (tell, told) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let hear = move |text: &str| tell.lock().unwrap().send(text.to_owned()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut recordings = Recordings::start(folder.path().to_owned(), Box::new(hear)).unwrap();
    let mut take = recordings.open("slow", "wav", false).unwrap();
    // Five seconds in a moment, as if the thread had not come for so long: there is room for four.
    let taken = take.sink.write(&vec![1; 5 * 8000]);
    assert_eq!((taken, take.progress.lost(), take.progress.lost_in_a_row()), (32_000, 8000, 8000));
    assert_eq!(recordings.state().running, 1);
    drop(take.sink);
    let text = told.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    assert!(text.contains("slow.wav has lost 1000 ms"), "{text}");
    let length = || std::fs::metadata(folder.path().join("slow.wav")).unwrap().len();
    while length() < 44 + 64_000 {
        std::thread::yield_now();
    }
    assert_eq!((length(), take.progress.failure()), (44 + 64_000, None), "what there was room for is kept");
    while recordings.state().running > 0 {
        std::thread::yield_now();
    }
    assert_eq!((recordings.state().lost_ms, recordings.state().failed), (1000, 0));
}

#[test]
fn every_format_is_on_disk_but_for_the_last_second_while_it_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let mut recordings =
        Recordings::start(folder.path().to_owned(), Box::new(|text| panic!("{text}"))).unwrap();
    let kinds = ["wav", "wav16", "WAV", "wav49", "gsm", "ulaw", "alaw", "g722", "sln", "sln48", "opus"];
    let mut takes: Vec<_> = kinds
        .iter()
        .enumerate()
        .map(|(n, extension)| recordings.open(&format!("call{n}"), extension, false).unwrap())
        .collect();
    for take in &mut takes {
        let second = take.format.rate().0 as usize;
        let sine: Vec<i16> = (0..2 * second).map(|n| if n / 20 % 2 == 0 { 3000 } else { -3000 }).collect();
        assert_eq!(take.sink.write(&sine), 2 * second);
    }
    // The sinks live on: this is what a kill would leave.
    for (n, extension) in kinds.iter().enumerate() {
        let path = folder.path().join(format!("call{n}.{extension}"));
        let heard = || {
            let bytes = std::fs::read(&path).ok()?;
            let sound = codec::SoundFile::parse(extension, &bytes).ok()?;
            let clip = sound.to_clip(FormatId::SLIN);
            Some(clip.data.len() / 16)
        };
        let began = std::time::Instant::now();
        while heard().is_none_or(|ms| ms < 1000) {
            assert!(began.elapsed().as_secs() < 60, "{extension}: {:?} ms", heard());
            std::thread::yield_now();
        }
    }
}

#[test]
fn rfc7845_recordings_are_read_by_other_programs_appended_to_cut_and_mended() {
    let folder = tempfile::tempdir().unwrap();
    let mut recordings =
        Recordings::start(folder.path().to_owned(), Box::new(|text| panic!("{text}"))).unwrap();
    let path = folder.path().join("call.opus");
    let sine: Vec<i16> = (0..32_000).map(|n| ((f64::from(n) * 0.2).sin() * 9000.0) as i16).collect();
    let milliseconds = || {
        let bytes = std::fs::read(&path).unwrap();
        let sound = codec::SoundFile::parse("opus", &bytes).unwrap();
        sound.data.len() / 32
    };
    for (append, cut_ms, expected) in [(false, 0, 2000), (true, 0, 4000), (true, 1250, 4750)] {
        let Ok(mut take) = recordings.open("call", "opus", append) else {
            println!("skipped: libopus is missing");
            return;
        };
        assert_eq!(take.format, FormatId::SLIN16);
        take.sink.write(&sine);
        take.afterwards.cut(cut_ms);
        drop(take.sink);
        while Arc::strong_count(&take.afterwards) > 1 {
            std::thread::yield_now();
        }
        assert_eq!(milliseconds(), expected);
    }
    match std::process::Command::new("opusinfo").arg(&path).output() {
        Ok(said) => {
            let text = String::from_utf8_lossy(&said.stdout).to_lowercase();
            assert!(said.status.success() && !text.contains("warning"), "{text}");
            assert!(text.contains("playback length: 0m:02.000s"), "{text}");
        }
        Err(why) => println!("skipped: opusinfo: {why}"),
    }
    // As a kill leaves it: half a page at the end, and no page says that it is the last.
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    assert_eq!(repair::repair(folder.path(), later), 1);
    assert_eq!(repair::repair(folder.path(), later), 0, "once is enough");
    assert!((3900..4750).contains(&milliseconds()), "{}", milliseconds());
}

#[test]
fn a_recording_that_is_renamed_goes_on_in_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut recordings =
        Recordings::start(folder.path().to_owned(), Box::new(|text| panic!("{text}"))).unwrap();
    let mut take = recordings.open("before", "sln", false).unwrap();
    assert_eq!(take.sink.write(&[1; 800]), 800);
    recordings.rename("before", "sln", "other/after").unwrap();
    assert_eq!(take.sink.write(&[2; 800]), 800);
    drop(take);
    let path = folder.path().join("other/after.sln");
    let whole = [[1_i16; 800], [2; 800]].concat().into_iter().flat_map(i16::to_le_bytes).collect::<Vec<_>>();
    while recordings.state().running > 0 {
        std::thread::yield_now();
    }
    assert_eq!(std::fs::read(&path).unwrap(), whole);
    assert!(!folder.path().join("before.sln").exists());
    assert!(recordings.rename("nothing", "sln", "something").is_err());
    assert!(recordings.rename("other/after", "sln", "../outside").is_err());
}

#[test]
fn a_file_that_has_become_another_one_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sounds, told) = sounds(Catalogue::default());
    let name = folder.path().join("take").display().to_string();
    let wanted = want(&name, "en", FormatId::SLIN);
    assert!(matches!(settled(&mut sounds, &told, &wanted), ClipAnswer::Missing(_)));
    let length = |answer: ClipAnswer| match answer {
        ClipAnswer::Ready(clip) => clip.data.len(),
        _ => 0,
    };
    for bytes in [320, 640] {
        std::fs::write(folder.path().join("take.sln"), vec![0; bytes]).unwrap();
        let before = sounds.clip(&wanted);
        assert_ne!(length(before), bytes, "it is remembered");
        sounds.forget(&name);
        assert_eq!(length(settled(&mut sounds, &told, &wanted)), bytes);
    }
    assert_eq!(sounds.prompt_bytes, 640);
}
