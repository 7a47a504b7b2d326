//! The listeners of HTTP, where `http.conf` wants it.

use std::net::SocketAddr;
use std::rc::Rc;

use call::Level;
use control::http::Http;
use control::site::Site;
use control::socket::Output;
use io::net::{BindError, FlowKind, ListenerId, Net};
use store::Snapshot;

use crate::secure::{Door, Wires};
use crate::start::StartError;

pub(crate) struct Web {
    pub(crate) http: Http,
    plain: Door,
    secure: Door,
}

impl Web {
    pub(crate) fn new(site: &Rc<Site>) -> Self {
        Self { http: Http::new(site.clone()), plain: Door::default(), secure: Door::default() }
    }
    /// Somebody has connected.
    pub(crate) fn open(&mut self, client: u64, peer: SocketAddr, at: ListenerId, out: &mut Vec<Output>) {
        self.http.open(client, peer, self.secure.is(at), out);
    }
    /// Listens when something is served; not where it did before, if that changed.
    pub(crate) fn listen(
        &mut self,
        net: &mut Net,
        snapshot: &Snapshot,
        wires: &Wires,
    ) -> Result<(), StartError> {
        let http = &snapshot.http;
        let fail = |option: &'static str, error: &BindError| StartError::Part {
            what: format!("{}: HTTP", http.origin.place_of(option)),
            why: error.to_string(),
            remedy: error.remedy().to_owned(),
        };
        let served = snapshot.prometheus.enabled
            || snapshot.manager.is_on_the_web()
            || snapshot.pjsip.has_websockets()
            || http.has_pages();
        let plain = http.address().filter(|_| served);
        self.plain.listen(net, plain, FlowKind::Http, None).map_err(|e| fail("bindport", &e))?;
        let secure = http.tls_address().filter(|_| served && wires.http.is_some());
        self.secure
            .listen(net, secure, FlowKind::Http, wires.http.as_ref())
            .map_err(|e| fail("tlsbindaddr", &e))
    }
    /// After a reload: a listener that cannot be opened is said, and the calls go on.
    pub(crate) fn configure(&mut self, net: &mut Net, site: &Rc<Site>, wires: &Wires) {
        let snapshot = site.snapshot.borrow().clone();
        if let Err(error) = self.listen(net, &snapshot, wires) {
            site.shard.core.borrow_mut().log(Level::Error, "http", &error.to_string());
        }
    }
}
