//! Where sounds lie: the site's folder, Debian's packages, the binary itself.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use base::{Clip, FormatId, Random};
use call::ClipWant;
use codec::{Coders, SoundFile};

use super::mp3;
use include_dir::{Dir, include_dir};

/// The bundled prompts and music; origin and licence in `assets/README.md`.
pub(super) static BUNDLED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../assets");

/// Longest sound file that is read whole, bytes: an hour and a half of 8 kHz linear.
const FILE_BYTES_MAX: u64 = 96 << 20;
/// Most files of one music class.
const MUSIC_FILES_MAX: usize = 1000;
/// Most bytes of one music class in one format.
const MUSIC_BYTES_MAX: usize = 256 << 20;

/// So many seconds of bundled speech at 8 kHz, round and round: what codecs are measured with.
pub fn speech(seconds: usize) -> Vec<i16> {
    let spoken = BUNDLED.get_dir("sounds/en").into_iter().flat_map(|dir| dir.files()).filter_map(|file| {
        let extension = extension(file.path())?;
        let sound = SoundFile::parse(&extension, file.contents()).ok()?;
        Some(sound.to_clip(FormatId::SLIN))
    });
    let bytes: Vec<u8> = spoken.flat_map(|clip| clip.data.to_vec()).take(seconds * 16_000).collect();
    let samples: Vec<i16> = bytes.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
    samples.iter().copied().cycle().take(seconds * 8000).collect()
}

/// The files of a class of music, in playing order; without extension where the configuration names none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MusicList {
    /// All sound files of a folder.
    Folder {
        /// Folder.
        path: PathBuf,
        /// In which order they play.
        order: MusicOrder,
    },
    /// These.
    Files(Vec<PathBuf>),
    /// What a program plays.
    Program(super::Program),
    /// The piece in the binary.
    Bundled,
}

/// In which order the pieces of a folder play; drawn once, when they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MusicOrder {
    /// By name.
    ByName,
    /// At random.
    Shuffled,
    /// By name, from a random one on.
    FromAny,
}

/// Folders and classes.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    /// Folders of prompts, searched in order; the bundled set comes last.
    pub folders: Vec<PathBuf>,
    /// Classes of music.
    pub music: BTreeMap<String, MusicList>,
    /// Prompts that are heard between two pieces of a class.
    pub announcements: BTreeMap<String, String>,
    /// Classes whose last piece is repeated, instead of all (`loop_last`).
    pub loops_last: BTreeSet<String>,
    /// Seed of random orders.
    pub seed: u64,
    /// How sounds are coded.
    pub coders: Arc<Coders>,
    /// Nothing is coded here that calls can code: prompts and music are kept linear, and each listener has an encoder.
    pub encode_each: bool,
    /// What speaks text.
    pub speaker: super::Speaker,
}

impl Catalogue {
    /// Whether there is a prompt of this name for calls of any format.
    pub fn has_prompt(&self, name: &str) -> bool {
        let want = ClipWant { name: name.to_owned(), language: String::new(), format: FormatId::SLIN };
        self.find(&want).is_ok()
    }
    /// Has a text spoken and codes it; `Err` says why not.
    pub(crate) fn speech(&self, text: &str, want: &ClipWant) -> Result<Clip, String> {
        let wave = self.speaker.speak(text, &want.language)?;
        self.code("wav", &wave, want.format)
    }
    /// Reads and codes a prompt; `Err` says where was looked.
    pub(crate) fn prompt(&self, want: &ClipWant) -> Result<Clip, String> {
        self.prompt_of(want).map(|(clip, _)| clip)
    }
    /// The same, and the format of its file.
    pub(crate) fn prompt_of(&self, want: &ClipWant) -> Result<(Clip, FormatId), String> {
        let (extension, bytes) = self.find(want)?;
        let source = SoundFile::parse(extension, &bytes).map_or(FormatId::SLIN, |sound| sound.format);
        self.code(extension, &bytes, want.format).map(|clip| (clip, source))
    }
    /// The file of a prompt that costs least to play.
    fn find(&self, want: &ClipWant) -> Result<(&'static str, Cow<'static, [u8]>), String> {
        let extensions = self.search_order(want.format);
        let asked = Path::new(&want.name);
        if asked.is_absolute() {
            let found = extensions
                .iter()
                .find_map(|extension| read(&with_extension(asked, extension)).map(|b| (*extension, b)));
            let (extension, bytes) = found.ok_or_else(|| format!("no {}.* that can be read", want.name))?;
            return Ok((extension, bytes.into()));
        }
        if !is_inside(asked) {
            return Err("names with .. are not looked for".to_owned());
        }
        let names = spellings(&want.language, &want.name);
        for folder in &self.folders {
            for name in &names {
                let base = folder.join(name);
                let found = extensions
                    .iter()
                    .find_map(|extension| read(&with_extension(&base, extension)).map(|b| (*extension, b)));
                if let Some((extension, bytes)) = found {
                    return Ok((extension, bytes.into()));
                }
            }
        }
        for name in &names {
            let found = extensions.iter().find_map(|extension| {
                let path = Path::new("sounds").join(name);
                BUNDLED.get_file(with_extension(&path, extension)).map(|file| (*extension, file.contents()))
            });
            if let Some((extension, bytes)) = found {
                return Ok((extension, Cow::Borrowed(bytes)));
            }
        }
        let folders = self.folders.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", ");
        Err(format!("looked in {folders} and the bundled set, language '{}'", want.language))
    }
    /// Reads and codes all of a class, one piece after the other.
    pub(crate) fn music(&self, class: &str, format: FormatId) -> Option<Clip> {
        let list = self.music.get(class)?;
        let mut data = Vec::new();
        // Of one format, whatever files there are.
        let made = self.made(format);
        let loops_last = self.loops_last.contains(class);
        let mut pieces = self.pieces(list, made, loops_last);
        let mut parts = 1;
        if let Some(name) = self.announcements.get(class) {
            let want = ClipWant { name: name.clone(), language: String::new(), format };
            // One that is not there was told of when the configuration was read.
            if let Ok((extension, bytes)) = self.find(&want) {
                let said = |piece| [piece, (extension.to_owned(), bytes.clone())];
                pieces = pieces.into_iter().flat_map(said).collect();
                parts = 2;
            }
        }
        let made = if pieces.iter().all(|(extension, bytes)| holds(extension, bytes, format)) {
            format
        } else {
            made
        };
        let mut last = 0;
        for (at, (extension, bytes)) in pieces.into_iter().enumerate() {
            if let Ok(clip) = code(&extension, &bytes, made, made)
                && data.len() + clip.data.len() <= MUSIC_BYTES_MAX
                && !clip.data.is_empty()
            {
                // Each clip is whole packets long.
                if loops_last && at % parts == 0 {
                    last = data.len();
                }
                data.extend_from_slice(&clip.data);
            }
        }
        let clip = Clip { format: made, data: data.into(), loop_from: Some(last), packets: None };
        (!clip.data.is_empty()).then(|| self.with_packets(clip, format))
    }
    fn pieces(
        &self,
        list: &MusicList,
        format: FormatId,
        loops_last: bool,
    ) -> Vec<(String, Cow<'static, [u8]>)> {
        match list {
            MusicList::Bundled => BUNDLED
                .get_dir("moh")
                .into_iter()
                .flat_map(|dir| dir.files())
                .filter_map(|file| Some((extension(file.path())?, Cow::Borrowed(file.contents()))))
                .collect(),
            MusicList::Files(files) => files.iter().filter_map(|path| any_of(path, format)).collect(),
            MusicList::Program(_) => Vec::new(),
            MusicList::Folder { path, order } => self.folder(path, *order, format, loops_last),
        }
    }
    /// Each piece of a folder once, in the format that is cheapest for us when there are several.
    fn folder(
        &self,
        path: &Path,
        order: MusicOrder,
        format: FormatId,
        loops_last: bool,
    ) -> Vec<(String, Cow<'static, [u8]>)> {
        let known: Vec<&str> = extensions().collect();
        let mut stems: Vec<PathBuf> = std::fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| extension(path).is_some_and(|extension| known.contains(&extension.as_str())))
            .map(|path| path.with_extension(""))
            .collect();
        stems.sort();
        stems.dedup();
        let mut random = Random::new(self.seed);
        match order {
            MusicOrder::ByName => {}
            MusicOrder::Shuffled => random.shuffle(&mut stems),
            MusicOrder::FromAny => {
                let first = usize::try_from(random.below(stems.len() as u64)).unwrap_or(0);
                stems.rotate_left(first);
                // Who never starts over does not come to those before the first.
                let heard = if loops_last { stems.len() - first } else { stems.len() };
                stems.truncate(heard);
            }
        }
        stems.iter().take(MUSIC_FILES_MAX).filter_map(|stem| any_of(stem, format)).collect()
    }
}

impl Catalogue {
    /// Extensions to try for a stream of this format: of an external codec those of the format itself, then all from which
    /// sound can be made for it.
    fn search_order(&self, format: FormatId) -> Vec<&'static str> {
        let mut extensions = codec::search_order(format);
        let made = self.made(format);
        if made != format && !format.is_coded() {
            extensions.extend(codec::search_order(made));
        }
        // What has to be decoded first is the last choice.
        if made.is_coded() {
            extensions.push(mp3::EXTENSION);
        }
        extensions
    }
    /// The format in which sound is made for streams of this one: linear where each of them codes it for itself.
    fn made(&self, format: FormatId) -> FormatId {
        let coded = self.coders.coded();
        if self.encode_each && coded.contains(format) { format.linear() } else { coded.clip(format) }
    }
    fn code(&self, extension: &str, bytes: &[u8], format: FormatId) -> Result<Clip, String> {
        code(extension, bytes, format, self.made(format)).map(|clip| self.with_packets(clip, format))
    }
    /// The clip, and its packets for streams of a format of variable rate.
    fn with_packets(&self, clip: Clip, format: FormatId) -> Clip {
        let packets = if self.encode_each { None } else { codec::packets_of(&clip, format, &self.coders) };
        Clip { packets, ..clip }
    }
}

/// A file for streams of `format`: as it is when it is in that format, else sound in the format `made`.
fn code(extension: &str, bytes: &[u8], format: FormatId, made: FormatId) -> Result<Clip, String> {
    let decoded;
    let (extension, bytes) = if extension == mp3::EXTENSION {
        decoded = mp3::to_wave(bytes).map_err(|why| format!("the file cannot be played: {why}"))?;
        ("wav", &*decoded)
    } else {
        (extension, bytes)
    };
    let sound = SoundFile::parse(extension, bytes)
        .map_err(|why| format!("the file cannot be played: {why}; {}", why.remedy()))?;
    let made = if sound.format == format { format } else { made };
    if sound.format != made && !(sound.format.is_coded() && made.is_coded()) {
        let (own, wanted) = (sound.format, format);
        return Err(format!(
            "the file is {own} and the call {wanted}, and one of them can only be passed through; \
             allow ulaw or alaw for the call, or put a file in {wanted} beside it"
        ));
    }
    Ok(sound.to_clip(made))
}

/// Whether a file is in this format.
fn holds(extension: &str, bytes: &[u8], format: FormatId) -> bool {
    SoundFile::parse(extension, bytes).is_ok_and(|sound| sound.format == format)
}

/// `en_GB/digits/1`, `en/digits/1`, `digits/1`, and the layout of old sites `digits/en/1`.
fn spellings(language: &str, name: &str) -> Vec<PathBuf> {
    let mut languages = vec![language];
    languages.extend(language.split_once('_').map(|(base, _)| base));
    let mut names: Vec<PathBuf> = Vec::new();
    for language in languages.into_iter().filter(|l| !l.is_empty() && is_inside(Path::new(l))) {
        names.push(Path::new(language).join(name));
        if let Some((folder, file)) = name.rsplit_once('/') {
            names.push(Path::new(folder).join(language).join(file));
        }
    }
    names.push(PathBuf::from(name));
    if !language.starts_with("en") {
        names.push(Path::new("en").join(name));
    }
    names
}

fn is_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// Appends, because a prompt's name may hold dots.
fn with_extension(base: &Path, extension: &str) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

fn extension(path: &Path) -> Option<String> {
    path.extension().and_then(|extension| extension.to_str()).map(str::to_owned)
}

/// Extensions of files that can be played.
pub(crate) fn extensions() -> impl Iterator<Item = &'static str> {
    codec::extensions().chain([mp3::EXTENSION])
}

fn any_of(stem: &Path, format: FormatId) -> Option<(String, Cow<'static, [u8]>)> {
    let named = extension(stem).filter(|own| extensions().any(|known| known == own));
    if let Some(extension) = named {
        return read(stem).map(|bytes| (extension, Cow::Owned(bytes)));
    }
    let order = codec::search_order(format).into_iter().chain([mp3::EXTENSION]);
    order.into_iter().find_map(|extension| {
        read(&with_extension(stem, extension)).map(|bytes| (extension.to_owned(), Cow::Owned(bytes)))
    })
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let facts =
        std::fs::metadata(path).ok().filter(|facts| facts.is_file() && facts.len() <= FILE_BYTES_MAX)?;
    let mut bytes = Vec::with_capacity(usize::try_from(facts.len()).ok()?);
    std::io::Read::read_to_end(&mut std::fs::File::open(path).ok()?, &mut bytes).ok()?;
    Some(bytes)
}
