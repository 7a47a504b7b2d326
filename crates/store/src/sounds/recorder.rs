//! Recordings: the worker writes samples into a ring, a thread codes them and writes the file.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use base::AudioSink;
use call::{Afterwards, Recorder, Take};
use codec::Recording;
use rtrb::{Consumer, Producer, RingBuffer};

/// Samples between worker and thread: four seconds at 8 kHz, so that a slow disk loses nothing.
const RING_SAMPLES: usize = 32 * 1024;
/// How often the thread empties the rings while recordings run.
const TURN: Duration = Duration::from_millis(100);
/// How often what was written is forced to disk, so that a crash costs a second at most.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// Most recordings at once.
const RECORDINGS_MAX: usize = 4096;

/// Hears what an administrator ought to know; called on threads of this room.
pub type Told = Box<dyn Fn(&str) + Send>;

/// The front end. Implements [`Recorder`] for the call core.
pub struct Recordings {
    sounds: PathBuf,
    jobs: Sender<Track>,
    running: Arc<std::sync::atomic::AtomicUsize>,
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
    /// Starts the thread. Relative names lie below `sounds`; `told` hears of recordings that ended because they could not
    /// be written.
    pub fn start(sounds: PathBuf, told: Told) -> std::io::Result<Self> {
        let (jobs, inbox) = channel();
        let running = Arc::default();
        let count = Arc::clone(&running);
        std::thread::Builder::new()
            .name("recordings".to_owned())
            .spawn(move || serve(&inbox, &count, &told))?;
        Ok(Self { sounds, jobs, running })
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
            format!("'{extension}' is no sound format; use wav, gsm, ulaw, alaw, sln or g722")
        })?;
        self.begin(path, extension, recording, append)
    }
    fn open_stereo(&mut self, path: &str, extension: &str, append: bool) -> Result<Take, String> {
        let recording = Recording::stereo(extension)
            .ok_or_else(|| format!("'{extension}' has no second channel; use wav, wav16 or sln"))?;
        self.begin(path, extension, recording, append)
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
        if self.running.load(Ordering::Relaxed) >= RECORDINGS_MAX {
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
            File::create(&path).map_err(fail)?
        };
        let linear = recording.linear();
        let (writer, samples) = RingBuffer::new(RING_SAMPLES);
        let ended = Arc::new(AtomicBool::new(false));
        let afterwards = Arc::<Afterwards>::default();
        let shared = (Arc::clone(&ended), Arc::clone(&afterwards));
        let track = Track::begin(path.clone(), file, recording, samples, shared).map_err(fail)?;
        self.jobs.send(track).map_err(|_| "the thread that writes recordings has ended".to_owned())?;
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(Take { sink: Box::new(Sink { writer, ended }), format: linear, afterwards })
    }
}

struct Sink {
    writer: Producer<i16>,
    ended: Arc<AtomicBool>,
}

impl AudioSink for Sink {
    fn write(&mut self, samples: &[i16]) -> usize {
        let fits = samples.len().min(self.writer.slots());
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

/// One file being written.
struct Track {
    path: PathBuf,
    file: File,
    recording: Recording,
    samples: Consumer<i16>,
    ended: Arc<AtomicBool>,
    afterwards: Arc<Afterwards>,
    header_len: u64,
    /// Bytes of sound that were there before.
    began_at: u64,
    data_len: u64,
    coded: Vec<u8>,
    synced: Instant,
}

impl Track {
    fn begin(
        path: PathBuf,
        mut file: File,
        recording: Recording,
        samples: Consumer<i16>,
        (ended, afterwards): (Arc<AtomicBool>, Arc<Afterwards>),
    ) -> std::io::Result<Self> {
        let header = recording.header(0);
        let header_len = header.len() as u64;
        let there = file.seek(SeekFrom::End(0))?;
        if there < header_len {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&header)?;
        }
        let data_len = there.saturating_sub(header_len);
        Ok(Self {
            path,
            file,
            recording,
            samples,
            ended,
            afterwards,
            header_len,
            began_at: data_len,
            data_len,
            coded: Vec::new(),
            synced: Instant::now(),
        })
    }
    /// Writes what has come; `false` when the recording is complete or cannot go on.
    fn turn(&mut self, told: &Told) -> bool {
        let over = self.ended.load(Ordering::Acquire);
        let waiting = self.samples.slots();
        self.coded.clear();
        if let Ok(chunk) = self.samples.read_chunk(waiting) {
            let (first, second) = chunk.as_slices();
            self.recording.write(first, &mut self.coded);
            self.recording.write(second, &mut self.coded);
            chunk.commit_all();
        }
        if over {
            self.recording.finish(&mut self.coded);
        }
        let due = over || self.synced.elapsed() >= SYNC_EVERY;
        let written = self.write(due);
        if over && written.is_ok() {
            // A file that cannot be cut stays as it is: nothing better can be done with it here.
            let _ = self.amend();
        }
        if let Err(why) = &written {
            // The call goes on: what its worker writes from here on finds a full ring.
            told(&format!("recording {} has ended: {why}", self.path.display()));
        }
        !(written.is_err() || over)
    }
    /// Takes away what its story does not want to keep.
    fn amend(&mut self) -> std::io::Result<()> {
        let keep = if self.afterwards.is_discarded() {
            self.began_at
        } else {
            let rate = u64::from(self.recording.rate().0);
            let samples = u64::from(self.afterwards.cut_ms()) * rate / 1000;
            let bytes = self.recording.bytes_of(usize::try_from(samples).unwrap_or(usize::MAX)) as u64;
            self.data_len.saturating_sub(bytes).max(self.began_at)
        };
        if keep == 0 && self.afterwards.is_discarded() {
            return std::fs::remove_file(&self.path);
        }
        if keep < self.data_len {
            self.data_len = keep;
            self.coded.clear();
            self.file.set_len(self.header_len + keep)?;
            self.write(true)?;
        }
        Ok(())
    }
    fn write(&mut self, sync: bool) -> std::io::Result<()> {
        self.file.write_all(&self.coded)?;
        self.data_len += self.coded.len() as u64;
        if sync {
            self.synced = Instant::now();
            let header = self.recording.header(u32::try_from(self.data_len).unwrap_or(u32::MAX));
            if !header.is_empty() {
                self.file.seek(SeekFrom::Start(0))?;
                self.file.write_all(&header)?;
                self.file.seek(SeekFrom::Start(self.header_len + self.data_len))?;
            }
            self.file.sync_data()?;
        }
        Ok(())
    }
}

fn serve(inbox: &Receiver<Track>, running: &std::sync::atomic::AtomicUsize, told: &Told) {
    let mut tracks: Vec<Track> = Vec::new();
    loop {
        // Without a recording the thread sleeps until one comes.
        let next = if tracks.is_empty() {
            inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            inbox.recv_timeout(TURN)
        };
        match next {
            Ok(track) => tracks.push(track),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if tracks.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TURN),
        }
        let before = tracks.len();
        tracks.retain_mut(|track| track.turn(told));
        running.fetch_sub(before - tracks.len(), Ordering::Relaxed);
    }
}
