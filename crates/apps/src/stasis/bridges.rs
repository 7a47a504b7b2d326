//! What programs ask of bridges.

use std::rc::Rc;

use base::ChannelId;
use call::stasis::{
    BridgeKind, BridgeMember, LiveRecording, NewBridge, Playback, PlaybackState, RecordingState, StasisError,
    Target,
};
use call::{Shard, VideoChoice};

use super::announce;
use super::channels::{Playing, Recording};

/// Most channels of one order.
const CHANNELS_MAX: usize = 256;
/// Longest name of a class of music, bytes.
const CLASS_BYTES_MAX: usize = 256;

/// How channels come into a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Joining {
    /// `role=announcer`: in a holding bridge all others hear it.
    pub announces: bool,
    /// Its digits are not passed on.
    pub absorbs_digits: bool,
    /// The others do not hear it.
    pub is_muted: bool,
    /// The others are not shown who it is.
    pub is_quiet: bool,
}

/// Makes a bridge; its id.
///
/// Errors: the id is too long (`BadRequest`), it is taken (`Conflict`), there are too many (`Internal`).
pub fn create_bridge(shard: &Rc<Shard>, new: NewBridge) -> Result<Rc<str>, StasisError> {
    shard.core.borrow_mut().stasis_bridge_create(new)
}

/// Takes a bridge away; its channels stay with their programs.
pub fn destroy_bridge(shard: &Rc<Shard>, bridge: &str) -> Result<(), StasisError> {
    shard.core.borrow_mut().stasis_bridge_destroy(bridge)
}

fn channels(shard: &Rc<Shard>, bridge: &str, named: &[&str]) -> Result<Vec<ChannelId>, StasisError> {
    let core = shard.core.borrow();
    core.stasis.bridge(bridge).ok_or_else(StasisError::no_bridge)?;
    if named.is_empty() || named.len() > CHANNELS_MAX {
        return Err(StasisError::BadRequest("channel parameter is required".into()));
    }
    let found = named.iter().map(|name| core.stasis_channel(name));
    // A bridge that is there, and a channel that is not, is the caller's mistake.
    found.collect::<Result<_, _>>().map_err(|_| StasisError::BadRequest("Channel not found".into()))
}

/// Puts channels into a bridge, out of those that they are in: all, or none where one of them is not a program's.
///
/// Errors: no such bridge (`NotFound`), no such channel (`BadRequest`), one is in no program's hands or is being recorded
/// (`Conflict`), one has no media (`Unprocessable`), the bridge is full (`Internal`).
pub fn add_channels(
    shard: &Rc<Shard>,
    bridge: &str,
    named: &[&str],
    joining: Joining,
) -> Result<(), StasisError> {
    let ids = channels(shard, bridge, named)?;
    let mut core = shard.core.borrow_mut();
    for (id, name) in ids.iter().zip(named) {
        core.stasis_stays(*id)?;
        let own = Target::Channel((*name).into());
        if core.stasis.recordings().any(|recording| recording.target == own) {
            return Err(StasisError::Conflict("Channel currently recording".into()));
        }
    }
    for id in ids {
        let Joining { announces, absorbs_digits, is_muted, is_quiet } = joining;
        let member = BridgeMember { channel: id, announces, absorbs_digits, is_muted, is_quiet };
        core.stasis_bridge_enter(bridge, member)?;
    }
    Ok(())
}

/// Takes channels out of a bridge: all, or none where one of them is not in it.
///
/// Errors: no such bridge (`NotFound`), no such channel (`BadRequest`), one is in no program's hands (`Conflict`), one is not
/// in this bridge (`Unprocessable`).
pub fn remove_channels(shard: &Rc<Shard>, bridge: &str, named: &[&str]) -> Result<(), StasisError> {
    let ids = channels(shard, bridge, named)?;
    let mut core = shard.core.borrow_mut();
    for id in &ids {
        core.stasis_stays(*id)?;
        if core.stasis_bridge_of(*id).is_none_or(|found| &*found.id != bridge) {
            return Err(StasisError::Unprocessable("Channel not in this bridge".into()));
        }
    }
    for id in ids {
        // The same channel may be named twice.
        let _ = core.stasis_bridge_leave(bridge, id);
    }
    Ok(())
}

/// Lets all in a bridge hear music of a class (`Some`; an empty one is the default one, and in a holding bridge each channel's
/// own), or none more. Those in a mixing one hear each other beside it.
pub fn bridge_music(shard: &Rc<Shard>, bridge: &str, class: Option<&str>) -> Result<(), StasisError> {
    if class.is_some_and(|class| class.len() > CLASS_BYTES_MAX) {
        return Err(StasisError::BadRequest("mohClass is too long".into()));
    }
    if class.is_none() && shard.core.borrow().stasis.bridge(bridge).is_some_and(|found| found.music.is_none())
    {
        return Err(StasisError::Conflict("Bridge isn't playing music".into()));
    }
    let story = shard.core.borrow_mut().stasis_bridge_music(bridge, class.map(str::to_owned))?;
    if let Some(story) = story
        && !shard.spawn(None, announce::music(shard.clone(), bridge.into(), story))
    {
        shard.core.borrow_mut().stasis_bridge_music(bridge, None)?;
        return Err(StasisError::full());
    }
    Ok(())
}

/// Plays to all in a bridge, when what is before it is over.
///
/// Errors: no such bridge (`NotFound`), nothing to be played (`BadRequest`), the id is taken (`Conflict`), too much is going on
/// (`Internal`).
pub fn bridge_play(shard: &Rc<Shard>, bridge: &str, wanted: Playing) -> Result<Playback, StasisError> {
    let (playback, needs_story) = {
        let mut core = shard.core.borrow_mut();
        core.stasis.bridge(bridge).ok_or_else(StasisError::no_bridge)?;
        let playback = wanted.keep(&mut core, Target::Bridge(bridge.into()))?;
        match core.stasis_bridge_queue(bridge, playback.key.clone()) {
            Ok(needs_story) => (playback, needs_story),
            Err(why) => {
                core.stasis_end_playback(&playback.key, PlaybackState::Failed);
                return Err(why);
            }
        }
    };
    if needs_story && !shard.spawn(None, announce::play(shard.clone(), bridge.into())) {
        let mut core = shard.core.borrow_mut();
        core.stasis_bridge_played(bridge, &playback.key);
        core.stasis_bridge_next(bridge);
        core.stasis_end_playback(&playback.key, PlaybackState::Failed);
        return Err(StasisError::full());
    }
    Ok(playback)
}

/// Records what is said in a bridge.
///
/// Errors: no such bridge (`NotFound`), a bad name (`BadRequest`), an unknown format, or an end by silence or a digit, which is
/// not listened for among several (`Unprocessable`), the file is there, or the bridge is being recorded (`Conflict`), too
/// much is going on (`Internal`).
pub fn bridge_record(
    shard: &Rc<Shard>,
    bridge: &str,
    wanted: Recording,
) -> Result<LiveRecording, StasisError> {
    let recording = {
        let mut core = shard.core.borrow_mut();
        let found = core.stasis.bridge(bridge).ok_or_else(StasisError::no_bridge)?.recording().is_some();
        wanted.format_of(&core)?;
        if found {
            return Err(StasisError::Conflict("the bridge is being recorded".into()));
        }
        if !wanted.max_silence.is_zero() {
            return Err(StasisError::Unprocessable(
                "maxSilenceSeconds is for channels, not for bridges".into(),
            ));
        }
        if !matches!(wanted.terminate_on.as_str(), "" | "none") {
            return Err(StasisError::Unprocessable("terminateOn is for channels, not for bridges".into()));
        }
        let recording = wanted.keep(&mut core, Target::Bridge(bridge.into()))?;
        core.stasis_bridge_records(bridge, Some(recording.name.clone()))?;
        recording
    };
    let story = announce::record(shard.clone(), bridge.into(), recording.name.clone());
    if !shard.spawn(None, story) {
        let mut core = shard.core.borrow_mut();
        let why = StasisError::full();
        core.stasis_end_recording(&recording.name, RecordingState::Failed, why.text(), Default::default());
        core.stasis_bridge_records(bridge, None)?;
        return Err(why);
    }
    Ok(recording)
}

/// The video of a channel is seen in a bridge from here on.
///
/// Errors: no such bridge (`NotFound`), no such channel (`BadRequest`), one that no program has or that is not in this bridge
/// (`Unprocessable`).
pub fn set_video_source(shard: &Rc<Shard>, bridge: &str, channel: &str) -> Result<(), StasisError> {
    let mut core = shard.core.borrow_mut();
    core.stasis.bridge(bridge).ok_or_else(StasisError::no_bridge)?;
    let id = core.stasis_channel(channel).map_err(|_| StasisError::BadRequest("Channel not found".into()))?;
    core.stasis_stays(id).map_err(|why| StasisError::Unprocessable(why.text().to_owned().into()))?;
    core.stasis_bridge_shows(bridge, Some(id))
}

/// That of whoever talks is seen again.
pub fn clear_video_source(shard: &Rc<Shard>, bridge: &str) -> Result<(), StasisError> {
    shard.core.borrow_mut().stasis_bridge_shows(bridge, None)
}

/// The kind that a list of attributes names (`mixing,dtmf_events,proxy_media`), and the two attributes.
impl Joining {
    /// Reads `type` of a request.
    ///
    /// Errors: a word that is none (`Internal`, as in the field).
    pub fn kind_of(attributes: &str) -> Result<(BridgeKind, bool, bool, VideoChoice), StasisError> {
        let (mut kind, mut dtmf_events, mut proxy_media) = (BridgeKind::Mixing, false, false);
        let mut video = VideoChoice::Talker;
        for word in attributes.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "mixing" => kind = BridgeKind::Mixing,
                "holding" => kind = BridgeKind::Holding,
                "dtmf_events" => dtmf_events = true,
                "proxy_media" => proxy_media = true,
                "video_sfu" => video = VideoChoice::Sfu,
                "video_single" => video = VideoChoice::Single,
                "sdp_label" => {}
                _ => return Err(StasisError::Internal("Unable to create bridge".into())),
            }
        }
        Ok((kind, dtmf_events, proxy_media, video))
    }
}
