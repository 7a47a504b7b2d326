//! The ways between formats and their costs on this machine: estimated, read from a file, or measured in a thread.
#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use base::Coded;
use codec::{Costs, Level, Paths};

use super::sys::thread_cpu;
use crate::wake::Wake;

/// Longest speech that is measured with, seconds: the slowest codec codes it in less than a second.
pub const SECONDS_MAX: usize = 60;
/// Times that each step is run; the shortest counts, because others share the processor.
const ROUNDS: usize = 3;
/// Longest part of a processor's name in a file's name.
const NAME_BYTES_MAX: usize = 80;

/// The ways between formats. Owned by the signalling shard; measuring runs in a thread of its own.
pub struct Translation {
    level: Level,
    file: PathBuf,
    /// Speech of 8 kHz, so many seconds.
    speech: fn(usize) -> Vec<i16>,
    coded: Cell<Coded>,
    paths: RefCell<Rc<Paths>>,
    measuring: RefCell<Option<Receiver<Costs>>>,
    /// Rung when a measurement is over. `None` when the process had no descriptor left for it.
    over: Option<Wake>,
}

/// Rings at its own end, which is that of the measuring thread, whatever ended it.
struct RingsAtLast(Option<Wake>);

impl Drop for RingsAtLast {
    fn drop(&mut self) {
        if let Some(over) = &self.0 {
            over.ring();
        }
    }
}

impl core::fmt::Debug for Translation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Translation({}, {})", self.level, self.file.display())
    }
}

impl Translation {
    /// With what was measured earlier on this kind of processor, or estimates. `folder` keeps measurements, a file a kind
    /// of processor and level; `speech` gives sound to measure with.
    pub fn open(level: Level, folder: &Path, speech: fn(usize) -> Vec<i16>) -> Self {
        let file = folder.join(format!("codec-costs-{}-{level}.txt", processor()));
        let costs = fs::read_to_string(&file).ok().and_then(|text| Costs::from_text(&text));
        let coded = Coded::default();
        let paths = Paths::new(&costs.unwrap_or_else(Costs::estimates), coded);
        Self {
            level,
            file,
            speech,
            coded: Cell::new(coded),
            paths: RefCell::new(Rc::new(paths)),
            measuring: RefCell::new(None),
            over: Wake::new().ok(),
        }
    }
    /// The formats between which there are ways from here on.
    pub fn set_coded(&self, coded: Coded) {
        if self.coded.replace(coded) != coded {
            let paths = Paths::new(self.paths().costs(), coded);
            *self.paths.borrow_mut() = Rc::new(paths);
        }
    }
    /// The ways as known at present; what a measurement found counts from its end on.
    pub fn paths(&self) -> Rc<Paths> {
        let mut measuring = self.measuring.borrow_mut();
        if let Some(over) = &self.over {
            over.answer();
        }
        match measuring.as_ref().map(Receiver::try_recv) {
            Some(Ok(costs)) => {
                *self.paths.borrow_mut() = Rc::new(Paths::new(&costs, self.coded.get()));
                *measuring = None;
            }
            Some(Err(TryRecvError::Disconnected)) => *measuring = None,
            Some(Err(TryRecvError::Empty)) | None => {}
        }
        self.paths.borrow().clone()
    }
    /// What becomes readable when a measurement is over, to be watched edge-triggered; `None` when nothing does.
    pub fn over(&self) -> Option<BorrowedFd<'_>> {
        self.over.as_ref().map(AsFd::as_fd)
    }
    /// Whether a measurement is under way.
    pub fn is_measuring(&self) -> bool {
        self.paths();
        self.measuring.borrow().is_some()
    }
    /// Begins to measure with so many seconds of speech, 1 to [`SECONDS_MAX`]; false when that is under way already.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn measure(&self, seconds: usize) -> io::Result<bool> {
        if self.is_measuring() {
            return Ok(false);
        }
        let (done, measuring) = sync_channel(1);
        let (level, speech, file) = (self.level, self.speech, self.file.clone());
        let seconds = seconds.clamp(1, SECONDS_MAX);
        let over = RingsAtLast(self.over.clone());
        std::thread::Builder::new().name("measuring".into()).spawn(move || {
            let costs = Costs::measure(level, &speech(seconds), ROUNDS, &mut thread_cpu);
            if let Some(folder) = file.parent() {
                // Kept where that is allowed; the figures count in any case.
                let _ = fs::create_dir_all(folder).and_then(|()| fs::write(&file, costs.to_text()));
            }
            let _ = done.send(costs);
            drop((done, over)); // in this order: who is woken finds the end
        })?;
        *self.measuring.borrow_mut() = Some(measuring);
        Ok(true)
    }
    /// Where measurements are kept.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

/// The processor's name, or that of its architecture where the kernel tells none.
pub fn processor_name() -> String {
    let facts = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = facts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or(std::env::consts::ARCH, |(_, name)| name.trim()).to_owned()
}

/// The same as part of a file's name.
fn processor() -> String {
    let model = processor_name();
    let plain = model.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' });
    let words: String = plain.collect();
    let mut name = words.split_whitespace().collect::<Vec<_>>().join("-");
    name.truncate(NAME_BYTES_MAX);
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FormatId;

    fn noise(seconds: usize) -> Vec<i16> {
        let mut state = 1u32;
        (0..seconds * 8000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 18) as i16
            })
            .collect()
    }

    #[test]
    fn what_was_measured_counts_and_is_found_again_by_the_next_process() {
        let folder = std::env::temp_dir().join(format!("strowger-costs-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let translation = Translation::open(Level::best(), &folder, noise);
        assert!(!translation.paths().costs().measured);
        assert!(translation.measure(1).unwrap());
        assert!(!translation.measure(1).unwrap(), "one at a time");
        let bell = translation.over().unwrap();
        let mut watched = [rustix::event::PollFd::new(&bell, rustix::event::PollFlags::IN)];
        assert_eq!(rustix::event::poll(&mut watched, None), Ok(1), "rung once, at the end");
        assert!(!translation.is_measuring());
        let costs = translation.paths().costs().clone();
        assert!(costs.measured);
        let gsm = costs.encode(FormatId::GSM);
        assert!(gsm.alone > 1.0 && gsm.group < gsm.alone, "{gsm:?}");
        let again = Translation::open(Level::best(), &folder, noise);
        assert!(again.paths().costs().measured, "{:?}", again.file());
        fs::write(again.file(), "nonsense").unwrap();
        assert!(!Translation::open(Level::best(), &folder, noise).paths().costs().measured);
        let _ = fs::remove_dir_all(&folder);
    }
}
