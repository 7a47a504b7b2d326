//! The manager protocol's listeners and machine.

use std::cell::RefCell;
use std::rc::Rc;

use base::Instant;
use call::Level;
use control::ami::Manager;
use control::cli::Cli;
use control::site::Site;
use io::net::{BindError, FlowKind, Net};
use store::Snapshot;

use crate::secure::{Door, Wires};
use crate::start::StartError;

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
    pub(crate) fn listen(
        &mut self,
        net: &mut Net,
        snapshot: &Snapshot,
        wires: &Wires,
    ) -> Result<(), StartError> {
        self.manager.configure();
        let general = &snapshot.manager.general;
        let fail = |option: &'static str, error: &BindError| StartError::Part {
            what: format!("{}: manager", general.origin.place_of(option)),
            why: error.to_string(),
            remedy: error.remedy().to_owned(),
        };
        self.plain.listen(net, general.address(), FlowKind::Manager, None).map_err(|e| fail("port", &e))?;
        let secure = general.tls_address().filter(|_| wires.manager.is_some());
        self.secure
            .listen(net, secure, FlowKind::Manager, wires.manager.as_ref())
            .map_err(|e| fail("tlsbindaddr", &e))
    }
    /// After a reload: a listener that cannot be opened is said, and the calls go on.
    pub(crate) fn configure(&mut self, net: &mut Net, site: &Rc<Site>, wires: &Wires) {
        let snapshot = site.snapshot.borrow().clone();
        if let Err(error) = self.listen(net, &snapshot, wires) {
            site.shard.core.borrow_mut().log(Level::Error, "manager", &error.to_string());
        }
    }
}
