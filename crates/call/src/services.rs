//! What the shard needs from floor 3, as seams: real ones block on other threads, tests bring their own.

use core::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use base::dns::{Question, Records};
use base::{AudioSink, Clip, Command, FormatId, Instant, Plan, StreamId};

/// Why no media stream could be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaRefused {
    /// Every port of `rtpstart`-`rtpend` is taken.
    NoPorts,
    /// The process has no descriptors left.
    Descriptors,
    /// The address cannot be bound.
    Socket,
    /// There are as many streams as there can be.
    Busy,
}

impl core::fmt::Display for MediaRefused {
    /// What is wrong and what to do about it.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NoPorts => "every RTP port is taken; widen rtpstart and rtpend in rtp.conf",
            Self::Descriptors => {
                "no descriptor is left; raise the limit on open files (ulimit -n, LimitNOFILE= of the systemd unit) or \
                 lower maxcalls in asterisk.conf"
            }
            Self::Socket => {
                "the local address cannot be bound; check the addresses of this host and media_address in pjsip.conf"
            }
            Self::Busy => "there are as many media streams as there can be; lower maxcalls in asterisk.conf",
        })
    }
}

/// The way to the media workers.
pub trait MediaDoor {
    /// Leases a port pair at `local`, binds it and starts a stream with `plan`; returns the id and the RTP port (RTCP is the next).
    fn open(&mut self, local: IpAddr, plan: Plan) -> Result<(StreamId, u16), MediaRefused>;
    /// Starts a stream without a socket, to be tied to another ([`Command::Tie`]).
    fn open_internal(&mut self, plan: Plan) -> Result<StreamId, MediaRefused>;
    /// Starts a stream without ports for a protocol that carries voice itself: its packets, RTP from and to
    /// [`PIPE`](base::PIPE), come by [`feed`](Self::feed), and the shell hands what it sends to the protocol's driver.
    fn open_piped(&mut self, _plan: Plan) -> Result<StreamId, MediaRefused> {
        Err(MediaRefused::Busy)
    }
    /// Hands a packet to such a stream; false when it is lost.
    fn feed(&mut self, _stream: StreamId, _packet: &[u8]) -> bool {
        false
    }
    /// Sends a command; commands arrive in order.
    fn command(&mut self, command: Command);
}

/// A sound somebody wants to hear.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClipWant {
    /// Name as in the dialplan: relative to the sounds directory, without extension, or absolute.
    pub name: String,
    /// Language of the channel (`en`, `en_GB`): tried first, then its base, then none.
    pub language: String,
    /// Format the stream sends.
    pub format: FormatId,
}

/// Answer of a [`Library`].
#[derive(Debug, Clone)]
pub enum ClipAnswer {
    /// Here it is.
    Ready(Arc<Clip>),
    /// It is being read; ask again when [`Core::library_changed`](crate::Core::library_changed) was called.
    Loading,
    /// There is no such sound in any language or format; the text says where was looked.
    Missing(Arc<str>),
}

/// Answer of a [`Library`] about music on hold.
#[derive(Debug, Clone)]
pub enum MusicAnswer {
    /// The class's shared clip and when its first byte was due; `None`: each channel hears it from its beginning on.
    Ready(Arc<Clip>, Option<Instant>),
    /// What a program plays now, and its linear format.
    Live(Arc<base::Broadcast>, FormatId),
    /// It is being read.
    Loading,
    /// No such class, or nothing in it.
    Missing,
}

/// Prompts, music and tones, each coded once per format and shared.
pub trait Library {
    /// A prompt.
    fn clip(&mut self, want: &ClipWant) -> ClipAnswer;
    /// The format of the file of a prompt that is there.
    fn source(&mut self, want: &ClipWant) -> FormatId {
        let _ = want;
        FormatId::SLIN
    }
    /// A file of this name may be another one from here on: it is read again when it is next asked for.
    fn forget(&mut self, name: &str) {
        let _ = name;
    }
    /// Whether a prompt exists in any format; `None` while that is not known yet.
    fn exists(&mut self, name: &str, language: &str) -> Option<bool>;
    /// Music of a class; an empty name is `default`.
    fn music(&mut self, class: &str, format: FormatId) -> MusicAnswer;
    /// A tone by its name in a zone of indications.conf (`busy`, `dial`, `ring`, `congestion`), or a tone script.
    /// `zone` empty is the configured country. `None` when neither is known.
    fn tone(&mut self, zone: &str, tone: &str, format: FormatId) -> Option<Arc<Clip>>;
}

/// What becomes of a recording once it has ended. Its story says so before it ends the recording; whoever writes the file
/// reads it after the last sample.
#[derive(Debug, Default)]
pub struct Afterwards {
    discarded: AtomicBool,
    cut_ms: AtomicU32,
}

impl Afterwards {
    /// What was recorded is not kept; of a file that was appended to, what was there before is.
    pub fn discard(&self) {
        self.discarded.store(true, Ordering::Relaxed);
    }
    /// The last `ms` are cut off.
    pub fn cut(&self, ms: u32) {
        self.cut_ms.store(ms, Ordering::Relaxed);
    }
    /// Whether it is not kept.
    pub fn is_discarded(&self) -> bool {
        self.discarded.load(Ordering::Relaxed)
    }
    /// Milliseconds to cut off.
    pub fn cut_ms(&self) -> u32 {
        self.cut_ms.load(Ordering::Relaxed)
    }
}

/// How a recording fares. Its sink and whoever writes the file say so, its owner looks now and then.
#[derive(Debug, Default)]
pub struct Progress {
    lost: AtomicU64,
    /// Samples lost since one was taken last.
    lost_in_a_row: AtomicU64,
    failure: OnceLock<String>,
    complete: AtomicBool,
}

impl Progress {
    /// Nothing will be written any more.
    pub fn end(&self) {
        self.complete.store(true, Ordering::Release);
    }
    /// Whether the file is as it will stay.
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }
    /// What came was taken but for so many samples.
    pub fn took_but(&self, lost: usize) {
        if lost > 0 {
            // One writer: the sink.
            self.lost.fetch_add(lost as u64, Ordering::Relaxed);
            self.lost_in_a_row.fetch_add(lost as u64, Ordering::Relaxed);
        } else if self.lost_in_a_row.load(Ordering::Relaxed) > 0 {
            self.lost_in_a_row.store(0, Ordering::Relaxed);
        }
    }
    /// Samples that found no room, because the disk is slow.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
    /// Those of them since a sample was taken last.
    pub fn lost_in_a_row(&self) -> u64 {
        self.lost_in_a_row.load(Ordering::Relaxed)
    }
    /// The file cannot be written any more; the first reason counts.
    pub fn fail(&self, why: String) {
        let _ = self.failure.set(why);
    }
    /// Why the file cannot be written any more.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}

/// A recording that was opened.
pub struct Take {
    /// Where the samples go.
    pub sink: Box<dyn AudioSink>,
    /// The linear format they must have.
    pub format: FormatId,
    /// What becomes of it.
    pub afterwards: Arc<Afterwards>,
    /// How it fares.
    pub progress: Arc<Progress>,
}

/// What a [`Recorder`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecorderState {
    /// Recordings that are being written.
    pub running: usize,
    /// Milliseconds of sound that were lost because a disk is slow.
    pub lost_ms: u64,
    /// Recordings that ended because they could not be written.
    pub failed: u64,
}

/// Recordings. The file is complete when the sink has been dropped and the writer has caught up.
pub trait Recorder {
    /// Opens `path` (absolute, or relative to the sounds directory) with the file format of `extension`.
    /// `append` goes on after what is there.
    fn open(&mut self, path: &str, extension: &str, append: bool) -> Result<Take, String>;
    /// As [`Self::open`], for linear samples of two channels in turn.
    fn open_stereo(&mut self, path: &str, extension: &str, append: bool) -> Result<Take, String>;
    /// Gives a file of this extension another name, whether it is being written or not.
    fn rename(&mut self, path: &str, extension: &str, to: &str) -> Result<(), String>;
    /// Takes a file of this extension away that is needed no more.
    fn remove(&mut self, path: &str, extension: &str) {
        let _ = (path, extension);
    }
    /// What is being written, and what went wrong since the start.
    fn state(&self) -> RecorderState {
        RecorderState::default()
    }
    /// Whether files of this extension can be written.
    fn knows(&self, extension: &str) -> bool {
        let _ = extension;
        true
    }
    /// Names (below `folder`, without extension) and extensions of the recordings in a folder and below it, in order; at
    /// most so many.
    fn stored(&mut self, folder: &str, most: usize) -> Vec<(String, String)> {
        let _ = (folder, most);
        Vec::new()
    }
    /// Extensions under which there is a file of this name.
    fn extensions(&mut self, path: &str) -> Vec<String> {
        let _ = path;
        Vec::new()
    }
    /// Copies a file of this extension, at once or soon: a long one takes its time.
    fn copy(&mut self, path: &str, extension: &str, to: &str) -> Result<(), String> {
        let _ = (path, extension, to);
        Err("recordings are not copied here".to_owned())
    }
    /// Whether there is no file of this name yet, for numbered recordings (`%d`).
    fn is_free(&mut self, path: &str, extension: &str) -> bool;
}

/// The `astdb`: families, keys, values.
pub trait Database {
    /// A value.
    fn get(&self, family: &str, key: &str) -> Option<String>;
    /// Sets a value; `false` when it cannot be kept.
    fn put(&mut self, family: &str, key: &str, value: &str) -> bool;
    /// Deletes one; whether it was there.
    fn delete(&mut self, family: &str, key: &str) -> bool;
    /// Deletes a family, or what lies under `prefix` in it; how many.
    fn delete_tree(&mut self, family: &str, prefix: &str) -> usize;
    /// Full keys (`/family/key`) and values under a prefix, in order.
    fn list(&self, prefix: &str) -> Vec<(String, String)>;
    /// How much was written so far, for [`Database::is_saved`].
    fn mark(&self) -> u64 {
        0
    }
    /// Whether what was written before this mark is on the disk. When not,
    /// [`Core::database_saved`](crate::Core::database_saved) is called as soon as more of it is.
    fn is_saved(&mut self, mark: u64) -> bool {
        let _ = mark;
        true
    }
    /// What keeps the values from where they are kept, once each, with a remedy.
    fn trouble(&mut self) -> Option<String> {
        None
    }
}

/// Importance of a log line, in the words of logger.conf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// For developers, with its number.
    Debug(u8),
    /// What happens, with its number.
    Verbose(u8),
    /// Worth knowing.
    Notice,
    /// Something is wrong, the system goes on.
    Warning,
    /// Something failed.
    Error,
    /// A digit.
    Dtmf,
    /// Who tried to get in.
    Security,
}

/// Where log lines go. Never blocks.
pub trait Log {
    /// Whether anybody would read a line of this level.
    fn enabled(&self, level: Level) -> bool;
    /// Writes a line; `place` is `app_dial`, `extensions.conf:12` and the like.
    fn line(&mut self, level: Level, place: &str, text: &str);
    /// The same about a call with this number.
    fn line_of_call(&mut self, call: Option<u32>, level: Level, place: &str, text: &str) {
        let _ = call;
        self.line(level, place, text);
    }
}

/// Wall-clock time; only a stamp, never a timer.
pub trait WallClock {
    /// Microseconds since the Unix epoch.
    fn now_micros(&self) -> i64;
    /// The offset in force in `zone` (`Europe/Berlin`; empty: the system's own) at `at` seconds since the epoch.
    fn offset(&self, at: i64, zone: &str) -> dialplan::Offset {
        let _ = (at, zone);
        dialplan::Offset { abbreviation: "UTC".to_owned(), ..dialplan::Offset::default() }
    }
}

/// Answer of an [`Outside`] to a question for the DNS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsAnswer {
    /// These are all it has; none when there is no such name.
    Ready(Records),
    /// It has been asked for; ask again when [`Core::outside_changed`](crate::Core::outside_changed) was called.
    Loading,
    /// No server gave a usable answer.
    Failed,
}

/// Files, names and environment of this machine, as far as dialplans may see them. Nothing here waits for long: a file is on a
/// disk of this machine, or its absence is the answer; a name is asked for elsewhere. Whether a call may ask is the asker's business.
pub trait Outside {
    /// A variable of the process's environment.
    fn environment(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }
    /// What is known of a file or folder.
    fn file_facts(&self, path: &str) -> Option<dialplan::FileFacts> {
        let _ = path;
        None
    }
    /// The first `most` bytes of a regular file.
    fn file_text(&self, path: &str, most: usize) -> Option<String> {
        let _ = (path, most);
        None
    }
    /// What the DNS says; begins to ask when that is not known. Never waits.
    fn dns(&self, question: &Question) -> DnsAnswer {
        let _ = question;
        DnsAnswer::Failed
    }
}

/// An outside of which nothing is seen.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOutside;

impl Outside for NoOutside {}

/// The directories of asterisk.conf that dialplans read (`ASTVARLIBDIR` …), name without `AST` and `DIR`, lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directories(pub std::collections::BTreeMap<String, String>);

/// All of them.
pub struct Services {
    /// Media workers.
    pub media: Box<dyn MediaDoor>,
    /// Sounds.
    pub library: Box<dyn Library>,
    /// Recordings.
    pub recorder: Box<dyn Recorder>,
    /// astdb.
    pub db: Box<dyn Database>,
    /// Log.
    pub log: Box<dyn Log>,
    /// Wall clock.
    pub wall: Box<dyn WallClock>,
    /// Files and environment.
    pub outside: Box<dyn Outside>,
    /// Programs and servers that calls talk to.
    pub links: Box<dyn crate::Links>,
    /// Mailboxes.
    pub post: Box<dyn crate::voicemail::PostOffice>,
}
