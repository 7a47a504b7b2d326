//! Sending digits: `SendDTMF` and what others need of it.

use core::time::Duration;

use base::Digit;
use call::{Chan, DIGIT_MAX_MS, DIGIT_MIN_MS, Level, Stop};

use crate::call_ctx::args;
use crate::{AppFuture, AppRow, Call, Flow, Run};

/// Length of a digit when none is asked for, milliseconds.
pub(crate) const DEFAULT_MS: u16 = 100;
/// Gap between digits when none is asked for.
pub(crate) const DEFAULT_GAP: Duration = Duration::from_millis(250);
/// Most symbols of one string; the rest is not sent.
const SYMBOLS_MAX: usize = 256;

pub(crate) const ROWS: &[AppRow] = &[AppRow {
    name: "SendDTMF",
    module: "app_senddtmf",
    synopsis: "Sends digits.",
    syntax: "SendDTMF(digits[,timeout_ms[,duration_ms[,channel]]])",
    description: "\
Sends the digits 0-9 * # A-D; 'f' is a hook flash, 'w' waits half a second, 'W' a second.

timeout_ms   gap between digits (250).
duration_ms  length of each digit (100).
channel      the channel to send on, instead of this one.",
    run: Run::Story(send_dtmf),
}];

fn send_dtmf(call: Call, args: String) -> AppFuture {
    Box::pin(async move {
        let parts = args::split(&args);
        let arg = |index: usize| args::nth(&parts, index);
        if arg(0).is_empty() {
            call.log(Level::Warning, "SendDTMF requires an argument (digits)");
            return Ok(Flow::Continue);
        }
        let gap = arg(1).parse().map_or(DEFAULT_GAP, Duration::from_millis);
        let length = arg(2).parse().unwrap_or(DEFAULT_MS);
        let Some(target) = target(&call, arg(3)) else { return Ok(Flow::Continue) };
        send(&call.chan, &target, arg(0), length, gap).await?;
        Ok(Flow::Continue)
    })
}

/// The channel of this name, this one without a name; one that is not there is said.
pub(crate) fn target(call: &Call, name: &str) -> Option<Chan> {
    if name.is_empty() {
        return Some(call.chan.clone());
    }
    let found = call.chan.core(|core| core.by_name(name));
    if found.is_none() {
        call.log(Level::Warning, &format!("No such channel: {name}"));
    }
    found.map(|id| Chan::new(call.chan.shard().clone(), id))
}

/// Sends `digits` to `to` one after the other, while the story of `waits` waits; never on the time of a channel that
/// another story listens to. Ends early when `waits` does, or when `to` is gone.
pub(crate) async fn send(
    waits: &Chan,
    to: &Chan,
    digits: &str,
    length_ms: u16,
    gap: Duration,
) -> Result<(), Stop> {
    let length_ms = length_ms.clamp(DIGIT_MIN_MS, DIGIT_MAX_MS);
    for symbol in digits.chars().take(SYMBOLS_MAX) {
        let digit = match symbol {
            'w' => {
                waits.wait(Duration::from_millis(500)).await?;
                continue;
            }
            'W' => {
                waits.wait(Duration::from_secs(1)).await?;
                continue;
            }
            'f' | 'F' => Some(Digit::FLASH),
            _ => Digit::from_char(symbol),
        };
        let Some(digit) = digit else {
            to.log(Level::Warning, "SendDTMF", &format!("'{symbol}' is no digit and is skipped"));
            continue;
        };
        waits.check()?;
        if to.with(|c| c.hangup.is_some()) != Ok(false) {
            return Ok(());
        }
        to.send_digit(digit, length_ms);
        waits.wait(Duration::from_millis(u64::from(length_ms)) + gap).await?;
    }
    Ok(())
}

/// Sends digits without waiting: the media worker keeps them in order. Pauses are left out.
pub(crate) fn queue(to: &Chan, digits: &str) {
    for digit in digits.chars().take(SYMBOLS_MAX).filter_map(Digit::from_char) {
        to.send_digit(digit, DEFAULT_MS);
    }
}
