//! `[general]`: where SIP is listened for.

use conf::{Place, Variable};

use crate::config::kind::Choice as _;
use crate::config::pjsip::TlsMethod;

use super::keys::Part;
use super::{Import, Made, yes};

/// A protocol that chan_sip listens with.
struct Listener {
    word: &'static str,
    enable: &'static str,
    bind: &'static str,
    extern_port: &'static str,
    on_by_default: bool,
    port: u16,
}

const LISTENERS: [Listener; 3] = [
    Listener {
        word: "udp",
        enable: "udpenable",
        bind: "udpbindaddr",
        extern_port: "",
        on_by_default: true,
        port: 5060,
    },
    Listener {
        word: "tcp",
        enable: "tcpenable",
        bind: "tcpbindaddr",
        extern_port: "externtcpport",
        on_by_default: false,
        port: 5060,
    },
    Listener {
        word: "tls",
        enable: "tlsenable",
        bind: "tlsbindaddr",
        extern_port: "externtlsport",
        on_by_default: false,
        port: 5061,
    },
];

/// Keys of `[general]` that are options of the TLS transport.
const TLS: [(&str, &str); 7] = [
    ("tlscertfile", "cert_file"),
    ("tlsprivatekey", "priv_key_file"),
    ("tlscafile", "ca_list_file"),
    ("tlscadir", "ca_list_path"),
    ("tlscapath", "ca_list_path"),
    ("tlscipher", "cipher"),
    ("tlsverifyclient", "verify_client"),
];

/// Address and port, of which either may be missing: `0.0.0.0`, `[::]:5070`, `::1`, `10.0.0.1:5062`.
fn address_and_port(text: &str) -> (&str, Option<&str>) {
    if text.starts_with('[') {
        return match text.split_once("]:") {
            Some((address, port)) => (text.get(..=address.len()).unwrap_or(text), Some(port)),
            None => (text, None),
        };
    }
    match text.split_once(':') {
        Some((address, port)) if !port.contains(':') => (address, Some(port)),
        _ => (text, None),
    }
}

impl Import<'_> {
    pub(super) fn make_transports(&mut self) {
        for listener in &LISTENERS {
            let line = self.general(&[listener.enable]);
            if !line.map_or(listener.on_by_default, |line| yes(Some(line))) {
                continue;
            }
            let place = line.map_or_else(|| self.sip.place(), |line| line.place.clone());
            self.make_transport(listener, &place);
        }
    }

    fn make_transport(&mut self, listener: &Listener, place: &Place) {
        let own = self.general(&[listener.bind]);
        let shared = self.general(&["bindaddr"]);
        let (address, own_port) = own.map_or(("", None), |line| address_and_port(&line.value));
        let (common, common_port) = shared.map_or(("", None), |line| address_and_port(&line.value));
        let default = listener.port.to_string();
        let said = self.general(&["bindport", "port"]).map(|line| &*line.value);
        // bindport is that of UDP and TCP; TLS has its own.
        let inherited = if listener.word == "tls" { None } else { common_port.or(said) };
        let port = own_port.or(inherited).unwrap_or(&default).to_owned();
        let address = [address, common].into_iter().find(|text| !text.is_empty()).unwrap_or("0.0.0.0");
        let bare_v6 = address.contains(':') && !address.starts_with('[');
        let bind = if bare_v6 { format!("[{address}]:{port}") } else { format!("{address}:{port}") };
        let at = own.or(shared).map_or_else(|| place.clone(), |line| line.place.clone());
        if let Some(name) = self.same_port(listener, &port) {
            let message = format!(
                "pjsip.conf listens for {} on port {port} by [{name}], which goes first",
                listener.word
            );
            self.findings.note(&at, message, "");
            return self.transports.push((listener.word, name));
        }
        let name = format!("sip-{}", listener.word);
        let mut made = Made::new("transport", &name, place);
        made.line("protocol", listener.word, place);
        made.line("bind", &bind, &at);
        self.copy(&self.general, Part::Transport, true, &mut made);
        self.outside(listener, &mut made);
        if listener.word == "tls" {
            self.secure(&mut made);
        }
        self.made.push(made);
        self.transports.push((listener.word, name));
    }

    /// The transport of `pjsip.conf` that has this protocol and port.
    fn same_port(&self, listener: &Listener, port: &str) -> Option<String> {
        let transports = self.pjsip.objects().filter(|section| section.value("type") == Some("transport"));
        let mut same = transports.filter(|section| {
            let bind = section.value("bind").and_then(|bind| address_and_port(bind).1);
            section.value("protocol").unwrap_or("udp") == listener.word
                && bind.unwrap_or(if listener.word == "tls" { "5061" } else { "5060" }) == port
        });
        same.next().map(|section| section.name.to_string())
    }

    /// What peers outside `localnet` are told.
    fn outside(&self, listener: &Listener, made: &mut Made) {
        let Some(line) = self.general(&["externaddr", "externip", "externhost"]) else { return };
        let (address, port) = address_and_port(&line.value);
        made.line("external_signaling_address", address, &line.place);
        made.line("external_media_address", address, &line.place);
        let own = self.general(&[listener.extern_port]).filter(|_| !listener.extern_port.is_empty());
        let of_udp = port.map(|port| (port, line)).filter(|_| listener.word == "udp");
        if let Some((port, line)) = own.map(|line| (&*line.value, line)).or(of_udp) {
            made.line("external_signaling_port", port, &line.place);
        }
    }

    fn secure(&mut self, made: &mut Made) {
        for (key, option) in TLS {
            if let Some(line) = self.general(&[key]) {
                made.line(option, &line.value, &line.place);
            }
        }
        // The key may stand in the file of the certificate.
        if let (false, Some(line)) = (made.has("priv_key_file"), self.general(&["tlscertfile"])) {
            made.line("priv_key_file", &line.value, &line.place);
        }
        if let Some(line) = self.general(&["tlsclientmethod"]) {
            let method = line.value.to_ascii_lowercase().replace("v1.", "v1_");
            if TlsMethod::WORDS.iter().any(|(word, _)| *word == method) {
                made.line("method", &method, &line.place);
            } else {
                let message = format!(
                    "tlsclientmethod={} is no version of TLS; TLS 1.2 and 1.3 are spoken",
                    line.value
                );
                self.findings.warning(&line.place, message, "remove the line");
            }
        }
        let careless: Option<&Variable> = self.general(&["tlsdontverifyserver"]);
        let place = careless.map_or_else(|| self.sip.place(), |line| line.place.clone());
        made.line("verify_server", if yes(careless) { "no" } else { "yes" }, &place);
    }
}

#[cfg(test)]
mod tests {
    use super::address_and_port;

    #[test]
    fn addresses_are_told_from_their_ports() {
        for (text, expected) in [
            ("0.0.0.0", ("0.0.0.0", None)),
            ("10.0.0.1:5062", ("10.0.0.1", Some("5062"))),
            ("::", ("::", None)),
            ("2001:db8::1", ("2001:db8::1", None)),
            ("[::]", ("[::]", None)),
            ("[2001:db8::1]:5070", ("[2001:db8::1]", Some("5070"))),
            ("pbx.example.com:5080", ("pbx.example.com", Some("5080"))),
            ("", ("", None)),
        ] {
            assert_eq!(address_and_port(text), expected, "{text}");
        }
    }
}
