//! Applications that listen for speech: noise, an answering machine, talk during a prompt.

mod machine;

use core::time::Duration;

use base::{Command, Listener, PlayEnd, SoundWatch, ToneWatch};
use call::{ChanEvent, Level, MachineSettings, Stop, ToneCounts};

use crate::call_ctx::args;
use crate::flow::rows;
use crate::functions::listening::{TONE_DECIBELS, TONE_HERTZ_MAX, TONE_MS};
use crate::listen::SILENCE_THRESHOLD;
use crate::{AppRow, Call, Flow, Outcome, Run, pbx};
use machine::{Heard, Machine, Verdict};

/// Option letters of WaitForTone.
pub(crate) const WAIT_FOR_TONE_OPTIONS: &str = "ds";

pub(crate) const ROWS: &[AppRow] = rows! {
    "WaitForNoise" "app_waitforsilence" Run::Story(|call, text| Box::pin(async move { wait_for_noise(&call, &text).await })),
        "Waits until the caller is heard.", "WaitForNoise([noiserequired[,iterations[,timeout]]])",
        "Waits for noiserequired milliseconds of sound without a pause (1000), iterations times (1), for at most timeout\n\
         seconds. Sets WAITSTATUS (NOISE TIMEOUT).";
    "WaitForTone" "res_tonedetect" Run::Story(|call, text| Box::pin(async move { wait_for_tone(&call, &text).await })),
        "Waits until a tone of one frequency is heard.", "WaitForTone(freq[,duration_ms[,timeout[,times[,options]]]])",
        "Waits until the caller sends a tone of freq hertz for duration_ms milliseconds (500), as often as times says (1), for at\n\
         most timeout seconds (no limit).\n\n\
         options:\n  \
         d(n)  decibels by which the tone stands out (16).\n  \
         s     says nothing here: tones are not squelched.\n\
         Sets WAITFORTONESTATUS (SUCCESS ERROR TIMEOUT HANGUP).";
    "BackgroundDetect" "app_talkdetect" Run::Story(|call, text| Box::pin(async move { background_detect(&call, &text).await })),
        "Plays a sound and stops it when the caller talks or dials.",
        "BackgroundDetect(filename[,sil[,min[,max[,analysistime]]]])",
        "When the caller says something of at least min milliseconds (100) and at most max (no limit), with sil milliseconds\n\
         of silence after it (1000), within the first analysistime milliseconds (all), the sound is stopped, and the call\n\
         goes on at extension talk, if there is one. A digit with which an extension begins stops the sound and begins the\n\
         number of an extension to go to.";
    "AMD" "app_amd" Run::Story(|call, text| Box::pin(async move { detect_machine(&call, &text).await })),
        "Tells whether a machine or somebody has answered.",
        "AMD([initialSilence[,greeting[,afterGreetingSilence[,totalAnalysisTime[,minimumWordLength[,betweenWordsSilence[,maximumNumberOfWords[,silenceThreshold[,maximumWordLength[,audioFile]]]]]]]]]])",
        "Listens to who has answered, after Answer() or Dial. Times are in milliseconds; what is not said comes from amd.conf.\n\n\
         initialSilence        a longer silence before a greeting: a machine (2500).\n\
         greeting              a greeting of this length: a machine (1500).\n\
         afterGreetingSilence  a silence of this length after a greeting: somebody (800).\n\
         totalAnalysisTime     after this it is not sure (5000).\n\
         minimumWordLength     shorter sounds are none (100).\n\
         betweenWordsSilence   shorter silences part no words (50).\n\
         maximumNumberOfWords  more words: a machine (2).\n\
         silenceThreshold      mean amplitude below which it is silent, 0 to 32767 (256).\n\
         maximumWordLength     a word of this length: a machine (5000).\n\
         audioFile             sound that is played meanwhile.\n\
         Sets AMDSTATUS (MACHINE HUMAN NOTSURE HANGUP) and AMDCAUSE: TOOLONG-time, INITIALSILENCE-silence-limit,\n\
         HUMAN-silence-limit, LONGGREETING-voice-limit, MAXWORDLENGTH-word, MAXWORDS-words-limit.";
};

/// A watch for sound, which ends however its application does.
struct Watch<'a>(&'a Call);

impl<'a> Watch<'a> {
    fn begin(call: &'a Call, watch: SoundWatch) -> Self {
        let watch = Some(watch);
        call.chan.media(|stream| Command::WatchSound { stream, listener: Listener::Application, watch });
        Self(call)
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let (listener, watch) = (Listener::Application, None);
        self.0.chan.media(|stream| Command::WatchSound { stream, listener, watch });
    }
}

async fn wait_for_noise(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let positive = |index: usize, otherwise: u32| {
        args::nth(&parts, index).trim().parse().ok().filter(|number| *number > 0).unwrap_or(otherwise)
    };
    let (sound_ms, wanted) = (positive(0, 1000), positive(1, 1));
    let timeout = args::seconds(args::nth(&parts, 2)).filter(|timeout| !timeout.is_zero());
    let deadline = timeout.map(|timeout| call.chan.now() + timeout);
    // Each silence, of whatever length, begins the count anew.
    let watch = SoundWatch { threshold: SILENCE_THRESHOLD, sound_ms, silence_ms: 0, sounds: false };
    let mut listening = Watch::begin(call, watch);
    let mut heard = 0;
    while heard < wanted {
        match call.chan.event(deadline).await? {
            Some(ChanEvent::Sound { sounds: true, .. }) => {
                heard += 1;
                if heard < wanted {
                    drop(listening);
                    listening = Watch::begin(call, watch);
                }
            }
            Some(_) => {}
            None => {
                call.set("WAITSTATUS", "TIMEOUT");
                return Ok(Flow::Continue);
            }
        }
    }
    drop(listening);
    call.set("WAITSTATUS", "NOISE");
    Ok(Flow::Continue)
}

/// A watch for a tone instead of the one that TONE_DETECT() has set, which goes on when the application ends.
struct Tone<'a> {
    call: &'a Call,
    set_aside: Option<Box<ToneCounts>>,
}

impl<'a> Tone<'a> {
    fn begin(call: &'a Call, watch: ToneWatch) -> Self {
        let set_aside = call.chan.with(|channel| channel.tones.take()).ok().flatten();
        watch_tone(call, Some(watch));
        Self { call, set_aside }
    }
}

impl Drop for Tone<'_> {
    fn drop(&mut self) {
        watch_tone(self.call, self.set_aside.as_ref().map(|tones| tones.watch));
        let tones = self.set_aside.take();
        let _gone = self.call.chan.with(|channel| channel.tones = tones);
    }
}

fn watch_tone(call: &Call, watch: Option<ToneWatch>) {
    let listener = Listener::Application;
    call.chan.media(|stream| Command::WatchTone { stream, listener, watch });
}

async fn wait_for_tone(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let positive = |index: usize, otherwise: u32| match args::nth(&parts, index).trim() {
        "" => Some(otherwise),
        text => text.parse().ok().filter(|number| *number > 0),
    };
    let options = dialplan::Options::parse(args::nth(&parts, 4), WAIT_FOR_TONE_OPTIONS);
    let decibels = match options.arg('d') {
        Some(text) => text.trim().parse().ok().filter(|decibels| *decibels > 0),
        None => u8::try_from(TONE_DECIBELS).ok(),
    };
    let hertz = args::nth(&parts, 0).trim().parse().ok().filter(|hertz| (1..=TONE_HERTZ_MAX).contains(hertz));
    let (Some(hertz), Some(duration_ms), Some(wanted), Some(decibels)) =
        (hertz, positive(1, TONE_MS), positive(3, 1), decibels)
    else {
        call.log(
            Level::Warning,
            &format!("WaitForTone({text}): a frequency of 1 to {TONE_HERTZ_MAX} hertz, and numbers above 0"),
        );
        call.set("WAITFORTONESTATUS", "ERROR");
        return Ok(Flow::Continue);
    };
    let timeout = args::seconds(args::nth(&parts, 2)).filter(|timeout| !timeout.is_zero());
    let deadline = timeout.map(|timeout| call.chan.now() + timeout);
    let watch = ToneWatch {
        hertz: Some(hertz),
        duration_ms,
        decibels,
        heard: true,
        sent: false,
        ..ToneWatch::default()
    };
    let _listening = Tone::begin(call, watch);
    let mut heard = 0;
    let status = loop {
        match call.chan.event(deadline).await {
            Ok(Some(ChanEvent::Tone { sent: false })) => heard += 1,
            Ok(Some(_)) => {}
            Ok(None) => break "TIMEOUT",
            Err(stop) => {
                call.set("WAITFORTONESTATUS", "HANGUP");
                return Err(stop);
            }
        }
        if heard >= wanted {
            break "SUCCESS";
        }
    };
    call.set("WAITFORTONESTATUS", status);
    Ok(Flow::Continue)
}

const ANY_DIGIT: &str = "0123456789*#ABCD";

async fn background_detect(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let file = args::nth(&parts, 0).trim();
    let positive = |index: usize, otherwise: u32| {
        args::nth(&parts, index).trim().parse().ok().filter(|number| *number > 0).unwrap_or(otherwise)
    };
    if file.is_empty() {
        call.log(Level::Warning, "BackgroundDetect requires an argument (filename)");
        return Ok(Flow::Continue);
    }
    let (silence_ms, shortest, longest) = (positive(1, 1000), positive(2, 100), positive(3, u32::MAX));
    let watched_ms = u64::from(positive(4, u32::MAX));
    call.answer_for_sound().await?;
    let Some(clip) = call.chan.clip(file).await? else { return Ok(Flow::Continue) };
    let context = call.context();
    let starts: String = ANY_DIGIT
        .chars()
        .filter(|digit| {
            let digit = digit.to_string();
            call.exists(&context, &digit) || call.match_more(&context, &digit)
        })
        .collect();
    let began = call.chan.now();
    let watch = SoundWatch { threshold: SILENCE_THRESHOLD, sound_ms: shortest, silence_ms, sounds: false };
    let listening = Watch::begin(call, watch);
    let wanted = call.chan.start_clip(clip, 0);
    let sounding = Sounding(call);
    loop {
        match call.chan.event(None).await? {
            Some(ChanEvent::Played { play, end, .. }) if play == wanted => {
                if end == PlayEnd::Failed {
                    call.log(Level::Warning, &format!("BackgroundDetect cannot play {file}"));
                }
                return Ok(Flow::Continue);
            }
            Some(ChanEvent::Digit { digit, .. }) if starts.contains(digit.to_char()) => {
                return Ok(Flow::Digit(digit));
            }
            Some(ChanEvent::Sound { sounds: false, before_ms }) => {
                let at =
                    call.chan.now().since(began).saturating_sub(Duration::from_millis(u64::from(silence_ms)));
                if before_ms > longest || at.as_millis() > u128::from(watched_ms) {
                    continue;
                }
                call.set("TALK_DETECTED", &before_ms.to_string());
                if call.exists(&context, "talk") {
                    drop((sounding, listening));
                    call.stand_at(pbx::Place::find(call, &context, "talk", 1));
                    return Ok(Flow::Jumped);
                }
                return Ok(Flow::Continue);
            }
            Some(_) | None => {}
        }
    }
}

/// What is played, until its application ends.
struct Sounding<'a>(&'a Call);

impl Drop for Sounding<'_> {
    fn drop(&mut self) {
        self.0.chan.stop_sound();
    }
}

async fn detect_machine(call: &Call, text: &str) -> Outcome {
    let mut settings = call.chan.core(|core| core.settings.machines.clone());
    if let Err(why) = apply(&mut settings, &args::split(text)) {
        call.log(Level::Warning, &format!("AMD: {why}"));
    }
    let heard = listen_for_machine(call, &settings).await;
    match &heard {
        Ok(Verdict { status, cause }) => {
            call.set("AMDSTATUS", status);
            call.set("AMDCAUSE", cause);
        }
        Err(_) => {
            call.set("AMDSTATUS", "HANGUP");
            call.set("AMDCAUSE", "");
        }
    }
    heard?;
    Ok(Flow::Continue)
}

async fn listen_for_machine(call: &Call, settings: &MachineSettings) -> Result<Verdict, Stop> {
    call.chan.check()?;
    let clip = match settings.audio_file.as_str() {
        "" => None,
        file => call.chan.clip(file).await?,
    };
    let mut machine = Machine::new(settings);
    let began = call.chan.now();
    let _listening = Watch::begin(call, machine.watch());
    let _sounding = clip.map(|clip| {
        call.chan.start_clip(clip, 0);
        Sounding(call)
    });
    loop {
        let deadline = began + Duration::from_millis(u64::from(machine.deadline()));
        let event = call.chan.event(Some(deadline)).await?;
        let at_ms = u32::try_from(call.chan.now().since(began).as_millis()).unwrap_or(u32::MAX);
        let heard = match event {
            Some(ChanEvent::Sound { sounds: true, .. }) => Heard::Word,
            Some(ChanEvent::Sound { sounds: false, before_ms }) => Heard::WordEnd { lasted_ms: before_ms },
            None => Heard::Nothing,
            Some(_) => continue,
        };
        if let Some(verdict) = machine.handle(heard, at_ms) {
            return Ok(verdict);
        }
    }
}

/// Puts the application's arguments in place of what amd.conf says; the error names those that are no numbers.
fn apply(settings: &mut MachineSettings, parts: &[String]) -> Result<(), String> {
    let numbers = [
        ("initialSilence", &mut settings.initial_silence_ms),
        ("greeting", &mut settings.greeting_ms),
        ("afterGreetingSilence", &mut settings.after_greeting_silence_ms),
        ("totalAnalysisTime", &mut settings.total_ms),
        ("minimumWordLength", &mut settings.word_min_ms),
        ("betweenWordsSilence", &mut settings.between_words_ms),
        ("maximumNumberOfWords", &mut settings.words_max),
        ("silenceThreshold", &mut settings.silence_threshold),
        ("maximumWordLength", &mut settings.word_max_ms),
    ];
    let count = numbers.len();
    let mut wrong = Vec::new();
    for (index, (name, number)) in numbers.into_iter().enumerate() {
        match args::nth(parts, index).trim() {
            "" => {}
            text => match text.parse() {
                Ok(parsed) => *number = parsed,
                Err(_) => wrong.push(format!("{name} '{text}' is no number")),
            },
        }
    }
    let file = args::nth(parts, count).trim();
    if !file.is_empty() {
        file.clone_into(&mut settings.audio_file);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}
