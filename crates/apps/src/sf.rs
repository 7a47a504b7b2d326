//! Digits as pulses of one frequency, as older trunks dial them: `SendSF` and `ReceiveSF`.

use core::time::Duration;

use base::{Digit, TrunkDigits};
use call::{Chan, DIGIT_MIN_MS, Level, Stop};

use crate::call_ctx::args;
use crate::dtmf::target;
use crate::flow::rows;
use crate::mf::{collect, sound, timeout};
use crate::{AppRow, Call, Flow, Outcome, Run};

/// Most symbols of one string; the rest is not sent.
const SYMBOLS_MAX: usize = 256;
/// Most digits that one call of ReceiveSF collects.
const COLLECTED_MAX: usize = 256;
/// Hertz of the pulses when nobody says.
const USUAL_HERTZ: u16 = 2600;
/// Hertz that telephone audio carries whole.
const HERTZ: core::ops::RangeInclusive<u16> = 300..=3400;
/// Milliseconds of a pulse, of the gap behind it, and between two digits.
const PULSE_MS: u16 = 67;
const GAP_MS: u16 = 33;
const BETWEEN: Duration = Duration::from_millis(600);
/// Option letters of ReceiveSF.
pub(crate) const RECEIVE_OPTIONS: &str = "demqr";

pub(crate) const ROWS: &[AppRow] = rows! {
    "SendSF" "app_sf" Run::Story(|call, text| Box::pin(async move { send_sf(&call, &text).await })),
        "Sends digits as pulses of one frequency.", "SendSF(digits[,frequency[,channel]])",
        "Digits are 0-9; 'w' waits half a second, 'h' and 'H' are 250 ms of the frequency, 'f' and 'F' are a hook flash, 'W' is\n\
         a wink where the line can. Does not answer.\n\n\
         frequency  hertz of the pulses (2600).\n\
         channel    the channel to send on, instead of this one.";
    "ReceiveSF" "app_sf" Run::Story(|call, text| Box::pin(async move { receive_sf(&call, &text).await })),
        "Collects digits that are pulses of one frequency.",
        "ReceiveSF(variable[,digits[,timeout[,frequency[,options]]]])",
        "Collects at most so many digits, for at most timeout seconds, which may have a fraction; without digits the time\n\
         alone ends it. Does not answer.\n\n\
         frequency  hertz of the pulses (2600).\n\
         options:\n  \
         d e m q r  have no effect: nothing is passed on while it listens, more than ten pulses are no digit.\n\
         Sets RECEIVESFSTATUS (MAXDIGITS TIMEOUT HANGUP ERROR).";
};

/// The frequency that was asked for; one that is none is said.
fn hertz(call: &Call, text: &str) -> Option<u16> {
    if text.is_empty() {
        return Some(USUAL_HERTZ);
    }
    let hertz = text.parse().ok().filter(|hertz| HERTZ.contains(hertz));
    if hertz.is_none() {
        call.log(Level::Warning, &format!("Invalid freq: {text}"));
    }
    hertz
}

async fn send_sf(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let arg = |index: usize| args::nth(&parts, index).trim();
    if arg(0).is_empty() {
        call.log(Level::Warning, "SendSF requires an argument");
        return Ok(Flow::Continue);
    }
    let Some(hertz) = hertz(call, arg(1)) else { return Ok(Flow::Continue) };
    let Some(target) = target(call, arg(2)) else { return Ok(Flow::Continue) };
    send(&call.chan, &target, arg(0), hertz).await?;
    Ok(Flow::Continue)
}

/// Sends a string to `to` while the story of `waits` waits; ends early when either is gone.
async fn send(waits: &Chan, to: &Chan, text: &str, hertz: u16) -> Result<(), Stop> {
    let tone = hertz.to_string();
    for symbol in text.chars().take(SYMBOLS_MAX) {
        waits.check()?;
        if to.with(|c| c.hangup.is_some()) != Ok(false) {
            return Ok(());
        }
        match symbol {
            'w' => waits.wait(Duration::from_millis(500)).await?,
            'h' | 'H' => sound(waits, to, &tone, 250, GAP_MS).await?,
            'f' | 'F' => to.send_digit(Digit::FLASH, DIGIT_MIN_MS),
            'W' => to.log(Level::Debug(1), "SendSF", "no line here can wink"),
            '0'..='9' => {
                let pulses = symbol.to_digit(10).filter(|digit| *digit > 0).unwrap_or(10);
                to.start_tone(&pulse_train(&tone, pulses));
                waits.wait(Duration::from_millis(u64::from(PULSE_MS + GAP_MS)) * pulses + BETWEEN).await?;
            }
            _ => to.log(Level::Warning, "SendSF", &format!("Illegal SF character '{symbol}' in string")),
        }
    }
    Ok(())
}

/// The tone of a digit.
fn pulse_train(tone: &str, pulses: u32) -> String {
    let parts: Vec<String> = (0..pulses).map(|_| format!("!{tone}/{PULSE_MS},!0/{GAP_MS}")).collect();
    parts.join(",")
}

async fn receive_sf(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let arg = |index: usize| args::nth(&parts, index).trim();
    let refused = |why: &str| {
        if !why.is_empty() {
            call.log(Level::Warning, why);
        }
        call.set("RECEIVESFSTATUS", "ERROR");
        Ok(Flow::Continue)
    };
    if arg(0).is_empty() {
        return refused("ReceiveSF requires an argument (variable)");
    }
    let most = match arg(1) {
        "" => COLLECTED_MAX,
        text => match text.parse::<usize>() {
            Ok(0) => COLLECTED_MAX,
            Ok(most) => most.min(COLLECTED_MAX),
            Err(_) => return refused(&format!("Invalid number of digits: {text}")),
        },
    };
    let (Ok(timeout), Some(hertz)) = (timeout(call, arg(2)), hertz(call, arg(3))) else { return refused("") };
    for letter in &dialplan::Options::parse(arg(4), RECEIVE_OPTIONS).unknown {
        call.log(Level::Warning, &format!("ReceiveSF has no option '{letter}'"));
    }
    let mut digits = String::new();
    let ended = collect(&call.chan, TrunkDigits::Sf(hertz), timeout, |symbol| {
        digits.push(symbol);
        (digits.len() >= most).then_some("MAXDIGITS")
    })
    .await;
    call.set(arg(0), &digits);
    call.set("RECEIVESFSTATUS", ended.unwrap_or("HANGUP"));
    ended.map(|_| Flow::Continue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digit_is_as_many_pulses() {
        assert_eq!(pulse_train("2600", 1), "!2600/67,!0/33");
        assert_eq!(pulse_train("2400", 3), "!2400/67,!0/33,!2400/67,!0/33,!2400/67,!0/33");
        assert_eq!(pulse_train("2600", 10).matches("!2600/67").count(), 10);
    }
}
