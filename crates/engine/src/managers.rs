//! The manager protocol's listeners and machine.

use std::cell::RefCell;
use std::rc::Rc;

use base::Instant;
use control::ami::Manager;
use control::cli::Cli;
use control::site::Site;
use io::net::{FlowKind, Net};
use store::Snapshot;

use crate::secure::{Door, Shut, Wires};

pub(crate) struct Managers {
    pub(crate) manager: Manager,
    plain: Door,
    secure: Door,
}

impl Managers {
    pub(crate) fn new(site: &Rc<Site>, commands: &Rc<RefCell<Cli>>) -> Self {
        let mut manager = Manager::new(site.clone());
        manager.set_clock(|| io::clock::Clock.now());
        manager.set_commands(commands.clone());
        Self { manager, plain: Door::default(), secure: Door::default() }
    }
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.manager.deadline()
    }
    /// Listens when `manager.conf` says so; not where it did before, if that changed.
    pub(crate) fn listen(&mut self, net: &mut Net, snapshot: &Snapshot, wires: &Wires) -> Vec<Shut> {
        self.manager.configure();
        let general = &snapshot.manager.general;
        let plain = self.plain.listen(net, general.address(), FlowKind::Manager, None);
        let secure = general.tls_address().filter(|_| wires.manager.is_some());
        let secure = self.secure.listen(net, secure, FlowKind::Manager, wires.manager.as_ref());
        let shut =
            |name, option, error| Shut { name, place: general.origin.place_of(option).to_string(), error };
        let plain = plain.err().map(|error| shut("AMI server", "port", error));
        let secure = secure.err().map(|error| shut("AMI TLS server", "tlsbindaddr", error));
        plain.into_iter().chain(secure).collect()
    }
    /// After a reload: a listener that cannot be opened is said, and the calls go on.
    pub(crate) fn configure(&mut self, net: &mut Net, site: &Rc<Site>, wires: &Wires) {
        let snapshot = site.snapshot.borrow().clone();
        self.listen(net, &snapshot, wires).iter().for_each(|shut| shut.log(&site.shard));
    }
}
