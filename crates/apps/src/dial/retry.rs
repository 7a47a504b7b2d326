//! RetryDial: Dial again and again.

use core::time::Duration;

use base::Digit;
use call::{Chan, Heard, Level, Stop};

use crate::call_ctx::args;
use crate::flow::rows;
use crate::{AppRow, Call, Flow, Outcome, Run, pbx};

/// How long it rests between two calls when nothing is said.
const REST: Duration = Duration::from_secs(10);
/// Shortest rest, so that a phone that refuses at once does not keep the shard busy.
const REST_MIN: Duration = Duration::from_millis(100);
const ANY_DIGIT: &str = "0123456789*#ABCD";

pub(crate) const ROWS: &[AppRow] = rows! {
    "RetryDial" "app_dial" Run::Story(|call, text| Box::pin(async move { retry_dial(&call, &text).await })),
        "Calls again while nobody can be reached.", "RetryDial(announce,sleep,retries,dialargs)",
        "Dial with dialargs. When nobody answers, announce is played, the caller hears music for sleep seconds (10), and Dial\n\
         runs again, retries times in all (0: without end); after the last rest the dialplan goes on. With option d of Dial, a digit that\n\
         is an extension of EXITCONTEXT, or of the present context, goes there meanwhile. Variables are those of Dial.";
};

async fn retry_dial(call: &Call, text: &str) -> Outcome {
    let mut words = text.splitn(4, ',').map(str::trim);
    let mut word = || words.next().unwrap_or_default();
    let (announce, sleep, retries, dial) = (word(), word(), word(), word());
    if dial.is_empty() {
        call.log(Level::Error, "RetryDial requires arguments (announce,sleep,retries,dialargs)");
        return Ok(Flow::Hangup);
    }
    let rest = args::seconds(sleep).unwrap_or(REST).max(REST_MIN);
    let mut left = retries.parse::<u32>().unwrap_or_else(|_| {
        call.log(
            Level::Warning,
            &format!("RetryDial: '{retries}' is no number of times; it is tried without end"),
        );
        0
    });
    let parts = args::split(dial);
    let leaves = dialplan::Options::parse(args::nth(&parts, 2), "d").has('d');
    call.enter_app("RetryDial", "Retrying");
    call.settle();
    loop {
        match super::dial(call, dial).await? {
            Flow::Continue => {}
            flow => return Ok(flow),
        }
        let status = call.get("DIALSTATUS").unwrap_or_default();
        // Who has talked, or cancelled, does not want it again.
        if matches!(status.as_str(), "ANSWER" | "CANCEL" | "INVALIDARGS") {
            return Ok(Flow::Continue);
        }
        if let Some(digit) = between(call, announce, rest, leaves).await? {
            let context = call.get("EXITCONTEXT").filter(|context| !context.is_empty());
            let context = context.unwrap_or_else(|| call.context());
            call.stand_at(pbx::Place::find(call, &context, &digit.to_char().to_string(), 1));
            return Ok(Flow::Jumped);
        }
        if left == 1 {
            return Ok(Flow::Continue);
        }
        left = left.saturating_sub(1);
    }
}

/// Ends the music, however the rest does.
struct Music<'a>(&'a Chan);

impl Drop for Music<'_> {
    fn drop(&mut self) {
        self.0.stop_music();
    }
}

/// What the caller hears between two calls; the digit of an extension that it goes to.
async fn between(call: &Call, announce: &str, rest: Duration, leaves: bool) -> Result<Option<Digit>, Stop> {
    let goes = |digit: Digit| {
        let context = call.get("EXITCONTEXT").filter(|context| !context.is_empty());
        let context = context.unwrap_or_else(|| call.context());
        call.exists(&context, &digit.to_char().to_string())
    };
    let stop_on = if leaves { ANY_DIGIT } else { "" };
    if !announce.is_empty()
        && let Heard::Interrupted(digit, _) = call.chan.play(announce, stop_on).await?
        && goes(digit)
    {
        return Ok(Some(digit));
    }
    let _music = call.chan.start_music("").await?.then_some(Music(&call.chan));
    let until = call.chan.now() + rest;
    loop {
        let left = until.since(call.chan.now());
        match call.chan.digit(left).await? {
            Some(digit) if leaves && goes(digit) => return Ok(Some(digit)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
}
