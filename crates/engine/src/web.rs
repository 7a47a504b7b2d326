//! The listeners of HTTP, where `http.conf` wants it.

mod files;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use control::ari::Ari;
use control::http::{FileWish, Http};
use control::site::Site;
use control::socket::Output;
use io::net::{FlowKind, ListenerId, Net};
use io::wake::Wake;
use store::Snapshot;

use crate::secure::{Door, Shut, Wires};
use files::Files;

/// How long a connection may take for a piece of its file before it is given up.
pub(crate) const PIECE_WITHIN: Duration = Duration::from_secs(30);

pub(crate) struct Web {
    pub(crate) http: Http,
    pub(crate) ari: Ari,
    /// What a reload had to say to programs.
    pending: Vec<Output>,
    pub(crate) files: Files,
    plain: Door,
    secure: Door,
}

impl Web {
    /// Rings `wake` when a file was read.
    pub(crate) fn new(site: &Rc<Site>, wake: &Arc<Wake>) -> Self {
        let ring = Arc::clone(wake);
        let files = Files::new(Arc::new(move || ring.ring()));
        let (http, ari) = (Http::new(site.clone()), Ari::new(site.clone()));
        Self { http, ari, pending: Vec::new(), files, plain: Door::default(), secure: Door::default() }
    }
    /// Has files read that connections wait for; which connections those are.
    pub(crate) fn ask_files(&mut self, snapshot: &Snapshot) -> Vec<u64> {
        let mut waiting = Vec::new();
        for wish in self.http.take_wishes() {
            let (FileWish::Open { session, .. } | FileWish::More { session }) = wish;
            waiting.push(session);
            let folders = &snapshot.asterisk.directories;
            self.files.ask((&folders.astdatadir, &folders.astspooldir), wish);
        }
        waiting
    }
    /// What was read goes to those who wait for it.
    pub(crate) fn take_files(&mut self, out: &mut Vec<Output>) {
        let begin = out.len();
        for (session, piece) in self.files.take_done() {
            self.http.file(session, piece, out);
        }
        for output in out.iter().skip(begin) {
            if let Output::Close(session) = output {
                self.files.forget(*session);
            }
        }
    }
    /// Requests for the REST interface are answered at once; connections that wait for no other request are those.
    pub(crate) fn answer_programs(&mut self, now: Instant, out: &mut Vec<Output>) -> Vec<u64> {
        let mut events = Vec::new();
        for request in self.http.take_ari() {
            let client = request.connection;
            self.ari.request(request, &mut self.http, now, out);
            events.extend(Some(client).filter(|client| self.ari.has(*client)));
        }
        events
    }
    /// What a reload had to say to programs.
    pub(crate) fn flush(&mut self, out: &mut Vec<Output>) {
        out.append(&mut self.pending);
    }
    /// A connection is gone.
    pub(crate) fn closed(&mut self, client: u64) {
        self.http.closed(client);
        if self.ari.has(client) {
            self.ari.closed(client);
        }
        self.files.forget(client);
    }
    /// Somebody has connected.
    pub(crate) fn open(&mut self, client: u64, peer: SocketAddr, at: ListenerId, out: &mut Vec<Output>) {
        self.http.open(client, peer, self.secure.is(at), out);
    }
    /// Listens when something is served; not where it did before, if that changed.
    pub(crate) fn listen(&mut self, net: &mut Net, snapshot: &Snapshot, wires: &Wires) -> Vec<Shut> {
        let http = &snapshot.http;
        let served = Self::is_served(snapshot);
        let plain = http.address().filter(|_| served);
        let plain = self.plain.listen(net, plain, FlowKind::Http, None);
        let secure = http.tls_address().filter(|_| served && wires.http.is_some());
        let secure = self.secure.listen(net, secure, FlowKind::Http, wires.http.as_ref());
        let shut =
            |name, option, error| Shut { name, place: http.origin.place_of(option).to_string(), error };
        let plain = plain.err().map(|error| shut("http server", "bindport", error));
        let secure = secure.err().map(|error| shut("https server", "tlsbindaddr", error));
        plain.into_iter().chain(secure).collect()
    }
    /// Whether HTTP and HTTPS are off although they are asked for.
    pub(crate) fn down(&self, snapshot: &Snapshot) -> (bool, bool) {
        let served = Self::is_served(snapshot);
        let is_down = |asked: bool, door: &Door| served && asked && !door.is_open();
        let http = &snapshot.http;
        (is_down(http.address().is_some(), &self.plain), is_down(http.tls_address().is_some(), &self.secure))
    }
    /// Whether there is anything to serve.
    fn is_served(snapshot: &Snapshot) -> bool {
        snapshot.prometheus.enabled
            || snapshot.manager.is_on_the_web()
            || snapshot.ari.is_served()
            || snapshot.pjsip.has_websockets()
            || snapshot.http.has_pages()
    }
    /// After a reload: a listener that cannot be opened is said, and the calls go on.
    pub(crate) fn configure(&mut self, net: &mut Net, site: &Rc<Site>, wires: &Wires) {
        let snapshot = site.snapshot.borrow().clone();
        self.ari.configure(&mut self.pending);
        self.listen(net, &snapshot, wires).iter().for_each(|shut| shut.log(&site.shard));
    }
}
