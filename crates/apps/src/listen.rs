//! Applications that listen: `Read` takes digits, `Record` takes sound.

use core::time::Duration;

use base::{Command, Digit};
use call::{Chan, ChanEvent, Heard, Level, Stop};

use crate::call_ctx::args;
use crate::monitor::{RECORD_OPTIONS, Unmet, extension as file_extension, unmet};
use crate::{AppRow, Call, Flow, Outcome, Run};

/// Most digits that Read takes, whatever it is told.
const READ_DIGITS_MAX: usize = 255;
/// Most attempts of Read.
const READ_ATTEMPTS_MAX: u32 = 100;
/// How often Record asks whether the file can still be written.
const FAILURE_EVERY: Duration = Duration::from_secs(1);
/// Mean absolute amplitude below which a recording counts as silent; the field's default.
pub(crate) const SILENCE_THRESHOLD: u16 = 256;
/// Number that `%d` in a recording's name may reach.
const RECORD_NUMBER_MAX: u32 = 100_000;
/// Option letters of Read.
pub(crate) const READ_OPTIONS: &str = "sintoe";

pub(crate) const ROWS: &[AppRow] = &[
    AppRow {
        name: "Read",
        module: "app_read",
        synopsis: "Reads digits of the caller into a variable.",
        syntax: "Read(variable[,filename[&filename2[&...]][,maxdigits[,options[,attempts[,timeout]]]]])",
        description: "\
Reads digits ended by '#' into a variable, while files play.

maxdigits  ends after this many digits without waiting for '#'.
options:
  s  returns at once when the line is not up.
  i  the filename is a tone of indications.conf.
  n  reads even when the line is not up.
  t(c)  the digits that end the input, instead of '#' (empty: none).
  o  puts the digit that ended the input on the end of the value.
  e  reads an ending digit alone as the value.
attempts   how often it asks when nothing is entered (1).
timeout    seconds to wait for each digit (the channel's own digit and response timeouts).
Sets READSTATUS (OK ERROR HANGUP INTERRUPTED SKIPPED TIMEOUT).",
        run: Run::Story(|call, args| Box::pin(async move { read(&call, &args).await })),
    },
    AppRow {
        name: "Record",
        module: "app_record",
        synopsis: "Records the caller to a file.",
        syntax: "Record(filename.format[,silence[,maxduration[,options]]])",
        description: "\
Records the caller until '#', silence, the longest duration or hang-up. '%d' in the name becomes the first free number.

silence      seconds of silence that end it (0: none).
maxduration  longest recording in seconds (0: no limit).
options:
  a  appends to what is there.
  n  does not answer first.
  q  does not beep.
  s  does nothing unless the call is answered.
  t  '*' ends it instead of '#'.
  u  keeps the silence that ended it, which is cut off otherwise.
  x  only hang-up ends it.
  k  keeps the recording on hang-up; without it the file is removed.
  o  '0' ends it, too, with status OPERATOR.
  y  any digit ends it.
Sets RECORDED_FILE and RECORD_STATUS (DTMF SILENCE SKIP TIMEOUT HANGUP ERROR OPERATOR).",
        run: Run::Story(|call, args| Box::pin(async move { record(&call, &args).await })),
    },
];

struct ReadPlan {
    variable: String,
    files: Vec<String>,
    tone: bool,
    max: usize,
    attempts: u32,
    first: Duration,
    between: Duration,
    terminators: String,
    keep_terminator: bool,
    empty_terminator: bool,
}

async fn read(call: &Call, args: &str) -> Outcome {
    let parts = args::split(args);
    let arg = |index: usize| args::nth(&parts, index);
    if arg(0).is_empty() {
        call.log(Level::Warning, "Read requires an argument (variable)");
        call.set("READSTATUS", "ERROR");
        return Ok(Flow::Continue);
    }
    // What it is until something is known.
    call.set("READSTATUS", "ERROR");
    let options = dialplan::Options::parse(arg(3), READ_OPTIONS);
    for letter in &options.unknown {
        call.log(Level::Warning, &format!("Read has no option '{letter}'"));
    }
    if call.chan.state() != call::ChanState::Up {
        if options.has('s') {
            call.set(arg(0), "");
            call.set("READSTATUS", "SKIPPED");
            return Ok(Flow::Continue);
        }
        if !options.has('n') {
            call.answer_for_sound().await?;
        }
    }
    let (digit_ms, response_ms) = call.chan.with(|c| (c.digit_timeout_ms, c.response_timeout_ms))?;
    let each = args::seconds(arg(5)).filter(|each| !each.is_zero());
    let plan = ReadPlan {
        variable: arg(0).to_owned(),
        files: arg(1).split('&').filter(|f| !f.trim().is_empty()).map(|f| f.trim().to_owned()).collect(),
        tone: options.has('i'),
        max: arg(2).parse().ok().filter(|m| *m > 0).unwrap_or(READ_DIGITS_MAX).min(READ_DIGITS_MAX),
        attempts: arg(4).parse().unwrap_or(1).clamp(1, READ_ATTEMPTS_MAX),
        first: each.unwrap_or(Duration::from_millis(u64::from(response_ms))),
        between: each.unwrap_or(Duration::from_millis(u64::from(digit_ms))),
        terminators: if options.has('t') {
            options.arg('t').unwrap_or_default().to_owned()
        } else {
            "#".to_owned()
        },
        keep_terminator: options.has('o'),
        empty_terminator: options.has('e'),
    };
    match read_attempts(call, &plan).await {
        Ok((value, status)) => {
            call.set(&plan.variable, &value);
            call.set("READSTATUS", status);
            Ok(Flow::Continue)
        }
        Err((typed, stop)) => {
            call.set(&plan.variable, &typed);
            call.set("READSTATUS", if stop == Stop::Hangup { "HANGUP" } else { "INTERRUPTED" });
            Err(stop)
        }
    }
}

/// Asks until something was entered or the attempts are over. `Err` carries what was typed before the call ended.
async fn read_attempts(call: &Call, plan: &ReadPlan) -> Result<(String, &'static str), (String, Stop)> {
    for attempt in 1..=plan.attempts {
        let mut typed = String::new();
        let ended = read_once(&call.chan, plan, &mut typed).await;
        match ended {
            Err(stop) => return Err((typed, stop)),
            Ok(true) => return Ok((typed, "OK")),
            Ok(false) if !typed.is_empty() => return Ok((typed, "TIMEOUT")),
            Ok(false) if attempt < plan.attempts => call.set(&plan.variable, ""),
            Ok(false) => {}
        }
    }
    Ok((String::new(), "TIMEOUT"))
}

/// One attempt; `true` when a terminator or the last digit ended it.
async fn read_once(chan: &Chan, plan: &ReadPlan, typed: &mut String) -> Result<bool, Stop> {
    const ANY: &str = "0123456789*#ABCD";
    let mut pending: Option<Digit> = None;
    let mut tone = None;
    if plan.tone {
        tone = plan.files.first().filter(|tone| chan.start_tone(tone)).map(|_| ToneOff(chan));
    } else {
        for file in &plan.files {
            if let Heard::Interrupted(digit, _) = chan.play(file, ANY).await? {
                pending = Some(digit);
                break;
            }
        }
    }
    loop {
        let digit = match pending.take() {
            Some(digit) => Some(digit),
            None => chan.digit(if typed.is_empty() { plan.first } else { plan.between }).await?,
        };
        drop(tone.take());
        let Some(digit) = digit else { return Ok(false) };
        let symbol = digit.to_char();
        if plan.terminators.contains(symbol) {
            if plan.keep_terminator || (plan.empty_terminator && typed.is_empty()) {
                typed.push(symbol);
            }
            return Ok(true);
        }
        typed.push(symbol);
        if typed.len() >= plan.max {
            return Ok(true);
        }
    }
}

/// Ends the tone that Read asks with, however Read ends.
struct ToneOff<'a>(&'a Chan);

impl Drop for ToneOff<'_> {
    fn drop(&mut self) {
        self.0.stop_sound();
    }
}

struct RecordPlan {
    path: String,
    extension: String,
    silence_ms: u32,
    longest: Option<Duration>,
    append: bool,
    beep: bool,
    terminators: &'static str,
    operator: bool,
    keep_silence: bool,
    keep_on_hangup: bool,
}

fn record_plan(parts: &[String]) -> Result<(RecordPlan, dialplan::Options), String> {
    let arg = |index: usize| args::nth(parts, index);
    // The old form separated name and format with a colon.
    let (path, extension) = arg(0)
        .rsplit_once('.')
        .or_else(|| arg(0).rsplit_once(':'))
        .filter(|(path, extension)| !path.is_empty() && !extension.is_empty())
        .ok_or_else(|| format!("Record wants filename.format, not '{}'", arg(0)))?;
    let options = dialplan::Options::parse(arg(3), RECORD_OPTIONS);
    let option = |letter: char| options.has(letter);
    let silence = args::seconds(arg(1)).unwrap_or_default();
    let plan = RecordPlan {
        path: path.to_owned(),
        extension: file_extension(extension).to_owned(),
        silence_ms: u32::try_from(silence.as_millis()).unwrap_or(u32::MAX),
        longest: args::seconds(arg(2)).filter(|longest| !longest.is_zero()),
        append: option('a'),
        beep: !option('q'),
        terminators: match () {
            () if option('x') => "",
            () if option('y') => "0123456789*#ABCD",
            () if option('t') => "*",
            () => "#",
        },
        operator: option('o'),
        keep_silence: option('u'),
        keep_on_hangup: option('k'),
    };
    Ok((plan, options))
}

async fn record(call: &Call, args: &str) -> Outcome {
    let parts = args::split(args);
    for Unmet { what, .. } in unmet("Record", &parts) {
        call.log(Level::Warning, &format!("Record: no effect has {what}"));
    }
    let (mut plan, options) = match record_plan(&parts) {
        Ok(plan) => plan,
        Err(why) => {
            call.log(Level::Warning, &why);
            call.set("RECORD_STATUS", "ERROR");
            return Ok(Flow::Continue);
        }
    };
    if call.chan.state() != call::ChanState::Up {
        if options.has('s') {
            call.set("RECORD_STATUS", "SKIP");
            return Ok(Flow::Continue);
        }
        if !options.has('n') {
            call.answer_for_sound().await?;
        }
    }
    let Some((path, take)) = open_file(call, &mut plan) else {
        call.set("RECORD_STATUS", "ERROR");
        return Ok(Flow::Continue);
    };
    call.set("RECORDED_FILE", &path);
    // What was heard under this name before, or was missing, is so no more.
    let forget = || call.chan.core(|core| core.services.library.forget(&path));
    forget();
    if plan.beep
        && let Err(stop) = call.chan.play("beep", "").await
    {
        return Err(cut_short(call, &plan, &take.afterwards, stop));
    }
    let call::Take { sink, format, afterwards, progress } = take;
    call.chan.media(|stream| Command::Record { stream, format, sink });
    if plan.silence_ms > 0 {
        let ms = plan.silence_ms;
        call.chan.media(|stream| Command::WatchSilence { stream, ms, threshold: SILENCE_THRESHOLD });
    }
    let began = call.chan.now();
    let ended = record_until(&call.chan, &plan, &progress).await;
    let cut = if ended == Ok("SILENCE") && !plan.keep_silence { plan.silence_ms } else { 0 };
    let lasted = (call.chan.now() - began).saturating_sub(Duration::from_millis(u64::from(cut)));
    let _ = call.chan.with(|c| c.last_recording = Some(lasted));
    let ended = ended.map_err(|stop| cut_short(call, &plan, &afterwards, stop));
    if ended == Ok("SILENCE") && !plan.keep_silence {
        afterwards.cut(plan.silence_ms);
    }
    call.chan.media(|stream| Command::WatchSilence { stream, ms: 0, threshold: SILENCE_THRESHOLD });
    call.chan.media(|stream| Command::StopRecord { stream });
    forget();
    call.set("RECORD_STATUS", ended?);
    Ok(Flow::Continue)
}

/// The call ends, or goes elsewhere, while it is recorded.
fn cut_short(call: &Call, plan: &RecordPlan, afterwards: &call::Afterwards, stop: Stop) -> Stop {
    call.set("RECORD_STATUS", "HANGUP");
    if stop == Stop::Hangup && !plan.keep_on_hangup {
        afterwards.discard();
    }
    stop
}

type OpenFile = (String, call::Take);

/// Opens the file, with the first free number for `%d`.
fn open_file(call: &Call, plan: &mut RecordPlan) -> Option<OpenFile> {
    let open = |path: &str| {
        call.chan.core(|core| core.services.recorder.open(path, &plan.extension, plan.append)).map_err(
            |why| {
                call.log(Level::Warning, &format!("Record cannot write {path}.{}: {why}", plan.extension));
            },
        )
    };
    if !plan.path.contains("%d") {
        return Some((plan.path.clone(), open(&plan.path).ok()?));
    }
    let free = (0..RECORD_NUMBER_MAX)
        .map(|number| plan.path.replace("%d", &number.to_string()))
        .find(|path| call.chan.core(|core| core.services.recorder.is_free(path, &plan.extension)))?;
    let take = open(&free).ok()?;
    Some((free, take))
}

async fn record_until(
    chan: &Chan,
    plan: &RecordPlan,
    progress: &call::Progress,
) -> Result<&'static str, Stop> {
    let deadline = plan.longest.map(|longest| chan.now() + longest);
    loop {
        let look_at = chan.now() + FAILURE_EVERY;
        match chan.event(Some(deadline.map_or(look_at, |deadline| deadline.min(look_at)))).await? {
            None if progress.failure().is_some() => return Ok("ERROR"),
            None if deadline.is_some_and(|deadline| deadline <= chan.now()) => return Ok("TIMEOUT"),
            Some(ChanEvent::Silence(_)) if plan.silence_ms > 0 => return Ok("SILENCE"),
            Some(ChanEvent::Digit { digit, .. }) if plan.operator && digit.to_char() == '0' => {
                return Ok("OPERATOR");
            }
            Some(ChanEvent::Digit { digit, .. }) if plan.terminators.contains(digit.to_char()) => {
                return Ok("DTMF");
            }
            Some(_) | None => {}
        }
    }
}
