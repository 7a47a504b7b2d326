//! Mailboxes on disk, in the field's own layout: `CONTEXT/BOX/INBOX/msg0000.txt` and its sound beside it.
//!
//! A message is there when its text is: sound goes before it and is taken away after it, and each step is on disk before
//! the next. Whatever moment the power fails at, a message is in one folder or the other, whole.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{FormatId, Gain};
use call::voicemail::{
    BoxName, Change, Counts, Delivery, Folder, Greeting, Held, MESSAGES_MAX, Message, Refusal, Sound,
};
use codec::{Recording, SoundFile};

use super::info;
use super::lock::Lock;

/// Largest text of a message.
const TEXT_BYTES_MAX: u64 = 64 << 10;
/// Largest sound of one.
const SOUND_BYTES_MAX: u64 = 512 << 20;
/// Name of the folder of files that are being made.
const MAKING: &str = "tmp";

fn failed(path: &Path) -> impl Fn(io::Error) -> Refusal + '_ {
    move |why| Refusal::Failed(format!("{}: {why}", path.display()))
}

fn sync(path: &Path) -> Result<(), Refusal> {
    File::open(path).and_then(|file| file.sync_all()).map_err(failed(path))
}

fn stem(number: u32) -> String {
    format!("msg{number:04}")
}

/// `msg0007.txt`: 7, `txt`.
fn number_of(name: &str) -> Option<(u32, &str)> {
    let (number, extension) = name.strip_prefix("msg")?.split_once('.')?;
    (number.len() == 4).then(|| number.parse().ok()).flatten().map(|number| (number, extension))
}

fn read_most(path: &Path, most: u64) -> Result<Vec<u8>, Refusal> {
    let length = fs::metadata(path).map_err(failed(path))?.len();
    if length > most {
        return Err(Refusal::Failed(format!("{} is larger than {most} bytes", path.display())));
    }
    fs::read(path).map_err(failed(path))
}

/// Samples, and their rate.
struct Heard {
    format: FormatId,
    samples: Vec<i16>,
}

impl Heard {
    fn read(path: &Path) -> Result<Self, Refusal> {
        let bytes = read_most(path, SOUND_BYTES_MAX)?;
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        let sound = SoundFile::parse(&extension, &bytes)
            .map_err(|why| Refusal::Failed(format!("{}: {why}", path.display())))?;
        if !sound.format.is_coded() {
            return Err(Refusal::Failed(format!("{} can only be passed on", path.display())));
        }
        Ok(Self::of(&sound, sound.format.linear()))
    }
    fn of(sound: &SoundFile<'_>, format: FormatId) -> Self {
        let clip = sound.to_clip(format);
        let samples = clip.data.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
        Self { format, samples }
    }
    fn at(&self, format: FormatId) -> Vec<i16> {
        if self.format == format {
            return self.samples.clone();
        }
        let data: Vec<u8> = self.samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        Self::of(&SoundFile { format: self.format, data: data.into() }, format).samples
    }
    fn louder(mut self, gain: Gain) -> Self {
        self.samples.iter_mut().for_each(|sample| *sample = gain.apply(*sample));
        self
    }
    fn milliseconds(&self) -> u64 {
        self.samples.len() as u64 * 1000 / u64::from(self.format.rate().0.max(1))
    }
    /// A whole file of this extension.
    fn coded(&self, extension: &str) -> Option<Vec<u8>> {
        let mut recording = Recording::new(extension)?;
        let mut data = Vec::new();
        recording.open(0, &mut data);
        recording.write(&self.at(recording.linear()), &mut data);
        recording.finish(&mut data);
        let mut file = recording.header(u32::try_from(data.len()).unwrap_or(u32::MAX));
        file.append(&mut data);
        Some(file)
    }
}

/// See the module's page.
#[derive(Debug)]
pub struct Boxes {
    root: PathBuf,
    serial: AtomicU64,
}

impl Boxes {
    /// Mailboxes below `root` (`/var/spool/asterisk/voicemail`).
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), serial: AtomicU64::new(0) }
    }
    /// The folder of a mailbox.
    pub fn home(&self, of: &BoxName) -> PathBuf {
        self.root.join(of.context()).join(of.mailbox())
    }
    fn folder(&self, of: &BoxName, folder: Folder) -> PathBuf {
        self.home(of).join(folder.name())
    }
    /// Makes a folder, and its way into those above it certain.
    fn make(&self, path: &Path) -> Result<(), Refusal> {
        if path.is_dir() {
            return Ok(());
        }
        fs::create_dir_all(path).map_err(failed(path))?;
        for above in path.ancestors().skip(1) {
            sync(above)?;
            if above == self.root {
                break;
            }
        }
        Ok(())
    }
    /// A new name in the mailbox's folder of files that are being made.
    fn fresh(&self, of: &BoxName, extension: &str) -> Result<PathBuf, Refusal> {
        let folder = self.home(of).join(MAKING);
        self.make(&folder)?;
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        Ok(folder.join(format!("new-{}-{serial}.{extension}", std::process::id())))
    }
    /// Writes a file of which nobody knows yet.
    fn write_aside(&self, of: &BoxName, extension: &str, bytes: &[u8]) -> Result<PathBuf, Refusal> {
        let path = self.fresh(of, extension)?;
        let mut file = File::create(&path).map_err(failed(&path))?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed(&path))?;
        Ok(path)
    }

    /// Numbers of the messages in a folder, in order. A folder that is not there holds none.
    fn numbers(&self, path: &Path) -> Vec<u32> {
        let names = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut numbers: Vec<u32> = names
            .filter_map(|name| match number_of(name.to_str()?)? {
                (number, "txt") => Some(number),
                _ => None,
            })
            .collect();
        numbers.sort_unstable();
        numbers
    }
    /// Files of a number, its text last.
    fn files(path: &Path, number: u32) -> Vec<(String, PathBuf)> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut files: Vec<(String, PathBuf)> = entries
            .filter_map(|entry| {
                let name = entry.file_name();
                let (of, extension) = number_of(name.to_str()?)?;
                (of == number).then(|| (extension.to_owned(), entry.path()))
            })
            .collect();
        files.sort_by_key(|(extension, _)| (extension == "txt", extension.clone()));
        files
    }
    fn read_message(path: &Path, number: u32) -> Result<Message, Refusal> {
        let text = read_most(&path.join(format!("{}.txt", stem(number))), TEXT_BYTES_MAX)?;
        Ok(Message { number, info: info::parse(&text), text: text.into() })
    }
    /// How many messages there are.
    pub fn count(&self, of: &BoxName) -> Counts {
        let count = |folder| self.numbers(&self.folder(of, folder)).len() as u32;
        Counts { urgent: count(Folder::URGENT), new: count(Folder::INBOX), old: count(Folder::OLD) }
    }
    /// What a folder holds, oldest first.
    pub fn list(&self, of: &BoxName, folder: Folder) -> Vec<Message> {
        let path = self.folder(of, folder);
        self.numbers(&path).into_iter().filter_map(|number| Self::read_message(&path, number).ok()).collect()
    }
    /// The number a message has now: others may have moved what stood before it.
    fn find(path: &Path, numbers: &[u32], message: &Message) -> Option<u32> {
        let is_it =
            |number: &u32| Self::read_message(path, *number).is_ok_and(|found| found.text == message.text);
        Some(message.number).filter(is_it).or_else(|| numbers.iter().copied().find(is_it))
    }
    /// The files of a message, its text last.
    pub(super) fn files_of(
        &self,
        of: &BoxName,
        folder: Folder,
        message: &Message,
    ) -> Result<Vec<(String, PathBuf)>, Refusal> {
        let path = self.folder(of, folder);
        let number = Self::find(&path, &self.numbers(&path), message).ok_or(Refusal::Missing)?;
        Ok(Self::files(&path, number))
    }
    /// The path, without extension, of something that can be heard.
    pub(super) fn sound(&self, of: &BoxName, sound: &Sound) -> Result<PathBuf, Refusal> {
        match sound {
            Sound::Message(folder, message) => {
                let files = self.files_of(of, *folder, message)?;
                files.first().map(|(_, path)| path.with_extension("")).ok_or(Refusal::Missing)
            }
            Sound::Greeting(greeting) => {
                let there = self.greeting_files(of, *greeting);
                if there.is_empty() { Err(Refusal::Missing) } else { Ok(self.home(of).join(greeting.file())) }
            }
            Sound::Held(held) => Ok(held.file.with_extension("")),
        }
    }
    fn greeting_files(&self, of: &BoxName, greeting: Greeting) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home(of)).into_iter().flatten().flatten().map(|entry| entry.path());
        let known: Vec<&str> = codec::extensions().collect();
        let is_it = |path: &PathBuf| {
            path.file_stem().is_some_and(|stem| stem == greeting.file())
                && path.extension().and_then(|e| e.to_str()).is_some_and(|e| known.contains(&e))
        };
        entries.filter(is_it).collect()
    }
    /// Whether there is such a greeting.
    pub fn has_greeting(&self, of: &BoxName, greeting: Greeting) -> bool {
        !self.greeting_files(of, greeting).is_empty()
    }
    /// Keeps a greeting; without a recording takes it away.
    pub fn greet(
        &self,
        of: &BoxName,
        greeting: Greeting,
        held: Option<&Held>,
        formats: &[String],
    ) -> Result<(), Refusal> {
        let home = self.home(of);
        self.make(&home)?;
        let before = self.greeting_files(of, greeting);
        let mut kept = Vec::new();
        if let Some(held) = held {
            for (extension, file) in self.files_for(of, &Heard::read(&held.file)?, Some(held), formats)? {
                let path = home.join(format!("{}.{extension}", greeting.file()));
                fs::rename(&file, &path).map_err(failed(&path))?;
                kept.push(path);
            }
            sync(&home)?;
            let _ = fs::remove_file(&held.file);
        }
        for path in before.into_iter().filter(|path| !kept.contains(path)) {
            fs::remove_file(&path).map_err(failed(&path))?;
        }
        sync(&home)
    }

    /// Files with this sound, on disk and under no name that counts: extension, path.
    fn files_for(
        &self,
        of: &BoxName,
        sound: &Heard,
        held: Option<&Held>,
        formats: &[String],
    ) -> Result<Vec<(String, PathBuf)>, Refusal> {
        let mut files = Vec::new();
        for extension in formats {
            // What was recorded in this format is taken as it is.
            let own = held.filter(|held| held.file.extension().is_some_and(|own| *own == **extension));
            let path = match own {
                Some(held) => {
                    let bytes = read_most(&held.file, SOUND_BYTES_MAX)?;
                    self.write_aside(of, extension, &bytes)?
                }
                None => {
                    let unknown = || Refusal::Failed(format!("'{extension}' cannot be written"));
                    self.write_aside(of, extension, &sound.coded(extension).ok_or_else(unknown)?)?
                }
            };
            files.push((extension.clone(), path));
        }
        Ok(files)
    }
    /// Keeps a message. When this returns it is on disk.
    pub fn deliver(&self, delivery: &Delivery) -> Result<Message, Refusal> {
        let (mut sound, mut own) = (None::<Heard>, None);
        if let Some(held) = &delivery.held {
            sound = Some(Heard::read(&held.file)?);
            own = Some(held);
        }
        if let Some((of, folder, message)) = &delivery.copied {
            let files = self.files_of(of, *folder, message)?;
            let audio = files.iter().find(|(extension, _)| extension != "txt").ok_or(Refusal::Missing)?;
            let copied = Heard::read(&audio.1)?;
            sound = Some(match sound {
                Some(mut first) => {
                    own = None;
                    first.samples.extend(copied.at(first.format));
                    first
                }
                None => copied,
            });
        }
        let sound = sound.ok_or(Refusal::TooShort)?;
        let length = sound.milliseconds();
        if length < u64::from(delivery.min_ms) || sound.samples.is_empty() {
            return Err(Refusal::TooShort);
        }
        let mut info = delivery.info.clone();
        info.duration = (length / 1000) as u32;
        let path = self.folder(&delivery.to, delivery.folder);
        self.make(&path)?;
        let files = self.files_for(&delivery.to, &sound, own, &delivery.formats)?;
        let text = info::text(&info);
        let aside = self.write_aside(&delivery.to, "txt", &text)?;
        let _lock = Lock::of(&path).map_err(failed(&path))?;
        let Some(number) = self.free_number(&path, delivery.max_messages) else {
            files.iter().map(|(_, file)| file).chain([&aside]).for_each(|file| drop(fs::remove_file(file)));
            return Err(Refusal::Full);
        };
        for (extension, file) in files {
            let to = path.join(format!("{}.{extension}", stem(number)));
            fs::rename(file, &to).map_err(failed(&to))?;
        }
        sync(&path)?;
        let to = path.join(format!("{}.txt", stem(number)));
        fs::rename(aside, &to).map_err(failed(&to))?;
        sync(&path)?;
        if let Some(held) = &delivery.held {
            let _ = fs::remove_file(&held.file);
        }
        Ok(Message { number, info, text: text.into() })
    }
    /// The number of the next message, with what a kill left under it taken away; `None` when the folder is full.
    fn free_number(&self, path: &Path, most: u32) -> Option<u32> {
        let numbers = self.numbers(path);
        let next = numbers.last().map_or(0, |last| last + 1);
        if numbers.len() as u64 >= u64::from(most) || next >= MESSAGES_MAX {
            return None;
        }
        Self::files(path, next).iter().for_each(|(_, left)| drop(fs::remove_file(left)));
        Some(next)
    }
    /// Moves a message; both folders are locked.
    fn shift(from: &Path, number: u32, to: &Path, new: u32) -> Result<(), Refusal> {
        let files = Self::files(from, number);
        Self::files(to, new).iter().for_each(|(_, left)| drop(fs::remove_file(left)));
        let at = |extension: &str| to.join(format!("{}.{extension}", stem(new)));
        let (text, sounds): (Vec<_>, Vec<_>) = files.iter().partition(|(extension, _)| extension == "txt");
        for (extension, file) in &sounds {
            fs::hard_link(file, at(extension))
                // Of disks that know no links.
                .or_else(|_| {
                    fs::copy(file, at(extension)).and_then(|_| File::open(at(extension))?.sync_all())
                })
                .map_err(failed(file))?;
        }
        sync(to)?;
        for (_, file) in &text {
            fs::rename(file, at("txt")).map_err(failed(file))?;
        }
        sync(to)?;
        for (_, file) in &sounds {
            fs::remove_file(file).map_err(failed(file))?;
        }
        if from != to { sync(from) } else { Ok(()) }
    }
    fn remove(path: &Path, number: u32) -> Result<(), Refusal> {
        // Its text first: what is left of a message without one is nothing.
        for (_, file) in Self::files(path, number).iter().rev() {
            fs::remove_file(file).map_err(failed(file))?;
        }
        Ok(())
    }
    /// Numbers of a folder follow each other again.
    fn close_gaps(&self, path: &Path) -> Result<(), Refusal> {
        for (wanted, number) in (0..).zip(self.numbers(path)) {
            if wanted != number {
                Self::shift(path, number, path, wanted)?;
            }
        }
        sync(path)
    }
    /// Does something to messages of a folder; how many of them could not be done, because they are gone or there is no
    /// room where they go.
    pub fn change(
        &self,
        of: &BoxName,
        folder: Folder,
        changes: &[(Message, Change)],
    ) -> Result<usize, Refusal> {
        if changes.is_empty() {
            return Ok(0);
        }
        let path = self.folder(of, folder);
        self.make(&path)?;
        let _lock = Lock::of(&path).map_err(failed(&path))?;
        let mut undone = 0;
        let numbers = self.numbers(&path);
        for (message, change) in changes {
            let Some(number) = Self::find(&path, &numbers, message) else {
                undone += 1;
                continue;
            };
            let (to, most, makes_room) = match change {
                Change::Delete(0) => {
                    Self::remove(&path, number)?;
                    continue;
                }
                Change::Delete(kept) => (Folder::DELETED, *kept, true),
                Change::Move(to, most) => (*to, *most, false),
            };
            if to == folder {
                continue;
            }
            let there = self.folder(of, to);
            self.make(&there)?;
            let _lock = Lock::of(&there).map_err(failed(&there))?;
            if makes_room {
                let kept = self.numbers(&there);
                let surplus = (kept.len() + 1).saturating_sub(most as usize);
                kept.iter().take(surplus).try_for_each(|oldest| Self::remove(&there, *oldest))?;
                self.close_gaps(&there)?;
            }
            match self.free_number(&there, most) {
                Some(new) => Self::shift(&path, number, &there, new)?,
                None => undone += 1,
            }
        }
        self.close_gaps(&path)?;
        Ok(undone)
    }
    /// The PIN that the owner has chosen, when it is kept here (`secret.conf`).
    pub fn pin(&self, of: &BoxName) -> Option<String> {
        let text = read_most(&self.home(of).join("secret.conf"), TEXT_BYTES_MAX).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        lines.find(|(name, _)| name.trim() == "password").map(|(_, pin)| pin.trim().to_owned())
    }
    /// Keeps a PIN here.
    pub fn set_pin(&self, of: &BoxName, pin: &str) -> Result<(), Refusal> {
        let home = self.home(of);
        self.make(&home)?;
        let aside = self.write_aside(of, "conf", format!("[general]\npassword={pin}\n").as_bytes())?;
        let path = home.join("secret.conf");
        fs::rename(aside, &path).map_err(failed(&path))?;
        sync(&home)
    }
    /// Bytes of a message's sound in this format, or in the first that there is; its extension.
    pub(super) fn attached(
        &self,
        of: &BoxName,
        folder: Folder,
        message: &Message,
        format: &str,
        louder: Gain,
    ) -> Result<(String, Vec<u8>), Refusal> {
        let mut files = self.files_of(of, folder, message)?;
        files.retain(|(extension, _)| extension != "txt");
        let wanted = files.iter().find(|(extension, _)| extension == format);
        if let Some((extension, path)) = wanted {
            let bytes = match made_louder(path, louder) {
                Some(bytes) => bytes,
                None => read_most(path, SOUND_BYTES_MAX)?,
            };
            return Ok((extension.clone(), bytes));
        }
        let (extension, path) = files.first().ok_or(Refusal::Missing)?;
        if let Some(bytes) = Some(format)
            .filter(|f| !f.is_empty())
            .and_then(|f| Heard::read(path).ok()?.louder(louder).coded(f))
        {
            return Ok((format.to_owned(), bytes));
        }
        Ok((extension.clone(), read_most(path, SOUND_BYTES_MAX)?))
    }
    /// Takes away what files that were being made a kill left behind, of mailboxes that somebody has.
    pub fn sweep<'a>(&self, boxes: impl Iterator<Item = &'a BoxName>) {
        for of in boxes {
            for entry in fs::read_dir(self.home(of).join(MAKING)).into_iter().flatten().flatten() {
                let is_ours = entry.file_name().to_string_lossy().starts_with("new-");
                if is_ours && entry.metadata().is_ok_and(|facts| facts.is_file()) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }
}

/// A sound file's content in another format; `None`: it is in that one, or cannot be brought to it.
pub(super) fn brought_to(path: &Path, format: &str, gain: Gain) -> Option<Vec<u8>> {
    let is_other = !format.is_empty() && path.extension()?.to_str()? != format;
    is_other.then(|| Heard::read(path).ok()?.louder(gain).coded(format)).flatten()
}

/// A sound file's content, made louder; `None`: it is to stay as it is, or has to, because it cannot be coded anew.
pub(super) fn made_louder(path: &Path, gain: Gain) -> Option<Vec<u8>> {
    let extension = path.extension()?.to_str()?;
    (gain != Gain::UNITY).then(|| Heard::read(path).ok()?.louder(gain).coded(extension)).flatten()
}

/// A clip of something in a mailbox.
pub(super) fn clip(
    catalogue: &crate::sounds::Catalogue,
    path: &Path,
    format: FormatId,
) -> Result<Arc<base::Clip>, Refusal> {
    let want = call::ClipWant { name: path.display().to_string(), language: String::new(), format };
    catalogue.prompt(&want).map(Arc::new).map_err(Refusal::Failed)
}
