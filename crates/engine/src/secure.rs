//! What the configuration says of TLS and of connections, and what the log hears of those whose TLS was broken off.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use base::Instant;
use conf::{Findings, Place};
use io::net::{
    BindError, FlowKind, Keepalive, KeyPassword, ListenerId, Net, Tls, TlsFault, TlsSettings, Versions,
    unknown_ciphers,
};
use store::Snapshot;
use store::config::pjsip::{Protocol, TlsMethod, Transport};

/// What the connections of a transport are given besides its address.
#[derive(Clone, Default)]
pub(crate) struct Wire {
    /// `protocol=tls`: certificates.
    pub(crate) tls: Option<Tls>,
    /// `tcp_keepalive_enable=yes`.
    pub(crate) keepalive: Option<Keepalive>,
}

/// The same for all that connects.
#[derive(Clone, Default)]
pub(crate) struct Wires {
    /// By the names of the transports; one whose certificates cannot be used is missing.
    pub(crate) transports: BTreeMap<String, Wire>,
    /// Time between pings on connections (`keep_alive_interval`).
    pub(crate) ping: Option<Duration>,
    /// manager.conf's.
    pub(crate) manager: Option<Tls>,
    /// http.conf's.
    pub(crate) http: Option<Tls>,
}

impl Wires {
    /// Reads the files that the configuration names. What cannot be used is an error of the line that names it.
    pub(crate) fn read(snapshot: &Snapshot, findings: &mut Findings) -> Self {
        let mut transports = BTreeMap::new();
        for (name, transport) in &snapshot.pjsip.transports {
            let tls = match transport.protocol {
                Protocol::Tls => {
                    let settings = settings_of(transport);
                    let place = |option: &str| transport.origin.place_of(option);
                    tell_unknown(&settings, place("cipher"), findings);
                    match load(&settings, place, &format!("transport '{name}'"), findings) {
                        Some(tls) => Some(tls),
                        None => continue,
                    }
                }
                _ => None,
            };
            let keepalive = transport.tcp_keepalive_enable.then_some(Keepalive {
                idle: transport.tcp_keepalive_idle_time,
                interval: transport.tcp_keepalive_interval_time,
                probes: transport.tcp_keepalive_probe_count,
            });
            transports.insert(name.clone(), Wire { tls, keepalive });
        }
        let ping = snapshot.pjsip.global.keep_alive_interval;
        let (manager, http) = (&snapshot.manager.general, &snapshot.http);
        let served = |wanted: bool,
                      settings: TlsSettings,
                      origin: &store::config::Origin,
                      what: &str,
                      findings: &mut Findings| {
            if !wanted {
                return None;
            }
            let place = |option: &str| {
                origin.place_of(if option == "priv_key_file" { "tlsprivatekey" } else { "tlscertfile" })
            };
            tell_unknown(&settings, origin.place_of("tlscipher"), findings);
            load(&settings, place, what, findings)
        };
        let of_manager = served_settings(
            &manager.tlscertfile,
            &manager.tlsprivatekey,
            &manager.tlscipher,
            manager.tlsdisablev12,
        );
        let of_http =
            served_settings(&http.tlscertfile, &http.tlsprivatekey, &http.tlscipher, http.tlsdisablev12);
        Self {
            transports,
            ping: Some(ping).filter(|ping| !ping.is_zero()),
            manager: served(
                manager.tls_address().is_some(),
                of_manager,
                &manager.origin,
                "the manager",
                findings,
            ),
            http: served(http.tls_address().is_some(), of_http, &http.origin, "HTTPS", findings),
        }
    }
}

/// What of the configuration's certificates cannot be used; for `strowger check`.
pub fn check_certificates(snapshot: &Snapshot, findings: &mut Findings) {
    Wires::read(snapshot, findings);
}

fn settings_of(transport: &Transport) -> TlsSettings {
    TlsSettings {
        cert_file: (&*transport.cert_file).into(),
        key_file: (&*transport.priv_key_file).into(),
        key_password: KeyPassword(transport.password.expose().to_owned()),
        ca_list_file: (&*transport.ca_list_file).into(),
        ca_list_path: (&*transport.ca_list_path).into(),
        versions: match transport.method {
            TlsMethod::Default | TlsMethod::Outdated => Versions::All,
            TlsMethod::Tls12 => Versions::Tls12,
            TlsMethod::Tls13 => Versions::Tls13,
        },
        ciphers: transport.cipher.clone(),
        verify_client: transport.verify_client,
        require_client_cert: transport.require_client_cert,
        verify_server: transport.verify_server,
        allow_wildcard_certs: transport.allow_wildcard_certs,
    }
}

fn served_settings(certificate: &str, key: &str, ciphers: &[String], only_13: bool) -> TlsSettings {
    TlsSettings {
        cert_file: certificate.into(),
        key_file: key.into(),
        ciphers: ciphers.to_vec(),
        versions: if only_13 { Versions::Tls13 } else { Versions::All },
        ..TlsSettings::default()
    }
}

fn tell_unknown(settings: &TlsSettings, place: &Place, findings: &mut Findings) {
    let unknown = unknown_ciphers(&settings.ciphers);
    if !unknown.is_empty() {
        findings.warning(
            place,
            format!("these suites are not built in and are left out: {}", unknown.join(", ")),
            "TLS 1.3 and the ECDHE suites with AES-GCM or ChaCha20 are spoken",
        );
    }
}

fn load<'a>(
    settings: &TlsSettings,
    place: impl Fn(&str) -> &'a Place,
    whose: &str,
    findings: &mut Findings,
) -> Option<Tls> {
    match Tls::load(settings) {
        Ok(tls) => Some(tls),
        Err(error) => {
            let message = format!("{whose} is not served under TLS: {}", error.what);
            findings.error(place(error.option), message, error.remedy);
            None
        }
    }
}

/// A listener of a service that is off, because its address cannot be had.
pub(crate) struct Shut {
    /// The field's word for it.
    pub(crate) name: &'static str,
    /// Where its address is written.
    pub(crate) place: String,
    /// Why.
    pub(crate) error: BindError,
}

impl Shut {
    /// Says so.
    pub(crate) fn log(&self, shard: &call::Shard) {
        let Self { name, place, error } = self;
        let mut core = shard.core.borrow_mut();
        let (address, why) = (&error.addr, &error.error);
        let line = format!("Unable to bind {name} to {address}: {why} ({place}; {})", error.remedy());
        core.log(call::Level::Error, "tcptls", &line);
        let line = format!("Failed to start {name} at address '{address}'");
        core.log(call::Level::Warning, "tcptls", &line);
    }
}

/// One listener of a service, in the clear or under TLS.
#[derive(Default)]
pub(crate) struct Door {
    open: Option<(SocketAddr, ListenerId)>,
    tls: Option<Tls>,
}

impl Door {
    /// Whether it listens anywhere.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }
    /// Whether this is its listener.
    pub(crate) fn is(&self, listener: ListenerId) -> bool {
        self.open.is_some_and(|(_, own)| own == listener)
    }
    /// Listens at `wanted` and nowhere else; what is open there stays open. From here on it presents this certificate.
    pub(crate) fn listen(
        &mut self,
        net: &mut Net,
        wanted: Option<SocketAddr>,
        kind: FlowKind,
        tls: Option<&Tls>,
    ) -> Result<(), BindError> {
        if self.open.map(|(address, _)| address) != wanted {
            if let Some((_, listener)) = self.open.take() {
                net.close_listener(listener);
            }
            if let Some(address) = wanted {
                self.open = Some((address, net.listen_tcp(address, kind)?));
            }
        }
        let same = matches!((&self.tls, tls), (Some(old), Some(new)) if old.same(new));
        if !same {
            self.tls = tls.cloned();
        }
        if let Some((_, listener)) = self.open {
            net.set_listener_tls(listener, self.tls.clone());
        }
        Ok(())
    }
}

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

    /// The wires of a folder with these files.
    fn read(name: &str, files: &[(&str, &str)]) -> (Wires, Vec<String>) {
        let folder = std::env::temp_dir().join(format!("strowger-secure-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for file in ["asterisk.conf", "extensions.conf", "pjsip.conf"] {
            std::fs::write(folder.join(file), "").unwrap();
        }
        for (file, text) in files {
            std::fs::write(folder.join(file), text).unwrap();
        }
        let (snapshot, _) = Snapshot::load(&store::Where::Dir(folder.clone())).unwrap();
        let mut findings = Findings::new();
        let wires = Wires::read(&snapshot, &mut findings);
        std::fs::remove_dir_all(&folder).unwrap();
        (wires, findings.iter().map(crate::reload::one_line).collect())
    }

    #[test]
    fn every_option_of_tls_reaches_what_reads_the_certificates() {
        let transport = |lines: &str| {
            let text = format!("[t]\ntype=transport\nprotocol=tls\nbind=127.0.0.1\n{lines}");
            let folder = std::env::temp_dir().join(format!("strowger-tls-option-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            for (file, text) in [("asterisk.conf", ""), ("extensions.conf", ""), ("pjsip.conf", &*text)] {
                std::fs::write(folder.join(file), text).unwrap();
            }
            let (snapshot, _) = Snapshot::load(&store::Where::Dir(folder.clone())).unwrap();
            std::fs::remove_dir_all(&folder).unwrap();
            settings_of(&snapshot.pjsip.transports["t"])
        };
        let none = TlsSettings::default();
        assert_eq!(transport(""), none);
        for (line, expected) in [
            ("cert_file=/c", TlsSettings { cert_file: "/c".into(), ..none.clone() }),
            ("priv_key_file=/k", TlsSettings { key_file: "/k".into(), ..none.clone() }),
            ("password=p", TlsSettings { key_password: KeyPassword("p".into()), ..none.clone() }),
            ("ca_list_file=/l", TlsSettings { ca_list_file: "/l".into(), ..none.clone() }),
            ("ca_list_path=/p", TlsSettings { ca_list_path: "/p".into(), ..none.clone() }),
            ("method=tlsv1_2", TlsSettings { versions: Versions::Tls12, ..none.clone() }),
            ("method=tlsv1_3", TlsSettings { versions: Versions::Tls13, ..none.clone() }),
            ("method=tlsv1", none.clone()),
            (
                "cipher=A:B,C",
                TlsSettings { ciphers: ["A", "B", "C"].map(str::to_owned).into(), ..none.clone() },
            ),
            ("verify_client=yes", TlsSettings { verify_client: true, ..none.clone() }),
            ("require_client_cert=yes", TlsSettings { require_client_cert: true, ..none.clone() }),
            ("verify_server=yes", TlsSettings { verify_server: true, ..none.clone() }),
            ("allow_wildcard_certs=yes", TlsSettings { allow_wildcard_certs: true, ..none.clone() }),
        ] {
            assert_eq!(transport(line), expected, "{line}");
        }
    }

    #[test]
    fn certificates_that_cannot_be_used_are_errors_of_their_lines_and_the_rest_is_served() {
        let pjsip = "[global]\ntype=global\nkeep_alive_interval=7\n[bad]\ntype=transport\nprotocol=tls\nbind=127.0.0.1\n\
                     cert_file=/nowhere\n[good]\ntype=transport\nprotocol=tcp\nbind=127.0.0.1\n\
                     tcp_keepalive_enable=yes\ntcp_keepalive_idle_time=3\ntcp_keepalive_interval_time=4\n\
                     tcp_keepalive_probe_count=2\n";
        let manager = "[general]\nenabled=yes\ntlsenable=yes\ntlscertfile=/nobody\ntlscipher=AES256-SHA\n";
        let (wires, said) = read("files", &[("pjsip.conf", pjsip), ("manager.conf", manager)]);
        assert_eq!(wires.transports.keys().collect::<Vec<_>>(), ["good"]);
        assert_eq!(wires.ping, Some(Duration::from_secs(7)));
        let seconds = Duration::from_secs;
        let expected = Keepalive { idle: seconds(3), interval: seconds(4), probes: 2 };
        assert_eq!(wires.transports["good"].keepalive, Some(expected));
        assert!(wires.manager.is_none() && wires.http.is_none());
        assert!(said.iter().any(|line| line.contains("pjsip.conf:8: error: transport 'bad'")), "{said:?}");
        assert!(said.iter().any(|line| line.contains("manager.conf:4: error: the manager")), "{said:?}");
        assert!(
            said.iter().any(|line| line.contains("manager.conf:5: warning") && line.contains("AES256-SHA")),
            "{said:?}"
        );
        assert_eq!(said.len(), 3, "{said:?}");
    }

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
