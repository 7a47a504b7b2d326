//! Dial: calls one or many, tells the caller how it goes, and lets the first who answers talk.
//!
//! The story has four parts, each with its file's section below: the legs that are called ([`Ringing`]), what the
//! caller hears meanwhile, what happens between answer and conversation, and how the result is written down.

mod after;
mod legs;
mod options;

use core::time::Duration;

use base::Cause;
use call::{Chan, Disposition, Indication, Leg, Level, Notice, Stop};

use crate::{AppFuture, AppRow, Call, Flow, Outcome, Run};
use after::converse;
use legs::{Called, Ringing};
pub use options::{DialOptions, UNSUPPORTED_OPTIONS};

/// Longest a Dial rings without a timeout argument: the field's default of about 136 years, cut to what a timer holds.
const RING_FOREVER: Duration = Duration::from_secs(7 * 24 * 3600);
/// Most destinations of one Dial.
const TARGETS_MAX: usize = 128;

pub(crate) const ROWS: &[AppRow] = &[AppRow {
    name: "Dial",
    module: "app_dial",
    synopsis: "Attempt to connect to another device or endpoint and bridge the call.",
    syntax: "Dial([Technology/Resource[&Technology2/Resource2[&...]][,timeout[,options[,URL]]]])",
    description: "\
Calls all destinations at once; the first that answers is bridged to the caller, the others are cancelled.

timeout  seconds to ring (decimal fractions allowed); none: until the caller gives up.
options:
  A(file[:callerfile])  plays a file to the called party (and one to the caller) before they talk.
  b(ctx^ext^prio(args)) Gosub on each called channel before it is called.
  B(ctx^ext^prio(args)) Gosub on the calling channel before dialling.
  D([called][:calling[:progress]])  sends DTMF after the answer ('w' waits half a second).
  e  runs the h extension on the called channel after the call.
  f([callerid])  sets the caller id that the called party sees; without argument that of the current extension's hint.
  F([ctx^ext^prio])  when the caller hangs up, the called party goes on there (no argument: next priority).
  g  goes on with the dialplan when the called party hangs up.
  G(ctx^ext^prio)  after the answer the caller goes to prio and the called party to prio+1; they are not bridged.
  h / H  the called / calling party may hang up with '*'.
  L(x[:y[:z]])  ends the call after x ms, warns y ms before the end and then every z ms (LIMIT_* variables).
  m([class])  plays music on hold to the caller until the answer.
  o([callerid])  the called party sees the caller id that the caller was called by.
  r([tone])  ring tone to the caller, whatever the called party sends.
  R  ring tone to the caller until the called party sends audio of its own.
  S(x)  ends the call x seconds after the answer.
  U(routine[^args])  Gosub on the called channel after the answer; GOSUB_RESULT decides (ABORT, CONGESTION, BUSY, CONTINUE, GOTO:ctx^ext^prio).

Sets DIALSTATUS (CHANUNAVAIL CONGESTION NOANSWER BUSY ANSWER CANCEL INVALIDARGS), DIALEDTIME, DIALEDTIME_MS,
ANSWEREDTIME, ANSWEREDTIME_MS, RINGTIME, RINGTIME_MS, PROGRESSTIME, PROGRESSTIME_MS, DIALEDPEERNAME,
DIALEDPEERNUMBER and HANGUPCAUSE. Without g, G or F the caller's dialplan ends after an answered call.",
    run: Run::Story(run),
}];

fn run(call: Call, args: String) -> AppFuture {
    Box::pin(async move { dial(&call, &args).await })
}

/// How dialling ended, in the words of DIALSTATUS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Answer,
    Busy,
    Congestion,
    ChanUnavail,
    NoAnswer,
    Cancel,
    InvalidArgs,
}

impl Status {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Answer => "ANSWER",
            Self::Busy => "BUSY",
            Self::Congestion => "CONGESTION",
            Self::ChanUnavail => "CHANUNAVAIL",
            Self::NoAnswer => "NOANSWER",
            Self::Cancel => "CANCEL",
            Self::InvalidArgs => "INVALIDARGS",
        }
    }
    /// What the end of one leg means for the whole.
    pub(crate) fn of_cause(cause: Cause) -> Self {
        match cause {
            Cause::USER_BUSY => Self::Busy,
            Cause::NORMAL_CIRCUIT_CONGESTION | Cause::SWITCH_CONGESTION => Self::Congestion,
            Cause::NO_ANSWER | Cause::NORMAL_CLEARING | Cause::NO_USER_RESPONSE => Self::NoAnswer,
            _ => Self::ChanUnavail,
        }
    }
    fn disposition(self) -> Disposition {
        match self {
            Self::Answer => Disposition::Answered,
            Self::Busy => Disposition::Busy,
            Self::Congestion => Disposition::Congestion,
            Self::ChanUnavail | Self::InvalidArgs => Disposition::Failed,
            Self::NoAnswer | Self::Cancel => Disposition::NoAnswer,
        }
    }
}

const RESULTS: [&str; 10] = [
    "DIALSTATUS",
    "DIALEDPEERNUMBER",
    "DIALEDPEERNAME",
    "ANSWEREDTIME",
    "ANSWEREDTIME_MS",
    "DIALEDTIME",
    "DIALEDTIME_MS",
    "RINGTIME",
    "RINGTIME_MS",
    "PROGRESSTIME",
];

async fn dial(call: &Call, args: &str) -> Outcome {
    for variable in RESULTS {
        call.set(variable, "");
    }
    let mut parts = crate::args::split(args, ',').into_iter();
    let targets = parts.next().unwrap_or_default();
    let timeout = parts.next().unwrap_or_default();
    let options = match DialOptions::parse(&parts.next().unwrap_or_default()) {
        Ok(options) => options,
        Err(why) => {
            call.log(Level::Error, &why);
            return refuse(call, Status::InvalidArgs);
        }
    };
    for letter in options.unsupported() {
        call.log(Level::Warning, &format!("Dial option '{letter}' is not supported yet and has no effect"));
    }
    let targets: Vec<&str> =
        targets.split('&').map(str::trim).filter(|t| !t.is_empty()).take(TARGETS_MAX).collect();
    if targets.is_empty() {
        call.log(Level::Warning, "Dial requires an argument (technology/resource)");
        return refuse(call, Status::InvalidArgs);
    }
    if let Some(routine) = &options.caller_routine {
        call.gosub(routine).await?;
    }

    let mut ringing = Ringing::new(call, &options);
    for target in &targets {
        ringing.request(target).await?;
    }
    ringing.freeze_record();
    ringing.call_all();
    let timeout = match timeout.trim().parse::<f64>() {
        Ok(seconds) if seconds > 0.0 => {
            Duration::try_from_secs_f64(seconds).unwrap_or(RING_FOREVER).min(RING_FOREVER)
        }
        _ => RING_FOREVER,
    };
    let called = ringing.wait(timeout).await;
    match called {
        Called::Answered(leg) => {
            write_times(call, &ringing);
            converse(call, &options, leg, &ringing).await
        }
        Called::Refused(status) => {
            finish(call, &ringing, status);
            Ok(Flow::Continue)
        }
        Called::CallerStopped(stop) => {
            finish(call, &ringing, Status::Cancel);
            Err(stop)
        }
        Called::CallerHungUpWithKey => {
            finish(call, &ringing, Status::Cancel);
            Ok(Flow::Hangup)
        }
    }
}

fn refuse(call: &Call, status: Status) -> Outcome {
    call.set("DIALSTATUS", status.name());
    Ok(Flow::Continue)
}

/// Writes the result down: variables and call record.
fn finish(call: &Call, ringing: &Ringing<'_>, status: Status) {
    write_times(call, ringing);
    call.set("DIALSTATUS", status.name());
    let _ = call.chan.with(|channel| {
        let disposition = status.disposition();
        if channel.answered.is_none() {
            channel.cdr.disposition = channel.cdr.disposition.max(disposition);
        }
    });
}

fn write_times(call: &Call, ringing: &Ringing<'_>) {
    let times = ringing.times();
    for (seconds, millis, value) in [
        ("DIALEDTIME", "DIALEDTIME_MS", Some(times.dialed)),
        ("RINGTIME", "RINGTIME_MS", times.ringing),
        ("PROGRESSTIME", "PROGRESSTIME_MS", times.progress),
    ] {
        if let Some(value) = value {
            call.set(seconds, &value.as_secs().to_string());
            call.set(millis, &value.as_millis().to_string());
        }
    }
}

/// The word of DIALSTATUS for the end of one leg.
pub(crate) fn status_of(cause: Cause) -> &'static str {
    Status::of_cause(cause).name()
}

/// Tells watchers that calling a leg has ended.
pub(crate) fn notice_end(caller: &Chan, leg: &Leg, status: &'static str) {
    let (caller_id, dest_id) = (caller.id(), leg.chan().id());
    caller.core(|core| {
        core.notice(|core| {
            let dest = core.snapshot(dest_id)?;
            Some(Notice::DialEnd { caller: core.snapshot(caller_id), dest, status, forward: None })
        });
    });
}

/// Rings back to the caller by signalling before the answer, by a tone after it.
pub(crate) fn ring_back(caller: &Chan, tone: &str) {
    if caller.state() == call::ChanState::Up {
        caller.start_tone(if tone.is_empty() { "ring" } else { tone });
    } else {
        caller.indicate(&Indication::Ringing);
    }
}

/// What a stop of the caller means while its Dial runs.
pub(crate) fn stopped(stop: Stop) -> Called {
    Called::CallerStopped(stop)
}
