//! Commands that send and receive text.

use core::time::Duration;

use call::{ChanEvent, Stop};

use super::super::table::{Desk, Reply, Replying};
use super::word;

pub(in super::super) fn send_text(desk: &Desk, words: &[String]) -> Reply {
    if let Err(stop) = desk.call.chan.check() {
        return Err(stop).into();
    }
    let (id, text) = (desk.call.chan.id(), word(words, 0));
    desk.call.chan.shard().with_tech(id, |tech, core| tech.send_text(core, id, text));
    Reply::number(0)
}

/// The next text, within so many milliseconds; 0 and less: for ever.
async fn text(desk: &Desk, timeout: i64) -> Result<Option<String>, Stop> {
    let wait = u64::try_from(timeout).ok().filter(|ms| *ms > 0).map(Duration::from_millis);
    let deadline = wait.map(|wait| desk.call.chan.now() + wait);
    loop {
        match desk.call.chan.event(deadline).await? {
            Some(ChanEvent::Text(text)) => return Ok(Some(text.body)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
}

pub(in super::super) fn receive_char(desk: Desk, words: Vec<String>) -> Replying {
    Box::pin(async move {
        let Ok(timeout) = word(&words, 0).parse() else { return Reply::Usage };
        Reply::Result(match text(&desk, timeout).await {
            Ok(Some(text)) => text.chars().next().map_or(0, u32::from).to_string(),
            // The field tells no end of waiting from the end of the call.
            Ok(None) => "-1 (hangup)".to_owned(),
            Err(_) => "-1 (hangup)".to_owned(),
        })
    })
}

pub(in super::super) fn receive_text(desk: Desk, words: Vec<String>) -> Replying {
    Box::pin(async move {
        let Ok(timeout) = word(&words, 0).parse() else { return Reply::Usage };
        match text(&desk, timeout).await {
            Ok(Some(text)) => Reply::value(Some(text)),
            Ok(None) | Err(_) => Reply::number(-1),
        }
    })
}
