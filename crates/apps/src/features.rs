//! What keys do during a conversation (features.conf): transfers, ending it, recording, applications.

use std::cell::RefCell;
use std::rc::Rc;

use base::ChannelId;
use call::features::{AppFeature, Features, PressedBy, Rights, RunsOn};
use call::{
    AfterKey, BridgeEnd, BridgeLimits, Chan, Heard, Key, Keyed, Keys, Level, Location, Reach, Stop,
    bridge_pair,
};

use crate::{Call, consult, monitor, parking, transfer};

/// Every digit: any of them ends a prompt that asks for a number.
const ANY_DIGIT: &str = "0123456789*#ABCD";
/// Digits of an extension that somebody is transferred to: what the field keeps.
const NUMBER_MAX: usize = 255;
/// Features that DYNAMIC_FEATURES may name for one channel.
const DYNAMIC_MAX: usize = 64;

/// What keys do on a channel.
pub(crate) fn of(chan: &Chan) -> Rc<Features> {
    let own = chan.with(|channel| channel.features.clone()).ok().flatten();
    own.unwrap_or_else(|| chan.core(|core| core.settings.features.clone()))
}

/// Lets two talk, who called before who was called, each with the keys that its [`Rights`] and `DYNAMIC_FEATURES` give it:
/// those that are given here, else those that it has. Ends as [`bridge_pair`] does.
pub(crate) async fn converse(parties: [(&Chan, Option<Rights>); 2], limits: BridgeLimits) -> BridgeEnd {
    for (party, rights) in parties {
        if let Some(rights) = rights {
            // What an earlier conversation has given it stays.
            let _ = party.with(|channel| channel.rights = channel.rights.with(rights));
        }
    }
    let [(caller, _), (callee, _)] = parties;
    let mut deeds = Vec::new();
    let keys = [
        keys_of(caller, callee, PressedBy::Caller, &mut deeds),
        keys_of(callee, caller, PressedBy::Callee, &mut deeds),
    ];
    let desk = Rc::new(Desk { deeds, recording: RefCell::default() });
    let on_key: call::OnKey = Rc::new(move |keyed| {
        let desk = desk.clone();
        Box::pin(async move { desk.act(keyed).await })
    });
    bridge_pair(caller, callee, BridgeLimits { keys, on_key: Some(on_key), ..limits }).await
}

/// What a key stands for.
#[derive(Debug, Clone)]
enum Deed {
    Blind,
    Attended,
    Disconnect,
    Park,
    Record(Manner),
    Run(AppFeature),
}

/// How a recording that a key begins is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    MixMonitor,
    Monitor,
}

/// The keys of one of two, which stand for what is added to `deeds`.
fn keys_of(chan: &Chan, other: &Chan, side: PressedBy, deeds: &mut Vec<Deed>) -> Keys {
    let features = of(chan);
    let Rights { transfer, disconnect, mix_monitor, monitor, park } =
        chan.with(|c| c.rights).unwrap_or_default();
    let map = &features.map;
    let fixed = [
        (transfer, &map.blind, Deed::Blind),
        (transfer, &map.attended, Deed::Attended),
        (disconnect, &map.disconnect, Deed::Disconnect),
        (mix_monitor, &map.mix_monitor, Deed::Record(Manner::MixMonitor)),
        (monitor, &map.monitor, Deed::Record(Manner::Monitor)),
        (park, &map.park, Deed::Park),
    ];
    let fixed = fixed.into_iter().filter(|row| row.0).map(|(_, code, deed)| (code.clone(), deed));
    let dynamic = dynamic(chan, other, &features).into_iter();
    let dynamic = dynamic
        .filter(|(_, feature)| matches!(feature.pressed_by, PressedBy::Both) || feature.pressed_by == side);
    let dynamic = dynamic.map(|(code, feature)| (code, Deed::Run(feature)));
    let mut keys = Vec::new();
    for (code, deed) in fixed.chain(dynamic) {
        if let Some(key) = Key::new(&code, deeds.len()) {
            keys.push(key);
            deeds.push(deed);
        }
    }
    Keys { keys, timeout: features.code_timeout }
}

/// Features of the application map that `DYNAMIC_FEATURES` of the channel, else of the other one, names; with their codes.
fn dynamic(chan: &Chan, other: &Chan, features: &Features) -> Vec<(String, AppFeature)> {
    let named =
        |chan: &Chan| Call::new(chan.clone()).get("DYNAMIC_FEATURES").filter(|names| !names.is_empty());
    let Some(names) = named(chan).or_else(|| named(other)) else { return Vec::new() };
    let mut found = Vec::new();
    for name in names.split('#').map(str::trim).filter(|name| !name.is_empty()) {
        if let Some(feature) = features.apps.get(name) {
            found.push((feature.code.clone(), feature.clone()));
        } else if let Some(group) = features.groups.get(name) {
            let members = group
                .iter()
                .filter_map(|(name, code)| Some((code.clone(), features.apps.get(name)?.clone())));
            found.extend(members);
        } else {
            chan.log(
                Level::Warning,
                "features",
                &format!("features.conf has no feature '{name}' (DYNAMIC_FEATURES)"),
            );
        }
    }
    found.truncate(DYNAMIC_MAX);
    found
}

/// A recording that a key has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Recording {
    of: ChannelId,
    manner: Manner,
    /// That of MixMonitor.
    id: String,
}

/// What the keys of a conversation stand for, and what they have begun.
struct Desk {
    deeds: Vec<Deed>,
    recording: RefCell<Option<Recording>>,
}

impl Desk {
    async fn act(&self, keyed: Keyed) -> Result<AfterKey, Stop> {
        let Keyed { chan, other, meaning } = keyed;
        match self.deeds.get(meaning) {
            None | Some(Deed::Disconnect) => return Ok(AfterKey::Disconnect),
            Some(Deed::Blind) => blind(&chan, &other).await?,
            Some(Deed::Attended) => attended(&chan, &other).await?,
            Some(Deed::Park) => park(&chan, &other),
            Some(Deed::Record(manner)) => self.record(*manner, &chan, &other).await?,
            Some(Deed::Run(feature)) => run(feature, &chan, &other).await?,
        }
        Ok(AfterKey::Talk)
    }

    /// Begins a recording, or ends the one that a key has begun.
    async fn record(&self, manner: Manner, chan: &Chan, other: &Chan) -> Result<(), Stop> {
        let running = self.recording.borrow_mut().take_if(|recording| recording.manner == manner);
        let features = of(chan);
        let tone = match running {
            Some(recording) => {
                stop_recording(chan, &recording);
                message(chan, other, manner, "STOP").unwrap_or(features.courtesy_tone.clone())
            }
            None => match begin_recording(manner, chan, other) {
                Ok(recording) => {
                    *self.recording.borrow_mut() = Some(recording);
                    message(chan, other, manner, "START").unwrap_or(features.courtesy_tone.clone())
                }
                Err(why) => {
                    chan.log(Level::Warning, "features", &format!("the call is not recorded: {why}"));
                    features.recording_failed_sound.clone()
                }
            },
        };
        for party in [chan, other].into_iter().filter(|_| !tone.is_empty()) {
            if let Some(clip) = party.clip(&tone).await? {
                party.start_clip(clip, 0);
            }
        }
        Ok(())
    }
}

/// A variable of the one who pressed the key, else of the other one.
fn variable(chan: &Chan, other: &Chan, name: &str) -> Option<String> {
    let of = |chan: &Chan| Call::new(chan.clone()).get(name).filter(|value| !value.is_empty());
    of(chan).or_else(|| of(other))
}

impl Manner {
    /// What the names of its variables begin with.
    fn prefix(self) -> &'static str {
        match self {
            Self::MixMonitor => "TOUCH_MIXMONITOR",
            Self::Monitor => "TOUCH_MONITOR",
        }
    }
}

/// The sound of `TOUCH_MIXMONITOR_MESSAGE_START` and the like.
fn message(chan: &Chan, other: &Chan, manner: Manner, edge: &str) -> Option<String> {
    variable(chan, other, &format!("{}_MESSAGE_{edge}", manner.prefix()))
}

/// Records the call; the file is `auto-TIME-CALLER-PEER`, or as `TOUCH_MIXMONITOR` and `TOUCH_MIXMONITOR_FORMAT` say.
fn begin_recording(manner: Manner, chan: &Chan, other: &Chan) -> Result<Recording, String> {
    let of = |part: &str| variable(chan, other, &format!("{}{part}", manner.prefix()));
    let seconds = chan.core(|core| core.services.wall.now_micros()).div_euclid(1_000_000);
    let party = |chan: &Chan| {
        let number = chan.with(|c| c.caller.number().to_owned()).unwrap_or_default();
        if number.is_empty() { chan.name().to_string() } else { number }
    };
    let rest = of("").unwrap_or_else(|| format!("{}-{}", party(chan), party(other)));
    // What came from outside names no folder.
    let name = format!("auto-{seconds}-{rest}").replace(['/', ','], "-");
    let format = of("_FORMAT").unwrap_or_else(|| "wav".to_owned()).replace(['/', ','], "-");
    let id = match manner {
        Manner::MixMonitor => {
            let begun = monitor::mix_monitor(chan.shard(), chan.id(), &format!("{name}.{format},b"))?;
            begun.id
        }
        Manner::Monitor => {
            let parts = [format, name.clone(), "m".to_owned()];
            chan.core(|core| monitor::begin_monitor(core, chan.id(), &parts))?;
            String::new()
        }
    };
    for party in [chan, other] {
        Call::new(party.clone()).set(&format!("{}_OUTPUT", manner.prefix()), &name);
    }
    Ok(Recording { of: chan.id(), manner, id })
}

fn stop_recording(chan: &Chan, recording: &Recording) {
    chan.core(|core| match recording.manner {
        Manner::MixMonitor => {
            core.monitor_stop(recording.of, |m| monitor::is_mix_monitor(m) && m.id() == recording.id);
        }
        Manner::Monitor => {
            core.monitor_stop(recording.of, monitor::is_monitor);
        }
    });
}

/// Carries on `story` with the two apart, while `idle` hears music.
async fn apart<T>(
    one: &Chan,
    idle: &Chan,
    class: &str,
    story: impl Future<Output = Result<T, Stop>>,
) -> Result<T, Stop> {
    one.core(|core| core.part_streams(one.id()));
    // Who is idle may end meanwhile; the bridge sees to that.
    let hears_music = idle.start_music(class).await.unwrap_or(false);
    idle.core(|core| core.told_held(idle.id(), true));
    let done = story.await;
    if hears_music {
        idle.stop_music();
    }
    idle.core(|core| core.told_held(idle.id(), false));
    let stays = |chan: &Chan| chan.check().is_ok() && chan.with(|c| !c.wanted) == Ok(true);
    if stays(one) && stays(idle) {
        one.core(|core| core.join_streams(one.id(), idle.id()));
    }
    done
}

/// Runs the application of a feature, while the other one hears music.
async fn run(feature: &AppFeature, chan: &Chan, other: &Chan) -> Result<(), Stop> {
    let (active, idle) = match feature.runs_on {
        RunsOn::Own => (chan, other),
        RunsOn::Peer => (other, chan),
    };
    let call = Call::new(active.clone());
    let args = call.expand(&feature.args);
    let story = async {
        let work = async {
            if feature.app.eq_ignore_ascii_case("Gosub") {
                return Some(call.gosub(&args).await);
            }
            call.run_app(&feature.app, &args).await
        };
        // The end of either is the business of the bridge.
        match chan.while_up(work).await? {
            Some(Err(stop)) if active.id() == chan.id() => Err(stop),
            Some(_) => Ok(()),
            None => {
                let text = format!("feature: there is no application '{}'", feature.app);
                chan.log(Level::Warning, "features", &text);
                Ok(())
            }
        }
    };
    apart(active, idle, &feature.music, story).await
}

/// Where extensions are looked for that `chan` transfers to.
fn context_of(chan: &Chan, other: &Chan) -> String {
    let own =
        |chan: &Chan| chan.with(|c| c.location.context.clone()).ok().filter(|context| !context.is_empty());
    let variable = Call::new(chan.clone()).get("TRANSFER_CONTEXT").filter(|context| !context.is_empty());
    variable.or_else(|| own(chan)).or_else(|| own(other)).unwrap_or_else(|| "default".to_owned())
}

/// Asks for an extension that there is; `None` when none was dialled.
async fn destination(chan: &Chan, context: String) -> Result<Option<Location>, Stop> {
    let features = of(chan);
    let call = Call::new(chan.clone());
    let caller = chan.with(|c| c.caller.number().to_owned())?;
    let mut sound = &features.announce_sound;
    for _ in 0..features.attempts {
        let mut number = String::new();
        match chan.play(sound, ANY_DIGIT).await? {
            Heard::Interrupted(digit, _) => number.push(digit.to_char()),
            _ => {
                chan.start_tone("dial");
            }
        }
        while number.len() < NUMBER_MAX && (number.is_empty() || call.match_more(&context, &number)) {
            match chan.digit(features.digit_timeout).await? {
                None => break,
                Some(digit) if digit.to_char() == '#' && !number.is_empty() => break,
                Some(digit) => {
                    if number.is_empty() {
                        chan.stop_sound();
                    }
                    number.push(digit.to_char());
                }
            }
        }
        if number.is_empty() {
            chan.stop_sound();
        }
        let reach = chan.core(|core| (core.reach)(core, &context, &number, &caller));
        if !number.is_empty() && reach == Reach::Whole {
            return Ok(Some(Location { context, exten: number, priority: 1 }));
        }
        let text = format!("transfer: there is no extension '{number}' in context '{context}'");
        chan.log(Level::Verbose(3), "features", &text);
        sound = &features.retry_sound;
    }
    chan.play(&features.invalid_sound, "").await?;
    Ok(None)
}

/// Sends the other one to an extension that `chan` dials.
async fn blind(chan: &Chan, other: &Chan) -> Result<(), Stop> {
    send(chan, other, true, |to| {
        let sent = chan.core(|core| transfer::blind(core, chan.id(), to, false));
        parking::carry_out(chan.shard());
        sent
    })
    .await
}

/// Parks the other one.
fn park(chan: &Chan, other: &Chan) {
    let name = chan.name();
    chan.core(|core| core.set_variable(other.id(), "BLINDTRANSFER", &name));
    if let Err(why) = parking::pair(chan.shard(), chan.id(), other.id(), "") {
        chan.log(Level::Warning, "features", &format!("the call is not parked: {why}"));
    }
}

/// Asks at an extension that `chan` dials whether to send the other one there.
async fn attended(chan: &Chan, other: &Chan) -> Result<(), Stop> {
    send(chan, other, false, |to| consult::attended(chan.shard(), chan.id(), &to)).await
}

async fn send(
    chan: &Chan,
    other: &Chan,
    at_once: bool,
    begin: impl FnOnce(Location) -> Result<(), transfer::Refused>,
) -> Result<(), Stop> {
    let context = context_of(chan, other);
    // Watchers see who asks for a number hold the other one.
    let id = chan.id();
    let let_go = || chan.core(|core| core.notice_of(id, call::Notice::Unhold));
    chan.core(|core| core.notice_of(id, |channel| call::Notice::Hold { channel, class: String::new() }));
    let story = async {
        let Some(to) = destination(chan, context).await? else {
            let_go();
            return Ok(());
        };
        if at_once {
            let_go();
        }
        match begin(to) {
            Ok(()) => Ok(()),
            Err(why) => failed(chan, why).await,
        }
    };
    apart(chan, other, "", story).await
}

async fn failed(chan: &Chan, why: transfer::Refused) -> Result<(), Stop> {
    chan.log(Level::Verbose(3), "features", &format!("the transfer fails: {why}"));
    let sound = of(chan).failed_sound.clone();
    chan.play(&sound, "").await?;
    Ok(())
}
