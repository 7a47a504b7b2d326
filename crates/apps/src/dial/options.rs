//! The option letters of Dial, typed.

use core::time::Duration;

/// Letters that Asterisk knows and this build does not act on; `check` and the log name them.
pub const UNSUPPORTED_OPTIONS: &str = "tTkKwWxXpPnNMOQaCEIijsuvyz";

/// Typed options.
#[derive(Debug, Clone, Default)]
pub struct DialOptions {
    pub(crate) announce: Option<(String, String)>,
    pub(crate) callee_routine: Option<String>,
    pub(crate) caller_routine: Option<String>,
    pub(crate) dtmf: Option<(String, String, String)>,
    pub(crate) h_exten: bool,
    pub(crate) force_caller_id: Option<String>,
    pub(crate) original_caller_id: Option<String>,
    pub(crate) callee_goes_on: Option<String>,
    pub(crate) go_on: bool,
    pub(crate) both_go_to: Option<String>,
    pub(crate) callee_hangs_up: bool,
    pub(crate) caller_hangs_up: bool,
    pub(crate) limit: Option<Limit>,
    pub(crate) music: Option<String>,
    pub(crate) ring: Option<String>,
    pub(crate) ring_until_audio: bool,
    pub(crate) stop_after: Option<Duration>,
    pub(crate) answered_routine: Option<String>,
    pub(crate) digit_exit: bool,
    pub(crate) answered_elsewhere: bool,
    unsupported: String,
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
        let mut options = Self::default();
        for (letter, argument) in crate::args::options(text)? {
            let argument = argument.unwrap_or_default();
            let routine = || argument.replace('^', ",");
            match letter {
                'A' => {
                    let (callee, caller) = argument.split_once(':').unwrap_or((&argument, ""));
                    options.announce = Some((callee.to_owned(), caller.to_owned()));
                }
                'b' => options.callee_routine = Some(routine()),
                'B' => options.caller_routine = Some(routine()),
                'c' => options.answered_elsewhere = true,
                'd' => options.digit_exit = true,
                'D' => {
                    let mut parts = argument.splitn(3, ':').map(str::to_owned);
                    let mut part = || parts.next().unwrap_or_default();
                    options.dtmf = Some((part(), part(), part()));
                }
                'e' => options.h_exten = true,
                'f' => options.force_caller_id = Some(argument),
                'F' => options.callee_goes_on = Some(routine()),
                'g' => options.go_on = true,
                'G' => options.both_go_to = Some(routine()),
                'h' => options.callee_hangs_up = true,
                'H' => options.caller_hangs_up = true,
                'L' => options.limit = Some(limit(&argument)?),
                'm' => options.music = Some(argument),
                'o' => options.original_caller_id = Some(argument),
                'r' => options.ring = Some(argument),
                'R' => options.ring_until_audio = true,
                'S' => options.stop_after = Some(seconds(&argument)?),
                'U' => options.answered_routine = Some(answered_routine(&argument)),
                other if UNSUPPORTED_OPTIONS.contains(other) => options.unsupported.push(other),
                other => return Err(format!("Dial has no option '{other}'")),
            }
        }
        Ok(options)
    }
    /// Letters that were given and have no effect.
    pub fn unsupported(&self) -> impl Iterator<Item = char> + '_ {
        self.unsupported.chars()
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let value = text.trim().parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    value.filter(|d| !d.is_zero()).ok_or_else(|| format!("Dial option S wants seconds, not '{text}'"))
}

fn limit(text: &str) -> Result<Limit, String> {
    let mut parts = text.split(':').map(|part| part.trim().parse::<u64>().ok().map(Duration::from_millis));
    let mut part = || parts.next().flatten().unwrap_or_default();
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
            DialOptions::parse("trgU(sub^a^b)L(60000:20000:5000)m(jazz)D(12:34)G(ctx^1^2)").unwrap();
        assert_eq!(options.unsupported().collect::<String>(), "t");
        assert!(options.go_on && options.ring.is_some());
        assert_eq!(options.answered_routine.as_deref(), Some("sub,s,1(a,b)"));
        assert_eq!(options.both_go_to.as_deref(), Some("ctx,1,2"));
        assert_eq!(options.music.as_deref(), Some("jazz"));
        let limit = options.limit.unwrap();
        assert_eq!(
            (limit.whole.as_secs(), limit.warn_before.as_secs(), limit.warn_every.as_secs()),
            (60, 20, 5)
        );
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        for (text, word) in [("L(abc)", "L"), ("S(0)", "S"), ("%", "%"), ("L", "L")] {
            assert!(DialOptions::parse(text).unwrap_err().contains(word), "{text}");
        }
    }
}
