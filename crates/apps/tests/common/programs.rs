//! Programs that steer calls of an invented world, and what they hear.
#![allow(dead_code)] // each test file uses its part

use std::rc::Rc;

use apps::stasis::{Joining, Playing, Recording};
use base::ChannelId;
use call::Notice;
use call::stasis::{BridgeKind, MediaChange, NewBridge, StasisError, StasisNotice};
use sim::World;

use super::world;

pub const PLAN: &str = "[default]\nexten => 1,1,Stasis(app,one,two)\n same => n,NoOp(${STASISSTATUS})\n same => n,Hangup()\n\
                        exten => 2,1,Stasis(gone)\n same => n,NoOp(${STASISSTATUS})\n\
                        exten => 3,1,Stasis()\n same => n,NoOp(${STASISSTATUS})\n\
                        exten => 4,1,Stasis(app)\n same => n,NoOp(${STASISSTATUS})\n\
                        exten => 5,1,NoOp(five)\n same => n(there),NoOp(there)\n\
                        exten => 6,1,Stasis(other)\n same => n,NoOp(${STASISSTATUS})\n\
                        exten => h,1,NoOp(h ${STASISSTATUS})\n\
                        [elsewhere]\nexten => s,1,NoOp(elsewhere)\n";

/// A world in which the programs `app` and `other` are connected, and somebody reads what happens.
pub fn programs() -> World {
    let mut world = world(PLAN);
    world.watch();
    world.settings(|settings| {
        settings.directories.0.insert("spool".to_owned(), "/spool".to_owned());
    });
    register(&world, "app");
    register(&world, "other");
    world
}

pub fn register(world: &World, app: &str) {
    world.shard.core.borrow_mut().stasis.register(app, false).unwrap();
}

/// UNIQUEID of a channel.
pub fn uid(world: &World, id: ChannelId) -> String {
    world.shard.core.borrow().get(id).map(|channel| channel.uniqueid.to_string()).unwrap_or_default()
}

/// What programs are told, one line each, channels by their names' serials.
pub fn told(world: &World) -> Vec<String> {
    world.notices.iter().filter_map(line).collect()
}

fn line(notice: &Notice) -> Option<String> {
    let short = |channel: &call::Snapshot| channel.name.rsplit('0').next().unwrap_or_default().to_owned();
    let name = |channel: &call::Snapshot| match short(channel).as_str() {
        "" => "#0".to_owned(),
        serial => format!("#{serial}"),
    };
    let Notice::Stasis(of) = notice else { return None };
    Some(match &**of {
        StasisNotice::Followed { .. } => return None,
        StasisNotice::Start { app, args, channel, replaced } => {
            let instead =
                replaced.as_ref().map(|old| format!(" instead of {}", name(old))).unwrap_or_default();
            format!("start {app}({}) {}{instead}", args.join(","), name(channel))
        }
        StasisNotice::End { app, channel } => format!("end {app} {}", name(channel)),
        StasisNotice::Replaced { app } => format!("replaced {app}"),
        StasisNotice::MoveFailed { app, to, channel, .. } => {
            format!("{app} keeps {} from {to}", name(channel))
        }
        StasisNotice::Playback { change, playback } => {
            let what = match change {
                MediaChange::Started => "plays",
                MediaChange::Continuing => "goes on with",
                MediaChange::Finished => "played",
                MediaChange::Failed => "cannot play",
            };
            format!("{} {what} {} ({})", playback.id, playback.media_uri(), playback.state.name())
        }
        StasisNotice::Recording { change, recording } => {
            let what = match change {
                MediaChange::Started => "records",
                MediaChange::Continuing => "goes on",
                MediaChange::Finished => "recorded",
                MediaChange::Failed => "failed",
            };
            let lasted = recording.duration.map(|d| format!(" {} ms", d.as_millis())).unwrap_or_default();
            format!("{} {what} ({}){lasted}", recording.name, recording.state.name())
        }
        StasisNotice::BridgeCreated(bridge) => format!("bridge {} made", bridge.id),
        StasisNotice::BridgeDestroyed(bridge) => format!("bridge {} gone", bridge.id),
        StasisNotice::BridgeEntered { bridge, channel } => {
            format!("{} enters {} of {}", name(channel), bridge.id, bridge.channels.len())
        }
        StasisNotice::BridgeLeft { bridge, channel } => {
            format!("{} leaves {} of {}", name(channel), bridge.id, bridge.channels.len())
        }
        StasisNotice::Text { endpoint: (tech, name), message } => {
            format!("text of {tech}/{name}: {}", message.body)
        }
        StasisNotice::Offered { apps, .. } => format!("offered to {}", apps.join(",")),
        StasisNotice::Claimed { winner, .. } => format!("claimed by {winner}"),
        StasisNotice::VideoSource { bridge, .. } => format!("video of {}", bridge.id),
        StasisNotice::Transfer(of) => format!("{} asks for {}", of.source.name, of.destination),
        StasisNotice::ToneDetected { channel } => format!("tone on {}", channel.name),
    })
}

/// How often something that begins so was told.
pub fn times(world: &World, begins: &str) -> usize {
    told(world).iter().filter(|line| line.starts_with(begins)).count()
}

pub fn playing(id: &str, media: &[&str]) -> Playing {
    let media = media.iter().map(|uri| (*uri).to_owned()).collect();
    Playing { media, id: Some(id.to_owned()), ..Playing::default() }
}

pub fn recording(name: &str) -> Recording {
    Recording { name: name.to_owned(), format: "wav".to_owned(), ..Recording::default() }
}

pub fn bridge(world: &World, id: &str, kind: BridgeKind) -> Rc<str> {
    let new = NewBridge { id: Some(id.to_owned()), kind, ..NewBridge::default() };
    apps::stasis::create_bridge(&world.shard, new).unwrap()
}

pub fn add(world: &World, bridge: &str, channels: &[&str]) -> Result<(), StasisError> {
    apps::stasis::add_channels(&world.shard, bridge, channels, Joining::default())
}

/// Nothing is left of any program's calls.
pub fn programs_at_rest(world: &World) {
    let core = world.shard.core.borrow();
    assert!(core.stasis.is_at_rest(), "{:?}", core.stasis);
}

pub fn status<T>(result: Result<T, StasisError>) -> u16 {
    result.map_or_else(|why| why.status(), |_| 200)
}
