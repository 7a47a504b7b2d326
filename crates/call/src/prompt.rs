//! Sounds that channels hear, as channel event logging has them: whatever plays one, it begins and ends.

use core::ops::Deref;
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use base::{ChannelId, Clip, FormatId, PlayEnd, PlayId};

use crate::{CelKind, ClipWant, Core, Extras, Notice};

/// A clip as a channel is to hear it. One that was asked for by name is logged under that name; others are not.
#[derive(Debug, Clone)]
pub struct Prompt {
    clip: Arc<Clip>,
    named: Option<Rc<Named>>,
    is_continued: bool,
}

#[derive(Debug)]
struct Named {
    name: String,
    language: String,
    /// The format that its file has.
    format: FormatId,
    /// Its beginning is logged.
    begins: bool,
}

impl Prompt {
    /// One that was asked for by name.
    pub fn named(clip: Arc<Clip>, want: &ClipWant, core: &mut Core) -> Self {
        let format = core.services.library.source(want);
        let named = Named { name: want.name.clone(), language: want.language.clone(), format, begins: true };
        Self { clip, named: Some(Rc::new(named)), is_continued: false }
    }
    /// The same, of which only the end is logged, as the field does where a script streams a file.
    pub fn without_beginning(mut self) -> Self {
        if let Some(named) = &self.named {
            let (name, language) = (named.name.clone(), named.language.clone());
            self.named = Some(Rc::new(Named { name, language, format: named.format, begins: false }));
        }
        self
    }
    /// The same, played on from another place: it neither ends nor begins.
    pub fn continued(&self) -> Self {
        Self { is_continued: true, ..self.clone() }
    }
    /// Whether it was asked for by name.
    pub(crate) fn is_named(&self) -> bool {
        self.named.is_some()
    }
    /// How long it is, of linear samples.
    pub fn lasts(&self) -> Duration {
        let (samples, rate) = (self.clip.data.len() as u64 / 2, u64::from(self.clip.format.rate().0.max(1)));
        Duration::from_millis(samples * 1_000 / rate)
    }
    /// What is logged of its beginning.
    pub(crate) fn said(&self) -> Extras {
        let Some(named) = &self.named else { return Vec::new() };
        vec![
            ("sound", named.name.as_str().into()),
            ("format", named.format.name().into()),
            ("language", named.language.as_str().into()),
        ]
    }
    /// What is heard.
    pub fn clip(&self) -> &Arc<Clip> {
        &self.clip
    }
}

impl From<Arc<Clip>> for Prompt {
    fn from(clip: Arc<Clip>) -> Self {
        Self { clip, named: None, is_continued: false }
    }
}

impl Deref for Prompt {
    type Target = Clip;
    fn deref(&self) -> &Clip {
        &self.clip
    }
}

impl Core {
    /// A channel begins to hear a prompt; what it heard before is over.
    pub(crate) fn prompt_begins(&mut self, id: ChannelId, play: PlayId, prompt: &Prompt) {
        if prompt.is_continued {
            if let Some(sounding) = self.get_mut(id).and_then(|channel| channel.sounding.as_mut()) {
                *sounding = play;
            }
            return;
        }
        self.prompt_ends(id, None);
        let Some(named) = &prompt.named else { return };
        let Some(channel) = self.get_mut(id) else { return };
        channel.sounding = Some(play);
        if named.begins {
            self.log_event(CelKind::StreamBegin, id, |_| prompt.said());
        }
    }
    /// What a channel hears has ended: this one, or whatever it is.
    pub(crate) fn prompt_ends(&mut self, id: ChannelId, play: Option<PlayId>) {
        let Some(channel) = self.get_mut(id) else { return };
        let heard = channel.sounding.take_if(|sounding| play.is_none_or(|play| play == *sounding));
        if heard.is_some() {
            self.log_event(CelKind::StreamEnd, id, |_| Vec::new());
        }
    }
    /// The media plane has played it. One that its listener moves about in may go on from elsewhere.
    pub(crate) fn prompt_played(&mut self, id: ChannelId, play: PlayId, end: PlayEnd) {
        let is_steered = self.get(id).is_some_and(|channel| channel.steers);
        if end != PlayEnd::Stopped || !is_steered {
            self.prompt_ends(id, Some(play));
        }
    }
    /// A channel begins to hear music of a class.
    pub(crate) fn music_begins(&mut self, id: ChannelId, class: String) {
        self.prompt_ends(id, None);
        self.music_ends(id);
        let Some(channel) = self.get_mut(id) else { return };
        channel.hears_music = true;
        let said = if class.is_empty() { "default".to_owned() } else { class };
        self.log_event(CelKind::StreamBegin, id, |_| vec![("class", said.as_str().into())]);
        self.notice_of(id, |channel| Notice::MusicOnHoldStart { channel, class: said });
    }
    /// Music ends, if the channel hears any.
    pub fn music_ends(&mut self, id: ChannelId) {
        let Some(channel) = self.get_mut(id) else { return };
        if std::mem::take(&mut channel.hears_music) {
            self.log_event(CelKind::StreamEnd, id, |_| Vec::new());
            self.notice_of(id, Notice::MusicOnHoldStop);
        }
    }
    /// Whatever the channel hears is over, because its dialplan is.
    pub fn all_sounds_end(&mut self, id: ChannelId) {
        self.prompt_ends(id, None);
        self.music_ends(id);
    }
}
