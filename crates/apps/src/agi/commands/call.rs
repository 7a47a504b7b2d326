//! Commands about the call itself.

use core::time::Duration;

use base::Cause;
use call::Level;

use super::super::table::{Desk, Reply, Replying};
use super::word;
use crate::Flow;

pub(in super::super) fn answer(desk: &Desk, _: &[String]) -> Reply {
    desk.call.chan.answer().map(|()| 0).into()
}

/// The channel of a name, or this one.
fn channel(desk: &Desk, words: &[String]) -> Option<base::ChannelId> {
    match word(words, 0) {
        "" => Some(desk.call.chan.id()),
        name => desk.call.chan.core(|core| core.by_name(name)),
    }
}

pub(in super::super) fn status(desk: &Desk, words: &[String]) -> Reply {
    let state = channel(desk, words).and_then(|id| desk.call.chan.core(|core| core.get(id).map(|c| c.state)));
    Reply::number(state.map_or(-1, |state| i64::from(state as u8)))
}

pub(in super::super) fn hangup(desk: &Desk, words: &[String]) -> Reply {
    let Some(id) = channel(desk, words) else { return Reply::number(-1) };
    desk.call.chan.core(|core| core.soft_hangup(id, Cause::NORMAL_CLEARING, call::SoftHangup::Explicit));
    Reply::number(1)
}

pub(in super::super) fn autohangup(desk: &Desk, words: &[String]) -> Reply {
    let Ok(seconds) = word(words, 0).parse::<f64>() else { return Reply::Usage };
    let after = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
    desk.call.chan.core(|core| {
        let at = (!after.is_zero()).then(|| core.now + after);
        core.set_absolute_deadline(desk.call.chan.id(), at);
    });
    Reply::number(0)
}

pub(in super::super) fn callerid(desk: &Desk, words: &[String]) -> Reply {
    // Who pays for the call stays who it was.
    let party = call::PartyId::parse(word(words, 0));
    let chan = &desk.call.chan;
    let _ = chan.with(|channel| (channel.caller.name, channel.caller.number) = (party.name, party.number));
    chan.core(|core| core.notice_of(chan.id(), call::Notice::NewCallerId));
    Reply::number(1)
}

pub(in super::super) fn exec(desk: Desk, words: Vec<String>) -> Replying {
    Box::pin(async move {
        let (name, options) = (word(&words, 0), word(&words, 1));
        let call = &desk.call;
        let row = crate::table::lookup(name);
        if row.is_some_and(|row| row.module == "res_agi") {
            call.log(Level::Warning, &format!("EXEC {name}: one conversation at a time"));
            return Reply::number(-1);
        }
        let Some(outcome) = call.run_app(name, options).await else {
            call.log(Level::Warning, &format!("EXEC {name}: there is no such application"));
            return Reply::number(-2);
        };
        match outcome {
            Ok(Flow::Jumped) => {
                desk.moved.set(true);
                Reply::number(0)
            }
            // A digit that an application stopped at is the script's business.
            Ok(Flow::Digit(digit)) => Reply::number(i64::from(u32::from(digit.to_char()))),
            Ok(Flow::Continue | Flow::Incomplete) => Reply::number(0),
            Ok(Flow::Hangup) | Err(_) => Reply::number(-1),
        }
    })
}
