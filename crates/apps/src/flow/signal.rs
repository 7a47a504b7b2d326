//! Applications by which calls wait for each other, and for conditions.

use core::time::Duration;

use call::{ChanEvent, Level};

use super::rows;
use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run};

/// How often WaitForCondition looks when nothing is said, and at most.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOK_MIN: Duration = Duration::from_millis(10);

pub(crate) const ROWS: &[AppRow] = rows! {
    "Signal" "app_signal" Run::Now(signal),
        "Lets calls go on that wait for this.", "Signal(signalname[,payload])",
        "All calls in WaitForSignal of this name go on, with the payload. Sets SIGNALSTATUS (SUCCESS FAILURE); it is FAILURE\n\
         when nobody waits.";
    "WaitForSignal" "app_signal" Run::Story(|call, text| Box::pin(async move { wait_for_signal(&call, &text).await })),
        "Waits for Signal.", "WaitForSignal(signalname[,signaltimeout])",
        "Waits until another call runs Signal with this name, or signaltimeout seconds (without: as long as it takes).\n\
         Sets WAITFORSIGNALSTATUS (SIGNALED TIMEOUT HANGUP) and WAITFORSIGNALPAYLOAD.";
    "WaitForCondition" "app_waitforcond" Run::Story(|call, text| Box::pin(async move { condition(&call, &text).await })),
        "Waits until an expression is true.", "WaitForCondition(replacementchar,expression[,timeout[,interval]])",
        "The expression is looked at each interval seconds (0.05). In it replacementchar stands for '$', which would be\n\
         replaced before: WaitForCondition(#,#[\"#{DB(a/b)}\"=\"1\"],10). Without a timeout, in seconds, it waits as long as it\n\
         takes. Sets WAITFORCONDITIONSTATUS (TRUE FAILURE TIMEOUT HANGUP).";
};

fn signal(call: &Call, text: &str) -> Outcome {
    let (name, payload) = text.split_once(',').unwrap_or((text, ""));
    let name = name.trim();
    if name.is_empty() {
        call.log(Level::Warning, "Signal requires an argument (signalname)");
    }
    let told = !name.is_empty() && call.chan.core(|core| core.signal(name, payload.trim())) > 0;
    call.set("SIGNALSTATUS", if told { "SUCCESS" } else { "FAILURE" });
    Ok(Flow::Continue)
}

/// Waits no more, however the story ends.
struct Waiting<'a>(&'a Call);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.chan.core(|core| core.signal_forget(self.0.chan.id()));
    }
}

async fn wait_for_signal(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let name = args::nth(&parts, 0);
    if name.is_empty() {
        call.log(Level::Warning, "WaitForSignal requires an argument (signalname)");
        return Ok(Flow::Hangup);
    }
    let timeout = args::seconds(args::nth(&parts, 1)).filter(|timeout| !timeout.is_zero());
    let deadline = timeout.map(|timeout| call.chan.now() + timeout);
    call.set("WAITFORSIGNALPAYLOAD", "");
    if !call.chan.core(|core| core.signal_await(call.chan.id(), name)) {
        call.log(Level::Warning, "too many calls wait for signals");
        return Ok(Flow::Hangup);
    }
    let _waiting = Waiting(call);
    loop {
        match call.chan.event(deadline).await {
            Ok(Some(ChanEvent::Signal(payload))) => {
                call.set("WAITFORSIGNALSTATUS", "SIGNALED");
                call.set("WAITFORSIGNALPAYLOAD", &payload);
                return Ok(Flow::Continue);
            }
            Ok(Some(_)) => {}
            Ok(None) => {
                call.set("WAITFORSIGNALSTATUS", "TIMEOUT");
                return Ok(Flow::Continue);
            }
            Err(stop) => {
                call.set("WAITFORSIGNALSTATUS", "HANGUP");
                return Err(stop);
            }
        }
    }
}

async fn condition(call: &Call, text: &str) -> Outcome {
    let mut words = text.splitn(2, ',');
    let mark = words.next().unwrap_or_default().trim();
    let parts = args::split(words.next().unwrap_or_default());
    let expression = args::nth(&parts, 0);
    let mut symbols = mark.chars();
    let (Some(mark), None, false) = (symbols.next(), symbols.next(), expression.is_empty()) else {
        call.log(Level::Warning, "WaitForCondition requires one character and an expression");
        call.set("WAITFORCONDITIONSTATUS", "FAILURE");
        return Ok(Flow::Continue);
    };
    let seconds = |index: usize| args::seconds(args::nth(&parts, index)).filter(|time| !time.is_zero());
    let every = seconds(2).unwrap_or(LOOK_EVERY).max(LOOK_MIN);
    let deadline = seconds(1).map(|timeout| call.chan.now() + timeout);
    let expression = expression.replace(mark, "$");
    loop {
        if args::is_true(call.expand(&expression).trim()) {
            call.set("WAITFORCONDITIONSTATUS", "TRUE");
            return Ok(Flow::Continue);
        }
        let now = call.chan.now();
        if deadline.is_some_and(|deadline| deadline <= now) {
            call.set("WAITFORCONDITIONSTATUS", "TIMEOUT");
            return Ok(Flow::Continue);
        }
        let until = deadline.map_or(now + every, |deadline| deadline.min(now + every));
        if let Err(stop) = call.chan.wait_keeping(until, |_| false).await {
            call.set("WAITFORCONDITIONSTATUS", "HANGUP");
            return Err(stop);
        }
    }
}
