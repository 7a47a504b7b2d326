//! Commands about the place in the dialplan.

use call::Level;

use super::super::table::{Desk, Reply, Replying};
use super::word;
use crate::Flow;
use crate::pbx::Place;

/// Stands at the same priority of another context or extension. The dialplan goes on after it, and watchers see the channel
/// there from then on.
fn elsewhere(desk: &Desk, context: Option<&str>, exten: Option<&str>) -> Reply {
    let at = desk.call.here().location();
    let (context, exten) = (context.unwrap_or(&at.context), exten.unwrap_or(&at.exten));
    desk.call.stand_at(Place::find(&desk.call, context, exten, at.priority));
    Reply::number(0)
}

pub(in super::super) fn context(desk: &Desk, words: &[String]) -> Reply {
    elsewhere(desk, Some(word(words, 0)), None)
}

pub(in super::super) fn extension(desk: &Desk, words: &[String]) -> Reply {
    elsewhere(desk, None, Some(word(words, 0)))
}

pub(in super::super) fn priority(desk: &Desk, words: &[String]) -> Reply {
    match desk.call.goes_on_at(word(words, 0)) {
        Ok(()) => {
            desk.moved.set(true);
            Reply::number(0)
        }
        Err(why) => {
            desk.call.log(Level::Warning, &format!("SET PRIORITY {}: {why}", word(words, 0)));
            Reply::Usage
        }
    }
}

pub(in super::super) fn gosub(desk: Desk, words: Vec<String>) -> Replying {
    Box::pin(async move {
        let [context, exten, priority] = [0, 1, 2].map(|index| word(&words, index));
        let place = format!("{context},{exten},{priority}");
        if desk.call.resolve(&place).is_err() || !desk.call.exists(context, exten) {
            return Reply::Result("-1 Gosub label not found".to_owned());
        }
        let target = match word(&words, 3) {
            "" => place,
            args => format!("{place}({args})"),
        };
        match desk.call.gosub(&target).await {
            Ok(Flow::Hangup) | Err(_) => {
                Reply::Lines("100 result=0 Trying...\n200 result=-1 Gosub failed\n".to_owned())
            }
            Ok(_) => Reply::Lines("100 result=0 Trying...\n200 result=0 Gosub complete\n".to_owned()),
        }
    })
}
