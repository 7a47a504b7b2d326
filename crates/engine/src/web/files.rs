//! Files that HTTP serves, read by a thread of its own: a disk that takes its time delays those who wait for files, and no
//! call.
//!
//! A file is opened beneath its folder by the kernel's own rule: no name and no link leads out of it.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};

use control::http::{FILES_MAX, FileFolder, FileWish, Piece, Version};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Below `astdatadir`.
const FOLDER: &str = "static-http";
/// Below `astspooldir`.
const RECORDINGS: &str = "recording";

/// Rings for the loop when something was read.
type Ring = Arc<dyn Fn() + Send + Sync>;

struct Job {
    session: u64,
    what: What,
}

enum What {
    Open { folder: PathBuf, name: PathBuf },
    Read(File),
}

struct Done {
    session: u64,
    piece: Piece,
    file: Option<File>,
}

/// The loop's end. The thread begins with the first file, and ends with this.
pub(crate) struct Files {
    ring: Ring,
    jobs: Option<SyncSender<Job>>,
    done: Receiver<Done>,
    tell: Sender<Done>,
    /// Files whose next piece nobody reads at this moment; none once their connections are gone.
    open: HashMap<u64, Option<File>>,
}

impl Files {
    pub(crate) fn new(ring: Ring) -> Self {
        let (tell, done) = channel();
        Self { ring, jobs: None, done, tell, open: HashMap::new() }
    }
    /// Has a wish fulfilled; the folders are below `astdatadir` and `astspooldir`.
    pub(crate) fn ask(&mut self, (astdatadir, astspooldir): (&Path, &Path), wish: FileWish) {
        let (session, what) = match wish {
            FileWish::Open { session, folder, name } => {
                let folder = match folder {
                    FileFolder::Static => astdatadir.join(FOLDER),
                    FileFolder::Recordings => astspooldir.join(RECORDINGS),
                };
                (session, Some(What::Open { folder, name }))
            }
            FileWish::More { session } => {
                (session, self.open.get_mut(&session).and_then(Option::take).map(What::Read))
            }
        };
        let is_begin = matches!(what, Some(What::Open { .. }));
        self.open.insert(session, None);
        let jobs = match &self.jobs {
            Some(jobs) => jobs,
            None => self.jobs.insert(start(&self.tell, &self.ring)),
        };
        let is_asked = match what.map(|what| jobs.try_send(Job { session, what })) {
            Some(Ok(())) => true,
            Some(Err(TrySendError::Full(_) | TrySendError::Disconnected(_))) | None => false,
        };
        if !is_asked {
            let piece = if is_begin { Piece::Busy } else { Piece::Broken };
            // The other end is here as well.
            let _ = self.tell.send(Done { session, piece, file: None });
            (self.ring)();
        }
    }
    /// What was read of files that somebody still waits for.
    pub(crate) fn take_done(&mut self) -> Vec<(u64, Piece)> {
        let mut pieces = Vec::new();
        for Done { session, piece, file } in self.done.try_iter() {
            if let Some(open) = self.open.get_mut(&session) {
                *open = file;
                pieces.push((session, piece));
            }
        }
        pieces
    }
    /// A connection is gone, or has all of its file.
    pub(crate) fn forget(&mut self, session: u64) {
        self.open.remove(&session);
    }
}

fn start(tell: &Sender<Done>, ring: &Ring) -> SyncSender<Job> {
    // Each connection waits for one job at a time; those that are gone leave theirs behind.
    let (jobs, inbox) = sync_channel(2 * FILES_MAX);
    let (tell, ring) = (tell.clone(), ring.clone());
    // Without the thread the queue has no other end, and every job fails.
    let _ = std::thread::Builder::new().name("pages".into()).spawn(move || serve(&inbox, &tell, &*ring));
    jobs
}

fn serve(inbox: &Receiver<Job>, tell: &Sender<Done>, ring: &(dyn Fn() + Send + Sync)) {
    while let Ok(Job { session, what }) = inbox.recv() {
        let (piece, file) = match what {
            What::Open { folder, name } => match begin(&folder, &name) {
                Some((version, bytes, file)) => (Piece::Begin(version, bytes), Some(file)),
                None => (Piece::Missing, None),
            },
            What::Read(mut file) => match read(&mut file) {
                Some(bytes) if !bytes.is_empty() => (Piece::More(bytes), Some(file)),
                Some(_) | None => (Piece::Broken, None),
            },
        };
        if tell.send(Done { session, piece, file }).is_err() {
            return;
        }
        ring();
    }
}

/// Opens a file of the folder and reads its beginning. What is no file with bytes in it, such as a pipe, is none.
fn begin(folder: &Path, name: &Path) -> Option<(Version, Vec<u8>, File)> {
    // The folder itself may be a link to wherever the site keeps it.
    let folder =
        openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    // A pipe without a writer would keep the thread for ever.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let rule = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut file = File::from(openat2(&folder, name, flags, Mode::empty(), rule).ok()?);
    let data = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let bytes = read(&mut file)?;
    Some((Version { length: data.len(), changed: (data.mtime(), data.mtime_nsec()) }, bytes, file))
}

fn read(file: &mut File) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(PIECE_BYTES as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A folder of a test with `static-http` in it, gone with this.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let place = std::env::temp_dir().join(format!("strowger-files-{name}-{}", std::process::id()));
            std::fs::create_dir_all(place.join(FOLDER).join("sub")).unwrap();
            Self(place)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn files_are_read_beneath_their_folder_and_nowhere_else() {
        use std::os::unix::fs::symlink;
        let place = Place::new("beneath");
        let folder = place.0.join(FOLDER);
        std::fs::write(folder.join("sub/a"), "inside").unwrap();
        std::fs::write(place.0.join("secret"), "outside").unwrap();
        std::fs::write(folder.join("empty"), "").unwrap();
        symlink("sub/a", folder.join("link")).unwrap();
        symlink("../secret", folder.join("up")).unwrap();
        symlink(place.0.join("secret"), folder.join("absolute")).unwrap();
        symlink("../..", folder.join("sub/top")).unwrap();
        symlink("/proc/self/environ", folder.join("environ")).unwrap();
        let pipe = rustix::fs::mknodat(
            CWD,
            folder.join("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        );
        pipe.unwrap();
        for (name, expected) in [
            ("sub/a", Some("inside")),
            ("link", Some("inside")),
            ("empty", Some("")),
            ("sub/../sub/a", Some("inside")),
            ("sub", None),
            ("nothing", None),
            ("up", None),
            ("absolute", None),
            ("sub/top/secret", None),
            ("environ", None),
            ("pipe", None),
            ("../secret", None),
            ("/etc/hostname", None),
        ] {
            let found = begin(&folder, Path::new(name)).map(|(_, bytes, _)| bytes);
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{name}");
        }
        assert!(begin(&place.0.join("none"), Path::new("a")).is_none());
    }

    #[test]
    fn a_long_file_comes_in_pieces_to_whoever_still_waits() {
        let place = Place::new("pieces");
        let whole: Vec<u8> = (0..PIECE_BYTES * 2 + 7).map(|n| n as u8).collect();
        std::fs::write(place.0.join(FOLDER).join("a"), &whole).unwrap();
        let (rung, rings) = channel();
        let rung = Mutex::new(rung);
        let mut files = Files::new(Arc::new(move || rung.lock().unwrap().send(()).unwrap()));
        let next = |files: &mut Files, wish| {
            files.ask((&place.0, &place.0), wish);
            rings.recv().unwrap();
            files.take_done()
        };
        let open = |session| FileWish::Open { session, folder: FileFolder::Static, name: "a".into() };
        let (first, rest) = whole.split_at(PIECE_BYTES);
        let (second, third) = rest.split_at(PIECE_BYTES);
        let begun = next(&mut files, open(1));
        let [(1, Piece::Begin(version, bytes))] = &begun[..] else { panic!("{begun:?}") };
        assert_eq!((version.length, &bytes[..]), (whole.len() as u64, first));
        let data = std::fs::metadata(place.0.join(FOLDER).join("a")).unwrap();
        assert_eq!(version.changed, (data.mtime(), data.mtime_nsec()));
        for piece in [Piece::More(second.to_vec()), Piece::More(third.to_vec()), Piece::Broken] {
            assert_eq!(next(&mut files, FileWish::More { session: 1 }), [(1, piece)]);
        }
        assert_eq!(
            next(&mut files, FileWish::More { session: 2 }),
            [(2, Piece::Broken)],
            "it was never open"
        );
        files.forget(1);
        files.forget(2);
        files.ask((&place.0, &place.0), open(3));
        files.forget(3);
        rings.recv().unwrap();
        assert_eq!(files.take_done(), []);
        assert!(files.open.is_empty());
    }
}
