//! `Stasis`: a program steers the call from outside (ARI).
//!
//! `stay` is the story of a channel in a program's hands, with `play`, `record`, `digits` and `place` for what takes time.
//! `channels`, `origin`, `snoop`, `bridges`, `playbacks` and `recordings` are what the dialect asks for; they never wait, and say by
//! [`StasisError`](call::stasis::StasisError) why something is not done. `announce` are the stories of bridges: what all in
//! one hear, and what is written down of it. What is kept is [`call::stasis`]'s.

mod announce;
mod bridges;
mod broadcast;
mod channels;
mod digits;
mod media;
mod origin;
mod place;
mod play;
mod playbacks;
mod record;
mod recordings;
mod snoop;
mod stay;

use call::{Advance, Level};

pub use bridges::{
    Joining, add_channels, bridge_music, bridge_play, bridge_record, clear_video_source, create_bridge,
    destroy_bridge, remove_channels, set_video_source,
};
pub use broadcast::claim;
pub use channels::Continue;
pub use channels::{
    Direction, Playing, Recording, answer, channel_variable, continue_in_dialplan, hangup, hold, move_to,
    music, mute, play, record, redirect, ring, rtp_statistics, send_digits, set_channel_variable, silence,
};
pub(crate) use origin::follow_both;
pub use origin::{Create, Start, create, dial, originate};
pub use playbacks::{control_playback, stop_playback};
pub use recordings::{
    STORED_MAX, Stored, copy_stored, delete_stored, discard_recording, mute_recording, pause_recording,
    stop_recording, stored, stored_recording, stored_recordings,
};

pub use snoop::{Snoop, snoop};

use crate::call_ctx::args;
use crate::{AppRow, Call, Flow, Outcome, Run};
use stay::Stay;

pub(crate) const ROWS: &[AppRow] = &[STASIS, BROADCAST];

const BROADCAST: AppRow = AppRow {
    name: "StasisBroadcast",
    module: "app_stasis_broadcast",
    synopsis: "Offers the call to programs, of which the first that claims it has it.",
    syntax: "StasisBroadcast([timeout_ms[,app_regex[,args[,notify_claimed]]]])",
    description: "\
Tells all programs that are connected by ARI and whose names fit of the call, by the event CallBroadcast. The first that
claims it (POST /events/claim) has it, as from Stasis().

timeout_ms      milliseconds in which it has to be claimed, 0 to 60000 (500).
app_regex       POSIX extended regular expression for names of programs; all without one.
args            what the program is told beside, with colons between.
notify_claimed  yes: all of those programs hear who has it, by CallClaimed (no).
Sets STASISSTATUS (SUCCESS FAILED TIMEOUT). TIMEOUT: nobody has claimed it.",
    run: Run::Story(|call, args| Box::pin(async move { broadcast::broadcast(&call, &args).await })),
};

const STASIS: AppRow = AppRow {
    name: "Stasis",
    module: "app_stasis",
    synopsis: "Gives the call into the hands of a program.",
    syntax: "Stasis(app_name[,arg1[,arg2[,...]]])",
    description: "\
Gives the call to a program that is connected by ARI under this name, until the program lets it go on in the dialplan or
the call ends. The call is not answered first: the program does that. When the program's connection breaks the call stays
where it is, for the program to come back to; nothing ends it but the caller, the program, a console or a manager.

arg…  what the program is told beside, at most 128.
Sets STASISSTATUS (SUCCESS FAILED). FAILED: no such program is connected; the call goes on at the next priority.",
    run: Run::Story(|call, args| Box::pin(async move { stasis(&call, &args).await })),
};

async fn stasis(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let app = args::nth(&parts, 0).trim();
    if app.is_empty() {
        call.log(Level::Warning, "Stasis requires an argument (app_name)");
        call.set("STASISSTATUS", "FAILED");
        return Ok(Flow::Continue);
    }
    let told = parts.iter().skip(1).take(call::stasis::ARGS_MAX).cloned().collect();
    visit(call, app, told).await
}

fn with_args(app: &str, told: &[String]) -> String {
    core::iter::once(app).chain(told.iter().map(String::as_str)).collect::<Vec<_>>().join(",")
}

/// A channel that no dialplan has brought here shows the application all the same, and watchers hear so.
fn show(call: &Call, app: &str, told: &[String]) {
    let data = with_args(app, told);
    call.enter_app("Stasis", &data);
    call.settle();
    let id = call.chan.id();
    call.chan.core(|core| {
        core.notice_of(id, |channel| call::Notice::NewExten { channel, application: "Stasis", data });
    });
}

/// The channel is in the program's hands until that lets it go, or the call ends.
pub(crate) async fn visit(call: &Call, app: &str, told: Vec<String>) -> Outcome {
    let id = call.chan.id();
    if call.run.app.get().is_empty() {
        call.enter_app("Stasis", &with_args(app, &told));
    }
    call.settle();
    call.set("STASISSTATUS", "");
    if let Err(why) = call.chan.core(|core| core.stasis_enter(id, app, told)) {
        call.log(Level::Warning, &format!("Stasis app '{app}' has not taken the call: {why}"));
        call.set("STASISSTATUS", "FAILED");
        return Ok(Flow::Continue);
    }
    let mut stay = Stay::new(call);
    call.chan.core(|core| core.advance(id, Advance::Connected));
    let left = stay.run().await;
    drop(stay);
    call.set("STASISSTATUS", "SUCCESS");
    left
}
