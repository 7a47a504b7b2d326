//! Sending digits: `SendDTMF` and what others need of it.

use core::time::Duration;

use base::Digit;
use call::{Chan, Level, Stop};

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
    synopsis: "Sends arbitrary DTMF digits.",
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
        let args = crate::args::split(&args, ',');
        let arg = |index: usize| args.get(index).map_or("", |a| a.trim());
        if arg(0).is_empty() {
            call.log(Level::Warning, "SendDTMF requires an argument (digits)");
            return Ok(Flow::Continue);
        }
        let gap = arg(1).parse().map_or(DEFAULT_GAP, Duration::from_millis);
        let length = arg(2).parse().unwrap_or(DEFAULT_MS);
        let target = match arg(3) {
            "" => call.chan.clone(),
            name => match call.chan.core(|core| core.by_name(name)) {
                Some(id) => Chan::new(call.chan.shard().clone(), id),
                None => {
                    call.log(Level::Warning, &format!("SendDTMF: there is no channel '{name}'"));
                    return Ok(Flow::Continue);
                }
            },
        };
        call.chan.while_up(send(&target, arg(0), length, gap)).await??;
        Ok(Flow::Continue)
    })
}

/// Sends `digits` one after the other. Ends early when the channel does.
pub(crate) async fn send(chan: &Chan, digits: &str, length_ms: u16, gap: Duration) -> Result<(), Stop> {
    for symbol in digits.chars().take(SYMBOLS_MAX) {
        match symbol {
            'w' => chan.wait(Duration::from_millis(500)).await?,
            'W' => chan.wait(Duration::from_secs(1)).await?,
            'f' | 'F' => flash(chan, gap).await?,
            _ => match Digit::from_char(symbol) {
                Some(digit) => {
                    chan.check()?;
                    chan.send_digit(digit, length_ms.clamp(80, 6000));
                    chan.wait(Duration::from_millis(u64::from(length_ms.clamp(80, 6000))) + gap).await?;
                }
                None => {
                    chan.log(Level::Warning, "SendDTMF", &format!("'{symbol}' is no digit and is skipped"))
                }
            },
        }
    }
    Ok(())
}

async fn flash(chan: &Chan, gap: Duration) -> Result<(), Stop> {
    chan.send_digit(Digit::FLASH, DEFAULT_MS);
    chan.wait(Duration::from_millis(u64::from(DEFAULT_MS)) + gap).await
}
