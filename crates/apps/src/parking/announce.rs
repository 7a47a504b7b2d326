//! ParkAndAnnounce: somebody else hears where a call is parked.

use core::time::Duration;

use call::parking::dial_string;
use call::{Chan, ChanEvent, Leg, Level, Request, Stop};

use super::{Asked, ParkOptions, failed, give_space};
use crate::{Call, Flow, Outcome, say};

/// How long whoever hears the announcement may ring.
const RING: Duration = Duration::from_secs(30);

pub(super) async fn park(call: &Call, text: &str) -> Outcome {
    let parts = dialplan::split_args(text);
    let part = |from_end: usize| {
        parts
            .len()
            .checked_sub(from_end)
            .and_then(|at| parts.get(at))
            .map_or("", |part| part.trim())
            .to_owned()
    };
    let (target, template) = (part(1), part(2));
    if target.is_empty() || template.is_empty() {
        call.log(Level::Error, "ParkAndAnnounce wants sounds and whom to dial");
        return Ok(Flow::Hangup);
    }
    // Options may hold commas in parentheses, and both may be left out.
    let before = parts.len() - 2;
    let lot = if before > 0 { parts.first().map_or("", |lot| lot.trim()) } else { "" };
    let options = parts.get(1..before).map(|options| options.join(",")).unwrap_or_default();
    let asked = Asked {
        lot: lot.to_owned(),
        options: ParkOptions { silent: true, ..ParkOptions::parse(call, &options) },
    };
    call.chan.answer()?;
    let parker = call.get("BLINDTRANSFER").filter(|name| !name.is_empty());
    let parker = dial_string(&parker.unwrap_or_else(|| call.chan.name().to_string()));
    let (space, mut stay) = match give_space(call, &call.chan, &asked, parker) {
        Ok(given) => given,
        Err(why) => return failed(call, &asked, &why).await,
    };
    call.set("PARKEDAT", &space.to_string());
    announce(call, &target, &template, space).await?;
    Err(stay.wait().await)
}

/// Calls who is to hear it; the rest is that one's story.
async fn announce(call: &Call, target: &str, template: &str, space: u32) -> Result<(), Stop> {
    let chan = &call.chan;
    let (tech, resource) = target.split_once('/').unwrap_or((target, ""));
    chan.while_up(chan.shard().look_up(tech, resource)).await?;
    let request = Request {
        resource: resource.to_owned(),
        requestor: Some(chan.id()),
        caller: Some(chan.with(|c| c.caller.clone())?),
        formats: chan.with(|c| c.formats)?,
        variables: vec![("__PARKEDAT".to_owned(), space.to_string())],
        ..Request::default()
    };
    let called = chan.shard().request(tech, &request).map(|id| Leg::new(chan.shard().clone(), id));
    let called = called.and_then(|leg| {
        let id = leg.chan().id();
        let called = chan.shard().with_tech(id, |tech, core| tech.call(core, id));
        called.unwrap_or(Err(base::Cause::NORMAL_TEMPORARY_FAILURE)).map(|()| leg)
    });
    let leg = match called {
        Ok(leg) => leg,
        Err(cause) => {
            call.log(Level::Warning, &format!("nobody is told at {target}: {}", cause.text()));
            return Ok(());
        }
    };
    let files: Vec<String> = template
        .split(':')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .flat_map(
            |word| if word == "PARKED" { say::digits(&space.to_string()) } else { vec![word.to_owned()] },
        )
        .collect();
    let id = leg.chan().id();
    let story = async move {
        let _ = tell(leg.chan(), files).await;
    };
    chan.shard().spawn(Some(id), story);
    Ok(())
}

async fn tell(chan: &Chan, files: Vec<String>) -> Result<(), Stop> {
    let deadline = chan.now() + RING;
    loop {
        match chan.event(Some(deadline)).await? {
            Some(ChanEvent::Answered) => break,
            Some(_) => {}
            None => return Ok(()),
        }
    }
    say::play_all(&Call::new(chan.clone()), files, "").await.map(drop)
}
