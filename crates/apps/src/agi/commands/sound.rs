//! Commands that play, speak and read digits.

use core::time::Duration;

use base::Digit;
use call::{Chan, Heard, Stop};
use dialplan::zone::Civil;

use super::super::table::{Desk, Reply, Replying};
use super::word;
use crate::control_playback::{self, Cursor};
use crate::say;

/// Digits that GET DATA reads when nothing is said.
const GET_DATA_DIGITS: usize = 1024;
/// How long GET OPTION waits after the sound when nothing is said.
const GET_OPTION_WAIT: Duration = Duration::from_secs(5);
const ANY_DIGIT: &str = "0123456789*#ABCD";

/// A digit as its code in answers.
fn code(digit: Digit) -> i64 {
    i64::from(u32::from(digit.to_char()))
}

/// Milliseconds of a word: 0 and what is no number count as not given.
fn millis(text: &str) -> Option<Duration> {
    text.trim().parse().ok().filter(|ms: &u64| *ms > 0).map(Duration::from_millis)
}

/// Escape digits as scripts write them: letters in any case.
fn escapes(text: &str) -> String {
    text.to_ascii_uppercase()
}

/// Plays from a place; the digit that ended it, and the samples of 8 kHz that were reached. `None`: no such sound.
async fn stream(chan: &Chan, file: &str, escapes: &str, from: u64) -> Result<Option<(i64, u64)>, Stop> {
    let Some(clip) = chan.clip(file).await? else { return Ok(None) };
    let cursor = Cursor::new(clip.clone(), 0);
    let whole = cursor.ms(clip.data.len());
    let start = cursor.bytes(from / 8).min(clip.data.len());
    Ok(match chan.play_clip(clip.without_beginning(), start, escapes).await? {
        Heard::Finished => Some((0, whole * 8)),
        Heard::Interrupted(digit, offset) => Some((code(digit), cursor.ms(offset) * 8)),
        Heard::Failed => Some((-1, from)),
    })
}

pub(in super::super) fn stream_file(desk: Desk, words: Vec<String>) -> Replying {
    Box::pin(async move {
        let from = match word(&words, 2) {
            "" => 0,
            text => match text.parse() {
                Ok(samples) => samples,
                Err(_) => return Reply::Usage,
            },
        };
        let played = stream(&desk.call.chan, word(&words, 0), &escapes(word(&words, 1)), from).await;
        if let Ok(Some((result, _))) = played {
            desk.call.set("PLAYBACKSTATUS", if result == 0 { "SUCCESS" } else { "FAILED" });
        }
        Reply::Result(match played {
            Ok(Some((result, samples))) => format!("{result} endpos={samples}"),
            Ok(None) => "-1 endpos=0".to_owned(),
            Err(_) => format!("-1 endpos={from}"),
        })
    })
}

pub(in super::super) fn control_stream(desk: Desk, words: Vec<String>) -> Replying {
    Box::pin(async move {
        let given = |index: usize| word(&words, index);
        let numbers = [given(2), given(6)];
        if numbers.iter().any(|text| !text.is_empty() && text.parse::<u64>().is_err()) {
            return Reply::Usage;
        }
        let usual = |index: usize, usual: &str| match given(index) {
            "" => usual.to_owned(),
            text => text.to_owned(),
        };
        let keys = [escapes(given(1)), given(5).to_owned(), String::new(), usual(3, "#"), usual(4, "*")];
        let played = control_playback::one(&desk.call, given(0), given(2), given(6), keys).await;
        Reply::Result(match played {
            Ok(Some((digit, Some(ms)))) => format!("{} endpos={ms}", digit.map_or(0, code)),
            Ok(Some((_, None))) => "0 endpos=-1".to_owned(),
            Ok(None) => "-1 endpos=0".to_owned(),
            Err(_) => "-1 endpos=0".to_owned(),
        })
    })
}

pub(in super::super) fn get_option(desk: Desk, words: Vec<String>) -> Replying {
    Box::pin(async move {
        let chan = &desk.call.chan;
        let wanted = escapes(word(&words, 1));
        let wait = millis(word(&words, 2)).unwrap_or(GET_OPTION_WAIT);
        let played = match stream(chan, word(&words, 0), &wanted, 0).await {
            Ok(Some(played)) => played,
            Ok(None) => return Reply::Result("0 endpos=0".to_owned()),
            Err(_) => return Reply::Result("-1 endpos=0".to_owned()),
        };
        let (mut result, samples) = played;
        if result == 0 {
            result = match chan.digit(wait).await {
                Ok(Some(digit)) if wanted.contains(digit.to_char()) => code(digit),
                Ok(_) => 0,
                Err(_) => -1,
            };
        }
        Reply::Result(format!("{result} endpos={samples}"))
    })
}

pub(in super::super) fn get_data(desk: Desk, words: Vec<String>) -> Replying {
    Box::pin(async move {
        let given: Option<i64> = match word(&words, 1) {
            "" => Some(0),
            text => text.parse().ok(),
        };
        let Some(timeout) = given else { return Reply::Usage };
        let most = match word(&words, 2) {
            "" => GET_DATA_DIGITS,
            text => match text.parse::<usize>() {
                Ok(most) => most.clamp(1, GET_DATA_DIGITS),
                Err(_) => return Reply::Usage,
            },
        };
        Reply::Result(match read_digits(&desk.call.chan, word(&words, 0), timeout, most).await {
            Ok((digits, true)) => digits,
            Ok((digits, false)) => format!("{digits} (timeout)"),
            Err(_) => "-1".to_owned(),
        })
    })
}

/// Digits up to `#`, or `most`; `false` when the time of one was over before.
async fn read_digits(chan: &Chan, file: &str, timeout: i64, most: usize) -> Result<(String, bool), Stop> {
    let own = chan.with(|c| (c.response_timeout_ms, c.digit_timeout_ms))?;
    let own = (Duration::from_millis(own.0.into()), Duration::from_millis(own.1.into()));
    // Below zero there is no end of waiting but the call's.
    const FOR_EVER: Duration = Duration::from_secs(1_000_000);
    let (first, further) = match u64::try_from(timeout) {
        Ok(0) => own,
        Ok(ms) => (Duration::from_millis(ms), Duration::from_millis(ms)),
        Err(_) => (FOR_EVER, FOR_EVER),
    };
    let mut digits = String::new();
    let mut pressed = match chan.play(file, ANY_DIGIT).await? {
        Heard::Interrupted(digit, _) => Some(digit),
        Heard::Finished | Heard::Failed => None,
    };
    loop {
        let digit = match pressed.take() {
            Some(digit) => Some(digit),
            None => chan.digit(if digits.is_empty() { first } else { further }).await?,
        };
        match digit.map(Digit::to_char) {
            None => return Ok((digits, false)),
            Some('#') => return Ok((digits, true)),
            Some(symbol) => digits.push(symbol),
        }
        if digits.len() >= most {
            return Ok((digits, true));
        }
    }
}

pub(in super::super) fn wait_for_digit(desk: Desk, words: Vec<String>) -> Replying {
    Box::pin(async move {
        let chan = &desk.call.chan;
        let Ok(timeout) = word(&words, 0).trim().parse::<i64>() else { return Reply::Usage };
        let pressed = match u64::try_from(timeout) {
            Ok(ms) => chan.digit(Duration::from_millis(ms)).await,
            Err(_) => loop {
                match chan.event(None).await {
                    Ok(Some(call::ChanEvent::Digit { digit, .. })) => break Ok(Some(digit)),
                    Ok(_) => {}
                    Err(stop) => break Err(stop),
                }
            },
        };
        pressed.map(|digit| digit.map_or(0, code)).into()
    })
}

/// Says files until an escape digit.
fn speak(desk: Desk, files: Vec<String>, escape_digits: &str) -> Replying {
    let wanted = escapes(escape_digits);
    Box::pin(async move {
        say::play_all(&desk.call, files, &wanted).await.map(|digit| digit.map_or(0, code)).into()
    })
}

fn usage() -> Replying {
    Box::pin(async { Reply::Usage })
}

pub(in super::super) fn say_alpha(desk: Desk, words: Vec<String>) -> Replying {
    speak(desk, say::spelled(word(&words, 0)), word(&words, 1))
}

pub(in super::super) fn say_phonetic(desk: Desk, words: Vec<String>) -> Replying {
    speak(desk, say::phonetic(word(&words, 0)), word(&words, 1))
}

pub(in super::super) fn say_digits(desk: Desk, words: Vec<String>) -> Replying {
    speak(desk, say::digits(word(&words, 0)), word(&words, 1))
}

pub(in super::super) fn say_number(desk: Desk, words: Vec<String>) -> Replying {
    match word(&words, 0).trim().parse::<i64>() {
        Ok(value) if value.unsigned_abs() <= u64::from(u32::MAX) => {
            let gender = say::Gender::of(word(&words, 2));
            Box::pin(async move {
                let spelt = say::words(&desk.call.chan, |tongue| say::number(tongue, value, gender)).await;
                match spelt {
                    Ok(files) => speak(desk, files, word(&words, 1)).await,
                    Err(stop) => Err(stop).into(),
                }
            })
        }
        _ => usage(),
    }
}

/// Says a moment in a format of `SayUnixTime`.
fn moment(desk: Desk, words: &[String], format: &str, zone: &str) -> Replying {
    let Ok(at) = word(words, 0).trim().parse::<i64>() else { return usage() };
    let (then, today) = desk.call.chan.core(|core| {
        let now = core.services.wall.now_micros().div_euclid(1_000_000);
        let civil = |at: i64| Civil::at(at, core.services.wall.offset(at, zone).seconds);
        (civil(at), civil(now))
    });
    let (format, escape_digits) = (format.to_owned(), word(words, 1).to_owned());
    Box::pin(async move {
        match say::moment_words(&desk.call.chan, then, today, &format).await {
            Ok(files) => speak(desk, files, &escape_digits).await,
            Err(stop) => Err(stop).into(),
        }
    })
}

pub(in super::super) fn say_date(desk: Desk, words: Vec<String>) -> Replying {
    let format = say::date_format(say::tongue_of(&desk.call.chan));
    moment(desk, &words, format, "")
}

pub(in super::super) fn say_time(desk: Desk, words: Vec<String>) -> Replying {
    let format = say::time_format(say::tongue_of(&desk.call.chan));
    moment(desk, &words, format, "")
}

pub(in super::super) fn say_datetime(desk: Desk, words: Vec<String>) -> Replying {
    moment(desk, &words, word(&words, 2), word(&words, 3))
}

pub(in super::super) fn set_music(desk: Desk, words: Vec<String>) -> Replying {
    Box::pin(async move {
        let chan = &desk.call.chan;
        if word(&words, 0).eq_ignore_ascii_case("on") {
            return chan.start_music(word(&words, 1)).await.map(|_| 0).into();
        }
        if word(&words, 0).eq_ignore_ascii_case("off") {
            chan.stop_music();
            return Reply::number(0);
        }
        Reply::Usage
    })
}
