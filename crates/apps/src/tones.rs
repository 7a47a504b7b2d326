//! Tones with a meaning: Morse code, and what tells automatic diallers that a line is dead.

use core::time::Duration;

use call::{Chan, ChanState, Level, Stop};

use crate::flow::rows;
use crate::{AppRow, Call, Flow, Outcome, Run};

/// Milliseconds of a dot, and hertz, when nothing is said.
const DOT_MS: u32 = 80;
const HERTZ: u32 = 800;
/// Most symbols of one text: minutes of it.
const TEXT_MAX: usize = 256;
/// The special information tone "vacant circuit" (ITU-T E.180), and how long it lasts.
const SIT: &str = "950/330,1400/330,1800/330,0/1000";
const SIT_TIME: Duration = Duration::from_millis(1990);

pub(crate) const ROWS: &[AppRow] = rows! {
    "Morsecode" "app_morsecode" Run::Story(|call, text| Box::pin(async move { morse(&call, &text).await })),
        "Plays a text in Morse code.", "Morsecode(string)",
        "International code. MORSEDITLEN is the length of a dot in milliseconds (80), MORSETONE the pitch in hertz (800),\n\
         MORSESPACETONE that of pauses (0: silence). MORSETYPE=AMERICAN is not there: it is played in the international one.";
    "Zapateller" "app_zapateller" Run::Story(|call, text| Box::pin(async move { zapateller(&call, &text).await })),
        "Plays the tone of a number that does not exist.", "Zapateller([options])",
        "Plays the special information tone, by which automatic diallers give a number up. Words of options, with '|' or '&'\n\
         between them:\n  \
         answer      answers before.\n  \
         nocallerid  only for callers without a number.\n\
         Sets ZAPATELLERSTATUS (NOTHING ANSWERED ZAPPED).";
};

/// What a symbol sounds like; nothing for one without a sign.
fn sign(symbol: char) -> &'static str {
    match symbol.to_ascii_uppercase() {
        'A' => ".-",
        'B' => "-...",
        'C' => "-.-.",
        'D' => "-..",
        'E' => ".",
        'F' => "..-.",
        'G' => "--.",
        'H' => "....",
        'I' => "..",
        'J' => ".---",
        'K' => "-.-",
        'L' => ".-..",
        'M' => "--",
        'N' => "-.",
        'O' => "---",
        'P' => ".--.",
        'Q' => "--.-",
        'R' => ".-.",
        'S' => "...",
        'T' => "-",
        'U' => "..-",
        'V' => "...-",
        'W' => ".--",
        'X' => "-..-",
        'Y' => "-.--",
        'Z' => "--..",
        '0' => "-----",
        '1' => ".----",
        '2' => "..---",
        '3' => "...--",
        '4' => "....-",
        '5' => ".....",
        '6' => "-....",
        '7' => "--...",
        '8' => "---..",
        '9' => "----.",
        '.' => ".-.-.-",
        ',' => "--..--",
        '?' => "..--..",
        '\'' => ".----.",
        '!' => "-.-.--",
        '/' => "-..-.",
        '(' => "-.--.",
        ')' => "-.--.-",
        '&' => ".-...",
        ':' => "---...",
        ';' => "-.-.-.",
        '=' => "-...-",
        '+' => ".-.-.",
        '-' => "-....-",
        '_' => "..--.-",
        '"' => ".-..-.",
        '$' => "...-..-",
        '@' => ".--.-.",
        _ => "",
    }
}

/// A text as a list of tones, and how long it lasts (ITU-R M.1677: a dash is three dots, and so is the pause between
/// letters; that between words is seven).
fn tones(text: &str, dot_ms: u32, hertz: u32, pause_hertz: u32) -> (String, Duration) {
    let (mut list, mut whole) = (Vec::new(), 0);
    let mut add = |hertz: u32, dots: u32| {
        list.push(format!("{hertz}/{}", dots * dot_ms));
        whole += dots * dot_ms;
    };
    for symbol in text.chars().take(TEXT_MAX) {
        if symbol == ' ' {
            // Three of the seven are there since the letter before.
            add(pause_hertz, 4);
        }
        let sign = sign(symbol);
        for (n, mark) in sign.chars().enumerate() {
            if n > 0 {
                add(pause_hertz, 1);
            }
            add(hertz, if mark == '.' { 1 } else { 3 });
        }
        if !sign.is_empty() {
            add(pause_hertz, 3);
        }
    }
    (list.join(","), Duration::from_millis(whole.into()))
}

/// Ends a tone, however the application ends.
struct Playing<'a>(&'a Chan);

impl Drop for Playing<'_> {
    fn drop(&mut self) {
        self.0.stop_sound();
    }
}

/// Plays a list of tones once. Digits stay for whoever listens next.
async fn once(call: &Call, list: &str, time: Duration) -> Result<(), Stop> {
    if !call.chan.start_tone(list) {
        return Ok(());
    }
    let _playing = Playing(&call.chan);
    call.chan.wait_keeping(call.chan.now() + time, |_| false).await
}

async fn morse(call: &Call, text: &str) -> Outcome {
    if text.trim().is_empty() {
        call.log(Level::Warning, "Morsecode requires an argument (string)");
        return Ok(Flow::Continue);
    }
    let number = |name: &str, common: u32, most: u32| {
        let value = call.get(name).and_then(|value| value.trim().parse().ok());
        value.filter(|value| (1..=most).contains(value)).unwrap_or(common)
    };
    if call.get("MORSETYPE").is_some_and(|kind| kind.trim().eq_ignore_ascii_case("AMERICAN")) {
        call.log(Level::Warning, "MORSETYPE=AMERICAN is not there: the international code is played");
    }
    call.answer_for_sound().await?;
    let dot = number("MORSEDITLEN", DOT_MS, 1000);
    let (list, time) =
        tones(text.trim(), dot, number("MORSETONE", HERTZ, 3400), number("MORSESPACETONE", 0, 3400));
    if !list.is_empty() {
        once(call, &list, time).await?;
    }
    Ok(Flow::Continue)
}

async fn zapateller(call: &Call, text: &str) -> Outcome {
    let words: Vec<&str> =
        text.split(['|', '&', ',']).map(str::trim).filter(|word| !word.is_empty()).collect();
    for word in &words {
        if !["answer", "nocallerid"].iter().any(|known| known.eq_ignore_ascii_case(word)) {
            call.log(Level::Warning, &format!("Zapateller has no option '{word}'"));
        }
    }
    let has = |known: &str| words.iter().any(|word| word.eq_ignore_ascii_case(known));
    call.set("ZAPATELLERSTATUS", "NOTHING");
    let has_number = call.chan.with(|c| c.caller.number.as_ref().is_some_and(|number| !number.is_empty()))?;
    if has("nocallerid") && has_number {
        return Ok(Flow::Continue);
    }
    if call.chan.state() != ChanState::Up && has("answer") {
        call.answer_for_sound().await?;
        call.set("ZAPATELLERSTATUS", "ANSWERED");
    }
    once(call, SIT, SIT_TIME).await?;
    call.set("ZAPATELLERSTATUS", "ZAPPED");
    Ok(Flow::Continue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn itu_r_m1677_dashes_and_pauses_are_counted_in_dots() {
        for (text, expected, ms) in [
            ("E", "800/80,0/240", 320),
            ("a", "800/80,0/80,800/240,0/240", 640),
            ("E E", "800/80,0/240,0/320,800/80,0/240", 960),
            ("~", "", 0),
        ] {
            assert_eq!(tones(text, 80, 800, 0), (expected.to_owned(), Duration::from_millis(ms)), "{text}");
        }
        let all = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,?'!/()&:;=+-_\"$@";
        let mut signs: Vec<_> = all.chars().map(sign).collect();
        signs.sort_unstable();
        signs.dedup();
        assert_eq!(signs.len(), all.len(), "no two symbols have one sign");
        assert!(signs.iter().all(|sign| !sign.is_empty()));
    }
}
