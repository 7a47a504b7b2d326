//! `ConfBridge`: more than two who talk to each other.

use std::sync::Arc;

use base::{Clip, FormatId};
use call::conference::{DEFAULT_BRIDGE, DEFAULT_USER, Refused};
use call::{Chan, ChanEvent, Level, Stop};

use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run};

pub(crate) const ROWS: &[AppRow] = &[AppRow {
    name: "ConfBridge",
    module: "app_confbridge",
    synopsis: "Talks with all who are in a conference.",
    syntax: "ConfBridge(conference[,bridge_profile[,user_profile[,menu]]])",
    description: "\
Answers, and puts the caller into the conference of this name until hang-up or until somebody sends it out. The conference
begins with its first member and ends with its last.

bridge_profile  section of confbridge.conf with type=bridge (default_bridge).
user_profile    section of confbridge.conf with type=user (default_user).
menu            not obeyed yet: digits do nothing.
Sets CONFBRIDGE_RESULT (FAILED HANGUP KICKED).",
    run: Run::Story(|call, args| Box::pin(async move { confbridge(&call, &args).await })),
}];

async fn confbridge(call: &Call, args: &str) -> Outcome {
    let parts = args::split(args);
    let arg = |index: usize| args::nth(&parts, index).trim();
    let failed = |why: &str| {
        call.log(Level::Warning, why);
        call.set("CONFBRIDGE_RESULT", "FAILED");
        Ok(Flow::Continue)
    };
    if arg(0).is_empty() {
        return failed("ConfBridge requires an argument (conference)");
    }
    let (bridge, user) = call.chan.core(|core| {
        let profiles = &core.settings.conferences;
        (profiles.bridge(arg(1)), profiles.user(arg(2)))
    });
    let Some(bridge) = bridge else {
        return failed(&format!("confbridge.conf has no bridge profile '{}'; try {DEFAULT_BRIDGE}", arg(1)));
    };
    let Some(user) = user else {
        return failed(&format!("confbridge.conf has no user profile '{}'; try {DEFAULT_USER}", arg(2)));
    };
    if !arg(3).is_empty() {
        call.log(Level::Warning, &format!("ConfBridge has no menus yet; '{}' has no effect", arg(3)));
    }
    call.answer_for_sound().await?;
    // What the others are to hear is there before it is needed: leaving waits for nothing.
    let sounds = match user.is_quiet {
        true => [None, None],
        false => [
            call.chan.clip_in("confbridge-join", FormatId::SLIN).await?,
            call.chan.clip_in("confbridge-leave", FormatId::SLIN).await?,
        ],
    };
    let [joined, left] = sounds;
    let entered = call.chan.core(|core| {
        core.conference_enter(arg(0), call.chan.id(), user.seat, bridge.mixing, bridge.members_max)
    });
    let count = match entered {
        Ok(count) => count,
        Err(why) => {
            let (sound, text) = match why {
                Refused::Locked => ("conf-locked", "is locked"),
                Refused::Full => ("conf-full", "is full"),
                Refused::NoMedia => ("", "cannot be entered: the channel has no media"),
            };
            if !sound.is_empty() {
                call.chan.play(sound, "").await?;
            }
            return failed(&format!("conference '{}' {text}", arg(0)));
        }
    };
    let stay = Stay { chan: &call.chan, left };
    if let Some(joined) = joined {
        call.chan.core(|core| core.conference_announce(arg(0), joined));
    }
    if count == 1
        && user.hears_that_it_is_alone
        && let Some(alone) = call.chan.clip("conf-onlyperson").await?
    {
        call.chan.start_clip(alone, 0);
    }
    let ended = until_sent_out(&call.chan).await;
    drop(stay);
    match ended {
        Err(stop) => {
            call.set("CONFBRIDGE_RESULT", "HANGUP");
            Err(stop)
        }
        Ok(()) => {
            call.set("CONFBRIDGE_RESULT", "KICKED");
            call.chan.play("conf-kicked", "").await?;
            Ok(Flow::Continue)
        }
    }
}

/// Returns when somebody has sent the member out.
async fn until_sent_out(chan: &Chan) -> Result<(), Stop> {
    loop {
        let event = chan.event(None).await?;
        let kicked = |core: &mut call::Core| core.conferences.member(chan.id()).is_none_or(|m| m.is_kicked);
        if event == Some(ChanEvent::Conference) && chan.core(kicked) {
            return Ok(());
        }
    }
}

/// The stay in a conference, which ends however the story ends.
struct Stay<'a> {
    chan: &'a Chan,
    left: Option<Arc<Clip>>,
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        // A prompt for this member alone would go on into the next step.
        self.chan.stop_sound();
        let left = self.left.take();
        self.chan.core(|core| {
            if let (Some((name, 1..)), Some(left)) = (core.conference_leave(self.chan.id()), left) {
                core.conference_announce(&name, left);
            }
        });
    }
}
