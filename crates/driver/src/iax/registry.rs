//! Registrations of ours at others (`register =>`).

use core::net::SocketAddr;
use std::rc::Rc;

use ::iax2::machine::Registration as Wanted;
use base::Cause;
use call::{Core, Level, Notice};

use super::config::Registration;
use super::hosts::Found;
use super::peers::cause_text;
use super::show::RegistryState;
use super::{At, IaxDriver};

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
            let address = match self.hosts.find(&config.host, config.port, services, now) {
                Found::At(address) => Some(address),
                // The last that was known may still be right.
                Found::Awaited | Found::Nowhere => ours.address,
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
        tell(core, &config, "Registered", String::new());
    }
    pub(super) fn registration_refused(&mut self, core: &mut Core, at: At, cause: Cause, text: &[u8]) {
        let Some(ours) = self.ours.iter_mut().find(|ours| ours.place == Some(at)) else { return };
        ours.state = RegistryState::Rejected;
        let config = ours.config.clone();
        let why = cause_text(cause, text);
        let line = format!("Registration of '{}' rejected by {}: {why}", config.username, config.place);
        core.log(Level::Warning, "chan_iax2", &line);
        tell(core, &config, "Rejected", why);
    }
    pub(super) fn registration_lost(&mut self, core: &mut Core, at: At) {
        let Some(ours) = self.ours.iter_mut().find(|ours| ours.place == Some(at)) else { return };
        let before = std::mem::replace(&mut ours.state, RegistryState::Timeout);
        let config = ours.config.clone();
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
