//! Certificates of carriers, fetched on threads of their own for calls that wait for them, and kept in a folder.

use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::PageWant;
use driver::sip::CertificateWant;
use io::clock::Clock;
use io::web::fetch_guarded;
use sha1::{Digest as _, Sha1};
use stir::CERTIFICATE_BYTES_MAX;
use stir::cache::{FETCHES_MAX, lifetime};

/// Threads: certificates that are fetched at once. Each waits for a few seconds at most.
const THREADS: usize = 8;
/// Files that are kept; older ones go.
const FILES_MAX: usize = 1_000;
/// Who asks.
const AGENT: &str = concat!("strowger/", env!("CARGO_PKG_VERSION"));
/// How a file begins that says whose certificate follows.
const URL_LINE: &str = "# url=";
const UNTIL_LINE: &str = "# until=";

/// Rings for the loop when something came.
type Ring = Arc<dyn Fn() + Send + Sync>;
/// What came: the certificate and how long it may be kept.
type Came = Result<(Vec<u8>, Duration), String>;

/// The loop's end. Threads begin with the first certificate, and end with this.
pub(crate) struct Certificates {
    ring: Ring,
    jobs: Option<SyncSender<CertificateWant>>,
    done: Receiver<(String, Came)>,
    tell: Sender<(String, Came)>,
}

impl Certificates {
    pub(crate) fn new(ring: Ring) -> Self {
        let (tell, done) = channel();
        Self { ring, jobs: None, done, tell }
    }
    /// Has a certificate fetched. What cannot be is told like anything else.
    pub(crate) fn fetch(&mut self, want: CertificateWant) {
        let jobs = match &self.jobs {
            Some(jobs) => jobs,
            None => self.jobs.insert(self.start()),
        };
        if let Err(TrySendError::Full(want) | TrySendError::Disconnected(want)) = jobs.try_send(want) {
            // The other end is here as well.
            let _ = self.tell.send((want.url, Err("too many are fetched".to_owned())));
            (self.ring)();
        }
    }
    /// What came.
    pub(crate) fn take_done(&self) -> Vec<(String, Came)> {
        self.done.try_iter().collect()
    }
    fn start(&self) -> SyncSender<CertificateWant> {
        let (jobs, inbox) = sync_channel(FETCHES_MAX);
        let inbox = Arc::new(Mutex::new(inbox));
        for _ in 0..THREADS {
            let (inbox, tell, ring) = (inbox.clone(), self.tell.clone(), self.ring.clone());
            // Without any thread the queue has no other end, and every fetch fails.
            let _ = std::thread::Builder::new()
                .name("certificates".into())
                .spawn(move || serve(&inbox, &tell, &*ring));
        }
        jobs
    }
}

/// One thread. Only these threads share the lock, and who holds it has nothing else to do.
fn serve(
    inbox: &Mutex<Receiver<CertificateWant>>,
    tell: &Sender<(String, Came)>,
    ring: &(dyn Fn() + Send + Sync),
) {
    loop {
        let next = inbox.lock().map(|inbox| inbox.recv());
        let Ok(Ok(want)) = next else { return };
        let came = catch_unwind(AssertUnwindSafe(|| fetch(&want)));
        let came = came.unwrap_or_else(|_| Err("a fault of the client".to_owned()));
        if tell.send((want.url, came)).is_err() {
            return;
        }
        ring();
    }
}

fn fetch(want: &CertificateWant) -> Came {
    let CertificateWant { url, fetching } = want;
    let now = Clock.wall().as_secs();
    let file = file_of(&fetching.folder, url);
    if let Some(kept) = fs::read(&file).ok().and_then(|bytes| kept(bytes, url, fetching.keep, now)) {
        return Ok(kept);
    }
    let page = PageWant {
        url: url.clone(),
        headers: vec![
            ("User-Agent".to_owned(), AGENT.to_owned()),
            ("Accept".to_owned(), "application/pem-certificate-chain, */*".to_owned()),
        ],
        body: None,
        // What a server leads to elsewhere is not what was signed (ATIS-1000074 §5.3.1).
        redirects: 0,
        resolve_within: fetching.within,
        connect_within: fetching.within,
        within: fetching.within,
        verify: true,
        proxy: String::new(),
    };
    let page = fetch_guarded(&page, &fetching.allows)?;
    if page.status != 200 {
        return Err(format!("the answer was {}", page.status));
    }
    if page.body.len() > CERTIFICATE_BYTES_MAX {
        return Err(format!("it has more than {CERTIFICATE_BYTES_MAX} bytes"));
    }
    let keep = lifetime(&page.head, fetching.keep);
    // PEM alone can stand behind other lines. Where it cannot be written the memory has it all the same.
    if !keep.is_zero() && page.body.starts_with(b"-----BEGIN") {
        let _ = write(&fetching.folder, &file, url, now + keep.as_secs(), &page.body);
    }
    Ok((page.body, keep))
}

fn file_of(folder: &Path, url: &str) -> PathBuf {
    let name: String = Sha1::digest(url.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    folder.join(format!("{name}.pem"))
}

/// What a file has for a URL, as long as it is good.
fn kept(bytes: Vec<u8>, url: &str, most: Duration, now: u64) -> Option<(Vec<u8>, Duration)> {
    let text = core::str::from_utf8(&bytes).ok().filter(|text| text.len() <= 2 * CERTIFICATE_BYTES_MAX)?;
    let mut lines = text.lines();
    let is_of = lines.next()?.strip_prefix(URL_LINE) == Some(url);
    let until: u64 = lines.next()?.strip_prefix(UNTIL_LINE)?.parse().ok()?;
    let left = Duration::from_secs(until.checked_sub(now)?).min(most);
    let pem = text.get(text.find("-----BEGIN")?..)?.as_bytes().to_vec();
    (is_of && !left.is_zero()).then_some((pem, left))
}

/// Writes a file whole or not at all, and takes old ones away.
fn write(folder: &Path, file: &Path, url: &str, until: u64, pem: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut names: Vec<(std::time::SystemTime, PathBuf)> = fs::read_dir(folder)?
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|ending| ending == "pem"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    if names.len() >= FILES_MAX {
        names.sort();
        for (_, old) in names.iter().take(names.len() + 1 - FILES_MAX) {
            fs::remove_file(old)?;
        }
    }
    let thread = std::thread::current().id();
    let draft = file.with_extension(format!("{thread:?}.new"));
    let mut out = fs::File::create(&draft)?;
    write!(out, "{URL_LINE}{url}\n{UNTIL_LINE}{until}\n")?;
    out.write_all(pem)?;
    fs::rename(&draft, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_good_for_its_url_and_its_time() {
        let folder = std::env::temp_dir().join(format!("strowger-certificates-{}", std::process::id()));
        let url = "https://h/c.pem";
        let file = file_of(&folder, url);
        let pem = b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
        write(&folder, &file, url, 100, pem).unwrap();
        let minute = Duration::from_secs(60);
        for (name, of, now, expected) in [
            ("in time", url, 90, Some(10)),
            ("no longer than the site wants", url, 10, Some(60)),
            ("at its end", url, 100, None),
            ("after it", url, 101, None),
            ("of another", "https://h/d.pem", 90, None),
        ] {
            let found = kept(fs::read(&file).unwrap(), of, minute, now);
            let expected = expected.map(|left| (pem.to_vec(), Duration::from_secs(left)));
            assert_eq!(found, expected, "{name}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
