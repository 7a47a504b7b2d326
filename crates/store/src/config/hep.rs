//! `hep.conf`: copies of SIP messages for a capture server.

use super::kind::{Hidden, Int, Text, YesNo, choice};
use super::{host_and_port, options, read_settings};
use conf::{File, Findings};

/// Port of capture servers when none is written.
const PORT: u16 = 9060;

options! {
    /// `[general]` of `hep.conf`. Without the file nothing is captured.
    HepGeneral, "hep.conf", "general", IsIgnored;
    enabled: YesNo = "yes", "Send copies of SIP messages to a capture server, as HEPv3 over UDP.";
    capture_address: Text = "", "Where the capture server listens: host or host:port, port 9060 unless written.";
    capture_password: Hidden = "", "What the server knows us by; sent with each packet.";
    capture_id: Int<0, 4_294_967_295> = "0", "Number of this agent in each packet.";
    capture_name: Text = "", "Name of this agent in each packet; empty sends none.";
    uuid_type: UuidType = "call-id", "What ties the messages of a call together.";
    @recognised {}
}

choice! {
    /// `uuid_type=`: what ties the messages of a call together.
    UuidType {
        CallId | "call-id" "The Call-ID of each leg.";
        Channel | "channel" "The name of its channel; of what comes before it has one, or after, the Call-ID.";
    }
}

/// Where copies of messages go.
#[derive(Debug, Clone, PartialEq)]
pub struct Hep {
    /// Host name or address of the capture server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The rest.
    pub general: HepGeneral,
}

impl Hep {
    /// Reads the file; `None` when nothing is to be captured.
    pub fn read(file: &File, findings: &mut Findings) -> Option<Self> {
        let general: HepGeneral = read_settings(file, "general", findings);
        if !general.enabled {
            return None;
        }
        let Some((host, port)) = host_and_port(&general.capture_address, PORT) else {
            let place = general.origin.place_of("capture_address");
            let message = if general.capture_address.is_empty() {
                "there is no capture_address=; nothing is captured".to_owned()
            } else {
                format!("'{}' is no host:port; nothing is captured", general.capture_address)
            };
            findings.warning(place, message, "write capture_address=host:9060, or enabled=no");
            return None;
        };
        Some(Self { host, port, general })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_server_is_a_host_and_a_port() {
        for (text, expected) in [
            ("hep.example.com", Some(("hep.example.com", 9060))),
            ("192.0.2.1:9061", Some(("192.0.2.1", 9061))),
            ("2001:db8::1", Some(("2001:db8::1", 9060))),
            ("[2001:db8::1]:9", Some(("2001:db8::1", 9))),
            ("[2001:db8::1]", Some(("2001:db8::1", 9060))),
            ("", None),
            (":9060", None),
            ("host:", None),
            ("host:0", None),
            ("host:65536", None),
            ("[host", None),
            ("two hosts", None),
        ] {
            let found = host_and_port(text, PORT);
            assert_eq!(found.as_ref().map(|(host, port)| (host.as_str(), *port)), expected, "{text}");
        }
    }

    #[test]
    fn nothing_is_captured_without_an_address() {
        for (name, text, captured, told) in [
            ("whole", "[general]\ncapture_address = 192.0.2.1:9060\ncapture_id = 7\n", true, 0),
            ("off", "[general]\nenabled = no\ncapture_address = 192.0.2.1:9060\n", false, 0),
            ("no address", "[general]\nenabled = yes\n", false, 1),
            ("by channel", "[general]\ncapture_address = h\nuuid_type = channel\n", true, 0),
            ("by nothing", "[general]\ncapture_address = h\nuuid_type = tag\n", true, 1),
        ] {
            let mut findings = Findings::new();
            let source = conf::Memory::new().with("hep.conf", text);
            let file = conf::load(&source, "hep.conf", conf::Options::default(), &mut findings).unwrap();
            assert_eq!(Hep::read(&file, &mut findings).is_some(), captured, "{name}");
            assert_eq!(findings.iter().count(), told, "{name}");
        }
    }
}
