//! Call pickup: taking a call that rings at another phone, by group, by the number that was dialled, by channel.

use core::time::Duration;
use std::rc::Rc;

use base::{Cause, ChannelId};
use call::pickup::Ringing;
use call::{Level, Location, Shard, Stop};
use dialplan::Options;

use crate::call_ctx::args;
use crate::flow::rows;
use crate::{AppRow, Call, Flow, Outcome, Run, features, pbx};

/// How long the exchange may take: it comes at the next turn.
const SETTLE: Duration = Duration::from_secs(1);
/// Most calls that one step names.
const TARGETS_MAX: usize = 64;
/// The context that stands for a variable of the call instead.
const MARK: &str = "PICKUPMARK";

pub(crate) const ROWS: &[AppRow] = rows! {
    "Pickup" "app_directed_pickup" Run::Story(|call, text| Box::pin(async move { pickup(&call, &text).await })),
        "Takes a call that rings at another phone.", "Pickup([extension[@context][&extension2[@context2]...]])",
        "Takes the call of the first of these extensions that somebody dialled and that is not answered; the context is that\n\
         of the channel when none is named. With PICKUPMARK for context, the call that has this value in its variable\n\
         PICKUPMARK. Without arguments the call that has rung longest in the groups that the channel may take calls of:\n\
         pickup_group and named_pickup_group of its endpoint, and call_group and named_call_group of the one that rings.\n\
         A phone that dials pickupexten of features.conf (*8) does the same without any dialplan.\n\n\
         The channel is answered, and talks to who called. When there is no such call the dialplan goes on.";
    "PickupChan" "app_directed_pickup" Run::Story(|call, text| Box::pin(async move { pickup_channel(&call, &text).await })),
        "Takes a call that rings at a channel.", "PickupChan(channel[&channel2...][,options])",
        "Takes the call of the first of these channels that rings: its name, its UNIQUEID, or the device that it belongs to\n\
         (PJSIP/6001). When none does the dialplan goes on.\n\n\
         options:\n  p  has no effect: a part of the name up to its last '-' is always enough.";
};

async fn pickup(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let wanted = args::nth(&parts, 0);
    if wanted.trim().is_empty() {
        return by_group(call, false).await.map(|()| Flow::Continue);
    }
    let own = call.context();
    let found =
        wanted.split('&').map(str::trim).filter(|text| !text.is_empty()).take(TARGETS_MAX).find_map(|text| {
            let (exten, context) = text.split_once('@').unwrap_or((text, &own));
            let meant = if context.eq_ignore_ascii_case(MARK) {
                Ringing::Marked(exten)
            } else {
                Ringing::At(context, exten)
            };
            find(call, meant)
        });
    take(call, found, wanted).await
}

async fn pickup_channel(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let wanted = args::nth(&parts, 0);
    for letter in Options::parse(args::nth(&parts, 1), "p").unknown {
        call.log(Level::Warning, &format!("PickupChan option '{letter}' does not exist and has no effect"));
    }
    if wanted.trim().is_empty() {
        call.log(Level::Warning, "PickupChan requires an argument (channel)");
        return Ok(Flow::Continue);
    }
    let names = wanted.split('&').map(str::trim).filter(|name| !name.is_empty()).take(TARGETS_MAX);
    let found = names.into_iter().find_map(|name| find(call, Ringing::Named(name)));
    take(call, found, wanted).await
}

fn find(call: &Call, meant: Ringing<'_>) -> Option<ChannelId> {
    call.chan.core(|core| core.find_ringing(call.chan.id(), meant))
}

async fn take(call: &Call, found: Option<ChannelId>, wanted: &str) -> Outcome {
    let Some(target) = found else {
        call.log(Level::Notice, &format!("no call that rings is {wanted}"));
        return Ok(Flow::Continue);
    };
    exchange(call, target, false).await.map(|()| Flow::Continue)
}

/// Takes what rings in the groups of the channel; comes back when there is nothing, which the caller hears.
async fn by_group(call: &Call, by_code: bool) -> Result<(), Stop> {
    let settings = features::of(&call.chan);
    let groups = call.chan.with(|c| c.pickup.clone())?;
    let Some(target) = find(call, Ringing::InGroups(&groups)) else {
        call.log(Level::Notice, &format!("no call rings in the groups '{}'", groups.pickup));
        if !settings.pickup_fail_sound.is_empty() {
            call.chan.answer()?;
            call.chan.play(&settings.pickup_fail_sound, "").await?;
        }
        return Ok(());
    };
    exchange(call, target, by_code).await
}

/// Takes this call. Comes back only when that has failed.
async fn exchange(call: &Call, target: ChannelId, by_code: bool) -> Result<(), Stop> {
    let chan = &call.chan;
    // Whom it will talk to is known before it is answered, and in the answer.
    let party = chan.core(|core| core.get(target).map(|target| target.connected.clone()));
    if let Some(party) = party.filter(|party| *party != call::PartyId::default()) {
        let changed = chan.with(|c| std::mem::replace(&mut c.connected, party.clone()) != party)?;
        if changed {
            chan.core(|core| core.notice_of(chan.id(), call::Notice::NewConnectedLine));
        }
    }
    chan.answer()?;
    // The caller has waited long enough: the sound is for the picker alone, who hears it in the bridge.
    let sound = features::of(chan).pickup_sound.clone();
    if !sound.is_empty() {
        call.set(call::PLAY_SOUND, &sound);
    }
    let name = chan.name();
    let is_taken = chan.core(|core| match by_code {
        true => core.pick_up_by_code(chan.id(), target),
        false => core.pick_up(chan.id(), target),
    });
    if is_taken {
        let deadline = chan.now() + SETTLE;
        // Who was to ring takes this place, and ends.
        while chan.event(Some(deadline)).await?.is_some() {}
    }
    chan.with(|c| c.vars.remove(dialplan::Var::named(call::PLAY_SOUND)))?;
    call.log(Level::Notice, &format!("{name} came too late: the call does not ring any more"));
    let sound = features::of(chan).pickup_fail_sound.clone();
    if !sound.is_empty() {
        chan.play(&sound, "").await?;
    }
    Ok(())
}

/// Starts the dialplan on a channel for which a phone has dialled; the number that picks up needs none. `false`: no room; the
/// channel is ended.
pub fn start(shard: &Rc<Shard>, id: ChannelId, location: Location) -> bool {
    if !shard.core.borrow().is_pickup_code(&location.exten) {
        return pbx::start(shard, id, location);
    }
    pbx::start_without_dialplan(shard, id, location, |call| {
        Box::pin(async move {
            if by_group(&call, true).await.is_ok() {
                call.chan.hangup(Cause::CALL_REJECTED);
            }
        })
    })
}
