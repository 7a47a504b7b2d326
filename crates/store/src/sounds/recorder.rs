//! Recordings: the worker writes samples into a ring, a thread codes them and writes the file.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use base::AudioSink;
use call::{Afterwards, Progress, Recorder, RecorderState, Take};
use codec::{Ending, Level, Recording};
use rtrb::{Consumer, Producer, RingBuffer};

/// Seconds of sound between worker and thread, so that a disk that rests for so long loses nothing.
const RING_SECONDS: usize = 4;
/// How often a file is written: in one piece, and so that with [`TURN`] a kill costs less than a second.
const WRITE_EVERY: Duration = Duration::from_millis(800);
/// How often the thread looks whose time has come, and who has ended.
const TURN: Duration = Duration::from_millis(100);
/// How often what was written is forced to disk, as far as the disk keeps up, for the sake of power cuts.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// How often the log tells of sound that a slow disk has lost.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// Most recordings at once.
const RECORDINGS_MAX: usize = 4096;

/// Hears what an administrator ought to know; called on threads of this room.
pub type Told = Box<dyn Fn(&str) + Send>;

/// The front end. Implements [`Recorder`] for the call core.
pub struct Recordings {
    sounds: PathBuf,
    jobs: Sender<Track>,
    totals: Arc<Totals>,
}

/// What [`RecorderState`] tells.
#[derive(Default)]
struct Totals {
    running: AtomicUsize,
    lost_ms: AtomicU64,
    failed: AtomicU64,
}

impl Recordings {
    /// Completes, on a thread of its own, what a kill left unfinished in a folder and below it.
    pub fn repair(folder: PathBuf, told: Told) -> std::io::Result<()> {
        let now = SystemTime::now();
        std::thread::Builder::new().name("repair".to_owned()).spawn(move || {
            let count = super::repair::repair(&folder, now);
            if count > 0 {
                told(&format!(
                    "{count} recordings below {} were cut short; their headers are complete again",
                    folder.display()
                ));
            }
        })?;
        Ok(())
    }
    /// Starts the threads: one writes, the other forces what was written to disk, so that writing never waits for that.
    /// Relative names lie below `sounds`; `told` hears of sound that was lost and of recordings that ended because they
    /// could not be written.
    pub fn start(sounds: PathBuf, told: Told) -> std::io::Result<Self> {
        let (jobs, inbox) = channel();
        let (begun, written) = channel();
        let totals = Arc::<Totals>::default();
        let counted = Arc::clone(&totals);
        std::thread::Builder::new().name("syncing".to_owned()).spawn(move || keep_safe(&written))?;
        std::thread::Builder::new()
            .name("recordings".to_owned())
            .spawn(move || serve(&inbox, &begun, &counted, &told))?;
        Ok(Self { sounds, jobs, totals })
    }
    fn path(&self, path: &str, extension: &str) -> Result<PathBuf, String> {
        let asked = Path::new(path);
        if asked.components().any(|part| matches!(part, Component::ParentDir)) {
            return Err("names with .. are refused".to_owned());
        }
        let mut name = self.sounds.join(asked).into_os_string();
        name.push(".");
        name.push(extension);
        Ok(PathBuf::from(name))
    }
}

impl Recorder for Recordings {
    fn open(&mut self, path: &str, extension: &str, append: bool) -> Result<Take, String> {
        let recording = Recording::new(extension).ok_or_else(|| {
            format!("'{extension}' is no sound format; use wav, gsm, ulaw, alaw, sln, g722 or opus")
        })?;
        self.begin(path, extension, recording, append)
    }
    fn open_stereo(&mut self, path: &str, extension: &str, append: bool) -> Result<Take, String> {
        let recording = Recording::stereo(extension)
            .ok_or_else(|| format!("'{extension}' has no second channel; use wav, wav16 or sln"))?;
        self.begin(path, extension, recording, append)
    }
    fn rename(&mut self, path: &str, extension: &str, to: &str) -> Result<(), String> {
        let (from, to) = (self.path(path, extension)?, self.path(to, extension)?);
        let fail = |why: std::io::Error| format!("{}: {why}", to.display());
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder).map_err(fail)?;
        }
        // Whoever writes it has it open, and does not ask for its name.
        std::fs::rename(from, &to).map_err(fail)
    }
    fn remove(&mut self, path: &str, extension: &str) {
        if let Ok(path) = self.path(path, extension) {
            // One that was never made, or is gone already, is as good.
            let _ = std::fs::remove_file(path);
        }
    }
    fn state(&self) -> RecorderState {
        RecorderState {
            running: self.totals.running.load(Ordering::Relaxed),
            lost_ms: self.totals.lost_ms.load(Ordering::Relaxed),
            failed: self.totals.failed.load(Ordering::Relaxed),
        }
    }
    fn knows(&self, extension: &str) -> bool {
        Recording::new(extension).is_some()
    }
    fn stored(&mut self, folder: &str, most: usize) -> Vec<(String, String)> {
        super::kept::list(&self.sounds.join(folder), most)
    }
    fn extensions(&mut self, path: &str) -> Vec<String> {
        let is_there = |extension: &&str| self.path(path, extension).is_ok_and(|path| path.is_file());
        codec::extensions().filter(is_there).map(str::to_owned).collect()
    }
    fn copy(&mut self, path: &str, extension: &str, to: &str) -> Result<(), String> {
        super::kept::copy(self.path(path, extension)?, self.path(to, extension)?)
    }
    fn is_free(&mut self, path: &str, extension: &str) -> bool {
        self.path(path, extension).is_ok_and(|path| !path.exists())
    }
}

impl Recordings {
    fn begin(
        &mut self,
        path: &str,
        extension: &str,
        recording: Recording,
        append: bool,
    ) -> Result<Take, String> {
        if self.totals.running.load(Ordering::Relaxed) >= RECORDINGS_MAX {
            return Err(format!("{RECORDINGS_MAX} recordings are running already"));
        }
        let path = self.path(path, extension)?;
        let fail = |why: std::io::Error| format!("{}: {why}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(fail)?;
        }
        let file = if append {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(fail)?
        } else {
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).map_err(fail)?
        };
        let format = recording.linear();
        let second = format.rate().0 as usize * recording.channels();
        let (writer, samples) = RingBuffer::new(RING_SECONDS * second);
        let ended = Arc::new(AtomicBool::new(false));
        let (afterwards, progress) = (Arc::<Afterwards>::default(), Arc::<Progress>::default());
        let shared = Shared {
            ended: Arc::clone(&ended),
            afterwards: Arc::clone(&afterwards),
            progress: Arc::clone(&progress),
        };
        let track = Track::begin(path.clone(), file, recording, samples, shared).map_err(fail)?;
        self.jobs.send(track).map_err(|_| "the thread that writes recordings has ended".to_owned())?;
        self.totals.running.fetch_add(1, Ordering::Relaxed);
        let sink = Box::new(Sink { writer, ended, progress: Arc::clone(&progress) });
        Ok(Take { sink, format, afterwards, progress })
    }
}

struct Sink {
    writer: Producer<i16>,
    ended: Arc<AtomicBool>,
    progress: Arc<Progress>,
}

impl AudioSink for Sink {
    fn write(&mut self, samples: &[i16]) -> usize {
        let fits = samples.len().min(self.writer.slots());
        self.progress.took_but(samples.len() - fits);
        let Ok(mut chunk) = self.writer.write_chunk(fits) else { return 0 };
        let (first, second) = chunk.as_mut_slices();
        let (a, b) = samples.split_at(first.len().min(fits));
        first.copy_from_slice(a);
        second.copy_from_slice(b.get(..second.len()).unwrap_or_default());
        chunk.commit_all();
        fits
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
    }
}

/// What the writer of a file shares with its sink and its story.
struct Shared {
    ended: Arc<AtomicBool>,
    afterwards: Arc<Afterwards>,
    progress: Arc<Progress>,
}

/// A file as both threads have it.
struct Paper {
    file: File,
    /// Something was written that was not forced to disk.
    dirty: AtomicBool,
    progress: Arc<Progress>,
}

/// Whether a file has its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Its time has not come.
    Waits,
    /// What has come is taken, and goes on being coded.
    Gathered,
    /// A fault has ended it.
    Failed,
}

/// One file being written.
struct Track {
    path: PathBuf,
    paper: Arc<Paper>,
    recording: Recording,
    samples: Consumer<i16>,
    shared: Shared,
    header_len: u64,
    /// Bytes of sound that were there before.
    began_at: u64,
    data_len: u64,
    coded: Vec<u8>,
    due: Instant,
    /// It has its turn.
    turn: Turn,
    /// Its sink was gone when its turn began.
    over: bool,
    /// Samples lost that the log knows of, and when it was told.
    told: (u64, Option<Instant>),
    /// Milliseconds lost that the totals know of.
    counted_ms: u64,
}

impl Track {
    fn begin(
        path: PathBuf,
        file: File,
        mut recording: Recording,
        samples: Consumer<i16>,
        shared: Shared,
    ) -> std::io::Result<Self> {
        let header = recording.header(0);
        let header_len = header.len() as u64;
        let there = file.metadata()?.len();
        if there < header_len {
            file.set_len(0)?;
            file.write_all_at(&header, 0)?;
        }
        let data_len = there.saturating_sub(header_len);
        let mut coded = Vec::new();
        recording.open(data_len, &mut coded);
        let paper = Paper { file, dirty: AtomicBool::new(true), progress: Arc::clone(&shared.progress) };
        Ok(Self {
            path,
            paper: Arc::new(paper),
            recording,
            samples,
            shared,
            header_len,
            began_at: data_len,
            data_len,
            coded,
            due: Instant::now() + WRITE_EVERY,
            turn: Turn::Waits,
            over: false,
            told: (0, None),
            counted_ms: 0,
        })
    }
    /// Whether it is to be written now.
    fn is_due(&self, now: Instant) -> bool {
        self.due <= now || self.shared.ended.load(Ordering::Acquire)
    }
    /// The first half of its turn: takes what has come, and codes it unless it is to be coded beside that of others.
    fn gather(&mut self) {
        self.over = self.shared.ended.load(Ordering::Acquire);
        let waiting = self.samples.slots();
        if let Ok(chunk) = self.samples.read_chunk(waiting) {
            let (first, second) = chunk.as_slices();
            for samples in [first, second] {
                match self.recording.has_lanes() {
                    true => self.recording.listen(samples),
                    false => self.recording.write(samples, &mut self.coded),
                }
            }
            chunk.commit_all();
        }
    }
    /// The second half: writes what is coded; `false` when the recording is complete or cannot go on.
    fn conclude(&mut self, now: Instant, told: &Told) -> bool {
        let over = self.over;
        match over {
            true => self.recording.finish(&mut self.coded),
            false => self.recording.flush(&mut self.coded),
        }
        let written = self.write();
        if over && written.is_ok() {
            // A file that cannot be cut stays as it is: nothing better can be done with it here.
            let _ = self.amend();
        }
        if let Err(why) = &written {
            // Half a frame may have found room. The call goes on: what its worker writes from here on finds a full ring.
            let _ = self.paper.file.set_len(self.header_len + self.data_len);
            self.shared.progress.fail(why.to_string());
            told(&format!("recording {} has ended: {why}", self.path.display()));
        }
        self.tell(now, over, told);
        // In step with all others that are due, so that one wake-up serves many.
        self.due = now + WRITE_EVERY;
        !(written.is_err() || over)
    }
    /// Says how much sound a slow disk has lost, now and then and at the end.
    fn tell(&mut self, now: Instant, over: bool, told: &Told) {
        let lost = self.shared.progress.lost();
        let (known, last) = self.told;
        if lost > known && (over || last.is_none_or(|last| now - last >= TELL_EVERY)) {
            let ms = self.milliseconds(lost - known);
            told(&format!("recording {} has lost {ms} ms: the disk is too slow", self.path.display()));
            self.told = (lost, Some(now));
        }
    }
    fn milliseconds(&self, samples: u64) -> u64 {
        let second = u64::from(self.recording.rate().0) * self.recording.channels() as u64;
        samples * 1000 / second.max(1)
    }
    /// Milliseconds that were lost since this was asked last.
    fn newly_lost_ms(&mut self) -> u64 {
        let all = self.milliseconds(self.shared.progress.lost());
        all - core::mem::replace(&mut self.counted_ms, all)
    }
    /// Takes away what its story does not want to keep.
    fn amend(&mut self) -> std::io::Result<()> {
        let afterwards = &self.shared.afterwards;
        if afterwards.is_discarded() {
            if self.began_at == 0 {
                return std::fs::remove_file(&self.path);
            }
            return self.shorten(self.began_at);
        }
        let samples = u64::from(afterwards.cut_ms()) * u64::from(self.recording.rate().0) / 1000;
        if samples == 0 {
            return Ok(());
        }
        match self.recording.without(usize::try_from(samples).unwrap_or(usize::MAX)) {
            None => Ok(()),
            Some(Ending::Bytes(bytes)) => {
                self.shorten(self.data_len.saturating_sub(bytes).max(self.began_at))
            }
            Some(ending @ Ending::Page { start, end, .. }) => {
                let (start, end) = (self.began_at + start, self.began_at + end);
                let mut page = vec![0; usize::try_from(end - start).unwrap_or(0)];
                self.paper.file.read_exact_at(&mut page, start)?;
                ending.page(&mut page);
                self.paper.file.write_all_at(&page, start)?;
                self.shorten(start + page.len() as u64)
            }
        }
    }
    fn shorten(&mut self, keep: u64) -> std::io::Result<()> {
        if keep < self.data_len {
            self.data_len = keep;
            self.paper.file.set_len(self.header_len + keep)?;
            self.write()?;
        }
        Ok(())
    }
    /// Writes what is coded in one piece, and the header that tells of it.
    fn write(&mut self) -> std::io::Result<()> {
        self.paper.file.write_all_at(&self.coded, self.header_len + self.data_len)?;
        self.data_len += self.coded.len() as u64;
        self.coded.clear();
        let header = self.recording.header(u32::try_from(self.data_len).unwrap_or(u32::MAX));
        if !header.is_empty() {
            self.paper.file.write_all_at(&header, 0)?;
        }
        self.paper.dirty.store(true, Ordering::Release);
        Ok(())
    }
}

impl Drop for Track {
    fn drop(&mut self) {
        self.shared.progress.end();
    }
}

fn serve(inbox: &Receiver<Track>, begun: &Sender<Arc<Paper>>, totals: &Totals, told: &Told) {
    let mut tracks: Vec<Track> = Vec::new();
    let mut next_turn = Instant::now();
    loop {
        // Without a recording the thread sleeps until one comes.
        let next = if tracks.is_empty() {
            inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            inbox.recv_timeout(next_turn.saturating_duration_since(Instant::now()))
        };
        match next {
            Ok(track) => {
                // Without the other thread files are forced to disk when the system pleases.
                let _ = begun.send(Arc::clone(&track.paper));
                tracks.push(track);
                if next_turn > Instant::now() {
                    continue;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if tracks.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TURN),
        }
        let before = tracks.len();
        let now = Instant::now();
        next_turn = now + TURN;
        for track in tracks.iter_mut().filter(|track| track.is_due(now)) {
            track.turn = Turn::Gathered;
            survive(track, told, Track::gather);
        }
        code_together(&mut tracks, told);
        tracks.retain_mut(|track| {
            let goes_on = match std::mem::replace(&mut track.turn, Turn::Waits) {
                Turn::Waits => return true,
                Turn::Gathered => survive(track, told, |track| track.conclude(now, told)).unwrap_or(false),
                Turn::Failed => false,
            };
            totals.lost_ms.fetch_add(track.newly_lost_ms(), Ordering::Relaxed);
            let failed = track.shared.progress.failure().is_some() && !goes_on;
            totals.failed.fetch_add(failed.into(), Ordering::Relaxed);
            goes_on
        });
        totals.running.fetch_sub(before - tracks.len(), Ordering::Relaxed);
    }
}

/// Lets a file have a part of its turn; a panic in it ends this recording and no other.
fn survive<T>(track: &mut Track, told: &Told, part: impl FnOnce(&mut Track) -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(|| part(track))).ok();
    if done.is_none() {
        track.turn = Turn::Failed;
        track.shared.progress.fail("a fault of the recorder".to_owned());
        told(&format!("recording {} has ended: a fault of the recorder", track.path.display()));
    }
    done
}

/// Codes what files of a format with lanes have gathered, a frame of each side by side, until there is no whole frame left.
fn code_together(tracks: &mut [Track], told: &Told) {
    let gathered = |track: &&mut Track| track.turn == Turn::Gathered && track.recording.has_lanes();
    let mut waiting: Vec<&mut Track> = tracks.iter_mut().filter(gathered).collect();
    waiting.sort_by_key(|track| track.recording.format().index());
    for alike in waiting.chunk_by_mut(|one, other| one.recording.format() == other.recording.format()) {
        let size =
            alike.first().map_or(1, |track| codec::group_size(track.recording.format(), Level::best()));
        for group in alike.chunks_mut(size.clamp(1, codec::GROUP_MAX)) {
            while code_frame(group, told) {}
        }
    }
}

/// Codes the next frame of each file of a group; false when none has one.
fn code_frame(group: &mut [&mut Track], told: &Told) -> bool {
    let run = |group: &mut [&mut Track]| {
        let sound = group.iter_mut().filter(|track| track.turn == Turn::Gathered);
        let mut tasks: codec::EncodeTasks<'_> = sound.filter_map(|track| track.recording.task()).collect();
        codec::encode_group(Level::best(), &mut tasks);
        tasks.len()
    };
    let Ok(count) = catch_unwind(AssertUnwindSafe(|| run(group))) else {
        // Whoever is not done is as before: run again one by one, the faulty one falls alone.
        for track in group.iter_mut() {
            let Track { recording, coded, .. } = &mut **track;
            if !recording.take_task(coded) {
                survive(track, told, |track| {
                    run(&mut [&mut *track]);
                    track.recording.take_task(&mut track.coded);
                });
            }
        }
        return true;
    };
    for track in group.iter_mut() {
        track.recording.take_task(&mut track.coded);
    }
    count > 0
}

/// Forces files to disk, one after the other and each at most once in [`SYNC_EVERY`]: a slow disk makes it rarer.
fn keep_safe(begun: &Receiver<Arc<Paper>>) {
    let mut papers: Vec<Arc<Paper>> = Vec::new();
    loop {
        let next = if papers.is_empty() {
            begun.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            begun.recv_timeout(SYNC_EVERY)
        };
        match next {
            Ok(paper) => {
                papers.push(paper);
                papers.extend(begun.try_iter());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if papers.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(SYNC_EVERY),
        }
        papers.retain(|paper| {
            // Asked first, so that what its writer wrote last is forced to disk too.
            let is_last = Arc::strong_count(paper) == 1;
            if paper.dirty.swap(false, Ordering::Acquire)
                && let Err(why) = paper.file.sync_data()
                // Pipes and devices cannot be forced to anything.
                && why.kind() != std::io::ErrorKind::InvalidInput
            {
                paper.progress.fail(why.to_string());
            }
            !is_last
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(folder: &Path, name: &str) -> (Track, Producer<i16>) {
        let path = folder.join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        let (writer, samples) = RingBuffer::new(8000);
        let shared = Shared { ended: Arc::default(), afterwards: Arc::default(), progress: Arc::default() };
        let recording = Recording::new("sln").unwrap();
        (Track::begin(path, file, recording, samples, shared).unwrap(), writer)
    }

    #[test]
    fn a_panic_in_the_turn_of_one_recording_ends_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let told: Told = Box::new(|text| assert!(text.contains("bad.sln has ended: a fault"), "{text}"));
        let (mut bad, _ring) = track(folder.path(), "bad.sln");
        let (mut good, mut ring) = track(folder.path(), "good.sln");
        ring.write_chunk_uninit(100).unwrap().fill_from_iter([7; 100]);
        let now = Instant::now();
        let fault = |_: &mut Track| -> bool { panic!("a fault injected into a recording") };
        assert_eq!(survive(&mut bad, &told, fault), None);
        assert_eq!(bad.turn, Turn::Failed);
        assert_eq!(bad.shared.progress.failure(), Some("a fault of the recorder"));
        survive(&mut good, &told, Track::gather);
        assert_eq!(survive(&mut good, &told, |track| track.conclude(now, &told)), Some(true));
        assert_eq!(std::fs::read(folder.path().join("good.sln")).unwrap(), [7, 0].repeat(100));
    }

    #[test]
    fn files_of_formats_with_lanes_have_what_each_would_have_alone() {
        let folder = tempfile::tempdir().unwrap();
        let told: Told = Box::new(|text| panic!("{text}"));
        let names = ["gsm", "WAV", "gsm", "g722", "sln", "WAV", "gsm"];
        let mut expected = Vec::new();
        let mut tracks: Vec<Track> = Vec::new();
        for (n, name) in names.iter().enumerate() {
            let path = folder.path().join(format!("{n}.{name}"));
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
            let (mut writer, samples) = RingBuffer::new(64_000);
            let shared =
                Shared { ended: Arc::default(), afterwards: Arc::default(), progress: Arc::default() };
            shared.ended.store(true, Ordering::Release);
            let recording = Recording::new(name).unwrap();
            let count = recording.rate().0 as usize + 777 * n;
            let sound: Vec<i16> = (0..count).map(|at| ((at * (n + 3)) % 6000) as i16 - 3000).collect();
            writer.write_chunk_uninit(count).unwrap().fill_from_iter(sound.iter().copied());
            let (mut alone, mut bytes) = (Recording::new(name).unwrap(), Vec::new());
            alone.write(&sound, &mut bytes);
            alone.finish(&mut bytes);
            expected.push((path.clone(), [alone.header(bytes.len() as u32), bytes].concat()));
            tracks.push(Track::begin(path, file, recording, samples, shared).unwrap());
        }
        for track in &mut tracks {
            track.turn = Turn::Gathered;
            track.gather();
        }
        code_together(&mut tracks, &told);
        for mut track in tracks {
            assert!(!track.conclude(Instant::now(), &told), "it is complete");
        }
        for (path, bytes) in expected {
            assert!(std::fs::read(&path).unwrap() == bytes, "{}", path.display());
        }
    }
}
