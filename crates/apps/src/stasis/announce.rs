//! Stories of bridges: what all in one hear, and what is written down of it. Neither belongs to a channel.
//!
//! A room is told pieces of a sound, a little ahead of what it has heard, so that a program can stop, steer and let it rest at
//! any time.

use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use base::{Clip, Command, FormatId, Instant};
use call::stasis::{
    GuestKind, IfExists, PlaybackState, PlaybackSteer, RecordingState, TakeFile, Target, Tended,
};
use call::{CelKind, ClipAnswer, ClipWant, Core, Level, Shard};

use super::media::{self, FINISHING_EVERY, FINISHING_TRIES, Sounds};
use crate::control_playback::Cursor;

/// Length of a piece, milliseconds: a program's wish takes effect after two of them at most.
const PIECE_MS: u64 = 200;
/// How long before a room has heard all that it was told it is told more.
const AHEAD: Duration = Duration::from_millis(150);
/// How often a recording looks whether its file can still be written.
const FAILURE_EVERY: Duration = Duration::from_secs(1);
/// Linear sound of this rate is what rooms are told.
const FORMAT: FormatId = FormatId::SLIN;

/// Plays what waits for a bridge, one after the other, until nothing does.
pub(super) async fn play(shard: Rc<Shard>, bridge: Rc<str>) {
    loop {
        let next = shard.core.borrow_mut().stasis_bridge_next(&bridge);
        let Some(id) = next else { return };
        let tended = Tended::Playback(id.clone());
        let mut playing =
            Playing { shard: &shard, bridge: &bridge, id: &id, tended, at: 0, until: None, well: false };
        let state = playing.run().await;
        let mut core = shard.core.borrow_mut();
        core.stasis_bridge_played(&bridge, &id);
        core.stasis_end_playback(&id, state);
    }
}

/// Lets a bridge hear music until it is to hear none more; while something is played to it the music rests.
pub(super) async fn music(shard: Rc<Shard>, bridge: Rc<str>, story: u32) {
    let tended = Tended::Music(bridge.clone());
    let mut playing: Option<(String, Arc<Clip>)> = None;
    let (mut at, mut until) = (0, Instant::ZERO);
    loop {
        let now = shard.core.borrow().now;
        let wanted = {
            let core = shard.core.borrow();
            let found = core.stasis.bridge(&bridge).filter(|bridge| bridge.music_story == story);
            found.and_then(|bridge| bridge.music.clone())
        };
        let Some(class) = wanted else { return };
        if playing.as_ref().is_none_or(|(known, _)| *known != class) {
            let Some(clip) = music_of(&shard, &bridge, &class).await else { return };
            let named = if class.is_empty() { "default" } else { &class };
            let said = vec![("class", named.into())];
            shard.core.borrow_mut().stasis_guest_logs(&bridge, GuestKind::Music, CelKind::StreamBegin, said);
            (playing, at) = (Some((class, clip)), 0);
        }
        let Some((_, clip)) = &playing else { return };
        let cursor = Cursor::new(clip.clone(), 0);
        let rests = {
            let mut core = shard.core.borrow_mut();
            let rests = core.stasis.bridge(&bridge).is_none_or(|bridge| bridge.is_told());
            if !rests {
                if at >= clip.data.len() {
                    at = clip.loop_from.unwrap_or(0).min(clip.data.len());
                }
                let end = (at + cursor.bytes(PIECE_MS).max(1)).min(clip.data.len());
                if let (Some(room), Some(piece)) = (core.stasis_bridge_room(&bridge), clip.data.get(at..end))
                {
                    let data: Arc<[u8]> = piece.into();
                    let piece = Clip { format: clip.format, data, loop_from: None, packets: None };
                    core.media(Command::Announce { room, clip: Arc::new(piece) });
                }
                until = until.max(now) + Duration::from_millis(cursor.ms(end - at).max(1));
                at = end;
            }
            rests
        };
        let ahead = Duration::from_nanos(until.max(now).as_nanos()).saturating_sub(AHEAD);
        let next = (Instant::ZERO + ahead).max(now + Duration::from_millis(1));
        let next = if rests { now + Duration::from_millis(PIECE_MS) } else { next };
        shard.stasis_wait(&tended, Some(next)).await;
    }
}

/// Music of a class, linear; a line in the log where there is none.
async fn music_of(shard: &Rc<Shard>, bridge: &str, class: &str) -> Option<Arc<Clip>> {
    match shard.stasis_music(class, FORMAT).await {
        call::MusicAnswer::Ready(clip, _) if clip.format == FORMAT && !clip.data.is_empty() => Some(clip),
        _ => {
            let text =
                format!("bridge {bridge}: music on hold class '{class}' has nothing that can be mixed");
            shard.core.borrow_mut().log(Level::Warning, "Stasis", &text);
            None
        }
    }
}

/// A sound that a bridge hears.
struct Playing<'a> {
    shard: &'a Rc<Shard>,
    bridge: &'a str,
    id: &'a str,
    tended: Tended,
    at: usize,
    /// When the room has heard all that it was told.
    until: Option<Instant>,
    well: bool,
}

/// How one file ended.
enum Ended {
    Heard,
    /// A program has stopped it all, or the bridge is gone.
    Stopped,
    /// A program wants the present sound from its beginning on.
    Again,
}

impl Playing<'_> {
    fn core<R>(&self, look: impl FnOnce(&mut Core) -> R) -> R {
        look(&mut self.shard.core.borrow_mut())
    }
    fn state(&self, state: PlaybackState) {
        self.core(|core| core.stasis_playback(self.id, self.at, state));
    }
    async fn run(&mut self) -> PlaybackState {
        loop {
            let found = self.core(|core| {
                let playback = core.stasis.playback(self.id)?;
                let language = match playback.language.as_str() {
                    "" => core.settings.language.clone(),
                    own => own.to_owned(),
                };
                Some((playback.media.get(self.at)?.clone(), language, playback.offset_ms))
            });
            let Some((uri, language, offset_ms)) = found else { break };
            if self.at > 0 && self.well {
                self.state(PlaybackState::Continuing);
            }
            let offset_ms = if self.at == 0 { offset_ms } else { 0 };
            match self.item(&uri, &language, offset_ms).await {
                Ended::Heard => self.at += 1,
                Ended::Again => {}
                Ended::Stopped => return PlaybackState::Done,
            }
        }
        if self.well { PlaybackState::Done } else { PlaybackState::Failed }
    }
    async fn item(&mut self, uri: &str, language: &str, offset_ms: u64) -> Ended {
        let mut tries = 0;
        while tries < FINISHING_TRIES && self.core(|core| media::is_finishing(core, uri)) {
            tries += 1;
            let look = self.core(|core| core.now) + FINISHING_EVERY;
            self.shard.stasis_wait(&self.tended, Some(look)).await;
        }
        let files = match self.core(|core| media::sounds(core, uri, language)) {
            Some(Sounds::Files(files)) => files,
            Some(Sounds::Tone(tone, zone)) => {
                let clip = self.core(|core| core.services.library.tone(&zone, &tone, FORMAT));
                return match clip {
                    Some(clip) => self.sound(&clip, 0).await,
                    None => Ended::Heard,
                };
            }
            None => {
                let text = format!("'{uri}' is nothing that can be played");
                self.core(|core| core.log(Level::Warning, "Stasis", &text));
                return Ended::Heard;
            }
        };
        let mut offset_ms = offset_ms;
        for name in files {
            let want = ClipWant { name, language: language.to_owned(), format: FORMAT };
            match self.shard.stasis_clip(&want).await {
                ClipAnswer::Ready(clip) => {
                    self.log_begin(&want);
                    let from = Cursor::new(clip.clone(), 0).bytes(core::mem::take(&mut offset_ms));
                    let ended = self.sound(&clip, from.min(clip.data.len())).await;
                    self.log(CelKind::StreamEnd, Vec::new());
                    match ended {
                        Ended::Heard => {}
                        ended => return ended,
                    }
                }
                ClipAnswer::Missing(looked) => {
                    let text = format!("File {} does not exist in any format ({looked})", want.name);
                    self.core(|core| core.log(Level::Warning, "file", &text));
                    // Programs hear of the attempt.
                    self.state(PlaybackState::Playing);
                }
                ClipAnswer::Loading => {}
            }
        }
        Ended::Heard
    }
    /// Tells channel event logging that a file begins.
    fn log_begin(&self, want: &ClipWant) {
        let format = self.core(|core| core.services.library.source(want));
        let said = vec![
            ("sound", want.name.as_str().into()),
            ("format", format.name().into()),
            ("language", want.language.as_str().into()),
        ];
        self.log(CelKind::StreamBegin, said);
    }
    fn log(&self, kind: CelKind, extra: call::Extras) {
        self.core(|core| core.stasis_guest_logs(self.bridge, GuestKind::Announcer, kind, extra));
    }
    /// Tells the room a clip from a byte on, piece by piece.
    async fn sound(&mut self, clip: &Arc<Clip>, from: usize) -> Ended {
        self.well = true;
        self.state(PlaybackState::Playing);
        let cursor = Cursor::new(clip.clone(), 0);
        let (mut at, mut rests) = (from, false);
        loop {
            let wanted = self.core(|core| {
                let steers = core.stasis_steered(self.id)?;
                let skip_ms = core.stasis.playback(self.id)?.skip_ms;
                core.stasis_has_target(&Target::Bridge(self.bridge.into())).then_some((steers, skip_ms))
            });
            let Some((steers, skip_ms)) = wanted else { return Ended::Stopped };
            for steer in steers {
                match steer {
                    PlaybackSteer::Restart => return Ended::Again,
                    PlaybackSteer::Reverse => at = at.saturating_sub(cursor.bytes(skip_ms)),
                    PlaybackSteer::Forward => at = (at + cursor.bytes(skip_ms)).min(clip.data.len()),
                    PlaybackSteer::Pause | PlaybackSteer::Unpause => {
                        rests = steer == PlaybackSteer::Pause;
                        self.state(if rests { PlaybackState::Paused } else { PlaybackState::Playing });
                    }
                }
            }
            let now = self.core(|core| core.now);
            let until = self.until.filter(|until| *until > now);
            if rests {
                self.shard.stasis_wait(&self.tended, None).await;
                continue;
            }
            if at >= clip.data.len() {
                match clip.loop_from {
                    Some(again) if again < clip.data.len() => at = again,
                    _ => match until {
                        // All was told; it is over when it was heard.
                        Some(until) => {
                            self.shard.stasis_wait(&self.tended, Some(until)).await;
                            continue;
                        }
                        None => return Ended::Heard,
                    },
                }
            }
            if let Some(until) = until.filter(|until| *until > now + AHEAD) {
                let early = Duration::from_nanos(until.as_nanos()).saturating_sub(AHEAD);
                let more = Instant::ZERO + early;
                self.shard.stasis_wait(&self.tended, Some(more)).await;
                continue;
            }
            let end = (at + cursor.bytes(PIECE_MS).max(1)).min(clip.data.len());
            self.tell(clip, at, end);
            let lasts = Duration::from_millis(cursor.ms(end - at).max(1));
            self.until = Some(until.unwrap_or(now) + lasts);
            at = end;
        }
    }
    /// Lets all who are there hear a piece; a bridge in which nobody is hears nothing, and time goes on all the same.
    fn tell(&self, clip: &Arc<Clip>, from: usize, to: usize) {
        let piece = match clip.data.get(from..to) {
            Some(_) if from == 0 && to == clip.data.len() => clip.clone(),
            Some(piece) => {
                let data: Arc<[u8]> = piece.into();
                Arc::new(Clip { format: clip.format, data, loop_from: None, packets: None })
            }
            None => return,
        };
        self.core(|core| {
            if let Some(room) = core.stasis_bridge_room(self.bridge) {
                core.media(Command::Announce { room, clip: piece });
            }
        });
    }
}

/// Writes down what is said in a bridge until it is over. While nobody is there nothing is written.
pub(super) async fn record(shard: Rc<Shard>, bridge: Rc<str>, name: Rc<str>) {
    let tended = Tended::Recording(name.clone());
    let mut writing: Option<(base::RoomId, Arc<call::Progress>)> = None;
    let (mut begun, mut appends) = (false, false);
    let (state, cause) = loop {
        let now = shard.core.borrow().now;
        let looked = {
            let core = shard.core.borrow();
            core.stasis.recording(&name).map(|found| {
                let is_long = found.ends_at(now).is_some_and(|at| at <= now);
                (found.is_stopped() || is_long, found.is_unwanted(), found.ends_at(now))
            })
        };
        let Some((is_over, is_unwanted, ends_at)) = looked else {
            break (RecordingState::Canceled, String::new());
        };
        if is_over {
            let state = if is_unwanted { RecordingState::Canceled } else { RecordingState::Done };
            break (state, String::new());
        }
        if let Some(why) = writing.as_ref().and_then(|(_, progress)| progress.failure().map(str::to_owned)) {
            break (RecordingState::Failed, why);
        }
        let room = shard.core.borrow().stasis_bridge_room(&bridge);
        let is_same = writing.as_ref().map(|(room, _)| *room) == room;
        // The file of a room that is gone is complete before it is gone on with.
        let is_ready = writing.as_ref().is_none_or(|(_, progress)| progress.is_complete());
        if let Some(room) = room.filter(|_| !is_same && is_ready) {
            let opened = open(&mut shard.core.borrow_mut(), &name, room, appends);
            match opened {
                Ok(file) => {
                    let progress = file.1.clone();
                    let mut core = shard.core.borrow_mut();
                    match core::mem::replace(&mut begun, true) {
                        true => core.stasis_recording_file(&name, file),
                        false => core.stasis_start_recording(&name, Some(file)),
                    }
                    (writing, appends) = (Some((room, progress)), true);
                }
                Err(why) => break (RecordingState::Failed, why),
            }
        } else if room.is_none() && !core::mem::replace(&mut begun, true) {
            shard.core.borrow_mut().stasis_start_recording(&name, None);
        }
        let look = now + FAILURE_EVERY;
        shard.stasis_wait(&tended, Some(ends_at.map_or(look, |at| at.min(look)))).await;
    };
    let mut core = shard.core.borrow_mut();
    if let Some((room, _)) = writing {
        core.media(Command::StopRecordRoom { room });
    }
    if state == RecordingState::Failed {
        core.log(Level::Warning, "Stasis", &format!("recording {name} of bridge {bridge}: {cause}"));
    }
    core.stasis_end_recording(&name, state, &cause, Duration::ZERO);
    // The bridge may be gone.
    let _ = core.stasis_bridge_records(&bridge, None);
}

fn open(core: &mut Core, name: &str, room: base::RoomId, appends: bool) -> Result<TakeFile, String> {
    let path = media::recording_path(core, name).map_err(|why| why.to_string())?;
    let found = core.stasis.recording(name).ok_or("it was taken back")?;
    let (extension, appends) = (found.format.clone(), appends || found.if_exists == IfExists::Append);
    let take = core.services.recorder.open(&path, &extension, appends)?;
    let gate = core.stasis.recording(name).map(|found| found.gate(take.sink)).ok_or("it was taken back")?;
    core.media(Command::RecordRoom { room, format: take.format, sink: Box::new(gate) });
    Ok((take.afterwards, take.progress))
}
