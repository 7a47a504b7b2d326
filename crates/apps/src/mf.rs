//! Digits of R1 trunks (ITU-T Q.320, Q.323): `SendMF` and `ReceiveMF`. KP is `*`, ST `#`, STP, ST2P and ST3P are `A`, `B`, `C`.

use core::time::Duration;

use base::{Command, Digit, TrunkDigits};
use call::{Chan, ChanEvent, DIGIT_MAX_MS, DIGIT_MIN_MS, Level, Stop};

use crate::call_ctx::args;
use crate::dtmf::target;
use crate::flow::rows;
use crate::{AppRow, Call, Flow, Outcome, Run};

/// Most symbols of one string; the rest is not sent. Numbers of trunks have at most fifteen digits.
const SYMBOLS_MAX: usize = 256;
/// Most digits that one call of ReceiveMF collects.
const COLLECTED_MAX: usize = 256;
/// Option letters of ReceiveMF.
pub(crate) const RECEIVE_OPTIONS: &str = "dlkmnoqrs";

pub(crate) const ROWS: &[AppRow] = rows! {
    "SendMF" "app_mf" Run::Story(|call, text| Box::pin(async move { send_mf(&call, &text).await })),
        "Sends digits of R1 trunks.", "SendMF(digits[,between[,duration[,kp[,st[,channel]]]]])",
        "Digits are 0-9, '*' (KP), '#' (ST), 'A' (STP), 'B' (ST2P) and 'C' (ST3P); 'w' waits half a second, 'h' and 'H' are\n\
         250 ms of 2600 Hz, 'f' and 'F' are a hook flash, 'W' is a wink where the line can. Does not answer.\n\n\
         between   gap between digits, milliseconds (50).\n\
         duration  length of a digit (55), kp of KP (120), st of the ST digits (65).\n\
         channel   the channel to send on, instead of this one.";
    "ReceiveMF" "app_mf" Run::Story(|call, text| Box::pin(async move { receive_mf(&call, &text).await })),
        "Collects digits of R1 trunks.", "ReceiveMF(variable[,timeout[,options]])",
        "Collects digits from KP on to one of the ST digits, for at most timeout seconds, which may have a fraction. Does not\n\
         answer.\n\n\
         options:\n  \
         l     digits count although no KP came.\n  \
         k     KP is not in the result.\n  \
         s     ST is not in the result.\n  \
         o     a further KP clears what was collected.\n  \
         n(x)  ends after x digits.\n  \
         d m q r  have no effect: nothing is passed on while it listens, and no detection is stricter than another.\n\
         Sets RECEIVEMFSTATUS (START MAXDIGITS TIMEOUT HANGUP ERROR).";
};

/// How long the tones of a string last, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub(crate) between: u16,
    pub(crate) digit: u16,
    pub(crate) kp: u16,
    pub(crate) st: u16,
}

impl Default for Lengths {
    fn default() -> Self {
        Self { between: 50, digit: 55, kp: 120, st: 65 }
    }
}

impl Lengths {
    fn of(self, symbol: char) -> u16 {
        let ms = match symbol {
            '*' => self.kp,
            '#' | 'A' | 'B' | 'C' => self.st,
            _ => self.digit,
        };
        ms.clamp(1, DIGIT_MAX_MS)
    }
}

/// The two tones of a digit, hertz.
fn tones(symbol: char) -> Option<(u16, u16)> {
    Some(match symbol {
        '1' => (700, 900),
        '2' => (700, 1100),
        '3' => (900, 1100),
        '4' => (700, 1300),
        '5' => (900, 1300),
        '6' => (1100, 1300),
        '7' => (700, 1500),
        '8' => (900, 1500),
        '9' => (1100, 1500),
        '0' => (1300, 1500),
        '*' => (1100, 1700),
        '#' => (1500, 1700),
        'A' => (900, 1700),
        'B' => (1300, 1700),
        'C' => (700, 1700),
        _ => return None,
    })
}

async fn send_mf(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let arg = |index: usize| args::nth(&parts, index).trim();
    if arg(0).is_empty() {
        call.log(Level::Warning, "SendMF requires an argument");
        return Ok(Flow::Continue);
    }
    let usual = Lengths::default();
    let ms = |index: usize, usual: u16| arg(index).parse().ok().filter(|ms| *ms > 0).unwrap_or(usual);
    let lengths = Lengths {
        between: ms(1, usual.between),
        digit: ms(2, usual.digit),
        kp: ms(3, usual.kp),
        st: ms(4, usual.st),
    };
    let Some(target) = target(call, arg(5)) else { return Ok(Flow::Continue) };
    send(&call.chan, &target, arg(0), lengths).await?;
    Ok(Flow::Continue)
}

/// Sends a string to `to` while the story of `waits` waits; ends early when either is gone.
pub(crate) async fn send(waits: &Chan, to: &Chan, text: &str, lengths: Lengths) -> Result<(), Stop> {
    for symbol in text.chars().take(SYMBOLS_MAX) {
        waits.check()?;
        if to.with(|c| c.hangup.is_some()) != Ok(false) {
            return Ok(());
        }
        match symbol {
            'w' => waits.wait(Duration::from_millis(500)).await?,
            'h' | 'H' => sound(waits, to, "2600", 250, lengths.between).await?,
            'f' | 'F' => to.send_digit(Digit::FLASH, DIGIT_MIN_MS),
            'W' => to.log(Level::Debug(1), "SendMF", "no line here can wink"),
            _ => match tones(symbol.to_ascii_uppercase()) {
                Some((low, high)) => {
                    let length = lengths.of(symbol.to_ascii_uppercase());
                    sound(waits, to, &format!("{low}+{high}"), length, lengths.between).await?;
                }
                None => {
                    to.log(Level::Warning, "SendMF", &format!("Illegal MF character '{symbol}' in string"));
                }
            },
        }
    }
    Ok(())
}

/// Most digits of a string that is sent without waiting: the parts of one tone hold no more.
const QUEUED_MAX: usize = 30;

/// Sends a string without waiting; what is no digit is left out.
pub(crate) fn queue(to: &Chan, text: &str) {
    let lengths = Lengths::default();
    let sounds = text.chars().map(|symbol| symbol.to_ascii_uppercase()).filter_map(|symbol| {
        let (low, high) = tones(symbol)?;
        Some(format!("!{low}+{high}/{},!0/{}", lengths.of(symbol), lengths.between))
    });
    let script = sounds.take(QUEUED_MAX).collect::<Vec<_>>().join(",");
    if !script.is_empty() {
        to.start_tone(&script);
    }
}

/// Sends one digit for so many milliseconds; `false` when it is none.
pub fn play(to: &Chan, symbol: char, ms: u16) -> bool {
    let Some((low, high)) = tones(symbol.to_ascii_uppercase()) else { return false };
    to.start_tone(&format!("!{low}+{high}/{}", ms.clamp(DIGIT_MIN_MS, DIGIT_MAX_MS)))
}

pub(crate) async fn sound(waits: &Chan, to: &Chan, tones: &str, ms: u16, between: u16) -> Result<(), Stop> {
    to.start_tone(&format!("!{tones}/{ms},!0/{between}"));
    waits.wait(Duration::from_millis(u64::from(ms) + u64::from(between))).await
}

/// What has been collected, and by which rules.
struct Collected {
    digits: String,
    begun: bool,
    keeps_kp: bool,
    keeps_st: bool,
    overrides: bool,
    most: usize,
}

impl Collected {
    /// Nothing yet, by the options of ReceiveMF.
    fn by(options: &dialplan::Options) -> Self {
        let most = options.arg('n').and_then(|most| most.trim().parse().ok()).filter(|most| *most > 0);
        Self {
            digits: String::new(),
            begun: options.has('l'),
            keeps_kp: !options.has('k'),
            keeps_st: !options.has('s'),
            overrides: options.has('o'),
            most: most.unwrap_or(COLLECTED_MAX).min(COLLECTED_MAX),
        }
    }
    /// Takes a digit; why it is over with it.
    fn take(&mut self, symbol: char) -> Option<&'static str> {
        match symbol {
            '*' => {
                if self.overrides && self.begun {
                    self.digits.clear();
                }
                self.begun = true;
                if self.keeps_kp {
                    self.digits.push(symbol);
                }
            }
            _ if !self.begun => return None,
            '#' | 'A' | 'B' | 'C' => {
                if self.keeps_st {
                    self.digits.push(symbol);
                }
                return Some("START");
            }
            _ => self.digits.push(symbol),
        }
        (self.digits.len() >= self.most).then_some("MAXDIGITS")
    }
}

/// Looks for digits of trunks until it is dropped, however the application ends.
struct Listening<'a>(&'a Chan);

impl<'a> Listening<'a> {
    fn to(chan: &'a Chan, digits: TrunkDigits) -> Self {
        chan.media(|stream| Command::DetectTrunkDigits { stream, digits: Some(digits) });
        Self(chan)
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.media(|stream| Command::DetectTrunkDigits { stream, digits: None });
    }
}

/// Collects digits that are sent in this way until `take` says why it is over with one, or `TIMEOUT`.
pub(crate) async fn collect(
    chan: &Chan,
    digits: TrunkDigits,
    timeout: Option<Duration>,
    mut take: impl FnMut(char) -> Option<&'static str>,
) -> Result<&'static str, Stop> {
    let deadline = timeout.map(|timeout| chan.now() + timeout);
    let _listening = Listening::to(chan, digits);
    loop {
        match chan.event(deadline).await? {
            Some(ChanEvent::Digit { digit, .. }) => {
                if let Some(why) = take(digit.to_char()) {
                    return Ok(why);
                }
            }
            Some(_) => {}
            None => return Ok("TIMEOUT"),
        }
    }
}

/// How long to listen: `None` for ever; what is no number is said and `Err`.
pub(crate) fn timeout(call: &Call, text: &str) -> Result<Option<Duration>, ()> {
    match text.trim() {
        "" => Ok(None),
        text => match args::seconds(text) {
            Some(timeout) => Ok(Some(timeout).filter(|timeout| !timeout.is_zero())),
            None => {
                call.log(Level::Warning, &format!("Invalid timeout: {text}"));
                Err(())
            }
        },
    }
}

async fn receive_mf(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let variable = args::nth(&parts, 0).trim();
    if variable.is_empty() {
        call.log(Level::Warning, "ReceiveMF requires an argument (variable)");
        call.set("RECEIVEMFSTATUS", "ERROR");
        return Ok(Flow::Continue);
    }
    let Ok(timeout) = timeout(call, args::nth(&parts, 1)) else {
        call.set("RECEIVEMFSTATUS", "ERROR");
        return Ok(Flow::Continue);
    };
    let options = dialplan::Options::parse(args::nth(&parts, 2), RECEIVE_OPTIONS);
    for letter in &options.unknown {
        call.log(Level::Warning, &format!("ReceiveMF has no option '{letter}'"));
    }
    let mut collected = Collected::by(&options);
    let ended = collect(&call.chan, TrunkDigits::Mf, timeout, |symbol| collected.take(symbol)).await;
    call.set(variable, &collected.digits);
    call.set("RECEIVEMFSTATUS", ended.unwrap_or("HANGUP"));
    ended.map(|_| Flow::Continue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_collected_from_kp_to_st_as_the_options_say() {
        for (name, options, came, expected) in [
            ("all of it", "", "5*009#", ("*009#", Some("START"))),
            ("a digit before KP counts with l", "l", "5*009#", ("5*009#", Some("START"))),
            ("a further KP is a digit", "", "*009*4#", ("*009*4#", Some("START"))),
            ("a further KP clears with o", "kos", "*009*987#", ("987", Some("START"))),
            ("any ST ends it", "s", "*12B", ("*12", Some("START"))),
            ("so many digits", "kn(3)", "*12345#", ("123", Some("MAXDIGITS"))),
            ("nothing ends it", "", "*12", ("*12", None)),
        ] {
            let options = dialplan::Options::parse(options, RECEIVE_OPTIONS);
            let mut collected = Collected::by(&options);
            let why = came.chars().find_map(|symbol| collected.take(symbol));
            assert_eq!((&*collected.digits, why), expected, "{name}");
        }
    }

    #[test]
    fn q320_every_digit_has_a_pair_of_tones_of_its_own() {
        let pairs: Vec<_> = "1234567890*#ABC".chars().filter_map(tones).collect();
        assert_eq!(pairs.len(), 15);
        let mut unique = pairs.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), pairs.len());
    }
}
