//! `ControlPlayback`: sounds that their listener, or a manager, moves about in.

use base::Digit;
use call::{ChanEvent, Level, Prompt, Steer, Steered, Stop};

use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run};

/// Most files of one ControlPlayback (`a&b&c`).
const FILES_MAX: usize = 256;
/// Milliseconds that a key moves when nothing is said.
const SKIP_MS: u64 = 3000;
/// Longest skip, milliseconds: a day.
const SKIP_MS_MAX: u64 = 86_400_000;

pub(crate) const ROWS: &[AppRow] = &[AppRow {
    name: "ControlPlayback",
    module: "app_controlplayback",
    synopsis: "Plays sounds that the caller stops, pauses, winds and starts over by keys.",
    syntax: "ControlPlayback(filename[&filename2[&...]][,skipms[,ff[,rew[,stop[,pause[,restart[,options]]]]]]])",
    description: "\
Plays files one after the other, answering first. Each of ff, rew, stop, pause and restart is a key or several.

skipms   milliseconds that a key winds (3000).
ff       winds forward (#).
rew      winds back (*).
stop     ends it.
pause    makes it rest; the same key, or winding, makes it go on.
restart  begins the file anew.
options:
  o(time)  begins this many milliseconds into the first file.
A manager does the same with the action ControlPlayback.
Sets CPLAYBACKSTATUS (SUCCESS USERSTOPPED REMOTESTOPPED ERROR), CPLAYBACKOFFSET (milliseconds into the file where it ended)
and CPLAYBACKSTOPKEY.",
    run: Run::Story(|call, args| Box::pin(async move { control_playback(&call, &args).await })),
}];

/// Which key does what.
struct Keys {
    each: [(String, Steer); 5],
    all: String,
}

impl Keys {
    fn read(parts: &[impl AsRef<str>]) -> Self {
        let key = |index: usize, usual: &str| match parts.get(index).map(|part| part.as_ref().trim()) {
            None | Some("") => usual.to_owned(),
            Some(keys) => keys.to_owned(),
        };
        Self::new([key(4, ""), key(5, ""), key(6, ""), key(2, "#"), key(3, "*")])
    }
    /// Keys that stop, pause, restart, wind forward and back. What has a meaning of its own does not wind, so these come
    /// first.
    fn new([stop, pause, restart, forward, reverse]: [String; 5]) -> Self {
        let each = [
            (stop, Steer::Stop),
            (pause, Steer::Pause),
            (restart, Steer::Restart),
            (forward, Steer::Forward),
            (reverse, Steer::Reverse),
        ];
        let all = each.iter().map(|(keys, _)| keys.as_str()).collect();
        Self { each, all }
    }
    fn meaning(&self, digit: Digit) -> Option<Steer> {
        self.each.iter().find(|(keys, _)| keys.contains(digit.to_char())).map(|(_, steer)| *steer)
    }
}

/// A place in a clip, by time.
pub(crate) struct Cursor {
    clip: Prompt,
    skip_ms: u64,
}

impl Cursor {
    /// A clip in which keys move by `skip_ms`.
    pub(crate) fn new(clip: impl Into<Prompt>, skip_ms: u64) -> Self {
        Self { clip: clip.into(), skip_ms }
    }
    /// Granules of the clip's format in a time.
    pub(crate) fn bytes(&self, ms: u64) -> usize {
        let granule = self.clip.format.granule();
        let samples = u64::from(self.clip.format.rate().0) * ms / 1000;
        usize::try_from(samples).unwrap_or(usize::MAX) / granule.samples.max(1) * granule.bytes
    }
    /// The time of a place.
    pub(crate) fn ms(&self, offset: usize) -> u64 {
        let granule = self.clip.format.granule();
        let samples = offset / granule.bytes.max(1) * granule.samples;
        samples as u64 * 1000 / u64::from(self.clip.format.rate().0)
    }
    /// Where a sound goes on that was stopped at `offset`.
    fn moved(&self, offset: usize, steer: Steer) -> usize {
        let skip = self.bytes(self.skip_ms);
        match steer {
            Steer::Forward => (offset + skip).min(self.clip.data.len()),
            Steer::Reverse => offset.saturating_sub(skip),
            Steer::Restart => 0,
            Steer::Pause | Steer::Stop => offset,
        }
    }
}

/// How one file ended, and where.
enum End {
    Finished,
    Failed,
    /// By a key, or without one by a manager.
    Stopped(Option<Digit>),
}

async fn control_playback(call: &Call, args: &str) -> Outcome {
    let parts = args::split(args);
    let arg = |index: usize| args::nth(&parts, index).trim();
    let files = arg(0);
    if files.is_empty() {
        call.log(Level::Warning, "ControlPlayback requires an argument (filename)");
        call.set("CPLAYBACKSTATUS", "ERROR");
        return Ok(Flow::Continue);
    }
    let skip_ms = skip_of(arg(1));
    let keys = Keys::read(&parts);
    let options = dialplan::Options::parse(arg(7), "o");
    let mut start_ms = options.arg('o').and_then(|text| text.trim().parse().ok()).unwrap_or(0_u64);
    call.answer_for_sound().await?;
    let (mut status, mut reached, mut key) = ("SUCCESS", None, None);
    for file in files.split('&').map(str::trim).filter(|file| !file.is_empty()).take(FILES_MAX) {
        let Some(clip) = call.chan.clip(file).await? else {
            (status, reached) = ("ERROR", Some(0));
            continue;
        };
        let cursor = Cursor { clip, skip_ms };
        let start = cursor.bytes(core::mem::take(&mut start_ms)).min(cursor.clip.data.len());
        let (end, offset) = one_file(call, &cursor, start, &keys).await?;
        reached = Some(cursor.ms(offset)).filter(|_| !matches!(end, End::Finished));
        match end {
            End::Finished => {}
            End::Failed => status = "ERROR",
            End::Stopped(by) => {
                status = if by.is_some() { "USERSTOPPED" } else { "REMOTESTOPPED" };
                key = by;
                break;
            }
        }
    }
    tell(call, status, reached, key);
    Ok(Flow::Continue)
}

/// Sets the variables; `reached_ms` is where it was stopped.
fn tell(call: &Call, status: &str, reached_ms: Option<u64>, key: Option<Digit>) {
    call.set("CPLAYBACKSTATUS", status);
    if let Some(key) = key {
        call.set("CPLAYBACKSTOPKEY", &key.to_char().to_string());
    }
    call.set("CPLAYBACKOFFSET", &reached_ms.map_or("-1".to_owned(), |ms| ms.to_string()));
}

fn skip_of(text: &str) -> u64 {
    text.parse().ok().filter(|ms| (1..=SKIP_MS_MAX).contains(ms)).unwrap_or(SKIP_MS)
}

/// Plays one file with these keys (stop, pause, restart, forward, back) and sets the same variables. The key that stopped
/// it, and the milliseconds into the file where it was stopped; `None`: it cannot be played.
pub(crate) async fn one(
    call: &Call,
    file: &str,
    skip_ms: &str,
    start_ms: &str,
    keys: [String; 5],
) -> Result<Option<(Option<Digit>, Option<u64>)>, Stop> {
    let Some(clip) = call.chan.clip(file).await? else {
        tell(call, "ERROR", Some(0), None);
        return Ok(None);
    };
    let cursor = Cursor { clip, skip_ms: skip_of(skip_ms) };
    let start = cursor.bytes(start_ms.parse().unwrap_or(0)).min(cursor.clip.data.len());
    let (end, offset) = one_file(call, &cursor, start, &Keys::new(keys)).await?;
    let (status, key) = match end {
        End::Finished => ("SUCCESS", None),
        End::Failed => ("ERROR", None),
        End::Stopped(by) => (if by.is_some() { "USERSTOPPED" } else { "REMOTESTOPPED" }, by),
    };
    let reached = Some(cursor.ms(offset)).filter(|_| status != "SUCCESS");
    tell(call, status, reached, key);
    Ok((status != "ERROR").then_some((key, reached)))
}

/// Plays a clip with these keys (stop, pause, restart, forward, back) until it ends or one of the keys `stop` is pressed,
/// which are no steering ones: that key.
pub(crate) async fn steer(
    call: &Call,
    clip: Prompt,
    skip_ms: u64,
    keys: [String; 5],
    stop: &str,
) -> Result<Option<Digit>, Stop> {
    let mut keys = Keys::new(keys);
    keys.all.push_str(stop);
    match one_file(call, &Cursor { clip, skip_ms }, 0, &keys).await?.0 {
        End::Stopped(key) => Ok(key),
        End::Finished | End::Failed => Ok(None),
    }
}

async fn one_file(call: &Call, cursor: &Cursor, start: usize, keys: &Keys) -> Result<(End, usize), Stop> {
    let ended = moved_about(call, cursor, start, keys).await;
    call.chan.end_prompt();
    ended
}

async fn moved_about(call: &Call, cursor: &Cursor, start: usize, keys: &Keys) -> Result<(End, usize), Stop> {
    let (mut from, mut prompt) = (start, cursor.clip.clone());
    loop {
        let heard = call.chan.play_steered(prompt, from, &keys.all).await?;
        let (steer, by, offset) = match heard {
            Steered::Finished(offset) => return Ok((End::Finished, offset)),
            Steered::Failed => return Ok((End::Failed, from)),
            Steered::Asked(steer, offset) => (steer, None, offset),
            Steered::Pressed(digit, offset) => match keys.meaning(digit) {
                Some(steer) => (steer, Some(digit), offset),
                None => return Ok((End::Stopped(Some(digit)), offset)),
            },
        };
        let paused = (steer == Steer::Pause).then_some(());
        let (steer, by) = match steer {
            Steer::Pause => {
                call.chan.end_prompt();
                rest(call, keys).await?
            }
            other => (other, by),
        };
        // Winding is no new beginning, but for one who has paused.
        prompt = match steer {
            Steer::Forward | Steer::Reverse if paused.is_none() => cursor.clip.continued(),
            _ => cursor.clip.clone(),
        };
        if steer == Steer::Stop {
            return Ok((End::Stopped(by), offset));
        }
        from = cursor.moved(offset, steer);
    }
}

/// Rests until a key or a manager says how it goes on.
async fn rest(call: &Call, keys: &Keys) -> Result<(Steer, Option<Digit>), Stop> {
    loop {
        match call.chan.event(None).await? {
            Some(ChanEvent::Steer(steer)) => return Ok((steer, None)),
            Some(ChanEvent::Digit { digit, .. }) => {
                if let Some(steer) = keys.meaning(digit) {
                    return Ok((steer, Some(digit)));
                }
            }
            _ => {}
        }
    }
}
