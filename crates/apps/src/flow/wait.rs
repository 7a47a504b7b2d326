//! Applications that wait.

use core::time::Duration;

use base::Digit;
use call::{ChanEvent, Level};

use super::rows;
use crate::call_ctx::args;
use crate::{AppFuture, AppRow, Call, Flow, Outcome, Run};

pub(crate) const ROWS: &[AppRow] = rows! {
    "Wait" "pbx_builtins" Run::Story(wait),
        "Waits.", "Wait(seconds)", "Seconds may have a fraction, and a unit behind them: ms, s, m, h. Digits pressed meanwhile are dropped.";
    "WaitExten" "pbx_builtins" Run::Story(wait_exten),
        "Waits for the caller to dial an extension.", "WaitExten([seconds[,options]])",
        "Waits for the first digit of an extension, without seconds TIMEOUT(response). When none comes, the call goes\n\
         on with the next priority if there is one, else at extension t.\n\n\
         options:\n  m(class)  music on hold meanwhile.\n  d(tone)   dial tone (or the named tone) until the first digit.";
    "WaitUntil" "app_waituntil" Run::Story(wait_until),
        "Waits until a moment.", "WaitUntil(epoch)",
        "Waits until so many seconds since 1970. Sets WAITUNTILSTATUS: OK, PAST, FAILURE, HANGUP.";
    "WaitDigit" "app_waitdigit" Run::Story(wait_digit),
        "Waits for one digit.", "WaitDigit([seconds[,digits]])",
        "Waits for one of the digits (any without). Sets WAITDIGITSTATUS: DTMF, TIMEOUT, ERROR; and WAITDIGITRESULT.";
};

fn wait(call: Call, text: String) -> AppFuture {
    Box::pin(async move {
        match args::seconds(&text) {
            Some(duration) => call.chan.wait(duration).await?,
            None if text.trim().is_empty() => {}
            None => call.log(Level::Warning, &format!("Wait passed invalid argument '{text}'")),
        }
        Ok(Flow::Continue)
    })
}

fn wait_exten(call: Call, text: String) -> AppFuture {
    Box::pin(async move {
        let parts = args::split(&text);
        let response = Duration::from_millis(call.chan.with(|c| u64::from(c.response_timeout_ms))?);
        let timeout = args::seconds(args::nth(&parts, 0)).unwrap_or(response);
        let options = dialplan::Options::parse(args::nth(&parts, 1), "md");
        if options.has('m') {
            call.chan.start_music(options.arg('m').unwrap_or_default()).await?;
        } else if options.has('d') {
            let tone = options.arg('d').filter(|tone| !tone.is_empty()).unwrap_or("dial");
            if !call.chan.start_tone(tone) {
                call.log(Level::Warning, &format!("WaitExten: there is no tone '{tone}'"));
            }
        }
        let pressed = first_digit(&call, timeout).await;
        if options.has('m') {
            call.chan.stop_music();
        } else if options.has('d') {
            call.chan.stop_sound();
        }
        match pressed? {
            Some(digit) => Ok(Flow::Digit(digit)),
            None => no_digit(&call).await,
        }
    })
}

/// The first digit within `timeout`; it counts when it goes down, so that a tone stops at once.
async fn first_digit(call: &Call, timeout: Duration) -> Result<Option<Digit>, call::Stop> {
    call.chan.digit(timeout).await
}

/// No digit came: the next priority, or `t`, or `e`.
async fn no_digit(call: &Call) -> Outcome {
    let mut next = call.here();
    next.set_priority(next.priority().saturating_add(1));
    if next.step().is_some() {
        return Ok(Flow::Continue);
    }
    let context = call.context();
    if let Some(place) = call.look_special(&context, "t").await {
        call.stand_at(place);
        return Ok(Flow::Jumped);
    }
    if call.look_special(&context, "e").await.is_some() {
        call.raise("RESPONSETIMEOUT");
        return Ok(Flow::Jumped);
    }
    call.log(Level::Warning, &format!("Timeout but no rule 't' or 'e' in context '{context}'"));
    Ok(Flow::Hangup)
}

fn wait_until(call: Call, text: String) -> AppFuture {
    Box::pin(async move {
        let Ok(target) = text.trim().parse::<f64>() else {
            call.log(Level::Warning, "WaitUntil requires an argument (epoch)");
            call.set("WAITUNTILSTATUS", "FAILURE");
            return Ok(Flow::Continue);
        };
        let now = call.chan.core(|core| core.services.wall.now_micros()) as f64 / 1e6;
        let Ok(left) = Duration::try_from_secs_f64(target - now) else {
            call.set("WAITUNTILSTATUS", if target < now { "PAST" } else { "FAILURE" });
            return Ok(Flow::Continue);
        };
        let waited = call.chan.wait(left).await;
        call.set("WAITUNTILSTATUS", if waited.is_ok() { "OK" } else { "HANGUP" });
        waited?;
        Ok(Flow::Continue)
    })
}

fn wait_digit(call: Call, text: String) -> AppFuture {
    Box::pin(async move {
        let parts = args::split(&text);
        let wanted = args::nth(&parts, 1);
        let deadline = args::seconds(args::nth(&parts, 0)).map(|timeout| call.chan.now() + timeout);
        let (status, result) = loop {
            match call.chan.event(deadline).await {
                Ok(Some(ChanEvent::Digit { digit, .. }))
                    if wanted.is_empty() || wanted.contains(digit.to_char()) =>
                {
                    break ("DTMF", digit.to_char().to_string());
                }
                Ok(Some(_)) => {}
                Ok(None) => break ("TIMEOUT", String::new()),
                Err(stop) => {
                    call.set("WAITDIGITSTATUS", "ERROR");
                    call.set("WAITDIGITRESULT", "");
                    return Err(stop);
                }
            }
        };
        call.set("WAITDIGITSTATUS", status);
        call.set("WAITDIGITRESULT", &result);
        Ok(Flow::Continue)
    })
}
