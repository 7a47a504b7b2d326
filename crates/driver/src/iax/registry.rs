//! Registrations of ours at others (`register =>`).

use core::net::SocketAddr;
use core::time::Duration;
use std::rc::Rc;

use ::iax2::machine::Registration as Wanted;
use base::{Cause, Instant};
use call::{Core, Level, Notice};

use super::config::Registration;
use super::hosts::{Found, is_address};
use super::peers::cause_text;
use super::show::RegistryState;
use super::{At, IaxDriver};

/// Between two looks at names that registrations and watches go by; each is asked for only once its records are no longer
/// fresh.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(60);

/// A registration of ours and how it is.
pub(super) struct Ours {
    pub(super) config: Rc<Registration>,
    pub(super) place: Option<At>,
    pub(super) address: Option<SocketAddr>,
    pub(super) state: RegistryState,
    pub(super) perceived: Option<SocketAddr>,
    pub(super) refresh: u16,
}

fn is_same(a: &Registration, b: &Registration) -> bool {
    let secrets = match (&a.secret, &b.secret) {
        (Some(a), Some(b)) => a.is_same(b),
        (None, None) => true,
        _ => false,
    };
    let own = |of: &Registration| {
        (of.host.clone(), of.port, of.username.clone(), of.key.clone(), of.refresh, of.plaintext)
    };
    secrets && own(a) == own(b)
}

impl IaxDriver {
    /// We register as the configuration says from here on; what stays the same goes on.
    pub(super) fn configure_registry(&mut self, core: &mut Core) {
        let now = core.now;
        let mut before = std::mem::take(&mut self.ours);
        for config in &self.config.registrations.clone() {
            let kept = before.iter().position(|ours| is_same(&ours.config, config));
            let mut ours = kept.map(|at| before.swap_remove(at)).unwrap_or(Ours {
                config: config.clone(),
                place: None,
                address: None,
                state: RegistryState::Unregistered,
                perceived: None,
                refresh: config.refresh,
            });
            ours.config = config.clone();
            let services = self.config.srv_lookup;
            let address = match self.hosts.find_again(&config.host, config.port, services, now, ours.address)
            {
                Found::At(address) => Some(address),
                Found::Awaited | Found::Nowhere => None,
            };
            if address != ours.address || ours.place.is_none() {
                if let Some(at) = ours.place.take() {
                    let _ = self.order(at.0, |machine, out| machine.unregister(now, at.1, out));
                }
                ours.address = address;
                ours.place = address.and_then(|at| self.keep_registered(core, config, at));
                ours.state =
                    if ours.place.is_some() { RegistryState::Sent } else { RegistryState::Unregistered };
            }
            self.ours.push(ours);
        }
        for gone in before {
            if let Some(at) = gone.place {
                let _ = self.order(at.0, |machine, out| machine.unregister(now, at.1, out));
            }
        }
    }
    fn keep_registered(&mut self, core: &Core, config: &Registration, at: SocketAddr) -> Option<At> {
        let socket = self.socket_to(at)?;
        let wanted = Wanted {
            at,
            username: config.username.as_bytes().to_vec(),
            secret: config.secret.clone().unwrap_or_default(),
            refresh: config.refresh,
            plaintext: config.plaintext,
        };
        let now = core.now;
        let place = self.order(socket, |machine, out| machine.keep_registered(now, wanted, out))?.ok()?;
        Some((socket, place))
    }
    /// Has the name of a registrar looked up, once what is known of it is no longer fresh. What is news is taken up when it
    /// comes ([`IaxDriver::resolved`]).
    fn look_again(&mut self, config: &Registration, now: Instant) {
        let _ = self.hosts.find(&config.host, config.port, self.config.srv_lookup, now);
    }
    /// Has names looked up from time to time: of registrars, and of peers that are watched. One that meant nothing at first
    /// is found in this way, and one that has moved while whoever was there before still answers.
    pub(super) fn names_due(&mut self, now: Instant) {
        if self.names_at.is_none_or(|at| at > now) {
            return;
        }
        let config = self.config.clone();
        for registration in &config.registrations {
            self.look_again(registration, now);
        }
        for peer in config.peers.values() {
            self.look_again_for(peer, now);
        }
        self.plan_names(now);
    }
    /// When names are to be looked up next.
    pub(super) fn plan_names(&mut self, now: Instant) {
        let registrars = self.config.registrations.iter().any(|one| !is_address(&one.host));
        let peers = || self.config.peers.values().any(|peer| peer.watched_name().is_some());
        self.names_at = (registrars || peers()).then(|| now + LOOK_EVERY);
    }
    pub(super) fn registered(&mut self, core: &mut Core, at: At, apparent: Option<SocketAddr>, refresh: u16) {
        let Some(ours) = self.ours.iter_mut().find(|ours| ours.place == Some(at)) else { return };
        let is_news = ours.state != RegistryState::Registered || ours.perceived != apparent;
        (ours.state, ours.perceived, ours.refresh) = (RegistryState::Registered, apparent, refresh);
        if is_news {
            let seen = apparent.map(|seen| format!(", who sees us as {seen}")).unwrap_or_default();
            let line = format!("Registered IAX2 to '{}'{seen}", ours.config.place);
            core.log(Level::Notice, "chan_iax2", &line);
        }
        let config = ours.config.clone();
        self.look_again(&config, core.now);
        tell(core, &config, "Registered", String::new());
    }
    pub(super) fn registration_refused(&mut self, core: &mut Core, at: At, cause: Cause, text: &[u8]) {
        let Some(ours) = self.ours.iter_mut().find(|ours| ours.place == Some(at)) else { return };
        ours.state = RegistryState::Rejected;
        let config = ours.config.clone();
        self.look_again(&config, core.now);
        let why = cause_text(cause, text);
        let line = format!("Registration of '{}' rejected by {}: {why}", config.username, config.place);
        core.log(Level::Warning, "chan_iax2", &line);
        tell(core, &config, "Rejected", why);
    }
    pub(super) fn registration_lost(&mut self, core: &mut Core, at: At) {
        let Some(ours) = self.ours.iter_mut().find(|ours| ours.place == Some(at)) else { return };
        let before = std::mem::replace(&mut ours.state, RegistryState::Timeout);
        let config = ours.config.clone();
        self.look_again(&config, core.now);
        if before != RegistryState::Timeout {
            let line =
                format!("Registration for '{}' at {} does not get through", config.username, config.place);
            core.log(Level::Notice, "chan_iax2", &line);
        }
        tell(core, &config, "Unregistered", "Timeout".to_owned());
    }
}

fn tell(core: &mut Core, config: &Registration, status: &'static str, cause: String) {
    let (username, domain) = (config.username.clone(), config.place.clone());
    core.notice(|_| Some(Notice::Registry { channel_type: "IAX2", username, domain, status, cause }));
}
