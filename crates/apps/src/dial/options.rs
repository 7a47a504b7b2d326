//! The option letters of Dial, typed.

use core::time::Duration;

use base::Cause;
use call::Presentation;
use call::features::Rights;
use dialplan::Options;

use super::screening::Screens;

/// Letters that Asterisk knows and this build does not act on; `check` and the log name them.
pub const UNSUPPORTED_OPTIONS: &str = "jO";
/// Letters that Dial acts on.
pub(crate) const SUPPORTED_OPTIONS: &str = "aAbBcCdDeEfFgGhHiIkKLmMnNopPQrRsStTuUwWxXz";

/// Typed options.
#[derive(Debug, Clone, Default)]
pub struct DialOptions {
    pub(crate) announce: Option<(String, String)>,
    pub(crate) answer_at_once: bool,
    pub(crate) callee_routine: Option<String>,
    pub(crate) caller_routine: Option<String>,
    pub(crate) dtmf: Option<SendDigits>,
    pub(crate) h_exten: bool,
    pub(crate) echoes_digits: bool,
    pub(crate) force_caller_id: Option<String>,
    /// Tag and presentation of a forced caller id.
    pub(crate) forced_tag: Option<String>,
    pub(crate) forced_presentation: Option<Presentation>,
    pub(crate) original_caller_id: Option<String>,
    pub(crate) callee_goes_on: Option<String>,
    pub(crate) go_on: bool,
    pub(crate) both_go_to: Option<String>,
    /// What the calling and the called party may do with keys.
    pub(crate) caller_rights: Rights,
    pub(crate) callee_rights: Rights,
    pub(crate) limit: Option<Limit>,
    pub(crate) music: Option<String>,
    pub(crate) ring: Option<String>,
    pub(crate) ring_until_audio: bool,
    pub(crate) stop_after: Option<Duration>,
    pub(crate) answered_routine: Option<String>,
    /// Name of the macro and its arguments.
    pub(crate) answered_macro: Option<(String, String)>,
    pub(crate) digit_exit: bool,
    pub(crate) answered_elsewhere: bool,
    /// What legs are told when another has answered.
    pub(crate) elsewhere_cause: Cause,
    pub(crate) ignore_parties: bool,
    pub(crate) ignore_forwards: bool,
    pub(crate) forward_ends_timeout: bool,
    pub(crate) resets_record: bool,
    pub(crate) screens: Option<Screens>,
    pub(crate) forgets_names: bool,
    pub(crate) trusts_callers_with_number: bool,
    pub(crate) without_effect: Vec<(char, &'static str)>,
}

/// `D(called:calling:progress)`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SendDigits {
    pub(crate) to_callee: String,
    pub(crate) to_caller: String,
    pub(crate) on_progress: String,
    /// Digits of R1 that the called party is sent on its progress.
    pub(crate) mf_on_progress: String,
}

/// `L(x:y:z)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Limit {
    pub(crate) whole: Duration,
    pub(crate) warn_before: Duration,
    pub(crate) warn_every: Duration,
}

impl DialOptions {
    /// Parses option text. `Err` says what cannot be understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let known: String = [SUPPORTED_OPTIONS, UNSUPPORTED_OPTIONS].concat();
        let given = Options::parse(text, &known);
        // A letter without parentheses has an empty argument.
        let arg = |letter: char| given.has(letter).then(|| given.arg(letter).unwrap_or_default());
        let own = |letter: char| arg(letter).map(str::to_owned);
        let place = |letter: char| arg(letter).map(|text| text.replace('^', ","));
        let not_yet = UNSUPPORTED_OPTIONS.chars().filter(|letter| given.has(*letter));
        let without_effect = not_yet
            .map(|letter| (letter, why_without_effect(letter)))
            .chain(given.unknown.iter().map(|letter| (*letter, "does not exist and has no effect")))
            .collect();
        Ok(Self {
            announce: arg('A').map(|text| {
                let (callee, caller) = text.split_once(':').unwrap_or((text, ""));
                (callee.to_owned(), caller.to_owned())
            }),
            answer_at_once: given.has('a'),
            callee_routine: place('b'),
            caller_routine: place('B'),
            dtmf: arg('D').map(send_digits),
            h_exten: given.has('e'),
            echoes_digits: given.has('E'),
            force_caller_id: own('f'),
            forced_tag: own('s'),
            forced_presentation: arg('u').map(presentation).transpose()?,
            original_caller_id: own('o'),
            callee_goes_on: place('F'),
            go_on: given.has('g'),
            both_go_to: place('G'),
            caller_rights: rights(&given, "THXWK"),
            callee_rights: rights(&given, "thxwk"),
            limit: arg('L').map(limit).transpose()?,
            music: own('m'),
            ring: own('r'),
            ring_until_audio: given.has('R'),
            stop_after: arg('S').map(seconds).transpose()?,
            answered_routine: arg('U').map(answered_routine),
            answered_macro: arg('M').map(|text| {
                let (name, arguments) = text.split_once('^').unwrap_or((text, ""));
                (name.to_owned(), arguments.replace('^', ","))
            }),
            digit_exit: given.has('d'),
            answered_elsewhere: given.has('c'),
            elsewhere_cause: arg('Q').map_or(Ok(Cause::ANSWERED_ELSEWHERE), cause)?,
            ignore_parties: given.has('I'),
            ignore_forwards: given.has('i'),
            forward_ends_timeout: given.has('z'),
            resets_record: given.has('C'),
            screens: match given.has('P') {
                true => own('P').map(Screens::Remembers),
                false => given.has('p').then_some(Screens::Each),
            },
            forgets_names: given.has('n'),
            trusts_callers_with_number: given.has('N'),
            without_effect,
        })
    }
    /// Letters that were given and have no effect, with why.
    pub fn without_effect(&self) -> &[(char, &'static str)] {
        &self.without_effect
    }
}

/// What a party may do with keys, by the letters for transfers, ending, MixMonitor, Monitor and parking.
pub(crate) fn rights(given: &Options, letters: &str) -> Rights {
    let has = |place: usize| letters.chars().nth(place).is_some_and(|letter| given.has(letter));
    Rights { transfer: has(0), disconnect: has(1), mix_monitor: has(2), monitor: has(3), park: has(4) }
}

fn send_digits(text: &str) -> SendDigits {
    let mut parts = text.split(':').map(str::to_owned);
    let mut part = || parts.next().unwrap_or_default();
    SendDigits { to_callee: part(), to_caller: part(), on_progress: part(), mf_on_progress: part() }
}

/// Why a letter that Asterisk knows does nothing.
pub(crate) fn why_without_effect(letter: char) -> &'static str {
    match letter {
        'O' => "is for operators on telephony cards and has no effect",
        _ => "has no effect: legs are offered what the caller has",
    }
}

fn presentation(text: &str) -> Result<Presentation, String> {
    Presentation::parse(text.trim()).ok_or_else(|| {
        format!("Dial option u wants allowed, prohib, unavailable or allowed_passed_screen and the like, not '{text}'")
    })
}

fn cause(text: &str) -> Result<Cause, String> {
    if text.trim().eq_ignore_ascii_case("none") {
        return Ok(Cause::NONE);
    }
    Cause::parse(text)
        .ok_or_else(|| format!("Dial option Q wants a cause such as 17 or USER_BUSY, not '{text}'"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let value = text.trim().parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    value.filter(|d| !d.is_zero()).ok_or_else(|| format!("Dial option S wants seconds, not '{text}'"))
}

fn limit(text: &str) -> Result<Limit, String> {
    let mut parts =
        text.split(':').map(|part| part.trim().parse().map_or(Duration::ZERO, Duration::from_millis));
    let mut part = || parts.next().unwrap_or_default();
    let limit = Limit { whole: part(), warn_before: part(), warn_every: part() };
    if limit.whole.is_zero() {
        return Err(format!("Dial option L wants milliseconds, not '{text}'"));
    }
    // A warning longer before the end than the whole call is given at its beginning or not at all.
    let warn_before = if limit.warn_before > limit.whole { Duration::ZERO } else { limit.warn_before };
    Ok(Limit { warn_before, ..limit })
}

/// `U(x[^arg[^arg…]])`: context `x`, extension `s`, priority 1.
fn answered_routine(text: &str) -> String {
    let mut parts = text.split('^');
    let context = parts.next().unwrap_or_default();
    let arguments: Vec<&str> = parts.collect();
    format!("{context},s,1({})", arguments.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_letters_and_their_arguments_are_understood() {
        let options =
            DialOptions::parse("jkrTgU(sub^a^b)L(60000:20000:5000)m(jazz)D(12:34)G(ctx^1^2)M(m^x^y)")
                .unwrap();
        assert_eq!(options.without_effect(), [('j', "has no effect: legs are offered what the caller has")]);
        assert_eq!(options.answered_macro, Some(("m".to_owned(), "x,y".to_owned())));
        assert!(options.callee_rights.park && !options.caller_rights.park);
        assert!(options.caller_rights.transfer && !options.callee_rights.transfer);
        assert!(options.go_on && options.ring.is_some());
        assert_eq!(options.answered_routine.as_deref(), Some("sub,s,1(a,b)"));
        assert_eq!(options.both_go_to.as_deref(), Some("ctx,1,2"));
        assert_eq!(options.music.as_deref(), Some("jazz"));
        let digits = options.dtmf.unwrap();
        assert_eq!((digits.to_callee.as_str(), digits.to_caller.as_str()), ("12", "34"));
        let limit = options.limit.unwrap();
        assert_eq!(
            (limit.whole.as_secs(), limit.warn_before.as_secs(), limit.warn_every.as_secs()),
            (60, 20, 5)
        );
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        for (text, word) in [
            ("L(abc)", "L"),
            ("S(0)", "S"),
            ("L", "L"),
            ("S(-1)", "S"),
            ("Q(wrong)", "Q"),
            ("f(1)u(loud)", "u"),
        ] {
            assert!(DialOptions::parse(text).unwrap_err().contains(word), "{text}");
        }
        assert_eq!(
            DialOptions::parse("g%").unwrap().without_effect(),
            [('%', "does not exist and has no effect")]
        );
    }
}
