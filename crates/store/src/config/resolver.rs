//! `resolver_unbound.conf`: which name servers are asked.

use super::kind::{Servers, Text};
use super::{options, read_settings};
use conf::{File, Findings};

options! {
    /// `[general]` of `resolver_unbound.conf`.
    Resolver, "resolver_unbound.conf", "general", IsIgnored;
    nameserver: Servers = "", "A name server, as 192.0.2.53 or 192.0.2.53@5353; lines add up. Without a line those of resolv hold.";
    resolv: Text = "system", "File that names the servers, in the form of resolv.conf; system is /etc/resolv.conf.";
    @recognised {
        "hosts" "system" Ignored "the hosts file is /etc/hosts";
        "ta_file" "" Later "answers are not checked with DNSSEC";
        "debug" "*" Ignored "look-ups that fail are in the log";
    }
}

impl Resolver {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        read_settings(file, "general", findings)
    }
    /// The file that names the servers when no `nameserver=` does.
    pub fn resolv_conf(&self) -> &str {
        if self.resolv.eq_ignore_ascii_case("system") { "/etc/resolv.conf" } else { &self.resolv }
    }
}
