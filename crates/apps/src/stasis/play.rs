//! Sounds that a program plays to a channel.

use std::collections::VecDeque;
use std::rc::Rc;

use base::{PlayEnd, PlayId};
use call::stasis::{PlaybackState, PlaybackSteer};
use call::{Chan, ClipAnswer, ClipWant, Level, Prompt, Stop};

use super::media::{self, FINISHING_EVERY, FINISHING_TRIES, Sounds};
use super::stay::Stay;
use crate::control_playback::Cursor;

/// A sound that is heard, or several one after the other.
pub(super) struct Playing {
    id: Rc<str>,
    /// Which of them.
    at: usize,
    /// Files of it that come after the one that is heard.
    left: VecDeque<String>,
    heard: Option<Sounding>,
    /// What is done when the present file has stopped.
    then: VecDeque<PlaybackSteer>,
    /// Something of it was heard.
    well: bool,
}

/// A file on its way.
struct Sounding {
    clip: Prompt,
    play: PlayId,
    /// Byte at which it rests.
    rests: Option<usize>,
    /// It was told to stop, because something else is to be done.
    stops: bool,
}

impl Playing {
    pub(super) fn new(id: Rc<str>) -> Self {
        Self { id, at: 0, left: VecDeque::new(), heard: None, then: VecDeque::new(), well: false }
    }
    fn state(&self, chan: &Chan, state: PlaybackState) {
        chan.core(|core| core.stasis_playback(&self.id, self.at, state));
    }
    fn end(self, chan: &Chan, state: PlaybackState) -> Option<Self> {
        chan.core(|core| core.stasis_end_playback(&self.id, state));
        None
    }
    /// The program's channel is gone, or goes on elsewhere.
    pub(super) fn cut_short(self, chan: &Chan) {
        chan.stop_sound();
        self.end(chan, PlaybackState::Failed);
    }
    /// Begins the sound that is next; nothing when there is none, and all is over.
    pub(super) async fn item(mut self, stay: &Stay<'_>) -> Result<Option<Self>, Stop> {
        let chan = stay.chan;
        loop {
            let found = chan.core(|core| {
                let playback = core.stasis.playback(&self.id)?;
                Some((playback.media.get(self.at)?.clone(), playback.language.clone(), playback.offset_ms))
            });
            let Some((uri, language, offset_ms)) = found else {
                let state = if self.well { PlaybackState::Done } else { PlaybackState::Failed };
                return Ok(self.end(chan, state));
            };
            let mut tries = 0;
            while tries < FINISHING_TRIES && chan.core(|core| media::is_finishing(core, &uri)) {
                tries += 1;
                chan.wait_keeping(chan.now() + FINISHING_EVERY, |_| false).await?;
            }
            let own = chan.with(|c| c.language.clone())?;
            let language = if language.is_empty() { own } else { language };
            let offset_ms = if self.at == 0 { offset_ms } else { 0 };
            match chan.core(|core| media::sounds(core, &uri, &language)) {
                Some(Sounds::Files(files)) => {
                    self.left = files.into();
                    if self.file(chan, &language, offset_ms).await? {
                        return Ok(Some(self));
                    }
                }
                Some(Sounds::Tone(tone, zone)) => {
                    if self.tone(chan, &tone, &zone) {
                        return Ok(Some(self));
                    }
                }
                None => stay.call.log(Level::Warning, &format!("'{uri}' is nothing that can be played")),
            }
            // Programs hear of the attempt.
            self.state(chan, PlaybackState::Playing);
            self.at += 1;
        }
    }
    /// Plays the next file of the present sound that is there; false when there is none.
    async fn file(&mut self, chan: &Chan, language: &str, offset_ms: u64) -> Result<bool, Stop> {
        let format = chan.with(|c| c.format)?;
        if chan.stream()?.is_none() {
            return Ok(false);
        }
        while let Some(name) = self.left.pop_front() {
            let want = ClipWant { name, language: language.to_owned(), format };
            let shard = chan.shard().clone();
            match chan.while_up(shard.stasis_clip(&want)).await? {
                ClipAnswer::Ready(clip) => {
                    let clip = chan.core(|core| Prompt::named(clip, &want, core));
                    let cursor = Cursor::new(clip.clone(), 0);
                    let offset = cursor.bytes(offset_ms).min(clip.data.len());
                    self.sound(chan, clip, offset);
                    return Ok(true);
                }
                ClipAnswer::Missing(looked) => {
                    let text = format!("File {} does not exist in any format ({looked})", want.name);
                    chan.log(Level::Warning, "file", &text);
                }
                ClipAnswer::Loading => {}
            }
        }
        Ok(false)
    }
    fn tone(&mut self, chan: &Chan, tone: &str, zone: &str) -> bool {
        let found = chan.core(|core| {
            let (own, format) = core.get(chan.id()).map(|c| (c.tone_zone.clone(), c.format))?;
            core.services.library.tone(if zone.is_empty() { &own } else { zone }, tone, format)
        });
        found.map(|clip| self.sound(chan, clip.into(), 0)).is_some()
    }
    fn sound(&mut self, chan: &Chan, clip: Prompt, offset: usize) {
        self.well = true;
        self.state(chan, PlaybackState::Playing);
        let play = chan.start_clip(clip.clone(), offset);
        self.heard = Some(Sounding { clip, play, rests: None, stops: false });
    }
    /// Does what the program wants of it: nothing is left when it wants it to end.
    pub(super) async fn steered(mut self, stay: &Stay<'_>) -> Result<Option<Self>, Stop> {
        let chan = stay.chan;
        let Some(steers) = chan.core(|core| core.stasis_steered(&self.id)) else {
            chan.stop_sound();
            return Ok(self.end(chan, PlaybackState::Done));
        };
        self.then.extend(steers);
        self.act(stay).await
    }
    async fn act(mut self, stay: &Stay<'_>) -> Result<Option<Self>, Stop> {
        let chan = stay.chan;
        while let Some(steer) = self.then.front().copied() {
            let Some(heard) = &mut self.heard else { break };
            match (heard.rests, steer) {
                (None, PlaybackSteer::Unpause) | (Some(_), PlaybackSteer::Pause) => {}
                // It has to stop first, and tells where it was.
                (None, _) => {
                    if !core::mem::replace(&mut heard.stops, true) {
                        chan.stop_sound();
                    }
                    break;
                }
                (Some(from), PlaybackSteer::Unpause) => {
                    let clip = heard.clip.clone();
                    self.sound(chan, clip, from);
                }
                (Some(from), _) => {
                    heard.rests = Some(from);
                    match self.moved(stay, from, steer).await? {
                        Some(playing) => self = playing,
                        None => return Ok(None),
                    }
                }
            }
            self.then.pop_front();
        }
        Ok(Some(self))
    }
    /// Goes on from where a step leads.
    async fn moved(
        mut self,
        stay: &Stay<'_>,
        from: usize,
        steer: PlaybackSteer,
    ) -> Result<Option<Self>, Stop> {
        let chan = stay.chan;
        let Some(clip) = self.heard.as_ref().map(|heard| heard.clip.clone()) else { return Ok(Some(self)) };
        let skip_ms = chan.core(|core| core.stasis.playback(&self.id).map_or(0, |playback| playback.skip_ms));
        let skip = Cursor::new(clip.clone(), 0).bytes(skip_ms);
        match steer {
            PlaybackSteer::Restart => {
                self.heard = None;
                return self.item(stay).await;
            }
            PlaybackSteer::Reverse => self.sound(chan, clip, from.saturating_sub(skip)),
            PlaybackSteer::Forward => {
                let to = (from + skip).min(clip.data.len());
                self.sound(chan, clip, to);
            }
            PlaybackSteer::Pause | PlaybackSteer::Unpause => {}
        }
        Ok(Some(self))
    }
    /// A file has ended, or was stopped for what the program wants.
    pub(super) async fn played(
        mut self,
        stay: &Stay<'_>,
        (play, end, offset): (PlayId, PlayEnd, usize),
    ) -> Result<Option<Self>, Stop> {
        let chan = stay.chan;
        let Some(heard) = self.heard.as_mut().filter(|heard| heard.play == play && heard.rests.is_none())
        else {
            return Ok(Some(self));
        };
        if core::mem::take(&mut heard.stops) {
            if self.then.front() == Some(&PlaybackSteer::Pause) {
                self.then.pop_front();
                heard.rests = Some(offset);
                self.state(chan, PlaybackState::Paused);
                return self.act(stay).await;
            }
            if let Some(steer) = self.then.pop_front() {
                let moved = self.moved(stay, offset, steer).await?;
                let Some(moved) = moved else { return Ok(None) };
                return Box::pin(moved.act(stay)).await;
            }
        }
        self.heard = None;
        self.well &= end != PlayEnd::Failed;
        let language = chan.core(|core| core.stasis.playback(&self.id).map(|p| p.language.clone()));
        let own = chan.with(|c| c.language.clone())?;
        let language = language.filter(|language| !language.is_empty()).unwrap_or(own);
        if self.file(chan, &language, 0).await? {
            return Ok(Some(self));
        }
        self.at += 1;
        let goes_on =
            chan.core(|core| core.stasis.playback(&self.id).is_some_and(|p| p.media.len() > self.at));
        if goes_on {
            self.state(chan, PlaybackState::Continuing);
        }
        self.item(stay).await
    }
}
