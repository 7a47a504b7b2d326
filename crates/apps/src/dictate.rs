//! Dictate: a dictating machine. A file is recorded and heard in turns, wound and erased by keys.
//!
//! What is dictated goes behind what is there. What is heard is read anew when more was recorded, by the thread that
//! keeps mailboxes, which waits until the file is whole.

use core::time::Duration;
use std::path::Path;
use std::sync::Arc;

use base::{Clip, Command, Digit, FormatId};
use call::voicemail::{BoxName, Held, Job, Posted, Sound};
use call::{Chan, ChanEvent, Heard, Level, Progress, Stop, Take};

use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run, gate};

/// Format of the files: linear samples without a head, at 8 kHz.
const EXTENSION: &str = "raw";
/// Longest name of a file: more than anybody types.
const NAME_MAX: usize = 64;
/// How often a name is asked for.
const NAME_TRIES: usize = 3;
/// How far keys wind.
const BACK: Duration = Duration::from_secs(1);
const FORWARD: Duration = Duration::from_secs(3);
/// Fastest that is heard.
const SPEED_MAX: usize = 4;
/// Samples of a piece of fast speech, two periods of a low voice and more; a half of it lies over the next.
const PIECE: usize = 320;
/// Pieces that are made at a time: ten seconds to be heard, so that nothing has to be done for long.
const PIECES_AT_ONCE: usize = 500;
/// How often it is looked whether the file can still be written.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(crate) const ROWS: &[AppRow] = &[AppRow {
    name: "Dictate",
    module: "app_dictate",
    synopsis: "A dictating machine.",
    syntax: "Dictate([base_dir[,filename]])",
    description: "\
Records to a file of linear samples (filename.raw) of base_dir, and plays it, as keys say, until the caller hangs up.

base_dir  folder; empty: dictate in the spool directory. A relative one lies there.
filename  name of the file; empty: the caller is asked for digits and #.
It begins at rest, to be heard.
  1  changes between hearing and recording, at rest
  *  lets it run, or rest
  0  tells the keys
  #  another file
Hearing:
  2  once, twice, three and four times as fast
  7  a second back
  8  three seconds on
Recording, which goes on behind what is there:
  8  erases all
The prompts are dictate/…; one that is not installed in the channel's language is a beep.",
    run: Run::Story(|call, text| Box::pin(async move { run(&call, &text).await })),
}];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Hear,
    Record,
}

impl Mode {
    /// Keys that mean something.
    const fn keys(self) -> &'static str {
        match self {
            Self::Hear => "01278*#",
            Self::Record => "018*#",
        }
    }
    const fn other(self) -> Self {
        match self {
            Self::Hear => Self::Record,
            Self::Record => Self::Hear,
        }
    }
}

/// The folder of an argument; `None`: it leads upwards.
fn folder_of(call: &Call, text: &str) -> Option<String> {
    let spool = call.chan.core(|core| core.settings.directories.0.get("spool").cloned()).unwrap_or_default();
    let spool = std::path::absolute(&spool).unwrap_or_else(|_| Path::new(&spool).to_owned());
    let leads_up = text.split('/').any(|part| part == "..");
    let folder = spool.join("dictate").join(text);
    (!leads_up).then(|| folder.display().to_string().trim_end_matches('/').to_owned())
}

/// Whether a file may be called so: it lies in its folder, and is seen there.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= NAME_MAX
        && !text.starts_with('.')
        && !text.contains(|c: char| c == '/' || c.is_control())
}

async fn run(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let Some(folder) = folder_of(call, args::nth(&parts, 0)) else {
        call.log(
            Level::Warning,
            &format!("'{}' is no folder: it must not lead upwards", args::nth(&parts, 0)),
        );
        return Ok(Flow::Continue);
    };
    let mut given = Some(args::nth(&parts, 1)).filter(|name| !name.is_empty()).map(str::to_owned);
    if let Some(name) = given.take_if(|name| !is_name(name)) {
        call.log(Level::Warning, &format!("'{name}' is no name of a file; the caller is asked for one"));
    }
    call.answer_for_sound().await?;
    loop {
        let name = match given.take() {
            Some(name) => name,
            None => match asked_name(call).await? {
                Some(name) => name,
                None => return Ok(Flow::Continue),
            },
        };
        Machine::new(call, &format!("{folder}/{name}")).run().await?;
    }
}

/// The name that the caller types; `None`: none.
async fn asked_name(call: &Call) -> Result<Option<String>, Stop> {
    for _ in 0..NAME_TRIES {
        let prompt = prompt(&call.chan, "dictate/enter_filename").await?;
        let typed = gate::password(call, prompt, NAME_MAX).await?;
        if is_name(&typed) {
            return Ok(Some(typed));
        }
    }
    Ok(None)
}

/// A prompt, or what stands for it.
async fn prompt<'n>(chan: &Chan, name: &'n str) -> Result<&'n str, Stop> {
    Ok(if chan.has_clip(name).await? { name } else { "beep" })
}

/// A recording that runs; it ends with this.
struct Running<'a> {
    chan: &'a Chan,
    progress: Arc<Progress>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.chan.media(|stream| Command::StopRecord { stream });
    }
}

/// One file in the machine.
struct Machine<'a> {
    call: &'a Call,
    path: String,
    mode: Mode,
    runs: bool,
    speed: usize,
    /// The sample that is heard next.
    place: usize,
    recording: Option<Running<'a>>,
    /// Is complete when the file is whole.
    written: Arc<Progress>,
    /// What was read of it, unless more has been recorded.
    sound: Option<Arc<Clip>>,
    /// A key that ended a prompt.
    pressed: Option<Digit>,
}

impl<'a> Machine<'a> {
    fn new(call: &'a Call, path: &str) -> Self {
        let written = Arc::new(Progress::default());
        written.end();
        Self {
            call,
            path: path.to_owned(),
            mode: Mode::Hear,
            runs: false,
            speed: 1,
            place: 0,
            recording: None,
            written,
            sound: None,
            pressed: None,
        }
    }
    fn chan(&self) -> &'a Chan {
        &self.call.chan
    }
    /// Does what keys say, until another file is wanted.
    async fn run(mut self) -> Result<(), Stop> {
        self.say("dictate/forhelp").await?;
        loop {
            let key = self.key().await?;
            match (key, self.mode) {
                ('#', _) => return Ok(()),
                ('0', mode) => {
                    self.rest();
                    let help = if mode == Mode::Hear { "dictate/play_help" } else { "dictate/record_help" };
                    self.say(help).await?;
                    if self.pressed.is_none() {
                        self.say("dictate/both_help").await?;
                    }
                }
                ('1', mode) => {
                    self.rest();
                    self.mode = mode.other();
                    let record = self.mode == Mode::Record;
                    self.say(if record { "dictate/record_mode" } else { "dictate/playback_mode" }).await?;
                }
                ('*', _) if self.runs => {
                    self.rest();
                    self.say("dictate/pause").await?;
                }
                ('*', mode) => {
                    self.say(if mode == Mode::Hear { "dictate/playback" } else { "dictate/record" }).await?;
                    self.runs = true;
                }
                ('2', Mode::Hear) => self.speed = self.speed % SPEED_MAX + 1,
                ('7', Mode::Hear) => self.place = self.place.saturating_sub(samples_in(BACK)),
                ('8', Mode::Hear) => self.place = self.place.saturating_add(samples_in(FORWARD)),
                ('8', Mode::Record) => self.erase().await?,
                _ => {}
            }
        }
    }
    /// Runs, or rests, until a key that means something is pressed.
    async fn key(&mut self) -> Result<char, Stop> {
        loop {
            let key = match (self.pressed.take(), self.runs, self.mode) {
                (Some(key), ..) => Some(key),
                (None, false, _) => loop {
                    if let Some(ChanEvent::Digit { digit, .. }) = self.chan().event(None).await? {
                        break Some(digit);
                    }
                },
                (None, true, Mode::Hear) => self.hear().await?,
                (None, true, Mode::Record) => self.record().await?,
            };
            let key = key.map(Digit::to_char).filter(|key| self.mode.keys().contains(*key));
            if let Some(key) = key {
                return Ok(key);
            }
        }
    }
    fn rest(&mut self) {
        self.runs = false;
        self.recording = None;
    }
    async fn say(&mut self, name: &str) -> Result<(), Stop> {
        let name = prompt(self.chan(), name).await?;
        if let Heard::Interrupted(digit, _) = self.chan().play(name, "0123456789*#").await? {
            self.pressed = Some(digit);
        }
        Ok(())
    }

    /// The file, read anew when it has changed; `None`: there is nothing in it.
    async fn sound(&mut self) -> Option<Arc<Clip>> {
        if self.sound.is_none() {
            let (held, keeper) = (self.held(), BoxName::new("dictate", "dictate")?);
            if let Ok(Posted::Clip(clip)) =
                self.chan().post(Job::Load(keeper, Sound::Held(held), FormatId::SLIN)).await
            {
                self.sound = Some(clip);
            }
        }
        self.sound.clone().filter(|clip| clip.format == FormatId::SLIN)
    }
    fn held(&self) -> Held {
        Held { file: format!("{}.{EXTENSION}", self.path).into(), progress: self.written.clone() }
    }
    /// Plays on from where it is; the key that ended it. At the end it rests, and begins anew when it is to go on.
    async fn hear(&mut self) -> Result<Option<Digit>, Stop> {
        let sound = self.sound().await;
        let data = sound.as_ref().map_or(&[][..], |clip| &*clip.data);
        let (Some(clip), true) = (&sound, self.place * 2 < data.len()) else {
            self.rest();
            self.place = 0;
            self.say("dictate/paused").await?;
            return Ok(None);
        };
        let (speed, keys) = (self.speed, self.mode.keys());
        let (clip, from, most) = match speed {
            1 => (clip.clone(), self.place * 2, data.len() / 2 - self.place),
            _ => {
                let (fast, used) = faster(data.get(self.place * 2..).unwrap_or_default(), speed);
                (Arc::new(fast), 0, used)
            }
        };
        match self.chan().play_clip(clip, from, keys).await? {
            Heard::Finished => self.place += most,
            Heard::Interrupted(digit, offset) => {
                self.place += (offset.saturating_sub(from) / 2 * speed).min(most);
                return Ok(Some(digit));
            }
            Heard::Failed => self.rest(),
        }
        Ok(None)
    }
    /// Records behind what is there; the key that ended it.
    async fn record(&mut self) -> Result<Option<Digit>, Stop> {
        let chan = self.chan();
        let opened = chan.core(|core| core.services.recorder.open(&self.path, EXTENSION, true));
        let Take { sink, format, progress, .. } = match opened {
            Ok(take) => take,
            Err(why) => return self.fail(&why).await,
        };
        chan.media(|stream| Command::Record { stream, format, sink });
        self.sound = None;
        self.written = progress.clone();
        let running = self.recording.insert(Running { chan, progress });
        loop {
            let event = chan.event(Some(chan.now() + LOOK_EVERY)).await?;
            if let Some(why) = running.progress.failure().map(str::to_owned) {
                return self.fail(&why).await;
            }
            if let Some(ChanEvent::Digit { digit, .. }) = event
                && Mode::Record.keys().contains(digit.to_char())
            {
                self.recording = None;
                return Ok(Some(digit));
            }
        }
    }
    /// Nothing more can be recorded.
    async fn fail(&mut self, why: &str) -> Result<Option<Digit>, Stop> {
        self.rest();
        self.call.log(Level::Warning, &format!("cannot record to {}.{EXTENSION}: {why}", self.path));
        self.say("beeperr").await?;
        Ok(None)
    }
    /// Takes all away that was recorded.
    async fn erase(&mut self) -> Result<(), Stop> {
        self.recording = None;
        let held = self.held();
        let _ = self.chan().post(Job::Forget(held)).await;
        (self.sound, self.place) = (None, 0);
        let written = Progress::default();
        written.end();
        self.written = Arc::new(written);
        self.say("dictate/truncating_audio").await
    }
}

/// Samples of a time.
fn samples_in(time: Duration) -> usize {
    FormatId::SLIN.rate().0 as usize * time.as_millis() as usize / 1000
}

/// The next of what is to be heard `speed` times as fast, and how many samples that is of.
///
/// Pieces are laid over each other by halves, each fading in and out, so that a voice keeps its pitch.
fn faster(data: &[u8], speed: usize) -> (Clip, usize) {
    let samples = data.as_chunks().0;
    let half = PIECE / 2;
    let pieces = samples.len().div_ceil(half * speed).min(PIECES_AT_ONCE);
    let mut out = vec![0_i32; pieces * half];
    for piece in 0..=pieces {
        let from = samples.get(piece * half * speed..).unwrap_or_default();
        for (at, sample) in from.iter().take(PIECE).enumerate() {
            let weight = at.min(PIECE - at);
            // Each piece begins a half before its place, so that every place has two, which weigh as much as one.
            let place = (piece * half + at).checked_sub(half);
            if let Some(sum) = place.and_then(|place| out.get_mut(place)) {
                *sum += i32::from(i16::from_le_bytes(*sample)) * weight as i32;
            }
        }
    }
    let bytes: Vec<u8> = out.iter().flat_map(|sum| ((sum / half as i32) as i16).to_le_bytes()).collect();
    let used = (pieces * half * speed).min(samples.len());
    (Clip { format: FormatId::SLIN, data: bytes.into(), loop_from: None, packets: None }, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(clip: &Clip) -> Vec<i16> {
        clip.data.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect()
    }

    #[test]
    fn fast_speech_is_as_much_shorter_and_keeps_its_pitch_and_loudness() {
        // 400 Hz: 20 samples a period.
        let tone = |count: usize| -> Vec<u8> {
            let sample = |at: usize| ((at as f64 * core::f64::consts::TAU / 20.0).sin() * 8000.0) as i16;
            (0..count).flat_map(|at| sample(at).to_le_bytes()).collect()
        };
        for speed in 2..=SPEED_MAX {
            let (clip, used) = faster(&tone(16_000), speed);
            let fast = samples(&clip);
            assert_eq!(used, 16_000, "{speed}");
            assert!(fast.len().abs_diff(16_000 / speed) <= PIECE / 2, "{speed}: {}", fast.len());
            let middle = &fast[800..fast.len() - 800];
            let crossings = middle.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count();
            assert!(crossings.abs_diff(middle.len() / 20) <= 2, "{speed}: {crossings}");
            let peak = middle.iter().map(|sample| sample.unsigned_abs()).max().unwrap();
            assert!((7000..=8100).contains(&peak), "{speed}: {peak}");
        }
    }

    #[test]
    fn what_is_long_is_made_in_parts() {
        let data = vec![0; 2 * 8000 * 60];
        let mut place = 0;
        let mut heard = 0;
        while place < data.len() / 2 {
            let (clip, used) = faster(&data[place * 2..], 3);
            assert!(used > 0 && clip.data.len() <= PIECES_AT_ONCE * PIECE);
            place += used;
            heard += clip.data.len() / 2;
        }
        assert!(heard.abs_diff(8000 * 20) <= PIECE, "{heard}");
        let (clip, used) = faster(&[1, 2], 4);
        assert_eq!((clip.data.len(), used), (PIECE, 1));
    }

    #[test]
    fn a_name_stays_in_its_folder() {
        for (name, is) in [
            ("1234", true),
            ("20170612*12345", true),
            ("letter-1", true),
            ("", false),
            ("..", false),
            (".hidden", false),
            ("a/b", false),
            ("a\nb", false),
            (&"1".repeat(NAME_MAX), true),
            (&"1".repeat(NAME_MAX + 1), false),
        ] {
            assert_eq!(is_name(name), is, "{name:?}");
        }
    }
}
