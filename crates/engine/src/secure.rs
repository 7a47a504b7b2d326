//! What the log hears of connections whose TLS was broken off.

use std::net::SocketAddr;
use std::time::Duration;

use base::Instant;
use io::net::{FlowKind, TlsFault};

/// Lines that one span may have: enough to see what is wrong, too few to fill a disk with.
const LINES_MAX: u32 = 20;
/// The span.
const SPAN: Duration = Duration::from_secs(60);

/// Counts what it has told.
#[derive(Default)]
pub(crate) struct Insecure {
    until: Option<Instant>,
    told: u32,
    untold: u64,
}

impl Insecure {
    /// The lines that a fault is worth at this moment.
    pub(crate) fn tell(
        &mut self,
        kind: FlowKind,
        remote: SocketAddr,
        fault: &TlsFault,
        now: Instant,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        if self.until.is_none_or(|until| until <= now) {
            if self.untold > 0 {
                lines.push(format!("{} more connections failed in the same way or another", self.untold));
            }
            *self = Self { until: Some(now + SPAN), told: 0, untold: 0 };
        }
        if self.told < LINES_MAX {
            self.told += 1;
            let service = match kind {
                FlowKind::Sip => "SIP",
                FlowKind::Manager => "manager",
                FlowKind::Http => "HTTPS",
                FlowKind::Control => "console",
            };
            lines.push(format!("{service} with {remote}: {}; {}", fault.what, fault.remedy));
        } else {
            self.untold += 1;
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scanner_fills_one_page_of_the_log_a_minute_and_the_rest_is_a_number() {
        let fault = TlsFault { what: "no".to_owned(), remedy: "yes" };
        let from = "192.0.2.1:5061".parse().unwrap();
        let mut insecure = Insecure::default();
        let mut at = |seconds| {
            insecure.tell(FlowKind::Sip, from, &fault, Instant::ZERO + Duration::from_secs(seconds))
        };
        assert_eq!(at(0), ["SIP with 192.0.2.1:5061: no; yes"]);
        let lines: usize = (0..999).map(|_| at(1).len()).sum();
        assert_eq!(lines, 19);
        assert_eq!(at(60).first().unwrap(), "980 more connections failed in the same way or another");
        assert_eq!(at(61).len(), 1);
    }
}
