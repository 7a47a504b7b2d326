//! Files of a configuration folder as a source for the reader, and the files nobody reads.

use conf::{Findings, Level, Place, ReadError, Source, glob_matches};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Largest file or command output read, in bytes; the largest configuration file seen has 2 MB.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A folder on disk. Relative names are names in it.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    /// It is only looked at, perhaps as a copy of another.
    copy: Option<Copied>,
}

impl Folder {
    /// A folder, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), copy: None }
    }
    /// A folder that is looked at: what lies elsewhere on the machine that it is of is looked for in the copy first.
    pub fn of_copy(path: impl Into<PathBuf>, copy: Copied) -> Self {
        Self { path: path.into(), copy: Some(copy) }
    }
    fn place(&self, path: &str) -> PathBuf {
        match &self.copy {
            Some(copy) => copy.find(&self.path.join(path)),
            None => self.path.join(path),
        }
    }
}

/// A folder that is looked at on behalf of a machine where it lies in another place: what absolute paths lead to.
#[derive(Debug, Clone)]
pub struct Copied {
    /// Where the folder is.
    folder: PathBuf,
    /// Where the machine has it.
    home: PathBuf,
    /// Where the machine's root is, if the folder lies below a copy of all of it.
    root: Option<PathBuf>,
    /// `#exec` may run commands.
    runs: bool,
}

impl Copied {
    /// A copy in `folder` of what a machine has in `home`.
    pub fn new(folder: &Path, home: &Path, runs: bool) -> Self {
        let below = home.strip_prefix("/").unwrap_or(home);
        let whole = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let above = whole.ends_with(below).then(|| whole.ancestors().nth(below.components().count()));
        // The root of this machine is no copy.
        let root = above.flatten().filter(|root| root.parent().is_some()).map(Path::to_owned);
        Self { folder: folder.to_owned(), home: home.to_owned(), root, runs }
    }
    /// Where a path of the machine is here: in the copy of the folder, below the copy of the root if it is there, or where it
    /// says.
    pub fn find(&self, path: &Path) -> PathBuf {
        if let Ok(inside) = path.strip_prefix(&self.home) {
            return self.folder.join(inside);
        }
        let below = self.root.as_ref().zip(path.strip_prefix("/").ok());
        let copied = below.map(|(root, inside)| root.join(inside)).filter(|copied| copied.exists());
        copied.unwrap_or_else(|| path.to_owned())
    }
}

fn bounded(reader: impl Read) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    reader
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| ReadError::Failed(error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(ReadError::Failed(format!("larger than {} MB", FILE_BYTES_MAX >> 20)));
    }
    Ok(bytes)
}

impl Source for Folder {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let path = self.place(path);
        let file = std::fs::File::open(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => ReadError::NotFound,
            _ => ReadError::Failed(error.to_string()),
        })?;
        if file.metadata().is_ok_and(|data| data.is_dir()) {
            return Err(ReadError::Failed("is a folder".into()));
        }
        bounded(file)
    }

    fn glob(&self, pattern: &str) -> Vec<String> {
        let full = self.place(pattern).display().to_string();
        let mut found = Vec::new();
        // Only folders below the last one without a wildcard can match.
        let plain: PathBuf =
            Path::new(&full).iter().take_while(|part| !conf::is_glob(&part.to_string_lossy())).collect();
        let depth = full.matches('/').count();
        walk(&plain, depth.saturating_sub(plain.display().to_string().matches('/').count()), &mut |path| {
            let text = path.display().to_string();
            if glob_matches(&full, &text) {
                // A name that this folder reads: of a relative folder that is one inside it.
                let inside = path.strip_prefix(&self.path).ok().filter(|_| self.path.is_relative());
                found.push(inside.map_or(text, |inside| inside.display().to_string()));
            }
        });
        found.sort();
        found
    }

    fn full_name(&self, path: &str) -> String {
        self.place(path).display().to_string()
    }

    fn exec(&self, command: &str) -> Result<Vec<u8>, ReadError> {
        if self.copy.as_ref().is_some_and(|copy| !copy.runs) {
            return Err(ReadError::NotRun);
        }
        let failed = |error: std::io::Error| ReadError::Failed(error.to_string());
        let mut child = Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(&self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let printed = child.stdout.take().map_or(Ok(Vec::new()), bounded);
        if printed.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().map_err(failed)?;
        match printed {
            Ok(bytes) if status.success() => Ok(bytes),
            Ok(_) => Err(ReadError::Failed(status.to_string())),
            Err(error) => Err(error),
        }
    }
}

fn walk(folder: &Path, depth: usize, found: &mut dyn FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        found(&path);
        if depth > 1 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&path, depth - 1, found);
        }
    }
}

/// Files that Asterisk reads and Strowger does not read yet: what happens instead, and whether a site misses it.
#[rustfmt::skip]
const UNREAD: &[(&str, Level, &str)] = &[
    ("chan_dahdi.conf", Level::Warning, "telephony cards are not served"),
    ("unistim.conf", Level::Note, "Unistim is not built in"),
    ("skinny.conf", Level::Note, "Skinny is not built in"),
    ("udptl.conf", Level::Note, "T.38 uses the ports of rtp.conf and what pjsip.conf says of it"),
    ("res_fax.conf", Level::Note, "fax is not built in"),
    ("cli.conf", Level::Note, "no command runs at start"),
    ("extensions.ael", Level::Warning, "AEL is not compiled; its contexts do not exist"),
    ("extensions.lua", Level::Warning, "Lua is not run; its contexts do not exist"),
    ("users.conf", Level::Warning, "the users it makes do not exist"),
    ("dundi.conf", Level::Note, "DUNDi is not built in"),
    ("phoneprov.conf", Level::Note, "phones are not provisioned"),
    ("res_ldap.conf", Level::Note, "no directory is asked"),
    ("xmpp.conf", Level::Note, "XMPP is not built in"),
    ("websocket_client.conf", Level::Note, "WebSockets are taken, and none is opened"),
    ("ccss.conf", Level::Note, "call completion is not built in"),
    ("calendar.conf", Level::Note, "calendars are not read"),
    ("aeap.conf", Level::Note, "no external application speaks AEAP"),
    ("alarmreceiver.conf", Level::Note, "alarm panels are not answered"),
    ("alsa.conf", Level::Note, "there is no telephone on the sound card"),
    ("cdr_beanstalkd.conf", Level::Note, "records go to no queue of Beanstalk"),
    ("cdr_syslog.conf", Level::Note, "records do not go to syslog"),
    ("cdr_tds.conf", Level::Note, "records go to no database by TDS; cdr_adaptive_odbc.conf reaches the same by ODBC"),
    ("cel_beanstalkd.conf", Level::Note, "events go to no queue of Beanstalk"),
    ("cel_tds.conf", Level::Note, "events go to no database by TDS; cel_odbc.conf reaches the same by ODBC"),
    ("chan_mobile.conf", Level::Note, "there are no mobile phones by Bluetooth"),
    ("console.conf", Level::Note, "there is no telephone on the sound card"),
    ("h323.conf", Level::Note, "H.323 is not spoken"),
    ("jabber.conf", Level::Note, "XMPP is not spoken"),
    ("mgcp.conf", Level::Note, "MGCP is not spoken"),
    ("misdn.conf", Level::Note, "telephony cards are not served"),
    ("motif.conf", Level::Note, "XMPP is not spoken"),
    ("ooh323.conf", Level::Note, "H.323 is not spoken"),
    ("osp.conf", Level::Note, "OSP is not spoken"),
    ("oss.conf", Level::Note, "there is no telephone on the sound card"),
    ("phone.conf", Level::Note, "telephony cards are not served"),
    ("res_corosync.conf", Level::Note, "states are not shared by Corosync"),
    ("res_snmp.conf", Level::Note, "SNMP is not spoken; prometheus.conf serves figures"),
    ("sla.conf", Level::Note, "shared lines are not served"),
    ("vpb.conf", Level::Note, "telephony cards are not served"),
    ("geolocation.conf", Level::Note, "locations are not read"),
];

/// Names the files of a folder that exist, say something, and are not read yet.
pub(crate) fn name_unread(source: &dyn Source, folder: &Path, findings: &mut Findings) {
    for &(name, level, what) in UNREAD {
        let Ok(bytes) = source.read(name) else { continue };
        if !says_something(&bytes) {
            continue;
        }
        let place = Place::new(folder.join(name).display().to_string(), 0);
        findings.add(level, &place, format!("the file is not read yet: {what}"), "");
    }
}

/// Whether a file has a line that is neither blank, nor a comment, nor a header.
fn says_something(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|&byte| byte == b'\n').map(|line| line.trim_ascii());
    lines.any(|line| !matches!(line.first(), None | Some(b';' | b'[')) && !line.starts_with(b"//"))
}
