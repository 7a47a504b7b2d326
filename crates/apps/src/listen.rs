//! Applications that listen: `Read` takes digits, `Record` takes sound.

use core::time::Duration;

use base::{Command, Digit};
use call::{Chan, ChanEvent, Heard, Level, Stop};

use crate::{AppRow, Call, Flow, Outcome, Run};

/// Most digits that Read takes, whatever it is told.
const READ_DIGITS_MAX: usize = 255;
/// Most attempts of Read.
const READ_ATTEMPTS_MAX: u32 = 100;
/// Mean absolute amplitude below which a recording counts as silent; the field's default.
const SILENCE_THRESHOLD: u16 = 256;
/// Number that `%d` in a recording's name may reach.
const RECORD_NUMBER_MAX: u32 = 100_000;

pub(crate) const ROWS: &[AppRow] = &[
    AppRow {
        name: "Read",
        module: "app_read",
        synopsis: "Read a variable.",
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
        synopsis: "Record to a file.",
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
  u  does not keep the file's silence at its end (the trailing silence is dropped).
  x  only hang-up ends it.
  k  keeps the recording on hang-up (it is kept in any case).
  y  any digit ends it.
  0  '0' ends it as an operator's digit.
  o  keeps no silence check on the first words.
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
    let args = crate::args::split(args, ',');
    let arg = |index: usize| args.get(index).map_or("", |a| a.trim());
    if arg(0).is_empty() {
        call.log(Level::Warning, "Read requires an argument (variable)");
        call.set("READSTATUS", "ERROR");
        return Ok(Flow::Continue);
    }
    let options = match crate::args::options(arg(3)) {
        Ok(options) => options,
        Err(why) => {
            call.log(Level::Warning, &format!("Read: {why}"));
            Vec::new()
        }
    };
    let option = |letter: char| options.iter().find(|(l, _)| *l == letter);
    if call.chan.state() != call::ChanState::Up {
        if option('s').is_some() {
            call.set(arg(0), "");
            call.set("READSTATUS", "SKIPPED");
            return Ok(Flow::Continue);
        }
        if option('n').is_none() {
            call.chan.answer()?;
        }
    }
    let (digit_ms, response_ms) = call.chan.with(|c| (c.digit_timeout_ms, c.response_timeout_ms))?;
    let each =
        arg(5).parse::<f64>().ok().filter(|s| *s > 0.0).and_then(|s| Duration::try_from_secs_f64(s).ok());
    let plan = ReadPlan {
        variable: arg(0).to_owned(),
        files: arg(1).split('&').filter(|f| !f.trim().is_empty()).map(|f| f.trim().to_owned()).collect(),
        tone: option('i').is_some(),
        max: arg(2).parse().ok().filter(|m| *m > 0).unwrap_or(READ_DIGITS_MAX).min(READ_DIGITS_MAX),
        attempts: arg(4).parse().unwrap_or(1).clamp(1, READ_ATTEMPTS_MAX),
        first: each.unwrap_or(Duration::from_millis(u64::from(response_ms))),
        between: each.unwrap_or(Duration::from_millis(u64::from(digit_ms))),
        terminators: option('t').map_or("#".to_owned(), |(_, arg)| arg.clone().unwrap_or_default()),
        keep_terminator: option('o').is_some(),
        empty_terminator: option('e').is_some(),
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
    for _ in 0..plan.attempts {
        let mut typed = String::new();
        let ended = read_once(&call.chan, plan, &mut typed).await;
        match ended {
            Err(stop) => return Err((typed, stop)),
            Ok(true) => return Ok((typed, "OK")),
            Ok(false) if !typed.is_empty() => return Ok((typed, "TIMEOUT")),
            Ok(false) => {}
        }
    }
    Ok((String::new(), "TIMEOUT"))
}

/// One attempt; `true` when a terminator or the last digit ended it.
async fn read_once(chan: &Chan, plan: &ReadPlan, typed: &mut String) -> Result<bool, Stop> {
    const ANY: &str = "0123456789*#ABCD";
    let mut pending: Option<Digit> = None;
    if plan.tone {
        if let Some(tone) = plan.files.first() {
            chan.start_tone(tone);
        }
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
        if plan.tone {
            chan.stop_sound();
        }
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

struct RecordPlan {
    path: String,
    extension: String,
    silence_ms: u32,
    longest: Option<Duration>,
    append: bool,
    beep: bool,
    terminators: &'static str,
    operator: bool,
}

fn record_plan(args: &[String]) -> Result<(RecordPlan, String), String> {
    let arg = |index: usize| args.get(index).map_or("", |a| a.trim());
    // The old form separated name and format with a colon.
    let (path, extension) = arg(0)
        .rsplit_once('.')
        .or_else(|| arg(0).rsplit_once(':'))
        .filter(|(path, extension)| !path.is_empty() && !extension.is_empty())
        .ok_or_else(|| format!("Record wants filename.format, not '{}'", arg(0)))?;
    let options = arg(3).to_owned();
    let option = |letter: char| options.contains(letter);
    let seconds = |text: &str| text.parse::<f64>().ok().filter(|s| *s > 0.0);
    let silence_ms = seconds(arg(1)).map_or(0, |s| (s * 1000.0).min(f64::from(u32::MAX)) as u32);
    let plan = RecordPlan {
        path: path.to_owned(),
        extension: extension.to_owned(),
        silence_ms,
        longest: seconds(arg(2)).and_then(|s| Duration::try_from_secs_f64(s).ok()),
        append: option('a'),
        beep: !option('q'),
        terminators: match () {
            () if option('x') => "",
            () if option('y') => "0123456789*#ABCD",
            () if option('t') => "*",
            () => "#",
        },
        operator: option('0'),
    };
    Ok((plan, options))
}

async fn record(call: &Call, args: &str) -> Outcome {
    let args = crate::args::split(args, ',');
    let (mut plan, options) = match record_plan(&args) {
        Ok(plan) => plan,
        Err(why) => {
            call.log(Level::Warning, &why);
            call.set("RECORD_STATUS", "ERROR");
            return Ok(Flow::Continue);
        }
    };
    if call.chan.state() != call::ChanState::Up {
        if options.contains('s') {
            call.set("RECORD_STATUS", "SKIP");
            return Ok(Flow::Continue);
        }
        if !options.contains('n') {
            call.chan.answer()?;
        }
    }
    let Some((path, sink, format)) = open_file(call, &mut plan) else {
        call.set("RECORD_STATUS", "ERROR");
        return Ok(Flow::Continue);
    };
    call.set("RECORDED_FILE", &path);
    if plan.beep {
        call.chan.play("beep", "").await?;
    }
    call.chan.media(|stream| Command::Record { stream, format, sink });
    if plan.silence_ms > 0 {
        let ms = plan.silence_ms;
        call.chan.media(|stream| Command::WatchSilence { stream, ms, threshold: SILENCE_THRESHOLD });
    }
    let ended = record_until(&call.chan, &plan).await;
    call.chan.media(|stream| Command::WatchSilence { stream, ms: 0, threshold: SILENCE_THRESHOLD });
    call.chan.media(|stream| Command::StopRecord { stream });
    match ended {
        Ok(status) => {
            call.set("RECORD_STATUS", status);
            Ok(Flow::Continue)
        }
        Err(stop) => {
            call.set("RECORD_STATUS", "HANGUP");
            Err(stop)
        }
    }
}

type OpenFile = (String, Box<dyn base::AudioSink>, base::FormatId);

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
        let (sink, format) = open(&plan.path).ok()?;
        return Some((plan.path.clone(), sink, format));
    }
    let free = (0..RECORD_NUMBER_MAX)
        .map(|number| plan.path.replace("%d", &number.to_string()))
        .find(|path| call.chan.core(|core| core.services.recorder.is_free(path, &plan.extension)))?;
    let (sink, format) = open(&free).ok()?;
    Some((free, sink, format))
}

async fn record_until(chan: &Chan, plan: &RecordPlan) -> Result<&'static str, Stop> {
    let deadline = plan.longest.map(|longest| chan.now() + longest);
    loop {
        match chan.event(deadline).await? {
            None => return Ok("TIMEOUT"),
            Some(ChanEvent::Silence(_)) if plan.silence_ms > 0 => return Ok("SILENCE"),
            Some(ChanEvent::Digit { digit, .. }) if plan.operator && digit.to_char() == '0' => {
                return Ok("OPERATOR");
            }
            Some(ChanEvent::Digit { digit, .. }) if plan.terminators.contains(digit.to_char()) => {
                return Ok("DTMF");
            }
            Some(_) => {}
        }
    }
}
