//! What a waiting caller hears: music or ringing, and announcements between.

use std::collections::VecDeque;

use ::queue::Said;
use base::PlayId;
use call::{Chan, Indication, Prompt, Stop};

use crate::say;

/// What the caller hears; silent when dropped.
pub(crate) struct Voice {
    chan: Chan,
    background: Background,
    sounds: bool,
    playing: Option<PlayId>,
    to_play: VecDeque<Prompt>,
}

/// What is heard when nothing is said.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Background {
    Music(String),
    Ringing,
    /// Nothing: nobody listens.
    Silence,
}

impl Voice {
    pub(crate) fn new(chan: &Chan, background: Background) -> Self {
        Self { chan: chan.clone(), background, sounds: false, playing: None, to_play: VecDeque::new() }
    }
    /// Begins the background.
    pub(crate) async fn start(&mut self) -> Result<(), Stop> {
        match &self.background {
            Background::Silence => {}
            Background::Ringing if self.chan.state() == call::ChanState::Up => {
                self.sounds = self.chan.start_tone("ring");
            }
            Background::Ringing => self.chan.indicate(&Indication::Ringing),
            Background::Music(class) => {
                self.sounds = self.chan.start_music(class).await?;
            }
        }
        Ok(())
    }
    /// Another background from here on.
    pub(crate) async fn change(&mut self, background: Background) -> Result<(), Stop> {
        if self.background == background {
            return Ok(());
        }
        let said = self.playing.is_some();
        if !said {
            self.hush();
        }
        self.background = background;
        if said { Ok(()) } else { self.start().await }
    }
    /// Says this, and whether there is anything to hear of it; what is still being said gives way.
    pub(crate) async fn say(&mut self, said: &[Said]) -> Result<bool, Stop> {
        let mut clips = VecDeque::new();
        for piece in said {
            let names = match piece {
                Said::Sound(name) => vec![name.to_string()],
                Said::Number(number) => say::number_words(&self.chan, i64::from(*number)).await?,
            };
            for name in names {
                clips.extend(self.chan.clip(&name).await?);
            }
        }
        if clips.is_empty() {
            return Ok(false);
        }
        self.hush();
        self.to_play = clips;
        self.play_next();
        Ok(true)
    }
    /// A sound has ended; whether that was the last of an announcement.
    pub(crate) async fn played(&mut self, play: PlayId) -> Result<bool, Stop> {
        if self.playing != Some(play) {
            return Ok(false);
        }
        self.play_next();
        if self.playing.is_some() {
            return Ok(false);
        }
        self.start().await?;
        Ok(true)
    }
    /// Silence.
    pub(crate) fn hush(&mut self) {
        if std::mem::take(&mut self.sounds) {
            match self.background {
                Background::Music(_) => self.chan.stop_music(),
                Background::Ringing => self.chan.stop_sound(),
                Background::Silence => {}
            }
        }
        self.to_play.clear();
        if self.playing.take().is_some() {
            self.chan.stop_sound();
        }
    }
    /// Ends an announcement, for the background.
    pub(crate) async fn only_background(&mut self) -> Result<(), Stop> {
        if self.playing.is_some() {
            self.hush();
            self.start().await?;
        }
        Ok(())
    }
    fn play_next(&mut self) {
        self.playing = self.to_play.pop_front().map(|clip| self.chan.start_clip(clip, 0));
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        self.hush();
    }
}
