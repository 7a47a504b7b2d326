//! The manager protocol's listener and machine.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

use base::Instant;
use call::Level;
use control::ami::Manager;
use control::cli::Cli;
use control::site::Site;
use io::net::{FlowKind, ListenerId, Net};
use store::Snapshot;

use crate::start::StartError;

/// Where the manager listens when `bindaddr` is not written, as in the field; `check` warns of it.
const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 5038);

pub(crate) struct Managers {
    pub(crate) manager: Manager,
    listener: Option<(SocketAddr, ListenerId)>,
}

impl Managers {
    pub(crate) fn new(site: &Rc<Site>, commands: &Rc<RefCell<Cli>>) -> Self {
        let mut manager = Manager::new(site.clone());
        manager.set_commands(commands.clone());
        Self { manager, listener: None }
    }
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.manager.deadline()
    }
    /// Listens when `manager.conf` says so; not where it did before, if that changed.
    pub(crate) fn listen(&mut self, net: &mut Net, snapshot: &Snapshot) -> Result<(), StartError> {
        self.manager.configure();
        let general = &snapshot.manager.general;
        let wanted = general
            .enabled
            .then(|| general.bindaddr.map_or(ANYWHERE, |bind| SocketAddr::new(bind.ip, general.port)));
        if self.listener.map(|(address, _)| address) == wanted {
            return Ok(());
        }
        if let Some((_, listener)) = self.listener.take() {
            net.close_listener(listener);
        }
        let Some(address) = wanted else { return Ok(()) };
        match net.listen_tcp(address, FlowKind::Manager) {
            Ok(listener) => {
                self.listener = Some((address, listener));
                Ok(())
            }
            Err(error) => Err(StartError::Part {
                what: format!("{}: manager", general.origin.place_of("port")),
                why: error.to_string(),
                remedy: error.remedy().to_owned(),
            }),
        }
    }
    /// After a reload: a listener that cannot be opened is said, and the calls go on.
    pub(crate) fn configure(&mut self, net: &mut Net, site: &Rc<Site>) {
        let snapshot = site.snapshot.borrow().clone();
        if let Err(error) = self.listen(net, &snapshot) {
            site.shard.core.borrow_mut().log(Level::Error, "manager", &error.to_string());
        }
    }
}
