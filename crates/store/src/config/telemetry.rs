//! `opentelemetry.conf`: traces of calls for a collector of OpenTelemetry.

use super::kind::{Hidden, Int, Names, Text, YesNo};
use super::{options, read_settings};
use conf::{File, Findings};

/// Port of collectors that take OTLP over HTTP, when none is written.
const PORT: u16 = 4318;
/// Where they take traces, when no path is written.
const PATH: &str = "/v1/traces";

options! {
    /// `[general]` of `opentelemetry.conf`. Without the file nothing is traced.
    TelemetryGeneral, "opentelemetry.conf", "general", IsIgnored;
    enabled: YesNo = "yes", "Send traces of calls to a collector, as OTLP over HTTP (JSON).";
    endpoint: Text = "http://127.0.0.1:4318/v1/traces", "Where the collector takes traces: http://host, with port 4318 and path /v1/traces unless written.";
    authorization: Hidden = "", "Header Authorization of each request; empty sends none.";
    service_name: Text = "strowger", "The service that traces are of (service.name).";
    sample: Int<0, 100> = "100", "Calls in a hundred that are traced.";
    details: YesNo = "no", "Name callers, dialled extensions and arguments of applications in spans.";
    omit_applications: Names = "", "Applications whose steps get no span, such as NoOp,Set.";
    @recognised {}
}

/// Where traces go.
#[derive(Debug, Clone, PartialEq)]
pub struct Telemetry {
    /// Host name or address of the collector.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The path that takes traces.
    pub path: String,
    /// The rest.
    pub general: TelemetryGeneral,
}

impl Telemetry {
    /// Reads the file; `None` when nothing is to be traced.
    pub fn read(file: &File, findings: &mut Findings) -> Option<Self> {
        let general: TelemetryGeneral = read_settings(file, "general", findings);
        if !general.enabled || general.sample == 0 {
            return None;
        }
        let place = general.origin.place_of("endpoint");
        match parts(&general.endpoint) {
            Ok((host, port, path)) => Some(Self { host, port, path, general }),
            Err(why) => {
                let message = format!("{why}; nothing is traced");
                findings.warning(place, message, "write endpoint=http://host:4318, or enabled=no");
                None
            }
        }
    }
}

/// Host, port and path of an address.
fn parts(text: &str) -> Result<(String, u16, String), String> {
    let wrong = || format!("'{text}' is no http://host:port/path");
    if text.starts_with("https://") {
        return Err(format!(
            "'{text}' asks for TLS, which traces are not sent under: have a collector on this machine pass them on"
        ));
    }
    let rest = text.strip_prefix("http://").ok_or_else(wrong)?;
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (host, port) = super::host_and_port(authority, PORT).ok_or_else(wrong)?;
    let path = if path.trim_matches('/').is_empty() { PATH } else { path };
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong());
    }
    Ok((host, port, path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_an_address_of_http() {
        for (text, expected) in [
            ("http://127.0.0.1:4318/v1/traces", Some(("127.0.0.1", 4318, "/v1/traces"))),
            ("http://collector", Some(("collector", 4318, "/v1/traces"))),
            ("http://collector:9/", Some(("collector", 9, "/v1/traces"))),
            ("http://[2001:db8::1]:9/otlp/v1/traces?a=b", Some(("2001:db8::1", 9, "/otlp/v1/traces?a=b"))),
            ("https://collector", None),
            ("collector:4318", None),
            ("http://", None),
            ("http://a:b", None),
            ("http://a/b c", None),
            ("http://a/b\r\nX: y", None),
        ] {
            let found = parts(text);
            let found = found.as_ref().ok().map(|(host, port, path)| (host.as_str(), *port, path.as_str()));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn nothing_is_traced_without_a_collector_to_send_it_to() {
        for (name, text, traced, told) in [
            ("as it stands", "[general]\n", true, 0),
            ("off", "[general]\nenabled = no\nendpoint = nonsense\n", false, 0),
            ("no call", "[general]\nsample = 0\n", false, 0),
            ("under TLS", "[general]\nendpoint = https://collector\n", false, 1),
        ] {
            let mut findings = Findings::new();
            let source = conf::Memory::new().with("opentelemetry.conf", text);
            let file =
                conf::load(&source, "opentelemetry.conf", conf::Options::default(), &mut findings).unwrap();
            assert_eq!(Telemetry::read(&file, &mut findings).is_some(), traced, "{name}");
            assert_eq!(findings.iter().count(), told, "{name}");
        }
    }
}
