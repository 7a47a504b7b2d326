//! What stands in for floor 3.

use core::net::IpAddr;
use core::time::Duration;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use base::{
    AudioSink, ChannelId, Clip, Command, Event, FormatId, Gain, Instant, Loudness, MonitorSettings, Plan,
    PlayEnd, PlayId, SoundWatch, StreamId,
};
use call::{
    Afterwards, ClipAnswer, ClipWant, Database, Level, Library, Log, MediaDoor, MediaRefused, MusicAnswer,
    Progress, Recorder, Take, WallClock,
};

use crate::phones::Act;

/// Bytes of a millisecond of the sound that everything here plays: linear, 8 kHz.
pub const MEDIA_BYTES_PER_MS: usize = 16;
/// How long a sound lasts that nobody gave a length.
pub const CLIP_DEFAULT: Duration = Duration::from_secs(1);
/// Wall time when the world begins, microseconds: Saturday 2026-11-21 12:00:00 UTC.
pub const WALL_START: i64 = 1_795_262_400_000_000;

/// Something that will happen.
pub(crate) enum Due {
    Media(Event),
    Act(ChannelId, Act),
    /// A script says this line, or ends.
    Link(call::LinkId, Option<String>),
}

struct Playing {
    name: String,
    play: PlayId,
    began: Instant,
    /// Byte that it began at.
    from: usize,
    bytes: usize,
    endless: bool,
}

/// What all the fakes share.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) now: Instant,
    pub(crate) agenda: BTreeMap<(Instant, u64), Due>,
    serial: u64,
    /// What was heard and said, with milliseconds.
    pub(crate) transcript: Vec<String>,
    pub(crate) log: Vec<(Level, String, String)>,
    pub(crate) verbose: u8,
    pub(crate) clips: HashMap<String, Duration>,
    pub(crate) missing: BTreeSet<String>,
    /// Classes of music that each hears from its beginning on.
    pub(crate) heard_alone: BTreeSet<String>,
    /// Sounds that make the library panic: a fault in an application's own code.
    pub(crate) explosive: BTreeSet<String>,
    names: HashMap<*const u8, String>,
    made: HashMap<String, Arc<Clip>>,
    playing: HashMap<StreamId, Playing>,
    music: HashMap<StreamId, String>,
    /// Streams that were opened and not closed.
    pub(crate) open: BTreeSet<StreamId>,
    /// Streams that are joined, each pair once each way.
    pub(crate) joined: BTreeMap<StreamId, StreamId>,
    /// No recording can be written any further once it is open.
    pub(crate) breaks_recordings: bool,
    /// Recordings that exist, as `path.extension`.
    pub(crate) recordings: BTreeSet<String>,
    /// Callers who are answered send nothing.
    pub(crate) mute: bool,
    /// What became of recordings, by `path.extension`.
    pub(crate) afterwards: HashMap<String, Arc<Afterwards>>,
    pub(crate) progress: HashMap<String, Arc<Progress>>,
    pub(crate) streams: u32,
    /// What every stream answers that is asked for its totals.
    pub(crate) stats: base::StreamStats,
    pub(crate) db: BTreeMap<(String, String), String>,
    /// The disk stands still: nothing that the database is given reaches it.
    pub(crate) disk_stands: bool,
    pub(crate) headers: HashMap<(ChannelId, String), String>,
    pub(crate) scripts: crate::scripts::Scripts,
    pub(crate) mail: crate::MailStore,
}

pub(crate) type Shared = Rc<RefCell<State>>;

impl State {
    pub(crate) fn at(&mut self, when: Instant, due: Due) {
        self.serial += 1;
        self.agenda.insert((when, self.serial), due);
    }
    pub(crate) fn say(&mut self, text: &str) {
        self.transcript.push(format!("{} {text}", self.now.as_millis()));
    }
    pub(crate) fn clip(&mut self, name: &str, length: Duration, endless: bool) -> Arc<Clip> {
        if let Some(clip) = self.made.get(name) {
            return clip.clone();
        }
        let millis = usize::try_from(length.as_millis()).unwrap_or(usize::MAX / MEDIA_BYTES_PER_MS).max(1);
        let data: Arc<[u8]> = vec![0; millis * MEDIA_BYTES_PER_MS].into();
        self.names.insert(data.as_ptr(), name.to_owned());
        let clip =
            Arc::new(Clip { format: FormatId::SLIN, data, loop_from: endless.then_some(0), packets: None });
        self.made.insert(name.to_owned(), clip.clone());
        clip
    }
    /// A stream begins.
    pub(crate) fn open_stream(&mut self) -> StreamId {
        self.streams += 1;
        let stream = StreamId::new(self.streams, 0);
        self.open.insert(stream);
        stream
    }
    fn part(&mut self, stream: StreamId) {
        if let Some(other) = self.joined.remove(&stream) {
            self.joined.remove(&other);
        }
    }
    /// The endless sound that a stream hears: music or a tone.
    pub(crate) fn endless(&self, stream: StreamId) -> Option<String> {
        let tone = self.playing.get(&stream).filter(|playing| playing.endless).map(|playing| &playing.name);
        self.music.get(&stream).or(tone).cloned()
    }
    fn name_of(&self, clip: &Clip) -> String {
        self.names.get(&clip.data.as_ptr()).cloned().unwrap_or_else(|| "unnamed".to_owned())
    }
    fn stop(&mut self, stream: StreamId) {
        self.music.remove(&stream);
        if let Some(playing) = self.playing.remove(&stream) {
            let played = usize::try_from((self.now - playing.began).as_millis()).unwrap_or(usize::MAX);
            let offset = (playing.from + played.saturating_mul(MEDIA_BYTES_PER_MS)).min(playing.bytes);
            let now = self.now;
            if !playing.endless && offset == playing.bytes {
                return;
            }
            self.agenda.retain(|_, due| {
                !matches!(due, Due::Media(Event::Played { stream: of, play, .. }) if *of == stream && *play == playing.play)
            });
            self.at(
                now,
                Due::Media(Event::Played { stream, play: playing.play, end: PlayEnd::Stopped, offset }),
            );
        }
    }
}

pub(crate) struct Media(pub(crate) Shared);

impl MediaDoor for Media {
    fn open(&mut self, _: IpAddr, plan: Plan) -> Result<(StreamId, u16), MediaRefused> {
        self.open_internal(plan).map(|stream| (stream, 10_000))
    }
    fn open_internal(&mut self, _: Plan) -> Result<StreamId, MediaRefused> {
        Ok(self.0.borrow_mut().open_stream())
    }
    fn command(&mut self, command: Command) {
        let mut state = self.0.borrow_mut();
        let now = state.now;
        match command {
            Command::Play { stream, play, clip, offset } => {
                state.stop(stream);
                let name = state.name_of(&clip);
                let from = match offset / MEDIA_BYTES_PER_MS {
                    0 => String::new(),
                    ms => format!(" from {ms} ms"),
                };
                state.say(&format!("#{} hears {name}{from}", stream.slot));
                let endless = clip.loop_from.is_some();
                let bytes = clip.data.len();
                state
                    .playing
                    .insert(stream, Playing { name, play, began: now, from: offset, bytes, endless });
                if !endless {
                    let left = bytes.saturating_sub(offset) / MEDIA_BYTES_PER_MS;
                    let end = now + Duration::from_millis(u64::try_from(left).unwrap_or(u64::MAX));
                    let finished = Event::Played { stream, play, end: PlayEnd::Finished, offset: bytes };
                    state.at(end, Due::Media(finished));
                }
            }
            Command::Music { stream, clip, epoch } => {
                state.stop(stream);
                let name = state.name_of(&clip);
                let alone =
                    name.strip_prefix("music ").is_some_and(|class| state.heard_alone.contains(class));
                let from = match (now - epoch).as_millis() {
                    1.. if alone => format!(" from {} ms", (now - epoch).as_millis()),
                    _ => String::new(),
                };
                state.say(&format!("#{} hears {name}{from}", stream.slot));
                state.music.insert(stream, name);
            }
            Command::Live { stream, .. } => {
                state.stop(stream);
                state.say(&format!("#{} hears live sound", stream.slot));
            }
            Command::StopPlay { stream } => state.stop(stream),
            Command::Join { a, b } => {
                state.part(a);
                state.part(b);
                state.joined.extend([(a, b), (b, a)]);
                state.say(&format!("#{} and #{} talk", a.slot, b.slot));
            }
            Command::Part { stream } => {
                state.part(stream);
                state.say(&format!("#{} talks no more", stream.slot));
            }
            Command::Stats { stream } => {
                let stats = state.stats;
                state.at(now, Due::Media(Event::Stats { stream, stats, asked: true }));
            }
            Command::Mute { stream, heard, sent } => {
                state.say(&format!("#{} muted heard={heard} sent={sent}", stream.slot));
            }
            Command::Echo { stream, on } => state.say(&format!("#{} echo {on}", stream.slot)),
            Command::SendDigit { stream, digit, .. } => {
                state.say(&format!("#{} is sent digit {}", stream.slot, digit.to_char()));
                state.at(now + Duration::from_millis(100), Due::Media(Event::DigitsSent { stream }));
            }
            Command::Close { stream } => {
                state.playing.remove(&stream);
                state.music.remove(&stream);
                state.part(stream);
                state.open.remove(&stream);
            }
            Command::Monitor { stream, monitor, settings, sinks, .. } => {
                let parts = [(&sinks.mixed, "mixed"), (&sinks.heard, "heard"), (&sinks.said, "said")];
                let parts: Vec<&str> =
                    parts.iter().filter(|(sink, _)| sink.is_some()).map(|(_, name)| *name).collect();
                let defaults = MonitorSettings::default();
                let mut said = parts.join(" ");
                for (is_so, words) in [
                    (settings.bridged_only, " while bridged"),
                    (settings.stereo, " side by side"),
                    (!settings.in_step, " out of step"),
                    (!settings.hears, " without what it says"),
                    (!settings.says, " without what it hears"),
                    (settings.heard != defaults.heard, " heard louder or quieter"),
                    (settings.said != defaults.said, " said louder or quieter"),
                ] {
                    said.push_str(if is_so { words } else { "" });
                }
                state.say(&format!("#{} is monitored by {monitor}: {said}", stream.slot));
            }
            Command::AdjustMonitor { stream, monitor, settings } => {
                let MonitorSettings { hears, says, heard, .. } = settings;
                let gain = if heard == Gain::UNITY { String::new() } else { format!(" at {}/256", heard.0) };
                state.say(&format!("#{} monitor {monitor} hears {hears} says {says}{gain}", stream.slot));
            }
            Command::StopMonitor { stream, monitor } => {
                state.say(&format!("#{} is monitored by {monitor} no more", stream.slot));
            }
            Command::Whisper { stream, clip } => {
                let name = state.name_of(&clip);
                state.say(&format!("#{} hears {name} besides", stream.slot));
            }
            Command::Murmur { stream, murmur, .. } => {
                state.say(&format!("#{} is murmured to by {murmur}", stream.slot));
            }
            Command::StopMurmur { stream, murmur } => {
                state.say(&format!("#{} is murmured to by {murmur} no more", stream.slot));
            }
            Command::Record { stream, .. } => state.say(&format!("#{} is recorded", stream.slot)),
            Command::StopRecord { stream } => state.say(&format!("#{} is recorded no more", stream.slot)),
            Command::WatchSilence { stream, ms, .. } if ms > 0 => {
                state.say(&format!("#{} is watched for {ms} ms of silence", stream.slot));
            }
            Command::HoldBack { stream, limits: Some(limits) } => {
                state.say(&format!(
                    "#{} is held back {} to {} ms",
                    stream.slot, limits.least_ms, limits.most_ms
                ));
            }
            Command::HoldBack { stream, limits: None } => {
                state.say(&format!("#{} is held back as usual", stream.slot))
            }
            Command::Shape { stream, heard, sent } => {
                let of = |side: Loudness| match side.level {
                    0 => side.gain.0.to_string(),
                    level => format!("{} at {level}", side.gain.0),
                };
                state.say(&format!("#{} is made heard {}, sent {}", stream.slot, of(heard), of(sent)));
            }
            Command::FillSilence { stream, on } => {
                let what = if on { "silence" } else { "nothing" };
                state.say(&format!("#{} hears {what} when there is nothing to hear", stream.slot));
            }
            Command::WatchSound { stream, listener, watch: Some(watch) } => {
                let SoundWatch { threshold, sound_ms, silence_ms, .. } = watch;
                state.say(&format!(
                    "#{} {listener:?} watches for {sound_ms} ms above {threshold} and {silence_ms} ms below",
                    stream.slot
                ));
            }
            Command::WatchTone { stream, listener: base::Listener::Watcher, watch } => {
                let what = if watch.is_some() { "a fax" } else { "a fax no more" };
                state.say(&format!("#{} is listened to for {what}", stream.slot));
            }
            Command::WatchTone { stream, watch: Some(watch), .. } => {
                let side = |wanted: bool| if wanted { "yes" } else { "no" };
                state.say(&format!(
                    "#{} watches for tones: {:?} Hz for {} ms, {} dB, {:?}, received {}, sent {}",
                    stream.slot,
                    watch.hertz.unwrap_or_default(),
                    watch.duration_ms,
                    watch.decibels,
                    watch.signals,
                    side(watch.heard),
                    side(watch.sent)
                ));
            }
            Command::WatchTone { stream, watch: None, .. } => {
                state.say(&format!("#{} watches for tones no more", stream.slot));
            }
            Command::Enter { stream, room, member, .. } => {
                state.part(stream);
                let muted = if member.muted { " muted" } else { "" };
                let deaf = if member.deaf { " deaf" } else { "" };
                state.say(&format!("#{} enters room {}{muted}{deaf}", stream.slot, room.slot));
            }
            Command::Show { stream, source } => state.say(&match source {
                Some(source) => format!("#{} is shown #{}", stream.slot, source.slot),
                None => format!("#{} is shown nothing", stream.slot),
            }),
            Command::AskPicture { stream } => state.say(&format!("#{} is asked for a picture", stream.slot)),
            Command::Adjust { stream, member } => {
                let muted = if member.muted { "is muted" } else { "is heard" };
                let deaf = if member.deaf { " and deaf" } else { "" };
                let volume = |name: &str, gain: base::Gain| match gain {
                    base::Gain::UNITY => String::new(),
                    gain => format!(", {name} {}/256", gain.0),
                };
                let talking = volume("talks at", member.talking);
                let listening = volume("hears at", member.listening);
                state.say(&format!("#{} {muted}{deaf}{talking}{listening}", stream.slot));
            }
            Command::RecordRoom { room, .. } => state.say(&format!("room {} is recorded", room.slot)),
            Command::StopRecordRoom { room } => {
                state.say(&format!("room {} is recorded no more", room.slot));
            }
            Command::Announce { room, clip } => {
                let name = state.name_of(&clip);
                state.say(&format!("room {} hears {name}", room.slot));
            }
            Command::Plan { .. }
            | Command::Tie { .. }
            | Command::DetectInband { .. }
            | Command::WatchSilence { .. }
            | Command::WatchSound { watch: None, .. }
            | Command::KeepDigits { .. }
            | Command::DetectTrunkDigits { .. }
            | Command::Fax { .. } => {}
        }
    }
}

pub(crate) struct Sounds(pub(crate) Shared);

/// Tones that every country has.
const TONES: &[&str] = &["busy", "congestion", "dial", "ring", "info"];

impl Library for Sounds {
    fn clip(&mut self, want: &ClipWant) -> ClipAnswer {
        let mut state = self.0.borrow_mut();
        assert!(!state.explosive.contains(&want.name), "the sound {} was made to explode", want.name);
        if state.missing.contains(&want.name) {
            return ClipAnswer::Missing("nowhere".into());
        }
        let length = state.clips.get(&want.name).copied().unwrap_or(CLIP_DEFAULT);
        let name = match want.language.as_str() {
            "" | "en" => want.name.clone(),
            language => format!("{} ({language})", want.name),
        };
        ClipAnswer::Ready(state.clip(&name, length, false))
    }
    fn exists(&mut self, name: &str, _: &str) -> Option<bool> {
        Some(!self.0.borrow().missing.contains(name))
    }
    fn music(&mut self, class: &str, _: FormatId) -> MusicAnswer {
        let mut state = self.0.borrow_mut();
        let name = format!("music {}", if class.is_empty() { "default" } else { class });
        if state.missing.contains(&name) {
            return MusicAnswer::Missing;
        }
        let epoch = (!state.heard_alone.contains(class)).then_some(Instant::ZERO);
        MusicAnswer::Ready(state.clip(&name, CLIP_DEFAULT, true), epoch)
    }
    fn tone(&mut self, _: &str, tone: &str, _: FormatId) -> Option<Arc<Clip>> {
        let known = TONES.contains(&tone) || tone.starts_with(|c: char| c.is_ascii_digit());
        known.then(|| self.0.borrow_mut().clip(&format!("tone {tone}"), CLIP_DEFAULT, true))
    }
}

pub(crate) struct Recordings(pub(crate) Shared);

struct Nowhere;

impl AudioSink for Nowhere {
    fn write(&mut self, samples: &[i16]) -> usize {
        samples.len()
    }
}

impl Recorder for Recordings {
    fn is_free(&mut self, path: &str, extension: &str) -> bool {
        !self.0.borrow().recordings.contains(&format!("{path}.{extension}"))
    }
    fn rename(&mut self, path: &str, extension: &str, to: &str) -> Result<(), String> {
        self.0.borrow_mut().say(&format!("renames {path}.{extension} to {to}.{extension}"));
        Ok(())
    }
    fn remove(&mut self, path: &str, extension: &str) {
        let file = format!("{path}.{extension}");
        if self.0.borrow_mut().recordings.remove(&file) {
            self.0.borrow_mut().say(&format!("removes {file}"));
        }
    }
    fn knows(&self, extension: &str) -> bool {
        ["wav", "gsm", "ulaw", "sln"].contains(&extension)
    }
    fn stored(&mut self, folder: &str, most: usize) -> Vec<(String, String)> {
        let state = self.0.borrow();
        let below = state.recordings.iter().filter_map(|file| file.strip_prefix(folder)?.strip_prefix('/'));
        let parted = below.filter_map(|file| file.rsplit_once('.'));
        parted.take(most).map(|(name, extension)| (name.to_owned(), extension.to_owned())).collect()
    }
    fn extensions(&mut self, path: &str) -> Vec<String> {
        let state = self.0.borrow();
        let parted = state.recordings.iter().filter_map(|file| file.rsplit_once('.'));
        parted.filter(|(name, _)| *name == path).map(|(_, extension)| extension.to_owned()).collect()
    }
    fn copy(&mut self, path: &str, extension: &str, to: &str) -> Result<(), String> {
        let mut state = self.0.borrow_mut();
        state.say(&format!("copies {path}.{extension} to {to}.{extension}"));
        state.recordings.insert(format!("{to}.{extension}"));
        Ok(())
    }
    fn open_stereo(&mut self, path: &str, extension: &str, append: bool) -> Result<Take, String> {
        self.open(path, extension, append)
    }
    fn open(&mut self, path: &str, extension: &str, append: bool) -> Result<Take, String> {
        let mut state = self.0.borrow_mut();
        let file = format!("{path}.{extension}");
        if state.missing.contains(&file) {
            return Err("it cannot be written".into());
        }
        state.say(&format!("{} {file}", if append { "appends to" } else { "records" }));
        let afterwards = std::sync::Arc::<Afterwards>::default();
        state.afterwards.insert(file.clone(), afterwards.clone());
        state.recordings.insert(file.clone());
        let progress = state.progress.entry(file).or_default().clone();
        if state.breaks_recordings {
            progress.fail("no space left on device".to_owned());
        }
        Ok(Take { sink: Box::new(Nowhere), format: FormatId::SLIN, afterwards, progress })
    }
}

pub(crate) struct MemoryDb(pub(crate) Shared);

impl Database for MemoryDb {
    fn get(&self, family: &str, key: &str) -> Option<String> {
        self.0.borrow().db.get(&(family.to_owned(), key.to_owned())).cloned()
    }
    fn put(&mut self, family: &str, key: &str, value: &str) -> bool {
        self.0.borrow_mut().db.insert((family.to_owned(), key.to_owned()), value.to_owned());
        true
    }
    fn delete(&mut self, family: &str, key: &str) -> bool {
        self.0.borrow_mut().db.remove(&(family.to_owned(), key.to_owned())).is_some()
    }
    fn delete_tree(&mut self, family: &str, prefix: &str) -> usize {
        let mut state = self.0.borrow_mut();
        let before = state.db.len();
        state.db.retain(|(of, key), _| of != family || !key.starts_with(prefix));
        before - state.db.len()
    }
    fn list(&self, prefix: &str) -> Vec<(String, String)> {
        let state = self.0.borrow();
        let all = state.db.iter().map(|((family, key), value)| (format!("/{family}/{key}"), value.clone()));
        all.filter(|(path, _)| path.starts_with(prefix)).collect()
    }
    fn is_saved(&mut self, _: u64) -> bool {
        !self.0.borrow().disk_stands
    }
}

pub(crate) struct Lines(pub(crate) Shared);

impl Log for Lines {
    fn enabled(&self, level: Level) -> bool {
        match level {
            Level::Verbose(depth) => depth <= self.0.borrow().verbose,
            Level::Debug(_) => false,
            Level::Notice | Level::Warning | Level::Error | Level::Dtmf | Level::Security => true,
        }
    }
    fn line(&mut self, level: Level, place: &str, text: &str) {
        self.0.borrow_mut().log.push((level, place.to_owned(), text.to_owned()));
    }
}

pub(crate) struct Wall(pub(crate) Shared);

impl WallClock for Wall {
    fn now_micros(&self) -> i64 {
        WALL_START + i64::try_from(self.0.borrow().now.as_nanos() / 1_000).unwrap_or(0)
    }
}
