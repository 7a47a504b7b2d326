//! Applications that play: prompts, tones, music, and what listens while they do.

use call::{Chan, ChanEvent, ChanState, Heard, Indication, Level, Stop};

use crate::call_ctx::args;
use crate::{AppFuture, AppRow, Call, Flow, Outcome, Run, pbx};

/// Most files of one Playback (`a&b&c`).
const FILES_MAX: usize = 256;
/// Option letters of BackGround.
pub(crate) const BACKGROUND_OPTIONS: &str = "snmp";

pub(crate) const ROWS: &[AppRow] = &[
    AppRow {
        name: "Playback",
        module: "app_playback",
        synopsis: "Plays sounds one after the other.",
        syntax: "Playback(filename[&filename2[&...]][,options])",
        description: "\
Plays sound files by name, without extension; the cheapest format for the channel is chosen. say:text and tts:text have a
text spoken; a comma in it wants quotes: Playback(\"say:Hello, world\").

options:
  skip      does nothing unless the call is answered.
  noanswer  plays without answering first (early media).
  say, mix  have no effect: they ask for say.conf, which is not read.
Sets PLAYBACKSTATUS (SUCCESS FAILED).",
        run: Run::Story(|call, args| Box::pin(async move { playback(&call, &args).await })),
    },
    AppRow {
        name: "Espeak",
        module: "app_espeak",
        synopsis: "Speaks a text.",
        syntax: "Espeak(text[,intkeys[,language]])",
        description: "\
Has a text spoken by the program of tts.conf, as Playback(say:text) does. A comma in the text wants quotes around it.

intkeys   keys that end it and begin the number of an extension; any: every key.
language  speaks in this language instead of the channel's.
Sets PLAYBACKSTATUS (SUCCESS FAILED).",
        run: Run::Story(|call, args| Box::pin(async move { speak(&call, &args).await })),
    },
    AppRow {
        name: "Festival",
        module: "app_festival",
        synopsis: "Speaks a text.",
        syntax: "Festival(text[,intkeys])",
        description: "As Espeak: the program is that of tts.conf, which may be Festival's text2wave.",
        run: Run::Story(|call, args| Box::pin(async move { speak(&call, &args).await })),
    },
    AppRow {
        name: "MP3Player",
        module: "app_mp3",
        synopsis: "Plays an MP3 file until a key is pressed.",
        syntax: "MP3Player(Location)",
        description: "\
Plays a file by its name, with or without .mp3, from where Playback has its sounds, or with its whole path. Addresses (http://)
and lists (.m3u) are not played: a program does that as music of mode=custom. Any key ends it.",
        run: Run::Story(|call, args| Box::pin(async move { mp3_player(&call, args.trim()).await })),
    },
    AppRow {
        name: "BackGround",
        module: "pbx_builtins",
        synopsis: "Plays sounds while the caller may dial an extension.",
        syntax: "BackGround(filename1[&filename2[&...]][,options[,langoverride[,context]]])",
        description: "\
Plays files; a digit stops them and begins the number of an extension to go to. When that digit alone is an extension
of the context that is given, the call goes there.

options:
  s  does nothing unless the call is answered.
  n  does not answer first.
  m  only breaks when the digit is a one-digit extension.
  p  digits do not stop it.
Sets BACKGROUNDSTATUS (SUCCESS FAILED).",
        run: Run::Story(|call, args| Box::pin(async move { background(&call, &args).await })),
    },
    AppRow {
        name: "PlayTones",
        module: "app_playtones",
        synopsis: "Plays a tone or a tone script while the dialplan goes on.",
        syntax: "PlayTones(arg)",
        description: "Starts a tone of indications.conf (busy, dial, ring, ...) or a tone list (425/50,0/50) and goes on at once; StopPlayTones ends it.",
        run: Run::Now(|call, args| {
            if !call.chan.start_tone(args.trim()) {
                call.log(
                    Level::Warning,
                    &format!("'{args}' is neither a tone of indications.conf nor a tone list"),
                );
            }
            Ok(Flow::Continue)
        }),
    },
    AppRow {
        name: "StopPlayTones",
        module: "app_playtones",
        synopsis: "Stops what PlayTones plays.",
        syntax: "StopPlayTones()",
        description: "Ends what PlayTones started.",
        run: Run::Now(|call, _| {
            call.chan.stop_sound();
            Ok(Flow::Continue)
        }),
    },
    AppRow {
        name: "Milliwatt",
        module: "app_milliwatt",
        synopsis: "Sends a steady tone of one milliwatt.",
        syntax: "Milliwatt([options])",
        description: "Plays the test tone until hang-up.\n\noptions:\n  m  silent for 1 second of every 10, as a milliwatt test line must be.\n  o  1000 Hz instead of 1004 Hz.",
        run: Run::Story(milliwatt),
    },
    AppRow {
        name: "Echo",
        module: "app_echo",
        synopsis: "Sends what the caller says and dials back to him.",
        syntax: "Echo()",
        description: "Sends back what it hears until hang-up or the digit '#'.",
        run: Run::Story(|call, _| Box::pin(async move { echo(&call).await })),
    },
    AppRow {
        name: "MusicOnHold",
        module: "res_musiconhold",
        synopsis: "Plays music until the call ends or the time is over.",
        syntax: "MusicOnHold([class[,duration]])",
        description: "Plays hold music of the class (or the channel's own) for duration seconds, or until hang-up.",
        run: Run::Story(music_on_hold),
    },
    AppRow {
        name: "StartMusicOnHold",
        module: "res_musiconhold",
        synopsis: "Starts music and goes on with the dialplan.",
        syntax: "StartMusicOnHold([class])",
        description: "Starts hold music and goes on with the dialplan.",
        run: Run::Story(|call, args| {
            Box::pin(async move {
                call.chan.start_music(args.trim()).await?;
                Ok(Flow::Continue)
            })
        }),
    },
    AppRow {
        name: "StopMusicOnHold",
        module: "res_musiconhold",
        synopsis: "Stops music.",
        syntax: "StopMusicOnHold()",
        description: "Ends what StartMusicOnHold started.",
        run: Run::Now(|call, _| {
            call.chan.stop_music();
            Ok(Flow::Continue)
        }),
    },
];

/// Opens the sound path: answers, or with `noanswer` offers early media. `false`: the caller asked to skip.
async fn open(call: &Call, skip: bool, no_answer: bool) -> Result<bool, Stop> {
    if call.chan.state() == ChanState::Up {
        return Ok(true);
    }
    if skip {
        return Ok(false);
    }
    if no_answer {
        call.chan.indicate(&Indication::Progress);
    } else {
        call.answer_for_sound().await?;
    }
    Ok(true)
}

async fn playback(call: &Call, args: &str) -> Outcome {
    let parts = args::split(args);
    let files = args::nth(&parts, 0);
    let option = |name: &str| parts.iter().skip(1).any(|o| o.trim().eq_ignore_ascii_case(name));
    for name in ["say", "mix"].into_iter().filter(|name| option(name)) {
        call.log(Level::Warning, &format!("Playback option '{name}' needs say.conf and has no effect"));
    }
    if files.trim().is_empty() {
        call.log(Level::Warning, "Playback requires an argument (filename)");
        call.set("PLAYBACKSTATUS", "FAILED");
        return Ok(Flow::Continue);
    }
    if !open(call, option("skip"), option("noanswer")).await? {
        call.set("PLAYBACKSTATUS", "SUCCESS");
        return Ok(Flow::Continue);
    }
    let played = play_all(call, files, "").await;
    // A call that ends meanwhile has heard what it wanted.
    call.set("PLAYBACKSTATUS", played.as_ref().map_or("SUCCESS", |(status, _)| status));
    played?;
    Ok(Flow::Continue)
}

/// Every key of a phone.
const ANY_KEY: &str = "0123456789*#ABCD";

/// `MP3Player(Location)`.
async fn mp3_player(call: &Call, location: &str) -> Outcome {
    let lower = location.to_ascii_lowercase();
    let why = if location.is_empty() {
        "MP3Player requires an argument (Location)"
    } else if lower.contains("://") || lower.ends_with(".m3u") {
        "MP3Player plays files only: let music of mode=custom play what is elsewhere"
    } else {
        open(call, false, false).await?;
        let name = location.get(..location.len().saturating_sub(4)).filter(|_| lower.ends_with(".mp3"));
        call.chan.play(name.unwrap_or(location), ANY_KEY).await?;
        return Ok(Flow::Continue);
    };
    call.log(Level::Warning, why);
    Ok(Flow::Continue)
}

/// `Espeak(text[,intkeys[,language]])`.
async fn speak(call: &Call, args: &str) -> Outcome {
    let parts = args::split(args);
    let (text, keys, language) = (args::nth(&parts, 0), args::nth(&parts, 1), args::nth(&parts, 2));
    if text.is_empty() {
        call.log(Level::Warning, "there is no text to be spoken");
        call.set("PLAYBACKSTATUS", "FAILED");
        return Ok(Flow::Continue);
    }
    call.answer_for_sound().await?;
    let keys = if keys.eq_ignore_ascii_case("any") { ANY_KEY } else { keys };
    let own = call.chan.with(|c| {
        let own = c.language.clone();
        if !language.is_empty() {
            language.clone_into(&mut c.language);
        }
        own
    })?;
    let heard = call.chan.play(&format!("say:{text}"), keys).await;
    let _ = call.chan.with(|c| c.language = own);
    let heard = heard?;
    call.set("PLAYBACKSTATUS", if heard == Heard::Failed { "FAILED" } else { "SUCCESS" });
    Ok(match heard {
        Heard::Interrupted(digit, _) => Flow::Digit(digit),
        Heard::Finished | Heard::Failed => Flow::Continue,
    })
}

async fn background(call: &Call, args: &str) -> Outcome {
    let parts = args::split(args);
    let arg = |index: usize| args::nth(&parts, index);
    let options = dialplan::Options::parse(arg(1), BACKGROUND_OPTIONS);
    if arg(0).is_empty() {
        call.log(Level::Warning, "BackGround requires an argument (filename)");
        call.set("BACKGROUNDSTATUS", "FAILED");
        return Ok(Flow::Continue);
    }
    if !open(call, options.has('s'), options.has('n')).await? {
        call.set("BACKGROUNDSTATUS", "SUCCESS");
        return Ok(Flow::Continue);
    }
    let context = if arg(3).is_empty() { call.context() } else { arg(3).to_owned() };
    let stop_on = match () {
        () if options.has('p') => String::new(),
        () if options.has('m') => {
            ANY_DIGIT.chars().filter(|d| call.exists(&context, &d.to_string())).collect()
        }
        () => ANY_DIGIT.to_owned(),
    };
    let own_language = call.chan.with(|c| c.language.clone())?;
    if !arg(2).is_empty() {
        call.chan.with(|c| c.language = arg(2).to_owned())?;
    }
    let heard = play_all(call, arg(0), &stop_on).await;
    call.chan.with(|c| c.language = own_language)?;
    let (status, pressed) = heard?;
    call.set("BACKGROUNDSTATUS", status);
    let Some(digit) = pressed else { return Ok(Flow::Continue) };
    let exten = digit.to_char().to_string();
    if context != call.context() && call.exists(&context, &exten) && !call.match_more(&context, &exten) {
        call.stand_at(pbx::Place::find(call, &context, &exten, 1));
        return Ok(Flow::Jumped);
    }
    Ok(Flow::Digit(digit))
}

const ANY_DIGIT: &str = "0123456789*#ABCD";

/// Plays `a&b&c` until a digit stops it; whether all could be played, and the digit.
async fn play_all(
    call: &Call,
    files: &str,
    stop_on: &str,
) -> Result<(&'static str, Option<base::Digit>), Stop> {
    let mut status = "SUCCESS";
    for file in files.split('&').map(str::trim).filter(|f| !f.is_empty()).take(FILES_MAX) {
        match call.chan.play(file, stop_on).await? {
            Heard::Finished => {}
            Heard::Failed => status = "FAILED",
            Heard::Interrupted(digit, _) => return Ok((status, Some(digit))),
        }
    }
    Ok((status, None))
}

fn milliwatt(call: Call, args: String) -> AppFuture {
    Box::pin(async move {
        call.chan.answer()?;
        let frequency = if args.contains('o') { 1000 } else { 1004 };
        let tone =
            if args.contains('m') { format!("{frequency}/9000,0/1000") } else { format!("{frequency}/1000") };
        if !call.chan.start_tone(&tone) {
            return Ok(Flow::Hangup);
        }
        loop {
            call.chan.event(None).await?;
        }
    })
}

async fn echo(call: &Call) -> Outcome {
    show_echo(&call.chan, true);
    let _off = EchoOff(&call.chan);
    loop {
        match call.chan.event(None).await? {
            Some(ChanEvent::Digit { digit, .. }) if digit.to_char() == '#' => return Ok(Flow::Continue),
            Some(ChanEvent::Digit { digit, duration_ms, .. }) => {
                call.chan.pass_digit(digit, duration_ms);
            }
            _ => {}
        }
    }
}

struct EchoOff<'a>(&'a Chan);

impl Drop for EchoOff<'_> {
    fn drop(&mut self) {
        show_echo(self.0, false);
    }
}

/// Sound and video come back.
fn show_echo(chan: &Chan, on: bool) {
    let echo = |stream| base::Command::Echo { stream, on };
    chan.media(echo);
    chan.core(|core| core.passed_command(chan.id(), echo));
}

fn music_on_hold(call: Call, args: String) -> AppFuture {
    Box::pin(async move {
        let parts = args::split(&args);
        let duration = args::seconds(args::nth(&parts, 1)).filter(|limit| !limit.is_zero());
        if !call.chan.start_music(args::nth(&parts, 0)).await? {
            return Ok(Flow::Continue);
        }
        let _stop = MusicOff(&call.chan);
        match duration {
            Some(duration) => call.chan.wait(duration).await?,
            None => loop {
                call.chan.event(None).await?;
            },
        }
        Ok(Flow::Continue)
    })
}

struct MusicOff<'a>(&'a Chan);

impl Drop for MusicOff<'_> {
    fn drop(&mut self) {
        self.0.stop_music();
    }
}
