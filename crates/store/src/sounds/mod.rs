//! Prompts, music and tones for the media plane: found on disk or in the binary, coded once per format, shared.
//!
//! The front end ([`Sounds`]) lives on the signalling shard and never touches a file; a thread reads and codes, and its
//! answers are taken in when the shard is woken. Tones are rendered in place: they are arithmetic.

mod catalogue;
mod index;
mod kept;
mod mp3;
mod program;
mod recorder;
mod repair;
mod speech;

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use base::{Clip, Coded, FormatId, Instant};
use call::{ClipAnswer, ClipWant, Library, MusicAnswer};

pub(crate) use catalogue::extensions;
pub use catalogue::{Catalogue, MusicList, MusicOrder, speech};
pub use index::Listed;
pub use program::Program;
pub use recorder::{Recordings, Told};
pub use speech::{Speaker, TEXT_BYTES_MAX};

use crate::config::tones::Tones;

/// Bytes of coded prompts kept in memory; the least recently asked for goes first. Music is not counted: its classes are
/// the administrator's choice.
const PROMPT_BYTES_MAX: usize = 256 << 20;
/// Names remembered as missing; a flood of invented names forgets the oldest.
const MISSING_MAX: usize = 4096;
/// Requests that wait for the thread.
const REQUESTS_MAX: usize = 1024;
/// Texts that wait to be spoken: more callers would wait longer than they do.
const SPEECHES_MAX: usize = 64;
/// Rendered tones kept; there are about ten a zone and format.
const TONES_MAX: usize = 1024;

/// Lines about programs that wait to be taken.
const FAULTS_MAX: usize = 64;

enum Job {
    Prompt(ClipWant),
    Music(String, FormatId),
    /// A new catalogue after a reload.
    Catalogue(Box<Catalogue>),
}

enum Done {
    Prompt(ClipWant, Result<(Clip, FormatId), String>),
    Music(String, FormatId, Option<Clip>),
}

struct Prompt {
    clip: Option<Arc<Clip>>,
    missing: Option<Arc<str>>,
    asked: u64,
    /// Format of its file.
    source: FormatId,
}

/// The front end. Implements [`Library`] for the call core.
pub struct Sounds {
    jobs: SyncSender<Job>,
    /// The thread that has texts spoken: a program is slower than a file, and files do not wait for it.
    speeches: SyncSender<Job>,
    done: Receiver<Done>,
    prompts: HashMap<ClipWant, Prompt>,
    prompt_bytes: usize,
    music: HashMap<(String, FormatId), Option<Option<Arc<Clip>>>>,
    tones: HashMap<(String, String, FormatId), Option<Arc<Clip>>>,
    zones: Tones,
    coded: Coded,
    coders: Arc<codec::Coders>,
    clock: u64,
    /// Folders of prompts.
    folders: Vec<PathBuf>,
    /// Classes that programs play, and those of them that run.
    programs: HashMap<String, Program>,
    running: HashMap<String, program::Running>,
    /// What programs are said to have done, and the way for that.
    told: Receiver<String>,
    tell: SyncSender<String>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

/// The classes that programs play.
fn programs(catalogue: &Catalogue) -> HashMap<String, Program> {
    let program = |(class, list): (&String, &MusicList)| match list {
        MusicList::Program(program) => Some((class.clone(), program.clone())),
        _ => None,
    };
    catalogue.music.iter().filter_map(program).collect()
}

impl Sounds {
    /// Starts the thread. `wake` is called from it when answers are ready to be taken in.
    pub fn start(
        catalogue: Catalogue,
        zones: Tones,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let (coded, coders) = (catalogue.coders.coded(), catalogue.coders.clone());
        let (programs, folders) = (programs(&catalogue), catalogue.folders.clone());
        let (tell, told) = sync_channel(FAULTS_MAX);
        let (jobs, inbox) = sync_channel(REQUESTS_MAX);
        let (outbox, done) = sync_channel(REQUESTS_MAX);
        let (speeches, texts) = sync_channel(SPEECHES_MAX);
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(wake);
        let own = Arc::clone(&wake);
        let (speaking, spoken, woken) = (catalogue.clone(), outbox.clone(), Arc::clone(&wake));
        std::thread::Builder::new()
            .name("sounds".to_owned())
            .spawn(move || serve(catalogue, &inbox, &outbox, &*wake))?;
        std::thread::Builder::new()
            .name("speech".to_owned())
            .spawn(move || serve(speaking, &texts, &spoken, &*woken))?;
        Ok(Self {
            jobs,
            speeches,
            done,
            prompts: HashMap::new(),
            prompt_bytes: 0,
            music: HashMap::new(),
            tones: HashMap::new(),
            zones,
            coded,
            coders,
            clock: 0,
            folders,
            programs,
            running: HashMap::new(),
            told,
            tell,
            wake: own,
        })
    }
    /// Takes a new configuration; everything is read again when it is next asked for.
    pub fn configure(&mut self, catalogue: Catalogue, zones: Tones) {
        self.coded = catalogue.coders.coded();
        self.coders = catalogue.coders.clone();
        self.programs = programs(&catalogue);
        self.folders.clone_from(&catalogue.folders);
        // Those that are called as before go on; whoever hears another one hears nothing more until it is held anew.
        let programs = &self.programs;
        self.running.retain(|class, running| programs.get(class) == Some(&running.program));
        // The thread is told in order with the requests before and after it.
        let _ = self.speeches.send(Job::Catalogue(Box::new(catalogue.clone())));
        if self.jobs.send(Job::Catalogue(Box::new(catalogue))).is_ok() {
            self.prompts.clear();
            self.prompt_bytes = 0;
            self.music.clear();
        }
        self.tones.clear();
        self.zones = zones;
    }
    /// All prompts that there are. Folders are read, which takes its time.
    pub fn listed(&self) -> Listed {
        index::listed(&self.folders)
    }
    /// Takes in what the thread has finished; whether there was anything.
    pub fn take_in(&mut self) -> bool {
        let mut any = false;
        while let Ok(done) = self.done.try_recv() {
            any = true;
            match done {
                Done::Prompt(want, Ok((clip, source))) => self.keep(want, clip, source),
                Done::Prompt(want, Err(looked)) => {
                    let source = FormatId::SLIN;
                    let missing =
                        Prompt { clip: None, missing: Some(looked.into()), asked: self.clock, source };
                    self.prompts.insert(want, missing);
                }
                Done::Music(class, format, clip) => {
                    self.music.insert((class, format), Some(clip.map(Arc::new)));
                }
            }
        }
        any
    }
    /// What programs that play music have done by themselves, since this was asked last.
    pub fn take_told(&mut self) -> Vec<String> {
        self.told.try_iter().collect()
    }
    /// The sound of a class that a program plays, which is started by its first listener.
    fn live(&mut self, class: &str) -> Option<MusicAnswer> {
        let program = self.programs.get(class)?;
        if !self.running.contains_key(class) {
            let (tell, wake) = (self.tell.clone(), Arc::clone(&self.wake));
            let tell = move |line: String| {
                // More than can be told at once is not told.
                let _ = tell.try_send(line);
                wake();
            };
            let Ok(running) = program::Running::start(class, program.clone(), &self.coders, tell) else {
                return Some(MusicAnswer::Missing);
            };
            self.running.insert(class.to_owned(), running);
        }
        let running = self.running.get(class)?;
        Some(MusicAnswer::Live(running.broadcast.clone(), running.program.format.linear()))
    }
    /// Music that is in memory: class, format, bytes.
    pub fn loaded_music(&self) -> impl Iterator<Item = (&str, FormatId, usize)> {
        self.music.iter().filter_map(|((class, format), state)| {
            let clip = state.as_ref()?.as_ref()?;
            Some((class.as_str(), *format, bytes_of(clip)))
        })
    }

    fn keep(&mut self, want: ClipWant, clip: Clip, source: FormatId) {
        self.prompt_bytes += bytes_of(&clip);
        let (clip, asked) = (Some(Arc::new(clip)), self.clock);
        self.prompts.insert(want, Prompt { clip, missing: None, asked, source });
        while self.prompt_bytes > PROMPT_BYTES_MAX {
            let oldest = self.prompts.iter().filter(|(_, p)| p.clip.is_some()).min_by_key(|(_, p)| p.asked);
            let Some(oldest) = oldest.map(|(want, _)| want.clone()) else { break };
            let gone = self.prompts.remove(&oldest).and_then(|p| p.clip).map_or(0, |clip| bytes_of(&clip));
            self.prompt_bytes -= gone;
        }
    }
    fn forget_missing(&mut self) {
        if self.prompts.values().filter(|p| p.missing.is_some()).count() > MISSING_MAX {
            self.prompts.retain(|_, prompt| prompt.missing.is_none());
        }
    }
}

impl Library for Sounds {
    fn clip(&mut self, want: &ClipWant) -> ClipAnswer {
        self.clock += 1;
        let clock = self.clock;
        if let Some(prompt) = self.prompts.get_mut(want) {
            prompt.asked = clock;
            let answer = match (&prompt.clip, &prompt.missing) {
                (Some(clip), _) => ClipAnswer::Ready(clip.clone()),
                (None, Some(looked)) => ClipAnswer::Missing(looked.clone()),
                (None, None) => ClipAnswer::Loading,
            };
            // A program that failed may do better the next time it is asked.
            if matches!(answer, ClipAnswer::Missing(_)) && speech::text_of(&want.name).is_some() {
                self.prompts.remove(want);
            }
            return answer;
        }
        let jobs = if speech::text_of(&want.name).is_some() { &self.speeches } else { &self.jobs };
        match jobs.try_send(Job::Prompt(want.clone())) {
            Ok(()) => {
                self.forget_missing();
                let source = FormatId::SLIN;
                self.prompts.insert(want.clone(), Prompt { clip: None, missing: None, asked: clock, source });
                ClipAnswer::Loading
            }
            // The queue is full: whoever asks is woken by the answers ahead and asks again.
            Err(TrySendError::Full(_)) => ClipAnswer::Loading,
            Err(TrySendError::Disconnected(_)) => {
                ClipAnswer::Missing("the thread that reads sounds has ended".into())
            }
        }
    }
    fn source(&mut self, want: &ClipWant) -> FormatId {
        self.prompts.get(want).map_or(FormatId::SLIN, |prompt| prompt.source)
    }
    fn forget(&mut self, name: &str) {
        let mut bytes = 0;
        self.prompts.retain(|want, prompt| {
            // What is being read is waited for.
            let is_read = prompt.clip.is_none() && prompt.missing.is_none();
            let stays = want.name != name || is_read;
            bytes += prompt.clip.as_ref().filter(|_| !stays).map_or(0, |clip| bytes_of(clip));
            stays
        });
        self.prompt_bytes -= bytes;
    }
    fn exists(&mut self, name: &str, language: &str) -> Option<bool> {
        let want = ClipWant { name: name.to_owned(), language: language.to_owned(), format: FormatId::ULAW };
        match self.clip(&want) {
            ClipAnswer::Ready(_) => Some(true),
            ClipAnswer::Missing(_) => Some(false),
            ClipAnswer::Loading => None,
        }
    }
    fn music(&mut self, class: &str, format: FormatId) -> MusicAnswer {
        let class = if class.is_empty() { "default" } else { class };
        if let Some(live) = self.live(class) {
            return live;
        }
        match self.music.entry((class.to_owned(), format)) {
            Entry::Occupied(entry) => match entry.get() {
                Some(Some(clip)) => {
                    // The epoch is the clock's own zero, so every listener of a class hears the same moment. One that
                    // comes to its last piece and stays there would have come to it long ago.
                    let epoch = (clip.loop_from == Some(0)).then_some(Instant::ZERO);
                    MusicAnswer::Ready(clip.clone(), epoch)
                }
                Some(None) => MusicAnswer::Missing,
                None => MusicAnswer::Loading,
            },
            Entry::Vacant(entry) => match self.jobs.try_send(Job::Music(class.to_owned(), format)) {
                Ok(()) => {
                    entry.insert(None);
                    MusicAnswer::Loading
                }
                Err(TrySendError::Full(_)) => MusicAnswer::Loading,
                Err(TrySendError::Disconnected(_)) => MusicAnswer::Missing,
            },
        }
    }
    fn tone(&mut self, zone: &str, tone: &str, format: FormatId) -> Option<Arc<Clip>> {
        let key = (zone.to_owned(), tone.to_owned(), format);
        if let Some(known) = self.tones.get(&key) {
            return known.clone();
        }
        let clip = render(&self.zones, zone, tone, self.coded.clip(format)).map(Arc::new);
        if self.tones.len() >= TONES_MAX {
            self.tones.clear();
        }
        self.tones.insert(key, clip.clone());
        clip
    }
}

impl Drop for Sounds {
    /// Programs end with us.
    fn drop(&mut self) {
        self.running.drain().for_each(|(_, running)| running.end());
    }
}

/// What a clip takes in memory.
fn bytes_of(clip: &Clip) -> usize {
    clip.data.len() + clip.packets.as_ref().map_or(0, base::Packets::bytes)
}

/// A tone of a zone by name, or a tone list.
fn render(zones: &Tones, zone: &str, tone: &str, format: FormatId) -> Option<Clip> {
    if tone.eq_ignore_ascii_case("milliwatt") {
        return Some(codec::milliwatt(format));
    }
    let named = zones.zone(zone).and_then(|zone| zone.tones.get(&tone.to_ascii_lowercase()));
    let text = match named {
        Some(parts) => crate::config::tones::tone_text(parts),
        None if tone.starts_with(|c: char| c.is_ascii_digit() || c == '!') => tone.to_owned(),
        None => return None,
    };
    let script: codec::ToneScript = text.parse().ok()?;
    Some(codec::render_clip(&script, format))
}

fn serve(mut catalogue: Catalogue, inbox: &Receiver<Job>, outbox: &SyncSender<Done>, wake: &dyn Fn()) {
    while let Ok(job) = inbox.recv() {
        let done = match job {
            Job::Catalogue(new) => {
                catalogue = *new;
                continue;
            }
            Job::Prompt(want) => {
                let found = match speech::text_of(&want.name) {
                    Some(text) => catalogue.speech(text, &want).map(|clip| (clip, FormatId::SLIN)),
                    None => catalogue.prompt_of(&want),
                };
                Done::Prompt(want, found)
            }
            Job::Music(class, format) => {
                let clip = catalogue.music(&class, format);
                Done::Music(class, format, clip)
            }
        };
        if outbox.send(done).is_err() {
            return;
        }
        wake();
    }
}

/// Where Debian's packages put prompts (asterisk-core-sounds-*), tried after the site's own folder.
pub fn packaged_sounds() -> PathBuf {
    PathBuf::from("/usr/share/asterisk/sounds")
}

/// Formats of sound files by name, each with the endings that names of such files have.
pub fn file_formats() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut formats: BTreeMap<&'static str, Vec<&'static str>> = BTreeMap::new();
    for extension in codec::extensions() {
        if let Some(format) = codec::extension_format(extension) {
            formats.entry(format.name()).or_default().push(extension);
        }
    }
    formats
}

#[cfg(test)]
mod tests;
