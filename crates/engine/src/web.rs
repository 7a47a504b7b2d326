//! The listener of HTTP, where `http.conf` wants it.

use std::net::SocketAddr;
use std::rc::Rc;

use call::Level;
use control::http::Http;
use control::site::Site;
use io::net::{FlowKind, ListenerId, Net};
use store::Snapshot;

use crate::start::StartError;

pub(crate) struct Web {
    pub(crate) http: Http,
    listener: Option<(SocketAddr, ListenerId)>,
}

impl Web {
    pub(crate) fn new(site: &Rc<Site>) -> Self {
        Self { http: Http::new(site.clone()), listener: None }
    }
    /// Listens when something is served; not where it did before, if that changed.
    pub(crate) fn listen(&mut self, net: &mut Net, snapshot: &Snapshot) -> Result<(), StartError> {
        let wanted = snapshot
            .http
            .address()
            .filter(|_| snapshot.prometheus.enabled || snapshot.manager.is_on_the_web());
        if self.listener.map(|(address, _)| address) == wanted {
            return Ok(());
        }
        if let Some((_, listener)) = self.listener.take() {
            net.close_listener(listener);
        }
        let Some(address) = wanted else { return Ok(()) };
        match net.listen_tcp(address, FlowKind::Http) {
            Ok(listener) => {
                self.listener = Some((address, listener));
                Ok(())
            }
            Err(error) => Err(StartError::Part {
                what: format!("{}: HTTP", snapshot.http.origin.place_of("bindport")),
                why: error.to_string(),
                remedy: error.remedy().to_owned(),
            }),
        }
    }
    /// After a reload: a listener that cannot be opened is said, and the calls go on.
    pub(crate) fn configure(&mut self, net: &mut Net, site: &Rc<Site>) {
        let snapshot = site.snapshot.borrow().clone();
        if let Err(error) = self.listen(net, &snapshot) {
            site.shard.core.borrow_mut().log(Level::Error, "http", &error.to_string());
        }
    }
}
