//! RECORD FILE.

use core::time::Duration;

use base::{Command, Digit};
use call::{Chan, ChanEvent, Level, Progress, Stop};

use super::super::table::{Desk, Reply, Replying};
use super::word;
use crate::listen::SILENCE_THRESHOLD;

/// How often it is asked whether the file can still be written.
const FAILURE_EVERY: Duration = Duration::from_secs(1);

struct Plan {
    escapes: String,
    /// `None`: no limit.
    longest: Option<Duration>,
    silence_ms: u32,
    beep: bool,
}

/// Why it ended.
enum End {
    Digit(Digit),
    Timeout,
    Failed,
}

fn plan(words: &[String]) -> Option<Plan> {
    let timeout: i64 = word(words, 3).trim().parse().ok()?;
    let mut plan = Plan {
        escapes: word(words, 2).to_ascii_uppercase(),
        longest: u64::try_from(timeout).ok().filter(|ms| *ms > 0).map(Duration::from_millis),
        silence_ms: 0,
        beep: false,
    };
    for option in words.iter().skip(4) {
        if option.eq_ignore_ascii_case("beep") {
            plan.beep = true;
        } else if let Some(seconds) = option.strip_prefix("s=").or_else(|| option.strip_prefix("S=")) {
            let seconds = crate::call_ctx::args::seconds(seconds)?;
            plan.silence_ms = u32::try_from(seconds.as_millis()).unwrap_or(u32::MAX);
        } else {
            // The place in the file to begin at: recordings begin anew.
            option.parse::<u64>().ok()?;
        }
    }
    Some(plan)
}

pub(in super::super) fn record_file(desk: Desk, words: Vec<String>) -> Replying {
    Box::pin(async move {
        let Some(plan) = plan(&words) else { return Reply::Usage };
        let chan = &desk.call.chan;
        if plan.beep && chan.play("beep", "").await.is_err() {
            return Reply::Result("-1 (hangup) endpos=0".to_owned());
        }
        let (path, extension) = (word(&words, 0), word(&words, 1));
        let opened = chan.core(|core| core.services.recorder.open(path, extension, false));
        let take = match opened {
            Ok(take) => take,
            Err(why) => {
                desk.call.log(Level::Warning, &format!("RECORD FILE cannot write {path}.{extension}: {why}"));
                return Reply::Result("-1 (writefile) endpos=0".to_owned());
            }
        };
        let began = chan.now();
        let call::Take { sink, format, afterwards: _, progress } = take;
        chan.media(|stream| Command::Record { stream, format, sink });
        if plan.silence_ms > 0 {
            let ms = plan.silence_ms;
            chan.media(|stream| Command::WatchSilence { stream, ms, threshold: SILENCE_THRESHOLD });
        }
        let ended = until(chan, &plan, &progress).await;
        chan.media(|stream| Command::WatchSilence { stream, ms: 0, threshold: SILENCE_THRESHOLD });
        chan.media(|stream| Command::StopRecord { stream });
        let samples = (chan.now() - began).as_millis() * 8;
        Reply::Result(match ended {
            Ok(End::Digit(digit)) => format!("{} (dtmf) endpos={samples}", u32::from(digit.to_char())),
            Ok(End::Timeout) => format!("0 (timeout) endpos={samples}"),
            Ok(End::Failed) => format!("-1 (writefile) endpos={samples}"),
            Err(_) => format!("-1 (hangup) endpos={samples}"),
        })
    })
}

async fn until(chan: &Chan, plan: &Plan, progress: &Progress) -> Result<End, Stop> {
    let deadline = plan.longest.map(|longest| chan.now() + longest);
    loop {
        let look_at = chan.now() + FAILURE_EVERY;
        match chan.event(Some(deadline.map_or(look_at, |deadline| deadline.min(look_at)))).await? {
            None if progress.failure().is_some() => return Ok(End::Failed),
            None if deadline.is_some_and(|deadline| deadline <= chan.now()) => return Ok(End::Timeout),
            Some(ChanEvent::Silence(_)) if plan.silence_ms > 0 => return Ok(End::Timeout),
            Some(ChanEvent::Digit { digit, .. }) if plan.escapes.contains(digit.to_char()) => {
                return Ok(End::Digit(digit));
            }
            Some(_) | None => {}
        }
    }
}
