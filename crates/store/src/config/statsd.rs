//! `statsd.conf`: the server that `StatsD()` tells.

use super::kind::{Text, YesNo};
use super::{host_and_port, options, read_settings};
use conf::{File, Findings};

/// Port of StatsD servers when none is written.
const PORT: u16 = 8125;

options! {
    /// `[general]` of `statsd.conf`.
    StatsdGeneral, "statsd.conf", "general", IsIgnored;
    enabled: YesNo = "no", "Send what StatsD() says to a server.";
    server: Text = "127.0.0.1", "Where it listens, by UDP: host or host:port, port 8125 unless written.";
    prefix: Text = "", "Stands before each name, with a point between them.";
    add_newline: YesNo = "no", "Each datagram ends with a line end.";
    meter_support: YesNo = "yes", "The server knows meters.",
        Ignored "*" "StatsD() sends no meters";
    @recognised {}
}

/// A server that is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Statsd {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The rest.
    pub general: StatsdGeneral,
}

impl Statsd {
    /// Reads the file; `None` when nobody is told.
    pub fn read(file: &File, findings: &mut Findings) -> Option<Self> {
        let general: StatsdGeneral = read_settings(file, "general", findings);
        if !general.enabled {
            return None;
        }
        let Some((host, port)) = host_and_port(&general.server, PORT) else {
            let message = format!("'{}' is no host:port; nobody is told", general.server);
            findings.warning(general.origin.place_of("server"), message, "write server=host:8125");
            return None;
        };
        Some(Self { host, port, general })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_and_a_port_and_only_when_it_is_wanted() {
        for (text, expected, told) in [
            ("enabled=yes", Some(("127.0.0.1", 8125)), 0),
            ("enabled=yes\nserver=stats.example:9125", Some(("stats.example", 9125)), 0),
            ("enabled=yes\nserver=a:b", None, 1),
            ("server=stats.example", None, 0),
        ] {
            let mut findings = Findings::new();
            let source = conf::Memory::new().with("statsd.conf", format!("[general]\n{text}\n"));
            let file = conf::load(&source, "statsd.conf", conf::Options::default(), &mut findings).unwrap();
            let read = Statsd::read(&file, &mut findings);
            assert_eq!(read.as_ref().map(|of| (of.host.as_str(), of.port)), expected, "{text}");
            assert_eq!(findings.iter().count(), told, "{text}");
        }
    }
}
