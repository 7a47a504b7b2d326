//! Fetching a parked call.

use base::Cause;
use call::parking::LotSettings;
use call::{BridgeEnd, BridgeLimits, Chan, Leg, Level, Stop};

use super::{LET_GO, lot_name};
use crate::call_ctx::args;
use crate::dial::after::note_peer;
use crate::{Call, Flow, Outcome, features, pbx};

/// What is heard where nobody is parked.
const NOBODY_SOUND: &str = "pbx-invalidpark";

pub(super) async fn fetch(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let lot = lot_name(call, args::nth(&parts, 0));
    let wanted = args::nth(&parts, 1).trim();
    let chan = &call.chan;
    chan.answer()?;
    let space = wanted.parse().ok();
    let found = match (wanted.is_empty(), space) {
        (false, None) => None,
        (_, space) => chan.core(|core| core.unpark(&lot, space, chan.id())),
    };
    let Some((id, settings)) = found else {
        return nobody(
            call,
            &format!("nobody is parked in lot '{lot}' {}", if wanted.is_empty() { "" } else { wanted }),
        )
        .await;
    };
    let deadline = chan.now() + LET_GO;
    let taken = Chan::take_all(chan.shard(), &[id], deadline).await;
    let Some(leg) = taken.and_then(|mut legs| legs.pop()) else {
        return nobody(call, "the parked call has just ended").await;
    };
    note_peer(call, leg.chan())?;
    match talk(call, &leg, &settings).await {
        Ok(end) => {
            call.note_leg(leg.chan());
            pbx::let_go(leg, None);
            match end {
                BridgeEnd::Stopped(id, stop) if id == chan.id() => Err(stop),
                _ => Ok(Flow::Hangup),
            }
        }
        Err(stop) => {
            leg.end(Cause::NORMAL_CLEARING);
            Err(stop)
        }
    }
}

async fn nobody(call: &Call, why: &str) -> Outcome {
    call.log(Level::Notice, why);
    call.chan.play(NOBODY_SOUND, "").await?;
    Ok(Flow::Hangup)
}

/// The courtesy tone, and then the two talk. `Err`: who fetches ended before that.
async fn talk(call: &Call, leg: &Leg, lot: &LotSettings) -> Result<BridgeEnd, Stop> {
    let (chan, parked) = (&call.chan, leg.chan());
    let [to_caller, to_callee] = lot.played_to.of().map(|hears| hears && !lot.courtesy_tone.is_empty());
    if to_callee && !to_caller {
        let _ = chan.while_up(parked.play(&lot.courtesy_tone, "")).await?;
    } else if to_caller {
        if to_callee && let Ok(Some(clip)) = parked.clip(&lot.courtesy_tone).await {
            parked.start_clip(clip, 0);
        }
        chan.play(&lot.courtesy_tone, "").await?;
    }
    chan.suit(parked.id());
    let parties = [(chan, Some(lot.rights()[0])), (parked, Some(lot.rights()[1]))];
    Ok(features::converse(parties, BridgeLimits { introduces: true, ..BridgeLimits::default() }).await)
}
