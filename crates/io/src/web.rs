//! Pages of web servers, asked for on threads of their own: whoever wants one waits for nobody.
#![forbid(unsafe_code)]

mod guarded;

use std::collections::VecDeque;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender, sync_channel};

use base::PageWant;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use ureq::http;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::wake::{Receiver, Sender, queue};

pub use guarded::{Allows, fetch_guarded};

/// Threads, and so pages that are fetched at once: each may wait for minutes, and costs little while it does.
pub const THREADS_MAX: usize = 32;
/// Pages that wait for a thread.
pub const WAITING_MAX: usize = 256;
/// Most of a page that is kept: what a variable of a dialplan holds.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// Largest head of an answer.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Whom the system trusts.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Status of the answer.
    pub status: u16,
    /// Head of the answer, with the empty line after it.
    pub head: String,
    /// Its body, up to [`BODY_BYTES_MAX`].
    pub body: Vec<u8>,
}

/// A page, or why there is none.
pub type Report = Result<Page, String>;

/// Fetches pages. Threads come with the work and stay for more; each has at most one page to fetch, and whoever owns this
/// hands out the next.
pub struct Fetcher {
    threads: Vec<Thread>,
    waiting: VecDeque<(u64, PageWant)>,
    /// From which thread, of which page, what.
    reports: Receiver<(usize, u64, Report)>,
    sender: Sender<(usize, u64, Report)>,
    next: u64,
}

struct Thread {
    pages: SyncSender<(u64, PageWant)>,
    is_busy: bool,
}

impl Fetcher {
    /// One without work, and so without threads.
    pub fn start() -> std::io::Result<Self> {
        let (sender, reports) = queue(THREADS_MAX)?;
        Ok(Self { threads: Vec::new(), waiting: VecDeque::new(), reports, sender, next: 0 })
    }
    /// Asks for a page; the number that its report will have, or why it is not asked for.
    pub fn fetch(&mut self, want: PageWant) -> Result<u64, String> {
        if self.waiting.len() >= WAITING_MAX {
            return Err(format!("{WAITING_MAX} pages wait already"));
        }
        if self.threads.iter().all(|thread| thread.is_busy) && self.threads.len() < THREADS_MAX {
            let started = self.add_thread();
            if self.threads.is_empty() {
                started.map_err(|why| format!("no thread can be started: {why}"))?;
            }
        }
        self.next += 1;
        self.waiting.push_back((self.next, want));
        self.hand_out();
        Ok(self.next)
    }
    /// A page is not wanted any more; one that is being fetched is reported all the same.
    pub fn forget(&mut self, number: u64) {
        self.waiting.retain(|(waiting, _)| *waiting != number);
    }
    /// What came, by number.
    pub fn take_in(&mut self) -> Vec<(u64, Report)> {
        let Self { threads, reports, .. } = self;
        let mut came = Vec::new();
        reports.drain(|(thread, number, report)| {
            if let Some(thread) = threads.get_mut(thread) {
                thread.is_busy = false;
            }
            came.push((number, report));
        });
        self.hand_out();
        came
    }
    fn hand_out(&mut self) {
        let Self { threads, waiting, .. } = self;
        for thread in threads.iter_mut().filter(|thread| !thread.is_busy) {
            let Some(next) = waiting.pop_front() else { return };
            // Who is not busy has room for one.
            thread.is_busy = true;
            let _ = thread.pages.try_send(next);
        }
    }
    fn add_thread(&mut self) -> std::io::Result<()> {
        let (pages, inbox) = sync_channel(1);
        let (number, sender) = (self.threads.len(), self.sender.clone());
        std::thread::Builder::new().name("web".to_owned()).spawn(move || serve(number, &inbox, &sender))?;
        self.threads.push(Thread { pages, is_busy: false });
        Ok(())
    }
}

impl AsFd for Fetcher {
    /// Readable when something came.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }
}

/// A thread: until nobody owns it any more.
fn serve(thread: usize, inbox: &mpsc::Receiver<(u64, PageWant)>, reports: &Sender<(usize, u64, Report)>) {
    let mut agents = Agents::default();
    while let Ok((number, want)) = inbox.recv() {
        let fetched = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| page(&mut agents, &want)));
        let report = fetched.unwrap_or_else(|_| Err("a fault of the client".to_owned()));
        if reports.send_blocking((thread, number, report)).is_err() {
            return;
        }
    }
}

/// For a thread of one's own: fetches a page and waits for it. Connections are kept for the next.
#[derive(Default)]
pub struct Client(Agents);

impl Client {
    /// The page, or why there is none.
    pub fn fetch(&mut self, want: &PageWant) -> Report {
        page(&mut self.0, want)
    }
}

/// Clients that keep their connections: to hosts that prove who they are, and to others.
#[derive(Default)]
struct Agents {
    proving: Option<ureq::Agent>,
    other: Option<ureq::Agent>,
}

impl Agents {
    fn of(&mut self, verify: bool) -> &ureq::Agent {
        let slot = if verify { &mut self.proving } else { &mut self.other };
        slot.get_or_insert_with(|| agent(verify))
    }
}

fn agent(verify: bool) -> ureq::Agent {
    settings(verify).build().new_agent()
}

/// What every client of ours wants.
fn settings(verify: bool) -> ureq::config::ConfigBuilder<ureq::typestate::AgentScope> {
    let file = std::fs::read(SYSTEM_AUTHORITIES).unwrap_or_default();
    let authorities = CertificateDer::pem_slice_iter(&file).filter_map(Result::ok);
    let authorities: Vec<_> =
        authorities.map(|authority| Certificate::from_der(&authority).to_owned()).collect();
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&authorities))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .disable_verification(!verify)
        .build();
    ureq::Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects_will_error(false)
        .max_response_header_size(HEAD_BYTES_MAX)
        // What the environment says of proxies is for people at a shell.
        .proxy(None)
}

fn page(agents: &mut Agents, want: &PageWant) -> Report {
    page_by(agents.of(want.verify), want)
}

fn page_by(agent: &ureq::Agent, want: &PageWant) -> Report {
    let method = if want.body.is_some() { http::Method::POST } else { http::Method::GET };
    let mut head = http::Request::builder().method(method).uri(&want.url);
    for (name, value) in &want.headers {
        head = head.header(name, value);
    }
    let why = |error: http::Error| error.to_string();
    match &want.body {
        None => run(agent, want, head.body(()).map_err(why)?),
        Some(body) => run(agent, want, head.body(body.clone()).map_err(why)?),
    }
}

fn run<S: ureq::AsSendBody>(agent: &ureq::Agent, want: &PageWant, request: http::Request<S>) -> Report {
    let proxy = match want.proxy.as_str() {
        "" => None,
        url => Some(ureq::Proxy::new(url).map_err(|why| format!("the proxy cannot be used: {why}"))?),
    };
    let request = agent
        .configure_request(request)
        .timeout_global(Some(want.within))
        .timeout_resolve(Some(want.resolve_within))
        .timeout_connect(Some(want.connect_within))
        .max_redirects(want.redirects)
        .proxy(proxy)
        .build();
    let answer = agent.run(request).map_err(|why| why.to_string())?;
    let status = answer.status();
    let mut head =
        format!("{:?} {} {}\r\n", answer.version(), status.as_u16(), status.canonical_reason().unwrap_or(""));
    for (name, value) in answer.headers() {
        head.push_str(&format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes())));
    }
    head.push_str("\r\n");
    let mut body = Vec::new();
    let most = u64::try_from(BODY_BYTES_MAX).unwrap_or(u64::MAX);
    let read = answer.into_body().into_reader().take(most).read_to_end(&mut body);
    read.map_err(|why| why.to_string())?;
    Ok(Page { status: status.as_u16(), head, body })
}

#[cfg(test)]
mod tests;
