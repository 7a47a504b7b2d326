//! The seams of the call core, filled with the real things.

use core::net::IpAddr;
use std::cell::RefCell;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::rc::Rc;
use std::sync::Arc;

use base::{Clip, Command, FormatId, Plan, StreamId};
use call::{ClipAnswer, ClipWant, Level, Library, MediaDoor, MediaRefused, MusicAnswer, Recorder, WallClock};
use control::socket::{View, Weight};
use io::clock::Clock;
use io::media::{MediaFront, OpenError};
use store::config::logger::LogLevel;
use store::date::Zones;
use store::log::LogSender;
use store::sounds::Sounds;

/// The media front, shared with the loop and the console.
pub(crate) struct Media(pub(crate) Rc<RefCell<MediaFront>>);

impl MediaDoor for Media {
    fn open(&mut self, local: IpAddr, plan: Plan) -> Result<(StreamId, u16), MediaRefused> {
        self.0.borrow_mut().open(local, plan).map_err(|why| refused(&why))
    }
    fn open_internal(&mut self, plan: Plan) -> Result<StreamId, MediaRefused> {
        self.0.borrow_mut().open_internal(plan).map_err(|why| refused(&why))
    }
    fn open_piped(&mut self, plan: Plan) -> Result<StreamId, MediaRefused> {
        self.0.borrow_mut().open_piped(plan).map_err(|why| refused(&why))
    }
    fn feed(&mut self, stream: StreamId, packet: &[u8]) -> bool {
        self.0.borrow_mut().feed(stream, packet)
    }
    fn command(&mut self, command: Command) {
        self.0.borrow_mut().command(command);
    }
}

fn refused(why: &OpenError) -> MediaRefused {
    match why {
        OpenError::NoPort { .. } => MediaRefused::NoPorts,
        OpenError::Bind { error, .. } if io::net::is_out_of_descriptors(error) => MediaRefused::Descriptors,
        OpenError::Bind { .. } => MediaRefused::Socket,
        OpenError::Full(_) => MediaRefused::Busy,
    }
}

/// The sounds, shared with the loop, which takes in what their thread has read.
pub(crate) struct SharedSounds(pub(crate) Rc<RefCell<Sounds>>);

impl Library for SharedSounds {
    fn clip(&mut self, want: &ClipWant) -> ClipAnswer {
        self.0.borrow_mut().clip(want)
    }
    fn source(&mut self, want: &ClipWant) -> FormatId {
        self.0.borrow_mut().source(want)
    }
    fn exists(&mut self, name: &str, language: &str) -> Option<bool> {
        self.0.borrow_mut().exists(name, language)
    }
    fn music(&mut self, class: &str, format: FormatId) -> MusicAnswer {
        self.0.borrow_mut().music(class, format)
    }
    fn tone(&mut self, zone: &str, tone: &str, format: FormatId) -> Option<Arc<Clip>> {
        self.0.borrow_mut().tone(zone, tone, format)
    }
}

/// Wall time and the zones of this machine.
#[derive(Default)]
pub(crate) struct Wall {
    zones: RefCell<Zones>,
}

impl WallClock for Wall {
    fn now_micros(&self) -> i64 {
        i64::try_from(Clock.wall().as_micros()).unwrap_or(i64::MAX)
    }
    fn offset(&self, at: i64, zone: &str) -> dialplan::Offset {
        self.zones.borrow_mut().at(at, zone)
    }
}

/// The log as the shard sees it: to the log thread, and to consoles that are attached.
#[derive(Clone)]
pub(crate) struct Tee {
    pub(crate) sender: LogSender,
    attached: Rc<RefCell<Attached>>,
}

/// What attached consoles want to see, and lines they have not been sent yet.
#[derive(Default)]
pub(crate) struct Attached {
    pub(crate) view: View,
    pub(crate) lines: Vec<(Weight, String)>,
}

/// Lines kept for consoles within one turn; a console that is flooded loses the rest.
const LINES_MAX: usize = 10_000;

impl Tee {
    pub(crate) fn new(sender: LogSender) -> Self {
        Self { sender, attached: Rc::default() }
    }
    pub(crate) fn attached(&self) -> &Rc<RefCell<Attached>> {
        &self.attached
    }
}

fn weight(level: Level) -> Weight {
    match level {
        Level::Debug(number) => Weight::Debug(number),
        Level::Verbose(number) => Weight::Verbose(number),
        Level::Notice => Weight::Of(LogLevel::Notice),
        Level::Warning => Weight::Of(LogLevel::Warning),
        Level::Error => Weight::Of(LogLevel::Error),
        Level::Dtmf => Weight::Of(LogLevel::Dtmf),
        Level::Security => Weight::Of(LogLevel::Security),
    }
}

impl call::Log for Tee {
    fn enabled(&self, level: Level) -> bool {
        self.attached.borrow().view.shows(weight(level)) || self.sender.enabled(level)
    }
    fn line(&mut self, level: Level, place: &str, text: &str) {
        self.line_of_call(None, level, place, text);
    }
    fn line_of_call(&mut self, call: Option<u32>, level: Level, place: &str, text: &str) {
        let mut attached = self.attached.borrow_mut();
        let weight = weight(level);
        // Dialled digits and security events are for the files that ask for them.
        let for_people = !matches!(level, Level::Dtmf | Level::Security);
        if for_people && attached.view.shows(weight) && attached.lines.len() < LINES_MAX {
            attached.lines.push((weight, store::log::console_line(level, place, text)));
        }
        self.sender.line_of_call(call, level, place, text);
    }
}

/// Recording where there is nowhere to record to: says why.
pub(crate) struct NoRecorder(pub(crate) String);

impl Recorder for NoRecorder {
    fn open(&mut self, _: &str, _: &str, _: bool) -> Result<call::Take, String> {
        Err(self.0.clone())
    }
    fn open_stereo(&mut self, _: &str, _: &str, _: bool) -> Result<call::Take, String> {
        Err(self.0.clone())
    }
    fn rename(&mut self, _: &str, _: &str, _: &str) -> Result<(), String> {
        Err(self.0.clone())
    }
    fn is_free(&mut self, _: &str, _: &str) -> bool {
        false
    }
}

/// Files and environment of the machine the process runs on, and what its name servers say.
pub(crate) struct Machine(pub(crate) Rc<RefCell<crate::names::Names>>);

impl call::Outside for Machine {
    fn environment(&self, name: &str) -> Option<String> {
        // The standard library panics on names that cannot be.
        let possible = !name.is_empty() && !name.contains(['=', '\0']);
        possible.then(|| std::env::var_os(name)).flatten().map(|value| value.to_string_lossy().into_owned())
    }
    fn file_facts(&self, path: &str) -> Option<dialplan::FileFacts> {
        let known = std::fs::metadata(path).ok()?;
        Some(dialplan::FileFacts {
            directory: known.is_dir(),
            file: known.is_file(),
            size: known.len(),
            mode: known.mode() & 0o7777,
            modified: known.mtime(),
            accessed: known.atime(),
            changed: known.ctime(),
        })
    }
    fn file_text(&self, path: &str, most: usize) -> Option<String> {
        // A pipe or a device could keep the loop waiting.
        if !std::fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        std::fs::File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
    fn dns(&self, question: &base::dns::Question) -> call::DnsAnswer {
        self.0.borrow_mut().look_up(question, Clock.now())
    }
}

#[cfg(test)]
mod tests {
    use call::Outside as _;

    use super::*;

    #[test]
    fn regular_files_are_read_up_to_a_bound_and_nothing_else_is() {
        let names = crate::names::Names::start(&Default::default()).unwrap();
        let machine = Machine(Rc::new(RefCell::new(names)));
        let path = std::env::temp_dir().join(format!("strowger-doors-{}", std::process::id()));
        std::fs::write(&path, "line one\nline two\n").unwrap();
        let name = path.to_str().unwrap();
        assert_eq!(machine.file_text(name, 8).as_deref(), Some("line one"));
        assert_eq!(machine.file_text(name, 1 << 16).as_deref(), Some("line one\nline two\n"));
        let facts = machine.file_facts(name).unwrap();
        assert_eq!((facts.file, facts.directory, facts.size), (true, false, 18));
        std::fs::remove_file(&path).unwrap();
        assert!(machine.file_facts(name).is_none() && machine.file_text(name, 8).is_none());
        assert!(machine.file_facts("/dev").unwrap().directory);
        assert!(machine.file_text("/dev/zero", 8).is_none(), "a device");
        assert!(machine.file_text("nul\0byte", 8).is_none());
        for (name, known) in [("PATH", true), ("", false), ("A=B", false), ("STROWGER_NO_SUCH_NAME", false)] {
            assert_eq!(machine.environment(name).is_some(), known, "{name:?}");
        }
    }
}
