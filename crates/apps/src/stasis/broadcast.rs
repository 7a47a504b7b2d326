//! `StasisBroadcast`: a call is offered to several programs, and the first that claims it has it.

use core::time::Duration;
use std::rc::Rc;

use base::ChannelId;
use call::stasis::{BROADCAST_MS_MAX, StasisError};
use call::{Level, Shard};
use dialplan::ere::Regex;

use crate::call_ctx::args;
use crate::{Call, Flow, Outcome};

/// How long programs have when nothing is said, milliseconds.
const WITHIN_MS: u64 = 500;
/// Longest expression that names of programs are held against, bytes.
const REGEX_BYTES_MAX: usize = 256;

/// What the application is told.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    within: Duration,
    regex: Option<String>,
    args: Vec<String>,
    tells_claimed: bool,
}

impl Wanted {
    /// Reads the arguments; what is bad gives way to its default, of which a line is returned.
    fn parse(text: &str) -> (Self, Vec<String>) {
        let parts = args::split(text);
        let mut said = Vec::new();
        let part = |at: usize| args::nth(&parts, at).trim().to_owned();
        let within = match part(0).as_str() {
            "" => WITHIN_MS,
            text => match text.parse() {
                Ok(ms) if ms <= BROADCAST_MS_MAX => ms,
                _ => {
                    said.push(format!(
                        "'{text}' is no timeout of 0 to {BROADCAST_MS_MAX} ms; it is {WITHIN_MS}"
                    ));
                    WITHIN_MS
                }
            },
        };
        let regex = match part(1) {
            text if text.is_empty() => None,
            text if text.len() > REGEX_BYTES_MAX || Regex::new(&text).is_err() => {
                said.push(format!("'{text}' is no expression that can be used; all programs hear"));
                None
            }
            text => Some(text),
        };
        let args = part(2);
        let args = if args.is_empty() { Vec::new() } else { args.split(':').map(str::to_owned).collect() };
        let tells_claimed = conf::boolean(&part(3)).unwrap_or(false);
        (Self { within: Duration::from_millis(within), regex, args, tells_claimed }, said)
    }
    /// Whether a program of this name is offered the call.
    fn fits(&self, app: &str) -> bool {
        self.regex.as_deref().is_none_or(|regex| Regex::new(regex).is_ok_and(|regex| regex.is_match(app)))
    }
}

pub(super) async fn broadcast(call: &Call, text: &str) -> Outcome {
    let (wanted, said) = Wanted::parse(text);
    said.iter().for_each(|line| call.log(Level::Warning, line));
    call.settle();
    call.set("STASISSTATUS", "");
    let id = call.chan.id();
    let offered = call.chan.core(|core| core.stasis_offer(id, |app| wanted.fits(app)));
    let left = offer(call, &wanted, &offered).await;
    call.chan.core(|core| core.stasis_offered(id));
    left
}

/// Waits for a program that claims it, and gives it to that.
async fn offer(call: &Call, wanted: &Wanted, offered: &[Rc<str>]) -> Outcome {
    let id = call.chan.id();
    let until = call.chan.now() + wanted.within;
    let app = loop {
        if let Some(app) = call.chan.core(|core| core.stasis_winner(id)) {
            break app;
        }
        if call.chan.now() >= until {
            call.set("STASISSTATUS", "TIMEOUT");
            return Ok(Flow::Continue);
        }
        call.chan.event(Some(until)).await?;
    };
    if wanted.tells_claimed {
        call.chan.core(|core| core.stasis_tell_claimed(id, offered, &app));
    }
    super::visit(call, &app, wanted.args.clone()).await
}

/// A program claims a call that is offered to it.
///
/// Errors: the call is not offered (`NotFound`), another program, or this, has claimed it (`Conflict`).
pub fn claim(shard: &Rc<Shard>, channel: &str, app: &str) -> Result<(), StasisError> {
    let mut core = shard.core.borrow_mut();
    let id: ChannelId = core.stasis_channel(channel)?;
    core.stasis_claim(id, app)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_bad_gives_way_to_its_default() {
        for (text, within, regex, args, tells, said) in [
            ("", 500, None, "", false, 0),
            ("2000,^ivr,a:b,yes", 2000, Some("^ivr"), "a b", true, 0),
            ("0", 0, None, "", false, 0),
            ("60001", 500, None, "", false, 1),
            ("soon", 500, None, "", false, 1),
            (",(", 500, None, "", false, 1),
            (",,,perhaps", 500, None, "", false, 0),
        ] {
            let (wanted, lines) = Wanted::parse(text);
            let ms = wanted.within.as_millis();
            let found =
                (ms, wanted.regex.as_deref(), wanted.args.join(" "), wanted.tells_claimed, lines.len());
            assert_eq!(found, (within, regex, args.to_owned(), tells, said), "{text}");
        }
        let (wanted, said) = Wanted::parse(&format!(",{}", "a".repeat(257)));
        assert_eq!((wanted.regex, said.len()), (None, 1));
        let (wanted, _) = Wanted::parse(",^(sales|help)[0-9]+$");
        let fits: Vec<bool> =
            ["sales1", "help22", "help", "xsales1"].iter().map(|app| wanted.fits(app)).collect();
        assert_eq!(fits, [true, true, false, false]);
    }
}
