//! Channels that listen to another one, and speak to it beside whom it talks to.
//!
//! A spy has one channel it listens to. What the media plane does for it hangs on streams: it is brought up to date
//! ([`Core::spy_follow`]) whenever the other one changes its bridge or its place, of which the spy's story hears by
//! [`ChanEvent::Spied`].

use std::rc::Rc;

use base::{ChannelId, Command, FormatId, Gain, MonitorSettings, MonitorSinks, StreamId, line};

use crate::{ChanEvent, Core, Notice};

/// Spies of a whole system: supervisors who listen at the same moment. Each costs its streams an encoder.
const SPIES_MAX: usize = 1024;

/// Who hears the spy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Voice {
    /// Nobody.
    #[default]
    Silent,
    /// Who is spied on.
    Whisper,
    /// All in its bridge.
    Barge,
    /// All in its bridge but who is spied on: it speaks as if that one did.
    Aside,
}

impl Voice {
    /// Whether the others in the bridge hear it.
    fn reaches_others(self) -> bool {
        matches!(self, Self::Barge | Self::Aside)
    }
}

/// What a spy wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpyWish {
    /// It hears what the other says.
    pub hears: bool,
    /// It hears what the other hears.
    pub overhears: bool,
    /// How loud both are.
    pub gain: Gain,
    /// Who hears it.
    pub voice: Voice,
}

impl Default for SpyWish {
    /// Hears both, and is heard by nobody.
    fn default() -> Self {
        Self { hears: true, overhears: true, gain: Gain::UNITY, voice: Voice::Silent }
    }
}

/// One spy and what is done for it.
#[derive(Debug)]
pub struct Spy {
    /// Whom it listens to. The name stays with the party; the id may become another's.
    name: Rc<str>,
    on: ChannelId,
    wish: SpyWish,
    /// The stream that is listened to, and the number of its monitor.
    ear: Option<(StreamId, u32)>,
    voices: Vec<Murmur>,
}

/// The spy's voice on its way to one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Murmur {
    to: StreamId,
    murmur: u32,
    /// The spy's own stream, and the number of the monitor that takes its voice from there.
    from: StreamId,
    monitor: u32,
}

impl Spy {
    /// Whom it listens to.
    pub fn on(&self) -> ChannelId {
        self.on
    }
    /// What it wants.
    pub fn wish(&self) -> SpyWish {
        self.wish
    }
    fn settings(&self) -> MonitorSettings {
        let SpyWish { hears, overhears, gain, .. } = self.wish;
        MonitorSettings { hears, says: overhears, heard: gain, said: gain, ..MonitorSettings::default() }
    }
}

impl Core {
    /// The spy that a channel is.
    pub fn spy(&self, id: ChannelId) -> Option<&Spy> {
        self.spies.get(&id)
    }
    /// Whether somebody listens to a channel.
    pub fn is_spied_on(&self, id: ChannelId) -> bool {
        self.spies.values().any(|spy| spy.on == id)
    }
    /// Lets `id` listen to `on`, and to nobody else. The error says why it cannot.
    pub fn spy_begin(&mut self, id: ChannelId, on: ChannelId, wish: SpyWish) -> Result<(), String> {
        self.spy_end(id);
        if id == on {
            return Err("a channel cannot listen to itself".to_owned());
        }
        if self.spies.len() >= SPIES_MAX {
            return Err(format!("no more than {SPIES_MAX} channels spy at once"));
        }
        let channel = self.get(on).filter(|channel| channel.hangup.is_none());
        let Some((name, _)) = channel.and_then(|channel| Some((channel.name.clone(), channel.stream?)))
        else {
            return Err("it is gone, or has no media".to_owned());
        };
        if self.get(id).and_then(|channel| channel.stream).is_none() {
            return Err("this channel has no media".to_owned());
        }
        self.spies.insert(id, Spy { name, on, wish, ear: None, voices: Vec::new() });
        self.spy_follow(id);
        self.notice(|core| {
            let (spyer, spyee) = (Box::new(core.snapshot(id)?), Box::new(core.snapshot(on)?));
            Some(Notice::SpyStart { spyer, spyee })
        });
        Ok(())
    }
    /// What a spy wants from here on.
    pub fn spy_change(&mut self, id: ChannelId, wish: SpyWish) {
        let Some(spy) = self.spies.get_mut(&id) else { return };
        spy.wish = wish;
        let (ear, settings) = (spy.ear, spy.settings());
        if let Some((stream, monitor)) = ear {
            self.media(Command::AdjustMonitor { stream, monitor, settings });
        }
        self.spy_follow(id);
    }
    /// Brings what is done for a spy up to date; false when whom it listens to is gone.
    pub fn spy_follow(&mut self, id: ChannelId) -> bool {
        let Some(mut spy) = self.spies.remove(&id) else { return false };
        let on = self.by_name(&spy.name).filter(|on| *on != id);
        let goes_on = |core: &Self, on: &ChannelId| core.get(*on).is_some_and(|c| c.hangup.is_none());
        let found = on.filter(|on| goes_on(self, on));
        spy.on = found.unwrap_or(spy.on);
        self.spy_listen(id, &mut spy, found);
        self.spy_speak(id, &mut spy, found);
        self.spies.insert(id, spy);
        found.is_some()
    }
    fn spy_listen(&mut self, id: ChannelId, spy: &mut Spy, on: Option<ChannelId>) {
        let listens = spy.wish.hears || spy.wish.overhears;
        let wanted = on.filter(|_| listens).and_then(|on| Some((on, self.get(on)?.stream?)));
        if spy.ear.map(|(stream, _)| stream) == wanted.map(|(_, stream)| stream) {
            return;
        }
        let own = self.get(id).and_then(|channel| Some((channel.stream?, channel.format.linear())));
        if let Some((stream, monitor)) = spy.ear.take() {
            self.media(Command::StopMonitor { stream, monitor });
        }
        let (Some((on, stream)), Some((own, format))) = (wanted, own) else { return };
        let Some(monitor) = self.monitor_number(on) else { return };
        let (to, from) = line(format.rate());
        let sinks = Box::new(MonitorSinks { mixed: Some(Box::new(to)), ..MonitorSinks::default() });
        let settings = spy.settings();
        self.media(Command::Monitor { stream, monitor, format, settings, sinks });
        self.media(Command::Live { stream: own, format, source: Box::new(from) });
        spy.ear = Some((stream, monitor));
    }
    fn spy_speak(&mut self, id: ChannelId, spy: &mut Spy, on: Option<ChannelId>) {
        let mut wanted: Vec<(StreamId, FormatId)> = Vec::new();
        let own = self.get(id).and_then(|channel| channel.stream);
        if let (Some(on), true, true) = (on, spy.wish.voice != Voice::Silent, own.is_some()) {
            let bridge = self.get(on).and_then(|channel| channel.bridge);
            let others = bridge.filter(|_| spy.wish.voice.reaches_others());
            let others = others.map_or(&[][..], |bridge| self.bridge_members(bridge));
            let heard_by = others.iter().copied().filter(|member| *member != on && *member != id);
            wanted = Some(on)
                .filter(|_| spy.wish.voice != Voice::Aside)
                .into_iter()
                .chain(heard_by)
                .filter_map(|party| self.get(party))
                .filter_map(|channel| Some((channel.stream?, channel.format.linear())))
                .collect();
        }
        let (kept, ended): (Vec<_>, Vec<_>) = core::mem::take(&mut spy.voices)
            .into_iter()
            .partition(|voice| Some(voice.from) == own && wanted.iter().any(|(to, _)| *to == voice.to));
        for Murmur { to, murmur, from, monitor } in ended {
            self.media(Command::StopMonitor { stream: from, monitor });
            self.media(Command::StopMurmur { stream: to, murmur });
        }
        spy.voices = kept;
        let Some(from) = own else { return };
        for (to, format) in wanted {
            if spy.voices.iter().any(|voice| voice.to == to) {
                continue;
            }
            let Some(monitor) = self.monitor_number(id) else { return };
            self.last_murmur = self.last_murmur.wrapping_add(1);
            let murmur = self.last_murmur;
            let (sink, source) = line(format.rate());
            let sinks = Box::new(MonitorSinks { heard: Some(Box::new(sink)), ..MonitorSinks::default() });
            let settings = MonitorSettings::default();
            self.media(Command::Monitor { stream: from, monitor, format, settings, sinks });
            self.media(Command::Murmur { stream: to, murmur, format, source: Box::new(source) });
            spy.voices.push(Murmur { to, murmur, from, monitor });
        }
    }
    /// Writes what a channel is sent to a file, until [`Core::monitor_starve`] with the number that this gives. No recording,
    /// and not seen as one.
    pub fn spy_record(&mut self, id: ChannelId, path: &str, extension: &str) -> Result<u32, String> {
        let channel = self.get(id).ok_or("the channel is gone")?;
        let stream = channel.stream.ok_or("the channel has no media")?;
        let take = self.services.recorder.open(path, extension, false);
        let take = take.map_err(|why| format!("{path}.{extension} cannot be written: {why}"))?;
        let monitor = self.monitor_number(id).ok_or("the channel is gone")?;
        let sinks = Box::new(MonitorSinks { said: Some(take.sink), ..MonitorSinks::default() });
        let settings = MonitorSettings::default();
        self.media(Command::Monitor { stream, monitor, format: take.format, settings, sinks });
        Ok(monitor)
    }
    /// A channel listens to nobody any more; nothing when it did not.
    pub fn spy_end(&mut self, id: ChannelId) {
        let Some(mut spy) = self.spies.remove(&id) else { return };
        self.spy_speak(id, &mut spy, None);
        if let Some((stream, monitor)) = spy.ear {
            self.media(Command::StopMonitor { stream, monitor });
            if let Some(stream) = self.get(id).and_then(|channel| channel.stream) {
                self.media(Command::StopPlay { stream });
            }
        }
        self.notice(|core| {
            let (spyer, spyee) = (Box::new(core.snapshot(id)?), core.snapshot(spy.on).map(Box::new));
            Some(Notice::SpyStop { spyer, spyee })
        });
    }
    /// Something about a channel has changed: whoever listens to it looks again.
    pub(crate) fn spied_changed(&mut self, id: ChannelId) {
        if self.spies.is_empty() {
            return;
        }
        let concerns = |spy: &Spy| spy.on == id || spy.wish.voice.reaches_others();
        let spies: Vec<_> = self.spies.iter().filter(|(_, spy)| concerns(spy)).map(|(id, _)| *id).collect();
        for spy in spies {
            self.push_event(spy, ChanEvent::Spied);
        }
    }
}
