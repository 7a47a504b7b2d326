//! Dial: calls one or many, tells the caller how it goes, and lets the first who answers talk.
//!
//! The story has four parts: the legs that are called ([`Ringing`]), what the caller hears meanwhile ([`sound`]), what
//! happens between answer and the end ([`after`]), and, here, how the result is written down.

pub(crate) mod after;
pub(crate) mod legs;
mod options;
pub(crate) mod retry;
mod screening;
mod sound;

use core::time::Duration;

use base::{Cause, ChannelId};
use call::{CelKind, Chan, Disposition, Leg, Level, Notice};

use crate::call_ctx::args;
use crate::{AppFuture, AppRow, Call, Flow, Outcome, Run};
use after::converse;
use legs::{Called, Ringing};
pub use options::{DialOptions, UNSUPPORTED_OPTIONS};
pub(crate) use options::{SUPPORTED_OPTIONS, rights, why_without_effect};

/// Longest a Dial rings without a timeout argument: the field's default of about 136 years, cut to what a timer holds.
const RING_FOREVER: Duration = Duration::from_secs(7 * 24 * 3600);
/// Most destinations of one Dial.
const TARGETS_MAX: usize = 128;

pub(crate) const ROWS: &[AppRow] = &[AppRow {
    name: "Dial",
    module: "app_dial",
    synopsis: "Calls one or many and connects the first who answers.",
    syntax: "Dial([Technology/Resource[&Technology2/Resource2[&...]][,timeout[^progresstimeout][,options[,URL]]]])",
    description: "\
Calls all destinations at once; the first that answers is bridged to the caller, the others are cancelled.

timeout  seconds to ring (decimal fractions allowed); none: until the caller gives up. `30^4`: and four seconds in which
         a leg has to ring, or to send progress; when none does, DIALSTATUS is CHANUNAVAIL. Either may be left out.
options:
  a                     answers the caller as soon as the called party answers, before A, U and D.
  A(file[:callerfile])  plays a file to the called party (and one to the caller) before they talk.
  b(ctx^ext^prio(args)) Gosub on each called channel before it is called.
  B(ctx^ext^prio(args)) Gosub on the calling channel before dialling.
  c  tells the legs that the call was answered elsewhere when the caller gives up; without it they hear so when the
     caller's own peer has said it.
  C  begins the call record anew.
  d  a digit pressed while it rings goes to that extension of EXITCONTEXT, or of the present context.
  D([called][:calling[:progress[:mf]]])  sends DTMF after the answer ('w' waits half a second), progress at early audio,
                   and then mf as digits of R1 (SendMF).
  e  runs the h extension on the called channel after the call.
  E  the caller hears the digits of D that are sent to the called party.
  f([callerid])  sets the caller id that the called party sees; without argument the extension and its hint's name.
  F([ctx^ext^prio])  when the caller hangs up, the called party goes on there (no argument: next priority).
  g  goes on with the dialplan when the called party hangs up.
  G(ctx^ext^prio)  after the answer the caller goes to prio and the called party to prio+1; they are not bridged.
  h / H  the called / calling party may hang up with the code of disconnect (*) in features.conf; while it rings, '*'
         of the caller goes on with the dialplan (H).
  i  legs do not forward the call; one that wants to counts as busy.
  I  the caller is not shown who rings, answers or forwards.
  k / K  the called / calling party may park the other by the code of parkcall in features.conf.
  L(x[:y[:z]])  ends the call after x ms, warns y ms before the end and then every z ms. LIMIT_PLAYAUDIO_CALLER (yes)
                and LIMIT_PLAYAUDIO_CALLEE say who hears LIMIT_CONNECT_FILE, LIMIT_WARNING_FILE (else the time left)
                and LIMIT_TIMEOUT_FILE.
  m([class])  plays music on hold to the caller until the answer.
  M(macro[^arg...])  Macro on the called channel after the answer; MACRO_RESULT decides, as GOSUB_RESULT of U.
  n([1])  with p or P: the name that the caller says is not kept for later calls.
  N  with p or P: a caller with a number is let through.
  o([callerid])  the called channel's own caller id is the caller's, or this one.
  p  the called party hears the name that the caller has said, and decides: 1 talks, 2 NOANSWER, 3 TORTURE, 4 DONTCALL.
  P([key])  the same, and what is decided holds for the caller's number from then on, below privacy/key of the database
         (the extension without key); 5 lets it through in future, but not now.
  Q(cause)  what legs are told when another has answered (26, ANSWERED_ELSEWHERE): a number, a name, or NONE.
  r([tone])  ring tone to the caller, whatever the called party sends; with an argument that tone.
  R  ring tone to the caller until the called party sends audio of its own.
  s(tag)  with f: the tag of that caller id.
  S(x)  ends the call x seconds after the answer.
  t / T  the called / calling party may transfer the other by the codes of blindxfer (#) and atxfer.
  u(presentation)  with f: whether that caller id is shown (allowed, prohib, unavailable, allowed_passed_screen ...).
  U(context[^args])  Gosub on the called channel after the answer; GOSUB_RESULT decides (ABORT, CONGESTION, BUSY,
                CONTINUE, GOTO:ctx^ext^prio).
  w / W  the called / calling party may record the call by the code of automon.
  x / X  the same by the code of automixmon.
  z  a leg that forwards the call ends the timeout.

Sets DIALSTATUS (CHANUNAVAIL CONGESTION NOANSWER BUSY ANSWER CANCEL DONTCALL TORTURE INVALIDARGS), DIALEDTIME, DIALEDTIME_MS,
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
    /// Who answered wants no call from this caller (options `p` and `P`).
    DontCall,
    /// Or wants it tormented.
    Torture,
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
            Self::DontCall => "DONTCALL",
            Self::Torture => "TORTURE",
            Self::InvalidArgs => "INVALIDARGS",
        }
    }
    /// What the end of one leg means for the whole.
    pub(crate) fn of_cause(cause: Cause) -> Self {
        match cause {
            Cause::USER_BUSY => Self::Busy,
            Cause::NORMAL_CIRCUIT_CONGESTION => Self::Congestion,
            Cause::NO_ANSWER | Cause::NORMAL_CLEARING => Self::NoAnswer,
            _ => Self::ChanUnavail,
        }
    }
    /// The same as the event DialEnd says it, which knows fewer words.
    pub(crate) fn of_cause_in_events(cause: Cause) -> Self {
        match cause {
            Cause::USER_BUSY => Self::Busy,
            Cause::NORMAL_CIRCUIT_CONGESTION => Self::Congestion,
            Cause::NO_ROUTE_DESTINATION | Cause::SUBSCRIBER_ABSENT => Self::ChanUnavail,
            _ => Self::NoAnswer,
        }
    }
}

const RESULTS: [&str; 11] = [
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
    "PROGRESSTIME_MS",
];

async fn dial(call: &Call, text: &str) -> Outcome {
    for variable in RESULTS {
        call.set(variable, "");
    }
    let parts = args::split(text);
    let options = match DialOptions::parse(args::nth(&parts, 2)) {
        Ok(options) => options,
        Err(why) => return Ok(refuse_arguments(call, &why)),
    };
    for (letter, why) in options.without_effect() {
        call.log(Level::Warning, &format!("Dial option '{letter}' {why}"));
    }
    let targets = args::nth(&parts, 0).split('&').map(str::trim).filter(|t| !t.is_empty());
    let targets: Vec<&str> = targets.take(TARGETS_MAX).collect();
    if targets.is_empty() {
        return Ok(refuse_arguments(call, "Dial requires an argument (technology/resource)"));
    }
    if let Some(routine) = options.caller_routine.as_deref().and_then(|place| routine(call, place))
        && call.gosub(&routine).await? == Flow::Hangup
    {
        return Ok(Flow::Hangup);
    }
    if options.resets_record {
        call.chan.core(|core| core.reset_cdr(call.chan.id(), false));
    }
    let screening = match screening::begin(call, &options).await? {
        Ok(screening) => screening,
        Err(status) => {
            finish(call, status);
            return Ok(Flow::Continue);
        }
    };
    let timeout = Timeouts::read(call, args::nth(&parts, 1));
    let mut ringing = Ringing::new(call, &options);
    let called = ringing.call(&targets, timeout).await;
    match called {
        Called::Answered(leg) => {
            if let Some(screening) = &screening
                && let Err(status) = screening.decide(call, &options, &leg).await?
            {
                call.note_leg(leg.chan());
                leg.end(Cause::NORMAL_CLEARING);
                finish(call, status);
                return Ok(Flow::Continue);
            }
            converse(call, &options, leg, &ringing).await
        }
        Called::Refused(status) => {
            finish(call, status);
            Ok(Flow::Continue)
        }
        Called::CallerStopped(stop) => {
            finish(call, Status::Cancel);
            Err(stop)
        }
        Called::CallerCancelled => {
            finish(call, Status::Cancel);
            Ok(Flow::Continue)
        }
        Called::CallerDialled(place) => {
            finish(call, Status::Cancel);
            call.stand_at(place);
            Ok(Flow::Jumped)
        }
    }
}

/// How long the legs have, `timeout[^progresstimeout]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timeouts {
    /// Until one answers.
    pub(crate) answer: Duration,
    /// Until one rings, or sends progress.
    pub(crate) progress: Option<Duration>,
}

impl Timeouts {
    fn read(call: &Call, text: &str) -> Self {
        let (answer, progress) = text.split_once('^').unwrap_or((text, ""));
        let read = |text: &str, without: &str| {
            let text = text.trim();
            let seconds = args::seconds(text).filter(|timeout| !timeout.is_zero());
            if seconds.is_none() && !text.is_empty() {
                call.log(Level::Warning, &format!("Invalid timeout specified: '{text}'. {without}"));
            }
            seconds.map(|timeout| timeout.min(RING_FOREVER))
        };
        Self {
            answer: read(answer, "It rings without limit").unwrap_or(RING_FOREVER),
            progress: read(progress, "Legs may be silent as long as they like"),
        }
    }
}

/// Arguments that cannot be carried out end the call, as in the field: `h` sees why.
fn refuse_arguments(call: &Call, why: &str) -> Flow {
    call.log(Level::Error, why);
    call.set("DIALSTATUS", Status::InvalidArgs.name());
    Flow::Hangup
}

/// The full place and arguments of a routine that an option names as seen from the caller; `None`, logged, when there is
/// no such routine: the call goes on without it.
pub(crate) fn routine(call: &Call, text: &str) -> Option<String> {
    let (place, arguments, _) = args::split_app(text);
    let why = match call.place_of(place) {
        Ok(there) if there.step().is_some() || call.may_have_rows(&there) => {
            let at = there.location();
            return Some(format!("{},{},{}({arguments})", at.context, at.exten, at.priority));
        }
        Ok(_) => "there is no such step".to_owned(),
        Err(why) => why.to_string(),
    };
    call.log(Level::Error, &format!("cannot run routine '{place}': {why}"));
    None
}

/// Writes the result down.
fn finish(call: &Call, status: Status) {
    call.set("DIALSTATUS", status.name());
}

/// Writes a time in seconds into this variable, and in milliseconds into the one with `_MS`.
pub(crate) fn write_time(call: &Call, name: &str, value: Option<Duration>) {
    let Some(value) = value else { return };
    call.set(name, &value.as_secs().to_string());
    call.set(&format!("{name}_MS"), &value.as_millis().to_string());
}

/// The word of DialEnd for the end of one leg.
pub(crate) fn status_of(cause: Cause) -> &'static str {
    Status::of_cause_in_events(cause).name()
}

/// How an attempt came out in the caller's record, by the word of DialEnd.
pub(crate) fn disposition_of(status: &str) -> Disposition {
    match status {
        "ANSWER" => Disposition::Answered,
        "BUSY" => Disposition::Busy,
        "NOANSWER" => Disposition::NoAnswer,
        "CANCEL" => Disposition::Cancel,
        "CONGESTION" => Disposition::Congestion,
        _ => Disposition::Failed,
    }
}

/// Tells watchers how calling a leg gets on.
pub(crate) fn notice_state(caller: &Chan, leg: ChannelId, status: &'static str) {
    caller.core(|core| {
        core.notice(|core| {
            let (caller, dest) = (core.snapshot(caller.id()), core.snapshot(leg)?);
            Some(Notice::DialState { caller, dest, status, dial_string: String::new() })
        });
    });
}

/// Tells watchers how an attempt that has ended counts after all.
pub(crate) fn notice_ended_as(caller: &Chan, leg: ChannelId, status: &'static str) {
    caller.core(|core| {
        core.notice(|core| {
            let (caller, dest) = (core.snapshot(caller.id()), core.snapshot_now(leg)?);
            Some(Notice::DialEnd {
                caller,
                dest,
                status,
                forward: None,
                forwarded: None,
                dial_string: String::new(),
            })
        });
    });
}

/// Tells watchers that calling a leg has ended.
pub(crate) fn notice_end(caller: &Chan, leg: &Leg, status: &'static str, forward: Option<&str>) {
    let (caller_id, dest_id) = (caller.id(), leg.chan().id());
    caller.core(|core| {
        core.cdr_dialled(caller_id, dest_id, disposition_of(status));
        let known = core.get_mut(caller_id).map(|caller| &mut caller.cdr.dial_status);
        if let Some(known) = known.filter(|known| known.is_empty() || status == "ANSWER") {
            *known = status;
        }
        core.notice(|core| {
            let dest = core.snapshot_now(dest_id)?;
            let forward = forward.map(str::to_owned);
            let (caller, dial_string) = (core.snapshot(caller_id), String::new());
            Some(Notice::DialEnd { caller, dest, status, forward, forwarded: None, dial_string })
        });
        if let Some(target) = forward {
            core.log_event(CelKind::Forward, caller_id, |_| vec![("forward", target.into())]);
        }
    });
}
