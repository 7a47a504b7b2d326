//! Addresses of host names: the shell looks them up, this remembers them for a while.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::HashMap;

use ::sip::Uri;
use base::Instant;

use super::config::Config;

/// After this long a name is looked up again; the old addresses serve until the new ones come.
const FRESH: Duration = Duration::from_secs(60);
/// After this long a name without addresses is looked up again.
const FRESH_NONE: Duration = Duration::from_secs(10);
/// Names remembered; a site has tens. Beyond it the table starts over, so that nobody can fill it.
const NAMES_MAX: usize = 4096;

struct Known {
    addresses: Vec<IpAddr>,
    ask_at: Instant,
    /// The shell has answered, be it with nothing.
    answered: bool,
}

/// See the module's page.
#[derive(Default)]
pub(super) struct Names {
    known: HashMap<String, Known>,
    wanted: Vec<String>,
}

impl Names {
    /// The addresses of a name, as far as they are known; asks when they are not, or no longer fresh.
    pub(super) fn addresses(&mut self, host: &str, now: Instant) -> &[IpAddr] {
        let key = host.to_ascii_lowercase();
        if self.known.get(&key).is_none_or(|known| known.ask_at <= now) {
            self.want(&key, now);
        }
        self.known.get(&key).map_or(&[], |known| &known.addresses)
    }
    /// The addresses of a name, as far as they are known; asks nobody.
    pub(super) fn known(&self, host: &str) -> &[IpAddr] {
        self.known.get(&host.to_ascii_lowercase()).map_or(&[], |known| &known.addresses)
    }
    /// Whether the first answer about a name is still to come.
    pub(super) fn is_awaited(&self, host: &str) -> bool {
        self.known.get(&host.to_ascii_lowercase()).is_none_or(|known| !known.answered)
    }
    fn want(&mut self, key: &str, now: Instant) {
        if self.known.len() >= NAMES_MAX && !self.known.contains_key(key) {
            self.known.clear();
        }
        let known = self.known.entry(key.to_owned());
        // Not again before the answer, or before it has taken too long.
        known.or_insert(Known { addresses: Vec::new(), ask_at: now, answered: false }).ask_at =
            now + FRESH_NONE;
        if !self.wanted.iter().any(|wanted| wanted == key) {
            self.wanted.push(key.to_owned());
        }
    }
    /// Asks for the names that the configuration sends requests to, before the first call needs them.
    pub(super) fn foresee(&mut self, config: &Config, now: Instant) {
        let contacts = config.aors.values().flat_map(|aor| &aor.contacts);
        let proxies = config.endpoints.values().map(|endpoint| &endpoint.outbound_proxy);
        for text in contacts.chain(proxies).chain(super::trunk::Trunks::hosts(config)) {
            let uri = Uri::parse(text.trim_matches(['<', '>', ' ']).as_bytes());
            if let Some(uri) = uri.filter(|uri| uri.host.ip().is_none()) {
                self.addresses(&String::from_utf8_lossy(uri.host.as_bytes()), now);
            }
        }
    }
    /// The answer. Whether it is another one than before.
    pub(super) fn learn(&mut self, host: &str, addresses: Vec<IpAddr>, now: Instant) -> bool {
        let fresh = if addresses.is_empty() { FRESH_NONE } else { FRESH };
        let old = self.known.insert(
            host.to_ascii_lowercase(),
            Known { addresses: addresses.clone(), ask_at: now + fresh, answered: true },
        );
        old.is_none_or(|old| old.addresses != addresses)
    }
    pub(super) fn take_wanted(&mut self) -> Vec<String> {
        std::mem::take(&mut self.wanted)
    }
}
