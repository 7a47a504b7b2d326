//! Applications that bring channels together, send them elsewhere or end them, by name.

use core::time::Duration;

use base::{Cause, ChannelId};
use call::{BridgeEnd, BridgeUse, Chan, Level, Location, Stop};
use dialplan::Options;

use crate::call_ctx::args;
use crate::dial::{DialOptions, after, rights};
use crate::flow::rows;
use crate::transfer::{self, Party, Refused};
use crate::{AppRow, Call, Flow, Outcome, Run, consult, features, together};

/// How long a channel's story may take to let go of it: it does at the next thing it waits for.
const LET_GO: Duration = Duration::from_secs(5);
/// Option letters of Bridge.
pub(crate) const BRIDGE_OPTIONS: &str = "FhHkKLnpStTwWx";

pub(crate) const ROWS: &[AppRow] = rows! {
    "Bridge" "pbx_builtins" Run::Story(|call, text| Box::pin(async move { bridge(&call, &text).await })),
        "Talks with another channel.", "Bridge(channel[,options])",
        "Takes the channel, by its name or that of its device, out of what it does, and lets the two talk; it goes on in\n\
         its dialplan after the step it was in when they are done.\n\n\
         options:\n  \
         F([ctx^ext^prio])  when the caller hangs up, the other one goes on there (no argument: next priority).\n  \
         h H k K t T w W  what the other one / the caller may do with keys, as in Dial.\n  \
         L(x[:y[:z]])  ends it after x ms, with warnings as in Dial.\n  \
         n  the caller is not answered.\n  \
         p  the other one hears the courtesytone of features.conf first.\n  \
         S(x)  ends it x seconds after it began.\n  \
         x  the other one is hung up when they are done.\n\n\
         Sets BRIDGERESULT (SUCCESS FAILURE LOOP NONEXISTENT INCOMPATIBLE); the dialplan goes on.";
    "BridgeWait" "app_bridgewait" Run::Story(|call, text| Box::pin(async move { wait(&call, &text).await })),
        "Waits, with music, until somebody bridges the channel.", "BridgeWait([name[,role[,options]]])",
        "Answers, and waits until the channel is bridged or sent elsewhere, or hangs up. The name (default) is for people\n\
         only, and the only role is participant.\n\n\
         options:\n  \
         m(class)  music of this class.\n  \
         e(type)  what is heard: m or h music, r ringing, s or n nothing.\n  \
         S(x)  the dialplan goes on after x seconds.\n  \
         n  the channel is not answered.";
    "BridgeAdd" "app_bridgeaddchan" Run::Story(|call, text| Box::pin(async move { add(&call, &text).await })),
        "Joins a channel and whom it talks to.", "BridgeAdd(channel)",
        "All of them hear each other from then on, until one is left. The channel is named by its name, its UNIQUEID, or how\n\
         its name begins. Sets BRIDGERESULT (SUCCESS FAILURE LOOP NONEXISTENT); the dialplan goes on.";
    "ChannelRedirect" "app_channelredirect" Run::Now(redirect),
        "Sends another channel elsewhere in the dialplan.", "ChannelRedirect(channel,[[context,]extension,]priority)",
        "Sets CHANNELREDIRECT_STATUS (SUCCESS NOCHANNEL INVALID).";
    "SoftHangup" "app_softhangup" Run::Now(hang_up),
        "Hangs another channel up.", "SoftHangup(Technology/Resource[,options])",
        "Hangs up the channel of this name, or the first one of this device.\n\n\
         options:\n  a  all channels of the device.";
    "BlindTransfer" "app_blind_transfer" Run::Now(blind),
        "Sends whom the channel talks to elsewhere.", "BlindTransfer(extension[,context])",
        "For features of the application map. The context is that of the channel when none is named. Sets\n\
         BLINDTRANSFERSTATUS (SUCCESS FAILURE INVALID).";
    "AttendedTransfer" "app_attended_transfer" Run::Now(attended),
        "Asks somebody whether to send him whom the channel talks to.", "AttendedTransfer(extension[,context])",
        "For features of the application map; then as after the code of atxfer. Sets ATTENDEDTRANSFERSTATUS (SUCCESS\n\
         FAILURE INVALID).";
};

/// The channels of this name, or of this device, in the order in which they were made.
fn named(call: &Call, name: &str) -> Vec<ChannelId> {
    let name = name.trim();
    call.chan.core(|core| {
        if let Some(id) = core.by_name(name) {
            return vec![id];
        }
        let is_of = |channel: &&call::Channel| {
            !name.is_empty() && channel.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
        };
        let mut found: Vec<_> =
            core.channels().filter(is_of).map(|channel| (channel.created, channel.id)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    })
}

async fn bridge(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let (name, options) = (args::nth(&parts, 0), args::nth(&parts, 1));
    let given = Options::parse(options, BRIDGE_OPTIONS);
    for letter in &given.unknown {
        call.log(Level::Warning, &format!("Bridge option '{letter}' does not exist and has no effect"));
    }
    let dial = DialOptions::parse(options).unwrap_or_else(|why| {
        call.log(Level::Warning, &why);
        DialOptions::default()
    });
    let chan = &call.chan;
    let result = |word: &str| {
        call.set("BRIDGERESULT", word);
        Ok(Flow::Continue)
    };
    let Some(&target) = named(call, name).first() else {
        call.log(Level::Warning, &format!("there is no channel '{name}'"));
        return result("NONEXISTENT");
    };
    if target == chan.id() {
        return result("LOOP");
    }
    if let Err(why) = chan.core(|core| transfer::is_free(core, target)) {
        call.log(Level::Warning, &format!("'{name}': {why}"));
        return result("INCOMPATIBLE");
    }
    if !given.has('n') {
        chan.answer()?;
    }
    let taken = Chan::take_all(chan.shard(), &[target], chan.now() + LET_GO).await;
    let Some(leg) = taken.and_then(|mut legs| legs.pop()) else { return result("FAILURE") };
    let other = Party::new(leg, !given.has('x'));
    let end = match talk(call, &given, &dial, &other).await {
        Ok(end) => end,
        Err(stop) => {
            other.go();
            return Err(stop);
        }
    };
    call.set("BRIDGERESULT", "SUCCESS");
    let stopped = match end {
        BridgeEnd::Stopped(id, stop) if id == chan.id() => Err(stop),
        _ => Ok(Flow::Continue),
    };
    match stopped {
        Err(_) if dial.callee_goes_on.is_some() => {
            let options = DialOptions { callee_goes_on: dial.callee_goes_on, ..DialOptions::default() };
            return after::after_talk(call, &options, other.into_leg(), end).await;
        }
        _ => other.go(),
    }
    stopped
}

/// The conversation. `Err`: the caller ended before it.
async fn talk(call: &Call, given: &Options, dial: &DialOptions, other: &Party) -> Result<BridgeEnd, Stop> {
    let chan = &call.chan;
    let now = chan.now();
    let _ = other.chan().with(|c| c.cdr.fetched = Some(now));
    after::note_peer(call, other.chan())?;
    chan.suit(other.chan().id());
    let tone = features::of(other.chan()).courtesy_tone.clone();
    if given.has('p') && !tone.is_empty() {
        let _ = chan.while_up(other.chan().play(&tone, "")).await?;
    }
    let audio = after::LimitAudio::of(call);
    let mut limits = after::bridge_limits(call, dial, &audio).await?;
    limits.introduces = true;
    // Option x means something else here.
    let parties = [(chan, Some(rights(given, "TH\0WK"))), (other.chan(), Some(rights(given, "th\0wk")))];
    let end = features::converse(parties, limits).await;
    // Whom it leaves has been told why it was over.
    let _ = other.chan().with(|c| {
        if c.last_cause == Cause::NONE {
            c.last_cause = Cause::NORMAL_CLEARING;
        }
    });
    Ok(end)
}

async fn wait(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let given = Options::parse(args::nth(&parts, 2), "meSn");
    for letter in &given.unknown {
        call.log(Level::Warning, &format!("BridgeWait option '{letter}' does not exist and has no effect"));
    }
    let role = args::nth(&parts, 1).trim();
    if !role.is_empty() && !role.eq_ignore_ascii_case("participant") {
        call.log(Level::Warning, &format!("BridgeWait has no role '{role}': nobody would hear it"));
        return Ok(Flow::Continue);
    }
    let chan = &call.chan;
    if !given.has('n') {
        chan.answer()?;
    }
    let limit = given.arg('S').and_then(args::seconds).filter(|limit| !limit.is_zero());
    let deadline = limit.map(|limit| chan.now() + limit);
    let name = args::nth(&parts, 0).trim();
    let _held = Held::new(chan, BridgeUse::Waiting, if name.is_empty() { "default" } else { name });
    match given.arg('e').and_then(|kind| kind.trim().chars().next()).unwrap_or('m') {
        'r' => drop(chan.start_tone("ring")),
        's' | 'n' => {}
        _ => drop(chan.start_music(given.arg('m').unwrap_or_default()).await?),
    }
    let _sound = Sounding(chan);
    while chan.event(deadline).await?.is_some() {}
    Ok(Flow::Continue)
}

/// A channel that waits with others where watchers see them.
pub(crate) struct Held<'a>(&'a Chan);

impl<'a> Held<'a> {
    pub(crate) fn new(chan: &'a Chan, used_for: BridgeUse, name: &str) -> Self {
        chan.core(|core| core.hold_enter(used_for, name, chan.id()));
        Self(chan)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.core(|core| core.hold_leave(self.0.id()));
    }
}

/// Ends what is heard while waiting.
struct Sounding<'a>(&'a Chan);

impl Drop for Sounding<'_> {
    fn drop(&mut self) {
        self.0.stop_music();
    }
}

/// However the story ends, the bridge of the two whom it joins has somebody who looks after it.
struct Adopting<'a>(&'a Chan, String);

impl Drop for Adopting<'_> {
    fn drop(&mut self) {
        self.0.core(|core| core.conference_adopted(&self.1, false));
    }
}

async fn add(call: &Call, text: &str) -> Outcome {
    let name = text.trim();
    let chan = &call.chan;
    let result = |word: &str| {
        call.set("BRIDGERESULT", word);
        Ok(Flow::Continue)
    };
    let Some(&target) = named(call, name).first() else {
        call.log(Level::Warning, &format!("there is no channel '{name}' to talk to"));
        return result("NONEXISTENT");
    };
    if target == chan.id() {
        return result("LOOP");
    }
    let (room, peer) = chan.core(|core| {
        (together::room_of(core, target), transfer::peer(core, target).ok().map(|(peer, _)| peer))
    });
    chan.answer()?;
    let mut adopting = None;
    let room = match (room, peer) {
        (Some(room), _) => room,
        (None, Some(peer)) => {
            let room = together::new_room(chan);
            // It joins the bridge in which they talk.
            chan.core(|core| core.conference_adopt(&room, target));
            adopting = Some(Adopting(chan, room.clone()));
            let taken = transfer::take_two(chan.shard(), [target, peer], true).await;
            chan.core(|core| core.conference_adopted(&room, taken.is_some()));
            let Some(parties) = taken else {
                call.log(Level::Warning, &format!("'{name}' has just ended"));
                return result("FAILURE");
            };
            together::seat(chan.shard(), &room, parties);
            room
        }
        (None, None) => {
            call.log(Level::Warning, &format!("'{name}' talks to nobody; use Bridge()"));
            return result("FAILURE");
        }
    };
    let sat = together::sit(chan, &room).await;
    drop(adopting);
    call.set("BRIDGERESULT", "SUCCESS");
    sat?;
    Ok(Flow::Continue)
}

fn redirect(call: &Call, text: &str) -> Outcome {
    let (name, place) = text.split_once(',').unwrap_or((text, ""));
    let status = match named(call, name).first() {
        None => "NOCHANNEL",
        Some(&id) => {
            let other = Call::new(Chan::new(call.chan.shard().clone(), id));
            match other.resolve(place) {
                Ok(to) => {
                    call.chan.core(|core| core.request_goto(id, to));
                    "SUCCESS"
                }
                Err(why) => {
                    call.log(Level::Warning, &format!("ChannelRedirect to '{place}': {why}"));
                    "INVALID"
                }
            }
        }
    };
    call.set("CHANNELREDIRECT_STATUS", status);
    Ok(Flow::Continue)
}

fn hang_up(call: &Call, text: &str) -> Outcome {
    let parts = args::split(text);
    let given = Options::parse(args::nth(&parts, 1), "a");
    let found = named(call, args::nth(&parts, 0));
    let meant = if given.has('a') { found.len() } else { 1 };
    for id in found.into_iter().take(meant) {
        call.chan.core(|core| core.soft_hangup(id, Cause::NORMAL_CLEARING, call::SoftHangup::Explicit));
    }
    Ok(Flow::Continue)
}

/// Where the arguments of a transfer lead.
fn destination(call: &Call, text: &str) -> Location {
    let parts = args::split(text);
    let context = args::nth(&parts, 1).trim();
    let context = if context.is_empty() { call.context() } else { context.to_owned() };
    Location { context, exten: args::nth(&parts, 0).trim().to_owned(), priority: 1 }
}

fn told(call: &Call, variable: &str, done: Result<(), Refused>) -> Outcome {
    let status = match done {
        Ok(()) => "SUCCESS",
        Err(Refused::Full) => "FAILURE",
        Err(why) => {
            call.log(Level::Warning, &format!("the transfer is not possible: {why}"));
            "INVALID"
        }
    };
    call.set(variable, status);
    Ok(Flow::Continue)
}

fn blind(call: &Call, text: &str) -> Outcome {
    let to = destination(call, text);
    let done = call.chan.core(|core| transfer::blind(core, call.chan.id(), to, false));
    crate::parking::carry_out(call.chan.shard());
    told(call, "BLINDTRANSFERSTATUS", done)
}

fn attended(call: &Call, text: &str) -> Outcome {
    let to = destination(call, text);
    told(call, "ATTENDEDTRANSFERSTATUS", consult::attended(call.chan.shard(), call.chan.id(), &to))
}
