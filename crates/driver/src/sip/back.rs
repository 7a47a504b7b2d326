//! Responses that cannot go back the way their requests came: what the DNS says of who sent them (RFC 3263 §5).

use core::time::Duration;

use ::sip::locate::Wanted;
use ::sip::stack::{Flow, PeerName, Protocol, ServerId};
use base::Instant;
use call::Core;

use super::{SipDriver, ways};

/// Responses that wait for the DNS; beyond it a response without a way is given up at once.
const STRANDED_MAX: usize = 256;
/// Longest that one waits: the request is forgotten by its sender soon after (64*T1).
const WAIT: Duration = Duration::from_secs(15);

/// A response without a way.
pub(crate) struct Stranded {
    request: ServerId,
    /// Who the Via says to have sent its request, by the transport that it came by.
    wanted: Wanted,
    failed: Flow,
    until: Instant,
}

impl SipDriver {
    /// A response could not be sent. Only requests of which something is kept come here, so that no stranger has us
    /// connect to whom he likes.
    pub(crate) fn strand(
        &mut self,
        core: &mut Core,
        request: ServerId,
        (host, port): (String, Option<u16>),
        failed: Flow,
    ) {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let wanted = Wanted { host, port, protocol: Some(failed.protocol), secure: false };
        self.look_back(core, Stranded { request, wanted, failed, until: core.now + WAIT });
    }
    /// The DNS has said something new, or time has passed.
    pub(crate) fn look_back_again(&mut self, core: &mut Core) {
        for stranded in std::mem::take(&mut self.stranded) {
            self.look_back(core, stranded);
        }
    }
    /// When the first of them has waited long enough.
    pub(crate) fn stranded_deadline(&self) -> Option<Instant> {
        self.stranded.iter().map(|stranded| stranded.until).min()
    }
    fn look_back(&mut self, core: &mut Core, stranded: Stranded) {
        self.awaited = None;
        let targets = self.servers(&stranded.wanted, core.now);
        if self.awaited.take().is_some() && core.now < stranded.until && self.stranded.len() < STRANDED_MAX {
            return self.stranded.push(stranded);
        }
        let Stranded { request, wanted, failed, .. } = stranded;
        let config = self.config.clone();
        // RFC 5922 §4: under TLS the name is to be proved.
        let name = match failed.protocol {
            Protocol::Tls => self.proofs.number(&wanted.host),
            Protocol::Udp | Protocol::Tcp | Protocol::Ws | Protocol::Wss => Some(PeerName::NONE),
        };
        let v4 = failed.remote.is_ipv4();
        let reachable = targets.iter().filter(|target| target.remote.is_ipv4() == v4);
        let flows = reachable.zip(core::iter::repeat(name)).filter_map(|(target, name)| {
            let transport = ways::bind_id(failed.transport);
            Some(Flow { transport, connection: None, name: name?, remote: target.remote, ..failed })
        });
        let flows: Vec<Flow> = flows.map(|flow| self.ways.inward(&config, &mut self.stack, flow)).collect();
        if flows.iter().all(|flow| *flow == failed) {
            let line = format!(
                "a response to {} {} cannot be sent, and '{}' leads nowhere else",
                failed.protocol.name(),
                failed.remote,
                wanted.host
            );
            core.log(call::Level::Notice, "res_pjsip", &line);
        }
        self.with_stack(core, |stack, now, out| stack.respond_by(request, &flows, now, out));
    }
}
