//! A client for pages whose address a stranger has chosen: it asks nobody but whom it may, wherever a name leads.

use std::net::IpAddr;
use std::sync::Arc;

use base::PageWant;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use super::{Report, page_by, settings};

/// Which addresses may be asked.
pub type Allows = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// The page, or why there is none, for a thread of one's own. Nothing is sent to an address that is not allowed; a proxy would
/// be asked instead, so that there is none. No connection is kept, so that each page is asked for at an address that was
/// looked at.
pub fn fetch_guarded(want: &PageWant, allows: &Allows) -> Report {
    let config = settings(true).max_idle_connections(0).max_idle_connections_per_host(0).build();
    let resolver = Guard { inner: DefaultResolver::default(), allows: Arc::clone(allows) };
    let agent = ureq::Agent::with_parts(config, DefaultConnector::default(), resolver);
    let want = PageWant { proxy: String::new(), ..want.clone() };
    page_by(&agent, &want)
}

struct Guard {
    inner: DefaultResolver,
    allows: Allows,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guard")
    }
}

impl Resolver for Guard {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.inner.resolve(uri, config, timeout)?;
        let mut kept = self.empty();
        for address in found.iter() {
            if (self.allows)(address.ip()) {
                kept.push(*address);
            }
        }
        if kept.is_empty() {
            let why = "its address may not be asked";
            return Err(ureq::Error::Io(std::io::Error::new(std::io::ErrorKind::PermissionDenied, why)));
        }
        Ok(kept)
    }
}
